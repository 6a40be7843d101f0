/* SPDX-License-Identifier: MIT */
/* opc plot - draws learning curves of one or many runs, and prints where they end.
 *
 * Reading and grouping runs is study/curves/; this file checks the options, prints the table of
 * final values and, with --published, compares with a curve of others. Whatever can fail is done
 * before the first file is written. */
#include "base/log.h"
#include "cli/console/command.h"
#include "num/stats.h"
#include "study/curves/curves_draw.h"
#include "study/exhibit/table.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(PATH, out,    "curves.svg",  1, 4095, "file to draw: .svg, .pdf or .png")                     \
    X(TEXT, of,     "eval_return", 1, 64,  "column of metrics.csv to draw")                        \
    X(TEXT, over,   "",            0, 64,  "column of metrics.csv for the horizontal axis; by default env_steps, with --published total_steps") \
    X(INT,  smooth, "1",           1, 999, "moving average over this many values, an odd number; the paper's figures use 5") \
    X(TEXT, title,  "",            0, 255, "heading of the figure")                                \
    X(PATH, published, "",         0, 4095, "CSV file of published curves, one of which is drawn behind the runs") \
    X(TEXT, published_task, "",    0, 255, "task of the published curve, as the column env of its file has it") \
    X(TEXT, published_method, "",  0, 255, "method of the published curve, as the column method of its file has it")          \
    X(PATH, table,  "",            0, 4095, "CSV file to write: the runs next to the published curve after 10000, 25000, 50000 and 75000 steps and at their end")
/* clang-format on */
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF

/* One line for each group of runs: median and quartiles of their final values. */
static void print_ends(const struct opc_curves *c, const struct given *given)
{
    int task = 4, kind = 4; /* widths */
    /* Columns are as wide as their widest cell. */
    for (int g = 0; g < c->groups; g++) {
        const int a = (int)strlen(c->panel[c->group[g].panel]), b = (int)strlen(c->group[g].label);
        task = a > task ? a : task;
        kind = b > kind ? b : kind;
    }
    printf("%-*s %-*s %5s %10s %10s %10s\n", task, "task", kind, "kind", "runs", "median", "25 %",
           "75 %");
    for (int g = 0; g < c->groups; g++) {
        /* A group whose runs have no rows has no line. */
        const struct opc_curve_group *group = &c->group[g];
        if (group->n > 0)
            printf("%-*s %-*s %5d %10.4g %10.4g %10.4g\n", task, c->panel[group->panel], kind,
                   group->label, group->runs, group->end_middle, group->end_low, group->end_high);
    }
    printf("(mean of the last 5 values of %s in each run, over runs) -> %s\n", given->of,
           given->out);
}

/* Runs without rows are reported; if no run has rows, that is an error. */
static int check_rows(const struct opc_curves *c, const struct given *given, struct opc_err *err)
{
    int empty = 0;
    for (int i = 0; i < c->runs; i++)
        empty += c->run[i].n == 0;
    if (empty == c->runs)
        return opc_fail(err, OPC_EUSER, "%s has no value of %s over %s yet", c->run[0].dir,
                        given->of, given->over);
    /* Some have rows: name those that do not. */
    for (int i = 0; i < c->runs; i++)
        if (c->run[i].n == 0)
            opc_log(OPC_LEVEL_WARN, "%s has no value of %s yet and is not drawn", c->run[i].dir,
                    given->of);
    return OPC_OK;
}

/* ---- a published curve ----------------------------------------------------------------------- */

/* Checks that the options about a published curve go together, and sets the horizontal axis, which
 * published curves fix. */
static int check_published(struct given *given, struct opc_err *err)
{
    static const char OVER[] = "total_steps";
    if (!*given->published) {
        /* Without --published, options about it would silently do nothing. */
        const char *without = *given->published_task     ? "published-task"
                              : *given->published_method ? "published-method"
                              : *given->table            ? "table"
                                                         : NULL;
        if (without)
            return opc_fail(err, OPC_EUSER,
                            "--%s is about a published curve; name its file with --published",
                            without);
        if (!*given->over)
            strcpy(given->over, "env_steps");
        return OPC_OK;
    }
    /* The file has many curves; these two options choose one. */
    if (!*given->published_task || !*given->published_method)
        return opc_fail(err, OPC_EUSER,
                        "--published %s has many curves; choose one with --published-task and "
                        "--published-method, whose values are in its columns env and method",
                        given->published);
    /* Published curves fix both axes. */
    if (*given->over && strcmp(given->over, OVER) != 0)
        return opc_fail(err, OPC_EUSER,
                        "--over %s: published curves are over %s; drop --over or --published",
                        given->over, OVER);
    if (strcmp(given->of, "eval_return") != 0)
        return opc_fail(err, OPC_EUSER,
                        "--of %s: published curves are of eval_return; drop --of or --published",
                        given->of);
    strcpy(given->over, OVER);
    return OPC_OK;
}

