/* SPDX-License-Identifier: MIT */
/* The log. Any thread of the library may call opc_log; the program around it installs one sink.
 *
 * Invariant: the sink runs under the lock, so it is never called twice at a time, nor after
 * opc_log_to has replaced it. A sink that logs itself would deadlock. */
#include "base/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

static struct {
    pthread_mutex_t lock;
    opc_log_fn *fn;
    void *ctx;
    atomic_bool heard; /* fn is set; read without the lock, to skip the formatting */
} sink = {.lock = PTHREAD_MUTEX_INITIALIZER};

void opc_log_to(opc_log_fn *fn, void *ctx)
{
    pthread_mutex_lock(&sink.lock);
    sink.fn = fn;
    sink.ctx = ctx;
    atomic_store(&sink.heard, fn != NULL);
    pthread_mutex_unlock(&sink.lock);
}

void opc_log(enum opc_level level, const char *fmt, ...)
{
    if (!atomic_load_explicit(&sink.heard, memory_order_relaxed))
        return;
    /* Format before locking, so that threads wait only for the output. */
    char line[1001];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    pthread_mutex_lock(&sink.lock);
    if (sink.fn)
        sink.fn(sink.ctx, level, line);
    pthread_mutex_unlock(&sink.lock);
}
