/* SPDX-License-Identifier: MIT */
/* Shows how the runs of a sweep are: what their directories say, joined with what a cluster has in
 * its queue and which machine has claimed them. Called by `opc sweep FILE status`.
 *
 * Invariant: nothing is started and nothing written. A scheduler that does not answer is a warning:
 * the directories tell the rest. */
#include "cli/sweep/status.h"

#include "base/log.h"
#include "opc/mem.h"
#include "run/files/json.h"
#include "sweep/claim.h"
#include "sweep/handover.h"
#include "sweep/schedule.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A run: what is known of it. */
struct entry {
    struct opc_look look;
    bool queued;             /* a cluster has it and it does not run yet */
    struct opc_queued place; /* in its queue; job "": it is not in it */
    char host[OPC_HOST];     /* that has claimed it; "": none */
    double seconds;          /* of computing so far, over all sessions */
    char dir[OPC_PATH];
};

static const char *state_of(const struct entry *e)
{
    return e->queued ? "queued" : opc_state_name(e->look.state);
}

/* What the cluster knows changes what the directory says: an interrupted run may be on its way. */
static void join_queue(struct entry *e)
{
    const enum opc_state state = e->look.state;
    if (!*e->place.job || state == OPC_STATE_DONE || state == OPC_STATE_RUNNING ||
        state == OPC_STATE_FOREIGN || state == OPC_STATE_DIVERGED)
        return;
    /* The lock of a run may not be visible from here; its claim is. Of several runs of one task
     * only the one that is worked on is claimed. */
    e->queued = strcmp(e->place.state, "PENDING") == 0 || !*e->host;
    if (!e->queued)
        e->look.state = OPC_STATE_RUNNING;
    *e->look.why = '\0'; /* of an earlier attempt */
}

static int read_entries(const struct opc_sweep *sweep, const char *out, struct entry *entry,
                        struct opc_err *err)
{
    struct opc_waiting waiting = {0};
    struct opc_err silent = {0};
    bool open = false;
    for (int i = 0; i < sweep->tasks; i++) {
        struct entry *e = &entry[i];
        int epochs;
        OPC_TRY(opc_schedule_path(out, &sweep->task[i], "", e->dir, err));
        opc_schedule_look(out, &sweep->task[i], &e->look);
        if (e->look.begun)
            e->seconds = opc_look_seconds(e->dir, &epochs);
        if (e->look.state != OPC_STATE_DONE)
            opc_claim_host(out, sweep->task[i].name, e->host);
        open = open || e->look.state != OPC_STATE_DONE;
    }
    /* Nothing is asked of the cluster when all is done. */
    if (open && opc_waiting_read(out, sweep, &waiting, &silent))
        opc_log(OPC_LEVEL_WARN, "%s; what follows is what the directories say", silent.text);
    for (int i = 0; i < sweep->tasks; i++) {
        if (waiting.of)
            entry[i].place = waiting.of[i];
        join_queue(&entry[i]);
    }
    opc_waiting_free(&waiting);
    return OPC_OK;
}

/* ---- for people ------------------------------------------------------------------------------ */

/* Why, where and in which job: what follows in the line of a run. */
static void print_remarks(const struct entry *e)
{
    const char *gap = "  ";
    if (*e->look.why) {
        printf("%s%s", gap, e->look.why);
        gap = ", ";
    }
    if (*e->place.job) {
        printf("%sjob %s", gap, e->place.job);
        if (e->queued && *e->place.reason)
            printf(" (%s)", e->place.reason);
        gap = ", ";
    }
    if (*e->host && e->look.state == OPC_STATE_RUNNING)
        printf("%son %s", gap, e->host);
    else if (*e->host)
        printf("%sclaimed by %s", gap, e->host);
    putchar('\n');
}

void opc_sweep_versions_print(const struct opc_versions *versions)
{
    struct opc_text text = {0};
    opc_versions_compare(versions, &text);
    if (text.used)
        puts(opc_text_get(&text));
    opc_text_free(&text);
}

/* What has made the runs, where it is not this program alone. */
static void print_versions(const struct opc_sweep *sweep, const struct entry *entry)
{
    struct opc_versions versions = {0};
    for (int i = 0; i < sweep->tasks; i++)
        if (entry[i].look.begun)
            opc_versions_note(&versions, entry[i].look.version, entry[i].look.revision);
    opc_sweep_versions_print(&versions);
}

