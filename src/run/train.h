/* SPDX-License-Identifier: MIT */
/* run/train.h - Algorithm 1 (train.c) and the phases that have files of their own (imagine.c,
 * improve.c); session.c prepares a run for it. */
#ifndef OPC_RUN_TRAIN_H
#define OPC_RUN_TRAIN_H

#include "run/run.h"

/* Number of the epoch in progress, from 1; 0 is the random phase. It names random streams. */
static inline uint32_t opc_epoch_number(const struct opc_run *run)
{
    return (uint32_t)run->now.epoch + 1;
}

/* imagine.c: simulates round k of train.rounds. Round 0 comes after the fit, the others are called
 * for by the improvement. Does nothing before the first fit. */
int opc_run_simulate(struct opc_run *, int k, struct opc_err *err);
/* imagine.c: the first episode of the reference window in an epoch (from 0) that is under way,
 * where recorded[n] episodes were recorded by the end of epoch n and `episodes` so far. */
int opc_first_reference(const struct opc_values *, const int *recorded, int64_t epoch,
                        int episodes);
/* imagine.c: moves the reference window to this epoch, and refreshes the transition where model or
 * window have changed. Does nothing before the first fit. */
int opc_run_move_window(struct opc_run *, struct opc_err *err);
/* termination.c: learns from all that is recorded where the task ends, if that is to be learned. */
int opc_run_fit_termination(struct opc_run *, struct opc_err *err);
/* termination.c: an opc_terminal_fn; ctx is the run. */
void opc_run_is_terminal(void *ctx, int n, const float *s, const float *a, const float *next,
                         bool *out);
/* improve.c: one improvement of the policy, in all its rounds. */
int opc_run_improve(struct opc_run *, struct opc_err *err);

/* Continues from wherever the run is to its last epoch. */
int opc_algorithm_1(struct opc_run *, struct opc_err *err);
/* Writes status.json, as of the last complete epoch. */
int opc_run_write_status(struct opc_run *, struct opc_err *err);

#endif
