/* SPDX-License-Identifier: MIT */
/* Figures 9a and 9b: the corrected gradient if the recording was made by another policy,
 * theta_n, than the one that is evaluated, theta. A panel for each model error.
 *
 * Invariant: cells with an unstable loop are NaN and count nowhere. */
#include "opc/mem.h"
#include "study/example/toy.h"
#include "study/exhibit/analysis.h"

#include <math.h>
#include <stdio.h>

/* clang-format off */
#define FIELDS(X)                                                                                   \
    X(CHOICE, error,       "a",    "a|b", ,    "which number of the model is wrong")                \
    X(REALS,  values,      "[-0.5, -0.2, 0, 0.2, 0.5]", -0.99, 10, "its errors, a panel each")      \
    X(INT,    cells,       "61",   3,    999,  "cells of a field in each direction")                              \
    X(REAL,   theta_min, "-1.9", -10,  10,   "where the recorded policies begin", "theta_least")                 \
    X(REAL,   theta_max,  "-0.1", -10,  10,   "where the recorded policies end", "theta_most")                   \
    X(REAL,   shift,       "0.5",  0.001, 10,  "theta - theta_n goes from -shift to shift")         \
    X(REAL,   edge,        "0.1",  0,    1,    "closed loops this near to 1 are near instability")  \
    X(REAL,   scale,       "0.3",  0.01, 1,    "distance that gets the full colour")
/* clang-format on */

struct settings {
    FIELDS(OPC_MEMBER)
};
#define SELF struct settings
static const struct opc_section section =
    OPC_SECTION("reference_field", "signed gradient distance off-policy", FIELDS);
#undef SELF

/* The fields of all panels, and statistics over them. */
struct field {
    int n, panels;
    double *theta_n, *shift; /* [n] */
    double *d;               /* [panels][n][n], [shift][theta_n] */
    struct opc_gradient_field_sum sum[OPC_LIST_MAX];
    /* Over stable cells of panels with a model error: far from instability [0] and near it [1]. */
    long cells[2], wrong[2];
    double mean[2];      /* of |d| */
    double from_best[2]; /* |theta - best|, mean over all of them and over those of wrong sign */
};

/* Accepts a field of which nothing was allocated. */
static void reference_field_destroy(struct field *field)
{
    opc_free(field->theta_n);
    opc_free(field->shift);
    opc_free(field->d);
}

/* The example with the panel's model error. */
static struct opc_toy toy_of(const struct settings *set, int panel)
{
    const double error = set->values.at[panel];
    return set->error == OPC_ERROR_A ? opc_toy_paper(error, 0) : opc_toy_paper(0, error);
}

/* Whether the closed loop of environment or model is within `edge` of instability. */
static bool near_edge(const struct opc_toy *toy, double theta, double edge)
{
    const double truth = fabs(toy->A + toy->B * theta);
    const double model = fabs(toy->A + toy->dA + (toy->B + toy->dB) * theta);
    return fmax(truth, model) > 1 - edge;
}

/* Allocates and computes all fields. */
static int reference_field_create(const struct settings *set, struct field *field,
                                  struct opc_err *err)
{
    const int n = set->cells;
    const size_t cells = (size_t)n * (size_t)n;
    *field = (struct field){.n = n, .panels = set->values.n};
    field->theta_n = opc_alloc((size_t)n, sizeof *field->theta_n);
    field->shift = opc_alloc((size_t)n, sizeof *field->shift);
    field->d = opc_alloc(cells * (size_t)field->panels, sizeof *field->d);
    if (!field->theta_n || !field->shift || !field->d) {
        reference_field_destroy(field);
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %d fields of %d by %d cells",
                        field->panels, n, n);
    }
    /* Both axes include their ends. */
    for (int i = 0; i < n; i++) {
        field->theta_n[i] = set->theta_min + (set->theta_max - set->theta_min) * i / (n - 1);
        field->shift[i] = set->shift * (2.0 * i / (n - 1) - 1);
    }
    /* A field for each model error. */
    for (int p = 0; p < field->panels; p++) {
        const struct opc_toy toy = toy_of(set, p);
        double *d = field->d + (size_t)p * cells;
        opc_toy_gradient_field_off(&toy, n, field->shift, n, field->theta_n, d);
        field->sum[p] = opc_gradient_field_sum(n * n, d);
        /* Statistics near and far from instability; a panel without model error has no error to
         * degrade. */
        for (int i = 0; i < n * n && set->values.at[p] != 0; i++)
            if (!isnan(d[i])) {
                const double theta = field->theta_n[i % n] + field->shift[i / n];
                const bool edge = near_edge(&toy, theta, set->edge);
                field->cells[edge]++;
                field->wrong[edge] += d[i] < 0;
                field->mean[edge] += fabs(d[i]);
                const double off = fabs(theta + toy.A / toy.B);
                field->from_best[0] += off;
                field->from_best[1] += d[i] < 0 ? off : 0;
            }
    }
    field->from_best[0] /= fmax(1, (double)(field->cells[0] + field->cells[1]));
    field->from_best[1] /= fmax(1, (double)(field->wrong[0] + field->wrong[1]));
    /* Sums become means; a part without cells stays 0. */
    for (int edge = 0; edge < 2; edge++)
        field->mean[edge] /= fmax(1, (double)field->cells[edge]);
    return OPC_OK;
}

