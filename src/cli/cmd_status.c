/* SPDX-License-Identifier: MIT */
/* opc status - how far runs are: state, epoch, returns, steps, time, the last lines of the log.
 *
 * Everything is read from the run directories (run/files/summary.h). Invariant: nothing is opened
 * but files, and nothing is written, so the command works while a run goes on, on a computer that
 * has not the run's environment, and in a directory that it must not write to. */
#include "base/file.h"
#include "cli/console/command.h"
#include "opc/mem.h"
#include "run/files/json.h"
#include "run/files/rundir.h"
#include "run/files/summary.h"

#include <math.h>
#include <stdio.h>
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
static void print_one(const char *dir, const struct opc_summary *r, int lines)
{
    char a[OPC_PRINTED], b[OPC_PRINTED];
    printf("%-8s %s", "run", dir);
    if (*r->task)
        printf(": %s, seed %d", r->task, r->seed);
    printf("\n%-8s %s%s%s\n", "state", opc_summary_state_name(r->state), *r->why ? ": " : "",
           r->why);
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
    print_log(dir, lines);
}

/* Many runs: one line each, and their number below. */
static void print_many(const struct opc_found *found, const struct opc_summary *run)
{
    int wide = 3, done = 0;
    for (int i = 0; i < found->n; i++)
        if ((int)strlen(found->dir[i]) > wide)
            wide = (int)strlen(found->dir[i]);
    /* The first column is as wide as the longest path. */
    printf("%-*s  %-11s  %11s  %10s  %10s  %9s  %12s  %12s\n", wide, "run", "state", "epoch",
           "return", "best", "steps", "time", "left");
    for (int i = 0; i < found->n; i++) {
        const struct opc_summary *r = &run[i];
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
        printf("%-*s  %-11s  %11s  %10s  %10s  %9s  %12s  %12s%s%s\n", wide, found->dir[i],
               opc_summary_state_name(r->state), epoch, last, best, steps, spent, left,
               *r->why ? "  " : "", r->why);
        done += r->state == OPC_SUMMARY_DONE;
    }
    printf("%d run%s, %d done\n", found->n, found->n == 1 ? "" : "s", done);
}

/* One JSON object on one line. */
static int print_json(const char *dir, const struct opc_summary *r, struct opc_err *err)
{
    struct opc_text text = {0};
    opc_text_add(&text, "{\"run\": ");
    opc_json_add_quoted(&text, dir);
    opc_text_add(&text, ", ");
    opc_summary_json(r, &text);
    opc_text_add(&text, "}");
    const int code = opc_text_check(&text, err);
    if (!code)
        puts(opc_text_get(&text));
    opc_text_free(&text);
    return code;
}

/* Reads all, then prints: a list is of one moment. */
static int show_found(const struct opc_found *found, const struct given *given, bool single,
                      struct opc_err *err)
{
    struct opc_summary *run = opc_alloc((size_t)found->n, sizeof *run);
    struct opc_pool *pool = NULL;
    int code = run ? OPC_OK : opc_fail(err, OPC_ENOMEM, "out of memory for the runs");
    if (!code && found->n > 64)
        code = opc_pool_create(0, &pool, err);
    if (!code)
        code = opc_summaries_read(found->n, found->dir, pool, run, err);
    for (int i = 0; i < found->n && given->json && !code; i++)
        code = print_json(found->dir[i], &run[i], err);
    if (!code && !given->json && single && found->dir)
        print_one(found->dir[0], run, given->lines);
    else if (!code && !given->json)
        print_many(found, run);
    opc_pool_destroy(pool);
    opc_free(run);
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
    struct opc_found found = {0};
    int code = OPC_OK;
    for (int i = first; i < argc && !code; i++)
        code = opc_found_add(&found, argv[i], err);
    /* A run that is named itself, alone, is shown in full. */
    if (!code)
        code = show_found(&found, &given, argc - first == 1 && opc_rundir_is_run(argv[first]), err);
    opc_found_free(&found);
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
