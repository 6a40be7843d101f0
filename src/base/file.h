/* SPDX-License-Identifier: MIT */
/* base/file.h - files that are either whole or not there.
 *
 * A file is written under a temporary name beside its own, synced, and renamed into place. Until
 * then the old one is untouched; when anything fails it stays, and the temporary one is removed. */
#ifndef OPC_BASE_FILE_H
#define OPC_BASE_FILE_H

#include "opc/err.h"

#include <stdbool.h>
#include <stddef.h>

/* In one go. A link is followed to its file; one that leads nowhere is replaced. What is no file,
 * or leads to none, is refused. */
int opc_file_write(const char *path, const void *data, size_t n, struct opc_err *err);

/* Piece by piece: begin, bytes ..., end. A failure on the way is remembered and reported by end,
 * which frees the object in any case; drop gives up instead. */
struct opc_save;
int opc_save_begin(const char *path, struct opc_save **out, struct opc_err *err);
void opc_save_bytes(struct opc_save *, const void *data, size_t n);
int opc_save_end(struct opc_save *, struct opc_err *err);
void opc_save_drop(struct opc_save *); /* NULL is fine */

/* The whole file, NUL-terminated behind its n bytes; more than `most` bytes are refused. The
 * caller frees *out with opc_free; n may be NULL. */
int opc_file_read(const char *path, size_t max, char **out, size_t *n, struct opc_err *err);

/* All n bytes, however many calls that takes; false leaves the reason in errno. */
bool opc_write_all(int fd, const void *data, size_t n);

/* Of any kind; a dangling link is nothing. True also where it cannot be told: reading it says why.
 */
bool opc_file_exists(const char *path);
bool opc_is_directory(const char *path);                         /* or a link to one */
int opc_make_directories(const char *path, struct opc_err *err); /* like mkdir -p */

enum { OPC_PATH = 4096 };
/* "dir/name"; just name when it is absolute or dir is empty. */
int opc_path_join(char out[OPC_PATH], const char *dir, const char *name, struct opc_err *err);
/* The directory a path is in: "a/b" for "a/b/c", "." for "c", "/" for "/c". */
int opc_path_parent(char out[OPC_PATH], const char *path, struct opc_err *err);
const char *opc_path_name(const char *path); /* behind the last slash; points into path */
/* The path as it is shown in a text that others will read: only the last part of an absolute path,
 * because its directories mean nothing on another computer. */
const char *opc_path_display(const char *path);
/* `name` where there is such a file or directory, else the one in share/opc of an installation that
 * the program is part of; where neither is there, name again, for a message. */
int opc_path_shipped(char out[OPC_PATH], const char *name, struct opc_err *err);

#endif
