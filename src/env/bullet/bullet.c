/* SPDX-License-Identifier: MIT */
/* Environments on Bullet: open, reset, step and pictures. The engine is behind bullet/shim.h, what
 * the tasks observe and pay is in bullet/tasks.c, and the robots are read by bullet/model.c. Opened
 * and played through env/env.c.
 *
 * Invariant: a reset leaves nothing of the episode before it, not even the order of contacts, so
 * that an episode depends on its start and actions alone. It takes tens of microseconds. Only a
 * world that broke down or ran out of memory is thrown away and made anew: what a NaN leaves in the
 * engine's tables is not worth finding out. */
#include "base/format/crc.h"
#include "env/assets.h"
#include "env/bullet/model.h"
#include "env/bullet/tasks.h"
#include "env/types.h"
#include "opc/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* One environment: its task, its robot and the world that simulates it. */
struct bullet {
    struct opc_env env;
    const struct opc_bullet_task *task;
    struct opc_bullet_robot robot; /* as read from its file */
    struct opc_bullet *world;
    bool spoiled;                           /* the world must be replaced before the next reset */
    int torso, feet, foot[OPC_BULLET_FEET]; /* bodies */
    struct opc_bullet_sight sight;          /* what the task sees, after the last reset or step */
    char engine[32], joints[256];
    double noise; /* half width of the noise on positions at reset */
};

static const double NOISE = 0.1; /* of the originals */

/* Arguments of tasks; which of the two a type has tells what arg[0] means. */
static const struct opc_env_arg constants[] = {
    {"constants", "pybullet|roboschool", "pybullet", 0, 0,
     "numbers of the pybullet-gym port, or of RoboSchool itself, which rounds to float"},
    {0},
};
static const struct opc_env_arg reset_noise[] = {
    {"reset_noise", NULL, "0.1", 0, 0.5,
     "positions start uniform within this of standing; MuJoCo's hopper has 0.005"},
    {0},
};

/* ---- open, copy, close ----------------------------------------------------------------------- */

/* Actions are in [-1, 1] for every robot; the drives have the forces. */
static const double low[OPC_BULLET_DRIVES] = {-1, -1, -1, -1, -1, -1, -1, -1};
static const double high[OPC_BULLET_DRIVES] = {1, 1, 1, 1, 1, 1, 1, 1};

/* A file from $OPC_MODELS may have other masses, but the task's code indexes by these numbers. */
static int check_sizes(const struct bullet *sim, struct opc_err *err)
{
    const struct opc_bullet_robot_spec *spec = sim->task->robot;
    int joints = 0;
    while (opc_bullet_joint_body(&sim->robot, joints) >= 0)
        joints++;
    if (joints != spec->joints)
        return opc_fail(err, OPC_EUSER, "%s describes %d joints, but the task is made for %d",
                        spec->file, joints, spec->joints);
    if ((sim->robot.body[0].joint == OPC_BULLET_FREE_BASE) != spec->free_base)
        return opc_fail(err, OPC_EUSER, "%s: the base of this task's robot must be %s", spec->file,
                        spec->free_base ? "free" : "fixed");
    return OPC_OK;
}

static int missing_part(const struct bullet *sim, const char *what, const char *name,
                        struct opc_err *err)
{
    return opc_fail(err, OPC_EUSER, "%s describes no %s '%s', which the task needs",
                    sim->task->robot->file, what, name);
}

/* Turns the names that the task uses for bodies and joints into indices of the robot. */
static int find_parts(struct bullet *sim, struct opc_err *err)
{
    const struct opc_bullet_robot_spec *spec = sim->task->robot;
    struct opc_bullet_sight *sight = &sim->sight;
    sim->torso = opc_bullet_find_body(&sim->robot, spec->torso);
    if (sim->torso < 0)
        return missing_part(sim, "body", spec->torso, err);
    /* A driven joint needs a range: observations are relative to it. */
    for (int i = 0; i < spec->act; i++) {
        sight->drive[i] = opc_bullet_find_joint(&sim->robot, spec->drive[i].joint);
        const int body =
            sight->drive[i] < 0 ? -1 : opc_bullet_joint_body(&sim->robot, sight->drive[i]);
        if (body < 0 || !sim->robot.body[body].limited)
            return missing_part(sim, "joint with a range", spec->drive[i].joint, err);
        sight->lower[i] = sim->robot.body[body].lower;
        sight->upper[i] = sim->robot.body[body].upper;
    }
    /* Bodies with a contact flag. */
    for (; sim->feet < OPC_BULLET_FEET && sim->task->feet[sim->feet]; sim->feet++) {
        sim->foot[sim->feet] = opc_bullet_find_body(&sim->robot, sim->task->feet[sim->feet]);
        if (sim->foot[sim->feet] < 0)
            return missing_part(sim, "body", sim->task->feet[sim->feet], err);
    }
    return OPC_OK;
}

