/* SPDX-License-Identifier: MIT */
/* Makes episodes of logged rows, and refuses what is not sound: corrections of eq. 5 are indexed by
 * time, so a gap, a step that is lost or an action that was not applied would be learned as a fact.
 * dataset.c calls it with the rows of all files.
 *
 * Invariant: a message names the file, the row and the column it is about. */
#include "study/dataset/dataset.h"

#include "opc/mem.h"

#include <math.h>
#include <stdio.h>

/* Two samples may be this share of the interval apart from where they should be. */
static const double JITTER = 0.1;
/* Actions may exceed their limits by this share of the range: what rounding leaves. */
static const double BEYOND = 1e-6;

/* One episode: rows first .. last, of which the last has a state alone. */
struct stretch {
    const struct opc_log_table *log;
    size_t first, last;
    double interval; /* seconds between samples; 0: not known yet */
};

static const double *row_at(const struct opc_log_table *log, size_t row)
{
    return log->cell + row * (size_t)log->columns;
}

/* "FILE: row 12, column reward: " in front of what is wrong there. */
static int refuse(const struct opc_log_table *log, size_t row, int column, const char *why,
                  struct opc_err *err)
{
    const double *cells = row_at(log, row);
    char name[OPC_LOG_NAME];
    return opc_fail(err, OPC_EUSER, "%s: row %.0f, column %s: %s",
                    log->file[(int)cells[OPC_LOG_FILE]], cells[OPC_LOG_ROW],
                    opc_log_name(log, column, name), why);
}

/* The last row of the episode that begins in this one. */
static size_t find_last(const struct opc_log_table *log, size_t first)
{
    const double *begin = row_at(log, first);
    size_t row = first;
    while (row + 1 < log->rows && row_at(log, row + 1)[OPC_LOG_FILE] == begin[OPC_LOG_FILE] &&
           row_at(log, row + 1)[OPC_LOG_EPISODE] == begin[OPC_LOG_EPISODE])
        row++;
    return row;
}

/* ---- one row --------------------------------------------------------------------------------- */

static int check_state(const struct stretch *s, size_t row, struct opc_err *err)
{
    const double *cells = row_at(s->log, row);
    /* Observations are stored as floats, so they must fit. */
    for (int k = OPC_LOG_STATE; k < opc_log_action(s->log); k++) {
        if (isnan(cells[k]))
            return refuse(s->log, row, k, "it is empty or not a number", err);
        if (!isfinite((float)cells[k]))
            return refuse(s->log, row, k, "it does not fit into a float", err);
    }
    return OPC_OK;
}

static int check_action(const struct stretch *s, size_t row, struct opc_err *err)
{
    const struct opc_env *env = s->log->env;
    const double *action = row_at(s->log, row) + opc_log_action(s->log);
    char why[160];
    /* Each action must be one that the task can have applied. */
    for (int k = 0; k < env->act; k++) {
        const double low = env->low[k], high = env->high[k], margin = BEYOND * (high - low);
        const int column = opc_log_action(s->log) + k;
        if (isnan(action[k]))
            return refuse(s->log, row, column,
                          "it is empty or not a number; only the last row of an episode has no "
                          "action: it is the state after the last step",
                          err);
        if (action[k] >= low - margin && action[k] <= high + margin)
            continue;
        snprintf(why, sizeof why, "%.9g is outside [%g, %g], the action's limits", action[k], low,
                 high);
        return refuse(s->log, row, column, why, err);
    }
    return OPC_OK;
}

/* Reward and flags of a step; `last`: it is the last of its episode. */
static int check_outcome(const struct stretch *s, size_t row, bool last, struct opc_err *err)
{
    const double *cells = row_at(s->log, row);
    const int reward = opc_log_outcome(s->log, OPC_LOG_REWARD);
    /* the reward: a number that fits into a float */
    if (isnan(cells[reward]))
        return refuse(s->log, row, reward, "it is empty or not a number", err);
    if (!isfinite((float)cells[reward]))
        return refuse(s->log, row, reward, "it does not fit into a float", err);
    /* the flags: 0 or 1, and 1 only where the episode ends */
    for (int which = OPC_LOG_TERMINATED; which <= OPC_LOG_TRUNCATED; which++) {
        const int column = opc_log_outcome(s->log, which);
        const double flag = cells[column];
        if (isnan(flag) && which == OPC_LOG_TRUNCATED)
            continue; /* the file has no such column */
        if (flag != 0 && flag != 1)
            return refuse(s->log, row, column, "it is neither 0 nor 1", err);
        if (flag == 1 && !last)
            return refuse(s->log, row, column, "it is 1, and the episode goes on after it", err);
    }
    return OPC_OK;
}

