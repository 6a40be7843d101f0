/* SPDX-License-Identifier: MIT */
#include "opc/env.h"

#include "base/field.h"
#include "env/check.h"
#include "env/types.h"
#include "opc/mem.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- what there is --------------------------------------------------------------------------- */

static const struct opc_env_type *const analytic[] = {
    &opc_env_linear1d,
    &opc_env_double_integrator,
    &opc_env_pendulum,
    &opc_env_cartpole,
};
enum { ANALYTIC = sizeof analytic / sizeof *analytic };

#if !OPC_WITH_MUJOCO
const struct opc_env_type opc_mujoco_types[] = {{0}};
#endif
#if !OPC_WITH_BULLET
const struct opc_env_type opc_bullet_types[] = {{0}};
#endif

/* Engines by the prefix of their tasks, and what to install and switch on when a build lacks one.
 */
static const struct {
    const char *prefix, *name, *package, *option;
    bool here;
} engines[] = {
    {"mujoco:", "MuJoCo", "libmujoco-dev", "OPC_WITH_MUJOCO", OPC_WITH_MUJOCO},
    {"bullet:", "Bullet", "libbullet-dev", "OPC_WITH_BULLET", OPC_WITH_BULLET},
    {NULL, NULL, NULL, NULL, false},
};

const struct opc_env_type *opc_env_type_at(int i)
{
    static const struct opc_env_type *const lists[] = {opc_mujoco_types, opc_bullet_types};
    if (i < ANALYTIC)
        return i < 0 ? NULL : analytic[i];
    i -= ANALYTIC;
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        for (const struct opc_env_type *type = lists[k]; type->name; type++)
            if (i-- == 0)
                return type;
    return NULL;
}

/* Our name for a task of Gymnasium or PyBullet, "HalfCheetah-v4" or "HopperBulletEnv-v0"; NULL: we
 * have no such task. */
static const char *gym_task(const char *name)
{
    static const struct {
        const char *gym, *ours;
    } TASKS[] = {
        {"CartPole", "cartpole"},
        {"Pendulum", "pendulum"},
        {"InvertedPendulum", "mujoco:inverted_pendulum"},
        {"InvertedDoublePendulum", "mujoco:inverted_double_pendulum"},
        {"Hopper", "mujoco:hopper"},
        {"Walker2d", "mujoco:walker2d"},
        {"HalfCheetah", "mujoco:half_cheetah"},
        {"Ant", "mujoco:ant"},
        {"AntTruncatedObs", "mujoco:ant_truncated_obs"},
        {"Swimmer", "mujoco:swimmer"},
        {"Reacher", "mujoco:reacher"},
        {"Humanoid", "mujoco:humanoid"},
        {"HumanoidTruncatedObs", "mujoco:humanoid_truncated_obs"},
        {"InvertedPendulumMuJoCoEnv", "bullet:inverted_pendulum"},
        {"InvertedPendulumPyBulletEnv", "bullet:inverted_pendulum_rs"},
        {"InvertedPendulumBulletEnv", "bullet:inverted_pendulum_rs"},
        {"HopperMuJoCoEnv", "bullet:hopper"},
        {"HopperPyBulletEnv", "bullet:hopper_rs"},
        {"HopperBulletEnv", "bullet:hopper_rs"},
        {"Walker2DMuJoCoEnv", "bullet:walker2d"},
        {"Walker2DPyBulletEnv", "bullet:walker2d_rs"},
        {"Walker2DBulletEnv", "bullet:walker2d_rs"},
        {"HalfCheetahMuJoCoEnv", "bullet:half_cheetah"},
        {"HalfCheetahPyBulletEnv", "bullet:half_cheetah_rs"},
        {"HalfCheetahBulletEnv", "bullet:half_cheetah_rs"},
        {"AntMuJoCoEnv", "bullet:ant"},
        {"AntPyBulletEnv", "bullet:ant_rs"},
        {"AntBulletEnv", "bullet:ant_rs"},
    };
    const char *version = strstr(name, "-v");
    const size_t n = version ? (size_t)(version - name) : strlen(name);
    for (size_t i = 0; i < sizeof TASKS / sizeof *TASKS; i++)
        if (strlen(TASKS[i].gym) == n && strncmp(TASKS[i].gym, name, n) == 0)
            return TASKS[i].ours;
    return NULL;
}

