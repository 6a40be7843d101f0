/* SPDX-License-Identifier: MIT */
/* PETS with models that are known: what a plan is worth, which member moves a particle, where
 * rewards end, what is remembered between steps, which recording eq. 5 walks along, and how near
 * the planner comes to the best controller of a linear system. */
#include "agent/pets.h"

#include "base/pool.h"
#include "model/linear.h"
#include "opc/env.h"
#include "test.h"
#include "transitions.h"

/* ---- a model that is a function ---------------------------------------------------------------
 */

typedef void step_fn(const float *s, const float *a, int elite, struct opc_rng *rng, float *y);
struct fake {
    struct opc_predictor base;
    step_fn *step;
};

struct fake_rows {
    const struct fake *fake;
    const float *s, *a;
    const int *elite;
    struct opc_rng *rng;
    float *y;
};

static void fake_rows(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct fake_rows *r = ctx;
    const int obs = r->fake->base.obs, act = r->fake->base.act;
    for (int i = first; i < end; i++)
        r->fake->step(r->s + i * obs, r->a + i * act, r->elite[i], r->rng ? &r->rng[i] : NULL,
                      r->y + i * (obs + 1));
}

static void fake_predict(const struct opc_predictor *p, int n, const float *s, const float *a,
                         const int *elite, struct opc_rng *rng, float *y, struct opc_pool *pool)
{
    struct fake_rows rows = {(const struct fake *)p, s, a, elite, rng, y};
    opc_pool_each(pool, n, 16, fake_rows, &rows);
}

static const struct opc_predictor_type FAKE = {.name = "fake", .predict = fake_predict};

static struct fake fake_of(int obs, int elites, step_fn *step)
{
    return (struct fake){{.type = &FAKE, .obs = obs, .act = 1, .members = elites, .elites = elites},
                         step};
}

/* ---- an agent ----------------------------------------------------------------------------------
 */

struct setup {
    struct opc_pets_config config;
    struct opc_agent_args args;
};

static struct setup setup_of(struct opc_predictor *model)
{
    struct setup s;
    struct opc_err err = {0};
    assert_ok(opc_section_defaults(&opc_pets_section, &s.config, &err), &err);
    s.config.horizon = 6;
    s.config.population = 40;
    s.config.elites = 8;
    s.config.iterations = 3;
    s.config.particles = 20;
    s.args = (struct opc_agent_args){OPC_SIZED(struct opc_agent_args), .obs = model->obs,
                                     .act = model->act, .seed = 4, .model = model};
    return s;
}

static struct opc_agent *agent_of(struct setup *s)
{
    struct opc_err err = {0};
    struct opc_agent *agent = NULL;
    s->args.config = &s->config;
    assert_ok(opc_agent_create("pets", &s->args, &agent, &err), &err);
    return agent;
}

static struct opc_episode_state *memory_of(const struct opc_agent *agent)
{
    struct opc_err err = {0};
    struct opc_episode_state *memory = NULL;
    assert_ok(opc_episode_state_create(agent, &memory, &err), &err);
    return memory;
}

/* One plan of a real step from state s; what it reports. */
static struct opc_agent_report plan_from(struct opc_agent *agent, const float *s, float *action)
{
    struct opc_rng rng = opc_rng_stream(9, OPC_USE_EXPLORE, 0, 3);
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    const struct opc_feed feed = {OPC_SIZED(struct opc_feed)};
    struct opc_err err = {0};
    float own[4];
    opc_agent_act(agent, 1, s, true, &rng, action ? action : own);
    assert_ok(opc_agent_improve(agent, &feed, 0, &report, &err), &err);
    assert_int_equal(report.updates, 1);
    return report;
}

/* What a plan from state (0, ...) is worth with this model and these settings. */
static double worth_of(struct setup *s)
{
    const float zero[8] = {0};
    struct opc_agent *agent = agent_of(s);
    const struct opc_agent_report report = plan_from(agent, zero, NULL);
    opc_agent_destroy(agent);
    return report.value[OPC_PETS_RETURN];
}

/* ---- particles ---------------------------------------------------------------------------------
 */

/* Member k moves the state by k - 2; the reward is the square of the state before the step. */
static void offset_step(const float *s, const float *a, int elite, struct opc_rng *rng, float *y)
{
    (void)a, (void)rng;
    y[0] = s[0] + (float)(elite - 2);
    y[1] = s[0] * s[0];
}

/* By TSinf a particle is at h (k - 2) after h steps, so its mean square is 2 h^2 exactly. By TS1
 * the members of different steps have nothing to do with each other, and it is near 2 h. */
static void particles_keep_their_member_or_get_another_at_each_step(void **state)
{
    (void)state;
    struct fake model = fake_of(1, 5, offset_step);
    struct setup s = setup_of(&model.base);
    double want[2] = {0};
    s.config.population = 400;
    for (int h = 0; h < s.config.horizon; h++) {
        want[0] += 2 * h * h;
        want[1] += 2 * h;
    }
    assert_true(fabs(worth_of(&s) - want[0]) < 1e-9);
    /* Of 400 candidates the best of chance count as elites; all of them as elites are fair. */
    s.config.elites = 400;
    s.config.iterations = 1;
    s.config.propagation = OPC_PETS_TS1;
    assert_true(fabs(worth_of(&s) / want[1] - 1) < 0.05);
    s.config.propagation = OPC_PETS_TS1_BATCH;
    assert_true(fabs(worth_of(&s) / want[1] - 1) < 0.05);
}

/* The reward is the member's number: its mean over particles says whether each had its share. */
static void member_step(const float *s, const float *a, int elite, struct opc_rng *rng, float *y)
{
    (void)a, (void)rng;
    y[0] = s[0];
    y[1] = (float)elite;
}

static void every_member_moves_its_share_of_particles(void **state)
{
    (void)state;
    struct fake model = fake_of(1, 5, member_step);
    struct setup s = setup_of(&model.base);
    for (s.config.propagation = OPC_PETS_TSINF; s.config.propagation <= OPC_PETS_TS1;
         s.config.propagation++)
        assert_true(fabs(worth_of(&s) - 2 * s.config.horizon) < 1e-9);
    /* Among all candidates only the sum over them is fixed. */
    s.config.propagation = OPC_PETS_TS1_BATCH;
    s.config.elites = s.config.population;
    s.config.iterations = 1;
    assert_true(fabs(worth_of(&s) - 2 * s.config.horizon) < 1e-9);
}

