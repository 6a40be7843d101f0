/* SPDX-License-Identifier: MIT */
/* opc bench gemm, opc bench fit */
#include "base/pool.h"
#include "cli/bench/bench.h"
#include "model/ensemble.h"
#include "num/kernel.h"
#include "num/normal.h"
#include "opc/mem.h"

#include <stdio.h>

static void fill(float *x, size_t n, uint32_t index)
{
    struct opc_rng r = opc_rng_stream(1, OPC_USE_TEST, 0, index);
    opc_rng_normals(&r, (int)n, x);
}

/* ---- the three products of a layer ----------------------------------------------------------- */

struct layer {
    struct opc_bench *b;
    int in, out, ld, panels;
    float *x, *w, *bias, *y, *dx, *dw, *transposed;
};

static size_t span(int features)
{
    return (size_t)features * OPC_PANEL;
}

static void forward_some(void *ctx, int p0, int p1, int worker)
{
    (void)worker;
    const struct layer *l = ctx;
    opc_kernels()->forward(p1 - p0, l->in, l->out, l->w, l->ld, l->bias,
                           l->x + (size_t)p0 * span(l->in), span(l->in), OPC_LINEAR,
                           l->y + (size_t)p0 * span(l->out), span(l->out), NULL);
}

static void dx_some(void *ctx, int p0, int p1, int worker)
{
    (void)worker;
    const struct layer *l = ctx;
    opc_kernels()->back_input(p1 - p0, l->in, l->out, l->w, l->ld, l->y + (size_t)p0 * span(l->out),
                              span(l->out), OPC_LINEAR, NULL, l->dx + (size_t)p0 * span(l->in),
                              span(l->in));
}

static void dw_some(void *ctx, int o0, int o1, int worker)
{
    (void)worker;
    const struct layer *l = ctx;
    opc_kernels()->back_weight(l->b->batch, l->panels, l->in, o0, o1, l->transposed, l->y,
                               span(l->out), l->dw, l->ld);
}

static int per_thread(const struct layer *l, int items)
{
    return (items + l->b->threads - 1) / l->b->threads;
}

static int run_forward(void *ctx, struct opc_err *err)
{
    (void)err;
    struct layer *l = ctx;
    opc_pool_each(l->b->pool, l->panels, per_thread(l, l->panels), forward_some, l);
    return OPC_OK;
}

static int run_dx(void *ctx, struct opc_err *err)
{
    (void)err;
    struct layer *l = ctx;
    opc_pool_each(l->b->pool, l->panels, per_thread(l, l->panels), dx_some, l);
    return OPC_OK;
}

static int run_dw(void *ctx, struct opc_err *err)
{
    (void)err;
    struct layer *l = ctx;
    opc_pool_each(l->b->pool, l->out, per_thread(l, l->out), dw_some, l);
    return OPC_OK;
}

static int run_transpose(void *ctx, struct opc_err *err)
{
    (void)err;
    struct layer *l = ctx;
    opc_kernels()->turn(0, l->panels, l->panels, l->in, l->x, span(l->in), l->transposed);
    return OPC_OK;
}

static int one_layer(struct opc_bench *b, int in, int out, struct opc_err *err)
{
    const int panels = opc_panels(b->batch), ld = (in + 7) / 8 * 8 + (in % 64 ? 0 : 8);
    const size_t rows = (size_t)panels * OPC_PANEL, weights = (size_t)out * (size_t)ld;
    struct opc_arena a = {0};
    const size_t floats = rows * (size_t)(2 * in + out) + 2 * weights + (size_t)out +
                          opc_transposed_size(panels, in) + 8 * 16;
    int code = opc_arena_create(floats * sizeof(float), &a, err);
    if (code)
        return code;
    struct layer l = {.b = b, .in = in, .out = out, .ld = ld, .panels = panels};
    l.x = opc_floats(&a, rows, (size_t)in);
    l.dx = opc_floats(&a, rows, (size_t)in);
    l.y = opc_floats(&a, rows, (size_t)out);
    l.w = opc_floats(&a, weights, 1);
    l.dw = opc_floats(&a, weights, 1);
    l.bias = opc_floats(&a, (size_t)out, 1);
    l.transposed = opc_floats(&a, opc_transposed_size(panels, in), 1);
    fill(l.x, rows * (size_t)in, 1);
    fill(l.w, weights, 2);
    fill(l.bias, (size_t)out, 3);
    run_transpose(&l, err);

    const double flops = 2.0 * in * out * b->batch;
    const struct {
        const char *name;
        double flops;
        int (*run)(void *, struct opc_err *);
    } products[] = {{"forward", flops, run_forward},
                    {"dX", flops, run_dx},
                    {"dW", flops, run_dw},
                    {"turn (before dW)", 0.0, run_transpose}};
    for (size_t i = 0; !code && i < sizeof products / sizeof *products; i++) {
        char name[64];
        snprintf(name, sizeof name, "gemm %d->%d %s", in, out, products[i].name);
        struct opc_bench_work w = {.name = name,
                                   .hidden = out,
                                   .batch = b->batch,
                                   .flops = products[i].flops,
                                   .run = products[i].run,
                                   .ctx = &l};
        code = opc_bench_measure(b, &w, err);
    }
    opc_arena_destroy(&a);
    return code;
}

