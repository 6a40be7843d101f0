/* SPDX-License-Identifier: MIT */
#include "agent/ppo.h"
#include "agent/sac.h"
#include "run/config/config.h"

#include "base/file.h"
#include "opc/mem.h"
#include "test.h"

/* Writes a file into the test's directory and returns its path. */
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

static struct opc_config *load(const char *path)
{
    struct opc_config *config;
    struct opc_err err;
    assert_ok(opc_config_load(path, &config, &err), &err);
    return config;
}

static void set(struct opc_config *config, const char *assignment)
{
    struct opc_err err;
    assert_ok(opc_config_set(config, assignment, &err), &err);
}

static void refused(void **state, const char *text, int line, const char *key)
{
    struct opc_config *config;
    struct opc_err err = {0};
    const char *path = file(state, "bad.yaml", text);
    char where[OPC_PATH + 16];
    snprintf(where, sizeof where, "%s:%d:", path, line);
    assert_fails(opc_config_load(path, &config, &err), OPC_EUSER, &err, where);
    assert_mentions(&err, key);
}

static void the_defaults_are_the_papers_loop(void **state)
{
    (void)state;
    struct opc_config *config;
    struct opc_err err;
    assert_ok(opc_config_create(&config, &err), &err);
    assert_ok(opc_config_check(config, &err), &err);
    const struct opc_values *v = &config->set;
    assert_string_equal(opc_transition_of(v)->name, "corrected");
    assert_true(v->train.reset_each_epoch && !v->train.fit_first);
    assert_int_equal(opc_every(v, v->train.fit_every), 1000);
    assert_int_equal(opc_updates(v), 20000);
    assert_int_equal(opc_horizon(v, 0), 10);
    assert_true(v->data.real_ratio == 0);
    opc_config_destroy(config);
}

static void both_ways_to_write_a_setting_mean_the_same(void **state)
{
    const char *path = file(state, "a.yaml",
                            "train: {epochs: 7}\nsac.discount: 0.9\n"
                            "model:\n  hidden: [10, 20]\n");
    struct opc_config *config = load(path);
    assert_int_equal(config->set.train.epochs, 7);
    assert_true(((const struct opc_sac_config *)opc_values_agent(&config->set, 0))->discount ==
                0.9);
    assert_int_equal(config->set.model.hidden.n, 2);
    assert_int_equal(config->set.model.hidden.at[1], 20);
    set(config, "model.hidden=[30]");
    assert_int_equal(config->set.model.hidden.at[0], 30);
    opc_config_destroy(config);
}

static void the_later_of_two_places_wins(void **state)
{
    file(state, "inner.yaml",
         "train: {epochs: 1, seed: 1, random_steps: 1}\n"
         "when:\n"
         "  - match: {env.name: '*:hopper'}\n"
         "    set: {train.seed: 2, train.random_steps: 2}\n");
    const char *path = file(state, "outer.yaml",
                            "train: {random_steps: 3}\n"
                            "include: inner.yaml\n" /* wherever it stands */
                            "when:\n"
                            "  - match: {env.name: '*:hopper'}\n"
                            "    set: {train.fit_every: 4}\n");
    struct opc_config *config = load(path);
    const struct opc_train_config *t = &config->set.train;
    assert_int_equal(t->epochs, 1);
    assert_int_equal(t->seed, 1); /* the cell does not apply */
    assert_int_equal(t->random_steps, 3);
    assert_int_equal(t->fit_every, 0);
    /* A cell looks at the values as they are in the end. */
    set(config, "env.name=mujoco:hopper?angle=raw");
    assert_int_equal(t->seed, 2);
    assert_int_equal(t->random_steps, 3); /* the including file is later than the cell */
    assert_int_equal(t->fit_every, 4);
    set(config, "train.fit_every=5");
    assert_int_equal(t->fit_every, 5);
    set(config, "env.name=cartpole");
    assert_int_equal(t->seed, 1);
    assert_int_equal(t->fit_every, 5);
    opc_config_destroy(config);
}

