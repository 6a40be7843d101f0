/* SPDX-License-Identifier: MIT */
/* Disagreement of the elites about a step. run/imagine.c updates the scale of the targets before
 * each simulation; opc/rollout.c sets the limit from first steps; opc/walk.c measures every step.
 *
 * Invariant: u of a row depends on the row, its reference and its elite alone, to the bit, wherever
 * the row is in a batch and on whichever thread; and by eq. 5 it is 0 on the reference. */
#include "opc/disagreement.h"

#include "base/pool.h"
#include "data/episodes_private.h"
#include "num/scaler.h"
#include "num/stats.h"

#include <math.h>

enum { ROWS = 512 }; /* rows that one thread does in one go */
static const double QUANTILE = 0.95;

/* ---- d_j ------------------------------------------------------------------------------------- */

/* Target j of the step that starts in this record: s'_j - s_j, as the fit has it, or the reward. */
static double target(const float *record, size_t stride, int obs, int act, int j)
{
    return (double)(j < obs ? record[stride + (size_t)j] - record[j] : record[obs + act]);
}

/* 1 / d_j^2. Mean first, so that a large mean does not drown the variance. */
static double inverse_variance(const struct opc_records *all, int obs, int act, int j)
{
    double sum = 0, squares = 0, n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const float *record = all->at + i * all->stride;
        if (opc_record_ends(record, all->stride))
            continue;
        sum += target(record, all->stride, obs, act, j);
        n++;
    }
    const double mean = n > 0 ? sum / n : 0;
    for (size_t i = 0; i < all->n; i++) {
        const float *record = all->at + i * all->stride;
        if (opc_record_ends(record, all->stride))
            continue;
        const double e = target(record, all->stride, obs, act, j) - mean;
        squares += e * e;
    }
    const double d = n > 0 ? sqrt(squares / n) : 0;
    return d < OPC_SCALER_STEADY * fmax(1, fabs(mean)) ? 1 : 1 / (d * d);
}

void opc_disagreement_update(struct opc_disagreement *d, const struct opc_episodes *past)
{
    const struct opc_records all = opc_episodes_records(past);
    if (d->records == all.n)
        return;
    d->records = all.n;
    for (int j = 0; j <= d->obs; j++)
        d->weight[j] = inverse_variance(&all, d->obs, d->act, j) / (d->obs + 1);
}

/* ---- u --------------------------------------------------------------------------------------- */

/* What all chunks of one pass share: elite (own + pass) mod E of every row has predicted. */
struct job {
    struct opc_disagreement *d;
    const struct opc_transition *tr;
    const struct opc_walk *walk;
    int pass; /* 1 .. E-1 */
};

static void choose_elites(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct job *job = ctx;
    for (int i = first; i < end; i++)
        job->d->elite[i] = (job->walk->elite[i] + job->pass) % job->tr->model->elites;
}

/* Adds x = c_k - c_own of each row to its sums. The difference to the row's own elite makes the
 * sums of squares exact enough, and where all c are 0 it is 0. */
static void add_elite(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct job *job = ctx;
    const struct opc_disagreement *d = job->d;
    const struct opc_walk *walk = job->walk;
    const size_t columns = (size_t)d->obs + 1;
    for (int i = first; i < end; i++) {
        const size_t at = (size_t)i * columns;
        const float *f = d->f + at, *own = walk->work + at, *f_ref = NULL, *own_ref = NULL;
        double *sum = d->sum + at, *squares = d->squares + at;
        if (job->tr->type->corrects) {
            f_ref = opc_transition_f_ref(job->tr, walk->episode[i], walk->time[i], d->elite[i]);
            own_ref =
                opc_transition_f_ref(job->tr, walk->episode[i], walk->time[i], walk->elite[i]);
        }
        for (size_t j = 0; j < columns; j++) {
            /* the brackets of eq. 5; by eq. 2 the s of both elites cancels */
            const double x = f_ref ? (double)(f[j] - f_ref[j]) - (double)(own[j] - own_ref[j])
                                   : (double)f[j] - (double)own[j];
            sum[j] = job->pass == 1 ? x : sum[j] + x;
            squares[j] = job->pass == 1 ? x * x : squares[j] + x * x;
        }
    }
}

