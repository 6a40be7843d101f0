/* SPDX-License-Identifier: MIT */
/* num/kernel.h - the loops that do nearly all the work, compiled once per instruction set.
 *
 * kernel.c is one source in vector extensions; each compilation of it fills one table of this
 * type, and backend.c picks the best the processor has when the program starts.
 *
 * Batch panels. A batch of rows is stored 16 rows at a time, features outside, rows inside:
 * x[panel][feature][16]. Any feature count costs nothing extra and every element-wise loop is unit
 * stride. The rows that pad the last panel may hold anything finite; no result of a real row
 * depends on them.
 *
 * Rounding. A product is the chain of fused multiply-adds along its inner dimension, in order,
 * from 0; the bias is added last. Row i of a result depends on row i alone, so it has the same
 * bits in any batch, at any place, on any number of threads. Backends with FMA agree with a plain
 * fmaf loop bit for bit; backends without it (sse2, avx) agree with multiply-then-add. On x86 the
 * products of a layer take numbers too small to be normal as 0, and give 0 instead of them. */
#ifndef OPC_NUM_KERNEL_H
#define OPC_NUM_KERNEL_H

#include "opc/rng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OPC_PANEL = 16 }; /* rows in a panel: one vector of AVX-512, two of AVX2 */

/* Panels of this many rows. */

static inline int opc_panels(int rows)
{
    return (rows + OPC_PANEL - 1) / OPC_PANEL;
}
/* Where entry k of a row is in panels x[panels][columns][16]. */
static inline size_t opc_panel_place(int row, int columns, int k)
{
    return (size_t)(row / OPC_PANEL * columns + k) * OPC_PANEL + (size_t)(row % OPC_PANEL);
}

/* Floats of xt, the transposed inputs that `transpose` fills: both dimensions rounded up to 16. */
static inline size_t opc_transposed_size(int panels, int in)
{
    return (size_t)panels * OPC_PANEL * (size_t)(opc_panels(in) * OPC_PANEL);
}

enum opc_activation {
    OPC_ACTIVATION_LINEAR,
    OPC_ACTIVATION_RELU,
    OPC_ACTIVATION_TANH,
    OPC_ACTIVATION_SWISH
};

/* Element-wise functions of one vector argument (num/vec.h). */
enum opc_vec {
    OPC_VEC_EXP,
    OPC_VEC_LOG,
    OPC_VEC_TANH,
    OPC_VEC_SIGMOID,
    OPC_VEC_SOFTPLUS,
    OPC_VEC_COUNT
};

/* The numbers of one Adam step, bias corrections included (num/adam.c). */
struct opc_adam_rates {
    float beta1, beta2;
    float step;  /* lr * sqrt(1 - beta2^t) / (1 - beta1^t) */
    float eps;   /* as it is added to sqrt(v) */
    float decay; /* L2: adds decay * param to the gradient */
};

struct opc_kernels {
    const char *name;
    bool fused; /* a * b + c with one rounding */
    int width;  /* floats in a vector */

