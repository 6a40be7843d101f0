/* SPDX-License-Identifier: MIT */
/* The paper's statements against numbers: the measured value, the bound as published, and the
 * bound in a form that holds (docs/errata.md explains the changes).
 *
 * Invariant: rows come in a fixed order, a statement after the other, so that tables of two
 * versions can be compared line by line. */
#include "opc/mem.h"
#include "study/example/theory.h"
#include "study/exhibit/analysis.h"

#include <math.h>
#include <stdio.h>

/* clang-format off */
#define FIELDS(X)                                                                                   \
    X(REAL, L_f,             "2",    0.01, 10,   "Lipschitz constant of the growing model")         \
    X(REAL, L_pi,            "1",    0,    10,   "Lipschitz constant of the growing model's policy")                               \
    X(REAL, discount,        "0.99", 0,    0.999, "discount of the growing model's returns")                                 \
    X(INT,  horizon,         "40",   1,    200,  "T of the growing model's returns")                                \
    X(REAL, shrink_L_f,      "0.3",  0.01, 10,   "Lipschitz constant of the shrinking model")       \
    X(REAL, shrink_L_pi,     "0.3",  0,    10,   "Lipschitz constant of the shrinking model's policy")                               \
    X(REAL, shrink_discount, "0.9",  0,    0.999, "discount of the shrinking model's returns")                                 \
    X(INT,  shrink_horizon,  "10",   1,    200,  "T of the shrinking model's returns")                                \
    X(REAL, sigma,           "0.1",  1e-6, 10,   "standard deviation of both policies")             \
    X(INT,  branched_steps,  "10",   1,    200,  "H of rollouts that branch from the recording")     \
    X(INT,  steps,           "20",   2,    200,  "time steps of the state marginals that are shown")                    \
    X(INTS, recordings,      "[1, 2, 4, 8, 16, 32, 64]", 1, 4096, "B of Lemma 1")                   \
    X(INT,  estimates,       "1000", 10,   1e6,  "estimates of the return for each B")                        \
    X(INT,  lemma1_steps,    "60",   1,    OPC_LEMMA1_STEPS, "steps of a recording for Lemma 1")
/* clang-format on */

struct settings {
    FIELDS(OPC_MEMBER)
};
#define SELF struct settings
static const struct opc_section section =
    OPC_SECTION("theory", "the paper's bounds against measured values", FIELDS);
#undef SELF

/* Counts of statements that held and that did not: [0] as published, [1] in the safe form. */
struct tally {
    int held[2], failed[2];
};

/* Adds up two tallies. */
static struct tally tally_sum(struct tally a, struct tally b)
{
    for (int i = 0; i < 2; i++) {
        a.held[i] += b.held[i];
        a.failed[i] += b.failed[i];
    }
    return a;
}

/* Adds a row and counts it. `above`: the bound is a lower one. Rounding errors are tolerated. */
static void add_bound_row(struct opc_table *table, struct tally *tally, const char *statement,
                          const char *what, double measured, double published, double safe,
                          bool above)
{
    const double bound[2] = {published, safe};
    opc_table_word(table, statement);
    opc_table_word(table, what);
    opc_table_real(table, measured);
    opc_table_real(table, published);
    opc_table_real(table, safe);
    for (int i = 0; i < 2; i++) {
        /* 1e-12 relative to the bound: what rounding may do. */
        const double slack = 1e-12 * fmax(1, fabs(bound[i]));
        const bool holds = above ? measured >= bound[i] - slack : measured <= bound[i] + slack;
        opc_table_word(table, holds ? "yes" : "no");
        *(holds ? &tally->held[i] : &tally->failed[i]) += 1;
    }
}

/* ---- section 2 ---- */

