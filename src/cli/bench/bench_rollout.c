/* SPDX-License-Identifier: MIT */
/* opc bench rollout - one step of many imagined rollouts: act, draw an elite for each state, and
 * the next state by eq. 2 (learned) and by eq. 5 (corrected).
 * opc bench epoch - what an epoch of HalfCheetah with the settings of Table 1 consists of, at
 * 50,000 recorded steps and ten passes of the fit, without the environment. */
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

enum { STEPS = 50000, EPISODE = 1000 };

struct world {
    struct opc_bench *b;
    int passes; /* of a fit; 0: as usual */
    struct opc_episodes *past;
    struct opc_predictor *model;
    struct opc_agent *agent;
    struct opc_transition *transition;
    struct opc_walk_plan walk; /* through the transition above */
    struct opc_rows *rows;
};

static int record_past(struct world *w, struct opc_err *err)
{
    const int obs = w->b->obs, act = w->b->act;
    struct opc_rng r = opc_rng_stream(1, OPC_USE_TEST, 0, 7);
    double state[4096];
    float noise[4096], action[1024];
    int code = opc_episodes_create(obs, act, STEPS, STEPS / EPISODE, &w->past, err);
    for (int i = 0; !code && i < STEPS; i++) {
        opc_rng_normals(&r, obs, noise);
        for (int k = 0; k < obs; k++)
            state[k] = (double)noise[k];
        for (int k = 0; k < act; k++)
            action[k] = 2.0f * opc_rng_unit(&r) - 1.0f;
        if (i % EPISODE == 0)
            code = opc_episodes_begin(w->past, state, err);
        if (!code)
            code = opc_episodes_append(w->past, action, 1.0, state, false, err);
        if (i % EPISODE == EPISODE - 1)
            opc_episodes_close(w->past);
    }
    return code;
}

/* Rows beside recorded steps drawn at random. */
static int make_rows(struct world *w, struct opc_err *err)
{
    const struct opc_bench *b = w->b;
    const int code = opc_rows_create(b->obs, b->act, b->states, false, &w->rows, err);
    if (code)
        return code;
    struct opc_rows *rows = w->rows;
    rows->n = b->states;
    for (int i = 0; i < rows->n; i++) {
        rows->rng[i] = opc_rng_stream(1, OPC_USE_ROLLOUT, 0, (uint32_t)i);
        opc_episodes_find(w->past, (int)opc_rng_below(&rows->rng[i], STEPS), &rows->episode[i],
                          &rows->time[i]);
    }
    return OPC_OK;
}

static void act_by_agent(void *ctx, int n, const float *state, struct opc_rng *rng, float *action)
{
    opc_agent_act(ctx, n, state, true, rng, action);
}

static int make_world(struct world *w, int hidden, struct opc_err *err)
{
    const struct opc_bench *b = w->b;
    struct opc_ensemble_config model;
    struct opc_sac_config sac;
    int code = record_past(w, err);
    if (!code)
        code = opc_section_defaults(&opc_ensemble_section, &model, err);
    if (!code)
        code = opc_section_defaults(&opc_sac_section, &sac, err);
    if (code)
        return code;
    model.max_epochs = w->passes;
    model.patience = w->passes ? w->passes : model.patience;
    code = opc_ensemble_make(&model, b->obs, b->act, b->threads, 1, 0, &w->model, err);
    if (code)
        return code;
    sac.policy_hidden = (struct opc_ints){2, {hidden, hidden}};
    const struct opc_agent_args args = {
        OPC_SIZED(struct opc_agent_args), .obs = b->obs,  .act = b->act, .seed = 1, .config = &sac,
        .target_entropy = (double)NAN,    .pool = b->pool};
    code = opc_agent_create("sac", &args, &w->agent, err);
    w->walk = (struct opc_walk_plan){
        .act = act_by_agent, .act_ctx = w->agent, .horizon = EPISODE, .pool = b->pool};
    return code ? code : make_rows(w, err);
}

/* Replaces the one it has. */
static int make_transition(struct world *w, const char *name, struct opc_err *err)
{
    const struct opc_transition_options options = {OPC_SIZED(struct opc_transition_options),
                                                   .name = name, .past = w->past, .model = w->model,
                                                   .steps = STEPS};
    opc_transition_destroy(w->transition);
    w->transition = NULL;
    const int code = opc_transition_create(&options, &w->transition, err);
    w->walk.transition = w->transition;
    return code;
}

static void free_world(struct world *w)
{
    opc_transition_destroy(w->transition);
    opc_episodes_destroy(w->past);
    opc_predictor_destroy(w->model);
    opc_agent_destroy(w->agent);
    opc_rows_destroy(w->rows);
}

/* The same step again and again: no row leaves. */
static int run_step(void *ctx, struct opc_err *err)
{
    (void)err;
    const struct world *w = ctx;
    opc_walk_step(&w->walk, w->rows);
    return OPC_OK;
}

