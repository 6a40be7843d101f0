/* SPDX-License-Identifier: MIT */
/* opc/bounds.h - the range of what was recorded, widened a little: imagined steps that leave it are
 * not believed.
 *
 *     state entry j:  [min_j - w_j, max_j + w_j],  w_j = 0.25 (max_j - min_j)
 *                     an entry that hardly moves, by less than 1e-6 max(1, |max_j|), has no bounds
 *     reward:         [r_min - v, r_max + v],      v   = 0.10 (r_max - r_min)
 *
 * A learned model extrapolates far outside its data, and critics extrapolate from there: one such
 * state can ruin a run (docs/learning.md). Steps into such states are refused (opc/walk.c),
 * Algorithm 2 clips the rewards it stores, and SAC can clip the values of its target critics to
 * what these rewards allow. */
#ifndef OPC_BOUNDS_H
#define OPC_BOUNDS_H

#include "opc/episodes.h"

struct opc_bounds {
    int obs, act;
    size_t seen;                   /* records that were looked at */
    float *min, *max;              /* [obs] of recorded states */
    float *low, *high;             /* [obs] the same, widened */
    float reward_min, reward_max;  /* recorded */
    float reward_low, reward_high; /* widened */
};

/* Before the first update everything is within bounds. */
int opc_bounds_create(int obs, int act, struct opc_bounds **out, struct opc_err *err);
void opc_bounds_destroy(struct opc_bounds *); /* NULL is fine */
/* Takes in what was recorded since the last call. What the bounds are depends on the recording
 * alone, not on how often they were updated. */
void opc_bounds_update(struct opc_bounds *, const struct opc_episodes *past);
/* False if an entry of state[obs] is out of bounds. NaN is not: that is for whoever looks for
 * divergence. */
bool opc_bounds_contain(const struct opc_bounds *, const float *state);
/* A reward within the bounds. */
static inline float opc_bounds_clip_reward(const struct opc_bounds *b, float r)
{
    return r < b->reward_low ? b->reward_low : r > b->reward_high ? b->reward_high : r;
}

#endif