/* The improvement bound for steps of the 1-D example, by model and by OPC. */
static struct tally check_improvement(struct opc_table *table)
{
    /* Steps of theta towards the optimum, and away from it. */
    static const double STEP[][2] = {{-1.5, -1.4}, {-1.3, -1.25}, {-1.2, -1.25}, {-0.7, -0.8}};
    static const char *const STATEMENT[] = {"", "improvement >= bound, model",
                                            "improvement >= bound, OPC"};
    const struct opc_toy toy = opc_toy_paper(0.5, 0);
    struct tally tally = {0};
    for (int by = OPC_BY_MODEL; by <= OPC_BY_OPC; by++)
        for (size_t i = 0; i < sizeof STEP / sizeof *STEP; i++) {
            double eta[2], model[2];
            char what[80];
            /* OPC's recording is that of the first policy of the step. */
            for (int k = 0; k < 2; k++) {
                eta[k] = opc_toy_value(&toy, OPC_BY_TRUTH, STEP[i][k], STEP[i][0]).J;
                model[k] = opc_toy_value(&toy, (enum opc_toy_by)by, STEP[i][k], STEP[i][0]).J;
            }
            snprintf(what, sizeof what, "1-D example dA=0.5; theta %g to %g", STEP[i][0],
                     STEP[i][1]);
            const double bound = opc_theory_improvement(eta, model);
            add_bound_row(table, &tally, STATEMENT[by], what, eta[1] - eta[0], bound, bound, true);
        }
    return tally;
}

/* How one-step errors add up, for three horizons. */
static struct tally check_drift(struct opc_table *table)
{
    struct tally tally = {0};
    for (int H = 10; H <= 1000; H *= 10) {
        char what[40];
        snprintf(what, sizeof what, "gamma=0.99; H=%d", H);
        const double bound = opc_theory_drift_bound(0.99, H);
        add_bound_row(table, &tally, "sum of t gamma^t <= bound", what, opc_theory_drift(0.99, H),
                      bound, bound, false);
    }
    return tally;
}

/* ---- Lemma 1 ---- */

/* Estimates of the return over the number B of recordings. */
struct lemma1 {
    int n;
    double eta, one; /* the return, and the variance of a single recording's return */
    double at[OPC_LIST_MAX], variance[OPC_LIST_MAX], expected[OPC_LIST_MAX];
    double slope; /* of log variance over log B, by least squares */
    double slope_error;
    double apart;
    char word[OPC_LIST_MAX][16]; /* B */
};

/* Lemma 1 for every B: equality with replay, tail bound, and the rate of the variance. */
static struct tally check_lemma1(const struct settings *set, uint64_t seed, struct opc_table *table,
                                 struct opc_table *own, struct lemma1 *out)
{
    const struct opc_integrator in = opc_integrator_figure();
    struct tally tally = {0};
    *out =
        (struct lemma1){.n = set->recordings.n, .eta = opc_lemma1_return(&in, set->lemma1_steps)};
    /* The variance of a single recording, from other random numbers than the estimates. */
    out->one =
        opc_lemma1(&in, set->lemma1_steps, 1, 4 * set->estimates, out->eta, 0, seed + 1).variance;
    /* A tail threshold of half a standard deviation makes the bound informative for the larger
     * B. */
    const double eps = sqrt(out->one) / 2;
    double x = 0, y = 0, xx = 0, xy = 0;
    /* One row in each table for every B. */
    for (int i = 0; i < out->n; i++) {
        const int B = set->recordings.at[i];
        const struct opc_lemma1 got =
            opc_lemma1(&in, set->lemma1_steps, B, set->estimates, out->eta, eps, seed);
        /* Chebyshev's inequality; a probability is never above 1. */
        const double bound = fmin(1, out->one / (B * eps * eps));
        char what[60];
        snprintf(what, sizeof what, "double integrator; B=%d", B);
        add_bound_row(table, &tally, "Lemma 1: |eta_opc - eta_replay| <= 0", what, got.apart, 0, 0,
                      false);
        add_bound_row(table, &tally, "Lemma 1: Pr(error > eps) <= Var/(B eps^2)", what, got.tail,
                      bound, bound, false);
        out->apart = fmax(out->apart, got.apart);
        out->at[i] = i;
        snprintf(out->word[i], sizeof out->word[i], "%d", B);
        out->variance[i] = got.variance;
        out->expected[i] = out->one / B;
        opc_table_int(own, B);
        opc_table_real(own, got.mean - out->eta);
        opc_table_real(own, got.variance);
        opc_table_real(own, out->one / B);
        opc_table_real(own, got.tail);
        opc_table_real(own, bound);
        /* Sums for a straight line through log variance over log B. */
        const double lx = log(B), ly = log(got.variance);
        x += lx / out->n;
        y += ly / out->n;
        xx += lx * lx / out->n;
        xy += lx * ly / out->n;
    }
    /* The log of a variance from n estimates has a standard error of about sqrt(2 / n). */
    const double spread = xx - x * x;
    out->slope = spread > 0 ? (xy - x * y) / spread : (double)NAN;
    out->slope_error = spread > 0 ? sqrt(2.0 / set->estimates / (out->n * spread)) : (double)NAN;
    return tally;
}

