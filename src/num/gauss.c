/* SPDX-License-Identifier: MIT */
/* Losses of Gaussian networks and their gradients by hand: the negative log-likelihood of the
 * dynamics model (model/trainer.c) and the squashed Gaussian of SAC's policy (agent/sac_update.c,
 * agent/policy.c). tests/test_gauss.c checks them in double precision and by central differences.
 * Rows of padding must get the gradient 0, because the callers sum over rows. */
#include "num/gauss.h"

#include "num/vec.h"

#include <math.h>

enum { P = OPC_PANEL };

size_t opc_gauss_need(int dim)
{
    return 6 * opc_arena_need((size_t)dim * P, sizeof(float));
}

void opc_gauss_bound(int dim, const float *lmax, const float *lmin, const float *raw, float *logvar,
                     struct opc_arena *scratch)
{
    const size_t n = (size_t)dim * P, mark = scratch->used;
    /* l1 = lmax - softplus(lmax - raw), and then l = lmin + softplus(l1 - lmin). */
    float *t = opc_floats(scratch, (size_t)dim, P);
    for (int j = 0; j < dim; j++)
        for (int i = 0; i < P; i++)
            t[j * P + i] = lmax[j] - raw[j * P + i];
    opc_vec_softplus(n, t, t);
    for (int j = 0; j < dim; j++)
        for (int i = 0; i < P; i++)
            t[j * P + i] = (lmax[j] - t[j * P + i]) - lmin[j];
    opc_vec_softplus(n, t, t);
    for (int j = 0; j < dim; j++)
        for (int i = 0; i < P; i++)
            logvar[j * P + i] = lmin[j] + t[j * P + i];
    opc_arena_rewind(scratch, mark);
}

void opc_gauss_nll(int dim, int rows, int batch, const float *lmax, const float *lmin,
                   const float *out, const float *y, float *d, struct opc_gauss_slot *slot,
                   struct opc_arena *scratch)
{
    const size_t n = (size_t)dim * P, mark = scratch->used;
    const float *mean = out, *raw = out + n;
    float *above = opc_floats(scratch, (size_t)dim, P); /* sigma(lmax - raw) = d l1 / d raw */
    float *below = opc_floats(scratch, (size_t)dim, P); /* sigma(l1 - lmin) = d l / d l1 */
    float *l = opc_floats(scratch, (size_t)dim, P), *inv = opc_floats(scratch, (size_t)dim, P);
    float *t = opc_floats(scratch, (size_t)dim, P);

    /* The bounded log-variance l as in opc_gauss_bound, with the derivatives of both softplus on
     * the way. */
    for (int j = 0; j < dim; j++)
        for (int i = 0; i < P; i++)
            t[j * P + i] = lmax[j] - raw[j * P + i];
    opc_vec_sigmoid(n, t, above);
    opc_vec_softplus(n, t, t);
    for (int j = 0; j < dim; j++)
        for (int i = 0; i < P; i++)
            t[j * P + i] = (lmax[j] - t[j * P + i]) - lmin[j];
    opc_vec_sigmoid(n, t, below);
    opc_vec_softplus(n, t, l);
    for (int j = 0; j < dim; j++)
        for (int i = 0; i < P; i++) {
            l[j * P + i] += lmin[j];
            t[j * P + i] = -l[j * P + i];
        }
    /* inv = exp(-l), the precision */
    opc_vec_exp(n, t, inv);

