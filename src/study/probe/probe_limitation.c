/* SPDX-License-Identifier: MIT */
/* A limitation that the paper states: eq. 5 replays the noise that was recorded, so it does not
 * suit noise that depends on the action. Runs on the double integrator whose noise grows with |a|
 * (env.name = double_integrator?action_noise=X) are grouped by X, the slope.
 *
 * Actions are drawn uniformly from [-A, A] of the range, whatever the state: the amplitude A says
 * how large they are, and no policy has to be learned. The references have one amplitude, which is
 * on-policy. For others, the distribution of states is compared with that of episodes on the
 * environment: W_2 of each entry after each step, in standard deviations of the environment's,
 * averaged over entries and steps. Other episodes on the environment show what distance the number
 * of samples alone makes.
 *
 * Invariant: a run is one value per amplitude and way; intervals are bootstraps over the runs of a
 * slope. */
#include "study/probe/probe.h"

#include "num/stats.h"
#include "opc/mem.h"
#include "study/exhibit/seeds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEARNED, CORRECTED, AGAIN, WAYS }; /* eq. 2, eq. 5, the environment once more */
static const char *const NAME[WAYS] = {"MBPO(*), eq. 2", "OPC, eq. 5",
                                       "environment, other episodes"};
static const int COLOUR[WAYS] = {OPC_COLOUR_MODEL, OPC_COLOUR_OPC, OPC_COLOUR_GREY};
/* Streams of episodes, counted from first_stream; amplitude k has PLAYED + 2 k and the next. */
enum { REFERENCE = 0, PLAYED = 1 };
enum { BOOTSTRAPS = 2000 };

/* Distances of all runs. */
struct study {
    int runs, slopes;
    const struct opc_reals *amplitude;
    double *distance;           /* [runs][amplitudes][ways] */
    double *slope_of;           /* [runs] */
    double slope[OPC_LIST_MAX]; /* ascending, each once */
    int one;                    /* the amplitude that was recorded; -1: it is not among them */
};

static double *distance_at(const struct study *study, int run, int amplitude, int way)
{
    return study->distance +
           ((size_t)run * (size_t)study->amplitude->n + (size_t)amplitude) * WAYS + way;
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* A policy that is nothing but noise: uniform in [-A, A], where A is the actor's spread. */
static void act_uniformly(const struct opc_agent *agent, int n, const float *s, float spread,
                          struct opc_rng *rng, float *a)
{
    (void)s;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < agent->act; k++)
            a[i * agent->act + k] = spread * (2 * opc_rng_unit(&rng[i]) - 1);
}
static const struct opc_agent_type UNIFORM = {.name = "uniform", .act_spread = act_uniformly};

/* The slope in the name of a task; 0 if it has none. */
static double slope_in(const char *task)
{
    static const char KEY[] = "action_noise=";
    const char *at = strstr(task, KEY);
    return at ? strtod(at + sizeof KEY - 1, NULL) : 0;
}

/* States of n trajectories by entry and step: [horizon][obs][n], without the start. */
struct cloud {
    int n, horizon, obs;
    double *state;
};

static double *cloud_column(const struct cloud *cloud, int h, int k)
{
    return cloud->state + ((size_t)(h - 1) * (size_t)cloud->obs + (size_t)k) * (size_t)cloud->n;
}

static int cloud_make(int n, int horizon, int obs, struct cloud *cloud, struct opc_err *err)
{
    *cloud = (struct cloud){.n = n, .horizon = horizon, .obs = obs};
    cloud->state = opc_alloc((size_t)n * (size_t)horizon * (size_t)obs, sizeof *cloud->state);
    return cloud->state ? OPC_OK
                        : opc_fail(err, OPC_ENOMEM,
                                   "not enough memory for %d trajectories of %d steps", n, horizon);
}

