/* SPDX-License-Identifier: MIT */
/* A tiny run, looked at afterwards: its snapshots, the exactness eq. 5 promises, the truth rollouts
 * are compared with, and the four analyses. */
#include "study/probe/probe_fit.h"

#include "base/file.h"
#include "drawn.h"
#include "opc/mem.h"
#include "opc/train.h"
#include "study/probe/probe_states.h"
#include "test.h"

enum { EPOCHS = 3, SEED = 11 };

static const char *const TINY[] = {
    "train.epochs=3",         "train.steps_per_epoch=60",
    "train.random_steps=100", "train.updates_per_step=1",
    "opc.transitions=300",    "opc.horizon=3",
    "model.members=3",        "model.elites=2",
    "model.hidden=[16]",      "model.weight_decay=1e-5",
    "model.max_epochs=3",     "sac.policy_hidden=[16]",
    "sac.critic_hidden=[16]", "sac.batch_size=32",
    "eval.episodes=1",        "data.retain=1",
};

/* Three runs in one directory: with snapshots, without, and without a model. */
struct runs {
    void *dir;
    char whole[OPC_PATH], plain[OPC_PATH], replay[OPC_PATH];
};

static void train_in(const char *dir, const char *const set[])
{
    struct opc_config *config = NULL;
    struct opc_err err;
    assert_ok(opc_config_create(&config, &err), &err);
    for (size_t i = 0; i < sizeof TINY / sizeof *TINY; i++)
        assert_ok(opc_config_set(config, TINY[i], &err), &err);
    for (int i = 0; set[i]; i++)
        assert_ok(opc_config_set(config, set[i], &err), &err);
    const struct opc_train_plan plan = {OPC_SIZED(struct opc_train_plan), .dir = dir, .threads = 1};
    assert_ok(opc_train(config, &plan, &err), &err);
    opc_config_destroy(config);
}

static int train_all(void **state)
{
    struct runs *r = calloc(1, sizeof *r);
    assert_non_null(r);
    if (test_make_dir(&r->dir)) {
        free(r);
        return -1;
    }
    snprintf(r->whole, sizeof r->whole, "%s/whole", (const char *)r->dir);
    snprintf(r->plain, sizeof r->plain, "%s/plain", (const char *)r->dir);
    snprintf(r->replay, sizeof r->replay, "%s/replay", (const char *)r->dir);
    train_in(r->whole, (const char *const[]){"record.snapshots=1", NULL});
    train_in(r->plain, (const char *const[]){"train.epochs=1", NULL});
    train_in(r->replay, (const char *const[]){"opc.transition=replay", "train.epochs=1", NULL});
    *state = r;
    return 0;
}

static int remove_all(void **state)
{
    struct runs *r = *state;
    test_remove_dir(&r->dir);
    free(r);
    return 0;
}

/* ---- snapshots ------------------------------------------------------------------------------- */

static void ask(const struct opc_trained *t, float action[2], float next[5])
{
    const float s[2][4] = {{0.01f, -0.02f, 0.1f, 0.05f}, {-0.3f, 0.1f, 0, -0.2f}};
    const int elite = 1;
    opc_agent_act(t->agent, 2, s[0], false, NULL, action);
    opc_predictor_mean(t->model, 1, s[1], action, &elite, next, NULL);
}

static void snapshots_are_listed_and_give_policy_and_model_back(void **state)
{
    const struct runs *r = *state;
    struct opc_probe p;
    struct opc_trained last, newest, first, before;
    struct opc_agent *final;
    struct opc_err err;
    float a[4][2], y[4][5], of_final[2];
    assert_ok(opc_probe_open(r->whole, NULL, SEED, &p, &err), &err);
    assert_int_equal(p.snapshots, EPOCHS);
    for (int i = 0; i < EPOCHS; i++)
        assert_int_equal(p.snapshot[i], i + 1);

    assert_ok(opc_trained_load(r->whole, p.config, 4, 1, EPOCHS, NULL, &last, &err), &err);
    assert_ok(opc_trained_load(r->whole, p.config, 4, 1, OPC_TRAINED_NEWEST, NULL, &newest, &err),
              &err);
    assert_ok(opc_trained_load(r->whole, p.config, 4, 1, 1, NULL, &first, &err), &err);
    assert_ok(opc_trained_load(r->whole, p.config, 4, 1, 0, NULL, &before, &err), &err);
    const struct opc_trained *const all[] = {&last, &newest, &first, &before};
    for (int i = 0; i < 4; i++)
        ask(all[i], a[i], y[i]);
    assert_int_equal(last.epoch, EPOCHS);
    assert_int_equal(newest.epoch, EPOCHS);
    assert_int_equal(first.epoch, 1);
    assert_same_bits(a[0], a[1], sizeof a[0]);
    assert_same_bits(y[0], y[1], sizeof y[0]);
    assert_true(a[0][0] != a[2][0] && a[2][0] != a[3][0]);
    assert_true(y[0][0] != y[2][0] && y[2][0] != y[3][0]);

    /* and the final policy is that of the last snapshot */
    const float s[2][4] = {{0.01f, -0.02f, 0.1f, 0.05f}, {-0.3f, 0.1f, 0, -0.2f}};
    assert_ok(opc_policy_load(r->whole, &final, &err), &err);
    opc_agent_act(final, 2, s[0], false, NULL, of_final);
    assert_same_bits(a[0], of_final, sizeof of_final);
    opc_agent_destroy(final);

    for (int i = 0; i < 4; i++)
        opc_trained_free((struct opc_trained *[]){&last, &newest, &first, &before}[i]);
    assert_fails(opc_trained_load(r->whole, p.config, 4, 1, 7, NULL, &last, &err), OPC_EUSER, &err,
                 "epoch 7");
    assert_mentions(&err, "record.snapshots");
    opc_probe_close(&p);
}

