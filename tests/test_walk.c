/* SPDX-License-Identifier: MIT */
/* Rows that advance together: when each of them ends, and that none of them notices the others.
 * What Algorithm 2 makes of them is in test_rollout.c. */
#include "opc/branches.h"

#include "toy.h"
#include "transitions.h"

enum { ELITES = 3, STEPS = 12 };

/* Two episodes of STEPS steps in which every state says where it is: s = (t, episode, t), r = t. */
static struct opc_episodes *numbered(void)
{
    struct opc_episodes *past;
    struct opc_err err;
    assert_ok(opc_episodes_create(OBS, ACT, 2 * STEPS, 2, &past, &err), &err);
    for (int b = 0; b < 2; b++) {
        const float zero[ACT] = {0};
        assert_ok(opc_episodes_begin(past, (double[]){0, b, 0}, &err), &err);
        for (int t = 0; t < STEPS; t++)
            assert_ok(opc_episodes_append(past, zero, t, (double[]){t + 1, b, t + 1}, false, &err),
                      &err);
        opc_episodes_close(past);
    }
    return past;
}

static struct opc_transition *made(const char *name, const struct opc_episodes *past,
                                   const struct opc_predictor *model)
{
    struct opc_transition *tr;
    struct opc_err err;
    assert_ok(make_transition(name, past, model, opc_episodes_steps(past), &tr, &err), &err);
    assert_ok(opc_transition_refresh(tr, NULL, &err), &err);
    return tr;
}

static void act_zero(void *ctx, int n, const float *state, struct opc_rng *rng, float *action)
{
    (void)ctx, (void)state, (void)rng;
    memset(action, 0, (size_t)n * ACT * sizeof *action);
}

static void act_at_random(void *ctx, int n, const float *state, struct opc_rng *rng, float *action)
{
    (void)ctx;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < ACT; k++)
            action[i * ACT + k] = tanhf(state[i * OBS]) * (2 * opc_rng_unit(&rng[i]) - 1);
}

/* True for the states that stand at time *ctx. */
static void at_time(void *ctx, int n, const float *s, const float *a, const float *next, bool *out)
{
    (void)s, (void)a;
    for (int i = 0; i < n; i++)
        out[i] = next[i * OBS + 2] == *(const float *)ctx;
}

/* ---- when a row ends ------------------------------------------------------------------------- */

/* One rollout from `time` on, through a model that is right about the numbered recording. */
static enum opc_end end_of(const char *name, int time, int horizon, float refused, float terminal,
                           bool with_reference, int *length)
{
    struct opc_episodes *past = numbered();
    const struct toy_model model = toy_model(TOY_ELITE, 1); /* s' = s + 1 */
    struct opc_transition *tr = made(name, past, &model.base);
    tr->sample = false;
    const struct opc_walk_plan plan = {.transition = tr,
                                       .act = act_zero,
                                       .terminal = at_time,
                                       .terminal_ctx = &terminal,
                                       .refuse = at_time,
                                       .refuse_ctx = &refused,
                                       .end_with_reference = with_reference,
                                       .horizon = horizon};
    struct opc_branches b;
    struct opc_err err;
    assert_ok(opc_branches_make(1, 2 * STEPS, OBS, ACT, &b, &err), &err);
    b.time[0] = time;
    assert_ok(opc_branches_follow(&b, &plan, &err), &err);
    for (int h = 0; h <= b.length[0]; h++)
        assert_true(opc_branches_at(&b, 0, h, 2) == time + h);
    assert_true(isnan(opc_branches_at(&b, 0, b.length[0] + 1, 2)));
    assert_int_equal(opc_branches_ended(&b, b.end[0]), 1);
    const enum opc_end end = b.end[0];
    *length = b.length[0];
    opc_branches_free(&b);
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
    return end;
}

static void a_row_ends_for_the_first_reason_there_is(void **state)
{
    (void)state;
    enum { NEVER = -1 };
    static const struct {
        int time, horizon, refused, terminal;
        enum opc_end end;
        int length;
    } CASES[] = {
        {3, 5, NEVER, NEVER, OPC_END_HORIZON, 5},
        {3, 20, NEVER, NEVER, OPC_END_REFERENCE, STEPS - 3},
        {3, 20, NEVER, 7, OPC_END_TERMINAL, 4},
        {3, 20, 7, NEVER, OPC_END_REFUSED, 3},
        {3, 20, 4, NEVER, OPC_END_REFUSED, 0},
        /* two in one step */
        {3, STEPS - 3, NEVER, NEVER, OPC_END_HORIZON, STEPS - 3},
        {3, 4, NEVER, 7, OPC_END_TERMINAL, 4},
        {3, 20, NEVER, STEPS, OPC_END_TERMINAL, STEPS - 3},
        {3, 20, 7, 7, OPC_END_REFUSED, 3},
        {3, STEPS - 3, STEPS, STEPS, OPC_END_REFUSED, STEPS - 4},
    };
    static const char *const NAMES[] = {"replay", "learned", "corrected"};
    for (size_t c = 0; c < sizeof CASES / sizeof *CASES; c++)
        for (int m = 0; m < 3; m++) {
            int length;
            assert_int_equal(end_of(NAMES[m], CASES[c].time, CASES[c].horizon,
                                    (float)CASES[c].refused, (float)CASES[c].terminal, true,
                                    &length),
                             CASES[c].end);
            assert_int_equal(length, CASES[c].length);
        }
}

