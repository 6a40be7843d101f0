/* SPDX-License-Identifier: MIT */
/* Two passes over the recorded states: their deviations, and the nearest one. Plans
 * (agent/pets_reference.c) and the on-policy errors of planners (run/real/onpolicy.c) ask here, so
 * that what is measured is what plans do. */
#include "opc/nearest.h"

#include "data/episodes_private.h"

#include <math.h>

void opc_nearest_scale(const struct opc_episodes *past, int first, int end, double *scale)
{
    int steps = 0;
    for (int b = first; b < end; b++)
        steps += opc_episodes_length(past, b);
    for (int k = 0; k < opc_episodes_obs(past); k++) {
        double sum = 0, squares = 0;
        for (int pass = 0; pass < 2; pass++) /* the mean, then the deviation from it */
            for (int b = first; b < end; b++)
                for (int t = 0; t < opc_episodes_length(past, b); t++) {
                    const double s = (double)opc_episodes_at(past, b, t).state[k];
                    if (pass == 0)
                        sum += s / steps;
                    else
                        squares += (s - sum) * (s - sum) / steps;
                }
        scale[k] = squares > 1e-24 ? 1 / sqrt(squares) : 1;
    }
}

struct opc_nearest opc_nearest_find(const struct opc_episodes *past, int first, int end,
                                    const double *scale, const float *state, int horizon)
{
    const int obs = opc_episodes_obs(past);
    struct opc_nearest found = {0};
    double best = INFINITY;
    for (int b = first; b < end; b++) {
        const int length = opc_episodes_length(past, b);
        for (int t = 0; t < length; t++) {
            const int left = length - t < horizon ? length - t : horizon;
            if (left < found.left)
                break;
            const float *s = opc_episodes_at(past, b, t).state;
            double distance = 0;
            for (int k = 0; k < obs; k++) {
                const double gap = (double)(s[k] - state[k]) * scale[k];
                distance += gap * gap;
            }
            if (left > found.left || distance < best) {
                found = (struct opc_nearest){left, b, t};
                best = distance;
            }
        }
    }
    return found;
}
