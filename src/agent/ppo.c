/* SPDX-License-Identifier: MIT */
/* Proximal policy optimisation (Schulman et al. 2017): its Gaussian policy, its networks and what
 * is saved of it. run/train.c and run/real/evaluate.c act with it. ppo_update.c has the losses and
 * the gradient steps, ppo_table.c the advantages.
 *
 * PPO differs here from CleanRL and OpenAI's baselines in three points:
 * - An epoch ends with the end of an episode, which may be cut short for it. Where an episode ran
 *   out of time or was cut, its return bootstraps from the critic's value of the last state.
 * - Observations are normalised with the statistics from before the epoch, in acting and in
 *   learning, so that log pi of the policy that acted is exact. Only in the first epoch is learning
 *   done with the epoch's own statistics: its policy hardly depends on the observations yet,
 *   because its last layer starts with small weights.
 * - Actions are Gaussian in the scale [-1, 1], whatever the task's range. They may lie outside; the
 *   environment clips them, and the record keeps them as drawn. */
#include "agent/ppo_private.h"

#include "agent/policy.h"
#include "num/normal.h"

#include <math.h>

#define SELF struct opc_ppo_config
const struct opc_section opc_ppo_section = OPC_SECTION(
    "ppo", "proximal policy optimisation, another agent (train.agent = ppo)", OPC_PPO_FIELDS);
#undef SELF

/* Streams of the first weights. Runs depend on these numbers. */
enum { WHICH_POLICY = 5, WHICH_CRITIC = 6 };

/* ---- the policy ------------------------------------------------------------------------------ */

float opc_ppo_normalized_obs(const struct ppo *ppo, int k, float s)
{
    if (!ppo->config.normalize_obs)
        return s;
    const double max = ppo->config.clip_normalized;
    const double x = ((double)s - ppo->obs_stats[k].mean) / sqrt(ppo->obs_stats[k].var + 1e-8);
    return (float)fmin(fmax(x, -max), max);
}

double opc_ppo_log_probability(const struct ppo *ppo, const float *mean, const float *a,
                               size_t stride)
{
    double sum = 0;
    for (int k = 0; k < ppo->base.act; k++) {
        const double l = (double)ppo->log_std[k];
        const double z =
            ((double)a[(size_t)k * stride] - (double)mean[(size_t)k * stride]) / exp(l);
        sum -= 0.5 * z * z + l + HALF_LOG_2PI;
    }
    return sum;
}

/* Chooses the actions of up to ROWS states. rng NULL: the mode, which is the mean. */
static void act_some(struct ppo *ppo, int n, const float *state, float spread, struct opc_rng *rng,
                     float *action)
{
    const int obs = ppo->base.obs, act = ppo->base.act;
    const size_t mark = ppo->scratch.used;
    float *x = opc_floats(&ppo->scratch, (size_t)obs, ROWS);
    float *mean = opc_floats(&ppo->scratch, (size_t)act, ROWS);
    float *eps = opc_floats(&ppo->scratch, (size_t)act, ROWS);
    /* Normalised observations in panels; the padding is 0. */
    for (int i = 0; i < opc_panels(n) * P; i++)
        for (int k = 0; k < obs; k++)
            x[(size_t)(i / P * obs + k) * P + (size_t)(i % P)] =
                i < n ? opc_ppo_normalized_obs(ppo, k, state[i * obs + k]) : 0;
    opc_mlp_infer(ppo->policy, 0, opc_panels(n), x, (size_t)obs * P, act, mean, (size_t)act * P,
                  &ppo->scratch);
    if (rng)
        opc_rng_normals_rows(rng, n, act, eps);
    /* a = mean + spread exp(log_std) eps */
    for (int i = 0; i < n; i++)
        for (int k = 0; k < act; k++) {
            const size_t at = (size_t)(i / P * act + k) * P + (size_t)(i % P);
            action[i * act + k] = mean[at];
            if (rng)
                action[i * act + k] += spread * expf(ppo->log_std[k]) * eps[at];
        }
    opc_arena_rewind(&ppo->scratch, mark);
}

