/* SPDX-License-Identifier: MIT */
/* opc/imagined.h - D_sim, the imagined steps that a policy learns from.
 *
 * Rollouts are kept whole, each state once, as records of obs + act + 2 floats:
 *
 *     [ s (obs) | a (act) | r | mark ]   [ s' ... ]  ...  [ s_n | 0 | 0 | 2 ]
 *
 * mark is 0 where the rollout goes on, 1 where the task ended in the next state, 2 in the last
 * record, where no step starts. Either whole epochs are forgotten, so that exactly the last
 * `retain` remain however early rollouts ended (the paper), or the oldest rollouts as soon as there
 * are more steps than a limit (original MBPO).
 *
 *     opc_imagined_open_epoch(store, 1);
 *     opc_imagine_into(&plan, store, NULL, &err);
 *     struct opc_feed feed = {OPC_SIZED(struct opc_feed), .draw = opc_imagined_draw, .ctx = store};
 *     opc_agent_improve(agent, &feed, 100, NULL, &err);
 */
#ifndef OPC_IMAGINED_H
#define OPC_IMAGINED_H

#include "opc/err.h"
#include "opc/rng.h"
#include "opc/sized.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct opc_imagined; /* opaque; one owner, any number of readers between two appends */

enum opc_forget { OPC_FORGET_EPOCHS, OPC_FORGET_STEPS };

enum { OPC_RETAIN_MAX = 1024 };

struct opc_imagined_shape {
    size_t size;  /* of this struct (opc/sized.h) */
    int obs, act; /* dimensions of states and actions */
    int longest;  /* the largest number of steps of a rollout */
    enum opc_forget forget;
    int retain; /* EPOCHS: how many are kept, at most OPC_RETAIN_MAX */
    /* EPOCHS: the largest number in each; a call that wants N makes up to N + longest - 1. STEPS:
     * the highest limit there will be, and the first. */
    size_t transitions;
};

/* Makes an empty store. Memory is reserved for the worst case, but what was never written costs
 * nothing. OPC_EBUG: the shape cannot be; OPC_EUSER: it is larger than any store; OPC_ENOMEM. For
 * opc_imagined_destroy. */
OPC_API int opc_imagined_create(const struct opc_imagined_shape *, struct opc_imagined **out,
                                struct opc_err *err);
/* Frees it. NULL is fine. */
OPC_API void opc_imagined_destroy(struct opc_imagined *);

/* What is appended from now on belongs to this epoch, which is no earlier than the last one; twice
 * is fine. EPOCHS: forgets what lies `retain` epochs back and further. */
OPC_API void opc_imagined_open_epoch(struct opc_imagined *, int epoch);
/* Appends one rollout of `steps` steps: steps + 1 records, laid out as above. OPC_EBUG: it is too
 * long, no epoch is open, or the store is full. */
OPC_API int opc_imagined_append(struct opc_imagined *, int steps, const float *records,
                                struct opc_err *err);
/* STEPS: keeps at most this many transitions from now on, and no more than the shape says. */
OPC_API void opc_imagined_limit(struct opc_imagined *, size_t transitions);
/* Forgets everything; open an epoch next. */
OPC_API void opc_imagined_clear(struct opc_imagined *);

/* The number of transitions that are kept. */
OPC_API size_t opc_imagined_transitions(const struct opc_imagined *);
/* The number of rollouts that are kept. */
OPC_API size_t opc_imagined_rollouts(const struct opc_imagined *);

/* One rollout; its records belong to the store and live until it changes. */
struct opc_rollout_rows {
    int steps;
    const float *records; /* [steps + 1][obs + act + 2] */
};
/* Goes through the rollouts in their order: starts with *position = 0, leaves it after the rollout
 * found, and returns false when there is none. */
OPC_API bool opc_imagined_next(const struct opc_imagined *, uint64_t *position,
                               struct opc_rollout_rows *out);
/* Draws n steps uniformly with replacement; the store must not be empty. step[i] points at s, a, r,
 * mark, s' in the store and is good until that changes. This is an opc_draw_fn for struct opc_feed,
 * whose ctx is the store. */
OPC_API void opc_imagined_draw(void *store, int n, struct opc_rng *, const float **step);

#ifdef __cplusplus
}
#endif
#endif
