/* SPDX-License-Identifier: MIT */
/* The probabilistic ensemble: prediction, state and life of the model p~ of eq. 2, whose mean f
 * enters eq. 5. opc/transition.c asks it through opc_predictor_mean and opc_predictor_sample;
 * fitting is in fit.c. A change must keep this: a row's prediction depends, to the bit, on the
 * row, its elite and its stream alone, wherever the row stands in a batch. Eq. 5 is exact on-policy
 * because of it. */
#include "model/ensemble_private.h"

#include "base/pool.h"
#include "num/network.h"
#include "num/normal.h"

#include <math.h>
#include <string.h>

#define SELF struct opc_ensemble_config
const struct opc_section opc_ensemble_section = OPC_SECTION(
    "model", "the probabilistic ensemble that predicts next state and reward", OPC_ENSEMBLE_FIELDS);
#undef SELF

/* ---- prediction --------------------------------------------------------------------------------
 * Rows are sorted by elite (a counting sort, so equal elites keep their order) and cut into chunks
 * of 8 panels that go through the whole network while they are in the cache. */

/* One call of ensemble_predict, cut into chunks. */
struct query {
    const struct opc_ensemble *ensemble;
    const float *s, *a;
    struct opc_rng *rng; /* NULL: the mean is wanted */
    float *y;            /* [n][dim] */
    const int *order;    /* row numbers, sorted by elite */
    int n_chunks;
    struct chunk {
        int elite, first, rows; /* in `order` */
    } * chunk;
};

enum { ROWS = OPC_CHUNK * OPC_PANEL };

/* Bytes of scratch for one thread in predict_chunk. */
static size_t chunk_need(const struct opc_ensemble *ensemble)
{
    const size_t wide = ROWS * sizeof(float);
    return opc_mlp_infer_need(ensemble->net, OPC_CHUNK) +
           opc_arena_need((size_t)ensemble->in, wide) * 2 +
           opc_arena_need((size_t)ensemble->dim, wide) * 4 +
           opc_arena_need(ROWS, sizeof(struct opc_rng));
}

/* Turns the chunk's means into draws, mean + exp(logvar / 2) eps. out[panels][2 dim][16] holds
 * means and raw log-variances. */
static void add_noise(const struct query *query, const struct chunk *chunk, int panels, float *out,
                      size_t stride, struct opc_arena *scratch)
{
    const struct opc_ensemble *ensemble = query->ensemble;
    const int member = ensemble->base.elite[chunk->elite];
    const size_t n = (size_t)ensemble->dim * OPC_PANEL;
    /* The rows' streams are copied together for one call, and written back advanced. */
    struct opc_rng *rng = opc_arena_take(scratch, ROWS, sizeof *rng);
    float *eps = opc_floats(scratch, (size_t)ensemble->dim, ROWS);
    for (int i = 0; i < chunk->rows; i++)
        rng[i] = query->rng[query->order[chunk->first + i]];
    opc_rng_normals_rows(rng, chunk->rows, ensemble->dim, eps);
    for (int i = 0; i < chunk->rows; i++)
        query->rng[query->order[chunk->first + i]] = rng[i];

    for (int p = 0; p < panels; p++) {
        float *mean = out + (size_t)p * stride;
        opc_kernels()->draw_bounded(ensemble->dim, opc_ensemble_upper(ensemble, member),
                                    opc_ensemble_lower(ensemble, member), mean + n,
                                    eps + (size_t)p * n, mean);
    }
}

/* One panel [dim][16] of normalised predictions to the task's units, m + d mu. Noise is in it
 * already, and becomes d exp(l / 2) eps. */
static void unscale_targets(const struct opc_ensemble *ensemble, float *out)
{
    for (int j = 0; j < ensemble->dim; j++) {
        const float m = ensemble->target->mean[j], d = (float)opc_scaler_std(ensemble->target, j);
        for (int i = 0; i < OPC_PANEL; i++)
            out[j * OPC_PANEL + i] = m + d * out[j * OPC_PANEL + i];
    }
}

