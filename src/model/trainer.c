/* SPDX-License-Identifier: MIT */
/* Gradient steps of the ensemble, by maximum likelihood, and its holdout error. fit.c decides which
 * rows they are of and when to stop.
 *
 * A gradient step of all members is one or two passes of the pool. With T threads, as many members
 * as T divides go whole to a thread, which takes each layer's gradient and updates its weights
 * while they are in the cache (train_member). The members left over are split by panels for forward
 * and backward (forward_backward), and then by outputs for the weights (weight_gradient), because
 * those gradients sum over rows. The bounds of the log-variance belong to all members: each panel
 * of each member leaves its part of their gradient in a slot, and the slots are added in order at
 * the end. A change must keep the order of every sum: no bit of the result depends on T. */
#include "base/pool.h"
#include "model/ensemble_private.h"

#include <string.h>

struct opc_trainer {
    struct opc_ensemble *ensemble;
    struct opc_pool *pool;
    int threads, whole, split; /* members 0 .. whole-1 go whole to a thread, the rest are split */
    int n, columns;            /* of the table: in scaled inputs, then dim targets */
    float *table;              /* [n][columns] */

    /* A place holds what one forward and backward pass needs. Thread i trains whole members in
     * place i; each split member has a place of its own after them, which all threads share. */
    struct opc_tape **tape;      /* [threads + split] */
    float **batch, **grad;       /* [threads + split]: [panels][columns][16], [each] */
    struct opc_arena *scratch;   /* [threads] */
    struct opc_gauss_slot *slot; /* [members][panels] loss and gradient by the bounds */
    float *slot_bounds;          /* [members][panels][2][dim] memory of the slots */
    float *bound_grad;           /* [sets][2][dim] */

    /* The gradient step under way: see opc_trainer_step. */
    int rows, panels;
    const int *index;
    size_t apart;
};

/* Panels of a full batch: the stride of `slot` from one member to the next. */
static int max_panels(const struct opc_trainer *trainer)
{
    return opc_panels(trainer->ensemble->config.batch_size);
}

/* ---- one gradient step ----------------------------------------------------------------------- */

/* L2 penalty of a layer's weights: model.weight_decay has one number for all layers or one for
 * each. The default is spread over other numbers of layers: the first and the last number stay with
 * the first and the last layer. */
static double decay_of(const struct opc_ensemble *ensemble, int layer)
{
    const struct opc_reals *d = &ensemble->config.weight_decay;
    const int last = ensemble->config.hidden.n; /* the output layer */
    return d->at[last > 0 ? (layer * (d->n - 1) + last / 2) / last : d->n - 1];
}

/* Adam on the weights and biases of outputs o0 .. o1-1 of one layer of a member. */
static void apply_adam(struct opc_ensemble *ensemble, int member, int l, int o0, int o1,
                       const float *grad)
{
    const struct opc_layer *layer = &ensemble->net->layer[l];
    const size_t base = (size_t)member * ensemble->net->each, ld = (size_t)layer->ld;
    const size_t w = layer->weight + (size_t)o0 * ld, b = layer->bias + (size_t)o0;
    const double decay = decay_of(ensemble, l);
    opc_adam_range(ensemble->adam, base + w, (size_t)(o1 - o0) * ld, decay, grad + w,
                   ensemble->net->param + base + w);
    opc_adam_range(ensemble->adam, base + b, (size_t)(o1 - o0),
                   ensemble->config.decay_biases ? decay : 0.0, grad + b,
                   ensemble->net->param + base + b);
}

/* Gathers the batch of panels p0 .. p1-1 of a member, runs it forward, and fills dy of the last
 * layer with the gradient of the negative log-likelihood. */
