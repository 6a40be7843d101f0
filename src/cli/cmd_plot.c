/* SPDX-License-Identifier: MIT */
/* opc plot - draws learning curves of one or many runs, and prints where they end.
 *
 * Reading and grouping runs is study/curves/; this file checks the options, prints the table of
 * final values and, with --published, compares with a curve of others. Whatever can fail is done
 * before the first file is written. */
#include "base/file.h"
#include "base/log.h"
#include "cli/console/command.h"
#include "num/stats.h"
#include "opc/mem.h"
#include "plot/draw.h"
#include "study/curves/curves_draw.h"
#include "study/exhibit/table.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(PATH, out,    "curves.svg",  1, 4095, "file to draw: .svg, .pdf or .png")                     \
    X(TEXT, of,     "eval_return", 1, 64,  "column of metrics.csv to draw, or error_1, error_5, error_10: the on-policy error of the equation that a run uses") \
    X(TEXT, over,   "",            0, 64,  "column of metrics.csv for the horizontal axis, or minutes: by the clock, since the run began; by default env_steps, with --published total_steps") \
    X(TEXTS, only,  "",            1, 255, "KEY=PATTERN: draw only runs whose setting has this value, or one that the pattern matches: opc.horizon=20, 'env.name=*hopper'; may be given several times, and all have to match") \
    X(INT,  smooth, "1",           1, 999, "moving average over this many values, an odd number; the paper's figures use 5") \
    X(TEXT, title,  "",            0, 255, "heading of the figure")                                \
    X(TEXTS, label, "",            3, 255, "OLD=NEW: another name for a line, whose name the table has in the column kind; may be given several times") \
    X(CHOICE, band, "quartiles", OPC_BAND_CHOICES, , "around the median over runs: quartiles, the range, or none; interval: the interquartile mean and its 95 % interval by bootstrap; std: the mean and one standard deviation") \
    X(PATH, published, "",         0, 4095, "CSV file of published curves, or of another program: columns source,env,method,env_steps,mean,std,seeds") \
    X(TEXT, published_task, "",    0, 255, "task of the published curves, as the column env of the file has it") \
    X(TEXTS, published_method, "", 1, 255, "method to draw behind the runs, as the column method of the file has it; may be given several times") \
    X(PATH, table,  "",            0, 4095, "CSV file to write: the runs next to the (first) published curve after 10000, 25000, 50000 and 75000 steps and at their end")
/* clang-format on */
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF

/* ---- tables ---------------------------------------------------------------------------------- */

/* One line for each group of runs: line and band of their final values. */
static void print_ends(const struct opc_curves *c, const struct given *given, const char *csv)
{
    const struct opc_band_names name = opc_band_names(c->band);
    int task = 4, kind = 4; /* widths */
    /* Columns are as wide as their widest cell. */
    for (int g = 0; g < c->groups; g++) {
        const int a = (int)strlen(c->panel[c->group[g].panel]), b = (int)strlen(c->group[g].label);
        task = a > task ? a : task;
        kind = b > kind ? b : kind;
    }
    printf("%-*s %-*s %5s %10s %10s %10s\n", task, "task", kind, "kind", "runs", name.middle,
           name.low, name.high);
    for (int g = 0; g < c->groups; g++) {
        /* A group whose runs have no rows has no line. */
        const struct opc_curve_group *group = &c->group[g];
        if (group->n > 0)
            printf("%-*s %-*s %5d %10.4g %10.4g %10.4g\n", task, c->panel[group->panel], kind,
                   group->label, group->runs, group->end_middle, group->end_low, group->end_high);
    }
    printf("(mean of the last 5 values of %s in each run, over runs) -> %s%s%s\n", given->of,
           opc_draw_version() ? given->out : "", opc_draw_version() ? " and " : "", csv);
}

/* The numbers of the picture go into a CSV file of the same name. Its first columns tell it from a
 * file of somebody else, which is not replaced. */
static const char OWN_COLUMNS[] = "task,kind,runs,";

/* May the file be written: is it not there, or a table of this command, and not the --table? */
static bool is_free(const char *path, const struct given *given)
{
    char *bytes;
    size_t n;
    if (strcmp(path, given->table) == 0)
        return false;
    if (!opc_file_exists(path))
        return true;
    if (opc_file_read(path, (size_t)1 << 30, &bytes, &n, NULL))
        return false;
    const bool ours =
        n >= sizeof OWN_COLUMNS - 1 && memcmp(bytes, OWN_COLUMNS, sizeof OWN_COLUMNS - 1) == 0;
    opc_free(bytes);
    return ours;
}

