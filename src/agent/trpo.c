/* SPDX-License-Identifier: MIT */
/* Trust region policy optimisation on a batch of trajectories; agent/trpo.h has the batch's layout.
 * With ratio = pi(a|s) / pi_old(a|s) and A the normalised advantage, one update maximises
 *
 *     gain(theta) = mean( ratio A ) + c mean( entropy ),   mean KL(old || new) <= max_kl
 *
 * by a step along x = (F + damping I)^-1 grad gain, found by conjugate gradients, and a line
 * search. F is the Hessian of the mean KL at the old policy. For a Gaussian whose deviation does
 * not depend on the state it is exact without second derivatives: with J = d mean / d W,
 *
 *     (F v)_W = 1/N sum_s J^T ((J v_W) / std^2),     (F v)_log_std = 2 v_log_std
 *
 * Invariant: rows go through the networks on the pool's threads, but every sum over rows is taken
 * in their order, so results do not depend on the number of threads. */
#include "agent/trpo.h"

#include "agent/advantages.h"
#include "base/pool.h"
#include "num/normal.h"
#include "num/solve/cg.h"

#include <math.h>
#include <string.h>

enum { P = OPC_PANEL, CHUNK = 8, ROWS = CHUNK * P };

#define HALF_LOG_2PI 0.91893853320467274178
static const double CG_TOLERANCE = 1e-10;
static const double KL_SLACK = 1.5; /* the line search accepts a KL of this times max_kl */

/* ---- entropy --------------------------------------------------------------------------------- */

/* As published: with h, l = (+-2 - mean) / (std sqrt 2),
 *     E = 1/2 (log std + 1/2 log 2 pi)(erf h - erf l) + 1/2 (h exp(-h^2) - l exp(-l^2)).
 * It is not the entropy of the Gaussian cut to [-2, 2] (that lacks a factor and a constant), but it
 * grows with it. */
double opc_clipped_entropy(double mean, double log_std, double *dmean, double *dlog_std)
{
    const double std = exp(log_std), h = (2 - mean) / (std * sqrt(2)),
                 l = (-2 - mean) / (std * sqrt(2));
    const double eh = exp(-h * h), el = exp(-l * l), mass = erf(h) - erf(l);
    const double height = log_std + HALF_LOG_2PI, root_pi = sqrt(acos(-1));
    /* d h / d mean = -1 / (std sqrt 2), d h / d log_std = -h; the same for l */
    if (dmean)
        *dmean =
            -(height * (eh - el) / root_pi + 0.5 * ((1 - 2 * h * h) * eh - (1 - 2 * l * l) * el)) /
            (std * sqrt(2));
    if (dlog_std)
        *dlog_std = 0.5 * mass - height * (h * eh - l * el) / root_pi -
                    0.5 * (h * (1 - 2 * h * h) * eh - l * (1 - 2 * l * l) * el);
    return 0.5 * height * mass + 0.5 * (h * eh - l * el);
}

/* ---- acting ---------------------------------------------------------------------------------- */

/* Actions of up to ROWS states. */
static void act_some(struct opc_trpo *trpo, const float *mean, const float *inverse, int n,
                     const float *state, float spread, struct opc_rng *rng, float *action)
{
    const int obs = trpo->options.obs, act = trpo->options.act;
    struct opc_arena *scratch = &trpo->scratch[0];
    const size_t mark = scratch->used;
    float *x = opc_floats(scratch, (size_t)obs, ROWS), *y = opc_floats(scratch, (size_t)act, ROWS);
    float *eps = opc_floats(scratch, (size_t)act, ROWS);
    /* Normalised states in panels; the padding is 0. */
    for (int i = 0; i < opc_panels(n) * P; i++)
        for (int k = 0; k < obs; k++)
            x[opc_panel_place(i, obs, k)] = i < n ? (state[i * obs + k] - mean[k]) * inverse[k] : 0;
    opc_mlp_infer(trpo->policy, 0, opc_panels(n), x, (size_t)obs * P, act, y, (size_t)act * P,
                  scratch);
    if (rng)
        opc_rng_normals_rows(rng, n, act, eps);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < act; k++) {
            action[i * act + k] = y[opc_panel_place(i, act, k)];
            if (rng)
                action[i * act + k] +=
                    spread * expf(trpo->log_std[k]) * eps[opc_panel_place(i, act, k)];
        }
    opc_arena_rewind(scratch, mark);
}

