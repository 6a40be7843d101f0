/* SPDX-License-Identifier: MIT */
/* Figure 13: the error of each state entry, h steps after a recorded state.
 *
 * Invariant: intervals come from a bootstrap over runs first and rollouts second, because
 * rollouts of one run share a model and are not independent. */
#include "study/probe/probe_states.h"

#include "num/stats.h"
#include "opc/mem.h"
#include "study/exhibit/seeds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BOOTSTRAPS = 500 };
/* Median and 95 % range of the error; median and 95 % quantile of its absolute value. */
enum { MIDDLE, LOW, HIGH, ABS_MIDDLE, ABS_HIGH, QUANTITIES };

static const int COLOUR[OPC_BY] = {OPC_COLOUR_MODEL, OPC_COLOUR_OPC};

/* Statistics over rollouts, for every truth, model, entry and step. */
struct summary {
    const struct opc_states *states;
    struct opc_pool *pool;
    uint64_t seed;
    int length;           /* horizon + 1 */
    double *x;            /* [length] 0, 1, ..., horizon */
    double *value;        /* [truths][by][quantities][obs][length] */
    int *count;           /* [truths][by][length] number of rollouts that last that long */
    int last[OPC_TRUTHS]; /* step h of the comparison: half of both models' rollouts are left */
    double *ratio, *ratio_low, *ratio_high; /* [truths][obs] of median |error|, OPC / MBPO(*) */
    double *scratch;                        /* [threads][2][rows or BOOTSTRAPS] */
    int *rows;                              /* [threads][rows or BOOTSTRAPS] */
    size_t capacity;                        /* of one of them */
};

/* One quantity of one entry over h. */
static double *summary_series(const struct summary *summary, int truth, int by, int quantity, int k)
{
    const size_t line = (((size_t)truth * OPC_BY + (size_t)by) * QUANTITIES + (size_t)quantity) *
                            (size_t)summary->states->obs +
                        (size_t)k;
    return summary->value + line * (size_t)summary->length;
}

/* Number of rollouts over h. */
static int *summary_counts(const struct summary *summary, int truth, int by)
{
    return summary->count + ((size_t)truth * OPC_BY + (size_t)by) * (size_t)summary->length;
}

/* Accepts a summary of which nothing was allocated. */
static void summary_free(struct summary *summary)
{
    opc_free(summary->x);
    opc_free(summary->value);
    opc_free(summary->count);
    opc_free(summary->ratio);
    opc_free(summary->ratio_low);
    opc_free(summary->ratio_high);
    opc_free(summary->scratch);
    opc_free(summary->rows);
}

/* Allocates; states, pool, seed and length must be set. */
static int summary_make(struct summary *summary, struct opc_err *err)
{
    const struct opc_states *states = summary->states;
    const size_t obs = (size_t)states->obs, n = (size_t)summary->length;
    /* Scratch serves both as a sample of rollouts and as a list of bootstrap ratios. */
    summary->capacity = (size_t)(states->rows > BOOTSTRAPS ? states->rows : BOOTSTRAPS);
    summary->x = opc_alloc(n, sizeof *summary->x);
    summary->value = opc_alloc(OPC_TRUTHS * OPC_BY * QUANTITIES * obs, n * sizeof *summary->value);
    summary->count = opc_alloc(OPC_TRUTHS * OPC_BY, n * sizeof *summary->count);
    summary->ratio = opc_alloc(OPC_TRUTHS * obs, sizeof *summary->ratio);
    summary->ratio_low = opc_alloc(OPC_TRUTHS * obs, sizeof *summary->ratio_low);
    summary->ratio_high = opc_alloc(OPC_TRUTHS * obs, sizeof *summary->ratio_high);
    summary->scratch = opc_alloc((size_t)opc_pool_threads(summary->pool) * 2,
                                 summary->capacity * sizeof *summary->scratch);
    summary->rows = opc_alloc((size_t)opc_pool_threads(summary->pool),
                              summary->capacity * sizeof *summary->rows);
    if (!summary->x || !summary->value || !summary->count || !summary->ratio ||
        !summary->ratio_low || !summary->ratio_high || !summary->scratch || !summary->rows) {
        summary_free(summary);
        return opc_fail(err, OPC_ENOMEM, "not enough memory to sum up %d rollouts", states->rows);
    }
    for (int h = 0; h < summary->length; h++)
        summary->x[h] = h;
    return OPC_OK;
}

