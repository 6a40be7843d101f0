/* SPDX-License-Identifier: MIT */
/* The marks of a figure: how far each layer reaches, how it is drawn between two axes, and its
 * sample in the legend. figure_layout.c, figure.c and legend.c call it.
 *
 * Invariant: opc_mark_extent covers everything that opc_mark_draw shows, so that no mark is cut
 * off by a range that was taken from the data. */
#include "plot/marks.h"

#include "num/stats.h"
#include "opc/mem.h"
#include "plot/colour.h"

#include <math.h>

/* Samples of fewer than FEW values are shown one by one; points along one side of a violin. */
enum { FEW = 8, OUTLINE = 64 };
static const double DOT = 2.1, BAND_ALPHA = 0.2, FAINT_ALPHA = 0.45;

/* ---- extents --------------------------------------------------------------------------------- */

/* Extends a span to a value; NaN and infinity do not count. */
static void include_value(struct opc_span *s, double v)
{
    if (!isfinite(v))
        return;
    s->min = fmin(s->min, v);
    s->max = fmax(s->max, v);
}

/* Width of a violin in units of x; 0.8 of the distance between neighbours unless given. */
static double violin_width(const struct opc_figure_layer *layer)
{
    return layer->width > 0 ? layer->width : 0.8;
}

struct opc_extent opc_mark_extent(const struct opc_figure_layer *layer, bool log_y)
{
    struct opc_extent e = {{HUGE_VAL, -HUGE_VAL}, {HUGE_VAL, -HUGE_VAL}};
    /* Arrows and texts have a fixed number of points; n of the layer does not apply to them. */
    const int n = layer->mark == OPC_PLOT_ARROW ? 2 : layer->mark == OPC_PLOT_TEXT ? 1 : layer->n;
    switch (layer->mark) {
    case OPC_PLOT_HEAT:
        include_value(&e.x, layer->x0), include_value(&e.x, layer->x1);
        include_value(&e.y, layer->y0), include_value(&e.y, layer->y1);
        break;
    case OPC_PLOT_RULE_X: include_value(&e.x, layer->x[0]); break;
    case OPC_PLOT_RULE_Y:
        include_value(&e.y, log_y && !(layer->y[0] > 0) ? (double)NAN : layer->y[0]);
        break;
    case OPC_PLOT_VIOLIN:
        include_value(&e.x, layer->x[0] - violin_width(layer) / 2),
            include_value(&e.x, layer->x[0] + violin_width(layer) / 2);
        for (int i = 0; i < n; i++)
            include_value(&e.y, log_y && !(layer->y[i] > 0) ? (double)NAN : layer->y[i]);
        break;
    default: /* lines, bands, dots, arrows and texts */
        for (int i = 0; i < n; i++) {
            const double *low = layer->mark == OPC_PLOT_BAND ? layer->low : layer->y;
            const double *high = layer->mark == OPC_PLOT_BAND ? layer->high : layer->y;
            /* A point counts only if all of it can be drawn; on a log axis the upper end
             * decides. */
            if (!isfinite(layer->x[i]) || !isfinite(low[i]) || !isfinite(high[i]) ||
                (log_y && !(high[i] > 0)))
                continue;
            include_value(&e.x, layer->x[i]);
            include_value(&e.y, log_y && !(low[i] > 0) ? high[i] : low[i]);
            include_value(&e.y, high[i]);
        }
    }
    return e;
}

/* ---- over x ---------------------------------------------------------------------------------- */

/* A line, interrupted where x or y cannot be placed. px, py: scratch of 2 n values each. */
static void draw_line(struct opc_canvas *canvas, const struct opc_figure_layer *layer,
                      const struct opc_ink *ink, const struct opc_axis *x, const struct opc_axis *y,
                      double *px, double *py)
{
    struct opc_ink own = layer->faint ? opc_colour_faded(*ink, FAINT_ALPHA) : *ink;
    own.width = layer->width > 0 ? layer->width : ink->width;
    int n = 0;
    /* One pass more than points: the NaN at the end flushes the last piece. */
    for (int i = 0; i <= layer->n; i++) {
        const double vx = i < layer->n ? opc_axis_place(x, layer->x[i]) : (double)NAN;
        const double vy = i < layer->n ? opc_axis_place(y, layer->y[i]) : (double)NAN;
        if (isfinite(vx) && isfinite(vy)) {
            px[n] = vx;
            py[n++] = vy;
            continue;
        }
        if (n > 1)
            opc_draw_line(canvas, &own, n, px, py);
        else if (n == 1) /* a value with no neighbour would not be seen */
            opc_draw_dots(canvas, &own, 1, px, py, own.width);
        n = 0;
    }
}

