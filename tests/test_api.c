/* SPDX-License-Identifier: MIT */
/* The public API as a program uses it: models and policies in files, rollouts, learning from
 * imagined steps, learning control, an environment of one's own. Only opc/opc.h is used for that;
 * what is tested inside is tested elsewhere. */
#include "opc/opc.h"
#include "toy.h"

enum { EPISODES = 5, STEPS = 40, H = 25 };

static struct opc_episodes *record(void)
{
    struct opc_episodes *past;
    struct opc_err err;
    assert_ok(opc_episodes_create(OBS, ACT, EPISODES * STEPS, EPISODES, &past, &err), &err);
    for (int b = 0; b < EPISODES; b++)
        toy_play(past, b == 3 ? H / 2 : STEPS, false, true, 0.1, (uint32_t)b);
    return past;
}

static const char *const SETTINGS[] = {"members=3", "model.elites=2",    "hidden=[16]",
                                       "lr=0.01",   "weight_decay=1e-5", "max_epochs=5",
                                       NULL};

static struct opc_predictor *make_model(void)
{
    struct opc_predictor *model;
    struct opc_err err;
    const struct opc_ensemble_options options = {OPC_SIZED(struct opc_ensemble_options),
                                                 .obs = OBS,
                                                 .act = ACT,
                                                 .settings = SETTINGS,
                                                 .seed = 4,
                                                 .threads = 2};
    assert_ok(opc_ensemble_create(&options, &model, &err), &err);
    return model;
}

static void fit(struct opc_predictor *model, const struct opc_episodes *past, uint32_t epoch)
{
    static float sa[EPISODES * STEPS * (OBS + ACT)], y[EPISODES * STEPS * COLUMNS];
    const struct opc_fit_plan plan = {OPC_SIZED(struct opc_fit_plan), .seed = 3, .epoch = epoch};
    struct opc_fit_report report = {OPC_SIZED(struct opc_fit_report)};
    struct opc_err err;
    opc_episodes_flatten(past, sa, y);
    assert_ok(opc_predictor_fit(model, opc_episodes_steps(past), sa, y, &plan, &report, &err),
              &err);
    assert_true(report.passes > 0);
}

static struct opc_transition *make_transition(const char *name, const struct opc_episodes *past,
                                              const struct opc_predictor *model)
{
    struct opc_transition *tr;
    struct opc_err err;
    const struct opc_transition_options options = {OPC_SIZED(struct opc_transition_options),
                                                   .name = name, .past = past, .model = model};
    assert_ok(opc_transition_create(&options, &tr, &err), &err);
    assert_ok(opc_transition_refresh(tr, NULL, &err), &err);
    return tr;
}

/* ---- a model in a file ----------------------------------------------------------------------- */

static void predict(const struct opc_predictor *model, float y[2 * COLUMNS], struct opc_pool *pool)
{
    const float s[2 * OBS] = {0.1f, -0.4f, 0.7f, 1, 2, 3}, a[2 * ACT] = {0.5f, -0.5f, 0, 1};
    const int elite[2] = {0, 1};
    opc_predictor_mean(model, 2, s, a, elite, y, pool);
}

