/* SPDX-License-Identifier: MIT */
/* In the coordinates w = L^T x, with P = L L^T, the objective is half the squared distance from
 * w_0 = -L^-1 q, and a constraint a^T x <= b has the normal v = L^-1 a. The normals of the active
 * set are kept as V = Q R with orthonormal rows of Q, orthogonalised twice: bounds on states at
 * neighbouring times are nearly parallel, and V^T V would lose what tells them apart.
 *
 * Raising the multiplier of a violated constraint p by t moves w by -t z, where z is the part of
 * its normal v orthogonal to V, and the multipliers of the active set by -t r, where V r is the
 * rest of v. Full steps end where p holds; shorter ones where a multiplier becomes 0 and its
 * constraint leaves. */
#include "num/qp.h"

#include "num/dense.h"
#include "opc/mem.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static const double PARALLEL = 1e-11; /* |z| / |v| below which p depends on the active set */
static const double HELD = 1e-11;     /* violation, relative to the bound, that counts as none */

struct qp {
    const struct opc_qp *p;
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
    bool *held;      /* [rows] */
};

static bool is_equation(const struct qp *s, int row)
{
    return s->p->low[row] == s->p->high[row];
}

static void release(struct qp *s)
{
    void *all[] = {s->L, s->N, s->size, s->w0,  s->x,    s->z,      s->r,   s->v,
                   s->c, s->Q, s->R,    s->row, s->side, s->lambda, s->held};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        opc_free(all[i]);
}

static int prepare(struct qp *s, struct opc_err *err)
{
    const struct opc_qp *p = s->p;
    const size_t n = (size_t)p->n, rows = (size_t)p->rows;
    const size_t real = sizeof(double);
    const struct opc_block block[] = {
        {&s->w0, n, real},         {&s->x, n, real},           {&s->z, n, real},
        {&s->r, n, real},          {&s->v, n, real},           {&s->c, n, real},
        {&s->lambda, n, real},     {&s->L, n * n, real},       {&s->Q, n * n, real},
        {&s->R, n * n, real},      {&s->N, rows * n, real},    {&s->size, rows, real},
        {&s->row, n, sizeof(int)}, {&s->side, n, sizeof(int)}, {&s->held, rows, sizeof(bool)},
    };
    if (!opc_alloc_all(block, sizeof block / sizeof *block))
        return opc_fail(err, OPC_ENOMEM,
                        "not enough memory for a quadratic program of %d unknowns, %d rows", p->n,
                        p->rows);

    memcpy(s->L, p->P, n * n * sizeof(double));
    if (!opc_chol_factor(p->n, s->L))
        return opc_fail(err, OPC_EUSER, "the quadratic form is not positive definite");
    for (size_t i = 0; i < rows; i++) {
        double *v = s->N + i * n;
        memcpy(v, p->A + i * n, n * sizeof(double));
        opc_chol_lower(p->n, s->L, 1, v);
        s->size[i] = opc_dense_norm(p->n, v);
    }
    for (size_t i = 0; i < n; i++)
        s->w0[i] = -p->q[i];
    opc_chol_lower(p->n, s->L, 1, s->w0);
    return OPC_OK;
}

/* x = L^-T w */
static void place(struct qp *s, const double *w)
{
    memcpy(s->x, w, (size_t)s->n * sizeof *w);
    opc_chol_upper(s->n, s->L, 1, s->x);
}

/* Splits v into Q^T c + z, twice, so that z is orthogonal to Q to the last bit that counts. */
static void split(struct qp *s, const double *v)
{
    const size_t n = (size_t)s->n;
    memcpy(s->z, v, n * sizeof *v);
    memset(s->c, 0, n * sizeof *v);
    for (int twice = 0; twice < 2; twice++)
        for (int i = 0; i < s->k; i++) {
            const double *q = s->Q + (size_t)i * n;
            const double along = opc_dense_dot(s->n, q, s->z);
            s->c[i] += along;
            for (size_t j = 0; j < n; j++)
                s->z[j] -= along * q[j];
        }
}

/* r = R^-1 c */
static void back(const struct qp *s, const double *c, double *r)
{
    for (int i = s->k - 1; i >= 0; i--) {
        double sum = c[i];
        for (int j = i + 1; j < s->k; j++)
            sum -= s->R[(size_t)i * (size_t)s->n + (size_t)j] * r[j];
        r[i] = sum / s->R[(size_t)i * (size_t)s->n + (size_t)i];
    }
}

/* s->v = the outward normal of a row's bound. */
static void normal(struct qp *s, int row, int side)
{
    for (int j = 0; j < s->n; j++)
        s->v[j] = side * s->N[(size_t)row * (size_t)s->n + (size_t)j];
}

/* Appends a normal to Q R; z and c are those of split. */
static void extend(struct qp *s)
{
    const size_t n = (size_t)s->n, k = (size_t)s->k;
    const double length = opc_dense_norm(s->n, s->z);
    for (size_t j = 0; j < n; j++)
        s->Q[k * n + j] = s->z[j] / length;
    for (size_t i = 0; i < k; i++)
        s->R[i * n + k] = s->c[i];
    s->R[k * n + k] = length;
    s->k++;
}

static void hold(struct qp *s, int row, int side, double lambda)
{
    s->row[s->k] = row;
    s->side[s->k] = side;
    s->lambda[s->k] = lambda;
    s->held[row] = true;
    normal(s, row, side);
    split(s, s->v);
    extend(s);
}

static void drop(struct qp *s, int j)
{
    const int all = s->k;
    s->held[s->row[j]] = false;
    s->k = j;
    for (int i = j + 1; i < all; i++)
        hold(s, s->row[i], s->side[i], s->lambda[i]); /* lands in place i - 1 */
}

