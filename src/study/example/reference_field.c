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
    X(INT,    cells,       "61",   3,    999,  "of a field, each way")                              \
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
    double mean[2]; /* of |d| */
};

static void destroy(struct field *f)
{
    opc_free(f->theta_n);
    opc_free(f->shift);
    opc_free(f->d);
}

/* The example with the panel's model error. */
static struct opc_toy toy_of(const struct settings *s, int panel)
{
    const double error = s->values.at[panel];
    return s->error == OPC_ERROR_A ? opc_toy_paper(error, 0) : opc_toy_paper(0, error);
}

/* Whether the closed loop of environment or model is within `edge` of instability. */
static bool near_edge(const struct opc_toy *toy, double theta, double edge)
{
    const double truth = fabs(toy->A + toy->B * theta);
    const double model = fabs(toy->A + toy->dA + (toy->B + toy->dB) * theta);
    return fmax(truth, model) > 1 - edge;
}

static int create(const struct settings *s, struct field *f, struct opc_err *err)
{
    const int n = s->cells;
    const size_t cells = (size_t)n * (size_t)n;
    *f = (struct field){.n = n, .panels = s->values.n};
    f->theta_n = opc_alloc((size_t)n, sizeof *f->theta_n);
    f->shift = opc_alloc((size_t)n, sizeof *f->shift);
    f->d = opc_alloc(cells * (size_t)f->panels, sizeof *f->d);
    if (!f->theta_n || !f->shift || !f->d) {
        destroy(f);
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %d fields of %d by %d cells",
                        f->panels, n, n);
    }
    /* Both axes include their ends. */
    for (int i = 0; i < n; i++) {
        f->theta_n[i] = s->theta_min + (s->theta_max - s->theta_min) * i / (n - 1);
        f->shift[i] = s->shift * (2.0 * i / (n - 1) - 1);
    }
    for (int p = 0; p < f->panels; p++) {
        const struct opc_toy toy = toy_of(s, p);
        double *d = f->d + (size_t)p * cells;
        opc_toy_gradient_field_off(&toy, n, f->shift, n, f->theta_n, d);
        f->sum[p] = opc_gradient_field_sum(n * n, d);
        /* Statistics near and far from instability; a panel without model error has no error to
         * degrade. */
        for (int i = 0; i < n * n && s->values.at[p] != 0; i++)
            if (!isnan(d[i])) {
                const double theta = f->theta_n[i % n] + f->shift[i / n];
                const bool edge = near_edge(&toy, theta, s->edge);
                f->cells[edge]++;
                f->wrong[edge] += d[i] < 0;
                f->mean[edge] += fabs(d[i]);
            }
    }
    for (int edge = 0; edge < 2; edge++)
        f->mean[edge] /= fmax(1, (double)f->cells[edge]);
    return OPC_OK;
}

/* All cells, and statistics of each panel. */
static int tables(const struct field *f, const struct settings *s, struct opc_exhibit *exhibit,
                  struct opc_err *err)
{
    const bool a = s->error == OPC_ERROR_A;
    const int n = f->n;
    struct opc_table *t;
    int code =
        opc_table_create(a ? "delta_a,theta_n,shift,opc" : "delta_b,theta_n,shift,opc", &t, err);
    if (code)
        return code;
    for (int p = 0; p < f->panels; p++)
        for (int i = 0; i < n * n; i++) {
            opc_table_real(t, s->values.at[p]);
            opc_table_real(t, f->theta_n[i % n]);
            opc_table_real(t, f->shift[i / n]);
            opc_table_real(t, f->d[(size_t)p * (size_t)(n * n) + (size_t)i]);
        }
    code = opc_exhibit_table(exhibit, NULL,
                             "signed gradient distance at theta = theta_n + shift; empty where "
                             "masked",
                             t, err);
    opc_table_free(t);
    if (code)
        return code;
    code =
        opc_table_create(a ? "delta_a,cells,wrong_sign_percent,mean_abs_distance,max_abs_distance"
                           : "delta_b,cells,wrong_sign_percent,mean_abs_distance,"
                             "max_abs_distance",
                         &t, err);
    if (code)
        return code;
    for (int p = 0; p < f->panels; p++) {
        opc_table_real(t, s->values.at[p]);
        opc_table_int(t, f->sum[p].cells);
        opc_table_fixed(t, f->sum[p].wrong, 2);
        opc_table_fixed(t, f->sum[p].mean, 4);
        opc_table_real(t, f->sum[p].max);
    }
    code = opc_exhibit_table(exhibit, "shares", "cells whose gradient has the wrong sign", t, err);
    opc_table_free(t);
    return code;
}

