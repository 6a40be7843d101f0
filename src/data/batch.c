/* SPDX-License-Identifier: MIT */
/* Drawing batches from the replay buffers. run/improve.c hands opc_batch_draw to SAC, which reads
 * the drawn steps where they lie. The order of draws from the stream, positions of all still
 * missing steps and then again for those that held none, is part of every recorded result. */
#include "data/batch.h"

#include "data/episodes_private.h"

#include <stdio.h>
#include <stdlib.h>

enum { LINE = 64 }; /* bytes of a cache line */

/* A store to draw from. Some positions hold no step but the last state of a trajectory. */
struct source {
    const float *records;
    size_t stride;
    uint32_t positions;
    const struct opc_imagined *imagined; /* NULL: position and record are the same */
};

static const float *record_at(const struct source *from, uint32_t position)
{
    const size_t record =
        from->imagined ? (size_t)opc_imagined_record(from->imagined, position) : position;
    return from->records + record * from->stride;
}

/* Draws n records that are steps, uniformly: a position that holds no step is drawn again. The
 * memory is far away and the draws are independent, so all of them are prefetched, some hundred at
 * once, before the first is read. */
static void draw_steps(const struct source *from, int n, size_t bytes, struct opc_rng *rng,
                       const float **step)
{
    for (int have = 0; have < n;) {
        for (int i = have; i < n; i++) {
            step[i] = record_at(from, opc_rng_below(rng, from->positions));
            for (size_t k = 0; k < bytes; k += LINE)
                __builtin_prefetch((const char *)step[i] + k);
            __builtin_prefetch((const char *)step[i] + bytes - 1);
        }
        /* Keep the steps, in their order; whatever is missing is drawn in the next round. */
        int kept = have;
        for (int i = have; i < n; i++)
            if (!opc_record_ends(step[i], from->stride))
                step[kept++] = step[i];
        have = kept;
    }
}

void opc_batch_draw(void *ctx, int n, struct opc_rng *rng, const float **step)
{
    const struct opc_mix *mix = ctx;
    const bool recorded = mix->episodes && opc_episodes_steps(mix->episodes) > 0;
    const bool imagined = mix->imagined && opc_imagined_transitions(mix->imagined) > 0;
    if (!recorded && !imagined) {
        fputs("opc: bug: a batch is drawn while there are no steps\n", stderr);
        abort();
    }
    /* The recorded share, floor(n real_ratio), unless one side is empty. */
    const int real = !imagined ? n : !recorded ? 0 : (int)(n * mix->real_ratio);
    const int obs = recorded ? opc_episodes_obs(mix->episodes) : opc_imagined_obs(mix->imagined);
    const int act = recorded ? opc_episodes_act(mix->episodes) : opc_imagined_act(mix->imagined);
    const size_t bytes = (size_t)opc_step_columns(obs, act) * sizeof(float);
    if (real > 0) {
        const struct opc_records r = opc_episodes_records(mix->episodes);
        const struct source recording = {r.at, r.stride, (uint32_t)r.n, NULL};
        draw_steps(&recording, real, bytes, rng, step);
    }
    if (real < n) {
        const struct source rollouts = {opc_imagined_records(mix->imagined),
                                        opc_record_stride(obs, act),
                                        opc_imagined_positions(mix->imagined), mix->imagined};
        draw_steps(&rollouts, n - real, bytes, rng, step + real);
    }
}

void opc_imagined_draw(void *store, int n, struct opc_rng *rng, const float **step)
{
    struct opc_mix mix = {.imagined = store};
    opc_batch_draw(&mix, n, rng, step);
}
