/* SPDX-License-Identifier: MIT */
/* Figure 10: the signed gradient distance as a drawing: two tangents, the angle between them
 * over pi, and the sign that says whether they rise to the same side.
 *
 * Invariant: the distance is computed by opc_gradient_distance, the function the other figures
 * use. */
#include "study/example/toy.h"
#include "study/exhibit/analysis.h"

#include <math.h>
#include <stdio.h>

/* clang-format off */
#define FIELDS(X)                                                                                   \
    X(REALS, g1, "[0.1, -3, 1, 0]",     -1e6, 1e6, "slopes of the first tangents, a panel each")    \
    X(REALS, g2, "[2, -0.5, -1, -1]",   -1e6, 1e6, "slopes of the second tangents")
/* clang-format on */

struct settings {
    FIELDS(OPC_MEMBER)
};
#define SELF struct settings
static const struct opc_section section =
    OPC_SECTION("gradient_angle", "the angle between two tangents", FIELDS);
#undef SELF

enum { ARC = 61, LAYERS = 4 }; /* points of the sector; sector, two tangents, text */
static const double RADIUS = 0.5, REACH = 0.95;

/* A panel: tangents through the middle of [-1, 1]^2, and the sector between them. */
struct sketch {
    double x[2][2], y[2][2];
    double arc_x[ARC], arc_low[ARC], arc_high[ARC]; /* the sector as a band */
    double text_x, text_y;
    char title[80], text[40];
    struct opc_figure_layer layer[LAYERS];
};

/* Puts the text into the corner that is furthest from all ends of tangents. */
static void place_text(struct sketch *sketch)
{
    double furthest = -1;
    /* Corners in reading order; the text is centred 0.45 from the edge. */
    for (int corner = 0; corner < 4; corner++) {
        const double x = corner & 1 ? 0.55 : -0.55, y = corner & 2 ? -0.85 : 0.85;
        double nearest = HUGE_VAL;
        for (int k = 0; k < 2; k++)
            for (int end = 0; end < 2; end++)
                nearest = fmin(nearest, hypot(sketch->x[k][end] - x, sketch->y[k][end] - y));
        if (nearest > furthest) {
            furthest = nearest;
            sketch->text_x = x;
            sketch->text_y = y;
        }
    }
}

/* Makes one panel from two slopes. */
static void fill_sketch(double g1, double g2, struct sketch *sketch)
{
    const double angle[2] = {atan(g1), atan(g2)};
    const double low = fmin(angle[0], angle[1]), high = fmax(angle[0], angle[1]);
    const double d = opc_gradient_distance(g1, g2);
    /* Both tangents have the same length, whatever their slope. */
    for (int k = 0; k < 2; k++)
        for (int end = 0; end < 2; end++) {
            sketch->x[k][end] = (end ? REACH : -REACH) * cos(angle[k]);
            sketch->y[k][end] = (end ? REACH : -REACH) * sin(angle[k]);
        }
    /* Over x, the sector lies above the lower tangent, below the upper one and inside the
     * circle. */
    for (int i = 0; i < ARC; i++) {
        const double x = RADIUS * i / (ARC - 1), rim = sqrt(fmax(0, RADIUS * RADIUS - x * x));
        sketch->arc_x[i] = x;
        sketch->arc_low[i] = fmax(x * tan(low), -rim);
        sketch->arc_high[i] = fmin(x * tan(high), rim);
        if (sketch->arc_low[i] > sketch->arc_high[i])
            sketch->arc_low[i] = sketch->arc_high[i] = (double)NAN;
    }
    /* Texts, then layers: the sector first, so that tangents cover it. */
    place_text(sketch);
    snprintf(sketch->title, sizeof sketch->title, "g₁ = %s%g, g₂ = %s%g", g1 < 0 ? "−" : "",
             fabs(g1), g2 < 0 ? "−" : "", fabs(g2));
    snprintf(sketch->text, sizeof sketch->text, "d = %s%.3f", d < 0 ? "−" : "+", fabs(d));
    struct opc_figure_layer *layer = sketch->layer;
    *layer++ =
        (struct opc_figure_layer){.mark = OPC_PLOT_BAND,
                                  .colour = d < 0 ? OPC_COLOUR_MODEL : OPC_COLOUR_OPC,
                                  .label = d < 0 ? "different sides, d < 0" : "same side, d ≥ 0",
                                  .n = ARC,
                                  .x = sketch->arc_x,
                                  .low = sketch->arc_low,
                                  .high = sketch->arc_high};
    for (int k = 0; k < 2; k++)
        *layer++ =
            (struct opc_figure_layer){.mark = OPC_PLOT_LINE,
                                      .colour = k ? OPC_COLOUR_GREY : OPC_COLOUR_TRUE,
                                      .dash = k,
                                      .label = k ? "tangent of slope g₂" : "tangent of slope g₁",
                                      .n = 2,
                                      .x = sketch->x[k],
                                      .y = sketch->y[k]};
    *layer++ = (struct opc_figure_layer){.mark = OPC_PLOT_TEXT,
                                         .label = sketch->text,
                                         .n = 1,
                                         .x = &sketch->text_x,
                                         .y = &sketch->text_y};
}

