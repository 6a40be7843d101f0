/* SPDX-License-Identifier: MIT */
/* Figures, tables and claims about learning control. opc ilc shows one run, the analysis `ilc`
 * one of each form.
 *
 * Invariant: errors are those of the actions on the plant without noise, except where a column
 * says "seen", so that forms with and without noise can be compared. */
#include "study/ilc/ilc_exhibit.h"

#include "num/stats.h"
#include "opc/mem.h"
#include "study/exhibit/seeds.h"

#include <stdio.h>
#include <string.h>

/* ---- errors over repeats --------------------------------------------------------------------- */

/* Quantile over repeats of column `trial` of v[repeats][trials]; NaN if memory runs out. */
static double over_repeats(const struct opc_ilc_trials *trials, const double *v, int trial,
                           double q)
{
    const int repeats = trials->config.repeats;
    double *sorted = opc_alloc((size_t)repeats, sizeof *sorted);
    if (!sorted)
        return (double)NAN;
    for (int k = 0; k < repeats; k++)
        sorted[k] = v[k * trials->trials + trial];
    const double value = opc_quantile(repeats, sorted, q);
    opc_free(sorted);
    return value;
}

double opc_ilc_error(const struct opc_ilc_trials *trials, int trial, double q)
{
    return over_repeats(trials, trials->rms, trial, q);
}

double opc_ilc_error_plain(const struct opc_ilc_trials *trials, int trial, double q)
{
    return over_repeats(trials, trials->plain, trial, q);
}

double opc_ilc_error_seen(const struct opc_ilc_trials *trials, int trial, double q)
{
    return over_repeats(trials, trials->seen, trial, q);
}

/* ---- pictures -------------------------------------------------------------------------------- */

enum { PANELS = 16, LAYERS = 8 }; /* more than any figure here has */

/* Panels under construction, with the numbers that their layers point at. */
struct sheet {
    int panels;
    struct opc_panel panel[PANELS];
    struct opc_figure_layer layer[PANELS][LAYERS];
    struct opc_arena numbers;
};

/* n numbers that live as long as the sheet. */
static double *sheet_numbers(struct sheet *sheet, int n)
{
    return opc_arena_take(&sheet->numbers, (size_t)n, sizeof(double));
}

/* Bytes of the arena: upper bound for the numbers of all panels of these runs. */
static size_t ilc_sheet_bytes(int runs, struct opc_ilc_trials *const run[])
{
    size_t sum = 0;
    for (int i = 0; i < runs; i++) {
        /* Error panels: two lines with four arrays each. Others: time, up to four lines, two
         * bounds. */
        const size_t lines = 4, columns = (size_t)(run[i]->n + run[i]->m);
        sum += 8 * opc_arena_need((size_t)run[i]->trials, sizeof(double)) +
               columns * (lines + 1) * opc_arena_need((size_t)run[i]->T + 1, sizeof(double)) +
               columns * 2 * opc_arena_need(1, sizeof(double));
    }
    return sum;
}

/* Starts a panel; add_layer adds to the last one. */
static struct opc_panel *add_panel(struct sheet *sheet, const char *title, const char *x_label,
                                   const char *y_label)
{
    struct opc_panel *p = &sheet->panel[sheet->panels];
    *p = (struct opc_panel){.title = title,
                            .x_label = x_label,
                            .y_label = y_label,
                            .layer = sheet->layer[sheet->panels]};
    sheet->panels++;
    return p;
}

/* Adds a layer to the last panel. */
static void add_layer(struct sheet *sheet, struct opc_figure_layer layer)
{
    struct opc_panel *p = &sheet->panel[sheet->panels - 1];
    sheet->layer[sheet->panels - 1][p->layers++] = layer;
}

