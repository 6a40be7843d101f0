/* SPDX-License-Identifier: MIT */
#include "data/episodes_private.h"

#include "test.h"

enum { OBS = 2, ACT = 1, STRIDE = 5 };

static struct opc_episodes *new_past(int steps, int episodes)
{
    struct opc_episodes *e = NULL;
    struct opc_err err;
    assert_ok(opc_episodes_create(OBS, ACT, steps, episodes, &e, &err), &err);
    return e;
}

/* Episode b: states b + 0.1, b + 1.1, ...; action t, reward 10 b + t; the last step may end it. */
static void play(struct opc_episodes *e, int b, int steps, bool terminal)
{
    struct opc_err err;
    double s[OBS] = {b + 0.1, -b};
    assert_ok(opc_episodes_begin(e, s, &err), &err);
    for (int t = 0; t < steps; t++) {
        const float a = (float)t;
        s[0] += 1;
        assert_ok(opc_episodes_append(e, &a, 10 * b + t, s, terminal && t + 1 == steps, &err),
                  &err);
    }
    opc_episodes_close(e);
}

static void steps_are_found_again_in_the_order_they_were_played(void **state)
{
    (void)state;
    static const int LENGTH[] = {3, 1, 7, 2};
    struct opc_episodes *e = new_past(20, 6);
    for (int b = 0; b < 4; b++)
        play(e, b, LENGTH[b], b % 2 == 0);
    assert_int_equal(opc_episodes_count(e), 4);
    assert_int_equal(opc_episodes_steps(e), 13);
    assert_int_equal(opc_episodes_obs(e), OBS);
    assert_int_equal(opc_episodes_act(e), ACT);
    int step = 0;
    for (int b = 0; b < 4; b++) {
        assert_int_equal(opc_episodes_length(e, b), LENGTH[b]);
        assert_int_equal(opc_episodes_first(e, b), step);
        for (int t = 0; t < LENGTH[b]; t++, step++) {
            const struct opc_step s = opc_episodes_at(e, b, t);
            assert_true(fabs((double)s.state[0] - (b + t + 0.1)) < 1e-6);
            assert_true(fabs((double)s.next[0] - (b + t + 1.1)) < 1e-6);
            assert_true(s.state[1] == (float)-b && s.action[0] == (float)t);
            assert_true(s.reward == (float)(10 * b + t));
            assert_int_equal(s.terminal, b % 2 == 0 && t == LENGTH[b] - 1);
            if (t > 0) /* each state is stored once */
                assert_ptr_equal(s.state, opc_episodes_at(e, b, t - 1).next);
            int found_b, found_t;
            opc_episodes_find(e, step, &found_b, &found_t);
            assert_int_equal(found_b, b);
            assert_int_equal(found_t, t);
            const struct opc_records r = opc_episodes_records(e);
            assert_ptr_equal(r.at + opc_episodes_record(step, b) * r.stride, s.state);
        }
    }
    opc_episodes_destroy(e);
}

static void an_episode_is_seen_when_it_is_closed_and_an_empty_one_never(void **state)
{
    (void)state;
    struct opc_episodes *e = new_past(4, 2);
    struct opc_err err;
    const double s[OBS] = {1, 2};
    const float a = 0.5f;
    assert_ok(opc_episodes_begin(e, s, &err), &err);
    assert_true(opc_episodes_open(e));
    opc_episodes_close(e);
    assert_false(opc_episodes_open(e));
    assert_int_equal(opc_episodes_count(e), 0);
    assert_ok(opc_episodes_begin(e, s, &err), &err);
    assert_ok(opc_episodes_append(e, &a, 1, s, false, &err), &err);
    assert_int_equal(opc_episodes_steps(e), 0);
    opc_episodes_close(e);
    assert_int_equal(opc_episodes_steps(e), 1);
    assert_int_equal(opc_episodes_count(e), 1);
    opc_episodes_destroy(e);
}

