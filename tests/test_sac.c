/* SPDX-License-Identifier: MIT */
/* Soft actor-critic against other implementations (golden files; a plain one in double here), the
 * meaning of its settings, and what it promises about bits. Weights are set and gradients read
 * through the agent's own `state`: Adam's first moment after one update is 0.1 of the gradient. */
#include "agent/sac.h"

#include "data/records.h"
#include "num/gauss.h"
#include "num/normal.h"
#include "test_net.h"

enum { P = OPC_PANEL };

/* ---- an agent and the steps it learns from -------------------------------------------------- */

struct setup {
    int obs, act, threads, steps; /* steps in the store */
    uint64_t seed;
    struct opc_sac_config config;
    double target_entropy;
};

struct play {
    struct setup setup;
    struct opc_pool *pool;
    struct opc_agent *agent;
    struct parts parts;
    struct opc_mlp *policy, *critics; /* only for their layout */
    float *table;                     /* [steps][columns] */
    bool in_order;                    /* batches are rows 0, 1, ... and not drawn */
    int columns, draws;
    uint32_t stream; /* first number of that of the last batch */
    struct opc_feed feed;
};

static struct setup setup_of(int obs, int act)
{
    struct setup s = {.obs = obs, .act = act, .threads = 1, .steps = 200, .seed = 3};
    struct opc_err err = {0};
    assert_ok(opc_section_defaults(&opc_sac_section, &s.config, &err), &err);
    s.config.policy_hidden = s.config.critic_hidden = (struct opc_ints){2, {12, 10}};
    s.config.batch_size = 20;
    s.target_entropy = (double)NAN;
    return s;
}

static void draw(void *ctx, int n, struct opc_rng *r, const float **step)
{
    struct play *p = ctx;
    struct opc_rng first = *r;
    p->stream = opc_rng_below(&first, UINT32_MAX);
    for (int i = 0; i < n; i++)
        step[i] = p->table + (p->in_order ? i : any_below(r, p->setup.steps)) * p->columns;
    p->draws++;
}

static float *reward_of(const struct play *p, int row)
{
    return p->table + row * p->columns + p->setup.obs + p->setup.act;
}

static float *mark_of(const struct play *p, int row)
{
    return reward_of(p, row) + 1;
}

static int create_agent(const struct setup *s, struct opc_pool *pool, struct opc_agent **out,
                        struct opc_err *err)
{
    const struct opc_agent_args args = {OPC_SIZED(struct opc_agent_args),
                                        .obs = s->obs,
                                        .act = s->act,
                                        .seed = s->seed,
                                        .config = &s->config,
                                        .target_entropy = s->target_entropy,
                                        .pool = pool};
    return opc_agent_create("sac", &args, out, err);
}

static struct play *play_open(const struct setup *s)
{
    struct play *p = calloc(1, sizeof *p);
    struct opc_err err = {0};
    assert_non_null(p);
    p->setup = *s;
    p->pool = pool_of(s->threads);
    assert_ok(create_agent(s, p->pool, &p->agent, &err), &err);
    assert_ok(p->agent->type->state(p->agent, note_part, &p->parts, &err), &err);
    p->policy = layout_of(1, s->obs, &s->config.policy_hidden, 2 * s->act, OPC_ACTIVATION_RELU);
    p->critics = layout_of(2, s->obs + s->act, &s->config.critic_hidden, 1, OPC_ACTIVATION_RELU);
    p->critics->shape.layer_norm = s->config.layer_norm; /* for net_row, which looks at the shape */

    struct opc_rng r = test_stream(1);
    p->columns = opc_step_columns(s->obs, s->act);
    p->table = calloc((size_t)(s->steps * p->columns), sizeof *p->table);
    assert_non_null(p->table);
    for (int i = 0; i < s->steps * p->columns; i++)
        p->table[i] = any_float(&r);
    for (int i = 0; i < s->steps; i++)
        *mark_of(p, i) = (float)(any_below(&r, 4) == 0 ? OPC_RECORD_TERMINAL : OPC_RECORD_STEP);
    p->feed =
        (struct opc_feed){OPC_SIZED(struct opc_feed), .draw = draw, .ctx = p, .seed = s->seed};
    return p;
}

static void play_close(struct play *p)
{
    opc_agent_destroy(p->agent);
    opc_pool_destroy(p->pool);
    opc_mlp_destroy(p->policy);
    opc_mlp_destroy(p->critics);
    free(p->table);
    free(p);
}

static struct opc_agent_report improve(struct play *p, int updates)
{
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    struct opc_err err = {0};
    assert_ok(opc_agent_improve(p->agent, &p->feed, updates, &report, &err), &err);
    p->feed.first += (uint32_t)updates;
    return report;
}

static float *weights(const struct play *p, const char *part)
{
    return part_of(&p->parts, part);
}

static void randomise(const struct opc_mlp *net, float *padded, struct opc_rng *r, double size)
{
    const size_t n = (size_t)net->shape.members * plain_count(&net->shape);
    double *plain = doubles_of(n);
    for (size_t i = 0; i < n; i++)
        plain[i] = size * (double)any_float(r);
    plain_set(net, plain, padded);
    free(plain);
}

/* Biases of the policy's last layer: means, then log-deviations. */
static float *policy_bias(const struct play *p)
{
    return weights(p, "sac.policy") + p->policy->layer[p->policy->shape.layers - 1].bias;
}

/* ---- golden numbers ----------------------------------------------------------------------------
 * Weights must agree to 5e-6 (relative above 1), ten times what was seen on any backend after three
 * updates, and a two-thousandth of one update (rate 0.01). Adam does not notice a factor on the
 * gradient, so its moments are compared too: a sum of 20 or 37 products of floats is good to about
 * 1e-6 of the largest element, hence 1e-3 relative down to 1e-3 of that. */

static void compare(const struct golden *g, const char *name, int step, const struct opc_mlp *net,
                    const float *padded, double tolerance)
{
    const struct golden_entry *e = golden_find(g, name, step);
    double *plain = plain_get(net, padded), max = 0.0;
    assert_int_equal(e->rows, net->shape.members);
    assert_int_equal(e->columns, plain_count(&net->shape));
    for (int i = 0; i < e->rows * e->columns; i++)
        max = fabs(e->at[i]) > max ? fabs(e->at[i]) : max;
    assert_golden(e, plain, tolerance, step < 0 ? 1e-3 * max : 1.0);
    free(plain);
}

static struct opc_ints golden_ints(const struct golden *g, const char *name)
{
    const struct golden_entry *e = golden_find(g, name, -1);
    struct opc_ints list = {.n = e->columns};
    for (int i = 0; i < list.n; i++)
        list.at[i] = (int)e->at[i];
    return list;
}

