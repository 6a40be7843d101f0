/* SPDX-License-Identifier: MIT */
/* model/ensemble_private.h - the ensemble's memory, shared by ensemble.c (prediction), trainer.c
 * (gradient steps), fit.c (whole fits), targets.c and jacobian.c. Nobody else includes it, except
 * tests. */
#ifndef OPC_MODEL_ENSEMBLE_PRIVATE_H
#define OPC_MODEL_ENSEMBLE_PRIVATE_H

#include "model/ensemble.h"
#include "num/adam.h"
#include "num/gauss.h"
#include "num/mlp.h"
#include "num/scaler.h"

enum {
    OPC_CHUNK = 8,        /* panels that go through a network together */
    OPC_AT_ONCE = 131072, /* rows sorted by elite together */
};

/* A predictor (opc/predictor.h) of type `ensemble`. */
struct opc_ensemble {
    struct opc_predictor base;
    struct opc_ensemble_config config;
    int in; /* inputs: obs + act */
    /* Outputs: obs + 1, for [s' - s, reward]. The network has 2 dim: means, raw log-variances. */
    int dim;
    uint64_t seed; /* seed and which name the streams of the first weights */
    uint32_t which;
    long fits;                 /* how often it has been fitted */
    long rows;                 /* that the last fit was given; later ones are new */
    struct opc_mlp *net;       /* all members */
    struct opc_adam *adam;     /* of net's parameters */
    struct opc_scaler *scaler; /* of the inputs; shared by all members */
    /* Of the targets; target_before is that of the fit before. NULL without
     * model.normalize_targets: the networks then predict in the task's units. */
    struct opc_scaler *target, *target_before;
    int sets;     /* of bounds: one, or one for each member */
    float *bound; /* [sets][2][dim] upper, lower bounds of the log-variance */
    struct opc_adam *bound_adam;
    int threads;
    struct opc_arena *scratch; /* [threads] */
    int *order;                /* [OPC_AT_ONCE] rows sorted by elite */
};

static inline struct opc_ensemble *opc_ensemble_of(struct opc_predictor *p)
{
    return (struct opc_ensemble *)p;
}
static inline const float *opc_ensemble_upper(const struct opc_ensemble *ensemble, int member)
{
    return ensemble->bound + (ensemble->sets > 1 ? (size_t)member * 2 * (size_t)ensemble->dim : 0);
}
static inline const float *opc_ensemble_lower(const struct opc_ensemble *ensemble, int member)
{
    return opc_ensemble_upper(ensemble, member) + ensemble->dim;
}

/* Sets the scale of the targets from rows index[0 .. n-1] of y[][dim]. warm: the weights are those
 * of an earlier fit, and are expressed in the new scale so that no prediction changes. */
void opc_ensemble_scale_targets(struct opc_ensemble *, int n, const float *y, const int *index,
                                bool warm);

/* Draws new weights and resets Adam's moments and the bounds. Not the scaler: each fit sets it. */
void opc_ensemble_restart(struct opc_ensemble *);

/* error[member]: mean squared error of the member's mean, over the given rows and all outputs, in
 * the units of the trainer's table. squares: memory for opc_trainer_holdout_need doubles. */
void opc_trainer_holdout(struct opc_trainer *, int n, const int *index, double *squares,
                         double *error);
size_t opc_trainer_holdout_need(int members, int n);

/* The type's `fit` (fit.c) and `jacobian` (jacobian.c). */
int opc_ensemble_fit(struct opc_predictor *, int n, const float *sa, const float *y,
                     const struct opc_fit_plan *, struct opc_fit_report *, struct opc_err *err);

int opc_ensemble_jacobian(const struct opc_predictor *, int n, const float *s, const float *a,
                          const int *elite, float *J, struct opc_pool *, struct opc_err *err);

#endif
