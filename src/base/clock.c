/* SPDX-License-Identifier: MIT */
/* The one clock for durations: progress, time-outs, benchmarks. It must stay monotonic, because a
 * clock that is set back would make durations negative. */
#include "base/clock.h"

#include <time.h>

double opc_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