/* Reads the robot of the task from its file. */
static int load_robot(struct bullet *sim, struct opc_err *err)
{
    const char *file = sim->task->robot->file;
    struct opc_model_text m;
    int code = opc_model_open(file, &m, err);
    if (!code && strlen(m.text) != m.size)
        code = opc_fail(err, OPC_EUSER, "%s is not a text file", file);
    if (!code)
        code = opc_bullet_robot_parse(m.text, file, &sim->robot, err);
    if (!code)
        code = check_sizes(sim, err);
    if (!code)
        code = find_parts(sim, err);
    if (!code)
        sim->env.model_hash = opc_crc32c(0, m.text, m.size);
    opc_model_close(&m, code, err);
    return code;
}

static void bullet_close(struct opc_env *env)
{
    struct bullet *sim = (struct bullet *)env;
    opc_bullet_destroy(sim->world);
    opc_free(sim);
}

/* Fills in the environment and makes the world; the robot has been read or copied. */
static int complete_env(struct bullet *sim, struct opc_err *err)
{
    const struct opc_bullet_task *task = sim->task;
    const struct opc_bullet_robot_spec *spec = task->robot;
    sim->env.obs = task->obs;
    sim->env.act = spec->act;
    sim->env.state = 2 * spec->joints;
    sim->env.steps = 1000;
    sim->env.dt = task->setting.step;
    sim->env.low = low;
    sim->env.high = high;
    sim->env.angles = task->angles;
    sim->env.n_angles = task->n_angles;
    sim->env.model = spec->file;
    sim->env.engine = sim->engine;
    sim->env.joints = sim->joints;
    for (int j = 0, n = 0; j < spec->joints && n < (int)sizeof sim->joints; j++)
        n += snprintf(sim->joints + n, sizeof sim->joints - (size_t)n, "%s%s", j ? ", " : "",
                      sim->robot.body[opc_bullet_joint_body(&sim->robot, j)].joint_name);
    sim->sight.task = task;
    snprintf(sim->engine, sizeof sim->engine, "Bullet %s", opc_bullet_version());
    sim->world = opc_bullet_create(&sim->robot, &task->setting);
    if (!sim->world)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for another simulation");
    /* The height of the torso with all joints at 0, which some tasks subtract. */
    opc_bullet_pose(sim->world, sim->torso, sim->sight.position, NULL);
    sim->sight.own_height = sim->sight.position[2];
    return OPC_OK;
}

/* like: an environment whose robot is copied; NULL: the robot is read from its file. */
static int bullet_create(const struct opc_bullet_task *task, const struct bullet *like,
                         struct opc_env **out, struct opc_err *err)
{
    struct bullet *sim = opc_alloc(1, sizeof *sim);
    if (!sim)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for another environment");
    int code = OPC_OK;
    sim->task = task;
    sim->noise = like ? like->noise : NOISE;
    if (like) {
        sim->robot = like->robot;
        sim->env.model_hash = like->env.model_hash;
        code = find_parts(sim, err);
    } else {
        code = load_robot(sim, err);
    }
    if (!code)
        code = complete_env(sim, err);
    if (code) {
        bullet_close(&sim->env);
        return code;
    }
    *out = &sim->env;
    return OPC_OK;
}

/* An argument is constants, which chooses between two tasks, or reset_noise. */
static int bullet_open(const struct opc_env_type *type, const double *arg, struct opc_env **out,
                       struct opc_err *err)
{
    const struct opc_bullet_task *task = type->task;
    const bool other = type->args == constants && task->roboschool && arg[0] > 0;
    const int code = bullet_create(other ? task->roboschool : task, NULL, out, err);
    if (!code && type->args == reset_noise)
        ((struct bullet *)*out)->noise = arg[0];
    return code;
}

static int bullet_copy(const struct opc_env *like, struct opc_env **out, struct opc_err *err)
{
    const struct bullet *sim = (const struct bullet *)like;
    return bullet_create(sim->task, sim, out, err);
}

/* ---- looking at the world -------------------------------------------------------------------- */

/* Mean x and y over all bodies in order, then the floor at 0, as the originals take it; a fixed
 * base is not one of the bodies. */
