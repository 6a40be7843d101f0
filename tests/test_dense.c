/* SPDX-License-Identifier: MIT */
#include "num/solve/dense.h"

#include "opc/rng.h"
#include "test.h"

enum { MAX = 12 };

static void draw(uint32_t stream, int n, double *x)
{
    struct opc_rng r = opc_rng_stream(5, OPC_USE_TEST, 0, stream);
    for (int i = 0; i < n; i++)
        x[i] = 2.0 * opc_rng_unit_double(&r) - 1.0;
}

static void the_three_products_agree_with_the_sums_they_stand_for(void **state)
{
    (void)state;
    enum { R = 4, I = 3, C = 5 };
    double a[R * I], at[I * R], b[I * C], bt[C * I], want[R * C], got[R * C];
    draw(1, R * I, a);
    draw(2, I * C, b);
    a[4] = 0.0; /* zeros are skipped */
    for (int i = 0; i < R; i++)
        for (int k = 0; k < I; k++)
            at[k * R + i] = a[i * I + k];
    for (int k = 0; k < I; k++)
        for (int j = 0; j < C; j++)
            bt[j * I + k] = b[k * C + j];
    for (int i = 0; i < R; i++)
        for (int j = 0; j < C; j++) {
            want[i * C + j] = 0.0;
            for (int k = 0; k < I; k++)
                want[i * C + j] += a[i * I + k] * b[k * C + j];
        }
    opc_dense_mul(R, I, C, a, b, got);
    assert_doubles_near(got, want, R * C, 1e-15);
    opc_dense_mul_ta(R, I, C, at, b, got);
    assert_doubles_near(got, want, R * C, 1e-15);
    opc_dense_mul_tb(R, I, C, a, bt, got);
    assert_doubles_near(got, want, R * C, 1e-15);
    assert_true(fabs(opc_dense_norm(R * I, a) - sqrt(opc_dense_dot(R * I, a, a))) == 0.0);
}

static void a_cholesky_solve_gives_back_what_was_multiplied(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX; n++) {
        double g[MAX * MAX], a[MAX * MAX], L[MAX * MAX], x[MAX * 2], b[MAX * 2];
        draw((uint32_t)n, n * n, g);
        opc_dense_mul_tb(n, n, n, g, g, a);
        for (int i = 0; i < n; i++)
            a[i * n + i] += 0.5;
        draw((uint32_t)(100 + n), 2 * n, x);
        opc_dense_mul(n, n, 2, a, x, b);
        memcpy(L, a, sizeof L);
        assert_true(opc_chol_factor(n, L));
        opc_chol_solve(n, L, 2, b);
        assert_doubles_near(b, x, 2 * n, 1e-12);
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                if (j > i) { /* the upper triangle is nobody's */
                    assert_true(L[i * n + j] == a[i * n + j]);
                    L[i * n + j] = 0.0;
                }
            }
        opc_dense_mul_tb(n, n, n, L, L, g);
        assert_doubles_near(g, a, n * n, 1e-13);
    }
}

static void what_is_not_positive_definite_is_refused(void **state)
{
    (void)state;
    double indefinite[] = {1, 2, 2, 1}, singular[] = {1, 1, 1, 1}, zero[] = {0};
    double nan[] = {(double)NAN};
    assert_false(opc_chol_factor(2, indefinite));
    assert_false(opc_chol_factor(2, singular));
    assert_false(opc_chol_factor(1, zero));
    assert_false(opc_chol_factor(1, nan));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_three_products_agree_with_the_sums_they_stand_for),
        cmocka_unit_test(a_cholesky_solve_gives_back_what_was_multiplied),
        cmocka_unit_test(what_is_not_positive_definite_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
