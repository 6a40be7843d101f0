/* SPDX-License-Identifier: MIT */
/* src/opc/branches.h - rollouts from given starts that are kept whole, to be compared step by step.
 *
 * This is for analysis of a model: run/real/onpolicy.c, study/probe and study/ilc. Algorithm 2
 * (opc/algorithm2.h) draws its starts and stores experience; here the caller chooses the starts and
 * reads whole trajectories. */
#ifndef OPC_BRANCHES_H
#define OPC_BRANCHES_H

#include "opc/walk.h"

/* n rollouts of up to `horizon` steps. n may be lowered after make. */
struct opc_branches {
    int n, horizon, obs, act;
    /* The caller sets the recorded step each starts at and the streams it draws from. They are not
     * changed, so that another model can be followed from the same starts. */
    int *episode, *time;         /* [n] */
    struct opc_rng *rng, *noise; /* [n] for elites and actions; for eq. 2 */
    /* The trajectories, filled by opc_branches_follow. */
    float *state;      /* [n][horizon + 1][obs] */
    float *action;     /* [n][horizon][act] */
    float *reward;     /* [n][horizon] */
    int *length;       /* [n] steps it has */
    enum opc_end *end; /* [n] why it has no more; a refused step is not among them */
    /* While they are followed: rows->start tells the plan's functions which rollout a row is. */
    const struct opc_rows *rows;
};

int opc_branches_make(int n, int horizon, int obs, int act, struct opc_branches *out,
                      struct opc_err *err);
void opc_branches_free(struct opc_branches *);

/* Rolls all of them out until the last has ended; plan->horizon is at most theirs. */
int opc_branches_follow(struct opc_branches *, const struct opc_walk_plan *, struct opc_err *err);

/* Entry k of the state after h steps of rollout i; NaN if it has ended before. */
double opc_branches_at(const struct opc_branches *, int i, int h, int k);
/* returns[n]: sums of the rewards, without discount. */
void opc_branches_returns(const struct opc_branches *, double *returns);
/* The number of rollouts that ended for this reason. */
int opc_branches_ended(const struct opc_branches *, enum opc_end);

#endif
