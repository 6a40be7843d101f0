/* SPDX-License-Identifier: MIT */
/* Norm-optimal ILC: the numbers of section 7 of the reference, and the ways in which its forms are
 * the same thing. */
#include "study/ilc/ilc.h"

#include "model/linear.h"
#include "num/solve/dense.h"
#include "opc/mem.h"
#include "opc/rng.h"
#include "study/ilc/ilc_opc.h"
#include "test.h"

static const double PI = 3.14159265358979323846;

static void draw(uint32_t stream, int n, double *x)
{
    struct opc_rng r = opc_rng_stream(7, OPC_USE_TEST, 2, stream);
    for (int i = 0; i < n; i++)
        x[i] = 2.0 * opc_rng_unit_double(&r) - 1.0;
}

static double furthest(int n, const double *a, const double *b)
{
    double max = 0.0;
    for (int i = 0; i < n; i++)
        max = fmax(max, fabs(a[i] - b[i]));
    return max;
}

/* s_{t+1} = A_t s_t + B_t a_t + w_t, a step at a time; w may be NULL. */
static void play(int n, int m, int T, const double *A, const double *B, const double *w,
                 const double *s0, const double *u, double *s)
{
    memcpy(s, s0, (size_t)n * sizeof *s);
    for (int t = 0; t < T; t++)
        for (int i = 0; i < n; i++)
            s[(t + 1) * n + i] = opc_dense_dot(n, A + (t * n + i) * n, s + t * n) +
                                 opc_dense_dot(m, B + (t * n + i) * m, u + t * m) +
                                 (w ? w[t * n + i] : 0.0);
}

/* ---- 7.1 ------------------------------------------------------------------------------------- */

/* The display of the paper: A_0 A_1 ... instead of ... A_2 A_1 behind B_j. */
static void lift_as_displayed(int n, int m, int T, const double *A, const double *B, double *F)
{
    const int columns = T * m;
    memset(F, 0, (size_t)((T + 1) * n * columns) * sizeof *F);
    for (int j = 0; j < T; j++)
        for (int i = j + 1; i <= T; i++) {
            double product[16] = {0}, next[16], block[16];
            for (int k = 0; k < n; k++)
                product[k * n + k] = 1.0;
            for (int k = 0; k < i - j - 1; k++) {
                opc_dense_mul(n, n, n, product, A + k * n * n, next);
                memcpy(product, next, sizeof product);
            }
            opc_dense_mul(n, n, m, product, B + j * n * m, block);
            for (int r = 0; r < n; r++)
                for (int c = 0; c < m; c++)
                    F[(i * n + r) * columns + j * m + c] = block[r * m + c];
        }
}

static void the_lifted_system_is_the_recursion_and_the_paper_s_display_is_not(void **state)
{
    (void)state;
    enum { n = 2, m = 1, T = 5, N = (T + 1) * n };
    double A[T * n * n], B[T * n * m], F[N * T * m], u[T * m], d[N], s[N], got[N];
    draw(1, T * n * n, A);
    draw(2, T * n * m, B);
    draw(3, T * m, u);
    play(n, m, T, A, B, NULL, (double[]){0, 0}, u, s);
    opc_lift(n, m, T, A, B, F);
    opc_dense_mul(N, T * m, 1, F, u, got);
    assert_doubles_near(got, s, N, 1e-15);
    for (int i = 0; i < n * T * m; i++)
        assert_true(F[i] == 0.0); /* nothing acts on s_0 */

    lift_as_displayed(n, m, T, A, B, F);
    opc_dense_mul(N, T * m, 1, F, u, got);
    assert_true(furthest(N, got, s) > 0.1);

    /* the same blocks when A and B are constant */
    for (int t = 1; t < T; t++) {
        memcpy(A + t * n * n, A, n * n * sizeof *A);
        memcpy(B + t * n * m, B, n * m * sizeof *B);
    }
    play(n, m, T, A, B, NULL, (double[]){0, 0}, u, s);
    lift_as_displayed(n, m, T, A, B, F);
    opc_dense_mul(N, T * m, 1, F, u, got);
    assert_doubles_near(got, s, N, 1e-15);

    /* a start that is not 0 goes into d */
    const double s0[] = {0.7, -1.3};
    play(n, m, T, A, B, NULL, s0, u, s);
    opc_lift(n, m, T, A, B, F);
    opc_lift_start(n, T, A, s0, d);
    opc_dense_mul(N, T * m, 1, F, u, got);
    for (int i = 0; i < N; i++)
        got[i] += d[i];
    assert_doubles_near(got, s, N, 1e-15);
}

