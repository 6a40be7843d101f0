/* SPDX-License-Identifier: MIT */
/* model/ensemble.h - the probabilistic ensemble: several networks, each a Gaussian over
 * [s' - s, reward], trained on its own bootstrap of the recorded steps (Chua et al. 2018 as
 * Janner et al. 2019 use it). Where mbrl-lib does otherwise there is a setting; the default is the
 * original. */
#ifndef OPC_MODEL_ENSEMBLE_H
#define OPC_MODEL_ENSEMBLE_H

#include "base/field.h"
#include "opc/predictor.h"

/* clang-format off */
#define OPC_ENSEMBLE_FIELDS(X)                                                                       \
    X(INT,    members,        "7",      1, 32,    "networks in the ensemble")                        \
    X(INT,    elites,         "5",      1, 32,    "of them, the best on the holdout, that predict")  \
    X(INTS,   hidden,         "[200, 200, 200, 200]", 1, 8192, "widths of the hidden layers")        \
    X(REAL,   rate,           "1e-3",   0, 1,     "Adam's step")                                     \
    X(CHOICE, adam,           "original", "original|torch", , "where eps stands: beside sqrt(v), or as PyTorch has it") \
    X(REALS,  decay,          "[2.5e-5, 5e-5, 7.5e-5, 7.5e-5, 1e-4]", 0, 1, "L2 on the weights of each layer; one number for all") \
    X(BOOL,   decay_biases,   "false",  0, 1,     "decay biases too (mbrl-lib)")                     \
    X(INT,    batch,          "256",    1, 65536, "rows in one gradient step, for each member")      \
    X(REAL,   holdout,        "0.2",    0, 0.9,   "share of the data kept apart to measure the error on") \
    X(INT,    holdout_most,   "5000",   1, 1e9,   "but at most this many rows (mbrl-lib: no limit)") \
    X(INT,    patience,       "5",      0, 1e6,   "passes without improvement that are forgiven")    \
    X(REAL,   improvement,    "0.01",   0, 1,     "what counts as one: the relative fall of a member's holdout error") \
    X(INT,    most_passes,    "0",      0, 1e6,   "stop after this many passes over the data; 0: only by patience") \
    X(CHOICE, best,           "fresh",  "fresh|incoming", , "the error to beat: the first pass's, or the weights' from before (mbrl-lib)") \
    X(CHOICE, snapshot,       "member", "member|whole", , "keep each member's best weights, or the whole ensemble's (mbrl-lib)") \
    X(BOOL,   bootstrap,      "true",   0, 1,     "each member draws its own training rows with replacement") \
    X(BOOL,   warm_start,     "true",   0, 1,     "a fit goes on from the last one's weights and moments") \
    X(CHOICE, bounds,         "learned", "learned|fixed|member", , "bounds of the log-variance: learned together, fixed (mbrl-lib), or learned by each member") \
    X(REAL,   bound_penalty,  "0.01",   0, 1,     "weight of the upper minus the lower bounds in the loss") \
    X(REAL,   log_var_max,    "0.5",    -50, 50,  "where the upper bound starts")                    \
    X(REAL,   log_var_min,    "-10",    -50, 50,  "where the lower bound starts")                    \
    X(CHOICE, scale_on,       "train",  "train|all", , "rows that set the input scale: without or with the holdout (mbrl-lib)") \
    X(CHOICE, scale_std,      "population", "population|sample", , "divisor n, or n - 1 (mbrl-lib)")
/* clang-format on */
struct opc_ensemble_config {
    OPC_ENSEMBLE_FIELDS(OPC_MEMBER)
};
extern const struct opc_section opc_ensemble_section; /* "model" */

enum { OPC_BEST_FRESH, OPC_BEST_INCOMING };
enum { OPC_SNAPSHOT_MEMBER, OPC_SNAPSHOT_WHOLE };
enum { OPC_BOUNDS_LEARNED, OPC_BOUNDS_FIXED, OPC_BOUNDS_MEMBER };
enum { OPC_SCALE_TRAIN, OPC_SCALE_ALL };

/* threads: the most that will ever work on it at once. seed and which name its first weights. */
int opc_ensemble_create(const struct opc_ensemble_config *, int obs, int act, int threads,
                        uint64_t seed, uint32_t which, struct opc_predictor **out,
                        struct opc_err *err);

/* One gradient step of every member, for benchmarks and for tests against other implementations:
 * a trainer holds the data in the form the steps want. */
struct opc_ensemble;
struct opc_trainer;
int opc_trainer_create(struct opc_predictor *, int n, const float *sa, const float *y,
                       struct opc_pool *, struct opc_trainer **out, struct opc_err *err);
void opc_trainer_destroy(struct opc_trainer *); /* NULL is fine */
/* Member m trains on rows index[m * apart + 0 .. rows-1]. Returns the sum of the members' losses
 * (without decay and bounds); NaN when one diverged. */
double opc_trainer_step(struct opc_trainer *, int rows, const int *index, size_t apart);

#endif
