/* SPDX-License-Identifier: MIT */
/* Episodes as comma-separated values: one line for each state, in time order,
 *
 *     episode,time,observation_0,...,action_0,...,reward,terminated,truncated
 *
 * where action, reward and flags are those of the step that leaves the state. The last line of an
 * episode is the state after its last step, and these cells are empty. dataset.c calls it.
 *
 * Invariant: what is written is read back to the same bits, actions that lie within their limits
 * included. */
#include "study/dataset/dataset.h"

#include "opc/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- writing --------------------------------------------------------------------------------- */

static void add_head(const struct opc_env *env, struct opc_text *out)
{
    opc_text_add(out, "episode,time");
    for (int k = 0; k < env->obs; k++)
        opc_text_addf(out, ",observation_%d", k);
    for (int k = 0; k < env->act; k++)
        opc_text_addf(out, ",action_%d", k);
    opc_text_add(out, ",reward,terminated,truncated\n");
}

/* Episode, time and state of one line. */
static void add_state(const struct opc_env *env, int b, int t, const float *state,
                      struct opc_text *out)
{
    opc_text_addf(out, "%d,", b + 1);
    opc_text_add_real(out, opc_dataset_time(env, t));
    for (int k = 0; k < env->obs; k++) {
        opc_text_add(out, ",");
        opc_text_add_float(out, state[k]);
    }
}

