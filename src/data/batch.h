/* SPDX-License-Identifier: MIT */
/* data/batch.h - batches for gradient steps, mixed from imagined and recorded steps. */
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

/* n steps, the recorded ones first, each drawn uniformly with replacement; when one side is empty
 * all come from the other, and both must not be. step[i] is a record of one of the stores (see
 * records.h), good until that store changes. This is an opc_draw_fn of opc/agent.h; mix is a struct
 * opc_mix. */
void opc_batch_draw(void *mix, int n, struct opc_rng *, const float **step);

#endif
