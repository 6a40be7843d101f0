/* SPDX-License-Identifier: MIT */
#include "num/kernel.h"

#include "test_num.h"

#include <float.h>

enum { P = OPC_PANEL };

static const int WIDTH[] = {1, 2, 3, 5, 6, 7, 8, 13, 17, 23, 64, 65, 200};
static const int ROWS[] = {1, 2, 15, 16, 17, 31, 33, 77, 100, 140, 256};
enum { WIDTHS = sizeof WIDTH / sizeof *WIDTH, ROW_COUNTS = sizeof ROWS / sizeof *ROWS };

/* ---- the oracle: one product after the other, as kernel.h defines them ----------------------- */

static float multiply_add(bool fused, float a, float b, float c)
{
    return fused ? fmaf(a, b, c) : a * b + c; /* -ffp-contract=off: two roundings */
}

/* Feature k of row i. */
static size_t at(int i, int k, size_t stride)
{
    return (size_t)(i / P) * stride + (size_t)(k * P + i % P);
}

/* One layer and a batch, with room to spare in every direction and NaN in the room: whoever reads
 * it will show. The rows that pad the last panel are finite, as kernel.h asks, but wild. */
struct layer {
    int rows, panels, in, out, ld;
    size_t xs, ys;
    float *w, *bias, *x, *dy; /* [out][ld] [out] [panels][xs] [panels][ys] */
};

static float *wild_panels(struct opc_rng *r, int rows, int features, size_t stride)
{
    const int panels = opc_panels(rows);
    float *x = floats_of((size_t)panels * stride, NAN);
    for (int i = 0; i < panels * P; i++)
        for (int k = 0; k < features; k++)
            x[at(i, k, stride)] = any_float(r) * (i < rows ? 1.0f : 1e18f);
    return x;
}

static struct layer layer_make(struct opc_rng *r, int rows, int in, int out)
{
    struct layer l = {.rows = rows, .panels = opc_panels(rows), .in = in, .out = out};
    l.ld = in + any_below(r, 10);
    l.xs = (size_t)(in * P + any_below(r, 40));
    l.ys = (size_t)(out * P + any_below(r, 40));
    l.w = floats_of((size_t)(out * l.ld), NAN);
    for (int o = 0; o < out; o++)
        for (int k = 0; k < in; k++)
            l.w[o * l.ld + k] = any_float(r);
    l.bias = floats_any(r, (size_t)out);
    l.x = wild_panels(r, rows, in, l.xs);
    l.dy = wild_panels(r, rows, out, l.ys);
    return l;
}

static void layer_free(struct layer *l)
{
    free(l->w);
    free(l->bias);
    free(l->x);
    free(l->dy);
}

/* Every pair of widths, each with some of the row counts. */
static void each_shape(void (*check)(const struct layer *, struct opc_rng *))
{
    struct opc_rng r = test_stream(1);
    const int passes = LIGHT ? 1 : 3;
    for (int a = 0; a < WIDTHS; a++)
        for (int b = 0; b < WIDTHS; b++)
            for (int pass = 0; pass < passes; pass++) {
                const int rows = ROWS[(a + 4 * b + 3 * pass) % ROW_COUNTS];
                struct layer l = layer_make(&r, rows, WIDTH[a], WIDTH[b]);
                check(&l, &r);
                layer_free(&l);
            }
}

static void assert_float_is(float got, float want, const struct layer *l, int i, int o)
{
    if (same_bits(got, want))
        return;
    fail_msg("%d rows, %d to %d: row %d, place %d is %a, should be %a", l->rows, l->in, l->out, i,
             o, (double)got, (double)want);
}

/* Between panels nothing may be written. */
static void assert_gaps_untouched(const float *y, int panels, int features, size_t stride)
{
    for (int p = 0; p < panels; p++)
        for (size_t k = (size_t)(features * P); k < stride; k++)
            assert_true(same_bits(y[(size_t)p * stride + k], 1234.5f));
}

