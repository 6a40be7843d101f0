/* SPDX-License-Identifier: MIT */
/* Gradient steps of soft actor-critic (Haarnoja et al. 2018). run/improve.c calls opc_sac_improve
 * through opc_agent_type; batches come from the replay buffer (data/batch.h),
 * recorded and imagined steps alike. One update, with a' and a~ drawn from the policy:
 *
 *     y    = reward_scale r + gamma (1 - d) (min_i Q'_i(s', a') - alpha log pi(a'|s'))
 *     J_Q  = 1/2 mean (Q_i(s, a) - y)^2                        for both critics
 *     J_pi = mean (alpha log pi(a~|s) - min_i Q_i(s, a~))
 *     J_al = -log alpha mean (log pi(a~|s) + H)
 *     Q'   = tau Q + (1 - tau) Q'
 *
 * that is: Bellman target, critic loss, actor loss, temperature loss, Polyak average of the target
 * critics. All gradients are taken from the parameters as they were before the update (as the
 * original code does in one graph call).
 *
 * Two passes of the pool. losses_of_panels goes row by row, so the threads share out the panels;
 * gradients_of_outputs sums over rows, so they share out the outputs of each layer, and each thread
 * applies Adam to the parameters it has just differentiated. A change must keep the order of every
 * sum: no bit of the result depends on the number of threads. */
#include "agent/sac_private.h"
#include "base/pool.h"
#include "num/normal.h"

#include <math.h>
#include <string.h>

/* Panel p of an array [panels][features][16]. */
static float *panel(float *base, int p, int features)
{
    return base + (size_t)p * (size_t)features * P;
}

/* ---- losses, row by row ---------------------------------------------------------------------- */

/* The Bellman targets y[p1 - p0][16] of panels p0 .. p1-1. No gradient flows through them, so they
 * are computed without a tape. */
static void bellman_targets(struct sac *sac, int p0, int p1, float *y, struct opc_arena *scratch)
{
    const int obs = sac->base.obs, act = sac->base.act, in = obs + act, n = p1 - p0;
    const size_t stride = (size_t)sac->columns * P, mark = scratch->used;
    const float *next = sac->batch + (size_t)p0 * stride + (in + 2) * P;
    float *x = opc_floats(scratch, (size_t)(n * in), P);
    float *out = opc_floats(scratch, (size_t)(n * 2 * act), P);
    float *q = opc_floats(scratch, (size_t)(2 * n), P), *logp = opc_floats(scratch, (size_t)n, P);
    /* a' ~ pi(. | s') and its log-probability, next to s' in x[n][obs + act][16]. */
    opc_mlp_infer(sac->policy->net, 0, n, next, stride, 2 * act, out, (size_t)(2 * act) * P,
                  scratch);
    for (int i = 0; i < n; i++) {
        float *xi = panel(x, i, in);
        memcpy(xi, next + (size_t)i * stride, (size_t)obs * P * sizeof *xi);
        opc_squash(act, panel(out, i, 2 * act), panel(sac->noise, p0 + i, act), xi + obs * P,
                   logp + i * P, NULL, scratch);
    }
    /* Both target critics at (s', a'). */
    for (int k = 0; k < 2; k++)
        opc_mlp_infer(sac->targets, k, n, x, (size_t)in * P, 1, q + k * n * P, P, scratch);
    /* y = reward_scale r + discount (1 - terminal) (min Q' - alpha log pi). A terminal state has no
     * future; running out of time is not terminal. */
    const float gamma = (float)sac->config.discount, scale = (float)sac->config.reward_scale;
    const float low = sac->q_low, high = sac->q_high;
    for (int i = 0; i < n; i++) {
        const float *row = sac->batch + (size_t)(p0 + i) * stride;
        const float *r = row + in * P, *terminal = r + P;
        for (int j = 0; j < P; j++) {
            const float q0 = q[i * P + j], q1 = q[(n + i) * P + j];
            const float min = q0 < q1 ? q0 : q1;
            const float bounded = min < low ? low : min > high ? high : min; /* NaN stays NaN */
            const float soft = bounded - sac->alpha * logp[i * P + j];
            y[i * P + j] = scale * r[j] + gamma * (1.0f - terminal[j]) * soft;
        }
    }
    opc_arena_rewind(scratch, mark);
}

