/* SPDX-License-Identifier: MIT */
/* Algorithm 1 written a second time, as plainly as it can be: one environment, one thread, nothing
 * that saves, shows or resumes. Run with the same settings it must give the same policy to the bit,
 * and the same numbers as metrics.csv. So a setting that is not handed on, a stream that is named
 * otherwise, or an action that explores where it should not, shows. */
#include "agent/sac.h"
#include "base/file.h"
#include "data/batch.h"
#include "model/ensemble.h"
#include "num/scaler.h"
#include "opc/algorithm2.h"
#include "opc/env.h"
#include "opc/mem.h"
#include "opc/train.h"
#include "run/config/config.h"
#include "run/files/json.h"
#include "run/real/onpolicy.h"
#include "runs.h"

enum {
    MAX_OBS = 8,
    MAX_ACT = 2,
    MAX_EPISODES = 70,
    MAX_RECORDED = 1000,
    WHICH_MODEL = 3,
    MIN_TO_FIT = 16
};

struct loop {
    const struct opc_values *v;
    struct opc_env *env, *other; /* to learn on, and to be judged on */
    struct opc_episodes *past;
    struct opc_predictor *model; /* NULL: opc.transition = replay */
    struct opc_transition *transition;
    struct opc_rollout *rollout;
    struct opc_imagined *imagined;
    struct opc_agent *learner;
    struct opc_mix mix;
    float *sa, *y;

    double state[MAX_OBS], total; /* of the running episode */
    int t, episode;               /* its step, and the number of the next one */
    int epoch_of[MAX_RECORDED];   /* of each recorded episode: the one it ended in */
    long steps;                   /* of all */
    int epoch, fits_ever;

    /* of an epoch, as in metrics.csv */
    int episodes, fits, rollouts;
    uint32_t next_rollout;
    long updates;
    double returns, lengths, agent[OPC_AGENT_COLUMNS];
    double reward_min, reward_max, max_std;
    double ends[OPC_ENDS];
    struct opc_disagreement *disagreement; /* NULL: no limit; its mean is kept in these two */
    double disagreement_mean;
    uint64_t simulations;
    float path[201 * (MAX_OBS + MAX_ACT + 2)];
    double eval[4]; /* mean, min, max, length */
    double best;    /* mean of all epochs */
    int recorded;   /* episodes, before it */
    struct opc_onpolicy errors;
    double model_error;
};

static uint64_t seed_of(const struct loop *loop)
{
    return (uint64_t)loop->v->train.seed;
}

static const char *transition_of(const struct loop *loop)
{
    return opc_transition_name(loop->v->opc.transition);
}

static int or_epoch(const struct loop *loop, int every)
{
    return every ? every : loop->v->train.steps_per_epoch;
}

/* ---- the real environment -------------------------------------------------------------------- */

static void begin_episode(struct loop *loop)
{
    struct opc_err err;
    struct opc_rng rng = opc_rng_stream(seed_of(loop), OPC_USE_RESET, 0, (uint32_t)loop->episode++);
    assert_ok(opc_env_reset(loop->env, &rng, loop->state, &err), &err);
    assert_ok(opc_episodes_begin(loop->past, loop->state, &err), &err);
    loop->t = 0;
    loop->total = 0;
}

static void end_episode(struct loop *loop)
{
    opc_episodes_close(loop->past);
    assert_true(opc_episodes_count(loop->past) <= MAX_RECORDED);
    loop->epoch_of[opc_episodes_count(loop->past) - 1] = loop->epoch;
    loop->episodes++;
    loop->returns += loop->total;
    loop->lengths += loop->t;
}

static void real_step(struct loop *loop, const float *a)
{
    struct opc_err err;
    struct opc_outcome out = {.obs = loop->state};
    double action[MAX_ACT];
    opc_env_scale(loop->env, a, action);
    assert_ok(opc_env_step(loop->env, action, &out, &err), &err);
    /* Out of time is not terminal. */
    assert_ok(opc_episodes_append(loop->past, a, out.reward, out.obs, out.terminated, &err), &err);
    loop->total += out.reward;
    loop->t++;
    loop->steps++;
    if (out.terminated || out.truncated)
        end_episode(loop);
}

static void play_at_random(struct loop *loop)
{
    while (opc_episodes_steps(loop->past) < loop->v->train.random_steps) {
        struct opc_rng rng =
            opc_rng_stream(seed_of(loop), OPC_USE_RANDOM, 0, (uint32_t)loop->episode);
        for (begin_episode(loop); opc_episodes_open(loop->past);) {
            float a[MAX_ACT];
            for (int k = 0; k < loop->env->act; k++)
                a[k] = 2 * opc_rng_unit(&rng) - 1;
            real_step(loop, a);
        }
    }
}

static void to_float(int n, const double *from, float *to)
{
    for (int k = 0; k < n; k++)
        to[k] = (float)from[k];
}

static void act_on_environment(struct loop *loop)
{
    float s[MAX_OBS], a[MAX_ACT];
    if (!opc_episodes_open(loop->past))
        begin_episode(loop);
    struct opc_rng rng = opc_rng_stream(seed_of(loop), OPC_USE_EXPLORE, 0, (uint32_t)loop->steps);
    to_float(loop->env->obs, loop->state, s);
    opc_agent_act(loop->learner, 1, s, true, &rng, a);
    real_step(loop, a);
}

/* ---- the model ------------------------------------------------------------------------------- */