/* For qsort. */
static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Distances on a line pair sorted values. */
static void cloud_sort(struct cloud *cloud)
{
    for (int h = 1; h <= cloud->horizon; h++)
        for (int k = 0; k < cloud->obs; k++)
            qsort(cloud_column(cloud, h, k), (size_t)cloud->n, sizeof(double), by_value);
}

/* Mean of W_2 over entries and steps, in standard deviations of `real`; both are sorted. An entry
 * that does not vary on the environment is left out. */
static double cloud_distance(const struct cloud *real, const struct cloud *other)
{
    double sum = 0;
    int columns = 0;
    for (int h = 1; h <= real->horizon; h++)
        for (int k = 0; k < real->obs; k++) {
            const double *a = cloud_column(real, h, k), *b = cloud_column(other, h, k),
                         deviation = opc_deviation(real->n, a);
            double square = 0;
            if (!(deviation > 0))
                continue;
            for (int i = 0; i < real->n; i++)
                square += (a[i] - b[i]) * (a[i] - b[i]) / real->n;
            sum += sqrt(square) / deviation;
            columns++;
        }
    return columns ? sum / columns : (double)NAN;
}

/* Episodes on the environment, sorted. */
static int play_cloud(const struct opc_probe *probe, struct opc_actor actor, int number,
                      struct cloud *cloud, struct opc_err *err)
{
    struct opc_episodes *past;
    OPC_TRY(opc_probe_play(probe, actor, number, cloud->n, &past, err));
    int code = OPC_OK;
    for (int i = 0; i < cloud->n && !code; i++) {
        if (opc_episodes_length(past, i) < cloud->horizon)
            code =
                opc_fail(err, OPC_EUSER,
                         "an episode of %s ends after %d steps, and %d are to be compared; ask "
                         "for a shorter horizon, or a task that does not end",
                         probe->config->set.env.name, opc_episodes_length(past, i), cloud->horizon);
        for (int h = 1; h <= cloud->horizon && !code; h++)
            for (int k = 0; k < cloud->obs; k++)
                cloud_column(cloud, h, k)[i] = (double)opc_episodes_at(past, i, h - 1).next[k];
    }
    opc_episodes_destroy(past);
    cloud_sort(cloud);
    return code;
}

/* Rollouts along the references, sorted. */
static int imagine_cloud(const struct opc_probe *probe, const struct opc_transition *tr,
                         struct opc_actor actor, int number, struct opc_branches *branches,
                         struct cloud *cloud, struct opc_err *err)
{
    opc_probe_from_starts(branches, tr->past);
    OPC_TRY(opc_probe_follow(probe, tr, actor, number, branches, err));
    for (int i = 0; i < cloud->n; i++) {
        if (branches->length[i] < cloud->horizon)
            return opc_fail(err, OPC_EUSER,
                            "%s: an imagined rollout ends after %d of %d steps; ask for a shorter "
                            "horizon, or a task that does not end",
                            probe->dir, branches->length[i], cloud->horizon);
        for (int h = 1; h <= cloud->horizon; h++)
            for (int k = 0; k < cloud->obs; k++)
                cloud_column(cloud, h, k)[i] = opc_branches_at(branches, i, h, k);
    }
    cloud_sort(cloud);
    return OPC_OK;
}

/* Every run has streams of its own, so that runs are independent samples of the environment, too.
 */
static int first_stream(const struct study *study, int run)
{
    return run * (PLAYED + 2 * study->amplitude->n);
}

