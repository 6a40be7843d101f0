/* SPDX-License-Identifier: MIT */
/* Figures, tables and claims about learning control. opc ilc shows one run, the analysis `ilc`
 * one of each form.
 *
 * Invariant: errors are those of the actions on the plant without noise, except where a column
 * says "seen", so that forms with and without noise can be compared. */
#include "study/ilc/ilc_exhibit.h"

#include "num/stats.h"
#include "opc/mem.h"

#include <stdio.h>
#include <string.h>

/* ---- errors over repeats --------------------------------------------------------------------- */

/* Quantile over repeats of column `trial` of v[repeats][trials]; NaN if memory runs out. */
static double over_repeats(const struct opc_ilc_trials *t, const double *v, int trial, double q)
{
    const int repeats = t->config.repeats;
    double *sorted = opc_alloc((size_t)repeats, sizeof *sorted);
    if (!sorted)
        return (double)NAN;
    for (int k = 0; k < repeats; k++)
        sorted[k] = v[k * t->trials + trial];
    const double value = opc_quantile(repeats, sorted, q);
    opc_free(sorted);
    return value;
}

double opc_ilc_error(const struct opc_ilc_trials *t, int trial, double q)
{
    return over_repeats(t, t->rms, trial, q);
}

double opc_ilc_error_plain(const struct opc_ilc_trials *t, int trial, double q)
{
    return over_repeats(t, t->plain, trial, q);
}

double opc_ilc_error_seen(const struct opc_ilc_trials *t, int trial, double q)
{
    return over_repeats(t, t->seen, trial, q);
}

/* ---- pictures -------------------------------------------------------------------------------- */

enum { PANELS = 16, LAYERS = 8 };

/* Panels under construction, with the numbers that their layers point at. */
struct sheet {
    int panels;
    struct opc_panel panel[PANELS];
    struct opc_figure_layer layer[PANELS][LAYERS];
    struct opc_arena numbers;
};

static double *doubles(struct sheet *s, int n)
{
    return opc_arena_take(&s->numbers, (size_t)n, sizeof(double));
}

/* Bytes of the arena: upper bound for the numbers of all panels of these runs. */
static size_t need(int runs, struct opc_ilc_trials *const run[])
{
    size_t sum = 0;
    for (int i = 0; i < runs; i++) {
        const size_t lines = 4, columns = (size_t)(run[i]->n + run[i]->m);
        sum += 8 * opc_arena_need((size_t)run[i]->trials, sizeof(double)) +
               columns * (lines + 1) * opc_arena_need((size_t)run[i]->T + 1, sizeof(double)) +
               columns * 2 * opc_arena_need(1, sizeof(double));
    }
    return sum;
}

/* Starts a panel; add_layer adds to the last one. */
static struct opc_panel *add_panel(struct sheet *s, const char *title, const char *x_label,
                                   const char *y_label)
{
    struct opc_panel *p = &s->panel[s->panels];
    *p = (struct opc_panel){
        .title = title, .x_label = x_label, .y_label = y_label, .layer = s->layer[s->panels]};
    s->panels++;
    return p;
}

static void add_layer(struct sheet *s, struct opc_figure_layer layer)
{
    struct opc_panel *p = &s->panel[s->panels - 1];
    s->layer[s->panels - 1][p->layers++] = layer;
}

/* Adds median and quartiles of v[repeats][trials] over trials. */
static void add_errors(struct sheet *s, const struct opc_ilc_trials *t, const double *v,
                       enum opc_colour colour, int dash, const char *label)
{
    double *x = doubles(s, t->trials), *y = doubles(s, t->trials);
    double *low = doubles(s, t->trials), *high = doubles(s, t->trials);
    for (int i = 0; i < t->trials; i++) {
        x[i] = i;
        y[i] = over_repeats(t, v, i, 0.5);
        low[i] = over_repeats(t, v, i, 0.25);
        high[i] = over_repeats(t, v, i, 0.75);
    }
    if (t->config.repeats > 1)
        add_layer(s, (struct opc_figure_layer){.mark = OPC_PLOT_BAND,
                                               .colour = (int)colour,
                                               .n = t->trials,
                                               .x = x,
                                               .low = low,
                                               .high = high});
    add_layer(s, (struct opc_figure_layer){.mark = OPC_PLOT_LINE,
                                           .colour = (int)colour,
                                           .dash = dash,
                                           .label = label,
                                           .n = t->trials,
                                           .x = x,
                                           .y = y});
    add_layer(s, (struct opc_figure_layer){
                     .mark = OPC_PLOT_DOTS, .colour = (int)colour, .n = t->trials, .x = x, .y = y});
}

