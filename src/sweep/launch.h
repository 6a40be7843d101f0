/* SPDX-License-Identifier: MIT */
/* sweep/launch.h - where the programs of a sweep run: one launcher per way of starting them.
 *
 * A launcher only starts, looks and stops. What a job left behind is read from its directory, so
 * the one who asks need not have started it. */
#ifndef OPC_STUDY_LAUNCH_H
#define OPC_STUDY_LAUNCH_H

#include "opc/err.h"

#include <stdbool.h>

struct opc_launcher { /* first member of every launcher */
    const struct opc_launcher_type *type;
};

struct opc_job {
    char *const *argv; /* behind the program's name; NULL at the end */
    const char *log;   /* gets what it prints, appended */
};

struct opc_launcher_type {
    const char *name, *help;
    /* program: what is started; NULL: the one that is running. At most `jobs` at a time. */
    int (*open)(const char *program, int jobs, struct opc_launcher **out, struct opc_err *err);
    /* *id is a number below `jobs` until poll has told the job's end. */
    int (*submit)(struct opc_launcher *, const struct opc_job *, int *id, struct opc_err *err);
    /* Has it ended? Then with the exit status, or 128 + the signal that ended it. */
    bool (*poll)(struct opc_launcher *, int id, int *status);
    /* Asks it to stop in a way it can go on from, or ends it at once; poll tells when it has. */
    void (*cancel)(struct opc_launcher *, int id, bool at_once);
    void (*close)(struct opc_launcher *); /* ends at once what still runs */
};

extern const struct opc_launcher_type *const opc_launchers[]; /* NULL at the end */
/* NULL, with the reason in err, if there is none of that name. */
const struct opc_launcher_type *opc_launcher_find(const char *name, struct opc_err *err);

#endif
