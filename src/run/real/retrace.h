/* SPDX-License-Identifier: MIT */
/* run/real/retrace.h - what the environment does from a recorded step on, with other actions than
 * the recorded ones.
 *
 * An episode is determined by the stream it was reset from and by its actions. So the environment
 * is brought to any recorded step by playing the episode again, without a simulator's internal
 * state; it must arrive at the recorded state. */
#ifndef OPC_RUN_RETRACE_H
#define OPC_RUN_RETRACE_H

#include "env/many.h"
#include "opc/episodes.h"

struct opc_retrace {
    struct opc_many *worlds; /* any number of them */
    const struct opc_episodes *past;
    int n, horizon;
    const int *episode, *time;   /* [n] the step a row starts from */
    const struct opc_rng *reset; /* [n] the stream from which its episode was reset */
    const float *action;         /* [n][horizon][act] in [-1, 1], of which the first ... */
    const int *length;           /* ... [n] are given to the environment */
    /* results */
    double *truth; /* [n][horizon + 1][obs] rounded to float; NaN after the end of row or task */
    int *ended;    /* [n] steps after which the task ended; 0: it did not */
    long steps;    /* played in all, those before the starts included */
};

/* OPC_EENV: an environment failed, or does not arrive where the recording was. */
int opc_retrace(struct opc_retrace *, struct opc_err *err);

#endif
