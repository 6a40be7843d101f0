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

static int out_of_memory(struct opc_err *err)
{
    return opc_fail(err, OPC_ENOMEM, "not enough memory for a published curve");
}

/* ---- reading --------------------------------------------------------------------------------- */

static int find_columns(const struct opc_table *t, const char *path, int at[COLUMNS],
                        struct opc_err *err)
{
    for (int k = 0; k < COLUMNS; k++) {
        at[k] = opc_table_find(t, COLUMN[k]);
        if (at[k] < 0)
            return opc_fail(err, OPC_EUSER,
                            "%s has no column '%s'; published curves have source, env, method, "
                            "env_steps, mean, std and seeds",
                            path, COLUMN[k]);
    }
    return OPC_OK;
}

/* Whether the row is of this task; NULL: any task. */
static bool is_of(const struct opc_table *t, const int at[COLUMNS], int row, const char *task)
{
    return !task || strcmp(opc_table_cell(t, row, at[ENV]), task) == 0;
}

/* The different words of a column, over rows of the task (NULL: of all), as many as fit into a
 * message. */
static void list_words(const struct opc_table *t, const int at[COLUMNS], int column,
                       const char *task, struct opc_text *out)
{
    enum { LONGEST = 240 };
    int more = 0;
    for (int row = 0; row < opc_table_rows(t); row++) {
        const char *word = opc_table_cell(t, row, at[column]);
        /* A word counts at its first row only. */
        bool fresh = is_of(t, at, row, task);
        for (int k = 0; k < row && fresh; k++)
            fresh = !is_of(t, at, k, task) || strcmp(opc_table_cell(t, k, at[column]), word) != 0;
        if (fresh && out->used + strlen(word) > LONGEST)
            more++;
        else if (fresh)
            opc_text_addf(out, "%s%s", out->used ? ", " : "", word);
    }
    if (more)
        opc_text_addf(out, " and %d more", more);
}

