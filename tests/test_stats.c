/* SPDX-License-Identifier: MIT */
#include "num/stats.h"

#include "test.h"

/* numpy.quantile([7, 1, 3, 10], [0, .25, .5, .75, 1]) */
static void quantiles_are_those_of_numpy(void **state)
{
    (void)state;
    static const double Q[] = {0, 0.25, 0.5, 0.75, 1}, WANT[] = {1, 2.5, 5, 7.75, 10};
    for (int i = 0; i < 5; i++) {
        double v[] = {7, 1, 3, 10};
        assert_true(opc_quantile(4, v, Q[i]) == WANT[i]);
    }
    double one = 3;
    assert_true(opc_quantile(1, &one, 0.25) == 3 && opc_quantile(1, &one, 1) == 3);
}

static void smoothing_is_a_mean_over_the_window(void **state)
{
    (void)state;
    const double v[] = {0, 3, 6, (double)NAN, 12};
    double out[5];
    opc_smooth(5, v, 3, out);
    assert_true(out[0] == 1.5 && out[1] == 3 && out[2] == 4.5 && out[4] == 12);
    assert_true(isnan(out[3]));
    opc_smooth(5, v, 1, out);
    assert_true(out[1] == 3 && out[4] == 12);
}

static void steps_between_ticks_are_round(void **state)
{
    (void)state;
    assert_doubles_near(((double[]){opc_round_step(1000, 5), opc_round_step(7500, 5),
                                    opc_round_step(0.9, 6), opc_round_step(3, 3)}),
                        ((double[]){200, 2000, 0.2, 1}), 4, 1e-12);
    assert_true(opc_round_step(0, 5) == 1);
}

static void between_points_lie_straight_lines_and_outside_nothing(void **state)
{
    (void)state;
    const double x[] = {1, 3, 3, 7}, y[] = {10, 20, 30, 50};
    assert_doubles_near(((double[]){opc_interpolate(4, x, y, 1), opc_interpolate(4, x, y, 2.5),
                                    opc_interpolate(4, x, y, 3), opc_interpolate(4, x, y, 4),
                                    opc_interpolate(4, x, y, 7)}),
                        ((double[]){10, 17.5, 20, 35, 50}), 5, 1e-12);
    assert_true(isnan(opc_interpolate(4, x, y, 0.9)) && isnan(opc_interpolate(4, x, y, 7.1)));
    assert_true(isnan(opc_interpolate(0, x, y, 1)));
}

static void mean_and_deviation_are_those_of_a_sample(void **state)
{
    (void)state;
    const double v[] = {2, 4, 4, 4, 5, 5, 7, 9}; /* squares around 5 sum up to 32 */
    assert_true(opc_mean(8, v) == 5);
    assert_doubles_near(((double[]){opc_deviation(8, v)}), ((double[]){sqrt(32.0 / 7)}), 1, 1e-15);
    assert_true(opc_deviation(1, v) == 0);
}

/* n = 8 leaves the middle four; n = 5 counts the second and fourth 0.75 each beside the third. */
static void interquartile_mean_is_the_mean_of_the_middle_half(void **state)
{
    (void)state;
    double eight[] = {100, 1, 3, 2, -50, 4, 7, 0}; /* the middle: 1, 2, 3, 4 */
    double five[] = {9, 1, 2, 100, 3};             /* (0.75 * 2 + 3 + 0.75 * 9) / 2.5 */
    double two[] = {3, 1}, one[] = {7};
    assert_doubles_near(
        ((double[]){opc_iqm(8, eight), opc_iqm(5, five), opc_iqm(2, two), opc_iqm(1, one)}),
        ((double[]){2.5, 4.5, 2, 7}), 4, 1e-15);
}

