/* SPDX-License-Identifier: MIT */
#include "study/curves/sweep_tables.h"

#include "opc/transition_type.h"
#include "runs.h"
#include "study/curves/compare.h"
#include "study/curves/curves.h"

static const struct opc_curves_plan PLAN = {.of = "eval_return", .over = "env_steps", .smooth = 1};

static const char HEAD[] =
    "env.name,opc.transition,train.seed,complete,epoch,env_steps,eval_return,q\n";
static const char MERGED[] = "pendulum,corrected,1,1,1,100,10,\npendulum,corrected,1,1,2,200,20,1\n"
                             "pendulum,corrected,2,0,1,100,30,\n" /* it is not complete */
                             "pendulum,replay,1,1,1,100,1,\npendulum,replay,1,1,2,200,,5\n"
                             "cartpole,replay,1,1,1,100,7,\n";

/* DIR/NAME/FILE */
static void put(void **state, const char *name, const char *file, const char *head,
                const char *rows)
{
    char path[700];
    struct opc_text text = {0};
    struct opc_err err;
    snprintf(path, sizeof path, "%s/%s", (const char *)*state, name);
    assert_ok(opc_make_directories(path, &err), &err);
    snprintf(path, sizeof path, "%s/%s/%s", (const char *)*state, name, file);
    opc_text_addf(&text, "%s%s", head, rows);
    assert_ok(opc_file_write(path, opc_text_get(&text), text.used, &err), &err);
    opc_text_free(&text);
}

static const char *path_of(void **state, const char *name)
{
    static char path[2][700];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", (const char *)*state, name);
    return path[turn];
}

static struct opc_curves *read_curves(void **state, const char *a, const char *b)
{
    struct opc_curves *c;
    struct opc_err err;
    char *dir[] = {(char *)path_of(state, a), (char *)(b ? path_of(state, b) : "")};
    assert_ok(opc_curves_read(b ? 2 : 1, dir, &PLAN, &c, &err), &err);
    return c;
}

/* As from the runs themselves: panels, lines, colours, and rows without a value left out. */
static void rows_are_grouped_as_runs_would_be(void **state)
{
    put(state, "t", "merged.csv", HEAD, MERGED);
    struct opc_curves *c = read_curves(state, "t", NULL);
    assert_int_equal(c->runs, 4);
    assert_int_equal(c->groups, 3);
    assert_int_equal(c->panels, 2);
    assert_string_equal(c->group[0].label, "OPC");
    assert_int_equal(c->group[0].runs, 2);
    assert_int_equal(c->group[0].colour, opc_transition_type(2)->colour);
    assert_string_equal(c->group[1].label, "SAC");
    assert_string_equal(c->panel[1], "cartpole");
    assert_int_equal(c->run[0].seed, 1);
    assert_int_equal(c->run[1].seed, 2);
    assert_doubles_near(c->run[0].raw, ((double[]){10, 20}), 2, 0);
    assert_doubles_near(c->run[0].x, ((double[]){100, 200}), 2, 0);
    assert_int_equal(c->run[2].n, 1);
    opc_curves_free(c);
}

/* Which task and which method is not in merged.csv, but in runs.csv. */
static void runs_csv_tells_task_and_method(void **state)
{
    static const char *const METHOD[] = {"OPC",  "MBPO(*)",         "MBPO", "SAC", "PPO",
                                         "PETS", "PETS with eq. 5", "STEVE"};
    put(state, "u", "merged.csv", "train.seed,complete,epoch,env_steps,eval_return\n",
        "1,1,1,100,10\n2,1,1,100,20\n");
    for (size_t i = 0; i < sizeof METHOD / sizeof *METHOD; i++) {
        char rows[200];
        snprintf(rows, sizeof rows, "1,1,%s,pendulum\n2,1,%s,pendulum\n", METHOD[i], METHOD[i]);
        put(state, "u", "runs.csv", "train.seed,complete,method,task\n", rows);
        struct opc_curves *c = read_curves(state, "u", NULL);
        assert_int_equal(c->groups, 1);
        assert_string_equal(c->group[0].label, METHOD[i]);
        assert_true(c->group[0].colour != 0);
        assert_string_equal(c->panel[0], "pendulum");
        opc_curves_free(c);
    }
}

/* error_1 is corrected_1 of a method that imagines by eq. 5, and learned_1 of any other. */
static void the_method_tells_the_equation_of_an_error(void **state)
{
    static const char *const METHOD[] = {"OPC", "MBPO(*)", "PETS", "PETS with eq. 5"};
    static const double WANT[] = {2, 5, 5, 2};
    const struct opc_curves_plan plan = {.of = "error_1", .over = "env_steps", .smooth = 1};
    put(state, "t", "merged.csv", "train.seed,complete,epoch,env_steps,learned_1,corrected_1\n",
        "1,1,1,100,5,2\n");
    for (size_t i = 0; i < sizeof METHOD / sizeof *METHOD; i++) {
        struct opc_curves *c;
        struct opc_err err;
        char row[100], *dir = (char *)path_of(state, "t");
        snprintf(row, sizeof row, "1,1,%s,pendulum\n", METHOD[i]);
        put(state, "t", "runs.csv", "train.seed,complete,method,task\n", row);
        assert_ok(opc_curves_read(1, &dir, &plan, &c, &err), &err);
        assert_int_equal(c->run[0].n, 1);
        assert_true(c->run[0].raw[0] == WANT[i]);
        opc_curves_free(c);
    }
}