static void fit_model(struct loop *loop)
{
    struct opc_err err;
    struct opc_fit_report report = {OPC_SIZED(struct opc_fit_report)};
    const int n = opc_episodes_steps(loop->past);
    const struct opc_fit_plan plan = {OPC_SIZED(struct opc_fit_plan), .seed = seed_of(loop),
                                      .epoch = (uint32_t)loop->epoch,
                                      .index = (uint32_t)loop->fits};
    if (n < MIN_TO_FIT)
        return;
    opc_episodes_flatten(loop->past, loop->sa, loop->y);
    assert_ok(opc_predictor_fit(loop->model, n, loop->sa, loop->y, &plan, &report, &err), &err);
    loop->fits++;
    loop->fits_ever++;
}

static void draw_action(void *ctx, int n, const float *s, struct opc_rng *rng, float *a)
{
    opc_agent_act(ctx, n, s, true, rng, a);
}

static void is_over(void *ctx, int n, const float *s, const float *a, const float *next, bool *out)
{
    opc_env_terminal(ctx, n, s, a, next, out);
}

/* Of the episodes that ended in the last K epochs, this one among them; if there are none, of those
 * of the newest epoch that has any. */
static int first_of_window(const struct loop *loop)
{
    const int episodes = opc_episodes_count(loop->past), K = loop->v->opc.reference_epochs;
    int oldest = loop->epoch - K + 1;
    if (K == 0)
        return 0;
    if (oldest > loop->epoch_of[episodes - 1])
        oldest = loop->epoch_of[episodes - 1];
    for (int b = 0;; b++)
        if (loop->epoch_of[b] >= oldest)
            return b;
}

/* Mean and 1 / std of all recorded states, the last ones of episodes included. */
static void look_at_states(const struct loop *loop, float *mean, float *inverse)
{
    const int obs = loop->env->obs;
    double n = 0, sum[MAX_OBS] = {0}, squares[MAX_OBS] = {0};
    for (int b = 0; b < opc_episodes_count(loop->past); b++)
        for (int t = 0; t <= opc_episodes_length(loop->past, b); t++, n++) {
            const bool last = t == opc_episodes_length(loop->past, b);
            const struct opc_step s = opc_episodes_at(loop->past, b, last ? t - 1 : t);
            for (int k = 0; k < obs; k++) {
                const double x = (double)(last ? s.next[k] : s.state[k]);
                sum[k] += x;
                squares[k] += x * x;
            }
        }
    for (int k = 0; k < obs; k++) {
        mean[k] = (float)(sum[k] / n);
        inverse[k] = (float)(1 / sqrt(squares[k] / n - sum[k] / n * sum[k] / n));
    }
}

/* The range of everything recorded, a quarter wider for states and a tenth for rewards. */
static struct opc_bounds bounds_of(const struct loop *loop, float *low, float *high)
{
    const int obs = loop->env->obs;
    struct opc_bounds all = {.obs = obs, .act = loop->env->act, .low = low, .high = high};
    float r_min = INFINITY, r_max = -INFINITY;
    for (int k = 0; k < obs; k++) {
        float min = INFINITY, max = -INFINITY;
        for (int b = 0; b < opc_episodes_count(loop->past); b++)
            for (int t = 0; t < opc_episodes_length(loop->past, b); t++) {
                const struct opc_step s = opc_episodes_at(loop->past, b, t);
                min = fminf(min, fminf(s.state[k], s.next[k]));
                max = fmaxf(max, fmaxf(s.state[k], s.next[k]));
                r_min = fminf(r_min, s.reward);
                r_max = fmaxf(r_max, s.reward);
            }
        low[k] = min - 0.25f * (max - min);
        high[k] = max + 0.25f * (max - min);
    }
    all.reward_low = r_min - 0.1f * (r_max - r_min);
    all.reward_high = r_max + 0.1f * (r_max - r_min);
    return all;
}

/* 1 / sigma of recorded states; on these tasks every entry moves. */
static struct opc_drift drift_of(const struct loop *loop, float *inverse)
{
    return (struct opc_drift){loop->env->obs, loop->v->opc.max_drift, inverse};
}

/* 1 / d^2 of s' - s and of the reward, divided by how many there are; 1 for what does not vary. The
 * running mean comes from this loop, not from what the last simulation left. */
static void measure_targets(struct loop *loop)
{
    const int obs = loop->env->obs;
    if (!loop->disagreement)
        return;
    for (int j = 0; j <= obs; j++) {
        double n = 0, sum = 0, squares = 0;
        for (int b = 0; b < opc_episodes_count(loop->past); b++)
            for (int t = 0; t < opc_episodes_length(loop->past, b); t++, n++) {
                const struct opc_step s = opc_episodes_at(loop->past, b, t);
                const double x = (double)(j < obs ? s.next[j] - s.state[j] : s.reward);
                sum += x;
                squares += x * x;
            }
        const double variance = squares / n - sum / n * sum / n;
        loop->disagreement->weight[j] = (variance > 1e-12 ? 1 / variance : 1) / (obs + 1);
    }
    loop->disagreement->now =
        (struct opc_disagreement_state){loop->disagreement_mean, loop->simulations++};
}