/* The sum: number of runs, time spent, and how many are in each state. */
static void print_sum(const struct opc_sweep *sweep, const char *out, const struct entry *entry)
{
    int counts[OPC_STATE_FOREIGN + 1] = {0}, queued = 0;
    double all = 0;
    char took[OPC_PRINTED];
    for (int i = 0; i < sweep->tasks; i++) {
        all += entry[i].seconds;
        queued += entry[i].queued;
        counts[entry[i].look.state] += !entry[i].queued;
    }
    printf("%d run%s in %s", sweep->tasks, sweep->tasks == 1 ? "" : "s", out);
    opc_print_duration(all, took);
    if (all > 0)
        printf(", %s of computing", took);
    putchar(':');
    /* States that no run is in are left out. */
    const char *comma = "";
    for (int k = 0; k <= OPC_STATE_FOREIGN; k++)
        if (counts[k]) {
            printf("%s %d %s", comma, counts[k], opc_state_name((enum opc_state)k));
            comma = ",";
        }
    if (queued)
        printf("%s %d queued", comma, queued);
    putchar('\n');
}

/* One line for each run, and counts of each state below. */
static void print_table(const struct opc_sweep *sweep, const char *out, const struct entry *entry)
{
    int wide = 4;
    for (int i = 0; i < sweep->tasks; i++)
        if ((int)strlen(sweep->task[i].name) > wide)
            wide = (int)strlen(sweep->task[i].name);
    /* The first column is as wide as the longest name. */
    printf("%-*s  %-11s  %9s  %10s  %12s\n", wide, "run", "state", "epoch", "return", "time");
    for (int i = 0; i < sweep->tasks; i++) {
        const struct entry *e = &entry[i];
        /* "-" where the run has nothing to say yet. */
        char epoch[32] = "-", value[32] = "-", took[OPC_PRINTED] = "-";
        if (e->look.begun) {
            snprintf(epoch, sizeof epoch, "%d/%d", e->look.epoch, e->look.epochs);
            opc_print_duration(e->seconds, took);
        }
        if (e->look.begun && !isnan(e->look.eval_return))
            snprintf(value, sizeof value, "%.4g", e->look.eval_return);
        printf("%-*s  %-11s  %9s  %10s  %12s", wide, sweep->task[i].name, state_of(e), epoch, value,
               took);
        print_remarks(e);
    }
    print_sum(sweep, out, entry);
    print_versions(sweep, entry);
}

/* ---- for programs ---------------------------------------------------------------------------- */

static void add_text(struct opc_text *text, const char *key, const char *value)
{
    opc_text_addf(text, ", \"%s\": ", key);
    opc_json_add_quoted(text, value);
}

/* A number that is not known is null. */
static void add_number(struct opc_text *text, const char *key, double value)
{
    opc_text_addf(text, ", \"%s\": ", key);
    if (isfinite(value))
        opc_text_add_real(text, value);
    else
        opc_text_add(text, "null");
}

static int print_json(const struct opc_sweep *sweep, int i, const struct entry *e,
                      struct opc_err *err)
{
    const struct opc_task *task = &sweep->task[i];
    struct opc_text text = {0};
    opc_text_addf(&text, "{\"index\": %d", task->index);
    add_text(&text, "name", task->name);
    add_text(&text, "run", e->dir);
    add_text(&text, "state", state_of(e));
    add_text(&text, "why", e->look.why);
    add_number(&text, "epoch", e->look.epoch);
    add_number(&text, "epochs", e->look.epochs);
    add_number(&text, "eval_return", e->look.begun ? e->look.eval_return : (double)NAN);
    add_number(&text, "spent_s", e->seconds);
    add_text(&text, "job", e->place.job);
    add_text(&text, "job_state", e->place.state);
    add_text(&text, "host", e->host);
    add_text(&text, "version", e->look.version);
    add_text(&text, "revision", e->look.revision);
    /* The values that make it this run. */
    opc_text_add(&text, ", \"settings\": {");
    for (int k = 0; k < sweep->keys; k++) {
        opc_text_add(&text, k ? ", " : "");
        opc_json_add_quoted(&text, sweep->vary[k].key);
        opc_text_add(&text, ": ");
        opc_json_add_quoted(&text, opc_task_value(sweep, task, k));
    }
    opc_text_add(&text, "}}");
    const int code = opc_text_check(&text, err);
    if (!code)
        puts(opc_text_get(&text));
    opc_text_free(&text);
    return code;
}

/* ---------------------------------------------------------------------------------------------- */

int opc_sweep_status_show(const struct opc_sweep *sweep, const char *out, bool json,
                          struct opc_err *err)
{
    struct entry *entry = opc_alloc((size_t)sweep->tasks + 1, sizeof *entry);
    if (!entry)
        return opc_fail(err, OPC_ENOMEM, "out of memory for the state of %d runs", sweep->tasks);
    int code = read_entries(sweep, out, entry, err);
    for (int i = 0; i < sweep->tasks && json && !code; i++)
        code = print_json(sweep, i, &entry[i], err);
    if (!code && !json)
        print_table(sweep, out, entry);
    opc_free(entry);
    return code;
}
