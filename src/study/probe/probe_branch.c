/* SPDX-License-Identifier: MIT */
/* Rollouts of a run's models, stored whole: where they start, how they are made with the run's
 * settings, and what the environment does with the same actions. The analyses of this folder
 * call it.
 *
 * Invariant: random numbers come from streams named by number and row, so both models see the
 * same noise. */
#include "study/probe/probe.h"

#include "env/types.h"
#include "opc/mem.h"
#include "run/real/retrace.h"

/* ---- starts ---------------------------------------------------------------------------------- */

void opc_probe_from_starts(struct opc_branches *branches, const struct opc_episodes *past)
{
    for (int i = 0; i < branches->n; i++) {
        branches->episode[i] = i % opc_episodes_count(past);
        branches->time[i] = 0;
    }
}

/* Number of possible starts in an episode. */
static int starts_in(const struct opc_episodes *past, int episode, int horizon)
{
    /* A start at time t leaves length - t steps, of which `horizon` are needed. */
    const int n = opc_episodes_length(past, episode) - horizon + 1;
    return n > 0 ? n : 0;
}

void opc_probe_from_anywhere(struct opc_branches *branches, const struct opc_episodes *past,
                             uint64_t seed, int number)
{
    int horizon = branches->horizon, all = 0;
    /* Count the starts that leave `horizon` steps; without any, every step counts. */
    for (int e = 0; e < opc_episodes_count(past); e++)
        all += starts_in(past, e, horizon);
    if (all == 0) {
        horizon = 1;
        all = opc_episodes_steps(past);
    }
    for (int i = 0; i < branches->n; i++) {
        /* Draw one of all starts, then find its episode. */
        struct opc_rng rng = opc_probe_stream(seed, OPC_DRAW_START, number, i);
        int at = (int)opc_rng_below(&rng, (uint32_t)all), e = 0;
        while (at >= starts_in(past, e, horizon))
            at -= starts_in(past, e++, horizon);
        branches->episode[i] = e;
        branches->time[i] = at;
    }
}

/* ---- the two models -------------------------------------------------------------------------- */

int opc_models_make(const struct opc_probe *probe, const struct opc_predictor *model,
                    const struct opc_episodes *past, struct opc_models *out, struct opc_err *err)
{
    /* The run's own settings decide whether eq. 2 samples. */
    return opc_models_make_as(probe, model, past, !probe->config->set.opc.sample, out, err);
}

int opc_models_make_as(const struct opc_probe *probe, const struct opc_predictor *model,
                       const struct opc_episodes *past, bool mean, struct opc_models *out,
                       struct opc_err *err)
{
    /* The run's own settings decide whether eq. 5 corrects rewards. */
    const struct opc_opc_config *set = &probe->config->set.opc;
    struct opc_transition_options options = {OPC_SIZED(struct opc_transition_options),
                                             .name = "learned",
                                             .past = past,
                                             .model = model,
                                             .mean = mean,
                                             .reward_by_model = !set->correct_reward};
    struct opc_models models = {0};
    int code = opc_transition_create(&options, &models.learned, err);
    options.name = "corrected";
    if (!code)
        code = opc_transition_create(&options, &models.corrected, err);
    /* Fills the table of f(s_ref, a_ref) once for all rollouts. */
    if (!code)
        code = opc_transition_refresh(models.corrected, probe->pool, err);
    if (code)
        opc_models_free(&models);
    else
        *out = models;
    return code;
}

/* Accepts models of which only one was made. */
void opc_models_free(struct opc_models *models)
{
    opc_transition_destroy(models->learned);
    opc_transition_destroy(models->corrected);
}

/* ---- following ------------------------------------------------------------------------------- */

/* Context of the two callbacks of a rollout. */
struct follower {
    struct opc_actor actor;
    const struct opc_env *env;
};

/* The policy, with its noise scaled; a planner has none. */
static void act_by_actor(void *ctx, int n, const float *state, struct opc_rng *rng, float *action)
{
    const struct follower *f = ctx;
    if (!f->actor.agent->type->act_spread) {
        opc_agent_act(f->actor.agent, n, state, true, rng, action);
        return;
    }
    opc_agent_act_spread(f->actor.agent, n, state, (float)f->actor.spread, rng, action);
}

/* The environment's own rule for terminal states, applied to imagined ones. */
static void ended_in_env(void *ctx, int n, const float *s, const float *a, const float *next,
                         bool *out)
{
    const struct follower *f = ctx;
    opc_env_terminal(f->env, n, s, a, next, out);
}

/* With only_elite = k > 0, elite k - 1 predicts every step; with 0 elites are drawn. */
static int follow(const struct opc_probe *probe, const struct opc_transition *tr,
                  struct opc_actor actor, int number, int only_elite, struct opc_branches *branches,
                  struct opc_err *err)
{
    struct follower follower = {actor, probe->env};
    const struct opc_walk_plan plan = {
        .transition = tr,
        .act = act_by_actor,
        .act_ctx = &follower,
        .terminal = ended_in_env,
        .terminal_ctx = &follower,
        .refuse_not_finite = true, /* a study counts such rollouts; it need not stop for them */
        .elite_per_rollout = probe->config->set.opc.elite,
        .only_elite = only_elite,
        .horizon = branches->horizon,
        .pool = probe->pool,
    };
    for (int i = 0; i < branches->n; i++) {
        branches->rng[i] = opc_probe_stream(probe->seed, OPC_DRAW_ROLLOUT, number, i);
        branches->noise[i] = opc_probe_stream(probe->seed, OPC_DRAW_MODEL, number, i);
        /* An elite for the whole rollout is drawn in either case, and ignored if each step draws
         * its own: existing results were made this way. */
        if (!plan.elite_per_rollout && only_elite == 0)
            (void)opc_rng_below(&branches->rng[i], (uint32_t)tr->model->elites);
    }
    OPC_TRY(opc_branches_follow(branches, &plan, err));
    /* The rule for terminal states cannot report that a program which is asked has died. */
    return opc_env_failure(probe->env, err);
}

int opc_probe_follow(const struct opc_probe *probe, const struct opc_transition *tr,
                     struct opc_actor actor, int number, struct opc_branches *branches,
                     struct opc_err *err)
{
    return follow(probe, tr, actor, number, 0, branches, err);
}

int opc_probe_follow_elite(const struct opc_probe *probe, const struct opc_transition *tr,
                           struct opc_actor actor, int number, int elite,
                           struct opc_branches *branches, struct opc_err *err)
{
    return follow(probe, tr, actor, number, elite + 1, branches, err);
}

/* ---- what the environment does --------------------------------------------------------------- */

int opc_probe_truth(const struct opc_probe *probe, const struct opc_episodes *past, int number,
                    const struct opc_branches *branches, double *truth, int *ended,
                    struct opc_err *err)
{
    struct opc_rng *reset = opc_alloc((size_t)branches->n, sizeof *reset);
    if (!reset)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to play %d rollouts again",
                        branches->n);
    /* The same stream as in opc_probe_play brings the environment to the same start. */
    for (int i = 0; i < branches->n; i++)
        reset[i] = opc_probe_stream(probe->seed, OPC_DRAW_PLAY, number, branches->episode[i]);
    struct opc_retrace again = {
        .worlds = probe->worlds,
        .past = past,
        .n = branches->n,
        .horizon = branches->horizon,
        .episode = branches->episode,
        .time = branches->time,
        .reset = reset,
        .action = branches->action,
        .length = branches->length,
        .truth = truth,
        .ended = ended,
    };
    const int code = opc_retrace(&again, err);
    opc_free(reset);
    return code;
}