/* A shaded area between low and high, interrupted like a line. px, py: scratch of 2 n values
 * each. */
static void draw_band(struct opc_canvas *canvas, const struct opc_figure_layer *layer,
                      const struct opc_ink *ink, const struct opc_axis *x, const struct opc_axis *y,
                      double *px, double *py)
{
    const struct opc_ink light = opc_colour_faded(*ink, BAND_ALPHA);
    /* First point of the piece under construction. */
    int from = 0;
    for (int i = 0; i <= layer->n; i++) {
        /* On a log axis `low` may lie below everything that can be shown, so only `high` is
         * tested. */
        const bool whole = i < layer->n && isfinite(opc_axis_place(x, layer->x[i])) &&
                           isfinite(layer->low[i]) && isfinite(opc_axis_place(y, layer->high[i]));
        if (whole)
            continue;
        /* The polygon runs along the lower edge and back along the upper one. */
        const int n = i - from;
        for (int k = 0; k < n; k++) {
            const double low = layer->low[from + k];
            px[k] = px[2 * n - 1 - k] = opc_axis_place(x, layer->x[from + k]);
            py[k] = y->log && low < y->min ? y->from : opc_axis_place(y, low);
            py[2 * n - 1 - k] = opc_axis_place(y, layer->high[from + k]);
        }
        if (n > 1)
            opc_draw_area(canvas, &light, 2 * n, px, py);
        from = i + 1;
    }
}

/* Dots are drawn whole or not at all: those outside the axes are left out. px, py: scratch. */
static void draw_dots(struct opc_canvas *canvas, const struct opc_figure_layer *layer,
                      const struct opc_ink *ink, const struct opc_axis *x, const struct opc_axis *y,
                      double *px, double *py)
{
    const struct opc_ink soft = opc_colour_faded(*ink, 0.85);
    int n = 0;
    for (int i = 0; i < layer->n; i++)
        if (opc_axis_shows(x, layer->x[i]) && opc_axis_shows(y, layer->y[i])) {
            px[n] = opc_axis_place(x, layer->x[i]);
            py[n++] = opc_axis_place(y, layer->y[i]);
        }
    opc_draw_dots(canvas, &soft, n, px, py, DOT);
}

/* ---- distributions --------------------------------------------------------------------------- */

/* Shows the sorted samples one by one, each a little to the side, so that equal ones stay
 * visible. aside: scratch of n values. */
static void draw_strip(struct opc_canvas *canvas, const struct opc_ink *ink, int n,
                       const double *at, double middle, double half, double *aside)
{
    const struct opc_ink soft = opc_colour_faded(*ink, 0.85);
    /* Steps of the golden ratio spread the dots evenly without looking regular. */
    for (int i = 0; i < n; i++) {
        const double share = n < 2 ? 0 : 2 * fmod(0.5 + i * 0.6180339887498949, 1) - 1;
        aside[i] = middle + 0.45 * half * share;
    }
    opc_draw_dots(canvas, &soft, n, aside, at, DOT);
}

/* Outline of a violin: Gaussian kernel density from the smallest to the largest sample. The
 * samples at[n] are canvas coordinates, sorted, and not all equal. */
static void draw_outline(struct opc_canvas *canvas, const struct opc_ink *ink, int n,
                         const double *at, const double *quartile, double middle, double half)
{
    double mean = 0, square = 0, density[OUTLINE], max = 0, px[2 * OUTLINE], py[2 * OUTLINE];
    /* Silverman's rule: width = 0.9 min(std, IQR / 1.34) n^(-1/5). */
    for (int i = 0; i < n; i++)
        mean += at[i] / n;
    for (int i = 0; i < n; i++)
        square += (at[i] - mean) * (at[i] - mean) / (n - 1);
    double spread = sqrt(square);
    if (quartile[2] > quartile[0])
        spread = fmin(spread, (quartile[2] - quartile[0]) / 1.34);
    const double width = 0.9 * spread * pow(n, -0.2);
    /* Density at OUTLINE places, not normalised: only its shape is drawn. */
    for (int k = 0; k < OUTLINE; k++) {
        py[k] = at[0] + (at[n - 1] - at[0]) * k / (OUTLINE - 1);
        density[k] = 0;
        for (int i = 0; i < n; i++) {
            const double away = (py[k] - at[i]) / width;
            density[k] += exp(-0.5 * away * away);
        }
        max = fmax(max, density[k]);
    }
    /* Mirror it around the middle; the widest place reaches `half`. */
    for (int k = 0; k < OUTLINE; k++) {
        px[k] = middle - half * density[k] / max;
        px[2 * OUTLINE - 1 - k] = middle + half * density[k] / max;
        py[2 * OUTLINE - 1 - k] = py[k];
    }
    /* A light area with a thin edge. The last line closes the outline. */
    const struct opc_ink light = opc_colour_faded(*ink, 0.35);
    struct opc_ink edge = *ink;
    edge.width = 0.8;
    opc_draw_area(canvas, &light, 2 * OUTLINE, px, py);
    opc_draw_line(canvas, &edge, 2 * OUTLINE, px, py);
    opc_draw_line(canvas, &edge, 2, (double[]){px[2 * OUTLINE - 1], px[0]},
                  (double[]){py[2 * OUTLINE - 1], py[0]});
}

