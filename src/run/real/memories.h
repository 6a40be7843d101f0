/* SPDX-License-Identifier: MIT */
/* run/real/memories.h - acting in a batch of episodes (env/many.h) with an agent that remembers
 * something of each of them: a planner. */
#ifndef OPC_RUN_MEMORIES_H
#define OPC_RUN_MEMORIES_H

#include "env/many.h"
#include "opc/agent.h"

struct opc_memories {
    int n;
    struct opc_memory **row; /* [n]; NULL: the agent remembers nothing */
};

/* One for each of n rows, or none if the agent has no memory. */
int opc_memories_create(const struct opc_agent *, int n, struct opc_memories *out,
                        struct opc_err *err);
void opc_memories_free(struct opc_memories *); /* accepts one that is all zeros */
/* Writes the actions of the rows that still play; the others are left out, because planning is
 * expensive. seed, epoch and the episode's number name what is drawn without exploration. */
void opc_memories_act(const struct opc_memories *, const struct opc_agent *, struct opc_env_batch *,
                      bool explore, uint64_t seed, uint32_t epoch);

#endif
