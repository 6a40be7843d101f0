/* SPDX-License-Identifier: MIT */
/* study/curves/curves.h - reads run directories and forms groups of learning curves.
 *
 * A group of runs is a line in a panel of a figure. Without a plan, runs that differ in nothing
 * but their seed (and how many epochs they have) form a group, and each task is a panel. With a
 * plan, the values of its settings name the panel and the line of a run. Used by opc plot and by
 * the analysis learning_curves. */
#ifndef OPC_STUDY_CURVES_H
#define OPC_STUDY_CURVES_H

#include "opc/err.h"
#include "run/config/config.h"

#include <stdbool.h>
#include <sys/types.h>

/* What a line is over the runs of its group, and the band around it. */
enum opc_band {
    OPC_BAND_QUARTILES, /* median, and the quartiles */
    OPC_BAND_INTERVAL,  /* interquartile mean, and its 95 % interval by bootstrap */
    OPC_BAND_STD,       /* mean, and one standard deviation to both sides */
    OPC_BAND_RANGE,     /* median, smallest and largest */
    OPC_BAND_NONE,      /* median alone */
};
#define OPC_BAND_CHOICES "quartiles|interval|std|range|none"
/* Names of the three for tables: "median", "25 %", "75 %". */
struct opc_band_names {
    const char *middle, *low, *high;
    const char *sentence; /* what line and band are */
};
struct opc_band_names opc_band_names(enum opc_band);

/* Settings whose values choose among runs: all patterns have to be met. */
struct opc_curves_only {
    int n;
    struct opc_curves_pattern {
        char key[OPC_KEY];   /* "section.name" */
        const char *pattern; /* a value, or a glob for the value as it is printed */
    } at[OPC_LIST_MAX];
};

/* In place of a column: minutes by the clock since the run began, over all its resumes, from its
 * timing.csv. A run without one is left out with a warning. */
#define OPC_CURVES_MINUTES "minutes"

/* In place of a column: OPC_CURVES_ERROR and 1, 5 or 10 is the on-policy error after so many steps
 * of the equation that a run uses, learned_10 or corrected_10. */
#define OPC_CURVES_ERROR "error_"
/* The column that a run has this in, or `of` itself. corrected: the run uses eq. 5. */
const char *opc_curves_column(const char *of, bool corrected, char name[64]);

/* What to read, and what distinguishes panels and lines. */
struct opc_curves_plan {
    /* Columns of metrics.csv; rows without a value are left out. over may be OPC_CURVES_MINUTES,
     * and of OPC_CURVES_ERROR with a number. */
    const char *of, *over;
    int smooth; /* see opc_smooth */
    enum opc_band band;
    const struct opc_curves_only *only; /* NULL: all runs */
    /* Settings like "env.name" whose values name panel and line; no keys at all: found out. */
    int panel_keys, line_keys;
    const char *const *panel_key, *const *line_key;
};

/* One run: a directory, or rows in the tables of a merge (then dir is only for messages). */
struct opc_curve_run {
    char *dir;
    dev_t device; /* with inode: identifies the directory, which may have several names */
    ino_t inode;
    /* env.name, or the values of the panel's settings: "mujoco:hopper+20". */
    char *panel;
    char *title; /* the same for people: "Hopper (MuJoCo), horizon 20" */
    /* What distinguishes lines, a line of text each: the values of the line's settings, or all
     * settings but seed, number of epochs and task, after a line for the directory of tables. */
    char *rest;
    char *method;            /* opc.transition, or train.agent if that is not sac */
    const char *method_name; /* OPC, MBPO(*), MBPO, SAC or PPO */
    unsigned colour;         /* of the method, 0xRRGGBB; 0: it has none */
    bool corrected;          /* imagines by eq. 5 */
    uint32_t identity;       /* of its settings (opc_config_hash); 0: tables do not tell it */
    int seed;
    bool untimed; /* it has rows, and over minutes none of them has its time */
    int n;
    double *x, *raw, *y; /* [n]; y is smoothed */
    bool ascending;      /* x ascends, as steps and epochs do */
    double end, best;    /* of raw: mean of the last five, and the maximum; NaN if n is 0 */
    int group;           /* index into opc_curves.group */
};

