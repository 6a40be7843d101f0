/* SPDX-License-Identifier: MIT */
#include "sweep/sweep.h"

#include "agent/sac.h"
#include "base/file.h"
#include "opc/mem.h"
#include "opc/train.h"
#include "sweep/schedule.h"
#include "test.h"

#include <fcntl.h>
#include <sys/file.h>

/* ---- what the tests share -------------------------------------------------------------------- */

/* Writes a file into the test's directory and returns its path, good until the next but one. */
static const char *file(void **state, const char *name, const char *text)
{
    static char path[2][OPC_PATH];
    static int turn;
    struct opc_err err;
    turn = !turn;
    snprintf(path[turn], OPC_PATH, "%s/%s", (const char *)*state, name);
    assert_ok(opc_file_write(path[turn], text, strlen(text), &err), &err);
    return path[turn];
}

static struct opc_sweep *open_tier(void **state, const char *text, const char *tier)
{
    struct opc_sweep *s;
    struct opc_err err;
    const struct opc_sweep_ask ask = {.path = file(state, "a.yaml", text), .tier = tier};
    assert_ok(opc_sweep_open(&ask, &s, &err), &err);
    return s;
}

/* The names of all tasks, a space behind each. */
static void assert_names(const struct opc_sweep *s, const char *names)
{
    struct opc_text all = {0};
    for (int i = 0; i < s->tasks; i++)
        opc_text_addf(&all, "%s ", s->task[i].name);
    assert_string_equal(opc_text_get(&all), names);
    opc_text_free(&all);
}

/* Line 0 stands for the file as a whole, or none. */
static void refused(void **state, const char *text, const char *tier, const char *set, int line,
                    const char *key)
{
    struct opc_sweep *s;
    struct opc_err err = {0};
    char *const sets[] = {(char *)set};
    const char *path = file(state, "a.yaml", text);
    const struct opc_sweep_ask ask = {.path = path, .tier = tier, .sets = set != NULL, .set = sets};
    char where[OPC_PATH + 16];
    assert_fails(opc_sweep_open(&ask, &s, &err), OPC_EUSER, &err, key);
    snprintf(where, sizeof where, "%s:%d", path, line);
    if (line)
        assert_mentions(&err, where);
}

/* ---- files that settings name ---------------------------------------------------------------- */

/* Drawing kept runs needs no log; a run that began with one is still known by all other settings.
 */
static void without_runs_a_prefill_may_be_gone(void **state)
{
    static const char TEXT[] = "train.prefill: gone.opc\nopc.horizon: 3\n"
                               "vary: {train.seed: [1]}\n";
    struct opc_look look;
    struct opc_sweep *s;
    struct opc_err err;
    struct opc_sweep_ask ask = {.path = file(state, "a.yaml", TEXT)};
    assert_fails(opc_sweep_open(&ask, &s, &err), OPC_EUSER, &err, "gone.opc");
    ask.no_runs = true;
    assert_ok(opc_sweep_open(&ask, &s, &err), &err);
    assert_string_equal(s->task[0].set.train.prefill, "gone.opc");
    assert_string_equal(s->task[0].set.train.prefill_checksum, "");
    for (int horizon = 3; horizon <= 4; horizon++) {
        struct opc_config *made;
        struct opc_text text = {0};
        char run[OPC_PATH], set[40];
        assert_ok(opc_config_create(&made, &err), &err);
        made->set = s->task[0].set;
        snprintf(set, sizeof set, "opc.horizon=%d", horizon);
        assert_ok(opc_config_set(made, set, &err), &err);
        assert_ok(opc_config_set(made, "train.prefill=/elsewhere/log.opc", &err), &err);
        assert_ok(opc_config_set(made, "train.prefill_checksum=0badcafe", &err), &err);
        opc_values_print(&made->set, &text);
        snprintf(run, sizeof run, "%s/run%d", (char *)*state, horizon);
        assert_ok(opc_make_directories(run, &err), &err);
        snprintf(run, sizeof run, "run%d/config.yaml", horizon);
        (void)file(state, run, opc_text_get(&text));
        snprintf(run, sizeof run, "%s/run%d", (char *)*state, horizon);
        opc_look(run, &s->task[0].set, &look);
        assert_int_equal(look.begun, horizon == 3);
        assert_int_equal(look.state == OPC_STATE_FOREIGN, horizon != 3);
        opc_text_free(&text);
        opc_config_destroy(made);
    }
    assert_contains(look.why, "horizon");
    opc_sweep_close(s);
}

