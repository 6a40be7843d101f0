/* SPDX-License-Identifier: MIT */
/* The paper's bounds, and exact values to compare them with. theory_table.c calls it;
 * docs/errata.md has the derivations.
 *
 * Invariant: OPC_PUBLISHED is the formula as printed, also where it is wrong; only OPC_SAFE may
 * be corrected. */
#include "study/example/theory.h"

#include <math.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

/* eta_{n+1} - eta_n = (model_{n+1} - model_n) + (eta_{n+1} - model_{n+1}) - (eta_n - model_n),
 * then the triangle inequality for the last two. */
double opc_theory_improvement(const double eta[2], const double model[2])
{
    return model[1] - model[0] - fabs(eta[1] - model[1]) - fabs(eta[0] - model[0]);
}

double opc_theory_drift(double gamma, int H)
{
    double sum = 0;
    for (int t = 1; t <= H; t++)
        sum += t * pow(gamma, t);
    return sum;
}

double opc_theory_drift_bound(double gamma, int H)
{
    /* Three bounds: gamma <= 1, t <= H, and H to infinity. */
    const double rest = 1 - gamma;
    return fmin(fmin(0.5 * H * (H + 1.0), H / rest), gamma / (rest * rest));
}

/* ---- Lemma 1 --------------------------------------------------------------------------------- */
/* The reward of Lemma 1's example under the recorded policy, r = -(x^2 + 0.1 v^2 + 0.01 a^2). */
static double lemma1_reward(const struct opc_integrator *in, const double s[2])
{
    const double a = in->K[0] * s[0] + in->K[1] * s[1];
    return -(s[0] * s[0] + 0.1 * s[1] * s[1] + 0.01 * a * a);
}

struct opc_lemma1 opc_lemma1(const struct opc_integrator *in, int T, int B, int estimates,
                             double eta, double eps, uint64_t seed)
{
    struct opc_lemma1 out = {0};
    double ref[OPC_LEMMA1_STEPS + 1][2], s[OPC_LEMMA1_STEPS + 1][2], square = 0;
    /* Every estimate has recordings of its own; replay and OPC are computed from the same ones. */
    for (int i = 0; i < estimates; i++) {
        double replay = 0, opc = 0;
        /* Stream (B, i B + b): every recording is drawn once. */
        for (int b = 0; b < B; b++) {
            struct opc_rng rng =
                opc_rng_stream(seed, OPC_USE_STUDY, (uint32_t)B,
                               (uint32_t)i * (uint32_t)B + (uint32_t)b); /* may exceed an int */
            opc_integrator_walk(in, OPC_BY_TRUTH, in->K, T, NULL, &rng, ref);
            opc_integrator_walk(in, OPC_BY_OPC, in->K, T, ref, NULL, s);
            for (int t = 0; t < T; t++) {
                replay += lemma1_reward(in, ref[t]) / B;
                opc += lemma1_reward(in, s[t]) / B;
            }
        }
        /* Lemma 1 says that this is zero; the tail is Chebyshev's. */
        out.apart = fmax(out.apart, fabs(opc - replay));
        out.tail += (fabs(opc - eta) > eps) / (double)estimates;
        out.mean += opc / estimates;
        square += opc * opc / estimates;
    }
    /* Unbiased sample variance. */
    out.variance = (square - out.mean * out.mean) * estimates / fmax(1, estimates - 1);
    return out;
}

/* The reward is quadratic, so E r = -tr Q (P_t + mu_t mu_t'), with P+ = M P M' + W, M = A + B K. */
double opc_lemma1_return(const struct opc_integrator *in, int T)
{
    /* r = -s' Q s, with a = K s inserted. */
    const double Q[2][2] = {
        {1 + 0.01 * in->K[0] * in->K[0], 0.01 * in->K[0] * in->K[1]},
        {0.01 * in->K[0] * in->K[1], 0.1 + 0.01 * in->K[1] * in->K[1]},
    };
    double M[2][2], S[2][2], sum = 0; /* S = P + mu mu' follows the same recursion */
    /* The closed loop and s_0 s_0'. */
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            M[i][j] = in->A[i][j] + in->B[i] * in->K[j];
            S[i][j] = in->s0[i] * in->s0[j];
        }
    /* Add E r_t, then S+ = M S M' + W. */
    for (int t = 0; t < T; t++) {
        double MS[2][2];
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++) {
                sum -= Q[i][j] * S[i][j];
                MS[i][j] = M[i][0] * S[0][j] + M[i][1] * S[1][j];
            }
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++)
                S[i][j] = MS[i][0] * M[j][0] + MS[i][1] * M[j][1] +
                          (i == j ? in->noise[i] * in->noise[i] : 0);
    }
    return sum;
}

/* ---- state marginals and Theorem 1 ----------------------------------------------------------- */
/* The direction (cos phi, sin phi) of state and action is stretched by L_f. */
struct opc_linear_case opc_theory_counter_example(double L_f, double L_pi, double sigma)
{
    const double phi = atan(L_pi);
    return (struct opc_linear_case){
        .F = L_f * cos(phi), .G = L_f * sin(phi), .k = L_pi, .sigma = sigma};
}

/* Loops of truth and model are both stable. */
struct opc_linear_case opc_theory_benign_example(void)
{
    return (struct opc_linear_case){
        .f = 0.9, .g = 0.5, .F = 0.8, .G = 0.6, .k = -0.5, .sigma = 0.2, .s0 = 1};
}

double opc_theory_lipschitz(const struct opc_linear_case *linear)
{
    return hypot(linear->F, linear->G);
}

