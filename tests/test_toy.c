/* SPDX-License-Identifier: MIT */
/* The paper's two examples against numbers computed elsewhere, against finite differences, and
 * against the transition models that training uses. */
#include "study/example/toy.h"

#include "model/linear.h"
#include "test.h"
#include "transitions.h"

enum { T = 60, CELLS = 81, OFF = 61 };

static void assert_near(double got, double want, double tolerance)
{
    assert_doubles_near(&got, &want, 1, tolerance);
}

static struct opc_toy_value value(enum opc_toy_by by, double dA, double theta, double theta_n)
{
    const struct opc_toy toy = opc_toy_paper(dA, 0);
    return opc_toy_value(&toy, by, theta, theta_n);
}

static void returns_and_slopes_are_the_reference_values(void **state)
{
    (void)state;
    static const struct {
        enum opc_toy_by by;
        double theta, J, slope;
    } ROW[] = {
        {OPC_BY_TRUTH, -1.9, 0.472240, 5.462796},  {OPC_BY_TRUTH, -1.5, 0.912715, 0.228901},
        {OPC_BY_TRUTH, -1.3, 0.945962, 0.113642},  {OPC_BY_TRUTH, -1.2, 0.958349, 0.125684},
        {OPC_BY_TRUTH, -1.0, 0.983333, 0},         {OPC_BY_TRUTH, -0.7, 0.945962, -0.113642},
        {OPC_BY_TRUTH, -0.5, 0.912715, -0.228901}, {OPC_BY_MODEL, -1.8, 0.945962, 0.113642},
        {OPC_BY_MODEL, -1.5, 0.983333, 0},         {OPC_BY_MODEL, -1.3, 0.958349, -0.125684},
        {OPC_BY_MODEL, -1.2, 0.945962, -0.113642}, {OPC_BY_MODEL, -1.0, 0.912715, -0.228901},
        {OPC_BY_MODEL, -0.7, 0.746358, -1.374163}, {OPC_BY_MODEL, -0.6, 0.472240, -5.462796},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        const struct opc_toy_value v = value(ROW[i].by, 0.5, ROW[i].theta, 0);
        assert_near(v.J, ROW[i].J, 5e-7);
        assert_near(v.slope, ROW[i].slope, 5e-7);
    }
}

/* dA = 0.5: OPC has the true return at theta_n, and a peak near the true one. */
static void corrected_returns_are_the_reference_values(void **state)
{
    (void)state;
    static const struct {
        double theta_n, J, truth, opc, model, best;
    } ROW[] = {
        {-1.5, 0.912715, 0.2289, 0.0483, 0.0000, -1.004},
        {-1.3, 0.945962, 0.1136, 0.0251, -0.1257, -1.014},
        {-1.2, 0.958349, 0.1257, -0.0211, -0.1136, -1.012},
        {-1.1, 0.966312, 0.0504, -0.0123, -0.1677, -1.017},
        {-0.9, 0.966312, -0.0504, -0.1202, -0.3498, -0.978},
        {-0.7, 0.945962, -0.1136, -0.4248, -1.3742, -1.707},
    };
    const struct opc_toy toy = opc_toy_paper(0.5, 0);
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        const double n = ROW[i].theta_n;
        const struct opc_toy_value opc = opc_toy_value(&toy, OPC_BY_OPC, n, n);
        assert_near(opc.J, ROW[i].J, 5e-7);
        assert_true(opc.J == opc_toy_value(&toy, OPC_BY_TRUTH, n, n).J); /* to the bit */
        assert_near(opc_toy_value(&toy, OPC_BY_TRUTH, n, n).slope, ROW[i].truth, 5e-5);
        assert_near(opc.slope, ROW[i].opc, 5e-5);
        assert_near(opc_toy_value(&toy, OPC_BY_MODEL, n, n).slope, ROW[i].model, 5e-5);
        assert_near(opc_toy_best(&toy, OPC_BY_OPC, n, -2, 0, 20000), ROW[i].best, 5.1e-4);
    }
    assert_near(opc_toy_best(&toy, OPC_BY_TRUTH, 0, -2, 0, 2000), -1, 1e-12);
    assert_near(opc_toy_best(&toy, OPC_BY_MODEL, 0, -2, 0, 2000), -1.5, 1e-12);
}

