/* SPDX-License-Identifier: MIT */
/* Claims of the form "this ends above that": two lines, two panels; and "this line solves the
 * task". Judged by the probability of improvement, its bootstrap interval, and by how often chance
 * alone would decide so. learning_claims.c calls it, and learning_best.c for the verdict. */
#include "opc/mem.h"
#include "study/curves/learning_claims.h"
#include "study/exhibit/seeds.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double CHANCE = 0.025; /* error probability on either side of a 95 % interval */

/* Probability that chance alone puts all of n runs above all of m others, n! m! / (n + m)!. No
 * outcome is less likely, so with few runs no result can be significant, which a bootstrap does
 * not notice. */
double opc_claim_chance_above(int n, int m)
{
    return exp(lgamma(n + 1.0) + lgamma(m + 1.0) - lgamma(n + m + 1.0));
}

/* Two sides of a claim, compared task by task; tasks are panels, or lines. */
struct duel {
    struct opc_scores a, b;
    const char *name[2], *task;
    /* What task i is called. */
    const char *(*title)(const struct opc_learning *, int i);
};

/* What came out. */
struct outcome {
    int tasks, runs[2]; /* tasks with runs on both sides, and the runs there */
    struct opc_interval p;
    enum opc_verdict verdict;
    char each[OPC_CLAIM_TEXT];     /* P of every task, where there are several */
    char more[2 * OPC_CLAIM_TEXT]; /* why it is undecided, and what would decide it */
};

/* The runs of each side that n tasks need before all above all is more than chance. */
int opc_claim_min_runs(int tasks)
{
    int n = OPC_CLAIM_FEWEST;
    while (pow(opc_claim_chance_above(n, n), tasks) > CHANCE)
        n++;
    return n;
}

/* Counts what can be compared: tasks with runs on both sides. */
static void count_duel(const struct duel *duel, struct outcome *out, struct opc_claim_odds *odds)
{
    *odds = (struct opc_claim_odds){.fewest = INT_MAX, .chance_above = 1};
    for (int i = 0; i < duel->a.tasks; i++)
        if (duel->a.n[i] && duel->b.n[i]) {
            const int min = duel->a.n[i] < duel->b.n[i] ? duel->a.n[i] : duel->b.n[i];
            odds->fewest = min < odds->fewest ? min : odds->fewest;
            out->runs[0] += duel->a.n[i];
            out->runs[1] += duel->b.n[i];
            odds->chance_above *= opc_claim_chance_above(duel->a.n[i], duel->b.n[i]);
            odds->tasks++;
        }
    out->tasks = odds->tasks;
}

/* " (Hopper 1.00, HalfCheetah 0.66)": P(a > b) of every task, of which the claim has the mean. */
static int say_each(const struct opc_learning *learning, const struct duel *duel,
                    struct opc_rng unused, struct outcome *out, struct opc_err *err)
{
    enum { SHOWN = 8 };
    size_t used = 0;
    int shown = 0;
    for (int i = 0; i < duel->a.tasks && used < sizeof out->each; i++) {
        const struct opc_scores a = {1, duel->a.n + i, duel->a.v + i},
                                b = {1, duel->b.n + i, duel->b.v + i};
        struct opc_interval p; /* of which nothing but the middle is used */
        if (!duel->a.n[i] || !duel->b.n[i])
            continue;
        if (shown++ == SHOWN) {
            used += (size_t)snprintf(out->each + used, sizeof out->each - used, ", ...");
            break;
        }
        OPC_TRY(opc_improvement(&a, &b, 1, &unused, &p, err));
        used += (size_t)snprintf(out->each + used, sizeof out->each - used, "%s%.60s %.2f",
                                 used ? ", " : " (", duel->title(learning, i), p.middle);
    }
    if (used < sizeof out->each)
        snprintf(out->each + used, sizeof out->each - used, ")");
    return OPC_OK;
}

