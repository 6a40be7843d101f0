/* SPDX-License-Identifier: MIT */
/* The loop through the library: what it does when, and that it survives what a machine may do to
 * it. Kills, damage and the two threads are tests/program/train.sh's. */
#include "run/run.h"

#include "base/file.h"
#include "opc/mem.h"
#include "opc/train.h"
#include "run/files/episodes_file.h"
#include "runs.h"

static const char *const TINY[] = {
    "train.epochs=2",        "train.steps_per_epoch=20",
    "train.random_steps=30", "train.updates_per_step=1",
    "opc.transitions=100",   "opc.horizon=3",
    "model.members=2",       "model.elites=1",
    "model.hidden=[8]",      "model.weight_decay=1e-5",
    "model.max_epochs=2",    "sac.policy_hidden=[8]",
    "sac.critic_hidden=[8]", "sac.batch_size=16",
    "eval.episodes=1",       "data.retain=1",
};

static int tiny(const char *more, struct opc_config **out, struct opc_err *err)
{
    struct opc_config *config = NULL;
    int code = opc_config_create(&config, err);
    for (size_t i = 0; i < sizeof TINY / sizeof *TINY && !code; i++)
        code = opc_config_set(config, TINY[i], err);
    if (!code && more)
        code = opc_config_set(config, more, err);
    if (code)
        opc_config_destroy(config);
    else
        *out = config;
    return code;
}

/* ---- what happens when ----------------------------------------------------------------------- */

static void keep(void *ctx, const struct opc_progress *p)
{
    if (p->epoch_done)
        *(struct opc_progress *)ctx = *p;
}

static void a_run_without_a_directory_trains_and_tells(void **state)
{
    (void)state;
    struct opc_progress end = {0};
    struct opc_config *config = NULL;
    struct opc_err err;
    const struct opc_train_plan plan = {OPC_SIZED(struct opc_train_plan), .threads = 1,
                                        .progress = keep, .ctx = &end};
    assert_ok(tiny(NULL, &config, &err), &err);
    assert_ok(opc_train(config, &plan, &err), &err);
    assert_int_equal(end.epoch, 2);
    assert_int_equal(end.env_steps, 40);
    assert_true(end.total_steps >= 70);
    assert_true(end.eval_return >= 1);
    assert_true(end.model_error > 0);
    opc_config_destroy(config);
}

static double metric(const char *dir, const char *name)
{
    return test_metric(dir, 0, name);
}

static void train_in(const char *dir, const char *const set[])
{
    struct opc_config *config = NULL;
    struct opc_err err;
    assert_ok(tiny(NULL, &config, &err), &err);
    for (int i = 0; set[i]; i++)
        assert_ok(opc_config_set(config, set[i], &err), &err);
    const struct opc_train_plan plan = {OPC_SIZED(struct opc_train_plan), .dir = dir, .threads = 1};
    assert_ok(opc_train(config, &plan, &err), &err);
    opc_config_destroy(config);
}

static void the_papers_loop_does_everything_once_an_epoch(void **state)
{
    char dir[OPC_PATH];
    snprintf(dir, sizeof dir, "%s/run", (const char *)*state);
    train_in(dir, (const char *const[]){NULL});
    assert_true(metric(dir, "epoch") == 2);
    assert_true(metric(dir, "fits") == 1);
    assert_true(metric(dir, "updates") == 20);
    /* The episode was cut: all steps are recorded, and each epoch has exactly its steps. */
    assert_true(metric(dir, "recorded") == metric(dir, "total_steps"));
    assert_true(metric(dir, "env_steps") == 40);
    assert_true(metric(dir, "rollout_length") <= 3);
    assert_true(metric(dir, "imagined") >= 100 && metric(dir, "imagined") < 103);
    assert_true(metric(dir, "learned_1") > 0 && metric(dir, "corrected_1") > 0);
}

/* Whether two runs imagined the same in their first epoch, to the bit. */
static bool imagined_alike(const char *dir, const char *other)
{
    enum { HEAD = 48 }; /* of a file of a checkpoint: it names the settings */
    const char *const of[2] = {dir, other};
    char path[OPC_PATH], *text[2];
    size_t size[2];
    struct opc_err err;
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/checkpoints/imagined-000001.opc", of[i]);
        assert_ok(opc_file_read(path, 1000000, &text[i], &size[i], &err), &err);
        assert_true(size[i] > HEAD);
    }
    const bool alike =
        size[0] == size[1] && memcmp(text[0] + HEAD, text[1] + HEAD, size[0] - HEAD) == 0;
    opc_free(text[0]);
    opc_free(text[1]);
    return alike;
}

