/* SPDX-License-Identifier: MIT */
#include "num/scaler.h"

#include "test_num.h"

enum { P = OPC_PANEL };

static struct opc_scaler *fresh(int dim)
{
    struct opc_err err = {0};
    struct opc_scaler *s;
    assert_ok(opc_scaler_create(dim, &s, &err), &err);
    return s;
}

/* 2, 4, 4, 4, 5, 5, 7, 9: mean 5, squares about it 32, hence 32/8 and 32/7. */
static void statistics_are_mean_and_deviation(void **state)
{
    (void)state;
    const float table[8] = {2, 4, 4, 4, 5, 5, 7, 9};
    struct opc_scaler *s = fresh(1);
    opc_scaler_fit(s, 8, table, 1, NULL, false);
    assert_true(s->mean[0] == 5.0f && s->inverse[0] == 0.5f);
    opc_scaler_fit(s, 8, table, 1, NULL, true);
    assert_true(s->mean[0] == 5.0f);
    assert_true(fabs(s->inverse[0] - sqrt(7.0 / 32.0)) < 1e-7);
    opc_scaler_destroy(s);
}

static void statistics_agree_with_double_precision(void **state)
{
    (void)state;
    enum { ROWS = 500, DIM = 7, STRIDE = 11 };
    struct opc_rng r = test_stream(1);
    float *table = floats_of(ROWS * STRIDE, NAN); /* columns beyond DIM are not looked at */
    int index[ROWS];
    for (int i = 0; i < ROWS; i++)
        for (int d = 0; d < DIM; d++) /* means far from 0 and spreads from 1e-3 to 1e3 */
            table[i * STRIDE + d] = (float)(100.0 * d + pow(10.0, d - 3) * any_float(&r));
    for (int form = 0; form < 8; form++) {
        const bool sample = form & 1, indexed = form & 2;
        const int n = form & 4 ? ROWS : 9;
        for (int i = 0; i < n; i++)
            index[i] = indexed ? any_below(&r, ROWS) : i;
        struct opc_scaler *s = fresh(DIM);
        opc_scaler_fit(s, n, table, STRIDE, indexed ? index : NULL, sample);
        for (int d = 0; d < DIM; d++) {
            double mean = 0.0, squares = 0.0;
            for (int i = 0; i < n; i++)
                mean += table[index[i] * STRIDE + d] / (double)n;
            for (int i = 0; i < n; i++)
                squares += pow(table[index[i] * STRIDE + d] - mean, 2.0);
            const double std = sqrt(squares / (sample ? n - 1 : n));
            assert_true(fabs(s->mean[d] - mean) <= 1e-7 * (1.0 + fabs(mean)));
            assert_true(fabs(s->inverse[d] * std - 1.0) <= 1e-6);
        }
        opc_scaler_destroy(s);
    }
    free(table);
}

/* Even where the sum of a thousand equal floats is no float any more. */
static void a_feature_that_does_not_vary_is_only_shifted(void **state)
{
    (void)state;
    enum { ROWS = 1000 };
    static const float VALUE[] = {0.0f, 1.0f, -0.1f, 1234.567f, 3.4e38f, 1e-45f, -7e-13f};
    enum { DIM = sizeof VALUE / sizeof *VALUE };
    float *table = floats_of(ROWS * DIM, 0.0f), x[DIM * P];
    for (int i = 0; i < ROWS * DIM; i++)
        table[i] = VALUE[i % DIM];
    struct opc_scaler *s = fresh(DIM);
    for (int n = 0; n <= ROWS; n = n < 10 ? n + 1 : 10 * n)
        for (int sample = 0; sample < 2; sample++) {
            opc_scaler_fit(s, n, table, DIM, NULL, sample);
            for (int d = 0; d < DIM; d++) {
                assert_true(s->mean[d] == (n ? VALUE[d] : 0.0f));
                assert_true(s->inverse[d] == 1.0f);
                for (int i = 0; i < P; i++)
                    x[d * P + i] = VALUE[d];
            }
            opc_scaler_apply(s, 1, x, DIM * P);
            for (int k = 0; n && k < DIM * P; k++)
                assert_true(x[k] == 0.0f);
        }
    opc_scaler_destroy(s);
    free(table);
}

