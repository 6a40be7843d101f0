/* SPDX-License-Identifier: MIT */
/* study/curves/sweep_runs_private.h - what sweep_runs.c and sweep_added.c share. */
#ifndef OPC_STUDY_SWEEP_RUNS_PRIVATE_H
#define OPC_STUDY_SWEEP_RUNS_PRIVATE_H

#include "study/curves/sweep_runs.h"

int opc_sweep_runs_no_memory(struct opc_err *err);

/* Fills in what the rows come to. */
int opc_sweep_run_measure(struct opc_sweep_run *, struct opc_err *err);
/* How many evaluations there are, with the row, env_steps and eval_return of each; the arrays have
 * a capacity of rows + 1. */
int opc_sweep_run_evaluations(const struct opc_sweep_run *, int *row, double *steps, double *value);
/* Has every row a later epoch than the one before? */
bool opc_sweep_run_epochs_ascend(const struct opc_sweep_run *);

#endif
