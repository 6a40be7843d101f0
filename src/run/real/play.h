/* SPDX-License-Identifier: MIT */
/* run/real/play.h - the real environment: one episode after the other, recorded.
 *
 * Episodes are numbered and each starts from the stream of its number; what follows depends on the
 * actions alone. So an interrupted episode is restored by playing its actions again, and nothing of
 * a simulator's internal state has to be saved. */
#ifndef OPC_RUN_PLAY_H
#define OPC_RUN_PLAY_H

#include "env/ticks.h"
#include "opc/env.h"
#include "opc/episodes.h"

struct opc_play {
    struct opc_env *env;
    struct opc_episodes *past; /* borrowed */
    uint64_t seed;
    int limit;      /* an episode is cut after this many steps */
    int64_t number; /* of the next episode, from 0 */
    /* the running episode */
    int t;          /* its steps so far */
    double total;   /* its return so far */
    float *s;       /* [obs] its state, as the policy sees it */
    double *state;  /* [obs] its state, as the environment returned it */
    float *actions; /* [limit][act] its actions, of which t are set */
    double *scaled; /* [act] the last action in the task's own range */

    /* episodes that ended since opc_play_count_anew, with their returns and lengths summed up */
    int ended;
    double returns, lengths;
    struct opc_ticks ticks; /* of a machine, in the same time */
};

int opc_play_create(const char *spec, uint64_t seed, int limit_if_none, struct opc_play **out,
                    struct opc_err *err);
void opc_play_destroy(struct opc_play *); /* NULL is fine */

bool opc_play_running(const struct opc_play *);
int opc_play_start(struct opc_play *, struct opc_err *err); /* the next episode */
/* One step with a[act], which is clipped to [-1, 1]; closes the episode if that was its last. */
int opc_play_step(struct opc_play *, const float *a, struct opc_err *err);
void opc_play_cut(struct opc_play *); /* ends the running episode, if any, as not terminal */
/* Starts episode `number` and repeats t steps, which must lead to `state` to the bit. OPC_EENV: the
 * environment does not repeat itself. */
int opc_play_again(struct opc_play *, int64_t number, int t, const float *actions,
                   const double *state, struct opc_err *err);
void opc_play_count_anew(struct opc_play *);

#endif
