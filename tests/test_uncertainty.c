/* SPDX-License-Identifier: MIT */
/* A tiny run of OPC and one of MBPO(*): how much the elites of the first disagree by eq. 2 and eq.
 * 5, and Figures 13 and 14 with each method's own model. */
#include "study/probe/probe_uncertainty.h"

#include "base/file.h"
#include "drawn.h"
#include "opc/mem.h"
#include "opc/train.h"
#include "plot/draw.h"
#include "study/probe/probe_states.h"
#include "test.h"

enum { SEED = 11, EACH = 8, H = 5, BETAS = 3 };

static const char *const TINY[] = {
    "train.epochs=2",         "train.steps_per_epoch=60",
    "train.random_steps=100", "train.updates_per_step=1",
    "opc.transitions=300",    "opc.horizon=3",
    "model.members=3",        "model.elites=2",
    "model.hidden=[16]",      "model.weight_decay=1e-5",
    "model.max_epochs=3",     "sac.policy_hidden=[16]",
    "sac.critic_hidden=[16]", "sac.batch_size=32",
    "eval.episodes=1",        "data.retain=1",
    "record.snapshots=1",
};

enum { OPC, MBPO, OTHER_SEED, ONE_ELITE, REPLAY, RUNS };
struct runs {
    void *dir;
    char path[RUNS][OPC_PATH];
};

static void train_in(const char *dir, const char *setting)
{
    struct opc_config *config = NULL;
    struct opc_err err;
    assert_ok(opc_config_create(&config, &err), &err);
    for (size_t i = 0; i < sizeof TINY / sizeof *TINY; i++)
        assert_ok(opc_config_set(config, TINY[i], &err), &err);
    assert_ok(opc_config_set(config, setting, &err), &err);
    const struct opc_train_plan plan = {OPC_SIZED(struct opc_train_plan), .dir = dir, .threads = 1};
    assert_ok(opc_train(config, &plan, &err), &err);
    opc_config_destroy(config);
}

static int train_all(void **state)
{
    static const char *const SETTING[RUNS] = {"opc.transition=corrected", "opc.transition=learned",
                                              "train.seed=2", "model.elites=1",
                                              "opc.transition=replay"};
    struct runs *r = calloc(1, sizeof *r);
    assert_non_null(r);
    if (test_make_dir(&r->dir)) {
        free(r);
        return -1;
    }
    for (int i = 0; i < RUNS; i++) {
        snprintf(r->path[i], sizeof r->path[i], "%s/run%d", (const char *)r->dir, i);
        train_in(r->path[i], SETTING[i]);
    }
    *state = r;
    return 0;
}

static int remove_all(void **state)
{
    struct runs *r = *state;
    test_remove_dir(&r->dir);
    free(r);
    return 0;
}

/* beta = 0, 0.5, 2. */
static struct opc_probe_uncertainty_config few(void)
{
    return (struct opc_probe_uncertainty_config){
        .samples = EACH, .horizon = H, .references = 3, .beta = {.n = BETAS, .at = {0, 0.5, 2}}};
}

/* ---- disagreement of the elites -------------------------------------------------------------- */

static void on_policy_the_elites_agree_to_the_bit_by_eq_5_only(void **state)
{
    struct runs *r = *state;
    char *both[] = {r->path[OPC], r->path[OTHER_SEED]};
    const struct opc_request request = {.runs = 2, .run = both, .seed = SEED};
    const struct opc_probe_uncertainty_config set = few();
    struct opc_spread s;
    struct opc_err err;
    assert_ok(opc_spread_measure(&request, &set, &s, &err), &err);
    assert_int_equal(s.rows, 2 * EACH);
    assert_int_equal(s.elites, 2);
    int kept = 0, wrong = 0;
    for (int row = 0; row < s.rows; row++)
        for (int h = 0; h <= H; h++) {
            const size_t on = opc_spread_offset(&s, 0, OPC_SPREAD_CORRECTED, row, h),
                         by_2 = opc_spread_offset(&s, 0, OPC_SPREAD_LEARNED, row, h),
                         off = opc_spread_offset(&s, 2, OPC_SPREAD_CORRECTED, row, h);
            /* NaN after the end, otherwise exactly 0: spread and error alike. */
            assert_true(isnan(s.spread[on]) || (s.spread[on] == 0 && s.error[on] == 0));
            if (h == 0)
                assert_true(s.spread[by_2] == 0 && s.error[by_2] == 0 && s.spread[off] == 0);
            else if (!isnan(s.spread[by_2]))
                assert_true(s.spread[by_2] > 0 && s.error[by_2] > 0);
            kept += h > 0 && s.spread[off] > 0;
            wrong += h > 0 && s.error[off] > 0;
        }
    assert_true(kept > 20 && wrong > 20);
    opc_spread_free(&s);
}

