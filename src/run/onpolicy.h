/* SPDX-License-Identifier: MIT */
/* run/onpolicy.h - how far the transition models are off where the policy has just been: the
 * on-policy model error the paper is about. */
#ifndef OPC_RUN_ONPOLICY_H
#define OPC_RUN_ONPOLICY_H

#include "opc/agent.h"
#include "opc/episodes.h"
#include "opc/predictor.h"
#include "run/record.h"

struct opc_onpolicy_plan {
    const struct opc_episodes *past;
    int newest; /* episodes from here on; the last one, if there is none */
    const struct opc_predictor *model;
    const struct opc_agent *agent; /* the policy that played them */
    bool sample;                   /* as opc.sample */
    uint64_t seed;
    uint32_t epoch;
    struct opc_pool *pool; /* may be NULL */
};

/* From recorded states on, k = 1, 5 and 10 steps with actions drawn from the policy, by eq. 2 and
 * by eq. 5 beside the recording; compared with what the recording did. Root mean square over
 * starts and entries of the state, each entry divided by its standard deviation over the past.
 * NaN where no episode is long enough. Both models see the same noise of the policy. */
int opc_onpolicy_errors(const struct opc_onpolicy_plan *, double learned[OPC_ERRORS],
                        double corrected[OPC_ERRORS], struct opc_err *err);

#endif
