/* SPDX-License-Identifier: MIT */
/* Draws a figure. Callers are exhibits (study/exhibit) and opc plot. figure_layout.c decides where
 * everything stands; marks.c draws the data and legend.c the legend.
 *
 * Invariant: everything is measured on a scratch canvas first, and the file is opened only when its
 * size is known. */
#include "plot/figure_private.h"

#include "opc/mem.h"
#include "plot/colour.h"

#include <string.h>

static const struct opc_ink BLACK = {0.1, 0.1, 0.1, 1, 0.8, 0};
static const struct opc_ink PALE = {0.88, 0.88, 0.88, 1, 0.6, 0};
static const struct opc_ink DARK = {0.35, 0.35, 0.35, 1, 0.8, 0};

/* Draws lines of text downwards from y; empty lines take space, too. */
static void draw_lines(struct opc_canvas *canvas, const struct opc_ink *ink,
                       const struct opc_text *lines, double size, enum opc_anchor anchor, double x,
                       double y)
{
    char line[512];
    for (const char *at = opc_text_get(lines); *at; at += strcspn(at, "\n") + 1) {
        const size_t n = strcspn(at, "\n");
        y += size * LINE;
        if (n == 0 || n >= sizeof line)
            continue;
        memcpy(line, at, n);
        line[n] = '\0';
        opc_draw_text(canvas, ink, x, y - 0.3 * size, size, anchor, 0, line);
    }
}

/* Pale lines behind the data, at every tick. */
static void draw_grid(struct opc_canvas *canvas, const struct plot *plot)
{
    const struct opc_axis *x = &plot->x, *y = &plot->y;
    for (int i = 0; i < plot->x_ticks.n; i++) {
        const double at = opc_axis_place(x, plot->x_ticks.at[i]);
        opc_draw_line(canvas, &PALE, 2, (double[]){at, at}, (double[]){y->from, y->to});
    }
    for (int i = 0; i < plot->y_ticks.n; i++) {
        const double at = opc_axis_place(y, plot->y_ticks.at[i]);
        opc_draw_line(canvas, &PALE, 2, (double[]){x->from, x->to}, (double[]){at, at});
    }
}

/* Everything below the x axis: ticks, their texts or words, and the label, whose last line is at
 * name_at. */
static void draw_x_texts(struct opc_canvas *canvas, struct plot *plot, double bottom,
                         double name_at)
{
    for (int i = 0; i < plot->x_ticks.n; i++) {
        const double at = opc_axis_place(&plot->x, plot->x_ticks.at[i]);
        opc_draw_line(canvas, &DARK, 2, (double[]){at, at}, (double[]){bottom, bottom + 3});
        if (plot->x_shown)
            opc_draw_text(canvas, &BLACK, at, bottom + 5 + TICK, TICK, OPC_CENTRE, 0,
                          plot->x_ticks.text[i]);
    }
    /* Words instead of numbers, turned or broken as arrange_words decided. */
    for (int i = 0; plot->x_shown && i < plot->panel->x_word_count; i++) {
        const double at = opc_axis_place(&plot->x, i);
        if (!opc_axis_shows(&plot->x, i))
            continue;
        if (plot->rotated)
            opc_draw_text(canvas, &BLACK, at + 3, bottom + 5, TICK, OPC_RIGHT, 1,
                          plot->panel->x_words[i]);
        else {
            struct opc_text lines = {0};
            opc_break_lines(canvas, TICK, plot->word_width, plot->panel->x_words[i], &lines);
            draw_lines(canvas, &BLACK, &lines, TICK, OPC_CENTRE, at, bottom + 4);
            plot->failed |= lines.failed;
            opc_text_free(&lines);
        }
    }
    if (plot->x_named)
        draw_lines(canvas, &BLACK, &plot->x_name, LABEL, OPC_CENTRE,
                   (plot->x.from + plot->x.to) / 2,
                   name_at + 0.3 * LABEL - opc_figure_text_height(&plot->x_name, LABEL));
}

/* Everything left of the y axis: ticks, their texts and the label at name_at. */
static void draw_y_texts(struct opc_canvas *canvas, const struct plot *plot, double name_at)
{
    for (int i = 0; i < plot->y_ticks.n; i++) {
        const double at = opc_axis_place(&plot->y, plot->y_ticks.at[i]);
        opc_draw_line(canvas, &DARK, 2, (double[]){plot->x.from - 3, plot->x.from},
                      (double[]){at, at});
        if (plot->y_shown)
            opc_draw_text(canvas, &BLACK, plot->x.from - 6, at + 3, TICK, OPC_RIGHT, 0,
                          plot->y_ticks.text[i]);
    }
    if (plot->y_named)
        opc_draw_text(canvas, &BLACK, name_at, (plot->y.from + plot->y.to) / 2, LABEL, OPC_CENTRE,
                      1, plot->panel->y_label);
}