/* How far x is beyond the bound of a row on this side, <= 0: not at all. */
static double beyond(const struct qp *s, int row, int side)
{
    const double bound = side > 0 ? s->p->high[row] : s->p->low[row];
    const double *a = s->p->A + (size_t)row * (size_t)s->n;
    return isinf(bound) ? -INFINITY : side * (opc_dense_dot(s->n, a, s->x) - bound);
}

/* The bound that is violated most by its distance, equations first; false: none is. */
static bool worst(const struct qp *s, int *row, int *side)
{
    double max = 0.0;
    bool found = false, equation = false;
    for (int i = 0; i < s->p->rows; i++)
        for (int d = -1; d <= 1; d += 2) {
            const double bound = d > 0 ? s->p->high[i] : s->p->low[i];
            const double by = s->held[i] ? -INFINITY : beyond(s, i, d);
            if (!(by > HELD * (1.0 + fabs(bound))) || (equation && !is_equation(s, i)))
                continue;
            const double distance = s->size[i] > 0.0 ? by / s->size[i] : INFINITY;
            if (found && equation == is_equation(s, i) && distance <= max)
                continue;
            max = distance;
            found = true;
            equation = is_equation(s, i);
            *row = i;
            *side = d;
        }
    return found;
}

/* Makes one violated bound hold; false when it contradicts the active set. */
static bool enforce(struct qp *s, int row, int side, int *steps)
{
    double lambda = 0.0;
    for (;; ++*steps) {
        normal(s, row, side);
        split(s, s->v);
        back(s, s->c, s->r);
        const double slope = opc_dense_dot(s->n, s->z, s->z);
        const bool moves = s->k < s->n && sqrt(slope) > PARALLEL * s->size[row];
        const double full = moves ? fmax(beyond(s, row, side), 0.0) / slope : INFINITY;
        double t = full;
        int leaves = -1;
        for (int j = 0; j < s->k; j++)
            if (s->r[j] > 0.0 && !is_equation(s, s->row[j]) && s->lambda[j] / s->r[j] < t) {
                t = s->lambda[j] / s->r[j];
                leaves = j;
            }
        if (isinf(t))
            return false;
        for (int j = 0; j < s->k; j++)
            s->lambda[j] -= t * s->r[j];
        lambda += t;
        if (moves) {
            opc_chol_upper(s->n, s->L, 1, s->z); /* x is moved: it is what bounds are about */
            for (int j = 0; j < s->n; j++)
                s->x[j] -= t * s->z[j];
        }
        if (leaves < 0) {
            hold(s, row, side, lambda);
            ++*steps;
            return true;
        }
        s->lambda[leaves] = 0.0;
        drop(s, leaves);
    }
}

/* The optimum for the active set alone, without what rounding the way here has left. */
static void polish(struct qp *s)
{
    const size_t n = (size_t)s->n;
    split(s, s->w0);                 /* c = Q w0, z the rest */
    for (int i = 0; i < s->k; i++) { /* v = R^-T b: where the active bounds are */
        double sum = s->side[i] * (s->side[i] > 0 ? s->p->high : s->p->low)[s->row[i]];
        for (int j = 0; j < i; j++)
            sum -= s->R[(size_t)j * n + (size_t)i] * s->v[j];
        s->v[i] = sum / s->R[(size_t)i * n + (size_t)i];
    }
    for (int i = 0; i < s->k; i++) {
        for (size_t j = 0; j < n; j++)
            s->z[j] += s->v[i] * s->Q[(size_t)i * n + j];
        s->c[i] -= s->v[i];
    }
    back(s, s->c, s->lambda);
    place(s, s->z);
}

static int solve(struct qp *s, struct opc_qp_report *report, struct opc_err *err)
{
    const int max = 50 * (s->n + s->p->rows) + 100;
    int row, side;
    place(s, s->w0);
    while (worst(s, &row, &side)) {
        if (!enforce(s, row, side, &report->steps)) {
            report->row = row;
            return opc_fail(err, OPC_EUSER,
                            "no point keeps bound %d of %d together with the others", row + 1,
                            s->p->rows);
        }
        if (report->steps > max)
            return opc_fail(err, OPC_EDIVERGED,
                            "a quadratic program of %d unknowns and %d rows did not settle in %d "
                            "steps; scale its rows alike",
                            s->n, s->p->rows, max);
    }
    polish(s);
    report->active = s->k;
    return OPC_OK;
}

int opc_qp_solve(const struct opc_qp *p, double *x, double *y, struct opc_qp_report *report,
                 struct opc_err *err)
{
    struct qp s = {.p = p, .n = p->n};
    *report = (struct opc_qp_report){.row = -1};
    for (int i = 0; i < p->rows; i++)
        if (!(p->low[i] <= p->high[i])) {
            report->row = i;
            return opc_fail(err, OPC_EUSER, "bound %d of %d is empty: [%g, %g]", i + 1, p->rows,
                            p->low[i], p->high[i]);
        }
    int code = prepare(&s, err);
    if (!code)
        code = solve(&s, report, err);
    if (!code) {
        memcpy(x, s.x, (size_t)p->n * sizeof *x);
        memset(y, 0, (size_t)p->rows * sizeof *y);
        for (int j = 0; j < s.k; j++)
            y[s.row[j]] = s.side[j] * s.lambda[j];
    }
    release(&s);
    return code;
}

struct opc_qp_kkt opc_qp_check(const struct opc_qp *p, const double *x, const double *y)
{
    struct opc_qp_kkt kkt = {0};
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
