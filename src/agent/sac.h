/* SPDX-License-Identifier: MIT */
/* agent/sac.h - soft actor-critic with automatic temperature (Haarnoja et al. 2018): its settings
 * and its type.
 *
 * Off-policy: it learns from batches of a replay buffer, whoever chose their actions. Words after
 * the help text of a setting are aliases, the names other implementations use. */
#ifndef OPC_AGENT_SAC_H
#define OPC_AGENT_SAC_H

#include "base/field.h"
#include "opc/agent.h"

/* clang-format off */
#define OPC_SAC_FIELDS(X)                                                                           \
    X(INTS,   policy_hidden,   "[64, 64]", 1, 8192, "widths of the policy's hidden layers")         \
    X(INTS,   critic_hidden,   "[64, 64]", 1, 8192, "widths of the critics' hidden layers")         \
    X(REAL,   discount,        "0.99",   0, 1,      "gamma, the discount of eq. 1", "gamma")        \
    X(REAL,   learning_rate,   "3e-4",   0, 1,      "Adam's learning rate for policy, critics and temperature", "rate|lr") \
    X(REAL,   lr_decay,        "0",      0, 1,      "share of the learning rate that is gone at the end of train.epochs; it falls linearly. 0: it stays") \
    X(INT,    batch_size,      "256",    1, 65536,  "transitions in one gradient step", "batch")    \
    X(REAL,   tau,             "0.005",  0, 1,      "Polyak factor: the share of the critics that one update of the target critics mixes in", "polyak") \
    X(INT,    target_interval, "1",      1, 1e6,    "gradient steps from one update of the target critics to the next", "target_update_interval") \
    X(BOOL,   tune_entropy,    "true",   0, 1,      "adapt the temperature alpha to the target entropy", "autotune") \
    X(REAL,   alpha,           "1",      1e-8, 1e3, "temperature, the weight of the entropy; with sac.tune_entropy only its first value", "ent_coef") \
    X(TEXT,   target_entropy,  "auto",   1, 32,     "target entropy in nats; auto: the task's own, or minus the number of actions") \
    X(REAL,   reward_scale,    "1",      0, 1e6,    "factor on rewards in the critics' targets")    \
    X(BOOL,   bound_targets,   "false",  0, 1,      "clip the target critics' values to what the recorded rewards allow: reward / (1 - discount), with the entropy bonus; with discount 1 to nothing. Rewards themselves stay: opc.bounds clips imagined ones") \
    X(BOOL,   layer_norm,      "false",  0, 1,      "layer normalisation before each ReLU of the critics and target critics", "critic_layer_norm") \
    X(CHOICE, adam,            "original", "original|torch", , "where Adam adds its epsilon: to sqrt(v) before the bias correction, or after it as PyTorch does")
/* clang-format on */
struct opc_sac_config {
    OPC_SAC_FIELDS(OPC_MEMBER)
};
/* The columns it reports, in the order of opc_sac_type.columns: means over the gradient steps,
 * except for the extremes of the targets and the temperature, which is the last one. */
enum {
    OPC_SAC_Q,        /* mean of both critics at (s, a) */
    OPC_SAC_Q_TARGET, /* mean of their targets */
    OPC_SAC_TARGET_MIN,
    OPC_SAC_TARGET_MAX,
    OPC_SAC_CRITIC_LOSS,
    OPC_SAC_ACTOR_LOSS,
    OPC_SAC_ALPHA, /* the temperature */
    OPC_SAC_ENTROPY,
    OPC_SAC_COLUMNS
};
extern const struct opc_section opc_sac_section; /* "sac" */
extern const struct opc_agent_type opc_sac_type;

#endif