static void follow_golden(const char *file, bool layer_norm)
{
    struct golden *g = golden_read(file);
    struct setup s = setup_of(golden_int(g, "obs"), golden_int(g, "act"));
    s.config.policy_hidden = golden_ints(g, "policy_hidden");
    s.config.critic_hidden = golden_ints(g, "critic_hidden");
    s.config.discount = golden_real(g, "discount");
    s.config.learning_rate = golden_real(g, "rate");
    s.config.batch_size = s.steps = golden_int(g, "batch");
    s.config.tau = golden_real(g, "tau");
    s.config.target_interval = golden_int(g, "target_interval");
    s.config.alpha = golden_real(g, "alpha");
    s.config.reward_scale = golden_real(g, "reward_scale");
    s.config.adam = golden_int(g, "torch");
    s.config.layer_norm = layer_norm;
    s.target_entropy = golden_real(g, "target_entropy");
    s.seed = (uint64_t)golden_real(g, "seed");
    s.threads = 2;
    struct play *p = play_open(&s);
    p->in_order = true;
    p->feed.epoch = (uint32_t)golden_int(g, "epoch");
    p->feed.first = (uint32_t)golden_int(g, "first");
    plain_set(p->policy, golden_find(g, "policy", -1)->at, weights(p, "sac.policy"));
    plain_set(p->critics, golden_find(g, "critics", -1)->at, weights(p, "sac.critics"));
    plain_set(p->critics, golden_find(g, "targets", -1)->at, weights(p, "sac.targets"));

    for (int k = 0; k < golden_int(g, "steps"); k++) {
        /* The noise first: if it is another, nothing after it can agree. */
        struct opc_rng r = opc_rng_stream(s.seed, OPC_USE_UPDATE, p->feed.epoch, p->feed.first);
        const struct golden_entry *noise = golden_find(g, "noise", k);
        const int panels = opc_panels(s.steps), all = panels * s.act * P;
        float *eps = floats_of((size_t)(2 * all), 0.0f);
        opc_rng_normals(&r, 2 * all, eps);
        for (int i = 0; i < s.steps; i++)
            for (int j = 0; j < 2 * s.act; j++)
                assert_near(noise->at[i * 2 * s.act + j],
                            (double)eps[j / s.act * all + (i / P * s.act + j % s.act) * P + i % P],
                            2e-6);
        free(eps);

        const struct golden_entry *batch = golden_find(g, "batch", k);
        assert_int_equal(batch->columns, p->columns);
        for (int i = 0; i < s.steps * p->columns; i++)
            p->table[i] = (float)batch->at[i];
        const struct opc_agent_report got = improve(p, 1);
        assert_golden(golden_find(g, "q", k), &got.value[OPC_SAC_Q], 1e-5, 1.0);
        assert_golden(golden_find(g, "q_target", k), &got.value[OPC_SAC_Q_TARGET], 1e-5, 1.0);
        assert_golden(golden_find(g, "critic_loss", k), &got.value[OPC_SAC_CRITIC_LOSS], 1e-5, 1.0);
        assert_golden(golden_find(g, "actor_loss", k), &got.value[OPC_SAC_ACTOR_LOSS], 1e-5, 1.0);
        assert_golden(golden_find(g, "entropy", k), &got.value[OPC_SAC_ENTROPY], 1e-5, 1.0);
        assert_golden(golden_find(g, "alpha", k), &got.value[OPC_SAC_ALPHA], 1e-5, 1.0);
        compare(g, "policy", k, p->policy, weights(p, "sac.policy"), 5e-6);
        compare(g, "critics", k, p->critics, weights(p, "sac.critics"), 5e-6);
        compare(g, "targets", k, p->critics, weights(p, "sac.targets"), 5e-6);
        assert_golden(golden_find(g, "log_alpha", k), &(double){(double)*weights(p, "sac.alpha")},
                      5e-6, 1.0);
    }
    compare(g, "policy.m", -1, p->policy, weights(p, "sac.policy.m"), 1e-3);
    compare(g, "policy.v", -1, p->policy, weights(p, "sac.policy.v"), 1e-3);
    compare(g, "critics.m", -1, p->critics, weights(p, "sac.critics.m"), 1e-3);
    compare(g, "critics.v", -1, p->critics, weights(p, "sac.critics.v"), 1e-3);
    assert_golden(golden_find(g, "alpha.m", -1), &(double){(double)*weights(p, "sac.alpha.m")},
                  1e-4, 0.0);
    assert_golden(golden_find(g, "alpha.v", -1), &(double){(double)*weights(p, "sac.alpha.v")},
                  1e-4, 0.0);
    play_close(p);
    golden_free(g);
}

static void updates_agree_with_an_independent_implementation(void **state)
{
    (void)state;
    follow_golden("sac.txt", false);
}

static void so_they_do_with_other_shapes_and_settings(void **state)
{
    (void)state;
    follow_golden("sac_other.txt",
                  false); /* 1 and 3 hidden layers, 37 rows, interval 2, torch's Adam */
}

static void so_they_do_with_layer_normalisation(void **state)
{
    (void)state;
    follow_golden("sac_layer_norm.txt", true);
}

/* ---- gradients against central differences in double ---------------------------------------- */

struct oracle {
    const struct play *p;
    double alpha;
    double *policy, *critics, *targets; /* plain */
    double *y;                          /* [batch] the critics' goals */
    float *noise;
    double kink; /* nearest to one, of all rows asked about */
};

/* a ~ pi(s) for row i with noise `which` (0: at s', 1: at s); returns log pi. */
static double oracle_act(struct oracle *o, const double *theta, int which, int i, double *x)
{
    const struct play *p = o->p;
    const int obs = p->setup.obs, act = p->setup.act, in = obs + act;
    const float *row = p->table + i * p->columns + (which ? 0 : in + 2);
    const int all = opc_panels(p->setup.config.batch_size) * act * P;
    double out[NET_WIDEST], logp = 0.0;
    for (int j = 0; j < obs; j++)
        x[j] = (double)row[j];
    net_row(&p->policy->shape, theta, x, out, &o->kink);
    for (int j = 0; j < act; j++) {
        const double eps = (double)o->noise[which * all + (i / P * act + j) * P + i % P];
        const double raw = out[act + j], s = raw > 2.0 ? 2.0 : raw < -20.0 ? -20.0 : raw;
        const double u = out[j] + exp(s) * eps;
        if (fabs(raw - 2.0) < o->kink)
            o->kink = fabs(raw - 2.0);
        x[obs + j] = tanh(u);
        /* log(1 - tanh^2 u), in its plain form: these u are small enough */
        logp += -0.5 * eps * eps - s - 0.5 * log(2.0 * acos(-1.0)) -
                2.0 * log(2.0 / (exp(u) + exp(-u)));
    }
    return logp;
}

static double oracle_min(struct oracle *o, const double *critics, const double *x)
{
    const struct opc_mlp_shape *shape = &o->p->critics->shape;
    double q[2];
    for (int k = 0; k < 2; k++)
        net_row(shape, critics + (size_t)k * plain_count(shape), x, &q[k], &o->kink);
    if (fabs(q[0] - q[1]) < o->kink)
        o->kink = fabs(q[0] - q[1]);
    return q[0] < q[1] ? q[0] : q[1];
}

static void oracle_goals(struct oracle *o)
{
    const struct play *p = o->p;
    const struct opc_sac_config *c = &p->setup.config;
    for (int i = 0; i < c->batch_size; i++) {
        double x[NET_WIDEST];
        const double logp = oracle_act(o, o->policy, 0, i, x);
        const double soft = oracle_min(o, o->targets, x) - o->alpha * logp;
        o->y[i] = c->reward_scale * (double)*reward_of(p, i);
        if (*mark_of(p, i) == (float)OPC_RECORD_STEP)
            o->y[i] += c->discount * soft;
    }
}

