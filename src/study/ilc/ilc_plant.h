/* SPDX-License-Identifier: MIT */
/* study/ilc/ilc_plant.h - what learning control is tried on: a real system that can be started
 * again in the same state, and a model of it that is wrong. */
#ifndef OPC_STUDY_ILC_PLANT_H
#define OPC_STUDY_ILC_PLANT_H

#include "opc/rng.h"
#include "study/ilc/ilc.h"

enum { OPC_PLANT_STATES = 2, OPC_PLANT_ACTIONS = 1 }; /* the most a plant has */

enum opc_plant_kind {
    OPC_PLANT_DOUBLE_INTEGRATOR_MISMATCH, /* x'' = a, and in truth a little friction, a spring and
                                             a weaker motor */
    OPC_PLANT_PENDULUM,                   /* the task `pendulum`, hanging at rest */
};

struct opc_plant_plan {
    enum opc_plant_kind kind;
    double gravity, torque; /* of the pendulum's model, as multiples of the truth */
    double process_noise;   /* standard deviation of what is added to each state and step */
    double sensor_noise;    /* and of what is added to what is seen of it */
};

struct opc_plant {
    struct opc_plant_plan plan;
    int n, m;
    double dt;
    const char *state_name[OPC_PLANT_STATES], *action_name; /* with units */
    double s0[OPC_PLANT_STATES];
    const double *low, *high; /* [m] what it can do; NULL: anything */
    opc_next_fn *model;       /* given the plant as ctx */
    bool constant;            /* the model is linear: the same A and B everywhere */
    struct opc_env *env;
};

int opc_plant_open(const struct opc_plant_plan *, struct opc_plant **out, struct opc_err *err);
void opc_plant_close(struct opc_plant *); /* NULL is fine */
/* One trial of u[T][m] from the start, which is first cut to what the plant can do: s[T+1][n] as it
 * is seen. rng NULL: without any noise. */
int opc_plant_try(struct opc_plant *, int T, double *u, struct opc_rng *rng, double *s,
                  struct opc_err *err);

#endif
