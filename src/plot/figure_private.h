/* SPDX-License-Identifier: MIT */
/* plot/figure_private.h - what is measured about a figure before it is drawn, shared by
 * figure_layout.c (measures) and figure.c (draws). Nobody else includes it. All lengths are in
 * points. */
#ifndef OPC_PLOT_FIGURE_PRIVATE_H
#define OPC_PLOT_FIGURE_PRIVATE_H

#include "plot/figure.h"
#include "plot/legend.h"
#include "plot/marks.h"

static const double PAD = 10; /* around everything */
static const double TICK = 8.5, LABEL = 9.5, TITLE = 10, HEADING = 12, NOTE = 8; /* sizes of text */
static const double LINE = 1.3;            /* from one line to the next, in sizes */
static const double BAR = 9, BAR_GAP = 10; /* the colour scale */
enum { MAX_PANELS = 400 };                 /* keeps the arrays of struct layout small */

/* One panel with everything that is measured about it. */
struct plot {
    const struct opc_panel *panel;
    struct opc_extent extent;
    struct opc_axis x, y;
    struct opc_ticks x_ticks, y_ticks;
    bool heat;             /* some layer is a heat map, drawn to the panel's edges */
    bool x_shown, y_shown; /* it has tick texts */
    bool x_named, y_named; /* it has axis labels */
    bool rotated;          /* words along x are turned; otherwise they are broken into lines */
    double word_width;     /* points available for one word */
    int word_lines;        /* lines of the tallest word */
    bool failed;           /* for lack of memory */
    struct opc_text title, x_name; /* in lines; x_name: the label of x, where it is shown */
    struct opc_heat_scale scale;
    struct opc_ticks scale_ticks;
};

/* The page: panels in a grid of rows and columns, a legend and a note below. */
struct layout {
    const struct opc_figure *f;
    struct plot *plot; /* [panels] row by row */
    struct opc_legend legend;
    struct opc_text heading, note; /* in lines */
    int rows, columns;
    double width, height;                        /* of a panel */
    double left[MAX_PANELS], right[MAX_PANELS];  /* [columns] margins next to the panels */
    double above[MAX_PANELS], below[MAX_PANELS]; /* [rows] margins above and below them */
    bool one_scale;     /* all heat maps share one colour scale, at the right of the page */
    double scale_width; /* of a colour scale with its texts */
    double page_width, page_height;
    double grid_x, grid_top, grid_width, grid_height; /* where the panels are on the page */
};

/* Measures everything that drawing needs, on a canvas that never becomes a file. The caller has set
 * f, plot and legend of the layout; all other members are 0. */
void opc_figure_measure(struct layout *, struct opc_canvas *);
/* Height of lines of text of one size. */
double opc_figure_text_height(const struct opc_text *lines, double size);

#endif
