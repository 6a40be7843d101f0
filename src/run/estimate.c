/* SPDX-License-Identifier: MIT */
/* Estimates how long a run takes, for its display. Once an epoch was measured, the others are
 * expected to take as long. Within the first one, a phase that is under way is extrapolated from
 * its share, and a phase that has not begun counts as nothing, which makes the estimate a bound.
 *
 * Invariant: this only reads; a run is the same with any estimate. */
#include "run/estimate.h"

#include <math.h>

enum {
    MIN_PERCENT = 2
}; /* a phase that is less far is not extrapolated: the first steps are slow */

/* Seconds of all phases, the random one not counted: it is not repeated. */
static double spent_in_epoch(const struct opc_progress *p)
{
    double sum = 0;
    for (int k = OPC_PHASE_ACT; k < OPC_PHASES; k++)
        sum += p->seconds[k];
    return sum;
}

/* The whole of the epoch, while it goes on; *bound: only what has begun is in it. */
static double extrapolate(const struct opc_progress *p, bool *bound)
{
    const double spent = spent_in_epoch(p);
    *bound = false;
    /* Where the policy improves between the steps, steps tell how far the epoch is. */
    const double steps = p->steps_per_epoch > 0 ? (double)p->step / p->steps_per_epoch : 0;
    if (steps < 1 && p->seconds[OPC_PHASE_IMPROVE] > 0 && p->phase != OPC_PHASE_EVALUATE)
        return 100 * steps >= MIN_PERCENT ? spent / steps : (double)NAN;
    /* One phase after the other. */
    *bound = p->phase < OPC_PHASE_IMPROVE;
    if (100 * p->share < MIN_PERCENT)
        return p->phase > OPC_PHASE_ACT && spent > 0 ? spent : (double)NAN;
    return spent + p->seconds[p->phase] * (1 / p->share - 1);
}

struct opc_estimate opc_estimate(const struct opc_progress *p, double per_epoch)
{
    struct opc_estimate e = {.epoch = (double)NAN, .left = (double)NAN, .rough = !(per_epoch > 0)};
    if (p->epoch == 0 || p->epochs < 1) /* the random phase */
        return e;
    const double spent = p->epoch_done ? 0 : spent_in_epoch(p);
    const int after = p->epochs - p->epoch; /* epochs that have not begun */
    e.epoch = e.rough ? extrapolate(p, &e.bound) : fmax(per_epoch, spent);
    /* The share of the epoch that is under way; what is unknown is taken for half of it. */
    double part = e.epoch > 0 ? fmin(spent / e.epoch, 0.99) * (e.bound ? 0.5 : 1) : 0;
    if (p->epoch_done)
        part = 1;
    e.share = (p->epoch - 1 + part) / p->epochs;
    if (e.epoch > 0)
        e.left = (p->epoch_done ? 0 : fmax(e.epoch - spent, 0)) + after * e.epoch;
    return e;
}
