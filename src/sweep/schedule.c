/* SPDX-License-Identifier: MIT */
/* One process polls its jobs; there is no state but the directories and what `struct state` holds.
 *
 * Jobs get their settings resolved, in OUT/.queue, not the experiment file: that may be edited
 * while a sweep runs for days. They stop when we are no longer their parent, so a sweep that was
 * killed leaves nothing running for long; until then their directories are locked, and a sweep that
 * is started again waits for the locks to go. */
#include "sweep/schedule.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/pool.h"
#include "env/types.h"
#include "opc/mem.h"
#include "opc/version.h"
#include "run/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { RETRIES = 3, LONGEST_DIR = 255, MAX_LOG = 1 << 20 };
enum { DAMAGED = 3, DIVERGED = 4, ENVIRONMENT = 5 }; /* exit statuses that repeat themselves */
enum { REFUSED = 2 }; /* settings, which repeats itself; or somebody was in the directory */

enum stage { WAITS, RUNS, HELD /* by another process */, DONE, FAILED };

struct job {
    enum stage stage;
    struct opc_look look;
    int id, retries;
    int status;     /* of its last end */
    double seconds; /* its epochs took */
    int epochs;     /* so many */
};

struct state {
    const struct opc_sweep *sweep;
    const struct opc_schedule *plan;
    struct opc_launcher *launcher;
    struct job *job; /* [tasks] */
    int jobs, threads, lock;
    int stops;                  /* already passed on */
    double reported, refreshed; /* when */
    struct opc_tally tally;
};

/* ---- directories ----------------------------------------------------------------------------- */

int opc_schedule_path(const char *out, const struct opc_task *t, const char *end,
                      char path[OPC_PATH], struct opc_err *err)
{
    char name[512];
    snprintf(name, sizeof name, "%s%s", t->name, end);
    return opc_path_join(path, out, name, err);
}

/* The last line of a log: what a job that could not begin had to say. */
static void last_words(const char *path, char *out, size_t size)
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

void opc_schedule_look(const char *out, const struct opc_task *t, struct opc_look *look)
{
    char path[OPC_PATH];
    if (opc_schedule_path(out, t, "", path, NULL)) {
        *look = (struct opc_look){.state = OPC_STATE_FOREIGN, .why = "its path is too long"};
        return;
    }
    opc_look(path, &t->set, look);
    if (look->state == OPC_STATE_MISSING && !opc_schedule_path(out, t, ".log", path, NULL)) {
        last_words(path, look->why, sizeof look->why);
        if (*look->why)
            look->state = OPC_STATE_FAILED;
    }
}

static int lock_out(struct state *s, struct opc_err *err)
{
    char path[OPC_PATH];
    if (opc_rundir_is_run(s->plan->out))
        return opc_fail(err, OPC_EUSER, "%s is one run; choose a directory for many: --out DIR",
                        s->plan->out);
    int code = opc_make_directories(s->plan->out, err);
    if (!code)
        code = opc_path_join(path, s->plan->out, ".lock", err);
    if (code)
        return code;
    s->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (s->lock < 0)
        return opc_fail_errno(err, errno, "cannot open %s", path);
    if (flock(s->lock, LOCK_EX | LOCK_NB) == 0)
        return OPC_OK;
    const int why = errno;
    close(s->lock);
    s->lock = -1; /* nothing here is ours */
    if (why == EWOULDBLOCK)
        return opc_fail(
            err, OPC_EUSER,
            "another sweep is at work in %s; wait for its end, or look on with 'status'",
            s->plan->out);
    return opc_fail_errno(err, why, "cannot lock %s", s->plan->out);
}

/* ---- before anything starts ------------------------------------------------------------------ */

static int look_at_all(struct state *s, struct opc_err *err)
{
    int foreign = 0, first = 0, others = 0, other = 0;
    char path[OPC_PATH];
    for (int i = 0; i < s->sweep->tasks; i++) {
        struct job *j = &s->job[i];
        const struct opc_task *t = &s->sweep->task[i];
        int code = opc_schedule_path(s->plan->out, t, "", path, err);
        if (!code && strlen(path) > LONGEST_DIR)
            code = opc_fail(err, OPC_EUSER,
                            "%.100s... is longer than %d bytes; choose a shorter "
                            "--out",
                            path, LONGEST_DIR);
        if (code)
            return code;
        opc_schedule_look(s->plan->out, t, &j->look);
        j->seconds = opc_look_seconds(path, &j->epochs);
        j->stage = j->look.state == OPC_STATE_DONE       ? DONE
                   : j->look.state == OPC_STATE_RUNNING  ? HELD
                   : j->look.state == OPC_STATE_DIVERGED ? FAILED
                                                         : WAITS;
        if (j->stage == FAILED)
            j->status = DIVERGED;
        if (j->look.state == OPC_STATE_FOREIGN && foreign++ == 0)
            first = i;
        if (*j->look.version && strcmp(j->look.version, OPC_VERSION) != 0 && others++ == 0)
            other = i;
    }
    if (others)
        opc_log(OPC_WARN, "%s/%s%s was made by opc %s, this is opc %s; it counts as it is",
                s->plan->out, s->sweep->task[other].name, others > 1 ? " (and others)" : "",
                s->job[other].look.version, OPC_VERSION);
    if (!foreign)
        return OPC_OK;
    char more[64] = "";
    if (foreign > 1)
        snprintf(more, sizeof more, " (%d more are foreign, too)", foreign - 1);
    return opc_fail(err, OPC_EUSER,
                    "%s/%s is foreign: %s%s; nothing was started; choose another --out, or move it "
                    "away",
                    s->plan->out, s->sweep->task[first].name, s->job[first].look.why, more);
}