static void simulate_rollouts(struct loop *loop, int round)
{
    const struct opc_values *v = loop->v;
    const int h = opc_horizon(v, loop->epoch - 1); /* which has a test of its own */
    const int per_epoch = v->train.steps_per_epoch / or_epoch(loop, v->train.simulate_every);
    struct opc_err err;
    struct opc_rollout_report report;
    float mean[MAX_OBS], inverse[MAX_OBS], low[MAX_OBS], high[MAX_OBS];
    const struct opc_scaler states = {.dim = loop->env->obs, .mean = mean, .inverse = inverse};
    if (loop->fits_ever == 0)
        return;
    look_at_states(loop, mean, inverse);
    const struct opc_bounds bounds = bounds_of(loop, low, high);
    const struct opc_drift drift = drift_of(loop, inverse);
    measure_targets(loop);
    /* some rollouts start anywhere, the others in the window */
    const bool mixes = v->opc.past_ratio > 0 && v->opc.reference_epochs > 0;
    loop->transition->first_episode = mixes ? 0 : first_of_window(loop);
    assert_ok(opc_transition_refresh(loop->transition, NULL, &err), &err);
    if (v->data.reset)
        opc_imagined_clear(loop->imagined);
    if (v->data.forget == OPC_FORGET_STEPS)
        opc_imagined_limit(loop->imagined,
                           (size_t)(v->opc.rollouts * h * per_epoch * v->data.retain));
    opc_imagined_open_epoch(loop->imagined, loop->epoch);
    const struct opc_rollout_plan plan = {
        .transition = loop->transition,
        .act = draw_action,
        .act_ctx = loop->learner,
        .terminal = is_over,
        .terminal_ctx = loop->env,
        .limits = {.bounds = v->opc.bounds ? &bounds : NULL,
                   .drift = v->opc.max_drift > 0 ? &drift : NULL,
                   .disagreement = loop->disagreement,
                   .drop = v->opc.reference_terminal == 2},
        .states = &states,
        .horizon = h,
        .transitions = (size_t)opc_share(v->opc.transitions, v->train.rounds, round),
        .rollouts = opc_share(v->opc.rollouts, v->train.rounds, round),
        .start = v->opc.start == 0 ? OPC_START_UNIFORM : OPC_START_PAPER,
        .past_ratio = mixes ? v->opc.past_ratio : 0,
        .recent = first_of_window(loop),
        .reference_terminal = v->opc.reference_terminal == 1,
        .elite_per_rollout = v->opc.elite == 1,
        .seed = seed_of(loop),
        .epoch = (uint32_t)loop->epoch,
        .index = loop->next_rollout,
    };
    assert_ok(opc_rollout_run(loop->rollout, &plan, loop->imagined, &report, &err), &err);
    if (loop->disagreement)
        loop->disagreement_mean = loop->disagreement->limit;
    loop->next_rollout = report.index;
    loop->rollouts += (int)report.rollouts;
    loop->reward_min = fmin(loop->reward_min, (double)report.reward_min);
    loop->reward_max = fmax(loop->reward_max, (double)report.reward_max);
    loop->max_std = fmax(loop->max_std, (double)report.state_max_std);
    for (int k = 0; k < OPC_ENDS; k++)
        loop->ends[k] += (double)report.end[k];
}

static void measure_errors(struct loop *loop)
{
    struct opc_err err;
    struct opc_many *worlds;
    assert_ok(opc_many_open(loop->v->env.name, 1, NULL, &worlds, &err), &err);
    const struct opc_onpolicy_plan plan = {.past = loop->past,
                                           .newest = loop->recorded,
                                           .model = loop->model,
                                           .agent = loop->learner,
                                           .worlds = worlds,
                                           .sample = loop->v->opc.sample,
                                           .elite_per_rollout = loop->v->opc.elite == 1,
                                           .seed = seed_of(loop),
                                           .epoch = (uint32_t)loop->epoch};
    assert_ok(opc_onpolicy_errors(&plan, &loop->errors, &err), &err);
    loop->model_error = strcmp(transition_of(loop), "learned") == 0 ? loop->errors.learned[0]
                                                                    : loop->errors.corrected[0];
    opc_many_close(worlds);
}

/* What is due at step t. */
static void fit_and_simulate(struct loop *loop, int t)
{
    const int every = or_epoch(loop, loop->v->train.fit_every), n = loop->v->train.steps_per_epoch;
    if (!loop->model)
        return;
    if (t % every == 0) {
        fit_model(loop);
        if (t + every >= n + !loop->v->train.fit_first &&
            loop->fits > 0) /* the last of the epoch */
            measure_errors(loop);
    }
    if (t % or_epoch(loop, loop->v->train.simulate_every) == 0)
        simulate_rollouts(loop, 0);
}

/* ---- the policy ------------------------------------------------------------------------------ */

/* The epoch's own episodes, copied together. */
static bool next_episode(void *ctx, uint64_t *at, struct opc_path *out)
{
    struct loop *loop = ctx;
    const int b = loop->recorded + (int)*at, obs = loop->env->obs, actions = loop->env->act;
    if (b >= opc_episodes_count(loop->past))
        return false;
    float *to = loop->path;
    const int steps = opc_episodes_length(loop->past, b);
    for (int t = 0; t < steps; t++) {
        const struct opc_step s = opc_episodes_at(loop->past, b, t);
        memcpy(to, s.state, (size_t)obs * sizeof *to);
        memcpy(to + obs, s.action, (size_t)actions * sizeof *to);
        to[obs + actions] = s.reward;
        to[obs + actions + 1] = s.terminal;
        to += obs + actions + 2;
        memcpy(to, s.next, (size_t)obs * sizeof *to);
    }
    *out = (struct opc_path){steps, loop->path};
    ++*at;
    return true;
}

