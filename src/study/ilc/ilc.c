/* SPDX-License-Identifier: MIT */
/* Norm-optimal ILC: the lifted system, linearisation, the update in closed form and as a
 * quadratic program, and a Kalman filter over trials. ilc_run.c calls it.
 *
 * Invariant: states and inputs are stacked in time order (s_0 first, a_0 first), row-major;
 * every matrix here has that order. Everything is double. */
#include "study/ilc/ilc.h"

#include "num/dense.h"
#include "opc/mem.h"

#include <math.h>
#include <string.h>

/* ---- the lifted system ----------------------------------------------------------------------- */

void opc_lift(int n, int m, int T, const double *A, const double *B, double *F)
{
    const size_t columns = (size_t)(T * m);
    memset(F, 0, (size_t)((T + 1) * n) * columns * sizeof *F);
    for (int i = 0; i < T; i++) {
        double *to = F + (size_t)((i + 1) * n) * columns;
        /* Block row i + 1 is A_i times block row i, plus B_i in the column block where a_i
         * enters. */
        opc_dense_mul(n, n, (int)columns, A + i * n * n, F + (size_t)(i * n) * columns, to);
        for (int k = 0; k < n; k++)
            memcpy(to + (size_t)k * columns + (size_t)(i * m), B + (i * n + k) * m,
                   (size_t)m * sizeof *F);
    }
}

void opc_lift_start(int n, int T, const double *A, const double *s0, double *d)
{
    memcpy(d, s0, (size_t)n * sizeof *d);
    for (int t = 0; t < T; t++)
        opc_dense_mul(n, n, 1, A + t * n * n, d + t * n, d + (t + 1) * n);
}

int opc_linearise(int n, int m, int T, opc_next_fn *f, void *ctx, const double *s, const double *u,
                  double *A, double *B, struct opc_err *err)
{
    /* Cube root of the rounding error: balances truncation and rounding of central differences. */
    const double relative = 6.1e-6;
    double *x = opc_alloc((size_t)(3 * n + m), sizeof *x);
    if (!x)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to linearise %d states", n);
    double *plus = x + n + m, *minus = plus + n;
    /* For each step perturb one state or action at a time, x = (s_t, a_t). */
    for (int t = 0; t < T; t++)
        for (int j = 0; j < n + m; j++) {
            memcpy(x, s + t * n, (size_t)n * sizeof *x);
            memcpy(x + n, u + t * m, (size_t)m * sizeof *x);
            const double at = x[j], h = relative * (1.0 + fabs(at));
            x[j] = at + h;
            f(ctx, x, x + n, plus);
            x[j] = at - h;
            f(ctx, x, x + n, minus);
            for (int i = 0; i < n; i++) {
                const double slope = (plus[i] - minus[i]) / (2.0 * h);
                if (j < n)
                    A[(t * n + i) * n + j] = slope;
                else
                    B[(t * n + i) * m + j - n] = slope;
            }
        }
    opc_free(x);
    return OPC_OK;
}

