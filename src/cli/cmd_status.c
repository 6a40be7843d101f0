/* SPDX-License-Identifier: MIT */
/* opc status - how far runs are: state, epoch, returns, steps, time, the last lines of the log.
 *
 * Everything is read from the run directories (run/files/rundir.h). Invariant: nothing is opened
 * but files, and nothing is written, so the command works while a run goes on, on a computer that
 * has not the run's environment, and in a directory that it must not write to. */
#include "base/file.h"
#include "cli/console/command.h"
#include "opc/mem.h"
#include "run/config/config.h"
#include "run/files/json.h"
#include "run/files/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(INT,  lines, "5",     0, 1000, "number of lines of log.txt to show of a single run")         \
    X(BOOL, json,  "false", 0, 1,    "print one JSON object per run and line")
/* clang-format on */
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF

/* What there is to say about a run. */
struct report {
    char *dir;
    const char *state; /* running, done, stopped, interrupted, diverged, failed or begun */
    char why[400];     /* reason of stopped, diverged, failed; "": none */
    char task[256];    /* env.name; "": config.yaml cannot be read */
    int seed;
    int epoch, epochs;       /* complete ones; those it shall have, 0: not known */
    double steps, all_steps; /* real ones, without and with the random ones; NaN: none yet */
    double last, best;       /* returns of evaluations; NaN: none yet */
    int best_epoch;          /* 0: none */
    double spent, left;      /* seconds; left is NaN where it is not known */
};

/* ---- reading --------------------------------------------------------------------------------- */

/* The lock and the result are newer than status.json, which a killed process leaves as it was. */
static const char *state_of(const char *dir, const struct opc_rundir_status *status)
{
    if (status->locked)
        return "running";
    if (status->has_result)
        return "done";
    switch (status->state) {
    case OPC_RUNDIR_STOPPED: return "stopped";
    case OPC_RUNDIR_DIVERGED: return "diverged";
    case OPC_RUNDIR_FAILED: return "failed";
    default: return opc_rundir_has(dir, "status.json") ? "interrupted" : "begun";
    }
}

/* Task, seed and epochs as config.yaml has them. What cannot be read stays unknown. */
static void read_settings(const char *dir, struct report *report)
{
    struct opc_config *config;
    if (opc_config_of_run(dir, &config, NULL))
        return;
    snprintf(report->task, sizeof report->task, "%s", config->set.env.name);
    report->seed = config->set.train.seed;
    report->epochs = config->set.train.epochs;
    opc_config_destroy(config);
}

/* Steps and returns of metrics.csv; only its complete lines count. */
static void read_metrics(const char *dir, struct report *report)
{
    struct opc_rundir_table table;
    if (opc_rundir_table_read(dir, "metrics.csv", &table, NULL))
        return;
    const int value = opc_rundir_head_find(table.head, "eval_return", NULL);
    const int epoch = opc_rundir_head_find(table.head, "epoch", NULL);
    const int steps = opc_rundir_head_find(table.head, "env_steps", NULL);
    const int all_steps = opc_rundir_head_find(table.head, "total_steps", NULL);
    /* Columns that are missing (-1) leave their values unknown. */
    for (int row = 0; row < table.rows; row++) {
        if (steps >= 0)
            report->steps = opc_rundir_table_number(&table, row, steps);
        if (all_steps >= 0)
            report->all_steps = opc_rundir_table_number(&table, row, all_steps);
        /* An epoch without an evaluation has an empty cell. */
        const double v = value < 0 ? (double)NAN : opc_rundir_table_number(&table, row, value);
        if (isnan(v))
            continue;
        report->last = v;
        /* The first of equal returns is the best, as for policy-best.opc. */
        if (isnan(report->best) || v > report->best) {
            const double e = epoch < 0 ? row + 1 : opc_rundir_table_number(&table, row, epoch);
            report->best = v;
            report->best_epoch = e >= 1 && e <= 1e9 ? (int)e : 0;
        }
    }
    opc_rundir_table_free(&table);
}

/* dir is borrowed from here on. */
static void read_report(char *dir, struct report *report)
{
    struct opc_rundir_status status;
    struct opc_rundir_seconds seconds;
    *report = (struct report){
        .dir = dir, .steps = NAN, .all_steps = NAN, .last = NAN, .best = NAN, .left = NAN};
    opc_rundir_status(dir, &status);
    opc_rundir_seconds(dir, &seconds);
    read_settings(dir, report);
    read_metrics(dir, report);
    report->state = state_of(dir, &status);
    report->epoch = status.epoch;
    /* The reason belongs to the last process; one that works now has none. Of a run that was
     * stopped before it did anything the reason is the state once more. */
    if (!status.locked && !status.has_result && strcmp(status.why, report->state) != 0)
        memcpy(report->why, status.why, sizeof report->why);
    /* Time left, if each epoch that is missing takes as long as the mean of the complete ones. */
    report->spent = seconds.total;
    if (status.has_result && !status.locked)
        report->left = 0;
    else if (seconds.epochs > 0 && report->epochs >= report->epoch)
        report->left = seconds.total / seconds.epochs * (report->epochs - report->epoch);
}

