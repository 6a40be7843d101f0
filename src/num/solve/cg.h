/* SPDX-License-Identifier: MIT */
/* num/solve/cg.h - conjugate gradients: A x = b for a symmetric positive definite A that is known
 * only by its products with vectors, as the Fisher matrix of TRPO is. */
#ifndef OPC_NUM_CG_H
#define OPC_NUM_CG_H

#include <stddef.h>

/* out[n] = A v[n] */
typedef void opc_product_fn(void *ctx, const double *v, double *out);

/* At most `iterations` iterations from x = 0, fewer once r.r < tolerance for the residual
 * r = b - A x. work[3 n]. Returns the number of iterations made. It also stops, with the x it has,
 * where v.A v is not positive: A is then not what it should be, or not finite. */
int opc_conjugate_gradients(size_t n, opc_product_fn *product, void *ctx, const double *b,
                            int iterations, double tolerance, double *x, double *work);

#endif
