/* SPDX-License-Identifier: MIT */
/* cli/env/env_trace.h - numbers from CSV files, and the trace of a played action sequence. */
#ifndef OPC_CLI_ENV_TRACE_H
#define OPC_CLI_ENV_TRACE_H

#include "opc/err.h"

/* Lines of finite numbers, `columns` each, no header. *out is [*rows][columns], for opc_free;
 * `what` says in messages what a line is. */
int opc_read_numbers(const char *path, int columns, const char *what, double **out, int *rows,
                     struct opc_err *err);
/* One line of them, for opc_free. An empty path leaves *out NULL. */
int opc_read_state(const char *path, int columns, double **out, struct opc_err *err);

/* state and out may be "": the noise-free start, standard output. */
int opc_env_trace(const char *spec, const char *state, const char *actions, const char *out,
                  struct opc_err *err);

#endif
