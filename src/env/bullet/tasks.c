/* SPDX-License-Identifier: MIT */
#include "env/bullet/tasks.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

/* ---- arithmetic ------------------------------------------------------------------------------ */

/* The volatile stays: gcc 12.2 at -O2 can drop a rounding whose result is widened again (it
 * vectorises two such neighbours into a plain copy). */
double opc_bullet_rounded(double x)
{
    volatile float f = (float)x;
    return (double)f;
}

double opc_bullet_clipped(double x, double max)
{
    return x < -max ? -max : x > max ? max : x;
}

/* Adds as numpy does, in eight lanes. Progress is the difference of two numbers near 60606, whose
 * last bit is 7e-12; this way that bit is the one which was recorded. */
static double sum(int n, const double *x)
{
    double lane[8], total = 0;
    int i = 0;
    if (n >= 8) {
        memcpy(lane, x, sizeof lane);
        for (i = 8; i + 8 <= n; i += 8)
            for (int k = 0; k < 8; k++)
                lane[k] += x[i + k];
        total = ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
                ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    }
    for (; i < n; i++)
        total += x[i];
    return total;
}

double opc_bullet_mean(int n, const double *x)
{
    return sum(n, x) / n;
}

static double sum_of_squares(int n, const double *x)
{
    double squares[OPC_BULLET_DRIVES] = {0};
    for (int i = 0; i < n; i++)
        squares[i] = x[i] * x[i];
    return sum(n, squares);
}

/* Roll, pitch and yaw of a quaternion x, y, z, w, with Bullet's treatment of the poles. */
static void roll_pitch_yaw(const double q[4], double out[3])
{
    const double x = q[0], y = q[1], z = q[2], w = q[3];
    const double s = -2 * (x * z - w * y);
    if (s <= -0.99999 || s >= 0.99999) {
        out[0] = 0;
        out[1] = s > 0 ? PI / 2 : -PI / 2;
        out[2] = s > 0 ? 2 * atan2(-x, y) : 2 * atan2(x, -y);
        return;
    }
    out[0] = atan2(2 * (y * z + w * x), w * w - x * x - y * y + z * z);
    out[1] = asin(s);
    out[2] = atan2(2 * (x * y + w * z), w * w + x * x - y * y - z * z);
}

/* ---- looking --------------------------------------------------------------------------------- */

/* -1 to 1 within the range of the joint that action i drives, as float like the original. */
static double relative(const struct opc_bullet_sight *e, int i)
{
    const double middle = 0.5 * (e->lower[i] + e->upper[i]);
    return opc_bullet_rounded(2 * (e->q[e->drive[i]] - middle) / (e->upper[i] - e->lower[i]));
}

static double scaled_speed(const struct opc_bullet_sight *e, int i)
{
    return opc_bullet_rounded(0.1 * e->qd[e->drive[i]]);
}

static int joints_at_limit(const struct opc_bullet_sight *e)
{
    int n = 0;
    for (int i = 0; i < e->task->robot->act; i++)
        n += fabs(relative(e, i)) > 0.99;
    return n;
}

/* Minus the time it takes to the target at 1 m/s, so that its change is a speed. The target is 1 km
 * down the x axis. */
static double potential(const struct opc_bullet_sight *e)
{
    const double x = 1000 - e->centre[0], y = 0 - e->centre[1];
    return -sqrt(y * y + x * x) / e->task->setting.step;
}

static double progress(struct opc_bullet_sight *e)
{
    const double before = e->potential;
    e->potential = potential(e);
    return e->potential - before;
}

void opc_bullet_begin(struct opc_bullet_sight *e)
{
    e->x = e->position[0];
    if (e->task->around)
        e->potential = potential(e);
}

/* ---- observations ---------------------------------------------------------------------------- */

static void observe_pendulum(const struct opc_bullet_sight *e, double *obs)
{
    obs[0] = e->q[0];
    obs[1] = e->q[1];
    obs[2] = e->qd[0];
    obs[3] = e->qd[1];
}

static void observe_pendulum_sincos(const struct opc_bullet_sight *e, double *obs)
{
    obs[0] = e->q[0];
    obs[1] = e->qd[0];
    obs[2] = cos(e->q[1]);
    obs[3] = sin(e->q[1]);
    obs[4] = e->qd[1];
}

