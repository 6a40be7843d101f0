/* SPDX-License-Identifier: MIT */
/* Section 3.4: how much the elites of the ensemble disagree along imagined rollouts, by eq. 2 and
 * by eq. 5. By eq. 5 each elite is corrected by its own error, so on-policy all of them say what
 * was recorded and their disagreement is zero; off-policy it is kept.
 *
 * The references are episodes of the policy's mode. Every elite follows rollouts of its own from
 * the same starts with the same noise, of which the policy's deviation is multiplied by beta: beta
 * = 0 is on-policy. eq. 2 takes the mean of its elite, so that what differs is the elites and not
 * the noise they predict. Spread and error are in standard deviations of the recorded states:
 *
 *     spread_i(h)^2 = mean over entries of Var_k(s_k),   error_i(h)^2 = mean of |s_k - true_k|^2
 *
 * over the elites k; true_k is what the environment does with the actions of rollout k.
 *
 * Invariant: elites that agree to the bit have a spread of exactly 0. */
#include "study/probe/probe_uncertainty.h"

#include "opc/mem.h"

#include <math.h>

enum { REFERENCE = 0 }; /* number of the stream that episodes draw from */

/* ---- measuring ------------------------------------------------------------------------------- */

/* The rollouts of all elites of one run, one way and one beta, as sums over elites. */
struct sums {
    int obs, length; /* length: horizon + 1 */
    double *inverse; /* [obs] 1 / standard deviation of the recorded entry; 0 if it never varies */
    /* [each][length][obs] the state by elite 0, and the sum and the sum of squares of what the
     * others differ from it by: exactly 0 where all agree. */
    double *base, *sum, *square;
    double *wrong; /* [each][length] sum over elites and entries of the squared error */
    double *truth; /* [each][length][obs] */
    int *ended;    /* [each] as opc_probe_truth gives it; not used */
};

/* Accepts sums of which nothing was allocated. */
static void sums_free(struct sums *sums)
{
    opc_free(sums->inverse);
    opc_free(sums->base);
    opc_free(sums->sum);
    opc_free(sums->square);
    opc_free(sums->wrong);
    opc_free(sums->truth);
    opc_free(sums->ended);
}

static int sums_make(const struct opc_spread *study, int obs, struct sums *sums,
                     struct opc_err *err)
{
    *sums = (struct sums){.obs = obs, .length = study->horizon + 1};
    const size_t steps = (size_t)study->each * (size_t)sums->length, all = steps * (size_t)obs;
    struct opc_block block[] = {
        {&sums->inverse, (size_t)obs, sizeof(double)},
        {&sums->base, all, sizeof(double)},
        {&sums->sum, all, sizeof(double)},
        {&sums->square, all, sizeof(double)},
        {&sums->wrong, steps, sizeof(double)},
        {&sums->truth, all, sizeof(double)},
        {&sums->ended, (size_t)study->each, sizeof(int)},
    };
    if (opc_alloc_all(block, sizeof block / sizeof *block))
        return OPC_OK;
    return opc_fail(err, OPC_ENOMEM, "not enough memory for %d rollouts of %d steps; ask for fewer",
                    study->each, study->horizon);
}

/* The unit of each entry: its standard deviation over the recorded states. */
static void set_units(const struct opc_episodes *past, struct sums *sums)
{
    for (int k = 0; k < sums->obs; k++) {
        double mean = 0, square = 0;
        const int n = opc_episodes_steps(past);
        /* Two passes, because an entry may be far from 0 and hardly vary. */
        for (int pass = 0; pass < 2; pass++)
            for (int b = 0; b < opc_episodes_count(past); b++)
                for (int t = 0; t < opc_episodes_length(past, b); t++) {
                    const double s = (double)opc_episodes_at(past, b, t).state[k];
                    if (pass == 0)
                        mean += s / n;
                    else
                        square += (s - mean) * (s - mean) / n;
                }
        sums->inverse[k] = square > 0 ? 1 / sqrt(square) : 0;
    }
}