void opc_trpo_act(struct opc_trpo *trpo, const float *mean, const float *inverse, int n,
                  const float *state, float spread, struct opc_rng *rng, float *action)
{
    const size_t obs = (size_t)trpo->options.obs, act = (size_t)trpo->options.act;
    for (int i = 0; i < n; i += ROWS)
        act_some(trpo, mean, inverse, n - i < ROWS ? n - i : ROWS, state + (size_t)i * obs, spread,
                 rng ? rng + i : NULL, action + (size_t)i * act);
}

/* ---- values and advantages ------------------------------------------------------------------- */

/* V of ROWS states at a time. */
static void values_chunk(void *ctx, int first, int end, int worker)
{
    struct opc_trpo *trpo = ctx;
    const int obs = trpo->options.obs, all = trpo->options.envs * (trpo->options.length + 1);
    struct opc_arena *scratch = &trpo->scratch[worker];
    const size_t mark = scratch->used;
    float *x = opc_floats(scratch, (size_t)obs, ROWS), *v = opc_floats(scratch, 1, ROWS);
    for (int c = first; c < end; c++) {
        const int from = c * ROWS, n = all - from < ROWS ? all - from : ROWS;
        opc_kernels()->gather(n, obs, trpo->state + (size_t)from * (size_t)obs, (size_t)obs, NULL,
                              x, (size_t)obs * P);
        opc_mlp_infer(trpo->value, 0, opc_panels(n), x, (size_t)obs * P, 1, v, P, scratch);
        for (int i = 0; i < n; i++)
            trpo->values[from + i] = (double)v[i];
    }
    opc_arena_rewind(scratch, mark);
}

/* To mean 0 and the population's standard deviation 1. */
static void normalize_advantages(int n, double *advantage)
{
    double mean = 0, squares = 0;
    for (int i = 0; i < n; i++)
        mean += advantage[i] / n;
    for (int i = 0; i < n; i++)
        squares += (advantage[i] - mean) * (advantage[i] - mean);
    const double std = fmax(sqrt(squares / n), 1e-8);
    for (int i = 0; i < n; i++)
        advantage[i] = (advantage[i] - mean) / std;
}

void opc_trpo_advantages(struct opc_trpo *trpo)
{
    const struct opc_trpo_options *o = &trpo->options;
    const int all = o->envs * (o->length + 1);
    opc_pool_each(o->pool, (all + ROWS - 1) / ROWS, 1, values_chunk, trpo);
    for (int e = 0; e < o->envs; e++) {
        const int step = e * o->length, state = e * (o->length + 1);
        /* Episode after episode: advantages must not cross the end of one. */
        for (int t = 0, n; t < o->length; t += n) {
            for (n = 1; t + n < o->length && !trpo->done[step + t + n - 1]; n++)
                ;
            opc_advantages(n, trpo->reward + step + t, trpo->values + state + t,
                           trpo->done[step + t + n - 1], o->discount, o->gae_lambda,
                           trpo->advantage + step + t);
        }
        for (int t = 0; t < o->length; t++)
            trpo->target[step + t] = trpo->advantage[step + t] + trpo->values[state + t];
    }
    normalize_advantages(trpo->rows, trpo->advantage);
}

/* ---- the objective --------------------------------------------------------------------------- */

/* What depends on the deviations alone, once for all rows. */
static void refresh_deviations(struct opc_trpo *trpo)
{
    for (int k = 0; k < trpo->options.act; k++) {
        const double l = (double)trpo->log_std[k];
        trpo->inverse_std[k] = exp(-l);
        trpo->var_ratio[k] = exp(2 * ((double)trpo->old_log_std[k] - l));
    }
}