/* Adds median and quartiles of v[repeats][trials] over trials. */
static void add_errors(struct sheet *sheet, const struct opc_ilc_trials *trials, const double *v,
                       enum opc_colour colour, int dash, const char *label)
{
    double *x = sheet_numbers(sheet, trials->trials), *y = sheet_numbers(sheet, trials->trials);
    double *low = sheet_numbers(sheet, trials->trials),
           *high = sheet_numbers(sheet, trials->trials);
    for (int i = 0; i < trials->trials; i++) {
        x[i] = i;
        y[i] = over_repeats(trials, v, i, 0.5);
        low[i] = over_repeats(trials, v, i, 0.25);
        high[i] = over_repeats(trials, v, i, 0.75);
    }
    /* A single repeat has no spread to show. */
    if (trials->config.repeats > 1)
        add_layer(sheet, (struct opc_figure_layer){.mark = OPC_PLOT_BAND,
                                                   .colour = (int)colour,
                                                   .n = trials->trials,
                                                   .x = x,
                                                   .low = low,
                                                   .high = high});
    /* A line through the medians, and dots, because trials are counted. */
    add_layer(sheet, (struct opc_figure_layer){.mark = OPC_PLOT_LINE,
                                               .colour = (int)colour,
                                               .dash = dash,
                                               .label = label,
                                               .n = trials->trials,
                                               .x = x,
                                               .y = y});
    add_layer(
        sheet,
        (struct opc_figure_layer){
            .mark = OPC_PLOT_DOTS, .colour = (int)colour, .n = trials->trials, .x = x, .y = y});
}

/* Error over trials; for the stochastic form with and without the filter. */
static void error_panel(struct sheet *sheet, const struct opc_ilc_trials *trials, const char *title)
{
    struct opc_panel *p = add_panel(sheet, title, "trial", "tracking error (RMS)");
    p->log_y = true;
    /* "plain" is the error without the filter, which exists for the stochastic form only. */
    add_errors(sheet, trials, trials->plain ? trials->plain : trials->rms, OPC_COLOUR_OPC, 0,
               "without a filter");
    if (trials->plain)
        add_errors(sheet, trials, trials->rms, OPC_COLOUR_FIRST, 1,
                   "with a Kalman filter over trials");
}

/* Adds column k of v[n][columns] over time. */
static void add_trajectory(struct sheet *sheet, const double *time, const double *v, int n,
                           int columns, int k, int colour, int dash, const char *label)
{
    double *y = sheet_numbers(sheet, n);
    for (int i = 0; i < n; i++)
        y[i] = v[i * columns + k];
    add_layer(sheet, (struct opc_figure_layer){.mark = OPC_PLOT_LINE,
                                               .colour = colour,
                                               .dash = dash,
                                               .label = label,
                                               .n = n,
                                               .x = time,
                                               .y = y});
}

/* A dashed line at the bound of entry k, unless it is infinite. */
static void add_bound(struct sheet *sheet, const struct opc_reals *list, int k)
{
    if (list->n == 0 || isinf(list->at[list->n == 1 ? 0 : k]))
        return;
    double *y = sheet_numbers(sheet, 1);
    *y = list->at[list->n == 1 ? 0 : k];
    add_layer(sheet, (struct opc_figure_layer){.mark = OPC_PLOT_RULE_Y,
                                               .colour = OPC_COLOUR_GREY,
                                               .dash = 2,
                                               .label = "bound",
                                               .y = y});
}

/* Times of the n states or actions of a trial, in seconds. */
static double *time_axis(struct sheet *sheet, const struct opc_ilc_trials *trials, int n)
{
    double *x = sheet_numbers(sheet, n);
    for (int i = 0; i < n; i++)
        x[i] = i * trials->dt;
    return x;
}

enum { FIRST = OPC_COLOUR_FIRST + 1, SECOND = OPC_COLOUR_FIRST + 3 };

/* Adds first, second and last trial of column k of v[trials][n][columns]. */
static void add_trials(struct sheet *sheet, const struct opc_ilc_trials *trials, const double *time,
                       const double *v, int n, int columns, int k)
{
    const size_t apart = (size_t)(n * columns);
    add_trajectory(sheet, time, v, n, columns, k, FIRST, 1, "first trial");
    if (trials->trials > 2)
        add_trajectory(sheet, time, v + apart, n, columns, k, SECOND, 2, "second trial");
    add_trajectory(sheet, time, v + (size_t)(trials->trials - 1) * apart, n, columns, k,
                   OPC_COLOUR_OPC, 0, "last trial");
}