/* All amplitudes for one run. */
static int compare_run(const struct opc_probe *probe, const struct opc_predictor *model, int run,
                       const struct opc_probe_limitation_config *set, struct study *study,
                       struct opc_err *err)
{
    const struct opc_agent uniform = {.type = &UNIFORM, .obs = probe->obs, .act = probe->act};
    struct opc_episodes *past = NULL;
    struct opc_models models = {0};
    struct opc_branches branches = {0};
    struct cloud real = {0}, other = {0};
    const int stream = first_stream(study, run);
    int code = opc_probe_play(probe, (struct opc_actor){&uniform, set->recorded},
                              stream + REFERENCE, set->samples, &past, err);
    if (!code)
        code = opc_models_make(probe, model, past, &models, err);
    if (!code)
        code =
            opc_branches_make(set->samples, set->horizon, probe->obs, probe->act, &branches, err);
    if (!code)
        code = cloud_make(set->samples, set->horizon, probe->obs, &real, err);
    if (!code)
        code = cloud_make(set->samples, set->horizon, probe->obs, &other, err);
    /* The environment first; then everything that is compared with it. */
    for (int k = 0; k < study->amplitude->n && !code; k++) {
        const struct opc_actor actor = {&uniform, study->amplitude->at[k]};
        code = play_cloud(probe, actor, stream + PLAYED + 2 * k, &real, err);
        for (int way = 0; way < WAYS && !code; way++) {
            code = way == AGAIN
                       ? play_cloud(probe, actor, stream + PLAYED + 2 * k + 1, &other, err)
                       : imagine_cloud(probe, way == LEARNED ? models.learned : models.corrected,
                                       actor, stream + k, &branches, &other, err);
            if (!code)
                *distance_at(study, run, k, way) = cloud_distance(&real, &other);
        }
    }
    opc_free(real.state);
    opc_free(other.state);
    opc_branches_free(&branches);
    opc_models_free(&models);
    opc_episodes_destroy(past);
    return code;
}

/* Loads the newest model of one run and measures it. */
static int measure_run(const struct opc_request *request, int run,
                       const struct opc_probe_limitation_config *set, struct study *study,
                       struct opc_err *err)
{
    struct opc_probe probe;
    struct opc_trained trained = {0};
    OPC_TRY(opc_probe_open(request->run[run], request->pool, request->seed, &probe, err));
    study->slope_of[run] = slope_in(probe.config->set.env.name);
    int code = opc_probe_needs_model(&probe, err);
    if (!code)
        code = opc_probe_load(&probe, 0, &trained, err);
    if (!code)
        code = compare_run(&probe, trained.model, run, set, study, err);
    opc_trained_free(&trained);
    opc_probe_close(&probe);
    return code;
}

/* ---- statistics ------------------------------------------------------------------------------ */

/* Lists the slopes that occur, ascending. */
static int list_slopes(struct study *study, struct opc_err *err)
{
    for (int run = 0; run < study->runs; run++) {
        int i = 0;
        while (i < study->slopes && study->slope[i] != study->slope_of[run])
            i++;
        if (i < study->slopes)
            continue;
        if (study->slopes == OPC_LIST_MAX)
            return opc_fail(err, OPC_EUSER, "more than %d slopes of the noise", OPC_LIST_MAX);
        study->slope[study->slopes++] = study->slope_of[run];
    }
    qsort(study->slope, (size_t)study->slopes, sizeof *study->slope, by_value);
    return OPC_OK;
}

/* The number of runs of a slope, and the one at a place among them (-1: none). */
static int runs_of(const struct study *study, int slope, int place, int *run)
{
    int n = 0;
    *run = -1;
    for (int i = 0; i < study->runs; i++)
        if (study->slope_of[i] == study->slope[slope]) {
            if (n == place)
                *run = i;
            n++;
        }
    return n;
}

/* A weighted sum of mean distances: two terms at most. */
struct term {
    int slope, amplitude, way;
    double weight; /* 0: the term does not count */
};

/* Its value over the runs themselves (rng NULL) or over a bootstrap sample of the runs of each
 * slope. Terms of one slope share the sample, so that their difference is paired. */