/* The comparison with the published curve, as it was written to the file. */
static int print_table(const struct opc_table *t, const char *path, struct opc_err *err)
{
    struct opc_text text = {0};
    opc_table_print(t, &text);
    const int code = opc_text_check(&text, err);
    if (!code)
        printf("\n%s(eval_return over runs, interpolated linearly; deviations = (mean - "
               "published_mean) / published_std) -> %s\n",
               opc_text_get(&text), path);
    opc_text_free(&text);
    return code;
}

/* ---------------------------------------------------------------------------------------------- */

/* published may be NULL: none was asked for. */
static int draw_curves(const struct opc_curves *curves, const struct opc_published *published,
                       const struct given *given, struct opc_err *err)
{
    struct opc_text note = {0};
    /* The note under the figure says what line and band are. */
    opc_text_addf(&note, "line: median over runs; band: quartiles%s",
                  given->smooth > 1 ? "; smoothed by a moving average" : "");
    /* One more line about the curve of others. */
    if (published)
        opc_text_addf(&note,
                      "\ngrey: published mean over %d seeds and one standard deviation around it "
                      "(%s)",
                      published->min_seeds, published->source);
    const struct opc_curves_style figure = {
        .title = *given->title ? given->title : NULL,
        .x_label = opc_column_label(given->over),
        .y_label = opc_column_label(given->of),
        .note = opc_text_get(&note),
        .published = published,
    };
    int code = opc_text_check(&note, err);
    if (!code)
        code = opc_curves_draw(&figure, curves, given->out, err);
    opc_text_free(&note);
    return code;
}

/* The table is made before anything is drawn: if it cannot be made, there is no figure either. */
static int show_curves(const struct opc_curves *curves, const struct opc_published *published,
                       const struct given *given, struct opc_err *err)
{
    struct opc_table *table = NULL;
    int code = check_rows(curves, given, err);
    if (!code && *given->table)
        code = opc_published_table(published, curves, &table, err);
    if (!code)
        code = draw_curves(curves, published, given, err);
    /* Files are written before anything is printed about them. */
    if (!code && table)
        code = opc_table_write(table, given->table, err);
    if (!code)
        print_ends(curves, given);
    if (!code && table)
        code = print_table(table, given->table, err);
    opc_table_free(table);
    return code;
}

static int plot_run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    struct opc_curves *curves = NULL;
    struct opc_published *published = NULL;
    int first;
    int code = opc_options_read(&options, argc, argv, &given, &first, err);
    if (code)
        return code;
    if (first == argc)
        return opc_fail(err, OPC_EUSER, "name run directories, or directories of runs");
    code = check_published(&given, err);
    if (!code)
        code = opc_smooth_check(given.smooth, err);
    /* The published file is read first: it is small, and a wrong name shows at once. */
    if (!code && *given.published)
        code = opc_published_read(given.published, given.published_task, given.published_method,
                                  &published, err);
    /* All runs are read before anything is drawn. */
    const struct opc_curves_plan plan = {
        .of = given.of, .over = given.over, .smooth = given.smooth};
    if (!code)
        code = opc_curves_read(argc - first, argv + first, &plan, &curves, err);
    if (!code)
        code = show_curves(curves, published, &given, err);
    opc_curves_free(curves);
    opc_published_free(published);
    return code;
}

const struct opc_command opc_cmd_plot = {
    .name = "plot",
    .usage = "DIR... [-o FILE] [OPTION...]",
    .summary = "draw learning curves of runs, and print where they end",
    .detail = "DIR is a run directory, finished or not, or a directory of them. Runs that differ "
              "only in their seed become one line, their median with quartiles around it; each "
              "task has its own panel.\n"
              "--published FILE draws a curve of others behind runs of one task, over total_steps, "
              "as published steps count the random ones, too; results/published/curves.csv has "
              "some. --table FILE also writes and prints how far apart they are, for runs of one "
              "line (docs/experiments.md).",
    .options = &options,
    .run = plot_run,
};