/* One state: bounds, trials without noise, reference. */
static void state_panel(struct sheet *sheet, const struct opc_ilc_trials *trials, int k,
                        const char *title)
{
    add_panel(sheet, title, "time (s)", trials->state_name[k]);
    const double *time = time_axis(sheet, trials, trials->T + 1);
    add_bound(sheet, &trials->config.state_low, k);
    add_bound(sheet, &trials->config.state_high, k);
    add_trials(sheet, trials, time, trials->clean, trials->T + 1, trials->n, k);
    add_trajectory(sheet, time, trials->ref, trials->T + 1, trials->n, k, OPC_COLOUR_TRUE, 3,
                   "reference");
}

/* One action: bounds and trials. */
static void action_panel(struct sheet *sheet, const struct opc_ilc_trials *trials, int k,
                         const char *title)
{
    add_panel(sheet, title, "time (s)", trials->action_name);
    const double *time = time_axis(sheet, trials, trials->T);
    add_bound(sheet, &trials->config.action_low, k);
    add_bound(sheet, &trials->config.action_high, k);
    add_trials(sheet, trials, time, trials->u, trials->T, trials->m, k);
}

/* Draws the panels so far. */
static int draw_sheet(const struct sheet *sheet, const char *part, const char *title,
                      const char *note, int columns, struct opc_exhibit *exhibit,
                      struct opc_err *err)
{
    const struct opc_figure figure = {.title = title,
                                      .note = note,
                                      .panels = sheet->panels,
                                      .columns = columns,
                                      .panel = sheet->panel};
    return opc_exhibit_figure(exhibit, part, title, &figure, err);
}

static const char *const MEDIANS = "stochastic: median and quartiles over repeats; the error is "
                                   "that of the actions on the plant without noise";
static const char *const CLEAN = "stochastic: what the actions of the first repeat do on the plant "
                                 "without noise";

/* One run: error, states and actions in one figure. */
static int draw_one(struct sheet *sheet, const struct opc_ilc_trials *trials,
                    struct opc_exhibit *exhibit, struct opc_err *err)
{
    char title[80];
    snprintf(title, sizeof title, "Norm-optimal ILC, %s", opc_ilc_form_name(trials->config.form));
    error_panel(sheet, trials, "error over trials");
    for (int k = 0; k < trials->n; k++)
        state_panel(sheet, trials, k, NULL);
    for (int k = 0; k < trials->m; k++)
        action_panel(sheet, trials, k, NULL);
    return draw_sheet(sheet, NULL, title, trials->config.repeats > 1 ? MEDIANS : NULL, 2, exhibit,
                      err);
}

/* Index of the first state that has a bound, or 0. */
static int shown_state(const struct opc_ilc_trials *trials)
{
    const struct opc_reals *low = &trials->config.state_low, *high = &trials->config.state_high;
    for (int k = 0; k < trials->n; k++)
        if ((k < low->n && !isinf(low->at[k])) || (k < high->n && !isinf(high->at[k])))
            return k;
    return 0;
}

/* Several runs: a figure each for errors, states and actions, with a panel for each run. */
static int draw_many(struct sheet *sheet, int runs, struct opc_ilc_trials *const run[],
                     struct opc_exhibit *exhibit, struct opc_err *err)
{
    for (int i = 0; i < runs; i++)
        error_panel(sheet, run[i], opc_ilc_form_name(run[i]->config.form));
    int code = draw_sheet(sheet, NULL, "Tracking error of norm-optimal ILC over trials", MEDIANS, 3,
                          exhibit, err);
    /* The panels start again; the arena keeps the numbers of the earlier ones. */
    sheet->panels = 0;
    for (int i = 0; i < runs; i++)
        state_panel(sheet, run[i], shown_state(run[i]), opc_ilc_form_name(run[i]->config.form));
    if (!code)
        code = draw_sheet(sheet, "states", "States of the trials", CLEAN, 3, exhibit, err);
    sheet->panels = 0;
    for (int i = 0; i < runs; i++)
        action_panel(sheet, run[i], 0, opc_ilc_form_name(run[i]->config.form));
    if (!code)
        code = draw_sheet(sheet, "actions", "Actions of the trials", NULL, 3, exhibit, err);
    return code;
}

