/* SPDX-License-Identifier: MIT */
#include "base/format/crc.h"

#include "opc/rng.h"
#include "test.h"

typedef uint32_t crc_fn(uint32_t so_far, const void *data, size_t n);

/* The definition: one bit at a time. */
static uint32_t by_definition(uint32_t so_far, const void *data, size_t n)
{
    const unsigned char *p = data;
    uint32_t c = ~so_far;
    for (size_t i = 0; i < n; i++) {
        c ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            c = c >> 1 ^ (c & 1 ? 0x82f63b78u : 0);
    }
    return ~c;
}

/* RFC 3720, appendix B.4, and the usual check value. */
static void known_checks_are_right(void **state)
{
    (void)state;
    static crc_fn *const VARIANT[] = {opc_crc32c, opc_crc32c_table, by_definition};
    unsigned char zeros[32] = {0}, ones[32], up[32], down[32];
    for (int i = 0; i < 32; i++) {
        ones[i] = 0xff;
        up[i] = (unsigned char)i;
        down[i] = (unsigned char)(31 - i);
    }
    for (int v = 0; v < 3; v++) {
        assert_int_equal(VARIANT[v](0, "123456789", 9), 0xe3069283);
        assert_int_equal(VARIANT[v](0, "", 0), 0);
        assert_int_equal(VARIANT[v](0, zeros, 32), 0x8a9136aa);
        assert_int_equal(VARIANT[v](0, ones, 32), 0x62a8ab43);
        assert_int_equal(VARIANT[v](0, up, 32), 0x46dd794e);
        assert_int_equal(VARIANT[v](0, down, 32), 0x113fdb5c);
    }
}

static void variants_agree_on_any_length_and_alignment(void **state)
{
    (void)state;
    enum { WORDS = 300 };
    struct opc_rng r = opc_rng_stream(1, OPC_USE_TEST, 0, 0);
    uint32_t words[WORDS];
    opc_rng_fill(&r, WORDS, words);
    const unsigned char *bytes = (const unsigned char *)words;
    for (int i = 0; i < 2000; i++) {
        const uint32_t from = opc_rng_below(&r, 16), n = opc_rng_below(&r, i % 2 ? 40 : 1180);
        const uint32_t so_far = opc_rng_bits(&r), want = by_definition(so_far, bytes + from, n);
        assert_int_equal(opc_crc32c(so_far, bytes + from, n), want);
        assert_int_equal(opc_crc32c_table(so_far, bytes + from, n), want);
    }
}

static void pieces_give_what_the_whole_gives(void **state)
{
    (void)state;
    const char text[] = "complete files appear by rename, logs grow a line at a time";
    const uint32_t whole = opc_crc32c(0, text, sizeof text);
    for (size_t cut = 0; cut <= sizeof text; cut++) {
        assert_int_equal(opc_crc32c(opc_crc32c(0, text, cut), text + cut, sizeof text - cut),
                         whole);
        assert_int_equal(
            opc_crc32c_table(opc_crc32c_table(0, text, cut), text + cut, sizeof text - cut), whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_checks_are_right),
        cmocka_unit_test(variants_agree_on_any_length_and_alignment),
        cmocka_unit_test(pieces_give_what_the_whole_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
