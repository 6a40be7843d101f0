/* SPDX-License-Identifier: MIT */
/* study/ilc/ilc_opc.h - the update of ilc.h once more, by the road of the paper: no lifted system,
 * but imagined rollouts of eq. 5 (opc/transition.h, in float) beside the last trial. */
#ifndef OPC_STUDY_ILC_OPC_H
#define OPC_STUDY_ILC_OPC_H

#include "opc/err.h"

/* The trial s[T+1][n], u[T][m] is the recording and f(s, a) = A s + B a (constant) the model. One
 * rollout takes the recorded actions and one each changes a single one of them by 1; eq. 5 with a
 * linear model is linear in the actions, so these rollouts tell the imagined return, weighted by
 * the diagonals M and W as in ilc.h, for every choice of actions. next[T][m] is the best one. */
int opc_ilc_by_opc(int n, int m, int T, const double *A, const double *B, const double *s,
                   const double *u, const double *s_ref, const double *M, const double *W,
                   double *next, struct opc_err *err);

#endif
