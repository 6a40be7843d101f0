/* SPDX-License-Identifier: MIT */
/* Algorithm 1, top to bottom:
 *
 *     play at random, and record it
 *     for each epoch:
 *         act        E steps with the policy on the real environment      -> past
 *         fit        p~ to all of the past                                -> model
 *         simulate   rollouts through eq. 5 (or 2) beside the past        -> imagined
 *         improve    the policy on what was imagined                      -> agent
 *         evaluate   it, without exploration, on other environments
 *         save       a row of metrics.csv and a checkpoint
 *
 * That is the paper's order, once an epoch; with train.rounds, simulate and improve take turns.
 * With train.fit_first and improvements every step it is the loop of the original MBPO: fit and
 * simulate come before the steps they are due with, the first time right after the random phase;
 * the policy improves between any two steps; an episode runs on across epochs, and counts as
 * recorded only when it has ended. With opc.transition = replay nothing is fitted or simulated and
 * the policy learns from the past: that is SAC, or PPO, which learns from the epoch's own episodes.
 *
 * Whatever is random draws from a stream named by what it is for, so the loop keeps no generator,
 * and a run that was stopped anywhere can be brought back to the end of its last epoch, or of the
 * random phase. */
#include "base/clock.h"
#include "data/episodes_in.h"
#include "num/kernel.h"
#include "num/scaler.h"
#include "run/evaluate.h"
#include "run/json.h"
#include "run/onpolicy.h"
#include "run/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    LEAST_STEPS = 16, /* a model is not fitted to fewer */
    UPDATES = 256,    /* between two looks at the clock */
};

const char *opc_phase_name(enum opc_phase phase)
{
    static const char *const NAME[OPC_PHASES] = {
        "random", "act", "fit", "simulate", "improve", "evaluate", "save",
    };
    return NAME[phase];
}

/* ---- progress -------------------------------------------------------------------------------- */

static void tell_whereabouts(struct opc_run *run)
{
    struct opc_progress *p = &run->progress;
    p->env_steps = (long)run->now.env_steps;
    p->total_steps = (long)run->now.total_steps;
    p->eval_return = run->now.eval_return;
    p->eval_length = run->now.eval_length;
    p->model_error = run->now.model_error;
}

static void show(struct opc_run *run, double now)
{
    tell_whereabouts(run);
    run->progress.elapsed = now - run->began;
    run->shown = now;
    if (run->plan->progress)
        run->plan->progress(run->plan->ctx, &run->progress);
}

/* Books the time since the last call. */
static double book(struct opc_run *run)
{
    const double now = opc_now();
    run->progress.seconds[run->progress.phase] += now - run->entered;
    run->entered = now;
    return now;
}

static void enter(struct opc_run *run, enum opc_phase phase)
{
    const double now = book(run);
    run->progress.phase = phase;
    run->progress.share = 0;
    if (now - run->shown > 0.05)
        show(run, now);
}

static void advance(struct opc_run *run, double share)
{
    run->progress.share = share;
    if (opc_now() - run->shown > 0.2)
        show(run, book(run));
}

/* Asked by fit, rollouts and agent in the middle of their work. */
static bool stop(void *ctx)
{
    struct opc_run *run = ctx;
    advance(run, run->progress.share);
    return run->plan->stop && run->plan->stop(run->plan->ctx);
}

static int stopped(struct opc_run *run, struct opc_err *err)
{
    return stop(run) ? opc_fail(err, OPC_ESTOPPED, "stopped") : OPC_OK;
}

/* Of the epoch that is under way; the random phase is number 0. */
static uint32_t number(const struct opc_run *run)
{
    return (uint32_t)run->now.epoch + 1;
}

/* ---- play at random, and record it ----------------------------------------------------------- */

