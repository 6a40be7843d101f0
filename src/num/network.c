/* SPDX-License-Identifier: MIT */
/* The memory of a network that is exported: agents and models fill it in through their types, and
 * study/export frees it. Invariant: it owns its scaling and nothing else. */
#include "num/network.h"

#include "opc/mem.h"

#include <string.h>

int opc_network_scale(struct opc_network *network, int inputs, struct opc_err *err)
{
    network->mean = opc_alloc((size_t)inputs, sizeof *network->mean);
    network->inverse = opc_alloc((size_t)inputs, sizeof *network->inverse);
    if (network->mean && network->inverse)
        return OPC_OK;
    opc_network_free(network);
    return opc_fail(err, OPC_ENOMEM, "not enough memory for the scaling of %d inputs", inputs);
}

int opc_network_vary(struct opc_network *network, struct opc_err *err)
{
    const size_t n = (size_t)network->outputs / 2;
    const struct opc_block blocks[] = {
        {&network->log_var_max, n, sizeof(float)},
        {&network->log_var_min, n, sizeof(float)},
        {&network->log_std_shift, n, sizeof(float)},
    };
    if (opc_alloc_all(blocks, 3))
        return OPC_OK;
    opc_network_free(network);
    return opc_fail(err, OPC_ENOMEM, "not enough memory for the bounds of %zu variances", n);
}

int opc_network_unscale(struct opc_network *network, const float *mean, const float *inverse,
                        struct opc_err *err)
{
    const int last = network->net->shape.layers - 1;
    const size_t ld = (size_t)network->net->layer[last].ld, out = (size_t)network->outputs;
    const float *w = opc_network_weight(network, last), *b = opc_network_bias(network, last);
    float *weight = opc_alloc(out * ld, sizeof *weight), *bias = opc_alloc(out, sizeof *bias);
    if (!weight || !bias) {
        opc_free(weight);
        opc_free(bias);
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the scaling of %zu outputs", out);
    }
    const size_t means = network->log_var_max ? out / 2 : out;
    memcpy(weight, w, out * ld * sizeof *weight);
    memcpy(bias, b, out * sizeof *bias);
    for (size_t o = 0; o < means; o++) {
        for (size_t i = 0; i < ld; i++)
            weight[o * ld + i] = w[o * ld + i] / inverse[o];
        bias[o] = mean[o] + b[o] / inverse[o];
    }
    network->last_weight = weight;
    network->last_bias = bias;
    return OPC_OK;
}

void opc_network_free(struct opc_network *network)
{
    /* net is the agent's or the model's */
    opc_free(network->mean);
    opc_free(network->inverse);
    opc_free(network->last_weight);
    opc_free(network->last_bias);
    opc_free(network->log_var_max);
    opc_free(network->log_var_min);
    opc_free(network->log_std_shift);
    network->log_var_max = network->log_var_min = network->log_std_shift = NULL;
    network->last_weight = network->last_bias = NULL;
    network->mean = network->inverse = NULL;
}
