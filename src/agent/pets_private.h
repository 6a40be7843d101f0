/* SPDX-License-Identifier: MIT */
/* agent/pets_private.h - the planner's memory, shared by pets.c (plans and life) and pets_walk.c
 * (what a plan would earn). Nobody else includes it. */
#ifndef OPC_AGENT_PETS_PRIVATE_H
#define OPC_AGENT_PETS_PRIVATE_H

#include "agent/pets.h"
#include "agent/pets_reference.h"
#include "num/solve/cem.h"
#include "opc/bounds.h"
#include "opc/rng.h"

/* What planning works on; one plan at a time. Rows are particles. */
struct plan {
    struct opc_cem *cem;
    float *state, *next;       /* [rows][obs] */
    float *action;             /* [rows][act] */
    float *reward, *work;      /* [rows], [rows][obs + 1] */
    int *elite;                /* [rows] the member that moves the particle */
    int *episode, *time;       /* [rows] the recorded step it walks along */
    struct opc_rng *noise;     /* [rows] */
    struct opc_rng *candidate; /* [candidates] */
    double *total;             /* [rows] sum of rewards */
    bool *alive, *terminal;    /* [rows] */
    const float *start;        /* the current state */
    float *centre, *inverse;   /* [obs] the z of feedback is (s - centre) * inverse */
    float *gain;               /* [act][obs] of the mean, for the real step */
    uint64_t key;              /* names what the plan draws */
    uint32_t iteration;
    int n, fresh; /* candidates of this iteration; those of them that are drawn */
    struct opc_pets_reference reference;
    double *mean;                           /* [H * act + gains] where the optimiser starts */
    float *shifted;                         /* [kept][H * act + gains] elites of the step before */
    int shifted_rows;                       /* how many there are */
    struct opc_bounds *bounds;              /* with bound_reward, of the recording; else NULL */
    float believed[2];                      /* the least and the greatest reward of a step */
    struct opc_episode_state *fresh_memory; /* for acting without one */
    /* Sums over the plans of real steps since the last report. */
    long plans;
    double sum[OPC_PETS_COLUMNS];
};

struct pets {
    struct opc_agent base;
    struct opc_pets_config config;
    const struct opc_transition *transition; /* what moves particles; borrowed, or `learned` */
    struct opc_transition *learned;          /* eq. 2 */
    struct opc_episodes *no_past;            /* of eq. 2 where there is no recording; else NULL */
    const struct opc_env *env;               /* borrowed; NULL: nothing is terminal */
    struct opc_pool *pool;                   /* borrowed */
    uint64_t seed;
    int members; /* that predict */
    struct plan *plan;
};

/* Draws the fresh candidates of an iteration and sets J of all of them: H steps of all their
 * particles. What is not finite stays so. */
void opc_pets_simulate(const struct pets *);
/* Adds what the feedback says in state s to an action, and clips it. */
void opc_pets_add_feedback(const struct pets *, const float *gain, const float *s, float *action);

#endif