static void find_centre(struct bullet *sim)
{
    double x[OPC_BULLET_BODIES + 1], y[OPC_BULLET_BODIES + 1], position[3];
    int n = 0;
    for (int i = sim->task->robot->free_base ? 0 : 1; i < sim->robot.bodies; i++, n++) {
        opc_bullet_pose(sim->world, i, position, NULL);
        x[n] = position[0];
        y[n] = position[1];
    }
    x[n] = y[n] = 0;
    sim->sight.centre[0] = opc_bullet_mean(n + 1, x);
    sim->sight.centre[1] = opc_bullet_mean(n + 1, y);
}

/* Copies what the task may look at out of the engine, after a reset or step. */
static void read_world(struct bullet *sim)
{
    struct opc_bullet_sight *sight = &sim->sight;
    opc_bullet_state(sim->world, sight->q, sight->qd);
    /* RoboSchool itself keeps joint states in float. */
    for (int j = 0; sim->task->single && j < sim->task->robot->joints; j++) {
        sight->q[j] = opc_bullet_rounded(sight->q[j]);
        sight->qd[j] = opc_bullet_rounded(sight->qd[j]);
    }
    opc_bullet_pose(sim->world, sim->torso, sight->position, sight->quaternion);
    if (!sim->task->around)
        return;
    opc_bullet_velocity(sim->world, sim->torso, sight->linear, sight->angular);
    find_centre(sim);
}

static const double WILD = 1e6; /* metres, radians and their speeds: nothing gets there honestly */

static bool all_tame(int n, const double *x)
{
    int wild = 0;
    for (int i = 0; i < n; i++)
        wild += !(fabs(x[i]) < WILD);
    return wild == 0;
}

/* Fails on a simulation that has exploded, and names the joint. */
static int check_sight(struct bullet *sim, struct opc_err *err)
{
    const struct opc_bullet_sight *sight = &sim->sight;
    const int n = sim->task->robot->joints;
    if (all_tame(n, sight->q) && all_tame(n, sight->qd) && all_tame(3, sight->position))
        return OPC_OK;
    sim->spoiled = true;
    for (int j = 0; j < n; j++)
        if (!all_tame(1, &sight->q[j]) || !all_tame(1, &sight->qd[j]))
            return opc_fail(err, OPC_EENV,
                            "the simulation failed: joint %s is at %g and moves at %g",
                            sim->robot.body[opc_bullet_joint_body(&sim->robot, j)].joint_name,
                            sight->q[j], sight->qd[j]);
    return opc_fail(err, OPC_EENV, "the simulation failed: the torso is at (%g, %g, %g)",
                    sight->position[0], sight->position[1], sight->position[2]);
}

/* ---- playing --------------------------------------------------------------------------------- */

/* A new world for one that must not be used again. */
static int renew_world(struct bullet *sim, struct opc_err *err)
{
    struct opc_bullet *world = opc_bullet_create(&sim->robot, &sim->task->setting);
    if (!world)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for another simulation");
    opc_bullet_destroy(sim->world);
    sim->world = world;
    sim->spoiled = false;
    return OPC_OK;
}

static int out_of_memory(struct bullet *sim, struct opc_err *err)
{
    sim->spoiled = true;
    return opc_fail(err, OPC_ENOMEM, "not enough memory for the engine's contacts");
}

static int bullet_start(struct opc_env *env, const double *state, double *obs, struct opc_err *err)
{
    static const double rest[2 * OPC_BULLET_JOINTS];
    struct bullet *sim = (struct bullet *)env;
    const double *from = state ? state : rest;
    /* A wild start would break the world before the first step. */
    for (int i = 0; i < env->state; i++)
        if (!all_tame(1, &from[i]))
            return opc_fail(err, OPC_EUSER, "number %d of the state is %g; below 1e6 would do",
                            i + 1, from[i]);
    const int code = sim->spoiled ? renew_world(sim, err) : OPC_OK;
    if (code)
        return code;
    if (opc_bullet_reset(sim->world, from, from + sim->task->robot->joints))
        return out_of_memory(sim, err);
    /* No foot has touched the floor yet: flags are a step old. */
    memset(sim->sight.touched, 0, sizeof sim->sight.touched);
    read_world(sim);
    opc_bullet_begin(&sim->sight);
    sim->task->observe(&sim->sight, obs);
    return OPC_OK;
}

