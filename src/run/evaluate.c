/* SPDX-License-Identifier: MIT */
#include "run/evaluate.h"

#include "opc/mem.h"

#include <math.h>
#include <string.h>

/* n episodes side by side; one that has ended waits for the others. */
struct hall {
    int n, obs, act;
    bool *active;            /* [n] */
    struct opc_rng *rng;     /* [n] first the reset's, then the actions' */
    double *state, *action;  /* [n][obs] [n][act] in the task's own units */
    float *s, *a;            /* [n][obs] [n][act] */
    struct opc_outcome *out; /* [n] */
    double *total;           /* [n] */
    int *length;             /* [n] */
};

static void hall_free(struct hall *h)
{
    opc_free(h->active);
    opc_free(h->rng);
    opc_free(h->state);
    opc_free(h->action);
    opc_free(h->s);
    opc_free(h->a);
    opc_free(h->out);
    opc_free(h->total);
    opc_free(h->length);
}

static int hall_make(struct hall *h, int n, int obs, int act, struct opc_err *err)
{
    const size_t rows = (size_t)n;
    *h = (struct hall){.n = n, .obs = obs, .act = act};
    h->active = opc_alloc(rows, sizeof *h->active);
    h->rng = opc_alloc(rows, sizeof *h->rng);
    h->state = opc_alloc(rows * (size_t)obs, sizeof *h->state);
    h->action = opc_alloc(rows * (size_t)act, sizeof *h->action);
    h->s = opc_alloc(rows * (size_t)obs, sizeof *h->s);
    h->a = opc_alloc(rows * (size_t)act, sizeof *h->a);
    h->out = opc_alloc(rows, sizeof *h->out);
    h->total = opc_alloc(rows, sizeof *h->total);
    h->length = opc_alloc(rows, sizeof *h->length);
    if (!h->active || !h->rng || !h->state || !h->action || !h->s || !h->a || !h->out ||
        !h->total || !h->length) {
        hall_free(h);
        return opc_fail(err, OPC_ENOMEM, "no room to play %d episodes at once", n);
    }
    for (int i = 0; i < n; i++)
        h->out[i].obs = h->state + (size_t)i * (size_t)obs;
    return OPC_OK;
}

/* Episodes first .. first+h->n-1. */
static int play(const struct opc_eval_plan *plan, struct hall *h, int first, struct opc_err *err)
{
    const struct opc_env *env = opc_many_env(plan->worlds, 0);
    const int here = opc_many_count(plan->worlds);
    int left = plan->episodes - first < here ? plan->episodes - first : here;
    for (int i = 0; i < here; i++) {
        h->active[i] = i < left;
        h->rng[i] = opc_rng_stream(plan->seed, OPC_USE_EVAL, plan->epoch, (uint32_t)(first + i));
        h->total[i] = h->length[i] = 0;
    }
    int code = opc_many_reset(plan->worlds, h->active, h->rng, h->state, err);
    for (int t = 0; t < plan->limit && left > 0 && !code; t++) {
        /* Also for those that have ended: their rows cost little and keep the others in place. */
        for (int k = 0; k < here * h->obs; k++)
            h->s[k] = (float)h->state[k];
        opc_agent_act(plan->agent, here, h->s, plan->explore, plan->explore ? h->rng : NULL, h->a);
        for (int i = 0; i < here; i++)
            opc_env_scale(env, h->a + i * h->act, h->action + i * h->act);
        code = plan->stop && plan->stop(plan->stop_ctx)
                   ? opc_fail(err, OPC_ESTOPPED, "stopped")
                   : opc_many_step(plan->worlds, h->active, h->action, h->out, err);
        for (int i = 0; i < here && !code; i++) {
            if (!h->active[i])
                continue;
            h->total[i] += h->out[i].reward;
            h->length[i]++;
            if (h->out[i].terminated || h->out[i].truncated || t + 1 == plan->limit) {
                opc_many_rest(plan->worlds, i);
                h->active[i] = false;
                left--;
            }
        }
    }
    return code;
}

static void sum_up(int n, const double *returns, double steps, struct opc_evaluation *out)
{
    *out = (struct opc_evaluation){.episodes = n, .least = returns[0], .most = returns[0]};
    for (int i = 0; i < n; i++) {
        out->mean += returns[i];
        out->least = fmin(out->least, returns[i]);
        out->most = fmax(out->most, returns[i]);
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
    const struct opc_env *env = opc_many_env(plan->worlds, 0);
    const int here = opc_many_count(plan->worlds);
    struct hall h;
    int code = hall_make(&h, here, env->obs, env->act, err);
    if (code)
        return code;
    double *all = opc_alloc((size_t)plan->episodes, sizeof *all), steps = 0;
    if (!all)
        code = opc_fail(err, OPC_ENOMEM, "no room for the returns of %d episodes", plan->episodes);
    for (int first = 0; first < plan->episodes && !code; first += here) {
        code = play(plan, &h, first, err);
        for (int i = 0; i < here && first + i < plan->episodes && !code; i++) {
            all[first + i] = h.total[i];
            steps += h.length[i];
        }
    }
    if (!code) {
        sum_up(plan->episodes, all, steps, out);
        if (returns)
            memcpy(returns, all, (size_t)plan->episodes * sizeof *all);
    }
    opc_free(all);
    hall_free(&h);
    return code ? opc_within(err, "evaluation") : OPC_OK;
}