/* ---- rewards -----------------------------------------------------------------------------------
 */

/* Reward 1; the pole falls over in the third step, after which nothing makes sense any more. */
static void falling_step(const float *s, const float *a, int elite, struct opc_rng *rng, float *y)
{
    (void)a, (void)elite, (void)rng;
    for (int k = 0; k < 4; k++)
        y[k] = s[k];
    y[3] = s[3] + 1;
    y[1] = y[3] > 2.5f ? 9 : 0; /* the angle */
    y[4] = s[1] > 1 ? NAN : 1;
}

static void rewards_end_with_the_step_into_a_terminal_state(void **state)
{
    (void)state;
    struct fake model = fake_of(4, 5, falling_step);
    struct setup s = setup_of(&model.base);
    struct opc_env *env;
    struct opc_err err = {0};
    const float zero[4] = {0};
    assert_ok(opc_env_open("cartpole", &env, &err), &err);
    s.args.env = env;
    struct opc_agent *agent = agent_of(&s);
    struct opc_agent_report report = plan_from(agent, zero, NULL);
    assert_true(report.value[OPC_PETS_RETURN] == 3);
    assert_true(report.value[OPC_PETS_NOT_FINITE] == 0);
    opc_agent_destroy(agent);
    /* Without the task nothing is terminal, and all candidates are not finite. */
    s.args.env = NULL;
    agent = agent_of(&s);
    float action = 5;
    report = plan_from(agent, zero, &action);
    assert_true(report.value[OPC_PETS_NOT_FINITE] ==
                s.config.population * report.value[OPC_PETS_ITERATIONS]);
    assert_true(fabsf(action) <= 1);
    opc_agent_destroy(agent);
    opc_env_close(env);
}

/* Actions above 0 lead to NaN in state or reward; otherwise more is better. */
static void nan_step(const float *s, const float *a, int elite, struct opc_rng *rng, float *y)
{
    (void)rng;
    y[0] = s[0];
    y[1] = a[0] > 0 && elite == 3 ? NAN : a[0];
}

static void candidates_that_are_not_finite_lose_and_are_counted(void **state)
{
    (void)state;
    struct fake model = fake_of(1, 5, nan_step);
    struct setup s = setup_of(&model.base);
    const float zero = 0;
    float action;
    s.config.horizon = 1;
    s.config.population = 200;
    struct opc_agent *agent = agent_of(&s);
    const struct opc_agent_report report = plan_from(agent, &zero, &action);
    assert_true(report.value[OPC_PETS_NOT_FINITE] > 50);
    assert_true(action > -0.2f && action < 0.05f);
    assert_true(isfinite(report.value[OPC_PETS_RETURN]));
    opc_agent_destroy(agent);
}

/* Each step costs 1, a little less with larger actions; those above 0 lose the state. */
static void lost_step(const float *s, const float *a, int elite, struct opc_rng *rng, float *y)
{
    (void)rng;
    for (int k = 0; k < 4; k++)
        y[k] = s[k];
    if (a[0] > 0 && elite == 3)
        y[2] = NAN;
    y[4] = -1 + 0.01f * a[0];
}

/* The rule says that NaN is terminal, so a candidate that loses the state would cost no more. Its
 * last step may be the one that does. */
static void a_lost_state_is_no_way_to_end_the_costs(void **state)
{
    (void)state;
    static const int HORIZON[] = {1, 4};
    struct fake model = fake_of(4, 5, lost_step);
    struct setup s = setup_of(&model.base);
    struct opc_env *env;
    struct opc_err err = {0};
    const float zero[4] = {0};
    assert_ok(opc_env_open("cartpole", &env, &err), &err);
    s.args.env = env;
    s.config.population = 1000;
    for (int i = 0; i < 2; i++) {
        const int H = s.config.horizon = HORIZON[i];
        float action;
        struct opc_agent *agent = agent_of(&s);
        const struct opc_agent_report report = plan_from(agent, zero, &action);
        assert_true(report.value[OPC_PETS_NOT_FINITE] > 100);
        assert_true(fabs(report.value[OPC_PETS_RETURN] / -H - 1) < 0.02);
        assert_true(action > -0.6f && action < 0.05f);
        opc_agent_destroy(agent);
    }
    opc_env_close(env);
}

/* ---- what is remembered ------------------------------------------------------------------------
 */

/* So near to 1, but not 1, which is refused: a plan stays what it started from. */
static const double KEEP = 1 - 1e-12;

/* With alpha next to 1 a plan stays what it started from, so the shift can be seen. */
static void plan_moves_on_by_one_step_and_begins_in_the_middle(void **state)
{
    (void)state;
    struct fake model = fake_of(1, 5, member_step);
    struct setup s = setup_of(&model.base);
    const float zero = 0;
    float action;
    s.config.horizon = 4;
    s.config.alpha = KEEP;
    struct opc_agent *agent = agent_of(&s);
    struct opc_episode_state *memory = memory_of(agent);
    assert_int_equal(memory->count, 4);
    for (int k = 0; k < 4; k++)
        memory->number[k] = 0.1 * (k + 1);
    for (int t = 0; t < 3; t++) {
        opc_agent_act_in(agent, memory, &zero, false, NULL, &action);
        assert_true(fabs((double)action - 0.1 * (t + 1)) < 1e-6);
        for (int k = 0; k < 4; k++) {
            const double want = k + t + 1 < 4 ? 0.1 * (k + t + 2) : 0;
            assert_true(fabs(memory->number[k] - want) < 1e-9);
        }
        assert_true(memory->number[3] == 0);
    }
    assert_int_equal(memory->steps, 3);
    memory->number[0] = 0.5;
    opc_episode_state_begin(memory, 1, 2, 3);
    assert_int_equal(memory->steps, 0);
    opc_agent_act_in(agent, memory, &zero, false, NULL, &action);
    assert_true(fabsf(action) < 1e-6f);
    opc_episode_state_destroy(memory);
    opc_agent_destroy(agent);
}

/* ---- feedback ----------------------------------------------------------------------------------
 */

static void scale_of_states(const struct opc_predictor *p, float *mean, float *inverse)
{
    (void)p;
    mean[0] = 1;
    inverse[0] = 4; /* the deviation is a quarter */
}

/* With alpha next to 1 a plan stays what it started from: actions 0.1 to 0.4, then the gain 0.25 in
 * units of pets.feedback. Actions move on, the gain stays. */
