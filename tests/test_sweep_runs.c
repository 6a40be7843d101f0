/* SPDX-License-Identifier: MIT */
#include "study/curves/sweep_runs.h"

#include "base/file.h"
#include "base/log.h"
#include "opc/mem.h"
#include "study/curves/sweep_table.h"
#include "test.h"

/* ---- what the tests share -------------------------------------------------------------------- */

enum { MAX_RUNS = 6 };

/* A file of the test's directory, with the directories it is in. */
static void put(void **state, const char *name, const char *text)
{
    char path[OPC_PATH], dir[OPC_PATH];
    struct opc_err err;
    snprintf(path, sizeof path, "%s/%s", (const char *)*state, name);
    assert_ok(opc_path_parent(dir, path, &err), &err);
    assert_ok(opc_make_directories(dir, &err), &err);
    assert_ok(opc_file_write(path, text, strlen(text), &err), &err);
}

static void assert_no_file(void **state, const char *name)
{
    char path[OPC_PATH];
    snprintf(path, sizeof path, "%s/%s", (const char *)*state, name);
    assert_false(opc_file_exists(path));
}

static void assert_file(void **state, const char *name, const char *want)
{
    char path[OPC_PATH], *text;
    struct opc_err err;
    snprintf(path, sizeof path, "%s/%s", (const char *)*state, name);
    assert_ok(opc_file_read(path, 100000, &text, NULL, &err), &err);
    assert_string_equal(text, want);
    opc_free(text);
}

/* runs.csv of OUT; `want` ends each line without the identity of the settings, which is that of
 * the run it names. run: their numbers in the sweep, in the order of the lines. */
static void assert_runs_file(void **state, const struct opc_sweep *s, const char *out,
                             const char *want, const int *run)
{
    struct opc_text text = {0};
    char name[64], identity[OPC_SWEEP_IDENTITY];
    const char *line = want;
    for (const char *end; (end = strchr(line, '\n')); line = end + 1) {
        opc_text_addf(&text, "%.*s", (int)(end - line), line);
        if (line > want) { /* not the head */
            opc_sweep_identity(&s->task[*run++].set, identity);
            opc_text_addf(&text, ",%s", identity);
        }
        opc_text_add(&text, "\n");
    }
    snprintf(name, sizeof name, "%s/runs.csv", out);
    assert_file(state, name, opc_text_get(&text));
    opc_text_free(&text);
}
static const int ALL[] = {0, 1, 2, 3, 4, 5};

static struct opc_sweep *open_sweep(void **state, const char *text)
{
    struct opc_sweep *s;
    struct opc_err err;
    char path[OPC_PATH];
    put(state, "a.yaml", text);
    snprintf(path, sizeof path, "%s/a.yaml", (const char *)*state);
    const struct opc_sweep_ask ask = {.path = path};
    assert_ok(opc_sweep_open(&ask, &s, &err), &err);
    assert_true(s->tasks <= MAX_RUNS);
    return s;
}

/* What merging starts from: run i has the directory OUT/i if that has a metrics.csv, and is
 * complete if `complete` has a 1 there. */
struct merge {
    char *test; /* the test's directory */
    const struct opc_sweep *sweep;
    const char *out, *complete;
    const char *add[3]; /* NULL after the last */
    enum opc_sweep_match how;
};

static int read_runs(const struct merge *m, struct opc_sweep_runs **runs, struct opc_err *err)
{
    char path[MAX_RUNS][OPC_PATH], added[OPC_PATH], *dir[MAX_RUNS];
    bool complete[MAX_RUNS];
    for (int i = 0; i < m->sweep->tasks; i++) {
        snprintf(path[i], OPC_PATH, "%s/%s/%d", m->test, m->out, i);
        dir[i] = opc_rundir_has(path[i], "metrics.csv") ? path[i] : NULL;
        complete[i] = m->complete[i] == '1';
    }
    int code = opc_sweep_runs_read(m->sweep, dir, complete, runs, err);
    for (int i = 0; m->add[i] && !code; i++) {
        snprintf(added, sizeof added, "%s/%s", m->test, m->add[i]);
        code = opc_sweep_runs_add(*runs, added, m->how, err);
    }
    return code;
}

