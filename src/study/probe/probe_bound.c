/* SPDX-License-Identifier: MIT */
/* Figure 15: returns predicted and real over a whole run, and the bound on policy improvement
 *
 *     eta_{n+1} - eta_n  >=  (eta~_{n+1} - eta~_n) - |eta_{n+1} - eta~_{n+1}| - |eta_n - eta~_n|.
 *
 * Iteration n of Algorithm 1: pi_n plays, the model is fitted to that, and pi_{n+1} is learned on
 * it. So pi_n is the policy of the snapshot before (pi_1: as the run began), model and pi_{n+1}
 * are those of snapshot n. Episodes of pi_n serve as references for both predictions. */
#include "study/probe/probe.h"

#include "opc/mem.h"

#include <math.h>
#include <stdio.h>

enum { LEARNED, CORRECTED, MODELS };
enum { STABLE = 12 };              /* from this iteration on the paper's policy is stable */
static const double CHANCE = 0.05; /* that the sign test takes for too little to be one */
static const char *const NAME[MODELS] = {"MBPO(*), eq. 2", "OPC, eq. 5"};
static const int COLOUR[MODELS] = {OPC_COLOUR_MODEL, OPC_COLOUR_OPC};

/* One run. Policies 0 .. n are those of iterations 1 .. n+1; predictions are of iterations. */
struct history {
    int n, samples;
    int limit;
    int *epoch;      /* [n + 1] of the snapshot policy j is from */
    double *number;  /* [n + 1] iteration it plays in: 1, 2, ... with a snapshot of every epoch */
    double *returns; /* [n + 1][samples] on the environment */
    double *eta;     /* [n + 1] */
    double *now[MODELS];         /* [n] eta~_n */
    double *after[MODELS];       /* [n] eta~_{n+1} */
    double *error[MODELS];       /* [n] |eta_n - eta~_n| */
    double *error_after[MODELS]; /* [n] |eta_{n+1} - eta~_{n+1}| */
    double *gain;                /* [n] eta_{n+1} - eta_n */
    double *promise[MODELS];     /* [n] right-hand side of the bound */
    long lost[MODELS];
    char title[64];
};

static void history_free(struct history *h)
{
    opc_free(h->epoch);
    opc_free(h->number);
    opc_free(h->returns);
    opc_free(h->eta);
    opc_free(h->gain);
    for (int m = 0; m < MODELS; m++) {
        opc_free(h->now[m]);
        opc_free(h->after[m]);
        opc_free(h->error[m]);
        opc_free(h->error_after[m]);
        opc_free(h->promise[m]);
    }
}

static int history_make(const struct opc_probe *p, int samples, struct history *h,
                        struct opc_err *err)
{
    const size_t n = (size_t)p->snapshots;
    *h = (struct history){.n = p->snapshots, .samples = samples, .limit = p->limit};
    bool allocated = (h->epoch = opc_alloc(n + 1, sizeof *h->epoch)) != NULL;
    allocated &= (h->number = opc_alloc(n + 1, sizeof(double))) != NULL;
    allocated &= (h->returns = opc_alloc((n + 1) * (size_t)samples, sizeof(double))) != NULL;
    allocated &= (h->eta = opc_alloc(n + 1, sizeof(double))) != NULL;
    allocated &= (h->gain = opc_alloc(n, sizeof(double))) != NULL;
    for (int m = 0; m < MODELS; m++) {
        allocated &= (h->now[m] = opc_alloc(n, sizeof(double))) != NULL;
        allocated &= (h->after[m] = opc_alloc(n, sizeof(double))) != NULL;
        allocated &= (h->error[m] = opc_alloc(n, sizeof(double))) != NULL;
        allocated &= (h->error_after[m] = opc_alloc(n, sizeof(double))) != NULL;
        allocated &= (h->promise[m] = opc_alloc(n, sizeof(double))) != NULL;
    }
    if (!allocated)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %d iterations of %d episodes", h->n,
                        samples);
    for (int j = 0; j <= h->n; j++) {
        h->epoch[j] = j ? p->snapshot[j - 1] : 0;
        h->number[j] = h->epoch[j] + 1;
    }
    snprintf(h->title, sizeof h->title, "seed %d", p->config->set.train.seed);
    return OPC_OK;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static double mean(int n, const double *v)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += v[i];
    return sum / n;
}

