/* SPDX-License-Identifier: MIT */
/* The inner loop of Algorithm 2: one step of many rollouts at once, so that policy and model see
 * many states at a time. opc/rollout.c, opc/branches.c and `opc bench rollout` call it. Work that
 * is separate for each row is cut into chunks for the threads; a chunk writes its own rows and
 * nothing else. A change must keep the order in which a row draws from its streams (opc/walk.h). */
#include "opc/walk.h"

#include "base/pool.h"

#include <string.h>

/* What all chunks of one call share. */
struct job {
    const struct opc_walk_plan *plan;
    struct opc_rows *rows;
};

/* The elite that predicts, uniformly. A replay may have no model, and then nothing is drawn. */
static int draw_elite(const struct opc_transition *tr, struct opc_rng *rng)
{
    return tr->model ? (int)opc_rng_below(rng, (uint32_t)tr->model->elites) : 0;
}

/* ---- start ----------------------------------------------------------------------------------- */

/* Puts each row in the state of its reference. */
static void start_rows(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct job *job = ctx;
    const struct opc_transition *tr = job->plan->transition;
    struct opc_rows *rows = job->rows;
    const size_t obs = (size_t)rows->obs;
    for (int i = first; i < end; i++) {
        rows->start[i] = i;
        rows->elite[i] = job->plan->only_elite > 0      ? job->plan->only_elite - 1
                         : job->plan->elite_per_rollout ? draw_elite(tr, &rows->rng[i])
                                                        : 0;
        const struct opc_step ref = opc_episodes_at(tr->past, rows->episode[i], rows->time[i]);
        memcpy(rows->state + (size_t)i * obs, ref.state, obs * sizeof(float));
    }
}

void opc_walk_start(const struct opc_walk_plan *plan, struct opc_rows *rows)
{
    rows->h = 0;
    opc_pool_each(plan->pool, rows->n, OPC_WALK_CHUNK, start_rows, &(struct job){plan, rows});
}

/* ---- one step -------------------------------------------------------------------------------- */

static void draw_elites(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct job *job = ctx;
    for (int i = first; i < end; i++)
        job->rows->elite[i] = draw_elite(job->plan->transition, &job->rows->rng[i]);
}

/* Calls a function of the plan for rows first .. end-1; without one the answer is false. */
static void ask_about_rows(const struct opc_rows *rows, opc_terminal_fn *fn, void *ctx, int first,
                           int end, bool *out)
{
    const size_t obs = (size_t)rows->obs, act = (size_t)rows->act, at = (size_t)first;
    memset(out + first, 0, (size_t)(end - first) * sizeof *out);
    if (fn)
        fn(ctx, end - first, rows->state + at * obs, rows->action + at * act, rows->next + at * obs,
           out + first);
}

bool opc_rows_finite(const struct opc_rows *rows, int row)
{
    const float *next = rows->next + (size_t)row * (size_t)rows->obs;
    float zero = rows->reward[row] * 0.0f; /* anything but finite times 0 is NaN */
    for (int k = 0; k < rows->obs; k++)
        zero += next[k] * 0.0f;
    return zero == 0;
}

bool opc_rows_reference_ends(const struct opc_rows *rows, int row, const struct opc_episodes *past)
{
    return rows->time[row] + 1 == opc_episodes_length(past, rows->episode[row]);
}

bool opc_rows_reference_terminal(const struct opc_rows *rows, int row,
                                 const struct opc_episodes *past)
{
    return opc_rows_reference_ends(rows, row, past) &&
           opc_episodes_at(past, rows->episode[row], rows->time[row]).terminal;
}

/* True if s' is further from s_ref' than the drift limit. A row of eq. 2 that outlived its
 * recording has no s_ref'. */