int opc_bench_rollout(struct opc_bench *b, struct opc_err *err)
{
    struct world w = {.b = b};
    const int h = b->hidden ? b->hidden : 64, in = b->obs + b->act, out = 2 * (b->obs + 1);
    int code = make_world(&w, h, err);
    const double policy = (double)b->obs * h + (double)h * h + (double)h * 2 * b->act;
    const double model = 200.0 * (in + 3 * 200 + out);
    static const char *const names[] = {"learned", "corrected"};
    for (int i = 0; !code && i < 2; i++) {
        code = make_transition(&w, names[i], err);
        if (!code)
            code = opc_transition_refresh(w.transition, b->pool, err);
        if (!code) {
            opc_walk_start(&w.walk, w.rows);
            char name[64];
            snprintf(name, sizeof name, "rollout %s", names[i]);
            const struct opc_bench_work work = {.name = name,
                                                .hidden = h,
                                                .batch = b->states,
                                                .flops = 2.0 * b->states * (policy + model),
                                                .run = run_step,
                                                .ctx = &w};
            code = opc_bench_measure(b, &work, err);
        }
    }
    free_world(&w);
    return code;
}

/* ---- a whole epoch --------------------------------------------------------------------------- */

enum { PASSES = 10, HORIZON = 10, TRANSITIONS = 1000000, UPDATES = 40000, HIDDEN = 64 };

struct epoch {
    struct world w;
    float *sa, *y;
    struct opc_rollout *rollout;
    struct opc_imagined *imagined;
    struct opc_mix mix;
    int number; /* of the epoch; the one before is forgotten */
};

static int run_fit(void *ctx, struct opc_err *err)
{
    struct epoch *e = ctx;
    const struct opc_fit_plan plan = {OPC_SIZED(struct opc_fit_plan), .seed = 1,
                                      .pool = e->w.b->pool};
    struct opc_fit_report report = {OPC_SIZED(struct opc_fit_report)};
    opc_episodes_flatten(e->w.past, e->sa, e->y);
    return opc_predictor_fit(e->w.model, STEPS, e->sa, e->y, &plan, &report, err);
}

static int run_simulate(void *ctx, struct opc_err *err)
{
    struct epoch *e = ctx;
    const struct opc_rollout_plan plan = {.transition = e->w.transition,
                                          .act = act_by_agent,
                                          .act_ctx = e->w.agent,
                                          .horizon = HORIZON,
                                          .transitions = TRANSITIONS,
                                          .seed = 1,
                                          .pool = e->w.b->pool};
    struct opc_rollout_report report;
    opc_imagined_open_epoch(e->imagined, ++e->number);
    const int code = opc_transition_refresh(e->w.transition, e->w.b->pool, err);
    return code ? code : opc_rollout_run(e->rollout, &plan, e->imagined, &report, err);
}

static int run_improve(void *ctx, struct opc_err *err)
{
    struct epoch *e = ctx;
    const struct opc_feed feed = {OPC_SIZED(struct opc_feed), .draw = opc_batch_draw,
                                  .ctx = &e->mix, .seed = 1};
    struct opc_agent_report report = {OPC_SIZED(struct opc_agent_report)};
    return opc_agent_improve(e->w.agent, &feed, UPDATES, &report, err);
}

static int run_epoch(void *ctx, struct opc_err *err)
{
    int code = run_fit(ctx, err);
    code = code ? code : run_simulate(ctx, err);
    return code ? code : run_improve(ctx, err);
}

static int make_epoch(struct epoch *e, struct opc_err *err)
{
    const struct opc_bench *b = e->w.b;
    const struct opc_imagined_shape shape = {OPC_SIZED(struct opc_imagined_shape),
                                             .obs = b->obs,
                                             .act = b->act,
                                             .longest = HORIZON,
                                             .retain = 1,
                                             .transitions = TRANSITIONS + HORIZON};
    int code = make_world(&e->w, HIDDEN, err);
    if (code)
        return code;
    e->sa = opc_alloc(STEPS, (size_t)(b->obs + b->act) * sizeof *e->sa);
    e->y = opc_alloc(STEPS, (size_t)(b->obs + 1) * sizeof *e->y);
    if (!e->sa || !e->y)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for %d recorded steps", STEPS);
    code = make_transition(&e->w, "corrected", err);
    if (!code)
        code = opc_rollout_create(b->obs, b->act, HORIZON, OPC_ROLLOUT_ROWS, &e->rollout, err);
    if (!code)
        code = opc_imagined_create(&shape, &e->imagined, err);
    e->mix = (struct opc_mix){.imagined = e->imagined};
    return code;
}

int opc_bench_epoch(struct opc_bench *b, struct opc_err *err)
{
    struct opc_bench table1 = *b;
    table1.obs = 17;
    table1.act = 6;
    table1.states = 1;
    table1.batch = 256;
    struct epoch e = {.w = {.b = &table1, .passes = PASSES}};
    int code = make_epoch(&e, err);
    if (!code) {
        const int in = 23, out = 36, hold = 5000;
        const double model = 2.0 * 200.0 * (in + 3 * 200 + out);
        const double policy = 2.0 * HIDDEN * (17 + HIDDEN + 12);
        const double fit =
            PASSES * 7.0 * ((STEPS - hold) * opc_bench_fit_flops(in, 200, 4, out) + hold * model);
        const double simulate = STEPS * 5.0 * model + TRANSITIONS * (model + policy);
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
    opc_imagined_destroy(e.imagined);
    opc_rollout_destroy(e.rollout);
    opc_free(e.sa);
    opc_free(e.y);
    free_world(&e.w);
    return code;
}
