/* SPDX-License-Identifier: MIT */
#include "plot/draw.h"
#include "study/exhibit/analysis.h"

#include "drawn.h"
#include "runs.h"

enum { SEEDS = 5, EVALS = 7, RUNS = 64 };

struct bench {
    char *dir, *run[RUNS];
    int runs;
};

static void make_run(struct bench *b, const char *task, const char *transition, int seed,
                     const double *value)
{
    char name[64], a[64], t[64], s[64], path[600];
    snprintf(name, sizeof name, "%s-%s-%d", task, transition, seed);
    snprintf(a, sizeof a, "env.name=%s", task);
    snprintf(t, sizeof t, "opc.transition=%s", transition);
    snprintf(s, sizeof s, "train.seed=%d", seed);
    test_make_run(b->dir, name, (const char *[]){a, t, s, NULL}, EVALS, value);
    snprintf(path, sizeof path, "%s/%s", b->dir, name);
    b->run[b->runs++] = opc_strdup(path);
}

/* On the pendulum the corrected runs end with 100 + seed, the learned ones with 50 + seed and, of
 * seed 5, 200; two runs of replay end with 10. One corrected run is on another task. */
static int set_up(void **state)
{
    struct bench *b = opc_alloc(1, sizeof *b);
    void *dir;
    if (!b || test_make_dir(&dir))
        return -1;
    b->dir = dir;
    for (int seed = 1; seed <= SEEDS; seed++) {
        double better[EVALS] = {0, 500}, worse[EVALS] = {0};
        for (int k = 2; k < EVALS; k++) {
            better[k] = 100 + seed + (k - 4); /* whose mean over the last five is 100 + seed */
            worse[k] = seed == 5 ? 200 : 50 + seed;
        }
        make_run(b, "pendulum", "corrected", seed, better);
        make_run(b, "pendulum", "learned", seed, worse);
    }
    const double low[EVALS] = {10, 10, 10, 10, 10, 10, 10};
    make_run(b, "pendulum", "replay", 1, low);
    make_run(b, "pendulum", "replay", 2, low);
    make_run(b, "cartpole", "corrected", 1, low);
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *b = *state;
    for (int i = 0; i < b->runs; i++)
        opc_free(b->run[i]);
    test_remove(b->dir);
    free(b->dir);
    opc_free(b);
    return 0;
}

/* The exhibit `fig` in the bench's directory, of the first `runs` runs. absent: settings of those
 * that are missing, or NULL. */
static int make_without(const struct bench *b, int runs, int missing,
                        const struct opc_values *const *absent, const char *figure,
                        struct opc_err *err)
{
    const struct opc_exhibit_plan plan = {.dir = b->dir, .name = "fig", .title = "t"};
    const struct opc_analysis *analysis = opc_analysis_find("learning_curves", err);
    struct opc_yaml *yaml = NULL;
    struct opc_exhibit *x = NULL;
    int code = figure ? opc_yaml_parse("fig.yaml", figure, strlen(figure), &yaml, err) : OPC_OK;
    const struct opc_request request = {.figure = yaml,
                                        .runs = runs,
                                        .run = (char *const *)b->run,
                                        .missing = missing,
                                        .absent = absent,
                                        .seed = 1};
    if (!code)
        code = opc_exhibit_begin(&plan, &x, err);
    if (!code)
        code = opc_analysis_run(analysis, &request, x, err);
    opc_yaml_free(yaml);
    if (!code)
        return opc_exhibit_end(x, err);
    opc_exhibit_drop(x);
    return code;
}

static int make_of(const struct bench *b, int runs, int missing, const char *figure,
                   struct opc_err *err)
{
    return make_without(b, runs, missing, NULL, figure, err);
}

static int make(const struct bench *b, int runs, const char *figure, struct opc_err *err)
{
    return make_of(b, runs, 0, figure, err);
}

static struct opc_table *read_table(const struct bench *b, const char *name)
{
    char path[600];
    struct opc_table *t;
    struct opc_err err;
    snprintf(path, sizeof path, "%s/%s", b->dir, name);
    assert_ok(opc_table_read(path, &t, &err), &err);
    return t;
}

/* The row of t whose first cells are these. */
static int row_of(const struct opc_table *t, int n, const char *const *cell)
{
    for (int row = 0; row < opc_table_rows(t); row++) {
        int k = 0;
        while (k < n && strcmp(opc_table_cell(t, row, k), cell[k]) == 0)
            k++;
        if (k == n)
            return row;
    }
    fail_msg("there is no row %s, %s", cell[0], cell[1]);
    return -1;
}

static double number(const struct opc_table *t, int row, const char *column)
{
    double v = (double)NAN;
    assert_true(opc_table_find(t, column) >= 0);
    assert_true(opc_parse_real(opc_table_cell(t, row, opc_table_find(t, column)), &v));
    return v;
}

static struct opc_exhibit_read *load(const struct bench *b)
{
    char path[600];
    struct opc_err err;
    struct opc_exhibit_read *r;
    snprintf(path, sizeof path, "%s/fig.json", b->dir);
    assert_ok(opc_exhibit_load(path, &r, &err), &err);
    return r;
}

static void ends_are_summarised_by_panel_and_line(void **state)
{
    const struct bench *b = *state;
    struct opc_err err;
    assert_ok(make(b, b->runs, NULL, &err), &err);
    struct opc_table *t = read_table(b, "fig-final.csv");
    assert_int_equal(opc_table_rows(t), 4);
    int row = row_of(t, 2, (const char *[]){"pendulum", "corrected"});
    static const char *const COLUMN[] = {"median", "q25", "q75", "mean", "std", "iqm", "runs"};
    double v[7];
    for (int i = 0; i < 7; i++)
        v[i] = number(t, row, COLUMN[i]);
    assert_doubles_near(v, ((double[]){103, 102, 104, 103, sqrt(2.5), 103, 5}), 7, 1e-12);
    assert_true(number(t, row, "iqm_low") >= 101 && number(t, row, "iqm_low") < 103);
    row = row_of(t, 2, (const char *[]){"pendulum", "learned"});
    /* 51, 52, 53, 54, 200: (0.75 * 52 + 53 + 0.75 * 54) / 2.5 */
    assert_true(number(t, row, "median") == 53 && fabs(number(t, row, "iqm") - 53) < 1e-12);
    opc_table_free(t);

    t = read_table(b, "fig-runs.csv");
    assert_int_equal(opc_table_rows(t), b->runs);
    row = row_of(t, 3, (const char *[]){"pendulum", "corrected", "4"});
    assert_true(number(t, row, "final") == 104 && number(t, row, "best") == 500);
    opc_table_free(t);
}

/* The first table of the page: in words, with what the other tables have. */
static void scores_name_seeds_iqm_and_improvement(void **state)
{
    const struct bench *b = *state;
    struct opc_err err;
    assert_ok(make(b, b->runs, NULL, &err), &err);
    struct opc_table *t = read_table(b, "fig-scores.csv"), *ends = read_table(b, "fig-final.csv");
    assert_int_equal(opc_table_rows(t), 4);
    const int row = row_of(t, 3, (const char *[]){"pendulum", "MBPO(*)", "5"});
    const int same = row_of(ends, 2, (const char *[]){"pendulum", "learned"});
    assert_doubles_near(((double[]){number(t, row, "iqm"), number(t, row, "p")}),
                        ((double[]){53, 0.8}), 2, 1e-12);
    assert_true(number(t, row, "iqm_high") == number(ends, same, "iqm_high"));
    assert_true(number(t, row, "p_low") < 0.8 && number(t, row, "p_high") == 1);
    /* The first line is not compared with itself. */
    const int first = row_of(t, 2, (const char *[]){"pendulum", "OPC"});
    assert_string_equal(opc_table_cell(t, first, opc_table_find(t, "p")), "");
    opc_table_free(t);
    opc_table_free(ends);
}

