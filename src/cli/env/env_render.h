/* SPDX-License-Identifier: MIT */
/* cli/env/env_render.h - plays an environment in front of a camera. */
#ifndef OPC_CLI_ENV_RENDER_H
#define OPC_CLI_ENV_RENDER_H

#include "opc/err.h"

#include <stdint.h>

/* The options of `opc env render`. */
struct opc_render_plan {
    /* an environment, or the directory of a run or a file policy.opc, whose policy then acts */
    const char *spec;
    const char *state;   /* file, or "": the noise-free start */
    const char *actions; /* file, "random" (also "") or "zero" */
    const char *out;     /* film or picture */
    const char *size;    /* "640x480" */
    int steps;           /* to play if there is no file of actions */
    uint64_t seed;
};

int opc_env_render(const struct opc_render_plan *, struct opc_err *err);

#endif
