/* SPDX-License-Identifier: MIT */
/* The Adam optimiser, for the agents and the ensemble's trainer. A step is opc_adam_begin once, and
 * then every parameter exactly once, in any ranges: the element-wise kernel makes the result
 * independent of how the ranges were cut and of the threads that did them. */
#include "num/adam.h"

#include "opc/mem.h"

#include <math.h>

int opc_adam_create(size_t count, struct opc_adam_config config, struct opc_adam **out,
                    struct opc_err *err)
{
    struct opc_adam *adam = opc_alloc(1, sizeof *adam);
    if (!adam)
        goto full;
    adam->config = config;
    adam->count = count;
    adam->m = opc_alloc(count, sizeof *adam->m);
    adam->v = opc_alloc(count, sizeof *adam->v);
    if (!adam->m || !adam->v)
        goto full;
    *out = adam;
    return OPC_OK;
full:
    opc_adam_destroy(adam);
    return opc_fail(err, OPC_ENOMEM, "not enough memory for the moments of %zu parameters", count);
}

void opc_adam_destroy(struct opc_adam *adam)
{
    if (!adam)
        return;
    opc_free(adam->m);
    opc_free(adam->v);
    opc_free(adam);
}

size_t opc_adam_bytes(size_t count)
{
    return opc_alloc_need(1, sizeof(struct opc_adam)) + 2 * opc_alloc_need(count, sizeof(float));
}

void opc_adam_begin(struct opc_adam *adam)
{
    const struct opc_adam_config *config = &adam->config;
    adam->steps++;
    /* The bias corrections of step t, in double: 1 - beta2^t is tiny at first. */
    const double correction1 = 1.0 - pow(config->beta1, (double)adam->steps);
    const double correction2 = sqrt(1.0 - pow(config->beta2, (double)adam->steps));
    adam->now = (struct opc_adam_rates){
        .beta1 = (float)config->beta1,
        .beta2 = (float)config->beta2,
        .step = (float)(config->learning_rate * correction2 / correction1),
        .eps = (float)(config->torch ? config->eps * correction2 : config->eps),
    };
}

void opc_adam_range(struct opc_adam *adam, size_t first, size_t count, double decay,
                    const float *grad, float *param)
{
    struct opc_adam_rates rates = adam->now;
    rates.decay = (float)decay;
    opc_kernels()->adam(count, &rates, grad, adam->m + first, adam->v + first, param);
}

void opc_adam_step(struct opc_adam *adam, double decay, const float *grad, float *param)
{
    opc_adam_begin(adam);
    opc_adam_range(adam, 0, adam->count, decay, grad, param);
}
