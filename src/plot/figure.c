/* SPDX-License-Identifier: MIT */
/* Lays out and draws a figure. Callers are exhibits (study/exhibit) and opc plot.
 *
 * The layout goes from the inside outwards: the ranges of the panels give their ticks, the tick
 * texts give the margins of the panels, and those give the size of the page. Invariant:
 * everything is measured on a scratch canvas first, and the file is opened only when its size is
 * known. */
#include "plot/figure.h"

#include "opc/mem.h"
#include "plot/colour.h"
#include "plot/legend.h"
#include "plot/marks.h"

#include <math.h>
#include <string.h>

/* All lengths are in points. */
static const double PAD = 10; /* around everything */
static const double TICK = 8.5, LABEL = 9.5, TITLE = 10, HEADING = 12, NOTE = 8; /* sizes of text */
static const double LINE = 1.3;            /* from one line to the next, in sizes */
static const double BAR = 9, BAR_GAP = 10; /* the colour scale */
/* Columns by default, and a limit that keeps the arrays of struct layout small. */
enum { IN_A_ROW = 4, MAX_PANELS = 400 };

static const struct opc_ink BLACK = {0.1, 0.1, 0.1, 1, 0.8, 0};
static const struct opc_ink PALE = {0.88, 0.88, 0.88, 1, 0.6, 0};
static const struct opc_ink DARK = {0.35, 0.35, 0.35, 1, 0.8, 0};

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
    struct opc_text title; /* in lines */
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

/* ---- ranges ---------------------------------------------------------------------------------- */

/* Extends a span; an empty one (min > max) leaves it unchanged. */
static void join(struct opc_span *s, const struct opc_span *with)
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
static void measure_extent(struct plot *p)
{
    p->extent = (struct opc_extent){{HUGE_VAL, -HUGE_VAL}, {HUGE_VAL, -HUGE_VAL}};
    for (int k = 0; k < p->panel->layers; k++) {
        const struct opc_extent e = opc_mark_extent(&p->panel->layer[k], p->panel->log_y);
        join(&p->extent.x, &e.x);
        join(&p->extent.y, &e.y);
        p->heat |= p->panel->layer[k].mark == OPC_PLOT_HEAT;
    }
}

/* With share_x or share_y every panel gets the union of all panels' ranges. */
static void share_extents(struct layout *l)
{
    struct opc_extent all = {{HUGE_VAL, -HUGE_VAL}, {HUGE_VAL, -HUGE_VAL}};
    for (int i = 0; i < l->f->panels; i++) {
        join(&all.x, &l->plot[i].extent.x);
        join(&all.y, &l->plot[i].extent.y);
    }
    for (int i = 0; i < l->f->panels; i++) {
        if (l->f->share_x)
            l->plot[i].extent.x = all.x;
        if (l->f->share_y)
            l->plot[i].extent.y = all.y;
    }
}

/* Whether a heat map brings its own scale; equal ends mean "from the data". */
static bool sets_scale(const struct opc_figure_layer *heat)
{
    return heat->heat_low != heat->heat_high;
}

/* The range of all heat maps that do not bring their own scale. */
static struct opc_span heat_range(const struct layout *l)
{
    struct opc_span range = {HUGE_VAL, -HUGE_VAL};
    for (int i = 0; i < l->f->panels; i++)
        for (int k = 0; k < l->plot[i].panel->layers; k++) {
            const struct opc_figure_layer *h = &l->plot[i].panel->layer[k];
            if (h->mark != OPC_PLOT_HEAT || sets_scale(h))
                continue;
            for (size_t j = 0; j < (size_t)h->rows * (size_t)h->columns; j++)
                if (isfinite(h->value[j]))
                    join(&range, &(struct opc_span){h->value[j], h->value[j]});
        }
    return range;
}