/* ---- expansion ------------------------------------------------------------------------------- */

static void the_last_key_runs_fastest(void **state)
{
    struct opc_sweep *s = open_tier(state,
                                    "vary:\n  env.name: [cartpole, pendulum]\n"
                                    "  opc.transition: learned\n  train.seed: 3..4\n",
                                    NULL);
    assert_names(s, "cartpole_learned_s3 cartpole_learned_s4 pendulum_learned_s3 "
                    "pendulum_learned_s4 ");
    assert_string_equal(s->task[2].set.env.name, "pendulum");
    assert_int_equal(s->task[3].set.train.seed, 4);
    assert_string_equal(opc_transition_of(&s->task[0].set)->name, "learned");
    assert_string_equal(opc_task_value(s, &s->task[2], 0), "pendulum");
    /* Seeds do not make a group. */
    assert_int_equal(s->task[0].group, s->task[1].group);
    assert_int_not_equal(s->task[1].group, s->task[2].group);
    opc_sweep_close(s);
}

static void values_are_numbers_ranges_words_and_lists(void **state)
{
    struct opc_sweep *s =
        open_tier(state,
                  "vary:\n  train.seed: [1..2, 7, 1e1]\n"
                  "  sac.policy_hidden: [[64, 32], [8]]\n  sac.learning_rate: [3e-4]\n",
                  NULL);
    assert_int_equal(s->tasks, 8);
    assert_string_equal(s->task[0].name, "s1_policy-hidden-64-32_learning-rate-0.0003");
    assert_int_equal(s->task[7].set.train.seed, 10);
    const struct opc_sac_config *sac = opc_values_agent(&s->task[7].set, 0);
    assert_int_equal(sac->policy_hidden.n, 1);
    opc_sweep_close(s);
}

static void a_file_that_varies_nothing_is_one_run(void **state)
{
    struct opc_sweep *s = open_tier(state, "train.epochs: 7\ntitle: Seven epochs\n", NULL);
    assert_names(s, "run ");
    assert_string_equal(s->title, "Seven epochs");
    assert_int_equal(s->task[0].set.train.epochs, 7);
    opc_sweep_close(s);
}

static void names_are_plain_and_differ(void **state)
{
    struct opc_sweep *s = open_tier(state,
                                    "vary:\n  env.name: ['mujoco:half_cheetah', "
                                    "'mujoco/half cheetah', '../up', 'mujoco-half-cheetah']\n",
                                    NULL);
    assert_names(s, "mujoco-half-cheetah mujoco-half-cheetah-2 up mujoco-half-cheetah-3 ");
    opc_sweep_close(s);
}

static void what_is_skipped_is_left_out(void **state)
{
    static const char TEXT[] = "vary:\n  env.name: ['mujoco:hopper?angle=raw', cartpole]\n"
                               "  opc.transition: [corrected, replay]\n  train.seed: 1..2\n"
                               "skip:\n  - {env.name: '*:hopper', opc.transition: replay}\n"
                               "  - {train.seed: [2, 3], env.name: cartpole}\n"
                               "tiers:\n  tiny: {skip: [{opc.transition: replay}]}\n";
    struct opc_sweep *s = open_tier(state, TEXT, NULL);
    assert_names(s, "mujoco-hopper-angle-raw_corrected_s1 mujoco-hopper-angle-raw_corrected_s2 "
                    "cartpole_corrected_s1 cartpole_replay_s1 ");
    opc_sweep_close(s);
    s = open_tier(state, TEXT, "tiny"); /* comes on top */
    assert_int_equal(s->tasks, 3);
    opc_sweep_close(s);
}