static void note_updates(struct loop *loop, const struct opc_agent_report *r)
{
    const struct opc_agent_column *column = loop->learner->type->columns;
    const double n = (double)r->updates;
    for (int k = 0; column[k].name; k++) {
        double *all = &loop->agent[k];
        if (column[k].over == OPC_OVER_MEAN)
            *all = loop->updates ? (*all * (double)loop->updates + r->value[k] * n) /
                                       (double)(loop->updates + r->updates)
                                 : r->value[k];
        else if (loop->updates == 0 || (r->value[k] < *all) == (column[k].over == OPC_OVER_MIN))
            *all = r->value[k];
    }
    loop->updates += r->updates;
}

static void learn_from_episodes(struct loop *loop)
{
    struct opc_agent_report r = {OPC_SIZED(struct opc_agent_report)};
    struct opc_err err;
    const struct opc_feed feed = {OPC_SIZED(struct opc_feed),
                                  .path = next_episode,
                                  .ctx = loop,
                                  .seed = seed_of(loop),
                                  .epoch = (uint32_t)loop->epoch,
                                  .done = (loop->epoch - 1.0) / loop->v->train.epochs};
    assert_ok(opc_agent_improve(loop->learner, &feed, 0, &r, &err), &err);
    note_updates(loop, &r);
}

static void improve_policy(struct loop *loop)
{
    const struct opc_train_config *train = &loop->v->train;
    const int steps = opc_episodes_steps(loop->past), rounds = loop->model ? train->rounds : 1;
    const int all = (int)round(train->updates_per_step * or_epoch(loop, train->improve_every));
    struct opc_err err;
    if ((loop->model && opc_imagined_transitions(loop->imagined) == 0) || steps == 0 ||
        steps < train->learning_starts)
        return;
    if (loop->learner->type->needs & OPC_NEEDS_TRAJECTORIES) {
        learn_from_episodes(loop);
        return;
    }
    for (int k = 0; k < rounds; k++) {
        const int n = opc_share(all, rounds, k);
        struct opc_agent_report r = {OPC_SIZED(struct opc_agent_report)};
        if (k > 0)
            simulate_rollouts(loop, k);
        float low[MAX_OBS], high[MAX_OBS];
        const struct opc_bounds bounds = bounds_of(loop, low, high);
        const struct opc_feed feed = {OPC_SIZED(struct opc_feed),
                                      .draw = opc_batch_draw,
                                      .ctx = &loop->mix,
                                      .reward_low = bounds.reward_low,
                                      .reward_high = bounds.reward_high,
                                      .seed = seed_of(loop),
                                      .epoch = (uint32_t)loop->epoch,
                                      .first = (uint32_t)loop->updates,
                                      .done = (loop->epoch - 1.0) / train->epochs};
        assert_ok(opc_agent_improve(loop->learner, &feed, n, &r, &err), &err);
        note_updates(loop, &r);
    }
}

/* One episode behind the other, without exploration. */
static void evaluate_policy(struct loop *loop)
{
    const int n = loop->v->eval.episodes;
    struct opc_err err;
    double obs[MAX_OBS], action[MAX_ACT], sum[MAX_EPISODES] = {0}, length = 0;
    struct opc_outcome out = {.obs = obs};
    float s[MAX_OBS], a[MAX_ACT];
    assert_true(n <= MAX_EPISODES);
    for (int i = 0; i < n; i++) {
        struct opc_rng rng =
            opc_rng_stream(seed_of(loop), OPC_USE_EVAL, (uint32_t)loop->epoch, (uint32_t)i);
        assert_ok(opc_env_reset(loop->other, &rng, obs, &err), &err);
        do {
            to_float(loop->other->obs, obs, s);
            opc_agent_act(loop->learner, 1, s, false, NULL, a);
            opc_env_scale(loop->other, a, action);
            assert_ok(opc_env_step(loop->other, action, &out, &err), &err);
            sum[i] += out.reward;
            length++;
        } while (!out.terminated && !out.truncated);
    }
    loop->eval[0] = 0;
    loop->eval[1] = loop->eval[2] = sum[0];
    for (int i = 0; i < n; i++) {
        loop->eval[0] += sum[i];
        loop->eval[1] = fmin(loop->eval[1], sum[i]);
        loop->eval[2] = fmax(loop->eval[2], sum[i]);
    }
    loop->eval[0] /= n;
    loop->eval[3] = length / n;
    loop->best = loop->epoch == 1 ? loop->eval[0] : fmax(loop->best, loop->eval[0]);
}

static void play_epoch(struct loop *loop)
{
    const struct opc_train_config *train = &loop->v->train;
    const int n = train->steps_per_epoch;
    loop->epoch++;
    loop->recorded = opc_episodes_count(loop->past);
    for (int k = 0; k < OPC_ERRORS; k++)
        loop->errors.learned[k] = loop->errors.corrected[k] = (double)NAN;
    loop->episodes = loop->fits = loop->rollouts = 0;
    loop->next_rollout = 0;
    loop->updates = 0;
    loop->reward_min = HUGE_VAL;
    loop->reward_max = -HUGE_VAL;
    loop->max_std = 0;
    memset(loop->ends, 0, sizeof loop->ends);
    loop->returns = loop->lengths = 0;
    memset(loop->agent, 0, sizeof loop->agent);
    for (int t = 0; t < n; t++) {
        if (train->fit_first)
            fit_and_simulate(loop, t);
        act_on_environment(loop);
        if (t + 1 == n && train->reset_each_epoch && opc_episodes_open(loop->past))
            end_episode(loop);
        if (!train->fit_first)
            fit_and_simulate(loop, t + 1);
        if ((t + 1) % or_epoch(loop, train->improve_every) == 0)
            improve_policy(loop);
    }
    evaluate_policy(loop);
}