/* Writes the tables into OUT, timing.csv only if a run has one. */
static int merge(void *ctx, struct opc_err *err)
{
    const struct merge *m = ctx;
    static const char *const NAME[] = {"merged.csv", "runs.csv", "table.csv", "timing.csv"};
    struct opc_sweep_runs *runs = NULL;
    struct opc_table *t[4] = {NULL};
    char dir[OPC_PATH], path[OPC_PATH];
    int code = read_runs(m, &runs, err);
    if (!code)
        code = opc_sweep_runs_merged(runs, &t[0], err);
    if (!code)
        code = opc_sweep_runs_list(runs, &t[1], err);
    if (!code)
        code = opc_sweep_table(runs, 0, &t[2], err);
    if (!code)
        code = opc_sweep_runs_timing(runs, &t[3], err);
    snprintf(dir, sizeof dir, "%s/%s", m->test, m->out);
    if (!code)
        code = opc_make_directories(dir, err);
    for (int i = 0; i < 4; i++) {
        if (!code)
            code = opc_path_join(path, dir, NAME[i], err);
        if (!code && (i < 3 || opc_table_rows(t[i]) > 0))
            code = opc_table_write(t[i], path, err);
        opc_table_free(t[i]);
    }
    opc_sweep_runs_free(runs);
    return code;
}

static void merge_into(void **state, const struct opc_sweep *s, const char *out,
                       const char *complete, const char *add, const char *add_too)
{
    struct merge m = {*state, s, out, complete, {add, add_too, NULL}, OPC_MATCH_ANY};
    struct opc_err err = {0};
    assert_ok(merge(&m, &err), &err);
}

static void refuse(void **state, const struct opc_sweep *s, const char *add, enum opc_code want,
                   const char *key, const char *other_key)
{
    struct merge m = {*state, s, "refused", "000000", {add, NULL, NULL}, OPC_MATCH_ANY};
    struct opc_err err = {0};
    char path[OPC_PATH];
    assert_fails(merge(&m, &err), want, &err, key);
    assert_mentions(&err, other_key);
    snprintf(path, sizeof path, "%s/refused", (const char *)*state);
    assert_false(opc_file_exists(path));
}

/* Warnings, a line each. */
static void hear(void *ctx, enum opc_level level, const char *line)
{
    if (level == OPC_LEVEL_WARN)
        opc_text_addf(ctx, "%s\n", line);
}

#define RUNS                                                                                       \
    "complete,method,task,epochs,env_steps,total_steps,score,minutes,version,revision,settings\n"
#define TABLE "task,method,reference_epochs,seeds,env_steps,median,low,high,minutes\n"
#define METRICS "epoch,env_steps,total_steps,eval_return\n"

/* Two runs of three epochs. The first is resumed, and 0.1 + 0.2 + 0.9 is no round number; the
 * second says nothing of itself. */
static const char TWO[] = "train.epochs: 3\nvary: {train.seed: [7, 5]}\n";
static void put_two(void **state)
{
    put(state, "own/0/metrics.csv", METRICS "1,10,15,0.1\n2,20,25,0.2\n3,30,35,0.9\n");
    put(state, "own/0/timing.csv", "epoch,epoch_s,total_s\n1,60,60\n2,60,120\n3,30,30\n");
    put(state, "own/0/meta.json", "{\"opc\": \"0.1.0\", \"revision\": \"508bb785afe3\"}");
    put(state, "own/1/metrics.csv", METRICS "1,10,15,1.5\n2,20,25,\n3,30,35,2.5\n");
}
static const char TWO_MERGED[] = "train.seed,complete," METRICS "7,1,1,10,15,0.1\n"
                                 "7,1,2,20,25,0.2\n"
                                 "7,1,3,30,35,0.9\n"
                                 "5,1,1,10,15,1.5\n"
                                 "5,1,2,20,25,\n"
                                 "5,1,3,30,35,2.5\n";
static const char TWO_RUNS[] =
    "train.seed," RUNS "7,1,OPC,cartpole,3,30,35,0.4000000000000001,2.5,0.1.0,508bb785afe3\n"
    "5,1,OPC,cartpole,3,30,35,2,,,\n";
