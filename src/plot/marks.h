/* SPDX-License-Identifier: MIT */
/* plot/marks.h - the layers of plot/figure.h, drawn between two axes. */
#ifndef OPC_STUDY_MARKS_H
#define OPC_STUDY_MARKS_H

#include "plot/axis.h"
#include "plot/draw.h"
#include "plot/figure.h"

/* What a layer covers; least > most where it has nothing to show. Positive y only with log. */
struct opc_extent {
    struct opc_span x, y;
};
struct opc_extent opc_mark_extent(const struct opc_figure_layer *, bool log_y);

struct opc_heat_scale {
    double low, high;
    bool diverging;
    bool below, above; /* some values are beyond its ends */
};

/* scale: of the panel's heat map; low == high when it has none. */
int opc_mark_draw(struct opc_canvas *, const struct opc_figure_layer *, const struct opc_ink *,
                  const struct opc_heat_scale *scale, const struct opc_axis *x,
                  const struct opc_axis *y, struct opc_err *err);
/* How a layer like this looks in the legend, around the middle of a line of text. */
void opc_mark_sample(struct opc_canvas *, enum opc_mark, const struct opc_ink *, double x, double y,
                     double width);
/* Slanted lines in a box: no value. */
void opc_mark_hatch(struct opc_canvas *, double x, double y, double width, double height);

#endif