/* Where two numbers change places nothing jumps. */
static void repeated_numbers_count_as_often_as_they_are_there(void **state)
{
    (void)state;
    const double v[] = {1, 2, 4, 9};
    double all[] = {1, 1, 1, 4, 9, 9, 9, 9};
    assert_true(opc_iqm_repeated(4, v, (int[]){3, 0, 1, 4}) == opc_iqm(8, all));
    assert_true(opc_iqm_repeated(4, v, NULL) == 3);
    assert_true(isnan(opc_iqm_repeated(4, v, (int[]){0, 0, 0, 0})));
}

static void interquartile_mean_is_continuous(void **state)
{
    (void)state;
    for (int n = 3; n < 9; n++) {
        double a[] = {5, 2, 8, 1, 9, 3, 7, 4}, b[] = {5, 2, 8, 1, 9, 3, 7, 4};
        a[0] = 3 - 1e-9, b[0] = 3 + 1e-9;
        const double apart = opc_iqm(n, a) - opc_iqm(n, b);
        assert_true(apart <= 0 && apart > -1e-8);
    }
}

static void improvement_counts_pairs_and_then_tasks(void **state)
{
    (void)state;
    /* task 0: of 2 x 3 pairs 3 are won, 1 is equal: 3.5 / 6; task 1: 1 of 1; task 2 lacks y. */
    const double x0[] = {3, 5}, x1[] = {1}, x2[] = {4}, y0[] = {1, 3, 9}, y1[] = {0};
    const struct opc_scores x = {3, (int[]){2, 1, 1}, (const double *[]){x0, x1, x2}};
    const struct opc_scores y = {3, (int[]){3, 1, 0}, (const double *[]){y0, y1, NULL}};
    struct opc_rng rng = opc_rng_stream(1, OPC_USE_STUDY, 0, 0);
    struct opc_interval xy, yx;
    struct opc_err err;
    assert_ok(opc_improvement(&x, &y, 500, &rng, &xy, &err), &err);
    assert_ok(opc_improvement(&y, &x, 500, &rng, &yx, &err), &err);
    assert_doubles_near(((double[]){xy.middle, yx.middle}),
                        ((double[]){(3.5 / 6 + 1) / 2, (2.5 / 6) / 2}), 2, 1e-15);
    /* Task 1 is always won; task 0 comes out anywhere from lost to won. */
    assert_true(xy.low >= 0.5 && xy.low < xy.middle && xy.high > xy.middle && xy.high <= 1);
}

static void nothing_to_compare_is_nan(void **state)
{
    (void)state;
    const double v[] = {1};
    const struct opc_scores some = {1, (int[]){1}, (const double *[]){v}};
    const struct opc_scores none = {1, (int[]){0}, (const double *[]){NULL}};
    struct opc_rng rng = opc_rng_stream(1, OPC_USE_STUDY, 0, 0);
    struct opc_interval out;
    struct opc_err err;
    assert_ok(opc_improvement(&some, &none, 0, &rng, &out, &err), &err);
    assert_true(isnan(out.middle) && isnan(out.low) && isnan(out.high));
    assert_ok(opc_iqm_interval(&none, 0, &rng, &out, &err), &err);
    assert_true(isnan(out.middle) && isnan(out.low) && isnan(out.high));
    assert_ok(opc_iqm_interval(&some, 0, &rng, &out, &err), &err);
    assert_true(out.middle == 1 && out.low == 1 && out.high == 1);
}

/* IQMs 3, 10 and 20, the third task without runs. 3 and 10 have the variance 7^2 / 2, of which
 * their squared standard errors, 1/6 and 0, explain 1/12; the others are equal. */
