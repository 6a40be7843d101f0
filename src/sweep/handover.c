/* SPDX-License-Identifier: MIT */
/* Hands the missing runs of a sweep over to a detached launcher, and looks after what it has.
 *
 * Invariant: whether a run is done is read from its directory, whether it is queued from the
 * scheduler; no file of ours remembers either. So the command may be killed at any time and given
 * again, and submits only what is neither done nor queued. If it is killed between the scheduler's
 * acceptance and our return, the next call finds the tasks in the queue by the name of their job.
 */
#include "sweep/handover.h"

#include "base/clock.h"
#include "base/host.h"
#include "base/log.h"
#include "opc/mem.h"
#include "sweep/schedule_private.h"
#include "sweep/worklist.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* Slurm's default for the largest array is 1,001 numbers from 0. */
enum { MAX_ARRAY = 1000, MAX_BATCHES = 100000 };
/* Directories are looked at every second while we wait. The scheduler is asked less often: it
 * serves everybody. */
static const double ASK_S = 10;

/* ---- what the scheduler has ------------------------------------------------------------------ */

/* OUT/.NAME */
static int folder_of(const struct opc_launcher_type *type, const char *out, char path[OPC_PATH],
                     struct opc_err *err)
{
    char name[64];
    snprintf(name, sizeof name, ".%s", type->name);
    return opc_path_join(path, out, name, err);
}

static int list_path(const char *folder, int number, char path[OPC_PATH], struct opc_err *err)
{
    char name[32];
    snprintf(name, sizeof name, "%d.runs", number);
    return opc_path_join(path, folder, name, err);
}

/* The detached launcher that has taken runs of OUT; NULL: none has. */
static const struct opc_launcher_type *used_in(const char *out, char folder[OPC_PATH])
{
    char first[OPC_PATH];
    for (int i = 0; opc_launchers[i]; i++)
        if (opc_launcher_is_detached(opc_launchers[i]) &&
            !folder_of(opc_launchers[i], out, folder, NULL) && !list_path(folder, 1, first, NULL) &&
            opc_file_exists(first))
            return opc_launchers[i];
    return NULL;
}

/* Notes for each run of a queued task that it is queued. A list that cannot be read has no runs. */
static void note_task(const char *folder, const struct opc_queued *queued,
                      const struct opc_sweep *sweep, struct opc_waiting *waiting)
{
    char path[OPC_PATH];
    struct opc_worklist list;
    if (list_path(folder, queued->number, path, NULL) || opc_worklist_read(path, &list, NULL))
        return;
    for (int k = 0; k < list.pack; k++) {
        const int at = (queued->task - 1) * list.pack + k;
        for (int i = 0; at < list.n && i < sweep->tasks; i++)
            if (strcmp(sweep->task[i].name, list.name[at]) == 0)
                waiting->of[i] = *queued;
    }
    opc_worklist_free(&list);
}

int opc_waiting_read(const char *out, const struct opc_sweep *sweep, struct opc_waiting *waiting,
                     struct opc_err *err)
{
    char folder[OPC_PATH];
    struct opc_queue queue = {0};
    *waiting = (struct opc_waiting){.launcher = used_in(out, folder)};
    waiting->of = opc_alloc((size_t)sweep->tasks + 1, sizeof *waiting->of);
    if (!waiting->of)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the queue");
    if (!waiting->launcher)
        return OPC_OK;
    const int code = waiting->launcher->list(folder, &queue, err);
    for (int i = 0; i < queue.n && !code; i++)
        note_task(folder, &queue.at[i], sweep, waiting);
    opc_free(queue.at);
    if (code)
        opc_waiting_free(waiting);
    return code;
}

void opc_waiting_free(struct opc_waiting *waiting)
{
    opc_free(waiting->of);
    *waiting = (struct opc_waiting){0};
}

int opc_handover_cancel(const char *out, int *jobs, struct opc_err *err)
{
    char folder[OPC_PATH];
    const struct opc_launcher_type *type = used_in(out, folder);
    if (!type)
        return opc_fail(
            err, OPC_EUSER,
            "no scheduler was given runs of %s; a sweep on this machine is stopped with "
            "Ctrl-C",
            out);
    return type->cancel_all(folder, jobs, err);
}

/* ---- handing over ---------------------------------------------------------------------------- */

/* One command at a time submits: two would submit the same. */
static int lock_folder(const char *folder, int *lock, struct opc_err *err)
{
    char path[OPC_PATH];
    OPC_TRY(opc_make_directories(folder, err));
    OPC_TRY(opc_path_join(path, folder, ".lock", err));
    *lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*lock < 0)
        return opc_fail_errno(err, errno, "cannot open %s", path);
    /* It is held for a moment only. A file system without locks has to do without. */
    if (flock(*lock, LOCK_EX) && !opc_has_no_locks(errno))
        return opc_fail_errno(err, errno, "cannot lock %s", path);
    return OPC_OK;
}