/* Scratch 0 or 1 of a worker. */
static double *scratch_of(const struct summary *summary, int worker, int which)
{
    return summary->scratch + ((size_t)worker * 2 + (size_t)which) * summary->capacity;
}

/* ---- quantiles ------------------------------------------------------------------------------- */

/* Worker: quantiles over rollouts; an item is one entry of one model and truth. */
static void sum_up_entries(void *ctx, int first, int end, int worker)
{
    struct summary *summary = ctx;
    const struct opc_states *states = summary->states;
    double *v = scratch_of(summary, worker, 0);
    for (int item = first; item < end; item++) {
        /* Item = (truth * models + by) * obs + k. */
        const int k = item % states->obs, by = item / states->obs % OPC_BY,
                  truth = item / states->obs / OPC_BY;
        for (int h = 0; h < summary->length; h++) {
            /* Errors of the rollouts that have not ended. */
            int n = 0;
            for (int row = 0; row < states->rows; row++) {
                const double e = opc_states_error(states, truth, by, row, h, k);
                if (!isnan(e))
                    v[n++] = e;
            }
            /* All entries of a state end together, so one of them counts the rollouts. */
            if (k == 0)
                summary_counts(summary, truth, by)[h] = n;
            summary_series(summary, truth, by, MIDDLE, k)[h] =
                n ? opc_quantile(n, v, 0.5) : (double)NAN;
            summary_series(summary, truth, by, LOW, k)[h] =
                n ? opc_quantile(n, v, 0.025) : (double)NAN;
            summary_series(summary, truth, by, HIGH, k)[h] =
                n ? opc_quantile(n, v, 0.975) : (double)NAN;
            /* The same for absolute values; v is no longer needed with signs. */
            for (int i = 0; i < n; i++)
                v[i] = fabs(v[i]);
            summary_series(summary, truth, by, ABS_MIDDLE, k)[h] =
                n ? opc_quantile(n, v, 0.5) : (double)NAN;
            summary_series(summary, truth, by, ABS_HIGH, k)[h] =
                n ? opc_quantile(n, v, 0.95) : (double)NAN;
        }
    }
}

/* ---- OPC / MBPO(*) --------------------------------------------------------------------------- */

/* Ratio of two medians; 0 / 0 counts as 1, x / 0 as infinite. */
static double ratio_of(double corrected, double learned)
{
    if (isnan(corrected) || isnan(learned))
        return (double)NAN;
    if (learned > 0)
        return corrected / learned;
    return corrected > 0 ? HUGE_VAL : 1;
}

/* Median |error| at step h over a sample of rollouts (row NULL: all); NaN if none lasts that
 * long. */
static double middle_of(const struct summary *summary, int truth, int by, int k, int h,
                        const int *row, double *v)
{
    int n = 0;
    for (int i = 0; i < summary->states->rows; i++) {
        const double e = fabs(opc_states_error(summary->states, truth, by, row ? row[i] : i, h, k));
        if (!isnan(e))
            v[n++] = e;
    }
    return n ? opc_quantile(n, v, 0.5) : (double)NAN;
}

/* Bootstrap sample: runs are drawn first, then their rollouts, because those of a run share a
 * model. */
static void resample_rollouts(const struct opc_states *states, struct opc_rng *rng, int *row)
{
    for (int run = 0, i = 0; run < states->runs; run++) {
        const int from = (int)opc_rng_below(rng, (uint32_t)states->runs) * states->each;
        for (int r = 0; r < states->each; r++)
            row[i++] = from + (int)opc_rng_below(rng, (uint32_t)states->each);
    }
}

