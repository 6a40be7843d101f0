/* SPDX-License-Identifier: MIT */
/* Figures 2, 8a and 8b: does the gradient of the model, or of the corrected model, point to the
 * same side as the true one? Shows the signed gradient distance over policy and model error.
 *
 * Invariant: everything is exact, without sampling; cells with an unstable loop are NaN. */
#include "opc/mem.h"
#include "study/example/toy.h"
#include "study/exhibit/analysis.h"

#include <math.h>

/* clang-format off */
#define FIELDS(X)                                                                                   \
    X(CHOICE, error,       "b",   "a|b", ,    "which number of the model is wrong")                 \
    X(REAL,   reach,       "0.5", 0.001, 10,  "the error goes from -reach to reach")                \
    X(INT,    cells,       "81",  3,     999, "of the field, each way")                             \
    X(REAL,   theta_min, "-2",  -10,   10,  "where the policies begin", "theta_least")                           \
    X(REAL,   theta_max,  "0",   -10,   10,  "where the policies end", "theta_most")                             \
    X(REAL,   scale,       "0.3", 0.01,  1,   "distance that gets the full colour")
/* clang-format on */

struct settings {
    FIELDS(OPC_MEMBER)
};
#define SELF struct settings
static const struct opc_section section =
    OPC_SECTION("gradient_field", "signed gradient distance over policy and model error", FIELDS);
#undef SELF

/* The field, over a square grid of policies and model errors. */
struct field {
    int n;
    const char *word;          /* "ΔA" or "ΔB" */
    double *theta, *error;     /* [n] centres of the cells */
    double *best;              /* [n] the model's own optimum */
    double *d[2];              /* [n][n] of model and OPC, [error][theta] */
    double edge_min, edge_max; /* outer edges of the errors' cells */
    struct opc_gradient_field_sum sum[2];
};

static void destroy(struct field *f)
{
    opc_free(f->theta);
    opc_free(f->error);
    opc_free(f->best);
    opc_free(f->d[0]);
    opc_free(f->d[1]);
}

static int create(const struct settings *s, struct field *f, struct opc_err *err)
{
    const int n = s->cells;
    const size_t cells = (size_t)n * (size_t)n;
    *f = (struct field){.n = n, .word = s->error == OPC_ERROR_A ? "ΔA" : "ΔB"};
    f->theta = opc_alloc((size_t)n, sizeof *f->theta);
    f->error = opc_alloc((size_t)n, sizeof *f->error);
    f->best = opc_alloc((size_t)n, sizeof *f->best);
    f->d[0] = opc_alloc(cells, sizeof *f->d[0]);
    f->d[1] = opc_alloc(cells, sizeof *f->d[1]);
    if (!f->theta || !f->error || !f->best || !f->d[0] || !f->d[1]) {
        destroy(f);
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a field of %d by %d cells", n, n);
    }
    /* Policies lie at the centres of cells; errors include both ends and 0. */
    for (int i = 0; i < n; i++) {
        f->theta[i] = s->theta_min + (s->theta_max - s->theta_min) * (i + 0.5) / n;
        f->error[i] = s->reach * (2.0 * i / (n - 1) - 1);
        f->best[i] = s->error == OPC_ERROR_A ? -(1 + f->error[i]) : -1 / (1 + f->error[i]);
    }
    f->edge_max = s->reach * n / (n - 1.0);
    f->edge_min = -f->edge_max;
    for (int k = 0; k < 2; k++) {
        opc_toy_gradient_field((enum opc_toy_error)s->error, k ? OPC_BY_OPC : OPC_BY_MODEL, n, f->error, n,
                      f->theta, f->d[k]);
        f->sum[k] = opc_gradient_field_sum(n * n, f->d[k]);
    }
    return OPC_OK;
}

