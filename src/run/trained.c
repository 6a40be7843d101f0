/* SPDX-License-Identifier: MIT */
/* What can be done with a run directory afterwards: load its policy, evaluate it, and load policy
 * and model of one of its snapshots. Called by `opc evaluate`, `opc env`, probes and other
 * programs.
 *
 * Invariant: nothing here writes to the directory or locks it, so a run may be looked at while a
 * process works on it. */
#include "run/trained.h"

#include "base/sized.h"
#include "opc/mem.h"
#include "run/files/rundir.h"
#include "run/policy_file.h"
#include "run/real/evaluate.h"
#include "run/run.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

/* env: as in opc_run_loaded_agent. */
static int load_policy(const char *dir, const struct opc_config *config, int obs, int act,
                       const struct opc_env *env, struct opc_pool *pool, struct opc_agent **out,
                       int *epoch, struct opc_err *err)
{
    struct opc_agent *agent;
    struct opc_predictor *model = NULL;
    int code = OPC_OK;
    /* Networks of the right shapes first, then the weights into them. */
    if (opc_agent_of(&config->set)->needs & OPC_NEEDS_MODEL)
        code = opc_run_model(&config->set, obs, act, pool, &model, err);
    if (!code)
        code = opc_run_loaded_agent(dir, config, obs, act, model, env, pool, &agent, err);
    if (code) {
        opc_predictor_destroy(model);
        return code;
    }
    agent->model = model; /* owned by the agent from here on */
    code = opc_run_load_policy(dir, opc_config_hash(&config->set), agent, epoch, err);
    if (!code && agent->transition)
        code = opc_transition_refresh(agent->transition, pool, err);
    if (code)
        opc_agent_destroy(agent);
    else
        *out = agent;
    return code;
}

/* meta.json knows the dimensions. The task is opened only without it, because it may be hardware
 * that the caller has open. */
static int find_dimensions(const char *dir, const struct opc_config *config, int *obs, int *act,
                           struct opc_err *err)
{
    struct opc_rundir_meta meta;
    struct opc_env *env;
    char task[OPC_TASK_NAME];
    struct opc_err why = {0};
    const int found = opc_rundir_meta(dir, &meta, &why);
    if (found == OPC_ENOMEM)
        return opc_fail(err, OPC_ENOMEM, "%s", why.text);
    if (!found && meta.obs > 0 && meta.act > 0) {
        *obs = meta.obs;
        *act = meta.act;
        return OPC_OK;
    }
    const int code = opc_env_open(opc_values_task(&config->set, task), &env, err);
    if (code)
        return code;
    *obs = env->obs;
    *act = env->act;
    opc_env_close(env);
    return OPC_OK;
}

int opc_policy_load(const char *dir, struct opc_agent **out, struct opc_err *err)
{
    int epoch;
    return opc_policy_load_for(dir, NULL, out, &epoch, err);
}

int opc_policy_load_for(const char *dir, const struct opc_env *env, struct opc_agent **out,
                        int *epoch, struct opc_err *err)
{
    if (opc_file_exists(dir) && !opc_is_directory(dir))
        return opc_policy_file_load(dir, env, out, epoch, err);
    struct opc_config *config;
    int obs, act, code = opc_config_of_run(dir, &config, err);
    if (code)
        return code;
    code = find_dimensions(dir, config, &obs, &act, err);
    if (!code)
        code = load_policy(dir, config, obs, act, env, NULL, out, epoch, err);
    opc_config_destroy(config);
    return code;
}

/* The policy to evaluate: of a snapshot, of a file, or of a run directory. */
static int load_for_evaluation(const char *path, const struct opc_config *config, int snapshot,
                               const struct opc_env *env, struct opc_pool *pool,
                               struct opc_agent **out, int *epoch, struct opc_err *err)
{
    struct opc_trained trained;
    if (snapshot == 0 && !opc_is_directory(path))
        return opc_policy_file_load(path, env, out, epoch, err);
    if (snapshot == 0)
        return load_policy(path, config, env->obs, env->act, env, pool, out, epoch, err);
    OPC_TRY(opc_trained_load(path, config, env->obs, env->act, snapshot, pool, &trained, err));
    trained.agent->model =
        trained.model; /* an agent that plans uses it; destroyed with the agent */
    *out = trained.agent;
    *epoch = trained.epoch;
    return OPC_OK;
}

int opc_evaluate_run(const char *path, int episodes, uint64_t seed, bool explore, int threads,
                     struct opc_evaluation *out, double *returns, struct opc_err *err)
{
    return opc_evaluate_snapshot(path, 0, episodes, seed, explore, threads, out, returns, err);
}

