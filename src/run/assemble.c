/* SPDX-License-Identifier: MIT */
/* Builds the parts of a run from its settings, and estimates the memory they need before they are
 * allocated. Called by session.c, by restore.c when a slot turns out to be damaged, and by
 * trained.c for the networks alone.
 *
 * Invariant: every store is allocated here, at its largest size, so a run that begins does not run
 * out of memory after days. */
#include "run/run.h"

#include "agent/slbo.h"
#include "base/available.h"
#include "env/check.h"
#include "env/types.h"
#include "model/termination.h"
#include "num/scaler.h"
#include "opc/mem.h"
#include "run/real/evaluate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Names the random stream of the model's initial weights; those of agents: 1, 2, 5, 6,
 * 9 to 11; of run/termination.c: 20. */
enum { WHICH_MODEL = 3 };

/* ---- sizes ----------------------------------------------------------------------------------- */

static int simulations_per_epoch(const struct opc_values *v)
{
    return v->train.steps_per_epoch / opc_every(v, v->train.simulate_every);
}

/* The largest number of transitions of one simulation, in all its rounds: the last rollout of a
 * round may exceed its share by up to horizon - 1 steps. */
static double transitions_at(const struct opc_values *v, int horizon)
{
    return v->opc.rollouts ? (double)v->opc.rollouts * horizon
                           : (double)v->opc.transitions + (double)v->train.rounds * (horizon - 1);
}

/* Capacity of the imagined data: of each epoch with data.forget = epochs, of all that is kept with
 * data.forget = steps. */
static struct opc_imagined_shape imagined_shape(const struct opc_run *run)
{
    const struct opc_values *v = run->set;
    const int horizon = opc_horizon_max(v);
    double n = transitions_at(v, horizon) * simulations_per_epoch(v);
    if (v->data.forget == OPC_FORGET_STEPS)
        n *= v->data.retain;
    return (struct opc_imagined_shape){
        OPC_SIZED(struct opc_imagined_shape),
        .obs = run->obs,
        .act = run->act,
        .longest = horizon,
        .forget = (enum opc_forget)v->data.forget,
        .retain = v->data.retain,
        .transitions = n < 4e9 ? (size_t)n : (size_t)4e9, /* create refuses what is too much */
    };
}

size_t opc_run_limit(const struct opc_values *v, int horizon)
{
    return (size_t)(transitions_at(v, horizon) * simulations_per_epoch(v) * v->data.retain);
}

/* The number of rollouts that opc/rollout.c starts at once, at most. */
static int rows_at_once(const struct opc_values *v)
{
    /* N / H rollouts make N steps, so the shortest horizon has the most of them. */
    const int first = opc_horizon(v, 1), last = opc_horizon(v, v->train.epochs);
    const double starts = v->opc.rollouts
                              ? v->opc.rollouts
                              : ceil((double)v->opc.transitions / (first < last ? first : last));
    return starts < OPC_ROLLOUT_ROWS ? (int)starts : OPC_ROLLOUT_ROWS;
}

/* The largest number of recorded steps in the reference window. Its first episode may have begun an
 * epoch earlier, and the random phase, or what it was replaced by, may be longer than an epoch. */
static int window_capacity(const struct opc_run *run)
{
    const struct opc_train_config *t = &run->set->train;
    const double epochs = run->set->opc.reference_epochs, steps = t->steps_per_epoch;
    const double before = fmax(t->random_steps, run->prefill.steps);
    const double max = run->play->limit + fmax(epochs * steps, before + (epochs - 1) * steps);
    return epochs == 0 || opc_mixes_past(run->set) || max > run->capacity ? run->capacity
                                                                          : (int)max;
}

/* ---- memory ---------------------------------------------------------------------------------- */

struct need { /* bytes; doubles, because products of settings overflow integers */
    double recorded, reference, imagined, rollouts, fit, agent, rest;
};

static double total_need(const struct need *need)
{
    return need->recorded + need->reference + need->imagined + need->rollouts + need->fit +
           need->agent + need->rest;
}

