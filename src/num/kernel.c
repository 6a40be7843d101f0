/* SPDX-License-Identifier: MIT */
/* The kernels of num/kernel.h. One source for all instruction sets: CMake compiles it with
 * -DOPC_ISA=avx2 and so on, and each compilation defines one table, opc_kernels_avx2 and so on.
 * Callers reach it through opc_kernels(); nothing here may run before backend.c has asked the
 * processor what it supports.
 *
 * A change must keep the rounding that kernel.h promises: every sum in its order, no reassociation,
 * so that a row has the same bits in any batch. tests/test_gemm.c compares each backend with a
 * plain loop, bit for bit. Speed depends on the sums staying in registers: compare `opc bench gemm`
 * before and after a change. */
#include "num/kernel.h"
#include "num/simd.h"
#include "num/simd_math.h"
#include "num/simd_norm.h"
#include "num/simd_random.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define QUOTE_(a) #a
#define QUOTE(a) QUOTE_(a)

/* Stores the first n floats of v. By value and out of line: taking the address of a sum would move
 * it out of its register. */
static __attribute__((noinline)) void store_some(float *p, V v, int n)
{
    if (n > 0)
        memcpy(p, &v, (size_t)n * sizeof *p);
}

/* ---- functions of every element ----------------------------------------------------------------
 * The last, partial vector is padded with zeros: an element's bits do not depend on its place. */

#define ELEMENTWISE(name, fn)                                                                      \
    static void name(size_t n, const float *x, float *y)                                           \
    {                                                                                              \
        size_t i = 0;                                                                              \
        for (; i + VW <= n; i += VW)                                                               \
            store(y + i, fn(load(x + i)));                                                         \
        if (i < n) {                                                                               \
            float last[VW] = {0};                                                                  \
            memcpy(last, x + i, (n - i) * sizeof *x);                                              \
            store(last, fn(load(last)));                                                           \
            memcpy(y + i, last, (n - i) * sizeof *y);                                              \
        }                                                                                          \
    }

ELEMENTWISE(vec_exp, exp_)
ELEMENTWISE(vec_log, log_)
ELEMENTWISE(vec_tanh, tanh_)
ELEMENTWISE(vec_sigmoid, sigmoid_)
ELEMENTWISE(vec_softplus, softplus_)

/* ---- tiles -----------------------------------------------------------------------------------
 * All three products of a layer are the same tile: MR x C vectors of sums, and in each step of the
 * chain C vectors of one operand meet MR scalars of the other:
 *
 *     sum[r][c] = fma(scalar[r * row], vector[c], sum[r][c])
 *
 * forward:      scalars W[o+r][k],     vectors x[k],     chain over k
 * back_input:   scalars W[o][k+r],     vectors dy[o],    chain over o
 * back_weight:  scalars dy[row][o+r],  vectors xt[row],  chain over rows
 *
 * Vector c lies in panel c / NV, `apart` floats from one to the next, at place c % NV (in xt, 16
 * features are such a panel). MR and C are constants, so that the sums live in registers.
 *
 * ahead: scalars this many floats further on are prefetched, a line of each row in 16 steps; 0:
 * none are. The processor does not see by itself where the next tile's rows of W are, and an
 * ensemble's weights are more than its second-level cache holds. */
#define TILE(MR, C)                                                                                \
    INLINE void tile_##MR##_##C(int steps, const float *scalar, ptrdiff_t row, ptrdiff_t next,     \
                                const float *vector, size_t apart, ptrdiff_t ahead, V sum[MR][C])  \
    {                                                                                              \
        for (int k = 0; k < steps; k++) {                                                          \
            if (ahead && k % PANEL == 0)                                                           \
                UNROLL for (int r = 0; r < MR; r++) __builtin_prefetch(scalar + ahead + r * row);  \
            V v[C];                                                                                \
            UNROLL for (int c = 0; c < C; c++) v[c] =                                              \
                load(vector + (size_t)(c / NV) * apart + c % NV * VW);                             \
            UNROLL for (int r = 0; r < MR; r++)                                                    \
            {                                                                                      \
                V s = splat(scalar[r * row]);                                                      \
                UNROLL for (int c = 0; c < C; c++) sum[r][c] = fma_(s, v[c], sum[r][c]);           \
            }                                                                                      \
            scalar += next;                                                                        \
            vector += PANEL;                                                                       \
        }                                                                                          \
    }