static void several_actions_and_process_noise_are_lifted_alike(void **state)
{
    (void)state;
    enum { n = 3, m = 2, T = 7, N = (T + 1) * n };
    double A[T * n * n], B[T * n * m], I[T * n * n] = {0}, w[T * n], u[T * m], s0[n];
    double F[N * T * m], L[N * T * n], d[N], s[N], got[N], by_noise[N];
    draw(11, T * n * n, A);
    draw(12, T * n * m, B);
    draw(13, T * m, u);
    draw(14, T * n, w);
    draw(15, n, s0);
    for (int i = 0; i < T * n; i++)
        I[i * n + i % n] = 1.0;
    play(n, m, T, A, B, w, s0, u, s);
    opc_lift(n, m, T, A, B, F);
    opc_lift(n, n, T, A, I, L);
    opc_lift_start(n, T, A, s0, d);
    opc_dense_mul(N, T * m, 1, F, u, got);
    opc_dense_mul(N, T * n, 1, L, w, by_noise);
    for (int i = 0; i < N; i++)
        got[i] += d[i] + by_noise[i];
    assert_doubles_near(got, s, N, 1e-14);
}

/* ---- 7.2: the double integrator and a plant that is not quite one --------------------------- */

enum { T = 20, n = 2, m = 1, N = (T + 1) * n, U = T * m };

struct task {
    double A[T * n * n], B[T * n * m]; /* the model */
    double A_true[T * n * n], B_true[T * n * m];
    double ref[N], M[N], W[U], s0[n];
    struct opc_ilc *ilc;
};

static void task_open(struct task *k)
{
    static const double model[] = {1, .1, 0, 1}, push[] = {.005, .1};
    static const double plant[] = {1, .1, -.03, .98}, real_push[] = {.005, .08};
    struct opc_err err = {0};
    memset(k, 0, sizeof *k);
    for (int t = 0; t < T; t++) {
        memcpy(k->A + t * n * n, model, sizeof model);
        memcpy(k->B + t * n * m, push, sizeof push);
        memcpy(k->A_true + t * n * n, plant, sizeof plant);
        memcpy(k->B_true + t * n * m, real_push, sizeof real_push);
        k->W[t] = 1e-3;
    }
    for (int t = 0; t <= T; t++) {
        k->ref[2 * t] = sin(PI * t / T) * sin(PI * t / T);
        k->ref[2 * t + 1] = 2 * PI / (T * .1) * sin(PI * t / T) * cos(PI * t / T);
    }
    for (int i = 0; i < N; i++)
        k->M[i] = 1.0;
    assert_ok(opc_ilc_create(n, m, T, k->M, k->W, &k->ilc, &err), &err);
    assert_ok(opc_ilc_model(k->ilc, k->A, k->B, &err), &err);
}

static void try(const struct task *k, const double *u, double *s, double *e)
{
    play(n, m, T, k->A_true, k->B_true, NULL, k->s0, u, s);
    for (int i = 0; i < N; i++)
        e[i] = k->ref[i] - s[i];
}

static void the_error_falls_as_the_reference_says(void **state)
{
    (void)state;
    static const double RMS[] = {.875242, .241604, .096707, .039294, .016026,
                                 .009156, .008030, .007914, .007904};
    struct task k;
    double u[U] = {0}, s[N], e[N];
    task_open(&k);
    for (int i = 0; i < 9; i++) {
        try(&k, u, s, e);
        const double rms = opc_dense_norm(N, e) / sqrt(N);
        assert_doubles_near(&rms, &RMS[i], 1, 5.0e-7);
        opc_ilc_update(k.ilc, e, u, u);
    }
    opc_ilc_destroy(k.ilc);
}

/* (F^T F + C)^-1 (F^T (s_ref - d) + C u) is the incremental form; the paper's display leaves C u
 * out, which from the second update on is another step. */
static void the_first_form_needs_the_term_the_paper_leaves_out(void **state)
{
    (void)state;
    struct task k;
    double u[U] = {0}, s[N], e[N], d[N], next[U], H[U * U], corrected[U], displayed[U];
    task_open(&k);
    const double *F = opc_ilc_lifted(k.ilc);
    opc_dense_mul_ta(U, N, U, F, F, H);
    for (int j = 0; j < U; j++)
        H[j * U + j] += k.W[j];
    assert_true(opc_chol_factor(U, H));
    for (int i = 0; i < 6; i++) {
        try(&k, u, s, e);
        opc_ilc_update(k.ilc, e, u, next);
        opc_ilc_disturbance(k.ilc, s, u, d);
        for (int j = 0; j < N; j++)
            e[j] = k.ref[j] - d[j];
        opc_dense_mul_ta(U, N, 1, F, e, displayed);
        for (int j = 0; j < U; j++)
            corrected[j] = displayed[j] + k.W[j] * u[j];
        opc_chol_solve(U, H, 1, displayed);
        opc_chol_solve(U, H, 1, corrected);
        assert_doubles_near(corrected, next, U, 1e-12);
        const double gap = furthest(U, displayed, next);
        if (i == 0)
            assert_true(gap < 1e-12); /* u = 0 */
        else
            assert_true(gap > 0.38 && gap < 0.56);
        memcpy(u, next, sizeof u);
    }
    opc_ilc_destroy(k.ilc);
}

