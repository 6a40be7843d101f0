/* SPDX-License-Identifier: MIT */
/* opc/train.h - one training run, from settings to a directory, and the policy that comes of it.
 *
 *     struct opc_train_plan plan = {OPC_SIZED(struct opc_train_plan), .dir = "runs/1"};
 *     opc_train(config, &plan, &err);
 *     opc_policy_load("runs/1", &agent, &err);
 *     opc_agent_act(agent, 1, state, false, NULL, action);
 *
 * examples/embed.c is the whole of it. The directory is described in docs/run-directory.md. */
#ifndef OPC_TRAIN_H
#define OPC_TRAIN_H

#include "opc/config.h"
#include "opc/policy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an epoch consists of, in the order of Algorithm 1; `random` is before the first. */
enum opc_phase {
    OPC_PHASE_RANDOM,
    OPC_PHASE_ACT,      /* on the real environment */
    OPC_PHASE_FIT,      /* the model to all that was recorded */
    OPC_PHASE_MEASURE,  /* its errors on the newest episodes */
    OPC_PHASE_SIMULATE, /* imagined rollouts */
    OPC_PHASE_IMPROVE,  /* the policy */
    OPC_PHASE_EVALUATE,
    OPC_PHASE_SAVE,
    OPC_PHASES
};
/* The name of a phase, as in timing.csv and status.json. */
OPC_API const char *opc_phase_name(enum opc_phase);

struct opc_progress {
    enum opc_phase phase;
    double share;        /* of the phase that is done, 0 .. 1 */
    bool epoch_done;     /* all of an epoch is, and its row is on disk */
    int epoch, epochs;   /* the current one, from 1; 0 in the random phase */
    int steps_per_epoch; /* and how far it is: */
    int step;
    long env_steps, total_steps; /* on the real environment, without and with the random phase */
    double eval_return, eval_length; /* of the last evaluation; NaN before the first */
    double model_error; /* of one step on the newest episodes, relative to their spread; NaN */
    double seconds[OPC_PHASES]; /* spent in this epoch so far */
    double elapsed;             /* seconds since this process began to train */
    int first_epoch;            /* the one this process began with */
    /* While the model is fitted: passes over the data and the error of the held-out rows; 0 and NaN
     * before the first pass. `share` is an estimate then, from the fit before. */
    int fit_passes;
    double fit_holdout;
    int error_equation; /* the equation that model_error is of: 2 or 5; 0: there is no model */
};

struct opc_train_plan {
    size_t size;     /* of this struct (opc/sized.h) */
    const char *dir; /* is made; must hold no run yet. NULL: nothing is written */
    bool resume;     /* dir holds a run: go on from its last checkpoint */
    int threads;     /* 0: one per processor; changes no result */
    /* Called by the thread that called opc_train, a few times a second; may be NULL. */
    void (*progress)(void *ctx, const struct opc_progress *);
    /* True stops the run with OPC_ESTOPPED: it can be resumed from the end of the last epoch, and
     * what was begun since is done again. May be NULL; asked often, by that same thread. */
    bool (*stop)(void *ctx);
    void *ctx;
    /* When resuming, 1: recorded or imagined steps that cannot be read from their files are left
     * out, where both checkpoints need them. 0: that is OPC_EDAMAGED. (A long leaves no padding.)
     */
    long skip_damaged;
};

/* Trains one run to its end, or goes on with one. The same settings give the same results with any
 * number of threads. OPC_EUSER: settings do not fit each other, or the directory holds a run
 * already; OPC_ENOMEM: they need more memory than there is; OPC_ESTOPPED: see stop.
 * OPC_EDIVERGED, OPC_EREFUSED and OPC_EENV leave the directory as it was at the last checkpoint. */
OPC_API int opc_train(const struct opc_config *, const struct opc_train_plan *,
                      struct opc_err *err);

/* The settings a run was started with. OPC_EUSER: there is no run in dir. For opc_config_destroy.
 */
OPC_API int opc_config_of_run(const char *dir, struct opc_config **out, struct opc_err *err);

struct opc_evaluation {
    size_t size; /* of this struct (opc/sized.h) */
    int epoch;   /* the policy is as it was at its end */
    int episodes;
    double mean, deviation, min, max; /* of their returns */
    double length;                    /* mean */
};
/* Plays episodes with the policy of a run directory, or of a policy file, on its own environment.
 * explore: draw actions from the policy instead of taking its mode. returns[episodes] may be NULL.
 */
OPC_API int opc_evaluate_run(const char *path, int episodes, uint64_t seed, bool explore,
                             int threads, struct opc_evaluation *out, double *returns,
                             struct opc_err *err);

#ifdef __cplusplus
}
#endif
#endif
