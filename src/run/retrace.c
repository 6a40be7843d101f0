/* SPDX-License-Identifier: MIT */
#include "run/retrace.h"

#include "opc/mem.h"

#include <math.h>

/* Rows first .. first+n-1, each in a world of its own. */
struct hall {
    int n, obs, act;
    bool *active;            /* [n] */
    struct opc_rng *rng;     /* [n] */
    double *now, *scaled;    /* [n][obs] [n][act] */
    struct opc_outcome *out; /* [n] */
};

static void hall_free(struct hall *h)
{
    opc_free(h->active);
    opc_free(h->rng);
    opc_free(h->now);
    opc_free(h->scaled);
    opc_free(h->out);
}

static int hall_make(const struct opc_retrace *r, struct hall *h, struct opc_err *err)
{
    *h = (struct hall){.n = opc_many_count(r->worlds),
                       .obs = opc_episodes_obs(r->past),
                       .act = opc_episodes_act(r->past)};
    const size_t n = (size_t)h->n;
    h->active = opc_alloc(n, sizeof *h->active);
    h->rng = opc_alloc(n, sizeof *h->rng);
    h->now = opc_alloc(n * (size_t)h->obs, sizeof *h->now);
    h->scaled = opc_alloc(n * (size_t)h->act, sizeof *h->scaled);
    h->out = opc_alloc(n, sizeof *h->out);
    if (!h->active || !h->rng || !h->now || !h->scaled || !h->out) {
        hall_free(h);
        return opc_fail(err, OPC_ENOMEM, "no room to play %d episodes again", h->n);
    }
    for (int i = 0; i < h->n; i++)
        h->out[i].obs = h->now + (size_t)i * (size_t)h->obs;
    return OPC_OK;
}

/* At step t of its episode: recorded up to the row's start, then its own. */
static const float *action_at(const struct opc_retrace *r, int row, int t, int act)
{
    const int h = t - r->time[row];
    if (h < 0)
        return opc_episodes_at(r->past, r->episode[row], t).action;
    return r->action + ((size_t)row * (size_t)r->horizon + (size_t)h) * (size_t)act;
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

/* A row at step t of its episode: notes where it is. False: it has come to its end. */
static bool note(const struct opc_retrace *r, const struct hall *h, int i, int row, int t)
{
    const int at = t - r->time[row];
    const double *now = h->now + (size_t)i * (size_t)h->obs;
    double *to = r->truth + (size_t)row * ((size_t)r->horizon + 1) * (size_t)h->obs;
    if (at < 0)
        return true;
    for (int k = 0; k < h->obs; k++)
        to[at * h->obs + k] = (double)(float)now[k];
    r->ended[row] = at > 0 && h->out[i].terminated ? at : 0;
    return at < r->length[row] && !(at > 0 && (h->out[i].terminated || h->out[i].truncated));
}

static int play(struct opc_retrace *r, struct hall *h, int first, struct opc_err *err)
{
    const struct opc_env *env = opc_many_env(r->worlds, 0);
    int left = r->n - first < h->n ? r->n - first : h->n;
    for (int i = 0; i < h->n; i++) {
        h->active[i] = i < left;
        if (h->active[i])
            h->rng[i] = r->reset[first + i];
    }
    int code = opc_many_reset(r->worlds, h->active, h->rng, h->now, err);
    for (int t = 0; left > 0 && !code; t++) {
        for (int i = 0; i < h->n && !code; i++) {
            const int row = first + i;
            if (!h->active[i])
                continue;
            if (t == r->time[row])
                code = check_start(r, row, h->now + (size_t)i * (size_t)h->obs, h->obs, err);
            if (note(r, h, i, row, t))
                opc_env_scale(env, action_at(r, row, t, h->act),
                              h->scaled + (size_t)i * (size_t)h->act);
            else {
                h->active[i] = false;
                left--;
            }
        }
        if (left > 0 && !code)
            code = opc_many_step(r->worlds, h->active, h->scaled, h->out, err);
        r->steps += left;
    }
    return code;
}

int opc_retrace(struct opc_retrace *r, struct opc_err *err)
{
    struct hall h;
    int code = hall_make(r, &h, err);
    if (code)
        return code;
    const size_t all = (size_t)r->n * ((size_t)r->horizon + 1) * (size_t)h.obs;
    for (size_t k = 0; k < all; k++)
        r->truth[k] = (double)NAN;
    r->steps = 0;
    for (int first = 0; first < r->n && !code; first += h.n)
        code = play(r, &h, first, err);
    hall_free(&h);
    return code;
}
