/* SPDX-License-Identifier: MIT */
#include "study/ilc/ilc_opc.h"

#include "num/dense.h"
#include "opc/mem.h"
#include "opc/transition.h"

#include <string.h>

/* ---- f(s, a) = A s + B a as a predictor ------------------------------------------------------ */

struct linear {
    struct opc_predictor base;
    const double *A, *B;
};

static void predict(const struct opc_predictor *p, int rows, const float *s, const float *a,
                    const int *elite, struct opc_rng *rng, float *y, struct opc_pool *pool)
{
    (void)elite, (void)rng, (void)pool;
    const struct linear *f = (const struct linear *)p;
    const int n = p->obs, m = p->act;
    for (int r = 0; r < rows; r++, s += n, a += m, y += n + 1) {
        for (int i = 0; i < n; i++) {
            double sum = 0.0;
            for (int j = 0; j < n; j++)
                sum += f->A[i * n + j] * (double)s[j];
            for (int j = 0; j < m; j++)
                sum += f->B[i * m + j] * (double)a[j];
            y[i] = (float)sum;
        }
        y[n] = 0.0f; /* what a state is worth is known: M and W say it */
    }
}

static const struct opc_predictor_type linear_type = {.name = "linear", .predict = predict};

/* ---- the recording, and rollouts beside it --------------------------------------------------- */

static int record(struct opc_episodes *past, int n, int m, int T, const double *s, const double *u,
                  float *action, struct opc_err *err)
{
    int code = opc_episodes_begin(past, s, err);
    for (int t = 0; t < T && !code; t++) {
        for (int j = 0; j < m; j++)
            action[j] = (float)u[t * m + j];
        code = opc_episodes_append(past, action, 0.0, s + (t + 1) * n, false, err);
    }
    if (!code)
        opc_episodes_close(past);
    return code;
}

struct rollouts {
    int n; /* 1 + T m */
    float *state, *action, *next, *reward, *work;
    int *episode, *time, *elite;
    double *s; /* [n][(T+1) obs] where they went */
};

static bool make_room(struct rollouts *r, int obs, int act, int T)
{
    const size_t n = (size_t)r->n, wide = (size_t)obs, steps = (size_t)T + 1;
    r->state = opc_alloc(n * wide, sizeof(float));
    r->next = opc_alloc(n * wide, sizeof(float));
    r->work = opc_alloc(n * (wide + 1), sizeof(float));
    r->action = opc_alloc(n * (size_t)act, sizeof(float));
    r->reward = opc_alloc(n, sizeof(float));
    r->episode = opc_alloc(n, sizeof(int));
    r->time = opc_alloc(n, sizeof(int));
    r->elite = opc_alloc(n, sizeof(int));
    r->s = opc_alloc(n * steps * wide, sizeof(double));
    return r->state && r->next && r->work && r->action && r->reward && r->episode && r->time &&
           r->elite && r->s;
}

static void release(struct rollouts *r)
{
    void *all[] = {r->state, r->next,    r->work, r->action, r->reward,
                   r->time,  r->episode, r->s,    r->elite};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        opc_free(all[i]);
}

/* Row 0 does what was recorded; row 1 + k changes entry k of u by 1. */
static void imagine(struct rollouts *r, const struct opc_transition *tr, int T)
{
    const int obs = tr->obs, act = tr->act;
    const size_t apart = (size_t)((T + 1) * obs);
    struct opc_walk walk = {.n = r->n,
                            .episode = r->episode,
                            .time = r->time,
                            .elite = r->elite,
                            .state = r->state,
                            .action = r->action,
                            .next = r->next,
                            .reward = r->reward,
                            .work = r->work};
    for (int t = 0; t <= T; t++) {
        for (int i = 0; i < r->n; i++) {
            if (t == 0)
                memcpy(r->next + i * obs, opc_episodes_at(tr->past, 0, 0).state,
                       (size_t)obs * sizeof(float));
            for (int k = 0; k < obs; k++)
                r->s[(size_t)i * apart + (size_t)(t * obs + k)] = (double)r->next[i * obs + k];
        }
        if (t == T)
            return;
        memcpy(r->state, r->next, (size_t)(r->n * obs) * sizeof(float));
        const struct opc_step ref = opc_episodes_at(tr->past, 0, t);
        for (int i = 0; i < r->n; i++) {
            r->time[i] = t;
            for (int k = 0; k < act; k++)
                r->action[i * act + k] = ref.action[k] + (i == 1 + t * act + k ? 1.0f : 0.0f);
        }
        opc_transition_step(tr, &walk, NULL);
    }
}

/* ---- the best actions ------------------------------------------------------------------------ */

static int improve(const struct rollouts *r, int states, int inputs, const double *u,
                   const double *s_ref, const double *M, const double *W, double *next,
                   struct opc_err *err)
{
    const size_t N = (size_t)states, U = (size_t)inputs;
    double *H = opc_alloc(U * U, sizeof *H), *effect = opc_alloc(U * N, sizeof *effect);
    double *step = opc_alloc(U, sizeof *step);
    int code = OPC_OK;
    if (!H || !effect || !step) {
        code = opc_fail(err, OPC_ENOMEM, "no room for the returns of %d rollouts", r->n);
    } else {
        for (size_t k = 0; k < U; k++)
            for (size_t i = 0; i < N; i++)
                effect[k * N + i] = r->s[(k + 1) * N + i] - r->s[i];
        for (size_t k = 0; k < U; k++) {
            for (size_t i = 0; i < N; i++)
                step[k] += effect[k * N + i] * M[i] * (s_ref[i] - r->s[i]);
            for (size_t j = 0; j <= k; j++)
                for (size_t i = 0; i < N; i++)
                    H[k * U + j] += effect[k * N + i] * M[i] * effect[j * N + i];
            H[k * U + k] += W[k];
        }
        if (!opc_chol_factor(inputs, H))
            code = opc_fail(err, OPC_EUSER,
                            "the imagined return has no single best choice of "
                            "actions; raise weight_action");
    }
    if (!code) {
        opc_chol_solve(inputs, H, 1, step);
        for (size_t k = 0; k < U; k++)
            next[k] = u[k] + step[k];
    }
    opc_free(H);
    opc_free(effect);
    opc_free(step);
    return code;
}

int opc_ilc_by_opc(int n, int m, int T, const double *A, const double *B, const double *s,
                   const double *u, const double *s_ref, const double *M, const double *W,
                   double *next, struct opc_err *err)
{
    const struct linear model = {
        {.type = &linear_type, .obs = n, .act = m, .members = 1, .elites = 1}, A, B};
    struct rollouts r = {.n = 1 + T * m};
    struct opc_transition tr = {0};
    struct opc_episodes *past = NULL;
    int code = OPC_OK;
    if (!make_room(&r, n, m, T))
        code = opc_fail(err, OPC_ENOMEM, "no room for %d rollouts of %d steps", r.n, T);
    if (!code)
        code = opc_episodes_create(n, m, T, 1, &past, err);
    if (!code)
        code = record(past, n, m, T, s, u, r.action, err);
    if (!code)
        code = opc_transition_make("corrected", past, &model.base, T, &tr, err);
    if (!code)
        code = opc_transition_refresh(&tr, NULL, err);
    if (!code) {
        imagine(&r, &tr, T);
        code = improve(&r, (T + 1) * n, T * m, u, s_ref, M, W, next, err);
    }
    opc_transition_free(&tr);
    opc_episodes_destroy(past);
    release(&r);
    return code;
}
