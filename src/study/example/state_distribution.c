/* SPDX-License-Identifier: MIT */
/* Figure 1b: the distribution of a stochastic double integrator's position over time, by the
 * environment, by a wrong model, and by that model corrected with recordings; under the policy
 * that was recorded, and under another.
 *
 * Invariant: every prediction has trajectories of its own. The environment's are not the
 * recordings, so OPC is compared with data it has not seen. Trajectories are split into batches;
 * distances are means over batches with their standard error. */
#include "num/stats.h"
#include "opc/mem.h"
#include "study/example/toy_fields.h"
#include "study/exhibit/analysis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define OWN_FIELDS(X)                                                                               \
    X(INT,  steps,        "60",   2,    1e4, "of a trajectory")                                     \
    X(INT,  trajectories, "1000", 20,   1e6, "of each kind")                                        \
    X(INT,  batches,      "20",   2,    1e4, "that the trajectories are split into")                \
    X(REAL, low,          "0.05", 0,    0.5, "quantile where the bands begin")                      \
    X(REAL, high,         "0.95", 0.5,  1,   "quantile where the bands end")
/* clang-format on */
#define FIELDS(X) OPC_INTEGRATOR_FIELDS(X) OWN_FIELDS(X)

struct settings {
    FIELDS(OPC_MEMBER)
};
#define SELF struct settings
static const struct opc_section section =
    OPC_SECTION("state_distribution", "where the double integrator is over time", FIELDS);
#undef SELF

enum { BY = 3 };
static const char *const LABEL[BY] = {"environment", "model", "model with corrections"};
static const char *const TITLE[2] = {"on-policy", "off-policy"};
static const int COLOUR[BY] = {OPC_COLOUR_TRUE, OPC_COLOUR_MODEL, OPC_COLOUR_OPC};

/* One policy, three kinds of trajectory. */
struct side {
    double *x[BY];                                     /* [steps + 1][trajectories] positions */
    double *mean[BY], *exact[BY], *low[BY], *high[BY]; /* [steps + 1] */
    double distance[BY], error[BY]; /* W_2 to the environment, mean over time; standard error */
    double gain, gain_error;        /* the model's distance minus OPC's; standard error */
    double apart;                   /* largest |OPC - recording| */
};

struct study {
    int T, n;
    double *t;     /* [T + 1] */
    double *block; /* all arrays of the sides */
    struct side side[2];
    struct opc_integrator_set set;
};

static void destroy(struct study *st)
{
    opc_free(st->t);
    opc_free(st->block);
}

static int create(const struct settings *s, struct study *st, struct opc_err *err)
{
    const int code = OPC_INTEGRATOR_OF(s, &st->set, err);
    if (code)
        return code;
    const size_t times = (size_t)s->steps + 1, cells = times * (size_t)s->trajectories;
    st->T = s->steps;
    st->n = s->trajectories;
    const struct opc_block block[] = {
        {&st->t, times, sizeof *st->t},
        {&st->block, 2 * BY * (cells + 4 * times), sizeof *st->block}};
    if (!opc_alloc_all(block, 2))
        return opc_fail(err, OPC_ENOMEM,
                        "not enough memory for %d trajectories of %d steps; ask for fewer",
                        6 * s->trajectories, s->steps);
    /* Cut the block into the arrays of both sides. */
    double *at = st->block;
    for (int p = 0; p < 2; p++)
        for (int by = 0; by < BY; by++) {
            struct side *side = &st->side[p];
            side->x[by] = at;
            side->mean[by] = at + cells;
            side->exact[by] = at + cells + times;
            side->low[by] = at + cells + 2 * times;
            side->high[by] = at + cells + 3 * times;
            at += cells + 4 * times;
        }
    for (int t = 0; t <= st->T; t++)
        st->t[t] = t;
    return OPC_OK;
}

