/* SPDX-License-Identifier: MIT */
/* Learning control from settings: the examples, what they achieve, and wrong settings. */
#include "study/ilc/ilc_run.h"

#include "study/exhibit/analysis.h"
#include "study/ilc/ilc_exhibit.h"
#include "test.h"

/* What fontconfig keeps for the process is not ours to free. */
const char *__lsan_default_suppressions(void); /* NOLINT(bugprone-reserved-identifier) */
const char *__lsan_default_suppressions(void)  /* NOLINT(bugprone-reserved-identifier) */
{
    return "leak:libfontconfig";
}

static struct opc_ilc_config example(int form)
{
    struct opc_ilc_config c;
    struct opc_err err = {0};
    assert_ok(opc_ilc_example(form, &c, &err), &err);
    return c;
}

static struct opc_ilc_trials *run(const struct opc_ilc_config *c)
{
    struct opc_ilc_trials *t;
    struct opc_err err = {0};
    assert_ok(opc_ilc_run(c, NULL, NULL, &t, &err), &err);
    return t;
}

static void the_files_in_experiments_are_the_examples(void **state)
{
    (void)state;
    for (int form = 0; form < OPC_ILC_FORMS; form++) {
        struct opc_ilc_config want = example(form), got;
        struct opc_yaml *file;
        struct opc_err err = {0};
        char path[512];
        snprintf(path, sizeof path, "%s/../experiments/ilc/%s.yaml", OPC_TEST_DIR,
                 opc_ilc_form_name(form));
        assert_ok(opc_yaml_read(path, &file, &err), &err);
        assert_ok(opc_analysis_fill(&opc_ilc_section, opc_yaml_find(file, "ilc"), &got, &err),
                  &err);
        for (int i = 0; i < opc_ilc_section.n; i++) {
            struct opc_text a = {0}, b = {0};
            opc_field_print(&opc_ilc_section.fields[i], &want, &a);
            opc_field_print(&opc_ilc_section.fields[i], &got, &b);
            assert_string_equal(opc_text_get(&a), opc_text_get(&b));
            opc_text_free(&a);
            opc_text_free(&b);
        }
        opc_yaml_free(file);
    }
}

static void the_linear_example_gives_the_reference_numbers_and_opc_s_updates(void **state)
{
    (void)state;
    static const double RMS[] = {.875242, .241604, .096707, .039294, .016026,
                                 .009156, .008030, .007914, .007904};
    const struct opc_ilc_config c = example(OPC_ILC_LINEAR);
    struct opc_ilc_trials *t = run(&c);
    assert_int_equal(t->trials, 9);
    assert_doubles_near(t->rms, RMS, 9, 5e-7);
    assert_doubles_near(t->seen, t->rms, 9, 0.0); /* there is no noise */
    assert_true(t->by_opc < 1e-4 && t->by_opc > 0.0 && t->largest > 1.0);
    assert_false(t->limited);
    assert_null(t->plain);
    opc_ilc_trials_free(t);
}

/* Gravity and torque of the model are wrong by a fifth and more; the slope is what counts. */
static void around_each_trial_a_wrong_pendulum_still_learns_the_swing(void **state)
{
    (void)state;
    struct opc_ilc_config c = example(OPC_ILC_NONLINEAR);
    struct opc_ilc_trials *t = run(&c);
    assert_true(t->rms[0] > 1.0);
    assert_true(t->rms[8] < 1e-3 * t->rms[0]);
    for (int i = 0; i < t->T; i++) /* it has found the torque the reference was made with */
        assert_true(fabs(t->u[8 * t->T + i] - 1.5 * sin(2 * 3.14159265358979 * i * 0.05 / 1.7)) <
                    0.02);
    opc_ilc_trials_free(t);
    /* in a wider swing the slope where it hangs leads astray, the one around the last trial not */
    c.amplitude = 1.9;
    t = run(&c);
    c.form = OPC_ILC_LINEAR;
    struct opc_ilc_trials *once = run(&c);
    bool rose[2] = {false};
    for (int i = 0; i < 8; i++) {
        rose[0] = rose[0] || t->rms[i + 1] > t->rms[i];
        rose[1] = rose[1] || once->rms[i + 1] > once->rms[i];
    }
    assert_true(!rose[0] && rose[1]);
    assert_true(isnan(once->by_opc));
    opc_ilc_trials_free(once);
    opc_ilc_trials_free(t);
}