static void a_saved_ensemble_predicts_and_learns_on_to_the_bit(void **state)
{
    char path[4096];
    struct opc_predictor *copy, *model = make_model();
    struct opc_episodes *past = record();
    struct opc_pool *pool;
    struct opc_err err;
    float want[2 * COLUMNS], got[2 * COLUMNS];
    snprintf(path, sizeof path, "%s/model.opc", (const char *)*state);
    fit(model, past, 1);
    assert_ok(opc_ensemble_save(model, path, &err), &err);
    assert_ok(opc_ensemble_load(path, 1, &copy, &err), &err);
    predict(model, want, NULL);
    predict(copy, got, NULL);
    assert_same_bits(want, got, sizeof want);
    assert_ok(opc_pool_create(3, &pool, &err), &err); /* more threads than it has memory for */
    predict(copy, got, pool);
    assert_same_bits(want, got, sizeof want);
    opc_pool_destroy(pool);
    fit(model, past, 2);
    fit(copy, past, 2);
    predict(model, want, NULL);
    predict(copy, got, NULL);
    assert_same_bits(want, got, sizeof want);
    opc_predictor_destroy(copy);

    struct opc_agent *agent;
    assert_fails(opc_policy_load(path, &agent, &err), OPC_EDAMAGED, &err, "model.opc");
    FILE *file = fopen(path, "r+");
    assert_true(file && !fseek(file, 300, SEEK_SET) && fputc('x', file) == 'x' && !fclose(file));
    assert_fails(opc_ensemble_load(path, 1, &copy, &err), OPC_EDAMAGED, &err, "model.opc");
    opc_predictor_destroy(model);
    opc_episodes_destroy(past);
}

static void wrong_settings_of_an_ensemble_are_refused(void **state)
{
    (void)state;
    static const char *const WRONG[][2] = {
        {"members", "members"}, {"member=3", "members"}, {"members=0", "members = 0"}};
    struct opc_ensemble_options options = {OPC_SIZED(struct opc_ensemble_options), .obs = 1,
                                           .act = 1};
    struct opc_predictor *model;
    struct opc_err err;
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        options.settings = (const char *const[]){WRONG[i][0], NULL};
        assert_fails(opc_ensemble_create(&options, &model, &err), OPC_EUSER, &err, WRONG[i][1]);
    }
    options.obs = 0;
    assert_int_equal(opc_ensemble_create(&options, &model, &err), OPC_EUSER);
}

/* ---- rollouts -------------------------------------------------------------------------------- */

static const int EPISODE[] = {0, 2, 3, 1}, TIME[] = {0, 7, 2, 30};
enum { N = sizeof TIME / sizeof *TIME };

static void with_recorded_actions_eq_5_is_the_recording_to_the_bit(void **state)
{
    (void)state;
    struct opc_episodes *past = record();
    struct opc_predictor *model = make_model(); /* not fitted: it knows nothing */
    struct opc_transition *tr = make_transition("corrected", past, model);
    struct opc_trajectories *paths;
    struct opc_err err;
    const struct opc_imagine_plan plan = {OPC_SIZED(struct opc_imagine_plan),
                                          .transition = tr,
                                          .n = N,
                                          .episode = EPISODE,
                                          .time = TIME,
                                          .horizon = H};
    assert_ok(opc_imagine(&plan, &paths, &err), &err);
    assert_int_equal(opc_trajectories_count(paths), N);
    for (int i = 0; i < N; i++) {
        const int left = opc_episodes_length(past, EPISODE[i]) - TIME[i];
        const int length = opc_trajectories_length(paths, i);
        int b, t;
        assert_int_equal(length, left < H ? left : H);
        assert_int_equal(opc_trajectories_end(paths, i),
                         left < H ? OPC_END_REFERENCE : OPC_END_HORIZON);
        opc_trajectories_start(paths, i, &b, &t);
        assert_true(b == EPISODE[i] && t == TIME[i]);
        for (int h = 0; h < length; h++) {
            const struct opc_step ref = opc_episodes_at(past, b, t + h);
            assert_same_bits(opc_trajectories_states(paths, i) + h * OBS, ref.state,
                             OBS * sizeof(float));
            assert_same_bits(opc_trajectories_states(paths, i) + (h + 1) * OBS, ref.next,
                             OBS * sizeof(float));
            assert_same_bits(opc_trajectories_actions(paths, i) + h * ACT, ref.action,
                             ACT * sizeof(float));
            assert_true(opc_trajectories_rewards(paths, i)[h] == ref.reward);
        }
    }
    opc_trajectories_destroy(paths);
    opc_trajectories_destroy(NULL);
    opc_transition_destroy(tr);
    opc_predictor_destroy(model);
    opc_episodes_destroy(past);
}