/* eta~ of an actor on one model beside the episodes of pi_n. */
static int predict(const struct opc_probe *p, const struct opc_transition *tr,
                   const struct opc_agent *agent, int number, struct opc_branches *b,
                   double *returns, double *out, long *lost, struct opc_err *err)
{
    opc_probe_from_starts(b, tr->past);
    const int code = opc_probe_follow(p, tr, (struct opc_actor){agent, 1}, number, b, err);
    if (code)
        return code;
    opc_branches_returns(b, returns);
    *out = mean(b->n, returns);
    *lost += opc_branches_ended(b, OPC_END_REFUSED);
    return OPC_OK;
}

static int iteration(const struct opc_probe *p, struct history *h, int j,
                     const struct opc_agent *now, const struct opc_trained *next,
                     const struct opc_episodes *past, struct opc_err *err)
{
    struct opc_models models = {0};
    struct opc_branches b = {0};
    double *returns = opc_alloc((size_t)h->samples, sizeof *returns);
    int code = returns ? opc_models_make(p, next->model, past, &models, err)
                       : opc_fail(err, OPC_ENOMEM, "not enough memory for %d returns", h->samples);
    if (!code)
        code = opc_branches_make(h->samples, p->limit, p->obs, p->act, &b, err);
    for (int m = 0; m < MODELS && !code; m++) {
        const struct opc_transition *tr = m == LEARNED ? models.learned : models.corrected;
        code = predict(p, tr, now, j, &b, returns, &h->now[m][j], &h->lost[m], err);
        if (!code)
            code = predict(p, tr, next->agent, j, &b, returns, &h->after[m][j], &h->lost[m], err);
    }
    opc_branches_free(&b);
    opc_models_free(&models);
    opc_free(returns);
    return code;
}

static void apply_bound(struct history *h)
{
    for (int j = 0; j < h->n; j++) {
        h->gain[j] = h->eta[j + 1] - h->eta[j];
        for (int m = 0; m < MODELS; m++) {
            h->error[m][j] = fabs(h->eta[j] - h->now[m][j]);
            h->error_after[m][j] = fabs(h->eta[j + 1] - h->after[m][j]);
            h->promise[m][j] =
                (h->after[m][j] - h->now[m][j]) - h->error_after[m][j] - h->error[m][j];
        }
    }
}

/* All policies in turn; policy j plays, then model j+1 is asked about it and the next. */
static int follow(const struct opc_request *request, int run, const struct opc_probe *p,
                  struct history *h, struct opc_err *err)
{
    struct opc_trained now = {0};
    int code = opc_trained_load(p->dir, p->config, p->obs, p->act, 0, p->pool, &now, err);
    for (int j = 0; j <= h->n && !code; j++) {
        struct opc_episodes *past = NULL;
        struct opc_trained next = {0};
        double *returns = h->returns + (size_t)j * (size_t)h->samples;
        if (request->progress)
            request->progress(request->ctx, (run + (double)j / (h->n + 1)) / request->runs, p->dir);
        code = opc_probe_play(p, (struct opc_actor){now.agent, 1}, j, h->samples, &past, err);
        if (!code) {
            opc_probe_returns(past, returns);
            h->eta[j] = mean(h->samples, returns);
        }
        if (!code && j < h->n) {
            code = opc_trained_load(p->dir, p->config, p->obs, p->act, h->epoch[j + 1], p->pool,
                                    &next, err);
            if (!code)
                code = iteration(p, h, j, now.agent, &next, past, err);
        }
        opc_episodes_destroy(past);
        opc_trained_free(&now);
        now = next;
    }
    opc_trained_free(&now);
    if (!code)
        apply_bound(h);
    return code;
}

static int measure(const struct opc_request *request, int run, int samples, struct history *h,
                   struct opc_err *err)
{
    struct opc_probe p;
    int code = opc_probe_open(request->run[run], request->pool, request->seed, &p, err);
    if (code)
        return code;
    code = opc_probe_needs_model(&p, err);
    if (!code && p.snapshots == 0)
        code = opc_fail(err, OPC_EUSER,
                        "%s has no snapshots, and the bound needs policy and model of every epoch; "
                        "train with record.snapshots=1",
                        p.dir);
    if (!code)
        code = history_make(&p, samples, h, err);
    if (!code)
        code = follow(request, run, &p, h, err);
    opc_probe_close(&p);
    return code;
}

