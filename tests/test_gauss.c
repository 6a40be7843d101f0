/* SPDX-License-Identifier: MIT */
#include "num/gauss.h"

#include "num/vec.h"
#include "test_num.h"

enum { P = OPC_PANEL, MAX = 9 }; /* MAX dimensions */

static const int DIMS[] = {1, 2, 3, 8, MAX};

static struct opc_arena scratch_of(size_t need)
{
    struct opc_err err = {0};
    struct opc_arena a;
    assert_ok(opc_arena_create(need, &a, &err), &err); /* exactly what was asked for */
    return a;
}

static double softplus(double x)
{
    return (x > 0.0 ? x : 0.0) + log1p(exp(-fabs(x)));
}

/* ---- bounded log-variance -------------------------------------------------------------------- */

static double bounded(double raw, double lmax, double lmin)
{
    const double l1 = lmax - softplus(lmax - raw);
    return lmin + softplus(l1 - lmin);
}

/* algorithms.md 1.3 */
static void bounds_give_the_known_values(void **state)
{
    (void)state;
    static const float RAW[] = {-15.0f, -10.0f, -3.0f, 0.0f, 0.5f, 5.0f};
    static const float WANT[] = {-9.993285f, -9.306867f, -3.028811f,
                                 -0.474004f, -0.193092f, 0.488980f};
    const float lmax = 0.5f, lmin = -10.0f;
    struct opc_arena scratch = scratch_of(opc_gauss_need(1));
    float raw[P] = {0}, l[P];
    memcpy(raw, RAW, sizeof RAW);
    opc_gauss_bound(1, &lmax, &lmin, raw, l, &scratch);
    assert_floats_near(l, WANT, 6, 1.5e-6); /* six decimals, and 1e-6 is an ULP of 10 */
    assert_int_equal(scratch.used, 0);
    opc_arena_destroy(&scratch);
}

static void bounds_hold_for_any_network_output(void **state)
{
    (void)state;
    const float lmax[2] = {0.5f, -1.0f}, lmin[2] = {-10.0f, -3.0f};
    struct opc_arena scratch = scratch_of(opc_gauss_need(2));
    for (int e = -20; e <= 38; e++) {
        float raw[2 * P], l[2 * P];
        for (int k = 0; k < 2 * P; k++)
            raw[k] = (k % 2 ? -1.0f : 1.0f) * (float)pow(10.0, e) * (1.0f + (float)k / 64.0f);
        opc_gauss_bound(2, lmax, lmin, raw, l, &scratch);
        for (int k = 0; k < 2 * P; k++) {
            /* Softly: a bound that softplus(lmax - lmin) leaves a little above lmax. */
            const double max = bounded(1e30, lmax[k / P], lmin[k / P]);
            assert_true(l[k] >= lmin[k / P] && l[k] <= max + 1e-6);
            assert_true(fabs(l[k] - bounded(raw[k], lmax[k / P], lmin[k / P])) < 3e-6);
        }
    }
    opc_arena_destroy(&scratch);
}

/* The kernel's one pass has the bits of the functions it stands for, NaN and infinity included. */
static void a_draw_has_the_bits_of_its_steps(void **state)
{
    (void)state;
    const float lmax[2] = {0.5f, -1.0f}, lmin[2] = {-10.0f, -3.0f};
    struct opc_arena scratch = scratch_of(opc_gauss_need(2));
    for (int e = -20; e <= 38; e++) {
        float raw[2 * P], std[2 * P], eps[2 * P], mean[2 * P], want[2 * P];
        for (int k = 0; k < 2 * P; k++) {
            raw[k] = (k % 2 ? -1.0f : 1.0f) * (float)pow(10.0, e) * (1.0f + (float)k / 64.0f);
            eps[k] = (float)(k - P) / 7.0f;
            mean[k] = (float)(k % 5) / 3.0f;
        }
        raw[3] = NAN;
        raw[P + 4] = INFINITY;
        opc_gauss_bound(2, lmax, lmin, raw, std, &scratch);
        for (int k = 0; k < 2 * P; k++)
            std[k] *= 0.5f;
        opc_vec_exp(2 * P, std, std);
        for (int k = 0; k < 2 * P; k++)
            want[k] = mean[k] + std[k] * eps[k];
        opc_kernels()->draw_bounded(2, lmax, lmin, raw, eps, mean);
        assert_true(isnan(mean[3]) && isnan(want[3]));
        mean[3] = want[3] = 0; /* the sign of a NaN is no result */
        assert_same_bits(mean, want, sizeof mean);
    }
    opc_arena_destroy(&scratch);
}

