/* SPDX-License-Identifier: MIT */
/* Environment specs as a user may mistype them: refused with a message, or opened and playable.
 * MuJoCo's are left out; compiling a model takes as long as ten thousand other tries. */
#include "opc/env.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char spec[512];
    double obs[256];
    struct opc_env *env;
    struct opc_err err = {0};
    struct opc_rng rng = {0};
    struct opc_outcome out = {.obs = obs};
    if (size >= sizeof spec)
        return 0;
    memcpy(spec, data, size);
    spec[size] = '\0';
    if (strncmp(spec, "mujoco:", 7) == 0)
        return 0;
    if (opc_env_open(spec, &env, &err)) {
        if (err.code == OPC_OK || !*err.text)
            abort();
        return 0;
    }
    if (env->obs > (int)(sizeof obs / sizeof *obs))
        abort();
    if (opc_env_reset(env, &rng, obs, &err) || opc_env_step(env, env->high, &out, &err))
        abort();
    opc_env_close(env);
    return 0;
}