static double sum_of(const struct study *study, const struct term term[2], struct opc_rng *rng)
{
    double sum = 0;
    const bool paired = term[1].weight != 0 && term[0].slope == term[1].slope;
    const struct opc_rng start = rng ? *rng : (struct opc_rng){0};
    for (int t = 0; t < 2 && term[t].weight != 0; t++) {
        int run;
        const int n = runs_of(study, term[t].slope, 0, &run);
        if (rng && t == 1 && paired)
            *rng = start;
        for (int i = 0; i < n; i++) {
            runs_of(study, term[t].slope, rng ? (int)opc_rng_below(rng, (uint32_t)n) : i, &run);
            sum += term[t].weight * *distance_at(study, run, term[t].amplitude, term[t].way) / n;
        }
    }
    return sum;
}

/* That sum with its 95 % interval. */
static struct opc_interval interval_of(const struct study *study, uint64_t seed,
                                       const struct term term[2])
{
    double sample[BOOTSTRAPS];
    for (int b = 0; b < BOOTSTRAPS; b++) {
        struct opc_rng rng = opc_probe_stream(seed, OPC_DRAW_BOOTSTRAP, 0, b);
        sample[b] = sum_of(study, term, &rng);
    }
    const double middle = sum_of(study, term, NULL);
    return (struct opc_interval){middle, opc_quantile(BOOTSTRAPS, sample, 0.025),
                                 opc_quantile(BOOTSTRAPS, sample, 0.975)};
}

/* Mean distance of one slope, amplitude and way. */
static struct opc_interval mean_distance(const struct study *study, uint64_t seed, int slope,
                                         int amplitude, int way)
{
    return interval_of(study, seed, (const struct term[2]){{slope, amplitude, way, 1}});
}

/* ---- the exhibit ----------------------------------------------------------------------------- */

/* Means with intervals; and the value of every run. */
static int write_distances(const struct study *study, uint64_t seed, struct opc_exhibit *exhibit,
                           struct opc_err *err)
{
    struct opc_table *table;
    OPC_TRY(opc_table_create("slope,amplitude,prediction,runs,distance,low,high", &table, err));
    for (int s = 0; s < study->slopes; s++)
        for (int k = 0; k < study->amplitude->n; k++)
            for (int way = 0; way < WAYS; way++) {
                const struct opc_interval d = mean_distance(study, seed, s, k, way);
                int run;
                opc_table_real(table, study->slope[s]);
                opc_table_real(table, study->amplitude->at[k]);
                opc_table_word(table, NAME[way]);
                opc_table_int(table, runs_of(study, s, 0, &run));
                opc_table_fixed(table, d.middle, 5);
                opc_table_fixed(table, d.low, 5);
                opc_table_fixed(table, d.high, 5);
            }
    int code = opc_exhibit_table(exhibit, NULL,
                                 "W2 to the environment in its standard deviations: mean over runs "
                                 "with 95 % bootstrap interval",
                                 table, err);
    opc_table_free(table);
    if (code)
        return code;
    OPC_TRY(opc_table_create("run,slope,amplitude,prediction,distance", &table, err));
    for (int run = 0; run < study->runs; run++)
        for (int k = 0; k < study->amplitude->n; k++)
            for (int way = 0; way < WAYS; way++) {
                opc_table_int(table, run + 1);
                opc_table_real(table, study->slope_of[run]);
                opc_table_real(table, study->amplitude->at[k]);
                opc_table_word(table, NAME[way]);
                opc_table_fixed(table, *distance_at(study, run, k, way), 5);
            }
    code = opc_exhibit_table(exhibit, "runs", "the same for every run", table, err);
    opc_table_free(table);
    return code;
}

/* One curve of the figure over the slopes. */
struct curve {
    double y[OPC_LIST_MAX], low[OPC_LIST_MAX], high[OPC_LIST_MAX];
};

