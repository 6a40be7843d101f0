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

/* Room for `steps` steps in at most `episodes` episodes. */
OPC_API int opc_episodes_create(int obs, int act, int steps, int episodes,
                                struct opc_episodes **out, struct opc_err *err);
OPC_API void opc_episodes_destroy(struct opc_episodes *); /* NULL is fine */

/* begin, append ..., close. States and rewards are rounded to float here, once (-0 becomes 0, so
 * that eq. 5 can give them back to the bit). OPC_EENV: one does not fit; OPC_EBUG: the store is
 * full. */
OPC_API int opc_episodes_begin(struct opc_episodes *, const double *state, struct opc_err *err);
OPC_API int opc_episodes_append(struct opc_episodes *, const float *action, double reward,
                                const double *next, bool terminal, struct opc_err *err);
OPC_API void opc_episodes_close(struct opc_episodes *);      /* an episode of no steps is dropped */
OPC_API bool opc_episodes_open(const struct opc_episodes *); /* between begin and close */

OPC_API int opc_episodes_obs(const struct opc_episodes *);
OPC_API int opc_episodes_act(const struct opc_episodes *);
OPC_API int opc_episodes_count(const struct opc_episodes *); /* closed episodes */
OPC_API int opc_episodes_steps(const struct opc_episodes *); /* steps in them */
OPC_API int opc_episodes_length(const struct opc_episodes *, int b);
OPC_API struct opc_step opc_episodes_at(const struct opc_episodes *, int b, int t);
/* Steps of closed episodes are numbered 0 .. steps-1 in the order they were played. */
OPC_API int opc_episodes_first(const struct opc_episodes *, int b); /* number of its step 0 */
OPC_API void opc_episodes_find(const struct opc_episodes *, int step, int *b, int *t);
/* sa[steps][obs + act] and y[steps][obs + 1] = [s' - s, reward] of all of them, for fitting. */
OPC_API void opc_episodes_flatten(const struct opc_episodes *, float *sa, float *y);

#ifdef __cplusplus
}
#endif
#endif