/* Swish and its slope for four vectors, a step of all before the next step of any: the chain is
 * long, and so the processor always finds a free operation. The sigmoid has nothing in it that a
 * network could not notice: e^-x enters as 1 / (1 + e^-x), where a fifth-degree polynomial and ln 2
 * in one piece leave x times it within 4 ULP for |x| < 10 and 7 up to 87, where it becomes flat. */
enum { TOGETHER = 4 };
INLINE void swish(V x[TOGETHER], V slope[TOGETHER])
{
#define EACH UNROLL for (int i = 0; i < TOGETHER; i++)
    const V magic = splat(0x1.8p23f);
    /* Clamp, then -x = k ln 2 - r with a whole k: adding `magic` rounds to a whole number. */
    V t[TOGETHER], k[TOGETHER], r[TOGETHER], p[TOGETHER], s[TOGETHER];
    EACH t[i] = larger(smaller(x[i], splat(87.0f)), splat(-88.0f));
    EACH k[i] = fma_(t[i], splat(-0x1.715476p+0f), magic);
    if (FUSED) {
        EACH r[i] = fma_(k[i] - magic, splat(0x1.62e430p-1f), t[i]); /* -x = k ln 2 - r */
    } else { /* k ln 2 would round by |x| / 2 ULP of 1; in two parts, as in exp_part, it does not */
        EACH r[i] = fma_(k[i] - magic, splat(0.693359375f), t[i]);
        EACH r[i] = fma_(k[i] - magic, splat(-0x1.bd0106p-13f), r[i]);
    }
    /* e^-r by its polynomial, then times 2^k by adding k to the exponent. */
    EACH p[i] = fma_(splat(-0x1.1061ecp-7f), r[i], splat(0x1.572b42p-5f));
    EACH p[i] = fma_(p[i], r[i], splat(-0x1.5557b2p-3f));
    EACH p[i] = fma_(p[i], r[i], splat(0x1.fffdfap-2f));
    EACH p[i] = fma_(p[i], r[i], splat(-1.0f));
    EACH p[i] = fma_(p[i], r[i], splat(1.0f));
    EACH p[i] = (V)((VI)p[i] + ((VI)k[i] << 23)); /* the magic number has no bits that low */
    /* y = x s with s the sigmoid, and y' = s + y (1 - s). */
    EACH s[i] = 1.0f / (1.0f + p[i]);
    EACH x[i] = x[i] * s[i];
    EACH slope[i] = fma_(x[i], 1.0f - s[i], s[i]);
#undef EACH
}

/* d times the derivative of the layer below's activation, from what that layer kept: ReLU' and
 * tanh' from its outputs, which saves the sums before activation; swish' from its stored slopes. */
INLINE V activation_backward(enum opc_activation activation, V d, const float *below)
{
    if (activation == OPC_ACTIVATION_RELU)
        return pick(load(below) > 0.0f, d, splat(0.0f));
    if (activation == OPC_ACTIVATION_TANH) {
        V y = load(below);
        return d * fma_(-y, y, splat(1.0f));
    }
    if (activation == OPC_ACTIVATION_SWISH)
        return d * load(below);
    return d;
}

/* The arguments of a product, handed to each of its tiles. */
struct forward_job {
    int in, ld;
    enum opc_activation activation;
    const float *w, *bias, *x;
    float *y, *slope;
    size_t xs, ys;
};

struct back_job {
    int out, ld;
    enum opc_activation activation;
    const float *w, *dy, *below;
    float *dx;
    size_t dys, dxs;
};

struct weight_job {
    int rows, in, ld;
    const float *xt, *dy;
    float *dw;
    size_t group, dys;
};

/* Where vector c of row r of a tile lies, from the tile's first panel and lane on. */
#define PLACE(r, c, stride) ((size_t)((c) / NV) * (stride) + (size_t)((r)*PANEL + (c) % NV * VW))

