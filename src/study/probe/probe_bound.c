/* SPDX-License-Identifier: MIT */
/* Figure 15: predicted and real returns over a whole run, and the bound on policy improvement
 *
 *     eta_{n+1} - eta_n  >=  (eta~_{n+1} - eta~_n) - |eta_{n+1} - eta~_{n+1}| - |eta_n - eta~_n|.
 *
 * Iteration n of Algorithm 1: pi_n plays, the model is fitted to the data, and pi_{n+1} is
 * learned on it. So pi_n is the policy of the snapshot before (pi_1: the initial one), while
 * model and pi_{n+1} are those of snapshot n. Episodes of pi_n serve as references for both
 * predictions.
 *
 * Invariant: eta_n is the mean of the very episodes that eq. 5 uses as references; changing
 * that changes what "error" means in this figure. */
#include "study/probe/probe.h"

#include "opc/mem.h"
#include "study/exhibit/seeds.h"

#include <math.h>
#include <stdio.h>

enum { LEARNED, CORRECTED, MODELS };
enum { STABLE = 12 };              /* the paper's policy is stable from this iteration on */
static const double CHANCE = 0.05; /* significance level of both tests */
static const double TENTH = 10;    /* almost always: but for one in this many */
static const char *const NAME[MODELS] = {"MBPO(*), eq. 2", "OPC, eq. 5"};
static const int COLOUR[MODELS] = {OPC_COLOUR_MODEL, OPC_COLOUR_OPC};

/* One run. Policies 0 .. n are those of iterations 1 .. n+1; predictions are per iteration. */
struct history {
    int n, samples;
    int limit;
    int *epoch;      /* [n + 1] epoch of the snapshot that policy j comes from */
    double *number;  /* [n + 1] iteration it plays in: 1, 2, ... if every epoch has a snapshot */
    double *returns; /* [n + 1][samples] on the environment, not discounted */
    double *eta;     /* [n + 1] */
    double *now[MODELS];         /* [n] eta~_n */
    double *after[MODELS];       /* [n] eta~_{n+1} */
    double *error[MODELS];       /* [n] |eta_n - eta~_n| */
    double *error_after[MODELS]; /* [n] |eta_{n+1} - eta~_{n+1}| */
    double *gain;                /* [n] eta_{n+1} - eta_n */
    double *promise[MODELS];     /* [n] right-hand side of the bound */
    long lost[MODELS];           /* rollouts that became infinite */
    char title[64];
};

/* Accepts a history of which nothing was allocated. */
static void history_free(struct history *history)
{
    opc_free(history->epoch);
    opc_free(history->number);
    opc_free(history->returns);
    opc_free(history->eta);
    opc_free(history->gain);
    for (int m = 0; m < MODELS; m++) {
        opc_free(history->now[m]);
        opc_free(history->after[m]);
        opc_free(history->error[m]);
        opc_free(history->error_after[m]);
        opc_free(history->promise[m]);
    }
}

/* Allocates the arrays of one run and numbers its policies. */
static int history_make(const struct opc_probe *probe, int samples, struct history *history,
                        struct opc_err *err)
{
    const size_t n = (size_t)probe->snapshots;
    *history = (struct history){.n = probe->snapshots, .samples = samples, .limit = probe->limit};
    /* Five arrays of the environment, five for each model. */
    struct opc_block block[5 + 5 * MODELS] = {
        {&history->epoch, n + 1, sizeof(int)},
        {&history->number, n + 1, sizeof(double)},
        {&history->returns, (n + 1) * (size_t)samples, sizeof(double)},
        {&history->eta, n + 1, sizeof(double)},
        {&history->gain, n, sizeof(double)},
    };
    for (int m = 0; m < MODELS; m++) {
        double **const of[] = {&history->now[m], &history->after[m], &history->error[m],
                               &history->error_after[m], &history->promise[m]};
        for (int i = 0; i < 5; i++)
            block[5 + 5 * m + i] = (struct opc_block){of[i], n, sizeof(double)};
    }
    if (!opc_alloc_all(block, sizeof block / sizeof *block))
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %d iterations of %d episodes",
                        history->n, samples);
    /* Policy 0 is the initial one; it plays in iteration 1. */
    for (int j = 0; j <= history->n; j++) {
        history->epoch[j] = j ? probe->snapshot[j - 1] : 0;
        history->number[j] = history->epoch[j] + 1;
    }
    snprintf(history->title, sizeof history->title, "seed %d", probe->config->set.train.seed);
    return OPC_OK;
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* Plain mean in the order of the samples, so that it is the same for any number of threads. */
static double mean_return(int n, const double *v)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += v[i];
    return sum / n;
}

