/* SPDX-License-Identifier: MIT */
/* The deterministic multi-step model of SLBO (Luo et al. 2019): statistics, the loss over a window
 * and its gradient, one Adam step, prediction. Called by agent/slbo.c.
 *
 * Invariant: no sum depends on threads. Networks run on the pool by panels and by outputs; errors,
 * losses and the norm of the gradient are computed by the calling thread in row order. */
#include "model/multistep.h"

#include "base/pool.h"

#include <math.h>
#include <string.h>

enum { P = OPC_PANEL, CHUNK = 4, ROWS = CHUNK * P, OUTPUTS_AT_ONCE = 32 };

static const double FIRST_STD = 1e-5; /* of the weights */
static const double PUBLISHED_CLIP = 100;
static const double SMALL_LOSS = 1e-12; /* below, an unsquared error has no useful gradient */

struct opc_multistep_scales opc_multistep_scales(const struct opc_multistep *m)
{
    const size_t obs = (size_t)m->options.obs;
    float *at = m->scales;
    return (struct opc_multistep_scales){
        .mean = at,
        .inverse = at + obs,
        .low = at + 2 * obs,
        .high = at + 3 * obs,
        .diff_mean = at + 4 * obs,
        .diff_std = at + 5 * obs + 1,
        .weight = at + 6 * obs + 2,
    };
}

/* ---- life ------------------------------------------------------------------------------------ */

void opc_multistep_destroy(struct opc_multistep *m)
{
    if (!m)
        return;
    for (int i = 0; i < OPC_WINDOW_MAX; i++) {
        opc_free(m->record[i]);
        opc_free(m->x[i]);
        opc_free(m->s[i]);
        opc_free(m->next[i]);
        opc_free(m->loss[i]);
        opc_tape_destroy(m->tape[i]);
    }
    opc_mlp_destroy(m->net);
    opc_adam_destroy(m->adam);
    opc_arena_destroy(&m->scratch);
    opc_free(m->stats);
    opc_free(m->scales);
    opc_free(m->ds);
    opc_free(m->dx);
    opc_free(m->grad);
    opc_free(m->step);
    opc_free(m);
}

/* Truncated normal weights of standard deviation FIRST_STD; opc_mlp_init draws them with
 * 1 / (2 sqrt(in)). */
static void draw_weights(struct opc_mlp *net, uint64_t seed, uint32_t which)
{
    opc_mlp_init(net, OPC_INIT_TRUNCATED, seed, which);
    for (int l = 0; l < net->shape.layers; l++) {
        const struct opc_layer *layer = &net->layer[l];
        const float factor = (float)(FIRST_STD * 2 * sqrt((double)layer->in));
        for (size_t i = layer->weight; i < layer->bias; i++)
            net->param[i] *= factor;
    }
}

/* Scales from the statistics; without any, those of mean 0 and deviation 1. */
static void refresh_scales(struct opc_multistep *m)
{
    const struct opc_multistep_scales scales = opc_multistep_scales(m);
    const int obs = m->options.obs;
    const double max = m->options.clip;
    for (int k = 0; k < obs; k++) {
        const struct opc_running *s = &m->stats[k];
        const double std = s->count > 0 ? sqrt(s->var) : 1;
        scales.mean[k] = (float)s->mean;
        scales.inverse[k] = (float)(1 / fmax(std, 1e-8));
        scales.low[k] = s->count > 0 ? (float)(s->mean - max * std) : -INFINITY;
        scales.high[k] = s->count > 0 ? (float)(s->mean + max * std) : INFINITY;
    }
    for (int k = 0; k <= obs; k++) {
        const struct opc_running *d = &m->stats[obs + k];
        const double std = d->count > 0 ? sqrt(d->var) : 1;
        scales.diff_mean[k] = (float)d->mean;
        scales.diff_std[k] = (float)std;
        scales.weight[k] = (float)(1 / fmax(std, 1e-6));
    }
}

/* Sizes that everything else is allocated by. */
static void set_sizes(struct opc_multistep *m, const struct opc_multistep_options *o)
{
    m->options = *o;
    m->options.hidden = NULL;
    if (o->clip <= 0)
        m->options.clip = PUBLISHED_CLIP;
    m->in = o->obs + o->act;
    m->out = o->obs + 1;
    m->columns = 2 * o->obs + o->act + 2;
}

