/* SPDX-License-Identifier: MIT */
/* Shows what fits under several rules came to (probe_fit.c): tables, the error over the time of a
 * fit, what a cheaper fit than the full one costs in accuracy, and whether that is less by eq. 5.
 *
 * Invariant: a rule is compared with the first one that has the same networks, and the first fit of
 * each, which starts from new weights, counts only where there is no other. */
#include "study/probe/probe_fit.h"

#include "opc/mem.h"

#include <math.h>

enum { COST = -1, SECONDS = 0, STEPS };
enum { MIN_FITS = 5 }; /* fewer decide nothing: a bootstrap of them has no width */

static const char *rule_name(const struct opc_fit_results *t, int rule)
{
    return *t->rule[rule] ? t->rule[rule] : "as in the run";
}

/* Medians over the fits of a rule, but for the first, which starts from new weights. way COST: of
 * what a fit costs, `error` being SECONDS or STEPS. */
static double median_of(const struct opc_fit_results *t, int rule, int way, int error)
{
    double value[1024];
    int n = 0;
    for (int i = t->fits > 1; i < t->fits && n < 1024; i++) {
        const struct opc_fit_outcome *o = &t->outcome[rule * t->fits + i];
        const double v = way != COST        ? o->error[way][error]
                         : error == SECONDS ? o->seconds
                                            : o->steps;
        if (!isnan(v))
            value[n++] = v;
    }
    return n > 0 ? opc_quantile(n, value, 0.5) : (double)NAN;
}

static int write_tables(const struct opc_fit_results *t, struct opc_exhibit *exhibit,
                        struct opc_err *err)
{
    struct opc_table *all = NULL, *medians = NULL;
    int code =
        opc_table_create("rule,epoch,rows,passes,steps,seconds,learned_1,learned_H,corrected_1,"
                         "corrected_H",
                         &all, err);
    if (!code)
        code = opc_table_create(
            "rule,fits,steps,seconds,learned_1,learned_H,corrected_1,corrected_H", &medians, err);
    for (int rule = 0; rule < t->rules && !code; rule++) {
        opc_table_word(medians, rule_name(t, rule));
        opc_table_int(medians, t->fits > 1 ? t->fits - 1 : 1);
        opc_table_fixed(medians, median_of(t, rule, COST, STEPS), 0);
        opc_table_fixed(medians, median_of(t, rule, COST, SECONDS), 3);
        for (int k = 0; k < OPC_FIT_WAYS * OPC_FIT_ERRORS; k++)
            opc_table_real(medians, median_of(t, rule, k / OPC_FIT_ERRORS, k % OPC_FIT_ERRORS));
        for (int i = 0; i < t->fits; i++) {
            const struct opc_fit_outcome *o = &t->outcome[rule * t->fits + i];
            opc_table_word(all, rule_name(t, rule));
            opc_table_int(all, t->first + i);
            opc_table_int(all, o->rows);
            opc_table_int(all, o->passes);
            opc_table_int(all, o->steps);
            opc_table_fixed(all, o->seconds, 3);
            for (int k = 0; k < OPC_FIT_WAYS * OPC_FIT_ERRORS; k++)
                opc_table_real(all, o->error[k / OPC_FIT_ERRORS][k % OPC_FIT_ERRORS]);
        }
    }
    if (!code)
        code = opc_exhibit_table(exhibit, NULL, "medians over the fits of a rule", medians, err);
    if (!code)
        code = opc_exhibit_table(exhibit, "fits", "every fit", all, err);
    opc_table_free(all);
    opc_table_free(medians);
    return code;
}

/* Four panels: the error over the seconds of a fit, a dot for each rule. */
static int draw_fit_figure(const struct opc_fit_results *t, struct opc_exhibit *exhibit,
                           struct opc_err *err)
{
    static const char *const TITLE[OPC_FIT_WAYS * OPC_FIT_ERRORS] = {
        "eq. 2, one step", "eq. 2, H steps", "eq. 5, one step", "eq. 5, H steps"};
    struct opc_figure_layer layer[OPC_FIT_WAYS * OPC_FIT_ERRORS][OPC_FIT_RULES];
    struct opc_panel panel[OPC_FIT_WAYS * OPC_FIT_ERRORS];
    double seconds[OPC_FIT_RULES], error[OPC_FIT_WAYS * OPC_FIT_ERRORS][OPC_FIT_RULES];
    const int fits = t->fits > 1 ? t->fits - 1 : 1;
    struct opc_text note = {0};
    for (int k = 0; k < OPC_FIT_WAYS * OPC_FIT_ERRORS; k++) {
        for (int rule = 0; rule < t->rules; rule++) {
            seconds[rule] = median_of(t, rule, COST, SECONDS);
            error[k][rule] = median_of(t, rule, k / OPC_FIT_ERRORS, k % OPC_FIT_ERRORS);
            layer[k][rule] = (struct opc_figure_layer){.mark = OPC_PLOT_DOTS,
                                                       .label = t->label[rule],
                                                       .n = 1,
                                                       .x = &seconds[rule],
                                                       .y = &error[k][rule]};
        }
        panel[k] = (struct opc_panel){.title = TITLE[k],
                                      .x_label = "processor seconds of a fit",
                                      .y_label = "error (standard deviations)",
                                      .layers = t->rules,
                                      .layer = layer[k]};
    }
    if (*t->shared)
        opc_text_addf(&note, "All rules set %s. ", t->shared);
    opc_text_addf(
        &note,
        "Medians over %d fit%s. Errors on what the next epoch recorded, %d starts, actions with "
        "noise of %g, H = %d.",
        fits, opc_plural(fits), t->starts, t->noise, t->horizon);
    const struct opc_figure figure = {.note = opc_text_get(&note),
                                      .panels = OPC_FIT_WAYS * OPC_FIT_ERRORS,
                                      .columns = 2,
                                      .panel = panel,
                                      .panel_width = 300};
    int code = opc_text_check(&note, err);
    if (!code)
        code = opc_exhibit_figure(exhibit, NULL, "what a fit costs and what it is worth", &figure,
                                  err);
    opc_text_free(&note);
    return code;
}

