/* SPDX-License-Identifier: MIT */
/* Pictures, films and tables of a run, or of a directory of runs: the list of them, and one of
 * them. Called by web/api.c.
 *
 * Invariant: only a name that the list has is opened, and only a file, without following a link, so
 * a request cannot reach anything else. What is sent came from a run and is marked foreign. */
#include "base/file.h"
#include "opc/mem.h"
#include "run/files/json.h"
#include "run/files/rundir.h"
#include "web/api.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILES = 500, NAME = 512 };

struct kind {
    const char *end, *kind, *type;
};
/* What is shown; other files of a run are for programs. */
static const struct kind KINDS[] = {
    {".svg", "picture", "image/svg+xml"},
    {".png", "picture", "image/png"},
    {".gif", "picture", "image/gif"},
    {".mp4", "film", "video/mp4"},
    {".webm", "film", "video/webm"},
    {".csv", "table", "text/plain; charset=utf-8"},
    {NULL, NULL, NULL},
};

static const struct kind *kind_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    for (const struct kind *k = KINDS; dot && k->end; k++)
        if (strcmp(dot, k->end) == 0)
            return k;
    return NULL;
}

struct list {
    char (*name)[NAME]; /* [MAX_FILES] */
    int n;
};

/* Adds the files of dir/folder that can be shown, and with `deeper` those of the folders in it that
 * are no runs. */
static void list_folder(struct list *list, const char *dir, const char *folder, bool deeper)
{
    char path[OPC_PATH];
    DIR *d = opc_path_join(path, dir, folder, NULL) ? NULL : opendir(*folder ? path : dir);
    for (struct dirent *e; d && list->n < MAX_FILES && (e = readdir(d));) {
        char name[NAME], inner[OPC_PATH];
        struct stat st;
        const int n = snprintf(name, sizeof name, "%s%s%s", folder, *folder ? "/" : "", e->d_name);
        if (e->d_name[0] == '.' || n >= NAME || opc_path_join(inner, dir, name, NULL) ||
            lstat(inner, &st))
            continue;
        if (S_ISREG(st.st_mode) && kind_of(name))
            memcpy(list->name[list->n++], name, sizeof name);
        else if (S_ISDIR(st.st_mode) && deeper && !opc_rundir_is_run(inner))
            list_folder(list, dir, name, false);
    }
    if (d)
        closedir(d);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* All that can be shown, in the order of the names. */
static bool make_list(const char *dir, struct list *list)
{
    *list = (struct list){.name = opc_alloc(MAX_FILES, sizeof *list->name)};
    if (!list->name)
        return false;
    list_folder(list, dir, "", true);
    if (list->n > 0)
        qsort(list->name, (size_t)list->n, sizeof *list->name, by_name);
    return true;
}

void opc_web_files(const char *dir, struct opc_web_answer *out)
{
    struct list list;
    if (!make_list(dir, &list)) {
        opc_web_fail(out, 503, "out of memory");
        return;
    }
    opc_text_add(&out->own, "[");
    for (int i = 0; i < list.n; i++) {
        opc_text_addf(&out->own, "%s{\"kind\": \"%s\", \"name\": ", i ? ",\n" : "",
                      kind_of(list.name[i])->kind);
        opc_json_add_quoted(&out->own, list.name[i]);
        opc_text_add(&out->own, "}");
    }
    opc_text_add(&out->own, "]");
    opc_free(list.name);
}

void opc_web_file(const char *dir, const char *name, struct opc_web_answer *out)
{
    char path[OPC_PATH];
    struct list list;
    struct stat st;
    bool listed = false;
    if (make_list(dir, &list))
        for (int i = 0; i < list.n; i++)
            listed = listed || strcmp(list.name[i], name) == 0;
    opc_free(list.name);
    /* Between the list and here it may have become something else; then it is not opened. */
    const int fd = listed && !opc_path_join(path, dir, name, NULL)
                       ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
                       : -1;
    if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        if (fd >= 0)
            close(fd);
        opc_web_fail(out, 404, "there is no such file");
        return;
    }
    out->type = kind_of(name)->type;
    out->fd = fd;
    out->fd_size = (size_t)st.st_size;
    out->foreign = true;
}
