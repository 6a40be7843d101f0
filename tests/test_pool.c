/* SPDX-License-Identifier: MIT */
#include "base/pool.h"

#include "test.h"

#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

/* Every item is visited, writes a value of its own, and tells by whom and in which chunk. */
struct visit {
    int items, per_chunk, threads;
    int *times;
    double *value;
    atomic_int wrong; /* asserted by the test's own thread later */
};

static void visit(void *ctx, int first, int end, int worker)
{
    struct visit *v = ctx;
    const int shared = v->threads > 1 && v->per_chunk < v->items;
    if (worker < 0 || worker >= v->threads || first % v->per_chunk != 0 || first >= end ||
        (end != v->items && end - first != v->per_chunk) ||
        opc_pool_worker() != (shared ? worker : -1))
        atomic_store(&v->wrong, 1);
    for (int i = first; i < end; i++) {
        v->times[i]++;
        v->value[i] = sin(i) / (i + 1);
    }
}

static void results_depend_on_neither_threads_nor_chunks(void **state)
{
    (void)state;
    enum { MAX = 1000 };
    static const int THREADS[] = {1, 2, 3, 8}, ITEMS[] = {0, 1, 15, 16, 17, MAX};
    static const int PER_CHUNK[] = {1, 7, 16, 999, MAX, INT_MAX};
    double want[MAX];
    for (int i = 0; i < MAX; i++)
        want[i] = sin(i) / (i + 1);
    for (int t = 0; t < 4; t++) {
        struct opc_pool *pool;
        struct opc_err err;
        assert_ok(opc_pool_create(THREADS[t], &pool, &err), &err);
        assert_int_equal(opc_pool_threads(pool), THREADS[t]);
        for (int n = 0; n < 6; n++)
            for (int c = 0; c < 6; c++) {
                int times[MAX] = {0};
                double value[MAX];
                struct visit v = {ITEMS[n], PER_CHUNK[c], THREADS[t], times, value, 0};
                opc_pool_each(pool, ITEMS[n], PER_CHUNK[c], visit, &v);
                assert_int_equal(v.wrong, 0);
                assert_int_equal(opc_pool_worker(), -1);
                for (int i = 0; i < MAX; i++)
                    assert_int_equal(times[i], i < ITEMS[n]);
                assert_same_bits(value, want, (size_t)ITEMS[n] * sizeof *value);
            }
        opc_pool_destroy(pool);
    }
}

static void no_pool_is_the_calling_thread_alone(void **state)
{
    (void)state;
    int times[10] = {0};
    double value[10];
    struct visit v = {10, 3, 1, times, value, 0};
    assert_int_equal(opc_pool_threads(NULL), 1);
    opc_pool_each(NULL, 10, 3, visit, &v);
    assert_int_equal(v.wrong, 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(times[i], 1);
    opc_pool_destroy(NULL);
}

static void add_up(void *ctx, int first, int end, int worker)
{
    (void)worker;
    long *slot = ctx;
    for (int i = first; i < end; i++)
        slot[i] += i;
}

/* Calls in quick succession, with pauses in between that send the threads to sleep: a wake-up that
 * is lost would hang here, a late thread would write into the next call. */
static void many_small_calls_lose_nothing(void **state)
{
    (void)state;
    enum { CALLS = 3000, ITEMS = 13 };
    for (int threads = 2; threads <= 5; threads += 3) {
        struct opc_pool *pool;
        struct opc_err err;
        assert_ok(opc_pool_create(threads, &pool, &err), &err);
        long slot[ITEMS] = {0};
        for (int call = 0; call < CALLS; call++) {
            opc_pool_each(pool, 1 + call % ITEMS, 1 + call % 3, add_up, slot);
            if (call % 100 == 0)
                nanosleep(&(struct timespec){.tv_nsec = call % 200 ? 300000 : 60000}, NULL);
        }
        opc_pool_destroy(pool);
        for (int i = 0; i < ITEMS; i++) {
            long calls = 0;
            for (int call = 0; call < CALLS; call++)
                calls += i < 1 + call % ITEMS;
            assert_int_equal(slot[i], i * calls);
        }
    }
}

static void meet(void *ctx, int first, int end, int worker)
{
    (void)first;
    (void)end;
    (void)worker;
    atomic_int *arrived = ctx;
    atomic_fetch_add(arrived, 1);
    while (atomic_load(arrived) < 2)
        sched_yield();
}

/* Two chunks that wait for each other end only if two threads really work at the same time. */
static void chunks_run_side_by_side(void **state)
{
    (void)state;
    struct opc_pool *pool;
    struct opc_err err;
    assert_ok(opc_pool_create(2, &pool, &err), &err);
    for (int i = 0; i < 20; i++) {
        atomic_int arrived = 0;
        opc_pool_each(pool, 2, 1, meet, &arrived);
        assert_int_equal(arrived, 2);
    }
    opc_pool_destroy(pool);
}

static void nap(void *ctx, int first, int end, int worker)
{
    (void)first;
    (void)end;
    int *naps = ctx;
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    naps[worker * 16]++;
}

/* Chunks so long that the caller, done with his, goes to sleep. */
static void caller_waits_for_slow_chunks(void **state)
{
    (void)state;
    struct opc_pool *pool;
    struct opc_err err;
    assert_ok(opc_pool_create(3, &pool, &err), &err);
    for (int i = 0; i < 5; i++) {
        int naps[3 * 16] = {0};
        opc_pool_each(pool, 4, 1, nap, naps);
        assert_int_equal(naps[0] + naps[16] + naps[32], 4);
    }
    opc_pool_destroy(pool);
}

static void zero_threads_means_one_per_processor(void **state)
{
    (void)state;
    struct opc_pool *pool;
    struct opc_err err;
    assert_true(opc_processors() >= 1);
    assert_ok(opc_pool_create(0, &pool, &err), &err);
    assert_int_equal(opc_pool_threads(pool), opc_processors());
    opc_pool_destroy(pool);
}

static void impossible_numbers_of_threads_are_refused(void **state)
{
    (void)state;
    struct opc_pool *pool = NULL;
    struct opc_err err;
    assert_fails(opc_pool_create(-1, &pool, &err), OPC_EUSER, &err, "-1");
    assert_int_equal(opc_pool_create(1025, &pool, &err), OPC_EUSER);
    assert_null(pool);
}

static int create(void *ctx, struct opc_err *err)
{
    (void)ctx;
    struct opc_pool *pool = NULL;
    const int code = opc_pool_create(4, &pool, err);
    assert_true((pool != NULL) == (code == OPC_OK));
    opc_pool_destroy(pool);
    return code;
}

static void pool_survives_lack_of_memory_and_of_threads(void **state)
{
    (void)state;
    assert_survives_lack_of_memory(create, NULL);
    assert_survives_system_faults(create, NULL);
    struct opc_err err;
    opc_fault_system(2);
    assert_fails(create(NULL, &err), OPC_EIO, &err, "3 of 4");
    assert_mentions(&err, "--threads");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_depend_on_neither_threads_nor_chunks),
        cmocka_unit_test(no_pool_is_the_calling_thread_alone),
        cmocka_unit_test(many_small_calls_lose_nothing),
        cmocka_unit_test(chunks_run_side_by_side),
        cmocka_unit_test(caller_waits_for_slow_chunks),
        cmocka_unit_test(zero_threads_means_one_per_processor),
        cmocka_unit_test(impossible_numbers_of_threads_are_refused),
        cmocka_unit_test(pool_survives_lack_of_memory_and_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