/* ---- state marginals, Theorem 1, one step ---- */

/* The constants of the theorems for a linear case with r = |s|. */
static struct opc_constants constants_of(const struct opc_linear_case *linear)
{
    return (struct opc_constants){.L_f = opc_theory_lipschitz(linear),
                                  .L_pi = fabs(linear->k),
                                  .L_r = 1,
                                  .sigma = linear->sigma,
                                  .m = 1};
}

/* Curves of the figure; steps are limited to 200 by the settings. */
struct marginals {
    double t[200], measured[200], published[200], safe[200];
};

/* W_2^2 of state marginals over time, exactly, against both forms of the bound. */
static struct tally check_marginals(const struct opc_linear_case *linear, const char *name,
                                    int steps, struct opc_table *table, struct marginals *out)
{
    const struct opc_constants k = constants_of(linear);
    struct tally tally = {0};
    for (int i = 0; i < steps; i++) {
        const int at = i + 1;
        char what[80];
        snprintf(what, sizeof what, "%s; t=%d", name, at);
        out->t[i] = at;
        /* Both distributions are normal, so W_2 has a closed form. */
        out->measured[i] = opc_gauss_w2(opc_theory_marginal(linear, OPC_BY_OPC, at),
                                        opc_theory_marginal(linear, OPC_BY_TRUTH, at));
        out->published[i] = opc_theory_state_bound(&k, OPC_PUBLISHED, at);
        out->safe[i] = opc_theory_state_bound(&k, OPC_SAFE, at);
        add_bound_row(table, &tally, "state marginals: W2^2 <= bound", what, out->measured[i],
                      out->published[i], out->safe[i], false);
    }
    return tally;
}

/* The gap of the returns against both forms of Theorem 1. */
static struct tally check_theorem1(const struct opc_linear_case *linear, const char *name,
                                   double gamma, int T, struct opc_table *table)
{
    const struct opc_constants k = constants_of(linear);
    struct tally tally = {0};
    char what[100];
    snprintf(what, sizeof what, "%s; gamma=%g; T=%d", name, gamma, T);
    add_bound_row(table, &tally, "Theorem 1: |eta - eta_opc| <= bound", what,
                  opc_theory_return_gap(linear, gamma, T),
                  opc_theory_return_bound(&k, OPC_PUBLISHED, gamma, T),
                  opc_theory_return_bound(&k, OPC_SAFE, gamma, T), false);
    return tally;
}

/* The same for rollouts of H steps that branch from the recording at several times. Where they
 * branch, s = s_ref as at t = 0, so the proof holds with H in place of T and for any t. With a
 * truth of 0 (the counter-examples) all times are one case. */