/* ---- cheaper fits ---------------------------------------------------------------------------- */

/* Whether the rule makes fewer steps than the first one with the same networks. */
static bool is_cheaper(const struct opc_fit_results *t, int rule)
{
    return median_of(t, rule, COST, STEPS) < median_of(t, t->alike[rule], COST, STEPS);
}

/* Fit i of a rule relative to the full fit of the same epoch: the error by eq. 2 or eq. 5, in
 * percent above it, the mean over one and H steps. */
static double rise_of(const struct opc_fit_results *t, int rule, int i, int way)
{
    const struct opc_fit_outcome *o = &t->outcome[rule * t->fits + i];
    const struct opc_fit_outcome *full = &t->outcome[t->alike[rule] * t->fits + i];
    double sum = 0;
    for (int k = 0; k < OPC_FIT_ERRORS; k++)
        sum += 100 * (o->error[way][k] / full->error[way][k] - 1);
    return sum / OPC_FIT_ERRORS;
}

int opc_probe_fit_advantage(const struct opc_fit_results *t, struct opc_interval *advantage,
                            struct opc_err *err)
{
    double *v = opc_alloc((size_t)t->rules * (size_t)t->fits, sizeof *v);
    const double *of_rule[OPC_FIT_RULES];
    int n[OPC_FIT_RULES], rules = 0, all = 0;
    if (!v)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to compare %d rules", t->rules);
    for (int rule = 0; rule < t->rules; rule++) {
        if (!is_cheaper(t, rule))
            continue;
        of_rule[rules] = v + all;
        n[rules] = 0;
        for (int i = 1; i < t->fits; i++) {
            const double gap =
                rise_of(t, rule, i, OPC_FIT_LEARNED) - rise_of(t, rule, i, OPC_FIT_CORRECTED);
            if (isfinite(gap))
                v[all + n[rules]++] = gap;
        }
        all += n[rules];
        rules += n[rules] > 0;
    }
    const struct opc_scores scores = {.tasks = rules, .n = n, .v = of_rule};
    struct opc_rng rng = opc_probe_stream(t->seed, OPC_DRAW_BOOTSTRAP, 0, 0);
    const int code = opc_iqm_interval(&scores, 0, &rng, advantage, err);
    opc_free(v);
    return code;
}

/* The median rise over all fits of cheaper rules. */
static double median_rise(const struct opc_fit_results *t, int way)
{
    double value[1024];
    int n = 0;
    for (int rule = 0; rule < t->rules; rule++)
        for (int i = 1; is_cheaper(t, rule) && i < t->fits && n < 1024; i++) {
            const double rise = rise_of(t, rule, i, way);
            if (isfinite(rise))
                value[n++] = rise;
        }
    return n > 0 ? opc_quantile(n, value, 0.5) : (double)NAN;
}

/* The question for OPC: it needs only differences of the model, so does a cheaper fit hurt it less?
 * One recording answers for itself alone. */
