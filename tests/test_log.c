/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include "base/pool.h"
#include "test.h"

struct heard {
    int lines, inside, mixed;
    enum opc_level level;
    char last[2000];
};

static void hear(void *ctx, enum opc_level level, const char *line)
{
    struct heard *h = ctx;
    h->mixed |= h->inside++; /* two threads at a time would meet here */
    h->lines++;
    h->level = level;
    snprintf(h->last, sizeof h->last, "%s", line);
    h->inside--;
}

static void nothing_is_heard_without_a_sink(void **state)
{
    (void)state;
    struct heard h = {0};
    opc_log(OPC_LEVEL_WARN, "to nobody");
    opc_log_to(hear, &h);
    opc_log_to(NULL, NULL);
    opc_log(OPC_LEVEL_WARN, "to nobody");
    assert_int_equal(h.lines, 0);
}

static void the_sink_gets_level_and_line(void **state)
{
    (void)state;
    struct heard h = {0};
    opc_log_to(hear, &h);
    opc_log(OPC_LEVEL_WARN, "epoch %d of %s", 3, "hopper");
    assert_int_equal(h.level, OPC_LEVEL_WARN);
    assert_string_equal(h.last, "epoch 3 of hopper");
    char much[3000];
    memset(much, 'x', sizeof much - 1);
    much[sizeof much - 1] = '\0';
    opc_log(OPC_LEVEL_DEBUG, "%s", much);
    assert_int_equal(h.level, OPC_LEVEL_DEBUG);
    assert_int_equal(strlen(h.last), 1000);
    opc_log_to(NULL, NULL);
}

static void speak(void *ctx, int first, int end, int worker)
{
    (void)ctx;
    (void)worker;
    for (int i = first; i < end; i++)
        opc_log(OPC_LEVEL_INFO, "item %d", i);
}

static void lines_of_many_threads_do_not_mix(void **state)
{
    (void)state;
    struct heard h = {0};
    struct opc_pool *pool;
    struct opc_err err;
    assert_ok(opc_pool_create(4, &pool, &err), &err);
    opc_log_to(hear, &h);
    opc_pool_each(pool, 1000, 10, speak, NULL);
    opc_log_to(NULL, NULL);
    opc_pool_destroy(pool);
    assert_int_equal(h.lines, 1000);
    assert_int_equal(h.mixed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_heard_without_a_sink),
        cmocka_unit_test(the_sink_gets_level_and_line),
        cmocka_unit_test(lines_of_many_threads_do_not_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
