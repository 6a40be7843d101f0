/* SPDX-License-Identifier: MIT */
/* Environments on MuJoCo: reset, step and the engine's bad manners; the tasks themselves are in
 * mujoco_tasks.c.
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

#include "base/crc.h"
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

struct guard {
    jmp_buf back;
    char text[300];
};
/* The engine's handlers are global and have no context argument, so these have to be. */
static _Thread_local struct guard *guard;
static void (*their_error)(const char *), (*their_warning)(const char *); /* before ours */

static void on_error(const char *text)
{
    if (!guard) { /* a call of the program around us */
        if (their_error)
            their_error(text);
        abort(); /* returning, it would go on in a broken state */
    }
    snprintf(guard->text, sizeof guard->text, "%s", text);
    longjmp(guard->back, 1);
}

/* Every warning is counted in mjData as well, and reported from there. */
static void on_warning(const char *text)
{
    if (!guard && their_warning)
        their_warning(text);
}

static void install_handlers(void)
{
    their_error = mju_user_error;
    their_warning = mju_user_warning;
    mju_user_error = on_error;
    mju_user_warning = on_warning;
}

int opc_mujoco_guarded(void (*work)(void *), void *ctx, struct opc_err *err)
{
    struct guard g;
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
    mjVFS *files; /* 2 MB: not for the stack */
    mjModel *model;
    char fault[500];
};

static void load(void *ctx)
{
    struct loading *l = ctx;
    mj_defaultVFS(l->files);
    if (mj_makeEmptyFileVFS(l->files, l->file, (int)l->size) != 0) {
        snprintf(l->fault, sizeof l->fault, "the engine's file table refuses it");
        return;
    }
    memcpy(l->files->filedata[l->files->nfile - 1], l->text, l->size);
    l->model = mj_loadXML(l->file, l->files, l->fault, sizeof l->fault);
    mj_deleteVFS(l->files);
    mj_freeLastXML(); /* a copy of its source that the engine keeps */
}

/* One line out of the engine's several. */
static void flatten(char *text)
{
    size_t n = strlen(text);
    while (n > 0 && strchr("\n ", text[n - 1]))
        text[--n] = '\0';
    for (char *c = text; *c; c++)
        if (*c == '\n')
            *c = ' ';
}

static int compile(struct loading *l, struct opc_err *err)
{
    /* The engine's parser has global state. */
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    if (l->size == 0)
        return opc_fail(err, OPC_EUSER, "%s is empty", l->file);
    l->files = opc_alloc(1, sizeof *l->files);
    if (!l->files)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to load %s", l->file);
    pthread_mutex_lock(&one_at_a_time);
    int code = opc_mujoco_guarded(load, l, err);
    pthread_mutex_unlock(&one_at_a_time);
    opc_free(l->files);
    flatten(l->fault);
    if (!code && !l->model)
        code = opc_fail(err, OPC_EUSER, "not a model MuJoCo %s can use: %s", mj_versionString(),
                        l->fault);
    return code ? opc_within(err, "%s", l->file) : OPC_OK;
}

int opc_mujoco_load(const char *file, mjModel **out, uint32_t *hash, struct opc_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install_handlers);
    if (mj_version() != mjVERSION_HEADER)
        return opc_fail(err, OPC_EABSENT,
                        "built for MuJoCo version number %d, but %d was loaded; build again",
                        mjVERSION_HEADER, mj_version());
    struct opc_model_text source;
    struct loading l = {.file = file};
    int code = opc_model_open(file, &source, err);
    l.text = source.text;
    l.size = source.size;
    if (!code)
        code = compile(&l, err);
    if (!code && hash)
        *hash = opc_crc32c(0, l.text, l.size);
    opc_model_close(&source, code, err);
    if (!code)
        *out = l.model;
    return code;
}

void opc_mujoco_free(mjModel *m)
{
    if (m)
        mj_deleteModel(m);
}

/* A compiled model with its users. */
struct shared {
    atomic_int users;
    mjModel *model;
    uint32_t hash;
    char engine[32], joints[512];
    double *low, *high; /* [nu] */
};

static void let_go(struct shared *s)
{
    if (!s || atomic_fetch_sub(&s->users, 1) > 1)
        return;
    opc_mujoco_free(s->model);
    opc_free(s->low);
    opc_free(s->high);
    opc_free(s);
}

/* A file from $OPC_MODELS may have other masses, but the task's code counts on these numbers. */
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

