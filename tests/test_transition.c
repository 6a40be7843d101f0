/* SPDX-License-Identifier: MIT */

#include "model/linear.h"
#include "toy.h"
#include "transitions.h"

enum { EPISODES = 20, STEPS = 50, ROWS = 1200, ELITES = 5 };
static const int THREADS[] = {1, 2, 3, 8};

/* Rows that walk side by side, with the memory they need. */
struct rows {
    int episode[ROWS], time[ROWS], elite[ROWS];
    float state[ROWS][OBS], action[ROWS][ACT], next[ROWS][OBS], reward[ROWS];
    float work[ROWS][COLUMNS];
    struct opc_rng rng[ROWS];
};

static struct opc_walk walk_of(struct rows *r, int n)
{
    return (struct opc_walk){n,          r->episode, r->time, r->elite,  r->state[0], r->action[0],
                             r->next[0], r->reward,  r->rng,  r->work[0]};
}

/* Many rows at the start of each episode, with one elite or another. */
static void start(const struct opc_episodes *past, struct rows *r)
{
    for (int i = 0; i < ROWS; i++) {
        r->episode[i] = i % EPISODES;
        r->time[i] = 0;
        r->elite[i] = i % ELITES;
        r->rng[i] = opc_rng_stream(1, OPC_USE_ROLLOUT, 0, (uint32_t)i);
        memcpy(r->state[i], opc_episodes_at(past, r->episode[i], 0).state, sizeof r->state[i]);
    }
}

static struct opc_episodes *recorded(bool wander, double noise)
{
    struct opc_episodes *past;
    struct opc_err err;
    assert_ok(opc_episodes_create(OBS, ACT, EPISODES * STEPS, EPISODES, &past, &err), &err);
    for (int b = 0; b < EPISODES; b++)
        toy_play(past, STEPS, false, wander, noise, (uint32_t)b);
    return past;
}

static struct opc_transition *made(const char *name, const struct opc_episodes *past,
                                   const struct toy_model *model, struct opc_pool *pool)
{
    struct opc_transition *tr;
    struct opc_err err;
    assert_ok(make_transition(name, past, &model->base, EPISODES * STEPS + 7, &tr, &err), &err);
    assert_ok(opc_transition_refresh(tr, pool, &err), &err);
    return tr;
}

/* 4.3, first test. A deterministic policy walks beside what it did before: whatever the model, the
 * walk is the recording, to the bit, and so are its rewards. */
static void on_policy_the_corrected_model_is_the_recording_to_the_bit(void **state)
{
    (void)state;
    struct opc_episodes *past = recorded(false, 0.3);
    for (int threads = 0; threads < 4; threads++)
        for (enum toy_kind kind = TOY_LINEAR; kind <= TOY_SHIFTED; kind++) {
            struct opc_pool *pool;
            struct opc_err err;
            assert_ok(opc_pool_create(THREADS[threads], &pool, &err), &err);
            const struct toy_model model = toy_model(kind, ELITES);
            struct opc_transition *tr = made("corrected", past, &model, pool);
            static struct rows r;
            start(past, &r);
            for (int t = 0; t < STEPS; t++) {
                struct opc_walk walk = walk_of(&r, ROWS);
                for (int i = 0; i < ROWS; i++)
                    toy_policy(r.state[i], r.action[i]);
                opc_transition_step(tr, &walk, pool);
                for (int i = 0; i < ROWS; i++) {
                    const struct opc_step ref = opc_episodes_at(past, r.episode[i], t);
                    assert_same_bits(r.action[i], ref.action, sizeof r.action[i]);
                    assert_same_bits(r.next[i], ref.next, sizeof r.next[i]);
                    assert_same_bits(&r.reward[i], &ref.reward, sizeof ref.reward);
                    r.time[i]++;
                    r.elite[i] = (r.elite[i] + 2) % ELITES;
                }
                memcpy(r.state, r.next, sizeof r.state);
            }
            opc_transition_destroy(tr);
            opc_pool_destroy(pool);
        }
    opc_episodes_destroy(past);
}