static void eq_2_outlives_its_recording_unless_told_otherwise(void **state)
{
    (void)state;
    int length;
    assert_int_equal(end_of("learned", 3, 2 * STEPS, -1, -1, false, &length), OPC_END_HORIZON);
    assert_int_equal(length, 2 * STEPS);
    assert_int_equal(end_of("corrected", 3, 2 * STEPS, -1, -1, false, &length), OPC_END_REFERENCE);
    assert_int_equal(length, STEPS - 3);
}

/* The first state of every toy episode with a negative first entry breaks the model. */
static void a_step_that_is_not_finite_can_be_refused(void **state)
{
    (void)state;
    enum { N = 30 };
    static const enum toy_kind KINDS[] = {TOY_BROKEN, TOY_GREEDY}; /* the state, the reward */
    struct opc_episodes *past;
    struct opc_err err;
    assert_ok(opc_episodes_create(OBS, ACT, N * STEPS, N, &past, &err), &err);
    for (int b = 0; b < N; b++)
        toy_play(past, STEPS, false, true, 0.1, (uint32_t)b);
    for (int kind = 0; kind < 2; kind++)
        for (int refuse = 0; refuse < 2; refuse++) {
            const struct toy_model model = toy_model(KINDS[kind], 1);
            struct opc_transition *tr = made("learned", past, &model.base);
            tr->sample = false;
            const struct opc_walk_plan plan = {
                .transition = tr, .act = act_zero, .refuse_not_finite = refuse, .horizon = STEPS};
            struct opc_branches b;
            assert_ok(opc_branches_make(N, STEPS, OBS, ACT, &b, &err), &err);
            for (int i = 0; i < N; i++)
                b.episode[i] = i;
            assert_ok(opc_branches_follow(&b, &plan, &err), &err);
            for (int i = 0; i < N; i++) {
                const bool broken = kind == 1 || opc_episodes_at(past, i, 0).state[0] < 0;
                assert_int_equal(b.end[i], refuse && broken ? OPC_END_REFUSED : OPC_END_HORIZON);
                assert_int_equal(b.length[i], refuse && broken ? 0 : STEPS);
            }
            opc_branches_free(&b);
            opc_transition_destroy(tr);
        }
    opc_episodes_destroy(past);
}

/* ---- who goes with whom ---------------------------------------------------------------------- */

static void set_streams(struct opc_branches *b, int first)
{
    for (int i = 0; i < b->n; i++) {
        b->rng[i] = opc_rng_stream(3, OPC_USE_TEST, 0, (uint32_t)(first + i));
        b->noise[i] = opc_rng_stream(3, OPC_USE_TEST, 1, (uint32_t)(first + i));
        b->episode[i] = (first + i) % 2;
        b->time[i] = (first + i) * 5 % STEPS;
    }
}

static void terminal_far_out(void *ctx, int n, const float *s, const float *a, const float *next,
                             bool *out)
{
    (void)ctx, (void)s, (void)a;
    for (int i = 0; i < n; i++)
        out[i] = fabsf(next[i * OBS]) > 0.4f;
}

