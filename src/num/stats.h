/* SPDX-License-Identifier: MIT */
/* num/stats.h - statistics of small samples: means, quantiles, interquartile means and bootstrap
 * intervals for the curves of several seeds (Agarwal et al. 2021), and helpers for series. */
#ifndef OPC_NUM_STATS_H
#define OPC_NUM_STATS_H

#include "opc/rng.h"

double opc_mean(int n, const double *v);      /* n >= 1 */
double opc_deviation(int n, const double *v); /* of a sample: divided by n - 1; 0 when n is 1 */

/* The q-quantile, 0 <= q <= 1, of n >= 1 numbers, interpolated linearly between order statistics
 * (as numpy and R do by default). Sorts v. */
double opc_quantile(int n, double *v, double q);

/* The first of n ascending numbers that is not less than `at`; n: all are. */
int opc_lower_bound(int n, const double *x, double at);
/* y at some x, on straight lines between the points, whose x ascend; NaN before the first and after
 * the last. */
double opc_interpolate(int n, const double *x, const double *y, double at);

/* Interquartile mean: of the middle half, where a number that lies across its edge counts for the
 * part inside; n >= 1. Sorts v. */
double opc_iqm(int n, double *v);
/* The same of numbers in ascending order, of which v[i] is there times[i] times (NULL: each once);
 * NaN: none is there. */
double opc_iqm_repeated(int n, const double *v, const int *times);

/* The results of one method on several tasks, some seeds on each. */
struct opc_scores {
    int tasks;
    const int *n;           /* [tasks] */
    const double *const *v; /* [tasks][n[task]] */
};

/* A number and its 95 % interval by bootstrap: the seeds of each task are drawn again with
 * replacement, `resamples` times (0: 2000); the ends are quantiles of the resampled results. */
struct opc_interval {
    double middle, low, high; /* NaN when there is nothing to take it of */
};
/* The interquartile mean of all scores; tasks should be on one scale. */
int opc_iqm_interval(const struct opc_scores *, int resamples, struct opc_rng *,
                     struct opc_interval *out, struct opc_err *err);
/* P(X > Y), the probability that a run of x ends above one of y: over all pairs of a task, equal
 * ones counted half, then the mean over the tasks that both have been run on. */
int opc_improvement(const struct opc_scores *x, const struct opc_scores *y, int resamples,
                    struct opc_rng *, struct opc_interval *out, struct opc_err *err);

/* sum_t weight_t IQM_t, a difference of interquartile means or of several of them. Every task
 * counts by its own weight; tasks without runs are left out. NaN when all are. */
int opc_iqm_contrast(const struct opc_scores *, const double *weight, int resamples,
                     struct opc_rng *, struct opc_interval *out, struct opc_err *err);
/* S(y) - S(x), where S is the standard deviation of the interquartile means of the tasks, which
 * stand for the settings of a method here: above 0, results depend less on the setting by x. What
 * the runs of a task differ by is no part of S: S^2 is the variance of these means minus the mean
 * of their squared standard errors, or 0. NaN unless both have at least two tasks with runs. */
int opc_iqm_spread(const struct opc_scores *x, const struct opc_scores *y, int resamples,
                   struct opc_rng *, struct opc_interval *out, struct opc_err *err);

/* The rank test of Mann and Whitney: how often at least so many of the n m pairs of a run of x and
 * one of y are `won` by x, equal ones counted half, where chance alone orders the n + m runs. */
int opc_rank_chance(int n, int m, double won, double *out, struct opc_err *err);

/* A share of n >= 1 trials with its 95 % interval, by Wilson's score. */
struct opc_interval opc_share_interval(int hits, int n);

/* Moving average over `width` values around each (an odd number; the window shrinks at the ends).
 * NaN is left out, and stays where it is. out must not be v. */
void opc_smooth(int n, const double *v, int width, double *out);
int opc_smooth_check(int width, struct opc_err *err); /* OPC_EUSER: even */

/* The step between at most `max` round numbers that cover a range: 1, 2 or 5 times 10^k. */
double opc_round_step(double range, int max);

#endif
