/* SPDX-License-Identifier: MIT */
/* sweep/sweep.h - an experiment file as the list of its runs (docs/experiments.md).
 *
 * `vary` lists values of settings, and each combination is a run; `skip` leaves some of them out; a
 * tier changes both, and other settings. Contradictions are refused here, with file and line,
 * before anything has started. */
#ifndef OPC_SWEEP_SWEEP_H
#define OPC_SWEEP_SWEEP_H

#include "run/config/config.h"

struct opc_vary { /* a setting that differs between runs */
    char *key;    /* section.name, under its present name */
    int n;
    char **value; /* [n] as opc_field_print prints them */
};

struct opc_task {   /* one run */
    char *name;     /* of its directory; unique in the sweep */
    char *old_name; /* as earlier versions called it (opc_sweep_adopt) */
    int *choice;    /* [keys] the index of its value for each key */
    struct opc_values set;
    int group; /* tasks of the same group differ in their seed only */
    int index; /* its number in the file, from 1, whatever else is left out */
};

struct opc_sweep {
    char *path;
    char *title; /* "": none */
    char *tier;  /* "": none, or the file has none */
    char *runs;  /* "": its own; else the experiment in the same folder whose runs it uses */
    int keys;
    struct opc_vary *vary;
    int tasks; /* in the order of their values, where the last key changes fastest */
    struct opc_task *task;
    struct opc_yaml *probe, *figure; /* the tier's changes applied; NULL: none */
    int seed;                        /* train.seed of the file, tier and command line */
    struct opc_sources *from;        /* owns the trees that probe and figure point into */
};

/* What a command asks for. */
struct opc_sweep_ask {
    const char *path;
    const char *tier; /* NULL or "": none */
    bool any_tier;    /* a file without tiers is accepted, and is the same in every tier */
    /* No run is started, so a train.prefill that is not there is not missed; its checksum stays
     * empty. */
    bool no_runs;
    int sets;
    char *const *set; /* [sets] "section.name=value", as on the command line */
};

int opc_sweep_open(const struct opc_sweep_ask *, struct opc_sweep **out, struct opc_err *err);
void opc_sweep_close(struct opc_sweep *); /* NULL is fine */
/* Does it have runs of its own? Not if it names another experiment's runs, or is a probe that needs
 * none. */
static inline bool opc_sweep_has_runs(const struct opc_sweep *s)
{
    return !*s->runs && (!s->probe || s->keys > 0);
}

/* Keeps the tasks whose names match the pattern (* and ? as in a shell); OPC_EUSER: none does. */
int opc_sweep_narrow(struct opc_sweep *, const char *pattern, struct opc_err *err);
/* Keeps the task of that index; OPC_EUSER: there is none. */
int opc_sweep_pick(struct opc_sweep *, int index, struct opc_err *err);
/* Keeps the tasks i with keep[i], in their order; they may be none. */
void opc_sweep_keep(struct opc_sweep *, const bool *keep);

/* names.c, for sweep.c: gives the task its names, other ones than those of the tasks before it. */
int opc_sweep_name(struct opc_sweep *, struct opc_task *, struct opc_err *err);
/* Runs in `out` that an earlier version has named without their settings keep their directories, if
 * their settings are those of the tasks. Before anything looks into `out`. */
void opc_sweep_adopt(struct opc_sweep *, const char *out);

/* The value of a varied key in a task. */
static inline const char *opc_task_value(const struct opc_sweep *s, const struct opc_task *t,
                                         int key)
{
    return s->vary[key].value[t->choice[key]];
}

#endif
