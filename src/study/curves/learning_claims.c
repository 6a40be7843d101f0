/* SPDX-License-Identifier: MIT */
/* Claims about the scores of runs: read from the experiment's file, then judged by bootstrap
 * intervals and by how often chance alone would decide so. learning_curves.c calls it.
 *
 * Invariant: a claim is undecided while runs are missing or too few. A verdict must never depend
 * on which runs happen to be finished. */
#include "study/curves/learning.h"

#include <fnmatch.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FEWEST = 3 };                /* runs that a panel needs before anything is claimed of it */
static const double CHANCE = 0.025; /* error probability on either side of a 95 % interval */

/* A claim as written: {better, worse, panel}, {solves, level, panel} or {above, below}; others
 * NULL. */
struct claim {
    const char *text, *better, *worse, *solves, *panel, *above, *below;
    double level;
};

/* ---- reading --------------------------------------------------------------------------------- */

int opc_learning_keys(const struct opc_yaml *map, const char *what, const char *const *names,
                      struct opc_err *err)
{
    if (map->kind != OPC_YAML_MAP)
        return opc_fail(err, OPC_EUSER, "line %d: %s is a map like {%s: ...}", map->line, what,
                        names[0]);
    /* The first unknown key is an error, with the nearest known one as a suggestion. */
    for (const struct opc_yaml *node = map->first; node; node = node->next) {
        const char *meant = NULL;
        int nearest = INT_MAX, i = 0;
        for (; names[i] && strcmp(names[i], node->key) != 0; i++)
            if (opc_nearer(node->key, names[i], &nearest))
                meant = names[i];
        if (!names[i])
            return opc_fail(err, OPC_EUSER, "line %d: there is no '%s' in %s%s%s%s", node->line,
                            node->key, what, meant ? "; did you mean '" : "", meant ? meant : "",
                            meant ? "'?" : "");
    }
    return OPC_OK;
}

/* An optional word; NULL if the key is missing. */
static int read_word(const struct opc_yaml *map, const char *key, const char **out,
                     struct opc_err *err)
{
    const struct opc_yaml *node = opc_yaml_find(map, key);
    *out = node && node->kind == OPC_YAML_WORD ? node->text : NULL;
    if (node && !*out)
        return opc_fail(err, OPC_EUSER, "line %d: %s of a claim is a word", node->line, key);
    return OPC_OK;
}

/* Reads a claim and checks that it is exactly one of the three kinds. */
static int read_claim(const struct opc_yaml *map, struct claim *claim, struct opc_err *err)
{
    static const char *const KEYS[] = {"text",  "better", "worse", "solves", "panel",
                                       "level", "above",  "below", NULL};
    const char *level = NULL;
    OPC_TRY(opc_learning_keys(map, "a claim", KEYS, err));
    OPC_TRY(read_word(map, "text", &claim->text, err));
    OPC_TRY(read_word(map, "better", &claim->better, err));
    OPC_TRY(read_word(map, "worse", &claim->worse, err));
    OPC_TRY(read_word(map, "solves", &claim->solves, err));
    OPC_TRY(read_word(map, "panel", &claim->panel, err));
    OPC_TRY(read_word(map, "above", &claim->above, err));
    OPC_TRY(read_word(map, "below", &claim->below, err));
    OPC_TRY(read_word(map, "level", &level, err));
    /* Each kind needs both of its keys. */
    const bool lines = claim->better || claim->worse, solves = claim->solves || level;
    const bool panels = claim->above || claim->below;
    const bool whole = (!lines || (claim->better && claim->worse)) &&
                       (!solves || (claim->solves && level)) &&
                       (!panels || (claim->above && claim->below && !claim->panel));
    if (!claim->text || !whole || lines + solves + panels != 1)
        return opc_fail(err, OPC_EUSER,
                        "line %d: a claim has text and better, worse; or solves, level; or above, "
                        "below",
                        map->line);
    if (solves && !(opc_parse_real(level, &claim->level) && isfinite(claim->level)))
        return opc_fail(err, OPC_EUSER, "line %d: level = %s is no number", map->line, level);
    return OPC_OK;
}

int opc_learning_claims_check(const struct opc_yaml *list, struct opc_err *err)
{
    struct claim claim;
    int code = OPC_OK;
    if (list && list->kind != OPC_YAML_LIST)
        return opc_fail(err, OPC_EUSER, "line %d: claims is a list of maps", list->line);
    for (const struct opc_yaml *map = list ? list->first : NULL; map && !code; map = map->next)
        code = read_claim(map, &claim, err);
    return code;
}

/* ---- judging --------------------------------------------------------------------------------- */

int opc_learning_find(const struct opc_learning *learning, const char *line)
{
    for (int i = 0; i < learning->lines; i++)
        if (strcmp(learning->line[i], line) == 0)
            return i;
    return -1;
}

/* Whether the claim speaks of this panel. */
static bool is_meant(const struct opc_learning *learning, int panel, const char *pattern)
{
    return !pattern || fnmatch(pattern, learning->curves->panel[panel], 0) == 0;
}