/* Also in sentences about runs that are missing. */
static void lines_have_the_labels_of_the_file(void **state)
{
    const struct bench *b = *state;
    struct opc_err err;
    struct opc_config *one;
    assert_ok(opc_config_create(&one, &err), &err);
    assert_ok(opc_config_set(one, "env.name=pendulum", &err), &err);
    assert_ok(opc_config_set(one, "opc.transition=replay", &err), &err);
    const struct opc_values *const absent[] = {&one->set};
    assert_ok(make_without(b, 8, 1, absent,
                           "labels: {learned: Learned, replay: Replayed, nothing: not there}\n"
                           "claims:\n"
                           "- {text: a, better: learned, worse: corrected}\n"
                           "- {text: b, better: learned, worse: replay}\n",
                           &err),
              &err);
    struct opc_table *t = read_table(b, "fig-scores.csv");
    assert_string_equal(opc_table_cell(t, 0, 1), "OPC");
    assert_string_equal(opc_table_cell(t, 1, 1), "Learned");
    opc_table_free(t);
    struct opc_exhibit_read *r = load(b);
    assert_contains(r->claim[0].measured, "P(Learned > OPC)");
    assert_contains(r->claim[1].measured, "of Replayed");
    opc_exhibit_unload(r);
    opc_config_destroy(one);
}

static void pairs_of_lines_are_compared(void **state)
{
    const struct bench *b = *state;
    struct opc_err err;
    assert_ok(make(b, b->runs, NULL, &err), &err);
    struct opc_table *t = read_table(b, "fig-improvement.csv");
    assert_int_equal(opc_table_rows(t), 3 + 3); /* pairs on the pendulum, and over all tasks */
    int row = row_of(t, 3, (const char *[]){"pendulum", "corrected", "learned"});
    assert_doubles_near(((double[]){number(t, row, "probability"), number(t, row, "better_runs")}),
                        ((double[]){0.8, 5}), 2, 1e-12); /* one of five ends above all */
    assert_true(number(t, row, "low") < 0.8 && number(t, row, "high") == 1);
    row = row_of(t, 3, (const char *[]){"all", "learned", "replay"});
    assert_true(number(t, row, "probability") == 1 && number(t, row, "low") == 1);
    opc_table_free(t);
}

static void curves_are_tabulated_as_they_are_drawn(void **state)
{
    const struct bench *b = *state;
    struct opc_err err;
    assert_ok(make(b, b->runs, "{curve: {smooth: 1, centre: mean, band: std}}", &err), &err);
    struct opc_table *t = read_table(b, "fig.csv");
    assert_int_equal(opc_table_rows(t), 4 * EVALS);
    const int row = row_of(t, 3, (const char *[]){"pendulum", "corrected", "700"});
    assert_true(number(t, row, "median") == 105 && number(t, row, "q25") == 104);
    assert_true(number(t, row, "mean") == 105 && number(t, row, "runs") == 5);
    assert_true(fabs(number(t, row, "std") - sqrt(2.5)) < 1e-12);
    opc_table_free(t);

    assert_ok(make(b, b->runs, "{line: [opc.transition, train.seed], panel: []}", &err), &err);
    t = read_table(b, "fig-final.csv");
    row_of(t, 2, (const char *[]){"", "learned+3"});
    opc_table_free(t);
}

static void claims_are_judged_by_what_runs_end_with(void **state)
{
    const struct bench *b = *state;
    struct opc_err err;
    assert_ok(make(b, b->runs,
                   "claims:\n"
                   "- {text: a, better: corrected, worse: learned}\n"
                   "- {text: b, better: learned, worse: corrected, panel: pend*}\n"
                   "- {text: c, better: corrected, worse: replay}\n"
                   "- {text: d, better: corrected, worse: learned, panel: cartpole}\n"
                   "- {text: e, better: corrected, worse: recorded}\n"
                   "- {text: f, solves: corrected, level: 102, panel: pendulum}\n"
                   "- {text: g, solves: corrected, level: 103.5, panel: pendulum}\n"
                   "- {text: h, solves: corrected, level: 103, panel: pendulum}\n"
                   "- {text: i, solves: replay, level: 1}\n"
                   "- {text: j, solves: corrected, level: 50}\n",
                   &err),
              &err);
    struct opc_exhibit_read *r = load(b);
    static const struct {
        enum opc_verdict verdict;
        const char *key, *more;
    } WANT[] = {
        {OPC_VERDICT_UNDECIDED, "P(OPC > MBPO(*)) = 0.80",
         "5 and 5"}, /* the interval reaches below 1/2 */
        {OPC_VERDICT_UNDECIDED, "P(MBPO(*) > OPC) = 0.20", "5 and 5"},
        {OPC_VERDICT_UNDECIDED, "P(OPC > SAC) = 1.00", "5 and 2"}, /* of two runs */
        {OPC_VERDICT_UNDECIDED, "cartpole", "MBPO(*)"},
        {OPC_VERDICT_UNDECIDED, "recorded", "complete"},
        {OPC_VERDICT_SUPPORTED, "4 of 5", "102"},
        {OPC_VERDICT_NOT_SUPPORTED, "2 of 5", "103.5"},
        {OPC_VERDICT_UNDECIDED, "3 of 5", "103"},
        {OPC_VERDICT_UNDECIDED, "2 of 2", "SAC"},
        {OPC_VERDICT_UNDECIDED, "5 of 6", "0 of 1"}, /* the panel with the fewest */
    };
    assert_int_equal(r->claims, 10);
    for (int i = 0; i < 10; i++) {
        assert_contains(r->claim[i].measured, WANT[i].key);
        assert_contains(r->claim[i].measured, WANT[i].more);
        assert_int_equal(r->claim[i].verdict, WANT[i].verdict);
    }
    opc_exhibit_unload(r);
}

/* Without the run of seed 5, which comes last of the pairs, one line is above the other for sure.
 */
static void a_clear_difference_decides(void **state)
{
    const struct bench *b = *state;
    struct opc_err err;
    assert_ok(make(b, 8,
                   "claims:\n"
                   "- {text: a, better: corrected, worse: learned}\n"
                   "- {text: b, better: learned, worse: corrected}\n",
                   &err),
              &err);
    struct opc_exhibit_read *r = load(b);
    assert_int_equal(r->claim[0].verdict, OPC_VERDICT_SUPPORTED);
    assert_int_equal(r->claim[1].verdict, OPC_VERDICT_NOT_SUPPORTED);
    assert_contains(r->claim[0].measured, "P(OPC > MBPO(*)) = 1.00");
    assert_contains(r->claim[0].measured, "[1.00, 1.00]");
    assert_contains(r->claim[0].measured, "4 and 4");
    assert_int_equal(r->pictures, opc_draw_version() ? 1 : 0);
    assert_int_equal(r->tables, 5);
    opc_exhibit_unload(r);
}

/* The runs that are there would decide; those that failed might not have agreed. */
static void while_runs_are_missing_nothing_is_decided(void **state)
{
    const struct bench *b = *state;
    struct opc_err err;
    assert_ok(make_of(b, 8, 2,
                      "claims:\n"
                      "- {text: a, better: corrected, worse: learned}\n"
                      "- {text: b, solves: corrected, level: 0}\n",
                      &err),
              &err);
    struct opc_exhibit_read *r = load(b);
    assert_int_equal(r->claim[0].verdict, OPC_VERDICT_UNDECIDED);
    assert_contains(r->claim[0].measured, "P(OPC > MBPO(*)) = 1.00");
    assert_contains(r->claim[0].measured, "2 runs");
    assert_int_equal(r->claim[1].verdict, OPC_VERDICT_UNDECIDED);
    assert_contains(r->claim[1].measured, "2 runs");
    opc_exhibit_unload(r);
}

