/* SPDX-License-Identifier: MIT */
/* The cross-entropy method: numbers known in closed form, how near it comes to the maximum of a
 * quadratic, and what it does with values that are not finite. */
#include "num/solve/cem.h"

#include "test.h"

static struct opc_cem_options options_of(int steps, int each)
{
    return (struct opc_cem_options){.steps = steps,
                                    .each = each,
                                    .capacity = 400,
                                    .elites = 40,
                                    .low = -1,
                                    .high = 1,
                                    .deviation = 0.25,
                                    .alpha = 0.1,
                                    .min_variance = 1e-3,
                                    .coloured = true,
                                    .exponent = 2};
}

static struct opc_cem *cem_of(const struct opc_cem_options *o)
{
    struct opc_err err = {0};
    struct opc_cem *cem = NULL;
    assert_ok(opc_cem_create(o, &cem, &err), &err);
    return cem;
}

/* The variance of a standard normal truncated at 2 is 1 - 4 phi(2) / (2 Phi(2) - 1). */
static void truncated_normal_has_its_variance_and_stays_within_two(void **state)
{
    (void)state;
    enum { N = 100000 };
    float *z = malloc(N * sizeof *z);
    struct opc_rng rng = opc_rng_stream(5, OPC_USE_TEST, 0, 0);
    double sum = 0, squares = 0;
    assert_non_null(z);
    opc_cem_truncated(&rng, N, z);
    for (int i = 0; i < N; i++) {
        assert_true(z[i] >= -2 && z[i] <= 2);
        sum += (double)z[i];
        squares += (double)z[i] * (double)z[i];
    }
    free(z);
    assert_true(fabs(sum / N) < 0.01);
    assert_true(fabs(squares / N / 0.7737413 - 1) < 0.01);
    assert_true(fabs(sqrt(squares / N) / 0.8796257 - 1) < 0.01);
}

static void update_moves_mean_and_variance_as_computed_by_hand(void **state)
{
    (void)state;
    static const double ELITE[] = {0.5, 0.7, 0.6, 0.8};
    for (int sample = 0; sample < 2; sample++) {
        struct opc_cem_options o = options_of(1, 1);
        o.elites = 4;
        o.kept = 2;
        o.sample_variance = sample;
        struct opc_cem *cem = cem_of(&o);
        const double mean = 0.2;
        opc_cem_begin(cem, &mean);
        assert_true(cem->variance[0] == 0.25);
        /* The elites lie between candidates that are worse. */
        for (int i = 0; i < 8; i++) {
            opc_cem_at(cem, i)[0] = i % 2 ? (float)ELITE[i / 2] : -0.9f;
            cem->value[i] = i % 2 ? 5 + i : -i;
        }
        assert_int_equal(opc_cem_update(cem, 8), 0);
        assert_true(fabs(cem->mean[0] - 0.605) < 1e-7);
        /* 0.1 * 0.25 + 0.9 * 0.0125, or with 1 / (n - 1) 0.9 * 0.05 / 3 */
        assert_true(fabs(cem->variance[0] - (sample ? 0.04 : 0.03625)) < 1e-7);
        assert_true(cem->elite_mean == 5 + (1 + 3 + 5 + 7) / 4.0);
        assert_true(cem->keep[0] == 0.8f && cem->keep[1] == 0.6f); /* best first */
        opc_cem_destroy(cem);
    }
}

static void variance_is_capped_so_that_two_deviations_stay_in_the_box(void **state)
{
    (void)state;
    assert_true(fabs(opc_cem_capped(0.9, 0.25, -1, 1) - 0.0025) < 1e-12);
    assert_true(fabs(opc_cem_capped(-0.8, 0.25, -1, 1) - 0.01) < 1e-12);
    assert_true(opc_cem_capped(0, 0.25, -1, 1) == 0.25);
    struct opc_cem_options o = options_of(50, 1);
    struct opc_cem *cem = cem_of(&o);
    double mean[50];
    for (int k = 0; k < 50; k++)
        mean[k] = 0.95 * (k % 2 ? 1 : -1);
    opc_cem_begin(cem, mean);
    for (int i = 0; i < o.capacity; i++) {
        struct opc_rng rng = opc_rng_stream(1, OPC_USE_TEST, 0, (uint32_t)i);
        opc_cem_draw(cem, i, &rng);
        for (int k = 0; k < 50; k++)
            assert_true(fabsf(opc_cem_at(cem, i)[k]) < 1.0000001f);
    }
    opc_cem_destroy(cem);
}

