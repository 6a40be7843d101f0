/* SPDX-License-Identifier: MIT */
/* A task that computes for 1 ms in each step, as a plugin and, with -DCHILD, as a program of the
 * same numbers: what a pipe costs is the difference (exec.py). A block slides on a table. */
#include <stdint.h>
#include <string.h>
#include <time.h>

static const double DT = 0.05, RANGE = 3;

/* One step of x, v. The millisecond is of processor time, so that other programs do not count. */
static double slide(double *x, double *v, double force)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    const double end = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec + 1e-3;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    while ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec < end);
    *v += DT * (force - 0.5 * *v);
    *x += DT * *v;
    return -(*x * *x + 0.1 * *v * *v + 0.01 * force * force);
}

#ifdef CHILD
#include <stdio.h>
#include <stdlib.h>

enum { HELLO = 1, RESET = 2, STEP = 3 };

static void send_frame(unsigned char kind, const double *body, uint32_t n)
{
    const uint32_t length = 8 * n;
    fwrite(&length, 4, 1, stdout);
    fwrite(&kind, 1, 1, stdout);
    fwrite(body, 8, n, stdout);
    fflush(stdout);
}

int main(void)
{
    double x = 0, v = 0, body[64], reward;
    uint32_t length;
    unsigned char kind;
    while (fread(&length, 4, 1, stdin) == 1 && fread(&kind, 1, 1, stdin) == 1 &&
           length <= sizeof body && fread(body, 1, length, stdin) == length)
        switch (kind) {
        case HELLO:
            send_frame(HELLO, (double[]){1, 2, 1, 0, 200, DT, 1, 0, -RANGE, RANGE}, 10);
            break;
        case RESET:
            x = body[0] / 2147483648.0 - 1;
            v = 0;
            send_frame(RESET, (double[]){x, v}, 2);
            break;
        case STEP:
            reward = slide(&x, &v, body[0]);
            send_frame(STEP, (double[]){x, v, reward, 0, 0}, 5);
            break;
        default: return 0;
        }
    return 0;
}
#else
#include <opc/env.h>
#include <opc/mem.h>
#include <opc/rng.h>

static const double LOW[1] = {-3}, HIGH[1] = {3};

struct slow {
    struct opc_env env; /* comes first */
    double x, v;
};

static int slow_open(const struct opc_env_type *type, const double *arg, struct opc_env **out,
                     struct opc_err *err)
{
    struct slow *e = opc_alloc(1, sizeof *e);
    (void)arg;
    if (!e)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %s", type->name);
    e->env = (struct opc_env){.obs = 2, .act = 1, .steps = 200, .dt = DT, .low = LOW, .high = HIGH};
    *out = &e->env;
    return OPC_OK;
}

static void slow_close(struct opc_env *env)
{
    opc_free(env);
}

/* From the first of four random words, as the program gets them. */
static int slow_reset(struct opc_env *env, struct opc_rng *rng, double *obs, struct opc_err *err)
{
    struct slow *e = (struct slow *)env;
    (void)err;
    uint32_t word[4];
    opc_rng_fill(rng, 4, word);
    e->x = obs[0] = word[0] / 2147483648.0 - 1;
    e->v = obs[1] = 0;
    return OPC_OK;
}

static int slow_step(struct opc_env *env, const double *action, struct opc_outcome *out,
                     struct opc_err *err)
{
    struct slow *e = (struct slow *)env;
    (void)err;
    out->reward = slide(&e->x, &e->v, action[0]);
    out->obs[0] = e->x;
    out->obs[1] = e->v;
    out->terminated = false;
    return OPC_OK;
}

static const struct opc_env_page PAGE = {.summary = "a block slides, and each step takes 1 ms",
                                         .observation = "position, velocity",
                                         .action = "force",
                                         .reward = "-(x^2 + 0.1 v^2 + 0.01 u^2)",
                                         .termination = "never",
                                         .reset = "at rest, x uniform in [-1, 1)"};
static const struct opc_env_type slow = {.name = "slow",
                                         .page = &PAGE,
                                         .open = slow_open,
                                         .reset = slow_reset,
                                         .step = slow_step,
                                         .close = slow_close};
OPC_API const struct opc_env_plugin opc_env_plugin = OPC_ENV_PLUGIN_OF(&slow);
#endif
