/* SPDX-License-Identifier: MIT */
/* study/curves/curves.h - learning curves out of run directories.
 *
 * A group of runs is a line in a panel of a figure. Which runs form a group is found out, those
 * that differ in nothing but their seed (and how long they have been going), with a panel for each
 * task; or it is said, by the settings whose values name the panel and the line. */
#ifndef OPC_STUDY_CURVES_H
#define OPC_STUDY_CURVES_H

#include "opc/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct opc_curves_plan {
    const char *of, *over; /* columns of metrics.csv; rows without a value are left out */
    int smooth;            /* see opc_smooth */
    /* Settings like "env.name" that say where a run belongs; none of both: it is found out. */
    int panel_keys, line_keys;
    const char *const *panel_key, *const *line_key;
};

struct opc_curve_run {
    char *dir;
    dev_t device; /* of the directory, which may have several names */
    ino_t inode;
    char *panel;  /* env.name, or the values of the panel's settings: "mujoco:hopper+20" */
    char *title;  /* the same for people: "Hopper (MuJoCo), horizon 20" */
    char *rest;   /* what tells lines apart, a line of text each: the values of the line's settings,
                   * or all settings but seed, length and task */
    char *method; /* opc.transition, or train.agent if that is not sac */
    const char *method_name; /* OPC, MBPO(*), MBPO, SAC or PPO */
    unsigned colour;         /* of the method, 0xRRGGBB; 0: it has none */
    int seed;
    int n;
    double *x, *raw, *y; /* [n]; y is smoothed */
    bool ascending;      /* x, as steps and epochs are */
    double end, best;    /* of raw: mean of the last five, and the greatest; NaN when n is 0 */
    int group;
};

struct opc_curve_group {
    int panel;
    char label[128]; /* for people; what tells it from the others of all panels */
    char line[128];  /* the values of the plan's settings, "corrected+20"; else as the label */
    char method[32]; /* of all its runs; "" when they differ */
    unsigned colour; /* of that method, 0xRRGGBB; 0: none */
    int runs;        /* that have got anywhere */
    /* where at least half of its runs have got to: */
    int n;
    double *x, *low, *middle, *high;      /* [n] quartiles and median over the runs */
    double end_low, end_middle, end_high; /* of what its runs end with */
};

struct opc_curves {
    struct opc_curve_run *run;
    struct opc_curve_group *group;
    char (*panel)[256], (*title)[256]; /* their names, and for people */
    int runs, groups, panels;
    bool between; /* runs have values between their evaluations, too, interpolated linearly: over
                   * total_steps, which differ from run to run */
    int columns;  /* of panels that differ in their last setting only; 0: there is no such order */
};

/* What a run ends with, its score: the mean of its last five values, of all if they are fewer; NaN:
 * there is none. */
double opc_curve_end(int n, const double *value);

/* A directory that is no run stands for the runs in it. */
int opc_curves_read(int n, char *const dir[], const struct opc_curves_plan *,
                    struct opc_curves **out, struct opc_err *err);
/* The values of a group's runs at x, one of its own; out has room for as many as it has runs. */
int opc_curves_at(const struct opc_curves *, int group, double x, double *out);
/* What its runs end with, those that have got anywhere. */
int opc_curves_ends(const struct opc_curves *, int group, double *out);
void opc_curves_free(struct opc_curves *); /* NULL is fine */

#endif