/* What the agent is made with; the model and the transition are added where they exist. */
static struct opc_agent_args agent_args(const struct opc_values *v, int obs, int act,
                                        struct opc_pool *pool)
{
    return (struct opc_agent_args){
        OPC_SIZED(struct opc_agent_args),
        .obs = obs,
        .act = act,
        .seed = (uint64_t)v->train.seed,
        .config = opc_values_agent(v, v->train.agent),
        .target_entropy = opc_target_entropy(v->env.name),
        .steps = v->train.steps_per_epoch,
        .pool = pool,
        .mean = !v->opc.sample,
    };
}

static struct need estimate_need(const struct opc_run *run)
{
    const struct opc_values *v = run->set;
    const double capacity = run->capacity, f = sizeof(float);
    struct need need = {.rest = 64e6}; /* model, environments, the program itself */
    /* records, and where each episode begins */
    need.recorded = capacity * ((double)opc_record_stride(run->obs, run->act) * f + 16);
    /* agents that keep the steps of an epoch, as PPO, that have large networks or plan say how much
     * that is; the others need little */
    if (opc_agent_of(v)->need) {
        const struct opc_agent_args args = agent_args(v, run->obs, run->act, run->pool);
        need.agent = (double)opc_agent_of(v)->need(&args);
    }
    if (!opc_transition_of(v)->needs_model)
        return need;
    const struct opc_imagined_shape shape = imagined_shape(run);
    if (!opc_plans(v)) {
        need.imagined = (double)opc_imagined_need(&shape);
        need.rollouts =
            (double)opc_rollout_need(run->obs, run->act, shape.longest, rows_at_once(v));
        if (v->opc.max_disagreement > 0)
            need.rollouts += (double)opc_disagreement_need(run->obs, rows_at_once(v));
    }
    /* The table of inputs and targets exists twice (run->sa and run->y, and the trainer's copy),
     * and each member has a list of its rows. */
    need.fit = capacity * (2 * (2 * run->obs + run->act + 1) * f + 4 * (v->model.members + 1));
    if (opc_transition_of(v)->bytes)
        need.reference = (double)opc_transition_of(v)->bytes(window_capacity(run), run->obs,
                                                             run->act, v->model.elites);
    /* The errors of plans by eq. 5 are measured beside the run, also of those by eq. 2. */
    for (int i = 0; opc_plans(v) && opc_transition_type(i); i++)
        if (opc_transition_type(i)->corrects)
            need.reference += (double)opc_transition_type(i)->bytes(run->capacity, run->obs,
                                                                    run->act, v->model.elites);
    return need;
}

enum { SHARES = 160 };
/* "agent 1 MB, imagined steps 2 MB, recorded steps and fits 3 MB". What a planner takes is its
 * plans. */
static void print_shares(const struct opc_run *run, const struct need *need, char out[SHARES])
{
    char agent[OPC_PRINTED], imagined[OPC_PRINTED], past[OPC_PRINTED];
    opc_print_bytes(need->agent, agent);
    opc_print_bytes(need->imagined, imagined);
    opc_print_bytes(need->recorded + need->reference + need->fit, past);
    if (opc_plans(run->set))
        snprintf(out, SHARES, "planning %s, recorded steps and fits %s", agent, past);
    else
        snprintf(out, SHARES, "%s%s%simagined steps %s, recorded steps and fits %s",
                 need->agent > 0 ? "agent " : "", need->agent > 0 ? agent : "",
                 need->agent > 0 ? ", " : "", imagined, past);
}

/* The settings that the largest share grows with. */
static const char *what_to_lower(const struct opc_run *run, const struct need *need)
{
    const double past = need->recorded + need->reference + need->fit;
    if (need->agent > fmax(past, fmax(need->imagined, need->rollouts)) &&
        opc_agent_of(run->set)->need_settings)
        return opc_agent_of(run->set)->need_settings;
    if (need->rollouts > need->imagined && need->rollouts > past)
        return "opc.horizon";
    return need->imagined > past ? "opc.transitions or data.retain" : "train.epochs";
}

