/* SPDX-License-Identifier: MIT */
/* opc/pool.h - threads to share work among.
 *
 *     struct opc_pool *pool;
 *     opc_pool_create(0, &pool, &err);
 *     ... opc_transition_refresh(transition, pool, &err) ...
 *     opc_pool_destroy(pool);
 *
 * Every function that takes a pool also takes NULL, which is the calling thread alone. No result
 * depends on the number of threads. A pool serves one caller at a time.
 *
 * Work is a number of items cut into chunks; threads take the next chunk as they come. A chunk must
 * write only what belongs to its items, and what it writes of one must not depend on how items are
 * cut. A sum over items is taken in their order: by one chunk, or from one slot per item by the
 * caller; a sum by chunks is allowed where their size is fixed, whatever the number of threads.
 * Results then cannot depend on how many threads there are or on which was faster. */
#ifndef OPC_POOL_H
#define OPC_POOL_H

#include "opc/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct opc_pool; /* opaque */

/* Items first .. end-1; worker is below opc_pool_threads and is for scratch memory only. */
typedef void opc_chunk_fn(void *ctx, int first, int end, int worker);

/* Starts threads - 1 threads, because the caller works too. 0: one per processor this process may
 * run on. OPC_EIO: the system refused a thread; OPC_ENOMEM. For opc_pool_destroy. */
OPC_API int opc_pool_create(int threads, struct opc_pool **out, struct opc_err *err);
/* Ends the threads. NULL is fine. */
OPC_API void opc_pool_destroy(struct opc_pool *);
/* How many threads work, the caller included; 1 for NULL. */
OPC_API int opc_pool_threads(const struct opc_pool *);
/* Calls fn for all items, cut into chunks of per_chunk (at least 1), and returns when every chunk
 * is done. One caller at a time, and never from within a chunk. Nothing is allocated. */
OPC_API void opc_pool_each(struct opc_pool *, int items, int per_chunk, opc_chunk_fn *fn,
                           void *ctx);

#ifdef __cplusplus
}
#endif
#endif
