/* SPDX-License-Identifier: MIT */
/* The runs of a sweep from their own directories, and their scores. sweep_added.c takes over
 * those of earlier merges, sweep_merge.c and sweep_table.c make the tables; `opc sweep FILE
 * merge` calls all of them.
 *
 * Invariant: the score of a run is computed from its rows by opc_sweep_run_measure and nowhere
 * else, so that it does not depend on where the rows came from. */
#include "study/curves/sweep_runs.h"

#include "opc/mem.h"
#include "study/curves/curves.h"
#include "study/curves/sweep_runs_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- numbers computed from the rows ---------------------------------------------------------- */

int opc_sweep_rows_find(const struct opc_sweep_rows *rows, const char *name)
{
    for (int i = 0; i < rows->columns; i++)
        if (strcmp(rows->name[i], name) == 0)
            return i;
    return -1;
}

double opc_sweep_rows_number(const struct opc_sweep_rows *rows, int row, int column)
{
    double v;
    if (column < 0)
        return (double)NAN;
    const char *cell = rows->cell[(size_t)row * (size_t)rows->columns + (size_t)column];
    return opc_parse_real(cell, &v) && isfinite(v) ? v : (double)NAN;
}

int opc_sweep_run_evaluations(const struct opc_sweep_run *run, int *row, double *steps,
                              double *value)
{
    const struct opc_sweep_rows *rows = &run->metrics;
    const int x = opc_sweep_rows_find(rows, "env_steps");
    const int y = opc_sweep_rows_find(rows, "eval_return");
    int n = 0;
    /* Each row is written to position n, which advances only if it is an evaluation. That is why
     * the arrays have one element more than rows. */
    for (int i = 0; i < rows->rows; i++) {
        steps[n] = opc_sweep_rows_number(rows, i, x);
        value[n] = opc_sweep_rows_number(rows, i, y);
        row[n] = i;
        n += !isnan(steps[n]) && !isnan(value[n]);
    }
    return n;
}

int opc_sweep_run_measure_at(const struct opc_sweep_run *run, double at,
                             struct opc_sweep_measure *out, struct opc_err *err)
{
    const size_t rows = (size_t)run->metrics.rows + 1;
    double *steps = opc_alloc(rows, sizeof *steps), *value = opc_alloc(rows, sizeof *value);
    int *row = opc_alloc(rows, sizeof *row);
    const int code = steps && value && row ? OPC_OK : opc_sweep_runs_no_memory(err);
    if (!code) {
        const int total = opc_sweep_rows_find(&run->metrics, "total_steps");
        int n = opc_sweep_run_evaluations(run, row, steps, value);
        /* Steps grow from row to row, so what lies after `at` is at the end. */
        out->reached = n && steps[n - 1] >= at;
        while (n && steps[n - 1] > at)
            n--;
        out->env_steps = n ? steps[n - 1] : (double)NAN;
        out->total_steps =
            n ? opc_sweep_rows_number(&run->metrics, row[n - 1], total) : (double)NAN;
        out->score = opc_curve_end(n, value);
        out->last = n ? value[n - 1] : (double)NAN;
    }
    opc_free(steps);
    opc_free(value);
    opc_free(row);
    return code;
}

int opc_sweep_run_measure(struct opc_sweep_run *run, struct opc_err *err)
{
    /* Rows end with the last epoch; steps and score are those of the last evaluations. */
    const struct opc_sweep_rows *rows = &run->metrics;
    const int epoch = opc_sweep_rows_find(rows, "epoch");
    const double last =
        rows->rows ? opc_sweep_rows_number(rows, rows->rows - 1, epoch) : (double)NAN;
    run->epochs = last >= 1 && last < 1e9 ? (int)last : 0;
    return opc_sweep_run_measure_at(run, HUGE_VAL, &run->end, err);
}

bool opc_sweep_rows_ascend(const struct opc_sweep_rows *rows)
{
    const int epoch = opc_sweep_rows_find(rows, "epoch");
    for (int i = 1; i < rows->rows; i++)
        if (opc_sweep_rows_number(rows, i, epoch) <= opc_sweep_rows_number(rows, i - 1, epoch))
            return false;
    return true;
}

/* ---- a run's own directory ------------------------------------------------------------------- */

