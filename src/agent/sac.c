/* SPDX-License-Identifier: MIT */
/* Soft actor-critic (Haarnoja et al. 2018), the agent of the paper's experiments: its networks, its
 * memory and what is saved of it. sac_update.c has the equations and the gradient steps. */
#include "agent/sac_private.h"
#include "base/pool.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

#define SELF struct opc_sac_config
const struct opc_section opc_sac_section =
    OPC_SECTION("sac", "soft actor-critic, the agent that improves the policy", OPC_SAC_FIELDS);
#undef SELF

/* Streams of the first weights. Runs depend on these numbers. */
enum { WHICH_POLICY = 1, WHICH_CRITICS = 2 };

static void sac_act(const struct opc_agent *a, int n, const float *state, bool explore,
                    struct opc_rng *rng, float *action)
{
    const struct sac *sac = (const struct sac *)a;
    opc_policy_act(sac->policy, n, state, explore, rng, action, sac->pool);
}

static void sac_act_spread(const struct opc_agent *a, int n, const float *state, float spread,
                           struct opc_rng *rng, float *action)
{
    const struct sac *sac = (const struct sac *)a;
    opc_policy_act_spread(sac->policy, n, state, spread, rng, action, sac->pool);
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Accepts a half-built agent: every destroy below takes NULL. */
static void sac_destroy(struct opc_agent *a)
{
    struct sac *sac = (struct sac *)a;
    opc_policy_destroy(sac->policy);
    opc_mlp_destroy(sac->critics);
    opc_mlp_destroy(sac->targets);
    opc_adam_destroy(sac->policy_adam);
    opc_adam_destroy(sac->critic_adam);
    opc_adam_destroy(sac->alpha_adam);
    opc_tape_destroy(sac->policy_tape);
    for (int k = 0; k < 2; k++) {
        opc_tape_destroy(sac->critic_tape[k]);
        opc_tape_destroy(sac->actor_q_tape[k]);
    }
    for (int i = 0; i < sac->threads && sac->scratch; i++)
        opc_arena_destroy(&sac->scratch[i]);
    opc_free(sac->transposed);
    opc_free(sac->scratch);
    opc_free(sac->step);
    opc_free(sac->batch);
    opc_free(sac->noise);
    opc_free(sac->joint);
    opc_free(sac->std);
    opc_free(sac->dq_da);
    opc_free(sac->sums);
    opc_free(sac->policy_grad);
    opc_free(sac->critic_grad);
    opc_free(sac);
}

/* Everything a later update depends on, by name, for checkpoints. Names and order are part of the
 * file format. */
static int sac_state(struct opc_agent *a,
                     int (*visit)(void *, const char *, void *, size_t, struct opc_err *),
                     void *ctx, struct opc_err *err)
{
    struct sac *sac = (struct sac *)a;
    const size_t policy = sac->policy_adam->count * sizeof(float);
    const size_t critics = sac->critic_adam->count * sizeof(float);
    const struct opc_state_part part[] = {
        {"sac.policy", sac->policy->net->param, policy},
        {"sac.policy.m", sac->policy_adam->m, policy},
        {"sac.policy.v", sac->policy_adam->v, policy},
        {"sac.policy.steps", &sac->policy_adam->steps, sizeof(long)},
        {"sac.critics", sac->critics->param, critics},
        {"sac.critics.m", sac->critic_adam->m, critics},
        {"sac.critics.v", sac->critic_adam->v, critics},
        {"sac.critics.steps", &sac->critic_adam->steps, sizeof(long)},
        {"sac.targets", sac->targets->param, critics},
        {"sac.alpha", &sac->log_alpha, sizeof sac->log_alpha},
        {"sac.alpha.m", sac->alpha_adam->m, sizeof(float)},
        {"sac.alpha.v", sac->alpha_adam->v, sizeof(float)},
        {"sac.alpha.steps", &sac->alpha_adam->steps, sizeof(long)},
        {"sac.updates", &sac->updates, sizeof sac->updates},
        {"sac.mean_logp", &sac->mean_logp, sizeof sac->mean_logp}, /* with sac.bound_targets */
    };
    const size_t parts = sizeof part / sizeof *part - !sac->config.bound_targets;
    return opc_visit_parts(part, parts, visit, ctx, err);
}

/* The mode is tanh of the means, the first half of the network's outputs. */
static int sac_network(const struct opc_agent *a, struct opc_network *out, struct opc_err *err)
{
    const struct sac *sac = (const struct sac *)a;
    (void)err;
    *out = (struct opc_network){.net = sac->policy->net, .outputs = a->act, .squash = true};
    return OPC_OK;
}

/* sac.target_entropy: "auto" or a number. Auto is the task's own, or -(number of actions). */
static int parse_target_entropy(const struct opc_agent_args *args,
                                const struct opc_sac_config *config, double *out,
                                struct opc_err *err)
{
    if (strcmp(config->target_entropy, "auto") == 0)
        *out = isnan(args->target_entropy) ? -(double)args->act : args->target_entropy;
    else if (!opc_parse_real(config->target_entropy, out) || !isfinite(*out))
        return opc_fail(err, OPC_EUSER,
                        "sac.target_entropy = %s is neither a number nor auto (nats; for this task "
                        "auto is %g)",
                        config->target_entropy,
                        isnan(args->target_entropy) ? -(double)args->act : args->target_entropy);
    return OPC_OK;
}

/* Policy, critics and target critics with their optimisers. The target critics start as copies of
 * the critics. */
static int sac_make_networks(struct sac *sac, uint64_t seed, struct opc_err *err)
{
    const struct opc_sac_config *config = &sac->config;
    const int obs = sac->base.obs, actions = sac->base.act;
    struct opc_mlp_shape shape;
    struct opc_adam_config adam = opc_adam_usual(config->learning_rate);
    adam.torch = config->adam == 1;
    int code = opc_policy_create(obs, actions, config->policy_hidden.at, config->policy_hidden.n,
                                 sac->threads, &sac->policy, err);
    if (!code)
        code = opc_mlp_shape_from(2, obs + actions, config->critic_hidden.at,
                                  config->critic_hidden.n, 1, OPC_ACTIVATION_RELU, &shape, err);
    shape.layer_norm = config->layer_norm;
    if (!code)
        code = opc_mlp_create(&shape, &sac->critics, err);
    if (!code)
        code = opc_mlp_create(&shape, &sac->targets, err);
    if (!code)
        code = opc_adam_create(sac->policy->net->each, adam, &sac->policy_adam, err);
    if (!code)
        code = opc_adam_create(2 * sac->critics->each, adam, &sac->critic_adam, err);
    if (!code)
        code = opc_adam_create(1, adam, &sac->alpha_adam, err);
    if (code)
        return code;
    opc_mlp_init(sac->policy->net, OPC_INIT_GLOROT, seed, WHICH_POLICY);
    opc_mlp_init(sac->critics, OPC_INIT_GLOROT, seed, WHICH_CRITICS);
    memcpy(sac->targets->param, sac->critics->param, 2 * sac->critics->each * sizeof(float));
    sac->log_alpha = logf((float)config->alpha);
    sac->q_low = -INFINITY;
    sac->q_high = INFINITY;
    return OPC_OK;
}

/* Bytes of scratch for one thread in losses_of_panels; 8 alignments for its separate arrays. */
static size_t scratch_need(const struct sac *sac)
{
    const int obs = sac->base.obs, actions = sac->base.act;
    const size_t wide = (size_t)sac->panels * P * sizeof(float);
    const size_t a = opc_mlp_infer_need(sac->policy->net, sac->panels);
    const size_t b = opc_mlp_infer_need(sac->targets, sac->panels);
    return opc_arena_need((size_t)(obs + 3 * actions + 5), wide) + 8 * OPC_ALIGN + (a > b ? a : b) +
           opc_squash_need(actions);
}

/* Floats of a network's transposed inputs, without the first layer's, which are shared. */
static size_t transposed_floats(const struct sac *sac, const struct opc_mlp *net)
{
    size_t floats = 0;
    for (int l = 1; l < net->shape.layers; l++)
        floats += opc_transposed_size(sac->panels, net->layer[l].in);
    return floats;
}

/* One tape for each forward pass that is differentiated. */
static int sac_make_tapes(struct sac *sac, struct opc_err *err)
{
    const int batch = sac->config.batch_size;
    int code = opc_tape_create(sac->policy->net, batch, &sac->policy_tape, err);
    for (int k = 0; !code && k < 2; k++) {
        code = opc_tape_create(sac->critics, batch, &sac->critic_tape[k], err);
        if (!code)
            code = opc_tape_create(sac->critics, batch, &sac->actor_q_tape[k], err);
    }
    return code;
}

/* Memory of an update, sized by the batch, so that updates allocate nothing. */
static int sac_make_batch(struct sac *sac, struct opc_err *err)
{
    const int obs = sac->base.obs, actions = sac->base.act, batch = sac->config.batch_size;
    const size_t wide = (size_t)sac->panels * P, a = (size_t)actions;
    const size_t first = opc_transposed_size(sac->panels, obs + actions);
    sac->step = opc_alloc((size_t)batch, sizeof *sac->step);
    sac->batch = opc_alloc(wide * (size_t)sac->columns, sizeof(float));
    sac->noise = opc_alloc(2 * wide * a, sizeof(float));
    sac->joint = opc_alloc(wide * (size_t)(obs + actions), sizeof(float));
    sac->std = opc_alloc(wide * a, sizeof(float));
    sac->dq_da = opc_alloc(2 * wide * a, sizeof(float));
    sac->sums = opc_alloc((size_t)sac->panels, sizeof *sac->sums);
    sac->policy_grad = opc_alloc(sac->policy->net->each, sizeof(float));
    sac->critic_grad = opc_alloc(2 * sac->critics->each, sizeof(float));
    sac->transposed = opc_alloc(first + 2 * transposed_floats(sac, sac->critics) +
                                    transposed_floats(sac, sac->policy->net),
                                sizeof(float));
    sac->scratch = opc_alloc((size_t)sac->threads, sizeof *sac->scratch);
    if (!sac->step || !sac->batch || !sac->noise || !sac->joint || !sac->std || !sac->dq_da ||
        !sac->sums || !sac->policy_grad || !sac->critic_grad || !sac->transposed || !sac->scratch)
        return opc_fail(err, OPC_ENOMEM,
                        "not enough memory for batches of %d steps; lower sac.batch_size", batch);
    int code = sac_make_tapes(sac, err);
    for (int i = 0; i < sac->threads && !code; i++)
        code = opc_arena_create(scratch_need(sac), &sac->scratch[i], err);
    if (code)
        return code;
    /* Where each tape reads its batch: s and (s, a) are the first columns of a step; (s, a~) has
     * its own array. */
    sac->policy_tape->x = sac->batch;
    sac->policy_tape->xs = (size_t)sac->columns * P;
    for (int k = 0; k < 2; k++) {
        sac->critic_tape[k]->x = sac->batch;
        sac->critic_tape[k]->xs = (size_t)sac->columns * P;
        sac->actor_q_tape[k]->x = sac->joint;
        sac->actor_q_tape[k]->xs = (size_t)(obs + actions) * P;
        sac->learner[k] = (struct learner){.net = sac->critics,
                                           .target = sac->targets,
                                           .member = k,
                                           .tape = sac->critic_tape[k],
                                           .adam = sac->critic_adam,
                                           .grad = sac->critic_grad};
    }
    sac->learner[2] = (struct learner){.net = sac->policy->net,
                                       .tape = sac->policy_tape,
                                       .adam = sac->policy_adam,
                                       .grad = sac->policy_grad};
    /* Hand out `transposed`: the shared first layer, then the other layers of each learner. */
    float *at = sac->transposed + first;
    for (int i = 0; i < LEARNERS; i++) {
        struct learner *learner = &sac->learner[i];
        learner->transposed[0] = sac->transposed;
        for (int l = 1; l < learner->net->shape.layers; l++) {
            learner->transposed[l] = at;
            at += opc_transposed_size(sac->panels, learner->net->layer[l].in);
        }
    }
    return OPC_OK;
}

static int sac_create(const struct opc_agent_args *args, struct opc_agent **out,
                      struct opc_err *err)
{
    struct sac *sac = opc_alloc(1, sizeof *sac);
    if (!sac)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the agent");
    sac->base = (struct opc_agent){.type = &opc_sac_type, .obs = args->obs, .act = args->act};
    int code = OPC_OK;
    if (args->config)
        sac->config = *(const struct opc_sac_config *)args->config;
    else
        code = opc_section_defaults(&opc_sac_section, &sac->config, err);
    sac->pool = args->pool;
    sac->threads = opc_pool_threads(args->pool);
    sac->panels = opc_panels(sac->config.batch_size);
    sac->columns = 2 * args->obs + args->act + 2;
    if (!code)
        code = parse_target_entropy(args, &sac->config, &sac->target_entropy, err);
    if (!code)
        code = sac_make_networks(sac, args->seed, err);
    if (!code)
        code = sac_make_batch(sac, err);
    if (code) {
        sac_destroy(&sac->base);
        return code;
    }
    *out = &sac->base;
    return OPC_OK;
}

/* With a learning rate that falls, what it learns depends on train.epochs. */
static bool sac_knows_its_end(const void *config)
{
    return ((const struct opc_sac_config *)config)->lr_decay > 0;
}

static const struct opc_agent_column COLUMNS[] = {
    [OPC_SAC_Q] = {"q", OPC_OVER_MEAN},
    [OPC_SAC_Q_TARGET] = {"q_target", OPC_OVER_MEAN},
    [OPC_SAC_TARGET_MIN] = {"target_min", OPC_OVER_MIN},
    [OPC_SAC_TARGET_MAX] = {"target_max", OPC_OVER_MAX},
    [OPC_SAC_CRITIC_LOSS] = {"critic_loss", OPC_OVER_MEAN},
    [OPC_SAC_ACTOR_LOSS] = {"actor_loss", OPC_OVER_MEAN},
    [OPC_SAC_ALPHA] = {"alpha", OPC_OVER_MEAN},
    [OPC_SAC_ENTROPY] = {"entropy", OPC_OVER_MEAN},
    [OPC_SAC_COLUMNS] = {NULL, OPC_OVER_MEAN},
};

const struct opc_agent_type opc_sac_type = {
    .name = "sac",
    .label = "SAC",
    .colour = 0x009e73,
    .needs = OPC_NEEDS_STEPS,
    .settings = &opc_sac_section,
    .columns = COLUMNS,
    .knows_its_end = sac_knows_its_end,
    .create = sac_create,
    .act = sac_act,
    .improve = opc_sac_improve,
    .destroy = sac_destroy,
    .state = sac_state,
    .act_spread = sac_act_spread,
    .network = sac_network,
};