/* Worker: ratio of the two models' median errors with its bootstrap interval. */
static void compare_entries(void *ctx, int first, int end, int worker)
{
    struct summary *summary = ctx;
    const struct opc_states *states = summary->states;
    double *v = scratch_of(summary, worker, 0), *ratios = scratch_of(summary, worker, 1);
    int *row = summary->rows + (size_t)worker * summary->capacity;
    /* Item = truth * obs + k; h is the step of the comparison. */
    for (int item = first; item < end; item++) {
        const int k = item % states->obs, truth = item / states->obs, h = summary->last[truth];
        int n = 0;
        /* Both models are evaluated on the same sample, so the ratio is paired. */
        for (int b = 0; b < BOOTSTRAPS; b++) {
            struct opc_rng rng = opc_probe_stream(summary->seed, OPC_DRAW_BOOTSTRAP, item, b);
            resample_rollouts(states, &rng, row);
            const double r = ratio_of(middle_of(summary, truth, OPC_BY_CORRECTED, k, h, row, v),
                                      middle_of(summary, truth, OPC_BY_LEARNED, k, h, row, v));
            if (!isnan(r))
                ratios[n++] = r;
        }
        /* The point estimate uses all rollouts, each once. */
        summary->ratio[item] = ratio_of(middle_of(summary, truth, OPC_BY_CORRECTED, k, h, NULL, v),
                                        middle_of(summary, truth, OPC_BY_LEARNED, k, h, NULL, v));
        summary->ratio_low[item] = n ? opc_quantile(n, ratios, 0.025) : (double)NAN;
        summary->ratio_high[item] = n ? opc_quantile(n, ratios, 0.975) : (double)NAN;
    }
}

/* Allocates and computes the statistics. */
static int summary_of(const struct opc_states *states, const struct opc_request *request,
                      struct summary *out, struct opc_err *err)
{
    struct summary summary = {.states = states,
                              .pool = request->pool,
                              .seed = request->seed,
                              .length = states->horizon + 1};
    const int code = summary_make(&summary, err);
    if (code)
        return code;
    opc_pool_each(summary.pool, OPC_TRUTHS * OPC_BY * states->obs, 1, sum_up_entries, &summary);
    /* Compare at the last step that at least half of the rollouts of both models reach. */
    for (int truth = 0; truth < OPC_TRUTHS; truth++)
        for (int h = 0; h < summary.length; h++)
            if (2 * summary_counts(&summary, truth, OPC_BY_LEARNED)[h] >= states->rows &&
                2 * summary_counts(&summary, truth, OPC_BY_CORRECTED)[h] >= states->rows)
                summary.last[truth] = h;
    opc_pool_each(summary.pool, OPC_TRUTHS * states->obs, 1, compare_entries, &summary);
    *out = summary;
    return OPC_OK;
}

/* ---- the exhibit ----------------------------------------------------------------------------- */

/* All quantities of all entries, for both truths and both models. */
static int write_state_errors(const struct summary *summary, const struct opc_probe *probe,
                              struct opc_exhibit *exhibit, struct opc_err *err)
{
    struct opc_table *table;
    char name[32];
    int code = opc_table_create("true,model,entry,h,rollouts,median,low,high,median_abs,p95_abs",
                                &table, err);
    if (code)
        return code;
    for (int truth = 0; truth < OPC_TRUTHS; truth++)
        for (int by = 0; by < OPC_BY; by++)
            for (int k = 0; k < summary->states->obs; k++)
                for (int h = 0; h < summary->length; h++) {
                    opc_probe_entry_name(probe, k, name);
                    opc_table_word(table, OPC_TRUTH_NAME[truth]);
                    opc_table_word(table, OPC_BY_NAME[by]);
                    opc_table_word(table, name);
                    opc_table_int(table, h);
                    opc_table_int(table, summary_counts(summary, truth, by)[h]);
                    for (int q = 0; q < QUANTITIES; q++)
                        opc_table_real(table, summary_series(summary, truth, by, q, k)[h]);
                }
    const bool own = summary->states->own;
    code = opc_exhibit_table(exhibit, own ? "own" : NULL,
                             own ? "the same with each method's own model"
                                 : "errors of the state: median, 2.5 % and 97.5 % quantile of "
                                   "true - predicted; median and 95 % quantile of its size",
                             table, err);
    opc_table_free(table);
    return code;
}