static void forward_and_loss(struct opc_trainer *trainer, int member, int p0, int p1,
                             struct opc_tape *tape, float *batch, struct opc_arena *scratch)
{
    const struct opc_ensemble *ensemble = trainer->ensemble;
    const size_t xs = (size_t)trainer->columns * OPC_PANEL,
                 ys = (size_t)(2 * ensemble->dim) * OPC_PANEL;
    const int last = ensemble->net->shape.layers - 1, end = p1 * OPC_PANEL;
    opc_kernels()->gather((end < trainer->rows ? end : trainer->rows) - p0 * OPC_PANEL,
                          trainer->columns, trainer->table, (size_t)trainer->columns,
                          trainer->index + (size_t)member * trainer->apart + (size_t)p0 * OPC_PANEL,
                          batch + (size_t)p0 * xs, xs);
    opc_mlp_forward_part(ensemble->net, member, p0, p1, tape);
    /* Panel by panel: loss, gradient by the outputs, and this panel's part of the bounds'
     * gradient. */
    for (int p = p0; p < p1; p++) {
        const int left = trainer->rows - p * OPC_PANEL;
        opc_gauss_nll(ensemble->dim, left < OPC_PANEL ? left : OPC_PANEL, trainer->rows,
                      opc_ensemble_upper(ensemble, member), opc_ensemble_lower(ensemble, member),
                      tape->y[last] + (size_t)p * ys,
                      batch + (size_t)p * xs + (size_t)ensemble->in * OPC_PANEL,
                      tape->dy[last] + (size_t)p * ys,
                      &trainer->slot[member * max_panels(trainer) + p], scratch);
    }
}

/* A whole gradient step of one member, layer by layer from the top, so that a layer's weights are
 * still in the cache when they are updated. */
static void train_member(struct opc_trainer *trainer, int member, int worker)
{
    struct opc_ensemble *ensemble = trainer->ensemble;
    struct opc_tape *tape = trainer->tape[worker];
    float *grad = trainer->grad[worker];
    forward_and_loss(trainer, member, 0, trainer->panels, tape, trainer->batch[worker],
                     &trainer->scratch[worker]);
    for (int l = ensemble->net->shape.layers - 1; l >= 0; l--) {
        if (l > 0) /* before the layer's weights move */
            opc_mlp_backward_layer(ensemble->net, member, l, 0, trainer->panels, tape);
        opc_mlp_transpose_part(ensemble->net, l, 0, trainer->panels, trainer->panels, tape,
                               tape->transposed);
        opc_mlp_gradient_part(ensemble->net, l, 0, ensemble->net->layer[l].out, trainer->rows, tape,
                              tape->transposed, grad);
        apply_adam(ensemble, member, l, 0, ensemble->net->layer[l].out, grad);
    }
}

/* First pass of the pool. Item i < whole is a whole member; the items after them are (split member,
 * part of its panels), of which only forward and backward are done. */
static void forward_backward(void *ctx, int first, int end, int worker)
{
    struct opc_trainer *trainer = ctx;
    for (int i = first; i < end; i++) {
        if (i < trainer->whole) {
            train_member(trainer, i, worker);
            continue;
        }
        const int s = (i - trainer->whole) / trainer->threads,
                  part = (i - trainer->whole) % trainer->threads;
        const int p0 = opc_cut(trainer->panels, trainer->threads, part);
        const int p1 = opc_cut(trainer->panels, trainer->threads, part + 1);
        struct opc_tape *tape = trainer->tape[trainer->threads + s];
        if (p0 == p1)
            continue;
        forward_and_loss(trainer, trainer->whole + s, p0, p1, tape,
                         trainer->batch[trainer->threads + s], &trainer->scratch[worker]);
        opc_mlp_backward_part(trainer->ensemble->net, trainer->whole + s, p0, p1, tape);
    }
}

/* Second pass of the pool: item i is (split member, part of the outputs of every layer). Each
 * thread transposes the inputs for itself, into its own tape's memory. */
