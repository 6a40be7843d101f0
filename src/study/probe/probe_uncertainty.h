/* SPDX-License-Identifier: MIT */
/* study/probe/probe_uncertainty.h - how much the elites of an ensemble disagree along rollouts, and
 * how wrong they are. probe_uncertainty.c measures, probe_uncertainty_show.c makes the exhibit. */
#ifndef OPC_STUDY_PROBE_UNCERTAINTY_H
#define OPC_STUDY_PROBE_UNCERTAINTY_H

#include "study/probe/probe.h"

enum { OPC_SPREAD_LEARNED, OPC_SPREAD_CORRECTED, OPC_SPREAD_WAYS }; /* eq. 2, eq. 5 */

/* Spread and error of all runs: rows of run 0, then of run 1, ... */
struct opc_spread {
    int runs, each, rows, horizon, elites; /* rows = runs * each */
    const struct opc_reals *beta;
    /* [betas][ways][rows][horizon + 1] in standard deviations of the recorded states; NaN once the
     * rollout of one of the elites has ended, or for the error the environment's. */
    double *spread, *error;
    int epoch_of_model, epoch_of_policy; /* of the first run */
};

/* Offset of the value after h steps. */
static inline size_t opc_spread_offset(const struct opc_spread *s, int beta, int way, int row,
                                       int h)
{
    const size_t line =
        ((size_t)beta * OPC_SPREAD_WAYS + (size_t)way) * (size_t)s->rows + (size_t)row;
    return line * ((size_t)s->horizon + 1) + (size_t)h;
}

/* Measures every run of the request; *out borrows the list of beta. */
int opc_spread_measure(const struct opc_request *, const struct opc_probe_uncertainty_config *,
                       struct opc_spread *out, struct opc_err *err);
void opc_spread_free(struct opc_spread *);
/* Statistics, figure, tables, claims and notes. */
int opc_spread_show(const struct opc_request *, const struct opc_spread *, struct opc_exhibit *,
                    struct opc_err *err);

#endif
