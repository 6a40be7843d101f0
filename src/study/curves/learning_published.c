/* SPDX-License-Identifier: MIT */
/* Published curves behind the panels of a figure. learning_curves.c calls it.
 *
 *     figure:
 *       published:
 *         file: results/published/curves.csv
 *         method: MBPO (official curves)      # or a list of methods
 *         tasks: {"mujoco:hopper": Hopper}    # a panel by its name, and the task in the file */
#include "opc/mem.h"
#include "study/curves/learning.h"
#include "study/exhibit/analysis.h"

#include <string.h>

/* A word that must be there. */
static int expect_word(const struct opc_yaml *map, const char *key, struct opc_err *err)
{
    const struct opc_yaml *node = opc_yaml_find(map, key);
    return node && node->kind == OPC_YAML_WORD
               ? OPC_OK
               : opc_fail(err, OPC_EUSER, "line %d: published has '%s', a word", map->line, key);
}

/* The methods, one as a word or several as a list; how many there are. 0: they are something else,
 * or too many. */
static int read_methods(const struct opc_yaml *map, const char *method[OPC_PUBLISHED_MAX])
{
    const struct opc_yaml *node = opc_yaml_find(map, "method");
    int n = 0;
    if (node && node->kind == OPC_YAML_WORD)
        method[n++] = node->text;
    const bool several = node && node->kind == OPC_YAML_LIST;
    for (node = several ? node->first : NULL; node; node = node->next) {
        if (node->kind != OPC_YAML_WORD || n == OPC_PUBLISHED_MAX)
            return 0;
        method[n++] = node->text;
    }
    return n;
}

int opc_learning_published_check(const struct opc_yaml *map, const char *of, const char *over,
                                 struct opc_err *err)
{
    static const char *const KEYS[] = {"file", "method", "tasks", NULL};
    if (!map)
        return OPC_OK;
    OPC_TRY(opc_learning_keys(map, "published", KEYS, err));
    OPC_TRY(expect_word(map, "file", err));
    const char *method[OPC_PUBLISHED_MAX];
    if (read_methods(map, method) == 0)
        return opc_fail(
            err, OPC_EUSER,
            "line %d: published has 'method', a word or a list of at most %d: [MBPO, SAC]",
            map->line, OPC_PUBLISHED_MAX);
    const struct opc_yaml *tasks = opc_yaml_find(map, "tasks");
    bool good = tasks && tasks->kind == OPC_YAML_MAP;
    for (const struct opc_yaml *t = good ? tasks->first : NULL; t; t = t->next)
        good = good && t->kind == OPC_YAML_WORD;
    if (!good)
        return opc_fail(err, OPC_EUSER, "line %d: published has tasks, a map like {PANEL: Hopper}",
                        map->line);
    /* Published steps include the random ones, so runs have to be counted in the same way. */
    if (strcmp(over, "total_steps") != 0 || strcmp(of, "eval_return") != 0)
        return opc_fail(err, OPC_EUSER,
                        "line %d: published curves are returns over all steps: curve: {of: "
                        "eval_return, over: total_steps}",
                        map->line);
    return OPC_OK;
}

int opc_learning_published(const struct opc_yaml *map, const char *folder,
                           const struct opc_curves *curves, struct opc_published **by_panel,
                           struct opc_exhibit *exhibit, struct opc_err *err)
{
    char path[OPC_PATH];
    if (!map)
        return OPC_OK;
    const char *file = opc_yaml_find(map, "file")->text, *method[OPC_PUBLISHED_MAX];
    const int methods = read_methods(map, method);
    OPC_TRY(opc_analysis_path(folder, file, path, err));
    /* A picture without them is better than none. */
    if (!opc_file_exists(path)) {
        opc_exhibit_note(exhibit, "There is no file %s, so no published curve is drawn.", file);
        return OPC_OK;
    }
    for (int p = 0; p < curves->panels; p++) {
        const struct opc_yaml *task = opc_yaml_find(opc_yaml_find(map, "tasks"), curves->panel[p]);
        if (task)
            OPC_TRY(opc_published_read(path, task->text, methods, method, &by_panel[p], err));
    }
    return OPC_OK;
}
