/* SPDX-License-Identifier: MIT */
/* opc sweep - the many runs of an experiment file: run, status, merge, cancel; and work, which is
 * what a job of a cluster executes.
 *
 * Scheduling is sweep/, tables are study/curves/, the state is shown by cli/sweep/. The state of a
 * sweep is in its run directories alone, so `status` and `merge` work while `run` does, from
 * another terminal. */
#include "base/file.h"
#include "base/log.h"
#include "cli/console/command.h"
#include "cli/console/sweeping.h"
#include "cli/sweep/status.h"
#include "opc/mem.h"
#include "study/curves/published.h"
#include "study/curves/sweep_table.h"
#include "sweep/handover.h"
#include "sweep/worklist.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(PATH, out,      "",      0, 4095,  "directory of the runs; by default sweep-FILE, or sweep-FILE-TIER") \
    X(TEXT, tier,     "",      0, 64,   "tier of the file to use; by default the file as it is") \
    X(TEXT, only,     "",      0, 255,  "take only runs whose names match this pattern, with * and ? as in a shell; quote it") \
    X(INT,  index,    "0",     0, 1e9,  "do run number N alone, of those that status --json lists, sharing OUT with others; for the array jobs of any scheduler; 0: all") \
    OPC_SWEEPING_OPTIONS(X)                                                                        \
    X(BOOL, json,     "false", 0, 1,    "print one JSON object per run and line")                    \
    X(TEXTS, add,     "",      1, 4095,  "directory of an earlier merge: merge takes over the runs that OUT lacks, run and status leave out those it has complete; may be repeated") \
    X(REAL, at,       "0",     0, 1e12, "also a table of the scores after this many real steps, of all runs that have made them; 0: only at their end")
/* clang-format on */
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF
static const struct opc_option_use uses[] = {
    {"only", "run status"},
    {"jobs", "run"},
    {"threads", "run work"},
    {"launcher", "run work"},
    {"shared", "run"},
    {"claim_timeout", "run work"},
    {"partition", "run"},
    {"time", "run"},
    {"memory", "run"},
    {"pack", "run"},
    {"slurm_options", "run"},
    {"wait", "run"},
    {"index", "run work"},
    {"json", "status"},
    {"add", "run status merge"},
    {"tier", "run status merge cancel"},
    {"out", "run status merge cancel"},
    {"at", "merge"},
    {NULL, NULL},
};

/* ---- run, cancel, work ----------------------------------------------------------------------- */

/* Starts what is missing and waits for all of it, unless a cluster takes it. */
static int run_all(const struct opc_sweep *sweep, const struct given *given, const char *out,
                   struct opc_err *err)
{
    struct opc_tally tally = {0};
    struct opc_schedule plan;
    const struct opc_sweeping_given how = OPC_SWEEPING_GIVEN(given);
    OPC_TRY(opc_sweeping_plan(&how, &plan, err));
    if (given->index && opc_launcher_is_detached(plan.launcher))
        return opc_fail(err, OPC_EUSER,
                        "--index is for the jobs of another scheduler than %s, which "
                        "takes all runs at once",
                        plan.launcher->name);
    /* progress and stops are set by opc_sweeping */
    plan.out = out;
    plan.shared = plan.shared || given->index > 0;
    OPC_TRY(opc_sweeping(sweep, plan, &tally, err));
    if (tally.running > 0)
        printf("%d of %d run%s done, %d with %s, in %s\n", tally.done, sweep->tasks,
               sweep->tasks == 1 ? " is" : "s are", tally.running, plan.launcher->name, out);
    else if (sweep->tasks == 1)
        printf("the run is done, in %s\n", out);
    else
        printf("all %d runs are done, in %s\n", sweep->tasks, out);
    return OPC_OK;
}

/* Ends what a cluster has; runs save themselves and can be submitted again. */
static int cancel_all(const char *out, struct opc_err *err)
{
    int jobs;
    OPC_TRY(opc_handover_cancel(out, &jobs, err));
    if (jobs == 0)
        printf("nothing of %s is queued or running\n", out);
    else
        printf("cancelled %d job%s; what ran saves itself, and 'run' goes on with it\n", jobs,
               jobs == 1 ? "" : "s");
    return OPC_OK;
}

/* Within a job of a cluster: the runs of one of its tasks, one after the other. Stopped by a
 * signal, it asks the cluster to start the task again. */
