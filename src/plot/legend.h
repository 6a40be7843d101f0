/* SPDX-License-Identifier: MIT */
/* plot/legend.h - which label has which colour, and the texts below the panels of a figure. */
#ifndef OPC_STUDY_LEGEND_H
#define OPC_STUDY_LEGEND_H

#include "base/text.h"
#include "plot/draw.h"
#include "plot/figure.h"

enum { OPC_LABELS = 32 };

struct opc_legend {
    int n;
    struct {
        const char *label;
        struct opc_ink ink;
        unsigned marks; /* bit m: some layer with this label is of mark m */
        double width;   /* of its text */
    } entry[OPC_LABELS];
    /* Set by opc_legend_arrange. */
    int columns, rows;
    double column[OPC_LABELS]; /* [columns] x offset of each column */
    double width;              /* of the whole legend */
};

/* The labels in the order they appear; more than OPC_LABELS are an error. */
int opc_legend_make(const struct opc_figure *, struct opc_legend *out, struct opc_err *err);
/* The ink of a layer, whether or not it has a label. */
struct opc_ink opc_legend_ink(const struct opc_legend *, const struct opc_figure_layer *);
/* As many columns as fit into `width`; an entry wider than that gets a row of its own width. */
void opc_legend_arrange(struct opc_legend *, struct opc_canvas *, double width);
double opc_legend_height(const struct opc_legend *);
void opc_legend_draw(const struct opc_legend *, struct opc_canvas *, double x, double y);

/* Appends `text` in lines no wider than `width`, broken between words where it can be. */
void opc_break_lines(struct opc_canvas *, double size, double width, const char *text,
                     struct opc_text *out);

#endif