/* Where it is known which runs are missing, only claims about those wait for them. */
static void a_claim_waits_for_its_own_runs_only(void **state)
{
    const struct bench *b = *state;
    struct opc_err err;
    struct opc_config *one, *two;
    assert_ok(opc_config_create(&one, &err), &err);
    assert_ok(opc_config_create(&two, &err), &err);
    assert_ok(opc_config_set(one, "env.name=pendulum", &err), &err);
    assert_ok(opc_config_set(one, "opc.transition=replay", &err), &err);
    assert_ok(opc_config_set(two, "env.name=cartpole", &err), &err);
    assert_ok(opc_config_set(two, "opc.transition=learned", &err), &err);
    const struct opc_values *const absent[] = {&one->set, &two->set};
    assert_ok(make_without(b, 8, 2, absent,
                           "claims:\n"
                           "- {text: a, better: corrected, worse: learned, panel: pendulum}\n"
                           "- {text: b, better: corrected, worse: learned}\n"
                           "- {text: c, solves: corrected, level: 0}\n"
                           "- {text: d, better: corrected, worse: replay}\n"
                           "- {text: e, best: [\"corr*\", \"repl*\"]}\n",
                           &err),
              &err);
    struct opc_exhibit_read *r = load(b);
    assert_int_equal(r->claim[0].verdict, OPC_VERDICT_SUPPORTED);
    assert_int_equal(r->claim[1].verdict, OPC_VERDICT_UNDECIDED);
    assert_contains(r->claim[1].measured, "1 run is missing: MBPO(*) on cartpole, seed 1.");
    assert_int_equal(r->claim[2].verdict, OPC_VERDICT_SUPPORTED);
    for (int i = 3; i < 5; i++) {
        assert_int_equal(r->claim[i].verdict, OPC_VERDICT_UNDECIDED);
        assert_contains(r->claim[i].measured, "no complete run of SAC;");
        assert_contains(r->claim[i].measured, "1 run is missing: SAC on pendulum, seed 1.");
    }
    opc_exhibit_unload(r);
    /* Panels by method, lines by task: what is missing is part of the second panel alone. */
    assert_ok(make_without(b, 8, 1, absent + 1,
                           "panel: opc.transition\n"
                           "line: env.name\n"
                           "claims:\n"
                           "- {text: a, above: corrected, below: learned, line: pendulum}\n"
                           "- {text: b, above: corrected, below: learned}\n",
                           &err),
              &err);
    r = load(b);
    assert_int_equal(r->claim[0].verdict, OPC_VERDICT_SUPPORTED);
    assert_int_equal(r->claim[1].verdict, OPC_VERDICT_UNDECIDED);
    opc_exhibit_unload(r);
    opc_config_destroy(one);
    opc_config_destroy(two);
}

/* Settings of n missing runs of a line in a panel; the caller destroys them. */
static void miss(struct opc_config **config, const struct opc_values **set, int n, const char *task,
                 const char *transition, const int *seed)
{
    struct opc_err err;
    for (int i = 0; i < n; i++) {
        char text[64];
        assert_ok(opc_config_create(&config[i], &err), &err);
        snprintf(text, sizeof text, "env.name=%s", task);
        assert_ok(opc_config_set(config[i], text, &err), &err);
        snprintf(text, sizeof text, "opc.transition=%s", transition);
        assert_ok(opc_config_set(config[i], text, &err), &err);
        snprintf(text, sizeof text, "train.seed=%d", seed[i]);
        assert_ok(opc_config_set(config[i], text, &err), &err);
        set[i] = &config[i]->set;
    }
}

/* Ranges of seeds, cell by cell, and cut where it becomes long. */
static void missing_runs_are_named(void **state)
{
    enum { ALL = 7 + 4 + 2 };
    struct bench *b = *state;
    struct opc_err err;
    struct opc_config *config[ALL];
    const struct opc_values *absent[ALL];
    miss(config, absent, 7, "pendulum", "replay", (const int[]){3, 5, 7, 9, 11, 4, 13});
    miss(config + 7, absent + 7, 4, "cartpole", "learned", (const int[]){2, 1, 4, 3});
    static const char *const TASK[] = {"linear1d", "double_integrator"};
    for (int i = 0; i < 2; i++)
        miss(config + 11 + i, absent + 11 + i, 1, TASK[i], "learned", (const int[]){i + 1});
    assert_ok(make_without(b, 8, ALL, absent,
                           "claims:\n"
                           "- {text: a, better: corrected, worse: learned}\n"
                           "- {text: b, better: corrected, worse: learned, panel: cartpole}\n"
                           "- {text: c, better: learned, worse: replay}\n"
                           "- {text: d, alike: [corrected, learned], margin: 0.1, panel: "
                           "[lin*, dou*]}\n"
                           "- {text: e, solves: replay, level: 1}\n",
                           &err),
              &err);
    struct opc_exhibit_read *r = load(b);
    static const char *const WANT[] = {
        "6 runs are missing: MBPO(*) on cartpole, seeds 1 to 4; MBPO(*) on linear1d, seed 1; MBPO",
        "4 runs are missing: MBPO(*) on cartpole, seeds 1 to 4.",
        "13 runs are missing: SAC on pendulum, seeds 3 to 5, 7, 9, 11, ...; MBPO(*) on cartpole",
        "2 runs are missing: MBPO(*) on linear1d, seed 1; MBPO(*) on double_integrator, seed 2.",
        "no complete run of SAC; nothing is decided while 7 runs are missing: SAC on pendulum",
    };
    for (int i = 0; i < 5; i++) {
        assert_contains(r->claim[i].measured, WANT[i]);
        assert_int_equal(r->claim[i].verdict, OPC_VERDICT_UNDECIDED);
    }
    opc_exhibit_unload(r);
    /* Each line of a panel is one of twelve, of which four are named. */
    assert_ok(make_without(b, 8, ALL, absent,
                           "line: [opc.transition, train.seed]\n"
                           "claims: [{text: a, best: [\"corrected*\", \"[lr]*\"]}]\n",
                           &err),
              &err);
    r = load(b);
    assert_contains(r->claim[0].measured, "13 runs are missing: ");
    assert_contains(r->claim[0].measured, "; and 9 more.");
    opc_exhibit_unload(r);
    for (int i = 0; i < ALL; i++)
        opc_config_destroy(config[i]);
}

static void panels_are_compared_line_by_line(void **state)
{
    const struct bench *b = *state;
    struct opc_err err;
    assert_ok(make(b, 8,
                   "panel: opc.transition\n"
                   "line: env.name\n"
                   "titles: {corrected: Eq. 5, nothing: not there}\n"
                   "curve: {share: true}\n"
                   "notes: [Two panels., \"Not the paper's.\"]\n"
                   "claims:\n"
                   "- {text: a, above: corrected, below: learned}\n"
                   "- {text: b, above: learned, below: corrected}\n"
                   "- {text: c, above: learned, below: nothing}\n",
                   &err),
              &err);
    struct opc_exhibit_read *r = load(b);
    assert_int_equal(r->claim[0].verdict, OPC_VERDICT_SUPPORTED);
    assert_contains(r->claim[0].measured, "P(Eq. 5 > MBPO(*)) = 1.00");
    assert_contains(r->claim[0].measured, "1 line");
    assert_int_equal(r->claim[1].verdict, OPC_VERDICT_NOT_SUPPORTED);
    assert_int_equal(r->claim[2].verdict, OPC_VERDICT_UNDECIDED);
    assert_true(r->notes >= 2);
    assert_string_equal(r->note[r->notes - 1], "Not the paper's.");
    assert_contains(r->claim[2].measured, "MBPO(*)");
    assert_contains(r->claim[2].measured, "nothing"); /* the title of one that is not there */
    opc_exhibit_unload(r);
}

