/* SPDX-License-Identifier: MIT */
/* Rollouts that are kept whole, to be compared step by step. Algorithm 2 itself (opc/rollout.h)
 * draws its starts and hands out experience; here the starts are given and the paths are wanted. */
#include "study/probe/probe.h"

#include "opc/mem.h"
#include "run/retrace.h"

#include <math.h>
#include <string.h>

/* ---- memory ---------------------------------------------------------------------------------- */

int opc_branches_make(int n, int horizon, int obs, int act, struct opc_branches *out,
                      struct opc_err *err)
{
    const size_t rows = (size_t)n, steps = rows * (size_t)horizon;
    struct opc_branches b = {.n = n, .horizon = horizon, .obs = obs, .act = act};
    b.episode = opc_alloc(rows, sizeof *b.episode);
    b.time = opc_alloc(rows, sizeof *b.time);
    b.state = opc_alloc(steps + rows, (size_t)obs * sizeof *b.state);
    b.action = opc_alloc(steps, (size_t)act * sizeof *b.action);
    b.reward = opc_alloc(steps, sizeof *b.reward);
    b.length = opc_alloc(rows, sizeof *b.length);
    b.terminal = opc_alloc(rows, sizeof *b.terminal);
    b.lost = opc_alloc(rows, sizeof *b.lost);
    if (!b.episode || !b.time || !b.state || !b.action || !b.reward || !b.length || !b.terminal ||
        !b.lost) {
        opc_branches_free(&b);
        return opc_fail(err, OPC_ENOMEM, "no room for %d rollouts of %d steps; ask for fewer", n,
                        horizon);
    }
    *out = b;
    return OPC_OK;
}

void opc_branches_free(struct opc_branches *b)
{
    opc_free(b->episode);
    opc_free(b->time);
    opc_free(b->state);
    opc_free(b->action);
    opc_free(b->reward);
    opc_free(b->length);
    opc_free(b->terminal);
    opc_free(b->lost);
    *b = (struct opc_branches){0};
}

/* ---- starts ---------------------------------------------------------------------------------- */

void opc_branches_from_starts(struct opc_branches *b, const struct opc_episodes *past)
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

void opc_branches_from_anywhere(struct opc_branches *b, const struct opc_episodes *past,
                                uint64_t seed, int number)
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
    const int steps = opc_episodes_steps(past);
    struct opc_models m = {0};
    int code = opc_transition_make("learned", past, model, steps, &m.learned, err);
    if (!code)
        code = opc_transition_make("corrected", past, model, steps, &m.corrected, err);
    if (!code) {
        m.learned.sample = set->sample;
        m.corrected.correct_reward = set->correct_reward;
        code = opc_transition_refresh(&m.corrected, p->pool, err);
    }
    if (code)
        opc_models_free(&m);
    else
        *out = m;
    return code;
}

void opc_models_free(struct opc_models *m)
{
    opc_transition_free(&m->learned);
    opc_transition_free(&m->corrected);
}

/* ---- walking --------------------------------------------------------------------------------- */

/* The rows that still go on, side by side. */
struct rows {
    int n;
    int *slot, *episode, *time, *elite;           /* [n] */
    struct opc_rng *rng, *noise;                  /* [n] of elites and actions; of the model */
    float *state, *next, *action, *reward, *work; /* [n][obs] [n][obs] [n][act] [n] [n][obs + 1] */
    bool *terminal;                               /* [n] */
};

static void rows_free(struct rows *r)
{
    opc_free(r->slot);
    opc_free(r->episode);
    opc_free(r->time);
    opc_free(r->elite);
    opc_free(r->rng);
    opc_free(r->noise);
    opc_free(r->state);
    opc_free(r->next);
    opc_free(r->action);
    opc_free(r->reward);
    opc_free(r->work);
    opc_free(r->terminal);
}

static int rows_make(const struct opc_branches *b, struct rows *r, struct opc_err *err)
{
    const size_t n = (size_t)b->n, obs = (size_t)b->obs, act = (size_t)b->act;
    *r = (struct rows){.n = b->n};
    r->slot = opc_alloc(n, sizeof *r->slot);
    r->episode = opc_alloc(n, sizeof *r->episode);
    r->time = opc_alloc(n, sizeof *r->time);
    r->elite = opc_alloc(n, sizeof *r->elite);
    r->rng = opc_alloc(n, sizeof *r->rng);
    r->noise = opc_alloc(n, sizeof *r->noise);
    r->state = opc_alloc(n * obs, sizeof *r->state);
    r->next = opc_alloc(n * obs, sizeof *r->next);
    r->action = opc_alloc(n * act, sizeof *r->action);
    r->reward = opc_alloc(n, sizeof *r->reward);
    r->work = opc_alloc(n * (obs + 1), sizeof *r->work);
    r->terminal = opc_alloc(n, sizeof *r->terminal);
    if (!r->slot || !r->episode || !r->time || !r->elite || !r->rng || !r->noise || !r->state ||
        !r->next || !r->action || !r->reward || !r->work || !r->terminal) {
        rows_free(r);
        return opc_fail(err, OPC_ENOMEM, "no room for %d rollouts side by side", b->n);
    }
    return OPC_OK;
}

