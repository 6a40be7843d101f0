/* SPDX-License-Identifier: MIT */
/* num/network.h - one trained network with the scaling around it, as it leaves this program
 * (study/export): what its owner computes with it, without the owner's type.
 *
 *     x = clip((x - mean) inverse),  layers of net,  y = the first `outputs`,  y = tanh(y) */
#ifndef OPC_NUM_NETWORK_H
#define OPC_NUM_NETWORK_H

#include "num/mlp.h"

struct opc_network {
    const struct opc_mlp *net; /* borrowed: it belongs to an agent or a model */
    int member, outputs;
    bool squash;           /* tanh after the last layer */
    float *mean, *inverse; /* [inputs], owned; NULL: inputs are not scaled */
    float clip;            /* scaled inputs are clipped to [-clip, clip]; 0: they are not */
    /* The last layer with the scale of the outputs in it, owned: w[outputs][ld] and b[outputs].
     * NULL: outputs are not scaled, and the layer is the network's own. */
    float *last_weight, *last_bias;
    /* The outputs are means and then as many raw log-variances, of Gaussians; owned, [outputs / 2].
     * NULL: there are no variances. With l1 = max - softplus(max - raw) and
     * l = min + softplus(l1 - min), the logarithm of the deviation is l / 2 + log_std_shift. */
    float *log_var_max, *log_var_min, *log_std_shift;
};

static inline int opc_network_inputs(const struct opc_network *network)
{
    return network->net->shape.width[0];
}
/* The number of outputs that layer l computes: of the last one, only those that are asked for. */
static inline int opc_network_width(const struct opc_network *network, int l)
{
    return l + 1 < network->net->shape.layers ? network->net->layer[l].out : network->outputs;
}
/* Weights w[out][ld] of layer l, and its biases. */
static inline const float *opc_network_weight(const struct opc_network *network, int l)
{
    if (network->last_weight && l + 1 == network->net->shape.layers)
        return network->last_weight;
    return opc_mlp_member(network->net, network->member) + network->net->layer[l].weight;
}
static inline const float *opc_network_bias(const struct opc_network *network, int l)
{
    if (network->last_bias && l + 1 == network->net->shape.layers)
        return network->last_bias;
    return opc_mlp_member(network->net, network->member) + network->net->layer[l].bias;
}
/* Allocates mean and inverse, for the caller to fill. */
int opc_network_scale(struct opc_network *, int inputs, struct opc_err *err);
/* Allocates the arrays of the log-variances, for the caller to fill; outputs counts them. */
int opc_network_vary(struct opc_network *, struct opc_err *err);
/* Puts y = mean + y / inverse, of each output that is a mean, into the last layer. */
int opc_network_unscale(struct opc_network *, const float *mean, const float *inverse,
                        struct opc_err *err);
void opc_network_free(struct opc_network *); /* what it owns */

#endif
