/* SPDX-License-Identifier: MIT */
/* Acting row by row, each row with the memory of its episode. evaluate.c plays with it, and probes
 * (study/probe/probe.c) do.
 *
 * Invariant: a row's actions depend on its own episode alone, so the number of rows in a batch does
 * not change a result. */
#include "run/real/episode_states.h"

#include "opc/mem.h"

int opc_episode_states_create(const struct opc_agent *agent, int n, struct opc_episode_states *out,
                              struct opc_err *err)
{
    *out = (struct opc_episode_states){.n = n};
    if (!agent->type->act_in)
        return OPC_OK;
    out->row = opc_alloc((size_t)n, sizeof(struct opc_episode_state *));
    int code = OPC_OK;
    if (!out->row)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory to play %d episodes at once", n);
    for (int i = 0; i < n && !code; i++)
        code = opc_episode_state_create(agent, &out->row[i], err);
    if (code)
        opc_episode_states_free(out);
    return code;
}

void opc_episode_states_free(struct opc_episode_states *states)
{
    for (int i = 0; states->row && i < states->n; i++)
        opc_episode_state_destroy(states->row[i]);
    opc_free(states->row);
    *states = (struct opc_episode_states){0};
}

void opc_episode_states_act(const struct opc_episode_states *states, const struct opc_agent *agent,
                            struct opc_env_batch *b, bool explore, uint64_t seed, uint32_t epoch)
{
    const size_t obs = (size_t)b->obs, act = (size_t)b->act;
    for (int i = 0; i < b->n; i++) {
        if (!b->active[i])
            continue;
        if (b->length[i] == 0) /* the first action of an episode */
            opc_episode_state_begin(states->row[i], seed, epoch, (uint32_t)(b->first + i));
        opc_agent_act_in(agent, states->row[i], b->input + (size_t)i * obs, explore,
                         explore ? &b->rng[i] : NULL, b->action + (size_t)i * act);
    }
}
