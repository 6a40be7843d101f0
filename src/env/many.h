/* SPDX-License-Identifier: MIT */
/* env/many.h - many environments of one kind, stepped over the pool.
 *
 * They share what opc_env_another shares. Environment i sees nothing of the others, so results do
 * not depend on the number of threads; neither does the error, which is that of the lowest i. */
#ifndef OPC_ENV_MANY_H
#define OPC_ENV_MANY_H

#include "base/pool.h"
#include "opc/env.h"

struct opc_many;

/* The pool (NULL: the calling thread alone) is borrowed. Of a machine there is 1, whatever n is. */
int opc_many_open(const char *spec, int n, struct opc_pool *, struct opc_many **out,
                  struct opc_err *err);
/* One, which stays the caller's. */
int opc_many_of(struct opc_env *, struct opc_many **out, struct opc_err *err);
void opc_many_close(struct opc_many *); /* NULL is fine */
int opc_many_count(const struct opc_many *);
const struct opc_env *opc_many_env(const struct opc_many *, int i); /* for its dimensions */

/* Both leave out the environments whose `active` is false; NULL: none is left out. */
int opc_many_reset(struct opc_many *, const bool *active, struct opc_rng *rng, /* [n] */
                   double *obs,                                                /* [n][obs] */
                   struct opc_err *err);
int opc_many_step(struct opc_many *, const bool *active, const double *action, /* [n][act] */
                  struct opc_outcome *out, /* [n], each with its own obs */
                  struct opc_err *err);
void opc_many_rest(struct opc_many *, int i); /* its episode is over */

#endif
