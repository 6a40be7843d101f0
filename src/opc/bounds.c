/* SPDX-License-Identifier: MIT */
/* Bounds from the recording. Called by run/imagine.c and run/improve.c before each simulation and
 * improvement, by opc/walk.c for every imagined step, and by Algorithm 2 for rewards.
 *
 * Invariant: bounds only widen, because nothing recorded is forgotten; so an update looks at the
 * new records alone. */
#include "opc/bounds.h"

#include "data/episodes_private.h"
#include "opc/mem.h"

#include <math.h>

/* How much wider than the recording they are, as a share of its range. */
static const float STATE_MARGIN = 0.25f, REWARD_MARGIN = 0.10f;
static const float STILL = 1e-6f; /* an entry that moves by no more has no bounds */

int opc_bounds_create(int obs, int act, struct opc_bounds **out, struct opc_err *err)
{
    struct opc_bounds *b = opc_alloc(1, sizeof *b);
    const size_t n = (size_t)obs, f = sizeof(float);
    if (!b || !opc_alloc_all(
                  (const struct opc_block[]){
                      {&b->min, n, f}, {&b->max, n, f}, {&b->low, n, f}, {&b->high, n, f}},
                  4)) {
        opc_free(b);
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the bounds of %d entries", obs);
    }
    b->obs = obs;
    b->act = act;
    for (int j = 0; j < obs; j++) {
        b->min[j] = b->high[j] = INFINITY;
        b->max[j] = b->low[j] = -INFINITY;
    }
    b->reward_min = b->reward_high = INFINITY;
    b->reward_max = b->reward_low = -INFINITY;
    *out = b;
    return OPC_OK;
}

void opc_bounds_destroy(struct opc_bounds *b)
{
    if (!b)
        return;
    opc_free(b->min);
    opc_free(b->max);
    opc_free(b->low);
    opc_free(b->high);
    opc_free(b);
}

void opc_bounds_update(struct opc_bounds *b, const struct opc_episodes *past)
{
    const struct opc_records all = opc_episodes_records(past);
    if (b->seen == all.n)
        return;
    for (; b->seen < all.n; b->seen++) {
        const float *record = all.at + b->seen * all.stride;
        for (int j = 0; j < b->obs; j++) {
            b->min[j] = fminf(b->min[j], record[j]);
            b->max[j] = fmaxf(b->max[j], record[j]);
        }
        /* The last record of an episode is a state alone. */
        if (opc_record_ends(record, all.stride))
            continue;
        const float r = record[b->obs + b->act];
        b->reward_min = fminf(b->reward_min, r);
        b->reward_max = fmaxf(b->reward_max, r);
    }
    for (int j = 0; j < b->obs; j++) {
        const float range = b->max[j] - b->min[j], w = STATE_MARGIN * range;
        /* A model never predicts a constant exactly, so a range of nothing would refuse it all. */
        const bool moves = range > STILL * fmaxf(1.0f, fabsf(b->max[j]));
        b->low[j] = moves ? b->min[j] - w : -INFINITY;
        b->high[j] = moves ? b->max[j] + w : INFINITY;
    }
    const float v = REWARD_MARGIN * (b->reward_max - b->reward_min);
    b->reward_low = b->reward_min - v;
    b->reward_high = b->reward_max + v;
}

bool opc_bounds_contain(const struct opc_bounds *b, const float *state)
{
    for (int j = 0; j < b->obs; j++)
        if (state[j] < b->low[j] || state[j] > b->high[j])
            return false;
    return true;
}
