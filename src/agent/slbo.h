/* SPDX-License-Identifier: MIT */
/* agent/slbo.h - SLBO (Luo et al. 2019): its settings, its columns and its type.
 *
 * It learns a model of its own from everything recorded, and improves its policy by TRPO on
 * trajectories that the model imagines. The two take turns within an epoch, which the original
 * calls a stage. Names of settings follow the other agents; aliases are the original's. */
#ifndef OPC_AGENT_SLBO_H
#define OPC_AGENT_SLBO_H

#include "base/field.h"
#include "opc/agent.h"

/* clang-format off */
#define OPC_SLBO_FIELDS(X)                                                                          \
    X(INTS,   model_hidden,    "[500, 500]", 1, 8192, "widths of the model's hidden layers")        \
    X(INTS,   policy_hidden,   "[32, 32]", 1, 8192, "widths of the policy's hidden layers")         \
    X(INTS,   value_hidden,    "[64, 64]", 1, 8192, "widths of the value function's hidden layers") \
    X(INT,    iterations,      "20",     1, 1e6,    "turns of model and policy in an epoch", "n_iters") \
    X(INT,    model_updates,   "100",    1, 1e6,    "gradient steps of the model in a turn", "n_model_iters") \
    X(INT,    policy_updates,  "40",     1, 1e6,    "TRPO updates in a turn, each on new imagined steps", "n_policy_iters") \
    X(INT,    window,          "2",      1, 8,      "steps that the model predicts in a row while it is trained") \
    X(INT,    batch_size,      "128",    1, 65536,  "windows in one gradient step of the model")    \
    X(REAL,   learning_rate,   "1e-3",   0, 1,      "Adam's learning rate for the model", "lr")      \
    X(REAL,   weight_decay,    "1e-5",   0, 1,      "weight of half the squared norm of the model's parameters, biases included") \
    X(REAL,   max_grad_norm,   "2",      0, 1e9,    "longer gradients of the model are scaled down to this norm; 0: never") \
    X(INT,    buffer_size,     "200000", 1, 1e9,    "recorded steps that the model is trained on, the newest ones") \
    X(CHOICE, start,           "reset",  "reset|buffer", , "where imagined trajectories start: in a reset state of the task, or in any recorded one") \
    X(INT,    rollout_steps,   "4000",   1, 1e8,    "imagined steps of one TRPO update", "n_trpo_samples") \
    X(INT,    rollout_envs,    "8",      1, 65536,  "trajectories that are imagined at once; each has slbo.rollout_steps / slbo.rollout_envs steps", "n_envs") \
    X(REAL,   clip_normalized, "100",    1, 1e6,    "imagined states and learned rewards stay within this many standard deviations of the recorded ones") \
    X(REAL,   discount,        "0.99",   0, 1,      "gamma, the discount of eq. 1", "gamma")        \
    X(REAL,   gae_lambda,      "0.95",   0, 1,      "lambda of generalised advantage estimation: 1 trusts the rewards, 0 the value function", "lambda") \
    X(REAL,   max_kl,          "0.01",   1e-9, 10,  "largest mean KL divergence of a TRPO update, by its second-order form") \
    X(INT,    cg_iterations,   "10",     1, 1e4,    "iterations of conjugate gradients in a TRPO update") \
    X(REAL,   cg_damping,      "0.1",    0, 1e6,    "the Fisher matrix gets this times the identity", "damping") \
    X(INT,    line_search,     "10",     1, 100,    "tries of the line search, each half as long as the one before") \
    X(REAL,   ent_coef,        "0.005",  0, 1e6,    "weight of the entropy in TRPO's objective")    \
    X(INT,    ent_epochs,      "50",     0, 1e6,    "epochs with slbo.ent_coef; later ones have none") \
    X(REAL,   log_std_init,    "0",      -20, 2,    "logarithm of the policy's standard deviation at the start") \
    X(REAL,   value_learning_rate, "1e-3", 0, 1,    "Adam's learning rate for the value function")  \
    X(INT,    value_passes,    "5",      1, 1e4,    "passes of the value function over the imagined steps of an update") \
    X(INT,    value_batch_size, "64",    1, 65536,  "imagined steps in one gradient step of the value function") \
    X(REAL,   ou_theta,        "0.15",   0.01, 1,   "Ornstein-Uhlenbeck noise on real actions: how fast it returns to 0") \
    X(REAL,   ou_sigma,        "0.3",    0, 1e3,    "Ornstein-Uhlenbeck noise on real actions: standard deviation of its steps; 0: no noise")
/* clang-format on */
struct opc_slbo_config {
    OPC_SLBO_FIELDS(OPC_MEMBER)
};
enum { OPC_SLBO_START_RESET, OPC_SLBO_START_BUFFER };

/* The columns it reports, in the order of opc_slbo_type.columns; means are over TRPO updates. */
enum {
    OPC_SLBO_MODEL_LOSS,      /* mean unsquared error, in deviations, over all gradient steps */
    OPC_SLBO_MODEL_LOSS_LAST, /* over those of the epoch's last turn */
    OPC_SLBO_IMAGINED_RETURN, /* rewards of an imagined trajectory, and ... */
    OPC_SLBO_IMAGINED_LENGTH, /* ... its steps, of those of the last update */
    OPC_SLBO_Q,               /* value function, before its fit */
    OPC_SLBO_Q_TARGET,
    OPC_SLBO_TARGET_MIN,
    OPC_SLBO_TARGET_MAX,
    OPC_SLBO_CRITIC_LOSS,
    OPC_SLBO_GAIN,               /* of TRPO's objective */
    OPC_SLBO_KL,                 /* from the policy before an update */
    OPC_SLBO_LINE_SEARCH_FAILED, /* updates of the epoch that kept the policy as it was */
    OPC_SLBO_ENTROPY,            /* of the Gaussian, at the end of the epoch */
    OPC_SLBO_COLUMNS
};
extern const struct opc_section opc_slbo_section; /* "slbo" */
extern const struct opc_agent_type opc_slbo_type;

/* The Ornstein-Uhlenbeck noise of real step `step`, [act]: x_t = (1 - theta) x_t-1 + sigma z_t with
 * x = 0 before step 0, where z_t is drawn from a stream named by t. So it is a function of the seed
 * and the step, and a resumed run needs no state of it. It is not reset between episodes.
 * work[act]. */
void opc_slbo_noise(uint64_t seed, uint32_t step, int act, double theta, double sigma, float *work,
                    float *out);

#endif
