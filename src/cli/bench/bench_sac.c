/* SPDX-License-Identifier: MIT */
/* opc bench sac - one update of SAC: draw a batch from a large store, critics, actor, temperature,
 * Adam, targets. The store has a million random steps, so that drawing misses the caches as it does
 * in training. */
#include "agent/sac.h"
#include "cli/bench/bench.h"
#include "data/batch.h"
#include "num/normal.h"
#include "opc/mem.h"

#include <math.h>
#include <stdio.h>

enum { ROLLOUTS = 100000, STEPS = 10 };

/* What one update reads, and its number. */
struct work {
    struct opc_mix mix; /* a million imagined steps */
    struct opc_agent *agent;
    uint32_t update; /* chooses the stream of the batch */
};

/* Draws a batch and makes one gradient step of everything. */
static int run_update(void *ctx, struct opc_err *err)
{
    struct work *w = ctx;
    const struct opc_feed feed = {OPC_SIZED(struct opc_feed), .draw = opc_batch_draw,
                                  .ctx = &w->mix, .seed = 1, .first = w->update++};
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    return opc_agent_improve(w->agent, &feed, 1, &report, err);
}

/* Number of weights of a network with two hidden layers, which is its multiply-adds for one row. */
static double weights_of(int in, int h, int out)
{
    return (double)in * h + (double)h * h + (double)h * out;
}

/* Useful operations of one update. The policy runs forward at s and s' and once backward; two
 * critics run forward at (s, a), at (s, a~) and, as targets, at (s', a'), and backward twice: to
 * their weights and to the action. */
double opc_bench_sac_flops(int obs, int act, int h, int batch)
{
    const double policy = weights_of(obs, h, 2 * act), critic = weights_of(obs + act, h, 1);
    const double policy_back = (double)h * h + (double)h * 2 * act + policy;
    const double critic_back = (double)h * h + h + critic;
    const double to_action = (double)h * h + h + (double)h * act;
    return 2.0 * batch * (2 * policy + policy_back + 2 * (3 * critic + critic_back + to_action));
}

/* An agent of width h. */
static int create_agent(const struct opc_bench *b, int h, bool layer_norm, struct opc_agent **out,
                        struct opc_err *err)
{
    struct opc_sac_config config;
    const int code = opc_section_defaults(&opc_sac_section, &config, err);
    if (code)
        return code;
    /* Policy and critics of the same width. */
    config.policy_hidden = config.critic_hidden = (struct opc_ints){2, {h, h}};
    config.layer_norm = layer_norm;
    config.batch_size = b->batch;
    const struct opc_agent_args args = {OPC_SIZED(struct opc_agent_args),
                                        .obs = b->obs,
                                        .act = b->act,
                                        .seed = 1,
                                        .config = &config,
                                        .target_entropy = (double)NAN,
                                        .pool = b->pool};
    return opc_agent_create("sac", &args, out, err);
}

/* Agents of width h without and with layer normalisation in the critics, measured in turns: what
 * normalisation costs is a few per cent, less than a shared machine changes within a second. */
static int one_width(struct opc_bench *b, const struct opc_imagined *store, int h,
                     struct opc_err *err)
{
    struct work work[2];
    struct opc_bench_work line[2];
    char name[2][64];
    int code = OPC_OK;
    for (int i = 0; i < 2; i++) {
        work[i] = (struct work){.mix = {.imagined = store}};
        snprintf(name[i], sizeof name[i], "sac 2x%d%s", h, i ? " layer_norm" : "");
        line[i] = (struct opc_bench_work){.name = name[i],
                                          .hidden = h,
                                          .batch = b->batch,
                                          .flops = opc_bench_sac_flops(b->obs, b->act, h, b->batch),
                                          .run = run_update,
                                          .ctx = &work[i]};
        code = code ? code : create_agent(b, h, i == 1, &work[i].agent, err);
    }
    code = code ? code : opc_bench_measure_in_turns(b, line, 2, err);
    for (int i = 0; i < 2; i++)
        opc_agent_destroy(work[i].agent);
    return code;
}

/* Random rollouts of STEPS steps; actions are clipped to [-1, 1]. */
static int fill_store(struct opc_imagined *d, int obs, int act, struct opc_err *err)
{
    const size_t stride = opc_record_stride(obs, act);
    float *records = opc_alloc((STEPS + 1) * stride, sizeof *records);
    int code = records ? OPC_OK : opc_fail(err, OPC_ENOMEM, "not enough memory for a rollout");
    struct opc_rng r = opc_rng_stream(1, OPC_USE_TEST, 0, 6);
    opc_imagined_open_epoch(d, 1);
    for (int i = 0; i < ROLLOUTS && !code; i++) {
        opc_rng_normals(&r, (int)((STEPS + 1) * stride), records);
        for (int t = 0; t <= STEPS; t++) {
            float *record = records + (size_t)t * stride, *a = opc_record_action(record, obs);
            for (int k = 0; k < act; k++)
                a[k] = fmaxf(-1, fminf(1, a[k]));
            /* The last record holds only the final state. */
            *opc_record_mark(record, obs, act) = t < STEPS ? OPC_RECORD_STEP : OPC_RECORD_END;
        }
        code = opc_imagined_append(d, STEPS, records, err);
    }
    opc_free(records);
    return code;
}

int opc_bench_store(const struct opc_bench *b, struct opc_imagined **out, struct opc_err *err)
{
    const struct opc_imagined_shape shape = {OPC_SIZED(struct opc_imagined_shape),
                                             .obs = b->obs,
                                             .act = b->act,
                                             .longest = STEPS,
                                             .forget = OPC_FORGET_EPOCHS,
                                             .retain = 1,
                                             .transitions = ROLLOUTS * STEPS};
    struct opc_imagined *store = NULL;
    int code = opc_imagined_create(&shape, &store, err);
    if (!code)
        code = fill_store(store, b->obs, b->act, err);
    if (code)
        opc_imagined_destroy(store);
    else
        *out = store;
    return code;
}

int opc_bench_sac(struct opc_bench *b, struct opc_err *err)
{
    static const int usual[] = {64, 256};
    struct opc_imagined *store = NULL;
    int code = opc_bench_store(b, &store, err);
    for (int i = 0; !code && i < (b->hidden ? 1 : 2); i++)
        code = one_width(b, store, b->hidden ? b->hidden : usual[i], err);
    opc_imagined_destroy(store);
    return code;
}
