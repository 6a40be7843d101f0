/* SPDX-License-Identifier: MIT */
/* sweep/sweep.h - an experiment file as the list of its runs (docs/experiments.md).
 *
 * `vary` spans the runs, `skip` leaves some of them out, a tier changes both and the settings. What
 * contradicts itself is refused here, with file and line, before anything has started. */
#ifndef OPC_STUDY_SWEEP_H
#define OPC_STUDY_SWEEP_H

#include "run/config.h"

struct opc_vary {
    char *key;
    int n;
    char **value; /* [n] as opc_field_print prints them */
};

struct opc_task { /* one run */
    char *name;   /* of its directory; unique in the sweep */
    int *choice;  /* [keys] which value of each key */
    struct opc_values set;
    int group; /* tasks of the same group differ in their seed only */
};

struct opc_sweep {
    char *path;
    char *title; /* "": none */
    char *tier;  /* "": none, or the file has none */
    char *runs;  /* "": its own; else the experiment beside it whose runs it uses */
    int keys;
    struct opc_vary *vary;
    int tasks; /* in order: the last key runs fastest */
    struct opc_task *task;
    struct opc_yaml *probe, *figure; /* the tier's changes applied; NULL: none */
    int seed;                        /* train.seed of the file */
    struct opc_sources *from;
};

struct opc_sweep_ask {
    const char *path;
    const char *tier; /* NULL or "": none */
    bool any_tier;    /* a file without tiers is the same in each of them */
    int sets;         /* "section.name=value", as on the command line: */
    char *const *set;
};

int opc_sweep_open(const struct opc_sweep_ask *, struct opc_sweep **out, struct opc_err *err);
void opc_sweep_close(struct opc_sweep *); /* NULL is fine */
/* Has a run of its own to start: not one that says whose it uses, or what to compute of none. */
static inline bool opc_sweep_has_runs(const struct opc_sweep *s)
{
    return !*s->runs && (!s->probe || s->keys > 0);
}

/* Keeps the tasks whose names the pattern matches (* and ? as in a shell); OPC_EUSER: none. */
int opc_sweep_narrow(struct opc_sweep *, const char *pattern, struct opc_err *err);

/* The value of a varied key in a task. */
static inline const char *opc_task_value(const struct opc_sweep *s, const struct opc_task *t,
                                         int key)
{
    return s->vary[key].value[t->choice[key]];
}

#endif
