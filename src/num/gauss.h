/* SPDX-License-Identifier: MIT */
/* num/gauss.h - Gaussian outputs of networks: the model's likelihood and the policy's squashing.
 *
 * Everything works on panels and row by row. Sums over the rows of a panel are left in a slot of
 * that panel, for the caller to add in order. */
#ifndef OPC_NUM_GAUSS_H
#define OPC_NUM_GAUSS_H

#include "num/kernel.h"
#include "opc/mem.h"

/* ---- a Gaussian with bounded log-variance (the dynamics model) ---------------------------------
 * A network gives dim means, then dim raw log-variances; two vectors hold them softly in bounds:
 *     l1 = lmax - softplus(lmax - raw),   l = lmin + softplus(l1 - lmin). */

/* The bounded log-variances logvar[dim][16] of one panel from raw[dim][16]; raw may be logvar. */
void opc_gauss_bound(int dim, const float *lmax, const float *lmin, const float *raw, float *logvar,
                     struct opc_arena *scratch);

/* What one panel adds to sums over the batch. */
struct opc_gauss_slot {
    double loss;    /* sum over the panel's rows and dimensions, before 1 / (rows dim) */
    double squares; /* sum of (mean - y)^2 */
    /* [dim] gradient of the whole batch's loss by the bounds lmax and lmin: this panel's part. */
    float *dmax, *dmin;
};
/* One panel of  (1 / (batch dim)) sum (mean - y)^2 exp(-l) + l.  out[2 dim][16] is the network's
 * output, y[dim][16] the target, `rows` (1 to 16) of them real; d[2 dim][16] gets the gradient, 0
 * in the padding. */
void opc_gauss_nll(int dim, int rows, int batch, const float *lmax, const float *lmin,
                   const float *out, const float *y, float *d, struct opc_gauss_slot *,
                   struct opc_arena *scratch);
size_t opc_gauss_need(int dim); /* scratch of both */

/* ---- a Gaussian squashed by tanh (the policy) ---------------------------------------------------
 * A network gives dim means and dim log-deviations, clipped hard to [-20, 2]:
 *     u = mean + exp(s) eps,  a = tanh(u),
 *     log pi(a) = sum_j  -eps^2/2 - s - log(2 pi)/2 - 2 (log 2 - u - softplus(-2 u)). */

/* One panel: out[2 dim][16] and eps[dim][16] to action[dim][16], logp[16] (may be NULL) and
 * std[dim][16] (exp(s), kept for the gradient; may be NULL). eps NULL: the mode tanh(mean). */
void opc_squash(int dim, const float *out, const float *eps, float *action, float *logp, float *std,
                struct opc_arena *scratch);
/* The gradient by `out` of   weight * sum_rows (alpha log pi(a) + q . a),   where dq[dim][16] is
 * q, into d[2 dim][16]; `rows` real rows, 0 in the padding. */
void opc_squash_back(int dim, int rows, float weight, float alpha, const float *out,
                     const float *eps, const float *action, const float *std, const float *dq,
                     float *d);
size_t opc_squash_need(int dim);

#endif
