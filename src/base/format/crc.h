/* SPDX-License-Identifier: MIT */
/* base/format/crc.h - CRC-32C (Castagnoli), the check of our files. */
#ifndef OPC_BASE_CRC_H
#define OPC_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* so_far is 0 for the first piece of data, and the previous result for each further piece. */
uint32_t opc_crc32c(uint32_t so_far, const void *data, size_t n);
/* The same value without the processor's instruction; public for tests. */
uint32_t opc_crc32c_table(uint32_t so_far, const void *data, size_t n);

#endif
