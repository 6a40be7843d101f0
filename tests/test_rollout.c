/* SPDX-License-Identifier: MIT */
#include "opc/algorithm2.h"

#include "model/ensemble.h"
#include "num/scaler.h"
#include "rollouts.h"

/* ---- what rollouts need ---------------------------------------------------------------------- */

static void act_zero(void *ctx, int n, const float *state, struct opc_rng *rng, float *action)
{
    (void)ctx, (void)state, (void)rng;
    memset(action, 0, (size_t)n * ACT * sizeof *action);
}

static void terminal_far_out(void *ctx, int n, const float *s, const float *a, const float *next,
                             bool *out)
{
    (void)ctx, (void)s, (void)a;
    for (int i = 0; i < n; i++)
        out[i] = fabsf(next[i * OBS]) > 0.9f;
}

/* A recording in which every state says where it is: s = (number of its step, episode, t), a = 0,
 * r = number. Episode b has length[b] steps; its end is terminal if the length is even. */
static struct opc_episodes *numbered(const int *length, int episodes)
{
    struct opc_episodes *past;
    struct opc_err err;
    assert_ok(opc_episodes_create(OBS, ACT, 1000, 100, &past, &err), &err);
    for (int b = 0, number = 0; b < episodes; b++) {
        const float zero[ACT] = {0};
        assert_ok(opc_episodes_begin(past, (double[]){number, b, 0}, &err), &err);
        for (int t = 0; t < length[b]; t++, number++) {
            const bool terminal = t + 1 == length[b] && length[b] % 2 == 0;
            const double next[] = {number + 1, b, t + 1};
            assert_ok(opc_episodes_append(past, zero, number, next, terminal, &err), &err);
        }
        opc_episodes_close(past);
    }
    return past;
}

/* Makes what the plan says, at most `rows` rollouts at a time, into a store of its own. */
static struct opc_imagined *run(const struct opc_rollout_plan *plan, int rows,
                                struct opc_rollout_report *report)
{
    struct opc_imagined *d = rollouts_of(plan, rows, report);
    assert_int_equal(report->transitions, opc_imagined_transitions(d));
    assert_int_equal(report->rollouts, opc_imagined_rollouts(d));
    assert_true(report->length == (double)report->transitions / (double)report->rollouts);
    assert_true(report->index == plan->index + report->rollouts);
    return d;
}

/* ---- the paper's claim, through Algorithm 2 -------------------------------------------------- */

/* On-policy, D_sim of the corrected model is D_sim of the replay, to the bit: with models that are
 * wrong in any way and with a real ensemble, on any number of threads. */
static void on_policy_corrected_rollouts_are_replayed_ones(void **state)
{
    (void)state;
    struct opc_episodes *past = played(false, 0.3);
    struct opc_ensemble_config config;
    struct opc_err err;
    assert_ok(opc_section_defaults(&opc_ensemble_section, &config, &err), &err);
    config.hidden = (struct opc_ints){2, {40, 40}};
    config.weight_decay = (struct opc_reals){1, {1e-4}};
    for (int threads = 0; threads < 4; threads++) {
        struct opc_pool *pool;
        struct opc_predictor *ensemble;
        assert_ok(opc_pool_create(THREADS[threads], &pool, &err), &err);
        assert_ok(opc_ensemble_make(&config, OBS, ACT, THREADS[threads], 1, 0, &ensemble, &err),
                  &err);
        const struct toy_model nonsense = toy_model(TOY_NONSENSE, ELITES);
        const struct toy_model linear = toy_model(TOY_LINEAR, ELITES);
        const struct opc_predictor *models[] = {&nonsense.base, &linear.base, ensemble};
        for (int m = 0; m < 3; m++) {
            struct opc_transition *replay = made("replay", past, models[m], pool);
            struct opc_transition *corrected = made("corrected", past, models[m], pool);
            struct opc_rollout_plan plan = {
                .transition = replay,
                .act = act_by_policy,
                .horizon = H,
                .transitions = 3000,
                .reference_terminal = true,
                .seed = 5,
                .pool = pool,
            };
            struct opc_rollout_report report;
            struct opc_imagined *want = run(&plan, 1000, &report);
            plan.transition = corrected;
            struct opc_imagined *got = run(&plan, 1000, &report);
            assert_same_rollouts(want, got);
            assert_true(report.terminal > 0);
            opc_imagined_destroy(want);
            opc_imagined_destroy(got);
            opc_transition_destroy(replay);
            opc_transition_destroy(corrected);
        }
        opc_predictor_destroy(ensemble);
        opc_pool_destroy(pool);
    }
    opc_episodes_destroy(past);
}

