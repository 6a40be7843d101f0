/* SPDX-License-Identifier: MIT */
/* How far a sweep is, and how long the rest takes: from the times that complete epochs took. The
 * scheduler reports it a few times a second.
 *
 * Invariant: an estimate changes nothing in the order of runs. */
#include "base/clock.h"
#include "sweep/schedule_private.h"

#include <math.h>
#include <stdio.h>

int opc_schedule_count(const struct scheduler *sched, enum stage stage)
{
    int n = 0;
    for (int i = 0; i < sched->sweep->tasks; i++)
        n += sched->job[i].stage == stage;
    return n;
}

/* ---- how long it will take ------------------------------------------------------------------- */

/* Work of an epoch, in real steps: all that is known beforehand. */
static double work_of(const struct opc_task *task)
{
    return task->set.train.steps_per_epoch;
}

/* Seconds per unit of work: of the runs of this group if any has epochs, otherwise of all runs. */
static double rate_of(const struct scheduler *sched, int group)
{
    double seconds[2] = {0}, work[2] = {0};
    for (int i = 0; i < sched->sweep->tasks; i++) {
        const struct opc_task *task = &sched->sweep->task[i];
        /* [0] is over all runs, [1] over those of the group */
        const int max = task->group == group ? 1 : 0;
        for (int own = 0; own <= max; own++) {
            seconds[own] += sched->job[i].seconds;
            work[own] += sched->job[i].epochs * work_of(task);
        }
    }
    const int own = work[1] > 0;
    return work[own] > 0 ? seconds[own] / work[own] : (double)NAN;
}

/* Estimates how much is done and how long the rest takes. */
static void refresh_estimate(struct scheduler *sched)
{
    double all = 0, left = 0, longest = 0, rate = 0;
    bool known = true;
    struct opc_tally *tally = &sched->tally;
    for (int i = 0; i < sched->sweep->tasks; i++) {
        char path[OPC_PATH];
        /* only these can have new epochs */
        if ((sched->job[i].stage == RUNS || sched->job[i].stage == HELD) &&
            !opc_schedule_path(sched->plan->out, &sched->sweep->task[i], "", path, NULL))
            sched->job[i].seconds = opc_look_seconds(path, &sched->job[i].epochs);
    }
    for (int i = 0; i < sched->sweep->tasks; i++) {
        const struct opc_task *task = &sched->sweep->task[i];
        const struct job *job = &sched->job[i];
        if (i == 0 || task->group != task[-1].group) /* else as before: there may be thousands */
            rate = rate_of(sched, task->group);
        known = known && !isnan(rate);
        rate = isnan(rate) ? 1 : rate;
        const double one = rate * work_of(task) * task->set.train.epochs;
        const double mine = job->stage == DONE || job->stage == FAILED
                                ? 0
                                : fmax(0, one - rate * work_of(task) * job->epochs);
        all += one;
        left += mine;
        longest = fmax(longest, mine);
    }
    /* The rest cannot be faster than its longest run, nor than all of it shared by the jobs. */
    const int open = opc_schedule_count(sched, WAITS) + opc_schedule_count(sched, RUNS) +
                     opc_schedule_count(sched, HELD);
    const int at_once = open < sched->jobs ? open : sched->jobs;
    tally->share = all > 0 ? 1 - left / all : 0;
    tally->left = known ? fmax(longest, left / (at_once > 0 ? at_once : 1)) : (double)NAN;
}

void opc_schedule_report(struct scheduler *sched, bool now)
{
    struct opc_tally *tally = &sched->tally;
    const double time = opc_now();
    if (!now && time - sched->reported < 0.2)
        return;
    sched->reported = time;
    if (now || time - sched->refreshed >= 0.5) {
        refresh_estimate(sched);
        sched->refreshed = time;
    }
    tally->tasks = sched->sweep->tasks;
    tally->done = opc_schedule_count(sched, DONE);
    tally->failed = opc_schedule_count(sched, FAILED);
    tally->running = opc_schedule_count(sched, RUNS) + opc_schedule_count(sched, HELD);
    tally->waiting = opc_schedule_count(sched, WAITS);
    if (sched->plan->progress)
        sched->plan->progress(sched->plan->ctx, tally);
}

const char *opc_schedule_so_far(struct scheduler *sched, char out[96])
{
    char left[OPC_PRINTED];
    refresh_estimate(sched);
    /* below a tenth of a second there is nothing left to say */
    const int done = opc_schedule_count(sched, DONE);
    if (done == sched->sweep->tasks || !(sched->tally.left >= 0.1))
        snprintf(out, 96, "%d of %d done", done, sched->sweep->tasks);
    else
        snprintf(out, 96, "%d of %d done, %s left", done, sched->sweep->tasks,
                 opc_print_duration(sched->tally.left, left));
    return out;
}