/* Adds the bias to the sums of a tile and stores `value`, an expression in z. */
#define FINISH(MR, C, value)                                                                       \
    UNROLL for (int r = 0; r < MR; r++)                                                            \
    {                                                                                              \
        const V bias = splat(j->bias[o + r]);                                                      \
        UNROLL for (int c = 0; c < C; c++)                                                         \
        {                                                                                          \
            V z = sum[r][c] + bias;                                                                \
            store(y + PLACE(r, c, j->ys), value);                                                  \
        }                                                                                          \
    }

/* The same for swish, TOGETHER vectors at a time, with the slopes for the backward pass. */
#define FINISH_SWISH(MR, C)                                                                        \
    UNROLL for (int i = 0; i < MR * C; i += TOGETHER)                                              \
    {                                                                                              \
        V z[TOGETHER], slope[TOGETHER];                                                            \
        UNROLL for (int k = 0; k < TOGETHER; k++)                                                  \
        {                                                                                          \
            const int v = i + k < MR * C ? i + k : i; /* past the end: one of them again */        \
            z[k] = sum[v / C][v % C] + splat(j->bias[o + v / C]);                                  \
        }                                                                                          \
        swish(z, slope);                                                                           \
        UNROLL for (int k = 0; k < TOGETHER; k++)                                                  \
        {                                                                                          \
            const int v = i + k < MR * C ? i + k : i;                                              \
            store(y + PLACE(v / C, v % C, j->ys), z[k]);                                           \
            if (j->slope)                                                                          \
                store(j->slope + at + PLACE(v / C, v % C, j->ys), slope[k]);                       \
        }                                                                                          \
    }

/* One tile of the forward pass and one of the backward pass: rows o .. o+MR-1 (k .. k+MR-1) of the
 * result, and C vectors from vector q on. */
#define FORWARD_AND_BACK(MR, C)                                                                    \
    static void forward_##MR##_##C(const struct forward_job *j, int o, int q)                      \
    {                                                                                              \
        const float *x = j->x + (size_t)(q / NV) * j->xs + q % NV * VW;                            \
        const size_t at = (size_t)(q / NV) * j->ys + (size_t)(o * PANEL + q % NV * VW);            \
        float *y = j->y + at;                                                                      \
        V sum[MR][C] = {0};                                                                        \
        /* The first panels bring W into the cache, the others find it there. */                   \
        const ptrdiff_t ahead = q == 0 ? (ptrdiff_t)MR * j->ld : 0;                                \
        tile_##MR##_##C(j->in, j->w + (ptrdiff_t)o * j->ld, j->ld, 1, x, j->xs, ahead, sum);       \
        switch (j->activation) {                                                                   \
        case OPC_ACTIVATION_LINEAR: FINISH(MR, C, z) break;                                        \
        case OPC_ACTIVATION_RELU: FINISH(MR, C, larger(splat(0.0f), z)) break; /* NaN stays NaN */ \
        case OPC_ACTIVATION_TANH: FINISH(MR, C, tanh_(z)) break;                                   \
        case OPC_ACTIVATION_SWISH: FINISH_SWISH(MR, C) break;                                      \
        }                                                                                          \
    }                                                                                              \
    static void back_##MR##_##C(const struct back_job *j, int k, int q)                            \
    {                                                                                              \
        const float *dy = j->dy + (size_t)(q / NV) * j->dys + q % NV * VW;                         \
        const size_t at = (size_t)(q / NV) * j->dxs + (size_t)(k * PANEL + q % NV * VW);           \
        V sum[MR][C] = {0};                                                                        \
        tile_##MR##_##C(j->out, j->w + k, 1, j->ld, dy, j->dys, 0, sum);                           \
        UNROLL for (int r = 0; r < MR; r++)                                                        \
        {                                                                                          \
            UNROLL for (int c = 0; c < C; c++)                                                     \
            {                                                                                      \
                const size_t here = at + PLACE(r, c, j->dxs);                                      \
                store(j->dx + here,                                                                \
                      activation_backward(j->activation, sum[r][c], j->below + here));             \
            }                                                                                      \
        }                                                                                          \
    }

/* One tile of the weight gradient: outputs o .. o+MR-1, C vectors of inputs from vector q on, panel
 * after panel of rows. The next panel of dy is too far away for the hardware to guess it. */
