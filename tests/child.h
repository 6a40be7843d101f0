/* SPDX-License-Identifier: MIT */
/* child.h - for tests of exec: environments, whose children are the test program itself, started as
 * `child MODE`. What both sides need: frames for the child; opening, playing and a log for the
 * test. */
#ifndef OPC_TEST_CHILD_H
#define OPC_TEST_CHILD_H

#include "base/log.h"
#include "env/process_private.h"
#include "env/types.h"
#include "test.h"

static const char *self; /* the path of this program */

/* The name of a child that misbehaves in this way; until the next call. */
static inline const char *child(const char *mode)
{
    static char spec[1000];
    snprintf(spec, sizeof spec, "exec:%s child %s", self, mode);
    return spec;
}

/* ---- frames, in the child ---------------------------------------------------------------------
 */

static inline void read_bytes(void *to, size_t n)
{
    if (fread(to, 1, n, stdin) != n)
        exit(0);
}

static inline void send_frame(int kind, const void *body, size_t bytes)
{
    const uint32_t length = (uint32_t)bytes;
    const unsigned char k = (unsigned char)kind;
    fwrite(&length, 4, 1, stdout);
    fwrite(&k, 1, 1, stdout);
    fwrite(body, 1, bytes, stdout);
    fflush(stdout);
}

/* ---- the environment, in the test -------------------------------------------------------------
 */

static inline struct opc_env *open_child(const char *spec)
{
    struct opc_env *env = NULL;
    struct opc_err err = {0};
    assert_ok(opc_env_open(spec, &env, &err), &err);
    return env;
}

static inline int reset_env(struct opc_env *env, uint32_t seed, double *obs, struct opc_err *err)
{
    struct opc_rng rng = opc_rng_stream(seed, OPC_USE_TEST, 0, 0);
    return opc_env_reset(env, &rng, obs, err);
}

/* Plays up to n steps with the action 0.5; returns the first failure. */
static inline int play(struct opc_env *env, int n, double *obs, struct opc_err *err)
{
    struct opc_outcome out = {.obs = obs};
    const double action = 0.5;
    int code = reset_env(env, 1, obs, err);
    for (int t = 0; !code && t < n; t++)
        code = opc_env_step(env, &action, &out, err);
    return code;
}

static char logged[4096];

static inline void keep_log(void *ctx, enum opc_level level, const char *line)
{
    (void)ctx;
    const size_t n = strlen(logged);
    snprintf(logged + n, sizeof logged - n, "%d %s\n", (int)level, line);
}

#endif
