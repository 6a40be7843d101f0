/* SPDX-License-Identifier: MIT */
/* Conjugate gradients on matrices whose solution is known. */
#include "num/solve/cg.h"

#include "test_num.h"

enum { N = 8 };

struct matrix {
    int n;
    double a[N * N];
};

static void product(void *ctx, const double *v, double *out)
{
    const struct matrix *m = ctx;
    for (int i = 0; i < m->n; i++) {
        out[i] = 0;
        for (int k = 0; k < m->n; k++)
            out[i] += m->a[i * m->n + k] * v[k];
    }
}

static void two_unknowns_take_two_iterations(void **state)
{
    (void)state;
    struct matrix m = {2, {4, 1, 1, 3}};
    const double b[2] = {1, 2}, first[2] = {0.25, 0.5}, second[2] = {1.0 / 11, 7.0 / 11};
    double x[2], work[6];
    assert_int_equal(opc_conjugate_gradients(2, product, &m, b, 1, 1e-10, x, work), 1);
    assert_doubles_near(x, first, 2, 1e-15);
    /* The second is exact, so that there is no third. */
    assert_int_equal(opc_conjugate_gradients(2, product, &m, b, 10, 1e-25, x, work), 2);
    assert_doubles_near(x, second, 2, 1e-15);
}

/* A = B^T B + I of a random B, b = A x. */
static void a_random_system_is_solved(void **state)
{
    (void)state;
    struct matrix m = {.n = N};
    struct opc_rng r = test_stream(1);
    double B[N * N], want[N], b[N], x[N], work[3 * N];
    for (int i = 0; i < N * N; i++)
        B[i] = (double)any_float(&r);
    for (int i = 0; i < N; i++) {
        want[i] = (double)any_float(&r);
        for (int k = 0; k < N; k++) {
            m.a[i * N + k] = i == k;
            for (int j = 0; j < N; j++)
                m.a[i * N + k] += B[j * N + i] * B[j * N + k];
        }
    }
    product(&m, want, b);
    opc_conjugate_gradients(N, product, &m, b, 10, 0, x, work);
    for (int i = 0; i < N; i++)
        assert_true(fabs(x[i] - want[i]) < 1e-6 * (1 + fabs(want[i])));
}

/* Not positive definite, or not numbers at all: it stops with what it has. */
static void a_bad_matrix_stops_it(void **state)
{
    (void)state;
    struct matrix m = {2, {-1, 0, 0, -1}};
    const double b[2] = {1, 2}, none[2] = {0, 0};
    double x[2], work[6];
    assert_int_equal(opc_conjugate_gradients(2, product, &m, b, 10, 1e-10, x, work), 0);
    assert_doubles_near(x, none, 2, 0);
    m.a[0] = (double)NAN;
    assert_int_equal(opc_conjugate_gradients(2, product, &m, b, 10, 1e-10, x, work), 0);
    assert_doubles_near(x, none, 2, 0);
    assert_int_equal(opc_conjugate_gradients(2, product, &m, none, 10, 1e-10, x, work), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_unknowns_take_two_iterations),
        cmocka_unit_test(a_random_system_is_solved),
        cmocka_unit_test(a_bad_matrix_stops_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
