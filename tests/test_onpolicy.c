/* SPDX-License-Identifier: MIT */
/* The error that metrics.csv reports, and the real environment it is measured against. */
#include "run/real/onpolicy.h"

#include "opc/mem.h"
#include "opc/transition_type.h"
#include "run/real/play.h"
#include "run/real/retrace.h"
#include "test.h"

/* linear1d with A = 0.9 and B = 0.5 moves to s' = 0.9 s + 0.5 u, where the action a in [-1, 1]
 * stands for u = REACH a. Models of it: wrong everywhere, right, right but for a constant, and
 * right but for a constant whose sign the elite decides, or for noise. */
static const char TASK[] = "linear1d?A=0.9&B=0.5";
enum { WRONG, RIGHT, SHIFTED, TORN, NOISY };

struct model {
    struct opc_predictor base;
    int kind;
    double reach;
};

static void predict(const struct opc_predictor *p, int n, const float *s, const float *a,
                    const int *elite, struct opc_rng *rng, float *y, struct opc_pool *pool)
{
    (void)pool;
    const struct model *m = (const struct model *)p;
    for (int i = 0; i < n; i++) {
        const double off = m->kind == SHIFTED        ? 0.25
                           : m->kind == TORN         ? elite[i] - 0.5
                           : m->kind == NOISY && rng ? (double)opc_rng_unit(&rng[i]) - 0.5
                                                     : 0;
        float *to = y + i * (p->obs + 1);
        for (int k = 0; k < p->obs; k++) {
            const float sk = s[i * p->obs + k];
            const double right = 0.9 * (double)sk + 0.5 * m->reach * (double)a[i];
            to[k] = m->kind == WRONG ? 3 * sk - 2 * a[i] + 1 : (float)(right + off);
        }
        to[p->obs] = 0;
    }
}

/* A policy that always does the same, and one that never does. Neither is asked for its mode. */
static void act_steadily(const struct opc_agent *agent, int n, const float *s, bool explore,
                         struct opc_rng *rng, float *a)
{
    (void)agent, (void)s, (void)rng;
    assert_true(explore);
    for (int i = 0; i < n; i++)
        a[i] = 0.25f;
}

static void act_at_random(const struct opc_agent *agent, int n, const float *s, bool explore,
                          struct opc_rng *rng, float *a)
{
    (void)agent, (void)s;
    assert_true(explore);
    for (int i = 0; i < n; i++)
        a[i] = 2 * opc_rng_unit(&rng[i]) - 1;
}

/* The same, and what the first row did can be looked at. */
struct watched {
    struct opc_agent base;
    int n;
    float *did; /* [64] */
};

static void act_watched(const struct opc_agent *agent, int n, const float *s, bool explore,
                        struct opc_rng *rng, float *a)
{
    struct watched *w = (struct watched *)(void *)(uintptr_t)agent;
    act_at_random(agent, n, s, explore, rng, a);
    assert_true(w->n < 64);
    w->did[w->n++] = a[0];
}

static const struct opc_predictor_type model_type = {.name = "model", .predict = predict};
static const struct opc_agent_type steady_type = {.name = "steady", .act = act_steadily};
static const struct opc_agent_type random_type = {.name = "random", .act = act_at_random};
static const struct opc_agent_type watched_type = {.name = "watched", .act = act_watched};
static const struct opc_agent steady = {.type = &steady_type, .obs = 1, .act = 1};
static const struct opc_agent erratic = {.type = &random_type, .obs = 1, .act = 1};

/* Episodes of a task, each cut after `length` steps. */
static struct opc_episodes *record(const char *task, const struct opc_agent *agent, uint64_t seed,
                                   int episodes, int length)
{
    struct opc_play *p;
    struct opc_err err;
    assert_ok(opc_play_create(task, seed, length, &p, &err), &err);
    assert_ok(
        opc_episodes_create(p->env->obs, p->env->act, episodes * length, episodes, &p->past, &err),
        &err);
    for (int b = 0; b < episodes; b++) {
        assert_ok(opc_play_start(p, &err), &err);
        for (int t = 0; t < length && opc_play_running(p); t++) {
            struct opc_rng rng = opc_rng_stream(seed, OPC_USE_TEST, (uint32_t)b, (uint32_t)t);
            float a;
            opc_agent_act(agent, 1, p->s, true, &rng, &a);
            assert_ok(opc_play_step(p, &a, &err), &err);
        }
        opc_play_cut(p);
    }
    struct opc_episodes *past = p->past;
    opc_play_destroy(p);
    return past;
}

