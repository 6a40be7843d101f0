/* SPDX-License-Identifier: MIT */
#include "agent/policy.h"
#include "agent/ppo.h"
#include "agent/sac.h"

#include <stdio.h>
#include <string.h>

static const struct opc_agent_type *const types[] = {&opc_sac_type, &opc_ppo_type};

int opc_agent_create(const char *name, const struct opc_agent_args *args, struct opc_agent **out,
                     struct opc_err *err)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i]->name, name) == 0)
            return types[i]->create(args, out, err);
    char known[64] = "";
    for (size_t i = 0, n = 0; i < sizeof types / sizeof *types && n < sizeof known; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", types[i]->name);
    return opc_fail(err, OPC_EUSER, "there is no agent '%s'; the agents are: %s", name, known);
}

int opc_visit_parts(const struct opc_state_part *part, size_t n,
                    int (*visit)(void *, const char *, void *, size_t, struct opc_err *), void *ctx,
                    struct opc_err *err)
{
    int code = OPC_OK;
    for (size_t i = 0; i < n && !code; i++)
        code = visit(ctx, part[i].name, part[i].data, part[i].bytes, err);
    return code;
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
