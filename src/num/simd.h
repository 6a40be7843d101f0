/* SPDX-License-Identifier: MIT */
/* num/simd.h - the vector type of the instruction set a file is compiled for, and its operations.
 *
 * It is for kernel.c alone, which is compiled once per instruction set; so the names are as short
 * as those of operators. */
#ifndef OPC_NUM_SIMD_H
#define OPC_NUM_SIMD_H

#include "num/kernel.h"

#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 32")

/* VW: floats in a vector. WIDE: vectors side by side in the big tile, chosen so that 6 x WIDE sums,
 * WIDE inputs and one weight fit the registers. Of the 32 registers of AVX-512 a tile of 6 x 4
 * takes 29 and runs at the peak; 6 x 2 loads a weight for two multiply-adds only and stays below 80
 * %. FUSED: a * b + c rounds once. */
#if defined(__AVX512F__)
#include <immintrin.h>
#define WIDE 4
enum { VW = 16, FUSED = 1 };
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define WIDE 2
enum { VW = 8, FUSED = 1 };
#elif defined(__AVX__)
#include <immintrin.h>
#define WIDE 2
enum { VW = 8, FUSED = 0 };
#elif defined(__aarch64__)
#include <arm_neon.h>
#define WIDE 4
enum { VW = 4, FUSED = 1 };
#else
#if defined(__SSE2__)
#include <emmintrin.h>
#endif
#define WIDE 2
enum { VW = 4, FUSED = 0 };
#endif

typedef float V __attribute__((vector_size(VW * 4), aligned(4)));
typedef int32_t VI __attribute__((vector_size(VW * 4), aligned(4)));
typedef uint32_t VU __attribute__((vector_size(VW * 4), aligned(4)));
typedef float V8 __attribute__((vector_size(32), aligned(4)));

enum { PANEL = OPC_PANEL, NV = PANEL / VW }; /* NV vectors make one panel row */

/* Numbers too small to be normal count as 0 from begin to end, as operands and as results, on this
 * thread. On x86 a multiply-add with one of them takes a hundred times as long as any other, and
 * units that weight decay has put to sleep are full of them. Other processors need no such thing.
 * What lies between must be calls of functions that are not inlined: the compiler does not know
 * that the arithmetic depends on it. */
INLINE unsigned begin_flush(void)
{
#if defined(__SSE2__)
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040); /* flush to zero, denormals are zero */
    return before;
#else
    return 0;
#endif
}

INLINE void end_flush(unsigned before)
{
#if defined(__SSE2__)
    _mm_setcsr(before);
#else
    (void)before;
#endif
}

/* All lanes equal to f. */
INLINE V splat(float f)
{
#if defined(__AVX512F__)
    return (V)_mm512_set1_ps(f);
#elif defined(__AVX__)
    return (V)_mm256_set1_ps(f);
#elif defined(__SSE2__)
    return (V)_mm_set1_ps(f);
#elif defined(__aarch64__)
    return (V)vdupq_n_f32(f);
#else
    V v = {0};
    UNROLL
    for (int i = 0; i < VW; i++)
        v[i] = f;
    return v;
#endif
}

/* a * b + c: written out, because under -ffp-contract=off the compiler fuses nothing. */
INLINE V fma_(V a, V b, V c)
{
#if defined(__AVX512F__)
    return (V)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__) && defined(__FMA__)
    return (V)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__)
    return (V)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}

INLINE V load(const float *p)
{
    return *(const V *)p;
}

INLINE void store(float *p, V v)
{
    *(V *)p = v;
}

/* Lane by lane: `yes` where the mask is set, else `no`. */
INLINE V pick(VI mask, V yes, V no)
{
    return (V)((mask & (VI)yes) | (~mask & (VI)no));
}

/* The smaller of both, lane by lane; b where either is NaN, as on x86. */
INLINE V smaller(V a, V b)
{
#if defined(__AVX512F__)
    return (V)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(__AVX__)
    return (V)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
    return (V)_mm_min_ps((__m128)a, (__m128)b);
#else
    return pick(a < b, a, b);
#endif
}

/* The larger of both; b where either is NaN. */
INLINE V larger(V a, V b)
{
#if defined(__AVX512F__)
    return (V)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX__)
    return (V)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
    return (V)_mm_max_ps((__m128)a, (__m128)b);
#else
    return pick(a > b, a, b);
#endif
}

/* Correctly rounded in every set, so the bits are those of sqrtf. */
INLINE V sqrt_(V x)
{
#if defined(__AVX512F__)
    return (V)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX__)
    return (V)_mm256_sqrt_ps((__m256)x);
#elif defined(__SSE2__)
    return (V)_mm_sqrt_ps((__m128)x);
#elif defined(__aarch64__)
    return (V)vsqrtq_f32((float32x4_t)x);
#else
    V v = {0};
    UNROLL
    for (int i = 0; i < VW; i++)
        v[i] = __builtin_sqrtf(x[i]);
    return v;
#endif
}

/* |x|: clears the sign bits. */
INLINE V magnitude(V x)
{
    return (V)((VI)x & 0x7fffffff);
}

#endif