/* 4.3, second and third test. If the model is right, or right up to a constant, eq. 5 gives for
 * any actions the truth under the recorded noise. */
static void a_right_model_gives_the_truth_under_the_recorded_noise(void **state)
{
    (void)state;
    for (enum toy_kind kind = TOY_TRUTH; kind <= TOY_SHIFTED; kind++) {
        struct opc_episodes *past = recorded(true, 0.1);
        const struct toy_model model = toy_model(kind, ELITES);
        struct opc_transition *tr = made("corrected", past, &model, NULL);
        static struct rows r;
        static double truth[ROWS][COLUMNS];
        start(past, &r);
        for (int i = 0; i < ROWS; i++)
            for (int k = 0; k < OBS; k++)
                truth[i][k] = (double)r.state[i][k];
        for (int t = 0; t < STEPS; t++) {
            struct opc_walk walk = walk_of(&r, ROWS);
            for (int i = 0; i < ROWS; i++)
                for (int k = 0; k < ACT; k++)
                    r.action[i][k] = 2 * opc_rng_unit(&r.rng[i]) - 1;
            opc_transition_step(tr, &walk, NULL);
            for (int i = 0; i < ROWS; i++) {
                const struct opc_step ref = opc_episodes_at(past, r.episode[i], t);
                double f[COLUMNS], f_ref[COLUMNS];
                float s[OBS];
                for (int k = 0; k < OBS; k++)
                    s[k] = (float)truth[i][k];
                toy_truth(s, r.action[i], f);
                toy_truth(ref.state, ref.action, f_ref);
                for (int k = 0; k < OBS; k++) /* f + noise, where noise = s_ref' - f_ref */
                    truth[i][k] = f[k] + ((double)ref.next[k] - f_ref[k]);
                for (int k = 0; k < OBS; k++)
                    if (!(fabs(truth[i][k] - (double)r.next[i][k]) <= 5e-6))
                        fail_msg("off by %g at t = %d", truth[i][k] - (double)r.next[i][k], t);
                assert_true(fabs(f[OBS] - (double)r.reward[i]) < 2e-5); /* rewards have no noise */
                r.time[i]++;
            }
            memcpy(r.state, r.next, sizeof r.state);
        }
        opc_transition_destroy(tr);
        opc_episodes_destroy(past);
    }
}

/* The table of f(s_ref, a_ref) against evaluating both means on the fly. */
static void the_table_gives_the_bits_of_the_form_without_it(void **state)
{
    (void)state;
    struct opc_episodes *past = recorded(true, 0.2);
    for (enum toy_kind kind = TOY_LINEAR; kind <= TOY_SHIFTED; kind++) {
        const struct toy_model model = toy_model(kind, ELITES);
        struct opc_transition *tr = made("corrected", past, &model, NULL);
        assert_int_equal(tr->filled, EPISODES * STEPS);
        static struct rows r;
        start(past, &r);
        for (int t = 0; t < STEPS; t++) {
            struct opc_walk walk = walk_of(&r, ROWS);
            for (int i = 0; i < ROWS; i++)
                toy_policy(r.state[i], r.action[i]);
            opc_transition_step(tr, &walk, NULL);
            for (int i = 0; i < ROWS; i++) {
                const struct opc_step ref = opc_episodes_at(past, r.episode[i], t);
                float f[COLUMNS], f_ref[COLUMNS], next[OBS];
                opc_predictor_mean(&model.base, 1, r.state[i], r.action[i], &r.elite[i], f, NULL);
                opc_predictor_mean(&model.base, 1, ref.state, ref.action, &r.elite[i], f_ref, NULL);
                for (int k = 0; k < OBS; k++)
                    next[k] = ref.next[k] + (f[k] - f_ref[k]);
                const float reward = ref.reward + (f[OBS] - f_ref[OBS]);
                assert_same_bits(r.next[i], next, sizeof next);
                assert_same_bits(&r.reward[i], &reward, sizeof reward);
                r.time[i]++;
            }
        }
        opc_transition_destroy(tr);
    }
    opc_episodes_destroy(past);
}

