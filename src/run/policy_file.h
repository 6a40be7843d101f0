/* SPDX-License-Identifier: MIT */
/* run/policy_file.h - what policy.opc holds besides the networks, so that it can be loaded alone:
 * the dimensions, the settings and the limits of the actions. save.c writes it; trained.c reads it,
 * and so does opc_policy_limits of opc/policy.h. */
#ifndef OPC_RUN_POLICY_FILE_H
#define OPC_RUN_POLICY_FILE_H

#include "opc/agent.h"
#include "opc/env.h"
#include "opc/policy.h"
#include "run/config/config.h"
#include "run/files/checkpoint.h"

struct opc_policy_about {
    int64_t shape[2];         /* obs, act */
    struct opc_text settings; /* "section.name=value", one line each */
};
/* Fills `about` and adds it to what is to be saved; it and env must stay as they are until then.
 * The caller frees about->settings, also after a failure. */
int opc_policy_describe(const struct opc_values *, const struct opc_env *,
                        struct opc_policy_about *about, struct opc_gather *, struct opc_err *err);

/* From a file alone. env: as in opc_run_loaded_agent; *epoch: complete epochs it was trained for.
 */
int opc_policy_file_load(const char *path, const struct opc_env *env, struct opc_agent **out,
                         int *epoch, struct opc_err *err);

#endif