static bool has_drifted(const struct opc_walk_plan *plan, const struct opc_rows *rows, int i)
{
    const struct opc_episodes *past = plan->transition->past;
    const struct opc_drift *drift = plan->limits.drift;
    if (!drift || rows->time[i] >= opc_episodes_length(past, rows->episode[i]))
        return false;
    const struct opc_step ref = opc_episodes_at(past, rows->episode[i], rows->time[i]);
    return opc_drift_between(drift, rows->next + (size_t)i * (size_t)rows->obs, ref.next) >
           drift->limit;
}

/* Decides whether a row ends with this step, and why; no other function does. The order of the
 * tests is that of enum opc_end. */
static enum opc_end why_row_ends(const struct opc_walk_plan *plan, const struct opc_rows *rows,
                                 int i)
{
    const struct opc_transition *tr = plan->transition;
    const struct opc_limits *limits = &plan->limits;
    const struct opc_disagreement *d = limits->disagreement;
    /* the step is not to be used */
    if (rows->refused[i] || (plan->refuse_not_finite && !opc_rows_finite(rows, i)))
        return OPC_END_REFUSED;
    if (limits->bounds &&
        !opc_bounds_contain(limits->bounds, rows->next + (size_t)i * (size_t)rows->obs))
        return OPC_END_BOUND;
    if (has_drifted(plan, rows, i))
        return OPC_END_DRIFT;
    if (d && !(d->u[i] <= d->limit)) /* an elite that predicts NaN does not agree */
        return OPC_END_DISAGREEMENT;
    if (limits->drop && tr->type->needs_reference && !rows->terminal[i] &&
        opc_rows_reference_terminal(rows, i, tr->past))
        return OPC_END_DROPPED;
    /* it is the last one */
    if (rows->terminal[i])
        return OPC_END_TERMINAL;
    if (rows->h + 1 == plan->horizon)
        return OPC_END_HORIZON;
    if ((tr->type->needs_reference || plan->end_with_reference) &&
        opc_rows_reference_ends(rows, i, tr->past))
        return OPC_END_REFERENCE;
    return OPC_END_NONE;
}

static void find_ended(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct job *job = ctx;
    const struct opc_walk_plan *plan = job->plan;
    struct opc_rows *rows = job->rows;
    ask_about_rows(rows, plan->terminal, plan->terminal_ctx, first, end, rows->terminal);
    ask_about_rows(rows, plan->refuse, plan->refuse_ctx, first, end, rows->refused);
    for (int i = first; i < end; i++)
        rows->end[i] = why_row_ends(plan, rows, i);
}

void opc_walk_step(const struct opc_walk_plan *plan, struct opc_rows *rows)
{
    const struct opc_transition *tr = plan->transition;
    struct job job = {plan, rows};
    /* f is the mean of one elite, drawn for each step unless the rollout keeps its own or the plan
     * names one. */
    if (!plan->elite_per_rollout && plan->only_elite == 0)
        opc_pool_each(plan->pool, rows->n, OPC_WALK_CHUNK, draw_elites, &job);
    /* a ~ pi(. | s); a replay takes the recorded action instead. */
    if (!tr->type->replays)
        plan->act(plan->act_ctx, rows->n, rows->state, rows->rng, rows->action);
    /* s' by eq. 5 (or 2, or 3). */
    struct opc_walk walk = {
        .n = rows->n,
        .episode = rows->episode,
        .time = rows->time,
        .elite = rows->elite,
        .state = rows->state,
        .action = rows->action,
        .next = rows->next,
        .reward = rows->reward,
        .rng = rows->noise ? rows->noise : rows->rng,
        .work = rows->work,
    };
    opc_transition_step(tr, &walk, plan->pool);
    if (plan->limits.disagreement)
        opc_disagreement_measure(plan->limits.disagreement, tr, &walk, plan->pool);
    opc_pool_each(plan->pool, rows->n, OPC_WALK_CHUNK, find_ended, &job);
}

/* ---- the next step --------------------------------------------------------------------------- */

