/* SPDX-License-Identifier: MIT */
#include "sweep/look.h"

#include "base/file.h"
#include "opc/mem.h"
#include "opc/train.h"
#include "run/json.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { MOST_BYTES = 200000000 };

const char *opc_state_name(enum opc_state state)
{
    static const char *const NAME[] = {"missing",  "done",   "running", "interrupted",
                                       "diverged", "failed", "foreign"};
    return NAME[state];
}

static bool exists(const char *dir, const char *name)
{
    char path[OPC_PATH];
    return !opc_path_join(path, dir, name, NULL) && opc_file_exists(path);
}

bool opc_look_locked(const char *dir)
{
    char path[OPC_PATH];
    const int fd = opc_path_join(path, dir, ".lock", NULL) ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return false;
    /* Shared, and for an instant: a run that starts in this very instant is refused, and whoever
     * started it has to try again (schedule.c does). */
    const bool locked = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return locked;
}

/* Has it something that opc train would not take for the remains of a killed start? */
static bool is_occupied(const char *dir, char *name, size_t size)
{
    DIR *d = opendir(dir);
    bool found = false;
    for (struct dirent *e; d && !found && (e = readdir(d));) {
        const size_t n = strlen(e->d_name);
        found = e->d_name[0] != '.' && !(n > 4 && strcmp(e->d_name + n - 4, ".tmp") == 0);
        if (found)
            snprintf(name, size, "%s", e->d_name);
    }
    if (d)
        closedir(d);
    return found;
}

static struct opc_json_value *read_json(const char *dir, const char *name)
{
    char path[OPC_PATH];
    struct opc_json_value *j = NULL;
    if (opc_path_join(path, dir, name, NULL) || opc_json_read(path, &j, NULL))
        return NULL;
    return j;
}

static const char *get_text(const struct opc_json_value *j, const char *key)
{
    const char *text = j ? opc_json_string(opc_json_find(j, key)) : NULL;
    return text ? text : "";
}

static double get_real(const struct opc_json_value *j, const char *key)
{
    double v;
    return j && opc_json_number(opc_json_find(j, key), &v) ? v : (double)NAN;
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

static void foreign(struct opc_look *l, const char *why)
{
    l->state = OPC_STATE_FOREIGN;
    snprintf(l->why, sizeof l->why, "%s", why);
}

/* Is it the run that is wanted? */
static bool compare(const char *dir, const struct opc_values *want, struct opc_look *l)
{
    struct opc_config *config;
    struct opc_err err = {0};
    if (opc_config_of_run(dir, &config, &err)) {
        foreign(l, err.text);
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
    *out = (struct opc_look){.eval_return = (double)NAN, .epochs = want->train.epochs};
    char name[256], why[sizeof out->why];
    if (!exists(dir, "config.yaml")) {
        if (opc_file_exists(dir) && !opc_is_directory(dir))
            foreign(out, "it is a file");
        else if (is_occupied(dir, name, sizeof name)) {
            snprintf(why, sizeof why, "it holds no run, but %.200s", name);
            foreign(out, why);
        } else if (opc_look_locked(dir))
            out->state = OPC_STATE_RUNNING;
        return;
    }
    struct opc_json_value *j = read_json(dir, "meta.json");
    snprintf(out->version, sizeof out->version, "%s", get_text(j, "opc"));
    snprintf(out->engine, sizeof out->engine, "%s", get_text(j, "engine"));
    opc_json_free(j);
    if (!compare(dir, want, out))
        return;

    out->begun = true;
    j = read_json(dir, "status.json");
    const double epoch = get_real(j, "epoch");
    const char *state = get_text(j, "state");
    out->epoch = epoch > 0 ? (int)epoch : 0;
    out->eval_return = get_real(j, "eval_return");
    out->state = OPC_STATE_INTERRUPTED;
    if (strcmp(state, "diverged") == 0)
        out->state = OPC_STATE_DIVERGED;
    if (strcmp(state, "failed") == 0)
        out->state = OPC_STATE_FAILED;
    if (out->state != OPC_STATE_INTERRUPTED)
        snprintf(out->why, sizeof out->why, "%s", get_text(j, "why"));
    opc_json_free(j);

    if (opc_look_locked(dir)) {
        out->state = OPC_STATE_RUNNING;
    } else if (exists(dir, "result.json")) {
        j = read_json(dir, "result.json");
        const bool whole = !out->shorter && get_real(j, "epochs") >= want->train.epochs;
        opc_json_free(j);
        out->state = whole ? OPC_STATE_DONE : OPC_STATE_INTERRUPTED;
    }
    out->epochs = want->train.epochs;
}

double opc_look_seconds(const char *dir, int *epochs)
{
    char path[OPC_PATH], *text;
    double sum = 0;
    int column = -1;
    *epochs = 0;
    if (opc_path_join(path, dir, "timing.csv", NULL) ||
        opc_file_read(path, MOST_BYTES, &text, NULL, NULL))
        return 0;
    const char *head = strstr(text, ",epoch_s,"), *end = strchr(text, '\n');
    if (head && end && head < end) {
        column = 1;
        for (const char *c = text; c < head; c++)
            column += *c == ',';
    }
    /* Whole lines only: the last may be being written. */
    for (const char *line = end ? end + 1 : ""; column > 0 && (end = strchr(line, '\n'));
         line = end + 1) {
        const char *cell = line;
        for (int k = 0; k < column && cell; k++)
            if ((cell = memchr(cell, ',', (size_t)(end - cell))))
                cell++;
        char number[OPC_PRINTED];
        double v;
        if (!cell)
            continue;
        snprintf(number, sizeof number, "%.*s", (int)strcspn(cell, ",\n"), cell);
        if (opc_parse_real(number, &v) && isfinite(v)) {
            sum += v;
            ++*epochs;
        }
    }
    opc_free(text);
    return sum;
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