/* The first rollout at beta = 2 once more, step by step and without sums. */
static void spread_is_the_deviation_over_elites_in_units_of_the_recording(void **state)
{
    struct runs *r = *state;
    char *one[] = {r->path[OPC]};
    const struct opc_request request = {.runs = 1, .run = one, .seed = SEED};
    const struct opc_probe_uncertainty_config set = few();
    struct opc_spread s;
    struct opc_probe p;
    struct opc_trained t;
    struct opc_episodes *past;
    struct opc_models models;
    struct opc_branches b[2];
    struct opc_err err;
    assert_ok(opc_spread_measure(&request, &set, &s, &err), &err);
    assert_ok(opc_probe_open(r->path[OPC], NULL, SEED, &p, &err), &err);
    assert_ok(opc_probe_load(&p, 0, &t, &err), &err);
    assert_ok(opc_probe_play(&p, (struct opc_actor){t.agent, 0}, 0, 3, &past, &err), &err);
    assert_ok(opc_models_make_as(&p, t.model, past, true, &models, &err), &err);
    for (int elite = 0; elite < 2; elite++) {
        assert_ok(opc_branches_make(EACH, H, 4, 1, &b[elite], &err), &err);
        opc_probe_from_anywhere(&b[elite], past, SEED, 0);
        assert_ok(opc_probe_follow_elite(&p, models.corrected, (struct opc_actor){t.agent, 2}, 0,
                                         elite, &b[elite], &err),
                  &err);
    }
    double variance = 0;
    for (int k = 0; k < 4; k++) {
        double sum = 0, square = 0;
        const int n = opc_episodes_steps(past);
        for (int e = 0; e < 3; e++)
            for (int i = 0; i < opc_episodes_length(past, e); i++) {
                const double x = (double)opc_episodes_at(past, e, i).state[k];
                sum += x / n;
                square += x * x / n;
            }
        /* Two elites are half their distance from their mean. */
        const double half =
            0.5 * (opc_branches_at(&b[0], 0, 2, k) - opc_branches_at(&b[1], 0, 2, k));
        variance += half * half / (square - sum * sum) / 4;
    }
    const double got = s.spread[opc_spread_offset(&s, 2, OPC_SPREAD_CORRECTED, 0, 2)];
    assert_true(got > 0 && fabs(got - sqrt(variance)) < 1e-6 * got);
    opc_branches_free(&b[0]);
    opc_branches_free(&b[1]);
    opc_models_free(&models);
    opc_episodes_destroy(past);
    opc_trained_free(&t);
    opc_probe_close(&p);
    opc_spread_free(&s);
}

