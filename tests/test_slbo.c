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

/* Where step t of part e of the batch is: the state, not normalised, and the one after it. */
static void state_of(struct bench *b, int e, int t, float *s, float *after)
{
    const struct slbo *slbo = slbo_of(b);
    const struct opc_multistep_scales scales = opc_multistep_scales(slbo->model);
    const int obs = b->env->obs, length = slbo->trpo->options.length;
    for (int k = 0; k < obs; k++) {
        const float *x = slbo->trpo->state + (e * (length + 1) + t) * obs + k;
        s[k] = x[0] / scales.inverse[k] + scales.mean[k];
        after[k] = x[obs] / scales.inverse[k] + scales.mean[k];
    }
}

/* From the policy with its whole deviation, each trajectory from its own stream; and each step has
 * the reward that the task gives it. */
static void imagined_actions_are_drawn_and_rewarded_by_the_task(void **state)
{
    (void)state;
    struct opc_slbo_config config = small();
    struct bench *b = open_bench("double_integrator", &config, NULL);
    struct slbo *slbo = slbo_of(b);
    struct slbo_imagined got;
    struct opc_err err = {0};
    record(b, 300, 3);
    improve(b);
    slbo->trpo->log_std[0] = 0.5f;
    /* a model that moves */
    struct opc_rng any = test_stream(1);
    struct opc_mlp *net = slbo->model->net;
    for (size_t i = 0; i < plain_count(&net->shape); i++)
        net->param[plain_place(net, i)] = 0.4f * any_float(&any);
    slbo->rollouts.starts = 0; /* as in a new epoch */
    assert_ok(opc_slbo_imagine(slbo, &b->feed, &got, &err), &err);
    const struct opc_multistep_scales scales = opc_multistep_scales(slbo->model);
    const int length = slbo->trpo->options.length;
    double squares = 0, rewards = 0, lowest = 0, highest = -100;
    for (int e = 0; e < 4; e++) {
        struct opc_rng r = opc_rng_stream(3, OPC_USE_ROLLOUT, b->feed.epoch, (uint32_t)e);
        for (int t = 0; t < length; t++) {
            const int i = e * length + t;
            const float a = slbo->trpo->action[i], clipped = fminf(fmaxf(a, -1), 1);
            float s[2], after[2], next[2], drawn, mean, reward;
            state_of(b, e, t, s, after);
            opc_trpo_act(slbo->trpo, scales.mean, scales.inverse, 1, s, 1, &r, &drawn);
            opc_trpo_act(slbo->trpo, scales.mean, scales.inverse, 1, s, 1, NULL, &mean);
            assert_near((double)a, (double)drawn, 1e-4);
            squares += pow((double)(a - mean) / exp(0.5), 2) / (4 * length);
            opc_multistep_predict(slbo->model, 1, s, &clipped, next, NULL);
            assert_floats_near(next, after, 2, 1e-4);
            assert_true(opc_env_reward(b->env, 1, s, &clipped, next, &reward));
            assert_near(slbo->trpo->reward[i], (double)reward, 1e-4);
            rewards += slbo->trpo->reward[i];
            lowest = fmin(lowest, slbo->trpo->reward[i]);
            highest = fmax(highest, slbo->trpo->reward[i]);
        }
    }
    assert_true(highest - lowest > 0.1);
    assert_near(squares, 1, 4 * sqrt(2.0 / (4 * length)));
    assert_near(got.rewards, rewards, 1e-6);
    assert_int_equal(got.trajectories, 4);
    close_bench(b);
}

/* Whether this is a state that was recorded in step `first` or later. */
static bool is_recorded(struct bench *b, int first, const float *s)
{
    for (int i = first; i < opc_episodes_steps(b->past); i++) {
        int e, t;
        opc_episodes_find(b->past, i, &e, &t);
        const float *row = opc_episodes_at(b->past, e, t).state;
        float gap = 0;
        for (int k = 0; k < b->env->obs; k++)
            gap = fmaxf(gap, fabsf(row[k] - s[k]));
        if (gap < 1e-5f)
            return true;
    }
    return false;
}

