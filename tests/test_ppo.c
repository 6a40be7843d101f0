/* SPDX-License-Identifier: MIT */
/* Proximal policy optimisation against a second, plain implementation in double, whose gradients
 * are differences of the losses; the meaning of its settings; and what it learns. Weights are read
 * through the agent's own `state`. */
#include "agent/advantages.h"
#include "agent/ppo.h"

#include "test_net.h"

/* Rows for more than one panel of a batch, and for more than one chunk of what is judged. */
enum { OBS = 3, ACT = 2, STRIDE = OBS + ACT + 2, PATHS = 4, STEPS = 185, MAX = 64 };

/* ---- an agent and the episodes it learns from ------------------------------------------------ */

static const int LENGTH[PATHS] = {60, 1, 90, 34};
static const bool ENDS[PATHS] = {true, false, false, true};

struct play {
    struct opc_ppo_config config;
    struct opc_agent *agent;
    struct parts parts;
    struct opc_mlp *policy, *critic; /* only for their layout */
    float records[(STEPS + PATHS) * STRIDE];
    struct opc_feed feed;
};

static bool next_path(void *ctx, uint64_t *at, struct opc_path *out)
{
    struct play *p = ctx;
    int before = 0;
    if (*at >= PATHS)
        return false;
    for (uint64_t b = 0; b < *at; b++)
        before += LENGTH[b] + 1;
    *out = (struct opc_path){LENGTH[*at], p->records + before * STRIDE};
    ++*at;
    return true;
}

static struct opc_ppo_config defaults(void)
{
    struct opc_ppo_config config;
    struct opc_err err = {0};
    assert_ok(opc_section_defaults(&opc_ppo_section, &config, &err), &err);
    config.policy_hidden = (struct opc_ints){1, {5}};
    config.critic_hidden = (struct opc_ints){2, {4, 3}};
    config.update_epochs = 2;
    config.batch_size = 46; /* and one step is left over */
    return config;
}

/* Actions as the policy as it is now would choose them. */
static void play_again(struct play *p, struct opc_rng *r)
{
    struct opc_path path;
    p->feed.epoch++;
    for (uint64_t at = 0; next_path(p, &at, &path);)
        for (int t = 0; t <= path.steps; t++) {
            float *record = (float *)path.records + t * STRIDE;
            struct opc_rng mine =
                opc_rng_stream(9, OPC_USE_TEST, p->feed.epoch, (uint32_t)(1000 * at) + (uint32_t)t);
            for (int k = 0; k < OBS; k++)
                record[k] = 3.0f * any_float(r) + (float)k;
            opc_agent_act(p->agent, 1, record, true, &mine, record + OBS);
            record[OBS + ACT] = 5.0f * any_float(r) + 1.0f;
            record[OBS + ACT + 1] = t == path.steps - 1 && ENDS[at - 1] ? 1.0f : 0.0f;
        }
}

static struct play *play_open(const struct opc_ppo_config *config)
{
    struct play *p = calloc(1, sizeof *p);
    struct opc_err err = {0};
    struct opc_rng r = test_stream(1);
    assert_non_null(p);
    p->config = *config;
    const struct opc_agent_args args = {OPC_SIZED(struct opc_agent_args),
                                        .obs = OBS,
                                        .act = ACT,
                                        .seed = 3,
                                        .config = &p->config,
                                        .steps = STEPS};
    assert_ok(opc_agent_create("ppo", &args, &p->agent, &err), &err);
    assert_ok(p->agent->type->state(p->agent, note_part, &p->parts, &err), &err);
    p->policy = layout_of(1, OBS, &config->policy_hidden, ACT, OPC_ACTIVATION_TANH);
    p->critic = layout_of(1, OBS, &config->critic_hidden, 1, OPC_ACTIVATION_TANH);
    p->feed = (struct opc_feed){OPC_SIZED(struct opc_feed), .path = next_path, .ctx = p, .seed = 3};
    play_again(p, &r);
    return p;
}