/* Up to ROWS rows of one elite: gather, scale, network, noise, add s, scatter. */
static void predict_chunk(const struct query *query, const struct chunk *chunk,
                          struct opc_arena *scratch)
{
    const struct opc_ensemble *ensemble = query->ensemble;
    const struct opc_kernels *k = opc_kernels();
    const size_t mark = scratch->used;
    const int obs = ensemble->base.obs, act = ensemble->base.act, dim = ensemble->dim,
              panels = opc_panels(chunk->rows);
    const int *rows = query->order + chunk->first;
    const size_t xs = (size_t)ensemble->in * OPC_PANEL, ys = (size_t)(2 * dim) * OPC_PANEL;
    float *s = opc_floats(scratch, (size_t)obs, ROWS),
          *x = opc_floats(scratch, (size_t)ensemble->in, ROWS);
    float *out = opc_floats(scratch, (size_t)(2 * dim), ROWS);
    float *flat = opc_floats(scratch, ROWS, (size_t)dim);

    /* The inputs x = [s, a] in panels; s is kept unscaled, too, for the sum below. */
    k->gather(chunk->rows, obs, query->s, (size_t)obs, rows, s, (size_t)obs * OPC_PANEL);
    k->gather(chunk->rows, act, query->a, (size_t)act, rows, x + obs * OPC_PANEL, xs);
    for (int p = 0; p < panels; p++)
        memcpy(x + (size_t)p * xs, s + (size_t)(p * obs) * OPC_PANEL,
               (size_t)obs * OPC_PANEL * sizeof *x);
    /* Without noise the log-variances are not computed at all: the last layer stops after dim
     * outputs. */
    opc_scaler_apply(ensemble->scaler, panels, x, xs);
    opc_mlp_infer(ensemble->net, ensemble->base.elite[chunk->elite], panels, x, xs,
                  query->rng ? 2 * dim : dim, out, ys, scratch);
    if (query->rng)
        add_noise(query, chunk, panels, out, ys, scratch);

    /* The network predicts s' - s. */
    for (int p = 0; p < panels; p++) {
        float *to = out + (size_t)p * ys;
        const float *from = s + (size_t)(p * obs) * OPC_PANEL;
        if (ensemble->target)
            unscale_targets(ensemble, to);
        for (int i = 0; i < obs * OPC_PANEL; i++)
            to[i] += from[i];
    }
    /* Panels to rows, and each row to its place before the sort. */
    k->scatter(chunk->rows, dim, out, ys, flat, (size_t)dim);
    for (int i = 0; i < chunk->rows; i++)
        memcpy(query->y + (size_t)rows[i] * (size_t)dim, flat + (size_t)i * (size_t)dim,
               (size_t)dim * sizeof *flat);
    opc_arena_rewind(scratch, mark);
}

static void predict_chunks(void *ctx, int first, int end, int worker)
{
    const struct query *query = ctx;
    for (int i = first; i < end; i++)
        predict_chunk(query, &query->chunk[i], &query->ensemble->scratch[worker]);
}

/* Sorts rows 0 .. n-1 by elite into order (a counting sort) and cuts them into chunks of one elite
 * each. */
static void sort_by_elite(const struct opc_ensemble *ensemble, int n, const int *elite, int *order,
                          struct query *query)
{
    int first[OPC_MEMBERS + 1] = {0}, at[OPC_MEMBERS];
    /* first[k]: how many rows have an elite before k, so the place of elite k's first row. */
    for (int i = 0; i < n; i++)
        first[elite[i] + 1]++;
    for (int k = 0; k < ensemble->base.elites; k++) {
        first[k + 1] += first[k];
        at[k] = first[k];
    }
    for (int i = 0; i < n; i++)
        order[at[elite[i]]++] = i;
    query->order = order;
    /* Chunks of an elite have nearly as many panels as each other, so that no thread is left with a
     * short one, whose few panels would use the kernels badly. */
    for (int k = 0; k < ensemble->base.elites; k++) {
        const int panels = opc_panels(first[k + 1] - first[k]),
                  parts = (panels + OPC_CHUNK - 1) / OPC_CHUNK;
        for (int part = 0; part < parts; part++) {
            const int from = first[k] + opc_cut(panels, parts, part) * OPC_PANEL,
                      to = first[k] + opc_cut(panels, parts, part + 1) * OPC_PANEL;
            query->chunk[query->n_chunks++] =
                (struct chunk){k, from, (to < first[k + 1] ? to : first[k + 1]) - from};
        }
    }
}

