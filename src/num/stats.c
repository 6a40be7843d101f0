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

/* Of all numbers in ascending order, number i stands for the share [i, i + 1] / all of the
 * distribution; the middle half of it counts, and a number across its edge for the part inside. */
double opc_iqm_repeated(int n, const double *v, const int *times)
{
    int all = times ? 0 : n, before = 0;
    for (int i = 0; times && i < n; i++)
        all += times[i];
    const double from = 0.25 * all, to = 0.75 * all;
    double sum = 0;
    for (int i = 0; i < n; i++) {
        const int after = before + (times ? times[i] : 1);
        const double inside = fmin(after, to) - fmax(before, from);
        if (inside > 0)
            sum += inside * v[i];
        before = after;
    }
    return all ? sum / (to - from) : (double)NAN;
}

double opc_iqm(int n, double *v)
{
    qsort(v, (size_t)n, sizeof *v, by_size);
    return opc_iqm_repeated(n, v, NULL);
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

/* v holds scores task after task, in the numbers of `like`. NaN: no task has any. */
static double weighted_sum(const struct opc_scores *like, const double *weight, double *v)
{
    double sum = 0;
    bool used = false;
    for (int t = 0; t < like->tasks; t++) {
        if (like->n[t] > 0)
            sum += weight[t] * opc_iqm(like->n[t], v);
        used = used || like->n[t] > 0;
        v += like->n[t];
    }
    return used ? sum : (double)NAN;
}

int opc_iqm_contrast(const struct opc_scores *scores, const double *weight, int resamples,
                     struct opc_rng *rng, struct opc_interval *out, struct opc_err *err)
{
    const int runs = count_scores(scores), times = resamples > 0 ? resamples : RESAMPLES;
    double *v = opc_alloc((size_t)runs + 1, sizeof *v), *at = opc_alloc((size_t)times, sizeof *at);
    const bool whole = v && at;
    /* The last round takes all scores as they are. */
    for (int k = 0; whole && k <= times; k++) {
        draw_scores(scores, k < times ? rng : NULL, v);
        const double value = weighted_sum(scores, weight, v);
        if (k < times)
            at[k] = value;
        else
            *out = isnan(value) ? (struct opc_interval){value, value, value}
                                : interval_around(value, times, at);
    }
    opc_free(v);
    opc_free(at);
    return whole ? OPC_OK
                 : opc_fail(err, OPC_ENOMEM, "not enough memory for a bootstrap of %d runs", runs);
}

/* ---- spread over tasks ----------------------------------------------------------------------- */

/* How far the interquartile means of tasks lie apart. */
struct dispersion {
    double variance; /* of these means; NaN: fewer than two tasks have runs */
    double noise;    /* what it would be on average if nothing but the runs of a task differed */
};

/* Of the scores of one side: */
struct spread_scratch {
    double *v, *rest; /* [scores] */
    int *times;       /* [scores] */
    double *iqm;      /* [tasks] */
};

/* The squared standard error of the interquartile mean of n numbers in ascending order, by the
 * jackknife: each in turn is left out. Of one number it is not known, and taken as 0. */
static double squared_error(int n, const double *v, const struct spread_scratch *s)
{
    for (int i = 0; i < n; i++)
        s->times[i] = 1;
    for (int i = 0; i < n; i++) {
        s->times[i] = 0;
        s->rest[i] = opc_iqm_repeated(n, v, s->times);
        s->times[i] = 1;
    }
    const double deviation = opc_deviation(n, s->rest);
    return deviation * deviation * (n - 1) * (n - 1) / n;
}

/* Of s->v, which holds scores task after task, in the numbers of `like`, and is sorted here. */
static struct dispersion disperse(const struct opc_scores *like, const struct spread_scratch *s)
{
    struct dispersion out = {(double)NAN, 0};
    double *v = s->v;
    int used = 0;
    for (int t = 0; t < like->tasks; t++) {
        const int n = like->n[t];
        if (n > 0) {
            s->iqm[used++] = opc_iqm(n, v);
            out.noise += squared_error(n, v, s);
        }
        v += n;
    }
    if (used > 1) {
        const double deviation = opc_deviation(used, s->iqm);
        out.variance = deviation * deviation;
        out.noise /= used;
    }
    return out;
}

/* S: the standard deviation that noise does not explain. */
static double spread_beyond(const struct dispersion *d, double noise)
{
    const double left = d->variance - noise;
    return left < 0 ? 0 : sqrt(left);
}

/* The means of a sample differ by the noise of all scores, from which it is drawn, and by its own,
 * because it is drawn: both are taken off the square of its S. */
int opc_iqm_spread(const struct opc_scores *x, const struct opc_scores *y, int resamples,
                   struct opc_rng *rng, struct opc_interval *out, struct opc_err *err)
{
    const int times = resamples > 0 ? resamples : RESAMPLES;
    const int runs = count_scores(x) + count_scores(y);
    const struct opc_scores *const side[2] = {x, y};
    const struct spread_scratch scratch = {
        .v = opc_alloc((size_t)runs + 1, sizeof *scratch.v),
        .rest = opc_alloc((size_t)runs + 1, sizeof *scratch.rest),
        .times = opc_alloc((size_t)runs + 1, sizeof *scratch.times),
        .iqm = opc_alloc((size_t)(x->tasks + y->tasks) + 1, sizeof *scratch.iqm)};
    double *at = opc_alloc((size_t)times, sizeof *at), middle = 0, noise[2] = {0};
    const bool whole = scratch.v && scratch.rest && scratch.times && scratch.iqm && at;
    /* The first round takes all scores as they are. */
    for (int k = -1; whole && k < times; k++) {
        double s[2];
        for (int i = 0; i < 2; i++) {
            draw_scores(side[i], k < 0 ? NULL : rng, scratch.v);
            const struct dispersion d = disperse(side[i], &scratch);
            s[i] = spread_beyond(&d, d.noise + noise[i]);
            noise[i] = k < 0 ? d.noise : noise[i];
        }
        *(k < 0 ? &middle : &at[k]) = s[1] - s[0];
    }
    if (whole)
        *out = isnan(middle) ? (struct opc_interval){middle, middle, middle}
                             : interval_around(middle, times, at);
    opc_free(scratch.v);
    opc_free(scratch.rest);
    opc_free(scratch.times);
    opc_free(scratch.iqm);
    opc_free(at);
    return whole ? OPC_OK
                 : opc_fail(err, OPC_ENOMEM, "not enough memory for a bootstrap of %d runs", runs);
}

/* ---- shares ---------------------------------------------------------------------------------- */

/* With i scores of x and k of y, the largest of all is one of x in i / (i + k) of cases, and then
 * above all of y: p(i, k, u) = i / (i + k) p(i - 1, k, u - k) + k / (i + k) p(i, k - 1, u). Row k
 * of p is overwritten from its end, so that p(i - 1, k, .) is still there where it is read. */
int opc_rank_chance(int n, int m, double won, double *out, struct opc_err *err)
{
    const int pairs = n * m, row = pairs + 1;
    double *p = opc_alloc((size_t)(m + 1) * (size_t)row, sizeof *p);
    if (!p)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a rank test of %d runs", n + m);
    for (int k = 0; k <= m; k++)
        p[k * row] = 1;
    for (int i = 1; i <= n; i++)
        for (int k = 1; k <= m; k++)
            for (int u = pairs; u >= 0; u--) {
                const double largest = (double)i / (i + k);
                const double of_x = u >= k ? p[k * row + u - k] : 0, of_y = p[(k - 1) * row + u];
                p[k * row + u] = largest * of_x + (1 - largest) * of_y;
            }
    *out = 0;
    for (int u = (int)floor(won); u <= pairs; u++)
        *out += p[m * row + u];
    opc_free(p);
    return OPC_OK;
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
