/* SPDX-License-Identifier: MIT */
/* Runs the tasks of a sweep for `opc sweep` and `opc repro`. One process polls its jobs.
 *
 * Invariant: all that `struct scheduler` holds, but for the count of attempts, can be read again
 * from the directories, so a sweep may be killed at any time and started again.
 *
 * A job gets its resolved settings, in OUT/.queue, not the experiment file, which may be edited
 * while a sweep runs for days. Jobs stop when we are no longer their parent, so a sweep that was
 * killed leaves nothing running for long; until then their directories are locked, and a sweep that
 * is started again waits for the locks to go. */
#include "sweep/schedule.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/pool.h"
#include "env/types.h"
#include "opc/mem.h"
#include "opc/version.h"
#include "run/files/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { RETRIES = 3, LONGEST_DIR = 255, MAX_LOG = 1 << 20 };
/* Exit statuses (opc_exit_status) of failures that would happen again, ... */
enum { DAMAGED = 3, DIVERGED = 4, ENVIRONMENT = 5 };
/* ... and one that may: settings were refused, or another process was in the directory. */
enum { REFUSED = 2 };

/* Of a task: WAITS -> RUNS -> DONE, FAILED, or back to WAITS for another attempt. */
enum stage { WAITS, RUNS, HELD /* by another process */, DONE, FAILED };

struct job {
    enum stage stage;
    struct opc_look look; /* its directory when it was last looked at */
    int id, retries;      /* the launcher's id while it runs; attempts after the first */
    int status;           /* exit status of its last end */
    double seconds;       /* that its complete epochs took, ... */
    int epochs;           /* ... which are this many */
};

struct scheduler {
    const struct opc_sweep *sweep;
    const struct opc_schedule *plan;
    struct opc_launcher *launcher;
    struct job *job;            /* [tasks] */
    int jobs, threads;          /* jobs at a time, threads of each */
    int lock;                   /* file descriptor of OUT/.lock; -1: not ours */
    int stops;                  /* requests to stop that were passed on to the jobs */
    double reported, refreshed; /* by opc_now: last report, last estimate */
    struct opc_tally tally;
};

/* ---- directories ----------------------------------------------------------------------------- */

int opc_schedule_path(const char *out, const struct opc_task *task, const char *end,
                      char path[OPC_PATH], struct opc_err *err)
{
    char name[512];
    snprintf(name, sizeof name, "%s%s", task->name, end);
    return opc_path_join(path, out, name, err);
}

/* The last line of a log: the message of a job that could not begin. */
static void last_log_line(const char *path, char *out, size_t size)
{
    char *text;
    size_t n;
    *out = '\0';
    if (opc_file_read(path, MAX_LOG, &text, &n, NULL))
        return;
    while (n > 0 && text[n - 1] == '\n')
        text[--n] = '\0';
    const char *line = strrchr(text, '\n');
    snprintf(out, size, "%s", line ? line + 1 : text);
    opc_free(text);
}

void opc_schedule_look(const char *out, const struct opc_task *task, struct opc_look *look)
{
    char path[OPC_PATH];
    if (opc_schedule_path(out, task, "", path, NULL)) {
        *look = (struct opc_look){.state = OPC_STATE_FOREIGN, .why = "its path is too long"};
        return;
    }
    opc_look(path, &task->set, look);
    /* A log without a directory: the job failed before it could create one. */
    if (look->state == OPC_STATE_MISSING && !opc_schedule_path(out, task, ".log", path, NULL)) {
        last_log_line(path, look->why, sizeof look->why);
        if (*look->why)
            look->state = OPC_STATE_FAILED;
    }
}

/* One sweep at a time works in OUT. */
static int lock_directory(struct scheduler *sched, struct opc_err *err)
{
    char path[OPC_PATH];
    if (opc_rundir_is_run(sched->plan->out))
        return opc_fail(err, OPC_EUSER, "%s is one run; choose a directory for many: --out DIR",
                        sched->plan->out);
    OPC_TRY(opc_make_directories(sched->plan->out, err));
    OPC_TRY(opc_path_join(path, sched->plan->out, ".lock", err));
    sched->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (sched->lock < 0)
        return opc_fail_errno(err, errno, "cannot open %s", path);
    if (flock(sched->lock, LOCK_EX | LOCK_NB) == 0)
        return OPC_OK;
    /* close may change errno */
    const int why = errno;
    close(sched->lock);
    sched->lock = -1; /* nothing here is ours */
    if (why == EWOULDBLOCK)
        return opc_fail(
            err, OPC_EUSER,
            "another sweep is at work in %s; wait for its end, or look on with 'status'",
            sched->plan->out);
    return opc_fail_errno(err, why, "cannot lock %s", sched->plan->out);
}

