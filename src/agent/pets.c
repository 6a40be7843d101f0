/* SPDX-License-Identifier: MIT */
/* PETS: at every real step a planner looks for the H actions that earn most in the model, takes the
 * first, and plans again (Chua et al. 2018). run/train.c and run/real/evaluate.c act with it; it
 * learns nothing itself, the model does. Candidate sequences come from the cross-entropy method
 * (num/solve/cem.c). Each is simulated by P particles from the current state,
 *
 *     J(a_1 .. a_H) = 1/P sum_p sum_h r_h    without the rewards after a terminal state,
 *
 * where a step of a particle passes through one member of the ensemble: always the same (TSinf) or
 * one that is dealt out at each step (TS1). A member serves as many particles as any other.
 *
 * With pets.feedback a candidate has gains K besides its actions, and a particle in state s takes
 *
 *     clip(a_h + K z, -1, 1)    z = (s - mean) / deviation, of the states the model was fitted to,
 *
 * so that a plan survives where an open loop would be unstable.
 *
 * A step is that of any transition model. By eq. 5 (`corrected`) the particles walk along the
 * recorded trajectory whose state is nearest to the current one among those with H steps left. If
 * none is as long, the longest is taken, and eq. 2 goes on where it ends. All particles of a plan
 * start in the same state, so they share one reference.
 *
 * Invariant: what is drawn is named by the step's key, the iteration and the candidate or particle,
 * so a plan does not depend on the number of threads. */
#include "agent/pets_private.h"
#include "agent/policy.h"
#include "base/pool.h"
#include "env/types.h"
#include "opc/env.h"
#include "opc/mem.h"
#include "opc/transition_type.h"

#include <math.h>
#include <string.h>

#define SELF struct opc_pets_config
const struct opc_section opc_pets_section = OPC_SECTION(
    "pets", "planning through the model instead of a policy (train.agent = pets)", OPC_PETS_FIELDS);
#undef SELF

/* The cross-entropy method draws gains with a quarter of their range [-1, 1] first. */
#define GAIN_VARIANCE 0.25

static int kept_elites(const struct opc_pets_config *config)
{
    return config->optimizer == OPC_PETS_ICEM ? (int)ceil(config->keep_elites * config->elites) : 0;
}

/* Candidates of an iteration at most: drawn ones, kept elites, and the mean in the last. */
static int candidate_capacity(const struct opc_pets_config *config)
{
    const int min_drawn = config->optimizer == OPC_PETS_ICEM ? 2 * config->elites : 0;
    const int drawn = config->population > min_drawn ? config->population : min_drawn;
    return drawn + (config->optimizer == OPC_PETS_ICEM ? kept_elites(config) + 1 : 0);
}

/* Candidates that iteration t draws: all of the population, or by iCEM fewer and fewer. */
static int candidates_drawn(const struct opc_pets_config *config, uint32_t t)
{
    if (config->optimizer != OPC_PETS_ICEM)
        return config->population;
    const double n = ceil(config->population * pow(config->population_decay, -(double)t));
    return n > 2 * config->elites ? (int)n : 2 * config->elites;
}

/* ---- one plan -------------------------------------------------------------------------------- */

/* iCEM adds candidates that are not drawn: some elites, of the step before in the first iteration
 * and of the iteration before in the others, and the mean in the last. */
static void add_kept(const struct pets *pets)
{
    struct plan *plan = pets->plan;
    struct opc_cem *cem = plan->cem;
    const size_t bytes = (size_t)cem->dims * sizeof(float);
    if (pets->config.optimizer != OPC_PETS_ICEM)
        return;
    const float *kept = plan->iteration == 0 ? plan->shifted : cem->keep;
    const int rows = plan->iteration == 0 ? plan->shifted_rows : cem->o.kept;
    for (int i = 0; i < rows; i++)
        memcpy(opc_cem_at(cem, plan->n++), kept + (size_t)i * (size_t)cem->dims, bytes);
    if ((int)plan->iteration + 1 < pets->config.iterations)
        return;
    float *x = opc_cem_at(cem, plan->n++);
    for (int k = 0; k < cem->dims; k++)
        x[k] = (float)cem->mean[k];
}

