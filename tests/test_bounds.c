/* SPDX-License-Identifier: MIT */
/* Bounds from the recording: their width, what they refuse, and that they depend on the recording
 * alone. */
#include "opc/bounds.h"

#include "test.h"

#include <math.h>

enum { OBS = 2, ACT = 1 };

/* Two episodes: entry 0 is between 0 and 4, entry 1 is always 3, rewards are between -1 and 1. */
static void record(struct opc_episodes *past, int b)
{
    static const double STATE[2][3][OBS] = {{{1, 3}, {0, 3}, {2, 3}}, {{3, 3}, {2, 3}, {4, 3}}};
    static const double REWARD[2][2] = {{0.5, -1}, {1, 0}};
    const float action = 0.25f;
    struct opc_err err;
    assert_ok(opc_episodes_begin(past, STATE[b][0], &err), &err);
    for (int t = 0; t < 2; t++)
        assert_ok(opc_episodes_append(past, &action, REWARD[b][t], STATE[b][t + 1], t == 1, &err),
                  &err);
    opc_episodes_close(past);
}

static void bounds_are_the_recorded_range_and_a_margin(void **state)
{
    (void)state;
    struct opc_episodes *past;
    struct opc_bounds *bounds, *once;
    struct opc_err err;
    const float step[][OBS] = {{-0.99f, 3}, {-1.01f, 3}, {5, 3}, {5.01f, 3}, {2, 3.001f}, {NAN, 3}};
    const bool out_of[] = {false, true, false, true, false, false};
    assert_ok(opc_episodes_create(OBS, ACT, 10, 10, &past, &err), &err);
    assert_ok(opc_bounds_create(OBS, ACT, &bounds, &err), &err);
    assert_ok(opc_bounds_create(OBS, ACT, &once, &err), &err);

    /* Nothing was recorded: everything is within bounds. */
    opc_bounds_update(bounds, past);
    for (int i = 0; i < 6; i++)
        assert_true(opc_bounds_contain(bounds, step[i]));
    assert_true(opc_bounds_clip_reward(bounds, 1e6f) == 1e6f);

    record(past, 0);
    opc_bounds_update(bounds, past);
    assert_true(bounds->low[0] == -0.5f && bounds->high[0] == 2.5f);
    record(past, 1);
    opc_bounds_update(bounds, past);
    assert_true(bounds->low[0] == -1 && bounds->high[0] == 5);
    assert_true(isinf(bounds->low[1]) && isinf(bounds->high[1])); /* it never moved */
    assert_true(fabsf(bounds->reward_low + 1.2f) < 1e-6f);
    assert_true(fabsf(bounds->reward_high - 1.2f) < 1e-6f);
    for (int i = 0; i < 6; i++)
        assert_int_equal(opc_bounds_contain(bounds, step[i]),
                         !out_of[i]); /* NaN is for whoever looks for divergence */
    assert_true(opc_bounds_clip_reward(bounds, 1e6f) == bounds->reward_high);
    assert_true(opc_bounds_clip_reward(bounds, -1e6f) == bounds->reward_low);
    assert_true(opc_bounds_clip_reward(bounds, 0.75f) == 0.75f);

    /* A run that was resumed sees all at once. */
    opc_bounds_update(once, past);
    assert_same_bits(once->low, bounds->low, OBS * sizeof(float));
    assert_same_bits(once->high, bounds->high, OBS * sizeof(float));
    assert_true(once->reward_low == bounds->reward_low && once->reward_high == bounds->reward_high);
    opc_bounds_destroy(bounds);
    opc_bounds_destroy(once);
    opc_episodes_destroy(past);
}

static int create_bounds(void *ctx, struct opc_err *err)
{
    struct opc_bounds *bounds;
    (void)ctx;
    const int code = opc_bounds_create(OBS, ACT, &bounds, err);
    if (!code)
        opc_bounds_destroy(bounds);
    return code;
}

static void lack_of_memory_is_an_error(void **state)
{
    (void)state;
    assert_survives_lack_of_memory(create_bounds, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_the_recorded_range_and_a_margin),
        cmocka_unit_test(lack_of_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
