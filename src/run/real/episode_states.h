/* SPDX-License-Identifier: MIT */
/* run/real/episode_states.h - acting in a batch of episodes (env/many.h) with an agent that
 * remembers something of each of them: a planner. */
#ifndef OPC_RUN_EPISODE_STATES_H
#define OPC_RUN_EPISODE_STATES_H

#include "env/many.h"
#include "opc/agent.h"

struct opc_episode_states {
    int n;
    struct opc_episode_state **row; /* [n]; NULL: the agent remembers nothing */
};

/* One for each of n rows, or none if the agent has no memory. */
int opc_episode_states_create(const struct opc_agent *, int n, struct opc_episode_states *out,
                              struct opc_err *err);
void opc_episode_states_free(struct opc_episode_states *); /* accepts one that is all zeros */
/* Writes the actions of the rows that still play; the others are left out, because planning is
 * expensive. seed, epoch and the episode's number name what is drawn without exploration. */
void opc_episode_states_act(const struct opc_episode_states *, const struct opc_agent *,
                            struct opc_env_batch *, bool explore, uint64_t seed, uint32_t epoch);

#endif
