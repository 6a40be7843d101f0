/* SPDX-License-Identifier: MIT */
/* Reads the settings of a double integrator. correction_sketch.c and state_distribution.c call
 * it through OPC_INTEGRATOR_OF.
 *
 * Invariant: the order of WANT is the order of the lists in that macro. */
#include "study/example/toy_fields.h"

#include <string.h>

int opc_integrator_read(const struct opc_reals *const list[8], struct opc_integrator_set *out,
                        struct opc_err *err)
{
    struct opc_integrator *in = &out->in;
    /* Where each list goes, and how many numbers it must have. */
    const struct {
        const char *name;
        int n;
        double *to;
    } WANT[8] = {
        {"A", 4, in->A[0]},
        {"B", 2, in->B},
        {"delta_a", 4, in->dA[0]},
        {"delta_b", 2, in->dB},
        {"start", 2, in->s0},
        {"policy", 2, in->K},
        {"new_policy", 2, out->K_new},
        {"noise", 2, in->noise},
    };
    for (int i = 0; i < 8; i++) {
        if (list[i]->n != WANT[i].n)
            return opc_fail(err, OPC_EUSER, "%s has %d numbers; a double integrator has %d there",
                            WANT[i].name, list[i]->n, WANT[i].n);
        memcpy(WANT[i].to, list[i]->at, (size_t)WANT[i].n * sizeof(double));
    }
    return OPC_OK;
}
