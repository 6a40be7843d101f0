#!/bin/sh
# SPDX-License-Identifier: MIT
# Plugins that crash, hang, exit or lie: each is named with the function it was in, the exit status is 5,
# and a run that it was part of goes on once it is mended.
# shellcheck source=tests/program/lib
. "$SRC/tests/program/lib"
cd "$work"

# One task, faulty at step 70 of its life (or in the function named) if -DFAULT=... says so.
cat >plugin.c <<'END_OF_PLUGIN'
#include <opc/env.h>
#include <opc/mem.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#ifndef OBS
#define OBS 2
#endif
static const double LOW[1] = {-1}, HIGH[1] = {1};
struct line { struct opc_env env; double x; int steps; };
static int steps; /* of the process: the fault is in the 70th */

static int line_open(const struct opc_env_type *t, const double *arg, struct opc_env **out, struct opc_err *err)
{
    struct line *e = opc_alloc(1, sizeof *e);
    (void)t, (void)arg, (void)err;
    e->env = (struct opc_env){.obs = OBS, .act = 1, .steps = 50, .low = LOW, .high = HIGH};
    *out = &e->env;
    return OPC_OK;
}
static void line_close(struct opc_env *env) { opc_free(env); }
static int line_reset(struct opc_env *env, struct opc_rng *rng, double *obs, struct opc_err *err)
{
    struct line *e = (struct line *)env;
    (void)err;
    e->x = obs[0] = opc_rng_unit_double(rng);
    obs[1] = 0;
#ifdef STOCHASTIC
    e->x += 1e-3 * steps++;
#endif
    return OPC_OK;
}
static int line_step(struct opc_env *env, const double *action, struct opc_outcome *out, struct opc_err *err)
{
    struct line *e = (struct line *)env;
    volatile int zero = 0;
    (void)err, (void)zero;
    steps++;
#ifdef FAULT
    if (steps == AT) FAULT;
#endif
    e->x += 0.1 * action[0];
    out->obs[0] = e->x;
    out->obs[1] = action[0];
#ifdef MORE
    out->obs[2] = 1;
#endif
    out->reward = -e->x * e->x;
    out->terminated = e->x > 2;
    return OPC_OK;
}
static void line_terminal(const struct opc_env *env, int n, const float *s, const float *a, const float *next, bool *out)
{
    (void)env, (void)s, (void)a;
#ifdef IN_TERMINAL
    abort();
#endif
    for (int i = 0; i < n; i++)
#ifdef LIE
        out[i] = next[OBS * i] > 0.2f;
#else
        out[i] = next[OBS * i] > 2;
#endif
}
static const struct opc_env_page PAGE = {"a line", "x, u", "u", "-x^2", "x > 2", "uniform"};
static const struct opc_env_type line = {.name = "line", .page = &PAGE, .open = line_open, .reset = line_reset,
    .step = line_step, .close = line_close, .terminal = line_terminal};
OPC_ENV_PLUGIN(line);
END_OF_PLUGIN
build() { # OPTION...
    "$CC" -std=c17 -Wall -Wextra -Werror -shared -fPIC "$@" -I"$SRC/include" -I"$BUILD/include" \
        -o line.so plugin.c -lm
}
cat >few.yaml <<END
env.name: ./line.so
train: {epochs: 2, steps_per_epoch: 100, random_steps: 100, updates_per_step: 1}
opc: {transition: corrected, horizon: 2, transitions: 200}
model: {members: 2, elites: 2, hidden: [8, 8], weight_decay: 1e-5, max_epochs: 2}
eval.episodes: 2
END

# ---- it ends the process -------------------------------------------------------------------------
build '-DFAULT=*(volatile int *)16=1' -DAT=70
expect 5 '^opc: ./line.so crashed in step (SIGSEGV' "$OPC" env check ./line.so
build '-DFAULT=exit(0)' -DAT=70
expect 5 '^opc: ./line.so called exit in step' "$OPC" env check ./line.so
build '-DFAULT=abort()' -DAT=70
expect 5 '^opc: ./line.so crashed in step (SIGABRT' "$OPC" env check ./line.so
build '-DFAULT=for(;;)pause()' -DAT=70
OPC_ENV_DEADLINE=1
export OPC_ENV_DEADLINE
expect 5 '^opc: ./line.so has not returned in step.*OPC_ENV_DEADLINE' "$OPC" env check ./line.so
unset OPC_ENV_DEADLINE
build -DIN_TERMINAL
expect 5 '^opc: ./line.so crashed in terminal' "$OPC" env check ./line.so

# ---- it lies -------------------------------------------------------------------------------------
build -DMORE
expect 5 './line.so: step writes entry 2 .*obs = 2' "$OPC" env check ./line.so
expect 5 './line.so: step writes entry 2 .*obs = 2' "$OPC" train few.yaml --out more
[ ! -e more ] || wrong "a run that cannot begin has a directory" ls more
build -DOBS=3
expect 5 './line.so: reset does not write entry 2 .*obs = 3' "$OPC" env check ./line.so
build '-DFAULT=e->x=1e150' -DAT=20
expect 5 './line.so: step: entry 0 .* 1e+150.*float' "$OPC" env check ./line.so
build '-DFAULT=e->x=NAN' -DAT=20
expect 5 './line.so: step [0-9]*: .*nan' "$OPC" train few.yaml --out nan
build -DLIE
expect 5 './line.so: transition [0-9]*: .*terminal' "$OPC" train few.yaml --out lie

# One that does not repeat itself is told, and trained on.
build -DSTOCHASTIC
expect 0 '^opc: warning: .*./line.so.*fresh' "$OPC" train few.yaml --out odd --threads 1 --quiet
grep -q 'warning: .*./line.so.*fresh' odd/log.txt

# ---- the run goes on -----------------------------------------------------------------------------
build
expect 0 '' "$OPC" train few.yaml --out whole --threads 1 --quiet
build '-DFAULT=*(volatile int *)16=1' -DAT=400
expect 5 '^opc: ./line.so crashed in step' "$OPC" train few.yaml --out broken --threads 1 --quiet
build
expect 0 '' "$OPC" resume broken --threads 1 --quiet
cmp whole/metrics.csv broken/metrics.csv
