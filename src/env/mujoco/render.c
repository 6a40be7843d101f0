/* SPDX-License-Identifier: MIT */
/* Pictures by MuJoCo's own renderer, into memory.
 *
 * A view has its own copy of the model, because the size of the picture is part of it, and its own
 * mjData, because drawing needs poses that agree with qpos, while the lagging ones an environment
 * holds are part of its task and must stay. Environments on other engines, or on none, describe
 * themselves as capsules, which are put on the stage of models/stage.xml.
 *
 * Called by `opc env render` through env/view.h. Invariant: drawing changes nothing in the
 * environment, so that a filmed episode is the same as one that is not. */
#include "env/assets.h"
#include "env/mujoco/mujoco.h"
#include "env/view.h"
#include "opc/mem.h"

#include <mujoco/mujoco.h>

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- a GL context without a screen -----------------------------------------------------------
 * The few names we need of both libraries, so that their headers are not needed to build. */

typedef int32_t egl_int;
enum {
    EGL_ALPHA_SIZE = 0x3021,
    EGL_BLUE_SIZE = 0x3022,
    EGL_GREEN_SIZE = 0x3023,
    EGL_RED_SIZE = 0x3024,
    EGL_DEPTH_SIZE = 0x3025,
    EGL_STENCIL_SIZE = 0x3026,
    EGL_SURFACE_TYPE = 0x3033,
    EGL_NONE = 0x3038,
    EGL_RENDERABLE_TYPE = 0x3040,
    EGL_OPENGL_API = 0x30A2,
    EGL_PLATFORM_SURFACELESS_MESA = 0x31DD,
    EGL_PBUFFER_BIT = 1,
    EGL_OPENGL_BIT = 8,
    GL_RGBA = 0x1908,
    GL_UNSIGNED_BYTE = 0x1401,
};

/* A context of either library. {0}: none. */
struct gl {
    void *library;              /* of dlopen */
    void (*leave)(struct gl *); /* destroys the context; NULL before there is one */
    void *display, *context;    /* display: of EGL only */
    bool works;                 /* the context is current on this thread */
    unsigned char *pixels;      /* OSMesa draws into memory of ours */
};

/* ISO C has no cast from the object pointer that dlsym returns to a function pointer; `function` is
 * the address of the latter. */
