/* SPDX-License-Identifier: MIT */
/* An episode of a batch is a row of the retrace: it is given the recorded actions up to the step
 * the row starts from, and the row's own actions from there on. */
#include "run/retrace.h"

#include "opc/mem.h"

#include <math.h>
#include <string.h>

static struct opc_rng retrace_stream(void *ctx, int row)
{
    return ((const struct opc_retrace *)ctx)->reset[row];
}

/* At step t of its episode: recorded up to the row's start, then its own. */
static const float *action_at(const struct opc_retrace *r, int row, int t, int act)
{
    const int h = t - r->time[row];
    if (h < 0)
        return opc_episodes_at(r->past, r->episode[row], t).action;
    return r->action + ((size_t)row * (size_t)r->horizon + (size_t)h) * (size_t)act;
}

static int retrace_act(void *ctx, struct opc_env_batch *b, struct opc_err *err)
{
    struct opc_retrace *r = ctx;
    const size_t act = (size_t)b->act;
    (void)err;
    for (int i = 0; i < b->n; i++)
        if (b->active[i]) {
            memcpy(b->action + (size_t)i * act, action_at(r, b->first + i, b->length[i], b->act),
                   act * sizeof *b->action);
            r->steps++;
        }
    return OPC_OK;
}

static int check_start(const struct opc_retrace *r, int row, const double *now, int obs,
                       struct opc_err *err)
{
    const int e = r->episode[row], t = r->time[row];
    const float *then = opc_episodes_at(r->past, e, t).state;
    for (int k = 0; k < obs; k++)
        if ((float)now[k] != then[k])
            return opc_fail(err, OPC_EENV,
                            "%s does not repeat itself: played again, episode %d is in another "
                            "state after %d steps (same program, same machine?)",
                            opc_many_env(r->worlds, 0)->spec, e + 1, t);
    return OPC_OK;
}

/* Notes where a row is, from its start on. It ends after its own actions, or with the task. */
static int retrace_observe(void *ctx, const struct opc_env_batch *b, int i, bool *more,
                           struct opc_err *err)
{
    struct opc_retrace *r = ctx;
    const int row = b->first + i, at = b->length[i] - r->time[row];
    const size_t obs = (size_t)b->obs;
    const double *now = b->state + (size_t)i * obs;
    const struct opc_outcome *outcome = &b->outcome[i];
    if (at < 0)
        return OPC_OK;
    if (at == 0) {
        const int code = check_start(r, row, now, b->obs, err);
        if (code)
            return code;
    }
    double *truth = r->truth + ((size_t)row * ((size_t)r->horizon + 1) + (size_t)at) * obs;
    for (size_t k = 0; k < obs; k++)
        truth[k] = (double)(float)now[k];
    /* That the task ended before the row's first action is nothing the row did. */
    r->ended[row] = at > 0 && outcome->terminated ? at : 0;
    *more = at < r->length[row] && !(at > 0 && (outcome->terminated || outcome->truncated));
    return OPC_OK;
}

int opc_retrace(struct opc_retrace *r, struct opc_err *err)
{
    const struct opc_env_player player = {
        .ctx = r, .stream = retrace_stream, .act = retrace_act, .observe = retrace_observe};
    struct opc_env_batch batch;
    int code = opc_env_batch_create(r->worlds, &batch, err);
    if (code)
        return code;
    const size_t all = (size_t)r->n * ((size_t)r->horizon + 1) * (size_t)batch.obs;
    for (size_t k = 0; k < all; k++)
        r->truth[k] = (double)NAN;
    r->steps = 0;
    for (int first = 0; first < r->n && !code; first += batch.n)
        code = opc_env_batch_play(&batch, first, r->n, &player, err);
    opc_env_batch_free(&batch);
    return code;
}
