/* SPDX-License-Identifier: MIT */
/* The runs of a sweep as tables: merged.csv with every epoch, timing.csv with what it cost,
 * runs.csv with a row for each run. `opc sweep FILE merge` writes them.
 *
 * Invariant: cells are copied as they are written, never parsed and printed again, so that a
 * merge of a merge changes nothing. */
#include "opc/mem.h"
#include "study/curves/sweep_runs.h"

#include <stdio.h>
#include <string.h>

/* ---- columns --------------------------------------------------------------------------------- */

enum { MAX_COLUMNS = 256 };

/* Names of columns in the order of the table; borrowed. */
struct columns {
    const char *name[MAX_COLUMNS];
    int n;
};

/* -1 if there is no such column. */
static int find_name(const struct columns *columns, const char *name)
{
    for (int i = 0; i < columns->n; i++)
        if (strcmp(columns->name[i], name) == 0)
            return i;
    return -1;
}

/* Adds the columns of one source. A new column is inserted after the one it follows in that
 * source. */
static int add_columns(struct columns *all, const char *const *name, int n, struct opc_err *err)
{
    /* Where the next new column goes. */
    int place = 0;
    for (int i = 0; i < n; i++) {
        const int known = find_name(all, name[i]);
        if (known >= 0) {
            place = known + 1;
            continue;
        }
        if (all->n == MAX_COLUMNS)
            return opc_fail(err, OPC_EDAMAGED,
                            "the runs have more than %d columns, '%.60s' for one; a table of a "
                            "run has fewer",
                            MAX_COLUMNS, name[i]);
        memmove(all->name + place + 1, all->name + place,
                (size_t)(all->n - place) * sizeof *all->name);
        all->name[place++] = name[i];
        all->n++;
    }
    return OPC_OK;
}

/* Those of metrics.csv or of timing.csv. */
static const struct opc_sweep_rows *rows_of(const struct opc_sweep_run *run, bool timing)
{
    return timing ? &run->timing : &run->metrics;
}

/* Columns of all runs. Runs from earlier merges come first: those have settled an order of the
 * columns, which stays. */
static int collect_columns(const struct opc_sweep_runs *runs, bool timing, struct columns *all,
                           struct opc_err *err)
{
    const int tasks = runs->sweep->tasks;
    int code = OPC_OK;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < tasks && !code; i++) {
            const struct opc_sweep_rows *rows = rows_of(&runs->run[i], timing);
            if ((runs->run[i].added < 0) == (pass == 1))
                code = add_columns(all, rows->name, rows->columns, err);
        }
    return code;
}

/* Creates a table with the columns "env.name,train.seed,complete" and those in `all`. */
static int merged_table_create(const struct opc_sweep *sweep, const struct columns *all,
                               struct opc_table **out, struct opc_err *err)
{
    struct opc_text head = {0};
    for (int k = 0; k < sweep->keys; k++)
        opc_text_addf(&head, "%s,", sweep->vary[k].key);
    opc_text_add(&head, "complete");
    for (int i = 0; i < all->n; i++)
        opc_text_addf(&head, ",%s", all->name[i]);
    int code = opc_text_check(&head, err);
    if (!code)
        code = opc_table_create(opc_text_get(&head), out, err);
    opc_text_free(&head);
    return code;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The cells that every row of run i begins with. */
static void begin_row(const struct opc_sweep_runs *runs, int i, struct opc_table *table)
{
    for (int k = 0; k < runs->sweep->keys; k++)
        opc_table_word(table, opc_task_value(runs->sweep, &runs->sweep->task[i], k));
    opc_table_int(table, runs->run[i].complete);
}

/* Adds all rows of run i, with their cells below the columns of the table. */
static void add_rows(const struct opc_sweep_runs *runs, int i, bool timing,
                     const struct columns *all, struct opc_table *table)
{
    const struct opc_sweep_rows *rows = rows_of(&runs->run[i], timing);
    int at[MAX_COLUMNS]; /* index of the table's column in the run; -1: it has none */
    for (int k = 0; k < all->n; k++)
        at[k] = -1;
    for (int k = 0; k < rows->columns; k++)
        at[find_name(all, rows->name[k])] = k;
    for (int row = 0; row < rows->rows; row++) {
        const char *const *cell = rows->cell + (size_t)row * (size_t)rows->columns;
        begin_row(runs, i, table);
        for (int k = 0; k < all->n; k++)
            opc_table_word(table, at[k] < 0 ? "" : cell[at[k]]);
    }
}

static int merge_rows(const struct opc_sweep_runs *runs, bool timing, struct opc_table **out,
                      struct opc_err *err)
{
    struct columns all = {.n = 0};
    int code = collect_columns(runs, timing, &all, err);
    if (!code)
        code = merged_table_create(runs->sweep, &all, out, err);
    /* A run without metrics is in no table: nothing would say whose time it is. */
    for (int i = 0; i < runs->sweep->tasks && !code; i++)
        if (runs->run[i].metrics.rows > 0)
            add_rows(runs, i, timing, &all, *out);
    return code;
}

int opc_sweep_runs_merged(const struct opc_sweep_runs *runs, struct opc_table **out,
                          struct opc_err *err)
{
    return merge_rows(runs, false, out, err);
}

int opc_sweep_runs_timing(const struct opc_sweep_runs *runs, struct opc_table **out,
                          struct opc_err *err)
{
    return merge_rows(runs, true, out, err);
}

int opc_sweep_runs_list(const struct opc_sweep_runs *runs, struct opc_table **out,
                        struct opc_err *err)
{
    static const struct columns COLUMNS = {{"method", "task", "epochs", "env_steps", "total_steps",
                                            "score", "minutes", "version", "revision", "settings"},
                                           10};
    const int code = merged_table_create(runs->sweep, &COLUMNS, out, err);
    char identity[OPC_SWEEP_IDENTITY];
    for (int i = 0; i < runs->sweep->tasks && !code; i++) {
        const struct opc_sweep_run *run = &runs->run[i];
        const struct opc_values *set = &runs->sweep->task[i].set;
        if (!run->metrics.rows)
            continue;
        begin_row(runs, i, *out);
        opc_table_word(*out, opc_method_label(set));
        opc_table_word(*out, set->env.name);
        if (run->epochs)
            opc_table_int(*out, run->epochs);
        else
            opc_table_word(*out, "");
        opc_table_real(*out, run->end.env_steps);
        opc_table_real(*out, run->end.total_steps);
        opc_table_real(*out, run->end.score);
        opc_table_real(*out, run->minutes);
        opc_table_word(*out, run->version);
        opc_table_word(*out, run->revision);
        opc_sweep_identity(set, identity);
        opc_table_word(*out, identity);
    }
    return code;
}