static void feedback_adds_gains_times_the_scaled_state(void **state)
{
    (void)state;
    static const struct opc_predictor_type SCALED = {
        .name = "fake", .predict = fake_predict, .scale = scale_of_states};
    struct fake model = fake_of(1, 5, member_step);
    struct setup s = setup_of(&model.base);
    const float at[] = {1.125f, 1.125f, 9, -9};
    float action;
    s.config.horizon = 4;
    s.config.alpha = KEEP;
    s.config.feedback = 2;
    for (int scaled = 0; scaled < 2; scaled++) {
        model.base.type = scaled ? &SCALED : &FAKE;
        struct opc_agent *agent = agent_of(&s);
        struct opc_episode_state *memory = memory_of(agent);
        assert_int_equal(memory->count, 5);
        for (int k = 0; k < 4; k++)
            memory->number[k] = 0.1 * (k + 1);
        memory->number[4] = 0.25;
        for (int t = 0; t < 4; t++) {
            const double z = scaled ? ((double)at[t] - 1) * 4 : (double)at[t];
            const double sum = 0.1 * (t + 1) + 2 * 0.25 * z;
            opc_agent_act_in(agent, memory, &at[t], false, NULL, &action);
            assert_true(fabs((double)action - fmin(fmax(sum, -1), 1)) < 1e-6);
            assert_true(fabs(memory->number[4] - 0.25) < 1e-9 && memory->number[3] == 0);
        }
        opc_episode_state_destroy(memory);
        opc_agent_destroy(agent);
    }
}

/* The larger the action, the better. */
static void upward_step(const float *s, const float *a, int elite, struct opc_rng *rng, float *y)
{
    (void)elite, (void)rng;
    y[0] = s[0];
    y[1] = a[0];
}

/* In one iteration a plan does not get beyond two deviations, which are shares of the range 2. With
 * none the actions stay at 0. */
static void deviation_is_that_of_the_first_draws(void **state)
{
    (void)state;
    static const double DEVIATION[] = {0, 0.01, 0.1, 0.25};
    struct fake model = fake_of(1, 5, upward_step);
    struct setup s = setup_of(&model.base);
    const float zero = 0;
    float action;
    s.config.horizon = s.config.iterations = 1;
    s.config.min_variance = 0;
    s.config.feedback = 1; /* it is nothing in state 0, and a plan without deviation needs it */
    for (int i = 0; i < 4; i++) {
        s.config.deviation = DEVIATION[i];
        struct opc_agent *agent = agent_of(&s);
        plan_from(agent, &zero, &action);
        const double deviations = i > 0 ? (double)action / (2 * DEVIATION[i]) : 1;
        assert_true(deviations > 0.7 && deviations < 2);
        assert_true(i > 0 || action == 0);
        opc_agent_destroy(agent);
    }
}

/* The cart and pole as it is. */
static struct opc_env *true_task;
static void true_step(const float *s, const float *a, int elite, struct opc_rng *rng, float *y)
{
    (void)elite, (void)rng;
    struct opc_err err = {0};
    double obs[4];
    const double at[4] = {(double)s[0], (double)s[1], (double)s[2], (double)s[3]};
    const double action = (double)a[0];
    struct opc_outcome out = {.obs = obs};
    assert_ok(opc_env_start(true_task, at, obs, &err), &err);
    assert_ok(opc_env_step(true_task, &action, &out, &err), &err);
    for (int k = 0; k < 4; k++)
        y[k] = (float)obs[k];
    y[4] = 1;
}

/* The mean return of the plans of the first `steps` real steps, from rest. */
static double plans_of_an_episode(struct setup *s, struct opc_env *env, int steps)
{
    struct opc_err err = {0};
    struct opc_agent *agent = agent_of(s);
    struct opc_episode_state *memory = memory_of(agent);
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    const struct opc_feed feed = {OPC_SIZED(struct opc_feed)};
    const double start[4] = {0.02, 0.02, 0, 0};
    double obs[4];
    assert_ok(opc_env_start(env, start, obs, &err), &err);
    for (int t = 0; t < steps; t++) {
        struct opc_rng rng = opc_rng_stream(3, OPC_USE_EXPLORE, 0, (uint32_t)t);
        const float x[4] = {(float)obs[0], (float)obs[1], (float)obs[2], (float)obs[3]};
        float a;
        opc_agent_act_in(agent, memory, x, true, &rng, &a);
        const double action = (double)a;
        struct opc_outcome out = {.obs = obs};
        assert_ok(opc_env_step(env, &action, &out, &err), &err);
    }
    assert_ok(opc_agent_improve(agent, &feed, 0, &report, &err), &err);
    opc_episode_state_destroy(memory);
    opc_agent_destroy(agent);
    return report.value[OPC_PETS_RETURN];
}

/* Actions alone are an open loop: of 100 steps, with the true model, most plans see the pole fall.
 * Those with feedback keep it up. */
static void feedback_keeps_long_plans_of_an_unstable_system_alive(void **state)
{
    (void)state;
    struct opc_env *env;
    struct opc_err err = {0};
    assert_ok(opc_env_open("cartpole", &env, &err), &err);
    assert_ok(opc_env_open("cartpole", &true_task, &err), &err);
    struct fake model = fake_of(4, 1, true_step);
    struct setup s = setup_of(&model.base);
    s.args.env = env;
    s.config.horizon = 100;
    s.config.population = 40;
    s.config.iterations = 2;
    s.config.particles = 1;
    s.config.min_variance = 0;
    const double without = plans_of_an_episode(&s, env, 15);
    s.config.feedback = 5;
    const double with = plans_of_an_episode(&s, env, 15);
    print_message("plans of 100 steps survive %.1f steps without feedback, %.1f with it\n", without,
                  with);
    assert_true(without < 70 && with > 95);
    opc_env_close(true_task);
    opc_env_close(env);
}

/* A model with noise, whose best action follows the state. */
static void noisy_step(const float *s, const float *a, int elite, struct opc_rng *rng, float *y)
{
    y[0] = 0.9f * s[0] + 0.3f * a[0] + 0.01f * (float)elite;
    y[0] += rng ? 0.1f * (opc_rng_unit(rng) - 0.5f) : 0;
    y[1] = -(s[0] * s[0]) - 0.01f * a[0] * a[0];
}

