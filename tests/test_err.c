/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <errno.h>

static void fail_fills_code_and_text_and_returns_the_code(void **state)
{
    (void)state;
    struct opc_err err;
    assert_int_equal(opc_fail(&err, OPC_EUSER, "%d is not %s", 3, "four"), OPC_EUSER);
    assert_int_equal(err.code, OPC_EUSER);
    assert_string_equal(err.text, "3 is not four");
    assert_int_equal(opc_fail(NULL, OPC_EIO, "nobody listens"), OPC_EIO);
}

static void within_adds_where_it_was_on_the_way_up(void **state)
{
    (void)state;
    struct opc_err err;
    opc_fail(&err, OPC_EUSER, "discount = 1.5 is outside [0, 1]");
    assert_int_equal(opc_within(&err, "%s:%d", "hopper.yaml", 12), OPC_EUSER);
    assert_int_equal(err.code, OPC_EUSER);
    assert_string_equal(err.text, "hopper.yaml:12: discount = 1.5 is outside [0, 1]");
    assert_int_equal(opc_within(NULL, "somewhere"), OPC_EBUG);
}

static void a_message_may_quote_the_one_it_replaces(void **state)
{
    (void)state;
    struct opc_err err;
    opc_fail(&err, OPC_EIO, "inner");
    opc_fail(&err, OPC_EENV, "outer because of %s", err.text);
    assert_string_equal(err.text, "outer because of inner");
}

/* What the message says behind the system's reason. */
static const char *advice(const struct opc_err *err, int number)
{
    const char *reason = strerror(number), *at = strstr(err->text, reason);
    assert_mentions(err, reason);
    return at ? at + strlen(reason) : "";
}

static void long_messages_are_cut_and_terminated(void **state)
{
    (void)state;
    char much[3000];
    memset(much, 'x', sizeof much - 1);
    much[sizeof much - 1] = '\0';
    struct opc_err err;
    memset(&err, 1, sizeof err);
    opc_fail(&err, OPC_EIO, "%s", much);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    opc_within(&err, "%s", much);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    /* the reason is worth more than the end of a path */
    opc_fail_errno(&err, ENOSPC, "cannot write %s", much);
    assert_true(strlen(advice(&err, ENOSPC)) > 0);
}

static void refused_system_calls_say_why_and_what_to_do(void **state)
{
    (void)state;
    struct opc_err err;
    char denied[sizeof err.text];
    assert_fails(opc_fail_errno(&err, EACCES, "cannot write %s", "a/b"), OPC_EIO, &err,
                 "cannot write a/b: ");
    snprintf(denied, sizeof denied, "%s", advice(&err, EACCES));
    assert_true(strlen(denied) > 0);
    assert_fails(opc_fail_errno(&err, ENOSPC, "cannot write %s", "a/b"), OPC_EIO, &err,
                 "cannot write a/b: ");
    assert_string_not_equal(advice(&err, ENOSPC), denied);
    assert_fails(opc_fail_errno(&err, EINVAL, "cannot"), OPC_EIO, &err, "cannot: ");
    assert_string_equal(advice(&err, EINVAL), ""); /* the reason says it all */
    assert_int_equal(opc_fail_errno(NULL, EIO, "nobody listens"), OPC_EIO);
}

static void every_code_has_its_exit_status(void **state)
{
    (void)state;
    static const int STATUS[] = {
        [OPC_OK] = 0,        [OPC_EUSER] = 2,    [OPC_ENOMEM] = 1,    [OPC_EIO] = 1,
        [OPC_EABSENT] = 1,   [OPC_EDAMAGED] = 3, [OPC_EDIVERGED] = 4, [OPC_EENV] = 5,
        [OPC_ESTOPPED] = 75, [OPC_EBUG] = 1,     [OPC_EREFUSED] = 4};
    for (int code = OPC_OK; code <= OPC_EREFUSED; code++)
        assert_int_equal(opc_exit_status(code), STATUS[code]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fail_fills_code_and_text_and_returns_the_code),
        cmocka_unit_test(within_adds_where_it_was_on_the_way_up),
        cmocka_unit_test(a_message_may_quote_the_one_it_replaces),
        cmocka_unit_test(long_messages_are_cut_and_terminated),
        cmocka_unit_test(refused_system_calls_say_why_and_what_to_do),
        cmocka_unit_test(every_code_has_its_exit_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
