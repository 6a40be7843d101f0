/* SPDX-License-Identifier: MIT */
#include "study/probe/probe.h"

#include "base/file.h"
#include "opc/mem.h"
#include "opc/train.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { WORLDS = 64 };

/* ---- the run --------------------------------------------------------------------------------- */

int opc_probe_open(const char *dir, struct opc_pool *pool, uint64_t seed, struct opc_probe *out,
                   struct opc_err *err)
{
    struct opc_probe p = {.dir = dir, .pool = pool, .seed = seed};
    int code = opc_config_of_run(dir, &p.config, err);
    if (!code)
        code = opc_trained_snapshots(dir, &p.snapshot, &p.snapshots, err);
    if (!code)
        code = opc_many_open(p.config->set.env.name, WORLDS, pool, &p.worlds, err);
    if (!code && opc_many_env(p.worlds, 0)->type->machine)
        code = opc_fail(err, OPC_EUSER,
                        "%s is a machine, which cannot try what else would have happened; probes "
                        "need a simulation",
                        p.config->set.env.name);
    if (code) {
        opc_probe_close(&p);
        return opc_within(err, "%s", dir);
    }
    p.env = opc_many_env(p.worlds, 0);
    p.obs = p.env->obs;
    p.act = p.env->act;
    p.limit = p.env->steps > 0 ? p.env->steps : p.config->set.train.steps_per_epoch;
    *out = p;
    return OPC_OK;
}

void opc_probe_close(struct opc_probe *p)
{
    opc_many_close(p->worlds);
    opc_free(p->snapshot);
    opc_config_destroy(p->config);
    *p = (struct opc_probe){0};
}

int opc_probe_load(const struct opc_probe *p, int epoch, struct opc_trained *out,
                   struct opc_err *err)
{
    int which = OPC_TRAINED_NEWEST;
    if (epoch > 0 && p->snapshots > 0) {
        int i = p->snapshots - 1;
        while (i >= 0 && p->snapshot[i] > epoch)
            i--;
        if (i < 0)
            return opc_fail(err, OPC_EUSER, "%s has no snapshot up to epoch %d; the first is of %d",
                            p->dir, epoch, p->snapshot[0]);
        which = p->snapshot[i];
    }
    int code = opc_trained_load(p->dir, p->config, p->obs, p->act, which, p->pool, out, err);
    if (!code && epoch > 0 && p->snapshots == 0 && out->epoch > epoch) {
        code = opc_fail(err, OPC_EUSER,
                        "%s has no snapshots, only its checkpoint of epoch %d; train with "
                        "record.snapshots=1 to have those before it",
                        p->dir, out->epoch);
        opc_trained_free(out);
    }
    if (!code && !out->agent->type->act_spread) {
        code = opc_fail(err, OPC_EUSER, "%s: the deviation of this agent's policy cannot be scaled",
                        p->dir);
        opc_trained_free(out);
    }
    return code;
}

int opc_probe_needs_model(const struct opc_probe *p, struct opc_err *err)
{
    if (opc_transition_of(&p->config->set)->needs_model)
        return OPC_OK;
    return opc_fail(err, OPC_EUSER,
                    "%s has no model to probe: it was trained with opc.transition = replay",
                    p->dir);
}

/* ---- entries of the state -------------------------------------------------------------------- */

enum kind { PLAIN, ANGLE, COSINE, SINE };

static enum kind kind_of(const struct opc_probe *p, int entry)
{
    for (int i = 0; i < p->env->n_angles; i++) {
        const struct opc_env_angle *a = &p->env->angles[i];
        if (a->at == entry)
            return a->sine < 0 ? ANGLE : COSINE;
        if (a->sine == entry)
            return SINE;
    }
    return PLAIN;
}

void opc_probe_entry_name(const struct opc_probe *p, int entry, char out[32])
{
    static const char *const WORD[] = {"", "angle ", "cosine ", "sine "};
    snprintf(out, 32, "%so%d", WORD[kind_of(p, entry)], entry);
}

bool opc_probe_is_cosine(const struct opc_probe *p, int entry)
{
    return kind_of(p, entry) == COSINE;
}

