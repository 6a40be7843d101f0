/* SPDX-License-Identifier: MIT */
/* The improve phase of Algorithm 1: gives the agent the data it needs, batches of steps
 * (off-policy) or the epoch's own episodes (on-policy), and sums up its reports for the epoch's
 * row. Called by train.c.
 *
 * Invariant: update number n of an epoch draws its batch from a stream named by n, so the size of
 * the portions in which updates are asked for does not change a result. */
#include "run/train.h"

#include "data/episodes_private.h"
#include "run/progress.h"

#include <math.h>

enum { UPDATES_AT_ONCE = 256 }; /* between two reports of progress */

/* Adds a report to the row: means or extremes over all updates of the epoch, as the agent's columns
 * say. */
static void add_to_row(struct opc_run *run, const struct opc_agent_report *r)
{
    const struct opc_agent_column *column = run->agent->type->columns;
    struct opc_epoch_row *row = &run->row;
    if (r->updates == 0)
        return;
    const bool first = row->agent.updates == 0;
    row->agent.updates += r->updates;
    run->now.updates += r->updates;
    /* running mean: the new updates have this share of all updates so far */
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

/* There must be data: train.learning_starts real steps ... */
static bool can_improve(const struct opc_run *run)
{
    const int steps = opc_episodes_steps(run->past);
    return steps > 0 && steps >= run->set->train.learning_starts;
}

/* ... and imagined ones if there is a model. Before the first fit there are none, nor where limits
 * have refused every rollout so far. */
static bool has_batches(const struct opc_run *run)
{
    return !run->imagined || opc_imagined_transitions(run->imagined) > 0;
}

/* Makes gradient steps number `done` to `end` - 1 of an improvement. */
static int gradient_steps(struct opc_run *run, int done, int end, struct opc_err *err)
{
    opc_progress_enter(run, OPC_PHASE_IMPROVE);
    opc_bounds_update(run->bounds, run->past);
    for (int n; done < end; done += n) {
        struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
        const struct opc_feed feed = {
            OPC_SIZED(struct opc_feed),
            .draw = opc_batch_draw,
            .ctx = &run->mix,
            .seed = run->seed,
            .epoch = opc_epoch_number(run),
            .first = (uint32_t)run->row.agent.updates,
            .reward_low = run->bounds->reward_low,
            .reward_high = run->bounds->reward_high,
            .done = (double)run->now.epoch / run->set->train.epochs,
            .stop = opc_progress_stop,
            .stop_ctx = run,
        };
        n = end - done < UPDATES_AT_ONCE ? end - done : UPDATES_AT_ONCE;
        OPC_TRY(opc_agent_improve(run->agent, &feed, n, &report, err));
        add_to_row(run, &report);
        opc_progress_advance(run, (double)(done + n) / opc_updates(run->set));
        OPC_TRY(opc_progress_check(run, err));
    }
    return OPC_OK;
}

/* For on-policy agents: hands out the episodes of this epoch, *at from 0 on. */
static bool next_episode(void *ctx, uint64_t *at, struct opc_path *out)
{
    const struct opc_run *run = ctx;
    const int b = run->recorded[run->now.epoch] + (int)*at;
    if (b >= opc_episodes_count(run->past))
        return false;
    out->steps = opc_episodes_length(run->past, b);
    out->records = opc_episodes_path(run->past, b);
    ++*at;
    return true;
}

/* One improvement of an on-policy agent; `done` is the share of the run that its schedules see. */
static int learn_from_episodes(struct opc_run *run, struct opc_err *err)
{
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    const struct opc_feed feed = {
        OPC_SIZED(struct opc_feed),
        .path = next_episode,
        .ctx = run,
        .seed = run->seed,
        .epoch = opc_epoch_number(run),
        .done = (double)run->now.epoch / run->set->train.epochs,
        .stop = opc_progress_stop,
        .stop_ctx = run,
    };
    opc_progress_enter(run, OPC_PHASE_IMPROVE);
    const int code = opc_agent_improve(run->agent, &feed, 0, &report, err);
    if (!code)
        add_to_row(run, &report);
    return code;
}

/* A planner has nothing to improve; it reports the plans it has made since the last time. */
static int report_plans(struct opc_run *run, struct opc_err *err)
{
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    const struct opc_feed feed = {OPC_SIZED(struct opc_feed), .seed = run->seed,
                                  .epoch = opc_epoch_number(run)};
    OPC_TRY(opc_agent_improve(run->agent, &feed, 0, &report, err));
    add_to_row(run, &report);
    return OPC_OK;
}

int opc_run_improve(struct opc_run *run, struct opc_err *err)
{
    const int rounds = run->imagined ? run->set->train.rounds : 1;
    if (run->agent->type->needs & OPC_NEEDS_TRAJECTORIES)
        return learn_from_episodes(run, err);
    if (opc_plans(run->set))
        return report_plans(run, err);
    if (!can_improve(run))
        return OPC_OK;
    /* Each round simulates with the policy so far, then makes its share of the updates. Round 0 was
     * simulated after the fit. */
    for (int k = 0, done = 0, n; k < rounds; k++, done += n) {
        n = opc_share(opc_updates(run->set), rounds, k);
        if (k > 0)
            OPC_TRY(opc_run_simulate(run, k, err));
        if (has_batches(run))
            OPC_TRY(gradient_steps(run, done, done + n, err));
    }
    return OPC_OK;
}
