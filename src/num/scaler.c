/* SPDX-License-Identifier: MIT */
#include "num/scaler.h"

#include "opc/mem.h"

#include <math.h>

int opc_scaler_create(int dim, struct opc_scaler **out, struct opc_err *err)
{
    struct opc_scaler *s = opc_alloc(1, sizeof *s);
    if (!s)
        goto full;
    s->dim = dim;
    s->mean = opc_alloc((size_t)dim, sizeof *s->mean);
    s->inverse = opc_alloc((size_t)dim, sizeof *s->inverse);
    if (!s->mean || !s->inverse)
        goto full;
    for (int d = 0; d < dim; d++)
        s->inverse[d] = 1.0f;
    *out = s;
    return OPC_OK;
full:
    opc_scaler_destroy(s);
    return opc_fail(err, OPC_ENOMEM, "not enough memory for a scaler of %d features", dim);
}

void opc_scaler_destroy(struct opc_scaler *s)
{
    if (!s)
        return;
    opc_free(s->mean);
    opc_free(s->inverse);
    opc_free(s);
}

void opc_scaler_fit(struct opc_scaler *s, int n, const float *table, size_t stride,
                    const int *index, bool sample_std)
{
    for (int d = 0; d < s->dim; d++) {
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
        s->mean[d] = (float)mean;
        s->inverse[d] = std < 1e-12 ? 1.0f : (float)(1.0 / std);
    }
}

void opc_scaler_apply(const struct opc_scaler *s, int panels, float *x, size_t xs)
{
    for (int p = 0; p < panels; p++, x += xs)
        for (int d = 0; d < s->dim; d++) {
            float *row = x + d * OPC_PANEL;
            const float mean = s->mean[d], inverse = s->inverse[d];
            for (int i = 0; i < OPC_PANEL; i++)
                row[i] = (row[i] - mean) * inverse;
        }
}