/* Section 3.4: each elite is corrected by its own error, so on-policy they agree exactly and the
 * spread tells how far a walk has left the recording. */
static void elites_agree_on_policy_and_differ_off_policy(void **state)
{
    (void)state;
    struct opc_episodes *past = recorded(false, 0.2);
    const struct toy_model model = toy_model(TOY_LINEAR, ELITES);
    struct opc_transition *tr = made("corrected", past, &model, NULL);
    for (int off = 0; off < 2; off++) {
        static struct rows r;
        start(past, &r);
        for (int i = 0; i < ROWS; i++) { /* all beside step 3 of episode 4 */
            const struct opc_step ref = opc_episodes_at(past, 4, 3);
            r.episode[i] = 4;
            r.time[i] = 3;
            memcpy(r.state[i], ref.state, sizeof r.state[i]);
            memcpy(r.action[i], ref.action, sizeof r.action[i]);
            r.action[i][1] += 0.25f * (float)off;
        }
        struct opc_walk walk = walk_of(&r, ROWS);
        opc_transition_step(tr, &walk, NULL);
        for (int i = 1; i < ELITES; i++) {
            double spread = fabs((double)(r.reward[i] - r.reward[0]));
            for (int k = 0; k < OBS; k++)
                spread += fabs((double)(r.next[i][k] - r.next[0][k]));
            if (off)
                assert_true(spread > 1e-3);
            else
                assert_true(spread == 0);
        }
    }
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

/* Lemma 1. The return of a deterministic policy, estimated from B recorded trajectories, is that
 * of the recording whatever the model, and its variance falls like 1/B. */
static void the_estimate_is_that_of_replay_and_its_variance_falls_with_the_recordings(void **state)
{
    (void)state;
    enum { T = 20 };
    struct opc_episodes *past;
    struct opc_err err;
    assert_ok(opc_episodes_create(OBS, ACT, ROWS * T, ROWS, &past, &err), &err);
    for (int b = 0; b < ROWS; b++)
        toy_play(past, T, false, false, 0.4, (uint32_t)b);
    const struct toy_model model = toy_model(TOY_NONSENSE, ELITES);
    struct opc_transition *tr;
    assert_ok(make_transition("corrected", past, &model.base, ROWS * T, &tr, &err), &err);
    assert_ok(opc_transition_refresh(tr, NULL, &err), &err);

    static struct rows r;
    static double eta[ROWS], replayed[ROWS]; /* return along each trajectory */
    start(past, &r);
    for (int b = 0; b < ROWS; b++) {
        eta[b] = replayed[b] = 0;
        r.episode[b] = b;
        memcpy(r.state[b], opc_episodes_at(past, b, 0).state, sizeof r.state[b]);
    }
    for (int t = 0; t < T; t++) {
        struct opc_walk walk = walk_of(&r, ROWS);
        for (int b = 0; b < ROWS; b++)
            toy_policy(r.state[b], r.action[b]);
        opc_transition_step(tr, &walk, NULL);
        memcpy(r.state, r.next, sizeof r.state);
        for (int b = 0; b < ROWS; b++) {
            eta[b] += (double)r.reward[b];
            replayed[b] += (double)opc_episodes_at(past, b, t).reward;
            r.time[b]++;
        }
    }
    assert_same_bits(eta, replayed, sizeof eta);

    double alone = 0;
    for (int B = 1; B <= 16; B *= 4) {
        double sum = 0, squares = 0;
        for (int i = 0; i < ROWS / B; i++) {
            double mean = 0;
            for (int b = 0; b < B; b++)
                mean += eta[i * B + b] / B;
            sum += mean;
            squares += mean * mean;
        }
        const int n = ROWS / B;
        const double variance = (squares - sum * sum / n) / (n - 1);
        if (B == 1)
            alone = variance;
        /* of a variance from n samples the deviation is sqrt(2 / (n - 1)); three of them */
        assert_true(fabs(variance * B / alone - 1) < 3 * sqrt(2.0 / (n - 1)));
    }
    assert_true(alone > 0.01);
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

static void the_reward_can_be_left_uncorrected(void **state)
{
    (void)state;
    struct opc_episodes *past = recorded(true, 0.2);
    const struct toy_model model = toy_model(TOY_SHIFTED, ELITES);
    struct opc_transition *tr = made("corrected", past, &model, NULL);
    static struct rows r;
    start(past, &r);
    struct opc_walk walk = walk_of(&r, ROWS);
    for (int i = 0; i < ROWS; i++)
        toy_policy(r.state[i], r.action[i]);
    opc_transition_step(tr, &walk, NULL);
    static struct rows with;
    with = r;
    tr->correct_reward = false;
    opc_transition_step(tr, &walk, NULL);
    for (int i = 0; i < ROWS; i++) {
        double y[COLUMNS];
        toy_truth(r.state[i], r.action[i], y);
        assert_same_bits(r.next[i], with.next[i], sizeof r.next[i]);
        assert_true(fabs((double)with.reward[i] - y[OBS]) < 1e-5);  /* the constant cancels, or */
        assert_true(fabs((double)r.reward[i] - y[OBS] - 1) < 1e-5); /* it does not */
    }
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

static void learned_is_the_models_draw_or_its_mean(void **state)
{
    (void)state;
    struct opc_episodes *past = recorded(true, 0.2);
    const struct toy_model model = toy_model(TOY_LINEAR, ELITES);
    struct opc_transition *tr = made("learned", past, &model, NULL);
    assert_false(tr->type->needs_reference);
    assert_null(tr->f_ref);
    for (int sample = 0; sample < 2; sample++) {
        static struct rows r;
        start(past, &r);
        struct opc_walk walk = walk_of(&r, ROWS);
        for (int i = 0; i < ROWS; i++)
            toy_policy(r.state[i], r.action[i]);
        tr->sample = sample;
        opc_transition_step(tr, &walk, NULL);
        for (int i = 0; i < ROWS; i++) {
            float y[COLUMNS];
            struct opc_rng rng = opc_rng_stream(1, OPC_USE_ROLLOUT, 0, (uint32_t)i);
            toy_f(TOY_LINEAR, r.state[i], r.action[i], r.elite[i], y);
            for (int k = 0; sample && k < COLUMNS; k++)
                y[k] += opc_rng_unit(&rng) - 0.5f;
            assert_same_bits(r.next[i], y, sizeof r.next[i]);
            assert_same_bits(&r.reward[i], &y[OBS], sizeof *y);
        }
    }
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

static void replay_is_the_recording_and_its_actions(void **state)
{
    (void)state;
    struct opc_episodes *past = recorded(true, 0.2);
    struct opc_transition *tr;
    struct opc_err err;
    assert_ok(make_transition("replay", past, NULL, 0, &tr, &err), &err);
    assert_ok(opc_transition_refresh(tr, NULL, &err), &err);
    assert_true(tr->type->needs_reference);
    static struct rows r;
    start(past, &r);
    memset(r.action, 0, sizeof r.action);
    for (int i = 0; i < ROWS; i++)
        r.time[i] = i % STEPS;
    struct opc_walk walk = walk_of(&r, ROWS);
    opc_transition_step(tr, &walk, NULL);
    for (int i = 0; i < ROWS; i++) {
        const struct opc_step ref = opc_episodes_at(past, r.episode[i], r.time[i]);
        assert_same_bits(r.action[i], ref.action, sizeof r.action[i]);
        assert_same_bits(r.next[i], ref.next, sizeof r.next[i]);
        assert_true(r.reward[i] == ref.reward);
    }
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

/* More recorded steps than are predicted in one go, and in episodes of odd lengths. */
static void the_table_grows_with_the_past(void **state)
{
    (void)state;
    enum { LONG = 9001, MANY = 3 * LONG };
    struct opc_episodes *past;
    struct opc_err err;
    assert_ok(opc_episodes_create(OBS, ACT, MANY, 10, &past, &err), &err);
    const struct toy_model model = toy_model(TOY_NONSENSE, 3);
    struct opc_transition *tr;
    assert_ok(make_transition("corrected", past, &model.base, 2 * LONG + 1, &tr, &err), &err);
    for (int b = 0; b < 3; b++) {
        toy_play(past, b == 1 ? 1 : LONG, false, true, 0.1, (uint32_t)b);
        assert_ok(opc_transition_refresh(tr, NULL, &err), &err);
        assert_int_equal(tr->filled, opc_episodes_steps(past));
    }
    for (int e = 0; e < 3; e++)
        for (int i = 0; i < tr->filled; i++) {
            int b, t;
            float y[COLUMNS];
            opc_episodes_find(past, i, &b, &t);
            const struct opc_step ref = opc_episodes_at(past, b, t);
            toy_f(TOY_NONSENSE, ref.state, ref.action, e, y);
            assert_same_bits(tr->f_ref + (e * tr->capacity + i) * COLUMNS, y, sizeof y);
        }
    toy_play(past, 1, false, true, 0.1, 9);
    assert_fails(opc_transition_refresh(tr, NULL, &err), OPC_EBUG, &err, "18004");
    assert_mentions(&err, "18003");
    /* A window leaves room, and what it leaves out is not predicted. */
    tr->first_episode = 2;
    assert_ok(opc_transition_refresh(tr, NULL, &err), &err);
    assert_int_equal(tr->first, LONG + 1);
    assert_int_equal(tr->filled, LONG + 1);
    for (int i = 0; i < tr->filled; i++) {
        int b, t;
        float y[COLUMNS];
        opc_episodes_find(past, tr->first + i, &b, &t);
        const struct opc_step ref = opc_episodes_at(past, b, t);
        toy_f(TOY_NONSENSE, ref.state, ref.action, 1, y);
        assert_same_bits(tr->f_ref + (tr->capacity + i) * COLUMNS, y, sizeof y);
    }
    opc_transition_destroy(tr);
    opc_transition_destroy(NULL); /* is fine */
    opc_episodes_destroy(past);
}

static void what_does_not_fit_together_is_refused(void **state)
{
    (void)state;
    struct opc_episodes *past = recorded(false, 0);
    struct toy_model model = toy_model(TOY_TRUTH, 1);
    struct opc_transition *tr;
    struct opc_err err;
    assert_fails(make_transition("corected", past, &model.base, 10, &tr, &err), OPC_EUSER, &err,
                 "corrected");
    assert_fails(make_transition("learned", past, NULL, 10, &tr, &err), OPC_EBUG, &err,
                 "dynamics model");
    model.base.obs++;
    assert_int_equal(make_transition("corrected", past, &model.base, 10, &tr, &err), OPC_EBUG);
    opc_episodes_destroy(past);
}

/* Section 4.1, with its own model: s' = s_ref' + A~ (s - s_ref) + B~ (a - a_ref). */
static void the_linear_model_is_that_of_the_1d_example(void **state)
{
    (void)state;
    struct opc_predictor *model;
    struct opc_err err;
    struct opc_fit_report report = {OPC_SIZED(struct opc_fit_report)};
    assert_ok(opc_linear_create(1.3, 1.2, &model, &err), &err);
    assert_ok(opc_predictor_fit(model, 0, NULL, NULL, NULL, &report, &err), &err);
    const float s[] = {1, -0.05f}, a[] = {-0.7f, 0.25f};
    const int elite[] = {0, 0};
    float y[4], drawn[4];
    opc_predictor_mean(model, 2, s, a, elite, y, NULL);
    opc_predictor_sample(model, 2, s, a, elite, NULL, drawn, NULL);
    const float want[] = {0.46f, 0, 0.235f, 0.36787944f};
    assert_floats_near(y, want, 4, 1e-7);
    assert_same_bits(y, drawn, sizeof y);

    /* The reference is s_ref+ = (A + B theta_n) s_ref; the walk uses another theta. */
    struct opc_episodes *past;
    assert_ok(opc_episodes_create(1, 1, 60, 1, &past, &err), &err);
    double s_ref = 1;
    assert_ok(opc_episodes_begin(past, &s_ref, &err), &err);
    for (int t = 0; t < 60; t++) {
        const double z = s_ref / 0.05, r = exp(-z * z);
        const float a_ref = (float)(-0.7 * s_ref);
        s_ref += (double)a_ref;
        assert_ok(opc_episodes_append(past, &a_ref, r, &s_ref, false, &err), &err);
    }
    opc_episodes_close(past);
    struct opc_transition *tr;
    assert_ok(make_transition("corrected", past, model, 60, &tr, &err), &err);
    assert_ok(opc_transition_refresh(tr, NULL, &err), &err);
    double exact = 1, J = 0;
    s_ref = 1;
    float now = 1, action, next, reward, work[2];
    for (int t = 0; t < 60; t++) {
        const int b = 0;
        struct opc_walk walk = {1, &b, &t, elite, &now, &action, &next, &reward, NULL, work};
        action = -0.9f * now;
        opc_transition_step(tr, &walk, NULL);
        J += (double)reward / 60;
        exact = 0.3 * s_ref + 1.3 * (exact - s_ref) + 1.2 * (-0.9 * exact + 0.7 * s_ref);
        s_ref *= 0.3;
        assert_true(fabs((double)next - exact) < 1e-6);
        now = next;
    }
    assert_true(J > 0.9 && J < 0.99);
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
    opc_predictor_destroy(model);
    opc_predictor_destroy(NULL);
}

static int visit(void *ctx, const char *name, void *data, size_t bytes, struct opc_err *err)
{
    (void)err;
    double *seen = ctx;
    assert_int_equal(bytes, sizeof *seen);
    memcpy(&seen[strcmp(name, "A") == 0 ? 0 : 1], data, bytes);
    return OPC_OK;
}

static void the_linear_models_state_is_its_two_numbers(void **state)
{
    (void)state;
    struct opc_predictor *model;
    struct opc_err err;
    double seen[2] = {0};
    assert_ok(opc_linear_create(1.5, -2, &model, &err), &err);
    assert_ok(model->type->state(model, visit, seen, &err), &err);
    assert_true(seen[0] == 1.5 && seen[1] == -2);
    opc_predictor_destroy(model);
}

static int create(void *ctx, struct opc_err *err)
{
    const struct toy_model model = toy_model(TOY_TRUTH, ELITES);
    struct opc_transition *tr;
    const int code = make_transition("corrected", ctx, &model.base, 100, &tr, err);
    if (!code)
        opc_transition_destroy(tr);
    return code;
}

static int create_linear(void *ctx, struct opc_err *err)
{
    (void)ctx;
    struct opc_predictor *p;
    const int code = opc_linear_create(1, 1, &p, err);
    if (!code)
        opc_predictor_destroy(p);
    return code;
}

static void lack_of_memory_is_reported(void **state)
{
    (void)state;
    struct opc_episodes *past = recorded(false, 0);
    assert_survives_lack_of_memory(create, past);
    assert_survives_lack_of_memory(create_linear, NULL);
    opc_episodes_destroy(past);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_policy_the_corrected_model_is_the_recording_to_the_bit),
        cmocka_unit_test(a_right_model_gives_the_truth_under_the_recorded_noise),
        cmocka_unit_test(the_table_gives_the_bits_of_the_form_without_it),
        cmocka_unit_test(elites_agree_on_policy_and_differ_off_policy),
        cmocka_unit_test(the_estimate_is_that_of_replay_and_its_variance_falls_with_the_recordings),
        cmocka_unit_test(the_reward_can_be_left_uncorrected),
        cmocka_unit_test(learned_is_the_models_draw_or_its_mean),
        cmocka_unit_test(replay_is_the_recording_and_its_actions),
        cmocka_unit_test(the_table_grows_with_the_past),
        cmocka_unit_test(what_does_not_fit_together_is_refused),
        cmocka_unit_test(the_linear_model_is_that_of_the_1d_example),
        cmocka_unit_test(the_linear_models_state_is_its_two_numbers),
        cmocka_unit_test(lack_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
