/* SPDX-License-Identifier: MIT */
/* Rollouts kept whole, for run/real/onpolicy.c, study/probe and study/ilc. opc/walk.c advances them
 * and drops rows that ended; here each rollout keeps its place, and rows->start says which one a
 * row is. Nothing is drawn here, so the results are those of opc/walk.c alone. */
#include "opc/branches.h"

#include "opc/mem.h"

#include <math.h>
#include <string.h>

int opc_branches_make(int n, int horizon, int obs, int act, struct opc_branches *out,
                      struct opc_err *err)
{
    const size_t rows = (size_t)n, steps = rows * (size_t)horizon;
    struct opc_branches made = {.n = n, .horizon = horizon, .obs = obs, .act = act};
    made.episode = opc_alloc(rows, sizeof *made.episode);
    made.time = opc_alloc(rows, sizeof *made.time);
    made.rng = opc_alloc(rows, sizeof *made.rng);
    made.noise = opc_alloc(rows, sizeof *made.noise);
    made.state = opc_alloc(steps + rows, (size_t)obs * sizeof *made.state);
    made.action = opc_alloc(steps, (size_t)act * sizeof *made.action);
    made.reward = opc_alloc(steps, sizeof *made.reward);
    made.length = opc_alloc(rows, sizeof *made.length);
    made.end = opc_alloc(rows, sizeof *made.end);
    if (!made.episode || !made.time || !made.rng || !made.noise || !made.state || !made.action ||
        !made.reward || !made.length || !made.end) {
        opc_branches_free(&made);
        return opc_fail(err, OPC_ENOMEM, "out of memory for %d rollouts of %d steps; ask for fewer",
                        n, horizon);
    }
    *out = made;
    return OPC_OK;
}

void opc_branches_free(struct opc_branches *branches)
{
    opc_free(branches->episode);
    opc_free(branches->time);
    opc_free(branches->rng);
    opc_free(branches->noise);
    opc_free(branches->state);
    opc_free(branches->action);
    opc_free(branches->reward);
    opc_free(branches->length);
    opc_free(branches->end);
    *branches = (struct opc_branches){0};
}

/* ---- following ------------------------------------------------------------------------------- */

/* State h of rollout i: there are horizon + 1 of them. */
static float *state_at(const struct opc_branches *branches, int i, int h)
{
    return branches->state +
           ((size_t)i * ((size_t)branches->horizon + 1) + (size_t)h) * (size_t)branches->obs;
}

/* The walk advances the streams, so it gets copies: the caller's stay as they were. */
static void start_branches(struct opc_branches *branches, const struct opc_walk_plan *plan,
                           struct opc_rows *rows)
{
    const size_t n = (size_t)branches->n, obs = (size_t)branches->obs;
    rows->n = branches->n;
    memcpy(rows->episode, branches->episode, n * sizeof *branches->episode);
    memcpy(rows->time, branches->time, n * sizeof *branches->time);
    memcpy(rows->rng, branches->rng, n * sizeof *branches->rng);
    memcpy(rows->noise, branches->noise, n * sizeof *branches->noise);
    opc_walk_start(plan, rows);
    for (int i = 0; i < branches->n; i++) {
        memcpy(state_at(branches, i, 0), rows->state + (size_t)i * obs, obs * sizeof(float));
        branches->length[i] = 0;
    }
}

/* Keeps the step each row has just taken; a refused step is not kept. */
static void keep_steps(struct opc_branches *branches, const struct opc_rows *rows)
{
    const size_t obs = (size_t)branches->obs, act = (size_t)branches->act;
    for (int i = 0; i < rows->n; i++) {
        const int branch = rows->start[i];
        const size_t step = (size_t)branch * (size_t)branches->horizon + (size_t)rows->h;
        branches->end[branch] = rows->end[i];
        if (!opc_end_keeps_step(rows->end[i]))
            continue;
        memcpy(branches->action + step * act, rows->action + (size_t)i * act, act * sizeof(float));
        branches->reward[step] = rows->reward[i];
        memcpy(state_at(branches, branch, rows->h + 1), rows->next + (size_t)i * obs,
               obs * sizeof(float));
        branches->length[branch] = rows->h + 1;
    }
}

int opc_branches_follow(struct opc_branches *branches, const struct opc_walk_plan *plan,
                        struct opc_err *err)
{
    struct opc_rows *rows;
    if (plan->horizon < 1 || plan->horizon > branches->horizon)
        return opc_fail(err, OPC_EBUG, "rollouts of %d steps were prepared, not of %d",
                        branches->horizon, plan->horizon);
    const int code = opc_rows_create(branches->obs, branches->act, branches->n, true, &rows, err);
    if (code)
        return code;
    branches->rows = rows;
    for (start_branches(branches, plan, rows); rows->n > 0; opc_walk_drop_ended(rows)) {
        opc_walk_step(plan, rows);
        keep_steps(branches, rows);
    }
    branches->rows = NULL;
    opc_rows_destroy(rows);
    return OPC_OK;
}

/* ---- looking --------------------------------------------------------------------------------- */

double opc_branches_at(const struct opc_branches *branches, int i, int h, int k)
{
    return h <= branches->length[i] ? (double)state_at(branches, i, h)[k] : (double)NAN;
}

void opc_branches_returns(const struct opc_branches *branches, double *returns)
{
    for (int i = 0; i < branches->n; i++) {
        returns[i] = 0;
        for (int h = 0; h < branches->length[i]; h++)
            returns[i] +=
                (double)branches->reward[(size_t)i * (size_t)branches->horizon + (size_t)h];
    }
}

int opc_branches_ended(const struct opc_branches *branches, enum opc_end end)
{
    int count = 0;
    for (int i = 0; i < branches->n; i++)
        count += branches->end[i] == end;
    return count;
}
