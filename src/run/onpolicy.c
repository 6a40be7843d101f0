/* SPDX-License-Identifier: MIT */
#include "run/onpolicy.h"

#include "data/episodes_in.h"
#include "opc/mem.h"
#include "opc/transition.h"
#include "run/retrace.h"

#include <math.h>
#include <string.h>

enum { STEPS = 2000, STARTS = 32, LONGEST = 10 };

struct sample {
    struct opc_episodes *some; /* copies of the newest episodes, so that eq. 5 needs no table of
                                * all the past */
    int first;                 /* which of the past the first of them is */
    double *scale;             /* [obs] 1 / standard deviation */
    int obs, act;
    /* the starts */
    int starts;
    int *episode, *time;   /* [starts] */
    struct opc_rng *reset; /* [starts] what the episode was reset from */
    /* what the model makes of them, and the environment */
    float *path;         /* [starts][LONGEST + 1][obs] */
    float *actions;      /* [starts][LONGEST][act] */
    int *length, *ended; /* [starts] */
    double *truth;       /* [starts][LONGEST + 1][obs] */
    /* rows that still go on */
    int n;
    int *slot, *at, *beside, *elite; /* [n] start, recorded step and episode, member */
    struct opc_rng *rng, *noise;     /* [n] of the policy and elites; of what eq. 2 draws */
    float *state, *next, *action, *reward, *work;
};

static void sample_free(struct sample *x)
{
    opc_episodes_destroy(x->some);
    opc_free(x->scale);
    opc_free(x->episode);
    opc_free(x->time);
    opc_free(x->reset);
    opc_free(x->path);
    opc_free(x->actions);
    opc_free(x->length);
    opc_free(x->ended);
    opc_free(x->truth);
    opc_free(x->slot);
    opc_free(x->at);
    opc_free(x->beside);
    opc_free(x->elite);
    opc_free(x->rng);
    opc_free(x->noise);
    opc_free(x->state);
    opc_free(x->next);
    opc_free(x->action);
    opc_free(x->reward);
    opc_free(x->work);
}

static int sample_make(struct sample *x, struct opc_err *err)
{
    const size_t n = STARTS, s = (size_t)x->obs, a = (size_t)x->act;
    x->scale = opc_alloc(s, sizeof *x->scale);
    x->episode = opc_alloc(n, sizeof *x->episode);
    x->time = opc_alloc(n, sizeof *x->time);
    x->reset = opc_alloc(n, sizeof *x->reset);
    x->path = opc_alloc(n * (LONGEST + 1), s * sizeof *x->path);
    x->actions = opc_alloc(n * LONGEST, a * sizeof *x->actions);
    x->length = opc_alloc(n, sizeof *x->length);
    x->ended = opc_alloc(n, sizeof *x->ended);
    x->truth = opc_alloc(n * (LONGEST + 1), s * sizeof *x->truth);
    x->slot = opc_alloc(n, sizeof *x->slot);
    x->at = opc_alloc(n, sizeof *x->at);
    x->beside = opc_alloc(n, sizeof *x->beside);
    x->elite = opc_alloc(n, sizeof *x->elite);
    x->rng = opc_alloc(n, sizeof *x->rng);
    x->noise = opc_alloc(n, sizeof *x->noise);
    x->state = opc_alloc(n * s, sizeof *x->state);
    x->next = opc_alloc(n * s, sizeof *x->next);
    x->action = opc_alloc(n * a, sizeof *x->action);
    x->reward = opc_alloc(n, sizeof *x->reward);
    x->work = opc_alloc(n * (s + 1), sizeof *x->work);
    if (!x->scale || !x->episode || !x->time || !x->reset || !x->path || !x->actions ||
        !x->length || !x->ended || !x->truth || !x->slot || !x->at || !x->beside || !x->elite ||
        !x->rng || !x->noise || !x->state || !x->next || !x->action || !x->reward || !x->work)
        return opc_fail(err, OPC_ENOMEM, "no room to measure the model's errors");
    return OPC_OK;
}

