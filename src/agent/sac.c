/* SPDX-License-Identifier: MIT */
/* Soft actor-critic. One update, with a' and a~ drawn from the policy:
 *
 *     y    = reward_scale r + gamma (1 - d) (min_i Q'_i(s', a') - alpha log pi(a'|s'))
 *     J_Q  = 1/2 mean (Q_i(s, a) - y)^2                        for both critics
 *     J_pi = mean (alpha log pi(a~|s) - min_i Q_i(s, a~))
 *     J_al = -log alpha mean (log pi(a~|s) + H)
 *     Q'   = tau Q + (1 - tau) Q'
 *
 * All four gradients are taken from the parameters as they were before the update (as the original
 * code does in one graph call). Everything up to the gradients goes row by row, so the first call
 * of the pool does it by panels; the second does the gradients, which sum over rows, by outputs,
 * and moves the parameters it has just differentiated. */
#include "agent/sac.h"

#include "agent/policy.h"
#include "base/pool.h"
#include "base/text.h"
#include "num/adam.h"
#include "num/normal.h"

#include <math.h>
#include <string.h>

#define SELF struct opc_sac_config
const struct opc_section opc_sac_section =
    OPC_SECTION("sac", "soft actor-critic, the agent that improves the policy", OPC_SAC_FIELDS);
#undef SELF

enum { P = OPC_PANEL, WHICH_POLICY = 1, WHICH_CRITICS = 2, LEARNERS = 3 };

struct sums { /* of one panel */
    double q, target, critic_loss, actor_loss, logp;
    double target_min, target_max;
};

/* A network that learns: its parameters and what moves them. */
struct learner {
    struct opc_mlp *net, *target; /* target NULL: none follows */
    int member;
    struct opc_tape *tape;
    struct opc_adam *adam;
    float *grad;                       /* laid out as the parameters */
    float *transposed[OPC_MLP_LAYERS]; /* the layers' inputs, for the gradients of their weights */
};

struct sac {
    struct opc_agent base;
    struct opc_sac_config config;
    double target_entropy;
    struct opc_pool *pool;
    int threads, panels, columns; /* of a batch */

    struct opc_policy *policy;
    struct opc_mlp *critics, *targets; /* two members each */
    struct opc_adam *policy_adam, *critic_adam, *alpha_adam;
    float log_alpha;
    long updates;

    /* one batch */
    const float **step;               /* [batch] as drawn: s, a, r, mark, s' */
    float *batch;                     /* [panels][columns][16] the same in panels */
    float *noise;                     /* [2][panels][act][16] for a', then for a~ */
    float *joint;                     /* [panels][obs + act][16] s, a~ */
    float *spread;                    /* [panels][act][16] deviations of a~ */
    float *by_action;                 /* [2][panels][act][16] dQ_i / da~ */
    struct opc_tape *actor;           /* policy at s */
    struct opc_tape *critic[2];       /* Q_i at (s, a) */
    struct opc_tape *actor_q[2];      /* Q_i at (s, a~) */
    struct sums *sums;                /* [panels] */
    float *policy_grad, *critic_grad; /* laid out as the parameters */
    float *transposed;                /* of all learners */
    struct learner learner[LEARNERS]; /* both critics and the policy */
    struct opc_arena *scratch;        /* [threads] */
    float alpha;                      /* of this update */
    struct opc_rng stream;            /* of its noise */
};

static float *panel(float *base, int p, int features)
{
    return base + (size_t)p * (size_t)features * P;
}

/* ---- row by row ------------------------------------------------------------------------------ */