/* Many rows, some of which leave at every step, are each what it is alone. */
static void a_row_goes_the_same_way_whoever_goes_with_it(void **state)
{
    (void)state;
    enum { N = 700 }; /* more than one chunk */
    static const char *const NAMES[] = {"learned", "corrected"};
    struct opc_episodes *past;
    struct opc_pool *pool;
    struct opc_err err;
    assert_ok(opc_pool_create(2, &pool, &err), &err);
    assert_ok(opc_episodes_create(OBS, ACT, 2 * STEPS, 2, &past, &err), &err);
    for (int b = 0; b < 2; b++)
        toy_play(past, STEPS, false, true, 0.1, (uint32_t)b);
    const struct toy_model model = toy_model(TOY_TRUTH, ELITES);
    for (int c = 0; c < 4; c++) {
        struct opc_transition *tr = made(NAMES[c % 2], past, &model.base);
        struct opc_walk_plan plan = {.transition = tr,
                                     .act = act_at_random,
                                     .terminal = terminal_far_out,
                                     .elite_per_rollout = c / 2,
                                     .horizon = STEPS};
        struct opc_branches all, one;
        assert_ok(opc_branches_make(N, STEPS, OBS, ACT, &all, &err), &err);
        assert_ok(opc_branches_make(1, STEPS, OBS, ACT, &one, &err), &err);
        set_streams(&all, 0);
        plan.pool = pool;
        assert_ok(opc_branches_follow(&all, &plan, &err), &err);
        plan.pool = NULL;
        assert_true(opc_branches_ended(&all, OPC_END_TERMINAL) > N / 10);
        for (int i = 0; i < N; i += 23) {
            set_streams(&one, i);
            assert_ok(opc_branches_follow(&one, &plan, &err), &err);
            const size_t n = (size_t)one.length[0], at = (size_t)i * STEPS;
            assert_int_equal(all.length[i], one.length[0]);
            assert_int_equal(all.end[i], one.end[0]);
            assert_same_bits(all.state + (at + (size_t)i) * OBS, one.state,
                             (n + 1) * OBS * sizeof(float));
            assert_same_bits(all.action + at * ACT, one.action, n * ACT * sizeof(float));
            assert_same_bits(all.reward + at, one.reward, n * sizeof(float));
        }
        /* and again: the starts are as they were */
        const enum opc_end end = all.end[N - 1];
        double first[N], second[N];
        opc_branches_returns(&all, first);
        assert_ok(opc_branches_follow(&all, &plan, &err), &err);
        opc_branches_returns(&all, second);
        assert_same_bits(first, second, sizeof first);
        assert_int_equal(all.end[N - 1], end);
        opc_branches_free(&all);
        opc_branches_free(&one);
        opc_transition_destroy(tr);
    }
    opc_episodes_destroy(past);
    opc_pool_destroy(pool);
}

static void rows_that_go_on_keep_their_order(void **state)
{
    (void)state;
    enum { N = STEPS };
    struct opc_episodes *past = numbered();
    struct opc_transition *tr = made("replay", past, NULL);
    const struct opc_walk_plan plan = {.transition = tr, .horizon = 2 * STEPS};
    struct opc_rows *rows;
    struct opc_err err;
    assert_ok(opc_rows_create(OBS, ACT, N, false, &rows, &err), &err);
    rows->n = N;
    for (int i = 0; i < N; i++) { /* of which row i has STEPS - time to go */
        rows->episode[i] = i % 2;
        rows->time[i] = i * 7 % STEPS;
    }
    int h = 0, left = N;
    for (opc_walk_start(&plan, rows); rows->n > 0; opc_walk_drop_ended(rows), h++, left--) {
        assert_int_equal(rows->n, left); /* one leaves with every step */
        assert_int_equal(rows->h, h);
        opc_walk_step(&plan, rows);
        for (int i = 0; i < rows->n; i++) {
            const int start = rows->start[i], time = start * 7 % STEPS + h;
            assert_true(i == 0 || start > rows->start[i - 1]);
            assert_int_equal(rows->time[i], time);
            assert_int_equal(rows->episode[i], start % 2);
            assert_true(rows->state[i * OBS] == (float)time && rows->reward[i] == (float)time);
            assert_true(rows->next[i * OBS + 1] == (float)(start % 2));
            assert_int_equal(rows->end[i], time + 1 == STEPS ? OPC_END_REFERENCE : OPC_END_NONE);
        }
    }
    assert_int_equal(h, STEPS);
    opc_rows_destroy(rows);
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

/* ---- when they fail -------------------------------------------------------------------------- */

static int follow_few(void *ctx, struct opc_err *err)
{
    const struct opc_walk_plan *plan = ctx;
    struct opc_branches b;
    int code = opc_branches_make(4, STEPS, OBS, ACT, &b, err);
    if (code)
        return code;
    code = opc_branches_follow(&b, plan, err);
    opc_branches_free(&b);
    return code;
}

static void lack_of_memory_is_reported(void **state)
{
    (void)state;
    struct opc_episodes *past = numbered();
    struct opc_transition *tr = made("replay", past, NULL);
    struct opc_walk_plan plan = {.transition = tr, .horizon = STEPS};
    struct opc_err err;
    assert_survives_lack_of_memory(follow_few, &plan);
    opc_rows_destroy(NULL);

    plan.horizon = STEPS + 1; /* more than there is memory for */
    assert_fails(follow_few(&plan, &err), OPC_EBUG, &err, "13");
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_ends_for_the_first_reason_there_is),
        cmocka_unit_test(eq_2_outlives_its_recording_unless_told_otherwise),
        cmocka_unit_test(a_step_that_is_not_finite_can_be_refused),
        cmocka_unit_test(a_row_goes_the_same_way_whoever_goes_with_it),
        cmocka_unit_test(rows_that_go_on_keep_their_order),
        cmocka_unit_test(lack_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
