/* SPDX-License-Identifier: MIT */
/* study/figure.h - figures made of panels: axes, lines with bands, one legend outside. */
#ifndef OPC_STUDY_FIGURE_H
#define OPC_STUDY_FIGURE_H

#include "study/curves.h"

struct opc_figure {
    const char *title; /* NULL: none */
    const char *x_label, *y_label;
    const char *note; /* what lines and bands are; below the legend */
};

/* One panel for each task, up to four in a row. The file's name decides its format. */
int opc_figure_draw(const struct opc_figure *, const struct opc_curves *, const char *path,
                    struct opc_err *err);

#endif
