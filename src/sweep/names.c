/* SPDX-License-Identifier: MIT */
/* Names of the runs of a sweep, which are the names of their directories. sweep.c names each task
 * as it makes it; opc sweep and opc repro call opc_sweep_adopt once they know the directory.
 *
 * Invariant: a directory belongs to a task by its settings; its name only tells where to look. */
#include "base/file.h"
#include "base/text.h"
#include "opc/mem.h"
#include "run/files/rundir.h"
#include "sweep/look.h"
#include "sweep/sweep.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST_NAME = 180 };

/* Would a reader ask what the value is of? Words speak for themselves: corrected, mujoco:hopper. */
static bool needs_its_key(const char *value)
{
    double number;
    return opc_parse_real(value, &number) || strcmp(value, "true") == 0 ||
           strcmp(value, "false") == 0 || *value == '[';
}

/* The name of a task: its values in the order of `vary`, joined by '_', with '-' for everything a
 * directory should not contain: mujoco-hopper_corrected_s1. Numbers, lists and yes or no have their
 * setting before them, learning-rate-0.001; without `keys`, as earlier versions named them, not. */
static void print_name(const struct opc_sweep *sweep, const struct opc_task *task, bool keys,
                       char name[LONGEST_NAME + 1])
{
    static const char PLAIN[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-";
    size_t n = 0;
    for (int k = 0; k < sweep->keys; k++) {
        const char *key = sweep->vary[k].key, *dot = strrchr(key, '.');
        const char *value = opc_task_value(sweep, task, k);
        if (k > 0 && n < LONGEST_NAME)
            name[n++] = '_';
        const bool seed = strcmp(key, "train.seed") == 0;
        if (seed && n < LONGEST_NAME)
            name[n++] = 's';
        if (keys && !seed && needs_its_key(value)) {
            for (const char *at = dot ? dot + 1 : key; *at && n < LONGEST_NAME; at++)
                name[n++] = strchr(PLAIN, *at) ? *at : '-';
            if (n < LONGEST_NAME)
                name[n++] = '-';
        }
        /* a path: without the dots and slashes it begins with */
        if (strchr(value, '/'))
            value += strspn(value, "./"); /* ./arm.so */
        for (const char *at = value; *at && n < LONGEST_NAME; at++)
            if (!strchr("[]", *at) &&
                !(*at == ' ' && at > value && at[-1] == ',')) /* lists: 64-64 */
                name[n++] = strchr(PLAIN, *at) ? *at : '-';
    }
    name[n] = '\0';
    if (n == 0)
        strcpy(name, "run");
    if (name[0] == '.')
        name[0] = '-'; /* it would be hidden */
}

int opc_sweep_name(struct opc_sweep *sweep, struct opc_task *task, struct opc_err *err)
{
    char name[LONGEST_NAME + 1], full[LONGEST_NAME + 16];
    for (int old = 0; old < 2; old++) {
        /* Two tasks may have the same name; later ones get a number. */
        print_name(sweep, task, !old, name);
        snprintf(full, sizeof full, "%s", name);
        for (int again = 2, i = 0; i < sweep->tasks; i++)
            if (strcmp(old ? sweep->task[i].old_name : sweep->task[i].name, full) == 0) {
                snprintf(full, sizeof full, "%s-%d", name, again++);
                i = -1;
            }
        char **keep = old ? &task->old_name : &task->name;
        *keep = opc_strdup(full);
        if (!*keep)
            return opc_fail(err, OPC_ENOMEM, "out of memory for the runs of %s", sweep->path);
    }
    return OPC_OK;
}

void opc_sweep_adopt(struct opc_sweep *sweep, const char *out)
{
    for (int i = 0; i < sweep->tasks; i++) {
        struct opc_task *task = &sweep->task[i];
        char fresh[OPC_PATH], old[OPC_PATH];
        struct opc_look look;
        if (strcmp(task->name, task->old_name) == 0 ||
            opc_path_join(fresh, out, task->name, NULL) ||
            opc_path_join(old, out, task->old_name, NULL) || opc_file_exists(fresh) ||
            !opc_rundir_is_run(old))
            continue;
        /* Only the run of these settings, not one that happens to be called so. */
        opc_look(old, &task->set, &look);
        if (!look.begun)
            continue;
        char *const name = task->name;
        task->name = task->old_name;
        task->old_name = name;
    }
}
