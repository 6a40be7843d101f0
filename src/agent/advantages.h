/* SPDX-License-Identifier: MIT */
/* agent/advantages.h - generalised advantage estimation (Schulman et al. 2016), for the on-policy
 * agents: PPO and the TRPO of SLBO. */
#ifndef OPC_AGENT_ADVANTAGES_H
#define OPC_AGENT_ADVANTAGES_H

#include <stdbool.h>

/* A trajectory of n steps, from reward[n] and the critic's value[n + 1] of its states. value[n]
 * counts only if the last step is not terminal. */
void opc_advantages(int n, const double *reward, const double *value, bool terminal,
                    double discount, double lambda, double *advantage);

#endif
