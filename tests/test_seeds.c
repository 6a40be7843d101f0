/* SPDX-License-Identifier: MIT */
#include "study/exhibit/seeds.h"

#include "test.h"

/* An interval from 0.4 to 1 around 0.8 reaches 0.1 beyond 1/2 on a distance of 0.3. */
static void an_interval_shrinks_with_the_root_of_the_seeds(void **state)
{
    (void)state;
    const struct opc_interval d = {0.8, 0.4, 1};
    assert_true(opc_seeds_to_clear(&d, 0.5, 5, 0) == 9); /* 5 (4 / 3)^2 = 8.9 */
    /* To the other side, the other end counts: 5 (0.2 / 0.1)^2. */
    assert_true(opc_seeds_to_clear(&d, 0.9, 5, 0) == 20);
    /* With the number that follows the interval does clear the level, with one less it does not. */
    assert_true(0.8 - 0.4 * sqrt(5.0 / 9) > 0.5 && 0.8 - 0.4 * sqrt(5.0 / 8) < 0.5);
}

/* What has not decided with n seeds does not with n, and rules ask for a least number. */
static void there_are_more_than_today_and_as_many_as_needed(void **state)
{
    (void)state;
    assert_true(opc_seeds_needed(5, 0, 1, 100) == 6);
    assert_true(opc_seeds_needed(2, 4, 1, 100) == 4);
    assert_true(opc_seeds_needed(5, 0, 1, 0) == HUGE_VAL);
    const struct opc_interval even = {0.5, 0.1, 0.9};
    assert_true(opc_seeds_to_clear(&even, 0.5, 5, 0) == HUGE_VAL);
}

/* 3 of 5: two fewer of seven are below half, while 6 of 8 are three more. */
static void a_share_leaves_the_range_between_its_limits(void **state)
{
    (void)state;
    assert_int_equal(opc_seeds_to_solve(3, 5), 7);
    assert_int_equal(opc_seeds_to_solve(1, 2), 3);
    assert_int_equal(opc_seeds_to_solve(7, 10), 12); /* 9 of 12 */
}

static void of_several_the_last_decides_unless_one_opposes(void **state)
{
    (void)state;
    struct opc_seeds_all all = {0};
    opc_seeds_join(&all, 7, true);
    opc_seeds_join(&all, 12, true);
    assert_true(opc_seeds_joined(&all) == 12);
    opc_seeds_join(&all, 40, false);
    assert_true(opc_seeds_joined(&all) == 40);
    opc_seeds_join(&all, 30, false);
    opc_seeds_join(&all, 99, true);
    assert_true(opc_seeds_joined(&all) == 30);
}

/* Three runs are the fewest, and none may be missing. */
static void few_runs_decide_nothing(void **state)
{
    (void)state;
    char text[OPC_SEEDS_TEXT];
    opc_seeds_say_unable(0, 2, text);
    assert_string_equal(text, "; no fewer than 3 seeds instead of 2 could decide it");
    opc_seeds_say_unable(0, 3, text);
    assert_string_equal(text, "");
    opc_seeds_say_unable(1, 9, text);
    assert_contains(text, "while 1 run is missing");
}

static void three_quarters_support_and_less_than_half_do_not(void **state)
{
    (void)state;
    assert_int_equal(opc_seeds_verdict(3, 4), OPC_VERDICT_SUPPORTED);
    assert_int_equal(opc_seeds_verdict(3, 5), OPC_VERDICT_UNDECIDED);
    assert_int_equal(opc_seeds_verdict(2, 4), OPC_VERDICT_UNDECIDED);
    assert_int_equal(opc_seeds_verdict(2, 5), OPC_VERDICT_NOT_SUPPORTED);
}

static void sentences_tell_even_from_far(void **state)
{
    (void)state;
    char text[OPC_SEEDS_TEXT];
    opc_seeds_say(9, 5, "repeats", NULL, text);
    assert_contains(text, "9 repeats instead of 5");
    opc_seeds_say(1001, 5, "seeds", NULL, text);
    assert_contains(text, "more than 1000 seeds");
    opc_seeds_say(HUGE_VAL, 5, "seeds", NULL, text);
    assert_contains(text, "equal");
    opc_seeds_say(HUGE_VAL, 5, "seeds", "it is the limit", text);
    assert_contains(text, "it is the limit");
    opc_seeds_say_missing(1, text);
    assert_contains(text, "1 run is missing");
    opc_seeds_say_missing(2, text);
    assert_contains(text, "2 runs are missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_interval_shrinks_with_the_root_of_the_seeds),
        cmocka_unit_test(there_are_more_than_today_and_as_many_as_needed),
        cmocka_unit_test(a_share_leaves_the_range_between_its_limits),
        cmocka_unit_test(of_several_the_last_decides_unless_one_opposes),
        cmocka_unit_test(few_runs_decide_nothing),
        cmocka_unit_test(three_quarters_support_and_less_than_half_do_not),
        cmocka_unit_test(sentences_tell_even_from_far),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
