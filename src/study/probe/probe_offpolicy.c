/* SPDX-License-Identifier: MIT */
/* Figure 16: how predictions fare when the policy is not the one that recorded. The policy pi_n
 * plays episodes; imagined beside them acts a policy with the same mean and beta times the standard
 * deviation (before squashing); beta = 1 is on-policy. */
#include "study/probe/probe.h"

#include "num/stats.h"
#include "opc/mem.h"

#include <math.h>
#include <stdio.h>

enum { WORLD, LEARNED, CORRECTED, WAYS };
static const char *const NAME[WAYS] = {"environment", "MBPO(*), eq. 2", "OPC, eq. 5"};
static const int COLOUR[WAYS] = {OPC_COLOUR_TRUE, OPC_COLOUR_MODEL, OPC_COLOUR_OPC};

enum { REFERENCE = 0, PLAYED = 1 }; /* numbers of the streams episodes draw from */

/* All runs together: rows of run 0, then of run 1, ... */
struct sweep {
    int runs, each, rows, limit;
    const struct opc_reals *beta;
    double *returns; /* [betas][ways][rows] */
    int *length;     /* [betas][ways][rows] */
    int full;        /* references that last to the time limit */
    int lost[WAYS];
    int epoch_of_model, epoch_of_policy; /* of the first run */
};

