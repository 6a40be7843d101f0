/* SPDX-License-Identifier: MIT */
/* qp_random.h - quadratic programs for test_qp.c and test_qp_ipopt.c: random ones that are known
 * to have an answer, with bounds of every kind. */
#ifndef OPC_TEST_QP_RANDOM_H
#define OPC_TEST_QP_RANDOM_H

#include "test.h"

#include "num/solve/dense.h"
#include "num/solve/qp.h"
#include "opc/rng.h"

enum { QP_N = 24, QP_ROWS = 60 };

struct random_qp {
    struct opc_qp qp;
    double P[QP_N * QP_N], q[QP_N], A[QP_ROWS * QP_N], low[QP_ROWS], high[QP_ROWS];
};

/* Bounds are put around what a random point does, so that one point at least keeps them: an
 * equation, two bounds, one, or none. The first n rows are a box. */
static inline void random_qp(uint32_t stream, struct random_qp *r)
{
    struct opc_rng g = opc_rng_stream(11, OPC_USE_TEST, 1, stream);
    const int n = 2 + (int)opc_rng_below(&g, QP_N - 1);
    const int rows = n + (int)opc_rng_below(&g, (uint32_t)(QP_ROWS - n + 1));
    double root[QP_N * QP_N], inside[QP_N];
    for (int i = 0; i < n * n; i++)
        root[i] = 2.0 * opc_rng_unit_double(&g) - 1.0;
    opc_dense_mul_tb(n, n, n, root, root, r->P);
    for (int i = 0; i < n; i++) {
        r->P[i * n + i] += 0.05;
        r->q[i] = 10.0 * (2.0 * opc_rng_unit_double(&g) - 1.0);
        inside[i] = 2.0 * opc_rng_unit_double(&g) - 1.0;
    }
    memset(r->A, 0, sizeof r->A);
    int equations = 0;
    for (int k = 0; k < rows; k++) {
        double *a = r->A + k * n;
        for (int j = 0; j < n; j++)
            a[j] = k < n ? (double)(j == k) : 2.0 * opc_rng_unit_double(&g) - 1.0;
        const double at = opc_dense_dot(n, a, inside);
        const uint32_t kind = opc_rng_below(&g, 8);
        r->low[k] = kind == 1 ? -INFINITY : at - opc_rng_unit_double(&g);
        r->high[k] = kind == 2 ? INFINITY : at + opc_rng_unit_double(&g);
        if (kind == 3)
            r->low[k] = -INFINITY, r->high[k] = INFINITY;
        if (kind == 4 && equations < n / 3) {
            r->low[k] = r->high[k] = at;
            equations++;
        }
    }
    r->qp = (struct opc_qp){n, rows, r->P, r->q, r->A, r->low, r->high};
}

#endif
