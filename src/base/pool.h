/* SPDX-License-Identifier: MIT */
/* base/pool.h - the pool of opc/pool.h, and two things its users inside the library need. pool.c is
 * the only place that makes threads. */
#ifndef OPC_BASE_POOL_H
#define OPC_BASE_POOL_H

#include "opc/pool.h"

/* Where part `part` begins when `all` things are cut into `parts` runs of nearly equal length. */
static inline int opc_cut(int all, int parts, int part)
{
    return (int)((long)all * part / parts);
}

/* Which worker of a pool the calling thread is, while it runs a chunk that threads share; otherwise
 * -1. For scratch memory of what a chunk calls with a pool of NULL. */
int opc_pool_worker(void);

int opc_processors(void); /* number of processors this process may run on; at least 1 */

#endif
