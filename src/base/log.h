/* SPDX-License-Identifier: MIT */
/* base/log.h - progress lines and warnings of the library.
 *
 * Nothing is printed unless a program asks for it: the one sink starts as NULL, which is silence.
 * Failures are not logged, they are returned (opc/err.h). */
#ifndef OPC_BASE_LOG_H
#define OPC_BASE_LOG_H

#include "opc/err.h"

enum opc_level {
    OPC_DEBUG, /* for developers */
    OPC_INFO,  /* progress */
    OPC_WARN,  /* the work goes on, but not as a user may expect */
};

/* One line without its newline. Called by any thread, but never by two at a time, so it need not
 * lock; it must not log itself. */
typedef void opc_log_fn(void *ctx, enum opc_level level, const char *line);

/* From now on lines go to fn (NULL: nowhere). When this returns, the previous sink is not running
 * and will not be called again. */
void opc_log_to(opc_log_fn *fn, void *ctx);
/* A line is cut after 1000 bytes. */
void opc_log(enum opc_level level, const char *fmt, ...) OPC_PRINTF(2, 3);

#endif