/* ---- before anything starts ------------------------------------------------------------------ */

/* Looks at every task before any is started: a foreign directory refuses the whole sweep. */
static int look_at_all(struct scheduler *sched, struct opc_err *err)
{
    int foreign = 0, first = 0, others = 0, other = 0;
    char path[OPC_PATH];
    for (int i = 0; i < sched->sweep->tasks; i++) {
        struct job *job = &sched->job[i];
        const struct opc_task *task = &sched->sweep->task[i];
        int code = opc_schedule_path(sched->plan->out, task, "", path, err);
        if (!code && strlen(path) > LONGEST_DIR)
            code = opc_fail(err, OPC_EUSER,
                            "%.100s... is longer than %d bytes; choose a shorter "
                            "--out",
                            path, LONGEST_DIR);
        if (code)
            return code;
        opc_schedule_look(sched->plan->out, task, &job->look);
        job->seconds = opc_look_seconds(path, &job->epochs);
        /* a run that diverged would diverge again, so it is not started */
        job->stage = job->look.state == OPC_STATE_DONE       ? DONE
                     : job->look.state == OPC_STATE_RUNNING  ? HELD
                     : job->look.state == OPC_STATE_DIVERGED ? FAILED
                                                             : WAITS;
        if (job->stage == FAILED)
            job->status = DIVERGED;
        /* the first foreign run, and the first of another version, stand for all in messages */
        if (job->look.state == OPC_STATE_FOREIGN && foreign++ == 0)
            first = i;
        if (*job->look.version && strcmp(job->look.version, OPC_VERSION) != 0 && others++ == 0)
            other = i;
    }
    /* other versions may compute other numbers; that is for the user to judge */
    if (others)
        opc_log(OPC_LEVEL_WARN, "%s/%s%s was made by opc %s, this is opc %s; it counts as it is",
                sched->plan->out, sched->sweep->task[other].name, others > 1 ? " (and others)" : "",
                sched->job[other].look.version, OPC_VERSION);
    if (!foreign)
        return OPC_OK;
    char more[64] = "";
    if (foreign > 1)
        snprintf(more, sizeof more, " (%d more are foreign, too)", foreign - 1);
    return opc_fail(err, OPC_EUSER,
                    "%s/%s is foreign: %s%s; nothing was started; choose another --out, or move it "
                    "away",
                    sched->plan->out, sched->sweep->task[first].name, sched->job[first].look.why,
                    more);
}

static int count_stage(const struct scheduler *sched, enum stage stage)
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
    const int open =
        count_stage(sched, WAITS) + count_stage(sched, RUNS) + count_stage(sched, HELD);
    const int at_once = open < sched->jobs ? open : sched->jobs;
    tally->share = all > 0 ? 1 - left / all : 0;
    tally->left = known ? fmax(longest, left / (at_once > 0 ? at_once : 1)) : (double)NAN;
}

/* Calls the caller's progress function, at most five times a second; `now`: in any case. */
static void report_progress(struct scheduler *sched, bool now)
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
    tally->done = count_stage(sched, DONE);
    tally->failed = count_stage(sched, FAILED);
    tally->running = count_stage(sched, RUNS) + count_stage(sched, HELD);
    tally->waiting = count_stage(sched, WAITS);
    if (sched->plan->progress)
        sched->plan->progress(sched->plan->ctx, tally);
}

/* "3 of 8 done, 1 h 03 min left" */
static const char *print_so_far(struct scheduler *sched, char out[96])
{
    char left[OPC_PRINTED];
    refresh_estimate(sched);
    /* below a tenth of a second there is nothing left to say */
    const int done = count_stage(sched, DONE);
    if (done == sched->sweep->tasks || !(sched->tally.left >= 0.1))
        snprintf(out, 96, "%d of %d done", done, sched->sweep->tasks);
    else
        snprintf(out, 96, "%d of %d done, %s left", done, sched->sweep->tasks,
                 opc_print_duration(sched->tally.left, left));
    return out;
}

