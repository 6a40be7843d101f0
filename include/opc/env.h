/* SPDX-License-Identifier: MIT */
/* opc/env.h - a world to act in.
 *
 *     struct opc_env *env;
 *     opc_env_open("mujoco:hopper?angle=sincos", &env, &err);
 *     opc_env_reset(env, &rng, obs, &err);
 *     do {
 *         opc_env_step(env, action, &out, &err);
 *     } while (!out.terminated && !out.truncated);
 *
 * Observations, actions and rewards are double and in the task's own units. Policies, models and
 * buffers work with floats and with actions in [-1, 1]; opc_env_scale leads from there to here.
 * Step never resets: the last state of an episode is data.
 *
 * An environment is used by one thread at a time; any number may be open, and what is asked about
 * imagined states may be asked by many threads at once. */
#ifndef OPC_ENV_H
#define OPC_ENV_H

#include "opc/err.h"
#include "opc/rng.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct opc_env;
struct opc_env_type;

struct opc_outcome {
    double *obs; /* [obs] memory of the caller, filled by step */
    double reward;
    bool terminated; /* the task ended in this state */
    bool truncated;  /* time ran out, which says nothing about the state; both may be true */
};

/* ---- using one ------------------------------------------------------------------------------- */

/* Opens an environment; spec is "name?key=value&key=value"; `opc env list` and `opc env show NAME`
 * say what there is. A path that ends in .so is a plugin, exec:COMMAND a program that plays the
 * task (docs/env-process.md), and names of opc_env_register count too. OPC_EUSER: there is no such
 * environment or argument; OPC_EABSENT: this build lacks its engine; OPC_EENV: it would not open.
 * For opc_env_close. */
OPC_API int opc_env_open(const char *spec, struct opc_env **out, struct opc_err *err);
/* One more like it, sharing what can be shared, at no particular state. */
OPC_API int opc_env_another(const struct opc_env *, struct opc_env **out, struct opc_err *err);
/* Closes it and frees what it holds. NULL is fine. */
OPC_API void opc_env_close(struct opc_env *);
/* The dimensions of its observations and actions; either pointer may be NULL. */
OPC_API void opc_env_dimensions(const struct opc_env *, int *obs, int *act);

/* Draws a start from rng and writes its observation. What follows depends on these draws and on
 * the actions alone, never on earlier episodes. */
OPC_API int opc_env_reset(struct opc_env *, struct opc_rng *rng, double *obs, struct opc_err *err);
/* Starts at a given full state [state] of the simulator, or at the noise-free one if it is NULL;
 * steps from here are free of process noise, too. */
OPC_API int opc_env_start(struct opc_env *, const double *state, double *obs, struct opc_err *err);
/* The full state now, [state]. */
OPC_API void opc_env_state(const struct opc_env *, double *state);
/* One step with action [act]. May be called past the end of the task. A failure (a non-finite
 * action, a simulator that gave up) means that nothing of `out` is data; the next call must be a
 * reset or start. */
OPC_API int opc_env_step(struct opc_env *, const double *action, struct opc_outcome *out,
                         struct opc_err *err);

/* a in [-1, 1] to the task's range: low + (a + 1) (high - low) / 2, clipped to [low, high]. */
OPC_API void opc_env_scale(const struct opc_env *, const float *a, double *action);

/* Says that the episode is over, also if it was cut; the next step comes after a reset. */
OPC_API void opc_env_rest(struct opc_env *);

/* What failed while the environment was asked something that cannot report it (terminal, reward,
 * state, rest), as the program behind an exec: task may: the answers since then are worthless.
 * OPC_OK: nothing. */
OPC_API int opc_env_failure(const struct opc_env *, struct opc_err *err);

/* About n imagined transitions (s, a, next), row by row: s, next [n][obs], a [n][act] in [-1, 1].
 */

/* Has the task ended in `next`? Agrees with step up to rounding to float. */
OPC_API void opc_env_terminal(const struct opc_env *, int n, const float *s, const float *a,
                              const float *next, bool *out);
/* The rewards, where they are a known function of the transition; false (and `out` untouched)
 * where they are not. */
OPC_API bool opc_env_reward(const struct opc_env *, int n, const float *s, const float *a,
                            const float *next, float *out);

/* The built-in types, in the order of `opc env list`; NULL after the last. */
OPC_API const struct opc_env_type *opc_env_type_at(int i);

/* ---- making one -------------------------------------------------------------------------------
 * A type is a constant table. An environment is a struct of its own that starts with a struct
 * opc_env; `open` allocates it (opc_alloc zeroes) and fills in what is marked, `close` frees it. */

/* An angle in the observation: entry `at` itself, or its cosine at `at` and its sine at `sine`. */
struct opc_env_angle {
    int at, sine; /* sine = -1: entry `at` is the angle */
};

enum { OPC_ENV_ARGS = 8 };

struct opc_env {
    /* filled by open; zero stands for "none" */
    int obs, act; /* dimensions of observation and action */
    int state;    /* of the full state; 0: it cannot be set */
    int steps;    /* an episode is cut after this many, which is not terminal; 0: never */
    double dt;    /* seconds between two observations; 0: there is no clock */
    const double *low, *high; /* [act] */
    const struct opc_env_angle *angles;
    int n_angles;
    const char *engine; /* name and version of the simulator, for run records */
    const char *joints; /* of the full state, which is their positions, then velocities */
    const char *model;  /* the model file's name and the CRC-32C of its text */
    uint32_t model_hash;

