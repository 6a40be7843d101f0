/* SPDX-License-Identifier: MIT */
/* The layout of a figure: ranges and ticks of the panels, their margins, and the size of the page.
 * figure.c calls opc_figure_measure, and then draws everything where it was put.
 *
 * The layout goes from the inside outwards: the ranges of the panels give their ticks, the tick
 * texts give the margins of the panels, and those give the size of the page. Invariant: each step
 * needs only numbers of the steps before it, and none of them draws. */
#include "plot/figure_private.h"

#include <math.h>
#include <string.h>

enum { IN_A_ROW = 4 };        /* columns by default */
static const double SIDE = 4; /* the least margin left and right of a panel */

/* ---- ranges ---------------------------------------------------------------------------------- */

/* Extends a span; an empty one (min > max) leaves it unchanged. */
static void join_span(struct opc_span *s, const struct opc_span *with)
{
    s->min = fmin(s->min, with->min);
    s->max = fmax(s->max, with->max);
}

/* Whether the caller fixed the range; equal ends mean "from the data". */
static bool is_given(const struct opc_span *s)
{
    return s->min != s->max;
}

/* The union of what the layers of a panel cover. */
static void measure_extent(struct plot *plot)
{
    plot->extent = (struct opc_extent){{HUGE_VAL, -HUGE_VAL}, {HUGE_VAL, -HUGE_VAL}};
    for (int k = 0; k < plot->panel->layers; k++) {
        const struct opc_extent e = opc_mark_extent(&plot->panel->layer[k], plot->panel->log_y);
        join_span(&plot->extent.x, &e.x);
        join_span(&plot->extent.y, &e.y);
        plot->heat |= plot->panel->layer[k].mark == OPC_PLOT_HEAT;
    }
}

/* With share_x or share_y every panel gets the union of all panels' ranges. */
static void share_extents(struct layout *layout)
{
    struct opc_extent all = {{HUGE_VAL, -HUGE_VAL}, {HUGE_VAL, -HUGE_VAL}};
    for (int i = 0; i < layout->f->panels; i++) {
        join_span(&all.x, &layout->plot[i].extent.x);
        join_span(&all.y, &layout->plot[i].extent.y);
    }
    for (int i = 0; i < layout->f->panels; i++) {
        if (layout->f->share_x)
            layout->plot[i].extent.x = all.x;
        if (layout->f->share_y)
            layout->plot[i].extent.y = all.y;
    }
}

/* Whether a heat map brings its own scale; equal ends mean "from the data". */
static bool sets_scale(const struct opc_figure_layer *heat)
{
    return heat->heat_low != heat->heat_high;
}

/* The range of all heat maps that do not bring their own scale. */
static struct opc_span heat_range(const struct layout *layout)
{
    struct opc_span range = {HUGE_VAL, -HUGE_VAL};
    for (int i = 0; i < layout->f->panels; i++)
        for (int k = 0; k < layout->plot[i].panel->layers; k++) {
            const struct opc_figure_layer *h = &layout->plot[i].panel->layer[k];
            if (h->mark != OPC_PLOT_HEAT || sets_scale(h))
                continue;
            for (size_t j = 0; j < (size_t)h->rows * (size_t)h->columns; j++)
                if (isfinite(h->value[j]))
                    join_span(&range, &(struct opc_span){h->value[j], h->value[j]});
        }
    return range;
}

/* Fills in the scale of one heat map and notes whether values lie beyond its ends. */
static void set_scale(struct opc_heat_scale *scale, const struct opc_figure_layer *h,
                      struct opc_span range)
{
    scale->diverging = h->diverging;
    scale->low = h->heat_low;
    scale->high = h->heat_high;
    /* From the data: symmetric around 0 if diverging, then rounded outwards. */
    if (!sets_scale(h)) {
        const double max = fmax(fabs(range.min), fabs(range.max));
        const struct opc_axis axis = opc_axis_make(h->diverging ? -max : range.min,
                                                   h->diverging ? max : range.max, false, true, 6);
        scale->low = axis.min;
        scale->high = axis.max;
    }
    for (size_t j = 0; j < (size_t)h->rows * (size_t)h->columns; j++) {
        scale->below |= h->value[j] < scale->low;
        scale->above |= h->value[j] > scale->high;
    }
}

