/* SPDX-License-Identifier: MIT */
/* Figure 14: one state entry along imagined rollouts, drawn rollout by rollout.
 *
 * Invariant: a rollout that has ended is NaN from there on, which interrupts its line; no line
 * may connect two rollouts. */
#include "study/probe/probe_states.h"

#include "opc/mem.h"

#include <math.h>
#include <stdio.h>

/* Entry k after h steps of a rollout, from one of the arrays of struct opc_states. */
static double value(const struct opc_states *s, const double *of, int row, int h, int k)
{
    return of[((size_t)row * ((size_t)s->horizon + 1) + (size_t)h) * (size_t)s->obs + (size_t)k];
}

/* Range of an entry over all rollouts. */
struct extent {
    double min, max;
    int above_one; /* number of rollouts with a value above 1, impossible for a cosine */
};

static struct extent extent_of(const struct opc_states *s, const double *of, int k)
{
    struct extent x = {.min = HUGE_VAL, .max = -HUGE_VAL};
    for (int row = 0; row < s->rows; row++) {
        bool above = false;
        for (int h = 0; h <= s->horizon; h++) {
            const double v = value(s, of, row, h, k);
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

static void lines_free(struct lines *l)
{
    opc_free(l->x);
    for (int by = 0; by < OPC_BY; by++) {
        opc_free(l->predicted[by]);
        opc_free(l->played[by]);
        opc_free(l->end_x[by]);
        opc_free(l->end_y[by]);
    }
}

/* Collects the lines of the first run; those of more runs would only cover each other. */
static int lines_make(const struct opc_states *s, int k, struct lines *l, struct opc_err *err)
{
    /* Points of one rollout, and the gap after it. */
    const int each = s->horizon + 2;
    const size_t rows = (size_t)s->each;
    *l = (struct lines){.n = s->each * each};
    const size_t n = (size_t)l->n;
    struct opc_block block[1 + 4 * OPC_BY] = {{&l->x, n, sizeof(double)}}, *at = block + 1;
    for (int by = 0; by < OPC_BY; by++) {
        *at++ = (struct opc_block){&l->predicted[by], n, sizeof(double)};
        *at++ = (struct opc_block){&l->played[by], n, sizeof(double)};
        *at++ = (struct opc_block){&l->end_x[by], rows, sizeof(double)};
        *at++ = (struct opc_block){&l->end_y[by], rows, sizeof(double)};
    }
    if (!opc_alloc_all(block, sizeof block / sizeof *block))
        return opc_fail(err, OPC_ENOMEM, "not enough memory to draw %d rollouts", s->each);
    for (int i = 0; i < l->n; i++) {
        const int row = i / each, h = i % each;
        l->x[i] = h;
        for (int by = 0; by < OPC_BY; by++) {
            const bool gap = h > s->horizon;
            l->predicted[by][i] = gap ? (double)NAN : value(s, s->predicted[by], row, h, k);
            l->played[by][i] =
                gap ? (double)NAN : value(s, s->truth[OPC_TRUE_PLAYED][by], row, h, k);
        }
    }
    /* Dots where a rollout meets a terminal state. */
    for (int by = 0; by < OPC_BY; by++)
        for (int row = 0; row < s->each; row++) {
            const int h = s->ended[by][row];
            if (h == 0)
                continue;
            l->end_x[by][l->ends[by]] = h;
            l->end_y[by][l->ends[by]++] = value(s, s->predicted[by], row, h, k);
        }
    return OPC_OK;
}

/* Rows of panels: everything, and closer; columns: the two models and the environment. */
enum { SCALES = 2, WAYS = OPC_BY + 1, LAYERS = 2 };

/* One scale for each row: the range of the predictions, and the range of the environment. */
static void set_scales(const struct opc_states *s, int k, struct opc_span span[SCALES])
{
    for (int near = 0; near < SCALES; near++) {
        double min = HUGE_VAL, max = -HUGE_VAL;
        for (int by = 0; by < OPC_BY; by++) {
            const struct extent x =
                extent_of(s, near ? s->truth[OPC_TRUE_PLAYED][by] : s->predicted[by], k);
            min = fmin(min, x.min);
            max = fmax(max, x.max);
        }
        const double margin = max > min ? (near ? 0.25 : 0.03) * (max - min) : 0.01;
        span[near] = (struct opc_span){min - margin, max + margin};
    }
}

/* Six panels: MBPO(*), OPC and environment, once in full and once closer. */
static int draw(const struct opc_states *s, const struct lines *l, int k, const char *name,
                struct opc_exhibit *e, struct opc_err *err)
{
    static const char *const TITLE[WAYS] = {"MBPO(*)", "OPC", "environment"};
    static const int INK[WAYS] = {OPC_COLOUR_MODEL, OPC_COLOUR_OPC, OPC_COLOUR_TRUE};
    struct opc_panel panel[SCALES * WAYS];
    struct opc_figure_layer layer[SCALES * WAYS][LAYERS];
    struct opc_span span[SCALES];
    char title[SCALES * WAYS][64];
    set_scales(s, k, span);
    for (int i = 0; i < SCALES * WAYS; i++) {
        const int way = i % WAYS, near = i / WAYS;
        const bool imagined = way < OPC_BY;
        snprintf(title[i], sizeof title[i], "%s%s", TITLE[way], near ? ", closer" : "");
        panel[i] = (struct opc_panel){.title = title[i],
                                      .x_label = "h",
                                      .y_label = name,
                                      .x = {0, s->horizon},
                                      .y = span[near],
                                      .layers = imagined ? LAYERS : 1,
                                      .layer = layer[i]};
        layer[i][0] = (struct opc_figure_layer){
            .mark = OPC_PLOT_LINE,
            .colour = INK[way],
            .label = imagined ? OPC_BY_NAME[way] : "environment",
            .n = l->n,
            .x = l->x,
            .y = imagined ? l->predicted[way] : l->played[OPC_BY_CORRECTED],
            .width = 0.5};
        if (imagined)
            layer[i][1] = (struct opc_figure_layer){.mark = OPC_PLOT_DOTS,
                                                    .colour = OPC_COLOUR_GREY,
                                                    .label = "ends in a terminal state",
                                                    .n = l->ends[way],
                                                    .x = l->end_x[way],
                                                    .y = l->end_y[way]};
    }
    const struct opc_figure figure = {
        .note =
            "Each line is one rollout of the first run; the environment is given the actions of "
            "OPC. Above: all that is predicted; below: near where the environment stays.",
        .panels = SCALES * WAYS,
        .columns = WAYS,
        .panel = panel,
    };
    return opc_exhibit_figure(e, NULL, "trajectories of one state entry", &figure, err);
}

/* ---- the exhibit ----------------------------------------------------------------------------- */

static int write_table(const struct opc_states *s, int k, struct opc_exhibit *e,
                       struct opc_err *err)
{
    struct opc_table *t;
    int code = opc_table_create("run,rollout,model,h,predicted,recording,environment", &t, err);
    if (code)
        return code;
    for (int row = 0; row < s->rows; row++)
        for (int by = 0; by < OPC_BY; by++)
            for (int h = 0; h <= s->horizon; h++) {
                opc_table_int(t, row / s->each + 1);
                opc_table_int(t, row % s->each + 1);
                opc_table_word(t, OPC_BY_NAME[by]);
                opc_table_int(t, h);
                opc_table_real(t, value(s, s->predicted[by], row, h, k));
                opc_table_real(t, value(s, s->truth[OPC_TRUE_RECORDED][by], row, h, k));
                opc_table_real(t, value(s, s->truth[OPC_TRUE_PLAYED][by], row, h, k));
            }
    code = opc_exhibit_table(e, NULL, "every trajectory; empty where it has ended", t, err);
    opc_table_free(t);
    return code;
}

int opc_states_too_early(const struct opc_states *s, int by)
{
    int n = 0;
    for (int row = 0; row < s->rows; row++) {
        const int h = s->ended[by][row];
        n += h > 0 && h < s->horizon && s->played_ended[by][row] == 0;
    }
    return n;
}

/* How far a range extends beyond another one. */
static double outside(const struct extent *x, const struct extent *range)
{
    return fmax(0, fmax(range->min - x->min, x->max - range->max));
}

static void claim(const struct opc_states *s, int k, bool cosine, struct opc_exhibit *e)
{
    const struct extent model = extent_of(s, s->predicted[OPC_BY_LEARNED], k);
    const struct extent opc = extent_of(s, s->predicted[OPC_BY_CORRECTED], k);
    const struct extent real = extent_of(s, s->truth[OPC_TRUE_PLAYED][OPC_BY_CORRECTED], k);
    const struct extent other = extent_of(s, s->truth[OPC_TRUE_PLAYED][OPC_BY_LEARNED], k);
    /* Each model is compared with the environment under its own actions. */
    const double ours = outside(&opc, &real), theirs = outside(&model, &other);
    opc_exhibit_claim(e, theirs > 0 && 10 * ours <= theirs ? OPC_SUPPORTED : OPC_NOT_SUPPORTED,
                      cosine ? "OPC stays near 1, where the environment is; MBPO(*) goes astray."
                             : "OPC stays where the environment is; MBPO(*) goes astray.",
                      "OPC lies in [%.5g, %.5g] and the environment with its actions in [%.5g, "
                      "%.5g], MBPO(*) in [%.5g, %.5g] and the environment with those in [%.5g, "
                      "%.5g]: OPC leaves the range of the environment by %.3g, MBPO(*) by %.3g "
                      "(stays: by a tenth of that or less)",
                      opc.min, opc.max, real.min, real.max, model.min, model.max, other.min,
                      other.max, ours, theirs);
    if (cosine)
        opc_exhibit_claim(e, model.max > 1.01 ? OPC_SUPPORTED : OPC_NOT_SUPPORTED,
                          "MBPO(*) takes values no cosine has.",
                          "of %d rollouts, above 1 at some step: %d by MBPO(*), up to %.5g; %d by "
                          "OPC, up to %.5g (takes: above 1.01)",
                          s->rows, model.above_one, model.max, opc.above_one, opc.max);
    const int early = opc_states_too_early(s, OPC_BY_CORRECTED);
    const int earlier = opc_states_too_early(s, OPC_BY_LEARNED);
    /* Two standard deviations of a fair coin that decides whose rollout ends too early. */
    const bool clear = earlier - early > 2 * sqrt(earlier + early);
    opc_exhibit_claim(
        e,
        clear             ? OPC_SUPPORTED
        : earlier > early ? OPC_UNDECIDED
                          : OPC_NOT_SUPPORTED,
        "Rollouts of MBPO(*) end too early.",
        "of %d rollouts, in a terminal state before step %d where the environment with "
        "the same actions is not: %d by MBPO(*), %d by OPC",
        s->rows, s->horizon, earlier, early);
}

static int make(const struct opc_request *request, const void *settings, struct opc_exhibit *e,
                struct opc_err *err)
{
    const struct opc_probe_states_config *set = settings;
    struct opc_probe p;
    struct opc_states s = {0};
    struct lines l = {0};
    char name[32];
    int k = 0,
        code = request->runs > 0 ? OPC_OK : opc_fail(err, OPC_EUSER, "there is no run to probe");
    if (!code)
        code = opc_probe_open(request->run[0], request->pool, request->seed, &p, err);
    if (code)
        return code;
    code = opc_probe_entry(&p, set->entry, &k, err);
    if (!code)
        code = opc_states_collect(request, set, &s, err);
    if (!code)
        code = lines_make(&s, k, &l, err);
    if (!code) {
        opc_probe_entry_name(&p, k, name);
        code = draw(&s, &l, k, name, e, err);
        lines_free(&l);
    }
    if (!code)
        code = write_table(&s, k, e, err);
    if (!code) {
        claim(&s, k, opc_probe_is_cosine(&p, k), e);
        opc_states_notes(&s, e);
    }
    opc_states_free(&s);
    opc_probe_close(&p);
    return code;
}

#define SELF struct opc_probe_states_config
static const struct opc_section section = OPC_SECTION("probe", "", OPC_PROBE_STATES_FIELDS);
#undef SELF

const struct opc_analysis opc_probe_trajectories = {
    .name = "probe_trajectories",
    .help = "one state entry along rollouts of learned and corrected model (Figure 14)",
    .settings = &section,
    .make = make,
};
