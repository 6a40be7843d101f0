/* SPDX-License-Identifier: MIT */
/* Figure 14: one state entry along imagined rollouts, drawn rollout by rollout.
 *
 * Invariant: a rollout that has ended is NaN from there on, which interrupts its line; no line
 * may connect two rollouts. */
#include "study/probe/probe_states.h"

#include "opc/mem.h"
#include "study/exhibit/seeds.h"

#include <math.h>
#include <stdio.h>

/* Entry k after h steps of a rollout, from one of the arrays of struct opc_states. */
static double state_value(const struct opc_states *states, const double *of, int row, int h, int k)
{
    return of[((size_t)row * ((size_t)states->horizon + 1) + (size_t)h) * (size_t)states->obs +
              (size_t)k];
}

/* Range of an entry over the rollouts of one run, or of all (run = -1). */
struct extent {
    double min, max;
    int above_one; /* number of rollouts with a value above 1, impossible for a cosine */
};

static struct extent extent_of(const struct opc_states *states, const double *of, int k, int run)
{
    const int first = run < 0 ? 0 : run * states->each,
              rows = run < 0 ? states->rows : states->each;
    /* NaN marks steps after the end of a rollout and does not count. */
    struct extent x = {.min = HUGE_VAL, .max = -HUGE_VAL};
    for (int row = first; row < first + rows; row++) {
        bool above = false;
        for (int h = 0; h <= states->horizon; h++) {
            const double v = state_value(states, of, row, h, k);
            if (isnan(v))
                continue;
            x.min = fmin(x.min, v);
            x.max = fmax(x.max, v);
            above |= v > 1;
        }
        x.above_one += above;
    }
    return x;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* All rollouts as one line with gaps: one layer instead of hundreds. */
struct lines {
    int n;
    double *x;                                  /* [n] h of each point, a gap after each rollout */
    double *predicted[OPC_BY], *played[OPC_BY]; /* [n] */
    double *end_x[OPC_BY], *end_y[OPC_BY];      /* [ends] where rollouts meet a terminal state */
    int ends[OPC_BY];
};

/* Accepts lines of which nothing was allocated. */
static void lines_free(struct lines *lines)
{
    opc_free(lines->x);
    for (int by = 0; by < OPC_BY; by++) {
        opc_free(lines->predicted[by]);
        opc_free(lines->played[by]);
        opc_free(lines->end_x[by]);
        opc_free(lines->end_y[by]);
    }
}

/* Collects the lines of the first run; those of more runs would only cover each other. */
static int lines_make(const struct opc_states *states, int k, struct lines *lines,
                      struct opc_err *err)
{
    /* Points of one rollout, and the gap after it. */
    const int each = states->horizon + 2;
    const size_t rows = (size_t)states->each;
    *lines = (struct lines){.n = states->each * each};
    const size_t n = (size_t)lines->n;
    /* One array for x, four for each model. */
    struct opc_block block[1 + 4 * OPC_BY] = {{&lines->x, n, sizeof(double)}}, *at = block + 1;
    for (int by = 0; by < OPC_BY; by++) {
        *at++ = (struct opc_block){&lines->predicted[by], n, sizeof(double)};
        *at++ = (struct opc_block){&lines->played[by], n, sizeof(double)};
        *at++ = (struct opc_block){&lines->end_x[by], rows, sizeof(double)};
        *at++ = (struct opc_block){&lines->end_y[by], rows, sizeof(double)};
    }
    if (!opc_alloc_all(block, sizeof block / sizeof *block))
        return opc_fail(err, OPC_ENOMEM, "not enough memory to draw %d rollouts", states->each);
    /* Point by point: NaN at the last position of each rollout interrupts the line. */
    for (int i = 0; i < lines->n; i++) {
        const int row = i / each, h = i % each;
        lines->x[i] = h;
        for (int by = 0; by < OPC_BY; by++) {
            const bool gap = h > states->horizon;
            lines->predicted[by][i] =
                gap ? (double)NAN : state_value(states, states->predicted[by], row, h, k);
            lines->played[by][i] =
                gap ? (double)NAN
                    : state_value(states, states->truth[OPC_TRUE_PLAYED][by], row, h, k);
        }
    }
    /* Dots where a rollout meets a terminal state. */
    for (int by = 0; by < OPC_BY; by++)
        for (int row = 0; row < states->each; row++) {
            const int h = states->ended[by][row];
            if (h == 0)
                continue;
            lines->end_x[by][lines->ends[by]] = h;
            lines->end_y[by][lines->ends[by]++] =
                state_value(states, states->predicted[by], row, h, k);
        }
    return OPC_OK;
}

/* Rows of panels: everything, and closer; columns: the two models and the environment. */
enum { SCALES = 2, WAYS = OPC_BY + 1, LAYERS = 2 };

/* One scale for each row: the range of the predictions, and the range of the environment, of the
 * run that is drawn. */
static void set_scales(const struct opc_states *states, int k, struct opc_span span[SCALES])
{
    for (int near = 0; near < SCALES; near++) {
        double min = HUGE_VAL, max = -HUGE_VAL;
        for (int by = 0; by < OPC_BY; by++) {
            const struct extent x = extent_of(
                states, near ? states->truth[OPC_TRUE_PLAYED][by] : states->predicted[by], k, 0);
            min = fmin(min, x.min);
            max = fmax(max, x.max);
        }
        /* A closer look leaves a quarter of the range free on each side; equal values get 0.01. */
        const double margin = max > min ? (near ? 0.25 : 0.03) * (max - min) : 0.01;
        span[near] = (struct opc_span){min - margin, max + margin};
    }
}

/* Six panels: MBPO(*), OPC and environment, once in full and once closer. */
static int draw_trajectories(const struct opc_states *states, const struct lines *lines, int k,
                             const char *name, struct opc_exhibit *exhibit, struct opc_err *err)
{
    static const char *const TITLE[WAYS] = {"MBPO(*)", "OPC", "environment"};
    static const int INK[WAYS] = {OPC_COLOUR_MODEL, OPC_COLOUR_OPC, OPC_COLOUR_TRUE};
    struct opc_panel panel[SCALES * WAYS];
    struct opc_figure_layer layer[SCALES * WAYS][LAYERS];
    struct opc_span span[SCALES];
    char title[SCALES * WAYS][64];
    set_scales(states, k, span);
    /* First row in full, second row closer; columns are models and environment. */
    for (int i = 0; i < SCALES * WAYS; i++) {
        const int way = i % WAYS, near = i / WAYS;
        const bool imagined = way < OPC_BY;
        snprintf(title[i], sizeof title[i], "%s%s", TITLE[way], near ? ", closer" : "");
        panel[i] = (struct opc_panel){.title = title[i],
                                      .x_label = "h",
                                      .y_label = name,
                                      .x = {0, states->horizon},
                                      .y = span[near],
                                      .layers = imagined ? LAYERS : 1,
                                      .layer = layer[i]};
        /* Thin lines: there are as many as rollouts. */
        layer[i][0] = (struct opc_figure_layer){
            .mark = OPC_PLOT_LINE,
            .colour = INK[way],
            .label = imagined ? OPC_BY_NAME[way] : "environment",
            .n = lines->n,
            .x = lines->x,
            .y = imagined ? lines->predicted[way] : lines->played[OPC_BY_CORRECTED],
            .width = 0.5};
        if (imagined)
            layer[i][1] = (struct opc_figure_layer){.mark = OPC_PLOT_DOTS,
                                                    .colour = OPC_COLOUR_GREY,
                                                    .label = "ends in a terminal state",
                                                    .n = lines->ends[way],
                                                    .x = lines->end_x[way],
                                                    .y = lines->end_y[way]};
    }
    const struct opc_figure figure = {
        .note =
            "Each line is one rollout of the first run; the environment is given the actions of "
            "OPC. Above: all that is predicted; below: near where the environment stays.",
        .panels = SCALES * WAYS,
        .columns = WAYS,
        .panel = panel,
    };
    return opc_exhibit_figure(exhibit, states->own ? "own" : NULL,
                              states->own
                                  ? "trajectories of one state entry with each method's own model"
                                  : "trajectories of one state entry",
                              &figure, err);
}

/* ---- the exhibit ----------------------------------------------------------------------------- */

/* A row for each step of each rollout, with both truths next to the prediction. */
static int write_trajectories(const struct opc_states *states, int k, struct opc_exhibit *exhibit,
                              struct opc_err *err)
{
    struct opc_table *table;
    int code = opc_table_create("run,rollout,model,h,predicted,recording,environment", &table, err);
    if (code)
        return code;
    for (int row = 0; row < states->rows; row++)
        for (int by = 0; by < OPC_BY; by++)
            for (int h = 0; h <= states->horizon; h++) {
                opc_table_int(table, row / states->each + 1);
                opc_table_int(table, row % states->each + 1);
                opc_table_word(table, OPC_BY_NAME[by]);
                opc_table_int(table, h);
                opc_table_real(table, state_value(states, states->predicted[by], row, h, k));
                opc_table_real(
                    table, state_value(states, states->truth[OPC_TRUE_RECORDED][by], row, h, k));
                opc_table_real(table,
                               state_value(states, states->truth[OPC_TRUE_PLAYED][by], row, h, k));
            }
    code = opc_exhibit_table(exhibit, states->own ? "own" : NULL,
                             states->own ? "every trajectory with each method's own model"
                                         : "every trajectory; empty where it has ended",
                             table, err);
    opc_table_free(table);
    return code;
}

int opc_states_too_early(const struct opc_states *states, int by, int run)
{
    const int first = run < 0 ? 0 : run * states->each,
              rows = run < 0 ? states->rows : states->each;
    int n = 0;
    /* The horizon itself is no early end, and an end that the environment shares is not too
     * early. */
    for (int row = first; row < first + rows; row++) {
        const int h = states->ended[by][row];
        n += h > 0 && h < states->horizon && states->played_ended[by][row] == 0;
    }
    return n;
}

/* How far a range extends beyond another one. */
static double leaves_range_by(const struct extent *x, const struct extent *range)
{
    return fmax(0, fmax(range->min - x->min, x->max - range->max));
}

/* A claim's sentence, with the words that say whose model it is about before it. */
static const char *claim_text(const struct opc_states *states, const char *sentence, char out[160])
{
    snprintf(out, 160, "%s%s", states->own ? "With each method's own model: " : "", sentence);
    return out;
}

/* What entry k does in one run, or in all (run = -1). Each model is compared with the environment
 * under its own actions. */
struct course {
    struct extent model, opc, with_model, with_opc; /* the last two: of the environment */
    double model_leaves, opc_leaves;                /* the range of the environment, by so much */
    int model_early, opc_early;                     /* rollouts that end too early */
};

static struct course course_of(const struct opc_states *states, int k, int run)
{
    struct course c = {
        .model = extent_of(states, states->predicted[OPC_BY_LEARNED], k, run),
        .opc = extent_of(states, states->predicted[OPC_BY_CORRECTED], k, run),
        .with_model = extent_of(states, states->truth[OPC_TRUE_PLAYED][OPC_BY_LEARNED], k, run),
        .with_opc = extent_of(states, states->truth[OPC_TRUE_PLAYED][OPC_BY_CORRECTED], k, run),
        .model_early = opc_states_too_early(states, OPC_BY_LEARNED, run),
        .opc_early = opc_states_too_early(states, OPC_BY_CORRECTED, run),
    };
    c.model_leaves = leaves_range_by(&c.model, &c.with_model);
    c.opc_leaves = leaves_range_by(&c.opc, &c.with_opc);
    return c;
}

/* A claim that is judged run by run, because rollouts of one run share policy and model: it holds
 * in `holds` of them. */
static void claim_in_runs(const struct opc_states *states, int holds, const char *sentence,
                          const char *what, struct opc_exhibit *exhibit)
{
    char text[160], end[OPC_SEEDS_TEXT];
    opc_seeds_say_unable(states->missing, states->runs, end);
    const enum opc_verdict verdict =
        *end ? OPC_VERDICT_UNDECIDED : opc_seeds_verdict(holds, states->runs);
    if (verdict == OPC_VERDICT_UNDECIDED && !*end)
        snprintf(end, sizeof end, "; no fewer than %d seeds instead of %d could decide it",
                 opc_seeds_to_solve(holds, states->runs), states->runs);
    opc_exhibit_claim(exhibit, verdict, claim_text(states, sentence, text),
                      "it holds in %d of %d runs (supported: in three quarters of them; not: in "
                      "fewer than half). %s%s",
                      holds, states->runs, what, end);
}

/* Stays near the environment; impossible values; ends that come too early. */
static void claim_trajectories(const struct opc_states *states, int k, bool cosine,
                               struct opc_exhibit *exhibit)
{
    enum { WHAT = 400 };
    const struct course all = course_of(states, k, -1);
    int near = 0, beyond = 0, opc_beyond = 0, earlier = 0;
    char what[WHAT];
    for (int run = 0; run < states->runs; run++) {
        const struct course c = course_of(states, k, run);
        near += c.model_leaves > 0 && 10 * c.opc_leaves <= c.model_leaves;
        /* A margin of 0.01 above 1 keeps rounding and small errors from deciding. */
        beyond += c.model.max > 1.01;
        opc_beyond += c.opc.max > 1.01;
        earlier += c.model_early > c.opc_early;
    }
    snprintf(what, sizeof what,
             "Over all runs OPC lies in [%.5g, %.5g] and the environment with its actions in "
             "[%.5g, %.5g], MBPO(*) in [%.5g, %.5g] and the environment with those in [%.5g, "
             "%.5g]: OPC leaves the range of the environment by %.3g, MBPO(*) by %.3g (stays: by "
             "a tenth of that or less)",
             all.opc.min, all.opc.max, all.with_opc.min, all.with_opc.max, all.model.min,
             all.model.max, all.with_model.min, all.with_model.max, all.opc_leaves,
             all.model_leaves);
    claim_in_runs(states, near,
                  cosine ? "OPC stays near 1, where the environment is; MBPO(*) goes astray."
                         : "OPC stays where the environment is; MBPO(*) goes astray.",
                  what, exhibit);
    if (cosine) {
        snprintf(what, sizeof what,
                 "OPC does in %d (takes: above 1.01). Of %d rollouts, above 1 at some step: %d by "
                 "MBPO(*), up to %.5g; %d by OPC, up to %.5g",
                 opc_beyond, states->rows, all.model.above_one, all.model.max, all.opc.above_one,
                 all.opc.max);
        claim_in_runs(states, beyond, "MBPO(*) takes values no cosine has.", what, exhibit);
    }
    snprintf(what, sizeof what,
             "Of %d rollouts, in a terminal state before step %d where the environment with the "
             "same actions is not: %d by MBPO(*), %d by OPC (too early: more than of OPC's)",
             states->rows, states->horizon, all.model_early, all.opc_early);
    claim_in_runs(states, earlier, "Rollouts of MBPO(*) end too early.", what, exhibit);
}

/* One part of the exhibit: collect, one figure, a table, claims and notes. */
static int make_trajectories_part(const struct opc_request *request,
                                  const struct opc_states_runs *runs, bool own,
                                  const struct opc_probe_states_config *set,
                                  const struct opc_probe *probe, int k, struct opc_exhibit *exhibit,
                                  struct opc_err *err)
{
    struct opc_states states = {0};
    struct lines lines = {0};
    char name[32];
    int code = opc_states_collect(request, runs, own, set, &states, err);
    if (!code)
        code = lines_make(&states, k, &lines, err);
    if (!code) {
        opc_probe_entry_name(probe, k, name);
        code = draw_trajectories(&states, &lines, k, name, exhibit, err);
        lines_free(&lines);
    }
    if (!code)
        code = write_trajectories(&states, k, exhibit, err);
    if (!code) {
        claim_trajectories(&states, k, opc_probe_is_cosine(probe, k), exhibit);
        opc_states_notes(&states, exhibit);
    }
    opc_states_free(&states);
    return code;
}

/* The analysis itself: with one network for both, then with each method's own. */
static int probe_trajectories_make(const struct opc_request *request, const void *settings,
                                   struct opc_exhibit *exhibit, struct opc_err *err)
{
    const struct opc_probe_states_config *set = settings;
    struct opc_states_runs runs;
    struct opc_probe probe;
    int k = 0;
    OPC_TRY(opc_states_runs_find(request, &runs, err));
    int code = opc_probe_open(runs.run[0], request->pool, request->seed, &probe, err);
    if (!code) {
        /* The entry is checked first, before hours are spent on rollouts. */
        code = opc_probe_entry(&probe, set->entry, &k, err);
        if (!code)
            code = make_trajectories_part(request, &runs, false, set, &probe, k, exhibit, err);
        if (!code && runs.pairs > 0)
            code = make_trajectories_part(request, &runs, true, set, &probe, k, exhibit, err);
        opc_probe_close(&probe);
    }
    opc_states_runs_free(&runs);
    return code;
}

#define SELF struct opc_probe_states_config
static const struct opc_section section = OPC_SECTION("probe", "", OPC_PROBE_STATES_FIELDS);
#undef SELF

const struct opc_analysis opc_probe_trajectories = {
    .name = "probe_trajectories",
    .help = "one state entry along rollouts of learned and corrected model (Figure 14)",
    .settings = &section,
    .needs_models = true,
    .make = probe_trajectories_make,
};
