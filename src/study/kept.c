/* SPDX-License-Identifier: MIT */
/* Runs of which only a merged table was kept become directories again, so that whatever reads runs
 * (figures, tables, other experiments that borrow them) need not know the difference.
 *
 * Invariant: a directory appears under its name as a whole, by a rename. */
#include "study/kept.h"

#include "base/log.h"
#include "opc/mem.h"
#include "run/files/json.h"
#include "study/curves/sweep_runs.h"
#include "study/curves/sweep_tables.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A table of the run, cell by cell as it was. */
static int write_rows(const struct opc_sweep_rows *rows, const char *path, struct opc_err *err)
{
    struct opc_table *table = NULL;
    struct opc_text head = {0};
    for (int k = 0; k < rows->columns; k++)
        opc_text_addf(&head, "%s%s", k ? "," : "", rows->name[k]);
    int code = opc_text_check(&head, err);
    if (!code)
        code = opc_table_create(opc_text_get(&head), &table, err);
    for (size_t i = 0; !code && i < (size_t)rows->rows * (size_t)rows->columns; i++)
        opc_table_word(table, rows->cell[i]);
    if (!code)
        code = opc_table_write(table, path, err);
    opc_table_free(table);
    opc_text_free(&head);
    return code;
}

/* timing.csv, if the tables have it. One that an interrupted restore left may be of other tables.
 */
static int write_timing(const struct opc_sweep_rows *timing, const char *path, struct opc_err *err)
{
    if (timing->rows > 0)
        return write_rows(timing, path, err);
    return unlink(path) && errno != ENOENT ? opc_fail_errno(err, errno, "cannot remove %s", path)
                                           : OPC_OK;
}

static int write_settings(const struct opc_values *set, const char *path, struct opc_err *err)
{
    struct opc_text text = {0};
    opc_values_print(set, &text);
    int code = opc_text_check(&text, err);
    if (!code)
        code = opc_file_write(path, opc_text_get(&text), text.used, err);
    opc_text_free(&text);
    return code;
}

/* meta.json, as far as the tables say who made the run; `restored` tells it from one that was made
 * here. */
static int write_meta(const struct opc_sweep_run *run, const struct opc_values *set,
                      const char *path, struct opc_err *err)
{
    struct opc_json *json = opc_json_begin();
    opc_json_bool(json, "restored", true);
    opc_json_text(json, "opc", *run->version ? run->version : NULL);
    opc_json_text(json, "revision", *run->revision ? run->revision : NULL);
    opc_json_text(json, "env", set->env.name);
    opc_json_whole(json, "seed", set->train.seed);
    opc_json_real(json, "minutes", run->minutes);
    return opc_json_write(json, path, err);
}

/* result.json and status.json have the same keys here; each reader takes what it knows. */
static int write_end(const struct opc_sweep_run *run, const struct opc_values *set,
                     const char *path, struct opc_err *err)
{
    struct opc_json *json = opc_json_begin();
    opc_json_text(json, "state", "done");
    opc_json_text(json, "env", set->env.name);
    opc_json_whole(json, "seed", set->train.seed);
    opc_json_whole(json, "epoch", run->epochs);
    opc_json_whole(json, "epochs", run->epochs);
    opc_json_real(json, "env_steps", run->end.env_steps);
    opc_json_real(json, "total_steps", run->end.total_steps);
    opc_json_real(json, "eval_return", run->end.last);
    return opc_json_write(json, path, err);
}

/* All files of a run into a directory of its own. */
static int write_run(const struct opc_sweep_run *run, const struct opc_values *set, const char *dir,
                     struct opc_err *err)
{
    char path[OPC_PATH];
    OPC_TRY(opc_make_directories(dir, err));
    OPC_TRY(opc_path_join(path, dir, "config.yaml", err));
    OPC_TRY(write_settings(set, path, err));
    OPC_TRY(opc_path_join(path, dir, "metrics.csv", err));
    OPC_TRY(write_rows(&run->metrics, path, err));
    OPC_TRY(opc_path_join(path, dir, "timing.csv", err));
    OPC_TRY(write_timing(&run->timing, path, err));
    OPC_TRY(opc_path_join(path, dir, "meta.json", err));
    OPC_TRY(write_meta(run, set, path, err));
    OPC_TRY(opc_path_join(path, dir, "status.json", err));
    OPC_TRY(write_end(run, set, path, err));
    OPC_TRY(opc_path_join(path, dir, "result.json", err));
    return write_end(run, set, path, err);
}

/* One run, under another name until it is whole. What an interrupted restore left there is
 * overwritten. */