static void a_learned_model_s_slope_is_enough(void **state)
{
    (void)state;
    struct opc_ilc_config c = example(OPC_ILC_LEARNED);
    c.iterations = 5;
    c.members = 2;
    c.hidden = (struct opc_ints){2, {32, 32}};
    c.passes = 150;
    struct opc_ilc_trials *t = run(&c);
    assert_true(t->rms[5] < 0.1 * t->rms[0]);
    assert_true(t->holdout > 0.0 && t->holdout < 0.01);
    /* on any number of threads the same */
    struct opc_pool *pool;
    struct opc_ilc_trials *other;
    struct opc_err err = {0};
    assert_ok(opc_pool_create(2, &pool, &err), &err);
    assert_ok(opc_ilc_run(&c, pool, NULL, &other, &err), &err);
    assert_same_bits(other->rms, t->rms, 6 * sizeof *t->rms);
    opc_pool_destroy(pool);
    opc_ilc_trials_free(other);
    opc_ilc_trials_free(t);
}

static void bounds_are_kept_and_cost_something(void **state)
{
    (void)state;
    const struct opc_ilc_config c = example(OPC_ILC_CONSTRAINED);
    struct opc_ilc_trials *t = run(&c);
    assert_true(t->limited && t->active > 5 && t->kkt < 1e-10);
    assert_true(t->rms[8] < 0.1 * t->rms[0] && t->rms[8] > 0.02);
    for (int trial = 0; trial < t->trials; trial++)
        for (int i = 0; i < t->T; i++) {
            const double a = t->u[trial * t->T + i];
            assert_true(fabs(a) <= 6 + 1e-9);
            if (trial)
                assert_true(fabs(a - t->u[(trial - 1) * t->T + i]) <= 3 + 1e-9);
        }
    assert_true(t->beyond < 0.01); /* bounds are on predictions; the plant is near them by now */
    opc_ilc_trials_free(t);
}

static void faces_bound_sums_of_states(void **state)
{
    (void)state;
    struct opc_ilc_config c = example(OPC_ILC_CONSTRAINED);
    c.action_low.n = c.action_high.n = c.state_high.n = 0;
    c.trust = 0;
    c.faces = (struct opc_reals){6, {1, 0.5, 1.2, 0, -1, 1.25}}; /* x + v/2 <= 1.2, -v <= 1.25 */
    c.iterations = 12;
    struct opc_ilc_trials *t = run(&c);
    const double *s = t->s + 12 * (t->T + 1) * 2;
    bool touched[2] = {false};
    for (int i = 0; i <= t->T; i++) {
        const double by[] = {s[2 * i] + 0.5 * s[2 * i + 1] - 1.2, -s[2 * i + 1] - 1.25};
        for (int f = 0; f < 2; f++) {
            assert_true(by[f] < 0.01);
            touched[f] = touched[f] || by[f] > -0.01;
        }
    }
    assert_true(touched[0] && touched[1]);
    opc_ilc_trials_free(t);
}

static void the_filter_is_better_in_the_end_and_repeats_to_the_bit(void **state)
{
    (void)state;
    struct opc_ilc_config c = example(OPC_ILC_STOCHASTIC);
    c.repeats = 10;
    struct opc_ilc_trials *t = run(&c), *again = run(&c);
    int better = 0;
    for (int k = 0; k < 10; k++)
        better += t->rms[k * 21 + 20] < t->plain[k * 21 + 20];
    assert_true(better >= 8);
    assert_true(opc_ilc_error(t, 20, 0.5) < 0.75 * opc_ilc_error_plain(t, 20, 0.5));
    assert_true(opc_ilc_error_seen(t, 20, 0.5) > opc_ilc_error(t, 20, 0.5));
    assert_same_bits(again->rms, t->rms, 210 * sizeof *t->rms);
    assert_same_bits(again->plain, t->plain, 210 * sizeof *t->rms);
    /* without noise and with much drift the filter believes each trial, too */
    c.process_noise = c.sensor_noise = 0;
    c.drift = 10;
    c.repeats = 1;
    struct opc_ilc_trials *still = run(&c);
    assert_doubles_near(still->rms, still->plain, 21, 1e-9);
    opc_ilc_trials_free(still);
    /* and without drift, too: what is measured exactly is believed */
    c.drift = 0;
    still = run(&c);
    assert_doubles_near(still->rms, still->plain, 21, 1e-9);
    opc_ilc_trials_free(still);
    /* with noise and without drift it is the mean of all trials, which is slow but works */
    c = example(OPC_ILC_STOCHASTIC);
    c.drift = 0;
    c.repeats = 1;
    still = run(&c);
    assert_true(still->rms[20] < still->rms[0]);
    opc_ilc_trials_free(still);
    opc_ilc_trials_free(again);
    opc_ilc_trials_free(t);
}

static void refused(struct opc_ilc_config c, int code, const char *key)
{
    struct opc_ilc_trials *t = NULL;
    struct opc_err err = {0};
    assert_fails(opc_ilc_run(&c, NULL, NULL, &t, &err), code, &err, key);
    assert_null(t);
}