/* Rows of panel p that hold a step; the rest of the last panel is padding. */
static int real_rows(const struct sac *sac, int p)
{
    const int left = sac->config.batch_size - p * P;
    return left < P ? left : P;
}

/* The critic loss J_Q: forward at (s, a), loss, and backward to the dy of every layer. The gradient
 * of the weights sums over rows and waits for gradients_of_outputs. */
static void critic_loss(struct sac *sac, int p0, int p1, const float *y)
{
    const int last = sac->critics->shape.layers - 1;
    /* 1 / batch size: the loss is a mean over the batch. */
    const float each = 1.0f / (float)sac->config.batch_size;
    /* Start this update's report with the extremes of the targets. */
    for (int p = p0; p < p1; p++) {
        struct panel_sums *s = &sac->sums[p];
        *s = (struct panel_sums){.target_min = INFINITY, .target_max = -INFINITY};
        for (int j = 0; j < real_rows(sac, p); j++) {
            s->target_min = fmin(s->target_min, (double)y[(p - p0) * P + j]);
            s->target_max = fmax(s->target_max, (double)y[(p - p0) * P + j]);
        }
    }
    /* dJ_Q / dQ = (Q - y) / batch size; 0 in the padding, which must not reach any sum. */
    for (int k = 0; k < 2; k++) {
        struct opc_tape *t = sac->critic_tape[k];
        opc_mlp_forward_part(sac->critics, k, p0, p1, t);
        for (int p = p0; p < p1; p++)
            for (int j = 0; j < P; j++) {
                const float q = t->y[last][p * P + j], goal = y[(p - p0) * P + j], gap = q - goal;
                const bool real = j < real_rows(sac, p);
                t->dy[last][p * P + j] = real ? gap * each : 0.0f;
                if (real) {
                    sac->sums[p].critic_loss += 0.5 * (double)gap * (double)gap;
                    sac->sums[p].q += 0.5 * (double)q;
                    sac->sums[p].target += 0.5 * (double)goal;
                }
            }
        opc_mlp_backward_part(sac->critics, k, p0, p1, t);
    }
}

/* The actor loss J_pi: forward at (s, a~), loss, and backward through the critics into the policy.
 * The critics are held fixed here: only dQ / da~ is taken from them, not the gradient of their
 * weights. Both tapes of a critic are separate, because critic_loss needs its own. */
static void actor_loss(struct sac *sac, int p0, int p1, struct opc_arena *scratch)
{
    const int obs = sac->base.obs, act = sac->base.act, in = obs + act;
    const int out = sac->policy->net->shape.layers - 1, last = sac->critics->shape.layers - 1;
    const size_t mark = scratch->used;
    float *logp = opc_floats(scratch, (size_t)(p1 - p0), P);
    const float *eps = sac->noise + (size_t)sac->panels * (size_t)act * P;

    /* a~ ~ pi(. | s) with the reparameterisation a~ = tanh(mean + std eps); (s, a~) side by side in
     * `joint`. */
    opc_mlp_forward_part(sac->policy->net, 0, p0, p1, sac->policy_tape);
    for (int p = p0; p < p1; p++) {
        float *x = panel(sac->joint, p, in);
        memcpy(x, sac->batch + (size_t)p * (size_t)sac->columns * P, (size_t)obs * P * sizeof *x);
        opc_squash(act, panel(sac->policy_tape->y[out], p, 2 * act), eps + (size_t)(p * act) * P,
                   x + obs * P, logp + (p - p0) * P, panel(sac->std, p, act), scratch);
    }
    /* Q_i(s, a~), and the gradient of -min Q: it flows through the smaller critic of each row
     * alone. */
    for (int k = 0; k < 2; k++)
        opc_mlp_forward_part(sac->critics, k, p0, p1, sac->actor_q_tape[k]);
    for (int p = p0; p < p1; p++)
        for (int j = 0; j < P; j++) {
            const float q0 = sac->actor_q_tape[0]->y[last][p * P + j],
                        q1 = sac->actor_q_tape[1]->y[last][p * P + j];
            sac->actor_q_tape[0]->dy[last][p * P + j] = q0 < q1 ? -1.0f : 0.0f; /* of -min Q */
            sac->actor_q_tape[1]->dy[last][p * P + j] = q0 < q1 ? 0.0f : -1.0f;
            if (j < real_rows(sac, p)) {
                const double l = (double)logp[(p - p0) * P + j], q = (double)(q0 < q1 ? q0 : q1);
                sac->sums[p].logp += l;
                sac->sums[p].actor_loss += (double)sac->alpha * l - q;
            }
        }
    /* dQ_i / da~: back through the critics to their inputs obs .. obs+act-1. */
    float *dq_da[2] = {sac->dq_da, sac->dq_da + (size_t)sac->panels * (size_t)act * P};
    for (int k = 0; k < 2; k++) {
        opc_mlp_backward_part(sac->critics, k, p0, p1, sac->actor_q_tape[k]);
        opc_mlp_inputs_part(sac->critics, k, p0, p1, obs, act, sac->actor_q_tape[k], dq_da[k],
                            (size_t)act * P);
    }
    /* Add both (one of them is 0) and go back through tanh and the Gaussian; log pi adds its own
     * part, weighted by alpha. */
    for (int p = p0; p < p1; p++) {
        float *dq = panel(dq_da[0], p, act);
        const float *other = panel(dq_da[1], p, act);
        for (int i = 0; i < act * P; i++)
            dq[i] += other[i];
        opc_squash_back(act, real_rows(sac, p), 1.0f / (float)sac->config.batch_size, sac->alpha,
                        panel(sac->policy_tape->y[out], p, 2 * act), eps + (size_t)(p * act) * P,
                        panel(sac->joint, p, in) + obs * P, panel(sac->std, p, act), dq,
                        panel(sac->policy_tape->dy[out], p, 2 * act));
    }
    /* And down through the policy's layers. */
    opc_mlp_backward_part(sac->policy->net, 0, p0, p1, sac->policy_tape);
    opc_arena_rewind(scratch, mark);
}