/* ---- forward --------------------------------------------------------------------------------- */

static double swish_of(double z)
{
    return z / (1.0 + exp(-z));
}

static double swish_slope_of(double z)
{
    const double s = 1.0 / (1.0 + exp(-z));
    return s + z * s * (1.0 - s);
}

static void forward_is_right(const struct layer *l, struct opc_rng *r)
{
    const struct opc_kernels *k = opc_kernels();
    (void)r;
    /* z[rows][out]: the sums before activation */
    float *z = floats_of((size_t)(l->rows * l->out), 0.0f),
          *tanh_z = floats_of((size_t)(l->rows * l->out), 0.0f);
    for (int i = 0; i < l->rows; i++)
        for (int o = 0; o < l->out; o++) {
            float sum = 0.0f;
            for (int j = 0; j < l->in; j++)
                sum = multiply_add(k->fused, l->w[o * l->ld + j], l->x[at(i, j, l->xs)], sum);
            z[i * l->out + o] = sum + l->bias[o];
        }
    k->vec[OPC_VEC_TANH]((size_t)(l->rows * l->out), z, tanh_z); /* test_vec.c checks it */

    for (int act = OPC_ACTIVATION_LINEAR; act <= OPC_ACTIVATION_SWISH; act++)
        for (int with_slope = 0; with_slope <= (act == OPC_ACTIVATION_SWISH); with_slope++) {
            const size_t size = (size_t)l->panels * l->ys;
            float *y = floats_of(size, 1234.5f), *slope = floats_of(size, 1234.5f);
            k->forward(l->panels, l->in, l->out, l->w, l->ld, l->bias, l->x, l->xs,
                       (enum opc_activation)act, y, l->ys, with_slope ? slope : NULL);
            assert_gaps_untouched(y, l->panels, l->out, l->ys);
            if (with_slope)
                assert_gaps_untouched(slope, l->panels, l->out, l->ys);
            for (int i = 0; i < l->rows; i++)
                for (int o = 0; o < l->out; o++) {
                    const float sum = z[i * l->out + o], got = y[at(i, o, l->ys)];
                    if (act == OPC_ACTIVATION_LINEAR)
                        assert_float_is(got, sum, l, i, o);
                    else if (act == OPC_ACTIVATION_RELU)
                        assert_float_is(got, sum < 0.0f ? 0.0f : sum, l, i, o);
                    else if (act == OPC_ACTIVATION_TANH)
                        assert_float_is(got, tanh_z[i * l->out + o], l, i, o);
                    else
                        assert_true(ulps_apart(got, (float)swish_of(sum)) <= 7);
                    if (with_slope)
                        assert_true(fabs(slope[at(i, o, l->ys)] - swish_slope_of(sum)) < 1.5e-6);
                }
            free(y);
            free(slope);
        }
    free(z);
    free(tanh_z);
}

static void forward_gives_the_bits_of_the_plain_chain(void **state)
{
    (void)state;
    each_shape(forward_is_right);
}

/* One input, weight 1, bias 0: y is act(x) itself, and so x can be swept. */
static void activation_of(enum opc_activation act, int n, const float *x, float *y, float *slope)
{
    const float one = 1.0f, zero = 0.0f;
    float *panels = floats_of((size_t)(opc_panels(n) * P), 0.0f);
    float *out = floats_of((size_t)(opc_panels(n) * P), 0.0f);
    float *slopes = floats_of((size_t)(opc_panels(n) * P), 0.0f);
    memcpy(panels, x, (size_t)n * sizeof *x);
    opc_kernels()->forward(opc_panels(n), 1, 1, &one, 1, &zero, panels, P, act, out, P, slopes);
    memcpy(y, out, (size_t)n * sizeof *y);
    if (slope)
        memcpy(slope, slopes, (size_t)n * sizeof *slope);
    free(panels);
    free(out);
    free(slopes);
}