/* All cells, and statistics of each panel. */
static int reference_field_tables(const struct field *field, const struct settings *set,
                                  struct opc_exhibit *exhibit, struct opc_err *err)
{
    const bool a = set->error == OPC_ERROR_A;
    const int n = field->n;
    struct opc_table *table;
    int code = opc_table_create(a ? "delta_a,theta_n,shift,opc" : "delta_b,theta_n,shift,opc",
                                &table, err);
    if (code)
        return code;
    /* A row for each cell of each panel. */
    for (int p = 0; p < field->panels; p++)
        for (int i = 0; i < n * n; i++) {
            opc_table_real(table, set->values.at[p]);
            opc_table_real(table, field->theta_n[i % n]);
            opc_table_real(table, field->shift[i / n]);
            opc_table_real(table, field->d[(size_t)p * (size_t)(n * n) + (size_t)i]);
        }
    code = opc_exhibit_table(exhibit, NULL,
                             "signed gradient distance at theta = theta_n + shift; empty where "
                             "masked",
                             table, err);
    opc_table_free(table);
    if (code)
        return code;
    /* Then a row for each panel. */
    code =
        opc_table_create(a ? "delta_a,cells,wrong_sign_percent,mean_abs_distance,max_abs_distance"
                           : "delta_b,cells,wrong_sign_percent,mean_abs_distance,"
                             "max_abs_distance",
                         &table, err);
    if (code)
        return code;
    for (int p = 0; p < field->panels; p++) {
        opc_table_real(table, set->values.at[p]);
        opc_table_int(table, field->sum[p].cells);
        opc_table_fixed(table, field->sum[p].wrong, 2);
        opc_table_fixed(table, field->sum[p].mean, 4);
        opc_table_real(table, field->sum[p].max);
    }
    code =
        opc_exhibit_table(exhibit, "shares", "cells whose gradient has the wrong sign", table, err);
    opc_table_free(table);
    return code;
}

/* A heat map for each model error; the line marks where the recording is on-policy. */
static int reference_field_draw(const struct field *field, const struct settings *set,
                                struct opc_exhibit *exhibit, struct opc_err *err)
{
    /* Cells are centred on their values, so the image extends half a cell beyond the axes. */
    const double half_x = (field->theta_n[1] - field->theta_n[0]) / 2;
    const double half_y = (field->shift[1] - field->shift[0]) / 2;
    const double x0 = field->theta_n[0] - half_x, x1 = field->theta_n[field->n - 1] + half_x;
    const double y0 = field->shift[0] - half_y, y1 = field->shift[field->n - 1] + half_y;
    static const double zero = 0;
    struct opc_figure_layer layer[OPC_LIST_MAX][2];
    struct opc_panel panel[OPC_LIST_MAX];
    char title[OPC_LIST_MAX][40];
    for (int p = 0; p < field->panels; p++) {
        const double value = set->values.at[p];
        snprintf(title[p], sizeof title[p], "%s = %s%g", set->error == OPC_ERROR_A ? "ΔA" : "ΔB",
                 value < 0 ? "−" : "", fabs(value));
        layer[p][0] =
            (struct opc_figure_layer){.mark = OPC_PLOT_HEAT,
                                      .rows = field->n,
                                      .columns = field->n,
                                      .value = field->d + (size_t)p * (size_t)(field->n * field->n),
                                      .x0 = x0,
                                      .x1 = x1,
                                      .y0 = y0,
                                      .y1 = y1,
                                      .heat_low = -set->scale,
                                      .heat_high = set->scale,
                                      .diverging = true,
                                      .label = "unstable, left out"};
        layer[p][1] = (struct opc_figure_layer){
            .mark = OPC_PLOT_RULE_Y, .colour = OPC_COLOUR_GREY, .n = 1, .y = &zero};
        panel[p] = (struct opc_panel){.title = title[p],
                                      .x_label = "recorded policy θₙ",
                                      .y_label = "θ − θₙ",
                                      .x = {x0, x1},
                                      .y = {y0, y1},
                                      .layers = 2,
                                      .layer = layer[p]};
    }
    const struct opc_figure figure = {
        .note = "Blue: the corrected gradient points to the side the true one points to; red: to "
                "the other. Unstable: the closed loop of environment or model. The line is where "
                "the recording is on-policy.",
        .heat_label = "signed gradient distance",
        .panels = field->panels,
        .columns = field->panels <= 5 ? field->panels : 4,
        .panel = panel,
        .share_x = true,
        .share_y = true,
        .panel_width = 118,
        .panel_height = 118,
    };
    return opc_exhibit_figure(exhibit, NULL, "Signed gradient distance off-policy", &figure, err);
}

/* The paper says that the gradient degrades near instability, and not by which of the two numbers
 * that its figure shows, size and sign. Both are computed exactly, so each is decided, and no
 * number of seeds could change it. share: of wrong signs in per cent, far from instability and near
 * it. */
