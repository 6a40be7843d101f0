/* SPDX-License-Identifier: MIT */
/* Norm-optimal ILC: the lifted system, linearisation, the update in closed form and as a
 * quadratic program, and a Kalman filter over trials. ilc_run.c calls it.
 *
 * Invariant: states and inputs are stacked in time order (s_0 first, a_0 first), row-major;
 * every matrix here has that order. Everything is double. */
#include "study/ilc/ilc.h"

#include "num/solve/dense.h"
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
    /* s_0 first, then each state from the one before. */
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
    /* x holds state and action, plus and minus the next states on either side. */
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
            /* Column j of A_t or of B_t. */
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

int opc_linearise_learned(const struct opc_predictor *model, int T, const double *low,
                          const double *high, const double *s, const double *u, double *A,
                          double *B, struct opc_pool *pool, struct opc_err *err)
{
    const int n = model->obs, m = model->act, in = n + m;
    const size_t rows = (size_t)T, each = (size_t)(n + 1) * (size_t)in;
    /* One row for each step; J is [T][n + 1][n + m]. */
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
    for (int e = 0; !code && e < model->elites; e++) {
        for (int t = 0; t < T; t++)
            elite[t] = e;
        code = opc_predictor_jacobian(model, T, state, action, elite, J, pool, err);
        for (int t = 0; !code && t < T; t++)
            for (int i = 0; i < n; i++) {
                /* J holds rows for n states and the reward, which is not used. */
                const float *row = J + (size_t)t * each + (size_t)(i * in);
                for (int j = 0; j < n; j++)
                    A[(t * n + i) * n + j] += (double)row[j] / model->elites;
                for (int j = 0; j < m; j++)
                    B[(t * n + i) * m + j] +=
                        (double)row[n + j] * 2.0 / (high[j] - low[j]) / model->elites;
            }
    }
    opc_free(state);
    opc_free(action);
    opc_free(J);
    opc_free(elite);
    return code;
}

/* ---- the update ------------------------------------------------------------------------------ */

/* The lifted system of one model, with everything that the update needs. */
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
    struct opc_ilc *ilc = opc_alloc(1, sizeof *ilc);
    if (!ilc)
        goto full;
    *ilc = (struct opc_ilc){.n = n, .m = m, .T = T, .states = (T + 1) * n, .inputs = T * m};
    const size_t N = (size_t)ilc->states, U = (size_t)ilc->inputs;
    ilc->M = opc_alloc(N, sizeof *ilc->M);
    ilc->W = opc_alloc(U, sizeof *ilc->W);
    ilc->F = opc_alloc(N * U, sizeof *ilc->F);
    ilc->H = opc_alloc(U * U, sizeof *ilc->H);
    ilc->L = opc_alloc(U * U, sizeof *ilc->L);
    ilc->work = opc_alloc(N * U + N + U, sizeof *ilc->work);
    if (!ilc->M || !ilc->W || !ilc->F || !ilc->H || !ilc->L || !ilc->work)
        goto full;
    memcpy(ilc->M, M, N * sizeof *M);
    memcpy(ilc->W, W, U * sizeof *W);
    *out = ilc;
    return OPC_OK;
full:
    opc_ilc_destroy(ilc);
    return opc_fail(err, OPC_ENOMEM,
                    "not enough memory to lift %d states over %d steps; lower steps", n, T);
}

/* Accepts a partly built object. */
void opc_ilc_destroy(struct opc_ilc *ilc)
{
    if (!ilc)
        return;
    opc_free(ilc->M);
    opc_free(ilc->W);
    opc_free(ilc->F);
    opc_free(ilc->H);
    opc_free(ilc->L);
    opc_free(ilc->work);
    opc_free(ilc);
}