/* Trajectories of all three kinds under policy p. ref, s: scratch, [steps + 1][2]. */
static void walk(const struct study *st, int p, uint64_t seed, double (*ref)[2], double (*s)[2],
                 struct side *side)
{
    const struct opc_integrator *in = &st->set.in;
    const double *K = p ? st->set.K_new : in->K;
    for (int i = 0; i < st->n; i++) {
        /* Stream 0 is for the recordings, which both policies share; each kind has one of its
         * own. */
        struct opc_rng rng = opc_rng_stream(seed, OPC_USE_STUDY, 0, (uint32_t)i);
        opc_integrator_walk(in, OPC_BY_TRUTH, in->K, st->T, NULL, &rng, ref);
        for (int by = 0; by < BY; by++) {
            rng = opc_rng_stream(seed, OPC_USE_STUDY, (uint32_t)(1 + p * BY + by), (uint32_t)i);
            opc_integrator_walk(in, (enum opc_toy_by)by, K, st->T, ref, &rng, s);
            for (int t = 0; t <= st->T; t++) {
                side->x[by][(size_t)t * (size_t)st->n + (size_t)i] = s[t][0];
                if (by == OPC_BY_OPC)
                    side->apart = fmax(side->apart,
                                       fmax(fabs(s[t][0] - ref[t][0]), fabs(s[t][1] - ref[t][1])));
            }
        }
    }
    /* Without noise the walks are the exact means. */
    opc_integrator_walk(in, OPC_BY_TRUTH, in->K, st->T, NULL, NULL, ref);
    for (int by = 0; by < BY; by++) {
        opc_integrator_walk(in, (enum opc_toy_by)by, K, st->T, ref, NULL, s);
        for (int t = 0; t <= st->T; t++)
            side->exact[by][t] = s[t][0];
    }
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* W_2 of two samples on a line: pairs of sorted values. Sorts them. */
static double w2(int n, double *a, double *b)
{
    double sum = 0;
    qsort(a, (size_t)n, sizeof *a, by_size);
    qsort(b, (size_t)n, sizeof *b, by_size);
    for (int i = 0; i < n; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]) / n;
    return sqrt(sum);
}

/* Mean of n values and its standard error. */
static void mean_of(int n, const double *v, double *mean, double *error)
{
    double sum = 0, square = 0;
    for (int i = 0; i < n; i++)
        sum += v[i] / n;
    for (int i = 0; i < n; i++)
        square += (v[i] - sum) * (v[i] - sum);
    *mean = sum;
    *error = sqrt(square / (n - 1) / n);
}

/* W_2 to the environment for each batch of trajectories, averaged over time. */
static int distances(const struct study *st, int batches, struct side *side, struct opc_err *err)
{
    double *value = NULL, *work = NULL;
    const struct opc_block block[] = {{&value, (size_t)batches * (BY + 1), sizeof *value},
                                      {&work, 2 * (size_t)st->n, sizeof *work}};
    if (!opc_alloc_all(block, 2))
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %d batches", batches);
    for (int b = 0; b < batches; b++) {
        const int first = opc_cut(st->n, batches, b), m = opc_cut(st->n, batches, b + 1) - first;
        for (int by = OPC_BY_MODEL; by < BY; by++)
            for (int t = 1; t <= st->T; t++) {
                const size_t at = (size_t)t * (size_t)st->n + (size_t)first;
                memcpy(work, side->x[OPC_BY_TRUTH] + at, (size_t)m * sizeof *work);
                memcpy(work + m, side->x[by] + at, (size_t)m * sizeof *work);
                value[by * batches + b] += w2(m, work, work + m) / st->T;
            }
        /* The difference is taken within batches, so that its error is that of paired values. */
        value[BY * batches + b] =
            value[OPC_BY_MODEL * batches + b] - value[OPC_BY_OPC * batches + b];
    }
    for (int by = OPC_BY_MODEL; by < BY; by++)
        mean_of(batches, value + by * batches, &side->distance[by], &side->error[by]);
    mean_of(batches, value + BY * batches, &side->gain, &side->gain_error);
    opc_free(value);
    opc_free(work);
    return OPC_OK;
}

