/* SPDX-License-Identifier: MIT */
/* Environments on MuJoCo: reset, step and the engine's bad manners; the tasks themselves are in
 * mujoco/tasks.c. Opened and played through env/env.c; render.c draws what runs here.
 *
 * A step copies the action as it is (the engine clamps an internal copy), runs mj_step frame_skip
 * times, and reads what that left; no mj_forward follows, because the originals have none and the
 * lagging quantities are part of the tasks. A reset builds everything from scratch, so that it
 * equals a fresh environment to the bit.
 *
 * The compiled model is constant while stepping, and copies of an environment share it.
 *
 * On a fatal error MuJoCo by default prints, waits for a key and exits; on a NaN it writes a log
 * file and silently starts the simulation afresh. Our handlers turn the first into OPC_EENV, and
 * since every warning is counted, a step that ends with a count that is not 0 has failed. */
#include "env/mujoco/mujoco.h"

#include "base/format/crc.h"
#include "env/assets.h"
#include "env/mujoco/tasks.h"
#include "env/types.h"
#include "num/normal.h"
#include "opc/mem.h"

#include <mujoco/mujoco.h>

#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *opc_mujoco_version(void)
{
    return mj_versionString();
}

/* ---- the engine's messages ------------------------------------------------------------------- */

/* Where a fatal error of the engine jumps to, and its message. */
struct guard {
    jmp_buf back;
    char text[300];
};
/* The engine's handlers are global and have no context argument. So the guard of a call is a
 * variable of its thread; it is NULL outside of our calls. */
static _Thread_local struct guard *guard;
static void (*their_error)(const char *), (*their_warning)(const char *); /* before ours */

static void on_error(const char *text)
{
    if (!guard) { /* the program around us has called MuJoCo itself */
        if (their_error)
            their_error(text);
        abort(); /* MuJoCo must not go on after a fatal error */
    }
    snprintf(guard->text, sizeof guard->text, "%s", text);
    longjmp(guard->back, 1);
}

/* Silent within our calls: every warning is counted in mjData as well, and check_warnings reads it
 * there. */
static void on_warning(const char *text)
{
    if (!guard && their_warning)
        their_warning(text);
}

static void install_handlers(void)
{
    /* The program around us may have handlers of its own; they still get what is not ours. */
    their_error = mju_user_error;
    their_warning = mju_user_warning;
    mju_user_error = on_error;
    mju_user_warning = on_warning;
}

int opc_mujoco_guarded(void (*work)(void *), void *ctx, struct opc_err *err)
{
    struct guard g;
    /* on_error jumps back here, past the engine's frames. Its data may be half stepped by then, so
     * a caller must reset it before it goes on. */
    if (setjmp(g.back)) {
        guard = NULL;
        return opc_fail(err, OPC_EENV, "MuJoCo gave up: %s", g.text);
    }
    guard = &g;
    work(ctx);
    guard = NULL;
    return OPC_OK;
}

/* ---- models ---------------------------------------------------------------------------------- */

enum { LARGEST = 32 }; /* degrees of freedom and actuators of any task */

struct loading {
    const char *file, *text;
    size_t size;
    mjVFS *files; /* 2 MB, too much for the stack */
    mjModel *model;
    char fault[500];
};

/* Runs guarded. mj_loadXML reads files only, so the text is handed over as a file in memory. */
static void load_xml(void *ctx)
{
    struct loading *loading = ctx;
    mj_defaultVFS(loading->files);
    if (mj_makeEmptyFileVFS(loading->files, loading->file, (int)loading->size) != 0) {
        snprintf(loading->fault, sizeof loading->fault, "the engine's file table refuses it");
        return;
    }
    memcpy(loading->files->filedata[loading->files->nfile - 1], loading->text, loading->size);
    loading->model =
        mj_loadXML(loading->file, loading->files, loading->fault, sizeof loading->fault);
    mj_deleteVFS(loading->files);
    mj_freeLastXML(); /* a copy of its source that the engine keeps */
}

