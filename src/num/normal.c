/* SPDX-License-Identifier: MIT */
#include "num/normal.h"

#include "num/kernel.h"

enum { AT_ONCE = 256 };

void opc_rng_normals(struct opc_rng *r, int n, float *out)
{
    const struct opc_kernels *k = opc_kernels();
    uint32_t words[AT_ONCE];
    for (; n >= AT_ONCE; n -= AT_ONCE, out += AT_ONCE) {
        opc_rng_fill(r, AT_ONCE, words);
        k->normals(AT_ONCE, words, out);
    }
    if (n > 0) {
        float last[AT_ONCE];
        const int even = n + n % 2;
        opc_rng_fill(r, even, words);
        k->normals((size_t)even, words, last);
        for (int i = 0; i < n; i++)
            out[i] = last[i];
    }
}

void opc_rng_normals_rows(struct opc_rng *rng, int rows, int dim, float *z)
{
    const struct opc_kernels *k = opc_kernels();
    /* A panel's words pair by pair, row by row, so that one call turns all of them. */
    uint32_t words[OPC_PANEL * 2];
    float pair[OPC_PANEL * 2];
    for (int first = 0; first < rows; first += OPC_PANEL, z += dim * OPC_PANEL) {
        const int here = rows - first < OPC_PANEL ? rows - first : OPC_PANEL;
        for (int d = 0; d < dim; d += 2) {
            for (int i = 0; i < OPC_PANEL; i++) {
                if (i < here)
                    opc_rng_fill(&rng[first + i], 2, words + 2 * i);
                else
                    words[2 * i] = words[2 * i + 1] = 0;
            }
            k->normals(OPC_PANEL * 2, words, pair);
            for (int i = 0; i < OPC_PANEL; i++) {
                z[d * OPC_PANEL + i] = pair[2 * i];
                if (d + 1 < dim)
                    z[(d + 1) * OPC_PANEL + i] = pair[2 * i + 1];
            }
        }
    }
}
