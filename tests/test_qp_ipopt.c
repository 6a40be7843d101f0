/* SPDX-License-Identifier: MIT */
/* study/qp against Ipopt, an interior point method by other people: the same problems, the same
 * answers. */
#include "study/ilc/ilc.h"

#include "qp_random.h"

#include <IpStdCInterface.h>

static const double NO_BOUND = 2e19; /* Ipopt's infinity, and beyond */

static Bool objective(Index n, Number *x, Bool fresh, Number *value, UserDataPtr user)
{
    (void)fresh;
    const struct opc_qp *qp = user;
    *value = opc_dense_dot(n, qp->q, x);
    for (int i = 0; i < n; i++)
        *value += 0.5 * x[i] * opc_dense_dot(n, qp->P + i * n, x);
    return TRUE;
}

static Bool slope(Index n, Number *x, Bool fresh, Number *grad, UserDataPtr user)
{
    (void)fresh;
    const struct opc_qp *qp = user;
    for (int i = 0; i < n; i++)
        grad[i] = qp->q[i] + opc_dense_dot(n, qp->P + i * n, x);
    return TRUE;
}

static Bool rows(Index n, Number *x, Bool fresh, Index m, Number *g, UserDataPtr user)
{
    (void)fresh;
    const struct opc_qp *qp = user;
    for (int i = 0; i < m; i++)
        g[i] = opc_dense_dot(n, qp->A + i * n, x);
    return TRUE;
}

static Bool rows_slope(Index n, Number *x, Bool fresh, Index m, Index count, Index *row,
                       Index *column, Number *value, UserDataPtr user)
{
    (void)x, (void)fresh, (void)m;
    const struct opc_qp *qp = user;
    for (int i = 0; i < count; i++) {
        if (!value) {
            row[i] = i / n;
            column[i] = i % n;
        } else {
            value[i] = qp->A[i];
        }
    }
    return TRUE;
}

static Bool curvature(Index n, Number *x, Bool fresh, Number scale, Index m, Number *lambda,
                      Bool fresh_lambda, Index count, Index *row, Index *column, Number *value,
                      UserDataPtr user)
{
    (void)x, (void)fresh, (void)m, (void)lambda, (void)fresh_lambda, (void)count;
    const struct opc_qp *qp = user;
    for (int i = 0, at = 0; i < n; i++)
        for (int j = 0; j <= i; j++, at++) {
            if (!value) {
                row[at] = i;
                column[at] = j;
            } else {
                value[at] = scale * qp->P[i * n + j];
            }
        }
    return TRUE;
}

static void by_ipopt(const struct opc_qp *qp, double *x, double *y)
{
    double *low = calloc((size_t)(2 * qp->n + 2 * qp->rows), sizeof *low);
    assert_non_null(low);
    double *high = low + qp->n, *row_low = high + qp->n, *row_high = row_low + qp->rows;
    for (int i = 0; i < qp->n; i++) {
        low[i] = -NO_BOUND;
        high[i] = NO_BOUND;
        x[i] = 0.0;
    }
    for (int i = 0; i < qp->rows; i++) {
        row_low[i] = fmax(qp->low[i], -NO_BOUND);
        row_high[i] = fmin(qp->high[i], NO_BOUND);
    }
    IpoptProblem problem = CreateIpoptProblem(qp->n, low, high, qp->rows, row_low, row_high,
                                              qp->rows * qp->n, qp->n * (qp->n + 1) / 2, 0,
                                              objective, rows, slope, rows_slope, curvature);
    assert_non_null(problem);
    char *option[][2] = {{"sb", "yes"}, /* no banner */
                         {"mehrotra_algorithm", "yes"},
                         {"jac_c_constant", "yes"},
                         {"jac_d_constant", "yes"},
                         {"hessian_constant", "yes"}};
    for (size_t i = 0; i < sizeof option / sizeof *option; i++)
        assert_true(AddIpoptStrOption(problem, option[i][0], option[i][1]));
    assert_true(AddIpoptIntOption(problem, "print_level", 0));
    assert_true(AddIpoptNumOption(problem, "tol", 1e-11));
    assert_true(AddIpoptNumOption(problem, "bound_relax_factor", 0.0));
    const int status =
        IpoptSolve(problem, x, NULL, NULL, y, NULL, NULL, (UserDataPtr)(uintptr_t)qp);
    FreeIpoptProblem(problem);
    free(low);
    if (status != Solve_Succeeded && status != Solved_To_Acceptable_Level)
        fail_msg("Ipopt gave up with %d", status);
}