/* ---- likelihood ------------------------------------------------------------------------------ */

/* A batch of rows with their oracle's copy in double: v[0] means, v[1] raw, v[2] targets
 * [rows][dim], then the two bounds. */
struct batch {
    int dim, rows, panels;
    float *out, *y, lmax[MAX], lmin[MAX]; /* [panels][2 dim][16] [panels][dim][16] */
    double *v[3], vmax[MAX], vmin[MAX];
};

static struct batch batch_make(struct opc_rng *r, int dim, int rows)
{
    struct batch b = {.dim = dim, .rows = rows, .panels = opc_panels(rows)};
    b.out = floats_any(r, (size_t)(b.panels * 2 * dim * P)); /* padding: other numbers */
    b.y = floats_any(r, (size_t)(b.panels * dim * P));
    for (int k = 0; k < 3; k++) {
        b.v[k] = calloc((size_t)(rows * dim), sizeof(double));
        assert_non_null(b.v[k]);
    }
    for (int j = 0; j < dim; j++) {
        b.vmax[j] = b.lmax[j] = 0.5f + 0.3f * any_float(r);
        b.vmin[j] = b.lmin[j] = -4.0f + any_float(r);
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < dim; j++) {
            float *mean = b.out + ((i / P) * 2 * dim + j) * P + i % P, *raw = mean + dim * P;
            float *y = b.y + ((i / P) * dim + j) * P + i % P;
            *raw = 4.0f * any_float(r) - 1.5f; /* below lmin, between, above lmax */
            b.v[0][i * dim + j] = *mean;
            b.v[1][i * dim + j] = *raw;
            b.v[2][i * dim + j] = *y;
        }
    return b;
}

static void batch_free(struct batch *b)
{
    for (int k = 0; k < 3; k++)
        free(b->v[k]);
    free(b->out);
    free(b->y);
}

/* algorithms.md 1.4, and the plain sum of squares */
static double plain_nll(const struct batch *b, double *squares)
{
    double sum = 0.0, sq = 0.0;
    for (int i = 0; i < b->rows; i++)
        for (int j = 0; j < b->dim; j++) {
            const int k = i * b->dim + j;
            const double l = bounded(b->v[1][k], b->vmax[j], b->vmin[j]);
            const double e = b->v[0][k] - b->v[2][k];
            sum += e * e * exp(-l) + l;
            sq += e * e;
        }
    if (squares)
        *squares = sq;
    return sum / (b->rows * b->dim);
}

static double central(const struct batch *b, double *v)
{
    const double h = 1e-5, keep = *v;
    *v = keep + h;
    const double up = plain_nll(b, NULL);
    *v = keep - h;
    const double down = plain_nll(b, NULL);
    *v = keep;
    return (up - down) / (2.0 * h);
}