/* Mean and quantiles over trajectories, at each time. */
static int bands(const struct settings *s, const struct study *st, struct side *side,
                 struct opc_err *err)
{
    double *work = opc_alloc((size_t)st->n, sizeof *work);
    if (!work)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to sort %d numbers", st->n);
    for (int by = 0; by < BY; by++)
        for (int t = 0; t <= st->T; t++) {
            const double *x = side->x[by] + (size_t)t * (size_t)st->n;
            for (int i = 0; i < st->n; i++)
                side->mean[by][t] += x[i] / st->n;
            memcpy(work, x, (size_t)st->n * sizeof *work);
            side->low[by][t] = opc_quantile(st->n, work, s->low);
            side->high[by][t] = opc_quantile(st->n, work, s->high);
        }
    opc_free(work);
    return OPC_OK;
}

/* Bands over time, and distances. */
static int tables(const struct study *st, struct opc_exhibit *exhibit, struct opc_err *err)
{
    struct opc_table *t;
    int code = opc_table_create("policy,t,"
                                "environment_mean,environment_low,environment_high,"
                                "environment_exact_mean,"
                                "model_mean,model_low,model_high,model_exact_mean,"
                                "opc_mean,opc_low,opc_high,opc_exact_mean",
                                &t, err);
    if (code)
        return code;
    for (int p = 0; p < 2; p++)
        for (int i = 0; i <= st->T; i++) {
            opc_table_word(t, TITLE[p]);
            opc_table_int(t, i);
            for (int by = 0; by < BY; by++) {
                opc_table_fixed(t, st->side[p].mean[by][i], 6);
                opc_table_fixed(t, st->side[p].low[by][i], 6);
                opc_table_fixed(t, st->side[p].high[by][i], 6);
                opc_table_fixed(t, st->side[p].exact[by][i], 6);
            }
        }
    code = opc_exhibit_table(exhibit, NULL, "position over time", t, err);
    opc_table_free(t);
    if (code)
        return code;
    code = opc_table_create("policy,prediction,distance,standard_error", &t, err);
    if (code)
        return code;
    for (int p = 0; p < 2; p++)
        for (int by = OPC_BY_MODEL; by < BY; by++) {
            opc_table_word(t, TITLE[p]);
            opc_table_word(t, by == OPC_BY_OPC ? "opc" : "model");
            opc_table_fixed(t, st->side[p].distance[by], 5);
            opc_table_fixed(t, st->side[p].error[by], 5);
        }
    code = opc_exhibit_table(exhibit, "distances",
                             "W2 between positions of prediction and environment, mean over time",
                             t, err);
    opc_table_free(t);
    return code;
}

/* A panel for each policy: bands below, means on top. */
static int draw(const struct study *st, const struct settings *s, struct opc_exhibit *exhibit,
                struct opc_err *err)
{
    char note[100];
    snprintf(note, sizeof note, "Mean and %g to %g %% of %d trajectories each.", 100 * s->low,
             100 * s->high, st->n);
    struct opc_figure_layer layer[2][2 * BY];
    struct opc_panel panel[2];
    for (int p = 0; p < 2; p++) {
        struct opc_figure_layer *l = layer[p];
        const struct side *side = &st->side[p];
        for (int by = 0; by < BY; by++)
            *l++ = (struct opc_figure_layer){.mark = OPC_PLOT_BAND,
                                             .colour = COLOUR[by],
                                             .label = LABEL[by],
                                             .n = st->T + 1,
                                             .x = st->t,
                                             .low = side->low[by],
                                             .high = side->high[by]};
        for (int by = 0; by < BY; by++)
            *l++ = (struct opc_figure_layer){.mark = OPC_PLOT_LINE,
                                             .colour = COLOUR[by],
                                             .dash = by == OPC_BY_OPC ? 1 : 0,
                                             .label = LABEL[by],
                                             .n = st->T + 1,
                                             .x = st->t,
                                             .y = side->mean[by]};
        panel[p] = (struct opc_panel){.title = TITLE[p],
                                      .x_label = "time step",
                                      .y_label = "position",
                                      .x = {0, st->T},
                                      .layers = 2 * BY,
                                      .layer = layer[p]};
    }
    const struct opc_figure figure = {
        .note = note,
        .panels = 2,
        .columns = 2,
        .panel = panel,
        .share_y = true,
        .panel_width = 240,
        .panel_height = 180,
    };
    return opc_exhibit_figure(exhibit, NULL, "Positions of a stochastic double integrator", &figure,
                              err);
}