/* A pattern without wildcards is a value, however it is written. */
static void a_cell_looks_at_values_not_at_their_spelling(void **state)
{
    static const char *const SPELT[] = {"sac.learning_rate: 3e-4",
                                        "opc.sample: yes",
                                        "train.epochs: 1e2",
                                        "opc.horizon: 10",
                                        "opc.horizon: '[10]'",
                                        "opc.horizon: [10]",
                                        "sac.learning_rate: [1, 0.0003]"};
    for (size_t i = 0; i < sizeof SPELT / sizeof *SPELT; i++) {
        char text[200];
        snprintf(text, sizeof text, "when:\n  - {match: {%s}, set: {data.retain: 5}}\n", SPELT[i]);
        struct opc_config *config = load(file(state, "a.yaml", text));
        assert_int_equal(config->set.data.retain, 5);
        set(config, "sac.learning_rate=1e-4");
        set(config, "opc.sample=false");
        set(config, "train.epochs=7");
        set(config, "opc.horizon=9");
        assert_int_equal(config->set.data.retain, 50);
        opc_config_destroy(config);
    }
}

static void a_cell_applies_when_all_its_conditions_hold(void **state)
{
    const char *path =
        file(state, "a.yaml",
             "when:\n"
             "  - match: {env.name: ['*:hopper', '*:ant*'], opc.transition: learned}\n"
             "    set: {data.retain: 5}\n");
    struct opc_config *config = load(path);
    assert_int_equal(config->set.data.retain, 50);
    set(config, "env.name=bullet:ant_truncated_obs");
    assert_int_equal(config->set.data.retain, 50);
    set(config, "opc.transition=learned");
    assert_int_equal(config->set.data.retain, 5);
    set(config, "env.name=bullet:walker2d");
    assert_int_equal(config->set.data.retain, 50);
    opc_config_destroy(config);
}

static void mistakes_are_refused_with_file_line_and_the_nearest_name(void **state)
{
    refused(state, "train:\n  epoch: 1\n", 2, "'epochs'");
    refused(state, "\ntrian.epochs: 1\n", 2, "'train.epochs'");
    refused(state, "epochs: 1\n", 1, "'train.epochs'");
    refused(state, "include: {}\n", 1, "include");
    refused(state, "train: {epochs: {a: 1}}\n", 1, "epochs");
    refused(state, "model.hidden: [[1]]\n", 1, "model.hidden");
}

static void mistakes_in_cells_are_found_whether_or_not_they_apply(void **state)
{
    static const char SHAPE[] = "{match:"; /* how a cell is written */
    refused(state, "when:\n  - {match: {env.name: nothing}, set: {train.epochs: x}}\n", 2,
            "train.epochs = x");
    refused(state, "when:\n  - {match: {env.nam: x}, set: {}}\n", 2, "'nam'");
    refused(state, "when:\n  - {match: {train.seed: x}, set: {}}\n", 2, "train.seed = x");
    refused(state, "when:\n  - {match: {}}\n", 2, SHAPE);
    refused(state, "when:\n  - {match: {}, set: {}, or: {}}\n", 2, SHAPE);
    refused(state, "when:\n  - 3\n", 2, SHAPE);
    refused(state, "when: 3\n", 1, "when");
}

/* Otherwise the order of cells would decide, and there might be no answer at all. */
static void a_cell_cannot_set_what_decides_about_cells(void **state)
{
    struct opc_config *config;
    struct opc_err err = {0};
    const char *path = file(state, "a.yaml",
                            "when:\n"
                            "  - {match: {train.seed: 1}, set: {train.epochs: 2}}\n"
                            "  - {match: {train.epochs: 2}, set: {train.seed: 3}}\n");
    assert_fails(opc_config_load(path, &config, &err), OPC_EUSER, &err, "a.yaml:2:");
    assert_mentions(&err, "train.epochs");
    assert_mentions(&err, "a.yaml:3");
}