/* Hopper, walker, half cheetah: all but x, which the policy must not see, then all velocities. */
static void observe_planar(const struct opc_bullet_sight *e, double *obs)
{
    for (int j = 1; j < e->task->robot->joints; j++)
        *obs++ = opc_bullet_rounded(e->q[j]);
    for (int j = 0; j < e->task->robot->joints; j++)
        *obs++ = opc_bullet_rounded(opc_bullet_clipped(e->qd[j], e->task->max_speed));
}

/* 27 numbers, and 84 zeros where MuJoCo has contact forces, as far as the task shows them. */
static void observe_ant(const struct opc_bullet_sight *e, double *obs)
{
    double *o = obs;
    *o++ = e->position[2];
    for (int i = 0; i < 4; i++)
        *o++ = e->quaternion[i];
    for (int j = 0; j < e->task->robot->joints; j++)
        *o++ = e->q[j];
    for (int i = 0; i < 3; i++)
        *o++ = e->linear[i];
    for (int i = 0; i < 3; i++)
        *o++ = e->angular[i];
    for (int j = 0; j < e->task->robot->joints; j++)
        *o++ = e->qd[j];
    while (o < obs + e->task->obs)
        *o++ = 0;
}

static void observe_rs(const struct opc_bullet_sight *e, double *obs)
{
    const bool free_base = e->task->robot->free_base;
    /* A slip of the original: planar robots show their yaw rate as sideways speed (both are 0). */
    const double vx = e->linear[0], vy = free_base ? e->linear[1] : e->angular[2];
    double rpy[3], c, s, ahead;
    double *o = obs;
    roll_pitch_yaw(e->quaternion, rpy);
    c = cos(-rpy[2]);
    s = sin(-rpy[2]);
    ahead = atan2(0 - e->centre[1], 1000 - e->centre[0]) - rpy[2];
    *o++ = e->position[2] - e->own_height;
    *o++ = sin(ahead);
    *o++ = cos(ahead);
    *o++ = 0.3 * (c * vx - s * vy);
    *o++ = 0.3 * (s * vx + c * vy);
    *o++ = 0.3 * e->linear[2];
    *o++ = rpy[0];
    *o++ = rpy[1];
    for (int i = 0; i < e->task->robot->act; i++) {
        *o++ = relative(e, i);
        *o++ = scaled_speed(e, i);
    }
    for (int i = 0; o < obs + e->task->obs; i++)
        *o++ = e->touched[i];
    for (int k = 0; k < e->task->obs; k++)
        obs[k] = opc_bullet_clipped(opc_bullet_rounded(obs[k]), 5);
}

/* ---- rewards; they also move x and potential on ---------------------------------------------- */

static double reward_upright(struct opc_bullet_sight *e, const double *action, bool ended)
{
    (void)e, (void)action, (void)ended;
    return 1;
}

/* On the terminating step, too, the alive bonus is paid. */
static double reward_planar(struct opc_bullet_sight *e, const double *action, bool ended)
{
    const double before = e->x;
    (void)ended;
    e->x = e->position[0];
    return (e->x - before) / e->task->setting.step + e->task->alive_bonus -
           e->task->control_cost * sum_of_squares(e->task->robot->act, action);
}

static double reward_ant(struct opc_bullet_sight *e, const double *action, bool ended)
{
    (void)action; /* it costs nothing */
    return (ended ? -1 : 1) + progress(e) - 0.1 * joints_at_limit(e);
}

static double reward_rs(struct opc_bullet_sight *e, const double *action, bool ended)
{
    const int n = e->task->robot->act;
    double power[OPC_BULLET_DRIVES] = {0}, electricity;
    for (int i = 0; i < n; i++)
        power[i] = fabs(action[i] * scaled_speed(e, i));
    electricity = -2 * (sum(n, power) / n);
    electricity += -0.1 * (sum_of_squares(n, action) / n);
    return (ended ? -1 : 1) + progress(e) + electricity + -0.1 * joints_at_limit(e);
}

/* ---- when it is over; numbers that are not finite are dealt with by step and terminal -------- */

static bool ended_pendulum(const double *obs)
{
    return fabs(obs[1]) > 0.2;
}

static bool ended_pendulum_sincos(const double *obs)
{
    return fabs(atan2(obs[3], obs[2])) > 0.2;
}

/* The joint counts whole turns, sine and cosine do not: matters to who steps on past the end. */
static bool ended_here_pendulum(const struct opc_bullet_sight *e)
{
    return fabs(e->q[1]) > 0.2;
}

