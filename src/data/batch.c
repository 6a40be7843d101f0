/* SPDX-License-Identifier: MIT */
#include "data/batch.h"

#include "data/episodes_in.h"
#include "num/kernel.h"

#include <stdio.h>
#include <stdlib.h>

enum { AT_ONCE = 256, LINE = 64 };

/* Where steps are drawn from: positions, some of which hold no step. */
struct source {
    const float *records;
    size_t stride;
    uint32_t positions;
    const struct opc_imagined *imagined; /* NULL: position and record are the same */
};

static int record_of(const struct source *from, uint32_t position)
{
    return from->imagined ? opc_imagined_record(from->imagined, position) : (int)position;
}

/* n records that are steps, uniformly: a position that holds none is drawn again. The memory is
 * far away and the draws are independent, so all of them are on their way before the first is
 * looked at. */
static void draw(const struct source *from, int n, size_t bytes, struct opc_rng *rng, int *record)
{
    for (int have = 0; have < n;) {
        for (int i = have; i < n; i++) {
            record[i] = record_of(from, opc_rng_below(rng, from->positions));
            const char *step = (const char *)(from->records + (size_t)record[i] * from->stride);
            for (size_t k = 0; k < bytes; k += LINE)
                __builtin_prefetch(step + k);
            __builtin_prefetch(step + bytes - 1);
        }
        int kept = have;
        for (int i = have; i < n; i++)
            if (!opc_record_ends(from->records + (size_t)record[i] * from->stride, from->stride))
                record[kept++] = record[i];
        have = kept;
    }
}

/* Steps into rows first .. first+n-1 of the batch. */
static void fill(const struct source *from, int first, int n, int columns, struct opc_rng *rng,
                 float *batch)
{
    const size_t panel = (size_t)columns * OPC_PANEL;
    int record[AT_ONCE];
    while (n > 0) {
        /* A panel that already has rows gets its others one by one, the rest is gathered. */
        const int inside = first % OPC_PANEL;
        const int most = inside ? OPC_PANEL - inside : AT_ONCE;
        const int now = n < most ? n : most;
        float *x = batch + (size_t)(first / OPC_PANEL) * panel;
        draw(from, now, (size_t)columns * sizeof *x, rng, record);
        if (!inside)
            opc_kernels()->gather(now, columns, from->records, from->stride, record, x, panel);
        else
            for (int i = 0; i < now; i++)
                for (int k = 0; k < columns; k++)
                    x[k * OPC_PANEL + inside + i] =
                        from->records[(size_t)record[i] * from->stride + (size_t)k];
        first += now;
        n -= now;
    }
}

void opc_batch_draw(void *ctx, int n, struct opc_rng *rng, float *batch)
{
    const struct opc_mix *mix = ctx;
    const bool recorded = mix->episodes && opc_episodes_steps(mix->episodes) > 0;
    const bool imagined = mix->imagined && opc_imagined_transitions(mix->imagined) > 0;
    if (!recorded && !imagined) {
        fputs("opc: bug: a batch is drawn while there are no steps\n", stderr);
        abort();
    }
    const int real = !imagined ? n : !recorded ? 0 : (int)(n * mix->real_ratio);
    const int obs = recorded ? opc_episodes_obs(mix->episodes) : opc_imagined_obs(mix->imagined);
    const int act = recorded ? opc_episodes_act(mix->episodes) : opc_imagined_act(mix->imagined);
    const int columns = opc_step_columns(obs, act);
    if (real > 0) {
        const struct opc_records r = opc_episodes_records(mix->episodes);
        const struct source past = {r.at, r.stride, (uint32_t)r.n, NULL};
        fill(&past, 0, real, columns, rng, batch);
    }
    if (real < n) {
        const struct source dreams = {opc_imagined_records(mix->imagined),
                                      opc_record_stride(obs, act),
                                      opc_imagined_positions(mix->imagined), mix->imagined};
        fill(&dreams, real, n - real, columns, rng, batch);
    }
}
