/* SPDX-License-Identifier: MIT */
/* agent/ppo.h - proximal policy optimisation (Schulman et al. 2017): its settings and its type.
 *
 * On-policy: it learns from the trajectories its own policy has made since the last improvement.
 * The names of the settings are CleanRL's, with aliases of other implementations after the help
 * text. */
#ifndef OPC_AGENT_PPO_H
#define OPC_AGENT_PPO_H

#include "base/field.h"
#include "opc/agent.h"

/* clang-format off */
#define OPC_PPO_FIELDS(X)                                                                           \
    X(INTS,   policy_hidden,   "[64, 64]", 1, 8192, "widths of the policy's hidden layers")         \
    X(INTS,   critic_hidden,   "[64, 64]", 1, 8192, "widths of the critic's hidden layers")         \
    X(REAL,   discount,        "0.99",   0, 1,      "gamma, the discount of eq. 1", "gamma")        \
    X(REAL,   gae_lambda,      "0.95",   0, 1,      "lambda of generalised advantage estimation: 1 trusts the rewards, 0 the critic", "lambda") \
    X(REAL,   learning_rate,   "3e-4",   0, 1,      "Adam's learning rate for policy and critic", "rate|lr") \
    X(BOOL,   anneal_lr,       "true",   0, 1,      "lower the learning rate linearly, to 0 at the end of train.epochs", "anneal") \
    X(INT,    update_epochs,   "10",     1, 1e4,    "passes over an epoch's steps in one improvement", "passes|n_epochs") \
    X(INT,    batch_size,      "64",     2, 65536,  "steps in one gradient step", "batch|minibatch_size") \
    X(REAL,   clip_range,      "0.2",    1e-6, 1e6, "the ratio of probabilities is clipped at this distance from 1", "clip|clip_coef") \
    X(REAL,   clip_range_vf,   "0.2",    0, 1e6,    "the critic's new value is clipped at this distance from its old one; 0: no clipping", "clip_value") \
    X(REAL,   vf_coef,         "0.5",    1e-6, 1e6, "weight of the critic's loss; it matters only through ppo.max_grad_norm", "value_weight") \
    X(REAL,   ent_coef,        "0",      0, 1e6,    "weight of the policy's entropy in its objective", "entropy_weight") \
    X(REAL,   max_grad_norm,   "0.5",    0, 1e9,    "longer gradients are scaled down to this norm; 0: never", "most_norm") \
    X(REAL,   log_std_init,    "0",      -20, 2,    "logarithm of the policy's standard deviation at the start", "log_std") \
    X(BOOL,   normalize_obs,   "true",   0, 1,      "normalise observations by their running mean and standard deviation", "scale_obs") \
    X(BOOL,   normalize_reward, "true",  0, 1,      "divide rewards by the running standard deviation of discounted returns", "scale_reward") \
    X(REAL,   clip_normalized, "10",     1e-3, 1e9, "normalised observations and rewards are clipped at this magnitude", "most_scaled|clip_obs|clip_reward")
/* clang-format on */
struct opc_ppo_config {
    OPC_PPO_FIELDS(OPC_MEMBER)
};
/* The columns it reports, in the order of opc_ppo_type.columns. */
enum {
    OPC_PPO_Q,        /* mean value of the states, before the improvement, in normalised rewards */
    OPC_PPO_Q_TARGET, /* mean of the critic's targets */
    OPC_PPO_TARGET_MIN,
    OPC_PPO_TARGET_MAX,
    OPC_PPO_CRITIC_LOSS,
    OPC_PPO_ACTOR_LOSS,
    OPC_PPO_ENTROPY, /* of the Gaussian, before the environment clips actions */
    OPC_PPO_KL,      /* mean KL divergence from the policy that acted */
    OPC_PPO_CLIPPED, /* share of steps whose ratio was clipped */
    OPC_PPO_COLUMNS
};
extern const struct opc_section opc_ppo_section; /* "ppo" */
extern const struct opc_agent_type opc_ppo_type;

#endif