static int work_on_list(const char *list, const struct given *given, struct opc_err *err)
{
    char out[OPC_PATH];
    struct opc_sweep *sweep;
    const struct opc_launcher_type *cluster = opc_launcher_find(given->launcher, err);
    if (!cluster)
        return OPC_EUSER;
    if (!given->index)
        return opc_fail(err, OPC_EUSER, "say which task of %s: --index N", list);
    OPC_TRY(opc_worklist_open(list, given->index, &sweep, out, err));
    const struct opc_schedule plan = {.out = out,
                                      .jobs = 1,
                                      .threads = given->threads,
                                      .launcher = &opc_launcher_local,
                                      .shared = true,
                                      .claim_timeout = given->claim_timeout};
    const int code = opc_sweeping(sweep, plan, NULL, err);
    opc_sweep_close(sweep);
    struct opc_err refused = {0};
    if (code == OPC_ESTOPPED && cluster->requeue && cluster->requeue(&refused))
        opc_log(OPC_LEVEL_WARN, "%s; 'opc sweep ... run' submits what is missing", refused.text);
    return code;
}

/* ---- merge ----------------------------------------------------------------------------------- */

/* Reads the runs of OUT. A foreign one (other settings) is left out with a warning. */
static int read_own_runs(const struct opc_sweep *sweep, const char *out,
                         struct opc_sweep_runs **runs, struct opc_err *err)
{
    char **dir = opc_alloc((size_t)sweep->tasks, sizeof *dir), path[OPC_PATH];
    bool *complete = opc_alloc((size_t)sweep->tasks, sizeof *complete);
    int foreign = 0;
    int code = dir && complete ? OPC_OK : opc_fail(err, OPC_ENOMEM, "out of memory for the runs");
    for (int i = 0; i < sweep->tasks && !code; i++) {
        struct opc_look look;
        opc_schedule_look(out, &sweep->task[i], &look);
        /* Only complete runs enter table.csv; all with rows enter merged.csv. */
        complete[i] = look.state == OPC_STATE_DONE;
        foreign += look.state == OPC_STATE_FOREIGN;
        /* A run without a directory has nothing to read; its slot stays NULL. */
        if (!look.begun)
            continue;
        code = opc_schedule_path(out, &sweep->task[i], "", path, err);
        if (!code && !(dir[i] = opc_strdup(path)))
            code = opc_fail(err, OPC_ENOMEM, "out of memory for the runs");
    }
    if (!code && foreign)
        opc_log(OPC_LEVEL_WARN, "%d foreign runs are left out; 'status' names them", foreign);
    if (!code)
        code = opc_sweep_runs_read(sweep, dir, complete, runs, err);
    for (int i = 0; dir && i < sweep->tasks; i++)
        opc_free(dir[i]);
    opc_free(dir);
    opc_free(complete);
    return code;
}

/* Prints how many runs each added directory has given. */
static void print_sources(const struct opc_sweep_runs *runs)
{
    /* Nothing without --add. */
    for (int k = 0; k < runs->added; k++) {
        int n = 0;
        for (int i = 0; i < runs->sweep->tasks; i++)
            n += runs->run[i].added == k;
        printf("%d run%s taken over from %s\n", n, n == 1 ? " is" : "s are", runs->from[k].dir);
    }
}

/* Writes timing.csv. Where no run has one, a file of an earlier merge is removed: it would be of
 * other runs than merged.csv. */
static int write_timing(const struct opc_table *timing, const char *path, bool *removed,
                        struct opc_err *err)
{
    *removed = false;
    if (opc_table_rows(timing) > 0)
        return opc_table_write(timing, path, err);
    *removed = unlink(path) == 0;
    return *removed || errno == ENOENT ? OPC_OK
                                       : opc_fail_errno(err, errno, "cannot remove %s", path);
}

/* Writes merged.csv, runs.csv and timing.csv. Without any row it fails: a table is not replaced by
 * an empty one. */