/* True if a layer's result is within so many ULP. A result too small to be normal may be 0, as it
 * is on x86. */
static bool is_near(float got, float want, long ulps)
{
    return ulps_apart(got, want) <= ulps || (got == 0.0f && fabsf(want) <= 1.001f * FLT_MIN);
}

/* The bounds of kernel.c's comment. The slope s + x s (1 - s) is near 1 where s is, and there 1 - s
 * is known to half an ULP of 1 only, which x multiplies. */
static void swish_and_its_slope_are_near_double_precision(void **state)
{
    (void)state;
    enum { N = 200000 };
    float *x = floats_of(N, 0.0f), *y = floats_of(N, 0.0f), *slope = floats_of(N, 0.0f);
    for (int i = 0; i < N; i++) {
        const double part = (double)i / N;
        x[i] = (float)(i % 4 == 0   ? 176.0 * part - 88.0
                       : i % 4 == 1 ? 20.0 * part - 10.0
                       : i % 4 == 2 ? ldexp(1.0 + part, (int)(part * 130.0) - 126)
                                    : -ldexp(1.0 + part, (int)(part * 130.0) - 126));
    }
    x[0] = -0x1.430196p+6f; /* one of 62 floats below -10 that are 7 ULP off */
    activation_of(OPC_ACTIVATION_SWISH, N, x, y, slope);
    for (int i = 0; i < N; i++) {
        const float want = (float)swish_of(x[i]);
        if (fabsf(x[i]) <= 87.0f && !is_near(y[i], want, fabsf(x[i]) < 10.0f ? 4 : 7))
            fail_msg("swish(%a) = %a is %ld ULP away", (double)x[i], (double)y[i],
                     ulps_apart(y[i], want));
        if (!(fabs(slope[i] - swish_slope_of(x[i])) < 1.5e-6))
            fail_msg("swish'(%a) is %a", (double)x[i], (double)slope[i]);
    }
    free(x);
    free(y);
    free(slope);
}

static void activations_agree_with_double_at_the_corners(void **state)
{
    (void)state;
    const float x[] = {0.0f,    -0.0f,  1e-45f,  -1e-45f, 1e-38f,
                       -1e-38f, 100.0f, -100.0f, 1e30f,   -1e4f};
    enum { N = sizeof x / sizeof *x };
    float y[N], slope[N];
    activation_of(OPC_ACTIVATION_SWISH, N, x, y, slope);
    for (int i = 0; i < N; i++) {
        if (fabsf(x[i]) < 1.0f)
            assert_true(is_near(y[i], 0.5f * x[i], 4));
        else
            assert_true(fabs(y[i] - (x[i] > 0.0f ? x[i] : 0.0)) <= 1e-30);
        assert_true(fabs(slope[i] - (x[i] > 88.0f ? 1.0 : x[i] < -88.0f ? 0.0 : 0.5)) < 1e-6);
    }
    activation_of(OPC_ACTIVATION_TANH, N, x, y, NULL);
    for (int i = 0; i < N; i++)
        assert_true(is_near(y[i], (float)tanh(x[i]), 4));
    activation_of(OPC_ACTIVATION_RELU, N, x, y, NULL);
    for (int i = 0; i < N; i++)
        assert_true(is_near(y[i], x[i] > 0.0f ? x[i] : 0.0f, 0));
}

/* A diverged network has to show: an activation must not turn NaN into a number, and one bad row
 * must not reach its neighbours. */
