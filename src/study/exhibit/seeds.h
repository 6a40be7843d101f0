/* SPDX-License-Identifier: MIT */
/* study/exhibit/seeds.h - how many seeds would decide a claim that is undecided, and how a sentence
 * says so. Claims about learning curves and probes of runs end with it.
 *
 * The width of an interval over n runs is as 1 / sqrt(n). So an interval clears a level after the
 * number of today's seeds times the square of how much narrower it has to be, if its middle stays
 * where it is. */
#ifndef OPC_STUDY_SEEDS_H
#define OPC_STUDY_SEEDS_H

#include "num/stats.h"
#include "study/exhibit/exhibit.h"

#include <stdbool.h>

enum { OPC_SEEDS_TEXT = 200 }; /* bytes of the end of a sentence */

/* Seeds after which an interval of this half width leaves the distance alone; at least `needed` and
 * more than the `now` there are. HUGE_VAL: never. */
double opc_seeds_needed(int now, int needed, double half, double distance);
/* Seeds after which an interval lies on that side of a level on which its middle is. HUGE_VAL: the
 * middle is the level itself. */
double opc_seeds_to_clear(const struct opc_interval *, double level, int now, int needed);
/* The fewest seeds with which `hits` of n could become 75 % or fall below 50 %. */
int opc_seeds_to_solve(int hits, int n);

/* Of several intervals all of which have to clear a level. If one lies on the wrong side so far,
 * the first such one to clear it decides, else the last one. Starts as {0}. */
struct opc_seeds_all {
    double agree, oppose;
    bool opposed;
};
void opc_seeds_join(struct opc_seeds_all *, double seeds, bool agrees);
double opc_seeds_joined(const struct opc_seeds_all *);

/* A number of seeds (`what`: or of repeats) as the end of a sentence, which begins with "; ".
 * `even` says what HUGE_VAL means; NULL: that both are equal so far. */
void opc_seeds_say(double seeds, int now, const char *what, const char *even,
                   char out[OPC_SEEDS_TEXT]);
/* For a claim that runs cannot decide while some are missing. */
void opc_seeds_say_missing(int missing, char out[OPC_SEEDS_TEXT]);
/* Why these runs cannot decide a claim about seeds, whatever they say: some are missing, or there
 * are fewer than OPC_FEWEST_SEEDS. "" if they can. */
enum { OPC_FEWEST_SEEDS = 3 };
void opc_seeds_say_unable(int missing, int runs, char out[OPC_SEEDS_TEXT]);
/* The verdict of a claim that holds in so many of the runs: in three quarters of them, it is
 * supported; in fewer than half, it is not. */
enum opc_verdict opc_seeds_verdict(int holds, int runs);

#endif