/* Makes one line of the engine's several. */
static void join_lines(char *text)
{
    size_t n = strlen(text);
    while (n > 0 && strchr("\n ", text[n - 1]))
        text[--n] = '\0';
    for (char *c = text; *c; c++)
        if (*c == '\n')
            *c = ' ';
}

static int compile_model(struct loading *loading, struct opc_err *err)
{
    /* The parser of the engine has global state. */
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    if (loading->size == 0)
        return opc_fail(err, OPC_EUSER, "%s is empty", loading->file);
    loading->files = opc_alloc(1, sizeof *loading->files);
    if (!loading->files)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to load %s", loading->file);
    /* Threads may open environments at the same time. */
    pthread_mutex_lock(&one_at_a_time);
    int code = opc_mujoco_guarded(load_xml, loading, err);
    pthread_mutex_unlock(&one_at_a_time);
    opc_free(loading->files);
    join_lines(loading->fault);
    if (!code && !loading->model)
        code = opc_fail(err, OPC_EUSER, "not a model MuJoCo %s can use: %s", mj_versionString(),
                        loading->fault);
    return code ? opc_within(err, "%s", loading->file) : OPC_OK;
}

int opc_mujoco_load(const char *file, mjModel **out, uint32_t *hash, struct opc_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install_handlers);
    /* Struct layouts differ between versions: headers and library must be the same. */
    if (mj_version() != mjVERSION_HEADER)
        return opc_fail(err, OPC_EABSENT,
                        "built for MuJoCo version number %d, but %d was loaded; build again",
                        mjVERSION_HEADER, mj_version());
    struct opc_model_text source;
    struct loading loading = {.file = file};
    int code = opc_model_open(file, &source, err);
    loading.text = source.text;
    loading.size = source.size;
    if (!code)
        code = compile_model(&loading, err);
    if (!code && hash)
        *hash = opc_crc32c(0, loading.text, loading.size);
    opc_model_close(&source, code, err);
    if (!code)
        *out = loading.model;
    return code;
}

void opc_mujoco_free(mjModel *m)
{
    if (m)
        mj_deleteModel(m);
}

/* A compiled model and what is derived from it, shared by all copies of an environment. Constant
 * once it is made, but for the count of its users. */
struct shared {
    atomic_int users;
    mjModel *model;
    uint32_t hash;
    char engine[32], joints[512];
    double *low, *high; /* [nu] */
};

/* The last user frees it. NULL is fine. */
static void release_model(struct shared *shared)
{
    if (!shared || atomic_fetch_sub(&shared->users, 1) > 1)
        return;
    opc_mujoco_free(shared->model);
    opc_free(shared->low);
    opc_free(shared->high);
    opc_free(shared);
}

/* A file from $OPC_MODELS may have other masses, but the task's code indexes by these numbers. */
static int check_sizes(const struct opc_mujoco_task *task, const mjModel *m, struct opc_err *err)
{
    const struct {
        const char *what;
        int is, wanted;
    } sizes[] = {
        {"position coordinates", m->nq, task->nq},
        {"degrees of freedom", m->nv, task->nv},
        {"actuators", m->nu, task->nu},
        {"bodies", m->nbody, task->nbody},
        {"sites", m->nsite, task->nsite},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].is != sizes[i].wanted)
            return opc_fail(err, OPC_EUSER, "%s describes %d %s, but the task is made for %d",
                            task->model, sizes[i].is, sizes[i].what, sizes[i].wanted);
    return OPC_OK;
}

/* Agents act in [-1, 1], which is scaled to the range of each actuator, so each needs one. */
static int check_ranges(const struct opc_mujoco_task *task, const mjModel *m, struct opc_err *err)
{
    for (int i = 0; i < m->nu; i++)
        if (!(m->actuator_ctrlrange[2 * i] < m->actuator_ctrlrange[2 * i + 1]))
            return opc_fail(err, OPC_EUSER,
                            "%s: actuator %d has no range of controls; give it a ctrlrange",
                            task->model, i);
    return OPC_OK;
}