static int shape_of(const struct opc_multistep *m, const struct opc_multistep_options *o,
                    struct opc_mlp_shape *shape, struct opc_err *err)
{
    return opc_mlp_shape_from(1, m->in, o->hidden, o->depth, m->out, OPC_ACTIVATION_RELU, shape,
                              err);
}

/* What a step of the window is kept in, besides a tape. */
enum { STEP_BLOCKS = 5, BLOCKS = 6 };
static void list_step_blocks(struct opc_multistep *m, int i, struct opc_block blocks[STEP_BLOCKS])
{
    const size_t rows = (size_t)opc_panels(m->options.batch) * P, f = sizeof(float);
    const size_t obs = (size_t)m->options.obs, in = (size_t)m->in;
    const struct opc_block all[STEP_BLOCKS] = {
        {&m->record[i], rows, (size_t)m->columns * f},
        {&m->x[i], rows, in * f},
        {&m->s[i], rows, obs * f},
        {&m->next[i], rows, obs * f},
        {&m->loss[i], rows, sizeof(double)},
    };
    memcpy(blocks, all, sizeof all);
}

/* Statistics and gradients. */
static void list_blocks(struct opc_multistep *m, struct opc_block blocks[BLOCKS])
{
    const size_t rows = (size_t)opc_panels(m->options.batch) * P, f = sizeof(float);
    const size_t obs = (size_t)m->options.obs;
    const struct opc_block all[BLOCKS] = {
        {&m->stats, 2 * obs + 1, sizeof *m->stats},
        {&m->scales, opc_multistep_scales_count(m->options.obs), f},
        {&m->ds, rows, obs * f},
        {&m->dx, rows, (size_t)m->in * f},
        {&m->grad, m->net->each, f},
        {&m->step, m->net->each, f},
    };
    memcpy(blocks, all, sizeof all);
}

/* Prediction: inputs, outputs and hidden layers of CHUNK panels. */
static size_t scratch_of(const struct opc_multistep *m)
{
    return opc_mlp_infer_need(m->net, CHUNK) + opc_arena_need((size_t)m->in, ROWS * sizeof(float)) +
           opc_arena_need((size_t)m->out, ROWS * sizeof(float));
}

/* Panels and tapes of one window. */
static int make_window(struct opc_multistep *m, struct opc_err *err)
{
    int code = OPC_OK;
    for (int i = 0; i < m->options.window && !code; i++) {
        struct opc_block blocks[STEP_BLOCKS];
        list_step_blocks(m, i, blocks);
        if (!opc_alloc_all(blocks, STEP_BLOCKS))
            return opc_fail(err, OPC_ENOMEM, "not enough memory for batches of %d windows",
                            m->options.batch);
        code = opc_tape_create(m->net, m->options.batch, &m->tape[i], err);
    }
    return code;
}

static int make_parts(struct opc_multistep *m, const struct opc_multistep_options *o,
                      struct opc_err *err)
{
    struct opc_mlp_shape shape;
    struct opc_block blocks[BLOCKS];
    OPC_TRY(shape_of(m, o, &shape, err));
    OPC_TRY(opc_mlp_create(&shape, &m->net, err));
    draw_weights(m->net, o->seed, o->which);
    OPC_TRY(opc_adam_create(m->net->each, opc_adam_usual(o->learning_rate), &m->adam, err));
    OPC_TRY(make_window(m, err));
    list_blocks(m, blocks);
    if (!opc_alloc_all(blocks, BLOCKS))
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the model's gradients");
    refresh_scales(m);
    return opc_arena_create(scratch_of(m), &m->scratch, err);
}

int opc_multistep_create(const struct opc_multistep_options *o, struct opc_multistep **out,
                         struct opc_err *err)
{
    struct opc_multistep *m = opc_alloc(1, sizeof *m);
    if (!m)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the model");
    set_sizes(m, o);
    const int code = make_parts(m, o, err);
    if (code) {
        opc_multistep_destroy(m);
        return code;
    }
    *out = m;
    return OPC_OK;
}

size_t opc_multistep_need(const struct opc_multistep_options *o)
{
    struct opc_multistep m = {0};
    struct opc_mlp_shape shape;
    struct opc_mlp net;
    struct opc_err ignored;
    struct opc_block step[STEP_BLOCKS], blocks[BLOCKS];
    set_sizes(&m, o);
    if (shape_of(&m, o, &shape, &ignored) || opc_mlp_layout(&shape, &net, &ignored))
        return 0; /* create refuses these options */
    m.net = &net;
    list_step_blocks(&m, 0, step);
    list_blocks(&m, blocks);
    return opc_alloc_need(1, sizeof m) + opc_mlp_bytes(&net) + opc_adam_bytes(net.each) +
           (size_t)o->window *
               (opc_blocks_need(step, STEP_BLOCKS) + opc_tape_bytes(&net, o->batch)) +
           opc_blocks_need(blocks, BLOCKS) + opc_alloc_need(scratch_of(&m), 1);
}