static void the_newest_snapshot_before_an_epoch_is_taken(void **state)
{
    const struct runs *r = *state;
    struct opc_probe p;
    struct opc_trained t;
    struct opc_err err;
    assert_ok(opc_probe_open(r->whole, NULL, SEED, &p, &err), &err);
    const int want[][2] = {{0, EPOCHS}, {1, 1}, {2, 2}, {20, EPOCHS}};
    for (int i = 0; i < 4; i++) {
        assert_ok(opc_probe_load(&p, want[i][0], &t, &err), &err);
        assert_int_equal(t.epoch, want[i][1]);
        opc_trained_free(&t);
    }
    p.snapshot[0] = 2; /* as with record.snapshots=2 */
    assert_fails(opc_probe_load(&p, 1, &t, &err), OPC_EUSER, &err, "epoch 1");
    assert_mentions(&err, "of 2"); /* where the first is */
    opc_probe_close(&p);

    assert_ok(opc_probe_open(r->plain, NULL, SEED, &p, &err), &err);
    assert_int_equal(p.snapshots, 0);
    assert_ok(opc_probe_load(&p, 20, &t, &err), &err); /* the newest checkpoint */
    assert_int_equal(t.epoch, 1);
    opc_trained_free(&t);
    opc_probe_close(&p);
}

static int load_last(void *ctx, struct opc_err *err)
{
    const struct opc_probe *p = ctx;
    struct opc_trained t;
    const int code = opc_trained_load(p->dir, p->config, 4, 1, EPOCHS, NULL, &t, err);
    if (!code)
        opc_trained_free(&t);
    return code;
}

static int play_two(void *ctx, struct opc_err *err)
{
    struct opc_probe p;
    struct opc_trained t = {0};
    struct opc_episodes *past = NULL;
    int code = opc_probe_open(ctx, NULL, SEED, &p, err);
    if (code)
        return code;
    code = opc_probe_load(&p, 0, &t, err);
    if (!code)
        code = opc_probe_play(&p, (struct opc_actor){t.agent, 1}, 0, 2, &past, err);
    opc_episodes_destroy(past);
    opc_trained_free(&t);
    opc_probe_close(&p);
    return code;
}

static void loading_and_playing_survive_lack_of_memory(void **state)
{
    struct runs *r = *state;
    struct opc_probe p;
    struct opc_err err;
    assert_ok(opc_probe_open(r->whole, NULL, SEED, &p, &err), &err);
    assert_survives_lack_of_memory(load_last, &p);
    opc_probe_close(&p);
    assert_survives_lack_of_memory(play_two, r->whole);
}

/* ---- the policy's deviation ------------------------------------------------------------------ */

static void spread_0_is_the_mode_and_spread_1_the_policy(void **state)
{
    enum { N = 21 };
    const struct runs *r = *state;
    struct opc_agent *agent;
    struct opc_err err;
    struct opc_rng rng[4][N];
    float s[N][4], a[4][N];
    assert_ok(opc_policy_load(r->whole, &agent, &err), &err);
    for (int i = 0; i < N; i++) {
        struct opc_rng draw = opc_rng_stream(3, OPC_USE_TEST, 0, (uint32_t)i);
        for (int k = 0; k < 4; k++)
            s[i][k] = opc_rng_unit(&draw) - 0.5f;
        for (int k = 0; k < 4; k++)
            rng[k][i] = draw;
    }
    opc_agent_act(agent, N, s[0], false, NULL, a[0]);
    opc_agent_act_spread(agent, N, s[0], 0, rng[1], a[1]);
    assert_same_bits(a[0], a[1], sizeof a[0]);
    opc_agent_act(agent, N, s[0], true, rng[0], a[0]);
    opc_agent_act_spread(agent, N, s[0], 1, rng[2], a[2]);
    assert_same_bits(a[0], a[2], sizeof a[0]);
    assert_same_bits(rng[0], rng[2], sizeof rng[0]);

    /* Before squashing, twice the spread is twice as far from the mode. */
    opc_agent_act_spread(agent, N, s[0], 2, rng[3], a[3]);
    for (int i = 0; i < N; i++) {
        const double u0 = atanh((double)a[1][i]), u1 = atanh((double)a[2][i]);
        const double u2 = atanh((double)a[3][i]);
        if (fabs(u2) < 2) /* further out a float of the action says little about it */
            assert_true(fabs((u2 - u0) - 2 * (u1 - u0)) < 1e-4);
    }
    opc_agent_destroy(agent);
}

/* ---- exactness ------------------------------------------------------------------------------- */

struct scene {
    struct opc_probe p;
    struct opc_trained t;
    struct opc_episodes *past;
    struct opc_models models;
};

