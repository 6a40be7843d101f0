/* SPDX-License-Identifier: MIT */
/* SLBO as an agent: what it learns from a recording, exploration noise, imagined trajectories,
 * wrong settings, and results that depend on nothing but settings and seed. Its parts have tests of
 * their own: test_multistep.c, test_trpo.c, test_cg.c. */
#include "agent/slbo_private.h"

#include "num/normal.h"
#include "test_net.h"

/* ---- an agent with a task and a recording ---------------------------------------------------- */

struct bench {
    struct opc_slbo_config config;
    struct opc_env *env;
    struct opc_episodes *past;
    struct opc_agent *agent;
    struct parts parts;
    struct opc_feed feed;
};

static struct opc_slbo_config small(void)
{
    struct opc_slbo_config config;
    struct opc_err err = {0};
    assert_ok(opc_section_defaults(&opc_slbo_section, &config, &err), &err);
    config.model_hidden = (struct opc_ints){2, {9, 8}};
    config.policy_hidden = (struct opc_ints){1, {6}};
    config.value_hidden = (struct opc_ints){1, {5}};
    config.iterations = 2;
    config.model_updates = 5;
    config.policy_updates = 3;
    config.batch_size = 20;
    config.rollout_steps = 120;
    config.rollout_envs = 4;
    config.value_batch_size = 30;
    return config;
}

/* Plays episodes with random actions until so many steps are recorded; the last one is cut. */
static void record(struct bench *b, int steps, uint32_t which)
{
    struct opc_err err = {0};
    struct opc_rng r = opc_rng_stream(5, OPC_USE_TEST, which, 0);
    double obs[16], action;
    float a;
    struct opc_outcome out = {.obs = obs};
    for (int n = 0; n < steps;) {
        assert_ok(opc_env_reset(b->env, &r, obs, &err), &err);
        assert_ok(opc_episodes_begin(b->past, obs, &err), &err);
        do {
            a = 1.2f * any_float(&r);
            opc_env_scale(b->env, &a, &action);
            assert_ok(opc_env_step(b->env, &action, &out, &err), &err);
            assert_ok(opc_episodes_append(b->past, &a, out.reward, obs, out.terminated, &err),
                      &err);
            n++;
        } while (!out.terminated && !out.truncated && n < steps);
        opc_episodes_close(b->past);
    }
}

static struct bench *open_with_reward(const char *task, const struct opc_slbo_config *config,
                                      struct opc_pool *pool, bool given)
{
    struct bench *b = calloc(1, sizeof *b);
    struct opc_err err = {0};
    assert_non_null(b);
    b->config = *config;
    assert_ok(opc_env_open(task, &b->env, &err), &err);
    assert_ok(opc_episodes_create(b->env->obs, b->env->act, 2000, 2000, &b->past, &err), &err);
    const struct opc_agent_args args = {OPC_SIZED(struct opc_agent_args),
                                        .obs = b->env->obs,
                                        .act = b->env->act,
                                        .seed = 3,
                                        .config = &b->config,
                                        .steps = 300,
                                        .pool = pool,
                                        .env = b->env,
                                        .past = b->past,
                                        .given_reward = given};
    assert_ok(opc_agent_create("slbo", &args, &b->agent, &err), &err);
    assert_ok(b->agent->type->state(b->agent, note_part, &b->parts, &err), &err);
    b->feed = (struct opc_feed){OPC_SIZED(struct opc_feed), .seed = 3, .epoch = 1};
    return b;
}

static struct bench *open_bench(const char *task, const struct opc_slbo_config *config,
                                struct opc_pool *pool)
{
    return open_with_reward(task, config, pool, true);
}

static void close_bench(struct bench *b)
{
    opc_agent_destroy(b->agent);
    opc_episodes_destroy(b->past);
    opc_env_close(b->env);
    free(b);
}

static struct opc_agent_report improve(struct bench *b)
{
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    struct opc_err err = {0};
    assert_ok(opc_agent_improve(b->agent, &b->feed, 0, &report, &err), &err);
    b->feed.epoch++;
    return report;
}