/* Minimises |x - c|^2. Returns the iterations; *far is |mean - c|, *variance the largest one. */
static int approach(int dims, const double *c, uint32_t number, double *far, double *variance)
{
    struct opc_cem_options o = options_of(dims, 1);
    struct opc_cem *cem = cem_of(&o);
    double start[8] = {0};
    int t = 0;
    for (opc_cem_begin(cem, start); t < 5 && !opc_cem_converged(cem); t++) {
        for (int i = 0; i < o.capacity; i++) {
            struct opc_rng rng = opc_rng_stream(number, OPC_USE_TEST, (uint32_t)t, (uint32_t)i);
            opc_cem_draw(cem, i, &rng);
            cem->value[i] = 0;
            for (int k = 0; k < dims; k++) {
                const double gap = (double)opc_cem_at(cem, i)[k] - c[k];
                cem->value[i] -= gap * gap;
            }
        }
        opc_cem_update(cem, o.capacity);
    }
    *far = *variance = 0;
    for (int k = 0; k < dims; k++) {
        *far += (cem->mean[k] - c[k]) * (cem->mean[k] - c[k]);
        *variance = fmax(*variance, cem->variance[k]);
    }
    *far = sqrt(*far);
    opc_cem_destroy(cem);
    return t;
}

/* Of 6,000 repeats with other streams, the distances are 0.0029 and 0.0147 on average, beyond 0.01
 * in 0.5 % and beyond 0.025 in 3.5 %; the largest variance of the six is 1.33e-3 on average, and
 * from 1.26e-3 to 1.41e-3 on average of 60. */
static void quadratic_is_maximised_as_fast_as_it_should_be(void **state)
{
    (void)state;
    const double two[] = {0.3, -0.5}, six[] = {0.3, -0.5, 0.2, 0, 0.7, -0.2};
    double sum[2] = {0}, max[2] = {0}, far, variance, last = 0;
    int third = 0;
    for (uint32_t i = 1; i <= 60; i++) {
        const int t = approach(2, two, i, &far, &variance);
        assert_true(t == 3 || t == 4); /* the variance falls to 1e-3 in the third */
        third += t == 3;
        sum[0] += far / 60;
        max[0] = fmax(max[0], far);
        assert_int_equal(approach(6, six, i, &far, &variance), 5);
        last += variance / 60;
        sum[1] += far / 60;
        max[1] = fmax(max[1], far);
    }
    print_message("%d in 3; two %.4f to %.4f, six %.4f to %.4f, variance %.2e\n", third, sum[0],
                  max[0], sum[1], max[1], last);
    assert_true(third > 20);
    assert_true(sum[0] > 0.002 && sum[0] < 0.004 && max[0] <= 0.01);
    assert_true(sum[1] > 0.012 && sum[1] < 0.017 && max[1] <= 0.025);
    assert_true(last > 1.2e-3 && last < 1.5e-3);
}

static void value_that_is_not_finite_is_the_worst(void **state)
{
    (void)state;
    struct opc_cem_options o = options_of(1, 1);
    o.elites = 2;
    o.alpha = 0;
    struct opc_cem *cem = cem_of(&o);
    const double zero = 0, value[] = {(double)NAN, -1e300, (double)INFINITY, -5, -(double)INFINITY};
    opc_cem_begin(cem, &zero);
    for (int i = 0; i < 5; i++) {
        opc_cem_at(cem, i)[0] = 0.1f * (float)i;
        cem->value[i] = value[i];
    }
    assert_int_equal(opc_cem_update(cem, 5), 3);
    assert_true(fabs(cem->mean[0] - 0.2) < 1e-7); /* of candidates 1 and 3 */
    /* If there is nothing else they are elites, and the mean stays finite. */
    for (int i = 0; i < 5; i++)
        cem->value[i] = (double)NAN;
    assert_int_equal(opc_cem_update(cem, 5), 5);
    assert_true(fabs(cem->mean[0] - 0.05) < 1e-7); /* of equals the first */
    assert_true(cem->elite_mean == -(double)INFINITY);
    opc_cem_destroy(cem);
}

