/* SPDX-License-Identifier: MIT */
#include "num/solve/qp.h"

#include "qp_random.h"

static double residual(struct opc_qp_kkt k)
{
    return fmax(fmax(k.stationarity, k.primal), fmax(k.dual, k.complementarity));
}

/* min (x - 3)^2 + (y - 2)^2, x + y <= 3, 0 <= x <= 1.5: at (1.5, 1.5). Gradient (-3, -1). */
static void a_problem_solved_by_hand(void **state)
{
    (void)state;
    const double P[] = {2, 0, 0, 2}, q[] = {-6, -4}, A[] = {1, 1, 1, 0};
    const double low[] = {-INFINITY, 0}, high[] = {3, 1.5};
    const struct opc_qp qp = {2, 2, P, q, A, low, high};
    double x[2], y[2];
    struct opc_qp_report report;
    struct opc_err err = {0};
    assert_ok(opc_qp_solve(&qp, x, y, &report, &err), &err);
    assert_doubles_near(x, ((double[]){1.5, 1.5}), 2, 1e-14);
    assert_doubles_near(y, ((double[]){1, 2}), 2, 1e-14);
    assert_int_equal(report.active, 2);
    assert_int_equal(report.row, -1);
    assert_true(residual(opc_qp_check(&qp, x, y)) < 1e-14);
}

/* KKT is enough for the optimum of a convex problem, so this is the whole check. */
static void random_problems_end_where_kkt_holds(void **state)
{
    (void)state;
    static struct random_qp r;
    int max_active = 0, equations = 0, idle = 0;
    for (uint32_t i = 0; i < 400; i++) {
        double x[QP_N], y[QP_ROWS];
        struct opc_qp_report report;
        struct opc_err err = {0};
        random_qp(i, &r);
        assert_ok(opc_qp_solve(&r.qp, x, y, &report, &err), &err);
        const struct opc_qp_kkt kkt = opc_qp_check(&r.qp, x, y);
        if (!(residual(kkt) < 1e-9))
            fail_msg("problem %u: %g %g %g %g", i, kkt.stationarity, kkt.primal, kkt.dual,
                     kkt.complementarity);
        for (int k = 0; k < r.qp.rows; k++) {
            /* signs: pushed down at an upper bound, up at a lower one, 0 inside */
            const double ax = opc_dense_dot(r.qp.n, r.A + k * r.qp.n, x);
            if (r.low[k] == r.high[k]) {
                equations++;
            } else if (y[k] > 1e-12) {
                assert_true(fabs(ax - r.high[k]) < 1e-9);
            } else if (y[k] < -1e-12) {
                assert_true(fabs(ax - r.low[k]) < 1e-9);
            } else {
                idle++;
            }
        }
        if (report.active > max_active)
            max_active = report.active;
    }
    assert_true(max_active > 10 && equations > 100 && idle > 1000); /* all kinds were there */
}

/* The check must see what is wrong, or the test above could not fail. */
static void a_wrong_answer_does_not_pass_the_check(void **state)
{
    (void)state;
    const double P[] = {1}, q[] = {-1}, A[] = {1}, low[] = {-INFINITY}, high[] = {0.5};
    const struct opc_qp qp = {1, 1, P, q, A, low, high};
    assert_true(residual(opc_qp_check(&qp, (double[]){0.5}, (double[]){0.5})) == 0.0);
    assert_true(opc_qp_check(&qp, (double[]){0.5}, (double[]){0}).stationarity == 0.5);
    assert_true(opc_qp_check(&qp, (double[]){1}, (double[]){0}).primal == 0.5);
    assert_true(opc_qp_check(&qp, (double[]){0.25}, (double[]){0.75}).complementarity > 0.1);
    assert_true(opc_qp_check(&qp, (double[]){2}, (double[]){-1}).dual == 1.0);
}

