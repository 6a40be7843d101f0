/* SPDX-License-Identifier: MIT */
/* Algorithm 1, top to bottom. session.c calls opc_algorithm_1 with a run that is new or restored.
 *
 *     play at random, and record it (train.prefill: begin with episodes recorded elsewhere)
 *     for each epoch:
 *         act        E steps with the policy on the real environment      -> past
 *         fit        p~ to all of the past                                -> model
 *         simulate   rollouts by eq. 5 (or 2) from recorded states        -> imagined
 *         improve    the policy on the imagined steps                     -> agent
 *         evaluate   the policy, without exploration, on other environments
 *         save       a row of metrics.csv and a checkpoint
 *
 * That is the paper's order, once an epoch; with train.rounds, simulate and improve take turns.
 * With train.fit_first and improvements every step it is the loop of the original MBPO: fit and
 * simulate come before the steps they are due with, the first time right after the random phase;
 * the policy improves between any two steps; an episode goes on across epochs, and counts as
 * recorded only when it has ended. With opc.transition = replay nothing is fitted or simulated and
 * the policy learns from the past: that is SAC, STEVE, or PPO, which learns from the epoch's own
 * episodes.
 *
 * Invariant: every random number comes from a stream named by its purpose, epoch and index, and the
 * loop keeps no generator. So a run that was stopped anywhere resumes from the end of its last
 * epoch, or of the random phase, and gives the same numbers to the bit. */
#include "run/train.h"

#include "data/episodes_private.h"
#include "run/progress.h"
#include "run/real/evaluate.h"
#include "run/real/onpolicy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MIN_STEPS_TO_FIT = 16 }; /* with fewer recorded steps, no model is fitted */

static int random_phase(struct opc_run *run, struct opc_err *err);
static void begin_epoch(struct opc_run *run);
static int take_real_step(struct opc_run *run, int t, struct opc_err *err);
static int fit_and_simulate(struct opc_run *run, int t, struct opc_err *err);
static int evaluate_policy(struct opc_run *run, struct opc_err *err);
static int save_epoch(struct opc_run *run, struct opc_err *err);

/* ---- Algorithm 1 ----------------------------------------------------------------------------- */

static int run_epoch(struct opc_run *run, struct opc_err *err)
{
    const struct opc_values *v = run->set;
    const int steps = v->train.steps_per_epoch, every = opc_every(v, v->train.improve_every);
    begin_epoch(run);
    /* A planner acts with the references of this epoch, also in a run that was just resumed. */
    if (opc_plans(v))
        OPC_TRY(opc_run_move_window(run, err));
    for (int t = 0; t < steps; t++) {
        if (v->train.fit_first) /* original MBPO: before the step; the paper: after it */
            OPC_TRY(fit_and_simulate(run, t, err));
        OPC_TRY(take_real_step(run, t, err));
        if (!v->train.fit_first)
            OPC_TRY(fit_and_simulate(run, t + 1, err));
        if ((t + 1) % every == 0)
            OPC_TRY(opc_run_improve(run, err));
    }
    OPC_TRY(evaluate_policy(run, err));
    return save_epoch(run, err);
}

int opc_algorithm_1(struct opc_run *run, struct opc_err *err)
{
    if (run->now.total_steps == 0)
        OPC_TRY(random_phase(run, err));
    while (run->now.epoch < run->set->train.epochs) {
        const int code = run_epoch(run, err);
        /* when it happened matters for these */
        if (code == OPC_EDIVERGED || code == OPC_EREFUSED || code == OPC_EENV)
            opc_within(err, "epoch %lld, real step %lld", (long long)run->now.epoch + 1,
                       (long long)run->now.total_steps);
        if (code)
            return code;
    }
    return OPC_OK;
}

/* ---- play at random, and record it ----------------------------------------------------------- */

/* Whole episodes of uniform actions in [-1, 1], until random_steps are recorded, those of
 * train.prefill included. */