static void scene_make(const char *dir, double spread, int episodes, struct scene *c)
{
    struct opc_err err;
    assert_ok(opc_probe_open(dir, NULL, SEED, &c->p, &err), &err);
    assert_ok(opc_probe_load(&c->p, 0, &c->t, &err), &err);
    assert_ok(
        opc_probe_play(&c->p, (struct opc_actor){c->t.agent, spread}, 5, episodes, &c->past, &err),
        &err);
    assert_ok(opc_models_make(&c->p, c->t.model, c->past, &c->models, &err), &err);
}

static void scene_free(struct scene *c)
{
    opc_models_free(&c->models);
    opc_episodes_destroy(c->past);
    opc_trained_free(&c->t);
    opc_probe_close(&c->p);
}

static void an_episode_is_what_policy_and_environment_make_of_its_stream(void **state)
{
    const struct runs *r = *state;
    struct scene c;
    struct opc_err err;
    struct opc_env *env;
    scene_make(r->whole, 1, 70, &c); /* more than play at once */
    assert_int_equal(opc_episodes_count(c.past), 70);
    assert_ok(opc_env_open("cartpole", &env, &err), &err);
    for (int b = 0; b < 70; b += 23) {
        double s[4], scaled;
        struct opc_outcome out = {.obs = s};
        struct opc_rng rng = opc_probe_stream(SEED, OPC_DRAW_PLAY, 5, b);
        assert_ok(opc_env_reset(env, &rng, s, &err), &err);
        const int length = opc_episodes_length(c.past, b);
        for (int t = 0; t < length; t++) {
            const struct opc_step step = opc_episodes_at(c.past, b, t);
            float sf[4], a;
            for (int k = 0; k < 4; k++)
                sf[k] = (float)s[k];
            assert_floats_near(step.state, sf, 4, 0);
            opc_agent_act(c.t.agent, 1, sf, true, &rng, &a);
            assert_true(step.action[0] == a);
            opc_env_scale(env, &a, &scaled);
            assert_ok(opc_env_step(env, &scaled, &out, &err), &err);
            assert_int_equal(step.terminal, out.terminated);
            assert_int_equal(out.terminated || out.truncated, t + 1 == length);
        }
    }
    opc_env_close(env);
    scene_free(&c);
}

static void without_noise_the_corrected_model_repeats_the_recording(void **state)
{
    enum { N = 40, H = 12 };
    const struct runs *r = *state;
    struct scene c;
    struct opc_branches b;
    struct opc_err err;
    scene_make(r->whole, 0, 4, &c);
    const struct opc_actor steady = {c.t.agent, 0};
    assert_ok(opc_branches_make(N, H, 4, 1, &b, &err), &err);
    opc_probe_from_anywhere(&b, c.past, SEED, 0);
    assert_ok(opc_probe_follow(&c.p, c.models.corrected, steady, 0, &b, &err), &err);
    double *truth = opc_alloc((size_t)N * (H + 1) * 4, sizeof *truth);
    int ended[N];
    assert_ok(opc_probe_truth(&c.p, c.past, 5, &b, truth, ended, &err), &err);
    for (int i = 0; i < N; i++) {
        assert_int_equal(b.length[i], H); /* it started where the recording has H steps left */
        assert_true(b.time[i] + H <= opc_episodes_length(c.past, b.episode[i]));
        for (int h = 0; h < H; h++) {
            const struct opc_step step = opc_episodes_at(c.past, b.episode[i], b.time[i] + h);
            for (int k = 0; k < 4; k++) {
                assert_true(opc_branches_at(&b, i, h, k) == (double)step.state[k]);
                assert_true(opc_branches_at(&b, i, h + 1, k) == (double)step.next[k]);
                /* and so does the environment */
                assert_true(truth[((size_t)i * (H + 1) + (size_t)h + 1) * 4 + (size_t)k] ==
                            (double)step.next[k]);
            }
        }
    }
    opc_free(truth);
    opc_branches_free(&b);

    /* Whole episodes: Lemma 1, the predicted return is the recorded one to the bit. */
    double predicted[4], recorded[4];
    assert_ok(opc_branches_make(4, c.p.limit, 4, 1, &b, &err), &err);
    opc_probe_from_starts(&b, c.past);
    assert_ok(opc_probe_follow(&c.p, c.models.corrected, steady, 0, &b, &err), &err);
    opc_branches_returns(&b, predicted);
    opc_probe_returns(c.past, recorded);
    assert_same_bits(predicted, recorded, sizeof recorded);
    /* The learned model does not. */
    assert_ok(opc_probe_follow(&c.p, c.models.learned, steady, 0, &b, &err), &err);
    assert_true(opc_branches_at(&b, 0, 0, 1) == (double)opc_episodes_at(c.past, 0, 0).state[1]);
    assert_true(opc_branches_at(&b, 0, 1, 1) != (double)opc_episodes_at(c.past, 0, 0).next[1]);
    opc_branches_free(&b);
    scene_free(&c);
}

