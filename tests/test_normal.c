/* SPDX-License-Identifier: MIT */
#include "num/normal.h"

#include "test_num.h"

enum { P = OPC_PANEL, DRAWS = LIGHT ? 100000 : 1000000 };
static const double PI = 3.14159265358979324;

/* The variates the statistics are taken of: the same for all tests. */
static float *draws(void)
{
    struct opc_rng r = test_stream(1);
    float *z = floats_of(DRAWS, 0.0f);
    opc_rng_normals(&r, DRAWS, z);
    return z;
}

/* normal.h's formula in double. The radius is known as well as u is: to half an ULP below 1, which
 * is 2^-25 / r in r; all else is worth a few ULP. */
/* Counters whose low word overflows, and every lane another stream. */
static void sixteen_blocks_at_once_are_the_blocks_one_by_one(void **state)
{
    (void)state;
    struct opc_rng r = test_stream(1);
    for (int trial = 0; trial < 200; trial++) {
        uint32_t counter[4][OPC_PANEL], key[2], out[4][OPC_PANEL];
        opc_rng_fill(&r, 4 * OPC_PANEL, &counter[0][0]);
        opc_rng_fill(&r, 2, key);
        opc_kernels()->philox((const uint32_t(*)[OPC_PANEL])counter, key, out);
        for (int lane = 0; lane < OPC_PANEL; lane++) {
            const uint32_t one[4] = {counter[0][lane], counter[1][lane], counter[2][lane],
                                     counter[3][lane]};
            uint32_t want[4];
            opc_philox(one, key, want);
            for (int i = 0; i < 4; i++)
                assert_int_equal(out[i][lane], want[i]);
        }
    }
}

/* Long runs, from a fresh stream and from one with words left over, across the carry. */
static void long_runs_take_the_words_in_order(void **state)
{
    (void)state;
    enum { N = 1000 };
    for (int used = 0; used < 5; used++) {
        struct opc_rng a = test_stream(3);
        a.block = 0xfffffff8u;
        for (int i = 0; i < used; i++)
            opc_rng_bits(&a);
        struct opc_rng b = a;
        uint32_t words[N];
        float got[N], want[N];
        opc_rng_normals(&a, N, got);
        opc_rng_fill(&b, N, words);
        opc_kernels()->normals(N, words, want);
        assert_same_bits(got, want, sizeof got);
        assert_int_equal(opc_rng_bits(&a), opc_rng_bits(&b));
    }
}

static void a_pair_is_box_muller_of_its_two_words(void **state)
{
    (void)state;
    enum { N = 20000 };
    static const uint32_t CORNER[] = {0,          1,          2,          3,
                                      0x3fffffff, 0x40000000, 0x7fffffff, 0x80000000,
                                      0xbfffffff, 0xc0000000, 0xfffffffe, 0xffffffff};
    enum { CORNERS = sizeof CORNER / sizeof *CORNER };
    struct opc_rng r = test_stream(2);
    uint32_t words[N];
    float z[N];
    opc_rng_fill(&r, N, words);
    for (int i = 0; i < CORNERS; i++)
        for (int j = 0; j < CORNERS; j++) {
            words[2 * (i * CORNERS + j)] = CORNER[i];
            words[2 * (i * CORNERS + j) + 1] = CORNER[j];
        }
    opc_kernels()->normals(N, words, z);
    for (int i = 0; i < N; i += 2) {
        const double u = (2.0 * (words[i] >> 1) + 1.0) * 0x1p-32;
        const double radius = sqrt(-2.0 * log(u));
        /* top two bits: the quarter; the others: the place in it, from -1/2 to 1/2 */
        const double place = (double)(words[i + 1] << 2) * 0x1p-32;
        const double quarters = (words[i + 1] >> 30) + (place < 0.5 ? place : place - 1.0);
        const double angle = quarters * PI / 2.0, tolerance = 0x1p-24 / (radius + 0x1p-12) + 1e-6;
        assert_true(fabs(z[i] - radius * cos(angle)) <= tolerance);
        assert_true(fabs(z[i + 1] - radius * sin(angle)) <= tolerance);
        assert_true(fabsf(z[i]) < 6.67f && fabsf(z[i + 1]) < 6.67f);
    }
}

