/* SPDX-License-Identifier: MIT */
/* A run in one line (run/files/summary.h): its state, settings that name it, steps, returns, time.
 *
 * Lists have up to ten thousand runs, so each file is read once, whole, and looked through without
 * building a table: only the cells that count are parsed. Invariant: the numbers are those which
 * run/files/rundir.h would give, whatever is missing or being written. */
#include "run/files/summary.h"

#include "base/file.h"
#include "opc/mem.h"
#include "run/files/json.h"
#include "run/files/rundir.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_BYTES = 1 << 30, MAX_CONFIG = 1000000 };

const char *opc_summary_state_name(enum opc_summary_state state)
{
    static const char *const NAME[OPC_SUMMARY_STATES] = {
        "running", "done", "stopped", "interrupted", "diverged", "failed", "begun"};
    return NAME[state];
}

/* ---- settings -------------------------------------------------------------------------------- */

int opc_summary_defaults(struct opc_values *out, struct opc_err *err)
{
    struct opc_config *config;
    OPC_TRY(opc_config_create(&config, err));
    *out = config->set;
    opc_config_destroy(config);
    return OPC_OK;
}

/* The file dir/name; NULL if it cannot be read. */
static char *read_text(const char *dir, const char *name, size_t max)
{
    char path[OPC_PATH], *text;
    return opc_path_join(path, dir, name, NULL) || opc_file_read(path, max, &text, NULL, NULL)
               ? NULL
               : text;
}

