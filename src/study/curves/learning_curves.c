/* SPDX-License-Identifier: MIT */
/* The analysis `learning_curves`: reads finished runs, as the map under `figure` says.
 *
 *     figure:
 *       panel: env.name               # a setting, or a list of them
 *       line: opc.transition
 *       curve: {of: eval_return, over: env_steps, smooth: 5, centre: median, band: [25, 75]}
 *       titles: {"mujoco:hopper": On one leg}
 *       notes: [what differs from the paper]
 *       published: {...}              # study/curves/learning_published.c
 *       claims: [...]                 # study/curves/learning.h
 *
 * Curves are smoothed; the score of a run is the mean of its last five evaluations, not
 * smoothed.
 *
 * Invariant: every bootstrap has a random stream of its own (see FOR_ENDS below), so that
 * adding a table or a group changes no other number. */
#include "opc/config.h"
#include "opc/mem.h"
#include "opc/predictor.h"
#include "run/files/runlog.h"
#include "study/curves/curves_draw.h"
#include "study/curves/learning.h"
#include "study/exhibit/analysis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = 8 }; /* settings that name a panel or a line, at most */
/* Second key of the bootstrap streams, by purpose; curves use 100 + group. */
enum { FOR_ENDS = 1, FOR_IMPROVEMENT = 2, FOR_SCORES = 4, FOR_CURVES = 100 };

/* clang-format off */
#define FIELDS(X)                                                                                  \
    X(TEXT,   of,     "eval_return", 1, 64,  "column of metrics.csv to draw")                      \
    X(TEXT,   over,   "env_steps",   1, 64,  "column of metrics.csv to draw it over")              \
    X(INT,    smooth, "5",           1, 999, "average over this many values around each")          \
    X(CHOICE, centre, "median",      "median|mean|iqm", , "statistic over runs that the line shows")                   \
    X(TEXT,   band,   "[25, 75]",    1, 64,  "two percentiles, std, or interval: of the IQM")      \
    X(BOOL,   share,  "false",       0, 1,   "one range of each axis for all panels")
/* clang-format on */
enum { MEDIAN, MEAN, IQM };
struct curve {
    FIELDS(OPC_MEMBER)
};
#define SELF struct curve
static const struct opc_section section = OPC_SECTION("curve", "", FIELDS);
#undef SELF

/* The map under `figure`, read and checked. */
struct style {
    struct curve curve;
    const char *panel_key[KEYS], *line_key[KEYS];
    int panel_keys, line_keys;
    enum { PERCENTILES, STD, INTERVAL } band;
    double low, high;                                           /* percentiles */
    const struct opc_yaml *titles, *notes, *claims, *published; /* NULL: none */
};

/* ---- settings -------------------------------------------------------------------------------- */

/* A setting or a list of settings; `fallback` if the node is missing. */
static int read_keys(const struct opc_yaml *node, const char *fallback, const char **key, int *n,
                     struct opc_err *err)
{
    /* No node: the fallback alone. A word: that setting alone. */
    *n = 1;
    key[0] = fallback;
    if (!node)
        return OPC_OK;
    if (node->kind == OPC_YAML_WORD) {
        key[0] = node->text;
        return OPC_OK;
    }
    *n = 0;
    for (const struct opc_yaml *item = node->first; item; item = item->next) {
        if (node->kind == OPC_YAML_MAP || item->kind != OPC_YAML_WORD || *n == KEYS)
            return opc_fail(err, OPC_EUSER,
                            "line %d: %s is a setting like %s, or a list of up to %d of them",
                            node->line, node->key, fallback, KEYS);
        key[(*n)++] = item->text;
    }
    return OPC_OK;
}

/* band: [LOW, HIGH] | std | interval. */
static int read_band(struct style *style, struct opc_err *err)
{
    const char *band = style->curve.band;
    char low[32], high[32];
    style->band = strcmp(band, "std") == 0        ? STD
                  : strcmp(band, "interval") == 0 ? INTERVAL
                                                  : PERCENTILES;
    if (style->band != PERCENTILES)
        return OPC_OK;
    /* Two numbers with a comma, in ascending order, within 0 .. 100. */
    if (sscanf(band, "[%31[^],], %31[^],]]", low, high) == 2 && opc_parse_real(low, &style->low) &&
        opc_parse_real(high, &style->high) && style->low >= 0 && style->low < style->high &&
        style->high <= 100)
        return OPC_OK;
    return opc_fail(err, OPC_EUSER, "band = %s is neither [LOW, HIGH] in percent, std nor interval",
                    band);
}

