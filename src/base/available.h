/* SPDX-License-Identifier: MIT */
/* base/available.h - how much memory this process may still take. */
#ifndef OPC_BASE_AVAILABLE_H
#define OPC_BASE_AVAILABLE_H

/* Bytes that are free on the machine, or within the limits of the control groups that confine this
 * process (a batch system's job, a container), whichever is less; negative: not known. root is put
 * before every path of the kernel's that is read, "" outside of tests. */
double opc_available_bytes(const char *root);

#endif
