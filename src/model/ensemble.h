/* SPDX-License-Identifier: MIT */
/* model/ensemble.h - the probabilistic ensemble: several networks, each a Gaussian over
 * [s' - s, reward], trained on its own bootstrap of the recorded steps (Chua et al. 2018 as
 * Janner et al. 2019 use it). Where mbrl-lib does otherwise there is a setting; the default is the
 * original. */
#ifndef OPC_MODEL_ENSEMBLE_H
#define OPC_MODEL_ENSEMBLE_H

#include "base/field.h"
#include "opc/predictor.h"

/* The settings, section "model". Defaults are those of Janner et al. (2019); (mbrl-lib) marks what
 * that library does instead. Words after a help text are aliases. */
/* clang-format off */
#define OPC_ENSEMBLE_FIELDS(X)                                                                      \
    X(INT,    members,        "7",      1, 32,    "networks in the ensemble", "ensemble_size|num_networks") \
    X(INT,    elites,         "5",      1, 32,    "how many members predict: those with the lowest holdout error", "num_elites") \
    X(INTS,   hidden,         "[200, 200, 200, 200]", 1, 8192, "widths of the hidden layers")       \
    X(REAL,   learning_rate,  "1e-3",   0, 1,     "Adam's learning rate", "rate|lr")                \
    X(CHOICE, adam,           "original", "original|torch", , "where Adam adds its epsilon: to sqrt(v) before the bias correction, or after it as PyTorch does") \
    X(REALS,  weight_decay,   "[2.5e-5, 5e-5, 7.5e-5, 7.5e-5, 1e-4]", 0, 1, "L2 penalty on the weights of each layer; one number for all; the default is spread over any number of layers", "decay") \
    X(BOOL,   decay_biases,   "false",  0, 1,     "apply the weight decay to biases too (mbrl-lib)") \
    X(INT,    batch_size,     "256",    1, 65536, "rows in one gradient step, for each member", "batch") \
    X(REAL,   holdout_ratio,  "0.2",    0, 0.9,   "share of the data that is held out to measure the error on; 0: none, and errors are those of training rows, max_holdout of them at most", "holdout") \
    X(INT,    max_holdout,    "5000",   1, 1e9,   "upper limit on the number of held-out rows (mbrl-lib: none)", "holdout_most") \
    X(INT,    patience,       "5",      0, 1e6,   "a fit stops after more than this many passes (with holdout_every: measurements) without an improvement of the holdout error") \
    X(REAL,   min_improvement, "0.01",  0, 1,     "smallest relative fall of a member's holdout error that counts as an improvement", "improvement") \
    X(INT,    max_epochs,     "0",      0, 1e6,   "a fit stops after this many passes over the data; 0: only patience ends it", "most_passes") \
    X(INT,    max_steps,      "0",      0, 1e9,   "a fit stops after this many gradient steps; 0: no such limit") \
    X(INT,    holdout_every,  "0",      0, 1e9,   "gradient steps between two measurements of the holdout error, which patience counts; 0: a pass over the data") \
    X(REAL,   new_ratio,      "0",      0, 1,     "smallest share of rows recorded since the last fit among those that a member trains on; 0: all rows are drawn alike") \
    X(CHOICE, best,           "fresh",  "fresh|incoming", , "the holdout error that has to be improved on first: the one after the first pass, or the one before it (mbrl-lib)") \
    X(CHOICE, snapshot,       "member", "member|whole|last", , "what a fit ends with: each member's best weights, those of the whole ensemble (mbrl-lib), or the weights after the last pass (PETS)") \
    X(BOOL,   bootstrap,      "true",   0, 1,     "each member draws its own training rows with replacement") \
    X(BOOL,   warm_start,     "true",   0, 1,     "a fit starts from the weights and moments of the last one") \
    X(CHOICE, bounds,         "learned", "learned|fixed|member", , "bounds of the log-variance: learned together, fixed (mbrl-lib), or learned by each member") \
    X(REAL,   bound_penalty,  "0.01",   0, 1,     "weight of the upper minus the lower log-variance bounds in the loss") \
    X(REAL,   log_var_max,    "0.5",    -50, 50,  "upper bound of the log-variance at the start")   \
    X(REAL,   log_var_min,    "-10",    -50, 50,  "lower bound of the log-variance at the start")   \
    X(CHOICE, scale_on,       "train",  "train|all", , "rows that set the input scale: the training rows, or the held-out ones too (mbrl-lib)") \
    X(CHOICE, scale_std,      "population", "population|sample", , "divisor of the standard deviation: n, or n - 1 (mbrl-lib)") \
    X(BOOL,   normalize_targets, "false", 0, 1,   "the networks learn targets of mean 0 and variance 1; holdout errors and log-variance bounds are in these units", "normalise_targets") \
    X(CHOICE, reward,         "learned", "learned|given|auto", , "rewards of imagined steps: predicted as one more output of the model; computed by the task, where they are a function of the transition; or computed where they can be and else predicted") \
    X(CHOICE, termination,    "given",   "given|learned", , "where imagined steps end: by the function of the task, and never if it has none; or, if it has none, by a classifier that is learned from the recorded ends")
/* clang-format on */
struct opc_ensemble_config {
    OPC_ENSEMBLE_FIELDS(OPC_MEMBER)
};
extern const struct opc_section opc_ensemble_section; /* "model" */

/* Values of the choices above, in the order of their words. */
enum { OPC_BEST_FRESH, OPC_BEST_INCOMING };
enum { OPC_SNAPSHOT_MEMBER, OPC_SNAPSHOT_WHOLE, OPC_SNAPSHOT_LAST };
enum { OPC_BOUNDS_LEARNED, OPC_BOUNDS_FIXED, OPC_BOUNDS_MEMBER };
enum { OPC_SCALE_TRAIN, OPC_SCALE_ALL };
enum { OPC_REWARD_LEARNED, OPC_REWARD_GIVEN, OPC_REWARD_AUTO };
enum { OPC_TERMINATION_GIVEN, OPC_TERMINATION_LEARNED };

/* Sets one setting from "name=value". */
int opc_ensemble_set(struct opc_ensemble_config *, const char *assignment, struct opc_err *err);

/* threads: how many threads it has scratch memory for. seed and which name the streams of its first
 * weights (OPC_USE_INIT). OPC_EUSER: the settings contradict each other. */
int opc_ensemble_make(const struct opc_ensemble_config *, int obs, int act, int threads,
                      uint64_t seed, uint32_t which, struct opc_predictor **out,
                      struct opc_err *err);

/* Takes over what `from` has learned: weights, moments, bounds, scales, elites, counts. The
 * settings stay as they are; those that shape the networks must be equal, or it is OPC_EUSER. */
int opc_ensemble_copy(const struct opc_predictor *from, struct opc_predictor *to,
                      struct opc_err *err);

/* One gradient step of every member, for benchmarks and for tests against other implementations.
 * opc_predictor_fit uses the same trainer, which holds the data scaled and ready to be gathered. */
struct opc_ensemble;
struct opc_trainer;
int opc_trainer_create(struct opc_predictor *, int n, const float *sa, const float *y,
                       struct opc_pool *, struct opc_trainer **out, struct opc_err *err);
void opc_trainer_destroy(struct opc_trainer *); /* NULL is fine */
/* Member m trains on rows index[m * apart + 0 .. rows-1]. Returns the sum of the members' losses
 * (without weight decay and bound penalty); NaN when one diverged. */
double opc_trainer_step(struct opc_trainer *, int rows, const int *index, size_t apart);

#endif