/* Five actions of an episode, by this many threads. */
static void act_five_times(struct setup *s, int threads, uint32_t episode, float action[5])
{
    struct opc_err err = {0};
    assert_ok(opc_pool_create(threads, &s->args.pool, &err), &err);
    struct opc_agent *agent = agent_of(s);
    struct opc_episode_state *memory = memory_of(agent);
    float x = 1;
    opc_episode_state_begin(memory, 11, 1, episode);
    for (int t = 0; t < 5; t++) {
        opc_agent_act_in(agent, memory, &x, false, NULL, &action[t]);
        x = 0.9f * x + 0.3f * action[t];
    }
    opc_episode_state_destroy(memory);
    opc_agent_destroy(agent);
    opc_pool_destroy(s->args.pool);
    s->args.pool = NULL;
}

static void actions_depend_on_the_name_of_the_episode_and_not_on_threads(void **state)
{
    (void)state;
    struct fake model = fake_of(1, 5, noisy_step);
    struct setup s = setup_of(&model.base);
    s.config.population = 70; /* more than one chunk, and not a multiple of one */
    for (int way = 0; way < 4; way++)
        for (s.config.propagation = OPC_PETS_TSINF; s.config.propagation <= OPC_PETS_TS1_BATCH;
             s.config.propagation++) {
            float a[4][5];
            s.config.optimizer = way % 2;
            s.config.feedback = way / 2;
            act_five_times(&s, 1, 7, a[0]);
            act_five_times(&s, 3, 7, a[1]);
            assert_same_bits(a[0], a[1], sizeof a[0]);
            act_five_times(&s, 1, 8, a[2]);
            assert_memory_not_equal(a[0], a[2], sizeof a[0]);
            assert_true(a[0][0] < -0.5f); /* and they make sense: x is 1 and should be 0 */
        }
}

/* Acting without a memory plans afresh; with a stream, the stream names the draws. */
static void rows_without_a_memory_plan_afresh(void **state)
{
    (void)state;
    struct fake model = fake_of(1, 5, noisy_step);
    struct setup s = setup_of(&model.base);
    struct opc_agent *agent = agent_of(&s);
    const float x[3] = {1, 1, -1};
    float a[3], b[3], one;
    struct opc_rng rng[3], mine = opc_rng_stream(2, OPC_USE_TEST, 0, 2);
    for (uint32_t i = 0; i < 3; i++)
        rng[i] = opc_rng_stream(2, OPC_USE_TEST, 0, i);
    opc_agent_act(agent, 3, x, true, rng, a);
    opc_agent_act(agent, 1, x + 2, true, &mine, &one);
    assert_same_bits(&one, &a[2], sizeof one);
    assert_true(a[0] != a[1] && a[2] > 0.5f && a[0] < -0.5f);
    opc_agent_act(agent, 3, x, false, NULL, a);
    opc_agent_act(agent, 3, x, false, NULL, b);
    assert_same_bits(a, b, sizeof a);
    opc_agent_destroy(agent);
}

/* iCEM with a fifth of the samples comes as near. */
static void improved_method_finds_the_same_with_fewer_samples(void **state)
{
    (void)state;
    struct fake model = fake_of(1, 5, noisy_step);
    struct setup s = setup_of(&model.base);
    s.config.population = 20;
    s.config.elites = 5;
    s.config.optimizer = OPC_PETS_ICEM;
    const double icem = worth_of(&s);
    s.config.population = 400;
    s.config.elites = 40;
    s.config.optimizer = OPC_PETS_CEM;
    assert_true(fabs(icem - worth_of(&s)) < 0.05);
}

/* ---- what is drawn ----------------------------------------------------------------------------
 */

/* Everything that a model is asked, in its order, without threads: actions, and the first number
 * that the particle's stream draws. */
static struct {
    int n, drawn;
    float action[20000];
    uint32_t bits[20000];
} seen;

/* The best action is 0.3. */
static void seen_step(const float *s, const float *a, int elite, struct opc_rng *rng, float *y)
{
    (void)elite;
    assert_true(seen.n < 20000);
    seen.action[seen.n] = a[0];
    seen.bits[seen.n++] = rng ? opc_rng_bits(rng) : 0;
    seen.drawn += rng != NULL;
    y[0] = s[0];
    y[1] = -(a[0] - 0.3f) * (a[0] - 0.3f);
}