static int write_merged(const struct opc_sweep_runs *runs, const char *out, struct opc_err *err)
{
    const struct opc_sweep *sweep = runs->sweep;
    char path[OPC_PATH], list_path[OPC_PATH], timing_path[OPC_PATH];
    struct opc_table *merged = NULL, *list = NULL, *timing = NULL;
    struct opc_versions versions = {0};
    int with_rows = 0, complete = 0;
    bool removed = false;
    /* How many runs have something to merge. */
    for (int i = 0; i < sweep->tasks; i++) {
        with_rows += runs->run[i].metrics.rows > 0;
        complete += runs->run[i].metrics.rows > 0 && runs->run[i].complete;
        if (runs->run[i].metrics.rows > 0)
            opc_versions_note(&versions, runs->run[i].version, runs->run[i].revision);
    }
    int code = opc_path_join(path, out, "merged.csv", err);
    if (!code)
        code = opc_path_join(list_path, out, "runs.csv", err);
    if (!code)
        code = opc_path_join(timing_path, out, "timing.csv", err);
    if (!code && !with_rows)
        code = opc_fail(err, OPC_EUSER, "no run has a row yet; %s is left as it is", path);
    if (!code)
        code = opc_sweep_runs_merged(runs, &merged, err);
    if (!code)
        code = opc_sweep_runs_list(runs, &list, err);
    if (!code)
        code = opc_sweep_runs_timing(runs, &timing, err);
    /* All tables exist in memory before the first file is written. */
    if (!code)
        code = opc_make_directories(out, err);
    if (!code)
        code = opc_table_write(merged, path, err);
    if (!code)
        code = opc_table_write(list, list_path, err);
    if (!code)
        code = write_timing(timing, timing_path, &removed, err);
    if (!code) {
        print_sources(runs);
        printf("%d of %d run%s rows, %d %s complete: %d row%s -> %s\n", with_rows, sweep->tasks,
               sweep->tasks == 1 ? " has" : "s have", complete, complete == 1 ? "is" : "are",
               opc_table_rows(merged), opc_plural(opc_table_rows(merged)), path);
        opc_sweep_versions_print(&versions);
        printf("what each of them ends with -> %s\n", list_path);
        if (opc_table_rows(timing) > 0)
            printf("what each phase of each epoch cost -> %s\n", timing_path);
        else if (removed)
            printf("no run has a timing.csv; %s of an earlier merge is removed\n", timing_path);
    }
    opc_table_free(merged);
    opc_table_free(list);
    opc_table_free(timing);
    return code;
}

/* opc plot --table may have written a comparison with published curves under the same name. */
static bool is_comparison(const char *path)
{
    struct opc_table *old = NULL;
    const bool is = opc_file_exists(path) && opc_table_read(path, &old, NULL) == OPC_OK &&
                    opc_published_is_table(old);
    opc_table_free(old);
    return is;
}

/* Writes and prints table.csv, or table-AT.csv with the scores after so many steps; without a run
 * that counts the old one stays, and so does a table that opc plot has written. */
static int write_table(const struct opc_sweep_runs *runs, double at, const char *out,
                       struct opc_err *err)
{
    char path[OPC_PATH], name[64] = "table.csv", when[64] = "";
    struct opc_table *t = NULL;
    struct opc_text text = {0};
    if (at > 0) {
        snprintf(name, sizeof name, "table-%.0f.csv", at);
        snprintf(when, sizeof when, " up to step %.0f", at);
    }
    int code = opc_path_join(path, out, name, err);
    if (!code)
        code = opc_sweep_table(runs, at, &t, err);
    /* The file first, then the same table on the terminal. */
    const bool keep = !code && is_comparison(path);
    if (!code && opc_table_rows(t) > 0) {
        if (!keep)
            code = opc_table_write(t, path, err);
        opc_table_print(t, &text);
        if (!code)
            code = opc_text_check(&text, err);
        if (!code)
            printf("\n%s(%s; median, low and high of the mean of their last 5 evaluations%s, over "
                   "seeds) -> %s\n",
                   opc_text_get(&text),
                   at > 0 ? "runs that have made these steps" : "complete runs", when,
                   keep ? "not written" : path);
        if (!code && keep)
            opc_log(OPC_LEVEL_WARN,
                    "%s is a table of opc plot --table and stays; to have the one above as a file, "
                    "merge into another directory",
                    path);
    } else if (!code)
        printf("no run %s yet; %s is not written\n",
               at > 0 ? "has made these steps" : "is complete", path);
    opc_text_free(&text);
    opc_table_free(t);
    return code;
}

/* The runs of OUT and those of the added directories. */
static int read_all_runs(const struct opc_sweep *sweep, const struct given *given, const char *out,
                         struct opc_sweep_runs **runs, struct opc_err *err)
{
    int code = read_own_runs(sweep, out, runs, err);
    for (int i = 0; i < given->add.n && !code; i++)
        code = opc_sweep_runs_add(*runs, given->add.at[i], OPC_MATCH_ANY, err);
    return code;
}