static void truth_is_what_the_environment_does_with_the_rollouts_own_actions(void **state)
{
    enum { N = 70, H = 9 };
    const struct runs *r = *state;
    struct scene c;
    struct opc_branches b;
    struct opc_err err;
    int ended[N];
    double *truth = opc_alloc((size_t)N * (H + 1) * 4, sizeof *truth);
    scene_make(r->whole, 1, 6, &c);
    assert_ok(opc_branches_make(N, H, 4, 1, &b, &err), &err);
    opc_probe_from_anywhere(&b, c.past, SEED, 0);
    assert_ok(
        opc_probe_follow(&c.p, c.models.corrected, (struct opc_actor){c.t.agent, 1}, 0, &b, &err),
        &err);
    /* Row 0 as it is; the others are given the recorded actions, and must arrive as recorded. */
    for (int i = 1; i < N; i++) {
        b.length[i] = H;
        for (int h = 0; h < H; h++)
            b.action[i * H + h] = opc_episodes_at(c.past, b.episode[i], b.time[i] + h).action[0];
    }
    assert_ok(opc_probe_truth(&c.p, c.past, 5, &b, truth, ended, &err), &err);
    for (int i = 1; i < N; i++) {
        const bool last = b.time[i] + H == opc_episodes_length(c.past, b.episode[i]);
        for (int h = 0; h < H; h++) {
            const struct opc_step step = opc_episodes_at(c.past, b.episode[i], b.time[i] + h);
            for (int k = 0; k < 4; k++)
                assert_true(truth[((size_t)i * (H + 1) + (size_t)h + 1) * 4 + (size_t)k] ==
                            (double)step.next[k]);
        }
        assert_int_equal(ended[i], last ? H : 0);
    }

    /* Row 0 by hand. */
    struct opc_env *env;
    double s[4], scaled;
    struct opc_outcome out = {.obs = s};
    struct opc_rng rng = opc_probe_stream(SEED, OPC_DRAW_PLAY, 5, b.episode[0]);
    assert_ok(opc_env_open("cartpole", &env, &err), &err);
    assert_ok(opc_env_reset(env, &rng, s, &err), &err);
    for (int t = 0; t < b.time[0] + b.length[0]; t++) {
        const float own = t < b.time[0] ? opc_episodes_at(c.past, b.episode[0], t).action[0]
                                        : b.action[t - b.time[0]];
        opc_env_scale(env, &own, &scaled);
        assert_ok(opc_env_step(env, &scaled, &out, &err), &err);
        const int h = t + 1 - b.time[0];
        if (h > 0 && !(ended[0] && h > ended[0]))
            for (int k = 0; k < 4; k++)
                assert_true(truth[(size_t)h * 4 + (size_t)k] == (double)(float)s[k]);
    }
    opc_env_close(env);

    /* Episodes that were not played from these streams are noticed. */
    assert_fails(opc_probe_truth(&c.p, c.past, 6, &b, truth, ended, &err), OPC_EENV, &err,
                 "repeat");
    opc_free(truth);
    opc_branches_free(&b);
    scene_free(&c);
}

/* A policy that is nothing but noise. */
static void act_blindly(const struct opc_agent *agent, int n, const float *s, float spread,
                        struct opc_rng *rng, float *a)
{
    (void)agent, (void)s, (void)spread;
    for (int i = 0; i < n; i++)
        a[i] = 2 * opc_rng_unit(&rng[i]) - 1;
}

/* Also behind the first step, when the learned model has drawn from its own. */
static void the_models_see_the_same_noise_from_the_same_starts(void **state)
{
    enum { N = 9, H = 4 };
    static const struct opc_agent_type type = {.name = "blind", .act_spread = act_blindly};
    const struct opc_agent blind = {.type = &type, .obs = 4, .act = 1};
    const struct runs *r = *state;
    struct scene c;
    struct opc_branches b[2];
    struct opc_err err;
    scene_make(r->whole, 1, 3, &c);
    for (int m = 0; m < 2; m++) {
        assert_ok(opc_branches_make(N, H, 4, 1, &b[m], &err), &err);
        opc_probe_from_anywhere(&b[m], c.past, SEED, 0);
        assert_ok(opc_probe_follow(&c.p, m ? c.models.corrected : c.models.learned,
                                   (struct opc_actor){&blind, 1}, 0, &b[m], &err),
                  &err);
    }
    assert_same_bits(b[0].time, b[1].time, N * sizeof(int));
    int later = 0;
    for (int i = 0; i < N; i++)
        for (int h = 0; h < b[0].length[i] && h < b[1].length[i]; h++) {
            assert_true(b[0].action[H * i + h] == b[1].action[H * i + h]);
            later += h > 0;
        }
    assert_true(c.models.learned->sample && later > 0);
    opc_branches_free(&b[0]);
    opc_branches_free(&b[1]);
    scene_free(&c);
}

/* ---- entries --------------------------------------------------------------------------------- */

static void entries_have_names(void **state)
{
    const struct runs *r = *state;
    struct opc_probe p;
    struct opc_err err;
    char name[32];
    int k;
    assert_ok(opc_probe_open(r->whole, NULL, SEED, &p, &err), &err);
    opc_probe_entry_name(&p, 1, name);
    assert_string_equal(name, "angle o1");
    opc_probe_entry_name(&p, 3, name);
    assert_string_equal(name, "o3");
    const struct {
        const char *word;
        int is;
    } good[] = {{"auto", 1}, {"angle", 1}, {"o3", 3}, {"0", 0}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_ok(opc_probe_entry(&p, good[i].word, &k, &err), &err);
        assert_int_equal(k, good[i].is);
    }
    const char *const bad[] = {"o4", "cos", "-1", "x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_fails(opc_probe_entry(&p, bad[i], &k, &err), OPC_EUSER, &err, bad[i]);
        assert_mentions(&err, "o0 to o3");
    }
    opc_probe_close(&p);
}

