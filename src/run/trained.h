/* SPDX-License-Identifier: MIT */
/* run/trained.h - policies and models as a run left them, for those who look at them later. */
#ifndef OPC_RUN_TRAINED_H
#define OPC_RUN_TRAINED_H

#include "opc/agent.h"
#include "opc/predictor.h"
#include "run/config.h"

struct opc_trained {
    int epoch; /* they are as they were at its end */
    struct opc_agent *agent;
    struct opc_predictor *model; /* NULL: opc.transition = replay has none */
};

enum { OPC_TRAINED_NEWEST = -1 };

/* epoch: of a snapshot; 0: as the run began, its model not fitted yet; OPC_TRAINED_NEWEST: of the
 * newest checkpoint, which needs no snapshots. config is the run's (opc_config_of_run), obs and act
 * are its environment's; the pool is borrowed. */
int opc_trained_load(const char *dir, const struct opc_config *, int obs, int act, int epoch,
                     struct opc_pool *, struct opc_trained *out, struct opc_err *err);
void opc_trained_free(struct opc_trained *);

/* The epochs there are snapshots of, ascending; for opc_free. None at all is no error. */
int opc_trained_snapshots(const char *dir, int **epochs, int *n, struct opc_err *err);

#endif
