/* SPDX-License-Identifier: MIT */
/* base/format/proto.h - messages in the wire format of Protocol Buffers, for writing only.
 *
 * A message is the concatenation of its fields, each with its number and kind in front, so it is
 * built in an opc_text of its own and then put into the message around it. Lack of memory is
 * remembered by the text and reported by opc_text_check at the end. */
#ifndef OPC_BASE_PROTO_H
#define OPC_BASE_PROTO_H

#include "base/text.h"

void opc_proto_whole(struct opc_text *, int field, uint64_t value); /* an integer or an enum */
void opc_proto_float(struct opc_text *, int field, float value);
void opc_proto_double(struct opc_text *, int field, double value);
void opc_proto_bytes(struct opc_text *, int field, const void *data, size_t n);
void opc_proto_text(struct opc_text *, int field, const char *text);
/* Puts a finished message into the one around it, and frees it. */
void opc_proto_message(struct opc_text *, int field, struct opc_text *inner);

#endif
