/* SPDX-License-Identifier: MIT */
/* The paper's examples in closed form: the 1-D example with its return and gradient, and the
 * double integrator of Figure 1b. All analyses of this folder and theory.c call it.
 *
 * Invariant: the correction of OPC is written as in src/opc/transition.c, bracket first, so that
 * on-policy it is exactly zero. */
#include "study/example/toy.h"

#include "num/normal.h"

#include <math.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

struct opc_toy opc_toy_paper(double dA, double dB)
{
    return (struct opc_toy){.A = 1, .B = 1, .dA = dA, .dB = dB, .s0 = 1, .sigma = 0.05, .T = 60};
}

/* One step with policy theta: s+ and z+ = ds+/dtheta. s_ref moves along its recording, which
 * does not depend on theta:
 *
 *     truth   s+ = A s + B theta s                        z+ = (A + B theta) z + B s
 *     model   s+ = A~ s + B~ theta s                      z+ = (A~ + B~ theta) z + B~ s
 *     OPC     s+ = s_ref+ + [ f~(s, theta s) - f~(s_ref, theta_n s_ref) ],  z+ as the model
 */
struct point {
    double s, z, s_ref;
};

/* z is the derivative of s with respect to theta, starting at 0. */
static struct point toy_step(const struct opc_toy *toy, enum opc_toy_by by, double theta,
                             double theta_n, struct point p)
{
    const double A = by == OPC_BY_TRUTH ? toy->A : toy->A + toy->dA;
    const double B = by == OPC_BY_TRUTH ? toy->B : toy->B + toy->dB;
    /* s, z by truth or model; s_ref always by the truth with the recorded policy. */
    struct point next = {
        .s = A * p.s + B * (theta * p.s),
        .z = (A + B * theta) * p.z + B * p.s,
        .s_ref = toy->A * p.s_ref + toy->B * (theta_n * p.s_ref),
    };
    /* eq. 5: the recorded next state plus the difference of the model's means. */
    if (by == OPC_BY_OPC)
        next.s = next.s_ref + (next.s - (A * p.s_ref + B * (theta_n * p.s_ref)));
    return next;
}

/* s_t before each step, T of them. */
void opc_toy_walk(const struct opc_toy *toy, enum opc_toy_by by, double theta, double theta_n,
                  double *s)
{
    struct point p = {toy->s0, 0, toy->s0};
    for (int t = 0; t < toy->T; t++) {
        s[t] = p.s;
        p = toy_step(toy, by, theta, theta_n, p);
    }
}

/* Accumulates J and dJ/dtheta = (1/T) sum r_t (-2 s_t / sigma^2) z_t. */
struct opc_toy_value opc_toy_value(const struct opc_toy *toy, enum opc_toy_by by, double theta,
                                   double theta_n)
{
    const double square = toy->sigma * toy->sigma;
    struct opc_toy_value v = {0, 0};
    struct point p = {toy->s0, 0, toy->s0};
    /* The reward's derivative is r (-2 s / sigma^2); the chain rule adds z. */
    for (int t = 0; t < toy->T; t++) {
        const double r = exp(-p.s * p.s / square);
        v.J += r / toy->T;
        v.slope += r * (-2 * p.s / square) * p.z / toy->T;
        p = toy_step(toy, by, theta, theta_n, p);
    }
    return v;
}

/* s_t = g^t s_0 and z_t = B~ s_0 (g^t - g~^t) / (g - g~), with the limit B~ t g^(t-1) s_0; h is
 * g~. */
double opc_toy_slope_on_policy(const struct opc_toy *toy, double theta)
{
    const double B = toy->B + toy->dB;
    const double g = toy->A + toy->B * theta, h = toy->A + toy->dA + B * theta;
    const double square = toy->sigma * toy->sigma;
    double slope = 0;
    for (int t = 0; t < toy->T; t++) {
        const double s = pow(g, t) * toy->s0;
        const double ratio = g == h ? t * pow(g, t - 1) : (pow(g, t) - pow(h, t)) / (g - h);
        const double z = t ? B * toy->s0 * ratio : 0;
        slope += exp(-s * s / square) * (-2 * s / square) * z / toy->T;
    }
    return slope;
}

/* Exhaustive search on a grid; of equal values the first one wins. */
double opc_toy_best(const struct opc_toy *toy, enum opc_toy_by by, double theta_n, double min,
                    double max, int steps)
{
    double best = min, J = -1;
    for (int i = 0; i <= steps; i++) {
        const double theta = min + (max - min) * i / steps;
        const double here = opc_toy_value(toy, by, theta, theta_n).J;
        if (here > J) {
            J = here;
            best = theta;
        }
    }
    return best;
}

