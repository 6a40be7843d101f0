/* SPDX-License-Identifier: MIT */
/* Runs that are missing: which of them a claim is about, and which they are, in words.
 * learning_claims.c marks them before a claim is judged; the judges end their sentences with them.
 *
 * Invariant: a claim waits for its own runs only, and names them, so that it is known which to
 * make. */
#include "study/curves/learning_claims.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Whether a claim is about a run: its line or panel (by_panel: lines in panels) is named. */
static bool is_meant(const struct opc_claim *claim, const struct opc_learning_absent *run,
                     bool by_panel)
{
    const bool globs = claim->kind == OPC_CLAIM_BEST || claim->kind == OPC_CLAIM_SPREAD;
    const char *side = by_panel ? run->line : run->run.panel;
    bool named = false;
    for (int k = 0; k < 4 && claim->name[k]; k++)
        named = named || strcmp(claim->name[k], side) == 0 ||
                (globs && opc_claim_like(claim->name[k], side));
    return named && opc_claim_means(&claim->panel, run->run.panel) &&
           opc_claim_means(&claim->line, run->line);
}

int opc_claim_mark_missing(const struct opc_learning *learning, const struct opc_claim *claim,
                           bool by_panel)
{
    int missing = 0;
    if (!learning->absent)
        return learning->missing;
    for (int i = 0; i < learning->absents; i++) {
        struct opc_learning_absent *run = &learning->absent[i];
        run->meant = is_meant(claim, run, by_panel);
        missing += run->meant;
    }
    return missing;
}

/* ---- in words -------------------------------------------------------------------------------- */

/* A sentence that grows in a fixed space, and is cut at its end. */
struct words {
    char *at;
    size_t used;
};

static void add(struct words *w, const char *before, const char *word)
{
    if (w->used < OPC_CLAIM_TEXT)
        w->used +=
            (size_t)snprintf(w->at + w->used, OPC_CLAIM_TEXT - w->used, "%s%.100s", before, word);
}

static bool same_cell(const struct opc_learning_absent *a, const struct opc_learning_absent *b)
{
    return strcmp(a->line, b->line) == 0 && strcmp(a->run.panel, b->run.panel) == 0;
}

/* The next missing seed of a line in a panel above `seed`; INT_MAX: there is none. */
static int seed_above(const struct opc_learning *learning, const struct opc_learning_absent *cell,
                      int seed)
{
    int next = INT_MAX;
    for (int i = 0; i < learning->absents; i++) {
        const struct opc_learning_absent *run = &learning->absent[i];
        if (run->meant && same_cell(run, cell) && run->run.seed > seed && run->run.seed < next)
            next = run->run.seed;
    }
    return next;
}

/* "seeds 1 to 5, 7", with four such ranges at most. */
static void add_seeds(const struct opc_learning *learning, const struct opc_learning_absent *cell,
                      struct words *w)
{
    enum { RANGES = 4 };
    const int first = seed_above(learning, cell, INT_MIN);
    char range[64];
    add(w, seed_above(learning, cell, first) == INT_MAX ? ", seed" : ", seeds", "");
    for (int from = first, ranges = 0; from != INT_MAX; ranges++) {
        int to = from, next = seed_above(learning, cell, from);
        for (; next != INT_MAX && next == to + 1; next = seed_above(learning, cell, to))
            to = next;
        if (ranges == RANGES) {
            add(w, ", ...", "");
            return;
        }
        snprintf(range, sizeof range, to > from ? "%d to %d" : "%d", from, to);
        add(w, ranges ? ", " : " ", range);
        from = next;
    }
}

/* "; nothing is decided while 6 runs are missing: SAC on Hopper (MuJoCo), seeds 1 to 5; ...". */
void opc_claim_say_missing(const struct opc_learning *learning, char out[OPC_CLAIM_TEXT])
{
    enum { SHOWN = 4 };
    struct words w = {.at = out};
    char count[64];
    int cells = 0, named = 0;
    *out = '\0';
    if (learning->missing == 0)
        return;
    snprintf(count, sizeof count, "%d run%s missing", learning->missing,
             learning->missing == 1 ? " is" : "s are");
    add(&w, "; nothing is decided while ", count);
    /* Line by line and panel by panel, in the order of the sweep; the first run of each speaks. */
    for (int i = 0; i < learning->absents; i++) {
        const struct opc_learning_absent *cell = &learning->absent[i];
        bool fresh = cell->meant;
        int runs = 0;
        for (int k = 0; k < learning->absents && fresh; k++) {
            const bool same = learning->absent[k].meant && same_cell(&learning->absent[k], cell);
            fresh = !(same && k < i);
            runs += same;
        }
        if (!fresh || cells++ >= SHOWN)
            continue;
        add(&w, cells == 1 ? ": " : "; ", cell->label);
        if (*cell->run.title)
            add(&w, " on ", cell->run.title);
        add_seeds(learning, cell, &w);
        named += runs;
    }
    if (cells > SHOWN) {
        snprintf(count, sizeof count, "%d more", learning->missing - named);
        add(&w, "; and ", count);
    }
}

/* A missing run could change the result, and some may stay missing for a reason: because they
 * diverge. */
void opc_claim_say_few(const struct opc_learning *learning, int fewest, int needed,
                       char out[OPC_CLAIM_TEXT])
{
    opc_claim_say_missing(learning, out);
    if (!*out && fewest < needed)
        snprintf(out, OPC_CLAIM_TEXT, "; fewer than %d runs of a line in a panel decide nothing",
                 needed);
}