/* Counts of panels that do not match become 0; the scores themselves are shared. */
struct opc_scores opc_learning_scores(const struct opc_learning *learning, int line,
                                      const char *panel, int side)
{
    const size_t at = (size_t)line * (size_t)learning->panels;
    int *count = learning->count + (size_t)side * (size_t)learning->tasks;
    for (int p = 0; p < learning->panels; p++)
        count[p] = is_meant(learning, p, panel) ? learning->n[at + (size_t)p] : 0;
    return (struct opc_scores){learning->panels, count,
                               (const double *const *)(learning->end + at)};
}

/* Whether the line has a run; if not, the claim is undecided and says so. */
static bool is_there(const struct opc_learning *learning, const struct claim *claim,
                     const char *line, struct opc_exhibit *exhibit)
{
    if (opc_learning_find(learning, line) >= 0)
        return true;
    opc_exhibit_claim(exhibit, OPC_VERDICT_UNDECIDED, claim->text,
                      "There is no complete run of %s.", line);
    return false;
}

/* Why runs cannot decide, as the end of a sentence; "" if they can. A missing run could change
 * the result, and some may stay missing for a reason: because they diverge. */
static void say_too_few(const struct opc_learning *learning, int fewest, size_t size, char *out)
{
    *out = '\0';
    if (learning->missing)
        snprintf(out, size, "; while %d run%s missing, nothing is decided", learning->missing,
                 learning->missing == 1 ? " is" : "s are");
    else if (fewest < FEWEST)
        snprintf(out, size, "; fewer than %d runs decide nothing", FEWEST);
}

/* Probability that chance alone puts all of n runs above all of m others, n! m! / (n + m)!. No
 * outcome is less likely, so with few runs no result can be significant, which a bootstrap does
 * not notice. */
static double chance_above(int n, int m)
{
    return exp(lgamma(n + 1.0) + lgamma(m + 1.0) - lgamma(n + m + 1.0));
}

/* Two sides of a claim, compared task by task; tasks are panels, or lines. */
struct duel {
    struct opc_scores a, b;
    const char *name[2], *task;
};

/* Judges "a ends above b" and adds the claim. */
static int decide_duel(const struct opc_learning *learning, const struct claim *claim, int number,
                       const struct duel *duel, struct opc_exhibit *exhibit, struct opc_err *err)
{
    /* Stream 3: 1 and 2 are those of the tables in learning_curves.c. */
    struct opc_rng rng = opc_rng_stream(learning->seed, OPC_USE_STUDY, 3, (uint32_t)number);
    struct opc_interval p;
    int fewest = INT_MAX, tasks = 0, runs[2] = {0, 0};
    double chance = 1;
    /* Count what can be compared: tasks with runs on both sides. */
    for (int i = 0; i < duel->a.tasks; i++)
        if (duel->a.n[i] && duel->b.n[i]) {
            const int min = duel->a.n[i] < duel->b.n[i] ? duel->a.n[i] : duel->b.n[i];
            fewest = min < fewest ? min : fewest;
            runs[0] += duel->a.n[i];
            runs[1] += duel->b.n[i];
            chance *= chance_above(duel->a.n[i], duel->b.n[i]);
            tasks++;
        }
    if (tasks == 0) {
        opc_exhibit_claim(exhibit, OPC_VERDICT_UNDECIDED, claim->text,
                          "No %s%s%s has runs of both %s and %s.", duel->task,
                          claim->panel ? " like " : "", claim->panel ? claim->panel : "",
                          duel->name[0], duel->name[1]);
        return OPC_OK;
    }
    const int code = opc_improvement(&duel->a, &duel->b, 0, &rng, &p, err);
    if (code)
        return code;
    char few[128];
    /* Too few runs for anything, or too few for this difference to be more than chance. */
    say_too_few(learning, fewest, sizeof few, few);
    if (!*few && chance > CHANCE)
        snprintf(few, sizeof few,
                 "; so few runs decide nothing: chance puts all above all in %.1f %% of cases",
                 100 * chance);
    /* P(a > b) must be on one side of 1/2 with its whole interval. */
    const enum opc_verdict verdict = *few           ? OPC_VERDICT_UNDECIDED
                                     : p.low > 0.5  ? OPC_VERDICT_SUPPORTED
                                     : p.high < 0.5 ? OPC_VERDICT_NOT_SUPPORTED
                                                    : OPC_VERDICT_UNDECIDED;
    opc_exhibit_claim(exhibit, verdict, claim->text,
                      "P(%s > %s) = %.2f, 95 %% interval [%.2f, %.2f], over %d and %d runs in %d "
                      "%s%s%s.",
                      duel->name[0], duel->name[1], p.middle, p.low, p.high, runs[0], runs[1],
                      tasks, duel->task, tasks == 1 ? "" : "s", few);
    return OPC_OK;
}