/* Error over trials; for the stochastic form with and without the filter. */
static void error_panel(struct sheet *s, const struct opc_ilc_trials *t, const char *title)
{
    struct opc_panel *p = add_panel(s, title, "trial", "tracking error (RMS)");
    p->log_y = true;
    add_errors(s, t, t->plain ? t->plain : t->rms, OPC_COLOUR_OPC, 0,
               "each trial believed as seen");
    if (t->plain)
        add_errors(s, t, t->rms, OPC_COLOUR_FIRST, 1, "Kalman filter over trials");
}

/* Adds column k of v[n][columns] over time. */
static void add_trajectory(struct sheet *s, const double *time, const double *v, int n, int columns,
                           int k, int colour, int dash, const char *label)
{
    double *y = doubles(s, n);
    for (int i = 0; i < n; i++)
        y[i] = v[i * columns + k];
    add_layer(s, (struct opc_figure_layer){.mark = OPC_PLOT_LINE,
                                           .colour = colour,
                                           .dash = dash,
                                           .label = label,
                                           .n = n,
                                           .x = time,
                                           .y = y});
}

/* A dashed line at the bound of entry k, unless it is infinite. */
static void add_bound(struct sheet *s, const struct opc_reals *list, int k)
{
    if (list->n == 0 || isinf(list->at[list->n == 1 ? 0 : k]))
        return;
    double *y = doubles(s, 1);
    *y = list->at[list->n == 1 ? 0 : k];
    add_layer(s, (struct opc_figure_layer){.mark = OPC_PLOT_RULE_Y,
                                           .colour = OPC_COLOUR_GREY,
                                           .dash = 2,
                                           .label = "bound",
                                           .y = y});
}

static double *times(struct sheet *s, const struct opc_ilc_trials *t, int n)
{
    double *x = doubles(s, n);
    for (int i = 0; i < n; i++)
        x[i] = i * t->dt;
    return x;
}

enum { FIRST = OPC_COLOUR_FIRST + 1, SECOND = OPC_COLOUR_FIRST + 3 };

/* Adds first, second and last trial of column k of v[trials][n][columns]. */
static void add_trials(struct sheet *s, const struct opc_ilc_trials *t, const double *time,
                       const double *v, int n, int columns, int k)
{
    const size_t apart = (size_t)(n * columns);
    add_trajectory(s, time, v, n, columns, k, FIRST, 1, "first trial");
    if (t->trials > 2)
        add_trajectory(s, time, v + apart, n, columns, k, SECOND, 2, "second trial");
    add_trajectory(s, time, v + (size_t)(t->trials - 1) * apart, n, columns, k, OPC_COLOUR_OPC, 0,
                   "last trial");
}

static void state_panel(struct sheet *s, const struct opc_ilc_trials *t, int k, const char *title)
{
    add_panel(s, title, "time (s)", t->state_name[k]);
    const double *time = times(s, t, t->T + 1);
    add_bound(s, &t->config.state_low, k);
    add_bound(s, &t->config.state_high, k);
    add_trials(s, t, time, t->clean, t->T + 1, t->n, k);
    add_trajectory(s, time, t->ref, t->T + 1, t->n, k, OPC_COLOUR_TRUE, 3, "reference");
}

static void action_panel(struct sheet *s, const struct opc_ilc_trials *t, int k, const char *title)
{
    add_panel(s, title, "time (s)", t->action_name);
    const double *time = times(s, t, t->T);
    add_bound(s, &t->config.action_low, k);
    add_bound(s, &t->config.action_high, k);
    add_trials(s, t, time, t->u, t->T, t->m, k);
}

static int draw(const struct sheet *s, const char *part, const char *title, const char *note,
                int columns, struct opc_exhibit *exhibit, struct opc_err *err)
{
    const struct opc_figure figure = {
        .title = title, .note = note, .panels = s->panels, .columns = columns, .panel = s->panel};
    return opc_exhibit_figure(exhibit, part, title, &figure, err);
}

static const char *const MEDIANS = "stochastic: median and quartiles over repeats; the error is "
                                   "that of the actions on the plant without noise";
static const char *const CLEAN = "stochastic: what the actions of the first repeat do on the plant "
                                 "without noise";

/* One run: error, states and actions in one figure. */
static int draw_one(struct sheet *s, const struct opc_ilc_trials *t, struct opc_exhibit *exhibit,
                    struct opc_err *err)
{
    char title[80];
    snprintf(title, sizeof title, "Norm-optimal ILC, %s", opc_ilc_form_name(t->config.form));
    error_panel(s, t, "error over trials");
    for (int k = 0; k < t->n; k++)
        state_panel(s, t, k, NULL);
    for (int k = 0; k < t->m; k++)
        action_panel(s, t, k, NULL);
    return draw(s, NULL, title, t->config.repeats > 1 ? MEDIANS : NULL, 2, exhibit, err);
}

