/* SPDX-License-Identifier: MIT */
#include "plot/figure_private.h"

#include "base/file.h"
#include "drawn.h"
#include "opc/mem.h"
#include "plot/draw.h"
#include "test.h"

enum { N = 50, CELLS = 12 };

/* One figure with every mark, odd values included. */
struct every {
    double x[N], y[N], low[N], high[N], sample[N], equal[N], heat[CELLS * CELLS], at[4];
    struct opc_figure_layer layer[3][8];
    struct opc_panel panel[3];
    struct opc_figure figure;
};

static void fill(struct every *e)
{
    static const char *const WORD[] = {"first", "two words", "third"};
    for (int i = 0; i < N; i++) {
        e->x[i] = i;
        e->y[i] = i % 17 == 5 ? (double)NAN : i - 10;
        e->low[i] = i % 11 == 7 ? (double)NAN : i - 15;
        e->high[i] = i == 3 ? HUGE_VAL : i - 5;
        e->sample[i] = 20 + i % 7 + 0.1 * i;
        e->equal[i] = 30;
    }
    for (int i = 0; i < CELLS * CELLS; i++)
        e->heat[i] = i % 13 == 0 ? (double)NAN : i - 60;
    e->at[0] = 1, e->at[1] = 4, e->at[2] = 2, e->at[3] = 8;
    const struct opc_figure_layer curves[] = {
        {.mark = OPC_PLOT_BAND,
         .colour = OPC_COLOUR_OPC,
         .label = "our <label> & more",
         .n = N,
         .x = e->x,
         .low = e->low,
         .high = e->high},
        {.mark = OPC_PLOT_LINE,
         .colour = OPC_COLOUR_OPC,
         .label = "our <label> & more",
         .n = N,
         .x = e->x,
         .y = e->y},
        {.mark = OPC_PLOT_DOTS, .label = "dotted", .n = N, .x = e->x, .y = e->high},
        {.mark = OPC_PLOT_RULE_Y, .label = "the level", .dash = 2, .y = e->at + 3},
        {.mark = OPC_PLOT_LINE, .n = 0, .label = "empty", .x = e->x, .y = e->y},
    };
    const struct opc_figure_layer samples[] = {
        {.mark = OPC_PLOT_VIOLIN, .label = "many", .n = N, .x = e->x, .y = e->sample, .width = 0.7},
        {.mark = OPC_PLOT_VIOLIN, .label = "few", .n = 4, .x = e->x + 1, .y = e->sample},
        {.mark = OPC_PLOT_VIOLIN, .label = "equal", .n = N, .x = e->x + 2, .y = e->equal},
    };
    const struct opc_figure_layer field[] = {
        {.mark = OPC_PLOT_HEAT,
         .label = "masked",
         .rows = CELLS,
         .columns = CELLS,
         .value = e->heat,
         .x0 = 0,
         .x1 = 10,
         .y0 = 0,
         .y1 = 10,
         .diverging = true,
         .heat_low = -50,
         .heat_high = 50},
        {.mark = OPC_PLOT_RULE_X, .label = "here", .x = e->at},
        {.mark = OPC_PLOT_ARROW, .label = "way", .x = e->at, .y = e->at + 2},
        {.mark = OPC_PLOT_TEXT, .label = "written in the panel", .x = e->at + 1, .y = e->at + 1},
    };
    memcpy(e->layer[0], curves, sizeof curves);
    memcpy(e->layer[1], samples, sizeof samples);
    memcpy(e->layer[2], field, sizeof field);
    e->panel[0] = (struct opc_panel){.title = "curves",
                                     .x_label = "steps",
                                     .y_label = "return",
                                     .layers = 5,
                                     .layer = e->layer[0]};
    e->panel[1] = (struct opc_panel){.title = "samples",
                                     .x_words = WORD,
                                     .x_word_count = 3,
                                     .y_label = "log return",
                                     .log_y = true,
                                     .layers = 3,
                                     .layer = e->layer[1]};
    e->panel[2] = (struct opc_panel){.title = "field",
                                     .x_label = "θ",
                                     .y_label = "Δb",
                                     .y_down = true,
                                     .layers = 4,
                                     .layer = e->layer[2]};
    e->figure = (struct opc_figure){.title = "All marks",
                                    .note = "first line\nsecond line",
                                    .heat_label = "colour scale",
                                    .panels = 3,
                                    .panel = e->panel};
}