static int bullet_reset(struct opc_env *env, struct opc_rng *rng, double *obs, struct opc_err *err)
{
    const struct bullet *sim = (const struct bullet *)env;
    const struct opc_bullet_task *task = sim->task;
    double state[2 * OPC_BULLET_JOINTS] = {0};
    /* Only positions are drawn; velocities start at 0. */
    for (int j = task->shake_from; j < task->robot->joints; j++) {
        const double x = opc_env_uniform(rng, sim->noise);
        state[j] = task->single ? opc_bullet_rounded(x) : x;
    }
    return bullet_start(env, state, obs, err);
}

static void bullet_state(const struct opc_env *env, double *state)
{
    const struct bullet *sim = (const struct bullet *)env;
    opc_bullet_state(sim->world, state, state + sim->task->robot->joints);
}

/* Forces of all joints from the clipped action; a joint that is not driven gets none. */
static void compute_forces(const struct bullet *sim, const double *action,
                           double force[OPC_BULLET_JOINTS])
{
    const struct opc_bullet_robot_spec *spec = sim->task->robot;
    memset(force, 0, OPC_BULLET_JOINTS * sizeof *force);
    for (int i = 0; i < spec->act; i++) {
        const double f =
            sim->task->strength * spec->drive[i].max * opc_bullet_clipped(action[i], 1);
        force[sim->sight.drive[i]] = sim->task->single ? opc_bullet_rounded(f) : f;
    }
}

/* The simulation decides where it knows more than the observation (whole turns of a joint). */
static bool bullet_ended(const struct bullet *sim, const double *obs)
{
    if (sim->task->ended_here)
        return sim->task->ended_here(&sim->sight);
    return sim->task->ended && sim->task->ended(obs);
}

/* Costs are charged on the action as it comes, although the motors clip it. */
static int bullet_step(struct opc_env *env, const double *action, struct opc_outcome *out,
                       struct opc_err *err)
{
    struct bullet *sim = (struct bullet *)env;
    double force[OPC_BULLET_JOINTS];
    compute_forces(sim, action, force);
    if (opc_bullet_step(sim->world, force))
        return out_of_memory(sim, err);
    read_world(sim);
    const int code = check_sight(sim, err);
    if (code)
        return code;
    sim->task->observe(&sim->sight, out->obs);
    out->terminated = bullet_ended(sim, out->obs);
    out->reward = sim->task->reward(&sim->sight, action, out->terminated);
    /* After the observation: as in the originals, the flags are seen one step late. */
    for (int i = 0; i < sim->feet; i++)
        sim->sight.touched[i] = opc_bullet_touches(sim->world, sim->foot[i]);
    return OPC_OK;
}

/* Torques and stepSimulation alone, for `opc env bench` to compare with. */
static void bullet_bare(struct opc_env *env, const double *action, struct opc_outcome *out)
{
    struct bullet *sim = (struct bullet *)env;
    double force[OPC_BULLET_JOINTS];
    (void)out;
    compute_forces(sim, action, force);
    if (opc_bullet_step(sim->world, force))
        sim->spoiled = true;
}

/* ---- imagined transitions -------------------------------------------------------------------- */

static void bullet_terminal(const struct opc_env *env, int n, const float *s, const float *a,
                            const float *next, bool *out)
{
    (void)s, (void)a;
    const struct opc_bullet_task *task = ((const struct bullet *)env)->task;
    double obs[OPC_BULLET_OBS];
    for (int i = 0; i < n; i++, next += task->obs) {
        /* ended() expects finite numbers; an imagined state that is not finite ends the rollout. */
        bool finite = true;
        for (int k = 0; k < task->obs; k++) {
            obs[k] = (double)next[k];
            finite = finite && isfinite(obs[k]);
        }
        out[i] = !finite || task->ended(obs);
    }
}

