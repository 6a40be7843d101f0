/* SPDX-License-Identifier: MIT */
/* cli/env/env_trace.h - numbers from CSV files, and the trace of a played action sequence. */
#ifndef OPC_CLI_ENV_TRACE_H
#define OPC_CLI_ENV_TRACE_H

#include "opc/err.h"

/* Reads lines of finite numbers, `columns` each, no header. *out is [*rows][columns], to be freed
 * with opc_free; `what` names a line in messages. A file that does not exist is OPC_EUSER. */
int opc_read_numbers(const char *path, int columns, const char *what, double **out, int *rows,
                     struct opc_err *err);
/* Reads a file of one such line. An empty path leaves *out NULL. */
int opc_read_state(const char *path, int columns, double **out, struct opc_err *err);

/* Plays the actions and writes the trace. state and out may be "": the noise-free start, standard
 * output. */
int opc_env_trace(const char *spec, const char *state, const char *actions, const char *out,
                  struct opc_err *err);

#endif
