/* SPDX-License-Identifier: MIT */
/* env/ticks.h - does a machine keep its time? The intervals between two observations, against dt.
 *
 * run/real/play.c measures while it learns, env/check.c while it checks. Only the clock is read, so
 * nothing that is learned depends on it. */
#ifndef OPC_ENV_TICKS_H
#define OPC_ENV_TICKS_H

#include "opc/env.h"

#include <stddef.h>

struct opc_ticks {
    double last;         /* opc_now() at the last observation; 0: an episode has just begun */
    int n, late;         /* intervals; those longer than 1.1 dt */
    double mean, square; /* of the intervals; sum of squared deviations from the mean */
    double max;
};

void opc_ticks_clear(struct opc_ticks *);
void opc_ticks_begin(struct opc_ticks *); /* an episode: the first interval starts with its step */
/* Called after each step; does nothing unless env is a machine with a dt. */
void opc_ticks_note(struct opc_ticks *, const struct opc_env *env);
/* "500 steps of 20 ms took 20.1 ms (standard deviation 0.3 ms, at most 35 ms); 3 were late". False
 * if nothing was measured. */
bool opc_ticks_print(const struct opc_ticks *, double dt, char *out, size_t size);

#endif
