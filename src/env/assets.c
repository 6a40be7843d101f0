/* SPDX-License-Identifier: MIT */
#include "env/assets.h"

#include <string.h>

const struct opc_asset *opc_asset_find(const char *name)
{
    for (const struct opc_asset *a = opc_assets; a->name; a++)
        if (strcmp(a->name, name) == 0)
            return a;
    return NULL;
}
