/* SPDX-License-Identifier: MIT */
/* Nothing is remembered between two calls: each reads the files as they are at that time. */
#include "run/rundir.h"

#include "base/file.h"
#include "base/text.h"
#include "opc/mem.h"
#include "run/config.h"
#include "run/json.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_TABLE_BYTES = 1 << 30 };

/* ---- the directory --------------------------------------------------------------------------- */

bool opc_rundir_is_run(const char *dir)
{
    char path[OPC_PATH];
    struct stat st;
    return !opc_path_join(path, dir, "config.yaml", NULL) && stat(path, &st) == 0;
}

bool opc_rundir_has(const char *dir, const char *name)
{
    char path[OPC_PATH];
    return opc_path_join(path, dir, name, NULL) || opc_file_exists(path);
}

bool opc_rundir_is_locked(const char *dir)
{
    char path[OPC_PATH];
    const int fd = opc_path_join(path, dir, ".lock", NULL) ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return false;
    /* Shared, and for an instant: a run that starts in this very instant is refused, and whoever
     * started it has to try again (sweep/schedule.c does). */
    const bool locked = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return locked;
}

int opc_rundir_foreign_file(const char *dir, char name[OPC_RUNDIR_FILE], struct opc_err *err)
{
    DIR *d = opendir(dir);
    name[0] = '\0';
    if (!d)
        return opc_fail_errno(err, errno, "cannot read %s", dir);
    for (struct dirent *e; !*name && (e = readdir(d));) {
        const size_t n = strlen(e->d_name);
        /* A killed start leaves its lock and half-written files. */
        const bool remains = e->d_name[0] == '.' || (n > 4 && !strcmp(e->d_name + n - 4, ".tmp"));
        if (!remains)
            snprintf(name, OPC_RUNDIR_FILE, "%s", e->d_name);
    }
    closedir(d);
    return OPC_OK;
}

int opc_config_of_run(const char *dir, struct opc_config **out, struct opc_err *err)
{
    char path[OPC_PATH];
    int code = opc_path_join(path, dir, "config.yaml", err);
    if (!code && !opc_file_exists(path))
        code =
            opc_fail(err, OPC_EUSER,
                     "there is no run in %s: it has no config.yaml; 'opc train' starts one", dir);
    if (!code)
        code = opc_config_load(path, out, err);
    /* A run that is older than this setting had all of the past, whatever the default is today. */
    if (!code && !opc_sources_sets((*out)->from, 0, "opc.reference_epochs")) {
        code = opc_config_set(*out, "opc.reference_epochs=0", err);
        if (code)
            opc_config_destroy(*out);
    }
    return code;
}

/* ---- status.json, result.json, meta.json ----------------------------------------------------- */

/* *out is NULL if the file cannot be read, which is an error only for lack of memory. */
static int read_json(const char *dir, const char *name, struct opc_json_value **out,
                     struct opc_err *err)
{
    char path[OPC_PATH];
    *out = NULL;
    int code = opc_path_join(path, dir, name, err);
    if (!code)
        code = opc_json_read(path, out, err);
    return code == OPC_ENOMEM ? code : OPC_OK;
}

static void copy_text(const struct opc_json_value *object, const char *key, char *out, size_t size)
{
    const char *text = object ? opc_json_string(opc_json_find(object, key)) : NULL;
    snprintf(out, size, "%s", text ? text : "");
}

static double get_number(const struct opc_json_value *object, const char *key)
{
    double v;
    return object && opc_json_number(opc_json_find(object, key), &v) ? v : (double)NAN;
}

/* A count from 1 to max; anything else is 0. */
static int get_count(const struct opc_json_value *object, const char *key, int max)
{
    const double v = get_number(object, key);
    return v >= 1 && v <= max ? (int)v : 0;
}

