/* SPDX-License-Identifier: MIT */
/* The paper's bounds in numbers. Where the published form fails, both are asserted: that it fails
 * in its counter-example, and that the safe form holds there. */
#include "study/example/theory.h"

#include "num/normal.h"
#include "test.h"

/* Within half a unit of the last digit `want` is printed with. */
static void assert_near(double got, double want, double tolerance)
{
    assert_doubles_near(&got, &want, 1, tolerance);
}

static struct opc_rng stream(uint32_t i)
{
    return opc_rng_stream(11, OPC_USE_TEST, 0, i);
}

static void the_improvement_bound_holds_for_any_numbers(void **state)
{
    (void)state;
    struct opc_rng rng = stream(0);
    bool tight = false;
    for (int i = 0; i < 20000; i++) {
        double eta[2], model[2];
        for (int k = 0; k < 2; k++) {
            eta[k] = 20 * opc_rng_unit_double(&rng) - 10;
            model[k] = 20 * opc_rng_unit_double(&rng) - 10;
        }
        const double bound = opc_theory_improvement(eta, model);
        assert_true(eta[1] - eta[0] >= bound - 1e-12);
        tight |= eta[1] - eta[0] < bound + 1e-9;
    }
    assert_true(tight); /* attained when the model flatters the new policy and not the old one */
}

static void drift_is_below_its_three_bounds(void **state)
{
    (void)state;
    assert_near(opc_theory_drift(0.99, 10), 51.279, 5e-4);
    assert_near(opc_theory_drift(0.99, 100), 2652.56, 5e-3);
    assert_near(opc_theory_drift(0.99, 1000), 9895.30, 5e-3);
    assert_near(opc_theory_drift_bound(0.99, 10), 55, 1e-9);
    assert_near(opc_theory_drift_bound(0.99, 100), 5050, 1e-9);
    assert_near(opc_theory_drift_bound(0.99, 1000), 9900, 1e-8);
    for (int H = 1; H < 2000; H = H * 3 / 2 + 1)
        for (int i = 1; i < 100; i += 7)
            assert_true(opc_theory_drift(0.01 * i, H) <=
                        opc_theory_drift_bound(0.01 * i, H) * (1 + 1e-12));
}

/* Lemma 1: any model, the same estimate to the bit; it is unbiased and its variance goes as 1/B. */
static void the_corrected_estimate_is_that_of_replay_and_converges(void **state)
{
    (void)state;
    struct opc_integrator in = opc_integrator_figure();
    in.dA[0][0] = -2; /* nonsense, and nothing comes of it */
    in.dB[1] = 3;
    enum { T = 60, ESTIMATES = 1500 };
    const double eta = opc_lemma1_return(&in, T);
    const double one = opc_lemma1(&in, T, 1, 4 * ESTIMATES, eta, 1, 5).variance;
    for (int B = 1; B <= 16; B *= 4) {
        const double eps = sqrt(one) / 2;
        const struct opc_lemma1 got = opc_lemma1(&in, T, B, ESTIMATES, eta, eps, 6);
        assert_true(got.apart == 0);
        assert_near(got.mean, eta, 4 * sqrt(one / B / ESTIMATES));
        assert_near(got.variance * B / one, 1, 4 * sqrt(2.0 / ESTIMATES + 0.5 / ESTIMATES));
        assert_true(got.tail <= one / (B * eps * eps));
        assert_true(B > 1 || got.tail > 0.1);
    }
}

/* ---- state marginals and Theorem 1 ----------------------------------------------------------- */
static struct opc_constants constants(double L_f, double L_pi, double sigma)
{
    return (struct opc_constants){.L_f = L_f, .L_pi = L_pi, .L_r = 1, .sigma = sigma, .m = 1};
}

static double w2(const struct opc_linear_case *c, enum opc_toy_by by, int t)
{
    return opc_gauss_w2(opc_theory_marginal(c, by, t), opc_theory_marginal(c, OPC_BY_TRUTH, t));
}