static int count(const struct state *s, enum stage stage)
{
    int n = 0;
    for (int i = 0; i < s->sweep->tasks; i++)
        n += s->job[i].stage == stage;
    return n;
}

/* ---- how long it will take ------------------------------------------------------------------- */

static double work_of(const struct opc_task *t) /* of an epoch; as good as we know beforehand */
{
    return t->set.train.steps_per_epoch;
}

/* Seconds per unit of work: of this group's runs if there are any, or else of all. */
static double rate_of(const struct state *s, int group)
{
    double seconds[2] = {0}, work[2] = {0};
    for (int i = 0; i < s->sweep->tasks; i++) {
        const struct opc_task *t = &s->sweep->task[i];
        const int max = t->group == group ? 1 : 0;
        for (int own = 0; own <= max; own++) {
            seconds[own] += s->job[i].seconds;
            work[own] += s->job[i].epochs * work_of(t);
        }
    }
    const int own = work[1] > 0;
    return work[own] > 0 ? seconds[own] / work[own] : (double)NAN;
}

static void refresh(struct state *s)
{
    double all = 0, left = 0, longest = 0, rate = 0;
    bool known = true;
    struct opc_tally *t = &s->tally;
    for (int i = 0; i < s->sweep->tasks; i++) {
        char path[OPC_PATH];
        if ((s->job[i].stage == RUNS || s->job[i].stage == HELD) &&
            !opc_schedule_path(s->plan->out, &s->sweep->task[i], "", path, NULL))
            s->job[i].seconds = opc_look_seconds(path, &s->job[i].epochs);
    }
    for (int i = 0; i < s->sweep->tasks; i++) {
        const struct opc_task *task = &s->sweep->task[i];
        const struct job *j = &s->job[i];
        if (i == 0 || task->group != task[-1].group) /* else as before: there may be thousands */
            rate = rate_of(s, task->group);
        known = known && !isnan(rate);
        rate = isnan(rate) ? 1 : rate;
        const double one = rate * work_of(task) * task->set.train.epochs;
        const double mine = j->stage == DONE || j->stage == FAILED
                                ? 0
                                : fmax(0, one - rate * work_of(task) * j->epochs);
        all += one;
        left += mine;
        longest = fmax(longest, mine);
    }
    const int open = count(s, WAITS) + count(s, RUNS) + count(s, HELD);
    const int at_once = open < s->jobs ? open : s->jobs;
    t->share = all > 0 ? 1 - left / all : 0;
    t->left = known ? fmax(longest, left / (at_once > 0 ? at_once : 1)) : (double)NAN;
}

static void tell(struct state *s, bool now)
{
    struct opc_tally *t = &s->tally;
    const double time = opc_now();
    if (!now && time - s->reported < 0.2)
        return;
    s->reported = time;
    if (now || time - s->refreshed >= 0.5) {
        refresh(s);
        s->refreshed = time;
    }
    t->tasks = s->sweep->tasks;
    t->done = count(s, DONE);
    t->failed = count(s, FAILED);
    t->running = count(s, RUNS) + count(s, HELD);
    t->waiting = count(s, WAITS);
    if (s->plan->progress)
        s->plan->progress(s->plan->ctx, t);
}

/* "3 of 8 done, 1 h 03 min left" */
static const char *so_far(struct state *s, char out[96])
{
    char left[OPC_PRINTED];
    refresh(s);
    const int done = count(s, DONE);
    if (done == s->sweep->tasks || !(s->tally.left >= 0.1))
        snprintf(out, 96, "%d of %d done", done, s->sweep->tasks);
    else
        snprintf(out, 96, "%d of %d done, %s left", done, s->sweep->tasks,
                 opc_print_duration(s->tally.left, left));
    return out;
}

/* ---- one task -------------------------------------------------------------------------------- */

