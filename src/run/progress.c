/* SPDX-License-Identifier: MIT */
/* Clocks and progress of a run; train.c, imagine.c and improve.c call it as they go.
 *
 * Invariant: nothing here changes a result. The loop reads the clock only to report it, and learns
 * the same without. */
#include "run/progress.h"

#include "base/clock.h"

#include <math.h>
#include <string.h>

/* Seconds between two calls of the caller's progress function. */
static const double BETWEEN_PHASES = 0.05, WITHIN_A_PHASE = 0.2;

const char *opc_phase_name(enum opc_phase phase)
{
    static const char *const NAME[OPC_PHASES] = {
        "random", "act", "fit", "measure", "simulate", "improve", "evaluate", "save",
    };
    return NAME[phase];
}

void opc_progress_update(struct opc_run *run)
{
    struct opc_progress *p = &run->progress;
    p->env_steps = (long)run->now.env_steps;
    p->total_steps = (long)run->now.total_steps;
    p->eval_return = run->now.eval_return;
    p->eval_length = run->now.eval_length;
    p->model_error = run->now.model_error;
}

/* Calls the caller's progress function with what is known now. */
static void show_progress(struct opc_run *run, double now)
{
    opc_progress_update(run);
    run->progress.elapsed = now - run->began;
    run->shown = now;
    if (run->plan->progress)
        run->plan->progress(run->plan->ctx, &run->progress);
}

double opc_progress_charge(struct opc_run *run)
{
    const double now = opc_now();
    run->progress.seconds[run->progress.phase] += now - run->entered;
    run->entered = now;
    return now;
}

void opc_progress_show(struct opc_run *run)
{
    show_progress(run, opc_progress_charge(run));
}

void opc_progress_enter(struct opc_run *run, enum opc_phase phase)
{
    const double now = opc_progress_charge(run);
    run->progress.phase = phase;
    run->progress.share = 0;
    run->progress.fit_passes = 0;
    run->progress.fit_holdout = (double)NAN;
    if (now - run->shown > BETWEEN_PHASES)
        show_progress(run, now);
}

void opc_progress_advance(struct opc_run *run, double share)
{
    run->progress.share = share;
    if (opc_now() - run->shown > WITHIN_A_PHASE)
        opc_progress_show(run);
}

void opc_progress_begin_epoch(struct opc_run *run)
{
    struct opc_progress *p = &run->progress;
    p->epoch = (int)run->now.epoch + 1;
    p->step = 0;
    if (p->first_epoch == 0)
        p->first_epoch = p->epoch;
    /* An epoch's row is written before its checkpoint, so the time of that checkpoint is reported
     * with the next row: it stays. The random phase is reported with the first row. */
    for (int k = OPC_PHASE_ACT; k < OPC_PHASE_SAVE; k++)
        p->seconds[k] = 0;
    if (p->epoch > p->first_epoch)
        p->seconds[OPC_PHASE_RANDOM] = 0;
}

/* Long phases ask this often, so it also keeps the display alive. */
bool opc_progress_stop(void *ctx)
{
    struct opc_run *run = ctx;
    opc_progress_advance(run, run->progress.share);
    return run->plan->stop && run->plan->stop(run->plan->ctx);
}

int opc_progress_check(struct opc_run *run, struct opc_err *err)
{
    return opc_progress_stop(run) ? opc_fail(err, OPC_ESTOPPED, "stopped") : OPC_OK;
}
