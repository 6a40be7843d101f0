/* SPDX-License-Identifier: MIT */
/* num/solve/dense.h - small dense linear algebra in double, row-major, for the quadratic programs
 * of iterative learning control (num/solve/qp.c, study/ilc). Networks and batches use num/kernel.h.
 */
#ifndef OPC_NUM_DENSE_H
#define OPC_NUM_DENSE_H

#include <stdbool.h>

double opc_dense_dot(int n, const double *a, const double *b);
double opc_dense_norm(int n, const double *a); /* Euclidean */

/* out[rows][columns] = a[rows][inner] b[inner][columns]; out must not overlap a or b. */
void opc_dense_mul(int rows, int inner, int columns, const double *a, const double *b, double *out);
/* out[rows][columns] = a[inner][rows]^T b[inner][columns] */
void opc_dense_mul_ta(int rows, int inner, int columns, const double *a, const double *b,
                      double *out);
/* out[rows][columns] = a[rows][inner] b[columns][inner]^T */
void opc_dense_mul_tb(int rows, int inner, int columns, const double *a, const double *b,
                      double *out);

/* a[n][n] = L L^T for a symmetric positive definite a, of which the lower triangle is read and
 * replaced by L; the upper one is left alone. False where a pivot is not positive beyond rounding;
 * a is then half done. */
bool opc_chol_factor(int n, double *a);
/* x[n][columns] becomes L^-1 x, L^-T x, and (L L^T)^-1 x. */
void opc_chol_lower(int n, const double *L, int columns, double *x);
void opc_chol_upper(int n, const double *L, int columns, double *x);
void opc_chol_solve(int n, const double *L, int columns, double *x);

#endif
