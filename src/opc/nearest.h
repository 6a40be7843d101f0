/* SPDX-License-Identifier: MIT */
/* opc/nearest.h - the recorded step that a plan walks along by eq. 5: of those with enough steps
 * left, the one whose state is nearest to the current one, in standard deviations of the recorded
 * states. */
#ifndef OPC_NEAREST_H
#define OPC_NEAREST_H

#include "opc/episodes.h"

struct opc_nearest {
    int left;          /* recorded steps from it on, at most the horizon; 0: there is none */
    int episode, time; /* where it is */
};

/* scale[obs]: 1 / standard deviation of each entry over the states of episodes first .. end-1; 1
 * where it does not vary. */
void opc_nearest_scale(const struct opc_episodes *, int first, int end, double *scale);

/* Looks in episodes first .. end-1. A step with more steps left, up to the horizon, is better than
 * a nearer one. */
struct opc_nearest opc_nearest_find(const struct opc_episodes *, int first, int end,
                                    const double *scale, const float *state, int horizon);

#endif