/* titles: {PANEL: title}. */
static int check_titles(const struct opc_yaml *titles, struct opc_err *err)
{
    bool good = !titles || titles->kind == OPC_YAML_MAP;
    for (const struct opc_yaml *t = titles && good ? titles->first : NULL; t; t = t->next)
        good = good && t->kind == OPC_YAML_WORD;
    return good ? OPC_OK
                : opc_fail(err, OPC_EUSER, "line %d: titles is a map like {PANEL: title}",
                           titles->line);
}

/* notes: [sentence, ...]. */
static int check_notes(const struct opc_yaml *notes, struct opc_err *err)
{
    bool good = !notes || notes->kind == OPC_YAML_LIST;
    for (const struct opc_yaml *n = notes && good ? notes->first : NULL; n; n = n->next)
        good = good && n->kind == OPC_YAML_WORD;
    return good ? OPC_OK
                : opc_fail(err, OPC_EUSER, "line %d: notes is a list of sentences", notes->line);
}

/* Titles from the file replace those made from the panel's settings. */
static void put_titles(const struct opc_yaml *titles, struct opc_curves *curves)
{
    for (int p = 0; titles && p < curves->panels; p++) {
        const struct opc_yaml *t = opc_yaml_find(titles, curves->panel[p]);
        if (t)
            snprintf(curves->title[p], sizeof *curves->title, "%s", t->text);
    }
}

/* metrics.csv must be able to have the column; runs are not read yet. */
static int check_column(const char *key, const char *name, struct opc_err *err)
{
    char meant[64];
    if (opc_runlog_has_column(name, OPC_MEMBERS, meant))
        return OPC_OK;
    return opc_fail(err, OPC_EUSER, "curve.%s: metrics.csv has no column '%s'%s%s%s", key, name,
                    *meant ? "; did you mean '" : "", meant, *meant ? "'?" : "");
}

/* Reads the whole map. Nothing is read from runs, so `opc repro` can refuse a file at once. */
static int read_style(const struct opc_yaml *figure, struct style *style, struct opc_err *err)
{
    static const char *const NAMES[] = {"panel", "line",   "curve",     "titles",
                                        "notes", "claims", "published", NULL};
    if (figure)
        OPC_TRY(opc_learning_keys(figure, "figure", NAMES, err));
    const struct opc_yaml *curve = figure ? opc_yaml_find(figure, "curve") : NULL;
    if (curve && curve->kind != OPC_YAML_MAP)
        return opc_fail(err, OPC_EUSER, "line %d: curve is a map like {smooth: 5}", curve->line);
    /* The settings of the curve, then the columns they name. */
    OPC_TRY(opc_analysis_fill(&section, curve, &style->curve, err));
    OPC_TRY(check_column("of", style->curve.of, err));
    OPC_TRY(check_column("over", style->curve.over, err));
    OPC_TRY(opc_smooth_check(style->curve.smooth, err));
    OPC_TRY(read_band(style, err));
    /* What names panels and lines. */
    OPC_TRY(read_keys(figure ? opc_yaml_find(figure, "panel") : NULL, "env.name", style->panel_key,
                      &style->panel_keys, err));
    OPC_TRY(read_keys(figure ? opc_yaml_find(figure, "line") : NULL, "opc.transition",
                      style->line_key, &style->line_keys, err));
    /* Texts and claims; runs are not needed to check them. */
    style->titles = figure ? opc_yaml_find(figure, "titles") : NULL;
    style->claims = figure ? opc_yaml_find(figure, "claims") : NULL;
    style->notes = figure ? opc_yaml_find(figure, "notes") : NULL;
    style->published = figure ? opc_yaml_find(figure, "published") : NULL;
    OPC_TRY(check_titles(style->titles, err));
    OPC_TRY(
        opc_learning_published_check(style->published, style->curve.of, style->curve.over, err));
    OPC_TRY(check_notes(style->notes, err));
    return opc_learning_claims_check(style->claims, err);
}

/* The keys must be settings that exist. */
static int check_keys(const struct opc_config *config, const char *const *key, int n,
                      struct opc_err *err)
{
    int code = OPC_OK;
    for (int i = 0; i < n && !code; i++) {
        char *value;
        code = opc_config_get(config, key[i], &value, err);
        if (!code)
            opc_free(value);
    }
    return code;
}

/* The analysis's check: before any run is made. */
static int learning_curves_check(const struct opc_yaml *figure, struct opc_err *err)
{
    struct style style = {.low = 25, .high = 75};
    struct opc_config *config = NULL;
    int code = read_style(figure, &style, err);
    if (!code)
        code = opc_config_create(&config, err);
    if (!code)
        code = check_keys(config, style.panel_key, style.panel_keys, err);
    if (!code)
        code = check_keys(config, style.line_key, style.line_keys, err);
    opc_config_destroy(config);
    return code ? opc_within(err, "figure") : OPC_OK;
}

