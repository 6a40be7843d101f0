/* SPDX-License-Identifier: MIT */
/* run/estimate.h - how long the rest of a run takes, from what its phases have taken so far. */
#ifndef OPC_RUN_ESTIMATE_H
#define OPC_RUN_ESTIMATE_H

#include "opc/train.h"

struct opc_estimate {
    double epoch; /* seconds that the current epoch takes as a whole; NaN: nothing is known */
    double left;  /* seconds until the run is done; NaN */
    double share; /* of the run that is done, 0 .. 1 */
    bool rough;   /* no epoch has been measured whole yet */
    bool bound;   /* phases of the first epoch are not reached yet: it takes longer than `left` */
};

/* per_epoch: seconds of an epoch that was measured whole; 0: none was. */
struct opc_estimate opc_estimate(const struct opc_progress *, double per_epoch);

#endif