/* Makes an exhibit in a directory of that name; returns its path there. */
static int analyse(const struct runs *r, const char *analysis, const char *settings, int n,
                   const int run[], int threads, char dir[OPC_PATH], struct opc_err *err)
{
    struct opc_yaml *map;
    struct opc_pool *pool;
    struct opc_exhibit *e;
    char *path[RUNS];
    for (int i = 0; i < n; i++)
        path[i] = (char *)(uintptr_t)r->path[run[i]];
    snprintf(dir, OPC_PATH, "%s/%s-%d-%d", (const char *)r->dir, analysis, n, threads);
    const struct opc_exhibit_plan plan = {.dir = dir, .name = "fig", .title = "a figure"};
    assert_ok(opc_yaml_parse("probe", settings, strlen(settings), &map, err), err);
    assert_ok(opc_pool_create(threads, &pool, err), err);
    assert_ok(opc_exhibit_begin(&plan, &e, err), err);
    const struct opc_request request = {
        .ask = map, .runs = n, .run = path, .pool = pool, .seed = SEED};
    int code = opc_analysis_run(opc_analysis_find(analysis, err), &request, e, err);
    if (code)
        opc_exhibit_drop(e);
    else
        code = opc_exhibit_end(e, err);
    opc_yaml_free(map);
    opc_pool_destroy(pool);
    return code;
}

static void load_exhibit(const char *dir, struct opc_exhibit_read **out)
{
    char path[OPC_PATH];
    struct opc_err err;
    assert_ok(opc_path_join(path, dir, "fig.json", &err), &err);
    assert_ok(opc_exhibit_load(path, out, &err), &err);
}

static void read_file(const char *dir, const char *name, char **text)
{
    char path[OPC_PATH];
    struct opc_err err;
    assert_ok(opc_path_join(path, dir, name, &err), &err);
    assert_ok(opc_file_read(path, 10000000, text, NULL, &err), &err);
}

/* Undecided claims say what would decide them: seeds, or something else; the others do not. */
static void check_seeds(const struct opc_exhibit_read *e)
{
    for (int i = 0; i < e->claims; i++) {
        const bool open = e->claim[i].verdict == OPC_VERDICT_UNDECIDED;
        if ((strstr(e->claim[i].measured, "seeds") != NULL) != open)
            fail_msg("%s: %s", e->claim[i].claim, e->claim[i].measured);
    }
}

static void the_number_of_threads_changes_no_byte(void **state)
{
    static const char *const FILES[] = {"fig.json", "fig.csv", "fig-beta.csv", "fig-claims.csv"};
    const char *const set = "{samples: 8, horizon: 5, references: 3, beta: [0, 1, 3]}";
    char dir[2][OPC_PATH], *text[2];
    struct opc_err err;
    for (int i = 0; i < 2; i++)
        assert_ok(analyse(*state, "probe_uncertainty", set, 1, (const int[]){OPC}, i ? 3 : 1,
                          dir[i], &err),
                  &err);
    for (size_t f = 0; f < sizeof FILES / sizeof *FILES; f++) {
        for (int i = 0; i < 2; i++)
            read_file(dir[i], FILES[f], &text[i]);
        assert_string_equal(text[0], text[1]);
        opc_free(text[0]);
        opc_free(text[1]);
    }
    struct opc_exhibit_read *e;
    load_exhibit(dir[0], &e);
    assert_int_equal(e->claims, 3);
    assert_int_equal(e->claim[0].verdict, OPC_VERDICT_SUPPORTED);
    assert_contains(e->claim[0].measured, "beta = 0: 0 by");
    check_seeds(e);
    opc_exhibit_unload(e);
}

/* The texts of the panel of this title, up to the next title, without the label of y, which the
 * left one alone has. */
static void panel_texts(const char *svg, const char *title, const char *next, char out[500])
{
    static const char LABEL[] = "\nstandard deviations";
    const char *from = strstr(svg, title), *to = strstr(svg, next);
    assert_true(from && to && from < to && to - from < 400);
    from += strlen(title);
    snprintf(out, 500, "%.*s", (int)(to - from), from);
    char *label = strstr(out, LABEL);
    if (label)
        memmove(label, label + strlen(LABEL), strlen(label + strlen(LABEL)) + 1);
}

