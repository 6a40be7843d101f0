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
#include "sweep/look.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- numbers computed from the rows ---------------------------------------------------------- */

/* The column of that name; -1 if the run has none. */
static int find_column(const struct opc_sweep_run *run, const char *name)
{
    for (int i = 0; i < run->columns; i++)
        if (strcmp(run->name[i], name) == 0)
            return i;
    return -1;
}

/* NaN if there is no such column, the cell is empty, or it is not a finite number. */
double opc_sweep_run_number(const struct opc_sweep_run *run, int row, int column)
{
    double v;
    if (column < 0)
        return (double)NAN;
    const char *cell = run->cell[(size_t)row * (size_t)run->columns + (size_t)column];
    return opc_parse_real(cell, &v) && isfinite(v) ? v : (double)NAN;
}

int opc_sweep_run_evaluations(const struct opc_sweep_run *run, int *row, double *steps,
                              double *value)
{
    const int x = find_column(run, "env_steps"), y = find_column(run, "eval_return");
    int n = 0;
    /* Each row is written to position n, which advances only if it is an evaluation. That is why
     * the arrays have one element more than rows. */
    for (int i = 0; i < run->rows; i++) {
        steps[n] = opc_sweep_run_number(run, i, x);
        value[n] = opc_sweep_run_number(run, i, y);
        row[n] = i;
        n += !isnan(steps[n]) && !isnan(value[n]);
    }
    return n;
}

int opc_sweep_run_measure_at(const struct opc_sweep_run *run, double at,
                             struct opc_sweep_measure *out, struct opc_err *err)
{
    const size_t rows = (size_t)run->rows + 1;
    double *steps = opc_alloc(rows, sizeof *steps), *value = opc_alloc(rows, sizeof *value);
    int *row = opc_alloc(rows, sizeof *row);
    const int code = steps && value && row ? OPC_OK : opc_sweep_runs_no_memory(err);
    if (!code) {
        const int total = find_column(run, "total_steps");
        int n = opc_sweep_run_evaluations(run, row, steps, value);
        /* Steps grow from row to row, so what lies after `at` is at the end. */
        out->reached = n && steps[n - 1] >= at;
        while (n && steps[n - 1] > at)
            n--;
        out->env_steps = n ? steps[n - 1] : (double)NAN;
        out->total_steps = n ? opc_sweep_run_number(run, row[n - 1], total) : (double)NAN;
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
    const int epoch = find_column(run, "epoch");
    const double last = run->rows ? opc_sweep_run_number(run, run->rows - 1, epoch) : (double)NAN;
    run->epochs = last >= 1 && last < 1e9 ? (int)last : 0;
    return opc_sweep_run_measure_at(run, HUGE_VAL, &run->end, err);
}

bool opc_sweep_run_epochs_ascend(const struct opc_sweep_run *run)
{
    const int epoch = find_column(run, "epoch");
    for (int i = 1; i < run->rows; i++)
        if (opc_sweep_run_number(run, i, epoch) <= opc_sweep_run_number(run, i - 1, epoch))
            return false;
    return true;
}

/* ---- a run's own directory ------------------------------------------------------------------- */

/* Takes the rows that are whole; a damaged line is left out. Cells point into run->table. */
static int take_rows(struct opc_sweep_run *run, struct opc_err *err)
{
    const struct opc_rundir_table *table = &run->table;
    const size_t columns = (size_t)table->columns;
    run->name = table->name;
    run->columns = table->columns;
    run->cell = opc_alloc((size_t)table->rows, columns * sizeof *run->cell);
    if (!run->cell)
        return opc_sweep_runs_no_memory(err);
    for (int row = 0; row < table->rows; row++)
        if (table->cells[row] == table->columns)
            memcpy(run->cell + (size_t)run->rows++ * columns, table->cell + (size_t)row * columns,
                   columns * sizeof *run->cell);
    return OPC_OK;
}

/* Fills in a run from its directory: metrics.csv, meta.json and timing.csv. */
static int read_directory(const char *dir, struct opc_sweep_run *run, struct opc_err *err)
{
    struct opc_rundir_meta meta;
    int epochs;
    OPC_TRY(opc_rundir_table_read(dir, "metrics.csv", &run->table, err));
    OPC_TRY(take_rows(run, err));
    OPC_TRY(opc_sweep_run_measure(run, err));
    OPC_TRY(opc_rundir_meta(dir, &meta, err));
    memcpy(run->version, meta.version, sizeof run->version);
    memcpy(run->revision, meta.revision, sizeof run->revision);
    const double seconds = opc_look_seconds(dir, &epochs);
    run->minutes = epochs > 0 ? seconds / 60 : meta.minutes;
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

void opc_sweep_runs_free(struct opc_sweep_runs *runs)
{
    if (!runs)
        return;
    for (int i = 0; runs->run && i < runs->sweep->tasks; i++) {
        opc_free(runs->run[i].cell);
        opc_rundir_table_free(&runs->run[i].table);
    }
    for (int i = 0; i < OPC_SWEEP_ADDED_MAX; i++) {
        opc_free(runs->from[i].dir);
        opc_free(runs->from[i].name);
        opc_table_free(runs->from[i].merged);
    }
    opc_free(runs->run);
    opc_free(runs);
}
