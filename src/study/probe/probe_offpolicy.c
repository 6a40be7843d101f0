/* SPDX-License-Identifier: MIT */
/* Figure 16: predictions for a policy that is not the one that recorded. The policy pi_n plays
 * episodes; the rollouts along them use a policy with the same mean and beta times its standard
 * deviation (before squashing). beta = 1 is on-policy.
 *
 * Invariant: all beta use the same references, and for each beta both models see the same noise,
 * row by row. */
#include "study/probe/probe.h"

#include "num/stats.h"
#include "opc/mem.h"
#include "study/exhibit/seeds.h"

#include <math.h>
#include <stdio.h>

/* Ways to get a return for a policy: play it, or imagine it by either model. */
enum { WORLD, LEARNED, CORRECTED, WAYS };
static const char *const NAME[WAYS] = {"environment", "MBPO(*), eq. 2", "OPC, eq. 5"};
static const int COLOUR[WAYS] = {OPC_COLOUR_TRUE, OPC_COLOUR_MODEL, OPC_COLOUR_OPC};

/* Numbers of the streams for episodes; beta number k plays with PLAYED + k. */
enum { REFERENCE = 0, PLAYED = 1 };

/* Returns of all runs: rows of run 0, then of run 1, ... */
struct sweep {
    int runs, each, rows, limit;
    int missing; /* runs that are not there yet */
    const struct opc_reals *beta;
    double *scratch;                     /* [runs] */
    double *returns;                     /* [betas][ways][rows] */
    int *length;                         /* [betas][ways][rows] */
    int full;                            /* number of references that last to the time limit */
    int lost[WAYS];                      /* rollouts that became infinite */
    int epoch_of_model, epoch_of_policy; /* of the first run */
};

