/* SPDX-License-Identifier: MIT */
/* The scores of a figure's runs, sorted by line and panel. learning_curves.c makes them; tables and
 * claims read them.
 *
 * Invariant: the scores of a line in a panel ascend, as quantiles and intervals expect them. */
#include "study/curves/learning_claims.h"

#include "opc/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* For qsort. */
static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void opc_learning_free_scores(struct opc_learning *learning)
{
    for (int i = 0; learning->end && i < learning->lines * learning->panels; i++)
        opc_free(learning->end[i]);
    opc_free(learning->end);
    opc_free(learning->score);
    opc_free(learning->n);
    opc_free(learning->count);
    opc_free(learning->column);
    opc_free(learning->line);
    opc_free(learning->label);
}

void opc_learning_free(struct opc_learning *learning)
{
    opc_learning_free_scores(learning);
    for (int i = 0; learning->absent && i < learning->absents; i++) {
        opc_curves_run_free(&learning->absent[i].run);
        opc_free(learning->absent[i].label);
    }
    opc_free(learning->absent);
    opc_curves_free(learning->curves);
}

/* The scores of all runs at x. After a failure they are there in part, to be freed. */
static int make_scores(const struct opc_curves *curves, double x, struct opc_learning *out,
                       struct opc_err *err)
{
    struct opc_learning learning = *out;
    /* At most one line for each group. */
    const size_t panels = (size_t)curves->panels, max = (size_t)curves->groups * panels;
    learning.line = opc_alloc((size_t)curves->groups, sizeof *learning.line);
    learning.label = opc_alloc((size_t)curves->groups, sizeof *learning.label);
    learning.n = opc_alloc(max, sizeof *learning.n);
    learning.end = opc_alloc(max, sizeof *learning.end);
    learning.score = opc_alloc((size_t)curves->runs + 1, sizeof *learning.score);
    learning.tasks = curves->groups > curves->panels ? curves->groups : curves->panels;
    learning.count = opc_alloc(2 * (size_t)learning.tasks, sizeof *learning.count);
    learning.column = opc_alloc(2 * (size_t)learning.tasks, sizeof *learning.column);
    bool whole = learning.line && learning.label && learning.n && learning.end && learning.score &&
                 learning.count && learning.column;
    for (int i = 0; i < curves->runs && whole; i++)
        learning.score[i] = opc_curve_score(&curves->run[i], x);
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
            learning.n[at] = opc_curves_scores(curves, g, x, learning.end[at]);
            qsort(learning.end[at], (size_t)learning.n[at], sizeof **learning.end, by_value);
        }
    }
    *out = learning;
    return whole ? OPC_OK : opc_fail(err, OPC_ENOMEM, "not enough memory for what runs end with");
}

int opc_learning_make(struct opc_curves *curves, uint64_t seed, struct opc_learning *out,
                      struct opc_err *err)
{
    struct opc_learning learning = {.curves = curves, .panels = curves->panels, .seed = seed};
    const int code = make_scores(curves, HUGE_VAL, &learning, err);
    if (code)
        opc_learning_free(&learning);
    else
        *out = learning;
    return code;
}

int opc_learning_at(const struct opc_learning *whole, double x, struct opc_learning *out,
                    struct opc_err *err)
{
    struct opc_learning learning = {.curves = whole->curves,
                                    .panels = whole->panels,
                                    .seed = whole->seed,
                                    .missing = whole->missing,
                                    .absents = whole->absents,
                                    .absent = whole->absent};
    const int code = make_scores(whole->curves, x, &learning, err);
    if (code)
        opc_learning_free_scores(&learning);
    else
        *out = learning;
    return code;
}

/* Panel, title and line of a missing run. */
static int name_absent(const struct opc_values *set, const struct opc_curves_plan *plan,
                       const struct opc_yaml *titles, struct opc_learning_absent *absent,
                       struct opc_err *err)
{
    OPC_TRY(opc_curves_run_name(set, plan, &absent->run, err));
    opc_curves_line(&absent->run, sizeof absent->line, absent->line);
    const struct opc_yaml *title = titles ? opc_yaml_find(titles, absent->run.panel) : NULL;
    if (!title)
        return OPC_OK;
    opc_free(absent->run.title);
    absent->run.title = opc_strdup(title->text);
    return absent->run.title ? OPC_OK : opc_fail(err, OPC_ENOMEM, "not enough memory for a title");
}

int opc_learning_miss(struct opc_learning *learning, int n, const struct opc_values *const *set,
                      const struct opc_curves_plan *plan, const struct opc_yaml *titles,
                      const struct opc_yaml *labels, struct opc_err *err)
{
    const int groups = learning->curves->groups;
    learning->absents = n;
    learning->absent = opc_alloc((size_t)n + 1, sizeof *learning->absent);
    const struct opc_curve_run **run = opc_curves_speakers(learning->curves, n);
    int code = learning->absent && run
                   ? OPC_OK
                   : opc_fail(err, OPC_ENOMEM, "not enough memory for the names of missing runs");
    for (int i = 0; i < n && !code; i++) {
        code = name_absent(set[i], plan, titles, &learning->absent[i], err);
        run[groups + i] = &learning->absent[i].run;
    }
    for (int i = 0; i < n && !code; i++) {
        struct opc_learning_absent *absent = &learning->absent[i];
        const struct opc_yaml *label = labels ? opc_yaml_find(labels, absent->line) : NULL;
        if (!label)
            code = opc_curves_label(groups + n, run, groups + i, plan, &absent->label, err);
        else if (!(absent->label = opc_strdup(label->text)))
            code = opc_fail(err, OPC_ENOMEM, "not enough memory for a label");
    }
    opc_free(run);
    return code;
}

int opc_learning_find(const struct opc_learning *learning, const char *line)
{
    for (int i = 0; i < learning->lines; i++)
        if (strcmp(learning->line[i], line) == 0)
            return i;
    return -1;
}

/* Counts of panels that do not match become 0; the scores themselves are shared. */
struct opc_scores opc_learning_scores(const struct opc_learning *learning, int line,
                                      const struct opc_globs *panel, int side)
{
    const size_t at = (size_t)line * (size_t)learning->panels;
    int *count = learning->count + (size_t)side * (size_t)learning->tasks;
    for (int p = 0; p < learning->panels; p++)
        count[p] =
            opc_claim_means(panel, learning->curves->panel[p]) ? learning->n[at + (size_t)p] : 0;
    return (struct opc_scores){learning->panels, count,
                               (const double *const *)(learning->end + at)};
}