static void ppo_act_spread(const struct opc_agent *a, int n, const float *state, float spread,
                           struct opc_rng *rng, float *action)
{
    struct ppo *ppo = (struct ppo *)a; /* its scratch */
    for (int i = 0; i < n; i += ROWS)
        act_some(ppo, n - i < ROWS ? n - i : ROWS, state + (size_t)i * (size_t)ppo->base.obs,
                 spread, rng ? rng + i : NULL, action + (size_t)i * (size_t)ppo->base.act);
}

static void ppo_act(const struct opc_agent *a, int n, const float *state, bool explore,
                    struct opc_rng *rng, float *action)
{
    ppo_act_spread(a, n, state, 1, explore ? rng : NULL, action);
}

/* The mode is the mean, of normalised observations. */
static int ppo_network(const struct opc_agent *a, struct opc_network *out, struct opc_err *err)
{
    const struct ppo *ppo = (const struct ppo *)a;
    *out = (struct opc_network){.net = ppo->policy, .outputs = a->act};
    if (!ppo->config.normalize_obs)
        return OPC_OK;
    OPC_TRY(opc_network_scale(out, a->obs, err));
    for (int k = 0; k < a->obs; k++) {
        out->mean[k] = (float)ppo->obs_stats[k].mean;
        out->inverse[k] = (float)(1 / sqrt(ppo->obs_stats[k].var + 1e-8));
    }
    out->clip = (float)ppo->config.clip_normalized;
    return OPC_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Accepts a half-built agent: every destroy below takes NULL. */
static void ppo_destroy(struct opc_agent *a)
{
    struct ppo *ppo = (struct ppo *)a;
    opc_mlp_destroy(ppo->policy);
    opc_mlp_destroy(ppo->critic);
    opc_adam_destroy(ppo->policy_adam);
    opc_adam_destroy(ppo->critic_adam);
    opc_adam_destroy(ppo->std_adam);
    opc_tape_destroy(ppo->policy_tape);
    opc_tape_destroy(ppo->critic_tape);
    opc_arena_destroy(&ppo->scratch);
    opc_free(ppo->log_std);
    opc_free(ppo->obs_stats);
    opc_free(ppo->table);
    opc_free(ppo->step);
    opc_free(ppo->reward);
    opc_free(ppo->value);
    opc_free(ppo->advantage);
    opc_free(ppo->batch);
    opc_free(ppo->policy_grad);
    opc_free(ppo->critic_grad);
    opc_free(ppo->std_grad);
    opc_free(ppo->dlog_std);
    opc_free(ppo);
}

/* Everything a later improvement depends on, by name, for checkpoints. Names and order are part of
 * the file format. */
static int ppo_state(struct opc_agent *a,
                     int (*visit)(void *, const char *, void *, size_t, struct opc_err *),
                     void *ctx, struct opc_err *err)
{
    struct ppo *ppo = (struct ppo *)a;
    const size_t policy = ppo->policy->each * sizeof(float),
                 critic = ppo->critic->each * sizeof(float);
    const size_t std = (size_t)ppo->base.act * sizeof(float);
    const struct opc_state_part part[] = {
        {"ppo.policy", ppo->policy->param, policy},
        {"ppo.policy.m", ppo->policy_adam->m, policy},
        {"ppo.policy.v", ppo->policy_adam->v, policy},
        {"ppo.policy.steps", &ppo->policy_adam->steps, sizeof(long)},
        {"ppo.critic", ppo->critic->param, critic},
        {"ppo.critic.m", ppo->critic_adam->m, critic},
        {"ppo.critic.v", ppo->critic_adam->v, critic},
        {"ppo.critic.steps", &ppo->critic_adam->steps, sizeof(long)},
        {"ppo.std", ppo->log_std, std},
        {"ppo.std.m", ppo->std_adam->m, std},
        {"ppo.std.v", ppo->std_adam->v, std},
        {"ppo.std.steps", &ppo->std_adam->steps, sizeof(long)},
        {"ppo.obs", ppo->obs_stats, (size_t)ppo->base.obs * sizeof *ppo->obs_stats},
        {"ppo.returns", &ppo->return_stats, sizeof ppo->return_stats},
    };
    return opc_visit_parts(part, sizeof part / sizeof *part, visit, ctx, err);
}

/* A network with tanh layers and orthogonal weights: gain sqrt(2), and `gain` for the last layer.
 * Its tape reads the batch, of which s are the first columns. */
static int ppo_make_network(const struct ppo *ppo, const struct opc_ints *hidden, int out,
                            double gain, uint64_t seed, uint32_t which, struct opc_mlp **net,
                            struct opc_tape **tape, struct opc_err *err)
{
    struct opc_mlp_shape shape;
    int code = opc_mlp_shape_from(1, ppo->base.obs, hidden->at, hidden->n, out, OPC_ACTIVATION_TANH,
                                  &shape, err);
    if (!code)
        code = opc_mlp_create(&shape, net, err);
    if (!code)
        code = opc_mlp_init_orthogonal(*net, sqrt(2), gain, seed, which, err);
    if (!code)
        code = opc_tape_create(*net, ppo->config.batch_size, tape, err);
    if (!code) {
        (*tape)->x = ppo->batch;
        (*tape)->xs = (size_t)ppo->columns * P;
    }
    return code;
}

/* Policy and critic, their optimisers and gradients, and the scratch of evaluate_rows and act_some.
 * Adam's epsilon of 1e-5 and the last gains of 0.01 and 1 are those of OpenAI's baselines. */
static int ppo_make_networks(struct ppo *ppo, uint64_t seed, struct opc_err *err)
{
    const struct opc_adam_config rates = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-5, .torch = true};
    const size_t act = (size_t)ppo->base.act;
    int code = ppo_make_network(ppo, &ppo->config.policy_hidden, ppo->base.act, 0.01, seed,
                                WHICH_POLICY, &ppo->policy, &ppo->policy_tape, err);
    if (!code)
        code = ppo_make_network(ppo, &ppo->config.critic_hidden, 1, 1, seed, WHICH_CRITIC,
                                &ppo->critic, &ppo->critic_tape, err);
    if (!code)
        code = opc_adam_create(ppo->policy->each, rates, &ppo->policy_adam, err);
    if (!code)
        code = opc_adam_create(ppo->critic->each, rates, &ppo->critic_adam, err);
    if (!code)
        code = opc_adam_create(act, rates, &ppo->std_adam, err);
    if (code)
        return code;
    ppo->policy_grad = opc_alloc(ppo->policy->each, sizeof(float));
    ppo->critic_grad = opc_alloc(ppo->critic->each, sizeof(float));
    if (!ppo->policy_grad || !ppo->critic_grad)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the agent's gradients");
    const size_t a = opc_mlp_infer_need(ppo->policy, CHUNK),
                 b = opc_mlp_infer_need(ppo->critic, CHUNK);
    const size_t wide = ROWS * sizeof(float);
    return opc_arena_create(opc_arena_need((size_t)ppo->columns, wide) + opc_arena_need(1, wide) +
                                2 * opc_arena_need(act, wide) + (a > b ? a : b),
                            &ppo->scratch, err);
}

