/* SPDX-License-Identifier: MIT */
/* Runs the tasks of a sweep for `opc sweep` and `opc repro`. One process polls its jobs.
 *
 * Invariant: all that `struct scheduler` holds, but for the count of attempts, can be read again
 * from the directories, so a sweep may be killed at any time and started again.
 *
 * A job gets its resolved settings, in OUT/.queue, not the experiment file, which may be edited
 * while a sweep runs for days. Jobs stop when we are no longer their parent, so a sweep that was
 * killed leaves nothing running for long; until then their directories are locked, and a sweep that
 * is started again waits for the locks to go.
 *
 * Where sweeps share OUT (plan->shared), a run is started only by the owner of its claim (claim.h).
 * A run that another sweep has claimed is HELD: it is looked at now and then, and taken over when
 * its owner has gone. */
#include "base/clock.h"
#include "base/log.h"
#include "opc/mem.h"
#include "run/files/rundir.h"
#include "sweep/schedule_private.h"

#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { RETRIES = 3, CLAIM_TIMEOUT = 60 /* seconds */ };
/* Exit statuses (opc_exit_status) of failures that would happen again, ... */
enum { DAMAGED = 3, DIVERGED = OPC_STATUS_DIVERGED, ENVIRONMENT = 5 };
/* ... and one that may: settings were refused, or another process was in the directory. */
enum { REFUSED = 2 };

/* ---- one task -------------------------------------------------------------------------------- */

/* Starts or resumes a task. */
static int start_task(struct scheduler *sched, int i, struct opc_err *err)
{
    struct job *job = &sched->job[i];
    const struct opc_task *task = &sched->sweep->task[i];
    char dir[OPC_PATH], log[OPC_PATH], settings[OPC_PATH], threads[16];
    snprintf(threads, sizeof threads, "%d", sched->threads);
    OPC_TRY(opc_schedule_path(sched->plan->out, task, "", dir, err));
    OPC_TRY(opc_schedule_path(sched->plan->out, task, ".log", log, err));
    /* A shorter run gets its new number of epochs; a new run its settings. */
    if (job->look.shorter)
        OPC_TRY(opc_look_raise(dir, &task->set, err));
    if (!job->look.begun)
        OPC_TRY(opc_schedule_write_settings(sched->plan->out, task, settings, err));
    char *const train[] = {"train", settings, "--out", dir, "--quiet", "--threads", threads, NULL};
    char *const resume[] = {"resume", dir, "--quiet", "--threads", threads, NULL};
    const struct opc_job command = {job->look.begun ? resume : train, log};
    OPC_TRY(sched->launcher->type->submit(sched->launcher, &command, &job->id, err));
    job->stage = RUNS;
    if (job->look.begun)
        opc_log(OPC_LEVEL_INFO, "going on with %s after epoch %d of %d", task->name,
                job->look.epoch, task->set.train.epochs);
    else
        opc_log(OPC_LEVEL_INFO, "started %s", task->name);
    return OPC_OK;
}

/* The settings in the queue are no longer needed; the run has its own copy. */
static void task_done(struct scheduler *sched, int i)
{
    char path[OPC_PATH], far[96], value[OPC_PRINTED];
    struct job *job = &sched->job[i];
    const struct opc_task *task = &sched->sweep->task[i];
    job->stage = DONE;
    if (!opc_schedule_queue_path(sched->plan->out, task->name, path, NULL))
        unlink(path);
    snprintf(value, sizeof value, "%.4g", job->look.eval_return);
    opc_log(OPC_LEVEL_INFO, "done with %s: return %s (%s)", task->name,
            isnan(job->look.eval_return) ? "-" : value, opc_schedule_so_far(sched, far));
}

/* The reason is in status.json, or in the log if the job could not begin. */
static void task_failed(struct scheduler *sched, int i)
{
    struct job *job = &sched->job[i];
    const char *name = sched->sweep->task[i].name;
    char log[OPC_PATH] = "";
    job->stage = FAILED;
    if (!*job->look.why &&
        !opc_schedule_path(sched->plan->out, &sched->sweep->task[i], ".log", log, NULL))
        opc_schedule_last_line(log, job->look.why, sizeof job->look.why);
    opc_log(OPC_LEVEL_WARN, "%s failed with exit status %d (%s/%s.log)%s%s", name, job->status,
            sched->plan->out, name, *job->look.why ? ": " : "", job->look.why);
}

