/* SPDX-License-Identifier: MIT */
/* num/solve/cem.h - the cross-entropy method: maximises a function of many numbers in a box by
 * drawing candidates from a Gaussian and moving it towards the best of them.
 *
 *     opc_cem_begin(cem, start);
 *     for (t = 0; t < iterations && !opc_cem_converged(cem); t++) {
 *         for (i = 0; i < n; i++)
 *             opc_cem_draw(cem, i, &rng[i]), cem->value[i] = ... of opc_cem_at(cem, i);
 *         opc_cem_update(cem, n);
 *     }
 *     ... cem->mean ...
 *
 * The original (Chua et al. 2018) draws from a truncated normal whose deviation is capped, so that
 * no candidate leaves the box. The improved one (iCEM, Pinneri et al. 2020) draws noise that is
 * correlated along a sequence, clips it to the box, and keeps some of the best candidates. */
#ifndef OPC_NUM_CEM_H
#define OPC_NUM_CEM_H

#include "opc/err.h"
#include "opc/rng.h"

#include <stdbool.h>
#include <stddef.h>

struct opc_cem_options {
    int steps, each;      /* a candidate is a sequence of `steps` groups of `each` numbers */
    int extra;            /* numbers after the sequence; noise is never correlated along them */
    int capacity;         /* candidates of one iteration, at most */
    int elites;           /* at least 1 */
    int kept;             /* elites that opc_cem_update keeps a copy of */
    double low, high;     /* the box, the same for all numbers */
    double deviation;     /* a sequence is first drawn with, as a share of high - low */
    double alpha;         /* share of the old mean and variance in an update */
    double min_variance;  /* converged where no number has a larger variance; 0: never */
    bool sample_variance; /* of the elites: divided by n - 1 and not by n */
    bool coloured;        /* opc_cem_draw_coloured is to be used; takes memory for `steps` waves */
    double exponent;      /* of its noise: the power spectrum is 1 / f^exponent */
};

struct opc_cem {
    struct opc_cem_options o;
    int dims;          /* steps * each + extra */
    double *mean;      /* [dims] */
    double *variance;  /* [dims] */
    float *candidate;  /* [capacity][dims] */
    double *value;     /* [capacity] of the candidates, set by the caller */
    float *keep;       /* [kept][dims] the best of the last update first */
    double elite_mean; /* mean value of the elites in the last update; -inf: not all are finite */
    struct opc_cem_rank {
        double value;
        int index;
    } * rank;     /* [capacity] scratch of an update */
    float *basis; /* [steps][steps] the waves of coloured noise, each with its weight; or empty */
};

int opc_cem_create(const struct opc_cem_options *, struct opc_cem **out, struct opc_err *err);
void opc_cem_destroy(struct opc_cem *);               /* NULL is fine */
size_t opc_cem_bytes(const struct opc_cem_options *); /* what create will take */
static inline float *opc_cem_at(const struct opc_cem *cem, int i)
{
    return cem->candidate + (size_t)i * (size_t)cem->dims;
}

/* Starts at this mean, with the deviation of the options; extra numbers with a quarter of the box.
 */
void opc_cem_begin(struct opc_cem *, const double *mean);
bool opc_cem_converged(const struct opc_cem *);
/* The variance that candidates are drawn with: two deviations stay inside the box. */
double opc_cem_capped(double mean, double variance, double low, double high);
/* A standard normal number, drawn again while it is outside [-2, 2]. */
void opc_cem_truncated(struct opc_rng *, int n, float *z);
/* Draws candidate i. Candidates may be drawn by several threads at once. */
void opc_cem_draw(struct opc_cem *, int i, struct opc_rng *);
/* The same with coloured noise, clipped to the box. */
void opc_cem_draw_coloured(struct opc_cem *, int i, struct opc_rng *);
/* Moves mean and variance to those of the elites among candidates 0 .. n-1 (n is at least
 * `elites`). A value that is not finite is worse than any other; of equals the first is better.
 * Returns how many values are not finite. */
int opc_cem_update(struct opc_cem *, int n);

#endif
