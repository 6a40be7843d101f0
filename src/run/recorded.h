/* SPDX-License-Identifier: MIT */
/* run/recorded.h - the real steps that a run has recorded, read from its directory.
 *
 * For those who look at a run later (study/probe): nothing but the recording is loaded, nothing is
 * written, and the run may still be training. */
#ifndef OPC_RUN_RECORDED_H
#define OPC_RUN_RECORDED_H

#include "opc/episodes.h"
#include "run/config/config.h"

struct opc_recorded {
    struct opc_episodes *past; /* episode b was reset from (train.seed, OPC_USE_RESET, 0, b) */
    int epochs;                /* complete ones */
    int *episodes;             /* [epochs + 1] recorded by the end of each; 0: the random phase */
};

/* From the newest intact checkpoint. config is the run's own (opc_config_of_run); obs and act are
 * its environment's. OPC_EUSER: the directory has no checkpoint, or one of other settings. */
int opc_recorded_load(const char *dir, const struct opc_config *config, int obs, int act,
                      struct opc_recorded *out, struct opc_err *err);
void opc_recorded_free(struct opc_recorded *);

#endif
