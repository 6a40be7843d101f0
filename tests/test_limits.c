/* SPDX-License-Identifier: MIT */
/* The limits that end imagined rollouts: bounds, drift, disagreement, and references that fell
 * alone. Each formula is checked by hand and written a second time; a limited rollout must be the
 * unlimited one up to the first step that the second writing refuses. How wide bounds are is in
 * test_bounds.c. */
#include "rollouts.h"

#include "agent/sac.h"
#include "test_net.h"

enum { ROLLOUTS = 700, SEED = 21, EPOCH = 4, FIRST = 50 };
static const int ROWS[] = {1, 7, 513, 4000};

static void terminal_far_out(void *ctx, int n, const float *s, const float *a, const float *next,
                             bool *out)
{
    (void)ctx, (void)s, (void)a;
    for (int i = 0; i < n; i++)
        out[i] = fabsf(next[i * OBS]) > 0.9f;
}

/* ---- limited rollouts are unlimited ones that end earlier ------------------------------------ */

/* A step as it was stored, with the recorded step it walked along. */
struct taken {
    const struct opc_transition *tr;
    int b, t;            /* of the reference; t may lie past its end by eq. 2 */
    const float *record; /* s, a, r, mark; then s' */
};
typedef bool refused_fn(void *ctx, const struct taken *);

static void find_start(const struct opc_episodes *past, int number, int *b, int *t)
{
    struct opc_rng rng = opc_rng_stream(SEED, OPC_USE_START, EPOCH, (uint32_t)(FIRST + number));
    opc_episodes_find(past, (int)opc_rng_below(&rng, (uint32_t)opc_episodes_steps(past)), b, t);
}

static void compare_steps(const float *got, const float *all, int steps,
                          const struct opc_bounds *clip)
{
    for (int i = 0; i < steps; i++) {
        float want[STRIDE];
        memcpy(want, all + i * STRIDE, sizeof want);
        float *r = &want[OBS + ACT];
        if (clip)
            *r = fminf(fmaxf(*r, clip->reward_low), clip->reward_high);
        assert_same_bits(got + i * STRIDE, want, sizeof want);
    }
    assert_same_bits(got + steps * STRIDE, all + steps * STRIDE, OBS * sizeof(float));
    assert_true(got[steps * STRIDE + STRIDE - 1] == OPC_RECORD_END);
}

/* Returns how many rollouts of `all` the limit ends, after comparing what it leaves with `got`.
 * Bounds also clip the rewards that are stored, but not those that are reported. */
static size_t compare_cut(const struct opc_transition *tr, const struct opc_imagined *all,
                          const struct opc_imagined *got, const struct opc_bounds *clip,
                          const struct opc_rollout_report *report, refused_fn *refused, void *ctx)
{
    struct opc_rollout_rows x, y;
    uint64_t at = 0, too = 0;
    size_t cut = 0;
    float r_min = INFINITY, r_max = -INFINITY;
    for (int number = 0, b, t; opc_imagined_next(all, &at, &x); number++) {
        int steps = 0;
        find_start(tr->past, number, &b, &t);
        while (steps < x.steps &&
               !refused(ctx, &(struct taken){tr, b, t + steps, x.records + steps * STRIDE}))
            steps++;
        cut += steps < x.steps;
        if (steps == 0)
            continue;
        assert_true(opc_imagined_next(got, &too, &y));
        assert_int_equal(y.steps, steps);
        compare_steps(y.records, x.records, steps, clip);
        for (int i = 0; i < steps; i++) {
            r_min = fminf(r_min, x.records[i * STRIDE + OBS + ACT]);
            r_max = fmaxf(r_max, x.records[i * STRIDE + OBS + ACT]);
        }
    }
    assert_false(opc_imagined_next(got, &too, &y));
    assert_true(report->reward_min == r_min && report->reward_max == r_max);
    return cut;
}

/* The same with any number of threads and rows at a time. Returns how many rollouts were ended. */
static size_t limited(struct opc_rollout_plan plan, struct opc_limits limits, enum opc_end why,
                      refused_fn *refused, void *ctx)
{
    struct opc_rollout_report report;
    plan.rollouts = ROLLOUTS;
    plan.seed = SEED;
    plan.epoch = EPOCH;
    plan.index = FIRST;
    struct opc_imagined *all = rollouts_of(&plan, 1000, &report);
    const struct opc_disagreement_state before =
        limits.disagreement ? limits.disagreement->now : (struct opc_disagreement_state){0};
    size_t cut = 0;
    plan.limits = limits;
    for (int i = 0; i < 4; i++) {
        struct opc_err err;
        if (limits.disagreement)
            limits.disagreement->now = before;
        assert_ok(opc_pool_create(THREADS[i], &plan.pool, &err), &err);
        struct opc_imagined *got = rollouts_of(&plan, ROWS[i], &report);
        cut = compare_cut(plan.transition, all, got, limits.bounds, &report, refused, ctx);
        assert_int_equal(report.end[why], cut);
        assert_int_equal(report.rollouts, ROLLOUTS);
        opc_imagined_destroy(got);
        opc_pool_destroy(plan.pool);
    }
    opc_imagined_destroy(all);
    return cut;
}