static void draw(const struct opc_figure *f, const char *dir, const char *name, char path[512])
{
    struct opc_err err;
    snprintf(path, 512, "%s/%s", dir, name);
    assert_ok(opc_figure_draw(f, path, &err), &err);
}

static char *read_all(const char *path, size_t *n)
{
    char *text;
    struct opc_err err;
    assert_ok(opc_file_read(path, 50000000, &text, n, &err), &err);
    return text;
}

static char *draw_svg(const struct opc_figure *f, const char *dir)
{
    char path[512];
    draw(f, dir, "f.svg", path);
    return read_all(path, NULL);
}

static void need_cairo(void)
{
    if (!opc_draw_version())
        skip();
}

/* The picture is the one whose title has an explicit line break at the place. */
static void assert_breaks_as(struct every *e, const char *dir, const char *title, const char *as)
{
    e->figure.panels = 1;
    e->figure.panel_width = 150;
    e->panel[0].title = title;
    char *broken = draw_svg(&e->figure, dir);
    e->panel[0].title = as;
    char *explicit = draw_svg(&e->figure, dir);
    assert_string_equal(broken, explicit);
    opc_free(broken);
    opc_free(explicit);
}

static void long_titles_break_after_a_semicolon_or_comma(void **state)
{
    need_cairo();
    struct every e;
    fill(&e);
    const char *dir = *state;
    assert_breaks_as(&e, dir, "RoboSchool, angle; bounds learned",
                     "RoboSchool, angle;\nbounds learned");
    assert_breaks_as(&e, dir, "Double integrator, wrong model", "Double integrator,\nwrong model");
    assert_breaks_as(&e, dir, "angle; fixed", "angle; fixed");
}

/* A label is centred below its panel and may not reach that of the next one, or beyond the page. */
static void labels_of_x_stay_apart_in_one_to_four_columns(void **state)
{
    static const char *const NAME = "environment steps, random ones included";
    (void)state;
    need_cairo();
    struct every e;
    struct opc_panel panel[4];
    struct opc_canvas *canvas;
    struct opc_err err;
    fill(&e);
    for (int i = 0; i < 4; i++) {
        panel[i] = e.panel[0];
        panel[i].x_label = NAME;
    }
    for (int columns = 1; columns <= 4; columns++) {
        const struct opc_figure f = {.panels = columns, .columns = columns, .panel = panel};
        struct plot plot[4] = {0};
        struct layout *layout = opc_alloc(1, sizeof *layout);
        assert_non_null(layout);
        layout->f = &f;
        layout->plot = plot;
        assert_ok(opc_canvas_measure("f.svg", &canvas, &err), &err);
        opc_figure_measure(layout, canvas);
        double end = 0, x = layout->grid_x; /* where the label before ends */
        for (int i = 0; i < columns; i++) {
            char *lines = opc_strdup(opc_text_get(&plot[i].x_name));
            double width = 0;
            for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n"))
                width = fmax(width, opc_draw_width(canvas, LABEL, line));
            opc_free(lines);
            x += layout->left[i];
            const double middle = x + layout->width / 2;
            assert_true(width > 0 && middle - width / 2 >= end + 2);
            end = middle + width / 2;
            x += layout->width + layout->right[i] + 6;
            opc_text_free(&plot[i].x_name);
            opc_text_free(&plot[i].title);
        }
        assert_true(end <= layout->page_width);
        opc_canvas_drop(canvas);
        opc_free(layout);
    }
}