static double oracle_critic_loss(struct oracle *o, const double *theta)
{
    const struct play *p = o->p;
    const int n = p->setup.config.batch_size;
    double sum = 0.0;
    for (int i = 0; i < n; i++) {
        double x[NET_WIDEST], q;
        for (int j = 0; j < p->setup.obs + p->setup.act; j++)
            x[j] = (double)p->table[i * p->columns + j];
        net_row(&p->critics->shape, theta, x, &q, &o->kink);
        sum += 0.5 * (q - o->y[i]) * (q - o->y[i]);
    }
    return sum / n;
}

static double oracle_actor_loss(struct oracle *o, const double *theta)
{
    const int n = o->p->setup.config.batch_size;
    double sum = 0.0;
    for (int i = 0; i < n; i++) {
        double x[NET_WIDEST];
        const double logp = oracle_act(o, theta, 1, i, x);
        sum += o->alpha * logp - oracle_min(o, o->critics, x);
    }
    return sum / n;
}

static double oracle_entropy(struct oracle *o)
{
    const int n = o->p->setup.config.batch_size;
    double sum = 0.0, x[NET_WIDEST];
    for (int i = 0; i < n; i++)
        sum -= oracle_act(o, o->policy, 1, i, x);
    return sum / n;
}

/* Adam's m of a network against central differences of `loss`, relative to the largest. */
static void assert_gradient(struct oracle *o, double (*loss)(struct oracle *, const double *),
                            double *theta, size_t n, const double *m, const char *what)
{
    const double h = 1e-6;
    double *want = doubles_of(n), max = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double keep = theta[i];
        theta[i] = keep + h;
        want[i] = loss(o, theta);
        theta[i] = keep - h;
        want[i] = (want[i] - loss(o, theta)) / (2.0 * h);
        theta[i] = keep;
        max = fabs(want[i]) > max ? fabs(want[i]) : max;
    }
    assert_true(max > 1e-3);
    for (size_t i = 0; i < n; i++)
        if (!(fabs(m[i] / 0.1 - want[i]) <= 1e-5 * max))
            fail_msg("%s: derivative %zu of %zu is %.7g and not %.7g (largest %.3g)", what, i, n,
                     m[i] / 0.1, want[i], max);
    free(want);
}

static void check_gradients(int obs, int act, struct opc_ints policy_hidden,
                            struct opc_ints critic_hidden, int batch, uint32_t stream,
                            bool layer_norm)
{
    struct setup s = setup_of(obs, act);
    s.config.layer_norm = layer_norm;
    s.config.policy_hidden = policy_hidden;
    s.config.critic_hidden = critic_hidden;
    s.config.batch_size = s.steps = batch;
    s.config.learning_rate = 0.0; /* moments without motion */
    s.config.alpha = 0.4;
    s.config.reward_scale = 1.7;
    s.config.discount = 0.8;
    s.target_entropy = -0.3;
    struct play *p = play_open(&s);
    struct opc_rng r = test_stream(stream);
    p->in_order = true;
    randomise(p->policy, weights(p, "sac.policy"), &r, 0.8);
    randomise(p->critics, weights(p, "sac.critics"), &r, 0.8);
    randomise(p->critics, weights(p, "sac.targets"), &r, 0.8);
    policy_bias(p)[2 * act - 1] = 2.0f; /* clipped in about half of the rows */

    struct oracle o = {.p = p, .kink = 1.0};
    double *policy = plain_get(p->policy, weights(p, "sac.policy"));
    double *critics = plain_get(p->critics, weights(p, "sac.critics"));
    double *targets = plain_get(p->critics, weights(p, "sac.targets"));
    o.policy = policy;
    o.critics = critics;
    o.targets = targets;
    o.alpha = exp((double)*weights(p, "sac.alpha"));
    o.y = doubles_of((size_t)batch);
    o.noise = floats_of((size_t)(2 * opc_panels(batch) * act * P), 0.0f);
    struct opc_rng noise = opc_rng_stream(s.seed, OPC_USE_UPDATE, 0, 0);
    opc_rng_normals(&noise, 2 * opc_panels(batch) * act * P, o.noise);
    oracle_goals(&o);

    const struct opc_agent_report got = improve(p, 1);
    const size_t each = plain_count(&p->critics->shape);
    const double losses =
        oracle_critic_loss(&o, o.critics) + oracle_critic_loss(&o, o.critics + each);
    assert_near(got.value[OPC_SAC_CRITIC_LOSS], losses, 1e-5 * (1.0 + losses));
    assert_near(got.value[OPC_SAC_ACTOR_LOSS], oracle_actor_loss(&o, o.policy), 1e-5);
    assert_near(got.value[OPC_SAC_ENTROPY], oracle_entropy(&o), 1e-5);

    double *m = plain_get(p->critics, weights(p, "sac.critics.m"));
    for (size_t k = 0; k < 2; k++)
        assert_gradient(&o, oracle_critic_loss, o.critics + k * each, each, m + k * each,
                        "critics");
    free(m);
    m = plain_get(p->policy, weights(p, "sac.policy.m"));
    assert_gradient(&o, oracle_actor_loss, o.policy, plain_count(&p->policy->shape), m, "policy");
    free(m);
    /* J = -log alpha mean(log pi + H), with log pi = -entropy */
    assert_near((double)*weights(p, "sac.alpha.m"), -0.1 * (s.target_entropy - oracle_entropy(&o)),
                1e-5);
    /* Otherwise the differences would have stepped over a kink: choose another stream. */
    assert_true(o.kink > 5e-6);
    free(policy);
    free(critics);
    free(targets);
    free(o.y);
    free(o.noise);
    play_close(p);
}

static void gradients_agree_with_central_differences(void **state)
{
    (void)state;
    const struct opc_ints none = {0}, one = {1, {7}}, two = {2, {8, 6}}, three = {3, {5, 9, 4}};
    const struct opc_ints wide = {2, {18, 17}}, wider = {2, {17, 33}};
    check_gradients(3, 2, two, two, 20, 14, false);
    check_gradients(1, 1, one, three, 16, 11, false);
    check_gradients(5, 3, three, one, 37, 12, false);
    check_gradients(2, 4, none, two, 1, 13, false);
    check_gradients(15, 2, wide, wider, 20, 15,
                    false); /* s is one group of 16 columns, (s, a) are two */
}

/* The policy's gradient is that of Q by the action, through the normalisation of both critics. */
static void so_they_do_through_layer_normalisation(void **state)
{
    (void)state;
    const struct opc_ints one = {1, {7}}, two = {2, {8, 6}}, three = {3, {5, 9, 4}};
    const struct opc_ints wide = {2, {18, 17}}, wider = {2, {17, 33}};
    check_gradients(3, 2, two, two, 20, 50, true);
    check_gradients(1, 1, one, three, 16, 51, true);
    check_gradients(5, 3, three, one, 37, 52, true);
    check_gradients(15, 2, wide, wider, 20, 53, true);
}

