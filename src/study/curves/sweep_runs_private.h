/* SPDX-License-Identifier: MIT */
/* study/curves/sweep_runs_private.h - shared by sweep_runs.c and sweep_added.c. */
#ifndef OPC_STUDY_SWEEP_RUNS_PRIVATE_H
#define OPC_STUDY_SWEEP_RUNS_PRIVATE_H

#include "study/curves/sweep_runs.h"

/* In the header, so that the analyzer sees that it never returns OPC_OK. */
static inline int opc_sweep_runs_no_memory(struct opc_err *err)
{
    return opc_fail(err, OPC_ENOMEM, "not enough memory for the runs of the sweep");
}

/* Whether a runs.csv has the identity of every run's settings. */
bool opc_sweep_list_has_identities(const struct opc_table *list);
/* Computes epochs, steps and score from the rows. */
int opc_sweep_run_measure(struct opc_sweep_run *, struct opc_err *err);
/* Finds the evaluations, with row, env_steps and eval_return of each; the arrays have a capacity
 * of rows + 1. Returns how many there are. */
int opc_sweep_run_evaluations(const struct opc_sweep_run *, int *row, double *steps, double *value);
/* Whether every row has a later epoch than the one before. */
bool opc_sweep_rows_ascend(const struct opc_sweep_rows *);

#endif