/* ---- the exhibit ----------------------------------------------------------------------------- */

enum { PANELS = 3, ETA_LAYERS = 3, OTHER_LAYERS = 3 };

static void draw_eta(const struct history *h, struct opc_figure_layer *layer,
                     struct opc_panel *panel)
{
    int layers = 0;
    for (int j = 0; j <= h->n; j++)
        layer[layers++] =
            (struct opc_figure_layer){.mark = OPC_MARK_VIOLIN,
                                      .colour = OPC_COLOUR_TRUE,
                                      .label = "environment",
                                      .n = h->samples,
                                      .x = &h->number[j],
                                      .y = h->returns + (size_t)j * (size_t)h->samples,
                                      .width = 0.8 * (h->number[1] - h->number[0])};
    layer[layers++] = (struct opc_figure_layer){.mark = OPC_MARK_LINE,
                                                .colour = OPC_COLOUR_TRUE,
                                                .label = "environment",
                                                .n = h->n + 1,
                                                .x = h->number,
                                                .y = h->eta};
    for (int m = 0; m < MODELS; m++)
        layer[layers++] = (struct opc_figure_layer){.mark = OPC_MARK_LINE,
                                                    .colour = COLOUR[m],
                                                    .label = NAME[m],
                                                    .n = h->n,
                                                    .x = h->number,
                                                    .y = h->now[m]};
    *panel = (struct opc_panel){
        .x_label = "iteration n", .y_label = "return", .layers = layers, .layer = layer};
}

static void draw_pair(const struct history *h, double *const of[MODELS], const double *real,
                      const char *y_label, struct opc_figure_layer *layer, struct opc_panel *panel)
{
    int layers = 0;
    for (int m = 0; m < MODELS; m++)
        layer[layers++] = (struct opc_figure_layer){.mark = OPC_MARK_LINE,
                                                    .colour = COLOUR[m],
                                                    .label = NAME[m],
                                                    .n = h->n,
                                                    .x = h->number,
                                                    .y = of[m]};
    if (real)
        layer[layers++] = (struct opc_figure_layer){.mark = OPC_MARK_LINE,
                                                    .colour = OPC_COLOUR_TRUE,
                                                    .label = "environment",
                                                    .n = h->n,
                                                    .x = h->number,
                                                    .y = real};
    *panel = (struct opc_panel){
        .x_label = "iteration n", .y_label = y_label, .layers = layers, .layer = layer};
}