/* e' = (I - F_true (F^T M F + W)^-1 F^T M) e, and u' is a minimum: its gradient is 0. */
static void the_update_is_the_minimum_with_weights_that_differ(void **state)
{
    (void)state;
    struct task k;
    double u[U], s[N], e[N], next[U], d[N], predicted[N];
    task_open(&k);
    opc_ilc_destroy(k.ilc);
    for (int i = 0; i < N; i++)
        k.M[i] = i % 2 ? 0.25 : 3.0 + i;
    for (int j = 0; j < U; j++)
        k.W[j] = 1e-2 * (1 + j);
    k.s0[0] = 0.3;
    struct opc_err err = {0};
    assert_ok(opc_ilc_create(n, m, T, k.M, k.W, &k.ilc, &err), &err);
    assert_ok(opc_ilc_model(k.ilc, k.A, k.B, &err), &err);
    draw(21, U, u);
    try(&k, u, s, e);
    opc_ilc_update(k.ilc, e, u, next);
    opc_ilc_disturbance(k.ilc, s, u, d);
    opc_ilc_predict(k.ilc, next, d, predicted);
    const double *F = opc_ilc_lifted(k.ilc);
    for (int j = 0; j < U; j++) {
        double slope = k.W[j] * (next[j] - u[j]);
        for (int i = 0; i < N; i++)
            slope -= F[i * U + j] * k.M[i] * (k.ref[i] - predicted[i]);
        assert_true(fabs(slope) < 1e-11);
    }
    opc_ilc_destroy(k.ilc);
}

static void without_weights_there_is_no_update(void **state)
{
    (void)state;
    struct opc_err err = {0};
    struct opc_ilc *ilc;
    const double M[] = {1, 1}, W[] = {0}, A[] = {1}, B[] = {0};
    assert_ok(opc_ilc_create(1, 1, 1, M, W, &ilc, &err), &err);
    assert_fails(opc_ilc_model(ilc, A, B, &err), OPC_EUSER, &err, "weight_action");
    opc_ilc_destroy(ilc);
}

/* ---- the same as OPC --------------------------------------------------------------------------
 * In double: eq. 5 with f = A s + B a rolled out beside the trial is F u' + d, and its adjoint says
 * that the ILC update is where the imagined return is best. */
static void the_corrected_model_rolls_out_to_the_lifted_prediction(void **state)
{
    (void)state;
    struct task k;
    double u[U] = {0}, s[N], e[N], d[N], next[U], lifted[N], rolled[N];
    task_open(&k);
    for (int trial = 0; trial < 5; trial++) {
        try(&k, u, s, e);
        opc_ilc_update(k.ilc, e, u, next);
        opc_ilc_disturbance(k.ilc, s, u, d);
        opc_ilc_predict(k.ilc, next, d, lifted);
        memcpy(rolled, s, n * sizeof *s);
        for (int t = 0; t < T; t++)
            for (int i = 0; i < n; i++) {
                double change = k.B[i] * (next[t] - u[t]);
                for (int j = 0; j < n; j++)
                    change += k.A[i * n + j] * (rolled[t * n + j] - s[t * n + j]);
                rolled[(t + 1) * n + i] = s[(t + 1) * n + i] + change;
            }
        assert_doubles_near(rolled, lifted, N, 1e-13);

        /* p_t = cost of s_t and all after it, by s_t; the cost by a_t is then 0 */
        double p[n] = {0}, before[n];
        for (int t = T - 1; t >= 0; t--) {
            for (int i = 0; i < n; i++)
                p[i] += rolled[(t + 1) * n + i] - k.ref[(t + 1) * n + i];
            assert_true(fabs(opc_dense_dot(n, k.B, p) + k.W[t] * (next[t] - u[t])) < 1e-13);
            opc_dense_mul_ta(n, n, 1, k.A, p, before);
            memcpy(p, before, sizeof p);
        }
        memcpy(u, next, sizeof u);
    }
    opc_ilc_destroy(k.ilc);
}

/* With the library's own eq. 5, which is in float: rollouts of up to 20 steps lose a few roundings
 * of 6e-8 in effects of size 1, and (F^T F + W)^-1 with W = 1e-3 makes 1e3 times as much of it. */