/* What is remembered: the mean of the next step's plan and, by iCEM, the elites it starts with. At
 * the start of an episode all of it is 0, the middle of the range of actions. */
static void recall(const struct pets *pets, const struct opc_episode_state *memory)
{
    struct plan *plan = pets->plan;
    const int dims = plan->cem->dims, kept = plan->cem->o.kept;
    memcpy(plan->mean, memory->number, (size_t)dims * sizeof *plan->mean);
    plan->shifted_rows = memory->steps > 0 ? kept : 0;
    for (int k = 0; k < kept * dims; k++)
        plan->shifted[k] = (float)memory->number[dims + k];
}

/* The plan without its first step, with zeros at the end. Gains stay as they are. */
static void remember(const struct pets *pets, struct opc_episode_state *memory)
{
    const struct opc_cem *cem = pets->plan->cem;
    const int act = pets->base.act, dims = cem->dims, gains = cem->o.extra, end = dims - gains;
    for (int k = 0; k < end; k++)
        memory->number[k] = k + act < end ? cem->mean[k + act] : 0;
    for (int k = end; k < dims; k++)
        memory->number[k] = cem->mean[k];
    for (int i = 0; i < cem->o.kept; i++) {
        const float *keep = cem->keep + i * dims;
        double *number = memory->number + (i + 1) * dims;
        for (int k = 0; k < end; k++)
            number[k] = k + act < end ? (double)keep[k + act] : cem->mean[k];
        for (int k = end; k < dims; k++)
            number[k] = (double)keep[k];
    }
}

/* Adds a plan to the report. */
static void count_plan(const struct pets *pets, int not_finite)
{
    struct plan *plan = pets->plan;
    double variance = 0;
    for (int k = 0; k < plan->cem->dims - plan->cem->o.extra; k++)
        variance = fmax(variance, plan->cem->variance[k]);
    plan->plans++;
    plan->sum[OPC_PETS_RETURN] += plan->cem->elite_mean;
    plan->sum[OPC_PETS_ITERATIONS] += plan->iteration;
    plan->sum[OPC_PETS_VARIANCE] += variance;
    plan->sum[OPC_PETS_NOT_FINITE] += not_finite;
    plan->sum[OPC_PETS_UNCORRECTED] += 1 - (double)plan->reference.at.left / pets->config.horizon;
}

/* Names what this step draws: by the stream that was given, or by the episode and the step. */
static uint64_t plan_key(const struct opc_episode_state *memory, struct opc_rng *given)
{
    struct opc_rng named =
        opc_rng_stream(memory->seed, OPC_USE_PLAN, memory->epoch, memory->episode);
    named.block = memory->steps;
    struct opc_rng *rng = given ? given : &named;
    const uint64_t high = opc_rng_bits(rng);
    return high << 32 | opc_rng_bits(rng);
}

/* Asks the model, which may have been fitted since the last plan, for the scale of its states. */
static void update_feedback(const struct pets *pets)
{
    struct plan *plan = pets->plan;
    const struct opc_predictor *model = pets->learned->model;
    if (model->type->scale) {
        model->type->scale(model, plan->centre, plan->inverse);
        return;
    }
    for (int k = 0; k < pets->base.obs; k++) {
        plan->centre[k] = 0;
        plan->inverse[k] = 1;
    }
}

/* Takes in the rewards recorded since the last plan. A policy that was loaded without a recording
 * keeps the range of its file. */
static void update_bounds(const struct pets *pets)
{
    struct plan *plan = pets->plan;
    if (!plan->bounds || pets->no_past)
        return;
    opc_bounds_update(plan->bounds, pets->transition->past);
    plan->believed[0] = plan->bounds->reward_low;
    plan->believed[1] = plan->bounds->reward_high;
}

/* The action that is taken: the mean's and not the best candidate's, since the best one is best
 * partly by errors of the model. */
static void first_action(const struct pets *pets, float *action)
{
    const struct plan *plan = pets->plan;
    const struct opc_cem *cem = plan->cem;
    for (int k = 0; k < pets->base.act; k++)
        action[k] = (float)cem->mean[k];
    for (int k = 0; k < cem->o.extra; k++)
        plan->gain[k] = (float)cem->mean[cem->dims - cem->o.extra + k];
    if (cem->o.extra > 0)
        opc_pets_add_feedback(pets, plan->gain, plan->start, action);
}

