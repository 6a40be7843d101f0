/* SPDX-License-Identifier: MIT */
/* study/probe/probe_states.h - branched rollouts of logged models along the real trajectory: the
 * data of Figures 13 and 14. Shared by probe_collect.c, probe_states.c and probe_trajectories.c. */
#ifndef OPC_STUDY_PROBE_STATES_H
#define OPC_STUDY_PROBE_STATES_H

#include "study/probe/probe.h"

enum { OPC_BY_LEARNED, OPC_BY_CORRECTED, OPC_BY };       /* eq. 2, eq. 5 */
enum { OPC_TRUE_RECORDED, OPC_TRUE_PLAYED, OPC_TRUTHS }; /* see struct opc_states */
extern const char *const OPC_BY_NAME[OPC_BY];            /* "MBPO(*)", "OPC" */
extern const char *const OPC_TRUTH_NAME[OPC_TRUTHS];     /* "recording", "environment" */

/* Rollouts of all runs, run after run. Arrays are [rows][horizon + 1][obs], NaN after the end of
 * a rollout. The truth is either how the recording continued, with its own actions (as in the
 * paper), or what the environment does with the rollout's actions. */
struct opc_states {
    int runs, each, rows, horizon, obs; /* rows = runs * each */
    int missing;                        /* runs of the request that are not there yet */
    bool own;                           /* eq. 2 has the model of a run of its own */
    double *predicted[OPC_BY];
    double *truth[OPC_TRUTHS][OPC_BY];
    /* [rows] number of steps until a terminal state, imagined or on the environment with the
     * same actions; 0: the rollout did not end in one */
    int *ended[OPC_BY], *played_ended[OPC_BY];
    int lost[OPC_BY]; /* number of rollouts that became infinite */
    /* Largest error by eq. 5 if only the starts are random: recorded and followed without
     * exploration noise. Lemma 1 says 0; NaN: it says nothing about this policy. */
    double without_noise;
    int epoch_of_model, epoch_of_policy; /* of the first run */
};

/* The runs of a request, as the two parts of the figures use them. */
struct opc_states_runs {
    int n;      /* runs whose policies play, and whose models both equations use */
    char **run; /* [n] all of the request, or those of OPC if there are some of MBPO(*), too */
    /* Each method with the model that it logged itself: run [i] of OPC plays and is followed by eq.
     * 5; eq. 2 has the model of the run of MBPO(*) with the same task and seed. */
    int pairs;          /* 0: the request has runs of one method only */
    char **opc, **mbpo; /* [pairs] */
};
/* The names stay the request's. */
int opc_states_runs_find(const struct opc_request *, struct opc_states_runs *out,
                         struct opc_err *err);
void opc_states_runs_free(struct opc_states_runs *);

/* Plays, branches and compares for every run, or with `own` for every pair; see
 * probe_collect.c. */
int opc_states_collect(const struct opc_request *, const struct opc_states_runs *, bool own,
                       const struct opc_probe_states_config *, struct opc_states *out,
                       struct opc_err *err);
/* Number of rollouts of one run, or of all (run = -1), that meet a terminal state before the
 * horizon although the environment with the same actions does not. */
int opc_states_too_early(const struct opc_states *, int by, int run);
void opc_states_free(struct opc_states *);
/* true - predicted, of entry k after h steps */
double opc_states_error(const struct opc_states *, int truth, int by, int row, int h, int k);
/* Adds notes on how the rollouts were made. */
void opc_states_notes(const struct opc_states *, struct opc_exhibit *);

#endif
