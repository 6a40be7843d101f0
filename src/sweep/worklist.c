/* SPDX-License-Identifier: MIT */
/* Lists of runs that a scheduler has taken: written by handover.c, read within its jobs (`opc sweep
 * LIST work`) and by `status`.
 *
 * Invariant: a list is written once, before the batch is submitted, and never changed: a job that
 * is started days later, or again, finds the names it was submitted with. */
#include "sweep/worklist.h"

#include "opc/mem.h"
#include "opc/train.h"
#include "sweep/schedule_private.h"

#include <stdio.h>
#include <string.h>

enum { MAX_BYTES = 1 << 22, MAX_NAMES = 100000, MAX_PACK = 1000000 };

int opc_worklist_write(const char *path, int pack, int n, const char *const *name,
                       struct opc_err *err)
{
    struct opc_text text = {0};
    opc_text_addf(&text, "pack %d\n", pack);
    for (int i = 0; i < n; i++)
        opc_text_addf(&text, "%s\n", name[i]);
    int code = opc_text_check(&text, err);
    if (!code)
        code = opc_file_write(path, opc_text_get(&text), text.used, err);
    opc_text_free(&text);
    return code;
}

void opc_worklist_free(struct opc_worklist *list)
{
    for (int i = 0; i < list->n; i++)
        opc_free(list->name[i]);
    opc_free(list->name);
    *list = (struct opc_worklist){0};
}

/* The lines after the first, each a name of its own. */
static int read_names(char *at, struct opc_worklist *list, struct opc_err *err)
{
    list->name = opc_alloc(MAX_NAMES, sizeof *list->name);
    bool full = !list->name;
    for (char *end; !full && list->n < MAX_NAMES && (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        full = !(list->name[list->n] = opc_strdup(at));
        list->n += !full;
    }
    return full ? opc_fail(err, OPC_ENOMEM, "not enough memory for a list of runs") : OPC_OK;
}

int opc_worklist_read(const char *path, struct opc_worklist *list, struct opc_err *err)
{
    char *text;
    *list = (struct opc_worklist){0};
    OPC_TRY(opc_file_read(path, MAX_BYTES, &text, NULL, err));
    char *end = strchr(text, '\n');
    int code = OPC_OK;
    if (end)
        *end = '\0';
    if (!end || strncmp(text, "pack ", 5) != 0 || !opc_parse_int(text + 5, &list->pack) ||
        list->pack < 1 || list->pack > MAX_PACK)
        code =
            opc_fail(err, OPC_EUSER,
                     "%s is no list of runs: its first line is not 'pack N'; 'opc sweep FILE run "
                     "--launcher NAME' writes such lists",
                     path);
    else
        code = read_names(end + 1, list, err);
    opc_free(text);
    if (code)
        opc_worklist_free(list);
    return code;
}

/* The settings that the run was submitted with: its own, once it has begun, else those in the
 * queue. */
static int read_settings(const char *out, const char *name, struct opc_values *set,
                         struct opc_err *err)
{
    char dir[OPC_PATH], queued[OPC_PATH], own[OPC_PATH];
    struct opc_config *config;
    OPC_TRY(opc_path_join(dir, out, name, err));
    OPC_TRY(opc_path_join(own, dir, "config.yaml", err));
    OPC_TRY(opc_schedule_queue_path(out, name, queued, err));
    if (opc_file_exists(own))
        OPC_TRY(opc_config_of_run(dir, &config, err));
    else if (opc_file_exists(queued))
        OPC_TRY(opc_config_load(queued, &config, err));
    else
        return opc_fail(err, OPC_EUSER,
                        "the settings of %s are gone: neither %s nor %s is there; submit it again",
                        name, own, queued);
    *set = config->set;
    opc_config_destroy(config);
    return OPC_OK;
}

/* Names first to last of the list become the tasks of a sweep that varies nothing. */
static int make_sweep(const char *path, const struct opc_worklist *list, int first, int last,
                      const char *out, struct opc_sweep *sweep, struct opc_err *err)
{
    sweep->path = opc_strdup(path);
    sweep->task = opc_alloc((size_t)(last - first), sizeof *sweep->task);
    if (!sweep->path || !sweep->task)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the runs of %s", path);
    for (int i = first; i < last; i++) {
        struct opc_task *task = &sweep->task[sweep->tasks];
        task->group = task->index = i + 1;
        task->name = opc_strdup(list->name[i]);
        if (!task->name)
            return opc_fail(err, OPC_ENOMEM, "not enough memory for the runs of %s", path);
        sweep->tasks++; /* opc_sweep_close frees it from here on */
        OPC_TRY(read_settings(out, task->name, &task->set, err));
    }
    return OPC_OK;
}

int opc_worklist_open(const char *path, int index, struct opc_sweep **result, char out[OPC_PATH],
                      struct opc_err *err)
{
    char folder[OPC_PATH];
    struct opc_worklist list;
    OPC_TRY(opc_path_parent(folder, path, err));
    OPC_TRY(opc_path_parent(out, folder, err));
    OPC_TRY(opc_worklist_read(path, &list, err));
    const int tasks = (list.n + list.pack - 1) / list.pack, first = (index - 1) * list.pack;
    struct opc_sweep *sweep = opc_alloc(1, sizeof *sweep);
    int code = OPC_OK;
    if (!sweep)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for the runs of %s", path);
    else if (index < 1 || index > tasks)
        code = opc_fail(err, OPC_EUSER, "--index = %d: %s has tasks 1 to %d", index, path, tasks);
    else
        code = make_sweep(path, &list, first,
                          first + list.pack < list.n ? first + list.pack : list.n, out, sweep, err);
    opc_worklist_free(&list);
    if (code)
        opc_sweep_close(sweep);
    else
        *result = sweep;
    return code;
}
