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
    X(INT,   points,      "1601", 3,    1e5,  "of a curve")                                         \
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

enum { BY = 3, LAYERS = 1 + 2 * BY + 2 };
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

struct curves {
    int n, panels;
    double *theta; /* [n] */
    double *block; /* all curves */
    struct recording at[OPC_LIST_MAX];
};

static void destroy(struct curves *c)
{
    opc_free(c->theta);
    opc_free(c->block);
}

/* Computes the curves, their maxima and the tangents of one recording. */
static void fill(const struct settings *s, const struct opc_toy *toy, const struct curves *c,
                 struct recording *r)
{
    for (int by = 0; by < BY; by++) {
        const enum opc_toy_by who = (enum opc_toy_by)by;
        int best = 0;
        for (int i = 0; i < c->n; i++) {
            r->J[by][i] = opc_toy_value(toy, who, c->theta[i], r->theta_n).J;
            if (r->J[by][i] > r->J[by][best])
                best = i;
        }
        r->best[by] = c->theta[best];
        r->at[by] = opc_toy_value(toy, who, r->theta_n, r->theta_n);
        /* The tangent as a line between two points. */
        for (int end = 0; end < 2; end++) {
            const double step = end ? s->tangent : -s->tangent;
            r->x[by][end] = r->theta_n + step;
            r->y[by][end] = r->at[by].J + step * r->at[by].slope;
        }
    }
    snprintf(r->title, sizeof r->title, "θₙ = %s%g", r->theta_n < 0 ? "−" : "", fabs(r->theta_n));
}

static int create(const struct settings *s, struct curves *c, struct opc_err *err)
{
    const struct opc_toy toy = opc_toy_paper(s->delta_a, s->delta_b);
    const size_t n = (size_t)s->points;
    *c = (struct curves){.n = s->points, .panels = s->theta_n.n};
    const struct opc_block block[] = {{&c->theta, n, sizeof *c->theta},
                                      {&c->block, n * BY * (size_t)c->panels, sizeof *c->block}};
    if (!opc_alloc_all(block, 2))
        return opc_fail(err, OPC_ENOMEM, "not enough memory for curves of %d points", s->points);
    for (int i = 0; i < c->n; i++)
        c->theta[i] = s->theta_min + (s->theta_max - s->theta_min) * i / (c->n - 1);
    for (int p = 0; p < c->panels; p++) {
        c->at[p].theta_n = s->theta_n.at[p];
        for (int by = 0; by < BY; by++)
            c->at[p].J[by] = c->block + n * (size_t)(p * BY + by);
        fill(s, &toy, c, &c->at[p]);
    }
    return OPC_OK;
}

/* All curves, then values and slopes at theta_n. */
static int tables(const struct curves *c, struct opc_exhibit *exhibit, struct opc_err *err)
{
    struct opc_table *t;
    int code = opc_table_create("theta_n,theta,environment,model,opc", &t, err);
    if (code)
        return code;
    for (int p = 0; p < c->panels; p++)
        for (int i = 0; i < c->n; i++) {
            opc_table_real(t, c->at[p].theta_n);
            opc_table_real(t, c->theta[i]);
            for (int by = 0; by < BY; by++)
                opc_table_real(t, c->at[p].J[by][i]);
        }
    code = opc_exhibit_table(exhibit, NULL, "J(theta)", t, err);
    opc_table_free(t);
    if (code)
        return code;
    code = opc_table_create("theta_n,return_environment,return_model,return_opc,slope_environment,"
                            "slope_model,slope_opc,best_environment,best_model,best_opc",
                            &t, err);
    if (code)
        return code;
    for (int p = 0; p < c->panels; p++) {
        opc_table_real(t, c->at[p].theta_n);
        for (int by = 0; by < BY; by++)
            opc_table_fixed(t, c->at[p].at[by].J, 6);
        for (int by = 0; by < BY; by++)
            opc_table_fixed(t, c->at[p].at[by].slope, 6);
        for (int by = 0; by < BY; by++)
            opc_table_fixed(t, c->at[p].best[by], 3);
    }
    code = opc_exhibit_table(exhibit, "slopes", "returns and slopes at theta_n, and best policies",
                             t, err);
    opc_table_free(t);
    return code;
}