/* A panel for each amplitude: distances over the slope, with bands. */
static int draw_limitation(const struct study *study, uint64_t seed, struct opc_exhibit *exhibit,
                           struct opc_err *err)
{
    enum { LAYERS = 2 * WAYS };
    const int n = study->amplitude->n;
    struct curve *curve = NULL;
    struct opc_figure_layer *layer = NULL;
    struct opc_panel *panel = NULL;
    char(*title)[48] = NULL;
    const size_t panels = (size_t)n;
    struct opc_block block[] = {{&curve, panels * WAYS, sizeof *curve},
                                {&layer, panels * LAYERS, sizeof *layer},
                                {&panel, panels, sizeof *panel},
                                {&title, panels, sizeof *title}};
    if (!opc_alloc_all(block, sizeof block / sizeof *block))
        return opc_fail(err, OPC_ENOMEM, "not enough memory to draw %d panels", n);
    for (int k = 0; k < n; k++) {
        struct opc_figure_layer *at = layer + (size_t)k * LAYERS;
        for (int way = 0; way < WAYS; way++) {
            struct curve *c = &curve[k * WAYS + way];
            for (int s = 0; s < study->slopes; s++) {
                const struct opc_interval d = mean_distance(study, seed, s, k, way);
                c->y[s] = d.middle;
                c->low[s] = d.low;
                c->high[s] = d.high;
            }
            /* Bands first, lines on top of them. */
            at[way] = at[WAYS + way] = (struct opc_figure_layer){.mark = OPC_PLOT_LINE,
                                                                 .colour = COLOUR[way],
                                                                 .dash = way == AGAIN,
                                                                 .label = NAME[way],
                                                                 .n = study->slopes,
                                                                 .x = study->slope,
                                                                 .y = c->y,
                                                                 .low = c->low,
                                                                 .high = c->high};
            at[way].mark = OPC_PLOT_BAND;
            at[way].label = NULL;
        }
        snprintf(title[k], sizeof title[k], "%s, amplitude %g",
                 k == study->one ? "on-policy" : "off-policy", study->amplitude->at[k]);
        panel[k] = (struct opc_panel){.title = title[k],
                                      .x_label = "slope of the noise over |a|",
                                      .y_label = "W₂ / standard deviation",
                                      .x = {study->slope[0], study->slope[study->slopes - 1]},
                                      .layers = LAYERS,
                                      .layer = at};
    }
    const struct opc_figure figure = {
        .note =
            "Distance of predicted states from those of the environment, mean over steps, "
            "entries and runs; band: 95 % bootstrap interval over runs. The noise is multiplied "
            "by 1 + slope |a|. Actions are uniform in plus or minus the amplitude; on-policy is "
            "the "
            "one that was recorded. Grey: what the number of samples alone makes.",
        .panels = n,
        .columns = n < 4 ? n : 0,
        .panel = panel,
        .share_y = true,
    };
    const int code = opc_exhibit_figure(
        exhibit, NULL, "distance from the environment over the slope", &figure, err);
    opc_free(curve);
    opc_free(layer);
    opc_free(panel);
    opc_free(title);
    return code;
}

/* Whether claims can be judged, and if not the end of a sentence that says why. */
struct able {
    bool yes;
    int runs; /* of the slope that has the fewest */
    char why[OPC_SEEDS_TEXT];
};

/* With one slope nothing grows; with few runs an interval over runs means nothing. */
static struct able find_able(const struct opc_request *request, const struct study *study,
                             int fewest)
{
    struct able able = {.runs = fewest};
    opc_seeds_say_unable(request->missing, fewest, able.why);
    if (!request->missing && study->slopes < 2)
        snprintf(able.why, sizeof able.why,
                 "; there is one slope only, so more slopes decide it and not more seeds");
    able.yes = !*able.why;
    return able;
}

/* What a claim's sentence ends with: why it is not judged, or how many seeds would decide it. */
static const char *end_of(enum opc_verdict verdict, const struct able *able, double seeds,
                          const char *even, char out[OPC_SEEDS_TEXT])
{
    *out = '\0';
    if (!able->yes)
        return able->why;
    if (verdict == OPC_VERDICT_UNDECIDED && seeds < 0)
        snprintf(out, OPC_SEEDS_TEXT,
                 "; no amplitude but the recorded one was measured, and seeds do not change that");
    else if (verdict == OPC_VERDICT_UNDECIDED)
        opc_seeds_say(seeds, able->runs, "seeds", even, out);
    return out;
}