/* Number of entries that fill rows of 3 to 5 panels evenly, at most `shown`; *columns: row
 * length. */
static int arrange(int shown, int *columns)
{
    for (; shown > 5; shown--)
        for (*columns = 5; *columns >= 3; --*columns)
            if (shown % *columns == 0)
                return shown;
    *columns = shown;
    return shown;
}

enum { LAYERS = 4 };

/* A panel for each truth and entry. `size` false: errors with a band; true: their absolute
 * values on a log axis. */
static int draw_state_errors(const struct summary *summary, const struct opc_probe *probe, int max,
                             bool size, struct opc_exhibit *exhibit, struct opc_err *err)
{
    int columns;
    const int shown = arrange(max < summary->states->obs ? max : summary->states->obs, &columns);
    const int panels = OPC_TRUTHS * shown;
    /* Panels, their layers and titles; freed below in any case. */
    struct opc_panel *panel = opc_alloc((size_t)panels, sizeof *panel);
    struct opc_figure_layer *layer = opc_alloc((size_t)panels * LAYERS, sizeof *layer);
    char(*title)[64] = opc_alloc((size_t)panels, sizeof *title);
    int code =
        panel && layer && title ? OPC_OK : opc_fail(err, OPC_ENOMEM, "not enough memory to draw");
    for (int i = 0; i < panels && !code; i++) {
        const int truth = i / shown, k = i % shown;
        struct opc_figure_layer *at = layer + (size_t)i * LAYERS;
        char name[32];
        opc_probe_entry_name(probe, k, name);
        snprintf(title[i], sizeof *title, "%s, true: %s", name, OPC_TRUTH_NAME[truth]);
        panel[i] = (struct opc_panel){.title = title[i],
                                      .x_label = "h",
                                      .y_label = size ? "|true - predicted|" : "true - predicted",
                                      .x = {0, summary->states->horizon},
                                      .log_y = size,
                                      .layers = LAYERS,
                                      .layer = at};
        /* Bands (or dashed quantiles) first, lines on top of them. */
        for (int by = 0; by < OPC_BY; by++) {
            struct opc_figure_layer one = {.colour = COLOUR[by],
                                           .n = summary->length,
                                           .x = summary->x,
                                           .label = OPC_BY_NAME[by]};
            /* Two layers for each model: the spread, and the median above it. */
            at[by] = at[OPC_BY + by] = one;
            at[by].mark = size ? OPC_PLOT_LINE : OPC_PLOT_BAND;
            at[by].dash = size;
            at[by].label = NULL;
            at[by].y = summary_series(summary, truth, by, ABS_HIGH, k);
            at[by].low = summary_series(summary, truth, by, LOW, k);
            at[by].high = summary_series(summary, truth, by, HIGH, k);
            at[OPC_BY + by].mark = OPC_PLOT_LINE;
            at[OPC_BY + by].y = summary_series(summary, truth, by, size ? ABS_MIDDLE : MIDDLE, k);
        }
    }
    /* Two figures share everything but their layers and this note. */
    const struct opc_figure figure = {
        .note = size ? "Line: median of the error's size; dashed: its 95 % quantile. At h = 0 it "
                       "is 0 and left out."
                     : "Line: median; band: 95 % of the rollouts. True is how the recording went "
                       "on (the paper's), or what the environment does with the rollout's own "
                       "actions.",
        .panels = panels,
        .columns = columns,
        .panel = panel,
    };
    static const char *const PART[2][2] = {{NULL, "size"}, {"own", "own-size"}};
    static const char *const NAME[2][2] = {
        {"errors of the state", "size of the errors, logarithmic"},
        {"errors of the state with each method's own model",
         "size of the errors with each method's own model, logarithmic"}};
    const bool own = summary->states->own;
    if (!code)
        code = opc_exhibit_figure(exhibit, PART[own][size], NAME[own][size], &figure, err);
    opc_free(panel);
    opc_free(layer);
    opc_free(title);
    return code;
}

