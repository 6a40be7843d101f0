/* SPDX-License-Identifier: MIT */
/* The environments' front: finds a type by name, reads its arguments, and plays it. Everything that
 * plays an environment (run/, study/, cli/env/) calls opc_env_* here and never a type directly.
 *
 * Invariants: no type sees an action that is not finite, and no caller an observation or reward
 * that is not. env->t is -1 unless an episode is under way; whenever it becomes -1, hardware has
 * been told to rest. A failure of a type always leaves with a message. */
#include "opc/env.h"

#include "base/field.h"
#include "base/file.h"
#include "env/check.h"
#include "env/guard.h"
#include "env/types.h"
#include "opc/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the list of types
 * --------------------------------------------------------------------------- */

static const struct opc_env_type *const analytic[] = {
    &opc_env_linear1d,
    &opc_env_double_integrator,
    &opc_env_pendulum,
    &opc_env_cartpole,
};
enum { ANALYTIC = sizeof analytic / sizeof *analytic };

/* A build without an engine has an empty list of its tasks. */
#if !OPC_WITH_MUJOCO
const struct opc_env_type opc_mujoco_types[] = {{0}};
#endif
#if !OPC_WITH_BULLET
const struct opc_env_type opc_bullet_types[] = {{0}};
#endif

/* Entry i of all lists, one after the other; NULL after the last. */
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

static const struct opc_env_type *find_type(const char *name)
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

/* The arguments of a spec, as numbers; a word is its index in `words`. */
struct request {
    double arg[OPC_ENV_ARGS];
    bool given[OPC_ENV_ARGS + 1]; /* the last is `angle` */
    enum opc_angle angle;
};