/* ---- analyses -------------------------------------------------------------------------------- */

/* Makes an exhibit of one run in dir. */
/* An analysis is stopped when it says that it is so far; 2: never. */
static double stop_from = 2, reached;

static void note_progress(void *ctx, double done, const char *what)
{
    (void)ctx;
    assert_true(*what);
    reached = done;
}

static bool is_to_stop(void *ctx)
{
    (void)ctx;
    return reached >= stop_from;
}

static int analyse(const char *run, const char *analysis, const char *settings, int threads,
                   const char *dir, struct opc_err *err)
{
    struct opc_yaml *map;
    struct opc_pool *pool;
    struct opc_exhibit *e;
    char *one[] = {(char *)(uintptr_t)run};
    const struct opc_exhibit_plan plan = {.dir = dir, .name = "fig", .title = "a figure"};
    assert_ok(opc_yaml_parse("probe", settings, strlen(settings), &map, err), err);
    assert_ok(opc_pool_create(threads, &pool, err), err);
    assert_ok(opc_exhibit_begin(&plan, &e, err), err);
    const struct opc_request request = {.ask = map,
                                        .runs = 1,
                                        .run = one,
                                        .pool = pool,
                                        .seed = SEED,
                                        .progress = note_progress,
                                        .stop = is_to_stop};
    int code = opc_analysis_run(opc_analysis_find(analysis, err), &request, e, err);
    if (code)
        opc_exhibit_drop(e);
    else
        code = opc_exhibit_end(e, err);
    opc_yaml_free(map);
    opc_pool_destroy(pool);
    return code;
}

static const char *const ANALYSIS[][2] = {
    {"probe_states", "{samples: 12, horizon: 5, references: 3}"},
    {"probe_trajectories", "{samples: 12, horizon: 5, references: 3}"},
    {"probe_bound", "{samples: 6}"},
    {"probe_offpolicy", "{samples: 6, beta: [0, 1, 3]}"},
};
enum { ANALYSES = sizeof ANALYSIS / sizeof *ANALYSIS };

static void compare_files(const char *one, const char *two, const char *name)
{
    char path[2][OPC_PATH], *text[2];
    size_t n[2];
    struct opc_err err;
    for (int i = 0; i < 2; i++) {
        assert_ok(opc_path_join(path[i], i ? two : one, name, &err), &err);
        assert_ok(opc_file_read(path[i], 100000000, &text[i], &n[i], &err), &err);
    }
    assert_int_equal(n[0], n[1]);
    assert_same_bits(text[0], text[1], n[0]);
    opc_free(text[0]);
    opc_free(text[1]);
}

static void the_number_of_threads_changes_no_byte(void **state)
{
    const struct runs *r = *state;
    char one[OPC_PATH], two[OPC_PATH];
    struct opc_err err;
    for (int i = 0; i < ANALYSES; i++) {
        snprintf(one, sizeof one, "%s/%s-1", (const char *)r->dir, ANALYSIS[i][0]);
        snprintf(two, sizeof two, "%s/%s-3", (const char *)r->dir, ANALYSIS[i][0]);
        assert_ok(analyse(r->whole, ANALYSIS[i][0], ANALYSIS[i][1], 1, one, &err), &err);
        assert_ok(analyse(r->whole, ANALYSIS[i][0], ANALYSIS[i][1], 3, two, &err), &err);
        compare_files(one, two, "fig.json");
        compare_files(one, two, "fig.csv");
        compare_files(one, two, "fig-claims.csv");
    }
}

static double cell(const struct opc_table *t, int row, const char *column)
{
    return strtod(opc_table_cell(t, row, opc_table_find(t, column)), NULL);
}

static void the_bound_is_made_of_its_terms_and_holds(void **state)
{
    const struct runs *r = *state;
    char dir[OPC_PATH], path[OPC_PATH];
    struct opc_table *t;
    struct opc_err err;
    snprintf(dir, sizeof dir, "%s/bound", (const char *)r->dir);
    assert_ok(analyse(r->whole, "probe_bound", "{samples: 8}", 1, dir, &err), &err);
    assert_ok(opc_path_join(path, dir, "fig.csv", &err), &err);
    assert_ok(opc_table_read(path, &t, &err), &err);
    assert_int_equal(opc_table_rows(t), 2 * EPOCHS);
    for (int i = 0; i < opc_table_rows(t); i++) {
        const double eta = cell(t, i, "eta"), next = cell(t, i, "eta_next");
        const double now = cell(t, i, "predicted"), then = cell(t, i, "predicted_next");
        assert_true(cell(t, i, "iteration") == i / 2 + 1);
        assert_true(cell(t, i, "improvement") == next - eta);
        assert_true(cell(t, i, "error") == fabs(eta - now));
        assert_true(cell(t, i, "error_next") == fabs(next - then));
        const double bound = then - now - fabs(next - then) - fabs(eta - now);
        assert_true(fabs(cell(t, i, "bound") - bound) < 1e-9);
        assert_true(next - eta >= cell(t, i, "bound") - 1e-9);
        if (i + 2 < opc_table_rows(t)) /* the next policy is the next iteration's */
            assert_true(cell(t, i + 2, "eta") == next);
    }
    opc_table_free(t);

    /* eta_n of the second policy, from the episodes of snapshot 1. */
    struct opc_probe p;
    struct opc_trained first;
    struct opc_episodes *past;
    double returns[8], sum = 0;
    assert_ok(opc_probe_open(r->whole, NULL, SEED, &p, &err), &err);
    assert_ok(opc_probe_load(&p, 1, &first, &err), &err);
    assert_ok(opc_probe_play(&p, (struct opc_actor){first.agent, 1}, 1, 8, &past, &err), &err);
    opc_probe_returns(past, returns);
    for (int i = 0; i < 8; i++)
        sum += returns[i];
    assert_ok(opc_table_read(path, &t, &err), &err);
    assert_true(fabs(cell(t, 2, "eta") - sum / 8) < 1e-9);
    opc_table_free(t);
    opc_episodes_destroy(past);
    opc_trained_free(&first);
    opc_probe_close(&p);
}