#define WEIGHT(MR, C)                                                                              \
    static void weight_##MR##_##C(const struct weight_job *j, int o, int q)                        \
    {                                                                                              \
        const float *xt = j->xt + (size_t)(q / NV) * j->group + q % NV * VW;                       \
        const float *dy = j->dy + (size_t)o * PANEL;                                               \
        V sum[MR][C] = {0};                                                                        \
        int left = j->rows;                                                                        \
        for (; left >= PANEL; left -= PANEL) {                                                     \
            UNROLL for (int r = 0; r < MR; r++) __builtin_prefetch(dy + j->dys + r * PANEL);       \
            tile_##MR##_##C(PANEL, dy, PANEL, 1, xt, j->group, 0, sum);                            \
            dy += j->dys;                                                                          \
            xt += PANEL * PANEL;                                                                   \
        }                                                                                          \
        tile_##MR##_##C(left, dy, PANEL, 1, xt, j->group, 0, sum);                                 \
        UNROLL for (int r = 0; r < MR; r++)                                                        \
        {                                                                                          \
            float *dw = j->dw + (ptrdiff_t)(o + r) * j->ld + q * VW;                               \
            UNROLL for (int c = 0; c < C; c++)                                                     \
            {                                                                                      \
                const int remaining = j->in - (q + c) * VW;                                        \
                if (remaining >= VW)                                                               \
                    store(dw + c * VW, sum[r][c]);                                                 \
                else                                                                               \
                    store_some(dw + c * VW, sum[r][c], remaining);                                 \
            }                                                                                      \
        }                                                                                          \
    }

/* The tiles there are. Where the big tile is four vectors wide, tall tiles of three and of two end
 * what does not divide by four; else one vector does. */
/* clang-format off */
#define TILES(kind)                                                                                \
    kind(6, WIDE) kind(5, WIDE) kind(4, WIDE) kind(3, 4) kind(2, 4) kind(1, 8)                     \
    kind(6, 1)    kind(5, 1)    kind(4, 1)    kind(3, 1) kind(2, 1) kind(1, 1)
TILES(TILE)
TILES(FORWARD_AND_BACK)
TILES(WEIGHT)

#if WIDE == 4
#define MIDDLE_TILES(kind) kind(6, 3) kind(5, 3) kind(4, 3) kind(6, 2) kind(5, 2) kind(4, 2)
MIDDLE_TILES(TILE)
MIDDLE_TILES(FORWARD_AND_BACK)
MIDDLE_TILES(WEIGHT)
#define TALL(kind, MR) {kind##_##MR##_WIDE, kind##_##MR##_1, kind##_##MR##_2, kind##_##MR##_3}
#else
#define TALL(kind, MR) {kind##_##MR##_WIDE, kind##_##MR##_1}
#endif