/* Adds the rollouts of one elite; sums->truth is what the environment does with their actions. */
static void add_elite(const struct opc_branches *branches, int elite, struct sums *sums)
{
    for (int i = 0; i < branches->n; i++)
        for (int h = 0; h < sums->length; h++) {
            const size_t step = (size_t)i * (size_t)sums->length + (size_t)h;
            double wrong = 0;
            /* A state after the end of the rollout is NaN, and so are all sums with it. */
            for (int k = 0; k < sums->obs; k++) {
                const size_t at = step * (size_t)sums->obs + (size_t)k;
                const double s = opc_branches_at(branches, i, h, k),
                             e = (s - sums->truth[at]) * sums->inverse[k];
                if (elite == 0) {
                    sums->base[at] = s;
                    sums->sum[at] = sums->square[at] = 0;
                }
                const double d = s - sums->base[at];
                sums->sum[at] += d;
                sums->square[at] += d * d;
                wrong += e * e;
            }
            sums->wrong[step] = elite == 0 ? wrong : sums->wrong[step] + wrong;
        }
}

/* Spread and error of every rollout and step, from the sums over all elites. */
static void finish_sums(const struct sums *sums, struct opc_spread *study, int beta, int way,
                        int first)
{
    int entries = 0;
    for (int k = 0; k < sums->obs; k++)
        entries += sums->inverse[k] > 0;
    const double n = study->elites, m = entries > 0 ? entries : 1;
    for (int i = 0; i < study->each; i++)
        for (int h = 0; h < sums->length; h++) {
            const size_t step = (size_t)i * (size_t)sums->length + (size_t)h,
                         to = opc_spread_offset(study, beta, way, first + i, h);
            double sum = 0;
            for (int k = 0; k < sums->obs; k++) {
                const size_t at = step * (size_t)sums->obs + (size_t)k;
                const double mean = sums->sum[at] / n,
                             variance = sums->square[at] / n - mean * mean;
                /* Rounding may make a variance slightly negative; fmax would swallow NaN. */
                sum += (variance < 0 ? 0 : variance) * sums->inverse[k] * sums->inverse[k];
            }
            study->spread[to] = sqrt(sum / m);
            study->error[to] = sqrt(sums->wrong[step] / (n * m));
        }
}

/* All beta and both ways for one run. */
static int spread_of_run(const struct opc_request *request, int run, const struct opc_probe *probe,
                         const struct opc_trained *policy, const struct opc_trained *model,
                         int references, struct opc_spread *study, struct opc_err *err)
{
    struct opc_episodes *past = NULL;
    struct opc_models models = {0};
    struct opc_branches branches = {0};
    struct sums sums = {0};
    /* The references: episodes of the policy's mode. */
    int code = opc_probe_play(probe, (struct opc_actor){policy->agent, 0}, REFERENCE, references,
                              &past, err);
    if (!code)
        code = opc_models_make_as(probe, model->model, past, true, &models, err);
    if (!code)
        code =
            opc_branches_make(study->each, study->horizon, probe->obs, probe->act, &branches, err);
    if (!code)
        code = sums_make(study, probe->obs, &sums, err);
    if (!code)
        set_units(past, &sums);
    /* Starts and noise are the same for every beta, way and elite. */
    for (int beta = 0; beta < study->beta->n && !code; beta++) {
        if (request->progress)
            request->progress(request->ctx, (run + (double)beta / study->beta->n) / request->runs,
                              probe->dir);
        for (int way = 0; way < OPC_SPREAD_WAYS && !code; way++) {
            const struct opc_actor actor = {policy->agent, study->beta->at[beta]};
            for (int elite = 0; elite < study->elites && !code; elite++) {
                opc_probe_from_anywhere(&branches, past, probe->seed, run);
                code = opc_probe_follow_elite(
                    probe, way == OPC_SPREAD_LEARNED ? models.learned : models.corrected, actor,
                    run, elite, &branches, err);
                if (!code)
                    code = opc_probe_truth(probe, past, REFERENCE, &branches, sums.truth,
                                           sums.ended, err);
                if (!code)
                    add_elite(&branches, elite, &sums);
            }
            if (!code)
                finish_sums(&sums, study, beta, way, run * study->each);
        }
    }
    sums_free(&sums);
    opc_branches_free(&branches);
    opc_models_free(&models);
    opc_episodes_destroy(past);
    return code;
}