    /* y = act(W x + b): w[out][ld], x[panels][xs], y[panels][ys]; xs and ys are the floats from one
     * panel to the next. slope (swish only, may be NULL): act'(W x + b), laid out as y. */
    void (*forward)(int panels, int in, int out, const float *w, int ld, const float *bias,
                    const float *x, size_t xs, enum opc_activation activation, float *y, size_t ys,
                    float *slope);
    /* dx = (W^T dy) * act'(...) of the layer below, for inputs 0 .. in-1 of w. `activation` is that
     * of the layer below, and `below` what it kept for its derivative, laid out as dx: its outputs
     * (ReLU, tanh) or slopes (swish); unused for linear. dx may be below. */
    void (*back_input)(int panels, int in, int out, const float *w, int ld, const float *dy,
                       size_t dys, enum opc_activation activation, const float *below, float *dx,
                       size_t dxs);
    /* Layer normalisation over the features of each row, then ReLU, in place: y[panels][ys]. The
     * normalised values, laid out as y, and inv_std[panels][16] are kept for the backward pass;
     * both may be NULL. num/simd_norm.h has the formula and its rounding. */
    void (*layer_norm_relu)(int panels, int features, float *y, size_t ys, float *normalized,
                            float *inv_std);
    /* The way back through the normalisation, in place; y and d are [panels][stride]. Before: d
     * holds the normalised values, y the derivative by them, which back_input has written there and
     * cut where ReLU was 0 (`below` = d). After: d holds the derivative by what was normalised, and
     * y again the outputs of ReLU. So the backward pass needs no memory of its own. */
    void (*back_layer_norm)(int panels, int features, const float *inv_std, float *y, float *d,
                            size_t stride);
    /* Panels p0 .. p1-1 of x[panels][xs] to xt[ceil(in / 16)][16 * panels][16]: features innermost,
     * rows in order; xt has opc_transposed_size floats. Threads may do different panels at once. */
    void (*transpose)(int p0, int p1, int panels, int in, const float *x, size_t xs, float *xt);
    /* dw[o][k] = sum over rows of dy * x, for outputs o0 .. o1-1; xt from `transpose`, for the same
     * number of panels. Rows of padding are left out. */
    void (*back_weight)(int rows, int panels, int in, int o0, int o1, const float *xt,
                        const float *dy, size_t dys, float *dw, int ld);
    /* db[o] = sum over rows of dy: 16 sums, one for each row of a panel, then added in order. */
    void (*back_bias)(int rows, int o0, int o1, const float *dy, size_t dys, float *db);

    /* Copies the first dim columns of rows index[i] of a table (index NULL: rows 0, 1, ...) into
     * panels; a short last panel is filled up with copies of its first row. */
    void (*gather)(int rows, int dim, const float *table, size_t stride, const int *index, float *x,
                   size_t xs);
    /* The same for rows anywhere in memory: row[i] points at row i. */
    void (*collect)(int rows, int dim, const float *const *row, float *x, size_t xs);
    /* The way back, from panels to rows of a table. */
    void (*scatter)(int rows, int dim, const float *x, size_t xs, float *table, size_t stride);

    void (*vec[OPC_VEC_COUNT])(size_t n, const float *x, float *y);
    /* opc_philox for 16 counters at once: counter[i][lane] to out[i][lane]. */
    void (*philox)(const uint32_t counter[4][OPC_PANEL], const uint32_t key[2],
                   uint32_t out[4][OPC_PANEL]);
    /* n / 2 pairs of standard normals from n words (n even), Box-Muller. */
    void (*normals)(size_t n, const uint32_t *words, float *z);
    /* The same for 16 pairs whose first words, second words and variates are apart. */
    void (*normals_apart)(const uint32_t radius[OPC_PANEL], const uint32_t angle[OPC_PANEL],
                          float *z0, float *z1);
    /* One panel of draws from Gaussians with bounded log-variance (num/gauss.h): mean[dim][16] +=
     * exp(l / 2) * eps[dim][16], where l is raw[dim][16] held between the bounds. It has the bits
     * of opc_gauss_bound, opc_vec_exp and a product and a sum that round one after the other. */
    void (*draw_bounded)(int dim, const float *upper, const float *lower, const float *raw,
                         const float *eps, float *mean);
    /* One Adam step of n parameters; see num/adam.h for the formula. */
    void (*adam)(size_t n, const struct opc_adam_rates *, const float *grad, float *m, float *v,
                 float *param);
    /* The Polyak average of a target network: target += rate * (param - target). */
    void (*polyak)(size_t n, float rate, const float *param, float *target);

    /* Measures the processor: `rounds` rounds of independent multiply-adds on registers. Returns
     * the number of floating-point operations done; *sink keeps the compiler from dropping them. */
    double (*peak_flops)(long rounds, float *sink);
};

/* The table in use. Chosen once; OPC_BACKEND=NAME in the environment overrides the choice. */
const struct opc_kernels *opc_kernels(void);
/* OPC_EUSER: OPC_BACKEND names no backend this processor can run. */
int opc_kernels_check(struct opc_err *err);
/* True if the backends of these names give the same bits. They need not exist on this machine: a
 * run may be resumed elsewhere. */
bool opc_kernels_agree(const char *name, const char *other);
/* All tables this processor can run, best first. */
int opc_kernels_list(const struct opc_kernels *out[8]);
/* Makes `name` the table in use, for tests and benchmarks; not while other threads compute. */
int opc_kernels_use(const char *name, struct opc_err *err);

#endif
