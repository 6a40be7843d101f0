/* SPDX-License-Identifier: MIT */
/* run/train.h - Algorithm 1 and its phases, between train.c, imagine.c, improve.c and session.c,
 * which prepares a run for it. */
#ifndef OPC_RUN_TRAIN_H
#define OPC_RUN_TRAIN_H

#include "run/run.h"

/* Of the epoch that is under way; the random phase is number 0. It names random streams. */
static inline uint32_t opc_epoch_number(const struct opc_run *run)
{
    return (uint32_t)run->now.epoch + 1;
}

/* imagine.c: round k of train.rounds; the first comes with the fit, the others with the
 * improvement. */
int opc_run_simulate(struct opc_run *, int k, struct opc_err *err);
/* improve.c: one improvement, in all its rounds. */
int opc_run_improve(struct opc_run *, struct opc_err *err);

/* From wherever the run is to its last epoch. */
int opc_algorithm_1(struct opc_run *, struct opc_err *err);
/* status.json, as of the last whole epoch. */
int opc_run_tell_status(struct opc_run *, struct opc_err *err);

#endif
