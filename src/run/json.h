/* SPDX-License-Identifier: MIT */
/* run/json.h - JSON; json.c is the only file that includes jansson's header.
 *
 *     struct opc_json *j = opc_json_begin();
 *     opc_json_text(j, "state", "running");
 *     opc_json_real(j, "eval_return", 1000);
 *     code = opc_json_write(j, path, err);
 *
 * An object of keys and values in the order they are put. Lack of memory is remembered and
 * reported by write, which frees the object in any case. */
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

const char *opc_json_version(void); /* of the jansson that was loaded */

#endif
