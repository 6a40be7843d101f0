/* SPDX-License-Identifier: MIT */
/* Published learning curves: reads them from a CSV file and compares runs with them. opc plot
 * (cli/cmd_plot.c) calls it; curves_draw.c draws the curve.
 *
 * Invariant: runs and curve are compared only at steps that both cover; nothing is extrapolated. */
#include "study/curves/published.h"

#include "num/stats.h"
#include "opc/mem.h"
#include "study/exhibit/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SOURCE, ENV, METHOD, STEPS, MEAN, STD, SEEDS, COLUMNS };
static const char *const COLUMN[COLUMNS] = {"source", "env", "method", "env_steps",
                                            "mean",   "std", "seeds"};

static int published_no_memory(struct opc_err *err)
{
    return opc_fail(err, OPC_ENOMEM, "not enough memory for a published curve");
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Every column must be there; at[k] is its index. */
static int find_columns(const struct opc_table *table, const char *path, int at[COLUMNS],
                        struct opc_err *err)
{
    for (int k = 0; k < COLUMNS; k++) {
        at[k] = opc_table_find(table, COLUMN[k]);
        if (at[k] < 0)
            return opc_fail(err, OPC_EUSER,
                            "%s has no column '%s'; published curves have source, env, method, "
                            "env_steps, mean, std and seeds",
                            path, COLUMN[k]);
    }
    return OPC_OK;
}

/* Whether the row is of this task; NULL: any task. */
static bool is_of(const struct opc_table *table, const int at[COLUMNS], int row, const char *task)
{
    return !task || strcmp(opc_table_cell(table, row, at[ENV]), task) == 0;
}

/* The different words of a column, over rows of the task (NULL: of all), as many as fit into a
 * message. */
static void list_words(const struct opc_table *table, const int at[COLUMNS], int column,
                       const char *task, struct opc_text *out)
{
    enum { LONGEST = 240 };
    int more = 0;
    for (int row = 0; row < opc_table_rows(table); row++) {
        const char *word = opc_table_cell(table, row, at[column]);
        /* A word counts at its first row only. */
        bool fresh = is_of(table, at, row, task);
        for (int k = 0; k < row && fresh; k++)
            fresh = !is_of(table, at, k, task) ||
                    strcmp(opc_table_cell(table, k, at[column]), word) != 0;
        if (fresh && out->used + strlen(word) > LONGEST)
            more++;
        else if (fresh)
            opc_text_addf(out, "%s%s", out->used ? ", " : "", word);
    }
    if (more)
        opc_text_addf(out, " and %d more", more);
}

/* The message if no row is of the task and the method: it lists what the file has instead. */
static int refuse_unknown(const struct opc_table *table, const int at[COLUMNS], const char *path,
                          const char *task, const char *method, struct opc_err *err)
{
    struct opc_text words = {0};
    bool known = false;
    /* A known task lacks the method; otherwise the task itself is unknown. */
    for (int row = 0; row < opc_table_rows(table) && !known; row++)
        known = is_of(table, at, row, task);
    list_words(table, at, known ? METHOD : ENV, known ? task : NULL, &words);
    int code = opc_text_check(&words, err);
    if (!code && known)
        code = opc_fail(err, OPC_EUSER, "%s has no method '%s' for %s; it has %s", path, method,
                        task, opc_text_get(&words));
    else if (!code)
        code = opc_fail(err, OPC_EUSER, "%s has no task '%s'; it has %s", path, task,
                        opc_text_get(&words));
    opc_text_free(&words);
    return code;
}

/* A finite number; deviations are not negative, and there is at least one seed. */
static int read_number(const struct opc_table *table, const int at[COLUMNS], int column, int row,
                       const char *path, double *out, struct opc_err *err)
{
    const char *cell = opc_table_cell(table, row, at[column]);
    if (opc_parse_real(cell, out) && isfinite(*out) && (column != STD || *out >= 0) &&
        (column != SEEDS || *out >= 1))
        return OPC_OK;
    return opc_fail(err, OPC_EUSER, "%s: row %d has %s = '%s', which is no %s", path, row + 1,
                    COLUMN[column], cell,
                    column == STD     ? "standard deviation"
                    : column == SEEDS ? "number of seeds"
                                      : "number");
}

/* Adds one row to the curve; steps must ascend. */
static int read_point(struct opc_published *published, const struct opc_table *table,
                      const int at[COLUMNS], int row, const char *path, struct opc_err *err)
{
    double seeds = 0;
    const int i = published->n;
    OPC_TRY(read_number(table, at, STEPS, row, path, &published->steps[i], err));
    OPC_TRY(read_number(table, at, MEAN, row, path, &published->mean[i], err));
    OPC_TRY(read_number(table, at, STD, row, path, &published->std[i], err));
    OPC_TRY(read_number(table, at, SEEDS, row, path, &seeds, err));
    /* Interpolation needs ascending steps. */
    if (i > 0 && published->steps[i] <= published->steps[i - 1])
        return opc_fail(err, OPC_EUSER,
                        "%s: row %d has env_steps = %.0f after %.0f; a curve's rows are in the "
                        "order of their steps",
                        path, row + 1, published->steps[i], published->steps[i - 1]);
    published->seeds[i] = (int)fmin(seeds, 1e9);
    published->min_seeds = i == 0 || published->seeds[i] < published->min_seeds
                               ? published->seeds[i]
                               : published->min_seeds;
    published->n++;
    return OPC_OK;
}

/* Collects the rows of the task and the method. *published may be half built after a failure. */
static int published_collect(const struct opc_table *table, const char *path, const char *task,
                             const char *method, struct opc_published *published,
                             struct opc_err *err)
{
    const size_t rows = (size_t)opc_table_rows(table);
    int at[COLUMNS];
    int code = find_columns(table, path, at, err);
    /* At most all rows are of this curve. */
    published->steps = opc_alloc(rows + 1, sizeof *published->steps);
    published->mean = opc_alloc(rows + 1, sizeof *published->mean);
    published->std = opc_alloc(rows + 1, sizeof *published->std);
    published->seeds = opc_alloc(rows + 1, sizeof *published->seeds);
    published->method = opc_strdup(method);
    if (!code && (!published->steps || !published->mean || !published->std || !published->seeds ||
                  !published->method))
        code = published_no_memory(err);
    /* The source is taken from the first row; others are assumed to be the same. */
    for (int row = 0; row < opc_table_rows(table) && !code; row++)
        if (is_of(table, at, row, task) &&
            strcmp(opc_table_cell(table, row, at[METHOD]), method) == 0) {
            if (!published->source &&
                !(published->source = opc_strdup(opc_table_cell(table, row, at[SOURCE]))))
                code = published_no_memory(err);
            if (!code)
                code = read_point(published, table, at, row, path, err);
        }
    if (!code && published->n == 0)
        code = refuse_unknown(table, at, path, task, method, err);
    return code;
}

/* The number and the names of methods: each has its shade and its line in the legend. */
static int check_methods(int n, const char *const method[], struct opc_err *err)
{
    if (n > OPC_PUBLISHED_MAX)
        return opc_fail(err, OPC_EUSER,
                        "%d published methods are too many for one picture; name at "
                        "most %d",
                        n, OPC_PUBLISHED_MAX);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            if (strcmp(method[i], method[k]) == 0)
                return opc_fail(err, OPC_EUSER, "the published method '%s' is named twice",
                                method[i]);
    return OPC_OK;
}

int opc_published_read(const char *path, const char *task, int n, const char *const method[],
                       struct opc_published **out, struct opc_err *err)
{
    struct opc_table *table;
    struct opc_published *first = NULL, **end = &first;
    OPC_TRY(check_methods(n, method, err));
    int code = opc_table_read(path, &table, err);
    if (code)
        return code;
    for (int i = 0; i < n && !code; i++) {
        *end = opc_alloc(1, sizeof **end);
        code = *end ? published_collect(table, path, task, method[i], *end, err)
                    : published_no_memory(err);
        end = *end ? &(*end)->next : end;
    }
    opc_table_free(table);
    if (code)
        opc_published_free(first);
    else
        *out = first;
    return code;
}

/* Accepts a curve of which only a part was read. */
void opc_published_free(struct opc_published *published)
{
    while (published) {
        struct opc_published *next = published->next;
        opc_free(published->method);
        opc_free(published->source);
        opc_free(published->steps);
        opc_free(published->mean);
        opc_free(published->std);
        opc_free(published->seeds);
        opc_free(published);
        published = next;
    }
}

/* ---- comparison with runs
 * ---------------------------------------------------------------------- */

/* The table compares one line: a mean over runs of several methods would mean nothing. *line: its
 * group. */
static int find_one_line(const struct opc_curves *curves, const struct opc_curve_group **line,
                         struct opc_err *err)
{
    /* Groups without any value do not count. */
    const struct opc_curve_group *first = NULL, *second = NULL;
    for (int g = 0; g < curves->groups; g++)
        if (curves->group[g].runs > 0) {
            second = first && !second ? &curves->group[g] : second;
            first = first ? first : &curves->group[g];
        }
    if (second)
        return opc_fail(err, OPC_EUSER,
                        "the table compares one line with the published curve, but these runs form "
                        "several (%s on %s, %s on %s); name the runs of one",
                        first->label, curves->panel[first->panel], second->label,
                        curves->panel[second->panel]);
    if (!first)
        return opc_fail(err, OPC_EUSER, "nothing to compare: no run has a value yet");
    *line = first;
    return OPC_OK;
}

/* The last step that every run has reached. */
static double common_end(const struct opc_curves *curves)
{
    double end = HUGE_VAL;
    for (int i = 0; i < curves->runs; i++)
        if (curves->run[i].n > 0)
            end = fmin(end, curves->run[i].x[curves->run[i].n - 1]);
    return end;
}

/* Number of seeds at a step: the smaller of the two points around it. */
static int seeds_at(const struct opc_published *published, double steps)
{
    int i = 0;
    while (i < published->n - 1 && published->steps[i] < steps)
        i++;
    return published->steps[i] > steps && published->seeds[i - 1] < published->seeds[i]
               ? published->seeds[i - 1]
               : published->seeds[i];
}

/* Adds a row if the runs of the line and the curve cover the step. v: scratch, [runs]. */
static bool compare_at(const struct opc_published *published, const struct opc_curves *curves,
                       const struct opc_curve_group *line, double steps, double *v,
                       struct opc_table *table)
{
    const double mean = opc_interpolate(published->n, published->steps, published->mean, steps);
    const double std = opc_interpolate(published->n, published->steps, published->std, steps);
    double min = HUGE_VAL, max = -HUGE_VAL;
    int n = 0;
    bool covered = !isnan(mean);
    /* The value of every run, interpolated between its raw evaluations. */
    for (int i = 0; i < curves->runs && covered; i++) {
        const struct opc_curve_run *run = &curves->run[i];
        if (run->n == 0)
            continue;
        v[n] = opc_interpolate(run->n, run->x, run->raw, steps);
        covered = !isnan(v[n]);
        min = fmin(min, v[n]);
        max = fmax(max, v[n]);
        n++;
    }
    if (!covered || n == 0)
        return false;
    /* In deviations of the published mean, if that has any. */
    const double ours = opc_mean(n, v);
    opc_table_word(table, curves->panel[line->panel]);
    opc_table_word(table, line->label);
    opc_table_fixed(table, steps, 0);
    opc_table_int(table, n);
    opc_table_fixed(table, ours, 2);
    opc_table_fixed(table, min, 2);
    opc_table_fixed(table, max, 2);
    opc_table_fixed(table, mean, 2);
    opc_table_fixed(table, std, 2);
    opc_table_int(table, seeds_at(published, steps));
    opc_table_fixed(table, std > 0 ? (ours - mean) / std : (double)NAN, 2);
    return true;
}

enum { TASK_CELL, METHOD_CELL, STEPS_CELL, CELLS = STEPS_CELL + 9 };
static const char CELL_NAMES[] = "task,method,total_steps,runs,mean,min,max,published_mean,"
                                 "published_std,published_seeds,deviations";

bool opc_published_is_table(const struct opc_table *table)
{
    struct opc_text names = {0};
    for (int k = 0; k < opc_table_columns(table); k++)
        opc_text_addf(&names, "%s%s", k ? "," : "", opc_table_name(table, k));
    const bool is = !opc_text_check(&names, NULL) && strcmp(opc_text_get(&names), CELL_NAMES) == 0;
    opc_text_free(&names);
    return is;
}

/* Copies the rows of other lines. */
static void keep_other_rows(const struct opc_table *before, const char *task, const char *method,
                            struct opc_table *table)
{
    for (int row = 0; row < opc_table_rows(before); row++) {
        if (strcmp(opc_table_cell(before, row, TASK_CELL), task) == 0 &&
            strcmp(opc_table_cell(before, row, METHOD_CELL), method) == 0)
            continue;
        for (int k = 0; k < CELLS; k++)
            opc_table_word(table, opc_table_cell(before, row, k));
    }
}

int opc_published_table(const struct opc_published *published, const struct opc_curves *curves,
                        const struct opc_table *before, struct opc_table **out, struct opc_err *err)
{
    static const double STEP[] = {10000, 25000, 50000, 75000};
    const struct opc_curve_group *line = NULL;
    struct opc_table *table = NULL;
    const double end = common_end(curves);
    int rows = 0;
    double *v = opc_alloc((size_t)curves->runs + 1, sizeof *v);
    int code = v ? find_one_line(curves, &line, err) : published_no_memory(err);
    if (!code)
        code = opc_table_create(CELL_NAMES, &table, err);
    if (!code && before)
        keep_other_rows(before, curves->panel[line->panel], line->label, table);
    /* Fixed steps that lie before the end, then the end itself. */
    for (size_t k = 0; k < sizeof STEP / sizeof *STEP && !code && STEP[k] < end; k++)
        rows += compare_at(published, curves, line, STEP[k], v, table);
    if (!code)
        rows += compare_at(published, curves, line, end, v, table);
    if (!code && rows == 0)
        code = opc_fail(err, OPC_EUSER,
                        "nothing to compare: the shortest run ends after %.0f steps, and the "
                        "published curve has %.0f to %.0f",
                        end, published->steps[0], published->steps[published->n - 1]);
    opc_free(v);
    if (code)
        opc_table_free(table);
    else
        *out = table;
    return code;
}