/* ---- scores ---------------------------------------------------------------------------------- */

/* For qsort. */
static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Also accepts scores that were made only in part. */
static void free_learning(struct opc_learning *learning)
{
    for (int i = 0; learning->end && i < learning->lines * learning->panels; i++)
        opc_free(learning->end[i]);
    opc_free(learning->end);
    opc_free(learning->n);
    opc_free(learning->count);
    opc_free(learning->column);
    opc_free(learning->line);
    opc_free(learning->label);
    for (int i = 0; learning->absent && i < learning->missing; i++) {
        opc_free(learning->absent[i].panel);
        opc_free(learning->absent[i].line);
    }
    opc_free(learning->absent);
    opc_curves_free(learning->curves);
}

/* Sorts the scores by line and panel. Takes the curves over, also after a failure. */
static int make_learning(struct opc_curves *curves, uint64_t seed, struct opc_learning *out,
                         struct opc_err *err)
{
    struct opc_learning learning = {.curves = curves, .panels = curves->panels, .seed = seed};
    /* At most one line for each group. */
    const size_t panels = (size_t)curves->panels, max = (size_t)curves->groups * panels;
    learning.line = opc_alloc((size_t)curves->groups, sizeof *learning.line);
    learning.label = opc_alloc((size_t)curves->groups, sizeof *learning.label);
    learning.n = opc_alloc(max, sizeof *learning.n);
    learning.end = opc_alloc(max, sizeof *learning.end);
    learning.tasks = curves->groups > curves->panels ? curves->groups : curves->panels;
    learning.count = opc_alloc(2 * (size_t)learning.tasks, sizeof *learning.count);
    learning.column = opc_alloc(2 * (size_t)learning.tasks, sizeof *learning.column);
    bool whole = learning.line && learning.label && learning.n && learning.end && learning.count &&
                 learning.column;
    /* Groups of different panels with the same values form one line. */
    for (int g = 0; g < curves->groups && whole; g++) {
        int line = opc_learning_find(&learning, curves->group[g].line);
        if (line < 0) {
            learning.line[line = learning.lines++] = curves->group[g].line;
            learning.label[line] = curves->group[g].label;
        }
        const size_t at = (size_t)line * panels + (size_t)curves->group[g].panel;
        learning.end[at] = opc_alloc((size_t)curves->group[g].runs + 1, sizeof **learning.end);
        whole = learning.end[at] != NULL;
        /* Sorted, as claims and intervals expect them. */
        if (whole) {
            learning.n[at] = opc_curves_ends(curves, g, learning.end[at]);
            qsort(learning.end[at], (size_t)learning.n[at], sizeof **learning.end, by_value);
        }
    }
    if (!whole) {
        free_learning(&learning);
        return opc_fail(err, OPC_ENOMEM, "not enough memory for what runs end with");
    }
    *out = learning;
    return OPC_OK;
}

/* ---- tables ---------------------------------------------------------------------------------- */

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

/* Over total_steps, runs may begin or end more than an interval of evaluations apart. Points at
 * which a run has no value yet, or none any more, are dropped, as the line would jump there. v:
 * scratch, [runs]. */