/* Whole episodes from the newest on, as many as fit into STEPS, but at least one. */
static int copy_newest(struct sample *x, const struct opc_onpolicy_plan *plan, struct opc_err *err)
{
    const int count = opc_episodes_count(plan->past), obs = opc_episodes_obs(plan->past);
    int from = count - 1, steps = opc_episodes_length(plan->past, from);
    while (from > plan->newest && steps + opc_episodes_length(plan->past, from - 1) <= STEPS)
        steps += opc_episodes_length(plan->past, --from);
    x->first = from;
    double *wide = opc_alloc((size_t)obs, sizeof *wide);
    int code = wide ? opc_episodes_create(obs, opc_episodes_act(plan->past), steps, count - from,
                                          &x->some, err)
                    : opc_fail(err, OPC_ENOMEM, "no room to measure the model's errors");
    for (int b = from; b < count && !code; b++) {
        for (int t = 0; t < opc_episodes_length(plan->past, b) && !code; t++) {
            const struct opc_step step = opc_episodes_at(plan->past, b, t);
            for (int k = 0; k < obs; k++)
                wide[k] = (double)step.state[k];
            if (t == 0)
                code = opc_episodes_begin(x->some, wide, err);
            for (int k = 0; k < obs; k++)
                wide[k] = (double)step.next[k];
            if (!code)
                code = opc_episodes_append(x->some, step.action, (double)step.reward, wide,
                                           step.terminal, err);
        }
        if (!code)
            opc_episodes_close(x->some);
    }
    opc_free(wide);
    return code;
}

static void measure_spread(struct sample *x, const struct opc_episodes *past)
{
    const struct opc_records all = opc_episodes_records(past);
    for (int k = 0; k < opc_episodes_obs(past); k++) {
        double sum = 0, squares = 0;
        const double about = (double)all.at[k]; /* near the mean, so that little cancels */
        for (size_t i = 0; i < all.n; i++) {
            const double d = (double)all.at[i * all.stride + (size_t)k] - about;
            sum += d;
            squares += d * d;
        }
        const double mean = sum / (double)all.n;
        const double variance = squares / (double)all.n - mean * mean;
        x->scale[k] = variance > 1e-16 ? 1 / sqrt(variance) : 1;
    }
}

/* ---- where they start ------------------------------------------------------------------------ */

/* Evenly spread over the first `window` steps of the episodes; returns what it costs to play that
 * with both models' actions. */
static long spread_starts(struct sample *x, int window)
{
    const int episodes = opc_episodes_count(x->some);
    long all = 0, cost = 0;
    for (int b = 0; b < episodes; b++) {
        const int length = opc_episodes_length(x->some, b);
        all += length < window ? length : window;
    }
    x->starts = all < STARTS ? (int)all : STARTS;
    long before = 0; /* steps within the window of earlier episodes */
    for (int i = 0, b = 0; i < x->starts; i++) {
        const long step = (long)i * all / x->starts;
        for (;; b++) {
            const int length = opc_episodes_length(x->some, b);
            const int here = length < window ? length : window;
            if (step < before + here)
                break;
            before += here;
        }
        x->episode[i] = b;
        x->time[i] = (int)(step - before);
        cost += 2 * (x->time[i] + LONGEST);
    }
    return cost;
}

static void choose_starts(struct sample *x, const struct opc_onpolicy_plan *plan)
{
    int window = 1;
    for (int b = 0; b < opc_episodes_count(x->some); b++)
        if (window < opc_episodes_length(x->some, b))
            window = opc_episodes_length(x->some, b);
    while (spread_starts(x, window) > OPC_ONPOLICY_STEPS && window > 1)
        window = window * 7 / 8;
    for (int i = 0; i < x->starts; i++)
        x->reset[i] =
            opc_rng_stream(plan->seed, OPC_USE_RESET, 0, (uint32_t)(x->first + x->episode[i]));
}

/* ---- along the model ------------------------------------------------------------------------- */

static void set_out(struct sample *x, const struct opc_onpolicy_plan *plan)
{
    const size_t obs = (size_t)x->obs;
    x->n = x->starts;
    for (int i = 0; i < x->n; i++) {
        const float *s = opc_episodes_at(x->some, x->episode[i], x->time[i]).state;
        x->slot[i] = i;
        x->beside[i] = x->episode[i];
        x->at[i] = x->time[i];
        x->length[i] = 0;
        x->rng[i] = opc_rng_stream(plan->seed, OPC_USE_STUDY, plan->epoch, (uint32_t)i);
        x->noise[i] = opc_rng_stream(plan->seed, OPC_USE_STUDY, plan->epoch, STARTS + (uint32_t)i);
        memcpy(x->state + (size_t)i * obs, s, obs * sizeof *s);
    }
}

/* Keeps what step h brought. Row i goes on to the recorded step behind its own; rows whose episode
 * ends there leave. */
