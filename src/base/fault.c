/* SPDX-License-Identifier: MIT */
/* Failures and counts on demand, for tests. opc_alloc and every call into the operating system ask
 * here first. The counters must cost nothing when they are 0, which is always the case outside of
 * tests. */
#include "base/fault.h"

#include <errno.h>
#include <stdatomic.h>

/* Global because a failing allocation may be anywhere; 0, and never written, outside of tests. */
static atomic_long allocs, calls;
static atomic_bool counting;
static atomic_size_t counted;

void opc_fault_alloc(long k)
{
    atomic_store(&allocs, k);
}

void opc_fault_system(long k)
{
    atomic_store(&calls, k);
}

bool opc_fault_pending(void)
{
    return atomic_load(&allocs) > 0 || atomic_load(&calls) > 0;
}

void opc_fault_count(bool on)
{
    atomic_store(&counted, 0);
    atomic_store(&counting, on);
}

size_t opc_fault_counted(void)
{
    return atomic_load(&counted);
}

void opc_fault_took(size_t bytes)
{
    if (atomic_load_explicit(&counting, memory_order_relaxed))
        atomic_fetch_add(&counted, bytes);
}

/* The plain load keeps the cache line shared; only an armed counter is written. fetch_sub makes
 * exactly one thread the one that gets 1. */
static bool counts_down_to_zero(atomic_long *left)
{
    return atomic_load_explicit(left, memory_order_relaxed) > 0 && atomic_fetch_sub(left, 1) == 1;
}

bool opc_fault_hits_alloc(void)
{
    return counts_down_to_zero(&allocs);
}

bool opc_fault_hits_system(void)
{
    if (!counts_down_to_zero(&calls))
        return false;
    errno = EIO;
    return true;
}