/* All tests of a compiled model against its task; a fault names $OPC_MODELS if that is set. */
static int check_model(const struct opc_mujoco_task *task, const mjModel *m, struct opc_err *err)
{
    int code = check_sizes(task, m, err);
    if (!code)
        code = check_ranges(task, m, err);
    if (code)
        opc_model_misfit(task->model, err);
    return code;
}

/* The names of the joints in the order of qpos, each with its number of coordinates unless that is
 * 1 (a free joint has 7). */
static void list_joints(const mjModel *m, char *out, size_t size)
{
    for (int j = 0, n = 0; j < m->njnt && n < (int)size; j++) {
        const int end = j + 1 < m->njnt ? m->jnt_qposadr[j + 1] : m->nq;
        const int wide = end - m->jnt_qposadr[j];
        const char *name = m->names + m->name_jntadr[j];
        n += snprintf(out + n, size - (size_t)n, "%s%s", j ? ", " : "", *name ? name : "(unnamed)");
        if (wide > 1 && n < (int)size)
            n += snprintf(out + n, size - (size_t)n, " (%d)", wide);
    }
}

static int share_model(const struct opc_mujoco_task *task, struct shared **out, struct opc_err *err)
{
    struct shared *shared = opc_alloc(1, sizeof *shared);
    if (!shared)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %s", task->model);
    /* The model is compiled once; copies of the environment only count themselves as users. */
    atomic_init(&shared->users, 1);
    snprintf(shared->engine, sizeof shared->engine, "MuJoCo %s", mj_versionString());
    int code = opc_mujoco_load(task->model, &shared->model, &shared->hash, err);
    if (!code)
        code = check_model(task, shared->model, err);
    if (code)
        goto fail;
    const size_t nu = (size_t)shared->model->nu;
    shared->low = opc_alloc(nu, sizeof *shared->low);
    shared->high = opc_alloc(nu, sizeof *shared->high);
    if (!shared->low || !shared->high) {
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for %s", task->model);
        goto fail;
    }
    for (size_t i = 0; i < nu; i++) {
        shared->low[i] = shared->model->actuator_ctrlrange[2 * i];
        shared->high[i] = shared->model->actuator_ctrlrange[2 * i + 1];
    }
    list_joints(shared->model, shared->joints, sizeof shared->joints);
    *out = shared;
    return OPC_OK;
fail:
    release_model(shared);
    return code;
}

/* ---- an environment -------------------------------------------------------------------------- */

struct mujoco {
    struct opc_env env;
    const struct opc_mujoco_task *task;
    struct shared *shared;
    mjData *data;
    struct opc_world world; /* points into model and data */
    bool contact;           /* the argument contact=on: compute contact forces after each step */
    double qpos_noise;      /* the argument reset_noise, otherwise that of the task */
};

/* Arguments of tasks; which of the two a type has tells what arg[0] means. */
static const struct opc_env_arg contact[] = {
    {"contact", "off|on", "off", 0, 0, "compute contact forces for observation and reward"},
    {0},
};
static const struct opc_env_arg reset_noise[] = {
    {"reset_noise", NULL, "0.005", 0, 0.5,
     "positions start uniform within this of standing; Bullet's hopper has 0.1"},
    {0},
};

/* Runs guarded: running out of memory is a fatal error to the engine. */
static void make_data(void *ctx)
{
    struct mujoco *sim = ctx;
    sim->data = mj_makeData(sim->shared->model);
}

/* The arrays of the engine under their own names, for the tasks, which know no engine type. */
static struct opc_world view_of(const struct opc_mujoco_task *task, const mjModel *m,
                                const mjData *d)
{
    return (struct opc_world){.nq = m->nq,
                              .nv = m->nv,
                              .nu = m->nu,
                              .nbody = m->nbody,
                              .timestep = m->opt.timestep,
                              .dt = m->opt.timestep * task->frame_skip,
                              .body_mass = m->body_mass,
                              .qpos = d->qpos,
                              .qvel = d->qvel,
                              .xpos = d->xpos,
                              .xipos = d->xipos,
                              .site_xpos = d->site_xpos,
                              .qfrc_constraint = d->qfrc_constraint,
                              .qfrc_actuator = d->qfrc_actuator,
                              .cinert = d->cinert,
                              .cvel = d->cvel,
                              .cfrc_ext = d->cfrc_ext};
}