/* A distribution with median and quartiles, as a violin or as a strip of dots. at, aside:
 * scratch of n values each. */
static void draw_violin(struct opc_canvas *canvas, const struct opc_figure_layer *layer,
                        const struct opc_ink *ink, const struct opc_axis *x,
                        const struct opc_axis *y, double *at, double *aside)
{
    const double middle = opc_axis_place(x, layer->x[0]);
    const double half = fabs(opc_axis_place(x, layer->x[0] + violin_width(layer) / 2) - middle);
    double quartile[3];
    int n = 0;
    /* Canvas coordinates, not values, so that the shape is right on a log axis, too. */
    for (int i = 0; i < layer->n; i++)
        if (opc_axis_shows(y, layer->y[i]))
            at[n++] = opc_axis_place(y, layer->y[i]);
    if (n == 0)
        return;
    for (int k = 0; k < 3; k++)
        quartile[k] = opc_quantile(n, at, 0.25 * (k + 1)); /* sorts at[n] */
    /* Few samples, or all within half a point, have no shape to show. */
    const bool strip = n < FEW || !(at[n - 1] - at[0] > 0.5);
    const struct opc_ink white = {1, 1, 1, 1, 3.4, 0};
    struct opc_ink line = *ink, thick = *ink;
    line.width = strip ? 1 : 1.8;
    thick.width = 3.2;
    line.dash = thick.dash = 0;
    if (!strip) {
        draw_outline(canvas, ink, n, at, quartile, middle, half);
        opc_draw_line(canvas, &thick, 2, (double[]){middle, middle},
                      (double[]){quartile[0], quartile[2]});
    }
    /* The median as a line across; white underneath separates it from the quartile bar. */
    const double reach = strip ? 0.8 : 0.55;
    const double side[] = {middle - reach * half, middle + reach * half};
    if (!strip)
        opc_draw_line(canvas, &white, 2, side, (double[]){quartile[1], quartile[1]});
    opc_draw_line(canvas, &line, 2, side, (double[]){quartile[1], quartile[1]});
    if (strip)
        draw_strip(canvas, ink, n, at, middle, half, aside);
}

/* ---- heat maps ------------------------------------------------------------------------------- */

void opc_mark_hatch(struct opc_canvas *canvas, double x, double y, double width, double height)
{
    static const struct opc_ink GROUND = {0.95, 0.95, 0.95, 1, 1, 0};
    static const struct opc_ink LINE = {0.78, 0.78, 0.78, 1, 0.5, 0};
    opc_draw_clip(canvas, x, y, width, height);
    opc_draw_area(canvas, &GROUND, 4, (double[]){x, x + width, x + width, x},
                  (double[]){y, y, y + height, y + height});
    for (int i = 1; i * 4 < width + height; i++) {
        const double k = i * 4;
        opc_draw_line(canvas, &LINE, 2, (double[]){x + k - height, x + k},
                      (double[]){y + height, y});
    }
    opc_draw_unclip(canvas);
}

