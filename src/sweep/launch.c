/* SPDX-License-Identifier: MIT */
/* The list of launchers. Another one is another table of functions in a file of its own, and a line
 * in opc_launchers. */
#include "sweep/launch.h"

#include <limits.h>
#include <string.h>

const struct opc_launcher_type *const opc_launchers[] = {
    &opc_launcher_local,
    &opc_launcher_slurm,
    NULL,
};

const struct opc_launcher_type *opc_launcher_find(const char *name, struct opc_err *err)
{
    /* the name that is most similar, in case there is no such launcher */
    const char *meant = NULL;
    int nearest = INT_MAX;
    for (int i = 0; opc_launchers[i]; i++) {
        if (strcmp(opc_launchers[i]->name, name) == 0)
            return opc_launchers[i];
        if (opc_nearer(name, opc_launchers[i]->name, &nearest))
            meant = opc_launchers[i]->name;
    }
    opc_fail(err, OPC_EUSER, "there is no launcher '%s'%s%s%s", name,
             meant ? "; did you mean '" : "; there are 'local' and 'slurm'", meant ? meant : "",
             meant ? "'?" : "");
    return NULL;
}
