/* SPDX-License-Identifier: MIT */
/* The update of norm-optimal ILC by eq. 5. The imagined return is quadratic in the actions:
 * rollouts that change one entry each give its gradient and curvature, and the best actions
 * solve a linear system. Called by ilc_run.c, to check that both ways agree.
 *
 * Invariant: no row ends before the others, so that row 1 + k is always the one that changes
 * entry k. */
#include "study/ilc/ilc_opc.h"

#include "num/solve/dense.h"
#include "opc/branches.h"
#include "opc/mem.h"

/* ---- f(s, a) = A s + B a as a predictor ------------------------------------------------------ */

struct linear {
    struct opc_predictor base;
    const double *A, *B;
};

static void linear_predict(const struct opc_predictor *model, int rows, const float *s,
                           const float *a, const int *elite, struct opc_rng *rng, float *y,
                           struct opc_pool *pool)
{
    (void)elite, (void)rng, (void)pool;
    const struct linear *f = (const struct linear *)model;
    const int n = model->obs, m = model->act;
    for (int r = 0; r < rows; r++, s += n, a += m, y += n + 1) {
        for (int i = 0; i < n; i++) {
            double sum = 0.0;
            for (int j = 0; j < n; j++)
                sum += f->A[i * n + j] * (double)s[j];
            for (int j = 0; j < m; j++)
                sum += f->B[i * m + j] * (double)a[j];
            y[i] = (float)sum;
        }
        y[n] = 0.0f; /* no reward is predicted: M and W give the return */
    }
}

static const struct opc_predictor_type linear_type = {.name = "linear", .predict = linear_predict};

/* ---- the recording, and rollouts along it ---------------------------------------------------- */

/* Stores the trial as the only episode. action: scratch, [m]. */
static int record_trial(struct opc_episodes *past, int n, int m, int T, const double *s,
                        const double *u, float *action, struct opc_err *err)
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

/* The step of the recording that the rollouts have reached. */
struct replay {
    const struct opc_episodes *past;
    int t;
};

/* Row 0 repeats the recording; row 1 + k changes entry k of u by 1. No row ends before the
 * others, so the index of a row identifies it. */
static void change_one_entry(void *ctx, int n, const float *state, struct opc_rng *rng,
                             float *action)
{
    (void)state, (void)rng;
    struct replay *replay = ctx;
    const int act = opc_episodes_act(replay->past), first = 1 + replay->t * act;
    const struct opc_step ref = opc_episodes_at(replay->past, 0, replay->t++);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < act; k++)
            action[i * act + k] = ref.action[k] + (i == first + k ? 1.0f : 0.0f);
}

/* All rollouts start at the beginning of the recording and have its length. They do not depend
 * on their random streams: there is one elite to draw, and eq. 5 has no noise. */
static int imagine_changes(struct opc_branches *branches, const struct opc_transition *tr,
                           struct opc_err *err)
{
    struct replay replay = {tr->past, 0};
    const struct opc_walk_plan plan = {.transition = tr,
                                       .act = change_one_entry,
                                       .act_ctx = &replay,
                                       .horizon = branches->horizon};
    return opc_branches_follow(branches, &plan, err);
}

/* ---- the best actions ------------------------------------------------------------------------ */

/* Maximises the imagined return. s[1 + inputs][states] are the states of the rollouts. */
static int choose_actions(const float *s, int states, int inputs, const double *u,
                          const double *s_ref, const double *M, const double *W, double *next,
                          struct opc_err *err)
{
    const size_t N = (size_t)states, U = (size_t)inputs;
    double *H = opc_alloc(U * U, sizeof *H), *effect = opc_alloc(U * N, sizeof *effect);
    double *step = opc_alloc(U, sizeof *step);
    int code = OPC_OK;
    if (!H || !effect || !step) {
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for the returns of %d rollouts",
                        1 + inputs);
    } else {
        /* The effect of entry k on all states, exact because eq. 5 is linear here. */
        for (size_t k = 0; k < U; k++)
            for (size_t i = 0; i < N; i++)
                effect[k * N + i] = (double)s[(k + 1) * N + i] - (double)s[i];
        /* Gradient and lower half of the curvature, H = E M E^T + W. */
        for (size_t k = 0; k < U; k++) {
            for (size_t i = 0; i < N; i++)
                step[k] += effect[k * N + i] * M[i] * (s_ref[i] - (double)s[i]);
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
    struct opc_branches branches = {0};
    struct opc_transition *tr = NULL;
    struct opc_episodes *past = NULL;
    int code = opc_branches_make(1 + T * m, T, n, m, &branches, err);
    if (!code)
        code = opc_episodes_create(n, m, T, 1, &past, err);
    if (!code)
        code = record_trial(past, n, m, T, s, u, branches.action, err);
    const struct opc_transition_options options = {OPC_SIZED(struct opc_transition_options),
                                                   .name = "corrected", .past = past,
                                                   .model = &model.base, .steps = T};
    if (!code)
        code = opc_transition_create(&options, &tr, err);
    if (!code)
        code = opc_transition_refresh(tr, NULL, err);
    if (!code)
        code = imagine_changes(&branches, tr, err);
    if (!code)
        code = choose_actions(branches.state, (T + 1) * n, T * m, u, s_ref, M, W, next, err);
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
    opc_branches_free(&branches);
    return code;
}