/* y for panels p0 .. p1-1: both target critics at s' and a' ~ pi(s'). */
static void targets_of(struct sac *c, int p0, int p1, float *y, struct opc_arena *scratch)
{
    const int obs = c->base.obs, act = c->base.act, in = obs + act, n = p1 - p0;
    const size_t stride = (size_t)c->columns * P, mark = scratch->used;
    const float *next = c->batch + (size_t)p0 * stride + (in + 2) * P;
    float *x = opc_floats(scratch, (size_t)(n * in), P);
    float *out = opc_floats(scratch, (size_t)(n * 2 * act), P);
    float *q = opc_floats(scratch, (size_t)(2 * n), P), *logp = opc_floats(scratch, (size_t)n, P);
    opc_mlp_infer(c->policy->net, 0, n, next, stride, 2 * act, out, (size_t)(2 * act) * P, scratch);
    for (int i = 0; i < n; i++) {
        float *xi = panel(x, i, in);
        memcpy(xi, next + (size_t)i * stride, (size_t)obs * P * sizeof *xi);
        opc_squash(act, panel(out, i, 2 * act), panel(c->noise, p0 + i, act), xi + obs * P,
                   logp + i * P, NULL, scratch);
    }
    for (int k = 0; k < 2; k++)
        opc_mlp_infer(c->targets, k, n, x, (size_t)in * P, 1, q + k * n * P, P, scratch);
    const float gamma = (float)c->config.discount, scale = (float)c->config.reward_scale;
    for (int i = 0; i < n; i++) {
        const float *row = c->batch + (size_t)(p0 + i) * stride;
        const float *r = row + in * P, *terminal = r + P;
        for (int j = 0; j < P; j++) {
            const float q0 = q[i * P + j], q1 = q[(n + i) * P + j];
            const float soft = (q0 < q1 ? q0 : q1) - c->alpha * logp[i * P + j];
            y[i * P + j] = scale * r[j] + gamma * (1.0f - terminal[j]) * soft;
        }
    }
    opc_arena_rewind(scratch, mark);
}

static int real_rows(const struct sac *c, int p)
{
    const int left = c->config.batch_size - p * P;
    return left < P ? left : P;
}

/* J_Q down to every layer's sums. */
static void critic_loss(struct sac *c, int p0, int p1, const float *y)
{
    const int last = c->critics->shape.layers - 1;
    const float each = 1.0f / (float)c->config.batch_size;
    for (int p = p0; p < p1; p++) {
        struct sums *s = &c->sums[p];
        *s = (struct sums){.target_min = INFINITY, .target_max = -INFINITY};
        for (int j = 0; j < real_rows(c, p); j++) {
            s->target_min = fmin(s->target_min, (double)y[(p - p0) * P + j]);
            s->target_max = fmax(s->target_max, (double)y[(p - p0) * P + j]);
        }
    }
    for (int k = 0; k < 2; k++) {
        struct opc_tape *t = c->critic[k];
        opc_mlp_forward_part(c->critics, k, p0, p1, t);
        for (int p = p0; p < p1; p++)
            for (int j = 0; j < P; j++) {
                const float q = t->y[last][p * P + j], goal = y[(p - p0) * P + j], gap = q - goal;
                const bool real = j < real_rows(c, p);
                t->dy[last][p * P + j] = real ? gap * each : 0.0f;
                if (real) {
                    c->sums[p].critic_loss += 0.5 * (double)gap * (double)gap;
                    c->sums[p].q += 0.5 * (double)q;
                    c->sums[p].target += 0.5 * (double)goal;
                }
            }
        opc_mlp_backward_part(c->critics, k, p0, p1, t);
    }
}

