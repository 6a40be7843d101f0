/* SPDX-License-Identifier: MIT */
/* The tables of a sweep in one. Their columns may differ (a run without a model has fewer): the
 * merged table has all of them, and empty cells. Numbers are copied as they are written. */
#include "base/file.h"
#include "opc/mem.h"
#include "run/rundir.h"
#include "sweep/sweep.h"

#include <stdio.h>
#include <string.h>

enum { MAX_COLUMNS = 256, NAME = OPC_RUNDIR_NAME };

struct columns {
    char name[MAX_COLUMNS][NAME];
    int n;
};

static int find_name(const struct columns *c, const char *name)
{
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->name[i], name) == 0)
            return i;
    return -1;
}

/* A table's columns, each new one behind the one it stands behind there. */
static int add_columns(struct columns *all, const struct opc_rundir_table *table,
                       struct opc_err *err)
{
    int place = 0;
    for (int i = 0; i < table->columns; i++) {
        const int known = find_name(all, table->name[i]);
        if (known >= 0) {
            place = known + 1;
            continue;
        }
        if (all->n == MAX_COLUMNS || strlen(table->name[i]) >= NAME)
            return opc_fail(err, OPC_EDAMAGED, "%s: its first line is not that of a metrics.csv",
                            table->path);
        memmove(all->name[place + 1], all->name[place], (size_t)(all->n - place) * NAME);
        snprintf(all->name[place], NAME, "%s", table->name[i]);
        all->n++;
        place++;
    }
    return OPC_OK;
}

static void add_word(struct opc_text *line, const char *word)
{
    if (!strpbrk(word, ",\"\n")) {
        opc_text_add(line, word);
        return;
    }
    opc_text_add(line, "\"");
    for (const char *c = word; *c; c++)
        opc_text_addf(line, *c == '"' ? "\"%c" : "%c", *c);
    opc_text_add(line, "\"");
}

static int add_rows(const struct opc_sweep *s, const struct opc_task *t, bool complete,
                    const struct columns *all, const struct opc_rundir_table *table,
                    struct opc_save *save, struct opc_merged *out, struct opc_err *err)
{
    int at[MAX_COLUMNS];
    struct opc_text text = {0};
    const long before = out->rows;
    for (int i = 0; i < all->n; i++)
        at[i] = -1;
    for (int i = 0; i < table->columns; i++) {
        const int place = find_name(all, table->name[i]);
        if (place >= 0) /* else the run has begun since we looked at the heads */
            at[place] = i;
    }
    for (int row = 0; row < table->rows; row++) {
        const char *const *cell = table->cell + (size_t)row * (size_t)table->columns;
        if (table->cells[row] != table->columns)
            continue;
        opc_text_clear(&text);
        for (int k = 0; k < s->keys; k++) {
            add_word(&text, opc_task_value(s, t, k));
            opc_text_add(&text, ",");
        }
        opc_text_add(&text, complete ? "1" : "0");
        for (int i = 0; i < all->n; i++) {
            opc_text_add(&text, ",");
            if (at[i] >= 0)
                opc_text_add(&text, cell[at[i]]);
        }
        opc_text_add(&text, "\n");
        opc_save_bytes(save, opc_text_get(&text), text.used);
        out->rows++;
    }
    const int code = opc_text_check(&text, err);
    opc_text_free(&text);
    out->runs += out->rows > before;
    out->complete += out->rows > before && complete;
    return code;
}

/* Goes through the tables twice: for their columns, then (save) for their rows. */
static int pass(const struct opc_sweep *s, char *const *dir, const bool *complete,
                struct columns *all, struct opc_save *save, struct opc_merged *out,
                struct opc_err *err)
{
    int code = OPC_OK;
    for (int i = 0; i < s->tasks && !code; i++) {
        struct opc_rundir_table table = {0};
        if (!dir[i] || !opc_rundir_has(dir[i], "metrics.csv"))
            continue;
        code = opc_rundir_table_read(dir[i], "metrics.csv", &table, err);
        if (!code)
            code = save ? add_rows(s, &s->task[i], complete[i], all, &table, save, out, err)
                        : add_columns(all, &table, err);
        opc_rundir_table_free(&table);
    }
    return code;
}

int opc_sweep_merge(const struct opc_sweep *s, char *const *dir, const bool *complete,
                    const char *path, struct opc_merged *out, struct opc_err *err)
{
    struct columns *all = opc_alloc(1, sizeof *all);
    struct opc_save *save = NULL;
    struct opc_text head = {0};
    *out = (struct opc_merged){0};
    int code = all ? pass(s, dir, complete, all, NULL, out, err)
                   : opc_fail(err, OPC_ENOMEM, "not enough memory to merge tables");
    if (!code)
        code = opc_save_begin(path, &save, err);
    if (!code) {
        for (int k = 0; k < s->keys; k++)
            opc_text_addf(&head, "%s,", s->vary[k].key);
        opc_text_add(&head, "complete");
        for (int i = 0; i < all->n; i++)
            opc_text_addf(&head, ",%s", all->name[i]);
        opc_text_add(&head, "\n");
        code = opc_text_check(&head, err);
        if (!code) {
            opc_save_bytes(save, opc_text_get(&head), head.used);
            code = pass(s, dir, complete, all, save, out, err);
        }
        if (!code && out->rows == 0)
            code = opc_fail(err, OPC_EUSER, "no run has a row yet; %s is left as it is", path);
        if (code)
            opc_save_drop(save);
        else
            code = opc_save_end(save, err);
    }
    opc_text_free(&head);
    opc_free(all);
    return code;
}
