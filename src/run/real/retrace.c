/* SPDX-License-Identifier: MIT */
/* Plays recorded episodes again up to a step, and then goes on with other actions; for onpolicy.c
 * and the probes. An episode of a batch is a row of the retrace: it gets the recorded actions up to
 * the step the row starts from, and the row's own actions from there on.
 *
 * Invariant: the state at a row's start equals the recorded one in every bit, or the retrace fails;
 * a simulator that does not repeat itself cannot say what would have happened. */
#include "run/real/retrace.h"

#include "opc/mem.h"

#include <math.h>
#include <string.h>

static struct opc_rng retrace_stream(void *ctx, int row)
{
    return ((const struct opc_retrace *)ctx)->reset[row];
}

/* The action at step t of a row's episode: the recorded one up to its start, then its own. */
static const float *action_at(const struct opc_retrace *retrace, int row, int t, int act)
{
    const int h = t - retrace->time[row];
    if (h < 0)
        return opc_episodes_at(retrace->past, retrace->episode[row], t).action;
    return retrace->action + ((size_t)row * (size_t)retrace->horizon + (size_t)h) * (size_t)act;
}

static int retrace_act(void *ctx, struct opc_env_batch *batch, struct opc_err *err)
{
    struct opc_retrace *retrace = ctx;
    const size_t act = (size_t)batch->act;
    (void)err;
    for (int i = 0; i < batch->n; i++)
        if (batch->active[i]) {
            memcpy(batch->action + (size_t)i * act,
                   action_at(retrace, batch->first + i, batch->length[i], batch->act),
                   act * sizeof *batch->action);
            retrace->steps++;
        }
    return OPC_OK;
}

/* Recordings are floats, so the environment's doubles are compared after rounding. */
static int check_start(const struct opc_retrace *retrace, int row, const double *now, int obs,
                       struct opc_err *err)
{
    const int e = retrace->episode[row], t = retrace->time[row];
    const float *then = opc_episodes_at(retrace->past, e, t).state;
    for (int k = 0; k < obs; k++)
        if ((float)now[k] != then[k])
            return opc_fail(err, OPC_EENV,
                            "%s does not repeat itself: played again, episode %d is in another "
                            "state after %d steps (same program, same machine?)",
                            opc_many_env(retrace->worlds, 0)->spec, e + 1, t);
    return OPC_OK;
}

/* Notes a row's state, from its start on. A row ends after its own actions, or with the task. */
static int retrace_observe(void *ctx, const struct opc_env_batch *batch, int i, bool *more,
                           struct opc_err *err)
{
    struct opc_retrace *retrace = ctx;
    const int row = batch->first + i, at = batch->length[i] - retrace->time[row];
    const size_t obs = (size_t)batch->obs;
    const double *now = batch->state + (size_t)i * obs;
    const struct opc_outcome *outcome = &batch->outcome[i];
    if (at < 0)
        return OPC_OK;
    if (at == 0) {
        const int code = check_start(retrace, row, now, batch->obs, err);
        if (code)
            return code;
    }
    double *truth =
        retrace->truth + ((size_t)row * ((size_t)retrace->horizon + 1) + (size_t)at) * obs;
    for (size_t k = 0; k < obs; k++)
        truth[k] = (double)(float)now[k];
    /* An end of the task before the row's first action is not caused by the row. */
    retrace->ended[row] = at > 0 && outcome->terminated ? at : 0;
    *more = at < retrace->length[row] && !(at > 0 && (outcome->terminated || outcome->truncated));
    return OPC_OK;
}

int opc_retrace(struct opc_retrace *retrace, struct opc_err *err)
{
    const struct opc_env_player player = {
        .ctx = retrace, .stream = retrace_stream, .act = retrace_act, .observe = retrace_observe};
    struct opc_env_batch batch;
    int code = opc_env_batch_create(retrace->worlds, &batch, err);
    if (code)
        return code;
    /* NaN marks the steps that are never reached. */
    const size_t all = (size_t)retrace->n * ((size_t)retrace->horizon + 1) * (size_t)batch.obs;
    for (size_t k = 0; k < all; k++)
        retrace->truth[k] = (double)NAN;
    retrace->steps = 0;
    for (int first = 0; first < retrace->n && !code; first += batch.n)
        code = opc_env_batch_play(&batch, first, retrace->n, &player, err);
    opc_env_batch_free(&batch);
    return code;
}
