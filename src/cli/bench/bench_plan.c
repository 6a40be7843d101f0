/* SPDX-License-Identifier: MIT */
/* opc bench plan - the plan of one real step by PETS (agent/pets.c) at an economical setting: 200
 * candidates of 25 steps, 3 iterations, one particle for each of 5 members of four layers of 200.
 * With --published it is what the authors plan with on the half-cheetah, twenty times the
 * arithmetic. Everything that acting does is in it: drawing, simulating, sorting. The model has
 * random weights, which costs the same time. tests/speed/planning.py compares it with mbrl-lib and
 * knows the same numbers. */
#include "agent/pets.h"
#include "base/pool.h"
#include "cli/bench/bench.h"
#include "model/ensemble.h"
#include "opc/mem.h"

enum { MEMBERS = 5, LAYERS = 4, WIDTH = 200 };

/* A planner in the middle of an episode that stands still. */
struct planning {
    struct opc_predictor *model;
    struct opc_agent *agent;
    struct opc_episode_state *memory;
    float *state, *action;
};

static int run_plan(void *ctx, struct opc_err *err)
{
    (void)err;
    const struct planning *p = ctx;
    opc_agent_act_in(p->agent, p->memory, p->state, false, NULL, p->action);
    return OPC_OK;
}

static int create_planning(const struct opc_bench *b, int width, struct opc_pets_config *config,
                           struct planning *p, struct opc_err *err)
{
    struct opc_ensemble_config model;
    OPC_TRY(opc_section_defaults(&opc_ensemble_section, &model, err));
    OPC_TRY(opc_section_defaults(&opc_pets_section, config, err));
    model.members = model.elites = MEMBERS;
    model.hidden = (struct opc_ints){LAYERS, {width, width, width, width}};
    config->horizon = b->published ? 30 : 25;
    config->population = b->published ? 500 : 200;
    config->elites = config->population / 10;
    config->iterations = b->published ? 5 : 3;
    config->particles = b->published ? 4 * MEMBERS : MEMBERS;
    config->min_variance = 0; /* it never stops early */
    OPC_TRY(opc_ensemble_make(&model, b->obs, b->act, b->threads, 1, 0, &p->model, err));
    const struct opc_agent_args args = {OPC_SIZED(struct opc_agent_args),
                                        .obs = b->obs,
                                        .act = b->act,
                                        .seed = 1,
                                        .config = config,
                                        .model = p->model,
                                        .pool = b->pool};
    OPC_TRY(opc_agent_create("pets", &args, &p->agent, err));
    OPC_TRY(opc_episode_state_create(p->agent, &p->memory, err));
    const struct opc_block blocks[] = {{&p->state, (size_t)b->obs, sizeof *p->state},
                                       {&p->action, (size_t)b->act, sizeof *p->action}};
    return opc_alloc_all(blocks, 2)
               ? OPC_OK
               : opc_fail(err, OPC_ENOMEM, "not enough memory for a state and an action");
}

int opc_bench_plan(struct opc_bench *b, struct opc_err *err)
{
    struct planning p = {0};
    struct opc_pets_config config;
    const int width = b->hidden ? b->hidden : WIDTH;
    int code = create_planning(b, width, &config, &p, err);
    if (!code) {
        /* Each particle's step is one pass through a member: means and log-variances. */
        const int in = b->obs + b->act, out = 2 * (b->obs + 1),
                  rows = config.population * config.particles;
        const double member = (double)width * (in + (LAYERS - 1) * width + out);
        const struct opc_bench_work work = {.name = "plan of a real step",
                                            .hidden = width,
                                            .batch = rows,
                                            .flops = 2.0 * rows * config.horizon *
                                                     config.iterations * member,
                                            .run = run_plan,
                                            .ctx = &p};
        code = opc_bench_measure(b, &work, err);
    }
    opc_episode_state_destroy(p.memory);
    opc_agent_destroy(p.agent);
    opc_predictor_destroy(p.model);
    opc_free(p.state);
    opc_free(p.action);
    return code;
}