static void pets_act_in(const struct opc_agent *base, struct opc_episode_state *memory,
                        const float *state, bool explore, struct opc_rng *rng, float *action)
{
    const struct pets *pets = (const struct pets *)base;
    struct plan *plan = pets->plan;
    int not_finite = 0;
    plan->start = state;
    plan->key = plan_key(memory, rng);
    recall(pets, memory);
    opc_pets_find_reference(&plan->reference, pets->transition, state, pets->config.horizon);
    update_feedback(pets);
    update_bounds(pets);
    opc_cem_begin(plan->cem, plan->mean);
    for (plan->iteration = 0;
         (int)plan->iteration < pets->config.iterations && !opc_cem_converged(plan->cem);
         plan->iteration++) {
        plan->n = plan->fresh = candidates_drawn(&pets->config, plan->iteration);
        add_kept(pets);
        opc_pets_simulate(pets);
        not_finite += opc_cem_update(plan->cem, plan->n);
    }
    first_action(pets, action);
    remember(pets, memory);
    if (explore) /* a real step; evaluations are not reported */
        count_plan(pets, not_finite);
}

/* Every row plans afresh, as in the first step of an episode. */
static void pets_act(const struct opc_agent *base, int n, const float *state, bool explore,
                     struct opc_rng *rng, float *action)
{
    const struct pets *pets = (const struct pets *)base;
    for (int i = 0; i < n; i++) {
        opc_episode_state_begin(pets->plan->fresh_memory, pets->seed, 0, (uint32_t)i);
        pets_act_in(base, pets->plan->fresh_memory, state + (size_t)i * (size_t)base->obs, explore,
                    explore ? &rng[i] : NULL, action + (size_t)i * (size_t)base->act);
    }
}

static int pets_looks_ahead(const struct opc_agent *base)
{
    return ((const struct pets *)base)->config.horizon;
}

static size_t pets_remembers(const struct opc_agent *base)
{
    const struct opc_cem *cem = ((const struct pets *)base)->plan->cem;
    return (size_t)cem->dims * (size_t)(cem->o.kept + 1);
}

/* ---- the agent ------------------------------------------------------------------------------- */

/* Nothing to learn; reports the plans since the last report. */
static int pets_improve(struct opc_agent *base, const struct opc_feed *feed, int updates,
                        struct opc_agent_report *report, struct opc_err *err)
{
    (void)feed, (void)updates, (void)err;
    const struct pets *pets = (const struct pets *)base;
    struct plan *plan = pets->plan;
    *report = (struct opc_agent_report){.updates = plan->plans};
    for (int k = 0; k < OPC_PETS_COLUMNS; k++)
        report->value[k] = plan->plans ? plan->sum[k] / (double)plan->plans : 0;
    if (!pets->transition->type->needs_reference) /* there is nothing to be corrected by */
        report->value[OPC_PETS_UNCORRECTED] = (double)NAN;
    plan->plans = 0;
    memset(plan->sum, 0, sizeof plan->sum);
    return OPC_OK;
}

/* The model is saved for it, and a plan with the episode it belongs to. Reports are empty at the
 * end of an epoch, when checkpoints are written. The range of rewards is for a policy that is used
 * without the recording. */
static int pets_state(struct opc_agent *base,
                      int (*visit)(void *, const char *, void *, size_t, struct opc_err *),
                      void *ctx, struct opc_err *err)
{
    struct plan *plan = ((struct pets *)base)->plan;
    const struct opc_state_part part = {"pets.rewards", plan->believed, sizeof plan->believed};
    return plan->bounds ? opc_visit_parts(&part, 1, visit, ctx, err) : OPC_OK;
}

