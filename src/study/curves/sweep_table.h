/* SPDX-License-Identifier: MIT */
/* study/curves/sweep_table.h - scores of the complete runs of a sweep, over seeds. */
#ifndef OPC_STUDY_SWEEP_TABLE_H
#define OPC_STUDY_SWEEP_TABLE_H

#include "study/curves/sweep_runs.h"

/* A row for each group of complete runs that differ in their seed only: task, method (OPC,
 * MBPO(*), ...), reference_epochs, number of seeds, env_steps of the shortest run, then median,
 * low and high of the seeds' scores, and the median minutes of the runs whose time is known;
 * then the values of the other settings that vary. Without a complete run there is no row. */
int opc_sweep_table(const struct opc_sweep_runs *, struct opc_table **out, struct opc_err *err);

#endif
