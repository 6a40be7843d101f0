/* SPDX-License-Identifier: MIT */
/* Input normalisation, for the ensemble (model/) and for the extremes of imagined states
 * (run/imagine.c). opc_scaler_apply and the trainer's table (model/trainer.c) compute the same
 * expression, to the bit: predictions must not depend on which of them scaled the inputs. */
#include "num/scaler.h"

#include "opc/mem.h"

#include <math.h>

int opc_scaler_create(int dim, struct opc_scaler **out, struct opc_err *err)
{
    struct opc_scaler *scaler = opc_alloc(1, sizeof *scaler);
    if (!scaler)
        goto full;
    scaler->dim = dim;
    scaler->mean = opc_alloc((size_t)dim, sizeof *scaler->mean);
    scaler->inverse = opc_alloc((size_t)dim, sizeof *scaler->inverse);
    if (!scaler->mean || !scaler->inverse)
        goto full;
    /* The identity until it is fitted: mean 0, 1 / std = 1. */
    for (int d = 0; d < dim; d++)
        scaler->inverse[d] = 1.0f;
    *out = scaler;
    return OPC_OK;
full:
    opc_scaler_destroy(scaler);
    return opc_fail(err, OPC_ENOMEM, "not enough memory for a scaler of %d features", dim);
}

void opc_scaler_destroy(struct opc_scaler *scaler)
{
    if (!scaler)
        return;
    opc_free(scaler->mean);
    opc_free(scaler->inverse);
    opc_free(scaler);
}

void opc_scaler_fit(struct opc_scaler *scaler, int n, const float *table, size_t stride,
                    const int *index, bool sample_std)
{
    /* Two passes for each feature, mean first, so that a large mean does not drown the variance. */
    for (int d = 0; d < scaler->dim; d++) {
        double sum = 0.0, squares = 0.0;
        for (int i = 0; i < n; i++)
            sum += (double)table[(size_t)(index ? index[i] : i) * stride + (size_t)d];
        const double mean = n ? sum / n : 0.0;
        for (int i = 0; i < n; i++) {
            double e = (double)table[(size_t)(index ? index[i] : i) * stride + (size_t)d] - mean;
            squares += e * e;
        }
        const int over = sample_std ? n - 1 : n;
        const double std = over > 0 ? sqrt(squares / over) : 0.0;
        scaler->mean[d] = (float)mean;
        scaler->inverse[d] = std < 1e-12 ? 1.0f : (float)(1.0 / std);
    }
}

void opc_scaler_apply(const struct opc_scaler *scaler, int panels, float *x, size_t xs)
{
    for (int p = 0; p < panels; p++, x += xs)
        for (int d = 0; d < scaler->dim; d++) {
            float *row = x + d * OPC_PANEL;
            const float mean = scaler->mean[d], inverse = scaler->inverse[d];
            for (int i = 0; i < OPC_PANEL; i++)
                row[i] = (row[i] - mean) * inverse;
        }
}