static void plan_destroy(struct plan *plan)
{
    if (!plan)
        return;
    opc_cem_destroy(plan->cem);
    opc_episode_state_destroy(plan->fresh_memory);
    opc_bounds_destroy(plan->bounds);
    void *blocks[] = {plan->state,    plan->next,      plan->action,  plan->reward,
                      plan->work,     plan->elite,     plan->episode, plan->time,
                      plan->noise,    plan->candidate, plan->total,   plan->alive,
                      plan->terminal, plan->mean,      plan->shifted, plan->reference.scale,
                      plan->centre,   plan->inverse,   plan->gain};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        opc_free(blocks[i]);
    opc_free(plan);
}

static void pets_destroy(struct opc_agent *base)
{
    struct pets *pets = (struct pets *)base;
    plan_destroy(pets->plan);
    opc_transition_destroy(pets->learned);
    opc_episodes_destroy(pets->no_past);
    opc_free(pets);
}

static struct opc_cem_options cem_options(const struct opc_pets_config *config, int obs, int act)
{
    return (struct opc_cem_options){
        .steps = config->horizon,
        .each = act,
        .extra = config->feedback > 0 ? act * obs : 0,
        .capacity = candidate_capacity(config),
        .elites = config->elites,
        .kept = kept_elites(config),
        .low = -1,
        .high = 1,
        .deviation = config->deviation,
        .alpha = config->alpha,
        .min_variance = config->min_variance,
        .sample_variance = config->variance == 1,
        .coloured = config->optimizer == OPC_PETS_ICEM,
        .exponent = config->noise_exponent,
    };
}

/* What a plan works on. */
enum { BLOCKS = 19 };
static void list_blocks(const struct opc_pets_config *config, int obs_count, int act_count,
                        struct plan *plan, struct opc_block blocks[BLOCKS])
{
    const struct opc_cem_options options = cem_options(config, obs_count, act_count);
    const size_t obs = (size_t)obs_count, act = (size_t)act_count;
    const size_t candidates = (size_t)options.capacity,
                 rows = candidates * (size_t)config->particles;
    const size_t dims = (size_t)options.steps * act + (size_t)options.extra;
    const struct opc_block all[BLOCKS] = {
        {&plan->state, rows, obs * sizeof *plan->state},
        {&plan->next, rows, obs * sizeof *plan->next},
        {&plan->action, rows, act * sizeof *plan->action},
        {&plan->reward, rows, sizeof *plan->reward},
        {&plan->work, rows, (obs + 1) * sizeof *plan->work},
        {&plan->elite, rows, sizeof *plan->elite},
        {&plan->episode, rows, sizeof *plan->episode},
        {&plan->time, rows, sizeof *plan->time},
        {&plan->noise, rows, sizeof *plan->noise},
        {&plan->candidate, candidates, sizeof *plan->candidate},
        {&plan->total, rows, sizeof *plan->total},
        {&plan->alive, rows, sizeof *plan->alive},
        {&plan->terminal, rows, sizeof *plan->terminal},
        {&plan->mean, dims, sizeof *plan->mean},
        {&plan->shifted, (size_t)options.kept, dims * sizeof *plan->shifted},
        {&plan->reference.scale, obs, sizeof *plan->reference.scale},
        {&plan->centre, obs, sizeof *plan->centre},
        {&plan->inverse, obs, sizeof *plan->inverse},
        {&plan->gain, (size_t)options.extra, sizeof *plan->gain},
    };
    memcpy(blocks, all, sizeof all);
}

/* Particles and the optimiser; what is remembered of an episode, by the agent and by who acts with
 * it; and a few numbers of each observation, for the transition of eq. 2 and the bounds. */
static size_t pets_need(const struct opc_agent_args *args)
{
    const struct opc_pets_config *config = args->config;
    const struct opc_cem_options o = cem_options(config, args->obs, args->act);
    const size_t dims = (size_t)o.steps * (size_t)o.each + (size_t)o.extra;
    const size_t memory = opc_alloc_need(1, sizeof(struct opc_episode_state)) +
                          opc_alloc_need(dims * (size_t)(o.kept + 1), sizeof(double));
    const size_t little = 32 * opc_alloc_need((size_t)(args->obs + args->act) + 32, sizeof(double));
    struct plan none;
    struct opc_block blocks[BLOCKS];
    list_blocks(config, args->obs, args->act, &none, blocks);
    return opc_alloc_need(1, sizeof(struct pets)) + opc_alloc_need(1, sizeof none) +
           opc_blocks_need(blocks, BLOCKS) + opc_cem_bytes(&o) + 2 * memory + little;
}