static int draw_elite(const struct opc_transition *tr, struct opc_rng *rng)
{
    return (int)opc_rng_below(rng, (uint32_t)tr->model->elites);
}

static float *state_at(const struct opc_branches *b, int i, int h)
{
    return b->state + ((size_t)i * ((size_t)b->horizon + 1) + (size_t)h) * (size_t)b->obs;
}

static void start(const struct opc_probe *p, const struct opc_transition *tr, int number,
                  struct opc_branches *b, struct rows *r)
{
    for (int i = 0; i < b->n; i++) {
        const float *s = opc_episodes_at(tr->past, b->episode[i], b->time[i]).state;
        r->slot[i] = i;
        r->episode[i] = b->episode[i];
        r->time[i] = b->time[i];
        r->rng[i] = opc_probe_stream(p->seed, OPC_DRAW_ROLLOUT, number, i);
        r->noise[i] = opc_probe_stream(p->seed, OPC_DRAW_MODEL, number, i);
        r->elite[i] = draw_elite(tr, &r->rng[i]);
        memcpy(r->state + (size_t)i * (size_t)b->obs, s, (size_t)b->obs * sizeof *s);
        memcpy(state_at(b, i, 0), s, (size_t)b->obs * sizeof *s);
        b->length[i] = 0;
        b->terminal[i] = b->lost[i] = false;
    }
}

static bool is_finite(const float *x, int n)
{
    for (int k = 0; k < n; k++)
        if (!isfinite(x[k]))
            return false;
    return true;
}

/* Keeps what step h brought; rows that end leave, the others keep their order. */
static void keep(const struct opc_transition *tr, int h, struct opc_branches *b, struct rows *r)
{
    const size_t obs = (size_t)b->obs, act = (size_t)b->act;
    int kept = 0;
    for (int i = 0; i < r->n; i++) {
        const int slot = r->slot[i];
        const size_t at = (size_t)slot * (size_t)b->horizon + (size_t)h;
        const float *next = r->next + (size_t)i * obs;
        b->lost[slot] = !is_finite(next, b->obs) || !isfinite(r->reward[i]);
        if (b->lost[slot])
            continue;
        memcpy(b->action + at * act, r->action + (size_t)i * act, act * sizeof(float));
        b->reward[at] = r->reward[i];
        memcpy(state_at(b, slot, h + 1), next, obs * sizeof *next);
        b->length[slot] = h + 1;
        b->terminal[slot] = r->terminal[i];
        const bool alone = tr->type->needs_reference &&
                           r->time[i] + 1 == opc_episodes_length(tr->past, r->episode[i]);
        if (r->terminal[i] || alone)
            continue;
        r->slot[kept] = slot;
        r->episode[kept] = r->episode[i];
        r->time[kept] = r->time[i] + 1;
        r->elite[kept] = r->elite[i];
        r->rng[kept] = r->rng[i];
        r->noise[kept] = r->noise[i];
        memcpy(r->state + (size_t)kept * obs, next, obs * sizeof *next);
        kept++;
    }
    r->n = kept;
}

int opc_branches_walk(const struct opc_probe *p, const struct opc_transition *tr,
                      struct opc_actor actor, int number, struct opc_branches *b,
                      struct opc_err *err)
{
    struct rows r;
    const int code = rows_make(b, &r, err);
    if (code)
        return code;
    start(p, tr, number, b, &r);
    for (int h = 0; h < b->horizon && r.n > 0; h++) {
        for (int i = 0; i < r.n && !p->config->set.opc.elite; i++)
            r.elite[i] = draw_elite(tr, &r.rng[i]);
        opc_agent_act_spread(actor.agent, r.n, r.state, (float)actor.spread, r.rng, r.action);
        struct opc_walk walk = {
            .n = r.n,
            .episode = r.episode,
            .time = r.time,
            .elite = r.elite,
            .state = r.state,
            .action = r.action,
            .next = r.next,
            .reward = r.reward,
            .rng = r.noise,
            .work = r.work,
        };
        opc_transition_step(tr, &walk, p->pool);
        opc_env_terminal(p->env, r.n, r.state, r.action, r.next, r.terminal);
        keep(tr, h, b, &r);
    }
    rows_free(&r);
    return OPC_OK;
}

void opc_branches_returns(const struct opc_branches *b, double *returns)
{
    for (int i = 0; i < b->n; i++) {
        returns[i] = 0;
        for (int h = 0; h < b->length[i]; h++)
            returns[i] += (double)b->reward[(size_t)i * (size_t)b->horizon + (size_t)h];
    }
}

double opc_branches_at(const struct opc_branches *b, int i, int h, int k)
{
    return h <= b->length[i] ? (double)state_at(b, i, h)[k] : (double)NAN;
}

/* ---- what the environment does --------------------------------------------------------------- */

int opc_branches_truth(const struct opc_probe *p, const struct opc_episodes *past, int number,
                       const struct opc_branches *b, double *truth, int *ended, struct opc_err *err)
{
    struct opc_rng *reset = opc_alloc((size_t)b->n, sizeof *reset);
    if (!reset)
        return opc_fail(err, OPC_ENOMEM, "no room to play %d rollouts again", b->n);
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