/* Samples are at equal intervals: those of the task's clock, or of the first two samples. */
static int check_time(struct stretch *s, size_t row, struct opc_err *err)
{
    const double now = row_at(s->log, row)[OPC_LOG_TIME];
    char why[160];
    /* A column is there for all rows or for none; the first row tells. */
    if (isnan(row_at(s->log, s->first)[OPC_LOG_TIME]))
        return OPC_OK; /* the file has no such column */
    if (!isfinite(now))
        return refuse(s->log, row, OPC_LOG_TIME, "it is empty or not a number", err);
    if (row == s->first)
        return OPC_OK;
    /* Without a clock of the task, the first two samples say how far apart samples are. */
    const double step = now - row_at(s->log, row - 1)[OPC_LOG_TIME];
    if (s->interval == 0 && step > 0)
        s->interval = step;
    if (fabs(step - s->interval) <= JITTER * s->interval && step > 0)
        return OPC_OK;
    snprintf(why, sizeof why,
             "%.9g is %.4g s after the row before it, and samples are %.4g s apart; gaps are not "
             "filled",
             now, step, s->interval);
    return refuse(s->log, row, OPC_LOG_TIME, why, err);
}

/* The last row has a state, and cells without a number for the rest. */
static int check_last(const struct stretch *s, struct opc_err *err)
{
    const double *cells = row_at(s->log, s->last);
    for (int k = opc_log_action(s->log); k < s->log->columns; k++)
        if (!isnan(cells[k]))
            return refuse(s->log, s->last, k,
                          "the last row of an episode is the state after its last step; this cell "
                          "must be empty there",
                          err);
    /* The state alone is no experience. */
    if (s->first == s->last)
        return refuse(s->log, s->last, OPC_LOG_EPISODE, "the episode has no step: a single row",
                      err);
    return OPC_OK;
}

/* ---- episodes -------------------------------------------------------------------------------- */

/* Row by row, in time order, so that the first fault of a file is the one that is named. */
static int check_episode(struct stretch *s, struct opc_err *err)
{
    OPC_TRY(check_last(s, err));
    for (size_t row = s->first; row <= s->last; row++) {
        OPC_TRY(check_time(s, row, err));
        OPC_TRY(check_state(s, row, err));
        if (row == s->last)
            break;
        OPC_TRY(check_action(s, row, err));
        OPC_TRY(check_outcome(s, row, row + 1 == s->last, err));
    }
    return OPC_OK;
}

/* Actions in [-1, 1], as the networks know them. */
static void unscale_action(const struct opc_env *env, const double *action, float *out)
{
    for (int k = 0; k < env->act; k++) {
        /* the inverse of opc_dataset_action */
        const double half = (env->high[k] - env->low[k]) / 2,
                     centre = (env->low[k] + env->high[k]) / 2;
        const double a = half > 0 ? (action[k] - centre) / half : 0;
        out[k] = (float)fmin(fmax(a, -1), 1);
    }
}

/* All rows have been checked: the past refuses none of them. */
static int append_episode(const struct stretch *s, float *action, struct opc_episodes *past,
                          struct opc_err *err)
{
    const struct opc_log_table *log = s->log;
    OPC_TRY(opc_episodes_begin(past, row_at(log, s->first) + OPC_LOG_STATE, err));
    for (size_t row = s->first; row < s->last; row++) {
        const double *cells = row_at(log, row);
        unscale_action(log->env, cells + opc_log_action(log), action);
        OPC_TRY(opc_episodes_append(past, action, cells[opc_log_outcome(log, OPC_LOG_REWARD)],
                                    row_at(log, row + 1) + OPC_LOG_STATE,
                                    cells[opc_log_outcome(log, OPC_LOG_TERMINATED)] == 1, err));
    }
    opc_episodes_close(past);
    return OPC_OK;
}

int opc_log_episodes(const struct opc_log_table *log, struct opc_episodes **out,
                     struct opc_err *err)
{
    struct opc_episodes *past = NULL;
    if (log->rows == 0)
        return opc_fail(err, OPC_EUSER, "there is no episode in %s", log->file[0]);
    if (log->rows > 1000000000)
        return opc_fail(err, OPC_EUSER, "%zu rows are more than a run can record (1e9)", log->rows);
    /* As many steps and episodes as there are rows is more than enough. */
    float *action = opc_alloc((size_t)log->act, sizeof *action);
    int code =
        action ? opc_episodes_create(log->obs, log->act, (int)log->rows, (int)log->rows, &past, err)
               : opc_fail(err, OPC_ENOMEM, "not enough memory for an action");
    /* One episode after the other; a fault in any of them refuses all. */
    for (size_t first = 0; first < log->rows && !code;) {
        struct stretch s = {
            .log = log, .first = first, .last = find_last(log, first), .interval = log->env->dt};
        code = check_episode(&s, err);
        if (!code)
            code = append_episode(&s, action, past, err);
        first = s.last + 1;
    }
    opc_free(action);
    if (code)
        opc_episodes_destroy(past);
    else
        *out = past;
    return code;
}