static int make_plan(struct pets *pets, bool given_reward, struct opc_err *err)
{
    const struct opc_cem_options options =
        cem_options(&pets->config, pets->base.obs, pets->base.act);
    struct plan *plan = pets->plan = opc_alloc(1, sizeof *plan);
    if (!plan)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the planner");
    struct opc_block blocks[BLOCKS];
    list_blocks(&pets->config, pets->base.obs, pets->base.act, plan, blocks);
    if (!opc_alloc_all(blocks, BLOCKS))
        return opc_fail(err, OPC_ENOMEM,
                        "not enough memory to plan with %zu particles; lower pets.population or "
                        "pets.particles",
                        (size_t)options.capacity * (size_t)pets->config.particles);
    plan->reference.scale_steps = -1; /* not known yet */
    plan->believed[0] = -INFINITY;
    plan->believed[1] = INFINITY;
    int code = opc_cem_create(&options, &plan->cem, err);
    if (!code && pets->config.bound_reward && !given_reward)
        code = opc_bounds_create(pets->base.obs, pets->base.act, &plan->bounds, err);
    return code ? code : opc_episode_state_create(&pets->base, &plan->fresh_memory, err);
}

/* Eq. 2, for plans without a recording or beyond its end. It needs a past only for its sizes. */
static int make_transitions(struct pets *pets, const struct opc_agent_args *args,
                            struct opc_err *err)
{
    if (!args->transition)
        OPC_TRY(opc_episodes_create(args->obs, args->act, 1, 1, &pets->no_past, err));
    const struct opc_transition_options options = {
        OPC_SIZED(struct opc_transition_options),
        .name = "learned",
        .past = args->transition ? args->transition->past : pets->no_past,
        .model = args->model,
        .steps = 1,
        .mean = args->mean,
        .reward = args->given_reward ? opc_env_reward_of_task : NULL,
        .reward_ctx = (void *)args->env,
    };
    OPC_TRY(opc_transition_create(&options, &pets->learned, err));
    pets->transition = args->transition ? args->transition : pets->learned;
    return OPC_OK;
}

static int pets_check(const void *given, int elites, struct opc_err *err)
{
    const struct opc_pets_config *config = given;
    if (config->population < config->elites)
        return opc_fail_settings(err, "pets.population pets.elites",
                                 "pets.population = %d has fewer candidates than pets.elites = %d; "
                                 "the elites are chosen among them",
                                 config->population, config->elites);
    if (config->particles % elites != 0)
        return opc_fail_settings(
            err, "pets.particles model.elites",
            "pets.particles = %d is not a multiple of model.elites = %d; each member of the "
            "ensemble moves as many particles of a candidate as any other",
            config->particles, elites);
    /* What planning begins with: the variance of the actions, and that of the gains. */
    const double deviation = 2 * config->deviation, actions = deviation * deviation,
                 gains = config->feedback > 0 ? GAIN_VARIANCE : 0;
    if (gains > actions && gains <= config->min_variance)
        return opc_fail_settings(
            err, "pets.min_variance pets.feedback pets.deviation",
            "pets.feedback = %g draws gains in [-1, 1] with variance %g, pets.deviation = %g draws "
            "actions with variance %g, and planning stops at pets.min_variance = %g, so nothing "
            "would be planned; lower pets.min_variance",
            config->feedback, gains, config->deviation, actions, config->min_variance);
    if (actions >= gains && actions <= config->min_variance)
        return opc_fail_settings(
            err, "pets.deviation pets.min_variance",
            "pets.deviation = %g draws actions in [-1, 1] with variance %g, and planning stops at "
            "pets.min_variance = %g, so nothing would be planned; raise pets.deviation%s",
            config->deviation, actions, config->min_variance,
            actions > 0 ? " or lower pets.min_variance" : "");
    if (config->alpha == 1)
        return opc_fail_settings(err, "pets.alpha",
                                 "pets.alpha = 1 keeps the old mean and variance as they are, so "
                                 "nothing would be planned; lower pets.alpha (default 0.1)");
    if ((double)candidate_capacity(config) * config->particles > 1e9)
        return opc_fail_settings(
            err, "pets.population pets.particles",
            "pets.population = %d and pets.particles = %d make more particles than can be meant "
            "(1e9)",
            config->population, config->particles);
    return OPC_OK;
}