static int play_randomly(struct opc_run *run, struct opc_err *err)
{
    const int wanted = run->set->train.random_steps;
    int code = OPC_OK;
    enter(run, OPC_RANDOM);
    while (!code && opc_episodes_steps(run->past) < wanted) {
        struct opc_rng rng =
            opc_rng_stream(run->seed, OPC_USE_RANDOM, 0, (uint32_t)run->play->number);
        code = opc_play_start(run->play, err);
        while (!code && opc_play_running(run->play)) {
            for (int k = 0; k < run->act; k++)
                run->a[k] = 2 * opc_rng_unit(&rng) - 1;
            code = opc_play_step(run->play, run->a, err);
            run->now.total_steps++;
            if (!code)
                code = stopped(run, err);
        }
        advance(run, (double)opc_episodes_steps(run->past) / wanted);
    }
    return code;
}

/* ---- act ------------------------------------------------------------------------------------- */

static int act(struct opc_run *run, int t, struct opc_err *err)
{
    const struct opc_train_config *train = &run->set->train;
    if (run->progress.phase != OPC_ACT)
        enter(run, OPC_ACT);
    int code = opc_play_running(run->play) ? OPC_OK : opc_play_start(run->play, err);
    if (code)
        return code;
    struct opc_rng rng =
        opc_rng_stream(run->seed, OPC_USE_EXPLORE, 0, (uint32_t)run->now.total_steps);
    opc_agent_act(run->agent, 1, run->play->s, true, &rng, run->a);
    code = opc_play_step(run->play, run->a, err);
    if (code)
        return code;
    run->now.env_steps++;
    run->now.total_steps++;
    run->progress.step = t + 1;
    if (t + 1 == train->steps_per_epoch && train->reset_each_epoch)
        opc_play_cut(run->play);
    advance(run, (double)(t + 1) / train->steps_per_epoch);
    return stopped(run, err);
}

/* ---- fit ------------------------------------------------------------------------------------- */

static int measure_errors(struct opc_run *run, struct opc_err *err)
{
    const struct opc_onpolicy_plan plan = {
        .past = run->past,
        .newest = run->recorded[run->now.epoch],
        .model = run->model,
        .agent = run->agent,
        .worlds = run->worlds,
        .sample = run->set->opc.sample,
        .elite_per_rollout = run->set->opc.elite,
        .seed = run->seed,
        .epoch = number(run),
        .pool = run->pool,
    };
    struct opc_epoch_row *row = &run->row;
    struct opc_onpolicy got;
    if (run->play->env->type->machine)
        return OPC_OK; /* what else would have happened cannot be tried */
    const int code = opc_onpolicy_errors(&plan, &got, err);
    memcpy(row->learned, got.learned, sizeof row->learned);
    memcpy(row->corrected, got.corrected, sizeof row->corrected);
    run->now.model_error =
        run->transition.type->needs_reference ? row->corrected[0] : row->learned[0];
    return code;
}

static int fit(struct opc_run *run, struct opc_err *err)
{
    const int steps = opc_episodes_steps(run->past);
    if (steps < LEAST_STEPS)
        return OPC_OK;
    enter(run, OPC_FIT);
    const struct opc_fit_plan plan = {
        .seed = run->seed,
        .epoch = number(run),
        .index = (uint32_t)run->row.fits,
        .pool = run->pool,
        .stop = stop,
        .stop_ctx = run,
    };
    opc_episodes_flatten(run->past, run->sa, run->y);
    int code = opc_predictor_fit(run->model, steps, run->sa, run->y, &plan, &run->row.fit, err);
    if (code)
        return opc_within(err, "model fit");
    run->row.fits++;
    run->now.fits++;
    run->stale = true;
    return OPC_OK;
}

/* ---- simulate -------------------------------------------------------------------------------- */

static void policy(void *ctx, int n, const float *state, struct opc_rng *rng, float *action)
{
    opc_agent_act(ctx, n, state, true, rng, action);
}