/* Copies the drawn steps of panels p0 .. p1-1 out of the replay buffer into panels. */
static void gather_batch(struct sac *sac, int p0, int p1)
{
    const int first = p0 * P,
              end = p1 * P < sac->config.batch_size ? p1 * P : sac->config.batch_size;
    opc_kernels()->collect(end - first, sac->columns, sac->step + first,
                           panel(sac->batch, p0, sac->columns), (size_t)sac->columns * P);
}

/* The noise of a' and a~ is one run of the update's stream. Each thread jumps to its panels' share
 * of that run, so the noise does not depend on how many threads there are. */
static void draw_noise(struct sac *sac, int p0, int p1)
{
    const int each = sac->base.act * P; /* words of a panel: whole blocks of four */
    for (int half = 0; half < 2; half++) {
        const int at = (half * sac->panels + p0) * each;
        struct opc_rng r = sac->stream;
        r.block += (uint64_t)at / 4;
        opc_rng_normals(&r, (p1 - p0) * each, sac->noise + at);
    }
}

/* Transposes the inputs of all layers, as the weight gradients want them. All three networks read
 * one batch, and the policy's s are the first columns of the critics' (s, a): so layer 0 is
 * transposed once, for learner 0, and shared. */
static void transpose_inputs(struct sac *sac, int p0, int p1)
{
    for (int i = 0; i < LEARNERS; i++) {
        const struct learner *learner = &sac->learner[i];
        for (int l = i == 0 ? 0 : 1; l < learner->net->shape.layers; l++)
            opc_mlp_transpose_part(learner->net, l, p0, p1, sac->panels, learner->tape,
                                   learner->transposed[l]);
    }
}

/* First pass of the pool: part i of the panels, from the batch to dy of every layer of the critics
 * and the policy. */
static void losses_of_panels(void *ctx, int first, int end, int worker)
{
    struct sac *sac = ctx;
    struct opc_arena *scratch = &sac->scratch[worker];
    for (int i = first; i < end; i++) {
        const int p0 = opc_cut(sac->panels, sac->threads, i),
                  p1 = opc_cut(sac->panels, sac->threads, i + 1);
        if (p0 == p1)
            continue;
        const size_t mark = scratch->used;
        float *y = opc_floats(scratch, (size_t)(p1 - p0), P);
        /* The order matters: actor_loss adds to the sums that critic_loss has reset. */
        gather_batch(sac, p0, p1);
        draw_noise(sac, p0, p1);
        bellman_targets(sac, p0, p1, y, scratch);
        critic_loss(sac, p0, p1, y);
        actor_loss(sac, p0, p1, scratch);
        transpose_inputs(sac, p0, p1);
        opc_arena_rewind(scratch, mark);
    }
}