static void both_spreads_have_one_scale(void **state)
{
    char dir[OPC_PATH], *svg, learned[500], corrected[500];
    struct opc_err err;
    if (!opc_draw_version())
        skip();
    assert_ok(analyse(*state, "probe_uncertainty",
                      "{samples: 8, horizon: 5, references: 3, beta: [0, 1, 3]}", 1,
                      (const int[]){OPC}, 1, dir, &err),
              &err);
    read_file(dir, "fig.svg", &svg);
    panel_texts(svg, "spread, MBPO(*), eq. 2", "spread, OPC, eq. 5", learned);
    panel_texts(svg, "spread, OPC, eq. 5", "spread after", corrected);
    assert_string_equal(learned, corrected);
    assert_true(strlen(learned) > 10);
    opc_free(svg);
}

/* Without beta = 0 nothing on-policy is measured, and without others nothing off-policy. */
static void what_is_not_measured_is_not_claimed(void **state)
{
    char dir[OPC_PATH];
    struct opc_exhibit_read *e;
    struct opc_err err;
    assert_ok(analyse(*state, "probe_uncertainty", "{samples: 4, horizon: 2, beta: [1, 2]}", 1,
                      (const int[]){OPC}, 1, dir, &err),
              &err);
    load_exhibit(dir, &e);
    assert_int_equal(e->claim[0].verdict, OPC_VERDICT_UNDECIDED);
    check_seeds(e);
    opc_exhibit_unload(e);
    assert_ok(analyse(*state, "probe_uncertainty", "{samples: 4, horizon: 2, beta: [0]}", 1,
                      (const int[]){OPC}, 1, dir, &err),
              &err);
    load_exhibit(dir, &e);
    assert_int_equal(e->claims, 1);
    opc_exhibit_unload(e);
}

static void what_a_run_lacks_is_said(void **state)
{
    char dir[OPC_PATH];
    struct opc_err err;
    assert_fails(analyse(*state, "probe_uncertainty", "{}", 1, (const int[]){REPLAY}, 1, dir, &err),
                 OPC_EUSER, &err, "opc.transition");
    assert_fails(
        analyse(*state, "probe_uncertainty", "{}", 1, (const int[]){ONE_ELITE}, 1, dir, &err),
        OPC_EUSER, &err, "model.elites");
    assert_fails(analyse(*state, "probe_uncertainty", "{samples: 2, horizon: 1}", 2,
                         (const int[]){OPC, ONE_ELITE}, 1, dir, &err),
                 OPC_EUSER, &err, "elites");
    assert_fails(analyse(*state, "probe_uncertainty", "{}", 0, NULL, 1, dir, &err), OPC_EUSER, &err,
                 "no run");
}

static int measure_one(void *ctx, struct opc_err *err)
{
    char *one[] = {ctx};
    const struct opc_request request = {.runs = 1, .run = one, .seed = SEED};
    const struct opc_probe_uncertainty_config set = {
        .samples = 2, .horizon = 1, .references = 1, .beta = {.n = 1, .at = {1}}};
    struct opc_spread s;
    const int code = opc_spread_measure(&request, &set, &s, err);
    if (!code)
        opc_spread_free(&s);
    return code;
}

static void measuring_survives_lack_of_memory(void **state)
{
    struct runs *r = *state;
    assert_survives_lack_of_memory(measure_one, r->path[OPC]);
}

/* ---- each method's own model ----------------------------------------------------------------- */

static void runs_of_both_methods_are_paired_by_task_and_seed(void **state)
{
    struct runs *r = *state;
    char *all[] = {r->path[OPC], r->path[OTHER_SEED], r->path[MBPO]};
    struct opc_request request = {.runs = 3, .run = all};
    struct opc_states_runs runs;
    struct opc_err err;
    assert_ok(opc_states_runs_find(&request, &runs, &err), &err);
    assert_int_equal(runs.n, 2);
    assert_int_equal(runs.pairs, 1); /* the other seed has no partner */
    assert_string_equal(runs.opc[0], r->path[OPC]);
    assert_string_equal(runs.mbpo[0], r->path[MBPO]);
    opc_states_runs_free(&runs);
    /* Runs of one method are all probed, whichever it is. */
    for (int i = 0; i < 2; i++) {
        request = (struct opc_request){.runs = 1, .run = i ? all + 2 : all};
        assert_ok(opc_states_runs_find(&request, &runs, &err), &err);
        assert_int_equal(runs.n, 1);
        assert_int_equal(runs.pairs, 0);
        opc_states_runs_free(&runs);
    }
    request = (struct opc_request){0};
    assert_fails(opc_states_runs_find(&request, &runs, &err), OPC_EUSER, &err, "no run");
}