static void planning_on_the_library_s_eq_5_gives_the_same_update(void **state)
{
    (void)state;
    struct task k;
    double u[U] = {0}, s[N], e[N], next[U], by_opc[U];
    struct opc_err err = {0};
    task_open(&k);
    for (int trial = 0; trial < 9; trial++) {
        try(&k, u, s, e);
        opc_ilc_update(k.ilc, e, u, next);
        assert_ok(opc_ilc_by_opc(n, m, T, k.A, k.B, s, u, k.ref, k.M, k.W, by_opc, &err), &err);
        assert_doubles_near(by_opc, next, U, 1e-4);
        assert_true(trial > 0 || furthest(U, next, u) > 1.0); /* a step worth comparing */
        memcpy(u, next, sizeof u);
    }
    opc_ilc_destroy(k.ilc);
}

/* ---- 7.3 ------------------------------------------------------------------------------------- */

/* Two states, two actions, nothing about it linear. */
static void bent(void *ctx, const double *s, const double *a, double *next)
{
    const double gain = *(const double *)ctx;
    next[0] = s[0] + 0.1 * s[1] * s[1] - 0.2 * sin(s[0]) + 0.05 * a[0] * a[1];
    next[1] = gain * (s[1] * cos(s[0]) + tanh(a[0]) - 0.3 * a[1]);
}

static void central_differences_give_the_derivatives(void **state)
{
    (void)state;
    enum { steps = 4 };
    double s[(steps + 1) * 2], u[steps * 2], A[steps * 4], B[steps * 4], gain = 0.7;
    struct opc_err err = {0};
    draw(31, (steps + 1) * 2, s);
    draw(32, steps * 2, u);
    assert_ok(opc_linearise(2, 2, steps, bent, &gain, s, u, A, B, &err), &err);
    for (int t = 0; t < steps; t++) {
        const double *x = s + 2 * t, *a = u + 2 * t, th = tanh(a[0]);
        const double wantA[] = {1 - 0.2 * cos(x[0]), 0.2 * x[1], -gain * x[1] * sin(x[0]),
                                gain * cos(x[0])};
        const double wantB[] = {0.05 * a[1], 0.05 * a[0], gain * (1 - th * th), -0.3 * gain};
        assert_doubles_near(A + 4 * t, wantA, 4, 1e-9);
        assert_doubles_near(B + 4 * t, wantB, 4, 1e-9);
    }
}

static void a_learned_model_is_asked_for_its_own_derivatives(void **state)
{
    (void)state;
    enum { steps = 3 };
    struct opc_predictor *p;
    struct opc_err err = {0};
    double A[steps], B[steps];
    assert_ok(opc_linear_create(0.9, 0.4, &p, &err), &err);
    assert_ok(opc_linearise_learned(p, steps, (double[]){-2}, (double[]){6}, (double[]){1, 2, 3, 4},
                                    (double[]){0, 1, 2}, A, B, NULL, &err),
              &err);
    for (int t = 0; t < steps; t++) {
        assert_true(A[t] == (double)0.9f);
        assert_true(B[t] == (double)0.4f / 4); /* actions in [-1, 1] stand for [-2, 6] */
    }
    opc_predictor_destroy(p);
    static const struct opc_predictor_type mute = {.name = "mute"};
    struct opc_predictor silent = {.type = &mute, .obs = 1, .act = 1, .members = 1, .elites = 1};
    assert_fails(opc_linearise_learned(&silent, 1, (double[]){-1}, (double[]){1}, (double[]){0},
                                       (double[]){0}, A, B, NULL, &err),
                 OPC_EABSENT, &err, "mute");
}

/* The model's bias, any term that does not depend on s and a, has no effect at all: s is measured.
 */
static void what_the_model_adds_everywhere_does_not_matter(void **state)
{
    (void)state;
    struct task k;
    double u[U], s[N], e[N], one[U], other[U];
    struct opc_err err = {0};
    task_open(&k);
    draw(41, U, u);
    try(&k, u, s, e);
    for (int i = 0; i < N; i++)
        s[i] += 5.0; /* seen, and aimed at, with the same bias */
    opc_ilc_update(k.ilc, e, u, one);
    double d[N], shifted[N];
    opc_ilc_disturbance(k.ilc, s, u, d);
    for (int i = 0; i < N; i++)
        shifted[i] = k.ref[i] + 5.0;
    struct opc_ilc_kept kept;
    assert_ok(opc_ilc_update_within(k.ilc, shifted, d, u, &(struct opc_ilc_limits){0}, other, &kept,
                                    &err),
              &err);
    assert_doubles_near(one, other, U, 1e-11);
    opc_ilc_destroy(k.ilc);
}

