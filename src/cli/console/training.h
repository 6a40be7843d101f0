/* SPDX-License-Identifier: MIT */
/* cli/console/training.h - a run in the foreground: its display, and what Ctrl-C does to it. */
#ifndef OPC_CLI_TRAINING_H
#define OPC_CLI_TRAINING_H

#include "opc/config.h"

#include <stdbool.h>

/* Trains in dir, from the start or from the last checkpoint. On a terminal a bar shows how far it
 * is; elsewhere a line is printed for each epoch. parent: a process whose end stops the run as
 * Ctrl-C does; 0: none. */
int opc_training(const struct opc_config *, const char *dir, bool resume, int threads, bool quiet,
                 int parent, struct opc_err *err);

#endif
