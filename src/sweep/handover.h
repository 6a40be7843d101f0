/* SPDX-License-Identifier: MIT */
/* sweep/handover.h - runs of an OUT that a scheduler outside has: which, in what state, and their
 * end.
 *
 * A detached launcher (launch.h) keeps its files in OUT/.NAME. Directories and queue are joined
 * here, for `opc sweep run`, `status` and `cancel`. */
#ifndef OPC_SWEEP_HANDOVER_H
#define OPC_SWEEP_HANDOVER_H

#include "sweep/launch.h"
#include "sweep/sweep.h"

/* Of each task of a sweep: its place in the queue, job "": it is not in it. */
struct opc_waiting {
    const struct opc_launcher_type *launcher; /* the one that was used in OUT; NULL: none */
    struct opc_queued *of;                    /* [tasks] */
};
/* OPC_EIO: the scheduler does not answer, and nothing is known. */
int opc_waiting_read(const char *out, const struct opc_sweep *, struct opc_waiting *,
                     struct opc_err *err);
void opc_waiting_free(struct opc_waiting *);

/* Ends what is queued or running; *jobs counts the scheduler's jobs. OPC_EUSER: nothing was ever
 * handed over in OUT. */
int opc_handover_cancel(const char *out, int *jobs, struct opc_err *err);

#endif
