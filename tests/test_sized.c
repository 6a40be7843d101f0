/* SPDX-License-Identifier: MIT */
/* Structs that start with their size: what an older and a newer caller get. */
#include "base/sized.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_that_an_older_caller_does_not_know_are_zero),
        cmocka_unit_test(a_newer_caller_is_understood_until_it_asks_for_something_new),
        cmocka_unit_test(a_size_that_cannot_be_is_refused),
        cmocka_unit_test(only_what_the_caller_knows_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