int opc_linearise_learned(const struct opc_predictor *p, int T, const double *low,
                          const double *high, const double *s, const double *u, double *A,
                          double *B, struct opc_pool *pool, struct opc_err *err)
{
    const int n = p->obs, m = p->act, in = n + m;
    const size_t rows = (size_t)T, each = (size_t)(n + 1) * (size_t)in;
    float *state = opc_alloc(rows * (size_t)n, sizeof *state);
    float *action = opc_alloc(rows * (size_t)m, sizeof *action);
    float *J = opc_alloc(rows * each, sizeof *J);
    int *elite = opc_alloc(rows, sizeof *elite), code = OPC_OK;
    if (!state || !action || !J || !elite)
        code =
            opc_fail(err, OPC_ENOMEM, "not enough memory to linearise the model along %d steps", T);
    /* The network takes floats, and actions scaled from [low, high] to [-1, 1]. */
    for (int i = 0; !code && i < T * n; i++)
        state[i] = (float)s[i];
    for (int i = 0; !code && i < T * m; i++)
        action[i] = (float)(2.0 * (u[i] - low[i % m]) / (high[i % m] - low[i % m]) - 1.0);
    if (!code) {
        memset(A, 0, rows * (size_t)(n * n) * sizeof *A);
        memset(B, 0, rows * (size_t)(n * m) * sizeof *B);
    }
    /* Mean of the elites' Jacobians; the chain rule undoes the scaling of actions. */
    for (int e = 0; !code && e < p->elites; e++) {
        for (int t = 0; t < T; t++)
            elite[t] = e;
        code = opc_predictor_jacobian(p, T, state, action, elite, J, pool, err);
        for (int t = 0; !code && t < T; t++)
            for (int i = 0; i < n; i++) {
                /* J holds rows for n states and the reward, which is not used. */
                const float *row = J + (size_t)t * each + (size_t)(i * in);
                for (int j = 0; j < n; j++)
                    A[(t * n + i) * n + j] += (double)row[j] / p->elites;
                for (int j = 0; j < m; j++)
                    B[(t * n + i) * m + j] +=
                        (double)row[n + j] * 2.0 / (high[j] - low[j]) / p->elites;
            }
    }
    opc_free(state);
    opc_free(action);
    opc_free(J);
    opc_free(elite);
    return code;
}

/* ---- the update ------------------------------------------------------------------------------ */

struct opc_ilc {
    int n, m, T, states, inputs; /* states = (T+1) n, inputs = T m */
    double *M, *W;               /* [states] [inputs] diagonals */
    double *F;                   /* [states][inputs] */
    double *H;                   /* [inputs][inputs] F^T M F + W */
    double *L;                   /* its Cholesky factor */
    double *work;                /* [states][inputs], or [states + inputs] */
};

int opc_ilc_create(int n, int m, int T, const double *M, const double *W, struct opc_ilc **out,
                   struct opc_err *err)
{
    struct opc_ilc *c = opc_alloc(1, sizeof *c);
    if (!c)
        goto full;
    *c = (struct opc_ilc){.n = n, .m = m, .T = T, .states = (T + 1) * n, .inputs = T * m};
    const size_t N = (size_t)c->states, U = (size_t)c->inputs;
    c->M = opc_alloc(N, sizeof *c->M);
    c->W = opc_alloc(U, sizeof *c->W);
    c->F = opc_alloc(N * U, sizeof *c->F);
    c->H = opc_alloc(U * U, sizeof *c->H);
    c->L = opc_alloc(U * U, sizeof *c->L);
    c->work = opc_alloc(N * U + N + U, sizeof *c->work);
    if (!c->M || !c->W || !c->F || !c->H || !c->L || !c->work)
        goto full;
    memcpy(c->M, M, N * sizeof *M);
    memcpy(c->W, W, U * sizeof *W);
    *out = c;
    return OPC_OK;
full:
    opc_ilc_destroy(c);
    return opc_fail(err, OPC_ENOMEM,
                    "not enough memory to lift %d states over %d steps; lower steps", n, T);
}

void opc_ilc_destroy(struct opc_ilc *c)
{
    if (!c)
        return;
    opc_free(c->M);
    opc_free(c->W);
    opc_free(c->F);
    opc_free(c->H);
    opc_free(c->L);
    opc_free(c->work);
    opc_free(c);
}

int opc_ilc_model(struct opc_ilc *c, const double *A, const double *B, struct opc_err *err)
{
    const size_t U = (size_t)c->inputs;
    opc_lift(c->n, c->m, c->T, A, B, c->F);
    /* work = M F, then H = F^T M F + W. W alone makes H positive definite where M F vanishes. */
    for (int i = 0; i < c->states; i++)
        for (size_t j = 0; j < U; j++)
            c->work[(size_t)i * U + j] = c->M[i] * c->F[(size_t)i * U + j];
    opc_dense_mul_ta(c->inputs, c->states, c->inputs, c->F, c->work, c->H);
    for (size_t j = 0; j < U; j++)
        c->H[j * U + j] += c->W[j];
    memcpy(c->L, c->H, U * U * sizeof *c->L);
    if (!opc_chol_factor(c->inputs, c->L))
        return opc_fail(err, OPC_EUSER,
                        "F^T M F + W is not positive definite: some input has no effect that is "
                        "weighted; raise weight_action");
    return OPC_OK;
}