/* Index of the first state that has a bound, or 0. */
static int shown_state(const struct opc_ilc_trials *t)
{
    const struct opc_reals *low = &t->config.state_low, *high = &t->config.state_high;
    for (int k = 0; k < t->n; k++)
        if ((k < low->n && !isinf(low->at[k])) || (k < high->n && !isinf(high->at[k])))
            return k;
    return 0;
}

/* Several runs: a figure each for errors, states and actions, with a panel for each run. */
static int draw_many(struct sheet *s, int runs, struct opc_ilc_trials *const run[],
                     struct opc_exhibit *exhibit, struct opc_err *err)
{
    for (int i = 0; i < runs; i++)
        error_panel(s, run[i], opc_ilc_form_name(run[i]->config.form));
    int code =
        draw(s, NULL, "Tracking error of norm-optimal ILC over trials", MEDIANS, 3, exhibit, err);
    /* The panels start again; the arena keeps the numbers of the earlier ones. */
    s->panels = 0;
    for (int i = 0; i < runs; i++)
        state_panel(s, run[i], shown_state(run[i]), opc_ilc_form_name(run[i]->config.form));
    if (!code)
        code = draw(s, "states", "States of the trials", CLEAN, 3, exhibit, err);
    s->panels = 0;
    for (int i = 0; i < runs; i++)
        action_panel(s, run[i], 0, opc_ilc_form_name(run[i]->config.form));
    if (!code)
        code = draw(s, "actions", "Actions of the trials", NULL, 3, exhibit, err);
    return code;
}

