/* SPDX-License-Identifier: MIT */
/* env/types.h - the environments we ship, for the list in env.c. */
#ifndef OPC_ENV_TYPES_H
#define OPC_ENV_TYPES_H

#include "opc/env.h"

extern const struct opc_env_type opc_env_linear1d, opc_env_double_integrator, opc_env_pendulum,
    opc_env_cartpole;
/* Both lists end with a type without a name; in a build without the engine that is all they have.
 */
extern const struct opc_env_type opc_mujoco_types[], opc_bullet_types[];

/* plugin.c: whether the name ends in .so; the type that such a file exports, and the CRC-32C of its
 * bytes. */
bool opc_env_is_plugin(const char *name);
int opc_env_load_plugin(const char *name, const struct opc_env_type **out, uint32_t *hash,
                        struct opc_err *err);

/* Checks that a plugin was made with these headers and is whole. */
int opc_env_check_plugin(const struct opc_env_plugin *, struct opc_err *err);
/* register.c: the type that the program registered under this name; NULL: there is none. */
const struct opc_env_type *opc_env_registered(const char *name);

/* process.c: exec:COMMAND, a task that another program plays. Is `spec` one? */
bool opc_env_is_process(const char *spec);
/* The engine that the task needs and this build lacks; NULL: none. */
const char *opc_env_lacks(const char *spec);
/* Fails, and explains a name that no task has: what it may stand for, or which are like it. */
int opc_env_unknown(const char *name, struct opc_err *err);
int opc_process_open(const char *spec, struct opc_env **out, struct opc_err *err);
/* Sends the question of a step ahead, so that several programs compute at once. The next call
 * must be that step, with the same action, or the episode is over. Does nothing for other types. */
void opc_process_step_ahead(struct opc_env *, const double *action);
/* Does it give the same numbers for the same seed and actions? Machines do not, and a child says
 * so. */
bool opc_env_repeats(const struct opc_env *);
/* opc_env_reward in the form of opc_transition_options.reward, for a task that has a reward
 * function; env is the environment. */
void opc_env_reward_of_task(void *env, int n, const float *s, const float *a, const float *next,
                            float *out);

/* Is it what a task is called, with or without arguments? Whether it can be opened is not asked. */
bool opc_env_is_task(const char *spec);
/* Is it a task that is not part of opc: a plugin, a program, or one that was registered? */
bool opc_env_is_foreign(const char *spec);
/* True if `spec` names hardware; false also if it cannot be opened. */
bool opc_env_is_machine(const char *spec);

/* `wanted` is asked before each step of any environment; if it returns true, the step fails with
 * OPC_ESTOPPED and hardware rests. For programs that catch signals; NULL: never stop. */
void opc_env_stop_when(bool (*wanted)(void));

/* The same while we wait for a child's answer, which is then given up; machines are waited for. */
void opc_env_wait_until(bool (*wanted)(void));
bool opc_env_wait_ends(void);

/* How an angle is observed: as the task has it, as cosine and sine, or as one number. */
enum opc_angle { OPC_ANGLE_AS_IS, OPC_ANGLE_SINCOS, OPC_ANGLE_RAW };
/* Wraps `inner`, which the wrapper owns from then on; on failure inner stays the caller's. Where
 * there is nothing to change, *out is inner itself. */
int opc_wrap_angle(struct opc_env *inner, enum opc_angle how, struct opc_env **out,
                   struct opc_err *err);

/* Uniform on [-half, half). */
double opc_env_uniform(struct opc_rng *, double half);
/* The stream a stochastic task draws its process noise from, so that the steps of one episode
 * share no number with the reset of the next. */
struct opc_rng opc_env_noise_stream(struct opc_rng *reset);

#endif
