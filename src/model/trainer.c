/* SPDX-License-Identifier: MIT */
/* Fitting the ensemble.
 *
 * A gradient step of all members is one or two calls of the pool. With T threads, as many members
 * as T divides go whole to a thread, which takes each layer's gradient and moves its weights while
 * they are in the cache. The members left over are cut by panels for forward and backward, and
 * then, in the second call, by outputs for the gradient, which sums over rows. The bounds of the
 * log-variance belong to all members: what each panel of each member says about them is added up
 * in order at the end. No bit depends on T. */
#include "base/pool.h"
#include "model/ensemble_private.h"

#include <math.h>
#include <string.h>

struct opc_trainer {
    struct opc_ensemble *e;
    struct opc_pool *pool;
    int threads, whole, split; /* members that go whole, members that are cut */
    int n, columns;            /* of the table: scaled inputs, then targets */
    float *table;              /* [n][columns] */

    struct opc_tape **tape;      /* [threads], then [split] */
    float **batch, **grad;       /* likewise: [panels][columns][16], [each] */
    struct opc_arena *scratch;   /* [threads] */
    struct opc_gauss_slot *slot; /* [members][panels] */
    float *slot_bounds;          /* [members][panels][2][dim] */
    float *bound_grad;           /* [sets][2][dim] */

    /* the step under way */
    int rows, panels;
    const int *index;
    size_t apart;
};

static int max_panels(const struct opc_trainer *t)
{
    return opc_panels(t->e->config.batch_size);
}

/* ---- one gradient step ----------------------------------------------------------------------- */

static double decay_of(const struct opc_ensemble *e, int layer)
{
    const struct opc_reals *d = &e->config.weight_decay;
    return d->at[d->n == 1 ? 0 : layer];
}

/* Moves outputs o0 .. o1-1 of one layer of a member. */
static void move(struct opc_ensemble *e, int member, int l, int o0, int o1, const float *grad)
{
    const struct opc_layer *layer = &e->net->layer[l];
    const size_t base = (size_t)member * e->net->each, ld = (size_t)layer->ld;
    const size_t w = layer->weight + (size_t)o0 * ld, b = layer->bias + (size_t)o0;
    const double decay = decay_of(e, l);
    opc_adam_range(e->adam, base + w, (size_t)(o1 - o0) * ld, decay, grad + w,
                   e->net->param + base + w);
    opc_adam_range(e->adam, base + b, (size_t)(o1 - o0), e->config.decay_biases ? decay : 0.0,
                   grad + b, e->net->param + base + b);
}

/* Batch, forward pass and loss of panels p0 .. p1-1. */
static void forward_and_loss(struct opc_trainer *t, int member, int p0, int p1,
                             struct opc_tape *tape, float *batch, struct opc_arena *scratch)
{
    const struct opc_ensemble *e = t->e;
    const size_t xs = (size_t)t->columns * OPC_PANEL, ys = (size_t)(2 * e->dim) * OPC_PANEL;
    const int last = e->net->shape.layers - 1, end = p1 * OPC_PANEL;
    opc_kernels()->gather(
        (end < t->rows ? end : t->rows) - p0 * OPC_PANEL, t->columns, t->table, (size_t)t->columns,
        t->index + (size_t)member * t->apart + (size_t)p0 * OPC_PANEL, batch + (size_t)p0 * xs, xs);
    opc_mlp_forward_part(e->net, member, p0, p1, tape);
    for (int p = p0; p < p1; p++) {
        const int left = t->rows - p * OPC_PANEL;
        opc_gauss_nll(
            e->dim, left < OPC_PANEL ? left : OPC_PANEL, t->rows, opc_ensemble_upper(e, member),
            opc_ensemble_lower(e, member), tape->y[last] + (size_t)p * ys,
            batch + (size_t)p * xs + (size_t)e->in * OPC_PANEL, tape->dy[last] + (size_t)p * ys,
            &t->slot[member * max_panels(t) + p], scratch);
    }
}

