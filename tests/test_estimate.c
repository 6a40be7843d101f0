/* SPDX-License-Identifier: MIT */
/* Time left: from the phases of the first epoch, from whole epochs, and what it is called. */
#include "run/estimate.h"
#include "test.h"

#include <math.h>

#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-9)

/* The first of ten epochs of 100 steps, after `act` seconds of acting. */
static struct opc_progress first_epoch(double act)
{
    struct opc_progress p = {.epoch = 1, .epochs = 10, .steps_per_epoch = 100, .step = 100};
    p.seconds[OPC_PHASE_RANDOM] = 1000; /* is not repeated, and does not count */
    p.seconds[OPC_PHASE_ACT] = act;
    return p;
}

static void nothing_is_known_in_the_random_phase(void **state)
{
    (void)state;
    const struct opc_progress p = {.epochs = 10, .seconds = {5}};
    const struct opc_estimate e = opc_estimate(&p, 0);
    assert_true(isnan(e.left));
    assert_true(e.rough);
    assert_true(e.share == 0);
}

/* 2 s of acting, and 3 s for 30 % of the fit: the fit takes 10 s, the epoch at least 12 s. */
static void phases_to_come_make_it_a_bound(void **state)
{
    (void)state;
    struct opc_progress p = first_epoch(2);
    p.phase = OPC_PHASE_FIT;
    p.share = 0.3;
    p.seconds[OPC_PHASE_FIT] = 3;
    const struct opc_estimate e = opc_estimate(&p, 0);
    assert_true(e.bound && e.rough);
    assert_near(e.epoch, 12);
    assert_near(e.left, 7 + 9 * 12);
    assert_true(e.share < 0.05);
}

/* 50 % of the improvement took 4 s after 6 s of all else: 14 s an epoch, and it is no bound. */
static void the_last_long_phase_makes_it_an_estimate(void **state)
{
    (void)state;
    struct opc_progress p = first_epoch(2);
    p.phase = OPC_PHASE_IMPROVE;
    p.share = 0.5;
    p.seconds[OPC_PHASE_FIT] = 4;
    p.seconds[OPC_PHASE_IMPROVE] = 4;
    const struct opc_estimate e = opc_estimate(&p, 0);
    assert_true(!e.bound && e.rough);
    assert_near(e.epoch, 14);
    assert_near(e.left, 4 + 9 * 14);
    assert_near(e.share, 10.0 / 14 / 10);
}

/* The original MBPO improves between steps: after 25 of 100 steps and 5 s an epoch takes 20 s. */
static void steps_tell_where_phases_take_turns(void **state)
{
    (void)state;
    struct opc_progress p = first_epoch(1);
    p.step = 25;
    p.phase = OPC_PHASE_IMPROVE;
    p.share = 0.9; /* of this improvement only */
    p.seconds[OPC_PHASE_IMPROVE] = 4;
    const struct opc_estimate e = opc_estimate(&p, 0);
    assert_true(!e.bound && e.rough);
    assert_near(e.epoch, 20);
    assert_near(e.left, 15 + 9 * 20);
}

static void a_whole_epoch_is_what_the_others_take(void **state)
{
    (void)state;
    struct opc_progress p = first_epoch(3);
    p.epoch = 4;
    p.phase = OPC_PHASE_FIT;
    struct opc_estimate e = opc_estimate(&p, 12);
    assert_true(!e.bound && !e.rough);
    assert_near(e.left, 9 + 6 * 12);
    assert_near(e.share, 3.25 / 10);
    /* One that takes longer than the last is never more than done. */
    p.seconds[OPC_PHASE_FIT] = 50;
    e = opc_estimate(&p, 12);
    assert_true(e.left >= 6 * 12 && e.share < 0.4);
    p.epoch_done = true;
    p.epoch = 10;
    e = opc_estimate(&p, 12);
    assert_true(e.left == 0 && e.share == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known_in_the_random_phase),
        cmocka_unit_test(phases_to_come_make_it_a_bound),
        cmocka_unit_test(the_last_long_phase_makes_it_an_estimate),
        cmocka_unit_test(steps_tell_where_phases_take_turns),
        cmocka_unit_test(a_whole_epoch_is_what_the_others_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
