/* SPDX-License-Identifier: MIT */
/* Curves over minutes by the clock, of run directories and of the tables of a merge. */
#include "base/log.h"
#include "runs.h"
#include "study/curves/compare.h"
#include "study/curves/curves.h"
#include "study/curves/curves_draw.h"

static const struct opc_curves_plan OVER = {
    .of = "eval_return", .over = OPC_CURVES_MINUTES, .smooth = 1};
static const double VALUE[] = {1, 2, 3};

static const char *path_of(void **state, const char *name)
{
    static char path[700];
    snprintf(path, sizeof path, "%s/%s", (const char *)*state, name);
    return path;
}

static void put(void **state, const char *name, const char *text)
{
    char dir[OPC_PATH];
    struct opc_err err;
    assert_ok(opc_path_parent(dir, path_of(state, name), &err), &err);
    assert_ok(opc_make_directories(dir, &err), &err);
    assert_ok(opc_file_write(path_of(state, name), text, strlen(text), &err), &err);
}

/* DIR/NAME with the returns 1, 2 and 3; timing NULL: no timing.csv. */
static void make_run(void **state, const char *name, int seed, const char *timing)
{
    char word[32], file[64];
    snprintf(word, sizeof word, "train.seed=%d", seed);
    test_make_run(*state, name, (const char *[]){word, NULL}, 3, VALUE);
    snprintf(file, sizeof file, "%s/timing.csv", name);
    if (timing)
        put(state, file, timing);
}

static struct opc_curves *read_runs(void **state, const char *name)
{
    struct opc_curves *c;
    struct opc_err err;
    char *dir = (char *)path_of(state, name);
    assert_ok(opc_curves_read(1, &dir, &OVER, &c, &err), &err);
    return c;
}

/* Warnings, a line each. */
static void hear(void *ctx, enum opc_level level, const char *line)
{
    if (level == OPC_LEVEL_WARN)
        opc_text_addf(ctx, "%s\n", line);
}

/* Epochs of one minute; and of one and a half, where total_s began again with a second process. */
#define ONE "epoch,epoch_s,total_s\n1,60,60\n2,60,120\n3,60,180\n"
#define RESUMED "epoch,act_s,epoch_s,total_s\n1,5,90,90\n2,5,90,180\n3,5,90,90\n"

/* Each run rises by 1 an epoch. Over 1, 2, 3 and 1.5, 3, 4.5 minutes the second holds its first
 * value at 1 minute, and only the second is left at 4.5. */
static void runs_are_compared_after_the_same_time(void **state)
{
    make_run(state, "a/0", 0, ONE);
    make_run(state, "a/1", 1, RESUMED);
    struct opc_curves *c = read_runs(state, "a");
    assert_int_equal(c->groups, 1);
    assert_doubles_near(c->run[0].x, ((double[]){1, 2, 3}), 3, 0);
    assert_doubles_near(c->run[1].x, ((double[]){1.5, 3, 4.5}), 3, 0);
    const struct opc_curve_group *g = &c->group[0];
    assert_int_equal(g->n, 5);
    assert_doubles_near(g->x, ((double[]){1, 1.5, 2, 3, 4.5}), 5, 0);
    assert_doubles_near(g->middle, ((double[]){1, 1.25, 5.0 / 3, 2.5, 3}), 5, 1e-12);
    assert_string_equal(opc_column_label(OVER.over), "minutes");
    opc_curves_free(c);

    /* Three evaluations of the one and two of the other. */
    struct opc_compare *compare;
    struct opc_err err;
    char a[700], b[700], *at[] = {a, b};
    snprintf(a, sizeof a, "%s", path_of(state, "a/0"));
    snprintf(b, sizeof b, "%s", path_of(state, "a/1"));
    const struct opc_compare_runs side[2] = {{"a", 1, &at[0]}, {"b", 1, &at[1]}};
    const struct opc_compare_plan plan = {"eval_return", OPC_CURVES_MINUTES, 3, 1};
    assert_ok(opc_compare(side, &plan, &compare, &err), &err);
    assert_true(compare->task[0].score[0][0] == 2 && compare->task[0].score[1][0] == 1.5);
    opc_compare_free(compare);
}

/* An evaluation whose time is not written yet, or not known, has no place. */
static void an_epoch_has_a_time_while_all_before_it_have(void **state)
{
    static const struct {
        const char *timing;
        int n;
    } CASE[] = {
        {"epoch,epoch_s\n1,60\n2,60\n", 2},       {"epoch,epoch_s\n1,60\n3,60\n", 1},
        {"epoch,epoch_s\n1,60\n2,\n3,60\n", 1},   {"epoch,epoch_s\n1,60\n2,60\n3,6", 2},
        {"epoch,epoch_s\n1,60\n2,60\n2,60\n", 2},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        make_run(state, "a", 0, CASE[i].timing);
        struct opc_curves *c = read_runs(state, "a");
        assert_int_equal(c->run[0].n, CASE[i].n);
        assert_doubles_near(c->run[0].x, ((double[]){1, 2}), CASE[i].n, 0);
        opc_curves_free(c);
    }
}

