/* SPDX-License-Identifier: MIT */
/* Claims that the best setting of one method ends above the best of another, where a setting is a
 * line in a panel. learning_claims.c calls it; learning_duel.c has the verdict.
 *
 * Invariant: no run is judged that has had a part in choosing its setting. So for each seed the
 * setting is the one that is best over the other seeds, also in every bootstrap sample, where
 * copies of a seed are no other seeds. */
#include "opc/mem.h"
#include "study/curves/learning_claims.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RESAMPLES = 2000, ALL_SEEDS = -1 }; /* as many as in num/stats.c */

/* A sample of seeds, and the scores with the best settings in it. */
struct sample {
    int *times;     /* [seeds] how often it has each */
    int n, *weight; /* [runs] scores, and how often each counts */
    double *score;  /* [runs] */
    int *counted;   /* [runs] scratch: how often each run counts for a choice */
};

static int make_sample(const struct opc_claim_method *method, struct sample *out,
                       struct opc_err *err)
{
    const size_t runs = (size_t)method->runs + 1;
    *out = (struct sample){.times = opc_alloc((size_t)method->seeds + 1, sizeof *out->times),
                           .weight = opc_alloc(runs, sizeof *out->weight),
                           .score = opc_alloc(runs, sizeof *out->score),
                           .counted = opc_alloc(runs, sizeof *out->counted)};
    for (int s = 0; out->times && s < method->seeds; s++)
        out->times[s] = 1;
    return out->times && out->weight && out->score && out->counted
               ? OPC_OK
               : opc_fail(err, OPC_ENOMEM, "not enough memory for the best of %d runs",
                          method->runs);
}

static void free_sample(struct sample *sample)
{
    opc_free(sample->times);
    opc_free(sample->weight);
    opc_free(sample->score);
    opc_free(sample->counted);
}

/* Draws as many seeds as there are, with replacement, and again while all are the same: then none
 * could choose for another. */
static void draw_seeds(int seeds, struct opc_rng *rng, int *times)
{
    int different;
    do {
        different = 0;
        memset(times, 0, (size_t)seeds * sizeof *times);
        for (int i = 0; i < seeds; i++)
            different += times[opc_rng_below(rng, (uint32_t)seeds)]++ == 0;
    } while (different < 2 && seeds > 1);
}

/* The setting of the highest IQM in a sample over all seeds but one. -1: none has such runs. */
static int best_setting(const struct opc_claim_method *method, struct sample *sample, int without,
                        double *iqm)
{
    int best = -1;
    *iqm = -HUGE_VAL;
    for (int i = 0; i < method->runs; i++)
        sample->counted[i] = method->seed[i] == without ? 0 : sample->times[method->seed[i]];
    for (int k = 0; k < method->settings; k++) {
        const int at = method->first[k], n = method->first[k + 1] - at;
        const double here = opc_iqm_repeated(n, method->score + at, sample->counted + at);
        if (here > *iqm) { /* NaN, where there are no such runs, is not */
            *iqm = here;
            best = k;
        }
    }
    return best;
}

/* Of each seed in a sample, the runs of the setting that is best over the other seeds. */
static void choose(const struct opc_claim_method *method, struct sample *sample)
{
    sample->n = 0;
    for (int s = 0; s < method->seeds; s++) {
        double iqm;
        const int best = sample->times[s] ? best_setting(method, sample, s, &iqm) : -1;
        if (best < 0)
            continue;
        for (int i = method->first[best]; i < method->first[best + 1]; i++)
            if (method->seed[i] == s) {
                sample->score[sample->n] = method->score[i];
                sample->weight[sample->n++] = sample->times[s];
            }
    }
}

/* How many of the pairs of a score of a and one of b are won by a, equal ones counted half. */
static double count_won(const struct sample *a, const struct sample *b, int *pairs)
{
    double won = 0;
    *pairs = 0;
    for (int i = 0; i < a->n; i++)
        for (int k = 0; k < b->n; k++) {
            const double x = a->score[i], y = b->score[k];
            const int weight = a->weight[i] * b->weight[k];
            won += weight * (x > y ? 1 : x == y ? 0.5 : 0);
            *pairs += weight;
        }
    return won;
}

/* The interval from samples in which the settings are chosen anew. Those without a pair say
 * nothing about which is above. */