/* The program as the nodes find it. */
static int find_program(const struct opc_schedule *plan, char out[OPC_PATH], struct opc_err *err)
{
    return opc_path_absolute(out, plan->program ? plan->program : "/proc/self/exe", err);
}

/* The settings of a run that is to be submitted. */
static int prepare_run(struct scheduler *sched, int i, struct opc_err *err)
{
    char path[OPC_PATH];
    const struct opc_task *task = &sched->sweep->task[i];
    if (!sched->job[i].look.begun)
        return opc_schedule_write_settings(sched->plan->out, task, path, err);
    if (!sched->job[i].look.shorter)
        return OPC_OK;
    OPC_TRY(opc_schedule_path(sched->plan->out, task, "", path, err));
    return opc_look_raise(path, &task->set, err);
}

/* The number of the next batch: the first that has no list. */
static int next_number(const char *folder, struct opc_err *err)
{
    char path[OPC_PATH];
    for (int n = 1; n < MAX_BATCHES; n++)
        if (!list_path(folder, n, path, err) && !opc_file_exists(path))
            return n;
    return MAX_BATCHES;
}

/* Submits n runs of the names as one job. What it wrote for a job that was refused is removed. */
static int submit_batch(struct scheduler *sched, const char *folder, int n, const char *const *name,
                        struct opc_err *err)
{
    char out[OPC_PATH], program[OPC_PATH], list[OPC_PATH], whole[OPC_PATH];
    struct opc_text job = {0};
    const struct opc_schedule *plan = sched->plan;
    struct opc_resources resources = plan->resources;
    resources.threads = plan->threads > 0 ? plan->threads : 1;
    resources.pack = resources.pack > 0 ? resources.pack : 1;
    resources.limit = plan->jobs;
    /* Paths from the root: the job starts on another machine. */
    OPC_TRY(opc_path_absolute(out, plan->out, err));
    OPC_TRY(opc_path_absolute(whole, folder, err));
    OPC_TRY(find_program(plan, program, err));
    const struct opc_batch batch = {.out = out,
                                    .program = program,
                                    .folder = whole,
                                    .list = list,
                                    .number = next_number(folder, err),
                                    .tasks = (n + resources.pack - 1) / resources.pack,
                                    .resources = &resources};
    OPC_TRY(list_path(whole, batch.number, list, err));
    OPC_TRY(opc_worklist_write(list, resources.pack, n, name, err));
    const int code = plan->launcher->hand_over(&batch, &job, err);
    if (code)
        unlink(list);
    else if (resources.pack == 1)
        opc_log(OPC_LEVEL_INFO, "submitted %d run%s as %s job %s", n, n == 1 ? "" : "s",
                plan->launcher->name, opc_text_get(&job));
    else
        opc_log(OPC_LEVEL_INFO, "submitted %d run%s as %s job %s, %d of them in each of %d tasks",
                n, n == 1 ? "" : "s", plan->launcher->name, opc_text_get(&job), resources.pack,
                batch.tasks);
    opc_text_free(&job);
    return code;
}

/* Submits every task that waits, in jobs of at most MAX_ARRAY tasks. Those that were taken are
 * HELD. */
static int submit_all(struct scheduler *sched, const char *folder, struct opc_err *err)
{
    const int n = sched->sweep->tasks, pack = sched->plan->resources.pack;
    const int max_runs = MAX_ARRAY * (pack > 0 ? pack : 1);
    const char **name = opc_alloc((size_t)n + 1, sizeof *name);
    int *which = opc_alloc((size_t)n + 1, sizeof *which), code = OPC_OK;
    if (!name || !which)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for the names of %d runs", n);
    for (int i = 0; i < n && !code;) {
        /* the next runs, with their settings in place before anything is submitted */
        int count = 0;
        for (; i < n && count < max_runs && !code; i++)
            if (sched->job[i].stage == WAITS) {
                code = prepare_run(sched, i, err);
                which[count] = i;
                name[count++] = sched->sweep->task[i].name;
            }
        if (!code && count > 0)
            code = submit_batch(sched, folder, count, name, err);
        char path[OPC_PATH];
        for (int k = 0; k < count; k++)
            if (!code)
                sched->job[which[k]].stage = HELD;
            /* nobody needs the settings of what was refused */
            else if (!sched->job[which[k]].look.begun &&
                     !opc_schedule_queue_path(sched->plan->out, name[k], path, NULL))
                unlink(path);
    }
    opc_free(name);
    opc_free(which);
    return code;
}