/* J_pi down to every layer's sums of the policy. */
static void actor_loss(struct sac *c, int p0, int p1, struct opc_arena *scratch)
{
    const int obs = c->base.obs, act = c->base.act, in = obs + act;
    const int out = c->policy->net->shape.layers - 1, last = c->critics->shape.layers - 1;
    const size_t mark = scratch->used;
    float *logp = opc_floats(scratch, (size_t)(p1 - p0), P);
    const float *eps = c->noise + (size_t)c->panels * (size_t)act * P;

    opc_mlp_forward_part(c->policy->net, 0, p0, p1, c->actor);
    for (int p = p0; p < p1; p++) {
        float *x = panel(c->joint, p, in);
        memcpy(x, c->batch + (size_t)p * (size_t)c->columns * P, (size_t)obs * P * sizeof *x);
        opc_squash(act, panel(c->actor->y[out], p, 2 * act), eps + (size_t)(p * act) * P,
                   x + obs * P, logp + (p - p0) * P, panel(c->spread, p, act), scratch);
    }
    for (int k = 0; k < 2; k++)
        opc_mlp_forward_part(c->critics, k, p0, p1, c->actor_q[k]);
    for (int p = p0; p < p1; p++)
        for (int j = 0; j < P; j++) {
            const float q0 = c->actor_q[0]->y[last][p * P + j],
                        q1 = c->actor_q[1]->y[last][p * P + j];
            c->actor_q[0]->dy[last][p * P + j] = q0 < q1 ? -1.0f : 0.0f; /* of -min Q */
            c->actor_q[1]->dy[last][p * P + j] = q0 < q1 ? 0.0f : -1.0f;
            if (j < real_rows(c, p)) {
                const double l = (double)logp[(p - p0) * P + j], q = (double)(q0 < q1 ? q0 : q1);
                c->sums[p].logp += l;
                c->sums[p].actor_loss += (double)c->alpha * l - q;
            }
        }
    float *by[2] = {c->by_action, c->by_action + (size_t)c->panels * (size_t)act * P};
    for (int k = 0; k < 2; k++) {
        opc_mlp_backward_part(c->critics, k, p0, p1, c->actor_q[k]);
        opc_mlp_inputs_part(c->critics, k, p0, p1, obs, act, c->actor_q[k], by[k], (size_t)act * P);
    }
    for (int p = p0; p < p1; p++) {
        float *dq = panel(by[0], p, act);
        const float *other = panel(by[1], p, act);
        for (int i = 0; i < act * P; i++)
            dq[i] += other[i];
        opc_squash_back(act, real_rows(c, p), 1.0f / (float)c->config.batch_size, c->alpha,
                        panel(c->actor->y[out], p, 2 * act), eps + (size_t)(p * act) * P,
                        panel(c->joint, p, in) + obs * P, panel(c->spread, p, act), dq,
                        panel(c->actor->dy[out], p, 2 * act));
    }
    opc_mlp_backward_part(c->policy->net, 0, p0, p1, c->actor);
    opc_arena_rewind(scratch, mark);
}

/* The steps of these panels, from wherever they lie. */
static void gather_batch(struct sac *c, int p0, int p1)
{
    const int first = p0 * P, end = p1 * P < c->config.batch_size ? p1 * P : c->config.batch_size;
    opc_kernels()->collect(end - first, c->columns, c->step + first,
                           panel(c->batch, p0, c->columns), (size_t)c->columns * P);
}

/* The noise of a' and a~ is one run of the update's stream; these panels' share of it. */
static void draw_noise(struct sac *c, int p0, int p1)
{
    const int each = c->base.act * P; /* words of a panel: whole blocks of four */
    for (int half = 0; half < 2; half++) {
        const int at = (half * c->panels + p0) * each;
        struct opc_rng r = c->stream;
        r.block += (uint64_t)at / 4;
        opc_rng_normals(&r, (p1 - p0) * each, c->noise + at);
    }
}

/* The inputs of all layers, as their gradients want them. All networks look at one batch: the
 * policy's s are the first columns of the critics' (s, a). */
static void turn(struct sac *c, int p0, int p1)
{
    for (int i = 0; i < LEARNERS; i++) {
        const struct learner *n = &c->learner[i];
        for (int l = i == 0 ? 0 : 1; l < n->net->shape.layers; l++)
            opc_mlp_transpose_part(n->net, l, p0, p1, c->panels, n->tape, n->transposed[l]);
    }
}

static void rows_part(void *ctx, int first, int end, int worker)
{
    struct sac *c = ctx;
    struct opc_arena *scratch = &c->scratch[worker];
    for (int i = first; i < end; i++) {
        const int p0 = opc_cut(c->panels, c->threads, i),
                  p1 = opc_cut(c->panels, c->threads, i + 1);
        if (p0 == p1)
            continue;
        const size_t mark = scratch->used;
        float *y = opc_floats(scratch, (size_t)(p1 - p0), P);
        gather_batch(c, p0, p1);
        draw_noise(c, p0, p1);
        targets_of(c, p0, p1, y, scratch);
        critic_loss(c, p0, p1, y);
        actor_loss(c, p0, p1, scratch);
        turn(c, p0, p1);
        opc_arena_rewind(scratch, mark);
    }
}

/* ---- sums over rows -------------------------------------------------------------------------- */