/* Memory of an improvement, sized by its steps, so that improving allocates nothing. */
static int ppo_make_table(struct ppo *ppo, struct opc_err *err)
{
    const size_t max = (size_t)ppo->max_steps, columns = (size_t)ppo->columns,
                 act = (size_t)ppo->base.act;
    ppo->table = opc_alloc(2 * max, columns * sizeof(float));
    ppo->step = opc_alloc(max, sizeof *ppo->step);
    ppo->reward = opc_alloc(max + 1, sizeof *ppo->reward);
    ppo->value = opc_alloc(max + 1, sizeof *ppo->value);
    ppo->advantage = opc_alloc(max, sizeof *ppo->advantage);
    ppo->batch = opc_alloc((size_t)opc_panels(ppo->config.batch_size) * P, columns * sizeof(float));
    ppo->log_std = opc_alloc(act, sizeof *ppo->log_std);
    ppo->std_grad = opc_alloc(act, sizeof *ppo->std_grad);
    ppo->dlog_std = opc_alloc(act, sizeof *ppo->dlog_std);
    ppo->obs_stats = opc_alloc((size_t)ppo->base.obs, sizeof *ppo->obs_stats);
    if (!ppo->table || !ppo->step || !ppo->reward || !ppo->value || !ppo->advantage ||
        !ppo->batch || !ppo->log_std || !ppo->std_grad || !ppo->dlog_std || !ppo->obs_stats)
        return opc_fail(
            err, OPC_ENOMEM,
            "not enough memory to learn from %d steps at once; lower train.steps_per_epoch",
            ppo->max_steps);
    for (size_t k = 0; k < act; k++)
        ppo->log_std[k] = (float)ppo->config.log_std_init;
    /* The statistics start at mean 0 and variance 1 with almost no weight, as gym's do. */
    ppo->return_stats = (struct opc_running){.count = 1e-4, .var = 1};
    for (int k = 0; k < ppo->base.obs; k++)
        ppo->obs_stats[k] = ppo->return_stats;
    return OPC_OK;
}

