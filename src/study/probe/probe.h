/* SPDX-License-Identifier: MIT */
/* study/probe/probe.h - a trained run looked at: episodes played with its policies, and rollouts of
 * its models beside them. What Figures 13 to 16 have in common.
 *
 * Everything drawn here comes from streams named by what it is for (enum opc_draw), so nothing
 * depends on the number of threads, and two models asked alike see the same noise. */
#ifndef OPC_STUDY_PROBE_H
#define OPC_STUDY_PROBE_H

#include "env/many.h"
#include "opc/branches.h"
#include "run/trained.h"
#include "study/exhibit/analysis.h"

/* ---- the run --------------------------------------------------------------------------------- */

struct opc_probe {
    const char *dir; /* borrowed, as is the pool */
    struct opc_pool *pool;
    uint64_t seed;
    struct opc_config *config;
    struct opc_many *worlds;   /* environments of the run's task */
    const struct opc_env *env; /* one of them, for what is asked about imagined states */
    int obs, act, limit;       /* limit: an episode is cut after so many steps */
    int *snapshot, snapshots;  /* epochs there are snapshots of, ascending */
};

int opc_probe_open(const char *dir, struct opc_pool *, uint64_t seed, struct opc_probe *out,
                   struct opc_err *err);
void opc_probe_close(struct opc_probe *);

/* The newest snapshot that is not newer than `epoch`; epoch 0, or a run without snapshots: the
 * newest checkpoint. */
int opc_probe_load(const struct opc_probe *, int epoch, struct opc_trained *out,
                   struct opc_err *err);
/* OPC_EUSER if the run has no model. */
int opc_probe_needs_model(const struct opc_probe *, struct opc_err *err);

/* "cosine o2", "angle o1" or "o0", as `opc env show` has them. */
void opc_probe_entry_name(const struct opc_probe *, int entry, char out[32]);
/* The entry called "o2" or "2"; cos, sin or angle: the first of that kind; auto: the first cosine,
 * angle or o0, whatever there is. */
int opc_probe_entry(const struct opc_probe *, const char *name, int *out, struct opc_err *err);
bool opc_probe_is_cosine(const struct opc_probe *, int entry);

/* ---- what is random -------------------------------------------------------------------------- */

enum opc_draw {
    OPC_DRAW_PLAY,
    OPC_DRAW_START,
    OPC_DRAW_ROLLOUT, /* elites and actions */
    OPC_DRAW_BOOTSTRAP,
    OPC_DRAW_MODEL, /* what eq. 2 draws; apart, so that the policy's noise is that of eq. 5 */
};
/* Stream `index` of a purpose; number tells uses of one purpose apart, below 2^16. */
struct opc_rng opc_probe_stream(uint64_t seed, enum opc_draw, int number, int index);

/* ---- on the environment ---------------------------------------------------------------------- */

struct opc_actor {
    const struct opc_agent *agent;
    double spread; /* factor on its deviation: 1 as it is, 0 its mode */
};

/* n episodes; episode i starts from stream (OPC_DRAW_PLAY, number, i) and draws its actions there,
 * too. For opc_episodes_destroy. */
int opc_probe_play(const struct opc_probe *, struct opc_actor, int number, int n,
                   struct opc_episodes **out, struct opc_err *err);
/* returns[count]: sums of the recorded rewards, not discounted. */
void opc_probe_returns(const struct opc_episodes *, double *returns);

/* ---- on a model ------------------------------------------------------------------------------ */

/* Where rollouts start (opc/branches.h). Row i beside episode i, and again from the first when
 * there are fewer, from its start. */
void opc_probe_from_starts(struct opc_branches *, const struct opc_episodes *);
/* From recorded steps with `horizon` steps to go, all alike; if there are none, from any. */
void opc_probe_from_anywhere(struct opc_branches *, const struct opc_episodes *, uint64_t seed,
                             int number);

/* eq. 2 and eq. 5 of one model beside the same episodes, as the run's settings have them. */
struct opc_models {
    struct opc_transition *learned, *corrected;
};
int opc_models_make(const struct opc_probe *, const struct opc_predictor *,
                    const struct opc_episodes *past, struct opc_models *out, struct opc_err *err);
void opc_models_free(struct opc_models *);

/* Follows the actor through a transition model; row i draws its elites and actions from
 * (OPC_DRAW_ROLLOUT, number, i), the model from (OPC_DRAW_MODEL, number, i). A rollout ends as in
 * Algorithm 2: in a terminal state, at the horizon, and by eq. 5 with its recording. One whose next
 * step is not finite ends before it, as OPC_END_REFUSED. */
int opc_probe_follow(const struct opc_probe *, const struct opc_transition *, struct opc_actor,
                     int number, struct opc_branches *, struct opc_err *err);

/* What the environment does with the rollouts' own actions: it is brought to each start by playing
 * the episode (made by opc_probe_play with `number`) again, then given the rollout's actions.
 * truth[n][horizon + 1][obs]; NaN behind the end of either. ended[n]: steps after which the task
 * ended there; 0: it did not, as long as the rollout lasted. */
int opc_probe_truth(const struct opc_probe *, const struct opc_episodes *, int number,
                    const struct opc_branches *, double *truth, int *ended, struct opc_err *err);

/* ---- verdicts -------------------------------------------------------------------------------- */

/* Of iterations in which an error is smaller, larger or the same: is it almost always smaller? That
 * is, larger in at most a tenth, and smaller more often than tosses of a coin would have it. Larger
 * more often than a coin: not supported. */
enum opc_verdict opc_bound_smaller(int smaller, int larger, int equal);
/* The first of n policies from which on all mean returns are within a tenth of the best; n: none.
 */
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
/* clang-format on */
struct opc_probe_states_config {
    OPC_PROBE_STATES_FIELDS(OPC_MEMBER)
};
struct opc_probe_bound_config {
    OPC_PROBE_BOUND_FIELDS(OPC_MEMBER)
};
struct opc_probe_offpolicy_config {
    OPC_PROBE_OFFPOLICY_FIELDS(OPC_MEMBER)
};

#endif