static void likelihood_and_its_gradient_agree_with_double_precision(void **state)
{
    (void)state;
    static const int ROWS[] = {1, 2, 15, 16, 17, 37};
    struct opc_rng r = test_stream(1);
    for (int c = 0; c < 5 * 6; c++) {
        const int dim = DIMS[c % 5];
        struct batch b = batch_make(&r, dim, ROWS[c / 5]);
        struct opc_arena scratch = scratch_of(opc_gauss_need(dim));
        float *d = floats_of((size_t)(b.panels * 2 * dim * P), NAN);
        double loss = 0.0, squares = 0.0, want_squares, dmax[MAX] = {0}, dmin[MAX] = {0};
        for (int p = 0; p < b.panels; p++) {
            float part_max[MAX], part_min[MAX];
            struct opc_gauss_slot slot = {.dmax = part_max, .dmin = part_min};
            const int here = b.rows - p * P < P ? b.rows - p * P : P;
            opc_gauss_nll(dim, here, b.rows, b.lmax, b.lmin, b.out + p * 2 * dim * P,
                          b.y + p * dim * P, d + p * 2 * dim * P, &slot, &scratch);
            assert_int_equal(scratch.used, 0);
            loss += slot.loss;
            squares += slot.squares;
            for (int j = 0; j < dim; j++) {
                dmax[j] += part_max[j];
                dmin[j] += part_min[j];
            }
        }
        const double want = plain_nll(&b, &want_squares), scale = 1.0 / sqrt(b.rows * dim);
        assert_true(fabs(loss / (b.rows * dim) - want) < 3e-6 * (1.0 + fabs(want)));
        assert_true(fabs(squares - want_squares) < 1e-6 * (1.0 + want_squares));
        for (int i = 0; i < b.panels * P; i++)
            for (int j = 0; j < dim; j++) {
                const float *by_mean = d + ((i / P) * 2 * dim + j) * P + i % P;
                const float *by_raw = by_mean + dim * P;
                if (i >= b.rows) {
                    assert_true(same_bits(*by_mean, 0.0f) && same_bits(*by_raw, 0.0f));
                    continue;
                }
                const double m = central(&b, &b.v[0][i * dim + j]);
                const double l = central(&b, &b.v[1][i * dim + j]);
                assert_true(fabs(*by_mean - m) < 1e-9 + 3e-6 * fmax(fabs(m), scale * scale));
                assert_true(fabs(*by_raw - l) < 1e-9 + 3e-6 * fmax(fabs(l), scale * scale));
            }
        for (int j = 0; j < dim; j++) {
            assert_true(fabs(dmax[j] - central(&b, &b.vmax[j])) < 1e-5 * scale);
            assert_true(fabs(dmin[j] - central(&b, &b.vmin[j])) < 1e-5 * scale);
        }
        free(d);
        opc_arena_destroy(&scratch);
        batch_free(&b);
    }
}

/* Gradient descent must not stop at a wild start: far outside the bounds all stays finite. */
static void likelihood_of_wild_outputs_is_finite(void **state)
{
    (void)state;
    const float lmax = 0.5f, lmin = -10.0f;
    struct opc_arena scratch = scratch_of(opc_gauss_need(1));
    float out[2 * P], y[P] = {0}, d[2 * P], dmax, dmin;
    for (int i = 0; i < P; i++) {
        out[i] = (i % 2 ? 1.0f : -1.0f) * ldexpf(1.0f, i);
        out[P + i] = (i % 4 < 2 ? 1.0f : -1.0f) * ldexpf(1.0f, 8 * i);
    }
    struct opc_gauss_slot slot = {.dmax = &dmax, .dmin = &dmin};
    opc_gauss_nll(1, P, P, &lmax, &lmin, out, y, d, &slot, &scratch);
    assert_true(isfinite(slot.loss) && isfinite(slot.squares) && isfinite(dmax) && isfinite(dmin));
    for (int i = 0; i < 2 * P; i++)
        assert_true(isfinite(d[i]));
    out[3] = NAN; /* but what is no number must show */
    opc_gauss_nll(1, P, P, &lmax, &lmin, out, y, d, &slot, &scratch);
    assert_true(isnan(slot.loss) && isnan(d[3]) && !isnan(d[4]));
    opc_arena_destroy(&scratch);
}

/* ---- squashed Gaussian ----------------------------------------------------------------------- */

static double clipped(double s)
{
    return s < -20.0 ? -20.0 : s > 2.0 ? 2.0 : s;
}

/* One row: mean[dim], raw[dim] and eps[dim] at steps of `apart`; the action if wanted. */
static double plain_logp(int dim, const double *mean, const double *raw, const double *eps,
                         double *action)
{
    double sum = 0.0;
    for (int j = 0; j < dim; j++) {
        const double s = clipped(raw[j]), u = mean[j] + exp(s) * eps[j];
        sum += -0.5 * eps[j] * eps[j] - s - 0.5 * log(8.0 * atan(1.0)) -
               2.0 * (log(2.0) - u - softplus(-2.0 * u));
        if (action)
            action[j] = tanh(u);
    }
    return sum;
}

