/* SPDX-License-Identifier: MIT */
/* run/progress.h - which phase a run is in, how long each took, and whether it is asked to stop.
 *
 * The loop (train.c) reports where it is; the caller of opc_train gets it a few times a second. */
#ifndef OPC_RUN_PROGRESS_H
#define OPC_RUN_PROGRESS_H

#include "run/run.h"

/* From here on time is charged to this phase. */
void opc_progress_enter(struct opc_run *, enum opc_phase);
/* How much of the phase is done, 0 .. 1. */
void opc_progress_advance(struct opc_run *, double share);
/* Charges the time since the last call to the current phase, and returns the clock. */
double opc_progress_charge(struct opc_run *);
/* Calls the caller's progress function now. */
void opc_progress_show(struct opc_run *);
/* Copies from the state of the run what the caller and status.json get. */
void opc_progress_update(struct opc_run *);
/* Sets the clocks of a new epoch. */
void opc_progress_begin_epoch(struct opc_run *);

/* Does the caller want the run to stop? Fits, rollouts and agents ask in the middle of their work;
 * ctx is the run. */
bool opc_progress_stop(void *ctx);
/* The same as an error, OPC_ESTOPPED. */
int opc_progress_check(struct opc_run *, struct opc_err *err);

#endif