static struct tally check_branched(const struct opc_linear_case *linear, const char *name,
                                   double gamma, int H, struct opc_table *table)
{
    static const int TIME[] = {1, 10, 100};
    const struct opc_constants k = constants_of(linear);
    struct tally tally = {0};
    const size_t times = linear->f == 0 && linear->g == 0 ? 1 : sizeof TIME / sizeof *TIME;
    for (size_t i = 0; i < times; i++) {
        char what[100];
        snprintf(what, sizeof what, "%s; gamma=%g; branch at t=%d; H=%d", name, gamma, TIME[i], H);
        add_bound_row(table, &tally, "Theorem 1 for branched rollouts: |eta - eta_opc| <= bound",
                      what, opc_theory_branched_gap(linear, gamma, TIME[i], H),
                      opc_theory_return_bound(&k, OPC_PUBLISHED, gamma, H),
                      opc_theory_return_bound(&k, OPC_SAFE, gamma, H), false);
    }
    return tally;
}

/* The one-step lemma for a policy with a small and one with a large variance. */
static struct tally check_one_step(struct opc_table *table)
{
    static const double POLICY[][2] = {{2, 0.3}, {0, 1}};
    struct tally tally = {0};
    /* Truth a, model 0.7 a. */
    for (size_t i = 0; i < sizeof POLICY / sizeof *POLICY; i++) {
        const struct opc_one_step got = opc_theory_one_step(1, 0.7, POLICY[i][0], POLICY[i][1]);
        char what[80];
        snprintf(what, sizeof what, "f=a; model 0.7a; a~N(%g; %g^2)", POLICY[i][0], POLICY[i][1]);
        add_bound_row(table, &tally, "one step: W2^2 <= 2 L_f^2 tr Var pi", what, got.opc,
                      got.by_policy, got.by_policy, false);
        add_bound_row(table, &tally, "one step: W2^2 <= 2 E|e|^2 (safe: 2 tr Var e)", what, got.opc,
                      got.by_error, got.by_error_safe, false);
    }
    return tally;
}

/* ---- the exhibit ---- */

/* A line layer. */
static struct opc_figure_layer line_layer(int colour, int dash, const char *label, int n,
                                          const double *x, const double *y)
{
    return (struct opc_figure_layer){.mark = OPC_PLOT_LINE,
                                     .colour = colour,
                                     .dash = dash,
                                     .label = label,
                                     .n = n,
                                     .x = x,
                                     .y = y};
}

/* Both state-marginal cases and Lemma 1, logarithmic. */
static int theory_draw(const struct marginals m[2], int steps, const struct lemma1 *lemma,
                       struct opc_exhibit *exhibit, struct opc_err *err)
{
    struct opc_figure_layer layer[3][3];
    const char *words[OPC_LIST_MAX];
    for (int i = 0; i < lemma->n; i++)
        words[i] = lemma->word[i];
    /* Bounds first, the measured curve on top. */
    for (int k = 0; k < 2; k++) {
        layer[k][0] =
            line_layer(OPC_COLOUR_MODEL, 1, "bound as published", steps, m[k].t, m[k].published);
        layer[k][1] = line_layer(OPC_COLOUR_GREY, 2, "safe bound", steps, m[k].t, m[k].safe);
        layer[k][2] = line_layer(OPC_COLOUR_OPC, 0, "measured", steps, m[k].t, m[k].measured);
    }
    layer[2][0] =
        line_layer(OPC_COLOUR_TRUE, 1, "Var(return) / B", lemma->n, lemma->at, lemma->expected);
    layer[2][1] = line_layer(OPC_COLOUR_OPC, 0, "measured", lemma->n, lemma->at, lemma->variance);
    layer[2][2] = (struct opc_figure_layer){.mark = OPC_PLOT_DOTS,
                                            .colour = OPC_COLOUR_OPC,
                                            .n = lemma->n,
                                            .x = lemma->at,
                                            .y = lemma->variance};
    const struct opc_panel panel[3] = {
        {.title = "state marginals, counter-example",
         .x_label = "time step t",
         .y_label = "W₂² to the environment",
         .x = {1, steps},
         .log_y = true,
         .layers = 3,
         .layer = layer[0]},
        {.title = "state marginals, benign case",
         .x_label = "time step t",
         .y_label = "W₂² to the environment",
         .x = {1, steps},
         .log_y = true,
         .layers = 3,
         .layer = layer[1]},
        {.title = "Lemma 1",
         .x_label = "number B of recordings",
         .y_label = "variance of the estimate",
         .x_words = words,
         .x_word_count = lemma->n,
         .log_y = true,
         .layers = 3,
         .layer = layer[2]},
    };
    const struct opc_figure figure = {
        .note = "Left: a model and a policy that expand as much as their constants allow. Middle: "
                "the two "
                "bounds are equal. Right: the double integrator of Figure 1b.",
        .panels = 3,
        .columns = 3,
        .panel = panel,
        .panel_width = 165,
        .panel_height = 150};
    return opc_exhibit_figure(exhibit, NULL, "Bounds and measured values", &figure, err);
}

