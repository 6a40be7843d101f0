/* SPDX-License-Identifier: MIT */
/* The tables of a merge without their experiment file. The columns before `complete` are what
 * varied, and each combination of their values is a run; runs.csv names task and method. From these
 * a sweep is made that has just these runs, and sweep_added.c reads the tables as those of any
 * other sweep, with all its checks. opc plot and opc compare call it.
 *
 * Invariant: a setting that the tables do not tell is at its default in task->set, and nobody may
 * take it for the run's (opc_sweep_tables_know). */
#include "study/curves/sweep_tables.h"

#include "base/file.h"
#include "opc/mem.h"
#include "run/config/config.h"
#include "run/files/summary.h"
#include "study/curves/sweep_runs_private.h"

#include <stdio.h>
#include <string.h>

bool opc_sweep_tables_are(const char *dir)
{
    char path[OPC_PATH];
    return !opc_path_join(path, dir, "merged.csv", NULL) && opc_file_exists(path);
}

bool opc_sweep_tables_have_identities(const char *dir)
{
    char path[OPC_PATH];
    struct opc_table *list;
    if (opc_path_join(path, dir, "runs.csv", NULL) || !opc_file_exists(path) ||
        opc_table_read(path, &list, NULL))
        return false;
    const bool have = opc_sweep_list_has_identities(list);
    opc_table_free(list);
    return have && opc_sweep_tables_are(dir);
}

static bool is_key(const struct opc_sweep *sweep, const char *key)
{
    for (int k = 0; k < sweep->keys; k++)
        if (strcmp(sweep->vary[k].key, key) == 0)
            return true;
    return false;
}

bool opc_sweep_tables_know(const struct opc_sweep_tables *tables, int i, const char *key)
{
    if (is_key(tables->sweep, key) || strcmp(key, "env.name") == 0)
        return true;
    /* The name of the method stands for the agent, and of SAC's methods for the transition model,
     * too. */
    return tables->method[i] &&
           (strcmp(key, "train.agent") == 0 ||
            (strcmp(key, "opc.transition") == 0 && tables->sweep->task[i].set.train.agent == 0));
}

int opc_sweep_tables_find(const struct opc_sweep_tables *tables, int i, const char *name,
                          int *column, struct opc_err *err)
{
    enum { LONGEST = 220 }; /* as many names as fit into a message */
    const struct opc_sweep_rows *rows = &tables->runs->run[i].metrics;
    struct opc_text names = {0};
    int more = 0;
    *column = opc_sweep_rows_find(rows, name);
    if (*column >= 0)
        return OPC_OK;
    for (int k = 0; k < rows->columns; k++)
        if (names.used + strlen(rows->name[k]) > LONGEST)
            more++;
        else
            opc_text_addf(&names, "%s%s", k ? ", " : "", rows->name[k]);
    if (more)
        opc_text_addf(&names, " and %d more", more);
    int code = opc_text_check(&names, err);
    if (!code)
        code = opc_fail(err, OPC_EUSER, "%s has no column '%s'; it has %s", tables->path, name,
                        opc_text_get(&names));
    opc_text_free(&names);
    return code;
}

/* ---- the runs -------------------------------------------------------------------------------- */

/* Whether two rows of a table have the same first cells. */
static bool same_run(const struct opc_table *table, int keys, int a, int b)
{
    for (int k = 0; k < keys; k++)
        if (strcmp(opc_table_cell(table, a, k), opc_table_cell(table, b, k)) != 0)
            return false;
    return true;
}

/* The first row of each run. Returns how many runs there are. */
static int find_runs(const struct opc_table *table, int keys, int *first)
{
    int runs = 0;
    for (int row = 0; row < opc_table_rows(table); row++) {
        bool known = runs && same_run(table, keys, first[runs - 1], row); /* neighbours, usually */
        for (int i = 0; i < runs && !known; i++)
            known = same_run(table, keys, first[i], row);
        if (!known)
            first[runs++] = row;
    }
    return runs;
}

/* The index of a value of the varied setting, which is added if it is new. */
static int choice_of(struct opc_vary *vary, const char *value, int *out, struct opc_err *err)
{
    for (*out = 0; *out < vary->n; ++*out)
        if (strcmp(vary->value[*out], value) == 0)
            return OPC_OK;
    vary->value[vary->n] = opc_strdup(value);
    return vary->value[vary->n++] ? OPC_OK : opc_sweep_runs_no_memory(err);
}

/* Sets a setting of a run; the message says which cell does not do. */
static int set_value(struct opc_sweep *sweep, struct opc_task *task, const char *key,
                     const char *value, struct opc_err *err)
{
    struct opc_part part[OPC_PARTS_MAX];
    const int parts = opc_config_parts(&task->set, part);
    const int code = opc_parts_set(part, parts, key, value, err);
    return code ? opc_within(err, "%s", sweep->path) : OPC_OK;
}

