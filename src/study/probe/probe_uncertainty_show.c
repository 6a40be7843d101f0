/* SPDX-License-Identifier: MIT */
/* The exhibit of the ensemble's spread: medians over rollouts with bootstrap intervals, how spread
 * and error go together, the figure, tables and claims. probe_uncertainty.c measures.
 *
 * Invariant: intervals come from a bootstrap over runs first and rollouts second, and all numbers
 * of a bootstrap sample are taken from the same rollouts, so that differences are paired. */
#include "study/probe/probe_uncertainty.h"

#include "num/stats.h"
#include "opc/mem.h"
#include "study/exhibit/seeds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BOOTSTRAPS = 500 };
enum { WAYS = OPC_SPREAD_WAYS, LEARNED = OPC_SPREAD_LEARNED, CORRECTED = OPC_SPREAD_CORRECTED };
static const char *const NAME[WAYS] = {"MBPO(*), eq. 2", "OPC, eq. 5"};
static const int COLOUR[WAYS] = {OPC_COLOUR_MODEL, OPC_COLOUR_OPC};

/* ---- statistics ------------------------------------------------------------------------------ */

/* Values after h steps of a sample of rollouts (row NULL: all) that have not ended; returns how
 * many. */
static int values_of(const struct opc_spread *study, const double *of, int beta, int way, int h,
                     const int *row, double *v)
{
    int n = 0;
    for (int i = 0; i < study->rows; i++) {
        const double x = of[opc_spread_offset(study, beta, way, row ? row[i] : i, h)];
        if (!isnan(x))
            v[n++] = x;
    }
    return n;
}

/* Median of those; NaN without any. */
static double median_of(const struct opc_spread *study, const double *of, int beta, int way, int h,
                        const int *row, double *v)
{
    const int n = values_of(study, of, beta, way, h, row, v);
    return n ? opc_quantile(n, v, 0.5) : (double)NAN;
}

/* The last step that half of the rollouts of every beta and both ways reach. */
static int last_common_step(const struct opc_spread *study, double *v)
{
    int last = 0;
    for (int h = 0; h <= study->horizon; h++) {
        bool half = true;
        for (int beta = 0; beta < study->beta->n; beta++)
            for (int way = 0; way < WAYS; way++)
                half &= 2 * values_of(study, study->spread, beta, way, h, NULL, v) >= study->rows;
        if (half)
            last = h;
    }
    return last;
}

/* A value and where it was, to be ranked. */
struct ranked {
    double value;
    int at;
};

