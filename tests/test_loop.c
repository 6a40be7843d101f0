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
#include "run/config.h"
#include "run/json.h"
#include "run/onpolicy.h"
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
    float path[201 * (MAX_OBS + MAX_ACT + 2)];
    double eval[4]; /* mean, least, most, length */
    double best;    /* mean of all epochs */
    int recorded;   /* episodes, before it */
    struct opc_onpolicy errors;
    double model_error;
};

static uint64_t seed_of(const struct loop *l)
{
    return (uint64_t)l->v->train.seed;
}

static const char *transition_of(const struct loop *l)
{
    return opc_transition_name(l->v->opc.transition);
}

static int or_epoch(const struct loop *l, int every)
{
    return every ? every : l->v->train.steps_per_epoch;
}

/* ---- the real environment -------------------------------------------------------------------- */

static void begin(struct loop *l)
{
    struct opc_err err;
    struct opc_rng rng = opc_rng_stream(seed_of(l), OPC_USE_RESET, 0, (uint32_t)l->episode++);
    assert_ok(opc_env_reset(l->env, &rng, l->state, &err), &err);
    assert_ok(opc_episodes_begin(l->past, l->state, &err), &err);
    l->t = 0;
    l->total = 0;
}

static void end(struct loop *l)
{
    opc_episodes_close(l->past);
    assert_true(opc_episodes_count(l->past) <= MAX_RECORDED);
    l->epoch_of[opc_episodes_count(l->past) - 1] = l->epoch;
    l->episodes++;
    l->returns += l->total;
    l->lengths += l->t;
}

static void step(struct loop *l, const float *a)
{
    struct opc_err err;
    struct opc_outcome out = {.obs = l->state};
    double action[MAX_ACT];
    opc_env_scale(l->env, a, action);
    assert_ok(opc_env_step(l->env, action, &out, &err), &err);
    /* Out of time is not terminal. */
    assert_ok(opc_episodes_append(l->past, a, out.reward, out.obs, out.terminated, &err), &err);
    l->total += out.reward;
    l->t++;
    l->steps++;
    if (out.terminated || out.truncated)
        end(l);
}

static void play_at_random(struct loop *l)
{
    while (opc_episodes_steps(l->past) < l->v->train.random_steps) {
        struct opc_rng rng = opc_rng_stream(seed_of(l), OPC_USE_RANDOM, 0, (uint32_t)l->episode);
        for (begin(l); opc_episodes_open(l->past);) {
            float a[MAX_ACT];
            for (int k = 0; k < l->env->act; k++)
                a[k] = 2 * opc_rng_unit(&rng) - 1;
            step(l, a);
        }
    }
}

static void to_float(int n, const double *from, float *to)
{
    for (int k = 0; k < n; k++)
        to[k] = (float)from[k];
}

static void act(struct loop *l)
{
    float s[MAX_OBS], a[MAX_ACT];
    if (!opc_episodes_open(l->past))
        begin(l);
    struct opc_rng rng = opc_rng_stream(seed_of(l), OPC_USE_EXPLORE, 0, (uint32_t)l->steps);
    to_float(l->env->obs, l->state, s);
    opc_agent_act(l->learner, 1, s, true, &rng, a);
    step(l, a);
}

/* ---- the model ------------------------------------------------------------------------------- */