static int by_bits(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Particles draw from streams of their own, and candidates, too: in each iteration of each plan, of
 * each step, episode, epoch and seed. A candidate's number is 0.5 z with the same z for the same
 * stream, since nothing moves with alpha next to 1. */
static void draws_are_named_by_seed_epoch_episode_step_and_iteration(void **state)
{
    (void)state;
    enum { PARTICLES = 5, POPULATION = 40, ITERATIONS = 3, PLANS = 5 };
    static const uint32_t NAME[PLANS - 1][3] = {{11, 1, 7}, {11, 2, 7}, {11, 1, 8}, {12, 1, 7}};
    struct fake model = fake_of(1, 1, seen_step);
    struct setup s = setup_of(&model.base);
    const float zero = 0;
    float action;
    s.config.horizon = 1;
    s.config.alpha = KEEP;
    s.config.population = POPULATION;
    s.config.particles = PARTICLES;
    s.config.iterations = ITERATIONS;
    struct opc_agent *agent = agent_of(&s);
    struct opc_episode_state *memory = memory_of(agent);
    seen.n = seen.drawn = 0;
    for (int i = 0; i < PLANS - 1; i++) {
        opc_episode_state_begin(memory, NAME[i][0], NAME[i][1], NAME[i][2]);
        opc_agent_act_in(agent, memory, &zero, false, NULL, &action);
        if (i == 0) /* and the next step */
            opc_agent_act_in(agent, memory, &zero, false, NULL, &action);
    }
    const int n = PLANS * ITERATIONS * POPULATION * PARTICLES;
    assert_int_equal(seen.n, n);
    assert_int_equal(seen.drawn, n);
    qsort(seen.bits, (size_t)n, sizeof *seen.bits, by_bits);
    for (int i = 1; i < n; i++)
        assert_true(seen.bits[i] != seen.bits[i - 1]);
    /* Particles of a candidate stand POPULATION rows apart, and have the same action. */
    const int each = POPULATION * PARTICLES;
    for (int i = 0; i < PLANS * ITERATIONS; i++)
        for (int c = 0; c < POPULATION; c++) {
            const float x = seen.action[i * each + c];
            for (int p = 1; p < PARTICLES; p++)
                assert_true(seen.action[i * each + p * POPULATION + c] == x);
            for (int k = 0; k < i; k++)
                for (int d = 0; d < POPULATION; d++)
                    assert_true(fabsf(seen.action[k * each + d] - x) > 1e-8f);
        }
    opc_episode_state_destroy(memory);
    opc_agent_destroy(agent);
}

/* opc.sample = false: eq. 2 takes the mean, so no particle draws anything. */
static void without_samples_particles_draw_nothing(void **state)
{
    (void)state;
    struct fake model = fake_of(1, 5, seen_step);
    struct setup s = setup_of(&model.base);
    for (s.args.mean = 0; s.args.mean < 2; s.args.mean++) {
        seen.n = seen.drawn = 0;
        worth_of(&s);
        assert_true(seen.n > 0);
        assert_int_equal(seen.drawn, s.args.mean ? 0 : seen.n);
    }
}

/* What an iteration of one particle without threads has asked: candidate c takes action
 * at[h * n + c] in step h. */
struct asked {
    const float *at;
    int n, best[2];
    double top[4], mean[4]; /* values of its four elites; their mean action of each step */
};

enum { ICEM_H = 4, ICEM_ELITES = 4, ICEM_KEPT = 2 };

static struct asked asked_of(const float *at, int n)
{
    struct asked asked = {.at = at, .n = n};
    bool taken[64] = {false};
    for (int e = 0; e < ICEM_ELITES; e++) {
        int best = -1;
        asked.top[e] = -INFINITY;
        for (int c = 0; c < n; c++) {
            double value = 0;
            for (int h = 0; h < ICEM_H; h++)
                value -= pow((double)at[h * n + c] - 0.3, 2);
            if (!taken[c] && value > asked.top[e]) {
                asked.top[e] = value;
                best = c;
            }
        }
        taken[best] = true;
        if (e < ICEM_KEPT)
            asked.best[e] = best;
        for (int h = 0; h < ICEM_H; h++)
            asked.mean[h] += (double)at[h * n + best] / ICEM_ELITES;
    }
    return asked;
}

/* Two steps of iCEM, three iterations each. The population is 20, 10 and twice the elites, 8.
 * Behind it there are the two best of the iteration before, and in the last one the mean; in the
 * first one of the next step the two best are moved on by a step, with the mean at their end. */
static void improved_method_keeps_elites_and_shrinks_its_population(void **state)
{
    (void)state;
    struct fake model = fake_of(1, 1, seen_step);
    struct setup s = setup_of(&model.base);
    const float zero = 0;
    float action;
    s.config.optimizer = OPC_PETS_ICEM;
    s.config.horizon = ICEM_H;
    s.config.population = 20;
    s.config.population_decay = 2;
    s.config.elites = ICEM_ELITES;
    s.config.keep_elites = 0.5;
    s.config.iterations = 3;
    s.config.particles = 1;
    s.config.min_variance = 0;
    struct opc_agent *agent = agent_of(&s);
    struct opc_episode_state *memory = memory_of(agent);
    opc_episode_state_begin(memory, 11, 1, 7);
    seen.n = 0;
    for (int t = 0; t < 2; t++)
        opc_agent_act_in(agent, memory, &zero, false, NULL, &action);
    static const int N[6] = {
        20, 10 + ICEM_KEPT, 8 + ICEM_KEPT + 1, 20 + ICEM_KEPT, 10 + ICEM_KEPT, 8 + ICEM_KEPT + 1};
    struct asked a[6];
    double mean[ICEM_H] = {0};
    int at = 0;
    for (int i = 0; i < 6; at += ICEM_H * N[i++]) {
        a[i] = asked_of(seen.action + at, N[i]);
        const int drawn = N[i] - (i == 0 ? 0 : ICEM_KEPT) - (i % 3 == 2);
        for (int h = 0; h < ICEM_H; h++) {
            for (int e = 0; e < ICEM_KEPT && i > 0; e++) {
                const struct asked *before = &a[i - 1];
                const int from = i == 3 ? h + 1 : h; /* the next step of the episode */
                const double kept = (double)a[i].at[h * N[i] + drawn + e];
                const double want = from < ICEM_H
                                        ? (double)before->at[from * before->n + before->best[e]]
                                        : mean[h];
                assert_true(fabs(kept - want) < (from < ICEM_H ? 1e-12 : 1e-6));
            }
        }
        if (i == 3) { /* the mean moves on, too */
            for (int h = 0; h + 1 < ICEM_H; h++)
                mean[h] = mean[h + 1];
            mean[ICEM_H - 1] = 0;
        }
        for (int h = 0; h < ICEM_H; h++) {
            if (i % 3 == 2)
                assert_true(fabs((double)a[i].at[h * N[i] + N[i] - 1] - mean[h]) < 1e-6);
            mean[h] = 0.1 * mean[h] + 0.9 * a[i].mean[h];
        }
    }
    assert_int_equal(seen.n, at);
    assert_true(fabs((double)action - mean[0]) < 1e-6);
    /* At the start of an episode nothing is kept. */
    seen.n = 0;
    opc_episode_state_begin(memory, 11, 1, 8);
    opc_agent_act_in(agent, memory, &zero, false, NULL, &action);
    assert_int_equal(seen.n, ICEM_H * (N[0] + N[1] + N[2]));
    opc_episode_state_destroy(memory);
    opc_agent_destroy(agent);
}

/* ---- eq. 5 -------------------------------------------------------------------------------------
 */

/* f does not depend on its arguments, so the bracket of eq. 5 is 0 and particles retrace the
 * recording: a plan is worth the recorded rewards of the reference. */
static void constant_step(const float *s, const float *a, int elite, struct opc_rng *rng, float *y)
{
    (void)s, (void)a, (void)rng;
    y[0] = y[1] = (float)elite;
    y[2] = 50;
}

/* An episode along (x + t / 10, y): rewards are number + t / 100. */
static void record_at(struct opc_episodes *past, int steps, double x, double y, int number)
{
    struct opc_err err = {0};
    const float a = 0;
    for (int t = 0; t <= steps; t++) {
        const double s[2] = {x + 0.1 * t, y};
        if (t == 0)
            assert_ok(opc_episodes_begin(past, s, &err), &err);
        else
            assert_ok(opc_episodes_append(past, &a, number + 0.01 * (t - 1), s, false, &err), &err);
    }
    opc_episodes_close(past);
}

static void record(struct opc_episodes *past, int steps, double x, int number)
{
    record_at(past, steps, x, 100 * x, number);
}

/* What a plan of H steps from (x, 100 x) is worth, beside the first `steps` recorded steps. */
static struct opc_agent_report plan_beside(const struct opc_transition *tr, int horizon, double x)
{
    struct setup s = setup_of((struct opc_predictor *)tr->model);
    const float from[2] = {(float)x, (float)(100 * x)};
    s.config.horizon = horizon;
    s.args.transition = tr;
    struct opc_agent *agent = agent_of(&s);
    const struct opc_agent_report report = plan_from(agent, from, NULL);
    opc_agent_destroy(agent);
    return report;
}

static void particles_walk_beside_the_nearest_recording_that_is_long_enough(void **state)
{
    (void)state;
    struct fake model = fake_of(2, 5, constant_step);
    struct opc_err err = {0};
    struct opc_episodes *past;
    struct opc_transition *tr;
    assert_ok(opc_episodes_create(2, 1, 100, 10, &past, &err), &err);
    record(past, 10, 0, 1);
    record(past, 3, 1, 2);
    record(past, 8, 2, 3);
    assert_ok(make_transition("corrected", past, &model.base, 100, &tr, &err), &err);
    /* Nothing is tabulated yet: eq. 2, whose reward is 50. */
    struct opc_agent_report r = plan_beside(tr, 3, 1);
    assert_true(fabs(r.value[OPC_PETS_RETURN] - 150) < 1e-9);
    assert_true(r.value[OPC_PETS_UNCORRECTED] == 1);
    assert_ok(opc_transition_refresh(tr, NULL, &err), &err);
    /* Episode 2 starts nearest and has 3 steps. */
    r = plan_beside(tr, 3, 1);
    assert_true(fabs(r.value[OPC_PETS_RETURN] - (3 * 2 + 0.03)) < 1e-5);
    assert_true(r.value[OPC_PETS_UNCORRECTED] == 0);
    /* For 4 steps it is too short. Of the others episode 1 is nearer, and its step 6 nearest, from
     * which 4 are left; that takes x + 0.1 t = 0.6 for nearer than 0, although 100 x decides. */
    r = plan_beside(tr, 4, 0.9);
    assert_true(fabs(r.value[OPC_PETS_RETURN] - (4 * 1 + 0.06 + 0.07 + 0.08 + 0.09)) < 1e-5);
    /* For 12 steps nothing is long enough: the longest, and eq. 2 after it. */
    r = plan_beside(tr, 12, 2);
    assert_true(fabs(r.value[OPC_PETS_RETURN] - (10 + 0.45 + 2 * 50)) < 1e-4);
    assert_true(fabs(r.value[OPC_PETS_UNCORRECTED] - 2 / 12.0) < 1e-12);
    /* What was recorded since is not in the table and not looked at. */
    record(past, 20, 2, 4);
    r = plan_beside(tr, 12, 2);
    assert_true(fabs(r.value[OPC_PETS_RETURN] - (10 + 0.45 + 2 * 50)) < 1e-4);
    opc_transition_move_window(tr, 2);
    assert_ok(opc_transition_refresh(tr, NULL, &err), &err);
    r = plan_beside(tr, 12, 0);
    assert_true(fabs(r.value[OPC_PETS_RETURN] - (12 * 4 + 0.66)) < 1e-4);
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

/* (0, 80) is 80 from the first recording, and 21 from the second. But the third is at y = 10,000,
 * so that 80 is hardly anything, and 5 in x is two deviations. */
static void the_nearest_recording_is_so_in_units_of_deviations(void **state)
{
    (void)state;
    struct fake model = fake_of(2, 5, constant_step);
    struct opc_err err = {0};
    struct opc_episodes *past;
    struct opc_transition *tr;
    assert_ok(opc_episodes_create(2, 1, 100, 10, &past, &err), &err);
    record_at(past, 3, 0, 0, 1);
    record_at(past, 3, 5, 100, 2);
    record_at(past, 3, 0, 10000, 3);
    assert_ok(make_transition("corrected", past, &model.base, 100, &tr, &err), &err);
    assert_ok(opc_transition_refresh(tr, NULL, &err), &err);
    struct setup s = setup_of(&model.base);
    const float from[2] = {0, 80};
    s.config.horizon = 3;
    s.args.transition = tr;
    struct opc_agent *agent = agent_of(&s);
    const struct opc_agent_report r = plan_from(agent, from, NULL);
    assert_true(fabs(r.value[OPC_PETS_RETURN] - (3 * 1 + 0.03)) < 1e-5);
    opc_agent_destroy(agent);
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

/* ---- rewards that are believed -----------------------------------------------------------------
 */

struct kept_state {
    char name[32];
    float value[2];
    bool restore;
    int parts;
};

static int keep_part(void *ctx, const char *name, void *at, size_t bytes, struct opc_err *err)
{
    struct kept_state *kept = ctx;
    (void)err;
    assert_int_equal(bytes, sizeof kept->value);
    snprintf(kept->name, sizeof kept->name, "%s", name);
    memcpy(kept->restore ? at : (void *)kept->value, kept->restore ? (void *)kept->value : at,
           bytes);
    kept->parts++;
    return OPC_OK;
}

/* The model promises 50 for each step, where 1 to 1.09 was recorded, and later 4 to 4.19. */
static void a_plan_counts_on_no_more_than_the_recorded_range_and_a_tenth(void **state)
{
    (void)state;
    struct fake model = fake_of(2, 5, constant_step);
    struct opc_err err = {0};
    struct opc_episodes *past;
    struct opc_transition *tr;
    const float from[2] = {0, 0};
    assert_ok(opc_episodes_create(2, 1, 100, 10, &past, &err), &err);
    record(past, 10, 0, 1);
    assert_ok(make_transition("learned", past, &model.base, 100, &tr, &err), &err);
    struct setup s = setup_of(&model.base);
    s.config.horizon = 3;
    s.args.transition = tr;
    assert_true(fabs(worth_of(&s) - 150) < 1e-9);
    s.config.bound_reward = true;
    struct opc_agent *agent = agent_of(&s);
    struct opc_agent_report r = plan_from(agent, from, NULL);
    assert_true(fabs(r.value[OPC_PETS_RETURN] - 3 * (1.09 + 0.009)) < 1e-5);
    record(past, 20, 2, 4);
    r = plan_from(agent, from, NULL);
    assert_true(fabs(r.value[OPC_PETS_RETURN] - 3 * (4.19 + 0.319)) < 1e-5);
    /* A policy without the recording has the range of its file, and believes all before that. */
    struct kept_state kept = {.restore = false};
    assert_ok(agent->type->state(agent, keep_part, &kept, &err), &err);
    assert_int_equal(kept.parts, 1);
    opc_agent_destroy(agent);
    s.args.transition = NULL;
    agent = agent_of(&s);
    r = plan_from(agent, from, NULL);
    assert_true(fabs(r.value[OPC_PETS_RETURN] - 150) < 1e-9);
    kept.restore = true;
    assert_ok(agent->type->state(agent, keep_part, &kept, &err), &err);
    r = plan_from(agent, from, NULL);
    assert_true(fabs(r.value[OPC_PETS_RETURN] - 3 * (4.19 + 0.319)) < 1e-5);
    opc_agent_destroy(agent);
    /* Without the setting there is nothing to keep. */
    s.config.bound_reward = false;
    agent = agent_of(&s);
    kept.parts = 0;
    assert_ok(agent->type->state(agent, keep_part, &kept, &err), &err);
    assert_int_equal(kept.parts, 0);
    opc_agent_destroy(agent);
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

/* ---- the best controller -----------------------------------------------------------------------
 */

/* The double integrator with its true model and reward, from (0.2, 0), where the best controller
 * stays within the range of actions. Minimal cost by the Riccati recursion over the episode. */
static void true_model_plans_nearly_as_well_as_the_linear_quadratic_regulator(void **state)
{
    (void)state;
    enum { STEPS = 60 };
    const double A[4] = {1, 0.1, 0, 1}, B[2] = {0.005, 0.1}, start[2] = {0.2, 0};
    /* P = Q + A'PA - A'PB (R + B'PB)^-1 B'PA, with Q = diag(1, 0.1), R = 0.01. P = [p q; q r] */
    double p = 0, q = 0, r = 0;
    for (int t = 0; t < STEPS; t++) {
        const double pb0 = p * B[0] + q * B[1], pb1 = q * B[0] + r * B[1];
        const double k0 = A[0] * pb0 + A[2] * pb1, k1 = A[1] * pb0 + A[3] * pb1; /* A'PB */
        const double over = 0.01 + B[0] * pb0 + B[1] * pb1;
        const double np = 1 + p - k0 * k0 / over;
        const double nq = 0.1 * p + q - k0 * k1 / over;
        const double nr = 0.1 + 0.01 * p + 0.2 * q + r - k1 * k1 / over;
        p = np, q = nq, r = nr;
    }
    const double best = start[0] * start[0] * p;

    const double scaled[2] = {2 * B[0], 2 * B[1]}; /* actions in [-1, 1] mean [-2, 2] */
    struct opc_predictor *model;
    struct opc_env *env;
    struct opc_err err = {0};
    assert_ok(opc_linear_create_matrix(2, 1, A, scaled, &model, &err), &err);
    assert_ok(opc_env_open("double_integrator", &env, &err), &err);
    struct setup s = setup_of(model);
    s.args.env = env;
    s.args.given_reward = true;
    s.config.horizon = 15;
    s.config.population = 400;
    s.config.elites = 40;
    s.config.iterations = 5;
    s.config.particles = 1;
    struct opc_agent *agent = agent_of(&s);
    struct opc_episode_state *memory = memory_of(agent);
    double obs[2], cost = 0;
    assert_ok(opc_env_start(env, start, obs, &err), &err);
    for (int t = 0; t < STEPS; t++) {
        const float x[2] = {(float)obs[0], (float)obs[1]};
        float a;
        double action;
        opc_agent_act_in(agent, memory, x, false, NULL, &a);
        opc_env_scale(env, &a, &action);
        struct opc_outcome out = {.obs = obs};
        assert_ok(opc_env_step(env, &action, &out, &err), &err);
        cost -= out.reward;
    }
    print_message("PETS %.5f, linear quadratic regulator %.5f\n", cost, best);
    assert_true(cost >= best * 0.9999 && cost < 1.05 * best);
    opc_episode_state_destroy(memory);
    opc_agent_destroy(agent);
    opc_predictor_destroy(model);
    opc_env_close(env);
}

/* ---- settings and memory -----------------------------------------------------------------------
 */

static void settings_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct fake model = fake_of(1, 5, member_step);
    struct setup s = setup_of(&model.base);
    struct opc_err err = {0};
    struct opc_agent *agent;
    s.args.config = &s.config;
    s.config.elites = 41;
    assert_fails(opc_agent_create("pets", &s.args, &agent, &err), OPC_EUSER, &err,
                 "pets.population = 40");
    assert_mentions(&err, "pets.elites = 41");
    s.config.elites = 8;
    s.config.particles = 12;
    assert_fails(opc_agent_create("pets", &s.args, &agent, &err), OPC_EUSER, &err,
                 "pets.particles = 12");
    assert_mentions(&err, "model.elites = 5");
    s.config.particles = 20;
    s.config.deviation = 0.01;
    assert_fails(opc_agent_create("pets", &s.args, &agent, &err), OPC_EUSER, &err,
                 "pets.deviation = 0.01");
    assert_mentions(&err, "pets.min_variance = 0.001");
    s.config.feedback = 1; /* gains vary, with variance 0.25 */
    s.config.min_variance = 0.2499;
    assert_ok(opc_agent_create("pets", &s.args, &agent, &err), &err);
    opc_agent_destroy(agent);
    s.config.min_variance = 0.25;
    assert_fails(opc_agent_create("pets", &s.args, &agent, &err), OPC_EUSER, &err,
                 "pets.feedback = 1");
    assert_mentions(&err, "pets.min_variance = 0.25");
    assert_mentions(&err, "pets.deviation = 0.01");
    s.config.deviation = 0.5; /* variance 1 */
    assert_ok(opc_agent_create("pets", &s.args, &agent, &err), &err);
    opc_agent_destroy(agent);
    s.config.min_variance = 1;
    assert_fails(opc_agent_create("pets", &s.args, &agent, &err), OPC_EUSER, &err,
                 "pets.min_variance = 1");
    s.config.min_variance = 0; /* never stops */
    s.config.deviation = 0;
    assert_ok(opc_agent_create("pets", &s.args, &agent, &err), &err);
    opc_agent_destroy(agent);
    s.config.alpha = 1;
    assert_fails(opc_agent_create("pets", &s.args, &agent, &err), OPC_EUSER, &err,
                 "pets.alpha = 1");
    assert_string_equal(err.settings, "pets.alpha");
    s.config.alpha = 0.1;
    s.config.particles = 10000;
    s.config.population = 1000000;
    assert_fails(opc_agent_create("pets", &s.args, &agent, &err), OPC_EUSER, &err,
                 "pets.population = 1000000");
    s.args.model = NULL;
    assert_fails(opc_agent_create("pets", &s.args, &agent, &err), OPC_EUSER, &err, "model");
}

/* Each would make it write beyond its buffers. */
static void parts_of_other_sizes_are_refused(void **state)
{
    (void)state;
    struct fake model = fake_of(3, 5, member_step), other = fake_of(3, 7, member_step);
    struct opc_err err = {0};
    struct opc_agent *agent = NULL;
    struct opc_episodes *past;
    struct opc_transition *tr;
    struct opc_env *env;
    assert_ok(opc_episodes_create(3, 1, 10, 2, &past, &err), &err);
    assert_ok(opc_env_open("cartpole", &env, &err), &err);
    assert_ok(make_transition("learned", past, &other.base, 10, &tr, &err), &err);
    struct setup s = setup_of(&model.base);
    s.args.config = &s.config;
    for (int transition = 0; transition < 2; transition++) {
        s.args.transition = transition ? tr : NULL;
        s.args.obs = 4;
        assert_fails(opc_agent_create("pets", &s.args, &agent, &err), OPC_EUSER, &err,
                     "states of 4 and actions of 1");
        assert_mentions(&err, "states of 3 and actions of 1");
        s.args.obs = 3;
        s.args.act = 2;
        assert_fails(opc_agent_create("pets", &s.args, &agent, &err), OPC_EUSER, &err,
                     "actions of 2");
        s.args.act = 1;
    }
    /* The agent and its model agree, and the transition or the task does not. */
    assert_fails(opc_agent_create("pets", &s.args, &agent, &err), OPC_EUSER, &err, "5 elites");
    assert_mentions(&err, "7");
    model.base.obs = s.args.obs = 4;
    assert_fails(opc_agent_create("pets", &s.args, &agent, &err), OPC_EUSER, &err,
                 "its transition model has states of 3");
    s.args.transition = NULL;
    s.args.env = env;
    assert_ok(opc_agent_create("pets", &s.args, &agent, &err), &err);
    opc_agent_destroy(agent);
    model.base.obs = s.args.obs = 3;
    assert_fails(opc_agent_create("pets", &s.args, &agent, &err), OPC_EUSER, &err,
                 "its task has states of 4");
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
    opc_env_close(env);
}

static int create(void *ctx, struct opc_err *err)
{
    struct setup *s = ctx;
    struct opc_agent *agent = NULL;
    struct opc_episode_state *memory = NULL;
    s->args.config = &s->config;
    int code = opc_agent_create("pets", &s->args, &agent, err);
    if (!code)
        code = opc_episode_state_create(agent, &memory, err);
    opc_episode_state_destroy(memory);
    opc_agent_destroy(agent);
    return code;
}

static void lack_of_memory_is_an_error(void **state)
{
    (void)state;
    struct fake model = fake_of(1, 5, member_step);
    struct setup s = setup_of(&model.base);
    assert_survives_lack_of_memory(create, &s);
    s.config.optimizer = OPC_PETS_ICEM;
    assert_survives_lack_of_memory(create, &s);
    s.config.feedback = 1;
    assert_survives_lack_of_memory(create, &s);
    /* The estimate is no less than what is taken, and not much more. */
    static const int THREADS[] = {1, 4};
    for (int i = 0; i < 2 * 2 * 2 * 2; i++) {
        struct opc_err err = {0};
        s.config.optimizer = i & 1;
        s.config.feedback = i >> 1 & 1;
        s.config.bound_reward = i >> 2 & 1;
        s.config.keep_elites = 1;
        s.config.horizon = i & 8 ? 300 : 5;
        s.config.particles = i & 8 ? 5 : 20;
        assert_ok(opc_pool_create(THREADS[i & 1], &s.args.pool, &err), &err);
        s.args.config = &s.config;
        const double need = (double)opc_pets_type.need(&s.args),
                     taken = test_bytes_taken(create, &s);
        assert_true(need >= taken && need < 1.5 * taken);
        opc_pool_destroy(s.args.pool);
        s.args.pool = NULL;
    }
    /* It grows with every particle. */
    const struct opc_agent_args args = {OPC_SIZED(struct opc_agent_args), .obs = 10, .act = 3,
                                        .config = &s.config};
    s.config.particles = 20;
    const size_t before = opc_pets_type.need(&args);
    s.config.particles = 40;
    assert_true(opc_pets_type.need(&args) > before + 53 * 20 * 30 * sizeof(float));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(particles_keep_their_member_or_get_another_at_each_step),
        cmocka_unit_test(every_member_moves_its_share_of_particles),
        cmocka_unit_test(rewards_end_with_the_step_into_a_terminal_state),
        cmocka_unit_test(candidates_that_are_not_finite_lose_and_are_counted),
        cmocka_unit_test(a_lost_state_is_no_way_to_end_the_costs),
        cmocka_unit_test(plan_moves_on_by_one_step_and_begins_in_the_middle),
        cmocka_unit_test(feedback_adds_gains_times_the_scaled_state),
        cmocka_unit_test(deviation_is_that_of_the_first_draws),
        cmocka_unit_test(feedback_keeps_long_plans_of_an_unstable_system_alive),
        cmocka_unit_test(actions_depend_on_the_name_of_the_episode_and_not_on_threads),
        cmocka_unit_test(rows_without_a_memory_plan_afresh),
        cmocka_unit_test(improved_method_finds_the_same_with_fewer_samples),
        cmocka_unit_test(draws_are_named_by_seed_epoch_episode_step_and_iteration),
        cmocka_unit_test(without_samples_particles_draw_nothing),
        cmocka_unit_test(improved_method_keeps_elites_and_shrinks_its_population),
        cmocka_unit_test(the_nearest_recording_is_so_in_units_of_deviations),
        cmocka_unit_test(particles_walk_beside_the_nearest_recording_that_is_long_enough),
        cmocka_unit_test(a_plan_counts_on_no_more_than_the_recorded_range_and_a_tenth),
        cmocka_unit_test(true_model_plans_nearly_as_well_as_the_linear_quadratic_regulator),
        cmocka_unit_test(settings_that_do_not_fit_are_refused),
        cmocka_unit_test(parts_of_other_sizes_are_refused),
        cmocka_unit_test(lack_of_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
