/* SPDX-License-Identifier: MIT */
/* cli/env/env_bench.h - how fast an environment steps, and what our part of that is. */
#ifndef OPC_CLI_ENV_BENCH_H
#define OPC_CLI_ENV_BENCH_H

#include "opc/err.h"

struct opc_env_speed {
    double us;      /* of a step through opc_env_step, median */
    double bare_us; /* of the engine's own loop, in turns with it; 0: no engine */
    double ratio;   /* us / bare_us, median over pairs of blocks */
};

/* Measures for about `seconds`. Hardware is refused, because it keeps its own time. */
int opc_env_bench(const char *spec, double seconds, struct opc_env_speed *out, struct opc_err *err);

#endif
