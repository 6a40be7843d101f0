/* SPDX-License-Identifier: MIT */
/* Two sets of runs compared: settings that differ, scores, intervals, probability of improvement.
 */
#include "study/curves/compare.h"

#include "run/files/summary.h"
#include "runs.h"

/* The runs below dir/name as a side. */
static struct opc_compare_runs side_of(const char *dir, const char *name, struct opc_found *found)
{
    char path[OPC_PATH];
    struct opc_err err;
    *found = (struct opc_found){0};
    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_ok(opc_found_add(found, path, &err), &err);
    return (struct opc_compare_runs){name, found->n, found->dir};
}

/* A run of constant return; `more` is one more setting. */
static void put_run(const char *dir, const char *name, const char *task, const char *more,
                    double value, int epochs)
{
    double v[16];
    char env[64];
    const char *set[] = {env, "train.seed=1", more, NULL};
    snprintf(env, sizeof env, "env.name=%s", task);
    for (int i = 0; i < epochs; i++)
        v[i] = value;
    test_make_run(dir, name, set, epochs, v);
}

static const struct opc_compare_plan PLAN = {"eval_return", "env_steps", 0, 1};

static void settings_differ_by_the_values_that_the_runs_have(void **state)
{
    const char *dir = *state;
    struct opc_found found[2];
    struct opc_err err;
    struct opc_table *t;
    put_run(dir, "a/1", "cartpole", "sac.learning_rate=0.001", 1, 6);
    put_run(dir, "a/2", "cartpole", "train.seed=2", 1, 6);
    put_run(dir, "b/1", "pendulum", "train.seed=9", 1, 6);
    const struct opc_compare_runs side[2] = {side_of(dir, "a", &found[0]),
                                             side_of(dir, "b", &found[1])};
    assert_ok(opc_compare_settings(side, &t, &err), &err);
    /* Seeds differ, too, and are what runs are repeated with. */
    test_assert_csv(dir, t,
                    "setting,a,b\nenv.name,cartpole,pendulum\n"
                    "sac.learning_rate,\"0.001, 0.0003\",0.0003\n");
    opc_found_free(&found[0]);
    opc_found_free(&found[1]);
}

static void scores_are_compared_task_by_task(void **state)
{
    const char *dir = *state;
    struct opc_found found[2];
    struct opc_err err;
    struct opc_compare *c, *again;
    /* cartpole: A wins 5 of 6 pairs and draws none; pendulum: B wins all; linear1d: only A. */
    put_run(dir, "a/1", "cartpole", "train.seed=1", 10, 6);
    put_run(dir, "a/2", "cartpole", "train.seed=2", 20, 6);
    put_run(dir, "b/1", "cartpole", "train.seed=1", 5, 6);
    put_run(dir, "b/2", "cartpole", "train.seed=2", 15, 6);
    put_run(dir, "b/3", "cartpole", "train.seed=3", 6, 6);
    put_run(dir, "a/3", "pendulum", "train.seed=1", -3, 6);
    put_run(dir, "b/4", "pendulum", "train.seed=1", -2, 6);
    put_run(dir, "a/4", "linear1d", "train.seed=1", 1, 6);
    const struct opc_compare_runs side[2] = {side_of(dir, "a", &found[0]),
                                             side_of(dir, "b", &found[1])};
    assert_ok(opc_compare(side, &PLAN, &c, &err), &err);
    assert_int_equal(c->tasks, 3);
    assert_string_equal(c->task[0].name, "cartpole");
    assert_int_equal(c->task[0].n[0], 2);
    assert_int_equal(c->task[0].n[1], 3);
    assert_true(c->task[0].iqm[0].middle == 15);
    assert_true(fabs(c->task[0].improvement.middle - 5. / 6) < 1e-12);
    assert_true(c->task[0].improvement.low < 5. / 6 && c->task[0].improvement.high == 1);
    assert_true(c->task[1].improvement.middle == 0);
    assert_int_equal(c->task[2].n[1], 0);
    assert_true(isnan(c->task[2].improvement.middle));
    /* The mean over the two tasks that both have. */
    assert_true(fabs(c->improvement.middle - 5. / 12) < 1e-12);
    /* A panel for each task, a line for each side that has it. */
    assert_int_equal(c->drawn.panels, 3);
    assert_int_equal(c->drawn.groups, 5);
    assert_string_equal(c->drawn.group[0].label, "a");
    /* Once more, to the bit. */
    assert_ok(opc_compare(side, &PLAN, &again, &err), &err);
    assert_same_bits(&c->improvement, &again->improvement, sizeof c->improvement);
    assert_same_bits(&c->task[0].iqm, &again->task[0].iqm, sizeof c->task[0].iqm);
    opc_compare_free(c);
    opc_compare_free(again);
    opc_found_free(&found[0]);
    opc_found_free(&found[1]);
}