/* A claim that must come out so, with these words in its sentence. */
struct wanted {
    enum opc_verdict verdict;
    const char *key, *more;
};

static void check_claims(const struct bench *b, const char *figure, int n,
                         const struct wanted *want)
{
    struct opc_err err;
    assert_ok(make(b, b->runs, figure, &err), &err);
    struct opc_exhibit_read *r = load(b);
    assert_int_equal(r->claims, n);
    for (int i = 0; i < n; i++) {
        assert_contains(r->claim[i].measured, want[i].key);
        assert_contains(r->claim[i].measured, want[i].more);
        assert_int_equal(r->claim[i].verdict, want[i].verdict);
    }
    opc_exhibit_unload(r);
}

/* A glob is what its lines have in common, unless others have that, too. */
static void sentences_name_lines_and_panels_as_the_picture_does(void **state)
{
    const struct bench *b = *state;
    static const struct wanted WANT[] = {
        {OPC_VERDICT_UNDECIDED, "runs of", "OPC and MBPO(*), seed 1 do not both"},
        {OPC_VERDICT_UNDECIDED, "runs of", "OPC, seed 1 or OPC, seed 3 and MBPO(*) do not both"},
        {OPC_VERDICT_UNDECIDED, "runs of",
         "No panel among \"cartpole\" has runs of both OPC, seed 2"},
        {OPC_VERDICT_UNDECIDED, "runs of",
         "No line of MBPO(*) has runs of both pendulum and cartpole"},
    };
    check_claims(b,
                 "line: [opc.transition, train.seed]\n"
                 "claims:\n"
                 "- {text: a, spread: [\"corrected*\", learned+1], panel: pendulum}\n"
                 "- {text: b, best: [\"corrected+[13]\", \"learned*\"], panel: linear1d}\n"
                 "- {text: c, better: corrected+2, worse: replay+1, panel: cart*}\n"
                 "- {text: d, above: pendulum, below: cartpole, line: \"lear*\"}\n",
                 4, WANT);
}

/* The value at 200 steps alone, the mean of those at 600 and 700, and of no run one before 100.
 * What runs end with decides as before. */
static void a_claim_may_be_about_a_number_of_steps(void **state)
{
    const struct bench *b = *state;
    static const struct wanted WANT[] = {
        {OPC_VERDICT_SUPPORTED, "At 200 environment steps: P(OPC > MBPO(*)) = 1.00",
         "5 and 5 runs"},
        {OPC_VERDICT_SUPPORTED, "At 200 environment steps: 5 of 5", "median 500"},
        {OPC_VERDICT_SUPPORTED, "At 700 environment steps: 5 of 5", "median 104.5"},
        {OPC_VERDICT_UNDECIDED, "3 of 5 runs of OPC", "median 103"},
        {OPC_VERDICT_NOT_SUPPORTED, "At 200 environment steps: IQM", "margin of 10 %"},
        {OPC_VERDICT_UNDECIDED, "At 90 environment steps: No panel", "run of OPC"},
        {OPC_VERDICT_SUPPORTED, "At 200 environment steps: P(best of OPC", "5 and 5 runs"},
    };
    check_claims(b,
                 "panel: env.name\n"
                 "claims:\n"
                 "- {text: a, better: corrected, worse: learned, at: 200, panel: pendulum}\n"
                 "- {text: b, solves: corrected, level: 500, at: 200, panel: pendulum}\n"
                 "- {text: c, solves: corrected, level: 102.5, at: 700, panel: pendulum}\n"
                 "- {text: d, solves: corrected, level: 102.5, panel: pendulum}\n"
                 "- {text: e, alike: [corrected, learned], margin: 0.1, at: 200, panel: pendulum}\n"
                 "- {text: f, solves: corrected, level: 1, at: 90, panel: pendulum}\n"
                 "- {text: g, best: [corrected, learned], at: 200, panel: pendulum}\n",
                 7, WANT);
}

/* That of eq. 5 for runs that imagine by it, that of eq. 2 for the others. */
static void the_error_is_that_of_the_equation_a_run_uses(void **state)
{
    const struct bench *b = *state;
    static const char METRICS[] =
        "epoch,env_steps,total_steps,eval_return,learned_10,corrected_10\n"
        "1,100,100,7,5,2\n2,200,200,7,5,2\n";
    struct opc_err err;
    for (int i = 0; i < 2; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/metrics.csv", b->run[i]);
        assert_ok(opc_file_write(path, METRICS, sizeof METRICS - 1, &err), &err);
    }
    assert_ok(make(b, 2, "{curve: {of: error_10}}", &err), &err);
    struct opc_table *t = read_table(b, "fig-runs.csv");
    const char *const corrected[] = {"pendulum", "corrected", "1"}, *const learned[] = {
                                                                        "pendulum", "learned", "1"};
    assert_string_equal(opc_table_cell(t, row_of(t, 3, corrected), 3), "2");
    assert_string_equal(opc_table_cell(t, row_of(t, 3, learned), 3), "5");
    opc_table_free(t);
    struct opc_exhibit_read *r = load(b);
    assert_true(r->pictures > 0);
    opc_exhibit_unload(r);
}

/* Of twenty ways to put three runs beside three others, one has all of them above. */
static void three_runs_against_three_decide_nothing(void **state)
{
    const struct bench *b = *state;
    struct opc_err err;
    assert_ok(make(b, 6, "claims: [{text: a, better: corrected, worse: learned}]", &err), &err);
    struct opc_exhibit_read *r = load(b);
    assert_int_equal(r->claim[0].verdict, OPC_VERDICT_UNDECIDED);
    assert_contains(r->claim[0].measured, "3 and 3");
    assert_contains(r->claim[0].measured, "5.0 %");
    opc_exhibit_unload(r);
}

/* Nine runs of twelve are enough in one panel, but not if the others are all there are of a task.
 */
static void what_is_solved_is_solved_in_every_panel(void **state)
{
    struct bench *b = *state;
    struct opc_err err;
    const double low[EVALS] = {10, 10, 10, 10, 10, 10, 10};
    const double high[EVALS] = {990, 990, 990, 990, 990, 990, 990};
    struct bench more = {.dir = b->dir};
    for (int seed = 11; seed < 20; seed++)
        make_run(&more, "pendulum", "corrected", seed, high);
    for (int seed = 11; seed < 14; seed++)
        make_run(&more, "cartpole", "corrected", seed, low);
    assert_ok(make(&more, more.runs, "claims: [{text: a, solves: corrected, level: 990}]", &err),
              &err);
    struct opc_exhibit_read *r = load(b);
    assert_int_equal(r->claim[0].verdict, OPC_VERDICT_NOT_SUPPORTED);
    assert_contains(r->claim[0].measured, "9 of 12");
    assert_contains(r->claim[0].measured, "0 of 3");
    opc_exhibit_unload(r);
    for (int i = 0; i < more.runs; i++)
        opc_free(more.run[i]);
}

/* Runs of constant returns: value[i] is that of seed i + 1. */
static void make_flat(struct bench *b, const char *task, const char *transition, int n,
                      const double *value)
{
    for (int i = 0; i < n; i++) {
        double flat[EVALS];
        for (int k = 0; k < EVALS; k++)
            flat[k] = value[i];
        make_run(b, task, transition, i + 1, flat);
    }
}

