/* SPDX-License-Identifier: MIT */
/* study/curves/sweep_table.h - scores of the runs of a sweep, over seeds. */
#ifndef OPC_STUDY_SWEEP_TABLE_H
#define OPC_STUDY_SWEEP_TABLE_H

#include "study/curves/sweep_runs.h"

/* A row for each group of complete runs that differ in their seed only: task, method (OPC,
 * MBPO(*), ...), reference_epochs, number of seeds, env_steps of the shortest run, then median,
 * low and high of the seeds' scores, and the median minutes of the runs whose time is known;
 * then the values of the other settings that vary. Without a complete run there is no row.
 * at > 0: the scores after that many real steps (env_steps), of every run that has got there,
 * complete or not; without minutes. 0: at the end of each run. */
int opc_sweep_table(const struct opc_sweep_runs *, double at, struct opc_table **out,
                    struct opc_err *err);

#endif