static void the_true_return_is_symmetric_and_an_error_of_A_shifts_it(void **state)
{
    (void)state;
    for (int i = 0; i < 19; i++) {
        const double theta = -1.95 + 0.05 * i;
        const struct opc_toy_value v = value(OPC_BY_TRUTH, 0, theta, 0);
        assert_near(value(OPC_BY_TRUTH, 0, -2 - theta, 0).J, v.J, 1e-12);
        assert_near(value(OPC_BY_TRUTH, 0, -2 - theta, 0).slope, -v.slope, 1e-10);
        assert_near(value(OPC_BY_MODEL, 0.5, theta - 0.5, 0).J, v.J, 1e-12);
        assert_near(value(OPC_BY_MODEL, 0.5, theta - 0.5, 0).slope, v.slope, 1e-10);
    }
}

/* Section 5.2's check, and g = g~, where its closed form is a limit. */
static void on_policy_the_slope_has_a_closed_form(void **state)
{
    (void)state;
    const struct opc_toy toy = opc_toy_paper(0.3, 0.2);
    assert_near(opc_toy_slope_on_policy(&toy, -0.7), -0.2188180539, 5e-11);
    for (int i = 0; i < 13; i++) {
        const double theta = -1.6 + 0.1 * i;
        assert_near(opc_toy_value(&toy, OPC_BY_OPC, theta, theta).slope,
                    opc_toy_slope_on_policy(&toy, theta), 1e-11);
    }
    const struct opc_toy same = opc_toy_paper(0.25, 0.5); /* g = g~ at theta = -0.5 */
    assert_near(opc_toy_value(&same, OPC_BY_OPC, -0.5, -0.5).slope,
                opc_toy_slope_on_policy(&same, -0.5), 1e-11);
    assert_near(opc_toy_slope_on_policy(&same, -0.5), 1.5 * value(OPC_BY_TRUTH, 0, -0.5, 0).slope,
                1e-11);
}

/* Central differences, refined once (Richardson), agree to 1e-9 of the slope's size. */
static void slopes_are_those_of_finite_differences(void **state)
{
    (void)state;
    static const double ERROR[][2] = {{0, 0}, {0.5, 0}, {-0.3, 0.1}, {0, 0.25}, {0.2, -0.4}};
    for (size_t e = 0; e < sizeof ERROR / sizeof *ERROR; e++) {
        const struct opc_toy toy = opc_toy_paper(ERROR[e][0], ERROR[e][1]);
        for (enum opc_toy_by by = OPC_BY_TRUTH; by <= OPC_BY_OPC; by++)
            for (int k = 0; k < 16; k++) {
                const double theta = -1.7 + 0.09 * k;
                if (!opc_toy_stable(&toy, theta))
                    continue;
                const double h = 2e-5;
                double d[2];
                for (int i = 0; i < 2; i++) {
                    const double w = h * (i + 1);
                    d[i] = (opc_toy_value(&toy, by, theta + w, -0.8).J -
                            opc_toy_value(&toy, by, theta - w, -0.8).J) /
                           (2 * w);
                }
                const double slope = opc_toy_value(&toy, by, theta, -0.8).slope;
                assert_near((4 * d[0] - d[1]) / 3, slope, 1e-9 * fmax(1, fabs(slope)));
            }
    }
}

static void the_distance_is_the_angle_between_tangents_with_a_sign(void **state)
{
    (void)state;
    assert_near(opc_gradient_distance(1, -1), -0.5, 1e-15);
    assert_near(opc_gradient_distance(1, 1), 0, 0);
    assert_near(opc_gradient_distance(0.1, 2), 0.320691, 5e-7);
    assert_near(opc_gradient_distance(0, -1), -0.25, 1e-15);
    assert_near(opc_gradient_distance(-3, -0.5), 0.25, 1e-15);
    assert_near(opc_gradient_distance(2, 0), opc_gradient_distance(0, 2), 0);
    assert_true(opc_gradient_distance(2, 0) > 0 && opc_gradient_distance(0, 0) == 0);
    assert_true(opc_gradient_distance(1e300, 0) < 0.5 + 1e-15);
    assert_true(opc_gradient_distance(1e300, -1e300) >= -1);
}

