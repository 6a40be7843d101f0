/* SPDX-License-Identifier: MIT */
/* Runs in one line: what is read quickly equals what the full readers read, whatever is missing,
 * and many runs are found in order. */
#include "run/files/summary.h"

#include "runs.h"

static const char *const PLAIN[] = {NULL};

static struct opc_values *make_defaults(void)
{
    struct opc_err err;
    struct opc_values *values = opc_alloc(1, sizeof *values);
    assert_non_null(values);
    assert_ok(opc_summary_defaults(values, &err), &err);
    return values;
}

static struct opc_summary summary_of(const char *dir, const char *name)
{
    char path[OPC_PATH];
    struct opc_summary s;
    struct opc_values *defaults = make_defaults();
    snprintf(path, sizeof path, "%s/%s", dir, name);
    opc_summary_read(path, defaults, &s);
    opc_free(defaults);
    return s;
}

static void put_file(const char *dir, const char *name, const char *text)
{
    char path[OPC_PATH];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    /* Not opc_file_write, which waits for the disk: there are thousands of files. */
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* ---- the quick reader of settings ------------------------------------------------------------ */

static const char *const KEYS[] = {"env.name", "train.seed", "opc.horizon", "sac.learning_rate"};

static void what_was_printed_is_scanned_to_the_same_values(void **state)
{
    static const char *const SET[] = {"env.name=mujoco:hopper?angle=raw",
                                      "env.name=exec:a \"b\"",
                                      "env.name=a # b",
                                      "env.name=a: b",
                                      "env.name=- x",
                                      "env.name=Gr\303\274\303\237e",
                                      "opc.horizon=[20, 150, 1, 15]",
                                      "sac.learning_rate=1e-5",
                                      "train.seed=7"};
    (void)state;
    int scanned = 0;
    for (size_t i = 0; i < sizeof SET / sizeof *SET; i++) {
        struct opc_err err;
        struct opc_config *config;
        struct opc_values *values = make_defaults();
        char *text;
        assert_ok(opc_config_create(&config, &err), &err);
        assert_ok(opc_config_set(config, SET[i], &err), &err);
        assert_ok(opc_config_print(config, &text, &err), &err);
        /* Either it refuses, as it may where a value is quoted, or all is equal. */
        if (opc_values_scan(text, 4, KEYS, values)) {
            assert_same_bits(values, &config->set, sizeof *values);
            scanned++;
        }
        opc_free(text);
        opc_free(values);
        opc_config_destroy(config);
    }
    assert_true(scanned >= 4);
}

static void text_in_another_form_is_left_to_the_full_reader(void **state)
{
    static const char *const OTHER[] = {
        "",
        "env:\n  name: cartpole\n",              /* others are missing */
        "include: base.yaml\nenv:\n  name: a\n", /* settings from elsewhere */
        "env.name: a\n",                         /* the short form */
        "env: {name: a}\n",                      /* a flow map */
        "# comment\nenv:\n  name: a\n",
        "env:\n  name: a\n  name: b\n", /* twice */
        "env:\n  name: 'a'\n",
        "env:\n  name: a # b\n",
        "env:\n    name: a\n",
        "env:\n  name: *a\n",
        "env:\n  name: \"a\\n\"\n",
        "  name: a\n",
        "train:\n  seed: many\n", /* not a value */
    };
    (void)state;
    for (size_t i = 0; i < sizeof OTHER / sizeof *OTHER; i++) {
        struct opc_values *values = make_defaults();
        if (opc_values_scan(OTHER[i], 2, KEYS, values))
            fail_msg("it accepts %s", OTHER[i]);
        opc_free(values);
    }
}

/* ---- one run --------------------------------------------------------------------------------- */

static void a_run_is_summed_up_in_its_steps_returns_and_time(void **state)
{
    static const char *const SET[] = {"env.name=pendulum", "train.seed=3", "train.epochs=10",
                                      "opc.transition=learned", NULL};
    const char *dir = *state;
    test_make_run_after(dir, "run", SET, 50, 100, 3, (const double[]){1, 7, 5});
    char run[600];
    snprintf(run, sizeof run, "%s/run", dir);
    put_file(run, "status.json",
             "{\"state\": \"failed\", \"why\": \"no disk\", \"epoch\": 3, "
             "\"host\": \"node7\"}");
    put_file(run, "timing.csv", "epoch,epoch_s,total_s\n1,2,2\n2,4,6\n3,6,12\n4,1");
    const struct opc_summary s = summary_of(dir, "run");
    assert_int_equal(s.state, OPC_SUMMARY_FAILED);
    assert_string_equal(s.why, "no disk");
    assert_string_equal(s.task, "pendulum");
    assert_string_equal(s.method, "MBPO(*)");
    assert_string_equal(s.host, "node7");
    assert_int_equal(s.seed, 3);
    assert_int_equal(s.epochs, 10);
    assert_int_equal(s.epoch, 3);
    assert_int_equal(s.rows, 3);
    assert_true(s.steps == 300 && s.all_steps == 350);
    assert_true(s.last == 5 && s.best == 7);
    assert_int_equal(s.best_epoch, 2);
    /* 12 s for three epochs: the seven others take 28 s. */
    assert_true(s.spent == 12 && s.left == 28);
    assert_true(opc_summary_speed(&s) == 350. / 12);
}

static void what_is_missing_is_unknown(void **state)
{
    const char *dir = *state;
    char run[600];
    snprintf(run, sizeof run, "%s/run", dir);
    struct opc_err err;
    assert_ok(opc_make_directories(run, &err), &err);
    put_file(run, "config.yaml", "env: {name: [}\n");
    put_file(run, "metrics.csv", "epoch,env_st");
    const struct opc_summary s = summary_of(dir, "run");
    assert_int_equal(s.state, OPC_SUMMARY_BEGUN);
    assert_string_equal(s.task, "");
    assert_null(s.method);
    assert_int_equal(s.rows, 0);
    assert_true(isnan(s.steps) && isnan(s.last) && isnan(s.best) && isnan(s.left));
    struct opc_text text = {0};
    opc_summary_json(&s, &text);
    assert_contains(opc_text_get(&text), "\"seed\": null");
    assert_contains(opc_text_get(&text), "\"best_return\": null");
    opc_text_free(&text);
}

/* ---- many ------------------------------------------------------------------------------------ */

enum { MANY = 1500 };

static void many_runs_are_found_in_order_and_read_by_any_number_of_threads(void **state)
{
    const char *dir = *state;
    struct opc_err err;
    struct opc_found found = {0};
    struct opc_pool *pool;
    /* Runs on two levels; files, and directories that are no runs, in between. */
    test_make_run(dir, "model", PLAIN, 1, (const double[]){0});
    char path[OPC_PATH], *config;
    snprintf(path, sizeof path, "%s/model/config.yaml", dir);
    assert_ok(opc_file_read(path, 1 << 20, &config, NULL, &err), &err);
    for (int i = 0; i < MANY; i++) {
        char name[64], metrics[128];
        snprintf(name, sizeof name, "%s%04d", i % 2 ? "a/" : "b/deep/", i);
        snprintf(path, sizeof path, "%s/%s", dir, name);
        assert_ok(opc_make_directories(path, &err), &err);
        snprintf(metrics, sizeof metrics, "epoch,env_steps,total_steps,eval_return\n1,1,1,%d\n", i);
        put_file(path, "config.yaml", config);
        put_file(path, "metrics.csv", metrics);
    }
    opc_free(config);
    put_file(dir, "a/notes.txt", "no run");
    assert_ok(opc_found_add(&found, dir, &err), &err);
    assert_int_equal(found.n, MANY + 1);
    for (int i = 1; i < found.n; i++)
        assert_true(strcmp(found.dir[i - 1], found.dir[i]) < 0);
    /* Every run has its own return, with one thread and with three. */
    struct opc_summary *one = opc_alloc((size_t)found.n, sizeof *one);
    struct opc_summary *three = opc_alloc((size_t)found.n, sizeof *three);
    assert_ok(opc_pool_create(3, &pool, &err), &err);
    assert_ok(opc_summaries_read(found.n, found.dir, NULL, one, &err), &err);
    assert_ok(opc_summaries_read(found.n, found.dir, pool, three, &err), &err);
    for (int i = 0; i < MANY; i++) {
        assert_true(one[i].last == atoi(opc_path_name(found.dir[i])));
        assert_true(three[i].last == one[i].last);
    }
    opc_pool_destroy(pool);
    opc_free(one);
    opc_free(three);
    opc_found_free(&found);
}

static void a_word_without_a_run_is_an_error(void **state)
{
    const char *dir = *state;
    char path[OPC_PATH];
    struct opc_err err;
    struct opc_found found = {0};
    put_file(dir, "file", "");
    snprintf(path, sizeof path, "%s/file", dir);
    assert_fails(opc_found_add(&found, path, &err), OPC_EUSER, &err, "is a file");
    snprintf(path, sizeof path, "%s/nothing", dir);
    assert_fails(opc_found_add(&found, path, &err), OPC_EUSER, &err, "nothing");
    assert_fails(opc_found_add(&found, dir, &err), OPC_EUSER, &err, "config.yaml");
    assert_ok(opc_found_add_any(&found, dir, &err), &err);
    assert_int_equal(found.n, 0);
    opc_found_free(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_printed_is_scanned_to_the_same_values),
        cmocka_unit_test(text_in_another_form_is_left_to_the_full_reader),
        cmocka_unit_test_setup_teardown(a_run_is_summed_up_in_its_steps_returns_and_time,
                                        test_make_dir, test_remove_dir),
        cmocka_unit_test_setup_teardown(what_is_missing_is_unknown, test_make_dir, test_remove_dir),
        cmocka_unit_test_setup_teardown(
            many_runs_are_found_in_order_and_read_by_any_number_of_threads, test_make_dir,
            test_remove_dir),
        cmocka_unit_test_setup_teardown(a_word_without_a_run_is_an_error, test_make_dir,
                                        test_remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
