/* SPDX-License-Identifier: MIT */
/* agent/pets_reference.h - the recorded trajectory that a plan of PETS walks along by eq. 5
 * (opc/nearest.h), in the window of its transition. */
#ifndef OPC_AGENT_PETS_REFERENCE_H
#define OPC_AGENT_PETS_REFERENCE_H

#include "opc/nearest.h"
#include "opc/transition_type.h"

struct opc_pets_reference {
    struct opc_nearest at; /* where it begins */
    /* Units of distance: 1 / deviation of the recorded states in the window of these steps. They
     * depend on the window alone and are computed when that has changed. */
    double *scale;                /* [obs] */
    int scale_first, scale_steps; /* scale_steps = -1: not known yet */
};

/* Looks in the window of the transition. A transition that needs no reference has none. */
void opc_pets_find_reference(struct opc_pets_reference *, const struct opc_transition *,
                             const float *state, int horizon);

#endif
