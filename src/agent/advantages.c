/* SPDX-License-Identifier: MIT */
/* Generalised advantage estimation, backwards in time:
 *     delta_t = r_t + discount V(s_t+1) - V(s_t),   A_t = delta_t + discount lambda A_t+1.
 * A terminal last step has no V(s_n); any other end is bootstrapped with it. PPO calls it for
 * recorded trajectories, TRPO for imagined ones. */
#include "agent/advantages.h"

void opc_advantages(int n, const double *reward, const double *value, bool terminal,
                    double discount, double lambda, double *advantage)
{
    double next = 0;
    for (int t = n - 1; t >= 0; t--) {
        const bool ends = t == n - 1 && terminal;
        const double delta = reward[t] + (ends ? 0 : discount * value[t + 1]) - value[t];
        next = delta + (t == n - 1 ? 0 : discount * lambda * next);
        advantage[t] = next;
    }
}
