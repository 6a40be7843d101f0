/* SPDX-License-Identifier: MIT */
/* plot/marks.h - draws the layers of plot/figure.h between two axes, and their legend samples. */
#ifndef OPC_STUDY_MARKS_H
#define OPC_STUDY_MARKS_H

#include "plot/axis.h"
#include "plot/draw.h"
#include "plot/figure.h"

/* The range a layer covers; min > max if it shows nothing. With log_y, only positive y count. */
struct opc_extent {
    struct opc_span x, y;
};
struct opc_extent opc_mark_extent(const struct opc_figure_layer *, bool log_y);

/* The colour scale of a panel's heat map. */
struct opc_heat_scale {
    double low, high;
    bool diverging;
    bool below, above; /* some values are beyond its ends */
};

/* Draws one layer. `scale` is that of the panel's heat map; low == high if the panel has none. */
int opc_mark_draw(struct opc_canvas *, const struct opc_figure_layer *, const struct opc_ink *,
                  const struct opc_heat_scale *scale, const struct opc_axis *x,
                  const struct opc_axis *y, struct opc_err *err);
/* A sample of the mark for the legend, centred on a line of text at y. */
void opc_mark_sample(struct opc_canvas *, enum opc_plot_mark, const struct opc_ink *, double x,
                     double y, double width);
/* Slanted lines in a box: the sign for cells without a value. */
void opc_mark_hatch(struct opc_canvas *, double x, double y, double width, double height);

#endif