static void learn(const struct sac *c, const struct learner *n, int l, int part, bool follows)
{
    const struct opc_layer *layer = &n->net->layer[l];
    const int o0 = opc_cut(layer->out, c->threads, part),
              o1 = opc_cut(layer->out, c->threads, part + 1);
    if (o0 == o1)
        return;
    const size_t base = (size_t)n->member * n->net->each, ld = (size_t)layer->ld;
    const struct {
        size_t first, count;
    } range[2] = {{layer->weight + (size_t)o0 * ld, (size_t)(o1 - o0) * ld},
                  {layer->bias + (size_t)o0, (size_t)(o1 - o0)}};
    opc_mlp_gradient_part(n->net, l, o0, o1, c->config.batch_size, n->tape, n->transposed[l],
                          n->grad + base);
    for (int i = 0; i < 2; i++) {
        const size_t at = base + range[i].first;
        opc_adam_range(n->adam, at, range[i].count, 0.0, n->grad + at, n->net->param + at);
        if (follows && n->target)
            opc_kernels()->polyak(range[i].count, (float)c->config.tau, n->net->param + at,
                                  n->target->param + at);
    }
}

static void sums_part(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct sac *c = ctx;
    const bool follows = (c->updates + 1) % c->config.target_interval == 0;
    for (int part = first; part < end; part++)
        for (int i = 0; i < LEARNERS; i++)
            for (int l = 0; l < c->learner[i].net->shape.layers; l++)
                learn(c, &c->learner[i], l, part, follows);
}

/* ---- updates --------------------------------------------------------------------------------- */

static struct sums total(const struct sac *c)
{
    struct sums all = {.target_min = INFINITY, .target_max = -INFINITY};
    for (int p = 0; p < c->panels; p++) {
        all.target_min = fmin(all.target_min, c->sums[p].target_min);
        all.target_max = fmax(all.target_max, c->sums[p].target_max);
        all.q += c->sums[p].q;
        all.target += c->sums[p].target;
        all.critic_loss += c->sums[p].critic_loss;
        all.actor_loss += c->sums[p].actor_loss;
        all.logp += c->sums[p].logp;
    }
    const double n = c->config.batch_size;
    all.q /= n;
    all.target /= n;
    all.critic_loss /= n;
    all.actor_loss /= n;
    all.logp /= n;
    return all;
}

static struct sums update(struct sac *c, const struct opc_feed *feed, uint32_t index)
{
    struct opc_rng pick = opc_rng_stream(feed->seed, OPC_USE_BATCH, feed->epoch, index);
    feed->draw(feed->ctx, c->config.batch_size, &pick, c->step);
    c->stream = opc_rng_stream(feed->seed, OPC_USE_UPDATE, feed->epoch, index);
    c->alpha = expf(c->log_alpha);

    opc_pool_each(c->pool, c->threads, 1, rows_part, c);
    const struct sums mean = total(c);
    opc_adam_begin(c->critic_adam);
    opc_adam_begin(c->policy_adam);
    opc_pool_each(c->pool, c->threads, 1, sums_part, c);
    if (c->config.tune_entropy) {
        const float by_log_alpha = (float)-(mean.logp + c->target_entropy);
        opc_adam_step(c->alpha_adam, 0.0, &by_log_alpha, &c->log_alpha);
    }
    c->updates++;
    return mean;
}

static int improve(struct opc_agent *a, const struct opc_feed *feed, int updates,
                   struct opc_agent_report *report, struct opc_err *err)
{
    struct sac *c = (struct sac *)a;
    double *v = report->value;
    *report = (struct opc_agent_report){.updates = updates};
    v[OPC_SAC_TARGET_MIN] = INFINITY;
    v[OPC_SAC_TARGET_MAX] = -INFINITY;
    for (int i = 0; i < updates; i++) {
        const struct sums m = update(c, feed, feed->first + (uint32_t)i);
        if (!isfinite(m.critic_loss) || !isfinite(m.actor_loss))
            return opc_fail(err, OPC_EDIVERGED,
                            "the %s loss became %g in update %u of epoch %u (mean Q %g, "
                            "temperature %g); lower sac.learning_rate, or look for huge rewards",
                            isfinite(m.critic_loss) ? "actor's" : "critics'",
                            isfinite(m.critic_loss) ? m.actor_loss : m.critic_loss,
                            feed->first + (uint32_t)i, feed->epoch, m.q, (double)c->alpha);
        v[OPC_SAC_Q] += m.q / updates;
        v[OPC_SAC_Q_TARGET] += m.target / updates;
        v[OPC_SAC_CRITIC_LOSS] += m.critic_loss / updates;
        v[OPC_SAC_ACTOR_LOSS] += m.actor_loss / updates;
        v[OPC_SAC_ENTROPY] -= m.logp / updates;
        v[OPC_SAC_TARGET_MIN] = fmin(v[OPC_SAC_TARGET_MIN], m.target_min);
        v[OPC_SAC_TARGET_MAX] = fmax(v[OPC_SAC_TARGET_MAX], m.target_max);
        if (i % 64 == 63 && feed->stop && feed->stop(feed->stop_ctx))
            return opc_fail(err, OPC_ESTOPPED, "stopped while improving the policy");
    }
    v[OPC_SAC_ALPHA] = (double)expf(c->log_alpha);
    return OPC_OK;
}

