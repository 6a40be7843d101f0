/* SPDX-License-Identifier: MIT */
/* SLBO, stochastic lower bounds optimisation (Luo et al., ICLR 2019), as an agent. run/improve.c
 * calls slbo_improve at the end of each epoch. One epoch is a stage of the original:
 *
 *     update the running statistics by the epoch's recorded steps
 *     repeat `iterations` times:
 *         `model_updates` gradient steps of the model on windows of recorded steps
 *         repeat `policy_updates` times:
 *             imagine `rollout_steps` steps with the policy, from reset states (slbo_imagine.c)
 *             one TRPO update, and the fit of the value function (trpo.c)
 *
 * The recording is the loop's own (opc_agent_args.past), of which the newest buffer_size steps are
 * the original's replay buffer: nothing is kept twice, and nothing of it has to be saved here.
 *
 * Where it differs from the published code:
 * - The task's reward sees actions clipped to [-1, 1], as the model does; there it sees them as
 *   drawn.
 * - A task without a reward of observations gets a learned one: one more output of the model, whose
 *   error, in its own deviations, counts as one more entry of the loss.
 *   Like predicted states it is clipped: the value function never recovers from a single
 *   trajectory that runs away.
 * - Evaluations use the policy's mean; those of the original draw actions.
 *
 * Invariant: all random numbers come from streams named by the epoch and a count within it, so a
 * resumed run repeats them. */
#include "agent/slbo_private.h"

#include "agent/policy.h"
#include "num/network.h"
#include "num/normal.h"
#include "opc/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SELF struct opc_slbo_config
const struct opc_section opc_slbo_section =
    OPC_SECTION("slbo",
                "SLBO, an agent with a model of its own (train.agent = slbo, opc.transition = "
                "replay)",
                OPC_SLBO_FIELDS);
#undef SELF

enum { WHICH_MODEL = 9, WHICH_POLICY = 10 }; /* streams of first weights; 11: the value function */

#define HALF_LOG_2PIE 1.41893853320467274178

/* ---- acting ---------------------------------------------------------------------------------- */

void opc_slbo_noise(uint64_t seed, uint32_t step, int act, double theta, double sigma, float *work,
                    float *out)
{
    /* After `enough` steps what is left of a draw is below the rounding of a float. */
    const double fade = 1 - theta, enough = fade > 0 ? ceil(log(1e-9) / log(fade)) : 0;
    const uint32_t n = enough < (double)step ? (uint32_t)enough : step;
    memset(out, 0, (size_t)act * sizeof *out);
    for (uint32_t back = n + 1; back-- > 0;) {
        struct opc_rng rng = opc_rng_stream(seed, OPC_USE_EXPLORE, 1, step - back);
        opc_rng_normals(&rng, act, work);
        for (int k = 0; k < act; k++)
            out[k] = (float)fade * out[k] + (float)sigma * work[k];
    }
}

static void slbo_act_spread(const struct opc_agent *a, int n, const float *state, float spread,
                            struct opc_rng *rng, float *action)
{
    const struct slbo *slbo = (const struct slbo *)a;
    const struct opc_multistep_scales scales = opc_multistep_scales(slbo->model);
    opc_trpo_act(slbo->trpo, scales.mean, scales.inverse, n, state, spread, rng, action);
}

/* Real steps of training draw from stream (seed, OPC_USE_EXPLORE, 0, step) and are recognised here
 * by that name (run/train.c); they get the noise in addition. Other draws, as those of
 * `opc evaluate --explore`, are the policy's alone. */
static void slbo_act(const struct opc_agent *a, int n, const float *state, bool explore,
                     struct opc_rng *rng, float *action)
{
    const struct slbo *slbo = (const struct slbo *)a;
    const struct opc_slbo_config *config = &slbo->config;
    slbo_act_spread(a, n, state, 1, explore ? rng : NULL, action);
    for (int i = 0; i < n && explore && config->ou_sigma > 0; i++) {
        const uint32_t step = (uint32_t)rng[i].stream; /* the index of its name */
        if (rng[i].stream != opc_rng_stream(rng[i].seed, OPC_USE_EXPLORE, 0, step).stream)
            continue;
        opc_slbo_noise(rng[i].seed, step, a->act, config->ou_theta, config->ou_sigma,
                       slbo->noise + a->act, slbo->noise);
        for (int k = 0; k < a->act; k++)
            action[i * a->act + k] += slbo->noise[k];
    }
}

