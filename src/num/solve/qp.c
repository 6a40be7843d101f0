/* SPDX-License-Identifier: MIT */
/* The dual active-set method for study/ilc. tests/test_qp.c checks every answer by opc_qp_check,
 * and tests/test_qp_ipopt.c against Ipopt.
 *
 * In the coordinates w = L^T x, with P = L L^T, the objective is half the squared distance from
 * w_0 = -L^-1 q, and a constraint a^T x <= b has the normal v = L^-1 a. The normals of the active
 * set are kept as V = Q R with orthonormal rows of Q, orthogonalised twice: bounds on states at
 * neighbouring times are nearly parallel, and V^T V would lose the digits that distinguish them.
 *
 * Raising the multiplier of a violated constraint p by t moves w by -t z, where z is the part of
 * its normal v orthogonal to V, and the multipliers of the active set by -t r, where V r is the
 * rest of v. Full steps end where p holds; shorter ones where a multiplier becomes 0 and its
 * constraint leaves. */
#include "num/solve/qp.h"

#include "num/solve/dense.h"
#include "opc/mem.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static const double PARALLEL = 1e-11;  /* |z| / |v| below which p depends on the active set */
static const double TOLERANCE = 1e-11; /* smaller violations, relative to the bound, are rounding */

/* The problem and the state of the method: the active set as Q R, its multipliers, and x. */
struct qp {
    const struct opc_qp *problem;
    int n, k;     /* unknowns; active constraints */
    double *L;    /* [n][n] */
    double *N;    /* [rows][n] normals L^-1 a */
    double *size; /* [rows] their lengths */
    double *w0;   /* [n] */
    double *x, *z, *r, *v, *c;
    double *Q; /* [n][n] row i: i-th orthonormal direction */
    double *R; /* [n][n] upper triangle: column j is normal j of the active set in Q's directions */
    int *row, *side; /* [n] of the active set; side +1: at the upper bound, -1: the lower */
    double *lambda;  /* [n] >= 0, or any for an equation */
    bool *active;    /* [rows] */
};

/* Equations stay active: their multipliers may have either sign. */
static bool is_equation(const struct qp *qp, int row)
{
    return qp->problem->low[row] == qp->problem->high[row];
}

static void qp_free(struct qp *qp)
{
    void *all[] = {qp->L, qp->N, qp->size, qp->w0,  qp->x,    qp->z,      qp->r,     qp->v,
                   qp->c, qp->Q, qp->R,    qp->row, qp->side, qp->lambda, qp->active};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        opc_free(all[i]);
}

/* Allocates, and changes coordinates: L of P, the normals L^-1 a of all rows, and w_0 = -L^-1 q. */
static int qp_prepare(struct qp *qp, struct opc_err *err)
{
    const struct opc_qp *p = qp->problem;
    const size_t n = (size_t)p->n, rows = (size_t)p->rows;
    const size_t real = sizeof(double);
    const struct opc_block block[] = {
        {&qp->w0, n, real},         {&qp->x, n, real},           {&qp->z, n, real},
        {&qp->r, n, real},          {&qp->v, n, real},           {&qp->c, n, real},
        {&qp->lambda, n, real},     {&qp->L, n * n, real},       {&qp->Q, n * n, real},
        {&qp->R, n * n, real},      {&qp->N, rows * n, real},    {&qp->size, rows, real},
        {&qp->row, n, sizeof(int)}, {&qp->side, n, sizeof(int)}, {&qp->active, rows, sizeof(bool)},
    };
    if (!opc_alloc_all(block, sizeof block / sizeof *block))
        return opc_fail(err, OPC_ENOMEM,
                        "not enough memory for a quadratic program of %d unknowns, %d rows", p->n,
                        p->rows);

    memcpy(qp->L, p->P, n * n * sizeof(double));
    if (!opc_chol_factor(p->n, qp->L))
        return opc_fail(err, OPC_EUSER, "the quadratic form is not positive definite");
    for (size_t i = 0; i < rows; i++) {
        double *v = qp->N + i * n;
        memcpy(v, p->A + i * n, n * sizeof(double));
        opc_chol_lower(p->n, qp->L, 1, v);
        qp->size[i] = opc_dense_norm(p->n, v);
    }
    for (size_t i = 0; i < n; i++)
        qp->w0[i] = -p->q[i];
    opc_chol_lower(p->n, qp->L, 1, qp->w0);
    return OPC_OK;
}

/* x = L^-T w */
static void set_point(struct qp *qp, const double *w)
{
    memcpy(qp->x, w, (size_t)qp->n * sizeof *w);
    opc_chol_upper(qp->n, qp->L, 1, qp->x);
}

/* Splits v into Q^T c + z with z orthogonal to the rows of Q. Twice, because once leaves a rest
 * when v is nearly in their span. */