/* Whether an effect is above 0 off-policy; the intervals go into text. `first` and
 * `second` are terms without their amplitude. *seeds: those that would decide it; below 0: there
 * is no amplitude but the recorded one. */
static enum opc_verdict above_off_policy(const struct study *study, uint64_t seed, int runs,
                                         struct term first, struct term second,
                                         struct opc_text *text, double *seeds)
{
    struct opc_seeds_all needed = {0};
    bool all = true, none = false;
    for (int k = 0; k < study->amplitude->n; k++) {
        if (k == study->one)
            continue;
        first.amplitude = second.amplitude = k;
        const struct opc_interval d =
            interval_of(study, seed, (const struct term[2]){first, second});
        all &= d.low > 0;
        none |= d.high < 0;
        if (!(d.low > 0))
            opc_seeds_join(&needed, opc_seeds_to_clear(&d, 0, runs, OPC_FEWEST_SEEDS),
                           d.middle >= 0);
        opc_text_addf(text, "%s%.3g [%.3g, %.3g] with amplitude %g", text->used ? ", " : "",
                      d.middle, d.low, d.high, study->amplitude->at[k]);
    }
    *seeds = text->used ? opc_seeds_joined(&needed) : -1;
    if (!text->used)
        return OPC_VERDICT_UNDECIDED;
    return all ? OPC_VERDICT_SUPPORTED : none ? OPC_VERDICT_NOT_SUPPORTED : OPC_VERDICT_UNDECIDED;
}

/* On-policy the error must not grow by more than a tenth of the true spread. */
static void claim_on_policy(const struct study *study, uint64_t seed, const struct able *able,
                            struct opc_exhibit *exhibit)
{
    static const double ALIKE = 0.1;
    char end[OPC_SEEDS_TEXT];
    const int last = study->slopes - 1;
    if (study->one < 0)
        return;
    const struct term growth[2] = {{last, study->one, CORRECTED, 1},
                                   {0, study->one, CORRECTED, -1}};
    const struct opc_interval d = interval_of(study, seed, growth);
    const enum opc_verdict verdict = !able->yes        ? OPC_VERDICT_UNDECIDED
                                     : d.high <= ALIKE ? OPC_VERDICT_SUPPORTED
                                     : d.low > ALIKE   ? OPC_VERDICT_NOT_SUPPORTED
                                                       : OPC_VERDICT_UNDECIDED;
    opc_exhibit_claim(
        exhibit, verdict, "On-policy noise that depends on the action does no harm to eq. 5.",
        "from slope %g to %g its distance grows by %.3g [%.3g, %.3g] standard "
        "deviations (no harm: up to %g)%s",
        study->slope[0], study->slope[last], d.middle, d.low, d.high, ALIKE,
        end_of(verdict, able, opc_seeds_to_clear(&d, ALIKE, able->runs, OPC_FEWEST_SEEDS),
               "so far it is the limit itself", end));
}