/* {better, worse}: two lines, panel by panel. */
static int decide_lines(const struct opc_learning *learning, const struct claim *claim, int number,
                        struct opc_exhibit *exhibit, struct opc_err *err)
{
    if (!is_there(learning, claim, claim->better, exhibit) ||
        !is_there(learning, claim, claim->worse, exhibit))
        return OPC_OK;
    const int better = opc_learning_find(learning, claim->better),
              worse = opc_learning_find(learning, claim->worse);
    const struct duel duel = {
        .a = opc_learning_scores(learning, better, claim->panel, 0),
        .b = opc_learning_scores(learning, worse, claim->panel, 1),
        .name = {learning->label[better], learning->label[worse]},
        .task = "panel",
    };
    return decide_duel(learning, claim, number, &duel, exhibit, err);
}

/* The runs of every line in one panel; no runs if the panel does not exist yet. */
static struct opc_scores scores_of_panel(const struct opc_learning *learning, int panel, int side)
{
    int *count = learning->count + (size_t)side * (size_t)learning->tasks;
    const double **end = learning->column + (size_t)side * (size_t)learning->tasks;
    for (int i = 0; i < learning->lines; i++) {
        const size_t at = (size_t)i * (size_t)learning->panels + (size_t)panel;
        count[i] = panel < learning->panels ? learning->n[at] : 0;
        end[i] = panel < learning->panels ? learning->end[at] : NULL;
    }
    return (struct opc_scores){learning->lines, count, end};
}

/* {above, below}: two panels, line by line. */
static int decide_panels(const struct opc_learning *learning, const struct claim *claim, int number,
                         struct opc_exhibit *exhibit, struct opc_err *err)
{
    struct duel duel = {.name = {claim->above, claim->below}, .task = "line"};
    struct opc_scores *const scores[2] = {&duel.a, &duel.b};
    for (int side = 0; side < 2; side++) {
        int panel = 0;
        while (panel < learning->panels &&
               strcmp(duel.name[side], learning->curves->panel[panel]) != 0)
            panel++;
        *scores[side] = scores_of_panel(learning, panel, side);
        if (panel < learning->panels)
            duel.name[side] = learning->curves->title[panel];
    }
    return decide_duel(learning, claim, number, &duel, exhibit, err);
}

/* {solves, level}: the line must solve every panel, so the panel with the lowest share of runs
 * that reach the level decides. Supported from 75 % of its runs, refuted below 50 %. */
static void decide_solves(const struct opc_learning *learning, const struct claim *claim,
                          struct opc_exhibit *exhibit)
{
    if (!is_there(learning, claim, claim->solves, exhibit))
        return;
    const int line = opc_learning_find(learning, claim->solves);
    const struct opc_scores s = opc_learning_scores(learning, line, claim->panel, 0);
    /* low of lows runs reach the level in the lowest panel. */
    int runs = 0, reached = 0, panels = 0, fewest = INT_MAX, low = 0, lows = 0;
    double min = 2, median = 0; /* share and median of the lowest panel; the ends are in order */
    for (int p = 0; p < s.tasks; p++) {
        const int n = s.n[p];
        int here = 0;
        if (!is_meant(learning, p, claim->panel))
            continue;
        for (int i = 0; i < n; i++)
            here += s.v[p][i] >= claim->level;
        runs += n;
        reached += here;
        panels++;
        fewest = n < fewest ? n : fewest;
        if (n > 0 && (double)here / n < min) {
            min = (double)here / n;
            low = here;
            lows = n;
            median = 0.5 * (s.v[p][(n - 1) / 2] + s.v[p][n / 2]);
        }
    }
    if (runs == 0) {
        opc_exhibit_claim(exhibit, OPC_VERDICT_UNDECIDED, claim->text,
                          "No panel like %s has a run of %s.", claim->panel ? claim->panel : "*",
                          learning->label[line]);
        return;
    }
    char where[96] = "", few[96];
    if (panels > 1)
        snprintf(where, sizeof where, " in the lowest of %d panels, %d of %d", panels, low, lows);
    say_too_few(learning, fewest, sizeof few, few);
    opc_exhibit_claim(exhibit,
                      *few          ? OPC_VERDICT_UNDECIDED
                      : min >= 0.75 ? OPC_VERDICT_SUPPORTED
                      : min < 0.5   ? OPC_VERDICT_NOT_SUPPORTED
                                    : OPC_VERDICT_UNDECIDED,
                      claim->text, "%d of %d runs of %s end at %g or above (median %.4g%s)%s.",
                      reached, runs, learning->label[line], claim->level, median, where, few);
}

int opc_learning_claims(const struct opc_learning *learning, const struct opc_yaml *list,
                        struct opc_exhibit *exhibit, struct opc_err *err)
{
    int number = 0, code = OPC_OK;
    for (const struct opc_yaml *map = list ? list->first : NULL; map && !code; map = map->next) {
        struct claim claim;
        /* number: the claim's random stream; it counts claims of all kinds. */
        code = read_claim(map, &claim, err);
        if (!code && claim.solves)
            decide_solves(learning, &claim, exhibit);
        else if (!code && claim.above)
            code = decide_panels(learning, &claim, number, exhibit, err);
        else if (!code)
            code = decide_lines(learning, &claim, number, exhibit, err);
        number++;
    }
    return code;
}