static void the_command_line_wins_over_the_file_and_its_cells(void **state)
{
    struct opc_sweep *s;
    struct opc_err err;
    char *const set[] = {"train.epochs=9"};
    const struct opc_sweep_ask ask = {
        .path = file(state, "a.yaml",
                     "train.epochs: 3\nvary: {train.seed: 1..2}\n"
                     "when:\n  - match: {env.name: cartpole}\n    set: {train.epochs: 5}\n"
                     "tiers: {tiny: {train.epochs: 2}}\n"),
        .tier = "tiny",
        .sets = 1,
        .set = set};
    assert_ok(opc_sweep_open(&ask, &s, &err), &err);
    assert_int_equal(s->task[1].set.train.epochs, 9);
    opc_sweep_close(s);
}

/* ---- tiers ----------------------------------------------------------------------------------- */

static const char TIERS[] =
    "train: {epochs: 100, random_steps: 50}\n"
    "vary: {env.name: [cartpole, pendulum], train.seed: 1..10}\n"
    "when:\n  - match: {env.name: cartpole}\n    set: {train.epochs: 30, data.retain: 5}\n"
    "probe: {analysis: bound, cells: 81, error: b}\n"
    "figure: {panel: env.name}\n"
    "tiers:\n"
    "  smoke:\n    train: {epochs: 2}\n    opc.horizon: 3\n    vary: {train.seed: [1]}\n"
    "    probe: {cells: 5, extra: 1}\n    figure: {line: opc.transition}\n"
    "  full: {}\n";

static void a_tier_changes_settings_values_and_analysis(void **state)
{
    struct opc_sweep *s = open_tier(state, TIERS, "smoke");
    assert_names(s, "cartpole_s1 pendulum_s1 ");
    for (int i = 0; i < 2; i++) { /* a cell does not override it, but still sets the rest */
        assert_int_equal(s->task[i].set.train.epochs, 2);
        assert_int_equal(s->task[i].set.opc.horizon.at[0], 3);
        assert_int_equal(s->task[i].set.train.random_steps, 50);
        assert_int_equal(s->task[i].set.data.retain, i == 0 ? 5 : 50);
    }
    assert_string_equal(opc_yaml_find(s->probe, "analysis")->text, "bound");
    assert_string_equal(opc_yaml_find(s->probe, "cells")->text, "5");
    assert_string_equal(opc_yaml_find(s->probe, "error")->text, "b");
    assert_string_equal(opc_yaml_find(s->probe, "extra")->text, "1");
    assert_string_equal(opc_yaml_find(s->figure, "panel")->text, "env.name");
    assert_string_equal(opc_yaml_find(s->figure, "line")->text, "opc.transition");
    opc_sweep_close(s);
}

/* They come after the cells of the file and after the other settings of the tier. */
static void a_tier_has_cells_of_its_own(void **state)
{
    struct opc_sweep *s = open_tier(
        state,
        "vary: {env.name: [cartpole, pendulum]}\n"
        "when:\n  - match: {env.name: pendulum}\n    set: {train.epochs: 30, data.retain: 5}\n"
        "tiers:\n"
        "  tiny:\n    train.epochs: 2\n"
        "    when: [{match: {env.name: pendulum}, set: {train.epochs: 3}}]\n",
        "tiny");
    assert_int_equal(s->tasks, 2);
    assert_int_equal(s->task[0].set.train.epochs, 2);
    assert_int_equal(s->task[1].set.train.epochs, 3);
    assert_int_equal(s->task[1].set.data.retain, 5);
    opc_sweep_close(s);
    refused(state, "vary: {train.seed: [1, 2]}\ntiers:\n  tiny:\n    when: {train.epochs: 2}\n",
            "tiny", NULL, 4, "list of cells");
}

