/* SPDX-License-Identifier: MIT */
/* The analysis `learning_curves`: reads finished runs, as the map under `figure` says. opc repro
 * calls it through the list in study/exhibit/analysis.c.
 *
 *     figure:
 *       panel: env.name               # a setting, or a list of them
 *       columns: 4                    # panels in a row
 *       line: opc.transition
 *       curve: {of: eval_return, over: env_steps, smooth: 5, centre: median, band: [25, 75]}
 *       titles: {"mujoco:hopper": On one leg}
 *       labels: {"corrected+20": OPC with long rollouts}
 *       notes: [what differs from the paper]
 *       published: {...}              # study/curves/learning_published.c
 *       claims: [...]                 # study/curves/learning.h
 *
 * Curves are smoothed; the score of a run is the mean of its last five evaluations, not
 * smoothed. The numbers are made in learning_scores.c and learning_tables.c, the claims are judged
 * in learning_claims.c.
 *
 * Invariant: learning_curves_check refuses what it can before any run is made, because runs take
 * hours. Nothing that it calls reads a run. */
#include "opc/config.h"
#include "opc/mem.h"
#include "opc/predictor.h"
#include "run/files/runlog.h"
#include "study/curves/curves_draw.h"
#include "study/curves/learning_private.h"

#include <stdio.h>
#include <string.h>

enum { MOST_COLUMNS = 6 }; /* of panels */

#define SELF struct curve
static const struct opc_section section = OPC_SECTION("curve", "", CURVE_FIELDS);
#undef SELF

/* ---- settings -------------------------------------------------------------------------------- */