/* Sets the scale of every heat map, and finds out whether one colour bar can serve all of them. */
static void measure_scales(struct layout *layout)
{
    const struct opc_span range = heat_range(layout);
    const struct opc_heat_scale *before = NULL;
    layout->one_scale = true;
    for (int i = 0; i < layout->f->panels; i++) {
        struct opc_heat_scale *scale = &layout->plot[i].scale;
        for (int k = 0; k < layout->plot[i].panel->layers; k++)
            if (layout->plot[i].panel->layer[k].mark == OPC_PLOT_HEAT)
                set_scale(scale, &layout->plot[i].panel->layer[k], range);
        if (!layout->plot[i].heat)
            continue;
        layout->one_scale &= !before || (before->low == scale->low && before->high == scale->high &&
                                         before->diverging == scale->diverging);
        before = scale;
    }
}

/* ---- ticks ----------------------------------------------------------------------------------- */

/* Width in points of the widest tick text. */
static double widest_tick(struct opc_canvas *canvas, const struct opc_ticks *ticks)
{
    double max = 0;
    for (int i = 0; i < ticks->n; i++)
        max = fmax(max, opc_draw_width(canvas, TICK, ticks->text[i]));
    return max;
}

/* Width in points of the widest word along x, on one line. */
static double widest_word(struct opc_canvas *canvas, const struct opc_panel *p)
{
    double max = 0;
    for (int i = 0; i < p->x_word_count; i++)
        max = fmax(max, opc_draw_width(canvas, TICK, p->x_words[i]));
    return max;
}

static int count_lines(const struct opc_text *lines)
{
    int n = 0;
    for (const char *at = opc_text_get(lines); *at; at++)
        n += *at == '\n';
    return n;
}

/* Words along x are broken into up to three lines, between words only. If one of them does not
 * fit that way, all of them are turned. */
static void arrange_words(struct plot *plot, struct opc_canvas *canvas, double width)
{
    plot->word_width = width;
    plot->word_lines = 1;
    for (int i = 0; i < plot->panel->x_word_count; i++) {
        struct opc_text lines = {0};
        const char *word = plot->panel->x_words[i];
        /* Words of this text: more lines than words would mean a break inside a word. */
        int pieces = 0;
        for (const char *at = word; *at; at += strspn(at, " "), pieces++)
            at += strcspn(at, " ");
        opc_break_lines(canvas, TICK, width, word, &lines);
        const int n = count_lines(&lines);
        plot->rotated |= n > pieces || n > 3;
        plot->word_lines = n > plot->word_lines ? n : plot->word_lines;
        plot->failed |= lines.failed;
        opc_text_free(&lines);
    }
}

/* Whether x counts something (epochs, trials, steps): all data lie at whole numbers. */
static bool x_counts(const struct plot *plot)
{
    for (int k = 0; k < plot->panel->layers; k++) {
        const struct opc_figure_layer *layer = &plot->panel->layer[k];
        const bool points = layer->mark == OPC_PLOT_LINE || layer->mark == OPC_PLOT_BAND ||
                            layer->mark == OPC_PLOT_DOTS || layer->mark == OPC_PLOT_VIOLIN;
        const int n = layer->mark == OPC_PLOT_VIOLIN ? 1 : layer->n;
        if (layer->mark == OPC_PLOT_HEAT)
            return false;
        for (int i = 0; points && i < n; i++)
            if (layer->x[i] != round(layer->x[i]))
                return false;
    }
    /* Ticks at whole numbers only make sense if there are at least two steps between them. */
    return plot->extent.x.max - plot->extent.x.min >= 2;
}

/* Whether an axis has nothing to show: the panel is empty, and its range neither given nor shared.
 */