struct ask {
    int kind; /* of model */
    bool no_sample, elite_per_rollout;
    const struct opc_agent *agent;
    int newest, oldest, worlds;
    uint32_t epoch;
};

static int oldest_of(const void *ctx, int episode)
{
    (void)episode;
    return *(const int *)ctx;
}

static struct opc_onpolicy errors_by(const char *task, const struct opc_episodes *past,
                                     struct ask ask)
{
    struct opc_many *many;
    struct opc_pool *pool;
    struct opc_onpolicy got;
    struct opc_err err;
    const int obs = opc_episodes_obs(past);
    assert_ok(opc_pool_create(ask.worlds, &pool, &err), &err);
    assert_ok(opc_many_open(task, ask.worlds, pool, &many, &err), &err);
    const struct model model = {
        {.type = &model_type, .obs = obs, .act = 1, .members = 3, .elites = 2},
        ask.kind,
        opc_many_env(many, 0)->high[0],
    };
    const struct opc_onpolicy_plan plan = {.past = past,
                                           .newest = ask.newest,
                                           .oldest = oldest_of,
                                           .oldest_ctx = &ask.oldest,
                                           .model = &model.base,
                                           .agent = ask.agent,
                                           .worlds = many,
                                           .sample = !ask.no_sample,
                                           .elite_per_rollout = ask.elite_per_rollout,
                                           .seed = 1,
                                           .epoch = ask.epoch,
                                           .pool = pool};
    assert_ok(opc_onpolicy_errors(&plan, &got, &err), &err);
    opc_many_close(many);
    opc_pool_destroy(pool);
    return got;
}

static struct opc_onpolicy errors(const char *task, int kind, const struct opc_agent *agent,
                                  const struct opc_episodes *past, int newest, int worlds)
{
    return errors_by(
        task, past, (struct ask){.kind = kind, .agent = agent, .newest = newest, .worlds = worlds});
}

static void on_policy_the_corrected_model_has_no_error_however_wrong_it_is(void **state)
{
    (void)state;
    struct opc_episodes *past = record(TASK, &steady, 1, 3, 20);
    const struct opc_onpolicy got = errors(TASK, WRONG, &steady, past, 1, 2);
    for (int k = 0; k < OPC_ERRORS; k++) {
        assert_true(got.corrected[k] == 0);
        /* and that of the learned one grows with the horizon */
        assert_true(got.learned[k] > (k ? got.learned[k - 1] : 0));
    }
    opc_episodes_destroy(past);
}

/* Other actions than the recorded ones are not the model's fault. */
static void a_right_model_has_no_error_whatever_the_policy_does(void **state)
{
    (void)state;
    struct opc_episodes *past = record(TASK, &erratic, 1, 3, 40);
    const struct opc_onpolicy right = errors(TASK, RIGHT, &erratic, past, 0, 2);
    const struct opc_onpolicy shifted = errors(TASK, SHIFTED, &erratic, past, 0, 2);
    for (int k = 0; k < OPC_ERRORS; k++) {
        assert_true(right.learned[k] < 1e-6 && right.corrected[k] < 1e-6);
        /* eq. 5 knows nothing of a constant */
        assert_true(shifted.learned[k] > 0.05 && shifted.corrected[k] < 1e-6);
    }
    opc_episodes_destroy(past);
}

/* Constants of either sign cancel where each step draws its elite anew; where a rollout keeps one,
 * all its steps err the same way, by 0.5 (1 - 0.9^k) / 0.1. */
static void a_rollout_that_keeps_its_elite_is_measured_so(void **state)
{
    (void)state;
    struct opc_episodes *past = record(TASK, &erratic, 1, 3, 40);
    struct ask ask = {.kind = TORN, .agent = &erratic, .worlds = 2};
    const struct opc_onpolicy step = errors_by(TASK, past, ask);
    ask.elite_per_rollout = true;
    const struct opc_onpolicy kept = errors_by(TASK, past, ask);
    assert_true(kept.learned[0] == step.learned[0]);
    for (int k = 1; k < OPC_ERRORS; k++) {
        const double times = (1 - pow(0.9, OPC_ERROR_STEPS[k])) / 0.1;
        assert_true(fabs(kept.learned[k] - times * kept.learned[0]) < 1e-5);
        assert_true(step.learned[k] < 0.9 * kept.learned[k]);
        assert_true(kept.corrected[k] < 1e-6 && step.corrected[k] < 1e-6);
    }
    opc_episodes_destroy(past);
}

