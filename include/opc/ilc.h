/* SPDX-License-Identifier: MIT */
/* opc/ilc.h - norm-optimal iterative learning control: the same task is tried again and again, and
 * after each trial the whole input trajectory is improved.
 *
 * A linear model s_{t+1} = A_t s_t + B_t a_t says what a change of the inputs would change; what a
 * trial did is taken from the trial itself. That is eq. 5 with the last trial as the recording and
 * one planning step for a policy (docs/ilc.md). After a trial with inputs u and states s,
 *
 *     u' = argmin 1/2 |s_ref - (s + F (u' - u))|_M^2 + 1/2 |u' - u|_W^2,
 *
 * where F is the model lifted over the trial. Everything is double and in the plant's units. */
#ifndef OPC_ILC_H
#define OPC_ILC_H

#include "opc/err.h"
#include "opc/sized.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One trial on the plant, always from the same start: inputs u[T][m] to states s[T+1][n], the start
 * first. A code other than OPC_OK ends the learning and is returned by opc_ilc_learn. */
typedef int opc_ilc_trial_fn(void *ctx, const double *u, double *s, struct opc_err *err);

struct opc_ilc_plan {
    size_t size;                   /* of this struct (opc/sized.h) */
    int states, actions, steps;    /* n, m, T */
    int iterations;                /* updates; there is one more trial */
    const double *A, *B;           /* [n][n], [n][m]: the model, the same in every step, or ... */
    const double *A_each, *B_each; /* ... [T][n][n], [T][n][m]: one for each step */
    const double *s_ref;           /* [T+1][n] what the states should be */
    const double *weight_state;    /* [n] M, of each state's error; NULL: 1 each */
    const double *weight_action;   /* [m] W, of each input's change; NULL: 1e-3 each */
    const double *low, *high;      /* [m] bounds of the inputs; NULL: none */
    opc_ilc_trial_fn *trial;
    void *ctx;
};

/* Learns the inputs of a trial. u[T][m] holds the first ones and gets those of the last trial;
 * s[T+1][n] gets its states and rms[iterations + 1] the root mean square error of each trial; both
 * may be NULL. OPC_EUSER: the plan is not whole, or the weights leave the inputs undecided;
 * OPC_EDIVERGED: a trial's states are not finite; OPC_ENOMEM; and whatever a trial returned. */
OPC_API int opc_ilc_learn(const struct opc_ilc_plan *, double *u, double *s, double *rms,
                          struct opc_err *err);

#ifdef __cplusplus
}
#endif
#endif
