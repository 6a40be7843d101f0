/* SPDX-License-Identifier: MIT */
/* base/clock.h - how long something takes. */
#ifndef OPC_BASE_CLOCK_H
#define OPC_BASE_CLOCK_H

/* Seconds, on a clock that never goes back; only differences mean something. */
double opc_now(void);

#endif
