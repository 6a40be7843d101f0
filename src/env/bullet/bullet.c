/* SPDX-License-Identifier: MIT */
/* Environments on Bullet: open, reset, step and pictures. The engine is behind bullet_shim.h, what
 * the tasks observe and pay is in bullet_tasks.c, and the robots are read by bullet_model.c.
 *
 * A reset leaves nothing of the episode before it, not even the order of contacts, and takes tens
 * of microseconds. Only a world that broke down or ran out of memory is thrown away and made anew:
 * what a NaN leaves behind in the engine's tables is not worth finding out. */
#include "base/crc.h"
#include "env/assets.h"
#include "env/bullet/model.h"
#include "env/bullet/tasks.h"
#include "env/types.h"
#include "opc/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct bullet {
    struct opc_env env;
    const struct opc_bullet_task *task;
    struct opc_bullet_robot robot;
    struct opc_bullet *world;
    bool spoiled;                           /* the world must not be used again */
    int torso, feet, foot[OPC_BULLET_FEET]; /* bodies */
    struct opc_bullet_sight sight;
    char engine[32], joints[256];
};

/* ---- open, copy, close ----------------------------------------------------------------------- */

static const double low[OPC_BULLET_DRIVES] = {-1, -1, -1, -1, -1, -1, -1, -1};
static const double high[OPC_BULLET_DRIVES] = {1, 1, 1, 1, 1, 1, 1, 1};

/* A file from $OPC_MODELS may have other masses, but the task's code counts on these numbers. */
static int check_sizes(const struct bullet *e, struct opc_err *err)
{
    const struct opc_bullet_robot_spec *m = e->task->robot;
    int joints = 0;
    while (opc_bullet_joint_body(&e->robot, joints) >= 0)
        joints++;
    if (joints != m->joints)
        return opc_fail(err, OPC_EUSER, "%s describes %d joints, but the task is made for %d",
                        m->file, joints, m->joints);
    if ((e->robot.body[0].joint == OPC_BULLET_FREE_BASE) != m->free_base)
        return opc_fail(err, OPC_EUSER, "%s: the base of this task's robot must be %s", m->file,
                        m->free_base ? "free" : "fixed");
    return OPC_OK;
}

static int missing(const struct bullet *e, const char *what, const char *name, struct opc_err *err)
{
    return opc_fail(err, OPC_EUSER, "%s describes no %s '%s', which the task needs",
                    e->task->robot->file, what, name);
}

/* Names of the task into numbers of the robot. */
static int find_parts(struct bullet *e, struct opc_err *err)
{
    const struct opc_bullet_robot_spec *m = e->task->robot;
    struct opc_bullet_sight *s = &e->sight;
    e->torso = opc_bullet_find_body(&e->robot, m->torso);
    if (e->torso < 0)
        return missing(e, "body", m->torso, err);
    for (int i = 0; i < m->act; i++) {
        s->drive[i] = opc_bullet_find_joint(&e->robot, m->drive[i].joint);
        const int body = s->drive[i] < 0 ? -1 : opc_bullet_joint_body(&e->robot, s->drive[i]);
        if (body < 0 || !e->robot.body[body].limited)
            return missing(e, "joint with a range", m->drive[i].joint, err);
        s->lower[i] = e->robot.body[body].lower;
        s->upper[i] = e->robot.body[body].upper;
    }
    for (; e->feet < OPC_BULLET_FEET && e->task->feet[e->feet]; e->feet++) {
        e->foot[e->feet] = opc_bullet_find_body(&e->robot, e->task->feet[e->feet]);
        if (e->foot[e->feet] < 0)
            return missing(e, "body", e->task->feet[e->feet], err);
    }
    return OPC_OK;
}

/* The robot of a task from its file. */
static int load(struct bullet *e, struct opc_err *err)
{
    const char *file = e->task->robot->file;
    struct opc_model_text m;
    int code = opc_model_open(file, &m, err);
    if (!code && strlen(m.text) != m.size)
        code = opc_fail(err, OPC_EUSER, "%s is not a text file", file);
    if (!code)
        code = opc_bullet_robot_parse(m.text, file, &e->robot, err);
    if (!code)
        code = check_sizes(e, err);
    if (!code)
        code = find_parts(e, err);
    if (!code)
        e->env.model_hash = opc_crc32c(0, m.text, m.size);
    opc_model_close(&m, code, err);
    return code;
}

static void bullet_close(struct opc_env *env)
{
    struct bullet *e = (struct bullet *)env;
    opc_bullet_destroy(e->world);
    opc_free(e);
}

