/* SPDX-License-Identifier: MIT */
/* model/linear.h - the model of the paper's examples (section 4.1 and Figure 1b):
 *
 *     f(s, a) = A s + B a,    reward exp(-|s|^2 / 0.05^2) of the state the step is taken in.
 *
 * A and B are given and not learned, so fitting changes nothing. There is no noise, so a sample is
 * the mean. The reward is that of the 1-D example (env/builtin/linear1d.c): in the example only the
 * dynamics are wrong, and a reward function that is known stays the same under eq. 5. */
#ifndef OPC_MODEL_LINEAR_H
#define OPC_MODEL_LINEAR_H

#include "opc/predictor.h"

/* One state, one action. */
int opc_linear_create(double A, double B, struct opc_predictor **out, struct opc_err *err);
/* A[obs][obs] and B[obs][act], copied. */
int opc_linear_create_matrix(int obs, int act, const double *A, const double *B,
                             struct opc_predictor **out, struct opc_err *err);

#endif