/* The analysis itself: a panel for each pair of slopes. */
static int gradient_angle_make(const struct opc_request *request, const void *settings,
                               struct opc_exhibit *exhibit, struct opc_err *err)
{
    (void)request;
    const struct settings *set = settings;
    const int n = set->g1.n;
    if (n < 1 || n != set->g2.n)
        return opc_fail(err, OPC_EUSER, "g1 has %d slopes and g2 has %d; a pair has one of each", n,
                        set->g2.n);
    struct sketch sketch[OPC_LIST_MAX];
    struct opc_panel panel[OPC_LIST_MAX];
    struct opc_table *table;
    int code = opc_table_create("g1,g2,angle1,angle2,distance", &table, err);
    if (code)
        return code;
    /* Pairs with slopes of the same sign, of different signs, and outside the range of their
     * kind. */
    int same = 0, other = 0, astray = 0;
    for (int i = 0; i < n; i++) {
        const double g1 = set->g1.at[i], g2 = set->g2.at[i], d = opc_gradient_distance(g1, g2);
        opc_table_real(table, g1);
        opc_table_real(table, g2);
        opc_table_real(table, atan(g1));
        opc_table_real(table, atan(g2));
        opc_table_fixed(table, d, 6);
        same += g1 * g2 > 0;
        other += g1 * g2 < 0;
        /* A pair with a zero slope has no sign and does not count. */
        astray += (g1 * g2 > 0 && !(d >= 0 && d < 0.5)) || (g1 * g2 < 0 && !(d < 0 && d > -1));
        fill_sketch(g1, g2, &sketch[i]);
        panel[i] = (struct opc_panel){.title = sketch[i].title,
                                      .x_label = "θ",
                                      .y_label = "J(θ)",
                                      .x = {-1, 1},
                                      .y = {-1, 1},
                                      .layers = LAYERS,
                                      .layer = sketch[i].layer};
    }
    code = opc_exhibit_table(exhibit, NULL, "signed gradient distances", table, err);
    opc_table_free(table);
    const struct opc_figure figure = {
        .note = "d is the angle between the tangents over π; its sign tells whether both rise to "
                "the same side.",
        .panels = n,
        .panel = panel,
        .share_x = true,
        .share_y = true,
        .panel_width = 125,
        .panel_height = 125,
    };
    if (!code)
        code = opc_exhibit_figure(exhibit, NULL, "The signed gradient distance", &figure, err);
    if (!code)
        opc_exhibit_claim(exhibit,
                          !same && !other ? OPC_VERDICT_UNDECIDED
                          : astray        ? OPC_VERDICT_NOT_SUPPORTED
                                          : OPC_VERDICT_SUPPORTED,
                          "Gradients of the same sign are in [0, 0.5) apart, of different signs in "
                          "(−1, 0).",
                          "%d pairs of the same sign and %d of different signs; %d outside these "
                          "ranges.",
                          same, other, astray);
    return code;
}

const struct opc_analysis opc_gradient_angle = {"gradient_angle",
                                                "the angle between two tangents (Figure 10)",
                                                &section, .make = gradient_angle_make};