/* ---- 7.4 ------------------------------------------------------------------------------------- */

static double residual(struct opc_qp_kkt k)
{
    return fmax(fmax(k.stationarity, k.primal), fmax(k.dual, k.complementarity));
}

static void limits_that_do_not_bind_change_nothing(void **state)
{
    (void)state;
    struct task k;
    double u[U] = {0}, s[N], e[N], d[N], next[U], within[U];
    double u_low[U], u_high[U], s_low[N], s_high[N], G[N] = {0}, h[] = {1e3};
    struct opc_err err = {0};
    task_open(&k);
    for (int j = 0; j < U; j++)
        u_low[j] = -1e3, u_high[j] = 1e3;
    for (int i = 0; i < N; i++)
        s_low[i] = -1e3, s_high[i] = 1e3;
    G[3] = 1.0;
    const struct opc_ilc_limits limits = {u_low, u_high, s_low, s_high, 1, G, h, 1e6};
    for (int trial = 0; trial < 4; trial++) {
        struct opc_ilc_kept kept;
        try(&k, u, s, e);
        opc_ilc_update(k.ilc, e, u, next);
        opc_ilc_disturbance(k.ilc, s, u, d);
        assert_ok(opc_ilc_update_within(k.ilc, k.ref, d, u, &limits, within, &kept, &err), &err);
        assert_doubles_near(within, next, U, 1e-11);
        assert_int_equal(kept.qp.active, 0);
        memcpy(u, next, sizeof u);
    }
    opc_ilc_destroy(k.ilc);
}

/* All kinds at once, over several trials: every limit is kept by the prediction, KKT holds, and
 * each kind binds somewhere. */
static void limits_that_bind_are_kept_and_kkt_holds(void **state)
{
    (void)state;
    struct task k;
    double u[U] = {0}, s[N], e[N], d[N], next[U], predicted[N];
    double u_low[U], u_high[U], s_low[N], s_high[N], G[2 * N] = {0}, h[] = {0.75, 2.2};
    struct opc_err err = {0};
    int at_action = 0, at_state = 0, at_face = 0, at_trust = 0;
    task_open(&k);
    for (int j = 0; j < U; j++)
        u_low[j] = -5, u_high[j] = 4;
    for (int i = 0; i < N; i++) {
        s_low[i] = -INFINITY;
        s_high[i] = i % 2 ? 1.3 : INFINITY; /* no faster than this */
    }
    G[2 * 9] = 1.0;                                /* x_9 <= 0.75 */
    G[N + 2 * 12] = 1.0, G[N + 2 * 12 + 1] = -2.0; /* x_12 - 2 v_12 <= 2.2 */
    const struct opc_ilc_limits limits = {u_low, u_high, s_low, s_high, 2, G, h, 9.0};
    for (int trial = 0; trial < 8; trial++) {
        struct opc_ilc_kept kept;
        try(&k, u, s, e);
        opc_ilc_disturbance(k.ilc, s, u, d);
        assert_ok(opc_ilc_update_within(k.ilc, k.ref, d, u, &limits, next, &kept, &err), &err);
        assert_true(residual(kept.kkt) < 1e-9);
        assert_true(kept.qp.active > 0);
        opc_ilc_predict(k.ilc, next, d, predicted);
        for (int j = 0; j < U; j++) {
            assert_true(next[j] >= -5 - 1e-9 && next[j] <= 4 + 1e-9);
            assert_true(fabs(next[j] - u[j]) <= 3 + 1e-9);
            at_action += fabs(next[j] + 5) < 1e-9 || fabs(next[j] - 4) < 1e-9;
            at_trust += fabs(fabs(next[j] - u[j]) - 3) < 1e-9;
        }
        for (int i = 1; i < N; i += 2) {
            assert_true(predicted[i] <= 1.3 + 1e-9);
            at_state += fabs(predicted[i] - 1.3) < 1e-9;
        }
        for (int f = 0; f < 2; f++) {
            const double by = opc_dense_dot(N, G + f * N, predicted) - h[f];
            assert_true(by <= 1e-9);
            at_face += fabs(by) < 1e-9;
        }
        memcpy(u, next, sizeof u);
    }
    assert_true(at_action && at_state && at_face && at_trust);
    opc_ilc_destroy(k.ilc);
}