static void play_close(struct play *p)
{
    opc_agent_destroy(p->agent);
    opc_mlp_destroy(p->policy);
    opc_mlp_destroy(p->critic);
    free(p);
}

static struct opc_agent_report improve(struct play *p)
{
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    struct opc_err err = {0};
    assert_ok(opc_agent_improve(p->agent, &p->feed, 0, &report, &err), &err);
    return report;
}

/* ---- the same once more ---------------------------------------------------------------------- */

struct moments {
    double count, mean, var;
};

struct row {
    double s[OBS], a[ACT], logp, value, advantage, target;
};

/* Policy, critic and log-deviations as one run of numbers. */
struct plain {
    struct {
        double actor, critic, kl, clipped;
    } sum; /* of an improvement, over rows */
    const struct play *p;
    int policy, critic, all;
    double *theta, *m, *v;
    long steps;
    struct moments obs[OBS], returns;
    struct row row[STEPS];
    const int *pick; /* rows of the batch */
    int n;
    double normal[MAX]; /* their advantages, evened out */
};

static struct plain *plain_open(const struct play *p)
{
    struct plain *q = calloc(1, sizeof *q);
    assert_non_null(q);
    q->p = p;
    q->policy = (int)plain_count(&p->policy->shape);
    q->critic = (int)plain_count(&p->critic->shape);
    q->all = q->policy + q->critic + ACT;
    q->theta = doubles_of((size_t)q->all);
    q->m = doubles_of((size_t)q->all);
    q->v = doubles_of((size_t)q->all);
    double *a = plain_get(p->policy, part_of(&p->parts, "ppo.policy"));
    double *b = plain_get(p->critic, part_of(&p->parts, "ppo.critic"));
    memcpy(q->theta, a, (size_t)q->policy * sizeof *a);
    memcpy(q->theta + q->policy, b, (size_t)q->critic * sizeof *b);
    for (int k = 0; k < ACT; k++)
        q->theta[q->all - ACT + k] = p->config.log_std_init;
    for (int k = 0; k < OBS; k++)
        q->obs[k] = (struct moments){1e-4, 0, 1};
    q->returns = (struct moments){1e-4, 0, 1};
    free(a);
    free(b);
    return q;
}

static void plain_close(struct plain *q)
{
    free(q->theta);
    free(q->m);
    free(q->v);
    free(q);
}

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* Moments of two sets of numbers together. */
static struct moments together(struct moments a, struct moments b)
{
    const double n = a.count + b.count, mean = (a.count * a.mean + b.count * b.mean) / n;
    const double second =
        (a.count * (a.var + a.mean * a.mean) + b.count * (b.var + b.mean * b.mean)) / n;
    return (struct moments){n, mean, second - mean * mean};
}

static void plain_see(struct plain *q)
{
    struct opc_path path;
    for (uint64_t at = 0; next_path((void *)q->p, &at, &path);)
        for (int t = 0; t < path.steps; t++)
            for (int k = 0; k < OBS; k++)
                q->obs[k] = together(q->obs[k],
                                     (struct moments){1, (double)path.records[t * STRIDE + k], 0});
}

static double plain_value(const struct plain *q, const double *s)
{
    double v;
    net_row(&q->p->critic->shape, q->theta + q->policy, s, &v, NULL);
    return v;
}

static double plain_logp(const struct plain *q, const double *s, const double *a)
{
    double mean[ACT], sum = 0;
    net_row(&q->p->policy->shape, q->theta, s, mean, NULL);
    for (int k = 0; k < ACT; k++) {
        const double std = exp(q->theta[q->all - ACT + k]), z = (a[k] - mean[k]) / std;
        sum += log(exp(-z * z / 2) / (std * sqrt(2 * acos(-1))));
    }
    return sum;
}

static void plain_scale(const struct plain *q, const float *record, double *s)
{
    const double max = q->p->config.clip_normalized;
    for (int k = 0; k < OBS; k++) {
        s[k] = (double)record[k];
        if (q->p->config.normalize_obs)
            s[k] = clamp((s[k] - q->obs[k].mean) / sqrt(q->obs[k].var + 1e-8), -max, max);
    }
}

