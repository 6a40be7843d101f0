/* SPDX-License-Identifier: MIT */
/* model/termination.h - has the task ended in this state? Learned from the ends in a recording, for
 * tasks that cannot be asked (model.termination = learned).
 *
 * A small network gives each state s' a number z, trained by cross-entropy on batches that are half
 * ends and half other states, because ends are rare. The task has ended where z is above a
 * threshold: the one with the fewest mistakes on recorded states that it was not trained on. So
 * ends that do not depend on the state, as those of a program that stops at random, are not
 * predicted at all. It knows states alone, not how they were reached. run/termination.c owns one
 * for a run. */
#ifndef OPC_MODEL_TERMINATION_H
#define OPC_MODEL_TERMINATION_H

#include "num/adam.h"
#include "num/mlp.h"
#include "num/scaler.h"

#include <pthread.h>

/* What a fit saw. */
struct opc_termination_report {
    int states, ends;         /* of the recording */
    int missed, false_alarms; /* ends that are not predicted, and other states that are */
};

struct opc_termination {
    int obs;
    struct opc_mlp *net; /* normalised s' to z */
    struct opc_adam *adam;
    struct opc_scaler *scaler;
    /* What z is compared with; INFINITY: no end has been recorded, or none can be told. */
    double threshold;

    struct opc_tape *tape;
    float *x, *grad; /* a batch [panels][obs][16]; [each] */
    /* Predictions share a scratch, one caller at a time. */
    struct opc_arena scratch;
    pthread_mutex_t lock;
    bool has_lock;
};

/* First weights come from stream (seed, OPC_USE_INIT, ..., which). OPC_ENOMEM. */
int opc_termination_create(int obs, uint64_t seed, uint32_t which, struct opc_termination **out,
                           struct opc_err *err);
void opc_termination_destroy(struct opc_termination *); /* NULL is fine */

/* Learns from n states, of which end[i] says whether the task ended in state[i][obs]. It goes on
 * from the weights it has. Batches come from the stream (seed, OPC_USE_END, epoch, index). Does
 * nothing before the first end. OPC_ENOMEM; OPC_EDIVERGED. The report may be NULL. */
int opc_termination_fit(struct opc_termination *, int n, const float *const *state, const bool *end,
                        uint64_t seed, uint32_t epoch, uint32_t index,
                        struct opc_termination_report *, struct opc_err *err);
/* out[i]: has the task ended in state[i][obs]? Any number of threads may ask. */
void opc_termination_predict(const struct opc_termination *, int n, const float *state, bool *out);

/* As in opc/predictor.h: everything a later call depends on. */
int opc_termination_state(struct opc_termination *,
                          int (*visit)(void *ctx, const char *name, void *data, size_t bytes,
                                       struct opc_err *),
                          void *ctx, struct opc_err *err);

#endif
