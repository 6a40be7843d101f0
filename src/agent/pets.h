/* SPDX-License-Identifier: MIT */
/* agent/pets.h - probabilistic ensembles with trajectory sampling (Chua et al. 2018): its settings
 * and its type. It has no policy network: each action is planned through the dynamics model.
 *
 * Defaults are those of the original; (mbrl-lib) marks what that library does instead. Words after
 * the help text of a setting are aliases. docs/pets.md explains the method. */
#ifndef OPC_AGENT_PETS_H
#define OPC_AGENT_PETS_H

#include "base/field.h"
#include "opc/agent.h"

/* clang-format off */
#define OPC_PETS_FIELDS(X)                                                                          \
    X(INT,    horizon,          "25",    1, 1e4,  "H, steps that are planned ahead", "plan_hor|planning_horizon") \
    X(INT,    population,       "400",   1, 1e6,  "candidates of an iteration, each a sequence of H actions", "popsize|population_size") \
    X(INT,    elites,           "40",    1, 1e6,  "the best candidates of an iteration, whose mean and variance the next one is drawn from", "num_elites") \
    X(INT,    iterations,       "5",     1, 1e4,  "iterations of the optimiser for each action", "max_iters|num_iterations") \
    X(REAL,   deviation,        "0.25",  0, 1,    "standard deviation that the first iteration draws actions with, as a share of their range") \
    X(REAL,   alpha,            "0.1",   0, 1,    "share of the old mean and variance that an iteration keeps") \
    X(REAL,   min_variance,     "1e-3",  0, 1e9,  "planning stops early where no action has a larger variance, in units of actions in [-1, 1]; 0: never (mbrl-lib)", "epsilon") \
    X(CHOICE, variance,         "population", "population|sample", , "divisor of the elites' variance: n, or n - 1 (mbrl-lib)") \
    X(INT,    particles,        "20",    1, 1e5,  "P, times each candidate is simulated; a multiple of model.elites", "npart|num_particles") \
    X(REAL,   feedback,         "0",     0, 1e6,  "largest gain of a linear feedback that is planned with the actions, in units of actions in [-1, 1] for a standard deviation of the state; 0: a plan is actions alone") \
    X(BOOL,   bound_reward,     "false", 0, 1,    "clip the rewards that the model predicts in a plan to the recorded range plus a tenth; otherwise plans are drawn to where a learned reward is too high") \
    X(CHOICE, propagation,      "tsinf", "tsinf|ts1|ts1_batch", , "a particle keeps its member of the ensemble for all steps (tsinf), or members are dealt out anew at each step: among the particles of a candidate (ts1), or among those of all candidates (ts1_batch, mbrl-lib)") \
    X(CHOICE, optimizer,        "cem",   "cem|icem", , "the cross-entropy method, or the improved one (iCEM) with correlated noise, a shrinking population and kept elites") \
    X(REAL,   noise_exponent,   "2",     0, 10,   "icem: noise along a plan has the power spectrum 1 / f^exponent; 0: white") \
    X(REAL,   population_decay, "1.3",   1, 100,  "icem: the population shrinks by this factor with each iteration, down to twice pets.elites") \
    X(REAL,   keep_elites,      "0.3",   0, 1,    "icem: share of the elites that is added to the next population, also of the next step")
/* clang-format on */
struct opc_pets_config {
    OPC_PETS_FIELDS(OPC_MEMBER)
};
enum { OPC_PETS_TSINF, OPC_PETS_TS1, OPC_PETS_TS1_BATCH };
enum { OPC_PETS_CEM, OPC_PETS_ICEM };

/* The columns it reports, in the order of opc_pets_type.columns: means over the plans of real
 * steps. */
enum {
    OPC_PETS_RETURN,      /* what the elites of the last iteration earn in the model, H steps */
    OPC_PETS_ITERATIONS,  /* until it stopped */
    OPC_PETS_VARIANCE,    /* the largest of an action at the end */
    OPC_PETS_NOT_FINITE,  /* candidates of a plan whose return is not finite */
    OPC_PETS_UNCORRECTED, /* share of planned steps without a recording to be corrected by */
    OPC_PETS_COLUMNS
};
extern const struct opc_section opc_pets_section; /* "pets" */
extern const struct opc_agent_type opc_pets_type;

#endif