/* ---- its parts ------------------------------------------------------------------------------- */

static void make_model(struct loop *loop, int capacity)
{
    const struct opc_values *v = loop->v;
    const int obs = loop->env->obs, actions = loop->env->act, h = opc_horizon_max(v);
    struct opc_err err;
    assert_ok(opc_ensemble_make(&v->model, obs, actions, 1, seed_of(loop), WHICH_MODEL,
                                &loop->model, &err),
              &err);
    const struct opc_transition_options options = {
        OPC_SIZED(struct opc_transition_options),
        .name = transition_of(loop),
        .past = loop->past,
        .model = loop->model,
        .steps = capacity,
        .reward_by_model = !v->opc.correct_reward,
        .mean = !v->opc.sample,
    };
    assert_ok(opc_transition_create(&options, &loop->transition, &err), &err);
    assert_ok(opc_rollout_create(obs, actions, h, 64, &loop->rollout, &err), &err);
    if (v->opc.max_disagreement > 0)
        assert_ok(opc_disagreement_create(obs, actions, 64, v->opc.max_disagreement,
                                          &loop->disagreement, &err),
                  &err);
    const struct opc_imagined_shape shape = {
        OPC_SIZED(struct opc_imagined_shape),
        .obs = obs,
        .act = actions,
        .longest = h,
        .forget = v->data.forget == OPC_FORGET_STEPS ? OPC_FORGET_STEPS : OPC_FORGET_EPOCHS,
        .retain = v->data.retain,
        .transitions = 100000,
    };
    assert_ok(opc_imagined_create(&shape, &loop->imagined, &err), &err);
    loop->sa = opc_alloc((size_t)(capacity * (obs + actions)), sizeof *loop->sa);
    loop->y = opc_alloc((size_t)(capacity * (obs + 1)), sizeof *loop->y);
    assert_true(loop->sa && loop->y);
}

static void make_loop(struct loop *loop, const struct opc_values *v, double entropy)
{
    struct opc_err err;
    const int capacity = 10000;
    *loop = (struct loop){.v = v};
    assert_ok(opc_env_open(v->env.name, &loop->env, &err), &err);
    assert_ok(opc_env_open(v->env.name, &loop->other, &err), &err);
    assert_true(loop->env->obs <= MAX_OBS && loop->env->act <= MAX_ACT);
    assert_ok(
        opc_episodes_create(loop->env->obs, loop->env->act, capacity, capacity, &loop->past, &err),
        &err);
    const struct opc_agent_args args = {OPC_SIZED(struct opc_agent_args),
                                        .obs = loop->env->obs,
                                        .act = loop->env->act,
                                        .seed = seed_of(loop),
                                        .config = opc_values_agent(v, v->train.agent),
                                        .target_entropy = entropy,
                                        .steps = capacity};
    assert_ok(opc_agent_create(opc_agent_name(v->train.agent), &args, &loop->learner, &err), &err);
    if (strcmp(transition_of(loop), "replay") != 0)
        make_model(loop, capacity);
    loop->mix =
        (struct opc_mix){.imagined = loop->imagined,
                         .episodes = loop->model && v->data.real_ratio == 0 ? NULL : loop->past,
                         .real_ratio = loop->model ? v->data.real_ratio : 1};
}

static void destroy_loop(struct loop *loop)
{
    opc_agent_destroy(loop->learner);
    opc_imagined_destroy(loop->imagined);
    opc_rollout_destroy(loop->rollout);
    opc_disagreement_destroy(loop->disagreement);
    opc_transition_destroy(loop->transition);
    opc_predictor_destroy(loop->model);
    opc_episodes_destroy(loop->past);
    opc_env_close(loop->env);
    opc_env_close(loop->other);
    opc_free(loop->sa);
    opc_free(loop->y);
}

/* ---- against opc_train ------------------------------------------------------------------------
 */

/* tolerance: relative */
static void compare_cell(const struct loop *loop, const char *dir, const char *what,
                         const char *name, double want, double tolerance)
{
    const double got = test_metric(dir, loop->epoch, name);
    if (!(isnan(want) && isnan(got)) && !(fabs(got - want) <= tolerance * fabs(want)))
        fail_msg("%s: epoch %d: %s is %.17g, should be %.17g", what, loop->epoch, name, got, want);
}

