/* SPDX-License-Identifier: MIT */
#include "num/adam.h"

#include "opc/mem.h"

#include <math.h>

int opc_adam_create(size_t count, struct opc_adam_config config, struct opc_adam **out,
                    struct opc_err *err)
{
    struct opc_adam *a = opc_alloc(1, sizeof *a);
    if (!a)
        goto full;
    a->config = config;
    a->count = count;
    a->m = opc_alloc(count, sizeof *a->m);
    a->v = opc_alloc(count, sizeof *a->v);
    if (!a->m || !a->v)
        goto full;
    *out = a;
    return OPC_OK;
full:
    opc_adam_destroy(a);
    return opc_fail(err, OPC_ENOMEM, "not enough memory for the moments of %zu parameters", count);
}

void opc_adam_destroy(struct opc_adam *a)
{
    if (!a)
        return;
    opc_free(a->m);
    opc_free(a->v);
    opc_free(a);
}

void opc_adam_begin(struct opc_adam *a)
{
    const struct opc_adam_config *c = &a->config;
    a->steps++;
    const double fair1 = 1.0 - pow(c->beta1, (double)a->steps);
    const double fair2 = sqrt(1.0 - pow(c->beta2, (double)a->steps));
    a->now = (struct opc_adam_rates){
        .beta1 = (float)c->beta1,
        .beta2 = (float)c->beta2,
        .step = (float)(c->learning_rate * fair2 / fair1),
        .eps = (float)(c->torch ? c->eps * fair2 : c->eps),
    };
}

void opc_adam_range(struct opc_adam *a, size_t first, size_t count, double decay, const float *grad,
                    float *param)
{
    struct opc_adam_rates rates = a->now;
    rates.decay = (float)decay;
    opc_kernels()->adam(count, &rates, grad, a->m + first, a->v + first, param);
}

void opc_adam_step(struct opc_adam *a, double decay, const float *grad, float *param)
{
    opc_adam_begin(a);
    opc_adam_range(a, 0, a->count, decay, grad, param);
}