/* ---- fields ---------------------------------------------------------------------------------- */
static struct opc_gradient_field_sum field(enum opc_toy_error which, enum opc_toy_by by,
                                           double reach, double d[CELLS][CELLS])
{
    double theta[CELLS], error[CELLS];
    for (int i = 0; i < CELLS; i++) {
        theta[i] = -2 + 2 * (i + 0.5) / CELLS;
        error[i] = reach * (2.0 * i / (CELLS - 1) - 1);
    }
    opc_toy_gradient_field(which, by, CELLS, error, CELLS, theta, d[0]);
    return opc_gradient_field_sum(CELLS * CELLS, d[0]);
}

static void the_fields_of_figures_2_and_8_have_the_reference_shares(void **state)
{
    (void)state;
    static double d[CELLS][CELLS];
    static const struct {
        enum opc_toy_error which;
        enum opc_toy_by by;
        double reach, wrong, mean;
    } ROW[] = {
        {OPC_ERROR_B, OPC_BY_MODEL, 0.5, 16.18, 0.0722},
        {OPC_ERROR_B, OPC_BY_OPC, 0.5, 2.16, 0.0483},
        {OPC_ERROR_A, OPC_BY_MODEL, 0.5, 14.68, 0.1003},
        {OPC_ERROR_A, OPC_BY_OPC, 0.5, 2.24, 0.0697},
        {OPC_ERROR_A, OPC_BY_MODEL, 0.25, 6.84, -1},
        {OPC_ERROR_A, OPC_BY_OPC, 0.25, 0, -1},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        const struct opc_gradient_field_sum sum = field(ROW[i].which, ROW[i].by, ROW[i].reach, d);
        assert_near(sum.wrong, ROW[i].wrong, 0.0051);
        if (ROW[i].mean >= 0)
            assert_near(sum.mean, ROW[i].mean, 5.1e-5);
    }
}

/* Figure 8a: (theta + 1, dA) -> -(theta + 1, dA) leaves d as it is. In the middle column the
 * true slope is 0 but for rounding, which decides its sign. */
static void the_field_of_A_is_symmetric_about_its_centre(void **state)
{
    (void)state;
    static double d[CELLS][CELLS];
    for (enum opc_toy_by by = OPC_BY_MODEL; by <= OPC_BY_OPC; by++) {
        field(OPC_ERROR_A, by, 0.5, d);
        for (int i = 0; i < CELLS; i++)
            for (int j = 0; j < CELLS; j++) {
                const double there = d[CELLS - 1 - i][CELLS - 1 - j];
                const bool middle = j == CELLS / 2;
                if (!isnan(d[i][j]) && !isnan(there)) /* the mask's edge may differ by rounding */
                    assert_near(middle ? fabs(d[i][j]) : d[i][j], middle ? fabs(there) : there,
                                1e-9);
            }
    }
}

/* The empty corner of Figure 2: theta strongly negative with dB > 0. */
static void unstable_cells_are_masked(void **state)
{
    (void)state;
    static double d[CELLS][CELLS];
    field(OPC_ERROR_B, OPC_BY_MODEL, 0.5, d);
    for (int i = 0; i < CELLS; i++)
        for (int j = 0; j < CELLS; j++) {
            const double theta = -2 + 2 * (j + 0.5) / CELLS, dB = (double)i / (CELLS - 1) - 0.5;
            assert_true(isnan(d[i][j]) == (1 + (1 + dB) * theta < -1));
        }
    assert_true(isnan(d[CELLS - 1][0]) && !isnan(d[0][0]));
}

static void two_points_of_the_fields_are_the_reference_values(void **state)
{
    (void)state;
    const struct opc_toy b = opc_toy_paper(0, 0.25), a = opc_toy_paper(0.3, 0);
    const double truth = opc_toy_value(&b, OPC_BY_TRUTH, -0.9, -0.9).slope;
    const double model = opc_toy_value(&b, OPC_BY_MODEL, -0.9, -0.9).slope;
    const double opc = opc_toy_value(&b, OPC_BY_OPC, -0.9, -0.9).slope;
    assert_near(truth, -0.05045, 5.1e-6);
    assert_near(model, 0.06462, 5.1e-6);
    assert_near(opc, -0.02674, 5.1e-6);
    assert_near(opc_gradient_distance(truth, model), -0.03659, 5.1e-6);
    assert_near(opc_gradient_distance(truth, opc), 0.00753, 5.1e-6);
    assert_near(opc_toy_value(&a, OPC_BY_TRUTH, -1.2, -1.2).slope, 0.12568, 5.1e-6);
    assert_near(opc_toy_value(&a, OPC_BY_MODEL, -1.2, -1.2).slope, -0.05045, 5.1e-6);
    assert_near(opc_toy_value(&a, OPC_BY_OPC, -1.2, -1.2).slope, 0.03135, 5.1e-6);
}