/* Unit variance at every step; neighbours agree the more, the steeper the spectrum. */
static void coloured_noise_has_unit_variance_and_correlated_neighbours(void **state)
{
    (void)state;
    enum { STEPS = 20, N = 4000 };
    static const double EXPONENT[] = {0, 2};
    double correlation[2];
    for (int e = 0; e < 2; e++) {
        struct opc_cem_options o = options_of(STEPS, 2);
        o.low = -10; /* nothing is clipped */
        o.high = 10;
        o.exponent = EXPONENT[e];
        o.capacity = N;
        struct opc_cem *cem = cem_of(&o);
        double zero[2 * STEPS] = {0}, square[2 * STEPS] = {0}, product = 0, across = 0;
        opc_cem_begin(cem, zero);
        for (int k = 0; k < 2 * STEPS; k++)
            cem->variance[k] = 1;
        for (int i = 0; i < N; i++) {
            struct opc_rng rng = opc_rng_stream(3, OPC_USE_TEST, 1, (uint32_t)i);
            opc_cem_draw_coloured(cem, i, &rng);
            const float *x = opc_cem_at(cem, i);
            for (int k = 0; k < 2 * STEPS; k++)
                square[k] += (double)x[k] * (double)x[k] / N;
            product += (double)x[10] * (double)x[12] / N;
            across += (double)x[10] * (double)x[11] / N;
        }
        for (int k = 0; k < 2 * STEPS; k++)
            assert_true(fabs(square[k] - 1) < 0.12);
        assert_true(fabs(across) < 0.08); /* the two numbers of a step have nothing in common */
        correlation[e] = product;
        opc_cem_destroy(cem);
    }
    assert_true(fabs(correlation[0]) < 0.08); /* white */
    assert_true(correlation[1] > 0.8);
}

/* The sequence is drawn with the deviation that was asked for, numbers after it with a quarter of
 * the box. A sequence whose mean is on a wall stays there, the others come back from it. */
static void numbers_after_the_sequence_come_back_from_the_walls(void **state)
{
    (void)state;
    enum { N = 4000 };
    const double mean[] = {0.1, -0.2, 1, 0, -1};
    struct opc_cem_options o = options_of(3, 1);
    o.extra = 2;
    o.deviation = 0.05;
    o.capacity = N;
    struct opc_cem *cem = cem_of(&o);
    assert_int_equal(cem->dims, 5);
    for (int coloured = 0; coloured < 2; coloured++) {
        double squares[5] = {0}, lowest = 1, highest = -1;
        opc_cem_begin(cem, mean);
        for (int k = 0; k < 5; k++)
            assert_true(fabs(sqrt(cem->variance[k]) - (k < 3 ? 0.1 : 0.5)) < 1e-12);
        for (int i = 0; i < N; i++) {
            struct opc_rng rng = opc_rng_stream(8, OPC_USE_TEST, 1, (uint32_t)i);
            (coloured ? opc_cem_draw_coloured : opc_cem_draw)(cem, i, &rng);
            const float *x = opc_cem_at(cem, i);
            for (int k = 0; k < 5; k++) {
                assert_true(x[k] >= -1 && x[k] <= 1);
                squares[k] += ((double)x[k] - mean[k]) * ((double)x[k] - mean[k]) / N;
            }
            lowest = fmin(lowest, (double)x[4]);
            highest = fmax(highest, (double)x[4]);
        }
        /* a normal number has variance 1 in units of the deviation, a truncated one 0.774 */
        const double unit = coloured ? 1 : 0.7737413;
        assert_true(fabs(squares[0] / (0.01 * unit) - 1) < 0.1);
        assert_true(fabs(squares[3] / (0.25 * unit) - 1) < 0.1);
        assert_true(coloured ? squares[2] > 0 : squares[2] == 0);
        assert_true(lowest == -1 && highest > -0.1);
    }
    opc_cem_destroy(cem);
}

static int create(void *ctx, struct opc_err *err)
{
    struct opc_cem *cem = NULL;
    const int code = opc_cem_create(ctx, &cem, err);
    if (!code)
        opc_cem_destroy(cem);
    return code;
}

static void create_survives_lack_of_memory(void **state)
{
    (void)state;
    struct opc_cem_options o = options_of(5, 2);
    assert_survives_lack_of_memory(create, &o);
    assert_true(opc_cem_bytes(&o) > 400 * 10 * sizeof(float));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truncated_normal_has_its_variance_and_stays_within_two),
        cmocka_unit_test(update_moves_mean_and_variance_as_computed_by_hand),
        cmocka_unit_test(variance_is_capped_so_that_two_deviations_stay_in_the_box),
        cmocka_unit_test(quadratic_is_maximised_as_fast_as_it_should_be),
        cmocka_unit_test(value_that_is_not_finite_is_the_worst),
        cmocka_unit_test(numbers_after_the_sequence_come_back_from_the_walls),
        cmocka_unit_test(coloured_noise_has_unit_variance_and_correlated_neighbours),
        cmocka_unit_test(create_survives_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