static void mujoco_close(struct opc_env *env)
{
    struct mujoco *sim = (struct mujoco *)env;
    if (sim->data)
        mj_deleteData(sim->data);
    release_model(sim->shared);
    opc_free(sim);
}

/* Takes over one use of `shared`, also when it fails: the caller does not release it. */
static int mujoco_create(const struct opc_mujoco_task *task, struct shared *shared, bool forces,
                         double qpos_noise, struct opc_env **out, struct opc_err *err)
{
    struct mujoco *sim = opc_alloc(1, sizeof *sim);
    if (!sim) {
        release_model(shared);
        return opc_fail(err, OPC_ENOMEM, "not enough memory for another environment");
    }
    /* Sizes come from the task, ranges and joints from the compiled model. */
    *sim = (struct mujoco){.env = {.obs = task->obs,
                                   .act = task->nu,
                                   .state = task->nq + task->nv,
                                   .steps = task->steps,
                                   .dt = shared->model->opt.timestep * task->frame_skip,
                                   .low = shared->low,
                                   .high = shared->high,
                                   .angles = task->angles,
                                   .n_angles = task->n_angles,
                                   .engine = shared->engine,
                                   .joints = shared->joints,
                                   .model = task->model,
                                   .model_hash = shared->hash},
                           .task = task,
                           .shared = shared,
                           .contact = forces,
                           .qpos_noise = qpos_noise};
    int code = opc_mujoco_guarded(make_data, sim, err);
    if (!code && !sim->data)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for another simulation");
    if (code) {
        mujoco_close(&sim->env);
        return code;
    }
    sim->world = view_of(task, shared->model, sim->data);
    *out = &sim->env;
    return OPC_OK;
}

static int mujoco_open(const struct opc_env_type *type, const double *arg, struct opc_env **out,
                       struct opc_err *err)
{
    const struct opc_mujoco_task *task = type->task;
    struct shared *shared = NULL;
    const int code = share_model(task, &shared, err);
    const double noise = type->args == reset_noise ? arg[0] : task->qpos_noise;
    return code ? code
                : mujoco_create(task, shared, type->args == contact && arg[0] > 0, noise, out, err);
}

/* Shares the compiled model, whose compilation is most of the cost of opening. */
static int mujoco_copy(const struct opc_env *like, struct opc_env **out, struct opc_err *err)
{
    const struct mujoco *sim = (const struct mujoco *)like;
    atomic_fetch_add(&sim->shared->users, 1);
    return mujoco_create(sim->task, sim->shared, sim->contact, sim->qpos_noise, out, err);
}

mjModel *opc_mujoco_inside(const struct opc_env *env, mjData **data)
{
    while (env->inner)
        env = env->inner;
    /* Every MuJoCo type has this function, and only those. */
    if (env->type->close != mujoco_close)
        return NULL;
    const struct mujoco *sim = (const struct mujoco *)env;
    *data = sim->data;
    return sim->shared->model;
}

/* ---- playing --------------------------------------------------------------------------------- */

/* Fails on anything the engine only warned about, because then it has reset the state or left out
 * part of the physics. The texts are ours: the engine's own are in a buffer that all threads share.
 */
