/* SPDX-License-Identifier: MIT */
/* Rollouts of a run's models, kept whole: where they start, how the run's settings have them made,
 * and what the environment does in their place. Called by the analyses of this folder. What is
 * drawn comes from streams named by number and row, so both models see the same noise. */
#include "study/probe/probe.h"

#include "opc/mem.h"
#include "run/retrace.h"

/* ---- starts ---------------------------------------------------------------------------------- */

void opc_probe_from_starts(struct opc_branches *b, const struct opc_episodes *past)
{
    for (int i = 0; i < b->n; i++) {
        b->episode[i] = i % opc_episodes_count(past);
        b->time[i] = 0;
    }
}

/* Starts there are in an episode. */
static int starts_in(const struct opc_episodes *past, int episode, int horizon)
{
    const int n = opc_episodes_length(past, episode) - horizon + 1;
    return n > 0 ? n : 0;
}

void opc_probe_from_anywhere(struct opc_branches *b, const struct opc_episodes *past, uint64_t seed,
                             int number)
{
    int horizon = b->horizon, all = 0;
    for (int e = 0; e < opc_episodes_count(past); e++)
        all += starts_in(past, e, horizon);
    if (all == 0) {
        horizon = 1;
        all = opc_episodes_steps(past);
    }
    for (int i = 0; i < b->n; i++) {
        struct opc_rng rng = opc_probe_stream(seed, OPC_DRAW_START, number, i);
        int at = (int)opc_rng_below(&rng, (uint32_t)all), e = 0;
        while (at >= starts_in(past, e, horizon))
            at -= starts_in(past, e++, horizon);
        b->episode[i] = e;
        b->time[i] = at;
    }
}

/* ---- the two models -------------------------------------------------------------------------- */

int opc_models_make(const struct opc_probe *p, const struct opc_predictor *model,
                    const struct opc_episodes *past, struct opc_models *out, struct opc_err *err)
{
    const struct opc_opc_config *set = &p->config->set.opc;
    struct opc_transition_options options = {OPC_SIZED(struct opc_transition_options),
                                             .name = "learned",
                                             .past = past,
                                             .model = model,
                                             .mean = !set->sample,
                                             .reward_by_model = !set->correct_reward};
    struct opc_models m = {0};
    int code = opc_transition_create(&options, &m.learned, err);
    options.name = "corrected";
    if (!code)
        code = opc_transition_create(&options, &m.corrected, err);
    if (!code)
        code = opc_transition_refresh(m.corrected, p->pool, err);
    if (code)
        opc_models_free(&m);
    else
        *out = m;
    return code;
}

void opc_models_free(struct opc_models *m)
{
    opc_transition_destroy(m->learned);
    opc_transition_destroy(m->corrected);
}

/* ---- following ------------------------------------------------------------------------------- */

/* What a walk asks the run about. */
struct follower {
    struct opc_actor actor;
    const struct opc_env *env;
};

static void act_by_actor(void *ctx, int n, const float *state, struct opc_rng *rng, float *action)
{
    const struct follower *f = ctx;
    opc_agent_act_spread(f->actor.agent, n, state, (float)f->actor.spread, rng, action);
}

static void ended_in_env(void *ctx, int n, const float *s, const float *a, const float *next,
                         bool *out)
{
    const struct follower *f = ctx;
    opc_env_terminal(f->env, n, s, a, next, out);
}

int opc_probe_follow(const struct opc_probe *p, const struct opc_transition *tr,
                     struct opc_actor actor, int number, struct opc_branches *b,
                     struct opc_err *err)
{
    struct follower follower = {actor, p->env};
    const struct opc_walk_plan plan = {
        .transition = tr,
        .act = act_by_actor,
        .act_ctx = &follower,
        .terminal = ended_in_env,
        .terminal_ctx = &follower,
        .refuse_not_finite = true, /* a study counts such rollouts; it need not stop for them */
        .elite_per_rollout = p->config->set.opc.elite,
        .horizon = b->horizon,
        .pool = p->pool,
    };
    for (int i = 0; i < b->n; i++) {
        b->rng[i] = opc_probe_stream(p->seed, OPC_DRAW_ROLLOUT, number, i);
        b->noise[i] = opc_probe_stream(p->seed, OPC_DRAW_MODEL, number, i);
        /* An elite for the whole rollout is drawn in either case, and passed over where each step
         * draws its own: the figures in results were made so. */
        if (!plan.elite_per_rollout)
            (void)opc_rng_below(&b->rng[i], (uint32_t)tr->model->elites);
    }
    return opc_branches_follow(b, &plan, err);
}

/* ---- what the environment does --------------------------------------------------------------- */

int opc_probe_truth(const struct opc_probe *p, const struct opc_episodes *past, int number,
                    const struct opc_branches *b, double *truth, int *ended, struct opc_err *err)
{
    struct opc_rng *reset = opc_alloc((size_t)b->n, sizeof *reset);
    if (!reset)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to play %d rollouts again", b->n);
    for (int i = 0; i < b->n; i++)
        reset[i] = opc_probe_stream(p->seed, OPC_DRAW_PLAY, number, b->episode[i]);
    struct opc_retrace again = {
        .worlds = p->worlds,
        .past = past,
        .n = b->n,
        .horizon = b->horizon,
        .episode = b->episode,
        .time = b->time,
        .reset = reset,
        .action = b->action,
        .length = b->length,
        .truth = truth,
        .ended = ended,
    };
    const int code = opc_retrace(&again, err);
    opc_free(reset);
    return code;
}
