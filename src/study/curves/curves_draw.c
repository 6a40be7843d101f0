/* SPDX-License-Identifier: MIT */
/* Turns groups of runs (curves.h) into a figure (plot/figure.h), with published curves below
 * them if there are any. opc plot draws it into a file, learning_curves.c makes an exhibit of it.
 *
 * Invariant: a label looks the same in every panel, so colour and dash depend on the labels and
 * their order only. */
#include "study/curves/curves_draw.h"

#include "num/stats.h"
#include "opc/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *opc_column_label(const char *column)
{
    static const char *const LABEL[][2] = {
        {"eval_return", "return"},
        {"eval_length", "episode length"},
        {"env_steps", "environment steps"},
        {"total_steps", "environment steps, random ones included"},
        {OPC_CURVES_ERROR "1", "on-policy error after 1 step"},
        {OPC_CURVES_ERROR "5", "on-policy error after 5 steps"},
        {OPC_CURVES_ERROR "10", "on-policy error after 10 steps"}};
    for (size_t i = 0; i < sizeof LABEL / sizeof *LABEL; i++)
        if (strcmp(column, LABEL[i][0]) == 0)
            return LABEL[i][1];
    return column;
}

void opc_curves_note(const struct opc_curves *curves, int smooth, struct opc_text *note)
{
    bool several = false;
    for (int g = 0; g < curves->groups; g++)
        several = several || curves->group[g].runs > 1;
    if (several)
        opc_text_add(note, opc_band_names(curves->band).sentence);
    if (smooth > 1)
        opc_text_addf(note, "%ssmoothed by a moving average", several ? "; " : "");
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* "OPC (5 runs)", or "OPC (3 to 5 runs)" when panels differ. */
static void print_label(const struct opc_curves *curves, int g, char out[200])
{
    /* Fewest and most runs of this label over all panels. */
    int min = curves->group[g].runs, max = min;
    for (int i = 0; i < curves->groups; i++)
        if (strcmp(curves->group[i].label, curves->group[g].label) == 0) {
            min = curves->group[i].runs < min ? curves->group[i].runs : min;
            max = curves->group[i].runs > max ? curves->group[i].runs : max;
        }
    const char *label = *curves->group[g].label ? curves->group[g].label : "all";
    if (min < max)
        snprintf(out, 200, "%s (%d to %d runs)", label, min, max);
    else
        snprintf(out, 200, "%s (%d run%s)", label, max, max == 1 ? "" : "s");
}

/* Number of different labels of its method before that of group g; with `colour`, only of those
 * that have its colour, too: corrections of PETS have one of their own. */
static int labels_before(const struct opc_curves *curves, int g, bool colour)
{
    int n = 0;
    for (int i = 0;
         i < curves->groups && strcmp(curves->group[i].label, curves->group[g].label) != 0; i++) {
        bool fresh = strcmp(curves->group[i].method, curves->group[g].method) == 0 &&
                     (!colour || curves->group[i].colour == curves->group[g].colour);
        for (int k = 0; k < i && fresh; k++)
            fresh = strcmp(curves->group[k].label, curves->group[i].label) != 0;
        n += fresh;
    }
    return n;
}

bool opc_curves_crowded(const struct opc_curves *curves)
{
    enum { MOST = 5 };
    for (int p = 0; p < curves->panels; p++) {
        int lines = 0;
        for (int g = 0; g < curves->groups; g++)
            lines += curves->group[g].panel == p;
        if (lines > MOST)
            return true;
    }
    return false;
}

/* All lines of a method have its colour: the first as it is, further ones paler or darker, so that
 * OPC looks like OPC in every picture. The dash tells them apart as well. In a crowded picture the
 * second is darker: a pale one is lost in the bands of the others. */
static int colour_of(const struct opc_curves *curves, int g, bool crowded)
{
    /* how far towards white, or with a minus towards black; then again from the beginning */
    static const double SHADE[] = {0, 0.45, -0.45, 0.7, -0.7};
    const unsigned colour = curves->group[g].colour;
    if (!colour)
        return OPC_COLOUR_AUTO;
    const double pale = SHADE[labels_before(curves, g, true) % 5];
    const double shade = crowded ? -pale : pale;
    unsigned mixed = 0;
    for (int shift = 16; shift >= 0; shift -= 8) {
        const double part = colour >> shift & 0xff, to = shade > 0 ? 255 : 0;
        mixed |= (unsigned)lround(part + (to - part) * fabs(shade)) << shift;
    }
    return OPC_COLOUR_RGB | (int)mixed;
}

/* ---- the figure ------------------------------------------------------------------------------ */

/* A line with its band, or one run of it. All share the label, and with it the colour; what tells
 * lines of one method apart is the dash. */
static struct opc_figure_layer layer_of(const struct opc_curves *curves, int g, bool crowded,
                                        char (*label)[200])
{
    const struct opc_curve_group *group = &curves->group[g];
    return (struct opc_figure_layer){.mark = OPC_PLOT_LINE,
                                     .colour = colour_of(curves, g, crowded),
                                     .dash = labels_before(curves, g, false) % 4,
                                     .label = label[g],
                                     .n = group->n,
                                     .x = group->x,
                                     .y = group->middle,
                                     .low = group->low,
                                     .high = group->high};
}

/* The layers of one panel. Bands come first, so that they cover no line, then where the style wants
 * them and there are not too many lines the runs themselves, then the lines; a single run has only
 * its line. Returns the number of layers. */
static int make_layers(const struct opc_curves_style *style, const struct opc_curves *curves,
                       int panel, char (*label)[200], struct opc_figure_layer *out)
{
    const bool crowded = style->runs && opc_curves_crowded(curves);
    int layers = 0;
    for (int g = 0; g < curves->groups; g++)
        if (curves->group[g].panel == panel && curves->group[g].runs > 1 &&
            curves->band != OPC_BAND_NONE) {
            out[layers] = layer_of(curves, g, crowded, label);
            out[layers++].mark = OPC_PLOT_BAND;
        }
    for (int i = 0; style->runs && !crowded && i < curves->runs; i++) {
        const struct opc_curve_run *run = &curves->run[i];
        const struct opc_curve_group *group = &curves->group[run->group];
        if (group->panel != panel || group->runs < 2 || run->n == 0)
            continue;
        struct opc_figure_layer *layer = &out[layers++];
        *layer = layer_of(curves, run->group, crowded, label);
        layer->faint = true;
        layer->width = 0.5;
        layer->n = run->n;
        layer->x = run->x;
        layer->y = run->y;
    }
    for (int g = 0; g < curves->groups; g++)
        if (curves->group[g].panel == panel)
            out[layers++] = layer_of(curves, g, crowded, label);
    return layers;
}

/* Whether no run is of the panel. */
static bool is_empty(const struct opc_curves *curves, int panel)
{
    for (int g = 0; g < curves->groups; g++)
        if (curves->group[g].panel == panel)
            return false;
    return true;
}

/* The range of x over all lines of the panel. */
static struct opc_span panel_reach(const struct opc_curves *curves, int panel)
{
    struct opc_span r = {HUGE_VAL, -HUGE_VAL};
    for (int g = 0; g < curves->groups; g++)
        for (int i = 0; curves->group[g].panel == panel && i < curves->group[g].n; i++) {
            r.min = fmin(r.min, curves->group[g].x[i]);
            r.max = fmax(r.max, curves->group[g].x[i]);
        }
    return r;
}

/* Learning begins at 0, even if the first evaluation is later; {0, 0}: from the data. */
static struct opc_span span_of_x(const struct opc_curves *curves, int panel)
{
    const struct opc_span r = panel_reach(curves, panel);
    if (r.min > 0 && r.max > r.min)
        return (struct opc_span){0, r.max};
    return (struct opc_span){0, 0};
}

/* ---- published curves ------------------------------------------------------------------------ */

/* Published curves need runs of one task that reach the first point of each. */
static int check_published(const struct opc_published *published, const struct opc_curves *curves,
                           double end, struct opc_err *err)
{
    if (curves->panels != 1)
        return opc_fail(err, OPC_EUSER,
                        "a published curve is of one task, but these runs are of %d (%s, %s%s); "
                        "name runs of one",
                        curves->panels, curves->panel[0], curves->panel[1],
                        curves->panels > 2 ? ", ..." : "");
    for (const struct opc_published *p = published; p; p = p->next)
        if (!(p->steps[0] < end))
            return opc_fail(err, OPC_EUSER,
                            "the published curve '%s' begins after %.0f steps and the runs end "
                            "after %.0f; leave it out until they have got further",
                            p->method, p->steps[0], end);
    return OPC_OK;
}

/* What tells published curves apart: the first is the grey of every picture, further ones are
 * darker or paler. The dashes, of which there are three, differ, too. */
static int published_colour(int number)
{
    static const int SHADE[] = {0x4a4a4a, 0xb4b4b4, 0x6b6b6b, 0x2a2a2a};
    return number == 0 ? OPC_COLOUR_GREY : OPC_COLOUR_RGB | SHADE[(number - 1) % 4];
}

/* The published line and band, below all others. The curve ends where the runs do, interpolated
 * if that is between two of its points: what comes later has nothing to be compared with and
 * would compress the rest. number: among those of the panel. buffer: [4][published->n]. */
static void make_published(const struct opc_published *published, double end, char label[200],
                           int number, double *buffer, struct opc_figure_layer *band,
                           struct opc_figure_layer *line)
{
    const size_t points = (size_t)published->n;
    double *x = buffer, *mean = x + points, *low = mean + points, *high = low + points;
    int n = 0;
    /* Copy points before `end`; the first one at or after it becomes `end` itself. */
    for (bool more = true; more && n < published->n; n++) {
        more = published->steps[n] < end;
        x[n] = more ? published->steps[n] : end;
        mean[n] = opc_interpolate(published->n, published->steps, published->mean, x[n]);
        const double std = opc_interpolate(published->n, published->steps, published->std, x[n]);
        low[n] = mean[n] - std;
        high[n] = mean[n] + std;
    }
    snprintf(label, 200, "%s, published", published->method);
    *line = (struct opc_figure_layer){.mark = OPC_PLOT_LINE,
                                      .colour = published_colour(number),
                                      .dash = 1 + number % 3,
                                      .label = label,
                                      .n = n,
                                      .x = x,
                                      .y = mean,
                                      .low = low,
                                      .high = high};
    *band = *line;
    band->mark = OPC_PLOT_BAND;
}

/* The published curves of a panel; NULL: none. */
static const struct opc_published *published_of(const struct opc_curves_style *style, int panel)
{
    return style->published ? style->published : style->by_panel ? style->by_panel[panel] : NULL;
}

/* How many of them begin before the runs of the panel end. */
static int count_published(const struct opc_published *first, double end)
{
    int n = 0;
    for (const struct opc_published *p = first; p; p = p->next)
        n += p->steps[0] < end;
    return n;
}

/* Those that do, with all bands below all lines. label: [OPC_PUBLISHED_MAX]. Returns the number of
 * layers; *buffer advances. */
static int make_all_published(const struct opc_published *first, double end, char (*label)[200],
                              double **buffer, struct opc_figure_layer *layer)
{
    const int n = count_published(first, end);
    int number = 0, made = 0; /* a method has its shade also where one before it is not drawn */
    for (const struct opc_published *p = first; p; p = p->next, number++) {
        if (!(p->steps[0] < end))
            continue;
        make_published(p, end, label[number], number, *buffer, &layer[made], &layer[n + made]);
        *buffer += 4 * (size_t)p->n;
        made++;
    }
    return 2 * n;
}

/* ---------------------------------------------------------------------------------------------- */

/* The memory of a figure: layers for bands, lines, runs and published curves. */
static int allocate_figure(const struct opc_curves_style *style, const struct opc_curves *curves,
                           struct opc_curves_figure *made, struct opc_err *err)
{
    const size_t groups = (size_t)curves->groups, panels = (size_t)curves->panels;
    size_t points = 0, published = 0;
    for (int k = 0; k < curves->panels; k++)
        for (const struct opc_published *p = published_of(style, k); p; p = p->next, published++)
            points += (size_t)p->n;
    const size_t layers = 2 * groups + 2 * published + (style->runs ? (size_t)curves->runs : 0);
    *made = (struct opc_curves_figure){
        .panel = opc_alloc(panels, sizeof *made->panel),
        .layer = opc_alloc(layers, sizeof *made->layer),
        .label = opc_alloc(groups + OPC_PUBLISHED_MAX, sizeof *made->label),
        .published = points ? opc_alloc(4 * points, sizeof *made->published) : NULL};
    return made->panel && made->layer && made->label && (made->published || !points)
               ? OPC_OK
               : opc_fail(err, OPC_ENOMEM, "not enough memory for the figure");
}

int opc_curves_figure(const struct opc_curves_style *style, const struct opc_curves *curves,
                      struct opc_curves_figure *out, struct opc_err *err)
{
    if (style->published)
        OPC_TRY(check_published(style->published, curves, panel_reach(curves, 0).max, err));
    struct opc_curves_figure made;
    const int code = allocate_figure(style, curves, &made, err);
    if (code) {
        opc_curves_figure_free(&made);
        return code;
    }
    /* Labels first: layers point at them. */
    for (int g = 0; g < curves->groups; g++)
        print_label(curves, g, made.label[g]);
    struct opc_figure_layer *layer = made.layer;
    double *buffer = made.published;
    /* Panels take their layers from one array, one after the other. */
    for (int p = 0; p < curves->panels; p++) {
        const int below = make_all_published(published_of(style, p), panel_reach(curves, p).max,
                                             made.label + curves->groups, &buffer, layer);
        made.panel[p] = (struct opc_panel){
            .title = curves->title[p],
            .x_label = style->x_label,
            .y_label = style->y_label,
            .x = span_of_x(curves, p),
            .empty = is_empty(curves, p) ? "no runs yet" : NULL,
            .layers = below + make_layers(style, curves, p, made.label, layer + below),
            .layer = layer};
        layer += made.panel[p].layers;
    }
    made.figure = (struct opc_figure){.title = style->title,
                                      .note = style->note,
                                      .panels = curves->panels,
                                      .columns = curves->columns,
                                      .panel = made.panel,
                                      .share_x = style->share,
                                      .share_y = style->share};
    *out = made;
    return OPC_OK;
}

void opc_curves_figure_free(struct opc_curves_figure *made)
{
    opc_free(made->panel);
    opc_free(made->layer);
    opc_free(made->label);
    opc_free(made->published);
    *made = (struct opc_curves_figure){.panel = NULL};
}

int opc_curves_draw(const struct opc_curves_style *style, const struct opc_curves *curves,
                    const char *path, struct opc_err *err)
{
    struct opc_curves_figure made;
    int code = opc_curves_figure(style, curves, &made, err);
    if (code)
        return code;
    code = opc_figure_draw(&made.figure, path, err);
    opc_curves_figure_free(&made);
    return code;
}
