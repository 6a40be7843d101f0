/* SPDX-License-Identifier: MIT */
/* study/kept.h - an experiment uses complete runs of which only the tables of an earlier merge were
 * kept: their directories were on a machine that is gone. */
#ifndef OPC_STUDY_KEPT_H
#define OPC_STUDY_KEPT_H

#include "study/repro.h"

/* Reads DIR/NAME/merged.csv, runs.csv and timing.csv, where NAME is the experiment that has the
 * runs, and then the tables in DIR itself and in its other folders, where they have identities:
 * experiments have runs in common. Each run that is complete there, and not begun in OUT, becomes a
 * directory in OUT again, with settings, metrics, timing and result, but without policy and
 * checkpoints: it can be drawn and compared, not resumed. *restored: how many. No such file: none,
 * and no error. */
int opc_experiment_restore(const struct opc_experiment *, const char *dir, int *restored,
                           struct opc_err *err);

#endif