/* The message if no row is of the task and the method: it lists what the file has instead. */
static int refuse(const struct opc_table *t, const int at[COLUMNS], const char *path,
                  const char *task, const char *method, struct opc_err *err)
{
    struct opc_text words = {0};
    bool known = false;
    for (int row = 0; row < opc_table_rows(t) && !known; row++)
        known = is_of(t, at, row, task);
    list_words(t, at, known ? METHOD : ENV, known ? task : NULL, &words);
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
static int read_number(const struct opc_table *t, const int at[COLUMNS], int column, int row,
                       const char *path, double *out, struct opc_err *err)
{
    const char *cell = opc_table_cell(t, row, at[column]);
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
static int read_point(struct opc_published *p, const struct opc_table *t, const int at[COLUMNS],
                      int row, const char *path, struct opc_err *err)
{
    double seeds = 0;
    const int i = p->n;
    OPC_TRY(read_number(t, at, STEPS, row, path, &p->steps[i], err));
    OPC_TRY(read_number(t, at, MEAN, row, path, &p->mean[i], err));
    OPC_TRY(read_number(t, at, STD, row, path, &p->std[i], err));
    OPC_TRY(read_number(t, at, SEEDS, row, path, &seeds, err));
    if (i > 0 && p->steps[i] <= p->steps[i - 1])
        return opc_fail(err, OPC_EUSER,
                        "%s: row %d has env_steps = %.0f after %.0f; a curve's rows are in the "
                        "order of their steps",
                        path, row + 1, p->steps[i], p->steps[i - 1]);
    p->seeds[i] = (int)fmin(seeds, 1e9);
    p->min_seeds = i == 0 || p->seeds[i] < p->min_seeds ? p->seeds[i] : p->min_seeds;
    p->n++;
    return OPC_OK;
}

/* Collects the rows of the task and the method. *p may be half built after a failure. */
static int make(const struct opc_table *t, const char *path, const char *task, const char *method,
                struct opc_published *p, struct opc_err *err)
{
    const size_t rows = (size_t)opc_table_rows(t);
    int at[COLUMNS];
    int code = find_columns(t, path, at, err);
    /* At most all rows are of this curve. */
    p->steps = opc_alloc(rows + 1, sizeof *p->steps);
    p->mean = opc_alloc(rows + 1, sizeof *p->mean);
    p->std = opc_alloc(rows + 1, sizeof *p->std);
    p->seeds = opc_alloc(rows + 1, sizeof *p->seeds);
    p->method = opc_strdup(method);
    if (!code && (!p->steps || !p->mean || !p->std || !p->seeds || !p->method))
        code = out_of_memory(err);
    for (int row = 0; row < opc_table_rows(t) && !code; row++)
        if (is_of(t, at, row, task) && strcmp(opc_table_cell(t, row, at[METHOD]), method) == 0) {
            if (!p->source && !(p->source = opc_strdup(opc_table_cell(t, row, at[SOURCE]))))
                code = out_of_memory(err);
            if (!code)
                code = read_point(p, t, at, row, path, err);
        }
    if (!code && p->n == 0)
        code = refuse(t, at, path, task, method, err);
    return code;
}

int opc_published_read(const char *path, const char *task, const char *method,
                       struct opc_published **out, struct opc_err *err)
{
    struct opc_table *t;
    int code = opc_table_read(path, &t, err);
    if (code)
        return code;
    struct opc_published *p = opc_alloc(1, sizeof *p);
    code = p ? make(t, path, task, method, p, err) : out_of_memory(err);
    opc_table_free(t);
    if (code)
        opc_published_free(p);
    else
        *out = p;
    return code;
}

void opc_published_free(struct opc_published *p)
{
    if (!p)
        return;
    opc_free(p->method);
    opc_free(p->source);
    opc_free(p->steps);
    opc_free(p->mean);
    opc_free(p->std);
    opc_free(p->seeds);
    opc_free(p);
}

/* ---- beside runs ----------------------------------------------------------------------------- */

/* The table compares one line: a mean over runs of several methods would mean nothing. */
static int check_one_line(const struct opc_curves *c, struct opc_err *err)
{
    const struct opc_curve_group *first = NULL, *second = NULL;
    for (int g = 0; g < c->groups; g++)
        if (c->group[g].runs > 0) {
            second = first && !second ? &c->group[g] : second;
            first = first ? first : &c->group[g];
        }
    if (second)
        return opc_fail(err, OPC_EUSER,
                        "the table compares one line with the published curve, but these runs form "
                        "several (%s on %s, %s on %s); name the runs of one",
                        first->label, c->panel[first->panel], second->label,
                        c->panel[second->panel]);
    return OPC_OK;
}

/* The last step that every run has reached. */
static double common_end(const struct opc_curves *c)
{
    double end = HUGE_VAL;
    for (int i = 0; i < c->runs; i++)
        if (c->run[i].n > 0)
            end = fmin(end, c->run[i].x[c->run[i].n - 1]);
    return end;
}

/* Number of seeds at a step: the smaller of the two points around it. */
static int seeds_at(const struct opc_published *p, double steps)
{
    int i = 0;
    while (i < p->n - 1 && p->steps[i] < steps)
        i++;
    return p->steps[i] > steps && p->seeds[i - 1] < p->seeds[i] ? p->seeds[i - 1] : p->seeds[i];
}

/* Adds a row if the runs and the curve cover the step. v: scratch, [runs]. */
static bool compare_at(const struct opc_published *p, const struct opc_curves *c, double steps,
                       double *v, struct opc_table *t)
{
    const double mean = opc_interpolate(p->n, p->steps, p->mean, steps);
    const double std = opc_interpolate(p->n, p->steps, p->std, steps);
    double min = HUGE_VAL, max = -HUGE_VAL;
    int n = 0;
    bool covered = !isnan(mean);
    /* The value of every run, interpolated between its raw evaluations. */
    for (int i = 0; i < c->runs && covered; i++) {
        const struct opc_curve_run *r = &c->run[i];
        if (r->n == 0)
            continue;
        v[n] = opc_interpolate(r->n, r->x, r->raw, steps);
        covered = !isnan(v[n]);
        min = fmin(min, v[n]);
        max = fmax(max, v[n]);
        n++;
    }
    if (!covered || n == 0)
        return false;
    const double ours = opc_mean(n, v);
    opc_table_fixed(t, steps, 0);
    opc_table_int(t, n);
    opc_table_fixed(t, ours, 2);
    opc_table_fixed(t, min, 2);
    opc_table_fixed(t, max, 2);
    opc_table_fixed(t, mean, 2);
    opc_table_fixed(t, std, 2);
    opc_table_int(t, seeds_at(p, steps));
    opc_table_fixed(t, std > 0 ? (ours - mean) / std : (double)NAN, 2);
    return true;
}

int opc_published_table(const struct opc_published *p, const struct opc_curves *c,
                        struct opc_table **out, struct opc_err *err)
{
    static const double STEP[] = {10000, 25000, 50000, 75000};
    struct opc_table *t = NULL;
    const double end = common_end(c);
    int rows = 0;
    double *v = opc_alloc((size_t)c->runs + 1, sizeof *v);
    int code = v ? check_one_line(c, err) : out_of_memory(err);
    if (!code)
        code = opc_table_create("total_steps,runs,mean,min,max,published_mean,published_std,"
                                "published_seeds,deviations",
                                &t, err);
    /* Fixed steps that lie before the end, then the end itself. */
    for (size_t k = 0; k < sizeof STEP / sizeof *STEP && !code && STEP[k] < end; k++)
        rows += compare_at(p, c, STEP[k], v, t);
    if (!code)
        rows += compare_at(p, c, end, v, t);
    if (!code && rows == 0)
        code = opc_fail(err, OPC_EUSER,
                        "nothing to compare: the shortest run ends after %.0f steps, and the "
                        "published curve has %.0f to %.0f",
                        end, p->steps[0], p->steps[p->n - 1]);
    opc_free(v);
    if (code)
        opc_table_free(t);
    else
        *out = t;
    return code;
}
