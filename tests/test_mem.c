/* SPDX-License-Identifier: MIT */
#include "opc/mem.h"

#include "test.h"

#include <signal.h>
#include <sys/wait.h>

static void blocks_are_zeroed_and_start_on_a_cache_line(void **state)
{
    (void)state;
    for (size_t n = 0; n < 300; n += 7) {
        unsigned char *p = opc_alloc(n, 1);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % OPC_ALIGN, 0);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xff, n); /* the block after this one must not be this one */
        opc_free(p);
    }
    opc_free(NULL);
}

static void a_product_that_overflows_is_refused(void **state)
{
    (void)state;
    assert_null(opc_alloc(SIZE_MAX / 2, 3));
    assert_null(opc_alloc(SIZE_MAX, 1));
    assert_null(opc_alloc(SIZE_MAX - 10, 1));
    void *p = opc_alloc(SIZE_MAX, 0);
    assert_non_null(p);
    opc_free(p);
}

static void strdup_copies(void **state)
{
    (void)state;
    char *copy = opc_strdup("copy me");
    assert_string_equal(copy, "copy me");
    opc_free(copy);
}

static void arena_hands_out_aligned_blocks_and_takes_them_back(void **state)
{
    (void)state;
    struct opc_arena a;
    struct opc_err err;
    const size_t size = opc_arena_need(3, sizeof(float)) + opc_arena_need(100, 1);
    assert_ok(opc_arena_create(size, &a, &err), &err);
    float *x = opc_floats(&a, 3, 1);
    const size_t mark = a.used;
    char *y = opc_arena_take(&a, 100, 1);
    assert_int_equal((uintptr_t)x % OPC_ALIGN, 0);
    assert_int_equal((uintptr_t)y % OPC_ALIGN, 0);
    assert_true((char *)(x + 3) <= y);
    memset(y, 1, 100);
    x[2] = 1;
    opc_arena_rewind(&a, mark);
    assert_ptr_equal(opc_arena_take(&a, 100, 1), y);
    assert_int_equal(a.used, size);
    assert_int_equal(a.peak, size);
    opc_arena_destroy(&a);
    assert_null(a.base);
    opc_arena_destroy(&a);
    opc_arena_destroy(NULL);
}

/* What happens to a process that takes count * each from an arena of 128 bytes: its signal, or 0.
 */
static int signal_after_taking(size_t count, size_t each)
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        static _Alignas(OPC_ALIGN) unsigned char buffer[128];
        struct opc_arena a = {.base = buffer, .size = sizeof buffer};
        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr))
            _exit(1);
        opc_arena_take(&a, count, each);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void arena_aborts_when_full(void **state)
{
    (void)state;
    assert_int_equal(signal_after_taking(128, 1), 0);
    assert_int_equal(signal_after_taking(129, 1), SIGABRT);
    assert_int_equal(signal_after_taking(SIZE_MAX / 4 + 1, 4), SIGABRT); /* 0 if it wrapped */
    assert_int_equal(signal_after_taking(SIZE_MAX - 3, 1), SIGABRT);
}

static int create_arena(void *ctx, struct opc_err *err)
{
    (void)ctx;
    struct opc_arena a;
    const int code = opc_arena_create(1000, &a, err);
    if (!code)
        opc_arena_destroy(&a);
    return code;
}

static void arena_survives_lack_of_memory(void **state)
{
    (void)state;
    assert_survives_lack_of_memory(create_arena, NULL);
}

static void the_kth_allocation_fails_and_no_other(void **state)
{
    (void)state;
    opc_fault_alloc(2);
    void *first = opc_alloc(1, 1);
    assert_true(opc_fault_pending());
    assert_null(opc_alloc(1, 1));
    assert_false(opc_fault_pending());
    void *third = opc_alloc(1, 1);
    assert_non_null(first);
    assert_non_null(third);
    opc_free(first);
    opc_free(third);
    opc_fault_alloc(1);
    assert_null(opc_strdup("x"));
}

/* Either all of them or none, and what failed leaves nothing behind (the sanitizers look). */
static void several_blocks_are_all_there_or_none(void **state)
{
    (void)state;
    float *x;
    double *y;
    char *z;
    const struct opc_block all[] = {{&x, 3, sizeof *x}, {&y, 5, sizeof *y}, {&z, 7, 1}};
    for (int k = 1; k <= 3; k++) {
        opc_fault_alloc(k);
        x = (float *)1, y = (double *)1, z = (char *)1;
        assert_false(opc_alloc_all(all, 3));
        assert_true(!x && !y && !z);
    }
    assert_true(opc_alloc_all(all, 3));
    assert_true(x[2] == 0 && y[4] == 0 && z[6] == 0);
    opc_free(x);
    opc_free(y);
    opc_free(z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_zeroed_and_start_on_a_cache_line),
        cmocka_unit_test(a_product_that_overflows_is_refused),
        cmocka_unit_test(strdup_copies),
        cmocka_unit_test(arena_hands_out_aligned_blocks_and_takes_them_back),
        cmocka_unit_test(arena_aborts_when_full),
        cmocka_unit_test(arena_survives_lack_of_memory),
        cmocka_unit_test(the_kth_allocation_fails_and_no_other),
        cmocka_unit_test(several_blocks_are_all_there_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