static void without_a_tier_the_file_is_as_it_is(void **state)
{
    struct opc_sweep *s = open_tier(state, TIERS, NULL);
    assert_int_equal(s->tasks, 20);
    assert_int_equal(s->task[0].set.train.epochs, 30);
    assert_int_equal(s->task[10].set.train.epochs, 100);
    assert_string_equal(opc_yaml_find(s->probe, "cells")->text, "81");
    opc_sweep_close(s);
    s = open_tier(state, TIERS, "full");
    assert_int_equal(s->tasks, 20);
    opc_sweep_close(s);
}

static void a_file_without_tiers_can_stand_for_all_of_them(void **state)
{
    struct opc_sweep *s;
    struct opc_err err;
    struct opc_sweep_ask ask = {.path = file(state, "a.yaml", "title: x\n"), .tier = "small"};
    assert_int_equal(opc_sweep_open(&ask, &s, &err), OPC_EUSER);
    ask.any_tier = true;
    assert_ok(opc_sweep_open(&ask, &s, &err), &err);
    assert_string_equal(s->tier, "");
    opc_sweep_close(s);
}

/* ---- contradictions -------------------------------------------------------------------------- */

static void contradictions_are_refused_with_file_and_line(void **state)
{
    refused(state, "vary:\n  train.seed: []\n", NULL, NULL, 2, "no values");
    refused(state, "vary:\n  train.seed: [1, 2,\n    1..3]\n", NULL, NULL, 3, "value 1");
    refused(state, "vary:\n  sac.learning_rate: [0.001, 1e-3]\n", NULL, NULL, 2, "value 0.001");
    refused(state, "vary:\n  sac.rate: [0.001]\n  sac.learning_rate: [0.002]\n", NULL, NULL, 3,
            "sac.rate");
    refused(state, "vary:\n  train.seed: 3..1\n", NULL, NULL, 2, "3..1");
    refused(state, "vary:\n  train.sed: 1..3\n", NULL, NULL, 2, "'seed'");
    refused(state, "vary:\n  train.seed: {a: 1}\n", NULL, NULL, 2, "list");
    refused(state, "vary: {train.seed: 1..3}\n", NULL, "train.seed=1", 1, "command line");
    refused(state, "vary: {train.seed: 1..3}\ntiers:\n  small: {train: {seed: 1}}\n", "small", NULL,
            3, "a.yaml:1");
    refused(state, "vary: {train.seed: 1..3}\ntiers:\n  small: {vary: {train.sead: 1}}\n", "small",
            NULL, 3, "train.sead");
    refused(state, "tiers:\n  small: {train: {epoch: 1}}\n", "small", NULL, 2, "epochs");
    refused(state, "tiers:\n  small: {}\n  full: {}\n", "smal", NULL, 1, "'small'");
    refused(state, "tiers:\n  small: {}\n  full: {}\n", "xyzzy", NULL, 1, "small, full");
    refused(state, "title: x\n", "small", NULL, 0, "no tiers");
    refused(state, "vary: {train.seed: 1..3}\nskip:\n  - {train.seed: '*'}\n", NULL, NULL, 0,
            "'skip'");
    refused(state, "skip:\n  - {}\n", NULL, NULL, 2, "empty");
    refused(state, "skip: {train.seed: 1}\n", NULL, NULL, 1, "skip: [{");
    refused(state, "skip:\n  - {train.seed: one}\n", NULL, NULL, 2, "train.seed = one");
    refused(state, "runs: fig13\nvary: {train.seed: 1..3}\n", NULL, NULL, 1, "a.yaml:2");
    refused(state, "runs: [a, b]\n", NULL, NULL, 1, "text");
    refused(state, "vary: {train.seed: 1..100, train.epochs: 1..100}\n", NULL, NULL, 1, "10000");
    refused(state, "model.members: 2\nvary: {model.elites: [1, 3]}\n", NULL, NULL, 0,
            "model.elites = 3");
    refused(state, "train.epochs: 1\n", NULL, "seed", 0, "section.name=value");
}

