/* SPDX-License-Identifier: MIT */
/* study/example/toy.h - the paper's two examples that need no learning, in double precision.
 *
 * The 1-D example (section 4.1 and appendix): s' = A s + B a with a = theta s, rewarded by
 * r = exp(-(s / sigma)^2), worth J(theta) = (1/T) sum_{t<T} r(s_t), best at theta = -A/B. The model
 * has A~ = A + dA and B~ = B + dB instead. The double integrator (Figure 1b) has two states and
 * noise. The same transitions at work, in float and on recorded episodes, are src/opc/transition.c;
 * tests/test_toy.c walks both. */
#ifndef OPC_STUDY_TOY_H
#define OPC_STUDY_TOY_H

#include "opc/rng.h"

#include <stdbool.h>

/* What predicts where a step leads. */
enum opc_toy_by {
    OPC_BY_TRUTH,
    OPC_BY_MODEL, /* eq. 2 */
    OPC_BY_OPC,   /* eq. 5: the model, corrected by a recording */
};

/* ---- the 1-D example ---- */

/* The 1-D example: the truth and the error of the model. */
struct opc_toy {
    double A, B, dA, dB; /* the truth, and the model's error: A~ = A + dA */
    double s0, sigma;
    int T;
};

/* A = B = 1, s_0 = 1, sigma = 0.05, T = 60. */
struct opc_toy opc_toy_paper(double dA, double dB);

/* s_0 .. s_{T-1} under theta. theta_n is the policy of OPC's recording; truth and model ignore
 * it. */
void opc_toy_walk(const struct opc_toy *, enum opc_toy_by, double theta, double theta_n, double *s);

struct opc_toy_value {
    double J, slope; /* dJ/dtheta; the recording does not depend on theta */
};
struct opc_toy_value opc_toy_value(const struct opc_toy *, enum opc_toy_by, double theta,
                                   double theta_n);
/* The slope of OPC at theta = theta_n in closed form. */
double opc_toy_slope_on_policy(const struct opc_toy *, double theta);
/* argmax of J over theta_i = min + i (max - min) / steps, i = 0 .. steps. */
double opc_toy_best(const struct opc_toy *, enum opc_toy_by, double theta_n, double min, double max,
                    int steps);
/* |A + B theta| <= 1 and |A~ + B~ theta| <= 1: in an unstable loop a gradient means nothing. */
bool opc_toy_stable(const struct opc_toy *, double theta);

/* The paper's signed gradient distance: the angle between the tangents over pi, negative if they
 * point to different sides. Same side: [0, 0.5), different sides: (-1, 0). */
double opc_gradient_distance(double g1, double g2);

/* Which number of the model is wrong. */
enum opc_toy_error { OPC_ERROR_A, OPC_ERROR_B };

/* d[rows][columns]: distance of the true slope from that of the model or of OPC, on-policy
 * (theta_n = theta), at theta[columns] and model error[rows]. NaN where a loop is unstable. */
void opc_toy_gradient_field(enum opc_toy_error, enum opc_toy_by, int rows, const double *error,
                            int columns, const double *theta, double *d);
/* The same for OPC off-policy: at theta = theta_n[columns] + shift[rows]. */
void opc_toy_gradient_field_off(const struct opc_toy *, int rows, const double *shift, int columns,
                                const double *theta_n, double *d);

/* Statistics of a field of signed distances; NaN is masked and left out. */
struct opc_gradient_field_sum {
    int cells;        /* number that is not masked */
    double wrong;     /* share with d < 0, per cent */
    double mean, max; /* of |d| */
};
struct opc_gradient_field_sum opc_gradient_field_sum(int n, const double *d);

/* ---- the double integrator ---- */

struct opc_integrator {
    double A[2][2], B[2], dA[2][2], dB[2]; /* the truth, and the model's error */
    double s0[2], K[2];                    /* a = K s made the recording */
    double noise[2];                       /* standard deviations */
};

/* Figure 1b as we set it up; the paper gives no parameters. */
struct opc_integrator opc_integrator_figure(void);

/* f(s, a), by the truth without noise or by the model; OPC has no f of its own. */
void opc_integrator_f(const struct opc_integrator *, enum opc_toy_by, const double s[2], double a,
                      double next[2]);
/* s[T + 1][2] under a = K s. ref[T + 1][2] is a recording of in->K, for OPC. Truth and model
 * draw their noise from rng; NULL: no noise, which gives the mean. */
void opc_integrator_walk(const struct opc_integrator *, enum opc_toy_by, const double K[2], int T,
                         const double (*ref)[2], struct opc_rng *rng, double (*s)[2]);

#endif
