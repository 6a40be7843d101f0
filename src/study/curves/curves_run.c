/* SPDX-License-Identifier: MIT */
/* One run: settings from its config.yaml and curve from its metrics.csv (over minutes also from its
 * timing.csv), or both from its rows in the tables of a merge. curves_find.c calls it for each run
 * that it finds, learning_scores.c for the names of runs that are absent.
 *
 * Invariant: scores are those of the raw values, whatever is smoothed for drawing; and what tables
 * do not tell is an empty line in `rest`, never the default of the setting. */
#include "num/stats.h"
#include "opc/mem.h"
#include "opc/train.h"
#include "run/files/rundir.h"
#include "study/curves/curves_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAST = 5 }; /* evaluations that make the score */

/* ---- the curve ------------------------------------------------------------------------------- */

double opc_curve_end(int n, const double *value)
{
    const int from = n > LAST ? n - LAST : 0;
    return n ? opc_mean(n - from, value + from) : (double)NAN;
}

double opc_curve_score(const struct opc_curve_run *run, double x)
{
    double last[LAST];
    int n = 0;
    if (x >= HUGE_VAL)
        return run->end;
    for (int i = run->n - 1; i >= 0 && n < LAST; i--)
        if (run->x[i] <= x && run->x[i] > 0.75 * x)
            last[n++] = run->raw[i];
    return opc_curve_end(n, last);
}

/* Best and final value, of the raw data. */
static void measure_end(struct opc_curve_run *run)
{
    run->best = run->n ? run->raw[0] : (double)NAN;
    for (int i = 0; i < run->n; i++)
        run->best = fmax(run->best, run->raw[i]);
    run->end = opc_curve_end(run->n, run->raw);
}

/* Room for the curve of a run with so many rows. */
static int allocate_curve(struct opc_curve_run *run, int rows, struct opc_err *err)
{
    run->raw = opc_alloc((size_t)rows, sizeof *run->raw);
    run->x = opc_alloc((size_t)rows, sizeof *run->x);
    run->y = opc_alloc((size_t)rows, sizeof *run->y);
    return run->raw && run->x && run->y ? OPC_OK : opc_curves_no_memory(err);
}

/* Appends a row. One that lacks one of the two values is left out: not every epoch is evaluated. */
static void add_point(struct opc_curve_run *run, double over, double of)
{
    if (isnan(over) || isnan(of))
        return;
    run->x[run->n] = over;
    run->raw[run->n++] = of;
}

/* What follows from the points, which are made of so many rows. */
static void finish_curve(struct opc_curve_run *run, const struct opc_curves_plan *plan,
                         const struct opc_curves_clock *clock, int rows)
{
    run->untimed = opc_curves_over_minutes(plan) && rows > 0 && clock->known == 0;
    /* Epochs and steps ascend, but any column may be x; value_at then searches linearly. */
    run->ascending = true;
    for (int i = 1; i < run->n; i++)
        run->ascending = run->ascending && run->x[i - 1] <= run->x[i];
    /* Smoothing is for drawing only; scores are those of the raw values. */
    opc_smooth(run->n, run->raw, plan->smooth, run->y);
    measure_end(run);
}

const char *opc_curves_column(const char *of, bool corrected, char name[64])
{
    const size_t n = strlen(OPC_CURVES_ERROR);
    if (strncmp(of, OPC_CURVES_ERROR, n) != 0)
        return of;
    snprintf(name, 64, "%s_%s", corrected ? "corrected" : "learned", of + n);
    return name;
}

/* The column that the x of a row is found by: over minutes, its epoch. */
static const char *x_column(const struct opc_curves_plan *plan)
{
    return opc_curves_over_minutes(plan) ? "epoch" : plan->over;
}

