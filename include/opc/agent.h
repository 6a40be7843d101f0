/* SPDX-License-Identifier: MIT */
/* opc/agent.h - what turns experience into a policy.
 *
 * An agent acts, and improves from what the loop brings it. It does not know whether its batches
 * were recorded or imagined. */
#ifndef OPC_AGENT_H
#define OPC_AGENT_H

#include "opc/err.h"
#include "opc/rng.h"
#include "opc/sized.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct opc_pool; /* opc/pool.h */
struct opc_agent;
struct opc_env;        /* opc/env.h */
struct opc_episodes;   /* opc/episodes.h */
struct opc_predictor;  /* opc/predictor.h */
struct opc_transition; /* opc/transition.h */
struct opc_section;    /* a table of settings */
struct opc_network;    /* a trained network, for export; not public */

/* Draws a batch of n steps: step[i] points at 2 obs + act + 2 floats, s, a (in [-1, 1]), r, 1 if
 * the task ended in s' and else 0, s'. They are not copied, the agent reads them where they lie,
 * with all its threads, until it draws again or opc_agent_improve returns. The stream names the
 * gradient step. */
typedef void opc_draw_fn(void *ctx, int n, struct opc_rng *, const float **step);

/* Steps of one policy in time order: steps + 1 records of obs + act + 2 floats, s, a, r and 1 if
 * the task ended in the state of the next record, else 0; the last one has s alone. */
struct opc_path {
    int steps; /* at least 1 */
    const float *records;
};
/* One path after the other, from *at = 0 on; false when there are no more. */
typedef bool opc_path_fn(void *ctx, uint64_t *at, struct opc_path *out);

/* What the loop must bring an agent; flags of opc_agent_type.needs. */
enum opc_needs {
    OPC_NEEDS_STEPS = 1,        /* batches of steps, whoever chose their actions: off-policy */
    OPC_NEEDS_TRAJECTORIES = 2, /* all its policy has made since it last improved: on-policy */
    OPC_NEEDS_MODEL = 4,        /* a dynamics model when it is created; saved with its policy */
    OPC_NEEDS_RECORDED = 8,     /* steps that were recorded, not imagined by the loop's model */
    OPC_NEEDS_TASK = 16,        /* the task when it is created, for the rule where episodes end */
};

struct opc_feed {
    size_t size;       /* of this struct (opc/sized.h) */
    opc_draw_fn *draw; /* OPC_NEEDS_STEPS */
    opc_path_fn *path; /* OPC_NEEDS_TRAJECTORIES */
    void *ctx;
    uint64_t seed;
    uint32_t epoch, first; /* update k draws from streams (seed, use, epoch, first + k) */
    /* OPC_NEEDS_STEPS: range of the recorded rewards, a little widened (sac.bound_targets). Who
     * does not know it sets low above high: with two zeros all rewards are 0. */
    float reward_low, reward_high;
    double done;          /* share of the training that lies behind */
    bool (*stop)(void *); /* asked now and then: true returns OPC_ESTOPPED; may be NULL */
    void *stop_ctx;
};

/* What an agent reports of an improvement: a value for each of its columns, in their order. The
 * loop makes one row of metrics.csv out of all reports of an epoch, as `over` says. */
enum opc_over { OPC_OVER_MEAN, OPC_OVER_MIN, OPC_OVER_MAX };
struct opc_agent_column {
    const char *name;
    enum opc_over over; /* its gradient steps */
};
enum { OPC_AGENT_COLUMNS = 24 }; /* at most */
struct opc_agent_report {
    size_t size;  /* of this struct (opc/sized.h) */
    long updates; /* gradient steps made */
    double value[OPC_AGENT_COLUMNS];
};

