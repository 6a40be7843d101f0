/* SPDX-License-Identifier: MIT */
/* The memory of a network that is exported: agents and models fill it in through their types, and
 * study/export frees it. Invariant: it owns its scaling and nothing else. */
#include "num/network.h"

int opc_network_scale(struct opc_network *network, int inputs, struct opc_err *err)
{
    network->mean = opc_alloc((size_t)inputs, sizeof *network->mean);
    network->inverse = opc_alloc((size_t)inputs, sizeof *network->inverse);
    if (network->mean && network->inverse)
        return OPC_OK;
    opc_network_free(network);
    return opc_fail(err, OPC_ENOMEM, "not enough memory for the scaling of %d inputs", inputs);
}

void opc_network_free(struct opc_network *network)
{
    /* net is the agent's or the model's */
    opc_free(network->mean);
    opc_free(network->inverse);
    network->mean = network->inverse = NULL;
}