static void what_cannot_be_recorded_is_refused(void **state)
{
    (void)state;
    struct opc_episodes *e = new_past(2, 2);
    struct opc_err err;
    double s[OBS] = {1, 2};
    const float a = 0.5f;
    assert_fails(opc_episodes_append(e, &a, 1, s, false, &err), OPC_EBUG, &err, "step 0");
    s[1] = 1e39;
    assert_fails(opc_episodes_begin(e, s, &err), OPC_EENV, &err, "1e+39");
    assert_mentions(&err, "entry 1");
    s[1] = 0;
    assert_ok(opc_episodes_begin(e, s, &err), &err);
    assert_fails(opc_episodes_begin(e, s, &err), OPC_EBUG, &err, "episode 0");
    assert_fails(opc_episodes_append(e, &a, -1e300, s, false, &err), OPC_EENV, &err, "-1e+300");
    assert_int_equal(opc_episodes_append(e, &a, 1, (double[]){0, NAN}, false, &err), OPC_EENV);
    assert_ok(opc_episodes_append(e, &a, 1, s, false, &err), &err);
    opc_episodes_close(e);
    assert_ok(opc_episodes_begin(e, s, &err), &err);
    assert_ok(opc_episodes_append(e, &a, 1, s, false, &err), &err);
    assert_fails(opc_episodes_append(e, &a, 1, s, false, &err), OPC_EBUG, &err, "step 2");
    opc_episodes_close(e);
    assert_fails(opc_episodes_begin(e, s, &err), OPC_EBUG, &err, "episode 2");
    assert_int_equal(opc_episodes_steps(e), 2);
    opc_episodes_destroy(e);
    assert_int_equal(opc_episodes_create(0, 1, 1, 1, &e, &err), OPC_EBUG);
}

/* Otherwise eq. 5, which gives back s_ref' + 0, would change its sign. */
static void a_negative_zero_is_recorded_as_zero(void **state)
{
    (void)state;
    struct opc_episodes *e = new_past(1, 1);
    struct opc_err err;
    const double s[OBS] = {-0.0, -1e-60};
    const float a = -0.0f, zero = 0;
    assert_ok(opc_episodes_begin(e, s, &err), &err);
    assert_ok(opc_episodes_append(e, &a, -0.0, s, false, &err), &err);
    opc_episodes_close(e);
    const struct opc_step step = opc_episodes_at(e, 0, 0);
    for (int k = 0; k < OBS; k++) {
        assert_same_bits(&step.state[k], &zero, sizeof zero);
        assert_same_bits(&step.next[k], &zero, sizeof zero);
    }
    assert_same_bits(&step.reward, &zero, sizeof zero);
    assert_same_bits(step.action, &a, sizeof a); /* not a result of eq. 5: as it was */
    opc_episodes_destroy(e);
}

static void flattened_it_is_what_a_model_learns(void **state)
{
    (void)state;
    struct opc_episodes *e = new_past(20, 6);
    play(e, 0, 3, true);
    play(e, 1, 2, false);
    float sa[5][OBS + ACT], y[5][OBS + 1];
    opc_episodes_flatten(e, sa[0], y[0]);
    for (int i = 0; i < 5; i++) {
        int b, t;
        opc_episodes_find(e, i, &b, &t);
        const struct opc_step s = opc_episodes_at(e, b, t);
        const float want[] = {s.next[0] - s.state[0], s.next[1] - s.state[1], s.reward};
        assert_same_bits(sa[i], s.state, sizeof sa[i]); /* the action is behind the state */
        assert_true(sa[i][OBS] == s.action[0]);
        assert_same_bits(y[i], want, sizeof want);
    }
    opc_episodes_destroy(e);
}