    /* The loss (mean - y)^2 exp(-l) + l and its gradient: by the mean directly, by raw through both
     * bounds, and by the bounds: dl / dlmax = below (1 - above), dl / dlmin = 1 - below. */
    const float scale = 1.0f / ((float)batch * (float)dim);
    double loss = 0.0, squares = 0.0;
    for (int j = 0; j < dim; j++) {
        float dmax = 0.0f, dmin = 0.0f;
        for (int i = 0; i < P; i++) {
            const int k = j * P + i;
            const float e = mean[k] - y[k], weighted = e * inv[k];
            const float by_mean = 2.0f * weighted * scale, by_l = (1.0f - e * weighted) * scale;
            const bool real = i < rows;
            d[k] = real ? by_mean : 0.0f;
            d[n + (size_t)k] = real ? by_l * below[k] * above[k] : 0.0f;
            if (real) {
                dmax += by_l * below[k] * (1.0f - above[k]);
                dmin += by_l * (1.0f - below[k]);
                loss += (double)(e * weighted + l[k]);
                squares += (double)(e * e);
            }
        }
        slot->dmax[j] = dmax;
        slot->dmin[j] = dmin;
    }
    slot->loss = loss;
    slot->squares = squares;
    opc_arena_rewind(scratch, mark);
}

/* ---- the squashed Gaussian ------------------------------------------------------------------- */

static const float LOG_STD_MIN = -20.0f, LOG_STD_MAX = 2.0f; /* of the log-deviation */

size_t opc_squash_need(int dim)
{
    return 3 * opc_arena_need((size_t)dim * P, sizeof(float));
}

static float clip_log_std(float s)
{
    return s < LOG_STD_MIN ? LOG_STD_MIN : s > LOG_STD_MAX ? LOG_STD_MAX : s; /* NaN stays */
}

void opc_squash(int dim, const float *out, const float *eps, float *action, float *logp, float *std,
                struct opc_arena *scratch)
{
    const size_t n = (size_t)dim * P, mark = scratch->used;
    const float *mean = out, *raw = out + n;
    /* The mode. */
    if (!eps) {
        opc_vec_tanh(n, mean, action);
        return;
    }
    /* u = mean + exp(s) eps with s clipped, and soft = -2 u for log pi. */
    float *s = opc_floats(scratch, (size_t)dim, P), *u = opc_floats(scratch, (size_t)dim, P);
    float *soft = opc_floats(scratch, (size_t)dim, P);
    for (size_t k = 0; k < n; k++)
        s[k] = clip_log_std(raw[k]);
    opc_vec_exp(n, s, u);
    for (size_t k = 0; k < n; k++) {
        if (std)
            std[k] = u[k];
        u[k] = mean[k] + u[k] * eps[k];
        soft[k] = -2.0f * u[k];
    }
    /* log pi(a) sums over the entries of a; log(1 - tanh^2 u) is written with softplus, which does
     * not underflow for large |u|. */
    opc_vec_tanh(n, u, action);
    if (logp) {
        opc_vec_softplus(n, soft, soft);
        const float half_log_2pi = 0.918938533f, log_2 = 0.693147181f;
        for (int i = 0; i < P; i++)
            logp[i] = 0.0f;
        for (int j = 0; j < dim; j++)
            for (int i = 0; i < P; i++) {
                const int k = j * P + i;
                logp[i] +=
                    -0.5f * eps[k] * eps[k] - s[k] - half_log_2pi - 2.0f * (log_2 - u[k] - soft[k]);
            }
    }
    opc_arena_rewind(scratch, mark);
}

void opc_squash_back(int dim, int rows, float weight, float alpha, const float *out,
                     const float *eps, const float *action, const float *std, const float *dq,
                     float *d)
{
    const float *raw = out + dim * P;
    for (int j = 0; j < dim; j++)
        for (int i = 0; i < P; i++) {
            const int k = j * P + i;
            const float a = action[k];
            /* d log pi / d u = 2 a at fixed eps, d a / d u = 1 - a^2 */
            const float by_u = 2.0f * alpha * a + dq[k] * (1.0f - a * a);
            const float by_s = by_u * std[k] * eps[k] - alpha;
            /* Where the clipping of the log-deviation acts, no gradient passes. */
            const bool free = raw[k] >= LOG_STD_MIN && raw[k] <= LOG_STD_MAX;
            d[k] = i < rows ? weight * by_u : 0.0f;
            d[dim * P + k] = i < rows && free ? weight * by_s : 0.0f;
        }
}