static void has_ended(void *ctx, int n, const float *s, const float *a, const float *next,
                      bool *out)
{
    opc_env_terminal(ctx, n, s, a, next, out);
}

/* The first episode of the reference window: epochs n - K + 1 to n, of which n is under way and 0
 * the random phase. An episode belongs to the epoch it ended in; while none has ended in the
 * window, it reaches back to the newest epoch that has one. */
static int first_reference(const struct opc_run *run)
{
    const int episodes = opc_episodes_count(run->past);
    const int K = run->set->opc.reference_epochs;
    if (K == 0)
        return 0;
    int64_t before = run->now.epoch + 1 - K; /* the last epoch that is too old */
    while (before >= 0 && run->recorded[before] == episodes)
        before--;
    return before < 0 ? 0 : run->recorded[before];
}

/* The window is where it should be, eq. 5 knows the model's predictions in it, and rollouts know
 * which states are usual. */
static int look_at_references(struct opc_run *run, struct opc_err *err)
{
    struct opc_transition *tr = &run->transition;
    const struct opc_records all = opc_episodes_records(run->past);
    int first;
    opc_scaler_fit(run->states, (int)all.n, all.at, all.stride, NULL, false);
    tr->first_episode = first_reference(run);
    const int steps = opc_transition_window(tr, &first);
    if (!run->stale && tr->first == first && tr->filled == steps)
        return OPC_OK;
    const int code = opc_transition_refresh(tr, run->pool, err);
    run->stale = code != OPC_OK;
    return code;
}

static void note_rollouts(struct opc_epoch_row *row, const struct opc_rollout_report *r)
{
    const bool first = row->rollouts == 0;
    row->rollouts += (long)r->rollouts;
    row->imagined += (long)r->transitions;
    for (int k = 0; k < OPC_ENDS; k++)
        row->end[k] += r->end[k];
    row->reward_min = first ? (double)r->reward_min : fmin(row->reward_min, (double)r->reward_min);
    row->reward_max = first ? (double)r->reward_max : fmax(row->reward_max, (double)r->reward_max);
    row->state_max_std = fmax(row->state_max_std, (double)r->state_max_std);
}

/* Round k of train.rounds; the first comes with the fit, the others with the improvement. */
static int simulate(struct opc_run *run, int k, struct opc_err *err)
{
    const struct opc_values *v = run->set;
    const int horizon = opc_horizon(v, (int)run->now.epoch);
    if (run->now.fits == 0)
        return OPC_OK;
    enter(run, OPC_SIMULATE);
    int code = look_at_references(run, err);
    if (code)
        return code;
    if (v->data.reset)
        opc_imagined_clear(run->imagined);
    if (v->data.forget == OPC_FORGET_STEPS)
        opc_imagined_limit(run->imagined, opc_run_limit(v, horizon));
    opc_imagined_open_epoch(run->imagined, (int)number(run));

    const struct opc_rollout_plan plan = {
        .transition = &run->transition,
        .act = policy,
        .act_ctx = run->agent,
        .terminal = has_ended,
        .terminal_ctx = run->play->env,
        .states = run->states,
        .horizon = horizon,
        .transitions = (size_t)opc_share(v->opc.transitions, v->train.rounds, k),
        .rollouts = opc_share(v->opc.rollouts, v->train.rounds, k),
        .start = (enum opc_start)v->opc.start,
        .reference_terminal = v->opc.reference_terminal,
        .elite_per_rollout = v->opc.elite,
        .seed = run->seed,
        .epoch = number(run),
        .index = run->rollouts,
        .pool = run->pool,
        .stop = stop,
        .stop_ctx = run,
    };
    struct opc_rollout_report report;
    code = opc_rollout_run(run->rollout, &plan, run->imagined, &report, err);
    if (code)
        return code;
    run->rollouts = report.index;
    run->row.horizon = horizon;
    note_rollouts(&run->row, &report);
    return OPC_OK;
}

