/* SPDX-License-Identifier: MIT */
/* Statistics for the study folders and the plots. Samples are small (seeds of a method), so sorting
 * and resampling by plain loops is fast enough. The order in which scores are drawn is fixed: the
 * ends of published intervals depend on it. */
#include "num/stats.h"

#include "opc/mem.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { RESAMPLES = 2000 };

double opc_mean(int n, const double *v)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += v[i];
    return sum / n;
}

double opc_deviation(int n, const double *v)
{
    const double mean = opc_mean(n, v);
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (v[i] - mean) * (v[i] - mean);
    return n > 1 ? sqrt(sum / (n - 1)) : 0;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double opc_quantile(int n, double *v, double q)
{
    qsort(v, (size_t)n, sizeof *v, by_size);
    /* Linear interpolation between the order statistics around place q (n - 1). */
    const double at = q * (n - 1);
    const int i = (int)at;
    return i + 1 < n ? v[i] + (at - i) * (v[i + 1] - v[i]) : v[n - 1];
}

int opc_lower_bound(int n, const double *x, double at)
{
    int low = 0, high = n;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (x[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

double opc_interpolate(int n, const double *x, const double *y, double at)
{
    const int i = opc_lower_bound(n, x, at);
    if (i < n && x[i] == at)
        return y[i];
    if (i == 0 || i == n)
        return (double)NAN;
    return y[i - 1] + (y[i] - y[i - 1]) * (at - x[i - 1]) / (x[i] - x[i - 1]);
}

/* Number i of n, sorted, stands for the share [i, i + 1] / n of the distribution; the middle half
 * of it counts, and a number across its edge for the part inside. */
double opc_iqm(int n, double *v)
{
    qsort(v, (size_t)n, sizeof *v, by_size);
    const double from = 0.25 * n, to = 0.75 * n;
    double sum = 0;
    for (int i = 0; i < n; i++) {
        const double inside = fmin(i + 1, to) - fmax(i, from);
        if (inside > 0)
            sum += inside * v[i];
    }
    return sum / (to - from);
}

/* ---- bootstrap ------------------------------------------------------------------------------- */

static int count_scores(const struct opc_scores *scores)
{
    int all = 0;
    for (int t = 0; t < scores->tasks; t++)
        all += scores->n[t];
    return all;
}

/* All scores, task after task. With rng: as many from each task, drawn again with replacement. */
static void draw_scores(const struct opc_scores *scores, struct opc_rng *rng, double *out)
{
    for (int t = 0; t < scores->tasks; t++)
        for (int i = 0; i < scores->n[t]; i++)
            *out++ = scores->v[t][rng ? (int)opc_rng_below(rng, (uint32_t)scores->n[t]) : i];
}

/* The 95 % interval from n resampled values. */
static struct opc_interval interval_around(double middle, int n, double *v)
{
    return (struct opc_interval){middle, opc_quantile(n, v, 0.025), opc_quantile(n, v, 0.975)};
}

int opc_iqm_interval(const struct opc_scores *scores, int resamples, struct opc_rng *rng,
                     struct opc_interval *out, struct opc_err *err)
{
    const int n = count_scores(scores), times = resamples > 0 ? resamples : RESAMPLES;
    *out = (struct opc_interval){(double)NAN, (double)NAN, (double)NAN};
    if (n == 0)
        return OPC_OK;
    double *v = opc_alloc((size_t)n, sizeof *v), *at = opc_alloc((size_t)times, sizeof *at);
    /* Resample first, then the estimate itself from all scores. */
    if (v && at) {
        for (int k = 0; k < times; k++) {
            draw_scores(scores, rng, v);
            at[k] = opc_iqm(n, v);
        }
        draw_scores(scores, NULL, v);
        *out = interval_around(opc_iqm(n, v), times, at);
    }
    const bool whole = v && at;
    opc_free(v);
    opc_free(at);
    return whole ? OPC_OK
                 : opc_fail(err, OPC_ENOMEM, "not enough memory for a bootstrap of %d runs", n);
}

/* The share of pairs in which x beats y, by task, then the mean over tasks. x and y hold scores
 * task after task, in the numbers of like_x and like_y. NaN when no task has both. */
static double probability_of_improvement(const struct opc_scores *like_x,
                                         const struct opc_scores *like_y, const double *x,
                                         const double *y)
{
    double sum = 0;
    int tasks = 0;
    for (int t = 0; t < like_x->tasks; t++) {
        const int n = like_x->n[t], m = like_y->n[t];
        double won = 0;
        for (int i = 0; i < n; i++)
            for (int k = 0; k < m; k++)
                won += x[i] > y[k] ? 1 : x[i] == y[k] ? 0.5 : 0;
        if (n > 0 && m > 0) {
            sum += won / n / m;
            tasks++;
        }
        x += n;
        y += m;
    }
    return tasks ? sum / tasks : (double)NAN;
}

int opc_improvement(const struct opc_scores *sx, const struct opc_scores *sy, int resamples,
                    struct opc_rng *rng, struct opc_interval *out, struct opc_err *err)
{
    const int times = resamples > 0 ? resamples : RESAMPLES;
    double *x = opc_alloc((size_t)count_scores(sx), sizeof *x);
    double *y = opc_alloc((size_t)count_scores(sy), sizeof *y);
    double *at = opc_alloc((size_t)times, sizeof *at);
    const bool whole = x && y && at;
    if (whole) {
        for (int k = 0; k < times; k++) {
            draw_scores(sx, rng, x);
            draw_scores(sy, rng, y);
            at[k] = probability_of_improvement(sx, sy, x, y);
        }
        draw_scores(sx, NULL, x);
        draw_scores(sy, NULL, y);
        const double middle = probability_of_improvement(sx, sy, x, y);
        *out = isnan(middle) ? (struct opc_interval){middle, middle, middle}
                             : interval_around(middle, times, at);
    }
    opc_free(x);
    opc_free(y);
    opc_free(at);
    return whole ? OPC_OK
                 : opc_fail(err, OPC_ENOMEM, "not enough memory for a bootstrap of %d runs",
                            count_scores(sx) + count_scores(sy));
}

/* The interquartile mean of each task's runs; v holds them task after task. NaN: no runs. */
static void iqm_by_task(const struct opc_scores *like, double *v, double *iqm)
{
    for (int t = 0; t < like->tasks; t++) {
        iqm[t] = like->n[t] ? opc_iqm(like->n[t], v) : (double)NAN;
        v += like->n[t];
    }
}

static double weighted_sum(int n, const double *weight, const double *v)
{
    double sum = 0;
    int used = 0;
    for (int i = 0; i < n; i++)
        if (!isnan(v[i])) {
            sum += weight[i] * v[i];
            used++;
        }
    return used ? sum : (double)NAN;
}

/* The standard deviation of what is not NaN, moved to the front of v; NaN: fewer than two. */
static double deviation_over_tasks(int n, double *v)
{
    int used = 0;
    for (int i = 0; i < n; i++)
        if (!isnan(v[i]))
            v[used++] = v[i];
    return used > 1 ? opc_deviation(used, v) : (double)NAN;
}

/* A statistic of the IQMs by task, from scores and their resamples: the weighted sum over x, or
 * without weights the deviation over y minus that over x. */
static int bootstrap_of_iqms(const struct opc_scores *x, const struct opc_scores *y,
                             const double *weight, int resamples, struct opc_rng *rng,
                             struct opc_interval *out, struct opc_err *err)
{
    const int times = resamples > 0 ? resamples : RESAMPLES;
    const int runs[2] = {count_scores(x), y ? count_scores(y) : 0};
    const int tasks = y && y->tasks > x->tasks ? y->tasks : x->tasks;
    double *v = opc_alloc((size_t)(runs[0] > runs[1] ? runs[0] : runs[1]) + 1, sizeof *v);
    double *iqm = opc_alloc((size_t)tasks + 1, sizeof *iqm);
    double *at = opc_alloc((size_t)times, sizeof *at);
    const bool whole = v && iqm && at;
    /* The last round takes all scores as they are. */
    for (int k = 0; whole && k <= times; k++) {
        struct opc_rng *const drawn = k < times ? rng : NULL;
        draw_scores(x, drawn, v);
        iqm_by_task(x, v, iqm);
        double value =
            weight ? weighted_sum(x->tasks, weight, iqm) : -deviation_over_tasks(x->tasks, iqm);
        if (y) {
            draw_scores(y, drawn, v);
            iqm_by_task(y, v, iqm);
            value += deviation_over_tasks(y->tasks, iqm);
        }
        if (k < times)
            at[k] = value;
        else
            *out = isnan(value) ? (struct opc_interval){value, value, value}
                                : interval_around(value, times, at);
    }
    opc_free(v);
    opc_free(iqm);
    opc_free(at);
    return whole ? OPC_OK
                 : opc_fail(err, OPC_ENOMEM, "not enough memory for a bootstrap of %d runs",
                            runs[0] + runs[1]);
}

int opc_iqm_contrast(const struct opc_scores *scores, const double *weight, int resamples,
                     struct opc_rng *rng, struct opc_interval *out, struct opc_err *err)
{
    return bootstrap_of_iqms(scores, NULL, weight, resamples, rng, out, err);
}

int opc_iqm_spread(const struct opc_scores *x, const struct opc_scores *y, int resamples,
                   struct opc_rng *rng, struct opc_interval *out, struct opc_err *err)
{
    return bootstrap_of_iqms(x, y, NULL, resamples, rng, out, err);
}

/* Wilson's interval: its centre is drawn towards 1/2, so it stays inside [0, 1] for 0 or n hits. */
struct opc_interval opc_share_interval(int hits, int n)
{
    const double z = 1.959963984540054, p = (double)hits / n, w = z * z / n;
    const double middle = (p + w / 2) / (1 + w), half = z * sqrt(p * (1 - p) / n + w / n / 4);
    return (struct opc_interval){p, middle - half / (1 + w), middle + half / (1 + w)};
}

/* ---- series ---------------------------------------------------------------------------------- */

int opc_smooth_check(int width, struct opc_err *err)
{
    return width % 2 == 1
               ? OPC_OK
               : opc_fail(err, OPC_EUSER,
                          "smooth = %d: an average around each value takes an odd number "
                          "of them",
                          width);
}

void opc_smooth(int n, const double *v, int width, double *out)
{
    const int half = width / 2;
    for (int i = 0; i < n; i++) {
        double sum = 0;
        int count = 0;
        for (int k = i - half; k <= i + half; k++)
            if (k >= 0 && k < n && !isnan(v[k])) {
                sum += v[k];
                count++;
            }
        out[i] = isnan(v[i]) ? v[i] : sum / count;
    }
}

double opc_round_step(double range, int max)
{
    if (!(range > 0))
        return 1;
    const double raw = range / max, power = pow(10, floor(log10(raw)));
    const double digit = raw / power;
    return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}
