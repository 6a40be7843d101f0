/* SPDX-License-Identifier: MIT */
/* The kernels of layer normalisation: the formula's values, the bits that num/simd_norm.h promises,
 * and what a row may depend on. tests/test_mlp.c has the gradients of whole networks. */
#include "num/kernel.h"

#include "test_num.h"

enum { P = OPC_PANEL, SUMS = 4 };

static const int FEATURES[] = {1, 2, 3, 4, 5, 6, 7, 8, 13, 17, 64, 65, 200};
static const int ROWS[] = {1, 15, 16, 17, 33, 100};
enum {
    FEATURE_COUNTS = sizeof FEATURES / sizeof *FEATURES,
    ROW_COUNTS = sizeof ROWS / sizeof *ROWS
};

/* Feature k of row i. */
static size_t at(int i, int k, size_t stride)
{
    return (size_t)(i / P) * stride + (size_t)(k * P + i % P);
}

/* ---- one row as the header defines it -------------------------------------------------------- */

static float multiply_add(float a, float b, float c)
{
    return opc_kernels()->fused ? fmaf(a, b, c) : a * b + c; /* -ffp-contract=off: two roundings */
}

static float mean_of(const float sum[SUMS], int n)
{
    return ((sum[0] + sum[2]) + (sum[1] + sum[3])) / (float)n;
}

/* z[n] to its normalised values; returns 1 / s. */
static float plain_forward(int n, const float *z, float *normalized)
{
    float sum[SUMS] = {0}, square[SUMS] = {0};
    for (int k = 0; k < n; k++)
        sum[k % SUMS] += z[k];
    const float mean = mean_of(sum, n);
    for (int k = 0; k < n; k++)
        square[k % SUMS] = multiply_add(z[k] - mean, z[k] - mean, square[k % SUMS]);
    const float inv_std = 1.0f / sqrtf(mean_of(square, n) + 1e-5f);
    for (int k = 0; k < n; k++)
        normalized[k] = (z[k] - mean) * inv_std;
    return inv_std;
}

static void plain_backward(int n, const float *normalized, float inv_std, const float *dy,
                           float *dx)
{
    float sum[SUMS] = {0}, along[SUMS] = {0};
    for (int k = 0; k < n; k++) {
        sum[k % SUMS] += dy[k];
        along[k % SUMS] = multiply_add(dy[k], normalized[k], along[k % SUMS]);
    }
    const float shift = mean_of(sum, n), factor = -mean_of(along, n);
    for (int k = 0; k < n; k++)
        dx[k] = multiply_add(normalized[k], factor, dy[k] - shift) * inv_std;
}

/* ---- panels with a gap after each, and wild rows of padding -----------------------------------
 */

struct batch {
    int rows, panels, n;
    size_t stride;
    float *z, *dy; /* [panels][stride] before the normalisation, and by its outputs */
    /* What the kernels make of them. */
    float *y, *normalized, *inv_std, *d;
};

static float *wild_panels(struct opc_rng *r, const struct batch *b)
{
    float *x = floats_of((size_t)b->panels * b->stride, 1234.5f);
    for (int i = 0; i < b->panels * P; i++)
        for (int k = 0; k < b->n; k++)
            x[at(i, k, b->stride)] = any_float(r) * (i < b->rows ? 1.0f : 1e18f);
    return x;
}

/* dy goes into the memory of y, as back_input leaves it there, and normalised values into d. */
static void pass(struct batch *b)
{
    const size_t size = (size_t)b->panels * b->stride;
    const struct opc_kernels *k = opc_kernels();
    memcpy(b->y, b->z, size * sizeof *b->z);
    k->layer_norm_relu(b->panels, b->n, b->y, b->stride, b->normalized, b->inv_std);
    memcpy(b->d, b->normalized, size * sizeof *b->d);
    float *work = floats_of(size, 1234.5f);
    for (int i = 0; i < b->panels * P; i++)
        for (int j = 0; j < b->n; j++)
            work[at(i, j, b->stride)] = b->dy[at(i, j, b->stride)];
    k->back_layer_norm(b->panels, b->n, b->inv_std, work, b->d, b->stride);
    assert_same_bits(work, b->y, size * sizeof *work); /* y is back, gaps and padding included */
    free(work);
}