/* Advantages as sums over what is still to come: A_t = sum (gamma lambda)^l delta_{t+l}. */
static void plain_read(struct plain *q)
{
    const struct opc_ppo_config *config = &q->p->config;
    struct opc_path path;
    int n = 0;
    for (uint64_t at = 0; next_path((void *)q->p, &at, &path);) {
        double r[STEPS], v[STEPS + 1], s[OBS], sum = 0;
        for (int t = 0; t <= path.steps; t++) {
            const float *record = path.records + t * STRIDE;
            plain_scale(q, record, s);
            v[t] = plain_value(q, s);
            if (t == path.steps)
                break;
            struct row *row = &q->row[n + t];
            memcpy(row->s, s, sizeof s);
            for (int k = 0; k < ACT; k++)
                row->a[k] = (double)record[OBS + k];
            row->value = v[t];
            row->logp = plain_logp(q, s, row->a);
            r[t] = (double)record[OBS + ACT];
            sum = config->discount * sum + r[t];
            q->returns = together(q->returns, (struct moments){1, sum, 0});
            if (config->normalize_reward)
                r[t] = clamp(r[t] / sqrt(q->returns.var + 1e-8), -config->clip_normalized,
                             config->clip_normalized);
        }
        if (ENDS[at - 1])
            v[path.steps] = 0;
        for (int t = 0; t < path.steps; t++) {
            double gain = 0, factor = 1;
            for (int l = t; l < path.steps; l++, factor *= config->discount * config->gae_lambda)
                gain += factor * (r[l] + config->discount * v[l + 1] - v[l]);
            q->row[n + t].advantage = gain;
            q->row[n + t].target = gain + v[t];
        }
        n += path.steps;
    }
    assert_int_equal(n, STEPS);
}

/* note: adds to the sums. */
static double plain_loss(struct plain *q, bool note)
{
    const struct opc_ppo_config *config = &q->p->config;
    double sum = 0, entropy = 0;
    for (int i = 0; i < q->n; i++) {
        const struct row *row = &q->row[q->pick[i]];
        const double rho = exp(plain_logp(q, row->s, row->a) - row->logp);
        const double held = clamp(rho, 1 - config->clip_range, 1 + config->clip_range);
        const double v = plain_value(q, row->s), free = pow(v - row->target, 2);
        const double near =
            row->value + clamp(v - row->value, -config->clip_range_vf, config->clip_range_vf);
        const double actor = fmax(-q->normal[i] * rho, -q->normal[i] * held);
        const double critic =
            0.5 * (config->clip_range_vf > 0 ? fmax(free, pow(near - row->target, 2)) : free);
        sum += actor + config->vf_coef * critic;
        if (!note)
            continue;
        q->sum.actor += actor;
        q->sum.critic += critic;
        q->sum.kl += rho - 1 - log(rho);
        q->sum.clipped += rho < 1 - config->clip_range || rho > 1 + config->clip_range;
    }
    for (int k = 0; k < ACT; k++)
        entropy += q->theta[q->all - ACT + k];
    return sum / q->n - config->ent_coef * entropy;
}

static void plain_update(struct plain *q, int n, const int *pick, double rate)
{
    const double max = q->p->config.max_grad_norm;
    double mean = 0, var = 0, length = 0;
    q->pick = pick;
    q->n = n;
    for (int i = 0; i < n; i++)
        mean += q->row[pick[i]].advantage / n;
    for (int i = 0; i < n; i++)
        var += pow(q->row[pick[i]].advantage - mean, 2) / (n > 1 ? n - 1 : 1);
    for (int i = 0; i < n; i++)
        q->normal[i] = (q->row[pick[i]].advantage - mean) / (sqrt(var) + 1e-8);

    double *grad = doubles_of((size_t)q->all);
    plain_loss(q, true);
    for (int i = 0; i < q->all; i++) {
        const double theta = q->theta[i], h = 1e-6;
        q->theta[i] = theta + h;
        grad[i] = plain_loss(q, false);
        q->theta[i] = theta - h;
        grad[i] = (grad[i] - plain_loss(q, false)) / (2 * h);
        q->theta[i] = theta;
        length += grad[i] * grad[i];
    }
    const double factor = max > 0 ? fmin(1, max / (sqrt(length) + 1e-6)) : 1;
    q->steps++;
    for (int i = 0; i < q->all; i++) {
        const double g = factor * grad[i];
        q->m[i] = 0.9 * q->m[i] + 0.1 * g;
        q->v[i] = 0.999 * q->v[i] + 0.001 * g * g;
        q->theta[i] -= rate * (q->m[i] / (1 - pow(0.9, (double)q->steps))) /
                       (sqrt(q->v[i] / (1 - pow(0.999, (double)q->steps))) + 1e-5);
    }
    free(grad);
}

