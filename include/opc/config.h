/* SPDX-License-Identifier: MIT */
/* opc/config.h - the settings of one training run.
 *
 *     struct opc_config *config;
 *     opc_config_load("experiments/paper/table1.yaml", &config, &err);
 *     opc_config_set(config, "env.name=mujoco:hopper", &err);
 *     opc_config_set(config, "train.seed=3", &err);
 *
 * A setting is called section.name; `opc config` explains them all. Where several places set one,
 * the last wins, in this order: an included file, the file, its `when` cells, opc_config_set. A
 * `when` cell looks at the values as they are in the end, so the order of calls does not matter to
 * it. docs/configuration.md describes the files. */
#ifndef OPC_CONFIG_H
#define OPC_CONFIG_H

#include "opc/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct opc_config; /* opaque */

/* Makes settings that are all defaults. OPC_ENOMEM. For opc_config_destroy. */
OPC_API int opc_config_create(struct opc_config **out, struct opc_err *err);
/* Reads settings from a file. OPC_EUSER: a setting is unknown or out of its range, and the message
 * names the line; OPC_EIO: the file cannot be read. For opc_config_destroy. */
OPC_API int opc_config_load(const char *path, struct opc_config **out, struct opc_err *err);
/* Frees them. NULL is fine. */
OPC_API void opc_config_destroy(struct opc_config *);

/* Sets one setting: "section.name=value". On failure (OPC_EUSER) nothing has changed. */
OPC_API int opc_config_set(struct opc_config *, const char *assignment, struct opc_err *err);
/* The value of "section.name" as text, for opc_free. OPC_EUSER: there is no such setting. */
OPC_API int opc_config_get(const struct opc_config *, const char *name, char **out,
                           struct opc_err *err);
/* Every setting, as the text of a file that opc_config_load reads back to the same; for opc_free.
 */
OPC_API int opc_config_print(const struct opc_config *, char **out, struct opc_err *err);
/* Do the settings fit each other? OPC_EUSER: they do not, and the message says what would.
 * opc_train asks this first. */
OPC_API int opc_config_check(const struct opc_config *, struct opc_err *err);

#ifdef __cplusplus
}
#endif
#endif