/* Fit and simulate when they are due at step t of the epoch. */
static int model(struct opc_run *run, int t, struct opc_err *err)
{
    const struct opc_values *v = run->set;
    const int every = opc_every(v, v->train.fit_every);
    const bool is_last = t + every > v->train.steps_per_epoch - v->train.fit_first;
    int code = OPC_OK;
    if (!run->model)
        return code;
    if (t % every == 0) {
        const int fits = run->row.fits;
        code = fit(run, err);
        /* A row has one error, of the last model: looking takes thousands of steps. */
        if (!code && run->row.fits > fits && is_last)
            code = measure_errors(run, err);
    }
    if (!code && t % opc_every(v, v->train.simulate_every) == 0)
        code = simulate(run, 0, err);
    return code;
}

/* ---- improve --------------------------------------------------------------------------------- */

/* Of all updates of the epoch: means or extremes, as the agent's columns say. */
static void note_updates(struct opc_run *run, const struct opc_agent_report *r)
{
    const struct opc_agent_column *column = run->agent->type->columns;
    struct opc_epoch_row *row = &run->row;
    if (r->updates == 0)
        return;
    const bool first = row->agent.updates == 0;
    row->agent.updates += r->updates;
    run->now.updates += r->updates;
    const double share = (double)r->updates / (double)row->agent.updates;
    for (int k = 0; column[k].name; k++) {
        double *all = &row->agent.value[k];
        const double one = r->value[k];
        if (column[k].over == OPC_OVER_MEAN)
            *all += share * (one - *all);
        else if (column[k].over == OPC_OVER_MIN)
            *all = first ? one : fmin(*all, one);
        else
            *all = first ? one : fmax(*all, one);
    }
}

static bool can_improve(const struct opc_run *run)
{
    const int steps = opc_episodes_steps(run->past);
    if (run->imagined && opc_imagined_transitions(run->imagined) == 0)
        return false;
    return steps > 0 && steps >= run->set->train.least_steps;
}

/* Gradient steps from number `done` to `end` of an improvement. */
static int update(struct opc_run *run, int done, int end, struct opc_err *err)
{
    int code = OPC_OK;
    enter(run, OPC_IMPROVE);
    for (int n; done < end && !code; done += n) {
        struct opc_agent_report report = {0};
        const struct opc_feed feed = {
            .draw = opc_batch_draw,
            .ctx = &run->mix,
            .seed = run->seed,
            .epoch = number(run),
            .first = (uint32_t)run->row.agent.updates,
            .stop = stop,
            .stop_ctx = run,
        };
        n = end - done < UPDATES ? end - done : UPDATES;
        code = opc_agent_improve(run->agent, &feed, n, &report, err);
        if (!code) {
            note_updates(run, &report);
            advance(run, (double)(done + n) / opc_updates(run->set));
            code = stopped(run, err);
        }
    }
    return code;
}

/* The episodes of this epoch. */
static bool next_path(void *ctx, uint64_t *at, struct opc_path *out)
{
    const struct opc_run *run = ctx;
    const struct opc_records all = opc_episodes_records(run->past);
    const int b = run->recorded[run->now.epoch] + (int)*at;
    if (b >= opc_episodes_count(run->past))
        return false;
    out->steps = opc_episodes_length(run->past, b);
    out->records = all.at + opc_episodes_record(opc_episodes_first(run->past, b), b) * all.stride;
    ++*at;
    return true;
}

static int learn_from_paths(struct opc_run *run, struct opc_err *err)
{
    struct opc_agent_report report;
    const struct opc_feed feed = {
        .path = next_path,
        .ctx = run,
        .seed = run->seed,
        .epoch = number(run),
        .done = (double)run->now.epoch / run->set->train.epochs,
        .stop = stop,
        .stop_ctx = run,
    };
    enter(run, OPC_IMPROVE);
    const int code = opc_agent_improve(run->agent, &feed, 0, &report, err);
    if (!code)
        note_updates(run, &report);
    return code;
}