/* Lifts the model and factors the quadratic form. */
int opc_ilc_model(struct opc_ilc *ilc, const double *A, const double *B, struct opc_err *err)
{
    const size_t U = (size_t)ilc->inputs;
    opc_lift(ilc->n, ilc->m, ilc->T, A, B, ilc->F);
    /* work = M F, then H = F^T M F + W. W alone makes H positive definite where M F vanishes. */
    for (int i = 0; i < ilc->states; i++)
        for (size_t j = 0; j < U; j++)
            ilc->work[(size_t)i * U + j] = ilc->M[i] * ilc->F[(size_t)i * U + j];
    opc_dense_mul_ta(ilc->inputs, ilc->states, ilc->inputs, ilc->F, ilc->work, ilc->H);
    for (size_t j = 0; j < U; j++)
        ilc->H[j * U + j] += ilc->W[j];
    /* The factor overwrites its argument, and H is needed for updates within limits. */
    memcpy(ilc->L, ilc->H, U * U * sizeof *ilc->L);
    if (!opc_chol_factor(ilc->inputs, ilc->L))
        return opc_fail(err, OPC_EUSER,
                        "F^T M F + W is not positive definite: some input has no effect that is "
                        "weighted; raise weight_action");
    return OPC_OK;
}

const double *opc_ilc_lifted(const struct opc_ilc *ilc)
{
    return ilc->F;
}

void opc_ilc_predict(const struct opc_ilc *ilc, const double *u, const double *d, double *s)
{
    for (int i = 0; i < ilc->states; i++)
        s[i] = d[i] + opc_dense_dot(ilc->inputs, ilc->F + (size_t)i * (size_t)ilc->inputs, u);
}

void opc_ilc_disturbance(const struct opc_ilc *ilc, const double *s, const double *u, double *d)
{
    for (int i = 0; i < ilc->states; i++)
        d[i] = s[i] - opc_dense_dot(ilc->inputs, ilc->F + (size_t)i * (size_t)ilc->inputs, u);
}

/* F^T M e, left in ilc->work after the first `states` numbers. */
static double *weighted_error(struct opc_ilc *ilc, const double *e)
{
    double *Me = ilc->work, *g = ilc->work + ilc->states;
    for (int i = 0; i < ilc->states; i++)
        Me[i] = ilc->M[i] * e[i];
    opc_dense_mul_ta(ilc->inputs, ilc->states, 1, ilc->F, Me, g);
    return g;
}

