/* SPDX-License-Identifier: MIT */
/* run/real/onpolicy.h - how far the transition models are off where the policy has just been: the
 * on-policy model error the paper is about. */
#ifndef OPC_RUN_ONPOLICY_H
#define OPC_RUN_ONPOLICY_H

#include "env/many.h"
#include "opc/agent.h"
#include "opc/episodes.h"
#include "opc/predictor.h"
#include "run/files/runlog.h"

struct opc_onpolicy_plan {
    const struct opc_episodes *past; /* episode b was reset from (seed, OPC_USE_RESET, 0, b) */
    int newest;                      /* uses episodes from this one on, and always the last one */
    /* Of a planner: the first episode that its plans could walk along when `episode` began; NULL:
     * any before it. */
    int (*oldest)(const void *ctx, int episode);
    const void *oldest_ctx;
    const struct opc_predictor *model;
    const struct opc_agent *agent; /* the policy that played them */
    struct opc_many *worlds;       /* environments of the task, at no particular state */
    bool sample;                   /* as opc.sample */
    bool elite_per_rollout;        /* as opc.elite */
    uint64_t seed;
    uint32_t epoch;
    struct opc_pool *pool; /* may be NULL */
};

struct opc_onpolicy {
    double learned[OPC_ERRORS], corrected[OPC_ERRORS];
    long steps; /* played on the environments */
};

/* Rolls out k = 1, 5 and 10 steps from recorded states, with actions drawn from the policy, by eq.
 * 2 and by eq. 5 with the recording as reference, and compares the states with those the
 * environment reaches with the same actions (run/real/retrace.h). An error is the root mean square
 * over starts and entries of the state, each entry divided by its standard deviation over the past.
 *
 * Starts are early enough in their episodes for at most OPC_ONPOLICY_STEPS steps on the
 * environments. A start whose recording ends before step k, or whose task ends on the environment,
 * does not count for that k. An error is NaN if no start counts, and all errors are NaN if the
 * environment does not repeat itself. Both models see the same noise of the policy.
 *
 * A planner would take minutes for that. Its rollouts take the recorded actions, with which eq. 5
 * would retrace the recording they start from. So they walk along what a plan in that state walks
 * along (opc/nearest.h), among the episodes that were recorded before. A start without any does not
 * count, and none counts for more steps than its reference lasts.
 */
enum { OPC_ONPOLICY_STEPS = 6000 };
int opc_onpolicy_errors(const struct opc_onpolicy_plan *, struct opc_onpolicy *,
                        struct opc_err *err);

#endif