/* ---- one task -------------------------------------------------------------------------------- */

/* OUT/.queue/NAME.yaml */
static int queue_path(const struct scheduler *sched, const struct opc_task *task,
                      char path[OPC_PATH], struct opc_err *err)
{
    char folder[OPC_PATH];
    const int code = opc_path_join(folder, sched->plan->out, ".queue", err);
    return code ? code : opc_schedule_path(folder, task, ".yaml", path, err);
}

/* Writes the resolved settings for a new run; *path is their file. */
static int write_settings(const struct scheduler *sched, const struct opc_task *task,
                          char path[OPC_PATH], struct opc_err *err)
{
    struct opc_text text = {0};
    char folder[OPC_PATH];
    opc_values_print(&task->set, &text);
    int code = opc_text_check(&text, err);
    if (!code)
        code = queue_path(sched, task, path, err);
    if (!code)
        code = opc_path_parent(folder, path, err);
    if (!code)
        code = opc_make_directories(folder, err);
    if (!code)
        code = opc_file_write(path, opc_text_get(&text), text.used, err);
    opc_text_free(&text);
    return code;
}

/* Starts or resumes a task. */
static int start_task(struct scheduler *sched, int i, struct opc_err *err)
{
    struct job *job = &sched->job[i];
    const struct opc_task *task = &sched->sweep->task[i];
    char dir[OPC_PATH], log[OPC_PATH], settings[OPC_PATH], threads[16], parent[16];
    snprintf(threads, sizeof threads, "%d", sched->threads);
    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    OPC_TRY(opc_schedule_path(sched->plan->out, task, "", dir, err));
    OPC_TRY(opc_schedule_path(sched->plan->out, task, ".log", log, err));
    /* A shorter run gets its new number of epochs; a new run its settings. */
    if (job->look.shorter)
        OPC_TRY(opc_look_raise(dir, &task->set, err));
    if (!job->look.begun)
        OPC_TRY(write_settings(sched, task, settings, err));
    /* --parent: the job ends when this process is gone */
    char *const train[] = {"train",     settings, "--out",    dir,    "--quiet",
                           "--threads", threads,  "--parent", parent, NULL};
    char *const resume[] = {"resume", dir,        "--quiet", "--threads",
                            threads,  "--parent", parent,    NULL};
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
    if (!queue_path(sched, task, path, NULL))
        unlink(path);
    snprintf(value, sizeof value, "%.4g", job->look.eval_return);
    opc_log(OPC_LEVEL_INFO, "done with %s: return %s (%s)", task->name,
            isnan(job->look.eval_return) ? "-" : value, print_so_far(sched, far));
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
        last_log_line(log, job->look.why, sizeof job->look.why);
    opc_log(OPC_LEVEL_WARN, "%s failed with exit status %d (%s/%s.log)%s%s", name, job->status,
            sched->plan->out, name, *job->look.why ? ": " : "", job->look.why);
}

/* A job has ended (ours), or the other process that held its directory. Its directory says what
 * became of it: an exit status alone could be that of a process that was refused. */