static void free_bench(struct bench *b)
{
    for (int i = 0; i < b->runs; i++)
        opc_free(b->run[i]);
}

/* On the cart and pole 100 against 95 (-5 % of the larger), on the pendulum 200 against 100, on the
 * double integrator 90 to 110 against the same, which is alike in the middle, but not for sure. */
static void lines_are_alike_within_a_margin(void **state)
{
    struct bench *b = *state, more = {.dir = b->dir};
    const double a[] = {100, 100, 100, 100}, c[] = {95, 95, 95, 95}, high[] = {200, 200, 200, 200};
    const double wide[] = {70, 90, 110, 130};
    make_flat(&more, "cartpole", "learned", 4, a);
    make_flat(&more, "cartpole", "replay", 4, c);
    make_flat(&more, "double_integrator", "learned", 4, wide);
    make_flat(&more, "double_integrator", "replay", 4, wide);
    make_flat(&more, "linear1d", "learned", 4, a);
    make_flat(&more, "linear1d", "replay", 4, high);
    make_flat(&more, "linear1d?A=2", "learned", 3, a);
    make_flat(&more, "linear1d?A=2", "replay", 3, a);
    static const struct wanted WANT[] = {
        {OPC_VERDICT_SUPPORTED, "+5.0 %", "[+5.0, +5.0]"},
        {OPC_VERDICT_NOT_SUPPORTED, "+5.0 %", "outside of the margin of 3 %"},
        {OPC_VERDICT_NOT_SUPPORTED, "-50.0 %", "= -100 (100 and 200)"},
        {OPC_VERDICT_UNDECIDED, "+0.0 %", "seeds instead of 4"},
        /* Different in one panel is enough, whatever the others are. */
        {OPC_VERDICT_NOT_SUPPORTED, "-50.0 %", "of 3 panels furthest in \"linear1d\""},
        {OPC_VERDICT_UNDECIDED, "fewer than 4", "about 4 seeds instead of 3"},
        {OPC_VERDICT_UNDECIDED, "pendulum", "both"},
        {OPC_VERDICT_UNDECIDED, "recorded", "complete"},
    };
    check_claims(&more,
                 "claims:\n"
                 "- {text: a, alike: [learned, replay], margin: 0.15, panel: cart*}\n"
                 "- {text: b, alike: [learned, replay], margin: 0.03, panel: cart*}\n"
                 "- {text: c, alike: [learned, replay], margin: 0.15, panel: linear1d}\n"
                 "- {text: d, alike: [learned, replay], margin: 0.15, panel: double*}\n"
                 "- {text: e, alike: [learned, replay], margin: 0.15, panel: \"[cdl]*[a-z1d]\"}\n"
                 "- {text: f, alike: [learned, replay], margin: 0.15, panel: \"*=2\"}\n"
                 "- {text: g, alike: [learned, replay], margin: 0.15, panel: pendulum}\n"
                 "- {text: h, alike: [learned, recorded], margin: 0.15}\n",
                 8, WANT);
    free_bench(&more);
}

/* Against 100, returns are 12 % lower on the cart and pole and 20 % lower on linear1d, in every
 * run; as high on the double integrator, give or take less than 15 %, and on linear1d with A = 2,
 * give or take more; and 25 % lower with A = 3, give or take more. The sentence is about the panel
 * that makes the verdict, which need not be the one of the largest difference. */
static void the_panel_that_decides_likeness_is_shown(void **state)
{
    struct bench *b = *state, more = {.dir = b->dir};
    const double all[] = {100, 100, 100, 100}, less[] = {88, 88, 88, 88}, low[] = {80, 80, 80, 80};
    const double some[] = {86, 100, 100, 114}, wide[] = {40, 95, 105, 160};
    const double lower[] = {15, 70, 80, 135};
    make_flat(&more, "cartpole", "learned", 4, less);
    make_flat(&more, "double_integrator", "learned", 4, some);
    make_flat(&more, "linear1d", "learned", 4, low);
    make_flat(&more, "linear1d?A=2", "learned", 4, wide);
    make_flat(&more, "linear1d?A=3", "learned", 4, lower);
    static const char *const TASK[] = {"cartpole", "double_integrator", "linear1d", "linear1d?A=2",
                                       "linear1d?A=3"};
    for (int i = 0; i < 5; i++)
        make_flat(&more, TASK[i], "replay", 4, all);
    static const struct wanted WANT[] = {
        {OPC_VERDICT_SUPPORTED, "within the margin of 15 %, of 2 panels", "\"double_integrator\""},
        {OPC_VERDICT_UNDECIDED, "across the margin of 15 %, of 2 panels", "\"linear1d, A 2\""},
        {OPC_VERDICT_NOT_SUPPORTED, "outside of the margin of 15 %, of 2 panels", "\"linear1d\""},
        {OPC_VERDICT_SUPPORTED, "within the margin of 15 % in", "\"cartpole\""},
    };
    check_claims(&more,
                 "claims:\n"
                 "- {text: a, alike: [learned, replay], margin: 0.15, panel: [cart*, double*]}\n"
                 "- {text: b, alike: [learned, replay], margin: 0.15, panel: [cart*, \"*=2\"]}\n"
                 "- {text: c, alike: [learned, replay], margin: 0.15, panel: [linear1d, \"*=3\"]}\n"
                 "- {text: d, alike: [learned, replay], margin: 0.15, panel: cart*}\n",
                 4, WANT);
    free_bench(&more);
}

/* Returns 0, 40, 60, 70 over four tasks, as over four numbers of imagined steps. */
static void a_gain_is_compared_with_another(void **state)
{
    struct bench *b = *state, more = {.dir = b->dir};
    const double v[][4] = {{0, 0, 0, 0}, {40, 40, 40, 40}, {60, 60, 60, 60}, {50, 70, 70, 90}};
    static const char *const TASK[] = {"linear1d?A=2", "linear1d?A=3", "linear1d?A=4",
                                       "linear1d?A=5"};
    for (int i = 0; i < 4; i++)
        make_flat(&more, TASK[i], "learned", 4, v[i]);
    static const struct wanted WANT[] = {
        {OPC_VERDICT_SUPPORTED, "is 40,", " 10; difference 30"},
        {OPC_VERDICT_NOT_SUPPORTED, "is 10,", " 40; difference -30"},
        {OPC_VERDICT_UNDECIDED, "is 10,", "both are equal"},
        {OPC_VERDICT_UNDECIDED, "No line", "nothing"},
        {OPC_VERDICT_UNDECIDED, "No line", "linear1d, A 5"},
    };
    check_claims(
        &more,
        "claims:\n"
        "- {text: a, gain: [['linear1d?A=2', 'linear1d?A=3'], ['linear1d?A=4', 'linear1d?A=5']]}\n"
        "- {text: b, gain: [['linear1d?A=4', 'linear1d?A=5'], ['linear1d?A=2', 'linear1d?A=3']]}\n"
        "- {text: c, gain: [['linear1d?A=4', 'linear1d?A=5'], ['linear1d?A=4', 'linear1d?A=5']]}\n"
        "- {text: d, gain: [['linear1d?A=4', 'linear1d?A=5'], ['linear1d?A=4', nothing]]}\n"
        "- {text: e, gain: [['linear1d?A=2', 'linear1d?A=3'], ['linear1d?A=4', 'linear1d?A=5']], "
        "line: rep*}\n",
        5, WANT);
    free_bench(&more);
}

/* Two settings of each method. MBPO(*) has 10 and 100, OPC 80 and 90 (one seed 300): the best of
 * MBPO(*) is above that of OPC in all seeds but one, and OPC depends less on the setting. */
