/* SPDX-License-Identifier: MIT */
/* Colours of lines and heat maps, for legend.c, marks.c and figure.c.
 *
 * Invariant: a colour with a meaning (OPC, the model, the environment, SAC) is the same in every
 * figure and never handed out for something else. */
#include "plot/colour.h"

#include "plot/figure.h"

#include <math.h>

/* Most of them are Okabe and Ito's, which colour-blind readers can distinguish. The fixed ones
 * are not in the palette, so that nothing else looks like them. */
static const double FIXED[][3] = {
    {0.15, 0.15, 0.15},    /* AUTO without a label */
    {0.000, 0.447, 0.698}, /* OPC */
    {0.835, 0.369, 0.000}, /* MODEL */
    {0.100, 0.100, 0.100}, /* TRUE */
    {0.000, 0.620, 0.451}, /* SAC */
    {0.550, 0.550, 0.550}, /* GREY */
};
static const double PALETTE[OPC_PALETTE][3] = {
    {0.800, 0.475, 0.655}, {0.902, 0.624, 0.000}, {0.337, 0.706, 0.914}, {0.420, 0.270, 0.560},
    {0.550, 0.340, 0.160}, {0.700, 0.700, 0.150}, {0.690, 0.120, 0.250}, {0.400, 0.480, 0.580},
};

struct opc_ink opc_colour_ink(int colour, int dash)
{
    double rgb[3];
    for (int k = 0; k < 3; k++) /* 0xRRGGBB as shares rounded to three digits, like the tables */
        rgb[k] = round((colour >> (16 - 8 * k) & 0xff) / 0.255) / 1000;
    if (colour & OPC_COLOUR_RGB)
        return (struct opc_ink){rgb[0], rgb[1], rgb[2], 1, 1.5, dash};
    const double *c = colour < OPC_COLOUR_FIRST
                          ? FIXED[colour]
                          : PALETTE[(colour - OPC_COLOUR_FIRST) % OPC_PALETTE];
    return (struct opc_ink){c[0], c[1], c[2], 1, 1.5, dash};
}

struct opc_ink opc_colour_faded(struct opc_ink ink, double alpha)
{
    ink.alpha = alpha;
    ink.dash = 0;
    return ink;
}

/* Linear interpolation between n anchor colours; share 0 is the first one, 1 the last. */
static void blend_anchors(int n, const double (*anchor)[3], double share, uint8_t out[4])
{
    const double at = fmin(fmax(share, 0), 1) * (n - 1);
    const int i = at >= n - 1 ? n - 2 : (int)at;
    for (int k = 0; k < 3; k++)
        out[k] =
            (uint8_t)lround(255 * (anchor[i][k] + (at - i) * (anchor[i + 1][k] - anchor[i][k])));
    out[3] = 255;
}

/* Lightness falls evenly along each scale, so both can be read in grey. */
void opc_colour_heat(double value, double low, double high, bool diverging, uint8_t out[4])
{
    static const double PALE_TO_DARK[][3] = {{0.99, 0.97, 0.84},
                                             {0.73, 0.87, 0.73},
                                             {0.36, 0.69, 0.74},
                                             {0.16, 0.44, 0.65},
                                             {0.08, 0.16, 0.42}};
    static const double RED_TO_BLUE[][3] = {
        {0.55, 0.05, 0.12}, {0.80, 0.30, 0.25}, {0.96, 0.68, 0.58}, {1.00, 1.00, 1.00},
        {0.60, 0.77, 0.90}, {0.25, 0.50, 0.75}, {0.06, 0.23, 0.49}};
    const double max = fmax(fabs(low), fabs(high)); /* white is 0, both sides have one scale */
    if (diverging)
        blend_anchors(7, RED_TO_BLUE, max > 0 ? 0.5 + 0.5 * value / max : 0.5, out);
    else
        blend_anchors(5, PALE_TO_DARK, high > low ? (value - low) / (high - low) : 0.5, out);
}