/* eta~ of an actor on one model, rolled out along the episodes of pi_n. */
static int predict_return(const struct opc_probe *probe, const struct opc_transition *tr,
                          const struct opc_agent *agent, int number, struct opc_branches *branches,
                          double *returns, double *out, long *lost, struct opc_err *err)
{
    /* Rollout i starts with episode i of pi_n and lasts as long as an episode may. */
    opc_probe_from_starts(branches, tr->past);
    const int code =
        opc_probe_follow(probe, tr, (struct opc_actor){agent, 1}, number, branches, err);
    if (code)
        return code;
    opc_branches_returns(branches, returns);
    *out = mean_return(branches->n, returns);
    /* A rollout that became infinite counts with the reward up to there. */
    *lost += opc_branches_ended(branches, OPC_END_REFUSED);
    return OPC_OK;
}

/* Predictions of both models for pi_n and pi_{n+1}, with the same starts and the same noise. */
static int predict_iteration(const struct opc_probe *probe, struct history *history, int j,
                             const struct opc_agent *now, const struct opc_trained *next,
                             const struct opc_episodes *past, struct opc_err *err)
{
    struct opc_models models = {0};
    struct opc_branches branches = {0};
    /* Both models share the network; they differ in eq. 2 against eq. 5 only. */
    double *returns = opc_alloc((size_t)history->samples, sizeof *returns);
    int code =
        returns ? opc_models_make(probe, next->model, past, &models, err)
                : opc_fail(err, OPC_ENOMEM, "not enough memory for %d returns", history->samples);
    if (!code)
        code = opc_branches_make(history->samples, probe->limit, probe->obs, probe->act, &branches,
                                 err);
    /* j names the random streams: the same for both models and both policies. */
    for (int m = 0; m < MODELS && !code; m++) {
        const struct opc_transition *tr = m == LEARNED ? models.learned : models.corrected;
        code = predict_return(probe, tr, now, j, &branches, returns, &history->now[m][j],
                              &history->lost[m], err);
        if (!code)
            code = predict_return(probe, tr, next->agent, j, &branches, returns,
                                  &history->after[m][j], &history->lost[m], err);
    }
    opc_branches_free(&branches);
    opc_models_free(&models);
    opc_free(returns);
    return code;
}

/* The terms of the bound, from real and predicted returns. */
static void apply_bound(struct history *history)
{
    for (int j = 0; j < history->n; j++) {
        history->gain[j] = history->eta[j + 1] - history->eta[j];
        for (int m = 0; m < MODELS; m++) {
            history->error[m][j] = fabs(history->eta[j] - history->now[m][j]);
            history->error_after[m][j] = fabs(history->eta[j + 1] - history->after[m][j]);
            /* eta~_{n+1} - eta~_n - |eta_{n+1} - eta~_{n+1}| - |eta_n - eta~_n| */
            history->promise[m][j] = (history->after[m][j] - history->now[m][j]) -
                                     history->error_after[m][j] - history->error[m][j];
        }
    }
}

/* All policies in turn. Policy j plays; then the next snapshot's model predicts it and its
 * successor. */
