/* SPDX-License-Identifier: MIT */
/* The search for the reference of a plan. agent/pets.c asks once for each real step; all particles
 * of a plan start in the same state, so they share one reference. */
#include "agent/pets_reference.h"

/* The recorded steps that the transition's table covers. */
static int reference_steps(const struct opc_transition *tr, int *first)
{
    const int steps = opc_transition_window(tr, first);
    if (!tr->type->refresh)
        return steps;
    *first = tr->first;
    return tr->filled;
}

void opc_pets_find_reference(struct opc_pets_reference *ref, const struct opc_transition *tr,
                             const float *state, int horizon)
{
    ref->at = (struct opc_nearest){0};
    if (!tr->type->needs_reference)
        return;
    int first, end = tr->first_episode;
    const int steps = reference_steps(tr, &first);
    for (int i = 0; i < steps; end++) /* a window has whole episodes */
        i += opc_episodes_length(tr->past, end);
    if (ref->scale_first != first || ref->scale_steps != steps)
        opc_nearest_scale(tr->past, tr->first_episode, end, ref->scale);
    ref->scale_first = first;
    ref->scale_steps = steps;
    ref->at = opc_nearest_find(tr->past, tr->first_episode, end, ref->scale, state, horizon);
}