static void restored_from_its_records_it_is_the_same_and_goes_on(void **state)
{
    (void)state;
    struct opc_episodes *e = new_past(20, 6), *copy = new_past(20, 6);
    struct opc_err err;
    size_t saved = 0;
    for (int b = 0; b < 4; b++) {
        play(e, b, 2 + b, b == 1);
        const struct opc_records r = opc_episodes_records(e);
        assert_int_equal(r.stride, STRIDE);
        assert_int_equal(r.n, opc_episodes_steps(e) + opc_episodes_count(e));
        /* only what is new, as a checkpoint does */
        assert_ok(opc_episodes_restore(copy, r.at + saved * r.stride, r.n - saved, &err), &err);
        saved = r.n;
        const struct opc_records c = opc_episodes_records(copy);
        assert_int_equal(c.n, r.n);
        assert_same_bits(c.at, r.at, r.n * r.stride * sizeof *r.at);
        assert_int_equal(opc_episodes_count(copy), opc_episodes_count(e));
        assert_int_equal(opc_episodes_first(copy, b), opc_episodes_first(e, b));
    }
    assert_ok(opc_episodes_restore(copy, NULL, 0, &err), &err);
    play(copy, 4, 3, false);
    assert_ok(opc_episodes_begin(copy, (double[]){0, 0}, &err), &err);
    assert_fails(opc_episodes_restore(copy, NULL, 0, &err), OPC_EBUG, &err, "open");
    assert_true(opc_episodes_at(copy, 4, 2).reward == 42);
    opc_episodes_destroy(e);
    opc_episodes_destroy(copy);
}

static void records_that_are_no_episodes_are_refused_and_change_nothing(void **state)
{
    (void)state;
    struct opc_episodes *e = new_past(20, 6), *copy = new_past(5, 2);
    struct opc_err err;
    for (int b = 0; b < 3; b++)
        play(e, b, 2, false);
    const struct opc_records r = opc_episodes_records(e);
    float records[9 * STRIDE];
    memcpy(records, r.at, sizeof records);
    assert_fails(opc_episodes_restore(copy, records, 8, &err), OPC_EDAMAGED, &err, "8 records");
    assert_fails(opc_episodes_restore(copy, records, 9, &err), OPC_EDAMAGED, &err, "2 episodes");
    records[4 * STRIDE + STRIDE - 1] = 0.5f;
    assert_fails(opc_episodes_restore(copy, records, 9, &err), OPC_EDAMAGED, &err, "record 4");
    records[4 * STRIDE + STRIDE - 1] = NAN;
    assert_int_equal(opc_episodes_restore(copy, records, 9, &err), OPC_EDAMAGED);
    records[0 * STRIDE + STRIDE - 1] = OPC_RECORD_END;
    assert_fails(opc_episodes_restore(copy, records, 9, &err), OPC_EDAMAGED, &err, "record 0");
    assert_int_equal(opc_episodes_steps(copy), 0);
    assert_int_equal(opc_episodes_count(copy), 0);
    assert_int_equal(opc_episodes_records(copy).n, 0);
    opc_episodes_prefetch(e, 2, 1); /* only asks; the last step there is room for is fine, too */
    opc_episodes_destroy(e);
    opc_episodes_destroy(copy);
}

static int create(void *ctx, struct opc_err *err)
{
    (void)ctx;
    struct opc_episodes *e;
    const int code = opc_episodes_create(17, 6, 1000, 10, &e, err);
    if (!code)
        opc_episodes_destroy(e);
    return code;
}

static void lack_of_memory_is_reported(void **state)
{
    (void)state;
    assert_survives_lack_of_memory(create, NULL);
    opc_episodes_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_found_again_in_the_order_they_were_played),
        cmocka_unit_test(an_episode_is_seen_when_it_is_closed_and_an_empty_one_never),
        cmocka_unit_test(what_cannot_be_recorded_is_refused),
        cmocka_unit_test(a_negative_zero_is_recorded_as_zero),
        cmocka_unit_test(flattened_it_is_what_a_model_learns),
        cmocka_unit_test(restored_from_its_records_it_is_the_same_and_goes_on),
        cmocka_unit_test(records_that_are_no_episodes_are_refused_and_change_nothing),
        cmocka_unit_test(lack_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