static void a_file_that_includes_itself_is_refused(void **state)
{
    struct opc_config *config;
    struct opc_err err = {0};
    file(state, "b.yaml", "include: [c.yaml]\n");
    const char *path = file(state, "c.yaml", "include: b.yaml\n");
    assert_fails(opc_config_load(path, &config, &err), OPC_EUSER, &err, "c.yaml");
    assert_mentions(&err, "itself");
    path = file(state, "d.yaml", "\ninclude: nowhere.yaml\n");
    assert_fails(opc_config_load(path, &config, &err), OPC_EUSER, &err, "d.yaml:2:");
    assert_mentions(&err, "nowhere.yaml");
}

static void a_refused_setting_changes_nothing(void **state)
{
    (void)state;
    struct opc_config *config;
    struct opc_err err;
    char *before, *after;
    static const char *const BAD[] = {"train.epochs=0", "train.epochs",  "=3",
                                      "x.y=3",          "env.name=a\nb", "env.name=\xff"};
    assert_ok(opc_config_create(&config, &err), &err);
    assert_ok(opc_config_print(config, &before, &err), &err);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        assert_int_equal(opc_config_set(config, BAD[i], &err), OPC_EUSER);
    assert_ok(opc_config_print(config, &after, &err), &err);
    assert_string_equal(before, after);
    opc_free(before);
    opc_free(after);
    opc_config_destroy(config);
}

static void what_is_printed_is_read_back_to_the_same(void **state)
{
    static const char *const SET[] = {
        "env.name=process:./my env \"x\" \xc3\xa4?a=1&b=2",
        "opc.horizon=[20, 150, 1, 15]",
        "sac.learning_rate=0.1234567890123456789",
        "model.weight_decay=1e-5,3.3333333333333333e-5",
        "opc.transition=replay",
        "sac.target_entropy=-3.5",
        "train.reset_each_epoch=no",
    };
    struct opc_config *config;
    struct opc_err err;
    char *first, *second, *value;
    assert_ok(opc_config_create(&config, &err), &err);
    for (size_t i = 0; i < sizeof SET / sizeof *SET; i++)
        set(config, SET[i]);
    assert_ok(opc_config_print(config, &first, &err), &err);
    struct opc_config *again = load(file(state, "printed.yaml", first));
    assert_ok(opc_config_print(again, &second, &err), &err);
    assert_string_equal(first, second);
    assert_same_bits(&config->set, &again->set, sizeof config->set);
    assert_int_equal(opc_config_hash(&config->set), opc_config_hash(&again->set));
    assert_ok(opc_config_get(again, "env.name", &value, &err), &err);
    assert_string_equal(value, SET[0] + strlen("env.name="));
    assert_int_equal(opc_config_get(again, "env.nome", &value, &err), OPC_EUSER);
    opc_free(first);
    opc_free(second);
    opc_free(value);
    opc_config_destroy(config);
    opc_config_destroy(again);
}

/* Runs of older programs have older names in their config.yaml, and people come with the names that
 * other programs have. */