static void limits_nobody_can_keep_are_named_with_their_time(void **state)
{
    (void)state;
    struct task k;
    double u[U] = {0}, s[N], e[N], d[N], next[U], low[N], high[N], u_low[U], u_high[U];
    struct opc_ilc_kept kept;
    struct opc_err err = {0};
    task_open(&k);
    try(&k, u, s, e);
    opc_ilc_disturbance(k.ilc, s, u, d);
    for (int i = 0; i < N; i++)
        low[i] = 0.5, high[i] = 2;
    struct opc_ilc_limits limits = {.s_low = low, .s_high = high};
    assert_fails(opc_ilc_update_within(k.ilc, k.ref, d, u, &limits, next, &kept, &err), OPC_EUSER,
                 &err, "[0.5, 2]");
    assert_mentions(&err, "t = 0");
    for (int i = 0; i < N; i++)
        low[i] = -INFINITY, high[i] = INFINITY;
    low[2 * 20] = 1.5;
    for (int j = 0; j < U; j++)
        u_low[j] = -0.1, u_high[j] = 0.1;
    limits.u_low = u_low, limits.u_high = u_high;
    assert_fails(opc_ilc_update_within(k.ilc, k.ref, d, u, &limits, next, &kept, &err), OPC_EUSER,
                 &err, "[-0.1, 0.1]");
    u_low[4] = 0.05, u_high[4] = 0.1;
    limits = (struct opc_ilc_limits){.u_low = u_low, .u_high = u_high, .trust = 1e-4};
    assert_fails(opc_ilc_update_within(k.ilc, k.ref, d, u, &limits, next, &kept, &err), OPC_EUSER,
                 &err, "[0.05, 0.01]");
    assert_mentions(&err, "t = 4");
    double G[N] = {0}, h[] = {-1};
    G[1] = 1.0; /* v_0 <= -1 */
    limits = (struct opc_ilc_limits){.faces = 1, .G = G, .h = h};
    assert_fails(opc_ilc_update_within(k.ilc, k.ref, d, u, &limits, next, &kept, &err), OPC_EUSER,
                 &err, "polytope");
    assert_mentions(&err, "t = 0");
    opc_ilc_destroy(k.ilc);
}

/* With two actions a step moves within the square inside the circle of the trust region. */
static void the_trust_region_holds_for_several_actions(void **state)
{
    (void)state;
    enum { steps = 3, states = 2, actions = 2, all = (steps + 1) * states };
    double A[steps * 4], B[steps * 4], M[all], W[steps * 2], u[steps * 2] = {0}, next[steps * 2];
    double ref[all], d[all] = {0};
    struct opc_ilc *ilc;
    struct opc_ilc_kept kept;
    struct opc_err err = {0};
    draw(51, steps * 4, A);
    draw(52, steps * 4, B);
    for (int i = 0; i < all; i++)
        M[i] = 1, ref[i] = 10;
    for (int j = 0; j < steps * 2; j++)
        W[j] = 1e-3;
    assert_ok(opc_ilc_create(states, actions, steps, M, W, &ilc, &err), &err);
    assert_ok(opc_ilc_model(ilc, A, B, &err), &err);
    assert_ok(opc_ilc_update_within(ilc, ref, d, u, &(struct opc_ilc_limits){.trust = 0.02}, next,
                                    &kept, &err),
              &err);
    for (int t = 0; t < steps; t++)
        assert_true(next[2 * t] * next[2 * t] + next[2 * t + 1] * next[2 * t + 1] <= 0.02 + 1e-12);
    assert_true(kept.qp.active > 0 && residual(kept.kkt) < 1e-10);
    opc_ilc_destroy(ilc);
}

/* ---- 7.5 ------------------------------------------------------------------------------------- */

static struct opc_ilc_filter *filter_of(int size)
{
    struct opc_ilc_filter *f;
    struct opc_err err = {0};
    assert_ok(opc_ilc_filter_create(size, &f, &err), &err);
    return f;
}

/* Xi -> 0: K = I, d is what was seen last, and the update is the plain one. */
static void without_noise_the_filter_is_plain_ilc(void **state)
{
    (void)state;
    struct task k;
    static double Omega[N * N], Xi[N * N];
    double u[U] = {0}, s[N], e[N], y[N], next[U], estimated[U];
    struct opc_err err = {0};
    task_open(&k);
    struct opc_ilc_filter *f = filter_of(N);
    for (int i = 0; i < N; i++) {
        Omega[i * N + i] = 1e-4 * (1 + i);
        f->P[i * N + i] = 2.0;
    }
    f->known = true;
    for (int trial = 0; trial < 5; trial++) {
        try(&k, u, s, e);
        opc_ilc_update(k.ilc, e, u, next);
        opc_ilc_disturbance(k.ilc, s, u, y);
        assert_ok(opc_ilc_filter_see(f, Omega, Xi, y, &err), &err);
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                assert_true(fabs(f->K[i * N + j] - (i == j)) < 1e-12);
        assert_doubles_near(f->d, y, N, 1e-12);
        opc_ilc_predict(k.ilc, u, f->d, e);
        for (int i = 0; i < N; i++)
            e[i] = k.ref[i] - e[i];
        opc_ilc_update(k.ilc, e, u, estimated);
        assert_doubles_near(estimated, next, U, 1e-10);
        memcpy(u, next, sizeof u);
    }
    opc_ilc_filter_destroy(f);
    opc_ilc_destroy(k.ilc);
}