static int check_ranges(const struct opc_mujoco_task *task, const mjModel *m, struct opc_err *err)
{
    for (int i = 0; i < m->nu; i++)
        if (!(m->actuator_ctrlrange[2 * i] < m->actuator_ctrlrange[2 * i + 1]))
            return opc_fail(err, OPC_EUSER,
                            "%s: actuator %d has no range of controls; give it a ctrlrange",
                            task->model, i);
    return OPC_OK;
}

static int check_model(const struct opc_mujoco_task *task, const mjModel *m, struct opc_err *err)
{
    int code = check_sizes(task, m, err);
    if (!code)
        code = check_ranges(task, m, err);
    if (code)
        opc_model_misfit(task->model, err);
    return code;
}

/* As qpos has them; with how many numbers there, if not one. */
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

static int share(const struct opc_mujoco_task *task, struct shared **out, struct opc_err *err)
{
    struct shared *s = opc_alloc(1, sizeof *s);
    if (!s)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %s", task->model);
    atomic_init(&s->users, 1);
    snprintf(s->engine, sizeof s->engine, "MuJoCo %s", mj_versionString());
    int code = opc_mujoco_load(task->model, &s->model, &s->hash, err);
    if (!code)
        code = check_model(task, s->model, err);
    if (code)
        goto fail;
    const size_t nu = (size_t)s->model->nu;
    s->low = opc_alloc(nu, sizeof *s->low);
    s->high = opc_alloc(nu, sizeof *s->high);
    if (!s->low || !s->high) {
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for %s", task->model);
        goto fail;
    }
    for (size_t i = 0; i < nu; i++) {
        s->low[i] = s->model->actuator_ctrlrange[2 * i];
        s->high[i] = s->model->actuator_ctrlrange[2 * i + 1];
    }
    list_joints(s->model, s->joints, sizeof s->joints);
    *out = s;
    return OPC_OK;
fail:
    let_go(s);
    return code;
}

/* ---- an environment -------------------------------------------------------------------------- */

struct mujoco {
    struct opc_env env;
    const struct opc_mujoco_task *task;
    struct shared *shared;
    mjData *data;
    struct opc_world world; /* points into model and data */
    bool contact;
};

static void make_data(void *ctx)
{
    struct mujoco *e = ctx;
    e->data = mj_makeData(e->shared->model);
}

static struct opc_world look(const struct opc_mujoco_task *task, const mjModel *m, const mjData *d)
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
    struct mujoco *e = (struct mujoco *)env;
    if (e->data)
        mj_deleteData(e->data);
    let_go(e->shared);
    opc_free(e);
}

