/* SPDX-License-Identifier: MIT */
/* agent/steve_private.h - the parts of STEVE, for its own files: steve.c has its life, its acting
 * and the order of an update, steve_target.c the critics' targets, steve_learn.c the losses. */
#ifndef OPC_AGENT_STEVE_PRIVATE_H
#define OPC_AGENT_STEVE_PRIVATE_H

#include "agent/steve.h"
#include "num/adam.h"
#include "num/mlp.h"

/* The networks. The last three are the world model. Of a recorded step (s, a, r, d, s') they map
 *     policy       s          to  m numbers, the action before tanh
 *     critic       s, a       to  Q
 *     transition   s, a       to  s' - s
 *     reward       s', s, a   to  r
 *     termination  s', s, a   to  the log-odds of d = 1 */
enum steve_kind {
    STEVE_POLICY,
    STEVE_CRITIC,
    STEVE_TRANSITION,
    STEVE_REWARD,
    STEVE_TERMINATION,
    STEVE_KINDS
};

/* An ensemble (of one, for the policy) under training, and its copy of the last copy_interval. */
struct steve_ensemble {
    struct opc_mlp *net, *copy;
    struct opc_adam *adam;
};

/* What one update adds to the report. One for each panel or each member, so that no two threads add
 * to the same number. */
struct steve_sums {
    double loss, value;
    double target, target_min, target_max, td_weight, model_steps;
};

/* The memory of one thread. It trains one member at a time. */
struct steve_worker {
    struct opc_tape *tape[STEVE_KINDS]; /* for the rows of one member; none for the policy */
    int *row;                           /* [batch] numbers of the member's rows in the batch */
    const float **step;                 /* [batch] and where they are */
    float *batch;                       /* [panels][columns][16] the same in panels */
    float *input;                       /* [panels][2 obs + act][16] s', s, a */
    float *grad;                        /* of one member, laid out as its parameters */
    struct opc_arena scratch;           /* for targets and the policy's loss */
};

struct steve {
    struct opc_agent base;
    struct opc_steve_config config;
    struct opc_pool *pool;
    int threads;
    int panels, columns; /* of a batch; columns are those of one step: s, a, r, mark, s' */

    struct steve_ensemble ensemble[STEVE_KINDS];
    long updates;    /* gradient steps of policy and critics since the run began */
    long pretrained; /* gradient steps of the world model before them */

    /* What one gradient step works on. */
    const float **step;                         /* [batch] as drawn: s, a, r, mark, s' */
    int *member[STEVE_KINDS];                   /* [batch] which member a row trains */
    float *batch;                               /* [panels][columns][16] */
    float *target;                              /* [panels][16] of the critics */
    float *joint;                               /* [panels][obs + act][16] s, tanh pi(s) */
    float *dq_da;                               /* [panels][act][16] summed over the critics */
    float *dq_one;                              /* [panels][act][16] of one critic */
    struct opc_tape *policy_tape, *critic_tape; /* at s; at (s, tanh pi(s)), one critic in turn */
    struct steve_sums *panel_sums;              /* [panels] targets and actor loss */
    struct steve_sums *member_sums;             /* [STEVE_KINDS][STEVE_MEMBERS_MAX] */
    struct steve_worker *worker;                /* [threads] */
    struct opc_arena *act_scratch;              /* [threads] */
};

enum { STEVE_MEMBERS_MAX = 16 }; /* as the settings allow */

static inline int steve_members(const struct steve *s, enum steve_kind kind)
{
    return s->ensemble[kind].net->shape.members;
}
static inline struct steve_sums *steve_member_sums(const struct steve *s, enum steve_kind kind,
                                                   int member)
{
    return &s->member_sums[(size_t)kind * STEVE_MEMBERS_MAX + (size_t)member];
}
/* Rows of panel p that hold one of `rows` rows; the rest of the last panel is padding. */
static inline int steve_real_rows(int rows, int p)
{
    const int left = rows - p * OPC_PANEL;
    return left < OPC_PANEL ? left : OPC_PANEL;
}
/* Panels p of one member through a network, a few at a time so that its layers stay in the cache:
 * x[panels][xs] to y[panels][ys]. */
void steve_infer(const struct opc_mlp *, int member, int panels, const float *x, size_t xs,
                 float *y, size_t ys, struct opc_arena *scratch);
size_t steve_infer_need(const struct opc_mlp *);

/* ---- steve_target.c -------------------------------------------------------------------------- */

/* The critics' targets of panels p0 .. p1-1 of s->batch into s->target, and their sums. */
void steve_targets(struct steve *, int p0, int p1, struct opc_arena *scratch);
/* Bytes of scratch it needs for this many panels. */
size_t steve_targets_need(const struct steve *, int panels);

/* ---- steve_learn.c --------------------------------------------------------------------------- */

/* Draws for each row of the batch the member that it trains. */
void steve_assign(struct steve *, enum steve_kind, struct opc_rng *);
/* One gradient step of the world model on s->step. */
void steve_learn_model(struct steve *);
/* One gradient step of critics and policy on s->step, targets included. */
void steve_learn_policy(struct steve *);

#endif