/* u = mean_j Var_k(c_kj) / d_j^2, from the sums of x over all elites (the row's own adds 0). */
static void sum_up(void *ctx, int first, int end, int worker)
{
    (void)worker;
    const struct job *job = ctx;
    const struct opc_disagreement *d = job->d;
    const double elites = job->tr->model->elites;
    for (int i = first; i < end; i++) {
        const double *sum = d->sum + (size_t)i * ((size_t)d->obs + 1);
        const double *squares = d->squares + (size_t)i * ((size_t)d->obs + 1);
        double u = 0;
        for (int j = 0; j <= d->obs; j++) {
            const double mean = sum[j] / elites, variance = squares[j] / elites - mean * mean;
            /* rounding may leave it below 0; NaN stays */
            u += d->weight[j] * (variance < 0 ? 0 : variance);
        }
        d->u[i] = u;
    }
}

void opc_disagreement_measure(struct opc_disagreement *d, const struct opc_transition *tr,
                              const struct opc_walk *walk, struct opc_pool *pool)
{
    struct job job = {d, tr, walk, 1};
    /* A step of eq. 5 has left f(s, a) of the row's elite in walk->work. */
    if (!tr->type->corrects)
        opc_predictor_mean(tr->model, walk->n, walk->state, walk->action, walk->elite, walk->work,
                           pool);
    for (; job.pass < tr->model->elites; job.pass++) {
        opc_pool_each(pool, walk->n, ROWS, choose_elites, &job);
        opc_predictor_mean(tr->model, walk->n, walk->state, walk->action, d->elite, d->f, pool);
        opc_pool_each(pool, walk->n, ROWS, add_elite, &job);
    }
    opc_pool_each(pool, walk->n, ROWS, sum_up, &job);
}

/* ---- kappa ----------------------------------------------------------------------------------- */

void opc_disagreement_set_limit(struct opc_disagreement *d, int n)
{
    const double kappa = d->factor * opc_quantile(n, d->first, QUANTILE);
    d->now.count++;
    d->now.mean += (kappa - d->now.mean) / (double)d->now.count;
    d->limit = d->now.mean;
}

/* ---- memory ---------------------------------------------------------------------------------- */

size_t opc_disagreement_need(int obs, int capacity)
{
    const size_t columns = (size_t)obs + 1;
    const size_t row =
        columns * (sizeof(float) + 2 * sizeof(double)) + sizeof(double) + sizeof(int);
    return (size_t)capacity * row + (columns + OPC_DISAGREEMENT_SAMPLE) * sizeof(double);
}

int opc_disagreement_create(int obs, int act, int capacity, double factor,
                            struct opc_disagreement **out, struct opc_err *err)
{
    struct opc_disagreement *d = opc_alloc(1, sizeof *d);
    const size_t n = (size_t)capacity, columns = (size_t)obs + 1;
    if (!d || !opc_alloc_all(
                  (const struct opc_block[]){{&d->weight, columns, sizeof *d->weight},
                                             {&d->u, n, sizeof *d->u},
                                             {&d->first, OPC_DISAGREEMENT_SAMPLE, sizeof *d->first},
                                             {&d->elite, n, sizeof *d->elite},
                                             {&d->f, n, columns * sizeof *d->f},
                                             {&d->sum, n, columns * sizeof *d->sum},
                                             {&d->squares, n, columns * sizeof *d->squares}},
                  7)) {
        opc_free(d);
        return opc_fail(err, OPC_ENOMEM,
                        "not enough memory to compare the elites on %d rollouts at a time",
                        capacity);
    }
    d->obs = obs;
    d->act = act;
    d->capacity = capacity;
    d->factor = factor;
    d->limit = INFINITY;
    *out = d;
    return OPC_OK;
}

void opc_disagreement_destroy(struct opc_disagreement *d)
{
    if (!d)
        return;
    opc_free(d->weight);
    opc_free(d->u);
    opc_free(d->first);
    opc_free(d->elite);
    opc_free(d->f);
    opc_free(d->sum);
    opc_free(d->squares);
    opc_free(d);
}