static void moments_are_those_of_the_normal(void **state)
{
    (void)state;
    float *z = draws();
    double sum[5] = {0};
    for (int i = 0; i < DRAWS; i++) {
        double power = 1.0;
        for (int k = 1; k <= 4; k++)
            sum[k] += power *= z[i];
    }
    const double n = DRAWS; /* four standard deviations of each estimate */
    assert_true(fabs(sum[1] / n) < 4.0 * sqrt(1.0 / n));
    assert_true(fabs(sum[2] / n - 1.0) < 4.0 * sqrt(2.0 / n));
    assert_true(fabs(sum[3] / n) < 4.0 * sqrt(15.0 / n));
    assert_true(fabs(sum[4] / n - 3.0) < 4.0 * sqrt(96.0 / n));
    free(z);
}

static double upper_tail(double z)
{
    return 0.5 * erfc(z * sqrt(0.5));
}

static void tails_are_as_heavy_as_they_should_be(void **state)
{
    (void)state;
    float *z = draws();
    for (int k = 1; k <= 9; k++) {
        const double limit = 0.5 * k, p = upper_tail(limit), spread = sqrt(DRAWS * p);
        int above = 0, below = 0;
        for (int i = 0; i < DRAWS; i++) {
            above += z[i] > limit;
            below += z[i] < -limit;
        }
        assert_true(fabs(above - DRAWS * p) <= 4.0 * spread + 1.0);
        assert_true(fabs(below - DRAWS * p) <= 4.0 * spread + 1.0);
    }
    free(z);
}

static int by_value(const void *a, const void *b)
{
    const float p = *(const float *)a, q = *(const float *)b;
    return (p > q) - (p < q);
}

/* Kolmogorov-Smirnov, for all variates and for the two of each pair alone. 1.63 is exceeded once
 * in a hundred times. */
static void distribution_is_normal_everywhere(void **state)
{
    (void)state;
    float *z = draws();
    for (int half = 0; half < 3; half++) {
        float *part = floats_of(DRAWS, 0.0f);
        int n = 0;
        for (int i = 0; i < DRAWS; i++)
            if (half == 2 || i % 2 == half)
                part[n++] = z[i];
        qsort(part, (size_t)n, sizeof *part, by_value);
        double max = 0.0;
        for (int i = 0; i < n; i++) {
            const double p = upper_tail(-part[i]);
            max = fmax(max, fmax(fabs(p - (double)i / n), fabs(p - (i + 1.0) / n)));
        }
        assert_true(max * sqrt(n) < 1.63);
        assert_true(max * sqrt(n) > 0.2); /* no random numbers fit that well */
        free(part);
    }
    free(z);
}

static double correlation(int n, const double *a, const double *b)
{
    double ma = 0.0, mb = 0.0, aa = 0.0, bb = 0.0, ab = 0.0;
    for (int i = 0; i < n; i++) {
        ma += a[i] / n;
        mb += b[i] / n;
    }
    for (int i = 0; i < n; i++) {
        aa += (a[i] - ma) * (a[i] - ma);
        bb += (b[i] - mb) * (b[i] - mb);
        ab += (a[i] - ma) * (b[i] - mb);
    }
    return ab / sqrt(aa * bb);
}

/* The two of a pair come from one radius and one angle; a slip in either shows in their products,
 * in their squares, or in the angle between them. */
static void the_two_of_a_pair_are_independent(void **state)
{
    (void)state;
    enum { PAIRS = DRAWS / 2 };
    float *z = draws();
    double *a = calloc(PAIRS, sizeof *a), *b = calloc(PAIRS, sizeof *b);
    assert_true(a && b);
    for (int lag = 0; lag < 3; lag++)
        for (int power = 1; power <= 2; power++) {
            for (int i = 0; i < PAIRS; i++) {
                const double p = z[2 * i], q = z[(2 * i + 1 + lag) % DRAWS];
                a[i] = power == 1 ? p : p * p;
                b[i] = power == 1 ? q : q * q;
            }
            assert_true(fabs(correlation(PAIRS, a, b)) < 4.0 / sqrt(PAIRS));
        }
    enum { BINS = 64 };
    int count[BINS] = {0};
    for (int i = 0; i < PAIRS; i++) {
        const double turn = atan2(z[2 * i + 1], z[2 * i]) / (2.0 * PI) + 0.5;
        const int bin = (int)(turn * BINS);
        count[bin < BINS ? bin : BINS - 1]++;
    }
    double chi2 = 0.0;
    for (int i = 0; i < BINS; i++)
        chi2 += pow(count[i] - PAIRS / (double)BINS, 2.0) / (PAIRS / (double)BINS);
    assert_true(chi2 > 30.0 && chi2 < 103.4); /* 0.1 % on either side, for 63 degrees of freedom */
    free(a);
    free(b);
    free(z);
}

