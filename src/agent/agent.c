/* SPDX-License-Identifier: MIT */
/* The table of agents, and the calls of opc/agent.h that go through an agent's type. A new agent is
 * a file next to this one and a line in TYPES; settings and columns of metrics.csv come from its
 * opc_agent_type. The order of the table never changes: the hash of a run's settings
 * (run/config/config_hash.c) and the columns of metrics.csv (run/files/runlog.c) follow it. */
#include "agent/pets.h"
#include "agent/policy.h"
#include "agent/ppo.h"
#include "agent/sac.h"
#include "agent/slbo.h"
#include "agent/steve.h"
#include "base/sized.h"
#include "opc/env.h"
#include "opc/mem.h"
#include "opc/predictor.h"
#include "opc/transition.h"

#include <stdio.h>
#include <string.h>

#ifdef OPC_ONE_MORE_AGENT
extern const struct opc_agent_type OPC_ONE_MORE_AGENT;
#endif

/* Written out, not assembled by constructors, so that a reader sees all of them. */
static const struct opc_agent_type *const TYPES[] = {
    &opc_sac_type,       &opc_ppo_type, &opc_steve_type, &opc_slbo_type, &opc_pets_type,
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
        if (strcmp(opc_agent_name(i), name) == 0) {
            struct opc_agent_args whole;
            OPC_TRY(opc_sized_read(args, "opc_agent_args", &whole, sizeof whole, err));
            return opc_agent_type(i)->create(&whole, out, err);
        }
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

/* What it owns is read before the agent is gone, and destroyed after it: the agent may still use
 * it. */
void opc_agent_destroy(struct opc_agent *agent)
{
    if (!agent)
        return;
    const struct opc_agent owns = *agent;
    agent->type->destroy(agent);
    opc_transition_destroy(owns.transition);
    opc_episodes_destroy(owns.past);
    opc_predictor_destroy(owns.model);
    if (owns.env)
        opc_env_close(owns.env);
}

void opc_agent_dimensions(const struct opc_agent *agent, int *obs, int *act)
{
    if (obs)
        *obs = agent->obs;
    if (act)
        *act = agent->act;
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

/* ---- memory of an episode -------------------------------------------------------------------- */

int opc_episode_state_create(const struct opc_agent *agent, struct opc_episode_state **out,
                             struct opc_err *err)
{
    struct opc_episode_state *memory = opc_alloc(1, sizeof *memory);
    if (!memory)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to act in an episode");
    memory->count = agent->type->remembers ? agent->type->remembers(agent) : 0;
    memory->number = opc_alloc(memory->count, sizeof *memory->number);
    if (!memory->number) {
        opc_free(memory);
        return opc_fail(err, OPC_ENOMEM, "not enough memory to act in an episode");
    }
    *out = memory;
    return OPC_OK;
}

void opc_episode_state_destroy(struct opc_episode_state *memory)
{
    if (memory)
        opc_free(memory->number);
    opc_free(memory);
}

void opc_episode_state_begin(struct opc_episode_state *memory, uint64_t seed, uint32_t epoch,
                             uint32_t episode)
{
    memory->seed = seed;
    memory->epoch = epoch;
    memory->episode = episode;
    memory->steps = 0;
    memset(memory->number, 0, memory->count * sizeof *memory->number);
}

void opc_agent_act_in(const struct opc_agent *agent, struct opc_episode_state *memory,
                      const float *state, bool explore, struct opc_rng *rng, float *action)
{
    if (agent->type->act_in)
        agent->type->act_in(agent, memory, state, explore, explore ? rng : NULL, action);
    else
        agent->type->act(agent, 1, state, explore, rng, action);
    memory->steps++;
}

/* ---------------------------------------------------------------------------------------------- */

int opc_agent_improve(struct opc_agent *agent, const struct opc_feed *feed, int updates,
                      struct opc_agent_report *report, struct opc_err *err)
{
    struct opc_feed whole;
    struct opc_agent_report done = {0};
    OPC_TRY(opc_sized_read(feed, "opc_feed", &whole, sizeof whole, err));
    OPC_TRY(opc_sized_check(report, "opc_agent_report", sizeof done, err));
    const int code = agent->type->improve(agent, &whole, updates, &done, err);
    opc_sized_write(&done, sizeof done, report);
    return code;
}