static void contrasts_and_spreads_are_of_means_by_task(void **state)
{
    (void)state;
    const double a[] = {1, 3, 5, 3}, b[] = {10, 10}, c[] = {20, 20}, d[] = {20};
    const struct opc_scores x = {4, (int[]){4, 2, 0, 2}, (const double *[]){a, b, NULL, c}};
    const struct opc_scores two = {2, (int[]){4, 2}, (const double *[]){a, b}};
    const struct opc_scores same = {2, (int[]){2, 1}, (const double *[]){c, d}};
    const struct opc_scores one = {1, (int[]){2}, (const double *[]){c}};
    struct opc_rng rng = opc_rng_stream(1, OPC_USE_STUDY, 0, 0);
    struct opc_interval out;
    struct opc_err err;
    assert_ok(opc_iqm_contrast(&x, (double[]){1, -2, 100, 0.5}, 0, &rng, &out, &err), &err);
    assert_doubles_near(((double[]){out.middle}), ((double[]){3 - 20 + 10}), 1, 1e-12);
    /* Only the first task varies, from 1 to 5. */
    assert_true(out.low >= -9 && out.low < -7 && out.high > -7 && out.high <= -5);
    assert_ok(opc_iqm_spread(&same, &two, 0, &rng, &out, &err), &err);
    assert_doubles_near(((double[]){out.middle}), ((double[]){sqrt(24.5 - 1 / 12.0)}), 1, 1e-12);
    assert_true(out.low > 3 && out.high < 7);
    assert_ok(opc_iqm_spread(&two, &same, 0, &rng, &out, &err), &err);
    assert_true(out.high < -3);
    /* One task has no deviation, and no runs no mean. */
    assert_ok(opc_iqm_spread(&one, &two, 0, &rng, &out, &err), &err);
    assert_true(isnan(out.middle) && isnan(out.low));
    const struct opc_scores none = {1, (int[]){0}, (const double *[]){NULL}};
    assert_ok(opc_iqm_contrast(&none, (double[]){1}, 0, &rng, &out, &err), &err);
    assert_true(isnan(out.middle) && isnan(out.high));
}

/* Two tasks far apart: as each keeps its number of runs, the interval is that inside the tasks.
 * Drawn from one pot, the share of the high task alone would move the mean by far more. */
static void bootstrap_draws_within_tasks(void **state)
{
    (void)state;
    const double a[] = {0, 1, 2, 3}, b[] = {1000, 1001, 1002, 1003};
    const struct opc_scores s = {2, (int[]){4, 4}, (const double *[]){a, b}};
    struct opc_rng one = opc_rng_stream(7, OPC_USE_STUDY, 0, 0), two = one;
    struct opc_interval first, again;
    struct opc_err err;
    assert_ok(opc_iqm_interval(&s, 0, &one, &first, &err), &err);
    assert_ok(opc_iqm_interval(&s, 2000, &two, &again, &err), &err);
    assert_same_bits(&first, &again, sizeof first);
    assert_true(first.middle == (2 + 3 + 1000 + 1001) / 4.0);
    assert_true(first.low < first.middle && first.low > first.middle - 3);
    assert_true(first.high > first.middle && first.high < first.middle + 3);
}

/* The bootstrap mean of the middle half of 40 numbers 0 .. 39: its spread, by the theory of the
 * trimmed mean, is that of the winsorized sample over half its size. */
static void interval_has_the_width_theory_gives(void **state)
{
    (void)state;
    double v[40], winsorized[40];
    for (int i = 0; i < 40; i++) {
        v[i] = i;
        winsorized[i] = i < 10 ? 10 : i > 29 ? 29 : i;
    }
    const struct opc_scores s = {1, (int[]){40}, (const double *[]){v}};
    struct opc_rng rng = opc_rng_stream(3, OPC_USE_STUDY, 0, 0);
    struct opc_interval out;
    struct opc_err err;
    assert_ok(opc_iqm_interval(&s, 4000, &rng, &out, &err), &err);
    const double want = 2 * 1.96 * opc_deviation(40, winsorized) / (0.5 * sqrt(40));
    assert_true(out.middle == 19.5);
    assert_true(fabs(out.high - out.low - want) < 0.1 * want);
}

static int make_interval(void *ctx, struct opc_err *err)
{
    struct opc_rng rng = opc_rng_stream(3, OPC_USE_STUDY, 0, 0);
    struct opc_interval out;
    OPC_TRY(opc_iqm_interval(ctx, 10, &rng, &out, err));
    OPC_TRY(opc_improvement(ctx, ctx, 10, &rng, &out, err));
    return opc_iqm_spread(ctx, ctx, 10, &rng, &out, err);
}

