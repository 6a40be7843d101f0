/* SPDX-License-Identifier: MIT */
/* study/curves/sweep_table.h - what the complete runs of a sweep come to, over seeds. */
#ifndef OPC_STUDY_SWEEP_TABLE_H
#define OPC_STUDY_SWEEP_TABLE_H

#include "study/exhibit/table.h"
#include "sweep/sweep.h"

/* A row for each group of complete runs that differ in their seed only: task, method (OPC, MBPO(*),
 * ...), reference_epochs, the number of seeds, env_steps of the shortest run, median, low and high,
 * which are of the seeds' scores, a score being the mean of the last five evaluations, and the
 * median of the minutes a run took; then the values of the other settings that vary. dir and
 * complete are as for opc_sweep_merge; without a complete run there is no row. */
int opc_sweep_table(const struct opc_sweep *, char *const *dir, const bool *complete,
                    struct opc_table **out, struct opc_err *err);

#endif