/* log pi(a) of step i by these means, in panels, and the deviations as they are. */
static double log_probability(const struct opc_trpo *trpo, int i, const float *mean)
{
    const int act = trpo->options.act;
    double sum = 0;
    for (int k = 0; k < act; k++) {
        const double z =
            ((double)trpo->action[i * act + k] - (double)mean[opc_panel_place(i, act, k)]) *
            trpo->inverse_std[k];
        sum -= 0.5 * z * z + (double)trpo->log_std[k] + HALF_LOG_2PI;
    }
    return sum;
}

static const float *policy_means(const struct opc_trpo *trpo)
{
    return trpo->policy_tape->y[trpo->policy->shape.layers - 1];
}

/* What the chunks of one objective share. */
struct objective {
    struct opc_trpo *trpo;
    double ent_coef;
};

/* Forward pass of some panels, and gain and KL of their rows. */
static void objective_chunk(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct objective *objective = ctx;
    struct opc_trpo *trpo = objective->trpo;
    const int act = trpo->options.act, panels = opc_panels(trpo->rows);
    const int p0 = first * CHUNK, p1 = end * CHUNK < panels ? end * CHUNK : panels;
    opc_mlp_forward_part(trpo->policy, 0, p0, p1, trpo->policy_tape);
    const float *mean = policy_means(trpo);
    for (int i = p0 * P; i < p1 * P && i < trpo->rows; i++) {
        double kl = 0, entropy = 0;
        for (int k = 0; k < act; k++) {
            const double l = (double)trpo->log_std[k], old = (double)trpo->old_log_std[k];
            const double gap = (double)trpo->old_mean[opc_panel_place(i, act, k)] -
                               (double)mean[opc_panel_place(i, act, k)];
            const double z = gap * trpo->inverse_std[k];
            kl += l - old + 0.5 * (trpo->var_ratio[k] + z * z - 1);
            if (objective->ent_coef != 0)
                entropy +=
                    opc_clipped_entropy((double)mean[opc_panel_place(i, act, k)], l, NULL, NULL);
        }
        const double ratio = exp(log_probability(trpo, i, mean) - trpo->old_logp[i]);
        trpo->row_kl[i] = kl;
        trpo->row_gain[i] = ratio * trpo->advantage[i] + objective->ent_coef * entropy;
    }
}

static int policy_chunks(const struct opc_trpo *trpo)
{
    return (opc_panels(trpo->rows) + CHUNK - 1) / CHUNK;
}

double opc_trpo_objective(struct opc_trpo *trpo, double ent_coef, double *kl)
{
    struct objective objective = {trpo, ent_coef};
    double gain = 0, kl_sum = 0;
    refresh_deviations(trpo);
    opc_pool_each(trpo->options.pool, policy_chunks(trpo), 1, objective_chunk, &objective);
    for (int i = 0; i < trpo->rows; i++) {
        gain += trpo->row_gain[i];
        kl_sum += trpo->row_kl[i];
    }
    if (kl)
        *kl = kl_sum / trpo->rows;
    return gain / trpo->rows;
}

/* Forward pass of all rows with the policy as it is. */
static void forward_chunk(void *ctx, int first, int end, int worker)
{
    (void)worker;
    struct opc_trpo *trpo = ctx;
    const int panels = opc_panels(trpo->rows);
    opc_mlp_forward_part(trpo->policy, 0, first * CHUNK,
                         end * CHUNK < panels ? end * CHUNK : panels, trpo->policy_tape);
}

void opc_trpo_remember(struct opc_trpo *trpo)
{
    const size_t obs = (size_t)trpo->options.obs, act = (size_t)trpo->options.act;
    opc_kernels()->gather(trpo->rows, trpo->options.obs, trpo->state, obs, trpo->row, trpo->x,
                          obs * P);
    opc_pool_each(trpo->options.pool, policy_chunks(trpo), 1, forward_chunk, trpo);
    memcpy(trpo->old_mean, policy_means(trpo),
           (size_t)opc_panels(trpo->rows) * act * P * sizeof(float));
    memcpy(trpo->old_log_std, trpo->log_std, act * sizeof(float));
    refresh_deviations(trpo);
    for (int i = 0; i < trpo->rows; i++)
        trpo->old_logp[i] = log_probability(trpo, i, trpo->old_mean);
}

