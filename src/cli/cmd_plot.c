/* SPDX-License-Identifier: MIT */
/* opc plot - learning curves of one or many runs. */
#include "base/log.h"
#include "cli/console/command.h"
#include "num/stats.h"
#include "study/curves/curves_draw.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(TEXT, out,    "curves.svg",  1, 255, "file to draw: .svg, .pdf or .png")                     \
    X(TEXT, of,     "eval_return", 1, 64,  "column of metrics.csv to draw")                        \
    X(TEXT, over,   "env_steps",   1, 64,  "column of metrics.csv to draw it over")                \
    X(INT,  smooth, "1",           1, 999, "average over so many values around each, an odd number (the paper's figures: 5)") \
    X(TEXT, title,  "",            0, 255, "heading of the figure")
/* clang-format on */
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF

static void print_ends(const struct opc_curves *c, const struct given *given)
{
    int task = 4, kind = 4; /* widths */
    for (int g = 0; g < c->groups; g++) {
        const int a = (int)strlen(c->panel[c->group[g].panel]), b = (int)strlen(c->group[g].label);
        task = a > task ? a : task;
        kind = b > kind ? b : kind;
    }
    printf("%-*s %-*s %5s %10s %10s %10s\n", task, "task", kind, "kind", "runs", "median", "25 %",
           "75 %");
    for (int g = 0; g < c->groups; g++) {
        const struct opc_curve_group *group = &c->group[g];
        if (group->n > 0)
            printf("%-*s %-*s %5d %10.4g %10.4g %10.4g\n", task, c->panel[group->panel], kind,
                   group->label, group->runs, group->end_middle, group->end_low, group->end_high);
    }
    printf("(mean of the last 5 values of %s in each run, over runs) -> %s\n", given->of,
           given->out);
}

/* Runs that have got nowhere yet are told, and all of them are an error. */
static int check_rows(const struct opc_curves *c, const struct given *given, struct opc_err *err)
{
    int empty = 0;
    for (int i = 0; i < c->runs; i++)
        empty += c->run[i].n == 0;
    if (empty == c->runs)
        return opc_fail(err, OPC_EUSER, "%s has no value of %s over %s yet", c->run[0].dir,
                        given->of, given->over);
    for (int i = 0; i < c->runs; i++)
        if (c->run[i].n == 0)
            opc_log(OPC_WARN, "%s has no value of %s yet and is not drawn", c->run[i].dir,
                    given->of);
    return OPC_OK;
}

static int run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    struct opc_curves *curves;
    int first;
    int code = opc_options_read(&options, argc, argv, &given, &first, err);
    if (code)
        return code;
    if (first == argc)
        return opc_fail(err, OPC_EUSER, "name run directories, or directories of runs");
    const struct opc_curves_plan plan = {
        .of = given.of, .over = given.over, .smooth = given.smooth};
    code = opc_smooth_check(given.smooth, err);
    if (!code)
        code = opc_curves_read(argc - first, argv + first, &plan, &curves, err);
    if (code)
        return code;
    char note[200];
    snprintf(note, sizeof note, "line: median over runs; band: quartiles%s",
             given.smooth > 1 ? "; smoothed by a moving average" : "");
    const struct opc_curves_look figure = {
        .title = *given.title ? given.title : NULL,
        .x_label = opc_column_label(given.over),
        .y_label = opc_column_label(given.of),
        .note = note,
    };
    code = check_rows(curves, &given, err);
    if (!code)
        code = opc_curves_draw(&figure, curves, given.out, err);
    if (!code)
        print_ends(curves, &given);
    opc_curves_free(curves);
    return code;
}

const struct opc_command opc_cmd_plot = {
    .name = "plot",
    .usage = "DIR... [-o FILE] [OPTION...]",
    .summary = "draw learning curves of runs, and print where they end",
    .detail = "DIR is a run directory, finished or not, or a directory of them. Runs that differ "
              "only in their seed become one line, their median with quartiles around it; each "
              "task has its own panel.",
    .options = &options,
    .run = run,
};