static const char TWO_TABLE[] = TABLE "cartpole,OPC,1,2,30,1.20,0.40,2.00,2.50\n";
static const char TWO_TIMING[] = "train.seed,complete,epoch,epoch_s,total_s\n"
                                 "7,1,1,60,60\n"
                                 "7,1,2,60,120\n"
                                 "7,1,3,30,30\n";

static void assert_two(void **state, const struct opc_sweep *s, const char *out)
{
    char name[64];
    snprintf(name, sizeof name, "%s/merged.csv", out);
    assert_file(state, name, TWO_MERGED);
    assert_runs_file(state, s, out, TWO_RUNS, ALL);
    snprintf(name, sizeof name, "%s/table.csv", out);
    assert_file(state, name, TWO_TABLE);
    snprintf(name, sizeof name, "%s/timing.csv", out);
    assert_file(state, name, TWO_TIMING);
}

/* ---- run directories ------------------------------------------------------------------------- */

static void tables_with_other_columns_are_merged(void **state)
{
    struct opc_sweep *s = open_sweep(state, "vary: {env.name: [a, 'b, c', d]}\n");
    put(state, "own/0/metrics.csv", "epoch,return\n1,0.5\n2,\n");
    put(state, "own/1/metrics.csv",
        "epoch,loss,return,end\n1,7,8,9\n2,7,8,9\n3,7"); /* half a line */
    put(state, "own/2/metrics.csv", "epoch,return\n");   /* no rows */
    merge_into(state, s, "own", "100", NULL, NULL);
    assert_file(state, "own/merged.csv",
                "env.name,complete,epoch,loss,return,end\n"
                "a,1,1,,0.5,\na,1,2,,,\n"
                "\"b, c\",0,1,7,8,9\n\"b, c\",0,2,7,8,9\n");
    /* Runs without an evaluation have no score, and are in no row of the table. */
    assert_runs_file(state, s, "own",
                     "env.name," RUNS "a,1,OPC,a,2,,,,,,\n\"b, c\",0,OPC,\"b, c\",2,,,,,,\n", ALL);
    assert_file(state, "own/table.csv", TABLE);
    opc_sweep_close(s);
}

/* The mean of the evaluations, of the last five if there are more; minutes of all resumes. */
static void each_run_has_a_row_with_what_it_comes_to(void **state)
{
    struct opc_sweep *s = open_sweep(state, TWO);
    put_two(state);
    merge_into(state, s, "own", "11", NULL, NULL);
    assert_two(state, s, "own");
    put(state, "own/1/metrics.csv",
        METRICS "1,1,1,9\n2,2,2,9\n3,3,3,1\n4,4,4,2\n5,5,5,3\n6,6,6,4\n7,7,8,5\n");
    merge_into(state, s, "own", "01", NULL, NULL);
    assert_runs_file(state, s, "own",
                     "train.seed," RUNS
                     "7,0,OPC,cartpole,3,30,35,0.4000000000000001,2.5,0.1.0,508bb785afe3\n"
                     "5,1,OPC,cartpole,7,7,8,3,,,\n",
                     ALL);
    assert_file(state, "own/table.csv", TABLE "cartpole,OPC,1,1,7,3.00,3.00,3.00,\n");
    opc_sweep_close(s);
}

/* Cells as they are written, below the columns of all runs. The second run has no metrics, and is
 * in no table; the last line of the third is being written. */
static void what_epochs_cost_is_merged_likewise(void **state)
{
    struct opc_sweep *s =
        open_sweep(state, "train.epochs: 2\nvary: {env.name: [a, b, 'c, d', e]}\n");
    put(state, "own/0/metrics.csv", "epoch\n1\n2\n");
    put(state, "own/0/timing.csv", "epoch,act_s,epoch_s\n1,0.10,1\n2,0.20,2\n");
    put(state, "own/1/metrics.csv", "epoch\n");
    put(state, "own/1/timing.csv", "epoch,act_s,epoch_s\n1,9,9\n");
    put(state, "own/2/metrics.csv", "epoch\n1\n2\n");
    put(state, "own/2/timing.csv", "epoch,act_s,fit_s,epoch_s\n1,1,3,4\n2,1,");
    put(state, "own/3/metrics.csv", "epoch\n1\n");
    merge_into(state, s, "own", "1000", NULL, NULL);
    assert_file(state, "own/timing.csv",
                "env.name,complete,epoch,act_s,fit_s,epoch_s\n"
                "a,1,1,0.10,,1\n"
                "a,1,2,0.20,,2\n"
                "\"c, d\",0,1,1,3,4\n");
    merge_into(state, s, "again", "0000", "own", NULL);
    assert_file(state, "again/timing.csv",
                "env.name,complete,epoch,act_s,fit_s,epoch_s\n"
                "a,1,1,0.10,,1\n"
                "a,1,2,0.20,,2\n"
                "\"c, d\",0,1,1,3,4\n");
    opc_sweep_close(s);
}

