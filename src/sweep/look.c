/* SPDX-License-Identifier: MIT */
/* Compares what a directory holds with the run that a sweep wants. schedule.c asks before it starts
 * a run and after one has ended; `opc sweep status` and `opc repro` ask to report.
 *
 * Invariant: a directory is foreign, and never touched, unless its settings have the checksum of
 * the wanted ones. The number of epochs may be smaller: such a run can be continued. */
#include "sweep/look.h"

#include "base/file.h"
#include "opc/train.h"
#include "run/files/rundir.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *opc_state_name(enum opc_state state)
{
    static const char *const NAME[] = {"missing",  "done",   "running", "interrupted",
                                       "diverged", "failed", "foreign"};
    return NAME[state];
}

/* "opc.horizon is [5] there and [10] here, and 2 more differ" */
static void describe_difference(struct opc_values *there, struct opc_values *here, char *out,
                                size_t size)
{
    /* Settings are compared as they are printed: the first that differs is named, the others
     * counted. */
    struct opc_part there_parts[OPC_PARTS_MAX], here_parts[OPC_PARTS_MAX];
    struct opc_text there_text = {0}, here_text = {0};
    int more = -1;
    const int parts = opc_config_parts(there, there_parts);
    opc_config_parts(here, here_parts);
    snprintf(out, size, "its settings differ");
    for (int i = 0; i < parts; i++)
        for (int k = 0; k < there_parts[i].section->n; k++) {
            const struct opc_field *field = &there_parts[i].section->fields[k];
            if (!opc_config_counts(there_parts[i].section, field))
                continue;
            opc_text_clear(&there_text);
            opc_text_clear(&here_text);
            opc_field_print(field, there_parts[i].values, &there_text);
            opc_field_print(field, here_parts[i].values, &here_text);
            if (strcmp(opc_text_get(&there_text), opc_text_get(&here_text)) == 0 || more++ >= 0)
                continue;
            snprintf(out, size, "%s.%s is %.80s there and %.80s here", there_parts[i].section->name,
                     field->name, opc_text_get(&there_text), opc_text_get(&here_text));
        }
    const size_t used = strlen(out);
    if (more > 0)
        snprintf(out + used, size - used, ", and %d more", more);
    opc_text_free(&there_text);
    opc_text_free(&here_text);
}

static void mark_foreign(struct opc_look *look, const char *why)
{
    look->state = OPC_STATE_FOREIGN;
    snprintf(look->why, sizeof look->why, "%s", why);
}

/* A directory without config.yaml: the run is missing, or is starting in this instant, or the
 * directory holds something else. */
static void look_at_no_run(const char *dir, struct opc_look *look)
{
    char file[OPC_RUNDIR_FILE] = "", why[sizeof look->why];
    if (opc_file_exists(dir) && !opc_is_directory(dir)) {
        mark_foreign(look, "it is a file");
        return;
    }
    (void)opc_rundir_foreign_file(dir, file, NULL); /* fails without a directory */
    if (*file) {
        snprintf(why, sizeof why, "it holds no run, but %.200s", file);
        mark_foreign(look, why);
    } else if (opc_rundir_is_locked(dir))
        look->state = OPC_STATE_RUNNING;
}

/* Is it the wanted run? If not, it is marked as foreign, with the reason. */
static bool compare_settings(const char *dir, const struct opc_values *want, struct opc_look *look)
{
    struct opc_config *config;
    struct opc_err err = {0};
    if (opc_config_of_run(dir, &config, &err)) {
        mark_foreign(look, err.text);
        return false;
    }
    /* The number of epochs alone may differ, and only in one direction. */
    struct opc_values there = config->set, here = *want;
    opc_config_destroy(config);
    look->epochs = there.train.epochs;
    look->shorter = there.train.epochs < here.train.epochs;
    /* A file that was not there when the settings were read (struct opc_sweep_ask, no_runs) is
     * taken for the one that the run began with. */
    if (*here.train.prefill && !*here.train.prefill_checksum) {
        memcpy(here.train.prefill, there.train.prefill, sizeof here.train.prefill);
        memcpy(here.train.prefill_checksum, there.train.prefill_checksum,
               sizeof here.train.prefill_checksum);
    }
    if (opc_config_hash(&there) == opc_config_hash(&here) &&
        there.train.epochs <= here.train.epochs)
        return true;
    /* The difference to report is in another setting than the number of epochs. */
    if (look->shorter && opc_config_may_go_on(&there))
        there.train.epochs = here.train.epochs; /* is not what keeps them apart */
    describe_difference(&there, &here, look->why, sizeof look->why);
    look->state = OPC_STATE_FOREIGN;
    return false;
}

