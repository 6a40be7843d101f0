/* SPDX-License-Identifier: MIT */
/* Acting row by row, each row with the memory of its episode. evaluate.c plays with it, and probes
 * (study/probe/probe.c) do.
 *
 * Invariant: a row's actions depend on its own episode alone, so the number of rows in a batch does
 * not change a result. */
#include "run/real/memories.h"

#include "opc/mem.h"

int opc_memories_create(const struct opc_agent *agent, int n, struct opc_memories *out,
                        struct opc_err *err)
{
    *out = (struct opc_memories){.n = n};
    if (!agent->type->act_in)
        return OPC_OK;
    out->row = opc_alloc((size_t)n, sizeof(struct opc_memory *));
    int code = OPC_OK;
    if (!out->row)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory to play %d episodes at once", n);
    for (int i = 0; i < n && !code; i++)
        code = opc_memory_create(agent, &out->row[i], err);
    if (code)
        opc_memories_free(out);
    return code;
}

void opc_memories_free(struct opc_memories *memories)
{
    for (int i = 0; memories->row && i < memories->n; i++)
        opc_memory_destroy(memories->row[i]);
    opc_free(memories->row);
    *memories = (struct opc_memories){0};
}

void opc_memories_act(const struct opc_memories *memories, const struct opc_agent *agent,
                      struct opc_env_batch *b, bool explore, uint64_t seed, uint32_t epoch)
{
    const size_t obs = (size_t)b->obs, act = (size_t)b->act;
    for (int i = 0; i < b->n; i++) {
        if (!b->active[i])
            continue;
        if (b->length[i] == 0) /* the first action of an episode */
            opc_memory_begin(memories->row[i], seed, epoch, (uint32_t)(b->first + i));
        opc_agent_act_in(agent, memories->row[i], b->input + (size_t)i * obs, explore,
                         explore ? &b->rng[i] : NULL, b->action + (size_t)i * act);
    }
}