static void almost_always_is_more_than_more_often(void **state)
{
    (void)state;
    assert_int_equal(opc_bound_smaller(19, 1, 0), OPC_VERDICT_SUPPORTED);
    assert_int_equal(opc_bound_smaller(9, 1, 10), OPC_VERDICT_SUPPORTED);
    /* More often by far (p = 0.002), but one in three is not almost always. */
    assert_int_equal(opc_bound_smaller(65, 35, 0), OPC_VERDICT_NOT_SUPPORTED);
    assert_int_equal(opc_bound_smaller(44, 16, 0), OPC_VERDICT_NOT_SUPPORTED);
    assert_int_equal(opc_bound_smaller(26, 4, 0), OPC_VERDICT_UNDECIDED); /* 13 %, p = 0.35 */
    assert_int_equal(opc_bound_smaller(4, 0, 0), OPC_VERDICT_UNDECIDED);  /* p = 0.06 */
    assert_int_equal(opc_bound_smaller(0, 0, 20), OPC_VERDICT_UNDECIDED);
    assert_int_equal(opc_bound_smaller(5, 15, 0), OPC_VERDICT_NOT_SUPPORTED);
}

/* Shares stay, and runs become more: 5 of 5 have p = 0.03. */
static void the_runs_that_would_decide_almost_always_are_counted(void **state)
{
    (void)state;
    assert_true(opc_bound_seeds(4, 0, 0, 4) == 5);
    assert_true(opc_bound_seeds(2, 0, 0, 1) == 3);
    assert_true(opc_bound_seeds(0, 0, 20, 2) == HUGE_VAL);
    const int n = (int)opc_bound_seeds(26, 4, 0, 1);
    assert_true(n > 1);
    assert_int_equal(opc_bound_smaller(26 * n, 4 * n, 0), OPC_VERDICT_NOT_SUPPORTED);
    assert_int_equal(opc_bound_smaller(26 * (n - 1), 4 * (n - 1), 0), OPC_VERDICT_UNDECIDED);
}

static void a_run_settles_where_it_stays_near_its_best(void **state)
{
    (void)state;
    assert_int_equal(opc_bound_settled(5, (double[]){10, 950, 30, 1000, 901}), 3);
    assert_int_equal(opc_bound_settled(3, (double[]){1000, 950, 30}), 3);
    assert_int_equal(opc_bound_settled(3, (double[]){100, 95, 96}), 0);
    assert_int_equal(opc_bound_settled(3, (double[]){-900, -105, -100}), 1); /* costs */
}

/* Where the environment ended before, the rollout did not end too early. */
static void too_early_is_before_the_environment(void **state)
{
    (void)state;
    int ended[] = {0, 2, 2, 4, 3}, played[] = {0, 0, 2, 0, 1};
    const struct opc_states s = {.rows = 5,
                                 .each = 2, /* the last row is of no whole run */
                                 .horizon = 4,
                                 .ended = {[OPC_BY_LEARNED] = ended},
                                 .played_ended = {[OPC_BY_LEARNED] = played}};
    assert_int_equal(opc_states_too_early(&s, OPC_BY_LEARNED, -1), 1);
    assert_int_equal(opc_states_too_early(&s, OPC_BY_LEARNED, 0), 1);
    assert_int_equal(opc_states_too_early(&s, OPC_BY_LEARNED, 1), 0);
}

static void claims_of_exactness_are_supported(void **state)
{
    const struct runs *r = *state;
    char dir[OPC_PATH], path[OPC_PATH];
    struct opc_exhibit_read *e;
    struct opc_err err;
    snprintf(dir, sizeof dir, "%s/exact", (const char *)r->dir);
    assert_ok(analyse(r->whole, "probe_states", ANALYSIS[0][1], 1, dir, &err), &err);
    assert_ok(opc_path_join(path, dir, "fig.json", &err), &err);
    assert_ok(opc_exhibit_load(path, &e, &err), &err);
    assert_int_equal(e->claims, 4);
    for (int i = 2; i < 4; i++)
        assert_int_equal(e->claim[i].verdict, OPC_VERDICT_SUPPORTED);
    assert_contains(e->claim[2].measured, "h = 0: 0");
    opc_exhibit_unload(e);
}