/* algorithms.md 2.1 */
static void squash_gives_the_known_values(void **state)
{
    (void)state;
    struct opc_arena scratch = scratch_of(opc_squash_need(1));
    float out[2 * P], eps[P], action[P], logp[P], spread[P];
    for (int i = 0; i < P; i++) {
        out[i] = 0.3f;
        out[P + i] = -0.5f;
        eps[i] = 1.2f;
    }
    opc_squash(1, out, eps, action, logp, spread, &scratch);
    for (int i = 0; i < P; i++) {
        assert_true(fabs(action[i] - 0.773039) < 1e-6);
        assert_true(fabs(logp[i] + 0.228655) < 1e-6);
        assert_true(fabs(spread[i] - exp(-0.5)) < 1e-7);
    }
    opc_squash(1, out, NULL, action, NULL, NULL, &scratch); /* the mode */
    for (int i = 0; i < P; i++)
        assert_true(ulps_apart(action[i], (float)tanh((double)0.3f)) <= 4);
    assert_int_equal(scratch.used, 0);
    opc_arena_destroy(&scratch);
}

/* One panel with its oracle's copy in double, row by row: mean, raw, eps, q [16][dim]. */
struct squash {
    int dim;
    float out[2 * MAX * P], eps[MAX * P], q[MAX * P];
    double mean[P][MAX], raw[P][MAX], deps[P][MAX], dq[P][MAX];
};

static struct squash squash_make(struct opc_rng *r, int dim)
{
    /* inside, clipped above, clipped below; never so near an edge that a difference crosses it */
    static const float RAW[] = {-1.0f, 0.5f, 1.99f, -4.0f, 2.01f, 3.0f, 50.0f, -19.9f, -20.1f};
    struct squash s = {.dim = dim};
    for (int i = 0; i < P; i++)
        for (int j = 0; j < dim; j++) {
            const int k = j * P + i;
            s.mean[i][j] = s.out[k] = 2.0f * any_float(r);
            s.raw[i][j] = s.out[dim * P + k] = RAW[any_below(r, 9)];
            s.deps[i][j] = s.eps[k] = 1.5f * any_float(r);
            s.dq[i][j] = s.q[k] = any_float(r);
        }
    return s;
}

static void squash_agrees_with_double_precision(void **state)
{
    (void)state;
    struct opc_rng r = test_stream(2);
    for (int c = 0; c < 50; c++) {
        const int dim = DIMS[c % 5];
        const struct squash s = squash_make(&r, dim);
        struct opc_arena scratch = scratch_of(opc_squash_need(dim));
        float action[MAX * P], logp[P], spread[MAX * P], again[MAX * P], logp_again[P];
        opc_squash(dim, s.out, s.eps, action, logp, spread, &scratch);
        for (int i = 0; i < P; i++) {
            double want[MAX];
            const double lp = plain_logp(dim, s.mean[i], s.raw[i], s.deps[i], want);
            assert_true(fabs(logp[i] - lp) < 2e-6 * dim + 3e-6 * fabs(lp));
            for (int j = 0; j < dim; j++) {
                /* 2^-24 of u, which tanh cannot make worse, and 4 ULP of the action */
                const double u = fabs(s.mean[i][j]) + exp(2.0) * fabs(s.deps[i][j]);
                assert_true(fabs(action[j * P + i] - want[j]) < 2.0 * 0x1p-24 * (u + 4.0));
                assert_true(ulps_apart(spread[j * P + i], (float)exp(clipped(s.raw[i][j]))) <= 4);
            }
        }
        /* what is not asked for changes nothing */
        opc_squash(dim, s.out, s.eps, again, NULL, NULL, &scratch);
        assert_same_bits(again, action, (size_t)(dim * P) * sizeof *action);
        opc_squash(dim, s.out, s.eps, again, logp_again, NULL, &scratch);
        assert_same_bits(logp_again, logp, sizeof logp);
        assert_int_equal(scratch.used, 0);
        opc_arena_destroy(&scratch);
    }
}

/* alpha log pi + q . a of one row */
static double objective(const struct squash *s, int i, double alpha)
{
    double action[MAX];
    double sum = alpha * plain_logp(s->dim, s->mean[i], s->raw[i], s->deps[i], action);
    for (int j = 0; j < s->dim; j++)
        sum += s->dq[i][j] * action[j];
    return sum;
}

