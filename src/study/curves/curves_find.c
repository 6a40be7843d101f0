/* SPDX-License-Identifier: MIT */
/* Which runs there are: in directories that are named, in directories of them, and in the tables of
 * a merge. opc_curves_read calls it.
 *
 * Invariant: a directory counts once, however often and by whatever name it is given, and so does a
 * run beside its copy. Runs have the order in which they were named, those of one directory that of
 * their own names. */
#include "base/file.h"
#include "base/log.h"
#include "opc/mem.h"
#include "run/files/rundir.h"
#include "study/curves/curves_private.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void drop_last(struct opc_curves *curves)
{
    opc_curves_run_free(&curves->run[--curves->runs]);
}

/* The run that the last one is a copy of: the same settings, seed and values, to the bit, which two
 * trainings on different machines have, too, though not at the same minutes. Counted twice, it
 * would narrow every interval. */
static const struct opc_curve_run *find_original(const struct opc_curves_reading *reading)
{
    const struct opc_curves *curves = reading->curves;
    const bool timed = opc_curves_over_minutes(reading->plan);
    const struct opc_curve_run *copy = &curves->run[curves->runs - 1];
    const size_t bytes = (size_t)copy->n * sizeof *copy->raw;
    /* Runs of other settings may have equal returns, too: the highest there are. */
    for (int i = 0; i < curves->runs - 1 && copy->n > 0; i++) {
        const struct opc_curve_run *run = &curves->run[i];
        if (run->seed == copy->seed && run->n == copy->n && !strcmp(run->panel, copy->panel) &&
            !strcmp(run->rest, copy->rest) &&
            (!run->identity || !copy->identity || run->identity == copy->identity) &&
            (timed || !memcmp(run->x, copy->x, bytes)) && !memcmp(run->raw, copy->raw, bytes))
            return run;
    }
    return NULL;
}

/* Adds the run in a directory, unless it is not wanted, the same directory was named before or it
 * holds a copy of a run that is there. */
static int add_run(struct opc_curves_reading *reading, const char *dir, struct opc_err *err)
{
    struct opc_curves *curves = reading->curves;
    struct stat st;
    bool wanted;
    if (stat(dir, &st))
        return opc_fail_errno(err, errno, "cannot look into %s", dir);
    /* A directory may be named twice, or reached through a link. */
    for (int i = 0; i < curves->runs; i++)
        if (curves->run[i].device == st.st_dev && curves->run[i].inode == st.st_ino)
            return OPC_OK; /* named before, perhaps otherwise */
    if (curves->runs == OPC_CURVES_MAX)
        return opc_fail(err, OPC_EUSER, "more than %d runs", OPC_CURVES_MAX);
    struct opc_curve_run *run = &curves->run[curves->runs++];
    run->device = st.st_dev;
    run->inode = st.st_ino;
    run->dir = opc_strdup(dir);
    if (!run->dir)
        return opc_curves_no_memory(err);
    OPC_TRY(opc_curves_run_read(reading, run, &wanted, err));
    const struct opc_curve_run *original = wanted ? find_original(reading) : NULL;
    if (original)
        opc_log(OPC_LEVEL_WARN, "%s is a copy of %s and is left out", dir, original->dir);
    if (original || !wanted)
        drop_last(curves);
    return OPC_OK;
}

/* Adds run i of the tables, if it is wanted. */
static int add_table_run(struct opc_curves_reading *reading, const struct opc_curves_origin *from,
                         const struct stat *st, struct opc_err *err)
{
    struct opc_curves *curves = reading->curves;
    const struct opc_task *task = &from->tables->sweep->task[from->i];
    struct opc_text name = {0};
    bool wanted;
    if (curves->runs == OPC_CURVES_MAX)
        return opc_fail(err, OPC_EUSER, "more than %d runs", OPC_CURVES_MAX);
    struct opc_curve_run *run = &curves->run[curves->runs++];
    run->device = st->st_dev;
    run->inode = st->st_ino;
    opc_text_addf(&name, "%s: %s", from->tables->path, task->name);
    OPC_TRY(opc_curves_keep_text(&name, &run->dir, err));
    OPC_TRY(opc_curves_run_take(reading, run, from, &wanted, err));
    if (!wanted)
        drop_last(curves);
    return OPC_OK;
}