static void errors_are_true_minus_predicted(void **state)
{
    struct runs *r = *state;
    struct opc_probe_states_config set = {
        .samples = 10, .horizon = 4, .references = 3, .entry = "auto", .panels = 8};
    char *one[] = {r->whole, r->whole};
    const struct opc_request request = {.runs = 2, .run = one, .seed = SEED};
    struct opc_states s;
    struct opc_err err;
    struct opc_states_runs runs;
    assert_ok(opc_states_runs_find(&request, &runs, &err), &err);
    assert_ok(opc_states_collect(&request, &runs, false, &set, &s, &err), &err);
    opc_states_runs_free(&runs);
    assert_int_equal(s.rows, 20);
    assert_true(s.without_noise == 0);
    int later = 0;
    for (int row = 0; row < s.rows; row++)
        for (int truth = 0; truth < OPC_TRUTHS; truth++) {
            assert_true(opc_states_error(&s, truth, OPC_BY_CORRECTED, row, 0, 1) == 0);
            const size_t at = ((size_t)row * 5 + 3) * 4 + 1;
            const double e = opc_states_error(&s, truth, OPC_BY_CORRECTED, row, 3, 1);
            if (isnan(e))
                continue;
            assert_true(e ==
                        s.truth[truth][OPC_BY_CORRECTED][at] - s.predicted[OPC_BY_CORRECTED][at]);
            later += e != 0;
        }
    /* Each run has random numbers of its own, so the same run twice is played twice. */
    const size_t second = 10 * 5 * 4;
    assert_true(memcmp(s.predicted[OPC_BY_CORRECTED], s.predicted[OPC_BY_CORRECTED] + second,
                       second * sizeof *s.predicted[OPC_BY_CORRECTED]) != 0);
    assert_true(later > 20); /* sampled actions: neither model repeats the recording */
    opc_states_free(&s);
}

/* With the recorded actions eq. 5 is exact whatever the fit; with others it is not. */
static void fits_are_compared_on_what_the_next_epoch_recorded(void **state)
{
    const struct runs *r = *state;
    char dir[OPC_PATH], path[OPC_PATH + 16];
    struct opc_table *t;
    struct opc_err err;
    snprintf(dir, sizeof dir, "%s/fit", (const char *)r->dir);
    snprintf(path, sizeof path, "%s/fig-fits.csv", dir);
    assert_ok(analyse(r->whole, "probe_fit",
                      "{epochs: 2, samples: 16, steps: 4, noise: 0, rule: [max_epochs=1]}", 2, dir,
                      &err),
              &err);
    assert_ok(opc_table_read(path, &t, &err), &err);
    assert_int_equal(opc_table_rows(t), 2);
    for (int row = 0; row < 2; row++) {
        assert_int_equal((int)cell(t, row, "epoch"), 1 + row);
        assert_int_equal((int)cell(t, row, "passes"), 1);
        assert_true(cell(t, row, "corrected_1") == 0 && cell(t, row, "corrected_H") == 0);
        assert_true(cell(t, row, "learned_1") > 0);
        assert_true(cell(t, row, "learned_H") > cell(t, row, "learned_1"));
    }
    assert_true(cell(t, 1, "rows") > cell(t, 0, "rows"));
    opc_table_free(t);

    assert_ok(analyse(r->whole, "probe_fit", "{epochs: 2, samples: 16, steps: 4, noise: 0.5}", 1,
                      dir, &err),
              &err);
    snprintf(path, sizeof path, "%s/fig.csv", dir);
    assert_ok(opc_table_read(path, &t, &err), &err);
    assert_true(opc_table_rows(t) > 3); /* the usual rules */
    for (int row = 0; row < opc_table_rows(t); row++)
        assert_true(cell(t, row, "corrected_1") > 0 && cell(t, row, "corrected_H") > 0);
    opc_table_free(t);

    assert_fails(analyse(r->whole, "probe_fit", "{rule: patience}", 1, dir, &err), OPC_EUSER, &err,
                 "patience");
    assert_fails(analyse(r->whole, "probe_fit", "{rule: patiense=3}", 1, dir, &err), OPC_EUSER,
                 &err, "patience");
    assert_fails(analyse(r->whole, "probe_fit", "{steps: 5000}", 1, dir, &err), OPC_EUSER, &err,
                 "has 5000 steps");
    assert_fails(analyse(r->plain, "probe_fit", "{}", 1, dir, &err), OPC_EUSER, &err, "epochs");
    assert_fails(analyse(r->replay, "probe_fit", "{}", 1, dir, &err), OPC_EUSER, &err,
                 "opc.transition");
}

/* Two rules with the same networks: the second makes a tenth of the steps, which raises errors by
 * these factors, give or take a percent. Its first fit does not count. */
static struct opc_interval advantage_of(float learned, float corrected, int steps)
{
    enum { FITS = 9 };
    struct opc_fit_outcome outcome[2][FITS];
    static const char *const RULE[] = {"", "max_steps=10"};
    static const char LABEL[2][OPC_TEXT_SIZE] = {"full", "cheap"};
    static const int ALIKE[] = {0, 0};
    for (int i = 0; i < FITS; i++) {
        outcome[0][i] = (struct opc_fit_outcome){.steps = 100, .error = {{1, 2}, {3, 4}}};
        outcome[1][i] = outcome[0][i];
        outcome[1][i].steps = steps;
        for (int k = 0; k < 2 && i > 0; k++) {
            outcome[1][i].error[OPC_FIT_LEARNED][k] *= (double)learned + 0.01 * (i % 3 - 1);
            outcome[1][i].error[OPC_FIT_CORRECTED][k] *= (double)corrected;
        }
    }
    outcome[1][3].error[OPC_FIT_LEARNED][0] = (double)NAN; /* nothing could be tested */
    const struct opc_fit_results results = {.rules = 2,
                                            .asked = 2,
                                            .rule = RULE,
                                            .label = LABEL,
                                            .shared = "",
                                            .alike = ALIKE,
                                            .fits = FITS,
                                            .outcome = outcome[0]};
    struct opc_interval interval;
    struct opc_err err;
    assert_ok(opc_probe_fit_advantage(&results, &interval, &err), &err);
    return interval;
}

