/* SPDX-License-Identifier: MIT */
/* opc/mem.h - memory: objects with one owner, scratch that cannot leak.
 *
 * Objects come from opc_alloc and go with opc_free. What a loop needs for a moment is taken from
 * an arena sized at create time and rewound by the caller:
 *
 *     size_t mark = scratch->used;
 *     float *y = opc_floats(scratch, n, dim);
 *     ...
 *     opc_arena_rewind(scratch, mark);
 *
 * Running out of heap is the user's situation, hence an error; running out of scratch is our bug,
 * hence an abort that names the sizes. */
#ifndef OPC_MEM_H
#define OPC_MEM_H

#include "opc/err.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Every block starts on its own cache line, which is also the widest vector. */
#define OPC_ALIGN 64

/* count * each bytes, zeroed and 64-aligned; NULL when memory is short or the product overflows.
 * Never NULL for lack of size: zero bytes are a block too. */
OPC_API void *opc_alloc(size_t count, size_t each);
/* Frees a block of opc_alloc, or any other that is said to be for opc_free. NULL is fine. */
OPC_API void opc_free(void *);
/* One of several blocks that are wanted: at is the address of the pointer that gets it. */
struct opc_block {
    void *at;
    size_t count, each;
};
/* Takes several blocks at once, each from opc_alloc: all or none. Returns true, or false with every
 * pointer NULL. */
OPC_API int opc_alloc_all(const struct opc_block *, size_t blocks);
/* What opc_alloc really takes for a request, with the allocator's own: for sizes that are asked
 * ahead. */
static inline size_t opc_alloc_need(size_t count, size_t each)
{
    return count * each + 2 * OPC_ALIGN;
}
static inline size_t opc_blocks_need(const struct opc_block *block, size_t blocks)
{
    size_t bytes = 0;
    for (size_t i = 0; i < blocks; i++)
        bytes += opc_alloc_need(block[i].count, block[i].each);
    return bytes;
}
/* A copy of a string, from opc_alloc; NULL when memory is short. */
OPC_API char *opc_strdup(const char *);

struct opc_arena {
    unsigned char *base;
    size_t size, used, peak;
};

/* Makes an arena of this many bytes. OPC_ENOMEM. For opc_arena_destroy. */
OPC_API int opc_arena_create(size_t size, struct opc_arena *out, struct opc_err *err);
/* Frees its memory and leaves an empty arena. NULL is fine. */
OPC_API void opc_arena_destroy(struct opc_arena *);
/* Takes count * each bytes, uninitialised and 64-aligned; aborts when the arena is full. */
OPC_API void *opc_arena_take(struct opc_arena *, size_t count, size_t each);
/* Gives back everything that was taken since scratch->used was `mark`. */
OPC_API void opc_arena_rewind(struct opc_arena *, size_t mark);
/* What opc_arena_take will really use for a request: for sizing an arena ahead. */
static inline size_t opc_arena_need(size_t count, size_t each)
{
    return (count * each + OPC_ALIGN - 1) / OPC_ALIGN * OPC_ALIGN;
}
static inline float *opc_floats(struct opc_arena *a, size_t rows, size_t columns)
{
    return (float *)opc_arena_take(a, rows * columns, sizeof(float));
}

#ifdef __cplusplus
}
#endif
#endif