const double *opc_ilc_lifted(const struct opc_ilc *c)
{
    return c->F;
}

void opc_ilc_predict(const struct opc_ilc *c, const double *u, const double *d, double *s)
{
    for (int i = 0; i < c->states; i++)
        s[i] = d[i] + opc_dense_dot(c->inputs, c->F + (size_t)i * (size_t)c->inputs, u);
}

void opc_ilc_disturbance(const struct opc_ilc *c, const double *s, const double *u, double *d)
{
    for (int i = 0; i < c->states; i++)
        d[i] = s[i] - opc_dense_dot(c->inputs, c->F + (size_t)i * (size_t)c->inputs, u);
}

/* F^T M e, left in c->work after the first `states` numbers. */
static double *weighted(struct opc_ilc *c, const double *e)
{
    double *Me = c->work, *g = c->work + c->states;
    for (int i = 0; i < c->states; i++)
        Me[i] = c->M[i] * e[i];
    opc_dense_mul_ta(c->inputs, c->states, 1, c->F, Me, g);
    return g;
}

/* u' = u + (F^T M F + W)^-1 F^T M e, with the factor from opc_ilc_model. */
void opc_ilc_update(struct opc_ilc *c, const double *e, const double *u, double *next)
{
    double *step = weighted(c, e);
    opc_chol_solve(c->inputs, c->L, 1, step);
    for (int j = 0; j < c->inputs; j++)
        next[j] = u[j] + step[j];
}

/* ---- within limits --------------------------------------------------------------------------- */

/* A quadratic program over u' with the arrays it borrows. */
struct program {
    struct opc_qp qp;
    double *A, *low, *high, *q, *y;
    /* [rows] what each row bounds: input j: j; state i: inputs + i; face f: inputs + states + f */
    int *what;
};

/* Whether entry i has a bound on either side. */
static bool given(const double *low, const double *high, int i)
{
    return (low && !isinf(low[i])) || (high && !isinf(high[i]));
}

/* Adds a row low <= a u' <= high and returns its coefficients a, which the caller fills in. */
static double *add_row(struct program *p, int what, double low, double high)
{
    p->low[p->qp.rows] = low;
    p->high[p->qp.rows] = high;
    p->what[p->qp.rows] = what;
    return p->A + (size_t)p->qp.rows++ * (size_t)p->qp.n;
}

/* Translates limits into rows of the program. The prediction F u' + d makes bounds on states
 * bounds on F u'. */
static void fill(const struct opc_ilc *c, const double *d, const double *u,
                 const struct opc_ilc_limits *l, struct program *p)
{
    /* |a' - a|^2 <= trust as a box that lies inside the ball. */
    const double radius = l->trust > 0.0 ? sqrt(l->trust / c->m) : INFINITY;
    for (int j = 0; j < c->inputs; j++) {
        const double low = l->u_low ? l->u_low[j] : -INFINITY;
        const double high = l->u_high ? l->u_high[j] : INFINITY;
        if (given(l->u_low, l->u_high, j) || !isinf(radius))
            add_row(p, j, fmax(low, u[j] - radius), fmin(high, u[j] + radius))[j] = 1.0;
    }
    for (int i = 0; i < c->states; i++)
        if (given(l->s_low, l->s_high, i)) {
            double *row = add_row(p, c->inputs + i, (l->s_low ? l->s_low[i] : -INFINITY) - d[i],
                                  (l->s_high ? l->s_high[i] : INFINITY) - d[i]);
            memcpy(row, c->F + (size_t)i * (size_t)c->inputs, (size_t)c->inputs * sizeof *row);
        }
    for (int f = 0; f < l->faces; f++) {
        const double *g = l->G + (size_t)f * (size_t)c->states;
        double *row = add_row(p, c->inputs + c->states + f, -INFINITY,
                              l->h[f] - opc_dense_dot(c->states, g, d));
        opc_dense_mul_ta(c->inputs, c->states, 1, c->F, g, row);
    }
}

