/* SPDX-License-Identifier: MIT */
#include "base/fault.h"

#include <errno.h>
#include <stdatomic.h>

/* Global because a failing allocation may be anywhere; 0, and never written, outside of tests. */
static atomic_long allocs, calls;

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

static bool hits(atomic_long *left)
{
    return atomic_load_explicit(left, memory_order_relaxed) > 0 && atomic_fetch_sub(left, 1) == 1;
}

bool opc_fault_hits_alloc(void)
{
    return hits(&allocs);
}

bool opc_fault_hits_system(void)
{
    if (!hits(&calls))
        return false;
    errno = EIO;
    return true;
}
