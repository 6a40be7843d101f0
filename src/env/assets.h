/* SPDX-License-Identifier: MIT */
/* env/assets.h - files that travel inside the library.
 *
 * Everything below models/ is compiled in, so that an environment opens without looking for files.
 * The table is made by cmake/embed.cmake. */
#ifndef OPC_ENV_ASSETS_H
#define OPC_ENV_ASSETS_H

#include "opc/err.h"

#include <stddef.h>

struct opc_asset {
    const char *name;          /* path below models/: "hopper.xml"; NULL ends the table */
    const unsigned char *data; /* a zero byte follows the last, so text can be used as a string */
    size_t size;               /* without that zero */
};

extern const struct opc_asset opc_assets[];

#define OPC_STAGE "stage.xml" /* floor and light for environments on other engines */

const struct opc_asset *opc_asset_find(const char *name); /* NULL: no such file */

/* The text of a model: the file of that name in the folder $OPC_MODELS if that is set, or else the
 * one compiled in. The stage belongs to no task and is always the one compiled in. close puts the
 * folder in front of the message if `code` is a failure. */
struct opc_model_text {
    const char *text; /* a zero byte follows the last */
    size_t size;
    char *own;          /* the text if it was read from a file, and NULL otherwise */
    const char *folder; /* NULL: compiled in */
};
int opc_model_open(const char *name, struct opc_model_text *out, struct opc_err *err);
void opc_model_close(struct opc_model_text *, int code, struct opc_err *err);
/* For a fault of the model that shows after it was closed: puts the folder in front of the message
 * as well, if the model was read from one. */
void opc_model_misfit(const char *name, struct opc_err *err);

#endif
