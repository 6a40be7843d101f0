/* SPDX-License-Identifier: MIT */
/* web/watch.h - the runs below some directories, kept up to date while they go on.
 *
 * opc serve asks it for what has changed. It only reads: nothing is locked for longer than an
 * instant, nothing is written, no environment is opened, so training never waits for it. Work is
 * cut into slices, between which requests are answered. */
#ifndef OPC_WEB_WATCH_H
#define OPC_WEB_WATCH_H

#include "run/files/summary.h"

#include <stdint.h>
#include <sys/stat.h>

struct opc_watch_run {
    char *dir; /* as the roots were named; NULL never */
    struct opc_summary now;
    uint64_t version; /* of the watch when it changed last */
    bool gone;        /* its directory has disappeared; the number stays taken */
    /* What its files looked like when they were read. */
    struct timespec metrics, status;
    off_t size;
};

struct opc_watch {
    int roots;
    char **root;  /* [roots] */
    int runs;     /* a run's number is its place, for good */
    int capacity; /* of run and order */
    struct opc_watch_run *run;
    int *order;       /* [runs] numbers in the order of their directories' names */
    uint64_t version; /* counts changes, from 1 */
    struct opc_values *defaults;
    /* The pass that is under way looks at run `next`; passes are counted. */
    int next, pass;
    double rest_until, search_at; /* by opc_now; see opc_watch_step */
    double pass_spent;            /* seconds of work in this pass */
};

/* Finds and reads all runs. OPC_EUSER: a root is not a directory; it need not hold a run yet. */
int opc_watch_open(int roots, char *const root[], struct opc_watch **out, struct opc_err *err);
void opc_watch_close(struct opc_watch *); /* NULL is fine */

/* Works for about this many seconds, if it is time for a pass: every two seconds, and less often
 * where a pass takes long, so that it needs at most a twentieth of one processor. Returns the
 * seconds until it has something to do again. */
double opc_watch_step(struct opc_watch *, double seconds);
/* All of a pass at once, and a search for new runs; for tests. */
int opc_watch_pass(struct opc_watch *, struct opc_err *err);

/* The run of that number; NULL: there is none, or it has disappeared. */
const struct opc_watch_run *opc_watch_find(const struct opc_watch *, int number);

#endif