static void after_some_steps_only_what_was_evaluated_until_then_counts(void **state)
{
    static const char *const SET[] = {"train.seed=1", NULL};
    const char *dir = *state;
    struct opc_found found[2];
    struct opc_err err;
    struct opc_compare *c;
    /* A rises after 300 steps; one run of B has made 200 only. */
    test_make_run(dir, "a/1", SET, 6, (const double[]){1, 1, 1, 100, 100, 100});
    put_run(dir, "b/1", "cartpole", "train.seed=1", 2, 6);
    put_run(dir, "b/2", "cartpole", "train.seed=2", 0, 2);
    const struct opc_compare_runs side[2] = {side_of(dir, "a", &found[0]),
                                             side_of(dir, "b", &found[1])};
    const struct opc_compare_plan plan = {"eval_return", "env_steps", 300, 1};
    assert_ok(opc_compare(side, &plan, &c, &err), &err);
    assert_int_equal(c->task[0].n[0], 1);
    assert_int_equal(c->task[0].n[1], 1);
    assert_int_equal(c->task[0].short_of[1], 1);
    assert_true(c->task[0].score[0][0] == 1 && c->task[0].score[1][0] == 2);
    assert_true(c->improvement.middle == 0);
    opc_compare_free(c);
    opc_found_free(&found[0]);
    opc_found_free(&found[1]);
}

/* ---- lack of memory -------------------------------------------------------------------------- */

static int compare_all(void *ctx, struct opc_err *err)
{
    struct opc_table *t = NULL;
    struct opc_compare *c = NULL;
    int code = opc_compare_settings(ctx, &t, err);
    if (!code)
        code = opc_compare(ctx, &PLAN, &c, err);
    opc_table_free(t);
    opc_compare_free(c);
    return code;
}

static void lack_of_memory_is_an_error(void **state)
{
    const char *dir = *state;
    struct opc_found found[2];
    put_run(dir, "a", "cartpole", "train.seed=1", 1, 2);
    put_run(dir, "b", "cartpole", "train.seed=2", 2, 2);
    /* Few settings: each is read with a handful of allocations, and every one of them fails once.
     */
    for (int i = 0; i < 2; i++) {
        static const char SHORT[] = "train:\n  seed: 1\n";
        char path[OPC_PATH];
        struct opc_err err;
        snprintf(path, sizeof path, "%s/%c/config.yaml", dir, 'a' + i);
        assert_ok(opc_file_write(path, SHORT, strlen(SHORT), &err), &err);
    }
    struct opc_compare_runs side[2] = {side_of(dir, "a", &found[0]), side_of(dir, "b", &found[1])};
    assert_survives_lack_of_memory(compare_all, side);
    opc_found_free(&found[0]);
    opc_found_free(&found[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(settings_differ_by_the_values_that_the_runs_have,
                                        test_make_dir, test_remove_dir),
        cmocka_unit_test_setup_teardown(scores_are_compared_task_by_task, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(after_some_steps_only_what_was_evaluated_until_then_counts,
                                        test_make_dir, test_remove_dir),
        cmocka_unit_test_setup_teardown(lack_of_memory_is_an_error, test_make_dir, test_remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
