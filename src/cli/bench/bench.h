/* SPDX-License-Identifier: MIT */
/* cli/bench/bench.h - what the works of `opc bench` share. */
#ifndef OPC_CLI_BENCH_H
#define OPC_CLI_BENCH_H

#include "opc/err.h"

#include <stdbool.h>

struct opc_command;
struct opc_pool;
extern const struct opc_command opc_cmd_bench;

struct opc_bench { /* as asked for on the command line */
    int obs, act, hidden, batch, states, threads;
    double seconds;
    bool json;
    struct opc_pool *pool;
};

struct opc_bench_work {
    const char *name;
    int hidden, batch; /* to be printed */
    double flops;      /* useful ones of one run; 0: not counted */
    int (*run)(void *ctx, struct opc_err *err);
    void *ctx;
    double bytes; /* moved by one run; 0: not counted */
};

/* Measures for b->seconds and prints the line. */
int opc_bench_measure(struct opc_bench *, const struct opc_bench_work *, struct opc_err *err);
/* The same for what takes so long that once must do: the peak is measured before and after. */
int opc_bench_once(struct opc_bench *, const struct opc_bench_work *, struct opc_err *err);

/* Useful arithmetic of one row in one gradient step of one member of the model: forward, dW, and
 * dX of all layers but the first. */
double opc_bench_fit_flops(int in, int hidden, int layers, int out);
/* Useful arithmetic of one SAC update. */
double opc_bench_sac_flops(int obs, int act, int hidden, int batch);

int opc_bench_gemm(struct opc_bench *, struct opc_err *err);
int opc_bench_fit(struct opc_bench *, struct opc_err *err);
int opc_bench_sac(struct opc_bench *, struct opc_err *err);
int opc_bench_rollout(struct opc_bench *, struct opc_err *err);
int opc_bench_epoch(struct opc_bench *, struct opc_err *err);
int opc_bench_env(struct opc_bench *, struct opc_err *err);

#endif