/* A float feature can vary by less than its spread is worth: 1e-12 is where that begins. */
static void the_least_spread_that_counts_is_1e_12(void **state)
{
    (void)state;
    const float little[2] = {-0.9e-12f, 0.9e-12f}, enough[2] = {-1.1e-12f, 1.1e-12f};
    struct opc_scaler *s = fresh(1);
    opc_scaler_fit(s, 2, little, 1, NULL, false);
    assert_true(s->inverse[0] == 1.0f);
    opc_scaler_fit(s, 2, enough, 1, NULL, false);
    assert_true(fabs(s->inverse[0] * 1.1e-12 - 1.0) < 1e-6);
    opc_scaler_destroy(s);
}

static void scaled_data_has_mean_0_and_deviation_1(void **state)
{
    (void)state;
    enum { ROWS = 16 * 20, DIM = 3, XS = DIM * P + 5 };
    struct opc_rng r = test_stream(2);
    float *table = floats_any(&r, ROWS * DIM), *x = floats_of(ROWS / P * XS, 1234.5f);
    for (int i = 0; i < ROWS; i++)
        table[i * DIM + 1] = 1e4f + 100.0f * table[i * DIM + 1];
    struct opc_scaler *s = fresh(DIM);
    opc_kernels()->gather(ROWS, DIM, table, DIM, NULL, x, XS);
    float *raw = floats_of(ROWS / P * XS, 0.0f);
    memcpy(raw, x, ROWS / P * XS * sizeof *x);
    opc_scaler_apply(s, ROWS / P, x, XS); /* before the first fit it is the identity */
    assert_same_bits(x, raw, ROWS / P * XS * sizeof *x);
    opc_scaler_fit(s, ROWS, table, DIM, NULL, false);
    opc_scaler_apply(s, ROWS / P, x, XS);
    for (int p = 0; p < ROWS / P; p++)
        for (int k = 0; k < XS; k++) {
            const float was = raw[p * XS + k];
            const float want = k < DIM * P ? (was - s->mean[k / P]) * s->inverse[k / P] : 1234.5f;
            assert_true(same_bits(x[p * XS + k], want));
        }
    for (int d = 0; d < DIM; d++) {
        double sum = 0.0, squares = 0.0;
        for (int i = 0; i < ROWS; i++) {
            const double v = x[i / P * XS + d * P + i % P];
            sum += v;
            squares += v * v;
        }
        assert_true(fabs(sum / ROWS) < 1e-4);
        assert_true(fabs(squares / ROWS - 1.0) < 1e-4);
    }
    opc_scaler_destroy(s);
    free(raw);
    free(x);
    free(table);
}

static int create(void *ctx, struct opc_err *err)
{
    (void)ctx;
    struct opc_scaler *s = NULL;
    const int code = opc_scaler_create(5, &s, err);
    assert_true((code == OPC_OK) == (s != NULL));
    opc_scaler_destroy(s);
    return code;
}

static void lack_of_memory_is_an_error(void **state)
{
    (void)state;
    assert_survives_lack_of_memory(create, NULL);
    opc_scaler_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics_are_mean_and_deviation),
        cmocka_unit_test(statistics_agree_with_double_precision),
        cmocka_unit_test(a_feature_that_does_not_vary_is_only_shifted),
        cmocka_unit_test(the_least_spread_that_counts_is_1e_12),
        each_backend(scaled_data_has_mean_0_and_deviation_1),
        cmocka_unit_test(lack_of_memory_is_an_error),
    };
    return run_num_tests(tests);
}