/* What is in the queue, or worked on in this moment, is HELD; the rest that is not done WAITS. */
static int mark_queued(struct scheduler *sched, struct opc_err *err)
{
    struct opc_waiting waiting;
    OPC_TRY(opc_waiting_read(sched->plan->out, sched->sweep, &waiting, err));
    for (int i = 0; i < sched->sweep->tasks; i++) {
        struct job *job = &sched->job[i];
        if (job->stage == DONE || job->stage == FAILED)
            continue;
        const bool held = *waiting.of[i].job || job->look.state == OPC_STATE_RUNNING;
        job->stage = held ? HELD : WAITS;
    }
    opc_waiting_free(&waiting);
    return OPC_OK;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Looks at the directories of runs on their way; one that is complete is said. */
static void look_at_held(struct scheduler *sched)
{
    char far[96];
    for (int i = 0; i < sched->sweep->tasks; i++) {
        struct job *job = &sched->job[i];
        if (job->stage != HELD)
            continue;
        opc_schedule_look(sched->plan->out, &sched->sweep->task[i], &job->look);
        if (job->look.state == OPC_STATE_DONE) {
            job->stage = DONE;
            opc_log(OPC_LEVEL_INFO, "done with %s (%s)", sched->sweep->task[i].name,
                    opc_schedule_so_far(sched, far));
        }
    }
}

/* A run that is neither complete nor queued any more has failed; its directory or its log says why.
 */
static int find_failed(struct scheduler *sched, struct opc_err *err)
{
    OPC_TRY(mark_queued(sched, err));
    for (int i = 0; i < sched->sweep->tasks; i++) {
        struct job *job = &sched->job[i];
        if (job->stage != WAITS)
            continue;
        /* It may have been completed since it was looked at. */
        opc_schedule_look(sched->plan->out, &sched->sweep->task[i], &job->look);
        job->stage = job->look.state == OPC_STATE_DONE ? DONE : FAILED;
        job->status = job->look.state == OPC_STATE_DIVERGED ? OPC_STATUS_DIVERGED : 1;
        if (job->stage == FAILED)
            opc_log(OPC_LEVEL_WARN, "%s is %s, and no longer queued%s%s",
                    sched->sweep->task[i].name, opc_state_name(job->look.state),
                    *job->look.why ? ": " : "", job->look.why);
    }
    return OPC_OK;
}

/* Until every run has ended, or a stop was asked for: the runs go on then. */
static int wait_for_all(struct scheduler *sched, struct opc_err *err)
{
    double asked = opc_now();
    while (opc_schedule_count(sched, HELD) > 0) {
        if (sched->plan->stops && sched->plan->stops(sched->plan->ctx))
            return opc_fail(err, OPC_ESTOPPED,
                            "no longer waiting: %d of %d runs are done, the others stay with %s",
                            opc_schedule_count(sched, DONE), sched->sweep->tasks,
                            sched->plan->launcher->name);
        /* Short sleeps, so that Ctrl-C is answered at once. */
        for (int k = 0; k < 5; k++) {
            nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
            opc_schedule_report(sched, false);
            if (sched->plan->stops && sched->plan->stops(sched->plan->ctx))
                break;
        }
        look_at_held(sched);
        if (opc_now() - asked < ASK_S)
            continue;
        asked = opc_now();
        /* A controller that is being restarted does not answer: the files still tell. */
        struct opc_err silent = {0};
        if (opc_schedule_count(sched, HELD) > 0 && find_failed(sched, &silent))
            opc_log(OPC_LEVEL_WARN, "%s; looking at the run directories alone", silent.text);
    }
    return opc_schedule_outcome(sched, err);
}

int opc_schedule_hand_over(struct scheduler *sched, struct opc_err *err)
{
    char folder[OPC_PATH];
    int lock = -1;
    const struct opc_schedule *plan = sched->plan;
    OPC_TRY(opc_schedule_lock(sched, false, err));
    OPC_TRY(opc_schedule_look_at_all(sched, err));
    OPC_TRY(folder_of(plan->launcher, plan->out, folder, err));
    int code = lock_folder(folder, &lock, err);
    if (!code)
        code = mark_queued(sched, err);
    const int queued = opc_schedule_count(sched, HELD);
    if (!code && queued > 0)
        opc_log(OPC_LEVEL_INFO, "%d run%s queued or running already", queued,
                queued == 1 ? " is" : "s are");
    if (!code)
        code = submit_all(sched, folder, err);
    if (lock >= 0)
        close(lock);
    opc_schedule_report(sched, true);
    if (!code && plan->wait)
        code = wait_for_all(sched, err);
    else if (!code && opc_schedule_count(sched, HELD) == 0)
        code = opc_schedule_outcome(sched, err);
    opc_schedule_report(sched, true);
    return code;
}
