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
    X(INT,    cells,       "81",  3,     999, "cells of the field in each direction")                             \
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

/* Accepts a field of which nothing was allocated. */
static void gradient_field_destroy(struct field *field)
{
    opc_free(field->theta);
    opc_free(field->error);
    opc_free(field->best);
    opc_free(field->d[0]);
    opc_free(field->d[1]);
}

/* Allocates and computes both fields. */
static int gradient_field_create(const struct settings *set, struct field *field,
                                 struct opc_err *err)
{
    const int n = set->cells;
    const size_t cells = (size_t)n * (size_t)n;
    *field = (struct field){.n = n, .word = set->error == OPC_ERROR_A ? "ΔA" : "ΔB"};
    field->theta = opc_alloc((size_t)n, sizeof *field->theta);
    field->error = opc_alloc((size_t)n, sizeof *field->error);
    field->best = opc_alloc((size_t)n, sizeof *field->best);
    field->d[0] = opc_alloc(cells, sizeof *field->d[0]);
    field->d[1] = opc_alloc(cells, sizeof *field->d[1]);
    if (!field->theta || !field->error || !field->best || !field->d[0] || !field->d[1]) {
        gradient_field_destroy(field);
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a field of %d by %d cells", n, n);
    }
    /* Policies lie at the centres of cells; errors include both ends and 0. */
    for (int i = 0; i < n; i++) {
        field->theta[i] = set->theta_min + (set->theta_max - set->theta_min) * (i + 0.5) / n;
        field->error[i] = set->reach * (2.0 * i / (n - 1) - 1);
        field->best[i] =
            set->error == OPC_ERROR_A ? -(1 + field->error[i]) : -1 / (1 + field->error[i]);
    }
    /* The image extends half a cell beyond the outermost errors. */
    field->edge_max = set->reach * n / (n - 1.0);
    field->edge_min = -field->edge_max;
    /* [0] the model, [1] the corrected model, both on-policy. */
    for (int k = 0; k < 2; k++) {
        opc_toy_gradient_field((enum opc_toy_error)set->error, k ? OPC_BY_OPC : OPC_BY_MODEL, n,
                               field->error, n, field->theta, field->d[k]);
        field->sum[k] = opc_gradient_field_sum(n * n, field->d[k]);
    }
    return OPC_OK;
}

/* The field as a table, and the shares of wrong signs. */
static int gradient_field_tables(const struct field *field, const struct settings *set,
                                 struct opc_exhibit *exhibit, struct opc_err *err)
{
    static const char *const WHO[] = {"model", "opc"};
    const int n = field->n;
    struct opc_table *table;
    int code = opc_table_create(set->error == OPC_ERROR_A ? "theta,delta_a,model,opc"
                                                          : "theta,delta_b,model,opc",
                                &table, err);
    if (code)
        return code;
    /* A row for each cell. */
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            opc_table_real(table, field->theta[j]);
            opc_table_real(table, field->error[i]);
            opc_table_real(table, field->d[0][i * n + j]);
            opc_table_real(table, field->d[1][i * n + j]);
        }
    code = opc_exhibit_table(exhibit, NULL, "signed gradient distance; empty where masked", table,
                             err);
    opc_table_free(table);
    if (code)
        return code;
    code = opc_table_create("gradient,cells,wrong_sign_percent,mean_abs_distance", &table, err);
    if (code)
        return code;
    /* Then a row for each gradient. */
    for (int k = 0; k < 2; k++) {
        opc_table_word(table, WHO[k]);
        opc_table_int(table, field->sum[k].cells);
        opc_table_fixed(table, field->sum[k].wrong, 2);
        opc_table_fixed(table, field->sum[k].mean, 4);
    }
    code =
        opc_exhibit_table(exhibit, "shares", "cells whose gradient has the wrong sign", table, err);
    opc_table_free(table);
    return code;
}

