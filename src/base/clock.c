/* SPDX-License-Identifier: MIT */
/* The one clock for durations: progress, time-outs, benchmarks; and that of the processor time.
 * Both must stay monotonic, because a clock that is set back would make durations negative. */
#include "base/clock.h"

#include <time.h>

static double read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double opc_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

double opc_processor_seconds(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}
