/* SPDX-License-Identifier: MIT */
#include "num/vec.h"

#include "test_num.h"

static double exp_of(double x)
{
    return exp(x);
}

static double log_of(double x)
{
    return log(x);
}

static double tanh_of(double x)
{
    return tanh(x);
}

static double sigmoid_of(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static double softplus_of(double x)
{
    return (x > 0.0 ? x : 0.0) + log1p(exp(-fabs(x)));
}

static const struct {
    const char *name;
    double (*in_double)(double);
} FUNCTION[OPC_VEC_COUNT] = {
    [OPC_VEC_EXP] = {"exp", exp_of},
    [OPC_VEC_LOG] = {"log", log_of},
    [OPC_VEC_TANH] = {"tanh", tanh_of},
    [OPC_VEC_SIGMOID] = {"sigmoid", sigmoid_of},
    [OPC_VEC_SOFTPLUS] = {"softplus", softplus_of},
};

/* ---- arguments: all binades of both signs, and every float around the places where a formula
 * changes ----------------------------------------------------------------------------------------
 */

enum { PER_BINADE = LIGHT ? 256 : 2048, AROUND = LIGHT ? 512 : 4096 };

static const float CORNER[] = {
    1.0f,                                 /* log is 0 here */
    1.41421356f, 0.70710678f, 2.0f,       /* where log takes the next power of two */
    0.625f,                               /* tanh: polynomial to exponential */
    9.0f,        20.0f,                   /* tanh: it has reached 1 */
    88.722839f,                           /* exp: the last finite value */
    87.336545f,  103.27893f,  103.97208f, /* exp: the first denormal, the last, 0 */
    0.34657359f, 1.0397208f,              /* exp: half and three halves of ln 2 */
    16.635532f,  17.328680f,  0x1p-24f,   /* softplus: 1 + e becomes 1 */
    0x1p-126f,                            /* the smallest normal number */
};
enum { CORNERS = sizeof CORNER / sizeof *CORNER };
enum { ARGUMENTS = 256 * 2 * PER_BINADE + CORNERS * 2 * 2 * AROUND };

static float *arguments(void)
{
    struct opc_rng r = test_stream(1);
    float *x = floats_of(ARGUMENTS, 0.0f);
    size_t n = 0;
    for (uint32_t binade = 0; binade < 256; binade++) /* 0: zero and denormals; 255: inf, NaN */
        for (uint32_t i = 0; i < PER_BINADE; i++) {
            const uint32_t step = 0x800000u / PER_BINADE;
            uint32_t mantissa = i * step;
            if (i % 8 == 7) /* both ends, and places that no grid hits */
                mantissa += step - 1;
            else if (i)
                mantissa += opc_rng_below(&r, step);
            x[n++] = float_of_bits(binade << 23 | mantissa);
            x[n++] = float_of_bits(0x80000000u | binade << 23 | mantissa);
        }
    for (int c = 0; c < CORNERS; c++)
        for (uint32_t i = 0; i < 2 * AROUND; i++) {
            x[n] = float_of_bits(bits_of_float(CORNER[c]) + i - AROUND);
            x[n + 1] = -x[n];
            n += 2;
        }
    assert_int_equal(n, ARGUMENTS);
    return x;
}

static void functions_are_within_4_ulp_of_libm(void **state)
{
    (void)state;
    float *x = arguments(), *y = floats_of(ARGUMENTS, 0.0f);
    for (int f = 0; f < OPC_VEC_COUNT; f++) {
        opc_kernels()->vec[f](ARGUMENTS, x, y);
        for (int i = 0; i < ARGUMENTS; i++) {
            const float want = (float)FUNCTION[f].in_double(x[i]);
            if (ulps_apart(y[i], want) > 4)
                fail_msg("%s(%a) is %a, should be %a", FUNCTION[f].name, (double)x[i], (double)y[i],
                         (double)want);
        }
    }
    free(x);
    free(y);
}

static void named_functions_are_the_table_in_use(void **state)
{
    (void)state;
    static void (*const NAMED[OPC_VEC_COUNT])(size_t, const float *,
                                              float *) = {[OPC_VEC_EXP] = opc_vec_exp,
                                                          [OPC_VEC_LOG] = opc_vec_log,
                                                          [OPC_VEC_TANH] = opc_vec_tanh,
                                                          [OPC_VEC_SIGMOID] = opc_vec_sigmoid,
                                                          [OPC_VEC_SOFTPLUS] = opc_vec_softplus};
    const float x[] = {0.5f, 1.0f, 2.0f};
    for (int f = 0; f < OPC_VEC_COUNT; f++) {
        float y[3];
        NAMED[f](3, x, y);
        for (int i = 0; i < 3; i++)
            assert_true(ulps_apart(y[i], (float)FUNCTION[f].in_double(x[i])) <= 4);
    }
}

static void special_values_are_exact(void **state)
{
    (void)state;
    const float inf = INFINITY;
    const struct {
        enum opc_vec f;
        float x, y;
    } KNOWN[] = {
        {OPC_VEC_EXP, 0.0f, 1.0f},         {OPC_VEC_EXP, -0.0f, 1.0f},
        {OPC_VEC_EXP, inf, inf},           {OPC_VEC_EXP, -inf, 0.0f},
        {OPC_VEC_EXP, 89.0f, inf},         {OPC_VEC_EXP, -104.0f, 0.0f},
        {OPC_VEC_EXP, 1e-45f, 1.0f},       {OPC_VEC_EXP, 3e38f, inf},
        {OPC_VEC_EXP, -3e38f, 0.0f},       {OPC_VEC_LOG, 1.0f, 0.0f},
        {OPC_VEC_LOG, 0.0f, -inf},         {OPC_VEC_LOG, -0.0f, -inf},
        {OPC_VEC_LOG, inf, inf},           {OPC_VEC_LOG, -1e-45f, NAN},
        {OPC_VEC_LOG, -1.0f, NAN},         {OPC_VEC_LOG, -inf, NAN},
        {OPC_VEC_TANH, 0.0f, 0.0f},        {OPC_VEC_TANH, -0.0f, -0.0f},
        {OPC_VEC_TANH, inf, 1.0f},         {OPC_VEC_TANH, -inf, -1.0f},
        {OPC_VEC_TANH, 1e-45f, 1e-45f},    {OPC_VEC_TANH, 30.0f, 1.0f},
        {OPC_VEC_TANH, -3e38f, -1.0f},     {OPC_VEC_SIGMOID, 0.0f, 0.5f},
        {OPC_VEC_SIGMOID, -0.0f, 0.5f},    {OPC_VEC_SIGMOID, inf, 1.0f},
        {OPC_VEC_SIGMOID, -inf, 0.0f},     {OPC_VEC_SIGMOID, 200.0f, 1.0f},
        {OPC_VEC_SIGMOID, -200.0f, 0.0f},  {OPC_VEC_SOFTPLUS, inf, inf},
        {OPC_VEC_SOFTPLUS, -inf, 0.0f},    {OPC_VEC_SOFTPLUS, 3e38f, 3e38f},
        {OPC_VEC_SOFTPLUS, -200.0f, 0.0f}, {OPC_VEC_SOFTPLUS, 50.0f, 50.0f},
    };
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
        float y;
        opc_kernels()->vec[KNOWN[i].f](1, &KNOWN[i].x, &y);
        if (isnan(KNOWN[i].y) ? !isnan(y) : !same_bits(y, KNOWN[i].y))
            fail_msg("%s(%g) is %g, should be %g", FUNCTION[KNOWN[i].f].name, (double)KNOWN[i].x,
                     (double)y, (double)KNOWN[i].y);
    }
}

