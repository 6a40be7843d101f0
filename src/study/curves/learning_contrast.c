/* SPDX-License-Identifier: MIT */
/* Claims about sizes of differences: two lines are alike, one gain is larger than another, results
 * depend less on the settings of one method than on those of another. All compare interquartile
 * means, with a bootstrap interval that draws the runs of each line and panel again.
 * learning_claims.c calls it. */
#include "opc/mem.h"
#include "study/curves/learning_claims.h"
#include "study/exhibit/seeds.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

/* Runs, and their sorted scores, of a line in a panel. */
static int cell_runs(const struct opc_learning *learning, int line, int panel)
{
    return learning->n[(size_t)line * (size_t)learning->panels + (size_t)panel];
}

static const double *cell_scores(const struct opc_learning *learning, int line, int panel)
{
    return learning->end[(size_t)line * (size_t)learning->panels + (size_t)panel];
}

/* ---- alike ----------------------------------------------------------------------------------- */

/* Seeds after which the interval fits into [-margin, margin], or lies outside of it, whichever the
 * difference itself does. */
static double seeds_to_fit(const struct opc_interval *d, double margin, int now)
{
    const double up = d->high - d->middle, down = d->middle - d->low;
    if (d->middle > margin)
        return opc_seeds_needed(now, OPC_CLAIM_ALONE, down, d->middle - margin);
    if (d->middle < -margin)
        return opc_seeds_needed(now, OPC_CLAIM_ALONE, up, -margin - d->middle);
    /* Both ends have to come in. */
    return fmax(opc_seeds_needed(now, OPC_CLAIM_ALONE, up, margin - d->middle),
                opc_seeds_needed(now, OPC_CLAIM_ALONE, down, margin + d->middle));
}

int opc_claim_compare(const int n[2], const double *const v[2], double margin, struct opc_rng *rng,
                      struct opc_claim_likeness *out, struct opc_err *err)
{
    /* The two means themselves: contrasts of one. They draw from streams of their own, of which
     * nothing is used but the middle. */
    for (int k = 0; k < 2; k++) {
        const struct opc_scores one = {1, &n[k], &v[k]};
        struct opc_rng unused = *rng;
        struct opc_interval iqm;
        OPC_TRY(opc_iqm_contrast(&one, (const double[]){1}, 1, &unused, &iqm, err));
        out->iqm[k] = iqm.middle;
    }
    const double larger = fmax(fabs(out->iqm[0]), fabs(out->iqm[1]));
    const double unit = larger > 0 ? larger : 1;
    const struct opc_scores both = {2, n, v};
    OPC_TRY(opc_iqm_contrast(&both, (const double[]){1 / unit, -1 / unit}, 0, rng, &out->difference,
                             err));
    /* Inside with the whole interval, outside with the whole interval, or neither. */
    const struct opc_interval *d = &out->difference;
    out->verdict = d->low > -margin && d->high < margin   ? OPC_VERDICT_SUPPORTED
                   : d->low > margin || d->high < -margin ? OPC_VERDICT_NOT_SUPPORTED
                                                          : OPC_VERDICT_UNDECIDED;
    out->fewest = n[0] < n[1] ? n[0] : n[1];
    out->seeds = seeds_to_fit(d, margin, out->fewest);
    return OPC_OK;
}

enum opc_verdict opc_claim_join(enum opc_verdict all, enum opc_verdict one)
{
    if (all == OPC_VERDICT_NOT_SUPPORTED || one == OPC_VERDICT_NOT_SUPPORTED)
        return OPC_VERDICT_NOT_SUPPORTED;
    return all == OPC_VERDICT_SUPPORTED ? one : all;
}

/* Whether a panel decides more than another, so that the sentence is about it: the one whose
 * verdict is that over all, and of those the one whose interval ends furthest out; outside of the
 * margin, the one that begins furthest out. */
static bool decides_more(const struct opc_claim_likeness *one,
                         const struct opc_claim_likeness *other)
{
    const struct opc_interval *a = &one->difference, *b = &other->difference;
    if (one->verdict != other->verdict)
        return opc_claim_join(other->verdict, one->verdict) == one->verdict;
    if (one->verdict == OPC_VERDICT_NOT_SUPPORTED)
        return fmax(a->low, -a->high) > fmax(b->low, -b->high);
    return fmax(a->high, -a->low) > fmax(b->high, -b->low);
}

