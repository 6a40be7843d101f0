/* SPDX-License-Identifier: MIT */
/* The log. Any thread of the library may call opc_log; the program around it installs one sink,
 * and a run a second one for its log file.
 *
 * Invariant: a sink runs under the lock, so it is never called twice at a time, nor after
 * it has been replaced. A sink that logs itself would deadlock. */
#include "base/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

static struct {
    pthread_mutex_t lock;
    opc_log_fn *fn, *also; /* of the program, and of a run */
    void *ctx, *also_ctx;
    atomic_bool heard; /* one is set; read without the lock, to skip the formatting */
} sink = {.lock = PTHREAD_MUTEX_INITIALIZER};

void opc_log_to(opc_log_fn *fn, void *ctx)
{
    pthread_mutex_lock(&sink.lock);
    sink.fn = fn;
    sink.ctx = ctx;
    atomic_store(&sink.heard, sink.fn || sink.also);
    pthread_mutex_unlock(&sink.lock);
}

void opc_log_also_to(opc_log_fn *fn, void *ctx, const void *only_if)
{
    pthread_mutex_lock(&sink.lock);
    if (!only_if || sink.also_ctx == only_if) {
        sink.also = fn;
        sink.also_ctx = ctx;
    }
    atomic_store(&sink.heard, sink.fn || sink.also);
    pthread_mutex_unlock(&sink.lock);
}

/* Formats before locking, so that threads wait only for the output. */
static void write_line(enum opc_level level, bool also, const char *fmt, va_list args)
{
    char line[1001];
    vsnprintf(line, sizeof line, fmt, args);
    pthread_mutex_lock(&sink.lock);
    if (sink.fn)
        sink.fn(sink.ctx, level, line);
    if (also && sink.also)
        sink.also(sink.also_ctx, level, line);
    pthread_mutex_unlock(&sink.lock);
}

void opc_log(enum opc_level level, const char *fmt, ...)
{
    if (!atomic_load_explicit(&sink.heard, memory_order_relaxed))
        return;
    va_list args;
    va_start(args, fmt);
    write_line(level, true, fmt, args);
    va_end(args);
}

void opc_log_shown(enum opc_level level, const char *fmt, ...)
{
    if (!atomic_load_explicit(&sink.heard, memory_order_relaxed))
        return;
    va_list args;
    va_start(args, fmt);
    write_line(level, false, fmt, args);
    va_end(args);
}
