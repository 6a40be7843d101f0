/* SPDX-License-Identifier: MIT */
/* The launcher `local`: child processes on this machine. schedule.c is the only caller.
 *
 * Invariant: it knows nothing of runs. It hands out ids of at most `jobs` slots, and an id is free
 * again after poll has reported the job's end. */
#include "base/process/child.h"
#include "opc/mem.h"
#include "sweep/launch.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_WORDS = 32 }; /* of a command line */

struct local {
    struct opc_launcher base;
    const char *program;
    int jobs;
    struct opc_child *child; /* [jobs] by id */
    bool *used;              /* [jobs] a job has this id */
};

static void local_close(struct opc_launcher *launcher)
{
    struct local *local = (struct local *)launcher;
    /* accepts a launcher of which only a part could be allocated */
    for (int i = 0; i < local->jobs && local->used; i++)
        if (local->used[i])
            opc_child_end(&local->child[i], 0);
    opc_free(local->child);
    opc_free(local->used);
    opc_free(local);
}

static int local_open(const char *program, int jobs, struct opc_launcher **out,
                      struct opc_err *err);

static int local_submit(struct opc_launcher *launcher, const struct opc_job *job, int *id,
                        struct opc_err *err)
{
    struct local *local = (struct local *)launcher;
    char *argv[MAX_WORDS + 4] = {"opc"}, parent[16];
    int slot = 0, n = 0;
    /* the first free slot; the scheduler never starts more jobs than there are */
    while (slot < local->jobs && local->used[slot])
        slot++;
    while (job->argv[n])
        n++;
    if (slot == local->jobs || n > MAX_WORDS)
        return opc_fail(err, OPC_EBUG, "job of %d words, %d of %d places taken", n, slot,
                        local->jobs);
    memcpy(argv + 1, job->argv, (size_t)n * sizeof *argv);
    /* A job ends when this process is gone, so that a sweep that was killed leaves nothing running
     * for long. Only a child can see that. */
    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    argv[n + 1] = "--parent";
    argv[n + 2] = parent;
    /* In a process group of its own: Ctrl-C in the terminal reaches the sweep only, which then
     * stops its jobs itself, once. */
    const struct opc_child_plan plan = {
        .output = job->log, .program = local->program, .apart = true};
    const int code = opc_child_start(argv, &plan, &local->child[slot], err);
    local->used[slot] = !code;
    *id = slot;
    return code;
}

static bool local_poll(struct opc_launcher *launcher, int id, int *status)
{
    struct local *local = (struct local *)launcher;
    if (!opc_child_poll(&local->child[id]))
        return false;
    *status = opc_child_wait(&local->child[id]);
    local->used[id] = false;
    return true;
}

static void local_cancel(struct opc_launcher *launcher, int id, bool at_once)
{
    struct local *local = (struct local *)launcher;
    /* SIGINT lets a run save its checkpoint, as Ctrl-C does */
    opc_child_kill(&local->child[id], at_once ? SIGKILL : SIGINT);
}

const struct opc_launcher_type opc_launcher_local = {
    .name = "local",
    .help = "child processes on this machine",
    .poll_s = 0.02,
    .open = local_open,
    .submit = local_submit,
    .poll = local_poll,
    .cancel = local_cancel,
    .close = local_close,
};

static int local_open(const char *program, int jobs, struct opc_launcher **out, struct opc_err *err)
{
    struct local *local = opc_alloc(1, sizeof *local);
    if (local) {
        local->base.type = &opc_launcher_local;
        /* The kernel follows this link to the file we were started from, even if that has been
         * replaced since: all jobs of a sweep are of one version. */
        local->program = program ? program : "/proc/self/exe";
        local->jobs = jobs;
        local->child = opc_alloc((size_t)jobs, sizeof *local->child);
        local->used = opc_alloc((size_t)jobs, sizeof *local->used);
    }
    if (!local || !local->child || !local->used) {
        if (local)
            local_close(&local->base);
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %d jobs", jobs);
    }
    *out = &local->base;
    return OPC_OK;
}
