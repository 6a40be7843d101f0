/* SPDX-License-Identifier: MIT */
/* plot/figure.h - figures made of panels, panels made of layers; one legend outside the data.
 *
 * A figure is data: whoever computes fills these structs and hands them over once. Layers are
 * drawn in their order. Entries of the legend are labels: layers with the same label look the same
 * in all panels and appear once. */
#ifndef OPC_STUDY_FIGURE_H
#define OPC_STUDY_FIGURE_H

#include "opc/err.h"

#include <stdbool.h>

/* What a layer draws. Members not listed for a mark are ignored. */
enum opc_plot_mark {
    OPC_PLOT_LINE,   /* y over x; NaN interrupts it */
    OPC_PLOT_BAND,   /* shaded between low and high over x */
    OPC_PLOT_DOTS,   /* y over x */
    OPC_PLOT_VIOLIN, /* the sample y[n] as a distribution around x[0], `width` wide in x, with
                      * median and quartiles; a small or constant sample becomes a strip of dots */
    OPC_PLOT_HEAT,   /* value[rows][columns] over [x0, x1] x [y0, y1], row 0 at y0; NaN: masked */
    OPC_PLOT_RULE_X, /* a thin line across the panel at x[0]; n is ignored from here on */
    OPC_PLOT_RULE_Y, /* the same at y[0] */
    OPC_PLOT_ARROW,  /* from (x[0], y[0]) to (x[1], y[1]) */
    OPC_PLOT_TEXT,   /* `label` around (x[0], y[0]); not in the legend */
};

/* Colours that colour-blind readers can distinguish; one means the same thing in all our
 * figures. */
enum opc_colour {
    /* The next free colour of the palette, one per label; dark for layers without a label and for
     * marks that show no data. */
    OPC_COLOUR_AUTO,
    OPC_COLOUR_OPC,
    OPC_COLOUR_MODEL, /* the learned model, MBPO(*) */
    OPC_COLOUR_TRUE,  /* the environment */
    OPC_COLOUR_SAC,
    OPC_COLOUR_GREY,
    OPC_COLOUR_FIRST,         /* OPC_COLOUR_FIRST + i: the palette */
    OPC_COLOUR_RGB = 1 << 24, /* OPC_COLOUR_RGB | 0xRRGGBB: that colour */
};

/* One mark in a panel. It borrows all arrays, which must live until opc_figure_draw returns. */
struct opc_figure_layer {
    enum opc_plot_mark mark;
    int colour;        /* enum opc_colour */
    int dash;          /* 0: solid; 1, 2, 3: patterns that can be distinguished */
    const char *label; /* NULL: not in the legend; of a heat map: the meaning of masked cells */
    int n;
    const double *x, *y;        /* [n] */
    const double *low, *high;   /* [n] of a band */
    bool faint;                 /* of a line: pale and without dashes, to stay in the background */
    double width;               /* of a violin, in x; of a line, in points (0: as usual) */
    int rows, columns;          /* of a heat map, as the following: */
    const double *value;        /* [rows][columns] */
    double x0, x1, y0, y1;      /* the outer edges of its outer cells */
    double heat_low, heat_high; /* values at the ends of its scale; both 0: from the data */
    bool diverging;             /* red below 0, white at 0, blue above; else pale to dark */
};

/* A range. min == max: taken from the data, widened to round numbers and, in y, to 0 if that is
 * near. */
struct opc_span {
    double min, max;
};

struct opc_panel {
    const char *title; /* NULL: none */
    const char *x_label, *y_label;
    struct opc_span x, y;
    bool y_down;                /* y grows downwards */
    bool log_y;                 /* values that are not positive are left out */
    const char *const *x_words; /* [x_word_count] tick labels at 0, 1, 2, ... instead of numbers */
    int x_word_count;
    /* In place of data: these words in the middle, and no ticks unless the range is given or
     * shared. NULL: there are data. */
    const char *empty;
    int layers;
    const struct opc_figure_layer *layer;
};

struct opc_figure {
    const char *title; /* NULL: none */
    const char *note;  /* below the legend; a newline starts a new line, long ones are broken */
    const char *heat_label; /* of the colour scale next to heat maps; NULL: none */
    int panels, columns;    /* columns 0: up to four in a row */
    const struct opc_panel *panel;
    bool share_x, share_y; /* one range for all panels, and labels at the outer ones only */
    double panel_width, panel_height; /* of the data area, in points; 0: chosen to suit */
};

/* Draws the figure into a file, which appears whole or not at all. The file name's ending
 * decides the format: .svg, .pdf or .png. */
int opc_figure_draw(const struct opc_figure *, const char *path, struct opc_err *err);

#endif