static void the_best_settings_and_their_spread_are_compared(void **state)
{
    struct bench *b = *state, more = {.dir = b->dir};
    const double low[] = {10, 11, 12, 13, 14}, high[] = {100, 101, 102, 103, 104};
    const double steady[] = {80, 81, 82, 83, 84}, better[] = {90, 91, 92, 93, 94};
    make_flat(&more, "cartpole", "learned", 5, low);
    make_flat(&more, "linear1d", "learned", 5, high);
    make_flat(&more, "cartpole", "corrected", 5, steady);
    make_flat(&more, "linear1d", "corrected", 5, better);
    static const struct wanted WANT[] = {
        {OPC_VERDICT_SUPPORTED, "best of MBPO(*) > best of OPC) = 1.00", "over 5 and 5 runs"},
        {OPC_VERDICT_NOT_SUPPORTED, "IQM 92", "IQM 102"},
        {OPC_VERDICT_UNDECIDED, "There is no", "nothing*"},
        /* sqrt(90^2 / 2 - 0.8) - sqrt(10^2 / 2 - 0.8), where 0.8 is what the seeds explain */
        {OPC_VERDICT_SUPPORTED, "larger by 56.62 for MBPO(*) (2", "at least 5 runs"},
        {OPC_VERDICT_NOT_SUPPORTED, "larger by -56.62", "(2 settings)"},
        {OPC_VERDICT_UNDECIDED, "two settings; more seeds do not", "OPC and MBPO(*)"},
        {OPC_VERDICT_SUPPORTED, "P(OPC", "1 panel."},
        /* Of two panels on average nothing is known; of each it is. */
        {OPC_VERDICT_UNDECIDED, "= 0.50", "in 2 panels (cartpole 1.00, linear1d 0.00)"},
        {OPC_VERDICT_UNDECIDED, "= 0.50", "so far both are equal"},
    };
    check_claims(&more,
                 "claims:\n"
                 "- {text: a, best: [\"learned*\", \"corrected*\"]}\n"
                 "- {text: b, best: [\"corrected*\", \"learned*\"]}\n"
                 "- {text: c, best: [\"corrected*\", \"nothing*\"]}\n"
                 "- {text: d, spread: [\"corrected*\", \"learned*\"]}\n"
                 "- {text: e, spread: [\"learned*\", \"corrected*\"]}\n"
                 "- {text: f, spread: [\"corrected*\", \"learned*\"], panel: cartpole}\n"
                 "- {text: g, better: corrected, worse: learned, panel: cartpole}\n"
                 "- {text: h, better: corrected, worse: learned}\n"
                 "- {text: i, better: corrected, worse: learned}\n",
                 9, WANT);
    free_bench(&more);
}

/* Of OPC's two settings the first is better by all seeds but one, and 100 against 90. But it is two
 * seeds that make it so: where a sample has them seldom, the second is chosen, which has 0 with the
 * others. */
static void a_best_setting_that_hangs_on_few_seeds_decides_nothing(void **state)
{
    struct bench *b = *state, more = {.dir = b->dir};
    const double same[] = {100, 100, 100, 100, 100}, either[] = {0, 0, 0, 140, 140};
    const double below[] = {90, 90, 90, 90, 90};
    const double ahead[] = {10, 30, 50, 70, 90}, behind[] = {5, 20, 25, 40, 60};
    make_flat(&more, "cartpole", "corrected", 5, same);
    make_flat(&more, "linear1d", "corrected", 5, either);
    make_flat(&more, "cartpole", "learned", 5, below);
    make_flat(&more, "linear1d", "learned", 5, below);
    make_flat(&more, "double_integrator", "corrected", 5, ahead);
    make_flat(&more, "double_integrator", "learned", 5, behind);
    static const struct wanted WANT[] = {
        {OPC_VERDICT_UNDECIDED, "> best of MBPO(*)) = 1.00, 95 % interval [0.40, 1.00]", "5 and 5"},
        {OPC_VERDICT_SUPPORTED, "> best of MBPO(*)) = 1.00, 95 % interval [1.00, 1.00]", "5 and 5"},
    };
    check_claims(&more,
                 "claims:\n"
                 "- {text: a, best: [corrected, learned], panel: [cart*, linear1d]}\n"
                 "- {text: b, best: [corrected, learned], panel: cart*}\n",
                 2, WANT);
    free_bench(&more);
}

/* One setting each, so that nothing is chosen. The interval lies above 1/2, which it does too often
 * with five runs: of all orders of five and five, one in 21 has 21 of 25 pairs won. */
static void best_settings_are_ranked_as_well(void **state)
{
    struct bench *b = *state, more = {.dir = b->dir};
    const double ahead[] = {30, 52, 54, 56, 58}, behind[] = {10, 20, 40, 45, 53};
    make_flat(&more, "cartpole", "corrected", 5, ahead);
    make_flat(&more, "cartpole", "learned", 5, behind);
    static const struct wanted WANT[] = {
        {OPC_VERDICT_UNDECIDED, "= 0.84, 95 % interval [0.52, 1.00]", "4.8 % of cases"},
    };
    check_claims(&more, "claims: [{text: a, best: [corrected, learned]}]", 1, WANT);
    free_bench(&more);
}

/* Four settings of equal returns, but for what their seeds make of it. */
static void noise_of_seeds_is_no_dependence_on_settings(void **state)
{
    struct bench *b = *state, more = {.dir = b->dir};
    static const char *const TASK[] = {"cartpole", "double_integrator", "linear1d", "linear1d?A=2"};
    static const double AWAY[] = {-18, -6, 6, 18};
    for (int i = 0; i < 4; i++) {
        double noisy[5], calm[5];
        for (int k = 0; k < 5; k++) {
            noisy[k] = 60 + 20 * k + AWAY[i];
            calm[k] = 98 + k;
        }
        make_flat(&more, TASK[i], "corrected", 5, calm);
        make_flat(&more, TASK[i], "learned", 5, noisy);
    }
    static const struct wanted WANT[] = {
        {OPC_VERDICT_UNDECIDED, "Beyond what seeds explain", "(4 settings)"},
    };
    check_claims(&more, "claims: [{text: a, spread: [corrected, learned]}]", 1, WANT);
    free_bench(&more);
}

/* Of three panels, a list names two; the third would change every verdict. */
static void a_claim_may_have_a_list_of_panels(void **state)
{
    struct bench *b = *state, more = {.dir = b->dir};
    const double low[] = {10, 11, 12, 13, 14}, high[] = {100, 101, 102, 103, 104};
    const double top[] = {900, 901, 902, 903, 904};
    make_flat(&more, "cartpole", "learned", 5, low);
    make_flat(&more, "linear1d", "learned", 5, low);
    make_flat(&more, "double_integrator", "learned", 5, top);
    make_flat(&more, "cartpole", "corrected", 5, high);
    make_flat(&more, "linear1d", "corrected", 5, high);
    make_flat(&more, "double_integrator", "corrected", 5, low);
    static const struct wanted WANT[] = {
        {OPC_VERDICT_SUPPORTED, "= 1.00", "in 2 panels (cartpole 1.00, linear1d 1.00)."},
        {OPC_VERDICT_SUPPORTED, "= 0.67", "in 3 panels"}, /* a mean, of which one is 0 */
        {OPC_VERDICT_SUPPORTED, "best of OPC > best of MBPO(*)) = 1.00", "IQM 102"},
        {OPC_VERDICT_NOT_SUPPORTED, "= 0.00", "IQM 902"},
        {OPC_VERDICT_UNDECIDED, "larger by 0 for", "both are equal"},
        {OPC_VERDICT_SUPPORTED, "10 of 10", "100"},
        {OPC_VERDICT_UNDECIDED, "No panel like pole or cart has runs", "OPC"},
        {OPC_VERDICT_UNDECIDED, "No line of OPC or MBPO(*) has runs of both", "pole"},
    };
    check_claims(&more,
                 "claims:\n"
                 "- {text: a, better: corrected, worse: learned, panel: [cart*, linear1d]}\n"
                 "- {text: b, better: corrected, worse: learned}\n"
                 "- {text: c, best: [\"corr*\", \"lear*\"], panel: [cart*, linear1d]}\n"
                 "- {text: d, best: [\"corr*\", \"lear*\"], panel: [\"*\"]}\n"
                 "- {text: e, spread: [\"corr*\", \"lear*\"], panel: [cart*, linear1d]}\n"
                 "- {text: f, solves: corrected, level: 100, panel: [cart*, linear1d]}\n"
                 "- {text: g, alike: [corrected, learned], margin: 0.1, panel: [pole, cart]}\n"
                 "- {text: h, above: cartpole, below: pole, line: [\"corr*\", \"lear*\"]}\n",
                 8, WANT);
    free_bench(&more);
}