static int improve(struct opc_run *run, struct opc_err *err)
{
    const int rounds = run->imagined ? run->set->train.rounds : 1;
    int code = OPC_OK;
    if (run->agent->type->needs & OPC_NEEDS_TRAJECTORIES)
        return learn_from_paths(run, err);
    if (!can_improve(run))
        return code;
    for (int k = 0, done = 0, n; k < rounds && !code; k++, done += n) {
        n = opc_share(opc_updates(run->set), rounds, k);
        if (k > 0)
            code = simulate(run, k, err);
        if (!code)
            code = update(run, done, done + n, err);
    }
    return code;
}

/* ---- evaluate -------------------------------------------------------------------------------- */

static int evaluate(struct opc_run *run, struct opc_err *err)
{
    const struct opc_values *v = run->set;
    const int epoch = (int)run->now.epoch + 1;
    if (epoch % v->eval.every != 0 && epoch != v->train.epochs)
        return OPC_OK;
    enter(run, OPC_EVALUATE);
    const struct opc_eval_plan plan = {
        .agent = run->agent,
        .worlds = run->worlds,
        .episodes = v->eval.episodes,
        .limit = run->play->limit,
        .seed = run->seed,
        .epoch = number(run),
        .stop = stop,
        .stop_ctx = run,
    };
    const int code = opc_evaluate(&plan, &run->row.eval, NULL, err);
    if (code)
        return code;
    run->row.evaluated = true;
    run->now.eval_return = run->row.eval.mean;
    run->now.eval_length = run->row.eval.length;
    if (!(run->now.best_return >= run->now.eval_return))
        run->now.best_return = run->now.eval_return;
    return OPC_OK;
}

/* ---- save ------------------------------------------------------------------------------------ */

static void log_epoch(struct opc_run *run)
{
    const struct opc_epoch_row *row = &run->row;
    char evaluated[96] = "not evaluated", spent[OPC_PRINTED];
    double sum = 0;
    for (int p = 0; p < OPC_PHASES; p++)
        sum += run->progress.seconds[p];
    if (row->evaluated)
        snprintf(evaluated, sizeof evaluated, "return %.1f (%.1f to %.1f)", row->eval.mean,
                 row->eval.least, row->eval.most);
    opc_record_log(run->record, OPC_DEBUG, "epoch %d of %d: %ld steps, %s, model error %.3g, %s",
                   row->epoch, run->set->train.epochs, row->env_steps, evaluated,
                   run->now.model_error, opc_print_duration(sum, spent));
}

static int tell_status(struct opc_run *run, struct opc_err *err)
{
    tell_whereabouts(run);
    run->told = run->progress;
    return opc_record_status(run->record, "running", NULL, &run->told, err);
}

static int save(struct opc_run *run, struct opc_err *err)
{
    struct opc_epoch_row *row = &run->row;
    enter(run, OPC_SAVE);
    run->now.epoch++;
    row->epoch = (int)run->now.epoch;
    row->env_steps = (long)run->now.env_steps;
    row->total_steps = (long)run->now.total_steps;
    row->episodes = run->play->ended;
    row->train_return = run->play->ended ? run->play->returns / run->play->ended : 0;
    row->train_length = run->play->ended ? run->play->lengths / run->play->ended : 0;
    row->recorded_kept = opc_episodes_steps(run->past);
    row->imagined_kept = run->imagined ? (long)opc_imagined_transitions(run->imagined) : 0;

    int code = opc_record_epoch(run->record, row, err);
    if (!code) {
        const double now = book(run);
        code = opc_record_timing(run->record, row->epoch, run->progress.seconds, now - run->began,
                                 err);
        log_epoch(run);
        run->progress.seconds[OPC_SAVE] = 0; /* from here on it is told with the next row */
    }
    const int every = run->set->record.snapshots;
    if (!code && every && row->epoch % every == 0)
        code = opc_run_save_snapshot(run, err);
    if (!code)
        code = opc_run_save(run, err);
    if (!code)
        code = tell_status(run, err);
    if (code)
        return code;
    run->progress.epoch_done = true;
    run->progress.share = 1;
    show(run, book(run));
    run->progress.epoch_done = false;
    return OPC_OK;
}