static bool find_symbol(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static void leave_egl(struct gl *gl)
{
    unsigned (*make_current)(void *, void *, void *, void *), (*destroy)(void *, void *),
        (*terminate)(void *);
    if (gl->display && find_symbol(gl->library, "eglMakeCurrent", &make_current) &&
        find_symbol(gl->library, "eglDestroyContext", &destroy) &&
        find_symbol(gl->library, "eglTerminate", &terminate)) {
        make_current(gl->display, NULL, NULL, NULL);
        if (gl->context)
            destroy(gl->display, gl->context);
        terminate(gl->display);
    }
}

/* Surfaceless: MuJoCo draws into a frame buffer of its own, so no window or pixmap is needed. */
static bool enter_egl(struct gl *gl)
{
    static const egl_int wanted[] = {EGL_RED_SIZE,
                                     8,
                                     EGL_GREEN_SIZE,
                                     8,
                                     EGL_BLUE_SIZE,
                                     8,
                                     EGL_ALPHA_SIZE,
                                     8,
                                     EGL_DEPTH_SIZE,
                                     24,
                                     EGL_STENCIL_SIZE,
                                     8,
                                     EGL_SURFACE_TYPE,
                                     EGL_PBUFFER_BIT,
                                     EGL_RENDERABLE_TYPE,
                                     EGL_OPENGL_BIT,
                                     EGL_NONE};
    void *(*get_proc)(const char *), *(*get_display)(void *);
    void *(*get_platform_display)(unsigned, void *, const egl_int *);
    unsigned (*initialize)(void *, egl_int *, egl_int *), (*bind)(unsigned);
    unsigned (*choose)(void *, const egl_int *, void **, egl_int, egl_int *);
    void *(*create)(void *, void *, void *, const egl_int *);
    unsigned (*make_current)(void *, void *, void *, void *);
    void *l = gl->library, *config;
    egl_int n = 0;
    /* All functions or none: an incomplete library does not count. */
    if (!find_symbol(l, "eglGetProcAddress", &get_proc) ||
        !find_symbol(l, "eglGetDisplay", &get_display) ||
        !find_symbol(l, "eglInitialize", &initialize) || !find_symbol(l, "eglBindAPI", &bind) ||
        !find_symbol(l, "eglChooseConfig", &choose) ||
        !find_symbol(l, "eglCreateContext", &create) ||
        !find_symbol(l, "eglMakeCurrent", &make_current))
        return false;
    /* From here on there may be something to clean up. */
    gl->leave = leave_egl;
    void *extension = get_proc("eglGetPlatformDisplayEXT");
    memcpy(&get_platform_display, &extension, sizeof extension);
    if (extension)
        gl->display = get_platform_display(EGL_PLATFORM_SURFACELESS_MESA, NULL, NULL);
    /* Drivers without the extension have a default display. */
    if (!gl->display)
        gl->display = get_display(NULL);
    if (!gl->display || !initialize(gl->display, NULL, NULL) || !bind(EGL_OPENGL_API) ||
        !choose(gl->display, wanted, &config, 1, &n) || n < 1)
        return false;
    /* Made current without a surface, which MuJoCo does not need. */
    gl->context = create(gl->display, config, NULL, NULL);
    return gl->context && make_current(gl->display, NULL, NULL, gl->context);
}

static void leave_osmesa(struct gl *gl)
{
    void (*destroy)(void *);
    if (gl->context && find_symbol(gl->library, "OSMesaDestroyContext", &destroy))
        destroy(gl->context);
}

/* Software rendering: slower, but it needs no device and no permission. */
static bool enter_osmesa(struct gl *gl)
{
    enum { SIDE = 16 }; /* of the default buffer, which is never drawn into */
    void *(*create)(unsigned, egl_int, egl_int, egl_int, void *);
    unsigned char (*make_current)(void *, void *, unsigned, egl_int, egl_int);
    if (!find_symbol(gl->library, "OSMesaCreateContextExt", &create) ||
        !find_symbol(gl->library, "OSMesaMakeCurrent", &make_current))
        return false;
    gl->leave = leave_osmesa;
    gl->pixels = opc_alloc((size_t)SIDE * SIDE, 4);
    gl->context = gl->pixels ? create(GL_RGBA, 24, 8, 0, NULL) : NULL;
    return gl->context && make_current(gl->context, gl->pixels, GL_UNSIGNED_BYTE, SIDE, SIDE);
}

static void leave_gl(struct gl *gl)
{
    if (gl->leave)
        gl->leave(gl);
    opc_free(gl->pixels);
    /* Mesa's drivers do not survive being unloaded and loaded again, so a library that worked
     * stays; one that did not must go, because MuJoCo takes the first it finds in the process. */
    if (gl->library && !gl->works)
        dlclose(gl->library);
    *gl = (struct gl){0};
}

/* Tries one library after the other until one has made a context; OPC_GL insists on one. */
static int enter_gl(struct gl *gl, struct opc_err *err)
{
    static const struct {
        const char *name, *library;
        bool (*enter)(struct gl *);
    } ways[] = {{"egl", "libEGL.so.1", enter_egl},
                {"osmesa", "libOSMesa.so.8", enter_osmesa},
                {"osmesa", "libOSMesa.so.6", enter_osmesa}};
    const char *only = getenv("OPC_GL");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (only && *only && strcmp(only, ways[i].name) != 0)
            continue;
        *gl = (struct gl){.library = dlopen(ways[i].library, RTLD_NOW | RTLD_LOCAL)};
        gl->works = gl->library && ways[i].enter(gl);
        if (gl->works)
            return OPC_OK;
        leave_gl(gl);
    }
    return opc_fail(err, OPC_EABSENT,
                    "found no way to draw without a screen: neither EGL nor OSMesa works here%s%s; "
                    "install libegl1 and libgl1-mesa-dri, or libosmesa6",
                    only && *only ? " with OPC_GL=" : "", only ? only : "");
}

