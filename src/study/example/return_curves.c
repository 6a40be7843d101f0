/* SPDX-License-Identifier: MIT */
/* Figure 7: the return J(theta) by the environment, by the model and by the corrected model,
 * with tangents at the policy of the recording. A panel for each recording.
 *
 * Invariant: at theta = theta_n the corrected curve touches the true one; that is the first
 * claim. */
#include "opc/mem.h"
#include "study/example/toy.h"
#include "study/exhibit/analysis.h"

#include <math.h>
#include <stdio.h>

/* clang-format off */
#define FIELDS(X)                                                                                   \
    X(REALS, theta_n,     "[-1.3, -1.2]", -10, 10, "policies that made the recordings, a panel each") \
    X(REAL,  delta_a,     "0.5",  -10,  10,   "error of the model's A")                             \
    X(REAL,  delta_b,     "0",    -10,  10,   "error of the model's B")                             \
    X(REAL,  theta_min, "-2",   -10,  10,   "where the policies begin", "theta_least")                           \
    X(REAL,  theta_max,  "-0.4", -10,  10,   "where the policies end", "theta_most")                             \
    X(INT,   points,      "1601", 3,    1e5,  "points of a curve")                                         \
    X(REAL,  tangent,     "0.12", 0,    10,   "half the length of the tangents, in theta")          \
    X(REAL,  J_min,     "0.85", -1,   1,    "where the axis of the return begins", "J_least")                \
    X(REAL,  J_max,      "1",    -1,   2,    "where the axis of the return ends", "J_most")
/* clang-format on */

struct settings {
    FIELDS(OPC_MEMBER)
};
#define SELF struct settings
static const struct opc_section section =
    OPC_SECTION("return_curves", "returns of the 1-D example over the policy", FIELDS);
#undef SELF

enum { BY = 3, LAYERS = 1 + 2 * BY + 2 }; /* rule, curves and tangents of each, two dots */
static const char *const LABEL[BY] = {"environment", "model", "model with corrections"};
static const int COLOUR[BY] = {OPC_COLOUR_TRUE, OPC_COLOUR_MODEL, OPC_COLOUR_OPC};

/* Curves and tangents for one recording. */
struct recording {
    double theta_n;
    struct opc_toy_value at[BY]; /* J and slope at theta_n */
    double best[BY];             /* argmax of each curve */
    double *J[BY];               /* [points] */
    double x[BY][2], y[BY][2];   /* tangents */
    char title[64];
};

/* All recordings over one grid of policies. */
struct curves {
    int n, panels;
    double *theta; /* [n] */
    double *block; /* all curves */
    struct recording at[OPC_LIST_MAX];
};

/* Accepts curves of which nothing was allocated. */
static void return_curves_destroy(struct curves *curves)
{
    opc_free(curves->theta);
    opc_free(curves->block);
}

/* Computes the curves, their maxima and the tangents of one recording. */
static void fill_recording(const struct settings *set, const struct opc_toy *toy,
                           const struct curves *curves, struct recording *recording)
{
    /* The curve on the grid, and its argmax. */
    for (int by = 0; by < BY; by++) {
        const enum opc_toy_by who = (enum opc_toy_by)by;
        int best = 0;
        for (int i = 0; i < curves->n; i++) {
            recording->J[by][i] = opc_toy_value(toy, who, curves->theta[i], recording->theta_n).J;
            if (recording->J[by][i] > recording->J[by][best])
                best = i;
        }
        recording->best[by] = curves->theta[best];
        recording->at[by] = opc_toy_value(toy, who, recording->theta_n, recording->theta_n);
        /* The tangent as a line between two points. */
        for (int end = 0; end < 2; end++) {
            const double step = end ? set->tangent : -set->tangent;
            recording->x[by][end] = recording->theta_n + step;
            recording->y[by][end] = recording->at[by].J + step * recording->at[by].slope;
        }
    }
    snprintf(recording->title, sizeof recording->title, "θₙ = %s%g",
             recording->theta_n < 0 ? "−" : "", fabs(recording->theta_n));
}