/* Draws the figures of one run or of several, with a sheet of their own. */
static int draw_all(int runs, struct opc_ilc_trials *const run[], struct opc_exhibit *exhibit,
                    struct opc_err *err)
{
    struct sheet *sheet = opc_alloc(1, sizeof *sheet);
    if (!sheet)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the figure");
    int code = opc_arena_create(ilc_sheet_bytes(runs, run), &sheet->numbers, err);
    if (!code)
        code = runs == 1 ? draw_one(sheet, run[0], exhibit, err)
                         : draw_many(sheet, runs, run, exhibit, err);
    opc_arena_destroy(&sheet->numbers);
    opc_free(sheet);
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
            const struct opc_ilc_trials *trials = run[i];
            /* Median first, then the quartiles, as the columns are named. */
            const double QUARTER[] = {0.5, 0.25, 0.75};
            opc_table_word(table, opc_ilc_form_name(trials->config.form));
            opc_table_int(table, trial);
            for (int q = 0; q < 3; q++)
                opc_table_real(table, opc_ilc_error(trials, trial, QUARTER[q]));
            opc_table_real(table, opc_ilc_error_seen(trials, trial, 0.5));
            for (int q = 0; q < 3; q++)
                opc_table_real(table, trials->plain ? opc_ilc_error_plain(trials, trial, QUARTER[q])
                                                    : (double)NAN);
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
        const struct opc_ilc_trials *trials = run[i];
        for (int trial = 0; trial < trials->trials; trial++)
            for (int step = 0; step <= trials->T; step++)
                /* States, then actions; the last state has no action. */
                for (int k = 0; k < trials->n + (step < trials->T ? trials->m : 0); k++) {
                    const int states = (trials->T + 1) * trials->n, actions = trials->T * trials->m;
                    const int s = trial * states + step * trials->n + k;
                    const double a =
                        k < trials->n
                            ? 0.0
                            : trials->u[trial * actions + step * trials->m + k - trials->n];
                    opc_table_word(table, opc_ilc_form_name(trials->config.form));
                    opc_table_int(table, trial);
                    opc_table_int(table, step);
                    opc_table_real(table, step * trials->dt);
                    opc_table_word(table,
                                   k < trials->n ? trials->state_name[k] : trials->action_name);
                    opc_table_real(table, k < trials->n ? trials->s[s] : a);
                    opc_table_real(table, k < trials->n ? trials->clean[s] : a);
                    opc_table_real(table,
                                   k < trials->n ? trials->ref[step * trials->n + k] : (double)NAN);
                }
    }
    code =
        opc_exhibit_table(exhibit, "trajectories", "states and actions of every trial", table, err);
    opc_table_free(table);
    return code;
}

/* ---- claims ---------------------------------------------------------------------------------- */

/* For claims that are either true or false. */
static enum opc_verdict ilc_verdict(bool yes)
{
    return yes ? OPC_VERDICT_SUPPORTED : OPC_VERDICT_NOT_SUPPORTED;
}

/* The error must fall: in every trial for the linear form, to a quarter for the others. */
static void claim_fall(const struct opc_ilc_trials *trials, struct opc_exhibit *exhibit)
{
    const char *form = opc_ilc_form_name(trials->config.form);
    const int last = trials->trials - 1;
    /* Medians over repeats, on the plant without noise. */
    const double first = opc_ilc_error(trials, 0, 0.5), end = opc_ilc_error(trials, last, 0.5);
    int rises = 0;
    for (int i = 0; i < last; i++)
        rises += opc_ilc_error(trials, i + 1, 0.5) > opc_ilc_error(trials, i, 0.5);
    char claim[200];
    /* The linear form has a guarantee: the error must not rise in any trial. */
    if (trials->config.form == OPC_ILC_LINEAR) {
        snprintf(claim, sizeof claim,
                 "%s: with a model that is moderately wrong the error falls in every trial", form);
        opc_exhibit_claim(exhibit, ilc_verdict(rises == 0 && end < first), claim,
                          "RMS error %.6f in the first trial, %.6f after %d updates; it rose %d "
                          "times",
                          first, end, last, rises);
        return;
    }
    /* The others must reach a quarter of the first error; the wording depends on the form. */
    snprintf(claim, sizeof claim,
             "%s: trials around which a wrong model is used only for its slope end near the "
             "reference",
             form);
    if (trials->config.form == OPC_ILC_LEARNED)
        snprintf(claim, sizeof claim,
                 "%s: the slope of a learned ensemble is good enough to learn a trajectory with",
                 form);
    if (trials->config.form == OPC_ILC_CONSTRAINED)
        snprintf(claim, sizeof claim, "%s: the error falls within bounds, too", form);
    if (trials->config.form == OPC_ILC_STOCHASTIC)
        snprintf(claim, sizeof claim, "%s: the error falls under noise, too", form);
    opc_exhibit_claim(
        exhibit, ilc_verdict(end < 0.25 * first), claim,
        "RMS error %.4g in the first trial, %.4g after %d updates (enough: a quarter)", first, end,
        last);
}