static int open_and_close(void *ctx, struct opc_err *err)
{
    struct opc_sweep *s;
    const struct opc_sweep_ask ask = {.path = ctx, .tier = "smoke"};
    const int code = opc_sweep_open(&ask, &s, err);
    if (!code)
        opc_sweep_close(s);
    return code;
}

static void opening_survives_lack_of_memory(void **state)
{
    char path[OPC_PATH];
    strcpy(path, file(state, "a.yaml", TIERS));
    assert_survives_lack_of_memory(open_and_close, path);
}

/* ---- directories ----------------------------------------------------------------------------- */

static const char TINY[] =
    "env.name: cartpole\n"
    "train: {epochs: 2, steps_per_epoch: 20, random_steps: 20, updates_per_step: 1}\n"
    "opc: {transition: replay}\nsac: {policy_hidden: [4], critic_hidden: [4], batch: 4}\n"
    "eval.episodes: 1\nvary: {train.seed: 1..2}\n";

static void train(const struct opc_task *t, const char *dir, int epochs)
{
    struct opc_config *config;
    struct opc_err err;
    const struct opc_train_plan plan = {OPC_SIZED(struct opc_train_plan), .dir = dir, .threads = 1};
    assert_ok(opc_config_create(&config, &err), &err);
    config->set = t->set;
    config->set.train.epochs = epochs;
    assert_ok(opc_train(config, &plan, &err), &err);
    opc_config_destroy(config);
}

static void a_directory_tells_how_its_run_is(void **state)
{
    struct opc_sweep *s = open_tier(state, TINY, NULL);
    char path[OPC_PATH];
    struct opc_look look;
    struct opc_err err;
    const struct opc_task *t = &s->task[0];
    opc_schedule_look(*state, t, &look);
    assert_int_equal(look.state, OPC_STATE_MISSING);

    assert_ok(opc_schedule_path(*state, t, "", path, &err), &err);
    train(t, path, 2);
    opc_schedule_look(*state, t, &look);
    assert_int_equal(look.state, OPC_STATE_DONE);
    assert_int_equal(look.epoch, 2);
    int epochs;
    assert_true(opc_look_seconds(path, &epochs) > 0);
    assert_int_equal(epochs, 2);

    /* Without its result it is interrupted, with a lock somebody is at work. */
    char result[OPC_PATH + 16], lock[OPC_PATH + 16];
    snprintf(result, sizeof result, "%s/result.json", path);
    snprintf(lock, sizeof lock, "%s/.lock", path);
    assert_int_equal(unlink(result), 0);
    opc_look(path, &t->set, &look);
    assert_int_equal(look.state, OPC_STATE_INTERRUPTED);
    assert_true(look.begun && !look.shorter);
    char name[64];
    snprintf(name, sizeof name, "%s/status.json", t->name);
    file(state, name, "{\"state\": \"diverged\", \"why\": \"NaN in epoch 1\", \"epoch\": 1}\n");
    opc_look(path, &t->set, &look);
    assert_int_equal(look.state, OPC_STATE_DIVERGED);
    assert_string_equal(look.why, "NaN in epoch 1");
    const int fd = open(lock, O_RDWR | O_CREAT, 0666);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    opc_look(path, &t->set, &look);
    assert_int_equal(look.state, OPC_STATE_RUNNING);
    close(fd);

    /* What has diverged is not even started; the other task is, by a program that makes nothing. */
    const struct opc_schedule plan = {
        .out = *state, .launcher = opc_launcher_find("local", &err), .program = "/bin/true"};
    assert_int_equal(opc_schedule_run(s, &plan, NULL, &err), OPC_EIO);
    assert_ok(opc_schedule_path(*state, t, ".log", path, &err), &err);
    assert_false(opc_file_exists(path));
    assert_ok(opc_schedule_path(*state, &s->task[1], ".log", path, &err), &err);
    assert_true(opc_file_exists(path));
    opc_sweep_close(s);
}