static int draw(int runs, const struct history *h, struct opc_exhibit *e, struct opc_err *err)
{
    size_t max = 0;
    for (int r = 0; r < runs; r++)
        max += (size_t)h[r].n + 1 + ETA_LAYERS + 2 * OTHER_LAYERS;
    struct opc_figure_layer *layer = opc_alloc(max, sizeof *layer), *at = layer;
    struct opc_panel *panel = opc_alloc((size_t)runs * PANELS, sizeof *panel);
    char(*title)[96] = opc_alloc((size_t)runs * PANELS, sizeof *title);
    int code =
        layer && panel && title ? OPC_OK : opc_fail(err, OPC_ENOMEM, "not enough memory to draw");
    for (int r = 0; r < runs && !code; r++) {
        static const char *const WHAT[PANELS] = {"real and predicted return",
                                                 "on-policy error of the return",
                                                 "improvement and its bound"};
        struct opc_panel *row = panel + (size_t)r * PANELS;
        draw_eta(&h[r], at, &row[0]);
        at += row[0].layers;
        draw_pair(&h[r], h[r].error, NULL, "|real - predicted return|", at, &row[1]);
        at += row[1].layers;
        draw_pair(&h[r], h[r].promise, h[r].gain, "improvement of the return", at, &row[2]);
        at += row[2].layers;
        for (int i = 0; i < PANELS; i++) {
            snprintf(title[r * PANELS + i], sizeof *title, "%s%s%s", runs > 1 ? h[r].title : "",
                     runs > 1 ? ": " : "", WHAT[i]);
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
        code = opc_exhibit_figure(e, NULL, "returns, errors and bound", &figure, err);
    opc_free(layer);
    opc_free(panel);
    opc_free(title);
    return code;
}

static int write_tables(int runs, const struct history *h, struct opc_exhibit *e,
                        struct opc_err *err)
{
    struct opc_table *terms = NULL, *all = NULL;
    int code = opc_table_create("run,iteration,model,eta,eta_next,predicted,predicted_next,error,"
                                "error_next,improvement,bound",
                                &terms, err);
    if (!code)
        code = opc_table_create("run,iteration,episode,return", &all, err);
    for (int r = 0; r < runs && !code; r++) {
        for (int j = 0; j < h[r].n; j++)
            for (int m = 0; m < MODELS; m++) {
                opc_table_word(terms, h[r].title);
                opc_table_real(terms, h[r].number[j]);
                opc_table_word(terms, NAME[m]);
                opc_table_real(terms, h[r].eta[j]);
                opc_table_real(terms, h[r].eta[j + 1]);
                opc_table_real(terms, h[r].now[m][j]);
                opc_table_real(terms, h[r].after[m][j]);
                opc_table_real(terms, h[r].error[m][j]);
                opc_table_real(terms, h[r].error_after[m][j]);
                opc_table_real(terms, h[r].gain[j]);
                opc_table_real(terms, h[r].promise[m][j]);
            }
        for (int j = 0; j <= h[r].n; j++)
            for (int i = 0; i < h[r].samples; i++) {
                opc_table_word(all, h[r].title);
                opc_table_real(all, h[r].number[j]);
                opc_table_int(all, i + 1);
                opc_table_real(all, h[r].returns[(size_t)j * (size_t)h[r].samples + (size_t)i]);
            }
    }
    if (!code)
        code = opc_exhibit_table(e, NULL, "terms of the bound", terms, err);
    if (!code)
        code = opc_exhibit_table(e, "returns", "returns on the environment", all, err);
    opc_table_free(terms);
    opc_table_free(all);
    return code;
}

/* The probability that n tosses of a fair coin show k heads or more. */
static double chance_of_heads(int k, int n)
{
    double p = 0;
    for (int i = k; i <= n; i++)
        p += exp(lgamma(n + 1.0) - lgamma(i + 1.0) - lgamma(n - i + 1.0) - n * log(2));
    return fmin(p, 1);
}

enum opc_verdict opc_bound_smaller(int smaller, int larger, int equal)
{
    const int n = smaller + larger;
    if (chance_of_heads(larger, n) < CHANCE)
        return OPC_NOT_SUPPORTED;
    return chance_of_heads(smaller, n) < CHANCE && 10 * larger <= n + equal ? OPC_SUPPORTED
                                                                            : OPC_UNDECIDED;
}

static void claim_smaller(int runs, const struct history *h, struct opc_exhibit *e)
{
    int fewer = 0, more = 0, equal = 0;
    double sum[MODELS] = {0};
    for (int r = 0; r < runs; r++)
        for (int j = 0; j < h[r].n; j++) {
            const double d = h[r].error[CORRECTED][j] - h[r].error[LEARNED][j];
            fewer += d < 0;
            more += d > 0;
            equal += d == 0;
            for (int m = 0; m < MODELS; m++)
                sum[m] += h[r].error[m][j];
        }
    const int n = fewer + more, all = n + equal;
    opc_exhibit_claim(
        e, opc_bound_smaller(fewer, more, equal),
        "The on-policy error of the return is almost always smaller with OPC.",
        "smaller in %d, larger in %d and equal in %d of %d iterations (almost always: larger in at "
        "most a tenth; sign test, one side: p = %.2g); mean error %.4g with OPC, %.4g with MBPO(*)",
        fewer, more, equal, all, chance_of_heads(fewer, n), sum[CORRECTED] / all,
        sum[LEARNED] / all);
}

/* True for any numbers up to rounding, so it checks our code and not the paper. */
static void claim_bound(int runs, const struct history *h, struct opc_exhibit *e)
{
    int holds = 0, all = 0;
    for (int r = 0; r < runs; r++)
        for (int j = 0; j < h[r].n; j++)
            for (int m = 0; m < MODELS; m++, all++)
                holds += h[r].gain[j] >= h[r].promise[m][j] - 1e-9 * (1 + fabs(h[r].promise[m][j]));
    opc_exhibit_claim(e, holds == all ? OPC_SUPPORTED : OPC_NOT_SUPPORTED,
                      "The bound on policy improvement holds in every iteration.",
                      "it holds in %d of %d cases (it is an identity: this checks the program)",
                      holds, all);
}

int opc_bound_settled(int n, const double *eta)
{
    double best = -HUGE_VAL;
    int j = n;
    for (int i = 0; i < n; i++)
        best = fmax(best, eta[i]);
    while (j > 0 && eta[j - 1] >= best - 0.1 * fabs(best))
        j--;
    return j;
}

static void claim_stable(int runs, const struct history *h, struct opc_exhibit *e)
{
    struct opc_text text = {0};
    int stable = 0, able = 0;
    for (int r = 0; r < runs; r++) {
        double best = -HUGE_VAL;
        const int from = opc_bound_settled(h[r].n + 1, h[r].eta);
        for (int i = 0; i <= h[r].n; i++)
            best = fmax(best, h[r].eta[i]);
        const bool settled = from > 0 && from <= 2 * (h[r].n + 1) / 3;
        stable += settled;
        able += h[r].epoch[h[r].n] >= STABLE;
        opc_text_addf(&text, "%s%s: best %.4g, ", r ? "; " : "", h[r].title, best);
        if (from > 0 && from <= h[r].n)
            opc_text_addf(&text, "within 10 %% of it from n = %g on", h[r].number[from]);
        else
            opc_text_add(&text, from == 0 ? "always near it" : "not settled");
    }
    opc_exhibit_claim(e,
                      stable == runs                ? OPC_SUPPORTED
                      : stable == 0 && able == runs ? OPC_NOT_SUPPORTED
                                                    : OPC_UNDECIDED,
                      "The policy fails in early iterations (paper: n <= 8) and is stable in later "
                      "ones (paper: n >= 12).",
                      "%s (stable: over the last third)", opc_text_get(&text));
    opc_text_free(&text);
}

static void note(int runs, const struct history *h, struct opc_exhibit *e)
{
    opc_exhibit_note(
        e,
        "%d episodes or rollouts for each mean, not discounted, actions drawn from the "
        "policy; a rollout lasts at most %d steps, and by eq. 5 no longer than its "
        "reference, so that a failing reference caps it.",
        h[0].samples, h[0].limit);
    opc_exhibit_note(e, "eta_n is the mean of the very episodes that are the references, as the "
                        "paper's 100 rollouts suggest: how far that mean is from the expected "
                        "return does not show in the errors, least of all in those of OPC.");
    opc_exhibit_note(e, "pi_n is the policy that plays in epoch n, the model is the one fitted "
                        "right after, pi_{n+1} what was learned on it; eta~_{n+1} uses model n and "
                        "episodes of pi_n.");
    for (int r = 0; r < runs; r++) {
        for (int m = 0; m < MODELS; m++)
            if (h[r].lost[m])
                opc_exhibit_note(e, "%s: %ld rollouts by %s became infinite and count up to there",
                                 h[r].title, h[r].lost[m], NAME[m]);
        if (h[r].epoch[h[r].n] > h[r].n)
            opc_exhibit_note(e,
                             "%s: there is no snapshot of every epoch; an iteration reaches from "
                             "one to the next",
                             h[r].title);
    }
}

static int make(const struct opc_request *request, const void *settings, struct opc_exhibit *e,
                struct opc_err *err)
{
    const struct opc_probe_bound_config *set = settings;
    struct history *h = opc_alloc((size_t)request->runs, sizeof *h);
    int code =
        h ? OPC_OK : opc_fail(err, OPC_ENOMEM, "not enough memory for %d runs", request->runs);
    if (!code && request->runs == 0)
        code = opc_fail(err, OPC_EUSER, "there is no run to probe");
    for (int r = 0; r < request->runs && !code; r++)
        code = measure(request, r, set->samples, &h[r], err);
    if (!code)
        code = draw(request->runs, h, e, err);
    if (!code)
        code = write_tables(request->runs, h, e, err);
    if (!code) {
        claim_smaller(request->runs, h, e);
        claim_bound(request->runs, h, e);
        claim_stable(request->runs, h, e);
        note(request->runs, h, e);
    }
    for (int r = 0; h && r < request->runs; r++)
        history_free(&h[r]);
    opc_free(h);
    return code;
}

#define SELF struct opc_probe_bound_config
static const struct opc_section section = OPC_SECTION("probe", "", OPC_PROBE_BOUND_FIELDS);
#undef SELF

const struct opc_analysis opc_probe_bound = {
    .name = "probe_bound",
    .help = "real and predicted returns of every policy of a run, and the bound (Figure 15)",
    .settings = &section,
    .make = make,
};