/* Adds the runs in the tables of a merge, unless the same directory was named before. */
static int add_tables(struct opc_curves_reading *reading, const char *dir, struct opc_err *err)
{
    const struct opc_curves *curves = reading->curves;
    struct opc_sweep_tables tables;
    struct stat st;
    char named[OPC_PATH];
    if (stat(dir, &st))
        return opc_fail_errno(err, errno, "cannot look into %s", dir);
    for (int i = 0; i < curves->runs; i++)
        if (curves->run[i].device == st.st_dev && curves->run[i].inode == st.st_ino)
            return OPC_OK;
    /* The name that a label may have, without the slash of a completed word. */
    snprintf(named, sizeof named, "%s", dir);
    for (size_t n = strlen(named); n > 1 && named[n - 1] == '/'; n--)
        named[n - 1] = '\0';
    OPC_TRY(opc_sweep_tables_open(dir, &tables, err));
    int code = OPC_OK;
    for (int i = 0; i < tables.sweep->tasks && !code; i++)
        code = add_table_run(reading, &(struct opc_curves_origin){&tables, i, named}, &st, err);
    if (!code)
        opc_curves_only_warn(reading, &tables);
    opc_sweep_tables_close(&tables);
    return code;
}

/* Adds a run of a directory of runs: one that cannot be read is left out with a warning, the reason
 * stays in err. */
static int try_run(struct opc_curves_reading *reading, const char *dir, int *left_out,
                   struct opc_err *err)
{
    struct opc_curves *curves = reading->curves;
    const int before = curves->runs, code = add_run(reading, dir, err);
    if (code != OPC_EDAMAGED && code != OPC_EUSER)
        return code;
    if (curves->runs > before)
        drop_last(curves);
    opc_log(OPC_LEVEL_WARN, "%s; it is left out", err->text);
    ++*left_out;
    return OPC_OK;
}

/* Whether a path is a regular file. */
static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* For qsort over an array of paths. */
static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Adds the runs in a directory, in the order of their names; if there are none, those in its
 * tables. */
static int add_inner(struct opc_curves_reading *reading, const char *dir, struct opc_err *err)
{
    DIR *d = opendir(dir);
    if (!d && errno != ENOENT && errno != ENOTDIR)
        return opc_fail_errno(err, errno, "cannot look into %s", dir);
    if (!d)
        return opc_fail(err, OPC_EUSER,
                        errno == ENOENT ? "there is no directory %s"
                                        : "%s is neither a run nor a directory of runs",
                        dir);
    char(*inner)[OPC_PATH] = opc_alloc(OPC_CURVES_MAX, sizeof *inner);
    int n = 0, left_out = 0, code = inner ? OPC_OK : opc_curves_no_memory(err);
    /* Collect the names first: readdir has no order. */
    for (struct dirent *e; !code && n < OPC_CURVES_MAX && (e = readdir(d));)
        if (e->d_name[0] != '.' && !opc_path_join(inner[n], dir, e->d_name, NULL) &&
            opc_rundir_is_run(inner[n]))
            n++;
    closedir(d);
    if (inner)
        qsort(inner, (size_t)n, sizeof *inner, by_name);
    for (int i = 0; i < n && !code; i++)
        code = try_run(reading, inner[i], &left_out, err);
    opc_free(inner);
    if (!code && n > 0 && left_out == n)
        return err ? (int)err->code : OPC_EUSER; /* with the reason of the last one */
    if (!code && n == 0 && opc_sweep_tables_are(dir))
        return add_tables(reading, dir, err);
    if (!code && n == 0)
        code =
            opc_fail(err, OPC_EUSER,
                     "%s holds no run: neither it nor what is in it has a config.yaml, and there "
                     "is no merged.csv of opc sweep",
                     dir);
    return code;
}

int opc_curves_find(struct opc_curves_reading *reading, int n, char *const dir[],
                    struct opc_err *err)
{
    int code = OPC_OK;
    int files = 0; /* logs of a sweep lie next to its runs, and a shell's star names them, too */
    /* Each argument is a run, a directory of runs, or a file that is skipped. */
    for (int i = 0; i < n && !code; i++) {
        if (opc_rundir_is_run(dir[i]))
            code = add_run(reading, dir[i], err);
        else if (n > 1 && is_file(dir[i]))
            files++;
        else
            code = add_inner(reading, dir[i], err);
    }
    if (!code && files)
        opc_log(OPC_LEVEL_WARN, "%d of the names are files, not directories, and are left out",
                files);
    return code;
}
