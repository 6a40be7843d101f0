/* SPDX-License-Identifier: MIT */
/* Drift of imagined states from their references. run/imagine.c updates it before each simulation,
 * and opc/walk.c asks for every imagined step.
 *
 * Invariant: on the reference itself the drift is 0 to the last bit, so that no limit ends a
 * rollout that retraces its recording. */
#include "opc/drift.h"

#include "opc/mem.h"

#include <math.h>

int opc_drift_create(int obs, double limit, struct opc_drift **out, struct opc_err *err)
{
    struct opc_drift *d = opc_alloc(1, sizeof *d);
    if (!d || !(d->inverse = opc_alloc((size_t)obs, sizeof *d->inverse))) {
        opc_free(d);
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the scale of %d entries", obs);
    }
    d->obs = obs;
    d->limit = limit;
    for (int j = 0; j < obs; j++)
        d->inverse[j] = 1.0f;
    *out = d;
    return OPC_OK;
}

void opc_drift_destroy(struct opc_drift *d)
{
    if (!d)
        return;
    opc_free(d->inverse);
    opc_free(d);
}

void opc_drift_update(struct opc_drift *d, const struct opc_scaler *states)
{
    for (int j = 0; j < d->obs; j++)
        d->inverse[j] = opc_scaler_steady(states, j);
}

double opc_drift_between(const struct opc_drift *d, const float *s, const float *s_ref)
{
    double squares = 0;
    for (int j = 0; j < d->obs; j++) {
        const double x = (double)((s[j] - s_ref[j]) * d->inverse[j]);
        squares += x * x;
    }
    return sqrt(squares / d->obs);
}