static void a_run_without_time_is_named_and_left_out(void **state)
{
    struct opc_text heard = {0};
    struct opc_curves *c;
    struct opc_err err;
    make_run(state, "a/0", 0, NULL);
    make_run(state, "a/1", 1, RESUMED);
    make_run(state, "a/2", 2, "epoch,epoch_s\n");
    make_run(state, "a/3", 3, "epoch\n1\n2\n3\n");
    opc_log_to(hear, &heard);
    c = read_runs(state, "a");
    opc_log_to(NULL, NULL);
    assert_int_equal(c->runs, 1);
    assert_int_equal(c->run[0].seed, 1);
    assert_int_equal(c->group[0].runs, 1);
    opc_curves_free(c);
    assert_contains(opc_text_get(&heard), "a/0: no timing.csv");
    assert_contains(opc_text_get(&heard), "a/2: no timing.csv");
    assert_contains(opc_text_get(&heard), "a/3: no timing.csv");
    assert_null(strstr(opc_text_get(&heard), "a/1"));
    opc_text_free(&heard);

    /* If there are no others, it says what to do. */
    char *dir = (char *)path_of(state, "a/0");
    assert_fails(opc_curves_read(1, &dir, &OVER, &c, &err), OPC_EUSER, &err, "a/0: no timing.csv");
    assert_mentions(&err, "merge");
    assert_mentions(&err, "env_steps");
}

/* The same training on another machine took another time; it is one run all the same. */
static void a_copy_counts_once(void **state)
{
    struct opc_text heard = {0};
    make_run(state, "a/0", 7, ONE);
    make_run(state, "a/1", 7, RESUMED);
    opc_log_to(hear, &heard);
    struct opc_curves *c = read_runs(state, "a");
    opc_log_to(NULL, NULL);
    assert_int_equal(c->runs, 1);
    assert_contains(opc_text_get(&heard), "a/1 is a copy of ");
    opc_curves_free(c);
    opc_text_free(&heard);
}

/* Settings that are no line's: the returns of runs may be equal all the same. */
static void equal_returns_of_other_settings_are_no_copies(void **state)
{
    static const char *const KEY[] = {"opc.transition"};
    const struct opc_curves_plan plan = {
        .of = "eval_return", .over = "env_steps", .smooth = 1, .line_keys = 1, .line_key = KEY};
    for (int copies = 0; copies < 2; copies++) {
        struct opc_curves *c;
        struct opc_err err;
        char *dir = (char *)path_of(state, copies ? "same" : "other");
        for (int i = 0; i < 2; i++) {
            char name[32];
            snprintf(name, sizeof name, "%s/%d", copies ? "same" : "other", i);
            test_make_run(*state, name,
                          (const char *[]){copies || i ? "opc.horizon=7" : "opc.horizon=9", NULL},
                          3, VALUE);
        }
        assert_ok(opc_curves_read(1, &dir, &plan, &c, &err), &err);
        assert_int_equal(c->runs, copies ? 1 : 2);
        opc_curves_free(c);
    }
}

static const char MERGED[] = "env.name,train.seed,complete,epoch,env_steps,eval_return\n"
                             "pendulum,1,1,1,100,1\npendulum,1,1,2,200,2\n"
                             "pendulum,2,1,1,100,3\npendulum,2,1,2,200,4\n";

static void tables_tell_the_time_of_their_runs(void **state)
{
    struct opc_text heard = {0};
    put(state, "t/merged.csv", MERGED);
    put(state, "t/timing.csv",
        "env.name,train.seed,complete,epoch,epoch_s\n"
        "pendulum,1,1,1,60\npendulum,1,1,2,30\npendulum,2,1,1,30\npendulum,2,1,2,60\n");
    struct opc_curves *c = read_runs(state, "t");
    assert_doubles_near(c->run[0].x, ((double[]){1, 1.5}), 2, 0);
    assert_doubles_near(c->run[1].x, ((double[]){0.5, 1.5}), 2, 0);
    assert_doubles_near(c->run[1].raw, ((double[]){3, 4}), 2, 0);
    opc_curves_free(c);

    put(state, "t/timing.csv",
        "env.name,train.seed,complete,epoch,epoch_s\npendulum,2,1,1,30\npendulum,2,1,2,60\n");
    opc_log_to(hear, &heard);
    c = read_runs(state, "t");
    opc_log_to(NULL, NULL);
    assert_int_equal(c->runs, 1);
    assert_int_equal(c->run[0].seed, 2);
    assert_contains(opc_text_get(&heard), "t/merged.csv: pendulum, 1: no timing.csv");
    opc_curves_free(c);
    opc_text_free(&heard);

    struct opc_err err;
    test_remove(path_of(state, "t/timing.csv"));
    char *dir = (char *)path_of(state, "t");
    assert_fails(opc_curves_read(1, &dir, &OVER, &c, &err), OPC_EUSER, &err, "no timing.csv");
}

static int read_all(void *ctx, struct opc_err *err)
{
    struct opc_curves *c;
    const int code = opc_curves_read(1, ctx, &OVER, &c, err);
    if (!code)
        opc_curves_free(c);
    return code;
}

static void lack_of_memory_is_survived(void **state)
{
    struct opc_err err;
    char *dir;
    make_run(state, "a", 0, ONE);
    dir = (char *)path_of(state, "a");
    assert_ok(read_all(&dir, &err), &err);
    assert_survives_lack_of_memory(read_all, &dir);
    put(state, "t/merged.csv", "env.name,complete,epoch,eval_return\npendulum,1,1,3\n");
    put(state, "t/timing.csv", "env.name,complete,epoch,epoch_s\npendulum,1,1,60\n");
    dir = (char *)path_of(state, "t");
    assert_ok(read_all(&dir, &err), &err);
    assert_survives_lack_of_memory(read_all, &dir);
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(runs_are_compared_after_the_same_time),
        IN_DIR(an_epoch_has_a_time_while_all_before_it_have),
        IN_DIR(a_run_without_time_is_named_and_left_out),
        IN_DIR(a_copy_counts_once),
        IN_DIR(equal_returns_of_other_settings_are_no_copies),
        IN_DIR(tables_tell_the_time_of_their_runs),
        IN_DIR(lack_of_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
