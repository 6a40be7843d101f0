/* SPDX-License-Identifier: MIT */
/* test_num.h - what the tests of layer num share: tests that run once for each backend, random
 * numbers, and distances counted in steps of float. */
#ifndef OPC_TEST_NUM_H
#define OPC_TEST_NUM_H

#include "test.h"

#include "num/kernel.h"
#include "opc/mem.h"
#include "opc/rng.h"

enum { LIGHT = sizeof OPC_SANITIZE > 1 }; /* sanitizers see the same tests on less data */

/* A member of a list for run_num_tests: the test runs once for each backend of this processor,
 * which is in use meanwhile: opc_kernels() inside the test is the backend under test. */
#define each_backend(test)                                                                         \
    {                                                                                              \
#test, test, use_backend, NULL, NULL                                                       \
    }

static inline int use_backend(void **state)
{
    const struct opc_kernels *k = *state;
    struct opc_err err = {0};
    *state = NULL;
    return opc_kernels_use(k->name, &err);
}

#define run_num_tests(list) run_num_list(list, sizeof(list) / sizeof *(list))

static inline int run_num_list(const struct CMUnitTest *list, size_t count)
{
    enum { NAME = 160 };
    const struct opc_kernels *backend[8];
    const size_t backends = (size_t)opc_kernels_list(backend);
    struct CMUnitTest *all = calloc(count * backends, sizeof *all);
    char(*names)[NAME] = calloc(count * backends, sizeof *names);
    if (!all || !names)
        abort();
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t b = 0; b < backends; b++) {
            all[n] = list[i];
            if (list[i].setup_func == use_backend) {
                snprintf(names[n], NAME, "%s [%s]", list[i].name, backend[b]->name);
                all[n].name = names[n];
                all[n].initial_state =
                    (void *)backend[b]; /* cmocka has no const; nor do we write */
            } else if (b > 0) {
                continue;
            }
            n++;
        }
    const int failed = _cmocka_run_group_tests("num", all, n, NULL, NULL);
    free(names);
    free(all);
    return failed;
}

static inline struct opc_rng test_stream(uint32_t index)
{
    return opc_rng_stream(20, OPC_USE_TEST, 0, index);
}

/* Uniform on [-1, 1). */
static inline float any_float(struct opc_rng *r)
{
    return 2.0f * opc_rng_unit(r) - 1.0f;
}

static inline int any_below(struct opc_rng *r, int n)
{
    return (int)opc_rng_below(r, (uint32_t)n);
}

/* n floats from malloc, so that AddressSanitizer knows where they end, all of one value. */
static inline float *floats_of(size_t n, float value)
{
    float *p = malloc((n ? n : 1) * sizeof *p);
    if (!p)
        abort();
    for (size_t i = 0; i < n; i++)
        p[i] = value;
    return p;
}

static inline float *floats_any(struct opc_rng *r, size_t n)
{
    float *p = floats_of(n, 0.0f);
    for (size_t i = 0; i < n; i++)
        p[i] = any_float(r);
    return p;
}

static inline float float_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t bits_of_float(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static inline bool same_bits(float a, float b)
{
    return bits_of_float(a) == bits_of_float(b);
}

/* How many floats apart two floats are; both zeros are one place, infinity follows the largest. */
static inline long ulps_apart(float a, float b)
{
    const long p = (long)(bits_of_float(a) & 0x7fffffff), q = (long)(bits_of_float(b) & 0x7fffffff);
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b) ? 0 : 0x7fffffff;
    return labs((signbit(a) ? -p : p) - (signbit(b) ? -q : q));
}

#endif
