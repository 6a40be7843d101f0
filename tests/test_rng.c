/* SPDX-License-Identifier: MIT */
#include "opc/rng.h"

#include "test.h"

/* Random123's kat_vectors, philox4x32 with 10 rounds. */
static void philox_gives_the_published_words(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } KNOWN[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
        uint32_t out[4];
        opc_philox(KNOWN[i].counter, KNOWN[i].key, out);
        assert_same_bits(out, KNOWN[i].out, sizeof out);
    }
}

static void streams_hand_out_philox_blocks_in_order(void **state)
{
    (void)state;
    const uint64_t seed = 0x299f31d0a4093822;
    struct opc_rng r = opc_rng_stream(seed, OPC_USE_FIT, 0x123456, 0x89abcdef);
    for (uint32_t block = 0; block < 3; block++) {
        const uint32_t counter[4] = {block, 0, 0x89abcdef, (uint32_t)OPC_USE_FIT << 24 | 0x123456};
        const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
        uint32_t want[4];
        opc_philox(counter, key, want);
        for (int i = 0; i < 4; i++)
            assert_int_equal(opc_rng_bits(&r), want[i]);
    }
}

/* Different names, different stream numbers: at the corners of all three parts, where a packing
 * that overlaps or drops bits would show. */
static void different_names_never_share_a_stream(void **state)
{
    (void)state;
    static const uint32_t EPOCH[] = {0, 1, 0x800000, 0xffffff};
    static const uint32_t INDEX[] = {0, 1, 0x80000000, 0xffffffff};
    uint64_t seen[(OPC_USE_PARTICLE + 1) * 16] = {0};
    int n = 0;
    for (int use = 0; use <= OPC_USE_PARTICLE; use++)
        for (int e = 0; e < 4; e++)
            for (int i = 0; i < 4; i++) {
                struct opc_rng r = opc_rng_stream(7, (enum opc_use)use, EPOCH[e], INDEX[i]);
                for (int k = 0; k < n; k++)
                    assert_true(seen[k] != r.stream);
                seen[n++] = r.stream;
            }
    struct opc_rng a = opc_rng_stream(7, OPC_USE_TEST, 0, 0);
    struct opc_rng b = opc_rng_stream(8, OPC_USE_TEST, 0, 0);
    assert_true(opc_rng_bits(&a) != opc_rng_bits(&b));
}

static void a_copy_of_a_stream_goes_on_as_the_stream_does(void **state)
{
    (void)state;
    struct opc_rng r = opc_rng_stream(1, OPC_USE_TEST, 2, 3);
    for (int i = 0; i < 6; i++)
        opc_rng_bits(&r);
    struct opc_rng copy = r;
    for (int i = 0; i < 10; i++)
        assert_int_equal(opc_rng_bits(&r), opc_rng_bits(&copy));
}

static void fill_gives_what_bits_gives_from_every_offset(void **state)
{
    (void)state;
    enum { MAX = 23 };
    for (int offset = 0; offset < 9; offset++)
        for (int n = 0; n <= MAX; n++) {
            struct opc_rng one = opc_rng_stream(5, OPC_USE_TEST, 0, 1), all = one;
            for (int i = 0; i < offset; i++) {
                opc_rng_bits(&one);
                opc_rng_bits(&all);
            }
            uint32_t want[MAX] = {0}, got[MAX + 1];
            got[n] = 0xdeadbeef;
            for (int i = 0; i < n; i++)
                want[i] = opc_rng_bits(&one);
            opc_rng_fill(&all, n, got);
            assert_same_bits(got, want, (size_t)n * sizeof *got);
            assert_int_equal(got[n], 0xdeadbeef);
            assert_int_equal(opc_rng_bits(&all), opc_rng_bits(&one));
        }
}

static void units_stay_below_one_and_fill_the_interval(void **state)
{
    (void)state;
    enum { N = 100000 };
    struct opc_rng r = opc_rng_stream(3, OPC_USE_TEST, 0, 0);
    double sum = 0, min = 1, max = 0;
    for (int i = 0; i < N; i++) {
        const double v = i % 2 ? (double)opc_rng_unit(&r) : opc_rng_unit_double(&r);
        sum += v;
        min = v < min ? v : min;
        max = v > max ? v : max;
    }
    assert_true(min >= 0 && min < 1e-3 && max < 1 && max > 1 - 1e-3);
    assert_true(fabs(sum / N - 0.5) < 5 / sqrt(12.0 * N)); /* five standard deviations */
    /* the largest words give the largest units, which are still below 1 */
    struct opc_rng ones = {.word = {~0u, ~0u, ~0u, ~0u}, .left = 4};
    assert_true(opc_rng_unit(&ones) == 1 - 0x1p-24f);
    assert_true(opc_rng_unit_double(&ones) == 1 - 0x1p-53);
}