static void the_counter_example_exceeds_the_published_state_bound(void **state)
{
    (void)state;
    const struct opc_linear_case c = opc_theory_counter_example(2, 1, 0.1);
    const struct opc_constants k = constants(2, 1, 0.1);
    assert_near(opc_theory_lipschitz(&c), 2, 1e-15);
    assert_near(w2(&c, OPC_BY_OPC, 3), 2.92, 1e-12);
    assert_near(opc_theory_state_bound(&k, OPC_PUBLISHED, 3), 2.48, 1e-12);
    assert_near(opc_theory_state_bound(&k, OPC_SAFE, 3), 5.84, 1e-12);
    assert_near(w2(&c, OPC_BY_OPC, 5), 187.24, 1e-9);
    assert_near(opc_theory_state_bound(&k, OPC_PUBLISHED, 5), 62.48, 1e-10);
    for (int t = 1; t < 100; t++) {
        const double got = w2(&c, OPC_BY_OPC, t);
        assert_true(got <= opc_theory_state_bound(&k, OPC_SAFE, t));
        assert_true((got > opc_theory_state_bound(&k, OPC_PUBLISHED, t)) == (t >= 3));
    }
}

static void both_counter_examples_exceed_the_published_return_bound(void **state)
{
    (void)state;
    const struct opc_linear_case grow = opc_theory_counter_example(2, 1, 0.1);
    const struct opc_constants k = constants(2, 1, 0.1);
    double gap = opc_theory_return_gap(&grow, 0.99, 40);
    assert_near(gap, 7.24e16, 5e13);
    assert_near(opc_theory_return_bound(&k, OPC_PUBLISHED, 0.99, 40), 2.41e16, 5e13);
    assert_true(gap <= opc_theory_return_bound(&k, OPC_SAFE, 0.99, 40));

    const struct opc_linear_case shrink = opc_theory_counter_example(0.3, 0.3, 0.1);
    const struct opc_constants q = constants(0.3, 0.3, 0.1);
    gap = opc_theory_return_gap(&shrink, 0.9, 10);
    assert_near(gap, 0.0595, 5e-5);
    assert_near(opc_theory_return_bound(&q, OPC_PUBLISHED, 0.9, 10), 0.000265, 5e-7);
    assert_true(gap <= opc_theory_return_bound(&q, OPC_SAFE, 0.9, 10));
}

/* Any linear model with any Gaussian policy, also where the published form would do. */
static void the_safe_bounds_hold_for_random_models(void **state)
{
    (void)state;
    struct opc_rng rng = stream(1);
    int worse = 0;
    for (int i = 0; i < 3000; i++) {
        double u[6];
        for (int k = 0; k < 6; k++)
            u[k] = 2 * opc_rng_unit_double(&rng) - 1;
        const struct opc_linear_case c = {.f = 1.5 * u[0],
                                          .g = u[1],
                                          .F = 1.5 * u[2],
                                          .G = u[3],
                                          .k = 1.5 * u[4],
                                          .sigma = 0.3,
                                          .s0 = u[5]};
        const struct opc_constants k = constants(opc_theory_lipschitz(&c), fabs(c.k), c.sigma);
        for (int t = 1; t <= 12; t++) {
            assert_true(w2(&c, OPC_BY_OPC, t) <= opc_theory_state_bound(&k, OPC_SAFE, t) + 1e-12);
            worse += w2(&c, OPC_BY_OPC, t) > opc_theory_state_bound(&k, OPC_PUBLISHED, t) + 1e-12;
        }
        assert_true(opc_theory_return_gap(&c, 0.95, 12) <=
                    opc_theory_return_bound(&k, OPC_SAFE, 0.95, 12) + 1e-12);
    }
    assert_true(worse > 0); /* the published one fails for some of them, too */
}