static void weight_gradient(void *ctx, int first, int end, int worker)
{
    struct opc_trainer *trainer = ctx;
    struct opc_ensemble *ensemble = trainer->ensemble;
    for (int i = first; i < end; i++) {
        const int s = i / trainer->threads, part = i % trainer->threads;
        for (int l = 0; l < ensemble->net->shape.layers; l++) {
            const int o0 = opc_cut(ensemble->net->layer[l].out, trainer->threads, part);
            const int o1 = opc_cut(ensemble->net->layer[l].out, trainer->threads, part + 1);
            if (o0 == o1)
                continue;
            const struct opc_tape *tape = trainer->tape[trainer->threads + s];
            float *transposed = trainer->tape[worker]->transposed;
            opc_mlp_transpose_part(ensemble->net, l, 0, trainer->panels, trainer->panels, tape,
                                   transposed);
            opc_mlp_gradient_part(ensemble->net, l, o0, o1, trainer->rows, tape, transposed,
                                  trainer->grad[trainer->threads + s]);
            apply_adam(ensemble, trainer->whole + s, l, o0, o1,
                       trainer->grad[trainer->threads + s]);
        }
    }
}

/* Adam on the bounds of the log-variance: gradients of the likelihood plus the penalty
 * bound_penalty (upper - lower), which draws them together. */
static void update_bounds(struct opc_trainer *trainer)
{
    struct opc_ensemble *ensemble = trainer->ensemble;
    const int dim = ensemble->dim, max = max_panels(trainer);
    const float penalty = (float)ensemble->config.bound_penalty;
    if (ensemble->config.bounds == OPC_BOUNDS_FIXED)
        return;
    /* d penalty: +1 by the upper bounds, -1 by the lower ones. */
    for (int i = 0; i < ensemble->sets; i++)
        for (int j = 0; j < dim; j++) {
            trainer->bound_grad[(2 * i) * dim + j] = penalty;
            trainer->bound_grad[(2 * i + 1) * dim + j] = -penalty;
        }
    /* What each panel left in its slot, in the order of members and panels. */
    for (int m = 0; m < ensemble->base.members; m++) {
        float *grad = trainer->bound_grad + (ensemble->sets > 1 ? 2 * m * dim : 0);
        for (int p = 0; p < trainer->panels; p++) {
            const struct opc_gauss_slot *slot = &trainer->slot[m * max + p];
            for (int j = 0; j < dim; j++) {
                grad[j] += slot->dmax[j];
                grad[dim + j] += slot->dmin[j];
            }
        }
    }
    opc_adam_step(ensemble->bound_adam, 0.0, trainer->bound_grad, ensemble->bound);
}

/* One gradient step of every member: forward, backward, Adam; then the bounds. */
double opc_trainer_step(struct opc_trainer *trainer, int rows, const int *index, size_t apart)
{
    trainer->rows = rows;
    trainer->panels = opc_panels(rows);
    trainer->index = index;
    trainer->apart = apart;
    /* Adam counts one step for all members, whichever thread applies it. */
    opc_adam_begin(trainer->ensemble->adam);
    opc_pool_each(trainer->pool, trainer->whole + trainer->split * trainer->threads, 1,
                  forward_backward, trainer);
    /* The split members' weights can only move once all their panels have gone backward. */
    if (trainer->split)
        opc_pool_each(trainer->pool, trainer->split * trainer->threads, 1, weight_gradient,
                      trainer);
    update_bounds(trainer);
    /* The sum of the members' mean losses, added up in order. */
    double loss = 0.0;
    for (int m = 0; m < trainer->ensemble->base.members; m++)
        for (int p = 0; p < trainer->panels; p++)
            loss += trainer->slot[m * max_panels(trainer) + p].loss;
    return loss / ((double)rows * trainer->ensemble->dim);
}

/* ---- the trainer's life ---------------------------------------------------------------------- */