struct opc_agent_args {
    size_t size; /* of this struct (opc/sized.h) */
    int obs, act;
    uint64_t seed;
    const void *config;          /* the agent's own settings; NULL: its defaults */
    double target_entropy;       /* what "auto" stands for on this task; NaN: -act */
    int steps;                   /* OPC_NEEDS_TRAJECTORIES: the most of one improvement */
    struct opc_predictor *model; /* OPC_NEEDS_MODEL; borrowed */
    /* What moves an imagined state; borrowed. NULL where a policy is loaded without its past. */
    const struct opc_transition *transition;
    struct opc_pool *pool; /* may be NULL; borrowed */
    /* The run's task and everything recorded on it, for agents that imagine steps of their own
     * (OPC_NEEDS_TASK: the task also where a policy is loaded). Borrowed; NULL where a policy is
     * loaded without its run. The environment may be asked about imagined steps, and for another
     * one of its kind; it is not to be stepped or reset. */
    const struct opc_env *env;
    const struct opc_episodes *past;
    int given_reward; /* true: imagined rewards are opc_env_reward's, not the model's */
    int mean;         /* true: eq. 2 takes the mean of the model's Gaussian instead of drawing */
};

/* What an agent remembers of one episode between its steps: a planner starts from its last plan.
 * The caller has one for each episode that it plays at the same time. */
struct opc_episode_state {
    uint64_t seed;           /* seed, epoch and episode name what is drawn in the episode */
    uint32_t epoch, episode; /* where opc_agent_act_in gets no stream */
    uint64_t steps;          /* actions chosen in the episode so far */
    size_t count;            /* of numbers; 0: the agent remembers nothing */
    double *number;          /* [count] the agent's own; all 0 at the start of an episode */
};

struct opc_agent_type {
    const char *name;                       /* as written after train.agent in a file */
    const char *label;                      /* what papers call it */
    unsigned colour;                        /* of its curves, 0xRRGGBB; 0: any */
    unsigned needs;                         /* flags of enum opc_needs */
    const struct opc_section *settings;     /* its own; NULL: none */
    const struct opc_agent_column *columns; /* ends with a NULL name */
    int (*create)(const struct opc_agent_args *, struct opc_agent **out, struct opc_err *err);
    /* Not from two threads at once: scratch belongs to the agent. */
    void (*act)(const struct opc_agent *, int n, const float *state, bool explore,
                struct opc_rng *rng, float *action);
    int (*improve)(struct opc_agent *, const struct opc_feed *, int updates,
                   struct opc_agent_report *, struct opc_err *err);
    void (*destroy)(struct opc_agent *);
    /* As in opc/predictor.h: everything a later call depends on. */
    int (*state)(struct opc_agent *,
                 int (*visit)(void *ctx, const char *name, void *data, size_t bytes,
                              struct opc_err *),
                 void *ctx, struct opc_err *);
    /* Optional; NULL: never. Does what it learns depend on train.epochs, so that a finished run
     * cannot be trained on? config: its settings. */
    bool (*knows_its_end)(const void *config);
    /* Optional; NULL: it has no deviation to scale. See opc_agent_act_spread. */
    void (*act_spread)(const struct opc_agent *, int n, const float *state, float spread,
                       struct opc_rng *rng, float *action);
    /* Optional; NULL: little. Bytes that it takes with these arguments, at most. */
    size_t (*need)(const struct opc_agent_args *);
    /* Optional, both or none; NULL: it remembers nothing between the steps of an episode.
     * `remembers` says how many numbers it does; act_in is opc_agent_act_in, where rng is NULL
     * without exploration. */
    size_t (*remembers)(const struct opc_agent *);
    void (*act_in)(const struct opc_agent *, struct opc_episode_state *, const float *state,
                   bool explore, struct opc_rng *rng, float *action);
    /* Optional; NULL: any settings fit each other. OPC_EUSER: they do not, or they do not fit a
     * model with this many elites; err->settings names those at fault. */
    int (*check)(const void *config, int elites, struct opc_err *err);
    /* Optional; NULL and 0: as above. Label and colour with a transition model that walks along
     * recordings, as eq. 5 does. */
    const char *corrected_label;
    unsigned corrected_colour;
    /* Optional; NULL: `opc export` cannot write it. The network whose outputs are the policy's
     * mode, which lives as long as the agent. */
    int (*network)(const struct opc_agent *, struct opc_network *out, struct opc_err *err);
    /* With `need`: the settings that it grows with, for a message that says what to lower. */
    const char *need_settings;
    /* Optional; NULL: it does not plan. How many steps its plans look ahead. */
    int (*looks_ahead)(const struct opc_agent *);
};