/* Fills in the scale of one heat map and notes whether values lie beyond its ends. */
static void set_scale(struct opc_heat_scale *s, const struct opc_figure_layer *h,
                      struct opc_span range)
{
    s->diverging = h->diverging;
    s->low = h->heat_low;
    s->high = h->heat_high;
    /* From the data: symmetric around 0 if diverging, then rounded outwards. */
    if (!sets_scale(h)) {
        const double max = fmax(fabs(range.min), fabs(range.max));
        const struct opc_axis a = opc_axis_make(h->diverging ? -max : range.min,
                                                h->diverging ? max : range.max, false, true, 6);
        s->low = a.min;
        s->high = a.max;
    }
    for (size_t j = 0; j < (size_t)h->rows * (size_t)h->columns; j++) {
        s->below |= h->value[j] < s->low;
        s->above |= h->value[j] > s->high;
    }
}

/* Sets the scale of every heat map, and finds out whether one colour bar can serve all of them. */
static void measure_scales(struct layout *l)
{
    const struct opc_span range = heat_range(l);
    const struct opc_heat_scale *before = NULL;
    l->one_scale = true;
    for (int i = 0; i < l->f->panels; i++) {
        struct opc_heat_scale *s = &l->plot[i].scale;
        for (int k = 0; k < l->plot[i].panel->layers; k++)
            if (l->plot[i].panel->layer[k].mark == OPC_PLOT_HEAT)
                set_scale(s, &l->plot[i].panel->layer[k], range);
        if (!l->plot[i].heat)
            continue;
        l->one_scale &= !before || (before->low == s->low && before->high == s->high &&
                                    before->diverging == s->diverging);
        before = s;
    }
}

/* ---- ticks ----------------------------------------------------------------------------------- */

/* Width in points of the widest tick text. */
static double widest(struct opc_canvas *c, const struct opc_ticks *t)
{
    double max = 0;
    for (int i = 0; i < t->n; i++)
        max = fmax(max, opc_draw_width(c, TICK, t->text[i]));
    return max;
}

