/* SPDX-License-Identifier: MIT */
/* Plants for learning control: each has a true system and a model that is wrong on purpose.
 * ilc_run.c opens and tries them.
 *
 * Invariant: a trial without noise is deterministic and starts in s0, which is what makes
 * learning from trial to trial possible. */
#include "study/ilc/ilc_plant.h"

#include "num/normal.h"
#include "opc/env.h"
#include "opc/mem.h"

#include <math.h>

static const double PI = 3.14159265358979323846;

/* ---- the mismatched double integrator: A, B of the model and of the truth -------------------- */

static const double DT = 0.1;
static const double A_MODEL[4] = {1, .1, 0, 1}, B_MODEL[2] = {.005, .1};
static const double A_TRUE[4] = {1, .1, -.03, .98}, B_TRUE[2] = {.005, .08};

static void linear_step(const double *A, const double *B, const double *s, double a, double *next)
{
    const double x = A[0] * s[0] + A[1] * s[1] + B[0] * a;
    next[1] = A[2] * s[0] + A[3] * s[1] + B[1] * a;
    next[0] = x;
}

static void integrator_model(void *ctx, const double *s, const double *a, double *next)
{
    (void)ctx;
    linear_step(A_MODEL, B_MODEL, s, a[0], next);
}

/* ---- the pendulum (env/builtin/pendulum.c), modelled with another gravity and motor ---------- */

/* Semi-implicit Euler like the environment: velocity first, then the angle with the new
 * velocity. */
static void pendulum_model(void *ctx, const double *s, const double *a, double *next)
{
    const struct opc_plant *plant = ctx;
    const double pull = 15 * plant->plan.gravity * sin(s[0]), push = 3 * plant->plan.torque * a[0];
    next[1] = s[1] + plant->dt * (pull + push);
    next[0] = s[0] + plant->dt * next[1];
}

/* ---- open and close -------------------------------------------------------------------------- */

int opc_plant_open(const struct opc_plant_plan *plan, struct opc_plant **out, struct opc_err *err)
{
    struct opc_plant *plant = opc_alloc(1, sizeof *plant);
    if (!plant)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a plant");
    *plant = (struct opc_plant){.plan = *plan, .n = 2, .m = 1};
    if (plan->kind == OPC_PLANT_PENDULUM) {
        const int code = opc_env_open("pendulum", &plant->env, err);
        if (code) {
            opc_plant_close(plant);
            return code;
        }
        plant->dt = plant->env->dt;
        plant->low = plant->env->low;
        plant->high = plant->env->high;
        plant->model = pendulum_model;
        /* Hanging down: angles count from upright. */
        plant->s0[0] = PI;
        plant->state_name[0] = "angle (rad)";
        plant->state_name[1] = "velocity (rad/s)";
        plant->action_name = "torque (N m)";
    } else {
        plant->dt = DT;
        plant->model = integrator_model;
        plant->constant = true;
        plant->state_name[0] = "position";
        plant->state_name[1] = "velocity";
        plant->action_name = "push";
    }
    *out = plant;
    return OPC_OK;
}

void opc_plant_close(struct opc_plant *plant)
{
    if (!plant)
        return;
    opc_env_close(plant->env);
    opc_free(plant);
}

/* ---- a trial --------------------------------------------------------------------------------- */

/* One step of the truth. The environment is set to the state first, so no state is kept in it. */
static int next_state(struct opc_plant *plant, const double *s, const double *a, double *next,
                      struct opc_err *err)
{
    if (!plant->env) {
        linear_step(A_TRUE, B_TRUE, s, a[0], next);
        return OPC_OK;
    }
    double obs[3];
    struct opc_outcome out = {.obs = obs};
    int code = opc_env_start(plant->env, s, obs, err);
    if (!code)
        code = opc_env_step(plant->env, a, &out, err);
    if (!code)
        opc_env_state(plant->env, next);
    return code;
}

/* Adds Gaussian noise to a state. */
static void add_noise(const struct opc_plant *plant, struct opc_rng *rng, double by, double *s)
{
    float w[OPC_PLANT_STATES];
    opc_rng_normals(rng, plant->n, w);
    for (int i = 0; i < plant->n; i++)
        s[i] += by * (double)w[i];
}

int opc_plant_try(struct opc_plant *plant, int T, double *u, struct opc_rng *rng, double *s,
                  struct opc_err *err)
{
    /* `now` is the true state, s what the sensors say about it. */
    double now[OPC_PLANT_STATES] = {0}, next[OPC_PLANT_STATES] = {0};
    for (int i = 0; i < plant->n; i++)
        s[i] = now[i] = plant->s0[i];
    for (int t = 0; t < T; t++) {
        double *a = u + t * plant->m;
        for (int j = 0; j < plant->m && plant->low; j++)
            a[j] = fmin(fmax(a[j], plant->low[j]), plant->high[j]);
        const int code = next_state(plant, now, a, next, err);
        if (code)
            return opc_within(err, "t = %d", t);
        /* Process noise changes the state itself, sensor noise only what is measured. */
        if (rng)
            add_noise(plant, rng, plant->plan.process_noise, next);
        for (int i = 0; i < plant->n; i++)
            s[(t + 1) * plant->n + i] = now[i] = next[i];
        if (rng)
            add_noise(plant, rng, plant->plan.sensor_noise, s + (t + 1) * plant->n);
    }
    return OPC_OK;
}