/* SAC's settings, to be changed. */
static struct opc_sac_config *sac_of(struct opc_task *t)
{
    struct opc_part part[OPC_PARTS_MAX];
    const int parts = opc_config_parts(&t->set, part);
    for (int i = 0; i < parts; i++)
        if (part[i].section == &opc_sac_section)
            return part[i].values;
    return NULL;
}

static void a_run_of_other_settings_is_foreign_and_stays(void **state)
{
    struct opc_sweep *s = open_tier(state, TINY, NULL);
    char path[OPC_PATH];
    struct opc_look look;
    struct opc_err err = {0};
    struct opc_task *t = &s->task[1];
    assert_ok(opc_schedule_path(*state, t, "", path, &err), &err);
    train(t, path, 2);

    sac_of(t)->batch_size = 5;
    sac_of(t)->tau = 0.5;
    opc_look(path, &t->set, &look);
    assert_int_equal(look.state, OPC_STATE_FOREIGN);
    assert_contains(look.why, "sac.batch_size");
    assert_contains(look.why, "4");
    assert_contains(look.why, "5");
    assert_contains(look.why, "1 more");
    const struct opc_schedule plan = {
        .out = *state, .launcher = opc_launcher_find("local", &err), .program = "/bin/false"};
    assert_fails(opc_schedule_run(s, &plan, NULL, &err), OPC_EUSER, &err, path);
    assert_mentions(&err, look.why);
    assert_mentions(&err, "--out");

    /* More epochs than wanted cannot be taken back, fewer can be gone on with. */
    sac_of(t)->batch_size = 4;
    sac_of(t)->tau = 0.005;
    t->set.train.epochs = 1;
    opc_look(path, &t->set, &look);
    assert_int_equal(look.state, OPC_STATE_FOREIGN);
    assert_contains(look.why, "train.epochs");
    t->set.train.epochs = 3;
    opc_look(path, &t->set, &look);
    assert_int_equal(look.state, OPC_STATE_INTERRUPTED);
    assert_true(look.shorter);
    assert_ok(opc_look_raise(path, &t->set, &err), &err);
    opc_look(path, &t->set, &look);
    assert_int_equal(look.state, OPC_STATE_INTERRUPTED);
    assert_false(look.shorter);

    /* What is no run at all is left alone, too. */
    snprintf(path, sizeof path, "%s/s1", (const char *)*state);
    assert_ok(opc_make_directories(path, &err), &err);
    file(state, "s1/thesis.txt", "years of work");
    opc_look(path, &s->task[0].set, &look);
    assert_int_equal(look.state, OPC_STATE_FOREIGN);
    assert_contains(look.why, "thesis.txt");
    opc_sweep_close(s);
}

/* ---- scheduling with other programs than ours ------------------------------------------------ */

static void a_job_that_crashes_is_tried_again_three_times(void **state)
{
    struct opc_sweep *s = open_tier(state, TINY, NULL);
    struct opc_err err = {0};
    struct opc_tally tally;
    char script[OPC_PATH], log[OPC_PATH], *text, out[OPC_PATH];
    strcpy(script, file(state, "crash", "#!/bin/sh\necho crashing\nkill -9 $$\n"));
    assert_int_equal(chmod(script, 0700), 0);
    snprintf(out, sizeof out, "%s/runs", (const char *)*state);
    const struct opc_schedule plan = {
        .out = out, .jobs = 1, .launcher = opc_launcher_find("local", &err), .program = script};
    assert_fails(opc_schedule_run(s, &plan, &tally, &err), OPC_EIO, &err, "2 of 2");
    assert_mentions(&err, "s2 (exit status 137)");
    assert_mentions(&err, out);
    assert_int_equal(tally.failed, 2);
    assert_int_equal(tally.done, 0);
    assert_ok(opc_schedule_path(out, &s->task[1], ".log", log, &err), &err);
    assert_ok(opc_file_read(log, 1000, &text, NULL, &err), &err);
    assert_string_equal(text, "crashing\ncrashing\ncrashing\ncrashing\n");
    opc_free(text);
    struct opc_look look;
    opc_schedule_look(out, &s->task[1], &look);
    assert_int_equal(look.state, OPC_STATE_FAILED);
    assert_string_equal(look.why, "crashing");
    opc_sweep_close(s);
}