/* Quiet, signalling, of either sign. */
static void nan_in_gives_nan_out(void **state)
{
    (void)state;
    const uint32_t NANS[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001, 0x7fffffff};
    for (int f = 0; f < OPC_VEC_COUNT; f++)
        for (size_t i = 0; i < sizeof NANS / sizeof *NANS; i++) {
            const float x = float_of_bits(NANS[i]);
            float y = 0.0f;
            opc_kernels()->vec[f](1, &x, &y);
            assert_true(isnan(y));
        }
}

/* A probability that falls as its argument rises would be noticed by no tolerance. */
static void functions_never_step_back_between_neighbours(void **state)
{
    (void)state;
    enum { N = LIGHT ? 4000 : 40000 };
    float *x = floats_of(N, 0.0f), *y = floats_of(N, 0.0f);
    for (int f = 0; f < OPC_VEC_COUNT; f++) {
        for (int i = 0; i < N; i++)
            x[i] = (float)(f == OPC_VEC_LOG ? exp(-100.0 + 188.0 * i / N) : -110.0 + 198.0 * i / N);
        opc_kernels()->vec[f](N, x, y);
        for (int i = 1; i < N; i++)
            assert_true(y[i] >= y[i - 1]);
    }
    free(x);
    free(y);
}

/* The tail of an array goes another way through the code than its middle. */
static void bits_do_not_depend_on_the_place_in_the_array(void **state)
{
    (void)state;
    enum { MAX = 40, OFFSETS = 16, SIZE = OFFSETS + MAX + 16 };
    struct opc_rng r = test_stream(2);
    for (int f = 0; f < OPC_VEC_COUNT; f++) {
        float value[MAX], one[MAX];
        for (int i = 0; i < MAX; i++) {
            value[i] = 12.0f * any_float(&r);
            value[i] = f == OPC_VEC_LOG ? fabsf(value[i]) : value[i];
            opc_kernels()->vec[f](1, &value[i], &one[i]);
        }
        for (int n = 0; n <= MAX; n++)
            for (int offset = 0; offset < OFFSETS; offset++) {
                float x[SIZE], y[SIZE];
                const size_t bytes = (size_t)n * sizeof *x;
                for (int i = 0; i < SIZE; i++)
                    x[i] = y[i] = 1234.5f;
                memcpy(x + offset, value, bytes);
                opc_kernels()->vec[f]((size_t)n, x + offset, y + OFFSETS - offset);
                assert_same_bits(y + OFFSETS - offset, one, bytes);
                opc_kernels()->vec[f]((size_t)n, x + offset, x + offset); /* in place */
                assert_same_bits(x + offset, one, bytes);
                for (int i = 0; i < SIZE; i++) {
                    assert_true(x[i] == 1234.5f || (i >= offset && i < offset + n));
                    assert_true(y[i] == 1234.5f ||
                                (i >= OFFSETS - offset && i < OFFSETS - offset + n));
                }
            }
    }
}

