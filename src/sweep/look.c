/* SPDX-License-Identifier: MIT */
/* A run is the wanted one if its settings have the same checksum, up to the number of epochs: one
 * that was to have fewer can go on. */
#include "sweep/look.h"

#include "base/file.h"
#include "opc/train.h"
#include "run/rundir.h"

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
static void tell_difference(struct opc_values *there, struct opc_values *here, char *out,
                            size_t size)
{
    struct opc_part a[OPC_PARTS_MAX], b[OPC_PARTS_MAX];
    struct opc_text one = {0}, two = {0};
    int more = -1;
    const int parts = opc_config_parts(there, a);
    opc_config_parts(here, b);
    snprintf(out, size, "its settings differ");
    for (int i = 0; i < parts; i++)
        for (int k = 0; k < a[i].section->n; k++) {
            const struct opc_field *f = &a[i].section->fields[k];
            opc_text_clear(&one);
            opc_text_clear(&two);
            opc_field_print(f, a[i].values, &one);
            opc_field_print(f, b[i].values, &two);
            if (strcmp(opc_text_get(&one), opc_text_get(&two)) == 0 || more++ >= 0)
                continue;
            snprintf(out, size, "%s.%s is %.80s there and %.80s here", a[i].section->name, f->name,
                     opc_text_get(&one), opc_text_get(&two));
        }
    const size_t used = strlen(out);
    if (more > 0)
        snprintf(out + used, size - used, ", and %d more", more);
    opc_text_free(&one);
    opc_text_free(&two);
}

static void call_foreign(struct opc_look *l, const char *why)
{
    l->state = OPC_STATE_FOREIGN;
    snprintf(l->why, sizeof l->why, "%s", why);
}

/* What has no config.yaml is missing, begins in this instant, or is something else. */
static void look_at_no_run(const char *dir, struct opc_look *l)
{
    char file[OPC_RUNDIR_FILE] = "", why[sizeof l->why];
    if (opc_file_exists(dir) && !opc_is_directory(dir)) {
        call_foreign(l, "it is a file");
        return;
    }
    (void)opc_rundir_foreign_file(dir, file, NULL); /* fails without a directory */
    if (*file) {
        snprintf(why, sizeof why, "it holds no run, but %.200s", file);
        call_foreign(l, why);
    } else if (opc_rundir_is_locked(dir))
        l->state = OPC_STATE_RUNNING;
}

/* Is it the run that is wanted? If not, it is foreign. */
static bool compare_settings(const char *dir, const struct opc_values *want, struct opc_look *l)
{
    struct opc_config *config;
    struct opc_err err = {0};
    if (opc_config_of_run(dir, &config, &err)) {
        call_foreign(l, err.text);
        return false;
    }
    struct opc_values there = config->set, here = *want;
    opc_config_destroy(config);
    l->epochs = there.train.epochs;
    l->shorter = there.train.epochs < here.train.epochs;
    if (opc_config_hash(&there) == opc_config_hash(&here) &&
        there.train.epochs <= here.train.epochs)
        return true;
    if (l->shorter && opc_config_may_go_on(&there))
        there.train.epochs = here.train.epochs; /* is not what keeps them apart */
    tell_difference(&there, &here, l->why, sizeof l->why);
    l->state = OPC_STATE_FOREIGN;
    return false;
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

    /* Who made it, whatever its settings are. */
    (void)opc_rundir_meta(dir, &meta, NULL);
    snprintf(out->version, sizeof out->version, "%s", meta.version);
    snprintf(out->engine, sizeof out->engine, "%.*s", (int)sizeof out->engine - 1, meta.engine);
    if (!compare_settings(dir, want, out))
        return;

    /* How far it is. */
    opc_rundir_status(dir, &status);
    out->begun = true;
    out->epoch = status.epoch;
    out->epochs = want->train.epochs;
    out->eval_return = status.eval_return;
    out->state = status.state == OPC_RUNDIR_DIVERGED ? OPC_STATE_DIVERGED
                 : status.state == OPC_RUNDIR_FAILED ? OPC_STATE_FAILED
                                                     : OPC_STATE_INTERRUPTED;
    if (out->state != OPC_STATE_INTERRUPTED)
        memcpy(out->why, status.why, sizeof out->why);

    /* A lock or a result says more than what the run wrote last. */
    const bool whole = !out->shorter && status.result_epochs >= want->train.epochs;
    if (status.locked)
        out->state = OPC_STATE_RUNNING;
    else if (status.has_result)
        out->state = whole ? OPC_STATE_DONE : OPC_STATE_INTERRUPTED;
}

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
    opc_values_print(want, &text);
    int code = opc_text_check(&text, err);
    /* The result first, so that at no time a run counts as complete that is not. */
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
