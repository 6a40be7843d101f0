/* SPDX-License-Identifier: MIT */
/* sweep/schedule_private.h - what the files of the scheduler share: prepare.c (before anything is
 * started), schedule.c (runs as child processes), handover.c (runs that another scheduler takes),
 * estimate.c (how far it is). */
#ifndef OPC_SWEEP_SCHEDULE_PRIVATE_H
#define OPC_SWEEP_SCHEDULE_PRIVATE_H

#include "sweep/claim.h"
#include "sweep/schedule.h"

/* Of a task: WAITS -> RUNS -> DONE, FAILED, or back to WAITS for another attempt. HELD: another
 * process works on it, or another scheduler has it. */
enum stage { WAITS, RUNS, HELD, DONE, FAILED };

/* Exit status (opc_exit_status) of a run that would diverge again. */
enum { OPC_STATUS_DIVERGED = 4 };

struct job {
    enum stage stage;
    struct opc_look look; /* its directory when it was last looked at */
    int id, retries;      /* the launcher's id while it runs; attempts after the first */
    int status;           /* exit status of its last end */
    double seconds;       /* that its complete epochs took, ... */
    int epochs;           /* ... which are this many */
    bool claimed;         /* HELD by somebody's claim, not by a lock of its directory */
};

struct scheduler {
    const struct opc_sweep *sweep;
    const struct opc_schedule *plan;
    struct opc_launcher *launcher;
    struct opc_claims *claims;  /* NULL: the sweep is alone in OUT */
    struct job *job;            /* [tasks] */
    int jobs, threads;          /* jobs at a time, threads of each */
    int lock;                   /* file descriptor of OUT/.lock; -1: not ours */
    int stops;                  /* requests to stop that were passed on to the jobs */
    double reported, refreshed; /* by opc_now: last report, last estimate */
    struct opc_tally tally;
};

/* ---- prepare.c ------------------------------------------------------------------------------- */

/* Locks OUT. Alone: no other sweep may be there; otherwise only such as are not alone. */
int opc_schedule_lock(struct scheduler *, bool alone, struct opc_err *err);
/* Looks at every task before any is started: a foreign directory refuses the whole sweep. */
int opc_schedule_look_at_all(struct scheduler *, struct opc_err *err);
/* How many jobs at a time on this machine, and threads of each. */
void opc_schedule_share(struct scheduler *);
/* OUT/.queue/NAME.yaml, and its settings written there. */
int opc_schedule_queue_path(const char *out, const char *name, char path[OPC_PATH],
                            struct opc_err *err);
int opc_schedule_write_settings(const char *out, const struct opc_task *, char path[OPC_PATH],
                                struct opc_err *err);
/* The last line of a log: the message of a job that could not begin. */
void opc_schedule_last_line(const char *path, char *out, size_t size);

/* ---- estimate.c ------------------------------------------------------------------------------ */

int opc_schedule_count(const struct scheduler *, enum stage);
/* Calls the caller's progress function, at most five times a second; `now`: in any case. */
void opc_schedule_report(struct scheduler *, bool now);
/* "3 of 8 done, 1 h 03 min left"; returns out. */
const char *opc_schedule_so_far(struct scheduler *, char out[96]);

/* ---- schedule.c, handover.c ------------------------------------------------------------------ */

/* The sweep's own outcome: stopped, or which of its tasks failed. */
int opc_schedule_outcome(const struct scheduler *, struct opc_err *err);
/* Hands what is missing over to a detached launcher, and waits for it if the plan says so. */
int opc_schedule_hand_over(struct scheduler *, struct opc_err *err);

#endif