/* Rows leave when their recording ends; the others keep their own actions. */
static void given_actions_reach_their_own_rollout(void **state)
{
    (void)state;
    static float actions[N][H][ACT];
    struct opc_episodes *past = record();
    struct opc_predictor *model = make_model();
    struct opc_transition *tr = make_transition("corrected", past, model);
    struct opc_trajectories *paths;
    struct opc_err err;
    for (int i = 0; i < N; i++)
        for (int h = 0; h < H; h++)
            for (int k = 0; k < ACT; k++)
                actions[i][h][k] = 0.01f * (float)(i * 20 + h) - 0.3f * (float)k;
    struct opc_imagine_plan plan = {OPC_SIZED(struct opc_imagine_plan),
                                    .transition = tr,
                                    .n = N,
                                    .episode = EPISODE,
                                    .time = TIME,
                                    .horizon = H,
                                    .actions = actions[0][0]};
    assert_ok(opc_imagine(&plan, &paths, &err), &err);
    for (int i = 0; i < N; i++)
        assert_same_bits(opc_trajectories_actions(paths, i), actions[i],
                         (size_t)opc_trajectories_length(paths, i) * ACT * sizeof(float));
    opc_trajectories_destroy(paths);
    opc_transition_destroy(tr);
    /* eq. 2 needs no recording to go on */
    plan.transition = tr = make_transition("learned", past, model);
    assert_ok(opc_imagine(&plan, &paths, &err), &err);
    assert_int_equal(opc_trajectories_length(paths, 3), H);
    opc_trajectories_destroy(paths);
    opc_transition_destroy(tr);
    opc_predictor_destroy(model);
    opc_episodes_destroy(past);
}

static void act(void *ctx, int n, const float *s, struct opc_rng *rng, float *a)
{
    (void)ctx;
    for (int i = 0; i < n; i++) {
        toy_policy(s + i * OBS, a + i * ACT);
        a[i * ACT] += 0.1f * opc_rng_unit(&rng[i]);
    }
}

static void drawn_rollouts_do_not_depend_on_threads(void **state)
{
    (void)state;
    enum { MANY = 700 };
    struct opc_episodes *past = record();
    struct opc_predictor *model = make_model();
    struct opc_pool *pool;
    struct opc_err err;
    assert_ok(opc_pool_create(2, &pool, &err), &err);
    fit(model, past, 0);
    for (int m = 0; m < 2; m++) {
        struct opc_transition *tr = make_transition(m ? "corrected" : "learned", past, model);
        struct opc_trajectories *one, *two;
        struct opc_imagine_plan plan = {OPC_SIZED(struct opc_imagine_plan),
                                        .transition = tr,
                                        .n = MANY,
                                        .horizon = 6,
                                        .act = act,
                                        .seed = 9,
                                        .elite_per_rollout = m};
        assert_ok(opc_imagine(&plan, &one, &err), &err);
        plan.pool = pool;
        assert_ok(opc_imagine(&plan, &two, &err), &err);
        for (int i = 0; i < MANY; i++) {
            const int n = opc_trajectories_length(one, i);
            assert_true(n >= 1 && n == opc_trajectories_length(two, i));
            assert_same_bits(opc_trajectories_states(one, i), opc_trajectories_states(two, i),
                             (size_t)(n + 1) * OBS * sizeof(float));
        }
        opc_trajectories_destroy(one);
        opc_trajectories_destroy(two);
        opc_transition_destroy(tr);
    }
    opc_pool_destroy(pool);
    opc_predictor_destroy(model);
    opc_episodes_destroy(past);
}

