/* SPDX-License-Identifier: MIT */
/* sweep/launch.h - where the runs of a sweep are started: one launcher for each way of starting
 * them.
 *
 * There are two kinds. An attached launcher starts one program at a time, and this process waits
 * for it (`local`). A detached one hands many runs over to a scheduler of its own, and this process
 * may end (`slurm`). Either only starts, lists and stops: the result of a run is read from its
 * directory, also by programs that did not start it. schedule.c uses the first kind, handover.c the
 * second. */
#ifndef OPC_SWEEP_LAUNCH_H
#define OPC_SWEEP_LAUNCH_H

#include "base/text.h"
#include "opc/err.h"

#include <stdbool.h>

struct opc_launcher { /* first member of every attached launcher that is open */
    const struct opc_launcher_type *type;
};

struct opc_job {
    char *const *argv; /* arguments after the program's name; NULL at the end */
    const char *log;   /* file to which its output is appended */
};

/* What a run may use. An attached launcher takes the number of threads from its arguments. */
struct opc_resources {
    /* As the scheduler writes them; "" or NULL: its default. */
    const char *partition, *time, *memory;
    const char *options; /* more options of the scheduler; "" or NULL: none */
    int threads;         /* of each run, from 1 */
    int pack;            /* runs of one task of a job, one after the other, from 1 */
    int limit;           /* tasks at a time; 0: no limit */
};

/* Many runs that a detached launcher is to take. Task I of the job does the runs (I - 1) * pack + 1
 * to I * pack of `list`, by `opc sweep LIST work --index I` (sweep/worklist.h). */
struct opc_batch {
    const char *out;     /* the directory OUT, from the root */
    const char *program; /* file to start, from the root */
    const char *folder;  /* OUT/.NAME, where the launcher keeps its files */
    const char *list;    /* the file of names in it, FOLDER/NUMBER.runs */
    int number, tasks;   /* of this batch, from 1; of the job */
    const struct opc_resources *resources;
};

/* Tasks that a scheduler has, waiting or running. */
struct opc_queued {
    int number, task; /* of the batch; in it, from 1 */
    char job[48];     /* as the scheduler calls it */
    char state[24];   /* its word: PENDING, RUNNING, ... */
    char reason[64];  /* why it waits; "": not known */
};
struct opc_queue {
    int n;
    struct opc_queued *at; /* [n] from opc_alloc */
};

struct opc_launcher_type {
    const char *name, *help;
    double poll_s; /* seconds between two looks at the jobs */

    /* ---- attached; NULL in a detached launcher ---- */

    /* program: file to start; NULL: the running program. At most `jobs` run at a time. */
    int (*open)(const char *program, int jobs, struct opc_launcher **out, struct opc_err *err);
    /* *id is a number below `jobs`, and names the job until poll has reported its end. */
    int (*submit)(struct opc_launcher *, const struct opc_job *, int *id, struct opc_err *err);
    /* Has it ended? Then *status is the exit status, or 128 + the signal that ended it. */
    bool (*poll)(struct opc_launcher *, int id, int *status);
    /* Asks it to stop after saving itself, or ends it at once; poll reports when it has ended. */
    void (*cancel)(struct opc_launcher *, int id, bool at_once);
    void (*close)(struct opc_launcher *); /* ends at once the jobs that still run */

    /* ---- detached; NULL in an attached launcher ---- */

    /* Submits a batch; `job` gets the scheduler's name of it. A refusal (OPC_EIO) is told in the
     * scheduler's own words, and leaves nothing queued. */
    int (*hand_over)(const struct opc_batch *, struct opc_text *job, struct opc_err *err);
    /* The tasks of the batches in `folder` that wait or run. */
    int (*list)(const char *folder, struct opc_queue *, struct opc_err *err);
    /* Ends those; *jobs is how many jobs there were. */
    int (*cancel_all)(const char *folder, int *jobs, struct opc_err *err);
    /* Called within a job that was stopped before its runs were done: lets the scheduler start it
     * again, unless it is being ended on purpose. */
    int (*requeue)(struct opc_err *err);
};

/* Does it take runs over, so that the command may end before they do? */
static inline bool opc_launcher_is_detached(const struct opc_launcher_type *type)
{
    return type->hand_over != NULL;
}

extern const struct opc_launcher_type *const opc_launchers[]; /* NULL at the end */
/* NULL, with the reason in err, if there is none of that name. */
const struct opc_launcher_type *opc_launcher_find(const char *name, struct opc_err *err);

extern const struct opc_launcher_type opc_launcher_local, opc_launcher_slurm;

#endif