/* u' = u + (F^T M F + W)^-1 F^T M e, with the factor from opc_ilc_model. */
void opc_ilc_update(struct opc_ilc *ilc, const double *e, const double *u, double *next)
{
    double *step = weighted_error(ilc, e);
    opc_chol_solve(ilc->inputs, ilc->L, 1, step);
    for (int j = 0; j < ilc->inputs; j++)
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
static bool is_bounded(const double *low, const double *high, int i)
{
    return (low && !isinf(low[i])) || (high && !isinf(high[i]));
}

/* Adds a row low <= a u' <= high and returns its coefficients a, which the caller fills in. */
static double *add_program_row(struct program *program, int what, double low, double high)
{
    program->low[program->qp.rows] = low;
    program->high[program->qp.rows] = high;
    program->what[program->qp.rows] = what;
    return program->A + (size_t)program->qp.rows++ * (size_t)program->qp.n;
}

/* Translates limits into rows of the program. The prediction F u' + d makes bounds on states
 * bounds on F u'. */
static void fill_program(const struct opc_ilc *ilc, const double *d, const double *u,
                         const struct opc_ilc_limits *limits, struct program *program)
{
    /* |a' - a|^2 <= trust as a box that lies inside the ball. */
    const double radius = limits->trust > 0.0 ? sqrt(limits->trust / ilc->m) : INFINITY;
    /* Bounds on inputs, intersected with the trust region. */
    for (int j = 0; j < ilc->inputs; j++) {
        const double low = limits->u_low ? limits->u_low[j] : -INFINITY;
        const double high = limits->u_high ? limits->u_high[j] : INFINITY;
        if (is_bounded(limits->u_low, limits->u_high, j) || !isinf(radius))
            add_program_row(program, j, fmax(low, u[j] - radius), fmin(high, u[j] + radius))[j] =
                1.0;
    }
    /* Bounds on states: row i of F, shifted by d. */
    for (int i = 0; i < ilc->states; i++)
        if (is_bounded(limits->s_low, limits->s_high, i)) {
            double *row = add_program_row(program, ilc->inputs + i,
                                          (limits->s_low ? limits->s_low[i] : -INFINITY) - d[i],
                                          (limits->s_high ? limits->s_high[i] : INFINITY) - d[i]);
            memcpy(row, ilc->F + (size_t)i * (size_t)ilc->inputs,
                   (size_t)ilc->inputs * sizeof *row);
        }
    /* Faces G s <= h: G F u' <= h - G d. */
    for (int f = 0; f < limits->faces; f++) {
        const double *g = limits->G + (size_t)f * (size_t)ilc->states;
        double *row = add_program_row(program, ilc->inputs + ilc->states + f, -INFINITY,
                                      limits->h[f] - opc_dense_dot(ilc->states, g, d));
        opc_dense_mul_ta(ilc->inputs, ilc->states, 1, ilc->F, g, row);
    }
}

/* Says which limit cannot be kept, in terms of actions and states. */
static int refuse_limit(const struct opc_ilc *ilc, const struct program *program,
                        const struct opc_ilc_limits *limits, int row, struct opc_err *err)
{
    /* Rows were numbered inputs first, then states, then faces. */
    const int what = program->what[row];
    if (what < ilc->inputs && program->low[row] > program->high[row])
        return opc_fail(err, OPC_EUSER,
                        "action %d at t = %d has nowhere to go: its bounds and the trust region "
                        "leave [%g, %g]; raise trust or start within the bounds",
                        what % ilc->m + 1, what / ilc->m, program->low[row], program->high[row]);
    if (what < ilc->inputs)
        return opc_fail(err, OPC_EUSER,
                        "action %d at t = %d cannot stay in [%g, %g] while the states keep their "
                        "bounds; widen one of them",
                        what % ilc->m + 1, what / ilc->m, program->low[row], program->high[row]);
    /* No input at all can move the state a trial starts in. */
    const int i = what - ilc->inputs;
    if (i < ilc->states)
        return opc_fail(err, OPC_EUSER,
                        "state %d at t = %d cannot be kept in [%g, %g] with the other bounds%s",
                        i % ilc->n + 1, i / ilc->n, limits->s_low ? limits->s_low[i] : -INFINITY,
                        limits->s_high ? limits->s_high[i] : INFINITY,
                        i < ilc->n ? ": no action changes where a trial starts; widen the bounds"
                                   : "; widen them, or those of the actions or the trust region");
    const double *g = limits->G + (size_t)(i - ilc->states) * (size_t)ilc->states;
    int last = ilc->states - 1; /* the latest state it is about */
    while (last > 0 && g[last] == 0.0)
        last--;
    return opc_fail(err, OPC_EUSER,
                    "a face of the polytope, on states up to t = %d, cannot be kept with the other "
                    "bounds; move it, or widen those of the actions or the trust region",
                    last / ilc->n);
}

int opc_ilc_update_within(struct opc_ilc *ilc, const double *s_ref, const double *d,
                          const double *u, const struct opc_ilc_limits *limits, double *next,
                          struct opc_ilc_kept *kept, struct opc_err *err)
{
    /* One row at most for every input, state and face. */
    const size_t U = (size_t)ilc->inputs, max = U + (size_t)ilc->states + (size_t)limits->faces;
    struct program program = {.A = opc_alloc(max * U, sizeof(double)),
                              .low = opc_alloc(max, sizeof(double)),
                              .high = opc_alloc(max, sizeof(double)),
                              .y = opc_alloc(max, sizeof(double)),
                              .q = opc_alloc(U, sizeof(double)),
                              .what = opc_alloc(max, sizeof(int))};
    double *e = opc_alloc((size_t)ilc->states, sizeof *e);
    int code = OPC_OK;
    if (!program.A || !program.low || !program.high || !program.y || !program.q || !program.what ||
        !e) {
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for the limits of %d steps", ilc->T);
    } else {
        program.qp = (struct opc_qp){.n = ilc->inputs,
                                     .P = ilc->H,
                                     .q = program.q,
                                     .A = program.A,
                                     .low = program.low,
                                     .high = program.high};
        fill_program(ilc, d, u, limits, &program);
        /* q = -(F^T M (s_ref - d) + W u) */
        for (int i = 0; i < ilc->states; i++)
            e[i] = s_ref[i] - d[i];
        const double *g = weighted_error(ilc, e);
        for (size_t j = 0; j < U; j++)
            program.q[j] = -(g[j] + ilc->W[j] * u[j]);
        /* An infeasible program names the row that cannot be kept. */
        code = opc_qp_solve(&program.qp, next, program.y, &kept->qp, err);
        if (!code)
            kept->kkt = opc_qp_check(&program.qp, next, program.y);
        else if (kept->qp.row >= 0)
            code = refuse_limit(ilc, &program, limits, kept->qp.row, err);
    }
    opc_free(program.A);
    opc_free(program.low);
    opc_free(program.high);
    opc_free(program.y);
    opc_free(program.q);
    opc_free(program.what);
    opc_free(e);
    return code;
}

/* ---- noise: a Kalman filter over trials ------------------------------------------------------ */

/* Allocates; known stays false until the first measurement. */
int opc_ilc_filter_create(int size, struct opc_ilc_filter **out, struct opc_err *err)
{
    const size_t n = (size_t)size;
    struct opc_ilc_filter *filter = opc_alloc(1, sizeof *filter);
    if (!filter)
        goto full;
    filter->size = size;
    filter->d = opc_alloc(n, sizeof *filter->d);
    filter->P = opc_alloc(n * n, sizeof *filter->P);
    filter->K = opc_alloc(n * n, sizeof *filter->K);
    filter->S = opc_alloc(n * n, sizeof *filter->S);
    if (!filter->d || !filter->P || !filter->K || !filter->S)
        goto full;
    *out = filter;
    return OPC_OK;
full:
    opc_ilc_filter_destroy(filter);
    return opc_fail(err, OPC_ENOMEM, "not enough memory to filter %d numbers; lower steps", size);
}

void opc_ilc_filter_destroy(struct opc_ilc_filter *filter)
{
    if (!filter)
        return;
    opc_free(filter->d);
    opc_free(filter->P);
    opc_free(filter->K);
    opc_free(filter->S);
    opc_free(filter);
}

/* One measurement update; see ilc.h for the equations. */
int opc_ilc_filter_see(struct opc_ilc_filter *filter, const double *Omega, const double *Xi,
                       const double *y, struct opc_err *err)
{
    const int n = filter->size;
    const size_t all = (size_t)n * (size_t)n;
    if (!filter->known) { /* the limit of P -> infinity: K = I, P = Xi */
        memset(filter->K, 0, all * sizeof *filter->K);
        for (int i = 0; i < n; i++)
            filter->K[(size_t)i * (size_t)n + (size_t)i] = 1.0;
        memcpy(filter->d, y, (size_t)n * sizeof *y);
        memcpy(filter->P, Xi, all * sizeof *Xi);
        filter->known = true;
        return OPC_OK;
    }
    /* Prediction: P- = P + Omega, S = P- + Xi. */
    for (size_t i = 0; i < all; i++) {
        filter->P[i] += Omega[i];
        filter->S[i] = filter->P[i] + Xi[i];
    }
    /* Entries that are known and measured exactly, like the start of a trial, have S = 0: there
     * the measurement is taken as it is. A covariance with 0 on its diagonal has zeros in that
     * row. */
    for (size_t i = 0; i < all; i += (size_t)n + 1)
        if (filter->S[i] == 0)
            filter->S[i] = filter->P[i] = 1;
    if (!opc_chol_factor(n, filter->S))
        return opc_fail(err, OPC_EUSER,
                        "P + Omega + Xi is singular to this precision; raise drift or "
                        "sensor_noise");
    /* S^-1 P- is K^T, because S and P- are symmetric. */
    opc_chol_solve(n, filter->S, n, filter->P);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            filter->K[(size_t)i * (size_t)n + (size_t)j] =
                filter->P[(size_t)j * (size_t)n + (size_t)i];
    /* d += K (y - d); the factor in S is no longer needed, so it serves as scratch. */
    for (int i = 0; i < n; i++)
        filter->S[i] = y[i] - filter->d[i];
    for (int i = 0; i < n; i++)
        filter->d[i] += opc_dense_dot(n, filter->K + (size_t)i * (size_t)n, filter->S);
    /* (I - K) P- equals K Xi, which does not subtract nearly equal numbers. Rounding makes it
     * slightly asymmetric, so the two halves are averaged. */
    opc_dense_mul(n, n, n, filter->K, Xi, filter->P);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            double *a = &filter->P[(size_t)i * (size_t)n + (size_t)j];
            double *b = &filter->P[(size_t)j * (size_t)n + (size_t)i];
            *a = *b = 0.5 * (*a + *b);
        }
    return OPC_OK;
}