enum opc_verdict opc_claim_decide_odds(const struct opc_learning *learning,
                                       const struct opc_claim_odds *odds,
                                       char more[2 * OPC_CLAIM_TEXT])
{
    const struct opc_interval *p = &odds->p;
    char seeds[OPC_SEEDS_TEXT];
    /* Too few runs for anything, or too few for this difference to be more than chance. */
    opc_claim_say_few(learning, odds->fewest, OPC_CLAIM_FEWEST, more);
    if (!*more && odds->chance_above > CHANCE)
        snprintf(more, OPC_CLAIM_TEXT,
                 "; so few runs decide nothing: chance puts all above all in %.1f %% of cases",
                 100 * odds->chance_above);
    /* P(a > b) must be on one side of 1/2 with its whole interval. */
    if (!*more && (p->low > 0.5 || p->high < 0.5)) {
        if (odds->chance <= CHANCE)
            return p->low > 0.5 ? OPC_VERDICT_SUPPORTED : OPC_VERDICT_NOT_SUPPORTED;
        snprintf(
            more, OPC_CLAIM_TEXT,
            "; chance alone puts one side so far above in %.1f %% of cases; 2.5 %% are the limit",
            100 * odds->chance);
    }
    if (learning->missing)
        return OPC_VERDICT_UNDECIDED;
    opc_seeds_say(opc_seeds_to_clear(p, 0.5, odds->fewest, opc_claim_min_runs(odds->tasks)),
                  odds->fewest, "seeds", NULL, seeds);
    const size_t used = strlen(more);
    snprintf(more + used, 2 * OPC_CLAIM_TEXT - used, "%s", seeds);
    return OPC_VERDICT_UNDECIDED;
}

/* Judges "a ends above b". No task has both: undecided, and out->tasks is 0. */
static int judge_duel(const struct opc_learning *learning, const struct opc_claim *claim,
                      const struct duel *duel, struct outcome *out, struct opc_err *err)
{
    struct opc_rng rng = opc_claim_stream(learning, claim);
    struct opc_claim_odds odds;
    *out = (struct outcome){.verdict = OPC_VERDICT_UNDECIDED};
    count_duel(duel, out, &odds);
    if (out->tasks == 0) {
        opc_claim_say_missing(learning, out->more);
        return OPC_OK;
    }
    OPC_TRY(opc_improvement(&duel->a, &duel->b, 0, &rng, &odds.p, err));
    if (out->tasks > 1)
        OPC_TRY(say_each(learning, duel, rng, out, err));
    out->p = odds.p;
    out->verdict = opc_claim_decide_odds(learning, &odds, out->more);
    return OPC_OK;
}

/* Judges a duel and adds the claim. */
static int decide_duel(const struct opc_learning *learning, const struct opc_claim *claim,
                       const struct duel *duel, struct opc_exhibit *exhibit, struct opc_err *err)
{
    struct outcome o;
    char lines[OPC_CLAIM_TEXT] = "", where[OPC_CLAIM_TEXT];
    OPC_TRY(judge_duel(learning, claim, duel, &o, err));
    opc_claim_say_panels(learning, &claim->panel, where);
    for (int i = 0; i < claim->line.n; i++) {
        char one[OPC_CLAIM_TEXT];
        const size_t used = strlen(lines);
        opc_claim_say_lines(learning, claim->line.at[i], one);
        snprintf(lines + used, sizeof lines - used, "%s%.200s", i ? " or " : "", one);
    }
    if (o.tasks == 0)
        opc_exhibit_claim(exhibit, o.verdict, claim->text,
                          "No %s%s%s%s has runs of both %s and %s%s.", duel->task, where,
                          *lines ? " of " : "", lines, duel->name[0], duel->name[1], o.more);
    else
        opc_exhibit_claim(exhibit, o.verdict, claim->text,
                          "P(%s > %s) = %.2f, 95 %% interval [%.2f, %.2f], over %d and %d runs in "
                          "%d %s%s%s%s.",
                          duel->name[0], duel->name[1], o.p.middle, o.p.low, o.p.high, o.runs[0],
                          o.runs[1], o.tasks, duel->task, o.tasks == 1 ? "" : "s", o.each, o.more);
    return OPC_OK;
}

static const char *title_of_panel(const struct opc_learning *learning, int panel)
{
    return learning->curves->title[panel];
}

static const char *label_of_line(const struct opc_learning *learning, int line)
{
    return learning->label[line];
}

/* {better, worse}: two lines, panel by panel. */
int opc_claim_lines(const struct opc_learning *learning, const struct opc_claim *claim,
                    struct opc_exhibit *exhibit, struct opc_err *err)
{
    if (!opc_claim_has(learning, claim, claim->name[0], exhibit) ||
        !opc_claim_has(learning, claim, claim->name[1], exhibit))
        return OPC_OK;
    const int better = opc_learning_find(learning, claim->name[0]),
              worse = opc_learning_find(learning, claim->name[1]);
    const struct duel duel = {
        .a = opc_learning_scores(learning, better, &claim->panel, 0),
        .b = opc_learning_scores(learning, worse, &claim->panel, 1),
        .name = {learning->label[better], learning->label[worse]},
        .task = "panel",
        .title = title_of_panel,
    };
    return decide_duel(learning, claim, &duel, exhibit, err);
}