/* ---- printing -------------------------------------------------------------------------------- */

/* The last n lines of log.txt; nothing if it cannot be read. */
static void print_log(const char *dir, int n)
{
    enum { MAX_LOG = 1 << 28 };
    char path[OPC_PATH], *text;
    size_t at;
    if (n == 0 || opc_path_join(path, dir, "log.txt", NULL) ||
        opc_file_read(path, MAX_LOG, &text, &at, NULL))
        return;
    /* Back over n newlines; the one at the very end closes the last line. */
    while (at > 0 && text[at - 1] == '\n')
        text[--at] = '\0';
    while (at > 0 && (text[at - 1] != '\n' || --n > 0))
        at--;
    if (text[at])
        printf("\n%s\n", text + at);
    opc_free(text);
}

/* A single run: one fact per line. */
static void print_one(const struct report *r, int lines)
{
    char a[OPC_PRINTED], b[OPC_PRINTED];
    printf("%-8s %s", "run", r->dir);
    if (*r->task)
        printf(": %s, seed %d", r->task, r->seed);
    printf("\n%-8s %s%s%s\n", "state", r->state, *r->why ? ": " : "", r->why);
    printf("%-8s %d", "epoch", r->epoch);
    if (r->epochs)
        printf(" of %d", r->epochs);
    putchar('\n');
    if (!isnan(r->last))
        printf("%-8s %.4g, best %.4g after epoch %d\n", "return", r->last, r->best, r->best_epoch);
    if (!isnan(r->steps))
        printf("%-8s %.0f real, %.0f with the random ones\n", "steps", r->steps, r->all_steps);
    /* The rest is a guess, which "about" says. */
    printf("%-8s %s", "time", opc_print_duration(r->spent, a));
    if (r->left > 0)
        printf(", about %s left", opc_print_duration(r->left, b));
    putchar('\n');
    print_log(r->dir, lines);
}

/* Many runs: one line each, and their number below. */
static void print_many(const struct report *report, int n)
{
    int wide = 3, done = 0;
    for (int i = 0; i < n; i++)
        if ((int)strlen(report[i].dir) > wide)
            wide = (int)strlen(report[i].dir);
    /* The first column is as wide as the longest path. */
    printf("%-*s  %-11s  %11s  %10s  %10s  %9s  %12s  %12s\n", wide, "run", "state", "epoch",
           "return", "best", "steps", "time", "left");
    for (int i = 0; i < n; i++) {
        const struct report *r = &report[i];
        char epoch[32], last[32] = "-", best[32] = "-", steps[32] = "-";
        char spent[OPC_PRINTED] = "-", left[OPC_PRINTED] = "-";
        snprintf(epoch, sizeof epoch, r->epochs ? "%d/%d" : "%d", r->epoch, r->epochs);
        /* "-" where the run has nothing to say yet. */
        if (!isnan(r->last))
            snprintf(last, sizeof last, "%.4g", r->last);
        if (!isnan(r->best))
            snprintf(best, sizeof best, "%.4g", r->best);
        if (!isnan(r->steps))
            snprintf(steps, sizeof steps, "%.0f", r->steps);
        if (r->spent > 0)
            opc_print_duration(r->spent, spent);
        if (r->left > 0)
            opc_print_duration(r->left, left);
        printf("%-*s  %-11s  %11s  %10s  %10s  %9s  %12s  %12s%s%s\n", wide, r->dir, r->state,
               epoch, last, best, steps, spent, left, *r->why ? "  " : "", r->why);
        done += strcmp(r->state, "done") == 0;
    }
    printf("%d run%s, %d done\n", n, n == 1 ? "" : "s", done);
}

/* ,"key": value; a number that is not known is null. */
static void add_number(struct opc_text *text, const char *key, double value)
{
    opc_text_addf(text, ", \"%s\": ", key);
    if (isfinite(value))
        opc_text_add_real(text, value);
    else
        opc_text_add(text, "null");
}

/* One JSON object on one line. */
static int print_json(const struct report *r, struct opc_err *err)
{
    struct opc_text text = {0};
    opc_text_add(&text, "{\"run\": ");
    opc_json_add_quoted(&text, r->dir);
    opc_text_addf(&text, ", \"state\": \"%s\", \"why\": ", r->state);
    opc_json_add_quoted(&text, r->why);
    opc_text_add(&text, ", \"task\": ");
    opc_json_add_quoted(&text, r->task);
    /* Seed and epochs come from the same file: without it both are unknown. */
    add_number(&text, "seed", *r->task ? r->seed : (double)NAN);
    add_number(&text, "epoch", r->epoch);
    add_number(&text, "epochs", r->epochs ? r->epochs : (double)NAN);
    add_number(&text, "env_steps", r->steps);
    add_number(&text, "total_steps", r->all_steps);
    add_number(&text, "eval_return", r->last);
    add_number(&text, "best_return", r->best);
    add_number(&text, "best_epoch", r->best_epoch ? r->best_epoch : (double)NAN);
    add_number(&text, "spent_s", r->spent);
    add_number(&text, "remaining_s", r->left);
    opc_text_add(&text, "}");
    const int code = opc_text_check(&text, err);
    if (!code)
        puts(opc_text_get(&text));
    opc_text_free(&text);
    return code;
}