static void trim_ends(const struct opc_curves *curves, int g, double *v)
{
    struct opc_curve_group *group = &curves->group[g];
    int kept = 0;
    for (int i = 0; curves->between && i < group->n; i++)
        if (opc_curves_at(curves, g, group->x[i], v) == group->runs)
            group->x[kept++] = group->x[i];
    /* Nothing in common: the line stays as it is, jumps and all. */
    group->n = kept > 1 ? kept : group->n;
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
                /* Set the counts of panels to 0 that do not take part: other panels, and those
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
 * the figure's first line ends above one of this line. In words, as the figure has them. */
static int tabulate_scores(const struct opc_learning *learning, struct opc_table *table,
                           struct opc_err *err)
{
    for (int p = 0; p < learning->panels; p++)
        for (int k = 0; k < learning->lines; k++) {
            const int at = k * learning->panels + p;
            struct opc_interval iqm, above = {(double)NAN, (double)NAN, (double)NAN};
            if (!learning->end[at])
                continue;
            /* Streams of the tables before, so that the numbers are the same as there. */
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

/* ---------------------------------------------------------------------------------------------- */

#define SUMMARY "median,q25,q75,mean,std,iqm,iqm_low,iqm_high,runs"

/* The curves over x, which also prepares the figure's bands. */
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

/* Tables of scores, comparisons and runs. */
static int make_tables(const struct opc_learning *learning, struct opc_exhibit *exhibit,
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

/* The note below the figure: what line and band are. */
static void describe_style(const struct style *style, struct opc_text *note)
{
    static const char *const CENTRE[] = {"median", "mean", "interquartile mean"};
    opc_text_addf(
        note, "line: %s over runs, which are the thin lines; band: ", CENTRE[style->curve.centre]);
    if (style->band == STD)
        opc_text_add(note, "one standard deviation around it");
    else if (style->band == INTERVAL)
        opc_text_add(note, "95 % bootstrap interval of the interquartile mean");
    else
        opc_text_addf(note, "%g to %g %% of the runs", style->low, style->high);
    if (style->curve.smooth > 1)
        opc_text_addf(note, "; smoothed by a moving average over %d values", style->curve.smooth);
}

/* The figure; tabulate_curve has prepared the groups. */
static int make_figure(const struct opc_learning *learning, const struct style *style,
                       const char *folder, struct opc_exhibit *exhibit, struct opc_err *err)
{
    struct opc_text note = {0};
    struct opc_curves_figure made;
    const int panels = learning->panels;
    struct opc_published **published = opc_alloc((size_t)panels + 1, sizeof *published);
    describe_style(style, &note);
    int code = published ? opc_text_check(&note, err)
                         : opc_fail(err, OPC_ENOMEM, "not enough memory for the figure");
    if (!code)
        code = opc_learning_published(style->published, folder, learning->curves, published,
                                      exhibit, err);
    const struct opc_curves_style how = {.x_label = opc_column_label(style->curve.over),
                                         .y_label = opc_column_label(style->curve.of),
                                         .note = opc_text_get(&note),
                                         .share = style->curve.share,
                                         .by_panel = (const struct opc_published *const *)published,
                                         .runs = true};
    if (!code && !(code = opc_curves_figure(&how, learning->curves, &made, err))) {
        code = opc_exhibit_figure(exhibit, NULL, "learning curves", &made.figure, err);
        opc_curves_figure_free(&made);
    }
    for (int p = 0; published && p < panels; p++)
        opc_published_free(published[p]);
    opc_free(published);
    opc_text_free(&note);
    return code;
}

/* Claims need to know which runs are missing. */
static int note_absent(const struct opc_request *request, const struct opc_curves_plan *plan,
                       struct opc_learning *learning, struct opc_err *err)
{
    learning->missing = request->missing;
    if (!request->absent)
        return OPC_OK;
    learning->absent = opc_alloc((size_t)request->missing + 1, sizeof *learning->absent);
    if (!learning->absent)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the names of missing runs");
    for (int i = 0; i < request->missing; i++)
        OPC_TRY(opc_curves_names(request->absent[i], plan, &learning->absent[i].panel,
                                 &learning->absent[i].line, err));
    return OPC_OK;
}

/* The analysis itself: read the curves, then tables, figure, claims and notes. */
static int learning_curves_make(const struct opc_request *request, const void *settings,
                                struct opc_exhibit *exhibit, struct opc_err *err)
{
    (void)settings;
    struct style style = {.low = 25, .high = 75};
    struct opc_curves *curves;
    struct opc_learning learning;
    int code = read_style(request->figure, &style, err);
    if (code)
        return opc_within(err, "figure");
    const struct opc_curves_plan plan = {.of = style.curve.of,
                                         .over = style.curve.over,
                                         .smooth = style.curve.smooth,
                                         .panel_keys = style.panel_keys,
                                         .line_keys = style.line_keys,
                                         .panel_key = style.panel_key,
                                         .line_key = style.line_key};
    code = opc_curves_read(request->runs, request->run, &plan, &curves, err);
    if (!code)
        put_titles(style.titles, curves);
    if (!code)
        code = make_learning(curves, request->seed, &learning, err);
    if (code)
        return code;
    code = note_absent(request, &plan, &learning, err);
    if (!code)
        code = make_scores(&learning, exhibit, err);
    if (!code)
        code = make_curve_table(request, &learning, &style, exhibit, err);
    if (!code)
        code = make_tables(&learning, exhibit, err);
    if (!code)
        code = make_figure(&learning, &style, request->folder, exhibit, err);
    if (!code)
        code = opc_learning_claims(&learning, style.claims, exhibit, err);
    for (const struct opc_yaml *n = style.notes && !code ? style.notes->first : NULL; n;
         n = n->next)
        opc_exhibit_note(exhibit, "%s", n->text);
    free_learning(&learning);
    return code;
}

const struct opc_analysis opc_learning_curves = {
    .name = "learning_curves",
    .help = "curves of runs with bands, what they end with, and which line ends above which",
    .check = learning_curves_check,
    .make = learning_curves_make,
};