static void every_quarter_of_the_circle_is_visited_in_all_signs(void **state)
{
    (void)state;
    int seen[4] = {0};
    for (uint32_t i = 0; i < 64; i++) {
        const uint32_t words[2] = {0x12345678, i << 26};
        float z[2];
        opc_kernels()->normals(2, words, z);
        seen[2 * (z[0] > 0.0f) + (z[1] > 0.0f)]++;
    }
    for (int i = 0; i < 4; i++)
        assert_true(seen[i] >= 15 && seen[i] <= 17);
}

static void an_odd_count_drops_the_second_of_its_last_pair(void **state)
{
    (void)state;
    enum { MAX = 520 };
    for (int n = 0; n < MAX; n++) {
        struct opc_rng one = test_stream(3), pairs = one;
        float got[MAX + 1], want[MAX + 2];
        for (int i = 0; i < MAX + 1; i++)
            got[i] = 1234.5f;
        opc_rng_normals(&one, n, got);
        for (int i = 0; i < n; i += 2)
            opc_rng_normals(&pairs, 2, want + i);
        assert_same_bits(got, want, (size_t)n * sizeof *got);
        assert_true(got[n] == 1234.5f);
        assert_int_equal(opc_rng_bits(&one), opc_rng_bits(&pairs)); /* moved on alike */
    }
}

/* `place`: how many words each of the streams has given before; DIFFERENT: some more than others.
 */
static void check_rows(int rows, int dim, int place)
{
    enum { MAX = 40, DIMS = 19, DIFFERENT = 5 };
    struct opc_rng rng[MAX], alone[MAX];
    for (int i = 0; i < rows; i++) {
        rng[i] = test_stream((uint32_t)(100 + i));
        for (int skip = 0; skip < (place == DIFFERENT ? i % 5 : place); skip++)
            opc_rng_bits(&rng[i]);
        alone[i] = rng[i];
    }
    const int panels = opc_panels(rows);
    float *z = floats_of((size_t)(panels * dim * P), NAN);
    for (int call = 0; call < 2; call++) {
        opc_rng_normals_rows(rng, rows, dim, z);
        for (int i = 0; i < rows; i++) {
            float want[DIMS];
            opc_rng_normals(&alone[i], dim, want);
            for (int d = 0; d < dim; d++)
                assert_true(same_bits(z[(i / P * dim + d) * P + i % P], want[d]));
        }
        for (int k = 0; k < panels * dim * P; k++)
            assert_true(isfinite(z[k])); /* the padding is finite too */
    }
    for (int i = 0; i < rows; i++)
        for (int word = 0; word < 5; word++) /* what is left of the block, and the next one */
            assert_int_equal(opc_rng_bits(&rng[i]), opc_rng_bits(&alone[i]));
    free(z);
}

static void rows_get_what_their_own_stream_gives(void **state)
{
    (void)state;
    for (int rows = 1; rows <= 40; rows += rows < 18 ? 1 : 5)
        for (int dim = 1; dim <= 19; dim += dim < 5 ? 1 : 7)
            for (int place = 0; place <= 5; place++)
                check_rows(rows, dim, place);
}

static void backends_of_one_rounding_agree_to_the_bit(void **state)
{
    (void)state;
    enum { N = 4096 };
    const struct opc_kernels *all[8];
    const int n = opc_kernels_list(all);
    struct opc_rng r = test_stream(4);
    uint32_t words[N];
    static float z[8][N];
    opc_rng_fill(&r, N, words);
    for (int b = 0; b < n; b++) {
        all[b]->normals(N, words, z[b]);
        for (int a = 0; a < b; a++)
            if (all[a]->fused == all[b]->fused)
                assert_same_bits(z[a], z[b], sizeof z[a]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        each_backend(sixteen_blocks_at_once_are_the_blocks_one_by_one),
        each_backend(long_runs_take_the_words_in_order),
        each_backend(a_pair_is_box_muller_of_its_two_words),
        each_backend(every_quarter_of_the_circle_is_visited_in_all_signs),
        each_backend(moments_are_those_of_the_normal),
        each_backend(tails_are_as_heavy_as_they_should_be),
        cmocka_unit_test(distribution_is_normal_everywhere),
        cmocka_unit_test(the_two_of_a_pair_are_independent),
        each_backend(an_odd_count_drops_the_second_of_its_last_pair),
        each_backend(rows_get_what_their_own_stream_gives),
        cmocka_unit_test(backends_of_one_rounding_agree_to_the_bit),
    };
    return run_num_tests(tests);
}