/* ---- views ----------------------------------------------------------------------------------- */

enum { LARGEST = 4096, GEOMS = 1000 }; /* pixels of a side; shapes in a scene */

struct opc_view {
    const struct opc_env *env;
    int width, height;
    struct gl gl;
    mjModel *model;
    mjData *data;
    bool own_scene;              /* the environment describes itself by shapes */
    bool has_scene, has_context; /* made, so they have to be freed */
    mjvScene scene;
    mjrContext context;
    mjvCamera camera;
    mjvOption option;
    unsigned char *upside_down; /* as GL reads pixels */
};

/* In the reverse order of opening: the renderer needs the GL context for its end, too. */
void opc_view_close(struct opc_view *v)
{
    if (!v)
        return;
    if (v->has_context)
        mjr_freeContext(&v->context);
    if (v->has_scene)
        mjv_freeScene(&v->scene);
    leave_gl(&v->gl);
    if (v->data)
        mj_deleteData(v->data);
    opc_mujoco_free(v->model);
    opc_free(v->upside_down);
    opc_free(v);
}

/* Runs guarded. The flags are set at once, because a later call may jump out. */
static void make_view(void *ctx)
{
    struct opc_view *v = ctx;
    v->model->vis.global.offwidth = v->width;
    v->model->vis.global.offheight = v->height;
    v->data = mj_makeData(v->model);
    mjv_defaultScene(&v->scene);
    mjv_defaultOption(&v->option);
    mjv_defaultCamera(&v->camera);
    mjr_defaultContext(&v->context);
    mjv_makeScene(v->model, &v->scene, GEOMS);
    v->has_scene = true;
    mjr_makeContext(v->model, &v->context, mjFONTSCALE_100);
    v->has_context = true;
    mjr_setBuffer(mjFB_OFFSCREEN, &v->context);
}

/* The model's camera "front", which stands where the task happens, or "track", which moves with the
 * robot; a model without either is seen from a free camera. */
static void choose_camera(struct opc_view *v)
{
    int id = mj_name2id(v->model, mjOBJ_CAMERA, "front");
    if (id < 0)
        id = mj_name2id(v->model, mjOBJ_CAMERA, "track");
    v->camera.type = id < 0 ? mjCAMERA_FREE : mjCAMERA_FIXED;
    v->camera.fixedcamid = id;
    if (id < 0)
        mjv_defaultFreeCamera(v->model, &v->camera);
}

/* A copy of the environment's model, or the stage for one that runs on another engine. */
static int find_model(struct opc_view *v, struct opc_err *err)
{
    mjData *theirs;
    const mjModel *model = opc_mujoco_inside(v->env, &theirs);
    v->own_scene = !model;
    if (v->own_scene)
        return v->env->type->draw ? opc_mujoco_load(OPC_STAGE, &v->model, NULL, err)
                                  : opc_fail(err, OPC_EUSER, "%s has nothing to see", v->env->spec);
    v->model = mj_copyModel(NULL, model);
    return v->model ? OPC_OK
                    : opc_fail(err, OPC_ENOMEM, "not enough memory for a copy of the model");
}

int opc_view_open(const struct opc_env *env, int width, int height, struct opc_view **out,
                  struct opc_err *err)
{
    if (width < 16 || height < 16 || width > LARGEST || height > LARGEST)
        return opc_fail(err, OPC_EUSER, "a picture of %d x %d pixels; 16 to %d each way", width,
                        height, LARGEST);
    struct opc_view *v = opc_alloc(1, sizeof *v);
    if (!v)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a view");
    *v = (struct opc_view){.env = env, .width = width, .height = height};
    v->upside_down = opc_alloc((size_t)width * (size_t)height, 3);
    int code = v->upside_down ? find_model(v, err)
                              : opc_fail(err, OPC_ENOMEM, "not enough memory for a picture");
    if (!code)
        code = enter_gl(&v->gl, err);
    if (!code)
        code = opc_mujoco_guarded(make_view, v, err);
    /* MuJoCo falls back to the window's buffer without an error; there is no window here. */
    if (!code && (!v->data || v->context.currentBuffer != mjFB_OFFSCREEN))
        code = opc_fail(err, OPC_EENV, "MuJoCo could not make a frame buffer of %d x %d pixels",
                        width, height);
    if (code) {
        opc_view_close(v);
        return code;
    }
    choose_camera(v);
    *out = v;
    return OPC_OK;
}

