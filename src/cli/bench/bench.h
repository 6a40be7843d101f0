/* SPDX-License-Identifier: MIT */
/* cli/bench/bench.h - what the works of `opc bench` share. */
#ifndef OPC_CLI_BENCH_H
#define OPC_CLI_BENCH_H

#include "opc/err.h"

#include <stdbool.h>

struct opc_command;
struct opc_imagined;
struct opc_pool;
extern const struct opc_command opc_cmd_bench;

/* The options of the command line and the pool; every work gets it. */
struct opc_bench {
    int obs, act;      /* numbers in an observation, in an action */
    int hidden;        /* width of hidden layers; 0: the usual ones */
    int batch, states; /* rows of a batch, of a rollout step */
    bool published;    /* the planner at its authors' setting instead of an economical one */
    int threads;
    double seconds; /* of each measurement */
    bool json;
    struct opc_pool *pool;
};

/* One line of the table: what is run, and what it counts as. */
struct opc_bench_work {
    const char *name;
    int hidden, batch; /* printed as they are */
    double flops;      /* useful operations of one run; 0: not counted */
    int (*run)(void *ctx, struct opc_err *err);
    void *ctx;
    double bytes; /* moved by one run; 0: not counted */
};

/* Measures for b->seconds and prints the line. */
int opc_bench_measure(struct opc_bench *, const struct opc_bench_work *, struct opc_err *err);
/* The same for `count` works that are to be compared: their blocks alternate, so that a disturbance
 * hits all of them. */
int opc_bench_measure_in_turns(struct opc_bench *, const struct opc_bench_work *, int count,
                               struct opc_err *err);
/* The same for work that takes so long that it is run only once; the peak is measured before and
 * after it. */
int opc_bench_once(struct opc_bench *, const struct opc_bench_work *, struct opc_err *err);

/* Useful arithmetic of one row in one gradient step of one member of the model: forward, dW, and
 * dX of all layers but the first. */
double opc_bench_fit_flops(int in, int hidden, int layers, int out);
/* Useful arithmetic of one SAC update. */
double opc_bench_sac_flops(int obs, int act, int hidden, int batch);

/* A million random steps to draw batches from, for opc_imagined_destroy. */
int opc_bench_store(const struct opc_bench *, struct opc_imagined **out, struct opc_err *err);

/* The works, by their words on the command line. */
int opc_bench_gemm(struct opc_bench *, struct opc_err *err);
int opc_bench_fit(struct opc_bench *, struct opc_err *err);
int opc_bench_sac(struct opc_bench *, struct opc_err *err);
int opc_bench_steve(struct opc_bench *, struct opc_err *err);
int opc_bench_rollout(struct opc_bench *, struct opc_err *err);
int opc_bench_plan(struct opc_bench *, struct opc_err *err);
int opc_bench_epoch(struct opc_bench *, struct opc_err *err);
int opc_bench_env(struct opc_bench *, struct opc_err *err);

#endif