static void a_plan_that_cannot_be_is_refused(void **state)
{
    (void)state;
    struct opc_episodes *past = record();
    struct opc_predictor *model = make_model();
    struct opc_transition *tr = make_transition("corrected", past, model);
    struct opc_trajectories *paths;
    struct opc_err err;
    int episode = EPISODES, time = 0;
    struct opc_imagine_plan plan = {OPC_SIZED(struct opc_imagine_plan),
                                    .transition = tr,
                                    .n = 1,
                                    .episode = &episode,
                                    .time = &time,
                                    .horizon = H};
    assert_fails(opc_imagine(&plan, &paths, &err), OPC_EUSER, &err, "episode 5");
    episode = 3;
    time = H / 2;
    assert_fails(opc_imagine(&plan, &paths, &err), OPC_EUSER, &err, "step 12 of episode 3");
    time = 0;
    plan.horizon = 0;
    assert_fails(opc_imagine(&plan, &paths, &err), OPC_EUSER, &err, "horizon = 0");
    plan.horizon = H;
    plan.time = NULL;
    assert_fails(opc_imagine(&plan, &paths, &err), OPC_EUSER, &err, "neither");
    plan.time = &time;
    opc_transition_move_window(tr, 1);
    assert_fails(opc_imagine(&plan, &paths, &err), OPC_EBUG, &err, "opc_transition_refresh");
    plan.transition = NULL;
    assert_int_equal(opc_imagine(&plan, &paths, &err), OPC_EUSER);
    plan.size = 0;
    assert_fails(opc_imagine(&plan, &paths, &err), OPC_EUSER, &err, "opc_imagine_plan");
    opc_transition_destroy(tr);
    opc_predictor_destroy(model);
    opc_episodes_destroy(past);
}

/* ---- a loop of one's own: imagine, improve --------------------------------------------------- */

static void an_agent_learns_from_imagined_steps(void **state)
{
    (void)state;
    struct opc_episodes *past = record();
    struct opc_predictor *model = make_model();
    struct opc_transition *tr = make_transition("corrected", past, model);
    struct opc_imagined *store;
    struct opc_agent *agent;
    struct opc_err err;
    const struct opc_imagined_shape shape = {OPC_SIZED(struct opc_imagined_shape),
                                             .obs = OBS,
                                             .act = ACT,
                                             .longest = 5,
                                             .retain = 1,
                                             .transitions = 600};
    struct opc_imagine_plan plan = {OPC_SIZED(struct opc_imagine_plan), .transition = tr, .n = 500,
                                    .horizon = 5, .act = act};
    struct opc_imagine_report made = {OPC_SIZED(struct opc_imagine_report)};
    assert_ok(opc_imagined_create(&shape, &store, &err), &err);
    opc_imagined_open_epoch(store, 1);
    assert_ok(opc_imagine_into(&plan, store, &made, &err), &err);
    assert_true(made.transitions >= 500 && made.transitions < 505);
    assert_int_equal(made.transitions, opc_imagined_transitions(store));
    assert_int_equal(made.rollouts, opc_imagined_rollouts(store));
    assert_int_equal(made.index, made.rollouts);
    size_t steps = 0;
    struct opc_rollout_rows rows;
    for (uint64_t at = 0; opc_imagined_next(store, &at, &rows);)
        steps += (size_t)rows.steps;
    assert_int_equal(steps, made.transitions);

    const struct opc_agent_args args = {OPC_SIZED(struct opc_agent_args), .obs = OBS, .act = ACT,
                                        .target_entropy = (double)NAN};
    const struct opc_feed feed = {OPC_SIZED(struct opc_feed), .draw = opc_imagined_draw,
                                  .ctx = store};
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    int obs, actions;
    assert_ok(opc_agent_create("sac", &args, &agent, &err), &err);
    opc_agent_dimensions(agent, &obs, &actions);
    assert_true(obs == OBS && actions == ACT);
    assert_ok(opc_agent_improve(agent, &feed, 3, &report, &err), &err);
    assert_int_equal(report.updates, 3);
    assert_ok(opc_agent_improve(agent, &feed, 1, NULL, &err), &err);

    plan.act = NULL;
    assert_int_equal(opc_imagine_into(&plan, store, NULL, &err), OPC_EUSER);
    opc_agent_destroy(agent);
    opc_imagined_destroy(store);
    opc_transition_destroy(tr);
    opc_predictor_destroy(model);
    opc_episodes_destroy(past);
}

