/* SPDX-License-Identifier: MIT */
/* study/curves/curves_private.h - shared by curves.c and curves_only.c. */
#ifndef OPC_STUDY_CURVES_PRIVATE_H
#define OPC_STUDY_CURVES_PRIVATE_H

#include "study/curves/curves.h"
#include "study/curves/sweep_tables.h"

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

/* Whether a run of these settings meets all patterns of the plan. What tables do not tell meets
 * none. dir: of the run, for the message. */
int opc_curves_only_meets(struct opc_curves_reading *, const struct opc_values *,
                          const struct opc_curves_origin *, const char *dir, bool *meets,
                          struct opc_err *err);
/* OPC_EUSER: no run meets all patterns. */
int opc_curves_only_none(const struct opc_curves_reading *, struct opc_err *err);
/* Warns of settings with a pattern that the tables do not tell of any of their runs. */
void opc_curves_only_warn(const struct opc_curves_reading *, const struct opc_sweep_tables *);

#endif
