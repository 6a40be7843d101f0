/* SPDX-License-Identifier: MIT */
/* The tables of a sweep in one. Their columns may differ (a run without a model has fewer): the
 * merged table has all of them, and empty cells. Numbers are copied as they are written. */
#include "base/file.h"
#include "opc/mem.h"
#include "sweep/sweep.h"

#include <stdio.h>
#include <string.h>

enum { MOST_BYTES = 200000000, MOST_COLUMNS = 256, NAME = 64 };

struct columns {
    char name[MOST_COLUMNS][NAME];
    int n;
};

static int find(const struct columns *c, const char *name, size_t n)
{
    for (int i = 0; i < c->n; i++)
        if (strlen(c->name[i]) == n && memcmp(c->name[i], name, n) == 0)
            return i;
    return -1;
}

/* Where cells of a line begin; returns how many there are. end: the line's newline. */
static int split(const char *line, const char *end, const char *cell[MOST_COLUMNS + 1])
{
    int n = 0;
    for (const char *c = line; n < MOST_COLUMNS; c++) {
        cell[n++] = c;
        c = memchr(c, ',', (size_t)(end - c));
        if (!c)
            break;
    }
    cell[n] = end + 1;
    return n;
}

static size_t width(const char *const *cell)
{
    return (size_t)(cell[1] - cell[0]) - 1;
}

/* A table's columns, each new one behind the one it stands behind there. */
static int add_columns(struct columns *all, const char *path, const char *head, struct opc_err *err)
{
    const char *cell[MOST_COLUMNS + 1];
    const int n = split(head, head + strcspn(head, "\n"), cell);
    int place = 0;
    for (int i = 0; i < n; i++) {
        const int known = find(all, cell[i], width(&cell[i]));
        if (known >= 0) {
            place = known + 1;
            continue;
        }
        if (all->n == MOST_COLUMNS || width(&cell[i]) >= NAME)
            return opc_fail(err, OPC_EDAMAGED, "%s: its first line is not that of a metrics.csv",
                            path);
        memmove(all->name[place + 1], all->name[place], (size_t)(all->n - place) * NAME);
        snprintf(all->name[place], NAME, "%.*s", (int)width(&cell[i]), cell[i]);
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
                    const struct columns *all, const char *table, struct opc_save *save,
                    struct opc_merged *out, struct opc_err *err)
{
    const char *cell[MOST_COLUMNS + 1], *end = strchr(table, '\n'), *line;
    int at[MOST_COLUMNS];
    const int n = split(table, end, cell);
    struct opc_text text = {0};
    const long before = out->rows;
    for (int i = 0; i < all->n; i++)
        at[i] = -1;
    for (int i = 0; i < n; i++) {
        const int place = find(all, cell[i], width(&cell[i]));
        if (place >= 0) /* else the run has begun since we looked at the heads */
            at[place] = i;
    }
    /* Whole lines only: the last one may be being written. */
    for (line = end + 1; (end = strchr(line, '\n')); line = end + 1) {
        if (split(line, end, cell) != n)
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
                opc_text_add_bytes(&text, cell[at[i]], width(&cell[at[i]]));
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
        char path[OPC_PATH], *table = NULL;
        if (!dir[i])
            continue;
        code = opc_path_join(path, dir[i], "metrics.csv", err);
        if (code || !opc_file_exists(path))
            continue;
        code = opc_file_read(path, MOST_BYTES, &table, NULL, err);
        if (!code && strchr(table, '\n'))
            code = save ? add_rows(s, &s->task[i], complete[i], all, table, save, out, err)
                        : add_columns(all, path, table, err);
        opc_free(table);
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
                   : opc_fail(err, OPC_ENOMEM, "no room to merge tables");
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