/* Few steps are all starts, and a policy that does what was recorded leads to what was recorded:
 * then the error after one step can be added up by hand, over the newest episodes alone, in
 * deviations of all the past. */
static void errors_are_in_standard_deviations_of_the_past(void **state)
{
    (void)state;
    enum { EPISODES = 4, STEPS = 8, NEWEST = 2, OBS = 3 };
    struct opc_episodes *past = record("pendulum", &steady, 1, EPISODES, STEPS);
    const struct opc_onpolicy got = errors("pendulum", WRONG, &steady, past, NEWEST, 2);
    double sum[OBS] = {0}, squares[OBS] = {0}, all = 0;
    for (int b = 0; b < EPISODES; b++)
        for (int t = 0; t <= STEPS; t++)
            for (int k = 0; k < OBS; k++) {
                const double v = (double)(t < STEPS ? opc_episodes_at(past, b, t).state[k]
                                                    : opc_episodes_at(past, b, t - 1).next[k]);
                sum[k] += v / (EPISODES * (STEPS + 1));
                squares[k] += v * v / (EPISODES * (STEPS + 1));
            }
    for (int b = NEWEST; b < EPISODES; b++)
        for (int t = 0; t < STEPS; t++)
            for (int k = 0; k < OBS; k++) {
                const struct opc_step s = opc_episodes_at(past, b, t);
                const float said = 3 * s.state[k] - 2 * s.action[0] + 1;
                const double e = (double)said - (double)s.next[k];
                all += e * e / (squares[k] - sum[k] * sum[k]);
            }
    const double want = sqrt(all / ((EPISODES - NEWEST) * STEPS * OBS));
    assert_true(fabs(got.learned[0] - want) < 1e-5 * want);
    opc_episodes_destroy(past);
}

/* opc.sample = false is measured as it is used. */
static void without_samples_noise_is_no_error(void **state)
{
    (void)state;
    struct opc_episodes *past = record(TASK, &erratic, 1, 3, 40);
    struct ask ask = {.kind = NOISY, .agent = &erratic, .worlds = 2};
    const struct opc_onpolicy drawn = errors_by(TASK, past, ask);
    ask.no_sample = true;
    const struct opc_onpolicy mean = errors_by(TASK, past, ask);
    for (int k = 0; k < OPC_ERRORS; k++) {
        assert_true(drawn.learned[k] > 0.05 && drawn.corrected[k] < 1e-6);
        assert_true(mean.learned[k] < 1e-6);
    }
    opc_episodes_destroy(past);
}

/* Whatever the model draws, and other actions in every epoch. */
static void both_models_see_the_same_actions(void **state)
{
    (void)state;
    float did[2][64];
    struct opc_episodes *past = record(TASK, &erratic, 1, 1, 40);
    for (int i = 0; i < 2; i++) {
        struct watched w = {{.type = &watched_type, .obs = 1, .act = 1}, 0, did[i]};
        errors_by(TASK, past,
                  (struct ask){.kind = NOISY, .agent = &w.base, .worlds = 1, .epoch = (uint32_t)i});
        assert_int_equal(w.n, 20); /* ten steps each */
        assert_same_bits(did[i], did[i] + 10, 10 * sizeof(float));
    }
    assert_memory_not_equal(did[0], did[1], 10 * sizeof(float));
    opc_episodes_destroy(past);
}

/* ---- a planner --------------------------------------------------------------------------------
 */

static void never_acts_in(const struct opc_agent *agent, struct opc_episode_state *memory,
                          const float *s, bool explore, struct opc_rng *rng, float *a)
{
    (void)agent, (void)memory, (void)s, (void)explore, (void)rng, (void)a;
    fail_msg("a planner was asked");
}

static int ahead;

static int looks_ahead(const struct opc_agent *agent)
{
    (void)agent;
    return ahead;
}

static const struct opc_agent_type planner_type = {
    .name = "planner", .act_in = never_acts_in, .looks_ahead = looks_ahead};
static const struct opc_agent planner = {.type = &planner_type, .obs = 1, .act = 1};

enum { EARLIER = 2, LONG = 16, FAR = 10 };

