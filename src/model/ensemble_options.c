/* SPDX-License-Identifier: MIT */
/* opc_ensemble_create: the ensemble from a program's options, whose settings are text as in a
 * file. Training makes its own from a checked config (opc_ensemble_make). */
#include "opc/ensemble.h"

#include "base/pool.h"
#include "base/sized.h"
#include "model/ensemble.h"

#include <string.h>

int opc_ensemble_set(struct opc_ensemble_config *config, const char *assignment,
                     struct opc_err *err)
{
    char name[64];
    const char *equals = strchr(assignment, '=');
    /* "model.members=5", as for opc_config_set, is fine too */
    const char *start = strncmp(assignment, "model.", 6) == 0 ? assignment + 6 : assignment;
    if (!equals || equals <= start || (size_t)(equals - start) >= sizeof name)
        return opc_fail(
            err, OPC_EUSER,
            "'%.60s' is not a setting of an ensemble; write name=value, as in members=5",
            assignment);
    memcpy(name, start, (size_t)(equals - start));
    name[equals - start] = '\0';
    return opc_section_set(&opc_ensemble_section, config, name, equals + 1, err);
}

int opc_ensemble_create(const struct opc_ensemble_options *given, struct opc_predictor **out,
                        struct opc_err *err)
{
    struct opc_ensemble_options o;
    struct opc_ensemble_config config;
    OPC_TRY(opc_sized_read(given, "opc_ensemble_options", &o, sizeof o, err));
    if (o.obs < 1 || o.act < 1 || o.threads < 0)
        return opc_fail(err, OPC_EUSER,
                        "an ensemble for %d states and %d actions on %d threads cannot be", o.obs,
                        o.act, o.threads);
    OPC_TRY(opc_section_defaults(&opc_ensemble_section, &config, err));
    for (int i = 0; o.settings && o.settings[i]; i++)
        OPC_TRY(opc_ensemble_set(&config, o.settings[i], err));
    return opc_ensemble_make(&config, o.obs, o.act, o.threads ? o.threads : opc_processors(),
                             o.seed, 0, out, err);
}
