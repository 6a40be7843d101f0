/* SPDX-License-Identifier: MIT */
#include "run/onpolicy.h"

#include "data/episodes_in.h"
#include "opc/mem.h"
#include "opc/transition.h"

#include <math.h>
#include <string.h>

enum { STEPS = 2000, STARTS = 500, LONGEST = 10 };

struct sample {
    struct opc_episodes *some; /* copies of the newest episodes, so that eq. 5 needs no table of
                                * all the past */
    double *scale;             /* [obs] 1 / standard deviation */
    int n;
    int *episode, *time, *elite; /* [n] */
    struct opc_rng *rng;         /* [n] */
    float *state, *next, *action, *reward, *work;
};

static void sample_free(struct sample *x)
{
    opc_episodes_destroy(x->some);
    opc_free(x->scale);
    opc_free(x->episode);
    opc_free(x->time);
    opc_free(x->elite);
    opc_free(x->rng);
    opc_free(x->state);
    opc_free(x->next);
    opc_free(x->action);
    opc_free(x->reward);
    opc_free(x->work);
}

static int sample_make(struct sample *x, int obs, int act, struct opc_err *err)
{
    const size_t n = STARTS, s = (size_t)obs, a = (size_t)act;
    x->scale = opc_alloc(s, sizeof *x->scale);
    x->episode = opc_alloc(n, sizeof *x->episode);
    x->time = opc_alloc(n, sizeof *x->time);
    x->elite = opc_alloc(n, sizeof *x->elite);
    x->rng = opc_alloc(n, sizeof *x->rng);
    x->state = opc_alloc(n * s, sizeof *x->state);
    x->next = opc_alloc(n * s, sizeof *x->next);
    x->action = opc_alloc(n * a, sizeof *x->action);
    x->reward = opc_alloc(n, sizeof *x->reward);
    x->work = opc_alloc(n * (s + 1), sizeof *x->work);
    if (!x->scale || !x->episode || !x->time || !x->elite || !x->rng || !x->state || !x->next ||
        !x->action || !x->reward || !x->work)
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

static void set_starts(struct sample *x, const struct opc_onpolicy_plan *plan)
{
    const int steps = opc_episodes_steps(x->some), obs = opc_episodes_obs(x->some);
    x->n = steps < STARTS ? steps : STARTS;
    for (int i = 0; i < x->n; i++) {
        /* evenly spread */
        opc_episodes_find(x->some, (int)((int64_t)i * steps / x->n), &x->episode[i], &x->time[i]);
        x->rng[i] = opc_rng_stream(plan->seed, OPC_USE_STUDY, plan->epoch, (uint32_t)i);
        const struct opc_step step = opc_episodes_at(x->some, x->episode[i], x->time[i]);
        memcpy(x->state + (size_t)i * (size_t)obs, step.state, (size_t)obs * sizeof(float));
    }
}

static double squared_error(const struct sample *x, int i, int obs)
{
    const struct opc_step step = opc_episodes_at(x->some, x->episode[i], x->time[i]);
    double sum = 0;
    for (int k = 0; k < obs; k++) {
        const double e =
            ((double)x->next[(size_t)i * (size_t)obs + (size_t)k] - (double)step.next[k]) *
            x->scale[k];
        sum += e * e;
    }
    return sum / obs;
}

/* Row i goes on to the recorded step behind its own; rows whose episode ends there leave. */
static void go_on(struct sample *x, int obs)
{
    int kept = 0;
    for (int i = 0; i < x->n; i++) {
        if (x->time[i] + 1 == opc_episodes_length(x->some, x->episode[i]))
            continue;
        x->episode[kept] = x->episode[i];
        x->time[kept] = x->time[i] + 1;
        x->rng[kept] = x->rng[i];
        memmove(x->state + (size_t)kept * (size_t)obs, x->next + (size_t)i * (size_t)obs,
                (size_t)obs * sizeof(float));
        kept++;
    }
    x->n = kept;
}

static void walk(struct sample *x, const struct opc_onpolicy_plan *plan,
                 const struct opc_transition *tr, double error[OPC_ERRORS])
{
    const int obs = tr->obs;
    for (int h = 1, k = 0; h <= LONGEST && x->n > 0; h++) {
        for (int i = 0; i < x->n; i++)
            x->elite[i] = (int)opc_rng_below(&x->rng[i], (uint32_t)plan->model->elites);
        opc_agent_act(plan->agent, x->n, x->state, true, x->rng, x->action);
        struct opc_walk w = {
            .n = x->n,
            .episode = x->episode,
            .time = x->time,
            .elite = x->elite,
            .state = x->state,
            .action = x->action,
            .next = x->next,
            .reward = x->reward,
            .rng = x->rng,
            .work = x->work,
        };
        tr->step(tr, &w, plan->pool);
        if (h == OPC_ERROR_STEPS[k]) {
            double sum = 0;
            for (int i = 0; i < x->n; i++)
                sum += squared_error(x, i, obs);
            error[k++] = sqrt(sum / x->n);
        }
        go_on(x, obs);
    }
}

static int measure(struct sample *x, const struct opc_onpolicy_plan *plan, const char *name,
                   double error[OPC_ERRORS], struct opc_err *err)
{
    struct opc_transition tr;
    int code =
        opc_transition_make(name, x->some, plan->model, opc_episodes_steps(x->some), &tr, err);
    if (code)
        return code;
    tr.sample = plan->sample;
    code = opc_transition_refresh(&tr, plan->pool, err);
    if (!code) {
        set_starts(x, plan);
        walk(x, plan, &tr, error);
    }
    opc_transition_free(&tr);
    return code;
}

int opc_onpolicy_errors(const struct opc_onpolicy_plan *plan, double learned[OPC_ERRORS],
                        double corrected[OPC_ERRORS], struct opc_err *err)
{
    struct sample x = {0};
    for (int k = 0; k < OPC_ERRORS; k++)
        learned[k] = corrected[k] = (double)NAN;
    if (opc_episodes_count(plan->past) == 0)
        return OPC_OK;
    int code = sample_make(&x, opc_episodes_obs(plan->past), opc_episodes_act(plan->past), err);
    if (!code)
        code = copy_newest(&x, plan, err);
    if (!code) {
        measure_spread(&x, plan->past);
        code = measure(&x, plan, "learned", learned, err);
    }
    if (!code)
        code = measure(&x, plan, "corrected", corrected, err);
    sample_free(&x);
    return code;
}
