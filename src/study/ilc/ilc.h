/* SPDX-License-Identifier: MIT */
/* study/ilc/ilc.h - norm-optimal iterative learning control: the same task is tried again and
 * again, and after each trial the whole input trajectory is improved. ilc_run.c runs it.
 *
 * States s_0 .. s_T of one trial are stacked into s [(T+1) n], actions a_0 .. a_{T-1} into u [T m].
 * A model s_{t+1} = A_t s_t + B_t a_t, lifted over the trial, says s = F u + d, where d is all that
 * does not depend on u: the start, and whatever else repeats. After trial i, with e = s_ref - s,
 *
 *     u' = argmin 1/2 |s_ref - (F u' + d)|_M^2 + 1/2 |u' - u|_W^2,    d = s - F u as measured
 *        = u + (F^T M F + W)^-1 F^T M e.
 *
 * F u' + d = s + F (u' - u) is eq. 5 with a linear model and the last trial as the recording, so
 * this is OPC with one planning step for a policy (docs/ilc.md). Everything is double. */
#ifndef OPC_STUDY_ILC_H
#define OPC_STUDY_ILC_H

#include "num/solve/qp.h"
#include "opc/predictor.h"

#include <stdbool.h>

/* ---- the lifted system ----------------------------------------------------------------------- */

/* F[(T+1) n][T m] from A[T][n][n] and B[T][n][m]: block (i, j) is A_{i-1} ... A_{j+1} B_j for i
 * > j (B_j itself for i = j + 1), else 0. With B_t = I it maps process noise to states. */
void opc_lift(int n, int m, int T, const double *A, const double *B, double *F);
/* d[(T+1) n]: the free response A_{t-1} ... A_0 s_0. */
void opc_lift_start(int n, int T, const double *A, const double *s0, double *d);

/* A_t and B_t of a model along a trajectory s[T+1][n], u[T][m]: by central differences of its
 * next state, */
typedef void opc_next_fn(void *ctx, const double *s, const double *a, double *next);
int opc_linearise(int n, int m, int T, opc_next_fn *f, void *ctx, const double *s, const double *u,
                  double *A, double *B, struct opc_err *err);
/* or from a learned model's own derivatives, the mean over its elites. The model knows actions in
 * [-1, 1], which stand for [low, high]; n and m are the model's. */
int opc_linearise_learned(const struct opc_predictor *, int T, const double *low,
                          const double *high, const double *s, const double *u, double *A,
                          double *B, struct opc_pool *, struct opc_err *err);

/* ---- the update ------------------------------------------------------------------------------ */

struct opc_ilc; /* holds the weights, F, and F^T M F + W with its Cholesky factor */

/* M[(T+1) n] >= 0 and W[T m] >= 0 are diagonals. */
int opc_ilc_create(int n, int m, int T, const double *M, const double *W, struct opc_ilc **out,
                   struct opc_err *err);
void opc_ilc_destroy(struct opc_ilc *); /* NULL is fine */
/* Must be called before anything else, and again whenever the model has changed. OPC_EUSER: F^T
 * M F + W is singular. */
int opc_ilc_model(struct opc_ilc *, const double *A, const double *B, struct opc_err *err);
const double *opc_ilc_lifted(const struct opc_ilc *); /* F */

/* s = F u + d, and d = s - F u. */
void opc_ilc_predict(const struct opc_ilc *, const double *u, const double *d, double *s);
void opc_ilc_disturbance(const struct opc_ilc *, const double *s, const double *u, double *d);
/* u' from u and the error e = s_ref - s of its trial; u' may be u. */
void opc_ilc_update(struct opc_ilc *, const double *e, const double *u, double *next);

/* Limits on u' and its predicted states; NULL and 0: no limit. */
struct opc_ilc_limits {
    const double *u_low, *u_high; /* [T m]; -INFINITY and INFINITY where there is no bound */
    const double *s_low, *s_high; /* [(T+1) n] */
    int faces;                    /* number of faces of a polytope */
    const double *G, *h;          /* [faces][(T+1) n], [faces]: G s <= h */
    double trust; /* |a'_t - a_t|^2 at most this, as a box of half width sqrt(trust / m); 0: any */
};
/* How an update within limits went. */
struct opc_ilc_kept {
    struct opc_qp_report qp;
    struct opc_qp_kkt kkt;
};
/* The same minimum within limits. OPC_EUSER: they contradict each other; the message says where. */
int opc_ilc_update_within(struct opc_ilc *, const double *s_ref, const double *d, const double *u,
                          const struct opc_ilc_limits *, double *next, struct opc_ilc_kept *,
                          struct opc_err *err);

/* ---- noise: a Kalman filter over trials -------------------------------------------------------
 * d moves by a random walk of covariance Omega from trial to trial and is seen as y = s - F u with
 * noise of covariance Xi. Its estimate then takes the place of d. (Schoellig and D'Andrea) */

struct opc_ilc_filter {
    int size;      /* of d */
    bool known;    /* false: d is unknown, P is infinite, and the first y is taken as it is */
    double *d, *P; /* [size] estimate, [size][size] its covariance */
    double *K, *S; /* [size][size] the last gain; scratch */
};
int opc_ilc_filter_create(int size, struct opc_ilc_filter **out, struct opc_err *err);
void opc_ilc_filter_destroy(struct opc_ilc_filter *); /* NULL is fine */
/* P- = P + Omega, K = P- (P- + Xi)^-1, d += K (y - d), P = (I - K) P-. */
int opc_ilc_filter_see(struct opc_ilc_filter *, const double *Omega, const double *Xi,
                       const double *y, struct opc_err *err);

#endif