/* Everything is read before anything is written: an added directory may be OUT itself. */
static int merge_runs(const struct opc_sweep *sweep, const struct given *given, const char *out,
                      struct opc_err *err)
{
    struct opc_sweep_runs *runs = NULL;
    char file[OPC_PATH];
    int code = OPC_OK;
    /* A run has a timing.csv of its own. */
    if (opc_rundir_is_run(out))
        code =
            opc_fail(err, OPC_EUSER, "%s is one run; choose a directory for many: --out DIR", out);
    /* With --add, OUT may be new. */
    else if (!opc_is_directory(out) && given->add.n == 0)
        code = opc_fail(err, OPC_EUSER, "there is no directory %s; 'opc sweep %s run' makes it",
                        out, opc_shell_word(sweep->path, file, sizeof file));
    if (!code)
        code = read_all_runs(sweep, given, out, &runs, err);
    if (!code)
        code = write_merged(runs, out, err);
    if (!code)
        code = write_table(runs, 0, out, err);
    if (!code && given->at > 0)
        code = write_table(runs, given->at, out, err);
    opc_sweep_runs_free(runs);
    return code;
}

/* run and status: drops the runs that an added directory has complete and OUT has not. Their
 * directories are not needed. */
static int leave_out_added(struct opc_sweep *sweep, const struct given *given, const char *out,
                           struct opc_err *err)
{
    struct opc_sweep_runs *runs = NULL;
    struct opc_versions versions = {0};
    int left_out = 0, code = read_all_runs(sweep, given, out, &runs, err);
    bool *keep = opc_alloc((size_t)sweep->tasks + 1, sizeof *keep);
    if (!code && !keep)
        code = opc_fail(err, OPC_ENOMEM, "out of memory for the runs");
    for (int i = 0; i < sweep->tasks && !code; i++) {
        keep[i] = runs->run[i].added < 0 || !runs->run[i].complete;
        left_out += !keep[i];
        if (!keep[i])
            opc_versions_note(&versions, runs->run[i].version, runs->run[i].revision);
    }
    opc_sweep_runs_free(runs); /* it reads the tasks */
    if (!code) {
        opc_sweep_keep(sweep, keep);
        printf("%d run%s complete in what was added, %d %s left\n", left_out,
               left_out == 1 ? " is" : "s are", sweep->tasks, sweep->tasks == 1 ? "is" : "are");
        opc_sweep_versions_print(&versions);
    }
    opc_free(keep);
    return code;
}

/* ---------------------------------------------------------------------------------------------- */

/* The default directory: sweep-fig3-small for experiments/paper/fig3.yaml and the tier small. */
static void name_out(const char *file, const struct given *given, char out[OPC_PATH])
{
    /* The name of the file without its folder and ending. */
    const char *name = opc_path_name(file), *dot = strrchr(name, '.');
    if (*given->out)
        snprintf(out, OPC_PATH, "%s", given->out);
    else
        snprintf(out, OPC_PATH, "sweep-%.*s%s%s", (int)(dot ? dot - name : (long)strlen(name)),
                 name, *given->tier ? "-" : "", given->tier);
}

extern const struct opc_command opc_cmd_sweep;

static const char USAGE[] = "opc sweep FILE.yaml run|status|merge|cancel [KEY=VALUE...]";

/* Opens the sweep and leaves in it what the options leave. */
static int open_sweep(const char *file, const char *what, int sets, char *const *set,
                      const struct given *given, const char *out, struct opc_sweep **result,
                      struct opc_err *err)
{
    char path[OPC_PATH];
    struct opc_sweep *sweep;
    /* Words after the action change settings of every run. */
    const struct opc_sweep_ask ask = {.path = path, .tier = given->tier, .sets = sets, .set = set};
    OPC_TRY(opc_path_shipped(path, file, err));
    OPC_TRY(opc_sweep_open(&ask, &sweep, err));
    int code = OPC_OK;
    opc_sweep_adopt(sweep, out);
    /* Some experiments only compute, or use the runs of another file. */
    if (*sweep->runs)
        code = opc_fail(err, OPC_EUSER, "%s has no runs of its own, it uses those of %s", file,
                        sweep->runs);
    else if (!opc_sweep_has_runs(sweep))
        code = opc_fail(err, OPC_EUSER,
                        "%s has no runs, only something to compute; 'opc repro' does it", file);
    if (!code && given->index)
        code = opc_sweep_pick(sweep, given->index, err);
    if (!code && given->add.n > 0 && strcmp(what, "merge") != 0)
        code = leave_out_added(sweep, given, out, err);
    if (!code && *given->only && sweep->tasks > 0)
        code = opc_sweep_narrow(sweep, given->only, err);
    if (code)
        opc_sweep_close(sweep);
    else
        *result = sweep;
    return code;
}

