/* SPDX-License-Identifier: MIT */
/* agent/sac_private.h - the agent's memory, shared by sac.c (life) and sac_update.c (gradient
 * steps). Nobody else includes it. */
#ifndef OPC_AGENT_SAC_PRIVATE_H
#define OPC_AGENT_SAC_PRIVATE_H

#include "agent/policy.h"
#include "agent/sac.h"
#include "num/adam.h"
#include "num/network.h"

enum { P = OPC_PANEL, LEARNERS = 3 };

/* Sums over the real rows of one panel, for the report. One for each panel, so that no two threads
 * add to the same number. */
struct panel_sums {
    double q, target, critic_loss, actor_loss, logp;
    double target_min, target_max;
};

/* One network under training: critic 1, critic 2 or the policy. It names what apply_gradient needs:
 * the parameters, the tape of the loss, and the optimiser. */
struct learner {
    struct opc_mlp *net, *target; /* target: NULL for the policy, which has no target network */
    int member;                   /* of net: 0 or 1 for the critics, 0 for the policy */
    struct opc_tape *tape;
    struct opc_adam *adam;
    float *grad;                       /* laid out as the parameters */
    float *transposed[OPC_MLP_LAYERS]; /* the layers' inputs, for the gradients of their weights */
};

struct sac {
    struct opc_agent base;
    struct opc_sac_config config;
    double target_entropy; /* H of J_al, in nats */
    struct opc_pool *pool;
    int threads;
    int panels, columns; /* of a batch; columns are those of one step: s, a, r, mark, s' */

    struct opc_policy *policy;
    struct opc_mlp *critics, *targets; /* two members each */
    struct opc_adam *policy_adam, *critic_adam, *alpha_adam;
    float log_alpha;     /* the temperature is learned as its logarithm, so it stays positive */
    float mean_logp;     /* of the last update's actions; sac.bound_targets counts their entropy */
    float q_low, q_high; /* within which the values of the target critics are believed */
    long updates;        /* gradient steps since the run began; target_interval counts them */

    /* What one update works on. */
    const float **step;               /* [batch] as drawn: s, a, r, mark, s' */
    float *batch;                     /* [panels][columns][16] the same in panels */
    float *noise;                     /* [2][panels][act][16] for a', then for a~ */
    float *joint;                     /* [panels][obs + act][16] s, a~ */
    float *std;                       /* [panels][act][16] deviations of a~ */
    float *dq_da;                     /* [2][panels][act][16] dQ_i / da~ */
    struct opc_tape *policy_tape;     /* policy at s */
    struct opc_tape *critic_tape[2];  /* Q_i at (s, a) */
    struct opc_tape *actor_q_tape[2]; /* Q_i at (s, a~) */
    struct panel_sums *sums;          /* [panels] */
    float *policy_grad, *critic_grad; /* laid out as the parameters */
    float *transposed;                /* the learners' transposed[] point in here */
    struct learner learner[LEARNERS]; /* both critics and the policy */
    struct opc_arena *scratch;        /* [threads] */
    float alpha;                      /* exp(log_alpha) before this update */
    struct opc_rng stream;            /* of the noise of a' and a~ */
};

/* `updates` gradient steps (opc_agent_type.improve). The report holds means over them, and the
 * extremes of the targets. */
int opc_sac_improve(struct opc_agent *, const struct opc_feed *, int updates,
                    struct opc_agent_report *report, struct opc_err *err);

#endif
