/* SPDX-License-Identifier: MIT */
/* The Bullet tasks: observation, reward, termination, over plain numbers (tasks.h). bullet.c calls
 * them through the table of each task.
 *
 * Invariant: every operation is the original's, in its order and with its roundings to float, so
 * that recorded trajectories of PyBullet are reproduced bit for bit (tests/test_env_bullet.c).
 * Oddities of the originals are kept and marked as such. */
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
static double sum_as_numpy(int n, const double *x)
{
    double lane[8], total = 0;
    int i = 0;
    /* Eight running sums, added pairwise at the end; fewer than eight numbers are added in order.
     */
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
    return sum_as_numpy(n, x) / n;
}

static double sum_of_squares(int n, const double *x)
{
    double squares[OPC_BULLET_DRIVES] = {0};
    for (int i = 0; i < n; i++)
        squares[i] = x[i] * x[i];
    return sum_as_numpy(n, squares);
}

/* Roll, pitch and yaw of a quaternion x, y, z, w, with Bullet's treatment of the poles. */
static void roll_pitch_yaw(const double q[4], double out[3])
{
    const double x = q[0], y = q[1], z = q[2], w = q[3];
    const double s = -2 * (x * z - w * y);
    /* Looking straight up or down, roll and yaw are not distinct: Bullet sets roll to 0. */
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

/* Position of the joint that action i drives, -1 to 1 within its range, rounded to float like the
 * original. */
static double relative_position(const struct opc_bullet_sight *sight, int i)
{
    const double middle = 0.5 * (sight->lower[i] + sight->upper[i]);
    return opc_bullet_rounded(2 * (sight->q[sight->drive[i]] - middle) /
                              (sight->upper[i] - sight->lower[i]));
}

/* Velocity of the same joint in the units of the observation. */
static double scaled_speed(const struct opc_bullet_sight *sight, int i)
{
    return opc_bullet_rounded(0.1 * sight->qd[sight->drive[i]]);
}

/* Counted on the rounded positions, as the original does. */
static int joints_at_limit(const struct opc_bullet_sight *sight)
{
    int n = 0;
    for (int i = 0; i < sight->task->robot->act; i++)
        n += fabs(relative_position(sight, i)) > 0.99;
    return n;
}

/* Minus the distance to the target, 1 km down the x axis, over the time step; so its change over a
 * step is a speed. */
static double potential(const struct opc_bullet_sight *sight)
{
    const double x = 1000 - sight->centre[0], y = 0 - sight->centre[1];
    return -sqrt(y * y + x * x) / sight->task->setting.step;
}

/* Change of the potential since the last call, which is one step ago. */
static double progress(struct opc_bullet_sight *sight)
{
    const double before = sight->potential;
    sight->potential = potential(sight);
    return sight->potential - before;
}

void opc_bullet_begin(struct opc_bullet_sight *sight)
{
    sight->x = sight->position[0];
    if (sight->task->around)
        sight->potential = potential(sight);
}

/* ---- observations ---------------------------------------------------------------------------- */

/* Cart position, pole angle, then their velocities. */
static void observe_pendulum(const struct opc_bullet_sight *sight, double *obs)
{
    obs[0] = sight->q[0];
    obs[1] = sight->q[1];
    obs[2] = sight->qd[0];
    obs[3] = sight->qd[1];
}

/* The same as RoboSchool lays it out, with the angle as cosine and sine. */
static void observe_pendulum_sincos(const struct opc_bullet_sight *sight, double *obs)
{
    obs[0] = sight->q[0];
    obs[1] = sight->qd[0];
    obs[2] = cos(sight->q[1]);
    obs[3] = sin(sight->q[1]);
    obs[4] = sight->qd[1];
}

/* Hopper, walker, half cheetah: all positions but x, which the policy must not see, then all
 * velocities. */
static void observe_planar(const struct opc_bullet_sight *sight, double *obs)
{
    for (int j = 1; j < sight->task->robot->joints; j++)
        *obs++ = opc_bullet_rounded(sight->q[j]);
    for (int j = 0; j < sight->task->robot->joints; j++)
        *obs++ = opc_bullet_rounded(opc_bullet_clipped(sight->qd[j], sight->task->max_speed));
}

/* 27 numbers; if the task observes 111, then 84 zeros where MuJoCo has contact forces. */
static void observe_ant(const struct opc_bullet_sight *sight, double *obs)
{
    double *o = obs;
    *o++ = sight->position[2];
    for (int i = 0; i < 4; i++)
        *o++ = sight->quaternion[i];
    for (int j = 0; j < sight->task->robot->joints; j++)
        *o++ = sight->q[j];
    for (int i = 0; i < 3; i++)
        *o++ = sight->linear[i];
    for (int i = 0; i < 3; i++)
        *o++ = sight->angular[i];
    for (int j = 0; j < sight->task->robot->joints; j++)
        *o++ = sight->qd[j];
    while (o < obs + sight->task->obs)
        *o++ = 0;
}

/* RoboSchool: height, direction of the target, velocity and posture of the torso in its own
 * heading, joints relative to their ranges, contact flags; rounded and clipped at the end. */
static void observe_rs(const struct opc_bullet_sight *sight, double *obs)
{
    const bool free_base = sight->task->robot->free_base;
    /* A slip of the original: planar robots show their yaw rate as sideways speed (both are 0). */
    const double vx = sight->linear[0], vy = free_base ? sight->linear[1] : sight->angular[2];
    double rpy[3], c, s, ahead;
    double *o = obs;
    /* Everything is seen in the heading of the torso, so yaw itself is not observed. */
    roll_pitch_yaw(sight->quaternion, rpy);
    c = cos(-rpy[2]);
    s = sin(-rpy[2]);
    ahead = atan2(0 - sight->centre[1], 1000 - sight->centre[0]) - rpy[2];
    *o++ = sight->position[2] - sight->own_height;
    *o++ = sin(ahead);
    *o++ = cos(ahead);
    *o++ = 0.3 * (c * vx - s * vy);
    *o++ = 0.3 * (s * vx + c * vy);
    *o++ = 0.3 * sight->linear[2];
    *o++ = rpy[0];
    *o++ = rpy[1];
    /* Position and speed of each driven joint, alternating. */
    for (int i = 0; i < sight->task->robot->act; i++) {
        *o++ = relative_position(sight, i);
        *o++ = scaled_speed(sight, i);
    }
    for (int i = 0; o < obs + sight->task->obs; i++)
        *o++ = sight->touched[i];
    /* The original computes in double and keeps float. */
    for (int k = 0; k < sight->task->obs; k++)
        obs[k] = opc_bullet_clipped(opc_bullet_rounded(obs[k]), 5);
}

/* ---- rewards; they also update x and potential ---------------------------------------------- */

static double reward_upright(struct opc_bullet_sight *sight, const double *action, bool ended)
{
    (void)sight, (void)action, (void)ended;
    return 1;
}

/* Forward velocity of the torso, alive bonus and control cost; the bonus is paid on the terminating
 * step as well. */
static double reward_planar(struct opc_bullet_sight *sight, const double *action, bool ended)
{
    const double before = sight->x;
    (void)ended;
    sight->x = sight->position[0];
    return (sight->x - before) / sight->task->setting.step + sight->task->alive_bonus -
           sight->task->control_cost * sum_of_squares(sight->task->robot->act, action);
}

static double reward_ant(struct opc_bullet_sight *sight, const double *action, bool ended)
{
    (void)action; /* it costs nothing */
    return (ended ? -1 : 1) + progress(sight) - 0.1 * joints_at_limit(sight);
}

/* Alive bonus, progress, electricity (|torque x speed| and torque^2) and joints at their limits,
 * added in the order of the original. */
static double reward_rs(struct opc_bullet_sight *sight, const double *action, bool ended)
{
    const int n = sight->task->robot->act;
    double power[OPC_BULLET_DRIVES] = {0}, electricity;
    for (int i = 0; i < n; i++)
        power[i] = fabs(action[i] * scaled_speed(sight, i));
    electricity = -2 * (sum_as_numpy(n, power) / n);
    electricity += -0.1 * (sum_of_squares(n, action) / n);
    return (ended ? -1 : 1) + progress(sight) + electricity + -0.1 * joints_at_limit(sight);
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

/* The joint counts whole turns, sine and cosine do not. It matters to callers that step on past the
 * end. */
static bool ended_here_pendulum(const struct opc_bullet_sight *sight)
{
    return fabs(sight->q[1]) > 0.2;
}

static bool all_below_100(int n, const double *x)
{
    for (int i = 0; i < n; i++)
        if (!(fabs(x[i]) < 100))
            return false;
    return true;
}

/* Height and pitch, and all other numbers below 100. */
static bool ended_hopper(const double *obs)
{
    return !(all_below_100(9, obs + 2) && obs[0] > -0.3 && fabs(obs[1]) < 0.2);
}

static bool ended_walker2d(const double *obs)
{
    return !(all_below_100(15, obs + 2) && obs[0] > -0.2 && obs[0] < 1.0 && fabs(obs[1]) < 1);
}

/* ant_rs observes the height above the start, to which its 0.75 m have to be added. The other ants
 * observe a height that includes them; the original adds them all the same. */
static bool ended_ant(const double *obs)
{
    return !(obs[0] + 0.75 > 0.26);
}

/* The height above the start plus its 1.25 m, and the pitch. */
static bool ended_rs_biped(const double *obs)
{
    return !(obs[0] + 1.25 > 0.8 && fabs(obs[7]) < 1);
}

/* The flags are ffoot, fshin, fthigh, bfoot, bshin, bthigh: only feet may touch the ground. */
static bool ended_rs_half_cheetah(const double *obs)
{
    const double *flag = obs + 20;
    return !(fabs(obs[7]) < 1 && flag[1] < 0.5 && flag[2] < 0.5 && flag[4] < 0.5 && flag[5] < 0.5);
}

/* ---- the robots ------------------------------------------------------------------------------ */

/* file, torso, free base, joints, actions, and the drive of each action with its force at 1 (N, N
 * m) */
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
/* The original means to set the rolling friction of the robot, but sets that of the floor. */
#define RUBBER   {9.8,    STEP, 4,      true,  0.8,    0.1}
/* 9.8f and 0.0165f, written out because of the compiler bug described at opc_bullet_rounded. */
#define SINGLE   {9.800000190734863, 0.016499999910593033, 1, false, 0, 0}

static const struct opc_env_angle first[] = {{1, -1}}, third[] = {{2, 3}};
/* Heading as cosine at 2 and sine at 1, then roll and pitch. */
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

/* Two tasks share this: numbers of the pybullet-gym port, and those of RoboSchool in float. */
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

/* The ant of pybullet-gym, with and without the zeros in place of contact forces. */
#define ANT(numbers, rest)                                                                         \
    .page = {.summary = "walk forward on four legs",                                               \
             .observation = "height, quaternion x, y, z, w, eight joint angles; velocities: "      \
                            "linear, angular, joints" rest,                                        \
             .action = "torques at hip and ankle of legs 1 to 4 in units of 250 N m, clipped",     \
             .reward = "1 + forward velocity of the mean of all bodies (lagging) - 0.1 for each "  \
                       "joint at its limit; -1 instead of 1 when it ends",                         \
             .termination = "height <= -0.49, which does not happen",                              \
             .reset = "joint angles uniform on [-0.1, 0.1]; the torso, which is not part of the "  \
                      "full state, at rest at (0, 0, 0.75)"},                                      \
    .robot = &ant, .setting = FLOOR, .obs = (numbers), .strength = 1, .around = true,              \
    .observe = observe_ant, .reward = reward_ant, .ended = ended_ant

const struct opc_bullet_task opc_bullet_ant = {ANT(111, "; 84 zeros")};
const struct opc_bullet_task opc_bullet_ant_truncated_obs = {ANT(27, "")};

/* Texts and functions that all RoboSchool walkers share. */
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
             .reset = "joint angles uniform on [-0.1, 0.1]; the torso, which is not part of the "
                      "full state, at rest at (0, 0, 0.75)"},
    .robot = &ant,
    .setting = FLOOR,
    .obs = 28,
    .strength = 1,
    .feet = {"front_left_foot", "front_right_foot", "left_back_foot", "right_back_foot"},
    .ended = ended_ant,
    RS,
};