static int play_randomly(struct opc_run *run, struct opc_err *err)
{
    const int wanted = run->set->train.random_steps;
    while (opc_episodes_steps(run->past) < wanted) {
        struct opc_rng rng =
            opc_rng_stream(run->seed, OPC_USE_RANDOM, 0, (uint32_t)run->play->number);
        OPC_TRY(opc_play_start(run->play, err));
        while (opc_play_running(run->play)) {
            for (int k = 0; k < run->act; k++)
                run->a[k] = 2 * opc_rng_unit(&rng) - 1;
            const int code = opc_play_step(run->play, run->a, err);
            run->now.total_steps++;
            OPC_TRY(code);
            OPC_TRY(opc_progress_check(run, err));
        }
        opc_progress_advance(run, (double)opc_episodes_steps(run->past) / wanted);
    }
    return OPC_OK;
}

/* How a machine has kept its time since the epoch, or the random phase, began. Late steps are worth
 * a warning: recordings are indexed by time. */
static void log_ticks(struct opc_run *run)
{
    char text[200];
    const struct opc_ticks *ticks = &run->play->ticks;
    if (opc_ticks_print(ticks, run->play->env->dt, text, sizeof text))
        opc_runlog_message(run->log, ticks->late > 0 ? OPC_LEVEL_WARN : OPC_LEVEL_DEBUG,
                           "the machine's time: %s", text);
}

static int random_phase(struct opc_run *run, struct opc_err *err)
{
    opc_progress_enter(run, OPC_PHASE_RANDOM);
    OPC_TRY(opc_run_prefill(run, err));
    OPC_TRY(play_randomly(run, err));
    log_ticks(run);
    /* A checkpoint even before the first epoch: hardware cannot repeat these steps. It goes into
     * the second slot, because epoch 1 takes the first. */
    opc_progress_enter(run, OPC_PHASE_SAVE);
    run->next_slot = 1;
    if (run->now.total_steps > 0)
        OPC_TRY(opc_run_save(run, err));
    else /* a log can be read again, but it must stay an epoch of its own */
        OPC_TRY(opc_run_save_past(run, err));
    run->next_slot = 0;
    return opc_run_write_status(run, err);
}

/* ---- act ------------------------------------------------------------------------------------- */

static void begin_epoch(struct opc_run *run)
{
    /* An empty row; errors that are not measured are unknown, not zero. */
    run->row = (struct opc_epoch_row){0};
    for (int k = 0; k < OPC_ERRORS; k++)
        run->row.learned[k] = run->row.corrected[k] = (double)NAN;
    run->rollouts = 0;
    /* Episodes from here on belong to this epoch. */
    run->recorded[run->now.epoch] = opc_episodes_count(run->past);
    opc_play_count_anew(run->play);
    opc_progress_begin_epoch(run);
}

static int take_real_step(struct opc_run *run, int t, struct opc_err *err)
{
    const struct opc_train_config *train = &run->set->train;
    if (run->progress.phase != OPC_PHASE_ACT)
        opc_progress_enter(run, OPC_PHASE_ACT);
    if (!opc_play_running(run->play)) {
        OPC_TRY(opc_play_start(run->play, err));
        opc_episode_state_begin(run->episode, run->seed, 0, (uint32_t)run->play->number);
    }
    /* a ~ pi(s), then s', r from the environment; play records them */
    struct opc_rng rng =
        opc_rng_stream(run->seed, OPC_USE_EXPLORE, 0, (uint32_t)run->now.total_steps);
    opc_agent_act_in(run->agent, run->episode, run->play->s, true, &rng, run->a);
    OPC_TRY(opc_play_step(run->play, run->a, err));
    run->now.env_steps++;
    run->now.total_steps++;
    run->progress.step = t + 1;
    /* The paper's epochs end with their last episode, which is cut and not terminal. */
    if (t + 1 == train->steps_per_epoch && train->reset_each_epoch)
        opc_play_cut(run->play);
    opc_progress_advance(run, (double)(t + 1) / train->steps_per_epoch);
    return opc_progress_check(run, err);
}

/* ---- fit ------------------------------------------------------------------------------------- */

