/* SPDX-License-Identifier: MIT */
/* cli/console/sweeping.h - a sweep in the foreground: its display, and what Ctrl-C does to it. */
#ifndef OPC_CLI_SWEEPING_H
#define OPC_CLI_SWEEPING_H

#include "sweep/schedule.h"

/* Runs what is missing. The plan's progress and stops are set here. On a terminal a bar shows how
 * far it is; elsewhere a line is printed for each run that starts or ends. The first SIGINT,
 * SIGTERM or SIGHUP stops the runs in order, a second one at once. tally may be NULL. */
int opc_sweeping(const struct opc_sweep *, struct opc_schedule plan, struct opc_tally *tally,
                 struct opc_err *err);

#endif