static void train_whole(struct opc_trainer *t, int member, int worker)
{
    struct opc_ensemble *e = t->e;
    struct opc_tape *tape = t->tape[worker];
    float *grad = t->grad[worker];
    forward_and_loss(t, member, 0, t->panels, tape, t->batch[worker], &t->scratch[worker]);
    for (int l = e->net->shape.layers - 1; l >= 0; l--) {
        if (l > 0) /* before the layer's weights move */
            opc_mlp_backward_layer(e->net, member, l, 0, t->panels, tape);
        opc_mlp_transpose_part(e->net, l, 0, t->panels, t->panels, tape, tape->transposed);
        opc_mlp_gradient_part(e->net, l, 0, e->net->layer[l].out, t->rows, tape, tape->transposed,
                              grad);
        move(e, member, l, 0, e->net->layer[l].out, grad);
    }
}

static void first_call(void *ctx, int first, int end, int worker)
{
    struct opc_trainer *t = ctx;
    for (int i = first; i < end; i++) {
        if (i < t->whole) {
            train_whole(t, i, worker);
            continue;
        }
        const int s = (i - t->whole) / t->threads, part = (i - t->whole) % t->threads;
        const int p0 = opc_cut(t->panels, t->threads, part);
        const int p1 = opc_cut(t->panels, t->threads, part + 1);
        struct opc_tape *tape = t->tape[t->threads + s];
        if (p0 == p1)
            continue;
        forward_and_loss(t, t->whole + s, p0, p1, tape, t->batch[t->threads + s],
                         &t->scratch[worker]);
        opc_mlp_backward_part(t->e->net, t->whole + s, p0, p1, tape);
    }
}

static void second_call(void *ctx, int first, int end, int worker)
{
    struct opc_trainer *t = ctx;
    struct opc_ensemble *e = t->e;
    for (int i = first; i < end; i++) {
        const int s = i / t->threads, part = i % t->threads;
        for (int l = 0; l < e->net->shape.layers; l++) {
            const int o0 = opc_cut(e->net->layer[l].out, t->threads, part);
            const int o1 = opc_cut(e->net->layer[l].out, t->threads, part + 1);
            if (o0 == o1)
                continue;
            const struct opc_tape *tape = t->tape[t->threads + s];
            float *transposed = t->tape[worker]->transposed;
            opc_mlp_transpose_part(e->net, l, 0, t->panels, t->panels, tape, transposed);
            opc_mlp_gradient_part(e->net, l, o0, o1, t->rows, tape, transposed,
                                  t->grad[t->threads + s]);
            move(e, t->whole + s, l, o0, o1, t->grad[t->threads + s]);
        }
    }
}

static void move_bounds(struct opc_trainer *t)
{
    struct opc_ensemble *e = t->e;
    const int dim = e->dim, max = max_panels(t);
    const float penalty = (float)e->config.bound_penalty;
    if (e->config.bounds == OPC_BOUNDS_FIXED)
        return;
    for (int i = 0; i < e->sets; i++)
        for (int j = 0; j < dim; j++) {
            t->bound_grad[(2 * i) * dim + j] = penalty;
            t->bound_grad[(2 * i + 1) * dim + j] = -penalty;
        }
    for (int m = 0; m < e->base.members; m++) {
        float *grad = t->bound_grad + (e->sets > 1 ? 2 * m * dim : 0);
        for (int p = 0; p < t->panels; p++) {
            const struct opc_gauss_slot *slot = &t->slot[m * max + p];
            for (int j = 0; j < dim; j++) {
                grad[j] += slot->dmax[j];
                grad[dim + j] += slot->dmin[j];
            }
        }
    }
    opc_adam_step(e->bound_adam, 0.0, t->bound_grad, e->bound);
}

double opc_trainer_step(struct opc_trainer *t, int rows, const int *index, size_t apart)
{
    t->rows = rows;
    t->panels = opc_panels(rows);
    t->index = index;
    t->apart = apart;
    opc_adam_begin(t->e->adam);
    opc_pool_each(t->pool, t->whole + t->split * t->threads, 1, first_call, t);
    if (t->split)
        opc_pool_each(t->pool, t->split * t->threads, 1, second_call, t);
    move_bounds(t);
    double loss = 0.0;
    for (int m = 0; m < t->e->base.members; m++)
        for (int p = 0; p < t->panels; p++)
            loss += t->slot[m * max_panels(t) + p].loss;
    return loss / ((double)rows * t->e->dim);
}