static void nan_stays_nan_and_stays_in_its_row(void **state)
{
    (void)state;
    const struct opc_kernels *k = opc_kernels();
    struct opc_rng r = test_stream(2);
    for (int out = 1; out <= 14; out++)
        for (int act = OPC_ACTIVATION_LINEAR; act <= OPC_ACTIVATION_SWISH; act++) {
            struct layer l = layer_make(&r, 37, 5, out);
            float *y = floats_of((size_t)l.panels * l.ys, 0.0f);
            const int bad = any_below(&r, l.rows);
            l.x[at(bad, 3, l.xs)] = NAN;
            k->forward(l.panels, l.in, l.out, l.w, l.ld, l.bias, l.x, l.xs,
                       (enum opc_activation)act, y, l.ys, NULL);
            for (int i = 0; i < l.rows; i++)
                for (int o = 0; o < out; o++)
                    assert_int_equal(isnan(y[at(i, o, l.ys)]) != 0, i == bad);
            free(y);
            layer_free(&l);
        }
}

#if defined(__SSE2__)
/* On x86 numbers too small to be normal count as 0 in products, where they would be a hundred times
 * slower. Outside of them arithmetic keeps them, as environments may need. */
static void denormals_count_as_zero_in_products_alone(void **state)
{
    (void)state;
    enum { IN = 23, OUT = 7, ROWS_HERE = 40 };
    const struct opc_kernels *k = opc_kernels();
    struct opc_rng r = test_stream(9);
    struct layer l = layer_make(&r, ROWS_HERE, IN, OUT);
    const volatile float tiny = 1e-39f;
    float *y = floats_of((size_t)l.panels * l.ys, 1234.5f),
          *dx = floats_of((size_t)l.panels * l.xs, 1234.5f);
    for (int o = 0; o < OUT; o++)
        for (int j = 0; j < IN; j++)
            l.w[o * l.ld + j] = tiny;
    for (int i = 0; i < l.panels * P; i++) { /* so large that the sums would be normal */
        for (int j = 0; j < IN; j++)
            l.x[at(i, j, l.xs)] = 1e30f;
        for (int o = 0; o < OUT; o++)
            l.dy[at(i, o, l.ys)] = 1e30f;
    }
    for (int o = 0; o < OUT; o++)
        l.bias[o] = 0.0f;
    k->forward(l.panels, IN, OUT, l.w, l.ld, l.bias, l.x, l.xs, OPC_ACTIVATION_LINEAR, y, l.ys,
               NULL);
    k->back_input(l.panels, IN, OUT, l.w, l.ld, l.dy, l.ys, OPC_ACTIVATION_LINEAR, NULL, dx, l.xs);
    for (int i = 0; i < ROWS_HERE; i++) {
        for (int o = 0; o < OUT; o++)
            assert_float_is(y[at(i, o, l.ys)], 0.0f, &l, i, o);
        for (int j = 0; j < IN; j++)
            assert_float_is(dx[at(i, j, l.xs)], 0.0f, &l, i, j);
    }
    assert_true(tiny * 0.5f > 0.0f);
    free(y);
    free(dx);
    layer_free(&l);
}
#endif

/* ---- backward -------------------------------------------------------------------------------- */