static int by_value(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

/* Replaces values by their ranks; equal ones share the mean of theirs. */
static void rank_values(int n, double *v, struct ranked *work)
{
    for (int i = 0; i < n; i++)
        work[i] = (struct ranked){v[i], i};
    qsort(work, (size_t)n, sizeof *work, by_value);
    for (int i = 0; i < n;) {
        int end = i + 1;
        while (end < n && work[end].value == work[i].value)
            end++;
        for (int j = i; j < end; j++)
            v[work[j].at] = 0.5 * (i + end - 1);
        i = end;
    }
}

/* Spearman's correlation: that of the ranks. Overwrites both; NaN if one of them is constant. */
static double rank_correlation(int n, double *x, double *y, struct ranked *work)
{
    double xy = 0, xx = 0, yy = 0;
    rank_values(n, x, work);
    rank_values(n, y, work);
    for (int i = 0; i < n; i++) {
        const double dx = x[i] - 0.5 * (n - 1), dy = y[i] - 0.5 * (n - 1);
        xy += dx * dy;
        xx += dx * dx;
        yy += dy * dy;
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : (double)NAN;
}

/* What is compared, after `last` steps. */
struct summary {
    int last; /* half of the rollouts of every beta, both ways, are left */
    struct opc_interval spread[WAYS][OPC_LIST_MAX];
    struct opc_interval ratio[OPC_LIST_MAX]; /* OPC / MBPO(*) */
    struct opc_interval growth; /* OPC's at the largest beta minus that at the smallest above 0 */
    double within[WAYS][OPC_LIST_MAX]; /* correlation of spread and error for one beta */
    struct opc_interval tells[WAYS];   /* its mean over beta > 0 */
    int smallest, largest;             /* beta above 0; -1: there is none */
};
enum { MAX_QUANTITIES = (WAYS + 1) * OPC_LIST_MAX + 1 + WAYS };

/* Scratch of the statistics. */
struct work {
    int *row;             /* [rows] */
    double *v, *x, *y;    /* [betas * rows] */
    struct ranked *order; /* [betas * rows] */
    double *sample;       /* [quantities][BOOTSTRAPS] */
};

static void work_free(struct work *work)
{
    opc_free(work->row);
    opc_free(work->v);
    opc_free(work->x);
    opc_free(work->y);
    opc_free(work->order);
    opc_free(work->sample);
}

/* How spread and error of one way go together, after summary->last steps, for one beta. */
static double spread_tells_error(const struct opc_spread *study, const struct summary *summary,
                                 int way, int beta, const int *row, struct work *work)
{
    int n = 0;
    for (int i = 0; i < study->rows; i++) {
        const size_t at = opc_spread_offset(study, beta, way, row ? row[i] : i, summary->last);
        /* The environment may have ended although no elite has. */
        if (isnan(study->spread[at]) || isnan(study->error[at]))
            continue;
        work->x[n] = study->spread[at];
        work->y[n++] = study->error[at];
    }
    return rank_correlation(n, work->x, work->y, work->order);
}

/* The mean of that over beta > 0. Both grow with beta, so that over all rollouts together they
 * would go together whatever they do within one beta. */
static double mean_correlation(const struct opc_spread *study, const struct summary *summary,
                               int way, const int *row, struct work *work)
{
    double sum = 0;
    int n = 0;
    for (int k = 0; k < study->beta->n; k++) {
        const double r = study->beta->at[k] > 0
                             ? spread_tells_error(study, summary, way, k, row, work)
                             : (double)NAN;
        if (isnan(r))
            continue;
        sum += r;
        n++;
    }
    return n ? sum / n : (double)NAN;
}

/* All quantities of one sample of rollouts, in a fixed order. */
static void quantities_of(const struct opc_spread *study, const struct summary *summary,
                          const int *row, struct work *work, double out[MAX_QUANTITIES])
{
    const int n = study->beta->n;
    for (int k = 0; k < n; k++) {
        for (int way = 0; way < WAYS; way++)
            out[way * n + k] = median_of(study, study->spread, k, way, summary->last, row, work->v);
        out[WAYS * n + k] = out[CORRECTED * n + k] / out[LEARNED * n + k];
    }
    double *more = out + (WAYS + 1) * n;
    *more++ = summary->largest >= 0
                  ? out[CORRECTED * n + summary->largest] - out[CORRECTED * n + summary->smallest]
                  : (double)NAN;
    for (int way = 0; way < WAYS; way++)
        *more++ = mean_correlation(study, summary, way, row, work);
}

/* Bootstrap sample: runs are drawn first, then their rollouts, because those of a run share a
 * model. */
static void resample_rollouts(const struct opc_spread *study, struct opc_rng *rng, int *row)
{
    for (int run = 0, i = 0; run < study->runs; run++) {
        const int from = (int)opc_rng_below(rng, (uint32_t)study->runs) * study->each;
        for (int r = 0; r < study->each; r++)
            row[i++] = from + (int)opc_rng_below(rng, (uint32_t)study->each);
    }
}

/* Middle and 95 % interval of quantity q. Sorts its sample. */
static struct opc_interval interval_of(double middle, double *sample)
{
    int n = 0;
    for (int b = 0; b < BOOTSTRAPS; b++)
        if (!isnan(sample[b]))
            sample[n++] = sample[b];
    if (n == 0)
        return (struct opc_interval){middle, (double)NAN, (double)NAN};
    return (struct opc_interval){middle, opc_quantile(n, sample, 0.025),
                                 opc_quantile(n, sample, 0.975)};
}

/* Fills the summary; work is the caller's. */
static void sum_up(const struct opc_spread *study, uint64_t seed, struct work *work,
                   struct summary *summary)
{
    double value[MAX_QUANTITIES];
    const int n = study->beta->n, quantities = (WAYS + 1) * n + 1 + WAYS;
    summary->smallest = summary->largest = -1;
    for (int k = 0; k < n; k++) {
        const double beta = study->beta->at[k];
        if (beta > 0 && (summary->smallest < 0 || beta < study->beta->at[summary->smallest]))
            summary->smallest = k;
        if (beta > 0 && (summary->largest < 0 || beta > study->beta->at[summary->largest]))
            summary->largest = k;
    }
    /* Both ways and all beta are taken from the same sample, so that differences are paired. */
    for (int b = 0; b < BOOTSTRAPS; b++) {
        struct opc_rng rng = opc_probe_stream(seed, OPC_DRAW_BOOTSTRAP, 0, b);
        resample_rollouts(study, &rng, work->row);
        quantities_of(study, summary, work->row, work, value);
        for (int q = 0; q < quantities; q++)
            work->sample[q * BOOTSTRAPS + b] = value[q];
    }
    quantities_of(study, summary, NULL, work, value);
    for (int k = 0; k < n; k++) {
        for (int way = 0; way < WAYS; way++) {
            const int q = way * n + k;
            summary->spread[way][k] = interval_of(value[q], work->sample + q * BOOTSTRAPS);
            summary->within[way][k] = study->beta->at[k] > 0
                                          ? spread_tells_error(study, summary, way, k, NULL, work)
                                          : (double)NAN;
        }
        summary->ratio[k] =
            interval_of(value[WAYS * n + k], work->sample + (WAYS * n + k) * BOOTSTRAPS);
    }
    const int rest = (WAYS + 1) * n;
    summary->growth = interval_of(value[rest], work->sample + rest * BOOTSTRAPS);
    for (int way = 0; way < WAYS; way++)
        summary->tells[way] =
            interval_of(value[rest + 1 + way], work->sample + (rest + 1 + way) * BOOTSTRAPS);
}

/* ---- the exhibit ----------------------------------------------------------------------------- */

/* A row for each beta, way and step: quartiles of the spread, and the median error. */
static int write_steps(const struct opc_spread *study, double *v, struct opc_exhibit *exhibit,
                       struct opc_err *err)
{
    static const double QUANTILE[] = {0.5, 0.25, 0.75};
    struct opc_table *table;
    OPC_TRY(
        opc_table_create("beta,model,h,rollouts,spread,spread_low,spread_high,error", &table, err));
    for (int k = 0; k < study->beta->n; k++)
        for (int way = 0; way < WAYS; way++)
            for (int h = 0; h <= study->horizon; h++) {
                const int n = values_of(study, study->spread, k, way, h, NULL, v);
                opc_table_real(table, study->beta->at[k]);
                opc_table_word(table, NAME[way]);
                opc_table_int(table, h);
                opc_table_int(table, n);
                for (int q = 0; q < 3; q++)
                    opc_table_real(table, n ? opc_quantile(n, v, QUANTILE[q]) : (double)NAN);
                opc_table_real(table, median_of(study, study->error, k, way, h, NULL, v));
            }
    const int code = opc_exhibit_table(exhibit, NULL,
                                       "spread of the elites: median and quartiles over rollouts; "
                                       "median error",
                                       table, err);
    opc_table_free(table);
    return code;
}

/* A row for each beta and way, after the step of the comparison. */
static int write_comparison(const struct opc_spread *study, const struct summary *summary,
                            double *v, struct opc_exhibit *exhibit, struct opc_err *err)
{
    struct opc_table *table;
    OPC_TRY(opc_table_create("beta,model,h,spread,spread_low,spread_high,error,correlation", &table,
                             err));
    for (int k = 0; k < study->beta->n; k++)
        for (int way = 0; way < WAYS; way++) {
            const struct opc_interval spread = summary->spread[way][k];
            opc_table_real(table, study->beta->at[k]);
            opc_table_word(table, NAME[way]);
            opc_table_int(table, summary->last);
            opc_table_real(table, spread.middle);
            opc_table_real(table, spread.low);
            opc_table_real(table, spread.high);
            opc_table_real(table, median_of(study, study->error, k, way, summary->last, NULL, v));
            opc_table_real(table, summary->within[way][k]);
        }
    const int code = opc_exhibit_table(exhibit, "beta",
                                       "over beta: median spread with its 95 % bootstrap interval, "
                                       "median error, rank correlation of the two over rollouts",
                                       table, err);
    opc_table_free(table);
    return code;
}

/* Curves of the figure, [betas][ways][horizon + 1] and [ways][betas]. */
struct curves {
    double *h, *over_h;
    double place[OPC_LIST_MAX], spread[WAYS][OPC_LIST_MAX], low[WAYS][OPC_LIST_MAX],
        high[WAYS][OPC_LIST_MAX], error[WAYS][OPC_LIST_MAX];
    char label[OPC_LIST_MAX][24], tick[OPC_LIST_MAX][16];
    const char *word[OPC_LIST_MAX];
};

/* Medians over h, and at the step of the comparison over beta. */
static int curves_make(const struct opc_spread *study, const struct summary *summary, double *v,
                       struct curves *curves, struct opc_err *err)
{
    const int length = study->horizon + 1, n = study->beta->n;
    *curves = (struct curves){0};
    struct opc_block block[] = {
        {&curves->h, (size_t)length, sizeof(double)},
        {&curves->over_h, (size_t)n * WAYS * (size_t)length, sizeof(double)}};
    if (!opc_alloc_all(block, 2))
        return opc_fail(err, OPC_ENOMEM, "not enough memory to draw %d curves", n * WAYS);
    for (int h = 0; h < length; h++)
        curves->h[h] = h;
    for (int k = 0; k < n; k++) {
        curves->place[k] = k;
        snprintf(curves->label[k], sizeof curves->label[k], "beta = %g", study->beta->at[k]);
        snprintf(curves->tick[k], sizeof curves->tick[k], "%g", study->beta->at[k]);
        curves->word[k] = curves->tick[k];
        for (int way = 0; way < WAYS; way++) {
            double *y = curves->over_h + ((size_t)k * WAYS + (size_t)way) * (size_t)length;
            for (int h = 0; h < length; h++)
                y[h] = median_of(study, study->spread, k, way, h, NULL, v);
            curves->spread[way][k] = summary->spread[way][k].middle;
            curves->low[way][k] = summary->spread[way][k].low;
            curves->high[way][k] = summary->spread[way][k].high;
            curves->error[way][k] = median_of(study, study->error, k, way, summary->last, NULL, v);
        }
    }
    return OPC_OK;
}

/* One range for the spread by either way, which are compared; {0, 0}, from the data, if it is 0. */
static struct opc_span span_over_h(const struct curves *curves, size_t n)
{
    struct opc_span span = {0, 0};
    for (size_t i = 0; i < n; i++)
        if (isfinite(curves->over_h[i]))
            span.max = fmax(span.max, 1.03 * curves->over_h[i]);
    return span;
}

/* Above: the spread over h by either way, a line for each beta. Below: spread and error over
 * beta. */
static int draw_uncertainty(const struct opc_spread *study, const struct summary *summary,
                            const struct curves *curves, struct opc_exhibit *exhibit,
                            struct opc_err *err)
{
    enum { MAX = OPC_LIST_MAX };
    const int length = study->horizon + 1, n = study->beta->n;
    struct opc_figure_layer over_h[WAYS][MAX], band[2 * WAYS], error[WAYS];
    char title[2][64];
    for (int way = 0; way < WAYS; way++) {
        const struct opc_figure_layer line = {.mark = OPC_PLOT_LINE,
                                              .colour = COLOUR[way],
                                              .label = NAME[way],
                                              .n = n,
                                              .x = curves->place,
                                              .y = curves->spread[way],
                                              .low = curves->low[way],
                                              .high = curves->high[way]};
        for (int k = 0; k < n; k++)
            over_h[way][k] = (struct opc_figure_layer){
                .mark = OPC_PLOT_LINE,
                .colour = OPC_COLOUR_FIRST + k,
                .label = curves->label[k],
                .n = length,
                .x = curves->h,
                .y = curves->over_h + ((size_t)k * WAYS + (size_t)way) * (size_t)length};
        /* Bands first, lines on top of them. */
        band[way] = band[WAYS + way] = error[way] = line;
        band[way].mark = OPC_PLOT_BAND;
        band[way].label = NULL;
        error[way].y = curves->error[way];
    }
    snprintf(title[0], sizeof title[0], "spread after %d steps", summary->last);
    snprintf(title[1], sizeof title[1], "error after %d steps", summary->last);
    static const char UNIT[] = "standard deviations";
    const struct opc_span spread = span_over_h(curves, (size_t)n * WAYS * (size_t)length);
    const struct opc_panel panel[] = {
        {.title = "spread, MBPO(*), eq. 2",
         .x_label = "h",
         .y_label = UNIT,
         .x = {0, study->horizon},
         .y = spread,
         .layers = n,
         .layer = over_h[LEARNED]},
        {.title = "spread, OPC, eq. 5",
         .x_label = "h",
         .y_label = UNIT,
         .x = {0, study->horizon},
         .y = spread,
         .layers = n,
         .layer = over_h[CORRECTED]},
        {.title = title[0],
         .x_label = "beta",
         .y_label = UNIT,
         .x = {-0.5, n - 0.5},
         .x_words = curves->word,
         .x_word_count = n,
         .layers = 2 * WAYS,
         .layer = band},
        {.title = title[1],
         .x_label = "beta",
         .y_label = UNIT,
         .x = {-0.5, n - 0.5},
         .x_words = curves->word,
         .x_word_count = n,
         .layers = WAYS,
         .layer = error},
    };
    const struct opc_figure figure = {
        .note = "Medians over rollouts; band: 95 % bootstrap interval. Spread: standard deviation "
                "over the elites. beta multiplies the policy's deviation; the recording has beta = "
                "0, which is on-policy. Units are standard deviations of the recorded states.",
        .panels = 4,
        .columns = 2,
        .panel = panel,
        .panel_width = 230,
        .panel_height = 150,
    };
    return opc_exhibit_figure(exhibit, NULL, "spread of the ensemble over h and beta", &figure,
                              err);
}

/* The largest spread over rollouts and steps at one beta. */
static double largest_spread(const struct opc_spread *study, int beta, int way)
{
    double max = 0;
    for (int row = 0; row < study->rows; row++)
        for (int h = 0; h <= study->horizon; h++)
            max = fmax(max, study->spread[opc_spread_offset(study, beta, way, row, h)]);
    return max;
}

/* On-policy: exactly zero by eq. 5, and not by eq. 2. */
static void claim_zero(const struct opc_spread *study, struct opc_exhibit *exhibit)
{
    int zero = -1;
    for (int k = 0; k < study->beta->n; k++)
        if (study->beta->at[k] == 0)
            zero = k;
    static const char CLAIM[] = "On-policy the elites agree by eq. 5, and their spread is zero.";
    if (zero < 0) {
        opc_exhibit_claim(exhibit, OPC_VERDICT_UNDECIDED, CLAIM,
                          "beta = 0 was not measured; it has to be in the list, and seeds do not "
                          "matter");
        return;
    }
    const double opc = largest_spread(study, zero, CORRECTED),
                 model = largest_spread(study, zero, LEARNED);
    opc_exhibit_claim(exhibit, opc == 0 ? OPC_VERDICT_SUPPORTED : OPC_VERDICT_NOT_SUPPORTED, CLAIM,
                      "largest spread of %d elites over %d rollouts of %d steps at beta = 0: %g by "
                      "eq. 5, %.3g standard deviations by eq. 2",
                      study->elites, study->rows, study->horizon, opc, model);
}

/* Why off-policy claims cannot be judged, as the end of a sentence; "" if they can. */
static void say_unable(const struct opc_request *request, const struct summary *summary,
                       char out[OPC_SEEDS_TEXT])
{
    opc_seeds_say_unable(request->missing, request->runs, out);
    if (!request->missing && summary->last == 0)
        snprintf(
            out, OPC_SEEDS_TEXT,
            "; more than half of the rollouts end in their first step, which more seeds do not "
            "change");
}

/* Off-policy: kept, and larger the further the policy is from the recording. */
static void claim_kept(const struct opc_spread *study, const struct summary *summary,
                       const char *unable, struct opc_exhibit *exhibit)
{
    struct opc_seeds_all needed = {0};
    char end[OPC_SEEDS_TEXT] = "";
    const struct opc_interval *near = &summary->spread[CORRECTED][summary->smallest],
                              *far = &summary->spread[CORRECTED][summary->largest],
                              *growth = &summary->growth;
    const enum opc_verdict verdict = *unable                            ? OPC_VERDICT_UNDECIDED
                                     : near->low > 0 && growth->low > 0 ? OPC_VERDICT_SUPPORTED
                                     : near->high == 0 || growth->high < 0
                                         ? OPC_VERDICT_NOT_SUPPORTED
                                         : OPC_VERDICT_UNDECIDED;
    /* Both have to be above 0. */
    for (int k = 0; k < 2; k++) {
        const struct opc_interval *d = k ? growth : near;
        if (!(d->low > 0))
            opc_seeds_join(&needed, opc_seeds_to_clear(d, 0, study->runs, 0), d->middle >= 0);
    }
    if (verdict == OPC_VERDICT_UNDECIDED && !*unable)
        opc_seeds_say(opc_seeds_joined(&needed), study->runs, "seeds", NULL, end);
    opc_exhibit_claim(
        exhibit, verdict,
        "Off-policy the spread is kept, and it grows with the distance from the recording.",
        "median spread by eq. 5 after %d steps [95 %% bootstrap]: %.3g [%.3g, %.3g] at beta = %g, "
        "%.3g [%.3g, %.3g] at beta = %g; difference %.3g [%.3g, %.3g]%s%s",
        summary->last, near->middle, near->low, near->high, study->beta->at[summary->smallest],
        far->middle, far->low, far->high, study->beta->at[summary->largest], growth->middle,
        growth->low, growth->high, unable, end);
}

/* What is kept is worth something: where the elites disagree, they are wrong. */
static void claim_tells(const struct opc_spread *study, const struct summary *summary,
                        const char *unable, struct opc_exhibit *exhibit)
{
    char end[OPC_SEEDS_TEXT] = "";
    const struct opc_interval *opc = &summary->tells[CORRECTED], *model = &summary->tells[LEARNED];
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (int k = 0; k < study->beta->n; k++)
        if (!isnan(summary->within[CORRECTED][k])) {
            low = fmin(low, summary->within[CORRECTED][k]);
            high = fmax(high, summary->within[CORRECTED][k]);
        }
    const enum opc_verdict verdict = *unable         ? OPC_VERDICT_UNDECIDED
                                     : opc->low > 0  ? OPC_VERDICT_SUPPORTED
                                     : opc->high < 0 ? OPC_VERDICT_NOT_SUPPORTED
                                                     : OPC_VERDICT_UNDECIDED;
    if (verdict == OPC_VERDICT_UNDECIDED && !*unable)
        opc_seeds_say(opc_seeds_to_clear(opc, 0, study->runs, 0), study->runs, "seeds",
                      "so far the correlation is 0", end);
    opc_exhibit_claim(
        exhibit, verdict, "Off-policy, eq. 5 is more wrong where its elites disagree more.",
        "rank correlation of spread and error over the rollouts of one beta, after %d "
        "steps, mean over beta > 0 [95 %% bootstrap]: %.3g [%.3g, %.3g] by eq. 5 "
        "(%.3g to %.3g), %.3g [%.3g, %.3g] by eq. 2%s%s",
        summary->last, opc->middle, opc->low, opc->high, low, high, model->middle, model->low,
        model->high, unable, end);
}

/* The paper does not compare the two: how much of the disagreement of eq. 2 is left by eq. 5. */
static void note_ratio(const struct opc_spread *study, const struct summary *summary,
                       struct opc_exhibit *exhibit)
{
    struct opc_text text = {0};
    for (int k = 0; k < study->beta->n; k++) {
        const struct opc_interval *ratio = &summary->ratio[k];
        if (study->beta->at[k] > 0)
            opc_text_addf(&text, "%s%.3g [%.3g, %.3g] at beta = %g", text.used ? ", " : "",
                          ratio->middle, ratio->low, ratio->high, study->beta->at[k]);
    }
    opc_exhibit_note(exhibit, "Median spread after %d steps, eq. 5 / eq. 2 [95 %% bootstrap]: %s.",
                     summary->last, opc_text_get(&text));
    opc_text_free(&text);
}

int opc_spread_show(const struct opc_request *request, const struct opc_spread *study,
                    struct opc_exhibit *exhibit, struct opc_err *err)
{
    struct work work = {0};
    struct summary summary = {0};
    struct curves curves = {0};
    const size_t all = (size_t)study->beta->n * (size_t)study->rows;
    struct opc_block block[] = {
        {&work.row, (size_t)study->rows, sizeof(int)},
        {&work.v, all, sizeof(double)},
        {&work.x, all, sizeof(double)},
        {&work.y, all, sizeof(double)},
        {&work.order, all, sizeof *work.order},
        {&work.sample, MAX_QUANTITIES * (size_t)BOOTSTRAPS, sizeof(double)}};
    if (!opc_alloc_all(block, sizeof block / sizeof *block))
        return opc_fail(err, OPC_ENOMEM, "not enough memory to sum up %d rollouts", study->rows);
    summary.last = last_common_step(study, work.v);
    sum_up(study, request->seed, &work, &summary);
    int code = curves_make(study, &summary, work.v, &curves, err);
    if (!code)
        code = draw_uncertainty(study, &summary, &curves, exhibit, err);
    if (!code)
        code = write_steps(study, work.v, exhibit, err);
    if (!code)
        code = write_comparison(study, &summary, work.v, exhibit, err);
    if (!code) {
        /* Without beta > 0 there is nothing off-policy to claim. */
        char unable[OPC_SEEDS_TEXT];
        say_unable(request, &summary, unable);
        claim_zero(study, exhibit);
        if (summary.largest >= 0) {
            claim_kept(study, &summary, unable, exhibit);
            claim_tells(study, &summary, unable, exhibit);
            note_ratio(study, &summary, exhibit);
        }
        opc_exhibit_note(exhibit,
                         "%d rollouts of %d steps by each of %d elites for each beta, from each of "
                         "%d run%s; model after epoch %d, policy after epoch %d. A rollout leaves "
                         "the statistics when one of its elites' has ended.",
                         study->each, study->horizon, study->elites, study->runs,
                         study->runs == 1 ? "" : "s", study->epoch_of_model,
                         study->epoch_of_policy);
    }
    opc_free(curves.h);
    opc_free(curves.over_h);
    work_free(&work);
    return code;
}
