/* SPDX-License-Identifier: MIT */
/* The settings that differ between two sets of runs, for opc compare and opc serve.
 *
 * Invariant: values are compared as the program prints them, after defaults, includes and older
 * names are resolved; so two files that mean the same do not differ. */
#include "base/text.h"
#include "opc/mem.h"
#include "opc/train.h"
#include "run/config/config.h"
#include "study/curves/compare.h"
#include "study/curves/sweep_tables.h"

#include <stdio.h>
#include <string.h>

/* The different values of one setting over the runs of a side. */
struct seen {
    char **value;
    int n, capacity;
};

static int settings_no_memory(struct opc_err *err)
{
    return opc_fail(err, OPC_ENOMEM, "not enough memory to compare settings");
}

/* Values are few: a setting that has many is one that was searched. */
static bool has_value(const struct seen *seen, const char *value)
{
    for (int i = 0; i < seen->n; i++)
        if (strcmp(seen->value[i], value) == 0)
            return true;
    return false;
}

/* Adds a value that is not there yet. */
static int add_value(struct seen *seen, const char *value, struct opc_err *err)
{
    if (has_value(seen, value))
        return OPC_OK;
    if (seen->n == seen->capacity) {
        const int capacity = seen->capacity ? 2 * seen->capacity : 4;
        char **grown = opc_alloc((size_t)capacity, sizeof *grown);
        if (!grown)
            return settings_no_memory(err);
        if (seen->n > 0)
            memcpy(grown, seen->value, (size_t)seen->n * sizeof *grown);
        opc_free(seen->value);
        seen->value = grown;
        seen->capacity = capacity;
    }
    seen->value[seen->n] = opc_strdup(value);
    return seen->value[seen->n++] ? OPC_OK : settings_no_memory(err);
}

/* Adds every setting of a run to seen[field], where fields are counted over all sections; of run
 * number `run` of the tables of a merge (NULL: it is none) those that they tell. */
static int add_settings(struct opc_values *set, const struct opc_sweep_tables *tables, int run,
                        struct seen *seen, struct opc_err *err)
{
    struct opc_part part[OPC_PARTS_MAX];
    struct opc_text text = {0};
    const int parts = opc_config_parts(set, part);
    int code = OPC_OK;
    for (int i = 0; i < parts && !code; i++)
        for (int k = 0; k < part[i].section->n && !code; k++, seen++) {
            char key[OPC_KEY];
            snprintf(key, sizeof key, "%s.%s", part[i].section->name,
                     part[i].section->fields[k].name);
            if (tables && !opc_sweep_tables_know(tables, run, key))
                continue;
            opc_text_clear(&text);
            opc_field_print(&part[i].section->fields[k], part[i].values, &text);
            code = opc_text_check(&text, err);
            if (!code)
                code = add_value(seen, opc_text_get(&text), err);
        }
    opc_text_free(&text);
    return code;
}

/* The settings of the run in a directory, or of the runs in its tables. */
static int add_run(const char *dir, struct seen *seen, struct opc_err *err)
{
    struct opc_config *config;
    struct opc_sweep_tables tables;
    int code = OPC_OK;
    if (!opc_rundir_is_run(dir) && opc_sweep_tables_are(dir)) {
        OPC_TRY(opc_sweep_tables_open(dir, &tables, err));
        for (int i = 0; i < tables.sweep->tasks && !code; i++)
            code = add_settings(&tables.sweep->task[i].set, &tables, i, seen, err);
        opc_sweep_tables_close(&tables);
        return code;
    }
    OPC_TRY(opc_config_of_run(dir, &config, err));
    code = add_settings(&config->set, NULL, 0, seen, err);
    opc_config_destroy(config);
    return code;
}

/* All values of a setting in one cell. */
static void add_cell(struct opc_table *table, const struct seen *seen, struct opc_text *text)
{
    opc_text_clear(text);
    for (int i = 0; i < seen->n; i++)
        opc_text_addf(text, "%s%s", i ? ", " : "", seen->value[i]);
    opc_table_word(table, opc_text_get(text));
}

/* As sets: the order is that of the runs, and means nothing. Without a value it is not known, so
 * that nothing can be said. */
static bool same_values(const struct seen *a, const struct seen *b)
{
    if (a->n == 0 || b->n == 0)
        return true;
    bool same = a->n == b->n;
    for (int i = 0; i < a->n && same; i++)
        same = has_value(b, a->value[i]);
    return same;
}

/* A row for each setting whose values differ; the seed is what runs are repeated with. */
static int fill_table(struct seen *const seen[2], struct opc_table *table, struct opc_err *err)
{
    struct opc_values *values = opc_alloc(1, sizeof *values);
    struct opc_part part[OPC_PARTS_MAX];
    struct opc_text text = {0};
    if (!values)
        return settings_no_memory(err);
    /* The same order as in add_run. */
    const int parts = opc_config_parts(values, part);
    for (int i = 0, f = 0; i < parts; i++)
        for (int k = 0; k < part[i].section->n; k++, f++) {
            char key[OPC_KEY];
            snprintf(key, sizeof key, "%s.%s", part[i].section->name,
                     part[i].section->fields[k].name);
            if (same_values(&seen[0][f], &seen[1][f]) || strcmp(key, "train.seed") == 0)
                continue;
            opc_table_word(table, key);
            for (int s = 0; s < 2; s++)
                add_cell(table, &seen[s][f], &text);
        }
    const int code = opc_text_check(&text, err);
    opc_text_free(&text);
    opc_free(values);
    return code;
}

static void free_seen(struct seen *seen, int fields)
{
    for (int f = 0; seen && f < fields; f++) {
        for (int i = 0; i < seen[f].n; i++)
            opc_free(seen[f].value[i]);
        opc_free(seen[f].value);
    }
    opc_free(seen);
}

/* Settings of all sections together. */
static int count_fields(struct opc_err *err, int *out)
{
    struct opc_part part[OPC_PARTS_MAX];
    struct opc_values *values = opc_alloc(1, sizeof *values);
    if (!values)
        return settings_no_memory(err);
    const int parts = opc_config_parts(values, part);
    *out = 0;
    for (int i = 0; i < parts; i++)
        *out += part[i].section->n;
    opc_free(values);
    return OPC_OK;
}

int opc_compare_settings(const struct opc_compare_runs side[2], struct opc_table **out,
                         struct opc_err *err)
{
    struct opc_table *table = NULL;
    struct seen *seen[2] = {NULL, NULL};
    int fields = 0, code = count_fields(err, &fields);
    for (int s = 0; s < 2 && !code; s++) {
        seen[s] = opc_alloc((size_t)fields, sizeof **seen);
        code = seen[s] ? OPC_OK : settings_no_memory(err);
        for (int i = 0; i < side[s].n && !code; i++)
            code = add_run(side[s].dir[i], seen[s], err);
    }
    if (!code)
        code = opc_table_create("setting,a,b", &table, err);
    if (!code)
        code = fill_table(seen, table, err);
    for (int s = 0; s < 2; s++)
        free_seen(seen[s], fields);
    if (code)
        opc_table_free(table);
    else
        *out = table;
    return code;
}
