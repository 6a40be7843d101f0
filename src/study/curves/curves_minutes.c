/* SPDX-License-Identifier: MIT */
/* Wall-clock minutes since a run began, at the end of each epoch. curves_run.c asks here for the x
 * of each row when curves are over minutes.
 *
 * Invariant: minutes are the sum of epoch_s, as in runs.csv of a merge, and not total_s, which
 * starts from 0 with each process. They are known as long as every epoch so far has its row, in
 * order: what follows a gap is too early by an unknown time. */
#include "study/curves/curves_private.h"

#include <math.h>
#include <string.h>

bool opc_curves_over_minutes(const struct opc_curves_plan *plan)
{
    return strcmp(plan->over, OPC_CURVES_MINUTES) == 0;
}

struct opc_curves_clock opc_curves_clock_of(const struct opc_sweep_rows *timing)
{
    return (struct opc_curves_clock){.timing = timing,
                                     .epoch = opc_sweep_rows_find(timing, "epoch"),
                                     .seconds = opc_sweep_rows_find(timing, "epoch_s")};
}

double opc_curves_minutes(struct opc_curves_clock *clock, double epoch)
{
    const struct opc_sweep_rows *timing = clock->timing;
    while (clock->rows < timing->rows && clock->rows < epoch) {
        const double at = opc_sweep_rows_number(timing, clock->rows, clock->epoch);
        const double seconds = opc_sweep_rows_number(timing, clock->rows, clock->seconds);
        /* Row k is of epoch k + 1; NaN stays. */
        clock->sum += at == ++clock->rows ? seconds : (double)NAN;
    }
    const double minutes = epoch >= 1 && clock->rows == epoch ? clock->sum / 60 : (double)NAN;
    clock->known += !isnan(minutes);
    return minutes;
}