int opc_sweep_rows_read(const char *dir, const char *name, struct opc_sweep_rows *out,
                        struct opc_err *err)
{
    struct opc_sweep_rows rows = {0};
    if (opc_rundir_has(dir, name))
        OPC_TRY(opc_rundir_table_read(dir, name, &rows.table, err));
    const struct opc_rundir_table *table = &rows.table;
    const size_t columns = (size_t)table->columns;
    rows.name = table->name;
    rows.columns = table->columns;
    rows.cell = opc_alloc((size_t)table->rows, columns * sizeof *rows.cell);
    if (!rows.cell) {
        opc_sweep_rows_free(&rows);
        return opc_sweep_runs_no_memory(err);
    }
    /* A damaged line is left out. Cells point into the table. */
    for (int row = 0; row < table->rows; row++)
        if (table->cells[row] == table->columns)
            memcpy(rows.cell + (size_t)rows.rows++ * columns, table->cell + (size_t)row * columns,
                   columns * sizeof *rows.cell);
    *out = rows;
    return OPC_OK;
}

void opc_sweep_rows_free(struct opc_sweep_rows *rows)
{
    opc_free(rows->cell);
    opc_rundir_table_free(&rows->table);
    *rows = (struct opc_sweep_rows){0};
}

/* The sum of all epochs, which is the time of all processes that worked on the run: total_s starts
 * from 0 with each of them. NaN: not known. */
static double sum_minutes(const struct opc_sweep_rows *timing)
{
    const int column = opc_sweep_rows_find(timing, "epoch_s");
    double seconds = 0;
    int epochs = 0;
    for (int row = 0; row < timing->rows; row++) {
        const double v = opc_sweep_rows_number(timing, row, column);
        seconds += isnan(v) ? 0 : v;
        epochs += !isnan(v);
    }
    return epochs > 0 ? seconds / 60 : (double)NAN;
}

/* Fills in a run from its directory: metrics.csv, meta.json and timing.csv. */
static int read_directory(const char *dir, struct opc_sweep_run *run, struct opc_err *err)
{
    struct opc_rundir_meta meta;
    OPC_TRY(opc_sweep_rows_read(dir, "metrics.csv", &run->metrics, err));
    OPC_TRY(opc_sweep_rows_read(dir, "timing.csv", &run->timing, err));
    OPC_TRY(opc_sweep_run_measure(run, err));
    OPC_TRY(opc_rundir_meta(dir, &meta, err));
    memcpy(run->version, meta.version, sizeof run->version);
    memcpy(run->revision, meta.revision, sizeof run->revision);
    run->minutes = sum_minutes(&run->timing);
    if (isnan(run->minutes))
        run->minutes = meta.minutes;
    return OPC_OK;
}

int opc_sweep_runs_read(const struct opc_sweep *sweep, char *const *dir, const bool *complete,
                        struct opc_sweep_runs **out, struct opc_err *err)
{
    struct opc_sweep_runs *runs = opc_alloc(1, sizeof *runs);
    if (!runs)
        return opc_sweep_runs_no_memory(err);
    runs->sweep = sweep;
    runs->run = opc_alloc((size_t)sweep->tasks, sizeof *runs->run);
    int code = runs->run ? OPC_OK : opc_sweep_runs_no_memory(err);
    for (int i = 0; i < sweep->tasks && !code; i++) {
        struct opc_sweep_run *run = &runs->run[i];
        run->added = -1;
        run->complete = complete[i];
        if (dir[i] && opc_rundir_has(dir[i], "metrics.csv"))
            code = read_directory(dir[i], run, err);
    }
    if (code)
        opc_sweep_runs_free(runs);
    else
        *out = runs;
    return code;
}

static void free_kept(struct opc_sweep_kept *kept)
{
    opc_free(kept->name);
    opc_table_free(kept->table);
}

void opc_sweep_runs_free(struct opc_sweep_runs *runs)
{
    if (!runs)
        return;
    for (int i = 0; runs->run && i < runs->sweep->tasks; i++) {
        opc_sweep_rows_free(&runs->run[i].metrics);
        opc_sweep_rows_free(&runs->run[i].timing);
    }
    for (int i = 0; i < OPC_SWEEP_ADDED_MAX; i++) {
        opc_free(runs->from[i].dir);
        free_kept(&runs->from[i].merged);
        free_kept(&runs->from[i].timing);
    }
    opc_free(runs->run);
    opc_free(runs);
}
