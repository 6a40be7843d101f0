/* SPDX-License-Identifier: MIT */
/* The stochastic double integrator of Figure 1b: a mass on a line, pushed and shaken.
 *
 *     (x, v)' = A (x, v) + B a + w,   A = [1 dt; 0 1], B = (dt^2 / 2, dt),
 *     w ~ N(0, diag(0.005^2, 0.05^2)), dt = 0.1 s
 *
 * from (1, 0). The figure needs no reward; ours is the usual quadratic one. With action_noise = X
 * the standard deviations are multiplied by 1 + X |a|: noise that depends on the action, which eq.
 * 5 replays as it was recorded with another one.
 *
 * The noise of an episode comes from a stream of its own, so an episode replays bit for bit from
 * the stream of its reset; opc_env_start switches the noise off. */
#include "env/types.h"
#include "num/normal.h"
#include "opc/mem.h"

#include <math.h>

enum { STEPS = 60 };
static const double DT = 0.1;
static const double SPREAD[2] = {0.005, 0.05}; /* standard deviations of w */
static const double LOW[1] = {-2}, HIGH[1] = {2};

struct double_integrator {
    struct opc_env env;
    double noise;        /* factor of w */
    double action_noise; /* how much w grows with |a| */
    double x, v;
    bool shaken; /* this episode has noise: it was reset, not started at a given state */
    struct opc_rng rng;
};

static const struct opc_env_arg args[] = {
    {"noise", NULL, "1", 0, 100, "factor of the process noise"},
    {"action_noise", NULL, "0", 0, 100, "X: the noise is multiplied by 1 + X |a|"},
    {0},
};

static int double_integrator_open(const struct opc_env_type *type, const double *arg,
                                  struct opc_env **out, struct opc_err *err)
{
    struct double_integrator *integrator = opc_alloc(1, sizeof *integrator);
    if (!integrator)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %s", type->name);
    *integrator = (struct double_integrator){
        .env = {.obs = 2, .act = 1, .state = 2, .steps = STEPS, .dt = DT, .low = LOW, .high = HIGH},
        .noise = arg[0],
        .action_noise = arg[1]};
    *out = &integrator->env;
    return OPC_OK;
}

static void double_integrator_close(struct opc_env *env)
{
    opc_free(env);
}

/* At a given state, without noise. */
static int double_integrator_start(struct opc_env *env, const double *state, double *obs,
                                   struct opc_err *err)
{
    (void)err;
    struct double_integrator *e = (struct double_integrator *)env;
    e->shaken = false;
    obs[0] = e->x = state ? state[0] : 1;
    obs[1] = e->v = state ? state[1] : 0;
    return OPC_OK;
}

/* Always from (1, 0); only the noise differs between episodes. */
static int double_integrator_reset(struct opc_env *env, struct opc_rng *rng, double *obs,
                                   struct opc_err *err)
{
    struct double_integrator *e = (struct double_integrator *)env;
    double_integrator_start(env, NULL, obs, err);
    e->shaken = e->noise > 0;
    e->rng = opc_env_noise_stream(rng);
    return OPC_OK;
}

static void double_integrator_state(const struct opc_env *env, double *state)
{
    const struct double_integrator *e = (const struct double_integrator *)env;
    state[0] = e->x;
    state[1] = e->v;
}

/* Of the state a step is taken in, and its action. */
static double reward_of(double x, double v, double a)
{
    return -(x * x + 0.1 * v * v + 0.01 * a * a);
}

static int double_integrator_step(struct opc_env *env, const double *action,
                                  struct opc_outcome *out, struct opc_err *err)
{
    (void)err;
    struct double_integrator *integrator = (struct double_integrator *)env;
    const double a = action[0];
    /* w[0] shakes x and w[1] shakes v, both as standard normal numbers. */
    float w[2] = {0, 0};
    if (integrator->shaken)
        opc_rng_normals(&integrator->rng, 2, w);
    /* Exactly the factor of w where the noise does not depend on the action. */
    const double scale = integrator->noise * (1 + integrator->action_noise * fabs(a));
    out->reward = reward_of(integrator->x, integrator->v, a);
    /* x first: it moves with the old velocity. */
    integrator->x += DT * integrator->v + DT * DT / 2 * a + scale * SPREAD[0] * (double)w[0];
    integrator->v += DT * a + scale * SPREAD[1] * (double)w[1];
    out->obs[0] = integrator->x;
    out->obs[1] = integrator->v;
    return OPC_OK;
}

static void double_integrator_reward(const struct opc_env *env, int n, const float *s,
                                     const float *a, const float *next, float *out)
{
    (void)next;
    for (int i = 0; i < n; i++) {
        /* a is in [-1, 1]; the formula needs the units of the task. */
        double action;
        opc_env_scale(env, &a[i], &action);
        out[i] = (float)reward_of((double)s[2 * i], (double)s[2 * i + 1], action);
    }
}

const struct opc_env_type opc_env_double_integrator = {
    .name = "double_integrator",
    .page =
        &(const struct opc_env_page){
            .summary = "a mass on a line, pushed and shaken (Figure 1b)",
            .observation = "position x, velocity v",
            .action = "acceleration, used as it is",
            .reward = "-(x^2 + 0.1 v^2 + 0.01 a^2) of the state the step is taken in",
            .termination = "never",
            .reset = "x = 1, v = 0; each step adds noise of standard deviation 0.005 to x and "
                     "0.05 to v"},
    .args = args,
    .open = double_integrator_open,
    .reset = double_integrator_reset,
    .step = double_integrator_step,
    .close = double_integrator_close,
    .start = double_integrator_start,
    .state = double_integrator_state,
    .reward = double_integrator_reward,
};
