/* SPDX-License-Identifier: MIT */
/* num/simd_norm.h - layer normalisation (Ba et al. 2016) of panels, forward and backward, for
 * kernel.c alone. Of each row's n features x
 *
 *     y  = (x - m) / s,   m = mean x,   s = sqrt(mean (x - m)^2 + eps)
 *     dx = (dy - mean dy - y mean (dy y)) / s
 *
 * without a trained scale or offset: the next layer's weights can do what they would do. A lane is
 * a row, so no lane meets another.
 *
 * Rounding. One chain of n additions would wait for each of them, so every sum is SUMS chains:
 * feature k is added to sum k % SUMS, in order, and at the end those are added in pairs. Products
 * in a sum are fused where the backend fuses; 1 / s is rounded before it is multiplied. */
#ifndef OPC_NUM_SIMD_NORM_H
#define OPC_NUM_SIMD_NORM_H

#include "num/simd.h"

enum { SUMS = 4 };
static const float NORM_EPS = 1e-5f; /* keeps s above 0 where all features of a row are equal */

/* Runs `body` for features k .. k+SUMS-1 at a time, with i = k % SUMS a constant in each copy, so
 * that the sums stay in registers. */
#define EACH_FEATURE(features, body)                                                               \
    do {                                                                                           \
        int first = 0;                                                                             \
        for (; first + SUMS <= (features); first += SUMS) {                                        \
            UNROLL for (int i = 0; i < SUMS; i++)                                                  \
            {                                                                                      \
                const int k = first + i;                                                           \
                body                                                                               \
            }                                                                                      \
        }                                                                                          \
        UNROLL for (int i = 0; i < SUMS; i++)                                                      \
        {                                                                                          \
            const int k = first + i;                                                               \
            if (k < (features)) {                                                                  \
                body                                                                               \
            }                                                                                      \
        }                                                                                          \
    } while (0)

/* The mean of n features from their sums. */
INLINE V mean_of(const V sum[SUMS], int n)
{
    return ((sum[0] + sum[2]) + (sum[1] + sum[3])) / splat((float)n);
}

/* One vector of rows, x[features][16], in place. The normalised values go to `normalized`, unless
 * that is NULL, and their ReLU to x; returns 1 / s. */
INLINE V normalize_rows(int features, float *x, float *normalized)
{
    V sum[SUMS] = {0}, square[SUMS] = {0};
    /* `normalized` was last used a batch ago: its lines are on their way while the sums are made.
     */
    EACH_FEATURE(features, if (normalized) __builtin_prefetch(normalized + k * PANEL, 1);
                 sum[i] += load(x + k * PANEL););
    const V mean = mean_of(sum, features);
    /* The squares of differences: the difference of mean squares would cancel. */
    EACH_FEATURE(features, const V z = load(x + k * PANEL) - mean;
                 square[i] = fma_(z, z, square[i]););
    const V inv_std = 1.0f / sqrt_(mean_of(square, features) + NORM_EPS);
    for (int k = 0; k < features; k++) {
        const V z = (load(x + k * PANEL) - mean) * inv_std;
        if (normalized)
            store(normalized + k * PANEL, z);
        store(x + k * PANEL, larger(splat(0.0f), z)); /* NaN stays NaN */
    }
    return inv_std;
}

static void layer_norm_relu(int panels, int features, float *y, size_t ys, float *normalized,
                            float *inv_std)
{
    for (int p = 0; p < panels; p++)
        for (int lane = 0; lane < PANEL; lane += VW) {
            const size_t at = (size_t)p * ys + (size_t)lane;
            const V inv = normalize_rows(features, y + at, normalized ? normalized + at : NULL);
            if (inv_std)
                store(inv_std + p * PANEL + lane, inv);
        }
}

static void back_layer_norm(int panels, int features, const float *inv_std, float *y, float *d,
                            size_t stride)
{
    for (int p = 0; p < panels; p++)
        for (int lane = 0; lane < PANEL; lane += VW) {
            /* Both arrays change their roles on the way: y has dy, and d what was normalised. */
            float *yp = y + (size_t)p * stride + lane, *dp = d + (size_t)p * stride + lane;
            V sum[SUMS] = {0}, along[SUMS] = {0};
            EACH_FEATURE(features, const V dy = load(yp + k * PANEL); sum[i] += dy;
                         along[i] = fma_(dy, load(dp + k * PANEL), along[i]););
            /* A common shift or factor of x changes no output: no part of dx is along either. */
            const V shift = mean_of(sum, features), factor = -mean_of(along, features);
            const V inv = load(inv_std + p * PANEL + lane);
            for (int k = 0; k < features; k++) {
                const V z = load(dp + k * PANEL), dy = load(yp + k * PANEL);
                store(dp + k * PANEL, fma_(z, factor, dy - shift) * inv);
                store(yp + k * PANEL, larger(splat(0.0f), z));
            }
        }
}

#undef EACH_FEATURE

#endif