/* A heat map as one image. cell: [rows][columns], zeroed, so that masked cells stay transparent. */
static void draw_heat(struct opc_canvas *canvas, const struct opc_figure_layer *layer,
                      const struct opc_heat_scale *scale, const struct opc_axis *x,
                      const struct opc_axis *y, uint8_t (*cell)[4])
{
    if (layer->rows < 1 || layer->columns < 1)
        return;
    /* Canvas coordinates of the outer edges; either may be the larger. */
    const double left = opc_axis_place(x, layer->x0), right = opc_axis_place(x, layer->x1);
    const double first = opc_axis_place(y, layer->y0), last = opc_axis_place(y, layer->y1);
    bool masked = false;
    for (int i = 0; i < layer->rows; i++)
        for (int k = 0; k < layer->columns; k++) {
            /* Row 0 of the image is at the top, column 0 at the left. */
            const size_t row = (size_t)(last > first ? i : layer->rows - 1 - i);
            const size_t column = (size_t)(right > left ? k : layer->columns - 1 - k);
            const double v = layer->value[(size_t)i * (size_t)layer->columns + (size_t)k];
            if (isnan(v)) /* stays transparent */
                masked = true;
            else
                opc_colour_heat(v, scale->low, scale->high, scale->diverging,
                                cell[row * (size_t)layer->columns + column]);
        }
    const double at_x = fmin(left, right), at_y = fmin(first, last);
    const double width = fabs(right - left), height = fabs(last - first);
    /* Masked cells show the hatching underneath the image. */
    if (masked)
        opc_mark_hatch(canvas, at_x, at_y, width, height);
    opc_draw_image(canvas, at_x, at_y, width, height, layer->rows, layer->columns,
                   (const uint8_t(*)[4])cell);
}

/* ---- marks without data ---------------------------------------------------------------------- */

/* An arrow with a white halo, so that it is visible on any ground. */
static void draw_arrow(struct opc_canvas *canvas, const struct opc_ink *ink, double x0, double y0,
                       double x1, double y1)
{
    const double length = hypot(x1 - x0, y1 - y0), head = fmin(6, 0.6 * length);
    if (!(length > 0))
        return;
    struct opc_ink shaft = *ink, halo = {1, 1, 1, 0.75, 2.6, 0};
    shaft.width = 1;
    const double ux = (x1 - x0) / length, uy = (y1 - y0) / length;
    /* (bx, by) is the base of the head, `side` half of its width. */
    const double bx = x1 - head * ux, by = y1 - head * uy, side = 0.42 * head;
    const double head_x[] = {bx - side * uy, x1, bx + side * uy, bx - side * uy};
    const double head_y[] = {by + side * ux, y1, by - side * ux, by + side * ux};
    /* Halo first, then shaft and head. */
    opc_draw_line(canvas, &halo, 2, (double[]){x0, bx}, (double[]){y0, by});
    opc_draw_line(canvas, &halo, 4, head_x, head_y);
    opc_draw_line(canvas, &shaft, 2, (double[]){x0, bx}, (double[]){y0, by});
    opc_draw_area(canvas, ink, 3, head_x, head_y);
}

/* A thin line across the panel. `halo`: it crosses a heat map, whose colours may be dark. */
static void draw_rule(struct opc_canvas *canvas, const struct opc_ink *ink, bool halo, double x0,
                      double y0, double x1, double y1)
{
    const struct opc_ink white = {1, 1, 1, 0.6, 2.2, 0};
    struct opc_ink thin = *ink;
    thin.width = 0.9;
    if (halo)
        opc_draw_line(canvas, &white, 2, (double[]){x0, x1}, (double[]){y0, y1});
    opc_draw_line(canvas, &thin, 2, (double[]){x0, x1}, (double[]){y0, y1});
}

/* A text inside the panel, centred, with a halo. */
static void draw_text(struct opc_canvas *canvas, const struct opc_figure_layer *layer,
                      const struct opc_ink *ink, const struct opc_axis *x, const struct opc_axis *y)
{
    if (!layer->label || !opc_axis_shows(x, layer->x[0]) || !opc_axis_shows(y, layer->y[0]))
        return;
    const double at_x = opc_axis_place(x, layer->x[0]), at_y = opc_axis_place(y, layer->y[0]) + 3;
    opc_draw_halo(canvas, at_x, at_y, 9, layer->label);
    opc_draw_text(canvas, ink, at_x, at_y, 9, OPC_CENTRE, 0, layer->label);
}

/* ---------------------------------------------------------------------------------------------- */