/* What joins that interval and its panel in a sentence. */
static void say_which(enum opc_verdict verdict, int panels, char out[OPC_CLAIM_TEXT])
{
    snprintf(out, OPC_CLAIM_TEXT, panels > 1 ? ", of %d panels %s in" : " in", panels,
             verdict == OPC_VERDICT_SUPPORTED ? "closest to its edge" : "furthest");
}

/* {alike: [a, b], margin}: alike in every panel that is meant. */
int opc_claim_alike(const struct opc_learning *learning, const struct opc_claim *claim,
                    struct opc_exhibit *exhibit, struct opc_err *err)
{
    if (!opc_claim_has(learning, claim, claim->name[0], exhibit) ||
        !opc_claim_has(learning, claim, claim->name[1], exhibit))
        return OPC_OK;
    const int line[2] = {opc_learning_find(learning, claim->name[0]),
                         opc_learning_find(learning, claim->name[1])};
    struct opc_rng rng = opc_claim_stream(learning, claim);
    struct opc_claim_likeness shown = {0};
    enum opc_verdict verdict = OPC_VERDICT_SUPPORTED;
    int panels = 0, panel = 0, fewest = INT_MAX;
    struct opc_seeds_all all = {0};
    for (int p = 0; p < learning->panels; p++) {
        struct opc_claim_likeness here;
        if (!opc_claim_means(&claim->panel, learning->curves->panel[p]) ||
            !cell_runs(learning, line[0], p) || !cell_runs(learning, line[1], p))
            continue;
        const int n[2] = {cell_runs(learning, line[0], p), cell_runs(learning, line[1], p)};
        const double *const v[2] = {cell_scores(learning, line[0], p),
                                    cell_scores(learning, line[1], p)};
        OPC_TRY(opc_claim_compare(n, v, claim->margin, &rng, &here, err));
        verdict = opc_claim_join(verdict, here.verdict);
        fewest = here.fewest < fewest ? here.fewest : fewest;
        if (here.verdict != OPC_VERDICT_SUPPORTED || here.fewest < OPC_CLAIM_ALONE)
            opc_seeds_join(&all, here.seeds, fabs(here.difference.middle) <= claim->margin);
        if (!panels++ || decides_more(&here, &shown)) {
            shown = here;
            panel = p;
        }
    }
    char few[OPC_CLAIM_TEXT], which[OPC_CLAIM_TEXT], seeds[OPC_SEEDS_TEXT] = "";
    opc_claim_say_few(learning, fewest, OPC_CLAIM_ALONE, few);
    say_which(shown.verdict, panels, which);
    if (panels == 0) {
        char where[OPC_CLAIM_TEXT];
        opc_claim_say_panels(learning, &claim->panel, where);
        opc_exhibit_claim(exhibit, OPC_VERDICT_UNDECIDED, claim->text,
                          "No panel%s has runs of both %s and %s%s.", where,
                          learning->label[line[0]], learning->label[line[1]],
                          learning->missing ? few : "");
        return OPC_OK;
    }
    verdict = *few ? OPC_VERDICT_UNDECIDED : verdict;
    if (verdict == OPC_VERDICT_UNDECIDED && !learning->missing)
        opc_seeds_say(opc_seeds_joined(&all), fewest, "seeds",
                      "so far the difference is the margin itself", seeds);
    static const char *const LIES[] = {[OPC_VERDICT_SUPPORTED] = "lies within",
                                       [OPC_VERDICT_NOT_SUPPORTED] = "lies outside of",
                                       [OPC_VERDICT_UNDECIDED] = "reaches across"};
    opc_exhibit_claim(
        exhibit, verdict, claim->text,
        "IQM(%s) - IQM(%s) = %.4g (%.4g and %.4g), %+.1f %% of the larger; its 95 %% interval "
        "[%+.1f, %+.1f] %% %s the margin of %g %%%s \"%s\"%s%s.",
        learning->label[line[0]], learning->label[line[1]], shown.iqm[0] - shown.iqm[1],
        shown.iqm[0], shown.iqm[1], 100 * shown.difference.middle, 100 * shown.difference.low,
        100 * shown.difference.high, LIES[shown.verdict], 100 * claim->margin, which,
        learning->curves->title[panel], few, seeds);
    return OPC_OK;
}