static struct batch batch_make(struct opc_rng *r, int rows, int n)
{
    struct batch b = {.rows = rows, .panels = opc_panels(rows), .n = n};
    b.stride = (size_t)(n * P + any_below(r, 40));
    const size_t size = (size_t)b.panels * b.stride;
    b.z = wild_panels(r, &b);
    b.dy = wild_panels(r, &b);
    b.y = floats_of(size, 0.0f);
    b.normalized = floats_of(size, 1234.5f);
    b.d = floats_of(size, 0.0f);
    b.inv_std = floats_of((size_t)(b.panels * P), 0.0f);
    return b;
}

static void batch_free(struct batch *b)
{
    float *each[] = {b->z, b->dy, b->y, b->normalized, b->inv_std, b->d};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        free(each[i]);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Values computed by hand from the formulas, to eight digits. */
static void x_of_1_2_3_4_gives_the_reference_values(void **state)
{
    (void)state;
    const float y[] = {-1.3416354f, -0.4472118f, 0.4472118f, 1.3416354f};
    const float dx[] = {0.2683303f, -0.3577684f, -0.0894434f, 0.1788815f};
    struct opc_rng r = test_stream(1);
    struct batch b = batch_make(&r, 20, 4);
    for (int i = 0; i < b.panels * P; i++)
        for (int k = 0; k < 4; k++) {
            b.z[at(i, k, b.stride)] = (float)(k + 1);
            b.dy[at(i, k, b.stride)] = k == 0;
        }
    pass(&b);
    for (int i = 0; i < b.rows; i++)
        for (int k = 0; k < 4; k++) {
            const size_t place = at(i, k, b.stride);
            assert_true(fabsf(b.normalized[place] - y[k]) < 3e-7f);
            assert_true(fabsf(b.y[place] - (y[k] > 0.0f ? y[k] : 0.0f)) < 3e-7f);
            assert_true(fabsf(b.d[place] - dx[k]) < 3e-7f);
        }
    batch_free(&b);
}

static void both_ways_give_the_bits_of_the_plain_loops(void **state)
{
    (void)state;
    struct opc_rng r = test_stream(2);
    for (int f = 0; f < FEATURE_COUNTS; f++)
        for (int n = 0; n < ROW_COUNTS; n++) {
            struct batch b = batch_make(&r, ROWS[n], FEATURES[f]);
            pass(&b);
            for (int i = 0; i < b.rows; i++) {
                float z[200], dy[200], normalized[200], dx[200];
                for (int k = 0; k < b.n; k++) {
                    z[k] = b.z[at(i, k, b.stride)];
                    dy[k] = b.dy[at(i, k, b.stride)];
                }
                const float inv_std = plain_forward(b.n, z, normalized);
                plain_backward(b.n, normalized, inv_std, dy, dx);
                assert_true(same_bits(b.inv_std[i], inv_std));
                for (int k = 0; k < b.n; k++) {
                    const size_t place = at(i, k, b.stride);
                    const float relu = normalized[k] > 0.0f ? normalized[k] : 0.0f;
                    assert_true(same_bits(b.normalized[place], normalized[k]));
                    assert_true(b.y[place] == relu);
                    assert_true(same_bits(b.d[place], dx[k]));
                }
            }
            for (int p = 0; p < b.panels; p++) /* nothing is written between panels */
                for (size_t k = (size_t)(b.n * P); k < b.stride; k++)
                    assert_true(b.normalized[(size_t)p * b.stride + k] == 1234.5f);
            /* Without a tape the outputs are the same. */
            const size_t bytes = (size_t)b.panels * b.stride * sizeof *b.z;
            opc_kernels()->layer_norm_relu(b.panels, b.n, b.z, b.stride, NULL, NULL);
            assert_same_bits(b.z, b.y, bytes);
            batch_free(&b);
        }
}

/* The same rows in another order and number, next to other padding: the same bits row by row. */
static void a_row_does_not_depend_on_its_place_or_its_batch(void **state)
{
    (void)state;
    enum { ALL = 100 };
    struct opc_rng r = test_stream(3);
    for (int f = 0; f < FEATURE_COUNTS; f++) {
        struct batch all = batch_make(&r, ALL, FEATURES[f]);
        pass(&all);
        for (int n = 0; n < ROW_COUNTS; n++) {
            struct batch some = batch_make(&r, ROWS[n], FEATURES[f]);
            const int from = any_below(&r, ALL);
            for (int i = 0; i < some.rows; i++)
                for (int k = 0; k < some.n; k++) {
                    const size_t old = at((from + 37 * i) % ALL, k, all.stride);
                    some.z[at(i, k, some.stride)] = all.z[old];
                    some.dy[at(i, k, some.stride)] = all.dy[old];
                }
            pass(&some);
            for (int i = 0; i < some.rows; i++)
                for (int k = 0; k < some.n; k++) {
                    const size_t old = at((from + 37 * i) % ALL, k, all.stride);
                    const size_t new = at(i, k, some.stride);
                    assert_true(same_bits(some.y[new], all.y[old]));
                    assert_true(same_bits(some.d[new], all.d[old]));
                }
            batch_free(&some);
        }
        batch_free(&all);
    }
}

/* A diverged network has to show, in the row where it diverged and in no other. */
static void nan_and_infinity_reach_their_whole_row_and_no_other(void **state)
{
    (void)state;
    const float poison[] = {NAN, INFINITY, -INFINITY};
    struct opc_rng r = test_stream(4);
    for (int p = 0; p < 3; p++)
        for (int f = 0; f < FEATURE_COUNTS; f++) {
            struct batch b = batch_make(&r, 37, FEATURES[f]);
            const int bad = any_below(&r, b.rows);
            b.z[at(bad, any_below(&r, b.n), b.stride)] = poison[p];
            opc_kernels()->layer_norm_relu(b.panels, b.n, b.z, b.stride, NULL, NULL);
            for (int i = 0; i < b.rows; i++)
                for (int k = 0; k < b.n; k++)
                    assert_int_equal(isnan(b.z[at(i, k, b.stride)]) != 0, i == bad);
            batch_free(&b);
        }
}

/* What normalisation is for: a shift or a factor of all features changes nothing but rounding and
 * eps, and no output is above sqrt(n - 1), however large the inputs. */
static void outputs_are_bounded_and_do_not_notice_shift_or_factor(void **state)
{
    (void)state;
    struct opc_rng r = test_stream(5);
    struct batch b = batch_make(&r, 48, 65), big = batch_make(&r, 48, 65);
    for (int i = 0; i < b.rows; i++)
        for (int k = 0; k < b.n; k++)
            big.z[at(i, k, big.stride)] = 1e6f * b.z[at(i, k, b.stride)] + 1e6f;
    pass(&b);
    pass(&big);
    for (int i = 0; i < b.rows; i++)
        for (int k = 0; k < b.n; k++) {
            const float got = big.normalized[at(i, k, big.stride)];
            assert_true(fabsf(got - b.normalized[at(i, k, b.stride)]) < 1e-4f);
            assert_true(fabsf(got) < 8.0f);
        }
    batch_free(&b);
    batch_free(&big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        each_backend(x_of_1_2_3_4_gives_the_reference_values),
        each_backend(both_ways_give_the_bits_of_the_plain_loops),
        each_backend(a_row_does_not_depend_on_its_place_or_its_batch),
        each_backend(nan_and_infinity_reach_their_whole_row_and_no_other),
        each_backend(outputs_are_bounded_and_do_not_notice_shift_or_factor),
    };
    return run_num_tests(tests);
}