/* Task, method, seed and epochs as config.yaml has them. What cannot be read stays unknown. */
static void read_settings(const char *dir, const struct opc_values *defaults,
                          struct opc_summary *out)
{
    static const char *const KEY[] = {"env.name",
                                      "train.seed",
                                      "train.epochs",
                                      "train.agent",
                                      "train.steps_per_epoch",
                                      "train.improve_every",
                                      "opc.transition"};
    struct opc_values values = *defaults;
    char *text = read_text(dir, "config.yaml", MAX_CONFIG);
    const bool scanned = text && opc_values_scan(text, sizeof KEY / sizeof *KEY, KEY, &values);
    opc_free(text);
    /* A file that was edited, or is older than one of the names, is read in full. */
    if (!scanned) {
        struct opc_config *config;
        if (opc_config_of_run(dir, &config, NULL))
            return;
        values = config->set;
        opc_config_destroy(config);
    }
    snprintf(out->task, sizeof out->task, "%s", values.env.name);
    out->seed = values.train.seed;
    out->epochs = values.train.epochs;
    out->method = opc_method_label(&values);
    out->colour = opc_method_colour(&values);
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* The next whole line, which becomes a string of its own; NULL: none is left. What comes after the
 * last newline may be being written. */
static char *next_line(char **at)
{
    char *line = *at, *end = strchr(line, '\n');
    if (!end)
        return NULL;
    *end = '\0';
    *at = end + 1;
    return line;
}

/* The number in a column, counted from 0; NaN where there is none, or no such column (-1). */
static double number_at(const char *line, int column)
{
    char cell[OPC_PRINTED];
    double v;
    for (int i = 0; i < column && line; i++) {
        line = strchr(line, ',');
        line = line ? line + 1 : NULL;
    }
    const size_t n = line ? strcspn(line, ",") : 0;
    if (column < 0 || n == 0 || n >= sizeof cell)
        return (double)NAN;
    snprintf(cell, sizeof cell, "%.*s", (int)n, line);
    return opc_parse_real(cell, &v) && isfinite(v) ? v : (double)NAN;
}

/* Steps and returns of metrics.csv. */
static void read_metrics(const char *dir, struct opc_summary *out)
{
    char *text = read_text(dir, "metrics.csv", MAX_BYTES), *at = text, *last = NULL;
    const char *head = text ? next_line(&at) : NULL;
    if (head) {
        const int value = opc_rundir_head_find(head, "eval_return", NULL);
        const int epoch = opc_rundir_head_find(head, "epoch", NULL);
        for (char *line; (line = next_line(&at)); last = line) {
            out->rows++;
            /* An epoch without an evaluation has an empty cell. */
            const double v = number_at(line, value);
            if (isnan(v))
                continue;
            out->last = v;
            /* The first of equal returns is the best, as for policy-best.opc. */
            if (isnan(out->best) || v > out->best) {
                const double e = epoch < 0 ? out->rows : number_at(line, epoch);
                out->best = v;
                out->best_epoch = e >= 1 && e <= 1e9 ? (int)e : 0;
            }
        }
        if (last) {
            out->steps = number_at(last, opc_rundir_head_find(head, "env_steps", NULL));
            out->all_steps = number_at(last, opc_rundir_head_find(head, "total_steps", NULL));
        }
    }
    opc_free(text);
}

/* Seconds of all processes that worked on the run, and the number of epochs they took. */
static double read_seconds(const char *dir, int *epochs)
{
    char *text = read_text(dir, "timing.csv", MAX_BYTES), *at = text;
    const char *head = text ? next_line(&at) : NULL;
    double sum = 0;
    *epochs = 0;
    if (head) {
        const int column = opc_rundir_head_find(head, "epoch_s", NULL);
        for (char *line; (line = next_line(&at));) {
            const double v = number_at(line, column);
            sum += isnan(v) ? 0 : v;
            *epochs += !isnan(v);
        }
    }
    opc_free(text);
    return sum;
}

/* ---- state ----------------------------------------------------------------------------------- */

/* The lock and the result are newer than status.json, which a killed process leaves as it was. */
static enum opc_summary_state state_of(const char *dir, const struct opc_rundir_status *status)
{
    if (status->locked)
        return OPC_SUMMARY_RUNNING;
    if (status->has_result)
        return OPC_SUMMARY_DONE;
    switch (status->state) {
    case OPC_RUNDIR_STOPPED: return OPC_SUMMARY_STOPPED;
    case OPC_RUNDIR_DIVERGED: return OPC_SUMMARY_DIVERGED;
    case OPC_RUNDIR_FAILED: return OPC_SUMMARY_FAILED;
    default:
        return opc_rundir_has(dir, "status.json") ? OPC_SUMMARY_INTERRUPTED : OPC_SUMMARY_BEGUN;
    }
}

void opc_summary_read(const char *dir, const struct opc_values *defaults, struct opc_summary *out)
{
    struct opc_rundir_status status;
    const double none = (double)NAN;
    int timed;
    *out = (struct opc_summary){
        .steps = none, .all_steps = none, .last = none, .best = none, .left = none};
    opc_rundir_status(dir, &status);
    read_settings(dir, defaults, out);
    read_metrics(dir, out);
    out->spent = read_seconds(dir, &timed);
    out->state = state_of(dir, &status);
    out->epoch = status.epoch;
    snprintf(out->host, sizeof out->host, "%s", status.host);
    /* The reason belongs to the last process; one that works now has none. Of a run that was
     * stopped before it did anything the reason is the state once more. */
    if (!status.locked && !status.has_result &&
        strcmp(status.why, opc_summary_state_name(out->state)) != 0)
        memcpy(out->why, status.why, sizeof out->why);
    /* Time left, if each epoch that is missing takes as long as the mean of the complete ones. */
    if (status.has_result && !status.locked)
        out->left = 0;
    else if (timed > 0 && out->epochs >= out->epoch)
        out->left = out->spent / timed * (out->epochs - out->epoch);
}

double opc_summary_speed(const struct opc_summary *s)
{
    return s->spent > 0 ? s->all_steps / s->spent : (double)NAN;
}

/* ---- many ------------------------------------------------------------------------------------ */

struct reading {
    char *const *dir;
    const struct opc_values *defaults;
    struct opc_summary *out;
};

static void read_chunk(void *ctx, int first, int end, int worker)
{
    const struct reading *r = ctx;
    (void)worker;
    for (int i = first; i < end; i++)
        opc_summary_read(r->dir[i], r->defaults, &r->out[i]);
}

int opc_summaries_read(int n, char *const dir[], struct opc_pool *pool, struct opc_summary *out,
                       struct opc_err *err)
{
    struct opc_values *defaults = opc_alloc(1, sizeof *defaults);
    if (!defaults)
        return opc_fail(err, OPC_ENOMEM, "out of memory for the runs");
    const int code = opc_summary_defaults(defaults, err);
    struct reading r = {dir, defaults, out};
    if (!code)
        opc_pool_each(pool, n, 16, read_chunk, &r);
    opc_free(defaults);
    return code;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* , "key": value; a number that is not known is null. */
static void add_number(struct opc_text *text, const char *key, double value)
{
    opc_text_addf(text, ", \"%s\": ", key);
    if (isfinite(value))
        opc_text_add_real(text, value);
    else
        opc_text_add(text, "null");
}

static void add_string(struct opc_text *text, const char *key, const char *value)
{
    opc_text_addf(text, ", \"%s\": ", key);
    opc_json_add_quoted(text, value);
}

void opc_summary_json(const struct opc_summary *s, struct opc_text *text)
{
    const double none = (double)NAN;
    const bool known = *s->task;
    opc_text_addf(text, "\"state\": \"%s\"", opc_summary_state_name(s->state));
    add_string(text, "why", s->why);
    add_string(text, "task", s->task);
    add_string(text, "method", s->method ? s->method : "");
    /* Seed and epochs come from the same file: without it both are unknown. */
    add_number(text, "seed", known ? s->seed : none);
    add_number(text, "epoch", s->epoch);
    add_number(text, "epochs", s->epochs ? s->epochs : none);
    add_number(text, "env_steps", s->steps);
    add_number(text, "total_steps", s->all_steps);
    add_number(text, "eval_return", s->last);
    add_number(text, "best_return", s->best);
    add_number(text, "best_epoch", s->best_epoch ? s->best_epoch : none);
    add_number(text, "steps_per_s", opc_summary_speed(s));
    add_string(text, "host", s->host);
    add_number(text, "spent_s", s->spent);
    add_number(text, "remaining_s", s->left);
}