static void orthogonalize(struct qp *qp, const double *v)
{
    const size_t n = (size_t)qp->n;
    memcpy(qp->z, v, n * sizeof *v);
    memset(qp->c, 0, n * sizeof *v);
    for (int twice = 0; twice < 2; twice++)
        for (int i = 0; i < qp->k; i++) {
            const double *q = qp->Q + (size_t)i * n;
            const double along = opc_dense_dot(qp->n, q, qp->z);
            qp->c[i] += along;
            for (size_t j = 0; j < n; j++)
                qp->z[j] -= along * q[j];
        }
}

/* r = R^-1 c */
static void solve_upper(const struct qp *qp, const double *c, double *r)
{
    for (int i = qp->k - 1; i >= 0; i--) {
        double sum = c[i];
        for (int j = i + 1; j < qp->k; j++)
            sum -= qp->R[(size_t)i * (size_t)qp->n + (size_t)j] * r[j];
        r[i] = sum / qp->R[(size_t)i * (size_t)qp->n + (size_t)i];
    }
}

/* qp->v = the outward normal of a row's bound. */
static void load_normal(struct qp *qp, int row, int side)
{
    for (int j = 0; j < qp->n; j++)
        qp->v[j] = side * qp->N[(size_t)row * (size_t)qp->n + (size_t)j];
}

/* Appends a normal to Q R; z and c are those orthogonalize left. */
static void extend_qr(struct qp *qp)
{
    const size_t n = (size_t)qp->n, k = (size_t)qp->k;
    const double length = opc_dense_norm(qp->n, qp->z);
    for (size_t j = 0; j < n; j++)
        qp->Q[k * n + j] = qp->z[j] / length;
    for (size_t i = 0; i < k; i++)
        qp->R[i * n + k] = qp->c[i];
    qp->R[k * n + k] = length;
    qp->k++;
}

/* Adds a bound to the active set. */
static void activate(struct qp *qp, int row, int side, double lambda)
{
    qp->row[qp->k] = row;
    qp->side[qp->k] = side;
    qp->lambda[qp->k] = lambda;
    qp->active[row] = true;
    load_normal(qp, row, side);
    orthogonalize(qp, qp->v);
    extend_qr(qp);
}

/* Removes member j of the active set; Q R is built again from there on. */
static void deactivate(struct qp *qp, int j)
{
    const int all = qp->k;
    qp->active[qp->row[j]] = false;
    qp->k = j;
    for (int i = j + 1; i < all; i++)
        activate(qp, qp->row[i], qp->side[i], qp->lambda[i]); /* lands in place i - 1 */
}

/* How far x is beyond the bound of a row on this side; <= 0: it is not beyond. */
static double violation(const struct qp *qp, int row, int side)
{
    const double bound = side > 0 ? qp->problem->high[row] : qp->problem->low[row];
    const double *a = qp->problem->A + (size_t)row * (size_t)qp->n;
    return isinf(bound) ? -INFINITY : side * (opc_dense_dot(qp->n, a, qp->x) - bound);
}

/* Finds the most violated bound by distance in w; equations come first. False: none is. */
static bool worst_violation(const struct qp *qp, int *row, int *side)
{
    double max = 0.0;
    bool found = false, equation = false;
    for (int i = 0; i < qp->problem->rows; i++)
        for (int d = -1; d <= 1; d += 2) {
            const double bound = d > 0 ? qp->problem->high[i] : qp->problem->low[i];
            const double by = qp->active[i] ? -INFINITY : violation(qp, i, d);
            if (!(by > TOLERANCE * (1.0 + fabs(bound))) || (equation && !is_equation(qp, i)))
                continue;
            const double distance = qp->size[i] > 0.0 ? by / qp->size[i] : INFINITY;
            if (found && equation == is_equation(qp, i) && distance <= max)
                continue;
            max = distance;
            found = true;
            equation = is_equation(qp, i);
            *row = i;
            *side = d;
        }
    return found;
}

/* Steps until one violated bound holds and is active. False: it contradicts the active set. */
static bool enforce_bound(struct qp *qp, int row, int side, int *steps)
{
    double lambda = 0.0;
    for (;; ++*steps) {
        /* The direction: z moves w, r moves the multipliers of the active set. */
        load_normal(qp, row, side);
        orthogonalize(qp, qp->v);
        solve_upper(qp, qp->c, qp->r);
        const double slope = opc_dense_dot(qp->n, qp->z, qp->z);
        const bool moves = qp->k < qp->n && sqrt(slope) > PARALLEL * qp->size[row];
        const double full = moves ? fmax(violation(qp, row, side), 0.0) / slope : INFINITY;
        /* The longest step that keeps all multipliers >= 0; the first that would become negative
         * leaves. */
        double t = full;
        int leaves = -1;
        for (int j = 0; j < qp->k; j++)
            if (qp->r[j] > 0.0 && !is_equation(qp, qp->row[j]) && qp->lambda[j] / qp->r[j] < t) {
                t = qp->lambda[j] / qp->r[j];
                leaves = j;
            }
        /* Neither can x move nor any constraint leave. */
        if (isinf(t))
            return false;
        for (int j = 0; j < qp->k; j++)
            qp->lambda[j] -= t * qp->r[j];
        lambda += t;
        if (moves) {
            opc_chol_upper(qp->n, qp->L, 1, qp->z); /* x is moved: it is what bounds are about */
            for (int j = 0; j < qp->n; j++)
                qp->x[j] -= t * qp->z[j];
        }
        if (leaves < 0) {
            activate(qp, row, side, lambda);
            ++*steps;
            return true;
        }
        qp->lambda[leaves] = 0.0;
        deactivate(qp, leaves);
    }
}