static void a_cheaper_fit_hurts_one_equation_less(void **state)
{
    (void)state;
    struct opc_interval gap = advantage_of(1.10f, 1.02f, 10);
    assert_true(gap.low > 6.9 && gap.high < 9.1 && fabs(gap.middle - 8) < 0.6);
    gap = advantage_of(1.02f, 1.10f, 10);
    assert_true(gap.high < 0 && fabs(gap.middle + 8) < 0.6);
    gap = advantage_of(1.05f, 1.05f, 10);
    assert_true(gap.low <= 0 && gap.high >= 0);
    assert_true(isnan(advantage_of(1.10f, 1.02f, 100).middle)); /* not cheaper */
}

/* Stopped in its second rule, a comparison of fits keeps the first; in its first there is nothing.
 */
static void a_stopped_comparison_of_fits_keeps_the_complete_rules(void **state)
{
    static const char ASK[] =
        "{epochs: 2, samples: 16, steps: 4, rule: [max_epochs=1, max_epochs=2]}";
    const struct runs *r = *state;
    char dir[OPC_PATH], path[OPC_PATH + 16], *text;
    struct opc_table *t;
    struct opc_err err;
    snprintf(dir, sizeof dir, "%s/stopped", (const char *)r->dir);
    stop_from = 0.5;
    assert_ok(analyse(r->whole, "probe_fit", ASK, 1, dir, &err), &err);
    snprintf(path, sizeof path, "%s/fig.csv", dir);
    assert_ok(opc_table_read(path, &t, &err), &err);
    assert_int_equal(opc_table_rows(t), 1);
    opc_table_free(t);
    snprintf(path, sizeof path, "%s/fig.json", dir);
    assert_ok(opc_file_read(path, 1000000, &text, NULL, &err), &err);
    assert_non_null(strstr(text, "STOPPED by request after 1 of 2 rules."));
    opc_free(text);
    stop_from = 0;
    assert_fails(analyse(r->whole, "probe_fit", ASK, 1, dir, &err), OPC_ESTOPPED, &err,
                 "first rule");
    stop_from = 2;
}

static void what_a_run_lacks_is_said(void **state)
{
    const struct runs *r = *state;
    char dir[OPC_PATH];
    struct opc_err err;
    snprintf(dir, sizeof dir, "%s/lacks", (const char *)r->dir);
    assert_fails(analyse(r->plain, "probe_bound", "{}", 1, dir, &err), OPC_EUSER, &err,
                 "record.snapshots");
    for (int i = 0; i < ANALYSES; i++) {
        assert_fails(analyse(r->replay, ANALYSIS[i][0], ANALYSIS[i][1], 1, dir, &err), OPC_EUSER,
                     &err, "opc.transition");
        if (i != 2) /* the newest checkpoint will do */
            assert_ok(analyse(r->plain, ANALYSIS[i][0], ANALYSIS[i][1], 1, dir, &err), &err);
    }
    assert_fails(analyse(dir, "probe_states", "{}", 1, dir, &err), OPC_EUSER, &err, dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snapshots_are_listed_and_give_policy_and_model_back),
        cmocka_unit_test(the_newest_snapshot_before_an_epoch_is_taken),
        cmocka_unit_test(loading_and_playing_survive_lack_of_memory),
        cmocka_unit_test(spread_0_is_the_mode_and_spread_1_the_policy),
        cmocka_unit_test(an_episode_is_what_policy_and_environment_make_of_its_stream),
        cmocka_unit_test(without_noise_the_corrected_model_repeats_the_recording),
        cmocka_unit_test(truth_is_what_the_environment_does_with_the_rollouts_own_actions),
        cmocka_unit_test(the_models_see_the_same_noise_from_the_same_starts),
        cmocka_unit_test(entries_have_names),
        cmocka_unit_test(the_number_of_threads_changes_no_byte),
        cmocka_unit_test(the_bound_is_made_of_its_terms_and_holds),
        cmocka_unit_test(almost_always_is_more_than_more_often),
        cmocka_unit_test(the_runs_that_would_decide_almost_always_are_counted),
        cmocka_unit_test(a_run_settles_where_it_stays_near_its_best),
        cmocka_unit_test(too_early_is_before_the_environment),
        cmocka_unit_test(claims_of_exactness_are_supported),
        cmocka_unit_test(errors_are_true_minus_predicted),
        cmocka_unit_test(fits_are_compared_on_what_the_next_epoch_recorded),
        cmocka_unit_test(a_cheaper_fit_hurts_one_equation_less),
        cmocka_unit_test(a_stopped_comparison_of_fits_keeps_the_complete_rules),
        cmocka_unit_test(what_a_run_lacks_is_said),
    };
    return cmocka_run_group_tests(tests, train_all, remove_all);
}