/* All claims: the limitation itself, what it does not touch, and what eq. 2 does there. */
static void claim_limitation(const struct study *study, uint64_t seed, const struct able *able,
                             struct opc_exhibit *exhibit)
{
    const int last = study->slopes - 1;
    struct opc_text text = {0};
    char end[OPC_SEEDS_TEXT];
    double seeds;
    enum opc_verdict verdict =
        above_off_policy(study, seed, able->runs, (struct term){last, 0, CORRECTED, 1},
                         (struct term){0, 0, CORRECTED, -1}, &text, &seeds);
    opc_exhibit_claim(
        exhibit, able->yes ? verdict : OPC_VERDICT_UNDECIDED,
        "Off-policy eq. 5 suits noise that depends on the action badly: its distance "
        "from the environment grows with the slope.",
        "from slope %g to %g it grows by %s standard deviations [95 %% bootstrap over "
        "runs]%s",
        study->slope[0], study->slope[last], opc_text_get(&text),
        end_of(verdict, able, seeds, NULL, end));
    claim_on_policy(study, seed, able, exhibit);
    opc_text_clear(&text);
    verdict = above_off_policy(study, seed, able->runs, (struct term){last, 0, CORRECTED, 1},
                               (struct term){last, 0, LEARNED, -1}, &text, &seeds);
    opc_exhibit_claim(
        exhibit, able->yes ? verdict : OPC_VERDICT_UNDECIDED,
        "Eq. 2, which draws the noise that it predicts for the action, is nearer to "
        "the environment there.",
        "at slope %g, eq. 5 minus eq. 2: %s standard deviations [95 %% bootstrap over "
        "runs]%s",
        study->slope[last], opc_text_get(&text), end_of(verdict, able, seeds, NULL, end));
    opc_text_free(&text);
}

/* Figure, tables, claims and notes. */
static int show_limitation(const struct opc_request *request,
                           const struct opc_probe_limitation_config *set, const struct study *study,
                           struct opc_exhibit *exhibit, struct opc_err *err)
{
    int fewest = study->runs, run;
    for (int s = 0; s < study->slopes; s++) {
        const int n = runs_of(study, s, 0, &run);
        fewest = n < fewest ? n : fewest;
    }
    OPC_TRY(draw_limitation(study, request->seed, exhibit, err));
    OPC_TRY(write_distances(study, request->seed, exhibit, err));
    const struct able able = find_able(request, study, fewest);
    claim_limitation(study, request->seed, &able, exhibit);
    opc_exhibit_note(
        exhibit,
        "%d rollouts and episodes of %d steps for each amplitude, from the start of an "
        "episode, in each of %d run%s (%d or more for each slope); the recording has "
        "amplitude %g. The paper states this limitation and measures nothing.",
        set->samples, set->horizon, study->runs, study->runs == 1 ? "" : "s", fewest,
        set->recorded);
    return OPC_OK;
}

/* The analysis itself: measure all runs, then show them. */
static int probe_limitation_make(const struct opc_request *request, const void *settings,
                                 struct opc_exhibit *exhibit, struct opc_err *err)
{
    const struct opc_probe_limitation_config *set = settings;
    struct study study = {.runs = request->runs, .amplitude = &set->amplitude, .one = -1};
    if (request->runs == 0 || set->amplitude.n == 0)
        return opc_fail(err, OPC_EUSER, "there is %s to probe",
                        request->runs ? "no amplitude" : "no run");
    for (int k = 0; k < set->amplitude.n; k++)
        if (set->amplitude.at[k] == set->recorded)
            study.one = k;
    const size_t runs = (size_t)request->runs;
    struct opc_block block[] = {
        {&study.distance, runs * (size_t)set->amplitude.n * WAYS, sizeof(double)},
        {&study.slope_of, runs, sizeof(double)}};
    if (!opc_alloc_all(block, 2))
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %d runs", request->runs);
    int code = OPC_OK;
    for (int run = 0; run < request->runs && !code; run++) {
        if (request->progress)
            request->progress(request->ctx, (double)run / request->runs, request->run[run]);
        code = measure_run(request, run, set, &study, err);
    }
    if (!code)
        code = list_slopes(&study, err);
    if (!code)
        code = show_limitation(request, set, &study, exhibit, err);
    opc_free(study.distance);
    opc_free(study.slope_of);
    return code;
}

#define SELF struct opc_probe_limitation_config
static const struct opc_section section = OPC_SECTION("probe", "", OPC_PROBE_LIMITATION_FIELDS);
#undef SELF

const struct opc_analysis opc_probe_limitation = {
    .name = "probe_limitation",
    .help = "predicted distributions where the noise depends on the action, over its slope",
    .settings = &section,
    .needs_models = true,
    .make = probe_limitation_make,
};