/* P = 0.80, interval from 0.40 to 1: nine seeds, or so, would be enough. */
static void undecided_claims_name_the_seeds_that_would_decide(void **state)
{
    struct bench *b = *state;
    static const struct wanted WANT[] = {
        {OPC_VERDICT_UNDECIDED, "= 0.80", "seeds instead of 5 would decide"},
        {OPC_VERDICT_UNDECIDED, "3 of 5", "no fewer than 7 seeds"}, /* 3 of 7 are below half */
        {OPC_VERDICT_UNDECIDED, "= 1.00", "about 4 seeds instead of 2"},
    };
    check_claims(b,
                 "claims:\n"
                 "- {text: a, better: corrected, worse: learned}\n"
                 "- {text: b, solves: corrected, level: 103, panel: pendulum}\n"
                 "- {text: c, better: corrected, worse: replay}\n",
                 3, WANT);
}

/* Three runs begin 0, 10 and 20 random steps later. Each holds its first and its last value until
 * all have begun and ended, so that no row is of fewer than three. */
static void over_all_steps_every_point_of_a_line_has_all_its_runs(void **state)
{
    struct bench *b = *state, more = {.dir = b->dir};
    struct opc_err err;
    for (int i = 0; i < 3; i++) {
        char name[32], seed[32], path[600];
        const double value[] = {100.0 * i, 100.0 * i, 100.0 * i};
        snprintf(name, sizeof name, "late-%d", i);
        snprintf(seed, sizeof seed, "train.seed=%d", i);
        test_make_run_after(b->dir, name, (const char *[]){seed, NULL}, 10 * i, 100, 3, value);
        snprintf(path, sizeof path, "%s/%s", b->dir, name);
        more.run[more.runs++] = opc_strdup(path);
    }
    assert_ok(make(&more, 3, "{curve: {over: total_steps, smooth: 1}}", &err), &err);
    struct opc_table *t = read_table(b, "fig.csv");
    for (int row = 0; row < opc_table_rows(t); row++)
        assert_true(number(t, row, "runs") == 3 && number(t, row, "median") == 100);
    /* From 100, where the first begins, to 320, where the last ends. */
    assert_true(number(t, 0, "total_steps") == 100);
    assert_true(number(t, opc_table_rows(t) - 1, "total_steps") == 320);
    opc_table_free(t);
    free_bench(&more);
}

/* A single point in common is no line: all of them stay, in their order. */
static void a_line_without_common_points_keeps_its_own(void **state)
{
    struct bench *b = *state, more = {.dir = b->dir};
    struct opc_err err;
    for (int i = 0; i < 2; i++) {
        char name[32], seed[32], path[600];
        const double value[] = {1, 2, 3};
        snprintf(name, sizeof name, "apart-%d", i);
        snprintf(seed, sizeof seed, "train.seed=%d", i);
        test_make_run_after(b->dir, name, (const char *[]){seed, NULL}, 200 * i, 100, 3, value);
        snprintf(path, sizeof path, "%s/%s", b->dir, name);
        more.run[more.runs++] = opc_strdup(path);
    }
    assert_ok(make(&more, 2, "{curve: {over: total_steps, smooth: 1}}", &err), &err);
    struct opc_table *t = read_table(b, "fig.csv");
    assert_int_equal(opc_table_rows(t), 5);
    for (int row = 0; row < 5; row++)
        assert_true(number(t, row, "total_steps") == 100 * (row + 1));
    opc_table_free(t);
    free_bench(&more);
}

/* Over minutes, too: the second of two runs takes half as long again, so that the line begins where
 * the first has its first evaluation and ends one epoch after its last. */
static void over_minutes_likewise(void **state)
{
    static const char *const TIMING[] = {"epoch,epoch_s\n1,60\n2,60\n3,60\n",
                                         "epoch,epoch_s\n1,90\n2,90\n3,90\n"};
    struct bench *b = *state, more = {.dir = b->dir};
    struct opc_err err;
    for (int i = 0; i < 2; i++) {
        char name[32], seed[32], path[600], timing[700];
        const double value[] = {100.0 * i, 100.0 * i, 100.0 * i};
        snprintf(name, sizeof name, "timed-%d", i);
        snprintf(seed, sizeof seed, "train.seed=%d", i);
        test_make_run(b->dir, name, (const char *[]){seed, NULL}, 3, value);
        snprintf(path, sizeof path, "%s/%s", b->dir, name);
        snprintf(timing, sizeof timing, "%s/timing.csv", path);
        assert_ok(opc_file_write(timing, TIMING[i], strlen(TIMING[i]), &err), &err);
        more.run[more.runs++] = opc_strdup(path);
    }
    assert_ok(make(&more, 2, "{curve: {over: minutes, smooth: 1}}", &err), &err);
    struct opc_table *t = read_table(b, "fig.csv");
    for (int row = 0; row < opc_table_rows(t); row++)
        assert_true(number(t, row, "runs") == 2 && number(t, row, "median") == 50);
    assert_true(number(t, 0, "minutes") == 1);
    assert_true(number(t, opc_table_rows(t) - 1, "minutes") == 3);
    opc_table_free(t);
    free_bench(&more);
}

/* Where panels are below each other, the lower one's axis names both. */
static void columns_are_as_many_as_the_file_says(void **state)
{
    static const char *const FIGURE[] = {"{columns: 1}", "{columns: 2}", NULL};
    static const int NAMED[] = {1, 2, 2};
    if (!opc_draw_version())
        skip();
    const struct bench *b = *state;
    for (int i = 0; i < 3; i++) {
        char path[600], *svg;
        struct opc_err err;
        int named = 0;
        assert_ok(make(b, b->runs, FIGURE[i], &err), &err);
        snprintf(path, sizeof path, "%s/fig.svg", b->dir);
        assert_ok(opc_file_read(path, 10000000, &svg, NULL, &err), &err);
        for (const char *at = svg; (at = strstr(at, "\nenvironment steps\n")); at++)
            named++;
        assert_int_equal(named, NAMED[i]);
        opc_free(svg);
    }
}