/* ---- statistics ------------------------------------------------------------------------------ */

void opc_multistep_observe(struct opc_multistep *m, int n, const float *const *row)
{
    const int obs = m->options.obs, reward = obs + m->options.act, next = reward + 2;
    if (n == 0)
        return;
    /* Entry k: a state, a difference, or the reward. Two passes, mean first, so that a large mean
     * does not drown the variance. */
    for (int k = 0; k <= 2 * obs; k++) {
        double sum = 0, squares = 0;
        for (int pass = 0; pass < 2; pass++)
            for (int i = 0; i < n; i++) {
                const double v = k < obs       ? (double)row[i][k]
                                 : k < 2 * obs ? (double)(row[i][next + k - obs] - row[i][k - obs])
                                               : (double)row[i][reward];
                if (pass == 0)
                    sum += v;
                else
                    squares += (v - sum / n) * (v - sum / n);
            }
        opc_running_merge(&m->stats[k], n, sum / n, squares / n);
    }
    refresh_scales(m);
}

/* ---- the loss of a window -------------------------------------------------------------------- */

static float clip(float v, float low, float high)
{
    return v < low ? low : v > high ? high : v;
}

/* s + sigma_d net + mu_d, before it is clipped to [low, high]. */
static float moved(const struct opc_multistep_scales *scales, int k, float s, float y)
{
    return s + (scales->diff_std[k] * y + scales->diff_mean[k]);
}

/* Step i of all windows, forwards: from s[i] to next[i]. */
static void forward_step(struct opc_multistep *m, int n, int i)
{
    const struct opc_multistep_scales scales = opc_multistep_scales(m);
    const int obs = m->options.obs, act = m->options.act, last = m->net->shape.layers - 1;
    for (int r = 0; r < opc_panels(n) * P; r++) {
        for (int k = 0; k < obs; k++)
            m->x[i][opc_panel_place(r, m->in, k)] =
                (m->s[i][opc_panel_place(r, obs, k)] - scales.mean[k]) * scales.inverse[k];
        for (int k = 0; k < act; k++)
            m->x[i][opc_panel_place(r, m->in, obs + k)] =
                clip(m->record[i][opc_panel_place(r, m->columns, obs + k)], -1, 1);
    }
    opc_mlp_forward(m->net, n, m->x[i], (size_t)m->in * P, 0, &m->tape[i], m->options.pool);
    for (int r = 0; r < opc_panels(n) * P; r++)
        for (int k = 0; k < obs; k++)
            m->next[i][opc_panel_place(r, obs, k)] =
                clip(moved(&scales, k, m->s[i][opc_panel_place(r, obs, k)],
                           m->tape[i]->y[last][opc_panel_place(r, m->out, k)]),
                     scales.low[k], scales.high[k]);
}

/* e_ik / sigma_dk of row r: the difference of differences; k = obs is the reward. */
static double scaled_error(const struct opc_multistep *m, int i, int r, int k)
{
    const struct opc_multistep_scales scales = opc_multistep_scales(m);
    const int obs = m->options.obs, reward = obs + m->options.act, after = reward + 2;
    const float *record = m->record[i];
    double e;
    if (k < obs) {
        const double predicted = (double)m->next[i][opc_panel_place(r, obs, k)] -
                                 (double)m->s[i][opc_panel_place(r, obs, k)];
        e = predicted - ((double)record[opc_panel_place(r, m->columns, after + k)] -
                         (double)record[opc_panel_place(r, m->columns, k)]);
    } else {
        const float *y = m->tape[i]->y[m->net->shape.layers - 1];
        e = (double)(scales.diff_std[k] * y[opc_panel_place(r, m->out, k)] + scales.diff_mean[k]) -
            (double)record[opc_panel_place(r, m->columns, reward)];
    }
    return e * (double)scales.weight[k];
}

/* N of the loss: how many entries the error of a step has. */
static int entries(const struct opc_multistep *m)
{
    return m->options.obs + m->options.reward;
}

