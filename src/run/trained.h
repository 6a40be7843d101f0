/* SPDX-License-Identifier: MIT */
/* run/trained.h - policies and models as a run left them, for probes, plots and evaluations. */
#ifndef OPC_RUN_TRAINED_H
#define OPC_RUN_TRAINED_H

#include "opc/agent.h"
#include "opc/predictor.h"
#include "opc/train.h"
#include "run/config/config.h"

struct opc_trained {
    int epoch; /* at the end of which they were saved; 0: initial weights */
    struct opc_agent *agent;
    struct opc_predictor *model; /* NULL: opc.transition = replay has none */
};

enum { OPC_TRAINED_NEWEST = -1 };

/* epoch: of a snapshot; 0: initial weights, the model not fitted yet; OPC_TRAINED_NEWEST: of the
 * newest checkpoint, which needs no snapshots. config is the run's (opc_config_of_run), obs and act
 * are the dimensions of its environment; the pool is borrowed. */
int opc_trained_load(const char *dir, const struct opc_config *, int obs, int act, int epoch,
                     struct opc_pool *, struct opc_trained *out, struct opc_err *err);
void opc_trained_free(struct opc_trained *);

/* opc_policy_load for a task that the caller has open, and which must outlive the agent (NULL:
 * none); *epoch: complete epochs it was trained for. */
int opc_policy_load_for(const char *path, const struct opc_env *, struct opc_agent **out,
                        int *epoch, struct opc_err *err);

/* opc_evaluate_run of a snapshot; snapshot = 0 is opc_evaluate_run itself. */
int opc_evaluate_snapshot(const char *path, int snapshot, int episodes, uint64_t seed, bool explore,
                          int threads, struct opc_evaluation *out, double *returns,
                          struct opc_err *err);

/* The epochs of which there are snapshots, ascending; the caller frees them with opc_free. A run
 * without snapshots is not an error. */
int opc_trained_snapshots(const char *dir, int **epochs, int *n, struct opc_err *err);

#endif
