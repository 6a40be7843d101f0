/* SPDX-License-Identifier: MIT */
/* run/policy_file.h - what policy.opc holds besides the networks, so that it can be loaded alone:
 * the dimensions and the settings. save.c writes it, trained.c reads it. */
#ifndef OPC_RUN_POLICY_FILE_H
#define OPC_RUN_POLICY_FILE_H

#include "opc/agent.h"
#include "run/config/config.h"
#include "run/files/checkpoint.h"

struct opc_policy_about {
    int64_t shape[2];         /* obs, act */
    struct opc_text settings; /* "section.name=value", one line each */
};
/* Fills `about` and adds it to what is to be saved; it must stay as it is until then. The caller
 * frees about->settings, also after a failure. */
int opc_policy_describe(const struct opc_values *, int obs, int act, struct opc_policy_about *about,
                        struct opc_gather *, struct opc_err *err);

/* From a file alone. env: as in opc_run_loaded_agent. */
int opc_policy_file_load(const char *path, const struct opc_env *env, struct opc_agent **out,
                         struct opc_err *err);

#endif