/* The mode is the mean, of normalised observations. */
static int slbo_network(const struct opc_agent *a, struct opc_network *out, struct opc_err *err)
{
    const struct slbo *slbo = (const struct slbo *)a;
    const struct opc_multistep_scales scales = opc_multistep_scales(slbo->model);
    *out = (struct opc_network){.net = slbo->trpo->policy, .outputs = a->act};
    OPC_TRY(opc_network_scale(out, a->obs, err));
    memcpy(out->mean, scales.mean, (size_t)a->obs * sizeof *out->mean);
    memcpy(out->inverse, scales.inverse, (size_t)a->obs * sizeof *out->inverse);
    return OPC_OK;
}

/* ---- improving ------------------------------------------------------------------------------- */

int opc_slbo_first_step(const struct slbo *slbo)
{
    const int all = opc_episodes_steps(slbo->past), kept = slbo->config.buffer_size;
    return all > kept ? all - kept : 0;
}

/* Recorded step number `step`: s, a, r, d of its record, and s', with which the next one begins. */
static const float *recorded_row(const struct slbo *slbo, int step, bool *last)
{
    int b, t;
    opc_episodes_find(slbo->past, step, &b, &t);
    *last = t + 1 == opc_episodes_length(slbo->past, b);
    return opc_episodes_at(slbo->past, b, t).state;
}

/* The statistics see every recorded step once, those of the random phase included. */
static void observe_new_steps(struct slbo *slbo)
{
    const int all = opc_episodes_steps(slbo->past);
    while (slbo->seen < all) {
        int n = 0;
        bool last;
        for (; n < OPC_SLBO_AT_ONCE && slbo->seen < all; n++, slbo->seen++)
            slbo->row[n] = recorded_row(slbo, (int)slbo->seen, &last);
        opc_multistep_observe(slbo->model, n, slbo->row);
    }
}

/* One gradient step of the model. Windows start at any step of the buffer, and go on at its oldest
 * one after the newest, as in a ring; where an episode ends inside a window it is cut. */
static double update_model(struct slbo *slbo, const struct opc_feed *feed, uint32_t update)
{
    const int n = slbo->config.batch_size, H = slbo->config.window;
    const int first = opc_slbo_first_step(slbo), kept = opc_episodes_steps(slbo->past) - first;
    struct opc_rng rng = opc_rng_stream(feed->seed, OPC_USE_BATCH, feed->epoch, update);
    for (int b = 0; b < n; b++) {
        const int start = (int)opc_rng_below(&rng, (uint32_t)kept);
        for (int i = 0; i < H; i++)
            slbo->row[i * n + b] =
                recorded_row(slbo, first + (start + i) % kept, &slbo->cut[i * n + b]);
    }
    return opc_multistep_train(slbo->model, n, slbo->row, slbo->cut);
}

/* Sums over the updates of an epoch. */
struct tally {
    double model_loss, last_loss; /* over all gradient steps, over those of the last turn */
    struct opc_trpo_report sum;   /* its means are summed up, its extremes are extremes */
    int updates, failed;
    struct slbo_imagined last;
};

static void add_report(struct tally *tally, const struct opc_trpo_report *r)
{
    struct opc_trpo_report *sum = &tally->sum;
    const bool first = tally->updates++ == 0;
    tally->failed += !r->accepted;
    sum->kl += r->kl;
    sum->gain += r->gain;
    sum->value += r->value;
    sum->target += r->target;
    sum->critic_loss += r->critic_loss;
    sum->target_min = first ? r->target_min : fmin(sum->target_min, r->target_min);
    sum->target_max = first ? r->target_max : fmax(sum->target_max, r->target_max);
}

