/* SPDX-License-Identifier: MIT */
/* The analysis `settings`: the settings of a file for several tasks and methods, next to the
 * values that the paper prints.
 *
 *     probe: {analysis: settings}
 *     figure:
 *       of: experiments/paper/table1.yaml
 *       columns:
 *         - {title: "Hopper, OPC", tasks: [mujoco:hopper, bullet:hopper], method: corrected}
 *       rows:
 *         - {title: epochs, setting: train.epochs, printed: 150}
 *         - {title: updates, setting: train.updates_per_step, printed: [20], reading: "per step"}
 *
 * of is a path from the folder of the experiment file, or from one above it; a shipped file is
 * found from anywhere. printed is one value for all columns or one for each. A row with a reading
 * is one whose words mean something other than they say; it is shown and not compared.
 *
 * Invariant: values are compared as the program writes them, never as the paper's text, so that
 * 1e-3 equals 0.001. */
#include "base/file.h"
#include "opc/config.h"
#include "opc/mem.h"
#include "study/curves/learning.h"
#include "study/exhibit/analysis.h"

#include <stdio.h>
#include <string.h>

enum { COLUMNS = 32, TASKS = 8 };

/* The map under `figure`, and counts for the claims. */
struct sheet {
    const struct opc_yaml *of, *columns, *rows;
    int n;                                     /* columns */
    struct opc_config *config[COLUMNS][TASKS]; /* of each task of a column; NULL after the last */
    struct opc_config *scratch;                /* writes printed values as settings are written */
    int compared, equal, readings;             /* cells compared and equal; rows with a reading */
    int tasks, apart; /* values of second and further tasks, and those that differ */
};

/* ---- the map --------------------------------------------------------------------------------- */

/* A key that must be there and be of this kind. */
static int expect_node(const struct opc_yaml *map, const char *key, enum opc_yaml_kind kind,
                       const struct opc_yaml **out, struct opc_err *err)
{
    static const char *const WHAT[] = {
        [OPC_YAML_WORD] = "a word", [OPC_YAML_LIST] = "a list", [OPC_YAML_MAP] = "a map"};
    *out = opc_yaml_find(map, key);
    return *out && (*out)->kind == kind
               ? OPC_OK
               : opc_fail(err, OPC_EUSER, "line %d: '%s' is missing, or is not %s",
                          *out ? (*out)->line : map->line, key, WHAT[kind]);
}

static int check_column(const struct opc_yaml *map, struct opc_err *err)
{
    static const char *const KEYS[] = {"title", "tasks", "method", NULL};
    const struct opc_yaml *node;
    int n = 0;
    OPC_TRY(opc_learning_keys(map, "a column", KEYS, err));
    OPC_TRY(expect_node(map, "title", OPC_YAML_WORD, &node, err));
    OPC_TRY(expect_node(map, "method", OPC_YAML_WORD, &node, err));
    OPC_TRY(expect_node(map, "tasks", OPC_YAML_LIST, &node, err));
    /* An element that is not a word makes the count too large. */
    for (const struct opc_yaml *t = node->first; t; t = t->next)
        n += t->kind == OPC_YAML_WORD ? 1 : TASKS + 1;
    if (n < 1 || n > TASKS)
        return opc_fail(err, OPC_EUSER, "line %d: tasks are 1 to %d words", map->line, TASKS);
    return OPC_OK;
}

/* Checks a row; `printed` is one value or one per column. */
static int check_row(const struct opc_yaml *map, int columns, struct opc_err *err)
{
    static const char *const KEYS[] = {"title", "setting", "printed", "reading", NULL};
    const struct opc_yaml *node, *printed;
    int n = 0;
    OPC_TRY(opc_learning_keys(map, "a row", KEYS, err));
    OPC_TRY(expect_node(map, "title", OPC_YAML_WORD, &node, err));
    OPC_TRY(expect_node(map, "setting", OPC_YAML_WORD, &node, err));
    printed = opc_yaml_find(map, "printed");
    for (const struct opc_yaml *p = printed ? printed->first : NULL; p; p = p->next)
        n += p->kind == OPC_YAML_WORD;
    if (!printed || (printed->kind != OPC_YAML_WORD && n != columns))
        return opc_fail(err, OPC_EUSER,
                        "line %d: printed is one value, or a list of one for each of %d columns",
                        map->line, columns);
    return OPC_OK;
}

