/* SPDX-License-Identifier: MIT */
/* The error that metrics.csv reports, and the real environment it is measured against. */
#include "run/onpolicy.h"

#include "opc/transition.h"
#include "run/play.h"
#include "test.h"

/* A model that is wrong everywhere, f(s, a) = 3 s - 2 a + 1, and a policy that always does the
 * same. The recording says s' = s + a. */
static void predict(const struct opc_predictor *p, int n, const float *s, const float *a,
                    const int *elite, struct opc_rng *rng, float *y, struct opc_pool *pool)
{
    (void)p, (void)elite, (void)rng, (void)pool;
    for (int i = 0; i < n; i++) {
        y[2 * i] = 3 * s[i] - 2 * a[i] + 1;
        y[2 * i + 1] = 0;
    }
}

static void act(const struct opc_agent *agent, int n, const float *s, bool explore,
                struct opc_rng *rng, float *a)
{
    (void)agent, (void)s, (void)explore, (void)rng;
    for (int i = 0; i < n; i++)
        a[i] = 0.25f;
}

static const struct opc_predictor_type wrong_type = {.name = "wrong", .predict = predict};
static const struct opc_agent_type steady_type = {.name = "steady", .act = act};

static struct opc_episodes *record(int episodes, int length)
{
    struct opc_episodes *past;
    struct opc_err err;
    const float a = 0.25f;
    assert_ok(opc_episodes_create(1, 1, episodes * length, episodes, &past, &err), &err);
    for (int b = 0; b < episodes; b++) {
        double s = b, next;
        assert_ok(opc_episodes_begin(past, &s, &err), &err);
        for (int t = 0; t < length; t++, s = next) {
            next = s + 0.25;
            assert_ok(opc_episodes_append(past, &a, 0, &next, false, &err), &err);
        }
        opc_episodes_close(past);
    }
    return past;
}

static void on_policy_the_corrected_model_has_no_error_however_wrong_it_is(void **state)
{
    (void)state;
    const struct opc_predictor model = {
        .type = &wrong_type, .obs = 1, .act = 1, .members = 3, .elites = 2};
    const struct opc_agent agent = {.type = &steady_type, .obs = 1, .act = 1};
    struct opc_episodes *past = record(3, 20);
    const struct opc_onpolicy_plan plan = {
        .past = past, .newest = 1, .model = &model, .agent = &agent, .sample = true, .seed = 1};
    double learned[OPC_ERRORS], corrected[OPC_ERRORS];
    struct opc_err err;
    assert_ok(opc_onpolicy_errors(&plan, learned, corrected, &err), &err);
    for (int k = 0; k < OPC_ERRORS; k++) {
        assert_true(corrected[k] == 0);
        assert_true(learned[k] > (k ? learned[k - 1] : 0)); /* and it grows with the horizon */
    }
    opc_episodes_destroy(past);
}

static void episodes_that_are_too_short_leave_a_gap(void **state)
{
    (void)state;
    const struct opc_predictor model = {
        .type = &wrong_type, .obs = 1, .act = 1, .members = 1, .elites = 1};
    const struct opc_agent agent = {.type = &steady_type, .obs = 1, .act = 1};
    struct opc_episodes *past = record(2, 3);
    /* newest behind the last episode: the last one is taken */
    const struct opc_onpolicy_plan plan = {
        .past = past, .newest = 2, .model = &model, .agent = &agent, .seed = 1};
    double learned[OPC_ERRORS], corrected[OPC_ERRORS];
    struct opc_err err;
    assert_ok(opc_onpolicy_errors(&plan, learned, corrected, &err), &err);
    assert_true(learned[0] > 0 && corrected[0] == 0);
    assert_true(isnan(learned[1]) && isnan(corrected[2]));
    opc_episodes_destroy(past);
}

static void an_interrupted_episode_is_brought_back_by_its_actions(void **state)
{
    (void)state;
    enum { STEPS = 7 };
    struct opc_play *p, *q;
    struct opc_err err;
    assert_ok(opc_play_create("cartpole", 5, 100, &p, &err), &err);
    assert_ok(opc_play_create("cartpole", 5, 100, &q, &err), &err);
    assert_ok(opc_episodes_create(4, 1, 1000, 100, &p->past, &err), &err);
    assert_ok(opc_episodes_create(4, 1, 1000, 100, &q->past, &err), &err);
    p->number = 3;
    assert_ok(opc_play_start(p, &err), &err);
    for (int t = 0; t < STEPS; t++) {
        const float a = t % 2 ? 0.3f : -0.2f;
        assert_ok(opc_play_step(p, &a, &err), &err);
    }
    assert_ok(opc_play_again(q, 3, STEPS, p->actions, p->state, &err), &err);
    assert_int_equal(q->number, p->number);
    assert_int_equal(q->t, STEPS);
    assert_true(q->total == p->total);
    opc_play_cut(p);
    opc_play_cut(q);
    for (int t = 0; t < STEPS; t++)
        assert_same_bits(opc_episodes_at(p->past, 0, t).next, opc_episodes_at(q->past, 0, t).next,
                         4 * sizeof(float));

    /* Something that is not the same is not taken for it. */
    assert_int_equal(opc_play_again(q, 4, STEPS, p->actions, p->state, &err), OPC_EENV);
    assert_non_null(strstr(err.text, "does not repeat episode 5"));
    opc_episodes_destroy(p->past);
    opc_episodes_destroy(q->past);
    opc_play_destroy(p);
    opc_play_destroy(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_policy_the_corrected_model_has_no_error_however_wrong_it_is),
        cmocka_unit_test(episodes_that_are_too_short_leave_a_gap),
        cmocka_unit_test(an_interrupted_episode_is_brought_back_by_its_actions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