/* Settings that do not vary are not in the tables, so equal rest means nothing. */
static void runs_of_tables_share_no_line_with_others(void **state)
{
    static const double VALUE[] = {10, 20};
    put(state, "t", "merged.csv", HEAD, MERGED);
    test_make_run(*state, "run",
                  (const char *[]){"env.name=pendulum", "opc.transition=corrected", NULL}, 2,
                  VALUE);
    struct opc_curves *c = read_curves(state, "t", "run");
    assert_int_equal(c->groups, 4);
    char want[800];
    snprintf(want, sizeof want, "OPC, %s", path_of(state, "t"));
    want[sizeof c->group->label - 1] = '\0'; /* labels are cut */
    assert_string_equal(c->group[0].label, want);
    assert_string_equal(c->group[3].label, "OPC");
    opc_curves_free(c);
}

static void settings_are_compared_as_far_as_tables_tell_them(void **state)
{
    static const double VALUE[] = {10, 20};
    struct opc_table *t;
    struct opc_err err;
    put(state, "t", "merged.csv", HEAD, "pendulum,corrected,1,1,1,100,10,\n");
    test_make_run(
        *state, "run",
        (const char *[]){"env.name=pendulum", "opc.transition=replay", "opc.horizon=7", NULL}, 2,
        VALUE);
    char *a = (char *)path_of(state, "t"), *b = (char *)path_of(state, "run");
    const struct opc_compare_runs side[2] = {{"t", 1, &a}, {"run", 1, &b}};
    assert_ok(opc_compare_settings(side, &t, &err), &err);
    assert_int_equal(opc_table_rows(t), 1);
    assert_string_equal(opc_table_cell(t, 0, 0), "opc.transition");
    assert_string_equal(opc_table_cell(t, 0, 1), "corrected");
    assert_string_equal(opc_table_cell(t, 0, 2), "replay");
    opc_table_free(t);
}

static void refused(void **state, const char *of, const char *key)
{
    const struct opc_curves_plan plan = {.of = of, .over = "env_steps", .smooth = 1};
    struct opc_curves *c;
    struct opc_err err;
    char *dir = (char *)path_of(state, "t");
    assert_fails(opc_curves_read(1, &dir, &plan, &c, &err), OPC_EUSER, &err, key);
    assert_mentions(&err, "merged.csv");
}

static void what_is_missing_is_said_with_what_there_is(void **state)
{
    put(state, "t", "merged.csv", HEAD, MERGED);
    refused(state, "eval_retrun", "'eval_retrun'; it has epoch, env_steps, eval_return, q");
    put(state, "t", "merged.csv", HEAD, "");
    refused(state, "q", "no rows");
    put(state, "t", "merged.csv", "epoch,q\n", "1,1\n");
    refused(state, "q", "'complete'");
    put(state, "t", "merged.csv", "train.seed,complete,env_steps,q\n", "1,1,1,1\n");
    refused(state, "q", "'env.name'");
    put(state, "t", "merged.csv", "env.name,complete,env_steps,learned_1,corrected_1\n",
        "pendulum,1,1,5,2\n");
    refused(state, "error_1", "by which equation");
    put(state, "t", "merged.csv", "env.name,colour,complete,env_steps,q\n", "pendulum,1,1,1,1\n");
    refused(state, "q", "'colour'");
    put(state, "t", "merged.csv", "env.name,opc.horizon,complete,env_steps,q\n",
        "pendulum,x,1,1,1\n");
    refused(state, "q", "horizon");
    put(state, "t", "merged.csv", "train.seed,complete,env_steps,q\n", "1,1,1,1\n");
    put(state, "t", "runs.csv", "train.seed,complete,method,task\n", "1,1,Magic,pendulum\n");
    struct opc_sweep_tables tables;
    struct opc_err err;
    assert_fails(opc_sweep_tables_open(path_of(state, "t"), &tables, &err), OPC_EUSER, &err,
                 "'Magic'");
}

static int read_all(void *ctx, struct opc_err *err)
{
    struct opc_curves *c;
    struct opc_table *t;
    char *dir = ctx;
    const struct opc_compare_runs side[2] = {{"a", 1, &dir}, {"b", 1, &dir}};
    int code = opc_curves_read(1, &dir, &PLAN, &c, err);
    if (code)
        return code;
    opc_curves_free(c);
    code = opc_compare_settings(side, &t, err);
    if (!code)
        opc_table_free(t);
    return code;
}

static void lack_of_memory_is_survived(void **state)
{
    struct opc_err err;
    put(state, "t", "merged.csv", HEAD, MERGED);
    put(state, "t", "runs.csv", "env.name,opc.transition,train.seed,complete,method,task\n",
        "pendulum,corrected,1,1,OPC,pendulum\n");
    char *dir = (char *)path_of(state, "t");
    assert_ok(read_all(dir, &err), &err);
    assert_survives_lack_of_memory(read_all, dir);
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(rows_are_grouped_as_runs_would_be),
        IN_DIR(runs_csv_tells_task_and_method),
        IN_DIR(the_method_tells_the_equation_of_an_error),
        IN_DIR(runs_of_tables_share_no_line_with_others),
        IN_DIR(settings_are_compared_as_far_as_tables_tell_them),
        IN_DIR(what_is_missing_is_said_with_what_there_is),
        IN_DIR(lack_of_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
