/* SPDX-License-Identifier: MIT */
/* study/probe/probe_fit.h - what the fits of `opc probe RUN fit` came to (probe_fit.c), and what is
 * made of it: tables, pictures and a claim (probe_fit_show.c). */
#ifndef OPC_STUDY_PROBE_FIT_H
#define OPC_STUDY_PROBE_FIT_H

#include "num/stats.h"
#include "study/probe/probe.h"

enum { OPC_FIT_LEARNED, OPC_FIT_CORRECTED, OPC_FIT_WAYS };  /* eq. 2, eq. 5 */
enum { OPC_FIT_ONE_STEP, OPC_FIT_H_STEPS, OPC_FIT_ERRORS }; /* after which the error is measured */
enum { OPC_FIT_RULES = OPC_LIST_MAX };

/* What came out of one fit. */
struct opc_fit_outcome {
    double seconds; /* of the processor */
    int rows, passes, steps;
    double error[OPC_FIT_WAYS][OPC_FIT_ERRORS]; /* NaN: nothing could be tested */
};

struct opc_fit_results {
    int rules, asked;                      /* complete ones, and as many as there were to be */
    const char *const *rule;               /* [rules] as given */
    const char (*label)[OPC_TEXT_SIZE];    /* [rules] in the legend: without what all rules share */
    const char *shared;                    /* what they share; "": nothing */
    const int *alike;                      /* [rules] the first one with the same networks */
    int first, fits;                       /* fits after epochs first .. first + fits - 1 */
    const struct opc_fit_outcome *outcome; /* [rules][fits] */
    int starts, horizon;                   /* of the test, and the noise on its actions */
    double noise;
    uint64_t seed;
};

int opc_probe_fit_show(const struct opc_fit_results *, struct opc_exhibit *, struct opc_err *err);

/* Whether a cheaper fit hurts eq. 5 less than eq. 2. A rule is cheaper than the first one with the
 * same networks if its median fit has fewer steps. For each of its fits but the first,
 * *advantage has by how many percent of the full fit's error that of eq. 2 rises more than that of
 * eq. 5, the mean over one and H steps: its interquartile mean and 95 % interval over fits. Returns
 * how many fits there were. */
int opc_probe_fit_advantage(const struct opc_fit_results *, struct opc_interval *advantage,
                            struct opc_err *err);

#endif