/* Omega = 0, P_0 = infinity, one number: after k trials it is the mean of what was seen. */
static void without_drift_the_filter_is_the_running_mean(void **state)
{
    (void)state;
    const double Omega = 0.0, Xi = 0.3;
    double y[40], sum = 0.0;
    struct opc_err err = {0};
    struct opc_ilc_filter *f = filter_of(1);
    draw(61, 40, y);
    for (int i = 0; i < 40; i++) {
        assert_ok(opc_ilc_filter_see(f, &Omega, &Xi, &y[i], &err), &err);
        sum += y[i];
        assert_true(fabs(f->d[0] - sum / (i + 1)) < 1e-14);
        assert_true(fabs(f->K[0] - 1.0 / (i + 1)) < 1e-14);
        assert_true(fabs(f->P[0] - Xi / (i + 1)) < 1e-14);
    }
    opc_ilc_filter_destroy(f);

    /* a very large P_0 is on its way there */
    f = filter_of(1);
    f->known = true;
    f->P[0] = 1e9;
    sum = 0.0;
    for (int i = 0; i < 5; i++) {
        assert_ok(opc_ilc_filter_see(f, &Omega, &Xi, &y[i], &err), &err);
        sum += y[i];
        assert_true(fabs(f->d[0] - sum / (i + 1)) < 1e-8);
    }
    opc_ilc_filter_destroy(f);
}

/* As where a trial starts: the sensors see it without noise. The rest is filtered as if it were not
 * there. */
static void what_is_known_and_measured_exactly_is_taken_as_measured(void **state)
{
    (void)state;
    const double Omega[4] = {0}, Xi[4] = {0, 0, 0, 0.3};
    double sum = 0.0;
    struct opc_err err = {0};
    struct opc_ilc_filter *f = filter_of(2);
    for (int i = 0; i < 10; i++) {
        const double y[2] = {i == 5 ? 0.75 : 0.5, 0.1 * i * i};
        assert_ok(opc_ilc_filter_see(f, Omega, Xi, y, &err), &err);
        sum += y[1];
        assert_true(f->d[0] == y[0] && f->P[0] == 0 && f->P[1] == 0);
        assert_true(fabs(f->d[1] - sum / (i + 1)) < 1e-13);
        assert_true(fabs(f->P[3] - 0.3 / (i + 1)) < 1e-14);
    }
    opc_ilc_filter_destroy(f);
}

static void the_gain_becomes_the_stationary_one(void **state)
{
    (void)state;
    const double Omega = 0.02, Xi = 0.5, y = 1.0;
    const double P = (Omega + sqrt(Omega * Omega + 4 * Omega * Xi)) / 2;
    struct opc_err err = {0};
    struct opc_ilc_filter *f = filter_of(1);
    for (int i = 0; i < 200; i++)
        assert_ok(opc_ilc_filter_see(f, &Omega, &Xi, &y, &err), &err);
    assert_true(fabs(f->K[0] - P / (P + Xi)) < 1e-14);
    assert_true(fabs(f->P[0] + Omega - P) < 1e-14);
    opc_ilc_filter_destroy(f);
}

