/* SPDX-License-Identifier: MIT */
/* run/play.h - the real environment: one episode after the other, recorded.
 *
 * Episodes are numbered and each starts from the stream of its number; what follows depends on the
 * actions alone. So an episode that was interrupted is brought back by playing its actions again,
 * and nothing of a simulator's inside has to be saved. */
#ifndef OPC_RUN_PLAY_H
#define OPC_RUN_PLAY_H

#include "opc/env.h"
#include "opc/episodes.h"

struct opc_play {
    struct opc_env *env;
    struct opc_episodes *past; /* borrowed */
    uint64_t seed;
    int limit;      /* an episode is cut after so many steps */
    int64_t number; /* of the next episode */
    int t;          /* steps of the running one */
    double total;   /* its return so far */
    float *s;       /* [obs] where it is */
    double *state;  /* [obs] the same as the environment told it */
    float *actions; /* [limit][act] of the running one */
    double *scaled; /* [act] */

    /* since opc_play_count_anew */
    int ended;
    double returns, lengths; /* summed over those */
};

int opc_play_create(const char *spec, uint64_t seed, int limit_if_none, struct opc_play **out,
                    struct opc_err *err);
void opc_play_destroy(struct opc_play *); /* NULL is fine */

bool opc_play_running(const struct opc_play *);
int opc_play_start(struct opc_play *, struct opc_err *err); /* the next episode */
/* One step with a[act], cut off to [-1, 1]; at its end the episode is closed. */
int opc_play_step(struct opc_play *, const float *a, struct opc_err *err);
void opc_play_cut(struct opc_play *); /* ends the running episode, if any, which is not terminal */
/* Starts episode `number` and repeats t steps; `state` is where that must lead. */
int opc_play_again(struct opc_play *, int64_t number, int t, const float *actions,
                   const double *state, struct opc_err *err);
void opc_play_count_anew(struct opc_play *);

#endif