/* [MR - 1][0]: the wide tile; [MR - 1][c]: the one of c vectors. */
#define ROWS(kind)                                                                                 \
    {{kind##_1_8, kind##_1_1}, {kind##_2_4, kind##_2_1}, {kind##_3_4, kind##_3_1},                 \
     TALL(kind, 4), TALL(kind, 5), TALL(kind, 6)}
/* clang-format on */

static const int TAKES[6] = {8, 4, 4, WIDE, WIDE, WIDE}; /* vectors in the wide tile */

/* How many of `left` rows the next tile takes: sixes, ended by fives and fours rather than by a
 * thin tile, whose few sums could not hide the latency of the multiply-add. */
INLINE int height(int left)
{
    static const int8_t last[14] = {0, 1, 2, 3, 4, 5, 6, 4, 4, 5, 5, 6, 6, 5};
    return left >= 14 ? 6 : last[left];
}

/* How many of `left` vectors the next tile of MR rows takes. Tall tiles of four end in threes
 * rather than in a narrow tile, for the same reason. */
INLINE int width(int mr, int left)
{
    static const int8_t last[10] = {0, 1, 2, 3, 4, 3, 3, 4, 4, 3};
    if (WIDE == 4 && mr > 3)
        return left >= 10 ? 4 : last[left];
    return left >= TAKES[mr - 1] ? TAKES[mr - 1] : 1;
}

/* Covers `rows` times `vectors` with tiles. Tall tiles run with the vectors in the outer loop, so
 * that one panel stays in the first-level cache; the last one to three rows, if they cannot join a
 * taller tile, take several panels at once. */
#define COVER(kind, job, rows, vectors)                                                            \
    do {                                                                                           \
        static void (*const tile[6][4])(const struct kind##_job *, int, int) = ROWS(kind);         \
        const int all = (rows), thin = all > 6 ? (all == 7 ? 3 : 0) : all > 3 ? 0 : all;           \
        for (int q = 0, c; all > thin && q < (vectors); q += c) {                                  \
            c = width(6, (vectors)-q);                                                             \
            for (int at = 0, mr; at < all - thin; at += mr) {                                      \
                mr = height(all - at);                                                             \
                tile[mr - 1][c % WIDE](job, at, q);                                                \
            }                                                                                      \
        }                                                                                          \
        for (int q = 0, c; thin && q < (vectors); q += c) {                                        \
            c = width(thin, (vectors)-q);                                                          \
            tile[thin - 1][c == 1](job, all - thin, q);                                            \
        }                                                                                          \
    } while (0)

static void forward(int panels, int in, int out, const float *w, int ld, const float *bias,
                    const float *x, size_t xs, enum opc_activation activation, float *y, size_t ys,
                    float *slope)
{
    const struct forward_job job = {in, ld, activation, w, bias, x, y, slope, xs, ys};
    const unsigned before = begin_flush();
    COVER(forward, &job, out, panels * NV);
    end_flush(before);
}

static void back_input(int panels, int in, int out, const float *w, int ld, const float *dy,
                       size_t dys, enum opc_activation activation, const float *below, float *dx,
                       size_t dxs)
{
    const struct back_job job = {
        out, ld, activation, w, dy, activation == OPC_ACTIVATION_LINEAR ? dx : below, dx, dys, dxs};
    const unsigned before = begin_flush();
    COVER(back, &job, in, panels * NV);
    end_flush(before);
}

static void back_weight(int rows, int panels, int in, int o0, int o1, const float *xt,
                        const float *dy, size_t dys, float *dw, int ld)
{
    const struct weight_job job = {.rows = rows,
                                   .in = in,
                                   .ld = ld,
                                   .xt = xt,
                                   .group = (size_t)panels * PANEL * PANEL,
                                   .dy = dy + (size_t)o0 * PANEL,
                                   .dys = dys,
                                   .dw = dw + (ptrdiff_t)o0 * ld};
    static void (*const tile[6][4])(const struct weight_job *, int, int) = ROWS(weight);
    const int vectors = (in + VW - 1) / VW;
    const unsigned before = begin_flush();
    /* Rows outside, unlike COVER: xt then streams in the order it lies in memory. */
    for (int at = 0, mr; at < o1 - o0; at += mr) {
        mr = height(o1 - o0 - at);
        for (int q = 0, c; q < vectors; q += c) {
            c = width(mr, vectors - q);
            tile[mr - 1][c % TAKES[mr - 1]](&job, at, q);
        }
    }
    end_flush(before);
}

/* ---- rows to panels and back ----------------------------------------------------------------- */

/* 8 rows of 8 become 8 columns of 8, in registers. */
INLINE void transpose8(V8 r[8])
{
#define MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
    V8 t[8], u[8];
    UNROLL
    for (int i = 0; i < 8; i += 2) {
        t[i] = MIX(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        t[i + 1] = MIX(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    UNROLL
    for (int h = 0; h < 8; h += 4) {
        u[h] = MIX(t[h], t[h + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        u[h + 1] = MIX(t[h], t[h + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        u[h + 2] = MIX(t[h + 1], t[h + 3], 0, 1, 8, 9, 4, 5, 12, 13);
        u[h + 3] = MIX(t[h + 1], t[h + 3], 2, 3, 10, 11, 6, 7, 14, 15);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        r[i] = MIX(u[i], u[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        r[i + 4] = MIX(u[i], u[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
#undef MIX
}

/* Eight outputs at once: each has 16 sums, one for each row of a panel, in two vectors. Both blocks
 * are transposed, so that vector i holds sum i of all eight, and then added in order. */
static void back_bias(int rows, int o0, int o1, const float *dy, size_t dys, float *db)
{
    for (int o = o0; o < o1; o += 8) {
        const int here = o1 - o < 8 ? o1 - o : 8;
        V8 low[8] = {0}, high[8] = {0};
        const float *d = dy + (size_t)o * PANEL;
        int left = rows;
        /* Whole panels, then the real rows of the last one. */
        for (; left >= PANEL; left -= PANEL, d += dys)
            for (int i = 0; i < here; i++) {
                low[i] += *(const V8 *)(d + i * PANEL);
                high[i] += *(const V8 *)(d + i * PANEL + 8);
            }
        for (int i = 0; i < here; i++)
            for (int lane = 0; lane < left; lane++) {
                if (lane < 8)
                    low[i][lane] += d[i * PANEL + lane];
                else
                    high[i][lane - 8] += d[i * PANEL + lane];
            }
        transpose8(low);
        transpose8(high);
        V8 sum = low[0];
        for (int i = 1; i < 8; i++)
            sum += low[i];
        for (int i = 0; i < 8; i++)
            sum += high[i];
        memcpy(db + o, &sum, (size_t)here * sizeof *db);
    }
}

/* x[panel][feature][16] to xt[group of 16 features][row][16]: blocks of 8 x 8, turned in
 * registers. */
static void transpose(int p0, int p1, int panels, int in, const float *x, size_t xs, float *xt)
{
    const size_t group = (size_t)panels * PANEL * PANEL;
    for (int p = p0; p < p1; p++) {
        const float *from = x + (size_t)p * xs;
        for (int k = 0; k < in; k += 8) {
            float *to = xt + (size_t)(k / PANEL) * group + (size_t)(p * PANEL * PANEL + k % PANEL);
            for (int half = 0; half < PANEL; half += 8) {
                V8 r[8];
                UNROLL
                for (int i = 0; i < 8; i++) /* past the last feature: any lane will do, unused */
                    r[i] = *(const V8 *)(from + (k + i < in ? k + i : in - 1) * PANEL + half);
                transpose8(r);
                UNROLL
                for (int i = 0; i < 8; i++)
                    *(V8 *)(to + (half + i) * PANEL) = r[i];
            }
        }
    }
}

/* Makes one panel from 16 rows of dim floats, in blocks of 8 x 8, the last columns one by one. */
static inline void fill_panel(int dim, const float *const *row, float *x)
{
    int k = 0;
    for (; k + 8 <= dim; k += 8)
        for (int half = 0; half < PANEL; half += 8) {
            V8 r[8];
            UNROLL
            for (int i = 0; i < 8; i++)
                r[i] = *(const V8 *)(row[half + i] + k);
            transpose8(r);
            UNROLL
            for (int i = 0; i < 8; i++)
                *(V8 *)(x + (k + i) * PANEL + half) = r[i];
        }
    for (; k < dim; k++)
        for (int i = 0; i < PANEL; i++)
            x[k * PANEL + i] = row[i][k];
}

/* Asks for a row that the next panel will read; rows of a batch are scattered all over memory. */
static inline void prefetch_row(const float *row, int dim)
{
    for (int k = 0; k < dim; k += PANEL)
        __builtin_prefetch(row + k);
}

static void gather(int rows, int dim, const float *table, size_t stride, const int *index, float *x,
                   size_t xs)
{
    for (int first = 0; first < rows; first += PANEL, x += xs) {
        /* Past the last row the panel's first one is repeated: padding must be finite. */
        const float *row[PANEL];
        for (int i = 0; i < PANEL; i++) {
            const int at = first + (first + i < rows ? i : 0);
            row[i] = table + (size_t)(index ? index[at] : at) * stride;
        }
        for (int i = first + PANEL; index && i < first + 2 * PANEL && i < rows; i++)
            prefetch_row(table + (size_t)index[i] * stride, dim);
        fill_panel(dim, row, x);
    }
}

static void collect(int rows, int dim, const float *const *row, float *x, size_t xs)
{
    for (; rows > 0; rows -= PANEL, row += PANEL, x += xs) {
        const float *here[PANEL];
        for (int i = 0; i < PANEL; i++)
            here[i] = row[i < rows ? i : 0];
        for (int i = PANEL; i < 2 * PANEL && i < rows; i++)
            prefetch_row(row[i], dim);
        fill_panel(dim, here, x);
    }
}

static void scatter(int rows, int dim, const float *x, size_t xs, float *table, size_t stride)
{
    for (int first = 0; first < rows; first += PANEL, x += xs) {
        float *row = table + (size_t)first * stride;
        const int here = rows - first < PANEL ? rows - first : PANEL;
        int k = 0;
        /* Whole panels in blocks of 8 x 8, the rest element by element. */
        for (; here == PANEL && k + 8 <= dim; k += 8)
            for (int half = 0; half < PANEL; half += 8) {
                V8 r[8];
                UNROLL
                for (int i = 0; i < 8; i++)
                    r[i] = *(const V8 *)(x + (k + i) * PANEL + half);
                transpose8(r);
                UNROLL
                for (int i = 0; i < 8; i++)
                    *(V8 *)(row + (size_t)(half + i) * stride + k) = r[i];
            }
        for (; k < dim; k++)
            for (int i = 0; i < here; i++)
                row[(size_t)i * stride + (size_t)k] = x[k * PANEL + i];
    }
}

/* ---- optimiser passes (plain IEEE operations: the compiler vectorises them, bits agree) ------ */

/* 0 for a number too small to be normal. Where only weight decay moves a weight, Adam lets it
 * shrink until it is such a number, and a product with one takes a hundred times as long as any
 * other. */
INLINE float normal_or_zero(float x)
{
    return fabsf(x) < FLT_MIN ? 0.0f : x;
}

static void adam(size_t n, const struct opc_adam_rates *rates, const float *restrict grad,
                 float *restrict m, float *restrict v, float *restrict param)
{
    const struct opc_adam_rates a = *rates;
    const float new1 = 1.0f - a.beta1, new2 = 1.0f - a.beta2;
    for (size_t i = 0; i < n; i++) {
        float g = grad[i] + a.decay * param[i];
        m[i] = normal_or_zero(a.beta1 * m[i] + new1 * g);
        v[i] = normal_or_zero(a.beta2 * v[i] + new2 * (g * g));
        param[i] = normal_or_zero(param[i] - a.step * m[i] / (sqrtf(v[i]) + a.eps));
    }
}

static void polyak(size_t n, float rate, const float *restrict param, float *restrict target)
{
    for (size_t i = 0; i < n; i++)
        target[i] += rate * (param[i] - target[i]);
}

/* ---- the machine's peak ---------------------------------------------------------------------- */

/* Twelve independent chains hide the latency of the multiply-add, some 4 cycles on 2 units. */
static double peak_flops(long rounds, float *sink)
{
    V sum[12], a = splat(0.999f), b = splat(1e-3f);
    UNROLL
    for (int i = 0; i < 12; i++)
        sum[i] = splat((float)i + 0.5f); /* not 1, which stays 1: clang would see through it */
    for (long k = 0; k < rounds; k++) {
        UNROLL
        for (int i = 0; i < 12; i++)
            sum[i] = fma_(sum[i], a, b);
    }
    V all = sum[0];
    for (int i = 1; i < 12; i++)
        all += sum[i];
    *sink = all[0];
    return (double)rounds * 12 * VW * 2;
}

const struct opc_kernels PASTE(opc_kernels_, OPC_ISA) = {
    .name = QUOTE(OPC_ISA),
    .fused = FUSED,
    .width = VW,
    .forward = forward,
    .back_input = back_input,
    .layer_norm_relu = layer_norm_relu,
    .back_layer_norm = back_layer_norm,
    .transpose = transpose,
    .back_weight = back_weight,
    .back_bias = back_bias,
    .gather = gather,
    .collect = collect,
    .scatter = scatter,
    .vec = {vec_exp, vec_log, vec_tanh, vec_sigmoid, vec_softplus},
    .philox = philox,
    .normals = normals,
    .normals_apart = normals_apart,
    .draw_bounded = draw_bounded,
    .adam = adam,
    .polyak = polyak,
    .peak_flops = peak_flops,
};