/* The colour bar, low at the bottom, with a tip at each end beyond which there are values. */
static void draw_scale(struct opc_canvas *canvas, const struct layout *layout,
                       const struct plot *plot, double x, double top, double height)
{
    enum { STEPS = 128 };
    uint8_t cell[STEPS][4];
    const struct opc_heat_scale *scale = &plot->scale;
    const double tip = 7, bottom = top + height;
    /* The bar proper is shortened by the tips; ticks refer to the bar proper. */
    const double high = top + (scale->above ? tip : 0), low = bottom - (scale->below ? tip : 0);
    struct opc_axis axis = {.min = scale->low, .max = scale->high, .from = low, .to = high};
    /* Row 0 of the image is at the top, hence from high to low. */
    for (int i = 0; i < STEPS; i++)
        opc_colour_heat(scale->high + (scale->low - scale->high) * (i + 0.5) / STEPS, scale->low,
                        scale->high, scale->diverging, cell[i]);
    opc_draw_image(canvas, x, high, BAR, low - high, STEPS, 1, (const uint8_t(*)[4])cell);
    /* Tips have the colour of their end: below first, then above. */
    for (int end = 0; end < 2; end++) {
        if (end ? !scale->above : !scale->below)
            continue;
        const uint8_t *rgb = cell[end ? 0 : STEPS - 1];
        const struct opc_ink ink = {rgb[0] / 255.0, rgb[1] / 255.0, rgb[2] / 255.0, 1, 0.5, 0};
        const double at = end ? high : low;
        opc_draw_area(canvas, &ink, 3, (double[]){x, x + BAR, x + BAR / 2},
                      (double[]){at, at, end ? top : bottom});
    }
    /* The outline runs through both tips; a missing one degenerates to a straight edge. */
    opc_draw_line(canvas, &DARK, 7, (double[]){x, x + BAR / 2, x + BAR, x + BAR, x + BAR / 2, x, x},
                  (double[]){high, top, high, low, bottom, low, high});
    for (int i = 0; i < plot->scale_ticks.n; i++) {
        const double at = opc_axis_place(&axis, plot->scale_ticks.at[i]);
        opc_draw_line(canvas, &DARK, 2, (double[]){x + BAR, x + BAR + 3}, (double[]){at, at});
        opc_draw_text(canvas, &BLACK, x + BAR + 5, at + 3, TICK, OPC_LEFT, 0,
                      plot->scale_ticks.text[i]);
    }
    if (layout->f->heat_label)
        opc_draw_text(canvas, &BLACK, x + layout->scale_width - BAR_GAP, top + height / 2, LABEL,
                      OPC_CENTRE, 1, layout->f->heat_label);
}

/* Draws one panel with its data area at (x, y): title, grid, layers, frame, texts, colour bar. */
static int draw_panel(struct opc_canvas *canvas, const struct layout *layout, struct plot *plot,
                      double x, double y, int row, int column, struct opc_err *err)
{
    const double bottom = y + layout->height;
    /* The axes get their canvas coordinates only here. */
    plot->x.from = x;
    plot->x.to = x + layout->width;
    plot->y.from = plot->panel->y_down ? y : bottom;
    plot->y.to = plot->panel->y_down ? bottom : y;
    if (plot->panel->title)
        draw_lines(canvas, &BLACK, &plot->title, TITLE, OPC_CENTRE, x + layout->width / 2,
                   y - 6 + 0.3 * TITLE - opc_figure_text_height(&plot->title, TITLE));
    /* A heat map covers the panel, so a grid would not be seen. */
    if (!plot->heat)
        draw_grid(canvas, plot);
    int code = OPC_OK;
    for (int k = 0; k < plot->panel->layers && !code; k++) {
        const struct opc_figure_layer *layer = &plot->panel->layer[k];
        const struct opc_ink ink = opc_legend_ink(&layout->legend, layer);
        code = opc_mark_draw(canvas, layer, &ink, &plot->scale, &plot->x, &plot->y, err);
    }
    /* Heat maps get a full frame, other panels only the two axes. */
    if (plot->heat)
        opc_draw_line(canvas, &DARK, 5, (double[]){x, x + layout->width, x + layout->width, x, x},
                      (double[]){y, y, bottom, bottom, y});
    else
        opc_draw_line(canvas, &DARK, 3, (double[]){x, x, x + layout->width},
                      (double[]){y, bottom, bottom});
    if (plot->panel->empty)
        opc_draw_text(canvas, &DARK, x + layout->width / 2, y + layout->height / 2, LABEL,
                      OPC_CENTRE, 0, plot->panel->empty);
    draw_x_texts(canvas, plot, bottom, bottom + layout->below[row] - 5);
    draw_y_texts(canvas, plot, x - layout->left[column] + LABEL);
    if (plot->heat && !layout->one_scale)
        draw_scale(canvas, layout, plot, x + layout->width + BAR_GAP, y, layout->height);
    if (!code && plot->failed)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for the words below a panel");
    return code;
}

