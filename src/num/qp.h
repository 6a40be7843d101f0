/* SPDX-License-Identifier: MIT */
/* num/qp.h - small dense quadratic programs, to the last digits.
 *
 *     min 1/2 x^T P x + q^T x   subject to   low <= A x <= high
 *
 * with P positive definite. The dual active-set method of Goldfarb and Idnani (1983): from the
 * minimum without constraints it adds the most violated one at a time, stays optimal for those it
 * holds, and so ends at the answer or at the row that contradicts the others. Unlike a first-order
 * method it is exact up to rounding, which is what problems of some hundred unknowns can afford. */
#ifndef OPC_STUDY_QP_H
#define OPC_STUDY_QP_H

#include "opc/err.h"

struct opc_qp {
    int n, rows;
    const double *P, *q;      /* [n][n] symmetric, [n] */
    const double *A;          /* [rows][n] */
    const double *low, *high; /* [rows]; -INFINITY, INFINITY: none; equal: an equation */
};

/* How far an answer is from the conditions of Karush, Kuhn and Tucker; all 0 at the optimum. */
struct opc_qp_kkt {
    double stationarity;    /* largest entry of P x + q + A^T y */
    double primal;          /* largest violation of a bound */
    double dual;            /* largest multiplier of a sign its bound does not allow */
    double complementarity; /* largest multiplier times the distance from its bound */
};

struct opc_qp_report {
    int steps;  /* constraints added or dropped */
    int active; /* held in the end */
    int row;    /* that no x can keep with the others; -1: there is none */
};

/* y[rows]: the multipliers, positive at the upper bound, negative at the lower, else 0. OPC_EUSER
 * with report->row >= 0: no x keeps all bounds. P that is not positive definite: OPC_EUSER, row
 * -1. */
int opc_qp_solve(const struct opc_qp *, double *x, double *y, struct opc_qp_report *,
                 struct opc_err *err);
struct opc_qp_kkt opc_qp_check(const struct opc_qp *, const double *x, const double *y);

#endif
