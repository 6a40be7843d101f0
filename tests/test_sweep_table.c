/* SPDX-License-Identifier: MIT */
#include "study/curves/sweep_table.h"

#include "runs.h"

enum { MAX = 12 };

/* A sweep with a directory for each of its runs. */
struct swept {
    struct opc_sweep *sweep;
    char path[MAX][OPC_PATH];
    char *dir[MAX]; /* NULL: not begun */
    bool complete[MAX];
};

static void open_sweep(void **state, const char *text, struct swept *s)
{
    char path[OPC_PATH];
    struct opc_err err;
    *s = (struct swept){.sweep = NULL};
    snprintf(path, sizeof path, "%s/a.yaml", (const char *)*state);
    assert_ok(opc_file_write(path, text, strlen(text), &err), &err);
    const struct opc_sweep_ask ask = {.path = path};
    assert_ok(opc_sweep_open(&ask, &s->sweep, &err), &err);
    assert_true(s->sweep->tasks <= MAX);
}

/* Run i of the sweep, complete, with n evaluations, one every `each` steps. timing: what is in its
 * timing.csv; NULL: it has none. */
static void make_run(void **state, struct swept *s, int i, int each, int n, const double *value,
                     const char *timing)
{
    const struct opc_task *t = &s->sweep->task[i];
    char setting[MAX][80], path[OPC_PATH];
    const char *settings[MAX] = {NULL};
    struct opc_err err;
    for (int k = 0; k < s->sweep->keys; k++) {
        snprintf(setting[k], sizeof setting[k], "%s=%s", s->sweep->vary[k].key,
                 opc_task_value(s->sweep, t, k));
        settings[k] = setting[k];
    }
    test_make_run_after(*state, t->name, settings, 0, each, n, value);
    snprintf(s->path[i], OPC_PATH, "%s/%s", (const char *)*state, t->name);
    s->dir[i] = s->path[i];
    s->complete[i] = true;
    if (!timing)
        return;
    assert_ok(opc_path_join(path, s->dir[i], "timing.csv", &err), &err);
    assert_ok(opc_file_write(path, timing, strlen(timing), &err), &err);
}

static void assert_table_at(void **state, const struct swept *s, double at, const char *want)
{
    struct opc_sweep_runs *runs;
    struct opc_table *t;
    struct opc_err err;
    assert_ok(opc_sweep_runs_read(s->sweep, s->dir, s->complete, &runs, &err), &err);
    assert_ok(opc_sweep_table(runs, at, &t, &err), &err);
    test_assert_csv(*state, t, want);
    opc_sweep_runs_free(runs);
}

static void assert_table(void **state, const struct swept *s, const char *want)
{
    assert_table_at(state, s, 0, want);
}

#define COLUMNS "task,method,reference_epochs,seeds,env_steps,median,low,high,minutes"

/* Seeds run slowest, so that no two runs of a group are neighbours. */
static const char SWEEP[] = "vary:\n"
                            "  train.seed: 1..3\n"
                            "  opc.transition: [corrected, replay]\n"
                            "  sac.batch_size: [128, 256]\n";
/* Their scores, of the last five of seven evaluations: 30, 100 and 65. */
static const double CLIMBING[] = {-1000, -1000, 10, 20, 30, 40, 50};
static const double LEVEL[] = {0, 0, 100, 100, 100, 100, 100};
static const double SWINGING[] = {0, 0, 0, 130, 65, 0, 130};
/* Resumed after its second epoch: 120 s and 30 s, 2.5 minutes. The others: 5 and 20. */
static const char RESUMED[] = "epoch,act_s,epoch_s,total_s\n1,0,60,60\n2,0,60,120\n3,0,30,30\n";
static const char FIVE[] = "epoch,act_s,epoch_s,total_s\n1,0,300,300\n";
static const char TWENTY[] = "epoch,act_s,epoch_s,total_s\n1,0,600,600\n2,0,600,1200\n";

static void seeds_of_the_same_settings_are_a_row(void **state)
{
    struct swept s;
    open_sweep(state, SWEEP, &s);
    assert_int_equal(s.sweep->tasks, 12);
    /* OPC, batch 128: all three, one of them shorter */
    make_run(state, &s, 0, 100, 7, CLIMBING, RESUMED);
    make_run(state, &s, 4, 100, 7, LEVEL, FIVE);
    make_run(state, &s, 8, 90, 7, SWINGING, TWENTY);
    /* OPC, batch 256: one, with two evaluations, -1000 and -1000 */
    make_run(state, &s, 1, 100, 2, CLIMBING, RESUMED);
    /* SAC, batch 128: the first is under way */
    make_run(state, &s, 2, 100, 7, CLIMBING, RESUMED);
    s.complete[2] = false;
    make_run(state, &s, 6, 100, 7, LEVEL, FIVE);
    make_run(state, &s, 10, 90, 7, SWINGING, TWENTY);
    /* SAC, batch 256: the first two are not complete, and the third does not say what it took */
    make_run(state, &s, 7, 100, 7, LEVEL, FIVE);
    s.complete[7] = false;
    make_run(state, &s, 11, 90, 7, SWINGING, NULL);
    assert_table(state, &s,
                 COLUMNS ",sac.batch_size\n"
                         "cartpole,OPC,1,3,630,65.00,30.00,100.00,5.00,128\n"
                         "cartpole,OPC,1,1,200,-1000.00,-1000.00,-1000.00,2.50,256\n"
                         "cartpole,SAC,,2,630,82.50,65.00,100.00,12.50,128\n"
                         "cartpole,SAC,,1,630,65.00,65.00,65.00,,256\n");
    opc_sweep_close(s.sweep);
}

