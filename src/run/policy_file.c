/* SPDX-License-Identifier: MIT */
/* A policy in a file of its own. Sections "shape" and "settings" say what the networks are, and
 * "action.low" and "action.high" what their actions stand for; readers that have the run's
 * config.yaml, as all did before these sections existed, do not look at them. */
#include "run/policy_file.h"

#include "base/file.h"
#include "opc/policy.h"
#include "run/run.h"

#include <string.h>

/* Those that count: the file must not depend on the others. */
static void print_settings(const struct opc_values *v, struct opc_text *out)
{
    struct opc_values copy = *v; /* parts are not const */
    struct opc_part part[OPC_PARTS_MAX];
    const int parts = opc_config_parts(&copy, part);
    for (int i = 0; i < parts; i++)
        for (int k = 0; k < part[i].section->n; k++) {
            const struct opc_field *f = &part[i].section->fields[k];
            /* The forms of results are of no use here; where the task is found, is. */
            if (!opc_config_counts(part[i].section, f) &&
                (f->kind != OPC_FIELD_PATH || opc_field_equals(f, part[i].values, f->fallback)))
                continue;
            opc_text_addf(out, "%s.%s=", part[i].section->name, f->name);
            opc_field_print(f, part[i].values, out);
            opc_text_add(out, "\n");
        }
}

int opc_policy_describe(const struct opc_values *v, const struct opc_env *env,
                        struct opc_policy_about *about, struct opc_gather *gather,
                        struct opc_err *err)
{
    const size_t limits = (size_t)env->act * sizeof *env->low;
    *about = (struct opc_policy_about){.shape = {env->obs, env->act}};
    print_settings(v, &about->settings);
    OPC_TRY(opc_text_check(&about->settings, err));
    OPC_TRY(opc_gather_visit(gather, "shape", about->shape, sizeof about->shape, err));
    OPC_TRY(opc_gather_visit(gather, "settings", about->settings.at, about->settings.used, err));
    OPC_TRY(opc_gather_visit(gather, "action.low", (void *)env->low, limits, err));
    return opc_gather_visit(gather, "action.high", (void *)env->high, limits, err);
}

static int set_all(struct opc_config *config, const struct opc_named *settings, struct opc_err *err)
{
    const char *at = settings->data, *end = at + settings->bytes;
    while (at < end) {
        char line[OPC_KEY + OPC_PATH];
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const size_t n = (size_t)((stop ? stop : end) - at);
        if (n >= sizeof line)
            return opc_fail(err, OPC_EDAMAGED, "it has a setting of %zu characters", n);
        memcpy(line, at, n);
        line[n] = '\0';
        OPC_TRY(opc_config_set(config, line, err));
        at += n + 1;
    }
    return OPC_OK;
}

static int read_config(const struct opc_pack *pack, struct opc_config **out, struct opc_err *err)
{
    const struct opc_named *settings = opc_pack_find(pack, "settings");
    struct opc_config *config;
    if (!settings)
        return opc_fail(err, OPC_EUSER,
                        "it is of an earlier version and does not hold its settings; load its run "
                        "directory instead");
    OPC_TRY(opc_config_create(&config, err));
    const int code = set_all(config, settings, err);
    if (code)
        opc_config_destroy(config);
    else
        *out = config;
    return code;
}