/* ---- finding --------------------------------------------------------------------------------- */

enum { MAX_RUNS = 10000, MAX_DEPTH = 3 };
struct found {
    char *dir[MAX_RUNS];
    int n;
};

static int add_run(struct found *found, const char *dir, struct opc_err *err)
{
    if (found->n == MAX_RUNS)
        return opc_fail(err, OPC_EUSER, "there are more than %d runs; name fewer directories",
                        MAX_RUNS);
    found->dir[found->n] = opc_strdup(dir);
    return found->dir[found->n++] ? OPC_OK
                                  : opc_fail(err, OPC_ENOMEM, "out of memory for the runs");
}

static int by_path(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds dir if it is a run, else the runs in it, down to those of `opc repro`: OUT/runs/NAME/RUN.
 * What is inside a run is its own. */
static int find_runs(struct found *found, const char *dir, int depth, struct opc_err *err)
{
    if (opc_rundir_is_run(dir))
        return add_run(found, dir, err);
    DIR *d = depth > 0 ? opendir(dir) : NULL;
    if (!d)
        return OPC_OK;
    int code = OPC_OK;
    for (struct dirent *e; !code && (e = readdir(d));) {
        char path[OPC_PATH];
        if (e->d_name[0] != '.' && !opc_path_join(path, dir, e->d_name, NULL) &&
            opc_is_directory(path))
            code = find_runs(found, path, depth - 1, err);
    }
    closedir(d);
    return code;
}

/* The runs of one word, in the order of their names. */
static int find_word(struct found *found, const char *word, struct opc_err *err)
{
    const int before = found->n;
    if (!opc_is_directory(word))
        return opc_fail(err, OPC_EUSER, "%s is %s", word,
                        opc_file_exists(word) ? "a file; name the run's directory"
                                              : "neither a run nor a directory of runs");
    OPC_TRY(find_runs(found, word, MAX_DEPTH, err));
    qsort(found->dir + before, (size_t)(found->n - before), sizeof *found->dir, by_path);
    return found->n > before
               ? OPC_OK
               : opc_fail(err, OPC_EUSER,
                          "%s holds no run: neither it nor what is in it has a config.yaml", word);
}

/* Reads all, then prints: a list is of one moment. */
static int show_found(const struct found *found, const struct given *given, bool single,
                      struct opc_err *err)
{
    struct report *report = opc_alloc((size_t)found->n, sizeof *report);
    if (!report)
        return opc_fail(err, OPC_ENOMEM, "out of memory for the runs");
    int code = OPC_OK;
    for (int i = 0; i < found->n; i++)
        read_report(found->dir[i], &report[i]);
    for (int i = 0; i < found->n && given->json && !code; i++)
        code = print_json(&report[i], err);
    if (!given->json && single)
        print_one(report, given->lines);
    else if (!given->json)
        print_many(report, found->n);
    opc_free(report);
    return code;
}

static int status_run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    int first;
    OPC_TRY(opc_options_read(&options, argc, argv, &given, &first, err));
    if (first == argc)
        return opc_fail(err, OPC_EUSER,
                        "name run directories, or directories of runs: opc status DIR");
    struct found *found = opc_alloc(1, sizeof *found);
    int code = found ? OPC_OK : opc_fail(err, OPC_ENOMEM, "out of memory for the runs");
    for (int i = first; i < argc && !code; i++)
        code = find_word(found, argv[i], err);
    /* A run that is named itself, alone, is shown in full. */
    if (!code)
        code = show_found(found, &given, argc - first == 1 && opc_rundir_is_run(argv[first]), err);
    for (int i = 0; found && i < found->n; i++)
        opc_free(found->dir[i]);
    opc_free(found);
    return code;
}

const struct opc_command opc_cmd_status = {
    .name = "status",
    .usage = "DIR... [OPTION...]",
    .summary = "show how far runs are",
    .detail =
        "DIR is a run directory: its state, epoch, last and best return, steps, time spent and "
        "left, and the last lines of its log. Of a directory of runs, or of several, each run has "
        "one line. Nothing but files is read, so it works while the runs go on. States: running, "
        "done, stopped (by request), interrupted (killed; 'opc resume' goes on), diverged, failed, "
        "begun (nothing is known yet).",
    .options = &options,
    .run = status_run,
};
