/* SPDX-License-Identifier: MIT */
/* The values of a group of learning curves at one x and at their end, and its line and band over
 * the runs (enum opc_band). curves.c calls it when runs are read, claims and pictures afterwards.
 *
 * Invariant: a run has a value at x only where it was evaluated. If curves->between is set, it also
 * has values between two evaluations, and holds its first and its last for less than one interval
 * of evaluations beyond them. */
#include "study/curves/curves.h"

#include "base/text.h"
#include "num/stats.h"
#include "opc/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* For qsort. */
static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value at x of a run whose x ascend. Over total_steps and minutes runs are compared at the
 * same x although none was evaluated exactly there; and as each begins and ends at a slightly
 * different one, a run holds its first and its last value for less than one interval, so that no
 * line jumps where some runs have begun and others have not. */
static double value_between(const struct opc_curve_run *run, double x)
{
    const int last = run->n - 1;
    const double interval = last > 0 ? (run->x[last] - run->x[0]) / last : 0;
    if (last > 0 && x < run->x[0] && x > run->x[0] - interval)
        return run->y[0];
    if (last > 0 && x > run->x[last] && x < run->x[last] + interval)
        return run->y[last];
    return opc_interpolate(run->n, run->x, run->y, x);
}

/* The first value of a run at x, or one between two values; NaN if it has none there. */
static double value_at(const struct opc_curves *curves, const struct opc_curve_run *run, double x)
{
    if (curves->between && run->ascending)
        return value_between(run, x);
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

int opc_curves_scores(const struct opc_curves *curves, int group, double x, double *out)
{
    int n = 0;
    for (int i = 0; i < curves->runs; i++) {
        const double score =
            curves->run[i].group == group ? opc_curve_score(&curves->run[i], x) : (double)NAN;
        if (!isnan(score))
            out[n++] = score;
    }
    return n;
}

struct opc_band_names opc_band_names(enum opc_band band)
{
    static const struct opc_band_names NAMES[] = {
        [OPC_BAND_QUARTILES] = {"median", "25 %", "75 %",
                                "line: median over runs; band: quartiles"},
        [OPC_BAND_INTERVAL] = {"IQM", "low", "high",
                               "line: interquartile mean over runs; band: its 95 % interval "
                               "(bootstrap over runs)"},
        [OPC_BAND_STD] = {"mean", "-std", "+std",
                          "line: mean over runs; band: one standard deviation"},
        [OPC_BAND_RANGE] = {"median", "min", "max",
                            "line: median over runs; band: smallest and largest"},
        [OPC_BAND_NONE] = {"median", "", "", "line: median over runs"},
    };
    return NAMES[band];
}

/* Line and band of n values, into out: low, middle, high; NaN without values. Sorts v. */
static int summarize(enum opc_band band, int n, double *v, double out[3], struct opc_err *err)
{
    out[0] = out[1] = out[2] = (double)NAN;
    if (n == 0)
        return OPC_OK;
    if (band == OPC_BAND_STD) {
        const double mean = opc_mean(n, v), std = opc_deviation(n, v);
        out[0] = mean - std;
        out[1] = mean;
        out[2] = mean + std;
    } else if (band == OPC_BAND_INTERVAL) {
        /* The same draws at every point, so that a band does not flicker along x. */
        struct opc_rng rng = opc_rng_stream(0, OPC_USE_STUDY, 0, 0);
        const double *const one[1] = {v};
        struct opc_interval iqm;
        OPC_TRY(opc_iqm_interval(&(struct opc_scores){1, &n, one}, 0, &rng, &iqm, err));
        out[0] = iqm.low;
        out[1] = iqm.middle;
        out[2] = iqm.high;
    } else {
        const double edge = band == OPC_BAND_QUARTILES ? 0.25 : band == OPC_BAND_RANGE ? 0 : 0.5;
        out[0] = opc_quantile(n, v, edge);
        out[1] = opc_quantile(n, v, 0.5);
        out[2] = opc_quantile(n, v, 1 - edge);
    }
    return OPC_OK;
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
    double got[3] = {0};
    int code = OPC_OK;
    for (size_t at = 0; at < all && !code; at++) {
        if (at > 0 && x[at] == x[at - 1])
            continue;
        /* Left out where fewer than half of the runs have a value: the median would jump when
         * runs end. */
        const int n = opc_curves_at(curves, g, x[at], scratch);
        if (2 * n < group->runs)
            continue;
        code = summarize(curves->band, n, scratch, got, err);
        group->x[group->n] = x[at];
        group->low[group->n] = got[0];
        group->middle[group->n] = got[1];
        group->high[group->n] = got[2];
        group->n++;
    }
    opc_free(x);
    /* and of the scores */
    const int n = opc_curves_scores(curves, g, HUGE_VAL, scratch);
    if (!code)
        code = summarize(curves->band, n, scratch, got, err);
    group->end_low = got[0];
    group->end_middle = got[1];
    group->end_high = got[2];
    return code;
}

int opc_curves_rename(struct opc_curves *curves, const char *from, const char *to,
                      struct opc_err *err)
{
    struct opc_curve_group *group = curves->group;
    int found = 0;
    if (!*to || strlen(to) >= sizeof group->label)
        return opc_fail(err, OPC_EUSER, "a label has 1 to %zu characters; '%s' has %zu",
                        sizeof group->label - 1, to, strlen(to));
    for (int g = 0; g < curves->groups; g++)
        if (strcmp(group[g].label, to) == 0)
            return opc_fail(err, OPC_EUSER, "two lines cannot both be called '%s'", to);
    for (int g = 0; g < curves->groups; g++)
        if (strcmp(group[g].label, from) == 0) {
            strcpy(group[g].label, to);
            found++;
        }
    if (found)
        return OPC_OK;
    /* The message names some of those that there are. */
    struct opc_text names = {0};
    for (int g = 0; g < curves->groups && names.used < 200; g++)
        opc_text_addf(&names, "%s'%s'", g ? ", " : "", group[g].label);
    opc_fail(err, OPC_EUSER, "no line is called '%s'; there is %s", from, opc_text_get(&names));
    opc_text_free(&names);
    return OPC_EUSER;
}