static int unknown_name(const char *name, struct opc_err *err)
{
    for (int i = 0; engines[i].prefix; i++)
        if (!engines[i].here && strncmp(name, engines[i].prefix, strlen(engines[i].prefix)) == 0)
            return opc_fail(err, OPC_EABSENT,
                            "%s needs %s, which this build lacks; install %s and configure with "
                            "-D %s=ON",
                            name, engines[i].name, engines[i].package, engines[i].option);
    const char *meant = gym_task(name);
    if (meant)
        return opc_fail(err, OPC_EUSER, "no environment is called '%s'; here it is %s", name,
                        meant);
    int nearest = INT_MAX;
    const struct opc_env_type *type;
    for (int i = 0; (type = opc_env_type_at(i)); i++) {
        const char *task = strchr(type->name, ':');
        /* hopper is mujoco:hopper, and so is hoper */
        if (opc_nearer(name, type->name, &nearest) ||
            (task && opc_nearer(name, task + 1, &nearest)))
            meant = type->name;
    }
    if (meant)
        return opc_fail(err, OPC_EUSER, "no environment is called '%s'; did you mean %s?", name,
                        meant);
    return opc_fail(err, OPC_EUSER, "no environment is called '%s'; 'opc env list' shows them",
                    name);
}

static const struct opc_env_type *find(const char *name)
{
    const struct opc_env_type *type;
    int i = 0;
    while ((type = opc_env_type_at(i)) && strcmp(type->name, name) != 0)
        i++;
    return type ? type : opc_env_registered(name);
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* Understood by every task. */
static const struct opc_env_arg angle_arg = {
    .name = "angle",
    .words = "as_is|sincos|raw",
    .fallback = "as_is",
    .help = "observe angles as the task does, as cosine and sine, or as one number each",
};

struct request {
    double arg[OPC_ENV_ARGS];
    bool given[OPC_ENV_ARGS + 1]; /* the last is `angle` */
    enum opc_angle angle;
};

static int parse(const struct opc_env_arg *a, const char *text, double *out, struct opc_err *err)
{
    union {
        double real;
        int word;
    } value = {0};
    const struct opc_field field = {.name = a->name,
                                    .kind = a->words ? OPC_CHOICE : OPC_REAL,
                                    .fallback = a->fallback,
                                    .min = a->min,
                                    .max = a->max,
                                    .words = a->words,
                                    .help = a->help};
    const struct opc_section section = {"", "", &field, 1, sizeof value};
    const int code = opc_section_set(&section, &value, a->name, text, err);
    if (code)
        return code;
    *out = a->words ? (double)value.word : value.real;
    return OPC_OK;
}

static int unknown_argument(const struct opc_env_type *type, const char *key, struct opc_err *err)
{
    char known[200] = "";
    size_t n = 0;
    for (const struct opc_env_arg *a = type->args; a && a->name && n < sizeof known; a++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s, ", a->name);
    return opc_fail(err, OPC_EUSER, "%s has no argument '%s'; it knows %sangle", type->name, key,
                    known);
}

static int read_pair(const struct opc_env_type *type, const char *key, const char *value,
                     struct request *r, struct opc_err *err)
{
    const struct opc_env_arg *a = type->args;
    int i = 0;
    while (a && a[i].name && strcmp(a[i].name, key) != 0)
        i++;
    const bool own = a && a[i].name;
    if (!own && strcmp(key, angle_arg.name) != 0)
        return unknown_argument(type, key, err);
    bool *given = own ? &r->given[i] : &r->given[OPC_ENV_ARGS];
    if (*given)
        return opc_fail(err, OPC_EUSER, "%s: '%s' is given twice; once will do", type->name, key);
    *given = true;
    double number;
    const int code = parse(own ? &a[i] : &angle_arg, value, &number, err);
    if (code)
        return opc_within(err, "%s", type->name);
    if (own)
        r->arg[i] = number;
    else
        r->angle = (enum opc_angle)number;
    return OPC_OK;
}

/* "key=value&key=value"; NULL and "" are no arguments. */
static int read_arguments(const struct opc_env_type *type, const char *text, struct request *r,
                          struct opc_err *err)
{
    *r = (struct request){0};
    int code = OPC_OK;
    for (int i = 0; !code && type->args && type->args[i].name; i++)
        if ((code = parse(&type->args[i], type->args[i].fallback, &r->arg[i], err)))
            return opc_fail(err, OPC_EBUG, "%s: the default of %s does not parse", type->name,
                            type->args[i].name);
    while (!code && text && *text) {
        char pair[128];
        const size_t n = strcspn(text, "&");
        snprintf(pair, sizeof pair, "%.*s", (int)n, text);
        char *equals = strchr(pair, '=');
        if (!equals || equals == pair || n >= sizeof pair)
            return opc_fail(err, OPC_EUSER,
                            "%s: '%s' is no argument; write key=value and join several by '&'",
                            type->name, pair);
        *equals = '\0';
        code = read_pair(type, pair, equals + 1, r, err);
        text += n + (text[n] == '&');
    }
    return code;
}

/* ---- open, copy, close ----------------------------------------------------------------------- */

static int settle(struct opc_env *env, const struct opc_env_type *type, const double *arg,
                  enum opc_angle angle, const char *spec, struct opc_env **out, struct opc_err *err)
{
    env->type = type;
    env->t = -1;
    memcpy(env->arg, arg, sizeof env->arg);
    const int code = opc_wrap_angle(env, angle, &env, err);
    if (code) {
        type->close(env);
        return opc_within(err, "%s", spec);
    }
    env->spec = opc_strdup(spec);
    if (!env->spec) {
        opc_env_close(env);
        return opc_fail(err, OPC_ENOMEM, "not enough memory to open %s", spec);
    }
    *out = env;
    return OPC_OK;
}

/* foreign: a type that nobody has checked. */
static int open_as(const struct opc_env_type *type, bool foreign, const char *args,
                   const char *spec, struct opc_env **out, struct opc_err *err)
{
    struct request r;
    struct opc_env *env = NULL;
    int code = read_arguments(type, args, &r, err);
    if (code)
        return code;
    if (err)
        err->code = OPC_OK;
    code = type->open(type, r.arg, &env, err);
    if (code) {
        if (err && err->code == OPC_OK)
            opc_fail(err, OPC_EENV, "open failed with %d and gave no reason", code);
        return opc_within(err, "%s", spec);
    }
    if (!env)
        return opc_fail(err, OPC_EENV, "%s: open says that all is well and gives nothing", spec);
    code = foreign ? opc_env_check_sizes(env, spec, err) : OPC_OK;
    if (code) {
        type->close(env);
        return code;
    }
    return settle(env, type, r.arg, r.angle, spec, out, err);
}

/* What stands before the '?'; returns what stands behind it, NULL for nothing. */
static const char *cut_name(const char *spec, char name[OPC_TEXT_SIZE])
{
    const size_t n = strcspn(spec, "?");
    snprintf(name, OPC_TEXT_SIZE, "%.*s", (int)n, spec);
    return spec[n] ? spec + n + 1 : NULL;
}

int opc_env_open(const char *spec, struct opc_env **out, struct opc_err *err)
{
    char name[OPC_TEXT_SIZE];
    uint32_t hash = 0;
    const char *args = cut_name(spec, name);
    const bool plugin = opc_env_is_plugin(name);
    const struct opc_env_type *type = plugin ? NULL : find(name);
    int code = plugin ? opc_env_load_plugin(name, &type, &hash, err) : OPC_OK;
    if (code || !type)
        return code ? code : unknown_name(name, err);
    code = open_as(type, plugin || opc_env_registered(name), args, spec, out, err);
    if (!code && plugin) { /* so that a run knows what it was begun with */
        (*out)->model = (*out)->model ? (*out)->model : type->name;
        (*out)->model_hash = hash;
    }
    return code;
}

bool opc_env_is_machine(const char *spec)
{
    char name[OPC_TEXT_SIZE];
    const struct opc_env_type *type;
    uint32_t hash;
    struct opc_err err;
    cut_name(spec, name);
    if (opc_env_registered(name))
        return opc_env_registered(name)->machine;
    return opc_env_is_plugin(name) && !opc_env_load_plugin(name, &type, &hash, &err) &&
           type->machine;
}

int opc_env_open_type(const struct opc_env_type *type, const char *args, struct opc_env **out,
                      struct opc_err *err)
{
    struct opc_text spec = {0};
    opc_text_add(&spec, type->name);
    if (args && *args)
        opc_text_addf(&spec, "?%s", args);
    int code = opc_text_check(&spec, err);
    if (!code)
        code = open_as(type, false, args, opc_text_get(&spec), out, err);
    opc_text_free(&spec);
    return code;
}

void opc_env_dimensions(const struct opc_env *env, int *obs, int *act)
{
    if (obs)
        *obs = env->obs;
    if (act)
        *act = env->act;
}

int opc_env_another(const struct opc_env *like, struct opc_env **out, struct opc_err *err)
{
    struct opc_env *env;
    if (like->type->machine)
        return opc_fail(err, OPC_EUSER, "%s is a machine, and there is no other", like->type->name);
    const int code = like->type->copy ? like->type->copy(like, &env, err)
                                      : like->type->open(like->type, like->arg, &env, err);
    if (code)
        return opc_within(err, "%s", like->spec ? like->spec : like->type->name);
    /* A wrapper's copy is a whole wrapper with a type of its own. */
    const struct opc_env_type *type = env->inner ? env->type : like->type;
    return settle(env, type, like->arg, OPC_ANGLE_AS_IS, like->spec ? like->spec : type->name, out,
                  err);
}

static void stop_motors(struct opc_env *env)
{
    if (env->type->rest)
        env->type->rest(env);
    env->t = -1;
}

void opc_env_rest(struct opc_env *env)
{
    if (env->t >= 0)
        stop_motors(env);
}

void opc_env_close(struct opc_env *env)
{
    if (!env)
        return;
    opc_env_rest(env);
    opc_free(env->spec);
    env->type->close(env);
}

static bool (*interrupted)(void);

void opc_env_stop_when(bool (*wanted)(void))
{
    interrupted = wanted;
}

/* ---- playing --------------------------------------------------------------------------------- */

static bool all_finite(int n, const double *x)
{
    int bad = 0;
    for (int i = 0; i < n; i++)
        bad += !isfinite(x[i]);
    return bad == 0;
}

/* A type of somebody else's may return -1 and say nothing; that is a failure, too. */
static int reason(int code, struct opc_err *err)
{
    if (err && err->code == OPC_OK)
        opc_fail(err, OPC_EENV, "it failed with %d and gave no reason", code);
    return code;
}

/* Where it happened, and that the episode is over for good. Whatever was moving is not to move on:
 * a reset that failed may have begun to. */
static int failed(struct opc_env *env, const char *doing, int t, int code, struct opc_err *err)
{
    stop_motors(env);
    reason(code, err);
    if (code == OPC_ESTOPPED)
        return code; /* wherever that was */
    return t > 0 ? opc_within(err, "%s: %s %d", env->spec, doing, t)
                 : opc_within(err, "%s: %s", env->spec, doing);
}

static void clear(struct opc_err *err)
{
    if (err)
        err->code = OPC_OK;
}

static int begun(struct opc_env *env, int code, const double *obs, const char *doing,
                 struct opc_err *err)
{
    if (!code && !all_finite(env->obs, obs))
        code = opc_fail(err, OPC_EENV, "the first observation is not finite");
    if (code)
        return failed(env, doing, 0, code, err);
    env->t = 0;
    return OPC_OK;
}

int opc_env_reset(struct opc_env *env, struct opc_rng *rng, double *obs, struct opc_err *err)
{
    opc_env_rest(env);
    clear(err);
    return begun(env, env->type->reset(env, rng, obs, err), obs, "reset", err);
}

int opc_env_start(struct opc_env *env, const double *state, double *obs, struct opc_err *err)
{
    if (!env->type->start)
        return opc_fail(err, OPC_EUSER, "%s cannot start at a given state", env->spec);
    opc_env_rest(env);
    clear(err);
    return begun(env, env->type->start(env, state, obs, err), obs, "start", err);
}

void opc_env_state(const struct opc_env *env, double *state)
{
    if (env->type->state)
        env->type->state(env, state);
}

static int refuse_action(const struct opc_env *env, const double *action, struct opc_err *err)
{
    int i = 0;
    while (i < env->act - 1 && isfinite(action[i]))
        i++;
    return opc_fail(err, OPC_EDIVERGED,
                    "entry %d of the action is %g; actions must be finite numbers", i, action[i]);
}

int opc_env_step(struct opc_env *env, const double *action, struct opc_outcome *out,
                 struct opc_err *err)
{
    const int t = env->t + 1;
    if (t == 0)
        return opc_fail(err, OPC_EUSER, "%s: reset it before the first step", env->spec);
    out->reward = 0;
    out->terminated = out->truncated = false;
    clear(err);
    int code = interrupted && interrupted()   ? opc_fail(err, OPC_ESTOPPED, "stopped by request")
               : all_finite(env->act, action) ? env->type->step(env, action, out, err)
                                              : refuse_action(env, action, err);
    if (!code && !(all_finite(env->obs, out->obs) && isfinite(out->reward)))
        code = opc_fail(err, OPC_EENV, "observation or reward is not finite");
    if (code)
        return failed(env, "step", t, code, err);
    env->t = t;
    out->truncated = env->steps > 0 && t >= env->steps;
    if (env->type->machine && (out->terminated || out->truncated))
        stop_motors(env);
    return OPC_OK;
}

void opc_env_scale(const struct opc_env *env, const float *a, double *action)
{
    for (int i = 0; i < env->act; i++) {
        const double low = env->low[i], high = env->high[i];
        const double x = low + ((double)a[i] + 1) * (high - low) / 2;
        action[i] = x < low ? low : x > high ? high : x;
    }
}

/* ---- imagined transitions -------------------------------------------------------------------- */

void opc_env_terminal(const struct opc_env *env, int n, const float *s, const float *a,
                      const float *next, bool *out)
{
    if (env->type->terminal)
        env->type->terminal(env, n, s, a, next, out);
    else
        memset(out, 0, (size_t)n * sizeof *out);
}

bool opc_env_reward(const struct opc_env *env, int n, const float *s, const float *a,
                    const float *next, float *out)
{
    if (!env->type->reward)
        return false;
    env->type->reward(env, n, s, a, next, out);
    return true;
}

/* ---- for types ------------------------------------------------------------------------------- */

double opc_env_uniform(struct opc_rng *rng, double half)
{
    return half * (2 * opc_rng_unit_double(rng) - 1);
}

struct opc_rng opc_env_noise_stream(struct opc_rng *reset)
{
    const uint64_t high = opc_rng_bits(reset), low = opc_rng_bits(reset);
    return opc_rng_stream(high << 32 | low, OPC_USE_ENV, 0, 0);
}
