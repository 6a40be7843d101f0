/* SPDX-License-Identifier: MIT */
/* What the tests of both engines' tasks (test_env_mujoco.c, test_env_bullet.c) do alike: play
 * random steps, one environment or many, and open them on several threads at once. */
#ifndef OPC_TESTS_ENGINE_H
#define OPC_TESTS_ENGINE_H

#include "base/pool.h"
#include "env/many.h"
#include "test.h"

enum { ENGINE_ACTIONS = 32, ENGINE_MANY = 5, ENGINE_OPEN = 8 };

static inline struct opc_env *open_env(const char *spec)
{
    struct opc_env *env = NULL;
    struct opc_err err = {0};
    assert_ok(opc_env_open(spec, &env, &err), &err);
    return env;
}

/* Plays `steps` random steps after a reset and writes down all that comes out:
 * all[steps + 1][obs + 2], a row for each state with its reward and end. */
static inline void play(struct opc_env *env, uint32_t index, int steps, bool bare, double *all)
{
    struct opc_err err = {0};
    struct opc_rng rng = opc_rng_stream(9, OPC_USE_RESET, 0, index);
    struct opc_rng noise = opc_rng_stream(9, OPC_USE_RANDOM, 0, index);
    assert_true(env->act <= ENGINE_ACTIONS);
    assert_ok(opc_env_reset(env, &rng, all, &err), &err);
    for (int t = 0; t < steps; t++) {
        double action[ENGINE_ACTIONS];
        for (int i = 0; i < env->act; i++)
            action[i] = env->high[i] * (2 * opc_rng_unit_double(&noise) - 1);
        all += env->obs + 2;
        struct opc_outcome out = {.obs = all};
        if (bare)
            env->type->bare(env, action, &out);
        else
            assert_ok(opc_env_step(env, action, &out, &err), &err);
        all[env->obs] = out.reward;
        all[env->obs + 1] = out.terminated;
    }
}

/* The same with ENGINE_MANY environments over a pool: all[steps + 1][ENGINE_MANY][obs]. */
static inline void play_many(const char *spec, int threads, int steps, double *all)
{
    struct opc_pool *pool;
    struct opc_many *many;
    struct opc_err err = {0};
    struct opc_rng rng[ENGINE_MANY];
    struct opc_outcome out[ENGINE_MANY];
    double action[ENGINE_MANY * ENGINE_ACTIONS];
    assert_ok(opc_pool_create(threads, &pool, &err), &err);
    assert_ok(opc_many_open(spec, ENGINE_MANY, pool, &many, &err), &err);
    const struct opc_env *env = opc_many_env(many, 0);
    struct opc_rng noise = opc_rng_stream(9, OPC_USE_RANDOM, 0, 0);
    for (int i = 0; i < ENGINE_MANY; i++)
        rng[i] = opc_rng_stream(9, OPC_USE_RESET, 0, (uint32_t)i);
    assert_ok(opc_many_reset(many, NULL, rng, all, &err), &err);
    for (int t = 1; t <= steps; t++) {
        for (int i = 0; i < ENGINE_MANY * env->act; i++)
            action[i] = env->high[0] * (2 * opc_rng_unit_double(&noise) - 1);
        for (int i = 0; i < ENGINE_MANY; i++)
            out[i].obs = all + (t * ENGINE_MANY + i) * env->obs;
        assert_ok(opc_many_step(many, NULL, action, out, &err), &err);
    }
    opc_many_close(many);
    opc_pool_destroy(pool);
}

struct opening {
    const char *const *spec;
    int code[ENGINE_OPEN];
};

static inline void open_some(void *ctx, int first, int end, int worker)
{
    (void)worker;
    struct opening *o = ctx;
    for (int i = first; i < end; i++) {
        struct opc_env *env;
        struct opc_err err = {0};
        o->code[i] = opc_env_open(o->spec[i], &env, &err);
        if (!o->code[i])
            opc_env_close(env);
    }
}

/* Opens the first ENGINE_OPEN tasks of a list on four threads. */
static inline void open_at_once(const char *const *spec)
{
    struct opc_pool *pool;
    struct opc_err err = {0};
    struct opening o;
    memset(&o, 1, sizeof o);
    o.spec = spec;
    assert_ok(opc_pool_create(4, &pool, &err), &err);
    opc_pool_each(pool, ENGINE_OPEN, 1, open_some, &o);
    for (int i = 0; i < ENGINE_OPEN; i++)
        assert_int_equal(o.code[i], OPC_OK);
    opc_pool_destroy(pool);
}

/* For assert_survives_lack_of_memory. */
static inline int open_and_copy(void *spec, struct opc_err *err)
{
    struct opc_env *env, *other;
    int code = opc_env_open(spec, &env, err);
    if (code)
        return code;
    code = opc_env_another(env, &other, err);
    if (!code)
        opc_env_close(other);
    opc_env_close(env);
    return code;
}

#endif