/* Reads and checks the map. */
static int read_sheet(const struct opc_yaml *figure, struct sheet *sheet, struct opc_err *err)
{
    static const char *const KEYS[] = {"of", "columns", "rows", NULL};
    if (!figure)
        return opc_fail(err, OPC_EUSER, "settings needs figure: {of: FILE, columns: [], rows: []}");
    OPC_TRY(opc_learning_keys(figure, "figure", KEYS, err));
    OPC_TRY(expect_node(figure, "of", OPC_YAML_WORD, &sheet->of, err));
    OPC_TRY(expect_node(figure, "columns", OPC_YAML_LIST, &sheet->columns, err));
    OPC_TRY(expect_node(figure, "rows", OPC_YAML_LIST, &sheet->rows, err));
    for (const struct opc_yaml *c = sheet->columns->first; c; c = c->next) {
        if (++sheet->n > COLUMNS)
            return opc_fail(err, OPC_EUSER, "line %d: more than %d columns", c->line, COLUMNS);
        OPC_TRY(check_column(c, err));
    }
    for (const struct opc_yaml *r = sheet->rows->first; r; r = r->next)
        OPC_TRY(check_row(r, sheet->n, err));
    return OPC_OK;
}

static int settings_table_check(const struct opc_yaml *figure, struct opc_err *err)
{
    struct sheet sheet = {0};
    return read_sheet(figure, &sheet, err);
}

/* ---- the settings ---------------------------------------------------------------------------- */

static int assign_setting(struct opc_config *config, const char *key, const char *value,
                          struct opc_err *err)
{
    char text[OPC_TEXT_SIZE + 64];
    snprintf(text, sizeof text, "%s=%s", key, value);
    return opc_config_set(config, text, err);
}

/* Loads the file once for each task of each column and sets task and method. */
static int load_configs(struct sheet *sheet, const char *folder, struct opc_err *err)
{
    char path[OPC_PATH];
    int column = 0, code = opc_analysis_path(folder, sheet->of->text, path, err);
    if (!code)
        code = opc_config_create(&sheet->scratch, err);
    for (const struct opc_yaml *c = sheet->columns->first; c && !code; c = c->next, column++) {
        const char *method = opc_yaml_find(c, "method")->text;
        int task = 0;
        for (const struct opc_yaml *t = opc_yaml_find(c, "tasks")->first; t && !code; t = t->next) {
            struct opc_config **config = &sheet->config[column][task++];
            code = opc_config_load(path, config, err);
            if (!code)
                code = assign_setting(*config, "env.name", t->text, err);
            if (!code)
                code = assign_setting(*config, "opc.transition", method, err);
        }
    }
    return code;
}

static void free_configs(struct sheet *sheet)
{
    for (int c = 0; c < sheet->n; c++)
        for (int t = 0; t < TASKS; t++)
            opc_config_destroy(sheet->config[c][t]);
    opc_config_destroy(sheet->scratch);
}

/* The printed value, written as settings are. */
static int as_setting(struct sheet *sheet, const char *setting, const char *printed, char **out,
                      struct opc_err *err)
{
    const int code = assign_setting(sheet->scratch, setting, printed, err);
    return code ? code : opc_config_get(sheet->scratch, setting, out, err);
}