/* After 600 steps, the scores of CLIMBING, LEVEL and SWINGING are those of their first six
 * evaluations: -180, 80 and 39 (five of six: -1000, 10, 20, 30, 40; 0, 100 four times; 0, 0, 130,
 * 65, 0). A run under way counts once it has got there, a complete one that ended before does not.
 */
static void at_a_step_runs_that_got_there_count(void **state)
{
    struct swept s;
    open_sweep(state, "vary: {train.seed: 1..5}\n", &s);
    make_run(state, &s, 0, 100, 7, CLIMBING, RESUMED);
    make_run(state, &s, 1, 100, 6, LEVEL, FIVE);
    s.complete[1] = false;
    make_run(state, &s, 2, 100, 7, SWINGING, TWENTY);
    make_run(state, &s, 3, 100, 5, LEVEL, FIVE); /* too short */
    assert_table_at(state, &s, 600, COLUMNS "\ncartpole,OPC,1,3,600,39.00,-180.00,80.00,\n");
    /* Between two evaluations, the one before counts; after the last, none. */
    assert_table_at(state, &s, 650, COLUMNS "\ncartpole,OPC,1,2,600,-70.50,-180.00,39.00,\n");
    assert_table_at(state, &s, 701, COLUMNS "\n");
    opc_sweep_close(s.sweep);
}

static void without_a_complete_run_there_is_no_row(void **state)
{
    struct swept s;
    open_sweep(state, SWEEP, &s);
    make_run(state, &s, 0, 100, 7, LEVEL, FIVE);
    s.complete[0] = false;
    assert_table(state, &s, COLUMNS ",sac.batch_size\n");
    opc_sweep_close(s.sweep);
}

/* What a task and a method are called by has no column beside theirs. */
static void tasks_and_methods_have_their_names(void **state)
{
    struct swept s;
    open_sweep(state,
               "vary:\n"
               "  env.name: [cartpole, pendulum]\n"
               "  opc.transition: [learned, replay]\n"
               "  train.agent: [sac, ppo]\n"
               "skip:\n"
               "  - {opc.transition: learned, train.agent: ppo}\n",
               &s);
    assert_int_equal(s.sweep->tasks, 6);
    for (int i = 0; i < 6; i++)
        make_run(state, &s, i, 100, 7, LEVEL, FIVE);
    assert_table(state, &s,
                 COLUMNS "\n"
                         "cartpole,MBPO(*),1,1,700,100.00,100.00,100.00,5.00\n"
                         "cartpole,SAC,,1,700,100.00,100.00,100.00,5.00\n"
                         "cartpole,PPO,,1,700,100.00,100.00,100.00,5.00\n"
                         "pendulum,MBPO(*),1,1,700,100.00,100.00,100.00,5.00\n"
                         "pendulum,SAC,,1,700,100.00,100.00,100.00,5.00\n"
                         "pendulum,PPO,,1,700,100.00,100.00,100.00,5.00\n");
    opc_sweep_close(s.sweep);
}

/* As a row's own setting, it has no second column at the end. */
static void reference_epochs_are_those_of_the_runs(void **state)
{
    struct swept s;
    open_sweep(state, "vary: {opc.reference_epochs: [3, 0]}\n", &s);
    for (int i = 0; i < 2; i++)
        make_run(state, &s, i, 100, 7, LEVEL, FIVE);
    assert_table(state, &s,
                 COLUMNS "\ncartpole,OPC,3,1,700,100.00,100.00,100.00,5.00\n"
                         "cartpole,OPC,0,1,700,100.00,100.00,100.00,5.00\n");
    opc_sweep_close(s.sweep);
}

static int tabulate(void *ctx, struct opc_err *err)
{
    const struct swept *s = ctx;
    struct opc_sweep_runs *runs = NULL;
    struct opc_table *t = NULL;
    struct opc_text text = {0};
    int code = opc_sweep_runs_read(s->sweep, s->dir, s->complete, &runs, err);
    if (!code)
        code = opc_sweep_table(runs, 0, &t, err);
    if (!code) {
        opc_table_print(t, &text);
        code = opc_text_check(&text, err);
    }
    opc_text_free(&text);
    opc_table_free(t);
    opc_sweep_runs_free(runs);
    return code;
}

static void lack_of_memory_is_survived(void **state)
{
    struct swept s;
    struct opc_err err;
    open_sweep(state, "vary: {sac.batch_size: [128, 256]}\n", &s);
    make_run(state, &s, 1, 100, 7, LEVEL, NULL); /* without its timing.csv it is still a row */
    assert_ok(tabulate(&s, &err), &err);
    assert_survives_lack_of_memory(tabulate, &s);
    opc_sweep_close(s.sweep);
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(seeds_of_the_same_settings_are_a_row),   IN_DIR(at_a_step_runs_that_got_there_count),
        IN_DIR(without_a_complete_run_there_is_no_row), IN_DIR(tasks_and_methods_have_their_names),
        IN_DIR(reference_epochs_are_those_of_the_runs), IN_DIR(lack_of_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