static int draw_all(int runs, struct opc_ilc_trials *const run[], struct opc_exhibit *exhibit,
                    struct opc_err *err)
{
    struct sheet *s = opc_alloc(1, sizeof *s);
    if (!s)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the figure");
    int code = opc_arena_create(need(runs, run), &s->numbers, err);
    if (!code)
        code =
            runs == 1 ? draw_one(s, run[0], exhibit, err) : draw_many(s, runs, run, exhibit, err);
    opc_arena_destroy(&s->numbers);
    opc_free(s);
    return code;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* A row for each trial: quartiles of the error without noise, as seen, and without the filter. */
static int error_table(int runs, struct opc_ilc_trials *const run[], struct opc_exhibit *exhibit,
                       struct opc_err *err)
{
    struct opc_table *table;
    int code = opc_table_create(
        "form,trial,rms,rms_low,rms_high,rms_seen,rms_plain,rms_plain_low,rms_plain_high", &table,
        err);
    if (code)
        return code;
    for (int i = 0; i < runs; i++)
        for (int trial = 0; trial < run[i]->trials; trial++) {
            const struct opc_ilc_trials *t = run[i];
            const double QUARTER[] = {0.5, 0.25, 0.75};
            opc_table_word(table, opc_ilc_form_name(t->config.form));
            opc_table_int(table, trial);
            for (int q = 0; q < 3; q++)
                opc_table_real(table, opc_ilc_error(t, trial, QUARTER[q]));
            opc_table_real(table, opc_ilc_error_seen(t, trial, 0.5));
            for (int q = 0; q < 3; q++)
                opc_table_real(table,
                               t->plain ? opc_ilc_error_plain(t, trial, QUARTER[q]) : (double)NAN);
        }
    code = opc_exhibit_table(exhibit, NULL,
                             "error of each trial: median and quartiles over repeats", table, err);
    opc_table_free(table);
    return code;
}

/* A row for each step and quantity of the first repeat; actions have no reference. */
static int trajectory_table(int runs, struct opc_ilc_trials *const run[],
                            struct opc_exhibit *exhibit, struct opc_err *err)
{
    struct opc_table *table;
    int code = opc_table_create("form,trial,step,time,quantity,seen,clean,reference", &table, err);
    if (code)
        return code;
    for (int i = 0; i < runs; i++) {
        const struct opc_ilc_trials *t = run[i];
        for (int trial = 0; trial < t->trials; trial++)
            for (int step = 0; step <= t->T; step++)
                for (int k = 0; k < t->n + (step < t->T ? t->m : 0); k++) {
                    const int states = (t->T + 1) * t->n, actions = t->T * t->m;
                    const int s = trial * states + step * t->n + k;
                    const double a =
                        k < t->n ? 0.0 : t->u[trial * actions + step * t->m + k - t->n];
                    opc_table_word(table, opc_ilc_form_name(t->config.form));
                    opc_table_int(table, trial);
                    opc_table_int(table, step);
                    opc_table_real(table, step * t->dt);
                    opc_table_word(table, k < t->n ? t->state_name[k] : t->action_name);
                    opc_table_real(table, k < t->n ? t->s[s] : a);
                    opc_table_real(table, k < t->n ? t->clean[s] : a);
                    opc_table_real(table, k < t->n ? t->ref[step * t->n + k] : (double)NAN);
                }
    }
    code =
        opc_exhibit_table(exhibit, "trajectories", "states and actions of every trial", table, err);
    opc_table_free(table);
    return code;
}

/* ---- claims ---------------------------------------------------------------------------------- */

static enum opc_verdict says(bool yes)
{
    return yes ? OPC_SUPPORTED : OPC_NOT_SUPPORTED;
}

/* The error must fall: in every trial for the linear form, to a quarter for the others. */
static void claim_fall(const struct opc_ilc_trials *t, struct opc_exhibit *exhibit)
{
    const char *form = opc_ilc_form_name(t->config.form);
    const int last = t->trials - 1;
    const double first = opc_ilc_error(t, 0, 0.5), end = opc_ilc_error(t, last, 0.5);
    int rises = 0;
    for (int i = 0; i < last; i++)
        rises += opc_ilc_error(t, i + 1, 0.5) > opc_ilc_error(t, i, 0.5);
    char claim[200];
    if (t->config.form == OPC_ILC_LINEAR) {
        snprintf(claim, sizeof claim,
                 "%s: with a model that is moderately wrong the error falls in every trial", form);
        opc_exhibit_claim(exhibit, says(rises == 0 && end < first), claim,
                          "RMS error %.6f in the first trial, %.6f after %d updates; it rose %d "
                          "times",
                          first, end, last, rises);
        return;
    }
    snprintf(claim, sizeof claim,
             "%s: trials around which a wrong model is used only for its slope end near the "
             "reference",
             form);
    if (t->config.form == OPC_ILC_LEARNED)
        snprintf(claim, sizeof claim,
                 "%s: the slope of a learned ensemble is good enough to learn a trajectory with",
                 form);
    if (t->config.form == OPC_ILC_CONSTRAINED)
        snprintf(claim, sizeof claim, "%s: the error falls within bounds, too", form);
    if (t->config.form == OPC_ILC_STOCHASTIC)
        snprintf(claim, sizeof claim, "%s: the error falls under noise, too", form);
    opc_exhibit_claim(
        exhibit, says(end < 0.25 * first), claim,
        "RMS error %.4g in the first trial, %.4g after %d updates (enough: a quarter)", first, end,
        last);
}

/* Supported if the filter is better in clearly more than half of the repeats. */
static void claim_filter(const struct opc_ilc_trials *t, struct opc_exhibit *exhibit)
{
    const int last = t->trials - 1, repeats = t->config.repeats;
    int better = 0;
    for (int k = 0; k < repeats; k++)
        better += t->rms[k * t->trials + last] < t->plain[k * t->trials + last];
    const double with = opc_ilc_error(t, last, 0.5), without = opc_ilc_error_plain(t, last, 0.5);
    /* A clear majority: more than two standard deviations of a fair coin. */
    const bool clear = fabs(2.0 * better - repeats) > 2.0 * sqrt(repeats);
    opc_exhibit_claim(
        exhibit, !clear ? OPC_UNDECIDED : says(2 * better > repeats),
        "stochastic: a Kalman filter over trials tracks better than believing each "
        "trial",
        "median RMS error after %d updates %.4g with the filter, %.4g without; better "
        "in %d of %d repeats",
        last, with, without, better, repeats);
}

/* All claims about one run. */
static void claims(const struct opc_ilc_trials *t, struct opc_exhibit *exhibit)
{
    claim_fall(t, exhibit);
    if (!isnan(t->by_opc))
        opc_exhibit_claim(
            exhibit, says(t->by_opc < 1e-4 * (1.0 + t->largest)),
            "linear: the update of norm-optimal ILC is that of OPC with a linear model "
            "and the last trial as its only reference",
            "greatest difference of an action %.2g, of actions up to %.3g (eq. 5 is "
            "computed in single precision)",
            t->by_opc, t->largest);
    if (t->plain)
        claim_filter(t, exhibit);
    if (t->limited)
        opc_exhibit_claim(exhibit, says(t->kkt < 1e-8),
                          "constrained: every update is optimal within its bounds",
                          "worst residual of the optimality conditions %.1e; up to %d bounds "
                          "active; in the last trial states were beyond theirs by %.2g",
                          t->kkt, t->active, t->beyond);
    if (t->config.form == OPC_ILC_LEARNED)
        opc_exhibit_note(exhibit, "learned: mean squared error of the last fit on its holdout %.3g",
                         t->holdout);
}

int opc_ilc_show(int runs, struct opc_ilc_trials *const run[], struct opc_exhibit *exhibit,
                 struct opc_err *err)
{
    OPC_TRY(draw_all(runs, run, exhibit, err));
    OPC_TRY(error_table(runs, run, exhibit, err));
    OPC_TRY(trajectory_table(runs, run, exhibit, err));
    for (int i = 0; i < runs; i++)
        claims(run[i], exhibit);
    return OPC_OK;
}
