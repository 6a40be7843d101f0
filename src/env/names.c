/* SPDX-License-Identifier: MIT */
/* Names that are not a task's here, and what was meant: a task of an engine that this build lacks,
 * a class in Python, a name of Gymnasium, or a slip. env.c asks when it has not found a name.
 *
 * Invariant: opc_env_unknown always fails, and its message says what would work. */
#include "base/field.h"
#include "base/file.h"
#include "env/types.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Engines by the prefix of their tasks, and what to install and switch on when a build lacks one.
 */
static const struct engine {
    const char *prefix, *name, *package, *option;
    bool here;
} engines[] = {
    {"mujoco:", "MuJoCo", "libmujoco-dev", "OPC_WITH_MUJOCO", OPC_WITH_MUJOCO},
    {"bullet:", "Bullet", "libbullet-dev", "OPC_WITH_BULLET", OPC_WITH_BULLET},
    {NULL, NULL, NULL, NULL, false},
};

/* Our name for a task of Gymnasium or PyBullet, as "HalfCheetah-v4" or "HopperBulletEnv-v0"; NULL
 * if we have no such task. The version is ignored. */
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

/* The engine whose prefix a name has; NULL if it has none. */
static const struct engine *engine_of(const char *name)
{
    for (const struct engine *e = engines; e->prefix; e++)
        if (strncmp(name, e->prefix, strlen(e->prefix)) == 0)
            return e;
    return NULL;
}

const char *opc_env_lacks(const char *spec)
{
    const struct engine *engine = engine_of(spec);
    return engine && !engine->here ? engine->name : NULL;
}

/* A class in Python: MODULE:Class, or the file DIR/module.py that it may be in. `out` is what
 * opc.serve_env takes. */
static bool python_class(const char *name, char out[OPC_PATH])
{
    const char *file = opc_path_name(name), *colon = strchr(name, ':');
    const size_t n = strlen(file);
    if (n > 3 && strcmp(file + n - 3, ".py") == 0) {
        snprintf(out, OPC_PATH, "%.*s:CLASS", (int)n - 3, file);
        return true;
    }
    if (engine_of(name)) /* mujoco:Hopper is a slip */
        return false;
    snprintf(out, OPC_PATH, "%s", name);
    return colon && colon > name && isupper((unsigned char)colon[1]) && !strpbrk(name, "/ ");
}

int opc_env_unknown(const char *name, struct opc_err *err)
{
    const struct engine *engine = engine_of(name);
    if (engine && !engine->here)
        return opc_fail(err, OPC_EABSENT,
                        "%s needs %s, which this build lacks; install %s and configure with "
                        "-D %s=ON",
                        name, engine->name, engine->package, engine->option);
    char class[OPC_PATH];
    if (python_class(name, class))
        return opc_fail(err, OPC_EUSER,
                        "no environment is called '%s'; a class in Python is "
                        "'exec:python3 -m opc.serve_env %s' (docs/env-process.md)",
                        name, class);
    const char *meant = gym_task(name);
    if (meant)
        return opc_fail(err, OPC_EUSER, "no environment is called '%s'; here it is %s", name,
                        meant);
    int nearest = INT_MAX;
    const struct opc_env_type *type;
    for (int i = 0; (type = opc_env_type_at(i)); i++) {
        const char *task = strchr(type->name, ':');
        /* The engine may be left out: hopper and hoper are both near mujoco:hopper. */
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
