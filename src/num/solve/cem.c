/* SPDX-License-Identifier: MIT */
/* The cross-entropy method (num/solve/cem.h). agent/pets.c plans with it, and evaluates the
 * candidates.
 *
 * Mean, variance and values are doubles; candidates are floats, as networks take them. Candidate i
 * depends on mean, variance and its stream alone, so any number of threads draws the same. */
#include "num/solve/cem.h"

#include "num/normal.h"
#include "opc/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TRUNCATION = 2 }; /* deviations at which the truncated normal ends */

/* ---- life ------------------------------------------------------------------------------------ */

void opc_cem_destroy(struct opc_cem *cem)
{
    if (!cem)
        return;
    opc_free(cem->mean);
    opc_free(cem->variance);
    opc_free(cem->candidate);
    opc_free(cem->value);
    opc_free(cem->keep);
    opc_free(cem->rank);
    opc_free(cem->basis);
    opc_free(cem);
}

/* What it allocates. */
enum { BLOCKS = 7 };
static void list_blocks(const struct opc_cem_options *o, struct opc_cem *cem,
                        struct opc_block blocks[BLOCKS])
{
    const size_t steps = (size_t)o->steps, dims = steps * (size_t)o->each + (size_t)o->extra,
                 capacity = (size_t)o->capacity;
    const struct opc_block all[BLOCKS] = {
        {&cem->mean, dims, sizeof *cem->mean},
        {&cem->variance, dims, sizeof *cem->variance},
        {&cem->candidate, capacity, dims * sizeof *cem->candidate},
        {&cem->value, capacity, sizeof *cem->value},
        {&cem->keep, (size_t)o->kept, dims * sizeof *cem->keep},
        {&cem->rank, capacity, sizeof *cem->rank},
        {&cem->basis, o->coloured ? steps : 0, steps * sizeof *cem->basis},
    };
    memcpy(blocks, all, sizeof all);
}

size_t opc_cem_bytes(const struct opc_cem_options *o)
{
    struct opc_cem none;
    struct opc_block blocks[BLOCKS];
    list_blocks(o, &none, blocks);
    return opc_alloc_need(1, sizeof none) + opc_blocks_need(blocks, BLOCKS);
}

/* Coloured noise is a sum of waves with random amplitudes: wave 0 is constant, 2k - 1 and 2k are
 * cosine and sine of k periods, weighted by k^(-exponent / 2). The constant has the weight of the
 * slowest wave. basis[t][w] includes the weights, divided so that the noise has variance 1. */
static void make_basis(struct opc_cem *cem)
{
    const int n = cem->o.steps;
    const double turn = 2 * 3.14159265358979323846 / n;
    for (int t = 0; t < n; t++) {
        double squares = 0;
        for (int w = 0; w < n; w++) {
            const int k = (w + 1) / 2;
            const double weight = k > 0 ? pow(k, -cem->o.exponent / 2) : 1;
            const double wave = k == 0 ? 1 : w % 2 ? cos(turn * k * t) : sin(turn * k * t);
            cem->basis[(size_t)t * (size_t)n + (size_t)w] = (float)(weight * wave);
            squares += weight * weight * wave * wave;
        }
        for (int w = 0; w < n; w++)
            cem->basis[(size_t)t * (size_t)n + (size_t)w] /= (float)sqrt(squares);
    }
}

int opc_cem_create(const struct opc_cem_options *o, struct opc_cem **out, struct opc_err *err)
{
    const int dims = o->steps * o->each + o->extra;
    struct opc_cem *cem = opc_alloc(1, sizeof *cem);
    if (cem) {
        struct opc_block blocks[BLOCKS];
        *cem = (struct opc_cem){.o = *o, .dims = dims};
        list_blocks(o, cem, blocks);
        if (opc_alloc_all(blocks, BLOCKS)) {
            if (o->coloured)
                make_basis(cem);
            *out = cem;
            return OPC_OK;
        }
    }
    opc_cem_destroy(cem);
    return opc_fail(err, OPC_ENOMEM, "not enough memory for %d candidates of %d numbers",
                    o->capacity, dims);
}

/* ---- one iteration --------------------------------------------------------------------------- */

void opc_cem_begin(struct opc_cem *cem, const double *mean)
{
    const double range = cem->o.high - cem->o.low, quarter = range / 4;
    const double deviation = range * cem->o.deviation;
    const int end = cem->dims - cem->o.extra;
    memcpy(cem->mean, mean, (size_t)cem->dims * sizeof *mean);
    for (int k = 0; k < cem->dims; k++)
        cem->variance[k] = k < end ? deviation * deviation : quarter * quarter;
}