static bool has_no_range(const struct plot *plot, const struct opc_span *given,
                         const struct opc_span *extent)
{
    return plot->panel->empty && !is_given(given) && !(extent->min <= extent->max);
}

/* Tries fewer and fewer ticks until their texts fit along the axis. */
static void make_x_axis(struct layout *layout, struct plot *plot, struct opc_canvas *canvas)
{
    const struct opc_panel *panel = plot->panel;
    /* Words stand at 0, 1, 2, ...; half a step is left free at both ends. */
    if (panel->x_word_count > 0) {
        const bool given = is_given(&panel->x);
        plot->x = opc_axis_make(given ? panel->x.min : -0.5,
                                given ? panel->x.max : panel->x_word_count - 0.5, false, false, 1);
        arrange_words(plot, canvas, layout->width / (plot->x.max - plot->x.min) - 6);
        return;
    }
    if (has_no_range(plot, &panel->x, &plot->extent.x)) {
        plot->x = opc_axis_make(0, 1, false, false, 1);
        return;
    }
    const bool whole = x_counts(plot);
    for (int max = 8; max >= 1; max--) {
        /* The axis is widened to round numbers only if its range comes from ordinary data. */
        const struct opc_span *s = is_given(&panel->x) ? &panel->x : &plot->extent.x;
        plot->x = opc_axis_make(s->min, s->max, false, s == &plot->extent.x && !plot->heat, max);
        plot->x.whole = whole;
        opc_axis_ticks(&plot->x, max, &plot->x_ticks);
        /* 10 points between texts; the outer halves may reach 5 % beyond the panel on each side. */
        if (plot->x_ticks.n * (widest_tick(canvas, &plot->x_ticks) + 10) <= layout->width * 1.1)
            return;
    }
}

/* Adds a margin of 3 %, so that no line runs along the edge, or extends the range to 0 if that
 * is near. */
static struct opc_span pad_span(struct opc_span s)
{
    const double by = 0.03 * (s.max - s.min);
    if (!(by > 0))
        return s;
    return (struct opc_span){
        .min = s.min >= 0 && s.min < 0.3 * s.max ? 0 : s.min - by,
        .max = s.max <= 0 && s.max > 0.3 * s.min ? 0 : s.max + by,
    };
}

static void make_y_axis(struct layout *layout, struct plot *plot)
{
    const bool given = is_given(&plot->panel->y), tight = plot->heat || plot->panel->log_y;
    if (has_no_range(plot, &plot->panel->y, &plot->extent.y)) {
        plot->y = opc_axis_make(0, 1, false, false, 1);
        return;
    }
    /* Given ranges, heat maps and log axes are not padded. */
    const struct opc_span s = given   ? plot->panel->y
                              : tight ? plot->extent.y
                                      : pad_span(plot->extent.y);
    /* A tick every 20 points, but between 3 and 8 of them. */
    int max = (int)(layout->height / 20);
    max = max < 3 ? 3 : max > 8 ? 8 : max;
    plot->y = opc_axis_make(s.min, s.max, plot->panel->log_y, !given && !plot->heat, max);
    opc_axis_ticks(&plot->y, max, &plot->y_ticks);
}

/* ---- margins --------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* The panel below this one, or at its left; NULL at the edge. */
static const struct plot *neighbour(const struct layout *layout, int i, bool left)
{
    if (left)
        return i % layout->columns ? &layout->plot[i - 1] : NULL;
    return i + layout->columns < layout->f->panels ? &layout->plot[i + layout->columns] : NULL;
}

/* Which texts a panel shows. With shared axes only the outer panels have tick texts; an axis
 * label is left out if the neighbour has the same one. */
