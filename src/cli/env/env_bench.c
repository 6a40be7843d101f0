/* SPDX-License-Identifier: MIT */
/* How fast an environment steps, and how much of that is ours. Called by `opc env bench` and
 * `opc bench env`.
 *
 * Two equal environments play the same blocks of steps from the same starts with the same random
 * actions, in turns, one through opc_env_step and one through the bare loop of the engine. A
 * disturbance of the machine hits both alike, or the median discards it. */
#include "cli/env/env_bench.h"

#include "opc/env.h"
#include "opc/mem.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

enum {
    BLOCK = 50,     /* steps from one reset, about as long as an early policy stays up */
    FEWEST = 5,     /* pairs of measurements that are made in any case */
    PAIRS = 100000, /* pairs of measurements that are made at most */
};
static const double MIN = 2e-3; /* seconds of one measurement: long against reading the clock */

/* The two environments and the times measured so far. */
struct bench {
    struct opc_env *ours, *bare; /* bare: NULL if there is no engine */
    double *action;              /* [BLOCK][act] */
    double *obs;                 /* [obs] */
    double *times;               /* [3][PAIRS]: ours, bare, ratio */
    int plays;                   /* blocks in one measurement */
};

/* Engine steps are long enough for the clock of processor time, which stands still while another
 * program has the processor. Reading it is slow, so tasks without an engine use the wall clock. */
static double bench_now(const struct bench *b)
{
    struct timespec t;
    clock_gettime(b->bare ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts x. */
static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, compare_doubles);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* Uniform within the range of the task; both environments play the same ones. */
static void draw_actions(struct bench *b, uint32_t index)
{
    struct opc_rng rng = opc_rng_stream(1, OPC_USE_RANDOM, 0, index);
    const int act = b->ours->act;
    for (int t = 0; t < BLOCK; t++)
        for (int i = 0; i < act; i++)
            b->action[t * act + i] =
                b->ours->low[i] + (b->ours->high[i] - b->ours->low[i]) * opc_rng_unit_double(&rng);
}

/* Plays one block and adds its time, without the reset, to *seconds. */
static int play_block(struct bench *b, struct opc_env *env, bool bare, uint32_t index,
                      double *seconds, struct opc_err *err)
{
    struct opc_outcome out = {.obs = b->obs};
    struct opc_rng rng = opc_rng_stream(1, OPC_USE_RESET, 0, index);
    int code = opc_env_reset(env, &rng, b->obs, err);
    const double start = bench_now(b);
    for (int t = 0; !code && t < BLOCK; t++) {
        const double *action = b->action + t * env->act;
        if (bare)
            env->type->bare(env, action, &out);
        else
            code = opc_env_step(env, action, &out, err);
    }
    *seconds += bench_now(b) - start;
    return code;
}

/* One measurement of each environment: `plays` blocks in alternating order, so that neither is
 * always the one that finds warm caches. */
static int play_pair(struct bench *b, int pair, struct opc_err *err)
{
    double ours = 0, bare = 0;
    int code = OPC_OK;
    for (int i = 0; !code && i < b->plays; i++) {
        const uint32_t index = (uint32_t)(pair * b->plays + i);
        draw_actions(b, index);
        for (int turn = 0; !code && turn < 2; turn++) {
            const bool is_bare = (turn + pair + i) % 2 == 0;
            if (is_bare && b->bare)
                code = play_block(b, b->bare, true, index, &bare, err);
            else if (!is_bare)
                code = play_block(b, b->ours, false, index, &ours, err);
        }
    }
    b->times[pair] = ours;
    b->times[PAIRS + pair] = bare;
    b->times[2 * PAIRS + pair] = bare > 0 ? ours / bare : 0;
    return code;
}

static int run_bench(struct bench *b, double seconds, struct opc_env_speed *out,
                     struct opc_err *err)
{
    const size_t act = (size_t)b->ours->act, obs = (size_t)b->ours->obs;
    b->action = opc_alloc(BLOCK * act, sizeof *b->action);
    b->obs = opc_alloc(obs, sizeof *b->obs);
    b->times = opc_alloc((size_t)3 * PAIRS, sizeof *b->times);
    if (!b->action || !b->obs || !b->times)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to measure");
    /* Warm up, and choose the number of blocks so that one measurement takes MIN. */
    b->plays = 4;
    int code = play_pair(b, 0, err), n = 0; /* warms up */
    b->plays = (int)fmin(1000, fmax(1, ceil(4 * MIN / b->times[0])));
    const double end = bench_now(b) + seconds;
    while (!code && n < PAIRS && (n < FEWEST || bench_now(b) < end))
        code = play_pair(b, n++, err);
    if (code)
        return code;
    /* Medians over all pairs; the ratio is taken pair by pair, where disturbances cancel. */
    const double us = 1e6 / (BLOCK * b->plays);
    out->us = us * median(b->times, n);
    out->bare_us = us * median(b->times + PAIRS, n);
    out->ratio = median(b->times + 2 * PAIRS, n);
    return OPC_OK;
}

int opc_env_bench(const char *spec, double seconds, struct opc_env_speed *out, struct opc_err *err)
{
    struct bench b = {0};
    int code = opc_env_open(spec, &b.ours, err);
    if (!code && b.ours->type->machine)
        code = opc_fail(err, OPC_EUSER, "%s is a machine, which keeps its own time", spec);
    /* A copy of its own for the bare loop. */
    if (!code && b.ours->type->bare)
        code = opc_env_another(b.ours, &b.bare, err);
    if (!code)
        code = run_bench(&b, seconds, out, err);
    opc_env_close(b.ours);
    opc_env_close(b.bare);
    opc_free(b.action);
    opc_free(b.obs);
    opc_free(b.times);
    return code;
}
