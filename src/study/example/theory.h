/* SPDX-License-Identifier: MIT */
/* study/example/theory.h - the paper's bounds as numbers: as published, and in a form that
 * holds.
 *
 * Where the published form is wrong (docs/errata.md), functions take an enum opc_form. The
 * values that bounds are compared with are exact for linear dynamics and Gaussian policies. */
#ifndef OPC_STUDY_THEORY_H
#define OPC_STUDY_THEORY_H

#include "study/example/toy.h"

/* As printed in the paper, or in the form that docs/errata.md proves. */
enum opc_form { OPC_PUBLISHED, OPC_SAFE };

/* ---- the improvement bound (section 2) ---- */

/* Lower bound of eta_{n+1} - eta_n, given the returns eta of two policies and a model's
 * predictions of them. */
double opc_theory_improvement(const double eta[2], const double model[2]);
/* sum_{t=1}^{H} t gamma^t: how one-step model errors add up; and an upper bound of it. */
double opc_theory_drift(double gamma, int H);
double opc_theory_drift_bound(double gamma, int H); /* gamma < 1 */

/* ---- Lemma 1: with a deterministic policy OPC estimates what replay estimates ---- */

enum { OPC_LEMMA1_STEPS = 1000 }; /* longest recording; it is kept on the stack */

/* Statistics over estimates of the return. */
struct opc_lemma1 {
    double mean, variance; /* of the estimates of the return */
    double apart;          /* largest |OPC - replay| */
    double tail;           /* share of estimates that are further than eps from eta */
};
/* `estimates` estimates, each from B recordings of its own of in->K over T <= OPC_LEMMA1_STEPS
 * steps, with the reward -(x^2 + 0.1 v^2 + 0.01 a^2). */
struct opc_lemma1 opc_lemma1(const struct opc_integrator *in, int T, int B, int estimates,
                             double eta, double eps, uint64_t seed);
/* The expected return in closed form. */
double opc_lemma1_return(const struct opc_integrator *in, int T);

/* ---- the lemma on state marginals and Theorem 1 ---- */

/* s' = f s + g a by the truth, F s + G a by the model, a ~ N(k s, sigma^2), always from s0. */
struct opc_linear_case {
    double f, g, F, G, k, sigma, s0;
};

/* Truth 0, model L (s cos phi + a sin phi) with tan phi = L_pi, policy N(L_pi s, sigma^2), from 0:
 * model and policy are as expanding as their constants allow. */
struct opc_linear_case opc_theory_counter_example(double L_f, double L_pi, double sigma);
/* Truth 0.9 s + 0.5 a, model 0.8 s + 0.6 a, policy N(-0.5 s, 0.2^2), from 1. */
struct opc_linear_case opc_theory_benign_example(void);
/* Lipschitz constant of the model. OPC uses only its differences, so the truth's does not
 * matter. */
double opc_theory_lipschitz(const struct opc_linear_case *);

/* A normal distribution on the line. */
struct opc_gauss {
    double mean, sd;
};
/* The exact distribution of s_t. */
struct opc_gauss opc_theory_marginal(const struct opc_linear_case *, enum opc_toy_by, int t);
double opc_gauss_w2(struct opc_gauss, struct opc_gauss); /* W_2^2 */
/* |eta - eta_OPC| for r = |s|, summed over t = 0 .. T. */
double opc_theory_return_gap(const struct opc_linear_case *, double gamma, int T);

/* The same for rollouts that branch from recorded states, as in Algorithm 2: OPC starts in the
 * recorded s_t and goes h steps. t = 0 is the distribution above. */
struct opc_gauss opc_theory_branched(const struct opc_linear_case *, int t, int h);
/* |eta - eta_OPC| over the H steps after a branch at t, discounted from there. */
double opc_theory_branched_gap(const struct opc_linear_case *, double gamma, int t, int H);

/* Constants of the lemma on state marginals and of Theorem 1. */
struct opc_constants {
    double L_f, L_pi, L_r;
    double sigma; /* the policy's largest standard deviation */
    int m;        /* actions */
};
/* W_2^2(p_OPC(s_t), p(s_t)) <= 2 sqrt(m) sigma^2 L_f^2 sum_{k<t} C^k with C = L_f^2 + L_pi^2 as
 * published; safe: L_f^2 (1 + L_pi^2). */
double opc_theory_state_bound(const struct opc_constants *, enum opc_form, int t);
/* |eta - eta_OPC| <= sigma / (1 - gamma) m^(1/4) C_1 C_2^T sqrt(T) with C_2 = sqrt(L_f^2 + L_pi^2)
 * as published; safe: max(1, L_f sqrt(1 + L_pi^2)). */
double opc_theory_return_bound(const struct opc_constants *, enum opc_form, double gamma, int T);

/* ---- the one-step lemma ---- */

struct opc_one_step {
    double opc, model;    /* W_2^2 to the truth */
    double by_policy;     /* 2 L_f^2 tr Var pi */
    double by_error;      /* 2 E |e(a)|^2 */
    double by_error_safe; /* 2 tr Var e(a): the value of the coupling, without the dropped term */
};
/* Truth g a, model G a, a ~ N(mean, sd^2). */
struct opc_one_step opc_theory_one_step(double g, double G, double mean, double sd);

#endif
