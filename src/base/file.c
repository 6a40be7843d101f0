/* SPDX-License-Identifier: MIT */
/* Files that are whole or not there, and paths. Everything that a run, a sweep or an exhibit keeps
 * is written through opc_save_*.
 *
 * Invariant: the file under its own name is either the old one or the new one, also after a power
 * cut. That takes this order: write the temporary file, fsync it, rename it, fsync its directory.
 */
#define _XOPEN_SOURCE 700 /* realpath */
#include "base/file.h"

#include "base/fault.h"
#include "opc/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER = 1 << 16, TRIES = 100 }; /* bytes; names tried for a temporary file */

struct opc_save {
    int fd;      /* -1: closed */
    int failure; /* errno of the first write that failed */
    size_t used; /* bytes in the buffer */
    char path[OPC_PATH], temporary[OPC_PATH];
    unsigned char buffer[BUFFER];
};

bool opc_write_all(int fd, const void *data, size_t n)
{
    const unsigned char *p = data;
    while (n > 0) {
        /* A short count is not an error and does not set errno: go on until a call fails. */
        const ssize_t done = opc_fault_hits_system() ? -1 : write(fd, p, n);
        if (done < 0 && errno != EINTR)
            return false;
        if (done > 0) {
            p += done;
            n -= (size_t)done;
        }
    }
    return true;
}

