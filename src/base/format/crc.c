/* SPDX-License-Identifier: MIT */
/* CRC-32C of checkpoints, model files and plugins. Both implementations must give the same value on
 * every processor, because a file written with one is checked with the other. */
#include "base/format/crc.h"

#include <string.h>

/* The register holds a polynomial over GF(2), lowest power in the highest bit; one step multiplies
 * it by x modulo the Castagnoli polynomial 0x82f63b78:
 *
 *     step(c) = c >> 1 ^ (c & 1 ? 0x82f63b78 : 0)
 *
 * TABLE[k][i] is the contribution of byte i after k more bytes have passed, so eight bytes take
 * eight look-ups ("slicing by 8"). The map is linear in i: a row follows from its value at the
 * eight powers of two, and those of all rows together are the polynomial stepped 0 .. 63 times. */
#define BIT(i, b, p) ((i) & (b) ? (p) : 0u)
#define BYTE(i, p0, p1, p2, p3, p4, p5, p6, p7)                                                    \
    (BIT(i, 128, p0) ^ BIT(i, 64, p1) ^ BIT(i, 32, p2) ^ BIT(i, 16, p3) ^ BIT(i, 8, p4) ^          \
     BIT(i, 4, p5) ^ BIT(i, 2, p6) ^ BIT(i, 1, p7))
#define FOUR(i, ...)                                                                               \
    BYTE(i, __VA_ARGS__), BYTE(i + 1, __VA_ARGS__), BYTE(i + 2, __VA_ARGS__),                      \
        BYTE(i + 3, __VA_ARGS__)
#define SIXTEEN(i, ...)                                                                            \
    FOUR(i, __VA_ARGS__), FOUR(i + 4, __VA_ARGS__), FOUR(i + 8, __VA_ARGS__),                      \
        FOUR(i + 12, __VA_ARGS__)
#define QUARTER(i, ...)                                                                            \
    SIXTEEN(i, __VA_ARGS__), SIXTEEN(i + 16, __VA_ARGS__), SIXTEEN(i + 32, __VA_ARGS__),           \
        SIXTEEN(i + 48, __VA_ARGS__)
#define ROW(...)                                                                                   \
    {                                                                                              \
        QUARTER(0, __VA_ARGS__), QUARTER(64, __VA_ARGS__), QUARTER(128, __VA_ARGS__),              \
            QUARTER(192, __VA_ARGS__)                                                              \
    }

/* clang-format off */
static const uint32_t TABLE[8][256] = {
    ROW(0x82f63b78, 0x417b1dbc, 0x20bd8ede, 0x105ec76f,
        0x8ad958cf, 0xc79a971f, 0xe13b70f7, 0xf26b8303),
    ROW(0xfbc3faf9, 0xff17c604, 0x7f8be302, 0x3fc5f181,
        0x9d14c3b8, 0x4e8a61dc, 0x274530ee, 0x13a29877),
    ROW(0x8b277743, 0xc76580d9, 0xe144fb14, 0x70a27d8a,
        0x38513ec5, 0x9edea41a, 0x4f6f520d, 0xa541927e),
    ROW(0x52a0c93f, 0xaba65fe7, 0xd725148b, 0xe964b13d,
        0xf64463e6, 0x7b2231f3, 0xbf672381, 0xdd45aab8),
    ROW(0x6ea2d55c, 0x37516aae, 0x1ba8b557, 0x8f2261d3,
        0xc5670b91, 0xe045beb0, 0x7022df58, 0x38116fac),
    ROW(0x1c08b7d6, 0x0e045beb, 0x85f4168d, 0xc00c303e,
        0x6006181f, 0xb2f53777, 0xdb8ca0c3, 0xef306b19),
    ROW(0xf56e0ef4, 0x7ab7077a, 0x3d5b83bd, 0x9c5bfaa6,
        0x4e2dfd53, 0xa5e0c5d1, 0xd0065990, 0x68032cc8),
    ROW(0x34019664, 0x1a00cb32, 0x0d006599, 0x847609b4,
        0x423b04da, 0x211d826d, 0x9278fa4e, 0x493c7d27),
};
/* clang-format on */

uint32_t opc_crc32c_table(uint32_t so_far, const void *data, size_t n)
{
    const unsigned char *p = data;
    uint32_t c = ~so_far;
    for (; n >= 8; n -= 8, p += 8) {
        /* The first four bytes are folded into the register, the other four enter by their own
         * tables; bytes are put together by hand so that the order of the machine does not matter.
         */
        c ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        c = TABLE[7][c & 0xff] ^ TABLE[6][c >> 8 & 0xff] ^ TABLE[5][c >> 16 & 0xff] ^
            TABLE[4][c >> 24] ^ TABLE[3][p[4]] ^ TABLE[2][p[5]] ^ TABLE[1][p[6]] ^ TABLE[0][p[7]];
    }
    /* The remaining 0 to 7 bytes go one at a time. */
    for (; n > 0; n--, p++)
        c = c >> 8 ^ TABLE[0][(c ^ *p) & 0xff];
    return ~c;
}

#if defined(__x86_64__) && defined(__GNUC__)
#define OPC_TARGET(set) __attribute__((target(set)))

/* The crc32 instruction of SSE 4.2 computes this very polynomial, eight bytes at a time. */
OPC_TARGET("sse4.2") static uint32_t crc_by_instruction(uint32_t so_far, const void *data, size_t n)
{
    const unsigned char *p = data;
    uint64_t c = (uint32_t)~so_far;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        c = __builtin_ia32_crc32di(c, word);
    }
    uint32_t last = (uint32_t)c;
    for (; n > 0; n--, p++)
        last = __builtin_ia32_crc32qi(last, *p);
    return ~last;
}

uint32_t opc_crc32c(uint32_t so_far, const void *data, size_t n)
{
    if (__builtin_cpu_supports("sse4.2"))
        return crc_by_instruction(so_far, data, n);
    return opc_crc32c_table(so_far, data, n);
}
#else
uint32_t opc_crc32c(uint32_t so_far, const void *data, size_t n)
{
    return opc_crc32c_table(so_far, data, n);
}
#endif
