/* SPDX-License-Identifier: MIT */
/* agent/steve.h - stochastic ensemble value expansion (Buckman et al. 2018): its settings and its
 * type.
 *
 * DDPG whose critics learn from targets of 0 to H imagined steps, averaged with the inverse of
 * their variance over ensembles. It has a world model of its own, which it trains on recorded steps
 * only, and runs in the loop of SAC (opc.transition = replay). Words after the help text of a
 * setting are aliases, the names of the published configuration. */
#ifndef OPC_AGENT_STEVE_H
#define OPC_AGENT_STEVE_H

#include "base/field.h"
#include "opc/agent.h"

/* clang-format off */
#define OPC_STEVE_FIELDS(X)                                                                         \
    X(INTS,   policy_hidden,      "[128, 128, 128]", 1, 8192, "widths of the policy's hidden layers") \
    X(INTS,   critic_hidden,      "[128, 128, 128]", 1, 8192, "widths of the critics' hidden layers") \
    X(INTS,   transition_hidden,  "[512, 512, 512, 512, 512, 512, 512]", 1, 8192, "widths of the hidden layers of the networks that predict the next state") \
    X(INTS,   reward_hidden,      "[128, 128, 128]", 1, 8192, "widths of the hidden layers of the networks that predict the reward") \
    X(INTS,   termination_hidden, "[128, 128, 128]", 1, 8192, "widths of the hidden layers of the networks that predict whether the task ends") \
    X(INT,    critic_members,     "4",      1, 16,    "critics in their ensemble")                     \
    X(INT,    transition_members, "4",      1, 16,    "transition networks in their ensemble; each has its own termination network") \
    X(INT,    reward_members,     "4",      1, 16,    "reward networks in their ensemble")             \
    X(INT,    horizon,            "3",      1, 16,    "H, the largest number of imagined steps in a critic's target", "rollout_len") \
    X(CHOICE, weighting,          "variance", "variance|covariance", , "how targets of 0 to H steps are averaged: by their inverse variance over the ensembles, or by the inverse of their whole covariance matrix") \
    X(REAL,   discount,           "0.99",   0, 1,     "gamma, the discount of eq. 1", "gamma")         \
    X(REAL,   learning_rate,      "3e-4",   0, 1,     "Adam's learning rate for all networks", "rate|lr") \
    X(INT,    batch_size,         "512",    1, 65536, "transitions in one gradient step of the world model, and in one of policy and critics", "batch") \
    X(INT,    copy_interval,      "500",    1, 1e9,   "gradient steps from one copy of the networks to the next: targets use the copied critics and world model, the copied policy acts", "epoch_every_n") \
    X(INT,    pretrain_updates,   "10000",  0, 1e9,   "gradient steps of the world model alone before the first one of policy and critics", "pretrain_n") \
    X(REAL,   weight_decay,       "1e-4",   0, 1,     "L2 penalty on the weights and biases of the world model") \
    X(REAL,   action_penalty,     "1e-3",   0, 1e6,   "weight of the mean squared action before tanh in the policy's loss") \
    X(REAL,   explore_probability, "0.05",  0, 1,     "probability with which a component of an action gets standard normal noise before tanh", "explore_chance") \
    X(REAL,   reward_scale,       "1",      0, 1e6,   "factor on rewards")
/* clang-format on */
struct opc_steve_config {
    OPC_STEVE_FIELDS(OPC_MEMBER)
};
enum opc_steve_weighting { OPC_STEVE_VARIANCE, OPC_STEVE_COVARIANCE };

/* The columns it reports, in the order of opc_steve_type.columns: means over the gradient steps,
 * except for the extremes of the targets. Losses of the world model do not count its
 * pre-training. */
enum {
    OPC_STEVE_Q,        /* mean of the critics at (s, a), each on the rows that it learns from */
    OPC_STEVE_Q_TARGET, /* mean of their targets */
    OPC_STEVE_TARGET_MIN,
    OPC_STEVE_TARGET_MAX,
    OPC_STEVE_CRITIC_LOSS,
    OPC_STEVE_ACTOR_LOSS,
    OPC_STEVE_TD_WEIGHT,   /* mean weight of the target without imagined steps, T_0 */
    OPC_STEVE_MODEL_STEPS, /* mean number of imagined steps, sum over i of i w_i */
    OPC_STEVE_TRANSITION_LOSS,
    OPC_STEVE_REWARD_LOSS,
    OPC_STEVE_TERMINATION_LOSS,
    OPC_STEVE_COLUMNS
};
extern const struct opc_section opc_steve_section; /* "steve" */
extern const struct opc_agent_type opc_steve_type;

/* The target of one row from its candidates T[horizons][n]: horizon i has n of them, one for each
 * combination of ensemble members, in the same order for each horizon. Returns sum_i w_i mean_i and
 * fills weight[horizons], which add up to 1. A horizon whose variance is not finite, because its
 * model has diverged, gets weight 0. scratch: horizons * (horizons + 3) doubles. */
double opc_steve_weigh(int horizons, int n, const double *candidate, enum opc_steve_weighting,
                       double *weight, double *scratch);

#endif