static void compare_row(const struct loop *loop, const char *dir, const char *what)
{
    const double n = (double)loop->updates, ended = loop->episodes;
    const struct {
        const char *name;
        double want, tolerance; /* tolerance: relative, where sums are taken in another order */
    } cells[] = {
        {"eval_return", loop->eval[0], 0},
        {"eval_min", loop->eval[1], 0},
        {"eval_max", loop->eval[2], 0},
        {"eval_length", loop->eval[3], 0},
        {"env_steps", (double)loop->epoch * loop->v->train.steps_per_epoch, 0},
        {"total_steps", (double)loop->steps, 0},
        {"recorded", opc_episodes_steps(loop->past), 0},
        {"imagined", loop->model ? (double)opc_imagined_transitions(loop->imagined) : 0, 0},
        {"fits", loop->fits, 0},
        {"rollouts", loop->rollouts, 0},
        {"updates", n, 0},
        {"episodes", ended, 0},
        {"train_return", ended > 0 ? loop->returns / ended : (double)NAN, 1e-12},
        {"train_length", ended > 0 ? loop->lengths / ended : (double)NAN, 1e-12},
        {"learned_1", loop->errors.learned[0], 0},
        {"learned_10", loop->errors.learned[2], 0},
        {"corrected_1", loop->errors.corrected[0], 0},
        {"corrected_10", loop->errors.corrected[2], 0},
        {"reward_min", loop->rollouts ? loop->reward_min : (double)NAN, 0},
        {"reward_max", loop->rollouts ? loop->reward_max : (double)NAN, 0},
        {"state_max_std", loop->rollouts ? loop->max_std : (double)NAN, 1e-5},
        {"end_horizon", loop->ends[OPC_END_HORIZON] / loop->rollouts, 0},
        {"end_terminal", loop->ends[OPC_END_TERMINAL] / loop->rollouts, 0},
        {"end_reference",
         (loop->ends[OPC_END_REFERENCE] + loop->ends[OPC_END_DROPPED]) / loop->rollouts, 0},
        {"end_bound", loop->ends[OPC_END_BOUND] / loop->rollouts, 0},
        {"end_drift", loop->ends[OPC_END_DRIFT] / loop->rollouts, 0},
        {"end_disagreement", loop->ends[OPC_END_DISAGREEMENT] / loop->rollouts, 0},
    };
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        compare_cell(loop, dir, what, cells[i].name, cells[i].want, cells[i].tolerance);
    const struct opc_agent_column *column = loop->learner->type->columns;
    for (int k = 0; column[k].name; k++)
        compare_cell(loop, dir, what, column[k].name, n > 0 ? loop->agent[k] : (double)NAN,
                     column[k].over == OPC_OVER_MEAN ? 1e-9 : 0);
}

static void compare_policies(const struct loop *loop, const char *dir, const char *what)
{
    struct opc_agent *agent;
    struct opc_err err;
    float s[MAX_OBS], mine[MAX_ACT], its[MAX_ACT];
    assert_ok(opc_policy_load(dir, &agent, &err), &err);
    for (uint32_t i = 0; i < 20; i++) {
        struct opc_rng rng = opc_rng_stream(1, OPC_USE_TEST, 0, i);
        for (int k = 0; k < loop->env->obs; k++)
            s[k] = 2 * opc_rng_unit(&rng) - 1;
        opc_agent_act(loop->learner, 1, s, false, NULL, mine);
        opc_agent_act(agent, 1, s, false, NULL, its);
        if (memcmp(mine, its, (size_t)loop->env->act * sizeof *mine) != 0)
            fail_msg("%s: in state %u the policy does %a, should do %a", what, i, (double)its[0],
                     (double)mine[0]);
    }
    opc_agent_destroy(agent);
}

static void compare_result(const struct loop *loop, const char *dir)
{
    struct opc_json_value *j;
    struct opc_err err;
    char path[OPC_PATH];
    double last, best;
    assert_ok(opc_path_join(path, dir, "result.json", &err), &err);
    assert_ok(opc_json_read(path, &j, &err), &err);
    assert_true(opc_json_number(opc_json_find(j, "eval_return"), &last));
    assert_true(opc_json_number(opc_json_find(j, "best_return"), &best));
    assert_true(fabs(last - loop->eval[0]) <= 1e-14 * fabs(last)); /* 15 digits */
    assert_true(fabs(best - loop->best) <= 1e-14 * fabs(best));
    opc_json_free(j);
    if (!loop->model)
        return;
    assert_ok(opc_path_join(path, dir, "status.json", &err), &err);
    assert_ok(opc_json_read(path, &j, &err), &err);
    assert_true(opc_json_number(opc_json_find(j, "model_error"), &last));
    assert_true(fabs(last - loop->model_error) <= 1e-14 * fabs(last));
    opc_json_free(j);
}

static const char *const SMALL[] = {
    "train.seed=7",           "train.epochs=3",
    "opc.reference_epochs=0", "train.steps_per_epoch=20",
    "train.random_steps=60",  "train.updates_per_step=2",
    "opc.transitions=100",    "opc.horizon=4",
    "model.members=3",        "model.elites=2",
    "model.hidden=[8]",       "model.weight_decay=1e-5",
    "model.max_epochs=3",     "sac.policy_hidden=[8]",
    "sac.critic_hidden=[8]",  "sac.batch_size=20",
    "eval.episodes=3",        "data.retain=2",
    "env.name=cartpole",
};