static int follow_policies(const struct opc_request *request, int run,
                           const struct opc_probe *probe, struct history *history,
                           struct opc_err *err)
{
    /* Snapshot 0 is the run's initial policy. */
    struct opc_trained now = {0};
    int code = opc_trained_load(probe->dir, probe->config, probe->obs, probe->act, 0, probe->pool,
                                &now, err);
    for (int j = 0; j <= history->n && !code; j++) {
        struct opc_episodes *past = NULL;
        struct opc_trained next = {0};
        double *returns = history->returns + (size_t)j * (size_t)history->samples;
        if (request->progress)
            request->progress(request->ctx, (run + (double)j / (history->n + 1)) / request->runs,
                              probe->dir);
        /* pi_n plays; its episodes are references and give eta_n. */
        code = opc_probe_play(probe, (struct opc_actor){now.agent, 1}, j, history->samples, &past,
                              err);
        if (!code) {
            opc_probe_returns(past, returns);
            history->eta[j] = mean_return(history->samples, returns);
        }
        /* The last policy has no next model. */
        if (!code && j < history->n) {
            code = opc_trained_load(probe->dir, probe->config, probe->obs, probe->act,
                                    history->epoch[j + 1], probe->pool, &next, err);
            if (!code)
                code = predict_iteration(probe, history, j, now.agent, &next, past, err);
        }
        opc_episodes_destroy(past);
        /* The next policy becomes the current one; ownership moves with it. */
        opc_trained_free(&now);
        now = next;
    }
    opc_trained_free(&now);
    if (!code)
        apply_bound(history);
    return code;
}

/* Measures one run. */
static int measure_run(const struct opc_request *request, int run, int samples,
                       struct history *history, struct opc_err *err)
{
    struct opc_probe probe;
    int code =
        opc_probe_open(request->run[run], request->pool, opc_probe_seed(request, run), &probe, err);
    if (code)
        return code;
    /* Every epoch needs a snapshot: policy and model as they were then. */
    code = opc_probe_needs_model(&probe, err);
    if (!code && probe.snapshots == 0)
        code = opc_fail(err, OPC_EUSER,
                        "%s has no snapshots, and the bound needs policy and model of every epoch; "
                        "train with record.snapshots=1",
                        probe.dir);
    if (!code)
        code = history_make(&probe, samples, history, err);
    if (!code)
        code = follow_policies(request, run, &probe, history, err);
    opc_probe_close(&probe);
    return code;
}

/* ---- the exhibit ----------------------------------------------------------------------------- */

enum { PANELS = 3, ETA_LAYERS = 3, OTHER_LAYERS = 3 };

/* Left panel: distribution of returns on the environment, its mean, and the predictions. */
static void draw_eta(const struct history *history, struct opc_figure_layer *layer,
                     struct opc_panel *panel)
{
    int layers = 0;
    /* One violin for each policy, as wide as the distance of its neighbours allows. */
    for (int j = 0; j <= history->n; j++)
        layer[layers++] =
            (struct opc_figure_layer){.mark = OPC_PLOT_VIOLIN,
                                      .colour = OPC_COLOUR_TRUE,
                                      .label = "environment",
                                      .n = history->samples,
                                      .x = &history->number[j],
                                      .y = history->returns + (size_t)j * (size_t)history->samples,
                                      .width = 0.8 * (history->number[1] - history->number[0])};
    layer[layers++] = (struct opc_figure_layer){.mark = OPC_PLOT_LINE,
                                                .colour = OPC_COLOUR_TRUE,
                                                .label = "environment",
                                                .n = history->n + 1,
                                                .x = history->number,
                                                .y = history->eta};
    for (int m = 0; m < MODELS; m++)
        layer[layers++] = (struct opc_figure_layer){.mark = OPC_PLOT_LINE,
                                                    .colour = COLOUR[m],
                                                    .label = NAME[m],
                                                    .n = history->n,
                                                    .x = history->number,
                                                    .y = history->now[m]};
    *panel = (struct opc_panel){
        .x_label = "iteration n", .y_label = "return", .layers = layers, .layer = layer};
}