static void decide_texts(const struct layout *layout, int i, struct plot *plot)
{
    const struct plot *left = neighbour(layout, i, true), *under = neighbour(layout, i, false);
    plot->x_shown = !layout->f->share_x || !under;
    plot->y_shown = !layout->f->share_y || !left;
    plot->x_named = plot->panel->x_label && *plot->panel->x_label &&
                    (!under || !same_text(plot->panel->x_label, under->panel->x_label));
    plot->y_named = plot->panel->y_label && *plot->panel->y_label &&
                    (!left || !same_text(plot->panel->y_label, left->panel->y_label));
}

/* Chooses the size of all panels: as given, or by the number of columns. */
static void choose_size(struct layout *layout, struct opc_canvas *canvas)
{
    static const double WIDTH[IN_A_ROW] = {330, 225, 170, 145};
    double words = 0;
    bool heat = false;
    /* Width that all words along x need on one line, over all panels. */
    for (int i = 0; i < layout->f->panels; i++) {
        const struct opc_panel *p = layout->plot[i].panel;
        words = fmax(words, p->x_word_count * (widest_word(canvas, p) + 10));
        heat |= layout->plot[i].heat;
    }
    layout->width = layout->f->panel_width;
    if (!(layout->width > 0)) {
        layout->width = WIDTH[(layout->columns < IN_A_ROW ? layout->columns : IN_A_ROW) - 1];
        if (heat)
            layout->width = fmin(layout->width, 250);
        /* A little wider if that saves words from being broken or turned. */
        if (words > layout->width && words < 1.6 * layout->width)
            layout->width = words;
    }
    /* Heat maps are square, one wide panel is flatter than several in a row. */
    layout->height = layout->f->panel_height > 0 ? layout->f->panel_height
                     : heat                      ? layout->width
                            : fmin(layout->width * (layout->columns == 1 ? 0.62 : 0.74), 220);
}

/* Width of a panel's colour scale with ticks and label; 0 if it has no heat map. */
static double scale_width(struct layout *layout, struct plot *plot, struct opc_canvas *canvas)
{
    if (!plot->heat)
        return 0;
    const struct opc_axis axis = {.min = plot->scale.low, .max = plot->scale.high};
    opc_axis_ticks(&axis, 6, &plot->scale_ticks);
    return BAR_GAP + BAR + 5 + widest_tick(canvas, &plot->scale_ticks) +
           (layout->f->heat_label ? LABEL * LINE : 0);
}

double opc_figure_text_height(const struct opc_text *lines, double size)
{
    return count_lines(lines) * size * LINE;
}

/* A title or a label that is too wide for one line is broken where its sense is: at the last
 * semicolon, or else at the last comma. */
static void break_by_sense(struct opc_canvas *canvas, double size, double width, const char *text,
                           struct opc_text *out)
{
    const char *end = strrchr(text, ';');
    if (!end)
        end = strrchr(text, ',');
    if (!end || end[1] != ' ' || opc_draw_width(canvas, size, text) <= width) {
        opc_break_lines(canvas, size, width, text, out);
        return;
    }
    struct opc_text first = {0};
    opc_text_add_bytes(&first, text, (size_t)(end + 1 - text));
    opc_break_lines(canvas, size, width, opc_text_get(&first), out);
    opc_break_lines(canvas, size, width, end + 2, out);
    out->failed |= first.failed;
    opc_text_free(&first);
}

/* Margins of the panels. All panels of a column share left and right, all of a row above and
 * below, so that the grid is regular. */
