/* SPDX-License-Identifier: MIT */
/* base/clock.h - how long something takes. */
#ifndef OPC_BASE_CLOCK_H
#define OPC_BASE_CLOCK_H

/* Seconds, on a clock that never goes back; only differences mean something. */
double opc_now(void);
/* Seconds of processor time that this process has used, all its threads together. Other programs on
 * the machine lengthen them much less than opc_now's. */
double opc_processor_seconds(void);

#endif
