/* SPDX-License-Identifier: MIT */
/* agent/ppo.h - proximal policy optimisation (Schulman et al. 2017). */
#ifndef OPC_AGENT_PPO_H
#define OPC_AGENT_PPO_H

#include "base/field.h"
#include "opc/agent.h"

/* clang-format off */
#define OPC_PPO_FIELDS(X)                                                                            \
    X(INTS,   policy_hidden,   "[64, 64]", 1, 8192, "widths of the policy's hidden layers")          \
    X(INTS,   critic_hidden,   "[64, 64]", 1, 8192, "widths of the critic's hidden layers")          \
    X(REAL,   discount,        "0.99",   0, 1,      "gamma, the discount of eq. 1")                  \
    X(REAL,   lambda,          "0.95",   0, 1,      "how far advantages trust rewards (1) rather than the critic (0)") \
    X(REAL,   rate,            "3e-4",   0, 1,      "Adam's step for policy and critic")             \
    X(BOOL,   anneal,          "true",   0, 1,      "lower the step linearly, to 0 at the end of train.epochs") \
    X(INT,    passes,          "10",     1, 1e4,    "times that an improvement goes through an epoch's steps") \
    X(INT,    batch,           "64",     2, 65536,  "steps in one gradient step")                    \
    X(REAL,   clip,            "0.2",    1e-6, 1e6, "the policy gains nothing from a ratio of probabilities further than this from 1") \
    X(REAL,   clip_value,      "0.2",    0, 1e6,    "nor the critic from a value further than this from what it was; 0: no limit") \
    X(REAL,   value_weight,    "0.5",    1e-6, 1e6, "of the critic's loss beside the policy's, which matters where most_norm shortens both") \
    X(REAL,   entropy_weight,  "0",      0, 1e6,    "reward for a wide policy")                      \
    X(REAL,   most_norm,       "0.5",    0, 1e9,    "longer gradients are shortened to this; 0: never") \
    X(REAL,   log_std,         "0",      -20, 2,    "logarithm of the policy's deviation at the start") \
    X(BOOL,   scale_obs,       "true",   0, 1,      "observations by their mean and deviation so far") \
    X(BOOL,   scale_reward,    "true",   0, 1,      "rewards by the deviation of discounted returns so far") \
    X(REAL,   most_scaled,     "10",     1e-3, 1e9, "both are cut off there once they are scaled")
/* clang-format on */
struct opc_ppo_config {
    OPC_PPO_FIELDS(OPC_MEMBER)
};
/* What it reports. */
enum {
    OPC_PPO_Q,        /* mean value of the states, before the improvement, in scaled rewards */
    OPC_PPO_Q_TARGET, /* mean of the critic's targets */
    OPC_PPO_TARGET_MIN,
    OPC_PPO_TARGET_MAX,
    OPC_PPO_CRITIC_LOSS,
    OPC_PPO_ACTOR_LOSS,
    OPC_PPO_ENTROPY, /* before actions are cut off */
    OPC_PPO_KL,      /* mean distance from the policy that acted */
    OPC_PPO_CLIPPED, /* share of steps whose ratio was clipped */
    OPC_PPO_COLUMNS
};
extern const struct opc_section opc_ppo_section; /* "ppo" */
extern const struct opc_agent_type opc_ppo_type;

/* Generalised advantages of a path of n steps, from its rewards and the critic's value[n + 1] of
 * its states; that of the last one counts only if the path did not end there. */
void opc_advantages(int n, const double *reward, const double *value, bool terminal,
                    double discount, double lambda, double *advantage);

#endif