/* ---- the trainer's life ---------------------------------------------------------------------- */

static int allocate(struct opc_trainer *t, struct opc_err *err)
{
    struct opc_ensemble *e = t->e;
    const size_t places = (size_t)(t->threads + t->split), panels = (size_t)max_panels(t);
    const size_t slots = (size_t)e->base.members * panels, dim = (size_t)e->dim;
    t->table = opc_alloc((size_t)t->n * (size_t)t->columns, sizeof(float));
    t->tape = opc_alloc(places, sizeof *t->tape);
    t->batch = opc_alloc(places, sizeof *t->batch);
    t->grad = opc_alloc(places, sizeof *t->grad);
    t->scratch = opc_alloc((size_t)t->threads, sizeof *t->scratch);
    t->slot = opc_alloc(slots, sizeof *t->slot);
    t->slot_bounds = opc_alloc(slots * 2 * dim, sizeof(float));
    t->bound_grad = opc_alloc((size_t)e->sets * 2 * dim, sizeof(float));
    if (!t->table || !t->tape || !t->batch || !t->grad || !t->scratch || !t->slot ||
        !t->slot_bounds || !t->bound_grad)
        goto full;
    for (size_t i = 0; i < slots; i++) {
        t->slot[i].dmax = t->slot_bounds + i * 2 * dim;
        t->slot[i].dmin = t->slot[i].dmax + dim;
    }
    for (size_t i = 0; i < places; i++) {
        const int code = opc_tape_create(e->net, e->config.batch_size, &t->tape[i], err);
        if (code)
            return code;
        t->batch[i] = opc_alloc(panels * (size_t)t->columns * OPC_PANEL, sizeof(float));
        t->grad[i] = opc_alloc(e->net->each, sizeof(float));
        if (!t->batch[i] || !t->grad[i])
            goto full;
        t->tape[i]->x = t->batch[i];
        t->tape[i]->xs = (size_t)t->columns * OPC_PANEL;
    }
    const size_t wide = OPC_CHUNK * OPC_PANEL * sizeof(float);
    for (int i = 0; i < t->threads; i++) {
        const size_t need = opc_gauss_need(e->dim) + opc_mlp_infer_need(e->net, OPC_CHUNK) +
                            opc_arena_need((size_t)t->columns, wide) + opc_arena_need(dim, wide);
        const int code = opc_arena_create(need, &t->scratch[i], err);
        if (code)
            return code;
    }
    return OPC_OK;
full:
    return opc_fail(
        err, OPC_ENOMEM,
        "not enough memory to fit the model to %d steps; lower model.batch_size or train with less "
        "data",
        t->n);
}

int opc_trainer_create(struct opc_predictor *p, int n, const float *sa, const float *y,
                       struct opc_pool *pool, struct opc_trainer **out, struct opc_err *err)
{
    struct opc_ensemble *e = opc_ensemble_of(p);
    struct opc_trainer *t = opc_alloc(1, sizeof *t);
    if (!t)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to fit the model");
    t->e = e;
    t->pool = pool;
    t->threads = opc_pool_threads(pool);
    t->split = p->members % t->threads;
    t->whole = p->members - t->split;
    t->n = n;
    t->columns = e->in + e->dim;
    const int code = allocate(t, err);
    if (code) {
        opc_trainer_destroy(t);
        return code;
    }
    for (int i = 0; i < n; i++) {
        float *row = t->table + (size_t)i * (size_t)t->columns;
        const float *x = sa + (size_t)i * (size_t)e->in;
        for (int d = 0; d < e->in; d++) /* as opc_scaler_apply does it, to the bit */
            row[d] = (x[d] - e->scaler->mean[d]) * e->scaler->inverse[d];
        memcpy(row + e->in, y + (size_t)i * (size_t)e->dim, (size_t)e->dim * sizeof *row);
    }
    *out = t;
    return OPC_OK;
}

