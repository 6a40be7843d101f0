/* SPDX-License-Identifier: MIT */
/* Swing a rod up and hold it there, with a motor too weak to lift it at once (the classic control
 * task of gym, Pendulum-v1).
 *
 * A rod of mass m and length l hangs on a motor; theta = 0 is upright:
 *
 *     theta'' = 3 g / (2 l) sin(theta) + 3 / (m l^2) u,   |u| <= 2 N m, |theta'| <= 8 rad/s
 *
 * with g = 10, m = l = 1, integrated by semi-implicit Euler at dt = 0.05 s.
 *
 * The full state is (theta, omega) with theta unbounded; the observation has its cosine and sine.
 * step and reward share reward_of, so that imagined rewards agree with real ones. */
#include "env/types.h"
#include "opc/mem.h"

#include <math.h>

enum { STEPS = 200 };
static const double PI = 3.14159265358979323846;
/* s, m/s^2, kg, m, rad/s, N m */
static const double DT = 0.05, G = 10, M = 1, L = 1, FASTEST = 8, STRONGEST = 2;
static const double LOW[1] = {-2}, HIGH[1] = {2};
static const struct opc_env_angle angles[] = {{0, 1}}; /* cosine at 0, sine at 1 */

struct pendulum {
    struct opc_env env;
    double theta, omega;
};

/* To [-max, max]. */
static double clip(double x, double max)
{
    return x < -max ? -max : x > max ? max : x;
}

static int pendulum_open(const struct opc_env_type *type, const double *arg, struct opc_env **out,
                         struct opc_err *err)
{
    (void)arg;
    struct pendulum *pendulum = opc_alloc(1, sizeof *pendulum);
    if (!pendulum)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %s", type->name);
    pendulum->env = (struct opc_env){.obs = 3,
                                     .act = 1,
                                     .state = 2,
                                     .steps = STEPS,
                                     .dt = DT,
                                     .low = LOW,
                                     .high = HIGH,
                                     .angles = angles,
                                     .n_angles = 1};
    *out = &pendulum->env;
    return OPC_OK;
}

static void pendulum_close(struct opc_env *env)
{
    opc_free(env);
}

/* The angle as cosine and sine, so that the observation has no jump at pi. */
static void pendulum_observe(const struct pendulum *e, double *obs)
{
    obs[0] = cos(e->theta);
    obs[1] = sin(e->theta);
    obs[2] = e->omega;
}

static int pendulum_start(struct opc_env *env, const double *state, double *obs,
                          struct opc_err *err)
{
    (void)err;
    struct pendulum *e = (struct pendulum *)env;
    /* Without a state it hangs at rest. */
    e->theta = state ? state[0] : PI;
    e->omega = state ? state[1] : 0;
    pendulum_observe(e, obs);
    return OPC_OK;
}

/* Anywhere on the circle, turning slowly. */
static int pendulum_reset(struct opc_env *env, struct opc_rng *rng, double *obs,
                          struct opc_err *err)
{
    const double theta = opc_env_uniform(rng, PI), omega = opc_env_uniform(rng, 1);
    return pendulum_start(env, (const double[]){theta, omega}, obs, err);
}

static void pendulum_state(const struct opc_env *env, double *state)
{
    const struct pendulum *e = (const struct pendulum *)env;
    state[0] = e->theta;
    state[1] = e->omega;
}

/* theta is given by its cosine and sine, because an imagined state has nothing else; atan2 puts it
 * into [-pi, pi]. */
static double reward_of(double cosine, double sine, double omega, double u)
{
    const double theta = atan2(sine, cosine);
    return -(theta * theta + 0.1 * omega * omega + 0.001 * u * u);
}

static int pendulum_step(struct opc_env *env, const double *action, struct opc_outcome *out,
                         struct opc_err *err)
{
    (void)err;
    struct pendulum *pendulum = (struct pendulum *)env;
    const double u = clip(action[0], STRONGEST), sine = sin(pendulum->theta);
    /* The reward belongs to the state before the step. */
    out->reward = reward_of(cos(pendulum->theta), sine, pendulum->omega, u);
    /* Semi-implicit: theta moves with the new velocity. */
    pendulum->omega =
        clip(pendulum->omega + (3 * G / (2 * L) * sine + 3 / (M * L * L) * u) * DT, FASTEST);
    pendulum->theta += pendulum->omega * DT;
    pendulum_observe(pendulum, out->obs);
    return OPC_OK;
}

/* s has cosine, sine and velocity; a is in [-1, 1] and becomes a torque. */
static void pendulum_reward(const struct opc_env *env, int n, const float *s, const float *a,
                            const float *next, float *out)
{
    (void)next;
    for (int i = 0; i < n; i++) {
        const float *o = s + 3 * i;
        double u;
        opc_env_scale(env, &a[i], &u);
        out[i] = (float)reward_of((double)o[0], (double)o[1], (double)o[2], u);
    }
}

/* The rod, 1.2 m above the floor at its motor, and the axis of the motor. */
static void pendulum_draw(const struct opc_env *env, struct opc_scene *scene)
{
    const struct pendulum *e = (const struct pendulum *)env;
    const double x = L * sin(e->theta), z = L * cos(e->theta);
    *scene = (struct opc_scene){
        .n = 2,
        .shape = {{{0, 0, 1.2}, {x, 0, 1.2 + z}, 0.06, {0.90f, 0.46f, 0.24f}},
                  {{0, -0.08, 1.2}, {0, 0.08, 1.2}, 0.08, {0.22f, 0.38f, 0.54f}}},
        .centre = {0, 0, 1.2},
        .width = 3.2};
}

const struct opc_env_type opc_env_pendulum = {
    .name = "pendulum",
    .page =
        &(const struct opc_env_page){
            .summary = "swing a rod up and hold it, with a weak motor",
            .observation = "cos theta, sin theta, angular velocity; theta = 0 is upright",
            .action = "torque, clipped to its range",
            .reward = "-(theta^2 + 0.1 omega^2 + 0.001 u^2) of the state the step is taken in, "
                      "theta in [-pi, pi]",
            .termination = "never",
            .reset = "theta uniform on the circle, omega uniform on [-1, 1]; without noise it "
                     "hangs at rest"},
    .open = pendulum_open,
    .reset = pendulum_reset,
    .step = pendulum_step,
    .close = pendulum_close,
    .start = pendulum_start,
    .state = pendulum_state,
    .reward = pendulum_reward,
    .draw = pendulum_draw,
};