/* A panel with one line per model, and the environment's own if there is one. */
static void draw_pair(const struct history *history, double *const of[MODELS], const double *real,
                      const char *y_label, struct opc_figure_layer *layer, struct opc_panel *panel)
{
    int layers = 0;
    for (int m = 0; m < MODELS; m++)
        layer[layers++] = (struct opc_figure_layer){.mark = OPC_PLOT_LINE,
                                                    .colour = COLOUR[m],
                                                    .label = NAME[m],
                                                    .n = history->n,
                                                    .x = history->number,
                                                    .y = of[m]};
    if (real)
        layer[layers++] = (struct opc_figure_layer){.mark = OPC_PLOT_LINE,
                                                    .colour = OPC_COLOUR_TRUE,
                                                    .label = "environment",
                                                    .n = history->n,
                                                    .x = history->number,
                                                    .y = real};
    *panel = (struct opc_panel){
        .x_label = "iteration n", .y_label = y_label, .layers = layers, .layer = layer};
}

/* Three panels for each run. */
static int draw_bound(int runs, const struct history *history, struct opc_exhibit *exhibit,
                      struct opc_err *err)
{
    /* Layers of all runs in one array: n + 1 violins and the lines. */
    size_t max = 0;
    for (int r = 0; r < runs; r++)
        max += (size_t)history[r].n + 1 + ETA_LAYERS + 2 * OTHER_LAYERS;
    struct opc_figure_layer *layer = opc_alloc(max, sizeof *layer), *at = layer;
    struct opc_panel *panel = opc_alloc((size_t)runs * PANELS, sizeof *panel);
    char(*title)[96] = opc_alloc((size_t)runs * PANELS, sizeof *title);
    int code =
        layer && panel && title ? OPC_OK : opc_fail(err, OPC_ENOMEM, "not enough memory to draw");
    /* A row of three panels for each run; `at` walks through the layers. */
    for (int r = 0; r < runs && !code; r++) {
        static const char *const WHAT[PANELS] = {"real and predicted return",
                                                 "on-policy error of the return",
                                                 "improvement and its bound"};
        struct opc_panel *row = panel + (size_t)r * PANELS;
        draw_eta(&history[r], at, &row[0]);
        at += row[0].layers;
        draw_pair(&history[r], history[r].error, NULL, "|real - predicted return|", at, &row[1]);
        at += row[1].layers;
        draw_pair(&history[r], history[r].promise, history[r].gain, "improvement of the return", at,
                  &row[2]);
        at += row[2].layers;
        for (int i = 0; i < PANELS; i++) {
            snprintf(title[r * PANELS + i], sizeof *title, "%s%s%s",
                     runs > 1 ? history[r].title : "", runs > 1 ? ": " : "", WHAT[i]);
            row[i].title = title[r * PANELS + i];
        }
    }
    const struct opc_figure figure = {
        .note = "Left: returns of whole episodes; the distribution and its mean on the "
                "environment, means on the models. Right: the improvement on the environment and "
                "the lower bound each model gives for it.",
        .panels = runs * PANELS,
        .columns = PANELS,
        .panel = panel,
    };
    if (!code)
        code = opc_exhibit_figure(exhibit, NULL, "returns, errors and bound", &figure, err);
    opc_free(layer);
    opc_free(panel);
    opc_free(title);
    return code;
}

