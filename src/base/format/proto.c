/* SPDX-License-Identifier: MIT */
/* The wire format of Protocol Buffers: a key, then the value. The key is the field's number times 8
 * plus a kind: 0 for a variable-length integer, 1 for eight bytes, 2 for bytes with their length in
 * front, 5 for four bytes. study/export/onnx.c and run/files/copies.c write their files with it.
 *
 * Invariant: fields are written in the order of the calls, so the same calls give the same bytes.
 */
#include "base/format/proto.h"

#include <string.h>

enum { KIND_VARINT = 0, KIND_EIGHT_BYTES = 1, KIND_LENGTH = 2, KIND_FOUR_BYTES = 5 };

/* Seven bits a byte, the lowest first; the high bit says that more bytes follow. */
static void add_varint(struct opc_text *out, uint64_t value)
{
    char bytes[10];
    size_t n = 0;
    for (; value >= 128; value >>= 7)
        bytes[n++] = (char)((value & 127) | 128);
    bytes[n++] = (char)value;
    opc_text_add_bytes(out, bytes, n);
}

static void add_key(struct opc_text *out, int field, int kind)
{
    add_varint(out, (uint64_t)field << 3 | (uint64_t)kind);
}

void opc_proto_whole(struct opc_text *out, int field, uint64_t value)
{
    add_key(out, field, KIND_VARINT);
    add_varint(out, value);
}

void opc_proto_float(struct opc_text *out, int field, float value)
{
    /* little-endian on every machine */
    char bytes[4];
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 4; i++)
        bytes[i] = (char)(bits >> 8 * i & 255);
    add_key(out, field, KIND_FOUR_BYTES);
    opc_text_add_bytes(out, bytes, sizeof bytes);
}

void opc_proto_double(struct opc_text *out, int field, double value)
{
    char bytes[8];
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(bits >> 8 * i & 255);
    add_key(out, field, KIND_EIGHT_BYTES);
    opc_text_add_bytes(out, bytes, sizeof bytes);
}

void opc_proto_bytes(struct opc_text *out, int field, const void *data, size_t n)
{
    add_key(out, field, KIND_LENGTH);
    add_varint(out, n);
    opc_text_add_bytes(out, data, n);
}

void opc_proto_text(struct opc_text *out, int field, const char *text)
{
    opc_proto_bytes(out, field, text, strlen(text));
}

void opc_proto_message(struct opc_text *out, int field, struct opc_text *inner)
{
    opc_proto_bytes(out, field, opc_text_get(inner), inner->used);
    out->failed |= inner->failed; /* what is missing inside is missing outside, too */
    opc_text_free(inner);
}
