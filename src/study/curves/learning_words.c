/* SPDX-License-Identifier: MIT */
/* Lines and panels in sentences about claims, as legend and titles have them. Claims name them by
 * the values of their settings or by globs. The judges in learning_duel.c and learning_contrast.c
 * and learning_claims.c call it.
 *
 * Invariant: a run that is missing has the words that it will have in the complete figure. */
#include "study/curves/learning_claims.h"

#include <stdio.h>
#include <string.h>

const char *opc_claim_label(const struct opc_learning *learning, const char *line)
{
    const int i = opc_learning_find(learning, line);
    for (int k = 0; i < 0 && learning->absent && k < learning->absents; k++)
        if (strcmp(learning->absent[k].line, line) == 0)
            return learning->absent[k].label;
    return i < 0 ? line : learning->label[i];
}

const char *opc_claim_title(const struct opc_learning *learning, const char *panel)
{
    const int p = opc_claim_panel(learning, panel);
    for (int k = 0; p == learning->panels && learning->absent && k < learning->absents; k++)
        if (strcmp(learning->absent[k].run.panel, panel) == 0)
            return learning->absent[k].run.title;
    return p == learning->panels ? panel : learning->curves->title[p];
}

/* Line number i of those that there are and then those of missing runs, with its label; NULL after
 * the last. */
static const char *line_number(const struct opc_learning *learning, int i, const char **label)
{
    const int absent = i - learning->lines;
    if (absent >= 0 && (!learning->absent || absent >= learning->absents))
        return NULL;
    *label = absent < 0 ? learning->label[i] : learning->absent[absent].label;
    return absent < 0 ? learning->line[i] : learning->absent[absent].line;
}

/* Whether a setting of a label ends after n bytes, and not inside a list like [64, 64]. */
static bool ends_setting(const char *label, size_t n)
{
    int depth = 0;
    for (size_t i = 0; i < n; i++)
        depth += (label[i] == '[') - (label[i] == ']');
    return depth == 0 && (!label[n] || label[n] == ',');
}

/* Bytes with which two labels begin alike, n at most: whole settings, "OPC" of "OPC, reset" and
 * "OPC, no reset". */
static size_t common_settings(const char *a, size_t n, const char *b)
{
    while (n > 0 && (strncmp(a, b, n) != 0 || !ends_setting(a, n) || !ends_setting(b, n)))
        n--;
    return n;
}

void opc_claim_say_lines(const struct opc_learning *learning, const char *glob,
                         char out[OPC_CLAIM_TEXT])
{
    const char *line, *label, *first = NULL;
    size_t n = 0, used = 0;
    bool alone = true;
    /* What the labels of all lines that are meant begin with, */
    for (int i = 0; (line = line_number(learning, i, &label)); i++)
        if (opc_claim_like(glob, line)) {
            n = first ? common_settings(first, n, label) : strlen(label);
            first = first ? first : label;
        }
    /* unless that fits other lines, too. */
    for (int i = 0; first && (line = line_number(learning, i, &label)); i++)
        alone = alone && (opc_claim_like(glob, line) || common_settings(first, n, label) < n);
    if (!first)
        snprintf(out, OPC_CLAIM_TEXT, "%s", glob);
    else if (n > 0 && alone)
        snprintf(out, OPC_CLAIM_TEXT, "%.*s", (int)n, first);
    else
        /* All of them, each once. */
        for (int i = 0; (line = line_number(learning, i, &label)) && used < OPC_CLAIM_TEXT; i++) {
            const char *before, *same;
            bool fresh = opc_claim_like(glob, line);
            for (int k = 0; k < i && fresh; k++) {
                before = line_number(learning, k, &same);
                fresh = strcmp(before, line) != 0;
            }
            if (fresh)
                used += (size_t)snprintf(out + used, OPC_CLAIM_TEXT - used, "%s%s",
                                         used ? " or " : "", label);
        }
}

/* Panel number i of those that there are and then those of missing runs, with its title; NULL after
 * the last. */
static const char *panel_number(const struct opc_learning *learning, int i, const char **title)
{
    const int absent = i - learning->panels;
    if (absent >= 0 && (!learning->absent || absent >= learning->absents))
        return NULL;
    *title = absent < 0 ? learning->curves->title[i] : learning->absent[absent].run.title;
    return absent < 0 ? learning->curves->panel[i] : learning->absent[absent].run.panel;
}

void opc_claim_say_panels(const struct opc_learning *learning, const struct opc_globs *globs,
                          char out[OPC_CLAIM_TEXT])
{
    enum { SHOWN = 3 };
    const char *panel, *title, *other;
    size_t used = 0;
    int found = 0;
    *out = '\0';
    if (globs->n == 0)
        return;
    for (int i = 0; (panel = panel_number(learning, i, &title)); i++) {
        bool fresh = opc_claim_means(globs, panel);
        for (int k = 0; k < i && fresh; k++)
            fresh = strcmp(panel_number(learning, k, &other), panel) != 0;
        if (fresh && found++ < SHOWN && used < OPC_CLAIM_TEXT)
            used += (size_t)snprintf(out + used, OPC_CLAIM_TEXT - used, "%s\"%.50s\"",
                                     used ? ", " : " among ", title);
    }
    if (found > SHOWN && used < OPC_CLAIM_TEXT)
        snprintf(out + used, OPC_CLAIM_TEXT - used, ", ...");
    for (int i = 0; i < globs->n && !found && used < OPC_CLAIM_TEXT; i++)
        used += (size_t)snprintf(out + used, OPC_CLAIM_TEXT - used, "%s%.50s",
                                 i ? " or " : " like ", globs->at[i]);
}
