/* SPDX-License-Identifier: MIT */
/* opc bench rollout - one step of many imagined rollouts: act, draw an elite for each state, and
 * the next state by eq. 2 (learned) and by eq. 5 (corrected), and by eq. 5 with a limit on the
 * disagreement of the elites (disagreement), all of which predict each step then. opc bench epoch -
 * the parts of an epoch of HalfCheetah with the settings of Table 1, at 50,000 recorded steps and
 * ten passes of the fit, without the environment.
 *
 * Both call what training calls (opc/rollout.h, model/, agent/); data and weights are random, which
 * costs the same time. */
#include "agent/sac.h"
#include "base/pool.h"
#include "cli/bench/bench.h"
#include "data/batch.h"
#include "model/ensemble.h"
#include "num/normal.h"
#include "opc/algorithm2.h"
#include "opc/mem.h"

#include <math.h>
#include <stdio.h>

/* Recorded steps, and steps of one episode. */
enum { STEPS = 50000, EPISODE = 1000 };

/* Recorded episodes, a model, a policy, and rows that walk through a transition. */
struct world {
    struct opc_bench *b;
    int passes; /* epochs of a fit; 0: as the settings have it */
    struct opc_episodes *past;
    struct opc_predictor *model;
    struct opc_agent *agent;
    struct opc_transition *transition;
    struct opc_disagreement *disagreement; /* NULL: the walk has no such limit */
    struct opc_walk_plan walk;             /* through the transition above */
    struct opc_rows *rows;
};

/* STEPS random steps in episodes of EPISODE steps; states do not follow from each other. */
static int record_past(struct world *world, struct opc_err *err)
{
    const int obs = world->b->obs, act = world->b->act;
    struct opc_rng r = opc_rng_stream(1, OPC_USE_TEST, 0, 7);
    double state[4096];
    float noise[4096], action[1024];
    int code = opc_episodes_create(obs, act, STEPS, STEPS / EPISODE, &world->past, err);
    for (int i = 0; !code && i < STEPS; i++) {
        /* A standard normal state and a uniform action. */
        opc_rng_normals(&r, obs, noise);
        for (int k = 0; k < obs; k++)
            state[k] = (double)noise[k];
        for (int k = 0; k < act; k++)
            action[k] = 2.0f * opc_rng_unit(&r) - 1.0f;
        if (i % EPISODE == 0)
            code = opc_episodes_begin(world->past, state, err);
        if (!code)
            code = opc_episodes_append(world->past, action, 1.0, state, false, err);
        if (i % EPISODE == EPISODE - 1)
            opc_episodes_close(world->past);
    }
    return code;
}

/* Rows that start at recorded steps drawn at random. */
static int create_rows(struct world *world, struct opc_err *err)
{
    const struct opc_bench *b = world->b;
    const int code = opc_rows_create(b->obs, b->act, b->states, false, &world->rows, err);
    if (code)
        return code;
    struct opc_rows *rows = world->rows;
    rows->n = b->states;
    for (int i = 0; i < rows->n; i++) {
        rows->rng[i] = opc_rng_stream(1, OPC_USE_ROLLOUT, 0, (uint32_t)i);
        opc_episodes_find(world->past, (int)opc_rng_below(&rows->rng[i], STEPS), &rows->episode[i],
                          &rows->time[i]);
    }
    return OPC_OK;
}

/* Actions of the policy, with exploration. */
static void act_by_agent(void *ctx, int n, const float *state, struct opc_rng *rng, float *action)
{
    opc_agent_act(ctx, n, state, true, rng, action);
}

/* With a policy of two hidden layers of width `hidden`; the model has its defaults. */
static int create_world(struct world *world, int hidden, struct opc_err *err)
{
    const struct opc_bench *b = world->b;
    struct opc_ensemble_config model;
    struct opc_sac_config sac;
    int code = record_past(world, err);
    if (!code)
        code = opc_section_defaults(&opc_ensemble_section, &model, err);
    if (!code)
        code = opc_section_defaults(&opc_sac_section, &sac, err);
    if (code)
        return code;
    /* Patience as long as the fit, so that it never stops early. */
    model.max_epochs = world->passes;
    model.patience = world->passes ? world->passes : model.patience;
    code = opc_ensemble_make(&model, b->obs, b->act, b->threads, 1, 0, &world->model, err);
    if (code)
        return code;
    sac.policy_hidden = (struct opc_ints){2, {hidden, hidden}};
    const struct opc_agent_args args = {
        OPC_SIZED(struct opc_agent_args), .obs = b->obs,  .act = b->act, .seed = 1, .config = &sac,
        .target_entropy = (double)NAN,    .pool = b->pool};
    /* In a rollout the agent only acts; an epoch also trains it. */
    code = opc_agent_create("sac", &args, &world->agent, err);
    /* A horizon of an episode, so that no row reaches it within one step. */
    world->walk = (struct opc_walk_plan){
        .act = act_by_agent, .act_ctx = world->agent, .horizon = EPISODE, .pool = b->pool};
    return code ? code : create_rows(world, err);
}