/* A setting or a list of settings; `fallback` if the node is missing. */
static int read_keys(const struct opc_yaml *node, const char *fallback, const char **key, int *n,
                     struct opc_err *err)
{
    /* Without a node it is the fallback alone, with a word that setting alone. */
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

/* columns: N. */
static int read_columns(const struct opc_yaml *node, int *out, struct opc_err *err)
{
    const bool word = node && node->kind == OPC_YAML_WORD;
    *out = 0;
    if (node && (!word || !opc_parse_int(node->text, out) || *out < 1 || *out > MOST_COLUMNS))
        return opc_fail(
            err, OPC_EUSER,
            "line %d: columns%s%s is not a whole number from 1 to %d: the panels in a row",
            node->line, word ? " = " : "", word ? node->text : "", MOST_COLUMNS);
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

/* titles: {PANEL: title}, labels: {LINE: label}, each label once. */
static int check_names(const struct opc_yaml *names, const char *like, bool once,
                       struct opc_err *err)
{
    bool good = !names || names->kind == OPC_YAML_MAP;
    for (const struct opc_yaml *t = names && good ? names->first : NULL; t; t = t->next)
        good = good && t->kind == OPC_YAML_WORD;
    if (!good)
        return opc_fail(err, OPC_EUSER, "line %d: %s is a map like %s", names->line, names->key,
                        like);
    /* Equal labels would be drawn as one line. */
    for (const struct opc_yaml *a = names && once ? names->first : NULL; a; a = a->next)
        for (const struct opc_yaml *b = a->next; b; b = b->next)
            if (strcmp(a->text, b->text) == 0)
                return opc_fail(err, OPC_EUSER, "line %d: two of the %s are '%s'", b->line,
                                names->key, b->text);
    return OPC_OK;
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

/* Labels from the file replace those made of the line's settings. */
static void put_labels(const struct opc_yaml *labels, struct opc_curves *curves)
{
    for (int g = 0; labels && g < curves->groups; g++) {
        const struct opc_yaml *t = opc_yaml_find(labels, curves->group[g].line);
        if (t)
            snprintf(curves->group[g].label, sizeof curves->group->label, "%s", t->text);
    }
}

/* metrics.csv must be able to have the column; runs are not read yet. */
static int check_column(const char *key, const char *name, struct opc_err *err)
{
    char meant[64], column[64];
    bool found;
    const bool is_y = strcmp(key, "of") == 0;
    OPC_TRY(opc_runlog_find_column(is_y ? opc_curves_column(name, true, column) : name, OPC_MEMBERS,
                                   &found, meant, err));
    if (found)
        return OPC_OK;
    return opc_fail(err, OPC_EUSER, "curve.%s: metrics.csv has no column '%s'%s%s%s", key, name,
                    *meant ? "; did you mean '" : "", meant, *meant ? "'?" : "");
}

/* Reads the whole map. Nothing is read from runs, so `opc repro` can refuse a file at once. */
static int read_style(const struct opc_yaml *figure, struct style *style, struct opc_err *err)
{
    static const char *const NAMES[] = {"panel",  "line",  "columns", "curve",     "titles",
                                        "labels", "notes", "claims",  "published", NULL};
    if (figure)
        OPC_TRY(opc_learning_keys(figure, "figure", NAMES, err));
    const struct opc_yaml *curve = figure ? opc_yaml_find(figure, "curve") : NULL;
    if (curve && curve->kind != OPC_YAML_MAP)
        return opc_fail(err, OPC_EUSER, "line %d: curve is a map like {smooth: 5}", curve->line);
    /* The settings of the curve, then the columns they name. */
    OPC_TRY(opc_analysis_fill(&section, curve, &style->curve, err));
    OPC_TRY(check_column("of", style->curve.of, err));
    if (strcmp(style->curve.over, OPC_CURVES_MINUTES) != 0)
        OPC_TRY(check_column("over", style->curve.over, err));
    OPC_TRY(opc_smooth_check(style->curve.smooth, err));
    OPC_TRY(read_band(style, err));
    /* What names panels and lines. */
    OPC_TRY(read_keys(figure ? opc_yaml_find(figure, "panel") : NULL, "env.name", style->panel_key,
                      &style->panel_keys, err));
    OPC_TRY(read_keys(figure ? opc_yaml_find(figure, "line") : NULL, "opc.transition",
                      style->line_key, &style->line_keys, err));
    OPC_TRY(read_columns(figure ? opc_yaml_find(figure, "columns") : NULL, &style->columns, err));
    /* Texts and claims; runs are not needed to check them. */
    style->titles = figure ? opc_yaml_find(figure, "titles") : NULL;
    style->labels = figure ? opc_yaml_find(figure, "labels") : NULL;
    style->claims = figure ? opc_yaml_find(figure, "claims") : NULL;
    style->notes = figure ? opc_yaml_find(figure, "notes") : NULL;
    style->published = figure ? opc_yaml_find(figure, "published") : NULL;
    OPC_TRY(check_names(style->titles, "{PANEL: title}", false, err));
    OPC_TRY(check_names(style->labels, "{LINE: label}", true, err));
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

/* The analysis's check, which comes before any run is made. */
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

/* ---- the analysis ---------------------------------------------------------------------------- */

/* The note below the figure: what line and band are. */
static void describe_style(const struct style *style, const struct opc_curves *curves,
                           struct opc_text *note)
{
    static const char *const CENTRE[] = {"median", "mean", "interquartile mean"};
    const char *centre = CENTRE[style->curve.centre];
    if (opc_curves_crowded(curves))
        opc_text_addf(note, "line: %s of the runs; band: ", centre);
    else
        opc_text_addf(note, "thick line: %s; thin lines: single runs; band: ", centre);
    if (style->band == STD)
        opc_text_add(note, "one standard deviation around it");
    else if (style->band == INTERVAL)
        opc_text_add(note, "95 % bootstrap interval of the interquartile mean");
    else if (style->low == 0 && style->high == 100)
        opc_text_add(note, "range of the runs");
    else if (style->low == 25 && style->high == 75)
        opc_text_add(note, "quartiles of the runs");
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
    describe_style(style, learning->curves, &note);
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
        if (style->columns)
            made.figure.columns = style->columns;
        code = opc_exhibit_figure(exhibit, NULL, "learning curves", &made.figure, err);
        opc_curves_figure_free(&made);
    }
    for (int p = 0; published && p < panels; p++)
        opc_published_free(published[p]);
    opc_free(published);
    opc_text_free(&note);
    return code;
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
    OPC_TRY(opc_curves_read(request->runs, request->run, &plan, &curves, err));
    /* Where runs are missing the panels are those of the complete figure all the same. */
    if (request->planned)
        code = opc_curves_plan_panels(curves, request->runs + request->missing, request->planned,
                                      &plan, err);
    if (code) {
        opc_curves_free(curves);
        return code;
    }
    put_titles(style.titles, curves);
    put_labels(style.labels, curves);
    OPC_TRY(opc_learning_make(curves, request->seed, &learning, err));
    /* Claims need to know which runs are missing. */
    learning.missing = request->missing;
    if (request->absent)
        code = opc_learning_miss(&learning, request->missing, request->absent, &plan, style.titles,
                                 style.labels, err);
    if (!code)
        code = opc_learning_tables(request, &learning, &style, exhibit, err);
    if (!code)
        code = make_figure(&learning, &style, request->folder, exhibit, err);
    if (!code)
        code = opc_learning_claims(&learning, style.claims, plan.over, exhibit, err);
    for (const struct opc_yaml *n = style.notes && !code ? style.notes->first : NULL; n;
         n = n->next)
        opc_exhibit_note(exhibit, "%s", n->text);
    opc_learning_free(&learning);
    return code;
}

const struct opc_analysis opc_learning_curves = {
    .name = "learning_curves",
    .help = "curves of runs with bands, what they end with, and which line ends above which",
    .check = learning_curves_check,
    .make = learning_curves_make,
};
