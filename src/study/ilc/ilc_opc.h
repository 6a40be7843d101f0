/* SPDX-License-Identifier: MIT */
/* study/ilc/ilc_opc.h - the update of ilc.h computed the paper's way: no lifted system, but
 * imagined rollouts of eq. 5 (opc/transition.h, in float) along the last trial. */
#ifndef OPC_STUDY_ILC_OPC_H
#define OPC_STUDY_ILC_OPC_H

#include "opc/err.h"

/* The trial s[T+1][n], u[T][m] is the recording and f(s, a) = A s + B a (constant) the model.
 * One rollout takes the recorded actions, and each of the others changes one entry of them by 1.
 * With a linear model eq. 5 is linear in the actions, so these rollouts determine the imagined
 * return, weighted by the diagonals M and W as in ilc.h, for all actions. next[T][m] is the best
 * choice. */
int opc_ilc_by_opc(int n, int m, int T, const double *A, const double *B, const double *s,
                   const double *u, const double *s_ref, const double *M, const double *W,
                   double *next, struct opc_err *err);

#endif