/* Replaces the one it has. */
static int make_transition(struct world *world, const char *name, struct opc_err *err)
{
    const struct opc_transition_options options = {OPC_SIZED(struct opc_transition_options),
                                                   .name = name, .past = world->past,
                                                   .model = world->model, .steps = STEPS};
    opc_transition_destroy(world->transition);
    world->transition = NULL;
    const int code = opc_transition_create(&options, &world->transition, err);
    world->walk.transition = world->transition;
    return code;
}

static void free_world(struct world *world)
{
    opc_transition_destroy(world->transition);
    opc_episodes_destroy(world->past);
    opc_predictor_destroy(world->model);
    opc_agent_destroy(world->agent);
    opc_rows_destroy(world->rows);
    opc_disagreement_destroy(world->disagreement);
}

/* The same step again and again: rows that would end are not taken out. */
static int run_step(void *ctx, struct opc_err *err)
{
    (void)err;
    const struct world *world = ctx;
    opc_walk_step(&world->walk, world->rows);
    return OPC_OK;
}

/* From here on the walk compares the elites. */
static int limit_disagreement(struct world *world, struct opc_err *err)
{
    const struct opc_bench *b = world->b;
    OPC_TRY(opc_disagreement_create(b->obs, b->act, b->states, 2, &world->disagreement, err));
    opc_disagreement_update(world->disagreement, world->past);
    world->walk.limits.disagreement = world->disagreement;
    return OPC_OK;
}

int opc_bench_rollout(struct opc_bench *b, struct opc_err *err)
{
    struct world world = {.b = b};
    const int h = b->hidden ? b->hidden : 64, in = b->obs + b->act, out = 2 * (b->obs + 1);
    int code = create_world(&world, h, err);
    /* Multiply-adds of one row: policy with two layers, model with four of width 200. */
    const double policy = (double)b->obs * h + (double)h * h + (double)h * 2 * b->act;
    const double model = 200.0 * (in + 3 * 200 + out);
    static const char *const names[] = {"learned", "corrected", "disagreement"};
    /* All of them move the same rows with the same model and policy. */
    for (int i = 0; !code && i < 3; i++) {
        code = i < 2 ? make_transition(&world, names[i], err) : limit_disagreement(&world, err);
        if (!code)
            /* eq. 5 needs f(s_ref, a_ref) of all recorded steps, which is not part of the step. */
            code = opc_transition_refresh(world.transition, b->pool, err);
        if (!code) {
            opc_walk_start(&world.walk, world.rows);
            const int passes = i < 2 ? 1 : world.model->elites;
            char name[64];
            snprintf(name, sizeof name, "rollout %s", names[i]);
            const struct opc_bench_work work = {.name = name,
                                                .hidden = h,
                                                .batch = b->states,
                                                .flops =
                                                    2.0 * b->states * (policy + passes * model),
                                                .run = run_step,
                                                .ctx = &world};
            code = opc_bench_measure(b, &work, err);
        }
    }
    free_world(&world);
    return code;
}

/* ---- a whole epoch --------------------------------------------------------------------------- */

/* Table 1 for HalfCheetah; ten passes stand for a fit that stops by patience. */
enum { PASSES = 10, HORIZON = 10, TRANSITIONS = 1000000, UPDATES = 40000, HIDDEN = 64 };

/* The world and the stores that one epoch fills. */
struct epoch {
    struct world world;
    float *sa, *y;
    struct opc_rollout *rollout;
    struct opc_imagined *imagined;
    struct opc_mix mix;
    int number; /* of the epoch; the imagined steps of the one before are dropped */
};

/* The model is fitted to all recorded steps. */
static int run_fit(void *ctx, struct opc_err *err)
{
    struct epoch *epoch = ctx;
    const struct opc_fit_plan plan = {OPC_SIZED(struct opc_fit_plan), .seed = 1,
                                      .pool = epoch->world.b->pool};
    struct opc_fit_report report = {OPC_SIZED(struct opc_fit_report)};
    opc_episodes_flatten(epoch->world.past, epoch->sa, epoch->y);
    return opc_predictor_fit(epoch->world.model, STEPS, epoch->sa, epoch->y, &plan, &report, err);
}

/* TRANSITIONS imagined steps, after the predictions at recorded steps are refreshed. */
static int run_simulate(void *ctx, struct opc_err *err)
{
    struct epoch *epoch = ctx;
    const struct opc_rollout_plan plan = {.transition = epoch->world.transition,
                                          .act = act_by_agent,
                                          .act_ctx = epoch->world.agent,
                                          .horizon = HORIZON,
                                          .transitions = TRANSITIONS,
                                          .recent = STEPS / EPISODE - 1,
                                          .seed = 1,
                                          .pool = epoch->world.b->pool};
    struct opc_rollout_report report;
    /* Opening an epoch drops the imagined steps of the one before. The reference window is the last
     * epoch, one episode. */
    opc_imagined_open_epoch(epoch->imagined, ++epoch->number);
    opc_transition_move_window(epoch->world.transition, STEPS / EPISODE - 1);
    const int code = opc_transition_refresh(epoch->world.transition, epoch->world.b->pool, err);
    return code ? code : opc_rollout_run(epoch->rollout, &plan, epoch->imagined, &report, err);
}