/* A heat map for each model error; the line marks where the recording is on-policy. */
static int draw(const struct field *f, const struct settings *s, struct opc_exhibit *exhibit,
                struct opc_err *err)
{
    const double half_x = (f->theta_n[1] - f->theta_n[0]) / 2;
    const double half_y = (f->shift[1] - f->shift[0]) / 2;
    const double x0 = f->theta_n[0] - half_x, x1 = f->theta_n[f->n - 1] + half_x;
    const double y0 = f->shift[0] - half_y, y1 = f->shift[f->n - 1] + half_y;
    static const double zero = 0;
    struct opc_figure_layer layer[OPC_LIST_MAX][2];
    struct opc_panel panel[OPC_LIST_MAX];
    char title[OPC_LIST_MAX][40];
    for (int p = 0; p < f->panels; p++) {
        const double value = s->values.at[p];
        snprintf(title[p], sizeof title[p], "%s = %s%g", s->error == OPC_ERROR_A ? "ΔA" : "ΔB",
                 value < 0 ? "−" : "", fabs(value));
        layer[p][0] = (struct opc_figure_layer){.mark = OPC_PLOT_HEAT,
                                                .rows = f->n,
                                                .columns = f->n,
                                                .value = f->d + (size_t)p * (size_t)(f->n * f->n),
                                                .x0 = x0,
                                                .x1 = x1,
                                                .y0 = y0,
                                                .y1 = y1,
                                                .heat_low = -s->scale,
                                                .heat_high = s->scale,
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
        .panels = f->panels,
        .columns = f->panels <= 5 ? f->panels : 4,
        .panel = panel,
        .share_x = true,
        .share_y = true,
        .panel_width = 118,
        .panel_height = 118,
    };
    return opc_exhibit_figure(exhibit, NULL, "Signed gradient distance off-policy", &figure, err);
}

/* Exact without model error; mostly right with one; worse near instability. */
static void claims(const struct field *f, const struct settings *s, struct opc_exhibit *exhibit)
{
    double worst = 0, max = 0;
    bool zero = false, wrong = false;
    for (int p = 0; p < f->panels; p++)
        if (s->values.at[p] == 0) {
            zero = true;
            max = fmax(max, f->sum[p].max);
        } else {
            wrong = true;
            worst = fmax(worst, f->sum[p].wrong);
        }
    if (zero)
        opc_exhibit_claim(exhibit, max < 1e-12 ? OPC_SUPPORTED : OPC_NOT_SUPPORTED,
                          "Without a model error the corrected gradient is exact, whichever policy "
                          "made the recording.",
                          "The greatest distance is %.1e.", max);
    if (wrong) {
        opc_exhibit_claim(exhibit, worst < 50 ? OPC_SUPPORTED : OPC_NOT_SUPPORTED,
                          "With a model error the corrected gradient mostly keeps the right side "
                          "off-policy.",
                          "The wrong side is taken in at most %.2f %% of the stable cells of a "
                          "panel.",
                          worst);
        const double share[2] = {100.0 * (double)f->wrong[0] / fmax(1, (double)f->cells[0]),
                                 100.0 * (double)f->wrong[1] / fmax(1, (double)f->cells[1])};
        /* Judged by distance and by sign; if the two disagree, the claim is undecided. */
        const int worse = (f->mean[1] > f->mean[0]) + (share[1] > share[0]);
        opc_exhibit_claim(exhibit,
                          !f->cells[0] || !f->cells[1] || worse == 1 ? OPC_UNDECIDED
                          : worse == 2                               ? OPC_SUPPORTED
                                                                     : OPC_NOT_SUPPORTED,
                          "The corrected gradient degrades near instability.",
                          "The mean distance is %.4f where a closed loop, of environment or model, "
                          "is within %g of instability, and %.4f elsewhere; the wrong side is "
                          "taken in %.2f %% and %.2f %% of the cells%s.",
                          f->mean[1], s->edge, f->mean[0], share[1], share[0],
                          worse == 1 ? ": the two do not agree" : "");
        if (worse == 1)
            opc_exhibit_note(exhibit,
                             "The paper does not say by which number the gradient "
                             "degrades near instability. Its distance from the true one "
                             "%s there, its share of wrong signs %s: whoever takes only "
                             "one of them gets the answer that goes with it.",
                             f->mean[1] > f->mean[0] ? "grows" : "does not grow",
                             share[1] > share[0] ? "grows" : "does not");
    }
    opc_exhibit_note(exhibit, "The paper names the policies but not the axes; here they are the "
                              "recorded policy and the step away from it.");
}

static int make(const struct opc_request *request, const void *settings,
                struct opc_exhibit *exhibit, struct opc_err *err)
{
    (void)request;
    const struct settings *s = settings;
    struct field f;
    if (s->theta_min >= s->theta_max)
        return opc_fail(err, OPC_EUSER, "theta_min = %g is not below theta_max = %g", s->theta_min,
                        s->theta_max);
    if (s->values.n < 1)
        return opc_fail(err, OPC_EUSER, "values is empty; name at least one model error");
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

const struct opc_analysis opc_reference_field = {
    "reference_field", "signed gradient distance beside another policy's recording (Figure 9)",
    &section, .make = make};
