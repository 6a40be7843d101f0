/* SPDX-License-Identifier: MIT */
/* opc/disagreement.h - how much the elites of the ensemble disagree about an imagined step.
 *
 *     c_k = f_k(s, a) - f_k(s_ref, a_ref)     eq. 5: the correction by elite k
 *     c_k = f_k(s, a) - s                     eq. 2: the predicted change
 *     u   = mean_j Var_k(c_kj) / d_j^2        j: entries of the state, and the reward
 *
 * d_j is the standard deviation of the model's target j (s' - s, and the reward) over all recorded
 * steps; one that hardly varies (d_j < 1e-6 max(1, |mean_j|)) counts in its own unit, d_j = 1. By
 * eq. 5, u is 0 on the reference, however much the elites disagree about f itself.
 *
 * A step is refused if u > kappa. This limit is taken from the first steps of rollouts (h = 0),
 * which begin in recorded states:
 *
 *     kappa = mean over all simulations so far of  xi x the 0.95-quantile of u at h = 0
 *
 * Eq. 2 has the same rule, so that both can be compared: there it is close to that of MACURA
 * (Frauenknecht et al., 2024), which compares Gaussians and not means. */
#ifndef OPC_DISAGREEMENT_H
#define OPC_DISAGREEMENT_H

#include "opc/transition_type.h"

/* First steps that a simulation's quantile is taken of, if it has as many rollouts. */
enum { OPC_DISAGREEMENT_SAMPLE = 1000 };

/* What a later simulation depends on. Section "disagreement" of a checkpoint is this struct as it
 * is in memory. */
struct opc_disagreement_state {
    double mean;    /* of xi x the quantile, over the simulations so far */
    uint64_t count; /* simulations */
};

struct opc_disagreement {
    int obs, act, capacity;
    double factor; /* xi */
    struct opc_disagreement_state now;
    double limit;   /* kappa; infinite until it is known */
    double *weight; /* [obs + 1] 1 / ((obs + 1) d_j^2) */
    size_t records; /* recorded states the weights are of */
    double *u;      /* [capacity] of the rows that were measured last */
    double *first;  /* [OPC_DISAGREEMENT_SAMPLE] u of first steps */
    /* scratch of opc_disagreement_measure */
    int *elite;            /* [capacity] */
    float *f;              /* [capacity][obs + 1] */
    double *sum, *squares; /* [capacity][obs + 1] */
};

/* For up to `capacity` rows at a time. */
int opc_disagreement_create(int obs, int act, int capacity, double factor,
                            struct opc_disagreement **out, struct opc_err *err);
void opc_disagreement_destroy(struct opc_disagreement *); /* NULL is fine */
size_t opc_disagreement_need(int obs, int capacity);      /* bytes */
/* Takes the deviations d_j from everything recorded. */
void opc_disagreement_update(struct opc_disagreement *, const struct opc_episodes *past);
/* Measures u of the rows, after opc_transition_step has moved them; overwrites walk->work. Each
 * elite but the row's own predicts once more (for eq. 2 the row's own, too: its step was a draw).
 */
void opc_disagreement_measure(struct opc_disagreement *, const struct opc_transition *,
                              const struct opc_walk *, struct opc_pool *);
/* Sets kappa from u of the first steps of n >= 1 rollouts of this simulation, first[0 .. n-1],
 * which are sorted. All must be finite. */
void opc_disagreement_set_limit(struct opc_disagreement *, int n);

#endif
