/* SPDX-License-Identifier: MIT */
/* What is done before a run of a sweep is started, whoever starts it: locks OUT, looks at every
 * directory, writes settings. schedule.c and handover.c call it.
 *
 * Invariant: a directory that is foreign stops everything before the first run is started, and is
 * not touched. */
#include "base/host.h"
#include "base/log.h"
#include "base/pool.h"
#include "env/types.h"
#include "opc/mem.h"
#include "run/files/rundir.h"
#include "sweep/schedule_private.h"
#include "sweep/versions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { LONGEST_DIR = 255, MAX_LOG = 1 << 20 };

/* ---- directories ----------------------------------------------------------------------------- */

int opc_schedule_path(const char *out, const struct opc_task *task, const char *end,
                      char path[OPC_PATH], struct opc_err *err)
{
    char name[512];
    snprintf(name, sizeof name, "%s%s", task->name, end);
    return opc_path_join(path, out, name, err);
}

void opc_schedule_last_line(const char *path, char *out, size_t size)
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
        opc_schedule_last_line(path, look->why, sizeof look->why);
        if (*look->why)
            look->state = OPC_STATE_FAILED;
    }
}

int opc_schedule_lock(struct scheduler *sched, bool alone, struct opc_err *err)
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
    /* Those that share OUT have a shared lock: they keep out one that wants to be alone. */
    if (flock(sched->lock, (alone ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0)
        return OPC_OK;
    /* close may change errno */
    const int why = errno;
    if (opc_has_no_locks(why) && !alone)
        return OPC_OK; /* claims decide */
    close(sched->lock);
    sched->lock = -1; /* nothing here is ours */
    if (why == EWOULDBLOCK)
        return opc_fail(err, OPC_EUSER, "another sweep is at work in %s; %s", sched->plan->out,
                        alone
                            ? "wait for its end, or look on with 'status'"
                            : "it does not share: wait for its end, or stop it and start it again "
                              "with --shared");
    if (opc_has_no_locks(why))
        return opc_fail(err, OPC_EUSER,
                        "the file system of %s has no locks; --shared works without them",
                        sched->plan->out);
    return opc_fail_errno(err, why, "cannot lock %s", sched->plan->out);
}

/* ---- before anything starts ------------------------------------------------------------------ */

/* Names what has made runs that are there, if it is not this program. */
static void warn_of_others(const char *out, const char *first, const struct opc_versions *others)
{
    struct opc_text both = {0};
    char more[32] = "";
    if (others->runs > 1)
        snprintf(more, sizeof more, " (and %d more)", others->runs - 1);
    opc_versions_compare(others, &both);
    opc_log(OPC_LEVEL_WARN, "%s/%s%s was %s; it counts as it is", out, first, more,
            opc_text_get(&both));
    opc_text_free(&both);
}

int opc_schedule_look_at_all(struct scheduler *sched, struct opc_err *err)
{
    int foreign = 0, first = 0, other = 0;
    struct opc_versions others = {0};
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
            job->status = OPC_STATUS_DIVERGED;
        /* the first foreign run, and the first of another commit, stand for all in messages */
        if (job->look.state == OPC_STATE_FOREIGN && foreign++ == 0)
            first = i;
        if ((job->look.begun || *job->look.version) &&
            !opc_version_is_ours(job->look.version, job->look.revision)) {
            other = others.n ? other : i;
            opc_versions_note(&others, job->look.version, job->look.revision);
        }
    }
    /* other commits may compute other numbers; that is for the user to judge */
    if (others.n)
        warn_of_others(sched->plan->out, sched->sweep->task[other].name, &others);
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

/* ---- for the runs
 * -------------------------------------------------------------------------------- */

int opc_schedule_queue_path(const char *out, const char *name, char path[OPC_PATH],
                            struct opc_err *err)
{
    char file[OPC_PATH];
    snprintf(file, sizeof file, ".queue/%s.yaml", name);
    return opc_path_join(path, out, file, err);
}

/* The resolved settings for a new run; *path is their file. */
int opc_schedule_write_settings(const char *out, const struct opc_task *task, char path[OPC_PATH],
                                struct opc_err *err)
{
    struct opc_text text = {0};
    char folder[OPC_PATH];
    opc_values_print(&task->set, &text);
    int code = opc_text_check(&text, err);
    if (!code)
        code = opc_schedule_queue_path(out, task->name, path, err);
    if (!code)
        code = opc_path_parent(folder, path, err);
    if (!code)
        code = opc_make_directories(folder, err);
    if (!code)
        code = opc_file_write(path, opc_text_get(&text), text.used, err);
    opc_text_free(&text);
    return code;
}

void opc_schedule_share(struct scheduler *sched)
{
    const struct opc_schedule *plan = sched->plan;
    const int processors = opc_processors();
    const int todo = opc_schedule_count(sched, WAITS) + opc_schedule_count(sched, HELD);
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