static void rounds_share_the_work_and_each_imagines_with_the_policy_so_far(void **state)
{
    char once[OPC_PATH], rounds[OPC_PATH];
    for (int still = 0; still < 2; still++) {
        const char *rate = still ? "sac.learning_rate=1e-30" : "sac.learning_rate=3e-4";
        snprintf(once, sizeof once, "%s/once-%d", (const char *)*state, still);
        snprintf(rounds, sizeof rounds, "%s/rounds-%d", (const char *)*state, still);
        train_in(once, (const char *const[]){"train.epochs=1", "opc.rollouts=30", rate, NULL});
        train_in(rounds, (const char *const[]){"train.epochs=1", "opc.rollouts=30", rate,
                                               "train.rounds=4", NULL});
        assert_true(metric(rounds, "fits") == 1);
        assert_true(metric(rounds, "updates") == 20);
        assert_true(metric(rounds, "rollouts") == 30);
        /* Starts and noise are those of one round: only another policy makes a difference. */
        assert_int_equal(imagined_alike(once, rounds), still);
    }
}

static void the_original_loop_fits_before_and_improves_after_each_step(void **state)
{
    char dir[OPC_PATH];
    snprintf(dir, sizeof dir, "%s/run", (const char *)*state);
    train_in(dir, (const char *const[]){"train.fit_every=5", "train.simulate_every=5",
                                        "train.improve_every=1", "train.fit_first=true",
                                        "train.reset_each_epoch=false", "opc.transition=learned",
                                        "opc.rollouts=10", "opc.horizon=[0, 2, 1, 3]",
                                        "data.forget=steps", "data.real_ratio=0.05", NULL});
    assert_true(metric(dir, "fits") == 4);
    assert_true(metric(dir, "rollouts") == 40);
    assert_true(metric(dir, "updates") == 20);
    assert_true(metric(dir, "horizon") == 2); /* in epoch 1, counted from 0 */
    /* First in, first out: as many as full rollouts of this horizon would make, at most. */
    assert_true(metric(dir, "imagined") <= 2 * 10 * 4);
    /* What runs on is not recorded yet. */
    assert_true(metric(dir, "recorded") < metric(dir, "total_steps"));
}

/* What is imagined before the first step of an epoch does not depend on how many come; what is
 * imagined behind them does. */
static void fit_first_comes_before_the_steps(void **state)
{
    static const char *const first[] = {"train.fit_first=true", "train.fit_first=false"};
    static const char *const steps[] = {"train.steps_per_epoch=20", "train.steps_per_epoch=10"};
    char dir[4][OPC_PATH];
    for (int i = 0; i < 4; i++) {
        snprintf(dir[i], sizeof dir[i], "%s/run%d", (const char *)*state, i);
        train_in(dir[i], (const char *const[]){first[i / 2], steps[i % 2], "train.epochs=1",
                                               "opc.rollouts=10", NULL});
    }
    assert_true(imagined_alike(dir[0], dir[1]));
    assert_false(imagined_alike(dir[2], dir[3]));
}

static void replay_is_sac_without_a_model(void **state)
{
    char dir[OPC_PATH];
    snprintf(dir, sizeof dir, "%s/run", (const char *)*state);
    train_in(dir, (const char *const[]){"opc.transition=replay", "train.improve_every=1",
                                        "train.learning_starts=50", NULL});
    assert_true(metric(dir, "fits") == 0);
    assert_true(metric(dir, "rollouts") == 0);
    assert_true(metric(dir, "imagined") == 0);
    assert_true(isnan(metric(dir, "learned_1")));
    assert_true(metric(dir, "updates") > 0);
}

static void no_update_comes_before_enough_is_recorded(void **state)
{
    char dir[OPC_PATH];
    snprintf(dir, sizeof dir, "%s/run", (const char *)*state);
    train_in(dir, (const char *const[]){"train.learning_starts=1000", NULL});
    assert_true(metric(dir, "updates") == 0);
    assert_true(isnan(metric(dir, "q")));
}

static void imagined_data_can_be_emptied_before_each_simulation(void **state)
{
    char dir[OPC_PATH];
    snprintf(dir, sizeof dir, "%s/run", (const char *)*state);
    train_in(dir, (const char *const[]){"data.reset=true", "data.retain=50",
                                        "train.simulate_every=10", "train.fit_every=10", NULL});
    assert_true(metric(dir, "imagined") < 103);
    assert_true(metric(dir, "rollouts") * 3 >= 200);
}

