/* SPDX-License-Identifier: MIT */
/* Structs that start with their size: what an older and a newer caller get. */
#include "base/sized.h"
#include "opc/opc.h"
#include "test.h"

struct old { /* as a program was compiled with it */
    size_t size;
    long a;
};
struct now { /* as the library knows it */
    size_t size;
    long a, b;
    double c;
};
struct later { /* as a program compiled with a later version has it */
    size_t size;
    long a, b;
    double c, d;
};

static void members_that_an_older_caller_does_not_know_are_zero(void **state)
{
    (void)state;
    const struct old given = {OPC_SIZED(struct old), .a = 7};
    struct now whole = {.b = 1, .c = 2};
    struct opc_err err;
    assert_ok(opc_sized_read(&given, "now", &whole, sizeof whole, &err), &err);
    assert_int_equal(whole.a, 7);
    assert_int_equal(whole.b, 0);
    assert_true(whole.c == 0);
    assert_int_equal(whole.size, sizeof whole);
}

static void a_newer_caller_is_understood_until_it_asks_for_something_new(void **state)
{
    (void)state;
    struct later given = {OPC_SIZED(struct later), .a = 7, .c = 3};
    struct now whole;
    struct opc_err err;
    assert_ok(opc_sized_read(&given, "now", &whole, sizeof whole, &err), &err);
    assert_true(whole.a == 7 && whole.c == 3);
    given.d = 1;
    assert_fails(opc_sized_read(&given, "now", &whole, sizeof whole, &err), OPC_EUSER, &err,
                 "newer");
}

static void a_size_that_cannot_be_is_refused(void **state)
{
    (void)state;
    struct now given = {.a = 7}, whole;
    struct opc_err err;
    static const size_t WRONG[] = {0, 1, sizeof(size_t), 1 << 20, (size_t)-1};
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        given.size = WRONG[i];
        assert_fails(opc_sized_read(&given, "now", &whole, sizeof whole, &err), OPC_EUSER, &err,
                     "sizeof(struct now)");
        assert_int_equal(opc_sized_check(&given, "now", sizeof given, &err), OPC_EUSER);
    }
    assert_int_equal(opc_sized_read(NULL, "now", &whole, sizeof whole, &err), OPC_EUSER);
    assert_ok(opc_sized_check(NULL, "now", sizeof given, &err), &err);
}

static void only_what_the_caller_knows_is_written(void **state)
{
    (void)state;
    const struct now whole = {.size = 1, .a = 1, .b = 2, .c = 3};
    struct {
        struct old given;
        int guard;
    } old = {{OPC_SIZED(struct old), .a = 9}, 77};
    opc_sized_write(&whole, sizeof whole, &old.given);
    assert_int_equal(old.given.size, sizeof(struct old));
    assert_true(old.given.a == 1 && old.guard == 77);
    struct later later = {OPC_SIZED(struct later), .d = 5};
    opc_sized_write(&whole, sizeof whole, &later);
    assert_int_equal(later.size, sizeof later);
    assert_true(later.b == 2 && later.c == 3 && later.d == 0);
    opc_sized_write(&whole, sizeof whole, NULL);
}

/* A member appended after padding would lie in bytes that older callers never set. */
#define assert_no_padding(type, last)                                                              \
    do {                                                                                           \
        static struct type s;                                                                      \
        assert_int_equal(offsetof(struct type, size), 0);                                          \
        assert_int_equal(offsetof(struct type, last) + sizeof s.last, sizeof s);                   \
    } while (0)
static void structs_with_a_size_end_with_their_last_member(void **state)
{
    (void)state;
    assert_no_padding(opc_agent_args, mean);
    assert_no_padding(opc_agent_report, value);
    assert_no_padding(opc_ensemble_options, seed);
    assert_no_padding(opc_evaluation, length);
    assert_no_padding(opc_feed, stop_ctx);
    assert_no_padding(opc_fit_plan, progress);
    assert_no_padding(opc_fit_report, log_std_max);
    assert_no_padding(opc_ilc_plan, ctx);
    assert_no_padding(opc_imagine_plan, end_with_reference);
    assert_no_padding(opc_imagine_report, index);
    assert_no_padding(opc_imagined_shape, transitions);
    assert_no_padding(opc_train_plan, skip_damaged);
    assert_no_padding(opc_transition_options, reward_ctx);
}

/* The functions themselves ask. */
static void a_forgotten_size_is_found_by_the_first_call(void **state)
{
    (void)state;
    const struct opc_train_plan plan = {.threads = 1};
    const struct opc_agent_args args = {.obs = 1, .act = 1};
    const struct opc_transition_options options = {.name = "replay"};
    struct opc_config *config;
    struct opc_transition *transition;
    struct opc_agent *agent;
    struct opc_err err;
    assert_ok(opc_config_create(&config, &err), &err);
    assert_fails(opc_train(config, &plan, &err), OPC_EUSER, &err, "opc_train_plan");
    assert_fails(opc_agent_create("sac", &args, &agent, &err), OPC_EUSER, &err, "opc_agent_args");
    assert_fails(opc_transition_create(&options, &transition, &err), OPC_EUSER, &err,
                 "opc_transition_options");
    opc_config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_that_an_older_caller_does_not_know_are_zero),
        cmocka_unit_test(a_newer_caller_is_understood_until_it_asks_for_something_new),
        cmocka_unit_test(a_size_that_cannot_be_is_refused),
        cmocka_unit_test(only_what_the_caller_knows_is_written),
        cmocka_unit_test(structs_with_a_size_end_with_their_last_member),
        cmocka_unit_test(a_forgotten_size_is_found_by_the_first_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