/* A fit ends when it no longer improves. Its share is estimated: by the passes of the fit before,
 * or by how long it has not improved, whichever is further; and by its limits, if it has any. */
static void show_fit(void *ctx, const struct opc_fit_progress *fit)
{
    struct opc_run *run = ctx;
    double share = (double)fit->passes / (fit->passes + fit->patience - fit->since);
    if (run->fit_passes > 0)
        share = fmin((double)fit->passes / run->fit_passes, 0.95);
    run->progress.share = fmin(fmax(share, fit->limit), 0.99);
    run->progress.fit_passes = fit->passes;
    run->progress.fit_holdout = fit->holdout;
}

static int fit_model(struct opc_run *run, struct opc_err *err)
{
    /* p~ is fitted to all recorded steps, whatever the reference window is. */
    const int steps = opc_episodes_steps(run->past);
    if (steps < MIN_STEPS_TO_FIT)
        return OPC_OK;
    opc_progress_enter(run, OPC_PHASE_FIT);
    const struct opc_fit_plan plan = {
        OPC_SIZED(struct opc_fit_plan),
        .seed = run->seed,
        .epoch = opc_epoch_number(run),
        .index = (uint32_t)run->row.fits,
        .pool = run->pool,
        .stop = opc_progress_stop,
        .stop_ctx = run,
        .progress = show_fit,
    };
    opc_episodes_flatten(run->past, run->sa, run->y);
    run->row.fit.size = sizeof run->row.fit;
    int code = opc_predictor_fit(run->model, steps, run->sa, run->y, &plan, &run->row.fit, err);
    if (code)
        return opc_within(err, "model fit");
    OPC_TRY(opc_run_fit_termination(run, err));
    run->row.fits++;
    run->now.fits++;
    run->fit_passes = run->row.fit.passes;
    /* f(s_ref, a_ref) of eq. 5 is tabulated, and the table is of the model before. */
    run->stale = true;
    return OPC_OK;
}

/* ---- measure: how far eq. 2 and eq. 5 are off on the newest episodes ------------------------- */

/* The first episode that plans could walk along when this one began: the window of the epoch it was
 * played in. */
static int oldest_reference(const void *ctx, int episode)
{
    const struct opc_run *run = ctx;
    int64_t epoch = run->now.epoch;
    while (epoch > 0 && run->recorded[epoch] > episode)
        epoch--;
    return opc_first_reference(run->set, run->recorded, epoch, episode);
}