/* Without one, as in a run that was restored from a table, nothing can go on. */
static bool has_checkpoint(const char *dir)
{
    return opc_rundir_has(dir, "checkpoints/a.opc") || opc_rundir_has(dir, "checkpoints/b.opc");
}

void opc_look(const char *dir, const struct opc_values *want, struct opc_look *out)
{
    struct opc_rundir_meta meta;
    struct opc_rundir_status status;
    *out = (struct opc_look){.eval_return = (double)NAN, .epochs = want->train.epochs};
    if (!opc_rundir_has(dir, "config.yaml")) {
        look_at_no_run(dir, out);
        return;
    }

    /* The program that began it, whatever its settings are. */
    (void)opc_rundir_meta(dir, &meta, NULL);
    memcpy(out->version, meta.version, sizeof out->version);
    memcpy(out->revision, meta.revision, sizeof out->revision);
    snprintf(out->engine, sizeof out->engine, "%.*s", (int)sizeof out->engine - 1, meta.engine);
    if (!compare_settings(dir, want, out))
        return;

    /* How far it is, as the run itself wrote last. */
    opc_rundir_status(dir, &status);
    if (out->shorter && status.has_result && !has_checkpoint(dir)) {
        out->state = OPC_STATE_FOREIGN;
        snprintf(out->why, sizeof out->why,
                 "it has results of %d epochs and no checkpoint to go on from",
                 status.result_epochs);
        return;
    }
    out->begun = true;
    out->epoch = status.epoch;
    out->epochs = want->train.epochs;
    out->eval_return = status.eval_return;
    out->state = status.state == OPC_RUNDIR_DIVERGED ? OPC_STATE_DIVERGED
                 : status.state == OPC_RUNDIR_FAILED ? OPC_STATE_FAILED
                                                     : OPC_STATE_INTERRUPTED;
    if (out->state != OPC_STATE_INTERRUPTED)
        memcpy(out->why, status.why, sizeof out->why);

    /* The lock and the result are newer than status.json: a process that was killed could not write
     * it any more. */
    /* A result of fewer epochs than wanted is a run that can be continued. */
    const bool whole = !out->shorter && status.result_epochs >= want->train.epochs;
    if (status.locked)
        out->state = OPC_STATE_RUNNING;
    else if (status.has_result)
        out->state = whole ? OPC_STATE_DONE : OPC_STATE_INTERRUPTED;
}

/* timing.csv is kept from process to process, so an interrupted run counts what it has done. */
double opc_look_seconds(const char *dir, int *epochs)
{
    struct opc_rundir_seconds seconds;
    opc_rundir_seconds(dir, &seconds);
    *epochs = seconds.epochs;
    return seconds.total;
}

int opc_look_raise(const char *dir, const struct opc_values *want, struct opc_err *err)
{
    char path[OPC_PATH];
    struct opc_text text = {0};
    if (!has_checkpoint(dir) && opc_rundir_has(dir, "result.json"))
        return opc_fail(err, OPC_EUSER,
                        "%s has results but no checkpoint to go on from; train it again in another "
                        "directory",
                        dir);
    opc_values_print(want, &text);
    int code = opc_text_check(&text, err);
    /* The result goes first, so that an incomplete run counts as complete at no time. */
    if (!code)
        code = opc_path_join(path, dir, "result.json", err);
    if (!code && unlink(path) && errno != ENOENT)
        code = opc_fail_errno(err, errno, "cannot remove %s", path);
    if (!code)
        code = opc_path_join(path, dir, "config.yaml", err);
    if (!code)
        code = opc_file_write(path, opc_text_get(&text), text.used, err);
    opc_text_free(&text);
    return code;
}