/* Of the pendulum, which is paid 1 for every step; only its types have this function. */
static void bullet_reward(const struct opc_env *env, int n, const float *s, const float *a,
                          const float *next, float *out)
{
    (void)env, (void)s, (void)a, (void)next;
    for (int i = 0; i < n; i++)
        out[i] = 1;
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* Rotates v by the quaternion (w, u), which need not have unit length:
 * v + 2 (w u x v + u x (u x v)) / |q|^2. */
static void rotate(double w, const double u[3], const double v[3], double out[3])
{
    const double two = 2 / (w * w + u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
    const double c[3] = {u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2],
                         u[0] * v[1] - u[1] * v[0]}; /* u x v */
    const double d[3] = {u[1] * c[2] - u[2] * c[1], u[2] * c[0] - u[0] * c[2],
                         u[0] * c[1] - u[1] * c[0]}; /* u x (u x v) */
    for (int k = 0; k < 3; k++)
        out[k] = v[k] + two * (w * c[k] + d[k]);
}

/* A point from the frame of a solid to the world, raised by `lift`. */
static void solid_to_world(const struct bullet *sim, const struct opc_bullet_shape *s,
                           const double at[3], double lift, double out[3])
{
    double in_body[3], position[3], q[4];
    rotate(s->turn[0], s->turn + 1, at, in_body);
    for (int k = 0; k < 3; k++)
        in_body[k] += s->at[k];
    opc_bullet_pose(sim->world, s->body, position, q);
    rotate(q[3], q, in_body, out);
    for (int k = 0; k < 3; k++)
        out[k] += position[k] + (k == 2 ? lift : 0);
}

/* Lighter with every weld between the body and the torso; the furthest ones are blue. */
static void choose_colour(const struct bullet *sim, int body, float rgb[3])
{
    static const float tones[][3] = {
        {0.90f, 0.46f, 0.24f}, {0.95f, 0.65f, 0.26f}, {0.98f, 0.80f, 0.42f}, {0.22f, 0.38f, 0.54f}};
    int depth = 0;
    for (int i = body; i > 0 && i != sim->torso && depth < 3; i = sim->robot.body[i].parent)
        depth += sim->robot.body[i].joint == OPC_BULLET_WELD;
    memcpy(rgb, tones[depth], sizeof tones[depth]);
}

/* Every solid is a capsule between two points, which coincide for a sphere. */
static void draw_solid(const struct bullet *sim, const struct opc_bullet_shape *s, double lift,
                       struct opc_shape *out)
{
    const double half = s->solid == OPC_BULLET_CAPSULE_Z ? s->height / 2 : 0;
    const double down[3] = {0, 0, -half}, up[3] = {0, 0, half};
    const bool two = s->solid == OPC_BULLET_TWO_SPHERES;
    solid_to_world(sim, s, two ? s->from : down, lift, out->from);
    solid_to_world(sim, s, two ? s->to : up, lift, out->to);
    out->radius = s->radius;
    choose_colour(sim, s->body, out->rgb);
}

static void bullet_draw(const struct opc_env *env, struct opc_scene *scene)
{
    const struct bullet *sim = (const struct bullet *)env;
    const bool floor = sim->task->setting.floor;
    const double lift = floor ? 0 : 0.6; /* the pendulum's rail is at height 0 */
    double torso[3];
    opc_bullet_pose(sim->world, sim->torso, torso, NULL);
    *scene = (struct opc_scene){.width = floor ? 3 : 2.6, .centre = {0, 0, floor ? 0.7 : 0.8}};
    /* The camera follows a robot on the floor; the pendulum stands still and shows its rail. */
    if (floor)
        memcpy(scene->centre, torso, 2 * sizeof *torso);
    else
        scene->shape[scene->n++] =
            (struct opc_shape){{-1, 0, lift}, {1, 0, lift}, 0.02, {0.5f, 0.5f, 0.5f}};
    for (int i = 0; i < sim->robot.shapes && scene->n < OPC_SHAPES; i++)
        draw_solid(sim, &sim->robot.shape[i], lift, &scene->shape[scene->n++]);
}

/* ---- the list -------------------------------------------------------------------------------- */

/* clang-format off */
/* All functions are shared; only the task differs. ENDS: it can terminate. KNOWN: its reward is a
 * formula of what an imagined transition has. */
#define BULLET(task_name) \
    .name = "bullet:" #task_name, .page = &opc_bullet_##task_name.page, \
    .task = &opc_bullet_##task_name, \
    .open = bullet_open, .copy = bullet_copy, .close = bullet_close, .reset = bullet_reset, \
    .start = bullet_start, .state = bullet_state, .step = bullet_step, .draw = bullet_draw, \
    .bare = bullet_bare
#define ENDS .terminal = bullet_terminal
#define KNOWN .reward = bullet_reward

const struct opc_env_type opc_bullet_types[] = {
    {BULLET(inverted_pendulum), ENDS, KNOWN},
    {BULLET(inverted_pendulum_rs), ENDS, KNOWN, .args = constants},
    {BULLET(hopper), ENDS, .args = reset_noise},
    {BULLET(hopper_rs), ENDS},
    {BULLET(walker2d), ENDS},
    {BULLET(walker2d_rs), ENDS},
    {BULLET(half_cheetah)},
    {BULLET(half_cheetah_rs), ENDS},
    {BULLET(ant), ENDS},
    {BULLET(ant_truncated_obs), ENDS},
    {BULLET(ant_rs), ENDS},
    {0},
};
/* clang-format on */
