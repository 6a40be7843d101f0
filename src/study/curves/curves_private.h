/* SPDX-License-Identifier: MIT */
/* study/curves/curves_private.h - shared by the files that read runs and form groups of them:
 * curves.c, which says what each is for, and curves_*.c but curves_band.c and curves_draw.c. */
#ifndef OPC_STUDY_CURVES_PRIVATE_H
#define OPC_STUDY_CURVES_PRIVATE_H

#include "study/curves/curves.h"
#include "study/curves/sweep_tables.h"

enum { OPC_CURVES_MAX = 5000 }; /* runs */

/* In the header, so that the analyzer sees that it never returns OPC_OK. */
static inline int opc_curves_no_memory(struct opc_err *err)
{
    return opc_fail(err, OPC_ENOMEM, "not enough memory for the curves");
}

/* Where the settings of a run are from, if not from its own config.yaml: run i of the tables in a
 * directory. NULL: its own. */
struct opc_curves_origin {
    const struct opc_sweep_tables *tables;
    int i;
    const char *dir;
};

/* Runs being read. */
struct opc_curves_reading {
    struct opc_curves *curves;
    const struct opc_curves_plan *plan;
    /* Of the runs that plan->only has left out, the first of those with the most patterns met: how
     * many, and what its setting is that does not meet the next; "" before there is one. */
    int met;
    char nearest[OPC_PATH + 400];
};

/* curves_minutes.c: are the curves over OPC_CURVES_MINUTES? */
bool opc_curves_over_minutes(const struct opc_curves_plan *);
/* The time of one run, read epoch by epoch. */
struct opc_curves_clock {
    const struct opc_sweep_rows *timing;
    int epoch, seconds; /* columns */
    int rows;           /* that have been read */
    double sum;         /* seconds of these; NaN: not known */
    int known;          /* epochs that were asked for and have a time */
};
struct opc_curves_clock opc_curves_clock_of(const struct opc_sweep_rows *timing);
/* Minutes from the beginning of the run to the end of an epoch, which ascend from call to call;
 * NaN: not known. */
double opc_curves_minutes(struct opc_curves_clock *, double epoch);

/* curves_find.c: appends the runs of n directories (opc_curves_read) to reading->curves. */
int opc_curves_find(struct opc_curves_reading *, int n, char *const dir[], struct opc_err *err);

/* curves_run.c: fills in all but directory and group, of the run in the directory run->dir or of
 * one in tables. One that is not wanted is left as it is. After a failure, too, it is freed by
 * opc_curves_run_free (curves.h). */
int opc_curves_run_read(struct opc_curves_reading *, struct opc_curve_run *, bool *wanted,
                        struct opc_err *err);
int opc_curves_run_take(struct opc_curves_reading *, struct opc_curve_run *,
                        const struct opc_curves_origin *, bool *wanted, struct opc_err *err);

/* curves_groups.c: runs with equal panel and equal `rest` form a group; groups get panel, method
 * and names. */
int opc_curves_form_groups(struct opc_curves *, const struct opc_curves_plan *,
                           struct opc_err *err);

/* curves_words.c: a setting for people, "OPC", "horizon 20", "no reset". */
void opc_curves_add_setting(struct opc_text *, const struct opc_curve_run *, const char *key,
                            const char *value);
/* Values of n settings, separated by `between`: as they are written, or with `reader` (the run they
 * are of) as a person reads them, "Hopper (MuJoCo), horizon 20". The caller frees *out. */
int opc_curves_print_values(const struct opc_config *, int n, const char *const *key,
                            const char *between, const struct opc_curve_run *reader, char **out,
                            struct opc_err *err);
/* Hands the text over as a string and frees it, also after a failure. */
int opc_curves_keep_text(struct opc_text *, char **out, struct opc_err *err);

/* curves_only.c: whether a run of these settings meets all patterns of the plan. What tables do not
 * tell meets none. dir: of the run, for the message. */
int opc_curves_only_meets(struct opc_curves_reading *, const struct opc_values *,
                          const struct opc_curves_origin *, const char *dir, bool *meets,
                          struct opc_err *err);
/* OPC_EUSER: no run meets all patterns. */
int opc_curves_only_none(const struct opc_curves_reading *, struct opc_err *err);
/* Warns of settings with a pattern that the tables do not tell of any of their runs. */
void opc_curves_only_warn(const struct opc_curves_reading *, const struct opc_sweep_tables *);

#endif
