/* SPDX-License-Identifier: MIT */
/* opc bench - the speed of the parts of training on this machine, against its peak.
 *
 * Every measurement runs in short blocks that alternate with blocks of pure multiply-adds on the
 * same threads, so that a change of clock frequency or a disturbance hits both alike. The best
 * block counts; the median shows how steady the machine was. Only useful arithmetic is counted: no
 * padding, no bookkeeping, no activation. The works themselves are in cli/bench/; each calls
 * opc_bench_measure or opc_bench_once here for every line it prints. */
#include "base/clock.h"
#include "base/pool.h"
#include "cli/bench/bench.h"
#include "cli/console/command.h"
#include "num/kernel.h"
#include "opc/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS(X)                                                                                 \
    X(INT, obs, "17", 1, 4096, "numbers in an observation")                                        \
    X(INT, act, "6", 1, 1024, "numbers in an action")                                              \
    X(INT, hidden, "0", 0, 8192, "width of the hidden layers; 0: the usual widths")                \
    X(INT, batch, "256", 1, 65536, "rows in a batch")                                              \
    X(INT, states, "100000", 1, 1e7, "states in a rollout step")                                   \
    X(BOOL, published, "false", 0, 1, "the half-cheetah of PETS's authors, seconds a plan")        \
    X(INT, threads, "1", 1, 1024, "threads to compute with")                                       \
    X(REAL, seconds, "1", 0.01, 3600, "time for each measurement")                                 \
    X(BOOL, json, "false", 0, 1, "print one JSON object per line")
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF
/* Options that only some works read; opc_options_fit refuses them with the others. */
static const struct opc_option_use uses[] = {
    {"obs", "gemm sac fit rollout plan steve"},
    {"act", "gemm sac fit rollout plan steve"},
    {"hidden", "gemm sac fit rollout plan steve"},
    {"batch", "gemm sac fit steve"},
    {"states", "rollout"},
    {"published", "plan"},
    {NULL, NULL},
};

/* ---- measuring ------------------------------------------------------------------------------- */

/* A chunk of the pool: multiply-adds that stay in registers. */
static void burn_some(void *ctx, int first, int end, int worker)
{
    (void)worker;
    double *done = ctx;
    float sink;
    for (int i = first; i < end; i++)
        done[i * 8] =
            opc_kernels()->peak_flops(200000, &sink); /* 8 doubles apart: a cache line each */
}

/* One short block of multiply-adds on all threads: floating-point operations per second. */
static double burn_block(struct opc_pool *pool, double *done)
{
    const int threads = opc_pool_threads(pool);
    const double start = opc_now();
    opc_pool_each(pool, threads, 1, burn_some, done);
    const double took = opc_now() - start;
    double sum = 0.0;
    for (int i = 0; i < threads; i++)
        sum += done[i * 8];
    return sum / took;
}

/* For qsort, ascending. */
static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A median over more blocks would gain nothing. */
enum { MAX_BLOCKS = 4096 };

/* One line of the table, or one JSON object. Work without arithmetic shows its bandwidth instead,
 * or only its time. */
static void print_line(const struct opc_bench *bench, const struct opc_bench_work *work,
                       double best, double median, double peak)
{
    const double gflops = work->flops / best * 1e-9, fraction = work->flops / best / peak;
    if (bench->json)
        printf("{\"work\": \"%s\", \"obs\": %d, \"act\": %d, \"hidden\": %d, \"batch\": %d, "
               "\"threads\": %d, \"best_ms\": %.6g, \"median_ms\": %.6g, \"per_s\": %.6g, "
               "\"gflops\": %.6g, \"roofline_fraction\": %.4g, \"peak_gflops\": %.6g, "
               "\"gb_per_s\": %.4g, \"backend\": \"%s\"}\n",
               work->name, bench->obs, bench->act, work->hidden, work->batch, bench->threads,
               best * 1e3, median * 1e3, 1.0 / best, gflops, fraction, peak * 1e-9,
               work->bytes / best * 1e-9, opc_kernels()->name);
    else if (work->flops > 0.0)
        printf("%-28s %8d %10.4g %10.4g %11.5g %9.1f %7.1f %%\n", work->name, work->batch,
               best * 1e3, median * 1e3, 1.0 / best, gflops, 100.0 * fraction);
    else if (work->bytes > 0.0)
        printf("%-28s %8d %10.4g %10.4g %11.5g %9.1f GB/s\n", work->name, work->batch, best * 1e3,
               median * 1e3, 1.0 / best, work->bytes / best * 1e-9);
    else
        printf("%-28s %8d %10.4g %10.4g %11.5g\n", work->name, work->batch, best * 1e3,
               median * 1e3, 1.0 / best);
    fflush(stdout);
}

