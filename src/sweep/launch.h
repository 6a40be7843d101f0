/* SPDX-License-Identifier: MIT */
/* sweep/launch.h - where the jobs of a sweep run: one launcher for each way of starting them.
 *
 * A launcher only starts, polls and stops. The result of a job is read from its directory, also by
 * programs that did not start it. */
#ifndef OPC_SWEEP_LAUNCH_H
#define OPC_SWEEP_LAUNCH_H

#include "opc/err.h"

#include <stdbool.h>

struct opc_launcher { /* first member of every launcher */
    const struct opc_launcher_type *type;
};

struct opc_job {
    char *const *argv; /* arguments after the program's name; NULL at the end */
    const char *log;   /* file to which its output is appended */
};

struct opc_launcher_type {
    const char *name, *help;
    /* program: file to start; NULL: the running program. At most `jobs` run at a time. */
    int (*open)(const char *program, int jobs, struct opc_launcher **out, struct opc_err *err);
    /* *id is a number below `jobs`, and names the job until poll has reported its end. */
    int (*submit)(struct opc_launcher *, const struct opc_job *, int *id, struct opc_err *err);
    /* Has it ended? Then *status is the exit status, or 128 + the signal that ended it. */
    bool (*poll)(struct opc_launcher *, int id, int *status);
    /* Asks it to stop after saving itself, or ends it at once; poll reports when it has ended. */
    void (*cancel)(struct opc_launcher *, int id, bool at_once);
    void (*close)(struct opc_launcher *); /* ends at once the jobs that still run */
};

extern const struct opc_launcher_type *const opc_launchers[]; /* NULL at the end */
/* NULL, with the reason in err, if there is none of that name. */
const struct opc_launcher_type *opc_launcher_find(const char *name, struct opc_err *err);

#endif
