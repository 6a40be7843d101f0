/* SPDX-License-Identifier: MIT */
/* study/borrow.h - an experiment uses complete runs of other experiments in the same directory,
 * where their settings are the same, instead of making them again. */
#ifndef OPC_STUDY_BORROW_H
#define OPC_STUDY_BORROW_H

#include "study/repro.h"

/* Looks at the runs in OUT/runs of all other experiments. Where a run of this experiment is not
 * there, and a complete one of the same settings (seed and number of epochs included) is, a
 * symbolic link takes its place. *borrowed: how many were found. Link or no link, nothing of the
 * other run is changed. */
int opc_experiment_borrow(const struct opc_experiment *, int *borrowed, struct opc_err *err);

#endif