/* Task number i is the run whose first row is `row`. */
static int make_task(struct opc_sweep *sweep, const struct opc_table *table, int i, int row,
                     struct opc_err *err)
{
    struct opc_task *task = &sweep->task[i];
    struct opc_text name = {0};
    double epoch;
    OPC_TRY(opc_summary_defaults(&task->set, err));
    task->choice = opc_alloc((size_t)sweep->keys + 1, sizeof *task->choice);
    int code = task->choice ? OPC_OK : opc_sweep_runs_no_memory(err);
    for (int k = 0; k < sweep->keys && !code; k++) {
        const char *value = opc_table_cell(table, row, k);
        opc_text_addf(&name, "%s%s", k ? ", " : "", value);
        code = choice_of(&sweep->vary[k], value, &task->choice[k], err);
        if (!code)
            code = set_value(sweep, task, sweep->vary[k].key, value, err);
    }
    if (!code)
        code = opc_text_check(&name, err);
    if (!code && !(task->name = opc_strdup(opc_text_get(&name))))
        code = opc_sweep_runs_no_memory(err);
    opc_text_free(&name);
    /* Nobody asks for more epochs than the table has. */
    const int at = opc_table_find(table, "epoch");
    for (int k = row; k < opc_table_rows(table) && at >= 0; k++)
        if (same_run(table, sweep->keys, row, k) &&
            opc_parse_real(opc_table_cell(table, k, at), &epoch) && epoch >= 1 && epoch < 1e9)
            task->set.train.epochs = (int)epoch;
    task->index = i + 1;
    return code;
}

/* The varied settings, under their present names. */
static int make_keys(struct opc_sweep *sweep, const struct opc_table *table, int runs,
                     struct opc_err *err)
{
    for (int k = 0; k < sweep->keys; k++) {
        const char *column = opc_table_name(table, k);
        char key[OPC_KEY];
        if (!opc_config_key(column, key))
            return opc_fail(err, OPC_EUSER,
                            "%s: column '%s' stands before 'complete' and is no setting of this "
                            "version; opc config lists them",
                            sweep->path, column);
        sweep->vary[k].key = opc_strdup(key);
        sweep->vary[k].value = opc_alloc((size_t)runs + 1, sizeof *sweep->vary[k].value);
        if (!sweep->vary[k].key || !sweep->vary[k].value)
            return opc_sweep_runs_no_memory(err);
    }
    return OPC_OK;
}

/* A sweep of the runs in merged.csv. first: scratch, [rows]. */
static int make_sweep(struct opc_sweep *sweep, const struct opc_table *table, int *first,
                      struct opc_err *err)
{
    const int keys = opc_table_find(table, "complete");
    if (keys < 0)
        return opc_fail(err, OPC_EUSER,
                        "%s has no column 'complete', so no sweep was merged into it", sweep->path);
    const int runs = find_runs(table, keys, first);
    if (runs == 0)
        return opc_fail(err, OPC_EUSER, "%s has no rows", sweep->path);
    sweep->vary = opc_alloc((size_t)keys + 1, sizeof *sweep->vary);
    sweep->task = opc_alloc((size_t)runs, sizeof *sweep->task);
    if (!sweep->vary || !sweep->task)
        return opc_sweep_runs_no_memory(err);
    sweep->keys = keys;
    OPC_TRY(make_keys(sweep, table, runs, err));
    sweep->tasks = runs;
    for (int i = 0; i < runs; i++)
        OPC_TRY(make_task(sweep, table, i, first[i], err));
    return OPC_OK;
}

/* ---- task and method ------------------------------------------------------------------------- */

/* Chooses what the tables do not tell such that the method has this name; false: none has it. */
static bool choose_method(const struct opc_sweep *sweep, struct opc_values *set, const char *label)
{
    const bool agent = is_key(sweep, "train.agent"), transition = is_key(sweep, "opc.transition");
    const bool improve = is_key(sweep, "train.improve_every");
    const struct opc_values was = *set;
    /* The original MBPO differs from MBPO(*) in that its policy learns within epochs. */
    for (int original = 0; original < (improve ? 1 : 2); original++)
        for (int a = 0; opc_agent_type(a); a++)
            for (int t = 0; opc_transition_type(t); t++) {
                set->train.improve_every = original ? 1 : was.train.improve_every;
                set->train.agent = agent ? was.train.agent : a;
                set->opc.transition = transition ? was.opc.transition : t;
                if (strcmp(opc_method_label(set), label) == 0)
                    return true;
            }
    *set = was;
    return false;
}

/* The run of a row in runs.csv, whose columns begin like those of merged.csv; -1: there is none. */
static int run_of(const struct opc_sweep *sweep, const struct opc_table *list, int row)
{
    for (int i = 0; i < sweep->tasks; i++) {
        int k = 0;
        while (k < sweep->keys &&
               strcmp(opc_table_cell(list, row, k), opc_task_value(sweep, &sweep->task[i], k)) == 0)
            k++;
        if (k == sweep->keys)
            return i;
    }
    return -1;
}

