/* SPDX-License-Identifier: MIT */
/* opc/algorithm2.h - Algorithm 2: imagined rollouts from recorded states, into the replay buffer
 * D_sim (data/imagined.h). run/imagine.c calls it.
 *
 *     until the new data holds N transitions:
 *         b ~ U{episodes of the reference window}, t ~ U{its steps};  s = s_t of episode b
 *         for h = 0 .. H-1:
 *             a ~ pi(. | s);  s' by eq. 5 (or 2, or 3), reference t + h of b;  d = terminal(s')
 *             break if the step is refused (opc/limits.h); store (s, a, r, s', d)
 *             break if s' is terminal, or if the recording ends in step t + h
 *             s = s'
 *
 * Rollouts are numbered, and each draws from streams named by its number alone; the N transitions
 * are those of the first rollouts that have them. So the data depends neither on the number of
 * threads nor on how many rollouts advance together. With opc.max_disagreement, the first steps of
 * the first rollouts are also made beforehand: they set the limit. */
#ifndef OPC_ALGORITHM2_H
#define OPC_ALGORITHM2_H

#include "opc/walk.h"

struct opc_imagined; /* data/imagined.h: D_sim */
struct opc_scaler;   /* num/scaler.h */
struct opc_rollout;  /* opaque: the memory rollouts are made in; used by one thread at a time */

enum opc_start {
    OPC_START_UNIFORM, /* any recorded step, all with the same probability */
    OPC_START_PAPER,   /* an episode, then one of its t = 0 .. T-H; t = 0 when T < H */
};

struct opc_rollout_plan {
    const struct opc_transition *transition;
    opc_act_fn *act; /* replay does not ask it */
    void *act_ctx;
    opc_terminal_fn *terminal; /* NULL: never */
    void *terminal_ctx;
    opc_terminal_fn *refuse; /* steps that are not stored and end their rollout; NULL: none */
    void *refuse_ctx;
    struct opc_limits limits;        /* steps beyond these are refused, too */
    const struct opc_scaler *states; /* of the recording, for state_max_std; NULL: no such thing */
    int horizon;                     /* H */
    size_t transitions;              /* N; the last rollout may go beyond */
    int rollouts;                    /* if not 0: this many, however many transitions they have */
    enum opc_start start;
    /* With past_ratio > 0 the transition's window is all of the past. This share of the rollouts
     * starts anywhere in it, the others in the episodes from `recent` on. */
    double past_ratio;
    int recent;
    bool reference_terminal; /* d = 1 also where only the recording ended in a terminal state */
    bool elite_per_rollout;  /* otherwise one is drawn for each step */
    uint64_t seed;
    uint32_t epoch, index; /* of the first rollout: OPC_USE_START and _ROLLOUT, from index on */
    struct opc_pool *pool; /* may be NULL */
    /* Asked now and then: true returns OPC_ESTOPPED. May be NULL. */
    bool (*stop)(void *);
    void *stop_ctx;
};

struct opc_rollout_report {
    size_t rollouts, transitions;
    size_t empty;                 /* rollouts whose first step was refused */
    size_t terminal;              /* rollouts that ended in a terminal state, d = 1 */
    size_t end[OPC_ENDS];         /* rollouts by why they ended */
    double length;                /* mean */
    float reward_min, reward_max; /* of all steps */
    float state_max_std;          /* largest |s' - mean| / std of any entry */
    uint32_t index; /* of the next rollout: the next plan of this epoch starts there */
};

/* Up to `capacity` rollouts of up to `horizon` steps advance together. A few thousand make the best
 * use of the caches; more only cost memory. */
enum { OPC_ROLLOUT_ROWS = 16384 };
int opc_rollout_create(int obs, int act, int horizon, int capacity, struct opc_rollout **out,
                       struct opc_err *err);
void opc_rollout_destroy(struct opc_rollout *);                       /* NULL is fine */
size_t opc_rollout_need(int obs, int act, int horizon, int capacity); /* bytes */

/* Appends to the open epoch of `into`. OPC_EDIVERGED: a state or reward is not finite.
 * OPC_EREFUSED: 100 000 rollouts were refused their first step, and fewer than one in a hundred was
 * not; with plan->rollouts set, all of them may be refused. OPC_EBUG: the plan does not fit what
 * was prepared. */
int opc_rollout_run(struct opc_rollout *, const struct opc_rollout_plan *,
                    struct opc_imagined *into, struct opc_rollout_report *, struct opc_err *err);

/* Returns OPC_EREFUSED: `empty` of so many rollouts were refused their first step. The message has
 * the shares of the most frequent ends, and says which limit to change. */
int opc_rollout_refused(const size_t end[OPC_ENDS], size_t rollouts, size_t empty,
                        struct opc_err *err);

#endif
