/* SPDX-License-Identifier: MIT */
/* opc/limits.h - the limits of what is believed: imagined steps beyond any of them are not stored,
 * and their rollout ends before them. Members that are NULL or false set no limit.
 *
 * run/imagine.c fills them in from the settings, opc/walk.c decides by them (why_row_ends). */
#ifndef OPC_LIMITS_H
#define OPC_LIMITS_H

#include "opc/bounds.h"
#include "opc/disagreement.h"
#include "opc/drift.h"

struct opc_limits {
    /* Steps out of the recorded range are refused, and stored rewards are clipped to it. */
    const struct opc_bounds *bounds;
    /* Steps that lead too far from their reference are refused. A step of eq. 2 after the end of
     * the recording it started in has no reference, and is not refused. */
    const struct opc_drift *drift;
    /* Steps on which the elites disagree too much are refused. It has scratch memory of its own, so
     * it serves one walk at a time. */
    struct opc_disagreement *disagreement;
    /* Steps whose reference ended in a terminal state are refused, unless s' is terminal, too. Only
     * where the transition needs a reference. */
    bool drop;
};

#endif