/* ---- which rollouts -------------------------------------------------------------------------- */

static void threads_and_rows_at_a_time_change_no_bit(void **state)
{
    (void)state;
    static const char *const NAME[] = {"learned", "corrected"};
    static const int ROWS[] = {1, 7, 513, 4000};
    struct opc_episodes *past = played(true, 0.1);
    const struct toy_model model = toy_model(TOY_TRUTH, ELITES);
    for (int m = 0; m < 2; m++) {
        struct opc_transition *tr = made(NAME[m], past, &model.base, NULL);
        struct opc_rollout_plan plan = {
            .transition = tr,
            .act = act_at_random,
            .terminal = terminal_far_out,
            .horizon = H,
            .transitions = 12345,
            .seed = 6,
            .epoch = 3,
            .index = 1000,
        };
        struct opc_rollout_report first, report;
        struct opc_imagined *want = run(&plan, 2000, &first);
        assert_in_range(first.transitions, 12345, 12345 + H - 1);
        assert_true(first.terminal > 100 && first.length < H - 1);
        for (int i = 0; i < 4; i++) {
            struct opc_err err;
            assert_ok(opc_pool_create(THREADS[i], &plan.pool, &err), &err);
            struct opc_imagined *got = run(&plan, ROWS[i], &report);
            assert_same_rollouts(want, got);
            assert_int_equal(report.terminal, first.terminal);
            assert_int_equal(report.index, first.index);
            opc_imagined_destroy(got);
            opc_pool_destroy(plan.pool);
        }
        opc_imagined_destroy(want);
        opc_transition_destroy(tr);
    }
    opc_episodes_destroy(past);
}