/* Memory of all gradient steps of a fit; on failure opc_trainer_destroy frees what was taken. */
static int trainer_allocate(struct opc_trainer *trainer, struct opc_err *err)
{
    struct opc_ensemble *ensemble = trainer->ensemble;
    const size_t places = (size_t)(trainer->threads + trainer->split),
                 panels = (size_t)max_panels(trainer);
    const size_t slots = (size_t)ensemble->base.members * panels, dim = (size_t)ensemble->dim;
    trainer->table = opc_alloc((size_t)trainer->n * (size_t)trainer->columns, sizeof(float));
    trainer->tape = opc_alloc(places, sizeof *trainer->tape);
    trainer->batch = opc_alloc(places, sizeof *trainer->batch);
    trainer->grad = opc_alloc(places, sizeof *trainer->grad);
    trainer->scratch = opc_alloc((size_t)trainer->threads, sizeof *trainer->scratch);
    trainer->slot = opc_alloc(slots, sizeof *trainer->slot);
    trainer->slot_bounds = opc_alloc(slots * 2 * dim, sizeof(float));
    trainer->bound_grad = opc_alloc((size_t)ensemble->sets * 2 * dim, sizeof(float));
    if (!trainer->table || !trainer->tape || !trainer->batch || !trainer->grad ||
        !trainer->scratch || !trainer->slot || !trainer->slot_bounds || !trainer->bound_grad)
        goto full;
    /* Each slot has its own 2 dim floats, so panels can be done by any thread. */
    for (size_t i = 0; i < slots; i++) {
        trainer->slot[i].dmax = trainer->slot_bounds + i * 2 * dim;
        trainer->slot[i].dmin = trainer->slot[i].dmax + dim;
    }
    /* Tapes read the batch that is gathered into their place. */
    for (size_t i = 0; i < places; i++) {
        const int code =
            opc_tape_create(ensemble->net, ensemble->config.batch_size, &trainer->tape[i], err);
        if (code)
            return code;
        trainer->batch[i] = opc_alloc(panels * (size_t)trainer->columns * OPC_PANEL, sizeof(float));
        trainer->grad[i] = opc_alloc(ensemble->net->each, sizeof(float));
        if (!trainer->batch[i] || !trainer->grad[i])
            goto full;
        trainer->tape[i]->x = trainer->batch[i];
        trainer->tape[i]->xs = (size_t)trainer->columns * OPC_PANEL;
    }
    /* Scratch of one thread: the loss of a panel, or a chunk of the holdout error. */
    const size_t wide = OPC_CHUNK * OPC_PANEL * sizeof(float);
    for (int i = 0; i < trainer->threads; i++) {
        const size_t need =
            opc_gauss_need(ensemble->dim) + opc_mlp_infer_need(ensemble->net, OPC_CHUNK) +
            opc_arena_need((size_t)trainer->columns, wide) + opc_arena_need(dim, wide);
        const int code = opc_arena_create(need, &trainer->scratch[i], err);
        if (code)
            return code;
    }
    return OPC_OK;
full:
    return opc_fail(
        err, OPC_ENOMEM,
        "not enough memory to fit the model to %d steps; lower model.batch_size or train with less "
        "data",
        trainer->n);
}

int opc_trainer_create(struct opc_predictor *p, int n, const float *sa, const float *y,
                       struct opc_pool *pool, struct opc_trainer **out, struct opc_err *err)
{
    struct opc_ensemble *ensemble = opc_ensemble_of(p);
    struct opc_trainer *trainer = opc_alloc(1, sizeof *trainer);
    if (!trainer)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to fit the model");
    trainer->ensemble = ensemble;
    trainer->pool = pool;
    trainer->threads = opc_pool_threads(pool);
    trainer->split = p->members % trainer->threads;
    trainer->whole = p->members - trainer->split;
    trainer->n = n;
    trainer->columns = ensemble->in + ensemble->dim;
    const int code = trainer_allocate(trainer, err);
    if (code) {
        opc_trainer_destroy(trainer);
        return code;
    }
    /* The table: inputs scaled once for the whole fit, targets too with model.normalize_targets. */
    for (int i = 0; i < n; i++) {
        float *row = trainer->table + (size_t)i * (size_t)trainer->columns;
        const float *x = sa + (size_t)i * (size_t)ensemble->in;
        for (int d = 0; d < ensemble->in; d++) /* as opc_scaler_apply does it, to the bit */
            row[d] = (x[d] - ensemble->scaler->mean[d]) * ensemble->scaler->inverse[d];
        memcpy(row + ensemble->in, y + (size_t)i * (size_t)ensemble->dim,
               (size_t)ensemble->dim * sizeof *row);
        const struct opc_scaler *target = ensemble->target;
        for (int j = 0; target && j < ensemble->dim; j++)
            row[ensemble->in + j] = (row[ensemble->in + j] - target->mean[j]) * target->inverse[j];
    }
    *out = trainer;
    return OPC_OK;
}

