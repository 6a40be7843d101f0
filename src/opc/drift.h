/* SPDX-License-Identifier: MIT */
/* opc/drift.h - how far an imagined state is from the recorded one it walks along:
 *
 *     drift = sqrt( mean_j ((s'_j - s_ref'_j) / sigma_j)^2 )
 *
 * sigma_j is the standard deviation of entry j over all recorded states; an entry that hardly moves
 * (sigma_j < 1e-6 max(1, |mean_j|)) is measured in its own unit, sigma_j = 1.
 *
 * Eq. 5 corrects a step by what was recorded next to it. The further a rollout has drifted from its
 * reference, the less that recording says about it, so a rollout can be made to end there
 * (opc.max_drift). By eq. 5 a deterministic policy that made the reference stays on it exactly: its
 * drift is 0. */
#ifndef OPC_DRIFT_H
#define OPC_DRIFT_H

#include "num/scaler.h"

struct opc_drift {
    int obs;
    double limit;   /* L: a step that leads further is refused */
    float *inverse; /* [obs] 1 / sigma_j */
};

/* Before the first update, all entries are measured in their own units. */
int opc_drift_create(int obs, double limit, struct opc_drift **out, struct opc_err *err);
void opc_drift_destroy(struct opc_drift *); /* NULL is fine */
/* states: mean and deviation of all recorded states. */
void opc_drift_update(struct opc_drift *, const struct opc_scaler *states);
/* The drift of s[obs] from s_ref[obs]; NaN if either is not a number. */
double opc_drift_between(const struct opc_drift *, const float *s, const float *s_ref);

#endif
