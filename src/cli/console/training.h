/* SPDX-License-Identifier: MIT */
/* cli/console/training.h - a run in the foreground: its display, and what Ctrl-C does to it. */
#ifndef OPC_CLI_TRAINING_H
#define OPC_CLI_TRAINING_H

#include "opc/config.h"

#include <stdbool.h>

struct opc_training_plan {
    bool resume, skip_damaged; /* as in struct opc_train_plan */
    int threads;
    bool quiet; /* nothing but warnings is printed */
    int parent; /* a process whose end stops the run as Ctrl-C does; 0: none */
};
/* Trains in dir, from the start or from the last checkpoint. On a terminal a bar shows how far it
 * is; elsewhere a line is printed for each epoch. */
int opc_training(const struct opc_config *, const char *dir, const struct opc_training_plan *,
                 struct opc_err *err);

#endif