void opc_trainer_destroy(struct opc_trainer *trainer)
{
    if (!trainer)
        return;
    for (int i = 0; i < trainer->threads + trainer->split; i++) {
        if (trainer->tape)
            opc_tape_destroy(trainer->tape[i]);
        if (trainer->batch)
            opc_free(trainer->batch[i]);
        if (trainer->grad)
            opc_free(trainer->grad[i]);
    }
    for (int i = 0; trainer->scratch && i < trainer->threads; i++)
        opc_arena_destroy(&trainer->scratch[i]);
    opc_free(trainer->scratch);
    opc_free(trainer->tape);
    opc_free(trainer->batch);
    opc_free(trainer->grad);
    opc_free(trainer->table);
    opc_free(trainer->slot);
    opc_free(trainer->slot_bounds);
    opc_free(trainer->bound_grad);
    opc_free(trainer);
}

/* ---- holdout error --------------------------------------------------------------------------- */

enum { ROWS = OPC_CHUNK * OPC_PANEL };

/* One evaluation of the holdout rows by all members, cut into (member, chunk of ROWS rows). */
struct holdout_job {
    struct opc_trainer *trainer;
    const int *index;
    int n, chunks;
    double *squares; /* [members][chunks] */
};

/* Sums of squared errors of items first .. end-1, each in its own place of `squares`, so that the
 * order of the final sum does not depend on the threads. */
static void holdout_error_of_chunks(void *ctx, int first, int end, int worker)
{
    const struct holdout_job *job = ctx;
    const struct opc_trainer *trainer = job->trainer;
    const struct opc_ensemble *ensemble = trainer->ensemble;
    struct opc_arena *scratch = &trainer->scratch[worker];
    const size_t mark = scratch->used, xs = (size_t)trainer->columns * OPC_PANEL;
    const size_t ys = (size_t)ensemble->dim * OPC_PANEL;
    float *batch = opc_floats(scratch, (size_t)trainer->columns, ROWS);
    float *mean = opc_floats(scratch, (size_t)ensemble->dim, ROWS);
    for (int i = first; i < end; i++) {
        const int member = i / job->chunks, from = i % job->chunks * ROWS;
        const int rows = job->n - from < ROWS ? job->n - from : ROWS;
        opc_kernels()->gather(rows, trainer->columns, trainer->table, (size_t)trainer->columns,
                              job->index + from, batch, xs);
        opc_mlp_infer(ensemble->net, member, opc_panels(rows), batch, xs, ensemble->dim, mean, ys,
                      scratch);
        /* Row r of the chunk lies in panel r / 16, lane r % 16; targets follow the inputs in its
         * columns. */
        double sum = 0.0;
        for (int r = 0; r < rows; r++) {
            const float *m = mean + (size_t)(r / OPC_PANEL) * ys + r % OPC_PANEL;
            const float *y = batch + (size_t)(r / OPC_PANEL) * xs +
                             (size_t)ensemble->in * OPC_PANEL + r % OPC_PANEL;
            for (int j = 0; j < ensemble->dim; j++) {
                const double gap = (double)m[j * OPC_PANEL] - (double)y[j * OPC_PANEL];
                sum += gap * gap;
            }
        }
        job->squares[i] = sum;
    }
    opc_arena_rewind(scratch, mark);
}

size_t opc_trainer_holdout_need(int members, int n)
{
    return (size_t)members * (size_t)((n + ROWS - 1) / ROWS);
}

void opc_trainer_holdout(struct opc_trainer *trainer, int n, const int *index, double *squares,
                         double *error)
{
    struct holdout_job job = {trainer, index, n, (n + ROWS - 1) / ROWS, squares};
    const int members = trainer->ensemble->base.members;
    opc_pool_each(trainer->pool, members * job.chunks, 1, holdout_error_of_chunks, &job);
    for (int m = 0; m < members; m++) {
        double sum = 0.0;
        for (int c = 0; c < job.chunks; c++)
            sum += squares[m * job.chunks + c];
        error[m] = sum / ((double)n * trainer->ensemble->dim);
    }
}