/* ---- earlier merges -------------------------------------------------------------------------- */

/* Whether all runs, one of them or none are there as directories, and also into itself. */
static void adding_its_own_result_changes_no_byte(void **state)
{
    struct opc_sweep *s = open_sweep(state, TWO);
    struct opc_text heard = {0};
    char path[OPC_PATH];
    put_two(state);
    merge_into(state, s, "own", "11", NULL, NULL);
    opc_log_to(hear, &heard);
    merge_into(state, s, "own", "11", "own", NULL);
    assert_two(state, s, "own");
    merge_into(state, s, "nothing", "00", "own", NULL);
    assert_two(state, s, "nothing");
    merge_into(state, s, "nothing", "00", "nothing", "own");
    assert_two(state, s, "nothing");
    snprintf(path, sizeof path, "%s/own/0", (const char *)*state);
    test_remove(path);
    merge_into(state, s, "own", "01", "own", NULL);
    assert_two(state, s, "own");
    opc_log_to(NULL, NULL);
    assert_string_equal(opc_text_get(&heard), "");
    opc_text_free(&heard);
    opc_sweep_close(s);
}

/* The order of columns in the earlier table is not that of the runs here, a run is not complete,
 * and words need quotes: the table is the same, whichever of the runs has a directory. */
static void adding_keeps_the_order_of_columns_and_incomplete_runs(void **state)
{
    static const char EARLIER[] = "env.name,complete,epoch,loss,c,b,eval_return\n"
                                  "\"b, c\",0,1,8,,2,\n"
                                  "\"b, c\",0,2,9,,3,\n"
                                  "d,1,1,,4,,5\n"
                                  "d,1,2,,6,,7\n";
    struct opc_sweep *s = open_sweep(state, "train.epochs: 2\nvary: {env.name: ['b, c', d]}\n");
    put(state, "earlier/merged.csv", EARLIER);
    put(state, "first/0/metrics.csv", "epoch,b,loss\n1,2,8\n2,3,9\n");
    put(state, "second/1/metrics.csv", "epoch,eval_return,c\n1,5,4\n2,7,6\n");
    merge_into(state, s, "first", "00", "earlier", NULL);
    assert_file(state, "first/merged.csv", EARLIER);
    merge_into(state, s, "second", "01", "earlier", NULL);
    assert_file(state, "second/merged.csv", EARLIER);
    merge_into(state, s, "none", "00", "earlier", NULL);
    assert_file(state, "none/merged.csv", EARLIER);
    opc_sweep_close(s);
}

/* An incomplete run gives way to a complete one only, a missing one to what there is; rows are in
 * the order of the file, not of the sources. */