/* All steps of the windows, and l_i of each. Returns the loss. */
static double forward_window(struct opc_multistep *m, int n, const float *const *row,
                             const bool *cut)
{
    const int H = m->options.window, obs = m->options.obs, N = entries(m);
    double sum = 0;
    for (int i = 0; i < H; i++) {
        opc_kernels()->collect(n, m->columns, row + (size_t)i * (size_t)n, m->record[i],
                               (size_t)m->columns * P);
        /* The first step starts in the recorded state; later ones where the one before led, or in
         * the recorded state again where that one was the last of its episode. */
        for (int r = 0; r < opc_panels(n) * P; r++) {
            const bool recorded = i == 0 || (r < n && cut[(i - 1) * n + r]);
            for (int k = 0; k < obs; k++)
                m->s[i][opc_panel_place(r, obs, k)] =
                    recorded ? m->record[i][opc_panel_place(r, m->columns, k)]
                             : m->next[i - 1][opc_panel_place(r, obs, k)];
        }
        forward_step(m, n, i);
        for (int r = 0; r < n; r++) {
            double squares = 0;
            for (int k = 0; k < N; k++) {
                const double z = scaled_error(m, i, r, k);
                squares += z * z;
            }
            m->loss[i][r] = sqrt(squares / N);
            sum += m->loss[i][r];
        }
    }
    return sum / (double)H / n;
}

/* ---- its gradient ---------------------------------------------------------------------------- */

/* dy of step i's outputs, from the error of step i and, where the window goes on from its
 * prediction, from ds, the gradient by the state the next step starts in. ds becomes the gradient
 * by s^_i but for the part that goes through the network. With c = d l_i / d e_i and
 * g = d loss / d s^_i+1:
 *
 *     e_i = s^_i+1 - s^_i - ...  and  s^_i+1 = s^_i + sigma_d y + mu_d   give
 *     dy = sigma_d g,   d s^_i = (g - c) + (through the network) */
static void outputs_gradient(struct opc_multistep *m, int n, int i, const bool *cut)
{
    const struct opc_multistep_scales scales = opc_multistep_scales(m);
    const int obs = m->options.obs, H = m->options.window, last = m->net->shape.layers - 1;
    const float *y = m->tape[i]->y[last];
    float *dy = m->tape[i]->dy[last];
    for (int r = 0; r < opc_panels(n) * P; r++) {
        /* d l / d e_k = e_k / (N sigma_k^2 l); rows of padding have none */
        const double l = r < n ? m->loss[i][r] : 0;
        const double factor = l < SMALL_LOSS ? 0 : 1 / (entries(m) * l * H * n);
        const bool goes_on = r < n && i + 1 < H && !cut[i * n + r];
        for (int k = 0; k < obs; k++) {
            const size_t at = opc_panel_place(r, obs, k);
            const double c =
                factor > 0 ? factor * scaled_error(m, i, r, k) * (double)scales.weight[k] : 0;
            double g = c + (goes_on ? (double)m->ds[at] : 0);
            const float free = moved(&scales, k, m->s[i][at], y[opc_panel_place(r, m->out, k)]);
            if (free < scales.low[k] || free > scales.high[k])
                g = 0; /* a clipped state does not move */
            dy[opc_panel_place(r, m->out, k)] = (float)(g * (double)scales.diff_std[k]);
            m->ds[at] = (float)(g - c);
        }
        dy[opc_panel_place(r, m->out, obs)] =
            m->options.reward && factor > 0
                ? (float)(factor * scaled_error(m, i, r, obs) * (double)scales.weight[obs] *
                          (double)scales.diff_std[obs])
                : 0;
    }
}

/* The weight gradient of one layer, shared out by outputs. */
struct layer_work {
    const struct opc_mlp *net;
    int layer, rows;
    const struct opc_tape *tape;
    float *grad;
};

static void layer_chunk(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct layer_work *w = ctx;
    const int out = w->net->layer[w->layer].out, o1 = end * OUTPUTS_AT_ONCE;
    opc_mlp_gradient_part(w->net, w->layer, first * OUTPUTS_AT_ONCE, o1 < out ? o1 : out, w->rows,
                          w->tape, w->tape->transposed, w->grad);
}

