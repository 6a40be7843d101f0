/* SPDX-License-Identifier: MIT */
#include "model/linear.h"

#include "opc/mem.h"

#include <math.h>

static const double SIGMA = 0.05;

struct linear {
    struct opc_predictor base;
    double A, B;
};

static int linear_fit(struct opc_predictor *p, int n, const float *sa, const float *y,
                      const struct opc_fit_plan *plan, struct opc_fit_report *report,
                      struct opc_err *err)
{
    (void)p, (void)n, (void)sa, (void)y, (void)plan, (void)err;
    *report = (struct opc_fit_report){0};
    return OPC_OK;
}

static void linear_predict(const struct opc_predictor *p, int n, const float *s, const float *a,
                           const int *elite, struct opc_rng *rng, float *y, struct opc_pool *pool)
{
    (void)elite, (void)rng, (void)pool;
    const struct linear *m = (const struct linear *)p;
    for (int i = 0; i < n; i++) {
        const double z = (double)s[i] / SIGMA;
        y[2 * i] = (float)(m->A * (double)s[i] + m->B * (double)a[i]);
        y[2 * i + 1] = (float)exp(-z * z);
    }
}

static void linear_destroy(struct opc_predictor *p)
{
    opc_free(p);
}

static int linear_state(struct opc_predictor *p,
                        int (*visit)(void *ctx, const char *name, void *data, size_t bytes,
                                     struct opc_err *),
                        void *ctx, struct opc_err *err)
{
    struct linear *m = (struct linear *)p;
    const int code = visit(ctx, "A", &m->A, sizeof m->A, err);
    return code ? code : visit(ctx, "B", &m->B, sizeof m->B, err);
}

static const struct opc_predictor_type linear_type = {
    .name = "linear",
    .fit = linear_fit,
    .predict = linear_predict,
    .destroy = linear_destroy,
    .state = linear_state,
};

int opc_linear_create(double A, double B, struct opc_predictor **out, struct opc_err *err)
{
    struct linear *m = opc_alloc(1, sizeof *m);
    if (!m)
        return opc_fail(err, OPC_ENOMEM, "no room for a linear model");
    *m = (struct linear){
        .base = {.type = &linear_type, .obs = 1, .act = 1, .members = 1, .elites = 1},
        .A = A,
        .B = B,
    };
    *out = &m->base;
    return OPC_OK;
}
