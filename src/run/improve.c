/* SPDX-License-Identifier: MIT */
/* The improve phase of Algorithm 1: brings the agent what it needs, batches of steps or the epoch's
 * own episodes, and keeps what it reports for the epoch's row. Called by train.c. */
#include "run/train.h"

#include "data/episodes_in.h"
#include "run/progress.h"

#include <math.h>

enum { UPDATES_AT_ONCE = 256 }; /* between two looks at the clock */

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
    return steps > 0 && steps >= run->set->train.learning_starts;
}

/* Gradient steps from number `done` to `end` of an improvement. */
static int make_updates(struct opc_run *run, int done, int end, struct opc_err *err)
{
    int code = OPC_OK;
    opc_progress_enter(run, OPC_IMPROVE);
    for (int n; done < end && !code; done += n) {
        struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
        const struct opc_feed feed = {
            OPC_SIZED(struct opc_feed),
            .draw = opc_batch_draw,
            .ctx = &run->mix,
            .seed = run->seed,
            .epoch = opc_epoch_number(run),
            .first = (uint32_t)run->row.agent.updates,
            .stop = opc_progress_stop,
            .stop_ctx = run,
        };
        n = end - done < UPDATES_AT_ONCE ? end - done : UPDATES_AT_ONCE;
        code = opc_agent_improve(run->agent, &feed, n, &report, err);
        if (!code) {
            note_updates(run, &report);
            opc_progress_advance(run, (double)(done + n) / opc_updates(run->set));
            code = opc_progress_check(run, err);
        }
    }
    return code;
}

/* The episodes of this epoch. */
static bool next_path(void *ctx, uint64_t *at, struct opc_path *out)
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

static int learn_from_paths(struct opc_run *run, struct opc_err *err)
{
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    const struct opc_feed feed = {
        OPC_SIZED(struct opc_feed),
        .path = next_path,
        .ctx = run,
        .seed = run->seed,
        .epoch = opc_epoch_number(run),
        .done = (double)run->now.epoch / run->set->train.epochs,
        .stop = opc_progress_stop,
        .stop_ctx = run,
    };
    opc_progress_enter(run, OPC_IMPROVE);
    const int code = opc_agent_improve(run->agent, &feed, 0, &report, err);
    if (!code)
        note_updates(run, &report);
    return code;
}

int opc_run_improve(struct opc_run *run, struct opc_err *err)
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
            code = opc_run_simulate(run, k, err);
        if (!code)
            code = make_updates(run, done, done + n, err);
    }
    return code;
}
