/* SPDX-License-Identifier: MIT */
/* opc/predictor.h - a learned model of the dynamics: p~(s', r | s, a) and its mean f.
 *
 * A predictor has members, of which some are elites; whoever asks names an elite for each row.
 * Equal rows get equal bits wherever they are in a batch: eq. 5 needs that. A predictor has
 * scratch memory of its own: ask it from one thread at a time, with a pool for the work. */
#ifndef OPC_PREDICTOR_H
#define OPC_PREDICTOR_H

#include "opc/err.h"
#include "opc/rng.h"
#include "opc/sized.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct opc_pool; /* opc/pool.h */
struct opc_predictor;
struct opc_network; /* a trained network, for export; not public */

enum { OPC_MEMBERS = 32 };

struct opc_fit_report {
    size_t size;                 /* of this struct (opc/sized.h) */
    int passes;                  /* whole ones over the training data until it stopped */
    int steps;                   /* gradient steps */
    double holdout[OPC_MEMBERS]; /* mean squared error of each member after the fit */
    /* Negative log-likelihood, mean over members and the last pass, or the steps since the holdout
     * error was measured before. */
    double train_loss;
    double log_std_min, log_std_max; /* mean of the bounds of the log deviation */
};

/* How far a fit is. It ends when no member has improved for a while, so how long it takes is not
 * known before. */
struct opc_fit_progress {
    int passes, steps; /* over the data, and gradient steps, so far */
    double holdout;    /* mean squared error of the held-out rows, mean over the members */
    /* Measurements of that error since a member improved, and how many of them end the fit. */
    int since, patience;
    double limit; /* share of the passes or steps that it may take at most; 0: no limit is set */
};

struct opc_fit_plan {
    size_t size; /* of this struct (opc/sized.h) */
    uint64_t seed;
    uint32_t epoch, index; /* names this fit's random streams */
    struct opc_pool *pool; /* may be NULL */
    /* Asked between passes: true stops the fit early with OPC_ESTOPPED. May be NULL. */
    bool (*stop)(void *);
    void *stop_ctx;
    /* Called before each `stop`, with the same context. May be NULL. */
    void (*progress)(void *, const struct opc_fit_progress *);
};

struct opc_predictor_type {
    const char *name;
    int (*fit)(struct opc_predictor *, int n, const float *sa, const float *y,
               const struct opc_fit_plan *, struct opc_fit_report *, struct opc_err *);
    /* opc_predictor_mean if rng is NULL, or else opc_predictor_sample. */
    void (*predict)(const struct opc_predictor *, int n, const float *s, const float *a,
                    const int *elite, struct opc_rng *rng, float *y, struct opc_pool *);
    void (*destroy)(struct opc_predictor *);
    /* Everything a later fit or prediction depends on, as named runs of bytes: `visit` is called
     * for each, to save or to load. */
    int (*state)(struct opc_predictor *,
                 int (*visit)(void *ctx, const char *name, void *data, size_t bytes,
                              struct opc_err *),
                 void *ctx, struct opc_err *);
    /* Optional. NULL: it does not know its derivatives. */
    int (*jacobian)(const struct opc_predictor *, int n, const float *s, const float *a,
                    const int *elite, float *J, struct opc_pool *, struct opc_err *);
    /* Optional. NULL: `opc export --model` cannot write it. The network whose outputs are the means
     * [s' - s, reward] of this elite, and perhaps their log-variances; it lives as long as the
     * predictor. */
    int (*network)(const struct opc_predictor *, int elite, struct opc_network *out,
                   struct opc_err *);
    /* Optional. NULL: not known. mean[obs] and 1 / deviation inverse[obs] of the states it was last
     * fitted to; 0 and 1 before its first fit. */
    void (*scale)(const struct opc_predictor *, float *mean, float *inverse);
    /* Optional. NULL: one. How many threads of a pool may call `predict` at a time, each from
     * within a chunk and with a pool of NULL. */
    int (*callers)(const struct opc_predictor *);
};

struct opc_predictor { /* first member of every predictor */
    const struct opc_predictor_type *type;
    int obs, act, members, elites;
    int elite[OPC_MEMBERS]; /* which member elite e is */
};

/* Fits the model to n rows sa[n][obs + act] (actions in [-1, 1]), y[n][obs + 1] = [s' - s, reward],
 * as opc_episodes_flatten writes them. A NULL plan is one of zeros; the report may be NULL.
 * OPC_EDIVERGED: a loss is not finite; OPC_ESTOPPED: the plan's stop asked for it; OPC_ENOMEM.
 * After a failure the model must be fitted again before it predicts. */
OPC_API int opc_predictor_fit(struct opc_predictor *, int n, const float *sa, const float *y,
                              const struct opc_fit_plan *, struct opc_fit_report *,
                              struct opc_err *err);
/* The mean f(s, a) of s[n][obs] and a[n][act]: y[n][obs + 1] = [s', reward]. The predictor adds s
 * to its learned difference itself. Row i is answered by elite[i] (0 .. elites-1). */
OPC_API void opc_predictor_mean(const struct opc_predictor *, int n, const float *s, const float *a,
                                const int *elite, float *y, struct opc_pool *);
/* The same, drawn from the member's Gaussian; rng[n], one stream per row. */
OPC_API void opc_predictor_sample(const struct opc_predictor *, int n, const float *s,
                                  const float *a, const int *elite, struct opc_rng *rng, float *y,
                                  struct opc_pool *);
/* J[n][obs + 1][obs + act]: the derivatives of opc_predictor_mean's [s', reward] by [s, a].
 * OPC_EABSENT: this type of predictor does not know them. */
OPC_API int opc_predictor_jacobian(const struct opc_predictor *, int n, const float *s,
                                   const float *a, const int *elite, float *J, struct opc_pool *,
                                   struct opc_err *err);
/* Frees the model and all it holds. NULL is fine. */
OPC_API void opc_predictor_destroy(struct opc_predictor *);

#ifdef __cplusplus
}
#endif
#endif