/* Supported if the filter is better in clearly more than half of the repeats. */
static void claim_filter(const struct opc_ilc_trials *trials, struct opc_exhibit *exhibit)
{
    const int last = trials->trials - 1, repeats = trials->config.repeats;
    int better = 0;
    for (int k = 0; k < repeats; k++)
        better += trials->rms[k * trials->trials + last] < trials->plain[k * trials->trials + last];
    const double with = opc_ilc_error(trials, last, 0.5),
                 without = opc_ilc_error_plain(trials, last, 0.5);
    /* A clear majority: more than two standard deviations of a fair coin. */
    const double twice = 2.0 * sqrt(repeats), lead = fabs(2.0 * better - repeats);
    const bool clear = lead > twice;
    char end[OPC_SEEDS_TEXT] = "";
    if (!clear)
        opc_seeds_say(opc_seeds_needed(repeats, 0, twice, lead), repeats, "repeats", NULL, end);
    opc_exhibit_claim(
        exhibit, !clear ? OPC_VERDICT_UNDECIDED : ilc_verdict(2 * better > repeats),
        "stochastic: a Kalman filter over trials tracks better than believing each "
        "trial",
        "median RMS error after %d updates %.4g with the filter, %.4g without; better "
        "in %d of %d repeats%s",
        last, with, without, better, repeats, end);
}

/* All claims about one run. */
static void ilc_claims(const struct opc_ilc_trials *trials, struct opc_exhibit *exhibit)
{
    claim_fall(trials, exhibit);
    /* The two ways to compute an update; eq. 5 is in float, hence the tolerance. */
    if (!isnan(trials->by_opc))
        opc_exhibit_claim(
            exhibit, ilc_verdict(trials->by_opc < 1e-4 * (1.0 + trials->largest)),
            "linear: the update of norm-optimal ILC is that of OPC with a linear model "
            "and the last trial as its only reference",
            "greatest difference of an action %.2g, of actions up to %.3g (eq. 5 is "
            "computed in single precision)",
            trials->by_opc, trials->largest);
    if (trials->plain)
        claim_filter(trials, exhibit);
    /* Optimality conditions of the quadratic programs. */
    if (trials->limited)
        opc_exhibit_claim(exhibit, ilc_verdict(trials->kkt < 1e-8),
                          "constrained: every update is optimal within its bounds",
                          "worst residual of the optimality conditions %.1e; up to %d bounds "
                          "active; in the last trial states were beyond theirs by %.2g",
                          trials->kkt, trials->active, trials->beyond);
    if (trials->config.form == OPC_ILC_LEARNED)
        opc_exhibit_note(exhibit, "learned: mean squared error of the last fit on its holdout %.3g",
                         trials->holdout);
}

int opc_ilc_show(int runs, struct opc_ilc_trials *const run[], struct opc_exhibit *exhibit,
                 struct opc_err *err)
{
    OPC_TRY(draw_all(runs, run, exhibit, err));
    OPC_TRY(error_table(runs, run, exhibit, err));
    OPC_TRY(trajectory_table(runs, run, exhibit, err));
    for (int i = 0; i < runs; i++)
        ilc_claims(run[i], exhibit);
    return OPC_OK;
}