/* algorithms.md 2.1: mean 0.3, log-deviation -0.5, eps 1.2. */
static void squashing_gives_the_reference_vector(void **state)
{
    (void)state;
    float out[2 * P], eps[P], action[P], logp[P];
    struct opc_arena scratch;
    struct opc_err err = {0};
    assert_ok(opc_arena_create(opc_squash_need(1), &scratch, &err), &err);
    for (int i = 0; i < P; i++) {
        out[i] = 0.3f;
        out[P + i] = -0.5f;
        eps[i] = 1.2f;
    }
    opc_squash(1, out, eps, action, logp, NULL, &scratch);
    for (int i = 0; i < P; i++) {
        assert_near((double)action[i], 0.773039, 1e-6);
        assert_near((double)logp[i], -0.228655, 1e-6);
    }
    opc_arena_destroy(&scratch);
}

/* ---- what the settings mean ----------------------------------------------------------------- */

static void temperature_rises_while_entropy_is_below_its_goal(void **state)
{
    (void)state;
    struct setup s = setup_of(3, 2);
    s.config.learning_rate = 0.01;
    struct play *p = play_open(&s);
    const double entropy = improve(p, 1).value[OPC_SAC_ENTROPY];
    play_close(p);
    const double goals[] = {entropy + 0.1, entropy - 0.1, 20.0, -20.0};
    for (int i = 0; i < 4; i++) {
        s.target_entropy = goals[i];
        p = play_open(&s);
        const struct opc_agent_report got = improve(p, 1);
        assert_near(got.value[OPC_SAC_ENTROPY], entropy, 0.0);
        /* Adam's first step has the length of the rate. */
        const double step = entropy < goals[i] ? 0.01 : -0.01;
        assert_near((double)*weights(p, "sac.alpha"), step, 1e-6);
        assert_near(got.value[OPC_SAC_ALPHA], exp(step), 1e-6);
        play_close(p);
    }
    s.config.tune_entropy = false;
    s.config.alpha = 0.7;
    p = play_open(&s);
    assert_near(improve(p, 5).value[OPC_SAC_ALPHA], 0.7, 1e-6);
    play_close(p);
}

static void entropy_goal_is_the_setting_or_the_task_s_or_minus_the_actions(void **state)
{
    (void)state;
    const struct {
        const char *setting;
        double task, want;
    } cases[] = {{"auto", (double)NAN, -2.0}, {"auto", -0.5, -0.5}, {"1.25", -0.5, 1.25}};
    for (int i = 0; i < 3; i++) {
        struct setup s = setup_of(3, 2);
        snprintf(s.config.target_entropy, sizeof s.config.target_entropy, "%s", cases[i].setting);
        s.target_entropy = cases[i].task;
        struct play *p = play_open(&s);
        const double entropy = improve(p, 1).value[OPC_SAC_ENTROPY];
        /* 0.1 of the gradient, -mean(log pi + H) */
        assert_near((double)*weights(p, "sac.alpha.m"), 0.1 * (entropy - cases[i].want), 1e-6);
        play_close(p);
    }
}

static void wrong_settings_are_refused(void **state)
{
    (void)state;
    struct opc_err err = {0};
    struct opc_agent *agent = NULL;
    struct setup s = setup_of(3, 2);
    snprintf(s.config.target_entropy, sizeof s.config.target_entropy, "low");
    assert_fails(create_agent(&s, NULL, &agent, &err), OPC_EUSER, &err, "sac.target_entropy");
    assert_mentions(&err, "-2");
    s = setup_of(3, 2);
    s.config.critic_hidden = (struct opc_ints){8, {4, 4, 4, 4, 4, 4, 4, 4}};
    assert_fails(create_agent(&s, NULL, &agent, &err), OPC_EUSER, &err, "8 hidden layers");
    assert_fails(opc_agent_create("ppo2", NULL, &agent, &err), OPC_EUSER, &err, "'ppo2'");
    assert_null(agent);
}

static void log_deviations_are_clipped_and_get_no_gradient_beyond(void **state)
{
    (void)state;
    const float beyond[] = {2.5f, -30.0f}, bound[] = {2.0f, -20.0f};
    for (int side = 0; side < 2; side++) {
        struct setup s = setup_of(3, 2);
        s.config.learning_rate = 0.0;
        float action[2][40 * 2];
        double entropy[2];
        for (int clipped = 0; clipped < 2; clipped++) {
            struct play *p = play_open(&s);
            /* The second action's log-deviation is its bias alone. */
            const struct opc_layer *last = &p->policy->layer[p->policy->shape.layers - 1];
            memset(weights(p, "sac.policy") + last->weight + 3 * last->ld, 0,
                   (size_t)last->in * sizeof(float));
            policy_bias(p)[3] = clipped ? beyond[side] : bound[side];
            struct opc_rng rng[40];
            for (uint32_t i = 0; i < 40; i++)
                rng[i] = test_stream(100 + i);
            struct opc_rng r = test_stream(9);
            float *states = floats_any(&r, (size_t)(40 * s.obs));
            opc_agent_act(p->agent, 40, states, true, rng, action[clipped]);
            free(states);
            entropy[clipped] = improve(p, 1).value[OPC_SAC_ENTROPY];

            const float *m = weights(p, "sac.policy.m");
            float sum[2] = {0};
            for (int j = 2; j < 4; j++)
                for (int i = 0; i <= last->in; i++)
                    sum[j - 2] += fabsf(i < last->in ? m[last->weight + (size_t)(j * last->ld + i)]
                                                     : m[last->bias + (size_t)j]);
            assert_true(sum[0] > 0.0f);
            assert_true((sum[1] > 0.0f) == !clipped); /* exactly 0 beyond, not on the bound */
            play_close(p);
        }
        assert_same_bits(action[0], action[1], sizeof action[0]);
        assert_near(entropy[0], entropy[1], 0.0);
    }
}

static void only_steps_that_go_on_ask_the_target_critics(void **state)
{
    (void)state;
    for (int terminal = 0; terminal < 2; terminal++) {
        float *first = NULL;
        for (int other_targets = 0; other_targets < 2; other_targets++) {
            struct setup s = setup_of(3, 2);
            s.config.reward_scale = 2.5;
            s.config.batch_size = s.steps = 37;
            s.config.tau = 0.0;
            struct play *p = play_open(&s);
            p->in_order = true;
            double mean = 0.0;
            for (int i = 0; i < s.steps; i++) {
                *mark_of(p, i) = (float)(terminal ? OPC_RECORD_TERMINAL : OPC_RECORD_STEP);
                mean += (double)*reward_of(p, i) / s.steps;
            }
            if (other_targets) {
                struct opc_rng r = test_stream(21);
                randomise(p->critics, weights(p, "sac.targets"), &r, 1.0);
            }
            double low = HUGE_VAL, high = -HUGE_VAL;
            for (int i = 0; i < s.steps; i++) {
                low = fmin(low, 2.5 * (double)*reward_of(p, i));
                high = fmax(high, 2.5 * (double)*reward_of(p, i));
            }
            const struct opc_agent_report report = improve(p, 1);
            assert_true((fabs(report.value[OPC_SAC_Q_TARGET] - 2.5 * mean) < 1e-6) == terminal);
            assert_true((fabs(report.value[OPC_SAC_TARGET_MIN] - low) < 1e-6) == terminal);
            assert_true((fabs(report.value[OPC_SAC_TARGET_MAX] - high) < 1e-6) == terminal);
            const size_t bytes = 2 * p->critics->each * sizeof(float);
            if (!other_targets) {
                first = floats_of(2 * p->critics->each, 0.0f);
                memcpy(first, weights(p, "sac.critics"), bytes);
            } else {
                assert_true((memcmp(first, weights(p, "sac.critics"), bytes) == 0) == terminal);
            }
            play_close(p);
        }
        free(first);
    }
}