void opc_trainer_destroy(struct opc_trainer *t)
{
    if (!t)
        return;
    for (int i = 0; i < t->threads + t->split; i++) {
        if (t->tape)
            opc_tape_destroy(t->tape[i]);
        if (t->batch)
            opc_free(t->batch[i]);
        if (t->grad)
            opc_free(t->grad[i]);
    }
    for (int i = 0; t->scratch && i < t->threads; i++)
        opc_arena_destroy(&t->scratch[i]);
    opc_free(t->scratch);
    opc_free(t->tape);
    opc_free(t->batch);
    opc_free(t->grad);
    opc_free(t->table);
    opc_free(t->slot);
    opc_free(t->slot_bounds);
    opc_free(t->bound_grad);
    opc_free(t);
}

/* ---- holdout error --------------------------------------------------------------------------- */

enum { ROWS = OPC_CHUNK * OPC_PANEL };

struct exam {
    struct opc_trainer *t;
    const int *index;
    int n, chunks;
    double *squares; /* [members][chunks] */
};

static void examine(void *ctx, int first, int end, int worker)
{
    const struct exam *x = ctx;
    const struct opc_trainer *t = x->t;
    const struct opc_ensemble *e = t->e;
    struct opc_arena *scratch = &t->scratch[worker];
    const size_t mark = scratch->used, xs = (size_t)t->columns * OPC_PANEL;
    const size_t ys = (size_t)e->dim * OPC_PANEL;
    float *batch = opc_floats(scratch, (size_t)t->columns, ROWS);
    float *mean = opc_floats(scratch, (size_t)e->dim, ROWS);
    for (int i = first; i < end; i++) {
        const int member = i / x->chunks, from = i % x->chunks * ROWS;
        const int rows = x->n - from < ROWS ? x->n - from : ROWS;
        opc_kernels()->gather(rows, t->columns, t->table, (size_t)t->columns, x->index + from,
                              batch, xs);
        opc_mlp_infer(e->net, member, opc_panels(rows), batch, xs, e->dim, mean, ys, scratch);
        double sum = 0.0;
        for (int r = 0; r < rows; r++) {
            const float *m = mean + (size_t)(r / OPC_PANEL) * ys + r % OPC_PANEL;
            const float *y =
                batch + (size_t)(r / OPC_PANEL) * xs + (size_t)e->in * OPC_PANEL + r % OPC_PANEL;
            for (int j = 0; j < e->dim; j++) {
                const double gap = (double)m[j * OPC_PANEL] - (double)y[j * OPC_PANEL];
                sum += gap * gap;
            }
        }
        x->squares[i] = sum;
    }
    opc_arena_rewind(scratch, mark);
}

/* Mean squared error of each member's mean on the given rows. */
static void holdout_errors(struct opc_trainer *t, int n, const int *index, double *squares,
                           double *error)
{
    struct exam x = {t, index, n, (n + ROWS - 1) / ROWS, squares};
    const int members = t->e->base.members;
    opc_pool_each(t->pool, members * x.chunks, 1, examine, &x);
    for (int m = 0; m < members; m++) {
        double sum = 0.0;
        for (int c = 0; c < x.chunks; c++)
            sum += squares[m * x.chunks + c];
        error[m] = sum / ((double)n * t->e->dim);
    }
}

/* ---- a whole fit ----------------------------------------------------------------------------- */

static void shuffle(struct opc_rng *r, int n, int *at)
{
    for (int i = n - 1; i > 0; i--) {
        const int j = (int)opc_rng_below(r, (uint32_t)i + 1), keep = at[i];
        at[i] = at[j];
        at[j] = keep;
    }
}

/* The members with the smallest errors, best first; of equals the earlier. */
static void choose_elites(struct opc_predictor *p, const double *error)
{
    bool taken[OPC_MEMBERS] = {false};
    for (int i = 0; i < p->elites; i++) {
        int best = 0;
        while (taken[best])
            best++;
        for (int m = best + 1; m < p->members; m++)
            if (!taken[m] && error[m] < error[best])
                best = m;
        taken[best] = true;
        p->elite[i] = best;
    }
}

struct fit {
    struct opc_ensemble *e;
    const struct opc_fit_plan *plan;
    struct opc_trainer *trainer;
    int n_hold, n_train, batch;
    int *split; /* [n] holdout rows, then training rows */
    int *rows;  /* [members][n_train] what each member trains on */
    struct opc_rng rng[OPC_MEMBERS];
    float *best_param; /* [members][each] */
    double *squares;   /* scratch of holdout_errors */
    double best[OPC_MEMBERS], error[OPC_MEMBERS];
    double loss; /* mean over the last pass's steps and members */
};