/* ---- an environment of one's own, and its policy --------------------------------------------- */

struct point {
    struct opc_env env;
    double x;
};

static int point_open(const struct opc_env_type *type, const double *arg, struct opc_env **out,
                      struct opc_err *err)
{
    (void)arg;
    static const double LOW[] = {-1}, HIGH[] = {1};
    struct point *p = opc_alloc(1, sizeof *p);
    if (!p)
        return opc_fail(err, OPC_ENOMEM, "no memory for %s", type->name);
    p->env = (struct opc_env){.obs = 1, .act = 1, .steps = 10, .low = LOW, .high = HIGH};
    *out = &p->env;
    return OPC_OK;
}

static int point_reset(struct opc_env *env, struct opc_rng *rng, double *obs, struct opc_err *err)
{
    (void)err;
    *obs = ((struct point *)env)->x = opc_rng_unit_double(rng) - 0.5;
    return OPC_OK;
}

static int point_step(struct opc_env *env, const double *action, struct opc_outcome *out,
                      struct opc_err *err)
{
    (void)err;
    struct point *p = (struct point *)env;
    out->obs[0] = p->x += 0.1 * action[0];
    out->reward = -p->x * p->x;
    return OPC_OK;
}

static void point_close(struct opc_env *env)
{
    opc_free(env);
}

static const struct opc_env_page PAGE = {"a", "b", "c", "d", "e", "f"};
#define POINT(called)                                                                              \
    {                                                                                              \
        .name = called, .page = &PAGE, .open = point_open, .reset = point_reset,                   \
        .step = point_step, .close = point_close                                                   \
    }
static const struct opc_env_type TYPE = POINT("point"), OTHER = POINT("point"),
                                 TAKEN = POINT("pendulum"), STRANGE = POINT("a?b");

static int enroll(const struct opc_env_type *type, struct opc_err *err)
{
    const struct opc_env_plugin plugin = OPC_ENV_PLUGIN_OF(type);
    return opc_env_register(&plugin, err);
}

static void a_program_trains_on_a_type_of_its_own_and_loads_the_policy_alone(void **state)
{
    static const char *const TINY[] = {
        "env.name=point",        "train.epochs=1",           "train.steps_per_epoch=40",
        "train.random_steps=40", "train.updates_per_step=1", "opc.transitions=100",
        "model.members=2",       "model.elites=1",           "model.hidden=[8]",
        "model.max_epochs=2",    "sac.policy_hidden=[8]",    "sac.critic_hidden=[8]",
        "sac.batch_size=16",     "eval.episodes=1",          "model.weight_decay=1e-5"};
    char dir[4096], file[4096], alone[4096];
    struct opc_config *config;
    struct opc_agent *of_run, *of_file;
    struct opc_err err;
    assert_ok(enroll(&TYPE, &err), &err);
    assert_ok(enroll(&TYPE, &err), &err); /* twice is fine */
    assert_fails(enroll(&OTHER, &err), OPC_EUSER, &err, "'point'");
    assert_fails(enroll(&TAKEN, &err), OPC_EUSER, &err, "'pendulum'");
    assert_fails(enroll(&STRANGE, &err), OPC_EUSER, &err, "'a?b'");
    struct opc_env_plugin old = OPC_ENV_PLUGIN_OF(&TYPE);
    old.bytes[0]++;
    assert_int_equal(opc_env_register(&old, &err), OPC_EUSER);

    snprintf(dir, sizeof dir, "%s/run", (const char *)*state);
    snprintf(file, sizeof file, "%s/run/policy.opc", (const char *)*state);
    snprintf(alone, sizeof alone, "%s/alone.opc", (const char *)*state);
    assert_ok(opc_config_create(&config, &err), &err);
    for (size_t i = 0; i < sizeof TINY / sizeof *TINY; i++)
        assert_ok(opc_config_set(config, TINY[i], &err), &err);
    const struct opc_train_plan plan = {OPC_SIZED(struct opc_train_plan), .dir = dir, .threads = 1};
    assert_ok(opc_train(config, &plan, &err), &err);
    opc_config_destroy(config);

    /* The file somewhere else acts as the run does. */
    assert_ok(opc_policy_load(dir, &of_run, &err), &err);
    assert_int_equal(rename(file, alone), 0);
    assert_ok(opc_policy_load(alone, &of_file, &err), &err);
    const float s[3] = {-0.5f, 0.1f, 2};
    float want[3], got[3];
    opc_agent_act(of_run, 3, s, false, NULL, want);
    opc_agent_act(of_file, 3, s, false, NULL, got);
    assert_same_bits(want, got, sizeof want);
    char *name;
    assert_ok(opc_policy_config(alone, &config, &err), &err);
    assert_ok(opc_config_get(config, "env.name", &name, &err), &err);
    assert_string_equal(name, "point");
    opc_free(name);
    opc_config_destroy(config);
    assert_int_equal(opc_policy_load("nowhere/policy.opc", &of_run, &err), OPC_EUSER);
    opc_agent_destroy(of_run);
    opc_agent_destroy(of_file);
}

