/* SPDX-License-Identifier: MIT */
/* data/records.h - how experience lies in memory, recorded and imagined alike: the layout of both
 * replay buffers, data/episodes.c and data/imagined.c.
 *
 * A trajectory of n steps (an episode, a rollout) is n + 1 records of `stride` floats:
 *
 *     [ s (obs) | a (act) | r | mark ]   [ s' ... ]  ...  [ s_n | 0 | 0 | END ]
 *
 * The next state of a step is the state of the record after it, so each state is stored once and
 * one step is one run of memory: s, a, r, mark, s' are obs + act + 2 + obs adjacent floats. For a
 * step the mark is the d of Algorithm 2, 1 if s' is terminal and else 0; agents read it as such. */
#ifndef OPC_DATA_RECORDS_H
#define OPC_DATA_RECORDS_H

#include <stdbool.h>
#include <stddef.h>

/* mark, kept as a float: exact small whole numbers */
enum opc_record_mark {
    OPC_RECORD_STEP = 0,     /* a step starts here */
    OPC_RECORD_TERMINAL = 1, /* a step starts here, and the task ended in its next state */
    OPC_RECORD_END = 2,      /* the last state of a trajectory, or a gap: no step starts here */
};

static inline size_t opc_record_stride(int obs, int act)
{
    return (size_t)(obs + act + 2);
}

/* Floats of one step: s, a, r, mark, s'. */
static inline int opc_step_columns(int obs, int act)
{
    return 2 * obs + act + 2;
}

/* The parts of a record. */
static inline float *opc_record_action(float *record, int obs)
{
    return record + obs;
}
static inline float *opc_record_reward(float *record, int obs, int act)
{
    return record + obs + act;
}
static inline float *opc_record_mark(float *record, int obs, int act)
{
    return record + obs + act + 1;
}
/* True if no step starts in this record. The mark is its last float. */
static inline bool opc_record_ends(const float *record, size_t stride)
{
    return record[stride - 1] == (float)OPC_RECORD_END;
}

#endif
