/* SPDX-License-Identifier: MIT */
/* study/curves/curves_draw.h - learning curves as a figure: a panel for each task, a line with a
 * band for each group, and the methods of the paper in their own colours. */
#ifndef OPC_STUDY_CURVES_DRAW_H
#define OPC_STUDY_CURVES_DRAW_H

#include "base/text.h"
#include "plot/figure.h"
#include "study/curves/curves.h"
#include "study/curves/published.h"

/* Texts and options of the figure. */
struct opc_curves_style {
    const char *title; /* NULL: none */
    const char *x_label, *y_label;
    const char *note; /* says what lines and bands are; below the legend */
    bool share;       /* one range of each axis for all panels */
    /* Drawn below the runs, which are of one task, as far as they reach, with those after it; NULL:
     * none. */
    const struct opc_published *published;
    /* The same for figures of several tasks: [panels], NULL where there is none, and none is drawn
     * where it begins after the runs end; each has the same methods. NULL: none at all. */
    const struct opc_published *const *by_panel;
    bool runs; /* draw every run as well, thin, behind the lines, unless there are too many lines */
};

/* Whether some panel has so many lines, more than five, that single runs would hide them. */
bool opc_curves_crowded(const struct opc_curves *);

/* A figure with the memory it needs. Borrows the style and the curves, which must outlive it. */
struct opc_curves_figure {
    struct opc_figure figure;
    struct opc_panel *panel;
    struct opc_figure_layer *layer;
    char (
        *label)[200];  /* [groups + OPC_PUBLISHED_MAX] for the legend; then the published curves' */
    double *published; /* of each curve [4][n] steps, mean, mean - std, mean + std; NULL: none */
};
int opc_curves_figure(const struct opc_curves_style *, const struct opc_curves *,
                      struct opc_curves_figure *out, struct opc_err *err);
void opc_curves_figure_free(struct opc_curves_figure *);

/* Draws the figure into a file, whose name decides the format. */
int opc_curves_draw(const struct opc_curves_style *, const struct opc_curves *, const char *path,
                    struct opc_err *err);

/* What line and band are, for the note below a figure that does not draw single runs; nothing where
 * every line is one run. */
void opc_curves_note(const struct opc_curves *, int smooth, struct opc_text *note);

/* A column of metrics.csv in words: "eval_return" is a "return". */
const char *opc_column_label(const char *column);

#endif
