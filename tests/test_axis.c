/* SPDX-License-Identifier: MIT */
#include "plot/axis.h"

#include "test.h"

static void places_are_linear_or_logarithmic(void **state)
{
    (void)state;
    struct opc_axis a = opc_axis_make(2, 6, false, false, 5);
    a.from = 100, a.to = 0; /* upwards */
    assert_true(opc_axis_place(&a, 2) == 100 && opc_axis_place(&a, 5) == 25);
    assert_true(opc_axis_shows(&a, 6) && !opc_axis_shows(&a, 6.1));
    assert_false(opc_axis_shows(&a, (double)NAN));
    struct opc_axis l = opc_axis_make(0.01, 100, true, false, 5);
    l.from = 0, l.to = 80;
    assert_doubles_near(((double[]){opc_axis_place(&l, 0.01), opc_axis_place(&l, 10)}),
                        ((double[]){0, 60}), 2, 1e-12);
    assert_true(isnan(opc_axis_place(&l, 0)) && isnan(opc_axis_place(&l, -1)));
    assert_false(opc_axis_shows(&l, 0));
}

static void ranges_are_widened_to_round_numbers(void **state)
{
    (void)state;
    const struct opc_axis a = opc_axis_make(-21, 987, false, true, 5);
    const struct opc_axis l = opc_axis_make(0.03, 700, true, true, 5);
    const struct opc_axis near = opc_axis_make(3, 17, true, true, 5);
    assert_doubles_near(((double[]){a.min, a.max, l.min, l.max, near.min, near.max}),
                        ((double[]){-100, 1000, 0.01, 1000, 2, 20}), 6, 1e-9);
}

/* One value, none, and what is no range at all still give an axis to draw on. */
static void every_range_can_be_drawn(void **state)
{
    (void)state;
    const double nan = (double)NAN, end = HUGE_VAL;
    const double range[][2] = {{5, 5}, {0, 0}, {end, -end}, {nan, nan}, {-end, end}, {1e6, 1e6}};
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        for (int log = 0; log < 2; log++)
            for (int widen = 0; widen < 2; widen++) {
                const struct opc_axis a = opc_axis_make(range[i][0], range[i][1], log, widen, 5);
                struct opc_ticks t;
                assert_true(isfinite(a.min) && isfinite(a.max) && a.min < a.max);
                assert_true(!log || a.min > 0);
                opc_axis_ticks(&a, 5, &t);
                assert_true(t.n >= 1 && t.n <= OPC_TICKS);
            }
}

static void assert_ticks_of(struct opc_axis a, int about, const char *want)
{
    struct opc_ticks t;
    char all[600] = "";
    opc_axis_ticks(&a, about, &t);
    for (int i = 0; i < t.n; i++) {
        strcat(all, i ? " " : "");
        strcat(all, t.text[i]);
        assert_true(opc_axis_shows(&a, t.at[i]));
    }
    assert_string_equal(all, want);
}

static void assert_ticks(double min, double max, bool log, int about, const char *want)
{
    assert_ticks_of(opc_axis_make(min, max, log, false, about), about, want);
}

static void assert_whole_ticks(double min, double max, int about, const char *want)
{
    struct opc_axis a = opc_axis_make(min, max, false, false, about);
    a.whole = true;
    assert_ticks_of(a, about, want);
}

static void ticks_are_written_alike(void **state)
{
    (void)state;
    assert_ticks(-1, 1, false, 5, "−1.0 −0.5 0 0.5 1.0");
    assert_ticks(0, 1000, false, 5, "0 200 400 600 800 1000");
    assert_ticks(0, 30000, false, 4, "0 10k 20k 30k");
    assert_ticks(0, 2.6e6, false, 6, "0 0.5M 1.0M 1.5M 2.0M 2.5M");
    assert_ticks(0, 4e-5, false, 4, "0 1×10⁻⁵ 2×10⁻⁵ 3×10⁻⁵ 4×10⁻⁵");
    assert_ticks(0.013, 0.041, false, 4, "0.02 0.03 0.04");
    assert_ticks(1e-3, 1e2, true, 6, "10⁻³ 10⁻² 10⁻¹ 10⁰ 10¹ 10²");
    assert_ticks(1e-6, 1e4, true, 6, "10⁻⁶ 10⁻⁴ 10⁻² 10⁰ 10² 10⁴");
    assert_ticks(2, 9, true, 6, "2 5");
    assert_ticks(1, 3, false, 4, "1.0 1.5 2.0 2.5 3.0");
    assert_whole_ticks(1, 3, 4, "1 2 3");
    assert_whole_ticks(0, 1000, 5, "0 200 400 600 800 1000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_linear_or_logarithmic),
        cmocka_unit_test(ranges_are_widened_to_round_numbers),
        cmocka_unit_test(every_range_can_be_drawn),
        cmocka_unit_test(ticks_are_written_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