/* The first call warms up caches and allocations, the second one sets the length of a block: long
 * enough for the clock (2 ms), short enough to fall between disturbances. */
static int calls_per_block(const struct opc_bench_work *work, int *repeat, struct opc_err *err)
{
    int code = work->run(work->ctx, err);
    const double start = opc_now();
    code = code ? code : work->run(work->ctx, err);
    const double once = opc_now() - start;
    *repeat = once < 2e-3 ? (int)(2e-3 / (once + 1e-9)) + 1 : 1;
    return code;
}

int opc_bench_measure_in_turns(struct opc_bench *bench, const struct opc_bench_work *works,
                               int count, struct opc_err *err)
{
    double *blocks = opc_alloc((size_t)count * MAX_BLOCKS, sizeof *blocks);
    double *done = opc_alloc((size_t)bench->threads * 8, sizeof *done);
    int *repeat = opc_alloc((size_t)count, sizeof *repeat);
    int code = OPC_OK, n = 0;
    if (!blocks || !done || !repeat)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for the measurements");
    for (int w = 0; w < count && !code; w++)
        code = calls_per_block(&works[w], &repeat[w], err);
    double peak = 0.0;
    const double end = opc_now() + count * bench->seconds;
    while (!code && (n < 3 || (opc_now() < end && n < MAX_BLOCKS))) {
        /* Peak and works in turns; at least three blocks of each. */
        for (int w = 0; w < count && !code; w++) {
            const double rate = burn_block(bench->pool, done);
            peak = rate > peak ? rate : peak;
            const double start = opc_now();
            for (int i = 0; i < repeat[w] && !code; i++)
                code = works[w].run(works[w].ctx, err);
            blocks[w * MAX_BLOCKS + n] = (opc_now() - start) / repeat[w];
        }
        n++;
    }
    for (int w = 0; w < count && !code; w++) {
        /* block[0] is the best, block[n / 2] the median. */
        double *block = blocks + w * MAX_BLOCKS;
        qsort(block, (size_t)n, sizeof *block, compare_doubles);
        print_line(bench, &works[w], block[0], block[n / 2], peak);
    }
    opc_free(blocks);
    opc_free(done);
    opc_free(repeat);
    return code;
}

int opc_bench_measure(struct opc_bench *bench, const struct opc_bench_work *work,
                      struct opc_err *err)
{
    return opc_bench_measure_in_turns(bench, work, 1, err);
}

int opc_bench_once(struct opc_bench *bench, const struct opc_bench_work *work, struct opc_err *err)
{
    double *done = opc_alloc((size_t)bench->threads * 8, sizeof *done);
    if (!done)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the measurements");
    double peak = 0.0, took = 0.0;
    int code = OPC_OK;
    /* The peak is measured before and after the one long run. */
    for (int after = 0; after < 2; after++) {
        for (int i = 0; i < 20; i++) {
            const double rate = burn_block(bench->pool, done);
            peak = rate > peak ? rate : peak;
        }
        if (!after) {
            const double start = opc_now();
            code = work->run(work->ctx, err);
            took = opc_now() - start;
        }
    }
    /* Best and median are the one time there is. */
    if (!code)
        print_line(bench, work, took, took, peak);
    opc_free(done);
    return code;
}

/* ---- the machine ----------------------------------------------------------------------------- */

/* For the bandwidth: each thread copies its own `each` bytes. */
struct copy {
    struct opc_pool *pool;
    char *from, *to;
    size_t each;
};

/* A chunk of the pool: the memory of one thread each. */
static void copy_some(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct copy *c = ctx;
    for (int i = first; i < end; i++)
        memcpy(c->to + (size_t)i * c->each, c->from + (size_t)i * c->each, c->each);
}

/* Reads and writes each byte once. */
static int run_copy(void *ctx, struct opc_err *err)
{
    (void)err;
    struct copy *c = ctx;
    opc_pool_each(c->pool, opc_pool_threads(c->pool), 1, copy_some, c);
    return OPC_OK;
}

/* For the line of the peak itself. */
struct burn {
    struct opc_pool *pool;
    double *done;
};

/* The peak itself as a work. */
static int run_burn(void *ctx, struct opc_err *err)
{
    (void)err;
    const struct burn *burn = ctx;
    burn_block(burn->pool, burn->done);
    return OPC_OK;
}

/* The two roofs that everything else is measured against: peak multiply-add rate and memory
 * bandwidth. Also prints the head of the table. */