static void weight_gradient(struct opc_multistep *m, int n, int i)
{
    const int panels = opc_panels(n);
    for (int l = 0; l < m->net->shape.layers; l++) {
        struct layer_work work = {m->net, l, n, m->tape[i], m->step};
        const int parts = (m->net->layer[l].out + OUTPUTS_AT_ONCE - 1) / OUTPUTS_AT_ONCE;
        opc_mlp_transpose_part(m->net, l, 0, panels, panels, m->tape[i], m->tape[i]->transposed);
        opc_pool_each(m->options.pool, parts, 1, layer_chunk, &work);
    }
    for (size_t k = 0; k < m->net->each; k++)
        m->grad[k] += m->step[k];
}

double opc_multistep_gradient(struct opc_multistep *m, int n, const float *const *row,
                              const bool *cut)
{
    const struct opc_multistep_scales scales = opc_multistep_scales(m);
    const int obs = m->options.obs;
    const double loss = forward_window(m, n, row, cut);
    /* the weight decay is part of the loss, biases included */
    for (size_t k = 0; k < m->net->each; k++)
        m->grad[k] = (float)m->options.weight_decay * m->net->param[k];
    /* back through time */
    for (int i = m->options.window - 1; i >= 0; i--) {
        outputs_gradient(m, n, i, cut);
        opc_mlp_backward(m->net, n, &m->tape[i], NULL, i > 0 ? m->dx : NULL, (size_t)m->in * P,
                         m->options.pool);
        weight_gradient(m, n, i);
        for (int r = 0; r < opc_panels(n) * P && i > 0; r++)
            for (int k = 0; k < obs; k++)
                m->ds[opc_panel_place(r, obs, k)] +=
                    m->dx[opc_panel_place(r, m->in, k)] * scales.inverse[k];
    }
    return loss;
}

double opc_multistep_train(struct opc_multistep *m, int n, const float *const *row, const bool *cut)
{
    const double loss = opc_multistep_gradient(m, n, row, cut), max = m->options.max_grad_norm;
    double squares = 0;
    for (size_t k = 0; k < m->net->each; k++)
        squares += (double)m->grad[k] * (double)m->grad[k];
    /* a gradient that is too long keeps its direction */
    if (max > 0 && sqrt(squares) > max) {
        const float factor = (float)(max / sqrt(squares));
        for (size_t k = 0; k < m->net->each; k++)
            m->grad[k] *= factor;
    }
    opc_adam_step(m->adam, 0.0, m->grad, m->net->param);
    return loss;
}

/* ---- prediction ------------------------------------------------------------------------------ */

/* Up to ROWS rows. */
static void predict_some(struct opc_multistep *m, int n, const float *s, const float *a,
                         float *next, float *reward)
{
    const struct opc_multistep_scales scales = opc_multistep_scales(m);
    const int obs = m->options.obs, act = m->options.act;
    const float max = (float)m->options.clip;
    const size_t mark = m->scratch.used;
    float *x = opc_floats(&m->scratch, (size_t)m->in, ROWS);
    float *y = opc_floats(&m->scratch, (size_t)m->out, ROWS);
    /* Inputs in panels; the padding is 0. */
    for (int r = 0; r < opc_panels(n) * P; r++) {
        for (int k = 0; k < obs; k++)
            x[opc_panel_place(r, m->in, k)] =
                r < n ? (s[r * obs + k] - scales.mean[k]) * scales.inverse[k] : 0;
        for (int k = 0; k < act; k++)
            x[opc_panel_place(r, m->in, obs + k)] = r < n ? clip(a[r * act + k], -1, 1) : 0;
    }
    opc_mlp_infer(m->net, 0, opc_panels(n), x, (size_t)m->in * P, m->out, y, (size_t)m->out * P,
                  &m->scratch);
    for (int r = 0; r < n; r++) {
        for (int k = 0; k < obs; k++)
            next[r * obs + k] =
                clip(moved(&scales, k, s[r * obs + k], y[opc_panel_place(r, m->out, k)]),
                     scales.low[k], scales.high[k]);
        if (reward)
            reward[r] = scales.diff_std[obs] * clip(y[opc_panel_place(r, m->out, obs)], -max, max) +
                        scales.diff_mean[obs];
    }
    opc_arena_rewind(&m->scratch, mark);
}

void opc_multistep_predict(struct opc_multistep *m, int n, const float *s, const float *a,
                           float *next, float *reward)
{
    const size_t obs = (size_t)m->options.obs, act = (size_t)m->options.act;
    for (int i = 0; i < n; i += ROWS)
        predict_some(m, n - i < ROWS ? n - i : ROWS, s + (size_t)i * obs, a + (size_t)i * act,
                     next + (size_t)i * obs, reward ? reward + i : NULL);
}
