/* SPDX-License-Identifier: MIT */
#include "study/stats.h"

#include <math.h>
#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double opc_quantile(int n, double *v, double q)
{
    qsort(v, (size_t)n, sizeof *v, by_size);
    const double at = q * (n - 1);
    const int i = (int)at;
    return i + 1 < n ? v[i] + (at - i) * (v[i + 1] - v[i]) : v[n - 1];
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

double opc_round_step(double range, int most)
{
    if (!(range > 0))
        return 1;
    const double raw = range / most, power = pow(10, floor(log10(raw)));
    const double digit = raw / power;
    return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}