static void what_is_complete_elsewhere_is_taken_over(void **state)
{
    struct opc_sweep *s = open_sweep(state, "train.epochs: 2\nvary: {train.seed: 1..5}\n");
    put(state, "own/0/metrics.csv", "epoch,env_steps,eval_return,mine\n1,10,1,x\n");
    put(state, "own/2/metrics.csv", "epoch,env_steps,eval_return,mine\n1,10,1,y\n2,20,2,y\n");
    put(state, "own/4/metrics.csv", "epoch,env_steps,eval_return,mine\n1,10,1,z\n");
    put(state, "a/merged.csv",
        "train.seed,complete,epoch,env_steps,eval_return\n"
        "5,0,1,10,7\n"
        "4,0,1,10,7\n"
        "3,0,1,10,7\n"
        "2,0,1,10,7\n"
        "1,1,1,10,3\n"
        "1,1,2,20,4\n");
    put(state, "a/runs.csv", "train.seed,complete,task,minutes\n1,1,cartpole,0.25\n");
    put(state, "b/merged.csv",
        "train.seed,complete,epoch,env_steps,eval_return\n"
        "4,1,1,10,8\n"
        "4,1,2,20,9\n");
    merge_into(state, s, "own", "00100", "a", "b");
    assert_file(state, "own/merged.csv",
                "train.seed,complete,epoch,env_steps,eval_return,mine\n"
                "1,1,1,10,3,\n"
                "1,1,2,20,4,\n"
                "2,0,1,10,7,\n"
                "3,1,1,10,1,y\n"
                "3,1,2,20,2,y\n"
                "4,1,1,10,8,\n"
                "4,1,2,20,9,\n"
                "5,0,1,10,1,z\n");
    assert_runs_file(state, s, "own",
                     "train.seed," RUNS "1,1,OPC,cartpole,2,20,,3.5,0.25,,\n"
                     "2,0,OPC,cartpole,1,10,,7,,,\n"
                     "3,1,OPC,cartpole,2,20,,1.5,,,\n"
                     "4,1,OPC,cartpole,2,20,,8.5,,,\n"
                     "5,0,OPC,cartpole,1,10,,1,,,\n",
                     ALL);
    assert_file(state, "own/table.csv", TABLE "cartpole,OPC,1,3,20,3.50,1.50,8.50,0.25\n");
    opc_sweep_close(s);
}

/* It is never that of another training of the run: 1 is complete in `a`, which does not tell; 2
 * stays as it is; 3 is only in `b`. */
static void the_time_comes_with_the_run(void **state)
{
    struct opc_sweep *s = open_sweep(state, "train.epochs: 2\nvary: {train.seed: 1..3}\n");
    put(state, "own/0/metrics.csv", "epoch,q\n1,1\n");
    put(state, "own/0/timing.csv", "epoch,epoch_s\n1,10\n");
    put(state, "own/1/metrics.csv", "epoch,q\n1,1\n2,1\n");
    put(state, "own/1/timing.csv", "epoch,epoch_s\n1,20\n2,20\n");
    put(state, "a/merged.csv", "train.seed,complete,epoch,q\n1,1,1,1\n1,1,2,1\n");
    put(state, "b/merged.csv",
        "train.seed,complete,epoch,q\n3,1,1,1\n3,1,2,1\n2,1,1,1\n2,1,2,1\n1,1,1,1\n1,1,2,1\n");
    put(state, "b/timing.csv",
        "train.seed,complete,epoch,epoch_s\n3,1,1,30\n3,1,2,30\n2,1,1,31\n2,1,2,31\n1,1,1,32\n");
    merge_into(state, s, "own", "010", "a", "b");
    assert_file(state, "own/timing.csv",
                "train.seed,complete,epoch,epoch_s\n2,1,1,20\n2,1,2,20\n3,1,1,30\n3,1,2,30\n");
    /* Tables of older versions have none, and then there is none. */
    merge_into(state, s, "new", "000", "a", NULL);
    assert_no_file(state, "new/timing.csv");
    opc_sweep_close(s);
}

static void a_run_with_other_evaluations_is_named_and_stays(void **state)
{
    struct opc_sweep *s = open_sweep(state, TWO);
    struct opc_text heard = {0};
    put_two(state);
    /* Run s7 ends with another number; s5 has other digits of no evaluation. */
    put(state, "a/merged.csv",
        "train.seed,complete," METRICS "7,1,1,10,15,0.1\n"
        "7,1,2,20,25,0.2\n"
        "7,1,3,30,35,0.8\n"
        "5,1,1,10,99,1.50\n"
        "5,1,3,30,99,2.5\n");
    opc_log_to(hear, &heard);
    merge_into(state, s, "own", "11", "a", NULL);
    opc_log_to(NULL, NULL);
    assert_two(state, s, "own");
    assert_contains(opc_text_get(&heard), "s7: ");
    assert_contains(opc_text_get(&heard), "/a ");
    assert_null(strstr(opc_text_get(&heard), "s5"));
    opc_text_free(&heard);
    opc_sweep_close(s);
}