/* ---- learning control ------------------------------------------------------------------------ */

enum { T = 15 };

/* A double integrator with friction, a spring and a weaker motor than its model says. */
static int push(void *ctx, const double *u, double *s, struct opc_err *err)
{
    int *trials = ctx;
    (void)err;
    s[0] = s[1] = 0;
    for (int t = 0; t < T; t++) {
        s[2 * t + 2] = s[2 * t] + 0.1 * s[2 * t + 1];
        s[2 * t + 3] = s[2 * t + 1] + 0.1 * (0.8 * u[t] - 0.3 * s[2 * t + 1] - 0.2 * s[2 * t]);
    }
    ++*trials;
    return OPC_OK;
}

static int refuse(void *ctx, const double *u, double *s, struct opc_err *err)
{
    (void)ctx, (void)u, (void)s;
    return opc_fail(err, OPC_EENV, "the plant is switched off");
}

static void learning_control_follows_the_reference_after_a_few_trials(void **state)
{
    (void)state;
    static const double A[] = {1, 0.1, 0, 1}, B[] = {0, 0.1}, WEIGHT[] = {1, 0}, LOW[] = {-2};
    double s_ref[2 * (T + 1)], u[T] = {0}, s[2 * (T + 1)], rms[7];
    int trials = 0;
    struct opc_err err;
    for (int t = 0; t <= T; t++) {
        s_ref[2 * t] = 0.5 * pow(sin(3.14159265 * t / T), 2);
        s_ref[2 * t + 1] = 0;
    }
    struct opc_ilc_plan plan = {OPC_SIZED(struct opc_ilc_plan),
                                .states = 2,
                                .actions = 1,
                                .steps = T,
                                .iterations = 6,
                                .A = A,
                                .B = B,
                                .s_ref = s_ref,
                                .weight_state = WEIGHT,
                                .trial = push,
                                .ctx = &trials};
    assert_ok(opc_ilc_learn(&plan, u, s, rms, &err), &err);
    assert_int_equal(trials, 7);
    double largest = 0;
    for (int t = 0; t <= T; t++)
        largest = fmax(largest, fabs(s[2 * t] - s_ref[2 * t]));
    assert_true(largest < 0.03); /* 0.49 in the first trial */
    assert_true(rms[0] > 0 && rms[6] > 0);
    /* Bounds are kept. */
    plan.low = LOW;
    memset(u, 0, sizeof u);
    assert_ok(opc_ilc_learn(&plan, u, NULL, NULL, &err), &err);
    for (int t = 0; t < T; t++)
        assert_true(u[t] >= -2 - 1e-6);
    plan.trial = refuse;
    assert_fails(opc_ilc_learn(&plan, u, NULL, NULL, &err), OPC_EENV, &err, "switched off");
    plan.A = NULL;
    assert_fails(opc_ilc_learn(&plan, u, NULL, NULL, &err), OPC_EUSER, &err, "A_each");
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int imagine(void *ctx, struct opc_err *err)
{
    const struct opc_imagine_plan plan = {OPC_SIZED(struct opc_imagine_plan), .transition = ctx,
                                          .n = 3, .horizon = 4};
    struct opc_trajectories *paths;
    OPC_TRY(opc_imagine(&plan, &paths, err));
    opc_trajectories_destroy(paths);
    return OPC_OK;
}

static int load(void *ctx, struct opc_err *err)
{
    struct opc_predictor *model;
    OPC_TRY(opc_ensemble_load(ctx, 1, &model, err));
    opc_predictor_destroy(model);
    return OPC_OK;
}

static int save(void *ctx, struct opc_err *err)
{
    char path[4200];
    struct opc_predictor *model;
    snprintf(path, sizeof path, "%s.again", (const char *)ctx);
    OPC_TRY(opc_ensemble_load(ctx, 1, &model, err));
    const int code = opc_ensemble_save(model, path, err);
    opc_predictor_destroy(model);
    return code;
}

static int learn(void *ctx, struct opc_err *err)
{
    static const double A[] = {1, 0.1, 0, 1}, B[] = {0, 0.1}, REF[2 * (T + 1)] = {0};
    int trials = 0;
    double u[T] = {1};
    (void)ctx;
    const struct opc_ilc_plan plan = {OPC_SIZED(struct opc_ilc_plan),
                                      .states = 2,
                                      .actions = 1,
                                      .steps = T,
                                      .iterations = 1,
                                      .A = A,
                                      .B = B,
                                      .s_ref = REF,
                                      .trial = push,
                                      .ctx = &trials};
    return opc_ilc_learn(&plan, u, NULL, NULL, err);
}

static void lack_of_memory_is_reported(void **state)
{
    char path[4096];
    struct opc_episodes *past = record();
    struct opc_predictor *model = make_model();
    struct opc_transition *tr = make_transition("corrected", past, model);
    struct opc_err err;
    snprintf(path, sizeof path, "%s/model.opc", (const char *)*state);
    assert_ok(opc_ensemble_save(model, path, &err), &err);
    assert_survives_lack_of_memory(imagine, tr);
    assert_survives_lack_of_memory(load, path);
    assert_survives_lack_of_memory(save, path);
    assert_survives_lack_of_memory(learn, NULL);
    opc_transition_destroy(tr);
    opc_predictor_destroy(model);
    opc_episodes_destroy(past);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_saved_ensemble_predicts_and_learns_on_to_the_bit,
                                        test_make_dir, test_remove_dir),
        cmocka_unit_test(wrong_settings_of_an_ensemble_are_refused),
        cmocka_unit_test(with_recorded_actions_eq_5_is_the_recording_to_the_bit),
        cmocka_unit_test(given_actions_reach_their_own_rollout),
        cmocka_unit_test(drawn_rollouts_do_not_depend_on_threads),
        cmocka_unit_test(a_plan_that_cannot_be_is_refused),
        cmocka_unit_test(an_agent_learns_from_imagined_steps),
        cmocka_unit_test_setup_teardown(
            a_program_trains_on_a_type_of_its_own_and_loads_the_policy_alone, test_make_dir,
            test_remove_dir),
        cmocka_unit_test(learning_control_follows_the_reference_after_a_few_trials),
        cmocka_unit_test_setup_teardown(lack_of_memory_is_reported, test_make_dir, test_remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