static size_t place(const struct sweep *s, int beta, int way, int row)
{
    return ((size_t)beta * WAYS + (size_t)way) * (size_t)s->rows + (size_t)row;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static int play_with(const struct opc_probe *p, struct opc_actor actor, int beta, int first,
                     struct sweep *s, struct opc_err *err)
{
    struct opc_episodes *past;
    const int code = opc_probe_play(p, actor, PLAYED + beta, s->each, &past, err);
    if (code)
        return code;
    opc_probe_returns(past, s->returns + place(s, beta, WORLD, first));
    for (int i = 0; i < s->each; i++)
        s->length[place(s, beta, WORLD, first + i)] = opc_episodes_length(past, i);
    opc_episodes_destroy(past);
    return OPC_OK;
}

static int imagine_with(const struct opc_probe *p, const struct opc_transition *tr,
                        struct opc_actor actor, int beta, int way, int first,
                        struct opc_branches *b, struct sweep *s, struct opc_err *err)
{
    opc_probe_from_starts(b, tr->past);
    const int code = opc_probe_follow(p, tr, actor, beta, b, err);
    if (code)
        return code;
    opc_branches_returns(b, s->returns + place(s, beta, way, first));
    s->lost[way] += opc_branches_ended(b, OPC_END_REFUSED);
    for (int i = 0; i < s->each; i++)
        s->length[place(s, beta, way, first + i)] = b->length[i];
    return OPC_OK;
}

static int sweep_run(const struct opc_request *request, int run, const struct opc_probe *p,
                     const struct opc_trained *policy, const struct opc_trained *model,
                     struct sweep *s, struct opc_err *err)
{
    struct opc_episodes *past = NULL;
    struct opc_models models = {0};
    struct opc_branches b = {0};
    const int first = run * s->each;
    int code =
        opc_probe_play(p, (struct opc_actor){policy->agent, 1}, REFERENCE, s->each, &past, err);
    if (!code)
        code = opc_models_make(p, model->model, past, &models, err);
    if (!code)
        code = opc_branches_make(s->each, p->limit, p->obs, p->act, &b, err);
    for (int i = 0; i < s->each && !code; i++)
        s->full += opc_episodes_length(past, i) == p->limit;
    for (int k = 0; k < s->beta->n && !code; k++) {
        const struct opc_actor actor = {policy->agent, s->beta->at[k]};
        if (request->progress)
            request->progress(request->ctx, (run + (double)k / s->beta->n) / request->runs, p->dir);
        code = play_with(p, actor, k, first, s, err);
        if (!code)
            code = imagine_with(p, models.learned, actor, k, LEARNED, first, &b, s, err);
        if (!code)
            code = imagine_with(p, models.corrected, actor, k, CORRECTED, first, &b, s, err);
    }
    opc_branches_free(&b);
    opc_models_free(&models);
    opc_episodes_destroy(past);
    return code;
}

static int measure(const struct opc_request *request, int run,
                   const struct opc_probe_offpolicy_config *set, struct sweep *s,
                   struct opc_err *err)
{
    struct opc_probe p;
    struct opc_trained policy = {0}, model = {0};
    int code = opc_probe_open(request->run[run], request->pool, request->seed, &p, err);
    if (code)
        return code;
    code = opc_probe_needs_model(&p, err);
    if (!code)
        code = opc_probe_load(&p, set->policy, &policy, err);
    if (!code)
        code = opc_probe_load(&p, set->epoch, &model, err);
    if (!code && run == 0) {
        s->limit = p.limit;
        s->epoch_of_model = model.epoch;
        s->epoch_of_policy = policy.epoch;
    } else if (!code && s->limit != p.limit) {
        code =
            opc_fail(err, OPC_EUSER, "%s and %s are not of the same task", request->run[0], p.dir);
    }
    if (!code)
        code = sweep_run(request, run, &p, &policy, &model, s, err);
    opc_trained_free(&policy);
    opc_trained_free(&model);
    opc_probe_close(&p);
    return code;
}

/* ---- the exhibit ----------------------------------------------------------------------------- */

/* Share of rollouts that last to the time limit. */
static double share(const struct sweep *s, int beta, int way)
{
    int n = 0;
    for (int row = 0; row < s->rows; row++)
        n += s->length[place(s, beta, way, row)] == s->limit;
    return (double)n / s->rows;
}

static struct opc_interval interval(const struct sweep *s, int beta, int way)
{
    return opc_share_interval((int)lround(share(s, beta, way) * s->rows), s->rows);
}

static double mean(const struct sweep *s, int beta, int way)
{
    double sum = 0;
    for (int row = 0; row < s->rows; row++)
        sum += s->returns[place(s, beta, way, row)];
    return sum / s->rows;
}

/* Of the difference of two means over rollouts. */
static double error_of_gap(const struct sweep *s, int beta, int a, int b)
{
    const double *x = s->returns + place(s, beta, a, 0), *y = s->returns + place(s, beta, b, 0);
    return hypot(opc_deviation(s->rows, x), opc_deviation(s->rows, y)) / sqrt(s->rows);
}

static int draw(const struct sweep *s, struct opc_exhibit *e, struct opc_err *err)
{
    enum { MAX = OPC_LIST_MAX };
    const int n = s->beta->n;
    struct opc_figure_layer violin[WAYS * MAX], line[WAYS];
    double x[WAYS * MAX], place_of[MAX], shares[WAYS][MAX];
    char tick[MAX][16];
    const char *word[MAX];
    for (int k = 0; k < n; k++) {
        place_of[k] = k;
        snprintf(tick[k], sizeof tick[k], "%g", s->beta->at[k]);
        word[k] = tick[k];
        for (int way = 0; way < WAYS; way++) {
            const int i = k * WAYS + way;
            shares[way][k] = share(s, k, way);
            x[i] = k + 0.28 * (way - 1);
            violin[i] = (struct opc_figure_layer){.mark = OPC_MARK_VIOLIN,
                                                  .colour = COLOUR[way],
                                                  .label = NAME[way],
                                                  .n = s->rows,
                                                  .x = &x[i],
                                                  .y = s->returns + place(s, k, way, 0),
                                                  .width = 0.26};
        }
    }
    for (int way = 0; way < WAYS; way++)
        line[way] = (struct opc_figure_layer){.mark = OPC_MARK_LINE,
                                              .colour = COLOUR[way],
                                              .label = NAME[way],
                                              .n = n,
                                              .x = place_of,
                                              .y = shares[way]};
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
    return opc_exhibit_figure(e, NULL, "predicted and real returns off-policy", &figure, err);
}

static int write_tables(const struct sweep *s, struct opc_exhibit *e, struct opc_err *err)
{
    struct opc_table *sums = NULL, *all = NULL;
    int code = opc_table_create("beta,by,rollouts,mean_return,share_complete", &sums, err);
    if (!code)
        code = opc_table_create("beta,by,run,rollout,return,steps", &all, err);
    for (int k = 0; k < s->beta->n && !code; k++)
        for (int way = 0; way < WAYS; way++) {
            opc_table_real(sums, s->beta->at[k]);
            opc_table_word(sums, NAME[way]);
            opc_table_int(sums, s->rows);
            opc_table_real(sums, mean(s, k, way));
            opc_table_real(sums, share(s, k, way));
            for (int row = 0; row < s->rows; row++) {
                opc_table_real(all, s->beta->at[k]);
                opc_table_word(all, NAME[way]);
                opc_table_int(all, row / s->each + 1);
                opc_table_int(all, row % s->each + 1);
                opc_table_real(all, s->returns[place(s, k, way, row)]);
                opc_table_int(all, s->length[place(s, k, way, row)]);
            }
        }
    if (!code)
        code = opc_exhibit_table(e, NULL, "means over beta", sums, err);
    if (!code)
        code = opc_exhibit_table(e, "returns", "every return", all, err);
    opc_table_free(sums);
    opc_table_free(all);
    return code;
}

/* ---- claims ---------------------------------------------------------------------------------- */

static int nearest(const struct sweep *s, double beta)
{
    int at = 0;
    for (int k = 1; k < s->beta->n; k++)
        if (fabs(s->beta->at[k] - beta) < fabs(s->beta->at[at] - beta))
            at = k;
    return at;
}

static void claim_on_policy(const struct sweep *s, bool able, struct opc_exhibit *e)
{
    const int one = nearest(s, 1);
    const struct opc_interval model = interval(s, one, LEARNED), opc = interval(s, one, CORRECTED);
    opc_exhibit_claim(
        e,
        !able || s->beta->at[one] != 1           ? OPC_UNDECIDED
        : model.low > 0.95 && opc.low > 0.95     ? OPC_SUPPORTED
        : model.high <= 0.95 || opc.high <= 0.95 ? OPC_NOT_SUPPORTED
                                                 : OPC_UNDECIDED,
        "On-policy (beta = 1) more than 95 % of the rollouts are predicted to last to "
        "the time limit.",
        "at beta = %g: %.3g %% by OPC (95 %% interval over rollouts %.1f to %.1f), "
        "%.3g %% by MBPO(*) (%.1f to %.1f), %.3g %% on the environment (%.3g %% of "
        "the references do)",
        s->beta->at[one], 100 * opc.middle, 100 * opc.low, 100 * opc.high, 100 * model.middle,
        100 * model.low, 100 * model.high, 100 * share(s, one, WORLD), 100.0 * s->full / s->rows);
}

static void claim_far(const struct sweep *s, bool able, struct opc_exhibit *e)
{
    double max[WAYS] = {0};
    int asked = 0;
    for (int k = 0; k < s->beta->n; k++)
        if (s->beta->at[k] >= 2.3) {
            asked++;
            for (int way = 0; way < WAYS; way++)
                max[way] = fmax(max[way], share(s, k, way));
        }
    opc_exhibit_claim(e,
                      !able || !asked                            ? OPC_UNDECIDED
                      : max[LEARNED] == 0 && max[CORRECTED] == 0 ? OPC_SUPPORTED
                                                                 : OPC_NOT_SUPPORTED,
                      "For beta >= 2.3 all predicted rollouts fail.",
                      "lasting to the time limit at one of %d such beta, at most: %.3g %% by OPC, "
                      "%.3g %% by MBPO(*), %.3g %% on the environment",
                      asked, 100 * max[CORRECTED], 100 * max[LEARNED], 100 * max[WORLD]);
}

static void claim_alike(const struct sweep *s, bool able, struct opc_exhibit *e)
{
    enum { ALIKE = 20 }; /* per cent of the range */
    double gap = 0, model = 0, opc = 0;
    int worst = 0;
    for (int k = 0; k < s->beta->n; k++) {
        const double d = fabs(mean(s, k, LEARNED) - mean(s, k, CORRECTED));
        model += fabs(mean(s, k, LEARNED) - mean(s, k, WORLD)) / s->beta->n;
        opc += fabs(mean(s, k, CORRECTED) - mean(s, k, WORLD)) / s->beta->n;
        if (d > gap) {
            gap = d;
            worst = k;
        }
    }
    const double range = fabs(mean(s, nearest(s, 1), WORLD)), max = ALIKE * range / 100;
    const double twice = 2 * error_of_gap(s, worst, LEARNED, CORRECTED);
    opc_exhibit_claim(
        e,
        !able                ? OPC_UNDECIDED
        : gap + twice <= max ? OPC_SUPPORTED
        : gap - twice > max  ? OPC_NOT_SUPPORTED
                             : OPC_UNDECIDED,
        "Off-policy, OPC and MBPO(*) degrade alike.",
        "their mean returns differ most at beta = %g, by %.3g %% of the return at "
        "beta = 1, give or take %.2g %% (alike: up to %d %%); mean distance from the environment: "
        "%.4g with OPC, %.4g with MBPO(*)",
        s->beta->at[worst], range > 0 ? 100 * gap / range : 0, range > 0 ? 100 * twice / range : 0,
        ALIKE, opc, model);
}

static void note(const struct sweep *s, bool able, struct opc_exhibit *e)
{
    opc_exhibit_note(e,
                     "%d rollouts for each beta from each of %d run%s, whole episodes, returns not "
                     "discounted; model after epoch %d, policy after epoch %d. By eq. 5 a rollout "
                     "cannot outlive its reference.",
                     s->each, s->runs, s->runs == 1 ? "" : "s", s->epoch_of_model,
                     s->epoch_of_policy);
    if (!able)
        opc_exhibit_note(
            e,
            "Only %d of %d references last to the time limit: the paper's policy holds "
            "the pole throughout, this one does not, so its claims are not decided.",
            s->full, s->rows);
    for (int way = LEARNED; way < WAYS; way++)
        if (s->lost[way])
            opc_exhibit_note(e, "%d rollouts by %s became infinite and count up to there",
                             s->lost[way], NAME[way]);
}

static int make(const struct opc_request *request, const void *settings, struct opc_exhibit *e,
                struct opc_err *err)
{
    const struct opc_probe_offpolicy_config *set = settings;
    struct sweep s = {
        .runs = request->runs,
        .each = set->samples,
        .rows = request->runs * set->samples,
        .beta = &set->beta,
    };
    if (request->runs == 0 || set->beta.n == 0)
        return opc_fail(err, OPC_EUSER, "there is %s to probe",
                        request->runs ? "no beta" : "no run");
    const size_t all = place(&s, set->beta.n, 0, 0);
    s.returns = opc_alloc(all, sizeof *s.returns);
    s.length = opc_alloc(all, sizeof *s.length);
    int code = s.returns && s.length
                   ? OPC_OK
                   : opc_fail(err, OPC_ENOMEM, "not enough memory for %zu returns", all);
    for (int run = 0; run < request->runs && !code; run++)
        code = measure(request, run, set, &s, err);
    if (!code)
        code = draw(&s, e, err);
    if (!code)
        code = write_tables(&s, e, err);
    if (!code) {
        const bool able = 20 * s.full >= 19 * s.rows; /* the policy reaches what the paper's does */
        claim_on_policy(&s, able, e);
        claim_far(&s, able, e);
        claim_alike(&s, able, e);
        note(&s, able, e);
    }
    opc_free(s.returns);
    opc_free(s.length);
    return code;
}

#define SELF struct opc_probe_offpolicy_config
static const struct opc_section section = OPC_SECTION("probe", "", OPC_PROBE_OFFPOLICY_FIELDS);
#undef SELF

const struct opc_analysis opc_probe_offpolicy = {
    .name = "probe_offpolicy",
    .help = "real and predicted returns when the policy's deviation is scaled (Figure 16)",
    .settings = &section,
    .make = make,
};
