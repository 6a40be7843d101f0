/* SPDX-License-Identifier: MIT */
/* study/dataset/dataset.h - recorded episodes for and from other programs: `opc data`
 * (docs/data.md).
 *
 * Outside, numbers are in the task's units: observations, actions between the task's limits,
 * rewards, whether a step ended the task (terminated) or its episode alone (truncated), and the
 * time in seconds. Inside they are an opc_episodes with actions in [-1, 1]. One file for each
 * format: csv.c, npz.c. */
#ifndef OPC_STUDY_DATASET_H
#define OPC_STUDY_DATASET_H

#include "base/text.h"
#include "opc/env.h"
#include "opc/episodes.h"

/* ---- out ------------------------------------------------------------------------------------- */

/* Writes episodes first .. of the past, recorded on env. The ending of the path says the format:
 * .csv, .npz, .opc (for train.prefill); without an ending it is a directory, which gets one .csv
 * for each episode. */
int opc_dataset_write(const struct opc_episodes *past, int first, const struct opc_env *env,
                      const char *path, struct opc_err *err);

/* Append the content of a file: episodes first .. end-1. */
void opc_dataset_csv(const struct opc_episodes *, int first, int end, const struct opc_env *,
                     struct opc_text *out);
int opc_dataset_npz(const struct opc_episodes *, int first, int end, const struct opc_env *,
                    struct opc_text *out, struct opc_err *err);
/* Action k of a step as it was applied: in the task's units, within its limits. */
double opc_dataset_action(const struct opc_env *, const float *action, int k);
/* The time of step t of an episode: seconds, or steps where the task has no clock. */
double opc_dataset_time(const struct opc_env *, int t);

/* ---- in -------------------------------------------------------------------------------------- */

/* Reads .csv and .npz files, checks every number, and makes episodes of them, which the caller
 * destroys. OPC_EUSER: something does not fit env; the message names file, row and column. */
int opc_dataset_read(int files, char *const *file, const struct opc_env *env,
                     struct opc_episodes **out, struct opc_err *err);

/* What was read, before it is checked: a row for each state of each episode, in their order. The
 * last state of an episode has no action. */
struct opc_log_table {
    const struct opc_env *env;
    int obs, act, columns;
    size_t rows, capacity;
    double *cell;            /* [capacity][columns], see below; NaN: empty */
    const char *const *file; /* names, for messages */
};
/* Columns, of which those from OPC_LOG_STATE on are obs observations, act actions, and three more.
 */
enum opc_log_column {
    OPC_LOG_FILE,    /* number of the file */
    OPC_LOG_ROW,     /* where in it: the line of a .csv, the index in an .npz */
    OPC_LOG_EPISODE, /* another number begins another episode; so does another file */
    OPC_LOG_TIME,
    OPC_LOG_STATE,
};
/* After the actions. */
enum { OPC_LOG_REWARD, OPC_LOG_TERMINATED, OPC_LOG_TRUNCATED, OPC_LOG_LAST };

static inline int opc_log_action(const struct opc_log_table *log)
{
    return OPC_LOG_STATE + log->obs;
}
/* which: OPC_LOG_REWARD and its neighbours. */
static inline int opc_log_outcome(const struct opc_log_table *log, int which)
{
    return OPC_LOG_STATE + log->obs + log->act + which;
}
/* One more row, all of it empty but its place; NULL: out of memory. */
double *opc_log_add(struct opc_log_table *, int file, size_t row);
/* The name of a column as files have it: "observation_0"; returns `out`. */
enum { OPC_LOG_NAME = 48 };
char *opc_log_name(const struct opc_log_table *, int column, char out[OPC_LOG_NAME]);

int opc_log_read_csv(struct opc_log_table *, int file, const char *text, size_t n,
                     struct opc_err *err);
int opc_log_read_npz(struct opc_log_table *, int file, const char *bytes, size_t n,
                     struct opc_err *err);
/* Episodes from all rows. */
int opc_log_episodes(const struct opc_log_table *, struct opc_episodes **out, struct opc_err *err);

#endif