/* The field as a table, and the shares of wrong signs. */
static int tables(const struct field *f, const struct settings *s, struct opc_exhibit *exhibit,
                  struct opc_err *err)
{
    static const char *const WHO[] = {"model", "opc"};
    const int n = f->n;
    struct opc_table *t;
    int code = opc_table_create(
        s->error == OPC_ERROR_A ? "theta,delta_a,model,opc" : "theta,delta_b,model,opc", &t, err);
    if (code)
        return code;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            opc_table_real(t, f->theta[j]);
            opc_table_real(t, f->error[i]);
            opc_table_real(t, f->d[0][i * n + j]);
            opc_table_real(t, f->d[1][i * n + j]);
        }
    code = opc_exhibit_table(exhibit, NULL, "signed gradient distance; empty where masked", t, err);
    opc_table_free(t);
    if (code)
        return code;
    code = opc_table_create("gradient,cells,wrong_sign_percent,mean_abs_distance", &t, err);
    if (code)
        return code;
    for (int k = 0; k < 2; k++) {
        opc_table_word(t, WHO[k]);
        opc_table_int(t, f->sum[k].cells);
        opc_table_fixed(t, f->sum[k].wrong, 2);
        opc_table_fixed(t, f->sum[k].mean, 4);
    }
    code = opc_exhibit_table(exhibit, "shares", "cells whose gradient has the wrong sign", t, err);
    opc_table_free(t);
    return code;
}

/* Two heat maps, model and corrected model, with both optima as lines. */
static int draw(const struct field *f, const struct settings *s, struct opc_exhibit *exhibit,
                struct opc_err *err)
{
    const double optimum[2] = {-1, -1}, ends[2] = {f->edge_min, f->edge_max};
    struct opc_figure_layer layer[2][3];
    struct opc_panel panel[2];
    for (int k = 0; k < 2; k++) {
        layer[k][0] = (struct opc_figure_layer){.mark = OPC_PLOT_HEAT,
                                                .rows = f->n,
                                                .columns = f->n,
                                                .value = f->d[k],
                                                .x0 = s->theta_min,
                                                .x1 = s->theta_max,
                                                .y0 = f->edge_min,
                                                .y1 = f->edge_max,
                                                .heat_low = -s->scale,
                                                .heat_high = s->scale,
                                                .diverging = true,
                                                .label = "unstable, left out"};
        layer[k][1] = (struct opc_figure_layer){.mark = OPC_PLOT_LINE,
                                                .colour = OPC_COLOUR_TRUE,
                                                .label = "optimum of the environment, θ = −1",
                                                .n = 2,
                                                .x = optimum,
                                                .y = ends};
        layer[k][2] = (struct opc_figure_layer){
            .mark = OPC_PLOT_LINE,
            .colour = OPC_COLOUR_TRUE,
            .dash = 1,
            .label = s->error == OPC_ERROR_A ? "optimum of the model, θ = −(1 + ΔA)"
                                             : "optimum of the model, θ = −1/(1 + ΔB)",
            .n = f->n,
            .x = f->best,
            .y = f->error};
        panel[k] = (struct opc_panel){.title = k ? "model with on-policy corrections" : "model",
                                      .x_label = "policy θ",
                                      .y_label = s->error == OPC_ERROR_A ? "model error ΔA"
                                                                         : "model error ΔB",
                                      .x = {s->theta_min, s->theta_max},
                                      .y = {f->edge_min, f->edge_max},
                                      .y_down = true,
                                      .layers = 3,
                                      .layer = layer[k]};
    }
    const struct opc_figure figure = {
        .note = "Blue: the gradient points to the side the true one points to; red: to the other. "
                "Unstable: the closed loop of environment or model.",
        .heat_label = "signed gradient distance",
        .panels = 2,
        .columns = 2,
        .panel = panel,
        .share_y = true,
        .panel_width = 235,
        .panel_height = 210,
    };
    return opc_exhibit_figure(exhibit, NULL, "Signed gradient distance on-policy", &figure, err);
}

/* Counts the model's wrong cells between the two optima, where it must be wrong, and elsewhere.
 * Half a cell's width is tolerated: it is due to the grid, not to the model. */
