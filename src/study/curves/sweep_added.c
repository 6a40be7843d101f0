/* SPDX-License-Identifier: MIT */
/* Runs from the tables of an earlier merge (opc sweep FILE merge --add DIR). merged.csv has
 * their rows; runs.csv, which older results lack, has what rows do not contain: minutes, version
 * and commit. Settings that do not vary are in neither, so only task, method and number of
 * epochs can be checked.
 *
 * Invariant: cells of a run that was taken over point into the merged table, which therefore
 * belongs to the runs (opc_sweep_added.merged) from then on, also after a failure. */
#include "base/file.h"
#include "base/log.h"
#include "opc/mem.h"
#include "study/curves/sweep_runs_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A table whose rows belong to runs of the sweep. */
struct source {
    const struct opc_sweep *sweep;
    char path[OPC_PATH];
    struct opc_table *table;
    int *key;     /* [sweep->keys] the column of each varied key */
    int complete; /* index of the column after the varied keys */
    int *task;    /* [rows] index of the run each row belongs to */
};

/* Frees what open_source allocated, also after it failed. */
static void close_source(struct source *source)
{
    opc_table_free(source->table);
    opc_free(source->key);
    opc_free(source->task);
}

/* ---- which run a row is of ------------------------------------------------------------------- */

/* The column of a varied setting, which may have an older name there; -1: there is none. */
static int find_key_column(const struct opc_table *table, const char *key)
{
    char name[OPC_KEY];
    for (int column = 0; column < opc_table_columns(table); column++)
        if (opc_config_key(opc_table_name(table, column), name) && strcmp(name, key) == 0)
            return column;
    return opc_table_find(table, key);
}

/* The varied keys are the columns before `complete`; they must be those of the sweep's file. */
static int find_keys(struct source *source, struct opc_err *err)
{
    const struct opc_sweep *sweep = source->sweep;
    source->complete = opc_table_find(source->table, "complete");
    if (source->complete < 0)
        return opc_fail(err, OPC_EUSER,
                        "%s has no column 'complete', so no sweep was merged into it; --add needs "
                        "a directory that 'opc sweep %s merge' wrote to",
                        source->path, sweep->path);
    /* Every key of the file must be in the table ... */
    for (int k = 0; k < sweep->keys; k++) {
        source->key[k] = find_key_column(source->table, sweep->vary[k].key);
        if (source->key[k] < 0 || source->key[k] > source->complete)
            return opc_fail(err, OPC_EUSER,
                            "%s does not tell the runs of %s apart: it has no varied column '%s'; "
                            "merge it with the file it was made with",
                            source->path, sweep->path, sweep->vary[k].key);
    }
    /* ... and every key of the table in the file. */
    for (int column = 0; column < source->complete; column++) {
        bool known = false;
        for (int k = 0; k < sweep->keys; k++)
            known = known || source->key[k] == column;
        if (!known)
            return opc_fail(err, OPC_EUSER,
                            "%s varies %s, which %s does not; merge it with the file it was made "
                            "with, or vary %s in %s, too",
                            source->path, opc_table_name(source->table, column), sweep->path,
                            opc_table_name(source->table, column), sweep->path);
    }
    return OPC_OK;
}

/* Whether the row has the varied values of this task. */
static bool is_of_task(const struct source *source, int row, const struct opc_task *task)
{
    for (int k = 0; k < source->sweep->keys; k++)
        if (strcmp(opc_table_cell(source->table, row, source->key[k]),
                   opc_task_value(source->sweep, task, k)) != 0)
            return false;
    return true;
}