static void a_setting_is_read_under_its_other_names_and_printed_under_its_own(void **state)
{
    struct opc_config *config = load(file(state, "old.yaml",
                                          "train: {least_steps: 7}\n"
                                          "model: {rate: 0.5, most_passes: 3, decay: 1e-5}\n"
                                          "when:\n"
                                          "  - match: {sac.batch: 32}\n"
                                          "    set: {ppo.most_norm: 4}\n"
                                          "sac: {lr: 0.25, gamma: 0.9, batch: 32}\n"));
    const struct opc_sac_config *sac = opc_values_agent(&config->set, 0);
    const struct opc_ppo_config *ppo = opc_values_agent(&config->set, 1);
    struct opc_err err;
    char *text;
    assert_int_equal(config->set.train.learning_starts, 7);
    assert_true(config->set.model.learning_rate == 0.5 && config->set.model.max_epochs == 3);
    assert_true(sac->learning_rate == 0.25 && sac->discount == 0.9 && sac->batch_size == 32);
    assert_true(ppo->max_grad_norm == 4);
    assert_ok(opc_config_print(config, &text, &err), &err);
    assert_non_null(strstr(text, "  learning_rate: 0.25\n"));
    assert_null(strstr(text, " lr:"));
    assert_null(strstr(text, " rate:"));
    opc_free(text);
    assert_ok(opc_config_get(config, "sac.rate", &text, &err), &err);
    assert_string_equal(text, "0.25");
    opc_free(text);
    opc_config_destroy(config);

    /* Two names of one setting are one setting. */
    assert_fails(opc_config_load(file(state, "twice.yaml", "sac: {lr: 0.1, learning_rate: 0.2}\n"),
                                 &config, &err),
                 OPC_EUSER, &err, "sac.learning_rate");
    /* Without a section there is no saying which is meant, but there is a proposal. */
    assert_ok(opc_config_create(&config, &err), &err);
    assert_fails(opc_config_set(config, "gamma=0.5", &err), OPC_EUSER, &err, "sac.discount");
    opc_config_destroy(config);
}

static void the_hash_tells_settings_apart_but_not_epochs(void **state)
{
    (void)state;
    struct opc_config *config;
    struct opc_err err;
    assert_ok(opc_config_create(&config, &err), &err);
    const uint32_t with_window = opc_config_hash(&config->set);
    /* As it has been since the first runs, which had all of the past as references; if it changes,
     * nobody can resume an older run. */
    set(config, "opc.reference_epochs=0");
    const uint32_t hash = opc_config_hash(&config->set);
    assert_int_equal(hash, 0xad4fa9f7);
    assert_int_not_equal(with_window, hash);
    set(config, "train.epochs=12345");
    assert_int_equal(opc_config_hash(&config->set), hash);
    set(config, "train.rounds=2");
    assert_int_not_equal(opc_config_hash(&config->set), hash);
    set(config, "train.rounds=1");
    set(config, "opc.reference_epochs=1");
    assert_int_not_equal(opc_config_hash(&config->set), hash);
    set(config, "opc.reference_epochs=0");
    set(config, "ppo.learning_rate=0.5"); /* means nothing to SAC */
    assert_int_equal(opc_config_hash(&config->set), hash);
    set(config, "record.tensorboard=true"); /* the same numbers, in another form */
    set(config, "record.json_lines=true");
    assert_int_equal(opc_config_hash(&config->set), hash);
    set(config, "sac.learning_rate=3.0000001e-4");
    assert_int_not_equal(opc_config_hash(&config->set), hash);
    set(config, "sac.learning_rate=3e-4");

    set(config, "train.agent=ppo");
    const uint32_t ppo = opc_config_hash(&config->set);
    assert_int_not_equal(ppo, hash);
    set(config, "train.epochs=12346"); /* its step falls to 0 there */
    assert_int_not_equal(opc_config_hash(&config->set), ppo);
    set(config, "ppo.anneal_lr=false");
    const uint32_t steady = opc_config_hash(&config->set);
    set(config, "train.epochs=12347");
    assert_int_equal(opc_config_hash(&config->set), steady);
    set(config, "ppo.learning_rate=0.25");
    assert_int_not_equal(opc_config_hash(&config->set), steady);
    opc_config_destroy(config);
}

/* slbo.reward has become model.reward. Files of older runs have the old name, whatever their agent
 * is; their identity stays. */