static int bootstrap(const struct opc_claim_method method[2], struct sample sample[2],
                     struct opc_rng *rng, struct opc_interval *out, struct opc_err *err)
{
    double *at = opc_alloc(RESAMPLES, sizeof *at);
    if (!at)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a bootstrap");
    for (int r = 0; r < RESAMPLES; r++) {
        int pairs;
        for (int side = 0; side < 2; side++) {
            draw_seeds(method[side].seeds, rng, sample[side].times);
            choose(&method[side], &sample[side]);
        }
        const double won = count_won(&sample[0], &sample[1], &pairs);
        at[r] = pairs ? won / pairs : 0.5;
    }
    out->low = opc_quantile(RESAMPLES, at, 0.025);
    out->high = opc_quantile(RESAMPLES, at, 0.975);
    opc_free(at);
    return OPC_OK;
}

/* With the samples that hold every seed once, from which the interval goes on. */
static int compare(const struct opc_claim_method method[2], struct sample sample[2],
                   struct opc_rng *rng, struct opc_claim_best *out, struct opc_err *err)
{
    struct opc_claim_odds *odds = &out->odds;
    int pairs;
    for (int side = 0; side < 2; side++) {
        out->setting[side] = best_setting(&method[side], &sample[side], ALL_SEEDS, &out->iqm[side]);
        choose(&method[side], &sample[side]);
        out->runs[side] = sample[side].n;
    }
    const int n = out->runs[0], m = out->runs[1];
    const double won = count_won(&sample[0], &sample[1], &pairs);
    if (!pairs)
        return OPC_OK;
    odds->p.middle = won / pairs;
    odds->fewest = n < m ? n : m;
    odds->chance_above = opc_claim_chance_above(n, m);
    OPC_TRY(opc_rank_chance(n, m, fmax(won, pairs - won), &odds->chance, err));
    return bootstrap(method, sample, rng, &odds->p, err);
}

int opc_claim_compare_best(const struct opc_claim_method method[2], struct opc_rng *rng,
                           struct opc_claim_best *out, struct opc_err *err)
{
    struct sample sample[2] = {{0}};
    *out =
        (struct opc_claim_best){.odds = {.p = {(double)NAN, (double)NAN, (double)NAN}, .tasks = 1}};
    int code = make_sample(&method[0], &sample[0], err);
    if (!code)
        code = make_sample(&method[1], &sample[1], err);
    if (!code)
        code = compare(method, sample, rng, out, err);
    free_sample(&sample[0]);
    free_sample(&sample[1]);
    return code;
}

/* ---- the runs of a method -------------------------------------------------------------------- */

/* A method with what its arrays are made of. */
struct gathered {
    int *group;        /* [settings] of the curves */
    int *first, *seed; /* as in the method */
    double *score;
    int *distinct; /* [seeds] ascending */
    struct opc_claim_method method;
};

static int make_gathered(const struct opc_curves *curves, struct gathered *out, struct opc_err *err)
{
    const size_t runs = (size_t)curves->runs + 1, groups = (size_t)curves->groups + 1;
    *out = (struct gathered){.group = opc_alloc(groups, sizeof *out->group),
                             .first = opc_alloc(groups, sizeof *out->first),
                             .seed = opc_alloc(runs, sizeof *out->seed),
                             .score = opc_alloc(runs, sizeof *out->score),
                             .distinct = opc_alloc(runs, sizeof *out->distinct)};
    return out->group && out->first && out->seed && out->score && out->distinct
               ? OPC_OK
               : opc_fail(err, OPC_ENOMEM, "not enough memory for the best of %d runs",
                          curves->runs);
}

static void free_gathered(struct gathered *g)
{
    opc_free(g->group);
    opc_free(g->first);
    opc_free(g->seed);
    opc_free(g->score);
    opc_free(g->distinct);
}

/* Puts a run among those of the last setting, whose scores ascend. */
static void add_run(struct gathered *g, int seed, double score)
{
    int i = g->method.runs++;
    for (; i > g->first[g->method.settings] && g->score[i - 1] > score; i--) {
        g->seed[i] = g->seed[i - 1];
        g->score[i] = g->score[i - 1];
    }
    g->seed[i] = seed;
    g->score[i] = score;
}