/* ---- differences that lie on one side of 0 --------------------------------------------------- */

/* The verdict on "this is above 0", with the end of its sentence. */
static enum opc_verdict judge_above_zero(const struct opc_learning *learning,
                                         const struct opc_interval *d, int fewest, int needed,
                                         char more[2 * OPC_CLAIM_TEXT])
{
    char few[OPC_CLAIM_TEXT], seeds[OPC_SEEDS_TEXT] = "";
    opc_claim_say_few(learning, fewest, needed, few);
    enum opc_verdict verdict = OPC_VERDICT_UNDECIDED;
    if (!*few && d->low > 0)
        verdict = OPC_VERDICT_SUPPORTED;
    else if (!*few && d->high < 0)
        verdict = OPC_VERDICT_NOT_SUPPORTED;
    else if (!learning->missing)
        opc_seeds_say(opc_seeds_to_clear(d, 0, fewest, needed), fewest, "seeds", NULL, seeds);
    snprintf(more, 2 * OPC_CLAIM_TEXT, "%s%s", few, seeds);
    return verdict;
}

/* Arrays for the cells that a claim is about, one allocation for all. */
struct cells {
    struct opc_scores scores; /* tasks: how many there are */
    int *n;
    const double **v;
    double *weight;
    int fewest;
};

static int make_cells(const struct opc_learning *learning, struct cells *out, struct opc_err *err)
{
    /* A gain takes four cells of each line. */
    const size_t max = 4 * (size_t)learning->lines * (size_t)learning->panels + 1;
    *out = (struct cells){.n = opc_alloc(max, sizeof *out->n),
                          .v = opc_alloc(max, sizeof *out->v),
                          .weight = opc_alloc(max, sizeof *out->weight),
                          .fewest = INT_MAX};
    out->scores = (struct opc_scores){0, out->n, out->v};
    return out->n && out->v && out->weight
               ? OPC_OK
               : opc_fail(err, OPC_ENOMEM, "not enough memory for a claim");
}

static void free_cells(struct cells *cells)
{
    opc_free(cells->n);
    opc_free(cells->v);
    opc_free(cells->weight);
}

static void add_cell(const struct opc_learning *learning, int line, int panel, double weight,
                     struct cells *cells)
{
    const int i = cells->scores.tasks++;
    cells->n[i] = cell_runs(learning, line, panel);
    cells->v[i] = cell_scores(learning, line, panel);
    cells->weight[i] = weight;
    cells->fewest = cells->n[i] < cells->fewest ? cells->n[i] : cells->fewest;
}

/* {gain: [[p, q], [r, t]]}, panels: the gain IQM(q) - IQM(p) is larger than IQM(t) - IQM(r), by
 * the mean over lines that have runs in all four. */