/* Those with FMA among themselves, and those without. */
static void backends_of_one_rounding_agree_to_the_bit(void **state)
{
    (void)state;
    const struct opc_kernels *all[8];
    const int n = opc_kernels_list(all);
    float *x = arguments(), *y[8];
    for (int b = 0; b < n; b++)
        y[b] = floats_of(ARGUMENTS, 0.0f);
    for (int f = 0; f < OPC_VEC_COUNT; f++)
        for (int b = 0; b < n; b++) {
            all[b]->vec[f](ARGUMENTS, x, y[b]);
            for (int a = 0; a < b; a++) {
                if (all[a]->fused != all[b]->fused)
                    continue;
                for (int i = 0; i < ARGUMENTS; i++)
                    if (!same_bits(y[a][i], y[b][i]) && !(isnan(y[a][i]) && isnan(y[b][i])))
                        fail_msg("%s(%a) is %a in %s and %a in %s", FUNCTION[f].name, (double)x[i],
                                 (double)y[a][i], all[a]->name, (double)y[b][i], all[b]->name);
            }
        }
    for (int b = 0; b < n; b++)
        free(y[b]);
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        each_backend(functions_are_within_4_ulp_of_libm),
        each_backend(named_functions_are_the_table_in_use),
        each_backend(special_values_are_exact),
        each_backend(nan_in_gives_nan_out),
        each_backend(functions_never_step_back_between_neighbours),
        each_backend(bits_do_not_depend_on_the_place_in_the_array),
        cmocka_unit_test(backends_of_one_rounding_agree_to_the_bit),
    };
    return run_num_tests(tests);
}
