/* SPDX-License-Identifier: MIT */
/* agent/slbo_private.h - the agent's memory, shared by slbo.c (acting, improving, life) and
 * slbo_imagine.c (trajectories in the model). Nobody else includes it, except tests. */
#ifndef OPC_AGENT_SLBO_PRIVATE_H
#define OPC_AGENT_SLBO_PRIVATE_H

#include "agent/slbo.h"
#include "agent/trpo.h"
#include "model/multistep.h"
#include "opc/env.h"
#include "opc/episodes.h"

enum {
    OPC_SLBO_AT_ONCE = 4096, /* recorded rows that the statistics are updated by at once */
    OPC_SLBO_STARTS = 1024,  /* reset states of an epoch; later trajectories start in them again */
};

/* Trajectories in the model, all of them one step further at a time. */
struct slbo_rollouts {
    uint32_t starts;     /* trajectories begun in this epoch; their number names their streams */
    struct opc_rng *rng; /* [envs] of the actions of the running trajectory */
    float *state, *next; /* [envs][obs] */
    float *action, *clipped; /* [envs][act] as drawn, and in [-1, 1] */
    float *reward;           /* [envs] */
    bool *done;              /* [envs] */
    float *starts_of_epoch;  /* [OPC_SLBO_STARTS][obs] reset states that have been drawn so far */
    double *start;           /* [obs] as the task's reset gives it */
};

struct slbo {
    struct opc_agent base;
    struct opc_slbo_config config;
    struct opc_multistep *model; /* and the statistics that policy and value function share */
    struct opc_trpo *trpo;
    int64_t seen; /* recorded steps that the statistics have */

    /* Of the run; NULL where a policy is loaded without it. */
    const struct opc_env *env;       /* asked for ends and rewards of imagined steps */
    const struct opc_episodes *past; /* everything recorded */
    struct opc_env *resets;          /* one more environment, which is only reset; owned */
    bool given_reward;               /* the task's own function, not the model's output */

    const float **row; /* [max(window * batch_size, OPC_SLBO_AT_ONCE)] recorded rows */
    bool *cut;         /* [window * batch_size] */
    float *noise;      /* [2 act] */
    struct slbo_rollouts rollouts;
};

/* What the trajectories of one update brought. */
struct slbo_imagined {
    double rewards;   /* of all steps, summed up */
    int trajectories; /* that were begun */
};

/* Fills the batch of slbo->trpo with imagined steps of the policy as it is. OPC_EENV: the task
 * cannot be reset; OPC_EDIVERGED: a reward is not finite. */
int opc_slbo_imagine(struct slbo *, const struct opc_feed *, struct slbo_imagined *,
                     struct opc_err *err);
/* The number of the oldest recorded step that is trained on. */
int opc_slbo_first_step(const struct slbo *);

#endif