static int check_memory(struct opc_run *run, struct opc_err *err)
{
    char all[OPC_PRINTED], here[OPC_PRINTED], shares[SHARES];
    const struct need need = estimate_need(run);
    const double free = opc_available_bytes("");
    opc_print_bytes(total_need(&need), all);
    opc_print_bytes(free, here);
    print_shares(run, &need, shares);
    /* The sentence is logged at the start, also when all is well. */
    snprintf(run->memory, sizeof run->memory, "memory: up to %s (%s), %s available", all, shares,
             free > 0 ? here : "unknown");
    if (free < 0 || total_need(&need) <= free)
        return OPC_OK;
    return opc_fail(err, OPC_ENOMEM,
                    "this run needs up to %s of memory (%s) and %s are available; lower %s", all,
                    shares, here, what_to_lower(run, &need));
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* model.reward, and whether the task has a reward function. */
static bool is_given_reward(const struct opc_values *v, const struct opc_env *env)
{
    float none = 0;
    return v->model.reward != OPC_REWARD_LEARNED && env &&
           opc_env_reward(env, 0, &none, &none, &none, &none);
}

int opc_run_agent(const struct opc_values *v, int obs, int act, struct opc_predictor *model,
                  const struct opc_transition *transition, const struct opc_env *env,
                  const struct opc_episodes *past, struct opc_pool *pool, struct opc_agent **out,
                  struct opc_err *err)
{
    struct opc_agent_args args = agent_args(v, obs, act, pool);
    args.model = model;
    args.transition = transition;
    args.env = env;
    args.past = past;
    args.given_reward = is_given_reward(v, env);
    return opc_agent_create(opc_agent_of(v)->name, &args, out, err);
}

int opc_run_check_reward(const struct opc_values *v, const struct opc_env *env, struct opc_err *err)
{
    if (v->model.reward != OPC_REWARD_GIVEN || is_given_reward(v, env))
        return OPC_OK;
    return opc_fail_settings(
        err, "model.reward env.name",
        "model.reward = given, but the reward of %s is not a function of observations and action; "
        "set model.reward = learned",
        v->env.name);
}

int opc_run_model(const struct opc_values *v, int obs, int act, struct opc_pool *pool,
                  struct opc_predictor **out, struct opc_err *err)
{
    return opc_ensemble_make(&v->model, obs, act, opc_pool_threads(pool), (uint64_t)v->train.seed,
                             WHICH_MODEL, out, err);
}

int opc_run_transition(const struct opc_values *v, const struct opc_episodes *past,
                       const struct opc_predictor *model, const struct opc_env *env, int steps,
                       struct opc_transition **out, struct opc_err *err)
{
    const struct opc_transition_options options = {
        OPC_SIZED(struct opc_transition_options),
        .name = opc_transition_of(v)->name,
        .past = past,
        .model = model,
        .steps = steps,
        .reward_by_model = !v->opc.correct_reward,
        .mean = !v->opc.sample,
        .reward = is_given_reward(v, env) ? opc_env_reward_of_task : NULL,
        .reward_ctx = (void *)env,
    };
    return opc_transition_create(&options, out, err);
}

/* The model, the transition by eq. 2 or eq. 5, and what rollouts need. */
static int make_model_parts(struct opc_run *run, struct opc_err *err)
{
    const struct opc_values *v = run->set;
    const struct opc_imagined_shape shape = imagined_shape(run);
    OPC_TRY(opc_run_model(v, run->obs, run->act, run->pool, &run->model, err));
    OPC_TRY(opc_run_transition(v, run->past, run->model, run->play->env, window_capacity(run),
                               &run->transition, err));
    OPC_TRY(opc_scaler_create(run->obs, &run->states, err));
    OPC_TRY(opc_run_make_termination(run, err));
    if (!opc_plans(v)) {
        OPC_TRY(opc_rollout_create(run->obs, run->act, shape.longest, rows_at_once(v),
                                   &run->rollout, err));
        OPC_TRY(opc_imagined_create(&shape, &run->imagined, err));
    }
    if (v->opc.max_drift > 0)
        OPC_TRY(opc_drift_create(run->obs, v->opc.max_drift, &run->drift, err));
    if (v->opc.max_disagreement > 0)
        OPC_TRY(opc_disagreement_create(run->obs, run->act, rows_at_once(v),
                                        v->opc.max_disagreement, &run->disagreement, err));
    const size_t capacity = (size_t)run->capacity, obs = (size_t)run->obs, act = (size_t)run->act;
    const struct opc_block tables[] = {
        {&run->sa, capacity, (obs + act) * sizeof(float)}, /* inputs of a fit: (s, a) */
        {&run->y, capacity, (obs + 1) * sizeof(float)},    /* targets: s' - s, r */
    };
    if (!opc_alloc_all(tables, 2))
        return opc_fail(err, OPC_ENOMEM,
                        "not enough memory to fit a model to %d steps; lower train.epochs",
                        run->capacity);
    return OPC_OK;
}

/* Hardware must not wait, motors on, while something is computed: all computing has to happen
 * between epochs, when no episode runs. */
static int check_machine(const struct opc_values *v, struct opc_err *err)
{
    const struct opc_train_config *t = &v->train;
    const bool model = opc_transition_of(v)->needs_model;
    if (!t->reset_each_epoch)
        return opc_fail(err, OPC_EUSER,
                        "%s is a machine, which cannot be brought back into the middle of an "
                        "episode; set train.reset_each_epoch = true",
                        v->env.name);
    if (opc_every(v, t->improve_every) < t->steps_per_epoch ||
        (model && (opc_every(v, t->fit_every) < t->steps_per_epoch ||
                   opc_every(v, t->simulate_every) < t->steps_per_epoch)))
        return opc_fail(err, OPC_EUSER,
                        "%s is a machine, which does not wait in the middle of an episode; set "
                        "train.fit_every, train.simulate_every and train.improve_every = 0",
                        v->env.name);
    return OPC_OK;
}

/* A short look at a task that is not ours, before hours are spent on it: numbers, sizes,
 * termination and reward. One that does not repeat itself gets a warning alone: only the measuring
 * of model errors needs that. */
static int check_foreign(struct opc_run *run, struct opc_err *err)
{
    const struct opc_check_plan plan = {
        .seed = run->seed, .transitions = 30, .seconds = 5, .brief = true};
    struct opc_env *env = run->play->env, *other = opc_many_borrow(run->worlds, 0);
    struct opc_env_report report;
    struct opc_err odd = {0};
    if (!opc_env_is_foreign(run->set->env.name) || env->type->machine)
        return OPC_OK;
    if (opc_env_check_open(env, &plan, &report, err))
        return opc_within(err, "the check before training ('opc env check' does a longer one)");
    const struct opc_values *v = run->set;
    const bool imagines = opc_plans(v) || opc_agent_of(v) == &opc_slbo_type;
    if (report.unforeseen > 0 && imagines)
        snprintf(run->doubt, sizeof run->doubt,
                 "%s ends episodes and has no terminal function, so what train.agent = %s imagines "
                 "never ends by itself; give the task one (docs/env-process.md)",
                 v->env.name, opc_agent_of(v)->name);
    else if (report.unforeseen > 0 && opc_transition_of(v)->needs_model &&
             v->model.termination != OPC_TERMINATION_LEARNED)
        snprintf(run->doubt, sizeof run->doubt,
                 "%s ends episodes and has no terminal function, so imagined rollouts never end by "
                 "themselves; model.termination = learned learns where they should",
                 v->env.name);
    if (opc_env_repeats(env) && opc_env_check_repeats(env, other, &plan, &odd))
        snprintf(run->doubt, sizeof run->doubt, "%.360s; model errors are not measured", odd.text);
    return OPC_OK;
}

int opc_run_make(struct opc_run *run, const struct opc_values *v, const struct opc_train_plan *plan,
                 struct opc_err *err)
{
    char task[OPC_TASK_NAME];
    run->set = v;
    run->plan = plan;
    run->hash = opc_config_hash(v);
    run->seed = (uint64_t)v->train.seed;
    OPC_TRY(opc_pool_create(plan->threads, &run->pool, err));
    OPC_TRY(opc_play_create(opc_values_task(v, task), run->seed, v->train.steps_per_epoch,
                            &run->play, err));
    run->obs = run->play->env->obs;
    run->act = run->play->env->act;
    OPC_TRY(opc_run_load_prefill(run, err));
    run->capacity = run->prefill.steps + v->train.random_steps + run->play->limit +
                    v->train.epochs * v->train.steps_per_epoch;
    /* Now that the sizes are known, and before anything large is allocated. */
    OPC_TRY(check_memory(run, err));
    /* There is one piece of hardware, which is also evaluated on; simulators are opened again. */
    const int worlds = v->eval.episodes < OPC_EVAL_AT_ONCE ? v->eval.episodes : OPC_EVAL_AT_ONCE;
    if (run->play->env->type->machine) {
        OPC_TRY(check_machine(v, err));
        OPC_TRY(opc_many_of(run->play->env, &run->worlds, err));
    } else
        OPC_TRY(opc_many_open(task, worlds, run->pool, &run->worlds, err));
    OPC_TRY(check_foreign(run, err));
    /* data, model, agent */
    OPC_TRY(opc_episodes_create(run->obs, run->act, run->capacity, run->capacity, &run->past, err));
    OPC_TRY(opc_bounds_create(run->obs, run->act, &run->bounds, err));
    OPC_TRY(opc_run_check_reward(v, run->play->env, err));
    if (opc_transition_of(v)->needs_model)
        OPC_TRY(make_model_parts(run, err));
    OPC_TRY(opc_run_agent(v, run->obs, run->act, run->model, run->transition, run->play->env,
                          run->past, run->pool, &run->agent, err));
    OPC_TRY(opc_episode_state_create(run->agent, &run->episode, err));
    const struct opc_block blocks[] = {
        {&run->a, (size_t)run->act, sizeof *run->a},
        {&run->recorded, (size_t)v->train.epochs + 1, sizeof *run->recorded},
    };
    if (!opc_alloc_all(blocks, 2))
        return opc_fail(err, OPC_ENOMEM,
                        "not enough memory for an action and the ends of %d epochs",
                        v->train.epochs);
    /* Batches are drawn from imagined steps, with a share of recorded ones; without a model, from
     * recorded ones only. */
    run->play->past = run->past;
    run->mix = (struct opc_mix){
        .imagined = run->imagined,
        .episodes = run->imagined && v->data.real_ratio == 0 ? NULL : run->past,
        .real_ratio = run->imagined ? v->data.real_ratio : 1,
    };
    return OPC_OK;
}

void opc_run_free(struct opc_run *run)
{
    /* Users before what they use: the agent may hold the model, and the transition points into the
     * past. */
    opc_episode_state_destroy(run->episode);
    opc_agent_destroy(run->agent);
    opc_imagined_destroy(run->imagined);
    opc_rollout_destroy(run->rollout);
    opc_transition_destroy(run->transition);
    opc_scaler_destroy(run->states);
    opc_termination_destroy(run->termination);
    opc_drift_destroy(run->drift);
    opc_disagreement_destroy(run->disagreement);
    opc_bounds_destroy(run->bounds);
    opc_predictor_destroy(run->model);
    opc_free(run->sa);
    opc_free(run->y);
    opc_free(run->a);
    opc_free(run->recorded);
    opc_many_close(run->worlds);
    opc_play_destroy(run->play);
    opc_episodes_destroy(run->past);
    opc_episodes_file_free(&run->prefill);
    opc_pool_destroy(run->pool);
    opc_free(run->past_segments.at);
    opc_free(run->past_missing.at);
    opc_free(run->imagined_segments.at);
}

int opc_run_remake(struct opc_run *run, struct opc_err *err)
{
    /* The log stays open and locked; the clocks go on. */
    const struct opc_run old = *run;
    opc_run_free(run);
    *run = (struct opc_run){.log = old.log,
                            .began = old.began,
                            .entered = old.entered,
                            .damaged_segment = old.damaged_segment};
    return opc_run_make(run, old.set, old.plan, err);
}
