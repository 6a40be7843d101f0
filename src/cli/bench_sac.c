/* SPDX-License-Identifier: MIT */
/* opc bench sac - one update: draw a batch from a large store, critics, actor, temperature, Adam,
 * targets. */
#include "agent/sac.h"
#include "cli/bench.h"
#include "data/records.h"
#include "num/kernel.h"
#include "num/normal.h"
#include "opc/mem.h"

#include <math.h>
#include <stdio.h>

enum { RECORDS = 1000000, MOST_BATCH = 65536 };

struct store {
    int obs, act;
    float *records; /* [RECORDS + 1][stride] */
    int *pick;
    struct opc_agent *agent;
    uint32_t update;
};

static void draw(void *ctx, int n, struct opc_rng *r, float *batch)
{
    const struct store *s = ctx;
    const int columns = opc_step_columns(s->obs, s->act);
    for (int i = 0; i < n; i++)
        s->pick[i] = (int)opc_rng_below(r, RECORDS);
    opc_kernels()->gather(n, columns, s->records, opc_record_stride(s->obs, s->act), s->pick, batch,
                          (size_t)columns * OPC_PANEL);
}

static int run_update(void *ctx, struct opc_err *err)
{
    struct store *s = ctx;
    const struct opc_feed feed = {.draw = draw, .ctx = s, .seed = 1, .first = s->update++};
    struct opc_agent_report report;
    return opc_agent_improve(s->agent, &feed, 1, &report, err);
}

/* Weights of a network of two hidden layers: multiply-adds of one row forward. */
static double weights(int in, int h, int out)
{
    return (double)in * h + (double)h * h + (double)h * out;
}

/* Two passes of the policy and its backward pass; the critics forward at (s, a), at (s, a~) and, as
 * targets, at (s', a'), and both backward passes. */
double opc_bench_sac_flops(int obs, int act, int h, int batch)
{
    const double policy = weights(obs, h, 2 * act), critic = weights(obs + act, h, 1);
    const double policy_back = (double)h * h + (double)h * 2 * act + policy;
    const double critic_back = (double)h * h + h + critic;
    const double to_action = (double)h * h + h + (double)h * act;
    return 2.0 * batch * (2 * policy + policy_back + 2 * (3 * critic + critic_back + to_action));
}

static int one_width(struct opc_bench *b, struct store *s, int h, struct opc_err *err)
{
    struct opc_sac_config config;
    int code = opc_section_defaults(&opc_sac_section, &config, err);
    if (code)
        return code;
    config.policy_hidden = config.critic_hidden = (struct opc_ints){2, {h, h}};
    config.batch = b->batch;
    const struct opc_agent_args args = {.obs = b->obs,
                                        .act = b->act,
                                        .seed = 1,
                                        .config = &config,
                                        .target_entropy = (double)NAN,
                                        .pool = b->pool};
    code = opc_agent_create("sac", &args, &s->agent, err);
    if (!code) {
        char name[64];
        snprintf(name, sizeof name, "sac 2x%d", h);
        const struct opc_bench_work w = {.name = name,
                                         .hidden = h,
                                         .batch = b->batch,
                                         .flops = opc_bench_sac_flops(b->obs, b->act, h, b->batch),
                                         .run = run_update,
                                         .ctx = s};
        code = opc_bench_measure(b, &w, err);
    }
    opc_agent_destroy(s->agent);
    s->agent = NULL;
    return code;
}

int opc_bench_sac(struct opc_bench *b, struct opc_err *err)
{
    const size_t stride = opc_record_stride(b->obs, b->act);
    struct store s = {.obs = b->obs, .act = b->act};
    s.records = opc_alloc((RECORDS + 1) * stride, sizeof *s.records);
    s.pick = opc_alloc(MOST_BATCH, sizeof *s.pick);
    int code = OPC_OK;
    if (!s.records || !s.pick) {
        code = opc_fail(err, OPC_ENOMEM, "no room for a store of a million steps");
    } else {
        struct opc_rng r = opc_rng_stream(1, OPC_USE_TEST, 0, 6);
        for (size_t i = 0; i < RECORDS + 1; i++) {
            opc_rng_normals(&r, (int)stride, s.records + i * stride);
            for (size_t k = 0; k < (size_t)b->act; k++) {
                float *a = &s.records[i * stride + (size_t)b->obs + k];
                *a = *a > 1.0f ? 1.0f : *a < -1.0f ? -1.0f : *a;
            }
            s.records[i * stride + stride - 1] = OPC_GOES_ON;
        }
    }
    static const int usual[] = {64, 256};
    for (int i = 0; !code && i < (b->hidden ? 1 : 2); i++)
        code = one_width(b, &s, b->hidden ? b->hidden : usual[i], err);
    opc_free(s.records);
    opc_free(s.pick);
    return code;
}
