/* SPDX-License-Identifier: MIT */
#include "agent/ppo.h"
#include "agent/sac.h"

#include <string.h>

static const struct opc_agent_type *const types[] = {&opc_sac_type, &opc_ppo_type};

int opc_agent_create(const char *name, const struct opc_agent_args *args, struct opc_agent **out,
                     struct opc_err *err)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i]->name, name) == 0)
            return types[i]->create(args, out, err);
    return opc_fail(err, OPC_EUSER, "there is no agent '%s'; the agents are: %s, %s", name,
                    types[0]->name, types[1]->name);
}

void opc_agent_destroy(struct opc_agent *a)
{
    if (a)
        a->type->destroy(a);
}

void opc_agent_act(const struct opc_agent *a, int n, const float *state, bool explore,
                   struct opc_rng *rng, float *action)
{
    a->type->act(a, n, state, explore, rng, action);
}

void opc_agent_act_spread(const struct opc_agent *a, int n, const float *state, float spread,
                          struct opc_rng *rng, float *action)
{
    a->type->act_spread(a, n, state, spread, rng, action);
}

int opc_agent_improve(struct opc_agent *a, const struct opc_feed *feed, int updates,
                      struct opc_agent_report *report, struct opc_err *err)
{
    return a->type->improve(a, feed, updates, report, err);
}
