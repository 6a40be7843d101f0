/* SPDX-License-Identifier: MIT */
/* env/assets.h - files that travel inside the library.
 *
 * Everything below models/ is compiled in, so that an environment opens without looking for files.
 * The table is made by cmake/embed.cmake. */
#ifndef OPC_ENV_ASSETS_H
#define OPC_ENV_ASSETS_H

#include <stddef.h>

struct opc_asset {
    const char *name;          /* path below models/: "hopper.xml"; NULL ends the table */
    const unsigned char *data; /* a zero byte follows the last, so text can be used as a string */
    size_t size;               /* without that zero */
};

extern const struct opc_asset opc_assets[];

const struct opc_asset *opc_asset_find(const char *name); /* NULL: there is none of that name */

#endif
