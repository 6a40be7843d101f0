/* SPDX-License-Identifier: MIT */
/* sweep/worklist.h - runs that were handed over to a scheduler, as a file of names.
 *
 * OUT/.slurm/3.runs is the third batch of OUT: a line `pack K`, then a name in each line. Task I of
 * the job does names (I - 1) * K + 1 to I * K. Their settings are in OUT/.queue, or in the
 * directories of those that have begun: the experiment file may be edited while a batch waits. */
#ifndef OPC_SWEEP_WORKLIST_H
#define OPC_SWEEP_WORKLIST_H

#include "base/file.h"
#include "sweep/sweep.h"

struct opc_worklist {
    int pack, n;
    char **name; /* [n] */
};

int opc_worklist_write(const char *path, int pack, int n, const char *const *name,
                       struct opc_err *err);
int opc_worklist_read(const char *path, struct opc_worklist *, struct opc_err *err);
void opc_worklist_free(struct opc_worklist *); /* accepts {0} */

/* The runs of task `index`, from 1, as a sweep; OUT is the directory above the one the list is in.
 */
int opc_worklist_open(const char *path, int index, struct opc_sweep **sweep, char out[OPC_PATH],
                      struct opc_err *err);

#endif