/* Of the steps of the episodes before the last one that have enough steps left, the nearest. */
static struct opc_step nearest(const struct opc_episodes *past, struct opc_step s, int *episode,
                               int *time)
{
    struct opc_step ref = s;
    float best = INFINITY;
    for (int b = 0; b < EARLIER; b++)
        for (int u = 0; u + ahead <= LONG; u++) {
            const struct opc_step r = opc_episodes_at(past, b, u);
            if (fabsf(r.state[0] - s.state[0]) < best) {
                best = fabsf(r.state[0] - s.state[0]);
                ref = r;
                *episode = b;
                *time = u;
            }
        }
    return ref;
}

/* Steps of the last episode from the one on that is nearest to them in an earlier one, among those
 * with enough steps left for a plan. linear1d has one entry, so the nearest is found without a
 * scale, and the deviation of the past is that of `learned`, whose error can be added up, too. */
static void walks_along_what_is_near(const struct opc_episodes *past)
{
    struct ask ask = {.kind = WRONG, .agent = &planner, .newest = EARLIER, .worlds = 2};
    const struct opc_onpolicy got = errors_by(TASK, past, ask);
    double eq2 = 0, eq5 = 0, eq5_far = 0;
    int far = 0;
    for (int t = 0; t < LONG; t++) {
        const struct opc_step s = opc_episodes_at(past, EARLIER, t);
        int episode = -1, time = -1;
        const struct opc_step ref = nearest(past, s, &episode, &time);
        const double f = 3 * (double)s.state[0] - 2 * (double)s.action[0] + 1,
                     f_ref = 3 * (double)ref.state[0] - 2 * (double)ref.action[0] + 1,
                     e2 = f - (double)s.next[0],
                     e5 = (double)ref.next[0] + f - f_ref - (double)s.next[0];
        eq2 += e2 * e2 / LONG;
        eq5 += e5 * e5 / LONG;
        if (t + FAR > LONG || time + FAR > LONG)
            continue; /* one of both recordings is over by then */
        /* far on with the recorded actions, beside the reference */
        double at = (double)s.state[0];
        for (int h = 0; h < FAR; h++) {
            const struct opc_step r = opc_episodes_at(past, episode, time + h);
            const double a = (double)opc_episodes_at(past, EARLIER, t + h).action[0];
            at = (double)r.next[0] + 3 * (at - (double)r.state[0]) - 2 * (a - (double)r.action[0]);
        }
        const double e = at - (double)opc_episodes_at(past, EARLIER, t + FAR - 1).next[0];
        eq5_far += e * e;
        far++;
    }
    assert_true(got.learned[0] > 0 && got.corrected[0] > 0 && far > 0);
    assert_true(fabs(got.corrected[0] / got.learned[0] / sqrt(eq5 / eq2) - 1) < 1e-4);
    assert_true(fabs(got.corrected[2] / got.learned[0] / sqrt(eq5_far / far / eq2) - 1) < 1e-3);
}

static void a_planner_walks_along_what_was_recorded_before(void **state)
{
    (void)state;
    struct opc_episodes *past = record(TASK, &erratic, 1, EARLIER + 1, LONG);
    ahead = FAR;
    walks_along_what_is_near(past);
    /* the error of a constant cancels, whatever the reference */
    struct ask ask = {.kind = SHIFTED, .agent = &planner, .newest = EARLIER, .worlds = 2};
    const struct opc_onpolicy shifted = errors_by(TASK, past, ask);
    assert_true(shifted.learned[0] > 0.05 && shifted.corrected[2] < 1e-5);
    opc_episodes_destroy(past);
}

/* Plans as long as an episode begin where one begins; short ones may walk along its last steps. */
static void a_planner_needs_references_as_long_as_its_plans(void **state)
{
    (void)state;
    struct opc_episodes *past = record(TASK, &erratic, 1, EARLIER + 1, LONG);
    ahead = LONG;
    walks_along_what_is_near(past);
    ahead = 3;
    walks_along_what_is_near(past);
    opc_episodes_destroy(past);
}

static void a_planner_without_earlier_recordings_has_no_error(void **state)
{
    (void)state;
    struct opc_episodes *past = record(TASK, &erratic, 1, 2, 40);
    struct ask ask = {.kind = WRONG, .agent = &planner, .newest = 1, .worlds = 1};
    ahead = FAR;
    assert_true(errors_by(TASK, past, ask).corrected[2] > 0);
    ask.oldest = 1; /* the window begins with the episode itself */
    const struct opc_onpolicy none = errors_by(TASK, past, ask);
    assert_true(none.learned[2] > 0 && isnan(none.corrected[0]) && isnan(none.corrected[2]));
    opc_episodes_destroy(past);
}

