/* SPDX-License-Identifier: MIT */
/* Forms groups of runs, each a line in a panel, and names them. opc_curves_read calls it.
 *
 * Invariant: groups are formed from settings, labels are made afterwards, with as few settings as
 * tell the groups apart; panels and groups have the order of their first runs. */
#include "base/text.h"
#include "opc/mem.h"
#include "study/curves/curves_private.h"

#include <stdio.h>
#include <string.h>

enum { MAX_COLUMNS = 6 };
static const char METHOD[] = "opc.transition:"; /* as it begins a line of `rest` */

/* ---- groups ---------------------------------------------------------------------------------- */

/* Index of the run's panel among those from `from` on, which is created if it is new. Names are cut
 * to the array's size, and compared as cut. */
static int panel_of(struct opc_curves *curves, int from, const struct opc_curve_run *run)
{
    char cut[sizeof *curves->panel];
    int i = from;
    snprintf(cut, sizeof cut, "%s", run->panel);
    while (i < curves->panels && strcmp(curves->panel[i], cut) != 0)
        i++;
    if (i == curves->panels) {
        memcpy(curves->panel[i], cut, sizeof cut);
        snprintf(curves->title[i], sizeof *curves->title, "%s", run->title);
        curves->panels++;
    }
    return i;
}

/* Runs with equal panel and equal `rest` form a group. */
static void form_groups(struct opc_curves *curves)
{
    for (int i = 0; i < curves->runs; i++) {
        struct opc_curve_run *run = &curves->run[i];
        run->group = -1;
        /* Compare with all earlier runs; there are at most a few thousand. */
        for (int k = 0; k < i && run->group < 0; k++)
            if (strcmp(run->panel, curves->run[k].panel) == 0 &&
                strcmp(run->rest, curves->run[k].rest) == 0)
                run->group = curves->run[k].group;
        /* The first run of a group sets its panel and its method. */
        if (run->group < 0) {
            run->group = curves->groups++;
            curves->group[run->group].panel = panel_of(curves, 0, run);
            snprintf(curves->group[run->group].method, sizeof curves->group->method, "%s",
                     run->method);
            curves->group[run->group].colour = run->colour;
        }
        curves->group[run->group].runs += run->n > 0;
        /* Runs of several methods in one group: the group has no method and no colour of its
         * own. */
        if (strcmp(curves->group[run->group].method, run->method) != 0) {
            *curves->group[run->group].method = '\0';
            curves->group[run->group].colour = 0;
        }
    }
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* The first run of a group, whose settings stand for all of them. */
static const struct opc_curve_run *speaker(const struct opc_curves *curves, int group)
{
    int i = 0;
    while (curves->run[i].group != group)
        i++;
    return &curves->run[i];
}

/* Line number `line` of `rest`; "" after the last. */
static const char *line_at(const char *rest, int line)
{
    for (; line > 0 && *rest; line--)
        rest += strcspn(rest, "\n") + 1;
    return rest;
}

/* Compares two texts up to the end of the line. */
static bool same_line(const char *a, const char *b)
{
    const size_t n = strcspn(a, "\n");
    return n == strcspn(b, "\n") && strncmp(a, b, n) == 0;
}

/* Whether line `line` of `rest` distinguishes two groups of one panel that have the same label
 * so far; *a is one of them. */
static bool line_distinguishes(const struct opc_curves *curves, int line, int *a)
{
    for (int i = 0; i < curves->groups; i++)
        for (int k = 0; k < i; k++)
            if (curves->group[i].panel == curves->group[k].panel &&
                strcmp(curves->group[i].label, curves->group[k].label) == 0 &&
                !same_line(line_at(speaker(curves, i)->rest, line),
                           line_at(speaker(curves, k)->rest, line))) {
                *a = i;
                return true;
            }
    return false;
}

/* Appends line `line` to the label of every group. */
static void append_setting(struct opc_curves *curves, int line)
{
    for (int i = 0; i < curves->groups; i++) {
        const struct opc_curve_run *run = speaker(curves, i);
        const char *setting = line_at(run->rest, line);
        char *label = curves->group[i].label;
        const size_t used = strlen(label), left = sizeof curves->group[i].label - used;
        const char *comma = used ? ", " : "";
        if (*setting == '\n') /* the tables of the run do not tell it */
            continue;
        if (strncmp(setting, METHOD, strlen(METHOD)) == 0)
            snprintf(label + used, left, "%s%s", comma, run->method_name);
        else
            snprintf(label + used, left, "%s%.*s", comma, (int)strcspn(setting, "\n"), setting);
    }
}

/* Labels groups with as few settings as distinguish those of each panel, the transition model
 * first. */
static void label_groups(struct opc_curves *curves)
{
    int lines = 0, first = 0, any;
    const char *rest = speaker(curves, 0)->rest;
    /* Count the settings, and find the transition model among them. */
    for (; *line_at(rest, lines); lines++)
        if (strncmp(line_at(rest, lines), METHOD, strlen(METHOD)) == 0)
            first = lines;
    /* Further settings are added only while some groups of a panel still have the same label. */
    append_setting(curves, first);
    for (int line = 0; line < lines; line++)
        if (line != first && line_distinguishes(curves, line, &any))
            append_setting(curves, line);
    for (int g = 0; g < curves->groups; g++)
        memcpy(curves->group[g].line, curves->group[g].label, sizeof curves->group->line);
}

/* Value k of a run's line as a person reads it. */
static int print_value(const struct opc_curve_run *run, const struct opc_curves_plan *plan, int k,
                       char **out, struct opc_err *err)
{
    const char *value = line_at(run->rest, k);
    char word[256];
    struct opc_text text = {0};
    snprintf(word, sizeof word, "%.*s", (int)strcspn(value, "\n"), value);
    opc_curves_add_setting(&text, run, plan->line_key[k], word);
    return opc_curves_keep_text(&text, out, err);
}

/* Adds value k to the label of run i. Afterwards `like` no longer has the runs that it tells from
 * it. */
static int extend_label(int n, const struct opc_curve_run *const *run, int i, int k,
                        const struct opc_curves_plan *plan, bool *like, struct opc_text *label,
                        struct opc_err *err)
{
    char *word, *other;
    OPC_TRY(print_value(run[i], plan, k, &word, err));
    opc_text_addf(label, "%s%s", label->used ? ", " : "", word);
    int code = OPC_OK;
    for (int j = 0; j < n && !code; j++)
        if (like[j] && !(code = print_value(run[j], plan, k, &other, err))) {
            like[j] = strcmp(word, other) == 0;
            opc_free(other);
        }
    opc_free(word);
    return code;
}

int opc_curves_label(int n, const struct opc_curve_run *const *run, int i,
                     const struct opc_curves_plan *plan, char **out, struct opc_err *err)
{
    struct opc_text label = {0};
    bool *like = opc_alloc((size_t)n, sizeof *like); /* has the same label so far */
    int code = like ? OPC_OK : opc_curves_no_memory(err);
    for (int j = 0; j < n && !code; j++)
        like[j] = true;
    /* The first setting is always part of the label, later ones only where they help. */
    for (int k = 0; k < plan->line_keys && !code; k++) {
        bool helps = k == 0;
        for (int j = 0; j < n && !helps; j++)
            helps = like[j] && !same_line(line_at(run[j]->rest, k), line_at(run[i]->rest, k));
        if (helps)
            code = extend_label(n, run, i, k, plan, like, &label, err);
    }
    opc_free(like);
    if (!code)
        return opc_curves_keep_text(&label, out, err);
    opc_text_free(&label);
    return code;
}

void opc_curves_line(const struct opc_curve_run *run, size_t size, char *out)
{
    snprintf(out, size, "%s", run->rest);
    for (char *end = out; (end = strchr(end, '\n')); *end = '+')
        ;
}

const struct opc_curve_run **opc_curves_speakers(const struct opc_curves *curves, int more)
{
    const struct opc_curve_run **run =
        opc_alloc((size_t)curves->groups + (size_t)more, sizeof *run);
    for (int g = 0; run && g < curves->groups; g++)
        run[g] = speaker(curves, g);
    return run;
}

/* Labels groups by the plan's line settings, with as many of them as needed: "SAC", "OPC,
 * horizon 20". */
static int label_as_planned(struct opc_curves *curves, const struct opc_curves_plan *plan,
                            struct opc_err *err)
{
    const struct opc_curve_run **run = opc_curves_speakers(curves, 0);
    int code = run ? OPC_OK : opc_curves_no_memory(err);
    for (int g = 0; g < curves->groups && !code; g++) {
        char *label;
        opc_curves_line(run[g], sizeof curves->group->line, curves->group[g].line);
        if (!(code = opc_curves_label(curves->groups, run, g, plan, &label, err))) {
            snprintf(curves->group[g].label, sizeof curves->group->label, "%s", label);
            opc_free(label);
        }
    }
    opc_free(run);
    return code;
}

/* Number of panels in a row that differ in their last value only; 0 if the panels do not form a
 * regular grid or it would be too wide. */
static int count_columns(const struct opc_curves *curves)
{
    /* row: first panel of the current row. A panel continues the row if all its values but the
     * last are equal. */
    int columns = 0;
    for (int i = 0, row = 0; i < curves->panels; i++) {
        const char *last = strrchr(curves->panel[i], '+');
        const size_t n = last ? (size_t)(last - curves->panel[i]) + 1 : 0;
        const bool alike = n && strncmp(curves->panel[i], curves->panel[row], n) == 0;
        if (!columns && i > 0 && !alike)
            columns = i;
        if (columns && alike != (i % columns != 0))
            return 0;
        row = alike ? row : i;
    }
    return columns > 1 && columns <= MAX_COLUMNS && curves->panels % columns == 0 ? columns : 0;
}

/* ---- panels without runs --------------------------------------------------------------------- */

/* Appends the planned panels behind those that there are. */
static int append_planned(struct opc_curves *curves, int n, const struct opc_values *const *set,
                          const struct opc_curves_plan *plan, struct opc_err *err)
{
    const int there = curves->panels;
    int code = OPC_OK;
    for (int i = 0; i < n && !code; i++) {
        struct opc_curve_run run = {0};
        code = opc_curves_run_name(set[i], plan, &run, err);
        if (!code && curves->panels == OPC_CURVES_MAX)
            code = opc_fail(err, OPC_EUSER, "more than %d panels", OPC_CURVES_MAX);
        if (!code)
            (void)panel_of(curves, there, &run);
        opc_curves_run_free(&run);
    }
    return code;
}

/* Moves the groups of a panel to the one behind `there` that has its name, which is appended where
 * no run of it was planned. */
static int move_groups(struct opc_curves *curves, int there, int panel, struct opc_err *err)
{
    int to = there;
    while (to < curves->panels && strcmp(curves->panel[to], curves->panel[panel]) != 0)
        to++;
    if (to == OPC_CURVES_MAX)
        return opc_fail(err, OPC_EUSER, "more than %d panels", OPC_CURVES_MAX);
    if (to == curves->panels) {
        memcpy(curves->panel[to], curves->panel[panel], sizeof *curves->panel);
        memcpy(curves->title[to], curves->title[panel], sizeof *curves->title);
        curves->panels++;
    }
    for (int g = 0; g < curves->groups; g++)
        if (curves->group[g].panel == panel)
            curves->group[g].panel = to;
    return OPC_OK;
}

int opc_curves_plan_panels(struct opc_curves *curves, int n, const struct opc_values *const *set,
                           const struct opc_curves_plan *plan, struct opc_err *err)
{
    const int there = curves->panels;
    OPC_TRY(append_planned(curves, n, set, plan, err));
    for (int p = 0; p < there; p++)
        OPC_TRY(move_groups(curves, there, p, err));
    /* What was there has moved: the others take its place. */
    curves->panels -= there;
    memmove(curves->panel, curves->panel + there, (size_t)curves->panels * sizeof *curves->panel);
    memmove(curves->title, curves->title + there, (size_t)curves->panels * sizeof *curves->title);
    for (int g = 0; g < curves->groups; g++)
        curves->group[g].panel -= there;
    curves->columns = plan->panel_keys > 1 ? count_columns(curves) : 0;
    return OPC_OK;
}

/* ---------------------------------------------------------------------------------------------- */

int opc_curves_form_groups(struct opc_curves *curves, const struct opc_curves_plan *plan,
                           struct opc_err *err)
{
    form_groups(curves);
    curves->columns = plan->panel_keys > 1 ? count_columns(curves) : 0;
    if (plan->panel_keys + plan->line_keys > 0)
        return label_as_planned(curves, plan, err);
    label_groups(curves);
    return OPC_OK;
}