/* Reads two columns of metrics.csv and smooths the curve. */
static int read_table(struct opc_curve_run *run, const struct opc_curves_plan *plan,
                      struct opc_err *err)
{
    struct opc_rundir_table table;
    struct opc_sweep_rows timing = {0};
    char name[64];
    int x = 0, y = 0;
    int code = opc_rundir_table_read(run->dir, "metrics.csv", &table, err);
    if (code)
        return code;
    /* Both columns must exist, or the error names the ones there are. */
    code = opc_rundir_table_find(&table, x_column(plan), &x, err);
    if (!code)
        code = opc_rundir_table_find(&table, opc_curves_column(plan->of, run->corrected, name), &y,
                                     err);
    if (!code && opc_curves_over_minutes(plan))
        code = opc_sweep_rows_read(run->dir, "timing.csv", &timing, err);
    if (!code)
        code = allocate_curve(run, table.rows, err);
    struct opc_curves_clock clock = opc_curves_clock_of(&timing);
    for (int row = 0; row < table.rows && !code; row++) {
        const double at = opc_rundir_table_number(&table, row, x);
        add_point(run, opc_curves_over_minutes(plan) ? opc_curves_minutes(&clock, at) : at,
                  opc_rundir_table_number(&table, row, y));
    }
    if (!code)
        finish_curve(run, plan, &clock, table.rows);
    opc_sweep_rows_free(&timing);
    opc_rundir_table_free(&table);
    return code;
}

/* The same of the rows that run i has in the tables of a merge. */
static int read_rows(struct opc_curve_run *run, const struct opc_sweep_tables *tables, int i,
                     const struct opc_curves_plan *plan, struct opc_err *err)
{
    const struct opc_sweep_rows *from = &tables->runs->run[i].metrics;
    struct opc_curves_clock clock = opc_curves_clock_of(&tables->runs->run[i].timing);
    char name[64];
    int x, y;
    const char *of = opc_curves_column(plan->of, run->corrected, name);
    if (of == name && !tables->method[i] && !opc_sweep_tables_know(tables, i, "opc.transition"))
        return opc_fail(err, OPC_EUSER,
                        "%s does not tell by which equation a run imagines, so '%s' is not known; "
                        "name a column such as learned_1 or corrected_1",
                        tables->path, plan->of);
    OPC_TRY(opc_sweep_tables_find(tables, i, x_column(plan), &x, err));
    OPC_TRY(opc_sweep_tables_find(tables, i, of, &y, err));
    OPC_TRY(allocate_curve(run, from->rows, err));
    for (int row = 0; row < from->rows; row++) {
        const double at = opc_sweep_rows_number(from, row, x);
        add_point(run, opc_curves_over_minutes(plan) ? opc_curves_minutes(&clock, at) : at,
                  opc_sweep_rows_number(from, row, y));
    }
    finish_curve(run, plan, &clock, from->rows);
    return OPC_OK;
}

/* ---- settings -------------------------------------------------------------------------------- */

/* All settings as lines "section.name: value", without seed, number of epochs and environment,
 * which do not distinguish groups. Of a run in tables the lines of what they do not tell are empty,
 * and the first one names their directory: such a run may differ from all others in any of these.
 */
static int print_rest(const struct opc_config *config, const struct opc_curves_origin *from,
                      char **out, struct opc_err *err)
{
    struct opc_values values = config->set; /* parts are not const */
    struct opc_part part[OPC_PARTS_MAX];
    struct opc_text rest = {0};
    const int parts = opc_config_parts(&values, part);
    opc_text_addf(&rest, "%s\n", from ? from->dir : "");
    for (int i = 0; i < parts; i++)
        for (int k = 0; k < part[i].section->n; k++) {
            const struct opc_field *field = &part[i].section->fields[k];
            char key[OPC_KEY];
            const char *at = (const char *)part[i].values + field->offset;
            if (at == (const char *)&values.train.seed ||
                at == (const char *)&values.train.epochs || part[i].values == (void *)&values.env ||
                !opc_config_counts(part[i].section, field))
                continue;
            snprintf(key, sizeof key, "%s.%s", part[i].section->name, field->name);
            if (!from || opc_sweep_tables_know(from->tables, from->i, key) ||
                at == (const char *)&values.opc.transition) {
                opc_text_addf(&rest, "%s: ", key);
                opc_field_print(field, part[i].values, &rest);
            }
            opc_text_add(&rest, "\n");
        }
    const int code = opc_text_check(&rest, err);
    if (code)
        opc_text_free(&rest);
    else
        *out = rest.at;
    return code;
}