/* One impossible value must not become a target: without bounds it does. */
static void targets_are_within_what_the_rewards_allow(void **state)
{
    (void)state;
    for (int bounded = 0; bounded < 2; bounded++) {
        struct setup s = setup_of(3, 2);
        s.config.bound_targets = bounded;
        s.config.tune_entropy = false;
        s.config.alpha = 0.01;
        s.config.discount = 0.9;
        struct play *p = play_open(&s);
        struct opc_rng r = test_stream(5);
        p->feed.reward_low = -0.5f;
        p->feed.reward_high = 1.5f;
        for (int i = 0; i < s.steps; i++)
            *reward_of(p, i) = fminf(fmaxf(*reward_of(p, i), -0.5f), 1.5f);
        randomise(p->critics, weights(p, "sac.targets"), &r, 1000.0); /* far beyond the data */
        const struct opc_agent_report report = improve(p, 3);
        /* Q within [-0.5, 1.5] / 0.1 and the entropy of a step, so targets are below r + 0.9 Q. */
        const double min = report.value[OPC_SAC_TARGET_MIN], max = report.value[OPC_SAC_TARGET_MAX];
        if (bounded)
            assert_true(min > -0.5 - 0.9 * (5 + 1) && max < 1.5 + 0.9 * (15 + 1));
        else
            assert_true(min < -1000 || max > 1000);
        play_close(p);
    }
}

/* Target critics whose Q is `value` everywhere. */
static void set_targets(const struct play *p, float value)
{
    const struct opc_layer *last = &p->critics->layer[p->critics->shape.layers - 1];
    float *target = weights(p, "sac.targets");
    memset(target, 0, 2 * p->critics->each * sizeof *target);
    for (size_t k = 0; k < 2; k++)
        target[k * p->critics->each + last->bias] = value;
}

/* An agent whose targets are bounded, and that stays as it is. Its policy has the log-deviations
 * that it begins with, and so a positive entropy; or much smaller ones, and a negative entropy. The
 * range of the rewards is [low, high], and theirs are its two ends. */
static struct play *play_bounded(double discount, bool sharp, float low, float high)
{
    struct setup s = setup_of(3, 2);
    s.config.bound_targets = true;
    s.config.tune_entropy = false;
    s.config.alpha = 0.5;
    s.config.discount = discount;
    s.config.reward_scale = 2.0;
    s.config.learning_rate = s.config.tau = 0.0;
    struct play *p = play_open(&s);
    p->feed.reward_low = low;
    p->feed.reward_high = high;
    for (int i = 0; i < s.steps; i++) {
        *reward_of(p, i) = i % 2 ? low : high;
        *mark_of(p, i) = (float)OPC_RECORD_STEP;
    }
    for (int j = 2; sharp && j < 4; j++)
        policy_bias(p)[j] = -5.0f;
    return p;
}

/* With a discount of 0.999 a reward for ever is worth 1,000 of them, beside which the reward and
 * the entropy of a target's own step are little. c, the entropy bonus of a step, is a mean over the
 * batch of the update before, and no other batch has the same. */
static void bounds_of_targets_are_the_extreme_rewards_and_the_entropy_bonus_for_ever(void **state)
{
    (void)state;
    const float range[][2] = {{0.0f, 0.0f}, {-1.5f, -1.0f}, {1.0f, 1.5f}, {-0.25f, 0.5f}};
    for (int i = 0; i < 4; i++)
        for (int sharp = 0; sharp < 2; sharp++) {
            struct play *p = play_bounded(0.999, sharp, range[i][0], range[i][1]);
            const double low = 2.0 * (double)range[i][0], high = 2.0 * (double)range[i][1];
            double c = 0.0; /* nothing is known of it in the first update */
            for (int k = 0; k < 6; k++) {
                set_targets(p, k % 2 ? 1e7f : -1e7f);
                const struct opc_agent_report report = improve(p, 1);
                const double Q = k % 2 ? fmax(0.0, high + fmax(c, 0.0)) * 1000.0
                                       : fmin(0.0, low + fmin(c, 0.0)) * 1000.0;
                assert_near(report.value[OPC_SAC_TARGET_MIN], 0.999 * Q, 30.0);
                assert_near(report.value[OPC_SAC_TARGET_MAX], 0.999 * Q, 30.0);
                c = 0.5 * report.value[OPC_SAC_ENTROPY];
                assert_true(sharp ? c < -1.5 : c > 0.25);
                assert_near((double)*weights(p, "sac.mean_logp"), -2.0 * c, 1e-6);
            }
            play_close(p);
        }
}

static void targets_have_no_bounds_where_nothing_is_known_or_discounted(void **state)
{
    (void)state;
    const struct {
        double discount;
        float low, high;
    } CASE[] = {{0.999, INFINITY, -INFINITY}, {0.999, 1.5f, 1.0f}, {1.0, -1.0f, 1.0f}};
    for (int i = 0; i < 3; i++)
        for (int sign = -1; sign <= 1; sign += 2) {
            struct play *p = play_bounded(CASE[i].discount, false, -1.0f, 1.0f);
            p->feed.reward_low = CASE[i].low;
            p->feed.reward_high = CASE[i].high;
            set_targets(p, (float)sign * 1e7f);
            for (int k = 0; k < 2; k++) {
                const double target = improve(p, 1).value[OPC_SAC_Q_TARGET];
                assert_near(target, CASE[i].discount * sign * 1e7, 30.0);
            }
            play_close(p);
        }
}

/* Critics that are normalised do not see a factor on their first layer, and target critics
 * likewise: Q and the targets stay as they are. The policy is not normalised. */
