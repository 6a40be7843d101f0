/* SPDX-License-Identifier: MIT */
/* cli/sweep/status.h - `opc sweep FILE status`: how each run is, for people and for programs. */
#ifndef OPC_CLI_SWEEP_STATUS_H
#define OPC_CLI_SWEEP_STATUS_H

#include "sweep/sweep.h"
#include "sweep/versions.h"

/* json: one object per run and line, instead of a table. */
int opc_sweep_status_show(const struct opc_sweep *, const char *out, bool json,
                          struct opc_err *err);
/* A line that names what has made runs, where it is not this program alone. */
void opc_sweep_versions_print(const struct opc_versions *);

#endif