static enum opc_rundir_state state_of(const char *word)
{
    static const char *const WORD[] = {
        [OPC_RUNDIR_RUNNING] = "running", [OPC_RUNDIR_DONE] = "done",
        [OPC_RUNDIR_STOPPED] = "stopped", [OPC_RUNDIR_DIVERGED] = "diverged",
        [OPC_RUNDIR_FAILED] = "failed",
    };
    for (int i = OPC_RUNDIR_RUNNING; i <= OPC_RUNDIR_FAILED; i++)
        if (strcmp(word, WORD[i]) == 0)
            return (enum opc_rundir_state)i;
    return OPC_RUNDIR_UNKNOWN;
}

void opc_rundir_status(const char *dir, struct opc_rundir_status *out)
{
    struct opc_json_value *j;
    char state[16];
    *out = (struct opc_rundir_status){0};

    (void)read_json(dir, "status.json", &j, NULL);
    copy_text(j, "state", state, sizeof state);
    copy_text(j, "why", out->why, sizeof out->why);
    out->state = state_of(state);
    out->epoch = get_count(j, "epoch", INT_MAX);
    out->eval_return = get_number(j, "eval_return");
    opc_json_free(j);

    /* The result after the lock: a run that ends between the two has its result by then, and is not
     * taken for one that was interrupted. */
    out->locked = opc_rundir_is_locked(dir);
    out->has_result = opc_rundir_has(dir, "result.json");
    (void)read_json(dir, "result.json", &j, NULL);
    out->result_epochs = get_count(j, "epochs", INT_MAX);
    opc_json_free(j);
}

int opc_rundir_meta(const char *dir, struct opc_rundir_meta *out, struct opc_err *err)
{
    enum { MAX_DIMENSIONS = 1000000 };
    struct opc_json_value *j;
    *out = (struct opc_rundir_meta){0};
    const int code = read_json(dir, "meta.json", &j, err);
    if (code)
        return code;
    copy_text(j, "opc", out->version, sizeof out->version);
    copy_text(j, "revision", out->revision, sizeof out->revision);
    copy_text(j, "engine", out->engine, sizeof out->engine);
    copy_text(j, "model_crc32c", out->model_crc32c, sizeof out->model_crc32c);
    copy_text(j, "config_crc32c", out->config_crc32c, sizeof out->config_crc32c);
    out->obs = get_count(j, "observations", MAX_DIMENSIONS);
    out->act = get_count(j, "actions", MAX_DIMENSIONS);
    opc_json_free(j);
    return OPC_OK;
}

/* ---- tables ---------------------------------------------------------------------------------- */

void opc_rundir_table_free(struct opc_rundir_table *t)
{
    opc_free(t->path);
    opc_free(t->head);
    opc_free(t->name);
    opc_free(t->cell);
    opc_free(t->cells);
    opc_free(t->text);
    *t = (struct opc_rundir_table){0};
}

/* How often c is in n characters. */
static int count_char(const char *text, size_t n, char c)
{
    int count = 0;
    for (size_t i = 0; i < n; i++)
        count += text[i] == c;
    return count;
}

/* Ends each cell of a line with a NUL and notes the first `columns` of them; the others are "".
 * Returns how many cells the line has. */
static int split_line(char *line, int columns, const char **cell)
{
    int n = 0;
    for (char *at = line; at; n++) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma++ = '\0';
        if (n < columns)
            cell[n] = at;
        at = comma;
    }
    for (int i = n; i < columns; i++)
        cell[i] = "";
    return n;
}

int opc_rundir_table_parse(const char *path, char *text, struct opc_rundir_table *out,
                           struct opc_err *err)
{
    struct opc_rundir_table t = {.text = text};
    const size_t first = strcspn(text, "\n");
    /* The first line is kept with its commas; those of the text are cut below. */
    t.path = opc_strdup(path);
    t.head = opc_alloc(first + 1, 1);
    if (!t.path || !t.head)
        goto full;
    memcpy(t.head, text, first);
    /* Lines that have their newline; what comes after the last one may be being written. */
    const int lines = count_char(text, strlen(text), '\n');
    if (lines > 0) {
        t.rows = lines - 1;
        t.columns = count_char(text, first, ',') + 1;
    }
    t.name = opc_alloc((size_t)t.columns, sizeof *t.name);
    t.cell = opc_alloc((size_t)t.rows, (size_t)t.columns * sizeof *t.cell);
    t.cells = opc_alloc((size_t)t.rows, sizeof *t.cells);
    if (!t.name || !t.cell || !t.cells)
        goto full;
    char *line = text;
    for (int row = -1; row < lines - 1; row++) {
        char *end = strchr(line, '\n');
        *end = '\0';
        if (row < 0)
            split_line(line, t.columns, t.name);
        else
            t.cells[row] = split_line(line, t.columns, t.cell + (size_t)row * (size_t)t.columns);
        line = end + 1;
    }
    *out = t;
    return OPC_OK;
full:
    opc_rundir_table_free(&t);
    return opc_fail(err, OPC_ENOMEM, "not enough memory to read %s", path);
}