static void an_evaluation_need_not_come_every_epoch(void **state)
{
    char dir[OPC_PATH];
    snprintf(dir, sizeof dir, "%s/run", (const char *)*state);
    train_in(dir, (const char *const[]){"eval.every=3", "train.epochs=4", NULL});
    assert_true(isnan(test_metric(dir, 1, "eval_return")));
    assert_true(isnan(test_metric(dir, 2, "eval_return")));
    assert_true(test_metric(dir, 3, "eval_return") >= 1);
    assert_true(test_metric(dir, 4, "eval_return") >= 1); /* the last is always evaluated */
}

/* ---- the policy afterwards ------------------------------------------------------------------- */

static void the_policy_of_a_run_can_be_loaded_and_evaluated(void **state)
{
    char dir[OPC_PATH];
    struct opc_agent *agent;
    struct opc_evaluation e = {OPC_SIZED(struct opc_evaluation)},
                          again = {OPC_SIZED(struct opc_evaluation)};
    struct opc_err err;
    float s[4] = {0.01f, -0.02f, 0, 0.1f}, a;
    double returns[3];
    snprintf(dir, sizeof dir, "%s/run", (const char *)*state);
    train_in(dir, (const char *const[]){NULL});
    assert_ok(opc_policy_load(dir, &agent, &err), &err);
    opc_agent_act(agent, 1, s, false, NULL, &a);
    assert_true(a >= -1 && a <= 1);
    opc_agent_destroy(agent);
    assert_ok(opc_evaluate_run(dir, 3, 9, false, 1, &e, returns, &err), &err);
    assert_ok(opc_evaluate_run(dir, 3, 9, false, 2, &again, NULL, &err), &err);
    assert_int_equal(e.episodes, 3);
    assert_int_equal(again.episodes, 3);
    assert_same_bits(&e.mean, &again.mean, sizeof e - offsetof(struct opc_evaluation, mean));
    assert_true(fabs(e.mean - (returns[0] + returns[1] + returns[2]) / 3) < 1e-9);
    assert_true(e.min <= e.mean && e.mean <= e.max);
}

/* The settings of a planner, and of one that is corrected by recordings. */
#define PLANNER                                                                                    \
    "train.agent=pets", "train.fit_first=true", "pets.horizon=4", "pets.population=10",            \
        "pets.elites=3", "pets.iterations=2", "pets.particles=2"

/* A directory and its policy.opc alone act alike, in an episode as well, and the evaluation is that
 * of the run while both plan by eq. 2. */
static void the_policy_of_a_planner_is_its_model(void **state)
{
    char dir[OPC_PATH], file[OPC_PATH];
    struct opc_agent *agent[2];
    struct opc_episode_state *memory[2];
    struct opc_err err;
    const float s[4] = {0.01f, -0.02f, 0, 0.1f};
    float a[2][3];
    snprintf(dir, sizeof dir, "%s/run", (const char *)*state);
    snprintf(file, sizeof file, "%s/run/policy.opc", (const char *)*state);
    train_in(dir, (const char *const[]){PLANNER, "opc.transition=learned", NULL});
    assert_true(metric(dir, "updates") == 20 && metric(dir, "imagined") == 0);
    assert_true(metric(dir, "plan_iterations") == 2 && isnan(metric(dir, "plan_uncorrected")));
    assert_true(metric(dir, "learned_1") > 0 && metric(dir, "corrected_1") > 0);
    for (int i = 0; i < 2; i++) {
        assert_ok(opc_policy_load(i ? file : dir, &agent[i], &err), &err);
        assert_ok(opc_episode_state_create(agent[i], &memory[i], &err), &err);
        opc_episode_state_begin(memory[i], 5, 0, 2);
        for (int t = 0; t < 3; t++) {
            opc_agent_act_in(agent[i], memory[i], s, false, NULL, &a[i][t]);
            assert_true(a[i][t] >= -1 && a[i][t] <= 1);
        }
        opc_episode_state_destroy(memory[i]);
        opc_agent_destroy(agent[i]);
    }
    assert_same_bits(a[0], a[1], sizeof a[0]);
    assert_true(a[0][0] != a[0][1]); /* the second starts from the plan of the first */
}