/* Refuses a row that is not of a run of the sweep; the message has its values. */
static int refuse_row(const struct source *source, int row, struct opc_err *err)
{
    struct opc_text values = {0};
    for (int k = 0; k < source->sweep->keys; k++)
        opc_text_addf(&values, "%s%s = %s", k ? ", " : "", source->sweep->vary[k].key,
                      opc_table_cell(source->table, row, source->key[k]));
    const int code =
        opc_fail(err, OPC_EUSER,
                 "%s:%d: %.150s is no run of %s; use the file and tier it was made with, or add "
                 "the values to 'vary'",
                 source->path, row + 2, opc_text_get(&values), source->sweep->path);
    opc_text_free(&values);
    return code;
}

/* Finds the run of each row. A row without one is an error, otherwise it would be lost silently. */
static int find_tasks(struct source *source, struct opc_err *err)
{
    for (int row = 0; row < opc_table_rows(source->table); row++) {
        int task = row ? source->task[row - 1] : 0; /* rows of a run are neighbours, usually */
        if (!is_of_task(source, row, &source->sweep->task[task]))
            for (task = 0; task < source->sweep->tasks; task++)
                if (is_of_task(source, row, &source->sweep->task[task]))
                    break;
        if (task == source->sweep->tasks)
            return refuse_row(source, row, err);
        source->task[row] = task;
    }
    return OPC_OK;
}

/* Reads source->path; close_source also frees what a failure leaves. */
static int open_source(struct source *source, struct opc_err *err)
{
    const int code = opc_table_read(source->path, &source->table, err);
    if (code)
        return code;
    source->key = opc_alloc((size_t)source->sweep->keys + 1, sizeof *source->key);
    source->task = opc_alloc((size_t)opc_table_rows(source->table) + 1, sizeof *source->task);
    if (!source->key || !source->task)
        return opc_sweep_runs_no_memory(err);
    const int keys = find_keys(source, err);
    return keys ? keys : find_tasks(source, err);
}

/* ---- runs.csv -------------------------------------------------------------------------------- */

/* "" if the table has no such column. */
static const char *cell_or_empty(const struct source *source, int row, const char *column)
{
    const int at = opc_table_find(source->table, column);
    return at < 0 ? "" : opc_table_cell(source->table, row, at);
}

/* Task and method in the table must be those of the sweep's file; an empty cell says nothing. */
static int check_word(const struct source *source, int row, const char *column, const char *want,
                      struct opc_err *err)
{
    const char *is = cell_or_empty(source, row, column);
    if (!*is || strcmp(is, want) == 0)
        return OPC_OK;
    return opc_fail(err, OPC_EUSER,
                    "%s:%d: its %s is %.60s, but in %s the run %s has %.60s; use the file and tier "
                    "it was made with",
                    source->path, row + 2, column, is, source->sweep->path,
                    source->sweep->task[source->task[row]].name, want);
}

/* Adds minutes, version and commit from runs.csv to the runs in `found`; it may be missing. */
static int read_list(const struct opc_sweep *sweep, const char *dir, struct opc_sweep_run *found,
                     struct opc_err *err)
{
    struct source source = {.sweep = sweep};
    int code = opc_path_join(source.path, dir, "runs.csv", err);
    if (code || !opc_file_exists(source.path))
        return code;
    code = open_source(&source, err);
    for (int row = 0; !code && row < opc_table_rows(source.table); row++) {
        const struct opc_task *task = &sweep->task[source.task[row]];
        struct opc_sweep_run *run = &found[source.task[row]];
        code = check_word(&source, row, "task", task->set.env.name, err);
        if (!code)
            code = check_word(&source, row, "method", opc_method_label(&task->set), err);
        /* A cell that is not a number leaves NaN: not known. */
        run->minutes = (double)NAN;
        (void)opc_parse_real(cell_or_empty(&source, row, "minutes"), &run->minutes);
        snprintf(run->version, sizeof run->version, "%s", cell_or_empty(&source, row, "version"));
        snprintf(run->revision, sizeof run->revision, "%s",
                 cell_or_empty(&source, row, "revision"));
    }
    close_source(&source);
    return code;
}

/* ---- merged.csv ------------------------------------------------------------------------------ */