/* One table of the bound's terms, one of every return. */
static int write_bound_tables(int runs, const struct history *history, struct opc_exhibit *exhibit,
                              struct opc_err *err)
{
    struct opc_table *terms = NULL, *all = NULL;
    int code = opc_table_create("run,iteration,model,eta,eta_next,predicted,predicted_next,error,"
                                "error_next,improvement,bound",
                                &terms, err);
    if (!code)
        code = opc_table_create("run,iteration,episode,return", &all, err);
    /* One row per iteration and model, then one row per episode. */
    for (int r = 0; r < runs && !code; r++) {
        for (int j = 0; j < history[r].n; j++)
            for (int m = 0; m < MODELS; m++) {
                opc_table_word(terms, history[r].title);
                opc_table_real(terms, history[r].number[j]);
                opc_table_word(terms, NAME[m]);
                opc_table_real(terms, history[r].eta[j]);
                opc_table_real(terms, history[r].eta[j + 1]);
                opc_table_real(terms, history[r].now[m][j]);
                opc_table_real(terms, history[r].after[m][j]);
                opc_table_real(terms, history[r].error[m][j]);
                opc_table_real(terms, history[r].error_after[m][j]);
                opc_table_real(terms, history[r].gain[j]);
                opc_table_real(terms, history[r].promise[m][j]);
            }
        for (int j = 0; j <= history[r].n; j++)
            for (int i = 0; i < history[r].samples; i++) {
                opc_table_word(all, history[r].title);
                opc_table_real(all, history[r].number[j]);
                opc_table_int(all, i + 1);
                opc_table_real(
                    all, history[r].returns[(size_t)j * (size_t)history[r].samples + (size_t)i]);
            }
    }
    if (!code)
        code = opc_exhibit_table(exhibit, NULL, "terms of the bound", terms, err);
    if (!code)
        code = opc_exhibit_table(exhibit, "returns", "returns on the environment", all, err);
    opc_table_free(terms);
    opc_table_free(all);
    return code;
}

/* Probability that n tosses of a coin show k heads or more, each with probability `heads`. */
static double chance_of_heads(int k, int n, double heads)
{
    /* Sum of the binomial distribution's upper tail, in logarithms. */
    double p = 0;
    for (int i = k; i <= n; i++)
        p += exp(lgamma(n + 1.0) - lgamma(i + 1.0) - lgamma(n - i + 1.0) + i * log(heads) +
                 (n - i) * log(1 - heads));
    return fmin(p, 1);
}

enum opc_verdict opc_bound_smaller(int smaller, int larger, int equal)
{
    /* Ties say nothing about the sign and are left out of the test. */
    const int n = smaller + larger;
    /* More than half, or more than a tenth: it is not almost always smaller. */
    if (chance_of_heads(larger, n, 0.5) < CHANCE ||
        chance_of_heads(larger, n + equal, 1 / TENTH) < CHANCE)
        return OPC_VERDICT_NOT_SUPPORTED;
    return chance_of_heads(smaller, n, 0.5) < CHANCE && TENTH * larger <= n + equal
               ? OPC_VERDICT_SUPPORTED
               : OPC_VERDICT_UNDECIDED;
}

double opc_bound_seeds(int smaller, int larger, int equal, int runs)
{
    enum { MOST = 2000 };
    /* More runs with the same shares, until they decide. */
    for (int n = runs + 1; n <= MOST; n++) {
        const double more = (double)n / runs;
        if (opc_bound_smaller((int)lround(more * smaller), (int)lround(more * larger),
                              (int)lround(more * equal)) != OPC_VERDICT_UNDECIDED)
            return n;
    }
    return smaller + larger ? MOST : HUGE_VAL;
}

