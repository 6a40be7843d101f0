/* SPDX-License-Identifier: MIT */
/* run/real/evaluate.h - how good a policy is: returns of whole episodes, on environments that
 * training does not use. */
#ifndef OPC_RUN_EVALUATE_H
#define OPC_RUN_EVALUATE_H

#include "env/many.h"
#include "opc/train.h"

enum { OPC_EVAL_AT_ONCE = 64 }; /* episodes played at once, at most */

struct opc_eval_plan {
    const struct opc_agent *agent;
    struct opc_many *worlds; /* any number of them */
    int episodes;
    int limit;    /* an episode is cut after this many steps */
    bool explore; /* draw actions; otherwise the policy's mean */
    uint64_t seed;
    bool (*stop)(void *); /* asked between two steps; true: OPC_ESTOPPED. NULL: never */
    void *stop_ctx;
    uint32_t epoch; /* episode i starts from stream (seed, OPC_USE_EVAL, epoch, i) */
};

/* The result does not depend on the number of worlds or threads. returns[episodes], the return of
 * each, may be NULL. */
int opc_evaluate(const struct opc_eval_plan *, struct opc_evaluation *, double *returns,
                 struct opc_err *err);

#endif