/* Takes task and method of every run from runs.csv, which older results lack. */
static int read_methods(struct opc_sweep_tables *tables, const char *path, bool *named,
                        struct opc_err *err)
{
    struct opc_sweep *sweep = tables->sweep;
    struct opc_table *list;
    OPC_TRY(opc_table_read(path, &list, err));
    const int task = opc_table_find(list, "task"), method = opc_table_find(list, "method");
    int code = OPC_OK;
    for (int row = 0; row < opc_table_rows(list) && !code; row++) {
        const int i = opc_table_columns(list) > sweep->keys ? run_of(sweep, list, row) : -1;
        if (i < 0)
            continue; /* opc_sweep_runs_add says what is wrong */
        if (task >= 0 && !is_key(sweep, "env.name"))
            code =
                set_value(sweep, &sweep->task[i], "env.name", opc_table_cell(list, row, task), err);
        named[i] = named[i] || task >= 0;
        const char *label = method >= 0 ? opc_table_cell(list, row, method) : "";
        if (!code && *label && !choose_method(sweep, &sweep->task[i].set, label))
            code = opc_fail(err, OPC_EUSER, "%s:%d: method '%.60s' is none of this version", path,
                            row + 2, label);
        tables->method[i] = tables->method[i] || *label;
    }
    opc_table_free(list);
    return code;
}

/* What the tables tell of task and method. The method may be unknown, the task not: it is the
 * panel. */
static int find_methods(struct opc_sweep_tables *tables, const char *dir, struct opc_err *err)
{
    struct opc_sweep *sweep = tables->sweep;
    char path[OPC_PATH];
    OPC_TRY(opc_path_join(path, dir, "runs.csv", err));
    bool *named = opc_alloc((size_t)sweep->tasks, sizeof *named);
    tables->method = opc_alloc((size_t)sweep->tasks, sizeof *tables->method);
    int code = named && tables->method ? OPC_OK : opc_sweep_runs_no_memory(err);
    for (int i = 0; i < sweep->tasks && !code; i++) {
        named[i] = is_key(sweep, "env.name");
        tables->method[i] = is_key(sweep, "opc.transition") || is_key(sweep, "train.agent");
    }
    if (!code && opc_file_exists(path))
        code = read_methods(tables, path, named, err);
    for (int i = 0; i < sweep->tasks && !code; i++)
        if (!named[i])
            code = opc_fail(err, OPC_EUSER,
                            "%s does not tell the task of %s: it has no column 'env.name', and "
                            "there is no runs.csv with 'task' beside it; merge it again",
                            tables->path, sweep->task[i].name);
    opc_free(named);
    return code;
}

/* ---------------------------------------------------------------------------------------------- */

/* All rows, read as opc sweep merge --add reads them. */
static int read_runs(struct opc_sweep_tables *tables, const char *dir, struct opc_err *err)
{
    const size_t tasks = (size_t)tables->sweep->tasks;
    char **none = opc_alloc(tasks, sizeof *none);
    bool *complete = opc_alloc(tasks, sizeof *complete);
    int code = none && complete
                   ? opc_sweep_runs_read(tables->sweep, none, complete, &tables->runs, err)
                   : opc_sweep_runs_no_memory(err);
    if (!code)
        code = opc_sweep_runs_add(tables->runs, dir, OPC_MATCH_VALUES, err);
    opc_free(none);
    opc_free(complete);
    return code;
}

int opc_sweep_tables_open(const char *dir, struct opc_sweep_tables *out, struct opc_err *err)
{
    struct opc_sweep_tables made = {.sweep = NULL};
    struct opc_table *table;
    OPC_TRY(opc_path_join(made.path, dir, "merged.csv", err));
    OPC_TRY(opc_table_read(made.path, &table, err));
    int *first = opc_alloc((size_t)opc_table_rows(table) + 1, sizeof *first);
    made.sweep = opc_alloc(1, sizeof *made.sweep);
    int code = first && made.sweep && (made.sweep->path = opc_strdup(made.path))
                   ? make_sweep(made.sweep, table, first, err)
                   : opc_sweep_runs_no_memory(err);
    opc_table_free(table);
    opc_free(first);
    if (!code)
        code = find_methods(&made, dir, err);
    if (!code)
        code = read_runs(&made, dir, err);
    if (code)
        opc_sweep_tables_close(&made);
    else
        *out = made;
    return code;
}

void opc_sweep_tables_close(struct opc_sweep_tables *tables)
{
    opc_sweep_runs_free(tables->runs);
    opc_sweep_close(tables->sweep);
    opc_free(tables->method);
    *tables = (struct opc_sweep_tables){.sweep = NULL};
}