/* As of a run directory: it could go on. */
static void fewer_epochs_than_the_file_asks_for_are_incomplete(void **state)
{
    struct opc_sweep *s = open_sweep(state, TWO);
    struct opc_text heard = {0};
    put(state, "a/merged.csv", "train.seed,complete," METRICS "5,1,1,10,15,0.1\n");
    opc_log_to(hear, &heard);
    merge_into(state, s, "out", "00", "a", NULL);
    opc_log_to(NULL, NULL);
    assert_contains(opc_text_get(&heard), "s5 ");
    assert_contains(opc_text_get(&heard), "1 of 3");
    assert_file(state, "out/merged.csv", "train.seed,complete," METRICS "5,0,1,10,15,0.1\n");
    assert_file(state, "out/table.csv", TABLE);
    opc_text_free(&heard);
    opc_sweep_close(s);
}

static void tables_of_other_runs_are_refused(void **state)
{
    static const struct {
        const char *merged, *runs; /* NULL: the file is not there */
        enum opc_code code;
        const char *key, *other_key;
    } CASE[] = {
        {NULL, NULL, OPC_EUSER, "merged.csv", "--add"},
        {"train.seed,epoch\n5,1\n", NULL, OPC_EUSER, "merged.csv", "'complete'"},
        {"complete,epoch\n1,1\n", NULL, OPC_EUSER, "merged.csv", "'train.seed'"},
        {"sac.batch,train.seed,complete,epoch\n2,5,1,1\n", NULL, OPC_EUSER, "merged.csv",
         "sac.batch"},
        {"train.seed,complete,epoch\n5,1,3\n6,1,3\n", NULL, OPC_EUSER,
         "merged.csv:3:", "train.seed = 6"},
        {"train.seed,complete,epoch\n5,1,3\n5,1,4\n", NULL, OPC_EUSER, "s5", "train.epochs=4"},
        {"train.seed,complete,epoch\n5,1,3\n5,1,3\n", NULL, OPC_EDAMAGED, "merged.csv", "s5"},
        {"train.seed,complete,epoch\n5,1\n", NULL, OPC_EDAMAGED, "merged.csv:2:", "3"},
        {"train.seed,complete,epoch\n5,1,3\n", "train.seed,complete,task\n5,1,pendulum\n",
         OPC_EUSER, "runs.csv:2:", "pendulum"},
        {"train.seed,complete,epoch\n5,1,3\n", "train.seed,complete,method\n5,1,SAC\n", OPC_EUSER,
         "runs.csv:2:", "SAC"},
        {"train.seed,complete,epoch\n5,1,3\n", "train.seed,complete,task\n6,1,cartpole\n",
         OPC_EUSER, "runs.csv:2:", "train.seed = 6"},
    };
    struct opc_sweep *s = open_sweep(state, TWO);
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        char dir[16], name[32];
        snprintf(dir, sizeof dir, "case%zu", i);
        snprintf(name, sizeof name, "%s/merged.csv", dir);
        if (CASE[i].merged)
            put(state, name, CASE[i].merged);
        snprintf(name, sizeof name, "%s/runs.csv", dir);
        if (CASE[i].runs)
            put(state, name, CASE[i].runs);
        refuse(state, s, dir, CASE[i].code, CASE[i].key, CASE[i].other_key);
    }
    opc_sweep_close(s);
}

static void a_timing_csv_of_other_runs_is_refused(void **state)
{
    static const struct {
        const char *timing;
        enum opc_code code;
        const char *key, *other_key;
    } CASE[] = {
        {"train.seed,complete,epoch\n6,1,3\n", OPC_EUSER, "timing.csv:2:", "train.seed = 6"},
        {"epoch,epoch_s\n1,1\n", OPC_EUSER, "timing.csv", "'complete'"},
        {"train.seed,complete,epoch\n5,1,2\n5,1,1\n", OPC_EDAMAGED, "timing.csv", "s5"},
        {"train.seed,complete,epoch\n5,1\n", OPC_EDAMAGED, "timing.csv:2:", "3"},
    };
    struct opc_sweep *s = open_sweep(state, TWO);
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        put(state, "a/merged.csv", "train.seed,complete,epoch\n5,1,3\n");
        put(state, "a/timing.csv", CASE[i].timing);
        refuse(state, s, "a", CASE[i].code, CASE[i].key, CASE[i].other_key);
    }
    opc_sweep_close(s);
}

/* ---- runs of other experiments --------------------------------------------------------------- */

