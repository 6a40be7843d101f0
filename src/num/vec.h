/* SPDX-License-Identifier: MIT */
/* num/vec.h - element-wise functions of the table in use, at most 4 ULP from libm. An element's
 * result has the same bits at any place of the array.
 *
 * y may be x. NaN in, NaN out; exp overflows to infinity and underflows through the denormals. */
#ifndef OPC_NUM_VEC_H
#define OPC_NUM_VEC_H

#include "num/kernel.h"

static inline void opc_vec_exp(size_t n, const float *x, float *y)
{
    opc_kernels()->vec[OPC_VEC_EXP](n, x, y);
}

static inline void opc_vec_log(size_t n, const float *x, float *y)
{
    opc_kernels()->vec[OPC_VEC_LOG](n, x, y);
}

static inline void opc_vec_tanh(size_t n, const float *x, float *y)
{
    opc_kernels()->vec[OPC_VEC_TANH](n, x, y);
}

static inline void opc_vec_sigmoid(size_t n, const float *x, float *y)
{
    opc_kernels()->vec[OPC_VEC_SIGMOID](n, x, y);
}

static inline void opc_vec_softplus(size_t n, const float *x, float *y)
{
    opc_kernels()->vec[OPC_VEC_SOFTPLUS](n, x, y);
}

#endif
