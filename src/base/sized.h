/* SPDX-License-Identifier: MIT */
/* base/sized.h - the library's side of opc/sized.h: structs that callers compiled with another
 * version of the headers may have allocated. Their first member is `size_t size`. Public functions
 * call these once, at their entrance; after it every struct is whole.
 *
 * Such a struct must not end in padding: a member appended later would lie in bytes that an older
 * caller never set. tests/test_sized.c checks this for each of them. */
#ifndef OPC_BASE_SIZED_H
#define OPC_BASE_SIZED_H

#include "opc/err.h"
#include "opc/sized.h"

#include <stddef.h>

/* Copies what the caller filled in into *whole, which has `bytes` bytes, and sets the rest to 0.
 * `type` is for the message. OPC_EUSER: the size cannot be right, or the caller asks for something
 * that this version has not heard of. */
int opc_sized_read(const void *given, const char *type, void *whole, size_t bytes,
                   struct opc_err *err);
/* A struct that is to be written: can its size be right? NULL is fine: nothing is wanted. */
int opc_sized_check(const void *given, const char *type, size_t bytes, struct opc_err *err);
/* Copies as much of *whole as the caller has heard of; its size stays. NULL is fine. */
void opc_sized_write(const void *whole, size_t bytes, void *given);

#endif
