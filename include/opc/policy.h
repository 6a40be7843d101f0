/* SPDX-License-Identifier: MIT */
/* opc/policy.h - a trained policy, ready to act.
 *
 *     struct opc_agent *policy;
 *     opc_policy_load("policy.opc", &policy, &err);
 *     opc_agent_act(policy, 1, state, false, NULL, action);
 *     opc_agent_destroy(policy);
 *
 * The file policy.opc, which training leaves in a run directory, is all that is needed: it holds
 * the networks and the settings they were trained with. It can be copied to the machine that acts.
 * One that plans (docs/pets.md) holds its model, opens its task for the rule where episodes end,
 * and is acted with by opc_agent_act_in. */
#ifndef OPC_POLICY_H
#define OPC_POLICY_H

#include "opc/agent.h"
#include "opc/config.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Loads a policy. path is a policy.opc, or a run directory: then it is the final policy, or that of
 * the last checkpoint. opc_agent_dimensions says what it expects; states are floats, actions are in
 * [-1, 1], and opc_env_scale leads from there to the task's units. OPC_EUSER: there is no policy;
 * OPC_EDAMAGED: a file does not pass its checks. For opc_agent_destroy. */
OPC_API int opc_policy_load(const char *path, struct opc_agent **out, struct opc_err *err);

/* The settings a policy was trained with, from the same path; env.name is its task. For
 * opc_config_destroy. */
OPC_API int opc_policy_config(const char *path, struct opc_config **out, struct opc_err *err);

/* The range of each action in the task's units, low[act] and high[act], from the same path; act is
 * that of opc_agent_dimensions. Where policy.opc does not have them, the task is opened. OPC_EUSER,
 * OPC_EDAMAGED: as above; OPC_EENV: the task would not open. */
OPC_API int opc_policy_limits(const char *path, int act, double *low, double *high,
                              struct opc_err *err);

#ifdef __cplusplus
}
#endif
#endif