static bool all_below_100(int n, const double *x)
{
    for (int i = 0; i < n; i++)
        if (!(fabs(x[i]) < 100))
            return false;
    return true;
}

static bool ended_hopper(const double *obs)
{
    return !(all_below_100(9, obs + 2) && obs[0] > -0.3 && fabs(obs[1]) < 0.2);
}

static bool ended_walker2d(const double *obs)
{
    return !(all_below_100(15, obs + 2) && obs[0] > -0.2 && obs[0] < 1.0 && fabs(obs[1]) < 1);
}

/* The height at reset, 0.75 m, is to be added to the height above it, which ant_rs shows. The other
 * ants show a height that includes it already; the original adds it all the same. */
static bool ended_ant(const double *obs)
{
    return !(obs[0] + 0.75 > 0.26);
}

static bool ended_rs_biped(const double *obs)
{
    return !(obs[0] + 1.25 > 0.8 && fabs(obs[7]) < 1);
}

/* Flags of ffoot, fshin, fthigh, bfoot, bshin, bthigh: only feet may touch the ground. */
static bool ended_rs_half_cheetah(const double *obs)
{
    const double *flag = obs + 20;
    return !(fabs(obs[7]) < 1 && flag[1] < 0.5 && flag[2] < 0.5 && flag[4] < 0.5 && flag[5] < 0.5);
}

/* ---- the robots ------------------------------------------------------------------------------ */

/* clang-format off */
static const struct opc_bullet_robot_spec pendulum = {
    "bullet/inverted_pendulum.robot", "pole", false, 2, 1, {{"slider", 100}}};

static const struct opc_bullet_robot_spec hopper = {
    "bullet/hopper.robot", "torso", false, 6, 3,
    {{"thigh_joint", 75}, {"leg_joint", 75}, {"foot_joint", 75}}};

static const struct opc_bullet_robot_spec walker2d = {
    "bullet/walker2d.robot", "torso", false, 9, 6,
    {{"thigh_joint", 40}, {"leg_joint", 40}, {"foot_joint", 12},
     {"thigh_left_joint", 40}, {"leg_left_joint", 40}, {"foot_left_joint", 12}}};

static const struct opc_bullet_robot_spec half_cheetah = {
    "bullet/half_cheetah.robot", "torso", false, 9, 6,
    {{"bthigh", 120}, {"bshin", 90}, {"bfoot", 60},
     {"fthigh", 140}, {"fshin", 60}, {"ffoot", 30}}};

static const struct opc_bullet_robot_spec ant = {
    "bullet/ant.robot", "torso", true, 8, 8,
    {{"hip_1", 250}, {"ankle_1", 250}, {"hip_2", 250}, {"ankle_2", 250},
     {"hip_3", 250}, {"ankle_3", 250}, {"hip_4", 250}, {"ankle_4", 250}}};

/* ---- the tasks ------------------------------------------------------------------------------- */

#define STEP 0.0165
/*                gravity step substeps floor friction roll */
#define NO_FLOOR {9.8,    STEP, 1,      false, 0,      0}
#define FLOOR    {9.8,    STEP, 4,      true,  0.8,    0}
/* The original means to set the robot's rolling friction and hits the floor's. */
#define RUBBER   {9.8,    STEP, 4,      true,  0.8,    0.1}
/* 9.8f and 0.0165f, written out because of what is said at opc_bullet_rounded. */
#define SINGLE   {9.800000190734863, 0.016499999910593033, 1, false, 0, 0}

static const struct opc_env_angle first[] = {{1, -1}}, third[] = {{2, 3}};
/* Heading as cosine and sine, roll, pitch. */
static const struct opc_env_angle posture[] = {{2, 1}, {6, -1}, {7, -1}};
#define ANGLES(list) .angles = list, .n_angles = sizeof(list) / sizeof *(list)
/* clang-format on */

const struct opc_bullet_task opc_bullet_inverted_pendulum = {
    .page = {.summary = "balance a pole on a cart",
             .observation = "cart position, pole angle (0 is upright), and their velocities",
             .action = "force in units of 100 N, clipped to its range",
             .reward = "1 on every step",
             .termination = "|angle| > 0.2",
             .reset = "angle uniform on [-0.1, 0.1], the rest 0"},
    .robot = &pendulum,
    .setting = NO_FLOOR,
    .obs = 4,
    .strength = 1,
    .shake_from = 1,
    ANGLES(first),
    .observe = observe_pendulum,
    .reward = reward_upright,
    .ended = ended_pendulum,
};