/* Draws the panels row by row; the margins were measured per row and per column. */
static int draw_panels(struct opc_canvas *canvas, const struct layout *layout, struct opc_err *err)
{
    double y = layout->grid_top;
    int code = OPC_OK;
    for (int row = 0; row < layout->rows && !code; row++) {
        double x = layout->grid_x;
        y += layout->above[row];
        for (int k = 0;
             k < layout->columns && row * layout->columns + k < layout->f->panels && !code; k++) {
            x += layout->left[k];
            code = draw_panel(canvas, layout, &layout->plot[row * layout->columns + k], x, y, row,
                              k, err);
            x += layout->width + layout->right[k] + 6;
        }
        y += layout->height + layout->below[row] + 6;
    }
    return code;
}

/* Draws the whole page onto a canvas of the measured size. */
static int draw_page(struct opc_canvas *canvas, struct layout *layout, struct opc_err *err)
{
    draw_lines(canvas, &BLACK, &layout->heading, HEADING, OPC_CENTRE, layout->page_width / 2, PAD);
    int code = draw_panels(canvas, layout, err);
    if (code)
        return code;
    /* One common colour bar has tips if any panel has values beyond its ends. */
    for (int i = 0; i < layout->f->panels && layout->one_scale; i++)
        if (layout->plot[i].heat) {
            struct plot all = layout->plot[i];
            for (int k = 0; k < layout->f->panels; k++) {
                all.scale.below |= layout->plot[k].scale.below;
                all.scale.above |= layout->plot[k].scale.above;
            }
            draw_scale(canvas, layout, &all,
                       layout->grid_x + layout->grid_width - layout->right[layout->columns - 1] +
                           BAR_GAP,
                       layout->grid_top + layout->above[0],
                       layout->grid_height - layout->above[0] - layout->below[layout->rows - 1]);
            break;
        }
    /* Legend and note follow below the grid. */
    double y = layout->grid_top + layout->grid_height;
    if (layout->legend.n) {
        opc_legend_draw(&layout->legend, canvas, (layout->page_width - layout->legend.width) / 2,
                        y + 6);
        y += 6 + opc_legend_height(&layout->legend);
    }
    draw_lines(canvas, &DARK, &layout->note, NOTE, OPC_LEFT, PAD, y + 6);
    return OPC_OK;
}

int opc_figure_draw(const struct opc_figure *figure, const char *path, struct opc_err *err)
{
    /* The canvas is a scratch one while measuring and the file's afterwards. */
    struct opc_canvas *canvas = NULL;
    if (figure->panels < 1 || figure->panels > MAX_PANELS)
        return opc_fail(err, OPC_EUSER, "cannot draw %s: %d panels; a figure has 1 to %d", path,
                        figure->panels, MAX_PANELS);
    struct layout *layout = opc_alloc(1, sizeof *layout);
    if (!layout)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to draw %s", path);
    layout->f = figure;
    layout->plot = opc_alloc((size_t)figure->panels, sizeof *layout->plot);
    int code = OPC_OK;
    if (!layout->plot)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory to draw %s", path);
    if (!code)
        code = opc_legend_make(figure, &layout->legend, err);
    if (!code)
        code = opc_canvas_measure(path, &canvas, err);
    /* Measure. Texts that ran out of memory are reported before the file is begun. */
    if (!code) {
        opc_figure_measure(layout, canvas);
        opc_canvas_drop(canvas);
        canvas = NULL;
        code = opc_text_check(&layout->heading, err);
    }
    if (!code)
        code = opc_text_check(&layout->note, err);
    if (!code)
        code = opc_canvas_open(path, layout->page_width, layout->page_height, &canvas, err);
    /* A failed drawing leaves no file. */
    if (!code) {
        code = draw_page(canvas, layout, err);
        if (code)
            opc_canvas_drop(canvas);
        else
            code = opc_canvas_close(canvas, err);
    }
    opc_text_free(&layout->heading);
    opc_text_free(&layout->note);
    for (int i = 0; layout->plot && i < figure->panels; i++) {
        opc_text_free(&layout->plot[i].title);
        opc_text_free(&layout->plot[i].x_name);
    }
    opc_free(layout->plot);
    opc_free(layout);
    return code;
}