/* Cells on the mask's edge depend on the last bit, hence the tolerance. */
static void the_fields_of_figure_9_have_the_reference_shares(void **state)
{
    (void)state;
    static double d[OFF][OFF];
    static const struct {
        double dA, dB, wrong, mean;
    } ROW[] = {
        {0.2, 0, 10.07, 0.0738}, {-0.2, 0, 10.07, 0.0738}, {0, 0.2, 13.33, 0.0650},
        {0, -0.2, 7.67, 0.0542}, {0.5, 0, 14.44, 0.1208},
    };
    double shift[OFF], theta_n[OFF];
    for (int i = 0; i < OFF; i++) {
        shift[i] = -0.5 + 1.0 * i / (OFF - 1);
        theta_n[i] = -1.9 + 1.8 * i / (OFF - 1);
    }
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        const struct opc_toy toy = opc_toy_paper(ROW[i].dA, ROW[i].dB);
        opc_toy_gradient_field_off(&toy, OFF, shift, OFF, theta_n, d[0]);
        const struct opc_gradient_field_sum sum = opc_gradient_field_sum(OFF * OFF, d[0]);
        assert_near(sum.wrong, ROW[i].wrong, 0.1);
        assert_near(sum.mean, ROW[i].mean, 2e-4);
    }
    const struct opc_toy right = opc_toy_paper(0, 0);
    opc_toy_gradient_field_off(&right, OFF, shift, OFF, theta_n, d[0]);
    const struct opc_gradient_field_sum none = opc_gradient_field_sum(OFF * OFF, d[0]);
    assert_true(none.max <= 1e-14 && none.cells > 1000);
}

/* ---- the double integrator ------------------------------------------------------------------- */
static const double NEW[2] = {-0.6, -1.4};

static void the_means_of_figure_1b_are_the_reference_values(void **state)
{
    (void)state;
    const struct opc_integrator in = opc_integrator_figure();
    static const double WANT[2][2][3] = {
        /* env, model, OPC at t = 30; at t = 60 */
        {{0.0529, 0.3316, 0.0529}, {-0.0138, 0.0849, -0.0138}},
        {{0.2696, 0.6844, 0.3103}, {0.0218, 0.4405, 0.1514}},
    };
    double ref[T + 1][2], s[T + 1][2];
    opc_integrator_walk(&in, OPC_BY_TRUTH, in.K, T, NULL, NULL, ref);
    for (int off = 0; off < 2; off++)
        for (enum opc_toy_by by = OPC_BY_TRUTH; by <= OPC_BY_OPC; by++) {
            opc_integrator_walk(&in, by, off ? NEW : in.K, T, ref, NULL, s);
            assert_near(s[30][0], WANT[off][0][by], 5.1e-5);
            assert_near(s[60][0], WANT[off][1][by], 5.1e-5);
        }
}

/* Noise and all, to the bit; and with a right model the truth under the recorded noise. */
static void on_policy_the_corrected_integrator_is_its_recording(void **state)
{
    (void)state;
    struct opc_integrator in = opc_integrator_figure();
    double ref[T + 1][2], s[T + 1][2], again[T + 1][2];
    for (uint32_t i = 0; i < 20; i++) {
        struct opc_rng rng = opc_rng_stream(3, OPC_USE_TEST, 0, i), same = rng;
        opc_integrator_walk(&in, OPC_BY_TRUTH, in.K, T, NULL, &rng, ref);
        opc_integrator_walk(&in, OPC_BY_OPC, in.K, T, ref, NULL, s);
        assert_same_bits(s, ref, sizeof s);

        struct opc_integrator right = in;
        memset(right.dA, 0, sizeof right.dA);
        memset(right.dB, 0, sizeof right.dB);
        opc_integrator_walk(&right, OPC_BY_OPC, NEW, T, ref, NULL, s);
        opc_integrator_walk(&right, OPC_BY_TRUTH, NEW, T, NULL, &same, again);
        assert_doubles_near(s[0], again[0], 2 * (T + 1), 1e-13);
    }
}

