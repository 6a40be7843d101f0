/* SPDX-License-Identifier: MIT */
/* study/curves/compare.h - two sets of runs next to each other: which settings differ, and by how
 * much one ends above the other. Used by opc compare; opc serve shows the settings that differ.
 *
 * Only files of run directories are read (opc/train.h, study/curves/curves.h); no environment is
 * opened. */
#ifndef OPC_STUDY_COMPARE_H
#define OPC_STUDY_COMPARE_H

#include "num/stats.h"
#include "study/curves/curves.h"
#include "study/exhibit/table.h"

/* One side of a comparison: directories of runs, or of the tables of a merge. */
struct opc_compare_runs {
    const char *name; /* for people */
    int n;
    char *const *dir; /* [n] */
};

/* The settings that differ between the sides, but train.seed: a table "setting,a,b". A setting
 * differs if the values that it has in the runs of one side are not those of the other; a cell has
 * all of them, in the order of the runs. One that the tables of a side do not tell is left out. */
int opc_compare_settings(const struct opc_compare_runs side[2], struct opc_table **out,
                         struct opc_err *err);

/* A task that both sides, or one of them, have runs of. */
struct opc_compare_task {
    const char *name;                /* env.name */
    int n[2];                        /* runs with a score */
    int short_of[2];                 /* runs left out, because they have not made `at` steps */
    double *score[2];                /* [n] a run's mean of the last five values */
    struct opc_interval iqm[2];      /* NaN without a run */
    double steps[2];                 /* the largest x of its runs */
    struct opc_interval improvement; /* P(A > B) over pairs of runs; NaN where a side has none */
};

struct opc_compare {
    int tasks; /* in the order of their first run */
    struct opc_compare_task *task;
    struct opc_interval improvement; /* mean over the tasks that both sides have */
    /* Both sides for opc_curves_draw: a panel for each task, a line for each side. */
    struct opc_curves drawn;
    struct opc_curves *curves[2]; /* owns what the others point at */
};

/* of, over: columns of metrics.csv. at > 0: scores are of the values up to that x, and runs that
 * have not reached it are left out. Intervals are bootstrapped with a fixed seed. */
struct opc_compare_plan {
    const char *of, *over;
    double at;
    int smooth; /* of the curves that are drawn; scores are of raw values */
};
int opc_compare(const struct opc_compare_runs side[2], const struct opc_compare_plan *,
                struct opc_compare **out, struct opc_err *err);
void opc_compare_free(struct opc_compare *); /* NULL is fine */

#endif