/* ---- Algorithm 1 ----------------------------------------------------------------------------- */

static void begin_epoch(struct opc_run *run)
{
    struct opc_progress *p = &run->progress;
    run->row = (struct opc_epoch_row){0};
    for (int k = 0; k < OPC_ERRORS; k++)
        run->row.learned[k] = run->row.corrected[k] = (double)NAN;
    run->rollouts = 0;
    run->recorded[run->now.epoch] = opc_episodes_count(run->past);
    opc_play_count_anew(run->play);
    p->epoch = (int)run->now.epoch + 1;
    p->step = 0;
    if (p->first_epoch == 0)
        p->first_epoch = p->epoch;
    /* Of the epoch before only its saving is left to be told, which came behind its row. */
    for (int k = OPC_ACT; k < OPC_SAVE; k++)
        p->seconds[k] = 0;
    if (p->epoch > p->first_epoch)
        p->seconds[OPC_RANDOM] = 0;
}

static int epoch(struct opc_run *run, struct opc_err *err)
{
    const struct opc_values *v = run->set;
    const int steps = v->train.steps_per_epoch, every = opc_every(v, v->train.improve_every);
    int code = OPC_OK;
    begin_epoch(run);
    for (int t = 0; t < steps && !code; t++) {
        if (v->train.fit_first)
            code = model(run, t, err);
        if (!code)
            code = act(run, t, err);
        if (!code && !v->train.fit_first)
            code = model(run, t + 1, err);
        if (!code && (t + 1) % every == 0)
            code = improve(run, err);
    }
    if (!code)
        code = evaluate(run, err);
    if (!code)
        code = save(run, err);
    return code == OPC_EDIVERGED || code == OPC_EENV
               ? opc_within(err, "epoch %lld, real step %lld", (long long)run->now.epoch + 1,
                            (long long)run->now.total_steps)
               : code;
}

static int algorithm_1(struct opc_run *run, struct opc_err *err)
{
    int code = OPC_OK;
    if (run->now.total_steps == 0) {
        code = play_randomly(run, err);
        enter(run, OPC_SAVE);
        run->slot_b = true;                    /* odd epochs have the other one */
        if (!code && run->now.total_steps > 0) /* they may have been played on a machine */
            code = opc_run_save(run, err);
        run->slot_b = false;
        if (!code)
            code = tell_status(run, err);
    }
    while (!code && run->now.epoch < run->set->train.epochs)
        code = epoch(run, err);
    return code;
}

/* ---- around it ------------------------------------------------------------------------------- */

static int write_result(struct opc_run *run, struct opc_err *err)
{
    char path[OPC_PATH];
    if (!run->record)
        return OPC_OK;
    int code = opc_run_save_policy(run, err);
    if (!code)
        code = opc_record_status(run->record, "done", NULL, &run->progress, err);
    if (!code)
        code = opc_record_path(run->record, "result.json", path, err);
    if (code)
        return code;
    struct opc_json *j = opc_json_begin();
    opc_json_text(j, "env", run->set->env.name);
    opc_json_whole(j, "seed", run->set->train.seed);
    opc_json_whole(j, "epochs", run->now.epoch);
    opc_json_whole(j, "env_steps", run->now.env_steps);
    opc_json_whole(j, "total_steps", run->now.total_steps);
    opc_json_whole(j, "updates", run->now.updates);
    opc_json_real(j, "eval_return", run->now.eval_return);
    opc_json_real(j, "best_return", run->now.best_return);
    return opc_json_write(j, path, err);
}

