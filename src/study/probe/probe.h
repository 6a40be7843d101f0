/* SPDX-License-Identifier: MIT */
/* study/probe/probe.h - examines a trained run: plays episodes with its policies and rolls out
 * its models along them. The common part of Figures 13 to 16.
 *
 * Every random number comes from a stream named by its purpose (enum opc_draw), so nothing
 * depends on the number of threads, and two models that are rolled out alike see the same
 * noise. */
#ifndef OPC_STUDY_PROBE_H
#define OPC_STUDY_PROBE_H

#include "env/many.h"
#include "opc/branches.h"
#include "run/trained.h"
#include "study/exhibit/analysis.h"

/* ---- the run --------------------------------------------------------------------------------- */

/* A run directory that is open for probing. */
struct opc_probe {
    const char *dir; /* borrowed, as is the pool */
    struct opc_pool *pool;
    uint64_t seed;
    struct opc_config *config;
    struct opc_many *worlds;   /* environments of the run's task */
    const struct opc_env *env; /* one of them, asked whether imagined states are terminal */
    int obs, act, limit;       /* limit: an episode is cut after this many steps */
    int *snapshot, snapshots;  /* epochs that have a snapshot, ascending */
};

int opc_probe_open(const char *dir, struct opc_pool *, uint64_t seed, struct opc_probe *out,
                   struct opc_err *err);
void opc_probe_close(struct opc_probe *);

/* Loads the newest snapshot that is not newer than `epoch`; with epoch 0, or for a run without
 * snapshots, the newest checkpoint. */
int opc_probe_load(const struct opc_probe *, int epoch, struct opc_trained *out,
                   struct opc_err *err);
/* OPC_EUSER if the run has no model, that is, was trained with opc.transition = replay. */
int opc_probe_needs_model(const struct opc_probe *, struct opc_err *err);

/* "cosine o2", "angle o1" or "o0", as in `opc env show`. */
void opc_probe_entry_name(const struct opc_probe *, int entry, char out[32]);
/* The entry called "o2" or "2". cos, sin or angle: the first of that kind; auto: the first
 * cosine, or else the first angle, or else o0. */
int opc_probe_entry(const struct opc_probe *, const char *name, int *out, struct opc_err *err);
bool opc_probe_is_cosine(const struct opc_probe *, int entry);

/* ---- random streams -------------------------------------------------------------------------- */

/* Purposes of random numbers. The order is part of the streams, so new ones go to the end. */
enum opc_draw {
    OPC_DRAW_PLAY,
    OPC_DRAW_START,
    OPC_DRAW_ROLLOUT, /* elites and actions */
    OPC_DRAW_BOOTSTRAP,
    OPC_DRAW_MODEL, /* noise of eq. 2; apart, so that the policy's noise is the same as for eq. 5 */
};
/* The seed with which run number `run` of a request is probed. Runs are independent samples of the
 * environment, too, so each has streams of its own. */
static inline uint64_t opc_probe_seed(const struct opc_request *request, int run)
{
    return request->seed + (uint64_t)run;
}
/* Stream `index` of a purpose; `number` (below 2^16) distinguishes uses of one purpose. */
struct opc_rng opc_probe_stream(uint64_t seed, enum opc_draw, int number, int index);

/* ---- on the environment ---------------------------------------------------------------------- */

/* A policy whose exploration noise is scaled. */
struct opc_actor {
    const struct opc_agent *agent;
    double spread; /* factor on its deviation: 1 as it is, 0 its mode */
};

/* Plays n episodes. Episode i starts from stream (OPC_DRAW_PLAY, number, i) and draws its
 * actions from it, too. The caller frees them with opc_episodes_destroy. */
int opc_probe_play(const struct opc_probe *, struct opc_actor, int number, int n,
                   struct opc_episodes **out, struct opc_err *err);
/* returns[count]: sums of the recorded rewards, not discounted. */
void opc_probe_returns(const struct opc_episodes *, double *returns);