/* An argument is parsed as a setting of one field, so that its messages are those of settings. */
static int parse_argument(const struct opc_env_arg *a, const char *text, double *out,
                          struct opc_err *err)
{
    union {
        double real;
        int word;
    } value = {0};
    const struct opc_field field = {.name = a->name,
                                    .kind = a->words ? OPC_FIELD_CHOICE : OPC_FIELD_REAL,
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

/* Lists the arguments the type has; every type also has angle. */
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
                     struct request *request, struct opc_err *err)
{
    const struct opc_env_arg *a = type->args;
    int i = 0;
    while (a && a[i].name && strcmp(a[i].name, key) != 0)
        i++;
    /* One of the type's own arguments, or `angle`, which every type has. */
    const bool own = a && a[i].name;
    if (!own && strcmp(key, angle_arg.name) != 0)
        return unknown_argument(type, key, err);
    bool *given = own ? &request->given[i] : &request->given[OPC_ENV_ARGS];
    if (*given)
        return opc_fail(err, OPC_EUSER, "%s: '%s' is given twice; once will do", type->name, key);
    *given = true;
    double number;
    const int code = parse_argument(own ? &a[i] : &angle_arg, value, &number, err);
    if (code)
        return opc_within(err, "%s", type->name);
    if (own)
        request->arg[i] = number;
    else
        request->angle = (enum opc_angle)number;
    return OPC_OK;
}

/* Reads "key=value&key=value" over the defaults; NULL and "" are no arguments. */
static int read_arguments(const struct opc_env_type *type, const char *text,
                          struct request *request, struct opc_err *err)
{
    *request = (struct request){0};
    int code = OPC_OK;
    /* Defaults are text like everything else; one that does not parse is a bug of the type. */
    for (int i = 0; !code && type->args && type->args[i].name; i++)
        if ((code = parse_argument(&type->args[i], type->args[i].fallback, &request->arg[i], err)))
            return opc_fail(err, OPC_EBUG, "%s: the default of %s does not parse", type->name,
                            type->args[i].name);
    /* One pair at a time. A pair that does not fit the buffer is refused like one without '='. */
    while (!code && text && *text) {
        char pair[128];
        const size_t n = strcspn(text, "&");
        snprintf(pair, sizeof pair, "%.*s", (int)n, text);
        char *equals = strchr(pair, '=');
        if (!equals || equals == pair || n >= sizeof pair)
            return opc_fail(err, OPC_EUSER,
                            "%s: '%s' is not an argument; write key=value and join several by '&'",
                            type->name, pair);
        *equals = '\0';
        code = read_pair(type, pair, equals + 1, request, err);
        text += n + (text[n] == '&');
    }
    return code;
}

/* ---- open, copy, close ----------------------------------------------------------------------- */

/* What every fresh environment gets: its type, its arguments, the wrapper of its angles and its
 * name. Closes env if that fails. */
static int finish_open(struct opc_env *env, const struct opc_env_type *type, const double *arg,
                       enum opc_angle angle, const char *spec, struct opc_env **out,
                       struct opc_err *err)
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

/* Opens one of a known type. foreign: the type comes from a plugin, so its sizes are checked. */
static int open_as(const struct opc_env_type *type, bool foreign, const char *args,
                   const char *spec, struct opc_env **out, struct opc_err *err)
{
    struct request request;
    struct opc_env *env = NULL;
    int code = read_arguments(type, args, &request, err);
    if (code)
        return code;
    /* So that a type which fails without a message can be told from one with a message. */
    if (err)
        err->code = OPC_OK;
    opc_guard_enter(spec, "open");
    code = type->open(type, request.arg, &env, err);
    opc_guard_leave();
    if (code) {
        if (err && err->code == OPC_OK)
            opc_fail(err, OPC_EENV, "open failed with %d and gave no reason", code);
        return opc_within(err, "%s", spec);
    }
    if (!env)
        return opc_fail(err, OPC_EENV, "%s: open says that all is well and gives nothing", spec);
    /* A plugin may have left sizes or ranges unset, and everything after this indexes by them. */
    code = foreign ? opc_env_check_sizes(env, spec, err) : OPC_OK;
    if (code) {
        type->close(env);
        return code;
    }
    if (foreign && !type->machine)
        opc_guard_watch();
    return finish_open(env, type, request.arg, request.angle, spec, out, err);
}

/* Copies what stands before the '?' and returns what stands after it, or NULL. */
static const char *cut_name(const char *spec, char name[OPC_PATH])
{
    const size_t n = strcspn(spec, "?");
    snprintf(name, OPC_PATH, "%.*s", (int)n, spec);
    return spec[n] ? spec + n + 1 : NULL;
}

/* exec:COMMAND: a child that plays the task. Its dimensions and ranges are as foreign as a
 * plugin's. */
static int open_process(const char *spec, struct opc_env **out, struct opc_err *err)
{
    static const double NO_ARGS[OPC_ENV_ARGS] = {0};
    struct opc_env *env;
    int code = opc_process_open(spec, &env, err);
    if (code)
        return opc_within(err, "%s", spec);
    code = opc_env_check_sizes(env, spec, err);
    if (code) {
        env->type->close(env);
        return code;
    }
    return finish_open(env, env->type, NO_ARGS, OPC_ANGLE_AS_IS, spec, out, err);
}

/* spec is NAME or NAME?ARGUMENTS; a NAME ending in .so is loaded as a plugin first. */
int opc_env_open(const char *spec, struct opc_env **out, struct opc_err *err)
{
    if (opc_env_is_process(spec))
        return open_process(spec, out, err);
    char name[OPC_PATH];
    uint32_t hash = 0;
    const char *args = cut_name(spec, name);
    const bool plugin = opc_env_is_plugin(name);
    const struct opc_env_type *type = plugin ? NULL : find_type(name);
    int code = plugin ? opc_env_load_plugin(name, &type, &hash, err) : OPC_OK;
    if (code || !type)
        return code ? code : opc_env_unknown(name, err);
    code = open_as(type, plugin || opc_env_registered(name), args, spec, out, err);
    if (!code && plugin) { /* the run records it, and resuming compares */
        (*out)->model = (*out)->model ? (*out)->model : type->name;
        (*out)->model_hash = hash;
    }
    return code;
}

bool opc_env_is_foreign(const char *spec)
{
    char name[OPC_PATH];
    cut_name(spec, name);
    return opc_env_is_process(spec) || opc_env_is_plugin(name) || opc_env_registered(name);
}

bool opc_env_is_task(const char *spec)
{
    char name[OPC_PATH];
    cut_name(spec, name);
    return opc_env_is_foreign(spec) || find_type(name) || opc_env_lacks(name);
}

bool opc_env_is_machine(const char *spec)
{
    char name[OPC_PATH];
    const struct opc_env_type *type;
    uint32_t hash;
    struct opc_err err;
    /* A child says in its hello what it is, so it is started to find out. */
    if (opc_env_is_process(spec)) {
        struct opc_env *env = NULL;
        if (opc_env_open(spec, &env, &err) || !env)
            return false;
        const bool machine = env->type->machine;
        opc_env_close(env);
        return machine;
    }
    /* Of the others only a plugin can be hardware; nothing is opened to find out. */
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
    /* A second connection to the same hardware would fight with the first. */
    if (like->type->machine)
        return opc_fail(err, OPC_EUSER, "%s is a machine, and there is no other", like->type->name);
    /* A type without copy is opened again with the same arguments. */
    opc_guard_enter(like->spec ? like->spec : like->type->name, "open");
    const int code = like->type->copy ? like->type->copy(like, &env, err)
                                      : like->type->open(like->type, like->arg, &env, err);
    opc_guard_leave();
    if (code)
        return opc_within(err, "%s", like->spec ? like->spec : like->type->name);
    /* The copy of a wrapper or of a process is whole, with a type of its own. */
    const struct opc_env_type *type = like->type->copy && env->type ? env->type : like->type;
    return finish_open(env, type, like->arg, OPC_ANGLE_AS_IS, like->spec ? like->spec : type->name,
                       out, err);
}

/* The episode is over, whatever its reason. */
static void stop_motors(struct opc_env *env)
{
    if (env->type->rest) {
        opc_guard_enter(env->spec, "rest");
        env->type->rest(env);
        opc_guard_leave();
    }
    env->t = -1;
}

/* Outside of an episode there is nothing to stop. */
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
    /* The name outlives the environment until its close has returned. */
    char *spec = env->spec;
    opc_guard_enter(spec ? spec : "an environment", "close");
    env->type->close(env);
    opc_guard_leave();
    opc_free(spec);
}

