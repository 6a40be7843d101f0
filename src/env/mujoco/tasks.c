/* SPDX-License-Identifier: MIT */
/* The gym v2 tasks on MuJoCo: observation, reward, termination. mujoco.c calls them through the
 * table of each task; the engine itself does not appear here.
 *
 * Invariants: sums are taken in the order in which they agree with the originals to the last bit,
 * and `terminated` (of the state) and `ended` (of an imagined observation) state the same rule.
 * Rules are written as !(good), so that a NaN terminates. */
#include "env/mujoco/tasks.h"

#include "env/types.h"

#include <math.h>
#include <string.h>

static double clip(double x, double max)
{
    return x < -max ? -max : x > max ? max : x;
}

/* Added one by one in this order; another order would change the last bit of rewards. */
static double sum_of_squares(int n, const double *x)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum;
}

static bool all_finite(int n, const float *x)
{
    for (int i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

/* Of the engine's new state; what lags is not looked at. */
static bool state_finite(const struct opc_world *w)
{
    for (int i = 0; i < w->nq; i++)
        if (!isfinite(w->qpos[i]))
            return false;
    for (int i = 0; i < w->nv; i++)
        if (!isfinite(w->qvel[i]))
            return false;
    return true;
}

/* Appends n numbers and returns where the next go. */
static double *append(double *o, int n, const double *x)
{
    memcpy(o, x, (size_t)n * sizeof *x);
    return o + n;
}

static double *append_clipped(double *o, int n, const double *x, double max)
{
    for (int i = 0; i < n; i++)
        o[i] = clip(x[i], max);
    return o + n;
}

/* {at, sine}: entry `at` of the observation is an angle, not given as a pair if sine is -1. */
static const struct opc_env_angle angle_at_0[] = {{0, -1}}, angle_at_1[] = {{1, -1}};

/* Forward velocity is the change of this over a step. */
static double x_position(const struct opc_world *w)
{
    return w->qpos[0];
}

/* qpos without x, then qvel */
static void observe_planar(const struct opc_world *w, double *o)
{
    o = append(o, w->nq - 1, w->qpos + 1);
    append(o, w->nv, w->qvel);
}

/* The same with velocities clipped to [-10, 10]. */
static void observe_planar_clipped(const struct opc_world *w, double *o)
{
    o = append(o, w->nq - 1, w->qpos + 1);
    append_clipped(o, w->nv, w->qvel, 10);
}

/* qpos without x and y, then qvel */
static void observe_spatial(const struct opc_world *w, double *o)
{
    o = append(o, w->nq - 2, w->qpos + 2);
    append(o, w->nv, w->qvel);
}

/* ---- inverted pendulum ----------------------------------------------------------------------- */

static void pendulum_observe(const struct opc_world *w, double *o)
{
    o = append(o, 2, w->qpos);
    append(o, 2, w->qvel);
}

/* Also on the step that ends the task. */
static double pendulum_reward(const struct opc_world *w, const double *a, double before)
{
    (void)w, (void)a, (void)before;
    return 1;
}

static bool pendulum_terminated(const struct opc_world *w)
{
    return !state_finite(w) || fabs(w->qpos[1]) > 0.2;
}

static bool pendulum_ended(const float *o)
{
    return !all_finite(4, o) || fabs((double)o[1]) > 0.2;
}

static float pendulum_known_reward(const float *s, const double *a)
{
    (void)s, (void)a;
    return 1;
}

/* clang-format off */
const struct opc_mujoco_task opc_mujoco_inverted_pendulum = {
    .page =
        {.summary = "balance a pole on a cart",
         .observation =
             "cart position, pole angle (rad, 0 is upright), cart velocity, pole angular velocity",
         .action = "force on the cart; 1 is 100 N",
         .reward = "1 on every step",
         .termination = "|pole angle| > 0.2",
         .reset = "positions and velocities uniform on [-0.01, 0.01]"},
    .model = "inverted_pendulum.xml", .nq = 2, .nv = 2, .nu = 1, .nbody = 3,
    .obs = 4, .frame_skip = 2, .steps = 1000,
    .qpos_noise = 0.01, .qvel_noise = 0.01,
    .angles = angle_at_1, .n_angles = 1,
    .observe = pendulum_observe, .reward = pendulum_reward,
    .terminated = pendulum_terminated, .ended = pendulum_ended,
    .known_reward = pendulum_known_reward,
};
/* clang-format on */

/* ---- inverted double pendulum ---------------------------------------------------------------- */

/* Cosines at 3 and 4, sines at 1 and 2. */
static const struct opc_env_angle both_poles[] = {{3, 1}, {4, 2}};

static void double_pendulum_observe(const struct opc_world *w, double *o)
{
    const double *q = w->qpos;
    *o++ = q[0];
    *o++ = sin(q[1]);
    *o++ = sin(q[2]);
    *o++ = cos(q[1]);
    *o++ = cos(q[2]);
    o = append_clipped(o, 3, w->qvel, 10);
    append_clipped(o, 3, w->qfrc_constraint, 10);
}

/* (x, z) is the tip, lagging; the hinge velocities are not clipped here. */
static double double_pendulum_reward(const struct opc_world *w, const double *a, double before)
{
    (void)a, (void)before;
    const double x = w->site_xpos[0], z = w->site_xpos[2], w1 = w->qvel[1], w2 = w->qvel[2];
    return 10 - (0.01 * x * x + (z - 2) * (z - 2)) - (1e-3 * w1 * w1 + 5e-3 * w2 * w2);
}

/* The tip is at 1.2 m when both poles stand upright. */
static bool double_pendulum_terminated(const struct opc_world *w)
{
    return w->site_xpos[2] <= 1;
}

/* Two poles of 0.6 m. Imagined sines and cosines may lie off the unit circle: the first cosine is
 * used as it is, the second angle through atan2, as MBPO does. */
double opc_double_pendulum_height(const float *o)
{
    const double t1 = atan2((double)o[1], (double)o[3]), t2 = atan2((double)o[2], (double)o[4]);
    return 0.6 * ((double)o[3] + cos(t1 + t2)) - 1;
}

static bool double_pendulum_ended(const float *o)
{
    return !(opc_double_pendulum_height(o) > 0);
}

/* clang-format off */
const struct opc_mujoco_task opc_mujoco_inverted_double_pendulum = {
    .page = {.summary = "balance two poles, one on top of the other, on a cart",
             .observation = "cart position; sines of both hinge angles, then cosines; three "
                            "velocities and three constraint forces, clipped to [-10, 10]",
             .action = "force on the cart; 1 is 500 N",
             .reward = "10 - (0.01 x^2 + (z - 2)^2) - (0.001 w1^2 + 0.005 w2^2), with the tip at "
                       "(x, z) and the hinge velocities w",
             .termination = "z <= 1, the height of the tip",
             .reset =
                 "positions uniform on [-0.1, 0.1], velocities normal with standard deviation 0.1"},
    .model = "inverted_double_pendulum.xml", .nq = 3, .nv = 3, .nu = 1, .nbody = 4, .nsite = 1,
    .obs = 11, .frame_skip = 5, .steps = 1000,
    .qpos_noise = 0.1, .qvel_noise = 0.1, .normal_qvel = true,
    .angles = both_poles, .n_angles = 2,
    .observe = double_pendulum_observe, .reward = double_pendulum_reward,
    .terminated = double_pendulum_terminated, .ended = double_pendulum_ended,
};
/* clang-format on */

/* ---- hopper and walker2d --------------------------------------------------------------------- */

/* Forward velocity, 1 for being alive, and the cost of the action. */
static double walking_reward(const struct opc_world *w, const double *a, double before)
{
    return (x_position(w) - before) / w->dt + 1 - 1e-3 * sum_of_squares(w->nu, a);
}

/* False if one is NaN. */
static bool all_below(int n, const double *x, double max)
{
    bool all = true;
    for (int i = 0; i < n; i++)
        all = all && fabs(x[i]) < max;
    return all;
}

/* x must be finite but has no bound: it grows while the robot hops. */
static bool hopper_terminated(const struct opc_world *w)
{
    const double *q = w->qpos;
    return !(isfinite(q[0]) && isfinite(q[1]) && all_below(w->nq - 2, q + 2, 100) &&
             all_below(w->nv, w->qvel, 100) && q[1] > 0.7 && fabs(q[2]) < 0.2);
}

/* MBPO's published rule tests only the upper bound of 100 here; the task tests both. */
static bool hopper_ended(const float *o)
{
    bool sane = isfinite(o[0]);
    for (int i = 1; i < 11; i++)
        sane = sane && fabsf(o[i]) < 100;
    return !(sane && (double)o[0] > 0.7 && fabs((double)o[1]) < 0.2);
}

/* clang-format off */
const struct opc_mujoco_task opc_mujoco_hopper = {
    .page = {.summary = "make a one-legged robot hop forwards",
             .observation =
                 "height, pitch, thigh, leg and foot angles; six velocities clipped to [-10, 10]",
             .action = "torques of thigh, leg, foot; 1 is 200 N m",
             .reward = "forward velocity + 1 - 0.001 |a|^2",
             .termination = "height <= 0.7, |pitch| >= 0.2, or any angle or velocity beyond 100",
             .reset = "positions and velocities uniform within 0.005 of standing"},
    .model = "hopper.xml", .nq = 6, .nv = 6, .nu = 3, .nbody = 5,
    .obs = 11, .frame_skip = 4, .steps = 1000,
    .qpos_noise = 0.005, .qvel_noise = 0.005,
    .angles = angle_at_1, .n_angles = 1,
    .observe = observe_planar_clipped, .reward = walking_reward, .progress = x_position,
    .terminated = hopper_terminated, .ended = hopper_ended,
};
/* clang-format on */

/* The one rule of both functions below, in double, on the height and pitch. */
static bool walker_upright(double z, double pitch)
{
    return z > 0.8 && z < 2.0 && pitch > -1 && pitch < 1;
}

static bool walker_terminated(const struct opc_world *w)
{
    return !walker_upright(w->qpos[1], w->qpos[2]);
}

static bool walker_ended(const float *o)
{
    return !walker_upright((double)o[0], (double)o[1]);
}

/* clang-format off */
const struct opc_mujoco_task opc_mujoco_walker2d = {
    .page = {.summary = "make a two-legged robot walk forwards",
             .observation = "height, pitch, six leg angles; nine velocities clipped to [-10, 10]",
             .action = "torques of right thigh, leg, foot, then left; 1 is 100 N m",
             .reward = "forward velocity + 1 - 0.001 |a|^2",
             .termination = "height outside (0.8, 2) or pitch outside (-1, 1)",
             .reset = "positions and velocities uniform within 0.005 of standing"},
    .model = "walker2d.xml", .nq = 9, .nv = 9, .nu = 6, .nbody = 8,
    .obs = 17, .frame_skip = 4, .steps = 1000,
    .qpos_noise = 0.005, .qvel_noise = 0.005,
    .angles = angle_at_1, .n_angles = 1,
    .observe = observe_planar_clipped, .reward = walking_reward, .progress = x_position,
    .terminated = walker_terminated, .ended = walker_ended,
};
/* clang-format on */

/* ---- half-cheetah and swimmer ---------------------------------------------------------------- */

/* Nothing for being alive: the task never ends. */
static double cheetah_reward(const struct opc_world *w, const double *a, double before)
{
    return (x_position(w) - before) / w->dt - 0.1 * sum_of_squares(w->nu, a);
}

/* clang-format off */
const struct opc_mujoco_task opc_mujoco_half_cheetah = {
    .page = {.summary = "make a two-legged runner run forwards",
             .observation = "height, pitch, six leg angles; nine velocities",
             .action =
                 "torques of back thigh, shin, foot, then front; 1 is 120, 90, 60, 120, 60, 30 N m",
             .reward = "forward velocity - 0.1 |a|^2",
             .termination = "never",
             .reset = "positions uniform within 0.1 of standing, velocities normal with standard "
                      "deviation 0.1"},
    .model = "half_cheetah.xml", .nq = 9, .nv = 9, .nu = 6, .nbody = 8,
    .obs = 17, .frame_skip = 5, .steps = 1000,
    .qpos_noise = 0.1, .qvel_noise = 0.1, .normal_qvel = true,
    .angles = angle_at_1, .n_angles = 1,
    .observe = observe_planar, .reward = cheetah_reward, .progress = x_position,
};
/* clang-format on */

static double swimmer_reward(const struct opc_world *w, const double *a, double before)
{
    return (x_position(w) - before) / w->dt - 1e-4 * sum_of_squares(w->nu, a);
}

/* clang-format off */
const struct opc_mujoco_task opc_mujoco_swimmer = {
    .page = {.summary = "make a chain of three links swim forwards",
             .observation = "heading, two joint angles; five velocities",
             .action = "torques of both joints; 1 is 150 N m",
             .reward = "forward velocity - 0.0001 |a|^2",
             .termination = "never",
             .reset = "positions and velocities uniform on [-0.1, 0.1]"},
    .model = "swimmer.xml", .nq = 5, .nv = 5, .nu = 2, .nbody = 4,
    .obs = 8, .frame_skip = 4, .steps = 1000,
    .qpos_noise = 0.1, .qvel_noise = 0.1,
    .angles = angle_at_0, .n_angles = 1,
    .observe = observe_spatial, .reward = swimmer_reward, .progress = x_position,
};
/* clang-format on */

/* ---- ant ------------------------------------------------------------------------------------- */

enum { ANT_TORSO = 1 };

/* 27 numbers, then six contact forces for each of the 14 bodies: 111. */
static void ant_observe(const struct opc_world *w, double *o)
{
    observe_spatial(w, o);
    append_clipped(o + w->nq - 2 + w->nv, 6 * w->nbody, w->cfrc_ext, 1);
}

/* x of the torso, lagging, where the planar robots use qpos[0]. */
static double ant_progress(const struct opc_world *w)
{
    return w->xpos[3 * ANT_TORSO];
}

static double ant_reward(const struct opc_world *w, const double *a, double before)
{
    /* All 0 unless the argument contact is on; the original charges clipped forces. */
    double contact = 0;
    for (int i = 0; i < 6 * w->nbody; i++) {
        const double f = clip(w->cfrc_ext[i], 1);
        contact += f * f;
    }
    return (ant_progress(w) - before) / w->dt - 0.5 * sum_of_squares(w->nu, a) -
           0.5 * 1e-3 * contact + 1;
}

static bool ant_terminated(const struct opc_world *w)
{
    return !(state_finite(w) && w->qpos[2] >= 0.2 && w->qpos[2] <= 1.0);
}

/* Only the 27 numbers that both variants observe. */
static bool ant_ended(const float *o)
{
    return !(all_finite(27, o) && (double)o[0] >= 0.2 && (double)o[0] <= 1.0);
}

/* Both ants are one task that is observed in two ways. */
#define ANT_PAGE(seen)                                                                             \
    .page = {.summary = "make a four-legged robot walk forwards",                                  \
             .observation = seen,                                                                  \
             .action = "torques of hip and ankle of legs 4, 1, 2, 3; 1 is 150 N m",                \
             .reward = "forward velocity of the torso - 0.5 |a|^2 + 1, and with contact=on "       \
                       "- 0.0005 |contact forces clipped to [-1, 1]|^2",                           \
             .termination = "height outside [0.2, 1]",                                             \
             .reset =                                                                              \
                 "positions (the quaternion, too) uniform within 0.1 of standing, velocities "     \
                 "normal with standard deviation 0.1"}

#define ANT                                                                                        \
    .model = "ant.xml", .nq = 15, .nv = 14, .nu = 8, .nbody = 14, .frame_skip = 5, .steps = 1000,  \
    .qpos_noise = 0.1, .qvel_noise = 0.1, .normal_qvel = true, .reward = ant_reward,               \
    .progress = ant_progress, .terminated = ant_terminated, .ended = ant_ended

const struct opc_mujoco_task opc_mujoco_ant = {
    ANT,
    ANT_PAGE("height, torso quaternion, eight leg angles; fourteen velocities; contact forces on "
             "fourteen bodies clipped to [-1, 1], which are 0 unless contact=on"),
    .obs = 111, .observe = ant_observe};
const struct opc_mujoco_task opc_mujoco_ant_truncated_obs = {
    ANT, ANT_PAGE("height, torso quaternion, eight leg angles; fourteen velocities"), .obs = 27,
    .observe = observe_spatial};

/* ---- reacher --------------------------------------------------------------------------------- */

enum { FINGERTIP = 3, TARGET = 4 };

/* Cosines at 0 and 1, sines at 2 and 3. */
static const struct opc_env_angle both_joints[] = {{0, 2}, {1, 3}};

static void reacher_observe(const struct opc_world *w, double *o)
{
    const double *q = w->qpos;
    *o++ = cos(q[0]);
    *o++ = cos(q[1]);
    *o++ = sin(q[0]);
    *o++ = sin(q[1]);
    o = append(o, 2, q + 2);
    o = append(o, 2, w->qvel);
    /* Lagging, as everything in xpos. */
    for (int k = 0; k < 3; k++)
        o[k] = w->xpos[3 * FINGERTIP + k] - w->xpos[3 * TARGET + k];
}

/* From fingertip to target; "progress" of a task that is paid for the state before the step. */
static double reacher_distance(const struct opc_world *w)
{
    double e[3];
    for (int k = 0; k < 3; k++)
        e[k] = w->xpos[3 * FINGERTIP + k] - w->xpos[3 * TARGET + k];
    return sqrt(sum_of_squares(3, e));
}

/* The distance is the one before the step. */
static double reacher_reward(const struct opc_world *w, const double *a, double before)
{
    return -before - sum_of_squares(w->nu, a);
}

/* The observation has fingertip minus target at 8 to 10, so the reward is a formula of it. */
static float reacher_known_reward(const float *s, const double *a)
{
    const double e[3] = {(double)s[8], (double)s[9], (double)s[10]};
    return (float)(-sqrt(sum_of_squares(3, e)) - sum_of_squares(2, a));
}

/* A target within 0.2 m; only the arm moves. */
static void reacher_place(struct opc_rng *rng, double *qpos, double *qvel)
{
    /* Rejection from the square: uniform on the disc. */
    do {
        qpos[2] = opc_env_uniform(rng, 0.2);
        qpos[3] = opc_env_uniform(rng, 0.2);
    } while (sqrt(qpos[2] * qpos[2] + qpos[3] * qpos[3]) >= 0.2);
    qvel[2] = qvel[3] = 0;
}

/* clang-format off */
const struct opc_mujoco_task opc_mujoco_reacher = {
    .page = {.summary = "move the tip of a two-link arm to a target",
             .observation = "cosines of both joint angles, then sines; target x, y; two joint "
                            "velocities; fingertip minus target in x, y, z",
             .action = "torques of both joints; 1 is 200 N m",
             .reward = "-distance from the target before the step - |a|^2",
             .termination = "never",
             .reset = "joint angles uniform on [-0.1, 0.1], velocities on [-0.005, 0.005]; the "
                      "target uniform on the disc of radius 0.2"},
    .model = "reacher.xml", .nq = 4, .nv = 4, .nu = 2, .nbody = 5,
    .obs = 11, .frame_skip = 2, .steps = 50,
    .qpos_noise = 0.1, .qvel_noise = 0.005,
    .angles = both_joints, .n_angles = 2,
    .observe = reacher_observe, .reward = reacher_reward, .progress = reacher_distance,
    .known_reward = reacher_known_reward, .place = reacher_place,
};
/* clang-format on */

/* ---- humanoid -------------------------------------------------------------------------------- */

/* 45 numbers, then inertias (140), velocities (84), actuator (23) and contact forces (84): 376. */
static void humanoid_observe(const struct opc_world *w, double *o)
{
    observe_spatial(w, o);
    o += w->nq - 2 + w->nv;
    o = append(o, 10 * w->nbody, w->cinert);
    o = append(o, 6 * w->nbody, w->cvel);
    o = append(o, w->nv, w->qfrc_actuator);
    append(o, 6 * w->nbody, w->cfrc_ext);
}

/* x of the centre of mass */
static double humanoid_progress(const struct opc_world *w)
{
    double moment = 0, mass = 0;
    for (int b = 0; b < w->nbody; b++) {
        moment += w->body_mass[b] * w->xipos[3 * b];
        mass += w->body_mass[b];
    }
    return moment / mass;
}

static double humanoid_reward(const struct opc_world *w, const double *a, double before)
{
    const double impact = 0.5e-6 * sum_of_squares(6 * w->nbody, w->cfrc_ext);
    /* 1.25 / dt; written with the engine's step it agrees to the last bit */
    return 0.25 * (humanoid_progress(w) - before) / w->timestep - 0.1 * sum_of_squares(w->nu, a) -
           (impact < 10 ? impact : 10) + 5;
}

/* qpos[2] is the height of the torso. */
static bool humanoid_terminated(const struct opc_world *w)
{
    return !(w->qpos[2] >= 1.0 && w->qpos[2] <= 2.0);
}

/* o[0] is the height of the torso. */
static bool humanoid_ended(const float *o)
{
    return !((double)o[0] >= 1.0 && (double)o[0] <= 2.0);
}

/* Both humanoids are one task that is observed in two ways. */
#define HUMANOID_PAGE(seen)                                                                        \
    .page = {                                                                                      \
        .summary = "make a two-legged robot with arms walk forwards",                              \
        .observation = seen,                                                                       \
        .action = "torques of abdomen y, z, x, right leg, left leg, right arm, left arm; 0.4 is "  \
                  "10 to 120 N m",                                                                 \
        .reward = "1.25 x forward velocity of the centre of mass - 0.1 |a|^2 + 5, and with "       \
                  "contact=on - min(10, 0.0000005 |contact forces|^2)",                            \
        .termination = "height outside [1, 2]",                                                    \
        .reset = "positions (the quaternion, too) and velocities uniform within 0.01 of standing"}

#define HUMANOID                                                                                   \
    .model = "humanoid.xml", .nq = 24, .nv = 23, .nu = 17, .nbody = 14, .frame_skip = 5,           \
    .steps = 1000, .qpos_noise = 0.01, .qvel_noise = 0.01, .reward = humanoid_reward,              \
    .progress = humanoid_progress, .terminated = humanoid_terminated, .ended = humanoid_ended

const struct opc_mujoco_task opc_mujoco_humanoid = {
    HUMANOID,
    HUMANOID_PAGE("height, torso quaternion, seventeen joint angles; 23 velocities; then inertias "
                  "(140), velocities (84) of the bodies, actuator forces (23) and contact forces "
                  "(84), which are 0 unless contact=on"),
    .obs = 376, .observe = humanoid_observe};
const struct opc_mujoco_task opc_mujoco_humanoid_truncated_obs = {
    HUMANOID, HUMANOID_PAGE("height, torso quaternion, seventeen joint angles; 23 velocities"),
    .obs = 45, .observe = observe_spatial};