/* Gives each run in `found` its rows. */
static int take_rows(const struct source *source, const struct opc_sweep_added *from,
                     struct opc_sweep_run *found, struct opc_err *err)
{
    const int rows = opc_table_rows(source->table);
    /* Count the rows of each run to size its cells, then start again at 0 while filling them. */
    for (int row = 0; row < rows; row++)
        found[source->task[row]].rows++;
    for (int i = 0; i < source->sweep->tasks; i++) {
        struct opc_sweep_run *r = &found[i];
        r->minutes = (double)NAN;
        r->name = from->name;
        r->columns = from->columns;
        r->complete = true;
        r->cell = opc_alloc((size_t)r->rows + 1, ((size_t)r->columns + 1) * sizeof *r->cell);
        if (!r->cell)
            return opc_sweep_runs_no_memory(err);
        r->rows = 0;
    }
    for (int row = 0; row < rows; row++) {
        struct opc_sweep_run *r = &found[source->task[row]];
        const char **cell = r->cell + (size_t)r->rows++ * (size_t)r->columns;
        /* A run is complete if all of its rows say so. */
        r->complete =
            r->complete && strcmp(opc_table_cell(source->table, row, source->complete), "1") == 0;
        for (int i = 0; i < r->columns; i++)
            cell[i] = opc_table_cell(source->table, row, source->complete + 1 + i);
    }
    return OPC_OK;
}

/* Measures a run and compares its epochs with train.epochs of the sweep's file. With fewer it
 * counts as incomplete, like a run directory with fewer would. */
static int check_run(const struct source *source, int i, struct opc_sweep_run *run,
                     struct opc_err *err)
{
    const struct opc_task *task = &source->sweep->task[i];
    const int want = task->set.train.epochs, code = opc_sweep_run_measure(run, err);
    if (code)
        return code;
    if (!opc_sweep_run_epochs_ascend(run))
        return opc_fail(err, OPC_EDAMAGED,
                        "%s: the epochs of %s do not ascend; each may be there once only",
                        source->path, task->name);
    if (run->epochs > want)
        return opc_fail(err, OPC_EUSER,
                        "%s: %s has %d epochs, but train.epochs is %d in %s; use the file and tier "
                        "it was made with, or train.epochs=%d",
                        source->path, task->name, run->epochs, want, source->sweep->path,
                        run->epochs);
    if (run->complete && run->epochs && run->epochs < want) {
        opc_log(OPC_LEVEL_WARN, "%s: %s has %d of %d epochs and counts as incomplete", source->path,
                task->name, run->epochs, want);
        run->complete = false;
    }
    return OPC_OK;
}

/* ---- which of two versions of a run is used -------------------------------------------------- */

/* Whether both runs have the same evaluations. */
static int compare_evaluations(const struct opc_sweep_run *a, const struct opc_sweep_run *b,
                               bool *same, struct opc_err *err)
{
    const size_t capacity = (size_t)(a->rows > b->rows ? a->rows : b->rows) + 1;
    double *number = opc_alloc(4 * capacity, sizeof *number);
    int *row = opc_alloc(capacity, sizeof *row);
    const int code = number && row ? OPC_OK : opc_sweep_runs_no_memory(err);
    if (!code) {
        /* One block for steps and returns of both runs. */
        double *x = number, *y = x + capacity, *u = y + capacity, *v = u + capacity;
        const int n = opc_sweep_run_evaluations(a, row, x, y);
        *same = opc_sweep_run_evaluations(b, row, u, v) == n;
        for (int i = 0; i < n && *same; i++)
            *same = x[i] == u[i] && y[i] == v[i];
    }
    opc_free(number);
    opc_free(row);
    return code;
}