static void back_input_is_right(const struct layer *l, struct opc_rng *r)
{
    const struct opc_kernels *k = opc_kernels();
    const size_t dxs = (size_t)(l->in * P + any_below(r, 40)), size = (size_t)l->panels * dxs;
    float *sum = floats_of((size_t)(l->rows * l->in), 0.0f); /* (W^T dy)[rows][in] */
    for (int i = 0; i < l->rows; i++)
        for (int o = 0; o < l->out; o++)
            for (int j = 0; j < l->in; j++) {
                float *s = &sum[i * l->in + j];
                *s = multiply_add(k->fused, l->w[o * l->ld + j], l->dy[at(i, o, l->ys)], *s);
            }
    float *below = floats_any(r, size);
    for (size_t i = 0; i < size; i += 3)
        below[i] = 0.0f; /* as ReLU leaves them */
    for (int act = OPC_ACTIVATION_LINEAR; act <= OPC_ACTIVATION_SWISH; act++)
        for (int in_place = 0; in_place <= (act != OPC_ACTIVATION_LINEAR); in_place++) {
            float *dx = floats_of(size, 1234.5f);
            if (in_place)
                memcpy(dx, below, size * sizeof *dx); /* slopes and dy share memory in a tape */
            k->back_input(l->panels, l->in, l->out, l->w, l->ld, l->dy, l->ys,
                          (enum opc_activation)act,
                          in_place                       ? dx
                          : act == OPC_ACTIVATION_LINEAR ? NULL
                                                         : below,
                          dx, dxs);
            if (!in_place)
                assert_gaps_untouched(dx, l->panels, l->in, dxs);
            for (int i = 0; i < l->rows; i++)
                for (int j = 0; j < l->in; j++) {
                    const float d = sum[i * l->in + j], left = below[at(i, j, dxs)];
                    float want = d;
                    if (act == OPC_ACTIVATION_RELU)
                        want = left > 0.0f ? d : 0.0f;
                    else if (act == OPC_ACTIVATION_TANH)
                        want = d * multiply_add(k->fused, -left, left, 1.0f);
                    else if (act == OPC_ACTIVATION_SWISH)
                        want = d * left;
                    assert_float_is(dx[at(i, j, dxs)], want, l, i, j);
                }
            free(dx);
        }
    free(below);
    free(sum);
}

static void back_input_gives_the_bits_of_the_plain_chain(void **state)
{
    (void)state;
    each_shape(back_input_is_right);
}

static void weights_are_right(const struct layer *l, struct opc_rng *r)
{
    const struct opc_kernels *k = opc_kernels();
    const int panels = l->panels;
    float *xt = floats_of(opc_transposed_size(panels, l->in), NAN);
    const int cut = any_below(r, panels + 1); /* in two parts, which keep to themselves */
    for (int part = 0; part < 2; part++) {
        k->transpose(part ? 0 : cut, part ? cut : panels, panels, l->in, l->x, l->xs, xt);
        for (int i = 0; i < panels * P; i++)
            for (int j = 0; j < l->in; j++) {
                const size_t group = (size_t)(j / P) * (size_t)(panels * P * P);
                const float got = xt[group + (size_t)(i * P + j % P)];
                if (part == 0 && i < cut * P)
                    assert_true(isnan(got));
                else
                    assert_float_is(got, l->x[at(i, j, l->xs)], l, i, j);
            }
    }

    const int o0 = any_below(r, 2) ? any_below(r, l->out) : 0;
    const int o1 = any_below(r, 2) ? o0 + 1 + any_below(r, l->out - o0) : l->out;
    float *dw = floats_of((size_t)(l->out * l->ld), 1234.5f);
    k->back_weight(l->rows, panels, l->in, o0, o1, xt, l->dy, l->ys, dw, l->ld);
    for (int o = 0; o < l->out; o++) {
        for (int j = 0; j < l->in && o0 <= o && o < o1; j++) {
            float sum = 0.0f;
            for (int i = 0; i < l->rows; i++)
                sum = multiply_add(k->fused, l->dy[at(i, o, l->ys)], l->x[at(i, j, l->xs)], sum);
            assert_float_is(dw[o * l->ld + j], sum, l, o, j);
        }
        for (int j = o0 <= o && o < o1 ? l->in : 0; j < l->ld; j++)
            assert_true(same_bits(dw[o * l->ld + j], 1234.5f));
    }
    free(dw);

    /* the biases: sixteen sums, then those in order */
    float *db = floats_of((size_t)l->out, 1234.5f);
    k->back_bias(l->rows, o0, o1, l->dy, l->ys, db);
    for (int o = 0; o < l->out; o++) {
        float lane[P] = {0}, want = 1234.5f;
        for (int i = 0; i < l->rows; i++)
            lane[i % P] += l->dy[at(i, o, l->ys)];
        if (o0 <= o && o < o1) {
            want = lane[0];
            for (int i = 1; i < P; i++)
                want += lane[i];
        }
        assert_float_is(db[o], want, l, 0, o);
    }
    free(db);
    free(xt);
}

