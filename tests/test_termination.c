/* SPDX-License-Identifier: MIT */
/* Where a task ends, learned from a recording: against the rule of a task that has one, against
 * ends that follow from nothing, and without any. */
#include "model/termination.h"

#include "opc/env.h"
#include "test_net.h"

enum { STATES = 2000, OBS = 4 };

struct recording {
    float table[STATES][OBS];
    const float *state[STATES];
    bool end[STATES];
    int ends;
};

static struct opc_termination *open_termination(void)
{
    struct opc_termination *t;
    struct opc_err err = {0};
    assert_ok(opc_termination_create(OBS, 3, 20, &t, &err), &err);
    return t;
}

static struct opc_termination_report fit(struct opc_termination *t, const struct recording *rec,
                                         uint32_t index)
{
    struct opc_termination_report report;
    struct opc_err err = {0};
    assert_ok(opc_termination_fit(t, STATES, rec->state, rec->end, 3, 1, index, &report, &err),
              &err);
    return report;
}

/* States that random actions lead to on the cart-pole, which ends where the pole leans by 0.2 or
 * the cart is 2.4 off. */
static struct recording *record(uint32_t which)
{
    struct recording *rec = calloc(1, sizeof *rec);
    struct opc_env *env;
    struct opc_err err = {0};
    struct opc_rng r = opc_rng_stream(5, OPC_USE_TEST, which, 0);
    double obs[OBS], action;
    assert_non_null(rec);
    assert_ok(opc_env_open("cartpole", &env, &err), &err);
    struct opc_outcome out = {.obs = obs, .terminated = true};
    for (int i = 0; i < STATES; i++) {
        if (out.terminated || out.truncated)
            assert_ok(opc_env_reset(env, &r, obs, &err), &err);
        const float a = any_float(&r);
        opc_env_scale(env, &a, &action);
        assert_ok(opc_env_step(env, &action, &out, &err), &err);
        for (int k = 0; k < OBS; k++)
            rec->table[i][k] = (float)obs[k];
        rec->state[i] = rec->table[i];
        rec->end[i] = out.terminated;
        rec->ends += out.terminated;
    }
    opc_env_close(env);
    return rec;
}

/* On states that it was not trained on, and on states that are further beyond the boundary than
 * recorded ones. */
static void it_learns_the_rule_of_a_task(void **state)
{
    (void)state;
    struct opc_termination *t = open_termination();
    struct recording *rec = record(1), *fresh = record(2);
    const struct opc_termination_report report = fit(t, rec, 0);
    assert_int_equal(report.ends, rec->ends);
    assert_true(rec->ends > 50 && rec->ends < STATES / 5);
    assert_true(report.missed + report.false_alarms < rec->ends / 5);
    bool got[STATES];
    int wrong = 0;
    opc_termination_predict(t, STATES, fresh->table[0], got);
    for (int i = 0; i < STATES; i++)
        wrong += got[i] != fresh->end[i];
    assert_true(wrong < fresh->ends / 4);
    /* a few steps further on, had the episode not been over */
    for (int i = 0; i < STATES; i++)
        for (int k = 0; k < OBS && fresh->end[i]; k++)
            fresh->table[i][k] *= 1.3f;
    opc_termination_predict(t, STATES, fresh->table[0], got);
    int missed = 0;
    for (int i = 0; i < STATES; i++)
        missed += fresh->end[i] && !got[i];
    assert_true(missed < fresh->ends / 20);
    const float upright[OBS] = {0.1f, 0, 0.01f, 0};
    opc_termination_predict(t, 1, upright, got);
    assert_false(got[0]);
    free(rec);
    free(fresh);
    opc_termination_destroy(t);
}

/* One in fifty states ends the task, whatever it is. */
static void ends_that_follow_from_nothing_are_not_predicted(void **state)
{
    (void)state;
    struct opc_termination *t = open_termination();
    struct recording *rec = record(1), *fresh = record(2);
    struct opc_rng r = test_stream(7);
    for (int i = 0; i < STATES; i++)
        rec->end[i] = any_below(&r, 50) == 0;
    fit(t, rec, 0);
    bool got[STATES];
    int predicted = 0;
    opc_termination_predict(t, STATES, fresh->table[0], got);
    for (int i = 0; i < STATES; i++)
        predicted += got[i];
    assert_true(predicted < STATES / 100);
    free(rec);
    free(fresh);
    opc_termination_destroy(t);
}

static void without_ends_nothing_ends(void **state)
{
    (void)state;
    struct opc_termination *t = open_termination();
    struct recording *rec = record(1);
    bool got[STATES];
    memset(rec->end, 0, sizeof rec->end);
    const struct opc_termination_report report = fit(t, rec, 0);
    assert_int_equal(report.ends + report.missed + report.false_alarms, 0);
    opc_termination_predict(t, STATES, rec->table[0], got);
    for (int i = 0; i < STATES; i++)
        assert_false(got[i]);
    assert_int_equal(t->adam->steps, 0);
    /* and where each of them is one, nothing is learned, either */
    memset(rec->end, 1, sizeof rec->end);
    assert_int_equal(fit(t, rec, 0).missed, STATES);
    assert_int_equal(t->adam->steps, 0);
    free(rec);
    opc_termination_destroy(t);
}

/* A second fit goes on from saved weights to the same bits, and a state's answer does not depend on
 * where it is asked about. */
static void it_can_be_saved_and_rows_do_not_know_each_other(void **state)
{
    (void)state;
    struct opc_termination *t = open_termination(), *other = open_termination();
    struct recording *rec = record(1);
    struct parts parts = {0}, again = {0};
    struct opc_err err = {0};
    fit(t, rec, 0);
    assert_ok(opc_termination_state(t, note_part, &parts, &err), &err);
    unsigned char *saved = parts_copy(&parts);
    const unsigned char *from = saved;
    assert_ok(opc_termination_state(other, load_part, &from, &err), &err);
    fit(t, rec, 1);
    fit(other, rec, 1);
    assert_ok(opc_termination_state(other, note_part, &again, &err), &err);
    unsigned char *want = parts_copy(&parts);
    assert_parts_are(&again, want);
    bool all[STATES], one;
    opc_termination_predict(t, STATES, rec->table[0], all);
    for (int i = 0; i < STATES; i += 37) {
        opc_termination_predict(other, 1, rec->table[i], &one);
        assert_true(one == all[i]);
    }
    free(saved);
    free(want);
    free(rec);
    opc_termination_destroy(t);
    opc_termination_destroy(other);
}

static int create_any(void *ctx, struct opc_err *err)
{
    (void)ctx;
    struct opc_termination *t;
    const int code = opc_termination_create(OBS, 1, 20, &t, err);
    if (!code)
        opc_termination_destroy(t);
    return code;
}

static void lack_of_memory_is_an_error(void **state)
{
    (void)state;
    assert_survives_lack_of_memory(create_any, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        once(it_learns_the_rule_of_a_task), once(ends_that_follow_from_nothing_are_not_predicted),
        once(without_ends_nothing_ends),    once(it_can_be_saved_and_rows_do_not_know_each_other),
        once(lack_of_memory_is_an_error),
    };
    return run_num_tests(tests);
}