/* Training does not depend on it: its random numbers come from streams of their own. */
static int measure_errors(struct opc_run *run, struct opc_err *err)
{
    const struct opc_onpolicy_plan plan = {
        .past = run->past,
        .newest = run->recorded[run->now.epoch],
        .oldest = oldest_reference,
        .oldest_ctx = run,
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
        return OPC_OK; /* hardware cannot be brought back to a recorded state */
    opc_progress_enter(run, OPC_PHASE_MEASURE);
    const int code = opc_onpolicy_errors(&plan, &got, err);
    memcpy(row->learned, got.learned, sizeof row->learned);
    memcpy(row->corrected, got.corrected, sizeof row->corrected);
    run->now.model_error = run->progress.error_equation == 5 ? row->corrected[0] : row->learned[0];
    return code;
}

/* ---- what is due at step t of the epoch ------------------------------------------------------ */

static int fit_and_simulate(struct opc_run *run, int t, struct opc_err *err)
{
    const struct opc_values *v = run->set;
    const int every = opc_every(v, v->train.fit_every);
    const bool is_last = t + every > v->train.steps_per_epoch - v->train.fit_first;
    if (!run->model)
        return OPC_OK;
    if (t % every == 0) {
        const int fits = run->row.fits;
        OPC_TRY(fit_model(run, err));
        /* Errors of the epoch's last model only: measuring takes thousands of steps. */
        if (run->row.fits > fits && is_last)
            OPC_TRY(measure_errors(run, err));
    }
    if (opc_plans(v)) /* the planner simulates for itself, with the new model */
        return opc_run_move_window(run, err);
    if (t % opc_every(v, v->train.simulate_every) == 0)
        OPC_TRY(opc_run_simulate(run, 0, err));
    return OPC_OK;
}

/* ---- evaluate -------------------------------------------------------------------------------- */

static int evaluate_policy(struct opc_run *run, struct opc_err *err)
{
    const struct opc_values *v = run->set;
    const int epoch = (int)run->now.epoch + 1;
    if (epoch % v->eval.every != 0 && epoch != v->train.epochs)
        return OPC_OK;
    opc_progress_enter(run, OPC_PHASE_EVALUATE);
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
    OPC_TRY(opc_evaluate(&plan, &run->row.eval, NULL, err));
    run->row.evaluated = true;
    run->now.eval_return = run->row.eval.mean;
    run->now.eval_length = run->row.eval.length;
    run->best = !(run->now.best_return >= run->now.eval_return); /* also when there is none: NaN */
    if (run->best)
        run->now.best_return = run->now.eval_return;
    return OPC_OK;
}

/* ---- save ------------------------------------------------------------------------------------ */

static void log_epoch(struct opc_run *run)
{
    const struct opc_epoch_row *row = &run->row;
    char evaluated[96] = "not evaluated", error[64] = "", spent[OPC_PRINTED];
    double sum = 0;
    for (int p = 0; p < OPC_PHASES; p++)
        sum += run->progress.seconds[p];
    if (row->evaluated)
        snprintf(evaluated, sizeof evaluated, "return %.1f (%.1f to %.1f)", row->eval.mean,
                 row->eval.min, row->eval.max);
    /* A task that does not repeat itself, a machine say, has nothing to compare the model with. */
    if (!isnan(run->now.model_error))
        snprintf(error, sizeof error, "model error %.3g, ", run->now.model_error);
    opc_runlog_message(run->log, OPC_LEVEL_DEBUG, "epoch %d of %d: %ld steps, %s, %s%s", row->epoch,
                       run->set->train.epochs, row->env_steps, evaluated, error,
                       opc_print_duration(sum, spent));
}

static int save_epoch(struct opc_run *run, struct opc_err *err)
{
    struct opc_epoch_row *row = &run->row;
    opc_progress_enter(run, OPC_PHASE_SAVE);
    run->now.epoch++;
    /* The row is complete; write it, ... */
    row->epoch = (int)run->now.epoch;
    row->env_steps = (long)run->now.env_steps;
    row->total_steps = (long)run->now.total_steps;
    row->episodes = run->play->ended;
    row->train_return = run->play->ended ? run->play->returns / run->play->ended : 0;
    row->train_length = run->play->ended ? run->play->lengths / run->play->ended : 0;
    row->recorded_kept = opc_episodes_steps(run->past);
    row->imagined_kept = run->imagined ? (long)opc_imagined_transitions(run->imagined) : 0;

    OPC_TRY(opc_runlog_metrics(run->log, row, err));
    const double now = opc_progress_charge(run);
    log_epoch(run);
    log_ticks(run);
    OPC_TRY(opc_runlog_timing(run->log, row->epoch, run->progress.seconds, now - run->began, err));
    /* Time spent saving from here on is reported with the next row: this one is written. */
    run->progress.seconds[OPC_PHASE_SAVE] = 0;

    /* ... then the checkpoint, which counts on the row being there. */
    const int every = run->set->record.snapshots;
    if (every && row->epoch % every == 0)
        OPC_TRY(opc_run_save_snapshot(run, err));
    /* Learning may lose a good policy again; the best one stays. A resumed run writes it once more,
     * to the same bytes, if it was written after the checkpoint. */
    if (run->best)
        OPC_TRY(opc_run_save_policy(run, "policy-best.opc", err));
    run->best = false;
    OPC_TRY(opc_run_save(run, err));
    OPC_TRY(opc_run_write_status(run, err));
    run->progress.epoch_done = true;
    run->progress.share = 1;
    opc_progress_show(run);
    run->progress.epoch_done = false;
    return OPC_OK;
}
