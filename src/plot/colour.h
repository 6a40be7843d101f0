/* SPDX-License-Identifier: MIT */
/* plot/colour.h - inks and heat-map colours for the numbers in enum opc_colour (plot/figure.h). */
#ifndef OPC_STUDY_COLOUR_H
#define OPC_STUDY_COLOUR_H

#include "plot/draw.h"

#include <stdbool.h>

enum { OPC_PALETTE = 8 };

/* The ink of a line of the usual width; AUTO gives the dark default. */
struct opc_ink opc_colour_ink(int colour, int dash);
struct opc_ink opc_colour_faded(struct opc_ink, double alpha);
/* The colour of `value` on a scale from low to high; values beyond an end get that end's colour. */
void opc_colour_heat(double value, double low, double high, bool diverging, uint8_t out[4]);

#endif