bool opc_toy_stable(const struct opc_toy *toy, double theta)
{
    return fabs(toy->A + toy->B * theta) <= 1 &&
           fabs(toy->A + toy->dA + (toy->B + toy->dB) * theta) <= 1;
}

/* -1, 0 or 1. */
static int sign(double x)
{
    return (x > 0) - (x < 0);
}

double opc_gradient_distance(double g1, double g2)
{
    /* If one gradient is zero, the sign of the other decides. */
    const int both = sign(g1) * sign(g2), one = sign(g1) + sign(g2);
    return (both ? both : one) * fabs(atan(g1) - atan(g2)) / PI;
}

/* NaN where the loop of environment or model is unstable. */
static double distance_at(const struct opc_toy *toy, enum opc_toy_by by, double theta,
                          double theta_n)
{
    if (!opc_toy_stable(toy, theta))
        return (double)NAN;
    return opc_gradient_distance(opc_toy_value(toy, OPC_BY_TRUTH, theta, theta_n).slope,
                                 opc_toy_value(toy, by, theta, theta_n).slope);
}

void opc_toy_gradient_field(enum opc_toy_error which, enum opc_toy_by by, int rows,
                            const double *error, int columns, const double *theta, double *d)
{
    /* Row i: the example with that error in A or in B. */
    for (int i = 0; i < rows; i++) {
        const bool a = which == OPC_ERROR_A;
        const struct opc_toy toy = opc_toy_paper(a ? error[i] : 0, a ? 0 : error[i]);
        for (int j = 0; j < columns; j++)
            *d++ = distance_at(&toy, by, theta[j], theta[j]);
    }
}

void opc_toy_gradient_field_off(const struct opc_toy *toy, int rows, const double *shift,
                                int columns, const double *theta_n, double *d)
{
    /* Row i: the policy that is evaluated, shifted from the recorded one. */
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            *d++ = distance_at(toy, OPC_BY_OPC, theta_n[j] + shift[i], theta_n[j]);
}

struct opc_gradient_field_sum opc_gradient_field_sum(int n, const double *d)
{
    struct opc_gradient_field_sum sum = {0};
    int wrong = 0;
    /* Masked cells do not count. */
    for (int i = 0; i < n; i++) {
        if (isnan(d[i]))
            continue;
        sum.cells++;
        wrong += d[i] < 0;
        sum.mean += fabs(d[i]);
        sum.max = fmax(sum.max, fabs(d[i]));
    }
    /* Without cells everything stays 0. */
    if (sum.cells) {
        sum.wrong = 100.0 * wrong / sum.cells;
        sum.mean /= sum.cells;
    }
    return sum;
}

/* ---- the double integrator ------------------------------------------------------------------- */
struct opc_integrator opc_integrator_figure(void)
{
    return (struct opc_integrator){
        .A = {{1, 0.1}, {0, 1}},
        .B = {0.005, 0.1},
        .dA = {{0, 0}, {0.05, -0.03}},
        .dB = {0.001, 0.02},
        .s0 = {1, 0},
        .K = {-1, -1.5},
        .noise = {0.005, 0.05},
    };
}

void opc_integrator_f(const struct opc_integrator *in, enum opc_toy_by by, const double s[2],
                      double a, double next[2])
{
    /* The same code for truth and model: the error is switched on or off. */
    const double error = by == OPC_BY_TRUTH ? 0 : 1;
    for (int k = 0; k < 2; k++)
        next[k] = (in->A[k][0] + error * in->dA[k][0]) * s[0] +
                  (in->A[k][1] + error * in->dA[k][1]) * s[1] + (in->B[k] + error * in->dB[k]) * a;
}

/* a = K s. */
static double linear_policy(const double K[2], const double s[2])
{
    return K[0] * s[0] + K[1] * s[1];
}

void opc_integrator_walk(const struct opc_integrator *in, enum opc_toy_by by, const double K[2],
                         int T, const double (*ref)[2], struct opc_rng *rng, double (*s)[2])
{
    memcpy(s[0], in->s0, sizeof s[0]);
    /* eq. 2 (or the truth) first; OPC then replaces it by eq. 5, without noise of its own. */
    for (int t = 0; t < T; t++) {
        opc_integrator_f(in, by, s[t], linear_policy(K, s[t]), s[t + 1]);
        double f_ref[2];
        float w[2] = {0, 0};
        /* OPC has no noise of its own: the recording already contains it. */
        if (by == OPC_BY_OPC)
            opc_integrator_f(in, by, ref[t], linear_policy(in->K, ref[t]), f_ref);
        else if (rng)
            opc_rng_normals(rng, 2, w);
        for (int k = 0; k < 2; k++)
            s[t + 1][k] = by == OPC_BY_OPC ? ref[t + 1][k] + (s[t + 1][k] - f_ref[k])
                                           : s[t + 1][k] + in->noise[k] * (double)w[k];
    }
}
