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
static void print_label(const struct opc_curves *c, int g, char out[200])
{
    /* Fewest and most runs of this label over all panels. */
    int min = c->group[g].runs, max = min;
    for (int i = 0; i < c->groups; i++)
        if (strcmp(c->group[i].label, c->group[g].label) == 0) {
            min = c->group[i].runs < min ? c->group[i].runs : min;
            max = c->group[i].runs > max ? c->group[i].runs : max;
        }
    const char *label = *c->group[g].label ? c->group[g].label : "all";
    if (min < max)
        snprintf(out, 200, "%s (%d to %d runs)", label, min, max);
    else
        snprintf(out, 200, "%s (%d run%s)", label, max, max == 1 ? "" : "s");
}

/* Number of different labels before that of group g; with `method`, only those of its method. */
static int labels_before(const struct opc_curves *c, int g, bool method)
{
    int n = 0;
    for (int i = 0; i < c->groups && strcmp(c->group[i].label, c->group[g].label) != 0; i++) {
        bool fresh = !method || strcmp(c->group[i].method, c->group[g].method) == 0;
        for (int k = 0; k < i && fresh; k++)
            fresh = strcmp(c->group[k].label, c->group[i].label) != 0;
        n += fresh;
    }
    return n;
}

/* The first line of a method has the method's colour; further lines of it get an automatic one. */
static int colour_of(const struct opc_curves *c, int g)
{
    if (c->group[g].colour && labels_before(c, g, true) == 0)
        return OPC_COLOUR_RGB | (int)c->group[g].colour;
    return OPC_COLOUR_AUTO;
}

/* ---- the figure ------------------------------------------------------------------------------ */

/* The layers of one panel. Bands come first, so that they cover no line; a single run has none.
 * Returns the number of layers. */
static int make_layers(const struct opc_curves *c, int panel, char (*label)[200],
                       struct opc_figure_layer *out)
{
    int layers = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int g = 0; g < c->groups; g++) {
            const struct opc_curve_group *group = &c->group[g];
            if (group->panel != panel || (pass == 0 && group->runs < 2))
                continue;
            out[layers++] = (struct opc_figure_layer){.mark = pass ? OPC_PLOT_LINE : OPC_PLOT_BAND,
                                                      .colour = colour_of(c, g),
                                                      .dash = labels_before(c, g, false) % 4,
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
static struct opc_span reach(const struct opc_curves *c, int panel)
{
    struct opc_span r = {HUGE_VAL, -HUGE_VAL};
    for (int g = 0; g < c->groups; g++)
        for (int i = 0; c->group[g].panel == panel && i < c->group[g].n; i++) {
            r.min = fmin(r.min, c->group[g].x[i]);
            r.max = fmax(r.max, c->group[g].x[i]);
        }
    return r;
}

/* Learning begins at 0, even if the first evaluation is later; {0, 0}: from the data. */
static struct opc_span span_of_x(const struct opc_curves *c, int panel)
{
    const struct opc_span r = reach(c, panel);
    if (r.min > 0 && r.max > r.min)
        return (struct opc_span){0, r.max};
    return (struct opc_span){0, 0};
}

/* ---- a published curve ----------------------------------------------------------------------- */

/* A published curve needs runs of one task that reach its first point. */
static int check_published(const struct opc_published *p, const struct opc_curves *c, double end,
                           struct opc_err *err)
{
    if (c->panels != 1)
        return opc_fail(err, OPC_EUSER,
                        "a published curve is of one task, but these runs are of %d (%s, %s%s); "
                        "name runs of one",
                        c->panels, c->panel[0], c->panel[1], c->panels > 2 ? ", ..." : "");
    if (!(p->steps[0] < end))
        return opc_fail(err, OPC_EUSER,
                        "the published curve begins after %.0f steps and the runs end after %.0f; "
                        "drop --published until they have got further",
                        p->steps[0], end);
    return OPC_OK;
}

/* The published line and band, below all others. The curve ends where the runs do, interpolated
 * if that is between two of its points: what comes later has nothing to be compared with and
 * would compress the rest. */
static int make_published(const struct opc_published *p, double end, char label[200],
                          struct opc_curves_figure *f, struct opc_err *err)
{
    const size_t points = (size_t)p->n;
    f->published = opc_alloc(4 * points, sizeof *f->published);
    if (!f->published)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the published curve");
    /* One block for four arrays of p->n values. */
    double *x = f->published, *mean = x + points, *low = mean + points, *high = low + points;
    int n = 0;
    /* Copy points before `end`; the first one at or after it becomes `end` itself. */
    for (bool more = true; more && n < p->n; n++) {
        more = p->steps[n] < end;
        x[n] = more ? p->steps[n] : end;
        mean[n] = opc_interpolate(p->n, p->steps, p->mean, x[n]);
        const double std = opc_interpolate(p->n, p->steps, p->std, x[n]);
        low[n] = mean[n] - std;
        high[n] = mean[n] + std;
    }
    snprintf(label, 200, "%s, published", p->method);
    for (int k = 0; k < 2; k++)
        f->layer[k] = (struct opc_figure_layer){.mark = k ? OPC_PLOT_LINE : OPC_PLOT_BAND,
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

int opc_curves_figure(const struct opc_curves_style *style, const struct opc_curves *c,
                      struct opc_curves_figure *out, struct opc_err *err)
{
    const int published_layers = style->published ? 2 : 0;
    const double end = reach(c, 0).max;
    const size_t groups = (size_t)c->groups;
    struct opc_curves_figure f = {.panel = opc_alloc((size_t)c->panels, sizeof *f.panel),
                                  .layer = opc_alloc(2 * groups + 2, sizeof *f.layer),
                                  .label = opc_alloc(groups + 1, sizeof *f.label)};
    int code = f.panel && f.layer && f.label
                   ? OPC_OK
                   : opc_fail(err, OPC_ENOMEM, "not enough memory for the figure");
    if (!code && published_layers)
        code = check_published(style->published, c, end, err);
    if (!code && published_layers)
        code = make_published(style->published, end, f.label[groups], &f, err);
    if (code) {
        opc_curves_figure_free(&f);
        return code;
    }
    /* Labels first: layers point at them. */
    for (int g = 0; g < c->groups; g++)
        print_label(c, g, f.label[g]);
    struct opc_figure_layer *layer = f.layer;
    /* Panels take their layers from one array, one after the other. */
    for (int p = 0; p < c->panels; p++) {
        f.panel[p] = (struct opc_panel){
            .title = c->title[p],
            .x_label = style->x_label,
            .y_label = style->y_label,
            .x = span_of_x(c, p),
            .layers = published_layers + make_layers(c, p, f.label, layer + published_layers),
            .layer = layer};
        layer += f.panel[p].layers;
    }
    f.figure = (struct opc_figure){.title = style->title,
                                   .note = style->note,
                                   .panels = c->panels,
                                   .columns = c->columns,
                                   .panel = f.panel,
                                   .share_x = style->share,
                                   .share_y = style->share};
    *out = f;
    return OPC_OK;
}

void opc_curves_figure_free(struct opc_curves_figure *f)
{
    opc_free(f->panel);
    opc_free(f->layer);
    opc_free(f->label);
    opc_free(f->published);
    *f = (struct opc_curves_figure){.panel = NULL};
}

int opc_curves_draw(const struct opc_curves_style *style, const struct opc_curves *c,
                    const char *path, struct opc_err *err)
{
    struct opc_curves_figure f;
    int code = opc_curves_figure(style, c, &f, err);
    if (code)
        return code;
    code = opc_figure_draw(&f.figure, path, err);
    opc_curves_figure_free(&f);
    return code;
}