static void worlds_and_threads_do_not_matter(void **state)
{
    (void)state;
    struct opc_episodes *past = record(TASK, &erratic, 1, 2, 40);
    const struct opc_onpolicy one = errors(TASK, WRONG, &erratic, past, 0, 1);
    const struct opc_onpolicy five = errors(TASK, WRONG, &erratic, past, 0, 5);
    assert_true(one.learned[2] > 0 && one.corrected[2] > 0);
    assert_same_bits(&one, &five, sizeof one);
    opc_episodes_destroy(past);
}

static void the_environment_is_not_asked_for_more_than_a_few_thousand_steps(void **state)
{
    (void)state;
    struct opc_episodes *past = record("pendulum", &erratic, 1, 5, 200);
    const struct opc_onpolicy got = errors("pendulum", WRONG, &erratic, past, 0, 3);
    assert_true(got.steps > OPC_ONPOLICY_STEPS / 2 && got.steps <= OPC_ONPOLICY_STEPS);
    assert_true(got.corrected[2] > 0);
    opc_episodes_destroy(past);
}

static void episodes_that_are_too_short_leave_a_gap(void **state)
{
    (void)state;
    struct opc_episodes *past = record(TASK, &steady, 1, 2, 3);
    /* newest behind the last episode: the last one is taken */
    const struct opc_onpolicy got = errors(TASK, WRONG, &steady, past, 2, 1);
    assert_true(got.learned[0] > 0 && got.corrected[0] == 0);
    assert_true(isnan(got.learned[1]) && isnan(got.corrected[2]));
    opc_episodes_destroy(past);
}

static void an_environment_that_does_not_repeat_itself_leaves_a_gap(void **state)
{
    (void)state;
    struct opc_episodes *past =
        record("double_integrator", &steady, 2, 2, 20); /* of another seed */
    const struct opc_onpolicy got = errors("double_integrator", WRONG, &steady, past, 0, 2);
    for (int k = 0; k < OPC_ERRORS; k++)
        assert_true(isnan(got.learned[k]) && isnan(got.corrected[k]));
    opc_episodes_destroy(past);
}

static void an_interrupted_episode_is_brought_back_by_its_actions(void **state)
{
    (void)state;
    enum { STEPS = 7 };
    struct opc_play *p, *q;
    struct opc_err err;
    assert_ok(opc_play_create("cartpole", 5, 100, &p, &err), &err);
    assert_ok(opc_play_create("cartpole", 5, 100, &q, &err), &err);
    assert_ok(opc_episodes_create(4, 1, 1000, 100, &p->past, &err), &err);
    assert_ok(opc_episodes_create(4, 1, 1000, 100, &q->past, &err), &err);
    p->number = 3;
    assert_ok(opc_play_start(p, &err), &err);
    for (int t = 0; t < STEPS; t++) {
        const float a = t % 2 ? 0.3f : -0.2f;
        assert_ok(opc_play_step(p, &a, &err), &err);
    }
    assert_ok(opc_play_again(q, 3, STEPS, p->actions, p->state, &err), &err);
    assert_int_equal(q->number, p->number);
    assert_int_equal(q->t, STEPS);
    assert_true(q->total == p->total);
    opc_play_cut(p);
    opc_play_cut(q);
    for (int t = 0; t < STEPS; t++)
        assert_same_bits(opc_episodes_at(p->past, 0, t).next, opc_episodes_at(q->past, 0, t).next,
                         4 * sizeof(float));

    /* Something that is not the same is not taken for it. */
    assert_fails(opc_play_again(q, 4, STEPS, p->actions, p->state, &err), OPC_EENV, &err,
                 "episode 5");
    opc_episodes_destroy(p->past);
    opc_episodes_destroy(q->past);
    opc_play_destroy(p);
    opc_play_destroy(q);
}

/* Given the recorded actions, the environment does what was recorded, to the bit: whatever its
 * wrapper, its engine, and what was played in the same world before. */
