/* SPDX-License-Identifier: MIT */
/* base/pool.h - the only place that makes threads.
 *
 * Work is a number of items cut into chunks; threads take the next chunk as they come. A chunk must
 * write only what belongs to its items, and what it writes of one must not depend on how items are
 * cut. A sum over items is taken in their order: by one chunk, or from one slot per item by the
 * caller; a sum by chunks is allowed where their size is fixed, whatever the number of threads.
 * Results then cannot depend on how many threads there are or on which was faster. */
#ifndef OPC_BASE_POOL_H
#define OPC_BASE_POOL_H

#include "opc/err.h"

struct opc_pool;

/* Items first .. end-1; worker is below opc_pool_threads and is for scratch memory only. */
typedef void opc_chunk_fn(void *ctx, int first, int end, int worker);

/* threads = 0: one per processor this process may run on. */
int opc_pool_create(int threads, struct opc_pool **out, struct opc_err *err);
void opc_pool_destroy(struct opc_pool *);      /* NULL is fine */
int opc_pool_threads(const struct opc_pool *); /* a NULL pool is the calling thread alone: 1 */
/* Returns when every chunk is done. per_chunk is at least 1; one caller at a time, and never from
 * within a chunk. Nothing is allocated. */
void opc_pool_each(struct opc_pool *, int items, int per_chunk, opc_chunk_fn *fn, void *ctx);

/* Where part `part` begins when `all` things are cut into `parts` runs of nearly equal length. */
static inline int opc_cut(int all, int parts, int part)
{
    return (int)((long)all * part / parts);
}

int opc_processors(void); /* number of processors this process may run on; at least 1 */

#endif