/* Each in a state of its own: what the task's reset gives to the trajectory's stream, or one that
 * was recorded, of those that are still in the buffer. */
static void imagined_trajectories_start_in_states_of_their_own(void **state)
{
    (void)state;
    for (int which = 0; which < 2; which++) {
        struct opc_slbo_config config = small();
        config.start = which ? OPC_SLBO_START_BUFFER : OPC_SLBO_START_RESET;
        config.buffer_size = 150;
        struct bench *b = open_bench("cartpole", &config, NULL);
        struct slbo *slbo = slbo_of(b);
        struct slbo_imagined got;
        struct opc_err err = {0};
        record(b, 300, 3);
        improve(b);
        slbo->rollouts.starts = 0;
        float start[8][4];
        for (int round = 0; round < 2; round++) { /* two updates of an epoch: eight trajectories */
            assert_ok(opc_slbo_imagine(slbo, &b->feed, &got, &err), &err);
            for (int e = 0; e < 4; e++) {
                float after[4];
                state_of(b, e, 0, start[4 * round + e], after);
            }
            slbo->rollouts.starts = 4;
        }
        int same = 0;
        for (uint32_t i = 0; i < 8; i++) {
            for (uint32_t k = 0; k < i; k++)
                same += fabsf(start[i][0] - start[k][0]) < 1e-6f;
            if (which) {
                assert_true(is_recorded(b, 150, start[i]));
                continue;
            }
            struct opc_rng r = opc_rng_stream(3, OPC_USE_START, b->feed.epoch, i);
            double want[4];
            assert_ok(opc_env_reset(b->env, &r, want, &err), &err);
            for (int k = 0; k < 4; k++)
                assert_near((double)start[i][k], want[k], 1e-6);
        }
        assert_true(same <= which); /* 8 of 150 may meet */
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

static void imagined_rewards_must_be_finite(void **state)
{
    (void)state;
    struct opc_slbo_config config = small();
    struct bench *b = open_with_reward("pendulum", &config, NULL, false);
    struct slbo_imagined got;
    struct opc_err err = {0};
    record(b, 300, 4);
    improve(b);
    assert_ok(opc_slbo_imagine(slbo_of(b), &b->feed, &got, &err), &err);
    const struct opc_mlp *net = slbo_of(b)->model->net;
    net->param[net->layer[net->shape.layers - 1].bias + 3] = NAN; /* the reward's */
    assert_fails(opc_slbo_imagine(slbo_of(b), &b->feed, &got, &err), OPC_EDIVERGED, &err,
                 "rewards of epoch 2");
    assert_mentions(&err, "slbo.learning_rate");
    close_bench(b);
}

/* The policy that one improvement in this epoch makes of a new one. */
static size_t improved_with(double ent_coef, int ent_epochs, uint32_t epoch, unsigned char *policy)
{
    struct opc_slbo_config config = small();
    config.ent_coef = ent_coef;
    config.ent_epochs = ent_epochs;
    struct bench *b = open_bench("pendulum", &config, NULL);
    record(b, 300, 5);
    b->feed.epoch = epoch;
    improve(b);
    const size_t bytes = slbo_of(b)->trpo->policy->each * sizeof(float);
    assert_true(bytes <= 1024);
    memcpy(policy, part_of(&b->parts, "slbo.policy"), bytes);
    close_bench(b);
    return bytes;
}

static void the_entropy_counts_up_to_its_last_epoch(void **state)
{
    (void)state;
    unsigned char without[1024], with[1024], never[1024];
    for (uint32_t epoch = 1; epoch <= 4; epoch++) {
        const size_t bytes = improved_with(0, 3, epoch, without);
        improved_with(3, 3, epoch, with);
        improved_with(3, 0, epoch, never);
        assert_same_bits(without, never, bytes);
        assert_int_equal(memcmp(without, with, bytes) == 0, epoch > 3);
    }
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

/* The number of the recorded step that a row of a window is. */
static int step_of(struct bench *b, const float *row)
{
    for (int i = 0; i < opc_episodes_steps(b->past); i++) {
        int e, t;
        opc_episodes_find(b->past, i, &e, &t);
        if (opc_episodes_at(b->past, e, t).state == row)
            return i;
    }
    fail_msg("a window has a row that was not recorded");
    return -1;
}

/* A window's rows follow each other, the oldest in the buffer after the newest. It is cut after the
 * last step of an episode and nowhere else, so none goes on into the next one. */
static void windows_are_consecutive_and_end_with_their_episode(void **state)
{
    (void)state;
    struct opc_slbo_config config = small();
    config.window = 3;
    config.batch_size = 200;
    config.buffer_size = 150;
    struct bench *b = open_bench("cartpole", &config, NULL);
    record(b, 400, 6);
    improve(b);
    const struct slbo *slbo = slbo_of(b);
    int cuts = 0, wraps = 0, starts[400] = {0}, different = 0;
    for (int n = 0; n < 200; n++) {
        int step[3];
        for (int i = 0; i < 3; i++) {
            int e, t;
            step[i] = step_of(b, slbo->row[i * 200 + n]);
            opc_episodes_find(b->past, step[i], &e, &t);
            const bool last = t + 1 == opc_episodes_length(b->past, e);
            assert_int_equal(slbo->cut[i * 200 + n], last);
            cuts += last && i < 2;
            if (i == 0)
                different += starts[step[0]]++ == 0;
            else
                assert_int_equal(step[i], step[i - 1] + 1 < 400 ? step[i - 1] + 1 : 250);
            wraps += i > 0 && step[i] == 250;
            /* the next row begins where this one ended, unless it was cut */
            if (i > 0 && !slbo->cut[(i - 1) * 200 + n])
                assert_same_bits(slbo->row[i * 200 + n],
                                 slbo->row[(i - 1) * 200 + n] + b->env->obs + b->env->act + 2,
                                 (size_t)b->env->obs * sizeof(float));
        }
    }
    assert_true(cuts > 5 && wraps > 0 && different > 90);
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

/* Plays an episode, drawing actions or not, and returns its rewards. It is recorded if it is drawn.
 */
static double play_episode(struct bench *b, uint32_t number, bool draw)
{
    double obs[2], sum = 0, action;
    float a;
    struct opc_err err = {0};
    struct opc_outcome out = {.obs = obs};
    struct opc_rng r = opc_rng_stream(3, OPC_USE_RESET, draw, number);
    assert_ok(opc_env_reset(b->env, &r, obs, &err), &err);
    if (draw)
        assert_ok(opc_episodes_begin(b->past, obs, &err), &err);
    for (uint32_t t = 0;; t++) {
        const float s[2] = {(float)obs[0], (float)obs[1]};
        r = opc_rng_stream(3, OPC_USE_EXPLORE, 0, 60 * number + t);
        opc_agent_act(b->agent, 1, s, draw, &r, &a);
        const float clipped = fminf(fmaxf(a, -1), 1);
        opc_env_scale(b->env, &clipped, &action);
        assert_ok(opc_env_step(b->env, &action, &out, &err), &err);
        sum += out.reward;
        if (draw)
            assert_ok(opc_episodes_append(b->past, &a, out.reward, obs, false, &err), &err);
        if (out.terminated || out.truncated)
            break;
    }
    if (draw)
        opc_episodes_close(b->past);
    return sum;
}

/* A mass that starts at 1 and should go to 0: without force it stays, and an episode costs 60; the
 * best controller pays about 7. Real episodes, model and TRPO together. Of eight seeds none ended
 * below -11. */
static void it_learns_to_stop_a_mass(void **state)
{
    (void)state;
    struct opc_slbo_config config = small();
    config.model_hidden = (struct opc_ints){2, {32, 32}};
    config.policy_hidden = config.value_hidden = (struct opc_ints){1, {16}};
    config.iterations = 4;
    config.model_updates = 200;
    config.learning_rate = 3e-3;
    config.policy_updates = 16;
    config.batch_size = 64;
    config.start = OPC_SLBO_START_BUFFER;
    config.clip_normalized = 6;
    config.rollout_envs = 40;
    config.rollout_steps = 40 * 30;
    config.discount = 0.95;
    config.value_batch_size = 60;
    config.value_learning_rate = 1e-2;
    config.max_kl = 0.03;
    struct bench *b = open_bench("double_integrator", &config, NULL);
    const double before = play_episode(b, 1000, false);
    double after = 0;
    for (uint32_t epoch = 0; epoch < 5; epoch++) {
        for (uint32_t i = 0; i < 5; i++)
            play_episode(b, 5 * epoch + i, true);
        improve(b);
    }
    for (uint32_t i = 0; i < 10; i++)
        after += play_episode(b, 2000 + i, false) / 10;
    print_message("return %.1f before, %.1f after 1,500 steps\n", before, after);
    assert_true(before < -40 && after > -16);
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

/* As a task of one's own may be: it takes every action for what it is. */
static void pays_for_action(const struct opc_env *env, int n, const float *s, const float *a,
                            const float *next, float *out)
{
    (void)env, (void)s, (void)next;
    for (int i = 0; i < n; i++)
        out[i] = 3 * a[i];
}

/* The task never pays for an action beyond its range, so an imagined one does not, either. */
static void a_given_reward_sees_clipped_actions(void **state)
{
    (void)state;
    static const struct opc_env_type paid = {.name = "paid_by_action",
                                             .page = &PAGE,
                                             .open = nowhere_open,
                                             .reset = nowhere_reset,
                                             .step = nowhere_step,
                                             .close = nowhere_close,
                                             .reward = pays_for_action};
    static const struct opc_env_plugin plugin = OPC_ENV_PLUGIN_OF(&paid);
    struct opc_slbo_config config = small();
    struct opc_err err = {0};
    struct slbo_imagined got;
    int outside = 0;
    assert_ok(opc_env_register(&plugin, &err), &err);
    struct bench *b = open_bench("paid_by_action", &config, NULL);
    record(b, 100, 3);
    improve(b);
    assert_ok(opc_slbo_imagine(slbo_of(b), &b->feed, &got, &err), &err);
    for (int i = 0; i < config.rollout_steps; i++) {
        const float a = slbo_of(b)->trpo->action[i];
        assert_near(slbo_of(b)->trpo->reward[i], 3 * (double)fminf(fmaxf(a, -1), 1), 1e-6);
        outside += fabsf(a) > 1;
    }
    assert_true(outside > 10);
    close_bench(b);
}

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
        once(imagined_actions_are_drawn_and_rewarded_by_the_task),
        once(imagined_trajectories_start_in_states_of_their_own),
        once(rewards_are_given_or_learned),
        once(imagined_rewards_must_be_finite),
        once(the_entropy_counts_up_to_its_last_epoch),
        once(a_failed_line_search_is_counted),
        once(the_model_is_trained_on_the_newest_steps),
        once(windows_are_consecutive_and_end_with_their_episode),
        once(results_depend_on_settings_and_seed_alone),
        once(a_policy_without_its_run_acts),
        once(it_learns_to_stop_a_mass),
        once(a_given_reward_sees_clipped_actions),
        once(wrong_settings_are_refused),
        once(it_can_be_stopped_and_says_when_it_diverged),
        once(lack_of_memory_is_an_error),
        once(the_estimate_of_memory_covers_what_is_taken),
    };
    return run_num_tests(tests);
}
