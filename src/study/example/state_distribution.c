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
#include "study/exhibit/seeds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define OWN_FIELDS(X)                                                                               \
    X(INT,  steps,        "60",   2,    1e4, "steps of a trajectory")                                     \
    X(INT,  trajectories, "1000", 20,   1e6, "trajectories of each kind")                                        \
    X(INT,  batches,      "20",   2,    1e4, "batches that the trajectories are split into")                \
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

/* Results for one policy, for three kinds of trajectories: environment, model, corrected model. */
struct side {
    double *x[BY];                                     /* [steps + 1][trajectories] positions */
    double *mean[BY], *exact[BY], *low[BY], *high[BY]; /* [steps + 1] */
    double distance[BY], error[BY]; /* W_2 to the environment, mean over time; standard error */
    double gain, gain_error;        /* the model's distance minus OPC's; standard error */
    double apart;                   /* largest |OPC - recording| */
};

/* Both policies: [0] the one that was recorded, [1] another. */
struct study {
    int T, n;
    double *t;     /* [T + 1] */
    double *block; /* all arrays of the sides */
    struct side side[2];
    struct opc_integrator_set set;
};

/* Accepts a study of which nothing was allocated. */
static void state_distribution_destroy(struct study *study)
{
    opc_free(study->t);
    opc_free(study->block);
}

/* Reads the integrator and allocates everything. */
static int state_distribution_create(const struct settings *set, struct study *study,
                                     struct opc_err *err)
{
    const int code = OPC_INTEGRATOR_OF(set, &study->set, err);
    if (code)
        return code;
    const size_t times = (size_t)set->steps + 1, cells = times * (size_t)set->trajectories;
    study->T = set->steps;
    study->n = set->trajectories;
    const struct opc_block block[] = {
        {&study->t, times, sizeof *study->t},
        {&study->block, 2 * BY * (cells + 4 * times), sizeof *study->block}};
    if (!opc_alloc_all(block, 2))
        return opc_fail(err, OPC_ENOMEM,
                        "not enough memory for %d trajectories of %d steps; ask for fewer",
                        6 * set->trajectories, set->steps);
    /* Cut the block into the arrays of both sides. */
    double *at = study->block;
    for (int p = 0; p < 2; p++)
        for (int by = 0; by < BY; by++) {
            struct side *side = &study->side[p];
            side->x[by] = at;
            side->mean[by] = at + cells;
            side->exact[by] = at + cells + times;
            side->low[by] = at + cells + 2 * times;
            side->high[by] = at + cells + 3 * times;
            at += cells + 4 * times;
        }
    for (int t = 0; t <= study->T; t++)
        study->t[t] = t;
    return OPC_OK;
}

/* Trajectories of all three kinds under policy p. ref, s: scratch, [steps + 1][2]. */
static void walk_trajectories(const struct study *study, int p, uint64_t seed, double (*ref)[2],
                              double (*s)[2], struct side *side)
{
    const struct opc_integrator *in = &study->set.in;
    const double *K = p ? study->set.K_new : in->K;
    for (int i = 0; i < study->n; i++) {
        /* Stream 0 is for the recordings, which both policies share; each kind has one of its
         * own. */
        struct opc_rng rng = opc_rng_stream(seed, OPC_USE_STUDY, 0, (uint32_t)i);
        opc_integrator_walk(in, OPC_BY_TRUTH, in->K, study->T, NULL, &rng, ref);
        /* The recording serves OPC only; truth and model ignore it. */
        for (int by = 0; by < BY; by++) {
            rng = opc_rng_stream(seed, OPC_USE_STUDY, (uint32_t)(1 + p * BY + by), (uint32_t)i);
            opc_integrator_walk(in, (enum opc_toy_by)by, K, study->T, ref, &rng, s);
            /* Only the position is shown; the correction must hold for both entries. */
            for (int t = 0; t <= study->T; t++) {
                side->x[by][(size_t)t * (size_t)study->n + (size_t)i] = s[t][0];
                if (by == OPC_BY_OPC)
                    side->apart = fmax(side->apart,
                                       fmax(fabs(s[t][0] - ref[t][0]), fabs(s[t][1] - ref[t][1])));
            }
        }
    }
    /* Without noise the walks are the exact means. */
    opc_integrator_walk(in, OPC_BY_TRUTH, in->K, study->T, NULL, NULL, ref);
    for (int by = 0; by < BY; by++) {
        opc_integrator_walk(in, (enum opc_toy_by)by, K, study->T, ref, NULL, s);
        for (int t = 0; t <= study->T; t++)
            side->exact[by][t] = s[t][0];
    }
}