static int bench_machine(struct opc_bench *bench, struct opc_err *err)
{
    const size_t each = (size_t)32 << 20, threads = (size_t)bench->threads;
    struct opc_bench brief = *bench;
    /* A third of a second is enough for these two. */
    brief.seconds = bench->seconds < 0.3 ? bench->seconds : 0.3;
    struct copy c = {bench->pool, opc_alloc(threads, each), opc_alloc(threads, each), each};
    struct burn burn = {bench->pool, opc_alloc(threads * 8, sizeof *burn.done)};
    int code = OPC_OK;
    if (!c.from || !c.to || !burn.done) {
        code = opc_fail(err, OPC_ENOMEM,
                        "not enough memory for 64 MB per thread to measure bandwidth");
    } else {
        /* Touched pages: fresh ones are all the same zero page. */
        memset(c.from, 1, threads * each);
        /* JSON lines carry their own names and need no head. */
        if (!bench->json)
            printf("%d thread%s, backend %s\n\n%-28s %8s %10s %10s %11s %9s %9s\n", bench->threads,
                   bench->threads > 1 ? "s" : "", opc_kernels()->name, "work", "rows", "best ms",
                   "median ms", "per second", "GFLOP/s", "of peak");
        burn_block(bench->pool, burn.done);
        /* The operations of one block, as the kernels count them. */
        double flops = 0.0;
        for (int i = 0; i < bench->threads; i++)
            flops += burn.done[i * 8];
        const struct opc_bench_work peak = {
            .name = "machine multiply-adds", .flops = flops, .run = run_burn, .ctx = &burn};
        const struct opc_bench_work copy = {.name = "machine copies memory",
                                            .bytes = 2.0 * (double)each * bench->threads,
                                            .run = run_copy,
                                            .ctx = &c};
        code = opc_bench_measure(&brief, &peak, err);
        code = code ? code : opc_bench_measure(&brief, &copy, err);
    }
    opc_free(c.from);
    opc_free(c.to);
    opc_free(burn.done);
    return code;
}

/* ---- the command ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(struct opc_bench *, struct opc_err *);
} works[] = {
    {"gemm", opc_bench_gemm},       {"sac", opc_bench_sac},     {"fit", opc_bench_fit},
    {"rollout", opc_bench_rollout}, {"plan", opc_bench_plan},   {"epoch", opc_bench_epoch},
    {"env", opc_bench_env},         {"steve", opc_bench_steve},
};

static int bench_run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    int first;
    int code = opc_options_read(&options, argc, argv, &given, &first, err);
    if (code)
        return code;
    /* Without a word all works are run. */
    const char *want = first < argc ? argv[first] : "all";
    bool known = strcmp(want, "all") == 0;
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        known = known || strcmp(want, works[i].name) == 0;
    /* There is no more than one word, and it is one that we know. */
    if (!known || argc - first > 1)
        return opc_fail(err, OPC_EUSER, "cannot measure '%s'; name one of: %s",
                        known ? argv[first + 1] : want, opc_cmd_bench.words);
    /* "all" takes every option. */
    if (strcmp(want, "all") != 0)
        code = opc_options_fit(&options, uses, want, &given, err);
    if (code)
        return code;

    /* The works share the options and one pool. */
    struct opc_bench bench = {.obs = given.obs,
                              .act = given.act,
                              .hidden = given.hidden,
                              .batch = given.batch,
                              .states = given.states,
                              .published = given.published,
                              .threads = given.threads,
                              .seconds = given.seconds,
                              .json = given.json};
    code = opc_pool_create(given.threads, &bench.pool, err);
    code = code ? code : bench_machine(&bench, err);
    for (size_t i = 0; !code && i < sizeof works / sizeof *works; i++)
        if (strcmp(want, "all") == 0 || strcmp(want, works[i].name) == 0)
            code = works[i].run(&bench, err);
    opc_pool_destroy(bench.pool);
    return code;
}

const struct opc_command opc_cmd_bench = {
    .name = "bench",
    .usage = "[WORK] [OPTION...]",
    .summary = "measure the speed of training's parts against this machine's peak",
    .detail = "gemm: the three products of a layer. sac: one update. fit: one minibatch of the "
              "whole ensemble. rollout: one step of many "
              "imagined rollouts. plan: one action of PETS. epoch: a whole epoch of HalfCheetah as "
              "in the paper, once. env: "
              "a step of each environment. steve: one update of STEVE, world model included. all, "
              "or no word: each of these, which takes minutes.\n"
              "Each line gives the best and the median time, useful arithmetic per second, and "
              "its share of the peak measured in between on the same threads.",
    .words = "gemm sac fit rollout plan epoch env steve all",
    .options = &options,
    .uses = uses,
    .run = bench_run,
};
