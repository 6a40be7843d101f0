/* SPDX-License-Identifier: MIT */
#include "model/ensemble_in.h"

#include "base/pool.h"
#include "num/normal.h"
#include "num/vec.h"

#include <string.h>

#define SELF struct opc_ensemble_config
const struct opc_section opc_ensemble_section = OPC_SECTION(
    "model", "the probabilistic ensemble that predicts next state and reward", OPC_ENSEMBLE_FIELDS);
#undef SELF

/* ---- prediction --------------------------------------------------------------------------------
 * Rows are sorted by elite (a counting sort, so equal elites keep their order) and cut into chunks
 * of 8 panels that go through the whole network while they are in the cache. */

struct question {
    const struct opc_ensemble *e;
    const float *s, *a;
    struct opc_rng *rng; /* NULL: the mean is wanted */
    float *y;
    const int *order;
    int n_chunks;
    struct chunk {
        int elite, first, rows; /* in `order` */
    } * chunk;
};

enum { ROWS = OPC_CHUNK * OPC_PANEL };

static size_t chunk_need(const struct opc_ensemble *e)
{
    const size_t wide = ROWS * sizeof(float);
    return opc_mlp_infer_need(e->net, OPC_CHUNK) + opc_gauss_need(e->dim) +
           opc_arena_need((size_t)e->in, wide) * 2 + opc_arena_need((size_t)e->dim, wide) * 4 +
           opc_arena_need(ROWS, sizeof(struct opc_rng));
}

/* Turns the chunk's means into draws: mean + exp(logvar / 2) eps. */
static void add_noise(const struct question *q, const struct chunk *c, int panels, float *out,
                      size_t stride, struct opc_arena *scratch)
{
    const struct opc_ensemble *e = q->e;
    const int member = e->base.elite[c->elite];
    const size_t n = (size_t)e->dim * OPC_PANEL;
    struct opc_rng *rng = opc_arena_take(scratch, ROWS, sizeof *rng);
    float *eps = opc_floats(scratch, (size_t)e->dim, ROWS);
    for (int i = 0; i < c->rows; i++)
        rng[i] = q->rng[q->order[c->first + i]];
    opc_rng_normals_rows(rng, c->rows, e->dim, eps);
    for (int i = 0; i < c->rows; i++)
        q->rng[q->order[c->first + i]] = rng[i];

    for (int p = 0; p < panels; p++) {
        float *mean = out + (size_t)p * stride, *std = mean + n;
        const float *z = eps + (size_t)p * n;
        opc_gauss_bound(e->dim, opc_ensemble_upper(e, member), opc_ensemble_lower(e, member), std,
                        std, scratch);
        for (size_t k = 0; k < n; k++)
            std[k] *= 0.5f;
        opc_vec_exp(n, std, std);
        for (size_t k = 0; k < n; k++)
            mean[k] += std[k] * z[k];
    }
}

static void answer(const struct question *q, const struct chunk *c, struct opc_arena *scratch)
{
    const struct opc_ensemble *e = q->e;
    const struct opc_kernels *k = opc_kernels();
    const size_t mark = scratch->used;
    const int obs = e->base.obs, act = e->base.act, dim = e->dim, panels = opc_panels(c->rows);
    const int *rows = q->order + c->first;
    const size_t xs = (size_t)e->in * OPC_PANEL, ys = (size_t)(2 * dim) * OPC_PANEL;
    float *s = opc_floats(scratch, (size_t)obs, ROWS),
          *x = opc_floats(scratch, (size_t)e->in, ROWS);
    float *out = opc_floats(scratch, (size_t)(2 * dim), ROWS);
    float *flat = opc_floats(scratch, ROWS, (size_t)dim);

    k->gather(c->rows, obs, q->s, (size_t)obs, rows, s, (size_t)obs * OPC_PANEL);
    k->gather(c->rows, act, q->a, (size_t)act, rows, x + obs * OPC_PANEL, xs);
    for (int p = 0; p < panels; p++)
        memcpy(x + (size_t)p * xs, s + (size_t)(p * obs) * OPC_PANEL,
               (size_t)obs * OPC_PANEL * sizeof *x);
    opc_scaler_apply(e->scaler, panels, x, xs);
    opc_mlp_infer(e->net, e->base.elite[c->elite], panels, x, xs, q->rng ? 2 * dim : dim, out, ys,
                  scratch);
    if (q->rng)
        add_noise(q, c, panels, out, ys, scratch);

    /* the network knows s' - s */
    for (int p = 0; p < panels; p++) {
        float *to = out + (size_t)p * ys;
        const float *from = s + (size_t)(p * obs) * OPC_PANEL;
        for (int i = 0; i < obs * OPC_PANEL; i++)
            to[i] += from[i];
    }
    k->scatter(c->rows, dim, out, ys, flat, (size_t)dim);
    for (int i = 0; i < c->rows; i++)
        memcpy(q->y + (size_t)rows[i] * (size_t)dim, flat + (size_t)i * (size_t)dim,
               (size_t)dim * sizeof *flat);
    opc_arena_rewind(scratch, mark);
}