static int restore_run(const struct opc_experiment *experiment, const struct opc_task *task,
                       const struct opc_sweep_run *run, struct opc_err *err)
{
    char path[OPC_PATH], part[OPC_PATH];
    OPC_TRY(opc_schedule_path(experiment->runs_dir, task, "", path, err));
    OPC_TRY(opc_schedule_path(experiment->runs_dir, task, ".part", part, err));
    OPC_TRY(write_run(run, &task->set, part, err));
    if (rename(part, path))
        return opc_fail_errno(err, errno, "cannot rename %s to %s", part, path);
    return OPC_OK;
}

/* The runs that the tables in `folder` have. Nothing is read of OUT. */
static int read_kept(const struct opc_sweep *sweep, const char *folder, enum opc_sweep_match how,
                     struct opc_sweep_runs **out, struct opc_err *err)
{
    char **none = opc_alloc((size_t)sweep->tasks + 1, sizeof *none);
    bool *complete = opc_alloc((size_t)sweep->tasks + 1, sizeof *complete);
    int code = none && complete ? opc_sweep_runs_read(sweep, none, complete, out, err)
                                : opc_fail(err, OPC_ENOMEM, "not enough memory for kept runs");
    if (!code && (code = opc_sweep_runs_add(*out, folder, how, err))) {
        opc_sweep_runs_free(*out);
        *out = NULL;
    }
    opc_free(none);
    opc_free(complete);
    return code;
}

/* Restores what the tables in `folder` have of the experiment; adds to *restored. */
static int restore_folder(const struct opc_experiment *experiment, const char *folder,
                          enum opc_sweep_match how, int *restored, struct opc_err *err)
{
    struct opc_sweep_runs *kept = NULL;
    int code = read_kept(experiment->runs, folder, how, &kept, err);
    for (int i = 0; i < experiment->runs->tasks && !code; i++) {
        const struct opc_task *task = &experiment->runs->task[i];
        struct opc_look look;
        if (!kept->run[i].complete || kept->run[i].metrics.rows == 0)
            continue;
        opc_schedule_look(experiment->runs_dir, task, &look);
        if (look.begun || look.state != OPC_STATE_MISSING)
            continue;
        code = restore_run(experiment, task, &kept->run[i], err);
        *restored += !code;
    }
    opc_sweep_runs_free(kept);
    return code;
}

/* The tables of other experiments: those in folder that have identities. */
static int restore_others(const struct opc_experiment *experiment, const char *folder,
                          int *restored, struct opc_err *err)
{
    if (!opc_sweep_tables_have_identities(folder))
        return OPC_OK;
    return restore_folder(experiment, folder, OPC_MATCH_SETTINGS, restored, err);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of the folders in DIR but `own`, sorted. */
static int list_folders(const char *dir, const char *own, char ***out, int *n, struct opc_err *err)
{
    enum { CAPACITY = 10000 };
    DIR *d = opendir(dir);
    if (!d)
        return opc_fail_errno(err, errno, "cannot read %s", dir);
    char **name = opc_alloc(CAPACITY, sizeof *name), path[OPC_PATH];
    int code = name ? OPC_OK : opc_fail(err, OPC_ENOMEM, "not enough memory for kept runs");
    *n = 0;
    for (struct dirent *e; !code && *n < CAPACITY && (e = readdir(d));) {
        if (e->d_name[0] == '.' || strcmp(e->d_name, own) == 0 ||
            opc_path_join(path, dir, e->d_name, NULL) || !opc_sweep_tables_are(path))
            continue;
        if (!(name[*n] = opc_strdup(e->d_name)))
            code = opc_fail(err, OPC_ENOMEM, "not enough memory for kept runs");
        *n += !code;
    }
    closedir(d);
    if (!code)
        qsort(name, (size_t)*n, sizeof *name, by_name);
    *out = name;
    return code;
}

int opc_experiment_restore(const struct opc_experiment *experiment, const char *dir, int *restored,
                           struct opc_err *err)
{
    char path[OPC_PATH], **name = NULL;
    int n = 0;
    *restored = 0;
    if (!experiment->runs)
        return OPC_OK;
    if (experiment->analysis->needs_models) {
        opc_log(OPC_LEVEL_WARN,
                "%s looks into the models of its runs, which the tables in %s do not have",
                experiment->name, dir);
        return OPC_OK;
    }
    /* Its own tables first, then those that DIR has itself, then those of other experiments. */
    const char *own = opc_path_name(experiment->runs_dir);
    int code = opc_path_join(path, dir, own, err);
    if (!code && opc_sweep_tables_are(path))
        code = restore_folder(experiment, path, OPC_MATCH_ANY, restored, err);
    if (!code && opc_sweep_tables_are(dir))
        code = restore_others(experiment, dir, restored, err);
    if (!code)
        code = list_folders(dir, own, &name, &n, err);
    for (int i = 0; i < n && !code; i++) {
        code = opc_path_join(path, dir, name[i], err);
        if (!code)
            code = restore_others(experiment, path, restored, err);
    }
    for (int i = 0; i < n; i++)
        opc_free(name[i]);
    opc_free(name);
    return code;
}
