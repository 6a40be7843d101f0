/* SPDX-License-Identifier: MIT */
/* model/multistep.h - the dynamics model of SLBO: one deterministic network that is trained on
 * windows of consecutive steps, through its own predictions, with an error that is not squared.
 *
 * In units of running means and deviations (state: mu_s, sigma_s; difference s' - s: mu_d,
 * sigma_d),
 *
 *     s^' = s + sigma_d net((s - mu_s) / sigma_s, clip(a, -1, 1)) + mu_d
 *
 * is clipped to mu_s -+ clip sigma_s, and one more output is the reward, which is clipped alike. It
 * has no members and no variance, so it is not a predictor of opc/predictor.h; agent/slbo.c owns
 * it. One thread at a time, with a pool for the work. */
#ifndef OPC_MODEL_MULTISTEP_H
#define OPC_MODEL_MULTISTEP_H

#include "num/adam.h"
#include "num/mlp.h"
#include "num/running.h"

enum { OPC_WINDOW_MAX = 8 };

struct opc_multistep_options {
    int obs, act;
    const int *hidden; /* [depth] widths of the hidden layers */
    int depth;
    int window;  /* H, steps of a window, 1 .. OPC_WINDOW_MAX */
    int batch;   /* windows of one gradient step */
    bool reward; /* does the loss count the reward? The output is there anyway */
    double learning_rate, weight_decay;
    double clip;          /* deviations that predictions stay within; 0: 100, as published */
    double max_grad_norm; /* longer gradients are scaled down to it; 0: never */
    uint64_t seed;        /* seed and which name the stream of the first weights */
    uint32_t which;
    struct opc_pool *pool; /* may be NULL; borrowed */
};

struct opc_multistep {
    struct opc_multistep_options options; /* hidden is not kept */
    int in, out;                          /* obs + act, obs + 1 */
    int columns;                          /* of a recorded row: s, a, r, d, s' */
    struct opc_mlp *net;
    struct opc_adam *adam;

    /* [2 obs + 1] statistics of s, of s' - s and of r over all rows seen, and the same as floats
     * (opc_multistep_scales). A loader restores both. */
    struct opc_running *stats;
    float *scales;

    /* What a gradient step works on; panels of 16 windows (num/kernel.h). */
    float *record[OPC_WINDOW_MAX]; /* [panels][columns][16] the recorded rows */
    float *x[OPC_WINDOW_MAX];      /* [panels][in][16] inputs of the network */
    float *s[OPC_WINDOW_MAX];      /* [panels][obs][16] s^_i, where step i of the window starts */
    float *next[OPC_WINDOW_MAX];   /* [panels][obs][16] s^_i+1 as predicted */
    double *loss[OPC_WINDOW_MAX];  /* [batch] l_i */
    struct opc_tape *tape[OPC_WINDOW_MAX];
    float *ds;          /* [panels][obs][16] gradient of the loss by s^_i */
    float *dx;          /* [panels][in][16] and by the network's inputs */
    float *grad, *step; /* [net->each] of the window, of one of its steps */
    struct opc_arena scratch;
};

/* Where the floats of `scales` are. */
struct opc_multistep_scales {
    float *mean, *inverse;       /* [obs] of states: mu_s, 1 / max(sigma_s, 1e-8) */
    float *low, *high;           /* [obs] mu_s -+ clip sigma_s */
    float *diff_mean, *diff_std; /* [obs + 1] of differences, then of rewards */
    float *weight;               /* [obs + 1] 1 / max(sigma_d, 1e-6), as the loss has it */
};
struct opc_multistep_scales opc_multistep_scales(const struct opc_multistep *);
static inline size_t opc_multistep_scales_count(int obs)
{
    return 7 * (size_t)obs + 3;
}

/* Weights start at almost 0, so the model starts as "the mean difference". OPC_EUSER: too many
 * layers; OPC_ENOMEM. */
int opc_multistep_create(const struct opc_multistep_options *, struct opc_multistep **out,
                         struct opc_err *err);
void opc_multistep_destroy(struct opc_multistep *); /* NULL is fine */

/* Adds n recorded rows to the statistics; row[i] points at 2 obs + act + 2 floats s, a, r, d, s'.
 */
void opc_multistep_observe(struct opc_multistep *, int n, const float *const *row);

/* One gradient step on n <= batch windows. row[i * n + b]: recorded row i of window b, as above.
 * cut[i * n + b]: row i + 1 of window b does not follow on row i, so the window goes on from its
 * recorded state; i < window - 1. Returns the loss without the weight decay, before the step:
 *
 *     mean over windows of (l_0 + ... + l_H-1) / H,   l_i = sqrt(1/N sum_j (e_ij / sigma_dj)^2),
 *     e_i = (s^_i+1 - s^_i) - (s'_i - s_i), and the error of the reward if it counts */
double opc_multistep_train(struct opc_multistep *, int n, const float *const *row, const bool *cut);
/* The loss and, in model->grad, its gradient with weight decay; opc_multistep_train without the
 * step. */
double opc_multistep_gradient(struct opc_multistep *, int n, const float *const *row,
                              const bool *cut);

/* s[n][obs], a[n][act] to next[n][obs] and reward[n] (may be NULL). */
void opc_multistep_predict(struct opc_multistep *, int n, const float *s, const float *a,
                           float *next, float *reward);
/* What create takes, at most; 0: it refuses these options. */
size_t opc_multistep_need(const struct opc_multistep_options *);

#endif
