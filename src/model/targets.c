/* SPDX-License-Identifier: MIT */
/* Unit-variance targets (model.normalize_targets): the networks learn (y - m) / d, where m_j and
 * d_j are mean and standard deviation of target j over the training rows, and predict m + d mu with
 * variance d^2 exp(l). fit.c calls this at the start of a fit; ensemble.c and jacobian.c undo the
 * scale. A change must keep this: between two fits a model's predictions do not change when m and d
 * do, up to rounding, so that a fit goes on where the last one ended. */
#include "model/ensemble_private.h"

#include <math.h>
#include <string.h>

/* Adam's moments of n parameters whose gradients become `by` times as large. */
static void scale_moments(struct opc_adam *adam, size_t at, size_t n, double by)
{
    for (size_t i = at; i < at + n; i++) {
        adam->m[i] = (float)((double)adam->m[i] * by);
        adam->v[i] = (float)((double)adam->v[i] * by * by);
    }
}

/* Output j of every member, from the scale (m0, d0) to (m1, d1):
 *     mean:          w <- w d0 / d1,   b <- (b d0 + m0 - m1) / d1
 *     log-variance:  b and learned bounds += 2 log(d0 / d1), because variances are d^2 exp(l).
 * Gradients by w and b of the mean become d1 / d0 times as large, and Adam's moments with them. */
static void move_output(struct opc_ensemble *ensemble, int j, double m0, double d0, double m1,
                        double d1)
{
    const struct opc_mlp *net = ensemble->net;
    const struct opc_layer *last = &net->layer[net->shape.layers - 1];
    const size_t ld = (size_t)last->ld;
    const double shift = 2.0 * log(d0 / d1);
    for (int k = 0; k < ensemble->base.members; k++) {
        const size_t base = (size_t)k * net->each, w = base + last->weight + (size_t)j * ld,
                     b = base + last->bias + (size_t)j, variance = b + (size_t)ensemble->dim;
        for (size_t i = w; i < w + ld; i++) /* the padding is 0 and stays 0 */
            net->param[i] = (float)((double)net->param[i] * d0 / d1);
        net->param[b] = (float)(((double)net->param[b] * d0 + m0 - m1) / d1);
        net->param[variance] = (float)((double)net->param[variance] + shift);
        scale_moments(ensemble->adam, w, ld, d1 / d0);
        scale_moments(ensemble->adam, b, 1, d1 / d0);
    }
    /* Fixed bounds are settings in units of d, and stay. */
    for (int i = 0; ensemble->config.bounds != OPC_BOUNDS_FIXED && i < 2 * ensemble->sets; i++) {
        float *bound = &ensemble->bound[i * ensemble->dim + j];
        *bound = (float)((double)*bound + shift);
    }
}

void opc_ensemble_scale_targets(struct opc_ensemble *ensemble, int n, const float *y,
                                const int *index, bool warm)
{
    struct opc_scaler *now = ensemble->target, *before = ensemble->target_before;
    const size_t bytes = (size_t)ensemble->dim * sizeof(float);
    memcpy(before->mean, now->mean, bytes);
    memcpy(before->inverse, now->inverse, bytes);
    opc_scaler_fit(now, n, y, (size_t)ensemble->dim, index, false);
    /* New weights are drawn for targets of unit variance, so they stay as they are. */
    for (int j = 0; warm && j < ensemble->dim; j++)
        move_output(ensemble, j, (double)before->mean[j], opc_scaler_std(before, j),
                    (double)now->mean[j], opc_scaler_std(now, j));
}
