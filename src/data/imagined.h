/* SPDX-License-Identifier: MIT */
/* data/imagined.h - D_sim, the replay buffer of opc/imagined.h, for those who read and save its
 * records.
 *
 * Rollouts are kept whole, each state once (records.h), one after the other on a tape. Positions on
 * the tape count records and grow forever; positions front .. end-1 are kept. Either whole epochs
 * are forgotten, so that exactly the last `retain` remain however early rollouts ended (the paper),
 * or the oldest rollouts as soon as there are more steps than a limit (original MBPO).
 *
 * Memory is reserved for the worst case, rollouts of one step. Pages that were never written cost
 * nothing, and forgotten memory is reused first, so the memory in use is that of the kept steps. */
#ifndef OPC_DATA_IMAGINED_H
#define OPC_DATA_IMAGINED_H

#include "data/records.h"
#include "opc/imagined.h"

/* Bytes in use once it is full, if rollouts go to their end. */
size_t opc_imagined_need(const struct opc_imagined_shape *);

int opc_imagined_obs(const struct opc_imagined *);
int opc_imagined_act(const struct opc_imagined *);

/* ---- reading -----------------------------------------------------------------------------------
 * All records in memory, and which of them lies at position front + i of the tape. A position may
 * hold no step: opc_record_ends says so. */
const float *opc_imagined_records(const struct opc_imagined *);
uint32_t opc_imagined_positions(const struct opc_imagined *); /* end - front */
int opc_imagined_record(const struct opc_imagined *, uint32_t i);

/* ---- checkpoints -------------------------------------------------------------------------------
 * A record does not change until it is forgotten, so a checkpoint saves the whole state, and of the
 * tape only the records that are new since the last checkpoint:
 *
 *     for (uint64_t at = saved; (p = opc_imagined_piece(d, at, &n)); at += n)
 *         write n records from p
 *
 * and a store of the same shape goes on from there:
 *
 *     opc_imagined_restore(d, &state, &err);
 *     for (at = state.front; at < state.end; at += n)
 *         opc_imagined_refill(d, at, n records, &err);
 */
struct opc_imagined_epoch {
    int64_t epoch;
    uint64_t start; /* position of its first record */
    uint64_t transitions, rollouts;
};
struct opc_imagined_state {
    uint64_t front, end, limit;
    uint64_t transitions, rollouts;
    uint64_t epochs; /* in use below, the oldest first; STEPS knows only the newest */
    struct opc_imagined_epoch epoch[OPC_RETAIN_MAX];
};
const struct opc_imagined_state *opc_imagined_state(const struct opc_imagined *);
/* *n adjacent records from position `from` on; NULL when from is not kept. */
const float *opc_imagined_piece(const struct opc_imagined *, uint64_t from, size_t *n);
int opc_imagined_restore(struct opc_imagined *, const struct opc_imagined_state *,
                         struct opc_err *err);
int opc_imagined_refill(struct opc_imagined *, uint64_t at, const float *records, size_t n,
                        struct opc_err *err);

#endif
