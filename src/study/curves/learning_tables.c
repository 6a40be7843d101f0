/* SPDX-License-Identifier: MIT */
/* The tables of learning curves: scores with intervals, the curves over x, every comparison of two
 * lines, and every run. learning_curves.c calls opc_learning_tables, and draws the figure
 * afterwards, from the centres and bands that it leaves in the groups.
 *
 * Invariant: every bootstrap has a random stream of its own, named by its purpose and its place
 * (see FOR_ENDS below), so that adding a table or a group changes no other number. */
#include "study/curves/learning_private.h"

#include "opc/mem.h"

#include <math.h>

/* Second key of the bootstrap streams, by purpose; curves use 100 + group, claims 3. */
enum { FOR_ENDS = 1, FOR_IMPROVEMENT = 2, FOR_SCORES = 4, FOR_CURVES = 100 };

/* ---- rows ------------------------------------------------------------------------------------ */

/* One row of a table: a sample over runs. */
struct summary {
    int n;
    double median, low, high, mean, deviation;
    struct opc_interval iqm;
};

/* Statistics of a sample; `low` and `high` are the shares of its quantiles. Sorts v. */
static int summarise(int n, double *v, double low, double high, struct opc_rng rng,
                     struct summary *s, struct opc_err *err)
{
    /* All runs count as those of one task here. */
    const struct opc_scores scores = {1, &n, (const double *const *)&v};
    s->n = n;
    s->mean = n ? opc_mean(n, v) : (double)NAN;
    s->deviation = n ? opc_deviation(n, v) : (double)NAN;
    s->median = n ? opc_quantile(n, v, 0.5) : (double)NAN;
    s->low = n ? opc_quantile(n, v, low) : (double)NAN;
    s->high = n ? opc_quantile(n, v, high) : (double)NAN;
    return opc_iqm_interval(&scores, 0, &rng, &s->iqm, err);
}

#define SUMMARY "median,q25,q75,mean,std,iqm,iqm_low,iqm_high,runs"

/* In the order of SUMMARY. */
static void add_summary(struct opc_table *table, const struct summary *s)
{
    opc_table_real(table, s->median);
    opc_table_real(table, s->low);
    opc_table_real(table, s->high);
    opc_table_real(table, s->mean);
    opc_table_real(table, s->deviation);
    opc_table_real(table, s->iqm.middle);
    opc_table_real(table, s->iqm.low);
    opc_table_real(table, s->iqm.high);
    opc_table_int(table, s->n);
}

/* Over total_steps and minutes, runs may begin or end more than an interval of evaluations apart.
 * Points at which a run has no value yet, or none any more, are dropped, as the line would jump
 * there. v: scratch, [runs]. */
static void trim_ends(const struct opc_curves *curves, int g, double *v)
{
    struct opc_curve_group *group = &curves->group[g];
    int common = 0, kept = 0;
    for (int i = 0; curves->between && i < group->n; i++)
        common += opc_curves_at(curves, g, group->x[i], v) == group->runs;
    if (common < 2) /* no line is in common: it stays as it is, jumps and all */
        return;
    for (int i = 0; i < group->n; i++)
        if (opc_curves_at(curves, g, group->x[i], v) == group->runs)
            group->x[kept++] = group->x[i];
    group->n = kept;
}

/* Adds rows for the curve of group g. Also puts the centre and the band that the figure shows
 * into the group itself. v: scratch, [runs]. */
static int tabulate_curve(const struct opc_learning *learning, const struct style *style, int g,
                          double *v, struct opc_table *table, struct opc_err *err)
{
    struct opc_curve_group *group = &learning->curves->group[g];
    int code = OPC_OK;
    for (int i = 0; i < group->n && !code; i++) {
        struct summary s;
        const int n = opc_curves_at(learning->curves, g, group->x[i], v);
        code = summarise(
            n, v, 0.25, 0.75,
            opc_rng_stream(learning->seed, OPC_USE_STUDY, FOR_CURVES + (uint32_t)g, (uint32_t)i),
            &s, err);
        if (code)
            break;
        opc_table_word(table, learning->curves->panel[group->panel]);
        opc_table_word(table, group->line);
        opc_table_real(table, group->x[i]);
        add_summary(table, &s);
        /* The figure's line and band are a choice among the statistics of the row. */
        const int centre = style->curve.centre;
        group->middle[i] = centre == MEDIAN ? s.median : centre == MEAN ? s.mean : s.iqm.middle;
        if (style->band == STD) {
            group->low[i] = group->middle[i] - s.deviation;
            group->high[i] = group->middle[i] + s.deviation;
        } else {
            const bool whole = style->band == INTERVAL;
            group->low[i] = whole ? s.iqm.low : opc_quantile(n, v, style->low / 100);
            group->high[i] = whole ? s.iqm.high : opc_quantile(n, v, style->high / 100);
        }
    }
    return code;
}