static int check_warnings(const mjData *d, struct opc_err *err)
{
    static const char *const WHAT[mjNWARNING] = {
        [mjWARN_INERTIA] = "the inertia matrix is nearly singular at degree of freedom",
        [mjWARN_CONTACTFULL] = "there are more contacts than the model has room for:",
        [mjWARN_CNSTRFULL] = "there are more constraints than the model has room for:",
        [mjWARN_VGEOMFULL] = "there are more shapes than the picture has room for:",
        [mjWARN_BADQPOS] = "NaN, infinity or a huge value in position",
        [mjWARN_BADQVEL] = "NaN, infinity or a huge value in velocity",
        [mjWARN_BADQACC] = "NaN, infinity or a huge value in acceleration",
        [mjWARN_BADCTRL] = "NaN, infinity or a huge value in control",
    };
    for (int i = 0; i < mjNWARNING; i++)
        if (d->warning[i].number > 0)
            return opc_fail(err, OPC_EENV, "the simulation failed: %s %d", WHAT[i],
                            d->warning[i].lastinfo);
    return OPC_OK;
}

static void run_forward(void *ctx)
{
    struct mujoco *sim = ctx;
    mj_forward(sim->shared->model, sim->data);
}

/* The common end of reset and start: from qpos and qvel in data, mj_forward normalises quaternions
 * and fills everything derived, and the task observes it. */
static int mujoco_begin(struct mujoco *sim, double *obs, struct opc_err *err)
{
    int code = opc_mujoco_guarded(run_forward, sim, err);
    if (!code)
        code = check_warnings(sim->data, err);
    if (!code)
        sim->task->observe(&sim->world, obs);
    return code;
}

/* From a given full state, or with NULL from the model's own qpos0 at rest. */
static int mujoco_start(struct opc_env *env, const double *state, double *obs, struct opc_err *err)
{
    struct mujoco *sim = (struct mujoco *)env;
    const mjModel *m = sim->shared->model;
    mj_resetData(m, sim->data); /* qpos0, and everything else 0 */
    if (state) {
        memcpy(sim->data->qpos, state, (size_t)m->nq * sizeof *state);
        memcpy(sim->data->qvel, state + m->nq, (size_t)m->nv * sizeof *state);
    }
    return mujoco_begin(sim, obs, err);
}

/* Noise on all positions first, then on all velocities: the order in which the stream is used up.
 */
static int mujoco_reset(struct opc_env *env, struct opc_rng *rng, double *obs, struct opc_err *err)
{
    struct mujoco *sim = (struct mujoco *)env;
    const struct opc_mujoco_task *task = sim->task;
    mjData *d = sim->data;
    float z[LARGEST];
    mj_resetData(sim->shared->model, d);
    for (int i = 0; i < task->nq; i++)
        d->qpos[i] += opc_env_uniform(rng, sim->qpos_noise);
    if (task->normal_qvel)
        opc_rng_normals(rng, task->nv, z);
    for (int i = 0; i < task->nv; i++)
        d->qvel[i] = task->normal_qvel ? task->qvel_noise * (double)z[i]
                                       : opc_env_uniform(rng, task->qvel_noise);
    /* What a task draws beyond the noise (the target of the reacher). */
    if (task->place)
        task->place(rng, d->qpos, d->qvel);
    return mujoco_begin(sim, obs, err);
}

/* The full state as start takes it: positions, then velocities. */
static void mujoco_state(const struct opc_env *env, double *state)
{
    const struct mujoco *sim = (const struct mujoco *)env;
    memcpy(state, sim->data->qpos, (size_t)sim->task->nq * sizeof *state);
    memcpy(state + sim->task->nq, sim->data->qvel, (size_t)sim->task->nv * sizeof *state);
}

static void simulate(void *ctx)
{
    struct mujoco *sim = ctx;
    for (int i = 0; i < sim->task->frame_skip; i++)
        mj_step(sim->shared->model, sim->data);
    /* Fills cfrc_ext, which mj_step leaves at 0. */
    if (sim->contact)
        mj_rnePostConstraint(sim->shared->model, sim->data);
}

/* No mj_forward before this: the tasks are defined on the lagging quantities. */
static void fill_outcome(const struct mujoco *sim, const double *action, double before,
                         struct opc_outcome *out)
{
    const struct opc_mujoco_task *task = sim->task;
    task->observe(&sim->world, out->obs);
    out->reward = task->reward(&sim->world, action, before);
    out->terminated = task->terminated && task->terminated(&sim->world);
}

