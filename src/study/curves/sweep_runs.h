/* SPDX-License-Identifier: MIT */
/* study/curves/sweep_runs.h - the runs of a sweep with their rows, wherever those are kept.
 *
 * A run is read from its own directory, or from the tables of an earlier merge, which are all that
 * is left when directories are on another machine or gone. `opc sweep FILE merge` reads
 * everything first and makes its tables afterwards. Scores are always computed from rows,
 * by one function, so that the source of a run does not change a number. */
#ifndef OPC_STUDY_SWEEP_RUNS_H
#define OPC_STUDY_SWEEP_RUNS_H

#include "run/files/rundir.h"
#include "study/exhibit/table.h"
#include "sweep/sweep.h"

/* What a run has come to after a number of real steps. */
struct opc_sweep_measure {
    double env_steps, total_steps; /* of the last evaluation; NaN: none */
    double score;                  /* mean of the last five evaluations; NaN: none */
    double last;                   /* the last evaluation; NaN: none */
    bool reached;                  /* the run has an evaluation at that many steps or later */
};

/* The rows that a run has in metrics.csv or timing.csv. */
struct opc_sweep_rows {
    int rows, columns;
    const char **name;             /* [columns] as in the run's own table */
    const char **cell;             /* [rows][columns] as written */
    struct opc_rundir_table table; /* owns names and cells of rows from the run's own directory */
};
/* The rows of DIR/NAME that are whole. No such file: none. */
int opc_sweep_rows_read(const char *dir, const char *name, struct opc_sweep_rows *out,
                        struct opc_err *err);
void opc_sweep_rows_free(struct opc_sweep_rows *); /* accepts rows that are all zeros */
/* The column of that name; -1: there is none. */
int opc_sweep_rows_find(const struct opc_sweep_rows *, const char *name);
/* NaN: there is no such column, the cell is empty, or it is not a finite number. */
double opc_sweep_rows_number(const struct opc_sweep_rows *, int row, int column);

/* One run: its rows, what is computed from them, and what they do not contain. */
struct opc_sweep_run {
    struct opc_sweep_rows metrics; /* without a row nothing is known about the run */
    struct opc_sweep_rows timing;  /* what its epochs cost; no row: not known */
    bool complete;
    int added; /* index of the added directory it comes from; -1: its own directory */

    /* Computed from its metrics. An evaluation is a row that has env_steps and eval_return. */
    int epochs; /* number of the last epoch; 0: the rows do not say */
    struct opc_sweep_measure end;

    /* Not contained in its metrics. */
    double minutes;                     /* by the clock, over all resumes; NaN: not known */
    char version[OPC_RUNDIR_VERSION];   /* of the program that began it; "": not known */
    char revision[OPC_RUNDIR_REVISION]; /* its commit; "": not known */
};

enum { OPC_SWEEP_ADDED_MAX = 16 };
struct opc_sweep_added { /* an earlier merge */
    char *dir;
    struct opc_sweep_kept {
        struct opc_table *table; /* owns the cells of its runs; NULL: it has no such table */
        const char **name;       /* [columns] those that runs have, without the varied values */
        int columns;
    } merged, timing; /* merged.csv and timing.csv */
};

struct opc_sweep_runs {
    const struct opc_sweep *sweep;
    struct opc_sweep_run *run; /* [sweep->tasks] in their order */
    int added;
    struct opc_sweep_added from[OPC_SWEEP_ADDED_MAX];
};

/* dir[i] is the directory of run i, or NULL: it has none. The sweep must outlive *out. */
int opc_sweep_runs_read(const struct opc_sweep *, char *const *dir, const bool *complete,
                        struct opc_sweep_runs **out, struct opc_err *err);
/* How the runs of an earlier merge are recognized. */
enum opc_sweep_match {
    OPC_MATCH_ANY,      /* by their settings; without identities by their values. None: OPC_EUSER */
    OPC_MATCH_SETTINGS, /* by their settings; there may be none of this sweep */
    OPC_MATCH_VALUES,   /* by their values: the sweep was made from these tables */
};
/* Takes runs over from an earlier merge, DIR/merged.csv, runs.csv and timing.csv (which may be
 * missing): those that are complete there and not here, and those without a row here. A run that is
 * complete in both stays as it is; a warning names it if its evaluations differ. Runs that are not
 * of this sweep are left out if the tables have identities; otherwise they are OPC_EUSER. After a
 * failure the runs can only be freed. */
int opc_sweep_runs_add(struct opc_sweep_runs *, const char *dir, enum opc_sweep_match,
                       struct opc_err *err);
/* The identity of settings in the column `settings` of runs.csv. The number of epochs is part of it
 * only where a run cannot be trained on (opc_config_may_go_on). */
enum { OPC_SWEEP_IDENTITY = 11 };
void opc_sweep_identity(const struct opc_values *, char out[OPC_SWEEP_IDENTITY]);
void opc_sweep_runs_free(struct opc_sweep_runs *); /* NULL is fine */
/* What a run had come to after `at` real steps (env_steps), from its rows up to there. */
int opc_sweep_run_measure_at(const struct opc_sweep_run *, double at, struct opc_sweep_measure *out,
                             struct opc_err *err);

/* merged.csv: every row of every run, the varied values and `complete` before the columns of
 * metrics.csv. A run that lacks a column has empty cells there. */
int opc_sweep_runs_merged(const struct opc_sweep_runs *, struct opc_table **out,
                          struct opc_err *err);
/* timing.csv: the same of the timing.csv of every run that is in merged.csv. No rows: no run has
 * one. */
int opc_sweep_runs_timing(const struct opc_sweep_runs *, struct opc_table **out,
                          struct opc_err *err);
/* runs.csv: a row for each run that has rows, with its score and its origin. */
int opc_sweep_runs_list(const struct opc_sweep_runs *, struct opc_table **out, struct opc_err *err);

#endif
