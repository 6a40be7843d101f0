/* SPDX-License-Identifier: MIT */
/* Random numbers (opc/rng.h): a counter-based generator, so that a stream is a position in a table
 * that nobody stores. Every draw of a run comes from here.
 *
 * Invariant: the numbers of a stream depend on seed, use, epoch and index alone. Any change here
 * changes every result; tests/test_rng.c has the published test vectors. */
#include "opc/rng.h"

/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011). A round multiplies two words of the counter,
 * swaps halves and adds the key; the key moves by a Weyl step between rounds. */
enum { ROUNDS = 10 };
static const uint32_t MULTIPLIER[2] = {0xD2511F53u, 0xCD9E8D57u};
static const uint32_t WEYL[2] = {0x9E3779B9u, 0xBB67AE85u};

void opc_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t p0 = (uint64_t)MULTIPLIER[0] * c0, p1 = (uint64_t)MULTIPLIER[1] * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += WEYL[0];
        k1 += WEYL[1];
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* The counter is 128 bits: the stream (8 bits use, 24 epoch, 32 index) above 64 bits of blocks, so
 * streams never overlap. */
struct opc_rng opc_rng_stream(uint64_t seed, enum opc_use use, uint32_t epoch, uint32_t index)
{
    uint64_t stream =
        (uint64_t)(use & 0xFF) << 56 | (uint64_t)(epoch & 0xFFFFFFu) << 32 | (uint64_t)index;
    return (struct opc_rng){.seed = seed, .stream = stream};
}

/* Four words from the next counter value. */
static void next_block(struct opc_rng *r, uint32_t out[4])
{
    const uint32_t counter[4] = {(uint32_t)r->block, (uint32_t)(r->block >> 32),
                                 (uint32_t)r->stream, (uint32_t)(r->stream >> 32)};
    const uint32_t key[2] = {(uint32_t)r->seed, (uint32_t)(r->seed >> 32)};
    opc_philox(counter, key, out);
    r->block++;
}

/* One word; a block is used up word by word. */
uint32_t opc_rng_bits(struct opc_rng *r)
{
    if (r->left == 0) {
        next_block(r, r->word);
        r->left = 4;
    }
    return r->word[4 - r->left--];
}

void opc_rng_fill(struct opc_rng *r, int n, uint32_t *out)
{
    /* The same words as n calls of opc_rng_bits: finish the started block, take whole blocks,
     * start one. */
    int i = 0;
    while (i < n && r->left > 0)
        out[i++] = opc_rng_bits(r);
    for (; i + 4 <= n; i += 4)
        next_block(r, out + i);
    while (i < n)
        out[i++] = opc_rng_bits(r);
}

/* 24 bits: all floats in [0, 1) that are multiples of 2^-24. */
float opc_rng_unit(struct opc_rng *r)
{
    return (float)(opc_rng_bits(r) >> 8) * 0x1p-24f;
}

/* 27 + 26 = 53 bits, the precision of a double. Two statements, because the order of two calls in
 * one expression is not defined. */
double opc_rng_unit_double(struct opc_rng *r)
{
    uint64_t high = opc_rng_bits(r) >> 5, low = opc_rng_bits(r) >> 6;
    return (double)(high << 26 | low) * 0x1p-53;
}

uint32_t opc_rng_below(struct opc_rng *r, uint32_t n)
{
    /* Lemire's multiplication: the high word of bits * n is the result. It is uniform once products
     * whose low word is below 2^32 mod n are drawn again. */
    uint64_t product = (uint64_t)opc_rng_bits(r) * n;
    if ((uint32_t)product < n) {
        const uint32_t unfair = (uint32_t)-n % n;
        while ((uint32_t)product < unfair)
            product = (uint64_t)opc_rng_bits(r) * n;
    }
    return (uint32_t)(product >> 32);
}

/* Fisher-Yates, from the last item down. */
void opc_rng_shuffle(struct opc_rng *rng, int n, int *item)
{
    for (int i = n - 1; i > 0; i--) {
        const int k = (int)opc_rng_below(rng, (uint32_t)i + 1), kept = item[i];
        item[i] = item[k];
        item[k] = kept;
    }
}
