/* SPDX-License-Identifier: MIT */
/* Runs that several figures have in common are made once. Figures 3, 5, 11 and 12 ask for the same
 * runs under different names; the first one makes them, and in the directories of the others they
 * are symbolic links. repro.c calls this before it starts what is missing.
 *
 * Invariant: only complete runs are linked, so that no two experiments ever write to one run. */
#include "study/borrow.h"

#include "opc/mem.h"
#include "run/files/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A complete run of another experiment. */
struct found {
    char link[600]; /* from the directory of an experiment: "../fig3/mujoco-hopper_s1" */
    uint32_t hash;  /* of its settings; the number of epochs is not part of it */
    int epochs;
    bool has_policy; /* false: it was restored from a table */
};

struct found_list {
    int n, capacity;
    struct found *at;
};

/* Doubles the list when it is full. */
static int make_space(struct found_list *list, struct opc_err *err)
{
    if (list->n < list->capacity)
        return OPC_OK;
    const int capacity = list->capacity ? 2 * list->capacity : 64;
    struct found *at = opc_alloc((size_t)capacity, sizeof *at);
    if (!at)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the runs of other experiments");
    if (list->n)
        memcpy(at, list->at, (size_t)list->n * sizeof *at);
    opc_free(list->at);
    list->at = at;
    list->capacity = capacity;
    return OPC_OK;
}

/* Adds a run if it is complete and a directory itself: a link leads to a run that is found, too. */
static int add_run(const char *dir, const char *experiment, const char *name,
                   struct found_list *list, struct opc_err *err)
{
    char path[OPC_PATH];
    struct stat info;
    struct opc_config *config;
    if (opc_path_join(path, dir, name, NULL) || lstat(path, &info) || !S_ISDIR(info.st_mode) ||
        !opc_rundir_is_run(path) || !opc_rundir_has(path, "result.json") ||
        opc_config_of_run(path, &config, NULL))
        return OPC_OK;
    const uint32_t hash = opc_config_hash(&config->set);
    const int epochs = config->set.train.epochs;
    opc_config_destroy(config);
    OPC_TRY(make_space(list, err));
    struct found *found = &list->at[list->n];
    *found = (struct found){
        .hash = hash, .epochs = epochs, .has_policy = opc_rundir_has(path, "policy.opc")};
    /* A name that is too long to be linked to is made again. */
    const int length = snprintf(found->link, sizeof found->link, "../%s/%s", experiment, name);
    list->n += length > 0 && length < (int)sizeof found->link;
    return OPC_OK;
}

/* Adds the runs of one experiment. */
static int add_runs(const char *root, const char *experiment, struct found_list *list,
                    struct opc_err *err)
{
    char dir[OPC_PATH];
    int code = OPC_OK;
    if (opc_path_join(dir, root, experiment, NULL))
        return OPC_OK;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && !code && (e = readdir(d));)
        if (e->d_name[0] != '.')
            code = add_run(dir, experiment, e->d_name, list, err);
    if (d)
        closedir(d);
    return code;
}

/* Links one run, if it is not there and another experiment has it. */
static int borrow_run(const struct opc_experiment *experiment, const struct opc_task *task,
                      const struct found_list *list, int *borrowed, struct opc_err *err)
{
    char path[OPC_PATH];
    struct stat info;
    struct opc_look look;
    OPC_TRY(opc_schedule_path(experiment->runs_dir, task, "", path, err));
    /* A link whose run was removed leads nowhere and would be in the way. */
    if (lstat(path, &info) == 0) {
        if (!S_ISLNK(info.st_mode) || stat(path, &info) == 0)
            return OPC_OK;
        if (unlink(path))
            return opc_fail_errno(err, errno, "cannot remove %s, which leads nowhere", path);
    }
    const uint32_t hash = opc_config_hash(&task->set);
    for (int i = 0; i < list->n; i++) {
        if (list->at[i].hash != hash || list->at[i].epochs != task->set.train.epochs ||
            (experiment->analysis->needs_models && !list->at[i].has_policy))
            continue;
        OPC_TRY(opc_make_directories(experiment->runs_dir, err));
        if (symlink(list->at[i].link, path))
            return opc_fail_errno(err, errno, "cannot link %s to %s", path, list->at[i].link);
        /* Through the link, as the sweep will see it. */
        opc_look(path, &task->set, &look);
        if (look.state == OPC_STATE_DONE) {
            (*borrowed)++;
            return OPC_OK;
        }
        (void)unlink(path);
    }
    return OPC_OK;
}

int opc_experiment_borrow(const struct opc_experiment *experiment, int *borrowed,
                          struct opc_err *err)
{
    char root[OPC_PATH];
    const char *own = opc_path_name(experiment->runs_dir);
    struct found_list list = {0};
    *borrowed = 0;
    OPC_TRY(opc_path_join(root, experiment->out, "runs", err));
    /* Runs of opc sweep are somewhere else, with nothing beside them. */
    char expected[OPC_PATH];
    OPC_TRY(opc_path_join(expected, root, own, err));
    if (!experiment->runs || strcmp(expected, experiment->runs_dir) != 0)
        return OPC_OK;
    DIR *d = opendir(root);
    if (!d)
        return OPC_OK;
    int code = OPC_OK;
    for (struct dirent *e; !code && (e = readdir(d));)
        if (e->d_name[0] != '.' && strcmp(e->d_name, own) != 0)
            code = add_runs(root, e->d_name, &list, err);
    closedir(d);
    for (int i = 0; i < experiment->runs->tasks && !code; i++)
        code = borrow_run(experiment, &experiment->runs->task[i], &list, borrowed, err);
    opc_free(list.at);
    return code;
}