static void task_ended(struct scheduler *sched, int i, bool ours)
{
    struct job *job = &sched->job[i];
    char path[OPC_PATH];
    opc_schedule_look(sched->plan->out, &sched->sweep->task[i], &job->look);
    if (!opc_schedule_path(sched->plan->out, &sched->sweep->task[i], "", path, NULL))
        job->seconds = opc_look_seconds(path, &job->epochs);
    if (job->look.state == OPC_STATE_DIVERGED)
        job->status = DIVERGED;
    /* Failures that would happen again are final; others (memory ran out, say) are tried again. */
    const int retries = job->status == REFUSED ? 1 : RETRIES;
    const bool for_good =
        job->status == DIVERGED || job->status == DAMAGED || job->status == ENVIRONMENT;
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
 * busy: that process uses the processors, too. */
static int start_tasks(struct scheduler *sched, struct opc_err *err)
{
    int busy = count_stage(sched, RUNS) + count_stage(sched, HELD), code = OPC_OK;
    for (int i = 0; i < sched->sweep->tasks && busy < sched->jobs && !sched->stops && !code; i++)
        if (sched->job[i].stage == WAITS) {
            code = start_task(sched, i, err);
            busy++;
        }
    return code;
}

/* locks: look also whether directories that other processes held are free again. */
static void poll_jobs(struct scheduler *sched, bool locks)
{
    char path[OPC_PATH];
    for (int i = 0; i < sched->sweep->tasks; i++) {
        struct job *job = &sched->job[i];
        if (job->stage == RUNS &&
            sched->launcher->type->poll(sched->launcher, job->id, &job->status))
            task_ended(sched, i, true);
        else if (job->stage == HELD && locks &&
                 !opc_schedule_path(sched->plan->out, &sched->sweep->task[i], "", path, NULL) &&
                 !opc_rundir_is_locked(path))
            task_ended(sched, i, false);
    }
}

/* The loop: pass on stops, notice ends, start, report, sleep 20 ms. */
static int run_jobs(struct scheduler *sched, struct opc_err *err)
{
    double locks = opc_now();
    int code = OPC_OK;
    for (;;) {
        stop_jobs(sched, sched->plan->stops ? sched->plan->stops(sched->plan->ctx) : 0);
        const double now = opc_now();
        poll_jobs(sched, now >= locks);
        if (now >= locks)
            locks = now + 0.3;
        /* A job that cannot be started (a full disk, say) stops the others in order. */
        if (!code && (code = start_tasks(sched, err)))
            stop_jobs(sched, 1);
        const int open = count_stage(sched, RUNS) +
                         (sched->stops ? 0 : count_stage(sched, WAITS) + count_stage(sched, HELD));
        report_progress(sched, open == 0);
        if (open == 0)
            return code;
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}

/* The sweep's own outcome: stopped, or which of its tasks failed. */
static int summarize_failures(struct scheduler *sched, struct opc_err *err)
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
            count_stage(sched, DONE), sched->sweep->tasks, opc_plural(sched->sweep->tasks));
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
    if (sched->lock >= 0) {
        /* fails, as it should, while settings of unfinished tasks are in it */
        if (!opc_path_join(path, sched->plan->out, ".queue", NULL))
            rmdir(path); /* if nothing waits in it */
        close(sched->lock);
    }
    opc_free(sched->job);
}

/* How many jobs at a time, and threads of each. */
static void share_processors(struct scheduler *sched)
{
    const struct opc_schedule *plan = sched->plan;
    const int processors = opc_processors();
    const int todo = count_stage(sched, WAITS) + count_stage(sched, HELD);
    /* no more jobs than tasks, so that the last ones get more threads */
    sched->jobs = plan->jobs ? plan->jobs : processors;
    if (sched->jobs > todo)
        sched->jobs = todo ? todo : 1;
    /* hardware can be used by one job at a time */
    const char *seen = "";
    for (int i = 0; i < sched->sweep->tasks && sched->jobs > 1; i++) {
        const char *name = sched->sweep->task[i].set.env.name;
        /* A program is started to find out: once for all seeds. */
        if (strcmp(name, seen) != 0 && opc_env_is_machine(name))
            sched->jobs = 1;
        seen = name;
    }
    sched->threads = plan->threads ? plan->threads : processors / sched->jobs;
    sched->threads = sched->threads > 0 ? sched->threads : 1;
}

int opc_schedule_run(const struct opc_sweep *sweep, const struct opc_schedule *plan,
                     struct opc_tally *out, struct opc_err *err)
{
    struct scheduler sched = {.sweep = sweep, .plan = plan, .lock = -1};
    sched.job = opc_alloc((size_t)sweep->tasks, sizeof *sched.job);
    int code = sched.job
                   ? lock_directory(&sched, err)
                   : opc_fail(err, OPC_ENOMEM, "not enough memory for %d tasks", sweep->tasks);
    if (!code)
        code = look_at_all(&sched, err);
    if (!code) {
        share_processors(&sched);
        code = plan->launcher->open(plan->program, sched.jobs, &sched.launcher, err);
    }
    if (!code) {
        code = run_jobs(&sched, err);
        if (!code)
            code = summarize_failures(&sched, err);
        if (out)
            *out = sched.tally;
    }
    release_all(&sched);
    return code;
}