static bool never(void *ctx, const struct taken *taken)
{
    (void)ctx, (void)taken;
    return false;
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/* The range of the recording, a quarter wider for states and a tenth for rewards. */
struct box {
    float low[OBS], high[OBS];
    struct opc_bounds bounds;
};

static void box_of(const struct opc_episodes *past, struct box *box)
{
    float min[OBS], max[OBS], r_min = INFINITY, r_max = -INFINITY;
    for (int k = 0; k < OBS; k++) {
        min[k] = INFINITY;
        max[k] = -INFINITY;
    }
    for (int b = 0; b < opc_episodes_count(past); b++)
        for (int t = 0; t < opc_episodes_length(past, b); t++) {
            const struct opc_step step = opc_episodes_at(past, b, t);
            for (int k = 0; k < OBS; k++) {
                min[k] = fminf(min[k], fminf(step.state[k], step.next[k]));
                max[k] = fmaxf(max[k], fmaxf(step.state[k], step.next[k]));
            }
            r_min = fminf(r_min, step.reward);
            r_max = fmaxf(r_max, step.reward);
        }
    for (int k = 0; k < OBS; k++) {
        box->low[k] = min[k] - 0.25f * (max[k] - min[k]);
        box->high[k] = max[k] + 0.25f * (max[k] - min[k]);
    }
    box->bounds = (struct opc_bounds){.obs = OBS,
                                      .act = ACT,
                                      .low = box->low,
                                      .high = box->high,
                                      .reward_min = r_min,
                                      .reward_max = r_max,
                                      .reward_low = r_min - 0.1f * (r_max - r_min),
                                      .reward_high = r_max + 0.1f * (r_max - r_min)};
}

static bool leaves(void *ctx, const struct taken *taken)
{
    const struct box *box = ctx;
    const float *next = taken->record + STRIDE;
    for (int k = 0; k < OBS; k++)
        if (next[k] < box->low[k] || next[k] > box->high[k])
            return true;
    return false;
}

/* The truth with noise by eq. 2, whose elite 0 promises 1,000,000; and a wrong model by eq. 5. */
static void a_rollout_ends_before_it_leaves_the_box_and_its_rewards_are_clipped(void **state)
{
    (void)state;
    static const char *const NAME[] = {"learned", "corrected"};
    static const enum toy_kind KIND[] = {TOY_RICH, TOY_LINEAR};
    struct opc_episodes *past = played(true, 0.1);
    for (int m = 0; m < 2; m++) {
        const struct toy_model model = toy_model(KIND[m], ELITES);
        struct opc_transition *tr = made(NAME[m], past, &model.base, NULL);
        struct opc_rollout_plan plan = {.transition = tr, .act = act_at_random, .horizon = H};
        struct box box;
        box_of(past, &box);
        const struct opc_limits limits = {.bounds = &box.bounds};
        const size_t cut = limited(plan, limits, OPC_END_BOUND, leaves, &box);
        assert_in_range(cut, ROLLOUTS / 20, ROLLOUTS - 1);
        /* clipping has had something to do at both ends, which the report still shows */
        struct opc_rollout_report report;
        plan.rollouts = ROLLOUTS;
        plan.limits = limits;
        opc_imagined_destroy(rollouts_of(&plan, 900, &report));
        assert_true(report.reward_max > (m ? box.bounds.reward_high : 9e5f));
        assert_true(report.reward_min < box.bounds.reward_low);
        opc_transition_destroy(tr);
    }
    opc_episodes_destroy(past);
}

/* On the recording nothing reaches the box, and every reward is one that was recorded. */
static void within_the_box_bounds_change_no_bit(void **state)
{
    (void)state;
    struct opc_episodes *past = played(false, 0.3);
    const struct toy_model model = toy_model(TOY_NONSENSE, ELITES);
    struct opc_transition *tr = made("corrected", past, &model.base, NULL);
    struct opc_rollout_plan plan = {
        .transition = tr, .act = act_by_policy, .horizon = H, .rollouts = ROLLOUTS};
    struct opc_rollout_report report;
    struct box box;
    box_of(past, &box);
    struct opc_imagined *without = rollouts_of(&plan, 900, &report);
    plan.limits = (struct opc_limits){.bounds = &box.bounds};
    struct opc_imagined *with = rollouts_of(&plan, 900, &report);
    assert_same_rollouts(with, without);
    assert_int_equal(report.end[OPC_END_BOUND], 0);
    opc_imagined_destroy(with);
    opc_imagined_destroy(without);
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

/* Target critics far beyond any sum of rewards, and one update from these steps. */
static struct opc_agent_report update_from(struct opc_imagined *imagined, const struct box *box,
                                           bool bound_targets)
{
    struct opc_sac_config config;
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    struct opc_agent *agent;
    struct parts parts = {0};
    struct opc_err err;
    assert_ok(opc_section_defaults(&opc_sac_section, &config, &err), &err);
    config.policy_hidden = config.critic_hidden = (struct opc_ints){1, {8}};
    config.bound_targets = bound_targets;
    config.batch_size = 1000;
    config.discount = 0.9;
    config.alpha = 1e-8; /* the entropy bonus of an action is not part of the promise */
    config.tune_entropy = false;
    const struct opc_agent_args args = {OPC_SIZED(struct opc_agent_args),
                                        .obs = OBS,
                                        .act = ACT,
                                        .seed = SEED,
                                        .config = &config,
                                        .target_entropy = -ACT};
    assert_ok(opc_agent_create("sac", &args, &agent, &err), &err);
    assert_ok(agent->type->state(agent, note_part, &parts, &err), &err);
    float *targets = part_of(&parts, "sac.targets");
    for (int k = 0; k < 100; k++) /* the first layer of the first of them */
        targets[k] *= 1e6f;
    const struct opc_feed feed = {OPC_SIZED(struct opc_feed),
                                  .draw = opc_imagined_draw,
                                  .ctx = imagined,
                                  .seed = SEED,
                                  .reward_low = box->bounds.reward_low,
                                  .reward_high = box->bounds.reward_high};
    assert_ok(opc_agent_improve(agent, &feed, 1, &report, &err), &err);
    opc_agent_destroy(agent);
    return report;
}

/* sac.bound_targets clips Q' and takes rewards as they are stored; it is opc.bounds that clips
 * these. Only the two together keep a model's impossible reward out of the targets. */
static void with_both_bounds_no_target_is_beyond_what_rewards_can_add_up_to(void **state)
{
    (void)state;
    struct opc_episodes *past = played(true, 0.1);
    const struct toy_model model = toy_model(TOY_RICH, ELITES);
    struct opc_transition *tr = made("learned", past, &model.base, NULL);
    struct box box;
    box_of(past, &box);
    const double high = fmax(0, (double)box.bounds.reward_high) / (1 - 0.9);
    const double low = fmin(0, (double)box.bounds.reward_low) / (1 - 0.9);
    for (int bounds = 0; bounds < 2; bounds++) {
        const struct opc_rollout_plan plan = {.transition = tr,
                                              .act = act_at_random,
                                              .horizon = H,
                                              .rollouts = ROLLOUTS,
                                              .limits = {.bounds = bounds ? &box.bounds : NULL}};
        struct opc_rollout_report imagined;
        struct opc_imagined *d = rollouts_of(&plan, 900, &imagined);
        for (int bound_targets = 0; bound_targets < 2; bound_targets++) {
            const struct opc_agent_report report = update_from(d, &box, bound_targets);
            const double min = report.value[OPC_SAC_TARGET_MIN];
            const double max = report.value[OPC_SAC_TARGET_MAX];
            assert_true((max <= high * (1 + 1e-6) && min >= low * (1 + 1e-6)) ==
                        (bounds && bound_targets));
            assert_true((max > 9e5) == !bounds); /* the reward itself */
        }
        opc_imagined_destroy(d);
    }
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

/* ---- drift ----------------------------------------------------------------------------------- */

static void drift_is_a_root_mean_square_of_standard_deviations(void **state)
{
    (void)state;
    struct opc_drift *drift;
    struct opc_err err;
    float mean[] = {0, -100, 5, 2e7f}, inverse[] = {0.5f, 4, 1e9f, 1};
    const struct opc_scaler states = {.dim = 4, .mean = mean, .inverse = inverse};
    const float ref[] = {1, 2, 3, 4}, s[] = {5, 2.25f, 6, 6};
    assert_ok(opc_drift_create(4, 1, &drift, &err), &err);
    assert_true(fabs(opc_drift_between(drift, s, ref) - sqrt((16 + 0.0625 + 9 + 4) / 4)) < 1e-12);
    opc_drift_update(drift, &states);
    /* 4 x 0.5, 0.25 x 4; the other two hardly move, one of them for its size, and keep their unit
     */
    assert_true(fabs(opc_drift_between(drift, s, ref) - sqrt((4 + 1 + 9 + 4) / 4.0)) < 1e-12);
    assert_true(opc_drift_between(drift, ref, ref) == 0);
    opc_drift_destroy(drift);
    opc_drift_destroy(NULL);
}

static float SCALE[OBS] = {2, 3, 5};

static bool too_far(void *ctx, const struct taken *taken)
{
    const struct opc_episodes *past = taken->tr->past;
    double squares = 0;
    if (taken->t >= opc_episodes_length(past, taken->b))
        return false; /* eq. 2 has outlived its recording */
    const struct opc_step ref = opc_episodes_at(past, taken->b, taken->t);
    for (int k = 0; k < OBS; k++) {
        const double x = (double)(taken->record[STRIDE + k] - ref.next[k]) * (double)SCALE[k];
        squares += x * x / OBS;
    }
    return squares > *(const double *)ctx * *(const double *)ctx;
}

static void a_rollout_ends_before_it_drifts_too_far(void **state)
{
    (void)state;
    static const char *const NAME[] = {"learned", "corrected"};
    struct opc_episodes *past = played(true, 0.1);
    const struct toy_model model = toy_model(TOY_TRUTH, ELITES);
    for (int m = 0; m < 2; m++) {
        struct opc_transition *tr = made(NAME[m], past, &model.base, NULL);
        const struct opc_rollout_plan plan = {
            .transition = tr, .act = act_at_random, .terminal = terminal_far_out, .horizon = H};
        double L = m ? 1 : 2;
        const struct opc_drift drift = {OBS, L, SCALE};
        const size_t cut =
            limited(plan, (struct opc_limits){.drift = &drift}, OPC_END_DRIFT, too_far, &L);
        assert_in_range(cut, ROLLOUTS / 20, ROLLOUTS * 19 / 20);
        opc_transition_destroy(tr);
    }
    opc_episodes_destroy(past);
}

/* ---- a reference that fell alone ------------------------------------------------------------- */

static bool only_reference_fell(void *ctx, const struct taken *taken)
{
    const struct opc_episodes *past = taken->tr->past;
    (void)ctx;
    return opc_episodes_at(past, taken->b, taken->t).terminal &&
           taken->record[STRIDE - 1] != OPC_RECORD_TERMINAL;
}

static void no_step_is_stored_where_only_the_reference_fell(void **state)
{
    (void)state;
    struct opc_episodes *past = played(true, 0.1);
    const struct toy_model model = toy_model(TOY_TRUTH, ELITES);
    struct opc_transition *tr = made("corrected", past, &model.base, NULL);
    struct opc_rollout_plan plan = {
        .transition = tr, .act = act_at_random, .terminal = terminal_far_out, .horizon = H};
    const struct opc_limits drop = {.drop = true};
    const size_t cut = limited(plan, drop, OPC_END_DROPPED, only_reference_fell, NULL);
    assert_in_range(cut, ROLLOUTS / 50, ROLLOUTS / 2);
    opc_transition_destroy(tr);

    /* Eq. 2 needs no reference, so what became of it does not matter. */
    plan.transition = tr = made("learned", past, &model.base, NULL);
    assert_int_equal(limited(plan, drop, OPC_END_DROPPED, never, NULL), 0);
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

/* ---- disagreement ---------------------------------------------------------------------------- */

static struct opc_disagreement *disagreement(double factor, int capacity)
{
    struct opc_disagreement *d;
    struct opc_err err;
    assert_ok(opc_disagreement_create(OBS, ACT, capacity, factor, &d, &err), &err);
    return d;
}

/* Two episodes of 12 steps, s = (t, b, t), r = t: the targets are 1, 0, 1 and t. */
static struct opc_episodes *numbered(void)
{
    const float zero[ACT] = {0};
    struct opc_episodes *past;
    struct opc_err err;
    assert_ok(opc_episodes_create(OBS, ACT, 24, 2, &past, &err), &err);
    for (int b = 0; b < 2; b++) {
        assert_ok(opc_episodes_begin(past, (double[]){0, b, 0}, &err), &err);
        for (int t = 0; t < 12; t++)
            assert_ok(opc_episodes_append(past, zero, t, (double[]){t + 1, b, t + 1}, false, &err),
                      &err);
        opc_episodes_close(past);
    }
    return past;
}

/* f_k = s + 1 + k, reward k, with k = 0, 1, 2: a variance of 2/3 in every column by eq. 2, whose
 * first three targets never vary, and whose fourth has a variance of (12^2 - 1) / 12. By eq. 5 the
 * elites add the same, s - s_ref, wherever the row is. */
static void disagreement_is_a_mean_of_variances_in_units_of_the_targets(void **state)
{
    (void)state;
    struct opc_episodes *past = numbered();
    const struct toy_model model = toy_model(TOY_ELITE, 3);
    struct opc_disagreement *d = disagreement(2, 2);
    const int episode[] = {0, 1}, time[] = {3, 7}, elite[] = {2, 1};
    const float s[2][OBS] = {{3, 0, 3}, {1, 4, 9}};
    float a[2][ACT] = {{0}}, next[2][OBS], reward[2], work[2][COLUMNS];
    struct opc_rng rng[2];
    struct opc_walk walk = {.n = 2,
                            .episode = episode,
                            .time = time,
                            .elite = elite,
                            .state = s[0],
                            .action = a[0],
                            .next = next[0],
                            .reward = reward,
                            .rng = rng,
                            .work = work[0]};
    opc_disagreement_update(d, past);
    for (int corrected = 0; corrected < 2; corrected++) {
        struct opc_transition *tr =
            made(corrected ? "corrected" : "learned", past, &model.base, NULL);
        const double want = corrected ? 0 : 2.0 / 3 * (3 + 12 / 143.0) / 4;
        for (uint32_t i = 0; i < 2; i++)
            rng[i] = opc_rng_stream(1, OPC_USE_TEST, 0, i);
        opc_transition_step(tr, &walk, NULL);
        opc_disagreement_measure(d, tr, &walk, NULL);
        for (int i = 0; i < 2; i++)
            assert_true(fabs(d->u[i] - want) <= 1e-12 * want);
        opc_transition_destroy(tr);
    }
    opc_disagreement_destroy(d);
    opc_episodes_destroy(past);
}

static void kappa_is_a_running_mean_over_simulations(void **state)
{
    (void)state;
    struct opc_disagreement *d = disagreement(2, 10);
    assert_true(isinf(d->limit));
    for (int i = 0; i < 100; i++)
        d->first[i] = 37 * i % 100; /* 0 .. 99 in some order: the quantile is 94.05 */
    opc_disagreement_set_limit(d, 100);
    assert_true(fabs(d->limit - 188.1) < 1e-9);
    for (int i = 0; i < 10; i++)
        d->first[i] = 1;
    opc_disagreement_set_limit(d, 10);
    assert_true(fabs(d->limit - (188.1 + 2) / 2) < 1e-9);
    opc_disagreement_set_limit(d, 10);
    assert_true(fabs(d->limit - (188.1 + 4) / 3) < 1e-9 && d->now.count == 3);
    opc_disagreement_destroy(d);
}

/* u of a step in double, in two passes over the elites. */
static double disagreement_of(const struct opc_disagreement *d, enum toy_kind kind,
                              const struct taken *taken)
{
    const bool corrected = taken->tr->f_ref;
    double c[ELITES][COLUMNS], u = 0;
    for (int k = 0; k < ELITES; k++) {
        float f[COLUMNS], f_ref[COLUMNS] = {0};
        toy_f(kind, taken->record, taken->record + OBS, k, f);
        if (corrected) {
            const struct opc_step ref = opc_episodes_at(taken->tr->past, taken->b, taken->t);
            toy_f(kind, ref.state, ref.action, k, f_ref);
        }
        for (int j = 0; j < COLUMNS; j++)
            c[k][j] = (double)(f[j] - f_ref[j]);
    }
    for (int j = 0; j < COLUMNS; j++) {
        double mean = 0, variance = 0;
        for (int k = 0; k < ELITES; k++)
            mean += c[k][j] / ELITES;
        for (int k = 0; k < ELITES; k++)
            variance += (c[k][j] - mean) * (c[k][j] - mean) / ELITES;
        u += variance * d->weight[j];
    }
    return u;
}

struct judge {
    const struct opc_disagreement *d;
    double kappa;
};

static bool disagree(void *ctx, const struct taken *taken)
{
    const struct judge *judge = ctx;
    return disagreement_of(judge->d, TOY_LINEAR, taken) > judge->kappa;
}

/* kappa of a simulation of ROLLOUTS rollouts, from the first step of each. */
static double kappa_of(const struct opc_disagreement *d, const struct opc_rollout_plan *plan)
{
    double u[ROLLOUTS] = {0};
    struct opc_rollout_report report;
    struct opc_rollout_rows rows;
    struct opc_rollout_plan one = *plan;
    one.horizon = 1;
    one.rollouts = ROLLOUTS;
    one.seed = SEED;
    one.epoch = EPOCH;
    one.index = FIRST;
    struct opc_imagined *all = rollouts_of(&one, 100, &report);
    uint64_t at = 0;
    for (int number = 0, b, t; opc_imagined_next(all, &at, &rows); number++) {
        find_start(plan->transition->past, number, &b, &t);
        u[number] =
            disagreement_of(d, TOY_LINEAR, &(struct taken){plan->transition, b, t, rows.records});
    }
    opc_imagined_destroy(all);
    /* the 0.95-quantile of 700 numbers lies between the 665th and the 666th */
    for (int i = 0; i < ROLLOUTS; i++)
        for (int k = i; k > 0 && u[k] < u[k - 1]; k--) {
            const double low = u[k];
            u[k] = u[k - 1];
            u[k - 1] = low;
        }
    const double place = 0.95 * (ROLLOUTS - 1);
    const int below = (int)place;
    return d->factor * (u[below] + (place - below) * (u[below + 1] - u[below]));
}

static void a_rollout_ends_where_the_elites_disagree(void **state)
{
    (void)state;
    static const char *const NAME[] = {"learned", "corrected"};
    struct opc_episodes *past = played(true, 0.1);
    const struct toy_model model = toy_model(TOY_LINEAR, ELITES);
    for (int m = 0; m < 2; m++) {
        struct opc_transition *tr = made(NAME[m], past, &model.base, NULL);
        const struct opc_rollout_plan plan = {.transition = tr, .act = act_at_random, .horizon = 3};
        struct opc_disagreement *d = disagreement(1.5, 4000);
        opc_disagreement_update(d, past);
        /* as if one simulation had had half of this one's kappa */
        const double kappa = kappa_of(d, &plan);
        d->now = (struct opc_disagreement_state){kappa / 2, 1};
        struct judge judge = {d, 0.75 * kappa};
        const size_t cut = limited(plan, (struct opc_limits){.disagreement = d},
                                   OPC_END_DISAGREEMENT, disagree, &judge);
        assert_in_range(cut, ROLLOUTS / 20, ROLLOUTS - 1);
        assert_true(fabs(d->limit - judge.kappa) < 1e-9 * judge.kappa);
        assert_int_equal(d->now.count, 2);
        opc_disagreement_destroy(d);
        opc_transition_destroy(tr);
    }
    opc_episodes_destroy(past);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* The paper's claim once more: a deterministic policy stays on the recording it made, where nothing
 * has drifted and the worst of models does not disagree with itself. */
static void on_policy_no_limit_ends_a_corrected_rollout(void **state)
{
    (void)state;
    struct opc_episodes *past = played(false, 0.3);
    const struct toy_model model = toy_model(TOY_NONSENSE, ELITES);
    struct opc_transition *tr = made("corrected", past, &model.base, NULL);
    const struct opc_drift drift = {OBS, 1e-30, SCALE};
    struct opc_disagreement *d = disagreement(1e-6, 4000);
    const struct opc_rollout_plan plan = {.transition = tr, .act = act_by_policy, .horizon = H};
    const struct opc_limits limits = {.drift = &drift, .disagreement = d};
    opc_disagreement_update(d, past);
    assert_int_equal(limited(plan, limits, OPC_END_DRIFT, never, NULL), 0);
    assert_true(d->limit == 0); /* u is 0, to the bit, in every first step */
    opc_disagreement_destroy(d);
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

/* Runs until it fails, and returns with which code. */
static int fails(struct opc_rollout_plan plan, int rows, struct opc_err *err)
{
    const struct opc_imagined_shape shape = {
        OPC_SIZED(struct opc_imagined_shape), .obs = OBS,  .act = ACT,         .longest = H,
        .forget = OPC_FORGET_EPOCHS,          .retain = 1, .transitions = 1000};
    struct opc_rollout_report report;
    struct opc_imagined *d;
    struct opc_rollout *w;
    plan.horizon = H;
    plan.transitions = plan.transitions ? plan.transitions : 500;
    assert_ok(opc_imagined_create(&shape, &d, err), err);
    assert_ok(opc_rollout_create(OBS, ACT, H, rows, &w, err), err);
    opc_imagined_open_epoch(d, 0);
    const int code = opc_rollout_run(w, &plan, d, &report, err);
    opc_rollout_destroy(w);
    opc_imagined_destroy(d);
    return code;
}

/* A seed whose rollout 0 begins with a step of elite 0. */
static uint64_t seed_of_elite_0(void)
{
    for (uint64_t seed = 0;; seed++) {
        struct opc_rng rng = opc_rng_stream(seed, OPC_USE_ROLLOUT, 0, 0);
        if (opc_rng_below(&rng, ELITES) == 0)
            return seed;
    }
}

static void a_limit_that_refuses_everything_is_named(void **state)
{
    (void)state;
    struct opc_err err;
    struct opc_episodes *past = played(true, 0.1), *falls;
    const struct toy_model model = toy_model(TOY_LINEAR, ELITES);
    struct opc_transition *tr = made("corrected", past, &model.base, NULL);
    struct opc_rollout_plan plan = {.transition = tr, .act = act_at_random};
    float low[OBS] = {1e6f, 0, 0}, high[OBS] = {2e6f, 1, 1};
    const struct opc_bounds bounds = {.obs = OBS, .act = ACT, .low = low, .high = high};
    plan.limits = (struct opc_limits){.bounds = &bounds};
    assert_fails(fails(plan, 900, &err), OPC_EREFUSED, &err, "end_bound");
    const struct opc_drift drift = {OBS, 1e-30, SCALE};
    plan.limits = (struct opc_limits){.drift = &drift};
    assert_fails(fails(plan, 900, &err), OPC_EREFUSED, &err,
                 "100 % ended by opc.max_drift (end_drift)");
    assert_null(strstr(err.text, "diverge"));
    /* two limits that share the work: bounds refuse what is left of 0, the drift limit the rest */
    float left[OBS] = {0, -1e6f, -1e6f}, far[OBS] = {1e6f, 1e6f, 1e6f};
    const struct opc_bounds half = {.obs = OBS, .act = ACT, .low = left, .high = far};
    plan.limits = (struct opc_limits){.bounds = &half, .drift = &drift};
    assert_fails(fails(plan, 900, &err), OPC_EREFUSED, &err, " % by opc.");
    assert_mentions(&err, "end_bound");
    assert_mentions(&err, "end_drift");
    /* after very many simulations on-policy, whose kappa is 0 */
    struct opc_disagreement *d = disagreement(2, 900);
    opc_disagreement_update(d, past);
    d->now.count = UINT64_C(1) << 60;
    plan.limits = (struct opc_limits){.disagreement = d};
    assert_fails(fails(plan, 900, &err), OPC_EREFUSED, &err, "end_disagreement");
    assert_fails(fails(plan, 901, &err), OPC_EBUG, &err, "900"); /* it has memory for fewer rows */
    opc_transition_destroy(tr);

    /* elites that predict no number at all, in the step itself and beside it */
    static const enum toy_kind KIND[] = {TOY_BROKEN, TOY_TORN};
    static const char *const WHY[] = {"entry 1", "a member"};
    for (int k = 0; k < 2; k++) {
        const struct toy_model torn = toy_model(KIND[k], ELITES);
        plan.transition = tr = made("learned", past, &torn.base, NULL);
        tr->sample = false;
        plan.seed = seed_of_elite_0();
        assert_fails(fails(plan, 900, &err), OPC_EDIVERGED, &err, WHY[k]);
        opc_transition_destroy(tr);
    }

    /* every episode falls in its first step */
    assert_ok(opc_episodes_create(OBS, ACT, 20, 20, &falls, &err), &err);
    for (uint32_t b = 0; b < 20; b++)
        toy_play(falls, 1, true, true, 0.1, b);
    plan.transition = tr = made("corrected", falls, &model.base, NULL);
    plan.limits = (struct opc_limits){.drop = true};
    assert_fails(fails(plan, 900, &err), OPC_EREFUSED, &err, "end_reference");
    opc_transition_destroy(tr);
    opc_disagreement_destroy(d);
    opc_episodes_destroy(past);
    opc_episodes_destroy(falls);
}

/* Keeps about one step in *ctx, by digits of s' that are as good as random. */
static void keep_few(void *ctx, int n, const float *s, const float *a, const float *next, bool *out)
{
    const int few = *(const int *)ctx;
    (void)s, (void)a;
    for (int i = 0; i < n; i++)
        out[i] = (int)(fabsf(next[i * OBS]) * 1e5f) % few != 0;
}

/* Algorithm 2 goes on while one rollout in fifty is kept, and gives up where it is one in a
 * thousand, at the same rollout however many advance together. */
static void a_limit_that_leaves_hardly_anything_is_not_waited_for(void **state)
{
    (void)state;
    struct opc_err err, again;
    struct opc_episodes *past = played(true, 0.1);
    const struct toy_model model = toy_model(TOY_LINEAR, ELITES);
    struct opc_transition *tr = made("corrected", past, &model.base, NULL);
    int few = 50;
    struct opc_rollout_plan plan = {.transition = tr,
                                    .act = act_at_random,
                                    .horizon = H,
                                    .transitions = 4000,
                                    .refuse = keep_few,
                                    .refuse_ctx = &few};
    struct opc_rollout_report report;
    opc_imagined_destroy(rollouts_of(&plan, 4000, &report));
    assert_true(report.transitions >= 4000 && report.empty > 100000);
    assert_true(report.empty < report.rollouts);
    few = 1000;
    assert_fails(fails(plan, 4000, &err), OPC_EREFUSED, &err, "100000 of 100");
    assert_fails(fails(plan, 70, &again), OPC_EREFUSED, &again, "100000 of 100");
    assert_true(strtoul(err.text, NULL, 10) == 100000);
    /* "100000 of N": the same N */
    assert_int_equal(strncmp(err.text, again.text, sizeof "100000 of 100000" - 1), 0);
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

/* A plan for a number of rollouts may come out empty; its caller knows what there is besides. */
static void a_number_of_rollouts_may_all_be_refused(void **state)
{
    (void)state;
    struct opc_episodes *past = played(true, 0.1);
    const struct toy_model model = toy_model(TOY_LINEAR, ELITES);
    struct opc_transition *tr = made("corrected", past, &model.base, NULL);
    const struct opc_drift drift = {OBS, 1e-30, SCALE};
    const struct opc_rollout_plan plan = {.transition = tr,
                                          .act = act_at_random,
                                          .horizon = H,
                                          .rollouts = 40,
                                          .limits = {.drift = &drift}};
    struct opc_rollout_report report;
    struct opc_imagined *d = rollouts_of(&plan, 7, &report);
    assert_int_equal(opc_imagined_transitions(d), 0);
    assert_int_equal(report.empty, 40);
    assert_int_equal(report.index, 40);
    assert_int_equal(report.end[OPC_END_DRIFT], 40);
    opc_imagined_destroy(d);
    opc_transition_destroy(tr);
    opc_episodes_destroy(past);
}

static int create_both(void *ctx, struct opc_err *err)
{
    struct opc_drift *drift;
    struct opc_disagreement *d;
    (void)ctx;
    int code = opc_drift_create(OBS, 1, &drift, err);
    if (code)
        return code;
    code = opc_disagreement_create(OBS, ACT, 100, 2, &d, err);
    if (!code)
        opc_disagreement_destroy(d);
    opc_drift_destroy(drift);
    return code;
}

static void lack_of_memory_is_an_error(void **state)
{
    (void)state;
    assert_survives_lack_of_memory(create_both, NULL);
    opc_disagreement_destroy(NULL);
    /* 18 columns of a float and two doubles for each row, and 1,000 first steps */
    assert_in_range(opc_disagreement_need(17, 1000), 360000 + 8000, 400000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rollout_ends_before_it_leaves_the_box_and_its_rewards_are_clipped),
        cmocka_unit_test(within_the_box_bounds_change_no_bit),
        cmocka_unit_test(with_both_bounds_no_target_is_beyond_what_rewards_can_add_up_to),
        cmocka_unit_test(drift_is_a_root_mean_square_of_standard_deviations),
        cmocka_unit_test(a_rollout_ends_before_it_drifts_too_far),
        cmocka_unit_test(no_step_is_stored_where_only_the_reference_fell),
        cmocka_unit_test(disagreement_is_a_mean_of_variances_in_units_of_the_targets),
        cmocka_unit_test(kappa_is_a_running_mean_over_simulations),
        cmocka_unit_test(a_rollout_ends_where_the_elites_disagree),
        cmocka_unit_test(on_policy_no_limit_ends_a_corrected_rollout),
        cmocka_unit_test(a_limit_that_refuses_everything_is_named),
        cmocka_unit_test(a_limit_that_leaves_hardly_anything_is_not_waited_for),
        cmocka_unit_test(a_number_of_rollouts_may_all_be_refused),
        cmocka_unit_test(lack_of_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