static void random_problems_have_ipopt_s_answers(void **state)
{
    (void)state;
    static struct random_qp r;
    for (uint32_t i = 0; i < 60; i++) {
        double x[QP_N], y[QP_ROWS], x_ipopt[QP_N], y_ipopt[QP_ROWS];
        struct opc_qp_report report;
        struct opc_err err = {0};
        random_qp(i, &r);
        assert_ok(opc_qp_solve(&r.qp, x, y, &report, &err), &err);
        by_ipopt(&r.qp, x_ipopt, y_ipopt);
        assert_doubles_near(x, x_ipopt, r.qp.n, 1e-6);
        /* and ours is no worse, up to how far Ipopt's may be outside of the bounds */
        double ours, theirs;
        objective(r.qp.n, x, TRUE, &ours, &r.qp);
        objective(r.qp.n, x_ipopt, TRUE, &theirs, &r.qp);
        assert_true(ours <= theirs + 1e-7 * (1.0 + fabs(theirs)));
    }
}

/* The update of a mass on a line within limits of every kind, as one program of [I; F; G]. */
static void a_limited_ilc_update_is_ipopt_s(void **state)
{
    (void)state;
    enum { T = 20, N = 2 * (T + 1), ROWS = T + N + 1 };
    static double A[T * 4], B[T * 2], M[N], W[T], ref[N], d[N], u[T], next[T];
    static double s_low[N], s_high[N], u_low[T], u_high[T], G[N], h[] = {0.7};
    static double P[T * T], q[T], C[ROWS * T], low[ROWS], high[ROWS], x[T], y[ROWS];
    struct opc_ilc *ilc;
    struct opc_ilc_kept kept;
    struct opc_err err = {0};
    for (int t = 0; t < T; t++) {
        A[4 * t] = A[4 * t + 3] = 1, A[4 * t + 1] = .1;
        B[2 * t] = .005, B[2 * t + 1] = .1;
        W[t] = 1e-3, u[t] = 0.1 * t - 1, u_low[t] = -4, u_high[t] = 3;
    }
    for (int i = 0; i < N; i++) {
        M[i] = 1;
        ref[i] = i % 2 ? 1 : 0.05 * i;
        d[i] = 0.01 * i;
        s_low[i] = -INFINITY, s_high[i] = i % 2 ? 1.1 : INFINITY;
    }
    G[20] = 1.0;
    assert_ok(opc_ilc_create(2, 1, T, M, W, &ilc, &err), &err);
    assert_ok(opc_ilc_model(ilc, A, B, &err), &err);
    const struct opc_ilc_limits limits = {u_low, u_high, s_low, s_high, 1, G, h, 4.0};
    assert_ok(opc_ilc_update_within(ilc, ref, d, u, &limits, next, &kept, &err), &err);

    const double *F = opc_ilc_lifted(ilc);
    opc_dense_mul_ta(T, N, T, F, F, P);
    for (int j = 0; j < T; j++) {
        P[j * T + j] += W[j];
        q[j] = -W[j] * u[j];
        for (int i = 0; i < N; i++)
            q[j] -= F[i * T + j] * (ref[i] - d[i]);
        C[j * T + j] = 1.0;
        low[j] = fmax(u_low[j], u[j] - 2);
        high[j] = fmin(u_high[j], u[j] + 2);
    }
    for (int i = 0; i < N; i++) {
        memcpy(C + (T + i) * T, F + i * T, T * sizeof *F);
        low[T + i] = s_low[i] - d[i];
        high[T + i] = s_high[i] - d[i];
    }
    opc_dense_mul_ta(T, N, 1, F, G, C + (T + N) * T);
    low[T + N] = -INFINITY;
    high[T + N] = h[0] - opc_dense_dot(N, G, d);
    by_ipopt(&(struct opc_qp){T, ROWS, P, q, C, low, high}, x, y);
    assert_doubles_near(next, x, T, 1e-5);
    assert_true(kept.qp.active > 3);
    opc_ilc_destroy(ilc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_problems_have_ipopt_s_answers),
        cmocka_unit_test(a_limited_ilc_update_is_ipopt_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