#define PENDULUM_RS                                                                                \
    .page = {.summary = "balance a pole on a cart, RoboSchool style",                              \
             .observation = "cart position and velocity, cosine and sine of the pole angle (0 is " \
                            "upright), its velocity",                                              \
             .action = "force in units of 100 N, clipped to its range",                            \
             .reward = "1 on every step",                                                          \
             .termination = "|angle| > 0.2",                                                       \
             .reset = "angle uniform on [-0.1, 0.1], the rest 0"},                                 \
    .robot = &pendulum, .obs = 5, .strength = 1, .shake_from = 1, ANGLES(third),                   \
    .observe = observe_pendulum_sincos, .reward = reward_upright, .ended = ended_pendulum_sincos,  \
    .ended_here = ended_here_pendulum

static const struct opc_bullet_task pendulum_of_roboschool = {
    PENDULUM_RS,
    .setting = SINGLE,
    .single = true,
};

const struct opc_bullet_task opc_bullet_inverted_pendulum_rs = {
    PENDULUM_RS,
    .setting = NO_FLOOR,
    .roboschool = &pendulum_of_roboschool,
};

const struct opc_bullet_task opc_bullet_hopper = {
    .page = {.summary = "hop forward on one leg, and do not fall",
             .observation = "height above the start, pitch, thigh, leg and foot angles; six "
                            "velocities, x first, clipped to [-10, 10]",
             .action = "torques at thigh, leg and foot in units of 75 N m, clipped",
             .reward = "forward velocity of the torso (lagging) + 1 - 0.001 |a|^2",
             .termination = "height <= -0.3, |pitch| >= 0.2, or an angle or velocity beyond 100",
             .reset = "positions uniform on [-0.1, 0.1], root joints included; at rest"},
    .robot = &hopper,
    .setting = FLOOR,
    .obs = 11,
    .strength = 1,
    .max_speed = 10,
    .alive_bonus = 1,
    .control_cost = 0.001,
    ANGLES(first),
    .observe = observe_planar,
    .reward = reward_planar,
    .ended = ended_hopper,
};

const struct opc_bullet_task opc_bullet_walker2d = {
    .page = {.summary = "walk forward on two legs, and do not fall",
             .observation = "height above the start, pitch, thigh, leg and foot angles of both "
                            "legs; nine velocities, x first, clipped to [-10, 10]",
             .action = "torques at thigh, leg and foot, right then left, in units of 40, 40 and "
                       "12 N m, clipped",
             .reward = "forward velocity of the torso (lagging) + 1 - 0.001 |a|^2",
             .termination = "height outside (-0.2, 1), |pitch| >= 1, or an angle or velocity "
                            "beyond 100",
             .reset = "positions uniform on [-0.1, 0.1], root joints included; at rest"},
    .robot = &walker2d,
    .setting = FLOOR,
    .obs = 17,
    .strength = 1,
    .max_speed = 10,
    .alive_bonus = 1,
    .control_cost = 0.001,
    ANGLES(first),
    .observe = observe_planar,
    .reward = reward_planar,
    .ended = ended_walker2d,
};

const struct opc_bullet_task opc_bullet_half_cheetah = {
    .page = {.summary = "run forward",
             .observation = "height above the start, pitch, back thigh, shin, foot, front thigh, "
                            "shin and foot angles; nine velocities, x first",
             .action = "torques at these six joints in units of 120, 90, 60, 140, 60 and 30 N m, "
                       "clipped",
             .reward = "forward velocity of the torso (lagging) - 0.1 |a|^2",
             .termination = "never",
             .reset = "positions uniform on [-0.1, 0.1], root joints included; at rest"},
    .robot = &half_cheetah,
    .setting = RUBBER,
    .obs = 17,
    .strength = 1,
    .max_speed = HUGE_VAL,
    .control_cost = 0.1,
    ANGLES(first),
    .observe = observe_planar,
    .reward = reward_planar,
};

#define ANT(numbers, rest)                                                                         \
    .page = {.summary = "walk forward on four legs",                                               \
             .observation = "height, quaternion x, y, z, w, eight joint angles; velocities: "      \
                            "linear, angular, joints" rest,                                        \
             .action = "torques at hip and ankle of legs 1 to 4 in units of 250 N m, clipped",     \
             .reward = "1 + forward velocity of the mean of all bodies (lagging) - 0.1 for each "  \
                       "joint at its limit; -1 instead of 1 when it ends",                         \
             .termination = "height <= -0.49, which does not happen",                              \
             .reset = "joint angles uniform on [-0.1, 0.1]; the torso, which is no part of the "   \
                      "full state, at rest at (0, 0, 0.75)"},                                      \
    .robot = &ant, .setting = FLOOR, .obs = (numbers), .strength = 1, .around = true,              \
    .observe = observe_ant, .reward = reward_ant, .ended = ended_ant

