/* SPDX-License-Identifier: MIT */
/* An agent and a transition model that opc does not have: one file each, in examples/extending, and
 * one line each in the tables, which are compiled once more for this test with those lines in them
 * (tests/CMakeLists.txt). Everything else is the library as it is. */
#include "base/file.h"
#include "opc/mem.h"
#include "opc/train.h"
#include "run/config/config.h"
#include "runs.h"

static const char *const TINY[] = {
    "env.name=pendulum",
    "train.epochs=2",
    "train.steps_per_epoch=100",
    "train.random_steps=200",
    "train.updates_per_step=1",
    "opc.transitions=200",
    "opc.horizon=3",
    "model.members=2",
    "model.elites=1",
    "model.hidden=[16]",
    "model.weight_decay=1e-5",
    "model.max_epochs=20",
    "sac.policy_hidden=[8]",
    "sac.critic_hidden=[8]",
    "sac.batch_size=16",
    "eval.episodes=2",
    "data.retain=1",
};

static struct opc_config *tiny(const char *const *more)
{
    struct opc_config *config;
    struct opc_err err;
    assert_ok(opc_config_create(&config, &err), &err);
    for (size_t i = 0; i < sizeof TINY / sizeof *TINY; i++)
        assert_ok(opc_config_set(config, TINY[i], &err), &err);
    for (; *more; more++)
        assert_ok(opc_config_set(config, *more, &err), &err);
    return config;
}

static void train(struct opc_config *config, const char *dir, int threads)
{
    struct opc_err err;
    const struct opc_train_plan plan = {OPC_SIZED(struct opc_train_plan), .dir = dir,
                                        .threads = threads};
    assert_ok(opc_train(config, &plan, &err), &err);
}

/* It has settings, columns and a label, needs the model, and is evaluated with it afterwards. */
static void an_agent_is_one_file_and_one_line(void **state)
{
    char dir[OPC_PATH];
    struct opc_evaluation e = {OPC_SIZED(struct opc_evaluation)};
    struct opc_err err;
    snprintf(dir, sizeof dir, "%s/run", (const char *)*state);
    struct opc_config *config =
        tiny((const char *const[]){"train.agent=shooting", "shooting.candidates=7", NULL});
    assert_string_equal(opc_method_label(&config->set), "random shooting");
    train(config, dir, 2);
    assert_true(test_metric(dir, 2, "decisions") == 100);
    assert_true(test_metric(dir, 2, "fits") == 1);
    const double mean = test_metric(dir, 2, "eval_return");
    assert_true(mean < 0);
    /* policy.opc has the model: the same policy, in another process as far as it can tell. */
    assert_ok(opc_evaluate_run(dir, 2, 1, false, 1, &e, NULL, &err), &err);
    assert_true(e.mean < 0 && e.epoch == 2);
    opc_config_destroy(config);

    config = tiny((const char *const[]){"train.agent=shooting", "opc.transition=replay", NULL});
    const struct opc_train_plan plan = {OPC_SIZED(struct opc_train_plan), .threads = 1};
    assert_int_equal(opc_train(config, &plan, &err), OPC_EUSER);
    assert_non_null(strstr(err.text, "opc.transition"));
    opc_config_destroy(config);
}

/* Between the two it is a blend of, in the agent's own run. */
static void a_transition_is_one_file_and_one_line(void **state)
{
    char dir[OPC_PATH], again[OPC_PATH];
    snprintf(dir, sizeof dir, "%s/one", (const char *)*state);
    snprintf(again, sizeof again, "%s/two", (const char *)*state);
    struct opc_config *config = tiny((const char *const[]){"opc.transition=blended", NULL});
    assert_string_equal(opc_method_label(&config->set), "half-corrected");
    train(config, dir, 1);
    train(config, again, 2);
    assert_true(test_metric(dir, 2, "updates") == 100);
    assert_true(test_metric(dir, 2, "end_reference") >= 0);
    assert_true(test_metric(dir, 2, "q") == test_metric(again, 2, "q")); /* any number of threads */
    opc_config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_agent_is_one_file_and_one_line, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(a_transition_is_one_file_and_one_line, test_make_dir,
                                        test_remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
