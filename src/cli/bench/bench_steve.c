/* SPDX-License-Identifier: MIT */
/* opc bench steve - one update of STEVE: two batches, a gradient step of the world model, the
 * expanded targets, and a gradient step of critics and policy. The store is that of `opc bench
 * sac`. Pre-training is left out. */
#include "agent/steve.h"
#include "cli/bench/bench.h"
#include "data/batch.h"

#include <stdio.h>

/* What one update reads, and its number. */
struct work {
    struct opc_mix mix; /* a million steps */
    struct opc_agent *agent;
    uint32_t update; /* chooses the streams */
};

/* Makes one update of everything. */
static int run_update(void *ctx, struct opc_err *err)
{
    struct work *w = ctx;
    const struct opc_feed feed = {OPC_SIZED(struct opc_feed), .draw = opc_batch_draw,
                                  .ctx = &w->mix, .seed = 1, .first = w->update++};
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    return opc_agent_improve(w->agent, &feed, 1, &report, err);
}

/* Multiply-adds of one row through one member: forward, and all three passes of a gradient step,
 * which needs no gradient by the inputs of the first layer. */
struct passes {
    double forward, train;
};

static struct passes passes_of(int in, const struct opc_ints *hidden, int out)
{
    double forward = 0, first = 0;
    for (int l = 0; l <= hidden->n; l++) {
        const int to = l < hidden->n ? hidden->at[l] : out;
        forward += (double)in * to;
        first = l ? first : (double)in * to;
        in = to;
    }
    return (struct passes){forward, 3 * forward - first};
}

/* Useful operations of one update: each row trains one member of each ensemble; targets go through
 * all of them; the policy's loss goes through all critics, and back to the action. */
static double update_flops(const struct opc_steve_config *c, int obs, int act)
{
    const int in = obs + act;
    const double M = c->transition_members, N = c->reward_members, L = c->critic_members,
                 H = c->horizon;
    const struct passes policy = passes_of(obs, &c->policy_hidden, act),
                        critic = passes_of(in, &c->critic_hidden, 1),
                        transition = passes_of(in, &c->transition_hidden, obs),
                        reward = passes_of(in + obs, &c->reward_hidden, 1),
                        end = passes_of(in + obs, &c->termination_hidden, 1);
    const double model = transition.train + reward.train + end.train;
    /* Step 0 is the same for all transitions. */
    const double target = M * H * (transition.forward + end.forward + N * reward.forward) +
                          (M * H + 1) * (policy.forward + L * critic.forward);
    const double to_action =
        2 * critic.forward - (c->critic_hidden.n ? (double)obs * c->critic_hidden.at[0] : 0);
    return 2.0 * c->batch_size * (model + target + policy.train + critic.train + L * to_action);
}

/* An agent whose transitions have `depth` layers of width h and whose other networks have
 * other_depth layers of width `other`, measured and destroyed. */
static int one_size(struct opc_bench *b, struct work *work, int depth, int h, int other_depth,
                    int other, struct opc_err *err)
{
    struct opc_steve_config config;
    OPC_TRY(opc_section_defaults(&opc_steve_section, &config, err));
    /* Policy, critics, rewards and terminations are of one shape. */
    struct opc_ints small = {.n = other_depth};
    for (int i = 0; i < other_depth; i++)
        small.at[i] = other;
    config.policy_hidden = config.critic_hidden = small;
    config.reward_hidden = config.termination_hidden = small;
    config.transition_hidden = (struct opc_ints){.n = depth};
    for (int i = 0; i < depth; i++)
        config.transition_hidden.at[i] = h;
    /* The first call would pre-train for minutes. */
    config.batch_size = b->batch;
    config.pretrain_updates = 0;
    const struct opc_agent_args args = {OPC_SIZED(struct opc_agent_args),
                                        .obs = b->obs,
                                        .act = b->act,
                                        .seed = 1,
                                        .config = &config,
                                        .pool = b->pool};
    int code = opc_agent_create("steve", &args, &work->agent, err);
    if (!code) {
        char name[64];
        snprintf(name, sizeof name, "steve %dx%d and %dx%d", depth, h, other_depth, other);
        const struct opc_bench_work w = {.name = name,
                                         .hidden = h,
                                         .batch = b->batch,
                                         .flops = update_flops(&config, b->obs, b->act),
                                         .run = run_update,
                                         .ctx = work};
        code = opc_bench_measure(b, &w, err);
    }
    opc_agent_destroy(work->agent);
    work->agent = NULL;
    return code;
}

/* The economical networks of experiments/steve, then the published ones. */
int opc_bench_steve(struct opc_bench *b, struct opc_err *err)
{
    /* The same steps for both sizes. */
    struct opc_imagined *store = NULL;
    OPC_TRY(opc_bench_store(b, &store, err));
    struct work work = {.mix = {.imagined = store}};
    int code = one_size(b, &work, 4, b->hidden ? b->hidden : 200, 2, 64, err);
    if (!code && !b->hidden)
        code = one_size(b, &work, 7, 512, 3, 128, err);
    opc_imagined_destroy(store);
    return code;
}