static void settings_that_cannot_be_meant_are_refused(void **state)
{
    (void)state;
    struct opc_ilc_config c = example(OPC_ILC_LINEAR);
    c.weight_state = (struct opc_reals){3, {1, 2, 3}};
    refused(c, OPC_EUSER, "weight_state");
    c = example(OPC_ILC_LINEAR);
    c.weight_action.n = 0;
    refused(c, OPC_EUSER, "empty");
    c = example(OPC_ILC_LINEAR);
    c.weight_state = c.weight_action = (struct opc_reals){1, {0}};
    refused(c, OPC_EUSER, "F^T M F");
    c = example(OPC_ILC_LINEAR);
    c.form = OPC_ILC_CONSTRAINED;
    refused(c, OPC_EUSER, "constrained");
    c.form = OPC_ILC_LEARNED;
    refused(c, OPC_EUSER, "pendulum");
    c = example(OPC_ILC_CONSTRAINED);
    c.action_low.at[0] = 7;
    refused(c, OPC_EUSER, "action_low = 7");
    c = example(OPC_ILC_CONSTRAINED);
    c.state_low = (struct opc_reals){2, {0.5, -9}};
    refused(c, OPC_EUSER, "[0.5, inf]");
    c = example(OPC_ILC_CONSTRAINED);
    c.faces = (struct opc_reals){4, {1, 0, 1, 1}};
    refused(c, OPC_EUSER, "g_1 .. g_2");
}

/* All five forms into one exhibit, as opc repro would have it. */
static void the_analysis_makes_a_complete_exhibit(void **state)
{
    const char *dir = *state;
    static const char text[] = "{analysis: ilc, iterations: 2, stochastic_iterations: 2, repeats: "
                               "2, random_trials: 1, passes: 2}";
    struct opc_yaml *ask;
    struct opc_exhibit *e;
    struct opc_exhibit_read *got;
    struct opc_err err = {0};
    assert_ok(opc_yaml_parse("ask", text, sizeof text - 1, &ask, &err), &err);
    const struct opc_request request = {.ask = ask, .seed = 3};
    const struct opc_exhibit_plan plan = {.dir = dir, .name = "ilc", .title = "t", .caption = "c"};
    const struct opc_analysis *analysis = opc_analysis_find("ilc", &err);
    assert_non_null(analysis);
    assert_ok(opc_exhibit_begin(&plan, &e, &err), &err);
    assert_ok(opc_analysis_run(analysis, &request, e, &err), &err);
    assert_ok(opc_exhibit_end(e, &err), &err);
    opc_yaml_free(ask);

    char path[600];
    snprintf(path, sizeof path, "%s/ilc.json", dir);
    assert_ok(opc_exhibit_load(path, &got, &err), &err);
    assert_int_equal(got->pictures, OPC_WITH_CAIRO ? 3 : 0);
    assert_int_equal(got->claims, 8);
    assert_int_equal(got->tables, 2);
    opc_exhibit_unload(got);
    struct opc_table *table;
    snprintf(path, sizeof path, "%s/ilc.csv", dir);
    assert_ok(opc_table_read(path, &table, &err), &err);
    assert_int_equal(opc_table_rows(table), 5 * 3);
    assert_string_equal(opc_table_cell(table, 1, opc_table_find(table, "form")), "linear");
    assert_true(fabs(atof(opc_table_cell(table, 1, opc_table_find(table, "rms"))) - .241604) <
                1e-6);
    opc_table_free(table);
}

static int everything(void *ctx, struct opc_err *err)
{
    struct opc_ilc_trials *t = NULL;
    const int code = opc_ilc_run(ctx, NULL, NULL, &t, err);
    opc_ilc_trials_free(t);
    return code;
}

static void lack_of_memory_is_reported(void **state)
{
    (void)state;
    for (int form = 0; form < OPC_ILC_FORMS; form++) {
        struct opc_ilc_config c = example(form);
        c.steps = 3;
        c.iterations = 2;
        c.repeats = 1;
        c.members = 1;
        c.hidden = (struct opc_ints){1, {4}};
        c.random_trials = 2;
        c.passes = 1;
        c.faces = (struct opc_reals){3, {1, 1, 100}};
        assert_survives_lack_of_memory(everything, &c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_files_in_experiments_are_the_examples),
        cmocka_unit_test(the_linear_example_gives_the_reference_numbers_and_opc_s_updates),
        cmocka_unit_test(around_each_trial_a_wrong_pendulum_still_learns_the_swing),
        cmocka_unit_test(a_learned_model_s_slope_is_enough),
        cmocka_unit_test(bounds_are_kept_and_cost_something),
        cmocka_unit_test(faces_bound_sums_of_states),
        cmocka_unit_test(the_filter_is_better_in_the_end_and_repeats_to_the_bit),
        cmocka_unit_test(settings_that_cannot_be_meant_are_refused),
        cmocka_unit_test_setup_teardown(the_analysis_makes_a_complete_exhibit, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test(lack_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