static int queue_path(const struct state *s, const struct opc_task *t, char path[OPC_PATH],
                      struct opc_err *err)
{
    char folder[OPC_PATH];
    const int code = opc_path_join(folder, s->plan->out, ".queue", err);
    return code ? code : opc_schedule_path(folder, t, ".yaml", path, err);
}

static int write_settings(const struct state *s, const struct opc_task *t, char path[OPC_PATH],
                          struct opc_err *err)
{
    struct opc_text text = {0};
    char folder[OPC_PATH];
    opc_values_print(&t->set, &text);
    int code = opc_text_check(&text, err);
    if (!code)
        code = queue_path(s, t, path, err);
    if (!code)
        code = opc_path_parent(folder, path, err);
    if (!code)
        code = opc_make_directories(folder, err);
    if (!code)
        code = opc_file_write(path, opc_text_get(&text), text.used, err);
    opc_text_free(&text);
    return code;
}

static int start(struct state *s, int i, struct opc_err *err)
{
    struct job *j = &s->job[i];
    const struct opc_task *t = &s->sweep->task[i];
    char dir[OPC_PATH], log[OPC_PATH], settings[OPC_PATH], threads[16], parent[16];
    snprintf(threads, sizeof threads, "%d", s->threads);
    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    int code = opc_schedule_path(s->plan->out, t, "", dir, err);
    if (!code)
        code = opc_schedule_path(s->plan->out, t, ".log", log, err);
    if (!code && j->look.shorter)
        code = opc_look_raise(dir, &t->set, err);
    if (!code && !j->look.begun)
        code = write_settings(s, t, settings, err);
    if (code)
        return code;
    char *const train[] = {"train",     settings, "--out",    dir,    "--quiet",
                           "--threads", threads,  "--parent", parent, NULL};
    char *const resume[] = {"resume", dir,        "--quiet", "--threads",
                            threads,  "--parent", parent,    NULL};
    const struct opc_job job = {j->look.begun ? resume : train, log};
    code = s->launcher->type->submit(s->launcher, &job, &j->id, err);
    if (code)
        return code;
    j->stage = RUNS;
    if (j->look.begun)
        opc_log(OPC_INFO, "going on with %s after epoch %d of %d", t->name, j->look.epoch,
                t->set.train.epochs);
    else
        opc_log(OPC_INFO, "started %s", t->name);
    return OPC_OK;
}

static void succeed(struct state *s, int i)
{
    char path[OPC_PATH], far[96], value[OPC_PRINTED];
    struct job *j = &s->job[i];
    const struct opc_task *t = &s->sweep->task[i];
    j->stage = DONE;
    if (!queue_path(s, t, path, NULL))
        unlink(path);
    snprintf(value, sizeof value, "%.4g", j->look.eval_return);
    opc_log(OPC_INFO, "done with %s: return %s (%s)", t->name,
            isnan(j->look.eval_return) ? "-" : value, so_far(s, far));
}

static void give_up(struct state *s, int i)
{
    struct job *j = &s->job[i];
    const char *name = s->sweep->task[i].name;
    char log[OPC_PATH] = "";
    j->stage = FAILED;
    if (!*j->look.why && !opc_schedule_path(s->plan->out, &s->sweep->task[i], ".log", log, NULL))
        last_words(log, j->look.why, sizeof j->look.why);
    opc_log(OPC_WARN, "%s failed with exit status %d (%s/%s.log)%s%s", name, j->status,
            s->plan->out, name, *j->look.why ? ": " : "", j->look.why);
}