/* Whatever is asked about a particle must have states and actions of the agent's sizes. */
static int check_sizes(const struct opc_agent_args *args, struct opc_err *err)
{
    const struct opc_transition *tr = args->transition;
    const struct opc_predictor *model = args->model;
    const struct {
        const char *what;
        int obs, act;
    } part[] = {
        {"model", model->obs, model->act},
        {"transition model", tr ? tr->obs : args->obs, tr ? tr->act : args->act},
        {"task", args->env ? args->env->obs : args->obs, args->env ? args->env->act : args->act},
    };
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (part[i].obs != args->obs || part[i].act != args->act)
            return opc_fail(err, OPC_EUSER,
                            "the agent pets is to plan in states of %d and actions of %d numbers, "
                            "and its %s has states of %d and actions of %d; it needs one with the "
                            "same sizes",
                            args->obs, args->act, part[i].what, part[i].obs, part[i].act);
    if (tr && tr->model && tr->model->elites != model->elites)
        return opc_fail(err, OPC_EUSER,
                        "the agent pets is to plan with a model of %d elites, and its transition "
                        "model has one of %d; both need the same model",
                        model->elites, tr->model->elites);
    return OPC_OK;
}

static int pets_create(const struct opc_agent_args *args, struct opc_agent **out,
                       struct opc_err *err)
{
    if (!args->model)
        return opc_fail(err, OPC_EUSER, "the agent pets plans with a model, and there is none");
    OPC_TRY(check_sizes(args, err));
    struct pets *pets = opc_alloc(1, sizeof *pets);
    if (!pets)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the agent");
    pets->base = (struct opc_agent){.type = &opc_pets_type, .obs = args->obs, .act = args->act};
    pets->env = args->env;
    pets->pool = args->pool;
    pets->seed = args->seed;
    pets->members = args->model->elites;
    int code = OPC_OK;
    if (args->config)
        pets->config = *(const struct opc_pets_config *)args->config;
    else
        code = opc_section_defaults(&opc_pets_section, &pets->config, err);
    if (!code)
        code = pets_check(&pets->config, pets->members, err);
    if (!code)
        code = make_transitions(pets, args, err);
    if (!code)
        code = make_plan(pets, args->given_reward, err);
    if (code) {
        pets_destroy(&pets->base);
        return code;
    }
    *out = &pets->base;
    return OPC_OK;
}

static const struct opc_agent_column COLUMNS[] = {
    [OPC_PETS_RETURN] = {"plan_return", OPC_OVER_MEAN},
    [OPC_PETS_ITERATIONS] = {"plan_iterations", OPC_OVER_MEAN},
    [OPC_PETS_VARIANCE] = {"plan_variance", OPC_OVER_MEAN},
    [OPC_PETS_NOT_FINITE] = {"plan_not_finite", OPC_OVER_MEAN},
    [OPC_PETS_UNCORRECTED] = {"plan_uncorrected", OPC_OVER_MEAN},
    [OPC_PETS_COLUMNS] = {NULL, OPC_OVER_MEAN},
};

const struct opc_agent_type opc_pets_type = {
    .name = "pets",
    .label = "PETS",
    .colour = 0xe55ae5,
    .needs = OPC_NEEDS_MODEL | OPC_NEEDS_TASK,
    .settings = &opc_pets_section,
    .columns = COLUMNS,
    .create = pets_create,
    .act = pets_act,
    .improve = pets_improve,
    .destroy = pets_destroy,
    .state = pets_state,
    .remembers = pets_remembers,
    .act_in = pets_act_in,
    .need = pets_need,
    .need_settings = "pets.population or pets.particles",
    .check = pets_check,
    .corrected_label = "PETS with eq. 5",
    .corrected_colour = 0xaa4499,
    .looks_ahead = pets_looks_ahead,
};