struct opc_agent { /* first member of every agent */
    const struct opc_agent_type *type;
    int obs, act;
    struct opc_predictor *model; /* destroyed with it, where it was loaded with it; else NULL */
    struct opc_env *env;         /* closed with it, where it was opened for it; else NULL */
    /* The same for the recordings it plans along, and the transition model made of them. */
    struct opc_episodes *past;
    struct opc_transition *transition;
};

/* Entry i of the table of agents; NULL after the last. The order never changes. */
OPC_API const struct opc_agent_type *opc_agent_type(int i);
/* The name of agent i, as in train.agent of a file; NULL after the last. */
OPC_API const char *opc_agent_name(int i);
/* Makes an agent with fresh networks, whose first weights depend on args->seed alone. OPC_EUSER:
 * there is no such agent, its settings do not fit each other, or sizes of model, transition
 * or task are not those of the agent; OPC_ENOMEM. For opc_agent_destroy. */
OPC_API int opc_agent_create(const char *name, const struct opc_agent_args *,
                             struct opc_agent **out, struct opc_err *err);
/* Frees the agent, and its model if it was loaded together with it. NULL is fine. */
OPC_API void opc_agent_destroy(struct opc_agent *);
/* The dimensions of the states it acts in and of its actions; either pointer may be NULL. */
OPC_API void opc_agent_dimensions(const struct opc_agent *, int *obs, int *act);
/* Chooses actions: state[n][obs] to action[n][act] in [-1, 1]; explore draws from the policy with
 * rng[n], otherwise its mode and rng may be NULL. OPC_NEEDS_TRAJECTORIES: it may lie outside.
 * Environments cut it off, and it is recorded as drawn, because that is what it had a probability
 * of. */
OPC_API void opc_agent_act(const struct opc_agent *, int n, const float *state, bool explore,
                           struct opc_rng *rng, float *action);
/* Draws from the policy with its deviation (before any squashing) multiplied by `spread`: 1 is
 * opc_agent_act with explore, 0 its mode. Only where the type has act_spread. */
OPC_API void opc_agent_act_spread(const struct opc_agent *, int n, const float *state, float spread,
                                  struct opc_rng *rng, float *action);
/* Memory for one episode of this agent, which must outlive it; it is as at the start of an episode
 * with seed, epoch and episode 0. OPC_ENOMEM. For opc_episode_state_destroy. */
OPC_API int opc_episode_state_create(const struct opc_agent *, struct opc_episode_state **out,
                                     struct opc_err *err);
/* Frees it. NULL is fine. */
OPC_API void opc_episode_state_destroy(struct opc_episode_state *);
/* An episode begins: what was remembered is forgotten. */
OPC_API void opc_episode_state_begin(struct opc_episode_state *, uint64_t seed, uint32_t epoch,
                                     uint32_t episode);
/* Chooses the next action of an episode, state[obs] to action[act]: opc_agent_act with n = 1 for an
 * agent that remembers nothing. A planner acted with by opc_agent_act plans each step afresh. What
 * it draws comes from rng with explore, or else from the stream that the memory names. */
OPC_API void opc_agent_act_in(const struct opc_agent *, struct opc_episode_state *,
                              const float *state, bool explore, struct opc_rng *rng, float *action);
/* Makes `updates` gradient steps from what the feed brings (an agent that learns from trajectories
 * takes all there are, and its settings say how often), and reports a value for each of its
 * columns. The result depends on the feed's data, seed, epoch and first alone, not on threads.
 * OPC_EDIVERGED: a loss or weight is not finite, and the agent is not to be used any more;
 * OPC_ESTOPPED: the feed's stop asked for it, and the steps made so far are kept. The report may be
 * NULL. */
OPC_API int opc_agent_improve(struct opc_agent *, const struct opc_feed *, int updates,
                              struct opc_agent_report *, struct opc_err *err);

#ifdef __cplusplus
}
#endif
#endif
