/* SPDX-License-Identifier: MIT */
#include "study/stats.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_those_of_numpy),
        cmocka_unit_test(smoothing_is_a_mean_over_the_window),
        cmocka_unit_test(steps_between_ticks_are_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