static void slbo_report(const struct slbo *slbo, const struct tally *tally,
                        struct opc_agent_report *out)
{
    const struct opc_slbo_config *config = &slbo->config;
    const double n = tally->updates, turns = config->iterations;
    double *v = out->value;
    out->updates = tally->updates;
    v[OPC_SLBO_MODEL_LOSS] = tally->model_loss / (turns * config->model_updates);
    v[OPC_SLBO_MODEL_LOSS_LAST] = tally->last_loss / config->model_updates;
    v[OPC_SLBO_IMAGINED_RETURN] = tally->last.rewards / tally->last.trajectories;
    v[OPC_SLBO_IMAGINED_LENGTH] = (double)slbo->trpo->rows / tally->last.trajectories;
    v[OPC_SLBO_Q] = tally->sum.value / n;
    v[OPC_SLBO_Q_TARGET] = tally->sum.target / n;
    v[OPC_SLBO_TARGET_MIN] = tally->sum.target_min;
    v[OPC_SLBO_TARGET_MAX] = tally->sum.target_max;
    v[OPC_SLBO_CRITIC_LOSS] = tally->sum.critic_loss / n;
    v[OPC_SLBO_GAIN] = tally->sum.gain / n;
    v[OPC_SLBO_KL] = tally->sum.kl / n;
    v[OPC_SLBO_LINE_SEARCH_FAILED] = tally->failed;
    for (int k = 0; k < slbo->base.act; k++)
        v[OPC_SLBO_ENTROPY] += (double)slbo->trpo->log_std[k] + HALF_LOG_2PIE;
}

/* One turn: gradient steps of the model, then TRPO updates. */
static int take_turn(struct slbo *slbo, const struct opc_feed *feed, int turn, struct tally *tally,
                     struct opc_err *err)
{
    const struct opc_slbo_config *config = &slbo->config;
    const double ent_coef = feed->epoch <= (uint32_t)config->ent_epochs ? config->ent_coef : 0;
    const uint32_t first = (uint32_t)turn * (uint32_t)config->model_updates;
    tally->last_loss = 0;
    for (int i = 0; i < config->model_updates; i++)
        tally->last_loss += update_model(slbo, feed, first + (uint32_t)i);
    tally->model_loss += tally->last_loss;
    if (!isfinite(tally->last_loss))
        return opc_fail(err, OPC_EDIVERGED,
                        "the model's loss became %g in turn %d of epoch %u; lower "
                        "slbo.learning_rate",
                        tally->last_loss, turn + 1, feed->epoch);
    for (int i = 0; i < config->policy_updates; i++) {
        struct opc_trpo_report report;
        if (feed->stop && feed->stop(feed->stop_ctx))
            return opc_fail(err, OPC_ESTOPPED, "stopped while improving the policy");
        OPC_TRY(opc_slbo_imagine(slbo, feed, &tally->last, err));
        opc_trpo_learn(slbo->trpo, ent_coef, feed->seed, feed->epoch,
                       (uint32_t)tally->updates * (uint32_t)config->value_passes, &report);
        add_report(tally, &report);
        if (!isfinite(report.critic_loss))
            return opc_fail(err, OPC_EDIVERGED,
                            "the value function's loss became %g in turn %d of epoch %u; lower "
                            "slbo.value_learning_rate",
                            report.critic_loss, turn + 1, feed->epoch);
    }
    return OPC_OK;
}

