/* SPDX-License-Identifier: MIT */
/* Intervals between the observations of a machine (env/ticks.h). */
#include "env/ticks.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>

static const double LATE = 1.1; /* an interval of more than this many dt is late */

void opc_ticks_clear(struct opc_ticks *ticks)
{
    *ticks = (struct opc_ticks){0};
}

void opc_ticks_begin(struct opc_ticks *ticks)
{
    ticks->last = 0;
}

void opc_ticks_note(struct opc_ticks *ticks, const struct opc_env *env)
{
    if (!env->type->machine || env->dt <= 0)
        return;
    /* The first observation after a reset has no predecessor, and a reset may take minutes. */
    const double now = opc_now(), interval = now - ticks->last;
    const bool first = ticks->last == 0;
    ticks->last = now;
    if (first)
        return;
    /* Welford's update: mean and squared deviations without a second pass. */
    ticks->n++;
    const double off = interval - ticks->mean;
    ticks->mean += off / ticks->n;
    ticks->square += off * (interval - ticks->mean);
    ticks->max = fmax(ticks->max, interval);
    ticks->late += interval > LATE * env->dt;
}

bool opc_ticks_print(const struct opc_ticks *ticks, double dt, char *out, size_t size)
{
    if (ticks->n == 0)
        return false;
    snprintf(out, size,
             "%d steps of %.3g ms took %.3g ms each (standard deviation %.2g ms, at most %.3g ms); "
             "%d were late by more than a tenth",
             ticks->n, 1e3 * dt, 1e3 * ticks->mean, 1e3 * sqrt(ticks->square / ticks->n),
             1e3 * ticks->max, ticks->late);
    return true;
}