static void wedge(const struct field *f, int *inside, int *outside)
{
    const double half = (f->theta[1] - f->theta[0]) / 2;
    *inside = *outside = 0;
    for (int i = 0; i < f->n; i++)
        for (int j = 0; j < f->n; j++)
            if (f->d[0][i * f->n + j] < 0) {
                const double min = fmin(-1, f->best[i]) - half;
                const double max = fmax(-1, f->best[i]) + half;
                const bool in = f->theta[j] >= min && f->theta[j] <= max;
                *(in ? inside : outside) += 1;
            }
}

/* Largest change of |d| under (theta + 1, error) -> -(theta + 1, error). The sign is left out:
 * at theta = -1 rounding decides it. */
static double asymmetry(const struct field *f)
{
    double max = 0;
    const int cells = f->n * f->n;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < cells; i++) {
            const double gap = fabs(fabs(f->d[k][i]) - fabs(f->d[k][cells - 1 - i]));
            if (gap > max) /* NaN is not */
                max = gap;
        }
    return max;
}

static void claims(const struct field *f, const struct settings *s, struct opc_exhibit *exhibit)
{
    const struct opc_gradient_field_sum *model = &f->sum[0], *opc = &f->sum[1];
    int inside, outside;
    /* The model must be wrong between the optima and nowhere else. */
    wedge(f, &inside, &outside);
    opc_exhibit_claim(exhibit, inside > 0 && outside == 0 ? OPC_SUPPORTED : OPC_NOT_SUPPORTED,
                      "Small errors of the model turn its gradient to the wrong side, in a wedge "
                      "between the true optimum and the model's own.",
                      "%.2f %% of the %d stable cells have the wrong sign; %d of them lie between "
                      "the two optima, %d elsewhere.",
                      model->wrong, model->cells, inside, outside);
    opc_exhibit_claim(
        exhibit,
        opc->wrong < model->wrong && opc->mean < model->mean ? OPC_SUPPORTED : OPC_NOT_SUPPORTED,
        "On-policy corrections make the gradient robust against model errors.",
        "Wrong sign in %.2f %% of the stable cells with corrections, %.2f %% without; mean "
        "distance %.4f against %.4f.",
        opc->wrong, model->wrong, opc->mean, model->mean);
    if (s->error == OPC_ERROR_A && s->theta_min + s->theta_max == -2) { /* a grid around -1 */
        const double gap = asymmetry(f);
        opc_exhibit_claim(exhibit, gap < 1e-9 ? OPC_SUPPORTED : OPC_NOT_SUPPORTED,
                          "The field of ΔA is symmetric about (θ, ΔA) = (−1, 0).",
                          "Opposite cells differ by at most %.1e in |d|.", gap);
    }
    opc_exhibit_note(exhibit,
                     "The paper gives neither ranges nor directions of the axes; here %s grows "
                     "downwards, which puts the unstable corner where the paper has it.",
                     f->word);
}

static int make(const struct opc_request *request, const void *settings,
                struct opc_exhibit *exhibit, struct opc_err *err)
{
    (void)request;
    const struct settings *s = settings;
    struct field f;
    /* Ranges that cannot be drawn. */
    if (s->theta_min >= s->theta_max)
        return opc_fail(err, OPC_EUSER, "theta_min = %g is not below theta_max = %g", s->theta_min,
                        s->theta_max);
    if (s->error == OPC_ERROR_B && s->reach >= 1)
        return opc_fail(err, OPC_EUSER,
                        "reach = %g makes the model deaf to its action (1 + ΔB = 0); choose it "
                        "below 1",
                        s->reach);
    int code = create(s, &f, err);
    if (code)
        return code;
    code = tables(&f, s, exhibit, err);
    if (!code)
        code = draw(&f, s, exhibit, err);
    if (!code)
        claims(&f, s, exhibit);
    destroy(&f);
    return code;
}

const struct opc_analysis opc_gradient_field = {
    "gradient_field", "signed gradient distance over policy and model error (Figures 2, 8)",
    &section, .make = make};