/* Two heat maps, model and corrected model, with both optima as lines. */
static int gradient_field_draw(const struct field *field, const struct settings *set,
                               struct opc_exhibit *exhibit, struct opc_err *err)
{
    /* Lines over the whole height: the true optimum, and the model's as a curve. */
    const double optimum[2] = {-1, -1}, ends[2] = {field->edge_min, field->edge_max};
    struct opc_figure_layer layer[2][3];
    struct opc_panel panel[2];
    for (int k = 0; k < 2; k++) {
        layer[k][0] = (struct opc_figure_layer){.mark = OPC_PLOT_HEAT,
                                                .rows = field->n,
                                                .columns = field->n,
                                                .value = field->d[k],
                                                .x0 = set->theta_min,
                                                .x1 = set->theta_max,
                                                .y0 = field->edge_min,
                                                .y1 = field->edge_max,
                                                .heat_low = -set->scale,
                                                .heat_high = set->scale,
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
            .label = set->error == OPC_ERROR_A ? "optimum of the model, θ = −(1 + ΔA)"
                                               : "optimum of the model, θ = −1/(1 + ΔB)",
            .n = field->n,
            .x = field->best,
            .y = field->error};
        panel[k] = (struct opc_panel){.title = k ? "model with on-policy corrections" : "model",
                                      .x_label = "policy θ",
                                      .y_label = set->error == OPC_ERROR_A ? "model error ΔA"
                                                                           : "model error ΔB",
                                      .x = {set->theta_min, set->theta_max},
                                      .y = {field->edge_min, field->edge_max},
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
static void count_wrong_cells(const struct field *field, int *inside, int *outside)
{
    const double half = (field->theta[1] - field->theta[0]) / 2;
    *inside = *outside = 0;
    for (int i = 0; i < field->n; i++)
        for (int j = 0; j < field->n; j++)
            /* Wrong cells of row i may only lie between -1 and the model's optimum. */
            if (field->d[0][i * field->n + j] < 0) {
                const double min = fmin(-1, field->best[i]) - half;
                const double max = fmax(-1, field->best[i]) + half;
                const bool in = field->theta[j] >= min && field->theta[j] <= max;
                *(in ? inside : outside) += 1;
            }
}

/* Largest change of |d| under (theta + 1, error) -> -(theta + 1, error). The sign is left out:
 * at theta = -1 rounding decides it. */
static double asymmetry(const struct field *field)
{
    double max = 0;
    const int cells = field->n * field->n;
    /* Cell i is opposite to cell n^2 - 1 - i on a grid that is symmetric about (-1, 0). */
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < cells; i++) {
            const double gap = fabs(fabs(field->d[k][i]) - fabs(field->d[k][cells - 1 - i]));
            if (gap > max) /* NaN is not */
                max = gap;
        }
    return max;
}

static void gradient_field_claims(const struct field *field, const struct settings *set,
                                  struct opc_exhibit *exhibit)
{
    const struct opc_gradient_field_sum *model = &field->sum[0], *opc = &field->sum[1];
    int inside, outside;
    /* The model must be wrong between the optima and nowhere else. */
    count_wrong_cells(field, &inside, &outside);
    opc_exhibit_claim(
        exhibit, inside > 0 && outside == 0 ? OPC_VERDICT_SUPPORTED : OPC_VERDICT_NOT_SUPPORTED,
        "Small errors of the model turn its gradient to the wrong side, in a wedge "
        "between the true optimum and the model's own.",
        "%.2f %% of the %d stable cells have the wrong sign; %d of them lie between "
        "the two optima, %d elsewhere.",
        model->wrong, model->cells, inside, outside);
    /* Fewer wrong signs and a smaller distance, both. */
    opc_exhibit_claim(
        exhibit,
        opc->wrong < model->wrong && opc->mean < model->mean ? OPC_VERDICT_SUPPORTED
                                                             : OPC_VERDICT_NOT_SUPPORTED,
        "On-policy corrections make the gradient robust against model errors.",
        "Wrong sign in %.2f %% of the stable cells with corrections, %.2f %% without; mean "
        "distance %.4f against %.4f.",
        opc->wrong, model->wrong, opc->mean, model->mean);
    if (set->error == OPC_ERROR_A && set->theta_min + set->theta_max == -2) { /* a grid around -1 */
        const double gap = asymmetry(field);
        opc_exhibit_claim(exhibit, gap < 1e-9 ? OPC_VERDICT_SUPPORTED : OPC_VERDICT_NOT_SUPPORTED,
                          "The field of ΔA is symmetric about (θ, ΔA) = (−1, 0).",
                          "Opposite cells differ by at most %.1e in |d|.", gap);
    }
    opc_exhibit_note(exhibit,
                     "The paper gives neither ranges nor directions of the axes; here %s grows "
                     "downwards, which puts the unstable corner where the paper has it.",
                     field->word);
}

/* The analysis itself. */
static int gradient_field_make(const struct opc_request *request, const void *settings,
                               struct opc_exhibit *exhibit, struct opc_err *err)
{
    (void)request;
    const struct settings *set = settings;
    struct field field;
    /* Ranges that cannot be drawn. */
    if (set->theta_min >= set->theta_max)
        return opc_fail(err, OPC_EUSER, "theta_min = %g is not below theta_max = %g",
                        set->theta_min, set->theta_max);
    if (set->error == OPC_ERROR_B && set->reach >= 1)
        return opc_fail(err, OPC_EUSER,
                        "reach = %g makes the model deaf to its action (1 + ΔB = 0); choose it "
                        "below 1",
                        set->reach);
    int code = gradient_field_create(set, &field, err);
    if (code)
        return code;
    code = gradient_field_tables(&field, set, exhibit, err);
    if (!code)
        code = gradient_field_draw(&field, set, exhibit, err);
    if (!code)
        gradient_field_claims(&field, set, exhibit);
    gradient_field_destroy(&field);
    return code;
}

const struct opc_analysis opc_gradient_field = {
    "gradient_field", "signed gradient distance over policy and model error (Figures 2, 8)",
    &section, .make = gradient_field_make};
