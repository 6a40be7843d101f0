/* SPDX-License-Identifier: MIT */
/* Standard normal variates from streams of random words: for first weights, for the policy's and
 * the model's noise, and for environments. The fast paths must consume a stream exactly as
 * opc_rng_fill and opc_rng_bits would: recorded results depend on which variate a row gets. */
#include "num/normal.h"

#include "num/kernel.h"

#include <string.h>

enum { P = OPC_PANEL, AT_ONCE = 4 * P };

/* What opc_rng_fill does, for AT_ONCE words of a stream that has no word left over: 16 blocks of
 * Philox, side by side in the lanes of a vector. */
static void fill_words(const struct opc_kernels *k, struct opc_rng *r, uint32_t words[AT_ONCE])
{
    const uint32_t key[2] = {(uint32_t)r->seed, (uint32_t)(r->seed >> 32)};
    uint32_t counter[4][P], out[4][P];
    for (int lane = 0; lane < P; lane++) {
        const uint64_t block = r->block + (uint64_t)lane;
        counter[0][lane] = (uint32_t)block;
        counter[1][lane] = (uint32_t)(block >> 32);
        counter[2][lane] = (uint32_t)r->stream;
        counter[3][lane] = (uint32_t)(r->stream >> 32);
    }
    k->philox(counter, key, out);
    for (int lane = 0; lane < P; lane++)
        for (int i = 0; i < 4; i++)
            words[4 * lane + i] = out[i][lane];
    r->block += P;
}

void opc_rng_normals(struct opc_rng *r, int n, float *out)
{
    const struct opc_kernels *k = opc_kernels();
    uint32_t words[AT_ONCE];
    /* Whole runs of AT_ONCE words, and then the rest, rounded up to pairs. */
    for (; n >= AT_ONCE; n -= AT_ONCE, out += AT_ONCE) {
        if (r->left == 0)
            fill_words(k, r, words);
        else
            opc_rng_fill(r, AT_ONCE, words);
        k->normals(AT_ONCE, words, out);
    }
    if (n > 0) {
        float last[AT_ONCE];
        const int even = n + n % 2;
        opc_rng_fill(r, even, words);
        k->normals((size_t)even, words, last);
        memcpy(out, last, (size_t)n * sizeof *out);
    }
}

/* The block after the next `skip` ones of each of `rows` streams of one seed. */
static void next_blocks(const struct opc_kernels *k, int rows, const struct opc_rng *rng,
                        uint64_t skip, uint32_t out[4][P])
{
    const uint32_t key[2] = {(uint32_t)rng->seed, (uint32_t)(rng->seed >> 32)};
    uint32_t counter[4][P] = {{0}};
    for (int i = 0; i < rows; i++) {
        const uint64_t block = rng[i].block + skip;
        counter[0][i] = (uint32_t)block;
        counter[1][i] = (uint32_t)(block >> 32);
        counter[2][i] = (uint32_t)rng[i].stream;
        counter[3][i] = (uint32_t)(rng[i].stream >> 32);
    }
    k->philox(counter, key, out);
}

/* The vector kernel takes one key for all lanes, and the key is the seed. */
static bool one_seed(int rows, const struct opc_rng *rng)
{
    for (int i = 1; i < rows; i++)
        if (rng[i].seed != rng[0].seed)
            return false;
    return true;
}

/* Tops up every row's stream that has run out, all at once where they have one seed. */
static void top_up(const struct opc_kernels *k, int rows, struct opc_rng *rng, bool together)
{
    uint32_t block[4][P];
    bool any = false;
    for (int i = 0; i < rows; i++)
        any = any || rng[i].left == 0;
    if (!any || !together)
        return; /* opc_rng_bits makes its own */
    next_blocks(k, rows, rng, 0, block);
    for (int i = 0; i < rows; i++)
        if (rng[i].left == 0) {
            for (int w = 0; w < 4; w++)
                rng[i].word[w] = block[w][i];
            rng[i].left = 4;
            rng[i].block++;
        }
}

/* True if all streams have one seed and are at the same place of a block, between two pairs. */
static bool in_step(int rows, const struct opc_rng *rng)
{
    for (int i = 0; i < rows; i++)
        if (rng[i].left != rng[0].left)
            return false;
    return rng[0].left % 2 == 0 && one_seed(rows, rng);
}

/* One panel of streams in step, which is what rows are that have always drawn together: the words
 * of a block stay apart, a vector for each of its four, and every two of them make a pair of
 * variates. z[dim][16]. */
static void normals_in_step(const struct opc_kernels *k, int rows, struct opc_rng *rng, int dim,
                            float *z)
{
    uint32_t word[4][P] = {{0}}, at = 4 - rng[0].left;
    uint64_t blocks = 0;
    float dropped[P] = {0}; /* the second variate of an odd count's last pair */
    for (uint32_t w = at; w < 4; w++)
        for (int i = 0; i < rows; i++)
            word[w][i] = rng[i].word[w];
    for (int d = 0; d < dim; d += 2, at += 2) {
        if (at == 4) {
            next_blocks(k, rows, rng, blocks++, word);
            at = 0;
        }
        k->normals_apart(word[at], word[at + 1], z + d * P,
                         d + 1 < dim ? z + (d + 1) * P : dropped);
    }
    /* The streams as single draws would have left them. */
    for (int i = 0; i < rows; i++) {
        for (int w = 0; blocks > 0 && w < 4; w++)
            rng[i].word[w] = word[w][i];
        rng[i].block += blocks;
        rng[i].left = 4 - at;
    }
}

/* One panel of streams that are not in step: the words pair by pair, row by row, so that one call
 * turns all of them. z[dim][16]. */
static void normals_out_of_step(const struct opc_kernels *k, int rows, struct opc_rng *rng, int dim,
                                float *z)
{
    uint32_t words[P * 2] = {0};
    float pair[P * 2];
    const bool together = one_seed(rows, rng);
    for (int d = 0; d < dim; d += 2) {
        for (int w = 0; w < 2; w++) {
            top_up(k, rows, rng, together);
            for (int i = 0; i < rows; i++)
                words[2 * i + w] = opc_rng_bits(&rng[i]);
        }
        k->normals(P * 2, words, pair);
        for (int i = 0; i < P; i++) {
            z[d * P + i] = pair[2 * i];
            if (d + 1 < dim)
                z[(d + 1) * P + i] = pair[2 * i + 1];
        }
    }
}

void opc_rng_normals_rows(struct opc_rng *rng, int rows, int dim, float *z)
{
    const struct opc_kernels *k = opc_kernels();
    for (int first = 0; first < rows; first += P, z += dim * P) {
        const int here = rows - first < P ? rows - first : P;
        if (in_step(here, rng + first))
            normals_in_step(k, here, rng + first, dim, z);
        else
            normals_out_of_step(k, here, rng + first, dim, z);
    }
}