int opc_evaluate_snapshot(const char *path, int snapshot, int episodes, uint64_t seed, bool explore,
                          int threads, struct opc_evaluation *out, double *returns,
                          struct opc_err *err)
{
    struct opc_evaluation done = {0};
    OPC_TRY(opc_sized_check(out, "opc_evaluation", sizeof done, err));
    struct opc_config *config = NULL;
    struct opc_pool *pool = NULL;
    struct opc_many *worlds = NULL;
    struct opc_agent *agent = NULL;
    char task[OPC_TASK_NAME];
    /* As many environments as are useful, with the pool's threads between them. */
    const int at_once = episodes < OPC_EVAL_AT_ONCE ? episodes : OPC_EVAL_AT_ONCE;
    int epoch = 0, code = opc_policy_config(path, &config, err);
    if (!code)
        code = opc_pool_create(threads, &pool, err);
    if (!code)
        code = opc_many_open(opc_values_task(&config->set, task), at_once, pool, &worlds, err);
    if (!code)
        code = load_for_evaluation(path, config, snapshot, opc_many_env(worlds, 0), pool, &agent,
                                   &epoch, err);
    if (!code) {
        const int steps = opc_many_env(worlds, 0)->steps;
        const struct opc_eval_plan plan = {
            .agent = agent,
            .worlds = worlds,
            .episodes = episodes,
            .limit = steps > 0 ? steps : config->set.train.steps_per_epoch,
            .explore = explore,
            .seed = seed,
        };
        code = opc_evaluate(&plan, &done, returns, err);
        done.epoch = epoch;
        opc_sized_write(&done, sizeof done, out);
    }
    opc_agent_destroy(agent);
    opc_many_close(worlds);
    opc_pool_destroy(pool);
    opc_config_destroy(config);
    return code;
}

/* ---- snapshots ------------------------------------------------------------------------------- */

void opc_trained_free(struct opc_trained *trained)
{
    opc_agent_destroy(trained->agent);
    opc_predictor_destroy(trained->model);
    *trained = (struct opc_trained){0};
}

int opc_trained_load(const char *dir, const struct opc_config *config, int obs, int act, int epoch,
                     struct opc_pool *pool, struct opc_trained *out, struct opc_err *err)
{
    const struct opc_values *v = &config->set;
    struct opc_trained trained = {.epoch = 0};
    int code = OPC_OK;
    if (opc_transition_of(v)->needs_model)
        code = opc_run_model(v, obs, act, pool, &trained.model, err);
    if (!code)
        code = opc_run_loaded_agent(NULL, config, obs, act, trained.model, NULL, pool,
                                    &trained.agent, err);
    if (!code && epoch != 0)
        code = opc_run_load_networks(dir, epoch, opc_config_hash(v), trained.agent, trained.model,
                                     &trained.epoch, err);
    if (code)
        opc_trained_free(&trained);
    else
        *out = trained;
    return code;
}

static int by_number(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* "000012.opc" is 12; 0: it is not a snapshot. */
static int snapshot_number(const char *name)
{
    char digits[16];
    int epoch;
    const size_t n = strspn(name, "0123456789");
    if (n < 6 || n >= sizeof digits || strcmp(name + n, ".opc") != 0)
        return 0;
    memcpy(digits, name, n);
    digits[n] = '\0';
    return opc_parse_int(digits, &epoch) ? epoch : 0;
}

int opc_trained_snapshots(const char *dir, int **epochs, int *n, struct opc_err *err)
{
    char path[OPC_PATH];
    int code = opc_path_join(path, dir, "snapshots", err), count = 0, capacity = 0;
    if (code)
        return code;
    /* Count, allocate, list. A snapshot that appears in between is left out. */
    DIR *folder = opendir(path);
    for (struct dirent *e; folder && (e = readdir(folder));)
        capacity += snapshot_number(e->d_name) > 0;
    int *list = opc_alloc((size_t)capacity, sizeof *list);
    if (!list)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory to list %d snapshots", capacity);
    if (folder)
        rewinddir(folder);
    for (struct dirent *e; !code && folder && count < capacity && (e = readdir(folder));)
        if (snapshot_number(e->d_name) > 0)
            list[count++] = snapshot_number(e->d_name);
    if (folder)
        closedir(folder);
    if (code)
        return code;
    qsort(list, (size_t)count, sizeof *list, by_number);
    *epochs = list;
    *n = count;
    return OPC_OK;
}
