/* SPDX-License-Identifier: MIT */
/* study/probe/probe_states.h - branched rollouts of logged models beside what really happened: what
 * Figures 13 and 14 are drawn from. */
#ifndef OPC_STUDY_PROBE_STATES_H
#define OPC_STUDY_PROBE_STATES_H

#include "study/probe/probe.h"

enum { OPC_BY_LEARNED, OPC_BY_CORRECTED, OPC_BY };       /* eq. 2, eq. 5 */
enum { OPC_TRUE_RECORDED, OPC_TRUE_PLAYED, OPC_TRUTHS }; /* see struct opc_states */
extern const char *const OPC_BY_NAME[OPC_BY];            /* "MBPO(*)", "OPC" */
extern const char *const OPC_TRUTH_NAME[OPC_TRUTHS];     /* "recording", "environment" */

/* Rollouts of all runs together, run after run. Arrays are [rows][horizon + 1][obs], NaN where a
 * rollout has ended. What is true is either how the recording went on, with the actions it had
 * (the paper's), or what the environment does with the rollout's own actions. */
struct opc_states {
    int runs, each, rows, horizon, obs; /* rows = runs * each */
    double *predicted[OPC_BY];
    double *truth[OPC_TRUTHS][OPC_BY];
    /* [rows] steps until it ended in a terminal state, imagined or on the environment with the
     * same actions; 0: it did not */
    int *ended[OPC_BY], *played_ended[OPC_BY];
    int lost[OPC_BY]; /* rollouts that became infinite */
    /* Largest error by eq. 5 where nothing is random but the starts: recorded without
     * exploration, followed without. */
    double without_noise;
    int epoch_of_model, epoch_of_policy; /* of the first run */
};

int opc_states_collect(const struct opc_request *, const struct opc_probe_states_config *,
                       struct opc_states *out, struct opc_err *err);
/* Rollouts that meet a terminal state before the horizon, where the environment with the same
 * actions has not. */
int opc_states_too_early(const struct opc_states *, int by);
void opc_states_free(struct opc_states *);
/* true - predicted */
double opc_states_error(const struct opc_states *, int truth, int by, int row, int h, int k);
/* What reader and pictures should know about them. */
void opc_states_notes(const struct opc_states *, struct opc_exhibit *);

#endif
