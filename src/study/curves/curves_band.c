/* SPDX-License-Identifier: MIT */
/* The values of a group of learning curves at one x and at their end, and its band: median and
 * quartiles over the runs. curves.c calls it when runs are read, claims and pictures afterwards.
 *
 * Invariant: a run has a value at x only where it was evaluated, or between two evaluations if
 * curves->between is set; nothing is extrapolated. */
#include "study/curves/curves.h"

#include "num/stats.h"
#include "opc/mem.h"

#include <math.h>
#include <stdlib.h>

/* For qsort. */
static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The first value of a run at x, or one between two values; NaN if it has none there. */
static double value_at(const struct opc_curves *curves, const struct opc_curve_run *run, double x)
{
    /* Over total_steps runs are compared at the same step although none was evaluated exactly
     * there. */
    if (curves->between && run->ascending)
        return opc_interpolate(run->n, run->x, run->y, x);
    int at = run->ascending ? opc_lower_bound(run->n, run->x, x) : 0;
    while (at < run->n && run->x[at] != x)
        at = run->ascending ? run->n : at + 1;
    return at < run->n ? run->y[at] : (double)NAN;
}

int opc_curves_at(const struct opc_curves *curves, int group, double x, double *out)
{
    int n = 0;
    for (int i = 0; i < curves->runs; i++) {
        const double v =
            curves->run[i].group == group ? value_at(curves, &curves->run[i], x) : (double)NAN;
        if (!isnan(v))
            out[n++] = v;
    }
    return n;
}

int opc_curves_ends(const struct opc_curves *curves, int group, double *out)
{
    int n = 0;
    for (int i = 0; i < curves->runs; i++)
        if (curves->run[i].group == group && curves->run[i].n > 0)
            out[n++] = curves->run[i].end;
    return n;
}

/* Quartiles of the scores of a group. scratch: [runs]. */
static void measure_group_ends(struct opc_curves *curves, int g, double *scratch)
{
    const int n = opc_curves_ends(curves, g, scratch);
    struct opc_curve_group *group = &curves->group[g];
    group->end_low = n ? opc_quantile(n, scratch, 0.25) : (double)NAN;
    group->end_middle = n ? opc_quantile(n, scratch, 0.5) : (double)NAN;
    group->end_high = n ? opc_quantile(n, scratch, 0.75) : (double)NAN;
}

int opc_curves_make_band(struct opc_curves *curves, int g, double *scratch, struct opc_err *err)
{
    struct opc_curve_group *group = &curves->group[g];
    size_t all = 0;
    /* The number of points is at most that of all runs together. */
    for (int i = 0; i < curves->runs; i++)
        all += curves->run[i].group == g ? (size_t)curves->run[i].n : 0;
    double *x = opc_alloc(all + 1, sizeof *x);
    group->x = opc_alloc(all + 1, sizeof *x);
    group->low = opc_alloc(all + 1, sizeof *x);
    group->middle = opc_alloc(all + 1, sizeof *x);
    group->high = opc_alloc(all + 1, sizeof *x);
    if (!x || !group->x || !group->low || !group->middle || !group->high) {
        opc_free(x);
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the curves");
    }
    /* All x of all runs, sorted; each different one is a candidate. */
    all = 0;
    for (int i = 0; i < curves->runs; i++)
        for (int k = 0; curves->run[i].group == g && k < curves->run[i].n; k++)
            x[all++] = curves->run[i].x[k];
    qsort(x, all, sizeof *x, by_value);
    for (size_t at = 0; at < all; at++) {
        if (at > 0 && x[at] == x[at - 1])
            continue;
        /* Left out where fewer than half of the runs have a value: the median would jump when
         * runs end. */
        const int n = opc_curves_at(curves, g, x[at], scratch);
        if (2 * n < group->runs)
            continue;
        group->x[group->n] = x[at];
        group->low[group->n] = opc_quantile(n, scratch, 0.25);
        group->middle[group->n] = opc_quantile(n, scratch, 0.5);
        group->high[group->n] = opc_quantile(n, scratch, 0.75);
        group->n++;
    }
    opc_free(x);
    measure_group_ends(curves, g, scratch);
    return OPC_OK;
}