/* A job has ended (ours), or the other process that held its directory. Its directory says what
 * became of it: an exit status alone could be that of a process that was refused. */
static void task_ended(struct scheduler *sched, int i, bool ours)
{
    struct job *job = &sched->job[i];
    char path[OPC_PATH];
    /* A run that another machine has taken over is ended here, and not by its own fault. */
    if (sched->claims && opc_claims_lost(sched->claims, i))
        ours = false;
    opc_schedule_look(sched->plan->out, &sched->sweep->task[i], &job->look);
    if (!opc_schedule_path(sched->plan->out, &sched->sweep->task[i], "", path, NULL))
        job->seconds = opc_look_seconds(path, &job->epochs);
    if (job->look.state == OPC_STATE_DIVERGED)
        job->status = DIVERGED;
    /* Failures that would happen again are final; others (memory ran out, say) are tried again. */
    const int retries = job->status == REFUSED ? 1 : RETRIES;
    const bool for_good =
        job->status == DIVERGED || job->status == DAMAGED || job->status == ENVIRONMENT;
    job->claimed = false;
    if (job->look.state == OPC_STATE_DONE)
        task_done(sched, i);
    else if (job->look.state == OPC_STATE_RUNNING)
        job->stage = HELD;
    else if (job->look.state == OPC_STATE_FOREIGN || for_good ||
             (ours && sched->stops == 0 && job->retries >= retries))
        task_failed(sched, i);
    /* no attempt was used up */
    else if (!ours || sched->stops > 0)
        job->stage = WAITS;
    else {
        job->retries++;
        job->stage = WAITS;
        opc_log(OPC_LEVEL_WARN, "%s ended with exit status %d; it is tried again (%d of %d)",
                sched->sweep->task[i].name, job->status, job->retries, retries);
    }
    if (sched->claims)
        opc_claims_release(sched->claims, i,
                           job->stage == DONE     ? OPC_CLAIM_DONE
                           : job->stage == FAILED ? OPC_CLAIM_GIVE_UP
                                                  : OPC_CLAIM_GIVE_BACK,
                           job->status);
}

/* Makes a waiting task ours, if sweeps share OUT. Otherwise, and if it is complete by now, its
 * stage says what it is instead of waiting. */
