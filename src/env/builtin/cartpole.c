/* SPDX-License-Identifier: MIT */
/* Balance a pole on a cart (Barto, Sutton, Anderson 1983), with a force of any size up to 10 N
 * instead of a push to the left or right.
 *
 *     theta'' = (g sin - cos (F + m l theta'^2 sin) / M) / (l (4/3 - m cos^2 / M))
 *     x''     = (F + m l theta'^2 sin) / M - m l theta'' cos / M
 *
 * with m = 0.1 the pole, M = 1.1 the whole, l = 0.5 half the pole, g = 9.8, integrated by explicit
 * Euler at dt = 0.02 s, as the original does.
 *
 * Opened through env/env.c, like every task of this folder. step and terminal must use the same
 * rule (fallen), or imagined episodes end where real ones do not. */
#include "env/types.h"
#include "opc/mem.h"

#include <math.h>
#include <string.h>

/* Places in the state: positions first, then their velocities. */
enum { STEPS = 1000, X = 0, THETA, X_DOT, THETA_DOT, STATE };
/* s, m/s^2, kg, kg, m: the symbols dt, g, m, M and l of the equations above. */
static const double DT = 0.02, G = 9.8, POLE = 0.1, WHOLE = 1.1, HALF = 0.5;
static const double STRONGEST = 10;         /* N at action 1 */
static const double RAIL = 2.4, LEAN = 0.2; /* m and rad that end the task */
static const double START = 0.05;           /* half-width of the reset */
static const double LOW[1] = {-1}, HIGH[1] = {1};
static const struct opc_env_angle angles[] = {{THETA, -1}};

struct cartpole {
    struct opc_env env;
    double s[STATE]; /* the observation is this state */
};

static int cartpole_open(const struct opc_env_type *type, const double *arg, struct opc_env **out,
                         struct opc_err *err)
{
    (void)arg;
    struct cartpole *cartpole = opc_alloc(1, sizeof *cartpole);
    if (!cartpole)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %s", type->name);
    cartpole->env = (struct opc_env){.obs = STATE,
                                     .act = 1,
                                     .state = STATE,
                                     .steps = STEPS,
                                     .dt = DT,
                                     .low = LOW,
                                     .high = HIGH,
                                     .angles = angles,
                                     .n_angles = 1};
    *out = &cartpole->env;
    return OPC_OK;
}

static void cartpole_close(struct opc_env *env)
{
    opc_free(env);
}

static void cartpole_state(const struct opc_env *env, double *state)
{
    memcpy(state, ((const struct cartpole *)env)->s, STATE * sizeof *state);
}

/* At a given state, or upright in the middle of the rail. */
static int cartpole_start(struct opc_env *env, const double *state, double *obs,
                          struct opc_err *err)
{
    (void)err;
    struct cartpole *cartpole = (struct cartpole *)env;
    for (int i = 0; i < STATE; i++)
        obs[i] = cartpole->s[i] = state ? state[i] : 0;
    return OPC_OK;
}

static int cartpole_reset(struct opc_env *env, struct opc_rng *rng, double *obs,
                          struct opc_err *err)
{
    double state[STATE];
    for (int i = 0; i < STATE; i++)
        state[i] = opc_env_uniform(rng, START);
    return cartpole_start(env, state, obs, err);
}

/* The comparison is negated so that a NaN counts as fallen. */
static bool fallen(double x, double theta)
{
    return !(fabs(x) <= RAIL && fabs(theta) <= LEAN);
}

static int cartpole_step(struct opc_env *env, const double *action, struct opc_outcome *out,
                         struct opc_err *err)
{
    (void)err;
    double *s = ((struct cartpole *)env)->s;
    const double a = action[0] < -1 ? -1 : action[0] > 1 ? 1 : action[0];
    const double sine = sin(s[THETA]), cosine = cos(s[THETA]), omega = s[THETA_DOT];
    /* push and turn: the bracket over M and theta'' of the equations; move is x''. */
    const double push = (STRONGEST * a + POLE * HALF * omega * omega * sine) / WHOLE;
    const double turn =
        (G * sine - cosine * push) / (HALF * (4.0 / 3.0 - POLE * cosine * cosine / WHOLE));
    const double move = push - POLE * HALF * turn * cosine / WHOLE;
    /* Explicit Euler: positions move with the old velocities. */
    s[X] += DT * s[X_DOT];
    s[THETA] += DT * omega;
    s[X_DOT] += DT * move;
    s[THETA_DOT] += DT * turn;
    memcpy(out->obs, s, STATE * sizeof *s);
    out->reward = 1;
    out->terminated = fallen(s[X], s[THETA]);
    return OPC_OK;
}

/* Asked about imagined states by many threads: reads only its arguments. */
static void cartpole_terminal(const struct opc_env *env, int n, const float *s, const float *a,
                              const float *next, bool *out)
{
    (void)env, (void)s, (void)a;
    for (int i = 0; i < n; i++)
        out[i] = fallen((double)next[STATE * i + X], (double)next[STATE * i + THETA]);
}

/* Paid also on the step that ends the task. */
static void cartpole_reward(const struct opc_env *env, int n, const float *s, const float *a,
                            const float *next, float *out)
{
    (void)env, (void)s, (void)a, (void)next;
    for (int i = 0; i < n; i++)
        out[i] = 1;
}

/* Rail, cart and pole as capsules, 0.6 m above the floor. */
static void cartpole_draw(const struct opc_env *env, struct opc_scene *scene)
{
    const double *s = ((const struct cartpole *)env)->s;
    const double x = s[X], top = 2 * HALF;
    const double tip[3] = {x + top * sin(s[THETA]), 0, 0.6 + top * cos(s[THETA])};
    *scene = (struct opc_scene){
        .n = 3,
        .shape = {{{-RAIL, 0, 0.6}, {RAIL, 0, 0.6}, 0.02, {0.5f, 0.5f, 0.5f}},
                  {{x - 0.15, 0, 0.6}, {x + 0.15, 0, 0.6}, 0.1, {0.22f, 0.38f, 0.54f}},
                  {{x, 0, 0.6}, {tip[0], tip[1], tip[2]}, 0.04, {0.90f, 0.46f, 0.24f}}},
        .centre = {0, 0, 1},
        .width = 2 * RAIL + 0.6};
}

const struct opc_env_type opc_env_cartpole = {
    .name = "cartpole",
    .page =
        &(const struct opc_env_page){
            .summary = "balance a pole on a cart, with a continuous force",
            .observation = "cart position, pole angle (0 is upright), and their velocities",
            .action = "force in units of 10 N, clipped to its range",
            .reward = "1 on every step",
            .termination = "|position| > 2.4 or |angle| > 0.2",
            .reset = "all four uniform on [-0.05, 0.05]"},
    .open = cartpole_open,
    .reset = cartpole_reset,
    .step = cartpole_step,
    .close = cartpole_close,
    .start = cartpole_start,
    .state = cartpole_state,
    .terminal = cartpole_terminal,
    .reward = cartpole_reward,
    .draw = cartpole_draw,
};