/* ---- gradients, summed over rows ------------------------------------------------------------- */

/* Takes the gradient of layer l by this part of its outputs, applies Adam, and lets the target
 * network follow: target += tau (param - target), the Polyak average. Weights and biases of the
 * outputs are two runs of the parameters. */
static void apply_gradient(const struct sac *sac, const struct learner *learner, int l, int part,
                           bool update_target)
{
    const struct opc_layer *layer = &learner->net->layer[l];
    const int o0 = opc_cut(layer->out, sac->threads, part),
              o1 = opc_cut(layer->out, sac->threads, part + 1);
    if (o0 == o1)
        return;
    const size_t base = (size_t)learner->member * learner->net->each, ld = (size_t)layer->ld;
    const struct {
        size_t first, count;
    } range[2] = {{layer->weight + (size_t)o0 * ld, (size_t)(o1 - o0) * ld},
                  {layer->bias + (size_t)o0, (size_t)(o1 - o0)}};
    opc_mlp_gradient_part(learner->net, l, o0, o1, sac->config.batch_size, learner->tape,
                          learner->transposed[l], learner->grad + base);
    for (int i = 0; i < 2; i++) {
        const size_t at = base + range[i].first;
        opc_adam_range(learner->adam, at, range[i].count, 0.0, learner->grad + at,
                       learner->net->param + at);
        if (update_target && learner->target)
            opc_kernels()->polyak(range[i].count, (float)sac->config.tau, learner->net->param + at,
                                  learner->target->param + at);
    }
}

/* Second pass of the pool: part i of the outputs of every layer of every learner. */
static void gradients_of_outputs(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct sac *sac = ctx;
    const bool update_target = (sac->updates + 1) % sac->config.target_interval == 0;
    for (int part = first; part < end; part++)
        for (int i = 0; i < LEARNERS; i++)
            for (int l = 0; l < sac->learner[i].net->shape.layers; l++)
                apply_gradient(sac, &sac->learner[i], l, part, update_target);
}

/* ---- updates --------------------------------------------------------------------------------- */

/* The report of one update: sums of the panels, added in order, over the batch size. */
static struct panel_sums mean_over_batch(const struct sac *sac)
{
    struct panel_sums all = {.target_min = INFINITY, .target_max = -INFINITY};
    for (int p = 0; p < sac->panels; p++) {
        all.target_min = fmin(all.target_min, sac->sums[p].target_min);
        all.target_max = fmax(all.target_max, sac->sums[p].target_max);
        all.q += sac->sums[p].q;
        all.target += sac->sums[p].target;
        all.critic_loss += sac->sums[p].critic_loss;
        all.actor_loss += sac->sums[p].actor_loss;
        all.logp += sac->sums[p].logp;
    }
    const double n = sac->config.batch_size;
    all.q /= n;
    all.target /= n;
    all.critic_loss /= n;
    all.actor_loss /= n;
    all.logp /= n;
    return all;
}

/* No policy is worth more than the highest reward for ever, nor less than the lowest: within
 *
 *     Q_high = max(0, r_high + max(c, 0)) / (1 - discount),
 *     Q_low  = min(0, r_low  + min(c, 0)) / (1 - discount),
 *
 * where c = -alpha mean log pi is the entropy bonus of a step. 0 is always within, because a task
 * may end. The mean is that of the update before (0 in the first), which is saved with the agent:
 * the batch's own is known only after its targets. With r in the range
 * a target is within these bounds, too, but for the entropy bonus of its own action; an imagined r
 * is in the range if opc.bounds clips it (opc/rollout.c). */
static void bound_values(struct sac *sac, const struct opc_feed *feed)
{
    const float scale = (float)sac->config.reward_scale, c = -sac->alpha * sac->mean_logp;
    const float rest = 1.0f - (float)sac->config.discount; /* 0: values have no bounds */
    sac->q_high = fmaxf(0.0f, scale * feed->reward_high + fmaxf(c, 0.0f)) / rest;
    sac->q_low = fminf(0.0f, scale * feed->reward_low + fminf(c, 0.0f)) / rest;
    if (!(rest > 0.0f) || !(feed->reward_low <= feed->reward_high)) {
        sac->q_high = INFINITY;
        sac->q_low = -INFINITY;
    }
}

