/* SPDX-License-Identifier: MIT */
/* num/solve/qp.h - small dense quadratic programs, to the last digits.
 *
 *     min 1/2 x^T P x + q^T x   subject to   low <= A x <= high
 *
 * with P positive definite. The dual active-set method of Goldfarb and Idnani (1983): from the
 * minimum without constraints it adds the most violated constraint at a time, stays optimal for the
 * active ones, and so ends at the solution or at a row that contradicts the others. Unlike a
 * first-order method it is exact up to rounding. It is meant for some hundred unknowns. */
#ifndef OPC_NUM_QP_H
#define OPC_NUM_QP_H

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
    int active; /* constraints that are active at the solution */
    int row;    /* a row no x can satisfy together with the others; -1: there is none */
};

/* Solves for x[n]. y[rows]: the multipliers, positive at the upper bound, negative at the lower,
 * else 0. OPC_EUSER: no x satisfies all bounds (report->row >= 0), or P is not positive definite
 * (report->row is -1). */
int opc_qp_solve(const struct opc_qp *, double *x, double *y, struct opc_qp_report *,
                 struct opc_err *err);
struct opc_qp_kkt opc_qp_check(const struct opc_qp *, const double *x, const double *y);

#endif