static int ppo_create(const struct opc_agent_args *args, struct opc_agent **out,
                      struct opc_err *err)
{
    struct ppo *ppo = opc_alloc(1, sizeof *ppo);
    if (!ppo)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the agent");
    ppo->base = (struct opc_agent){.type = &opc_ppo_type, .obs = args->obs, .act = args->act};
    int code = OPC_OK;
    if (args->config)
        ppo->config = *(const struct opc_ppo_config *)args->config;
    else
        code = opc_section_defaults(&opc_ppo_section, &ppo->config, err);
    ppo->max_steps = args->steps;
    ppo->columns = args->obs + args->act + EXTRA;
    if (!code)
        code = ppo_make_table(ppo, err);
    if (!code)
        code = ppo_make_networks(ppo, args->seed, err);
    if (code) {
        ppo_destroy(&ppo->base);
        return code;
    }
    *out = &ppo->base;
    return OPC_OK;
}

/* With an annealed learning rate, what it learns depends on train.epochs. */
static bool ppo_knows_its_end(const void *config)
{
    return ((const struct opc_ppo_config *)config)->anneal_lr;
}

/* Bytes of the table of an epoch: at worst every trajectory has one step, and so two rows. */
static size_t ppo_need(const struct opc_agent_args *args)
{
    return (size_t)args->steps * (2 * (size_t)(args->obs + args->act + EXTRA) * sizeof(float) + 32);
}

static const struct opc_agent_column COLUMNS[] = {
    [OPC_PPO_Q] = {"q", OPC_OVER_MEAN},
    [OPC_PPO_Q_TARGET] = {"q_target", OPC_OVER_MEAN},
    [OPC_PPO_TARGET_MIN] = {"target_min", OPC_OVER_MIN},
    [OPC_PPO_TARGET_MAX] = {"target_max", OPC_OVER_MAX},
    [OPC_PPO_CRITIC_LOSS] = {"critic_loss", OPC_OVER_MEAN},
    [OPC_PPO_ACTOR_LOSS] = {"actor_loss", OPC_OVER_MEAN},
    [OPC_PPO_ENTROPY] = {"entropy", OPC_OVER_MEAN},
    [OPC_PPO_KL] = {"kl", OPC_OVER_MEAN},
    [OPC_PPO_CLIPPED] = {"clipped", OPC_OVER_MEAN},
    [OPC_PPO_COLUMNS] = {NULL, OPC_OVER_MEAN},
};

const struct opc_agent_type opc_ppo_type = {
    .name = "ppo",
    .label = "PPO",
    .colour = 0xe69f00,
    .needs = OPC_NEEDS_TRAJECTORIES,
    .settings = &opc_ppo_section,
    .columns = COLUMNS,
    .knows_its_end = ppo_knows_its_end,
    .need = ppo_need,
    .need_settings = "train.steps_per_epoch",
    .create = ppo_create,
    .act = ppo_act,
    .improve = opc_ppo_improve,
    .destroy = ppo_destroy,
    .state = ppo_state,
    .act_spread = ppo_act_spread,
    .network = ppo_network,
};