static void layer_norm_is_in_critics_and_target_critics_alone(void **state)
{
    (void)state;
    struct opc_agent_report report[2][2];
    float action[2][2][40];
    for (int norm = 0; norm < 2; norm++)
        for (int factor = 0; factor < 2; factor++) {
            struct setup s = setup_of(3, 2);
            s.config.layer_norm = norm;
            struct play *p = play_open(&s);
            const char *parts[] = {"sac.critics", "sac.targets", "sac.policy"};
            for (int i = 0; i < 3; i++) {
                const struct opc_mlp *net = i < 2 ? p->critics : p->policy;
                for (int m = 0; factor && m < net->shape.members; m++)
                    for (size_t k = 0; k < net->layer[0].bias; k++) /* biases are 0 */
                        weights(p, parts[i])[(size_t)m * net->each + k] *= i < 2 ? 256.0f : 2.0f;
            }
            opc_agent_act(p->agent, 20, p->table, false, NULL, action[norm][factor]);
            for (size_t k = 0; factor && k < p->policy->layer[0].bias; k++)
                weights(p, "sac.policy")[k] /= 2.0f; /* Q is asked about the same actions */
            report[norm][factor] = improve(p, 1);
            play_close(p);
        }
    /* eps is all that normalisation sees of the factor. */
    for (int norm = 0; norm < 2; norm++) {
        const double *a = report[norm][0].value, *b = report[norm][1].value;
        assert_true((fabs(a[OPC_SAC_Q] - b[OPC_SAC_Q]) < 1e-3) == norm);
        assert_true((fabs(a[OPC_SAC_Q_TARGET] - b[OPC_SAC_Q_TARGET]) < 1e-3) == norm);
        assert_memory_not_equal(action[norm][0], action[norm][1], sizeof action[norm][0]);
    }
    assert_same_bits(action[0], action[1], sizeof action[0]);
}

/* 60 % of the rate gone at the end are 24 % after two fifths; a new run begins with all of it. */
static void learning_rate_falls_in_proportion_to_what_is_done(void **state)
{
    (void)state;
    const struct {
        double rate, decay, done;
        int like; /* the case with the same weights afterwards */
    } CASE[] = {{1e-3, 0, 0, 0},
                {1e-3, 0.6, 0, 0},
                {1e-3, 0, 0.4, 0},
                {0.76e-3, 0, 0, 3},
                {1e-3, 0.6, 0.4, 3}};
    enum { CASES = sizeof CASE / sizeof *CASE };
    double policy[CASES], critics[CASES], alpha[CASES];
    for (int i = 0; i < CASES; i++) {
        struct setup s = setup_of(3, 2);
        s.config.learning_rate = CASE[i].rate;
        s.config.lr_decay = CASE[i].decay;
        struct play *p = play_open(&s);
        p->feed.done = CASE[i].done;
        improve(p, 3);
        policy[i] = (double)weights(p, "sac.policy")[0];
        critics[i] = (double)weights(p, "sac.critics")[0];
        alpha[i] = (double)weights(p, "sac.alpha")[0];
        play_close(p);
        assert_near(policy[i], policy[CASE[i].like], 1e-9);
        assert_near(critics[i], critics[CASE[i].like], 1e-9);
        assert_near(alpha[i], alpha[CASE[i].like], 1e-9);
    }
    assert_true(policy[3] != policy[0] && critics[3] != critics[0] && alpha[3] != alpha[0]);
}

static void discount_weighs_the_next_state(void **state)
{
    (void)state;
    double target[3];
    for (int i = 0; i < 3; i++) {
        struct setup s = setup_of(3, 2);
        s.config.discount = 0.5 * i;
        struct play *p = play_open(&s);
        target[i] = improve(p, 1).value[OPC_SAC_Q_TARGET];
        play_close(p);
    }
    assert_near(target[1], 0.5 * (target[0] + target[2]), 1e-6);
    assert_true(fabs(target[2] - target[0]) > 0.1);
}

static void targets_follow_by_tau_every_interval(void **state)
{
    (void)state;
    struct setup s = setup_of(3, 2);
    s.config.learning_rate = 0.01;
    s.config.tau = 0.3;
    s.config.target_interval = 3;
    struct play *p = play_open(&s);
    const size_t n = 2 * p->critics->each;
    float *target = weights(p, "sac.targets"), *critic = weights(p, "sac.critics");
    assert_same_bits(target, critic, n * sizeof *target); /* they start as copies */
    float *before = floats_of(n, 0.0f);
    for (int k = 1; k <= 7; k++) {
        memcpy(before, target, n * sizeof *before);
        improve(p, 1);
        for (size_t i = 0; k % 3 == 0 && i < n; i++)
            before[i] += 0.3f * (critic[i] - before[i]); /* the new critics */
        assert_same_bits(before, target, n * sizeof *before);
    }
    free(before);
    play_close(p);

    s.config.target_interval = 1;
    s.config.tau = 1.0;
    p = play_open(&s);
    improve(p, 4);
    assert_floats_near(weights(p, "sac.targets"), weights(p, "sac.critics"), n, 1e-6);
    play_close(p);
}

static void a_rate_of_zero_moves_nothing(void **state)
{
    (void)state;
    struct setup s = setup_of(3, 2);
    s.config.learning_rate = 0.0;
    s.config.tau = 0.5;
    struct play *p = play_open(&s), *q = play_open(&s);
    improve(p, 3);
    const char *parts[] = {"sac.policy", "sac.critics", "sac.targets", "sac.alpha"};
    const size_t n[] = {p->policy->each, 2 * p->critics->each, 2 * p->critics->each, 1};
    for (int i = 0; i < 4; i++)
        assert_same_bits(weights(p, parts[i]), weights(q, parts[i]), n[i] * sizeof(float));
    play_close(p);
    play_close(q);
}

/* ---- bits ----------------------------------------------------------------------------------- */

static void bits_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    const int threads[] = {1, 2, 3, 8}, batch[] = {37, 256, 3, 37, 100};
    for (int b = 0; b < 5; b++) {
        unsigned char *first = NULL;
        struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
        for (int t = 0; t < 4; t++) {
            struct setup s = setup_of(5, 3);
            s.config.policy_hidden = (struct opc_ints){2, {24, 17}};
            s.config.critic_hidden = (struct opc_ints){2, {9, 33}};
            s.config.batch_size = batch[b];
            s.config.layer_norm = b >= 3;
            s.config.learning_rate = 0.01;
            s.threads = threads[t];
            struct play *p = play_open(&s);
            const struct opc_agent_report got = improve(p, 50);
            if (!first) {
                first = parts_copy(&p->parts);
                report = got;
            } else {
                assert_parts_are(&p->parts, first);
                assert_same_bits(&got, &report, sizeof got);
            }
            play_close(p);
        }
        free(first);
    }
}

static void updates_may_be_asked_for_in_any_portions(void **state)
{
    (void)state;
    const struct setup s = setup_of(3, 2);
    struct play *p = play_open(&s), *q = play_open(&s);
    improve(p, 11);
    improve(q, 4);
    improve(q, 0);
    improve(q, 7);
    unsigned char *all = parts_copy(&p->parts);
    assert_parts_are(&q->parts, all);
    free(all);
    play_close(p);
    play_close(q);
}

static void seed_epoch_and_first_name_the_updates(void **state)
{
    (void)state;
    const struct setup s = setup_of(3, 2);
    float *copy[4];
    uint32_t batch[4]; /* which the batch is drawn from, besides what the update draws itself */
    for (int i = 0; i < 4; i++) {
        struct play *p = play_open(&s);
        p->feed.seed += i == 1;
        p->feed.epoch += i == 2;
        p->feed.first += i == 3;
        improve(p, 1);
        copy[i] = floats_of(p->policy->each, 0.0f);
        memcpy(copy[i], weights(p, "sac.policy"), p->policy->each * sizeof(float));
        batch[i] = p->stream;
        for (int j = 0; j < i; j++) {
            assert_memory_not_equal(copy[i], copy[j], p->policy->each * sizeof(float));
            assert_int_not_equal(batch[i], batch[j]);
        }
        play_close(p);
    }
    for (int i = 0; i < 4; i++)
        free(copy[i]);
}