static void a_setting_that_has_moved_is_read_in_runs_of_its_agent(void **state)
{
    static const char *const SET[] = {"train.agent=slbo",
                                      "opc.transition=replay",
                                      "env.name=pendulum",
                                      "train.epochs=1",
                                      "train.steps_per_epoch=200",
                                      "train.random_steps=0",
                                      "slbo.iterations=1",
                                      "slbo.model_updates=1",
                                      "slbo.policy_updates=1",
                                      "slbo.model_hidden=8",
                                      "eval.episodes=1"};
    struct opc_config *config;
    struct opc_err err = {0};
    assert_ok(opc_config_create(&config, &err), &err);
    set(config, "slbo.reward=auto"); /* before the agent, and before the newer name */
    set(config, "model.reward=learned");
    assert_int_equal(config->set.model.reward, OPC_REWARD_LEARNED);
    for (size_t i = 0; i < sizeof SET / sizeof *SET; i++)
        set(config, SET[i]);
    assert_int_equal(config->set.model.reward, OPC_REWARD_AUTO);
    /* as runs of these settings had it when the setting was SLBO's */
    assert_int_equal(opc_config_hash(&config->set), 0x0ca70a8f);
    set(config, "slbo.reward=learned");
    assert_int_equal(opc_config_hash(&config->set), 0x1490c3f2);
    set(config, "slbo.reward=given");
    set(config, "slbo.rollout_steps=800");
    assert_int_equal(config->set.model.reward, OPC_REWARD_GIVEN);
    assert_int_equal(opc_config_hash(&config->set), 0xfb256369);
    assert_fails(opc_config_set(config, "slbo.reward=some", &err), OPC_EUSER, &err, "model.reward");
    char key[OPC_KEY];
    assert_true(opc_config_key("slbo.reward", key));
    assert_string_equal(key, "model.reward");
    opc_config_destroy(config);
    /* a file of an older run has both */
    config = load(file(state, "old.yaml",
                       "train: {agent: slbo}\nmodel: {reward: learned}\nslbo: {reward: auto}\n"));
    assert_int_equal(config->set.model.reward, OPC_REWARD_AUTO);
    opc_config_destroy(config);
}

static int window_in(const char *path)
{
    struct opc_config *config = load(path);
    const int window = config->set.opc.reference_epochs;
    opc_config_destroy(config);
    return window;
}

/* Runs from before opc.reference_epochs had all of the past as references; the default is 1. */
static void a_runs_own_file_means_what_it_meant_to_the_run(void **state)
{
    static const char OLD[] = "train: {seed: 3}\nrecord: {snapshots: 0}\n";
    const char *path = file(state, "config.yaml", OLD);
    assert_int_equal(window_in(path), 1); /* anybody's file, as long as no run is beside it */
    file(state, "meta.json", "{}\n");
    assert_int_equal(window_in(path), 0);
    assert_int_equal(window_in(file(state, "new.yaml", "include: config.yaml\n")), 0);
    assert_int_equal(
        window_in(file(state, "new.yaml", "include: config.yaml\nopc.reference_epochs: 2\n")), 2);
    assert_int_equal(window_in(file(state, "other.yaml", OLD)), 1);
    /* a run states all settings, so neither of these is one's */
    assert_int_equal(window_in(file(state, "config.yaml", "train: {seed: 3}\n")), 1);
    assert_int_equal(window_in(file(state, "config.yaml", "record: {snapshots: 0}\n")), 1);
    path = file(state, "config.yaml",
                "train: {seed: 3}\nopc: {reference_epochs: 5}\nrecord: {snapshots: 0}\n");
    assert_int_equal(window_in(path), 5);
}