/* What asks for the rows of a call from `first` on, not sorted yet. */
static struct query part_of(const struct opc_ensemble *ensemble, int first, const float *s,
                            const float *a, struct opc_rng *rng, float *y, struct chunk *chunk)
{
    const size_t at = (size_t)first;
    return (struct query){.ensemble = ensemble,
                          .s = s + at * (size_t)ensemble->base.obs,
                          .a = a + at * (size_t)ensemble->base.act,
                          .rng = rng ? rng + at : NULL,
                          .y = y + at * (size_t)ensemble->dim,
                          .chunk = chunk};
}

/* What one worker of a pool asks from within a chunk: with its scratch memory, and few rows at a
 * time. */
static void predict_as_worker(const struct opc_ensemble *ensemble, int n, const float *s,
                              const float *a, const int *elite, struct opc_rng *rng, float *y,
                              int worker)
{
    struct chunk chunk[1 + OPC_MEMBERS];
    int order[ROWS];
    for (int done = 0; done < n; done += ROWS) {
        struct query query = part_of(ensemble, done, s, a, rng, y, chunk);
        sort_by_elite(ensemble, n - done < ROWS ? n - done : ROWS, elite + done, order, &query);
        predict_chunks(&query, 0, query.n_chunks, worker);
    }
}

static int ensemble_callers(const struct opc_predictor *p)
{
    return ((const struct opc_ensemble *)p)->threads;
}

/* Any number of rows, OPC_AT_ONCE of them at a time, which bounds the memory of the sort. `elite`
 * holds indices 0 .. elites-1, not member numbers. */
