/* SPDX-License-Identifier: MIT */
/* A task of your own, as a plugin: an arm on a motor that is to point at an angle and hold it.
 *
 *     cc -shared -fPIC -o arm.so arm.c $(pkg-config --cflags opc) -lm
 *     opc env check ./arm.so
 *     opc train arm.yaml --out run        (in arm.yaml: env.name: "./arm.so?mass=2")
 *
 * The arm hangs at angle 0; u is the motor's voltage, and the reward asks for 90 degrees:
 *
 *     J angle'' = k u - m g l sin(angle) - d angle'
 */
#include <opc/env.h>
#include <opc/mem.h>
#include <opc/rng.h>

#include <math.h>

static const double DT = 0.02, G = 9.81, LENGTH = 0.3, DAMPING = 0.05, TORQUE = 0.5;
static const double WANTED = 1.5707963267948966, FASTEST = 30;
static const double LOW[1] = {-12}, HIGH[1] = {12}; /* volts */

struct arm {
    struct opc_env env; /* comes first */
    double mass, angle, speed;
};

static int arm_open(const struct opc_env_type *type, const double *arg, struct opc_env **out,
                    struct opc_err *err)
{
    static const struct opc_env_angle ANGLES[] = {{0, 1}};
    struct arm *e = opc_alloc(1, sizeof *e);
    if (!e)
        return opc_fail(err, OPC_ENOMEM, "no room for %s", type->name);
    e->env = (struct opc_env){.obs = 3,
                              .act = 1,
                              .state = 2,
                              .steps = 200,
                              .dt = DT,
                              .low = LOW,
                              .high = HIGH,
                              .angles = ANGLES,
                              .n_angles = 1};
    e->mass = arg[0];
    *out = &e->env;
    return OPC_OK;
}

static void arm_close(struct opc_env *env)
{
    opc_free(env);
}

static int arm_start(struct opc_env *env, const double *state, double *obs, struct opc_err *err)
{
    struct arm *e = (struct arm *)env;
    (void)err;
    e->angle = state ? state[0] : 0;
    e->speed = state ? state[1] : 0;
    obs[0] = cos(e->angle);
    obs[1] = sin(e->angle);
    obs[2] = e->speed;
    return OPC_OK;
}

/* All that is random comes from rng, so that a seed is a whole run. */
static int arm_reset(struct opc_env *env, struct opc_rng *rng, double *obs, struct opc_err *err)
{
    const double state[2] = {0.2 * (opc_rng_unit_double(rng) - 0.5), 0};
    return arm_start(env, state, obs, err);
}

static void arm_state(const struct opc_env *env, double *state)
{
    const struct arm *e = (const struct arm *)env;
    state[0] = e->angle;
    state[1] = e->speed;
}

/* On a real arm: send the voltage, wait for the next tick, read the encoder. */
static int arm_step(struct opc_env *env, const double *action, struct opc_outcome *out,
                    struct opc_err *err)
{
    struct arm *e = (struct arm *)env;
    const double volts = fmin(fmax(action[0], LOW[0]), HIGH[0]);
    const double inertia = e->mass * LENGTH * LENGTH;
    const double torque =
        TORQUE * volts - e->mass * G * LENGTH * sin(e->angle) - DAMPING * e->speed;
    const double speed = e->speed + torque / inertia * DT;
    const double state[2] = {e->angle + speed * DT, speed};
    const int code = arm_start(env, state, out->obs, err);
    out->reward = 1 - fabs(remainder(e->angle - WANTED, 4 * WANTED)) / 2 - 1e-4 * volts * volts;
    out->terminated = fabs(speed) > FASTEST;
    return code;
}

/* A real arm has this, too, and .machine = true below: the episode is over, stop the motor. */
static void arm_rest(struct opc_env *env)
{
    ((struct arm *)env)->speed = 0;
}

/* The same question about imagined states. */
static void arm_terminal(const struct opc_env *env, int n, const float *s, const float *a,
                         const float *next, bool *out)
{
    (void)env, (void)s, (void)a;
    for (int i = 0; i < n; i++)
        out[i] = fabs((double)next[3 * i + 2]) > FASTEST;
}

static const struct opc_env_arg ARGS[] = {
    {.name = "mass", .fallback = "1", .min = 0.1, .max = 10, .help = "in kg, at the arm's end"},
    {0},
};

static const struct opc_env_page PAGE = {
    .summary = "point an arm at an angle and hold it",
    .observation = "cosine and sine of the angle, speed",
    .action = "voltage of the motor",
    .reward = "1 - |angle - pi/2| / 2 - 1e-4 u^2",
    .termination = "when it turns faster than 30 rad/s",
    .reset = "at rest, within 0.1 rad of hanging down",
};

static const struct opc_env_type arm = {
    .name = "arm",
    .page = &PAGE,
    .args = ARGS,
    .open = arm_open,
    .reset = arm_reset,
    .step = arm_step,
    .close = arm_close,
    .start = arm_start,
    .state = arm_state,
    .terminal = arm_terminal,
    .rest = arm_rest,
};

OPC_ENV_PLUGIN(arm);
