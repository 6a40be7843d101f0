/* SPDX-License-Identifier: MIT */
/* agent/policy.h - the policy of SAC, a squashed Gaussian, and a helper for the state of all
 * agents.
 *
 * The network maps s to the means and log-deviations of a Gaussian, whose draws go through tanh
 * (num/gauss.h), so actions lie in (-1, 1). PPO has a policy of its own, without squashing. */
#ifndef OPC_AGENT_POLICY_H
#define OPC_AGENT_POLICY_H

#include "num/gauss.h"
#include "num/mlp.h"

struct opc_policy {
    int obs, act;
    struct opc_mlp *net; /* obs to act means and act log-deviations */
    int threads;
    struct opc_arena *scratch; /* [threads] */
};

/* hidden[depth]: widths of the hidden layers. threads: how many threads at most ask it at once, the
 * size of the pools that opc_policy_act will be given. */
int opc_policy_create(int obs, int act, const int *hidden, int depth, int threads,
                      struct opc_policy **out, struct opc_err *err);
void opc_policy_destroy(struct opc_policy *); /* NULL is fine */
/* As opc_agent_act. Rows go through the network 8 panels at a time. Row i draws from rng[i]. */
void opc_policy_act(const struct opc_policy *, int n, const float *state, bool explore,
                    struct opc_rng *rng, float *action, struct opc_pool *);
/* As opc_agent_act_spread. */
void opc_policy_act_spread(const struct opc_policy *, int n, const float *state, float spread,
                           struct opc_rng *rng, float *action, struct opc_pool *);

/* The parts an agent's state consists of, for opc_agent_type.state: opc_visit_parts visits them in
 * order until a visit fails, and returns its code. */
struct opc_state_part {
    const char *name;
    void *data;
    size_t bytes;
};
int opc_visit_parts(const struct opc_state_part *, size_t n,
                    int (*visit)(void *, const char *, void *, size_t, struct opc_err *), void *ctx,
                    struct opc_err *err);

#endif