/* Allocates what all runs share, once the first run tells how many elites there are. */
static int study_make(struct opc_spread *study, const struct opc_trained *model,
                      const struct opc_trained *policy, struct opc_err *err)
{
    study->elites = model->model->elites;
    study->epoch_of_model = model->epoch;
    study->epoch_of_policy = policy->epoch;
    const size_t all = opc_spread_offset(study, study->beta->n, 0, 0, 0);
    struct opc_block block[] = {{&study->spread, all, sizeof(double)},
                                {&study->error, all, sizeof(double)}};
    if (opc_alloc_all(block, 2))
        return OPC_OK;
    return opc_fail(err, OPC_ENOMEM, "not enough memory for %zu numbers; ask for fewer rollouts",
                    2 * all);
}

/* Loads policy and model of one run and measures it. */
static int measure_run(const struct opc_request *request, int run,
                       const struct opc_probe_uncertainty_config *set, struct opc_spread *study,
                       struct opc_err *err)
{
    struct opc_probe probe;
    struct opc_trained policy = {0}, model = {0};
    OPC_TRY(opc_probe_open(request->run[run], request->pool, opc_probe_seed(request, run), &probe,
                           err));
    int code = opc_probe_needs_model(&probe, err);
    if (!code)
        code = opc_probe_load(&probe, set->policy, &policy, err);
    if (!code)
        code = opc_probe_load(&probe, set->epoch, &model, err);
    if (!code && !policy.agent->type->act_spread)
        code = opc_fail(err, OPC_EUSER,
                        "%s: train.agent = %s plans its actions, and has no deviation to scale",
                        probe.dir, policy.agent->type->name);
    if (!code && model.model->elites < 2)
        code = opc_fail(err, OPC_EUSER,
                        "%s: model.elites = 1, and one network cannot disagree; train with two or "
                        "more",
                        probe.dir);
    if (!code && run == 0)
        code = study_make(study, &model, &policy, err);
    else if (!code && model.model->elites != study->elites)
        code = opc_fail(err, OPC_EUSER, "%s has %d elites, not %d as %s", probe.dir,
                        model.model->elites, study->elites, request->run[0]);
    if (!code)
        code = spread_of_run(request, run, &probe, &policy, &model, set->references, study, err);
    opc_trained_free(&policy);
    opc_trained_free(&model);
    opc_probe_close(&probe);
    return code;
}

/* ---- the analysis ---------------------------------------------------------------------------- */

void opc_spread_free(struct opc_spread *study)
{
    opc_free(study->spread);
    opc_free(study->error);
    *study = (struct opc_spread){0};
}

int opc_spread_measure(const struct opc_request *request,
                       const struct opc_probe_uncertainty_config *set, struct opc_spread *out,
                       struct opc_err *err)
{
    struct opc_spread study = {
        .runs = request->runs,
        .each = set->samples,
        .rows = request->runs * set->samples,
        .horizon = set->horizon,
        .beta = &set->beta,
    };
    int code = OPC_OK;
    if (request->runs == 0 || set->beta.n == 0)
        return opc_fail(err, OPC_EUSER, "there is %s to probe",
                        request->runs ? "no beta" : "no run");
    for (int run = 0; run < request->runs && !code; run++)
        code = measure_run(request, run, set, &study, err);
    if (code)
        opc_spread_free(&study);
    else
        *out = study;
    return code;
}

/* The analysis itself. */
static int probe_uncertainty_make(const struct opc_request *request, const void *settings,
                                  struct opc_exhibit *exhibit, struct opc_err *err)
{
    struct opc_spread study;
    OPC_TRY(opc_spread_measure(request, settings, &study, err));
    const int code = opc_spread_show(request, &study, exhibit, err);
    opc_spread_free(&study);
    return code;
}

#define SELF struct opc_probe_uncertainty_config
static const struct opc_section section = OPC_SECTION("probe", "", OPC_PROBE_UNCERTAINTY_FIELDS);
#undef SELF

const struct opc_analysis opc_probe_uncertainty = {
    .name = "probe_uncertainty",
    .help = "how much the elites of the ensemble disagree, on-policy and off-policy (section 3.4)",
    .settings = &section,
    .needs_models = true,
    .make = probe_uncertainty_make,
};
