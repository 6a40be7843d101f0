/* SPDX-License-Identifier: MIT */
/* How many seeds would decide a claim (seeds.h). study/curves and study/probe call it.
 *
 * Invariant: a number of seeds is above that of today, because today's have not decided. */
#include "study/exhibit/seeds.h"

#include <math.h>
#include <stdio.h>

enum { MOST_SEEDS = 1000 }; /* more than that nobody runs */

double opc_seeds_needed(int now, int needed, double half, double distance)
{
    if (!(distance > 0))
        return HUGE_VAL;
    const double ratio = half / distance;
    return fmax(ceil(now * ratio * ratio), fmax(needed, now + 1));
}

double opc_seeds_to_clear(const struct opc_interval *d, double level, int now, int needed)
{
    /* The end that points to the level has to come nearer to the middle. */
    const double half = d->middle > level ? d->middle - d->low : d->high - d->middle;
    return opc_seeds_needed(now, needed, half, fabs(d->middle - level));
}

int opc_seeds_to_solve(int hits, int n)
{
    int up = 0, down = 0;
    while (4 * (hits + up) < 3 * (n + up))
        up++;
    while (2 * hits >= n + down)
        down++;
    return n + (up < down ? up : down);
}

void opc_seeds_join(struct opc_seeds_all *all, double seeds, bool agrees)
{
    if (agrees)
        all->agree = fmax(all->agree, seeds);
    else
        all->oppose = all->opposed ? fmin(all->oppose, seeds) : seeds;
    all->opposed = all->opposed || !agrees;
}

double opc_seeds_joined(const struct opc_seeds_all *all)
{
    return all->opposed ? all->oppose : all->agree;
}

void opc_seeds_say(double seeds, int now, const char *what, const char *even,
                   char out[OPC_SEEDS_TEXT])
{
    if (isinf(seeds))
        snprintf(out, OPC_SEEDS_TEXT, "; %s, from which no number of seeds follows",
                 even ? even : "so far both are equal");
    else if (seeds > MOST_SEEDS)
        snprintf(out, OPC_SEEDS_TEXT, "; more than %d %s would be needed", MOST_SEEDS, what);
    else
        snprintf(out, OPC_SEEDS_TEXT,
                 "; about %.0f %s instead of %d would decide it, if this stays", seeds, what, now);
}

void opc_seeds_say_missing(int missing, char out[OPC_SEEDS_TEXT])
{
    snprintf(out, OPC_SEEDS_TEXT, "; nothing is decided while %d run%s missing", missing,
             missing == 1 ? " is" : "s are");
}

void opc_seeds_say_unable(int missing, int runs, char out[OPC_SEEDS_TEXT])
{
    *out = '\0';
    if (missing)
        opc_seeds_say_missing(missing, out);
    else if (runs < OPC_FEWEST_SEEDS)
        snprintf(out, OPC_SEEDS_TEXT, "; no fewer than %d seeds instead of %d could decide it",
                 OPC_FEWEST_SEEDS, runs);
}

enum opc_verdict opc_seeds_verdict(int holds, int runs)
{
    return 4 * holds >= 3 * runs ? OPC_VERDICT_SUPPORTED
           : 2 * holds < runs    ? OPC_VERDICT_NOT_SUPPORTED
                                 : OPC_VERDICT_UNDECIDED;
}