/* `more` ends with NULL; entropy is the goal of the task. */
static void both_agree(const char *dir, const char *const *more, double entropy)
{
    struct opc_config *config;
    struct opc_err err;
    struct loop loop;
    struct opc_text what = {0};
    assert_ok(opc_config_create(&config, &err), &err);
    for (size_t i = 0; i < sizeof SMALL / sizeof *SMALL; i++)
        assert_ok(opc_config_set(config, SMALL[i], &err), &err);
    for (; *more; more++) {
        assert_ok(opc_config_set(config, *more, &err), &err);
        opc_text_addf(&what, "%s ", *more);
    }
    test_remove(dir);
    const struct opc_train_plan plan = {OPC_SIZED(struct opc_train_plan), .dir = dir, .threads = 2};
    assert_ok(opc_train(config, &plan, &err), &err);

    make_loop(&loop, &config->set, entropy);
    play_at_random(&loop);
    double ends[OPC_ENDS] = {0};
    while (loop.epoch < config->set.train.epochs) {
        play_epoch(&loop);
        compare_row(&loop, dir, opc_text_get(&what));
        for (int k = 0; k < OPC_ENDS; k++)
            ends[k] += loop.ends[k];
    }
    /* Each limit that was set has ended some rollouts, or the case would test nothing. */
    const struct opc_opc_config *opc = &config->set.opc;
    assert_true(!opc->bounds || ends[OPC_END_BOUND] > 0);
    assert_true(!(opc->max_drift > 0) || ends[OPC_END_DRIFT] > 0);
    assert_true(!(opc->max_disagreement > 0) || ends[OPC_END_DISAGREEMENT] > 0);
    assert_true(opc->reference_terminal != OPC_REFERENCE_DROP || ends[OPC_END_DROPPED] > 0);
    compare_policies(&loop, dir, opc_text_get(&what));
    compare_result(&loop, dir);
    destroy_loop(&loop);
    opc_text_free(&what);
    opc_config_destroy(config);
}

enum { CARTPOLE, PENDULUM };
static const double ENTROPY[] = {-0.05, (double)NAN};

