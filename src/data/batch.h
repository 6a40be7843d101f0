/* SPDX-License-Identifier: MIT */
/* data/batch.h - batches for gradient steps of off-policy agents, mixed from the two replay
 * buffers: imagined steps (data/imagined.h) and recorded ones (opc/episodes.h). */
#ifndef OPC_DATA_BATCH_H
#define OPC_DATA_BATCH_H

#include "data/imagined.h"
#include "opc/episodes.h"
#include "opc/rng.h"

struct opc_mix {
    const struct opc_imagined *imagined; /* NULL: none */
    const struct opc_episodes *episodes; /* NULL: none */
    double real_ratio;                   /* of a batch of n, floor(n real_ratio) are recorded */
};

/* Draws n steps, the recorded ones first, each uniformly with replacement. When one side is empty
 * all come from the other; both must not be empty. step[i] points at a record of one of the stores
 * (records.h) and is valid until that store changes. This is an opc_draw_fn of opc/agent.h; mix is
 * a struct opc_mix. */
void opc_batch_draw(void *mix, int n, struct opc_rng *, const float **step);

#endif