static void answer_chunks(void *ctx, int first, int end, int worker)
{
    const struct question *q = ctx;
    for (int i = first; i < end; i++)
        answer(q, &q->chunk[i], &q->e->scratch[worker]);
}

/* Sorts rows 0 .. n-1 by elite into e->order and cuts them into chunks of one elite each. */
static void sort_by_elite(const struct opc_ensemble *e, int n, const int *elite, struct question *q)
{
    int first[OPC_MEMBERS + 1] = {0}, at[OPC_MEMBERS];
    for (int i = 0; i < n; i++)
        first[elite[i] + 1]++;
    for (int k = 0; k < e->base.elites; k++) {
        first[k + 1] += first[k];
        at[k] = first[k];
    }
    for (int i = 0; i < n; i++)
        e->order[at[elite[i]]++] = i;
    for (int k = 0; k < e->base.elites; k++)
        for (int i = first[k]; i < first[k + 1]; i += ROWS) {
            const int left = first[k + 1] - i;
            q->chunk[q->n_chunks++] = (struct chunk){k, i, left < ROWS ? left : ROWS};
        }
}

static void predict(const struct opc_predictor *p, int n, const float *s, const float *a,
                    const int *elite, struct opc_rng *rng, float *y, struct opc_pool *pool)
{
    const struct opc_ensemble *e = (const struct opc_ensemble *)p;
    struct chunk chunk[OPC_AT_ONCE / ROWS + OPC_MEMBERS];
    if (opc_pool_threads(pool) > e->threads) /* each of them needs scratch memory */
        pool = NULL;
    for (int done = 0; done < n; done += OPC_AT_ONCE) {
        const int here = n - done < OPC_AT_ONCE ? n - done : OPC_AT_ONCE;
        struct question q = {.e = e,
                             .s = s + (size_t)done * (size_t)p->obs,
                             .a = a + (size_t)done * (size_t)p->act,
                             .rng = rng ? rng + done : NULL,
                             .y = y + (size_t)done * (size_t)e->dim,
                             .order = e->order,
                             .chunk = chunk};
        sort_by_elite(e, here, elite + done, &q);
        opc_pool_each(pool, q.n_chunks, 1, answer_chunks, &q);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

void opc_ensemble_restart(struct opc_ensemble *e)
{
    /* Later beginnings (model.warm_start = false) draw from streams of their own. */
    opc_mlp_init(e->net, OPC_INIT_TRUNCATED, e->seed, e->which | (uint32_t)(e->fits & 0xFFFF) << 8);
    for (int i = 0; i < e->sets; i++)
        for (int j = 0; j < e->dim; j++) {
            e->bound[(2 * i) * e->dim + j] = (float)e->config.log_var_max;
            e->bound[(2 * i + 1) * e->dim + j] = (float)e->config.log_var_min;
        }
    struct opc_adam *both[] = {e->adam, e->bound_adam};
    for (int i = 0; i < 2; i++) {
        memset(both[i]->m, 0, both[i]->count * sizeof(float));
        memset(both[i]->v, 0, both[i]->count * sizeof(float));
        both[i]->steps = 0;
    }
}

static void destroy(struct opc_predictor *p)
{
    struct opc_ensemble *e = opc_ensemble_of(p);
    for (int i = 0; e->scratch && i < e->threads; i++)
        opc_arena_destroy(&e->scratch[i]);
    opc_free(e->scratch);
    opc_free(e->order);
    opc_free(e->bound);
    opc_adam_destroy(e->adam);
    opc_adam_destroy(e->bound_adam);
    opc_scaler_destroy(e->scaler);
    opc_mlp_destroy(e->net);
    opc_free(e);
}

static int state(struct opc_predictor *p,
                 int (*visit)(void *, const char *, void *, size_t, struct opc_err *), void *ctx,
                 struct opc_err *err)
{
    struct opc_ensemble *e = opc_ensemble_of(p);
    const size_t weights = e->adam->count * sizeof(float);
    const size_t bounds = e->bound_adam->count * sizeof(float);
    const size_t inputs = (size_t)e->in * sizeof(float);
    const struct {
        const char *name;
        void *data;
        size_t bytes;
    } part[] = {
        {"model.elite", p->elite, sizeof p->elite},
        {"model.fits", &e->fits, sizeof e->fits},
        {"model.weights", e->net->param, weights},
        {"model.adam.steps", &e->adam->steps, sizeof e->adam->steps},
        {"model.adam.m", e->adam->m, weights},
        {"model.adam.v", e->adam->v, weights},
        {"model.bounds", e->bound, bounds},
        {"model.bounds.steps", &e->bound_adam->steps, sizeof e->bound_adam->steps},
        {"model.bounds.m", e->bound_adam->m, bounds},
        {"model.bounds.v", e->bound_adam->v, bounds},
        {"model.scale.mean", e->scaler->mean, inputs},
        {"model.scale.inverse", e->scaler->inverse, inputs},
    };
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        int code = visit(ctx, part[i].name, part[i].data, part[i].bytes, err);
        if (code)
            return code;
    }
    for (int i = 0; i < p->elites; i++)
        if (p->elite[i] < 0 || p->elite[i] >= p->members)
            return opc_fail(err, OPC_EDAMAGED, "elite %d is member %d of %d", i, p->elite[i],
                            p->members);
    return OPC_OK;
}

static const struct opc_predictor_type ensemble_type = {
    .name = "ensemble",
    .fit = opc_ensemble_fit,
    .predict = predict,
    .destroy = destroy,
    .state = state,
    .jacobian = opc_ensemble_jacobian,
};

static int check(const struct opc_ensemble_config *c, struct opc_err *err)
{
    const int layers = c->hidden.n + 1;
    if (c->elites > c->members)
        return opc_fail(err, OPC_EUSER,
                        "model.elites = %d, but model.members = %d; there cannot be more elites",
                        c->elites, c->members);
    if (layers > OPC_MLP_LAYERS)
        return opc_fail(err, OPC_EUSER, "model.hidden lists %d layers; at most %d", c->hidden.n,
                        OPC_MLP_LAYERS - 1);
    if (c->weight_decay.n != 1 && c->weight_decay.n != layers)
        return opc_fail(
            err, OPC_EUSER,
            "model.weight_decay lists %d numbers; %d hidden layers need %d (the output layer "
            "counts), or one number for all",
            c->weight_decay.n, c->hidden.n, layers);
    return OPC_OK;
}

int opc_ensemble_make(const struct opc_ensemble_config *config, int obs, int act, int threads,
                      uint64_t seed, uint32_t which, struct opc_predictor **out,
                      struct opc_err *err)
{
    if (check(config, err))
        return err ? (int)err->code : OPC_EUSER;
    struct opc_ensemble *e = opc_alloc(1, sizeof *e);
    if (!e)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the model");
    e->base = (struct opc_predictor){.type = &ensemble_type,
                                     .obs = obs,
                                     .act = act,
                                     .members = config->members,
                                     .elites = config->elites};
    for (int i = 0; i < config->elites; i++)
        e->base.elite[i] = i;
    e->config = *config;
    e->in = obs + act;
    e->dim = obs + 1;
    e->seed = seed;
    e->which = which;
    e->sets = config->bounds == OPC_BOUNDS_MEMBER ? config->members : 1;
    e->threads = threads;

    struct opc_mlp_shape shape = {
        .members = config->members, .layers = config->hidden.n + 1, .hidden = OPC_SWISH};
    shape.width[0] = e->in;
    for (int l = 0; l < config->hidden.n; l++)
        shape.width[l + 1] = config->hidden.at[l];
    shape.width[shape.layers] = 2 * e->dim;

    struct opc_adam_config adam = opc_adam_usual(config->learning_rate);
    adam.torch = config->adam == 1;
    const size_t bounds = (size_t)(e->sets * 2 * e->dim);
    int code = opc_mlp_create(&shape, &e->net, err);
    if (!code)
        code = opc_adam_create((size_t)config->members * e->net->each, adam, &e->adam, err);
    if (!code)
        code = opc_adam_create(bounds, adam, &e->bound_adam, err);
    if (!code)
        code = opc_scaler_create(e->in, &e->scaler, err);
    if (!code) {
        e->bound = opc_alloc(bounds, sizeof *e->bound);
        e->order = opc_alloc(OPC_AT_ONCE, sizeof *e->order);
        e->scratch = opc_alloc((size_t)threads, sizeof *e->scratch);
        if (!e->bound || !e->order || !e->scratch)
            code = opc_fail(err, OPC_ENOMEM, "not enough memory for the model's scratch memory");
    }
    for (int i = 0; !code && i < threads; i++)
        code = opc_arena_create(chunk_need(e), &e->scratch[i], err);
    if (code) {
        destroy(&e->base);
        return code;
    }
    opc_ensemble_restart(e);
    *out = &e->base;
    return OPC_OK;
}
