/* SPDX-License-Identifier: MIT */
/* data/episodes_private.h - the recorded past as the records it consists of (records.h): for
 * drawing batches, for trajectories of on-policy agents, and for checkpoints, which write a record
 * once and never again. The public part is opc/episodes.h. */
#ifndef OPC_DATA_EPISODES_PRIVATE_H
#define OPC_DATA_EPISODES_PRIVATE_H

#include "data/records.h"
#include "opc/episodes.h"

/* The records of the closed episodes, one after the other: opc_episodes_steps + opc_episodes_count
 * of them. They only grow in number; none ever moves or changes. */
struct opc_records {
    const float *at;
    size_t n, stride;
};
struct opc_records opc_episodes_records(const struct opc_episodes *);

/* The index of step number `step`, of episode b, among them: each episode before b has one record
 * more than steps. */
static inline size_t opc_episodes_record(int step, int b)
{
    return (size_t)step + (size_t)b;
}

/* The records of episode b: its length + 1 of them. */
const float *opc_episodes_path(const struct opc_episodes *, int b);

/* Prefetches the reward, mark and next state of a step. */
void opc_episodes_prefetch(const struct opc_episodes *, int b, int t);

/* Appends whole closed episodes as opc_episodes_records gave them. On failure nothing is appended.
 * OPC_EDAMAGED: these are not whole episodes, or they exceed the capacity. */
int opc_episodes_restore(struct opc_episodes *, const float *records, size_t n,
                         struct opc_err *err);

#endif