static int sweep_run(int argc, char **argv, struct opc_err *err)
{
    static const char *const ACTIONS[] = {"run", "status", "merge", "cancel", "work"};
    enum { NACTIONS = sizeof ACTIONS / sizeof *ACTIONS };
    struct given given;
    struct opc_sweep *sweep;
    char out[OPC_PATH];
    int first, action = 0;
    OPC_TRY(opc_options_read(&options, argc, argv, &given, &first, err));
    /* A file and an action; a KEY=VALUE in their place is a forgotten file. */
    if (argc - first < 2 || (strchr(argv[first], '=') && !opc_file_exists(argv[first])))
        return opc_fail(err, OPC_EUSER, "name an experiment file and what to do: %s", USAGE);
    const char *file = argv[first], *what = argv[first + 1];
    while (action < NACTIONS && strcmp(what, ACTIONS[action]) != 0)
        action++;
    if (action == NACTIONS) {
        /* `work` is for jobs, and nobody means it */
        const char *meant = opc_nearest(what, ACTIONS, NACTIONS - 1, sizeof *ACTIONS);
        return meant ? opc_fail(err, OPC_EUSER, "unknown action '%s'; did you mean '%s'?", what,
                                meant)
                     : opc_fail(err, OPC_EUSER, "unknown action '%s'; usage: %s", what, USAGE);
    }
    /* The action is known: options of other actions are refused. */
    OPC_TRY(opc_options_fit(&options, uses, what, &given, err));
    if (strcmp(what, "work") == 0)
        return work_on_list(file, &given, err);
    /* Named after the file as it was given, not after where it was found. */
    name_out(file, &given, out);
    if (strcmp(what, "cancel") == 0)
        return cancel_all(out, err);
    OPC_TRY(open_sweep(file, what, argc - first - 2, argv + first + 2, &given, out, &sweep, err));
    int code = OPC_OK;
    if (sweep->tasks == 0)
        ; /* nothing is left to do or to show */
    else if (strcmp(what, "run") == 0)
        code = run_all(sweep, &given, out, err);
    else if (strcmp(what, "status") == 0)
        code = opc_sweep_status_show(sweep, out, given.json, err);
    else
        code = merge_runs(sweep, &given, out, err);
    opc_sweep_close(sweep);
    return code;
}

const struct opc_command opc_cmd_sweep = {
    .name = "sweep",
    .usage = "FILE.yaml run|status|merge|cancel [KEY=VALUE...] [OPTION...]",
    .summary = "run the runs of an experiment, show their state, or merge their tables",
    .detail =
        "The file's 'vary' spans the runs (docs/experiments.md). run: starts what is missing, each "
        "run as a process of its own, goes on with what was interrupted, and leaves alone what is "
        "done; Ctrl-C stops all of them, and the same command goes on. A run that was killed is "
        "tried again, three times at most. status: a line for each run, without starting "
        "anything. merge: every epoch of every run in OUT/merged.csv, what each run ends with in "
        "OUT/runs.csv, what each phase of each epoch cost in OUT/timing.csv, and what the complete "
        "runs end with, over seeds, in OUT/table.csv and on the terminal. With --add DIR it takes "
        "over the runs that DIR, which an earlier merge wrote to, has complete and OUT has not, "
        "and those without a row in OUT; OUT need not have any run, or exist. run and status with "
        "--add DIR leave out what DIR has "
        "complete: its directory is not needed. merge --at STEPS also writes OUT/table-STEPS.csv, "
        "the scores after so many steps, for runs of different lengths.\n"
        "A run is OUT/NAME, its output OUT/NAME.log. A directory that holds a run of other "
        "settings is called foreign; then nothing is started.\n"
        "On a cluster (docs/cluster.md): run --launcher slurm submits what is neither done nor "
        "queued "
        "as a job array and returns; status joins the directories with the queue; cancel ends what "
        "is "
        "queued or running; LIST work --index N is what a task of the array executes. run "
        "--shared, on "
        "any number of machines with a common directory, divides the runs among them.",
    .words = "run status merge cancel work",
    .takes = OPC_TAKES_SETTINGS,
    .options = &options,
    .uses = uses,
    .run = sweep_run,
};
