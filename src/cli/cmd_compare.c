/* SPDX-License-Identifier: MIT */
/* opc compare - two runs, or two directories of runs: settings that differ, curves, and how sure it
 * is that one ends above the other.
 *
 * study/curves/compare.h computes; this file finds the runs, prints and draws. Nothing but files of
 * run directories is opened. */
#include "base/log.h"
#include "cli/console/command.h"
#include "opc/mem.h"
#include "run/files/json.h"
#include "run/files/summary.h"
#include "study/curves/compare.h"
#include "study/curves/curves_draw.h"
#include "study/curves/sweep_tables.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(PATH, out,    "compare.svg", 0, 4095, "file to draw: .svg, .pdf or .png; '' draws nothing")   \
    X(TEXT, of,     "eval_return", 1, 64,  "column of metrics.csv to compare, or error_1, error_5, error_10 as for opc plot") \
    X(TEXT, over,   "env_steps",   1, 64,  "column of metrics.csv for the horizontal axis, or minutes: by the clock, since the run began") \
    X(REAL, at,     "0",           0, 1e15, "compare after so many of --over, with the runs that have got that far; 0: at each run's end") \
    X(INT,  smooth, "1",           1, 999, "moving average of the curves that are drawn, over an odd number of values") \
    X(BOOL, json,   "false",       0, 1,   "print one JSON object")
/* clang-format on */
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF

/* A side as it was named, with the runs that have something to compare. */
struct side {
    const char *word;
    struct opc_found found;
    int runs, seeds[1000], n_seeds;
    int empty;   /* runs without a row yet */
    bool tables; /* it is the tables of a merge: found has their directory, not one for each run */
};

/* ---- reading --------------------------------------------------------------------------------- */

/* Notes a seed, once. */
static void add_seed(struct side *side, int seed)
{
    for (int i = 0; i < side->n_seeds; i++)
        if (side->seeds[i] == seed)
            return;
    if (side->n_seeds < (int)(sizeof side->seeds / sizeof *side->seeds))
        side->seeds[side->n_seeds++] = seed;
}

/* The tables in the directory, whose rows opc_compare reads. */
static int find_tables(struct side *side, struct opc_err *err)
{
    struct opc_sweep_tables tables;
    OPC_TRY(opc_sweep_tables_open(side->word, &tables, err));
    for (int i = 0; i < tables.sweep->tasks; i++)
        if (opc_sweep_tables_know(&tables, i, "train.seed"))
            add_seed(side, tables.sweep->task[i].set.train.seed);
    side->runs = tables.sweep->tasks;
    side->tables = true;
    opc_sweep_tables_close(&tables);
    side->found.dir = opc_alloc(1, sizeof *side->found.dir);
    if (!side->found.dir || !(side->found.dir[0] = opc_strdup(side->word)))
        return opc_fail(err, OPC_ENOMEM, "out of memory for the runs");
    side->found.n = side->found.capacity = 1;
    return OPC_OK;
}

/* Finds the runs of a word. Those without a row, or without settings, are left out. */
static int find_side(struct side *side, struct opc_err *err)
{
    if (opc_is_directory(side->word))
        OPC_TRY(opc_found_add_any(&side->found, side->word, err));
    if (side->found.n == 0 && opc_sweep_tables_are(side->word))
        return find_tables(side, err);
    if (side->found.n == 0)
        return opc_found_add(&side->found, side->word, err); /* with its message */
    struct opc_found *found = &side->found;
    struct opc_summary *run = opc_alloc((size_t)found->n, sizeof *run);
    int kept = 0, code = run ? OPC_OK : opc_fail(err, OPC_ENOMEM, "out of memory for the runs");
    if (!code)
        code = opc_summaries_read(found->n, found->dir, NULL, run, err);
    for (int i = 0; i < found->n && !code; i++) {
        if (run[i].rows > 0 && *run[i].task) {
            add_seed(side, run[i].seed);
            found->dir[kept++] = found->dir[i];
        } else {
            side->empty++;
            opc_free(found->dir[i]);
        }
    }
    if (!code)
        side->runs = found->n = kept;
    opc_free(run);
    if (!code && kept == 0)
        return opc_fail(err, OPC_EUSER, "%s: none of its %d runs has a row in metrics.csv yet",
                        side->word, side->empty);
    return code;
}