static void check_retrace(const char *task)
{
    enum { EPISODES = 3, STEPS = 40, H = 8, STARTS = 4, N = EPISODES * STARTS };
    struct opc_play *p;
    struct opc_many *worlds;
    struct opc_err err;
    int episode[N], time[N], length[N], ended[N];
    struct opc_rng reset[N];
    assert_ok(opc_play_create(task, 3, STEPS, &p, &err), &err);
    const int obs = p->env->obs, act = p->env->act;
    assert_ok(opc_episodes_create(obs, act, EPISODES * STEPS, EPISODES, &p->past, &err), &err);
    float *action = opc_alloc(N * H * (size_t)act, sizeof *action);
    double *truth = opc_alloc(N * (H + 1) * (size_t)obs, sizeof *truth);
    assert_true(action && truth);
    for (int b = 0; b < EPISODES; b++) {
        assert_ok(opc_play_start(p, &err), &err);
        for (int t = 0; t < STEPS && opc_play_running(p); t++) {
            struct opc_rng rng = opc_rng_stream(3, OPC_USE_TEST, (uint32_t)b, (uint32_t)t);
            for (int k = 0; k < act; k++)
                action[k] = 2 * opc_rng_unit(&rng) - 1;
            assert_ok(opc_play_step(p, action, &err), &err);
        }
        opc_play_cut(p);
    }
    for (int i = 0; i < N; i++) {
        const int b = i / STARTS, all = opc_episodes_length(p->past, b);
        episode[i] = b;
        time[i] = i % STARTS * (all - 1) / (STARTS - 1);
        length[i] = all - time[i] < H ? all - time[i] : H;
        reset[i] = opc_rng_stream(3, OPC_USE_RESET, 0, (uint32_t)b);
        for (int h = 0; h < length[i]; h++)
            memcpy(action + ((size_t)i * H + (size_t)h) * (size_t)act,
                   opc_episodes_at(p->past, b, time[i] + h).action, (size_t)act * sizeof *action);
    }
    assert_ok(opc_many_open(task, 2, NULL, &worlds, &err), &err);
    struct opc_retrace again = {.worlds = worlds,
                                .past = p->past,
                                .n = N,
                                .horizon = H,
                                .episode = episode,
                                .time = time,
                                .reset = reset,
                                .action = action,
                                .length = length,
                                .truth = truth,
                                .ended = ended};
    assert_ok(opc_retrace(&again, &err), &err);
    for (int i = 0; i < N; i++)
        for (int h = 0; h < length[i]; h++) {
            const struct opc_step step = opc_episodes_at(p->past, episode[i], time[i] + h);
            for (int k = 0; k < obs; k++)
                if (truth[(i * (H + 1) + h + 1) * obs + k] != (double)step.next[k])
                    fail_msg("%s: o%d, %d steps behind step %d of episode %d", task, k, h + 1,
                             time[i], episode[i]);
            assert_int_equal(ended[i] == h + 1, step.terminal);
        }
    opc_many_close(worlds);
    opc_free(action);
    opc_free(truth);
    opc_episodes_destroy(p->past);
    opc_play_destroy(p);
}

static void recorded_actions_lead_where_they_led(void **state)
{
    (void)state;
    check_retrace("pendulum");
    check_retrace("cartpole");
    check_retrace("double_integrator");
#if OPC_WITH_MUJOCO
    check_retrace("mujoco:hopper");
    check_retrace("mujoco:half_cheetah");
    check_retrace("mujoco:inverted_pendulum?angle=sincos");
#endif
#if OPC_WITH_BULLET
    check_retrace("bullet:hopper");
    check_retrace("bullet:ant");
    check_retrace("bullet:inverted_pendulum_rs?angle=raw");
    check_retrace("bullet:inverted_pendulum?angle=sincos");
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_policy_the_corrected_model_has_no_error_however_wrong_it_is),
        cmocka_unit_test(a_right_model_has_no_error_whatever_the_policy_does),
        cmocka_unit_test(a_rollout_that_keeps_its_elite_is_measured_so),
        cmocka_unit_test(errors_are_in_standard_deviations_of_the_past),
        cmocka_unit_test(without_samples_noise_is_no_error),
        cmocka_unit_test(both_models_see_the_same_actions),
        cmocka_unit_test(a_planner_walks_along_what_was_recorded_before),
        cmocka_unit_test(a_planner_needs_references_as_long_as_its_plans),
        cmocka_unit_test(a_planner_without_earlier_recordings_has_no_error),
        cmocka_unit_test(worlds_and_threads_do_not_matter),
        cmocka_unit_test(the_environment_is_not_asked_for_more_than_a_few_thousand_steps),
        cmocka_unit_test(episodes_that_are_too_short_leave_a_gap),
        cmocka_unit_test(an_environment_that_does_not_repeat_itself_leaves_a_gap),
        cmocka_unit_test(recorded_actions_lead_where_they_led),
        cmocka_unit_test(an_interrupted_episode_is_brought_back_by_its_actions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
