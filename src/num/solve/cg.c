/* SPDX-License-Identifier: MIT */
/* Conjugate gradients (Hestenes and Stiefel 1952), in double and on one thread: sums are taken in
 * order, so the result does not depend on the threads that a product uses. agent/trpo.c calls it.
 */
#include "num/solve/cg.h"

#include <string.h>

static double dot(size_t n, const double *a, const double *b)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

int opc_conjugate_gradients(size_t n, opc_product_fn *product, void *ctx, const double *b,
                            int iterations, double tolerance, double *x, double *work)
{
    double *r = work, *p = work + n, *Ap = work + 2 * n; /* residual, direction, its product */
    memset(x, 0, n * sizeof *x);
    memcpy(r, b, n * sizeof *r);
    memcpy(p, b, n * sizeof *p);
    double rr = dot(n, r, r);
    int made = 0;
    for (; made < iterations && rr >= tolerance; made++) {
        product(ctx, p, Ap);
        const double pAp = dot(n, p, Ap);
        if (!(pAp > 0))
            break;
        /* along p to the minimum of the quadratic */
        const double alpha = rr / pAp;
        for (size_t i = 0; i < n; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * Ap[i];
        }
        /* the next direction is conjugate to all before it */
        const double next = dot(n, r, r), beta = next / rr;
        for (size_t i = 0; i < n; i++)
            p[i] = r[i] + beta * p[i];
        rr = next;
    }
    return made;
}