/* For qsort. */
static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* W_2 of two samples on a line: pairs of sorted values. Sorts them. */
static double w2(int n, double *a, double *b)
{
    double sum = 0;
    qsort(a, (size_t)n, sizeof *a, by_value);
    qsort(b, (size_t)n, sizeof *b, by_value);
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
static int measure_distances(const struct study *study, int batches, struct side *side,
                             struct opc_err *err)
{
    double *value = NULL, *work = NULL;
    const struct opc_block block[] = {{&value, (size_t)batches * (BY + 1), sizeof *value},
                                      {&work, 2 * (size_t)study->n, sizeof *work}};
    if (!opc_alloc_all(block, 2))
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %d batches", batches);
    for (int b = 0; b < batches; b++) {
        /* Trajectories first .. first + m - 1 form batch b. */
        const int first = opc_cut(study->n, batches, b),
                  m = opc_cut(study->n, batches, b + 1) - first;
        for (int by = OPC_BY_MODEL; by < BY; by++)
            /* t = 0 is left out: all start in the same state. */
            for (int t = 1; t <= study->T; t++) {
                const size_t at = (size_t)t * (size_t)study->n + (size_t)first;
                memcpy(work, side->x[OPC_BY_TRUTH] + at, (size_t)m * sizeof *work);
                memcpy(work + m, side->x[by] + at, (size_t)m * sizeof *work);
                value[by * batches + b] += w2(m, work, work + m) / study->T;
            }
        /* The difference is taken within batches, so that its error is that of paired values. */
        value[BY * batches + b] =
            value[OPC_BY_MODEL * batches + b] - value[OPC_BY_OPC * batches + b];
    }
    /* Means over batches, with their standard error. */
    for (int by = OPC_BY_MODEL; by < BY; by++)
        mean_of(batches, value + by * batches, &side->distance[by], &side->error[by]);
    mean_of(batches, value + BY * batches, &side->gain, &side->gain_error);
    opc_free(value);
    opc_free(work);
    return OPC_OK;
}

/* Mean and quantiles over trajectories, at each time. */
static int measure_bands(const struct settings *set, const struct study *study, struct side *side,
                         struct opc_err *err)
{
    double *work = opc_alloc((size_t)study->n, sizeof *work);
    if (!work)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to sort %d numbers", study->n);
    for (int by = 0; by < BY; by++)
        for (int t = 0; t <= study->T; t++) {
            const double *x = side->x[by] + (size_t)t * (size_t)study->n;
            for (int i = 0; i < study->n; i++)
                side->mean[by][t] += x[i] / study->n;
            /* opc_quantile sorts, and the trajectories must stay in order for the batches. */
            memcpy(work, x, (size_t)study->n * sizeof *work);
            side->low[by][t] = opc_quantile(study->n, work, set->low);
            side->high[by][t] = opc_quantile(study->n, work, set->high);
        }
    opc_free(work);
    return OPC_OK;
}

/* Bands over time, and distances. */
static int state_distribution_tables(const struct study *study, struct opc_exhibit *exhibit,
                                     struct opc_err *err)
{
    struct opc_table *table;
    int code = opc_table_create("policy,t,"
                                "environment_mean,environment_low,environment_high,"
                                "environment_exact_mean,"
                                "model_mean,model_low,model_high,model_exact_mean,"
                                "opc_mean,opc_low,opc_high,opc_exact_mean",
                                &table, err);
    if (code)
        return code;
    /* A row for each time of each policy. */
    for (int p = 0; p < 2; p++)
        for (int i = 0; i <= study->T; i++) {
            opc_table_word(table, TITLE[p]);
            opc_table_int(table, i);
            for (int by = 0; by < BY; by++) {
                opc_table_fixed(table, study->side[p].mean[by][i], 6);
                opc_table_fixed(table, study->side[p].low[by][i], 6);
                opc_table_fixed(table, study->side[p].high[by][i], 6);
                opc_table_fixed(table, study->side[p].exact[by][i], 6);
            }
        }
    code = opc_exhibit_table(exhibit, NULL, "position over time", table, err);
    opc_table_free(table);
    if (code)
        return code;
    code = opc_table_create("policy,prediction,distance,standard_error", &table, err);
    if (code)
        return code;
    /* Distances, for model and corrected model only. */
    for (int p = 0; p < 2; p++)
        for (int by = OPC_BY_MODEL; by < BY; by++) {
            opc_table_word(table, TITLE[p]);
            opc_table_word(table, by == OPC_BY_OPC ? "opc" : "model");
            opc_table_fixed(table, study->side[p].distance[by], 5);
            opc_table_fixed(table, study->side[p].error[by], 5);
        }
    code = opc_exhibit_table(exhibit, "distances",
                             "W2 between positions of prediction and environment, mean over time",
                             table, err);
    opc_table_free(table);
    return code;
}

/* A panel for each policy: bands below, means on top. */
static int state_distribution_draw(const struct study *study, const struct settings *set,
                                   struct opc_exhibit *exhibit, struct opc_err *err)
{
    char note[100];
    snprintf(note, sizeof note, "Mean and %g to %g %% of %d trajectories each.", 100 * set->low,
             100 * set->high, study->n);
    struct opc_figure_layer layer[2][2 * BY];
    struct opc_panel panel[2];
    for (int p = 0; p < 2; p++) {
        struct opc_figure_layer *l = layer[p];
        const struct side *side = &study->side[p];
        for (int by = 0; by < BY; by++)
            *l++ = (struct opc_figure_layer){.mark = OPC_PLOT_BAND,
                                             .colour = COLOUR[by],
                                             .label = LABEL[by],
                                             .n = study->T + 1,
                                             .x = study->t,
                                             .low = side->low[by],
                                             .high = side->high[by]};
        for (int by = 0; by < BY; by++)
            *l++ = (struct opc_figure_layer){.mark = OPC_PLOT_LINE,
                                             .colour = COLOUR[by],
                                             .dash = by == OPC_BY_OPC ? 1 : 0,
                                             .label = LABEL[by],
                                             .n = study->T + 1,
                                             .x = study->t,
                                             .y = side->mean[by]};
        panel[p] = (struct opc_panel){.title = TITLE[p],
                                      .x_label = "time step",
                                      .y_label = "position",
                                      .x = {0, study->T},
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
        return OPC_VERDICT_UNDECIDED;
    return side->gain > 0 ? OPC_VERDICT_SUPPORTED : OPC_VERDICT_NOT_SUPPORTED;
}

/* What an undecided claim ends with: three standard errors have to become less than the gain. */
static void say_more(const struct side *side, int trajectories, char out[OPC_SEEDS_TEXT])
{
    *out = '\0';
    if (nearer(side) == OPC_VERDICT_UNDECIDED)
        opc_seeds_say(opc_seeds_needed(trajectories, 0, 3 * side->gain_error, fabs(side->gain)),
                      trajectories, "trajectories", NULL, out);
}

/* Both claims compare distances to trajectories that OPC has not seen. */
static void state_distribution_claims(const struct study *study, const struct settings *set,
                                      struct opc_exhibit *exhibit)
{
    const struct side *on = &study->side[0], *off = &study->side[1];
    char end[OPC_SEEDS_TEXT];
    say_more(on, study->n, end);
    /* On-policy OPC must also reproduce its recordings exactly. */
    opc_exhibit_claim(
        exhibit, on->apart > 0 ? OPC_VERDICT_NOT_SUPPORTED : nearer(on),
        "On-policy the corrected model has the environment's distribution, while the model drifts "
        "away.",
        "Corrected trajectories differ from their recordings by %g; W2 to fresh trajectories of "
        "the environment is %.4f ± %.4f with corrections and %.4f ± %.4f without (mean over "
        "time, ± standard error over %d batches of %d)%s.",
        on->apart, on->distance[OPC_BY_OPC], on->error[OPC_BY_OPC], on->distance[OPC_BY_MODEL],
        on->error[OPC_BY_MODEL], set->batches, study->n / set->batches, on->apart > 0 ? "" : end);
    say_more(off, study->n, end);
    opc_exhibit_claim(
        exhibit, nearer(off),
        "Off-policy the corrected model is nearer to the environment than the model.",
        "W2 to the environment is %.4f ± %.4f with corrections and %.4f ± %.4f without, a "
        "difference of %.0f standard errors%s.",
        off->distance[OPC_BY_OPC], off->error[OPC_BY_OPC], off->distance[OPC_BY_MODEL],
        off->error[OPC_BY_MODEL], off->gain / off->gain_error, end);
    opc_exhibit_note(exhibit, "The paper gives no parameters of its double integrator; ours are in "
                              "the settings.");
}

/* Walk, then bands and distances for both policies; then show them. */
static int state_distribution_make(const struct opc_request *request, const void *settings,
                                   struct opc_exhibit *exhibit, struct opc_err *err)
{
    const struct settings *set = settings;
    struct study study = {0};
    if (set->trajectories < 2 * set->batches)
        return opc_fail(err, OPC_EUSER, "%d trajectories do not make %d batches of two or more",
                        set->trajectories, set->batches);
    int code = state_distribution_create(set, &study, err);
    if (code)
        return code;
    /* Scratch for a recording and a walk. */
    double(*walks)[2] = opc_alloc(2 * ((size_t)study.T + 1), sizeof *walks);
    if (!walks)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for a trajectory of %d steps", study.T);
    for (int p = 0; p < 2 && !code; p++) {
        walk_trajectories(&study, p, request->seed, walks, walks + study.T + 1, &study.side[p]);
        code = measure_bands(set, &study, &study.side[p], err);
        if (!code)
            code = measure_distances(&study, set->batches, &study.side[p], err);
    }
    opc_free(walks);
    if (!code)
        code = state_distribution_tables(&study, exhibit, err);
    if (!code)
        code = state_distribution_draw(&study, set, exhibit, err);
    if (!code)
        state_distribution_claims(&study, set, exhibit);
    state_distribution_destroy(&study);
    return code;
}

const struct opc_analysis opc_state_distribution = {
    "state_distribution", "where a stochastic double integrator is over time (Figure 1b)", &section,
    .make = state_distribution_make};