/* Next to the file itself, because rename works only within one file system. */
static int open_temporary(struct opc_save *s)
{
    /* A file left by a killed process of the same number may be in the way: try the next name. */
    for (int i = 0; i < TRIES; i++) {
        const int n = snprintf(s->temporary, OPC_PATH, "%s.%ld.%d.tmp", s->path, (long)getpid(), i);
        if (n >= OPC_PATH) {
            errno = ENAMETOOLONG;
            return -1;
        }
        if (opc_fault_hits_system())
            return -1;
        const int fd = open(s->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* Two names of one file, links and mounts included. */
static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The path of the file that a link leads to. A file without a name, as /proc/self/fd may lead to,
 * can be opened through the link but not replaced. */
static int follow_link(const char *path, const struct stat *target, char out[OPC_PATH],
                       struct opc_err *err)
{
    /* The text of the link may be stale or no path at all ("x (deleted)"): compare the inodes. */
    struct stat st;
    char *name = realpath(path, NULL);
    const int why = name ? ENOENT : errno;
    const bool found = name && stat(name, &st) == 0 && same_file(&st, target);
    if (found)
        snprintf(out, OPC_PATH, "%s", name);
    free(name);
    if (found)
        return OPC_OK;
    return why == ENOENT
               ? opc_fail(err, OPC_EUSER, "cannot write %s: what it links to has no name", path)
               : opc_fail_errno(err, why, "cannot write %s", path);
}

/* Finds the file that is to be replaced, and its mode if it exists, which the new one keeps. */
static int find_target(const char *path, char out[OPC_PATH], bool *there, mode_t *mode,
                       struct opc_err *err)
{
    struct stat st, own;
    *there = stat(path, &st) == 0;
    const int why = errno;
    /* A device, pipe or directory is never replaced by a file. */
    if (*there && !S_ISREG(st.st_mode))
        return opc_fail(err, OPC_EUSER, "cannot write %s: it exists and is not a file", path);
    if (strlen(path) >= OPC_PATH)
        return opc_fail_errno(err, ENAMETOOLONG, "cannot write %s", path);
    /* Under 'opc ... -o /dev/stdout >> FILE' replacing FILE would lose what it had and what we
     * print. */
    for (int fd = STDOUT_FILENO; *there && fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &own) == 0 && same_file(&own, &st))
            return opc_fail(err, OPC_EUSER, "cannot write %s: what the program prints goes there",
                            path);
    *mode = *there ? st.st_mode & 07777 : 0;
    /* A link is followed to its file; a link to nothing is replaced, any other error is reported.
     */
    const bool link = lstat(path, &own) == 0 && S_ISLNK(own.st_mode);
    if (link && *there)
        return follow_link(path, &st, out, err);
    if (link && why != ENOENT)
        return opc_fail_errno(err, why, "cannot write %s", path);
    snprintf(out, OPC_PATH, "%s", path);
    return OPC_OK;
}

int opc_save_begin(const char *path, struct opc_save **out, struct opc_err *err)
{
    struct opc_save *s = opc_alloc(1, sizeof *s);
    bool there;
    mode_t mode;
    if (!s)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a buffer to write %s", path);
    int code = find_target(path, s->path, &there, &mode, err);
    if (!code && (s->fd = open_temporary(s)) < 0)
        code = opc_fail_errno(err, errno, "cannot write %s", path);
    if (code) {
        opc_free(s);
        return code;
    }
    if (there)
        (void)fchmod(s->fd, mode); /* some file systems cannot; the default mode will do */
    *out = s;
    return OPC_OK;
}

/* Past the buffer. The first failure is remembered and later writes are skipped. */
static void write_through(struct opc_save *s, const void *data, size_t n)
{
    if (!s->failure && !opc_write_all(s->fd, data, n))
        s->failure = errno;
}

static void flush_buffer(struct opc_save *s)
{
    write_through(s, s->buffer, s->used);
    s->used = 0;
}

void opc_save_bytes(struct opc_save *s, const void *data, size_t n)
{
    /* Small pieces are collected; a piece as large as the buffer goes straight through, in order.
     */
    if (n > BUFFER - s->used)
        flush_buffer(s);
    if (n >= BUFFER)
        write_through(s, data, n);
    else if (n > 0) {
        memcpy(s->buffer + s->used, data, n);
        s->used += n;
    }
}

/* Syncs the entry in the directory, without which a rename may be lost in a power cut. */
static bool sync_parent(const char *path)
{
    char parent[OPC_PATH];
    if (opc_path_parent(parent, path, NULL) || opc_fault_hits_system())
        return false;
    const int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno ==
               EACCES; /* a directory we may enter but not read: nothing more can be done */
    /* Some network file systems cannot sync a directory, and need not. */
    const bool done = fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP;
    const int why = errno;
    close(fd);
    errno = why;
    return done;
}

int opc_save_end(struct opc_save *s, struct opc_err *err)
{
    /* The order of these four calls is what the file promises; see the top. */
    flush_buffer(s);
    if (!s->failure && (opc_fault_hits_system() || fsync(s->fd)))
        s->failure = errno;
    /* A network file system may report only now that it is full. */
    if (close(s->fd) && !s->failure)
        s->failure = errno;
    s->fd = -1;
    if (!s->failure && (opc_fault_hits_system() || rename(s->temporary, s->path)))
        s->failure = errno;

    int code = OPC_OK;
    if (s->failure)
        code = opc_fail_errno(err, s->failure, "cannot write %s", s->path);
    else {
        /* From here on there is no temporary file to remove. */
        s->temporary[0] = '\0';
        if (!sync_parent(s->path))
            code = opc_fail_errno(err, errno, "%s is written but may not survive a power cut",
                                  s->path);
    }
    opc_save_drop(s);
    return code;
}

/* Also the end of opc_save_end, which has cleared what need not be undone. */
void opc_save_drop(struct opc_save *s)
{
    if (!s)
        return;
    if (s->fd >= 0)
        close(s->fd);
    if (s->temporary[0])
        unlink(s->temporary);
    opc_free(s);
}

int opc_file_write(const char *path, const void *data, size_t n, struct opc_err *err)
{
    struct opc_save *s = NULL;
    const int code = opc_save_begin(path, &s, err);
    if (code)
        return code;
    opc_save_bytes(s, data, n);
    return opc_save_end(s, err);
}

int opc_file_read(const char *path, size_t max, char **out, size_t *n, struct opc_err *err)
{
    const int fd = opc_fault_hits_system() ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return opc_fail_errno(err, errno, "cannot read %s", path);
    /* The size is a first guess: a pipe or a file in /proc has none, and a file may grow meanwhile.
     */
    struct stat st;
    size_t capacity = fstat(fd, &st) == 0 && st.st_size > 0 ? (size_t)st.st_size : BUFFER;
    if (capacity > max)
        capacity = max;
    size_t used = 0;
    char *all = opc_alloc(capacity + 1, 1);
    int code = OPC_OK;
    while (all) {
        /* One byte more than fits tells a file that just fits from one that is too long. */
        const ssize_t got =
            opc_fault_hits_system() ? -1 : read(fd, all + used, capacity + 1 - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            code = opc_fail_errno(err, errno, "cannot read %s", path);
        if (got <= 0)
            break;
        used += (size_t)got;
        if (used > max) {
            code = opc_fail(
                err, OPC_EUSER,
                "cannot read %s: it has more than %zu bytes, too many for what is wanted here",
                path, max);
            break;
        }
        /* The file is longer than it was thought to be: double the buffer, up to `max`. */
        if (used > capacity) {
            const size_t larger = capacity < max / 2 ? 2 * capacity : max;
            char *copy = opc_alloc(larger + 1, 1);
            if (copy)
                memcpy(copy, all, used);
            opc_free(all);
            all = copy;
            capacity = larger;
        }
    }
    close(fd);
    if (!all)
        return opc_fail(err, OPC_ENOMEM, "cannot read %s: not enough memory for its %zu bytes",
                        path, capacity);
    if (code) {
        opc_free(all);
        return code;
    }
    all[used] = '\0';
    *out = all;
    if (n)
        *n = used;
    return OPC_OK;
}

/* An error other than "not there" counts as there: reading it then reports the reason. */
bool opc_file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

bool opc_is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int opc_make_directories(const char *path, struct opc_err *err)
{
    char part[OPC_PATH];
    const size_t n = strlen(path);
    if (n >= sizeof part)
        return opc_fail_errno(err, ENAMETOOLONG, "cannot make directory %s", path);
    /* a, a/b, a/b/c: each up to, but without, a slash or the end */
    for (size_t i = 1; i <= n; i++) {
        if ((path[i] != '/' && path[i] != '\0') || path[i - 1] == '/')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        /* One that exists already is fine, also if another process has just made it. */
        if ((opc_fault_hits_system() || mkdir(part, 0777)) &&
            !(errno == EEXIST && opc_is_directory(part)))
            return errno == EEXIST || errno == ENOTDIR
                       ? opc_fail(err, OPC_EUSER,
                                  "cannot make directory %s: it is a file; choose another path",
                                  part)
                       : opc_fail_errno(err, errno, "cannot make directory %s", part);
    }
    return OPC_OK;
}

int opc_path_join(char out[OPC_PATH], const char *dir, const char *name, struct opc_err *err)
{
    if (name[0] == '/')
        dir = "";
    const size_t n = strlen(dir);
    const char *slash = n > 0 && dir[n - 1] != '/' ? "/" : "";
    if (snprintf(out, OPC_PATH, "%s%s%s", dir, slash, name) >= OPC_PATH)
        return opc_fail(err, OPC_EUSER, "path is too long: %s%s%s", dir, slash, name);
    return OPC_OK;
}

int opc_path_parent(char out[OPC_PATH], const char *path, struct opc_err *err)
{
    size_t n = (size_t)(opc_path_name(path) - path);
    /* Drop the slashes at the end, but keep "/" itself. */
    while (n > 1 && path[n - 1] == '/')
        n--;
    if (n >= OPC_PATH)
        return opc_fail(err, OPC_EUSER, "path is too long: %s", path);
    snprintf(out, OPC_PATH, "%.*s", n > 0 ? (int)n : 1, n > 0 ? path : ".");
    return OPC_OK;
}

int opc_path_absolute(char out[OPC_PATH], const char *path, struct opc_err *err)
{
    char *whole = realpath(path, NULL);
    if (!whole)
        return opc_fail_errno(err, errno, "cannot find %s", path);
    const int code =
        strlen(whole) < OPC_PATH ? OPC_OK : opc_fail(err, OPC_EUSER, "path is too long: %s", path);
    if (!code)
        snprintf(out, OPC_PATH, "%s", whole);
    free(whole);
    return code;
}

const char *opc_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *opc_path_display(const char *path)
{
    return *path == '/' ? opc_path_name(path) : path;
}

int opc_path_shipped(char out[OPC_PATH], const char *name, struct opc_err *err)
{
    char program[OPC_PATH], folder[OPC_PATH];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    /* An installation has PREFIX/bin/opc and PREFIX/share/opc/NAME. */
    if (n > 0 && *name != '/' && !opc_file_exists(name)) {
        program[n] = '\0';
        if (!opc_path_parent(folder, program, NULL) &&
            !opc_path_join(program, folder, "../share/opc", NULL) &&
            !opc_path_join(out, program, name, NULL) && opc_file_exists(out))
            return OPC_OK;
    }
    return opc_path_join(out, "", name, err);
}
