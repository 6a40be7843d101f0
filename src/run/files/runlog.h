/* SPDX-License-Identifier: MIT */
/* run/files/runlog.h - the one writer of a run directory (docs/run-directory.md);
 * run/files/rundir.h is its reader, and checkpoints are written by run/save.c.
 *
 * metrics.csv holds nothing that depends on the clock or the number of threads, so that two runs
 * can be compared with cmp; timing.csv is a table of its own for that reason. A run without a
 * directory has no log: functions that take a NULL log and can do without it do nothing. */
#ifndef OPC_RUN_RUNLOG_H
#define OPC_RUN_RUNLOG_H

#include "base/file.h"
#include "base/log.h"
#include "opc/agent.h"
#include "opc/predictor.h"
#include "opc/rollout.h"
#include "opc/train.h"

struct opc_runlog;

/* Model errors are measured after 1, 5 and 10 imagined steps. */
enum { OPC_ERRORS = 3 };
extern const int OPC_ERROR_STEPS[OPC_ERRORS]; /* 1, 5, 10 */

/* One row of metrics.csv. What did not happen in an epoch is NaN or 0 here, and an empty cell
 * there. */
struct opc_epoch_row {
    int epoch; /* from 1 */
    long env_steps, total_steps;
    bool evaluated;
    struct opc_evaluation eval;
    int episodes;                      /* on the real environment that ended in this epoch */
    double train_return, train_length; /* their means */
    int fits, members;
    struct opc_fit_report fit; /* the last fit of the epoch */
    /* on-policy model errors of that fit, by eq. 2 and by eq. 5 (run/real/onpolicy.h) */
    double learned[OPC_ERRORS], corrected[OPC_ERRORS];
    int horizon;
    long rollouts, imagined; /* rollouts simulated in this epoch, and their steps */
    size_t end[OPC_ENDS];    /* rollouts by the reason they ended for */
    /* extremes over those steps; state_max_std is the largest distance of an imagined state from
     * the mean of the recorded ones, in standard deviations */
    double reward_min, reward_max, state_max_std;
    struct opc_agent_report agent;     /* over all gradient steps of the epoch */
    long recorded_kept, imagined_kept; /* steps in the stores at the end of the epoch */
};

/* Creates the directory of a new run, with its settings as config.yaml. The directory may exist,
 * but must hold nothing except what an interrupted start leaves. set = NULL opens the directory of
 * an earlier run. It stays locked until close, and a second process is refused. */
struct opc_values;
int opc_runlog_open(const char *dir, const struct opc_values *set, struct opc_runlog **out,
                    struct opc_err *err);
void opc_runlog_close(struct opc_runlog *); /* NULL is fine */
const char *opc_runlog_dir(const struct opc_runlog *);
/* "dir/name" */
int opc_runlog_path(const struct opc_runlog *, const char *name, char out[OPC_PATH],
                    struct opc_err *err);

/* Lengths of the tables in bytes: a checkpoint stores them, and the tables are truncated to them
 * when the run resumes from it. {0} starts the tables afresh. Saved as it is in memory. */
struct opc_runlog_ends {
    uint64_t metrics, timing;
};
struct opc_runlog_tables {
    int members;                            /* of the ensemble; 0: there is none */
    const struct opc_agent_column *columns; /* of the agent, borrowed */
    bool json_lines, tensorboard;           /* copies of metrics.csv (run/files/copies.h) */
};
/* Opens the tables and truncates them, and brings the copies to the same rows. */
int opc_runlog_begin_tables(struct opc_runlog *, struct opc_runlog_ends,
                            const struct opc_runlog_tables *, struct opc_err *err);
/* Returns when all rows so far are on disk. */
int opc_runlog_sync(struct opc_runlog *, struct opc_runlog_ends *out, struct opc_err *err);

/* One row of metrics.csv and its copies; one row of timing.csv, where `total` counts from the start
 * of this process. */
int opc_runlog_metrics(struct opc_runlog *, const struct opc_epoch_row *, struct opc_err *err);
int opc_runlog_timing(struct opc_runlog *, int epoch, const double seconds[OPC_PHASES],
                      double total, struct opc_err *err);

/* Finds out whether metrics.csv has such a column in runs with this many members. nearest: the most
 * similar name, or "". */
int opc_runlog_find_column(const char *name, int members, bool *found, char nearest[64],
                           struct opc_err *err);

/* Replaces status.json. state: a word for other programs (enum opc_rundir_state); why: a sentence,
 * or NULL. */
int opc_runlog_status(struct opc_runlog *, const char *state, const char *why,
                      const struct opc_progress *, struct opc_err *err);

/* One line of log.txt, with the time; from OPC_LEVEL_INFO on also a line of the program's log. It
 * cannot fail: a log that cannot be written must not end a run. */
void opc_runlog_message(struct opc_runlog *, enum opc_level, const char *fmt, ...) OPC_PRINTF(3, 4);

#endif