static int one_pass(struct fit *f, int pass, struct opc_err *err)
{
    const int members = f->e->base.members;
    double sum = 0.0;
    int steps = 0;
    for (int at = 0; at < f->n_train; at += f->batch, steps++) {
        const int left = f->n_train - at;
        const double loss = opc_trainer_step(f->trainer, left < f->batch ? left : f->batch,
                                             f->rows + at, (size_t)f->n_train);
        if (!isfinite(loss))
            return opc_fail(
                err, OPC_EDIVERGED,
                "the model's loss became %g in pass %d, step %d of epoch %u; lower "
                "model.learning_rate, or look for huge values in the environment's observations",
                loss, pass, steps, f->plan->epoch);
        sum += loss;
    }
    f->loss = sum / ((double)steps * members);
    return OPC_OK;
}

static void shuffle_members(void *ctx, int first, int end, int worker)
{
    (void)worker;
    struct fit *f = ctx;
    for (int m = first; m < end; m++)
        shuffle(&f->rng[m], f->n_train, f->rows + (size_t)m * (size_t)f->n_train);
}

/* Every member's error on the holdout, which NaN in those rows or in a weight makes NaN. */
static int measure(struct fit *f, int pass, struct opc_err *err)
{
    holdout_errors(f->trainer, f->n_hold, f->split, f->squares, f->error);
    for (int m = 0; m < f->e->base.members; m++)
        if (!isfinite(f->error[m]))
            return opc_fail(
                err, OPC_EDIVERGED,
                "the model's holdout error became %g (member %d, pass %d of epoch %u); "
                "lower model.learning_rate, or look for huge values in the environment's "
                "observations",
                f->error[m], m, pass, f->plan->epoch);
    return OPC_OK;
}

/* Notes which members improved by more than the threshold and keeps their weights. */
static bool keep_improved(struct fit *f)
{
    struct opc_ensemble *e = f->e;
    const size_t bytes = e->net->each * sizeof(float);
    bool any = false;
    for (int m = 0; m < e->base.members; m++) {
        if (!((f->best[m] - f->error[m]) / f->best[m] > e->config.min_improvement))
            continue;
        f->best[m] = f->error[m];
        any = true;
        if (e->config.snapshot == OPC_SNAPSHOT_MEMBER)
            memcpy(f->best_param + (size_t)m * e->net->each, opc_mlp_member(e->net, m), bytes);
    }
    if (any && e->config.snapshot == OPC_SNAPSHOT_WHOLE) {
        memcpy(f->best_param, e->net->param, (size_t)e->base.members * bytes);
        for (int m = 0; m < e->base.members; m++) /* small improvements count now, too */
            if (f->error[m] < f->best[m])
                f->best[m] = f->error[m];
    }
    return any;
}

static int passes(struct fit *f, struct opc_fit_report *report, struct opc_err *err)
{
    struct opc_ensemble *e = f->e;
    const int members = e->base.members;
    const size_t all = (size_t)members * e->net->each * sizeof(float);
    memcpy(f->best_param, e->net->param, all);
    for (int m = 0; m < members; m++)
        f->best[m] = 1e10; /* so that the first pass always counts */
    int since = 0, pass = 0;
    if (e->config.best == OPC_BEST_INCOMING) {
        const int code = measure(f, pass, err);
        if (code)
            return code;
        memcpy(f->best, f->error, sizeof f->best);
    }
    while (since <= e->config.patience) {
        int code = one_pass(f, pass, err);
        if (code)
            return code;
        opc_pool_each(f->plan->pool, members, 1, shuffle_members, f);
        code = measure(f, pass, err);
        if (code)
            return code;
        since = keep_improved(f) ? 0 : since + 1;
        pass++;
        if (e->config.max_epochs && pass >= e->config.max_epochs)
            break;
        if (f->plan->stop && f->plan->stop(f->plan->stop_ctx))
            return opc_fail(err, OPC_ESTOPPED, "stopped while fitting the model");
    }
    memcpy(e->net->param, f->best_param, all);
    if (e->config.snapshot == OPC_SNAPSHOT_MEMBER)
        holdout_errors(f->trainer, f->n_hold, f->split, f->squares, f->error);
    else /* mbrl-lib ranks by each member's best, whatever weights it came from */
        memcpy(f->error, f->best, sizeof f->error);
    report->passes = pass;
    return OPC_OK;
}