/* Solves for the active set directly, which removes the rounding errors of the steps. */
static void polish_solution(struct qp *qp)
{
    const size_t n = (size_t)qp->n;
    orthogonalize(qp, qp->w0); /* c = Q w0, z the rest */
    /* w = (part of w_0 orthogonal to the normals) + Q^T v, and R lambda = Q w_0 - v. */
    for (int i = 0; i < qp->k; i++) { /* v = R^-T b: where the active bounds are */
        double sum =
            qp->side[i] * (qp->side[i] > 0 ? qp->problem->high : qp->problem->low)[qp->row[i]];
        for (int j = 0; j < i; j++)
            sum -= qp->R[(size_t)j * n + (size_t)i] * qp->v[j];
        qp->v[i] = sum / qp->R[(size_t)i * n + (size_t)i];
    }
    for (int i = 0; i < qp->k; i++) {
        for (size_t j = 0; j < n; j++)
            qp->z[j] += qp->v[i] * qp->Q[(size_t)i * n + j];
        qp->c[i] -= qp->v[i];
    }
    solve_upper(qp, qp->c, qp->lambda);
    set_point(qp, qp->z);
}

/* From the unconstrained minimum, one violated bound after the other. A cycle by rounding is ended
 * after `max` steps. */
static int solve_active_set(struct qp *qp, struct opc_qp_report *report, struct opc_err *err)
{
    const int max = 50 * (qp->n + qp->problem->rows) + 100;
    int row, side;
    set_point(qp, qp->w0);
    while (worst_violation(qp, &row, &side)) {
        if (!enforce_bound(qp, row, side, &report->steps)) {
            report->row = row;
            return opc_fail(err, OPC_EUSER,
                            "no point satisfies bound %d of %d together with the others", row + 1,
                            qp->problem->rows);
        }
        if (report->steps > max)
            return opc_fail(err, OPC_EDIVERGED,
                            "a quadratic program of %d unknowns and %d rows did not settle in %d "
                            "steps; scale its rows alike",
                            qp->n, qp->problem->rows, max);
    }
    polish_solution(qp);
    report->active = qp->k;
    return OPC_OK;
}

int opc_qp_solve(const struct opc_qp *p, double *x, double *y, struct opc_qp_report *report,
                 struct opc_err *err)
{
    struct qp qp = {.problem = p, .n = p->n};
    *report = (struct opc_qp_report){.row = -1};
    for (int i = 0; i < p->rows; i++)
        if (!(p->low[i] <= p->high[i])) {
            report->row = i;
            return opc_fail(err, OPC_EUSER, "bound %d of %d is empty: [%g, %g]", i + 1, p->rows,
                            p->low[i], p->high[i]);
        }
    int code = qp_prepare(&qp, err);
    if (!code)
        code = solve_active_set(&qp, report, err);
    if (!code) {
        memcpy(x, qp.x, (size_t)p->n * sizeof *x);
        memset(y, 0, (size_t)p->rows * sizeof *y);
        for (int j = 0; j < qp.k; j++)
            y[qp.row[j]] = qp.side[j] * qp.lambda[j];
    }
    qp_free(&qp);
    return code;
}

struct opc_qp_kkt opc_qp_check(const struct opc_qp *p, const double *x, const double *y)
{
    struct opc_qp_kkt kkt = {0};
    /* P x + q + A^T y */
    for (int j = 0; j < p->n; j++) {
        double sum = p->q[j] + opc_dense_dot(p->n, p->P + (size_t)j * (size_t)p->n, x);
        for (int i = 0; i < p->rows; i++)
            sum += p->A[(size_t)i * (size_t)p->n + (size_t)j] * y[i];
        kkt.stationarity = fmax(kkt.stationarity, fabs(sum));
    }
    for (int i = 0; i < p->rows; i++) {
        const double ax = opc_dense_dot(p->n, p->A + (size_t)i * (size_t)p->n, x);
        const double over = ax - p->high[i], under = p->low[i] - ax;
        kkt.primal = fmax(kkt.primal, fmax(over, under));
        if (p->low[i] == p->high[i] || y[i] == 0.0)
            continue;
        /* a multiplier that pushes down belongs to an upper bound, one that pushes up to a lower */
        const double gap = y[i] > 0.0 ? over : under;
        if (isinf(gap))
            kkt.dual = fmax(kkt.dual, fabs(y[i]));
        else
            kkt.complementarity = fmax(kkt.complementarity, fabs(y[i] * gap));
    }
    kkt.primal = fmax(kkt.primal, 0.0);
    return kkt;
}