/* ---- its gradient, and Fisher-vector products ------------------------------------------------ */

static void backward_chunk(void *ctx, int first, int end, int worker)
{
    (void)worker;
    struct opc_trpo *trpo = ctx;
    const int panels = opc_panels(trpo->rows);
    opc_mlp_backward_part(trpo->policy, 0, first * CHUNK,
                          end * CHUNK < panels ? end * CHUNK : panels, trpo->policy_tape);
}

/* Sums over all rows, one layer after the other; the layers' transposed inputs are those of the
 * last gradient: they do not change while products are taken. */
static void weights_chunk(void *ctx, int first, int end, int worker)
{
    (void)worker;
    struct opc_trpo *trpo = ctx;
    for (int l = first; l < end; l++)
        opc_mlp_gradient_part(trpo->policy, l, 0, trpo->policy->layer[l].out, trpo->rows,
                              trpo->policy_tape, trpo->transposed[l], trpo->grad);
}

void opc_trpo_gradient(struct opc_trpo *trpo, double ent_coef)
{
    const int act = trpo->options.act, n = trpo->rows, panels = opc_panels(n);
    const int layers = trpo->policy->shape.layers;
    const float *mean = policy_means(trpo);
    float *dmean = trpo->policy_tape->dy[layers - 1];
    memset(trpo->dlog_std, 0, (size_t)act * sizeof *trpo->dlog_std);
    /* d ratio / d mean = ratio z / std, d ratio / d log_std = ratio (z^2 - 1) */
    for (int i = 0; i < panels * P; i++) {
        const double ratio = i < n ? exp(log_probability(trpo, i, mean) - trpo->old_logp[i]) : 0;
        for (int k = 0; k < act; k++) {
            const size_t at = opc_panel_place(i, act, k);
            double by_mean = 0, by_log_std = 0;
            if (i < n) {
                const double l = (double)trpo->log_std[k], inverse = trpo->inverse_std[k];
                const double z = ((double)trpo->action[i * act + k] - (double)mean[at]) * inverse;
                if (ent_coef != 0)
                    opc_clipped_entropy((double)mean[at], l, &by_mean, &by_log_std);
                by_mean = ent_coef * by_mean + trpo->advantage[i] * ratio * z * inverse;
                by_log_std = ent_coef * by_log_std + trpo->advantage[i] * ratio * (z * z - 1);
            }
            dmean[at] = (float)(by_mean / n);
            trpo->dlog_std[k] += by_log_std / n;
        }
    }
    opc_pool_each(trpo->options.pool, policy_chunks(trpo), 1, backward_chunk, trpo);
    for (int l = 0; l < layers; l++)
        opc_mlp_transpose_part(trpo->policy, l, 0, panels, panels, trpo->policy_tape,
                               trpo->transposed[l]);
    opc_pool_each(trpo->options.pool, layers, 1, weights_chunk, trpo);
    for (size_t k = 0; k < trpo->policy->each; k++)
        trpo->gradient[k] = (double)trpo->grad[k];
    memcpy(trpo->gradient + trpo->policy->each, trpo->dlog_std, (size_t)act * sizeof(double));
}

/* One chunk of J v, forward mode: with v = dW, db in the direction and x' = 0 at the inputs,
 *     y' = act'(.) (W x' + dW x + db).
 * Then J^T of it over the variance, as far as the layers' dy; weights_chunk sums over rows. */
