/* SPDX-License-Identifier: MIT */
/* The search for the reference of a plan. agent/pets.c asks once for each real step; all particles
 * of a plan start in the same state, so they share one reference. */
#include "agent/pets_reference.h"

#include <math.h>

/* The recorded steps that the transition's table covers. */
static int reference_steps(const struct opc_transition *tr, int *first)
{
    const int steps = opc_transition_window(tr, first);
    if (!tr->type->refresh)
        return steps;
    *first = tr->first;
    return tr->filled;
}

/* 1 / deviation of each entry of the recorded states of the window; 1 where it does not vary. It
 * depends on the window alone and is computed when that has changed. */
static void update_scale(struct opc_pets_reference *ref, const struct opc_transition *tr, int first,
                         int steps)
{
    if (ref->scale_first == first && ref->scale_steps == steps)
        return;
    for (int k = 0; k < tr->obs; k++) {
        double sum = 0, squares = 0;
        for (int pass = 0; pass < 2; pass++) /* the mean, then the deviation from it */
            for (int b = tr->first_episode, i = 0, t = 0; i < steps; i++) {
                const double s = (double)opc_episodes_at(tr->past, b, t).state[k];
                if (pass == 0)
                    sum += s / steps;
                else
                    squares += (s - sum) * (s - sum) / steps;
                if (++t == opc_episodes_length(tr->past, b)) {
                    b++;
                    t = 0;
                }
            }
        ref->scale[k] = squares > 1e-24 ? 1 / sqrt(squares) : 1;
    }
    ref->scale_first = first;
    ref->scale_steps = steps;
}

/* Of the recorded steps with H steps left, the one whose state is nearest to the current one in
 * scaled units. If there is none, of those with the most steps left. */
void opc_pets_find_reference(struct opc_pets_reference *ref, const struct opc_transition *tr,
                             const float *state, int horizon)
{
    ref->left = 0;
    if (!tr->type->needs_reference)
        return;
    int first, found = 0;
    const int steps = reference_steps(tr, &first);
    double best = INFINITY;
    update_scale(ref, tr, first, steps);
    for (int b = tr->first_episode, i = 0; i < steps; b++) {
        const int length = opc_episodes_length(tr->past, b);
        for (int t = 0; t < length && i < steps; t++, i++) {
            const int left = length - t < horizon ? length - t : horizon;
            if (left < found)
                break;
            const float *s = opc_episodes_at(tr->past, b, t).state;
            double distance = 0;
            for (int k = 0; k < tr->obs; k++) {
                const double gap = (double)(s[k] - state[k]) * ref->scale[k];
                distance += gap * gap;
            }
            /* a longer one is better than a nearer one */
            if (left > found || distance < best) {
                found = left;
                best = distance;
                ref->episode = b;
                ref->time = t;
            }
        }
        /* the rest of the episode, where the search broke off */
        i = opc_episodes_first(tr->past, b) + length - first;
    }
    ref->left = found;
}
