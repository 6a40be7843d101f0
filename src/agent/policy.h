/* SPDX-License-Identifier: MIT */
/* agent/policy.h - a squashed-Gaussian policy network, as every agent here has one. */
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

/* hidden: `depth` widths. threads: the most that will ever ask it at once. */
int opc_policy_create(int obs, int act, const int *hidden, int depth, int threads,
                      struct opc_policy **out, struct opc_err *err);
void opc_policy_destroy(struct opc_policy *); /* NULL is fine */
/* As opc_agent_act. Rows go through the network 8 panels at a time. */
void opc_policy_act(const struct opc_policy *, int n, const float *state, bool explore,
                    struct opc_rng *rng, float *action, struct opc_pool *);
/* As opc_agent_act_spread. */
void opc_policy_act_spread(const struct opc_policy *, int n, const float *state, float spread,
                           struct opc_rng *rng, float *action, struct opc_pool *);

/* What an agent's `state` is made of, and its visit, one after the other until one fails. */
struct opc_state_part {
    const char *name;
    void *data;
    size_t bytes;
};
int opc_visit_parts(const struct opc_state_part *, size_t n,
                    int (*visit)(void *, const char *, void *, size_t, struct opc_err *), void *ctx,
                    struct opc_err *err);

/* Widths of a network with these hidden layers. */
int opc_shape_from(int members, int in, const int *hidden, int depth, int out,
                   enum opc_activation activation, struct opc_mlp_shape *shape,
                   struct opc_err *err);

#endif