/* The floor is finite, but its pattern repeats every metre. It follows the robot in whole metres,
 * so that it looks endless and at rest. */
static void move_floor(mjvScene *scene, const double *centre)
{
    for (int i = 0; i < scene->ngeom; i++) {
        mjvGeom *g = &scene->geoms[i];
        for (int k = 0; g->type == mjGEOM_PLANE && k < 2; k++)
            g->pos[k] += (float)round(centre[k]);
    }
}

/* A capsule between two points; a sphere if they are the same. */
static void add_shape(mjvScene *scene, const struct opc_shape *s)
{
    if (scene->ngeom >= scene->maxgeom)
        return;
    mjvGeom *g = &scene->geoms[scene->ngeom++];
    const float rgba[4] = {s->rgb[0], s->rgb[1], s->rgb[2], 1};
    const double size[3] = {s->radius, s->radius, s->radius};
    const bool ball = memcmp(s->from, s->to, sizeof s->from) == 0;
    mjv_initGeom(g, ball ? mjGEOM_SPHERE : mjGEOM_CAPSULE, size, s->from, NULL, rgba);
    if (!ball)
        mjv_makeConnector(g, mjGEOM_CAPSULE, s->radius, s->from[0], s->from[1], s->from[2],
                          s->to[0], s->to[1], s->to[2]);
    g->category = mjCAT_DYNAMIC;
    g->specular = 0.4f;
    g->shininess = 0.5f;
}

static void set_scene(struct opc_view *v)
{
    static const double origin[2] = {0};
    struct opc_scene own = {0};
    mjData *theirs;
    /* A task on another engine says what to draw and where to look. */
    if (v->own_scene) {
        v->env->type->draw(v->env, &own);
        memcpy(v->camera.lookat, own.centre, sizeof own.centre);
        v->camera.azimuth = 90;
        v->camera.elevation = -8;
        v->camera.distance = own.width; /* the lens sees about 53 degrees across */
    } else {
        /* Only qpos is copied: poses for the picture follow from it, and nothing lags. */
        opc_mujoco_inside(v->env, &theirs);
        memcpy(v->data->qpos, theirs->qpos, (size_t)v->model->nq * sizeof *theirs->qpos);
    }
    /* On our copies of model and data, never on the environment's. */
    mj_forward(v->model, v->data);
    mjv_updateScene(v->model, v->data, &v->option, NULL, &v->camera, mjCAT_ALL, &v->scene);
    /* subtree_com + 3 is the centre of mass of body 1, the robot. */
    move_floor(&v->scene, v->own_scene          ? own.centre
                          : v->model->nbody > 1 ? v->data->subtree_com + 3
                                                : origin);
    for (int i = 0; i < own.n; i++)
        add_shape(&v->scene, &own.shape[i]);
}

static void draw_view(void *ctx)
{
    struct opc_view *v = ctx;
    const mjrRect all = {0, 0, v->width, v->height};
    /* Runs guarded, on the thread that has the GL context. */
    set_scene(v);
    mjr_render(all, &v->scene, &v->context);
    mjr_readPixels(v->upside_down, NULL, all, &v->context);
}

int opc_view_draw(struct opc_view *v, unsigned char *rgb, struct opc_err *err)
{
    const int code = opc_mujoco_guarded(draw_view, v, err);
    const size_t row = 3 * (size_t)v->width, rows = (size_t)v->height;
    /* GL has the bottom row first. */
    for (size_t y = 0; !code && y < rows; y++)
        memcpy(rgb + y * row, v->upside_down + (rows - 1 - y) * row, row);
    return code;
}
