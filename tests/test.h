/* SPDX-License-Identifier: MIT */
/* test.h - cmocka, and what it lacks: arrays compared with the worst element named, equality of
 * bits, errors told apart by code and facts, creates whose k-th allocation fails or whose memory is
 * counted, and a directory to write in.
 *
 * A test's name is the claim it checks. Assertions stay on the test's own thread: they jump. */
#ifndef OPC_TEST_H
#define OPC_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "opc/err.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Arrays of n elements, no pair further apart than tolerance; NaN is near nothing. */
#define assert_floats_near(a, b, n, tolerance)                                                     \
    test_floats_near(a, b, (size_t)(n), tolerance, __FILE__, __LINE__)
#define assert_doubles_near(a, b, n, tolerance)                                                    \
    test_doubles_near(a, b, (size_t)(n), tolerance, __FILE__, __LINE__)
/* Tells -0 from 0, and NaN is equal to the same NaN. */
#define assert_same_bits(a, b, bytes) test_same_bits(a, b, bytes, __FILE__, __LINE__)
/* A call that must succeed; its message is shown when it does not. */
#define assert_ok(call, err)                                                                       \
    do {                                                                                           \
        if ((call) != OPC_OK) {                                                                    \
            print_error("%s\n", (err)->text);                                                      \
            _fail(__FILE__, __LINE__);                                                             \
        }                                                                                          \
    } while (0)
/* A text for people that must contain the key: a fact that tells it from its neighbours, such as a
 * setting, a path, a number or what the test itself supplied. How the facts are worded is free. */
#define assert_contains(text, key) test_contains(text, key, __FILE__, __LINE__)
/* A call that must fail with this code and a message that contains the key. */
#define assert_fails(call, want, err, key)                                                         \
    do {                                                                                           \
        assert_int_equal(call, want);                                                              \
        assert_int_equal((err)->code, want);                                                       \
        assert_mentions(err, key);                                                                 \
    } while (0)
/* Another fact in the same message. */
#define assert_mentions(err, key) assert_contains((err)->text, key)

struct test_worst {
    size_t at;
    double gap, a, b;
};

static inline void test_compare(struct test_worst *worst, size_t i, double a, double b)
{
    double gap = a == b ? 0 : fabs(a - b); /* infinities may be equal */
    if (isnan(gap))
        gap = HUGE_VAL;
    if (gap > worst->gap)
        *worst = (struct test_worst){i, gap, a, b};
}

static inline void test_judge(const struct test_worst *worst, size_t n, double tolerance,
                              const char *file, int line)
{
    if (worst->gap <= tolerance)
        return;
    print_error("element %zu of %zu is worst: %.17g against %.17g, apart by %.3g > %.3g\n",
                worst->at, n, worst->a, worst->b, worst->gap, tolerance);
    _fail(file, line);
}

static inline void test_floats_near(const float *a, const float *b, size_t n, double tolerance,
                                    const char *file, int line)
{
    struct test_worst worst = {0};
    for (size_t i = 0; i < n; i++)
        test_compare(&worst, i, (double)a[i], (double)b[i]);
    test_judge(&worst, n, tolerance, file, line);
}

static inline void test_doubles_near(const double *a, const double *b, size_t n, double tolerance,
                                     const char *file, int line)
{
    struct test_worst worst = {0};
    for (size_t i = 0; i < n; i++)
        test_compare(&worst, i, a[i], b[i]);
    test_judge(&worst, n, tolerance, file, line);
}

static inline void test_same_bits(const void *a, const void *b, size_t bytes, const char *file,
                                  int line)
{
    const unsigned char *p = a, *q = b;
    for (size_t i = 0; i < bytes; i++)
        if (p[i] != q[i]) {
            print_error("byte %zu of %zu differs: %02x against %02x\n", i, bytes, p[i], q[i]);
            _fail(file, line);
        }
}

static inline void test_contains(const char *text, const char *key, const char *file, int line)
{
    if (*key && strstr(text, key))
        return;
    print_error("'%s' is not in '%s'\n", key, text);
    _fail(file, line);
}

/* Creates something and, on success, destroys it again. */
typedef int test_create_fn(void *ctx, struct opc_err *err);

static inline void test_faults(void (*arm)(long k), test_create_fn *create, void *ctx, bool memory)
{
    for (long k = 1;; k++) {
        struct opc_err err = {0};
        arm(k);
        const int code = create(ctx, &err);
        const bool all_tried = opc_fault_pending();
        arm(0);
        if (all_tried) {
            assert_ok(code, &err);
            assert_true(k > 1); /* else there was nothing to fail */
            return;
        }
        if (code == OPC_OK || (memory && code != OPC_ENOMEM))
            fail_msg("with fault %ld the code is %d", k, code);
        assert_int_equal(err.code, code);
        assert_true(strlen(err.text) > 0);
    }
}

/* With its k-th allocation failing, for every k, create must return OPC_ENOMEM and a message; the
 * sanitizers see whether it freed what it took. */
static inline void assert_survives_lack_of_memory(test_create_fn *create, void *ctx)
{
    test_faults(opc_fault_alloc, create, ctx, true);
}

/* The same for threads, files and processes, with any code but OPC_OK. */
static inline void assert_survives_system_faults(test_create_fn *create, void *ctx)
{
    test_faults(opc_fault_system, create, ctx, false);
}

/* Bytes that create takes from opc_alloc, all that it frees again on the way included. */
static inline double test_bytes_taken(test_create_fn *create, void *ctx)
{
    struct opc_err err = {0};
    opc_fault_count(true);
    const int code = create(ctx, &err);
    const size_t bytes = opc_fault_counted();
    opc_fault_count(false);
    assert_ok(code, &err);
    return (double)bytes;
}

/* Removes a file, or a directory with all that is in it. */
static inline void test_remove(const char *path)
{
    struct stat st;
    if (lstat(path, &st))
        return;
    if (S_ISDIR(st.st_mode)) {
        DIR *dir = opendir(path);
        for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
            char inner[4096];
            if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
                snprintf(inner, sizeof inner, "%s/%s", path, e->d_name) < (int)sizeof inner)
                test_remove(inner);
        }
        if (dir)
            closedir(dir);
    }
    remove(path);
}

/* An empty directory of this test's own, as set-up and tear-down: *state is its path. */
static inline int test_make_dir(void **state)
{
    const char *tmp = getenv("TMPDIR");
    char path[512];
    snprintf(path, sizeof path, "%s/opc_test_XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(path))
        return -1;
    *state = strdup(path);
    return *state ? 0 : -1;
}

static inline int test_remove_dir(void **state)
{
    test_remove(*state);
    free(*state);
    return 0;
}

#endif