/* ---- on the terminal ------------------------------------------------------------------------- */

/* A line for each side: its runs and their seeds. */
static void print_sides(const struct side side[2])
{
    const int a = (int)strlen(side[0].word), b = (int)strlen(side[1].word);
    for (int s = 0; s < 2; s++) {
        const struct side *one = &side[s];
        printf("%c  %-*s  %d run%s, seed%s", 'A' + s, a > b ? a : b, one->word, one->runs,
               one->runs == 1 ? "" : "s", one->n_seeds == 1 ? "" : "s");
        /* Many seeds are cut: the number of runs says how many there are. */
        for (int i = 0; i < one->n_seeds && i < 12; i++)
            printf("%s %d", i ? "," : "", one->seeds[i]);
        printf("%s", one->n_seeds > 12 ? ", ..." : "");
        if (one->empty)
            printf("; %d left out, without a row yet", one->empty);
        if (one->tables)
            printf("; its merged.csv tells only the settings that vary");
        putchar('\n');
    }
}

/* A long list of values is cut where the terminal would be too narrow for two of them. */
static void print_settings(const struct opc_table *t, const char *of_both)
{
    enum { WIDEST = 36 };
    int width[3] = {7, 1, 1};
    if (opc_table_rows(t) == 0) {
        printf("\nno setting %sdiffers, except perhaps the seed\n", of_both);
        return;
    }
    /* Columns are as wide as their widest cell, up to a limit. */
    for (int r = 0; r < opc_table_rows(t); r++)
        for (int c = 0; c < 3; c++) {
            const int n = (int)strlen(opc_table_cell(t, r, c));
            const int wide = n > WIDEST ? WIDEST : n;
            width[c] = wide > width[c] ? wide : width[c];
        }
    printf("\n%-*s  %-*s  %s\n", width[0], "setting", width[1], "A", "B");
    for (int r = 0; r < opc_table_rows(t); r++) {
        char cell[3][WIDEST + 1];
        for (int c = 0; c < 3; c++) {
            const char *text = opc_table_cell(t, r, c);
            const bool cut = strlen(text) > WIDEST;
            snprintf(cell[c], sizeof cell[c], "%.*s%s", cut ? WIDEST - 3 : WIDEST, text,
                     cut ? "..." : "");
        }
        printf("%-*s  %-*s  %s\n", width[0], cell[0], width[1], cell[1], cell[2]);
    }
}

/* "12.3 (10.1 to 14.2)"; "-" where there is nothing. */
static void word_interval(struct opc_table *t, struct opc_interval v)
{
    char text[96] = "-";
    if (!isnan(v.middle))
        snprintf(text, sizeof text, "%.4g (%.4g to %.4g)", v.middle, v.low, v.high);
    opc_table_word(t, text);
}

/* A row for each task, with the numbers of both sides. */
static int print_tasks(const struct opc_compare *c, const struct given *given, struct opc_err *err)
{
    struct opc_table *t;
    struct opc_text text = {0};
    OPC_TRY(opc_table_create("task,runs of A,runs of B,IQM of A (95 %),IQM of B (95 %),"
                             "P(A > B) (95 %)",
                             &t, err));
    for (int i = 0; i < c->tasks; i++) {
        const struct opc_compare_task *task = &c->task[i];
        opc_table_word(t, task->name);
        for (int s = 0; s < 2; s++)
            opc_table_int(t, task->n[s]);
        for (int s = 0; s < 2; s++)
            word_interval(t, task->iqm[s]);
        word_interval(t, task->improvement);
    }
    opc_table_print(t, &text);
    const int code = opc_text_check(&text, err);
    if (!code) {
        printf("\n%s(%s: mean of the last 5 values of a run", opc_text_get(&text), given->of);
        if (given->at > 0)
            printf(" up to %s %.10g", given->over, given->at);
        printf("; IQM: interquartile mean over runs; intervals by bootstrap over runs)\n");
    }
    opc_text_free(&text);
    opc_table_free(t);
    return code;
}

