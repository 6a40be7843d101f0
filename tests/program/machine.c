/* SPDX-License-Identifier: MIT */
/* A task that is a machine: there must be one only, nothing of it repeats, and it is told when to
 * rest. What is asked of it goes to the file MACHINE_LOG; a second one, or a step without a reset
 * before it, is an error. Its arguments let it fail (in words, or without) or end at step `at` of
 * its life or of an episode, or fall at every step of its life from `at` on, and take its time. */
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#include <opc/env.h>
#include <opc/mem.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const double LOW[1] = {-1}, HIGH[1] = {1};
static int is_open, moving;
static unsigned steps; /* since it was switched on: makes every episode another one */
static int in_episode;
enum { NOTHING, FAILS, SILENT, ENDS, FALLS };
static const struct opc_env_arg ARGS[] = {
    {.name = "what",
     .words = "nothing|fails|silent|ends|falls",
     .fallback = "nothing",
     .help = "happens"},
    {.name = "at", .fallback = "120", .min = 1, .max = 1e6, .help = "step"},
    {.name = "ms", .fallback = "0", .min = 0, .max = 1000, .help = "a step takes"},
    {.name = "limit", .fallback = "50", .min = 0, .max = 1000, .help = "steps of an episode"},
    {.name = "tick", .fallback = "0", .min = 0, .max = 1000, .help = "ms a step should take"},
    {0},
};

static void note(const char *what)
{
    FILE *f = fopen(getenv("MACHINE_LOG"), "a");
    if (f) {
        fprintf(f, "%s\n", what);
        fclose(f);
    }
}

static int machine_open(const struct opc_env_type *type, const double *arg, struct opc_env **out,
                        struct opc_err *err)
{
    (void)type;
    if (is_open++) {
        note("open a second time");
        return opc_fail(err, OPC_EENV, "there is one machine only");
    }
    struct opc_env *env = opc_alloc(1, sizeof *env);
    if (!env)
        return opc_fail(err, OPC_ENOMEM, "not enough memory");
    *env = (struct opc_env){
        .obs = 1, .act = 1, .steps = (int)arg[3], .dt = arg[4] / 1000, .low = LOW, .high = HIGH};
    *out = env;
    note("open");
    return OPC_OK;
}

static void machine_close(struct opc_env *env)
{
    note(moving ? "close while it moves" : "close");
    is_open--;
    opc_free(env);
}

static int machine_reset(struct opc_env *env, struct opc_rng *rng, double *obs, struct opc_err *err)
{
    (void)env, (void)rng, (void)err;
    note(moving ? "reset while it moves" : "reset");
    moving = 1;
    in_episode = 0;
    obs[0] = sin(steps);
    return OPC_OK;
}

static int machine_step(struct opc_env *env, const double *action, struct opc_outcome *out,
                        struct opc_err *err)
{
    const struct timespec pause = {0, (long)(env->arg[2] * 1e6)};
    if (!moving)
        return opc_fail(err, OPC_EENV, "it rests");
    if (env->arg[2] > 0)
        nanosleep(&pause, NULL);
    in_episode++;
    if (steps + 1 == env->arg[1] && env->arg[0] == SILENT)
        return -1;
    if (steps + 1 == env->arg[1] && env->arg[0] == FAILS)
        return opc_fail(err, OPC_EENV, "the encoder is silent");
    const int ends = env->arg[0] == ENDS && in_episode == env->arg[1];
    out->obs[0] = ends ? 10 : sin(++steps) + 0.1 * action[0];
    out->terminated = ends || (env->arg[0] == FALLS && steps >= env->arg[1]);
    out->reward = -fabs(out->obs[0]);
    return OPC_OK;
}

static void machine_terminal(const struct opc_env *env, int n, const float *s, const float *a,
                             const float *next, bool *out)
{
    (void)env, (void)s, (void)a;
    for (int i = 0; i < n; i++)
        out[i] = next[i] > 5;
}

static void machine_rest(struct opc_env *env)
{
    (void)env;
    note(moving ? "rest" : "rest again");
    moving = 0;
}

static const struct opc_env_type machine = {
    .name = "machine",
    .args = ARGS,
    .page = &(const struct opc_env_page){"a machine", "one number", "another", "minus its size",
                                         "never", "where it happens to be"},
    .open = machine_open,
    .reset = machine_reset,
    .step = machine_step,
    .close = machine_close,
    .terminal = machine_terminal,
    .rest = machine_rest,
    .machine = true,
};

OPC_ENV_PLUGIN(machine);
