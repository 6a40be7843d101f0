/* SPDX-License-Identifier: MIT */
/* opc/agent.h - what turns experience into a policy.
 *
 * An agent acts, and improves from what the loop brings it. It does not know whether its batches
 * were recorded or imagined. */
#ifndef OPC_AGENT_H
#define OPC_AGENT_H

#include "opc/err.h"
#include "opc/rng.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct opc_pool;
struct opc_agent;

/* Draws a batch of n steps. Each is 2 obs + act + 2 floats, s, a (in [-1, 1]), r, 1 if the task
 * ended in s' and else 0, s', which stay as they are until the next draw: steps are not copied, the
 * agent reads them where they lie, with all its threads. The stream names the gradient step. */
typedef void opc_draw_fn(void *ctx, int n, struct opc_rng *, const float **step);

struct opc_feed {
    opc_draw_fn *draw;
    void *ctx;
    uint64_t seed;
    uint32_t epoch, first; /* update k draws from streams (seed, use, epoch, first + k) */
    bool (*stop)(void *);  /* asked now and then: true returns OPC_ESTOPPED; may be NULL */
    void *stop_ctx;
};

struct opc_agent_report { /* means over the updates of one improve */
    double q, q_target, critic_loss, actor_loss, alpha, entropy;
};

struct opc_agent_args {
    int obs, act;
    uint64_t seed;
    const void *config;    /* the agent's own settings; NULL: its defaults */
    double target_entropy; /* what "auto" stands for on this task; NaN: -act */
    struct opc_pool *pool; /* may be NULL; borrowed */
};

struct opc_agent_type {
    const char *name;
    int (*create)(const struct opc_agent_args *, struct opc_agent **out, struct opc_err *err);
    /* Not from two threads at once: scratch belongs to the agent. */
    void (*act)(const struct opc_agent *, int n, const float *state, bool explore,
                struct opc_rng *rng, float *action);
    int (*improve)(struct opc_agent *, const struct opc_feed *, int updates,
                   struct opc_agent_report *, struct opc_err *err);
    void (*destroy)(struct opc_agent *);
    /* As in opc/predictor.h: everything a later call depends on. */
    int (*state)(struct opc_agent *,
                 int (*visit)(void *ctx, const char *name, void *data, size_t bytes,
                              struct opc_err *),
                 void *ctx, struct opc_err *);
    /* Optional; NULL: it has no deviation to scale. See opc_agent_act_spread. */
    void (*act_spread)(const struct opc_agent *, int n, const float *state, float spread,
                       struct opc_rng *rng, float *action);
};

struct opc_agent { /* first member of every agent */
    const struct opc_agent_type *type;
    int obs, act;
};

OPC_API int opc_agent_create(const char *name, const struct opc_agent_args *,
                             struct opc_agent **out, struct opc_err *err);
OPC_API void opc_agent_destroy(struct opc_agent *); /* NULL is fine */
/* state[n][obs] to action[n][act] in [-1, 1]; explore draws from the policy with rng[n], otherwise
 * its mode and rng may be NULL. */
OPC_API void opc_agent_act(const struct opc_agent *, int n, const float *state, bool explore,
                           struct opc_rng *rng, float *action);
/* Draws from the policy with its deviation (before squashing) multiplied by `spread`: 1 is
 * opc_agent_act with explore, 0 its mode. Only where the type has act_spread. */
OPC_API void opc_agent_act_spread(const struct opc_agent *, int n, const float *state, float spread,
                                  struct opc_rng *rng, float *action);
OPC_API int opc_agent_improve(struct opc_agent *, const struct opc_feed *, int updates,
                              struct opc_agent_report *, struct opc_err *err);

#ifdef __cplusplus
}
#endif
#endif