int opc_bench_gemm(struct opc_bench *b, struct opc_err *err)
{
    static const int usual[] = {64, 200, 256};
    int code = OPC_OK;
    for (size_t i = 0; !code && i < sizeof usual / sizeof *usual; i++)
        if (!b->hidden || i == 0) {
            const int h = b->hidden ? b->hidden : usual[i];
            code = one_layer(b, h, h, err);
        }
    if (!code)
        code = one_layer(b, b->obs + b->act, b->hidden ? b->hidden : 200, err);
    return code;
}

/* ---- one minibatch of the ensemble ----------------------------------------------------------- */

enum { DATA = 20000 };

struct minibatch {
    struct opc_trainer *trainer;
    int batch, members, at;
    int *index; /* [members][DATA] */
};

static int run_fit(void *ctx, struct opc_err *err)
{
    struct minibatch *m = ctx;
    const double loss = opc_trainer_step(m->trainer, m->batch, m->index + m->at, DATA);
    m->at = (m->at + m->batch) % (DATA - m->batch);
    if (!(loss == loss))
        return opc_fail(err, OPC_EDIVERGED, "the benchmark's model diverged");
    return OPC_OK;
}

double opc_bench_fit_flops(int in, int hidden, int layers, int out)
{
    const double first = 2.0 * in * hidden;
    const double rest = 2.0 * hidden * ((double)hidden * (layers - 1) + out);
    return 2.0 * (first + rest) + rest;
}

int opc_bench_fit(struct opc_bench *b, struct opc_err *err)
{
    struct opc_ensemble_config config;
    int code = opc_section_defaults(&opc_ensemble_section, &config, err);
    if (code)
        return code;
    const int in = b->obs + b->act, dim = b->obs + 1;
    for (int l = 0; b->hidden && l < config.hidden.n; l++)
        config.hidden.at[l] = b->hidden;
    config.batch_size = b->batch;

    struct opc_predictor *model = NULL;
    struct minibatch m = {.batch = b->batch < DATA / 2 ? b->batch : DATA / 2,
                          .members = config.members};
    float *sa = opc_alloc((size_t)DATA * (size_t)in, sizeof *sa);
    float *y = opc_alloc((size_t)DATA * (size_t)dim, sizeof *y);
    m.index = opc_alloc((size_t)config.members * DATA, sizeof *m.index);
    if (!sa || !y || !m.index)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for the benchmark's data");
    if (!code) {
        fill(sa, (size_t)DATA * (size_t)in, 4);
        for (int i = 0; i < DATA; i++)
            for (int j = 0; j < dim; j++)
                y[(size_t)i * (size_t)dim + (size_t)j] =
                    0.1f * sa[(size_t)i * (size_t)in + (size_t)(j % in)];
        struct opc_rng r = opc_rng_stream(1, OPC_USE_TEST, 0, 5);
        for (int i = 0; i < config.members * DATA; i++)
            m.index[i] = (int)opc_rng_below(&r, DATA);
        code = opc_ensemble_make(&config, b->obs, b->act, b->threads, 1, 0, &model, err);
    }
    if (!code)
        code = opc_trainer_create(model, DATA, sa, y, b->pool, &m.trainer, err);
    if (!code) {
        const int h = config.hidden.at[0];
        char name[64];
        snprintf(name, sizeof name, "fit %d x %dx%d", config.members, config.hidden.n, h);
        struct opc_bench_work w = {.name = name,
                                   .hidden = h,
                                   .batch = m.batch,
                                   .flops = config.members * (double)m.batch *
                                            opc_bench_fit_flops(in, h, config.hidden.n, 2 * dim),
                                   .run = run_fit,
                                   .ctx = &m};
        code = opc_bench_measure(b, &w, err);
    }
    opc_trainer_destroy(m.trainer);
    opc_predictor_destroy(model);
    opc_free(m.index);
    opc_free(sa);
    opc_free(y);
    return code;
}
