/* SPDX-License-Identifier: MIT */
/* PNG files without a library, for pictures of environments (cli/env/film.c).
 *
 * A PNG file is a signature and chunks (length, name, data, CRC-32). The picture is in IDAT, as a
 * zlib stream of rows. Each row starts with a byte that names its filter, which here is always the
 * difference from the row above or from the pixel to the left, whichever has the smaller sum.
 *
 * The stream is one deflate block with the fixed codes (RFC 1951, 3.2.6). Repetitions are looked
 * for at three distances only: one byte, one pixel and one row back. In filtered pictures of plain
 * surfaces that finds most of what there is, at a tenth of the code of a real compressor. */
#include "base/format/png.h"

#include "base/file.h"
#include "opc/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 16384, SHORTEST_MATCH = 3, LONGEST_MATCH = 258, FURTHEST = 32768 };

/* ---- checksums ------------------------------------------------------------------------------- */

/* CRC-32 of zlib, bit by bit: unlike CRC-32C it has no instruction, and pictures are small. */
static uint32_t crc32(uint32_t crc, const unsigned char *data, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return crc;
}

/* The checksum at the end of a zlib stream; 65521 is the largest prime below 2^16. */
static uint32_t adler32(const unsigned char *data, size_t n)
{
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < n; i++) {
        a = (a + data[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

/* PNG stores numbers with the highest byte first. */
static void put32(unsigned char out[4], uint32_t x)
{
    for (int i = 0; i < 4; i++)
        out[i] = (unsigned char)(x >> (24 - 8 * i));
}

/* ---- deflate --------------------------------------------------------------------------------- */

struct bits {
    struct opc_text *out;
    uint32_t held; /* bits not yet written, the next one lowest */
    int n;
};

/* Appends the n lowest bits of value; deflate fills each byte from its lowest bit. */
static void put_bits(struct bits *b, uint32_t value, int n)
{
    b->held |= value << b->n;
    b->n += n;
    while (b->n >= 8) {
        const char byte = (char)(b->held & 0xFF);
        opc_text_add_bytes(b->out, &byte, 1);
        b->held >>= 8;
        b->n -= 8;
    }
}

/* A Huffman code goes out with its highest bit first. */
static void put_code(struct bits *b, uint32_t code, int n)
{
    uint32_t reversed = 0;
    for (int i = 0; i < n; i++)
        reversed |= (code >> i & 1) << (n - 1 - i);
    put_bits(b, reversed, n);
}

/* 0-255: a byte, 256: the end, 257-285: a length */
static void put_symbol(struct bits *b, int s)
{
    /* The fixed code of RFC 1951: four ranges with codes of 8, 9, 7 and 8 bits. */
    if (s < 144)
        put_code(b, (uint32_t)(0x30 + s), 8);
    else if (s < 256)
        put_code(b, (uint32_t)(0x190 + s - 144), 9);
    else if (s < 280)
        put_code(b, (uint32_t)(s - 256), 7);
    else
        put_code(b, (uint32_t)(0xC0 + s - 280), 8);
}

/* Symbols of lengths and distances stand for ranges that double in size every `each` symbols once
 * the first 2 `each` are used up; the rest of the number follows in extra bits. */
static int symbol_of(int value, int each, uint32_t *rest, int *extra)
{
    int symbol = 0, from = 0, bits = 0;
    for (;; symbol++) {
        bits = symbol < 2 * each ? 0 : symbol / each - 1;
        if (value < from + (1 << bits))
            break;
        from += 1 << bits;
    }
    *rest = (uint32_t)(value - from);
    *extra = bits;
    return symbol;
}

/* "Copy `length` bytes from `distance` back": length symbol, distance symbol, extra bits of each.
 */
static void put_match(struct bits *b, int length, int distance)
{
    uint32_t rest;
    int extra;
    if (length == LONGEST_MATCH) { /* has a symbol of its own */
        put_symbol(b, 285);
    } else {
        put_symbol(b, 257 + symbol_of(length - SHORTEST_MATCH, 4, &rest, &extra));
        put_bits(b, rest, extra);
    }
    put_code(b, (uint32_t)symbol_of(distance - 1, 2, &rest, &extra), 5);
    put_bits(b, rest, extra);
}

/* Number of bytes at `at` that repeat those `distance` before; may overlap itself, as in a run of
 * one colour. */
static int match_length(const unsigned char *data, size_t at, size_t size, size_t distance)
{
    int n = 0;
    if (distance > at || distance > FURTHEST)
        return 0;
    while (n < LONGEST_MATCH && at + (size_t)n < size &&
           data[at + (size_t)n] == data[at + (size_t)n - distance])
        n++;
    return n;
}

/* Greedy: the longest of three matches if it pays, otherwise the byte itself. row is the length of
 * a filtered row. */
static void deflate(const unsigned char *data, size_t size, size_t row, struct opc_text *out)
{
    const size_t distances[] = {1, 3, row};
    struct bits b = {.out = out};
    put_bits(&b, 1 | 1 << 1, 3); /* the last block, fixed codes */
    for (size_t i = 0; i < size;) {
        int longest = 0, distance = 0;
        for (int k = 0; k < 3; k++) {
            const int n = match_length(data, i, size, distances[k]);
            if (n > longest) {
                longest = n;
                distance = (int)distances[k];
            }
        }
        if (longest >= SHORTEST_MATCH) {
            put_match(&b, longest, distance);
            i += (size_t)longest;
        } else {
            put_symbol(&b, data[i++]);
        }
    }
    put_symbol(&b, 256);
    put_bits(&b, 0, 7); /* to the end of the byte */
}

/* ---- PNG ------------------------------------------------------------------------------------- */

/* The checksum covers name and data, not the length. */
static void add_chunk(struct opc_text *out, const char *name, const void *data, size_t n)
{
    unsigned char length[4], check[4];
    put32(length, (uint32_t)n);
    put32(check, ~crc32(crc32(~0u, (const unsigned char *)name, 4), data, n));
    opc_text_add_bytes(out, (const char *)length, 4);
    opc_text_add_bytes(out, name, 4);
    opc_text_add_bytes(out, data, n);
    opc_text_add_bytes(out, (const char *)check, 4);
}

/* A difference modulo 256 as a signed number, without its sign. */
static int magnitude(unsigned char x)
{
    return abs((int)(signed char)x);
}

/* Writes the filter byte and the differences to out[row + 1]; `above` is NULL for the top row. */
static void filter_row(size_t row, const unsigned char *pixels, const unsigned char *above,
                       unsigned char *out)
{
    enum { LEFT = 1, UP = 2 };
    /* Sum of magnitudes under either filter: the smaller one compresses better. */
    long left = 0, up = 0;
    for (size_t i = 0; i < row; i++) {
        left += magnitude((unsigned char)(pixels[i] - (i < 3 ? 0 : pixels[i - 3])));
        up += magnitude((unsigned char)(pixels[i] - (above ? above[i] : 0)));
    }
    out[0] = up <= left ? UP : LEFT;
    for (size_t i = 0; i < row; i++)
        out[i + 1] = (unsigned char)(pixels[i] - (out[0] == UP ? (above ? above[i] : 0)
                                                               : (i < 3 ? 0 : pixels[i - 3])));
}

static void add_picture(struct opc_text *out, const unsigned char *filtered, size_t size,
                        size_t row)
{
    struct opc_text stream = {0};
    unsigned char check[4];
    /* zlib header: deflate with a window of 32 kB, fastest level. */
    opc_text_add_bytes(&stream, "\x78\x01", 2);
    deflate(filtered, size, row, &stream);
    put32(check, adler32(filtered, size));
    opc_text_add_bytes(&stream, (const char *)check, 4);
    if (stream.failed)
        out->failed = true;
    else
        add_chunk(out, "IDAT", stream.at, stream.used);
    opc_text_free(&stream);
}

int opc_png_encode(int width, int height, const unsigned char *rgb, struct opc_text *out,
                   struct opc_err *err)
{
    if (width < 1 || height < 1 || width > LARGEST || height > LARGEST)
        return opc_fail(err, OPC_EUSER, "a picture of %d x %d pixels; 1 to %d each way", width,
                        height, LARGEST);
    const size_t row = 3 * (size_t)width, rows = (size_t)height;
    unsigned char *filtered = opc_alloc(rows, row + 1);
    if (!filtered)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a picture of %d x %d pixels", width,
                        height);
    for (size_t y = 0; y < rows; y++)
        filter_row(row, rgb + y * row, y ? rgb + (y - 1) * row : NULL, filtered + y * (row + 1));

    unsigned char head[13] = {[8] = 8, [9] = 2}; /* 8 bits of red, green and blue */
    put32(head, (uint32_t)width);
    put32(head + 4, (uint32_t)height);
    opc_text_add_bytes(out, "\x89PNG\r\n\x1a\n", 8);
    add_chunk(out, "IHDR", head, sizeof head);
    add_picture(out, filtered, rows * (row + 1), row + 1);
    add_chunk(out, "IEND", "", 0);
    opc_free(filtered);
    return opc_text_check(out, err);
}

int opc_png_write(const char *path, int width, int height, const unsigned char *rgb,
                  struct opc_err *err)
{
    struct opc_text file = {0};
    int code = opc_png_encode(width, height, rgb, &file, err);
    if (!code)
        code = opc_file_write(path, file.at, file.used, err);
    opc_text_free(&file);
    return code;
}