/* The robot is there; the rest follows from the task. */
static int complete(struct bullet *e, struct opc_err *err)
{
    const struct opc_bullet_task *task = e->task;
    const struct opc_bullet_robot_spec *m = task->robot;
    e->env.obs = task->obs;
    e->env.act = m->act;
    e->env.state = 2 * m->joints;
    e->env.steps = 1000;
    e->env.dt = task->setting.step;
    e->env.low = low;
    e->env.high = high;
    e->env.angles = task->angles;
    e->env.n_angles = task->n_angles;
    e->env.model = m->file;
    e->env.engine = e->engine;
    e->env.joints = e->joints;
    for (int j = 0, n = 0; j < m->joints && n < (int)sizeof e->joints; j++)
        n += snprintf(e->joints + n, sizeof e->joints - (size_t)n, "%s%s", j ? ", " : "",
                      e->robot.body[opc_bullet_joint_body(&e->robot, j)].joint_name);
    e->sight.task = task;
    snprintf(e->engine, sizeof e->engine, "Bullet %s", opc_bullet_version());
    e->world = opc_bullet_create(&e->robot, &task->setting);
    if (!e->world)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for another simulation");
    opc_bullet_pose(e->world, e->torso, e->sight.position, NULL);
    e->sight.own_height = e->sight.position[2];
    return OPC_OK;
}

/* like NULL: the robot is read from its file. */
static int create(const struct opc_bullet_task *task, const struct bullet *like,
                  struct opc_env **out, struct opc_err *err)
{
    struct bullet *e = opc_alloc(1, sizeof *e);
    if (!e)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for another environment");
    int code = OPC_OK;
    e->task = task;
    if (like) {
        e->robot = like->robot;
        e->env.model_hash = like->env.model_hash;
        code = find_parts(e, err);
    } else {
        code = load(e, err);
    }
    if (!code)
        code = complete(e, err);
    if (code) {
        bullet_close(&e->env);
        return code;
    }
    *out = &e->env;
    return OPC_OK;
}

static int bullet_open(const struct opc_env_type *type, const double *arg, struct opc_env **out,
                       struct opc_err *err)
{
    const struct opc_bullet_task *task = type->task;
    return create(task->roboschool && arg[0] > 0 ? task->roboschool : task, NULL, out, err);
}

static int bullet_copy(const struct opc_env *like, struct opc_env **out, struct opc_err *err)
{
    const struct bullet *e = (const struct bullet *)like;
    return create(e->task, e, out, err);
}

/* ---- looking at the world -------------------------------------------------------------------- */

/* All bodies (a fixed base is none) in order, then the floor at 0. */
static void find_centre(struct bullet *e)
{
    double x[OPC_BULLET_BODIES + 1], y[OPC_BULLET_BODIES + 1], position[3];
    int n = 0;
    for (int i = e->task->robot->free_base ? 0 : 1; i < e->robot.bodies; i++, n++) {
        opc_bullet_pose(e->world, i, position, NULL);
        x[n] = position[0];
        y[n] = position[1];
    }
    x[n] = y[n] = 0;
    e->sight.centre[0] = opc_bullet_mean(n + 1, x);
    e->sight.centre[1] = opc_bullet_mean(n + 1, y);
}

static void look(struct bullet *e)
{
    struct opc_bullet_sight *s = &e->sight;
    opc_bullet_state(e->world, s->q, s->qd);
    for (int j = 0; e->task->single && j < e->task->robot->joints; j++) {
        s->q[j] = opc_bullet_rounded(s->q[j]);
        s->qd[j] = opc_bullet_rounded(s->qd[j]);
    }
    opc_bullet_pose(e->world, e->torso, s->position, s->quaternion);
    if (!e->task->around)
        return;
    opc_bullet_velocity(e->world, e->torso, s->linear, s->angular);
    find_centre(e);
}

static const double WILD = 1e6; /* metres, radians and their speeds: nothing gets there honestly */

static bool tame(int n, const double *x)
{
    int wild = 0;
    for (int i = 0; i < n; i++)
        wild += !(fabs(x[i]) < WILD);
    return wild == 0;
}

static int check_sight(struct bullet *e, struct opc_err *err)
{
    const struct opc_bullet_sight *s = &e->sight;
    const int n = e->task->robot->joints;
    if (tame(n, s->q) && tame(n, s->qd) && tame(3, s->position))
        return OPC_OK;
    e->spoiled = true;
    for (int j = 0; j < n; j++)
        if (!tame(1, &s->q[j]) || !tame(1, &s->qd[j]))
            return opc_fail(
                err, OPC_EENV, "the simulation failed: joint %s is at %g and moves at %g",
                e->robot.body[opc_bullet_joint_body(&e->robot, j)].joint_name, s->q[j], s->qd[j]);
    return opc_fail(err, OPC_EENV, "the simulation failed: the torso is at (%g, %g, %g)",
                    s->position[0], s->position[1], s->position[2]);
}

