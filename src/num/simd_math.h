/* SPDX-License-Identifier: MIT */
/* num/simd_math.h - exp, log and their family on vectors (simd.h).
 *
 * Range reduction, then a minimax polynomial (Remez, relative error below 5e-9, so rounding
 * dominates). NaN in gives NaN out. */
#ifndef OPC_NUM_SIMD_MATH_H
#define OPC_NUM_SIMD_MATH_H

#include "num/simd.h"

#include <math.h>

/* e^r for |r| <= ln(2) / 2 after x = k ln 2 + r; k comes back for the caller to scale by 2^k. */
INLINE V exp_part(V x, VI *k)
{
    const V magic = splat(0x1.8p23f); /* adding it rounds to a whole number in the low bits */
    V t = fma_(x, splat(0x1.715476p+0f), magic);
    *k = (VI)t - (VI)magic;
    V n = t - magic;
    V r = fma_(n, splat(-0.693359375f), x); /* ln 2 in two parts; the first is exact in 9 bits */
    r = fma_(n, splat(0x1.bd0106p-13f), r);
    V p = fma_(splat(0x1.6a2314p-10f), r, splat(0x1.123aaep-7f));
    p = fma_(p, r, splat(0x1.5558f6p-5f));
    p = fma_(p, r, splat(0x1.555490p-3f));
    p = fma_(p, r, splat(0x1.fffffcp-2f));
    p = fma_(p, r, splat(1.0f));
    return fma_(p, r, splat(1.0f));
}

/* For arguments that cannot leave [-87, 88]: one scaling, no denormals. */
INLINE V exp_small(V x)
{
    VI k;
    V p = exp_part(x, &k);
    return (V)((VI)p + (k << 23));
}

/* e^x for any x: overflows to infinity, underflows through the denormals. */
INLINE V exp_(V x)
{
    /* Two half steps of scaling reach denormal results and the last binade. */
    V inside = larger(smaller(x, splat(89.0f)), splat(-105.0f));
    VI k;
    V p = exp_part(inside, &k);
    VI half = k >> 1;
    V scaled = p * (V)((half + 127) << 23) * (V)((k - half + 127) << 23);
    return pick(x == x, scaled, x);
}

INLINE V log_(V x)
{
    /* x = 2^k m with m in [sqrt(1/2), sqrt(2)); denormals are scaled up first. */
    VI tiny = x < 0x1p-126f;
    V y = pick(tiny, x * 0x1p24f, x);
    VU bits = (VU)y - 0x3f3504f3; /* unsigned: wraps for x < 0, whose result is dropped below */
    VI k = ((VI)bits >> 23) - (tiny & 24);
    V m = (V)((bits & 0x007fffff) + 0x3f3504f3);
    V f = m - 1.0f, s = f / (f + 2.0f), z = s * s;
    V r = fma_(splat(0x1.e340c0p-3f), z, splat(0x1.2436fep-2f));
    r = fma_(r, z, splat(0x1.999a82p-2f));
    r = fma_(r, z, splat(0x1.555554p-1f)) * z;
    V half = 0.5f * f * f;
#if defined(__AVX512F__)
    V n = (V)_mm512_cvtepi32_ps((__m512i)k);
#else
    V n = __builtin_convertvector(k, V);
#endif
    /* n ln 2 is added in two parts, the small one first; then the special arguments. */
    V low = fma_(s, half + r, n * splat(-0x1.bd0106p-13f));
    V value = fma_(n, splat(0.693359375f), f - (half - low));
    value = pick(x == splat(INFINITY), x, value);
    value = pick(x == 0.0f, splat(-INFINITY), value);
    return pick((x < 0.0f) | (x != x), splat(NAN), value);
}

INLINE V sigmoid_(V x)
{
    /* From e^-|x|, which cannot overflow, so both tails keep their relative precision. */
    V e = exp_(-magnitude(x));
    V value = pick(x < 0.0f, e, splat(1.0f)) / (1.0f + e);
    return pick(x == x, value, x);
}

INLINE V tanh_(V x)
{
    /* Near 0 an odd polynomial; beyond, 1 - 2 / (e^2|x| + 1), which would cancel near 0. */
    V a = magnitude(x), z = x * x;
    V p = fma_(splat(0x1.1974f4p-9f), z, splat(-0x1.0c1f8ep-7f));
    p = fma_(p, z, splat(0x1.639484p-6f));
    p = fma_(p, z, splat(-0x1.b9ef76p-5f));
    p = fma_(p, z, splat(0x1.11106cp-3f));
    p = fma_(p, z, splat(-0x1.555554p-2f));
    V near = fma_(p * z, x, x);
    V far = 1.0f - 2.0f / (exp_small(smaller(2.0f * a, splat(40.0f))) + 1.0f);
    V value = pick(a < 0.625f, near, far);
    value = (V)((VI)value | ((VI)x & (VI)splat(-0.0f))); /* for far, and for -0 */
    return pick(x == x, value, x);
}

INLINE V softplus_(V x)
{
    /* max(x, 0) + log(1 + e), e = e^-|x|; what 1 + e rounds away is given back to first order. */
    V e = exp_(-magnitude(x));
    V u = 1.0f + e;
    V value = larger(x, splat(0.0f)) + (log_(u) + (e - (u - 1.0f)) / u);
    return pick(x == x, value, x);
}

#endif
