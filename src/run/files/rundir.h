/* SPDX-License-Identifier: MIT */
/* run/files/rundir.h - the one reader of run directories (docs/run-directory.md).
 *
 * run/files/runlog.c, run/meta.c and run/session.c write them. This reads them for a run that is
 * resumed, and for sweeps, plots, probes and tests, which did not start the run. Settings are read
 * by opc_config_of_run (opc/train.h), checkpoints by run/restore.c.
 *
 * A directory may be read at any time, also while a process works on it: files are replaced as a
 * whole, and only complete lines of tables count. Nothing here changes a directory. */
#ifndef OPC_RUN_RUNDIR_H
#define OPC_RUN_RUNDIR_H

#include "opc/err.h"
#include "opc/train.h"

#include <stdbool.h>

/* Is there a run in dir, or at least the beginning of one: its settings? */
bool opc_rundir_is_run(const char *dir);
/* Is there such a file? True also where that cannot be found out: reading it then says why. */
bool opc_rundir_has(const char *dir, const char *name);
/* Does a process work on it? False where there is no lock. */
bool opc_rundir_is_locked(const char *dir);
/* For a directory that holds no run: the name of a file that an interrupted start does not leave
 * there; "": there is no such file. */
enum { OPC_RUNDIR_FILE = 256 };
int opc_rundir_foreign_file(const char *dir, char name[OPC_RUNDIR_FILE], struct opc_err *err);

/* ---- status.json, result.json and the lock --------------------------------------------------- */

enum opc_rundir_state {
    OPC_RUNDIR_UNKNOWN, /* status.json is not there, or says something else */
    OPC_RUNDIR_RUNNING, /* or the process was killed: see locked */
    OPC_RUNDIR_DONE,
    OPC_RUNDIR_STOPPED,
    OPC_RUNDIR_DIVERGED,
    OPC_RUNDIR_FAILED,
};

struct opc_rundir_status {
    enum opc_rundir_state state; /* as the run wrote it last */
    char why[400];               /* reason of stopped, diverged, failed; "": not known */
    int epoch;                   /* complete epochs */
    double eval_return;          /* of the last evaluation; NaN: none yet */
    bool locked;                 /* a process works on it */
    bool has_result;             /* result.json is there: the run is complete, ... */
    int result_epochs;           /* ... with this number of epochs; 0: not known */
    char host[64];               /* computer of the last process; "": not known */
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
    double minutes; /* of a run restored from a table (study/kept.c); NaN: see timing.csv */
};

/* What cannot be read is "" or 0, which is not an error; lack of memory is. */
int opc_rundir_meta(const char *dir, struct opc_rundir_meta *out, struct opc_err *err);

/* ---- metrics.csv and timing.csv -------------------------------------------------------------- */

struct opc_rundir_table {
    char *path;        /* of the file, for messages */
    char *head;        /* its first line as far as it is there: "epoch,env_steps,..." */
    int columns;       /* 0: the first line is not whole, and there are no rows */
    int rows;          /* whole lines after the first */
    const char **name; /* [columns] */
    const char **cell; /* [rows][columns] as written; "" where the line has fewer */
    int *cells;        /* [rows] cells of the line; if not `columns`, the line is damaged */
    char *text;        /* the file; names and cells point into it */
};

/* name: "metrics.csv" or "timing.csv". */
int opc_rundir_table_read(const char *dir, const char *name, struct opc_rundir_table *out,
                          struct opc_err *err);
/* The same of a text from opc_alloc, which it owns from here on, also when it fails; path is for
 * messages. */
int opc_rundir_table_parse(const char *path, char *text, struct opc_rundir_table *out,
                           struct opc_err *err);
void opc_rundir_table_free(struct opc_rundir_table *); /* accepts one that is all zeros */
/* The column of that name. OPC_EUSER: there is none; the message has the name that was probably
 * meant. */
int opc_rundir_table_find(const struct opc_rundir_table *, const char *name, int *column,
                          struct opc_err *err);
/* NaN: the cell is empty, or not a finite number. */
double opc_rundir_table_number(const struct opc_rundir_table *, int row, int column);

/* The column of a name in a first line; -1: it is not there. nearest (may be NULL) is the name that
 * was probably meant, or "". */
enum { OPC_RUNDIR_NAME = 64 };
int opc_rundir_head_find(const char *head, const char *name, char nearest[OPC_RUNDIR_NAME]);

struct opc_rundir_seconds {
    double phase[OPC_PHASES], total; /* of all processes that worked on the run */
    int epochs;                      /* that took this time */
};

/* What timing.csv says; zeros if it cannot be read. */
void opc_rundir_seconds(const char *dir, struct opc_rundir_seconds *out);

#endif