/* Says which limit cannot be kept, in terms of actions and states. */
static int refuse(const struct opc_ilc *c, const struct program *p, const struct opc_ilc_limits *l,
                  int row, struct opc_err *err)
{
    const int what = p->what[row];
    if (what < c->inputs && p->low[row] > p->high[row])
        return opc_fail(err, OPC_EUSER,
                        "action %d at t = %d has nowhere to go: its bounds and the trust region "
                        "leave [%g, %g]; raise trust or start within the bounds",
                        what % c->m + 1, what / c->m, p->low[row], p->high[row]);
    if (what < c->inputs)
        return opc_fail(err, OPC_EUSER,
                        "action %d at t = %d cannot stay in [%g, %g] while the states keep their "
                        "bounds; widen one of them",
                        what % c->m + 1, what / c->m, p->low[row], p->high[row]);
    const int i = what - c->inputs;
    if (i < c->states)
        return opc_fail(err, OPC_EUSER,
                        "state %d at t = %d cannot be kept in [%g, %g] with the other bounds%s",
                        i % c->n + 1, i / c->n, l->s_low ? l->s_low[i] : -INFINITY,
                        l->s_high ? l->s_high[i] : INFINITY,
                        i < c->n ? ": no action changes where a trial starts; widen the bounds"
                                 : "; widen them, or those of the actions or the trust region");
    const double *g = l->G + (size_t)(i - c->states) * (size_t)c->states;
    int last = c->states - 1; /* the latest state it is about */
    while (last > 0 && g[last] == 0.0)
        last--;
    return opc_fail(err, OPC_EUSER,
                    "a face of the polytope, on states up to t = %d, cannot be kept with the other "
                    "bounds; move it, or widen those of the actions or the trust region",
                    last / c->n);
}

int opc_ilc_update_within(struct opc_ilc *c, const double *s_ref, const double *d, const double *u,
                          const struct opc_ilc_limits *l, double *next, struct opc_ilc_kept *kept,
                          struct opc_err *err)
{
    /* One row at most for every input, state and face. */
    const size_t U = (size_t)c->inputs, max = U + (size_t)c->states + (size_t)l->faces;
    struct program p = {.A = opc_alloc(max * U, sizeof(double)),
                        .low = opc_alloc(max, sizeof(double)),
                        .high = opc_alloc(max, sizeof(double)),
                        .y = opc_alloc(max, sizeof(double)),
                        .q = opc_alloc(U, sizeof(double)),
                        .what = opc_alloc(max, sizeof(int))};
    double *e = opc_alloc((size_t)c->states, sizeof *e);
    int code = OPC_OK;
    if (!p.A || !p.low || !p.high || !p.y || !p.q || !p.what || !e) {
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for the limits of %d steps", c->T);
    } else {
        p.qp = (struct opc_qp){
            .n = c->inputs, .P = c->H, .q = p.q, .A = p.A, .low = p.low, .high = p.high};
        fill(c, d, u, l, &p);
        /* q = -(F^T M (s_ref - d) + W u) */
        for (int i = 0; i < c->states; i++)
            e[i] = s_ref[i] - d[i];
        const double *g = weighted(c, e);
        for (size_t j = 0; j < U; j++)
            p.q[j] = -(g[j] + c->W[j] * u[j]);
        code = opc_qp_solve(&p.qp, next, p.y, &kept->qp, err);
        if (!code)
            kept->kkt = opc_qp_check(&p.qp, next, p.y);
        else if (kept->qp.row >= 0)
            code = refuse(c, &p, l, kept->qp.row, err);
    }
    opc_free(p.A);
    opc_free(p.low);
    opc_free(p.high);
    opc_free(p.y);
    opc_free(p.q);
    opc_free(p.what);
    opc_free(e);
    return code;
}