/* No more than are needed for N transitions; or a number of them. */
static void they_are_the_first_that_hold_n_transitions(void **state)
{
    (void)state;
    struct opc_episodes *past = played(true, 0.1);
    const struct toy_model model = toy_model(TOY_TRUTH, ELITES);
    struct opc_transition *tr = made("corrected", past, &model.base, NULL);
    for (size_t n = 1; n < 200; n += 11) {
        struct opc_rollout_plan plan = {
            .transition = tr,
            .act = act_at_random,
            .terminal = terminal_far_out,
            .horizon = H,
            .transitions = n,
        };
        struct opc_rollout_report report, few;
        struct opc_imagined *d = run(&plan, 50, &report), *same;
        uint64_t at = 0;
        struct opc_rollout_rows last = {0};
        while (opc_imagined_next(d, &at, &last))
            continue;
        assert_true(report.transitions >= n && report.transitions - (size_t)last.steps < n);
        plan.rollouts = (int)report.rollouts;
        plan.transitions = 0;
        same = run(&plan, 3, &few);
        assert_same_rollouts(d, same);
        opc_imagined_destroy(d);
        opc_imagined_destroy(same);
    }
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

/* The index runs on, so two simulations in an epoch are one that is as long. */
static void a_second_call_goes_on_where_the_first_ended(void **state)
{
    (void)state;
    struct opc_episodes *past = played(true, 0.1);
    const struct toy_model model = toy_model(TOY_TRUTH, ELITES);
    struct opc_transition *tr = made("learned", past, &model.base, NULL);
    const struct opc_imagined_shape shape = {
        OPC_SIZED(struct opc_imagined_shape), .obs = OBS,  .act = ACT,          .longest = H,
        .forget = OPC_FORGET_EPOCHS,          .retain = 1, .transitions = 30000};
    struct opc_imagined *one, *two;
    struct opc_rollout *w;
    struct opc_err err;
    struct opc_rollout_report report;
    assert_ok(opc_imagined_create(&shape, &two, &err), &err);
    assert_ok(opc_rollout_create(OBS, ACT, H, 64, &w, &err), &err);
    struct opc_rollout_plan plan = {
        .transition = tr, .act = act_at_random, .horizon = H, .rollouts = 300, .seed = 8};
    one = run(&plan, 64, &report);
    opc_imagined_open_epoch(two, 0);
    plan.rollouts = 100;
    for (int i = 0; i < 3; i++) {
        assert_ok(opc_rollout_run(w, &plan, two, &report, &err), &err);
        plan.index = report.index;
    }
    assert_same_rollouts(one, two);
    opc_imagined_destroy(one);
    opc_imagined_destroy(two);
    opc_rollout_destroy(w);
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

/* Where it starts, and what it draws on the way. */
static void seed_epoch_and_number_name_a_rollout(void **state)
{
    (void)state;
    struct opc_episodes *past = played(true, 0.1);
    const struct toy_model model = toy_model(TOY_TRUTH, ELITES);
    struct opc_transition *tr = made("corrected", past, &model.base, NULL);
    struct opc_rollout_report report;
    struct opc_rollout_rows of[4];
    struct opc_imagined *d[4];
    for (int i = 0; i < 4; i++) {
        const struct opc_rollout_plan plan = {.transition = tr,
                                              .act = act_at_random,
                                              .horizon = H,
                                              .rollouts = 1,
                                              .seed = i == 1 ? 9 : 8,
                                              .epoch = i == 2 ? 1 : 0,
                                              .index = i == 3 ? 1 : 0};
        uint64_t at = 0;
        d[i] = run(&plan, 64, &report);
        assert_true(opc_imagined_next(d[i], &at, &of[i]));
        for (int k = 0; k < i; k++) {
            assert_memory_not_equal(of[i].records, of[k].records, OBS * sizeof(float));
            assert_memory_not_equal(of[i].records + OBS, of[k].records + OBS, ACT * sizeof(float));
        }
    }
    for (int i = 0; i < 4; i++)
        opc_imagined_destroy(d[i]);
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

/* On-policy a corrected rollout is a replayed one in any window, too; and a window that moved needs
 * its table anew. */
static void a_window_changes_where_rollouts_are_but_not_what_they_are(void **state)
{
    (void)state;
    struct opc_episodes *past = played(false, 0.3);
    const struct toy_model model = toy_model(TOY_NONSENSE, ELITES);
    struct opc_transition *replay = made("replay", past, NULL, NULL);
    struct opc_transition *corrected = made("corrected", past, &model.base, NULL);
    struct opc_rollout_plan plan = {.act = act_by_policy,
                                    .horizon = H,
                                    .transitions = 2000,
                                    .reference_terminal = true,
                                    .seed = 5};
    for (int window = 29; window >= 0; window -= 7) {
        struct opc_rollout_report report;
        struct opc_err err;
        replay->first_episode = corrected->first_episode = window;
        assert_ok(opc_transition_refresh(corrected, NULL, &err), &err);
        plan.transition = replay;
        struct opc_imagined *want = run(&plan, 1000, &report);
        plan.transition = corrected;
        struct opc_imagined *got = run(&plan, 1000, &report);
        assert_same_rollouts(want, got);
        opc_imagined_destroy(want);
        if (window > 1) { /* not refreshed */
            struct opc_rollout *w;
            corrected->first_episode = 0;
            assert_ok(opc_rollout_create(OBS, ACT, H, 10, &w, &err), &err);
            assert_fails(opc_rollout_run(w, &plan, got, &report, &err), OPC_EBUG, &err, "refresh");
            opc_rollout_destroy(w);
        }
        opc_imagined_destroy(got);
    }
    opc_transition_destroy(replay);
    opc_transition_destroy(corrected);
    opc_episodes_destroy(past);
}

/* ---- where they start ------------------------------------------------------------------------ */

static void assert_fits(const int *count, const double *share, int cells, int draws)
{
    double chi = 0, df = -1;
    for (int i = 0; i < cells; i++) {
        const double want = share[i] * draws;
        if (want == 0) {
            assert_int_equal(count[i], 0);
            continue;
        }
        chi += (count[i] - want) * (count[i] - want) / want;
        df++;
    }
    if (!(fabs(chi - df) <= 4.5 * sqrt(2 * df)))
        fail_msg("chi-square %g with %g degrees of freedom", chi, df);
}

static const int LENGTH[] = {3, 5, 12, 30, 1, 6};
enum { EPISODES = 6, STEPS = 57 };

static void starts_in(enum opc_start law, int horizon, int window, double past_ratio, int recent,
                      int *count, int draws)
{
    struct opc_episodes *past = numbered(LENGTH, EPISODES);
    struct opc_transition *tr = made("replay", past, NULL, NULL);
    tr->first_episode = window;
    const struct opc_rollout_plan plan = {.transition = tr,
                                          .horizon = horizon,
                                          .rollouts = draws,
                                          .start = law,
                                          .past_ratio = past_ratio,
                                          .recent = recent,
                                          .seed = 9};
    struct opc_rollout_report report;
    struct opc_imagined *d = run(&plan, 1000, &report);
    struct opc_rollout_rows rows;
    for (uint64_t at = 0; opc_imagined_next(d, &at, &rows);)
        count[(int)rows.records[0]]++;
    opc_imagined_destroy(d);
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

static void starts(enum opc_start law, int horizon, int window, int *count, int draws)
{
    starts_in(law, horizon, window, 0, 0, count, draws);
}

/* Of the window, which begins with any episode. */
static void any_recorded_step_is_an_equally_likely_start(void **state)
{
    (void)state;
    enum { DRAWS = 20000 };
    for (int window = 0, before = 0; window < EPISODES; before += LENGTH[window++]) {
        int count[STEPS] = {0};
        double share[STEPS] = {0};
        for (int i = before; i < STEPS; i++)
            share[i] = 1.0 / (STEPS - before);
        starts(OPC_START_UNIFORM, 5, window, count, DRAWS);
        assert_fits(count, share, STEPS, DRAWS);
    }
}

/* Three in ten start anywhere, by chance in the window too; the others start in the window. */
static void a_share_of_the_rollouts_starts_anywhere_in_the_past(void **state)
{
    (void)state;
    enum { DRAWS = 20000 };
    const double past = 0.3;
    for (int recent = 0, before = 0; recent < EPISODES; before += LENGTH[recent++]) {
        int count[STEPS] = {0};
        double share[STEPS];
        for (int i = 0; i < STEPS; i++)
            share[i] = past / STEPS + (i < before ? 0 : (1 - past) / (STEPS - before));
        starts_in(OPC_START_UNIFORM, 5, 0, past, recent, count, DRAWS);
        assert_fits(count, share, STEPS, DRAWS);
    }
    int count[STEPS] = {0}, first = 0;
    double share[STEPS] = {0};
    for (int b = 0; b < EPISODES; first += LENGTH[b++]) /* the last two are recent */
        for (int t = 0, places = LENGTH[b] < 5 ? 1 : LENGTH[b] - 4; t < places; t++)
            share[first + t] = (past / EPISODES + (b < 4 ? 0 : (1 - past) / 2)) / places;
    starts_in(OPC_START_PAPER, 5, 0, past, 4, count, DRAWS);
    assert_fits(count, share, STEPS, DRAWS);
}

/* Algorithm 2 to the letter: the episode first, then t on 0 .. T-H; t = 0 where T < H. */
static void the_papers_law_draws_the_episode_first(void **state)
{
    (void)state;
    enum { DRAWS = 20000, HORIZON = 5 };
    for (int window = 0; window < EPISODES; window++) {
        int count[STEPS] = {0}, first = 0;
        double share[STEPS] = {0};
        for (int b = 0; b < EPISODES; first += LENGTH[b++]) {
            const int places = LENGTH[b] < HORIZON ? 1 : LENGTH[b] - HORIZON + 1;
            for (int t = 0; t < places && b >= window; t++)
                share[first + t] = 1.0 / (EPISODES - window) / places;
        }
        starts(OPC_START_PAPER, HORIZON, window, count, DRAWS);
        assert_fits(count, share, STEPS, DRAWS);
    }
}

/* ---- where they end -------------------------------------------------------------------------- */

static void terminal_at_17(void *ctx, int n, const float *s, const float *a, const float *next,
                           bool *out)
{
    (void)ctx, (void)s, (void)a;
    for (int i = 0; i < n; i++)
        out[i] = next[i * OBS] == 17;
}

/* Rollouts through the numbered recording, on-policy, so that each state still says where it is.
 * Which of them end where, and with which mark, is worked out here from the rules alone. */
static void they_end(const char *name, bool reference_terminal, bool with_terminal)
{
    struct opc_episodes *past = numbered(LENGTH, EPISODES);
    const struct toy_model model = toy_model(TOY_LINEAR, ELITES);
    struct opc_transition *tr = made(name, past, &model.base, NULL);
    const bool replay = strcmp(name, "replay") == 0;
    const struct opc_rollout_plan plan = {
        .transition = tr,
        .act = replay ? NULL : act_zero,
        .terminal = with_terminal ? terminal_at_17 : NULL,
        .horizon = H,
        .rollouts = 2000,
        .reference_terminal = reference_terminal,
        .seed = 10,
    };
    struct opc_rollout_report report;
    struct opc_imagined *d = run(&plan, 300, &report);
    struct opc_rollout_rows rows;
    size_t terminals = 0, seen[4] = {0}, why[OPC_ENDS] = {0};
    for (uint64_t at = 0; opc_imagined_next(d, &at, &rows);) {
        const float *first = rows.records, *end = first + rows.steps * STRIDE;
        const int number = (int)first[0], b = (int)first[1], t = (int)first[2];
        const int left = LENGTH[b] - t;
        int steps = left < H ? left : H;
        const bool met = with_terminal && number < 17 && 17 <= number + steps;
        if (met)
            steps = 17 - number;
        const bool reference_ended = steps == left && LENGTH[b] % 2 == 0;
        const bool d_last = met || (reference_ended && (reference_terminal || replay));
        assert_int_equal(rows.steps, steps);
        for (int h = 0; h < steps; h++) {
            const float *r = first + h * STRIDE;
            assert_true(r[0] == (float)(number + h) && r[2] == (float)(t + h));
            assert_true(r[OBS + ACT] == (float)(number + h));
            assert_true(r[STRIDE - 1] ==
                        (h == steps - 1 && d_last ? OPC_RECORD_TERMINAL : OPC_RECORD_STEP));
        }
        assert_true(end[0] == (float)(number + steps));
        for (int k = OBS; k < STRIDE - 1; k++)
            assert_true(end[k] == 0);
        terminals += d_last;
        seen[met ? 0 : reference_ended ? 1 : steps == left ? 2 : 3]++;
        why[met ? OPC_END_TERMINAL : steps == H ? OPC_END_HORIZON : OPC_END_REFERENCE]++;
    }
    assert_int_equal(report.terminal, terminals);
    assert_memory_equal(report.end, why, sizeof why);
    /* a terminal state, a terminal recording, a cut one, the horizon: all have happened */
    for (int i = with_terminal ? 0 : 1; i < 4; i++)
        assert_true(seen[i] > 20);
    opc_imagined_destroy(d);
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

static void they_end_at_terminal_states_at_the_recordings_end_and_at_the_horizon(void **state)
{
    (void)state;
    for (int terminal = 0; terminal < 2; terminal++)
        for (int reference = 0; reference < 2; reference++) {
            they_end("corrected", reference, terminal);
            they_end("replay", reference, terminal);
        }
}

/* Numbers of all stored steps, whoever made them. */
static void a_report_has_the_extremes_of_what_was_stored(void **state)
{
    (void)state;
    struct opc_episodes *past = played(true, 0.1);
    const struct toy_model model = toy_model(TOY_TRUTH, ELITES);
    struct opc_transition *tr = made("corrected", past, &model.base, NULL);
    float mean[OBS] = {0.1f, -0.2f, 0.3f}, inverse[OBS] = {2, 3, 5};
    const struct opc_scaler states = {.dim = OBS, .mean = mean, .inverse = inverse};
    struct opc_rollout_plan plan = {.transition = tr,
                                    .act = act_at_random,
                                    .horizon = H,
                                    .transitions = 5000,
                                    .states = &states};
    for (int threads = 1; threads < 4; threads++) {
        struct opc_rollout_report report;
        struct opc_rollout_rows rows;
        struct opc_err err;
        double low = HUGE_VAL, high = -HUGE_VAL, far = 0;
        assert_ok(opc_pool_create(threads, &plan.pool, &err), &err);
        struct opc_imagined *d = run(&plan, 1100, &report);
        for (uint64_t at = 0; opc_imagined_next(d, &at, &rows);)
            for (int h = 0; h < rows.steps; h++) {
                const float *r = rows.records + h * STRIDE;
                low = fmin(low, (double)r[OBS + ACT]);
                high = fmax(high, (double)r[OBS + ACT]);
                for (int k = 0; k < OBS; k++)
                    far = fmax(far,
                               fabs((double)r[STRIDE + k] - (double)mean[k]) * (double)inverse[k]);
            }
        assert_true((double)report.reward_min == low && (double)report.reward_max == high);
        assert_true(fabs((double)report.state_max_std - far) < 1e-5 * far);
        opc_imagined_destroy(d);
        opc_pool_destroy(plan.pool);
    }
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

static void refuse_some(void *ctx, int n, const float *s, const float *a, const float *next,
                        bool *out)
{
    (void)s, (void)a;
    for (int i = 0; i < n; i++)
        out[i] = next[i * OBS] >= *(const float *)ctx;
}

/* Through the numbered recording again: step 20 and all behind it are not to be had. */
static void a_refused_step_is_not_stored_and_ends_its_rollout(void **state)
{
    (void)state;
    float from = 20;
    struct opc_episodes *past = numbered(LENGTH, EPISODES);
    struct opc_transition *tr = made("replay", past, NULL, NULL);
    struct opc_rollout_plan plan = {.transition = tr,
                                    .refuse = refuse_some,
                                    .refuse_ctx = &from,
                                    .horizon = H,
                                    .transitions = 3000,
                                    .seed = 12};
    struct opc_rollout_report report, other;
    struct opc_rollout_rows rows;
    struct opc_imagined *d;
    struct opc_err err;
    const struct opc_imagined_shape shape = {
        OPC_SIZED(struct opc_imagined_shape), .obs = OBS,  .act = ACT,           .longest = 60,
        .forget = OPC_FORGET_EPOCHS,          .retain = 1, .transitions = 300000};
    struct opc_rollout *w;
    assert_ok(opc_imagined_create(&shape, &d, &err), &err);
    opc_imagined_open_epoch(d, 0);
    for (int threads = 1; threads < 3; threads++) { /* rows at a time change nothing */
        assert_ok(opc_rollout_create(OBS, ACT, H, threads == 1 ? 7 : 900, &w, &err), &err);
        opc_imagined_clear(d);
        opc_imagined_open_epoch(d, threads);
        assert_ok(opc_rollout_run(w, &plan, d, threads == 1 ? &report : &other, &err), &err);
        opc_rollout_destroy(w);
    }
    assert_memory_equal(report.end, other.end, sizeof report.end);
    assert_int_equal(report.transitions, opc_imagined_transitions(d));
    assert_true(report.transitions >= 3000 && report.rollouts > opc_imagined_rollouts(d));
    assert_true(report.end[OPC_END_REFUSED] > report.rollouts - opc_imagined_rollouts(d));
    assert_true((double)report.reward_max == 18); /* of the step that ends in 19 */
    for (uint64_t at = 0; opc_imagined_next(d, &at, &rows);) {
        assert_true(rows.steps >= 1);
        assert_true(rows.records[rows.steps * STRIDE] < 20);
        assert_true(rows.records[rows.steps * STRIDE + STRIDE - 1] == OPC_RECORD_END);
    }

    /* If nothing can be stored, it must not go on for ever; a number of rollouts has an end. */
    from = 0;
    assert_ok(opc_rollout_create(OBS, ACT, H, 900, &w, &err), &err);
    assert_fails(opc_rollout_run(w, &plan, d, &report, &err), OPC_EREFUSED, &err, "refused");
    plan.rollouts = 50;
    assert_ok(opc_rollout_run(w, &plan, d, &report, &err), &err);
    assert_true(report.rollouts == 50 && report.empty == 50 && report.transitions == 0);
    opc_rollout_destroy(w);
    opc_imagined_destroy(d);
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

/* The learned model needs no reference, so MBPO's rollouts go on past the end of the recording. */
static void learned_rollouts_do_not_end_with_the_recording(void **state)
{
    (void)state;
    struct opc_episodes *past = numbered(LENGTH, EPISODES);
    const struct toy_model model = toy_model(TOY_ELITE, 1); /* s' = s + 1 */
    struct opc_transition *tr = made("learned", past, &model.base, NULL);
    tr->sample = false;
    struct opc_rollout_plan plan = {
        .transition = tr,
        .act = act_zero,
        .horizon = H,
        .rollouts = 500,
        .reference_terminal = true,
        .seed = 11,
    };
    struct opc_rollout_report report;
    struct opc_imagined *d = run(&plan, 100, &report);
    assert_true(report.length == H && report.terminal == 0);
    opc_imagined_destroy(d);

    plan.terminal = terminal_at_17;
    d = run(&plan, 100, &report);
    struct opc_rollout_rows rows;
    for (uint64_t at = 0; opc_imagined_next(d, &at, &rows);) {
        const int number = (int)rows.records[0];
        const bool met = number < 17 && number + H >= 17;
        assert_int_equal(rows.steps, met ? 17 - number : H);
        assert_true(rows.records[rows.steps * STRIDE - 1] ==
                    (met ? OPC_RECORD_TERMINAL : OPC_RECORD_STEP));
    }
    opc_imagined_destroy(d);
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

/* ---- who answers ----------------------------------------------------------------------------- */

static void an_elite_is_drawn_for_each_step_or_for_each_rollout(void **state)
{
    (void)state;
    enum { ROLLOUTS = 3000 };
    struct opc_episodes *past = numbered(LENGTH, EPISODES);
    const struct toy_model model = toy_model(TOY_ELITE, ELITES); /* reward = elite */
    struct opc_transition *tr = made("learned", past, &model.base, NULL);
    tr->sample = false;
    for (int per_rollout = 0; per_rollout < 2; per_rollout++) {
        const struct opc_rollout_plan plan = {
            .transition = tr,
            .act = act_zero,
            .terminal = terminal_at_17, /* some leave early; the others keep their elite */
            .horizon = H,
            .rollouts = ROLLOUTS,
            .elite_per_rollout = per_rollout,
            .seed = 12,
        };
        struct opc_rollout_report report;
        struct opc_imagined *d = run(&plan, 1000, &report);
        struct opc_rollout_rows rows;
        int count[ELITES] = {0}, changes = 0, draws = 0;
        const double share[ELITES] = {0.2, 0.2, 0.2, 0.2, 0.2};
        for (uint64_t at = 0; opc_imagined_next(d, &at, &rows);) {
            int elite[H];
            for (int h = 0; h < rows.steps; h++) {
                elite[h] = (int)rows.records[h * STRIDE + OBS + ACT];
                changes += h > 0 && elite[h] != elite[h - 1];
                if (h == 0 || !per_rollout) {
                    count[elite[h]]++;
                    draws++;
                }
            }
        }
        assert_true(report.terminal > 100);
        assert_fits(count, share, ELITES, draws);
        if (per_rollout)
            assert_int_equal(changes, 0);
        else /* 4 of 5 times another one */
            assert_true(fabs(changes - 0.8 * (draws - ROLLOUTS)) < 400);
        opc_imagined_destroy(d);
    }
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

/* ---- when they fail -------------------------------------------------------------------------- */

static bool after_two(void *ctx)
{
    int *asked = ctx;
    return ++*asked > 2;
}

static void a_model_that_diverges_stops_them_and_is_named(void **state)
{
    (void)state;
    struct opc_episodes *past = played(true, 0.5);
    const struct toy_model model = toy_model(TOY_BROKEN, 1);
    struct opc_transition *tr = made("learned", past, &model.base, NULL);
    tr->sample = false;
    const struct opc_imagined_shape shape = {
        OPC_SIZED(struct opc_imagined_shape), .obs = OBS,  .act = ACT,           .longest = H,
        .forget = OPC_FORGET_EPOCHS,          .retain = 1, .transitions = 100000};
    struct opc_imagined *d;
    struct opc_rollout *w;
    struct opc_err err;
    struct opc_rollout_report report;
    assert_ok(opc_imagined_create(&shape, &d, &err), &err);
    assert_ok(opc_rollout_create(OBS, ACT, H, 64, &w, &err), &err);
    opc_imagined_open_epoch(d, 0);
    struct opc_rollout_plan plan = {
        .transition = tr, .act = act_zero, .horizon = H, .transitions = 50000, .seed = 13};
    assert_int_equal(opc_rollout_run(w, &plan, d, &report, &err), OPC_EDIVERGED);
    int number = 0; /* the first rollout to start where the model breaks */
    for (int b, t; number < 64; number++) {
        struct opc_rng rng = opc_rng_stream(13, OPC_USE_START, 0, (uint32_t)number);
        const uint32_t steps = (uint32_t)opc_episodes_steps(past);
        opc_episodes_find(past, (int)opc_rng_below(&rng, steps), &b, &t);
        if (opc_episodes_at(past, b, t).state[0] < 0)
            break;
    }
    char want[100];
    snprintf(want, sizeof want, "rollout %d", number);
    assert_mentions(&err, want);
    assert_mentions(&err, "entry 1");

    const struct toy_model greedy = toy_model(TOY_GREEDY, 1);
    tr->model = &greedy.base;
    plan.index = 77;
    assert_fails(opc_rollout_run(w, &plan, d, &report, &err), OPC_EDIVERGED, &err, "rollout 77");
    assert_mentions(&err, "reward");

    /* Otherwise it can be asked to stop, between two rounds. */
    const struct toy_model fine = toy_model(TOY_TRUTH, 1);
    int asked = 0;
    tr->model = &fine.base;
    plan.stop = after_two;
    plan.stop_ctx = &asked;
    assert_fails(opc_rollout_run(w, &plan, d, &report, &err), OPC_ESTOPPED, &err, "imagining");
    assert_int_equal(opc_imagined_rollouts(d), 2 * 64);
    opc_imagined_destroy(d);
    opc_rollout_destroy(w);
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

static void plans_that_cannot_work_are_refused(void **state)
{
    (void)state;
    struct opc_episodes *past = played(true, 0.1);
    const struct toy_model model = toy_model(TOY_TRUTH, 1);
    struct opc_transition *tr = made("corrected", past, &model.base, NULL);
    const struct opc_imagined_shape shape = {
        OPC_SIZED(struct opc_imagined_shape), .obs = OBS,  .act = ACT,       .longest = 2,
        .forget = OPC_FORGET_EPOCHS,          .retain = 1, .transitions = 10};
    struct opc_imagined *d;
    struct opc_rollout *w;
    struct opc_err err;
    struct opc_rollout_report report;
    assert_ok(opc_imagined_create(&shape, &d, &err), &err);
    assert_ok(opc_rollout_create(OBS, ACT, H, 10, &w, &err), &err);
    opc_imagined_open_epoch(d, 0);
    struct opc_rollout_plan plan = {
        .transition = tr, .act = act_zero, .horizon = H + 1, .transitions = 50};
    assert_fails(opc_rollout_run(w, &plan, d, &report, &err), OPC_EBUG, &err, "3 + 2");
    assert_mentions(&err, "11");
    plan.horizon = H;
    assert_fails(opc_rollout_run(w, &plan, d, &report, &err), OPC_EBUG, &err, "1 to 2");
    toy_play(past, 5, false, false, 0, 99);
    char steps[2][16];
    snprintf(steps[0], sizeof steps[0], "%d", opc_episodes_steps(past) - 5);
    snprintf(steps[1], sizeof steps[1], "%d", opc_episodes_steps(past));
    assert_fails(opc_rollout_run(w, &plan, d, &report, &err), OPC_EBUG, &err, "refresh");
    assert_mentions(&err, steps[0]);
    assert_mentions(&err, steps[1]);
    struct opc_episodes *none;
    assert_ok(opc_episodes_create(OBS, ACT, 10, 1, &none, &err), &err);
    tr->past = none;
    tr->filled = 0;
    assert_fails(opc_rollout_run(w, &plan, d, &report, &err), OPC_EBUG, &err, "before");
    assert_int_equal(opc_rollout_create(OBS, ACT, 0, 10, &w, &err), OPC_EBUG);
    opc_imagined_destroy(d);
    opc_rollout_destroy(w);
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
    opc_episodes_destroy(none);
}

static int create(void *ctx, struct opc_err *err)
{
    (void)ctx;
    struct opc_rollout *w;
    const int code = opc_rollout_create(17, 6, 10, 100, &w, err);
    if (!code)
        opc_rollout_destroy(w);
    return code;
}

static void lack_of_memory_is_reported(void **state)
{
    (void)state;
    assert_survives_lack_of_memory(create, NULL);
    opc_rollout_destroy(NULL);
    /* half-cheetah: 11 records of 100 bytes and about 300 more for each row */
    assert_in_range(opc_rollout_need(17, 6, 10, 1), 1100, 1500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_policy_corrected_rollouts_are_replayed_ones),
        cmocka_unit_test(threads_and_rows_at_a_time_change_no_bit),
        cmocka_unit_test(they_are_the_first_that_hold_n_transitions),
        cmocka_unit_test(a_second_call_goes_on_where_the_first_ended),
        cmocka_unit_test(seed_epoch_and_number_name_a_rollout),
        cmocka_unit_test(a_window_changes_where_rollouts_are_but_not_what_they_are),
        cmocka_unit_test(any_recorded_step_is_an_equally_likely_start),
        cmocka_unit_test(a_share_of_the_rollouts_starts_anywhere_in_the_past),
        cmocka_unit_test(the_papers_law_draws_the_episode_first),
        cmocka_unit_test(they_end_at_terminal_states_at_the_recordings_end_and_at_the_horizon),
        cmocka_unit_test(a_report_has_the_extremes_of_what_was_stored),
        cmocka_unit_test(a_refused_step_is_not_stored_and_ends_its_rollout),
        cmocka_unit_test(learned_rollouts_do_not_end_with_the_recording),
        cmocka_unit_test(an_elite_is_drawn_for_each_step_or_for_each_rollout),
        cmocka_unit_test(a_model_that_diverges_stops_them_and_is_named),
        cmocka_unit_test(plans_that_cannot_work_are_refused),
        cmocka_unit_test(lack_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
