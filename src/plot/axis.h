/* SPDX-License-Identifier: MIT */
/* plot/axis.h - from values to places on a canvas, and the round numbers written beside it. */
#ifndef OPC_STUDY_AXIS_H
#define OPC_STUDY_AXIS_H

#include <stdbool.h>

struct opc_axis {
    double min, max; /* min < max; of a log axis 0 < min */
    bool log;
    bool whole;      /* ticks at whole numbers only: what it counts has no halves */
    double from, to; /* where they are on the canvas; either may be the larger */
};

enum { OPC_TICKS = 16, OPC_TICK_TEXT = 48 };
struct opc_ticks {
    int n;
    double at[OPC_TICKS];
    char text[OPC_TICKS][OPC_TICK_TEXT]; /* 0, 0.25, −3, 12k, 1.5M, 2×10⁻⁵ */
};

/* One that shows min .. max; with `widen`, up to the round numbers around them, where there will
 * be about `ticks` ticks. A range that is empty, or no range at all, becomes one of length 1. */
struct opc_axis opc_axis_make(double min, double max, bool log, bool widen, int ticks);
/* NaN for what the axis cannot show anywhere: NaN, and on a log axis what is not positive. */
double opc_axis_place(const struct opc_axis *, double value);
bool opc_axis_shows(const struct opc_axis *, double value); /* within its ends */
/* About `most` round numbers on the axis, never more than OPC_TICKS. */
void opc_axis_ticks(const struct opc_axis *, int max, struct opc_ticks *out);

#endif