/* Scores by panel and line. */
static int tabulate_ends(const struct opc_learning *learning, struct opc_table *table,
                         struct opc_err *err)
{
    int code = OPC_OK;
    for (int p = 0; p < learning->panels && !code; p++)
        for (int k = 0; k < learning->lines && !code; k++) {
            struct summary s;
            const int at = k * learning->panels + p;
            if (!learning->end[at])
                continue;
            /* The stream depends on line and panel, not on how many others there are. */
            code = summarise(learning->n[at], learning->end[at], 0.25, 0.75,
                             opc_rng_stream(learning->seed, OPC_USE_STUDY, FOR_ENDS, (uint32_t)at),
                             &s, err);
            opc_table_word(table, learning->curves->panel[p]);
            opc_table_word(table, learning->line[k]);
            add_summary(table, &s);
        }
    return code;
}

/* Probability that a run of one line ends above a run of another, for every pair of lines: panel
 * by panel, then over all panels. */
static int tabulate_improvement(const struct opc_learning *learning, struct opc_table *table,
                                struct opc_err *err)
{
    uint32_t number = 0;
    int code = OPC_OK;
    /* p == panels stands for all of them; with one panel that row would repeat the first. */
    for (int p = 0; p < learning->panels + (learning->panels > 1) && !code; p++)
        for (int i = 0; i < learning->lines && !code; i++)
            for (int k = i + 1; k < learning->lines && !code; k++) {
                struct opc_scores a = opc_learning_scores(learning, i, NULL, 0);
                struct opc_scores b = opc_learning_scores(learning, k, NULL, 1);
                struct opc_rng rng =
                    opc_rng_stream(learning->seed, OPC_USE_STUDY, FOR_IMPROVEMENT, number++);
                struct opc_interval chance;
                int runs[2] = {0, 0};
                /* Set to 0 the counts of panels that do not take part: other panels, and those
                 * where one of the two lines has no runs. a and b point at these counts. */
                for (int q = 0; q < learning->panels; q++)
                    if ((p < learning->panels && q != p) || !a.n[q] || !b.n[q])
                        learning->count[q] = learning->count[learning->tasks + q] = 0;
                    else
                        runs[0] += a.n[q], runs[1] += b.n[q];
                if (runs[0] == 0)
                    continue;
                code = opc_improvement(&a, &b, 0, &rng, &chance, err);
                opc_table_word(table, p < learning->panels ? learning->curves->panel[p] : "all");
                opc_table_word(table, learning->line[i]);
                opc_table_word(table, learning->line[k]);
                opc_table_real(table, chance.middle);
                opc_table_real(table, chance.low);
                opc_table_real(table, chance.high);
                opc_table_int(table, runs[0]);
                opc_table_int(table, runs[1]);
            }
    return code;
}

/* The table that a reader wants first: seeds, IQM with interval, and the probability that a run of
 * the figure's first line ends above one of this line. Panels and lines have the names that the
 * figure shows. */
static int tabulate_scores(const struct opc_learning *learning, struct opc_table *table,
                           struct opc_err *err)
{
    for (int p = 0; p < learning->panels; p++)
        for (int k = 0; k < learning->lines; k++) {
            const int at = k * learning->panels + p;
            struct opc_interval iqm, above = {(double)NAN, (double)NAN, (double)NAN};
            if (!learning->end[at])
                continue;
            /* The stream is that of tabulate_ends, so that both tables show the same interval. */
            struct opc_rng rng =
                opc_rng_stream(learning->seed, OPC_USE_STUDY, FOR_ENDS, (uint32_t)at);
            const struct opc_scores own = {1, &learning->n[at],
                                           (const double *const *)&learning->end[at]};
            const struct opc_scores first = {1, &learning->n[p],
                                             (const double *const *)&learning->end[p]};
            OPC_TRY(opc_iqm_interval(&own, 0, &rng, &iqm, err));
            rng = opc_rng_stream(learning->seed, OPC_USE_STUDY, FOR_SCORES, (uint32_t)at);
            if (k > 0 && learning->end[p])
                OPC_TRY(opc_improvement(&first, &own, 0, &rng, &above, err));
            opc_table_word(table, learning->curves->title[p]);
            opc_table_word(table, learning->label[k]);
            opc_table_int(table, learning->n[at]);
            opc_table_real(table, iqm.middle);
            opc_table_real(table, iqm.low);
            opc_table_real(table, iqm.high);
            opc_table_real(table, above.middle);
            opc_table_real(table, above.low);
            opc_table_real(table, above.high);
        }
    return OPC_OK;
}