    /* filled by env.c */
    const struct opc_env_type *type;
    struct opc_env *inner;    /* what a wrapper is around; NULL: this is none */
    char *spec;               /* as it was opened */
    double arg[OPC_ENV_ARGS]; /* as open was told */
    int t;                    /* steps since the start; -1: needs a reset */
};

/* An argument behind the '?'. It reaches open as a number: a real one, or the place of a word. */
struct opc_env_arg {
    const char *name;     /* NULL ends the table */
    const char *words;    /* "off|on"; NULL: a real number in [min, max] */
    const char *fallback; /* as a user would write it */
    double min, max;
    const char *help; /* one sentence, no full stop */
};

/* What `opc env show` says, each a sentence or two. */
struct opc_env_page {
    const char *summary, *observation, *action, *reward, *termination, *reset;
};

/* For pictures: capsules (a sphere when both ends meet) in a world where z points up, in metres. */
enum { OPC_SHAPES = 64 };
struct opc_shape {
    double from[3], to[3], radius;
    float rgb[3];
};
struct opc_scene {
    int n;
    struct opc_shape shape[OPC_SHAPES];
    double centre[3], width; /* what the picture must contain */
};

struct opc_env_type {
    const char *name; /* as written in a spec */
    const struct opc_env_page *page;
    const struct opc_env_arg *args; /* at most OPC_ENV_ARGS; NULL: none */
    const void *task; /* constants of the type, for types that share their functions */

    /* arg holds the values of args, in their order. */
    int (*open)(const struct opc_env_type *, const double *arg, struct opc_env **out,
                struct opc_err *err);
    int (*reset)(struct opc_env *, struct opc_rng *, double *obs, struct opc_err *err);
    /* Sizes, finite actions and the time limit are env.c's business. */
    int (*step)(struct opc_env *, const double *action, struct opc_outcome *, struct opc_err *err);
    void (*close)(struct opc_env *);

    /* Optional from here on. NULL: cannot start at a given state, which may itself be NULL. */
    int (*start)(struct opc_env *, const double *state, double *obs, struct opc_err *err);
    void (*state)(const struct opc_env *, double *state);
    /* NULL: it is opened once more with the same arguments. */
    int (*copy)(const struct opc_env *, struct opc_env **out, struct opc_err *err);
    /* NULL: never terminal, reward not known. Many threads ask, so they read only what open fixed.
     */
    void (*terminal)(const struct opc_env *, int n, const float *s, const float *a,
                     const float *next, bool *out);
    void (*reward)(const struct opc_env *, int n, const float *s, const float *a, const float *next,
                   float *out);
    /* NULL: step and terminal decide alike. Otherwise step looks at something a little different,
     * and they may disagree where distance, from where terminal changes its mind, is below blur. */
    double (*distance)(const struct opc_env *, const float *next);
    double blur;
    /* NULL: nothing to see. */
    void (*draw)(const struct opc_env *, struct opc_scene *);
    /* NULL: there is no engine. The engine's part of a step without any check, for measuring what
     * we add; it need not fill `out`. */
    void (*bare)(struct opc_env *, const double *action, struct opc_outcome *);
    /* NULL: nothing to do. The episode is over, whether it ended or was cut, and the next may be
     * minutes away: stop the motors. */
    void (*rest)(struct opc_env *);
    /* A machine and not a simulation: there is one, and it does not repeat itself. No second one is
     * opened, and no episode is played again to measure or to resume. */
    bool machine;
};

/* A task of your own, without touching ours: a shared object whose source has
 *
 *     OPC_ENV_PLUGIN(my_type);
 *
 * behind its `const struct opc_env_type my_type`. Its path, which ends in .so, is a name as any
 * other: opc_env_open("./arm.so?mass=2", ...), env.name, `opc env check ./arm.so`. */
enum { OPC_ENV_ABI = 1 }; /* another one with any change to the structs above */
struct opc_env_plugin {   /* tells a plugin of another version of this header */
    unsigned abi, bytes[7];
    const struct opc_env_type *type;
};
#define OPC_ENV_PLUGIN_OF(type)                                                                    \
    {                                                                                              \
        OPC_ENV_ABI, {(unsigned)sizeof(struct opc_env_type), (unsigned)sizeof(struct opc_env),     \
                      (unsigned)sizeof(struct opc_outcome),  (unsigned)sizeof(struct opc_env_arg), \
                      (unsigned)sizeof(struct opc_env_page), (unsigned)sizeof(struct opc_scene),   \
                      (unsigned)sizeof(struct opc_err)},                                           \
            type                                                                                   \
    }
#define OPC_ENV_PLUGIN(type) const struct opc_env_plugin opc_env_plugin = OPC_ENV_PLUGIN_OF(&type)
extern OPC_API const struct opc_env_plugin opc_env_plugin; /* of the plugin; we have none */

/* A task of your own that is part of the program: from now on its name is known in this process to
 * opc_env_open and to env.name of opc_train, evaluation and policies included.
 *
 *     static const struct opc_env_plugin mine = OPC_ENV_PLUGIN_OF(&my_type);
 *     opc_env_register(&mine, &err);
 *
 * The type must live as long as the process; registering it twice is fine. OPC_EUSER: it was
 * compiled with other headers or is not filled in, or the name is taken or will not do. */
OPC_API int opc_env_register(const struct opc_env_plugin *, struct opc_err *err);
/* Opens a type that is in this program but not built in; args is what would stand behind the '?',
 * NULL for none. */
OPC_API int opc_env_open_type(const struct opc_env_type *, const char *args, struct opc_env **out,
                              struct opc_err *err);

#ifdef __cplusplus
}
#endif
#endif
