/* SPDX-License-Identifier: MIT */
/* A task that is a machine: there must be one only, nothing of it repeats, and it is told when to
 * rest. What is asked of it goes to the file MACHINE_LOG; a second one, or a step without a reset
 * before it, is an error. */
#include <opc/env.h>
#include <opc/mem.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double LOW[1] = {-1}, HIGH[1] = {1};
static int is_open, moving;
static unsigned steps; /* since it was switched on: makes every episode another one */

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
    (void)type, (void)arg;
    if (is_open++)
        return opc_fail(err, OPC_EENV, "there is one machine only");
    struct opc_env *env = opc_alloc(1, sizeof *env);
    if (!env)
        return opc_fail(err, OPC_ENOMEM, "no room");
    *env = (struct opc_env){.obs = 1, .act = 1, .steps = 50, .low = LOW, .high = HIGH};
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
    obs[0] = sin(steps);
    return OPC_OK;
}

static int machine_step(struct opc_env *env, const double *action, struct opc_outcome *out,
                        struct opc_err *err)
{
    (void)env;
    if (!moving)
        return opc_fail(err, OPC_EENV, "it rests");
    out->obs[0] = sin(++steps) + 0.1 * action[0];
    out->reward = -fabs(out->obs[0]);
    return OPC_OK;
}

static void machine_rest(struct opc_env *env)
{
    (void)env;
    note(moving ? "rest" : "rest again");
    moving = 0;
}

static const struct opc_env_type machine = {
    .name = "machine",
    .page = &(const struct opc_env_page){"a machine", "one number", "another", "minus its size",
                                         "never", "where it happens to be"},
    .open = machine_open,
    .reset = machine_reset,
    .step = machine_step,
    .close = machine_close,
    .rest = machine_rest,
    .machine = true,
};

OPC_ENV_PLUGIN(machine);
