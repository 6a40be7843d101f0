/* SPDX-License-Identifier: MIT */
/* opc/log.h - what the library reports while it works, for a program that wants to hear it.
 *
 *     static void to_stderr(void *ctx, enum opc_level level, const char *line)
 *     {
 *         (void)ctx;
 *         fprintf(stderr, "%s%s\n", level == OPC_LEVEL_WARN ? "warning: " : "", line);
 *     }
 *     opc_log_to(to_stderr, NULL);
 *
 * Nothing is printed unless a program asks for it: the one sink starts as NULL, which is silence.
 * Failures are not logged, they are returned (opc/err.h). */
#ifndef OPC_LOG_H
#define OPC_LOG_H

#include "opc/err.h"

#ifdef __cplusplus
extern "C" {
#endif

enum opc_level {
    OPC_LEVEL_DEBUG, /* for developers of the library */
    OPC_LEVEL_INFO,  /* how far it is */
    OPC_LEVEL_WARN,  /* the work goes on, but not as a user may expect */
};

/* One line without its newline. Called by any thread, but never by two at a time, so it need not
 * lock; it must not log itself. */
typedef void opc_log_fn(void *ctx, enum opc_level level, const char *line);

/* Sends lines to fn from now on (NULL: nowhere), for the whole process. When it returns, the
 * previous sink is not running and will not be called again. */
OPC_API void opc_log_to(opc_log_fn *fn, void *ctx);

#ifdef __cplusplus
}
#endif
#endif