/* One gradient step of the critics, the policy and the temperature. The streams are named by the
 * update's index, so a resumed run draws what an uninterrupted one would have drawn. */
static struct panel_sums sac_update(struct sac *sac, const struct opc_feed *feed, uint32_t index)
{
    struct opc_rng pick = opc_rng_stream(feed->seed, OPC_USE_BATCH, feed->epoch, index);
    feed->draw(feed->ctx, sac->config.batch_size, &pick, sac->step);
    sac->stream = opc_rng_stream(feed->seed, OPC_USE_UPDATE, feed->epoch, index);
    sac->alpha = expf(sac->log_alpha);
    if (sac->config.bound_targets)
        bound_values(sac, feed);

    /* Losses first, all of them with the old parameters; then gradients and Adam. */
    opc_pool_each(sac->pool, sac->threads, 1, losses_of_panels, sac);
    const struct panel_sums mean = mean_over_batch(sac);
    opc_adam_begin(sac->critic_adam);
    opc_adam_begin(sac->policy_adam);
    opc_pool_each(sac->pool, sac->threads, 1, gradients_of_outputs, sac);
    /* The temperature loss J_al: alpha rises while the policy's entropy is below the target. */
    if (sac->config.tune_entropy) {
        const float alpha_gradient = (float)-(mean.logp + sac->target_entropy);
        opc_adam_step(sac->alpha_adam, 0.0, &alpha_gradient, &sac->log_alpha);
    }
    sac->mean_logp = (float)mean.logp;
    sac->updates++;
    return mean;
}

int opc_sac_improve(struct opc_agent *a, const struct opc_feed *feed, int updates,
                    struct opc_agent_report *report, struct opc_err *err)
{
    struct sac *sac = (struct sac *)a;
    double *v = report->value;
    *report = (struct opc_agent_report){.updates = updates};
    v[OPC_SAC_TARGET_MIN] = INFINITY;
    v[OPC_SAC_TARGET_MAX] = -INFINITY;
    const double rate = sac->config.learning_rate * (1 - sac->config.lr_decay * feed->done);
    sac->policy_adam->config.learning_rate = sac->critic_adam->config.learning_rate =
        sac->alpha_adam->config.learning_rate = rate;
    for (int i = 0; i < updates; i++) {
        const struct panel_sums m = sac_update(sac, feed, feed->first + (uint32_t)i);
        /* A loss that is not finite never recovers: it ends the run. */
        if (!isfinite(m.critic_loss) || !isfinite(m.actor_loss))
            return opc_fail(err, OPC_EDIVERGED,
                            "the %s loss became %g in update %u of epoch %u (mean Q %g, "
                            "temperature %g); lower sac.learning_rate, or look for huge rewards",
                            isfinite(m.critic_loss) ? "actor's" : "critics'",
                            isfinite(m.critic_loss) ? m.actor_loss : m.critic_loss,
                            feed->first + (uint32_t)i, feed->epoch, m.q, (double)sac->alpha);
        v[OPC_SAC_Q] += m.q / updates;
        v[OPC_SAC_Q_TARGET] += m.target / updates;
        v[OPC_SAC_CRITIC_LOSS] += m.critic_loss / updates;
        v[OPC_SAC_ACTOR_LOSS] += m.actor_loss / updates;
        v[OPC_SAC_ENTROPY] -= m.logp / updates;
        v[OPC_SAC_TARGET_MIN] = fmin(v[OPC_SAC_TARGET_MIN], m.target_min);
        v[OPC_SAC_TARGET_MAX] = fmax(v[OPC_SAC_TARGET_MAX], m.target_max);
        if (i % 64 == 63 && feed->stop && feed->stop(feed->stop_ctx)) {
            report->updates = i + 1; /* those made so far are kept */
            return opc_fail(err, OPC_ESTOPPED, "stopped while improving the policy");
        }
    }
    v[OPC_SAC_ALPHA] = (double)expf(sac->log_alpha);
    return OPC_OK;
}