/* Supported and refuted alike require three standard errors. */
static enum opc_verdict nearer(const struct side *side)
{
    if (fabs(side->gain) <= 3 * side->gain_error)
        return OPC_UNDECIDED;
    return side->gain > 0 ? OPC_SUPPORTED : OPC_NOT_SUPPORTED;
}

static void claims(const struct study *st, const struct settings *s, struct opc_exhibit *exhibit)
{
    const struct side *on = &st->side[0], *off = &st->side[1];
    /* On-policy OPC must also reproduce its recordings exactly. */
    opc_exhibit_claim(
        exhibit, on->apart > 0 ? OPC_NOT_SUPPORTED : nearer(on),
        "On-policy the corrected model has the environment's distribution, while the model drifts "
        "away.",
        "Corrected trajectories differ from their recordings by %g; W2 to fresh trajectories of "
        "the environment is %.4f ± %.4f with corrections and %.4f ± %.4f without (mean over "
        "time, ± standard error over %d batches of %d).",
        on->apart, on->distance[OPC_BY_OPC], on->error[OPC_BY_OPC], on->distance[OPC_BY_MODEL],
        on->error[OPC_BY_MODEL], s->batches, st->n / s->batches);
    opc_exhibit_claim(
        exhibit, nearer(off),
        "Off-policy the corrected model is nearer to the environment than the model.",
        "W2 to the environment is %.4f ± %.4f with corrections and %.4f ± %.4f without, a "
        "difference of %.0f standard errors.",
        off->distance[OPC_BY_OPC], off->error[OPC_BY_OPC], off->distance[OPC_BY_MODEL],
        off->error[OPC_BY_MODEL], off->gain / off->gain_error);
    opc_exhibit_note(exhibit, "The paper gives no parameters of its double integrator; ours are in "
                              "the settings.");
}

/* Walk, then bands and distances for both policies; then show them. */
static int make(const struct opc_request *request, const void *settings,
                struct opc_exhibit *exhibit, struct opc_err *err)
{
    const struct settings *s = settings;
    struct study st = {0};
    if (s->trajectories < 2 * s->batches)
        return opc_fail(err, OPC_EUSER, "%d trajectories do not make %d batches of two or more",
                        s->trajectories, s->batches);
    int code = create(s, &st, err);
    if (code)
        return code;
    double(*walks)[2] = opc_alloc(2 * ((size_t)st.T + 1), sizeof *walks);
    if (!walks)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for a trajectory of %d steps", st.T);
    for (int p = 0; p < 2 && !code; p++) {
        walk(&st, p, request->seed, walks, walks + st.T + 1, &st.side[p]);
        code = bands(s, &st, &st.side[p], err);
        if (!code)
            code = distances(&st, s->batches, &st.side[p], err);
    }
    opc_free(walks);
    if (!code)
        code = tables(&st, exhibit, err);
    if (!code)
        code = draw(&st, s, exhibit, err);
    if (!code)
        claims(&st, s, exhibit);
    destroy(&st);
    return code;
}

const struct opc_analysis opc_state_distribution = {
    "state_distribution", "where a stochastic double integrator is over time (Figure 1b)", &section,
    .make = make};