static void intervals_survive_lack_of_memory(void **state)
{
    (void)state;
    const double v[] = {1, 2};
    struct opc_scores s = {1, (int[]){2}, (const double *[]){v}};
    assert_survives_lack_of_memory(make_interval, &s);
}

/* Seeds that differ by as much as the means are all that these differ by. */
static void noise_of_the_means_is_no_spread(void **state)
{
    (void)state;
    const double a[] = {60, 80, 100, 120, 140}, b[] = {42, 62, 82, 102, 122};
    const double c[] = {78, 98, 118, 138, 158}, d[] = {99, 100, 101, 102, 103};
    const int n[] = {5, 5, 5};
    const struct opc_scores wide = {3, n, (const double *[]){a, b, c}};
    const struct opc_scores equal = {3, n, (const double *[]){d, d, d}};
    struct opc_rng rng = opc_rng_stream(1, OPC_USE_STUDY, 0, 0);
    struct opc_interval out;
    struct opc_err err;
    assert_ok(opc_iqm_spread(&equal, &wide, 0, &rng, &out, &err), &err);
    assert_true(out.low <= 0 && out.high > 0 && out.middle >= 0 && out.middle < 5);
}

/* Of the 252 orders of five and five runs, 1, 1 and 2 have 25, 24 and 23 pairs won. */
static void a_rank_test_counts_orders(void **state)
{
    (void)state;
    double p[5];
    struct opc_err err;
    assert_ok(opc_rank_chance(5, 5, 25, &p[0], &err), &err);
    assert_ok(opc_rank_chance(5, 5, 23, &p[1], &err), &err);
    assert_ok(opc_rank_chance(5, 5, 23.5, &p[2], &err), &err);
    assert_ok(opc_rank_chance(2, 3, 5, &p[3], &err), &err);
    assert_ok(opc_rank_chance(2, 3, 0, &p[4], &err), &err);
    assert_doubles_near(p, ((double[]){1 / 252.0, 4 / 252.0, 4 / 252.0, 0.2, 1}), 5, 1e-12);
}

/* The textbook's 8 of 10, and none of 10, whose interval is not empty. */
static void a_share_has_wilson_s_interval(void **state)
{
    (void)state;
    const struct opc_interval eight = opc_share_interval(8, 10), none = opc_share_interval(0, 10);
    assert_true(fabs(eight.low - 0.4901625) < 1e-7 && fabs(eight.high - 0.9433178) < 1e-7);
    assert_true(eight.middle == 0.8);
    assert_true(fabs(none.low) < 1e-15 && fabs(none.high - 0.2775328) < 1e-7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_those_of_numpy),
        cmocka_unit_test(smoothing_is_a_mean_over_the_window),
        cmocka_unit_test(steps_between_ticks_are_round),
        cmocka_unit_test(between_points_lie_straight_lines_and_outside_nothing),
        cmocka_unit_test(mean_and_deviation_are_those_of_a_sample),
        cmocka_unit_test(interquartile_mean_is_the_mean_of_the_middle_half),
        cmocka_unit_test(repeated_numbers_count_as_often_as_they_are_there),
        cmocka_unit_test(interquartile_mean_is_continuous),
        cmocka_unit_test(improvement_counts_pairs_and_then_tasks),
        cmocka_unit_test(nothing_to_compare_is_nan),
        cmocka_unit_test(contrasts_and_spreads_are_of_means_by_task),
        cmocka_unit_test(noise_of_the_means_is_no_spread),
        cmocka_unit_test(a_rank_test_counts_orders),
        cmocka_unit_test(bootstrap_draws_within_tasks),
        cmocka_unit_test(interval_has_the_width_theory_gives),
        cmocka_unit_test(a_share_has_wilson_s_interval),
        cmocka_unit_test(intervals_survive_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