/* Runs after which the interval of an entry's ratio lies on one side of 1. Ratios are compared by
 * their logarithms, in which the interval is about symmetric; where one has none, 0 or infinite, as
 * they are. */
static double seeds_of_ratio(const struct summary *summary, int item)
{
    struct opc_interval d = {summary->ratio[item], summary->ratio_low[item],
                             summary->ratio_high[item]};
    double level = 1;
    if (d.low > 0 && isfinite(d.high)) {
        d = (struct opc_interval){log(d.middle), log(d.low), log(d.high)};
        level = 0;
    }
    return opc_seeds_to_clear(&d, level, summary->states->runs, 0);
}

/* Supported if the whole interval of every entry's ratio is below 1. */
static void claim_smaller(const struct summary *summary, const struct opc_probe *probe, int truth,
                          struct opc_exhibit *exhibit)
{
    static const char *const SENTENCE[2][OPC_TRUTHS] = {
        {"Beside the recording, the errors are smaller with OPC in every state entry.",
         "Compared with what the environment does with the same actions, too."},
        {"With each method's own model, too, the errors beside the recording are smaller with OPC "
         "in every state entry.",
         "With each method's own model, too, those compared with what the environment does with "
         "the same actions are."}};
    const struct opc_states *states = summary->states;
    const char *const claim = SENTENCE[states->own][truth];
    struct opc_text text = {0};
    char name[32], end[OPC_SEEDS_TEXT] = "";
    struct opc_seeds_all needed = {0};
    bool all = true, none = false;
    /* A single entry that is clearly larger refutes the claim. */
    for (int k = 0; k < states->obs; k++) {
        const int item = truth * states->obs + k;
        all &= summary->ratio_high[item] < 1;
        none |= summary->ratio_low[item] > 1;
        if (!(summary->ratio_high[item] < 1))
            opc_seeds_join(&needed, seeds_of_ratio(summary, item), summary->ratio[item] <= 1);
        if (states->obs > 12 && summary->ratio_high[item] < 1)
            continue; /* many entries: list only those that are not smaller */
        opc_probe_entry_name(probe, k, name);
        opc_text_addf(&text, "%s%s %.3g [%.3g, %.3g]", text.used ? ", " : "", name,
                      summary->ratio[item], summary->ratio_low[item], summary->ratio_high[item]);
    }
    const enum opc_verdict verdict = all    ? OPC_VERDICT_SUPPORTED
                                     : none ? OPC_VERDICT_NOT_SUPPORTED
                                            : OPC_VERDICT_UNDECIDED;
    opc_seeds_say_unable(states->missing, states->runs, end);
    const bool unable = *end;
    if (verdict == OPC_VERDICT_UNDECIDED && !unable)
        opc_seeds_say(opc_seeds_joined(&needed), states->runs, "seeds", NULL, end);
    if (summary->last[truth] == 0)
        opc_exhibit_claim(
            exhibit, OPC_VERDICT_UNDECIDED, claim,
            "more than half of the rollouts end in their first step, which more seeds "
            "do not change");
    else
        opc_exhibit_claim(exhibit, unable ? OPC_VERDICT_UNDECIDED : verdict, claim,
                          "median |error| after %d step%s, OPC / MBPO(*) [95 %% bootstrap]: %s%s",
                          summary->last[truth], summary->last[truth] == 1 ? "" : "s",
                          text.used ? opc_text_get(&text) : "below 1 in all", end);
    opc_text_free(&text);
}