int opc_rundir_table_read(const char *dir, const char *name, struct opc_rundir_table *out,
                          struct opc_err *err)
{
    char path[OPC_PATH], *text;
    int code = opc_path_join(path, dir, name, err);
    if (!code)
        code = opc_file_read(path, MAX_TABLE_BYTES, &text, NULL, err);
    return code ? code : opc_rundir_table_parse(path, text, out, err);
}

int opc_rundir_head_find(const char *head, const char *name, char nearest[OPC_RUNDIR_NAME])
{
    char one[OPC_RUNDIR_NAME];
    int distance = INT_MAX;
    if (nearest)
        nearest[0] = '\0';
    for (int column = 0;; column++) {
        const size_t n = strcspn(head, ",");
        if (n == strlen(name) && memcmp(head, name, n) == 0)
            return column;
        snprintf(one, sizeof one, "%.*s", n < sizeof one ? (int)n : 0, head);
        if (nearest && opc_nearer(name, one, &distance))
            memcpy(nearest, one, sizeof one);
        if (head[n] != ',')
            return -1;
        head += n + 1;
    }
}

int opc_rundir_table_find(const struct opc_rundir_table *t, const char *name, int *column,
                          struct opc_err *err)
{
    char meant[OPC_RUNDIR_NAME];
    const int found = opc_rundir_head_find(t->head, name, meant);
    if (found < 0 && *meant)
        return opc_fail(err, OPC_EUSER, "%s has no column '%s'; did you mean '%s'?", t->path, name,
                        meant);
    if (found < 0)
        return opc_fail(err, OPC_EUSER, "%s has no column '%s'; its first line names them", t->path,
                        name);
    *column = found;
    return OPC_OK;
}

double opc_rundir_table_number(const struct opc_rundir_table *t, int row, int column)
{
    double v;
    const char *cell = t->cell[(size_t)row * (size_t)t->columns + (size_t)column];
    return opc_parse_real(cell, &v) && isfinite(v) ? v : (double)NAN;
}

/* ---- timing.csv ------------------------------------------------------------------------------ */

/* The sum of a column's numbers, and how many they are; nothing if there is no such column. */
static double sum_column(const struct opc_rundir_table *t, const char *name, int *count)
{
    double sum = 0;
    const int column = opc_rundir_head_find(t->head, name, NULL);
    *count = 0;
    for (int row = 0; column >= 0 && row < t->rows; row++) {
        const double v = opc_rundir_table_number(t, row, column);
        if (!isnan(v)) {
            sum += v;
            ++*count;
        }
    }
    return sum;
}

void opc_rundir_seconds(const char *dir, struct opc_rundir_seconds *out)
{
    struct opc_rundir_table timing;
    *out = (struct opc_rundir_seconds){0};
    if (opc_rundir_table_read(dir, "timing.csv", &timing, NULL))
        return;
    for (int p = 0; p < OPC_PHASES; p++) {
        char name[32];
        int lines;
        snprintf(name, sizeof name, "%s_s", opc_phase_name((enum opc_phase)p));
        out->phase[p] = sum_column(&timing, name, &lines);
    }
    /* Not total_s, which begins anew with each process. */
    out->total = sum_column(&timing, "epoch_s", &out->epochs);
    opc_rundir_table_free(&timing);
}