static void product_chunk(void *ctx, int first, int end, int worker)
{
    struct opc_trpo *trpo = ctx;
    const struct opc_kernels *kernels = opc_kernels();
    const struct opc_mlp *net = trpo->policy;
    struct opc_tape *tape = trpo->policy_tape;
    struct opc_arena *scratch = &trpo->scratch[worker];
    const int act = trpo->options.act, all = opc_panels(trpo->rows);
    for (int c = first; c < end; c++) {
        const size_t mark = scratch->used;
        const int p0 = c * CHUNK, panels = all - p0 < CHUNK ? all - p0 : CHUNK;
        const float *in = tape->x + (size_t)p0 * tape->xs, *moved = in;
        size_t xs = tape->xs;
        for (int l = 0; l < net->shape.layers; l++) {
            const struct opc_layer *layer = &net->layer[l];
            const size_t ys = (size_t)layer->out * P, n = (size_t)panels * ys;
            float *t = opc_floats(scratch, 1, n), *u = opc_floats(scratch, 1, n);
            kernels->forward(panels, layer->in, layer->out, trpo->direction + layer->weight,
                             layer->ld, trpo->direction + layer->bias, in, xs,
                             OPC_ACTIVATION_LINEAR, t, ys, NULL);
            if (l > 0) {
                kernels->forward(panels, layer->in, layer->out, net->param + layer->weight,
                                 layer->ld, trpo->zeros, moved, xs, OPC_ACTIVATION_LINEAR, u, ys,
                                 NULL);
                for (size_t i = 0; i < n; i++)
                    t[i] += u[i];
            }
            in = tape->y[l] + (size_t)p0 * ys;
            xs = ys;
            /* tanh' from its output; the last layer is linear */
            for (size_t i = 0; i < n && l + 1 < net->shape.layers; i++)
                t[i] *= 1.0f - in[i] * in[i];
            moved = t;
        }
        float *dy = tape->dy[net->shape.layers - 1];
        for (int k = 0; k < act; k++) {
            const double scale = trpo->inverse_std[k] * trpo->inverse_std[k] / trpo->rows;
            for (int i = 0; i < panels * P; i++) {
                const int r = p0 * P + i;
                dy[opc_panel_place(r, act, k)] =
                    r < trpo->rows ? (float)((double)moved[opc_panel_place(i, act, k)] * scale) : 0;
            }
        }
        opc_mlp_backward_part(net, 0, p0, p0 + panels, tape);
        opc_arena_rewind(scratch, mark);
    }
}

void opc_trpo_fisher(void *ctx, const double *v, double *out)
{
    struct opc_trpo *trpo = ctx;
    const size_t each = trpo->policy->each;
    for (size_t k = 0; k < each; k++)
        trpo->direction[k] = (float)v[k];
    opc_pool_each(trpo->options.pool, policy_chunks(trpo), 1, product_chunk, trpo);
    opc_pool_each(trpo->options.pool, trpo->policy->shape.layers, 1, weights_chunk, trpo);
    for (size_t k = 0; k < trpo->params; k++)
        out[k] = (k < each ? (double)trpo->grad[k] : 2 * v[k]) + trpo->options.cg_damping * v[k];
}

/* ---- the update ------------------------------------------------------------------------------ */

/* theta = kept + length * step */
static void move_policy(struct opc_trpo *trpo, double length)
{
    const size_t each = trpo->policy->each;
    for (size_t k = 0; k < trpo->params; k++) {
        const float at = (float)((double)trpo->kept[k] + length * trpo->step[k]);
        *(k < each ? &trpo->policy->param[k] : &trpo->log_std[k - each]) = at;
    }
}

bool opc_trpo_line_search(struct opc_trpo *trpo, double ent_coef, double before, double *gain,
                          double *kl)
{
    const struct opc_trpo_options *o = &trpo->options;
    const size_t each = trpo->policy->each;
    memcpy(trpo->kept, trpo->policy->param, each * sizeof(float));
    memcpy(trpo->kept + each, trpo->log_std, (size_t)o->act * sizeof(float));
    opc_conjugate_gradients(trpo->params, opc_trpo_fisher, trpo, trpo->gradient, o->cg_iterations,
                            CG_TOLERANCE, trpo->step, trpo->work);
    /* The longest step whose KL, by its second-order form, is max_kl. */
    double curvature = 0;
    opc_trpo_fisher(trpo, trpo->step, trpo->work);
    for (size_t k = 0; k < trpo->params; k++)
        curvature += trpo->step[k] * trpo->work[k];
    double length = sqrt(2 * o->max_kl / curvature);
    for (int i = 0; i < o->line_search && isfinite(length); i++, length /= 2) {
        move_policy(trpo, length);
        *gain = opc_trpo_objective(trpo, ent_coef, kl);
        if (isfinite(*gain) && *kl <= KL_SLACK * o->max_kl && *gain >= before)
            return true;
    }
    /* As it was, also where the step is not finite. */
    memcpy(trpo->policy->param, trpo->kept, each * sizeof(float));
    memcpy(trpo->log_std, trpo->kept + each, (size_t)o->act * sizeof(float));
    return false;
}

