/* SPDX-License-Identifier: MIT */
#include "study/figure.h"

#include "opc/mem.h"
#include "study/draw.h"
#include "study/stats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* points */
enum {
    PANEL_WIDTH = 300,
    PANEL_HEIGHT = 210,
    LEFT = 62,
    RIGHT = 14,
    TOP = 26,
    BOTTOM = 44,
    HEADING = 26,
    ROW = 18,
    TEXT = 11,
    SMALL = 9,
    IN_A_ROW = 4,
    LABELS = 32,
};

static const struct opc_ink BLACK = {0.1, 0.1, 0.1, 1, 0.8, 0};
static const struct opc_ink GREY = {0.87, 0.87, 0.87, 1, 0.6, 0};
static const struct opc_ink DARK = {0.35, 0.35, 0.35, 1, 0.8, 0};

/* Okabe and Ito's colours, which the colour-blind can tell apart; dashes help in black and white.
 */
static struct opc_ink ink_of(int i)
{
    static const double RGB[][3] = {
        {0.000, 0.447, 0.698}, {0.835, 0.369, 0.000}, {0.000, 0.620, 0.451}, {0.800, 0.475, 0.655},
        {0.902, 0.624, 0.000}, {0.337, 0.706, 0.914}, {0.000, 0.000, 0.000},
    };
    const double *c = RGB[i % 7];
    return (struct opc_ink){c[0], c[1], c[2], 1, 1.6, i % 4};
}

struct axis {
    double least, most, step;
    double from, to; /* on the canvas */
};

static double place(const struct axis *a, double v)
{
    return a->from + (v - a->least) / (a->most - a->least) * (a->to - a->from);
}

/* Widened to round numbers. */
static struct axis make_axis(double least, double most, int ticks)
{
    struct axis a = {.least = least, .most = most};
    if (!(most > least)) { /* one value, or none */
        a.least = isfinite(least) ? least - 0.5 : 0;
        a.most = a.least + 1;
    }
    a.step = opc_round_step(a.most - a.least, ticks);
    a.least = floor(a.least / a.step + 1e-9) * a.step;
    a.most = ceil(a.most / a.step - 1e-9) * a.step;
    return a;
}

/* 0, 250, 12k, 1.5M */
static void print_tick(double v, char out[32])
{
    if (fabs(v) >= 1e6)
        snprintf(out, 32, "%gM", v / 1e6);
    else if (fabs(v) >= 1e4)
        snprintf(out, 32, "%gk", v / 1e3);
    else
        snprintf(out, 32, "%g", fabs(v) < 1e-12 ? 0 : v);
}

static int ticks_of(const struct axis *a)
{
    return (int)lround((a->most - a->least) / a->step);
}

static void draw_axes(struct opc_canvas *c, const struct axis *x, const struct axis *y)
{
    char text[32];
    for (int i = 0; i <= ticks_of(x); i++) {
        const double v = x->least + i * x->step, at = place(x, v);
        opc_draw_line(c, &GREY, 2, (double[]){at, at}, (double[]){y->from, y->to});
        print_tick(v, text);
        opc_draw_text(c, &BLACK, at, y->from + 13, SMALL, OPC_CENTRE, 0, text);
    }
    for (int i = 0; i <= ticks_of(y); i++) {
        const double v = y->least + i * y->step, at = place(y, v);
        opc_draw_line(c, &GREY, 2, (double[]){x->from, x->to}, (double[]){at, at});
        print_tick(v, text);
        opc_draw_text(c, &BLACK, x->from - 5, at + 3, SMALL, OPC_RIGHT, 0, text);
    }
    opc_draw_line(c, &DARK, 3, (double[]){x->from, x->from, x->to},
                  (double[]){y->to, y->from, y->from});
}

/* px, py: room for 2 n points. */
static void draw_group(struct opc_canvas *c, const struct opc_curve_group *g, struct opc_ink ink,
                       const struct axis *x, const struct axis *y, double *px, double *py)
{
    struct opc_ink light = ink;
    light.alpha = 0.2;
    for (int i = 0; i < g->n; i++) {
        px[i] = px[2 * g->n - 1 - i] = place(x, g->x[i]);
        py[i] = place(y, g->low[i]);
        py[2 * g->n - 1 - i] = place(y, g->high[i]);
    }
    if (g->runs > 1)
        opc_draw_area(c, &light, 2 * g->n, px, py);
    for (int i = 0; i < g->n; i++)
        py[i] = place(y, g->middle[i]);
    opc_draw_line(c, &ink, g->n, px, py);
}

/* ---- lines of one label look the same in every panel ----------------------------------------- */

struct legend {
    const char *label[LABELS];
    int n, runs[LABELS]; /* of each: the most in any panel */
};

static int entry_of(const struct legend *l, const char *label)
{
    for (int i = 0; i < l->n; i++)
        if (strcmp(l->label[i], label) == 0)
            return i;
    return -1;
}