/* Width in points of the widest word along x, on one line. */
static double widest_word(struct opc_canvas *c, const struct opc_panel *p)
{
    double max = 0;
    for (int i = 0; i < p->x_word_count; i++)
        max = fmax(max, opc_draw_width(c, TICK, p->x_words[i]));
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
static void arrange_words(struct plot *p, struct opc_canvas *c, double width)
{
    p->word_width = width;
    p->word_lines = 1;
    for (int i = 0; i < p->panel->x_word_count; i++) {
        struct opc_text lines = {0};
        const char *word = p->panel->x_words[i];
        /* Words of this text: more lines than words would mean a break inside a word. */
        int pieces = 0;
        for (const char *at = word; *at; at += strspn(at, " "), pieces++)
            at += strcspn(at, " ");
        opc_break_lines(c, TICK, width, word, &lines);
        const int n = count_lines(&lines);
        p->rotated |= n > pieces || n > 3;
        p->word_lines = n > p->word_lines ? n : p->word_lines;
        p->failed |= lines.failed;
        opc_text_free(&lines);
    }
}

/* Whether x counts something (epochs, trials, steps): all data lie at whole numbers. */
static bool counts(const struct plot *p)
{
    for (int k = 0; k < p->panel->layers; k++) {
        const struct opc_figure_layer *l = &p->panel->layer[k];
        const bool points = l->mark == OPC_PLOT_LINE || l->mark == OPC_PLOT_BAND ||
                            l->mark == OPC_PLOT_DOTS || l->mark == OPC_PLOT_VIOLIN;
        const int n = l->mark == OPC_PLOT_VIOLIN ? 1 : l->n;
        if (l->mark == OPC_PLOT_HEAT)
            return false;
        for (int i = 0; points && i < n; i++)
            if (l->x[i] != round(l->x[i]))
                return false;
    }
    /* Ticks at whole numbers only make sense if there are at least two steps between them. */
    return p->extent.x.max - p->extent.x.min >= 2;
}

/* Tries fewer and fewer ticks until their texts fit along the axis. */
static void make_x_axis(struct layout *l, struct plot *p, struct opc_canvas *c)
{
    const struct opc_panel *panel = p->panel;
    /* Words stand at 0, 1, 2, ...; half a step is left free at both ends. */
    if (panel->x_word_count > 0) {
        const bool given = is_given(&panel->x);
        p->x = opc_axis_make(given ? panel->x.min : -0.5,
                             given ? panel->x.max : panel->x_word_count - 0.5, false, false, 1);
        arrange_words(p, c, l->width / (p->x.max - p->x.min) - 6);
        return;
    }
    const bool whole = counts(p);
    for (int max = 8; max >= 1; max--) {
        /* The axis is widened to round numbers only if its range comes from ordinary data. */
        const struct opc_span *s = is_given(&panel->x) ? &panel->x : &p->extent.x;
        p->x = opc_axis_make(s->min, s->max, false, s == &p->extent.x && !p->heat, max);
        p->x.whole = whole;
        opc_axis_ticks(&p->x, max, &p->x_ticks);
        /* 10 points between texts; the outer halves may reach 5 % beyond the panel on each side. */
        if (p->x_ticks.n * (widest(c, &p->x_ticks) + 10) <= l->width * 1.1)
            return;
    }
}

/* Adds a margin of 3 %, so that no line runs along the edge, or extends the range to 0 if that
 * is near. */
static struct opc_span pad(struct opc_span s)
{
    const double by = 0.03 * (s.max - s.min);
    if (!(by > 0))
        return s;
    return (struct opc_span){
        .min = s.min >= 0 && s.min < 0.3 * s.max ? 0 : s.min - by,
        .max = s.max <= 0 && s.max > 0.3 * s.min ? 0 : s.max + by,
    };
}

static void make_y_axis(struct layout *l, struct plot *p)
{
    const bool given = is_given(&p->panel->y), tight = p->heat || p->panel->log_y;
    /* Given ranges, heat maps and log axes are not padded. */
    const struct opc_span s = given ? p->panel->y : tight ? p->extent.y : pad(p->extent.y);
    /* A tick every 20 points, but between 3 and 8 of them. */
    int max = (int)(l->height / 20);
    max = max < 3 ? 3 : max > 8 ? 8 : max;
    p->y = opc_axis_make(s.min, s.max, p->panel->log_y, !given && !p->heat, max);
    opc_axis_ticks(&p->y, max, &p->y_ticks);
}

/* ---- margins --------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* The panel below this one, or at its left; NULL at the edge. */
static const struct plot *neighbour(const struct layout *l, int i, bool left)
{
    if (left)
        return i % l->columns ? &l->plot[i - 1] : NULL;
    return i + l->columns < l->f->panels ? &l->plot[i + l->columns] : NULL;
}

/* Which texts a panel shows. With shared axes only the outer panels have tick texts; an axis
 * label is left out if the neighbour has the same one. */
static void decide_texts(struct layout *l, int i)
{
    struct plot *p = &l->plot[i];
    const struct plot *left = neighbour(l, i, true), *under = neighbour(l, i, false);
    p->x_shown = !l->f->share_x || !under;
    p->y_shown = !l->f->share_y || !left;
    p->x_named = p->panel->x_label && *p->panel->x_label &&
                 (!under || !same_text(p->panel->x_label, under->panel->x_label));
    p->y_named = p->panel->y_label && *p->panel->y_label &&
                 (!left || !same_text(p->panel->y_label, left->panel->y_label));
}

/* Chooses the size of all panels: as given, or by the number of columns. */
static void choose_size(struct layout *l, struct opc_canvas *c)
{
    static const double WIDTH[IN_A_ROW] = {330, 225, 170, 145};
    double words = 0;
    bool heat = false;
    /* Width that all words along x need on one line, over all panels. */
    for (int i = 0; i < l->f->panels; i++) {
        const struct opc_panel *p = l->plot[i].panel;
        words = fmax(words, p->x_word_count * (widest_word(c, p) + 10));
        heat |= l->plot[i].heat;
    }
    l->width = l->f->panel_width;
    if (!(l->width > 0)) {
        l->width = WIDTH[(l->columns < IN_A_ROW ? l->columns : IN_A_ROW) - 1];
        if (heat)
            l->width = fmin(l->width, 250);
        /* A little wider if that saves words from being broken or turned. */
        if (words > l->width && words < 1.6 * l->width)
            l->width = words;
    }
    /* Heat maps are square, one wide panel is flatter than several in a row. */
    l->height = l->f->panel_height > 0 ? l->f->panel_height
                : heat                 ? l->width
                                       : fmin(l->width * (l->columns == 1 ? 0.62 : 0.74), 220);
}

/* Width of a panel's colour scale with ticks and label; 0 if it has no heat map. */
static double scale_width(struct layout *l, struct plot *p, struct opc_canvas *c)
{
    if (!p->heat)
        return 0;
    const struct opc_axis a = {.min = p->scale.low, .max = p->scale.high};
    opc_axis_ticks(&a, 6, &p->scale_ticks);
    return BAR_GAP + BAR + 5 + widest(c, &p->scale_ticks) + (l->f->heat_label ? LABEL * LINE : 0);
}

static double height_of_lines(const struct opc_text *lines, double size)
{
    return count_lines(lines) * size * LINE;
}

/* Margins of the panels. All panels of a column share left and right, all of a row above and
 * below, so that the grid is regular. */
static void measure_margins(struct layout *l, struct opc_canvas *c)
{
    for (int i = 0; i < l->f->panels; i++) {
        struct plot *p = &l->plot[i];
        const int column = i % l->columns, row = i / l->columns;
        const double scale = scale_width(l, p, c);
        const bool words = p->panel->x_word_count > 0;
        /* side: half of the outermost tick text reaches beyond the panel. left, under: tick
         * texts and then the axis label. */
        double side = 4, left = 0, under = 4;
        if (p->x_shown && !words && p->x_ticks.n)
            side = fmax(side, widest(c, &p->x_ticks) / 2 + 4);
        if (p->y_shown)
            left += widest(c, &p->y_ticks) + 7;
        if (p->y_named)
            left += LABEL * LINE + 3;
        if (p->x_shown)
            under += words && p->rotated ? widest_word(c, p->panel) + 6
                                         : (words ? p->word_lines : 1) * TICK * LINE + 3;
        if (p->x_named)
            under += LABEL * LINE + 2;
        /* Take the maximum over the column and over the row. */
        l->scale_width = fmax(l->scale_width, scale);
        l->left[column] = fmax(l->left[column], fmax(left, side));
        l->right[column] = fmax(l->right[column], side + (l->one_scale ? 0 : scale));
        if (p->panel->title)
            opc_break_lines(c, TITLE, l->width + TITLE, p->panel->title, &p->title);
        p->failed |= p->title.failed;
        l->above[row] = fmax(l->above[row], height_of_lines(&p->title, TITLE) + 5);
        l->below[row] = fmax(l->below[row], under);
    }
    /* Size of the grid, with 6 points between panels. */
    for (int k = 0; k < l->columns; k++)
        l->grid_width += l->left[k] + l->width + l->right[k] + (k ? 6 : 0);
    for (int k = 0; k < l->rows; k++)
        l->grid_height += l->above[k] + l->height + l->below[k] + (k ? 6 : 0);
}

/* From top to bottom: heading, grid, legend, note; page_width includes the padding at the end. */
static void measure_page(struct layout *l, struct opc_canvas *c)
{
    const double body = l->grid_width + (l->one_scale ? l->scale_width : 0);
    opc_legend_arrange(&l->legend, c, body);
    l->page_width = fmax(fmax(body, l->legend.width), 180);
    if (l->f->title)
        opc_break_lines(c, HEADING, l->page_width, l->f->title, &l->heading);
    if (l->f->note)
        opc_break_lines(c, NOTE, l->page_width, l->f->note, &l->note);
    /* Narrow grids are centred on a page that the legend made wider. */
    l->grid_x = PAD + (l->page_width - body) / 2;
    l->grid_top = PAD + height_of_lines(&l->heading, HEADING) + (l->heading.used ? 4 : 0);
    l->page_height = l->grid_top + l->grid_height + PAD;
    if (l->legend.n)
        l->page_height += 6 + opc_legend_height(&l->legend);
    if (l->note.used)
        l->page_height += 6 + height_of_lines(&l->note, NOTE);
    l->page_width += 2 * PAD;
}

/* Everything in order of dependence: nothing here needs a number of a later step. */
static void measure(struct layout *l, struct opc_canvas *c)
{
    const struct opc_figure *f = l->f;
    l->columns = f->columns > 0 ? f->columns : IN_A_ROW;
    l->columns = l->columns > f->panels ? f->panels : l->columns;
    l->rows = (f->panels + l->columns - 1) / l->columns;
    for (int i = 0; i < f->panels; i++) {
        l->plot[i].panel = &f->panel[i];
        measure_extent(&l->plot[i]);
    }
    share_extents(l);
    measure_scales(l);
    choose_size(l, c);
    for (int i = 0; i < f->panels; i++) {
        make_x_axis(l, &l->plot[i], c);
        make_y_axis(l, &l->plot[i]);
        decide_texts(l, i);
    }
    measure_margins(l, c);
    measure_page(l, c);
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* Draws lines of text downwards from y; empty lines take space, too. */
static void draw_lines(struct opc_canvas *c, const struct opc_ink *ink,
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
        opc_draw_text(c, ink, x, y - 0.3 * size, size, anchor, 0, line);
    }
}

/* Pale lines behind the data, at every tick. */
static void draw_grid(struct opc_canvas *c, const struct plot *p)
{
    const struct opc_axis *x = &p->x, *y = &p->y;
    for (int i = 0; i < p->x_ticks.n; i++) {
        const double at = opc_axis_place(x, p->x_ticks.at[i]);
        opc_draw_line(c, &PALE, 2, (double[]){at, at}, (double[]){y->from, y->to});
    }
    for (int i = 0; i < p->y_ticks.n; i++) {
        const double at = opc_axis_place(y, p->y_ticks.at[i]);
        opc_draw_line(c, &PALE, 2, (double[]){x->from, x->to}, (double[]){at, at});
    }
}

/* Everything below the x axis: ticks, their texts or words, and the label at name_at. */
static void draw_x_texts(struct opc_canvas *c, struct plot *p, double bottom, double name_at)
{
    for (int i = 0; i < p->x_ticks.n; i++) {
        const double at = opc_axis_place(&p->x, p->x_ticks.at[i]);
        opc_draw_line(c, &DARK, 2, (double[]){at, at}, (double[]){bottom, bottom + 3});
        if (p->x_shown)
            opc_draw_text(c, &BLACK, at, bottom + 5 + TICK, TICK, OPC_CENTRE, 0,
                          p->x_ticks.text[i]);
    }
    /* Words instead of numbers, turned or broken as arrange_words decided. */
    for (int i = 0; p->x_shown && i < p->panel->x_word_count; i++) {
        const double at = opc_axis_place(&p->x, i);
        if (!opc_axis_shows(&p->x, i))
            continue;
        if (p->rotated)
            opc_draw_text(c, &BLACK, at + 3, bottom + 5, TICK, OPC_RIGHT, 1, p->panel->x_words[i]);
        else {
            struct opc_text lines = {0};
            opc_break_lines(c, TICK, p->word_width, p->panel->x_words[i], &lines);
            draw_lines(c, &BLACK, &lines, TICK, OPC_CENTRE, at, bottom + 4);
            p->failed |= lines.failed;
            opc_text_free(&lines);
        }
    }
    if (p->x_named)
        opc_draw_text(c, &BLACK, (p->x.from + p->x.to) / 2, name_at, LABEL, OPC_CENTRE, 0,
                      p->panel->x_label);
}

/* Everything left of the y axis: ticks, their texts and the label at name_at. */
static void draw_y_texts(struct opc_canvas *c, const struct plot *p, double name_at)
{
    for (int i = 0; i < p->y_ticks.n; i++) {
        const double at = opc_axis_place(&p->y, p->y_ticks.at[i]);
        opc_draw_line(c, &DARK, 2, (double[]){p->x.from - 3, p->x.from}, (double[]){at, at});
        if (p->y_shown)
            opc_draw_text(c, &BLACK, p->x.from - 6, at + 3, TICK, OPC_RIGHT, 0, p->y_ticks.text[i]);
    }
    if (p->y_named)
        opc_draw_text(c, &BLACK, name_at, (p->y.from + p->y.to) / 2, LABEL, OPC_CENTRE, 1,
                      p->panel->y_label);
}

/* The colour bar, low at the bottom, with a pointed end where values lie beyond the scale. */
static void draw_scale(struct opc_canvas *c, const struct layout *l, const struct plot *p, double x,
                       double top, double height)
{
    enum { STEPS = 128 };
    uint8_t cell[STEPS][4];
    const struct opc_heat_scale *s = &p->scale;
    const double tip = 7, bottom = top + height;
    /* The bar proper is shortened by the points; ticks refer to the bar proper. */
    const double high = top + (s->above ? tip : 0), low = bottom - (s->below ? tip : 0);
    struct opc_axis a = {.min = s->low, .max = s->high, .from = low, .to = high};
    /* Row 0 of the image is at the top, hence from high to low. */
    for (int i = 0; i < STEPS; i++)
        opc_colour_heat(s->high + (s->low - s->high) * (i + 0.5) / STEPS, s->low, s->high,
                        s->diverging, cell[i]);
    opc_draw_image(c, x, high, BAR, low - high, STEPS, 1, (const uint8_t(*)[4])cell);
    /* Points in the colour of their end: below first, then above. */
    for (int end = 0; end < 2; end++) {
        if (end ? !s->above : !s->below)
            continue;
        const uint8_t *rgb = cell[end ? 0 : STEPS - 1];
        const struct opc_ink ink = {rgb[0] / 255.0, rgb[1] / 255.0, rgb[2] / 255.0, 1, 0.5, 0};
        const double at = end ? high : low;
        opc_draw_area(c, &ink, 3, (double[]){x, x + BAR, x + BAR / 2},
                      (double[]){at, at, end ? top : bottom});
    }
    /* Outline through both points; a missing one degenerates to a straight edge. */
    opc_draw_line(c, &DARK, 7, (double[]){x, x + BAR / 2, x + BAR, x + BAR, x + BAR / 2, x, x},
                  (double[]){high, top, high, low, bottom, low, high});
    for (int i = 0; i < p->scale_ticks.n; i++) {
        const double at = opc_axis_place(&a, p->scale_ticks.at[i]);
        opc_draw_line(c, &DARK, 2, (double[]){x + BAR, x + BAR + 3}, (double[]){at, at});
        opc_draw_text(c, &BLACK, x + BAR + 5, at + 3, TICK, OPC_LEFT, 0, p->scale_ticks.text[i]);
    }
    if (l->f->heat_label)
        opc_draw_text(c, &BLACK, x + l->scale_width - BAR_GAP, top + height / 2, LABEL, OPC_CENTRE,
                      1, l->f->heat_label);
}

/* Draws one panel with its data area at (x, y): title, grid, layers, frame, texts, colour bar. */
static int draw_panel(struct opc_canvas *c, const struct layout *l, struct plot *p, double x,
                      double y, int row, int column, struct opc_err *err)
{
    const double bottom = y + l->height;
    /* The axes get their canvas coordinates only here. */
    p->x.from = x;
    p->x.to = x + l->width;
    p->y.from = p->panel->y_down ? y : bottom;
    p->y.to = p->panel->y_down ? bottom : y;
    if (p->panel->title)
        draw_lines(c, &BLACK, &p->title, TITLE, OPC_CENTRE, x + l->width / 2,
                   y - 6 + 0.3 * TITLE - height_of_lines(&p->title, TITLE));
    /* A heat map covers the panel, so a grid would not be seen. */
    if (!p->heat)
        draw_grid(c, p);
    int code = OPC_OK;
    for (int k = 0; k < p->panel->layers && !code; k++) {
        const struct opc_figure_layer *layer = &p->panel->layer[k];
        const struct opc_ink ink = opc_legend_ink(&l->legend, layer);
        code = opc_mark_draw(c, layer, &ink, &p->scale, &p->x, &p->y, err);
    }
    /* Heat maps get a full frame, other panels only the two axes. */
    if (p->heat)
        opc_draw_line(c, &DARK, 5, (double[]){x, x + l->width, x + l->width, x, x},
                      (double[]){y, y, bottom, bottom, y});
    else
        opc_draw_line(c, &DARK, 3, (double[]){x, x, x + l->width}, (double[]){y, bottom, bottom});
    draw_x_texts(c, p, bottom, bottom + l->below[row] - 5);
    draw_y_texts(c, p, x - l->left[column] + LABEL);
    if (p->heat && !l->one_scale)
        draw_scale(c, l, p, x + l->width + BAR_GAP, y, l->height);
    if (!code && p->failed)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for the words below a panel");
    return code;
}

/* Draws the panels row by row; the margins were measured per row and per column. */
static int draw_panels(struct opc_canvas *c, const struct layout *l, struct opc_err *err)
{
    double y = l->grid_top;
    int code = OPC_OK;
    for (int row = 0; row < l->rows && !code; row++) {
        double x = l->grid_x;
        y += l->above[row];
        for (int k = 0; k < l->columns && row * l->columns + k < l->f->panels && !code; k++) {
            x += l->left[k];
            code = draw_panel(c, l, &l->plot[row * l->columns + k], x, y, row, k, err);
            x += l->width + l->right[k] + 6;
        }
        y += l->height + l->below[row] + 6;
    }
    return code;
}

/* Draws the whole page onto a canvas of the measured size. */
static int draw(struct opc_canvas *c, struct layout *l, struct opc_err *err)
{
    draw_lines(c, &BLACK, &l->heading, HEADING, OPC_CENTRE, l->page_width / 2, PAD);
    int code = draw_panels(c, l, err);
    if (code)
        return code;
    /* One common colour bar, with points if any panel has values beyond its ends. */
    for (int i = 0; i < l->f->panels && l->one_scale; i++)
        if (l->plot[i].heat) {
            struct plot all = l->plot[i];
            for (int k = 0; k < l->f->panels; k++) {
                all.scale.below |= l->plot[k].scale.below;
                all.scale.above |= l->plot[k].scale.above;
            }
            draw_scale(c, l, &all, l->grid_x + l->grid_width - l->right[l->columns - 1] + BAR_GAP,
                       l->grid_top + l->above[0],
                       l->grid_height - l->above[0] - l->below[l->rows - 1]);
            break;
        }
    /* Legend and note follow below the grid. */
    double y = l->grid_top + l->grid_height;
    if (l->legend.n) {
        opc_legend_draw(&l->legend, c, (l->page_width - l->legend.width) / 2, y + 6);
        y += 6 + opc_legend_height(&l->legend);
    }
    draw_lines(c, &DARK, &l->note, NOTE, OPC_LEFT, PAD, y + 6);
    return OPC_OK;
}

int opc_figure_draw(const struct opc_figure *f, const char *path, struct opc_err *err)
{
    /* The canvas is a scratch one while measuring and the file's afterwards. */
    struct opc_canvas *c = NULL;
    if (f->panels < 1 || f->panels > MAX_PANELS)
        return opc_fail(err, OPC_EUSER, "cannot draw %s: %d panels; a figure has 1 to %d", path,
                        f->panels, MAX_PANELS);
    struct layout *l = opc_alloc(1, sizeof *l);
    if (!l)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to draw %s", path);
    l->f = f;
    l->plot = opc_alloc((size_t)f->panels, sizeof *l->plot);
    int code = OPC_OK;
    if (!l->plot)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory to draw %s", path);
    if (!code)
        code = opc_legend_make(f, &l->legend, err);
    if (!code)
        code = opc_canvas_measure(path, &c, err);
    /* Measure. Texts that ran out of memory are reported before the file is begun. */
    if (!code) {
        measure(l, c);
        opc_canvas_drop(c);
        c = NULL;
        code = opc_text_check(&l->heading, err);
    }
    if (!code)
        code = opc_text_check(&l->note, err);
    if (!code)
        code = opc_canvas_open(path, l->page_width, l->page_height, &c, err);
    /* A failed drawing leaves no file. */
    if (!code) {
        code = draw(c, l, err);
        if (code)
            opc_canvas_drop(c);
        else
            code = opc_canvas_close(c, err);
    }
    opc_text_free(&l->heading);
    opc_text_free(&l->note);
    for (int i = 0; l->plot && i < f->panels; i++)
        opc_text_free(&l->plot[i].title);
    opc_free(l->plot);
    opc_free(l);
    return code;
}
