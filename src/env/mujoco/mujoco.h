/* SPDX-License-Identifier: MIT */
/* env/mujoco/mujoco.h - the MuJoCo engine. Its own header is included by mujoco.c alone, which runs
 * it, and by render.c, which draws. */
#ifndef OPC_ENV_MUJOCO_H
#define OPC_ENV_MUJOCO_H

#include "opc/env.h"

#include <stddef.h>

/* The version that was loaded; NULL in a build without MuJoCo. */
#if OPC_WITH_MUJOCO
const char *opc_mujoco_version(void);
#else
static inline const char *opc_mujoco_version(void)
{
    return NULL;
}
#endif

struct mjModel_;
struct mjData_;

/* The model and data of an environment (or of the one it wraps); returns NULL and leaves *data
 * alone if it does not run on MuJoCo. */
struct mjModel_ *opc_mujoco_inside(const struct opc_env *, struct mjData_ **data);

/* Compiles a model file, found by its name below models/ or in $OPC_MODELS; free it with
 * opc_mujoco_free. hash (NULL is fine) becomes the CRC-32C of its text. */
int opc_mujoco_load(const char *file, struct mjModel_ **out, uint32_t *hash, struct opc_err *err);
void opc_mujoco_free(struct mjModel_ *); /* NULL is fine */

/* Calls work(ctx). If the engine meets a fatal error, the call is abandoned there, and the result
 * is OPC_EENV with its message. */
int opc_mujoco_guarded(void (*work)(void *), void *ctx, struct opc_err *err);

#endif