/* UPDATES of SAC on imagined steps. */
static int run_improve(void *ctx, struct opc_err *err)
{
    struct epoch *epoch = ctx;
    const struct opc_feed feed = {OPC_SIZED(struct opc_feed), .draw = opc_batch_draw,
                                  .ctx = &epoch->mix, .seed = 1};
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    return opc_agent_improve(epoch->world.agent, &feed, UPDATES, &report, err);
}

/* The three parts in the order of training. */
static int run_epoch(void *ctx, struct opc_err *err)
{
    int code = run_fit(ctx, err);
    code = code ? code : run_simulate(ctx, err);
    return code ? code : run_improve(ctx, err);
}

static int create_epoch(struct epoch *epoch, struct opc_err *err)
{
    const struct opc_bench *b = epoch->world.b;
    /* As many imagined steps as one epoch makes. */
    const struct opc_imagined_shape shape = {OPC_SIZED(struct opc_imagined_shape),
                                             .obs = b->obs,
                                             .act = b->act,
                                             .longest = HORIZON,
                                             .retain = 1,
                                             .transitions = TRANSITIONS + HORIZON};
    int code = create_world(&epoch->world, HIDDEN, err);
    if (code)
        return code;
    epoch->sa = opc_alloc(STEPS, (size_t)(b->obs + b->act) * sizeof *epoch->sa);
    epoch->y = opc_alloc(STEPS, (size_t)(b->obs + 1) * sizeof *epoch->y);
    if (!epoch->sa || !epoch->y)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %d recorded steps", STEPS);
    code = make_transition(&epoch->world, "corrected", err);
    if (!code)
        code = opc_rollout_create(b->obs, b->act, HORIZON, OPC_ROLLOUT_ROWS, &epoch->rollout, err);
    if (!code)
        code = opc_imagined_create(&shape, &epoch->imagined, err);
    epoch->mix = (struct opc_mix){.imagined = epoch->imagined};
    return code;
}

int opc_bench_epoch(struct opc_bench *b, struct opc_err *err)
{
    /* The dimensions of HalfCheetah and the batch of Table 1, whatever the options say. */
    struct opc_bench table1 = *b;
    table1.obs = 17;
    table1.act = 6;
    table1.states = 1;
    table1.batch = 256;
    struct epoch e = {.world = {.b = &table1, .passes = PASSES}};
    int code = create_epoch(&e, err);
    if (!code) {
        /* Useful operations of each part: 7 members fit STEPS - hold rows and judge `hold`; 5
         * elites predict the recorded steps of the window; policy and one model step each
         * transition. */
        const int in = 23, out = 36, hold = 5000;
        const double model = 2.0 * 200.0 * (in + 3 * 200 + out);
        const double policy = 2.0 * HIDDEN * (17 + HIDDEN + 12);
        /* Ten passes over the training rows of 7 members, and their holdout. */
        const double fit =
            PASSES * 7.0 * ((STEPS - hold) * opc_bench_fit_flops(in, 200, 4, out) + hold * model);
        const double simulate = EPISODE * 5.0 * model + TRANSITIONS * (model + policy);
        const double improve = UPDATES * opc_bench_sac_flops(17, 6, HIDDEN, 256);
        const struct {
            const char *name;
            int hidden, rows;
            double flops;
            int (*run)(void *, struct opc_err *);
        } works[] = {
            {"epoch fit (10 passes)", 200, STEPS, fit, run_fit},
            {"epoch simulate", 200, TRANSITIONS, simulate, run_simulate},
            {"epoch improve (updates)", HIDDEN, UPDATES, improve, run_improve},
            {"epoch whole", HIDDEN, STEPS, fit + simulate + improve, run_epoch},
        };
        /* Each part runs once, in order: simulate needs the model that fit has made. */
        for (size_t i = 0; !code && i < sizeof works / sizeof *works; i++) {
            const struct opc_bench_work work = {.name = works[i].name,
                                                .hidden = works[i].hidden,
                                                .batch = works[i].rows,
                                                .flops = works[i].flops,
                                                .run = works[i].run,
                                                .ctx = &e};
            code = opc_bench_once(&table1, &work, err);
        }
    }
    /* In the reverse order of creation; all accept NULL. */
    opc_imagined_destroy(e.imagined);
    opc_rollout_destroy(e.rollout);
    opc_free(e.sa);
    opc_free(e.y);
    free_world(&e.world);
    return code;
}