/* ---- noise: a Kalman filter over trials ------------------------------------------------------ */

int opc_ilc_filter_create(int size, struct opc_ilc_filter **out, struct opc_err *err)
{
    const size_t n = (size_t)size;
    struct opc_ilc_filter *f = opc_alloc(1, sizeof *f);
    if (!f)
        goto full;
    f->size = size;
    f->d = opc_alloc(n, sizeof *f->d);
    f->P = opc_alloc(n * n, sizeof *f->P);
    f->K = opc_alloc(n * n, sizeof *f->K);
    f->S = opc_alloc(n * n, sizeof *f->S);
    if (!f->d || !f->P || !f->K || !f->S)
        goto full;
    *out = f;
    return OPC_OK;
full:
    opc_ilc_filter_destroy(f);
    return opc_fail(err, OPC_ENOMEM, "not enough memory to filter %d numbers; lower steps", size);
}

void opc_ilc_filter_destroy(struct opc_ilc_filter *f)
{
    if (!f)
        return;
    opc_free(f->d);
    opc_free(f->P);
    opc_free(f->K);
    opc_free(f->S);
    opc_free(f);
}

/* One measurement update; see ilc.h for the equations. */
int opc_ilc_filter_see(struct opc_ilc_filter *f, const double *Omega, const double *Xi,
                       const double *y, struct opc_err *err)
{
    const int n = f->size;
    const size_t all = (size_t)n * (size_t)n;
    if (!f->known) { /* the limit of P -> infinity: K = I, P = Xi */
        memset(f->K, 0, all * sizeof *f->K);
        for (int i = 0; i < n; i++)
            f->K[(size_t)i * (size_t)n + (size_t)i] = 1.0;
        memcpy(f->d, y, (size_t)n * sizeof *y);
        memcpy(f->P, Xi, all * sizeof *Xi);
        f->known = true;
        return OPC_OK;
    }
    /* Prediction: P- = P + Omega, S = P- + Xi. */
    for (size_t i = 0; i < all; i++) {
        f->P[i] += Omega[i];
        f->S[i] = f->P[i] + Xi[i];
    }
    /* Entries that are known and measured exactly, like the start of a trial, have S = 0: there
     * the measurement is taken as it is. A covariance with 0 on its diagonal has zeros in that
     * row. */
    for (size_t i = 0; i < all; i += (size_t)n + 1)
        if (f->S[i] == 0)
            f->S[i] = f->P[i] = 1;
    if (!opc_chol_factor(n, f->S))
        return opc_fail(err, OPC_EUSER,
                        "P + Omega + Xi is singular to this precision; raise drift or "
                        "sensor_noise");
    /* S^-1 P- is K^T, because S and P- are symmetric. */
    opc_chol_solve(n, f->S, n, f->P);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            f->K[(size_t)i * (size_t)n + (size_t)j] = f->P[(size_t)j * (size_t)n + (size_t)i];
    /* d += K (y - d); the factor in S is no longer needed, so it serves as scratch. */
    for (int i = 0; i < n; i++)
        f->S[i] = y[i] - f->d[i];
    for (int i = 0; i < n; i++)
        f->d[i] += opc_dense_dot(n, f->K + (size_t)i * (size_t)n, f->S);
    /* (I - K) P- equals K Xi, which does not subtract nearly equal numbers. Rounding makes it
     * slightly asymmetric, so the two halves are averaged. */
    opc_dense_mul(n, n, n, f->K, Xi, f->P);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            double *a = &f->P[(size_t)i * (size_t)n + (size_t)j];
            double *b = &f->P[(size_t)j * (size_t)n + (size_t)i];
            *a = *b = 0.5 * (*a + *b);
        }
    return OPC_OK;
}