static void claim_near_edge(const struct field *field, const struct settings *set,
                            const double share[2], struct opc_exhibit *exhibit)
{
    static const char FURTHER[] = "The corrected gradient degrades near instability: it is further "
                                  "from the true one.",
                      WRONG[] = "The corrected gradient degrades near instability: it takes the "
                                "wrong side more often.";
    if (!field->cells[0] || !field->cells[1]) {
        static const char LACKS[] = "All stable cells are %s instability; another edge or shift "
                                    "decides it, and seeds do not matter.";
        const char *const where = field->cells[0] ? "far from" : "near";
        opc_exhibit_claim(exhibit, OPC_VERDICT_UNDECIDED, FURTHER, LACKS, where);
        opc_exhibit_claim(exhibit, OPC_VERDICT_UNDECIDED, WRONG, LACKS, where);
        return;
    }
    opc_exhibit_claim(exhibit,
                      field->mean[1] > field->mean[0] ? OPC_VERDICT_SUPPORTED
                                                      : OPC_VERDICT_NOT_SUPPORTED,
                      FURTHER,
                      "The mean distance is %.4f where a closed loop, of environment or model, is "
                      "within %g of instability, and %.4f elsewhere.",
                      field->mean[1], set->edge, field->mean[0]);
    opc_exhibit_claim(
        exhibit, share[1] > share[0] ? OPC_VERDICT_SUPPORTED : OPC_VERDICT_NOT_SUPPORTED, WRONG,
        "The wrong side is taken in %.2f %% of the cells within %g of instability, and "
        "in %.2f %% elsewhere; such cells lie %.3f from the best policy on average, all cells "
        "%.3f.",
        share[1], set->edge, share[0], field->from_best[1], field->from_best[0]);
    if ((field->mean[1] > field->mean[0]) != (share[1] > share[0]))
        opc_exhibit_note(exhibit,
                         "The paper does not say by which number the gradient degrades near "
                         "instability, so there is a claim for each. Its distance from the true "
                         "one %s there, its share of wrong signs %s. The true gradient changes its "
                         "sign at the best policy, in the middle of the stable ones, and a wrong "
                         "side is taken around there.",
                         field->mean[1] > field->mean[0] ? "grows" : "does not grow",
                         share[1] > share[0] ? "grows" : "does not");
}

/* Exact without model error; mostly right with one; worse near instability. */
static void reference_field_claims(const struct field *field, const struct settings *set,
                                   struct opc_exhibit *exhibit)
{
    /* Panels without a model error must be exact; the others count by their worst share. */
    double worst = 0, max = 0;
    bool zero = false, wrong = false;
    for (int p = 0; p < field->panels; p++)
        if (set->values.at[p] == 0) {
            zero = true;
            max = fmax(max, field->sum[p].max);
        } else {
            wrong = true;
            worst = fmax(worst, field->sum[p].wrong);
        }
    if (zero)
        opc_exhibit_claim(exhibit, max < 1e-12 ? OPC_VERDICT_SUPPORTED : OPC_VERDICT_NOT_SUPPORTED,
                          "Without a model error the corrected gradient is exact, whichever policy "
                          "made the recording.",
                          "The greatest distance is %.1e.", max);
    /* Off-policy with a model error. */
    if (wrong) {
        opc_exhibit_claim(exhibit, worst < 50 ? OPC_VERDICT_SUPPORTED : OPC_VERDICT_NOT_SUPPORTED,
                          "With a model error the corrected gradient mostly keeps the right side "
                          "off-policy.",
                          "The wrong side is taken in at most %.2f %% of the stable cells of a "
                          "panel.",
                          worst);
        /* Share of wrong signs in per cent, far from instability and near it. */
        const double share[2] = {100.0 * (double)field->wrong[0] / fmax(1, (double)field->cells[0]),
                                 100.0 * (double)field->wrong[1] /
                                     fmax(1, (double)field->cells[1])};
        claim_near_edge(field, set, share, exhibit);
    }
    opc_exhibit_note(exhibit, "The paper names the policies but not the axes; here they are the "
                              "recorded policy and the step away from it.");
}

/* The analysis itself; settings that cannot be drawn are refused first. */
static int reference_field_make(const struct opc_request *request, const void *settings,
                                struct opc_exhibit *exhibit, struct opc_err *err)
{
    (void)request;
    const struct settings *set = settings;
    struct field field;
    if (set->theta_min >= set->theta_max)
        return opc_fail(err, OPC_EUSER, "theta_min = %g is not below theta_max = %g",
                        set->theta_min, set->theta_max);
    if (set->values.n < 1)
        return opc_fail(err, OPC_EUSER, "values is empty; name at least one model error");
    int code = reference_field_create(set, &field, err);
    if (code)
        return code;
    code = reference_field_tables(&field, set, exhibit, err);
    if (!code)
        code = reference_field_draw(&field, set, exhibit, err);
    if (!code)
        reference_field_claims(&field, set, exhibit);
    reference_field_destroy(&field);
    return code;
}

const struct opc_analysis opc_reference_field = {
    "reference_field", "signed gradient distance with another policy's recording (Figure 9)",
    &section, .make = reference_field_make};