/* A branch at t is a rollout from the distribution of s_t: Theorem 1 with H in place of T. */
static void the_safe_bound_holds_for_branched_rollouts(void **state)
{
    (void)state;
    struct opc_rng rng = stream(2);
    int differ = 0;
    for (int i = 0; i < 1000; i++) {
        double u[6];
        for (int k = 0; k < 6; k++)
            u[k] = 2 * opc_rng_unit_double(&rng) - 1;
        const struct opc_linear_case c = {.f = u[0],
                                          .g = u[1],
                                          .F = 1.5 * u[2],
                                          .G = u[3],
                                          .k = 1.5 * u[4],
                                          .sigma = 0.3,
                                          .s0 = u[5]};
        const struct opc_constants k = constants(opc_theory_lipschitz(&c), fabs(c.k), c.sigma);
        const double whole = opc_theory_branched_gap(&c, 0.95, 0, 8);
        assert_true(whole == opc_theory_return_gap(&c, 0.95, 8));
        for (int t = 1; t < 30; t += 7) {
            /* At the branch the distribution is the environment's, to the bit. */
            const struct opc_gauss at = opc_theory_branched(&c, t, 0),
                                   is = opc_theory_marginal(&c, OPC_BY_TRUTH, t);
            assert_true(at.mean == is.mean && at.sd == is.sd);
            const double gap = opc_theory_branched_gap(&c, 0.95, t, 8);
            assert_true(gap <= opc_theory_return_bound(&k, OPC_SAFE, 0.95, 8) + 1e-12);
            differ += gap != whole;
        }
    }
    assert_true(differ > 2000); /* where it branches matters to the gap, not to the bound */
}

/* By walks: the recording goes on, and the rollout joins it late. */
static void branched_marginals_are_those_of_sampled_walks(void **state)
{
    (void)state;
    enum { N = 40000, T = 3, H = 4 };
    const struct opc_linear_case c = {
        .f = 0.9, .g = 0.5, .F = 0.7, .G = 0.8, .k = -0.5, .sigma = 0.2, .s0 = 1};
    struct opc_rng rng = stream(3);
    double sum = 0, square = 0;
    for (int i = 0; i < N; i++) {
        double ref = c.s0, s = c.s0;
        for (int t = 0; t < T + H; t++) {
            float e[2];
            opc_rng_normals(&rng, 2, e);
            const double a_ref = c.k * ref + c.sigma * (double)e[0],
                         a = c.k * s + c.sigma * (double)e[1], next = c.f * ref + c.g * a_ref;
            s = t < T ? next : next + c.F * (s - ref) + c.G * (a - a_ref);
            ref = next;
        }
        sum += s / N;
        square += s * s / N;
    }
    const struct opc_gauss is = opc_theory_branched(&c, T, H);
    assert_near(sum, is.mean, 4 * is.sd / 200);
    assert_near(sqrt(square - sum * sum), is.sd, 0.02 * is.sd);
    assert_true(fabs(is.sd - opc_theory_branched(&c, 0, T + H).sd) > 1e-4);
}

static void the_benign_case_has_the_reference_values(void **state)
{
    (void)state;
    const struct opc_linear_case c = opc_theory_benign_example();
    const struct opc_constants k = constants(opc_theory_lipschitz(&c), fabs(c.k), c.sigma);
    assert_near(k.L_f, 1, 1e-15);
    assert_near(opc_theory_marginal(&c, OPC_BY_TRUTH, 1).sd, 0.1, 1e-15);
    assert_near(opc_theory_marginal(&c, OPC_BY_OPC, 1).sd, 0.121655, 5e-7);
    assert_near(w2(&c, OPC_BY_OPC, 1), 4.689e-4, 5e-8);
    assert_near(opc_theory_marginal(&c, OPC_BY_TRUTH, 20).sd, 0.131590, 5e-7);
    assert_near(opc_theory_marginal(&c, OPC_BY_OPC, 20).sd, 0.141988, 5e-7);
    assert_near(w2(&c, OPC_BY_OPC, 20), 1.081e-4, 5e-8);
    for (enum opc_form form = OPC_PUBLISHED; form <= OPC_SAFE; form++) { /* both factors 1.25 */
        assert_near(opc_theory_state_bound(&k, form, 1), 0.08, 1e-12);
        assert_near(opc_theory_state_bound(&k, form, 20), 27.44, 5e-3);
    }
    static const double MEAN[] = {0.65, 0.4225}, MODEL[] = {0.5, 0.25};
    for (int t = 1; t <= 2; t++) {
        assert_near(opc_theory_marginal(&c, OPC_BY_TRUTH, t).mean, MEAN[t - 1], 1e-15);
        assert_near(opc_theory_marginal(&c, OPC_BY_OPC, t).mean, MEAN[t - 1], 1e-15);
        assert_near(opc_theory_marginal(&c, OPC_BY_MODEL, t).mean, MODEL[t - 1], 1e-15);
    }
}

