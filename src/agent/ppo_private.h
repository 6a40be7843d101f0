/* SPDX-License-Identifier: MIT */
/* agent/ppo_private.h - the agent's memory, shared by ppo.c (the policy, life), ppo_table.c (from
 * trajectories to advantages) and ppo_update.c (losses and gradient steps). Nobody else includes
 * it. */
#ifndef OPC_AGENT_PPO_PRIVATE_H
#define OPC_AGENT_PPO_PRIVATE_H

#include "agent/ppo.h"
#include "num/adam.h"
#include "num/network.h"
#include "num/running.h"

/* Outside of gradient steps, ROWS states go through the networks at a time. */
enum { P = OPC_PANEL, CHUNK = 8, ROWS = CHUNK * P };

#define HALF_LOG_2PI 0.91893853320467274178 /* 1/2 log(2 pi), of the Gaussian's density */

/* Columns of the table after s and a. LOGP and VALUE come from the networks before the improvement,
 * ADVANTAGE is A and RETURN is R. */
enum { LOGP, ADVANTAGE, RETURN, VALUE, EXTRA };

struct ppo {
    struct opc_agent base;
    struct opc_ppo_config config;
    struct opc_mlp *policy, *critic; /* s to the means of a; s to V */
    float *log_std;                  /* [act] */
    struct opc_adam *policy_adam, *critic_adam, *std_adam;
    /* As in gym's normalisation wrappers. */
    struct opc_running *obs_stats;   /* [obs] */
    struct opc_running return_stats; /* of discounted returns, for the scale of rewards */

    int max_steps; /* of one improvement */
    int columns;   /* obs + act + EXTRA */
    /* [2 max_steps][columns] normalised s, a and the EXTRA columns, trajectory after trajectory.
     * The last state of a trajectory has a row, too, of which only s and VALUE mean anything. */
    float *table;
    int *step;                          /* [max_steps] rows of the table that are steps */
    double *reward, *value, *advantage; /* [max_steps + 1] of one trajectory */

    /* What one gradient step works on. */
    float *batch; /* [panels][columns][16] */
    struct opc_tape *policy_tape, *critic_tape;
    float *policy_grad, *critic_grad, *std_grad;
    double *dlog_std; /* [act] */
    struct opc_arena scratch;
};

/* ---- ppo.c ---- */

/* Entry k of an observation, normalised and clipped at clip_normalized standard deviations. */
float opc_ppo_normalized_obs(const struct ppo *, int k, float s);
/* log pi(a) of the diagonal Gaussian; `stride` floats lie between the entries of mean and of a. */
double opc_ppo_log_probability(const struct ppo *, const float *mean, const float *a,
                               size_t stride);

/* ---- ppo_table.c ---- */

/* Updates the statistics of the observations with the states in which an action was chosen; the
 * last state of a trajectory is not one of them. */
void opc_ppo_update_obs_stats(struct ppo *, const struct opc_feed *);
/* Makes the table of the epoch's trajectories, with the networks and the statistics as they are.
 * Returns the number of steps, whose rows are listed in ppo->step. */
int opc_ppo_fill_table(struct ppo *, const struct opc_feed *);

/* ---- ppo_update.c ---- */

/* One improvement (opc_agent_type.improve): the trajectories of this epoch become a table, which is
 * passed over update_epochs times in minibatches. The report holds means over its gradient steps,
 * and the extremes of the targets. */
int opc_ppo_improve(struct opc_agent *, const struct opc_feed *, int updates,
                    struct opc_agent_report *report, struct opc_err *err);

#endif