int opc_claim_gain(const struct opc_learning *learning, const struct opc_claim *claim,
                   struct opc_exhibit *exhibit, struct opc_err *err)
{
    static const double SIGN[4] = {-1, 1, 1, -1};
    struct opc_rng rng = opc_claim_stream(learning, claim);
    struct opc_interval first, difference;
    struct cells cells;
    int panel[4], lines = 0;
    const char *title[4];
    char more[2 * OPC_CLAIM_TEXT] = "";
    for (int k = 0; k < 4; k++) {
        panel[k] = opc_claim_panel(learning, claim->name[k]);
        title[k] = opc_claim_title(learning, claim->name[k]);
    }
    int code = make_cells(learning, &cells, err);
    /* Lines that have runs in all four panels. */
    for (int i = 0; i < learning->lines && !code; i++) {
        bool whole = opc_claim_means(&claim->line, learning->line[i]);
        for (int k = 0; k < 4 && whole; k++)
            whole = panel[k] < learning->panels && cell_runs(learning, i, panel[k]);
        for (int k = 0; k < 4 && whole; k++)
            add_cell(learning, i, panel[k], SIGN[k], &cells);
        lines += whole;
    }
    for (int i = 0; i < cells.scores.tasks && !code; i++)
        cells.weight[i] /= lines;
    if (!code && lines == 0) {
        opc_claim_say_missing(learning, more);
        opc_exhibit_claim(exhibit, OPC_VERDICT_UNDECIDED, claim->text,
                          "No line has runs in all of %s, %s, %s and %s%s.", title[0], title[1],
                          title[2], title[3], more);
    }
    if (!code && lines)
        code = opc_iqm_contrast(&cells.scores, cells.weight, 0, &rng, &difference, err);
    if (!code && lines) {
        const enum opc_verdict verdict =
            judge_above_zero(learning, &difference, cells.fewest,
                             lines > 1 ? OPC_CLAIM_FEWEST : OPC_CLAIM_ALONE, more);
        /* The first gain alone, for the sentence: the others count nothing. */
        for (int i = 0; i < cells.scores.tasks; i++)
            cells.weight[i] *= i % 4 < 2;
        code = opc_iqm_contrast(&cells.scores, cells.weight, 1, &rng, &first, err);
        opc_exhibit_claim(
            exhibit, verdict, claim->text,
            "The gain from %s to %s is %.4g, that from %s to %s %.4g; difference %.4g, 95 %% "
            "interval [%.4g, %.4g], over %d line%s of at least %d runs%s.",
            title[0], title[1], first.middle, title[2], title[3], first.middle - difference.middle,
            difference.middle, difference.low, difference.high, lines, lines == 1 ? "" : "s",
            cells.fewest, more);
    }
    free_cells(&cells);
    return code;
}

/* {spread: [a, b]}, globs of lines: over the settings, which are lines and panels, the IQMs of a
 * have a smaller standard deviation than those of b, beyond what the seeds of a setting explain. */
int opc_claim_spread(const struct opc_learning *learning, const struct opc_claim *claim,
                     struct opc_exhibit *exhibit, struct opc_err *err)
{
    struct opc_rng rng = opc_claim_stream(learning, claim);
    struct opc_interval spread;
    struct cells cells[2] = {0};
    char more[2 * OPC_CLAIM_TEXT], name[2][OPC_CLAIM_TEXT];
    for (int side = 0; side < 2; side++) {
        if (!opc_claim_has_like(learning, claim, claim->name[side], exhibit))
            return OPC_OK;
        opc_claim_say_lines(learning, claim->name[side], name[side]);
    }
    int code = make_cells(learning, &cells[0], err);
    if (!code)
        code = make_cells(learning, &cells[1], err);
    for (int side = 0; side < 2 && !code; side++)
        for (int i = 0; i < learning->lines; i++)
            for (int p = 0; p < learning->panels; p++)
                if (opc_claim_like(claim->name[side], learning->line[i]) &&
                    opc_claim_means(&claim->panel, learning->curves->panel[p]) &&
                    cell_runs(learning, i, p))
                    add_cell(learning, i, p, 1, &cells[side]);
    if (!code)
        code = opc_iqm_spread(&cells[0].scores, &cells[1].scores, 0, &rng, &spread, err);
    if (!code && isnan(spread.middle)) {
        opc_claim_say_missing(learning, more);
        opc_exhibit_claim(exhibit, OPC_VERDICT_UNDECIDED, claim->text,
                          "%s and %s do not both have runs of two settings%s.", name[0], name[1],
                          *more ? more : "; more seeds do not help");
    } else if (!code) {
        const int fewest = cells[0].fewest < cells[1].fewest ? cells[0].fewest : cells[1].fewest;
        const enum opc_verdict verdict =
            judge_above_zero(learning, &spread, fewest, OPC_CLAIM_FEWEST, more);
        opc_exhibit_claim(
            exhibit, verdict, claim->text,
            "Beyond what seeds explain, the standard deviation over settings is larger by %.4g for "
            "%s (%d settings) than for %s (%d), 95 %% interval [%.4g, %.4g], over at least %d runs "
            "of each%s.",
            spread.middle, name[1], cells[1].scores.tasks, name[0], cells[0].scores.tasks,
            spread.low, spread.high, fewest, more);
    }
    free_cells(&cells[0]);
    free_cells(&cells[1]);
    return code;
}