static int claim_task(struct scheduler *sched, int i, bool *ours, struct opc_err *err)
{
    struct job *job = &sched->job[i];
    const struct opc_task *task = &sched->sweep->task[i];
    enum opc_claim claim;
    *ours = true;
    if (!sched->claims)
        return OPC_OK;
    /* Not everything that waited is still to be done: others work, too. */
    opc_schedule_look(sched->plan->out, task, &job->look);
    if (job->look.state == OPC_STATE_DONE) {
        task_done(sched, i);
        *ours = false;
        return OPC_OK;
    }
    OPC_TRY(opc_claims_take(sched->claims, i, task->name, &claim, err));
    *ours = claim == OPC_CLAIM_OURS;
    if (claim == OPC_CLAIM_HELD) {
        job->stage = HELD;
        job->claimed = true;
    } else if (claim == OPC_CLAIM_FAILED) {
        job->status = opc_claims_status(sched->claims, i);
        task_failed(sched, i);
    }
    if (!*ours)
        return OPC_OK;
    /* Between the look and the claim its last owner may have finished it. */
    opc_schedule_look(sched->plan->out, task, &job->look);
    if (job->look.state == OPC_STATE_INTERRUPTED || job->look.state == OPC_STATE_MISSING ||
        job->look.state == OPC_STATE_FAILED)
        return OPC_OK;
    *ours = false;
    task_ended(sched, i, false);
    return OPC_OK;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Passes requests to stop on to the jobs, each once. */
static void stop_jobs(struct scheduler *sched, int stops)
{
    if (stops <= sched->stops)
        return;
    sched->stops = stops;
    for (int i = 0; i < sched->sweep->tasks; i++)
        if (sched->job[i].stage == RUNS)
            sched->launcher->type->cancel(sched->launcher, sched->job[i].id, stops > 1);
}

/* Starts waiting tasks while there are free slots. A directory that another process holds counts as
 * busy: that process uses the processors, too. One that is claimed may be held on another machine.
 */
static int start_tasks(struct scheduler *sched, struct opc_err *err)
{
    int busy = opc_schedule_count(sched, RUNS), code = OPC_OK;
    if (!sched->claims)
        busy += opc_schedule_count(sched, HELD);
    for (int i = 0; i < sched->sweep->tasks && busy < sched->jobs && !sched->stops && !code; i++) {
        bool ours = false;
        if (sched->job[i].stage == WAITS)
            code = claim_task(sched, i, &ours, err);
        if (!code && ours) {
            code = start_task(sched, i, err);
            busy++;
        }
    }
    return code;
}

/* Has the process that held a task let it go? */
static bool is_free(struct scheduler *sched, int i)
{
    char path[OPC_PATH];
    const struct opc_task *task = &sched->sweep->task[i];
    if (sched->job[i].claimed)
        return opc_claims_peek(sched->claims, i, task->name) != OPC_CLAIM_HELD;
    return !opc_schedule_path(sched->plan->out, task, "", path, NULL) &&
           !opc_rundir_is_locked(path);
}

/* A job whose run somebody else has taken over must not write to it any more. */
static void end_lost_jobs(struct scheduler *sched)
{
    for (int i = 0; i < sched->sweep->tasks; i++)
        if (sched->job[i].stage == RUNS && !sched->job[i].claimed &&
            opc_claims_lost(sched->claims, i)) {
            sched->job[i].claimed = true; /* said once; task_ended clears it */
            opc_log(OPC_LEVEL_WARN, "%s was taken over while this machine stood still; it is ended",
                    sched->sweep->task[i].name);
            sched->launcher->type->cancel(sched->launcher, sched->job[i].id, true);
        }
}

/* held: look also whether what other processes held is free again. */
static void poll_jobs(struct scheduler *sched, bool held)
{
    for (int i = 0; i < sched->sweep->tasks; i++) {
        struct job *job = &sched->job[i];
        if (job->stage == RUNS &&
            sched->launcher->type->poll(sched->launcher, job->id, &job->status))
            task_ended(sched, i, true);
        else if (job->stage == HELD && held && is_free(sched, i)) {
            /* A claim that is over may be one that was given up: claim_task finds out. */
            if (job->claimed)
                job->stage = WAITS;
            else
                task_ended(sched, i, false);
        }
    }
}

/* Shows the sweeps that share OUT that we are alive, and sees whether they think so. */
static int show_life(struct scheduler *sched, struct opc_err *err)
{
    if (!sched->claims)
        return OPC_OK;
    const int code = opc_claims_beat(sched->claims, err);
    end_lost_jobs(sched);
    return code;
}

/* The loop: pass on stops, notice ends, start, report, sleep. */
static int run_jobs(struct scheduler *sched, struct opc_err *err)
{
    const double poll = sched->launcher->type->poll_s;
    double look = opc_now();
    int code = OPC_OK;
    for (;;) {
        stop_jobs(sched, sched->plan->stops ? sched->plan->stops(sched->plan->ctx) : 0);
        const double now = opc_now();
        poll_jobs(sched, now >= look);
        /* A claim is a file to be read, perhaps from a server: less often, the more there are. */
        if (now >= look)
            look = now + fmax(0.3, sched->claims ? opc_schedule_count(sched, HELD) / 100.0 : 0);
        /* A job that cannot be started (a full disk, say) stops the others in order. */
        if (!code && (code = show_life(sched, err)))
            stop_jobs(sched, 1);
        if (!code && (code = start_tasks(sched, err)))
            stop_jobs(sched, 1);
        const int open =
            opc_schedule_count(sched, RUNS) +
            (sched->stops ? 0 : opc_schedule_count(sched, WAITS) + opc_schedule_count(sched, HELD));
        opc_schedule_report(sched, open == 0);
        if (open == 0)
            return code;
        nanosleep(&(struct timespec){.tv_nsec = (long)(poll * 1e9)}, NULL);
    }
}

int opc_schedule_outcome(const struct scheduler *sched, struct opc_err *err)
{
    struct opc_text names = {0};
    int n = 0;
    for (int i = 0; i < sched->sweep->tasks; i++)
        if (sched->job[i].stage == FAILED && n++ < 4)
            opc_text_addf(&names, "%s%.60s (exit status %d)", n == 1 ? "" : ", ",
                          sched->sweep->task[i].name, sched->job[i].status);
    if (n > 4)
        opc_text_addf(&names, " and %d more", n - 4);
    int code = OPC_OK;
    if (sched->stops)
        code = opc_fail(
            err, OPC_ESTOPPED, "stopped by request, %d of %d run%s done; the same command goes on",
            opc_schedule_count(sched, DONE), sched->sweep->tasks, opc_plural(sched->sweep->tasks));
    else if (n)
        code = opc_fail(err, OPC_EIO, "%d of %d run%s failed: %s; the logs are in %s", n,
                        sched->sweep->tasks, opc_plural(sched->sweep->tasks), opc_text_get(&names),
                        sched->plan->out);
    opc_text_free(&names);
    return code;
}

/* The launcher ends what still runs; the lock goes last. */
static void release_all(struct scheduler *sched)
{
    char path[OPC_PATH];
    if (sched->launcher)
        sched->launcher->type->close(sched->launcher);
    opc_claims_close(sched->claims);
    if (sched->lock >= 0) {
        /* fails, as it should, while settings of unfinished tasks are in it */
        if (!opc_path_join(path, sched->plan->out, ".queue", NULL))
            rmdir(path); /* if nothing waits in it */
        close(sched->lock);
    }
    opc_free(sched->job);
}

/* Claims are needed where sweeps share OUT, and where they did: a machine whose locks do not reach
 * this one may still have some. */
static int open_claims(struct scheduler *sched, struct opc_err *err)
{
    const struct opc_schedule *plan = sched->plan;
    char path[OPC_PATH];
    OPC_TRY(opc_path_join(path, plan->out, ".claims", err));
    if (!plan->shared && !opc_is_directory(path))
        return OPC_OK;
    const double timeout = plan->claim_timeout > 0 ? plan->claim_timeout : CLAIM_TIMEOUT;
    OPC_TRY(opc_claims_open(plan->out, sched->sweep->tasks, timeout, &sched->claims, err));
    /* What failed before we came is tried again; what fails from here on is not, also where it is
     * being run just now. */
    for (int i = 0; i < sched->sweep->tasks; i++)
        if (sched->job[i].stage == WAITS || sched->job[i].stage == HELD)
            (void)opc_claims_peek(sched->claims, i, sched->sweep->task[i].name);
    return OPC_OK;
}

/* Runs everything as processes of this machine. */
static int run_here(struct scheduler *sched, struct opc_err *err)
{
    const struct opc_schedule *plan = sched->plan;
    OPC_TRY(opc_schedule_lock(sched, !plan->shared, err));
    OPC_TRY(opc_schedule_look_at_all(sched, err));
    opc_schedule_share(sched);
    OPC_TRY(open_claims(sched, err));
    OPC_TRY(plan->launcher->open(plan->program, sched->jobs, &sched->launcher, err));
    OPC_TRY(run_jobs(sched, err));
    return opc_schedule_outcome(sched, err);
}

int opc_schedule_run(const struct opc_sweep *sweep, const struct opc_schedule *plan,
                     struct opc_tally *out, struct opc_err *err)
{
    struct scheduler sched = {.sweep = sweep, .plan = plan, .lock = -1};
    sched.job = opc_alloc((size_t)sweep->tasks, sizeof *sched.job);
    int code;
    if (!sched.job)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for %d tasks", sweep->tasks);
    else if (opc_launcher_is_detached(plan->launcher))
        code = opc_schedule_hand_over(&sched, err);
    else
        code = run_here(&sched, err);
    if (out)
        *out = sched.tally;
    release_all(&sched);
    return code;
}