/* Run i is complete here and in `dir`. A difference means other settings or another program. */
static int warn_if_different(const struct opc_sweep_runs *runs, int i, const char *dir,
                             const struct opc_sweep_run *found, struct opc_err *err)
{
    const struct opc_sweep_run *used = &runs->run[i];
    char here[OPC_PRINTED], there[OPC_PRINTED];
    bool same = true;
    const int code = compare_evaluations(used, found, &same, err);
    if (!code && !same)
        opc_log(OPC_LEVEL_WARN,
                "%s: its evaluations in %s are others (score %s); those of %s are used "
                "(score %s)",
                runs->sweep->task[i].name, dir, opc_print_fixed(found->end.score, 2, there),
                used->added < 0 ? "its own directory" : runs->from[used->added].dir,
                opc_print_fixed(used->end.score, 2, here));
    return code;
}

/* `found` replaces the run that is known so far if it has more: rows where there were none, or a
 * complete run where there was an incomplete one. */
static int choose_run(struct opc_sweep_runs *runs, int i, struct opc_sweep_run *found,
                      struct opc_err *err)
{
    struct opc_sweep_run *used = &runs->run[i];
    if (!found->rows)
        return OPC_OK;
    if (used->rows && used->complete && found->complete)
        return warn_if_different(runs, i, runs->from[runs->added].dir, found, err);
    if (used->rows && (used->complete || !found->complete))
        return OPC_OK;
    opc_free(used->cell);
    found->table = used->table; /* stays with the run, which frees it */
    found->added = runs->added;
    *used = *found;
    found->cell = NULL;
    return OPC_OK;
}

/* ---------------------------------------------------------------------------------------------- */

/* Takes names and columns over to `from`. The cells of its runs live as long as `from` does. */
static int keep_columns(struct source *source, const char *dir, struct opc_sweep_added *from,
                        struct opc_err *err)
{
    from->columns = opc_table_columns(source->table) - source->complete - 1;
    from->dir = opc_strdup(dir);
    from->name = opc_alloc((size_t)from->columns + 1, sizeof *from->name);
    if (!from->dir || !from->name)
        return opc_sweep_runs_no_memory(err);
    for (int i = 0; i < from->columns; i++)
        from->name[i] = opc_table_name(source->table, source->complete + 1 + i);
    return OPC_OK;
}

int opc_sweep_runs_add(struct opc_sweep_runs *runs, const char *dir, struct opc_err *err)
{
    /* Read merged.csv, form runs of it, check them, add runs.csv, and then choose run by run. */
    const int tasks = runs->sweep->tasks;
    struct source source = {.sweep = runs->sweep};
    struct opc_sweep_run *found = NULL;
    if (runs->added == OPC_SWEEP_ADDED_MAX)
        return opc_fail(err, OPC_EUSER, "%s is one directory too many: at most %d can be added",
                        dir, OPC_SWEEP_ADDED_MAX);
    struct opc_sweep_added *from = &runs->from[runs->added];
    int code = opc_path_join(source.path, dir, "merged.csv", err);
    if (!code && !opc_file_exists(source.path))
        code =
            opc_fail(err, OPC_EUSER,
                     "there is no %s; --add needs a directory that 'opc sweep %s merge' wrote to",
                     source.path, runs->sweep->path);
    if (!code)
        code = open_source(&source, err);
    if (!code)
        code = keep_columns(&source, dir, from, err);
    if (!code && !(found = opc_alloc((size_t)tasks, sizeof *found)))
        code = opc_sweep_runs_no_memory(err);
    if (!code)
        code = take_rows(&source, from, found, err);
    for (int i = 0; i < tasks && !code; i++)
        code = check_run(&source, i, &found[i], err);
    if (!code)
        code = read_list(runs->sweep, dir, found, err);
    for (int i = 0; i < tasks && !code; i++)
        code = choose_run(runs, i, &found[i], err);
    /* Also after a failure: runs that are taken over by then point into the table. */
    from->merged = source.table;
    source.table = NULL;
    runs->added += !code;
    for (int i = 0; found && i < tasks; i++)
        opc_free(found[i].cell);
    opc_free(found);
    close_source(&source);
    return code;
}