/* ---- on a model ------------------------------------------------------------------------------ */

/* Where rollouts start (opc/branches.h). Row i starts with episode i, at its beginning; if there
 * are fewer episodes than rows, they are used again in order. */
void opc_probe_from_starts(struct opc_branches *, const struct opc_episodes *);
/* Rows start at recorded steps with `horizon` steps to go, uniformly drawn; if there are none,
 * at any. */
void opc_probe_from_anywhere(struct opc_branches *, const struct opc_episodes *, uint64_t seed,
                             int number);

/* eq. 2 and eq. 5 with one model along the same episodes, with the run's settings. */
struct opc_models {
    struct opc_transition *learned, *corrected;
};
int opc_models_make(const struct opc_probe *, const struct opc_predictor *,
                    const struct opc_episodes *past, struct opc_models *out, struct opc_err *err);
/* The same; mean: eq. 2 takes the mean of the prediction and draws nothing. */
int opc_models_make_as(const struct opc_probe *, const struct opc_predictor *,
                       const struct opc_episodes *past, bool mean, struct opc_models *out,
                       struct opc_err *err);
void opc_models_free(struct opc_models *);

/* Follows the actor through a transition model; row i draws its elites and actions from
 * (OPC_DRAW_ROLLOUT, number, i), the model from (OPC_DRAW_MODEL, number, i). A rollout ends as in
 * Algorithm 2: in a terminal state, at the horizon, and by eq. 5 with its recording. One whose next
 * step is not finite ends before it, as OPC_END_REFUSED. */
int opc_probe_follow(const struct opc_probe *, const struct opc_transition *, struct opc_actor,
                     int number, struct opc_branches *, struct opc_err *err);

/* The same with one elite of the ensemble for all steps; none is drawn, so the actions' noise is
 * the same for every elite. */
int opc_probe_follow_elite(const struct opc_probe *, const struct opc_transition *,
                           struct opc_actor, int number, int elite, struct opc_branches *,
                           struct opc_err *err);

/* What the environment does with the rollouts' own actions. It is brought to each start by
 * playing the episode again (made by opc_probe_play with `number`) and is then given the
 * rollout's actions. truth[n][horizon + 1][obs]; NaN after the end of either. ended[n]: number
 * of steps after which the task ended there; 0: it did not while the rollout lasted. */
int opc_probe_truth(const struct opc_probe *, const struct opc_episodes *, int number,
                    const struct opc_branches *, double *truth, int *ended, struct opc_err *err);

/* ---- verdicts -------------------------------------------------------------------------------- */

/* Given the number of iterations in which an error is smaller, larger or equal: is it almost
 * always smaller? Supported: larger in at most a tenth, and smaller more often than a fair coin
 * explains. Not supported: larger more often than a coin explains, or than one that shows a tenth.
 */
enum opc_verdict opc_bound_smaller(int smaller, int larger, int equal);
/* The number of runs that would decide it, if the shares stay those of these; HUGE_VAL: none. */
double opc_bound_seeds(int smaller, int larger, int equal, int runs);
/* Index of the first of n policies from which on all mean returns are within a tenth of the
 * best; n: there is none. */
int opc_bound_settled(int n, const double *eta);

/* ---- settings of the analyses ---------------------------------------------------------------- */

/* clang-format off */
#define OPC_PROBE_STATES_FIELDS(X)                                                                 \
    X(INT,   samples,    "100",  1, 1e5,  "rollouts")                                              \
    X(INT,   horizon,    "20",   1, 1e4,  "H, steps of each")                                      \
    X(INT,   references, "10",   1, 1e4,  "episodes the policy plays for them to branch from")     \
    X(INT,   epoch,      "20",   0, 1e6,  "the model as it was after this epoch, or the newest snapshot before; 0: the last") \
    X(INT,   policy,     "0",    0, 1e6,  "the policy as it was after this epoch, likewise; 0: the last") \
    X(TEXT,  entry,      "auto", 1, 32,   "state entry whose trajectories are drawn: o2, cos, sin or angle; auto: the first of them there is") \
    X(INT,   panels,     "8",    1, 64,   "state entries that are drawn; the table has all")