static void a_figure_has_the_same_bytes_each_time(void **state)
{
    static const char *const NAME[][2] = {
        {"a.svg", "b.svg"}, {"a.pdf", "b.pdf"}, {"a.png", "b.png"}};
    static const char *const HEAD[] = {"<?xml", "%PDF", "\x89PNG"};
    need_cairo();
    struct every e;
    fill(&e);
    for (int i = 0; i < 3; i++) {
        char one[512], two[512];
        size_t n, m;
        draw(&e.figure, *state, NAME[i][0], one);
        draw(&e.figure, *state, NAME[i][1], two);
        char *a = read_all(one, &n), *b = read_all(two, &m);
        assert_int_equal(n, m);
        assert_same_bits(a, b, n);
        assert_memory_equal(a, HEAD[i], strlen(HEAD[i]));
        opc_free(a);
        opc_free(b);
    }
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

static void every_text_is_in_the_svg_and_labels_once(void **state)
{
    static const char *const TEXT[] = {"All marks\n",   "first line\n",
                                       "second line\n", "colour scale\n",
                                       "curves\n",      "samples\n",
                                       "field\n",       "steps\n",
                                       "return\n",      "log return\n",
                                       "θ\n",           "Δb\n",
                                       "first\n",       "our &lt;label&gt; &amp; more\n",
                                       "dotted\n",      "the level\n",
                                       "empty\n",       "many\n",
                                       "few\n",         "equal\n",
                                       "masked\n",      "here\n",
                                       "way\n",         "written in the panel\n"};
    need_cairo();
    struct every e;
    fill(&e);
    char *svg = draw_svg(&e.figure, *state);
    for (size_t i = 0; i < sizeof TEXT / sizeof *TEXT; i++)
        if (!strstr(svg, TEXT[i]))
            fail_msg("there is no %s", TEXT[i]);
    assert_int_equal(count(svg, "our &lt;label&gt; &amp; more\n"), 1); /* of two layers */
    assert_int_equal(count(svg, "\nway\n"), 1);
    opc_free(svg);
}

/* Three panels beside each other write their common axis once. */
static void shared_axes_are_written_at_the_outer_panels(void **state)
{
    need_cairo();
    struct every e;
    fill(&e);
    e.panel[0].y = (struct opc_span){1000, 2000};
    e.panel[1] = e.panel[2] = e.panel[0];
    char *apart = draw_svg(&e.figure, *state);
    e.figure.share_x = e.figure.share_y = true;
    char *row = draw_svg(&e.figure, *state);
    e.figure.columns = 1;
    char *column = draw_svg(&e.figure, *state);
    assert_int_equal(count(apart, "\n1600\n"), 3);
    assert_int_equal(count(row, "\n1600\n"), 1);
    assert_int_equal(count(column, "\n1600\n"), 3);
    assert_int_equal(count(apart, "\nsteps\n"), 3);
    assert_int_equal(count(column, "\nsteps\n"), 1);
    assert_int_equal(count(apart, "\nreturn\n"), 1);
    opc_free(apart);
    opc_free(row);
    opc_free(column);
}

/* Words stand in for the data; ticks would claim a range. */
static void an_empty_panel_has_words_and_no_ticks(void **state)
{
    need_cairo();
    struct every e;
    struct opc_err err;
    struct opc_canvas *canvas;
    fill(&e);
    e.panel[1] = (struct opc_panel){.title = "later", .y_label = "return", .empty = "nothing yet"};
    e.figure.panels = 2;
    char *svg = draw_svg(&e.figure, *state);
    assert_contains(svg, "nothing yet");
    opc_free(svg);
    for (int shared = 0; shared < 2; shared++) {
        struct layout *layout = opc_alloc(1, sizeof *layout);
        layout->f = &e.figure;
        layout->plot = opc_alloc(2, sizeof *layout->plot);
        e.figure.share_x = shared;
        assert_ok(opc_legend_make(&e.figure, &layout->legend, &err), &err);
        assert_ok(opc_canvas_measure("f.svg", &canvas, &err), &err);
        opc_figure_measure(layout, canvas);
        assert_int_equal(layout->plot[1].x_ticks.n > 0, shared);
        assert_int_equal(layout->plot[1].y_ticks.n, 0);
        assert_true(layout->plot[0].y_ticks.n > 0);
        opc_canvas_drop(canvas);
        for (int i = 0; i < 2; i++) {
            opc_text_free(&layout->plot[i].title);
            opc_text_free(&layout->plot[i].x_name);
        }
        opc_text_free(&layout->heading);
        opc_text_free(&layout->note);
        opc_free(layout->plot);
        opc_free(layout);
    }
}

static void long_notes_are_broken_into_lines(void **state)
{
    need_cairo();
    struct every e;
    fill(&e);
    e.figure.note = "a sentence of many words that goes on and on until nobody remembers how it "
                    "began, but it has to be read all the same because everything is said in it, "
                    "and then some more, for the figure is wide";
    char *svg = draw_svg(&e.figure, *state);
    assert_non_null(strstr(svg, "\na sentence of many words"));
    assert_null(strstr(svg, e.figure.note));
    assert_non_null(strstr(svg, " wide\n"));
    e.figure.panels = 1;
    memset(e.x, 0, sizeof e.x);
    e.figure.note =
        "0123456789012345678901234567890123456789012345678901234567890123456789012345678"
        "9012345678901234567890123456789012345678901234567890123456789"; /* no space */
    char *narrow = draw_svg(&e.figure, *state);
    assert_null(strstr(narrow, e.figure.note));
    assert_non_null(strstr(narrow, "\n01234567890123456789"));
    opc_free(svg);
    opc_free(narrow);
}

/* The colour of a label is what its layers ask for, else one of the palette, another for each. */
static void labels_without_a_colour_differ(void **state)
{
    need_cairo();
    static const char *const WORD[] = {"a", "b", "c"};
    double x[] = {0, 1}, y[] = {0, 1};
    struct opc_figure_layer layer[3];
    for (int i = 0; i < 3; i++)
        layer[i] = (struct opc_figure_layer){
            .mark = OPC_PLOT_LINE, .label = WORD[i], .n = 2, .x = x, .y = y};
    layer[1].colour = OPC_COLOUR_FIRST; /* so that a is given the next */
    const struct opc_panel panel = {.layers = 3, .layer = layer};
    const struct opc_figure f = {.panels = 1, .panel = &panel};
    char *svg = draw_svg(&f, *state);
    assert_int_equal(count(svg, "stroke:rgb(80%,47.5%,65.5%)"), 2); /* line and legend */
    assert_int_equal(count(svg, "stroke:rgb(90.2%,62.4%,0%)"), 2);
    assert_int_equal(count(svg, "stroke:rgb(33.7%,70.6%,91.4%)"), 2);
    opc_free(svg);
}

static void what_cannot_be_drawn_is_refused(void **state)
{
    need_cairo();
    struct every e;
    struct opc_err err;
    char path[512];
    fill(&e);
    snprintf(path, sizeof path, "%s/f.gif", (char *)*state);
    assert_fails(opc_figure_draw(&e.figure, path, &err), OPC_EUSER, &err, path);
    assert_mentions(&err, ".pdf");
    e.figure.panels = 0;
    assert_fails(opc_figure_draw(&e.figure, "f.svg", &err), OPC_EUSER, &err, "0 panels");
}

static int draw_every(void *ctx, struct opc_err *err)
{
    struct every e;
    fill(&e);
    return opc_figure_draw(&e.figure, ctx, err);
}

static void faults_are_survived(void **state)
{
    need_cairo();
    char path[512];
    snprintf(path, sizeof path, "%s/f.svg", (char *)*state);
    assert_survives_lack_of_memory(draw_every, path);
    assert_survives_system_faults(draw_every, path);
}

static void a_build_without_cairo_says_so(void **state)
{
    (void)state;
    if (opc_draw_version())
        skip();
    struct every e;
    struct opc_err err;
    fill(&e);
    assert_fails(opc_figure_draw(&e.figure, "f.svg", &err), OPC_EABSENT, &err, "libcairo2-dev");
    assert_mentions(&err, "OPC_WITH_CAIRO");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_figure_has_the_same_bytes_each_time),
        cmocka_unit_test(every_text_is_in_the_svg_and_labels_once),
        cmocka_unit_test(shared_axes_are_written_at_the_outer_panels),
        cmocka_unit_test(an_empty_panel_has_words_and_no_ticks),
        cmocka_unit_test(long_notes_are_broken_into_lines),
        cmocka_unit_test(long_titles_break_after_a_semicolon_or_comma),
        cmocka_unit_test(labels_of_x_stay_apart_in_one_to_four_columns),
        cmocka_unit_test(labels_without_a_colour_differ),
        cmocka_unit_test(what_cannot_be_drawn_is_refused),
        cmocka_unit_test(faults_are_survived),
        cmocka_unit_test(a_build_without_cairo_says_so),
    };
    return cmocka_run_group_tests(tests, test_make_dir, test_remove_dir);
}
