/* SPDX-License-Identifier: MIT */
/* The table of agents, and the calls of opc/agent.h that go through an agent's type. A new agent is
 * a file next to this one and a line in TYPES; settings and columns of metrics.csv come from its
 * opc_agent_type. The order of the table never changes: the hash of a run's settings
 * (run/config_hash.c) and the columns of metrics.csv (run/record.c) follow it. */
#include "agent/policy.h"
#include "agent/ppo.h"
#include "agent/sac.h"
#include "opc/predictor.h"

#include <stdio.h>
#include <string.h>

#ifdef OPC_ONE_MORE_AGENT
extern const struct opc_agent_type OPC_ONE_MORE_AGENT;
#endif

/* Written out, not assembled by constructors, so that a reader sees all of them. */
static const struct opc_agent_type *const TYPES[] = {
    &opc_sac_type,
    &opc_ppo_type,
#ifdef OPC_ONE_MORE_AGENT /* tests/test_extending.c adds one this way */
    &OPC_ONE_MORE_AGENT,
#endif
};

const struct opc_agent_type *opc_agent_type(int i)
{
    return i >= 0 && i < (int)(sizeof TYPES / sizeof *TYPES) ? TYPES[i] : NULL;
}

const char *opc_agent_name(int i)
{
    const struct opc_agent_type *type = opc_agent_type(i);
    return type ? type->name : NULL;
}

int opc_agent_create(const char *name, const struct opc_agent_args *args, struct opc_agent **out,
                     struct opc_err *err)
{
    for (int i = 0; opc_agent_name(i); i++)
        if (strcmp(opc_agent_name(i), name) == 0)
            return opc_agent_type(i)->create(args, out, err);
    /* No such agent: the message lists those there are. */
    char known[200] = "";
    for (int i = 0; opc_agent_name(i); i++) {
        const size_t n = strlen(known);
        snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", opc_agent_name(i));
    }
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

/* The model is read before the agent is gone, and destroyed after it: the agent may still use
 * it. */
void opc_agent_destroy(struct opc_agent *agent)
{
    struct opc_predictor *model = agent ? agent->model : NULL;
    if (agent)
        agent->type->destroy(agent);
    opc_predictor_destroy(model);
}

void opc_agent_act(const struct opc_agent *agent, int n, const float *state, bool explore,
                   struct opc_rng *rng, float *action)
{
    agent->type->act(agent, n, state, explore, rng, action);
}

void opc_agent_act_spread(const struct opc_agent *agent, int n, const float *state, float spread,
                          struct opc_rng *rng, float *action)
{
    agent->type->act_spread(agent, n, state, spread, rng, action);
}

int opc_agent_improve(struct opc_agent *agent, const struct opc_feed *feed, int updates,
                      struct opc_agent_report *report, struct opc_err *err)
{
    return agent->type->improve(agent, feed, updates, report, err);
}
