/* SPDX-License-Identifier: MIT */
/* study/ilc/ilc_run.h - runs learning control from settings: a plant, a reference, trials. */
#ifndef OPC_STUDY_ILC_RUN_H
#define OPC_STUDY_ILC_RUN_H

#include "base/field.h"
#include "base/pool.h"
#include "study/ilc/ilc_plant.h"

#include <math.h>

/* clang-format off */
#define OPC_ILC_FIELDS(X)                                                                              \
    X(CHOICE, form,            "linear", "linear|nonlinear|learned|constrained|stochastic", , "the model is linearised once, around each trial, or learned as an ensemble; bounds must be given; a Kalman filter over trials") \
    X(CHOICE, plant,           "double_integrator_mismatch", "double_integrator_mismatch|pendulum", , "what is controlled") \
    X(INT,    steps,           "20",    1, 200,   "T, the actions of a trial")                         \
    X(INT,    iterations,      "8",     1, 1000,  "number of updates; there is one trial more")                  \
    X(CHOICE, reference,       "sine_squared", "sine_squared|swing", , "there and back once, sin^2(pi t / T); or what the plant does under a sine of torque") \
    X(REAL,   amplitude,       "1",     -100, 100, "amplitude of the reference's position, or of the torque that makes it swing") \
    X(REAL,   period,          "1.7",   0.01, 1e3, "period in seconds of the torque that makes the reference swing")                       \
    X(REALS,  weight_state,    "[1]",   0, 1e9,   "M: weight of each state's error, or one number for all")   \
    X(REALS,  weight_action,   "[1e-3]", 0, 1e9,  "W: weight of each action's change, or one number for all") \
    X(REAL,   model_gravity,   "0.8",   -100, 100, "gravity in the pendulum's model; 1: the true one") \
    X(REAL,   model_torque,    "1.25",  -100, 100, "effect of the torque in the pendulum's model; 1: the true one") \
    X(REALS,  action_low,      "[]",    -INFINITY, INFINITY, "smallest value of each action; empty: none") \
    X(REALS,  action_high,     "[]",    -INFINITY, INFINITY, "largest value of each action; empty: none") \
    X(REALS,  state_low,       "[]",    -INFINITY, INFINITY, "smallest value of each predicted state; empty: none") \
    X(REALS,  state_high,      "[]",    -INFINITY, INFINITY, "largest value of each predicted state; empty: none") \
    X(REALS,  faces,           "[]",    -1e9, 1e9, "faces g s <= h of a polytope each predicted state is in: the numbers g, h, one face after the other") \
    X(REAL,   trust,           "0",     0, 1e9,   "largest squared change of an action from trial to trial; 0: no limit") \
    X(REAL,   process_noise,   "0",     0, 100,   "standard deviation of the noise on each state in each step") \
    X(REAL,   sensor_noise,    "0",     0, 100,   "standard deviation of the noise on what is seen of each state") \
    X(REAL,   drift,           "0.01",  0, 100,   "what the filter expects the disturbance to change between trials, as a standard deviation") \
    X(INT,    repeats,         "1",     1, 10000, "number of times everything is repeated, with other noise")         \
    X(INT,    random_trials,   "10",    1, 1000,  "trials with random actions the learned model starts with") \
    X(INT,    members,         "5",     1, 32,    "networks of the learned model")                     \
    X(INTS,   hidden,          "[64, 64]", 1, 1024, "widths of the hidden layers of these networks")                   \
    X(INT,    passes,          "200",   1, 1e6,   "maximum number of passes over the data in one fit of the learned model") \
    X(INT,    seed,            "0",     0, 1e9,   "seed of noise, random actions and networks")
/* clang-format on */
struct opc_ilc_config {
    OPC_ILC_FIELDS(OPC_MEMBER)
};
extern const struct opc_section opc_ilc_section; /* "ilc" */

enum opc_ilc_form {
    OPC_ILC_LINEAR,
    OPC_ILC_NONLINEAR,
    OPC_ILC_LEARNED,
    OPC_ILC_CONSTRAINED,
    OPC_ILC_STOCHASTIC,
    OPC_ILC_FORMS
};
enum { OPC_REFERENCE_SINE_SQUARED, OPC_REFERENCE_SWING };
const char *opc_ilc_form_name(int form);
/* Settings of a form's example, as in experiments/ilc/FORM.yaml. */
int opc_ilc_example(int form, struct opc_ilc_config *, struct opc_err *err);

/* The result. Trajectories are those of the first repeat. */
struct opc_ilc_trials {
    struct opc_ilc_config config;
    int n, m, T, trials; /* trials = iterations + 1 */
    double dt;
    const char *state_name[OPC_PLANT_STATES], *action_name;
    double *ref;   /* [T+1][n] */
    double *s, *u; /* [trials][T+1][n] as measured, [trials][T][m] */
    double *clean; /* [trials][T+1][n] what these actions do without noise */
    double *seen;  /* [repeats][trials] root mean square error as measured */
    double *rms;   /* [repeats][trials] root mean square error without noise */
    /* [repeats][trials] like rms, but without the filter; NULL unless stochastic. */
    double *plain;
    bool limited;  /* there are bounds; then also: */
    double kkt;    /* largest residual of any update's optimality conditions */
    int active;    /* largest number of active bounds of an update */
    double beyond; /* how far the last trial left the bounds on states */
    /* Linear form: largest distance of an update from the one by eq. 5, and the largest action.
     * by_opc is NaN if they were not compared. */
    double by_opc, largest;
    double holdout; /* learned: holdout error of the last fit, mean over members */
};

/* Optional report of progress, 0 .. 1. */
struct opc_ilc_watch {
    void (*progress)(void *ctx, double done, const char *what); /* may be NULL */
    void *ctx;
};

int opc_ilc_run(const struct opc_ilc_config *, struct opc_pool *, const struct opc_ilc_watch *,
                struct opc_ilc_trials **out, struct opc_err *err);
void opc_ilc_trials_free(struct opc_ilc_trials *); /* NULL is fine */

#endif