static void settings_that_do_not_fit_each_other_are_refused(void **state)
{
    (void)state;
    static const char *const BAD[][3] = {
        {"train.fit_every=300", "", "train.fit_every = 300"},
        {"train.improve_every=7", "", "train.improve_every = 7"},
        {"train.fit_every=200", "train.simulate_every=500", "train.simulate_every = 500"},
        {"model.members=3", "model.elites=5", "model.members = 3"},
        {"opc.horizon=[1, 2, 3]", "", "opc.horizon"},
        {"opc.horizon=[20, 10, 1, 5]", "", "opc.horizon"},
        {"opc.horizon=0", "", "opc.horizon"},
        {"data.real_ratio=1", "", "data.real_ratio"},
        {"train.fit_first=true", "train.random_steps=0", "train.random_steps"},
        {"train.updates_per_step=0", "", "train.updates_per_step"},
        {"train.updates_per_step=10000", "train.steps_per_epoch=1000000", "10000000000"},
        {"train.updates_per_step=0.5", "train.improve_every=1", "0.5 gradient steps"},
        {"train.updates_per_step=1.5", "train.improve_every=1", "1.5 gradient steps"},
        {"train.rounds=2", "train.improve_every=1", "train.rounds = 2"},
        {"train.rounds=30", "opc.rollouts=20", "20 rollouts"},
        {"train.rounds=30", "opc.transitions=20", "20 imagined steps"},
        {"train.rounds=30", "train.updates_per_step=0.02", "20 gradient steps"},
        {"train.epochs=1000000", "train.steps_per_epoch=10000000", "train.epochs"},
    };
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct opc_config *config;
        struct opc_err err = {0};
        assert_ok(opc_config_create(&config, &err), &err);
        set(config, BAD[i][0]);
        if (*BAD[i][1])
            set(config, BAD[i][1]);
        assert_fails(opc_config_check(config, &err), OPC_EUSER, &err, BAD[i][2]);
        opc_config_destroy(config);
    }
}

/* Line 0 stands for what no line of the file is to blame for. */
static void misfit(struct opc_config *config, const char *path, int line, const char *key)
{
    struct opc_err err = {0};
    char where[OPC_PATH + 16];
    assert_fails(opc_config_check(config, &err), OPC_EUSER, &err, key);
    snprintf(where, sizeof where, "%s:%d:", path, line);
    if (line)
        assert_mentions(&err, where);
    else
        assert_null(strstr(err.text, path));
}

/* Of the settings that do not fit each other, the one set last is to blame; a cell that does not
 * apply is not. */
static void settings_that_do_not_fit_are_found_in_the_file(void **state)
{
    const char *path = file(state, "a.yaml",
                            "model.members: 3\n"
                            "train.fit_every: 7\n"
                            "when:\n"
                            "  - {match: {opc.transition: learned}, set: {model.elites: 4}}\n"
                            "  - {match: {opc.transition: corrected}, set: {model.members: 4}}\n");
    struct opc_config *config = load(path);
    misfit(config, path, 2, "train.fit_every = 7");
    set(config, "train.fit_every=0");
    misfit(config, path, 5, "model.members = 4");
    set(config, "opc.transition=learned");
    misfit(config, path, 4, "model.elites = 4");
    set(config, "model.elites=5");
    misfit(config, path, 0, "model.members = 3");
    opc_config_destroy(config);
    /* What the advice names is not to blame. */
    path = file(state, "b.yaml", "data.real_ratio: 1\nopc.transition: corrected\n");
    config = load(path);
    misfit(config, path, 1, "data.real_ratio");
    opc_config_destroy(config);
}

/* algorithms.md 3.1: e <= e0 has k0; else int(k0 + min((e - e0) / (e1 - e0), 1) (k1 - k0)). */
/* Whatever the length of an epoch and of what is between two fits. */
static void methods_are_named_by_when_the_policy_learns(void **state)
{
    static const struct {
        const char *transition, *improve, *fit, *steps, *label;
    } CASE[] = {
        {"learned", "0", "0", "1000", "MBPO(*)"},    {"learned", "0", "250", "1000", "MBPO(*)"},
        {"learned", "1", "250", "1000", "MBPO"},     {"learned", "1", "250", "250", "MBPO"},
        {"learned", "250", "250", "250", "MBPO(*)"}, {"replay", "1", "0", "1000", "SAC"},
        {"replay", "1", "250", "250", "SAC"},        {"replay", "0", "0", "1000", "SAC"},
        {"corrected", "0", "0", "1000", "OPC"},      {"corrected", "1", "250", "250", "OPC"},
    };
    struct opc_config *config;
    struct opc_err err;
    (void)state;
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        char word[64];
        assert_ok(opc_config_create(&config, &err), &err);
        snprintf(word, sizeof word, "opc.transition=%s", CASE[i].transition);
        set(config, word);
        snprintf(word, sizeof word, "train.improve_every=%s", CASE[i].improve);
        set(config, word);
        snprintf(word, sizeof word, "train.fit_every=%s", CASE[i].fit);
        set(config, word);
        snprintf(word, sizeof word, "train.steps_per_epoch=%s", CASE[i].steps);
        set(config, word);
        assert_string_equal(opc_method_label(&config->set), CASE[i].label);
        opc_config_destroy(config);
    }
}

