/* SPDX-License-Identifier: MIT */
/* What a candidate of PETS would earn: its particles walk H steps through the model. pets.c asks
 * for it once in each iteration of the optimiser.
 *
 * Invariant: with TSinf no particle needs to know of another, so blocks of them walk on their own
 * and no result depends on how rows are cut into blocks. */
#include "agent/pets_private.h"
#include "base/pool.h"
#include "env/types.h"
#include "num/kernel.h"
#include "opc/env.h"
#include "opc/transition_type.h"

#include <math.h>
#include <string.h>

enum {
    CANDIDATES = 16, /* that one thread draws in one go */
    ROWS = 128,      /* particles of one member that walk together at most */
};

/* Adds what the feedback says in state s: gain[act][obs], numbers in [-1, 1] that count in units of
 * pets.feedback. The sum is clipped to the range of actions. */
void opc_pets_add_feedback(const struct pets *pets, const float *gain, const float *s,
                           float *action)
{
    const struct plan *plan = pets->plan;
    const int obs = pets->base.obs;
    for (int j = 0; j < pets->base.act; j++, gain += obs) {
        float sum = 0;
        for (int k = 0; k < obs; k++)
            sum += gain[k] * (s[k] - plan->centre[k]) * plan->inverse[k];
        action[j] = fminf(fmaxf(action[j] + (float)pets->config.feedback * sum, -1), 1);
    }
}

/* Particle p of candidate c. With TSinf the particles of one member stand together, so that its
 * weights stay in the cache while they walk; otherwise those of one candidate do. */
static int row_of(const struct pets *pets, int c, int p)
{
    return pets->config.propagation == OPC_PETS_TSINF ? p * pets->plan->n + c
                                                      : c * pets->config.particles + p;
}

static int candidate_of(const struct pets *pets, int row)
{
    return pets->config.propagation == OPC_PETS_TSINF ? row % pets->plan->n
                                                      : row / pets->config.particles;
}

/* The particle of row i, in state s, takes its candidate's action of step h. */
static void set_action(const struct pets *pets, int i, int h, const float *s)
{
    const struct plan *plan = pets->plan;
    const size_t act = (size_t)pets->base.act;
    const float *x = opc_cem_at(plan->cem, candidate_of(pets, i));
    float *action = plan->action + (size_t)i * act;
    memcpy(action, x + (size_t)h * act, act * sizeof *action);
    if (pets->config.feedback > 0)
        opc_pets_add_feedback(pets, x + (size_t)pets->config.horizon * act, s, action);
}

/* Draws candidates first .. end-1 and puts their particles into the current state. */
static void start_candidates(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct pets *pets = ctx;
    struct plan *plan = pets->plan;
    const int P = pets->config.particles;
    const size_t obs = (size_t)pets->base.obs;
    for (int c = first; c < end; c++) {
        struct opc_rng *rng = &plan->candidate[c];
        *rng = opc_rng_stream(plan->key, OPC_USE_PLAN, plan->iteration, (uint32_t)c);
        if (c < plan->fresh && pets->config.optimizer == OPC_PETS_ICEM)
            opc_cem_draw_coloured(plan->cem, c, rng);
        else if (c < plan->fresh)
            opc_cem_draw(plan->cem, c, rng);
        for (int p = 0; p < P; p++) {
            const int i = row_of(pets, c, p);
            plan->noise[i] =
                opc_rng_stream(plan->key, OPC_USE_PARTICLE, plan->iteration, (uint32_t)(c * P + p));
            memcpy(plan->state + (size_t)i * obs, plan->start, obs * sizeof *plan->start);
            plan->elite[i] = p / (P / pets->members);
            plan->total[i] = 0;
            plan->alive[i] = true;
            plan->episode[i] = plan->reference.at.episode;
            plan->time[i] = plan->reference.at.time;
            set_action(pets, i, 0, plan->start);
        }
        if (pets->config.propagation == OPC_PETS_TS1)
            opc_rng_shuffle(rng, P, plan->elite + c * P);
    }
}

/* With bound_reward no plan counts on more than was ever earned. What is not finite stays so, for
 * the candidate to be the worst. */
static float believed_reward(const struct plan *plan, float r)
{
    const float low = plan->believed[0], high = plan->believed[1];
    return !isfinite(r) ? r : r < low ? low : r > high ? high : r;
}

static bool is_finite_state(const float *s, int obs)
{
    for (int k = 0; k < obs; k++)
        if (!isfinite(s[k]))
            return false;
    return true;
}

/* Rows that walk together, and how far they are. */
struct block {
    const struct pets *pets;
    int first, rows, h;
    float *state, *next; /* of all rows of the plan */
};

/* After a step of a block, for its rows first .. end-1: adds rewards, finds the particles that have
 * ended, and prepares the next step. The step into a terminal state still counts. A particle whose
 * state is lost is worth NaN: the task's rule calls such a state terminal, and where rewards are
 * negative a candidate would win by having nothing to earn any more. */
