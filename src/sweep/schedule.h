/* SPDX-License-Identifier: MIT */
/* sweep/schedule.h - runs the tasks of a sweep that are not done, and reports how far it is.
 *
 * All state is in the directory OUT, where a task is OUT/NAME and its output OUT/NAME.log: a sweep
 * that was killed and is started again sees what a process that looks on sees. A task is done if
 * and only if its result.json exists, and a task that is done is never run again. */
#ifndef OPC_SWEEP_SCHEDULE_H
#define OPC_SWEEP_SCHEDULE_H

#include "base/file.h"
#include "sweep/launch.h"
#include "sweep/look.h"
#include "sweep/sweep.h"

struct opc_tally {
    int tasks, done, running, waiting, failed;
    double share; /* of the work that is done, 0 .. 1 */
    double left;  /* estimate of the seconds to go; NaN: not known yet */
};

struct opc_schedule {
    const char *out; /* the directory OUT, which is created */
    int jobs;        /* at a time; 0: one per processor */
    int threads;     /* of each job; 0: the processors are shared out */
    const struct opc_launcher_type *launcher;
    const char *program; /* NULL: the running program */
    /* Other processes, here and elsewhere, may work in OUT at the same time. One that gives no sign
     * of life for claim_timeout seconds is taken for dead; 0: 60 s. */
    bool shared;
    double claim_timeout;
    /* Of a detached launcher; its `threads` and `limit` are filled in from `threads` and `jobs`. */
    struct opc_resources resources;
    bool wait; /* of a detached launcher: return when the runs have ended, not when it has them */
    /* Called a few times a second; may be NULL. */
    void (*progress)(void *ctx, const struct opc_tally *);
    /* How often the user asked to stop: once lets the jobs save themselves, twice ends them. May be
     * NULL. */
    int (*stops)(void *ctx);
    void *ctx;
};

/* Returns when every task is done or has failed; no job is running then. OPC_ESTOPPED: a stop was
 * asked for; OPC_EIO: tasks failed, and the message names them; OPC_EUSER: a directory is foreign,
 * and nothing has been started. out may be NULL.
 *
 * With a detached launcher (launch.h) and without `wait` it returns as soon as what is neither done
 * nor queued has been handed over; out->running says how many runs are on their way. A stop ends
 * the waiting, not the runs. */
int opc_schedule_run(const struct opc_sweep *, const struct opc_schedule *, struct opc_tally *out,
                     struct opc_err *err);

/* State of a task. Unlike opc_look it knows tasks that failed before they had a directory. */
void opc_schedule_look(const char *out, const struct opc_task *, struct opc_look *);
/* OUT/NAME, and with `end` OUT/NAME.log */
int opc_schedule_path(const char *out, const struct opc_task *, const char *end,
                      char path[OPC_PATH], struct opc_err *err);

#endif
