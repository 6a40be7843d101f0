/* SPDX-License-Identifier: MIT */
/* base/file.h - files that are either whole or not there.
 *
 * A file is written under a temporary name next to its own, synced, and renamed into place. Until
 * then the old one is untouched; when anything fails it stays, and the temporary one is removed. */
#ifndef OPC_BASE_FILE_H
#define OPC_BASE_FILE_H

#include "opc/err.h"

#include <stdbool.h>
#include <stddef.h>

/* Writes a whole file. A link is followed to its file; a link that leads nowhere is replaced. A
 * path that is, or leads to, something other than a file is refused. */
int opc_file_write(const char *path, const void *data, size_t n, struct opc_err *err);

/* Writes a file piece by piece: begin, bytes ..., end. A failure on the way is remembered and
 * reported by end, which frees the object in any case; drop gives up instead. */
struct opc_save;
int opc_save_begin(const char *path, struct opc_save **out, struct opc_err *err);
void opc_save_bytes(struct opc_save *, const void *data, size_t n);
int opc_save_end(struct opc_save *, struct opc_err *err);
void opc_save_drop(struct opc_save *); /* NULL is fine */

/* Reads the whole file and puts a NUL after its n bytes; more than `max` bytes are refused. The
 * caller frees *out with opc_free; n may be NULL. */
int opc_file_read(const char *path, size_t max, char **out, size_t *n, struct opc_err *err);

/* Writes all n bytes, however many calls that takes; on false the reason is in errno. */
bool opc_write_all(int fd, const void *data, size_t n);

/* True for a file, directory or anything else of that name, and where an error hides it: reading it
 * then says why. A dangling link does not exist. */
bool opc_file_exists(const char *path);
bool opc_is_directory(const char *path);                         /* or a link to one */
int opc_make_directories(const char *path, struct opc_err *err); /* like mkdir -p */

enum { OPC_PATH = 4096 };
/* "dir/name"; just name when it is absolute or dir is empty. */
int opc_path_join(char out[OPC_PATH], const char *dir, const char *name, struct opc_err *err);
/* The directory a path is in: "a/b" for "a/b/c", "." for "c", "/" for "/c". */
int opc_path_parent(char out[OPC_PATH], const char *path, struct opc_err *err);
/* The path from the root, without links and dots; the file must exist. */
int opc_path_absolute(char out[OPC_PATH], const char *path, struct opc_err *err);
const char *opc_path_name(const char *path); /* after the last slash; points into path */
/* The path as it is shown in a text that others will read: only the last part of an absolute path,
 * because its directories mean nothing on another computer. */
const char *opc_path_display(const char *path);
/* Where a file that we ship is: `name` itself if it exists, else the one in share/opc of the
 * installation that the program is part of. If neither exists, out is name, for the message. */
int opc_path_shipped(char out[OPC_PATH], const char *name, struct opc_err *err);

#endif