static void the_horizon_grows_as_in_mbpo(void **state)
{
    (void)state;
    static const int WANT[][2] = {{0, 1},  {20, 1},   {21, 1},   {29, 1},   {30, 2},
                                  {85, 8}, {149, 14}, {150, 15}, {1000, 15}};
    struct opc_config *config;
    struct opc_err err;
    assert_ok(opc_config_create(&config, &err), &err);
    set(config, "opc.horizon=[20, 150, 1, 15]");
    for (size_t i = 0; i < sizeof WANT / sizeof *WANT; i++)
        assert_int_equal(opc_horizon(&config->set, WANT[i][0]), WANT[i][1]);
    assert_int_equal(opc_horizon_max(&config->set), 15);
    opc_config_destroy(config);
}

static void the_entropy_goal_is_the_tasks(void **state)
{
    (void)state;
    assert_true(opc_target_entropy("mujoco:hopper") == -1);
    assert_true(opc_target_entropy("bullet:hopper?angle=sincos") == -1);
    assert_true(opc_target_entropy("bullet:hopper_rs") == -1);
    assert_true(opc_target_entropy("mujoco:half_cheetah") == -3);
    assert_true(opc_target_entropy("mujoco:walker2d") == -3);
    assert_true(opc_target_entropy("mujoco:ant_truncated_obs") == -4);
    assert_true(opc_target_entropy("mujoco:humanoid_truncated_obs") == -2);
    assert_true(opc_target_entropy("mujoco:inverted_pendulum") == -0.05);
    assert_true(opc_target_entropy("mujoco:inverted_double_pendulum") == -0.5);
    assert_true(opc_target_entropy("bullet:inverted_pendulum_rs?angle=raw") == -0.05);
    assert_true(isnan(opc_target_entropy("mujoco:ant")));
    assert_true(isnan(opc_target_entropy("pendulum")));
}

static void what_a_sweep_varies_must_be_settled_before_a_run(void **state)
{
    const char *path = file(state, "a.yaml",
                            "vary: {train.seed: 1..3, opc.transition: [learned]}\n"
                            "figure: {panel: env.name, curve: {of: eval_return}}\n"
                            "probe: x\ntiers: {smoke: {train.epochs: 1}}\n");
    struct opc_config *config = load(path);
    struct opc_err err = {0};
    assert_fails(opc_config_check(config, &err), OPC_EUSER, &err, "train.seed");
    set(config, "train.seed=2");
    assert_fails(opc_config_check(config, &err), OPC_EUSER, &err, "opc.transition");
    set(config, "opc.transition=learned");
    assert_ok(opc_config_check(config, &err), &err);
    assert_string_equal(opc_sources_extra(config->from, "probe")->text, "x");
    opc_config_destroy(config);
    refused(state, "vary: {train.sed: [1]}\n", 1, "'seed'");
}

