/* SPDX-License-Identifier: MIT */
/* Reads and writes structs of callers that may have been compiled with another version of the
 * headers (opc/sized.h). Called at the entrance of public functions. The rule is the one of Linux'
 * extensible system calls: members a caller does not know are 0, members the library does not know
 * must be 0. */
#include "base/sized.h"

#include <string.h>

enum { SIZE_MAX_SANE = 1 << 16 }; /* no struct of ours will ever be larger */

/* The first member, whatever the struct. */
static size_t size_of(const void *given)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    return size;
}

int opc_sized_check(const void *given, const char *type, size_t bytes, struct opc_err *err)
{
    if (!given || (size_of(given) > sizeof(size_t) && size_of(given) <= SIZE_MAX_SANE))
        return OPC_OK;
    return opc_fail(err, OPC_EUSER,
                    "the size of a struct %s is given as %zu, and it has %zu bytes; set its first "
                    "member: .size = sizeof(struct %s)",
                    type, size_of(given), bytes, type);
}

int opc_sized_read(const void *given, const char *type, void *whole, size_t bytes,
                   struct opc_err *err)
{
    if (!given)
        return opc_fail(err, OPC_EUSER, "a struct %s is needed, and NULL was given", type);
    OPC_TRY(opc_sized_check(given, type, bytes, err));
    const size_t size = size_of(given);
    /* A newer caller is understood as long as it asks for nothing new. */
    for (size_t i = bytes; i < size; i++)
        if (((const unsigned char *)given)[i] != 0)
            return opc_fail(err, OPC_EUSER,
                            "a struct %s of %zu bytes asks for something that this version of "
                            "libopc, which knows %zu bytes of it, does not have; install a newer "
                            "one",
                            type, size, bytes);
    memset(whole, 0, bytes);
    memcpy(whole, given, size < bytes ? size : bytes);
    memcpy(whole, &bytes, sizeof bytes);
    return OPC_OK;
}

void opc_sized_write(const void *whole, size_t bytes, void *given)
{
    if (!given)
        return;
    const size_t size = size_of(given), first = sizeof(size_t);
    const size_t known = size < bytes ? size : bytes;
    memcpy((char *)given + first, (const char *)whole + first, known - first);
    if (size > known)
        memset((char *)given + known, 0, size - known);
}
