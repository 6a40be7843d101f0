/* SPDX-License-Identifier: MIT */
/* sweep/look.h - is what a directory holds the run that a sweep wants, and how far is it?
 *
 * run/files/rundir.h reads the directory; this compares it with the wanted settings. The scheduler
 * calls it before it starts a run and after one has ended, `opc sweep status` and `opc repro` to
 * report. A foreign directory is never touched. */
#ifndef OPC_SWEEP_LOOK_H
#define OPC_SWEEP_LOOK_H

#include "run/config/config.h"
#include "run/files/rundir.h"

enum opc_state {
    OPC_STATE_MISSING,
    OPC_STATE_DONE, /* result.json is there */
    OPC_STATE_RUNNING,
    OPC_STATE_INTERRUPTED, /* can be resumed */
    OPC_STATE_DIVERGED,    /* would diverge again: runs repeat to the bit */
    OPC_STATE_FAILED,      /* for another reason: its environment or the disk failed, say */
    OPC_STATE_FOREIGN,     /* a run of other settings, or something that is not a run */
};
const char *opc_state_name(enum opc_state);

struct opc_look {
    enum opc_state state;
    bool begun;         /* there is something to resume */
    bool shorter;       /* its train.epochs is smaller than the wanted one: opc_look_raise */
    int epoch, epochs;  /* complete ones; those it shall have */
    double eval_return; /* of the last evaluation; NaN: none */
    char version[OPC_RUNDIR_VERSION];   /* of the program that made it; "": not known */
    char revision[OPC_RUNDIR_REVISION]; /* its commit; "": not known */
    char engine[64];                    /* MuJoCo 2.3.1, say; "": none */
    char why[400];                      /* reason of foreign, diverged, failed */
};

/* Is it the run of these settings, and how far is it? What cannot be read is foreign. */
void opc_look(const char *dir, const struct opc_values *want, struct opc_look *out);
/* Seconds its complete epochs took, and how many they are. */
double opc_look_seconds(const char *dir, int *epochs);
/* Raises the epochs of a shorter run to those wanted, or changes settings that do not count; it is
 * then an interrupted run. */
int opc_look_raise(const char *dir, const struct opc_values *want, struct opc_err *err);

#endif
