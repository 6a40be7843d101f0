/* SPDX-License-Identifier: MIT */
/* num/simd_random.h - random words and normal variates on vectors, for kernel.c alone.
 *
 * num/normal.c decides which words of which stream a variate is made of; here a lane is a stream or
 * a pair of words, and no lane meets another. Recorded results depend on every bit: a change must
 * keep the order of operations. tests/test_normal.c compares with a plain loop. */
#ifndef OPC_NUM_SIMD_RANDOM_H
#define OPC_NUM_SIMD_RANDOM_H

#include "num/simd_math.h"

/* ---- random words ----------------------------------------------------------------------------
 * Philox4x32-10 as in base/rng.c, VW counters at a time. */

/* The high and the low 32 bits of each product a * m. AVX2 multiplies 32 x 32 to 64 bits in even
 * lanes only, so odd lanes are shifted down and the halves are blended together. */
INLINE void multiply(VU a, uint32_t m, VU *high, VU *low)
{
#if defined(__AVX2__) && !defined(__AVX512F__)
    const __m256i f = _mm256_set1_epi32((int)m), x = (__m256i)a;
    const __m256i even = _mm256_mul_epu32(x, f);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), f);
    *high = (VU)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
    *low = (VU)_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
#else
    UNROLL
    for (int i = 0; i < VW; i++) {
        const uint64_t product = (uint64_t)a[i] * m;
        (*high)[i] = (uint32_t)(product >> 32);
        (*low)[i] = (uint32_t)product;
    }
#endif
}

/* VW counters at a time through ten rounds; the constants are those of Salmon et al. (2011). */
static void philox(const uint32_t counter[4][PANEL], const uint32_t key[2], uint32_t out[4][PANEL])
{
    for (int at = 0; at < PANEL; at += VW) {
        VU c[4];
        UNROLL
        for (int i = 0; i < 4; i++)
            c[i] = *(const VU *)(counter[i] + at);
        uint32_t k0 = key[0], k1 = key[1];
        for (int round = 0; round < 10; round++) {
            VU high0 = {0}, low0 = {0}, high1 = {0}, low1 = {0};
            multiply(c[0], 0xD2511F53u, &high0, &low0);
            multiply(c[2], 0xCD9E8D57u, &high1, &low1);
            c[0] = high1 ^ c[1] ^ k0;
            c[1] = low1;
            c[2] = high0 ^ c[3] ^ k1;
            c[3] = low0;
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        UNROLL
        for (int i = 0; i < 4; i++)
            *(VU *)(out[i] + at) = c[i];
    }
}

/* ---- normal variates -------------------------------------------------------------------------
 * Box-Muller on pairs of words. The first word makes the radius: u = (2 (w >> 1) + 1) / 2^32, never
 * 0, r = sqrt(-2 log u) up to 6.66. The second makes the angle: its two top bits choose the
 * quarter, the other thirty the place in it, so that sine and cosine need no range reduction. */
INLINE void normal_pairs(VU radius, VU angle, V *z0, V *z1)
{
    /* The radius: r = sqrt(-2 log u), where rounding may leave -2 log u just below 0. */
    V u = fma_(__builtin_convertvector((VI)(radius >> 1), V), splat(0x1p-31f), splat(0x1p-32f));
    V r = sqrt_(larger(-2.0f * log_(u), splat(0.0f)));

    /* Sine and cosine of f quarter turns, |f| <= 1/2, by polynomials in f^2. */
    V f = __builtin_convertvector((VI)(angle << 2), V) * 0x1p-32f; /* in [-1/2, 1/2) quarters */
    V z = f * f;
    V s = fma_(splat(-0x1.2d9bb6p-8f), z, splat(0x1.465ec6p-4f));
    s = fma_(s, z, splat(-0x1.4abbbap-1f));
    s = fma_(s, z, splat(0x1.921fb6p+0f)) * f;
    V c = fma_(splat(0x1.d9f7bcp-11f), z, splat(-0x1.55c664p-6f));
    c = fma_(c, z, splat(0x1.03c1dep-2f));
    c = fma_(c, z, splat(-0x1.3bd3ccp+0f));
    c = fma_(c, z, splat(1.0f));

    /* Odd quarters exchange sine and cosine; the top bit turns the pair by half a circle. */
    VI odd = -(VI)(angle >> 30 & 1);
    VI back = (VI)(angle & 0x80000000u); /* quarters 2 and 3 are 0 and 1 turned by half */
    V cosine = pick(odd, -s, c), sine = pick(odd, c, s);
    *z0 = r * (V)((VI)cosine ^ back);
    *z1 = r * (V)((VI)sine ^ back);
}

/* The words of a pair lie next to each other; they are taken apart so that vectors hold all radii
 * and all angles. */
static void normals(size_t n, const uint32_t *words, float *z)
{
    for (size_t i = 0; i < n; i += 2 * VW) {
        const size_t pairs = n - i < 2 * VW ? (n - i) / 2 : VW;
        uint32_t radius[VW] = {0}, angle[VW] = {0};
        float z0[VW], z1[VW];
        for (size_t j = 0; j < pairs; j++) {
            radius[j] = words[i + 2 * j];
            angle[j] = words[i + 2 * j + 1];
        }
        V a, b;
        normal_pairs(*(VU *)radius, *(VU *)angle, &a, &b);
        store(z0, a);
        store(z1, b);
        for (size_t j = 0; j < pairs; j++) {
            z[i + 2 * j] = z0[j];
            z[i + 2 * j + 1] = z1[j];
        }
    }
}

/* The same for words that lie apart already, as those of 16 streams do: a vector of radii and a
 * vector of angles make a vector of first and one of second variates. */
static void normals_apart(const uint32_t radius[PANEL], const uint32_t angle[PANEL], float *z0,
                          float *z1)
{
    for (int at = 0; at < PANEL; at += VW) {
        V a, b;
        normal_pairs(*(const VU *)(radius + at), *(const VU *)(angle + at), &a, &b);
        store(z0 + at, a);
        store(z1 + at, b);
    }
}

/* ---- a Gaussian with bounded log-variance ----------------------------------------------------
 * What opc_gauss_bound, an exponential and a multiply-add would do in passes over a panel, element
 * by element while it is in registers. Nothing is fused: the passes round each product, too. */
static void draw_bounded(int dim, const float *upper, const float *lower, const float *raw,
                         const float *eps, float *mean)
{
    for (int j = 0; j < dim; j++) {
        const V lmax = splat(upper[j]), lmin = splat(lower[j]);
        for (int i = 0; i < PANEL; i += VW) {
            const int k = j * PANEL + i;
            V l = (lmax - softplus_(lmax - load(raw + k))) - lmin;
            V std = exp_((lmin + softplus_(l)) * 0.5f);
            store(mean + k, load(mean + k) + std * load(eps + k));
        }
    }
}

#endif
