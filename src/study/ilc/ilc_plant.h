/* SPDX-License-Identifier: MIT */
/* study/ilc/ilc_plant.h - systems to try learning control on: a real one that can be started
 * again in the same state, together with a model of it that is wrong. */
#ifndef OPC_STUDY_ILC_PLANT_H
#define OPC_STUDY_ILC_PLANT_H

#include "opc/rng.h"
#include "study/ilc/ilc.h"

enum { OPC_PLANT_STATES = 2, OPC_PLANT_ACTIONS = 1 }; /* maxima over all plants */

enum opc_plant_kind {
    /* The model says x'' = a; the truth has a little friction, a spring and a weaker motor. */
    OPC_PLANT_DOUBLE_INTEGRATOR_MISMATCH,
    OPC_PLANT_PENDULUM, /* the task `pendulum`, hanging at rest */
};

/* Which plant, and how wrong its model is. */
struct opc_plant_plan {
    enum opc_plant_kind kind;
    double gravity, torque; /* of the pendulum's model, as multiples of the truth */
    double process_noise;   /* standard deviation of the noise added to each state in each step */
    double sensor_noise;    /* standard deviation of the noise added to each measured state */
};

struct opc_plant {
    struct opc_plant_plan plan;
    int n, m;
    double dt;
    const char *state_name[OPC_PLANT_STATES], *action_name; /* with units */
    double s0[OPC_PLANT_STATES];                            /* every trial starts here */
    const double *low, *high; /* [m] range of the actions; NULL: unlimited */
    opc_next_fn *model;       /* given the plant as ctx */
    bool constant;            /* the model is linear: the same A and B everywhere */
    struct opc_env *env;
};

int opc_plant_open(const struct opc_plant_plan *, struct opc_plant **out, struct opc_err *err);
void opc_plant_close(struct opc_plant *); /* NULL is fine */
/* One trial of u[T][m] from the start. u is clipped to the range of the actions first; s[T+1][n]
 * are the measured states. rng NULL: without any noise. */
int opc_plant_try(struct opc_plant *, int T, double *u, struct opc_rng *rng, double *s,
                  struct opc_err *err);

#endif
