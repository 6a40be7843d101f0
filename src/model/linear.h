/* SPDX-License-Identifier: MIT */
/* model/linear.h - the model of the paper's examples (section 4.1 and Figure 1b):
 *
 *     f(s, a) = A s + B a,    reward exp(-|s|^2 / 0.05^2) of the state the step is taken in.
 *
 * A and B are given and not learned, so fitting changes nothing; there is no noise, so drawing
 * from it is its mean. The reward is the 1-D example's own (env/builtin/linear1d.c): in the example
 * only the dynamics are wrong, and a reward that is known stays what it is under eq. 5. */
#ifndef OPC_MODEL_LINEAR_H
#define OPC_MODEL_LINEAR_H

#include "opc/predictor.h"

/* One state, one action. */
int opc_linear_create(double A, double B, struct opc_predictor **out, struct opc_err *err);
/* A[obs][obs] and B[obs][act], copied. */
int opc_linear_create_matrix(int obs, int act, const double *A, const double *B,
                             struct opc_predictor **out, struct opc_err *err);

#endif
