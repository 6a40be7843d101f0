/* SPDX-License-Identifier: MIT */
/* run/rundir.h - the one reader of run directories (docs/run-directory.md).
 *
 * run/runlog.c, run/meta.c and run/session.c write them. This reads them for a run that is resumed,
 * and for sweeps, plots, probes and tests, which did not start the run. Settings are read by
 * opc_config_of_run (opc/train.h), checkpoints by run/restore.c.
 *
 * A directory may be read at any time, also while a process works on it: files that are replaced
 * are whole, and of tables only the whole lines count. Nothing here changes a directory. */
#ifndef OPC_RUN_RUNDIR_H
#define OPC_RUN_RUNDIR_H

#include "opc/err.h"
#include "opc/train.h"

#include <stdbool.h>

/* Is there a run in dir, or at least the beginning of one: its settings? */
bool opc_rundir_is_run(const char *dir);
/* Is there such a file? True also where it cannot be told: reading it says why. */
bool opc_rundir_has(const char *dir, const char *name);
/* Does a process work on it? False where there is no lock. */
bool opc_rundir_is_locked(const char *dir);
/* A file that no killed start of a run leaves behind, in a directory that holds no run; "": there
 * is none. */
enum { OPC_RUNDIR_FILE = 256 };
int opc_rundir_foreign_file(const char *dir, char name[OPC_RUNDIR_FILE], struct opc_err *err);

/* ---- status.json, result.json and the lock --------------------------------------------------- */

enum opc_rundir_state {
    OPC_RUNDIR_UNKNOWN, /* status.json is not there, or says something else */
    OPC_RUNDIR_RUNNING, /* or was killed: see locked */
    OPC_RUNDIR_DONE,
    OPC_RUNDIR_STOPPED,
    OPC_RUNDIR_DIVERGED,
    OPC_RUNDIR_FAILED,
};

struct opc_rundir_status {
    enum opc_rundir_state state; /* as the run wrote it last */
    char why[400];               /* of stopped, diverged, failed; "": it does not say */
    int epoch;                   /* the last that is whole; 0: none */
    double eval_return;          /* the last one; NaN: none */
    bool locked;                 /* a process works on it */
    bool has_result;             /* result.json is there: the run is complete, ... */
    int result_epochs;           /* ... with this number of epochs; 0: it does not say */
};

/* What cannot be read is unknown, 0, NaN or "". */
void opc_rundir_status(const char *dir, struct opc_rundir_status *out);

/* ---- meta.json ------------------------------------------------------------------------------- */

enum { OPC_RUNDIR_VERSION = 32, OPC_RUNDIR_REVISION = 48 };
struct opc_rundir_meta {
    char version[OPC_RUNDIR_VERSION];   /* of the program that began the run */
    char revision[OPC_RUNDIR_REVISION]; /* its commit, 508bb785afe3, say */
    char engine[256];                   /* MuJoCo 2.3.1, say */
    char model_crc32c[16];              /* of the engine's model */
    char config_crc32c[16];             /* of the settings the run began with */
    int obs, act;                       /* dimensions of states and actions */
};

/* What cannot be read is "" or 0, which is no error; lack of memory is one. */
int opc_rundir_meta(const char *dir, struct opc_rundir_meta *out, struct opc_err *err);

/* ---- metrics.csv and timing.csv -------------------------------------------------------------- */

struct opc_rundir_table {
    char *path;        /* of the file, for messages */
    char *head;        /* its first line as far as it is there: "epoch,env_steps,..." */
    int columns;       /* 0: the first line is not whole, and there are no rows */
    int rows;          /* whole lines after the first */
    const char **name; /* [columns] */
    const char **cell; /* [rows][columns] as written; "" where the line has fewer */
    int *cells;        /* [rows] how many the line has; not `columns`: the line is damaged */
    char *text;        /* what the cells are parts of */
};

/* name: "metrics.csv" or "timing.csv". */
int opc_rundir_table_read(const char *dir, const char *name, struct opc_rundir_table *out,
                          struct opc_err *err);
/* The same of a text from opc_alloc, which it takes in any case; path is for messages. */
int opc_rundir_table_parse(const char *path, char *text, struct opc_rundir_table *out,
                           struct opc_err *err);
void opc_rundir_table_free(struct opc_rundir_table *); /* accepts one that is all zeros */
/* The column of that name. OPC_EUSER, with the name that was probably meant: there is none. */
int opc_rundir_table_find(const struct opc_rundir_table *, const char *name, int *column,
                          struct opc_err *err);
/* NaN: the cell is empty, or no finite number. */
double opc_rundir_table_number(const struct opc_rundir_table *, int row, int column);

/* The place of a name in a first line; -1: it is not there. nearest (NULL: not asked for) is the
 * name that was probably meant, or "". */
enum { OPC_RUNDIR_NAME = 64 };
int opc_rundir_head_find(const char *head, const char *name, char nearest[OPC_RUNDIR_NAME]);

struct opc_rundir_seconds {
    double phase[OPC_PHASES], total; /* of all processes that worked on the run */
    int epochs;                      /* that took this time */
};

/* What timing.csv says; zeros if it cannot be read. */
void opc_rundir_seconds(const char *dir, struct opc_rundir_seconds *out);

#endif