/* d = s - s_ref has the rollout's action noise and the recording's:
 *
 *     Var s_ref+ = h^2 Var s_ref + (g sigma)^2             h = f + g k
 *     Var d+     = H^2 Var d + 2 (G sigma)^2               H = F + G k
 *     Cov+       = h H Cov - g G sigma^2                   Var s = Var s_ref + Var d + 2 Cov
 *
 * and E d = 0: OPC has the true means. */
struct opc_gauss opc_theory_marginal(const struct opc_linear_case *linear, enum opc_toy_by by,
                                     int t)
{
    if (by == OPC_BY_OPC)
        return opc_theory_branched(linear, 0, t);
    /* Truth and model alone are the same recursion with their own coefficients. */
    const bool truth = by == OPC_BY_TRUTH;
    const double from_action = truth ? linear->g : linear->G,
                 loop = (truth ? linear->f : linear->F) + from_action * linear->k,
                 square = linear->sigma * linear->sigma;
    double variance = 0, mean = linear->s0;
    for (int i = 0; i < t; i++) {
        variance = loop * loop * variance + from_action * from_action * square;
        mean *= loop;
    }
    return (struct opc_gauss){mean, sqrt(variance)};
}

/* Before the branch there is only the recording; d starts in it with 0, and with it Var d and
 * Cov. */
struct opc_gauss opc_theory_branched(const struct opc_linear_case *linear, int t, int steps)
{
    const double h = linear->f + linear->g * linear->k, H = linear->F + linear->G * linear->k,
                 square = linear->sigma * linear->sigma;
    double v_ref = 0, v_d = 0, cov = 0, mean = linear->s0;
    for (int i = 0; i < t + steps; i++) {
        v_ref = h * h * v_ref + linear->g * linear->g * square;
        mean *= h;
        if (i < t)
            continue;
        v_d = H * H * v_d + 2 * linear->G * linear->G * square;
        cov = h * H * cov - linear->g * linear->G * square;
    }
    /* Rounding may make a variance of zero slightly negative. */
    return (struct opc_gauss){mean, sqrt(fmax(0, v_ref + v_d + 2 * cov))};
}

double opc_gauss_w2(struct opc_gauss p, struct opc_gauss q)
{
    return (p.mean - q.mean) * (p.mean - q.mean) + (p.sd - q.sd) * (p.sd - q.sd);
}

/* E |s| of a normal distribution. */
static double mean_absolute(struct opc_gauss p)
{
    if (p.sd == 0)
        return fabs(p.mean);
    /* Folded normal distribution. */
    const double z = p.mean / p.sd;
    return p.sd * sqrt(2 / PI) * exp(-z * z / 2) + p.mean * erf(z / sqrt(2));
}

double opc_theory_return_gap(const struct opc_linear_case *linear, double gamma, int T)
{
    return opc_theory_branched_gap(linear, gamma, 0, T);
}

double opc_theory_branched_gap(const struct opc_linear_case *linear, double gamma, int t, int H)
{
    double gap = 0;
    for (int h = 0; h <= H; h++)
        gap += pow(gamma, h) * (mean_absolute(opc_theory_branched(linear, t, h)) -
                                mean_absolute(opc_theory_marginal(linear, OPC_BY_TRUTH, t + h)));
    return fabs(gap);
}

/* Factor by which a squared distance grows in a step. */
static double growth_factor(const struct opc_constants *constants, enum opc_form form)
{
    /* As printed: L_f^2 + L_pi^2. A state error also changes the action, hence L_f^2 (1 +
     * L_pi^2). */
    const double f = constants->L_f * constants->L_f, pi = constants->L_pi * constants->L_pi;
    return form == OPC_PUBLISHED ? f + pi : f * (1 + pi);
}

double opc_theory_state_bound(const struct opc_constants *constants, enum opc_form form, int t)
{
    /* Errors of all earlier steps, each grown since. */
    double sum = 0;
    for (int k = 0; k < t; k++)
        sum += pow(growth_factor(constants, form), k);
    return 2 * sqrt(constants->m) * constants->sigma * constants->sigma * constants->L_f *
           constants->L_f * sum;
}

double opc_theory_return_bound(const struct opc_constants *constants, enum opc_form form,
                               double gamma, int T)
{
    /* With C_2 < 1 the bound would fall with T, although the errors add up over time. */
    const double C1 =
        sqrt(2 * (1 + constants->L_pi * constants->L_pi)) * constants->L_f * constants->L_r;
    const double root = sqrt(growth_factor(constants, form)),
                 C2 = form == OPC_SAFE ? fmax(1, root) : root;
    return constants->sigma / (1 - gamma) * sqrt(sqrt(constants->m)) * C1 * pow(C2, T) * sqrt(T);
}

/* OPC gives s_1 = g a_ref + G (a - a_ref), with a and a_ref independent. */
struct opc_one_step opc_theory_one_step(double g, double G, double mean, double sd)
{
    /* e is the model's error; truth and both predictions are normal. */
    const double e = g - G, square = sd * sd;
    const struct opc_gauss truth = {g * mean, fabs(g) * sd};
    return (struct opc_one_step){
        .opc = opc_gauss_w2(truth, (struct opc_gauss){g * mean, hypot(e, G) * sd}),
        .model = opc_gauss_w2(truth, (struct opc_gauss){G * mean, fabs(G) * sd}),
        .by_policy = 2 * G * G * square,
        .by_error = 2 * e * e * (mean * mean + square),
        .by_error_safe = 2 * e * e * square,
    };
}