/* The recursion against many walks of eq. 5 itself. */
static void the_marginals_are_those_of_sampled_walks(void **state)
{
    (void)state;
    const struct opc_linear_case c = opc_theory_benign_example();
    enum { WALKS = 20000, T = 8 };
    double sum = 0, square = 0;
    for (uint32_t i = 0; i < WALKS; i++) {
        struct opc_rng rng = stream(100 + i);
        double s = c.s0, ref = c.s0;
        for (int t = 0; t < T; t++) {
            double z[2]; /* Box-Muller in double, unlike the library's */
            const double r = sqrt(-2 * log(1 - opc_rng_unit_double(&rng)));
            const double angle = 2 * 3.14159265358979323846 * opc_rng_unit_double(&rng);
            z[0] = r * cos(angle);
            z[1] = r * sin(angle);
            const double a = c.k * s + c.sigma * z[0], a_ref = c.k * ref + c.sigma * z[1];
            const double ref_next = c.f * ref + c.g * a_ref;
            s = ref_next + (c.F * s + c.G * a - (c.F * ref + c.G * a_ref));
            ref = ref_next;
        }
        sum += s / WALKS;
        square += s * s / WALKS;
    }
    const struct opc_gauss want = opc_theory_marginal(&c, OPC_BY_OPC, T);
    assert_near(sum, want.mean, 4 * want.sd / sqrt(WALKS));
    assert_near(sqrt(square - sum * sum) / want.sd, 1, 4 / sqrt(2.0 * WALKS));
}

static void one_step_has_the_reference_values(void **state)
{
    (void)state;
    struct opc_one_step got = opc_theory_one_step(1, 0.7, 2, 0.3);
    assert_near(got.opc, 0.00512, 5e-6);
    assert_near(got.model, 0.36810, 5e-6);
    assert_near(got.by_policy, 0.0882, 1e-12);
    assert_near(got.by_error, 0.7362, 1e-12);
    assert_near(got.by_error_safe, 0.0162, 1e-12);
    got = opc_theory_one_step(1, 0.7, 0, 1);
    assert_near(got.opc, 0.05685, 5e-6);
    assert_near(got.model, 0.09, 1e-12);
    assert_near(got.by_policy, 0.98, 1e-12);
    assert_near(got.by_error, 0.18, 1e-12);
    assert_near(got.by_error_safe, 0.18, 1e-12);
    struct opc_rng rng = stream(2);
    for (int i = 0; i < 2000; i++) {
        double u[4];
        for (int k = 0; k < 4; k++)
            u[k] = 4 * opc_rng_unit_double(&rng) - 2;
        got = opc_theory_one_step(u[0], u[1], u[2], fabs(u[3]));
        assert_true(got.opc <= got.by_policy + 1e-12 && got.opc <= got.by_error_safe + 1e-12);
        assert_true(got.by_error_safe <= got.by_error + 1e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_improvement_bound_holds_for_any_numbers),
        cmocka_unit_test(drift_is_below_its_three_bounds),
        cmocka_unit_test(the_corrected_estimate_is_that_of_replay_and_converges),
        cmocka_unit_test(the_counter_example_exceeds_the_published_state_bound),
        cmocka_unit_test(both_counter_examples_exceed_the_published_return_bound),
        cmocka_unit_test(the_safe_bounds_hold_for_random_models),
        cmocka_unit_test(the_safe_bound_holds_for_branched_rollouts),
        cmocka_unit_test(branched_marginals_are_those_of_sampled_walks),
        cmocka_unit_test(the_benign_case_has_the_reference_values),
        cmocka_unit_test(the_marginals_are_those_of_sampled_walks),
        cmocka_unit_test(one_step_has_the_reference_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