/* NAME.csv of NAME.svg, or NAME-curves.csv if the first belongs to somebody else. */
static int name_csv(const struct given *given, char out[OPC_PATH], struct opc_err *err)
{
    const char *name = opc_path_name(given->out), *dot = strrchr(name, '.');
    const int stem = (int)((dot && dot != name ? dot : name + strlen(name)) - given->out);
    if (stem + (int)sizeof "-curves.csv" > OPC_PATH)
        return opc_fail(err, OPC_EUSER, "path is too long: %s", given->out);
    for (int i = 0; i < 2; i++) {
        snprintf(out, OPC_PATH, "%.*s%s.csv", stem, given->out, i ? "-curves" : "");
        if (is_free(out, given))
            return OPC_OK;
    }
    return opc_fail(err, OPC_EUSER,
                    "%s is there and is not a table of this command, which would write the numbers "
                    "of the picture into it; choose another name with -o",
                    out);
}

/* Each point that is drawn: task, kind, number of runs there, x, line and band. */
static int make_csv(const struct opc_curves *c, const struct given *given, struct opc_table **out,
                    struct opc_err *err)
{
    struct opc_text columns = {0};
    struct opc_table *table = NULL;
    opc_text_addf(&columns, "%s%s,%s,low,high", OWN_COLUMNS, given->over,
                  opc_band_names(c->band).middle);
    double *scratch = opc_alloc((size_t)c->runs, sizeof *scratch);
    int code = opc_text_check(&columns, err);
    if (!code && !scratch)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for the numbers of the curves");
    if (!code)
        code = opc_table_create(opc_text_get(&columns), &table, err);
    for (int g = 0; g < c->groups && !code; g++)
        for (int i = 0; i < c->group[g].n; i++) {
            const struct opc_curve_group *group = &c->group[g];
            opc_table_word(table, c->panel[group->panel]);
            opc_table_word(table, group->label);
            opc_table_int(table, opc_curves_at(c, g, group->x[i], scratch));
            opc_table_real(table, group->x[i]);
            opc_table_real(table, group->middle[i]);
            opc_table_real(table, group->low[i]);
            opc_table_real(table, group->high[i]);
        }
    opc_free(scratch);
    opc_text_free(&columns);
    if (!code)
        *out = table;
    return code;
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

/* ---- published curves ------------------------------------------------------------------------ */

/* Checks that the options about published curves go together, and sets the horizontal axis, which
 * published curves fix. */
static int check_published(struct given *given, struct opc_err *err)
{
    static const char OVER[] = "total_steps";
    if (!*given->published) {
        /* Without --published, options about it would silently do nothing. */
        const char *without = *given->published_task      ? "published-task"
                              : given->published_method.n ? "published-method"
                              : *given->table             ? "table"
                                                          : NULL;
        if (without)
            return opc_fail(err, OPC_EUSER,
                            "--%s is about a published curve; name its file with --published",
                            without);
        if (!*given->over)
            strcpy(given->over, "env_steps");
        return OPC_OK;
    }
    /* The file has many curves; these two options choose. */
    if (!*given->published_task || !given->published_method.n)
        return opc_fail(err, OPC_EUSER,
                        "--published %s has many curves; choose with --published-task and "
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

/* The curves that are named, the one to compare with first. */
static int read_published(const struct given *given, struct opc_published **out,
                          struct opc_err *err)
{
    const char *method[OPC_LIST_MAX];
    for (int i = 0; i < given->published_method.n; i++)
        method[i] = given->published_method.at[i];
    return opc_published_read(given->published, given->published_task, given->published_method.n,
                              method, out, err);
}

/* The table of --table as it was before, whose rows of other tasks and methods stay; NULL: there is
 * none. A file of somebody else is not replaced. */
static int read_table(const char *path, struct opc_table **out, struct opc_err *err)
{
    struct opc_table *table = NULL;
    if (!opc_file_exists(path))
        return OPC_OK;
    const int code = opc_table_read(path, &table, NULL);
    if (!code && opc_published_is_table(table)) {
        *out = table;
        return OPC_OK;
    }
    opc_table_free(table);
    return opc_fail(err, OPC_EUSER,
                    "--table %s: the file is there and is not a table of this option, which would "
                    "be updated; choose another name",
                    path);
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
    opc_curves_note(curves, given->smooth, &note);
    /* One more line about each curve of others. */
    const bool several = published && published->next;
    for (const struct opc_published *p = published; p; p = p->next)
        opc_text_addf(&note,
                      "%sgrey: %s%spublished mean over %d seed%s and one standard deviation around "
                      "it (%s)",
                      note.used ? "\n" : "", several ? p->method : "", several ? ", " : "",
                      p->min_seeds, p->min_seeds == 1 ? "" : "s", p->source);
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
    struct opc_table *before = NULL, *table = NULL, *numbers = NULL;
    char csv[OPC_PATH];
    int code = check_rows(curves, given, err);
    if (!code)
        code = name_csv(given, csv, err);
    if (!code && *given->table)
        code = read_table(given->table, &before, err);
    if (!code && *given->table)
        code = opc_published_table(published, curves, before, &table, err);
    if (!code)
        code = make_csv(curves, given, &numbers, err);
    /* A build without cairo has the numbers all the same, and fails at the end. */
    if (!code && opc_draw_version())
        code = draw_curves(curves, published, given, err);
    /* Files are written before anything is printed about them. */
    if (!code)
        code = opc_table_write(numbers, csv, err);
    if (!code && table)
        code = opc_table_write(table, given->table, err);
    if (!code)
        print_ends(curves, given, csv);
    if (!code && table)
        code = print_table(table, given->table, err);
    if (!code && !opc_draw_version())
        code = draw_curves(curves, published, given, err);
    opc_table_free(before);
    opc_table_free(table);
    opc_table_free(numbers);
    return code;
}

/* OLD=NEW. Names of lines have colons, not equals signs. */
static int rename_line(struct opc_curves *curves, char *label, struct opc_err *err)
{
    char *equals = strchr(label, '=');
    if (!equals)
        return opc_fail(err, OPC_EUSER,
                        "--label %s is not OLD=NEW; the table has OLD in its column "
                        "kind",
                        label);
    *equals = '\0';
    const int code = opc_curves_rename(curves, label, equals + 1, err);
    return code ? opc_within(err, "--label") : OPC_OK;
}

static int plot_run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    struct opc_curves *curves = NULL;
    struct opc_published *published = NULL;
    struct opc_curves_only only;
    int first;
    int code = opc_options_read(&options, argc, argv, &given, &first, err);
    if (code)
        return code;
    if (first == argc)
        return opc_fail(err, OPC_EUSER, "name run directories, or directories of runs");
    code = check_published(&given, err);
    if (!code)
        code = opc_smooth_check(given.smooth, err);
    if (!code && (code = opc_curves_only_read(&given.only, &only, err)))
        opc_within(err, "--only");
    /* The published file is read first: it is small, and a wrong name shows at once. */
    if (!code && *given.published)
        code = read_published(&given, &published, err);
    /* All runs are read before anything is drawn. */
    const struct opc_curves_plan plan = {.of = given.of,
                                         .over = given.over,
                                         .smooth = given.smooth,
                                         .only = &only,
                                         .band = (enum opc_band)given.band};
    if (!code)
        code = opc_curves_read(argc - first, argv + first, &plan, &curves, err);
    for (int i = 0; i < given.label.n && !code; i++)
        code = rename_line(curves, given.label.at[i], err);
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
    .detail =
        "DIR is a run directory, finished or not, or a directory of them; or, without runs in it, "
        "one with the tables of opc sweep merge (merged.csv, runs.csv, timing.csv). Runs that "
        "differ "
        "only in their seed become one line with a band around it (--band); each task has its "
        "own panel. The numbers of the picture FILE.svg are written to FILE.csv. Methods have "
        "the same colour in every picture.\n"
        "--published FILE draws curves of others behind runs of one task, over total_steps, as "
        "published steps count the random ones, too: those of the task of --published-task and of "
        "each --published-method. results/published/curves.csv has some, and any CSV file with "
        "the columns source,env,method,env_steps,mean,std,seeds will do, such as one of "
        "examples/sb3_sac.py. --table FILE also writes "
        "and prints how far the runs, which form one line, are from the first of these curves; in "
        "a "
        "table that is there it replaces the rows of this task and method "
        "(docs/experiments.md).",
    .options = &options,
    .run = plot_run,
};
