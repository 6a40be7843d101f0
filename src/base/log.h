/* SPDX-License-Identifier: MIT */
/* base/log.h - writing to the log; opc/log.h is how a program reads it. */
#ifndef OPC_BASE_LOG_H
#define OPC_BASE_LOG_H

#include "opc/log.h"

/* A line is cut after 1000 bytes. */
void opc_log(enum opc_level level, const char *fmt, ...) OPC_PRINTF(2, 3);

#endif