static void finish_step(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct block *block = ctx;
    const struct pets *pets = block->pets;
    struct plan *plan = pets->plan;
    const int P = pets->config.particles, from = block->first + first, to = block->first + end;
    const size_t obs = (size_t)pets->base.obs, act = (size_t)pets->base.act, at = (size_t)from;
    memset(plan->terminal + from, 0, (size_t)(to - from) * sizeof *plan->terminal);
    if (pets->env)
        opc_env_terminal(pets->env, to - from, block->state + at * obs, plan->action + at * act,
                         block->next + at * obs, plan->terminal + from);
    for (int i = from; i < to; i++) {
        if (plan->alive[i] && is_finite_state(block->next + (size_t)i * obs, pets->base.obs))
            plan->total[i] += (double)believed_reward(plan, plan->reward[i]);
        else if (plan->alive[i])
            plan->total[i] = (double)NAN;
        plan->alive[i] = plan->alive[i] && !plan->terminal[i];
        plan->time[i]++;
    }
    if (block->h + 1 == pets->config.horizon)
        return;
    if (pets->config.propagation == OPC_PETS_TS1)
        for (int c = from / P; c < to / P; c++)
            opc_rng_shuffle(&plan->candidate[c], P, plan->elite + c * P);
    for (int i = from; i < to; i++)
        set_action(pets, i, block->h + 1, block->next + (size_t)i * obs);
}

static bool any_alive(const struct plan *plan, int first, int rows)
{
    for (int i = first; i < first + rows; i++)
        if (plan->alive[i])
            return true;
    return false;
}

/* H steps of a block's particles. */
static void walk_block(struct block *block, struct opc_pool *pool)
{
    const struct pets *pets = block->pets;
    const struct plan *plan = pets->plan;
    const size_t obs = (size_t)pets->base.obs, act = (size_t)pets->base.act,
                 at = (size_t)block->first;
    struct opc_rng deal = opc_rng_stream(plan->key, OPC_USE_PLAN, plan->iteration, UINT32_MAX);
    for (; block->h < pets->config.horizon && any_alive(plan, block->first, block->rows);
         block->h++) {
        if (pets->config.propagation == OPC_PETS_TS1_BATCH)
            opc_rng_shuffle(&deal, block->rows, plan->elite + block->first);
        struct opc_walk walk = {
            .n = block->rows,
            .episode = plan->episode + at,
            .time = plan->time + at,
            .elite = plan->elite + at,
            .state = block->state + at * obs,
            .action = plan->action + at * act,
            .next = block->next + at * obs,
            .reward = plan->reward + at,
            .rng = plan->noise + at,
            .work = plan->work + at * (obs + 1),
        };
        /* eq. 5 while there is a reference, eq. 2 from where it ends */
        const struct opc_transition *tr = pets->transition;
        if (tr->type->needs_reference && block->h >= plan->reference.at.left)
            tr = pets->learned;
        opc_transition_step(tr, &walk, pool);
        opc_pool_each(pool, block->rows, CANDIDATES * pets->config.particles, finish_step, block);
        float *s = block->next;
        block->next = block->state;
        block->state = s;
    }
}

/* How many blocks the particles of each member are cut into. */
static int blocks_of_member(const struct pets *pets)
{
    return (pets->plan->n * pets->config.particles / pets->members + ROWS - 1) / ROWS;
}

/* Block i of all, whole panels as far as possible. */
static struct block block_of(const struct pets *pets, int i)
{
    const struct plan *plan = pets->plan;
    const int rows = plan->n * pets->config.particles / pets->members, panels = opc_panels(rows),
              parts = blocks_of_member(pets), member = i / parts, part = i % parts;
    const int from = opc_cut(panels, parts, part) * OPC_PANEL,
              to = opc_cut(panels, parts, part + 1) * OPC_PANEL;
    return (struct block){.pets = pets,
                          .first = member * rows + from,
                          .rows = (to < rows ? to : rows) - from,
                          .state = plan->state,
                          .next = plan->next};
}

static void walk_blocks(void *ctx, int first, int end, int worker)
{
    (void)worker;
    for (int i = first; i < end; i++) {
        struct block block = block_of(ctx, i);
        walk_block(&block, NULL);
    }
}

/* Whether blocks can walk on their own: by TSinf no particle needs to know of another. */
static bool can_walk_apart(const struct pets *pets)
{
    const struct opc_predictor *model = pets->learned->model;
    const int callers = model->type->callers ? model->type->callers(model) : 1;
    return pets->config.propagation == OPC_PETS_TSINF && callers >= opc_pool_threads(pets->pool);
}

void opc_pets_simulate(const struct pets *pets)
{
    struct plan *plan = pets->plan;
    const int P = pets->config.particles;
    opc_pool_each(pets->pool, plan->n, CANDIDATES, start_candidates, (void *)pets);
    if (can_walk_apart(pets)) {
        opc_pool_each(pets->pool, pets->members * blocks_of_member(pets), 1, walk_blocks,
                      (void *)pets);
    } else {
        struct block all = {
            .pets = pets, .rows = plan->n * P, .state = plan->state, .next = plan->next};
        walk_block(&all, pets->pool);
    }
    for (int c = 0; c < plan->n; c++) {
        double sum = 0;
        for (int p = 0; p < P; p++)
            sum += plan->total[row_of(pets, c, p)];
        plan->cem->value[c] = sum / P; /* not finite as soon as one particle is not */
    }
}