/* What a reader might overlook: runs that are left out, and ends that are not at the same step. */
static void warn_about(const struct opc_compare *c, const struct given *given)
{
    for (int i = 0; i < c->tasks; i++) {
        const struct opc_compare_task *task = &c->task[i];
        /* With --at: runs that have not got that far. */
        const int short_of = task->short_of[0] + task->short_of[1];
        if (short_of)
            opc_log(OPC_LEVEL_WARN, "%s: %d run%s not reached %s %.10g and %s left out", task->name,
                    short_of, short_of == 1 ? " has" : "s have", given->over, given->at,
                    short_of == 1 ? "is" : "are");
        /* Without it: a longer training is an advantage of its own. */
        if (given->at == 0 && task->n[0] && task->n[1] && task->steps[0] != task->steps[1])
            opc_log(OPC_LEVEL_WARN,
                    "%s: A ends at %s %.10g and B at %.10g; --at %.10g compares them after the "
                    "same number",
                    task->name, given->over, task->steps[0], task->steps[1],
                    fmin(task->steps[0], task->steps[1]));
    }
}

/* The one sentence that most readers want. */
static void print_verdict(const struct opc_compare *c)
{
    int shared = 0, few = 0;
    for (int i = 0; i < c->tasks; i++) {
        shared += c->task[i].n[0] && c->task[i].n[1];
        few += c->task[i].n[0] == 1 || c->task[i].n[1] == 1;
    }
    if (shared == 0)
        printf("\nA and B have no task in common: nothing says which is better\n");
    else
        printf("\na run of A ends above one of B with probability %.2f (%.2f to %.2f)%s%s\n",
               c->improvement.middle, c->improvement.low, c->improvement.high,
               shared > 1 ? ", mean over the tasks of both" : "",
               few ? "; an interval of a single run means nothing" : "");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* before, then the number; null where there is none. */
static void add_number(struct opc_text *text, const char *before, double v)
{
    opc_text_add(text, before);
    if (isfinite(v))
        opc_text_add_real(text, v);
    else
        opc_text_add(text, "null");
}

/* before, then {"value": , "low": , "high": }. */
static void add_interval(struct opc_text *text, const char *before, struct opc_interval v)
{
    opc_text_add(text, before);
    add_number(text, "{\"value\": ", v.middle);
    add_number(text, ", \"low\": ", v.low);
    add_number(text, ", \"high\": ", v.high);
    opc_text_add(text, "}");
}

/* A task with the scores of all its runs, for statistics of one's own. */
static void add_task(struct opc_text *text, const struct opc_compare_task *task)
{
    opc_text_add(text, "{\"task\": ");
    opc_json_add_quoted(text, task->name);
    for (int s = 0; s < 2; s++) {
        opc_text_addf(text, ", \"%c\": {\"runs\": %d", 'a' + s, task->n[s]);
        add_interval(text, ", \"iqm\": ", task->iqm[s]);
        opc_text_add(text, ", \"scores\": [");
        for (int i = 0; i < task->n[s]; i++)
            add_number(text, i ? ", " : "", task->score[s][i]);
        opc_text_add(text, "]}");
    }
    add_interval(text, ", \"improvement\": ", task->improvement);
    opc_text_add(text, "}");
}

/* Everything on one line, so that many comparisons make a file of JSON lines. */
static int print_json(const struct opc_compare *c, const struct opc_table *settings,
                      const struct side side[2], struct opc_err *err)
{
    struct opc_text text = {0};
    for (int s = 0; s < 2; s++) {
        opc_text_addf(&text, "%s\"%c\": ", s ? ", " : "{", 'a' + s);
        opc_json_add_quoted(&text, side[s].word);
    }
    opc_text_add(&text, ", \"settings\": [");
    for (int r = 0; r < opc_table_rows(settings); r++) {
        static const char *const KEY[] = {"{\"setting\": ", ", \"a\": ", ", \"b\": "};
        opc_text_add(&text, r ? ", " : "");
        for (int k = 0; k < 3; k++) {
            opc_text_add(&text, KEY[k]);
            opc_json_add_quoted(&text, opc_table_cell(settings, r, k));
        }
        opc_text_add(&text, "}");
    }
    opc_text_add(&text, "], \"tasks\": [");
    for (int i = 0; i < c->tasks; i++) {
        opc_text_add(&text, i ? ", " : "");
        add_task(&text, &c->task[i]);
    }
    add_interval(&text, "], \"improvement\": ", c->improvement);
    opc_text_add(&text, "}");
    const int code = opc_text_check(&text, err);
    if (!code)
        puts(opc_text_get(&text));
    opc_text_free(&text);
    return code;
}

/* ---------------------------------------------------------------------------------------------- */

/* A build without cairo has the numbers all the same. */
static int draw(const struct opc_compare *c, const struct given *given, struct opc_err *err)
{
    struct opc_text note = {0};
    if (!*given->out)
        return OPC_OK;
    opc_curves_note(&c->drawn, given->smooth, &note);
    const struct opc_curves_style style = {.x_label = opc_column_label(given->over),
                                           .y_label = opc_column_label(given->of),
                                           .note = opc_text_get(&note)};
    int code = opc_text_check(&note, err);
    if (!code)
        code = opc_curves_draw(&style, &c->drawn, given->out, err);
    opc_text_free(&note);
    if (code == OPC_EABSENT) {
        opc_log(OPC_LEVEL_WARN, "%s", err->text);
        return OPC_OK;
    }
    if (!code && !given->json)
        printf("curves -> %s\n", given->out);
    return code;
}

/* Warnings first: they say how far to trust what follows. */
static int show(const struct opc_compare *c, const struct opc_table *settings,
                const struct side side[2], const struct given *given, struct opc_err *err)
{
    warn_about(c, given);
    if (given->json) {
        OPC_TRY(print_json(c, settings, side, err));
    } else {
        print_sides(side);
        print_settings(settings, side[0].tables || side[1].tables ? "that both tell " : "");
        OPC_TRY(print_tasks(c, given, err));
        print_verdict(c);
    }
    return draw(c, given, err);
}

static int compare_run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    struct opc_compare *compare = NULL;
    struct opc_table *settings = NULL;
    int first;
    OPC_TRY(opc_options_read(&options, argc, argv, &given, &first, err));
    if (argc - first != 2)
        return opc_fail(err, OPC_EUSER, "name two runs or directories of runs: opc compare A B");
    OPC_TRY(opc_smooth_check(given.smooth, err));
    /* Both sides are found and read before anything is printed. */
    struct side *side = opc_alloc(2, sizeof *side);
    int code = side ? OPC_OK : opc_fail(err, OPC_ENOMEM, "out of memory for the runs");
    struct opc_compare_runs runs[2] = {{0}};
    for (int s = 0; s < 2 && !code; s++) {
        side[s].word = argv[first + s];
        code = find_side(&side[s], err);
        runs[s] = (struct opc_compare_runs){side[s].word, side[s].found.n, side[s].found.dir};
    }
    const struct opc_compare_plan plan = {given.of, given.over, given.at, given.smooth};
    if (!code)
        code = opc_compare_settings(runs, &settings, err);
    if (!code)
        code = opc_compare(runs, &plan, &compare, err);
    if (!code)
        code = show(compare, settings, side, &given, err);
    for (int s = 0; side && s < 2; s++)
        opc_found_free(&side[s].found);
    opc_free(side);
    opc_table_free(settings);
    opc_compare_free(compare);
    return code;
}

const struct opc_command opc_cmd_compare = {
    .name = "compare",
    .usage = "A B [-o FILE] [OPTION...]",
    .summary = "compare two runs or two directories of runs",
    .detail =
        "A and B are run directories, directories of runs, or directories without runs that have "
        "the tables of opc sweep merge. Prints the settings that differ; for "
        "each task the interquartile mean (IQM) of the scores of both, with its 95 % interval; and "
        "the probability that a run of A ends above one of B. Draws the curves of both: median and "
        "quartiles over runs. All runs of a side on one task are one sample, whatever differs "
        "between them.\n"
        "The score of a run is the mean of its last five evaluations. Intervals are by bootstrap "
        "with a fixed seed: the same runs give the same numbers (docs/runs.md). No environment is "
        "opened.",
    .options = &options,
    .run = compare_run,
};