/* The spread of the truth is that of its recursion P+ = (A + B K) P (A + B K)' + W. */
static void the_integrators_noise_has_its_size(void **state)
{
    (void)state;
    const struct opc_integrator in = opc_integrator_figure();
    enum { RUNS = 4000 };
    double P[2][2] = {{0}}, sum = 0, square = 0, s[T + 1][2];
    for (int t = 0; t < T; t++) {
        double F[2][2], FP[2][2], next[2][2];
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++)
                F[i][j] = in.A[i][j] + in.B[i] * in.K[j];
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++)
                FP[i][j] = F[i][0] * P[0][j] + F[i][1] * P[1][j];
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++)
                next[i][j] = FP[i][0] * F[j][0] + FP[i][1] * F[j][1] +
                             (i == j ? in.noise[i] * in.noise[i] : 0);
        memcpy(P, next, sizeof P);
    }
    for (uint32_t i = 0; i < RUNS; i++) {
        struct opc_rng rng = opc_rng_stream(4, OPC_USE_TEST, 0, i);
        opc_integrator_walk(&in, OPC_BY_TRUTH, in.K, T, NULL, &rng, s);
        sum += s[T][0] / RUNS;
        square += s[T][0] * s[T][0] / RUNS;
    }
    /* standard errors: 1/sqrt(RUNS) of the deviation, sqrt(2/RUNS) of the variance */
    assert_near(sum, -0.0138, 4 * sqrt(P[0][0] / RUNS) + 5e-5);
    assert_near((square - sum * sum) / P[0][0], 1, 4 * sqrt(2.0 / RUNS));
}

/* ---- the same through src/opc/transition.c -----------------------------------------------------
 * A linear system as recorded episode and as predictor, walked by a = K s in float. */
struct real {
    int obs;
    const double *A, *B, *model_A, *model_B, *s0, *K; /* K made the recording */
};

static double truth_of(const struct real *real, int k, const double *s, double a)
{
    double next = real->B[k] * a;
    for (int j = 0; j < real->obs; j++)
        next += real->A[k * real->obs + j] * s[j];
    return next;
}

static double action_of(const struct real *real, const double *K, const double *s)
{
    double a = 0;
    for (int j = 0; j < real->obs; j++)
        a += K[j] * s[j];
    return a;
}

static double reward_of(const struct real *real, const double *s)
{
    double square = 0;
    for (int j = 0; j < real->obs; j++)
        square += s[j] / 0.05 * (s[j] / 0.05);
    return exp(-square);
}

static struct opc_episodes *record(const struct real *real, const double *K)
{
    struct opc_episodes *past;
    struct opc_err err;
    double s[2], next[2];
    assert_ok(opc_episodes_create(real->obs, 1, T, 1, &past, &err), &err);
    memcpy(s, real->s0, (size_t)real->obs * sizeof *s);
    assert_ok(opc_episodes_begin(past, s, &err), &err);
    for (int t = 0; t < T; t++) {
        const double a = action_of(real, K, s);
        const float as_float = (float)a;
        for (int k = 0; k < real->obs; k++)
            next[k] = truth_of(real, k, s, a);
        assert_ok(opc_episodes_append(past, &as_float, reward_of(real, s), next, false, &err),
                  &err);
        memcpy(s, next, sizeof s);
    }
    opc_episodes_close(past);
    return past;
}

/* s[T][obs] and the mean reward of a = K s under the named transition model. */
static double walk(const struct real *real, const char *name, const double *K, double *out)
{
    const int obs = real->obs, elite = 0, b = 0;
    const bool replay = strcmp(name, "replay") == 0;
    struct opc_episodes *past = record(real, replay ? K : real->K);
    struct opc_predictor *model;
    struct opc_transition *tr;
    struct opc_err err;
    assert_ok(opc_linear_create_matrix(obs, 1, real->model_A, real->model_B, &model, &err), &err);
    assert_ok(make_transition(name, past, model, T, &tr, &err), &err);
    assert_ok(opc_transition_refresh(tr, NULL, &err), &err);
    struct opc_rng rng = opc_rng_stream(1, OPC_USE_TEST, 0, 0);
    double s[2], J = 0;
    float now[2], action, next[2], reward, work[3];
    for (int k = 0; k < obs; k++)
        now[k] = (float)real->s0[k];
    for (int t = 0; t < T; t++) {
        for (int k = 0; k < obs; k++)
            out[t * obs + k] = s[k] = (double)now[k];
        action = (float)action_of(real, K, s);
        struct opc_walk w = {1, &b, &t, &elite, now, &action, next, &reward, &rng, work};
        opc_transition_step(tr, &w, NULL);
        J += (double)reward / T;
        memcpy(now, next, sizeof now);
    }
    opc_transition_destroy(tr);
    opc_predictor_destroy(model);
    opc_episodes_destroy(past);
    return J;
}