/* Supported if the statement held in every case. */
static enum opc_verdict verdict_of(struct tally t, int form)
{
    return t.failed[form] ? OPC_VERDICT_NOT_SUPPORTED : OPC_VERDICT_SUPPORTED;
}

/* Tallies by statement. */
struct tallies {
    struct tally improvement, lemma1, states, returns, branched, one_step;
};

/* One claim per statement, and for the wrong ones a second one with the corrected form. */
static void theory_claims(const struct tallies *n, const struct lemma1 *lemma,
                          struct opc_exhibit *exhibit)
{
    opc_exhibit_claim(exhibit, verdict_of(n->improvement, 0),
                      "The improvement bound holds, and so do the bounds of how errors add up.",
                      "It held in %d of %d cases.", n->improvement.held[0],
                      n->improvement.held[0] + n->improvement.failed[0]);
    /* The variance must fall as 1/B, within three standard errors of the slope. */
    const bool rate = fabs(lemma->slope + 1) <= 3 * lemma->slope_error;
    opc_exhibit_claim(exhibit,
                      isnan(lemma->slope)            ? OPC_VERDICT_UNDECIDED
                      : n->lemma1.failed[0] || !rate ? OPC_VERDICT_NOT_SUPPORTED
                                                     : OPC_VERDICT_SUPPORTED,
                      "Lemma 1: with a deterministic policy the corrected estimate of the return "
                      "is that of replay, and converges at the rate 1/B.",
                      "The estimates differ by %g; their variance goes as B to the power %.3f ± "
                      "%.3f; equality and tail bound held in %d of %d cases.",
                      lemma->apart, lemma->slope, lemma->slope_error, n->lemma1.held[0],
                      n->lemma1.held[0] + n->lemma1.failed[0]);
    static const char *const STATES[] = {
        "The lemma on state marginals holds as published, growing by L_f² + L_π² per step.",
        "Corrected, growing by L_f² (1 + L_π²), the lemma on state marginals holds."};
    static const char *const RETURNS[] = {
        "Theorem 1 holds as published, with C₂ = √(L_f² + L_π²).",
        "Corrected, with C₂ = max(1, L_f √(1 + L_π²)), Theorem 1 holds."};
    for (int i = 0; i < 2; i++)
        opc_exhibit_claim(exhibit, verdict_of(n->states, i), STATES[i],
                          "It held in %d of %d cases (counter-example and benign case over time).",
                          n->states.held[i], n->states.held[i] + n->states.failed[i]);
    for (int i = 0; i < 2; i++)
        opc_exhibit_claim(exhibit, verdict_of(n->returns, i), RETURNS[i],
                          "It held in %d of %d cases (two counter-examples and the benign case).",
                          n->returns.held[i], n->returns.held[i] + n->returns.failed[i]);
    opc_exhibit_claim(
        exhibit, verdict_of(n->branched, 1),
        "Corrected, Theorem 1 holds for rollouts that branch from the recording, with "
        "their length H in place of T.",
        "It held in %d of %d cases (the same three, the benign one branched at three times), as "
        "published in %d.",
        n->branched.held[1], n->branched.held[1] + n->branched.failed[1], n->branched.held[0]);
    opc_exhibit_claim(exhibit, verdict_of(n->one_step, 0), "The one-step lemma holds.",
                      "It held in %d of %d cases, and in %d with the tighter 2 tr Var e in place "
                      "of 2 E|e|².",
                      n->one_step.held[0], n->one_step.held[0] + n->one_step.failed[0],
                      n->one_step.held[1]);
    opc_exhibit_note(exhibit, "The errors of the published constants, and their counter-examples, "
                              "are told in docs/errata.md.");
}

