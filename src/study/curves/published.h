/* SPDX-License-Identifier: MIT */
/* study/curves/published.h - learning curves that others have published, to compare runs with.
 *
 * They are in a CSV file with the columns source, env, method, env_steps, mean, std and seeds. A
 * row is the mean return over the seeds after this many steps, and its standard deviation. Their
 * steps include the random ones at the beginning, so runs are compared over total_steps. */
#ifndef OPC_STUDY_PUBLISHED_H
#define OPC_STUDY_PUBLISHED_H

#include "study/curves/curves.h"

struct opc_table;

/* One curve: a method on a task; or several of the task, one after the other. */
struct opc_published {
    char *method, *source; /* as in the file; the source of its first row */
    int n;
    double *steps;              /* [n] ascending */
    double *mean, *std;         /* [n] */
    int *seeds;                 /* [n] */
    int min_seeds;              /* of all rows */
    struct opc_published *next; /* of another method; NULL: there is none */
};

/* Reads the curve of a task (column env) and a method, and those of further methods after it, n in
 * all. OPC_EUSER if the file lacks one, or one is named twice; the message says what it has. */
enum { OPC_PUBLISHED_MAX = 8 };
int opc_published_read(const char *path, const char *task, int n, const char *const method[],
                       struct opc_published **out, struct opc_err *err);
void opc_published_free(struct opc_published *); /* with those after it; NULL is fine */

/* Compares runs with the (first) curve after 10000, 25000, 50000 and 75000 steps and where the
 * shortest run ends: columns task and method of the runs, total_steps, runs, mean, min, max (of
 * eval_return, not smoothed), published_mean, published_std, published_seeds and deviations,
 * (mean - published_mean) / published_std. Both are interpolated linearly. A step that some run or
 * the curve does not cover has no row; it is an error (OPC_EUSER) if no row is left or the runs
 * form several lines. Rows of other tasks and methods are taken over from `before`, a table of this
 * function, which may be NULL. The curves must be over total_steps. */
int opc_published_table(const struct opc_published *, const struct opc_curves *,
                        const struct opc_table *before, struct opc_table **out,
                        struct opc_err *err);
bool opc_published_is_table(const struct opc_table *); /* by its columns */

#endif