static const char *const NAME[] = {"replay", "learned", "corrected"}; /* by enum opc_toy_by */

static void the_transition_models_walk_the_1d_example(void **state)
{
    (void)state;
    static const double ERROR[][2] = {{0.5, 0}, {0, 0.25}, {0.3, 0.2}, {0.3, 0}, {0, 0}};
    static const double THETA[] = {-1.5, -1.3, -1.2, -1.1, -0.9, -0.7};
    const double A = 1, B = 1, s0 = 1;
    for (size_t e = 0; e < sizeof ERROR / sizeof *ERROR; e++)
        for (size_t n = 0; n < sizeof THETA / sizeof *THETA; n++)
            for (size_t i = 0; i < sizeof THETA / sizeof *THETA; i++)
                for (enum opc_toy_by by = OPC_BY_TRUTH; by <= OPC_BY_OPC; by++) {
                    const struct opc_toy toy = opc_toy_paper(ERROR[e][0], ERROR[e][1]);
                    const double mA = A + toy.dA, mB = B + toy.dB;
                    const struct real real = {1, &A, &B, &mA, &mB, &s0, &THETA[n]};
                    double got[T] = {0}, want[T];
                    const double J = walk(&real, NAME[by], &THETA[i], got);
                    opc_toy_walk(&toy, by, THETA[i], THETA[n], want);
                    assert_doubles_near(got, want, T, 1e-5);
                    assert_near(J, opc_toy_value(&toy, by, THETA[i], THETA[n]).J, 1e-5);
                }
}

static void the_transition_models_walk_the_double_integrator(void **state)
{
    (void)state;
    const struct opc_integrator in = opc_integrator_figure();
    double mA[2][2], mB[2], ref[T + 1][2], want[T + 1][2], got[T][2];
    for (int i = 0; i < 2; i++) {
        mB[i] = in.B[i] + in.dB[i];
        for (int j = 0; j < 2; j++)
            mA[i][j] = in.A[i][j] + in.dA[i][j];
    }
    const struct real real = {2, in.A[0], in.B, mA[0], mB, in.s0, in.K};
    opc_integrator_walk(&in, OPC_BY_TRUTH, in.K, T, NULL, NULL, ref);
    for (int off = 0; off < 2; off++)
        for (enum opc_toy_by by = OPC_BY_TRUTH; by <= OPC_BY_OPC; by++) {
            const double *K = off ? NEW : in.K;
            const double J = walk(&real, NAME[by], K, got[0]);
            double mean = 0;
            opc_integrator_walk(&in, by, K, T, ref, NULL, want);
            for (int t = 0; t < T; t++)
                mean += reward_of(&real, want[t]) / T;
            assert_doubles_near(got[0], want[0], 2 * T, 1e-5);
            assert_near(J, mean, 1e-5);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(returns_and_slopes_are_the_reference_values),
        cmocka_unit_test(corrected_returns_are_the_reference_values),
        cmocka_unit_test(the_true_return_is_symmetric_and_an_error_of_A_shifts_it),
        cmocka_unit_test(on_policy_the_slope_has_a_closed_form),
        cmocka_unit_test(slopes_are_those_of_finite_differences),
        cmocka_unit_test(the_distance_is_the_angle_between_tangents_with_a_sign),
        cmocka_unit_test(the_fields_of_figures_2_and_8_have_the_reference_shares),
        cmocka_unit_test(the_field_of_A_is_symmetric_about_its_centre),
        cmocka_unit_test(unstable_cells_are_masked),
        cmocka_unit_test(two_points_of_the_fields_are_the_reference_values),
        cmocka_unit_test(the_fields_of_figure_9_have_the_reference_shares),
        cmocka_unit_test(the_means_of_figure_1b_are_the_reference_values),
        cmocka_unit_test(on_policy_the_corrected_integrator_is_its_recording),
        cmocka_unit_test(the_integrators_noise_has_its_size),
        cmocka_unit_test(the_transition_models_walk_the_1d_example),
        cmocka_unit_test(the_transition_models_walk_the_double_integrator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
