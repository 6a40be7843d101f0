/* SPDX-License-Identifier: MIT */
/* plot/axis.h - maps values to canvas coordinates, and chooses the round numbers next to an
 * axis.
 *
 * An axis is made from the range of the data (opc_axis_make, called by figure_layout.c); figure.c
 * sets from and to when the panel gets its place on the page. */
#ifndef OPC_STUDY_AXIS_H
#define OPC_STUDY_AXIS_H

#include <stdbool.h>

struct opc_axis {
    double min, max; /* min < max; of a log axis 0 < min */
    bool log;
    bool whole;      /* ticks at whole numbers only, for counts such as epochs */
    double from, to; /* canvas coordinates of min and max, in points; either may be the larger */
};

enum { OPC_TICKS = 16, OPC_TICK_TEXT = 48 };
struct opc_ticks {
    int n;
    double at[OPC_TICKS];
    char text[OPC_TICKS][OPC_TICK_TEXT]; /* 0, 0.25, −3, 12k, 1.5M, 2×10⁻⁵ */
};

/* An axis that shows min .. max; with `widen`, extended to the round numbers around them, where
 * there will be about `ticks` ticks. An empty or invalid range becomes one of positive length. */
struct opc_axis opc_axis_make(double min, double max, bool log, bool widen, int ticks);
/* Canvas coordinate of a value. NaN for values that the axis cannot show: NaN, and on a log axis
 * everything that is not positive. */
double opc_axis_place(const struct opc_axis *, double value);
bool opc_axis_shows(const struct opc_axis *, double value); /* within its ends */
/* About `max` round numbers on the axis, never more than OPC_TICKS. */
void opc_axis_ticks(const struct opc_axis *, int max, struct opc_ticks *out);

#endif
