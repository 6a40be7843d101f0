/* SPDX-License-Identifier: MIT */
/* The paper's 1-D example (section 4.1): s' = A s + B a, always from s = 1, rewarded in each state
 * by exp(-(s/sigma)^2), for T = 60 steps. The return of a = theta s is T J(theta), best at
 * theta = -A/B, where the state is 0 from the first step on.
 *
 * The reward of a step is that of the state it is taken in, so that a whole episode adds up
 * r(s_0) .. r(s_{T-1}). Actions are not clipped, because the example has to stay linear. */
#include "env/types.h"
#include "opc/mem.h"

#include <math.h>

/* T and sigma are the paper's symbols. */
enum { T = 60 };
static const double SIGMA = 0.05, START = 1;
static const double LOW[1] = {-2}, HIGH[1] = {2}; /* theta in [-2, 0] at |s| <= 1 */

struct linear1d {
    struct opc_env env;
    double A, B; /* of s' = A s + B a; the arguments A and B */
    double s;    /* the state, which is also the observation */
};

static const struct opc_env_arg args[] = {
    {"A", NULL, "1", -10, 10, "factor of the state"},
    {"B", NULL, "1", -10, 10, "factor of the action"},
    {0},
};

static int linear1d_open(const struct opc_env_type *type, const double *arg, struct opc_env **out,
                         struct opc_err *err)
{
    struct linear1d *e = opc_alloc(1, sizeof *e);
    if (!e)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %s", type->name);
    *e = (struct linear1d){
        .env = {.obs = 1, .act = 1, .state = 1, .steps = T, .low = LOW, .high = HIGH},
        .A = arg[0],
        .B = arg[1]};
    *out = &e->env;
    return OPC_OK;
}

static void linear1d_close(struct opc_env *env)
{
    opc_free(env);
}

static int linear1d_start(struct opc_env *env, const double *state, double *obs,
                          struct opc_err *err)
{
    (void)err;
    struct linear1d *e = (struct linear1d *)env;
    obs[0] = e->s = state ? state[0] : START;
    return OPC_OK;
}

/* The example has no noise: every episode starts at s = 1. */
static int linear1d_reset(struct opc_env *env, struct opc_rng *rng, double *obs,
                          struct opc_err *err)
{
    (void)rng;
    return linear1d_start(env, NULL, obs, err);
}

static void linear1d_state(const struct opc_env *env, double *state)
{
    state[0] = ((const struct linear1d *)env)->s;
}

/* r(s) of section 4.1: a narrow bump around 0. */
static double reward_at(double s)
{
    return exp(-(s / SIGMA) * (s / SIGMA));
}

static int linear1d_step(struct opc_env *env, const double *a, struct opc_outcome *out,
                         struct opc_err *err)
{
    (void)err;
    struct linear1d *e = (struct linear1d *)env;
    /* The reward belongs to the state before the step. */
    out->reward = reward_at(e->s);
    out->obs[0] = e->s = e->A * e->s + e->B * a[0];
    return OPC_OK;
}

/* The action is not part of the reward, so it need not be scaled. */
static void linear1d_reward(const struct opc_env *env, int n, const float *s, const float *a,
                            const float *next, float *out)
{
    (void)env, (void)a, (void)next;
    for (int i = 0; i < n; i++)
        out[i] = (float)reward_at((double)s[i]);
}

const struct opc_env_type opc_env_linear1d = {
    .name = "linear1d",
    .page = &(const struct opc_env_page){.summary = "the paper's 1-D example: s' = A s + B a",
                                         .observation = "s",
                                         .action = "a, used as it is",
                                         .reward =
                                             "exp(-(s / 0.05)^2) of the state the step is taken in",
                                         .termination = "never",
                                         .reset = "s = 1, without noise"},
    .args = args,
    .open = linear1d_open,
    .reset = linear1d_reset,
    .step = linear1d_step,
    .close = linear1d_close,
    .start = linear1d_start,
    .state = linear1d_state,
    .reward = linear1d_reward,
};
