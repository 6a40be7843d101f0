/* SPDX-License-Identifier: MIT */
/* base/fault.h - for tests only: make the k-th allocation, or the k-th request to the operating
 * system, fail (k = 1 is the next), or count what is allocated.
 *
 *     for (long k = 1;; k++) {
 *         opc_fault_alloc(k);
 *         int code = thing_create(..., &thing, &err);
 *         bool done = opc_fault_pending();    // it never came to the k-th: all have been tried
 *         opc_fault_alloc(0);
 *         ... */
#ifndef OPC_BASE_FAULT_H
#define OPC_BASE_FAULT_H

#include <stdbool.h>
#include <stddef.h>

void opc_fault_alloc(long k);  /* memory from opc_alloc; 0 switches it off */
void opc_fault_system(long k); /* threads, files and processes; 0 switches it off */
bool opc_fault_pending(void);  /* an armed failure has not happened yet */

void opc_fault_count(bool on); /* from 0, the bytes that opc_alloc takes */
size_t opc_fault_counted(void);

/* Told by opc_alloc. */
void opc_fault_took(size_t bytes);
/* Asked by the code under test: is this the call that has to fail? */
bool opc_fault_hits_alloc(void);
bool opc_fault_hits_system(void); /* sets errno to EIO if so */

#endif