/* One cell: the value printed and the value set, compared unless the row has a reading. */
static int add_value_cell(struct sheet *sheet, int column, const struct opc_yaml *row,
                          const char *printed, struct opc_table *table, struct opc_err *err)
{
    const char *setting = opc_yaml_find(row, "setting")->text;
    const bool reading = opc_yaml_find(row, "reading") != NULL;
    char *value = NULL, *want = NULL;
    /* The first task's value stands for the column; the others are compared with it. */
    int code = opc_config_get(sheet->config[column][0], setting, &value, err);
    for (int k = 1; k < TASKS && sheet->config[column][k] && !code; k++) {
        char *other;
        code = opc_config_get(sheet->config[column][k], setting, &other, err);
        if (code)
            break;
        sheet->tasks++;
        sheet->apart += strcmp(other, value) != 0;
        opc_free(other);
    }
    if (!code && !reading)
        code = as_setting(sheet, setting, printed, &want, err);
    if (!code) {
        sheet->compared += !reading;
        sheet->equal += !reading && strcmp(value, want) == 0;
        opc_table_word(table, printed);
        opc_table_word(table, value);
    }
    opc_free(value);
    opc_free(want);
    return code;
}

/* One row of the paper's table becomes a row for each column. */
static int add_setting_row(struct sheet *sheet, const struct opc_yaml *row, struct opc_table *table,
                           struct opc_err *err)
{
    const struct opc_yaml *printed = opc_yaml_find(row, "printed");
    const struct opc_yaml *reading = opc_yaml_find(row, "reading");
    const struct opc_yaml *each = printed->kind == OPC_YAML_LIST ? printed->first : NULL;
    const struct opc_yaml *column = sheet->columns->first;
    int code = OPC_OK;
    sheet->readings += reading != NULL;
    for (int k = 0; k < sheet->n && !code; k++, column = column->next) {
        opc_table_word(table, opc_yaml_find(row, "title")->text);
        opc_table_word(table, opc_yaml_find(column, "title")->text);
        opc_table_word(table, opc_yaml_find(row, "setting")->text);
        code = add_value_cell(sheet, k, row, each ? each->text : printed->text, table, err);
        opc_table_word(table, reading ? reading->text : "");
        each = each ? each->next : NULL;
    }
    return code;
}

/* The analysis itself: a table and two claims. */
static int settings_table_make(const struct opc_request *request, const void *settings,
                               struct opc_exhibit *exhibit, struct opc_err *err)
{
    (void)settings;
    struct sheet sheet = {0};
    struct opc_table *table = NULL;
    int code = read_sheet(request->figure, &sheet, err);
    if (!code)
        code = opc_table_create("row,column,setting,printed,value,reading", &table, err);
    if (!code)
        code = load_configs(&sheet, request->folder, err);
    for (const struct opc_yaml *r = code ? NULL : sheet.rows->first; r && !code; r = r->next)
        code = add_setting_row(&sheet, r, table, err);
    if (!code)
        code = opc_exhibit_table(exhibit, NULL, "as printed, and as set", table, err);
    if (!code) {
        opc_exhibit_claim(
            exhibit,
            sheet.equal == sheet.compared ? OPC_VERDICT_SUPPORTED : OPC_VERDICT_NOT_SUPPORTED,
            "The settings are those the paper prints.",
            "%d of %d values are; the words of %d row%s are read as the table says", sheet.equal,
            sheet.compared, sheet.readings, sheet.readings == 1 ? "" : "s");
        opc_exhibit_claim(exhibit,
                          sheet.apart == 0 ? OPC_VERDICT_SUPPORTED : OPC_VERDICT_NOT_SUPPORTED,
                          "They are the same for both engines.",
                          "%d of %d values of a second task differ from those of the first",
                          sheet.apart, sheet.tasks);
    }
    opc_table_free(table);
    free_configs(&sheet);
    return code;
}

const struct opc_analysis opc_settings_table = {
    .name = "settings",
    .help = "settings of a file for tasks and methods, next to what the paper prints",
    .check = settings_table_check,
    .make = settings_table_make,
};