/* Takes over one use of `shared`, also when it fails. */
static int create(const struct opc_mujoco_task *task, struct shared *shared, bool contact,
                  struct opc_env **out, struct opc_err *err)
{
    struct mujoco *e = opc_alloc(1, sizeof *e);
    if (!e) {
        let_go(shared);
        return opc_fail(err, OPC_ENOMEM, "not enough memory for another environment");
    }
    *e = (struct mujoco){.env = {.obs = task->obs,
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
                         .contact = contact};
    int code = opc_mujoco_guarded(make_data, e, err);
    if (!code && !e->data)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for another simulation");
    if (code) {
        mujoco_close(&e->env);
        return code;
    }
    e->world = look(task, shared->model, e->data);
    *out = &e->env;
    return OPC_OK;
}

static int mujoco_open(const struct opc_env_type *type, const double *arg, struct opc_env **out,
                       struct opc_err *err)
{
    const struct opc_mujoco_task *task = type->task;
    struct shared *shared = NULL;
    const int code = share(task, &shared, err);
    return code ? code : create(task, shared, type->args && arg[0] > 0, out, err);
}

static int mujoco_copy(const struct opc_env *like, struct opc_env **out, struct opc_err *err)
{
    const struct mujoco *e = (const struct mujoco *)like;
    atomic_fetch_add(&e->shared->users, 1);
    return create(e->task, e->shared, e->contact, out, err);
}

mjModel *opc_mujoco_inside(const struct opc_env *env, mjData **data)
{
    while (env->inner)
        env = env->inner;
    if (env->type->close != mujoco_close)
        return NULL;
    const struct mujoco *e = (const struct mujoco *)env;
    *data = e->data;
    return e->shared->model;
}

/* ---- playing --------------------------------------------------------------------------------- */

/* What the engine only warns about: it has started afresh, or left out part of the physics. (Its
 * own texts are in a buffer that all threads share.) */
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

static void forward(void *ctx)
{
    struct mujoco *e = ctx;
    mj_forward(e->shared->model, e->data);
}

/* From qpos and qvel as they are in data. Normalises quaternions and fills everything derived. */
static int begin(struct mujoco *e, double *obs, struct opc_err *err)
{
    int code = opc_mujoco_guarded(forward, e, err);
    if (!code)
        code = check_warnings(e->data, err);
    if (!code)
        e->task->observe(&e->world, obs);
    return code;
}

static int mujoco_start(struct opc_env *env, const double *state, double *obs, struct opc_err *err)
{
    struct mujoco *e = (struct mujoco *)env;
    const mjModel *m = e->shared->model;
    mj_resetData(m, e->data); /* qpos0, and everything else 0 */
    if (state) {
        memcpy(e->data->qpos, state, (size_t)m->nq * sizeof *state);
        memcpy(e->data->qvel, state + m->nq, (size_t)m->nv * sizeof *state);
    }
    return begin(e, obs, err);
}

/* All positions first, then all velocities. */
static int mujoco_reset(struct opc_env *env, struct opc_rng *rng, double *obs, struct opc_err *err)
{
    struct mujoco *e = (struct mujoco *)env;
    const struct opc_mujoco_task *task = e->task;
    mjData *d = e->data;
    float z[LARGEST];
    mj_resetData(e->shared->model, d);
    for (int i = 0; i < task->nq; i++)
        d->qpos[i] += opc_env_uniform(rng, task->qpos_noise);
    if (task->normal_qvel)
        opc_rng_normals(rng, task->nv, z);
    for (int i = 0; i < task->nv; i++)
        d->qvel[i] = task->normal_qvel ? task->qvel_noise * (double)z[i]
                                       : opc_env_uniform(rng, task->qvel_noise);
    if (task->place)
        task->place(rng, d->qpos, d->qvel);
    return begin(e, obs, err);
}

static void mujoco_state(const struct opc_env *env, double *state)
{
    const struct mujoco *e = (const struct mujoco *)env;
    memcpy(state, e->data->qpos, (size_t)e->task->nq * sizeof *state);
    memcpy(state + e->task->nq, e->data->qvel, (size_t)e->task->nv * sizeof *state);
}

static void simulate(void *ctx)
{
    struct mujoco *e = ctx;
    for (int i = 0; i < e->task->frame_skip; i++)
        mj_step(e->shared->model, e->data);
    if (e->contact)
        mj_rnePostConstraint(e->shared->model, e->data);
}

static void fill_outcome(const struct mujoco *e, const double *action, double before,
                         struct opc_outcome *out)
{
    const struct opc_mujoco_task *task = e->task;
    task->observe(&e->world, out->obs);
    out->reward = task->reward(&e->world, action, before);
    out->terminated = task->terminated && task->terminated(&e->world);
}

static int mujoco_step(struct opc_env *env, const double *action, struct opc_outcome *out,
                       struct opc_err *err)
{
    struct mujoco *e = (struct mujoco *)env;
    const double before = e->task->progress ? e->task->progress(&e->world) : 0;
    memcpy(e->data->ctrl, action, (size_t)e->task->nu * sizeof *action);
    int code = opc_mujoco_guarded(simulate, e, err);
    if (!code)
        code = check_warnings(e->data, err);
    if (!code)
        fill_outcome(e, action, before, out);
    return code;
}

/* The bare engine loop: mj_step and the task's arithmetic. */
static void mujoco_bare(struct opc_env *env, const double *action, struct opc_outcome *out)
{
    struct mujoco *e = (struct mujoco *)env;
    const double before = e->task->progress ? e->task->progress(&e->world) : 0;
    memcpy(e->data->ctrl, action, (size_t)e->task->nu * sizeof *action);
    simulate(e);
    fill_outcome(e, action, before, out);
}

/* ---- imagined transitions -------------------------------------------------------------------- */

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
        opc_env_scale(env, a + (size_t)i * (size_t)task->nu, action);
        out[i] = task->known_reward(s + (size_t)i * (size_t)task->obs, action);
    }
}

static double double_pendulum_distance(const struct opc_env *env, const float *next)
{
    (void)env;
    return opc_double_pendulum_height(next);
}

/* ---- the list -------------------------------------------------------------------------------- */

static const struct opc_env_arg contact[] = {
    {"contact", "off|on", "off", 0, 0, "compute contact forces for observation and reward"},
    {0},
};

/* clang-format off */
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
    {MUJOCO(hopper), ENDS},
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