/* Makes the run and brings it to where it is to go on. */
static int set_up(struct opc_run *run, const struct opc_values *v,
                  const struct opc_train_plan *plan, struct opc_err *err)
{
    char path[OPC_PATH];
    run->began = run->entered = opc_now();
    run->now = (struct opc_whereabouts){.eval_return = (double)NAN,
                                        .eval_length = (double)NAN,
                                        .best_return = (double)NAN,
                                        .model_error = (double)NAN};
    /* A new directory is made only for a run that can begin. */
    int code = plan->resume ? opc_record_open(plan->dir, NULL, &run->record, err) : OPC_OK;
    if (!code)
        code = opc_run_make(run, v, plan, err);
    if (!code && plan->dir && !plan->resume)
        code = opc_record_open(plan->dir, v, &run->record, err);
    if (!code && run->record)
        code = opc_run_open_directory(run, err);
    if (!code && run->record)
        code = opc_run_restore(run, err);
    if (code)
        return code;
    run->progress.epochs = v->train.epochs;
    run->progress.steps_per_epoch = v->train.steps_per_epoch;
    run->progress.epoch = (int)run->now.epoch;
    tell_whereabouts(run);
    /* It was raised train.epochs that made the run incomplete again. */
    static const char *const LAST[] = {"result.json", "policy.opc"};
    for (int i = 0; i < 2 && run->now.epoch < v->train.epochs && run->record; i++)
        if (!opc_record_path(run->record, LAST[i], path, NULL))
            unlink(path);
    opc_record_log(run->record, OPC_INFO, "%s: %d observations, %d actions, seed %d, %d threads",
                   v->env.name, run->obs, run->act, v->train.seed, opc_pool_threads(run->pool));
    opc_record_log(run->record, OPC_INFO, "%s", run->memory);
    if (run->model && v->opc.reference_epochs > v->train.epochs)
        opc_record_log(run->record, OPC_WARN,
                       "opc.reference_epochs = %d is more than train.epochs = %d: the window will "
                       "never leave anything out, as with 0",
                       v->opc.reference_epochs, v->train.epochs);
    if (run->now.epoch > 0)
        opc_record_log(run->record, OPC_INFO, "going on after epoch %lld of %d",
                       (long long)run->now.epoch, v->train.epochs);
    else if (run->now.total_steps > 0)
        opc_record_log(run->record, OPC_INFO, "going on after the random phase");
    return tell_status(run, err);
}

/* The reason of a failure goes into the directory, too, with how far the run can be resumed from;
 * that this works is not taken for granted. */
static void note_failure(struct opc_run *run, int code, const struct opc_err *err)
{
    struct opc_err ignored;
    const char *state = code == OPC_ESTOPPED    ? "stopped"
                        : code == OPC_EDIVERGED ? "diverged"
                                                : "failed";
    opc_record_log(run->record, OPC_DEBUG, "%s: %s", state, err->text);
    opc_record_status(run->record, state, err->text, &run->told, &ignored);
}

int opc_train(const struct opc_config *config, const struct opc_train_plan *plan,
              struct opc_err *err)
{
    struct opc_run run = {0};
    struct opc_err own = {0};
    err = err ? err : &own;
    int code = opc_kernels_check(err);
    if (!code)
        code = opc_config_check(config, err);
    if (!code && plan->resume && !plan->dir)
        code = opc_fail(err, OPC_EUSER, "there is no directory to resume a run from");
    if (!code)
        code = set_up(&run, &config->set, plan, err);
    const bool began = code == OPC_OK;
    if (!code)
        code = algorithm_1(&run, err);
    if (run.play)
        opc_env_rest(run.play->env); /* before anything is written or freed */
    if (!code)
        code = write_result(&run, err);
    if (code && began)
        note_failure(&run, code, err);
    opc_run_free(&run);
    opc_record_close(run.record);
    return code;
}