/* Every run with its score. */
static void tabulate_runs(const struct opc_curves *curves, struct opc_table *table)
{
    for (int i = 0; i < curves->runs; i++) {
        const struct opc_curve_run *run = &curves->run[i];
        opc_table_word(table, curves->panel[curves->group[run->group].panel]);
        opc_table_word(table, curves->group[run->group].line);
        opc_table_int(table, run->seed);
        opc_table_real(table, run->end);
        opc_table_real(table, run->best);
    }
}

/* ---- exhibit --------------------------------------------------------------------------------- */

/* The table of IQMs, which comes first of all. Its title names the line that others are compared
 * with. */
static int make_scores(const struct opc_learning *learning, struct opc_exhibit *exhibit,
                       struct opc_err *err)
{
    struct opc_table *table = NULL;
    struct opc_text title = {0};
    opc_text_addf(&title,
                  "what runs end with (mean of the last five evaluations): interquartile mean, and "
                  "P(%s > this line), with 95 %% intervals",
                  learning->lines && *learning->label[0] ? learning->label[0] : "the first line");
    int code = opc_text_check(&title, err);
    if (!code)
        code =
            opc_table_create("panel,line,seeds,iqm,iqm_low,iqm_high,p,p_low,p_high", &table, err);
    if (!code)
        code = tabulate_scores(learning, table, err);
    if (!code)
        code = opc_exhibit_table(exhibit, "scores", opc_text_get(&title), table, err);
    opc_table_free(table);
    opc_text_free(&title);
    return code;
}

/* The table of the curves over x. It also prepares the centres and bands that the figure shows. */
static int make_curve_table(const struct opc_request *request, const struct opc_learning *learning,
                            const struct style *style, struct opc_exhibit *exhibit,
                            struct opc_err *err)
{
    struct opc_table *table = NULL;
    struct opc_text columns = {0};
    double *v = opc_alloc((size_t)learning->curves->runs, sizeof *v);
    opc_text_addf(&columns, "panel,line,%s," SUMMARY, style->curve.over);
    int code = v ? opc_text_check(&columns, err)
                 : opc_fail(err, OPC_ENOMEM, "not enough memory for a table");
    if (!code)
        code = opc_table_create(opc_text_get(&columns), &table, err);
    for (int g = 0; g < learning->curves->groups && !code; g++) {
        if (request->progress)
            request->progress(request->ctx, (double)g / learning->curves->groups,
                              learning->curves->group[g].label);
        trim_ends(learning->curves, g, v);
        code = tabulate_curve(learning, style, g, v, table, err);
    }
    if (!code)
        code = opc_exhibit_table(exhibit, NULL, "the curves, over runs", table, err);
    opc_table_free(table);
    opc_text_free(&columns);
    opc_free(v);
    return code;
}

/* The tables of final scores, of comparisons and of runs. */
static int make_end_tables(const struct opc_learning *learning, struct opc_exhibit *exhibit,
                           struct opc_err *err)
{
    struct opc_table *ends = NULL, *improvement = NULL, *runs = NULL;
    int code = opc_table_create("panel,line," SUMMARY, &ends, err);
    if (!code)
        code = opc_table_create("panel,better,worse,probability,low,high,better_runs,worse_runs",
                                &improvement, err);
    if (!code)
        code = opc_table_create("panel,line,seed,final,best", &runs, err);
    if (!code)
        /* All tables are filled before any is written. */
        code = tabulate_ends(learning, ends, err);
    if (!code)
        code = tabulate_improvement(learning, improvement, err);
    if (!code) {
        tabulate_runs(learning->curves, runs);
        code = opc_exhibit_table(exhibit, "final", "mean of the last five evaluations, over runs",
                                 ends, err);
    }
    if (!code)
        code = opc_exhibit_table(exhibit, "improvement",
                                 "probability that a run of one line ends above one of another, "
                                 "with 95 % bootstrap interval",
                                 improvement, err);
    if (!code)
        code = opc_exhibit_table(exhibit, "runs", "every run", runs, err);
    opc_table_free(ends);
    opc_table_free(improvement);
    opc_table_free(runs);
    return code;
}

int opc_learning_tables(const struct opc_request *request, const struct opc_learning *learning,
                        const struct style *style, struct opc_exhibit *exhibit, struct opc_err *err)
{
    OPC_TRY(make_scores(learning, exhibit, err));
    OPC_TRY(make_curve_table(request, learning, style, exhibit, err));
    return make_end_tables(learning, exhibit, err);
}
