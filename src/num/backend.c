/* SPDX-License-Identifier: MIT */
/* The choice among the tables of kernels: the best the processor supports, or OPC_BACKEND. Every
 * layer calls opc_kernels(). The table in use is the one mutable global of num; it changes at most
 * once outside of tests, from NULL, so threads that race for it store the same pointer. */
#include "num/kernel.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Which of these exist is decided by CMake from the compiler; whether they may run, below. */
#if defined(OPC_HAVE_AVX512)
extern const struct opc_kernels opc_kernels_avx512;
#endif
#if defined(OPC_HAVE_AVX2)
extern const struct opc_kernels opc_kernels_avx2;
#endif
#if defined(OPC_HAVE_AVX)
extern const struct opc_kernels opc_kernels_avx;
#endif
#if defined(OPC_HAVE_SSE2)
extern const struct opc_kernels opc_kernels_sse2;
#endif
#if defined(OPC_HAVE_NEON)
extern const struct opc_kernels opc_kernels_neon;
#endif
#if defined(OPC_HAVE_GENERIC)
extern const struct opc_kernels opc_kernels_generic;
#endif

/* Best first. */
int opc_kernels_list(const struct opc_kernels *out[8])
{
    int n = 0;
#if defined(OPC_HAVE_AVX512)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        out[n++] = &opc_kernels_avx512;
#endif
#if defined(OPC_HAVE_AVX2)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        out[n++] = &opc_kernels_avx2;
#endif
#if defined(OPC_HAVE_AVX)
    if (__builtin_cpu_supports("avx"))
        out[n++] = &opc_kernels_avx;
#endif
#if defined(OPC_HAVE_SSE2)
    out[n++] = &opc_kernels_sse2;
#endif
#if defined(OPC_HAVE_NEON)
    out[n++] = &opc_kernels_neon;
#endif
#if defined(OPC_HAVE_GENERIC)
    out[n++] = &opc_kernels_generic;
#endif
    return n;
}

/* NULL: the best. */
static const struct opc_kernels *find_backend(const char *name)
{
    const struct opc_kernels *all[8];
    const int n = opc_kernels_list(all);
    for (int i = 0; i < n; i++)
        if (!name || strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}

/* Set once by whoever asks first: the answer is the same for all. */
static _Atomic(const struct opc_kernels *) in_use;

const struct opc_kernels *opc_kernels(void)
{
    const struct opc_kernels *k = atomic_load_explicit(&in_use, memory_order_acquire);
    if (!k) {
        /* A name that does not exist falls back to the best; opc_kernels_check reports it at the
         * start. */
        k = find_backend(getenv("OPC_BACKEND"));
        if (!k)
            k = find_backend(NULL);
        atomic_store_explicit(&in_use, k, memory_order_release);
    }
    return k;
}

static int unknown_backend(const char *name, struct opc_err *err)
{
    const struct opc_kernels *all[8];
    const int n = opc_kernels_list(all);
    char names[128] = "";
    for (int i = 0; i < n; i++) {
        strncat(names, i ? ", " : "", sizeof names - strlen(names) - 1);
        strncat(names, all[i]->name, sizeof names - strlen(names) - 1);
    }
    return opc_fail(err, OPC_EUSER, "backend '%s' is not one this processor can run: %s", name,
                    names);
}

/* Backends that fuse multiply and add agree with each other, and those that do not among themselves
 * (num/kernel.h, Rounding). */
static bool is_fused(const char *name)
{
    return strcmp(name, "avx2") == 0 || strcmp(name, "avx512") == 0 || strcmp(name, "neon") == 0;
}

static bool is_plain(const char *name)
{
    return strcmp(name, "sse2") == 0 || strcmp(name, "avx") == 0;
}

bool opc_kernels_agree(const char *name, const char *other)
{
    return strcmp(name, other) == 0 || (is_fused(name) && is_fused(other)) ||
           (is_plain(name) && is_plain(other));
}

int opc_kernels_check(struct opc_err *err)
{
    const char *name = getenv("OPC_BACKEND");
    if (!name || find_backend(name))
        return OPC_OK;
    unknown_backend(name, err);
    return opc_within(err, "OPC_BACKEND");
}

int opc_kernels_use(const char *name, struct opc_err *err)
{
    const struct opc_kernels *k = find_backend(name);
    if (!k)
        return unknown_backend(name, err);
    atomic_store_explicit(&in_use, k, memory_order_release);
    return OPC_OK;
}
