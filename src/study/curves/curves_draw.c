/* SPDX-License-Identifier: MIT */
/* Turns groups of runs (curves.h) into a figure (plot/figure.h), with a published curve below
 * them if there is one. opc plot draws it into a file, learning_curves.c makes an exhibit of it.
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
        {"total_steps", "environment steps, random ones included"}};
    for (size_t i = 0; i < sizeof LABEL / sizeof *LABEL; i++)
        if (strcmp(column, LABEL[i][0]) == 0)
            return LABEL[i][1];
    return column;
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

/* Number of different labels before that of group g; with `method`, only those of its method. */
static int labels_before(const struct opc_curves *curves, int g, bool method)
{
    int n = 0;
    for (int i = 0;
         i < curves->groups && strcmp(curves->group[i].label, curves->group[g].label) != 0; i++) {
        bool fresh = !method || strcmp(curves->group[i].method, curves->group[g].method) == 0;
        for (int k = 0; k < i && fresh; k++)
            fresh = strcmp(curves->group[k].label, curves->group[i].label) != 0;
        n += fresh;
    }
    return n;
}

/* All lines of a method have its colour: the first as it is, further ones paler or darker, so that
 * OPC looks like OPC in every picture. The dash tells them apart as well. */
static int colour_of(const struct opc_curves *curves, int g)
{
    /* how far towards white, or with a minus towards black; then again from the beginning */
    static const double SHADE[] = {0, 0.45, -0.45, 0.7, -0.7};
    const unsigned colour = curves->group[g].colour;
    if (!colour)
        return OPC_COLOUR_AUTO;
    const double shade = SHADE[labels_before(curves, g, true) % 5];
    unsigned mixed = 0;
    for (int shift = 16; shift >= 0; shift -= 8) {
        const double part = colour >> shift & 0xff, to = shade > 0 ? 255 : 0;
        mixed |= (unsigned)lround(part + (to - part) * fabs(shade)) << shift;
    }
    return OPC_COLOUR_RGB | (int)mixed;
}

/* ---- the figure ------------------------------------------------------------------------------ */

/* The layers of one panel. Bands come first, so that they cover no line; a single run has none.
 * Returns the number of layers. */
static int make_layers(const struct opc_curves *curves, int panel, char (*label)[200],
                       struct opc_figure_layer *out)
{
    int layers = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int g = 0; g < curves->groups; g++) {
            const struct opc_curve_group *group = &curves->group[g];
            if (group->panel != panel ||
                (pass == 0 && (group->runs < 2 || curves->band == OPC_BAND_NONE)))
                continue;
            out[layers++] = (struct opc_figure_layer){.mark = pass ? OPC_PLOT_LINE : OPC_PLOT_BAND,
                                                      .colour = colour_of(curves, g),
                                                      .dash = labels_before(curves, g, false) % 4,
                                                      .label = label[g],
                                                      .n = group->n,
                                                      .x = group->x,
                                                      .y = group->middle,
                                                      .low = group->low,
                                                      .high = group->high};
        }
    return layers;
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

/* ---- a published curve ----------------------------------------------------------------------- */

/* A published curve needs runs of one task that reach its first point. */
static int check_published(const struct opc_published *published, const struct opc_curves *curves,
                           double end, struct opc_err *err)
{
    if (curves->panels != 1)
        return opc_fail(err, OPC_EUSER,
                        "a published curve is of one task, but these runs are of %d (%s, %s%s); "
                        "name runs of one",
                        curves->panels, curves->panel[0], curves->panel[1],
                        curves->panels > 2 ? ", ..." : "");
    if (!(published->steps[0] < end))
        return opc_fail(err, OPC_EUSER,
                        "the published curve begins after %.0f steps and the runs end after %.0f; "
                        "drop --published until they have got further",
                        published->steps[0], end);
    return OPC_OK;
}

/* The published line and band, below all others. The curve ends where the runs do, interpolated
 * if that is between two of its points: what comes later has nothing to be compared with and
 * would compress the rest. */
static int make_published(const struct opc_published *published, double end, char label[200],
                          struct opc_curves_figure *made, struct opc_err *err)
{
    const size_t points = (size_t)published->n;
    made->published = opc_alloc(4 * points, sizeof *made->published);
    if (!made->published)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the published curve");
    /* One block for four arrays of published->n values. */
    double *x = made->published, *mean = x + points, *low = mean + points, *high = low + points;
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
    for (int k = 0; k < 2; k++)
        made->layer[k] = (struct opc_figure_layer){.mark = k ? OPC_PLOT_LINE : OPC_PLOT_BAND,
                                                   .colour = OPC_COLOUR_GREY,
                                                   .dash = 1,
                                                   .label = label,
                                                   .n = n,
                                                   .x = x,
                                                   .y = mean,
                                                   .low = low,
                                                   .high = high};
    return OPC_OK;
}

/* ---------------------------------------------------------------------------------------------- */

int opc_curves_figure(const struct opc_curves_style *style, const struct opc_curves *curves,
                      struct opc_curves_figure *out, struct opc_err *err)
{
    const int published_layers = style->published ? 2 : 0;
    const double end = panel_reach(curves, 0).max;
    const size_t groups = (size_t)curves->groups;
    struct opc_curves_figure made = {.panel = opc_alloc((size_t)curves->panels, sizeof *made.panel),
                                     .layer = opc_alloc(2 * groups + 2, sizeof *made.layer),
                                     .label = opc_alloc(groups + 1, sizeof *made.label)};
    int code = made.panel && made.layer && made.label
                   ? OPC_OK
                   : opc_fail(err, OPC_ENOMEM, "not enough memory for the figure");
    if (!code && published_layers)
        code = check_published(style->published, curves, end, err);
    if (!code && published_layers)
        code = make_published(style->published, end, made.label[groups], &made, err);
    if (code) {
        opc_curves_figure_free(&made);
        return code;
    }
    /* Labels first: layers point at them. */
    for (int g = 0; g < curves->groups; g++)
        print_label(curves, g, made.label[g]);
    struct opc_figure_layer *layer = made.layer;
    /* Panels take their layers from one array, one after the other. */
    for (int p = 0; p < curves->panels; p++) {
        made.panel[p] =
            (struct opc_panel){.title = curves->title[p],
                               .x_label = style->x_label,
                               .y_label = style->y_label,
                               .x = span_of_x(curves, p),
                               .layers = published_layers + make_layers(curves, p, made.label,
                                                                        layer + published_layers),
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
