/* SPDX-License-Identifier: MIT */
/* sweep/schedule.h - runs what is missing of a sweep, and says how far it is.
 *
 * Everything is read from the directory OUT, where a task is OUT/NAME and its output OUT/NAME.log:
 * whoever was killed and starts again, or looks on, sees the same. A task is done if and only if
 * its result.json is there, and what is done is never run again. */
#ifndef OPC_STUDY_SCHEDULE_H
#define OPC_STUDY_SCHEDULE_H

#include "base/file.h"
#include "sweep/launch.h"
#include "sweep/look.h"
#include "sweep/sweep.h"

struct opc_tally {
    int tasks, done, running, waiting, failed;
    double share; /* of the work that is done, 0 .. 1 */
    double left;  /* seconds it may still take; NaN: not known yet */
};

struct opc_schedule {
    const char *out; /* is made */
    int jobs;        /* at a time; 0: one per processor */
    int threads;     /* of each; 0: what the processors allow */
    const struct opc_launcher_type *launcher;
    const char *program; /* NULL: the one that is running */
    /* A few times a second; may be NULL. */
    void (*progress)(void *ctx, const struct opc_tally *);
    /* How often a stop was asked for: once lets the jobs save themselves, twice ends them. May be
     * NULL. */
    int (*stops)(void *ctx);
    void *ctx;
};

/* Returns when every task is done or has failed; what was started is no longer running then.
 * OPC_ESTOPPED after a stop; OPC_EIO, naming them, if tasks failed; OPC_EUSER, and nothing has been
 * started, if a directory holds something foreign. out may be NULL. */
int opc_schedule_run(const struct opc_sweep *, const struct opc_schedule *, struct opc_tally *out,
                     struct opc_err *err);

/* How a task is; also that it failed before it could begin. */
void opc_schedule_look(const char *out, const struct opc_task *, struct opc_look *);
/* OUT/NAME, and with `end` OUT/NAME.log */
int opc_schedule_path(const char *out, const struct opc_task *, const char *end,
                      char path[OPC_PATH], struct opc_err *err);

#endif
