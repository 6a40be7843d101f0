/* SPDX-License-Identifier: MIT */
/* study/curves/sweep_tables.h - the tables of a merge (merged.csv, runs.csv) without the experiment
 * file they were made with.
 *
 * opc plot and opc compare take a directory that has them like a directory of runs. The tables tell
 * the settings that vary, task and method of each run, and no other setting: opc_sweep_tables_know
 * says which. */
#ifndef OPC_STUDY_SWEEP_TABLES_H
#define OPC_STUDY_SWEEP_TABLES_H

#include "base/file.h"
#include "study/curves/sweep_runs.h"

struct opc_sweep_tables {
    char path[OPC_PATH]; /* of merged.csv */
    /* What the file of the sweep would say of these runs, as far as the tables do; task i has the
     * rows of runs->run[i]. Settings that they do not tell have their defaults. */
    struct opc_sweep *sweep;
    struct opc_sweep_runs *runs;
    bool *method; /* [sweep->tasks] do the tables tell the method? */
};

bool opc_sweep_tables_are(const char *dir); /* is there a merged.csv? */
/* Does the runs.csv beside it have the identity of each run's settings? */
bool opc_sweep_tables_have_identities(const char *dir);
/* OPC_EUSER: the tables do not name the task, or a setting or value is not one of this version. */
int opc_sweep_tables_open(const char *dir, struct opc_sweep_tables *out, struct opc_err *err);
void opc_sweep_tables_close(struct opc_sweep_tables *); /* accepts one that is all zeros */

/* Do the tables tell this setting ("section.name") of task i? */
bool opc_sweep_tables_know(const struct opc_sweep_tables *, int i, const char *key);
/* The column of that name. OPC_EUSER: there is none; the message names those there are. */
int opc_sweep_tables_find(const struct opc_sweep_tables *, int i, const char *name, int *column,
                          struct opc_err *err);

#endif
