/* SPDX-License-Identifier: MIT */
/* Tiny runs on the double integrator whose noise grows with |a|, and what eq. 5 makes of it. */
#include "base/file.h"
#include "drawn.h"
#include "opc/mem.h"
#include "opc/train.h"
#include "study/probe/probe.h"
#include "test.h"

static const char *const TINY[] = {
    "train.epochs=1",           "train.steps_per_epoch=60", "train.random_steps=2000",
    "train.updates_per_step=1", "opc.transitions=100",      "opc.horizon=2",
    "model.members=2",          "model.elites=2",           "model.hidden=[16]",
    "model.weight_decay=1e-5",  "model.max_epochs=100",     "sac.policy_hidden=[8]",
    "sac.critic_hidden=[8]",    "sac.batch_size=32",        "eval.episodes=1",
};

enum { STEEP, FLAT, ENDS, REPLAY, RUNS };
struct runs {
    void *dir;
    char path[RUNS][OPC_PATH];
};

static int train_all(void **state)
{
    static const char *const SETTING[RUNS] = {"env.name=double_integrator?action_noise=4",
                                              "env.name=double_integrator", "env.name=cartpole",
                                              "opc.transition=replay"};
    struct runs *r = calloc(1, sizeof *r);
    assert_non_null(r);
    if (test_make_dir(&r->dir)) {
        free(r);
        return -1;
    }
    for (int i = 0; i < RUNS; i++) {
        struct opc_config *config = NULL;
        struct opc_err err;
        snprintf(r->path[i], sizeof r->path[i], "%s/run%d", (const char *)r->dir, i);
        assert_ok(opc_config_create(&config, &err), &err);
        for (size_t k = 0; k < sizeof TINY / sizeof *TINY; k++)
            assert_ok(opc_config_set(config, TINY[k], &err), &err);
        assert_ok(opc_config_set(config, SETTING[i], &err), &err);
        const struct opc_train_plan plan = {OPC_SIZED(struct opc_train_plan), .dir = r->path[i],
                                            .threads = 1};
        assert_ok(opc_train(config, &plan, &err), &err);
        opc_config_destroy(config);
    }
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

/* Makes the exhibit fig of some runs in a directory of its own. */
static int analyse(const struct runs *r, const char *settings, int n, const int run[], int threads,
                   const char *name, char dir[OPC_PATH], struct opc_err *err)
{
    struct opc_yaml *map;
    struct opc_pool *pool;
    struct opc_exhibit *e;
    char *path[8];
    for (int i = 0; i < n; i++)
        path[i] = (char *)(uintptr_t)r->path[run[i]];
    snprintf(dir, OPC_PATH, "%s/%s", (const char *)r->dir, name);
    const struct opc_exhibit_plan plan = {.dir = dir, .name = "fig", .title = "a figure"};
    assert_ok(opc_yaml_parse("probe", settings, strlen(settings), &map, err), err);
    assert_ok(opc_pool_create(threads, &pool, err), err);
    assert_ok(opc_exhibit_begin(&plan, &e, err), err);
    const struct opc_request request = {
        .ask = map, .runs = n, .run = path, .pool = pool, .seed = 5};
    int code = opc_analysis_run(&opc_probe_limitation, &request, e, err);
    if (code)
        opc_exhibit_drop(e);
    else
        code = opc_exhibit_end(e, err);
    opc_yaml_free(map);
    opc_pool_destroy(pool);
    return code;
}

static void path_of(const char *dir, const char *name, char path[OPC_PATH])
{
    struct opc_err err;
    assert_ok(opc_path_join(path, dir, name, &err), &err);
}

static double cell(const struct opc_table *t, int row, const char *column)
{
    return strtod(opc_table_cell(t, row, opc_table_find(t, column)), NULL);
}

/* Recorded with large actions and hence much noise; rollouts with small ones replay it. With the
 * recorded amplitude, or where noise does not depend on the action, they are near the environment.
 */
static void recorded_noise_is_replayed_whatever_the_action(void **state)
{
    enum { BY_2, BY_5, AGAIN, WAYS, SMALL = 0, RECORDED = 1 };
    char dir[OPC_PATH], path[OPC_PATH];
    struct opc_table *t;
    struct opc_err err;
    assert_ok(analyse(*state, "{samples: 300, horizon: 4, recorded: 1, amplitude: [0.05, 1]}", 2,
                      (const int[]){STEEP, FLAT}, 1, "replayed", dir, &err),
              &err);
    path_of(dir, "fig.csv", path);
    assert_ok(opc_table_read(path, &t, &err), &err);
    assert_int_equal(opc_table_rows(t), 2 * 2 * WAYS);
    /* Slopes ascend, although the runs do not. */
    assert_true(cell(t, 0, "slope") == 0 && cell(t, 2 * WAYS, "slope") == 4);
    const double flat = cell(t, SMALL * WAYS + BY_5, "distance"),
                 on = cell(t, (2 + RECORDED) * WAYS + BY_5, "distance"),
                 off = cell(t, (2 + SMALL) * WAYS + BY_5, "distance");
    assert_true(off > 1.5 && off > 3 * flat && off > 3 * on);
    for (int i = AGAIN; i < opc_table_rows(t); i += WAYS)
        assert_true(cell(t, i, "distance") < 0.35);
    opc_table_free(t);
}

static void one_run_of_a_slope_decides_nothing_and_three_do(void **state)
{
    const char *const set = "{samples: 100, horizon: 3, recorded: 1, amplitude: [0.05, 1]}";
    char dir[OPC_PATH], path[OPC_PATH];
    struct opc_exhibit_read *e;
    struct opc_err err;
    assert_ok(analyse(*state, set, 2, (const int[]){FLAT, STEEP}, 1, "few", dir, &err), &err);
    path_of(dir, "fig.json", path);
    assert_ok(opc_exhibit_load(path, &e, &err), &err);
    assert_int_equal(e->claims, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(e->claim[i].verdict, OPC_VERDICT_UNDECIDED);
        assert_contains(e->claim[i].measured, "3 seeds instead of 1");
    }
    opc_exhibit_unload(e);
    assert_ok(analyse(*state, set, 6, (const int[]){FLAT, FLAT, FLAT, STEEP, STEEP, STEEP}, 1,
                      "many", dir, &err),
              &err);
    path_of(dir, "fig.json", path);
    assert_ok(opc_exhibit_load(path, &e, &err), &err);
    assert_int_equal(e->claim[0].verdict, OPC_VERDICT_SUPPORTED);
    for (int i = 0; i < 3; i++) {
        const bool open = e->claim[i].verdict == OPC_VERDICT_UNDECIDED;
        assert_int_equal(strstr(e->claim[i].measured, "seeds") != NULL, open);
    }
    opc_exhibit_unload(e);
    /* What is not a matter of seeds says so. */
    assert_ok(analyse(*state, set, 3, (const int[]){STEEP, STEEP, STEEP}, 1, "slope", dir, &err),
              &err);
    path_of(dir, "fig.json", path);
    assert_ok(opc_exhibit_load(path, &e, &err), &err);
    assert_int_equal(e->claim[0].verdict, OPC_VERDICT_UNDECIDED);
    assert_contains(e->claim[0].measured, "one slope");
    opc_exhibit_unload(e);
    assert_ok(analyse(*state, "{samples: 30, horizon: 3, recorded: 1, amplitude: [1]}", 6,
                      (const int[]){FLAT, FLAT, FLAT, STEEP, STEEP, STEEP}, 1, "on", dir, &err),
              &err);
    path_of(dir, "fig.json", path);
    assert_ok(opc_exhibit_load(path, &e, &err), &err);
    assert_int_equal(e->claim[0].verdict, OPC_VERDICT_UNDECIDED);
    assert_contains(e->claim[0].measured, "no amplitude but the recorded one");
    opc_exhibit_unload(e);
}

static void the_number_of_threads_changes_no_byte(void **state)
{
    static const char *const FILES[] = {"fig.json", "fig.csv", "fig-runs.csv"};
    char dir[2][OPC_PATH], path[OPC_PATH], *text[2];
    struct opc_err err;
    for (int i = 0; i < 2; i++)
        assert_ok(analyse(*state, "{samples: 70, horizon: 3}", 2, (const int[]){FLAT, STEEP},
                          i ? 3 : 1, i ? "three" : "one", dir[i], &err),
                  &err);
    for (size_t f = 0; f < sizeof FILES / sizeof *FILES; f++) {
        for (int i = 0; i < 2; i++) {
            path_of(dir[i], FILES[f], path);
            assert_ok(opc_file_read(path, 1000000, &text[i], NULL, &err), &err);
        }
        assert_string_equal(text[0], text[1]);
        opc_free(text[0]);
        opc_free(text[1]);
    }
}

static void what_cannot_be_compared_is_refused(void **state)
{
    char dir[OPC_PATH];
    struct opc_err err;
    assert_fails(analyse(*state, "{horizon: 200}", 1, (const int[]){ENDS}, 1, "no", dir, &err),
                 OPC_EUSER, &err, "cartpole");
    assert_mentions(&err, "200");
    assert_fails(analyse(*state, "{}", 1, (const int[]){REPLAY}, 1, "no", dir, &err), OPC_EUSER,
                 &err, "opc.transition");
    assert_fails(analyse(*state, "{}", 0, NULL, 1, "no", dir, &err), OPC_EUSER, &err, "no run");
    assert_fails(analyse(*state, "{amplitude: [2]}", 1, (const int[]){FLAT}, 1, "no", dir, &err),
                 OPC_EUSER, &err, "amplitude");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_noise_is_replayed_whatever_the_action),
        cmocka_unit_test(one_run_of_a_slope_decides_nothing_and_three_do),
        cmocka_unit_test(the_number_of_threads_changes_no_byte),
        cmocka_unit_test(what_cannot_be_compared_is_refused),
    };
    return cmocka_run_group_tests(tests, train_all, remove_all);
}