static bool first_of(const struct opc_probe *p, enum kind kind, int *out)
{
    for (int k = 0; k < p->obs; k++)
        if (kind_of(p, k) == kind) {
            *out = k;
            return true;
        }
    return false;
}

int opc_probe_entry(const struct opc_probe *p, const char *name, int *out, struct opc_err *err)
{
    int k;
    if (strcmp(name, "auto") == 0) {
        if (!first_of(p, COSINE, out) && !first_of(p, ANGLE, out))
            *out = 0;
        return OPC_OK;
    }
    if ((strcmp(name, "cos") == 0 && first_of(p, COSINE, out)) ||
        (strcmp(name, "sin") == 0 && first_of(p, SINE, out)) ||
        (strcmp(name, "angle") == 0 && first_of(p, ANGLE, out)))
        return OPC_OK;
    if (opc_parse_int(*name == 'o' ? name + 1 : name, &k) && k >= 0 && k < p->obs) {
        *out = k;
        return OPC_OK;
    }
    return opc_fail(err, OPC_EUSER,
                    "%s has no state entry '%s'; there are o0 to o%d, and 'opc env show' tells "
                    "which of them are angles",
                    p->config->set.env.name, name, p->obs - 1);
}

/* ---- what is random -------------------------------------------------------------------------- */

struct opc_rng opc_probe_stream(uint64_t seed, enum opc_draw draw, int number, int index)
{
    const uint32_t purpose = ((uint32_t)draw << 16) + (uint32_t)number;
    return opc_rng_stream(seed, OPC_USE_PROBE, purpose, (uint32_t)index);
}

/* ---- on the environment ---------------------------------------------------------------------- */

/* Episodes side by side, each kept until it can be appended in its turn. */
struct hall {
    int n;
    size_t obs, act, limit;
    bool *active;            /* [n] */
    struct opc_rng *rng;     /* [n] first the reset's, then the actions' */
    double *now, *scaled;    /* [n][obs] [n][act] */
    float *s, *a;            /* [n][obs] [n][act] */
    struct opc_outcome *out; /* [n] */
    double *state, *reward;  /* [n][limit + 1][obs] [n][limit] */
    float *action;           /* [n][limit][act] */
    int *length;             /* [n] */
    bool *terminal;          /* [n] */
};

static void hall_free(struct hall *h)
{
    opc_free(h->active);
    opc_free(h->rng);
    opc_free(h->now);
    opc_free(h->scaled);
    opc_free(h->s);
    opc_free(h->a);
    opc_free(h->out);
    opc_free(h->state);
    opc_free(h->reward);
    opc_free(h->action);
    opc_free(h->length);
    opc_free(h->terminal);
}

static int hall_make(const struct opc_probe *p, struct hall *h, struct opc_err *err)
{
    *h = (struct hall){.n = opc_many_count(p->worlds),
                       .obs = (size_t)p->obs,
                       .act = (size_t)p->act,
                       .limit = (size_t)p->limit};
    const size_t n = (size_t)h->n;
    h->active = opc_alloc(n, sizeof *h->active);
    h->rng = opc_alloc(n, sizeof *h->rng);
    h->now = opc_alloc(n * h->obs, sizeof *h->now);
    h->scaled = opc_alloc(n * h->act, sizeof *h->scaled);
    h->s = opc_alloc(n * h->obs, sizeof *h->s);
    h->a = opc_alloc(n * h->act, sizeof *h->a);
    h->out = opc_alloc(n, sizeof *h->out);
    h->state = opc_alloc(n * (h->limit + 1), h->obs * sizeof *h->state);
    h->reward = opc_alloc(n * h->limit, sizeof *h->reward);
    h->action = opc_alloc(n * h->limit, h->act * sizeof *h->action);
    h->length = opc_alloc(n, sizeof *h->length);
    h->terminal = opc_alloc(n, sizeof *h->terminal);
    if (!h->active || !h->rng || !h->now || !h->scaled || !h->s || !h->a || !h->out || !h->state ||
        !h->reward || !h->action || !h->length || !h->terminal) {
        hall_free(h);
        return opc_fail(err, OPC_ENOMEM, "no room to play %d episodes of %d steps at once", h->n,
                        p->limit);
    }
    for (int i = 0; i < h->n; i++)
        h->out[i].obs = h->now + (size_t)i * h->obs;
    return OPC_OK;
}

