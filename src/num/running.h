/* SPDX-License-Identifier: MIT */
/* num/running.h - mean and variance of everything seen so far, kept without what was seen. PPO and
 * SLBO normalise observations by it. */
#ifndef OPC_NUM_RUNNING_H
#define OPC_NUM_RUNNING_H

struct opc_running {
    double count, mean, var; /* var is that of the population; agents save the struct as it is */
};

/* Merges `count` more numbers of this mean and variance (Chan et al. 1979, the parallel form). */
static inline void opc_running_merge(struct opc_running *s, double count, double mean, double var)
{
    const double gap = mean - s->mean, all = s->count + count;
    s->var = (s->var * s->count + var * count + gap * gap * s->count * count / all) / all;
    s->mean += gap * count / all;
    s->count = all;
}

#endif
