/* SPDX-License-Identifier: MIT */
/* Memory: opc_alloc for objects, arenas for scratch (opc/mem.h). Every allocation of the library
 * goes through opc_alloc, which is what lets tests fail each of them in turn (base/fault.h).
 *
 * Invariant: memory is zeroed and aligned to OPC_ALIGN. Under AddressSanitizer all bytes outside
 * what was handed out are poisoned, in the gaps of a block as well as in the unused part of an
 * arena. */
#include "opc/mem.h"

#include "base/fault.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN 1
#endif
#endif
#ifdef ASAN
#include <sanitizer/asan_interface.h>
/* HIDE makes any access to the bytes an error under AddressSanitizer; SHOW allows it again. */
#define HIDE(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define SHOW(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define HIDE(p, n) ((void)(p), (void)(n))
#define SHOW(p, n) ((void)(p), (void)(n))
#endif

void *opc_alloc(size_t count, size_t each)
{
    if (opc_fault_hits_alloc() || (each && count > (SIZE_MAX - OPC_ALIGN) / each))
        return NULL;
    /* calloc and not aligned_alloc: fresh pages are zero already, so a buffer of gigabytes costs
     * nothing until it is used. The word before the block remembers where calloc put it; there is
     * room for it because calloc aligns at least to a pointer. */
    const size_t bytes = count * each;
    unsigned char *raw = calloc(1, bytes + OPC_ALIGN);
    if (!raw)
        return NULL;
    opc_fault_took(bytes + OPC_ALIGN);
    unsigned char *p = raw + OPC_ALIGN - (uintptr_t)raw % OPC_ALIGN;
    memcpy(p - sizeof raw, &raw, sizeof raw);
    /* Poison the gaps on both sides: an index that is off by a few would land there unnoticed. */
    HIDE(raw, (size_t)(p - raw));
    HIDE(p + bytes, OPC_ALIGN - (size_t)(p - raw));
    return p;
}

void opc_free(void *p)
{
    if (!p)
        return;
    /* The pointer to the whole block lies in the poisoned gap before p. */
    unsigned char *raw;
    SHOW((unsigned char *)p - sizeof raw, sizeof raw);
    memcpy(&raw, (unsigned char *)p - sizeof raw, sizeof raw);
    free(raw);
}

int opc_alloc_all(const struct opc_block *block, size_t blocks)
{
    /* The pointers have different types, so they are written and read as bytes. */
    size_t done = 0;
    for (void *at; done < blocks; done++) {
        at = opc_alloc(block[done].count, block[done].each);
        memcpy(block[done].at, &at, sizeof at);
        if (!at)
            break;
    }
    /* All or nothing: after a failure those allocated are freed, and every pointer becomes NULL. */
    const int complete = done == blocks;
    for (size_t i = 0; i < blocks && !complete; i++) {
        void *at = NULL, *none = NULL;
        if (i < done)
            memcpy(&at, block[i].at, sizeof at);
        opc_free(at);
        memcpy(block[i].at, &none, sizeof none);
    }
    return complete;
}

char *opc_strdup(const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *copy = opc_alloc(bytes, 1);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

int opc_arena_create(size_t size, struct opc_arena *out, struct opc_err *err)
{
    size = opc_arena_need(size, 1);
    unsigned char *base = opc_alloc(size, 1);
    if (!base)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %zu bytes of scratch memory", size);
    *out = (struct opc_arena){.base = base, .size = size};
    HIDE(base, size);
    return OPC_OK;
}

void opc_arena_destroy(struct opc_arena *a)
{
    if (!a)
        return;
    if (a->base)
        SHOW(a->base, a->size);
    opc_free(a->base);
    *a = (struct opc_arena){0};
}

void *opc_arena_take(struct opc_arena *a, size_t count, size_t each)
{
    const size_t bytes = opc_arena_need(count, each);
    /* Too small an arena is a bug of ours, found by any test that runs the code, so it aborts. */
    if ((each && count > SIZE_MAX / 2 / each) || bytes > a->size - a->used) {
        fprintf(stderr, "opc: bug: scratch arena of %zu bytes has %zu left, %zu x %zu wanted\n",
                a->size, a->size - a->used, count, each);
        abort();
    }
    void *p = a->base + a->used;
    SHOW(p, bytes);
    a->used += bytes;
    if (a->used > a->peak)
        a->peak = a->used;
    return p;
}

void opc_arena_rewind(struct opc_arena *a, size_t mark)
{
    HIDE(a->base + mark, a->used - mark);
    a->used = mark;
}
