/* SPDX-License-Identifier: MIT */
/* run/files/summary.h - what there is to say about a run in one line, and finding runs.
 *
 * Used by opc status, opc runs and opc serve. Only files of run directories are read, and no
 * environment is opened, so a run that came from elsewhere starts no code here. A directory may be
 * read while a process works on it; what cannot be read is unknown. */
#ifndef OPC_RUN_SUMMARY_H
#define OPC_RUN_SUMMARY_H

#include "opc/pool.h"
#include "run/config/config.h"

enum opc_summary_state {
    OPC_SUMMARY_RUNNING,
    OPC_SUMMARY_DONE,
    OPC_SUMMARY_STOPPED,     /* by request */
    OPC_SUMMARY_INTERRUPTED, /* its process was killed; opc resume goes on */
    OPC_SUMMARY_DIVERGED,
    OPC_SUMMARY_FAILED,
    OPC_SUMMARY_BEGUN, /* nothing is known yet */
    OPC_SUMMARY_STATES
};
const char *opc_summary_state_name(enum opc_summary_state);

struct opc_summary {
    enum opc_summary_state state;
    char why[400];  /* reason of stopped, diverged, failed; "": none */
    char task[256]; /* env.name; "": config.yaml cannot be read, and nor are the next four known */
    int seed, epochs;
    const char *method;      /* OPC, MBPO(*), SAC ...; NULL: not known */
    unsigned colour;         /* of the method, 0xRRGGBB; 0: it has none */
    int epoch;               /* complete ones */
    int rows;                /* of metrics.csv */
    double steps, all_steps; /* real ones, without and with the random ones; NaN: none yet */
    double last, best;       /* returns of evaluations; NaN: none yet */
    int best_epoch;          /* 0: none */
    double spent, left;      /* seconds; left is NaN where it is not known */
    char host[64];           /* computer that works or worked on it; "": not known */
};

/* Reads one run. `defaults` are settings that are all defaults, which opc_summary_defaults makes:
 * a caller that reads many runs makes them once. */
void opc_summary_read(const char *dir, const struct opc_values *defaults, struct opc_summary *out);
int opc_summary_defaults(struct opc_values *out, struct opc_err *err);
/* Reads n runs, on the threads of a pool. */
int opc_summaries_read(int n, char *const dir[], struct opc_pool *, struct opc_summary *out,
                       struct opc_err *err);

/* Steps on the real environment in a second of work; NaN: not known. */
double opc_summary_speed(const struct opc_summary *);
/* Appends the summary as members of a JSON object, from "state" on, without braces. */
void opc_summary_json(const struct opc_summary *, struct opc_text *);

/* ---- finding runs ---------------------------------------------------------------------------- */

struct opc_found {
    char **dir; /* [n] */
    int n, capacity;
};
/* Adds the run `word`, or else the runs below that directory in the order of their names, down to
 * those of `opc repro` and deeper (five levels). What is inside a run is its own. OPC_EUSER: `word`
 * is neither, or holds no run. */
int opc_found_add(struct opc_found *, const char *word, struct opc_err *err);
/* The same, but a directory without any run is fine. */
int opc_found_add_any(struct opc_found *, const char *word, struct opc_err *err);
void opc_found_free(struct opc_found *);

#endif