/* ---- playing --------------------------------------------------------------------------------- */

static int renew(struct bullet *e, struct opc_err *err)
{
    struct opc_bullet *world = opc_bullet_create(&e->robot, &e->task->setting);
    if (!world)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for another simulation");
    opc_bullet_destroy(e->world);
    e->world = world;
    e->spoiled = false;
    return OPC_OK;
}

static int out_of_memory(struct bullet *e, struct opc_err *err)
{
    e->spoiled = true;
    return opc_fail(err, OPC_ENOMEM, "not enough memory for the engine's contacts");
}

static int bullet_start(struct opc_env *env, const double *state, double *obs, struct opc_err *err)
{
    static const double rest[2 * OPC_BULLET_JOINTS];
    struct bullet *e = (struct bullet *)env;
    const double *from = state ? state : rest;
    for (int i = 0; i < env->state; i++)
        if (!tame(1, &from[i]))
            return opc_fail(err, OPC_EUSER, "number %d of the state is %g; below 1e6 would do",
                            i + 1, from[i]);
    const int code = e->spoiled ? renew(e, err) : OPC_OK;
    if (code)
        return code;
    if (opc_bullet_reset(e->world, from, from + e->task->robot->joints))
        return out_of_memory(e, err);
    memset(e->sight.touched, 0, sizeof e->sight.touched);
    look(e);
    opc_bullet_begin(&e->sight);
    e->task->observe(&e->sight, obs);
    return OPC_OK;
}

static int bullet_reset(struct opc_env *env, struct opc_rng *rng, double *obs, struct opc_err *err)
{
    const struct opc_bullet_task *task = ((struct bullet *)env)->task;
    double state[2 * OPC_BULLET_JOINTS] = {0};
    for (int j = task->shake_from; j < task->robot->joints; j++) {
        const double x = opc_env_uniform(rng, 0.1);
        state[j] = task->single ? opc_bullet_rounded(x) : x;
    }
    return bullet_start(env, state, obs, err);
}

static void bullet_state(const struct opc_env *env, double *state)
{
    const struct bullet *e = (const struct bullet *)env;
    opc_bullet_state(e->world, state, state + e->task->robot->joints);
}

/* Forces of all joints; those nobody drives get none. */
static void pull(const struct bullet *e, const double *action, double force[OPC_BULLET_JOINTS])
{
    const struct opc_bullet_robot_spec *m = e->task->robot;
    memset(force, 0, OPC_BULLET_JOINTS * sizeof *force);
    for (int i = 0; i < m->act; i++) {
        const double f = e->task->strength * m->drive[i].max * opc_bullet_clipped(action[i], 1);
        force[e->sight.drive[i]] = e->task->single ? opc_bullet_rounded(f) : f;
    }
}

static bool ended(const struct bullet *e, const double *obs)
{
    if (e->task->ended_here)
        return e->task->ended_here(&e->sight);
    return e->task->ended && e->task->ended(obs);
}

/* Costs are charged on the action as it comes, although the motors clip it. */
static int bullet_step(struct opc_env *env, const double *action, struct opc_outcome *out,
                       struct opc_err *err)
{
    struct bullet *e = (struct bullet *)env;
    double force[OPC_BULLET_JOINTS];
    pull(e, action, force);
    if (opc_bullet_step(e->world, force))
        return out_of_memory(e, err);
    look(e);
    const int code = check_sight(e, err);
    if (code)
        return code;
    e->task->observe(&e->sight, out->obs);
    out->terminated = ended(e, out->obs);
    out->reward = e->task->reward(&e->sight, action, out->terminated);
    for (int i = 0; i < e->feet; i++)
        e->sight.touched[i] = opc_bullet_touches(e->world, e->foot[i]);
    return OPC_OK;
}

/* The bare engine loop: torques and stepSimulation. */
static void bullet_bare(struct opc_env *env, const double *action, struct opc_outcome *out)
{
    struct bullet *e = (struct bullet *)env;
    double force[OPC_BULLET_JOINTS];
    (void)out;
    pull(e, action, force);
    if (opc_bullet_step(e->world, force))
        e->spoiled = true;
}

/* ---- imagined transitions -------------------------------------------------------------------- */