/* Line at theta_n, curves, tangents, and dots where they touch. */
static int draw(const struct curves *c, const struct settings *s, struct opc_exhibit *exhibit,
                struct opc_err *err)
{
    struct opc_figure_layer layer[OPC_LIST_MAX][LAYERS];
    struct opc_panel panel[OPC_LIST_MAX];
    for (int p = 0; p < c->panels; p++) {
        const struct recording *r = &c->at[p];
        struct opc_figure_layer *l = layer[p];
        *l++ = (struct opc_figure_layer){
            .mark = OPC_PLOT_RULE_X, .colour = OPC_COLOUR_GREY, .n = 1, .x = &r->theta_n};
        for (int by = 0; by < BY; by++)
            *l++ = (struct opc_figure_layer){.mark = OPC_PLOT_LINE,
                                             .colour = COLOUR[by],
                                             .label = LABEL[by],
                                             .n = c->n,
                                             .x = c->theta,
                                             .y = r->J[by]};
        for (int by = 0; by < BY; by++)
            *l++ = (struct opc_figure_layer){.mark = OPC_PLOT_LINE,
                                             .colour = COLOUR[by],
                                             .dash = 1,
                                             .n = 2,
                                             .x = r->x[by],
                                             .y = r->y[by]};
        for (int by = OPC_BY_TRUTH; by <= OPC_BY_MODEL; by++)
            *l++ = (struct opc_figure_layer){.mark = OPC_PLOT_DOTS,
                                             .colour =
                                                 by == OPC_BY_TRUTH ? OPC_COLOUR_OPC : COLOUR[by],
                                             .n = 1,
                                             .x = &r->theta_n,
                                             .y = &r->at[by].J};
        panel[p] = (struct opc_panel){.title = r->title,
                                      .x_label = "policy θ",
                                      .y_label = "return J(θ)",
                                      .x = {s->theta_min, s->theta_max},
                                      .y = {s->J_min, s->J_max},
                                      .layers = LAYERS,
                                      .layer = layer[p]};
    }
    const struct opc_figure figure = {
        .note = "The vertical line is the policy θₙ that made the recording; dashes are the "
                "tangents there.",
        .panels = c->panels,
        .columns = c->panels < 3 ? c->panels : 0,
        .panel = panel,
        .share_y = true,
        .panel_width = 250,
        .panel_height = 185,
    };
    return opc_exhibit_figure(exhibit, NULL, "Returns over the policy", &figure, err);
}

/* Whether a gradient has the sign of the true one. */
static bool right(const struct recording *r, enum opc_toy_by by)
{
    return r->at[by].slope * r->at[OPC_BY_TRUTH].slope > 0;
}

static void claims(const struct curves *c, struct opc_exhibit *exhibit)
{
    /* The worst panel counts: largest gap at theta_n, best policies furthest from -1. */
    double gap = 0, miss_opc = 0, miss_model = 0, best_opc = 0, best_model = 0;
    for (int p = 0; p < c->panels; p++) {
        const struct recording *r = &c->at[p];
        gap = fmax(gap, fabs(r->at[OPC_BY_OPC].J - r->at[OPC_BY_TRUTH].J));
        if (fabs(r->best[OPC_BY_OPC] + 1) >= miss_opc) {
            miss_opc = fabs(r->best[OPC_BY_OPC] + 1);
            best_opc = r->best[OPC_BY_OPC];
        }
        if (fabs(r->best[OPC_BY_MODEL] + 1) >= miss_model) {
            miss_model = fabs(r->best[OPC_BY_MODEL] + 1);
            best_model = r->best[OPC_BY_MODEL];
        }
    }
    opc_exhibit_claim(exhibit, gap < 1e-12 ? OPC_SUPPORTED : OPC_NOT_SUPPORTED,
                      "The corrected model has the true return at the policy of its recording.",
                      "The two differ by at most %.1e at the %d recorded policies.", gap,
                      c->panels);
    const struct recording *first = &c->at[0], *last = &c->at[c->panels - 1];
    opc_exhibit_claim(
        exhibit,
        right(first, OPC_BY_OPC) && !right(last, OPC_BY_OPC) ? OPC_SUPPORTED : OPC_NOT_SUPPORTED,
        "The corrected gradient there is mostly right, but it can have the wrong sign (left and "
        "right plot).",
        "At θₙ = %g: true %+.4f, corrected %+.4f, model %+.4f; at θₙ = %g: %+.4f, %+.4f, %+.4f.",
        first->theta_n, first->at[OPC_BY_TRUTH].slope, first->at[OPC_BY_OPC].slope,
        first->at[OPC_BY_MODEL].slope, last->theta_n, last->at[OPC_BY_TRUTH].slope,
        last->at[OPC_BY_OPC].slope, last->at[OPC_BY_MODEL].slope);
    opc_exhibit_claim(exhibit, miss_opc < miss_model ? OPC_SUPPORTED : OPC_NOT_SUPPORTED,
                      "The corrected model's best policy is near the true one, the model's is not.",
                      "Best policies: environment −1, model %.3f, corrected %.3f (the worst of the "
                      "panels).",
                      best_model, best_opc);
    opc_exhibit_note(exhibit, "The paper does not give its policies θₙ; these show both cases.");
}

static int make(const struct opc_request *request, const void *settings,
                struct opc_exhibit *exhibit, struct opc_err *err)
{
    (void)request;
    const struct settings *s = settings;
    struct curves c;
    if (s->theta_min >= s->theta_max || s->J_min >= s->J_max)
        return opc_fail(err, OPC_EUSER,
                        "theta or J begins where it does not end: [%g, %g], "
                        "[%g, %g]",
                        s->theta_min, s->theta_max, s->J_min, s->J_max);
    if (s->theta_n.n < 1)
        return opc_fail(err, OPC_EUSER, "theta_n is empty; name at least one policy");
    int code = create(s, &c, err);
    if (code)
        return code;
    code = tables(&c, exhibit, err);
    if (!code)
        code = draw(&c, s, exhibit, err);
    if (!code)
        claims(&c, exhibit);
    destroy(&c);
    return code;
}

const struct opc_analysis opc_return_curves = {
    "return_curves", "returns of the 1-D example over the policy (Figure 7)", &section,
    .make = make};