static void fit(struct loop *l)
{
    struct opc_err err;
    struct opc_fit_report report = {OPC_SIZED(struct opc_fit_report)};
    const int n = opc_episodes_steps(l->past);
    const struct opc_fit_plan plan = {OPC_SIZED(struct opc_fit_plan), .seed = seed_of(l),
                                      .epoch = (uint32_t)l->epoch, .index = (uint32_t)l->fits};
    if (n < MIN_TO_FIT)
        return;
    opc_episodes_flatten(l->past, l->sa, l->y);
    assert_ok(opc_predictor_fit(l->model, n, l->sa, l->y, &plan, &report, &err), &err);
    l->fits++;
    l->fits_ever++;
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
static int first_of_window(const struct loop *l)
{
    const int episodes = opc_episodes_count(l->past), K = l->v->opc.reference_epochs;
    int oldest = l->epoch - K + 1;
    if (K == 0)
        return 0;
    if (oldest > l->epoch_of[episodes - 1])
        oldest = l->epoch_of[episodes - 1];
    for (int b = 0;; b++)
        if (l->epoch_of[b] >= oldest)
            return b;
}

/* Mean and 1 / std of all recorded states, the last ones of episodes included. */
static void look_at_states(const struct loop *l, float *mean, float *inverse)
{
    const int obs = l->env->obs;
    double n = 0, sum[MAX_OBS] = {0}, squares[MAX_OBS] = {0};
    for (int b = 0; b < opc_episodes_count(l->past); b++)
        for (int t = 0; t <= opc_episodes_length(l->past, b); t++, n++) {
            const bool last = t == opc_episodes_length(l->past, b);
            const struct opc_step s = opc_episodes_at(l->past, b, last ? t - 1 : t);
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

static void simulate(struct loop *l, int round)
{
    const struct opc_values *v = l->v;
    const int h = opc_horizon(v, l->epoch - 1); /* which has a test of its own */
    const int per_epoch = v->train.steps_per_epoch / or_epoch(l, v->train.simulate_every);
    struct opc_err err;
    struct opc_rollout_report report;
    float mean[MAX_OBS], inverse[MAX_OBS];
    const struct opc_scaler states = {.dim = l->env->obs, .mean = mean, .inverse = inverse};
    if (l->fits_ever == 0)
        return;
    look_at_states(l, mean, inverse);
    l->transition->first_episode = first_of_window(l);
    assert_ok(opc_transition_refresh(l->transition, NULL, &err), &err);
    if (v->data.reset)
        opc_imagined_clear(l->imagined);
    if (v->data.forget == OPC_FORGET_STEPS)
        opc_imagined_limit(l->imagined, (size_t)(v->opc.rollouts * h * per_epoch * v->data.retain));
    opc_imagined_open_epoch(l->imagined, l->epoch);
    const struct opc_rollout_plan plan = {
        .transition = l->transition,
        .act = draw_action,
        .act_ctx = l->learner,
        .terminal = is_over,
        .terminal_ctx = l->env,
        .states = &states,
        .horizon = h,
        .transitions = (size_t)opc_share(v->opc.transitions, v->train.rounds, round),
        .rollouts = opc_share(v->opc.rollouts, v->train.rounds, round),
        .start = v->opc.start == 0 ? OPC_START_UNIFORM : OPC_START_PAPER,
        .reference_terminal = v->opc.reference_terminal == 1,
        .elite_per_rollout = v->opc.elite == 1,
        .seed = seed_of(l),
        .epoch = (uint32_t)l->epoch,
        .index = l->next_rollout,
    };
    assert_ok(opc_rollout_run(l->rollout, &plan, l->imagined, &report, &err), &err);
    l->next_rollout = report.index;
    l->rollouts += (int)report.rollouts;
    l->reward_min = fmin(l->reward_min, (double)report.reward_min);
    l->reward_max = fmax(l->reward_max, (double)report.reward_max);
    l->max_std = fmax(l->max_std, (double)report.state_max_std);
    for (int k = 0; k < OPC_ENDS; k++)
        l->ends[k] += (double)report.end[k];
}

static void measure(struct loop *l)
{
    struct opc_err err;
    struct opc_many *worlds;
    assert_ok(opc_many_open(l->v->env.name, 1, NULL, &worlds, &err), &err);
    const struct opc_onpolicy_plan plan = {.past = l->past,
                                           .newest = l->recorded,
                                           .model = l->model,
                                           .agent = l->learner,
                                           .worlds = worlds,
                                           .sample = l->v->opc.sample,
                                           .elite_per_rollout = l->v->opc.elite == 1,
                                           .seed = seed_of(l),
                                           .epoch = (uint32_t)l->epoch};
    assert_ok(opc_onpolicy_errors(&plan, &l->errors, &err), &err);
    l->model_error =
        strcmp(transition_of(l), "learned") == 0 ? l->errors.learned[0] : l->errors.corrected[0];
    opc_many_close(worlds);
}

/* What is due at step t. */
static void imagine(struct loop *l, int t)
{
    const int every = or_epoch(l, l->v->train.fit_every), n = l->v->train.steps_per_epoch;
    if (!l->model)
        return;
    if (t % every == 0) {
        fit(l);
        if (t + every >= n + !l->v->train.fit_first && l->fits > 0) /* the last of the epoch */
            measure(l);
    }
    if (t % or_epoch(l, l->v->train.simulate_every) == 0)
        simulate(l, 0);
}

/* ---- the policy ------------------------------------------------------------------------------ */

/* The epoch's own episodes, copied together. */
static bool next_episode(void *ctx, uint64_t *at, struct opc_path *out)
{
    struct loop *l = ctx;
    const int b = l->recorded + (int)*at, obs = l->env->obs, actions = l->env->act;
    if (b >= opc_episodes_count(l->past))
        return false;
    float *to = l->path;
    const int steps = opc_episodes_length(l->past, b);
    for (int t = 0; t < steps; t++) {
        const struct opc_step s = opc_episodes_at(l->past, b, t);
        memcpy(to, s.state, (size_t)obs * sizeof *to);
        memcpy(to + obs, s.action, (size_t)actions * sizeof *to);
        to[obs + actions] = s.reward;
        to[obs + actions + 1] = s.terminal;
        to += obs + actions + 2;
        memcpy(to, s.next, (size_t)obs * sizeof *to);
    }
    *out = (struct opc_path){steps, l->path};
    ++*at;
    return true;
}

static void note(struct loop *l, const struct opc_agent_report *r)
{
    const struct opc_agent_column *column = l->learner->type->columns;
    const double n = (double)r->updates;
    for (int k = 0; column[k].name; k++) {
        double *all = &l->agent[k];
        if (column[k].over == OPC_OVER_MEAN)
            *all = l->updates ? (*all * (double)l->updates + r->value[k] * n) /
                                    (double)(l->updates + r->updates)
                              : r->value[k];
        else if (l->updates == 0 || (r->value[k] < *all) == (column[k].over == OPC_OVER_MIN))
            *all = r->value[k];
    }
    l->updates += r->updates;
}

static void learn_from_episodes(struct loop *l)
{
    struct opc_agent_report r = {OPC_SIZED(struct opc_agent_report)};
    struct opc_err err;
    const struct opc_feed feed = {OPC_SIZED(struct opc_feed),
                                  .path = next_episode,
                                  .ctx = l,
                                  .seed = seed_of(l),
                                  .epoch = (uint32_t)l->epoch,
                                  .done = (l->epoch - 1.0) / l->v->train.epochs};
    assert_ok(opc_agent_improve(l->learner, &feed, 0, &r, &err), &err);
    note(l, &r);
}

static void improve(struct loop *l)
{
    const struct opc_train_config *train = &l->v->train;
    const int steps = opc_episodes_steps(l->past), rounds = l->model ? train->rounds : 1;
    const int all = (int)round(train->updates_per_step * or_epoch(l, train->improve_every));
    struct opc_err err;
    if ((l->model && opc_imagined_transitions(l->imagined) == 0) || steps == 0 ||
        steps < train->learning_starts)
        return;
    if (l->learner->type->needs & OPC_NEEDS_TRAJECTORIES) {
        learn_from_episodes(l);
        return;
    }
    for (int k = 0; k < rounds; k++) {
        const int n = opc_share(all, rounds, k);
        struct opc_agent_report r = {OPC_SIZED(struct opc_agent_report)};
        if (k > 0)
            simulate(l, k);
        const struct opc_feed feed = {
            OPC_SIZED(struct opc_feed), .draw = opc_batch_draw,      .ctx = &l->mix,
            .seed = seed_of(l),         .epoch = (uint32_t)l->epoch, .first = (uint32_t)l->updates};
        assert_ok(opc_agent_improve(l->learner, &feed, n, &r, &err), &err);
        note(l, &r);
    }
}

/* One episode behind the other, without exploration. */
static void evaluate(struct loop *l)
{
    const int n = l->v->eval.episodes;
    struct opc_err err;
    double obs[MAX_OBS], action[MAX_ACT], sum[MAX_EPISODES] = {0}, length = 0;
    struct opc_outcome out = {.obs = obs};
    float s[MAX_OBS], a[MAX_ACT];
    assert_true(n <= MAX_EPISODES);
    for (int i = 0; i < n; i++) {
        struct opc_rng rng =
            opc_rng_stream(seed_of(l), OPC_USE_EVAL, (uint32_t)l->epoch, (uint32_t)i);
        assert_ok(opc_env_reset(l->other, &rng, obs, &err), &err);
        do {
            to_float(l->other->obs, obs, s);
            opc_agent_act(l->learner, 1, s, false, NULL, a);
            opc_env_scale(l->other, a, action);
            assert_ok(opc_env_step(l->other, action, &out, &err), &err);
            sum[i] += out.reward;
            length++;
        } while (!out.terminated && !out.truncated);
    }
    l->eval[0] = 0;
    l->eval[1] = l->eval[2] = sum[0];
    for (int i = 0; i < n; i++) {
        l->eval[0] += sum[i];
        l->eval[1] = fmin(l->eval[1], sum[i]);
        l->eval[2] = fmax(l->eval[2], sum[i]);
    }
    l->eval[0] /= n;
    l->eval[3] = length / n;
    l->best = l->epoch == 1 ? l->eval[0] : fmax(l->best, l->eval[0]);
}

static void play_epoch(struct loop *l)
{
    const struct opc_train_config *train = &l->v->train;
    const int n = train->steps_per_epoch;
    l->epoch++;
    l->recorded = opc_episodes_count(l->past);
    for (int k = 0; k < OPC_ERRORS; k++)
        l->errors.learned[k] = l->errors.corrected[k] = (double)NAN;
    l->episodes = l->fits = l->rollouts = 0;
    l->next_rollout = 0;
    l->updates = 0;
    l->reward_min = HUGE_VAL;
    l->reward_max = -HUGE_VAL;
    l->max_std = 0;
    memset(l->ends, 0, sizeof l->ends);
    l->returns = l->lengths = 0;
    memset(l->agent, 0, sizeof l->agent);
    for (int t = 0; t < n; t++) {
        if (train->fit_first)
            imagine(l, t);
        act(l);
        if (t + 1 == n && train->reset_each_epoch && opc_episodes_open(l->past))
            end(l);
        if (!train->fit_first)
            imagine(l, t + 1);
        if ((t + 1) % or_epoch(l, train->improve_every) == 0)
            improve(l);
    }
    evaluate(l);
}

/* ---- its parts ------------------------------------------------------------------------------- */

static void make_model(struct loop *l, int capacity)
{
    const struct opc_values *v = l->v;
    const int obs = l->env->obs, actions = l->env->act, h = opc_horizon_max(v);
    struct opc_err err;
    assert_ok(
        opc_ensemble_make(&v->model, obs, actions, 1, seed_of(l), WHICH_MODEL, &l->model, &err),
        &err);
    const struct opc_transition_options options = {
        OPC_SIZED(struct opc_transition_options),
        .name = transition_of(l),
        .past = l->past,
        .model = l->model,
        .steps = capacity,
        .reward_by_model = !v->opc.correct_reward,
        .mean = !v->opc.sample,
    };
    assert_ok(opc_transition_create(&options, &l->transition, &err), &err);
    assert_ok(opc_rollout_create(obs, actions, h, 64, &l->rollout, &err), &err);
    const struct opc_imagined_shape shape = {
        OPC_SIZED(struct opc_imagined_shape),
        .obs = obs,
        .act = actions,
        .longest = h,
        .forget = v->data.forget == OPC_FORGET_STEPS ? OPC_FORGET_STEPS : OPC_FORGET_EPOCHS,
        .retain = v->data.retain,
        .transitions = 100000,
    };
    assert_ok(opc_imagined_create(&shape, &l->imagined, &err), &err);
    l->sa = opc_alloc((size_t)(capacity * (obs + actions)), sizeof *l->sa);
    l->y = opc_alloc((size_t)(capacity * (obs + 1)), sizeof *l->y);
    assert_true(l->sa && l->y);
}

static void make(struct loop *l, const struct opc_values *v, double entropy)
{
    struct opc_err err;
    const int capacity = 10000;
    *l = (struct loop){.v = v};
    assert_ok(opc_env_open(v->env.name, &l->env, &err), &err);
    assert_ok(opc_env_open(v->env.name, &l->other, &err), &err);
    assert_true(l->env->obs <= MAX_OBS && l->env->act <= MAX_ACT);
    assert_ok(opc_episodes_create(l->env->obs, l->env->act, capacity, capacity, &l->past, &err),
              &err);
    const struct opc_agent_args args = {OPC_SIZED(struct opc_agent_args),
                                        .obs = l->env->obs,
                                        .act = l->env->act,
                                        .seed = seed_of(l),
                                        .config = opc_values_agent(v, v->train.agent),
                                        .target_entropy = entropy,
                                        .steps = capacity};
    assert_ok(opc_agent_create(opc_agent_name(v->train.agent), &args, &l->learner, &err), &err);
    if (strcmp(transition_of(l), "replay") != 0)
        make_model(l, capacity);
    l->mix = (struct opc_mix){.imagined = l->imagined,
                              .episodes = l->model && v->data.real_ratio == 0 ? NULL : l->past,
                              .real_ratio = l->model ? v->data.real_ratio : 1};
}

static void destroy(struct loop *l)
{
    opc_agent_destroy(l->learner);
    opc_imagined_destroy(l->imagined);
    opc_rollout_destroy(l->rollout);
    opc_transition_destroy(l->transition);
    opc_predictor_destroy(l->model);
    opc_episodes_destroy(l->past);
    opc_env_close(l->env);
    opc_env_close(l->other);
    opc_free(l->sa);
    opc_free(l->y);
}

/* ---- beside opc_train ------------------------------------------------------------------------ */

/* room: relative */
static void compare_cell(const struct loop *l, const char *dir, const char *what, const char *name,
                         double want, double capacity)
{
    const double got = test_metric(dir, l->epoch, name);
    if (!(isnan(want) && isnan(got)) && !(fabs(got - want) <= capacity * fabs(want)))
        fail_msg("%s: epoch %d: %s is %.17g, should be %.17g", what, l->epoch, name, got, want);
}

static void compare_row(const struct loop *l, const char *dir, const char *what)
{
    const double n = (double)l->updates, ended = l->episodes;
    const struct {
        const char *name;
        double want, capacity; /* room: relative, where sums are taken in another order */
    } cells[] = {
        {"eval_return", l->eval[0], 0},
        {"eval_min", l->eval[1], 0},
        {"eval_max", l->eval[2], 0},
        {"eval_length", l->eval[3], 0},
        {"env_steps", (double)l->epoch * l->v->train.steps_per_epoch, 0},
        {"total_steps", (double)l->steps, 0},
        {"recorded", opc_episodes_steps(l->past), 0},
        {"imagined", l->model ? (double)opc_imagined_transitions(l->imagined) : 0, 0},
        {"fits", l->fits, 0},
        {"rollouts", l->rollouts, 0},
        {"updates", n, 0},
        {"episodes", ended, 0},
        {"train_return", ended > 0 ? l->returns / ended : (double)NAN, 1e-12},
        {"train_length", ended > 0 ? l->lengths / ended : (double)NAN, 1e-12},
        {"learned_1", l->errors.learned[0], 0},
        {"learned_10", l->errors.learned[2], 0},
        {"corrected_1", l->errors.corrected[0], 0},
        {"corrected_10", l->errors.corrected[2], 0},
        {"reward_min", l->rollouts ? l->reward_min : (double)NAN, 0},
        {"reward_max", l->rollouts ? l->reward_max : (double)NAN, 0},
        {"state_max_std", l->rollouts ? l->max_std : (double)NAN, 1e-5},
        {"end_horizon", l->ends[OPC_END_HORIZON] / l->rollouts, 0},
        {"end_terminal", l->ends[OPC_END_TERMINAL] / l->rollouts, 0},
        {"end_reference", l->ends[OPC_END_REFERENCE] / l->rollouts, 0},
    };
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        compare_cell(l, dir, what, cells[i].name, cells[i].want, cells[i].capacity);
    const struct opc_agent_column *column = l->learner->type->columns;
    for (int k = 0; column[k].name; k++)
        compare_cell(l, dir, what, column[k].name, n > 0 ? l->agent[k] : (double)NAN,
                     column[k].over == OPC_OVER_MEAN ? 1e-9 : 0);
}

static void compare_policies(const struct loop *l, const char *dir, const char *what)
{
    struct opc_agent *agent;
    struct opc_err err;
    float s[MAX_OBS], mine[MAX_ACT], its[MAX_ACT];
    assert_ok(opc_policy_load(dir, &agent, &err), &err);
    for (uint32_t i = 0; i < 20; i++) {
        struct opc_rng rng = opc_rng_stream(1, OPC_USE_TEST, 0, i);
        for (int k = 0; k < l->env->obs; k++)
            s[k] = 2 * opc_rng_unit(&rng) - 1;
        opc_agent_act(l->learner, 1, s, false, NULL, mine);
        opc_agent_act(agent, 1, s, false, NULL, its);
        if (memcmp(mine, its, (size_t)l->env->act * sizeof *mine) != 0)
            fail_msg("%s: in state %u the policy does %a, should do %a", what, i, (double)its[0],
                     (double)mine[0]);
    }
    opc_agent_destroy(agent);
}

static void compare_result(const struct loop *l, const char *dir)
{
    struct opc_json_value *j;
    struct opc_err err;
    char path[OPC_PATH];
    double last, best;
    assert_ok(opc_path_join(path, dir, "result.json", &err), &err);
    assert_ok(opc_json_read(path, &j, &err), &err);
    assert_true(opc_json_number(opc_json_find(j, "eval_return"), &last));
    assert_true(opc_json_number(opc_json_find(j, "best_return"), &best));
    assert_true(fabs(last - l->eval[0]) <= 1e-14 * fabs(last)); /* 15 digits */
    assert_true(fabs(best - l->best) <= 1e-14 * fabs(best));
    opc_json_free(j);
    if (!l->model)
        return;
    assert_ok(opc_path_join(path, dir, "status.json", &err), &err);
    assert_ok(opc_json_read(path, &j, &err), &err);
    assert_true(opc_json_number(opc_json_find(j, "model_error"), &last));
    assert_true(fabs(last - l->model_error) <= 1e-14 * fabs(last));
    opc_json_free(j);
}

static const char *const SMALL[] = {
    "train.seed=7",
    "train.epochs=3",
    "train.steps_per_epoch=20",
    "train.random_steps=60",
    "train.updates_per_step=2",
    "opc.transitions=100",
    "opc.horizon=4",
    "model.members=3",
    "model.elites=2",
    "model.hidden=[8]",
    "model.weight_decay=1e-5",
    "model.max_epochs=3",
    "sac.policy_hidden=[8]",
    "sac.critic_hidden=[8]",
    "sac.batch_size=20",
    "eval.episodes=3",
    "data.retain=2",
    "env.name=cartpole",
};

/* `more` ends with NULL; entropy is the goal of the task. */
static void both_agree(const char *dir, const char *const *more, double entropy)
{
    struct opc_config *config;
    struct opc_err err;
    struct loop l;
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

    make(&l, &config->set, entropy);
    play_at_random(&l);
    while (l.epoch < config->set.train.epochs) {
        play_epoch(&l);
        compare_row(&l, dir, opc_text_get(&what));
    }
    compare_policies(&l, dir, opc_text_get(&what));
    compare_result(&l, dir);
    destroy(&l);
    opc_text_free(&what);
    opc_config_destroy(config);
}

enum { CARTPOLE, PENDULUM };

static void the_loop_is_the_one_that_is_written_here(void **state)
{
    static const double ENTROPY[] = {-0.05, (double)NAN};
    const struct {
        const char *const *set;
        int task;
    } cases[] = {
        {(const char *const[]){NULL}, CARTPOLE},
        {(const char *const[]){"opc.transition=learned", NULL}, CARTPOLE},
        {(const char *const[]){"opc.transition=learned", "opc.sample=false", NULL}, CARTPOLE},
        {(const char *const[]){"opc.correct_reward=false", NULL}, CARTPOLE},
        {(const char *const[]){"opc.start=paper", "opc.reference_terminal=terminal", NULL},
         CARTPOLE},
        {(const char *const[]){"opc.elite=rollout", "data.real_ratio=0.3", NULL}, CARTPOLE},
        {(const char *const[]){"train.rounds=3", "data.retain=1", NULL}, CARTPOLE},
        {(const char *const[]){"train.rounds=2", "data.reset=true", "opc.rollouts=31", NULL},
         CARTPOLE},
        {(const char *const[]){"opc.reference_epochs=1", NULL}, CARTPOLE},
        {(const char *const[]){"opc.reference_epochs=2", "opc.transition=learned", "train.rounds=3",
                               "train.epochs=5", NULL},
         CARTPOLE},
        {(const char *const[]){"opc.reference_epochs=1", "opc.start=paper", NULL}, CARTPOLE},
        {(const char *const[]){"opc.reference_epochs=3", "train.random_steps=0", "train.epochs=6",
                               NULL},
         CARTPOLE},
        /* more epochs than there will be */
        {(const char *const[]){"opc.reference_epochs=9", NULL}, CARTPOLE},
        /* more episodes than are played at once */
        {(const char *const[]){"eval.episodes=67", "train.epochs=2", NULL}, CARTPOLE},
        /* fits of one and the same past, because its episode has not ended */
        {(const char *const[]){"env.name=pendulum", "train.fit_first=true", "train.fit_every=5",
                               "train.simulate_every=5", "train.improve_every=1",
                               "train.reset_each_epoch=false", "opc.rollouts=10", NULL},
         PENDULUM},
        /* windows in which no episode has ended yet */
        {(const char *const[]){"env.name=pendulum", "train.fit_first=true", "train.fit_every=5",
                               "train.simulate_every=5", "train.improve_every=1",
                               "train.reset_each_epoch=false", "opc.rollouts=10",
                               "opc.reference_epochs=2", "train.steps_per_epoch=50",
                               "train.epochs=8", NULL},
         PENDULUM},
        {(const char *const[]){
             "train.fit_first=true", "train.fit_every=5", "train.simulate_every=5",
             "train.improve_every=1", "train.reset_each_epoch=false", "opc.rollouts=10",
             "opc.reference_epochs=1", "train.steps_per_epoch=15", "train.epochs=6", NULL},
         CARTPOLE},
        /* an epoch of too few steps for a model: nothing is imagined, and nothing learned */
        {(const char *const[]){"train.random_steps=0", "train.steps_per_epoch=10", NULL}, CARTPOLE},
        /* a past that grows while the model stays */
        {(const char *const[]){"train.fit_every=20", "train.simulate_every=5",
                               "train.improve_every=5", "train.reset_each_epoch=false",
                               "train.steps_per_epoch=60", "opc.rollouts=10", NULL},
         CARTPOLE},
        /* two episodes end by time in the random phase */
        {(const char *const[]){"env.name=pendulum", "train.random_steps=300", NULL}, PENDULUM},
        {(const char *const[]){"env.name=pendulum", "opc.transition=replay",
                               "train.improve_every=1", "train.reset_each_epoch=false",
                               "train.steps_per_epoch=150", "train.learning_starts=100", NULL},
         PENDULUM},
        /* a random phase it does not learn from */
        {(const char *const[]){"train.agent=ppo", "opc.transition=replay", "ppo.batch_size=16",
                               "ppo.update_epochs=3", "ppo.policy_hidden=[6]",
                               "ppo.learning_rate=0.01", NULL},
         CARTPOLE},
        /* one episode ends by time, the next one is cut */
        {(const char *const[]){"env.name=pendulum", "train.agent=ppo", "opc.transition=replay",
                               "train.steps_per_epoch=250", "train.random_steps=0",
                               "ppo.anneal_lr=false", NULL},
         PENDULUM},
        {(const char *const[]){"train.fit_every=10", "train.simulate_every=5",
                               "train.improve_every=1", "train.fit_first=true",
                               "train.reset_each_epoch=false", "opc.transition=learned",
                               "opc.rollouts=10", "opc.horizon=[0, 2, 1, 3]", "data.forget=steps",
                               "data.real_ratio=0.05", NULL},
         CARTPOLE},
    };
    char dir[OPC_PATH];
    snprintf(dir, sizeof dir, "%s/run", (const char *)*state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        both_agree(dir, cases[i].set, ENTROPY[cases[i].task]);
}

int main(void)
{
    if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_loop_is_the_one_that_is_written_here, test_make_dir,
                                        test_remove_dir),
    };
    return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
