/* SPDX-License-Identifier: MIT */
/* base/crc.h - CRC-32C (Castagnoli), the check of our files. */
#ifndef OPC_BASE_CRC_H
#define OPC_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Starts from 0; hand the result back in to go on with the next piece. */
uint32_t opc_crc32c(uint32_t so_far, const void *data, size_t n);
/* The same without the processor's own instruction. */
uint32_t opc_crc32c_table(uint32_t so_far, const void *data, size_t n);

#endif