static void below_one_is_zero(void **state)
{
    (void)state;
    struct opc_rng r = opc_rng_stream(3, OPC_USE_TEST, 0, 1);
    for (int i = 0; i < 100; i++)
        assert_int_equal(opc_rng_below(&r, 1), 0);
}

static void below_hits_every_value_equally_often(void **state)
{
    (void)state;
    enum { N = 7, DRAWS = 70000 };
    struct opc_rng r = opc_rng_stream(3, OPC_USE_TEST, 0, 2);
    int count[N] = {0};
    for (int i = 0; i < DRAWS; i++)
        count[opc_rng_below(&r, N)]++;
    const double want = DRAWS / (double)N;
    double chi2 = 0;
    for (int i = 0; i < N; i++)
        chi2 += pow(count[i] - want, 2) / want;
    assert_true(chi2 < 22.5); /* 0.1 % for 6 degrees of freedom */
}

/* n = 3 2^30 has 4/3 words for each value: without drawing again, every third value would come
 * twice as often as the two others. */
static void below_is_fair_where_some_values_have_twice_the_words(void **state)
{
    (void)state;
    enum { DRAWS = 30000 };
    struct opc_rng r = opc_rng_stream(3, OPC_USE_TEST, 0, 3);
    int count[3] = {0};
    for (int i = 0; i < DRAWS; i++)
        count[opc_rng_below(&r, 3u << 30) % 3]++;
    for (int i = 0; i < 3; i++)
        assert_true(fabs(count[i] - DRAWS / 3.0) < 5 * sqrt(DRAWS * 2 / 9.0));
}

/* n = 2^31 + 1 has 2^32 mod n = 2^31 - 1 words too many, the worst case: every other is dropped. */
static void below_ends_where_half_of_the_words_are_dropped(void **state)
{
    (void)state;
    enum { DRAWS = 10000 };
    const uint32_t n = 0x80000001u;
    struct opc_rng r = opc_rng_stream(3, OPC_USE_TEST, 0, 4);
    int upper = 0;
    for (int i = 0; i < DRAWS; i++) {
        const uint32_t v = opc_rng_below(&r, n);
        assert_true(v < n);
        upper += v >= n / 2;
    }
    const double words = 4.0 * (double)r.block - r.left;
    assert_true(fabs(upper - DRAWS / 2.0) < 5 * sqrt(DRAWS / 4.0));
    assert_true(fabs(words / DRAWS - 2) < 5 * sqrt(2.0 / DRAWS));
}

static void shuffle_makes_every_order_equally_often(void **state)
{
    (void)state;
    enum { ORDERS = 6, DRAWS = 60000 };
    struct opc_rng r = opc_rng_stream(3, OPC_USE_TEST, 0, 5);
    int count[27] = {0}; /* by the order as a number of base 3 */
    for (int i = 0; i < DRAWS; i++) {
        int item[3] = {0, 1, 2};
        opc_rng_shuffle(&r, 3, item);
        count[9 * item[0] + 3 * item[1] + item[2]]++;
    }
    static const int order[ORDERS] = {5, 7, 11, 15, 19, 21}; /* 012, 021, 102, 120, 201, 210 */
    const double want = DRAWS / (double)ORDERS;
    double chi2 = 0, all = 0;
    for (int i = 0; i < ORDERS; i++) {
        chi2 += pow(count[order[i]] - want, 2) / want;
        all += count[order[i]];
    }
    assert_true(all == DRAWS);
    assert_true(chi2 < 20.5); /* 0.1 % for 5 degrees of freedom */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_published_words),
        cmocka_unit_test(streams_hand_out_philox_blocks_in_order),
        cmocka_unit_test(different_names_never_share_a_stream),
        cmocka_unit_test(a_copy_of_a_stream_goes_on_as_the_stream_does),
        cmocka_unit_test(fill_gives_what_bits_gives_from_every_offset),
        cmocka_unit_test(units_stay_below_one_and_fill_the_interval),
        cmocka_unit_test(below_one_is_zero),
        cmocka_unit_test(below_hits_every_value_equally_often),
        cmocka_unit_test(below_is_fair_where_some_values_have_twice_the_words),
        cmocka_unit_test(below_ends_where_half_of_the_words_are_dropped),
        cmocka_unit_test(shuffle_makes_every_order_equally_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