/* The random phase lasts one epoch, and the window is the last one: what was recorded is long
 * enough for 4 steps, and no episode of the task is long enough for 2000. */
static void a_planner_says_how_much_of_its_plans_is_corrected(void **state)
{
    char dir[OPC_PATH];
    snprintf(dir, sizeof dir, "%s/run", (const char *)*state);
    train_in(dir, (const char *const[]){PLANNER, "opc.transition=corrected",
                                        "opc.reference_epochs=1", NULL});
    assert_true(metric(dir, "plan_uncorrected") == 0);
    test_remove(dir);
    train_in(dir, (const char *const[]){PLANNER, "opc.transition=corrected", "pets.horizon=100",
                                        "train.epochs=1", NULL});
    assert_true(metric(dir, "plan_uncorrected") > 0.5 && metric(dir, "plan_uncorrected") < 1);
}

/* The rewards of imagined steps are the task's: cartpole pays 1, so a plan of 4 steps is worth 4 if
 * it does not fall, whatever an unfitted model says. */
static void a_given_reward_is_not_learned(void **state)
{
    char dir[OPC_PATH];
    snprintf(dir, sizeof dir, "%s/run", (const char *)*state);
    train_in(dir, (const char *const[]){PLANNER, "opc.transition=learned", "model.reward=given",
                                        "train.epochs=1", NULL});
    const double worth = metric(dir, "plan_return");
    assert_true(worth >= 1 && worth <= 4);
    test_remove(dir);
    /* And in the rollouts that an agent learns from. */
    train_in(dir, (const char *const[]){"model.reward=given", NULL});
    assert_true(metric(dir, "reward_min") == 1 && metric(dir, "reward_max") == 1);
}

/* Whole episodes of random actions on pendulum, for train.prefill. */
static void write_log(const char *path, int episodes)
{
    struct opc_env *env = NULL;
    struct opc_episodes *log = NULL;
    struct opc_err err;
    assert_ok(opc_env_open("pendulum", &env, &err), &err);
    assert_ok(opc_episodes_create(3, 1, episodes * env->steps, episodes, &log, &err), &err);
    for (int b = 0; b < episodes; b++) {
        struct opc_rng r = opc_rng_stream(5, OPC_USE_TEST, 0, (uint32_t)b);
        double s[3];
        struct opc_outcome out = {.obs = s};
        assert_ok(opc_env_reset(env, &r, s, &err), &err);
        assert_ok(opc_episodes_begin(log, s, &err), &err);
        while (!out.terminated && !out.truncated) {
            const float a = 2 * opc_rng_unit(&r) - 1;
            double action;
            opc_env_scale(env, &a, &action);
            assert_ok(opc_env_step(env, &action, &out, &err), &err);
            assert_ok(opc_episodes_append(log, &a, out.reward, s, out.terminated, &err), &err);
        }
        opc_episodes_close(log);
    }
    assert_int_equal(opc_episodes_steps(log), episodes * env->steps);
    assert_ok(opc_episodes_file_save(path, log, 0, env, &err), &err);
    opc_episodes_destroy(log);
    opc_env_close(env);
}

/* No episode ends in the first epoch, so that a window of one epoch reaches back to what the run
 * began with: three episodes of 200 steps. It is all of the past, then. */
static void a_window_holds_all_that_a_run_began_with(void **state)
{
    char log[OPC_PATH], set[OPC_PATH + 20], window[OPC_PATH], all[OPC_PATH];
    snprintf(log, sizeof log, "%s/log.opc", (const char *)*state);
    snprintf(set, sizeof set, "train.prefill=%s", log);
    snprintf(window, sizeof window, "%s/window", (const char *)*state);
    snprintf(all, sizeof all, "%s/all", (const char *)*state);
    write_log(log, 3);
    train_in(window, (const char *const[]){"env.name=pendulum", set, "train.epochs=1",
                                           "train.reset_each_epoch=false", NULL});
    train_in(all,
             (const char *const[]){"env.name=pendulum", set, "train.epochs=1",
                                   "train.reset_each_epoch=false", "opc.reference_epochs=0", NULL});
    assert_true(metric(window, "recorded") == 600 && metric(window, "imagined") >= 100);
    assert_true(imagined_alike(window, all));
    assert_true(metric(window, "eval_return") == metric(all, "eval_return"));
}

/* ---- faults ---------------------------------------------------------------------------------- */

struct place {
    const char *dir;
    struct opc_config *config;
};