const struct opc_bullet_task opc_bullet_ant = {ANT(111, "; 84 zeros")};
const struct opc_bullet_task opc_bullet_ant_truncated_obs = {ANT(27, "")};

#define SEEN_RS                                                                                    \
    "height above the start; sine and cosine of the direction of the target, 1 km ahead; 0.3 x "   \
    "velocity; roll, pitch; position in its range and 0.1 x velocity of each joint; "
#define PAID_RS                                                                                    \
    "1 (-1 when it ends) + forward velocity of the mean of all bodies (lagging) - 2 mean |a v| - " \
    "0.1 mean a^2 - 0.1 for each joint at its limit, v being 0.1 x joint velocity"
#define RS .around = true, ANGLES(posture), .observe = observe_rs, .reward = reward_rs

const struct opc_bullet_task opc_bullet_hopper_rs = {
    .page = {.summary = "hop forward on one leg, RoboSchool style",
             .observation = SEEN_RS "foot contact; clipped to [-5, 5]",
             .action = "torques at thigh, leg and foot in units of 75 N m, clipped",
             .reward = PAID_RS,
             .termination = "height <= -0.45 or |pitch| >= 1",
             .reset = "joint angles uniform on [-0.1, 0.1]; upright and at rest"},
    .robot = &hopper,
    .setting = FLOOR,
    .obs = 15,
    .strength = 1,
    .shake_from = 3,
    .feet = {"foot"},
    .ended = ended_rs_biped,
    RS,
};

const struct opc_bullet_task opc_bullet_walker2d_rs = {
    .page = {.summary = "walk forward on two legs, RoboSchool style",
             .observation = SEEN_RS "contacts of both feet; clipped to [-5, 5]",
             .action = "torques at thigh, leg and foot, right then left, in units of 40, 40 and "
                       "12 N m, clipped",
             .reward = PAID_RS,
             .termination = "height <= -0.45 or |pitch| >= 1",
             .reset = "joint angles uniform on [-0.1, 0.1]; upright and at rest"},
    .robot = &walker2d,
    .setting = FLOOR,
    .obs = 22,
    .strength = 1,
    .shake_from = 3,
    .feet = {"foot", "foot_left"},
    .ended = ended_rs_biped,
    RS,
};

const struct opc_bullet_task opc_bullet_half_cheetah_rs = {
    .page = {.summary = "run forward, RoboSchool style",
             .observation = SEEN_RS "contacts of front foot, shin, thigh, back foot, shin, thigh; "
                                    "clipped to [-5, 5]",
             .action = "torques at back thigh, shin, foot, front thigh, shin, foot in units of "
                       "108, 81, 54, 126, 54 and 27 N m, clipped",
             .reward = PAID_RS,
             .termination = "|pitch| >= 1, or contact of a shin or thigh",
             .reset = "joint angles uniform on [-0.1, 0.1]; upright and at rest"},
    .robot = &half_cheetah,
    .setting = FLOOR,
    .obs = 26,
    .strength = 0.9,
    .shake_from = 3,
    .feet = {"ffoot", "fshin", "fthigh", "bfoot", "bshin", "bthigh"},
    .ended = ended_rs_half_cheetah,
    RS,
};

const struct opc_bullet_task opc_bullet_ant_rs = {
    .page = {.summary = "walk forward on four legs, RoboSchool style",
             .observation = SEEN_RS "contacts of the four feet; clipped to [-5, 5]",
             .action = "torques at hip and ankle of legs 1 to 4 in units of 250 N m, clipped",
             .reward = PAID_RS,
             .termination = "height <= -0.49",
             .reset = "joint angles uniform on [-0.1, 0.1]; the torso, which is no part of the "
                      "full state, at rest at (0, 0, 0.75)"},
    .robot = &ant,
    .setting = FLOOR,
    .obs = 28,
    .strength = 1,
    .feet = {"front_left_foot", "front_right_foot", "left_back_foot", "right_back_foot"},
    .ended = ended_ant,
    RS,
};
