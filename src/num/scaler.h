/* SPDX-License-Identifier: MIT */
/* num/scaler.h - input normalisation: (x - mean) / std, feature by feature.
 *
 * Statistics are summed in double in row order; std is the population's (or the sample's), and a
 * feature that does not vary (std below 1e-12) is only shifted. */
#ifndef OPC_NUM_SCALER_H
#define OPC_NUM_SCALER_H

#include "num/kernel.h"

struct opc_scaler {
    int dim;
    float *mean, *inverse; /* [dim]; 1 / std */
};

/* The standard deviation of feature d as `inverse` has it, to undo the normalisation. */
static inline double opc_scaler_std(const struct opc_scaler *scaler, int d)
{
    return 1.0 / (double)scaler->inverse[d];
}

int opc_scaler_create(int dim, struct opc_scaler **out, struct opc_err *err); /* identity */
void opc_scaler_destroy(struct opc_scaler *);                                 /* NULL is fine */
/* From rows index[0 .. n-1] (NULL: 0 .. n-1) of table[][stride]. */
void opc_scaler_fit(struct opc_scaler *, int n, const float *table, size_t stride, const int *index,
                    bool sample_std);
/* 1 / std of feature d for measuring distances: one that hardly varies, by a std below
 * OPC_SCALER_STEADY max(1, |mean|), keeps its own unit. A model never predicts a constant exactly,
 * and its error in units of next to nothing would outweigh everything else. */
#define OPC_SCALER_STEADY 1e-6
static inline float opc_scaler_steady(const struct opc_scaler *scaler, int d)
{
    const double size = scaler->mean[d] < 0 ? -(double)scaler->mean[d] : (double)scaler->mean[d];
    const double std = 1 / (double)scaler->inverse[d];
    return std < OPC_SCALER_STEADY * (size > 1 ? size : 1) ? 1.0f : scaler->inverse[d];
}
/* Panels x[panels][xs] in place. */
void opc_scaler_apply(const struct opc_scaler *, int panels, float *x, size_t xs);

#endif