static void measure_margins(struct layout *layout, struct opc_canvas *canvas)
{
    for (int i = 0; i < layout->f->panels; i++) {
        struct plot *plot = &layout->plot[i];
        const int column = i % layout->columns, row = i / layout->columns;
        const double scale = scale_width(layout, plot, canvas);
        const bool words = plot->panel->x_word_count > 0;
        /* side: half of the outermost tick text reaches beyond the panel. left, under: tick
         * texts and then the axis label. */
        double side = SIDE, left = 0, under = 4;
        if (plot->x_shown && !words && plot->x_ticks.n)
            side = fmax(side, widest_tick(canvas, &plot->x_ticks) / 2 + SIDE);
        if (plot->y_shown)
            left += widest_tick(canvas, &plot->y_ticks) + 7;
        if (plot->y_named)
            left += LABEL * LINE + 3;
        if (plot->x_shown)
            under += words && plot->rotated ? widest_word(canvas, plot->panel) + 6
                                            : (words ? plot->word_lines : 1) * TICK * LINE + 3;
        /* The label of x may use the least margin on both sides, so that it reaches neither the
         * next panel's nor the edge of the page. */
        if (plot->x_named) {
            break_by_sense(canvas, LABEL, layout->width + 2 * SIDE, plot->panel->x_label,
                           &plot->x_name);
            under += opc_figure_text_height(&plot->x_name, LABEL) + 2;
        }
        /* Take the maximum over the column and over the row. */
        layout->scale_width = fmax(layout->scale_width, scale);
        layout->left[column] = fmax(layout->left[column], fmax(left, side));
        layout->right[column] = fmax(layout->right[column], side + (layout->one_scale ? 0 : scale));
        if (plot->panel->title)
            break_by_sense(canvas, TITLE, layout->width + TITLE, plot->panel->title, &plot->title);
        plot->failed |= plot->title.failed || plot->x_name.failed;
        layout->above[row] =
            fmax(layout->above[row], opc_figure_text_height(&plot->title, TITLE) + 5);
        layout->below[row] = fmax(layout->below[row], under);
    }
    /* Size of the grid, with 6 points between panels. */
    for (int k = 0; k < layout->columns; k++)
        layout->grid_width += layout->left[k] + layout->width + layout->right[k] + (k ? 6 : 0);
    for (int k = 0; k < layout->rows; k++)
        layout->grid_height += layout->above[k] + layout->height + layout->below[k] + (k ? 6 : 0);
}

/* From top to bottom: heading, grid, legend, note; page_width includes the padding at the end. */
static void measure_page(struct layout *layout, struct opc_canvas *canvas)
{
    const double body = layout->grid_width + (layout->one_scale ? layout->scale_width : 0);
    opc_legend_arrange(&layout->legend, canvas, body);
    layout->page_width = fmax(fmax(body, layout->legend.width), 180);
    if (layout->f->title)
        opc_break_lines(canvas, HEADING, layout->page_width, layout->f->title, &layout->heading);
    if (layout->f->note)
        opc_break_lines(canvas, NOTE, layout->page_width, layout->f->note, &layout->note);
    /* Narrow grids are centred on a page that the legend made wider. */
    layout->grid_x = PAD + (layout->page_width - body) / 2;
    layout->grid_top =
        PAD + opc_figure_text_height(&layout->heading, HEADING) + (layout->heading.used ? 4 : 0);
    layout->page_height = layout->grid_top + layout->grid_height + PAD;
    if (layout->legend.n)
        layout->page_height += 6 + opc_legend_height(&layout->legend);
    if (layout->note.used)
        layout->page_height += 6 + opc_figure_text_height(&layout->note, NOTE);
    layout->page_width += 2 * PAD;
}

/* In order of dependence: nothing here needs a number of a later step. */
void opc_figure_measure(struct layout *layout, struct opc_canvas *canvas)
{
    const struct opc_figure *figure = layout->f;
    layout->columns = figure->columns > 0 ? figure->columns : IN_A_ROW;
    layout->columns = layout->columns > figure->panels ? figure->panels : layout->columns;
    layout->rows = (figure->panels + layout->columns - 1) / layout->columns;
    for (int i = 0; i < figure->panels; i++) {
        layout->plot[i].panel = &figure->panel[i];
        measure_extent(&layout->plot[i]);
    }
    share_extents(layout);
    measure_scales(layout);
    choose_size(layout, canvas);
    for (int i = 0; i < figure->panels; i++) {
        struct plot *plot = &layout->plot[i];
        make_x_axis(layout, plot, canvas);
        make_y_axis(layout, plot);
        decide_texts(layout, i, plot);
    }
    measure_margins(layout, canvas);
    measure_page(layout, canvas);
}