/* The runs of every line that is meant in one panel; none if the panel does not exist yet. */
static struct opc_scores scores_of_panel(const struct opc_learning *learning, int panel,
                                         const struct opc_globs *line, int side)
{
    int *count = learning->count + (size_t)side * (size_t)learning->tasks;
    const double **end = learning->column + (size_t)side * (size_t)learning->tasks;
    for (int i = 0; i < learning->lines; i++) {
        const bool there = panel < learning->panels && opc_claim_means(line, learning->line[i]);
        const size_t at = (size_t)i * (size_t)learning->panels + (size_t)panel;
        count[i] = there ? learning->n[at] : 0;
        end[i] = there ? learning->end[at] : NULL;
    }
    return (struct opc_scores){learning->lines, count, end};
}

/* {above, below}: two panels, line by line. */
int opc_claim_panels(const struct opc_learning *learning, const struct opc_claim *claim,
                     struct opc_exhibit *exhibit, struct opc_err *err)
{
    struct duel duel = {
        .name = {claim->name[0], claim->name[1]}, .task = "line", .title = label_of_line};
    struct opc_scores *const scores[2] = {&duel.a, &duel.b};
    for (int side = 0; side < 2; side++) {
        const int panel = opc_claim_panel(learning, duel.name[side]);
        *scores[side] = scores_of_panel(learning, panel, &claim->line, side);
        duel.name[side] = opc_claim_title(learning, duel.name[side]);
    }
    return decide_duel(learning, claim, &duel, exhibit, err);
}

/* ---- solving --------------------------------------------------------------------------------- */

/* {solves, level}: the line must solve every panel, so the panel with the lowest share of runs
 * that reach the level decides. Supported from 75 % of its runs, refuted below 50 %. */
int opc_claim_solves(const struct opc_learning *learning, const struct opc_claim *claim,
                     struct opc_exhibit *exhibit, struct opc_err *err)
{
    (void)err;
    if (!opc_claim_has(learning, claim, claim->name[0], exhibit))
        return OPC_OK;
    const int line = opc_learning_find(learning, claim->name[0]);
    const struct opc_scores s = opc_learning_scores(learning, line, &claim->panel, 0);
    /* low of lows runs reach the level in the lowest panel. */
    int runs = 0, reached = 0, panels = 0, fewest = INT_MAX, low = 0, lows = 0;
    double min = 2, median = 0; /* share and median of the lowest panel; the ends are in order */
    for (int p = 0; p < s.tasks; p++) {
        const int n = s.n[p];
        int here = 0;
        if (!opc_claim_means(&claim->panel, learning->curves->panel[p]))
            continue;
        for (int i = 0; i < n; i++)
            here += s.v[p][i] >= claim->level;
        runs += n;
        reached += here;
        panels += n > 0;
        fewest = n < fewest ? n : fewest;
        if (n > 0 && (double)here / n < min) {
            min = (double)here / n;
            low = here;
            lows = n;
            median = 0.5 * (s.v[p][(n - 1) / 2] + s.v[p][n / 2]);
        }
    }
    char where[OPC_CLAIM_TEXT] = "", few[OPC_CLAIM_TEXT], seeds[OPC_SEEDS_TEXT] = "";
    opc_claim_say_few(learning, fewest, OPC_CLAIM_FEWEST, few);
    if (runs == 0) {
        opc_claim_say_panels(learning, &claim->panel, where);
        opc_exhibit_claim(exhibit, OPC_VERDICT_UNDECIDED, claim->text,
                          "No panel%s has a run of %s%s.", where, learning->label[line],
                          learning->missing ? few : "");
        return OPC_OK;
    }
    if (panels > 1)
        snprintf(where, sizeof where, " in the lowest of %d panels, %d of %d", panels, low, lows);
    /* Between the two limits nothing is decided; so many runs could at best get out of there. */
    const bool between = min >= 0.5 && min < 0.75;
    if ((between || *few) && !learning->missing) {
        const int needed = between ? opc_seeds_to_solve(low, lows) : 0;
        snprintf(seeds, sizeof seeds, "; no fewer than %d seeds instead of %d could decide it",
                 needed > OPC_CLAIM_FEWEST ? needed : OPC_CLAIM_FEWEST, between ? lows : fewest);
    }
    opc_exhibit_claim(exhibit,
                      *few          ? OPC_VERDICT_UNDECIDED
                      : min >= 0.75 ? OPC_VERDICT_SUPPORTED
                      : min < 0.5   ? OPC_VERDICT_NOT_SUPPORTED
                                    : OPC_VERDICT_UNDECIDED,
                      claim->text, "%d of %d runs of %s end at %g or above (median %.4g%s)%s%s.",
                      reached, runs, learning->label[line], claim->level, median, where, few,
                      seeds);
    return OPC_OK;
}