/* Allocates and computes everything. */
static int return_curves_create(const struct settings *set, struct curves *curves,
                                struct opc_err *err)
{
    const struct opc_toy toy = opc_toy_paper(set->delta_a, set->delta_b);
    const size_t n = (size_t)set->points;
    *curves = (struct curves){.n = set->points, .panels = set->theta_n.n};
    const struct opc_block block[] = {
        {&curves->theta, n, sizeof *curves->theta},
        {&curves->block, n * BY * (size_t)curves->panels, sizeof *curves->block}};
    if (!opc_alloc_all(block, 2))
        return opc_fail(err, OPC_ENOMEM, "not enough memory for curves of %d points", set->points);
    /* Policies on an even grid that includes both ends. */
    for (int i = 0; i < curves->n; i++)
        curves->theta[i] = set->theta_min + (set->theta_max - set->theta_min) * i / (curves->n - 1);
    /* Each recording takes its three curves from the block. */
    for (int p = 0; p < curves->panels; p++) {
        curves->at[p].theta_n = set->theta_n.at[p];
        for (int by = 0; by < BY; by++)
            curves->at[p].J[by] = curves->block + n * (size_t)(p * BY + by);
        fill_recording(set, &toy, curves, &curves->at[p]);
    }
    return OPC_OK;
}

/* All curves, then values and slopes at theta_n. */
static int return_curves_tables(const struct curves *curves, struct opc_exhibit *exhibit,
                                struct opc_err *err)
{
    struct opc_table *table;
    int code = opc_table_create("theta_n,theta,environment,model,opc", &table, err);
    if (code)
        return code;
    /* A row for each policy of each recording. */
    for (int p = 0; p < curves->panels; p++)
        for (int i = 0; i < curves->n; i++) {
            opc_table_real(table, curves->at[p].theta_n);
            opc_table_real(table, curves->theta[i]);
            for (int by = 0; by < BY; by++)
                opc_table_real(table, curves->at[p].J[by][i]);
        }
    code = opc_exhibit_table(exhibit, NULL, "J(theta)", table, err);
    opc_table_free(table);
    if (code)
        return code;
    code = opc_table_create("theta_n,return_environment,return_model,return_opc,slope_environment,"
                            "slope_model,slope_opc,best_environment,best_model,best_opc",
                            &table, err);
    if (code)
        return code;
    /* A row for each recording. */
    for (int p = 0; p < curves->panels; p++) {
        opc_table_real(table, curves->at[p].theta_n);
        for (int by = 0; by < BY; by++)
            opc_table_fixed(table, curves->at[p].at[by].J, 6);
        for (int by = 0; by < BY; by++)
            opc_table_fixed(table, curves->at[p].at[by].slope, 6);
        for (int by = 0; by < BY; by++)
            opc_table_fixed(table, curves->at[p].best[by], 3);
    }
    code = opc_exhibit_table(exhibit, "slopes", "returns and slopes at theta_n, and best policies",
                             table, err);
    opc_table_free(table);
    return code;
}

/* Line at theta_n, curves, tangents, and dots where they touch. */
static int return_curves_draw(const struct curves *curves, const struct settings *set,
                              struct opc_exhibit *exhibit, struct opc_err *err)
{
    struct opc_figure_layer layer[OPC_LIST_MAX][LAYERS];
    struct opc_panel panel[OPC_LIST_MAX];
    for (int p = 0; p < curves->panels; p++) {
        const struct recording *recording = &curves->at[p];
        /* In drawing order: the rule first, so that curves cover it. */
        struct opc_figure_layer *l = layer[p];
        *l++ = (struct opc_figure_layer){
            .mark = OPC_PLOT_RULE_X, .colour = OPC_COLOUR_GREY, .n = 1, .x = &recording->theta_n};
        for (int by = 0; by < BY; by++)
            *l++ = (struct opc_figure_layer){.mark = OPC_PLOT_LINE,
                                             .colour = COLOUR[by],
                                             .label = LABEL[by],
                                             .n = curves->n,
                                             .x = curves->theta,
                                             .y = recording->J[by]};
        for (int by = 0; by < BY; by++)
            *l++ = (struct opc_figure_layer){.mark = OPC_PLOT_LINE,
                                             .colour = COLOUR[by],
                                             .dash = 1,
                                             .n = 2,
                                             .x = recording->x[by],
                                             .y = recording->y[by]};
        /* The corrected curve touches the true one at theta_n, hence one dot for both. */
        for (int by = OPC_BY_TRUTH; by <= OPC_BY_MODEL; by++)
            *l++ = (struct opc_figure_layer){.mark = OPC_PLOT_DOTS,
                                             .colour =
                                                 by == OPC_BY_TRUTH ? OPC_COLOUR_OPC : COLOUR[by],
                                             .n = 1,
                                             .x = &recording->theta_n,
                                             .y = &recording->at[by].J};
        panel[p] = (struct opc_panel){.title = recording->title,
                                      .x_label = "policy θ",
                                      .y_label = "return J(θ)",
                                      .x = {set->theta_min, set->theta_max},
                                      .y = {set->J_min, set->J_max},
                                      .layers = LAYERS,
                                      .layer = layer[p]};
    }
    const struct opc_figure figure = {
        .note = "The vertical line is the policy θₙ that made the recording; dashes are the "
                "tangents there.",
        .panels = curves->panels,
        .columns = curves->panels < 3 ? curves->panels : 0,
        .panel = panel,
        .share_y = true,
        .panel_width = 250,
        .panel_height = 185,
    };
    return opc_exhibit_figure(exhibit, NULL, "Returns over the policy", &figure, err);
}