static struct slbo *slbo_of(struct bench *b)
{
    return (struct slbo *)b->agent;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void noise_is_an_ornstein_uhlenbeck_process(void **state)
{
    (void)state;
    enum { STEPS = 3000, ACT = 3 };
    float x[ACT], work[ACT], z[ACT];
    double want[ACT] = {0}, squares = 0, product = 0, before = 0;
    for (uint32_t t = 0; t < STEPS; t++) {
        struct opc_rng r = opc_rng_stream(7, OPC_USE_EXPLORE, 1, t);
        opc_rng_normals(&r, ACT, z);
        opc_slbo_noise(7, t, ACT, 0.15, 0.3, work, x);
        for (int k = 0; k < ACT; k++) {
            want[k] += 0.15 * (0 - want[k]) + 0.3 * (double)z[k];
            assert_near((double)x[k], want[k], 1e-6);
        }
        squares += want[0] * want[0] / STEPS;
        product += want[0] * before / STEPS;
        before = want[0];
    }
    /* The variance of the process is sigma^2 / (1 - (1 - theta)^2), its correlation 1 - theta. */
    assert_near(squares, 0.09 / (1 - 0.85 * 0.85), 0.05);
    assert_near(product / squares, 0.85, 0.03);
    opc_slbo_noise(7, 5, ACT, 1, 0.3, work, x); /* without memory */
    struct opc_rng r = opc_rng_stream(7, OPC_USE_EXPLORE, 1, 5);
    opc_rng_normals(&r, ACT, z);
    for (int k = 0; k < ACT; k++)
        assert_near((double)x[k], 0.3 * (double)z[k], 1e-7);
}

/* A real step of training is recognised by its stream; evaluations draw from the policy alone. */
static void only_real_steps_of_training_are_noisy(void **state)
{
    (void)state;
    struct opc_slbo_config config = small();
    struct bench *b = open_bench("pendulum", &config, NULL);
    const float s[3] = {0.1f, 0.2f, 0.3f};
    float mode, drawn, noisy, evaluated, again, noise, work;
    opc_agent_act(b->agent, 1, s, false, NULL, &mode);
    struct opc_rng r = opc_rng_stream(3, OPC_USE_EXPLORE, 0, 42);
    opc_agent_act_spread(b->agent, 1, s, 1, &r, &drawn);
    r = opc_rng_stream(3, OPC_USE_EXPLORE, 0, 42);
    opc_agent_act(b->agent, 1, s, true, &r, &noisy);
    opc_slbo_noise(3, 42, 1, 0.15, 0.3, &work, &noise);
    assert_true(noisy == drawn + noise && noise != 0);
    r = opc_rng_stream(3, OPC_USE_EVAL, 0, 42);
    opc_agent_act(b->agent, 1, s, true, &r, &evaluated);
    r = opc_rng_stream(3, OPC_USE_EVAL, 0, 42);
    opc_agent_act_spread(b->agent, 1, s, 1, &r, &again);
    assert_true(evaluated == again && evaluated != mode);
    /* and without noise where none is wanted */
    slbo_of(b)->config.ou_sigma = 0;
    r = opc_rng_stream(3, OPC_USE_EXPLORE, 0, 42);
    opc_agent_act(b->agent, 1, s, true, &r, &noisy);
    assert_true(noisy == drawn);
    close_bench(b);
}

/* Every recorded step once, whenever it was recorded. */
static void statistics_are_those_of_the_recording(void **state)
{
    (void)state;
    struct opc_slbo_config config = small();
    struct bench *b = open_bench("pendulum", &config, NULL);
    record(b, 230, 1);
    improve(b);
    record(b, 300, 2);
    improve(b);
    const int all = opc_episodes_steps(b->past);
    assert_int_equal(slbo_of(b)->seen, all);
    for (int k = 0; k < 3; k++) {
        double mean = 0, var = 0;
        for (int pass = 0; pass < 2; pass++)
            for (int i = 0; i < all; i++) {
                int e, t;
                opc_episodes_find(b->past, i, &e, &t);
                const double v = (double)opc_episodes_at(b->past, e, t).state[k];
                if (pass == 0)
                    mean += v / all;
                else
                    var += (v - mean) * (v - mean) / all;
            }
        assert_near(slbo_of(b)->model->stats[k].mean, mean, 1e-9);
        assert_near(slbo_of(b)->model->stats[k].var, var, 1e-9);
    }
    close_bench(b);
}

/* Rows of a batch, one after the other: state, action and reward fit the model that made them. */
static void imagined_trajectories_are_the_models(void **state)
{
    (void)state;
    for (int which = 0; which < 2; which++) {
        struct opc_slbo_config config = small();
        config.start = which ? OPC_SLBO_START_BUFFER : OPC_SLBO_START_RESET;
        struct bench *b = open_bench("cartpole", &config, NULL);
        struct slbo *slbo = slbo_of(b);
        struct slbo_imagined got;
        struct opc_err err = {0};
        record(b, 300, 3);
        improve(b);
        /* a pole that soon falls over, whatever the model says so far */
        const struct opc_layer *last = &slbo->model->net->layer[2];
        slbo->model->net->param[last->bias + 1] = 3;
        assert_ok(opc_slbo_imagine(slbo, &b->feed, &got, &err), &err);
        const struct opc_multistep_scales scales = opc_multistep_scales(slbo->model);
        const int length = slbo->trpo->options.length;
        int ends = 0;
        double rewards = 0;
        for (int e = 0; e < 4; e++)
            for (int t = 0; t < length; t++) {
                const int i = e * length + t;
                float s[4], next[4], after[4], a = slbo->trpo->action[i];
                for (int k = 0; k < 4; k++) {
                    const float *x = slbo->trpo->state + (e * (length + 1) + t) * 4 + k;
                    s[k] = x[0] / scales.inverse[k] + scales.mean[k];
                    after[k] = x[4] / scales.inverse[k] + scales.mean[k];
                }
                opc_multistep_predict(slbo->model, 1, s, &a, next, NULL);
                bool done;
                opc_env_terminal(b->env, 1, s, &a, next, &done);
                assert_int_equal(done, slbo->trpo->done[i]);
                if (!done || t + 1 == length)
                    assert_floats_near(next, after, 4, 1e-4);
                else if (which == 0) /* a reset of the task */
                    for (int k = 0; k < 4; k++)
                        assert_true(fabsf(after[k]) <= 0.0501f);
                ends += done && t + 1 < length;
                rewards += slbo->trpo->reward[i];
                assert_true(slbo->trpo->reward[i] == 1); /* given by the task */
            }
        assert_int_equal(got.trajectories, 4 + ends);
        assert_near(got.rewards, rewards, 0);
        assert_true(ends > 0);
        close_bench(b);
    }
}

static void rewards_are_given_or_learned(void **state)
{
    (void)state;
    struct opc_slbo_config config = small();
    struct bench *b = open_bench("pendulum", &config, NULL);
    assert_true(slbo_of(b)->given_reward);
    assert_false(slbo_of(b)->model->options.reward);
    close_bench(b);
    b = open_with_reward("pendulum", &config, NULL, false);
    assert_false(slbo_of(b)->given_reward);
    assert_true(slbo_of(b)->model->options.reward);
    record(b, 300, 4);
    assert_true(improve(b).value[OPC_SLBO_MODEL_LOSS] > 0);
    /* those of the batch are the model's */
    struct slbo_imagined got;
    struct opc_err err = {0};
    assert_ok(opc_slbo_imagine(slbo_of(b), &b->feed, &got, &err), &err);
    const struct opc_multistep_scales scales = opc_multistep_scales(slbo_of(b)->model);
    assert_near(slbo_of(b)->trpo->reward[0], (double)scales.diff_mean[3],
                10 * (double)scales.diff_std[3]);
    close_bench(b);
}

static void a_failed_line_search_is_counted(void **state)
{
    (void)state;
    struct opc_slbo_config config = small();
    struct bench *b = open_bench("pendulum", &config, NULL);
    record(b, 300, 5);
    assert_near(improve(b).value[OPC_SLBO_LINE_SEARCH_FAILED], 0, 0);
    close_bench(b);
    /* One try, far outside of where the second-order form holds. */
    config.max_kl = 10;
    config.line_search = 1;
    b = open_bench("pendulum", &config, NULL);
    record(b, 300, 5);
    const struct opc_agent_report report = improve(b);
    assert_int_equal(report.updates, 6);
    assert_true(report.value[OPC_SLBO_LINE_SEARCH_FAILED] >= 1);
    assert_true(report.value[OPC_SLBO_LINE_SEARCH_FAILED] <= 6);
    close_bench(b);
}

/* The recording is longer than the buffer, and its old steps do not count any more. */
static void the_model_is_trained_on_the_newest_steps(void **state)
{
    (void)state;
    struct opc_slbo_config config = small();
    config.buffer_size = 100;
    struct bench *b = open_bench("pendulum", &config, NULL);
    record(b, 400, 6);
    assert_int_equal(opc_slbo_first_step(slbo_of(b)), 300);
    improve(b);
    const float *oldest = opc_episodes_at(b->past, 1, 100).state;
    for (int i = 0; i < config.window * config.batch_size; i++)
        assert_true(slbo_of(b)->row[i] >= oldest);
    close_bench(b);
}

/* With any number of threads, and after everything was saved and loaded. */
static void results_depend_on_settings_and_seed_alone(void **state)
{
    (void)state;
    unsigned char *want = NULL;
    for (int threads = 1; threads <= 8; threads += threads < 3 ? 1 : 5) {
        struct opc_pool *pool = pool_of(threads);
        struct opc_slbo_config config = small();
        struct bench *b = open_bench("cartpole", &config, pool);
        record(b, 200, 7);
        improve(b);
        record(b, 200, 8);
        if (threads == 2) { /* as a resumed run */
            struct bench *other = open_bench("cartpole", &config, NULL);
            struct opc_err err = {0};
            unsigned char *saved = parts_copy(&b->parts);
            const unsigned char *from = saved;
            assert_ok(other->agent->type->state(other->agent, load_part, &from, &err), &err);
            record(other, 200, 7);
            record(other, 200, 8);
            other->feed.epoch = b->feed.epoch;
            improve(other);
            assert_parts_are(&other->parts, want);
            free(saved);
            close_bench(other);
        }
        improve(b);
        if (!want)
            want = parts_copy(&b->parts);
        assert_parts_are(&b->parts, want);
        close_bench(b);
        opc_pool_destroy(pool);
    }
    free(want);
}

/* Where a policy is loaded without its run it acts, and does not learn. */
static void a_policy_without_its_run_acts(void **state)
{
    (void)state;
    struct opc_slbo_config config = small();
    struct bench *b = open_bench("cartpole", &config, NULL);
    record(b, 200, 9);
    improve(b);
    struct opc_agent *alone;
    struct opc_err err = {0};
    const struct opc_agent_args args = {OPC_SIZED(struct opc_agent_args), .obs = 4, .act = 1,
                                        .seed = 1, .config = &config};
    assert_ok(opc_agent_create("slbo", &args, &alone, &err), &err);
    unsigned char *saved = parts_copy(&b->parts);
    const unsigned char *from = saved;
    assert_ok(alone->type->state(alone, load_part, &from, &err), &err);
    const float s[4] = {0.1f, -0.1f, 0.2f, 0.3f};
    float a, c;
    opc_agent_act(b->agent, 1, s, false, NULL, &a);
    opc_agent_act(alone, 1, s, false, NULL, &c);
    assert_true(a == c);
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    assert_fails(opc_agent_improve(alone, &b->feed, 0, &report, &err), OPC_EBUG, &err, "recording");
    free(saved);
    opc_agent_destroy(alone);
    close_bench(b);
}

static int create_with(const char *task, const struct opc_slbo_config *config, struct opc_err *err)
{
    struct opc_env *env = NULL;
    struct opc_episodes *past = NULL;
    struct opc_agent *agent;
    assert_ok(opc_env_open(task, &env, err), err);
    assert_ok(opc_episodes_create(env->obs, env->act, 1, 1, &past, err), err);
    const struct opc_agent_args args = {OPC_SIZED(struct opc_agent_args),
                                        .obs = env->obs,
                                        .act = env->act,
                                        .config = config,
                                        .env = env,
                                        .past = past};
    const int code = opc_agent_create("slbo", &args, &agent, err);
    if (!code)
        opc_agent_destroy(agent);
    opc_episodes_destroy(past);
    opc_env_close(env);
    return code;
}

/* No function of the observation says what it pays, as with the hopper. */
static int nowhere_open(const struct opc_env_type *type, const double *arg, struct opc_env **out,
                        struct opc_err *err)
{
    static const double low[1] = {-1}, high[1] = {1};
    (void)arg;
    struct opc_env *env = opc_alloc(1, sizeof *env);
    if (!env)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %s", type->name);
    *env = (struct opc_env){.obs = 1, .act = 1, .steps = 10, .low = low, .high = high};
    *out = env;
    return OPC_OK;
}

static int nowhere_reset(struct opc_env *env, struct opc_rng *rng, double *obs, struct opc_err *err)
{
    (void)env, (void)rng, (void)err;
    *obs = 0;
    return OPC_OK;
}

static int nowhere_step(struct opc_env *env, const double *action, struct opc_outcome *out,
                        struct opc_err *err)
{
    (void)env, (void)err;
    out->obs[0] = out->reward = *action;
    return OPC_OK;
}

static void nowhere_close(struct opc_env *env)
{
    opc_free(env);
}

static void nowhere_rest(struct opc_env *env)
{
    (void)env;
}

static const struct opc_env_page PAGE = {"none", "none", "none", "none", "never", "none"};

static void wrong_settings_are_refused(void **state)
{
    (void)state;
    struct opc_slbo_config config = small();
    struct opc_err err = {0};
    config.rollout_envs = 7;
    assert_fails(create_with("cartpole", &config, &err), OPC_EUSER, &err, "slbo.rollout_envs = 7");
    assert_mentions(&err, "slbo.rollout_steps = 120");
    config = small();
    config.value_batch_size = 121;
    assert_fails(create_with("cartpole", &config, &err), OPC_EUSER, &err,
                 "slbo.value_batch_size = 121");
    assert_string_equal(err.settings, "slbo.value_batch_size slbo.rollout_steps");
    static const char *const HIDDEN[] = {"slbo.model_hidden", "slbo.policy_hidden",
                                         "slbo.value_hidden"};
    for (int i = 0; i < 3; i++) {
        config = small();
        struct opc_ints *hidden[] = {&config.model_hidden, &config.policy_hidden,
                                     &config.value_hidden};
        *hidden[i] = (struct opc_ints){8, {2, 2, 2, 2, 2, 2, 2, 2}};
        assert_fails(create_with("cartpole", &config, &err), OPC_EUSER, &err, "8 hidden layers");
        assert_string_equal(err.settings, HIDDEN[i]);
        /* also where settings are only printed */
        assert_fails(opc_slbo_type.check(&config, 1, &err), OPC_EUSER, &err, HIDDEN[i]);
        hidden[i]->n = 7;
        assert_ok(opc_slbo_type.check(&config, 1, &err), &err);
        assert_ok(create_with("cartpole", &config, &err), &err);
    }

    static const struct opc_env_type unknown = {.name = "unknown_reward",
                                                .page = &PAGE,
                                                .open = nowhere_open,
                                                .reset = nowhere_reset,
                                                .step = nowhere_step,
                                                .close = nowhere_close};
    static const struct opc_env_plugin plugin = OPC_ENV_PLUGIN_OF(&unknown);
    assert_ok(opc_env_register(&plugin, &err), &err);
    config = small();
    assert_ok(create_with("unknown_reward", &config, &err), &err); /* learned */

    static const struct opc_env_type machine = {.name = "some_machine",
                                                .page = &PAGE,
                                                .open = nowhere_open,
                                                .reset = nowhere_reset,
                                                .step = nowhere_step,
                                                .close = nowhere_close,
                                                .rest = nowhere_rest,
                                                .machine = true};
    static const struct opc_env_plugin hardware = OPC_ENV_PLUGIN_OF(&machine);
    assert_ok(opc_env_register(&hardware, &err), &err);
    config = small();
    assert_fails(create_with("some_machine", &config, &err), OPC_EUSER, &err,
                 "slbo.start = buffer");
    config.start = OPC_SLBO_START_BUFFER;
    assert_ok(create_with("some_machine", &config, &err), &err);
}

static bool at_once(void *ctx)
{
    (void)ctx;
    return true;
}

static void it_can_be_stopped_and_says_when_it_diverged(void **state)
{
    (void)state;
    struct opc_slbo_config config = small();
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    struct opc_err err = {0};
    struct bench *b = open_bench("pendulum", &config, NULL);
    assert_fails(opc_agent_improve(b->agent, &b->feed, 0, &report, &err), OPC_EBUG, &err,
                 "recording");
    record(b, 300, 10);
    b->feed.stop = at_once;
    assert_fails(opc_agent_improve(b->agent, &b->feed, 0, &report, &err), OPC_ESTOPPED, &err,
                 "policy");
    b->feed.stop = NULL;
    slbo_of(b)->trpo->value->param[0] = NAN;
    assert_fails(opc_agent_improve(b->agent, &b->feed, 0, &report, &err), OPC_EDIVERGED, &err,
                 "slbo.value_learning_rate");
    slbo_of(b)->model->net->param[0] = NAN;
    assert_fails(opc_agent_improve(b->agent, &b->feed, 0, &report, &err), OPC_EDIVERGED, &err,
                 "slbo.learning_rate");
    close_bench(b);
}

static int create_any(void *ctx, struct opc_err *err)
{
    struct bench *b = ctx;
    struct opc_agent *agent;
    const struct opc_agent_args args = {OPC_SIZED(struct opc_agent_args),
                                        .obs = 4,
                                        .act = 1,
                                        .config = &b->config,
                                        .env = b->env,
                                        .past = b->past};
    const int code = opc_agent_create("slbo", &args, &agent, err);
    if (!code)
        opc_agent_destroy(agent);
    return code;
}

/* The same for an agent of many threads. */
struct counted {
    struct bench *bench;
    struct opc_pool *pool;
};

static struct opc_agent_args counted_args(const struct counted *c)
{
    return (struct opc_agent_args){OPC_SIZED(struct opc_agent_args),
                                   .obs = 4,
                                   .act = 1,
                                   .config = &c->bench->config,
                                   .pool = c->pool,
                                   .env = c->bench->env,
                                   .past = c->bench->past};
}

static int create_counted(void *ctx, struct opc_err *err)
{
    const struct opc_agent_args args = counted_args(ctx);
    struct opc_agent *agent;
    const int code = opc_agent_create("slbo", &args, &agent, err);
    if (!code)
        opc_agent_destroy(agent);
    return code;
}

static void lack_of_memory_is_an_error(void **state)
{
    (void)state;
    struct opc_slbo_config config = small();
    struct bench *b = open_bench("cartpole", &config, NULL);
    assert_survives_lack_of_memory(create_any, b);
    close_bench(b);
}

/* No less than what is taken, and not much more, whatever it is taken for. */
static void the_estimate_of_memory_covers_what_is_taken(void **state)
{
    (void)state;
    struct opc_slbo_config config;
    struct opc_err err = {0};
    assert_ok(opc_section_defaults(&opc_slbo_section, &config, &err), &err);
    for (int threads = 1; threads <= 8; threads += 7)
        for (int which = 0; which < 7; which++) {
            struct opc_pool *pool = pool_of(threads);
            struct bench *b = open_bench("cartpole", &config, pool);
            b->config.rollout_envs = which == 1 ? 4000 : 8;
            b->config.batch_size = which == 2 ? 6000 : 128;
            b->config.value_batch_size = which == 3 ? 4000 : 64;
            if (which == 4)
                b->config.policy_hidden = (struct opc_ints){3, {300, 20, 500}};
            if (which == 5)
                b->config.value_hidden = (struct opc_ints){2, {900, 800}};
            if (which == 6)
                b->config.model_hidden = (struct opc_ints){2, {900, 800}};
            b->config.start = OPC_SLBO_START_BUFFER; /* without an environment of its own */
            struct counted c = {b, pool};
            const struct opc_agent_args args = counted_args(&c);
            const double need = (double)opc_slbo_type.need(&args),
                         taken = test_bytes_taken(create_counted, &c);
            assert_true(need >= taken && need < 1.1 * taken);
            close_bench(b);
            opc_pool_destroy(pool);
        }
    /* The published settings take some megabytes. */
    const struct opc_agent_args args = {OPC_SIZED(struct opc_agent_args), .obs = 17, .act = 6,
                                        .config = &config};
    assert_true(opc_slbo_type.need(&args) > 5000000 && opc_slbo_type.need(&args) < 50000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        once(noise_is_an_ornstein_uhlenbeck_process),
        once(only_real_steps_of_training_are_noisy),
        once(statistics_are_those_of_the_recording),
        once(imagined_trajectories_are_the_models),
        once(rewards_are_given_or_learned),
        once(a_failed_line_search_is_counted),
        once(the_model_is_trained_on_the_newest_steps),
        once(results_depend_on_settings_and_seed_alone),
        once(a_policy_without_its_run_acts),
        once(wrong_settings_are_refused),
        once(it_can_be_stopped_and_says_when_it_diverged),
        once(lack_of_memory_is_an_error),
        once(the_estimate_of_memory_covers_what_is_taken),
    };
    return run_num_tests(tests);
}