bool opc_cem_converged(const struct opc_cem *cem)
{
    if (cem->o.min_variance == 0)
        return false;
    for (int k = 0; k < cem->dims; k++)
        if (cem->variance[k] > cem->o.min_variance)
            return false;
    return true;
}

double opc_cem_capped(double mean, double variance, double low, double high)
{
    const double below = (mean - low) / TRUNCATION, above = (high - mean) / TRUNCATION;
    return fmin(variance, fmin(below * below, above * above));
}

void opc_cem_truncated(struct opc_rng *rng, int n, float *z)
{
    opc_rng_normals(rng, n, z);
    for (int k = 0; k < n; k++)
        while (!(fabsf(z[k]) <= (float)TRUNCATION)) {
            float pair[2];
            opc_rng_normals(rng, 2, pair); /* of a pair that is drawn again both have a chance */
            z[k] = fabsf(pair[0]) <= (float)TRUNCATION ? pair[0] : pair[1];
        }
}

/* Truncation and cap together keep a sequence inside the box. Clipping instead would put many of
 * its numbers on the walls. But a mean on a wall has a deviation of 0 then and stays there: extra
 * numbers, which a caller may go on from again and again, are clipped. */
void opc_cem_draw(struct opc_cem *cem, int i, struct opc_rng *rng)
{
    float *x = opc_cem_at(cem, i);
    opc_cem_truncated(rng, cem->dims, x);
    const int end = cem->dims - cem->o.extra;
    for (int k = 0; k < end; k++) {
        const double v = opc_cem_capped(cem->mean[k], cem->variance[k], cem->o.low, cem->o.high);
        x[k] = (float)(cem->mean[k] + sqrt(v) * (double)x[k]);
    }
    for (int k = end; k < cem->dims; k++) {
        const double drawn = cem->mean[k] + sqrt(cem->variance[k]) * (double)x[k];
        x[k] = (float)fmin(fmax(drawn, cem->o.low), cem->o.high);
    }
}

void opc_cem_draw_coloured(struct opc_cem *cem, int i, struct opc_rng *rng)
{
    const int steps = cem->o.steps, each = cem->o.each;
    float *x = opc_cem_at(cem, i), amplitude[2];
    memset(x, 0, (size_t)cem->dims * sizeof *x);
    /* Number k of all groups is one sequence of coloured noise; wave by wave. */
    for (int k = 0; k < each; k++)
        for (int w = 0; w < steps; w++) {
            if (w % 2 == 0)
                opc_rng_normals(rng, 2, amplitude);
            for (int t = 0; t < steps; t++)
                x[t * each + k] += amplitude[w % 2] * cem->basis[t * steps + w];
        }
    opc_rng_normals(rng, cem->o.extra, x + steps * each);
    for (int k = 0; k < cem->dims; k++) {
        const double drawn = cem->mean[k] + sqrt(cem->variance[k]) * (double)x[k];
        x[k] = (float)fmin(fmax(drawn, cem->o.low), cem->o.high);
    }
}

/* For qsort: the best first, and of equals the first. */
static int by_value(const void *a, const void *b)
{
    const struct opc_cem_rank *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

int opc_cem_update(struct opc_cem *cem, int n)
{
    const int elites = cem->o.elites;
    const double alpha = cem->o.alpha;
    int bad = 0;
    for (int i = 0; i < n; i++) {
        const bool finite = isfinite(cem->value[i]);
        cem->rank[i] = (struct opc_cem_rank){finite ? cem->value[i] : -INFINITY, i};
        bad += !finite;
    }
    qsort(cem->rank, (size_t)n, sizeof *cem->rank, by_value);
    cem->elite_mean = 0;
    for (int i = 0; i < elites; i++)
        cem->elite_mean += cem->rank[i].value;
    cem->elite_mean /= elites;
    /* New mean and variance, number by number. */
    for (int k = 0; k < cem->dims; k++) {
        double mean = 0, squares = 0;
        for (int i = 0; i < elites; i++)
            mean += (double)opc_cem_at(cem, cem->rank[i].index)[k] / elites;
        for (int i = 0; i < elites; i++) {
            const double gap = (double)opc_cem_at(cem, cem->rank[i].index)[k] - mean;
            squares += gap * gap;
        }
        const double variance =
            squares / (cem->o.sample_variance && elites > 1 ? elites - 1 : elites);
        cem->mean[k] = alpha * cem->mean[k] + (1 - alpha) * mean;
        cem->variance[k] = alpha * cem->variance[k] + (1 - alpha) * variance;
    }
    for (int i = 0; i < cem->o.kept; i++)
        memcpy(cem->keep + (size_t)i * (size_t)cem->dims, opc_cem_at(cem, cem->rank[i].index),
               (size_t)cem->dims * sizeof *cem->keep);
    return bad;
}