/* Runs that form one line, with a band over them. */
struct opc_curve_group {
    int panel;
    char label[128]; /* for people; distinguishes it from the other groups of all panels */
    char line[128];  /* values of the plan's settings, "corrected+20"; without a plan the label */
    char method[32]; /* of all its runs; "" if they differ */
    unsigned colour; /* of that method, 0xRRGGBB; 0: none */
    int runs;        /* number of runs that have at least one value */
    /* Points where at least half of its runs have a value: */
    int n;
    double *x, *low, *middle, *high;      /* [n] band and line over the runs (enum opc_band) */
    double end_low, end_middle, end_high; /* the same of its runs' ends */
};

struct opc_curves {
    struct opc_curve_run *run;
    struct opc_curve_group *group;
    char (*panel)[256], (*title)[256]; /* [panels] names, and titles for people */
    int runs, groups, panels;
    enum opc_band band;
    /* Runs also have values between their evaluations, interpolated linearly, and hold the first
     * and the last for less than one interval. Set over total_steps and minutes, which differ from
     * run to run. */
    bool between;
    int columns; /* panels in a row that differ in their last setting only; 0: no such order */
};

/* The score of a run: the mean of its last five values, of all if there are fewer; NaN if there
 * are none. */
double opc_curve_end(int n, const double *value);
/* The score at x: the same of the values up to x, of those later than 0.75 x; NaN if there are
 * none. At infinity the score of the whole run. */
double opc_curve_score(const struct opc_curve_run *, double x);

/* Reads KEY=PATTERN of each word; they have to outlive out. OPC_EUSER: a KEY is no setting. */
int opc_curves_only_read(const struct opc_texts *words, struct opc_curves_only *out,
                         struct opc_err *err);
/* Reads n directories; one that is not a run itself stands for the runs in it, or if there are none
 * for those in the tables that opc sweep merge has written to it. What such tables do not tell of
 * the settings is not known, so their runs form no line with others. */
int opc_curves_read(int n, char *const dir[], const struct opc_curves_plan *,
                    struct opc_curves **out, struct opc_err *err);
/* Names a run that is not there as one of these settings is by a plan with keys: panel, title,
 * rest, method and seed. opc_curves_run_free frees it, also after a failure. */
int opc_curves_run_name(const struct opc_values *, const struct opc_curves_plan *,
                        struct opc_curve_run *, struct opc_err *err);
void opc_curves_run_free(struct opc_curve_run *);
/* Puts the panels into the order in which n runs of these settings have them, by a plan with keys,
 * with a panel without groups for runs that are not there. Of runs that are all there nothing
 * changes. */
int opc_curves_plan_panels(struct opc_curves *, int n, const struct opc_values *const *set,
                           const struct opc_curves_plan *, struct opc_err *err);
/* The name of a run's line, as in struct opc_curve_group. */
void opc_curves_line(const struct opc_curve_run *, size_t size, char *out);
/* The label of run i among n, by a plan with keys: as few settings as tell its line from theirs.
 * The caller frees *out. */
int opc_curves_label(int n, const struct opc_curve_run *const *run, int i,
                     const struct opc_curves_plan *, char **out, struct opc_err *err);
/* A run of each group, with room for `more` behind them. The caller frees the array; NULL: no
 * memory. */
const struct opc_curve_run **opc_curves_speakers(const struct opc_curves *, int more);
/* The values of a group's runs at x, which is one of its own; out has space for one per run.
 * Returns how many there are. */
int opc_curves_at(const struct opc_curves *, int group, double x, double *out);
/* The scores at x of a group's runs, of those that have one. Returns how many there are. */
int opc_curves_scores(const struct opc_curves *, int group, double x, double *out);
/* For opc_curves_read: fills in line and band of a group over x, and of its scores. scratch:
 * [runs]. */
int opc_curves_make_band(struct opc_curves *, int group, double *scratch, struct opc_err *err);
/* Gives the groups of this label another one, in all panels. OPC_EUSER: there is no such label, or
 * the new one is taken or too long. */
int opc_curves_rename(struct opc_curves *, const char *from, const char *to, struct opc_err *err);
void opc_curves_free(struct opc_curves *); /* NULL is fine */

#endif
