/* SPDX-License-Identifier: MIT */
/* Finds the run directories below directories, for opc status, opc runs and opc serve.
 *
 * Invariant: the order is that of the names, never of the file system, so that the same command
 * prints the same list. */
#include "base/file.h"
#include "opc/mem.h"
#include "run/files/rundir.h"
#include "run/files/summary.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

/* OUT/runs/NAME/RUN of opc repro is three levels below its directory. */
enum { MAX_RUNS = 100000, MAX_DEPTH = 5 };

static int add_run(struct opc_found *found, const char *dir, struct opc_err *err)
{
    if (found->n == MAX_RUNS)
        return opc_fail(err, OPC_EUSER, "there are more than %d runs; name fewer directories",
                        MAX_RUNS);
    if (found->n == found->capacity) {
        const int capacity = found->capacity ? 2 * found->capacity : 64;
        char **grown = opc_alloc((size_t)capacity, sizeof *grown);
        if (!grown)
            return opc_fail(err, OPC_ENOMEM, "out of memory for the runs");
        if (found->n > 0)
            memcpy(grown, found->dir, (size_t)found->n * sizeof *grown);
        opc_free(found->dir);
        found->dir = grown;
        found->capacity = capacity;
    }
    found->dir[found->n] = opc_strdup(dir);
    if (!found->dir[found->n])
        return opc_fail(err, OPC_ENOMEM, "out of memory for the runs");
    found->n++;
    return OPC_OK;
}

/* Adds dir if it is a run, else the runs in it. Whether an entry is a directory is not asked first:
 * a file cannot be opened as one. */
static int find_runs(struct opc_found *found, const char *dir, int depth, struct opc_err *err)
{
    if (opc_rundir_is_run(dir))
        return add_run(found, dir, err);
    DIR *d = depth > 0 ? opendir(dir) : NULL;
    if (!d)
        return OPC_OK;
    int code = OPC_OK;
    for (struct dirent *e; !code && (e = readdir(d));) {
        char path[OPC_PATH];
        if (e->d_name[0] != '.' && !opc_path_join(path, dir, e->d_name, NULL))
            code = find_runs(found, path, depth - 1, err);
    }
    closedir(d);
    return code;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int opc_found_add_any(struct opc_found *found, const char *word, struct opc_err *err)
{
    const int before = found->n;
    if (!opc_is_directory(word))
        return opc_fail(err, OPC_EUSER,
                        !*word                  ? "the name of a directory is empty"
                        : opc_file_exists(word) ? "%s is a file; name the run's directory"
                                                : "there is no directory %s",
                        word);
    OPC_TRY(find_runs(found, word, MAX_DEPTH, err));
    if (found->n > before)
        qsort(found->dir + before, (size_t)(found->n - before), sizeof *found->dir, by_path);
    return OPC_OK;
}

int opc_found_add(struct opc_found *found, const char *word, struct opc_err *err)
{
    const int before = found->n;
    OPC_TRY(opc_found_add_any(found, word, err));
    return found->n > before
               ? OPC_OK
               : opc_fail(err, OPC_EUSER,
                          "%s holds no run: neither it nor what is in it has a config.yaml", word);
}

void opc_found_free(struct opc_found *found)
{
    for (int i = 0; i < found->n; i++)
        opc_free(found->dir[i]);
    opc_free(found->dir);
    *found = (struct opc_found){0};
}
