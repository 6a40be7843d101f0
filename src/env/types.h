/* SPDX-License-Identifier: MIT */
/* env/types.h - the environments we ship, for the list in env.c. */
#ifndef OPC_ENV_TYPES_H
#define OPC_ENV_TYPES_H

#include "opc/env.h"

extern const struct opc_env_type opc_env_linear1d, opc_env_double_integrator, opc_env_pendulum,
    opc_env_cartpole;
/* Each ends with a type without a name, which is all there is in a build without the engine. */
extern const struct opc_env_type opc_mujoco_types[], opc_bullet_types[];

/* plugin.c: does the name end in .so, and the type of such a file with the CRC-32C of its bytes. */
bool opc_env_is_plugin(const char *name);
int opc_env_load_plugin(const char *name, const struct opc_env_type **out, uint32_t *hash,
                        struct opc_err *err);

/* Was it made with these headers, and is it whole? */
int opc_env_check_plugin(const struct opc_env_plugin *, struct opc_err *err);
/* register.c: what the program registered under this name; NULL: nothing. */
const struct opc_env_type *opc_env_registered(const char *name);

/* Whether it would open a machine; what cannot be opened is none. */
bool opc_env_is_machine(const char *spec);

/* Asked before each step of any environment; true fails it with OPC_ESTOPPED, and a machine rests.
 * For programs that catch signals; NULL: never. */
void opc_env_stop_when(bool (*wanted)(void));

/* The two ways to observe an angle, and neither: as the task has it. */
enum opc_angle { OPC_ANGLE_AS_IS, OPC_ANGLE_SINCOS, OPC_ANGLE_RAW };
/* Around `inner`, which it owns from then on; on failure inner stays the caller's. Where there is
 * nothing to change, *out is inner itself. */
int opc_wrap_angle(struct opc_env *inner, enum opc_angle how, struct opc_env **out,
                   struct opc_err *err);

/* Uniform on [-half, half). */
double opc_env_uniform(struct opc_rng *, double half);
/* The stream a stochastic task draws its process noise from, so that the steps of one episode
 * share no number with the reset of the next. */
struct opc_rng opc_env_noise_stream(struct opc_rng *reset);

#endif