/* Several numbers with correlated noise, against the textbook's order of operations. */
static void with_covariances_it_is_the_textbook_s_filter(void **state)
{
    (void)state;
    enum { D = 4 };
    double root[D * D], Omega[D * D], Xi[D * D], P[D * D] = {0}, d[D] = {0}, y[D];
    struct opc_err err = {0};
    struct opc_ilc_filter *f = filter_of(D);
    draw(71, D * D, root);
    opc_dense_mul_tb(D, D, D, root, root, Omega);
    draw(72, D * D, root);
    opc_dense_mul_tb(D, D, D, root, root, Xi);
    for (int i = 0; i < D; i++) {
        Xi[i * D + i] += 0.1;
        P[i * D + i] = f->P[i * D + i] = 3.0;
    }
    f->known = true;
    for (uint32_t trial = 0; trial < 6; trial++) {
        double S[D * D], inverse[D * D] = {0}, K[D * D], I_K[D * D], after[D * D], gap[D];
        draw(80 + trial, D, y);
        for (int i = 0; i < D * D; i++) {
            P[i] += Omega[i];
            S[i] = P[i] + Xi[i];
        }
        for (int i = 0; i < D; i++)
            inverse[i * D + i] = 1.0;
        assert_true(opc_chol_factor(D, S));
        opc_chol_solve(D, S, D, inverse);
        opc_dense_mul(D, D, D, P, inverse, K);
        for (int i = 0; i < D; i++)
            gap[i] = y[i] - d[i];
        for (int i = 0; i < D; i++) {
            d[i] += opc_dense_dot(D, K + i * D, gap);
            for (int j = 0; j < D; j++)
                I_K[i * D + j] = (i == j) - K[i * D + j];
        }
        opc_dense_mul(D, D, D, I_K, P, after);
        memcpy(P, after, sizeof P);
        assert_ok(opc_ilc_filter_see(f, Omega, Xi, y, &err), &err);
        assert_doubles_near(f->K, K, D * D, 1e-12);
        assert_doubles_near(f->d, d, D, 1e-12);
        assert_doubles_near(f->P, P, D * D, 1e-12);
    }
    const double none[D * D] = {0};
    for (int i = 0; i < D * D; i++)
        f->P[i] = 1; /* all entries move together, and are measured exactly */
    assert_fails(opc_ilc_filter_see(f, none, none, y, &err), OPC_EUSER, &err, "sensor_noise");
    opc_ilc_filter_destroy(f);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int everything(void *ctx, struct opc_err *err)
{
    struct task *k = ctx;
    struct opc_ilc *ilc = NULL;
    struct opc_ilc_filter *f = NULL;
    struct opc_ilc_kept kept;
    struct opc_predictor *p = NULL;
    double u[U] = {0}, s[N] = {0}, next[U], gain = 1, A[4], B[4];
    int code = opc_ilc_create(n, m, T, k->M, k->W, &ilc, err);
    if (!code)
        code = opc_ilc_model(ilc, k->A, k->B, err);
    if (!code)
        code = opc_ilc_update_within(ilc, k->ref, s, u, &(struct opc_ilc_limits){.trust = 1}, next,
                                     &kept, err);
    if (!code)
        code = opc_ilc_filter_create(N, &f, err);
    if (!code)
        code = opc_ilc_by_opc(n, m, T, k->A, k->B, s, u, k->ref, k->M, k->W, next, err);
    if (!code)
        code = opc_linearise(2, 2, 1, bent, &gain, s, u, A, B, err);
    if (!code)
        code = opc_linear_create(1, 1, &p, err);
    if (!code)
        code = opc_linearise_learned(p, 1, (double[]){-1}, (double[]){1}, s, u, A, B, NULL, err);
    opc_predictor_destroy(p);
    opc_ilc_filter_destroy(f);
    opc_ilc_destroy(ilc);
    return code;
}

static void lack_of_memory_is_reported(void **state)
{
    (void)state;
    struct task k;
    task_open(&k);
    assert_survives_lack_of_memory(everything, &k);
    opc_ilc_destroy(k.ilc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lifted_system_is_the_recursion_and_the_paper_s_display_is_not),
        cmocka_unit_test(several_actions_and_process_noise_are_lifted_alike),
        cmocka_unit_test(the_error_falls_as_the_reference_says),
        cmocka_unit_test(the_first_form_needs_the_term_the_paper_leaves_out),
        cmocka_unit_test(the_update_is_the_minimum_with_weights_that_differ),
        cmocka_unit_test(without_weights_there_is_no_update),
        cmocka_unit_test(the_corrected_model_rolls_out_to_the_lifted_prediction),
        cmocka_unit_test(planning_on_the_library_s_eq_5_gives_the_same_update),
        cmocka_unit_test(central_differences_give_the_derivatives),
        cmocka_unit_test(a_learned_model_is_asked_for_its_own_derivatives),
        cmocka_unit_test(what_the_model_adds_everywhere_does_not_matter),
        cmocka_unit_test(limits_that_do_not_bind_change_nothing),
        cmocka_unit_test(limits_that_bind_are_kept_and_kkt_holds),
        cmocka_unit_test(limits_nobody_can_keep_are_named_with_their_time),
        cmocka_unit_test(the_trust_region_holds_for_several_actions),
        cmocka_unit_test(without_noise_the_filter_is_plain_ilc),
        cmocka_unit_test(without_drift_the_filter_is_the_running_mean),
        cmocka_unit_test(what_is_known_and_measured_exactly_is_taken_as_measured),
        cmocka_unit_test(the_gain_becomes_the_stationary_one),
        cmocka_unit_test(with_covariances_it_is_the_textbook_s_filter),
        cmocka_unit_test(lack_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
