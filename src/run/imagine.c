/* SPDX-License-Identifier: MIT */
/* The simulate phase of Algorithm 1: chooses the recordings that serve as references, and runs
 * Algorithm 2 from them (opc/rollout.c) into the imagined data. Called by train.c after a fit, and
 * by improve.c between the rounds of an improvement.
 *
 * Invariant: before a rollout, the transition's table of f(s_ref, a_ref) is of the current model
 * and covers the whole reference window; `stale` and the window's bounds say when it does not. */
#include "run/train.h"

#include "data/episodes_private.h"
#include "env/types.h"
#include "num/scaler.h"
#include "run/progress.h"

#include <math.h>

enum { MANY_ROLLOUTS = 1000 }; /* of an epoch: if none of them made a step, none ever will */

/* Imagined actions explore, as real ones do: a ~ pi(s). */
static void draw_actions(void *ctx, int n, const float *state, struct opc_rng *rng, float *action)
{
    opc_agent_act(ctx, n, state, true, rng, action);
}

/* The first episode of the reference window: epochs n - K + 1 to n, of which n is under way and 0
 * the random phase. An episode belongs to the epoch it ended in; while none has ended in the
 * window, it reaches back to the newest epoch that has one. */
int opc_first_reference(const struct opc_values *v, const int *recorded, int64_t epoch,
                        int episodes)
{
    const int K = v->opc.reference_epochs;
    if (K == 0)
        return 0;
    int64_t before = epoch + 1 - K; /* the last epoch that is too old */
    while (before >= 0 && recorded[before] == episodes)
        before--;
    return before < 0 ? 0 : recorded[before];
}

/* Moves the reference window to the current epoch, tabulates the model's predictions in it for
 * eq. 5, and updates the statistics of what was recorded, by which imagined steps are judged. */
int opc_run_move_window(struct opc_run *run, struct opc_err *err)
{
    struct opc_transition *tr = run->transition;
    if (run->now.fits == 0)
        return OPC_OK;
    const struct opc_records all = opc_episodes_records(run->past);
    int first;
    if (run->states_count != all.n) { /* skips the later rounds of an improvement */
        opc_scaler_fit(run->states, (int)all.n, all.at, all.stride, NULL, false);
        run->states_count = all.n;
    }
    opc_bounds_update(run->bounds, run->past);
    if (run->drift)
        opc_drift_update(run->drift, run->states);
    if (run->disagreement)
        opc_disagreement_update(run->disagreement, run->past);
    run->recent =
        opc_first_reference(run->set, run->recorded, run->now.epoch, opc_episodes_count(run->past));
    opc_transition_move_window(tr, opc_mixes_past(run->set) ? 0 : run->recent);
    const int steps = opc_transition_window(tr, &first);
    /* The table is up to date if neither the model nor the window has changed. */
    if (!run->stale && tr->first == first && tr->filled == steps)
        return OPC_OK;
    const int code = opc_transition_refresh(tr, run->pool, err);
    run->stale = code != OPC_OK;
    return code;
}

static void add_to_row(struct opc_epoch_row *row, const struct opc_rollout_report *r)
{
    /* sums over all simulations of the epoch; extremes start with the first of them */
    const bool first = row->rollouts == 0;
    row->rollouts += (long)r->rollouts;
    row->imagined += (long)r->transitions;
    for (int k = 0; k < OPC_ENDS; k++)
        row->end[k] += r->end[k];
    row->reward_min = first ? (double)r->reward_min : fmin(row->reward_min, (double)r->reward_min);
    row->reward_max = first ? (double)r->reward_max : fmax(row->reward_max, (double)r->reward_max);
    row->state_max_std = fmax(row->state_max_std, (double)r->state_max_std);
}

int opc_run_simulate(struct opc_run *run, int k, struct opc_err *err)
{
    const struct opc_values *v = run->set;
    const int horizon = opc_horizon(v, (int)run->now.epoch);
    if (run->now.fits == 0)
        return OPC_OK;
    opc_progress_enter(run, OPC_PHASE_SIMULATE);
    int code = opc_run_move_window(run, err);
    if (code)
        return code;
    /* Make room in the imagined data, as data.* say, and start this epoch's part of it. */
    if (v->data.reset)
        opc_imagined_clear(run->imagined);
    if (v->data.forget == OPC_FORGET_STEPS)
        opc_imagined_limit(run->imagined, opc_run_limit(v, horizon));
    opc_imagined_open_epoch(run->imagined, (int)opc_epoch_number(run));

    /* Algorithm 2; with train.rounds each round gets its share of N. */
    const struct opc_rollout_plan plan = {
        .transition = run->transition,
        .act = draw_actions,
        .act_ctx = run->agent,
        .terminal = opc_run_is_terminal,
        .terminal_ctx = run,
        .limits = {.bounds = v->opc.bounds ? run->bounds : NULL,
                   .drift = run->drift,
                   .disagreement = run->disagreement,
                   .drop = v->opc.reference_terminal == OPC_REFERENCE_DROP},
        .states = run->states,
        .horizon = horizon,
        .transitions = (size_t)opc_share(v->opc.transitions, v->train.rounds, k),
        .rollouts = opc_share(v->opc.rollouts, v->train.rounds, k),
        .start = (enum opc_start)v->opc.start,
        .past_ratio = opc_mixes_past(v) ? v->opc.past_ratio : 0,
        .recent = run->recent,
        .reference_terminal = v->opc.reference_terminal == OPC_REFERENCE_TERMINAL,
        .elite_per_rollout = v->opc.elite,
        .seed = run->seed,
        .epoch = opc_epoch_number(run),
        .index = run->rollouts,
        .pool = run->pool,
        .stop = opc_progress_stop,
        .stop_ctx = run,
    };
    struct opc_rollout_report report;
    code = opc_rollout_run(run->rollout, &plan, run->imagined, &report, err);
    /* The task's rule cannot report a failure by itself: a child that has died, say. */
    if (!code && (code = opc_env_failure(run->play->env, err)))
        opc_within(err, "simulation");
    if (code)
        return code;
    /* The next simulation of this epoch continues the numbering, and so draws other numbers. */
    run->rollouts = report.index;
    run->row.horizon = horizon;
    add_to_row(&run->row, &report);
    /* A round may come out empty, and so may all few rollouts of an epoch while there are steps of
     * earlier ones. */
    const size_t rollouts = (size_t)run->row.rollouts;
    if (k == v->train.rounds - 1 && run->row.imagined == 0 &&
        (rollouts >= MANY_ROLLOUTS || opc_imagined_transitions(run->imagined) == 0))
        return opc_rollout_refused(run->row.end, rollouts, rollouts, err);
    return OPC_OK;
}