static void table1_has_the_papers_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *env, *transition;
        int epochs, retain, updates, transitions;
    } TABLE[] = {
        {"mujoco:half_cheetah", "corrected", 200, 50, 40000, 1000000},
        {"bullet:half_cheetah", "learned", 200, 5, 40000, 1000000},
        {"mujoco:hopper", "corrected", 150, 50, 20000, 1000000},
        {"bullet:hopper", "learned", 150, 50, 20000, 1000000},
        {"mujoco:walker2d", "learned", 300, 50, 20000, 1000000},
        {"bullet:ant_truncated_obs", "corrected", 300, 5, 20000, 1000000},
        {"mujoco:inverted_pendulum", "corrected", 30, 50, 2500, 100000},
    };
    for (size_t i = 0; i < sizeof TABLE / sizeof *TABLE; i++) {
        struct opc_config *config = load(OPC_TEST_DIR "/../experiments/paper/table1.yaml");
        struct opc_err err;
        char text[100];
        snprintf(text, sizeof text, "env.name=%s", TABLE[i].env);
        set(config, text);
        snprintf(text, sizeof text, "opc.transition=%s", TABLE[i].transition);
        set(config, text);
        assert_ok(opc_config_check(config, &err), &err);
        const struct opc_values *v = &config->set;
        assert_int_equal(v->train.epochs, TABLE[i].epochs);
        assert_int_equal(v->data.retain, TABLE[i].retain);
        assert_int_equal(opc_updates(v), TABLE[i].updates);
        assert_int_equal(v->opc.transitions, TABLE[i].transitions);
        assert_int_equal(opc_horizon(v, 3), 10);
        assert_int_equal(
            ((const struct opc_sac_config *)opc_values_agent(v, 0))->critic_hidden.at[0], 64);
        opc_config_destroy(config);
    }
}

struct loading {
    const char *path;
};

static int create(void *ctx, struct opc_err *err)
{
    const struct loading *l = ctx;
    struct opc_config *config;
    char *text;
    int code = opc_config_load(l->path, &config, err);
    if (code)
        return code;
    code = opc_config_set(config, "train.seed=2", err);
    if (!code)
        code = opc_config_print(config, &text, err);
    if (!code)
        opc_free(text);
    opc_config_destroy(config);
    return code;
}

static void loading_survives_lack_of_memory(void **state)
{
    file(state, "inner.yaml", "train.epochs: 3\n");
    const char *path = file(state, "a.yaml",
                            "include: inner.yaml\nmodel.hidden: [1, 2]\nwhen:\n"
                            "- {match: {env.name: '*'}, set: {train.epochs: 2}}\n");
    struct loading l = {path};
    assert_survives_lack_of_memory(create, &l);
}

#define WITH_DIR(test) cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_are_the_papers_loop),
        WITH_DIR(both_ways_to_write_a_setting_mean_the_same),
        WITH_DIR(the_later_of_two_places_wins),
        WITH_DIR(a_cell_looks_at_values_not_at_their_spelling),
        WITH_DIR(a_cell_applies_when_all_its_conditions_hold),
        WITH_DIR(mistakes_are_refused_with_file_line_and_the_nearest_name),
        WITH_DIR(mistakes_in_cells_are_found_whether_or_not_they_apply),
        WITH_DIR(a_cell_cannot_set_what_decides_about_cells),
        WITH_DIR(a_file_that_includes_itself_is_refused),
        cmocka_unit_test(a_refused_setting_changes_nothing),
        WITH_DIR(what_is_printed_is_read_back_to_the_same),
        WITH_DIR(a_setting_is_read_under_its_other_names_and_printed_under_its_own),
        cmocka_unit_test(the_hash_tells_settings_apart_but_not_epochs),
        WITH_DIR(a_setting_that_has_moved_is_read_in_runs_of_its_agent),
        WITH_DIR(a_runs_own_file_means_what_it_meant_to_the_run),
        cmocka_unit_test(settings_that_do_not_fit_each_other_are_refused),
        cmocka_unit_test(methods_are_named_by_when_the_policy_learns),
        cmocka_unit_test(the_horizon_grows_as_in_mbpo),
        cmocka_unit_test(the_entropy_goal_is_the_tasks),
        WITH_DIR(settings_that_do_not_fit_are_found_in_the_file),
        WITH_DIR(what_a_sweep_varies_must_be_settled_before_a_run),
        cmocka_unit_test(table1_has_the_papers_numbers),
        WITH_DIR(loading_survives_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
