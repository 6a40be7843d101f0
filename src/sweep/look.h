/* SPDX-License-Identifier: MIT */
/* sweep/look.h - is what a directory holds the run that a sweep wants, and how far is it?
 *
 * run/rundir.h reads the directory; this compares it with the wanted settings. The scheduler calls
 * it before it starts a run and after one has ended, `opc sweep status` and `opc repro` to report.
 * What is foreign is never touched. */
#ifndef OPC_SWEEP_LOOK_H
#define OPC_SWEEP_LOOK_H

#include "run/config.h"

enum opc_state {
    OPC_STATE_MISSING,
    OPC_STATE_DONE, /* result.json is there */
    OPC_STATE_RUNNING,
    OPC_STATE_INTERRUPTED, /* can be resumed */
    OPC_STATE_DIVERGED,    /* would do so again: runs repeat to the bit */
    OPC_STATE_FAILED,      /* its environment or the disk did, say */
    OPC_STATE_FOREIGN,     /* a run of other settings, or something that is no run */
};
const char *opc_state_name(enum opc_state);

struct opc_look {
    enum opc_state state;
    bool begun;   /* there is something to resume */
    bool shorter; /* it was to have fewer epochs than now; opc_look_raise */
    int epoch, epochs;
    double eval_return; /* the last one; NaN: none */
    char version[32];   /* of the program that made it; "": not known */
    char engine[64];    /* MuJoCo 2.3.1, say; "": none */
    char why[400];      /* of foreign, diverged, failed */
};

/* Is it the run of these settings, and how far is it? What cannot be read is foreign. */
void opc_look(const char *dir, const struct opc_values *want, struct opc_look *out);
/* Seconds its complete epochs took, and how many they are. */
double opc_look_seconds(const char *dir, int *epochs);
/* Makes an earlier, shorter run one of these settings that is interrupted. */
int opc_look_raise(const char *dir, const struct opc_values *want, struct opc_err *err);

#endif