static void weight_and_bias_gradients_give_the_bits_of_the_plain_chain(void **state)
{
    (void)state;
    each_shape(weights_are_right);
}

/* What a thread that owns some of the outputs writes is what one thread would have written. */
static void weight_gradient_in_slices_is_the_whole(void **state)
{
    (void)state;
    const struct opc_kernels *k = opc_kernels();
    struct opc_rng r = test_stream(3);
    struct layer l = layer_make(&r, 50, 29, 23);
    const size_t size = (size_t)(l.out * l.ld);
    float *xt = floats_of(opc_transposed_size(l.panels, l.in), 0.0f);
    float *whole = floats_of(size, 0.0f), *sliced = floats_of(size, 0.0f);
    k->transpose(0, l.panels, l.panels, l.in, l.x, l.xs, xt);
    k->back_weight(l.rows, l.panels, l.in, 0, l.out, xt, l.dy, l.ys, whole, l.ld);
    for (int step = 1; step <= l.out; step++) {
        memset(sliced, 0, size * sizeof *sliced);
        for (int o = 0; o < l.out; o += step)
            k->back_weight(l.rows, l.panels, l.in, o, o + step < l.out ? o + step : l.out, xt, l.dy,
                           l.ys, sliced, l.ld);
        assert_same_bits(sliced, whole, size * sizeof *whole);
    }
    free(xt);
    free(whole);
    free(sliced);
    layer_free(&l);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The same rows in another order, in a batch of another size, beside other garbage: the same
 * bits row by row. Eq. 5 cancels exactly because of this. */
static void a_row_does_not_depend_on_its_place_or_its_batch(void **state)
{
    (void)state;
    const struct opc_kernels *k = opc_kernels();
    struct opc_rng r = test_stream(4);
    enum { ALL = 100 };
    for (int w = 0; w < WIDTHS; w++) {
        struct layer l = layer_make(&r, ALL, 11, WIDTH[w] < 100 ? WIDTH[w] : 14);
        const int act = w % 4, out = l.out;
        const size_t size = (size_t)l.panels * l.ys, xs = (size_t)(l.in * P),
                     ys = (size_t)(out * P);
        const size_t below_size = (size_t)l.panels * l.xs;
        float *y = floats_of(size, 0.0f), *slope = floats_of(size, 0.0f);
        float *dx = floats_of(below_size, 0.0f), *below = floats_any(&r, below_size);
        k->forward(l.panels, l.in, out, l.w, l.ld, l.bias, l.x, l.xs, (enum opc_activation)act, y,
                   l.ys, slope);
        k->back_input(l.panels, l.in, out, l.w, l.ld, l.dy, l.ys, (enum opc_activation)act, below,
                      dx, l.xs);
        for (int n = 0; n < ROW_COUNTS && ROWS[n] <= ALL; n++) {
            const int rows = ROWS[n], panels = opc_panels(rows), from = any_below(&r, ALL);
            float *x2 = wild_panels(&r, rows, l.in, xs), *dy2 = wild_panels(&r, rows, out, ys);
            float *y2 = floats_of((size_t)panels * ys, 0.0f);
            float *slope2 = floats_of((size_t)panels * ys, 0.0f);
            float *below2 = wild_panels(&r, rows, l.in, xs);
            float *dx2 = floats_of((size_t)panels * xs, 0.0f);
            for (int i = 0; i < rows; i++) {
                const int old = (from + 37 * i) % ALL; /* 37 and 100 share no factor */
                for (int j = 0; j < l.in; j++) {
                    x2[at(i, j, xs)] = l.x[at(old, j, l.xs)];
                    below2[at(i, j, xs)] = below[at(old, j, l.xs)];
                }
                for (int o = 0; o < out; o++)
                    dy2[at(i, o, ys)] = l.dy[at(old, o, l.ys)];
            }
            k->forward(panels, l.in, out, l.w, l.ld, l.bias, x2, xs, (enum opc_activation)act, y2,
                       ys, slope2);
            k->back_input(panels, l.in, out, l.w, l.ld, dy2, ys, (enum opc_activation)act, below2,
                          dx2, xs);
            for (int i = 0; i < rows; i++) {
                const int old = (from + 37 * i) % ALL;
                for (int o = 0; o < out; o++) {
                    assert_float_is(y2[at(i, o, ys)], y[at(old, o, l.ys)], &l, i, o);
                    if (act == OPC_ACTIVATION_SWISH)
                        assert_float_is(slope2[at(i, o, ys)], slope[at(old, o, l.ys)], &l, i, o);
                }
                for (int j = 0; j < l.in; j++)
                    assert_float_is(dx2[at(i, j, xs)], dx[at(old, j, l.xs)], &l, i, j);
            }
            free(x2);
            free(dy2);
            free(y2);
            free(slope2);
            free(below2);
            free(dx2);
        }
        free(y);
        free(slope);
        free(dx);
        free(below);
        layer_free(&l);
    }
}

static void rows_come_back_from_panels_as_they_went_in(void **state)
{
    (void)state;
    const struct opc_kernels *k = opc_kernels();
    struct opc_rng r = test_stream(5);
    enum { TABLE = 300 };
    for (int d = 0; d < WIDTHS; d++)
        for (int n = 0; n < ROW_COUNTS; n++)
            for (int indexed = 0; indexed < 2; indexed++) {
                const int dim = WIDTH[d], rows = ROWS[n], panels = opc_panels(rows);
                const size_t stride = (size_t)(dim + any_below(&r, 9));
                const size_t xs = (size_t)(dim * P + any_below(&r, 40));
                /* the table ends with its last row's last column */
                float *table = floats_any(&r, (TABLE - 1) * stride + (size_t)dim);
                int index[256];
                for (int i = 0; i < rows; i++)
                    index[i] = indexed ? any_below(&r, TABLE) : i;
                float *x = floats_of((size_t)panels * xs, 1234.5f);
                k->gather(rows, dim, table, stride, indexed ? index : NULL, x, xs);
                assert_gaps_untouched(x, panels, dim, xs);
                const float *each[256];
                for (int i = 0; i < rows; i++)
                    each[i] = table + (size_t)index[i] * stride;
                float *y = floats_of((size_t)panels * xs, 1234.5f);
                k->collect(rows, dim, each, y, xs);
                assert_same_bits(x, y, (size_t)panels * xs * sizeof *x);
                free(y);
                for (int i = 0; i < panels * P; i++) {
                    const int row = index[i < rows ? i : i / P * P];
                    for (int j = 0; j < dim; j++)
                        assert_true(
                            same_bits(x[at(i, j, xs)], table[(size_t)row * stride + (size_t)j]));
                }
                float *back = floats_of((size_t)(rows - 1) * stride + (size_t)dim, 1234.5f);
                k->scatter(rows, dim, x, xs, back, stride);
                for (int i = 0; i < rows; i++) {
                    assert_same_bits(back + (size_t)i * stride, table + (size_t)index[i] * stride,
                                     (size_t)dim * sizeof *back);
                    for (size_t j = (size_t)dim; i + 1 < rows && j < stride; j++)
                        assert_true(back[(size_t)i * stride + j] == 1234.5f);
                }
                free(back);
                free(x);
                free(table);
            }
}

/* ---- optimiser passes ------------------------------------------------------------------------ */

/* Plain IEEE operations, so all backends agree, with and without FMA. */
static void adam_and_follow_give_the_bits_of_plain_loops(void **state)
{
    (void)state;
    const struct opc_kernels *k = opc_kernels();
    struct opc_rng r = test_stream(6);
    for (int n = 0; n < 70; n++) {
        const size_t size = (size_t)n;
        float *grad = floats_any(&r, size), *m = floats_any(&r, size), *v = floats_any(&r, size);
        float *param = floats_any(&r, size), *target = floats_any(&r, size);
        float *m2 = floats_of(size, 0.0f), *v2 = floats_of(size, 0.0f);
        float *param2 = floats_of(size, 0.0f), *target2 = floats_of(size, 0.0f);
        const struct opc_adam_rates a = {0.9f, 0.999f, 1e-3f, 1e-8f, n % 2 ? 0.01f : 0.0f};
        for (int i = 0; i < n; i++) {
            v[i] = fabsf(v[i]);
            const float g = grad[i] + a.decay * param[i];
            m2[i] = a.beta1 * m[i] + (1.0f - a.beta1) * g;
            v2[i] = a.beta2 * v[i] + (1.0f - a.beta2) * (g * g);
            param2[i] = param[i] - a.step * m2[i] / (sqrtf(v2[i]) + a.eps);
            target2[i] = target[i] + 0.005f * (param2[i] - target[i]);
        }
        k->adam(size, &a, grad, m, v, param);
        k->polyak(size, 0.005f, param, target);
        assert_same_bits(m, m2, size * sizeof *m);
        assert_same_bits(v, v2, size * sizeof *v);
        assert_same_bits(param, param2, size * sizeof *param);
        assert_same_bits(target, target2, size * sizeof *target);
        float *each[] = {grad, m, v, param, target, m2, v2, param2, target2};
        for (size_t i = 0; i < sizeof each / sizeof *each; i++)
            free(each[i]);
    }
}

/* ---- the choice ------------------------------------------------------------------------------ */

static void burning_counts_its_operations(void **state)
{
    (void)state;
    const struct opc_kernels *k = opc_kernels();
    float sink = NAN;
    const double one = k->peak_flops(1000, &sink);
    assert_true(isfinite(sink) && one >= 1000.0 * 2 * k->width);
    assert_true(k->peak_flops(3000, &sink) == 3 * one);
}

static void every_backend_can_be_chosen_by_name(void **state)
{
    (void)state;
    const struct opc_kernels *all[8];
    const int n = opc_kernels_list(all);
    struct opc_err err = {0};
    assert_true(n >= 1 && n <= 8);
    for (int b = 0; b < n; b++) {
        assert_ok(opc_kernels_use(all[b]->name, &err), &err);
        assert_ptr_equal(opc_kernels(), all[b]);
        assert_true(P % all[b]->width == 0);
    }
    assert_fails(opc_kernels_use("abacus", &err), OPC_EUSER, &err, "abacus");
    assert_ptr_equal(opc_kernels(), all[n - 1]); /* unchanged */
    for (int b = 0; b < n; b++)
        assert_mentions(&err, all[b]->name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        each_backend(forward_gives_the_bits_of_the_plain_chain),
#if defined(__SSE2__)
        each_backend(denormals_count_as_zero_in_products_alone),
#endif
        each_backend(swish_and_its_slope_are_near_double_precision),
        each_backend(activations_agree_with_double_at_the_corners),
        each_backend(nan_stays_nan_and_stays_in_its_row),
        each_backend(back_input_gives_the_bits_of_the_plain_chain),
        each_backend(weight_and_bias_gradients_give_the_bits_of_the_plain_chain),
        each_backend(weight_gradient_in_slices_is_the_whole),
        each_backend(a_row_does_not_depend_on_its_place_or_its_batch),
        each_backend(rows_come_back_from_panels_as_they_went_in),
        each_backend(adam_and_follow_give_the_bits_of_plain_loops),
        each_backend(burning_counts_its_operations),
        cmocka_unit_test(every_backend_can_be_chosen_by_name),
    };
    return run_num_tests(tests);
}
