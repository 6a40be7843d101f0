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
#include "run/train.h"

#include "data/episodes_in.h"
#include "run/evaluate.h"
#include "run/onpolicy.h"
#include "run/progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MIN_STEPS_TO_FIT = 16 };

static int play_randomly(struct opc_run *run, struct opc_err *err);
static void begin_epoch(struct opc_run *run);
static int act(struct opc_run *run, int t, struct opc_err *err);
static int fit_and_simulate(struct opc_run *run, int t, struct opc_err *err);
static int evaluate(struct opc_run *run, struct opc_err *err);
static int save_epoch(struct opc_run *run, struct opc_err *err);

/* ---- Algorithm 1 ----------------------------------------------------------------------------- */

static int run_epoch(struct opc_run *run, struct opc_err *err)
{
    const struct opc_values *v = run->set;
    const int steps = v->train.steps_per_epoch, every = opc_every(v, v->train.improve_every);
    int code = OPC_OK;
    begin_epoch(run);
    for (int t = 0; t < steps && !code; t++) {
        if (v->train.fit_first)
            code = fit_and_simulate(run, t, err);
        if (!code)
            code = act(run, t, err);
        if (!code && !v->train.fit_first)
            code = fit_and_simulate(run, t + 1, err);
        if (!code && (t + 1) % every == 0)
            code = opc_run_improve(run, err);
    }
    if (!code)
        code = evaluate(run, err);
    if (!code)
        code = save_epoch(run, err);
    return code == OPC_EDIVERGED || code == OPC_EENV
               ? opc_within(err, "epoch %lld, real step %lld", (long long)run->now.epoch + 1,
                            (long long)run->now.total_steps)
               : code;
}

int opc_algorithm_1(struct opc_run *run, struct opc_err *err)
{
    int code = OPC_OK;
    if (run->now.total_steps == 0) {
        code = play_randomly(run, err);
        opc_progress_enter(run, OPC_SAVE);
        run->slot_b = true;                    /* odd epochs have the other one */
        if (!code && run->now.total_steps > 0) /* they may have been played on a machine */
            code = opc_run_save(run, err);
        run->slot_b = false;
        if (!code)
            code = opc_run_tell_status(run, err);
    }
    while (!code && run->now.epoch < run->set->train.epochs)
        code = run_epoch(run, err);
    return code;
}

/* ---- play at random, and record it ----------------------------------------------------------- */

static int play_randomly(struct opc_run *run, struct opc_err *err)
{
    const int wanted = run->set->train.random_steps;
    int code = OPC_OK;
    opc_progress_enter(run, OPC_RANDOM);
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
                code = opc_progress_check(run, err);
        }
        opc_progress_advance(run, (double)opc_episodes_steps(run->past) / wanted);
    }
    return code;
}

/* ---- act ------------------------------------------------------------------------------------- */

static void begin_epoch(struct opc_run *run)
{
    run->row = (struct opc_epoch_row){0};
    for (int k = 0; k < OPC_ERRORS; k++)
        run->row.learned[k] = run->row.corrected[k] = (double)NAN;
    run->rollouts = 0;
    run->recorded[run->now.epoch] = opc_episodes_count(run->past);
    opc_play_count_anew(run->play);
    opc_progress_begin_epoch(run);
}

static int act(struct opc_run *run, int t, struct opc_err *err)
{
    const struct opc_train_config *train = &run->set->train;
    if (run->progress.phase != OPC_ACT)
        opc_progress_enter(run, OPC_ACT);
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
    opc_progress_advance(run, (double)(t + 1) / train->steps_per_epoch);
    return opc_progress_check(run, err);
}

/* ---- fit ------------------------------------------------------------------------------------- */

static int fit_model(struct opc_run *run, struct opc_err *err)
{
    const int steps = opc_episodes_steps(run->past);
    if (steps < MIN_STEPS_TO_FIT)
        return OPC_OK;
    opc_progress_enter(run, OPC_FIT);
    const struct opc_fit_plan plan = {
        OPC_SIZED(struct opc_fit_plan),
        .seed = run->seed,
        .epoch = opc_epoch_number(run),
        .index = (uint32_t)run->row.fits,
        .pool = run->pool,
        .stop = opc_progress_stop,
        .stop_ctx = run,
    };
    opc_episodes_flatten(run->past, run->sa, run->y);
    run->row.fit.size = sizeof run->row.fit;
    int code = opc_predictor_fit(run->model, steps, run->sa, run->y, &plan, &run->row.fit, err);
    if (code)
        return opc_within(err, "model fit");
    run->row.fits++;
    run->now.fits++;
    run->stale = true;
    return OPC_OK;
}

/* ---- measure: how far eq. 2 and eq. 5 are off on the newest episodes ------------------------- */

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
        .epoch = opc_epoch_number(run),
        .pool = run->pool,
    };
    struct opc_epoch_row *row = &run->row;
    struct opc_onpolicy got;
    if (run->play->env->type->machine)
        return OPC_OK; /* what else would have happened cannot be tried */
    opc_progress_enter(run, OPC_MEASURE);
    const int code = opc_onpolicy_errors(&plan, &got, err);
    memcpy(row->learned, got.learned, sizeof row->learned);
    memcpy(row->corrected, got.corrected, sizeof row->corrected);
    run->now.model_error =
        run->transition->type->needs_reference ? row->corrected[0] : row->learned[0];
    return code;
}

/* ---- what is due at step t of the epoch ------------------------------------------------------ */

static int fit_and_simulate(struct opc_run *run, int t, struct opc_err *err)
{
    const struct opc_values *v = run->set;
    const int every = opc_every(v, v->train.fit_every);
    const bool is_last = t + every > v->train.steps_per_epoch - v->train.fit_first;
    int code = OPC_OK;
    if (!run->model)
        return code;
    if (t % every == 0) {
        const int fits = run->row.fits;
        code = fit_model(run, err);
        /* A row has one error, of the last model: looking takes thousands of steps. */
        if (!code && run->row.fits > fits && is_last)
            code = measure_errors(run, err);
    }
    if (!code && t % opc_every(v, v->train.simulate_every) == 0)
        code = opc_run_simulate(run, 0, err);
    return code;
}

/* ---- evaluate -------------------------------------------------------------------------------- */

static int evaluate(struct opc_run *run, struct opc_err *err)
{
    const struct opc_values *v = run->set;
    const int epoch = (int)run->now.epoch + 1;
    if (epoch % v->eval.every != 0 && epoch != v->train.epochs)
        return OPC_OK;
    opc_progress_enter(run, OPC_EVALUATE);
    const struct opc_eval_plan plan = {
        .agent = run->agent,
        .worlds = run->worlds,
        .episodes = v->eval.episodes,
        .limit = run->play->limit,
        .seed = run->seed,
        .epoch = opc_epoch_number(run),
        .stop = opc_progress_stop,
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
                 row->eval.min, row->eval.max);
    opc_record_log(run->record, OPC_DEBUG, "epoch %d of %d: %ld steps, %s, model error %.3g, %s",
                   row->epoch, run->set->train.epochs, row->env_steps, evaluated,
                   run->now.model_error, opc_print_duration(sum, spent));
}

static int save_epoch(struct opc_run *run, struct opc_err *err)
{
    struct opc_epoch_row *row = &run->row;
    opc_progress_enter(run, OPC_SAVE);
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
        const double now = opc_progress_charge(run);
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
        code = opc_run_tell_status(run, err);
    if (code)
        return code;
    run->progress.epoch_done = true;
    run->progress.share = 1;
    opc_progress_show(run);
    run->progress.epoch_done = false;
    return OPC_OK;
}