static int whole_run(void *ctx, struct opc_err *err)
{
    const struct place *p = ctx;
    const struct opc_train_plan plan = {OPC_SIZED(struct opc_train_plan), .dir = p->dir,
                                        .threads = 1};
    test_remove(p->dir);
    return opc_train(p->config, &plan, err);
}

static void a_run_survives_lack_of_memory(void **state)
{
    char dir[OPC_PATH];
    struct opc_err err;
    snprintf(dir, sizeof dir, "%s/run", (const char *)*state);
    struct place p = {.dir = dir};
    assert_ok(tiny("train.epochs=1", &p.config, &err), &err);
    assert_survives_lack_of_memory(whole_run, &p);
    opc_config_destroy(p.config);
}

/* A failure is reported, except where the log cannot be written: that does not end a run. */
static void a_run_survives_files_that_fail(void **state)
{
    char dir[OPC_PATH];
    struct opc_err err = {0};
    int swallowed = 0;
    snprintf(dir, sizeof dir, "%s/run", (const char *)*state);
    struct place p = {.dir = dir};
    assert_ok(tiny("train.epochs=1", &p.config, &err), &err);
    for (long k = 1;; k++) {
        err = (struct opc_err){0};
        opc_fault_system(k);
        const int code = whole_run(&p, &err);
        const bool all_tried = opc_fault_pending();
        opc_fault_system(0);
        swallowed += code == OPC_OK && !all_tried;
        assert_true(code == OPC_OK || (err.code == (enum opc_code)code && *err.text));
        if (all_tried)
            break;
    }
    assert_true(swallowed <= 3);
    opc_config_destroy(p.config);
}

static int resume(void *ctx, struct opc_err *err)
{
    const struct place *p = ctx;
    const struct opc_train_plan plan = {OPC_SIZED(struct opc_train_plan), .dir = p->dir,
                                        .resume = true, .threads = 1};
    return opc_train(p->config, &plan, err);
}

/* Whatever fails while a run is brought back, the checkpoint is still there for the next try. */
static void a_resumed_run_survives_lack_of_memory(void **state)
{
    char dir[OPC_PATH];
    struct opc_err err;
    snprintf(dir, sizeof dir, "%s/run", (const char *)*state);
    struct place p = {.dir = dir};
    assert_ok(tiny("train.reset_each_epoch=false", &p.config, &err), &err);
    assert_ok(whole_run(&p, &err), &err);
    assert_survives_lack_of_memory(resume, &p);
    opc_config_destroy(p.config);
}

static bool at_once(void *ctx)
{
    return ++*(int *)ctx > 5;
}

static void a_stopped_run_says_so(void **state)
{
    (void)state;
    struct opc_config *config = NULL;
    struct opc_err err;
    int asked = 0;
    assert_ok(tiny(NULL, &config, &err), &err);
    const struct opc_train_plan plan = {OPC_SIZED(struct opc_train_plan), .threads = 1,
                                        .stop = at_once, .ctx = &asked};
    assert_int_equal(opc_train(config, &plan, &err), OPC_ESTOPPED);
    opc_config_destroy(config);
}

#define WITH_DIR(test) cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)

int main(void)
{
    /* Thousands of files that are synced: memory is the better place for them. */
    if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_without_a_directory_trains_and_tells),
        WITH_DIR(the_papers_loop_does_everything_once_an_epoch),
        WITH_DIR(rounds_share_the_work_and_each_imagines_with_the_policy_so_far),
        WITH_DIR(the_original_loop_fits_before_and_improves_after_each_step),
        WITH_DIR(fit_first_comes_before_the_steps),
        WITH_DIR(replay_is_sac_without_a_model),
        WITH_DIR(no_update_comes_before_enough_is_recorded),
        WITH_DIR(imagined_data_can_be_emptied_before_each_simulation),
        WITH_DIR(an_evaluation_need_not_come_every_epoch),
        WITH_DIR(the_policy_of_a_run_can_be_loaded_and_evaluated),
        WITH_DIR(the_policy_of_a_planner_is_its_model),
        WITH_DIR(a_planner_says_how_much_of_its_plans_is_corrected),
        WITH_DIR(a_given_reward_is_not_learned),
        WITH_DIR(a_window_holds_all_that_a_run_began_with),
        WITH_DIR(a_run_survives_lack_of_memory),
        WITH_DIR(a_run_survives_files_that_fail),
        WITH_DIR(a_resumed_run_survives_lack_of_memory),
        cmocka_unit_test(a_stopped_run_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