static int make_legend(const struct opc_curves *all, struct legend *l, struct opc_err *err)
{
    *l = (struct legend){.n = 0};
    for (int g = 0; g < all->groups; g++) {
        int i = entry_of(l, all->group[g].label);
        if (i < 0 && l->n == LABELS)
            return opc_fail(err, OPC_EUSER,
                            "more than %d kinds of runs make no readable figure; draw fewer",
                            LABELS);
        if (i < 0)
            l->label[i = l->n++] = all->group[g].label;
        if (all->group[g].runs > l->runs[i])
            l->runs[i] = all->group[g].runs;
    }
    return OPC_OK;
}

static void draw_legend(struct opc_canvas *c, const struct legend *l, double x, double y)
{
    for (int i = 0; i < l->n; i++, y += ROW) {
        char text[200];
        const struct opc_ink ink = ink_of(i);
        snprintf(text, sizeof text, "%s (%d run%s)", l->label[i], l->runs[i],
                 l->runs[i] == 1 ? "" : "s");
        opc_draw_line(c, &ink, 2, (double[]){x, x + 30}, (double[]){y - 4, y - 4});
        opc_draw_text(c, &BLACK, x + 38, y, TEXT, OPC_LEFT, 0, text);
    }
}

/* ---- a figure -------------------------------------------------------------------------------- */

static void draw_panel(struct opc_canvas *c, const struct opc_figure *f,
                       const struct opc_curves *all, const struct legend *l, int panel, double left,
                       double top, double *px, double *py)
{
    double least_x = HUGE_VAL, most_x = -HUGE_VAL, least_y = HUGE_VAL, most_y = -HUGE_VAL;
    for (int k = 0; k < all->groups; k++) {
        const struct opc_curve_group *g = &all->group[k];
        for (int i = 0; g->panel == panel && i < g->n; i++) {
            least_x = fmin(least_x, g->x[i]);
            most_x = fmax(most_x, g->x[i]);
            least_y = fmin(least_y, g->low[i]);
            most_y = fmax(most_y, g->high[i]);
        }
    }
    struct axis x = make_axis(least_x > 0 ? 0 : least_x, most_x, 5);
    struct axis y = make_axis(least_y, most_y, 6);
    x.from = left + LEFT;
    x.to = left + PANEL_WIDTH - RIGHT;
    y.from = top + PANEL_HEIGHT - BOTTOM;
    y.to = top + TOP;
    draw_axes(c, &x, &y);
    opc_draw_text(c, &BLACK, (x.from + x.to) / 2, top + 16, TEXT, OPC_CENTRE, 0, all->panel[panel]);
    opc_draw_text(c, &BLACK, (x.from + x.to) / 2, y.from + 31, SMALL + 1, OPC_CENTRE, 0,
                  f->x_label);
    opc_draw_text(c, &BLACK, left + 14, (y.from + y.to) / 2, SMALL + 1, OPC_CENTRE, 1, f->y_label);
    opc_draw_clip(c, x.from, y.to - 2, x.to - x.from, y.from - y.to + 4);
    for (int k = 0; k < all->groups; k++)
        if (all->group[k].panel == panel)
            draw_group(c, &all->group[k], ink_of(entry_of(l, all->group[k].label)), &x, &y, px, py);
    opc_draw_unclip(c);
}

int opc_figure_draw(const struct opc_figure *f, const struct opc_curves *all, const char *path,
                    struct opc_err *err)
{
    struct legend legend;
    struct opc_canvas *c;
    int points = 1;
    int code = make_legend(all, &legend, err);
    if (code)
        return code;
    for (int g = 0; g < all->groups; g++)
        points = all->group[g].n > points ? all->group[g].n : points;
    double *px = opc_alloc((size_t)points * 2, sizeof *px);
    double *py = opc_alloc((size_t)points * 2, sizeof *py);
    if (!px || !py)
        code = opc_fail(err, OPC_ENOMEM, "no room to draw %s", path);

    const int columns = all->panels < IN_A_ROW ? all->panels : IN_A_ROW;
    const int rows = (all->panels + IN_A_ROW - 1) / IN_A_ROW;
    const double heading = f->title ? HEADING : 0;
    const double below = heading + rows * PANEL_HEIGHT, width = columns * PANEL_WIDTH;
    if (!code)
        code = opc_canvas_open(path, width, below + (legend.n + 1) * ROW + 12, &c, err);
    if (!code) {
        if (f->title)
            opc_draw_text(c, &BLACK, width / 2, 19, TEXT + 2, OPC_CENTRE, 0, f->title);
        for (int p = 0; p < all->panels; p++) {
            const int row = p / IN_A_ROW, column = p % IN_A_ROW;
            draw_panel(c, f, all, &legend, p, column * PANEL_WIDTH, heading + row * PANEL_HEIGHT,
                       px, py);
        }
        draw_legend(c, &legend, LEFT, below + ROW - 4);
        if (f->note)
            opc_draw_text(c, &DARK, LEFT, below + (legend.n + 1) * ROW, SMALL, OPC_LEFT, 0,
                          f->note);
        code = opc_canvas_close(c, err);
    }
    opc_free(px);
    opc_free(py);
    return code;
}
