/* SPDX-License-Identifier: MIT */
/* base/format/png.h - pictures as PNG files. */
#ifndef OPC_BASE_PNG_H
#define OPC_BASE_PNG_H

#include "base/text.h"
#include "opc/err.h"

/* rgb is [height][width][3], the top row first; 1 to 16384 pixels each way. */
int opc_png_write(const char *path, int width, int height, const unsigned char *rgb,
                  struct opc_err *err);
/* Appends the same bytes to `out` instead. */
int opc_png_encode(int width, int height, const unsigned char *rgb, struct opc_text *out,
                   struct opc_err *err);

#endif