static int slbo_improve(struct opc_agent *a, const struct opc_feed *feed, int updates,
                        struct opc_agent_report *report, struct opc_err *err)
{
    (void)updates; /* follow from its settings */
    struct slbo *slbo = (struct slbo *)a;
    if (!slbo->past || !slbo->env || opc_episodes_steps(slbo->past) == 0)
        return opc_fail(err, OPC_EBUG, "SLBO has no recording to learn from");
    struct tally tally = {0};
    slbo->rollouts.starts = 0;
    observe_new_steps(slbo);
    for (int turn = 0; turn < slbo->config.iterations; turn++)
        OPC_TRY(take_turn(slbo, feed, turn, &tally, err));
    slbo_report(slbo, &tally, report);
    return OPC_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Accepts a half-built agent: every destroy below takes NULL. */
static void slbo_destroy(struct opc_agent *a)
{
    struct slbo *slbo = (struct slbo *)a;
    struct slbo_rollouts *r = &slbo->rollouts;
    opc_multistep_destroy(slbo->model);
    opc_trpo_destroy(slbo->trpo);
    opc_env_close(slbo->resets);
    void *const block[] = {r->rng,    r->state,   r->next,  r->action,          r->clipped,
                           r->reward, r->done,    r->start, r->starts_of_epoch, slbo->row,
                           slbo->cut, slbo->noise};
    for (size_t i = 0; i < sizeof block / sizeof *block; i++)
        opc_free(block[i]);
    opc_free(slbo);
}

/* Everything a later improvement depends on, by name, for checkpoints. Names and order are part of
 * the file format. */
static int slbo_state(struct opc_agent *a,
                      int (*visit)(void *, const char *, void *, size_t, struct opc_err *),
                      void *ctx, struct opc_err *err)
{
    struct slbo *slbo = (struct slbo *)a;
    struct opc_multistep *model = slbo->model;
    struct opc_trpo *trpo = slbo->trpo;
    const size_t obs = (size_t)a->obs, f = sizeof(float);
    const struct opc_state_part part[] = {
        {"slbo.policy", trpo->policy->param, trpo->policy->each * f},
        {"slbo.log_std", trpo->log_std, (size_t)a->act * f},
        {"slbo.value", trpo->value->param, trpo->value->each * f},
        {"slbo.value.m", trpo->value_adam->m, trpo->value->each * f},
        {"slbo.value.v", trpo->value_adam->v, trpo->value->each * f},
        {"slbo.value.steps", &trpo->value_adam->steps, sizeof(long)},
        {"slbo.model", model->net->param, model->net->each * f},
        {"slbo.model.m", model->adam->m, model->net->each * f},
        {"slbo.model.v", model->adam->v, model->net->each * f},
        {"slbo.model.steps", &model->adam->steps, sizeof(long)},
        {"slbo.stats", model->stats, (2 * obs + 1) * sizeof *model->stats},
        {"slbo.scales", model->scales, opc_multistep_scales_count(a->obs) * f},
        {"slbo.seen", &slbo->seen, sizeof slbo->seen},
    };
    return opc_visit_parts(part, sizeof part / sizeof *part, visit, ctx, err);
}

static struct opc_multistep_options model_options(const struct opc_slbo_config *config, int obs,
                                                  int act)
{
    return (struct opc_multistep_options){
        .obs = obs,
        .act = act,
        .hidden = config->model_hidden.at,
        .depth = config->model_hidden.n,
        .window = config->window,
        .batch = config->batch_size,
        .learning_rate = config->learning_rate,
        .weight_decay = config->weight_decay,
        .max_grad_norm = config->max_grad_norm,
        .clip = config->clip_normalized,
        .which = WHICH_MODEL,
    };
}

static struct opc_trpo_options trpo_options(const struct opc_slbo_config *config, int obs, int act)
{
    return (struct opc_trpo_options){
        .obs = obs,
        .act = act,
        .envs = config->rollout_envs,
        .length = config->rollout_steps / config->rollout_envs,
        .policy_hidden = config->policy_hidden.at,
        .policy_depth = config->policy_hidden.n,
        .value_hidden = config->value_hidden.at,
        .value_depth = config->value_hidden.n,
        .discount = config->discount,
        .gae_lambda = config->gae_lambda,
        .max_kl = config->max_kl,
        .cg_iterations = config->cg_iterations,
        .cg_damping = config->cg_damping,
        .line_search = config->line_search,
        .log_std_init = config->log_std_init,
        .value_learning_rate = config->value_learning_rate,
        .value_passes = config->value_passes,
        .value_batch = config->value_batch_size,
        .which = WHICH_POLICY,
    };
}

/* Settings that do not fit each other. It has no need of the run's model, nor of its elites. */
static int slbo_check(const void *given, int elites, struct opc_err *err)
{
    (void)elites;
    const struct opc_slbo_config *config = given;
    const struct {
        const char *name;
        const struct opc_ints *hidden;
    } net[] = {{"model", &config->model_hidden},
               {"policy", &config->policy_hidden},
               {"value", &config->value_hidden}};
    for (size_t i = 0; i < sizeof net / sizeof *net; i++)
        if (net[i].hidden->n >= OPC_MLP_LAYERS) {
            char setting[40];
            snprintf(setting, sizeof setting, "slbo.%s_hidden", net[i].name);
            return opc_fail_settings(err, setting, "%s: %d hidden layers are too many; at most %d",
                                     setting, net[i].hidden->n, OPC_MLP_LAYERS - 1);
        }
    if (config->rollout_steps % config->rollout_envs != 0)
        return opc_fail_settings(err, "slbo.rollout_steps slbo.rollout_envs",
                                 "slbo.rollout_steps = %d is not a multiple of slbo.rollout_envs "
                                 "= %d, among which it is shared out",
                                 config->rollout_steps, config->rollout_envs);
    if (config->value_batch_size > config->rollout_steps)
        return opc_fail_settings(err, "slbo.value_batch_size slbo.rollout_steps",
                                 "slbo.value_batch_size = %d is more than the "
                                 "slbo.rollout_steps = %d there are to draw from",
                                 config->value_batch_size, config->rollout_steps);
    return OPC_OK;
}

/* The same for settings that do not fit the task. */
static int check_task(const struct slbo *slbo, struct opc_err *err)
{
    const struct opc_env *env = slbo->env;
    if (env && env->type->machine && slbo->config.start == OPC_SLBO_START_RESET)
        return opc_fail_settings(err, "slbo.start",
                                 "%s is a machine, which cannot be reset for every imagined "
                                 "trajectory; set slbo.start = buffer",
                                 env->spec);
    return OPC_OK;
}

/* What it allocates besides the model and TRPO's batch. */
enum { BLOCKS = 12 };
static void list_blocks(struct slbo *slbo, struct opc_block blocks[BLOCKS])
{
    struct slbo_rollouts *r = &slbo->rollouts;
    const size_t envs = (size_t)slbo->config.rollout_envs, f = sizeof(float);
    const size_t obs = (size_t)slbo->base.obs, act = (size_t)slbo->base.act;
    const size_t windows = (size_t)slbo->config.window * (size_t)slbo->config.batch_size;
    const struct opc_block all[BLOCKS] = {
        {&r->rng, envs, sizeof *r->rng},
        {&r->state, envs, obs * f},
        {&r->next, envs, obs * f},
        {&r->action, envs, act * f},
        {&r->clipped, envs, act * f},
        {&r->reward, envs, f},
        {&r->done, envs, sizeof *r->done},
        {&r->start, obs, sizeof *r->start},
        {&r->starts_of_epoch, OPC_SLBO_STARTS, obs * f},
        {&slbo->row, windows > OPC_SLBO_AT_ONCE ? windows : OPC_SLBO_AT_ONCE, sizeof *slbo->row},
        {&slbo->cut, windows, sizeof *slbo->cut},
        {&slbo->noise, 2 * act, f},
    };
    memcpy(blocks, all, sizeof all);
}

static int make_memory(struct slbo *slbo, struct opc_err *err)
{
    struct opc_block blocks[BLOCKS];
    list_blocks(slbo, blocks);
    if (!opc_alloc_all(blocks, BLOCKS))
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the agent");
    return OPC_OK;
}

static int make_slbo(struct slbo *slbo, const struct opc_agent_args *args, struct opc_err *err)
{
    if (args->config)
        slbo->config = *(const struct opc_slbo_config *)args->config;
    else
        OPC_TRY(opc_section_defaults(&opc_slbo_section, &slbo->config, err));
    OPC_TRY(slbo_check(&slbo->config, 1, err));
    OPC_TRY(check_task(slbo, err));
    slbo->given_reward = slbo->env && args->given_reward;
    if (slbo->env && slbo->config.start == OPC_SLBO_START_RESET)
        OPC_TRY(opc_env_another(slbo->env, &slbo->resets, err));
    struct opc_multistep_options model = model_options(&slbo->config, args->obs, args->act);
    struct opc_trpo_options trpo = trpo_options(&slbo->config, args->obs, args->act);
    model.reward = !slbo->given_reward;
    model.seed = trpo.seed = args->seed;
    model.pool = trpo.pool = args->pool;
    OPC_TRY(opc_multistep_create(&model, &slbo->model, err));
    OPC_TRY(opc_trpo_create(&trpo, &slbo->trpo, err));
    return make_memory(slbo, err);
}

static int slbo_create(const struct opc_agent_args *args, struct opc_agent **out,
                       struct opc_err *err)
{
    struct slbo *slbo = opc_alloc(1, sizeof *slbo);
    if (!slbo)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the agent");
    slbo->base = (struct opc_agent){.type = &opc_slbo_type, .obs = args->obs, .act = args->act};
    /* Without a recording it only acts, and needs no task. */
    slbo->env = args->past ? args->env : NULL;
    slbo->past = args->past;
    const int code = make_slbo(slbo, args, err);
    if (code) {
        slbo_destroy(&slbo->base);
        return code;
    }
    *out = &slbo->base;
    return OPC_OK;
}

/* The recording that it learns from is the run's, and counted there. */
static size_t slbo_need(const struct opc_agent_args *args)
{
    struct slbo slbo = {.base = {.obs = args->obs, .act = args->act},
                        .config = *(const struct opc_slbo_config *)args->config};
    const struct opc_multistep_options model = model_options(&slbo.config, args->obs, args->act);
    struct opc_trpo_options trpo = trpo_options(&slbo.config, args->obs, args->act);
    struct opc_block blocks[BLOCKS];
    trpo.pool = args->pool;
    list_blocks(&slbo, blocks);
    return opc_alloc_need(1, sizeof slbo) + opc_blocks_need(blocks, BLOCKS) +
           opc_multistep_need(&model) + opc_trpo_need(&trpo);
}

static const struct opc_agent_column COLUMNS[] = {
    [OPC_SLBO_MODEL_LOSS] = {"model_loss", OPC_OVER_MEAN},
    [OPC_SLBO_MODEL_LOSS_LAST] = {"model_loss_last", OPC_OVER_MEAN},
    [OPC_SLBO_IMAGINED_RETURN] = {"imagined_return", OPC_OVER_MEAN},
    [OPC_SLBO_IMAGINED_LENGTH] = {"imagined_length", OPC_OVER_MEAN},
    [OPC_SLBO_Q] = {"q", OPC_OVER_MEAN},
    [OPC_SLBO_Q_TARGET] = {"q_target", OPC_OVER_MEAN},
    [OPC_SLBO_TARGET_MIN] = {"target_min", OPC_OVER_MIN},
    [OPC_SLBO_TARGET_MAX] = {"target_max", OPC_OVER_MAX},
    [OPC_SLBO_CRITIC_LOSS] = {"critic_loss", OPC_OVER_MEAN},
    [OPC_SLBO_GAIN] = {"policy_gain", OPC_OVER_MEAN},
    [OPC_SLBO_KL] = {"kl", OPC_OVER_MEAN},
    [OPC_SLBO_LINE_SEARCH_FAILED] = {"line_search_failed", OPC_OVER_MAX},
    [OPC_SLBO_ENTROPY] = {"entropy", OPC_OVER_MEAN},
    [OPC_SLBO_COLUMNS] = {NULL, OPC_OVER_MEAN},
};

/* It improves once an epoch, when the epoch's episodes have ended, as agents do that learn from
 * trajectories; it reads them, and all before them, from the recording. */
const struct opc_agent_type opc_slbo_type = {
    .name = "slbo",
    .label = "SLBO",
    .colour = 0x6b4590,
    .needs = OPC_NEEDS_TRAJECTORIES,
    .settings = &opc_slbo_section,
    .columns = COLUMNS,
    .need = slbo_need,
    .need_settings = "slbo.rollout_steps, slbo.batch_size or slbo.*_hidden",
    .create = slbo_create,
    .act = slbo_act,
    .improve = slbo_improve,
    .destroy = slbo_destroy,
    .state = slbo_state,
    .act_spread = slbo_act_spread,
    .check = slbo_check,
    .network = slbo_network,
};