/* The analysis itself: two tables, a figure and claims. */
static int theory_make(const struct opc_request *request, const void *settings,
                       struct opc_exhibit *exhibit, struct opc_err *err)
{
    const struct settings *set = settings;
    if (set->recordings.n < 1)
        return opc_fail(err, OPC_EUSER, "recordings is empty; name at least one B");
    struct opc_table *table = NULL, *own = NULL;
    struct marginals *m = opc_alloc(2, sizeof *m);
    if (!m)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the curves of the theory");
    int code = opc_table_create("statement,case,measured,published bound,safe bound,"
                                "holds_published,holds_safe",
                                &table, err);
    if (!code)
        code = opc_table_create("B,bias,variance,expected_variance,tail,tail_bound", &own, err);
    /* The counter-examples expand as much as their constants allow; growing makes the published
     * bound fail over time, shrinking makes C_2 < 1; the benign case is an ordinary stable loop. */
    if (!code) {
        const struct opc_linear_case grow =
            opc_theory_counter_example(set->L_f, set->L_pi, set->sigma);
        const struct opc_linear_case shrink =
            opc_theory_counter_example(set->shrink_L_f, set->shrink_L_pi, set->sigma);
        const struct opc_linear_case benign = opc_theory_benign_example();
        struct lemma1 lemma;
        struct tallies n;
        /* One statement after the other: rows come in this order. */
        n.improvement = check_improvement(table);
        n.improvement = tally_sum(n.improvement, check_drift(table));
        n.lemma1 = check_lemma1(set, request->seed, table, own, &lemma);
        n.states = check_marginals(&grow, "growing counter-example", set->steps, table, &m[0]);
        n.states =
            tally_sum(n.states, check_marginals(&benign, "benign case", set->steps, table, &m[1]));
        n.returns =
            check_theorem1(&grow, "growing counter-example", set->discount, set->horizon, table);
        n.returns =
            tally_sum(n.returns, check_theorem1(&shrink, "shrinking counter-example",
                                                set->shrink_discount, set->shrink_horizon, table));
        n.returns = tally_sum(
            n.returns, check_theorem1(&benign, "benign case", set->discount, set->horizon, table));
        n.branched = check_branched(&grow, "growing counter-example", set->discount,
                                    set->branched_steps, table);
        n.branched =
            tally_sum(n.branched, check_branched(&shrink, "shrinking counter-example",
                                                 set->shrink_discount, set->branched_steps, table));
        n.branched = tally_sum(n.branched, check_branched(&benign, "benign case", set->discount,
                                                          set->branched_steps, table));
        n.one_step = check_one_step(table);
        /* Tables first: the figure and the claims repeat what is in them. */
        code = opc_exhibit_table(exhibit, NULL, "bounds and measured values", table, err);
        if (!code)
            code = opc_exhibit_table(exhibit, "lemma1", "estimates of the return over B", own, err);
        if (!code)
            code = theory_draw(m, set->steps, &lemma, exhibit, err);
        if (!code)
            theory_claims(&n, &lemma, exhibit);
    }
    opc_table_free(table);
    opc_table_free(own);
    opc_free(m);
    return code;
}

const struct opc_analysis opc_theory = {"theory", "the paper's bounds against measured values",
                                        &section, .make = theory_make};
