/* SPDX-License-Identifier: MIT */
/* env/many.h - many environments of one kind, stepped over the pool, and a batch of episodes that
 * are played in them side by side.
 *
 * The environments share what opc_env_another shares. Environment i sees nothing of the others, so
 * results do not depend on the number of threads; neither does the error, which is that of the
 * lowest i. Evaluation (run/real/evaluate.c), replaying recorded episodes (run/real/retrace.c) and
 * probing (study/probe/probe.c) play batches. */
#ifndef OPC_ENV_MANY_H
#define OPC_ENV_MANY_H

#include "base/pool.h"
#include "opc/env.h"

struct opc_many;

/* Opens n environments. The pool (NULL: the calling thread alone) is borrowed. Of hardware there is
 * only one, whatever n is. */
int opc_many_open(const char *spec, int n, struct opc_pool *, struct opc_many **out,
                  struct opc_err *err);
/* The same interface around one environment, which stays the caller's. */
int opc_many_of(struct opc_env *, struct opc_many **out, struct opc_err *err);
void opc_many_close(struct opc_many *); /* NULL is fine */
int opc_many_count(const struct opc_many *);
const struct opc_env *opc_many_env(const struct opc_many *, int i); /* for its dimensions */
struct opc_env *opc_many_borrow(struct opc_many *, int i);          /* to play it alone */

/* Both leave out the environments whose `active` is false; active may be NULL: all take part. */
int opc_many_reset(struct opc_many *, const bool *active, struct opc_rng *rng, /* [n] */
                   double *obs,                                                /* [n][obs] */
                   struct opc_err *err);
int opc_many_step(struct opc_many *, const bool *active, const double *action, /* [n][act] */
                  struct opc_outcome *out, /* [n], each with its own obs */
                  struct opc_err *err);
void opc_many_rest(struct opc_many *, int i); /* its episode is over */

/* ---- a batch of episodes --------------------------------------------------------------------- */

/* One episode per environment. An episode that has ended waits for the others, and its row stays
 * where it is, so what a row contains does not depend on when the others end. */
struct opc_env_batch {
    struct opc_many *worlds; /* borrowed */
    int n, obs, act;         /* n rows, as many as there are environments */
    int first;               /* row i plays episode number first + i */
    bool *active;            /* [n] its episode goes on */
    int *length;             /* [n] steps its episode has */
    /* [n] The episode was reset from this stream; the player may draw its actions from here on. */
    struct opc_rng *rng;
    double *state; /* [n][obs] after `length` steps */
    float *input;  /* [n][obs] the same, rounded, for a policy; filled before `act` is called */
    float *action; /* [n][act] in [-1, 1]; written by `act` */
    double *task_action;         /* [n][act] the same in the task's own units */
    struct opc_outcome *outcome; /* [n] of the last step; after a reset no reward and no end */
};

/* The player chooses the actions and decides when an episode ends. */
struct opc_env_player {
    void *ctx; /* first argument of the functions */
    /* The stream that an episode is reset from. */
    struct opc_rng (*stream)(void *ctx, int episode);
    /* Writes batch->action. Only active rows need an action; the others are ignored. */
    int (*act)(void *ctx, struct opc_env_batch *, struct opc_err *err);
    /* Called for each active row, in order, after its reset (length 0) and after each of its steps.
     * *more is true on entry; setting it to false ends the episode of the row. */
    int (*observe)(void *ctx, const struct opc_env_batch *, int row, bool *more,
                   struct opc_err *err);
};

int opc_env_batch_create(struct opc_many *, struct opc_env_batch *out, struct opc_err *err);
void opc_env_batch_free(struct opc_env_batch *); /* accepts one that is all zeros */
/* Plays episodes first, first + 1, ... below `end`, at most n of them, until each has ended. */
int opc_env_batch_play(struct opc_env_batch *, int first, int end, const struct opc_env_player *,
                       struct opc_err *err);

#endif