static void without_active_bounds_it_is_the_linear_solve(void **state)
{
    (void)state;
    static struct random_qp r;
    for (uint32_t i = 0; i < 20; i++) {
        double x[QP_N], y[QP_ROWS], want[QP_N];
        struct opc_qp_report report;
        struct opc_err err = {0};
        random_qp(i, &r);
        for (int k = 0; k < r.qp.rows; k++)
            r.low[k] = -1e6, r.high[k] = 1e6;
        assert_ok(opc_qp_solve(&r.qp, x, y, &report, &err), &err);
        for (int j = 0; j < r.qp.n; j++)
            want[j] = -r.q[j];
        assert_true(opc_chol_factor(r.qp.n, r.P));
        opc_chol_solve(r.qp.n, r.P, 1, want);
        assert_doubles_near(x, want, r.qp.n, 1e-10);
        assert_int_equal(report.active, 0);
        for (int k = 0; k < r.qp.rows; k++)
            assert_true(y[k] == 0.0);
    }
}

/* The same bound three times over, and corners where more bounds meet than there are unknowns. */
static void redundant_and_degenerate_bounds_do_not_disturb(void **state)
{
    (void)state;
    const double P[] = {1, 0, 0, 1}, q[] = {-2, -2};
    const double A[] = {1, 0, 1, 0, 2, 0, 0, 1, 1, 1, 1, -1};
    const double low[] = {-1, -1, -2, -1, -INFINITY, 0}, high[] = {1, 1, 2, 1, 2, 0};
    const struct opc_qp qp = {2, 6, P, q, A, low, high};
    double x[2], y[6];
    struct opc_qp_report report;
    struct opc_err err = {0};
    assert_ok(opc_qp_solve(&qp, x, y, &report, &err), &err);
    assert_doubles_near(x, ((double[]){1, 1}), 2, 1e-12);
    assert_true(residual(opc_qp_check(&qp, x, y)) < 1e-12);
}

static void bounds_that_contradict_each_other_are_named(void **state)
{
    (void)state;
    const double P[] = {1, 0, 0, 1}, q[] = {0, 0}, A[] = {1, 0, 0, 1, 1, 1, 0, 0};
    double low[] = {-1, -1, 3, -1}, high[] = {1, 1, INFINITY, 1};
    const struct opc_qp qp = {2, 4, P, q, A, low, high};
    double x[2], y[4];
    struct opc_qp_report report;
    struct opc_err err = {0};
    assert_fails(opc_qp_solve(&qp, x, y, &report, &err), OPC_EUSER, &err, "bound 2");
    assert_int_equal(report.row, 1);
    low[2] = 0;
    low[3] = 0.5; /* a row of zeros cannot be 0.5 */
    assert_int_equal(opc_qp_solve(&qp, x, y, &report, &err), OPC_EUSER);
    assert_int_equal(report.row, 3);
    low[3] = 2;
    assert_fails(opc_qp_solve(&qp, x, y, &report, &err), OPC_EUSER, &err, "[2, 1]");
    const double flat[] = {1, 1, 1, 1};
    const struct opc_qp bad = {2, 0, flat, q, A, low, high};
    assert_fails(opc_qp_solve(&bad, x, y, &report, &err), OPC_EUSER, &err, "quadratic form");
    assert_int_equal(report.row, -1);
}

static int solve_one(void *ctx, struct opc_err *err)
{
    struct random_qp *r = ctx;
    double x[QP_N], y[QP_ROWS];
    struct opc_qp_report report;
    return opc_qp_solve(&r->qp, x, y, &report, err);
}

static void lack_of_memory_is_reported(void **state)
{
    (void)state;
    static struct random_qp r;
    random_qp(3, &r);
    assert_survives_lack_of_memory(solve_one, &r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_problem_solved_by_hand),
        cmocka_unit_test(random_problems_end_where_kkt_holds),
        cmocka_unit_test(a_wrong_answer_does_not_pass_the_check),
        cmocka_unit_test(without_active_bounds_it_is_the_linear_solve),
        cmocka_unit_test(redundant_and_degenerate_bounds_do_not_disturb),
        cmocka_unit_test(bounds_that_contradict_each_other_are_named),
        cmocka_unit_test(lack_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