/* The largest error at h = 0, where prediction and truth start from the same state. */
static double largest_at_start(const struct opc_states *states)
{
    double max = 0;
    for (int truth = 0; truth < OPC_TRUTHS; truth++)
        for (int by = 0; by < OPC_BY; by++)
            for (int row = 0; row < states->rows; row++)
                for (int k = 0; k < states->obs; k++)
                    max = fmax(max, fabs(opc_states_error(states, truth, by, row, 0, k)));
    return max;
}

/* All claims of the figure. */
static void claim_states(const struct summary *summary, const struct opc_probe *probe,
                         struct opc_exhibit *exhibit)
{
    const double start = largest_at_start(summary->states);
    for (int truth = 0; truth < OPC_TRUTHS; truth++)
        claim_smaller(summary, probe, truth, exhibit);
    if (summary->states->own) /* the rest does not depend on the model of eq. 2 */
        return;
    /* Both must be zero exactly: at h = 0 nothing was predicted, and Lemma 1 holds to the bit. */
    opc_exhibit_claim(exhibit, start == 0 ? OPC_VERDICT_SUPPORTED : OPC_VERDICT_NOT_SUPPORTED,
                      "The error is zero at h = 0.", "largest error at h = 0: %g", start);
    static const char LEMMA[] = "Without exploration OPC has no error at all (Lemma 1).";
    if (isnan(summary->states->without_noise)) {
        opc_exhibit_claim(
            exhibit, OPC_VERDICT_UNDECIDED, LEMMA,
            "it is not about planners, whose actions depend on earlier plans; seeds do "
            "not matter");
        return;
    }
    opc_exhibit_claim(exhibit,
                      summary->states->without_noise == 0 ? OPC_VERDICT_SUPPORTED
                                                          : OPC_VERDICT_NOT_SUPPORTED,
                      LEMMA, "largest error of %d rollouts of %d steps without exploration: %g",
                      summary->states->each * summary->states->runs, summary->states->horizon,
                      summary->states->without_noise);
}

/* One part of the exhibit: collect, summarise, two figures, a table, claims and notes. */
static int make_states_part(const struct opc_request *request, const struct opc_states_runs *runs,
                            bool own, const struct opc_probe_states_config *set,
                            struct opc_exhibit *exhibit, struct opc_err *err)
{
    struct opc_states states;
    struct summary summary = {0};
    struct opc_probe probe; /* for names */
    int code = opc_states_collect(request, runs, own, set, &states, err);
    if (code)
        return code;
    code = opc_probe_open(runs->run[0], request->pool, request->seed, &probe, err);
    if (!code) {
        code = summary_of(&states, request, &summary, err);
        if (!code)
            code = draw_state_errors(&summary, &probe, set->panels, false, exhibit, err);
        if (!code)
            code = draw_state_errors(&summary, &probe, set->panels, true, exhibit, err);
        if (!code)
            code = write_state_errors(&summary, &probe, exhibit, err);
        if (!code) {
            claim_states(&summary, &probe, exhibit);
            opc_states_notes(&states, exhibit);
        }
        opc_probe_close(&probe);
    }
    summary_free(&summary);
    opc_states_free(&states);
    return code;
}

/* The analysis itself: with one network for both, then with each method's own. */
static int probe_states_make(const struct opc_request *request, const void *settings,
                             struct opc_exhibit *exhibit, struct opc_err *err)
{
    struct opc_states_runs runs;
    OPC_TRY(opc_states_runs_find(request, &runs, err));
    int code = make_states_part(request, &runs, false, settings, exhibit, err);
    if (!code && runs.pairs > 0)
        code = make_states_part(request, &runs, true, settings, exhibit, err);
    opc_states_runs_free(&runs);
    return code;
}

#define SELF struct opc_probe_states_config
static const struct opc_section section = OPC_SECTION("probe", "", OPC_PROBE_STATES_FIELDS);
#undef SELF

const struct opc_analysis opc_probe_states = {
    .name = "probe_states",
    .help = "errors of learned and corrected model, step by step along real episodes (Figure 13)",
    .settings = &section,
    .needs_models = true,
    .make = probe_states_make,
};