static void divergence_is_not_tried_again(void **state)
{
    struct opc_sweep *s = open_tier(state, TINY, NULL);
    struct opc_err err = {0};
    char script[OPC_PATH], log[OPC_PATH], *text;
    strcpy(script, file(state, "diverge", "#!/bin/sh\necho once\nexit 4\n"));
    assert_int_equal(chmod(script, 0700), 0);
    const struct opc_schedule plan = {
        .out = *state, .launcher = opc_launcher_find("local", &err), .program = script};
    assert_int_equal(opc_schedule_run(s, &plan, NULL, &err), OPC_EIO);
    assert_ok(opc_schedule_path(*state, &s->task[0], ".log", log, &err), &err);
    assert_ok(opc_file_read(log, 1000, &text, NULL, &err), &err);
    assert_string_equal(text, "once\n");
    opc_free(text);
    opc_sweep_close(s);
}

static int stop_at_once(void *ctx)
{
    int *asked = ctx;
    return ++*asked > 3 ? 2 : *asked > 2 ? 1 : 0;
}

/* The first request is a SIGINT, which these jobs ignore; the second is not to be ignored. */
static void the_second_stop_ends_what_ignores_the_first(void **state)
{
    struct opc_sweep *s = open_tier(state, TINY, NULL);
    struct opc_err err = {0};
    struct opc_tally tally;
    int asked = 0;
    char script[OPC_PATH];
    strcpy(script, file(state, "deaf", "#!/bin/sh\ntrap '' INT\nwhile :; do sleep 1; done\n"));
    assert_int_equal(chmod(script, 0700), 0);
    const struct opc_schedule plan = {.out = *state,
                                      .launcher = opc_launcher_find("local", &err),
                                      .program = script,
                                      .stops = stop_at_once,
                                      .ctx = &asked};
    assert_fails(opc_schedule_run(s, &plan, &tally, &err), OPC_ESTOPPED, &err, "0 of 2");
    assert_int_equal(tally.running, 0);
    opc_sweep_close(s);
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(without_runs_a_prefill_may_be_gone),
        IN_DIR(the_last_key_runs_fastest),
        IN_DIR(values_are_numbers_ranges_words_and_lists),
        IN_DIR(a_file_that_varies_nothing_is_one_run),
        IN_DIR(names_are_plain_and_differ),
        IN_DIR(what_is_skipped_is_left_out),
        IN_DIR(the_command_line_wins_over_the_file_and_its_cells),
        IN_DIR(a_tier_changes_settings_values_and_analysis),
        IN_DIR(a_tier_has_cells_of_its_own),
        IN_DIR(without_a_tier_the_file_is_as_it_is),
        IN_DIR(a_file_without_tiers_can_stand_for_all_of_them),
        IN_DIR(contradictions_are_refused_with_file_and_line),
        IN_DIR(opening_survives_lack_of_memory),
        IN_DIR(a_directory_tells_how_its_run_is),
        IN_DIR(a_run_of_other_settings_is_foreign_and_stays),
        IN_DIR(a_job_that_crashes_is_tried_again_three_times),
        IN_DIR(divergence_is_not_tried_again),
        IN_DIR(the_second_stop_ends_what_ignores_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