/* The figure has a method of the file, or several; each must be there. */
static void published_methods_are_one_or_a_list(void **state)
{
    static const char CURVES[] = "source,env,method,env_steps,mean,std,seeds\n"
                                 "them,Pole,A,0,1,1,5\nthem,Pole,A,900,1,1,5\n"
                                 "them,Pole,B,0,2,1,5\nthem,Pole,B,900,2,1,5\n";
    static const char *const METHOD[] = {"A", "[A]", "[A, B]"};
    const struct bench *b = *state;
    char path[600], figure[900];
    struct opc_err err;
    snprintf(path, sizeof path, "%s/curves.csv", b->dir);
    assert_ok(opc_file_write(path, CURVES, strlen(CURVES), &err), &err);
    static const char FIGURE[] = "{curve: {over: total_steps}, published: {file: %s, method: %s, "
                                 "tasks: {pendulum: Pole}}}";
    for (size_t i = 0; i < sizeof METHOD / sizeof *METHOD; i++) {
        snprintf(figure, sizeof figure, FIGURE, path, METHOD[i]);
        assert_ok(make(b, b->runs, figure, &err), &err);
    }
    snprintf(figure, sizeof figure, FIGURE, path, "[A, C]");
    assert_fails(make(b, b->runs, figure, &err), OPC_EUSER, &err, "'C'");
}

static void wrong_settings_are_refused(void **state)
{
    static const char *const CASE[][2] = {
        {"{pannel: env.name}", "'panel'"},
        {"{curve: {smooth: 4}}", "smooth = 4"},
        {"{notes: a}", "notes"},
        {"{columns: 0}", "columns = 0"},
        {"{columns: two}", "1 to 6"},
        {"{columns: [2]}", "1 to 6"},
        {"{published: {file: a, method: b, tasks: {c: d}}}", "total_steps"},
        {"{published: {file: a, method: b}}", "tasks"},
        {"{published: {fiel: a, method: b}}", "'file'"},
        {"{curve: {over: total_steps}, published: {file: a, tasks: {}}}", "'method'"},
        {"{curve: {over: total_steps}, published: {file: a, method: [], tasks: {}}}", "'method'"},
        {"{curve: {over: total_steps}, published: {file: a, method: [b, [c]], tasks: {}}}",
         "'method'"},
        {"{titles: [a]}", "titles"},
        {"{labels: corrected}", "{LINE: label}"},
        {"{labels: {corrected: a, learned: b, replay: a}}", "'a'"},
        {"{curve: 3}", "{smooth:"}, /* how it is written */
        {"{curve: {of: eval_retrun}}", "eval_return"},
        {"{curve: {over: holdout_32}}", "holdout_2"},
        {"{curve: {of: error_7}}", "error_7"},
        {"{curve: {over: error_10}}", "error_10"},
        {"{curve: {band: [75, 25]}}", "[75, 25]"},
        {"{panel: {a: b}}", "env.name"},
        {"{claims: {a: b}}", "claims"},
        {"{claims: [{text: x, better: y}]}", "'worse'"},
        {"{claims: [{text: x}]}", "solves, level"},
        {"{claims: [{text: x, better: y, worse: z, at: soon}]}", "at = soon"},
        {"{claims: [{text: x, better: y, worse: z, at: 0}]}", "at = 0"},
        {"{claims: [{better: y, worse: z}]}", "text"},
        {"{claims: [{text: x, margin: 0.1}]}", "'alike'"},
        {"{claims: [{text: x, alike: [a, b], margin: 1.5}]}", "margin = 1.5"},
        {"{claims: [{text: x, alike: [a, b], margin: wide}]}", "margin = wide"},
        {"{claims: [{text: x, alike: [a], margin: 0.1}]}", "[a, b]"},
        {"{claims: [{text: x, alike: [a, b, c], margin: 0.1}]}", "[a, b]"},
        {"{claims: [{text: x, alike: a, margin: 0.1}]}", "[a, b]"},
        {"{claims: [{text: x, gain: [a, b, c, d]}]}", "[[from, to], [from, to]]"},
        {"{claims: [{text: x, gain: [[a, b], [c]]}]}", "[[from, to], [from, to]]"},
        {"{claims: [{text: x, gain: [[a, b], [c, d], [e, f]]}]}", "[[from, to], [from, to]]"},
        {"{claims: [{text: x, gain: [[a, b], [c, d]], panel: p}]}", "'line'"},
        {"{claims: [{text: x, best: [a, b], line: p}]}", "'panel'"},
        {"{claims: [{text: x, best: [a, b], panel: []}]}", "panel of a claim"},
        {"{claims: [{text: x, best: [a, b], panel: {a: b}}]}", "panel of a claim"},
        {"{claims: [{text: x, above: a, below: b, line: [a, [b]]}]}", "line of a claim"},
        {"{claims: [{text: x, spraed: [a, b]}]}", "'spread'"},
        {"{claims: [{text: x, above: y, below: z, better: v, worse: w}]}", "solves, level"},
        {"{claims: [{text: x, solves: y, level: high}]}", "high"},
        {"{claims: [{text: x, solvs: y}]}", "'solves'"},
    };
    const struct bench *b = *state;
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        struct opc_err err;
        assert_fails(make(b, 1, CASE[i][0], &err), OPC_EUSER, &err, CASE[i][1]);
        assert_mentions(&err, "learning_curves");
    }
    struct opc_err err;
    assert_fails(make(b, 1, "{curve: {smoth: 3}}", &err), OPC_EUSER, &err, "'smooth'");
    assert_int_equal(make(b, 0, NULL, &err), OPC_EUSER);
}

/* Every twentieth allocation, as each time a run is read and files are written. */
static void lack_of_memory_is_survived(void **state)
{
    for (long k = 1;; k += 20) {
        struct opc_err err = {0};
        opc_fault_alloc(k);
        const int code = make(*state, 1,
                              "{claims: [{text: x, better: corrected, worse: corrected},"
                              " {text: y, better: corrected, worse: corrected, at: 200},"
                              " {text: z, best: [corrected, corrected]}]}",
                              &err);
        const bool all_tried = opc_fault_pending();
        opc_fault_alloc(0);
        assert_int_equal(code, all_tried ? OPC_OK : OPC_ENOMEM);
        if (all_tried)
            return;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ends_are_summarised_by_panel_and_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(scores_name_seeds_iqm_and_improvement, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lines_have_the_labels_of_the_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pairs_of_lines_are_compared, set_up, tear_down),
        cmocka_unit_test_setup_teardown(curves_are_tabulated_as_they_are_drawn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(claims_are_judged_by_what_runs_end_with, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_clear_difference_decides, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_claim_waits_for_its_own_runs_only, set_up, tear_down),
        cmocka_unit_test_setup_teardown(while_runs_are_missing_nothing_is_decided, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(missing_runs_are_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_claim_may_have_a_list_of_panels, set_up, tear_down),
        cmocka_unit_test_setup_teardown(panels_are_compared_line_by_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sentences_name_lines_and_panels_as_the_picture_does, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_claim_may_be_about_a_number_of_steps, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_error_is_that_of_the_equation_a_run_uses, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(three_runs_against_three_decide_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_solved_is_solved_in_every_panel, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lines_are_alike_within_a_margin, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_panel_that_decides_likeness_is_shown, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_gain_is_compared_with_another, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_best_setting_that_hangs_on_few_seeds_decides_nothing,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(best_settings_are_ranked_as_well, set_up, tear_down),
        cmocka_unit_test_setup_teardown(noise_of_seeds_is_no_dependence_on_settings, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_best_settings_and_their_spread_are_compared, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(undecided_claims_name_the_seeds_that_would_decide, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_line_without_common_points_keeps_its_own, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(over_minutes_likewise, set_up, tear_down),
        cmocka_unit_test_setup_teardown(over_all_steps_every_point_of_a_line_has_all_its_runs,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(columns_are_as_many_as_the_file_says, set_up, tear_down),
        cmocka_unit_test_setup_teardown(published_methods_are_one_or_a_list, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_settings_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lack_of_memory_is_survived, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