/* ---- the value function ---------------------------------------------------------------------- */

/* One gradient step on the squared error of these n steps; returns its sum. */
static double fit_batch(struct opc_trpo *trpo, int n, const int *step)
{
    const int obs = trpo->options.obs, layers = trpo->value->shape.layers, panels = opc_panels(n);
    struct opc_tape *tape = trpo->value_tape;
    double sum = 0;
    for (int i = 0; i < panels * P; i++) {
        /* rows of padding repeat the first one, and have no gradient */
        const float *s = trpo->state + (size_t)trpo->row[step[i < n ? i : 0]] * (size_t)obs;
        for (int k = 0; k < obs; k++)
            trpo->value_x[opc_panel_place(i, obs, k)] = s[k];
    }
    opc_mlp_forward_part(trpo->value, 0, 0, panels, tape);
    for (int i = 0; i < panels * P; i++) {
        const double gap = i < n ? (double)tape->y[layers - 1][i] - trpo->target[step[i]] : 0;
        tape->dy[layers - 1][i] = (float)(2 * gap / n);
        sum += gap * gap;
    }
    opc_mlp_backward_part(trpo->value, 0, 0, panels, tape);
    opc_mlp_weight_gradient(trpo->value, n, tape, trpo->value_grad);
    opc_adam_step(trpo->value_adam, 0.0, trpo->value_grad, trpo->value->param);
    return sum;
}

/* Passes in shuffled order; what does not fill a batch is left out of a pass. */
static double fit_value(struct opc_trpo *trpo, uint64_t seed, uint32_t epoch, uint32_t first)
{
    const int n = trpo->rows, batch = trpo->options.value_batch;
    double sum = 0;
    for (int i = 0; i < n; i++)
        trpo->order[i] = i;
    for (int pass = 0; pass < trpo->options.value_passes; pass++) {
        struct opc_rng rng = opc_rng_stream(seed, OPC_USE_UPDATE, epoch, first + (uint32_t)pass);
        opc_rng_shuffle(&rng, n, trpo->order);
        for (int from = 0; from + batch <= n; from += batch)
            sum += fit_batch(trpo, batch, trpo->order + from);
    }
    const int used = n / batch * batch;
    return sum / ((double)used * trpo->options.value_passes);
}

void opc_trpo_learn(struct opc_trpo *trpo, double ent_coef, uint64_t seed, uint32_t epoch,
                    uint32_t first, struct opc_trpo_report *report)
{
    const int length = trpo->options.length, n = trpo->rows;
    *report = (struct opc_trpo_report){.target_min = INFINITY, .target_max = -INFINITY};
    opc_trpo_advantages(trpo);
    for (int i = 0; i < n; i++) {
        report->value += trpo->values[i / length * (length + 1) + i % length] / n;
        report->target += trpo->target[i] / n;
        report->target_min = fmin(report->target_min, trpo->target[i]);
        report->target_max = fmax(report->target_max, trpo->target[i]);
    }
    /* the policy */
    double gain = 0, kl = 0;
    opc_trpo_remember(trpo);
    const double before = opc_trpo_objective(trpo, ent_coef, NULL);
    opc_trpo_gradient(trpo, ent_coef);
    report->accepted = opc_trpo_line_search(trpo, ent_coef, before, &gain, &kl);
    if (report->accepted) {
        report->gain = gain - before;
        report->kl = kl;
    }
    /* the value function, whose targets were made with what it was before */
    report->critic_loss = fit_value(trpo, seed, epoch, first);
}