static void plain_improve(struct plain *q)
{
    const struct opc_ppo_config *config = &q->p->config;
    const struct opc_feed *feed = &q->p->feed;
    const bool first = q->steps == 0;
    int order[STEPS];
    memset(&q->sum, 0, sizeof q->sum);
    if (first)
        plain_see(q);
    plain_read(q);
    for (int i = 0; i < STEPS; i++)
        order[i] = i;
    for (int pass = 0; pass < config->update_epochs; pass++) {
        struct opc_rng r = opc_rng_stream(feed->seed, OPC_USE_BATCH, feed->epoch, (uint32_t)pass);
        for (int i = STEPS - 1; i > 0; i--) {
            const int k = (int)opc_rng_below(&r, (uint32_t)i + 1), at = order[i];
            order[i] = order[k];
            order[k] = at;
        }
        for (int from = 0; from < STEPS; from += config->batch_size)
            plain_update(q, STEPS - from < config->batch_size ? STEPS - from : config->batch_size,
                         order + from,
                         config->learning_rate * (config->anneal_lr ? 1 - feed->done : 1));
    }
    if (!first)
        plain_see(q);
}

static void assert_like(const struct plain *q)
{
    const struct play *p = q->p;
    double *a = plain_get(p->policy, part_of(&p->parts, "ppo.policy"));
    double *b = plain_get(p->critic, part_of(&p->parts, "ppo.critic"));
    const float *std = part_of(&p->parts, "ppo.std");
    const struct moments *obs = part_of(&p->parts, "ppo.obs");
    assert_doubles_near(a, q->theta, q->policy, 2e-5);
    assert_doubles_near(b, q->theta + q->policy, q->critic, 2e-5);
    for (int k = 0; k < ACT; k++)
        assert_near((double)std[k], q->theta[q->all - ACT + k], 2e-5);
    for (int k = 0; k < OBS; k++) {
        assert_near(obs[k].count, q->obs[k].count, 1e-9);
        assert_near(obs[k].mean, q->obs[k].mean, 1e-9);
        assert_near(obs[k].var, q->obs[k].var, 1e-9);
    }
    free(a);
    free(b);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void advantages_are_those_of_the_reference(void **state)
{
    (void)state;
    const double r[3] = {1, 1, 1}, v[4] = {0.5, 0.6, 0.7, 0.8};
    const double want[3] = {3.087884, 2.120026, 1.092};
    double a[3];
    opc_advantages(3, r, v, false, 0.99, 0.95, a);
    assert_doubles_near(a, want, 3, 1e-6);
    opc_advantages(3, r, v, false, 0.99, 0, a); /* the critic's word for all but one reward */
    for (int t = 0; t < 3; t++)
        assert_near(a[t], 1 + 0.99 * v[t + 1] - v[t], 1e-15);
    opc_advantages(3, r, v, true, 0.99, 1, a); /* rewards alone */
    assert_near(a[0], 1 + 0.99 + 0.99 * 0.99 - 0.5, 1e-15);
    assert_near(a[2], 1 - 0.7, 1e-15);
}

/* sqrt(2) for hidden layers, 0.01 for the policy's last and 1 for the critic's. */
static void first_weights_have_their_gains(void **state)
{
    (void)state;
    struct opc_ppo_config config = defaults();
    struct play *p = play_open(&config);
    const struct opc_mlp *net[2] = {p->policy, p->critic};
    const float *param[2] = {part_of(&p->parts, "ppo.policy"), part_of(&p->parts, "ppo.critic")};
    for (int i = 0; i < 2; i++)
        for (int l = 0; l < net[i]->shape.layers; l++) {
            const struct opc_layer *layer = &net[i]->layer[l];
            const bool last = l + 1 == net[i]->shape.layers;
            const double gain = !last ? sqrt(2) : i == 0 ? 0.01 : 1;
            double squares = 0;
            for (int k = 0; k < layer->out * layer->ld; k++)
                squares += pow((double)param[i][layer->weight + (size_t)k], 2);
            assert_near(sqrt(squares / (layer->in < layer->out ? layer->in : layer->out)) / gain, 1,
                        1e-6);
        }
    assert_true(memcmp(param[0], param[1], 3 * sizeof(float)) != 0);
    play_close(p);
}

/* Three improvements each. */
static void an_improvement_is_that_of_a_plain_implementation(void **state)
{
    (void)state;
    double clipped = 0;
    for (int which = 0; which < 9; which++) {
        struct opc_ppo_config config = defaults();
        config.learning_rate = 0.03; /* so that ratios and values reach their limits */
        config.log_std_init = which == 1 ? -1 : 0;
        config.ent_coef = which == 2 ? 0.05 : 0;
        config.max_grad_norm = which == 3 ? 0 : 0.5;
        config.clip_range_vf = which == 4 ? 0 : 0.2;
        config.clip_range = which == 5 ? 0.02 : 0.2;
        config.normalize_obs = which != 6;
        config.normalize_reward = which != 7;
        config.clip_normalized = which == 8 ? 0.7 : 10;
        struct play *p = play_open(&config);
        struct plain *q = plain_open(p);
        struct opc_rng r = test_stream(20);
        for (int k = 0; k < 3; k++) {
            p->feed.done = 0.25 * k;
            plain_improve(q);
            const struct opc_agent_report report = improve(p);
            assert_int_equal(report.updates, 10);
            clipped += report.value[OPC_PPO_CLIPPED];
            assert_near(report.value[OPC_PPO_ACTOR_LOSS], q->sum.actor / (2 * STEPS), 1e-4);
            assert_near(report.value[OPC_PPO_CRITIC_LOSS], q->sum.critic / (2 * STEPS), 1e-4);
            assert_near(report.value[OPC_PPO_KL], q->sum.kl / (2 * STEPS), 1e-5);
            assert_near(report.value[OPC_PPO_CLIPPED], q->sum.clipped / (2 * STEPS),
                        1.5 / (2 * STEPS));
            assert_like(q);
            play_again(p, &r);
        }
        plain_close(q);
        play_close(p);
    }
    assert_true(clipped > 0.1);
}

static void the_rate_falls_only_if_asked(void **state)
{
    (void)state;
    float *start = NULL;
    for (int which = 0; which < 3; which++) {
        struct opc_ppo_config config = defaults();
        config.anneal_lr = which != 1;
        struct play *p = play_open(&config);
        const size_t bytes = p->policy->each * sizeof(float);
        float *weights = part_of(&p->parts, "ppo.policy");
        if (!start) {
            start = malloc(bytes);
            assert_non_null(start);
            memcpy(start, weights, bytes);
        }
        p->feed.done = which == 2 ? 0 : 1;
        improve(p);
        assert_true((memcmp(start, weights, bytes) == 0) == (which == 0));
        play_close(p);
    }
    free(start);
}

static void a_report_tells_what_happened(void **state)
{
    (void)state;
    struct opc_ppo_config config = defaults();
    config.learning_rate = 1e-12; /* so that every batch sees the same policy and critic */
    struct play *p = play_open(&config);
    struct plain *q = plain_open(p);
    plain_see(q);
    plain_read(q);
    const struct opc_agent_report report = improve(p);
    double value = 0, target = 0, loss = 0, low = HUGE_VAL, high = -HUGE_VAL;
    for (int i = 0; i < STEPS; i++) {
        low = fmin(low, q->row[i].target);
        high = fmax(high, q->row[i].target);
        value += q->row[i].value / STEPS;
        target += q->row[i].target / STEPS;
        loss += 0.5 * pow(q->row[i].value - q->row[i].target, 2) / STEPS;
    }
    assert_near(report.value[OPC_PPO_Q], value, 1e-6);
    assert_near(report.value[OPC_PPO_Q_TARGET], target, 1e-6);
    assert_near(report.value[OPC_PPO_TARGET_MIN], low, 1e-5);
    assert_near(report.value[OPC_PPO_TARGET_MAX], high, 1e-5);
    assert_near(report.value[OPC_PPO_CRITIC_LOSS], loss, 1e-5);
    assert_near(report.value[OPC_PPO_ACTOR_LOSS], 0,
                1e-5); /* evened-out advantages have a mean of 0 */
    assert_near(report.value[OPC_PPO_KL], 0, 1e-9);
    assert_near(report.value[OPC_PPO_CLIPPED], 0, 0);
    assert_near(report.value[OPC_PPO_ENTROPY], ACT * 0.5 * (1 + log(2 * acos(-1))), 1e-6);
    plain_close(q);
    play_close(p);
}

/* Any number of rows at once, mode and draws. */
static void actions_are_the_policys(void **state)
{
    (void)state;
    enum { N = 300 };
    struct opc_ppo_config config = defaults();
    config.log_std_init = -0.7;
    config.learning_rate = 0.01;
    struct play *p = play_open(&config);
    struct plain *q = plain_open(p);
    plain_improve(q);
    improve(p);
    static float s[N * OBS], mode[N * ACT], drawn[N * ACT], spread[N * ACT], one[ACT];
    struct opc_rng r = test_stream(7), rng[N];
    for (int i = 0; i < N * OBS; i++)
        s[i] = 4.0f * any_float(&r);
    opc_agent_act(p->agent, N, s, false, NULL, mode);
    for (int i = 0; i < N; i++)
        rng[i] = opc_rng_stream(1, OPC_USE_TEST, 2, (uint32_t)i);
    opc_agent_act(p->agent, N, s, true, rng, drawn);
    for (int i = 0; i < N; i++)
        rng[i] = opc_rng_stream(1, OPC_USE_TEST, 2, (uint32_t)i);
    opc_agent_act_spread(p->agent, N, s, 3, rng, spread);
    double squares[ACT] = {0};
    for (int i = 0; i < N; i++) {
        double x[OBS], mean[ACT];
        struct opc_rng mine = opc_rng_stream(1, OPC_USE_TEST, 2, (uint32_t)i);
        plain_scale(q, s + i * OBS, x);
        net_row(&p->policy->shape, q->theta, x, mean, NULL);
        opc_agent_act(p->agent, 1, s + i * OBS, true, &mine, one);
        assert_same_bits(one, drawn + i * ACT, sizeof one);
        for (int k = 0; k < ACT; k++) {
            const double noise = (double)drawn[i * ACT + k] - (double)mode[i * ACT + k];
            assert_near((double)mode[i * ACT + k], mean[k], 1e-4);
            assert_near((double)spread[i * ACT + k] - (double)mode[i * ACT + k], 3 * noise, 1e-5);
            squares[k] += noise * noise / N;
        }
    }
    for (int k = 0; k < ACT; k++) /* four deviations of what 300 draws give */
        assert_near(sqrt(squares[k]) / exp(q->theta[q->all - ACT + k]), 1, 4 / sqrt(2.0 * N));
    plain_close(q);
    play_close(p);
}

static void a_saved_agent_goes_on_as_if_nothing_had_been(void **state)
{
    (void)state;
    struct opc_ppo_config config = defaults();
    struct play *p = play_open(&config), *other = play_open(&config);
    struct opc_rng a = test_stream(5), b = test_stream(5);
    struct opc_err err = {0};
    improve(p);
    unsigned char *copy = parts_copy(&p->parts);
    const unsigned char *from = copy;
    assert_ok(other->agent->type->state(other->agent, load_part, &from, &err), &err);
    play_again(p, &a);
    play_again(other, &b);
    assert_same_bits(p->records, other->records, sizeof p->records);
    improve(p);
    improve(other);
    free(copy);
    copy = parts_copy(&p->parts);
    assert_parts_are(&other->parts, copy);
    free(copy);
    play_close(p);
    play_close(other);
}

/* The best action is (0.5, -0.3) in every state. */
static void it_learns_what_is_rewarded(void **state)
{
    (void)state;
    struct opc_ppo_config config = defaults();
    config.update_epochs = 10;
    config.learning_rate = 0.01;
    config.discount = 0;
    struct play *p = play_open(&config);
    struct opc_rng r = test_stream(6);
    struct opc_path path;
    for (int k = 0; k < 200; k++) {
        p->feed.done = k / 200.0;
        play_again(p, &r);
        for (uint64_t at = 0; next_path(p, &at, &path);)
            for (int t = 0; t < path.steps; t++) {
                float *a = (float *)path.records + t * STRIDE + OBS;
                a[ACT] = -(a[0] - 0.5f) * (a[0] - 0.5f) - (a[1] + 0.3f) * (a[1] + 0.3f);
            }
        improve(p);
    }
    float s[OBS] = {0.5f, 1.0f, 2.0f}, a[ACT];
    opc_agent_act(p->agent, 1, s, false, NULL, a);
    assert_near((double)a[0], 0.5, 0.15);
    assert_near((double)a[1], -0.3, 0.15);
    play_close(p);
}

static bool at_once(void *ctx)
{
    (void)ctx;
    return true;
}

static bool nothing(void *ctx, uint64_t *at, struct opc_path *out)
{
    (void)ctx, (void)at, (void)out;
    return false;
}

static void it_can_be_stopped_and_says_when_it_diverged(void **state)
{
    (void)state;
    struct opc_ppo_config config = defaults();
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    struct opc_err err = {0};
    config.normalize_reward = false;
    config.batch_size = 3;
    struct play *p = play_open(&config);
    p->feed.path = nothing;
    assert_fails(opc_agent_improve(p->agent, &p->feed, 0, &report, &err), OPC_EBUG, &err,
                 "0 steps");
    assert_mentions(&err, "185");
    p->feed.path = next_path;
    p->feed.stop = at_once;
    assert_fails(opc_agent_improve(p->agent, &p->feed, 0, &report, &err), OPC_ESTOPPED, &err,
                 "policy");
    p->feed.stop = NULL;
    p->records[OBS + ACT] = INFINITY;
    err = (struct opc_err){0};
    assert_fails(opc_agent_improve(p->agent, &p->feed, 0, &report, &err), OPC_EDIVERGED, &err,
                 "ppo.learning_rate");
    play_close(p);
}

static int create_any(void *ctx, struct opc_err *err)
{
    (void)ctx;
    struct opc_agent *agent;
    const struct opc_agent_args args = {OPC_SIZED(struct opc_agent_args), .obs = OBS, .act = ACT,
                                        .seed = 3, .steps = STEPS};
    const int code = opc_agent_create("ppo", &args, &agent, err);
    if (!code)
        opc_agent_destroy(agent);
    return code;
}

static void no_room_is_an_error(void **state)
{
    (void)state;
    assert_survives_lack_of_memory(create_any, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(advantages_are_those_of_the_reference),
        cmocka_unit_test(first_weights_have_their_gains),
        cmocka_unit_test(an_improvement_is_that_of_a_plain_implementation),
        cmocka_unit_test(the_rate_falls_only_if_asked),
        cmocka_unit_test(a_report_tells_what_happened),
        cmocka_unit_test(actions_are_the_policys),
        cmocka_unit_test(a_saved_agent_goes_on_as_if_nothing_had_been),
        cmocka_unit_test(it_learns_what_is_rewarded),
        cmocka_unit_test(it_can_be_stopped_and_says_when_it_diverged),
        cmocka_unit_test(no_room_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