/* A job has ended, or the process that held its directory. */
static void settle(struct state *s, int i, bool ours)
{
    struct job *j = &s->job[i];
    char path[OPC_PATH];
    opc_schedule_look(s->plan->out, &s->sweep->task[i], &j->look);
    if (!opc_schedule_path(s->plan->out, &s->sweep->task[i], "", path, NULL))
        j->seconds = opc_look_seconds(path, &j->epochs);
    if (j->look.state == OPC_STATE_DIVERGED)
        j->status = DIVERGED;
    const int retries = j->status == REFUSED ? 1 : RETRIES;
    const bool for_good = j->status == DIVERGED || j->status == DAMAGED || j->status == ENVIRONMENT;
    if (j->look.state == OPC_STATE_DONE)
        succeed(s, i);
    else if (j->look.state == OPC_STATE_RUNNING)
        j->stage = HELD;
    else if (j->look.state == OPC_STATE_FOREIGN || for_good ||
             (ours && s->stops == 0 && j->retries >= retries))
        give_up(s, i);
    else if (!ours || s->stops > 0)
        j->stage = WAITS;
    else {
        j->retries++;
        j->stage = WAITS;
        opc_log(OPC_WARN, "%s ended with exit status %d; it is tried again (%d of %d)",
                s->sweep->task[i].name, j->status, j->retries, retries);
    }
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void stop(struct state *s, int stops)
{
    if (stops <= s->stops)
        return;
    s->stops = stops;
    for (int i = 0; i < s->sweep->tasks; i++)
        if (s->job[i].stage == RUNS)
            s->launcher->type->cancel(s->launcher, s->job[i].id, stops > 1);
}

static int start_more(struct state *s, struct opc_err *err)
{
    int busy = count(s, RUNS) + count(s, HELD), code = OPC_OK;
    for (int i = 0; i < s->sweep->tasks && busy < s->jobs && !s->stops && !code; i++)
        if (s->job[i].stage == WAITS) {
            code = start(s, i, err);
            busy++;
        }
    return code;
}

static void look_after(struct state *s, bool locks)
{
    char path[OPC_PATH];
    for (int i = 0; i < s->sweep->tasks; i++) {
        struct job *j = &s->job[i];
        if (j->stage == RUNS && s->launcher->type->poll(s->launcher, j->id, &j->status))
            settle(s, i, true);
        else if (j->stage == HELD && locks &&
                 !opc_schedule_path(s->plan->out, &s->sweep->task[i], "", path, NULL) &&
                 !opc_rundir_is_locked(path))
            settle(s, i, false);
    }
}

static int drive(struct state *s, struct opc_err *err)
{
    double locks = opc_now();
    int code = OPC_OK;
    for (;;) {
        stop(s, s->plan->stops ? s->plan->stops(s->plan->ctx) : 0);
        const double now = opc_now();
        look_after(s, now >= locks);
        if (now >= locks)
            locks = now + 0.3;
        if (!code && (code = start_more(s, err)))
            stop(s, 1); /* a full disk, say: end in order */
        const int open = count(s, RUNS) + (s->stops ? 0 : count(s, WAITS) + count(s, HELD));
        tell(s, open == 0);
        if (open == 0)
            return code;
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}

static int sum_up(struct state *s, struct opc_err *err)
{
    struct opc_text names = {0};
    int n = 0;
    for (int i = 0; i < s->sweep->tasks; i++)
        if (s->job[i].stage == FAILED && n++ < 4)
            opc_text_addf(&names, "%s%.60s (exit status %d)", n == 1 ? "" : ", ",
                          s->sweep->task[i].name, s->job[i].status);
    if (n > 4)
        opc_text_addf(&names, " and %d more", n - 4);
    int code = OPC_OK;
    if (s->stops)
        code = opc_fail(err, OPC_ESTOPPED,
                        "stopped by request, %d of %d runs are done; the same command goes on",
                        count(s, DONE), s->sweep->tasks);
    else if (n)
        code = opc_fail(err, OPC_EIO, "%d of %d runs failed: %s; their logs are in %s", n,
                        s->sweep->tasks, opc_text_get(&names), s->plan->out);
    opc_text_free(&names);
    return code;
}

static void release(struct state *s)
{
    char path[OPC_PATH];
    if (s->launcher)
        s->launcher->type->close(s->launcher);
    if (s->lock >= 0) {
        if (!opc_path_join(path, s->plan->out, ".queue", NULL))
            rmdir(path); /* if nothing waits in it */
        close(s->lock);
    }
    opc_free(s->job);
}

int opc_schedule_run(const struct opc_sweep *sweep, const struct opc_schedule *plan,
                     struct opc_tally *out, struct opc_err *err)
{
    struct state s = {.sweep = sweep, .plan = plan, .lock = -1};
    s.job = opc_alloc((size_t)sweep->tasks, sizeof *s.job);
    int code = s.job ? lock_out(&s, err)
                     : opc_fail(err, OPC_ENOMEM, "not enough memory for %d tasks", sweep->tasks);
    if (!code)
        code = look_at_all(&s, err);
    if (!code) {
        const int processors = opc_processors(), todo = count(&s, WAITS) + count(&s, HELD);
        s.jobs = plan->jobs ? plan->jobs : processors;
        if (s.jobs > todo)
            s.jobs = todo ? todo : 1;
        for (int i = 0; i < s.sweep->tasks && s.jobs > 1; i++)
            if (opc_env_is_machine(s.sweep->task[i].set.env.name))
                s.jobs = 1; /* there is one */
        s.threads = plan->threads ? plan->threads : processors / s.jobs;
        s.threads = s.threads > 0 ? s.threads : 1;
        code = plan->launcher->open(plan->program, s.jobs, &s.launcher, err);
    }
    if (!code) {
        code = drive(&s, err);
        if (!code)
            code = sum_up(&s, err);
        if (out)
            *out = s.tally;
    }
    release(&s);
    return code;
}