static int by_number(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* Seeds become their places among those that there are. */
static void number_seeds(struct gathered *g)
{
    const int runs = g->method.runs;
    int seeds = 0;
    memcpy(g->distinct, g->seed, (size_t)runs * sizeof *g->seed);
    qsort(g->distinct, (size_t)runs, sizeof *g->distinct, by_number);
    for (int i = 0; i < runs; i++)
        if (seeds == 0 || g->distinct[i] != g->distinct[seeds - 1])
            g->distinct[seeds++] = g->distinct[i];
    for (int i = 0; i < runs; i++) {
        int at = 0;
        while (g->distinct[at] != g->seed[i])
            at++;
        g->seed[i] = at;
    }
    g->method.seeds = seeds;
}

/* The runs of the lines that a glob matches, by setting. */
static int gather(const struct opc_learning *learning, const char *line,
                  const struct opc_globs *panel, struct gathered *out, struct opc_err *err)
{
    const struct opc_curves *curves = learning->curves;
    OPC_TRY(make_gathered(curves, out, err));
    for (int g = 0; g < curves->groups; g++) {
        const int before = out->method.runs;
        if (!opc_claim_like(line, curves->group[g].line) ||
            !opc_claim_means(panel, curves->panel[curves->group[g].panel]))
            continue;
        for (int i = 0; i < curves->runs; i++)
            if (curves->run[i].group == g && !isnan(learning->score[i]))
                add_run(out, curves->run[i].seed, learning->score[i]);
        if (out->method.runs > before) {
            out->group[out->method.settings++] = g;
            out->first[out->method.settings] = out->method.runs;
        }
    }
    number_seeds(out);
    out->method.first = out->first;
    out->method.seed = out->seed;
    out->method.score = out->score;
    return OPC_OK;
}

/* ---- the claim ------------------------------------------------------------------------------- */

/* {best: [a, b]}: globs of lines; a's best setting against b's. */
static int judge(const struct opc_learning *learning, const struct opc_claim *claim,
                 const struct gathered side[2], struct opc_exhibit *exhibit, struct opc_err *err)
{
    const struct opc_curves *curves = learning->curves;
    const struct opc_claim_method method[2] = {side[0].method, side[1].method};
    struct opc_rng rng = opc_claim_stream(learning, claim);
    struct opc_claim_best best;
    const struct opc_interval *const p = &best.odds.p;
    char name[2][OPC_CLAIM_TEXT], more[2 * OPC_CLAIM_TEXT];
    const struct opc_curve_group *group[2];
    OPC_TRY(opc_claim_compare_best(method, &rng, &best, err));
    opc_claim_say_lines(learning, claim->name[0], name[0]);
    opc_claim_say_lines(learning, claim->name[1], name[1]);
    if (isnan(p->middle)) {
        opc_claim_say_missing(learning, more);
        opc_exhibit_claim(exhibit, OPC_VERDICT_UNDECIDED, claim->text,
                          "%s and %s do not both have runs of two seeds there; no fewer than %d "
                          "could decide it%s.",
                          name[0], name[1], opc_claim_min_runs(1), more);
        return OPC_OK;
    }
    const enum opc_verdict verdict = opc_claim_decide_odds(learning, &best.odds, more);
    for (int k = 0; k < 2; k++)
        group[k] = &curves->group[side[k].group[best.setting[k]]];
    opc_exhibit_claim(
        exhibit, verdict, claim->text,
        "P(best of %s > best of %s) = %.2f, 95 %% interval [%.2f, %.2f], over %d and %d runs "
        "of settings chosen by the other seeds; over all seeds the best are %s in \"%s\" (IQM "
        "%.4g) and %s in \"%s\" (IQM %.4g)%s.",
        name[0], name[1], p->middle, p->low, p->high, best.runs[0], best.runs[1], group[0]->label,
        curves->title[group[0]->panel], best.iqm[0], group[1]->label,
        curves->title[group[1]->panel], best.iqm[1], more);
    return OPC_OK;
}

int opc_claim_best(const struct opc_learning *learning, const struct opc_claim *claim,
                   struct opc_exhibit *exhibit, struct opc_err *err)
{
    struct gathered side[2] = {{0}};
    if (!opc_claim_has_like(learning, claim, claim->name[0], exhibit) ||
        !opc_claim_has_like(learning, claim, claim->name[1], exhibit))
        return OPC_OK;
    int code = gather(learning, claim->name[0], &claim->panel, &side[0], err);
    if (!code)
        code = gather(learning, claim->name[1], &claim->panel, &side[1], err);
    if (!code)
        code = judge(learning, claim, side, exhibit, err);
    free_gathered(&side[0]);
    free_gathered(&side[1]);
    return code;
}