/* Name and colour of the method. An agent other than SAC is a method of its own. */
static int read_method(struct opc_curve_run *run, const struct opc_config *config,
                       struct opc_err *err)
{
    const struct opc_values *v = &config->set;
    run->method = opc_strdup(v->train.agent ? opc_agent_of(v)->name : opc_transition_of(v)->name);
    run->method_name = opc_method_label(v);
    run->colour = opc_method_colour(v);
    run->corrected = strcmp(opc_transition_of(v)->name, "corrected") == 0;
    return run->method ? OPC_OK : opc_curves_no_memory(err);
}

/* Method, panel, title, seed, and what distinguishes the run's line. */
static int take_settings(struct opc_curve_run *run, const struct opc_config *config,
                         const struct opc_curves_origin *from, const struct opc_curves_plan *plan,
                         struct opc_err *err)
{
    static const char *const TASK = "env.name";
    /* Without keys the task is the panel and all other settings distinguish lines. */
    const bool found = plan->panel_keys + plan->line_keys == 0;
    const int keys = found ? 1 : plan->panel_keys;
    const char *const *key = found ? &TASK : plan->panel_key;
    char *seed;
    int code = read_method(run, config, err);
    if (from && !from->tables->method[from->i]) {
        run->method_name = "method not known";
        run->colour = 0;
    }
    if (!code)
        code = found ? print_rest(config, from, &run->rest, err)
                     : opc_curves_print_values(config, plan->line_keys, plan->line_key, "\n", NULL,
                                               &run->rest, err);
    if (!code)
        code = opc_curves_print_values(config, keys, key, "+", NULL, &run->panel, err);
    if (!code)
        code = opc_curves_print_values(config, keys, key, ", ", run, &run->title, err);
    if (!code && !(code = opc_config_get(config, "train.seed", &seed, err))) {
        run->seed = atoi(seed);
        opc_free(seed);
    }
    return code;
}

/* Those of config.yaml, if the run is wanted. */
static int read_settings(struct opc_curves_reading *reading, struct opc_curve_run *run,
                         bool *wanted, struct opc_err *err)
{
    struct opc_config *config;
    OPC_TRY(opc_config_of_run(run->dir, &config, err));
    int code = opc_curves_only_meets(reading, &config->set, NULL, run->dir, wanted, err);
    if (!code && *wanted)
        code = take_settings(run, config, NULL, reading->plan, err);
    run->identity = opc_config_hash(&config->set);
    opc_config_destroy(config);
    return code;
}

/* ---------------------------------------------------------------------------------------------- */

int opc_curves_run_read(struct opc_curves_reading *reading, struct opc_curve_run *run, bool *wanted,
                        struct opc_err *err)
{
    OPC_TRY(read_settings(reading, run, wanted, err));
    return *wanted ? read_table(run, reading->plan, err) : OPC_OK;
}

int opc_curves_run_take(struct opc_curves_reading *reading, struct opc_curve_run *run,
                        const struct opc_curves_origin *from, bool *wanted, struct opc_err *err)
{
    const struct opc_task *task = &from->tables->sweep->task[from->i];
    struct opc_config *config;
    OPC_TRY(opc_curves_only_meets(reading, &task->set, from, run->dir, wanted, err));
    if (!*wanted)
        return OPC_OK;
    OPC_TRY(opc_config_create(&config, err));
    config->set = task->set;
    int code = take_settings(run, config, from, reading->plan, err);
    opc_config_destroy(config);
    if (!code)
        code = read_rows(run, from->tables, from->i, reading->plan, err);
    return code;
}

int opc_curves_run_name(const struct opc_values *set, const struct opc_curves_plan *plan,
                        struct opc_curve_run *run, struct opc_err *err)
{
    struct opc_config *config;
    OPC_TRY(opc_config_create(&config, err));
    config->set = *set;
    const int code = take_settings(run, config, NULL, plan, err);
    opc_config_destroy(config);
    return code;
}

void opc_curves_run_free(struct opc_curve_run *run)
{
    opc_free(run->dir);
    opc_free(run->panel);
    opc_free(run->title);
    opc_free(run->method);
    opc_free(run->raw);
    opc_free(run->rest);
    opc_free(run->x);
    opc_free(run->y);
    *run = (struct opc_curve_run){0};
}
