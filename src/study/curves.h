/* SPDX-License-Identifier: MIT */
/* study/curves.h - learning curves out of run directories.
 *
 * Runs that differ in nothing but their seed (and how long they have been going) form a group; a
 * group is a line in a figure, and groups on the same task share a panel. */
#ifndef OPC_STUDY_CURVES_H
#define OPC_STUDY_CURVES_H

#include "opc/err.h"

#include <stdbool.h>

struct opc_curve_run {
    char *dir;
    char *env;  /* env.name */
    char *rest; /* all other settings but train.seed and train.epochs, a line each */
    int seed;
    int n;
    double *x, *y; /* [n] */
    int group;
};

struct opc_curve_group {
    int panel;       /* which task */
    char label[128]; /* what tells it from the others of all panels */
    int runs;
    /* where at least half of its runs have got to: */
    int n;
    double *x, *low, *middle, *high;      /* [n] quartiles and median over the runs */
    double end_low, end_middle, end_high; /* of the runs' means over their last five values */
};

struct opc_curves {
    struct opc_curve_run *run;
    struct opc_curve_group *group;
    char (*panel)[256]; /* names of tasks */
    int runs, groups, panels;
};

/* `of` and `over` are columns of metrics.csv; rows without a value are left out. A directory that
 * is no run stands for the runs in it. smooth: see opc_smooth. */
int opc_curves_read(int n, char *const dir[], const char *of, const char *over, int smooth,
                    struct opc_curves **out, struct opc_err *err);
void opc_curves_free(struct opc_curves *); /* NULL is fine */

#endif