/* OPC's on-policy error against MBPO(*)'s, iteration by iteration. */
static void claim_smaller(int missing, int runs, const struct history *history,
                          struct opc_exhibit *exhibit)
{
    int fewer = 0, more = 0, equal = 0;
    double sum[MODELS] = {0};
    for (int r = 0; r < runs; r++)
        for (int j = 0; j < history[r].n; j++) {
            /* Negative: OPC is closer to the environment in this iteration. */
            const double d = history[r].error[CORRECTED][j] - history[r].error[LEARNED][j];
            fewer += d < 0;
            more += d > 0;
            equal += d == 0;
            for (int m = 0; m < MODELS; m++)
                sum[m] += history[r].error[m][j];
        }
    const int n = fewer + more, all = n + equal;
    char end[OPC_SEEDS_TEXT];
    opc_seeds_say_unable(missing, runs, end);
    const enum opc_verdict verdict =
        *end ? OPC_VERDICT_UNDECIDED : opc_bound_smaller(fewer, more, equal);
    if (verdict == OPC_VERDICT_UNDECIDED && !*end)
        opc_seeds_say(opc_bound_seeds(fewer, more, equal, runs), runs, "seeds", NULL, end);
    opc_exhibit_claim(
        exhibit, verdict, "The on-policy error of the return is almost always smaller with OPC.",
        "smaller in %d, larger in %d and equal in %d of %d iterations (almost always: larger in at "
        "most a tenth, of which chance makes so many or more with p = %.2g; sign test, one side: p "
        "= %.2g); mean error %.4g with OPC, %.4g with MBPO(*)%s",
        fewer, more, equal, all, chance_of_heads(more, all, 1 / TENTH),
        chance_of_heads(fewer, n, 0.5), sum[CORRECTED] / all, sum[LEARNED] / all, end);
}

/* The bound holds for any numbers, up to rounding, so this checks our code and not the paper. */
static void claim_bound(int runs, const struct history *history, struct opc_exhibit *exhibit)
{
    /* A tolerance of 1e-9 of the bound's size allows for rounding. */
    int holds = 0, all = 0;
    for (int r = 0; r < runs; r++)
        for (int j = 0; j < history[r].n; j++)
            for (int m = 0; m < MODELS; m++, all++)
                holds += history[r].gain[j] >=
                         history[r].promise[m][j] - 1e-9 * (1 + fabs(history[r].promise[m][j]));
    opc_exhibit_claim(exhibit, holds == all ? OPC_VERDICT_SUPPORTED : OPC_VERDICT_NOT_SUPPORTED,
                      "The bound on policy improvement holds in every iteration.",
                      "it holds in %d of %d cases (it is an identity: this checks the program)",
                      holds, all);
}

int opc_bound_settled(int n, const double *eta)
{
    double best = -HUGE_VAL;
    /* Walk back from the end while returns stay within a tenth of the best. */
    int j = n;
    for (int i = 0; i < n; i++)
        best = fmax(best, eta[i]);
    while (j > 0 && eta[j - 1] >= best - 0.1 * fabs(best))
        j--;
    return j;
}

/* Stable: within a tenth of the best over the last third of the run. */
static void claim_stable(int missing, int runs, const struct history *history,
                         struct opc_exhibit *exhibit)
{
    struct opc_text text = {0};
    int stable = 0, able = 0;
    for (int r = 0; r < runs; r++) {
        double best = -HUGE_VAL;
        const int from = opc_bound_settled(history[r].n + 1, history[r].eta);
        for (int i = 0; i <= history[r].n; i++)
            best = fmax(best, history[r].eta[i]);
        /* A policy that is near its best from the start has not failed early. */
        const bool settled = from > 0 && from <= 2 * (history[r].n + 1) / 3;
        stable += settled;
        /* A run that is too short to become stable cannot refute the claim. */
        able += history[r].epoch[history[r].n] >= STABLE;
        opc_text_addf(&text, "%s%s: best %.4g, ", r ? "; " : "", history[r].title, best);
        if (from > 0 && from <= history[r].n)
            opc_text_addf(&text, "within 10 %% of it from n = %g on", history[r].number[from]);
        else
            opc_text_add(&text, from == 0 ? "always near it" : "not settled");
    }
    char end[OPC_SEEDS_TEXT];
    opc_seeds_say_unable(missing, runs, end);
    const enum opc_verdict verdict = *end ? OPC_VERDICT_UNDECIDED
                                     : able < runs && stable < runs
                                         ? OPC_VERDICT_UNDECIDED
                                         : opc_seeds_verdict(stable, runs);
    if (verdict == OPC_VERDICT_UNDECIDED && able < runs && !missing)
        snprintf(end, sizeof end, "; runs of %d iterations decide it, not more seeds", STABLE);
    else if (verdict == OPC_VERDICT_UNDECIDED && !*end)
        snprintf(end, sizeof end, "; no fewer than %d seeds instead of %d could decide it",
                 opc_seeds_to_solve(stable, runs), runs);
    opc_exhibit_claim(
        exhibit, verdict,
        "The policy fails in early iterations (paper: n <= 8) and is stable in later "
        "ones (paper: n >= 12).",
        "%s (stable: over the last third, in at least 75 %% of the runs; not: in fewer "
        "than half)%s",
        opc_text_get(&text), end);
    opc_text_free(&text);
}

