/* SPDX-License-Identifier: MIT */
/* run/onpolicy.h - how far the transition models are off where the policy has just been: the
 * on-policy model error the paper is about. */
#ifndef OPC_RUN_ONPOLICY_H
#define OPC_RUN_ONPOLICY_H

#include "env/many.h"
#include "opc/agent.h"
#include "opc/episodes.h"
#include "opc/predictor.h"
#include "run/runlog.h"

struct opc_onpolicy_plan {
    const struct opc_episodes *past; /* episode b was reset from (seed, OPC_USE_RESET, 0, b) */
    int newest;                      /* episodes from here on; the last one, if there is none */
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
    long steps; /* played on the environments to know the truth */
};

/* From recorded states on, k = 1, 5 and 10 steps with actions drawn from the policy, by eq. 2 and
 * by eq. 5 beside the recording; compared with what the environment does with those same actions
 * (run/retrace.h). Root mean square over starts and entries of the state, each entry divided by its
 * standard deviation over the past. Starts are early enough in their episodes for at most
 * OPC_ONPOLICY_STEPS steps on the environments. One whose recording ends before step k, or whose
 * task does on the environment, does not count for that k. NaN where none counts, and everywhere
 * if the environment does not repeat itself. Both models see the same noise of the policy. */
enum { OPC_ONPOLICY_STEPS = 6000 };
int opc_onpolicy_errors(const struct opc_onpolicy_plan *, struct opc_onpolicy *,
                        struct opc_err *err);

#endif
