/* SPDX-License-Identifier: MIT */
/* study/stats.h - what many numbers come to. */
#ifndef OPC_STUDY_STATS_H
#define OPC_STUDY_STATS_H

/* The q-quantile, 0 <= q <= 1, of n >= 1 numbers, interpolated linearly between order statistics
 * (as numpy and R do by default). Sorts v. */
double opc_quantile(int n, double *v, double q);

/* Moving average over `width` values around each (an odd number; the window shrinks at the ends).
 * NaN is left out, and stays where it is. out must not be v. */
void opc_smooth(int n, const double *v, int width, double *out);

/* The step between at most `most` round numbers that cover a range: 1, 2 or 5 times a power of 10.
 */
double opc_round_step(double range, int most);

#endif