/* What the reader must know: sample sizes, references, lost rollouts, missing snapshots. */
static void note_bound(int runs, const struct history *history, struct opc_exhibit *exhibit)
{
    opc_exhibit_note(
        exhibit,
        "%d episodes or rollouts for each mean, not discounted, actions drawn from the "
        "policy; a rollout lasts at most %d steps, and by eq. 5 no longer than its "
        "reference, so that a failing reference caps it.",
        history[0].samples, history[0].limit);
    opc_exhibit_note(exhibit,
                     "eta_n is the mean of the very episodes that are the references, as the "
                     "paper's 100 rollouts suggest: how far that mean is from the expected "
                     "return does not show in the errors, least of all in those of OPC.");
    opc_exhibit_note(exhibit,
                     "pi_n is the policy that plays in epoch n, the model is the one fitted "
                     "right after, pi_{n+1} what was learned on it; eta~_{n+1} uses model n and "
                     "episodes of pi_n.");
    /* What is particular to single runs. */
    for (int r = 0; r < runs; r++) {
        for (int m = 0; m < MODELS; m++)
            if (history[r].lost[m])
                opc_exhibit_note(exhibit,
                                 "%s: %ld rollouts by %s became infinite and count up to there",
                                 history[r].title, history[r].lost[m], NAME[m]);
        if (history[r].epoch[history[r].n] > history[r].n)
            opc_exhibit_note(exhibit,
                             "%s: there is no snapshot of every epoch; an iteration reaches from "
                             "one to the next",
                             history[r].title);
    }
}

/* The analysis itself: measure all runs, then figure, tables, claims and notes. */
static int probe_bound_make(const struct opc_request *request, const void *settings,
                            struct opc_exhibit *exhibit, struct opc_err *err)
{
    const struct opc_probe_bound_config *set = settings;
    struct history *history = opc_alloc((size_t)request->runs, sizeof *history);
    int code = history ? OPC_OK
                       : opc_fail(err, OPC_ENOMEM, "not enough memory for %d runs", request->runs);
    if (!code && request->runs == 0)
        code = opc_fail(err, OPC_EUSER, "there is no run to probe");
    for (int r = 0; r < request->runs && !code; r++)
        code = measure_run(request, r, set->samples, &history[r], err);
    if (!code)
        code = draw_bound(request->runs, history, exhibit, err);
    if (!code)
        code = write_bound_tables(request->runs, history, exhibit, err);
    if (!code) {
        claim_smaller(request->missing, request->runs, history, exhibit);
        claim_bound(request->runs, history, exhibit);
        claim_stable(request->missing, request->runs, history, exhibit);
        note_bound(request->runs, history, exhibit);
    }
    for (int r = 0; history && r < request->runs; r++)
        history_free(&history[r]);
    opc_free(history);
    return code;
}

#define SELF struct opc_probe_bound_config
static const struct opc_section section = OPC_SECTION("probe", "", OPC_PROBE_BOUND_FIELDS);
#undef SELF

const struct opc_analysis opc_probe_bound = {
    .name = "probe_bound",
    .help = "real and predicted returns of every policy of a run, and the bound (Figure 15)",
    .settings = &section,
    .needs_models = true,
    .make = probe_bound_make,
};