static int claim_advantage(const struct opc_fit_results *t, struct opc_exhibit *exhibit,
                           struct opc_err *err)
{
    struct opc_interval gap;
    int rules = 0;
    for (int rule = 0; rule < t->rules; rule++)
        rules += is_cheaper(t, rule);
    OPC_TRY(opc_probe_fit_advantage(t, &gap, err));
    if (rules == 0 || isnan(gap.middle))
        return OPC_OK;
    const int fits = t->fits - 1;
    const bool few = fits < MIN_FITS;
    opc_exhibit_claim(
        exhibit,
        few            ? OPC_VERDICT_UNDECIDED
        : gap.low > 0  ? OPC_VERDICT_SUPPORTED
        : gap.high < 0 ? OPC_VERDICT_NOT_SUPPORTED
                       : OPC_VERDICT_UNDECIDED,
        "On this recording a cheaper fit hurts eq. 5 less than eq. 2, as it needs only "
        "differences of the model.",
        "%d rule%s with fewer steps than the full fit of the same networks, %d fit%s each: median "
        "change of the error %+.1f %% by eq. 2 and %+.1f %% by eq. 5; interquartile mean of the "
        "difference %.1f points [%.1f, %.1f] (95 %% bootstrap over fits; %s)",
        rules, opc_plural(rules), fits, opc_plural(fits), median_rise(t, OPC_FIT_LEARNED),
        median_rise(t, OPC_FIT_CORRECTED), gap.middle, gap.low, gap.high,
        few ? "five fits or more can decide it" : "other recordings may say otherwise");
    return OPC_OK;
}

/* Two panels: the error of each cheaper rule over its time, both relative to the full fit. */
static int draw_cheaper(const struct opc_fit_results *t, struct opc_exhibit *exhibit,
                        struct opc_err *err)
{
    static const char *const TITLE[OPC_FIT_ERRORS] = {"one step", "H steps"};
    static const char *const LABEL[OPC_FIT_WAYS] = {"eq. 2", "eq. 5"};
    static const int COLOUR[OPC_FIT_WAYS] = {OPC_COLOUR_MODEL, OPC_COLOUR_OPC};
    struct opc_figure_layer layer[OPC_FIT_ERRORS][OPC_FIT_WAYS];
    struct opc_panel panel[OPC_FIT_ERRORS];
    double share[OPC_FIT_RULES], error[OPC_FIT_ERRORS][OPC_FIT_WAYS][OPC_FIT_RULES];
    int n = 0;
    for (int rule = 0; rule < t->rules; rule++) {
        const int full = t->alike[rule];
        if (!is_cheaper(t, rule))
            continue;
        share[n] = median_of(t, rule, COST, SECONDS) / median_of(t, full, COST, SECONDS);
        for (int k = 0; k < OPC_FIT_ERRORS * OPC_FIT_WAYS; k++)
            error[k / OPC_FIT_WAYS][k % OPC_FIT_WAYS][n] =
                median_of(t, rule, k % OPC_FIT_WAYS, k / OPC_FIT_WAYS) /
                median_of(t, full, k % OPC_FIT_WAYS, k / OPC_FIT_WAYS);
        n++;
    }
    for (int k = 0; k < OPC_FIT_ERRORS; k++) {
        for (int way = 0; way < OPC_FIT_WAYS; way++)
            layer[k][way] = (struct opc_figure_layer){.mark = OPC_PLOT_DOTS,
                                                      .colour = COLOUR[way],
                                                      .label = LABEL[way],
                                                      .n = n,
                                                      .x = share,
                                                      .y = error[k][way]};
        panel[k] = (struct opc_panel){.title = TITLE[k],
                                      .x_label = "time of a fit / that of the full fit",
                                      .y_label = "error / that after the full fit",
                                      .layers = OPC_FIT_WAYS,
                                      .layer = layer[k]};
    }
    const struct opc_figure figure = {
        .note = "A dot for each rule with fewer steps than the full fit, the first rule with the "
                "same networks. Left of 1 the fit is cheaper; below 1 its model is better.",
        .panels = OPC_FIT_ERRORS,
        .columns = 2,
        .panel = panel,
        .panel_width = 300};
    return n > 0 ? opc_exhibit_figure(exhibit, "cheaper",
                                      "what a cheaper fit costs in accuracy, by eq. 2 and eq. 5",
                                      &figure, err)
                 : OPC_OK;
}

int opc_probe_fit_show(const struct opc_fit_results *t, struct opc_exhibit *exhibit,
                       struct opc_err *err)
{
    OPC_TRY(draw_fit_figure(t, exhibit, err));
    OPC_TRY(draw_cheaper(t, exhibit, err));
    OPC_TRY(write_tables(t, exhibit, err));
    OPC_TRY(claim_advantage(t, exhibit, err));
    opc_exhibit_note(exhibit,
                     "Fits after epochs %d to %d, each tested on the recordings of the epoch "
                     "after it; the first fit starts from new weights%s, and rules with the same "
                     "networks share it. Seconds are of the processor and depend on the "
                     "machine; steps are gradient steps.",
                     t->first, t->first + t->fits - 1, t->fits > 1 ? " and does not count" : "");
    if (t->fits == 1)
        opc_exhibit_note(exhibit,
                         "One fit alone compares no rules with the same networks; a run of "
                         "more epochs has more.");
    if (t->rules < t->asked)
        opc_exhibit_note(exhibit, "STOPPED by request after %d of %d rules.", t->rules, t->asked);
    return OPC_OK;
}