/* eq. 5 has the same model either way; eq. 2 has that of the other run, from the same starts. */
static void eq_2_has_the_model_that_mbpo_logged(void **state)
{
    struct runs *r = *state;
    struct opc_probe_states_config set = {
        .samples = 10, .horizon = 4, .references = 3, .entry = "auto", .panels = 8};
    char *both[] = {r->path[OPC], r->path[MBPO]};
    const struct opc_request request = {.runs = 2, .run = both, .seed = SEED};
    struct opc_states_runs runs;
    struct opc_states s[2];
    struct opc_err err;
    assert_ok(opc_states_runs_find(&request, &runs, &err), &err);
    for (int own = 0; own < 2; own++)
        assert_ok(opc_states_collect(&request, &runs, own, &set, &s[own], &err), &err);
    assert_int_equal(s[0].rows, 10);
    assert_int_equal(s[1].rows, 10);
    const size_t all = 10 * 5 * 4;
    assert_same_bits(s[0].predicted[OPC_BY_CORRECTED], s[1].predicted[OPC_BY_CORRECTED],
                     all * sizeof(double));
    int differ = 0;
    for (size_t i = 0; i < all; i++) {
        const double a = s[0].predicted[OPC_BY_LEARNED][i], b = s[1].predicted[OPC_BY_LEARNED][i];
        if (i % (5 * 4) < 4) /* h = 0 */
            assert_true(a == b);
        else
            differ += a != b;
    }
    assert_true(differ > 50);
    for (int own = 0; own < 2; own++)
        opc_states_free(&s[own]);
    opc_states_runs_free(&runs);
}

static void both_figures_have_a_part_with_own_models(void **state)
{
    static const struct {
        const char *analysis;
        int alone, together, tables;
    } WANT[] = {{"probe_states", 4, 6, 2}, {"probe_trajectories", 2, 4, 2}};
    const char *const set = "{samples: 6, horizon: 3, references: 3}";
    char dir[OPC_PATH];
    struct opc_exhibit_read *e;
    struct opc_err err;
    for (int i = 0; i < 2; i++) {
        assert_ok(analyse(*state, WANT[i].analysis, set, 1, (const int[]){OPC}, 1, dir, &err),
                  &err);
        load_exhibit(dir, &e);
        assert_int_equal(e->claims, WANT[i].alone);
        assert_int_equal(e->tables, 1);
        opc_exhibit_unload(e);
        assert_ok(analyse(*state, WANT[i].analysis, set, 2, (const int[]){OPC, MBPO}, 1, dir, &err),
                  &err);
        load_exhibit(dir, &e);
        assert_int_equal(e->claims, WANT[i].together);
        check_seeds(e);
        assert_int_equal(e->tables, WANT[i].tables);
        assert_string_equal(e->table[1].file, "fig-own.csv");
        opc_exhibit_unload(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_policy_the_elites_agree_to_the_bit_by_eq_5_only),
        cmocka_unit_test(spread_is_the_deviation_over_elites_in_units_of_the_recording),
        cmocka_unit_test(the_number_of_threads_changes_no_byte),
        cmocka_unit_test(both_spreads_have_one_scale),
        cmocka_unit_test(what_is_not_measured_is_not_claimed),
        cmocka_unit_test(what_a_run_lacks_is_said),
        cmocka_unit_test(measuring_survives_lack_of_memory),
        cmocka_unit_test(runs_of_both_methods_are_paired_by_task_and_seed),
        cmocka_unit_test(eq_2_has_the_model_that_mbpo_logged),
        cmocka_unit_test(both_figures_have_a_part_with_own_models),
    };
    return cmocka_run_group_tests(tests, train_all, remove_all);
}