/* What one file has made another one finds by its settings: under other varied keys, and among runs
 * that it does not have. */
static const char THIS[] = "train: {epochs: 3, seed: 7}\nvary: {data.retain: [5, 50]}\n";
static const char OTHER[] = "train.epochs: 3\ndata.retain: 5\n"
                            "vary: {opc.horizon: [5, 10], train.seed: [7, 8]}\n";
static const char OTHER_METRICS[] = METRICS "1,10,15,0.5\n2,20,25,0.5\n3,30,35,2\n";

/* Merges OTHER, of whose runs the second half has the settings' default horizon, 10. */
static void put_other(void **state)
{
    struct opc_sweep *s = open_sweep(state, OTHER);
    put(state, "other/2/metrics.csv", OTHER_METRICS);
    put(state, "other/2/timing.csv", "epoch,epoch_s\n1,1\n2,1\n3,2\n");
    put(state, "other/3/timing.csv", "epoch,epoch_s\n1,9\n");
    put(state, "other/2/meta.json", "{\"opc\": \"0.1.0\", \"revision\": \"508bb785afe3\"}");
    put(state, "other/3/metrics.csv", METRICS "1,10,15,9\n2,20,25,9\n3,30,35,9\n");
    merge_into(state, s, "other", "0011", NULL, NULL);
    opc_sweep_close(s);
}

static void a_run_of_another_file_is_found_by_its_settings(void **state)
{
    put_other(state);
    struct opc_sweep *s = open_sweep(state, THIS);
    struct opc_text heard = {0};
    opc_log_to(hear, &heard);
    merge_into(state, s, "mine", "00", "other", NULL);
    opc_log_to(NULL, NULL);
    assert_file(state, "mine/merged.csv",
                "data.retain,complete," METRICS
                "5,1,1,10,15,0.5\n5,1,2,20,25,0.5\n5,1,3,30,35,2\n");
    assert_runs_file(state, s, "mine",
                     "data.retain," RUNS
                     "5,1,OPC,cartpole,3,30,35,1,0.06666666666666667,0.1.0,508bb785afe3\n",
                     ALL);
    assert_file(state, "mine/timing.csv",
                "data.retain,complete,epoch,epoch_s\n5,1,1,1\n5,1,2,1\n5,1,3,2\n");
    /* The other one is named by its absence: 1 of 2 runs. */
    assert_contains(opc_text_get(&heard), "1 of 2");
    opc_text_free(&heard);
    opc_sweep_close(s);
}

/* The identity leaves the number of epochs out: a longer run is another one, a shorter one goes on.
 */
#define LENGTH_3 "3,1,OPC,cartpole,3,30,35,1,0.06666666666666667,0.1.0,508bb785afe3\n"
static void runs_of_other_lengths_are_told_apart(void **state)
{
    put_other(state);
    struct opc_sweep *s = open_sweep(state, "train: {epochs: 2, seed: 7}\n"
                                            "vary: {data.retain: [5, 50]}\n");
    refuse(state, s, "other", OPC_EUSER, "other/merged.csv", "data.retain");
    opc_sweep_close(s);
    s = open_sweep(state, "train.seed: 7\ndata.retain: 5\nvary: {train.epochs: [4, 3, 5]}\n");
    merge_into(state, s, "mine", "000", "other", NULL);
    assert_runs_file(state, s, "mine", "train.epochs," RUNS LENGTH_3, (const int[]){1});
    opc_sweep_close(s);
    /* Its own rows find their own run again, complete or not. */
    put(state, "mine/0/metrics.csv", METRICS "1,10,15,4\n");
    s = open_sweep(state, "train.seed: 7\ndata.retain: 5\nvary: {train.epochs: [3, 4]}\n");
    merge_into(state, s, "mine", "00", "other", NULL);
    merge_into(state, s, "again", "00", "mine", NULL);
    assert_runs_file(state, s, "again", "train.epochs," RUNS LENGTH_3, ALL);
    opc_sweep_close(s);
}

