/* SPDX-License-Identifier: MIT */
/* opc/episodes.h - the recorded past: every episode played on the real environment.
 *
 * Written by the training loop; read by model fitting and by the transition models. Steps keep
 * their time order for life, because eq. 3 and eq. 5 ask "what followed step t of episode b?".
 * An episode becomes visible to readers as a whole, when it is closed. */
#ifndef OPC_EPISODES_H
#define OPC_EPISODES_H

#include "opc/err.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct opc_episodes; /* opaque; one owner, any number of readers between two appends */

/* One recorded step. Pointers reach into the store and live as long as it. */
struct opc_step {
    const float *state, *action, *next; /* [obs] [act] [obs]; actions as chosen */
    float reward;
    bool terminal; /* the task ended in `next`; running out of time is not terminal */
};

/* Makes an empty past that can hold `steps` steps in at most `episodes` episodes. OPC_ENOMEM. For
 * opc_episodes_destroy. */
OPC_API int opc_episodes_create(int obs, int act, int steps, int episodes,
                                struct opc_episodes **out, struct opc_err *err);
/* Frees it and all steps. NULL is fine. */
OPC_API void opc_episodes_destroy(struct opc_episodes *);

/* An episode is recorded by begin, append ..., close. States and rewards are rounded to float here,
 * once (-0 becomes 0, so that eq. 5 can give them back to the bit). */

/* Begins an episode in state[obs]. OPC_EENV: an entry does not fit into a float; OPC_EBUG: the past
 * is full or an episode is open. */
OPC_API int opc_episodes_begin(struct opc_episodes *, const double *state, struct opc_err *err);
/* Appends one step: action[act] in [-1, 1] as it was chosen, what it brought, and next[obs].
 * terminal: the task ended in next. OPC_EENV: a number does not fit into a float; OPC_EBUG: the
 * past is full. */
OPC_API int opc_episodes_append(struct opc_episodes *, const float *action, double reward,
                                const double *next, bool terminal, struct opc_err *err);
/* Ends the episode, which readers now see. An episode of no steps is dropped. */
OPC_API void opc_episodes_close(struct opc_episodes *);
/* True between begin and close. */
OPC_API bool opc_episodes_open(const struct opc_episodes *);

/* The dimension of states. */
OPC_API int opc_episodes_obs(const struct opc_episodes *);
/* The dimension of actions. */
OPC_API int opc_episodes_act(const struct opc_episodes *);
/* The number of closed episodes. */
OPC_API int opc_episodes_count(const struct opc_episodes *);
/* The number of steps in them. */
OPC_API int opc_episodes_steps(const struct opc_episodes *);
/* The number of steps of episode b, 0 .. count-1. */
OPC_API int opc_episodes_length(const struct opc_episodes *, int b);
/* Step t of episode b, both from 0. Its pointers reach into the past and live as long as that. */
OPC_API struct opc_step opc_episodes_at(const struct opc_episodes *, int b, int t);
/* The number of episode b's step 0: steps of closed episodes are numbered 0 .. steps-1 in the order
 * they were played. */
OPC_API int opc_episodes_first(const struct opc_episodes *, int b);
/* Which step of which episode has this number. */
OPC_API void opc_episodes_find(const struct opc_episodes *, int step, int *b, int *t);
/* Copies all steps for fitting: sa[steps][obs + act] and y[steps][obs + 1] = [s' - s, reward] of
 * all of them, for fitting. */
OPC_API void opc_episodes_flatten(const struct opc_episodes *, float *sa, float *y);

#ifdef __cplusplus
}
#endif
#endif
