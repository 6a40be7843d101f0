/* SPDX-License-Identifier: MIT */
/* run/files/json.h - JSON; json.c is the only file that includes jansson's header.
 *
 *     struct opc_json *j = opc_json_begin();
 *     opc_json_text(j, "state", "running");
 *     opc_json_real(j, "eval_return", 1000);
 *     code = opc_json_write(j, path, err);
 *
 * An object has its keys in the order in which they were added. Lack of memory is remembered and
 * reported by write, which frees the object in any case. Files with lists or objects inside are
 * written as text, with opc_json_add_quoted, and read with the functions at the end. */
#ifndef OPC_RUN_JSON_H
#define OPC_RUN_JSON_H

#include "base/text.h"

struct opc_json; /* NULL is fine everywhere: it is what lack of memory leaves */

struct opc_json *opc_json_begin(void);
void opc_json_text(struct opc_json *, const char *key, const char *value); /* NULL: null */
void opc_json_whole(struct opc_json *, const char *key, int64_t value);
void opc_json_real(struct opc_json *, const char *key, double value); /* not finite: null */
void opc_json_bool(struct opc_json *, const char *key, bool value);
/* The file appears whole (base/file.h). */
int opc_json_write(struct opc_json *, const char *path, struct opc_err *err);

/* Appends a text as a JSON string, with its quotes. JSON is UTF-8; in a text that is not,
 * everything beyond ASCII becomes a question mark. */
void opc_json_add_quoted(struct opc_text *, const char *);

/* ---- reading ---- */

struct opc_json_value; /* any value; part of the tree it was found in, and lives as long */

/* A file of at most 64 MB; what is not JSON is OPC_EDAMAGED, with line and column. */
int opc_json_read(const char *path, struct opc_json_value **out, struct opc_err *err);
void opc_json_free(struct opc_json_value *); /* the tree, by what read returned; NULL is fine */

/* NULL where there is no such key or place, or the value is of another kind. */
const struct opc_json_value *opc_json_find(const struct opc_json_value *object, const char *key);
const struct opc_json_value *opc_json_at(const struct opc_json_value *list, int i);
int opc_json_length(const struct opc_json_value *list); /* -1: it is not a list */
const char *opc_json_string(const struct opc_json_value *);
bool opc_json_number(const struct opc_json_value *, double *out); /* false: it is not a number */

const char *opc_json_version(void); /* of the jansson that was loaded */

#endif