/* The same keys and values do not make it the same run: another setting differs. */
static void the_same_values_with_other_settings_are_refused(void **state)
{
    struct opc_sweep *s = open_sweep(state, TWO);
    put_two(state);
    merge_into(state, s, "own", "11", NULL, NULL);
    opc_sweep_close(s);
    s = open_sweep(state, "train.epochs: 3\nopc.horizon: 5\nvary: {train.seed: [7, 5]}\n");
    refuse(state, s, "own", OPC_EUSER, "own/merged.csv", "settings");
    opc_sweep_close(s);
}

/* Where tables of any experiment are looked through, none of this one is no error; tables that do
 * not know what they have are. */
static void tables_without_a_run_of_this_file_add_nothing(void **state)
{
    put_other(state);
    struct opc_sweep *s = open_sweep(state, "train.epochs: 3\nvary: {train.seed: [70, 50]}\n");
    struct opc_sweep_runs *runs;
    struct opc_err err;
    struct merge m = {*state, s, "none", "00", {"other", NULL, NULL}, OPC_MATCH_SETTINGS};
    assert_ok(read_runs(&m, &runs, &err), &err);
    for (int i = 0; i < s->tasks; i++)
        assert_int_equal(runs->run[i].metrics.rows, 0);
    opc_sweep_runs_free(runs);
    put(state, "bare/merged.csv", TWO_MERGED);
    m.add[0] = "bare";
    assert_fails(read_runs(&m, &runs, &err), OPC_EUSER, &err, "bare/runs.csv");
    opc_sweep_runs_free(runs);
    opc_sweep_close(s);
}

/* merged.csv and runs.csv of different merges. */
static void tables_that_do_not_belong_together_are_damaged(void **state)
{
    struct opc_sweep *s = open_sweep(state, TWO);
    put_two(state);
    merge_into(state, s, "own", "11", NULL, NULL);
    put(state, "own/merged.csv", "train.seed,complete,epoch\n7,1,3\n6,1,3\n");
    refuse(state, s, "own", OPC_EDAMAGED, "own/merged.csv:3:", "runs.csv");
    put(state, "own/merged.csv", TWO_MERGED);
    put(state, "own/timing.csv", "train.seed,complete,epoch\n7,1,3\n6,1,3\n");
    refuse(state, s, "own", OPC_EDAMAGED, "own/timing.csv:3:", "remove");
    opc_sweep_close(s);
}

static void lack_of_memory_is_survived(void **state)
{
    struct opc_sweep *s = open_sweep(state, TWO);
    struct opc_err err;
    put_two(state);
    merge_into(state, s, "own", "11", NULL, NULL);
    merge_into(state, s, "a", "00", "own", NULL); /* with identities */
    put(state, "b/merged.csv", TWO_MERGED);       /* without */
    put(state, "b/timing.csv", TWO_TIMING);
    put(state, "new/0/metrics.csv", METRICS "1,10,15,0.1\n");
    put(state, "new/0/timing.csv", "epoch,epoch_s,total_s\n1,9,9\n");
    struct merge m = {*state, s, "new", "00", {"a", "b", NULL}, OPC_MATCH_ANY};
    assert_ok(merge(&m, &err), &err);
    assert_two(state, s, "new");
    assert_survives_lack_of_memory(merge, &m);
    opc_sweep_close(s);
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(tables_with_other_columns_are_merged),
        IN_DIR(each_run_has_a_row_with_what_it_comes_to),
        IN_DIR(what_epochs_cost_is_merged_likewise),
        IN_DIR(adding_its_own_result_changes_no_byte),
        IN_DIR(adding_keeps_the_order_of_columns_and_incomplete_runs),
        IN_DIR(what_is_complete_elsewhere_is_taken_over),
        IN_DIR(the_time_comes_with_the_run),
        IN_DIR(a_run_with_other_evaluations_is_named_and_stays),
        IN_DIR(fewer_epochs_than_the_file_asks_for_are_incomplete),
        IN_DIR(tables_of_other_runs_are_refused),
        IN_DIR(a_timing_csv_of_other_runs_is_refused),
        IN_DIR(a_run_of_another_file_is_found_by_its_settings),
        IN_DIR(runs_of_other_lengths_are_told_apart),
        IN_DIR(the_same_values_with_other_settings_are_refused),
        IN_DIR(tables_without_a_run_of_this_file_add_nothing),
        IN_DIR(tables_that_do_not_belong_together_are_damaged),
        IN_DIR(lack_of_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
