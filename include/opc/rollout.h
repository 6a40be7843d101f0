/* SPDX-License-Identifier: MIT */
/* opc/rollout.h - imagined rollouts: a policy followed through a transition model, from recorded
 * states on.
 *
 *     const int episode[] = {0, 0}, time[] = {0, 50};
 *     const struct opc_imagine_plan plan = {OPC_SIZED(struct opc_imagine_plan),
 *                                           .transition = transition, .n = 2,
 *                                           .episode = episode, .time = time, .horizon = 20,
 *                                           .act = my_policy};
 *     opc_imagine(&plan, &paths, &err);
 *     for (int i = 0; i < opc_trajectories_count(paths); i++)
 *         ... opc_trajectories_states(paths, i) ...
 *     opc_trajectories_destroy(paths);
 *
 * opc_imagine keeps the rollouts apart, to look at them; opc_imagine_into is Algorithm 2, which
 * fills a store that an agent learns from (opc/imagined.h). Which rollouts come out depends on the
 * plan alone, never on the number of threads. */
#ifndef OPC_ROLLOUT_H
#define OPC_ROLLOUT_H

#include "opc/pool.h"
#include "opc/transition.h"

#ifdef __cplusplus
extern "C" {
#endif

struct opc_imagined; /* opc/imagined.h */

/* pi: state[n][obs] to action[n][act]; rng[n]. Called by the calling thread alone. */
typedef void opc_act_fn(void *ctx, int n, const float *state, struct opc_rng *rng, float *action);
/* Has the task ended in `next`? Many threads ask. */
typedef void opc_terminal_fn(void *ctx, int n, const float *s, const float *a, const float *next,
                             bool *out);

/* Why a rollout ended; where two reasons meet in one step, the one that stands first. */
enum opc_end {
    /* Its last step is not to be used: the rollout ended before it. */
    OPC_END_REFUSED,      /* for a reason of the plan's own, or because it is not finite */
    OPC_END_BOUND,        /* it leaves the range of what was recorded (opc.bounds) */
    OPC_END_DRIFT,        /* it leads too far from its reference (opc.max_drift) */
    OPC_END_DISAGREEMENT, /* the elites disagree about it (opc.max_disagreement) */
    OPC_END_DROPPED,      /* only its reference became terminal (opc.reference_terminal = drop) */
    /* Its last step is part of it. */
    OPC_END_TERMINAL,  /* the task ended in s' */
    OPC_END_HORIZON,   /* it has H steps */
    OPC_END_REFERENCE, /* the recording it walks along ended */
    OPC_ENDS,
    OPC_END_NONE = OPC_ENDS /* it goes on */
};

struct opc_imagine_plan {
    size_t size;                             /* of this struct (opc/sized.h) */
    const struct opc_transition *transition; /* refreshed since the last fit */
    /* Where the n rollouts start: step time[i] of recorded episode episode[i]. NULL: any step of
     * the reference window, all alike. */
    const int *episode, *time; /* [n] */
    int n;
    int horizon; /* H, the largest number of steps of a rollout */
    /* Who acts: a policy, or actions[n][horizon][act] that are given in advance. Where both are
     * NULL the recorded actions are repeated (and rollouts end with their recording). replay always
     * has the recorded ones. */
    opc_act_fn *act;
    void *act_ctx;
    const float *actions;
    opc_terminal_fn *terminal; /* opc_env_terminal answers this for a task; NULL: never */
    void *terminal_ctx;
    /* Rollout i draws from the streams (seed, OPC_USE_START, OPC_USE_ROLLOUT and OPC_USE_NOISE,
     * epoch, index + i): its start, its policy and elites, the Gaussian of eq. 2. */
    uint64_t seed;
    uint32_t epoch, index;
    struct opc_pool *pool;  /* may be NULL */
    int elite_per_rollout;  /* true: an elite is drawn for a rollout, not for each step */
    int end_with_reference; /* true: eq. 2 too ends where the recording it started in ends */
};

struct opc_trajectories; /* opaque: where the rollouts of a plan went */

/* Makes plan->n rollouts. One whose next state or reward is not finite ends before it, as
 * OPC_END_REFUSED. OPC_EUSER: a start is not recorded, or nothing is; OPC_EBUG: the transition was
 * not refreshed; OPC_ENOMEM. For opc_trajectories_destroy. */
OPC_API int opc_imagine(const struct opc_imagine_plan *, struct opc_trajectories **out,
                        struct opc_err *err);
/* Frees them all. NULL is fine. */
OPC_API void opc_trajectories_destroy(struct opc_trajectories *);
/* How many there are: the plan's n. */
OPC_API int opc_trajectories_count(const struct opc_trajectories *);
/* The number of steps of rollout i; 0 if its first one was refused. */
OPC_API int opc_trajectories_length(const struct opc_trajectories *, int i);
/* Why rollout i has no more steps. */
OPC_API enum opc_end opc_trajectories_end(const struct opc_trajectories *, int i);
/* The recorded step that rollout i started in. */
OPC_API void opc_trajectories_start(const struct opc_trajectories *, int i, int *episode,
                                    int *time);
/* The states of rollout i, [length + 1][obs], the start first. Like the next two, the memory
 * belongs to the trajectories and lives as long as they do. */
OPC_API const float *opc_trajectories_states(const struct opc_trajectories *, int i);
/* The actions of rollout i, [length][act]. */
OPC_API const float *opc_trajectories_actions(const struct opc_trajectories *, int i);
/* The rewards of rollout i, [length]. */
OPC_API const float *opc_trajectories_rewards(const struct opc_trajectories *, int i);

struct opc_imagine_report {
    size_t size;        /* of this struct (opc/sized.h) */
    size_t rollouts;    /* that were made */
    size_t transitions; /* in all of them */
    size_t terminal;    /* rollouts that ended in a terminal state */
    double length;      /* mean number of steps */
    size_t index;       /* of the next rollout: the next plan of this epoch starts there */
};
/* Algorithm 2: makes rollouts from drawn starts and appends them to the open epoch of the store,
 * until they hold plan->n transitions (the last rollout may go beyond). plan->act is needed, except
 * with replay, whereas episode, time and actions must be NULL. The report may be NULL.
 * OPC_EDIVERGED: a state or reward is not finite; OPC_EREFUSED: the first step of 100 000 rollouts
 * in a row is refused; OPC_EBUG: sizes do not match, or the transition was not refreshed. */
OPC_API int opc_imagine_into(const struct opc_imagine_plan *, struct opc_imagined *into,
                             struct opc_imagine_report *, struct opc_err *err);

#ifdef __cplusplus
}
#endif
#endif