int opc_mark_draw(struct opc_canvas *canvas, const struct opc_figure_layer *layer,
                  const struct opc_ink *ink, const struct opc_heat_scale *scale,
                  const struct opc_axis *x, const struct opc_axis *y, struct opc_err *err)
{
    const size_t n = layer->n > 0 ? (size_t)layer->n : 0;
    const bool heat = layer->mark == OPC_PLOT_HEAT, on_heat = scale->high > scale->low;
    double *px = opc_alloc(2 * n + 1, sizeof *px), *py = opc_alloc(2 * n + 1, sizeof *py);
    uint8_t(*cell)[4] =
        heat ? opc_alloc((size_t)layer->rows * (size_t)layer->columns, sizeof *cell) : NULL;
    int code = OPC_OK;
    if (!px || !py || (heat && !cell))
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for a layer of %zu points", n);
    /* Lines may lead out of the panel and are clipped; dots and texts at its edge are shown
     * whole. */
    const bool clipped = heat || layer->mark == OPC_PLOT_LINE || layer->mark == OPC_PLOT_BAND ||
                         layer->mark == OPC_PLOT_ARROW;
    if (!code && clipped)
        opc_draw_clip(canvas, fmin(x->from, x->to) - 0.8, fmin(y->from, y->to) - 0.8,
                      fabs(x->to - x->from) + 1.6, fabs(y->to - y->from) + 1.6);
    if (!code)
        switch (layer->mark) {
        case OPC_PLOT_LINE: draw_line(canvas, layer, ink, x, y, px, py); break;
        case OPC_PLOT_BAND: draw_band(canvas, layer, ink, x, y, px, py); break;
        case OPC_PLOT_DOTS: draw_dots(canvas, layer, ink, x, y, px, py); break;
        case OPC_PLOT_VIOLIN: draw_violin(canvas, layer, ink, x, y, px, py); break;
        case OPC_PLOT_HEAT: draw_heat(canvas, layer, scale, x, y, cell); break;
        case OPC_PLOT_RULE_X:
            if (opc_axis_shows(x, layer->x[0]))
                draw_rule(canvas, ink, on_heat, opc_axis_place(x, layer->x[0]), y->from,
                          opc_axis_place(x, layer->x[0]), y->to);
            break;
        case OPC_PLOT_RULE_Y:
            if (opc_axis_shows(y, layer->y[0]))
                draw_rule(canvas, ink, on_heat, x->from, opc_axis_place(y, layer->y[0]), x->to,
                          opc_axis_place(y, layer->y[0]));
            break;
        case OPC_PLOT_ARROW:
            draw_arrow(canvas, ink, opc_axis_place(x, layer->x[0]), opc_axis_place(y, layer->y[0]),
                       opc_axis_place(x, layer->x[1]), opc_axis_place(y, layer->y[1]));
            break;
        case OPC_PLOT_TEXT: draw_text(canvas, layer, ink, x, y); break;
        }
    if (!code && clipped)
        opc_draw_unclip(canvas);
    opc_free(px);
    opc_free(py);
    opc_free(cell);
    return code;
}

void opc_mark_sample(struct opc_canvas *canvas, enum opc_plot_mark mark, const struct opc_ink *ink,
                     double x, double y, double width)
{
    /* Half the height of a box, in points: about that of the text next to it. */
    const double half = 4.5;
    const double box_x[] = {x, x + width, x + width, x};
    const double box_y[] = {y - half, y - half, y + half, y + half};
    struct opc_ink faded = opc_colour_faded(*ink, mark == OPC_PLOT_VIOLIN ? 0.35 : BAND_ALPHA);
    struct opc_ink thin = *ink;
    thin.width = 0.9;
    switch (mark) {
    case OPC_PLOT_LINE:
        opc_draw_line(canvas, ink, 2, (double[]){x, x + width}, (double[]){y, y});
        break;
    case OPC_PLOT_BAND: opc_draw_area(canvas, &faded, 4, box_x, box_y); break;
    case OPC_PLOT_VIOLIN:
        opc_draw_area(canvas, &faded, 4, box_x, box_y);
        opc_draw_line(canvas, &thin, 4, box_x, box_y);
        opc_draw_line(canvas, &thin, 2, (double[]){box_x[3], box_x[0]},
                      (double[]){box_y[3], box_y[0]});
        break;
    case OPC_PLOT_DOTS:
        opc_draw_dots(canvas, ink, 1, (double[]){x + width / 2}, &y, DOT + 0.4);
        break;
    case OPC_PLOT_HEAT: opc_mark_hatch(canvas, x, y - half, width, 2 * half); break;
    case OPC_PLOT_RULE_X:
    case OPC_PLOT_RULE_Y:
        opc_draw_line(canvas, &thin, 2, (double[]){x, x + width}, (double[]){y, y});
        break;
    case OPC_PLOT_ARROW: draw_arrow(canvas, ink, x, y, x + width, y); break;
    case OPC_PLOT_TEXT: break;
    }
}