/* Global because signals are: set once by the program, read before each step, and while we wait for
 * a child. */
static bool (*interrupted)(void);
static bool (*wait_ends)(void);

void opc_env_stop_when(bool (*wanted)(void))
{
    interrupted = wanted;
}

void opc_env_wait_until(bool (*wanted)(void))
{
    wait_ends = wanted;
}

bool opc_env_wait_ends(void)
{
    return wait_ends && wait_ends();
}

/* ---- playing --------------------------------------------------------------------------------- */

/* Without a branch in the loop: it runs on every observation. */
static bool all_finite(int n, const double *x)
{
    int bad = 0;
    for (int i = 0; i < n; i++)
        bad += !isfinite(x[i]);
    return bad == 0;
}

/* Names the first number of an observation that is not finite. */
static int refuse_observation(const struct opc_env *env, const double *obs, struct opc_err *err)
{
    int i = 0;
    while (i < env->obs - 1 && isfinite(obs[i]))
        i++;
    return opc_fail(err, OPC_EENV, "entry %d of the observation is %g, which is not finite", i,
                    obs[i]);
}

/* A plugin may return an error and write no message; then this is the message. */
static int require_reason(int code, struct opc_err *err)
{
    if (err && err->code == OPC_OK)
        opc_fail(err, OPC_EENV, "it failed with %d and gave no reason", code);
    return code;
}

/* Ends the episode after a failure and puts the place in front of the message. Motors are stopped
 * also after a failed reset, which may have begun to move them. */
static int fail_episode(struct opc_env *env, const char *doing, int t, int code,
                        struct opc_err *err)
{
    stop_motors(env);
    require_reason(code, err);
    if (code == OPC_ESTOPPED)
        return code; /* a stop by request needs no place */
    return t > 0 ? opc_within(err, "%s: %s %d", env->spec, doing, t)
                 : opc_within(err, "%s: %s", env->spec, doing);
}

static void clear_err(struct opc_err *err)
{
    if (err)
        err->code = OPC_OK;
}

