/* SPDX-License-Identifier: MIT */
/* data/episodes_private.h - the recorded past as the records it consists of (records.h): for
 * drawing batches, and for checkpoints, which write a record once and never again. */
#ifndef OPC_DATA_EPISODES_PRIVATE_H
#define OPC_DATA_EPISODES_PRIVATE_H

#include "data/records.h"
#include "opc/episodes.h"

/* Of the closed episodes, one after the other: opc_episodes_steps + opc_episodes_count records.
 * They only grow in number; none ever moves or changes. */
struct opc_records {
    const float *at;
    size_t n, stride;
};
struct opc_records opc_episodes_records(const struct opc_episodes *);

/* Where step number `step`, of episode b, is among them: each episode before has one record more
 * than steps. */
static inline size_t opc_episodes_record(int step, int b)
{
    return (size_t)step + (size_t)b;
}

/* The records of episode b: its length + 1 of them. */
const float *opc_episodes_path(const struct opc_episodes *, int b);

/* Asks for the memory of a step whose reward, mark and next state will soon be read. */
void opc_episodes_prefetch(const struct opc_episodes *, int b, int t);

/* Appends whole closed episodes as opc_episodes_records gave them. On failure (OPC_EDAMAGED: no
 * episodes, or more than there is room for) nothing was appended. */
int opc_episodes_restore(struct opc_episodes *, const float *records, size_t n,
                         struct opc_err *err);

#endif