/* The networks, as new, and then as the file has them. */
static int make_agent(const struct opc_pack *pack, const struct opc_config *config,
                      const struct opc_env *env, struct opc_agent **out, struct opc_err *err)
{
    enum { MAX_DIMENSION = 1 << 20 };
    int64_t shape[2];
    struct opc_agent *agent;
    struct opc_predictor *model = NULL;
    OPC_TRY(opc_pack_get(pack, "shape", shape, sizeof shape, err));
    if (shape[0] < 1 || shape[0] > MAX_DIMENSION || shape[1] < 1 || shape[1] > MAX_DIMENSION)
        return opc_fail(err, OPC_EDAMAGED, "it does not say what it is a policy for");
    const int obs = (int)shape[0], act = (int)shape[1];
    if (opc_agent_of(&config->set)->needs & OPC_NEEDS_MODEL)
        OPC_TRY(opc_run_model(&config->set, obs, act, NULL, &model, err));
    int code = opc_run_loaded_agent(NULL, config, obs, act, model, env, NULL, &agent, err);
    if (code) {
        opc_predictor_destroy(model);
        return code;
    }
    agent->model = model; /* destroyed with it from here on */
    code = agent->type->state(agent, opc_pack_visit, (void *)pack, err);
    if (!code && model)
        code = model->type->state(model, opc_pack_visit, (void *)pack, err);
    if (code)
        opc_agent_destroy(agent);
    else
        *out = agent;
    return code;
}

int opc_policy_file_load(const char *path, const struct opc_env *env, struct opc_agent **out,
                         int *epoch, struct opc_err *err)
{
    struct opc_pack *pack;
    struct opc_config *config = NULL;
    OPC_TRY(opc_checkpoint_load(path, OPC_PACK_POLICY, &pack, err));
    int code = read_config(pack, &config, err);
    if (!code)
        code = make_agent(pack, config, env, out, err);
    *epoch = (int)pack->epoch;
    if (code)
        opc_within(err, "%s", path);
    opc_config_destroy(config);
    opc_pack_free(pack);
    return code;
}

int opc_policy_config(const char *path, struct opc_config **out, struct opc_err *err)
{
    struct opc_pack *pack;
    const size_t n = strlen(path);
    if (n > 4 && strcmp(path + n - 4, ".opc") == 0 && !opc_file_exists(path))
        return opc_fail(err, OPC_EUSER,
                        "there is no file %s; a run that is done has policy.opc in its directory",
                        path);
    if (opc_is_directory(path) || !opc_file_exists(path))
        return opc_config_of_run(path, out, err);
    OPC_TRY(opc_checkpoint_load(path, OPC_PACK_POLICY, &pack, err));
    const int code = read_config(pack, out, err);
    if (code)
        opc_within(err, "%s", path);
    opc_pack_free(pack);
    return code;
}

/* From the task itself, for a policy whose file does not have them. */
static int limits_of_task(const char *path, int act, double *low, double *high, struct opc_err *err)
{
    struct opc_config *config;
    struct opc_env *env = NULL;
    char task[OPC_TASK_NAME];
    OPC_TRY(opc_policy_config(path, &config, err));
    int code = opc_env_open(opc_values_task(&config->set, task), &env, err);
    if (code)
        opc_within(err, "%s does not hold the limits of its actions, and its task does not open",
                   path);
    else if (env->act != act)
        code = opc_fail(err, OPC_EUSER, "%s has %d actions and its task %s has %d", path, act,
                        config->set.env.name, env->act);
    for (int k = 0; k < act && !code; k++) {
        low[k] = env->low[k];
        high[k] = env->high[k];
    }
    opc_env_close(env);
    opc_config_destroy(config);
    return code;
}

int opc_policy_limits(const char *path, int act, double *low, double *high, struct opc_err *err)
{
    const size_t bytes = (size_t)act * sizeof *low;
    char file[OPC_PATH];
    struct opc_pack *pack;
    /* a run directory has the file once it is finished */
    OPC_TRY(opc_path_join(file, opc_is_directory(path) ? path : "",
                          opc_is_directory(path) ? "policy.opc" : path, err));
    if (!opc_file_exists(file))
        return limits_of_task(path, act, low, high, err);
    OPC_TRY(opc_checkpoint_load(file, OPC_PACK_POLICY, &pack, err));
    const bool has = opc_pack_find(pack, "action.low") && opc_pack_find(pack, "action.high");
    int code = OPC_OK;
    if (has) {
        code = opc_pack_get(pack, "action.low", low, bytes, err);
        if (!code)
            code = opc_pack_get(pack, "action.high", high, bytes, err);
    }
    opc_pack_free(pack);
    return has ? code : limits_of_task(path, act, low, high, err);
}