/* Offset of a row's value for one beta and one way. */
static size_t sweep_offset(const struct sweep *sweep, int beta, int way, int row)
{
    return ((size_t)beta * WAYS + (size_t)way) * (size_t)sweep->rows + (size_t)row;
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* Episodes on the environment with the scaled policy. */
static int play_with(const struct opc_probe *probe, struct opc_actor actor, int beta, int first,
                     struct sweep *sweep, struct opc_err *err)
{
    struct opc_episodes *past;
    const int code = opc_probe_play(probe, actor, PLAYED + beta, sweep->each, &past, err);
    if (code)
        return code;
    opc_probe_returns(past, sweep->returns + sweep_offset(sweep, beta, WORLD, first));
    for (int i = 0; i < sweep->each; i++)
        sweep->length[sweep_offset(sweep, beta, WORLD, first + i)] = opc_episodes_length(past, i);
    opc_episodes_destroy(past);
    return OPC_OK;
}

/* Rollouts on one model with the scaled policy, along the references. */
static int imagine_with(const struct opc_probe *probe, const struct opc_transition *tr,
                        struct opc_actor actor, int beta, int way, int first,
                        struct opc_branches *branches, struct sweep *sweep, struct opc_err *err)
{
    /* All rollouts start with their reference and last as long as an episode may. */
    opc_probe_from_starts(branches, tr->past);
    const int code = opc_probe_follow(probe, tr, actor, beta, branches, err);
    if (code)
        return code;
    opc_branches_returns(branches, sweep->returns + sweep_offset(sweep, beta, way, first));
    sweep->lost[way] += opc_branches_ended(branches, OPC_END_REFUSED);
    /* Lengths say later which rollouts reached the time limit. */
    for (int i = 0; i < sweep->each; i++)
        sweep->length[sweep_offset(sweep, beta, way, first + i)] = branches->length[i];
    return OPC_OK;
}

/* All beta for one run. */
static int sweep_run(const struct opc_request *request, int run, const struct opc_probe *probe,
                     const struct opc_trained *policy, const struct opc_trained *model,
                     struct sweep *sweep, struct opc_err *err)
{
    struct opc_episodes *past = NULL;
    struct opc_models models = {0};
    struct opc_branches branches = {0};
    const int first = run * sweep->each;
    /* The references are played with the policy as it is, beta = 1. */
    int code = opc_probe_play(probe, (struct opc_actor){policy->agent, 1}, REFERENCE, sweep->each,
                              &past, err);
    if (!code)
        code = opc_models_make(probe, model->model, past, &models, err);
    if (!code)
        code = opc_branches_make(sweep->each, probe->limit, probe->obs, probe->act, &branches, err);
    /* Count references that reach the limit: the claims presuppose a policy that does. */
    for (int i = 0; i < sweep->each && !code; i++)
        sweep->full += opc_episodes_length(past, i) == probe->limit;
    /* Every beta: on the environment, by eq. 2, by eq. 5. */
    for (int k = 0; k < sweep->beta->n && !code; k++) {
        const struct opc_actor actor = {policy->agent, sweep->beta->at[k]};
        if (request->progress)
            request->progress(request->ctx, (run + (double)k / sweep->beta->n) / request->runs,
                              probe->dir);
        code = play_with(probe, actor, k, first, sweep, err);
        if (!code)
            code = imagine_with(probe, models.learned, actor, k, LEARNED, first, &branches, sweep,
                                err);
        if (!code)
            code = imagine_with(probe, models.corrected, actor, k, CORRECTED, first, &branches,
                                sweep, err);
    }
    opc_branches_free(&branches);
    opc_models_free(&models);
    opc_episodes_destroy(past);
    return code;
}

/* Loads policy and model of one run and measures it. */
static int measure_run(const struct opc_request *request, int run,
                       const struct opc_probe_offpolicy_config *set, struct sweep *sweep,
                       struct opc_err *err)
{
    struct opc_probe probe;
    struct opc_trained policy = {0}, model = {0};
    int code =
        opc_probe_open(request->run[run], request->pool, opc_probe_seed(request, run), &probe, err);
    if (code)
        return code;
    code = opc_probe_needs_model(&probe, err);
    if (!code)
        code = opc_probe_load(&probe, set->policy, &policy, err);
    if (!code)
        code = opc_probe_load(&probe, set->epoch, &model, err);
    if (!code && !policy.agent->type->act_spread)
        code = opc_fail(err, OPC_EUSER,
                        "%s: train.agent = %s plans its actions, and has no deviation to scale",
                        probe.dir, policy.agent->type->name);
    /* The first run fixes the time limit; runs of another task would not be comparable. */
    if (!code && run == 0) {
        sweep->limit = probe.limit;
        sweep->epoch_of_model = model.epoch;
        sweep->epoch_of_policy = policy.epoch;
    } else if (!code && sweep->limit != probe.limit) {
        code = opc_fail(err, OPC_EUSER, "%s and %s are not of the same task", request->run[0],
                        probe.dir);
    }
    if (!code)
        code = sweep_run(request, run, &probe, &policy, &model, sweep, err);
    opc_trained_free(&policy);
    opc_trained_free(&model);
    opc_probe_close(&probe);
    return code;
}

/* ---- the exhibit ----------------------------------------------------------------------------- */

/* Share of episodes or rollouts of one run, or of all (run = -1), that last to the time limit. */
static double share_of(const struct sweep *sweep, int beta, int way, int run)
{
    const int first = run < 0 ? 0 : run * sweep->each, rows = run < 0 ? sweep->rows : sweep->each;
    int n = 0;
    for (int row = first; row < first + rows; row++)
        n += sweep->length[sweep_offset(sweep, beta, way, row)] == sweep->limit;
    return (double)n / rows;
}

static double share_complete(const struct sweep *sweep, int beta, int way)
{
    return share_of(sweep, beta, way, -1);
}

/* Mean return of one run, or of all (run = -1), not discounted. */
static double return_of(const struct sweep *sweep, int beta, int way, int run)
{
    const int first = run < 0 ? 0 : run * sweep->each, rows = run < 0 ? sweep->rows : sweep->each;
    double sum = 0;
    for (int row = first; row < first + rows; row++)
        sum += sweep->returns[sweep_offset(sweep, beta, way, row)];
    return sum / rows;
}

static double mean_return(const struct sweep *sweep, int beta, int way)
{
    return return_of(sweep, beta, way, -1);
}

/* Mean of a value of each run, and two standard errors to either side. Rollouts of one run share
 * policy and model, so the runs are what there is a number of. */
static struct opc_interval over_runs(int runs, const double *value)
{
    const double middle = opc_mean(runs, value),
                 twice = runs > 1 ? 2 * opc_deviation(runs, value) / sqrt(runs) : HUGE_VAL;
    return (struct opc_interval){middle, middle - twice, middle + twice};
}

/* Left: returns as violins, one group per beta. Right: share that lasts to the time limit. */
static int draw_offpolicy(const struct sweep *sweep, struct opc_exhibit *exhibit,
                          struct opc_err *err)
{
    /* Arrays on the stack: a list in the settings has at most this many beta. */
    enum { MAX = OPC_LIST_MAX };
    const int n = sweep->beta->n;
    struct opc_figure_layer violin[WAYS * MAX], line[WAYS];
    double x[WAYS * MAX], place_of[MAX], shares[WAYS][MAX];
    char tick[MAX][16];
    const char *word[MAX];
    for (int k = 0; k < n; k++) {
        place_of[k] = k;
        snprintf(tick[k], sizeof tick[k], "%g", sweep->beta->at[k]);
        word[k] = tick[k];
        for (int way = 0; way < WAYS; way++) {
            const int i = k * WAYS + way;
            shares[way][k] = share_complete(sweep, k, way);
            /* Three violins side by side around the tick of their beta. */
            x[i] = k + 0.28 * (way - 1);
            violin[i] =
                (struct opc_figure_layer){.mark = OPC_PLOT_VIOLIN,
                                          .colour = COLOUR[way],
                                          .label = NAME[way],
                                          .n = sweep->rows,
                                          .x = &x[i],
                                          .y = sweep->returns + sweep_offset(sweep, k, way, 0),
                                          .width = 0.26};
        }
    }
    /* One line for each way: the share over beta. */
    for (int way = 0; way < WAYS; way++)
        line[way] = (struct opc_figure_layer){.mark = OPC_PLOT_LINE,
                                              .colour = COLOUR[way],
                                              .label = NAME[way],
                                              .n = n,
                                              .x = place_of,
                                              .y = shares[way]};
    /* Ticks are words, because beta need not be evenly spaced. */
    const struct opc_panel panel[] = {
        {.title = "returns",
         .x_label = "beta",
         .y_label = "return",
         .x = {-0.5, n - 0.5},
         .x_words = word,
         .x_word_count = n,
         .layers = n * WAYS,
         .layer = violin},
        {.title = "share that lasts to the time limit",
         .x_label = "beta",
         .y_label = "share",
         .x = {-0.5, n - 0.5},
         .y = {0, 1},
         .x_words = word,
         .x_word_count = n,
         .layers = WAYS,
         .layer = line},
    };
    const struct opc_figure figure = {
        .note = "beta multiplies the standard deviation of the policy before squashing; its mean "
                "stays. References are episodes with beta = 1.",
        .panels = 2,
        .columns = 2,
        .panel = panel,
        .panel_width = 340,
    };
    return opc_exhibit_figure(exhibit, NULL, "predicted and real returns off-policy", &figure, err);
}

static int write_offpolicy_tables(const struct sweep *sweep, struct opc_exhibit *exhibit,
                                  struct opc_err *err)
{
    /* Means over beta, and every single return. */
    struct opc_table *sums = NULL, *all = NULL;
    int code = opc_table_create("beta,by,rollouts,mean_return,share_complete", &sums, err);
    if (!code)
        code = opc_table_create("beta,by,run,rollout,return,steps", &all, err);
    for (int k = 0; k < sweep->beta->n && !code; k++)
        for (int way = 0; way < WAYS; way++) {
            opc_table_real(sums, sweep->beta->at[k]);
            opc_table_word(sums, NAME[way]);
            opc_table_int(sums, sweep->rows);
            opc_table_real(sums, mean_return(sweep, k, way));
            opc_table_real(sums, share_complete(sweep, k, way));
            for (int row = 0; row < sweep->rows; row++) {
                opc_table_real(all, sweep->beta->at[k]);
                opc_table_word(all, NAME[way]);
                opc_table_int(all, row / sweep->each + 1);
                opc_table_int(all, row % sweep->each + 1);
                opc_table_real(all, sweep->returns[sweep_offset(sweep, k, way, row)]);
                opc_table_int(all, sweep->length[sweep_offset(sweep, k, way, row)]);
            }
        }
    if (!code)
        code = opc_exhibit_table(exhibit, NULL, "means over beta", sums, err);
    if (!code)
        code = opc_exhibit_table(exhibit, "returns", "every return", all, err);
    opc_table_free(sums);
    opc_table_free(all);
    return code;
}

/* ---- claims ---------------------------------------------------------------------------------- */

/* Index of the beta nearest to the given one. */
static int nearest_beta(const struct sweep *sweep, double beta)
{
    int at = 0;
    for (int k = 1; k < sweep->beta->n; k++)
        if (fabs(sweep->beta->at[k] - beta) < fabs(sweep->beta->at[at] - beta))
            at = k;
    return at;
}

/* Why a claim cannot be judged, as the end of a sentence; "" if it can. `lacks`: what was not
 * measured, or NULL. */
static void say_unable(const struct sweep *sweep, bool able, const char *lacks,
                       char out[OPC_SEEDS_TEXT])
{
    opc_seeds_say_unable(sweep->missing, sweep->runs, out);
    if (sweep->missing)
        return;
    if (!able)
        snprintf(
            out, OPC_SEEDS_TEXT,
            "; a policy of which 95 %% of the references last to the time limit decides it, not "
            "more seeds (%d of %d do)",
            sweep->full, sweep->rows);
    else if (lacks)
        snprintf(out, OPC_SEEDS_TEXT,
                 "; %s was not measured: it has to be in the list, and seeds do not matter", lacks);
}

/* At beta = 1: more than 95 % must last to the limit on both models, interval included. */
static void claim_on_policy(const struct sweep *sweep, bool able, struct opc_exhibit *exhibit)
{
    char end[OPC_SEEDS_TEXT];
    struct opc_seeds_all needed = {0};
    /* Undecided unless beta = 1 itself was measured. */
    const int one = nearest_beta(sweep, 1), way[2] = {LEARNED, CORRECTED};
    struct opc_interval share[2];
    for (int k = 0; k < 2; k++) {
        for (int run = 0; run < sweep->runs; run++)
            sweep->scratch[run] = share_of(sweep, one, way[k], run);
        share[k] = over_runs(sweep->runs, sweep->scratch);
    }
    const struct opc_interval model = share[0], opc = share[1];
    say_unable(sweep, able, sweep->beta->at[one] == 1 ? NULL : "beta = 1", end);
    const enum opc_verdict verdict = *end                                 ? OPC_VERDICT_UNDECIDED
                                     : model.low > 0.95 && opc.low > 0.95 ? OPC_VERDICT_SUPPORTED
                                     : model.high <= 0.95 || opc.high <= 0.95
                                         ? OPC_VERDICT_NOT_SUPPORTED
                                         : OPC_VERDICT_UNDECIDED;
    for (int k = 0; k < 2; k++)
        if (!(share[k].low > 0.95))
            opc_seeds_join(&needed, opc_seeds_to_clear(&share[k], 0.95, sweep->runs, 0),
                           share[k].middle >= 0.95);
    if (verdict == OPC_VERDICT_UNDECIDED && !*end)
        opc_seeds_say(opc_seeds_joined(&needed), sweep->runs, "seeds",
                      "so far the share is 95 % itself", end);
    opc_exhibit_claim(
        exhibit, verdict,
        "On-policy (beta = 1) more than 95 % of the rollouts are predicted to last to "
        "the time limit.",
        "at beta = %g: %.3g %% by OPC (two standard errors over runs: %.1f to %.1f), "
        "%.3g %% by MBPO(*) (%.1f to %.1f), %.3g %% on the environment (%.3g %% of "
        "the references do)%s",
        sweep->beta->at[one], 100 * opc.middle, 100 * opc.low, 100 * opc.high, 100 * model.middle,
        100 * model.low, 100 * model.high, 100 * share_complete(sweep, one, WORLD),
        100.0 * sweep->full / sweep->rows, end);
}

/* At beta >= 2.3: nothing may last to the limit on either model. */
static void claim_far(const struct sweep *sweep, bool able, struct opc_exhibit *exhibit)
{
    /* Largest share over all such beta, for each way. */
    double max[WAYS] = {0};
    int asked = 0;
    for (int k = 0; k < sweep->beta->n; k++)
        if (sweep->beta->at[k] >= 2.3) {
            asked++;
            for (int way = 0; way < WAYS; way++)
                max[way] = fmax(max[way], share_complete(sweep, k, way));
        }
    char end[OPC_SEEDS_TEXT];
    say_unable(sweep, able, asked ? NULL : "beta >= 2.3", end);
    /* One rollout that lasts refutes it, however few the runs are. */
    const bool refuted = able && !sweep->missing && (max[LEARNED] > 0 || max[CORRECTED] > 0);
    if (refuted)
        *end = '\0';
    opc_exhibit_claim(exhibit,
                      refuted ? OPC_VERDICT_NOT_SUPPORTED
                      : *end  ? OPC_VERDICT_UNDECIDED
                              : OPC_VERDICT_SUPPORTED,
                      "For beta >= 2.3 all predicted rollouts fail.",
                      "lasting to the time limit at one of %d such beta, at most: %.3g %% by OPC, "
                      "%.3g %% by MBPO(*), %.3g %% on the environment%s",
                      asked, 100 * max[CORRECTED], 100 * max[LEARNED], 100 * max[WORLD], end);
}

/* How far the mean returns of the two models are apart, in each run: gaps of opposite signs must
 * not cancel. */
static struct opc_interval gap_between(const struct sweep *sweep, int beta)
{
    for (int run = 0; run < sweep->runs; run++)
        sweep->scratch[run] =
            fabs(return_of(sweep, beta, LEARNED, run) - return_of(sweep, beta, CORRECTED, run));
    return over_runs(sweep->runs, sweep->scratch);
}

/* The largest gap between the two models, relative to the return at beta = 1, with two standard
 * errors. */
static void claim_alike(const struct sweep *sweep, bool able, struct opc_exhibit *exhibit)
{
    enum { ALIKE = 20 }; /* per cent of the range */
    struct opc_interval gap = {-1, 0, 0};
    double model = 0, opc = 0;
    int worst = 0;
    /* model, opc: mean distance from the environment. */
    for (int k = 0; k < sweep->beta->n; k++) {
        const struct opc_interval d = gap_between(sweep, k);
        model +=
            fabs(mean_return(sweep, k, LEARNED) - mean_return(sweep, k, WORLD)) / sweep->beta->n;
        opc +=
            fabs(mean_return(sweep, k, CORRECTED) - mean_return(sweep, k, WORLD)) / sweep->beta->n;
        if (d.middle > gap.middle) {
            gap = d;
            worst = k;
        }
    }
    const int one = nearest_beta(sweep, 1);
    const double range = fabs(mean_return(sweep, one, WORLD)), max = ALIKE * range / 100,
                 twice = gap.high - gap.middle;
    /* Two standard errors on either side of the limit leave the claim undecided. */
    char end[OPC_SEEDS_TEXT];
    say_unable(sweep, able, sweep->beta->at[one] == 1 ? NULL : "beta = 1", end);
    const enum opc_verdict verdict = *end              ? OPC_VERDICT_UNDECIDED
                                     : gap.high <= max ? OPC_VERDICT_SUPPORTED
                                     : gap.low > max   ? OPC_VERDICT_NOT_SUPPORTED
                                                       : OPC_VERDICT_UNDECIDED;
    if (verdict == OPC_VERDICT_UNDECIDED && !*end)
        opc_seeds_say(opc_seeds_needed(sweep->runs, 0, twice, fabs(gap.middle - max)), sweep->runs,
                      "seeds", "so far the difference is the limit itself", end);
    opc_exhibit_claim(
        exhibit, verdict, "Off-policy, OPC and MBPO(*) degrade alike.",
        "in a run, their mean returns differ most at beta = %g, by %.3g %% of the return at "
        "beta = 1, give or take %.2g %% (mean and two standard errors over runs; alike: up to %d "
        "%%); mean distance from the environment: %.4g with OPC, %.4g with MBPO(*)%s",
        sweep->beta->at[worst], range > 0 ? 100 * gap.middle / range : 0,
        range > 0 ? 100 * twice / range : 0, ALIKE, opc, model, end);
}

/* How the numbers were made, and why claims may be undecided. */
static void note_offpolicy(const struct sweep *sweep, bool able, struct opc_exhibit *exhibit)
{
    opc_exhibit_note(exhibit,
                     "%d rollouts for each beta from each of %d run%s, whole episodes, returns not "
                     "discounted; model after epoch %d, policy after epoch %d. By eq. 5 a rollout "
                     "cannot outlive its reference.",
                     sweep->each, sweep->runs, sweep->runs == 1 ? "" : "s", sweep->epoch_of_model,
                     sweep->epoch_of_policy);
    if (!able)
        opc_exhibit_note(
            exhibit,
            "Only %d of %d references last to the time limit: the paper's policy holds "
            "the pole throughout, this one does not, so its claims are not decided.",
            sweep->full, sweep->rows);
    for (int way = LEARNED; way < WAYS; way++)
        if (sweep->lost[way])
            opc_exhibit_note(exhibit, "%d rollouts by %s became infinite and count up to there",
                             sweep->lost[way], NAME[way]);
}

/* The analysis itself: measure all runs, then figure, tables, claims and notes. */
static int probe_offpolicy_make(const struct opc_request *request, const void *settings,
                                struct opc_exhibit *exhibit, struct opc_err *err)
{
    const struct opc_probe_offpolicy_config *set = settings;
    struct sweep sweep = {
        .runs = request->runs,
        .each = set->samples,
        .rows = request->runs * set->samples,
        .missing = request->missing,
        .beta = &set->beta,
    };
    if (request->runs == 0 || set->beta.n == 0)
        return opc_fail(err, OPC_EUSER, "there is %s to probe",
                        request->runs ? "no beta" : "no run");
    /* One block for returns and one for lengths, [betas][ways][rows]. */
    const size_t all = sweep_offset(&sweep, set->beta.n, 0, 0);
    sweep.returns = opc_alloc(all, sizeof *sweep.returns);
    sweep.length = opc_alloc(all, sizeof *sweep.length);
    sweep.scratch = opc_alloc((size_t)request->runs, sizeof *sweep.scratch);
    int code = sweep.returns && sweep.length && sweep.scratch
                   ? OPC_OK
                   : opc_fail(err, OPC_ENOMEM, "not enough memory for %zu returns", all);
    for (int run = 0; run < request->runs && !code; run++)
        code = measure_run(request, run, set, &sweep, err);
    if (!code)
        code = draw_offpolicy(&sweep, exhibit, err);
    if (!code)
        code = write_offpolicy_tables(&sweep, exhibit, err);
    if (!code) {
        /* The policy does what the paper's does: 95 % of the references last to the limit. */
        const bool able = 20 * sweep.full >= 19 * sweep.rows;
        claim_on_policy(&sweep, able, exhibit);
        claim_far(&sweep, able, exhibit);
        claim_alike(&sweep, able, exhibit);
        note_offpolicy(&sweep, able, exhibit);
    }
    opc_free(sweep.returns);
    opc_free(sweep.length);
    opc_free(sweep.scratch);
    return code;
}

#define SELF struct opc_probe_offpolicy_config
static const struct opc_section section = OPC_SECTION("probe", "", OPC_PROBE_OFFPOLICY_FIELDS);
#undef SELF

const struct opc_analysis opc_probe_offpolicy = {
    .name = "probe_offpolicy",
    .help = "real and predicted returns when the policy's deviation is scaled (Figure 16)",
    .settings = &section,
    .needs_models = true,
    .make = probe_offpolicy_make,
};