static void ensemble_predict(const struct opc_predictor *p, int n, const float *s, const float *a,
                             const int *elite, struct opc_rng *rng, float *y, struct opc_pool *pool)
{
    const struct opc_ensemble *ensemble = (const struct opc_ensemble *)p;
    struct chunk chunk[OPC_AT_ONCE / ROWS + OPC_MEMBERS];
    if (!pool && opc_pool_worker() >= 0) {
        predict_as_worker(ensemble, n, s, a, elite, rng, y, opc_pool_worker());
        return;
    }
    if (opc_pool_threads(pool) > ensemble->threads) /* each of them needs scratch memory */
        pool = NULL;
    for (int done = 0; done < n; done += OPC_AT_ONCE) {
        const int here = n - done < OPC_AT_ONCE ? n - done : OPC_AT_ONCE;
        struct query query = part_of(ensemble, done, s, a, rng, y, chunk);
        sort_by_elite(ensemble, here, elite + done, ensemble->order, &query);
        opc_pool_each(pool, query.n_chunks, 1, predict_chunks, &query);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

void opc_ensemble_restart(struct opc_ensemble *ensemble)
{
    /* Later beginnings (model.warm_start = false) draw from streams of their own. */
    opc_mlp_init(ensemble->net, OPC_INIT_TRUNCATED, ensemble->seed,
                 ensemble->which | (uint32_t)(ensemble->fits & 0xFFFF) << 8);
    /* The bounds at their first values. */
    for (int i = 0; i < ensemble->sets; i++)
        for (int j = 0; j < ensemble->dim; j++) {
            ensemble->bound[(2 * i) * ensemble->dim + j] = (float)ensemble->config.log_var_max;
            ensemble->bound[(2 * i + 1) * ensemble->dim + j] = (float)ensemble->config.log_var_min;
        }
    /* Adam starts without moments. */
    struct opc_adam *both[] = {ensemble->adam, ensemble->bound_adam};
    for (int i = 0; i < 2; i++) {
        memset(both[i]->m, 0, both[i]->count * sizeof(float));
        memset(both[i]->v, 0, both[i]->count * sizeof(float));
        both[i]->steps = 0;
    }
}

/* Accepts a half-built ensemble: every destroy below takes NULL. */
static void ensemble_destroy(struct opc_predictor *p)
{
    struct opc_ensemble *ensemble = opc_ensemble_of(p);
    for (int i = 0; ensemble->scratch && i < ensemble->threads; i++)
        opc_arena_destroy(&ensemble->scratch[i]);
    opc_free(ensemble->scratch);
    opc_free(ensemble->order);
    opc_free(ensemble->bound);
    opc_adam_destroy(ensemble->adam);
    opc_adam_destroy(ensemble->bound_adam);
    opc_scaler_destroy(ensemble->scaler);
    opc_scaler_destroy(ensemble->target);
    opc_scaler_destroy(ensemble->target_before);
    opc_mlp_destroy(ensemble->net);
    opc_free(ensemble);
}

/* Everything a later fit or prediction depends on, by name, for checkpoints. Names and order are
 * part of the file format. Elites that were read are checked: they index memory. */
static int ensemble_state(struct opc_predictor *p,
                          int (*visit)(void *, const char *, void *, size_t, struct opc_err *),
                          void *ctx, struct opc_err *err)
{
    struct opc_ensemble *ensemble = opc_ensemble_of(p);
    /* Sizes in bytes. */
    const size_t weights = ensemble->adam->count * sizeof(float);
    const size_t bounds = ensemble->bound_adam->count * sizeof(float);
    const size_t inputs = (size_t)ensemble->in * sizeof(float);
    const size_t outputs = (size_t)ensemble->dim * sizeof(float);
    const struct opc_scaler *target = ensemble->target;
    const struct {
        const char *name;
        void *data;
        size_t bytes;
    } part[] = {
        {"model.elite", p->elite, sizeof p->elite},
        {"model.fits", &ensemble->fits, sizeof ensemble->fits},
        {"model.weights", ensemble->net->param, weights},
        {"model.adam.steps", &ensemble->adam->steps, sizeof ensemble->adam->steps},
        {"model.adam.m", ensemble->adam->m, weights},
        {"model.adam.v", ensemble->adam->v, weights},
        {"model.bounds", ensemble->bound, bounds},
        {"model.bounds.steps", &ensemble->bound_adam->steps, sizeof ensemble->bound_adam->steps},
        {"model.bounds.m", ensemble->bound_adam->m, bounds},
        {"model.bounds.v", ensemble->bound_adam->v, bounds},
        {"model.scale.mean", ensemble->scaler->mean, inputs},
        {"model.scale.inverse", ensemble->scaler->inverse, inputs},
        /* Those of settings that are off are NULL and left out, as in files of older programs. */
        {"model.target.mean", target ? target->mean : NULL, outputs},
        {"model.target.inverse", target ? target->inverse : NULL, outputs},
        {"model.rows", ensemble->config.new_ratio > 0 ? &ensemble->rows : NULL,
         sizeof ensemble->rows},
    };
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        const int code =
            part[i].data ? visit(ctx, part[i].name, part[i].data, part[i].bytes, err) : OPC_OK;
        if (code)
            return code;
    }
    /* A file may be damaged: an elite is a member's number and indexes memory. */
    for (int i = 0; i < p->elites; i++)
        if (p->elite[i] < 0 || p->elite[i] >= p->members)
            return opc_fail(err, OPC_EDAMAGED, "elite %d is member %d of %d", i, p->elite[i],
                            p->members);
    return OPC_OK;
}

static void copy_adam(const struct opc_adam *from, struct opc_adam *to)
{
    to->steps = from->steps;
    memcpy(to->m, from->m, from->count * sizeof *to->m);
    memcpy(to->v, from->v, from->count * sizeof *to->v);
}

static void copy_scaler(const struct opc_scaler *from, struct opc_scaler *to)
{
    memcpy(to->mean, from->mean, (size_t)from->dim * sizeof *to->mean);
    memcpy(to->inverse, from->inverse, (size_t)from->dim * sizeof *to->inverse);
}

static bool same_shape(const struct opc_mlp_shape *a, const struct opc_mlp_shape *b)
{
    return a->members == b->members && a->layers == b->layers && a->activation == b->activation &&
           a->layer_norm == b->layer_norm &&
           memcmp(a->width, b->width, ((size_t)a->layers + 1) * sizeof a->width[0]) == 0;
}

int opc_ensemble_copy(const struct opc_predictor *from, struct opc_predictor *to,
                      struct opc_err *err)
{
    const struct opc_ensemble *old = (const struct opc_ensemble *)from;
    struct opc_ensemble *ensemble = opc_ensemble_of(to);
    if (from->obs != to->obs || from->act != to->act || from->elites != to->elites ||
        !same_shape(&old->net->shape, &ensemble->net->shape) || old->sets != ensemble->sets ||
        !old->target != !ensemble->target)
        return opc_fail(err, OPC_EUSER, "an ensemble cannot take over networks of another shape");
    memcpy(to->elite, from->elite, sizeof to->elite);
    ensemble->fits = old->fits;
    ensemble->rows = old->rows;
    memcpy(ensemble->net->param, old->net->param, old->adam->count * sizeof(float));
    memcpy(ensemble->bound, old->bound, old->bound_adam->count * sizeof(float));
    copy_adam(old->adam, ensemble->adam);
    copy_adam(old->bound_adam, ensemble->bound_adam);
    copy_scaler(old->scaler, ensemble->scaler);
    if (old->target)
        copy_scaler(old->target, ensemble->target);
    return OPC_OK;
}

/* The bounds of its log-variances, and what the scale of the targets adds to log-deviations. */
static int network_variances(const struct opc_ensemble *ensemble, struct opc_network *out,
                             struct opc_err *err)
{
    const size_t bytes = (size_t)ensemble->dim * sizeof(float);
    OPC_TRY(opc_network_vary(out, err));
    memcpy(out->log_var_max, opc_ensemble_upper(ensemble, out->member), bytes);
    memcpy(out->log_var_min, opc_ensemble_lower(ensemble, out->member), bytes);
    for (int k = 0; k < ensemble->dim && ensemble->target; k++)
        out->log_std_shift[k] = (float)log(opc_scaler_std(ensemble->target, k));
    return OPC_OK;
}

/* Scaled inputs [s, a]; means, then raw log-variances. */
static int ensemble_network(const struct opc_predictor *p, int elite, struct opc_network *out,
                            struct opc_err *err)
{
    const struct opc_ensemble *ensemble = (const struct opc_ensemble *)p;
    *out = (struct opc_network){
        .net = ensemble->net, .member = p->elite[elite], .outputs = 2 * ensemble->dim};
    OPC_TRY(network_variances(ensemble, out, err));
    OPC_TRY(opc_network_scale(out, ensemble->in, err));
    memcpy(out->mean, ensemble->scaler->mean, (size_t)ensemble->in * sizeof *out->mean);
    memcpy(out->inverse, ensemble->scaler->inverse, (size_t)ensemble->in * sizeof *out->inverse);
    /* With model.normalize_targets the networks predict in deviations of the targets. */
    const int code = ensemble->target ? opc_network_unscale(out, ensemble->target->mean,
                                                            ensemble->target->inverse, err)
                                      : OPC_OK;
    if (code)
        opc_network_free(out);
    return code;
}

static void ensemble_scale(const struct opc_predictor *p, float *mean, float *inverse)
{
    const struct opc_scaler *scaler = ((const struct opc_ensemble *)p)->scaler;
    memcpy(mean, scaler->mean, (size_t)p->obs * sizeof *mean);
    memcpy(inverse, scaler->inverse, (size_t)p->obs * sizeof *inverse);
}

static const struct opc_predictor_type ensemble_type = {
    .name = "ensemble",
    .fit = opc_ensemble_fit,
    .predict = ensemble_predict,
    .destroy = ensemble_destroy,
    .state = ensemble_state,
    .jacobian = opc_ensemble_jacobian,
    .network = ensemble_network,
    .scale = ensemble_scale,
    .callers = ensemble_callers,
};

/* The default list, which fits any number of layers (trainer.c spreads it). */
static bool has_default_decay(const struct opc_ensemble_config *config)
{
    const struct opc_field *f = opc_section_find(&opc_ensemble_section, "weight_decay");
    return f && opc_field_equals(f, config, f->fallback);
}

/* Settings that contradict each other; what one setting alone may be is checked by base/field.c. */
static int check_config(const struct opc_ensemble_config *config, struct opc_err *err)
{
    const int layers = config->hidden.n + 1;
    if (config->elites > config->members)
        return opc_fail(err, OPC_EUSER,
                        "model.elites = %d, but model.members = %d; there cannot be more elites",
                        config->elites, config->members);
    if (layers > OPC_MLP_LAYERS)
        return opc_fail(err, OPC_EUSER, "model.hidden lists %d layers; at most %d",
                        config->hidden.n, OPC_MLP_LAYERS - 1);
    if (config->new_ratio > 0 && !config->bootstrap)
        return opc_fail(
            err, OPC_EUSER,
            "model.new_ratio = %g needs model.bootstrap = true: without it every row is "
            "drawn once in a pass",
            config->new_ratio);
    if (config->weight_decay.n != 1 && config->weight_decay.n != layers &&
        !has_default_decay(config))
        return opc_fail(
            err, OPC_EUSER,
            "model.weight_decay lists %d numbers; %d hidden layers need %d (the output layer "
            "counts), or one number for all",
            config->weight_decay.n, config->hidden.n, layers);
    return OPC_OK;
}

int opc_ensemble_make(const struct opc_ensemble_config *config, int obs, int act, int threads,
                      uint64_t seed, uint32_t which, struct opc_predictor **out,
                      struct opc_err *err)
{
    if (check_config(config, err))
        return err ? (int)err->code : OPC_EUSER;
    /* From here on failure ends in ensemble_destroy, which accepts what is there so far. */
    struct opc_ensemble *ensemble = opc_alloc(1, sizeof *ensemble);
    if (!ensemble)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the model");
    ensemble->base = (struct opc_predictor){.type = &ensemble_type,
                                            .obs = obs,
                                            .act = act,
                                            .members = config->members,
                                            .elites = config->elites};
    /* Before the first fit the first members are the elites. */
    for (int i = 0; i < config->elites; i++)
        ensemble->base.elite[i] = i;
    ensemble->config = *config;
    ensemble->in = obs + act;
    ensemble->dim = obs + 1;
    ensemble->seed = seed;
    ensemble->which = which;
    ensemble->sets = config->bounds == OPC_BOUNDS_MEMBER ? config->members : 1;
    ensemble->threads = threads;

    /* Hidden layers as in the settings, and 2 dim outputs: means, then raw log-variances. */
    struct opc_mlp_shape shape = {.members = config->members,
                                  .layers = config->hidden.n + 1,
                                  .activation = OPC_ACTIVATION_SWISH};
    shape.width[0] = ensemble->in;
    for (int l = 0; l < config->hidden.n; l++)
        shape.width[l + 1] = config->hidden.at[l];
    shape.width[shape.layers] = 2 * ensemble->dim;

    struct opc_adam_config adam = opc_adam_usual(config->learning_rate);
    adam.torch = config->adam == 1;
    /* Networks, optimisers, scaler, and the memory of predictions. */
    const size_t bounds = (size_t)(ensemble->sets * 2 * ensemble->dim);
    int code = opc_mlp_create(&shape, &ensemble->net, err);
    if (!code)
        code = opc_adam_create((size_t)config->members * ensemble->net->each, adam, &ensemble->adam,
                               err);
    if (!code)
        code = opc_adam_create(bounds, adam, &ensemble->bound_adam, err);
    if (!code)
        code = opc_scaler_create(ensemble->in, &ensemble->scaler, err);
    if (!code && config->normalize_targets)
        code = opc_scaler_create(ensemble->dim, &ensemble->target, err);
    if (!code && config->normalize_targets)
        code = opc_scaler_create(ensemble->dim, &ensemble->target_before, err);
    if (!code) {
        ensemble->bound = opc_alloc(bounds, sizeof *ensemble->bound);
        ensemble->order = opc_alloc(OPC_AT_ONCE, sizeof *ensemble->order);
        ensemble->scratch = opc_alloc((size_t)threads, sizeof *ensemble->scratch);
        if (!ensemble->bound || !ensemble->order || !ensemble->scratch)
            code = opc_fail(err, OPC_ENOMEM, "not enough memory for the model's scratch memory");
    }
    for (int i = 0; !code && i < threads; i++)
        code = opc_arena_create(chunk_need(ensemble), &ensemble->scratch[i], err);
    if (code) {
        ensemble_destroy(&ensemble->base);
        return code;
    }
    opc_ensemble_restart(ensemble);
    *out = &ensemble->base;
    return OPC_OK;
}
