/* SPDX-License-Identifier: MIT */
/* plot/colour.h - the colours of plot/figure.h. */
#ifndef OPC_STUDY_COLOUR_H
#define OPC_STUDY_COLOUR_H

#include "plot/draw.h"

#include <stdbool.h>

enum { OPC_PALETTE = 8 };

/* For lines of the usual width; colour as in enum opc_colour, but not AUTO. */
struct opc_ink opc_colour_ink(int colour, int dash);
struct opc_ink opc_colour_faded(struct opc_ink, double alpha);
/* The colour of `value` on a scale from low to high; beyond them that of the end. */
void opc_colour_heat(double value, double low, double high, bool diverging, uint8_t out[4]);

#endif
