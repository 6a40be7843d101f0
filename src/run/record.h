/* SPDX-License-Identifier: MIT */
/* run/record.h - the run directory: what is written there, when, and by whom
 * (docs/run-directory.md).
 *
 * metrics.csv holds nothing that depends on the clock or the number of threads, so two runs can be
 * compared with cmp; timing.csv is apart for that reason. A NULL record is a run without a
 * directory: everything below does nothing then. */
#ifndef OPC_RUN_RECORD_H
#define OPC_RUN_RECORD_H

#include "base/file.h"
#include "base/log.h"
#include "opc/agent.h"
#include "opc/algorithm2.h"
#include "opc/predictor.h"
#include "opc/train.h"

struct opc_record;

enum { OPC_ERRORS = 3 };                      /* prediction errors after so many steps: */
extern const int OPC_ERROR_STEPS[OPC_ERRORS]; /* 1, 5, 10 */

/* One line of metrics.csv. What an epoch did not do is NaN or 0, and an empty cell. */
struct opc_epoch_row {
    int epoch; /* from 1 */
    long env_steps, total_steps;
    bool evaluated;
    struct opc_evaluation eval;
    int episodes; /* that ended in this epoch, and: */
    double train_return, train_length;
    int fits, members;
    struct opc_fit_report fit; /* of the last of them */
    double learned[OPC_ERRORS], corrected[OPC_ERRORS];
    int horizon;
    long rollouts, imagined;                      /* made in this epoch; steps in them */
    size_t end[OPC_ENDS];                         /* rollouts by why they ended */
    double reward_min, reward_max, state_max_std; /* of those steps */
    struct opc_agent_report agent;
    long recorded_kept, imagined_kept; /* steps there are to learn from */
};

/* Makes the directory of a new run, with its settings as config.yaml; it may be there, but must
 * hold nothing but what a killed start leaves. set = NULL: opens that of an earlier run. Locks it
 * until close, so that a second process is refused. */
struct opc_values;
int opc_record_open(const char *dir, const struct opc_values *set, struct opc_record **out,
                    struct opc_err *err);
void opc_record_close(struct opc_record *); /* NULL is fine */
const char *opc_record_dir(const struct opc_record *);
/* "dir/name" */
int opc_record_path(const struct opc_record *, const char *name, char out[OPC_PATH],
                    struct opc_err *err);

/* Where the tables end: what a checkpoint remembers, and what they are cut to when it is used.
 * {0} starts them afresh. */
struct opc_record_ends {
    uint64_t metrics, timing;
};
/* members: of the ensemble; columns: of the agent. */
int opc_record_begin(struct opc_record *, struct opc_record_ends, int members,
                     const struct opc_agent_column *columns, struct opc_err *err);
/* On disk, for good. */
int opc_record_sync(struct opc_record *, struct opc_record_ends *out, struct opc_err *err);

int opc_record_epoch(struct opc_record *, const struct opc_epoch_row *, struct opc_err *err);
int opc_record_timing(struct opc_record *, int epoch, const double seconds[OPC_PHASES],
                      double total, struct opc_err *err);

/* Does metrics.csv have such a column, with so many members? nearest: what is most like it, or "".
 */
bool opc_record_is_column(const char *name, int members, char nearest[64]);

/* status.json: state is a word for other programs, why a sentence or NULL. */
int opc_record_status(struct opc_record *, const char *state, const char *why,
                      const struct opc_progress *, struct opc_err *err);

/* To log.txt with the time, and from INFO on to the program's log. Never fails: a log that cannot
 * be written must not end a run. */
void opc_record_log(struct opc_record *, enum opc_level, const char *fmt, ...) OPC_PRINTF(3, 4);

#endif