void opc_dataset_csv(const struct opc_episodes *past, int first, int end, const struct opc_env *env,
                     struct opc_text *out)
{
    add_head(env, out);
    for (int b = first; b < end; b++) {
        const int length = opc_episodes_length(past, b);
        /* a line for each step, ... */
        for (int t = 0; t < length; t++) {
            const struct opc_step step = opc_episodes_at(past, b, t);
            add_state(env, b, t, step.state, out);
            for (int k = 0; k < env->act; k++) {
                opc_text_add(out, ",");
                opc_text_add_real(out, opc_dataset_action(env, step.action, k));
            }
            opc_text_add(out, ",");
            opc_text_add_float(out, step.reward);
            opc_text_addf(out, ",%d,%d\n", step.terminal, t + 1 == length && !step.terminal);
        }
        /* ... and the last state, with empty cells after it */
        add_state(env, b, length, opc_episodes_at(past, b, length - 1).next, out);
        for (int k = 0; k < env->act + 3; k++)
            opc_text_add(out, ",");
        opc_text_add(out, "\n");
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

enum { CELL = 64 }; /* bytes of one cell */

struct reader {
    struct opc_log_table *log;
    int file;
    const char *at, *end; /* what is left of the text */
    size_t line;          /* the number of the current one, from 1 */
    int *column;          /* [columns] of the file: where each goes in the table */
    int columns;
};

/* Takes the next cell of the line, without spaces around it. more: a comma follows. False: it is
 * too long. */
static bool take_cell(struct reader *r, char out[CELL], bool *more)
{
    const char *from = r->at;
    /* up to the comma or the end of the line */
    while (r->at < r->end && *r->at != ',' && *r->at != '\n')
        r->at++;
    const char *to = r->at;
    *more = r->at < r->end && *r->at == ',';
    r->at += *more;
    /* what a spreadsheet or a Windows program puts around it */
    while (from < to && (*from == ' ' || *from == '\t'))
        from++;
    while (to > from && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r'))
        to--;
    const size_t n = (size_t)(to - from);
    if (n >= CELL)
        return false;
    memcpy(out, from, n);
    out[n] = '\0';
    return true;
}

static void end_line(struct reader *r)
{
    r->at += r->at < r->end; /* the newline */
    r->line++;
}

/* Where a column of this name goes; -1: nowhere. */
static int find_column(const struct opc_log_table *log, const char *name)
{
    char known[OPC_LOG_NAME];
    for (int k = OPC_LOG_EPISODE; k < log->columns; k++)
        if (strcmp(opc_log_name(log, k, known), name) == 0)
            return k;
    return -1;
}

static int refuse_head(const struct reader *r, const char *name, const char *why,
                       struct opc_err *err)
{
    return opc_fail(err, OPC_EUSER,
                    "%s: row 1, column %s: %s (observations of %s: %d, actions: %d; "
                    "docs/data.md has the columns)",
                    r->log->file[r->file], name, why, r->log->env->spec, r->log->obs, r->log->act);
}

/* The first line. Every column must be known, and none may be there twice. */
static int read_head(struct reader *r, struct opc_err *err)
{
    struct opc_log_table *log = r->log;
    char name[CELL];
    bool more = true;
    while (more) {
        if (!take_cell(r, name, &more))
            return refuse_head(r, "?", "its name is too long", err);
        /* A column that is ignored may be one that is misspelt, so an unknown one is an error. */
        const int k = find_column(log, name);
        if (k < 0)
            return refuse_head(r, *name ? name : "?", "there is no such column", err);
        for (int i = 0; i < r->columns; i++)
            if (r->column[i] == k)
                return refuse_head(r, name, "it is there twice", err);
        r->column[r->columns++] = k; /* no more than the table has, because none is there twice */
    }
    end_line(r);
    /* all are needed but episode, time and truncated */
    for (int k = OPC_LOG_STATE; k < opc_log_outcome(log, OPC_LOG_TRUNCATED); k++) {
        int i = 0;
        while (i < r->columns && r->column[i] != k)
            i++;
        if (i == r->columns)
            return refuse_head(r, opc_log_name(log, k, name), "it is missing", err);
    }
    return OPC_OK;
}

/* A number, a flag as a word, or nothing. */
static bool parse_cell(const char *text, double *out)
{
    if (!*text)
        *out = (double)NAN;
    else if (strcmp(text, "true") == 0 || strcmp(text, "True") == 0)
        *out = 1;
    else if (strcmp(text, "false") == 0 || strcmp(text, "False") == 0)
        *out = 0;
    else
        return opc_parse_real(text, out);
    return true;
}

static int read_line(struct reader *r, struct opc_err *err)
{
    double *cells = opc_log_add(r->log, r->file, r->line);
    char text[CELL], name[OPC_LOG_NAME];
    bool more = true;
    if (!cells)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to read %s", r->log->file[r->file]);
    int i = 0;
    /* Each cell goes where the head says; what is not in the file stays empty. */
    for (; more && i < r->columns; i++)
        if (!take_cell(r, text, &more) || !parse_cell(text, &cells[r->column[i]]))
            return opc_fail(err, OPC_EUSER, "%s: row %zu, column %s: '%.30s' is not a number",
                            r->log->file[r->file], r->line,
                            opc_log_name(r->log, r->column[i], name), text);
    if (more || i < r->columns)
        return opc_fail(err, OPC_EUSER, "%s: row %zu has %s cells than the %d columns of row 1",
                        r->log->file[r->file], r->line, more ? "more" : "fewer", r->columns);
    if (isnan(cells[OPC_LOG_EPISODE]))
        return opc_fail(err, OPC_EUSER, "%s: row %zu, column episode: it is empty",
                        r->log->file[r->file], r->line);
    end_line(r);
    return OPC_OK;
}

int opc_log_read_csv(struct opc_log_table *log, int file, const char *text, size_t n,
                     struct opc_err *err)
{
    struct reader r = {.log = log, .file = file, .at = text, .end = text + n, .line = 1};
    r.column = opc_alloc((size_t)log->columns, sizeof *r.column);
    int code = r.column ? read_head(&r, err)
                        : opc_fail(err, OPC_ENOMEM, "not enough memory to read a file");
    while (!code && r.at < r.end) {
        if (*r.at == '\n' || *r.at == '\r') { /* an empty line */
            while (r.at < r.end && *r.at != '\n')
                r.at++;
            end_line(&r);
            continue;
        }
        code = read_line(&r, err);
    }
    opc_free(r.column);
    return code;
}