static void go_on(struct sample *x, int h)
{
    const size_t obs = (size_t)x->obs, act = (size_t)x->act;
    int kept = 0;
    for (int i = 0; i < x->n; i++) {
        const int slot = x->slot[i];
        const float *next = x->next + (size_t)i * obs;
        memcpy(x->actions + ((size_t)slot * LONGEST + (size_t)h) * act, x->action + (size_t)i * act,
               act * sizeof(float));
        memcpy(x->path + ((size_t)slot * (LONGEST + 1) + (size_t)h + 1) * obs, next,
               obs * sizeof *next);
        x->length[slot] = h + 1;
        if (x->at[i] + 1 == opc_episodes_length(x->some, x->beside[i]))
            continue;
        x->slot[kept] = slot;
        x->beside[kept] = x->beside[i];
        x->at[kept] = x->at[i] + 1;
        x->elite[kept] = x->elite[i];
        x->rng[kept] = x->rng[i];
        x->noise[kept] = x->noise[i];
        memcpy(x->state + (size_t)kept * obs, next, obs * sizeof *next);
        kept++;
    }
    x->n = kept;
}

static void walk(struct sample *x, const struct opc_onpolicy_plan *plan,
                 const struct opc_transition *tr)
{
    for (int h = 0; h < LONGEST && x->n > 0; h++) {
        for (int i = 0; i < x->n && (h == 0 || !plan->elite_per_rollout); i++)
            x->elite[i] = (int)opc_rng_below(&x->rng[i], (uint32_t)plan->model->elites);
        opc_agent_act(plan->agent, x->n, x->state, true, x->rng, x->action);
        struct opc_walk w = {
            .n = x->n,
            .episode = x->beside,
            .time = x->at,
            .elite = x->elite,
            .state = x->state,
            .action = x->action,
            .next = x->next,
            .reward = x->reward,
            .rng = x->noise,
            .work = x->work,
        };
        opc_transition_step(tr, &w, plan->pool);
        go_on(x, h);
    }
}

/* ---- against the environment ----------------------------------------------------------------- */

static int play(struct sample *x, const struct opc_onpolicy_plan *plan, long *steps,
                struct opc_err *err)
{
    struct opc_retrace again = {
        .worlds = plan->worlds,
        .past = x->some,
        .n = x->starts,
        .horizon = LONGEST,
        .episode = x->episode,
        .time = x->time,
        .reset = x->reset,
        .action = x->actions,
        .length = x->length,
        .truth = x->truth,
        .ended = x->ended,
    };
    const int code = opc_retrace(&again, err);
    *steps += again.steps;
    return code;
}

static void compare(const struct sample *x, double error[OPC_ERRORS])
{
    for (int k = 0; k < OPC_ERRORS; k++) {
        const int h = OPC_ERROR_STEPS[k];
        double sum = 0;
        int n = 0;
        for (int i = 0; i < x->starts; i++) {
            const size_t at = ((size_t)i * (LONGEST + 1) + (size_t)h) * (size_t)x->obs;
            if (x->length[i] < h || isnan(x->truth[at]))
                continue;
            n++;
            for (int j = 0; j < x->obs; j++) {
                const double e =
                    ((double)x->path[at + (size_t)j] - x->truth[at + (size_t)j]) * x->scale[j];
                sum += e * e;
            }
        }
        if (n > 0)
            error[k] = sqrt(sum / n / x->obs);
    }
}

static int measure(struct sample *x, const struct opc_onpolicy_plan *plan, const char *name,
                   double error[OPC_ERRORS], long *steps, struct opc_err *err)
{
    struct opc_transition tr;
    int code =
        opc_transition_make(name, x->some, plan->model, opc_episodes_steps(x->some), &tr, err);
    if (code)
        return code;
    tr.sample = plan->sample;
    code = opc_transition_refresh(&tr, plan->pool, err);
    if (!code) {
        set_out(x, plan);
        walk(x, plan, &tr);
        code = play(x, plan, steps, err);
    }
    if (!code)
        compare(x, error);
    opc_transition_free(&tr);
    return code;
}

static void unknown(struct opc_onpolicy *out)
{
    for (int k = 0; k < OPC_ERRORS; k++)
        out->learned[k] = out->corrected[k] = (double)NAN;
}

int opc_onpolicy_errors(const struct opc_onpolicy_plan *plan, struct opc_onpolicy *out,
                        struct opc_err *err)
{
    struct sample x = {.obs = opc_episodes_obs(plan->past), .act = opc_episodes_act(plan->past)};
    out->steps = 0;
    unknown(out);
    if (opc_episodes_count(plan->past) == 0)
        return OPC_OK;
    int code = sample_make(&x, err);
    if (!code)
        code = copy_newest(&x, plan, err);
    if (!code) {
        measure_spread(&x, plan->past);
        choose_starts(&x, plan);
        code = measure(&x, plan, "learned", out->learned, &out->steps, err);
    }
    if (!code)
        code = measure(&x, plan, "corrected", out->corrected, &out->steps, err);
    sample_free(&x);
    /* That a number is missing must not end a run; a model that diverged ends it elsewhere. */
    if (code == OPC_EENV || code == OPC_EDIVERGED) {
        unknown(out);
        code = OPC_OK;
    }
    return code;
}