static int mujoco_step(struct opc_env *env, const double *action, struct opc_outcome *out,
                       struct opc_err *err)
{
    struct mujoco *sim = (struct mujoco *)env;
    /* Progress is measured before and after the step. */
    const double before = sim->task->progress ? sim->task->progress(&sim->world) : 0;
    /* Unclipped: the engine clamps, but the reward is charged on what was asked for. */
    memcpy(sim->data->ctrl, action, (size_t)sim->task->nu * sizeof *action);
    int code = opc_mujoco_guarded(simulate, sim, err);
    if (!code)
        code = check_warnings(sim->data, err);
    if (!code)
        fill_outcome(sim, action, before, out);
    return code;
}

/* The same work without our checks, for `opc env bench` to compare with. */
static void mujoco_bare(struct opc_env *env, const double *action, struct opc_outcome *out)
{
    struct mujoco *sim = (struct mujoco *)env;
    const double before = sim->task->progress ? sim->task->progress(&sim->world) : 0;
    memcpy(sim->data->ctrl, action, (size_t)sim->task->nu * sizeof *action);
    simulate(sim);
    fill_outcome(sim, action, before, out);
}

/* ---- imagined transitions -------------------------------------------------------------------- */

/* Imagined transitions have no engine state: task->ended judges the observation alone. */
static void mujoco_terminal(const struct opc_env *env, int n, const float *s, const float *a,
                            const float *next, bool *out)
{
    (void)s, (void)a;
    const struct opc_mujoco_task *task = env->type->task;
    for (int i = 0; i < n; i++)
        out[i] = task->ended(next + (size_t)i * (size_t)task->obs);
}

static void mujoco_reward(const struct opc_env *env, int n, const float *s, const float *a,
                          const float *next, float *out)
{
    (void)next;
    const struct opc_mujoco_task *task = env->type->task;
    double action[LARGEST];
    for (int i = 0; i < n; i++) {
        /* a is in [-1, 1]; the formula needs controls. */
        opc_env_scale(env, a + (size_t)i * (size_t)task->nu, action);
        out[i] = task->known_reward(s + (size_t)i * (size_t)task->obs, action);
    }
}

/* For env/check.c: how far the tip is from where the task ends, in m. */
static double double_pendulum_distance(const struct opc_env *env, const float *next)
{
    (void)env;
    return opc_double_pendulum_height(next);
}

/* ---- the list -------------------------------------------------------------------------------- */

/* clang-format off */
/* All functions are shared; only the task differs. ENDS: it can terminate. KNOWN: its reward is a
 * formula of what an imagined transition has. */
#define MUJOCO(task_name) \
    .name = "mujoco:" #task_name, .page = &opc_mujoco_##task_name.page, \
    .task = &opc_mujoco_##task_name, \
    .open = mujoco_open, .copy = mujoco_copy, .close = mujoco_close, .reset = mujoco_reset, \
    .start = mujoco_start, .state = mujoco_state, .step = mujoco_step, .bare = mujoco_bare
#define ENDS .terminal = mujoco_terminal
#define KNOWN .reward = mujoco_reward

const struct opc_env_type opc_mujoco_types[] = {
    {MUJOCO(inverted_pendulum), ENDS, KNOWN},
    {MUJOCO(inverted_double_pendulum), ENDS, .distance = double_pendulum_distance, .blur = 0.02},
    {MUJOCO(hopper), ENDS, .args = reset_noise},
    {MUJOCO(walker2d), ENDS},
    {MUJOCO(half_cheetah)},
    {MUJOCO(ant), ENDS, .args = contact},
    {MUJOCO(ant_truncated_obs), ENDS, .args = contact},
    {MUJOCO(swimmer)},
    {MUJOCO(reacher), KNOWN},
    {MUJOCO(humanoid), ENDS, .args = contact},
    {MUJOCO(humanoid_truncated_obs), ENDS, .args = contact},
    {0},
};
/* clang-format on */
