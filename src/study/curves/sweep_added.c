/* SPDX-License-Identifier: MIT */
/* Runs from the tables of an earlier merge (opc sweep FILE merge --add DIR). merged.csv has
 * their metrics. Two tables that older results lack have what metrics do not contain: timing.csv
 * what epochs cost; runs.csv minutes, version, commit, and the identity of the settings. By its
 * identity a run is found whichever file it was
 * made with, so figures share runs of which only tables were kept. Tables without identities have
 * to be of the sweep's own file: only the varied values, task, method and number of epochs can be
 * checked.
 *
 * Invariant: cells of a run that was taken over point into the tables, which therefore belong to
 * the runs (opc_sweep_added) from then on, also after a failure. */
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
    int *task;    /* [rows] index of the run each row belongs to; -1: it is not of the sweep */
};

/* The tables of a directory. Only merged.csv is always there; the others have no table then. */
struct sources {
    struct source merged, list, timing; /* list: runs.csv */
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

/* The columns before `complete` are the varied keys. */
static int find_complete(struct source *source, struct opc_err *err)
{
    source->complete = opc_table_find(source->table, "complete");
    if (source->complete >= 0)
        return OPC_OK;
    return opc_fail(err, OPC_EUSER,
                    "%s has no column 'complete', so no sweep was merged into it; --add needs "
                    "a directory that 'opc sweep %s merge' wrote to",
                    source->path, source->sweep->path);
}

/* The varied keys must be those of the sweep's file. */
static int find_keys(struct source *source, struct opc_err *err)
{
    const struct opc_sweep *sweep = source->sweep;
    /* Every key of the file must be in the table ... */
    for (int k = 0; k < sweep->keys; k++) {
        source->key[k] = find_key_column(source->table, sweep->vary[k].key);
        if (source->key[k] < 0 || source->key[k] > source->complete)
            return opc_fail(err, OPC_EUSER,
                            "%s has no runs of %s, or does not tell them apart: it has no varied "
                            "column '%s'; leave it out, or merge it with the file it was made with",
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

/* The run of each row by the values that vary. */
static int match_values(struct source *source, struct opc_err *err)
{
    OPC_TRY(find_keys(source, err));
    return find_tasks(source, err);
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
    return find_complete(source, err);
}

/* ---- which run a row is of, by the identity of its settings ---------------------------------- */

void opc_sweep_identity(const struct opc_values *set, char out[OPC_SWEEP_IDENTITY])
{
    snprintf(out, OPC_SWEEP_IDENTITY, "0x%08x", (unsigned)opc_config_hash(set));
}

bool opc_sweep_list_has_identities(const struct opc_table *list)
{
    const int column = opc_table_find(list, "settings");
    for (int row = 0; column >= 0 && row < opc_table_rows(list); row++)
        if (!*opc_table_cell(list, row, column))
            return false;
    return column >= 0;
}

/* How well a row of runs.csv fits a run with the same identity, which says nothing of the number
 * of epochs. 0: not at all, it has more. */
static int rate_match(const struct source *list, int row, const struct opc_task *task,
                      bool same_keys)
{
    const int column = opc_table_find(list->table, "epochs");
    double epochs = 0;
    if (column >= 0)
        (void)opc_parse_real(opc_table_cell(list->table, row, column), &epochs);
    if (epochs > task->set.train.epochs)
        return 0;
    if (same_keys && is_of_task(list, row, task))
        return 3;
    return epochs == task->set.train.epochs ? 2 : 1;
}

/* Finds the run of each row of runs.csv. */
static int match_list(struct source *list, struct opc_err *err)
{
    const struct opc_sweep *sweep = list->sweep;
    const int column = opc_table_find(list->table, "settings");
    const bool same_keys = find_keys(list, NULL) == OPC_OK;
    char(*identity)[OPC_SWEEP_IDENTITY] = opc_alloc((size_t)sweep->tasks + 1, sizeof *identity);
    if (!identity)
        return opc_sweep_runs_no_memory(err);
    for (int i = 0; i < sweep->tasks; i++)
        opc_sweep_identity(&sweep->task[i].set, identity[i]);
    for (int row = 0; row < opc_table_rows(list->table); row++) {
        list->task[row] = -1;
        for (int i = 0, best = 0; i < sweep->tasks; i++) {
            if (strcmp(opc_table_cell(list->table, row, column), identity[i]) != 0)
                continue;
            const int match = rate_match(list, row, &sweep->task[i], same_keys);
            if (match > best) {
                best = match;
                list->task[row] = i;
            }
        }
    }
    opc_free(identity);
    return OPC_OK;
}

/* Whether a row of a table and one of runs.csv have the same varied values. */
static bool same_values(const struct source *source, int row, const struct source *list, int run)
{
    for (int k = 0; k < source->complete; k++)
        if (strcmp(opc_table_cell(source->table, row, k), opc_table_cell(list->table, run, k)) != 0)
            return false;
    return true;
}

/* Finds the run of each row of merged.csv or timing.csv by way of runs.csv. spare: the table of the
 * two that can be done without, for the message. */
static int match_rows(struct source *source, const struct source *list, const char *spare,
                      struct opc_err *err)
{
    bool alike = source->complete == list->complete;
    for (int k = 0; k < source->complete && alike; k++)
        alike = strcmp(opc_table_name(source->table, k), opc_table_name(list->table, k)) == 0;
    const int runs = opc_table_rows(list->table);
    int run = 0;
    for (int row = 0; row < opc_table_rows(source->table); row++) {
        if (alike && (run == runs || !same_values(source, row, list, run)))
            for (run = 0; run < runs && !same_values(source, row, list, run); run++) {
            }
        if (!alike || run == runs)
            return opc_fail(err, OPC_EDAMAGED,
                            "%s:%d: %s has no row for this run; merge both again from the run "
                            "directories, or remove %s",
                            source->path, row + 2, list->path, spare);
        source->task[row] = list->task[run];
    }
    return OPC_OK;
}

/* The run of each row by the identities in runs.csv. *shared: how many runs the sweep has of these
 * tables. */
static int match_settings(struct sources *from, int *shared, struct opc_err *err)
{
    struct source *list = &from->list;
    *shared = 0;
    OPC_TRY(match_list(list, err));
    OPC_TRY(match_rows(&from->merged, list, list->path, err));
    if (from->timing.table)
        OPC_TRY(match_rows(&from->timing, list, from->timing.path, err));
    for (int row = 0; row < opc_table_rows(list->table); row++)
        *shared += list->task[row] >= 0;
    return OPC_OK;
}

/* Says why tables whose identities are none of the sweep's will not do. */
static int refuse_settings(struct source *merged, struct opc_err *err)
{
    /* Other keys or values are the clearest reason. */
    OPC_TRY(match_values(merged, err));
    return opc_fail(err, OPC_EUSER,
                    "%s has no run with the settings and at most the epochs of those of %s; use "
                    "the file and tier it was made with",
                    merged->path, merged->sweep->path);
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

/* Adds minutes, version and commit from runs.csv to the runs in `found`. */
static int read_list(const struct source *list, struct opc_sweep_run *found, struct opc_err *err)
{
    const struct opc_sweep *sweep = list->sweep;
    int code = OPC_OK;
    for (int row = 0; !code && row < opc_table_rows(list->table); row++) {
        if (list->task[row] < 0)
            continue;
        const struct opc_task *task = &sweep->task[list->task[row]];
        struct opc_sweep_run *run = &found[list->task[row]];
        code = check_word(list, row, "task", task->set.env.name, err);
        if (!code)
            code = check_word(list, row, "method", opc_method_label(&task->set), err);
        /* A cell that is not a number leaves NaN: not known. */
        run->minutes = (double)NAN;
        (void)opc_parse_real(cell_or_empty(list, row, "minutes"), &run->minutes);
        snprintf(run->version, sizeof run->version, "%s", cell_or_empty(list, row, "version"));
        snprintf(run->revision, sizeof run->revision, "%s", cell_or_empty(list, row, "revision"));
    }
    return code;
}

/* ---- merged.csv and timing.csv --------------------------------------------------------------- */

static struct opc_sweep_rows *rows_of(struct opc_sweep_run *run, bool timing)
{
    return timing ? &run->timing : &run->metrics;
}

/* Gives each run in `found` its rows of the table. */
static int take_rows(const struct source *source, const struct opc_sweep_kept *from, bool timing,
                     struct opc_sweep_run *found, struct opc_err *err)
{
    const int rows = opc_table_rows(source->table);
    /* Count the rows of each run to size its cells, then start again at 0 while filling them. */
    for (int row = 0; row < rows; row++)
        if (source->task[row] >= 0)
            rows_of(&found[source->task[row]], timing)->rows++;
    for (int i = 0; i < source->sweep->tasks; i++) {
        struct opc_sweep_rows *r = rows_of(&found[i], timing);
        r->name = from->name;
        r->columns = from->columns;
        r->cell = opc_alloc((size_t)r->rows + 1, ((size_t)r->columns + 1) * sizeof *r->cell);
        if (!r->cell)
            return opc_sweep_runs_no_memory(err);
        r->rows = 0;
    }
    for (int row = 0; row < rows; row++) {
        if (source->task[row] < 0)
            continue;
        struct opc_sweep_rows *r = rows_of(&found[source->task[row]], timing);
        const char **cell = r->cell + (size_t)r->rows++ * (size_t)r->columns;
        for (int i = 0; i < r->columns; i++)
            cell[i] = opc_table_cell(source->table, row, source->complete + 1 + i);
    }
    return OPC_OK;
}

/* A run is complete if all of its rows in merged.csv say so. */
static void find_complete_runs(const struct source *merged, struct opc_sweep_run *found)
{
    for (int i = 0; i < merged->sweep->tasks; i++)
        found[i].complete = true;
    for (int row = 0; row < opc_table_rows(merged->table); row++)
        if (merged->task[row] >= 0 &&
            strcmp(opc_table_cell(merged->table, row, merged->complete), "1") != 0)
            found[merged->task[row]].complete = false;
}

static int check_order(const struct source *source, int i, const struct opc_sweep_rows *rows,
                       struct opc_err *err)
{
    if (opc_sweep_rows_ascend(rows))
        return OPC_OK;
    return opc_fail(err, OPC_EDAMAGED,
                    "%s: the epochs of %s do not ascend; each may be there once only", source->path,
                    source->sweep->task[i].name);
}

/* Measures a run and compares its epochs with train.epochs of the sweep's file. With fewer it
 * counts as incomplete, like a run directory with fewer would. */
static int check_run(const struct sources *from, int i, struct opc_sweep_run *run,
                     struct opc_err *err)
{
    const struct source *source = &from->merged;
    const struct opc_task *task = &source->sweep->task[i];
    const int want = task->set.train.epochs;
    OPC_TRY(opc_sweep_run_measure(run, err));
    OPC_TRY(check_order(source, i, &run->metrics, err));
    OPC_TRY(check_order(&from->timing, i, &run->timing, err));
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
    const int rows = a->metrics.rows > b->metrics.rows ? a->metrics.rows : b->metrics.rows;
    const size_t capacity = (size_t)rows + 1;
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
    if (!found->metrics.rows)
        return OPC_OK;
    if (used->metrics.rows && used->complete && found->complete)
        return warn_if_different(runs, i, runs->from[runs->added].dir, found, err);
    if (used->metrics.rows && (used->complete || !found->complete))
        return OPC_OK;
    /* Its time comes with it: that of another training would be wrong. */
    opc_sweep_rows_free(&used->metrics);
    opc_sweep_rows_free(&used->timing);
    found->added = runs->added;
    *used = *found;
    found->metrics = found->timing = (struct opc_sweep_rows){0};
    return OPC_OK;
}

/* ---------------------------------------------------------------------------------------------- */

/* Names the columns that the runs of a table have. */
static int keep_columns(struct source *source, struct opc_sweep_kept *kept, struct opc_err *err)
{
    if (!source->table)
        return OPC_OK;
    kept->columns = opc_table_columns(source->table) - source->complete - 1;
    kept->name = opc_alloc((size_t)kept->columns + 1, sizeof *kept->name);
    if (!kept->name)
        return opc_sweep_runs_no_memory(err);
    for (int i = 0; i < kept->columns; i++)
        kept->name[i] = opc_table_name(source->table, source->complete + 1 + i);
    return OPC_OK;
}

/* Reads the tables of a directory. */
static int open_tables(struct sources *from, const char *dir, struct opc_err *err)
{
    struct source *merged = &from->merged;
    OPC_TRY(opc_path_join(merged->path, dir, "merged.csv", err));
    OPC_TRY(opc_path_join(from->list.path, dir, "runs.csv", err));
    OPC_TRY(opc_path_join(from->timing.path, dir, "timing.csv", err));
    if (!opc_file_exists(merged->path))
        return opc_fail(err, OPC_EUSER,
                        "there is no %s; --add needs a directory that 'opc sweep %s merge' wrote "
                        "to",
                        merged->path, merged->sweep->path);
    OPC_TRY(open_source(merged, err));
    if (opc_file_exists(from->list.path))
        OPC_TRY(open_source(&from->list, err));
    return opc_file_exists(from->timing.path) ? open_source(&from->timing, err) : OPC_OK;
}

/* Finds the run of each row, in all tables. */
static int match(struct sources *from, enum opc_sweep_match how, struct opc_err *err)
{
    struct source *merged = &from->merged, *list = &from->list;
    const bool known = list->table && opc_sweep_list_has_identities(list->table);
    int shared = 0;
    if (how == OPC_MATCH_VALUES || !known) {
        if (how == OPC_MATCH_SETTINGS)
            return opc_fail(err, OPC_EUSER,
                            "%s has no column 'settings' with the identity of each run; merge it "
                            "again with the file it was made with",
                            list->path);
        OPC_TRY(match_values(merged, err));
        if (list->table)
            OPC_TRY(match_values(list, err));
        return from->timing.table ? match_values(&from->timing, err) : OPC_OK;
    }
    OPC_TRY(match_settings(from, &shared, err));
    if (how == OPC_MATCH_SETTINGS)
        return OPC_OK;
    if (shared == 0)
        return refuse_settings(merged, err);
    const int left_out = opc_table_rows(list->table) - shared;
    if (left_out > 0)
        opc_log(OPC_LEVEL_WARN, "%s: %d of %d runs are not of %s and are left out", merged->path,
                left_out, left_out + shared, merged->sweep->path);
    return OPC_OK;
}

/* Forms runs of the tables, [tasks], and checks them. */
static int form_runs(struct sources *from, const struct opc_sweep_added *added,
                     struct opc_sweep_run *found, struct opc_err *err)
{
    const int tasks = from->merged.sweep->tasks;
    for (int i = 0; i < tasks; i++)
        found[i].minutes = (double)NAN;
    OPC_TRY(take_rows(&from->merged, &added->merged, false, found, err));
    if (from->timing.table)
        OPC_TRY(take_rows(&from->timing, &added->timing, true, found, err));
    find_complete_runs(&from->merged, found);
    for (int i = 0; i < tasks; i++)
        OPC_TRY(check_run(from, i, &found[i], err));
    return from->list.table ? read_list(&from->list, found, err) : OPC_OK;
}

int opc_sweep_runs_add(struct opc_sweep_runs *runs, const char *dir, enum opc_sweep_match how,
                       struct opc_err *err)
{
    /* Read the tables, form runs of them, check these, and then choose run by run. */
    const int tasks = runs->sweep->tasks;
    struct sources from = {
        .merged.sweep = runs->sweep, .list.sweep = runs->sweep, .timing.sweep = runs->sweep};
    struct opc_sweep_run *found = NULL;
    if (runs->added == OPC_SWEEP_ADDED_MAX)
        return opc_fail(err, OPC_EUSER, "%s is one directory too many: at most %d can be added",
                        dir, OPC_SWEEP_ADDED_MAX);
    struct opc_sweep_added *added = &runs->from[runs->added];
    int code = open_tables(&from, dir, err);
    if (!code)
        code = match(&from, how, err);
    if (!code)
        code = keep_columns(&from.merged, &added->merged, err);
    if (!code)
        code = keep_columns(&from.timing, &added->timing, err);
    if (!code &&
        !((added->dir = opc_strdup(dir)) && (found = opc_alloc((size_t)tasks, sizeof *found))))
        code = opc_sweep_runs_no_memory(err);
    if (!code)
        code = form_runs(&from, added, found, err);
    for (int i = 0; i < tasks && !code; i++)
        code = choose_run(runs, i, &found[i], err);
    /* Also after a failure: runs that are taken over by then point into the tables. */
    added->merged.table = from.merged.table;
    added->timing.table = from.timing.table;
    from.merged.table = from.timing.table = NULL;
    runs->added += !code;
    for (int i = 0; found && i < tasks; i++) {
        opc_sweep_rows_free(&found[i].metrics);
        opc_sweep_rows_free(&found[i].timing);
    }
    opc_free(found);
    close_source(&from.merged);
    close_source(&from.list);
    close_source(&from.timing);
    return code;
}