/* Whether a gradient has the sign of the true one. */
static bool has_right_sign(const struct recording *recording, enum opc_toy_by by)
{
    return recording->at[by].slope * recording->at[OPC_BY_TRUTH].slope > 0;
}

static void return_curves_claims(const struct curves *curves, struct opc_exhibit *exhibit)
{
    /* The worst panel counts: largest gap at theta_n, best policies furthest from -1. */
    double gap = 0, miss_opc = 0, miss_model = 0, best_opc = 0, best_model = 0;
    for (int p = 0; p < curves->panels; p++) {
        const struct recording *recording = &curves->at[p];
        gap = fmax(gap, fabs(recording->at[OPC_BY_OPC].J - recording->at[OPC_BY_TRUTH].J));
        if (fabs(recording->best[OPC_BY_OPC] + 1) >= miss_opc) {
            miss_opc = fabs(recording->best[OPC_BY_OPC] + 1);
            best_opc = recording->best[OPC_BY_OPC];
        }
        if (fabs(recording->best[OPC_BY_MODEL] + 1) >= miss_model) {
            miss_model = fabs(recording->best[OPC_BY_MODEL] + 1);
            best_model = recording->best[OPC_BY_MODEL];
        }
    }
    opc_exhibit_claim(exhibit, gap < 1e-12 ? OPC_VERDICT_SUPPORTED : OPC_VERDICT_NOT_SUPPORTED,
                      "The corrected model has the true return at the policy of its recording.",
                      "The two differ by at most %.1e at the %d recorded policies.", gap,
                      curves->panels);
    /* The figure's two panels show both cases: the first recording's gradient is right, the last
     * one's wrong. */
    const struct recording *first = &curves->at[0], *last = &curves->at[curves->panels - 1];
    opc_exhibit_claim(
        exhibit,
        has_right_sign(first, OPC_BY_OPC) && !has_right_sign(last, OPC_BY_OPC)
            ? OPC_VERDICT_SUPPORTED
            : OPC_VERDICT_NOT_SUPPORTED,
        "The corrected gradient there is mostly right, but it can have the wrong sign (left and "
        "right plot).",
        "At θₙ = %g: true %+.4f, corrected %+.4f, model %+.4f; at θₙ = %g: %+.4f, %+.4f, %+.4f.",
        first->theta_n, first->at[OPC_BY_TRUTH].slope, first->at[OPC_BY_OPC].slope,
        first->at[OPC_BY_MODEL].slope, last->theta_n, last->at[OPC_BY_TRUTH].slope,
        last->at[OPC_BY_OPC].slope, last->at[OPC_BY_MODEL].slope);
    opc_exhibit_claim(exhibit,
                      miss_opc < miss_model ? OPC_VERDICT_SUPPORTED : OPC_VERDICT_NOT_SUPPORTED,
                      "The corrected model's best policy is near the true one, the model's is not.",
                      "Best policies: environment −1, model %.3f, corrected %.3f (the worst of the "
                      "panels).",
                      best_model, best_opc);
    opc_exhibit_note(exhibit, "The paper does not give its policies θₙ; these show both cases.");
}

/* The analysis itself; settings that cannot be drawn are refused first. */
static int return_curves_make(const struct opc_request *request, const void *settings,
                              struct opc_exhibit *exhibit, struct opc_err *err)
{
    (void)request;
    const struct settings *set = settings;
    struct curves curves;
    if (set->theta_min >= set->theta_max || set->J_min >= set->J_max)
        return opc_fail(err, OPC_EUSER,
                        "theta or J begins where it does not end: [%g, %g], "
                        "[%g, %g]",
                        set->theta_min, set->theta_max, set->J_min, set->J_max);
    if (set->theta_n.n < 1)
        return opc_fail(err, OPC_EUSER, "theta_n is empty; name at least one policy");
    int code = return_curves_create(set, &curves, err);
    if (code)
        return code;
    code = return_curves_tables(&curves, exhibit, err);
    if (!code)
        code = return_curves_draw(&curves, set, exhibit, err);
    if (!code)
        return_curves_claims(&curves, exhibit);
    return_curves_destroy(&curves);
    return code;
}

const struct opc_analysis opc_return_curves = {
    "return_curves", "returns of the 1-D example over the policy (Figure 7)", &section,
    .make = return_curves_make};
