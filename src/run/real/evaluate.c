/* SPDX-License-Identifier: MIT */
/* The policy plays one batch of episodes after the other, on environments that training does not
 * use. Called by train.c after each epoch, and by trained.c for `opc evaluate`.
 *
 * Invariant: the number of environments does not change a result. An episode's random numbers come
 * from the stream of its number, and its rewards are added in the order of its steps, whichever
 * batch it is in. */
#include "run/real/evaluate.h"

#include "opc/mem.h"
#include "run/real/episode_states.h"

#include <math.h>
#include <string.h>

struct evaluation {
    const struct opc_eval_plan *plan;
    double *returns; /* [episodes] */
    double steps;    /* of all episodes */
    struct opc_episode_states states;
};

/* The start of an episode, and its exploration if there is any. */
static struct opc_rng evaluation_stream(void *ctx, int episode)
{
    const struct opc_eval_plan *plan = ((const struct evaluation *)ctx)->plan;
    return opc_rng_stream(plan->seed, OPC_USE_EVAL, plan->epoch, (uint32_t)episode);
}

/* Without exploration the policy is its mean, and needs no random numbers. */
static int evaluation_act(void *ctx, struct opc_env_batch *b, struct opc_err *err)
{
    const struct evaluation *evaluation = ctx;
    const struct opc_eval_plan *plan = evaluation->plan;
    if (evaluation->states.row)
        opc_episode_states_act(&evaluation->states, plan->agent, b, plan->explore, plan->seed,
                               plan->epoch);
    else
        opc_agent_act(plan->agent, b->n, b->input, plan->explore, plan->explore ? b->rng : NULL,
                      b->action);
    return plan->stop && plan->stop(plan->stop_ctx) ? opc_fail(err, OPC_ESTOPPED, "stopped")
                                                    : OPC_OK;
}

/* After a step of one episode: adds its reward, and says whether it goes on. */
static int evaluation_observe(void *ctx, const struct opc_env_batch *b, int row, bool *more,
                              struct opc_err *err)
{
    struct evaluation *evaluation = ctx;
    const struct opc_outcome *outcome = &b->outcome[row];
    (void)err;
    evaluation->returns[b->first + row] += outcome->reward;
    *more = !outcome->terminated && !outcome->truncated && b->length[row] < evaluation->plan->limit;
    if (!*more)
        evaluation->steps += b->length[row];
    return OPC_OK;
}

/* Mean, extremes and standard deviation (of the n episodes, not an estimate for more) of
 * returns. */
static void summarize(int n, const double *returns, double steps, struct opc_evaluation *out)
{
    *out = (struct opc_evaluation){.episodes = n, .min = returns[0], .max = returns[0]};
    for (int i = 0; i < n; i++) {
        out->mean += returns[i];
        out->min = fmin(out->min, returns[i]);
        out->max = fmax(out->max, returns[i]);
    }
    out->mean /= n;
    for (int i = 0; i < n; i++)
        out->deviation += (returns[i] - out->mean) * (returns[i] - out->mean) / n;
    out->deviation = sqrt(out->deviation);
    out->length = steps / n;
}

int opc_evaluate(const struct opc_eval_plan *plan, struct opc_evaluation *out, double *returns,
                 struct opc_err *err)
{
    const int n = plan->episodes;
    struct evaluation evaluation = {.plan = plan};
    const struct opc_env_player player = {.ctx = &evaluation,
                                          .stream = evaluation_stream,
                                          .act = evaluation_act,
                                          .observe = evaluation_observe};
    struct opc_env_batch batch;
    int code = opc_env_batch_create(plan->worlds, &batch, err);
    if (code)
        return code;
    evaluation.returns = opc_alloc((size_t)n, sizeof *evaluation.returns);
    if (!evaluation.returns)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for the returns of %d episodes", n);
    if (!code)
        code = opc_episode_states_create(plan->agent, batch.n, &evaluation.states, err);
    for (int first = 0; first < n && !code; first += batch.n)
        code = opc_env_batch_play(&batch, first, n, &player, err);
    if (!code) {
        summarize(n, evaluation.returns, evaluation.steps, out);
        if (returns)
            memcpy(returns, evaluation.returns, (size_t)n * sizeof *returns);
    }
    opc_episode_states_free(&evaluation.states);
    opc_free(evaluation.returns);
    opc_env_batch_free(&batch);
    return code ? opc_within(err, "evaluation") : OPC_OK;
}
