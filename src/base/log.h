/* SPDX-License-Identifier: MIT */
/* base/log.h - writing to the log; opc/log.h is how a program reads it. */
#ifndef OPC_BASE_LOG_H
#define OPC_BASE_LOG_H

#include "opc/log.h"

/* A line is cut after 1000 bytes. */
void opc_log(enum opc_level level, const char *fmt, ...) OPC_PRINTF(2, 3);
/* The same for the program's sink alone: the caller writes the line to its log file itself. */
void opc_log_shown(enum opc_level level, const char *fmt, ...) OPC_PRINTF(2, 3);
/* A second sink, which gets what opc_log gets: the log file of a run. NULL: none. `only_if`: it is
 * replaced only if its ctx is this one; NULL: in any case. */
void opc_log_also_to(opc_log_fn *fn, void *ctx, const void *only_if);

#endif
