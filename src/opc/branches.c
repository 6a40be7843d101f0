/* SPDX-License-Identifier: MIT */
/* Rollouts are followed by opc/walk.c, where rows that ended leave; here each has its place for
 * good, so rows->start tells where a row's step is kept. */
#include "opc/branches.h"

#include "opc/mem.h"

#include <math.h>
#include <string.h>

int opc_branches_make(int n, int horizon, int obs, int act, struct opc_branches *out,
                      struct opc_err *err)
{
    const size_t rows = (size_t)n, steps = rows * (size_t)horizon;
    struct opc_branches b = {.n = n, .horizon = horizon, .obs = obs, .act = act};
    b.episode = opc_alloc(rows, sizeof *b.episode);
    b.time = opc_alloc(rows, sizeof *b.time);
    b.rng = opc_alloc(rows, sizeof *b.rng);
    b.noise = opc_alloc(rows, sizeof *b.noise);
    b.state = opc_alloc(steps + rows, (size_t)obs * sizeof *b.state);
    b.action = opc_alloc(steps, (size_t)act * sizeof *b.action);
    b.reward = opc_alloc(steps, sizeof *b.reward);
    b.length = opc_alloc(rows, sizeof *b.length);
    b.end = opc_alloc(rows, sizeof *b.end);
    if (!b.episode || !b.time || !b.rng || !b.noise || !b.state || !b.action || !b.reward ||
        !b.length || !b.end) {
        opc_branches_free(&b);
        return opc_fail(err, OPC_ENOMEM, "out of memory for %d rollouts of %d steps; ask for fewer",
                        n, horizon);
    }
    *out = b;
    return OPC_OK;
}

void opc_branches_free(struct opc_branches *b)
{
    opc_free(b->episode);
    opc_free(b->time);
    opc_free(b->rng);
    opc_free(b->noise);
    opc_free(b->state);
    opc_free(b->action);
    opc_free(b->reward);
    opc_free(b->length);
    opc_free(b->end);
    *b = (struct opc_branches){0};
}

/* ---- following ------------------------------------------------------------------------------- */

static float *state_at(const struct opc_branches *b, int i, int h)
{
    return b->state + ((size_t)i * ((size_t)b->horizon + 1) + (size_t)h) * (size_t)b->obs;
}

static void start_branches(struct opc_branches *b, const struct opc_walk_plan *plan,
                           struct opc_rows *rows)
{
    const size_t n = (size_t)b->n, obs = (size_t)b->obs;
    rows->n = b->n;
    memcpy(rows->episode, b->episode, n * sizeof *b->episode);
    memcpy(rows->time, b->time, n * sizeof *b->time);
    memcpy(rows->rng, b->rng, n * sizeof *b->rng);
    memcpy(rows->noise, b->noise, n * sizeof *b->noise);
    opc_walk_start(plan, rows);
    for (int i = 0; i < b->n; i++) {
        memcpy(state_at(b, i, 0), rows->state + (size_t)i * obs, obs * sizeof(float));
        b->length[i] = 0;
    }
}

static void keep_steps(struct opc_branches *b, const struct opc_rows *rows)
{
    const size_t obs = (size_t)b->obs, act = (size_t)b->act;
    for (int i = 0; i < rows->n; i++) {
        const int branch = rows->start[i];
        const size_t step = (size_t)branch * (size_t)b->horizon + (size_t)rows->h;
        b->end[branch] = rows->end[i];
        if (rows->end[i] == OPC_END_REFUSED)
            continue;
        memcpy(b->action + step * act, rows->action + (size_t)i * act, act * sizeof(float));
        b->reward[step] = rows->reward[i];
        memcpy(state_at(b, branch, rows->h + 1), rows->next + (size_t)i * obs, obs * sizeof(float));
        b->length[branch] = rows->h + 1;
    }
}

int opc_branches_follow(struct opc_branches *b, const struct opc_walk_plan *plan,
                        struct opc_err *err)
{
    struct opc_rows *rows;
    if (plan->horizon < 1 || plan->horizon > b->horizon)
        return opc_fail(err, OPC_EBUG, "rollouts of %d steps were prepared, not of %d", b->horizon,
                        plan->horizon);
    const int code = opc_rows_create(b->obs, b->act, b->n, true, &rows, err);
    if (code)
        return code;
    b->rows = rows;
    for (start_branches(b, plan, rows); rows->n > 0; opc_walk_drop_ended(rows)) {
        opc_walk_step(plan, rows);
        keep_steps(b, rows);
    }
    b->rows = NULL;
    opc_rows_destroy(rows);
    return OPC_OK;
}

/* ---- looking --------------------------------------------------------------------------------- */

double opc_branches_at(const struct opc_branches *b, int i, int h, int k)
{
    return h <= b->length[i] ? (double)state_at(b, i, h)[k] : (double)NAN;
}

void opc_branches_returns(const struct opc_branches *b, double *returns)
{
    for (int i = 0; i < b->n; i++) {
        returns[i] = 0;
        for (int h = 0; h < b->length[i]; h++)
            returns[i] += (double)b->reward[(size_t)i * (size_t)b->horizon + (size_t)h];
    }
}

int opc_branches_ended(const struct opc_branches *b, enum opc_end end)
{
    int count = 0;
    for (int i = 0; i < b->n; i++)
        count += b->end[i] == end;
    return count;
}