static void bullet_terminal(const struct opc_env *env, int n, const float *s, const float *a,
                            const float *next, bool *out)
{
    (void)s, (void)a;
    const struct opc_bullet_task *task = ((const struct bullet *)env)->task;
    double obs[OPC_BULLET_OBS];
    for (int i = 0; i < n; i++, next += task->obs) {
        bool finite = true;
        for (int k = 0; k < task->obs; k++) {
            obs[k] = (double)next[k];
            finite = finite && isfinite(obs[k]);
        }
        out[i] = !finite || task->ended(obs);
    }
}

/* The pendulum's, which is paid for every step. */
static void bullet_reward(const struct opc_env *env, int n, const float *s, const float *a,
                          const float *next, float *out)
{
    (void)env, (void)s, (void)a, (void)next;
    for (int i = 0; i < n; i++)
        out[i] = 1;
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* v turned by the quaternion (w, u), which need not have unit length. */
static void turn(double w, const double u[3], const double v[3], double out[3])
{
    const double two = 2 / (w * w + u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
    const double c[3] = {u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2],
                         u[0] * v[1] - u[1] * v[0]}; /* u x v */
    const double d[3] = {u[1] * c[2] - u[2] * c[1], u[2] * c[0] - u[0] * c[2],
                         u[0] * c[1] - u[1] * c[0]}; /* u x (u x v) */
    for (int k = 0; k < 3; k++)
        out[k] = v[k] + two * (w * c[k] + d[k]);
}

/* From the frame of a solid to the world, lifted by so much. */
static void carry(const struct bullet *e, const struct opc_bullet_shape *s, const double at[3],
                  double lift, double out[3])
{
    double in_body[3], position[3], q[4];
    turn(s->turn[0], s->turn + 1, at, in_body);
    for (int k = 0; k < 3; k++)
        in_body[k] += s->at[k];
    opc_bullet_pose(e->world, s->body, position, q);
    turn(q[3], q, in_body, out);
    for (int k = 0; k < 3; k++)
        out[k] += position[k] + (k == 2 ? lift : 0);
}

/* The further from the torso, the lighter; feet are blue. */
static void choose_colour(const struct bullet *e, int body, float rgb[3])
{
    static const float tones[][3] = {
        {0.90f, 0.46f, 0.24f}, {0.95f, 0.65f, 0.26f}, {0.98f, 0.80f, 0.42f}, {0.22f, 0.38f, 0.54f}};
    int depth = 0;
    for (int i = body; i > 0 && i != e->torso && depth < 3; i = e->robot.body[i].parent)
        depth += e->robot.body[i].joint == OPC_BULLET_WELD;
    memcpy(rgb, tones[depth], sizeof tones[depth]);
}

static void draw_solid(const struct bullet *e, const struct opc_bullet_shape *s, double lift,
                       struct opc_shape *out)
{
    const double half = s->solid == OPC_BULLET_CAPSULE_Z ? s->height / 2 : 0;
    const double down[3] = {0, 0, -half}, up[3] = {0, 0, half};
    const bool two = s->solid == OPC_BULLET_TWO_SPHERES;
    carry(e, s, two ? s->from : down, lift, out->from);
    carry(e, s, two ? s->to : up, lift, out->to);
    out->radius = s->radius;
    choose_colour(e, s->body, out->rgb);
}

static void bullet_draw(const struct opc_env *env, struct opc_scene *scene)
{
    const struct bullet *e = (const struct bullet *)env;
    const bool floor = e->task->setting.floor;
    const double lift = floor ? 0 : 0.6; /* the pendulum's rail is at height 0 */
    double torso[3];
    opc_bullet_pose(e->world, e->torso, torso, NULL);
    *scene = (struct opc_scene){.width = floor ? 3 : 2.6, .centre = {0, 0, floor ? 0.7 : 0.8}};
    if (floor)
        memcpy(scene->centre, torso, 2 * sizeof *torso);
    else
        scene->shape[scene->n++] =
            (struct opc_shape){{-1, 0, lift}, {1, 0, lift}, 0.02, {0.5f, 0.5f, 0.5f}};
    for (int i = 0; i < e->robot.shapes && scene->n < OPC_SHAPES; i++)
        draw_solid(e, &e->robot.shape[i], lift, &scene->shape[scene->n++]);
}

/* ---- the list -------------------------------------------------------------------------------- */

static const struct opc_env_arg constants[] = {
    {"constants", "pybullet|roboschool", "pybullet", 0, 0,
     "numbers of the pybullet-gym port, or of RoboSchool itself, which rounds to float"},
    {0},
};

/* clang-format off */
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
    {BULLET(hopper), ENDS},
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