#define OPC_PROBE_BOUND_FIELDS(X)                                                                  \
    X(INT,   samples,    "100",  1, 1e5,  "episodes on the environment and rollouts on each model, for each policy")

#define OPC_PROBE_OFFPOLICY_FIELDS(X)                                                              \
    X(INT,   samples,    "100",  1, 1e5,  "episodes on the environment and rollouts on each model, for each beta") \
    X(INT,   epoch,      "0",    0, 1e6,  "the model as it was after this epoch, or the newest snapshot before; 0: the last") \
    X(INT,   policy,     "0",    0, 1e6,  "the policy as it was after this epoch, likewise; 0: the last") \
    X(REALS, beta,       "[0, 0.5, 1, 1.5, 2, 2.3, 3, 4]", 0, 100, "factors on the policy's standard deviation before squashing")

#define OPC_PROBE_UNCERTAINTY_FIELDS(X)                                                            \
    X(INT,   samples,    "100",  1, 1e5,  "rollouts of each elite, for each beta")                 \
    X(INT,   horizon,    "20",   1, 1e4,  "H, steps of each")                                      \
    X(INT,   references, "10",   1, 1e4,  "episodes of the policy's mode for them to branch from") \
    X(INT,   epoch,      "0",    0, 1e6,  "the model as it was after this epoch, or the newest snapshot before; 0: the last") \
    X(INT,   policy,     "0",    0, 1e6,  "the policy as it was after this epoch, likewise; 0: the last") \
    X(REALS, beta,       "[0, 0.5, 1, 1.5, 2, 2.3, 3, 4]", 0, 100, "factors on the policy's standard deviation before squashing; 0 is on-policy")

#define OPC_PROBE_LIMITATION_FIELDS(X)                                                             \
    X(INT,   samples,    "500",  20, 1e5, "episodes on the environment and rollouts on each model, for each amplitude") \
    X(INT,   horizon,    "20",   1, 1e4,  "H, steps of each that are compared")                    \
    X(REAL,  recorded,   "0.5",  0, 1,    "amplitude of the recorded actions, as a share of their range") \
    X(REALS, amplitude,  "[0.1, 0.5, 1]", 0, 1, "amplitudes of the actions of episodes and rollouts, likewise")

#define OPC_PROBE_FIT_FIELDS(X)                                                                    \
    X(TEXTS, rule,       "",     0, 255,  "settings of the model under which to fit, \"max_epochs=3 patience=1\"; may be repeated, and \"\" is the run's own") \
    X(INT,   epochs,     "11",   1, 1000, "fits after this many of the last epochs; medians leave out the first, which starts from new weights") \
    X(INT,   samples,    "100",  1, 1e5,  "starts in the recordings of the next epoch")            \
    X(INT,   steps,      "10",   1, 1e4,  "H, steps of a rollout")                                 \
    X(REAL,  noise,      "0.3",  0, 2,    "standard deviation of what is added to recorded actions")
/* clang-format on */
struct opc_probe_fit_config {
    OPC_PROBE_FIT_FIELDS(OPC_MEMBER)
};
struct opc_probe_states_config {
    OPC_PROBE_STATES_FIELDS(OPC_MEMBER)
};
struct opc_probe_bound_config {
    OPC_PROBE_BOUND_FIELDS(OPC_MEMBER)
};
struct opc_probe_offpolicy_config {
    OPC_PROBE_OFFPOLICY_FIELDS(OPC_MEMBER)
};
struct opc_probe_limitation_config {
    OPC_PROBE_LIMITATION_FIELDS(OPC_MEMBER)
};
struct opc_probe_uncertainty_config {
    OPC_PROBE_UNCERTAINTY_FIELDS(OPC_MEMBER)
};

#endif