/* s as the recording will have it: rounded to float, -0 as 0. */
static void look(struct hall *h)
{
    for (size_t k = 0; k < (size_t)h->n * h->obs; k++)
        h->s[k] = (float)h->now[k] + 0.0f;
}

static void keep_state(struct hall *h, int i)
{
    memcpy(h->state + ((size_t)i * (h->limit + 1) + (size_t)h->length[i]) * h->obs,
           h->now + (size_t)i * h->obs, h->obs * sizeof *h->state);
}

/* Episodes first .. first+left-1. */
static int play(const struct opc_probe *p, struct opc_actor actor, int number, struct hall *h,
                int first, int left, struct opc_err *err)
{
    for (int i = 0; i < h->n; i++) {
        h->active[i] = i < left;
        h->rng[i] = opc_probe_stream(p->seed, OPC_DRAW_PLAY, number, first + i);
        h->length[i] = 0;
        h->terminal[i] = false;
    }
    int code = opc_many_reset(p->worlds, h->active, h->rng, h->now, err);
    for (int i = 0; i < left && !code; i++)
        keep_state(h, i);
    while (left > 0 && !code) {
        look(h);
        opc_agent_act_spread(actor.agent, h->n, h->s, (float)actor.spread, h->rng, h->a);
        for (int i = 0; i < h->n; i++)
            opc_env_scale(p->env, h->a + (size_t)i * h->act, h->scaled + (size_t)i * h->act);
        code = opc_many_step(p->worlds, h->active, h->scaled, h->out, err);
        for (int i = 0; i < h->n && !code; i++) {
            if (!h->active[i])
                continue;
            const size_t at = (size_t)i * h->limit + (size_t)h->length[i];
            memcpy(h->action + at * h->act, h->a + (size_t)i * h->act, h->act * sizeof *h->action);
            h->reward[at] = h->out[i].reward;
            h->length[i]++;
            keep_state(h, i);
            if (h->out[i].terminated || h->out[i].truncated || h->length[i] == p->limit) {
                h->terminal[i] = h->out[i].terminated;
                h->active[i] = false;
                left--;
            }
        }
    }
    return code;
}

static int append(const struct hall *h, int i, struct opc_episodes *past, struct opc_err *err)
{
    const double *s = h->state + (size_t)i * (h->limit + 1) * h->obs;
    int code = opc_episodes_begin(past, s, err);
    for (int t = 0; t < h->length[i] && !code; t++) {
        const size_t at = (size_t)i * h->limit + (size_t)t;
        s += h->obs;
        code = opc_episodes_append(past, h->action + at * h->act, h->reward[at], s,
                                   h->terminal[i] && t + 1 == h->length[i], err);
    }
    if (!code)
        opc_episodes_close(past);
    return code;
}

int opc_probe_play(const struct opc_probe *p, struct opc_actor actor, int number, int n,
                   struct opc_episodes **out, struct opc_err *err)
{
    struct hall h;
    struct opc_episodes *past = NULL;
    if ((long)n * p->limit > INT_MAX)
        return opc_fail(err, OPC_EUSER, "%d episodes of %d steps are too many; ask for fewer", n,
                        p->limit);
    int code = hall_make(p, &h, err);
    if (code)
        return code;
    code = opc_episodes_create(p->obs, p->act, n * p->limit, n, &past, err);
    for (int first = 0; first < n && !code; first += h.n) {
        const int here = n - first < h.n ? n - first : h.n;
        code = play(p, actor, number, &h, first, here, err);
        for (int i = 0; i < here && !code; i++)
            code = append(&h, i, past, err);
    }
    hall_free(&h);
    if (code) {
        opc_episodes_destroy(past);
        return opc_within(err, "playing on %s", p->config->set.env.name);
    }
    *out = past;
    return OPC_OK;
}

void opc_probe_returns(const struct opc_episodes *past, double *returns)
{
    for (int b = 0; b < opc_episodes_count(past); b++) {
        returns[b] = 0;
        for (int t = 0; t < opc_episodes_length(past, b); t++)
            returns[b] += (double)opc_episodes_at(past, b, t).reward;
    }
}