/* Holdout and training rows; each member's rows of the first pass. */
static void divide(struct fit *f, int n)
{
    const struct opc_fit_plan *plan = f->plan;
    struct opc_rng r = opc_rng_stream(plan->seed, OPC_USE_SPLIT, plan->epoch, plan->index);
    for (int i = 0; i < n; i++)
        f->split[i] = i;
    shuffle(&r, n, f->split);
    const int *train = f->split + f->n_hold;
    for (int m = 0; m < f->e->base.members; m++) {
        int *rows = f->rows + (size_t)m * (size_t)f->n_train;
        f->rng[m] = opc_rng_stream(plan->seed, OPC_USE_FIT, plan->epoch,
                                   plan->index * OPC_MEMBERS + (uint32_t)m);
        for (int i = 0; i < f->n_train; i++)
            rows[i] = f->e->config.bootstrap
                          ? train[opc_rng_below(&f->rng[m], (uint32_t)f->n_train)]
                          : train[i];
        if (!f->e->config.bootstrap)
            shuffle(&f->rng[m], f->n_train, rows);
    }
}

int opc_ensemble_fit(struct opc_predictor *p, int n, const float *sa, const float *y,
                     const struct opc_fit_plan *plan, struct opc_fit_report *report,
                     struct opc_err *err)
{
    struct opc_ensemble *e = opc_ensemble_of(p);
    const struct opc_ensemble_config *c = &e->config;
    struct fit f = {.e = e, .plan = plan, .batch = c->batch_size};
    f.n_hold = (int)(c->holdout_ratio * n);
    if (f.n_hold > c->max_holdout)
        f.n_hold = c->max_holdout;
    if (f.n_hold < 1)
        f.n_hold = 1;
    f.n_train = n - f.n_hold;
    if (f.n_train < 1)
        return opc_fail(err, OPC_EUSER,
                        "%d recorded steps are too few to fit a model; raise train.random_steps",
                        n);
    *report = (struct opc_fit_report){0};
    if (!c->warm_start && e->fits > 0)
        opc_ensemble_restart(e);

    int code = OPC_OK;
    const size_t members = (size_t)p->members;
    f.split = opc_alloc((size_t)n, sizeof *f.split);
    f.rows = opc_alloc(members * (size_t)f.n_train, sizeof *f.rows);
    f.best_param = opc_alloc(members * e->net->each, sizeof *f.best_param);
    f.squares = opc_alloc(members * (size_t)((f.n_hold + ROWS - 1) / ROWS), sizeof *f.squares);
    if (!f.split || !f.rows || !f.best_param || !f.squares) {
        code = opc_fail(err, OPC_ENOMEM, "not enough memory to fit the model to %d steps", n);
    } else {
        divide(&f, n);
        const bool all = c->scale_on == OPC_SCALE_ALL;
        opc_scaler_fit(e->scaler, all ? n : f.n_train, sa, (size_t)e->in,
                       all ? NULL : f.split + f.n_hold, c->scale_std == 1);
        code = opc_trainer_create(p, n, sa, y, plan->pool, &f.trainer, err);
    }
    if (!code)
        code = passes(&f, report, err);
    if (!code) {
        choose_elites(p, f.error);
        memcpy(report->holdout, f.error, sizeof report->holdout);
        report->train_loss = f.loss;
        for (int i = 0; i < e->sets; i++)
            for (int j = 0; j < e->dim; j++) {
                const float *upper = e->bound + 2 * i * e->dim;
                report->log_std_max += 0.5 * (double)upper[j] / (e->sets * e->dim);
                report->log_std_min += 0.5 * (double)upper[e->dim + j] / (e->sets * e->dim);
            }
        e->fits++;
    }
    opc_trainer_destroy(f.trainer);
    opc_free(f.split);
    opc_free(f.rows);
    opc_free(f.best_param);
    opc_free(f.squares);
    return code;
}