static void act(const struct opc_agent *a, int n, const float *state, bool explore,
                struct opc_rng *rng, float *action)
{
    const struct sac *c = (const struct sac *)a;
    opc_policy_act(c->policy, n, state, explore, rng, action, c->pool);
}

static void act_spread(const struct opc_agent *a, int n, const float *state, float spread,
                       struct opc_rng *rng, float *action)
{
    const struct sac *c = (const struct sac *)a;
    opc_policy_act_spread(c->policy, n, state, spread, rng, action, c->pool);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void destroy(struct opc_agent *a)
{
    struct sac *c = (struct sac *)a;
    opc_policy_destroy(c->policy);
    opc_mlp_destroy(c->critics);
    opc_mlp_destroy(c->targets);
    opc_adam_destroy(c->policy_adam);
    opc_adam_destroy(c->critic_adam);
    opc_adam_destroy(c->alpha_adam);
    opc_tape_destroy(c->actor);
    for (int k = 0; k < 2; k++) {
        opc_tape_destroy(c->critic[k]);
        opc_tape_destroy(c->actor_q[k]);
    }
    for (int i = 0; i < c->threads && c->scratch; i++)
        opc_arena_destroy(&c->scratch[i]);
    opc_free(c->transposed);
    opc_free(c->scratch);
    opc_free(c->step);
    opc_free(c->batch);
    opc_free(c->noise);
    opc_free(c->joint);
    opc_free(c->spread);
    opc_free(c->by_action);
    opc_free(c->sums);
    opc_free(c->policy_grad);
    opc_free(c->critic_grad);
    opc_free(c);
}

static int state(struct opc_agent *a,
                 int (*visit)(void *, const char *, void *, size_t, struct opc_err *), void *ctx,
                 struct opc_err *err)
{
    struct sac *c = (struct sac *)a;
    const size_t policy = c->policy_adam->count * sizeof(float);
    const size_t critics = c->critic_adam->count * sizeof(float);
    const struct opc_state_part part[] = {
        {"sac.policy", c->policy->net->param, policy},
        {"sac.policy.m", c->policy_adam->m, policy},
        {"sac.policy.v", c->policy_adam->v, policy},
        {"sac.policy.steps", &c->policy_adam->steps, sizeof(long)},
        {"sac.critics", c->critics->param, critics},
        {"sac.critics.m", c->critic_adam->m, critics},
        {"sac.critics.v", c->critic_adam->v, critics},
        {"sac.critics.steps", &c->critic_adam->steps, sizeof(long)},
        {"sac.targets", c->targets->param, critics},
        {"sac.alpha", &c->log_alpha, sizeof c->log_alpha},
        {"sac.alpha.m", c->alpha_adam->m, sizeof(float)},
        {"sac.alpha.v", c->alpha_adam->v, sizeof(float)},
        {"sac.alpha.steps", &c->alpha_adam->steps, sizeof(long)},
        {"sac.updates", &c->updates, sizeof c->updates},
    };
    return opc_visit_parts(part, sizeof part / sizeof *part, visit, ctx, err);
}

/* "auto" or a number. */
static int entropy_goal(const struct opc_agent_args *args, const struct opc_sac_config *config,
                        double *out, struct opc_err *err)
{
    if (strcmp(config->target_entropy, "auto") == 0)
        *out = isnan(args->target_entropy) ? -(double)args->act : args->target_entropy;
    else if (!opc_parse_real(config->target_entropy, out) || !isfinite(*out))
        return opc_fail(err, OPC_EUSER,
                        "sac.target_entropy = %s is neither a number nor auto (nats; for this task "
                        "auto is %g)",
                        config->target_entropy,
                        isnan(args->target_entropy) ? -(double)args->act : args->target_entropy);
    return OPC_OK;
}

static int make_networks(struct sac *c, uint64_t seed, struct opc_err *err)
{
    const struct opc_sac_config *config = &c->config;
    const int obs = c->base.obs, actions = c->base.act;
    struct opc_mlp_shape shape;
    struct opc_adam_config adam = opc_adam_usual(config->learning_rate);
    adam.torch = config->adam == 1;
    int code = opc_policy_create(obs, actions, config->policy_hidden.at, config->policy_hidden.n,
                                 c->threads, &c->policy, err);
    if (!code)
        code = opc_shape_from(2, obs + actions, config->critic_hidden.at, config->critic_hidden.n,
                              1, OPC_ACTIVATION_RELU, &shape, err);
    if (!code)
        code = opc_mlp_create(&shape, &c->critics, err);
    if (!code)
        code = opc_mlp_create(&shape, &c->targets, err);
    if (!code)
        code = opc_adam_create(c->policy->net->each, adam, &c->policy_adam, err);
    if (!code)
        code = opc_adam_create(2 * c->critics->each, adam, &c->critic_adam, err);
    if (!code)
        code = opc_adam_create(1, adam, &c->alpha_adam, err);
    if (code)
        return code;
    opc_mlp_init(c->policy->net, OPC_INIT_GLOROT, seed, WHICH_POLICY);
    opc_mlp_init(c->critics, OPC_INIT_GLOROT, seed, WHICH_CRITICS);
    memcpy(c->targets->param, c->critics->param, 2 * c->critics->each * sizeof(float));
    c->log_alpha = logf((float)config->alpha);
    return OPC_OK;
}

/* Scratch of one thread in rows_part. */
static size_t rows_need(const struct sac *c)
{
    const int obs = c->base.obs, actions = c->base.act;
    const size_t wide = (size_t)c->panels * P * sizeof(float);
    const size_t a = opc_mlp_infer_need(c->policy->net, c->panels);
    const size_t b = opc_mlp_infer_need(c->targets, c->panels);
    return opc_arena_need((size_t)(obs + 3 * actions + 5), wide) + 8 * OPC_ALIGN + (a > b ? a : b) +
           opc_squash_need(actions);
}

/* Floats of a learner's turned inputs behind the first layer's. */
static size_t transposed_size_of(const struct sac *c, const struct opc_mlp *net)
{
    size_t floats = 0;
    for (int l = 1; l < net->shape.layers; l++)
        floats += opc_transposed_size(c->panels, net->layer[l].in);
    return floats;
}

static int make_tapes(struct sac *c, struct opc_err *err)
{
    const int batch = c->config.batch_size;
    int code = opc_tape_create(c->policy->net, batch, &c->actor, err);
    for (int k = 0; !code && k < 2; k++) {
        code = opc_tape_create(c->critics, batch, &c->critic[k], err);
        if (!code)
            code = opc_tape_create(c->critics, batch, &c->actor_q[k], err);
    }
    return code;
}

static int make_batch(struct sac *c, struct opc_err *err)
{
    const int obs = c->base.obs, actions = c->base.act, batch = c->config.batch_size;
    const size_t wide = (size_t)c->panels * P, a = (size_t)actions;
    const size_t first = opc_transposed_size(c->panels, obs + actions);
    c->step = opc_alloc((size_t)batch, sizeof *c->step);
    c->batch = opc_alloc(wide * (size_t)c->columns, sizeof(float));
    c->noise = opc_alloc(2 * wide * a, sizeof(float));
    c->joint = opc_alloc(wide * (size_t)(obs + actions), sizeof(float));
    c->spread = opc_alloc(wide * a, sizeof(float));
    c->by_action = opc_alloc(2 * wide * a, sizeof(float));
    c->sums = opc_alloc((size_t)c->panels, sizeof *c->sums);
    c->policy_grad = opc_alloc(c->policy->net->each, sizeof(float));
    c->critic_grad = opc_alloc(2 * c->critics->each, sizeof(float));
    c->transposed = opc_alloc(first + 2 * transposed_size_of(c, c->critics) +
                                  transposed_size_of(c, c->policy->net),
                              sizeof(float));
    c->scratch = opc_alloc((size_t)c->threads, sizeof *c->scratch);
    if (!c->step || !c->batch || !c->noise || !c->joint || !c->spread || !c->by_action ||
        !c->sums || !c->policy_grad || !c->critic_grad || !c->transposed || !c->scratch)
        return opc_fail(err, OPC_ENOMEM,
                        "not enough memory for batches of %d steps; lower sac.batch_size", batch);
    int code = make_tapes(c, err);
    for (int i = 0; i < c->threads && !code; i++)
        code = opc_arena_create(rows_need(c), &c->scratch[i], err);
    if (code)
        return code;
    c->actor->x = c->batch;
    c->actor->xs = (size_t)c->columns * P;
    for (int k = 0; k < 2; k++) {
        c->critic[k]->x = c->batch;
        c->critic[k]->xs = (size_t)c->columns * P;
        c->actor_q[k]->x = c->joint;
        c->actor_q[k]->xs = (size_t)(obs + actions) * P;
        c->learner[k] = (struct learner){.net = c->critics,
                                         .target = c->targets,
                                         .member = k,
                                         .tape = c->critic[k],
                                         .adam = c->critic_adam,
                                         .grad = c->critic_grad};
    }
    c->learner[2] = (struct learner){
        .net = c->policy->net, .tape = c->actor, .adam = c->policy_adam, .grad = c->policy_grad};
    float *at = c->transposed + first;
    for (int i = 0; i < LEARNERS; i++) {
        struct learner *n = &c->learner[i];
        n->transposed[0] = c->transposed;
        for (int l = 1; l < n->net->shape.layers; l++) {
            n->transposed[l] = at;
            at += opc_transposed_size(c->panels, n->net->layer[l].in);
        }
    }
    return OPC_OK;
}

static int create(const struct opc_agent_args *args, struct opc_agent **out, struct opc_err *err)
{
    struct sac *c = opc_alloc(1, sizeof *c);
    if (!c)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the agent");
    c->base = (struct opc_agent){.type = &opc_sac_type, .obs = args->obs, .act = args->act};
    int code = OPC_OK;
    if (args->config)
        c->config = *(const struct opc_sac_config *)args->config;
    else
        code = opc_section_defaults(&opc_sac_section, &c->config, err);
    c->pool = args->pool;
    c->threads = opc_pool_threads(args->pool);
    c->panels = opc_panels(c->config.batch_size);
    c->columns = 2 * args->obs + args->act + 2;
    if (!code)
        code = entropy_goal(args, &c->config, &c->target_entropy, err);
    if (!code)
        code = make_networks(c, args->seed, err);
    if (!code)
        code = make_batch(c, err);
    if (code) {
        destroy(&c->base);
        return code;
    }
    *out = &c->base;
    return OPC_OK;
}

static const struct opc_agent_column COLUMNS[] = {
    [OPC_SAC_Q] = {"q", OPC_OVER_MEAN},
    [OPC_SAC_Q_TARGET] = {"q_target", OPC_OVER_MEAN},
    [OPC_SAC_TARGET_MIN] = {"target_min", OPC_OVER_MIN},
    [OPC_SAC_TARGET_MAX] = {"target_max", OPC_OVER_MAX},
    [OPC_SAC_CRITIC_LOSS] = {"critic_loss", OPC_OVER_MEAN},
    [OPC_SAC_ACTOR_LOSS] = {"actor_loss", OPC_OVER_MEAN},
    [OPC_SAC_ALPHA] = {"alpha", OPC_OVER_MEAN},
    [OPC_SAC_ENTROPY] = {"entropy", OPC_OVER_MEAN},
    [OPC_SAC_COLUMNS] = {NULL, OPC_OVER_MEAN},
};

const struct opc_agent_type opc_sac_type = {
    .name = "sac",
    .label = "SAC",
    .colour = 0x009e73,
    .needs = OPC_NEEDS_STEPS,
    .settings = &opc_sac_section,
    .columns = COLUMNS,
    .create = create,
    .act = act,
    .improve = improve,
    .destroy = destroy,
    .state = state,
    .act_spread = act_spread,
};