enum { ASKED = 300 };

static void actions_are_the_policy_s(void **state)
{
    (void)state;
    struct setup s = setup_of(4, 3);
    struct play *p = play_open(&s);
    struct opc_rng r = test_stream(30), rng[ASKED];
    randomise(p->policy, weights(p, "sac.policy"), &r, 0.7);
    policy_bias(p)[5] = 1.8f;
    float *states = floats_any(&r, ASKED * 4), mode[ASKED * 3], drawn[ASKED * 3];
    for (uint32_t i = 0; i < ASKED; i++)
        rng[i] = test_stream(100 + i);
    opc_agent_act(p->agent, ASKED, states, false, rng, drawn); /* streams are not asked */
    opc_agent_act(p->agent, ASKED, states, false, NULL, mode);
    assert_same_bits(mode, drawn, sizeof mode);
    opc_agent_act(p->agent, ASKED, states, true, rng, drawn);
    double *theta = plain_get(p->policy, weights(p, "sac.policy"));
    for (int i = 0; i < ASKED; i++) {
        double x[4], out[6];
        float eps[4];
        struct opc_rng own = test_stream(100 + (uint32_t)i);
        opc_rng_normals(&own, 3, eps);
        for (int j = 0; j < 4; j++)
            x[j] = (double)states[i * 4 + j];
        net_row(&p->policy->shape, theta, x, out, NULL);
        for (int j = 0; j < 3; j++) {
            const double log_std = out[3 + j] > 2.0 ? 2.0 : out[3 + j];
            assert_near((double)mode[i * 3 + j], tanh(out[j]), 1e-6);
            assert_near((double)drawn[i * 3 + j], tanh(out[j] + exp(log_std) * (double)eps[j]),
                        5e-6);
        }
        assert_int_equal(opc_rng_bits(&own), opc_rng_bits(&rng[i])); /* streams move on */
    }
    free(theta);
    free(states);
    play_close(p);
}

static void an_action_has_the_same_bits_in_any_company(void **state)
{
    (void)state;
    struct setup s = setup_of(4, 3);
    struct opc_rng r = test_stream(31);
    float *states = floats_any(&r, ASKED * 4), want[2][ASKED * 3], got[ASKED * 3];
    const int threads[] = {1, 2, 3, 8}, portion[] = {ASKED, 1, 7, 16, 129, ASKED};
    for (int t = 0; t < 4; t++) {
        s.threads = threads[t];
        struct play *p = play_open(&s);
        for (int explore = 0; explore < 2; explore++)
            for (int k = 0; k < 6; k++) {
                struct opc_rng rng[ASKED];
                for (uint32_t i = 0; i < ASKED; i++)
                    rng[i] = test_stream(100 + i);
                for (int i = 0; i < ASKED; i += portion[k]) {
                    const int n = ASKED - i < portion[k] ? ASKED - i : portion[k];
                    opc_agent_act(p->agent, n, states + i * 4, explore, rng + i, got + i * 3);
                }
                if (t == 0 && k == 0)
                    memcpy(want[explore], got, sizeof got);
                assert_same_bits(want[explore], got, sizeof got);
            }
        play_close(p);
    }
    free(states);
}

static void load_and_go_on(bool layer_norm)
{
    struct opc_err err = {0};
    struct setup s = setup_of(3, 2);
    s.config.target_interval = 4; /* the count of updates matters too */
    s.config.learning_rate = 0.01;
    s.config.layer_norm = layer_norm;
    s.config.bound_targets = true; /* and so does the entropy of the last one */
    struct play *p = play_open(&s);
    p->feed.reward_low = -1e-4f;
    p->feed.reward_high = 1e-4f;
    improve(p, 18);
    s.seed++; /* other first weights; what follows is named by the feed */
    struct play *q = play_open(&s);
    improve(q, 3);
    q->feed = p->feed;
    q->feed.ctx = q;

    unsigned char *saved = parts_copy(&p->parts);
    const unsigned char *from = saved;
    assert_ok(q->agent->type->state(q->agent, load_part, &from, &err), &err);
    assert_ptr_equal(from, saved + p->parts.bytes);
    free(saved);
    const struct opc_agent_report a = improve(p, 15), b = improve(q, 15);
    assert_same_bits(&a, &b, sizeof a);
    saved = parts_copy(&p->parts);
    assert_parts_are(&q->parts, saved);
    free(saved);
    float action[2][40];
    opc_agent_act(p->agent, 20, p->table, false, NULL, action[0]);
    opc_agent_act(q->agent, 20, p->table, false, NULL, action[1]);
    assert_same_bits(action[0], action[1], sizeof action[0]);
    play_close(p);
    play_close(q);
}

static void a_loaded_state_goes_on_to_the_same_bits(void **state)
{
    (void)state;
    load_and_go_on(false);
    load_and_go_on(true);
}

static int refuse_part(void *ctx, const char *name, void *data, size_t bytes, struct opc_err *err)
{
    (void)data;
    (void)bytes;
    return strcmp(name, ctx) == 0 ? opc_fail(err, OPC_EDAMAGED, "no %s", name) : OPC_OK;
}

static void a_visitor_may_refuse(void **state)
{
    (void)state;
    const struct setup s = setup_of(3, 2);
    struct play *p = play_open(&s);
    struct opc_err err = {0};
    assert_fails(p->agent->type->state(p->agent, refuse_part, "sac.targets", &err), OPC_EDAMAGED,
                 &err, "sac.targets");
    play_close(p);
}

/* ---- trouble -------------------------------------------------------------------------------- */

static void nan_anywhere_in_a_batch_stops_within_one_update(void **state)
{
    (void)state;
    const float poison[] = {NAN, INFINITY, NAN, INFINITY};
    for (int k = 0; k < 4; k++)
        for (int column = 0; column < 3 + 2 + 2 + 3; column++) {
            struct setup s = setup_of(3, 2);
            s.config.layer_norm = k >= 2;
            s.config.batch_size = s.steps = 23;
            struct play *p = play_open(&s);
            struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
            struct opc_err err = {0};
            p->in_order = true;
            p->feed.epoch = 6;
            improve(p, 4);
            p->draws = 0;
            p->table[22 * p->columns + column] = poison[k];
            assert_fails(opc_agent_improve(p->agent, &p->feed, 10, &report, &err), OPC_EDIVERGED,
                         &err, "critics");
            assert_mentions(&err, "update 4 of epoch 6");
            assert_int_equal(p->draws, 1);
            play_close(p);
        }
}

/* Critics that do not look at the state, and one from which the policy shoots off: u is infinite,
 * and so is log pi of it. */
