/* SPDX-License-Identifier: MIT */
/* num/normal.h - standard normal variates (here and not in base: they need our log and sine).
 *
 * Box-Muller: two words of a stream make two variates, w0 the radius sqrt(-2 log u) with
 * u = (2 (w0 >> 1) + 1) / 2^32, w1 the angle; the values lie within +-6.67. An odd count drops the
 * second variate of its last pair, so a stream moves on by an even number of words. */
#ifndef OPC_NUM_NORMAL_H
#define OPC_NUM_NORMAL_H

#include "opc/rng.h"

void opc_rng_normals(struct opc_rng *, int n, float *out);
/* Row i takes `dim` variates from its own stream rng[i]; they are written in batch panels,
 * z[panel][dim][16]. Row i gets what opc_rng_normals(&rng[i], dim, ...) would give it. */
void opc_rng_normals_rows(struct opc_rng *rng, int rows, int dim, float *z);

#endif
