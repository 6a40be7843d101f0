/* SPDX-License-Identifier: MIT */
/* An agent for a policy that was trained before: trained.c and policy_file.c make one here and then
 * load its weights. Most agents are their networks alone. One that plans also needs its task, for
 * the rule where episodes end, and by eq. 5 the recordings that plans walk along. What it needs and
 * the caller does not have is opened or read here and belongs to the agent. */
#include "base/log.h"
#include "opc/transition_type.h"
#include "run/recorded.h"
#include "run/train.h"

/* Everything the agent gets; `own` is what it will own. */
struct parts {
    const struct opc_env *env;
    struct opc_env *own;
    struct opc_episodes *past;
    struct opc_transition *transition;
};

static void free_parts(struct parts *parts)
{
    opc_transition_destroy(parts->transition);
    opc_episodes_destroy(parts->past);
    if (parts->own)
        opc_env_close(parts->own);
}

static int open_task(const struct opc_values *v, int obs, int act, struct parts *parts,
                     struct opc_err *err)
{
    char task[OPC_TASK_NAME];
    if (!parts->env) {
        if (opc_env_open(opc_values_task(v, task), &parts->own, err))
            return opc_within(err, "the policy plans with the rules of its task");
        parts->env = parts->own;
    }
    if (parts->env->obs != obs || parts->env->act != act)
        return opc_fail(err, OPC_EUSER,
                        "%s has %d observations and %d actions, but the policy was trained with %d "
                        "and %d",
                        v->env.name, parts->env->obs, parts->env->act, obs, act);
    return opc_run_check_reward(v, parts->env, err);
}

/* The recordings of the run, and the transition along them, whose table is not filled yet. A
 * directory without checkpoints has none, which is not an error. */
static int read_references(const char *dir, const struct opc_config *config, int obs, int act,
                           struct opc_predictor *model, struct parts *parts, struct opc_err *err)
{
    const struct opc_values *v = &config->set;
    struct opc_recorded recorded;
    const int code = opc_recorded_load(dir, config, obs, act, &recorded, err);
    if (code)
        return code == OPC_EUSER ? OPC_OK : code;
    const int first = opc_first_reference(v, recorded.episodes, recorded.epochs - 1,
                                          opc_episodes_count(recorded.past));
    const int steps = opc_episodes_steps(recorded.past);
    parts->past = recorded.past;
    recorded.past = NULL;
    opc_recorded_free(&recorded);
    if (steps == 0)
        return OPC_OK;
    OPC_TRY(opc_run_transition(v, parts->past, model, parts->env, steps, &parts->transition, err));
    opc_transition_move_window(parts->transition, first);
    return OPC_OK;
}

int opc_run_loaded_agent(const char *dir, const struct opc_config *config, int obs, int act,
                         struct opc_predictor *model, const struct opc_env *env,
                         struct opc_pool *pool, struct opc_agent **out, struct opc_err *err)
{
    const struct opc_values *v = &config->set;
    const bool along = opc_plans(v) && opc_transition_of(v)->needs_reference;
    struct parts parts = {.env = env};
    int code = OPC_OK;
    if (opc_agent_of(v)->needs & OPC_NEEDS_TASK)
        code = open_task(v, obs, act, &parts, err);
    if (!code && along && dir)
        code = read_references(dir, config, obs, act, model, &parts, err);
    if (!code)
        code = opc_run_agent(v, obs, act, model, parts.transition, parts.env, NULL, pool, out, err);
    if (code) {
        free_parts(&parts);
        return code;
    }
    (*out)->env = parts.own;
    (*out)->past = parts.past;
    (*out)->transition = parts.transition;
    if (along && !parts.transition)
        opc_log(OPC_LEVEL_WARN,
                "a policy without the recordings it was trained with plans by eq. 2, not by %s",
                opc_transition_of(v)->equation);
    return OPC_OK;
}