#define SET(...) ((const char *const[]){__VA_ARGS__, NULL})
struct loop_case {
    const char *name; /* of its test */
    const char *const *set;
    int task;
};
static const struct loop_case CASES[] = {
    {"corrected_with_all_of_the_past", SET(NULL), CARTPOLE},
    {"learned_model", SET("opc.transition=learned"), CARTPOLE},
    {"learned_model_without_noise", SET("opc.transition=learned", "opc.sample=false"), CARTPOLE},
    {"reward_as_the_model_predicts_it", SET("opc.correct_reward=false"), CARTPOLE},
    {"starts_and_ends_of_the_printed_algorithm",
     SET("opc.start=paper", "opc.reference_terminal=terminal"), CARTPOLE},
    {"one_member_per_rollout_and_recorded_steps_in_batches",
     SET("opc.elite=rollout", "data.real_ratio=0.3"), CARTPOLE},
    {"learning_rate_that_falls", SET("sac.lr_decay=0.9", "train.epochs=3"), CARTPOLE},
    {"three_rounds", SET("train.rounds=3", "data.retain=1"), CARTPOLE},
    {"two_rounds_of_rollouts_in_emptied_data",
     SET("train.rounds=2", "data.reset=true", "opc.rollouts=31"), CARTPOLE},
    {"window_of_one_epoch", SET("opc.reference_epochs=1"), CARTPOLE},
    {"window_of_two_epochs_with_the_learned_model_in_rounds",
     SET("opc.reference_epochs=2", "opc.transition=learned", "train.rounds=3", "train.epochs=5"),
     CARTPOLE},
    {"window_of_one_epoch_with_the_printed_starts",
     SET("opc.reference_epochs=1", "opc.start=paper"), CARTPOLE},
    {"window_of_three_epochs_without_a_random_phase",
     SET("opc.reference_epochs=3", "train.random_steps=0", "train.epochs=6"), CARTPOLE},
    {"window_of_one_epoch_beside_all_of_the_past",
     SET("opc.reference_epochs=1", "opc.past_ratio=0.3", "train.rounds=2", "train.epochs=5"),
     CARTPOLE},
    {"all_of_the_past_without_a_window", SET("opc.past_ratio=0.3"), CARTPOLE},
    /* Windows that a smaller table of f at the references would not hold: episodes have 200 steps,
     * and a random phase of 401 has three of them. */
    {"window_that_reaches_back_to_a_long_random_phase",
     SET("env.name=pendulum", "opc.reference_epochs=1", "train.random_steps=401",
         "train.reset_each_epoch=false"),
     PENDULUM},
    {"window_of_a_long_random_phase_and_an_epoch",
     SET("env.name=pendulum", "opc.reference_epochs=2", "train.random_steps=401"), PENDULUM},
    {"window_of_epochs_longer_than_an_episode",
     SET("env.name=pendulum", "opc.reference_epochs=2", "train.random_steps=0",
         "train.steps_per_epoch=250", "train.updates_per_step=0.1"),
     PENDULUM},
    {"all_of_a_past_of_short_episodes", SET("env.name=pendulum", "train.epochs=5"), PENDULUM},
    {"all_of_the_past_beside_a_window_of_less_than_it",
     SET("env.name=pendulum", "opc.reference_epochs=1", "opc.past_ratio=0.3", "train.epochs=5"),
     PENDULUM},
    /* more epochs than there will be */
    {"window_longer_than_the_run", SET("opc.reference_epochs=9"), CARTPOLE},
    /* more episodes than are played at once */
    {"more_evaluation_episodes_than_are_played_at_once", SET("eval.episodes=67", "train.epochs=2"),
     CARTPOLE},
    /* fits of one and the same past, because its episode has not ended */
    {"fits_of_the_same_past_while_an_episode_goes_on",
     SET("env.name=pendulum", "train.fit_first=true", "train.fit_every=5", "train.simulate_every=5",
         "train.improve_every=1", "train.reset_each_epoch=false", "opc.rollouts=10"),
     PENDULUM},
    /* windows in which no episode has ended yet */
    {"windows_in_which_no_episode_has_ended",
     SET("env.name=pendulum", "train.fit_first=true", "train.fit_every=5", "train.simulate_every=5",
         "train.improve_every=1", "train.reset_each_epoch=false", "opc.rollouts=10",
         "opc.reference_epochs=2", "train.steps_per_epoch=50", "train.epochs=8"),
     PENDULUM},
    {"windows_shorter_than_an_episode_of_cartpole",
     SET("train.fit_first=true", "train.fit_every=5", "train.simulate_every=5",
         "train.improve_every=1", "train.reset_each_epoch=false", "opc.rollouts=10",
         "opc.reference_epochs=1", "train.steps_per_epoch=15", "train.epochs=6"),
     CARTPOLE},
    /* an epoch of too few steps for a model: nothing is imagined, and nothing learned */
    {"epochs_too_short_to_fit_a_model", SET("train.random_steps=0", "train.steps_per_epoch=10"),
     CARTPOLE},
    /* a past that grows while the model stays */
    {"past_grows_while_the_model_stays",
     SET("train.fit_every=20", "train.simulate_every=5", "train.improve_every=5",
         "train.reset_each_epoch=false", "train.steps_per_epoch=60", "opc.rollouts=10"),
     CARTPOLE},
    /* two episodes end by time in the random phase */
    {"random_phase_that_ends_by_time", SET("env.name=pendulum", "train.random_steps=300"),
     PENDULUM},
    {"sac_without_a_model",
     SET("env.name=pendulum", "opc.transition=replay", "train.improve_every=1",
         "train.reset_each_epoch=false", "train.steps_per_epoch=150", "train.learning_starts=100"),
     PENDULUM},
    /* a random phase it does not learn from */
    {"ppo_learns_nothing_from_the_random_phase",
     SET("train.agent=ppo", "opc.transition=replay", "ppo.batch_size=16", "ppo.update_epochs=3",
         "ppo.policy_hidden=[6]", "ppo.learning_rate=0.01"),
     CARTPOLE},
    /* one episode ends by time, the next one is cut */
    {"ppo_with_an_episode_cut_by_the_epoch",
     SET("env.name=pendulum", "train.agent=ppo", "opc.transition=replay",
         "train.steps_per_epoch=250", "train.random_steps=0", "ppo.anneal_lr=false"),
     PENDULUM},
    {"bounds_of_the_recording",
     SET("opc.bounds=true", "sac.bound_targets=true", "opc.transition=learned"), CARTPOLE},
    {"bounds_of_rewards_without_a_model",
     SET("opc.transition=replay", "sac.bound_targets=true", "env.name=pendulum"), PENDULUM},
    {"drift_limit", SET("opc.max_drift=0.3"), CARTPOLE},
    {"drift_limit_in_the_original_loop",
     SET("opc.max_drift=4", "opc.transition=learned", "train.fit_every=10",
         "train.simulate_every=5", "train.improve_every=1", "train.fit_first=true",
         "train.reset_each_epoch=false", "opc.rollouts=80", "data.forget=steps"),
     CARTPOLE},
    {"steps_dropped_where_only_the_reference_fell", SET("opc.reference_terminal=drop"), CARTPOLE},
    {"disagreement_of_the_correction_in_rounds",
     SET("opc.max_disagreement=1.5", "train.rounds=3", "opc.reference_epochs=1"), CARTPOLE},
    {"disagreement_of_the_prediction_in_the_original_loop",
     SET("opc.max_disagreement=1", "opc.transition=learned", "train.fit_every=10",
         "train.simulate_every=5", "train.improve_every=1", "train.fit_first=true",
         "train.reset_each_epoch=false", "opc.rollouts=80", "data.forget=steps"),
     CARTPOLE},
    {"all_limits_at_once",
     SET("opc.max_disagreement=0.5", "opc.max_drift=1", "opc.reference_terminal=drop",
         "opc.bounds=true"),
     CARTPOLE},
    {"critics_with_layer_normalisation", SET("sac.layer_norm=true"), CARTPOLE},
    {"original_mbpo",
     SET("train.fit_every=10", "train.simulate_every=5", "train.improve_every=1",
         "train.fit_first=true", "train.reset_each_epoch=false", "opc.transition=learned",
         "opc.rollouts=10", "opc.horizon=[0, 2, 1, 3]", "data.forget=steps",
         "data.real_ratio=0.05"),
     CARTPOLE},
};
enum { N_CASES = sizeof CASES / sizeof *CASES };

struct fixture {
    const struct loop_case *one;
    void *dir; /* removed with all that is in it */
};

static int set_up(void **state) /* the case of a test; then its fixture */
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    if (!fixture)
        return -1;
    fixture->one = *state;
    *state = fixture;
    return test_make_dir(&fixture->dir);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    const int failed = fixture->dir ? test_remove_dir(&fixture->dir) : 0;
    free(fixture);
    return failed;
}

static void the_loop_is_the_one_that_is_written_here(void **state)
{
    const struct fixture *fixture = *state;
    char dir[OPC_PATH];
    snprintf(dir, sizeof dir, "%s/run", (const char *)fixture->dir);
    both_agree(dir, fixture->one->set, ENTROPY[fixture->one->task]);
}

int main(void)
{
    struct CMUnitTest tests[N_CASES];
    if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1);
    for (int i = 0; i < N_CASES; i++) {
        void *one = (void *)(uintptr_t)&CASES[i]; /* cmocka's state is not const */
        tests[i] = (struct CMUnitTest){CASES[i].name, the_loop_is_the_one_that_is_written_here,
                                       set_up, tear_down, one};
    }
    return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