static double central_of(const struct squash *s, int i, double alpha, double *v)
{
    const double h = 1e-5, keep = *v;
    *v = keep + h;
    const double up = objective(s, i, alpha);
    *v = keep - h;
    const double down = objective(s, i, alpha);
    *v = keep;
    return (up - down) / (2.0 * h);
}

static void squash_gradient_agrees_with_central_differences(void **state)
{
    (void)state;
    struct opc_rng r = test_stream(3);
    for (int c = 0; c < 60; c++) {
        const int dim = DIMS[c % 5], rows = c % 4 ? 1 + any_below(&r, P) : P;
        const float weight = 1.0f / 256.0f, alpha = c % 3 ? 0.2f : 0.0f;
        struct squash s = squash_make(&r, dim);
        struct opc_arena scratch = scratch_of(opc_squash_need(dim));
        float action[MAX * P], spread[MAX * P], d[2 * MAX * P];
        opc_squash(dim, s.out, s.eps, action, NULL, spread, &scratch);
        for (int k = 0; k < 2 * dim * P; k++)
            d[k] = NAN;
        opc_squash_back(dim, rows, weight, alpha, s.out, s.eps, action, spread, s.q, d);
        for (int i = 0; i < P; i++)
            for (int j = 0; j < dim; j++) {
                const float by_mean = d[j * P + i], by_raw = d[(dim + j) * P + i];
                if (i >= rows) {
                    assert_true(same_bits(by_mean, 0.0f) && same_bits(by_raw, 0.0f));
                    continue;
                }
                const double m = weight * central_of(&s, i, alpha, &s.mean[i][j]);
                const double l = weight * central_of(&s, i, alpha, &s.raw[i][j]);
                assert_true(fabs(by_mean - m) < 3e-6 * weight);
                assert_true(fabs(by_raw - l) < 3e-6 * weight * (1.0 + spread[j * P + i]));
                if (s.raw[i][j] < -20.0 || s.raw[i][j] > 2.0)
                    assert_true(same_bits(by_raw, 0.0f)); /* clipped: no way back */
            }
        opc_arena_destroy(&scratch);
    }
}

/* Where tanh has reached 1, 1 - a^2 is 0 and its logarithm no number; this form does not need it.
 */
static void log_probability_survives_saturation(void **state)
{
    (void)state;
    struct opc_arena scratch = scratch_of(opc_squash_need(1));
    float out[2 * P], eps[P] = {0}, action[P], logp[P];
    for (int i = 0; i < P; i++) {
        out[i] = (i % 2 ? 1.0f : -1.0f) * ldexpf(1.0f, i / 2 + 3); /* to +-1024 */
        out[P + i] = -1.0f;
    }
    opc_squash(1, out, eps, action, logp, NULL, &scratch);
    for (int i = 0; i < P; i++) {
        const double mean = out[i], raw = -1.0, zero = 0.0;
        const double want = plain_logp(1, &mean, &raw, &zero, NULL);
        assert_true(fabs(action[i]) > 0.999 && fabs(action[i]) <= 1.0);
        assert_true(fabs(logp[i] - want) < 1e-6 * fabs(want));
    }
    out[2] = NAN;
    out[P + 5] = NAN;
    opc_squash(1, out, eps, action, logp, NULL, &scratch);
    for (int i = 0; i < P; i++)
        assert_int_equal(isnan(logp[i]) != 0, i == 2 || i == 5);
    opc_arena_destroy(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        each_backend(bounds_give_the_known_values),
        each_backend(bounds_hold_for_any_network_output),
        each_backend(a_draw_has_the_bits_of_its_steps),
        each_backend(likelihood_and_its_gradient_agree_with_double_precision),
        each_backend(likelihood_of_wild_outputs_is_finite),
        each_backend(squash_gives_the_known_values),
        each_backend(squash_agrees_with_double_precision),
        each_backend(squash_gradient_agrees_with_central_differences),
        each_backend(log_probability_survives_saturation),
    };
    return run_num_tests(tests);
}