/* The common end of reset and start; code is what the type returned. */
static int begin_episode(struct opc_env *env, int code, const double *obs, const char *doing,
                         struct opc_err *err)
{
    if (!code && !all_finite(env->obs, obs))
        code = refuse_observation(env, obs, err);
    if (code)
        return fail_episode(env, doing, 0, code, err);
    env->t = 0;
    return OPC_OK;
}

int opc_env_reset(struct opc_env *env, struct opc_rng *rng, double *obs, struct opc_err *err)
{
    opc_env_rest(env);
    clear_err(err);
    opc_guard_enter(env->spec, "reset");
    const int code = env->type->reset(env, rng, obs, err);
    opc_guard_leave();
    return begin_episode(env, code, obs, "reset", err);
}

/* Only for types that can be put into a state: simulations, not hardware. */
int opc_env_start(struct opc_env *env, const double *state, double *obs, struct opc_err *err)
{
    if (!env->type->start)
        return opc_fail(err, OPC_EUSER, "%s cannot start at a given state", env->spec);
    opc_env_rest(env);
    clear_err(err);
    opc_guard_enter(env->spec, "start");
    const int code = env->type->start(env, state, obs, err);
    opc_guard_leave();
    return begin_episode(env, code, obs, "start", err);
}

void opc_env_state(const struct opc_env *env, double *state)
{
    if (!env->type->state)
        return;
    opc_guard_enter(env->spec, "state");
    env->type->state(env, state);
    opc_guard_leave();
}

/* Names the first entry that is not finite; a diverged policy is the usual reason. */
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
    /* A type need not write what it does not use. */
    out->reward = 0;
    out->terminated = out->truncated = false;
    clear_err(err);
    /* A wanted stop and a bad action are failures of the step; the type is not called. */
    opc_guard_enter(env->spec, "step");
    int code = interrupted && interrupted()   ? opc_fail(err, OPC_ESTOPPED, "stopped by request")
               : all_finite(env->act, action) ? env->type->step(env, action, out, err)
                                              : refuse_action(env, action, err);
    opc_guard_leave();
    if (!code && !isfinite(out->reward))
        code = opc_fail(err, OPC_EENV, "the reward is %g, which is not finite", out->reward);
    if (!code && !all_finite(env->obs, out->obs))
        code = refuse_observation(env, out->obs, err);
    if (code)
        return fail_episode(env, "step", t, code, err);
    /* The time limit is ours. Of the types only a process may truncate on its own, because its
     * program may have a limit that we do not know. */
    env->t = t;
    out->truncated = (env->steps > 0 && t >= env->steps) ||
                     (out->truncated && env->spec && opc_env_is_process(env->spec));
    /* Hardware must not coast on while the caller learns or decides. */
    if (env->type->machine && (out->terminated || out->truncated))
        stop_motors(env);
    return OPC_OK;
}

/* [-1, 1] to [low, high]. Clipped, because an agent may go beyond 1 and rounding beyond high. */
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
    /* A type without the rule never terminates. */
    memset(out, 0, (size_t)n * sizeof *out);
    if (!env->type->terminal)
        return;
    opc_guard_enter(env->spec, "terminal");
    env->type->terminal(env, n, s, a, next, out);
    opc_guard_leave();
}

bool opc_env_reward(const struct opc_env *env, int n, const float *s, const float *a,
                    const float *next, float *out)
{
    if (!env->type->reward)
        return false;
    opc_guard_enter(env->spec, "reward");
    env->type->reward(env, n, s, a, next, out);
    opc_guard_leave();
    return true;
}

void opc_env_reward_of_task(void *env, int n, const float *s, const float *a, const float *next,
                            float *out)
{
    opc_env_reward(env, n, s, a, next, out);
}

/* ---- for types ------------------------------------------------------------------------------- */

double opc_env_uniform(struct opc_rng *rng, double half)
{
    return half * (2 * opc_rng_unit_double(rng) - 1);
}

/* Keyed by 64 bits drawn from the reset's stream, which moves on by two words. */
struct opc_rng opc_env_noise_stream(struct opc_rng *reset)
{
    const uint64_t high = opc_rng_bits(reset), low = opc_rng_bits(reset);
    return opc_rng_stream(high << 32 | low, OPC_USE_ENV, 0, 0);
}
