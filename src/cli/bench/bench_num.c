/* SPDX-License-Identifier: MIT */
/* opc bench gemm - the three products of a layer: forward, dX and dW, and the transpose before dW.
 * opc bench fit - one minibatch of the whole ensemble.
 *
 * Both call what training calls, num/kernel.h and model/ensemble.h, on random numbers of a fixed
 * seed. Rows come in panels of OPC_PANEL, which the kernels require. */
#include "base/pool.h"
#include "cli/bench/bench.h"
#include "model/ensemble.h"
#include "num/kernel.h"
#include "num/normal.h"
#include "opc/mem.h"

#include <stdio.h>

/* Standard normal numbers; index chooses the stream. */
static void fill_normals(float *x, size_t n, uint32_t index)
{
    struct opc_rng r = opc_rng_stream(1, OPC_USE_TEST, 0, index);
    opc_rng_normals(&r, (int)n, x);
}

/* ---- the three products of a layer ----------------------------------------------------------- */

/* One layer with its input, output and gradients, in the layout of num/kernel.h. */
struct layer {
    struct opc_bench *b;
    int in, out;          /* features */
    int ld, panels;       /* floats between rows of w; panels of the batch */
    float *x, *y, *dx;    /* [panels][features][OPC_PANEL]; y doubles as dY */
    float *w, *bias, *dw; /* [out][ld], [out], [out][ld] */
    float *transposed;    /* x as the dW kernel reads it */
};

/* Floats of one panel. */
static size_t panel_size(int features)
{
    return (size_t)features * OPC_PANEL;
}

/* Chunks of the pool: panels p0 .. p1 - 1 of y = W x + b. */
static void forward_some(void *ctx, int p0, int p1, int worker)
{
    (void)worker;
    const struct layer *layer = ctx;
    opc_kernels()->forward(p1 - p0, layer->in, layer->out, layer->w, layer->ld, layer->bias,
                           layer->x + (size_t)p0 * panel_size(layer->in), panel_size(layer->in),
                           OPC_ACTIVATION_LINEAR, layer->y + (size_t)p0 * panel_size(layer->out),
                           panel_size(layer->out), NULL);
}

/* Panels p0 .. p1 - 1 of dX = W^T dY. */
static void dx_some(void *ctx, int p0, int p1, int worker)
{
    (void)worker;
    const struct layer *layer = ctx;
    opc_kernels()->back_input(p1 - p0, layer->in, layer->out, layer->w, layer->ld,
                              layer->y + (size_t)p0 * panel_size(layer->out),
                              panel_size(layer->out), OPC_ACTIVATION_LINEAR, NULL,
                              layer->dx + (size_t)p0 * panel_size(layer->in),
                              panel_size(layer->in));
}

/* Rows o0 .. o1 - 1 of dW = dY X^T: threads share outputs here, not panels. */
static void dw_some(void *ctx, int o0, int o1, int worker)
{
    (void)worker;
    const struct layer *layer = ctx;
    opc_kernels()->back_weight(layer->b->batch, layer->panels, layer->in, o0, o1, layer->transposed,
                               layer->y, panel_size(layer->out), layer->dw, layer->ld);
}

/* One chunk for each thread: work without any balancing. */
static int per_thread(const struct layer *layer, int items)
{
    return (items + layer->b->threads - 1) / layer->b->threads;
}

static int run_forward(void *ctx, struct opc_err *err)
{
    (void)err;
    struct layer *layer = ctx;
    opc_pool_each(layer->b->pool, layer->panels, per_thread(layer, layer->panels), forward_some,
                  layer);
    return OPC_OK;
}

static int run_dx(void *ctx, struct opc_err *err)
{
    (void)err;
    struct layer *layer = ctx;
    opc_pool_each(layer->b->pool, layer->panels, per_thread(layer, layer->panels), dx_some, layer);
    return OPC_OK;
}

static int run_dw(void *ctx, struct opc_err *err)
{
    (void)err;
    struct layer *layer = ctx;
    opc_pool_each(layer->b->pool, layer->out, per_thread(layer, layer->out), dw_some, layer);
    return OPC_OK;
}

static int run_transpose(void *ctx, struct opc_err *err)
{
    (void)err;
    struct layer *layer = ctx;
    opc_kernels()->transpose(0, layer->panels, layer->panels, layer->in, layer->x,
                             panel_size(layer->in), layer->transposed);
    return OPC_OK;
}

static int one_layer(struct opc_bench *b, int in, int out, struct opc_err *err)
{
    /* ld is padded to whole vectors, and by one more where rows would fall on the same cache sets.
     */
    const int panels = opc_panels(b->batch), ld = (in + 7) / 8 * 8 + (in % 64 ? 0 : 8);
    const size_t rows = (size_t)panels * OPC_PANEL, weights = (size_t)out * (size_t)ld;
    struct opc_arena arena = {0};
    /* x and dx, y, w and dw, bias and the transpose; 8 x 16 floats for the alignment of each. */
    const size_t floats = rows * (size_t)(2 * in + out) + 2 * weights + (size_t)out +
                          opc_transposed_size(panels, in) + 8 * 16;
    int code = opc_arena_create(floats * sizeof(float), &arena, err);
    if (code)
        return code;
    struct layer layer = {.b = b, .in = in, .out = out, .ld = ld, .panels = panels};
    layer.x = opc_floats(&arena, rows, (size_t)in);
    layer.dx = opc_floats(&arena, rows, (size_t)in);
    layer.y = opc_floats(&arena, rows, (size_t)out);
    layer.w = opc_floats(&arena, weights, 1);
    layer.dw = opc_floats(&arena, weights, 1);
    layer.bias = opc_floats(&arena, (size_t)out, 1);
    layer.transposed = opc_floats(&arena, opc_transposed_size(panels, in), 1);
    fill_normals(layer.x, rows * (size_t)in, 1);
    fill_normals(layer.w, weights, 2);
    fill_normals(layer.bias, (size_t)out, 3);
    /* dW reads the transpose, which must exist before it is measured. */
    run_transpose(&layer, err);

    /* Each product is in x out multiply-adds for every row. */
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
        /* A line for each product; the transpose has no arithmetic, so only its time counts. */
        struct opc_bench_work w = {.name = name,
                                   .hidden = out,
                                   .batch = b->batch,
                                   .flops = products[i].flops,
                                   .run = products[i].run,
                                   .ctx = &layer};
        code = opc_bench_measure(b, &w, err);
    }
    opc_arena_destroy(&arena);
    return code;
}

/* Square layers of the widths that agents and models use, then the first layer of a model. */
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

/* The state of "fit": where the next minibatch starts in the shuffled indices. */
struct minibatch {
    struct opc_trainer *trainer;
    int batch, members, at;
    int *index; /* [members][DATA] */
};

/* One gradient step of all members, each on its own rows. */
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
    /* Forward and dW for all layers; dX for all but the first, whose input needs no gradient. */
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
    /* The defaults of the ensemble, except for the width and the batch. */
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
        /* Targets are a linear function of the inputs, so the loss stays finite. */
        fill_normals(sa, (size_t)DATA * (size_t)in, 4);
        for (int i = 0; i < DATA; i++)
            for (int j = 0; j < dim; j++)
                y[(size_t)i * (size_t)dim + (size_t)j] =
                    0.1f * sa[(size_t)i * (size_t)in + (size_t)(j % in)];
        /* Each member has random rows of its own. */
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