void opc_walk_drop_ended(struct opc_rows *rows)
{
    /* s = s' for all rows, by exchanging the arrays. */
    float *s = rows->next;
    rows->next = rows->state;
    rows->state = s;
    rows->h++;
    /* Rows that go on close the gaps, in their order, and their reference moves on by one step. */
    const size_t obs = (size_t)rows->obs;
    int kept = 0;
    for (int i = 0; i < rows->n; i++) {
        if (rows->end[i] != OPC_END_NONE)
            continue;
        rows->time[kept] = rows->time[i] + 1;
        if (kept < i) {
            rows->start[kept] = rows->start[i];
            rows->episode[kept] = rows->episode[i];
            rows->elite[kept] = rows->elite[i];
            rows->rng[kept] = rows->rng[i];
            if (rows->noise)
                rows->noise[kept] = rows->noise[i];
            memcpy(s + (size_t)kept * obs, s + (size_t)i * obs, obs * sizeof(float));
        }
        kept++;
    }
    rows->n = kept;
}

/* ---- memory ---------------------------------------------------------------------------------- */

size_t opc_rows_need(int obs, int act, int capacity)
{
    const size_t floats = 3 * (size_t)obs + (size_t)act + 2;
    const size_t each = floats * sizeof(float) + 4 * sizeof(int) + sizeof(enum opc_end) +
                        sizeof(struct opc_rng) + 2 * sizeof(bool);
    return (size_t)capacity * each;
}

int opc_rows_create(int obs, int act, int capacity, bool own_noise, struct opc_rows **out,
                    struct opc_err *err)
{
    const size_t n = (size_t)capacity;
    struct opc_rows *rows = opc_alloc(1, sizeof *rows);
    if (!rows)
        goto full;
    *rows = (struct opc_rows){.obs = obs, .act = act, .capacity = capacity};
    rows->start = opc_alloc(n, sizeof *rows->start);
    rows->episode = opc_alloc(n, sizeof *rows->episode);
    rows->time = opc_alloc(n, sizeof *rows->time);
    rows->elite = opc_alloc(n, sizeof *rows->elite);
    rows->rng = opc_alloc(n, sizeof *rows->rng);
    rows->state = opc_alloc(n, (size_t)obs * sizeof *rows->state);
    rows->action = opc_alloc(n, (size_t)act * sizeof *rows->action);
    rows->next = opc_alloc(n, (size_t)obs * sizeof *rows->next);
    rows->reward = opc_alloc(n, sizeof *rows->reward);
    rows->end = opc_alloc(n, sizeof *rows->end);
    rows->work = opc_alloc(n, ((size_t)obs + 1) * sizeof *rows->work);
    rows->terminal = opc_alloc(n, sizeof *rows->terminal);
    rows->refused = opc_alloc(n, sizeof *rows->refused);
    if (own_noise)
        rows->noise = opc_alloc(n, sizeof *rows->noise);
    if (!rows->start || !rows->episode || !rows->time || !rows->elite || !rows->rng ||
        !rows->state || !rows->action || !rows->next || !rows->reward || !rows->end ||
        !rows->work || !rows->terminal || !rows->refused || (own_noise && !rows->noise))
        goto full;
    *out = rows;
    return OPC_OK;
full:
    opc_rows_destroy(rows);
    return opc_fail(err, OPC_ENOMEM, "out of memory for %d rollouts that advance together",
                    capacity);
}

void opc_rows_destroy(struct opc_rows *rows)
{
    if (!rows)
        return;
    opc_free(rows->start);
    opc_free(rows->episode);
    opc_free(rows->time);
    opc_free(rows->elite);
    opc_free(rows->rng);
    opc_free(rows->noise);
    opc_free(rows->state);
    opc_free(rows->action);
    opc_free(rows->next);
    opc_free(rows->reward);
    opc_free(rows->end);
    opc_free(rows->work);
    opc_free(rows->terminal);
    opc_free(rows->refused);
    opc_free(rows);
}
