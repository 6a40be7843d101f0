/* SPDX-License-Identifier: MIT */
/* The linear model of the paper's examples as a predictor with one member. Tests create it, to
 * check the transition models and the paper's claims against numbers known in closed form. Products
 * are summed in double and rounded once, so that a row gets the same bits in any batch, which eq. 5
 * needs. */
#include "model/linear.h"

#include "opc/mem.h"

#include <math.h>
#include <string.h>

static const double SIGMA = 0.05; /* width of the reward, as in env/builtin/linear1d.c */

struct linear {
    struct opc_predictor base;
    double *A, *B; /* [obs][obs] [obs][act] */
};

/* There is nothing to learn; the report says so with zeros. */
static int linear_fit(struct opc_predictor *p, int n, const float *sa, const float *y,
                      const struct opc_fit_plan *plan, struct opc_fit_report *report,
                      struct opc_err *err)
{
    (void)p, (void)n, (void)sa, (void)y, (void)plan, (void)err;
    *report = (struct opc_fit_report){0};
    return OPC_OK;
}

static double dot(int n, const double *row, const float *v)
{
    double sum = 0;
    for (int k = 0; k < n; k++)
        sum += row[k] * (double)v[k];
    return sum;
}

/* y[n][obs + 1]: next state, then the reward of the state the step is taken in. */
static void linear_predict(const struct opc_predictor *p, int n, const float *s, const float *a,
                           const int *elite, struct opc_rng *rng, float *y, struct opc_pool *pool)
{
    (void)elite, (void)rng, (void)pool;
    const struct linear *linear = (const struct linear *)p;
    const int obs = p->obs, act = p->act;
    for (int i = 0; i < n; i++, s += obs, a += act, y += obs + 1) {
        double square = 0;
        /* s' = A s + B a, and |s|^2 / SIGMA^2 on the way. */
        for (int k = 0; k < obs; k++) {
            const double z = (double)s[k] / SIGMA;
            square += z * z;
            y[k] = (float)(dot(obs, linear->A + (size_t)(k * obs), s) +
                           dot(act, linear->B + (size_t)(k * act), a));
        }
        y[obs] = (float)exp(-square);
    }
}

/* J[n][obs + 1][obs + act]: the rows of [A B], then the derivative of the reward, which does not
 * depend on a. */
static int linear_jacobian(const struct opc_predictor *p, int n, const float *s, const float *a,
                           const int *elite, float *J, struct opc_pool *pool, struct opc_err *err)
{
    (void)a, (void)elite, (void)pool, (void)err;
    const struct linear *linear = (const struct linear *)p;
    const int obs = p->obs, act = p->act;
    for (int i = 0; i < n; i++, s += obs) {
        double square = 0;
        /* ds'_k / d(s, a) is row k of [A B]. */
        for (int k = 0; k < obs; k++) {
            for (int c = 0; c < obs; c++)
                *J++ = (float)linear->A[k * obs + c];
            for (int c = 0; c < act; c++)
                *J++ = (float)linear->B[k * act + c];
            const double z = (double)s[k] / SIGMA;
            square += z * z;
        }
        /* d exp(-|s|^2 / SIGMA^2) / ds, and 0 by a. */
        for (int c = 0; c < obs; c++)
            *J++ = (float)(-2 * (double)s[c] / (SIGMA * SIGMA) * exp(-square));
        for (int c = 0; c < act; c++)
            *J++ = 0.0f;
    }
    return OPC_OK;
}

/* Accepts a half-built model. */
static void linear_destroy(struct opc_predictor *p)
{
    struct linear *linear = (struct linear *)p;
    opc_free(linear->A);
    opc_free(linear->B);
    opc_free(linear);
}

static int linear_state(struct opc_predictor *p,
                        int (*visit)(void *ctx, const char *name, void *data, size_t bytes,
                                     struct opc_err *),
                        void *ctx, struct opc_err *err)
{
    struct linear *linear = (struct linear *)p;
    const size_t obs = (size_t)p->obs, act = (size_t)p->act;
    const int code = visit(ctx, "A", linear->A, obs * obs * sizeof *linear->A, err);
    return code ? code : visit(ctx, "B", linear->B, obs * act * sizeof *linear->B, err);
}

static const struct opc_predictor_type linear_type = {
    .name = "linear",
    .fit = linear_fit,
    .predict = linear_predict,
    .destroy = linear_destroy,
    .state = linear_state,
    .jacobian = linear_jacobian,
};

int opc_linear_create(double A, double B, struct opc_predictor **out, struct opc_err *err)
{
    return opc_linear_create_matrix(1, 1, &A, &B, out, err);
}

int opc_linear_create_matrix(int obs, int act, const double *A, const double *B,
                             struct opc_predictor **out, struct opc_err *err)
{
    const size_t a = (size_t)obs * (size_t)obs, b = (size_t)obs * (size_t)act;
    struct linear *linear = opc_alloc(1, sizeof *linear);
    if (!linear)
        goto full;
    linear->base = (struct opc_predictor){
        .type = &linear_type, .obs = obs, .act = act, .members = 1, .elites = 1};
    linear->A = opc_alloc(a, sizeof *linear->A);
    linear->B = opc_alloc(b, sizeof *linear->B);
    if (!linear->A || !linear->B)
        goto full;
    memcpy(linear->A, A, a * sizeof *A);
    memcpy(linear->B, B, b * sizeof *B);
    *out = &linear->base;
    return OPC_OK;
full:
    if (linear)
        linear_destroy(&linear->base);
    return opc_fail(err, OPC_ENOMEM, "not enough memory for a linear model of %d states", obs);
}
