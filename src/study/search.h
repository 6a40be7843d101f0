/* SPDX-License-Identifier: MIT */
/* study/search.h - a search over settings: trials with random values, of which the better ones
 * train longer (docs/search.md).
 *
 *     search:
 *       settings:
 *         sac.learning_rate: {low: 1e-5, high: 1e-2, scale: log}
 *         opc.horizon: [[5], [10], [20]]
 *       trials: 27
 *       rungs: [10, 30, 90]
 *
 * Trial i is the ordinary run OUT/tNNNN. Its values depend on search.seed and i alone, and who is
 * promoted on the rows of metrics.csv up to the rung's epoch: a search that is killed and started
 * again goes on, and decides the same. */
#ifndef OPC_STUDY_SEARCH_H
#define OPC_STUDY_SEARCH_H

#include "base/field.h"
#include "study/exhibit/table.h"
#include "sweep/sweep.h"

/* clang-format off */
#define OPC_SEARCH_FIELDS(X)                                                                        \
    X(INT,  trials,    "16",          1, 10000, "number of trials, each with values of its own")     \
    X(INTS, rungs,     "[]",          1, 1e6,   "epochs after which trials are compared, ascending; []: all train for train.epochs") \
    X(REAL, keep,      "0.3333333333", 0.01, 1, "share of the trials that goes on to the next rung; at least one") \
    X(TEXT, objective, "eval_return", 1, 63,    "column of metrics.csv to maximize: the mean of its last five values") \
    X(INT,  seed,      "1",           0, 2e9,   "seed of the values that are drawn")
/* clang-format on */
struct opc_search_options {
    OPC_SEARCH_FIELDS(OPC_MEMBER)
};
extern const struct opc_section opc_search_section;

struct opc_trial {
    struct opc_task run;        /* its name, and its settings with the epochs of the last rung */
    char **value;               /* [keys] as printed */
    int rung;                   /* rungs that it has reached, after opc_search_judge */
    double score[OPC_LIST_MAX]; /* [rung] NaN: it has not got that far */
};

struct opc_search {
    struct opc_search_options set;
    int rungs, epochs[OPC_LIST_MAX]; /* of each rung; at least one */
    int keys;
    char **key;              /* [keys] in the order of the file */
    struct opc_trial *trial; /* [set.trials] */
    char *path;
};

/* Reads the file and draws all trials. sets: "section.name=value", as on the command line. */
int opc_search_open(const char *path, int sets, char *const *set, struct opc_search **out,
                    struct opc_err *err);
void opc_search_close(struct opc_search *); /* NULL is fine */

/* Looks into OUT: the scores of all trials as far as they got, and which of them are to train up to
 * rung r, for r from 0 until opc_search_rung finds one that is not complete. */
int opc_search_judge(struct opc_search *, const char *out, struct opc_err *err);
/* Which trials are to reach rung r, best first at r > 0: chosen[set.trials]; returns how many.
 * Those of rung r - 1 must have been trained and judged. */
int opc_search_promoted(const struct opc_search *, int r, int *chosen);
/* The trials of rung r that have not got that far, as a sweep for opc_schedule_run. The sweep
 * borrows from the search; free it with opc_search_free_sweep. */
int opc_search_sweep(const struct opc_search *, int r, struct opc_sweep *out, struct opc_err *err);
void opc_search_free_sweep(struct opc_sweep *);

/* The best trial of the last rung that has any; -1: none has a score. */
int opc_search_best(const struct opc_search *);
/* A row for each trial: name, values, score at each rung. */
int opc_search_table(const struct opc_search *, struct opc_table **out, struct opc_err *err);

#endif