static void the_actor_s_loss_is_named_when_it_is_the_one(void **state)
{
    (void)state;
    struct setup s = setup_of(3, 2);
    s.config.batch_size = s.steps = 23;
    struct play *p = play_open(&s);
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    struct opc_err err = {0};
    p->in_order = true;
    const char *critics[] = {"sac.critics", "sac.targets"};
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < 2; k++)
            for (int o = 0; o < p->critics->layer[0].out; o++)
                memset(weights(p, critics[i]) + k * p->critics->each + o * p->critics->layer[0].ld,
                       0, 3 * sizeof(float));
    for (int j = 0; j < 3; j++)
        p->table[5 * p->columns + j] = 3e38f;
    assert_fails(opc_agent_improve(p->agent, &p->feed, 10, &report, &err), OPC_EDIVERGED, &err,
                 "actor");
    play_close(p);
}

static bool stop_at_once(void *ctx)
{
    (*(int *)ctx)++;
    return true;
}

static void a_request_to_stop_is_heard(void **state)
{
    (void)state;
    const struct setup s = setup_of(3, 2);
    struct play *p = play_open(&s);
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    struct opc_err err = {0};
    int asked = 0;
    p->feed.stop = stop_at_once;
    p->feed.stop_ctx = &asked;
    assert_int_equal(opc_agent_improve(p->agent, &p->feed, 1000, &report, &err), OPC_ESTOPPED);
    assert_int_equal(asked, 1);
    assert_true(p->draws <= 100);
    play_close(p);
}

static int create_and_destroy(void *ctx, struct opc_err *err)
{
    struct play *p = ctx;
    struct opc_agent *agent = NULL;
    const int code = create_agent(&p->setup, p->pool, &agent, err);
    assert_true((code == OPC_OK) == (agent != NULL));
    opc_agent_destroy(agent);
    return code;
}

/* As a program does that has the public headers only. */
static void without_settings_it_has_the_defaults(void **state)
{
    (void)state;
    struct opc_sac_config config;
    struct opc_agent *agent[2];
    struct opc_err err = {0};
    const float s[3] = {0.1f, -0.2f, 0.3f};
    float a[2][2];
    assert_ok(opc_section_defaults(&opc_sac_section, &config, &err), &err);
    for (int i = 0; i < 2; i++) {
        const struct opc_agent_args args = {OPC_SIZED(struct opc_agent_args),
                                            .obs = 3,
                                            .act = 2,
                                            .seed = 5,
                                            .config = i ? &config : NULL,
                                            .target_entropy = -2};
        assert_ok(opc_agent_create("sac", &args, &agent[i], &err), &err);
        opc_agent_act(agent[i], 1, s, false, NULL, a[i]);
        opc_agent_destroy(agent[i]);
    }
    assert_same_bits(a[0], a[1], sizeof a[0]);
}

static void lack_of_memory_is_an_error(void **state)
{
    (void)state;
    struct play p = {.setup = setup_of(3, 2), .pool = pool_of(3)};
    assert_survives_lack_of_memory(create_and_destroy, &p);
    opc_pool_destroy(p.pool);
    opc_agent_destroy(NULL);
}

/* ---- learning ------------------------------------------------------------------------------- */

/* A contextual bandit: every step is terminal and pays -(a - f(s))^2; the best mode is f. */
static float best_action(const float *s)
{
    return 0.6f * sinf(2.0f * s[0]) - 0.3f * s[1];
}

static void learn_bandit(bool layer_norm)
{
    enum { SEEN = 4000, TESTED = 200, UPDATES = LIGHT ? 600 : 2500 };
    struct setup s = setup_of(2, 1);
    s.steps = SEEN;
    s.config.policy_hidden = s.config.critic_hidden = (struct opc_ints){2, {32, 32}};
    s.config.batch_size = 64;
    s.config.layer_norm = layer_norm;
    s.config.learning_rate = 3e-3;
    struct play *p = play_open(&s);
    for (int i = 0; i < SEEN; i++) {
        const float *row = p->table + i * p->columns, gap = row[2] - best_action(row);
        *reward_of(p, i) = -gap * gap;
        *mark_of(p, i) = (float)OPC_RECORD_TERMINAL;
    }
    double error[2], entropy = 0.0;
    for (int k = 0; k < 2; k++) {
        struct opc_rng r = test_stream(40);
        float states[2 * TESTED] = {0}, action[TESTED] = {0};
        for (int i = 0; i < 2 * TESTED; i++)
            states[i] = any_float(&r);
        opc_agent_act(p->agent, TESTED, states, false, NULL, action);
        error[k] = 0.0;
        for (int i = 0; i < TESTED; i++)
            error[k] += pow((double)(action[i] - best_action(states + 2 * i)), 2.0) / TESTED;
        if (k == 0)
            improve(p, UPDATES);
    }
    for (int i = 0; i < 10; i++)
        entropy += improve(p, 50).value[OPC_SAC_ENTROPY] / 10;
    assert_true(error[0] > 0.1);
    assert_true(error[1] < (LIGHT ? 0.05 : 0.004));
    if (!LIGHT)
        assert_near(entropy, -1.0, 0.15); /* and the temperature has found its goal */
    play_close(p);
}

static void a_bandit_is_learned(void **state)
{
    (void)state;
    learn_bandit(false);
}

static void a_bandit_is_learned_with_layer_normalisation(void **state)
{
    (void)state;
    learn_bandit(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        each_backend(updates_agree_with_an_independent_implementation),
        each_backend(so_they_do_with_other_shapes_and_settings),
        each_backend(so_they_do_with_layer_normalisation),
        each_backend(gradients_agree_with_central_differences),
        each_backend(so_they_do_through_layer_normalisation),
        each_backend(squashing_gives_the_reference_vector),
        once(temperature_rises_while_entropy_is_below_its_goal),
        once(entropy_goal_is_the_setting_or_the_task_s_or_minus_the_actions),
        once(wrong_settings_are_refused),
        once(log_deviations_are_clipped_and_get_no_gradient_beyond),
        once(only_steps_that_go_on_ask_the_target_critics),
        once(discount_weighs_the_next_state),
        once(targets_are_within_what_the_rewards_allow),
        once(bounds_of_targets_are_the_extreme_rewards_and_the_entropy_bonus_for_ever),
        once(targets_have_no_bounds_where_nothing_is_known_or_discounted),
        once(layer_norm_is_in_critics_and_target_critics_alone),
        once(learning_rate_falls_in_proportion_to_what_is_done),
        once(targets_follow_by_tau_every_interval),
        once(a_rate_of_zero_moves_nothing),
        each_backend(bits_do_not_depend_on_the_number_of_threads),
        once(updates_may_be_asked_for_in_any_portions),
        once(seed_epoch_and_first_name_the_updates),
        each_backend(actions_are_the_policy_s),
        each_backend(an_action_has_the_same_bits_in_any_company),
        once(a_loaded_state_goes_on_to_the_same_bits),
        once(a_visitor_may_refuse),
        each_backend(nan_anywhere_in_a_batch_stops_within_one_update),
        once(the_actor_s_loss_is_named_when_it_is_the_one),
        once(a_request_to_stop_is_heard),
        once(without_settings_it_has_the_defaults),
        once(lack_of_memory_is_an_error),
        once(a_bandit_is_learned),
        once(a_bandit_is_learned_with_layer_normalisation),
    };
    return run_num_tests(tests);
}
