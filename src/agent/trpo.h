/* SPDX-License-Identifier: MIT */
/* agent/trpo.h - trust region policy optimisation (Schulman et al. 2015): a Gaussian policy, a
 * value function, and one update from a batch of trajectories. SLBO runs it on imagined ones
 * (agent/slbo.c); it does not know where its rows come from.
 *
 * A batch has `envs` parts of `length` steps each. The caller fills state (normalised), action,
 * reward and done, then calls opc_trpo_learn. Part e has length + 1 states; the last one is where
 * its last step led. Where done is set, the next state of the part is the start of another
 * episode. */
#ifndef OPC_AGENT_TRPO_H
#define OPC_AGENT_TRPO_H

#include "num/adam.h"
#include "num/mlp.h"

struct opc_trpo_options {
    int obs, act, envs, length;
    const int *policy_hidden, *value_hidden; /* widths of the hidden layers */
    int policy_depth, value_depth;
    double discount, gae_lambda;
    double max_kl;     /* of one update, by the second-order form */
    int cg_iterations; /* of conjugate gradients */
    double cg_damping; /* the Fisher matrix gets this times the identity */
    int line_search;   /* tries, each half as long as the one before */
    double log_std_init;
    double value_learning_rate;
    int value_passes, value_batch; /* over the batch, and rows of one gradient step */
    uint64_t seed;
    uint32_t which;        /* which and which + 1 name the streams of the first weights */
    struct opc_pool *pool; /* may be NULL; borrowed */
};

/* What one update did. */
struct opc_trpo_report {
    bool accepted; /* false: the line search found nothing, and the policy is as before */
    double kl;     /* mean KL(old || new); 0 where nothing was accepted */
    double gain;   /* of the objective */
    double value;  /* mean V of the rows, before its fit */
    double target; /* mean of its targets, advantages + V */
    double target_min, target_max;
    double critic_loss; /* mean squared error of V, over all gradient steps of its fit */
};

struct opc_trpo {
    struct opc_trpo_options options; /* hidden layers are not kept */
    int rows;                        /* envs * length */
    struct opc_mlp *policy, *value;  /* s to the means of a; s to V */
    float *log_std;                  /* [act] */
    struct opc_adam *value_adam;

    /* The batch, filled by the caller. Step t of part e is number e * length + t. */
    float *state;   /* [envs][length + 1][obs] normalised */
    float *action;  /* [rows][act] as drawn */
    double *reward; /* [rows] */
    bool *done;     /* [rows] the task ended with this step */

    /* Computed from it. */
    double *values;            /* [envs * (length + 1)] V of every state */
    double *advantage;         /* [rows], normalised for the policy's update */
    double *target;            /* [rows] advantage + V, before that */
    int *row;                  /* [rows] where the state of step i is in `state` */
    int *order;                /* [rows] a shuffled order of the steps */
    float *x;                  /* [panels][obs][16] states of all steps */
    float *old_mean;           /* [panels][act][16] means of the policy that acted, ... */
    float *old_log_std;        /* [act] ... and its log-deviations */
    double *old_logp;          /* [rows] log pi(a | s) of it */
    double *row_gain, *row_kl; /* [rows] of the policy as it is */

    struct opc_tape *policy_tape, *value_tape;
    float *transposed[OPC_MLP_LAYERS]; /* of the policy's layers, for all rows */
    float *direction, *grad;           /* [policy->each] of a Fisher-vector product */
    float *value_grad, *value_x;       /* [value->each], a batch of the value function */
    float *zeros;                      /* [widest layer] a bias of zeros */
    size_t params;                     /* policy->each + act: weights with padding, log_std */
    double *gradient, *step;           /* [params] of the objective; the direction to go */
    double *work;                      /* [3 params] of conjugate gradients */
    float *kept;                       /* [params] parameters before the line search */
    double *dlog_std;                  /* [act] */
    double *inverse_std, *var_ratio;   /* [act] 1 / std; the old variance over that of now */
    struct opc_arena *scratch;         /* [threads] */
    int threads;
};

int opc_trpo_create(const struct opc_trpo_options *, struct opc_trpo **out, struct opc_err *err);
void opc_trpo_destroy(struct opc_trpo *); /* NULL is fine */
/* What create takes, at most; 0: it refuses these options. */
size_t opc_trpo_need(const struct opc_trpo_options *);

/* Actions of n states [n][obs], which are normalised here: (s - mean) * inverse. Draws with
 * deviation spread * exp(log_std), row i from rng[i]; rng NULL: the mean. */
void opc_trpo_act(struct opc_trpo *, const float *mean, const float *inverse, int n,
                  const float *state, float spread, struct opc_rng *rng, float *action);

/* One update of the policy, with ent_coef times the entropy in its objective, then the fit of the
 * value function, whose pass k is shuffled by stream (seed, OPC_USE_UPDATE, epoch, first + k). */
void opc_trpo_learn(struct opc_trpo *, double ent_coef, uint64_t seed, uint32_t epoch,
                    uint32_t first, struct opc_trpo_report *);

/* ---- its parts, for tests -------------------------------------------------------------------- */

/* V, advantages and targets of the batch. */
void opc_trpo_advantages(struct opc_trpo *);
/* Remembers the policy as the one that acted. */
void opc_trpo_remember(struct opc_trpo *);
/* The objective mean(ratio A) + ent_coef mean(entropy), and the mean KL(old || new); of the policy
 * as it is against the one remembered. */
double opc_trpo_objective(struct opc_trpo *, double ent_coef, double *kl);
/* trpo->gradient: that of the objective. After opc_trpo_objective. */
void opc_trpo_gradient(struct opc_trpo *, double ent_coef);
/* out = (F + cg_damping I) v, F the Hessian of the mean KL at the policy as it is; [params]. After
 * opc_trpo_gradient, which prepares it. ctx is the opc_trpo. */
void opc_trpo_fisher(void *ctx, const double *v, double *out);
/* From trpo->gradient to new parameters, or back to the old ones. */
bool opc_trpo_line_search(struct opc_trpo *, double ent_coef, double before, double *gain,
                          double *kl);

/* SLBO's published "entropy" of N(mean, exp(log_std)) on [-2, 2], and its derivatives, which may be
 * NULL. */
double opc_clipped_entropy(double mean, double log_std, double *dmean, double *dlog_std);

#endif
