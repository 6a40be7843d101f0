/* SPDX-License-Identifier: MIT */
/* Reads run directories: for resuming (restore.c, meta.c), sweeps, plots, probes and tests.
 *
 * Invariant: nothing is remembered between two calls, and nothing is written. Each call reads the
 * files as they are at that time, while a process may be working on the run; so files may be
 * missing and tables may end within a line, and neither is an error. */
#include "run/files/rundir.h"

#include "base/file.h"
#include "base/text.h"
#include "opc/mem.h"
#include "run/config/config.h"
#include "run/files/json.h"

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
    const int fd = opc_path_join(path, dir, ".lock", NULL) ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    /* Whoever may read the directory may ask. The lock is tried shared, and held for an instant. A
     * run that starts in this very instant is refused, and the process that starts it has to try
     * again (sweep/schedule.c does). */
    const bool locked = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return locked;
}

int opc_rundir_foreign_file(const char *dir, char name[OPC_RUNDIR_FILE], struct opc_err *err)
{
    DIR *folder = opendir(dir);
    name[0] = '\0';
    if (!folder)
        return opc_fail_errno(err, errno, "cannot read %s", dir);
    for (struct dirent *e; !*name && (e = readdir(folder));) {
        const size_t n = strlen(e->d_name);
        /* A killed start leaves its lock and half-written files. */
        const bool remains = e->d_name[0] == '.' || (n > 4 && !strcmp(e->d_name + n - 4, ".tmp"));
        if (!remains)
            snprintf(name, OPC_RUNDIR_FILE, "%s", e->d_name);
    }
    closedir(folder);
    return OPC_OK;
}

/* Settles what the settings that a run wrote leave open. */
static int complete_settings(struct opc_config *config, const char *path, struct opc_err *err)
{
    /* A run writes all its settings; an empty file would mean all defaults. */
    if (opc_sources_count(config->from) == 0)
        return opc_fail(err, OPC_EUSER,
                        "%s is empty: the settings of the run are lost; put them back, "
                        "or start another run with 'opc train'",
                        path);
    /* A run that is older than this setting used all of the past as references, whatever the
     * default is today; also one that has lost its meta.json (config_file.c). */
    if (!opc_sources_sets(config->from, 0, "opc.reference_epochs"))
        return opc_config_set(config, "opc.reference_epochs=0", err);
    return OPC_OK;
}

int opc_config_of_run(const char *dir, struct opc_config **out, struct opc_err *err)
{
    char path[OPC_PATH];
    struct opc_config *config = NULL;
    if (!*dir)
        return opc_fail(err, OPC_EUSER, "the name of the run directory is empty");
    OPC_TRY(opc_path_join(path, dir, "config.yaml", err));
    if (!opc_file_exists(dir))
        return opc_fail(err, OPC_EUSER, "there is no directory %s", dir);
    if (!opc_file_exists(path))
        return opc_fail(err, OPC_EUSER,
                        "there is no run in %s: it has no config.yaml; 'opc train' starts one",
                        dir);
    OPC_TRY(opc_config_load(path, &config, err));
    const int code = complete_settings(config, path, err);
    if (code) {
        opc_config_destroy(config);
        return code;
    }
    *out = config;
    return OPC_OK;
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

/* Values of a JSON object; a missing object or key, or a value of another kind, is "", NaN or 0. */
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

/* The inverse of the words that session.c writes. */
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
    struct opc_json_value *json;
    char state[16];
    *out = (struct opc_rundir_status){0};

    (void)read_json(dir, "status.json", &json, NULL);
    copy_text(json, "state", state, sizeof state);
    copy_text(json, "why", out->why, sizeof out->why);
    copy_text(json, "host", out->host, sizeof out->host);
    out->state = state_of(state);
    out->epoch = get_count(json, "epoch", INT_MAX);
    out->eval_return = get_number(json, "eval_return");
    opc_json_free(json);

    /* The lock is looked at before the result: a run that ends between the two looks has written
     * its result by then, and is not taken for one that was interrupted. */
    out->locked = opc_rundir_is_locked(dir);
    out->has_result = opc_rundir_has(dir, "result.json");
    (void)read_json(dir, "result.json", &json, NULL);
    out->result_epochs = get_count(json, "epochs", INT_MAX);
    opc_json_free(json);
}

int opc_rundir_meta(const char *dir, struct opc_rundir_meta *out, struct opc_err *err)
{
    enum { MAX_DIMENSIONS = 1000000 };
    struct opc_json_value *json;
    *out = (struct opc_rundir_meta){0};
    const int code = read_json(dir, "meta.json", &json, err);
    if (code)
        return code;
    copy_text(json, "opc", out->version, sizeof out->version);
    copy_text(json, "revision", out->revision, sizeof out->revision);
    copy_text(json, "engine", out->engine, sizeof out->engine);
    copy_text(json, "model_crc32c", out->model_crc32c, sizeof out->model_crc32c);
    copy_text(json, "config_crc32c", out->config_crc32c, sizeof out->config_crc32c);
    out->obs = get_count(json, "observations", MAX_DIMENSIONS);
    out->act = get_count(json, "actions", MAX_DIMENSIONS);
    out->minutes = get_number(json, "minutes");
    opc_json_free(json);
    return OPC_OK;
}

/* ---- tables ---------------------------------------------------------------------------------- */

void opc_rundir_table_free(struct opc_rundir_table *table)
{
    opc_free(table->path);
    opc_free(table->head);
    opc_free(table->name);
    opc_free(table->cell);
    opc_free(table->cells);
    opc_free(table->text);
    *table = (struct opc_rundir_table){0};
}

/* How often c is in n characters. */
static int count_char(const char *text, size_t n, char c)
{
    int count = 0;
    for (size_t i = 0; i < n; i++)
        count += text[i] == c;
    return count;
}

/* Ends each cell of a line with a NUL and notes the first `columns` of them; missing ones are "".
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
    struct opc_rundir_table table = {.text = text};
    const size_t first = strcspn(text, "\n");
    /* The first line is kept with its commas; in the text they become NULs below. */
    table.path = opc_strdup(path);
    table.head = opc_alloc(first + 1, 1);
    if (!table.path || !table.head)
        goto full;
    memcpy(table.head, text, first);
    /* Only lines with their newline count: what comes after the last one may be being written. */
    const int lines = count_char(text, strlen(text), '\n');
    if (lines > 0) {
        table.rows = lines - 1;
        table.columns = count_char(text, first, ',') + 1;
    }
    table.name = opc_alloc((size_t)table.columns, sizeof *table.name);
    table.cell = opc_alloc((size_t)table.rows, (size_t)table.columns * sizeof *table.cell);
    table.cells = opc_alloc((size_t)table.rows, sizeof *table.cells);
    if (!table.name || !table.cell || !table.cells)
        goto full;
    /* Row -1 is the head; cells point into the text. */
    char *line = text;
    for (int row = -1; row < lines - 1; row++) {
        char *end = strchr(line, '\n');
        *end = '\0';
        if (row < 0)
            split_line(line, table.columns, table.name);
        else
            table.cells[row] =
                split_line(line, table.columns, table.cell + (size_t)row * (size_t)table.columns);
        line = end + 1;
    }
    *out = table;
    return OPC_OK;
full:
    opc_rundir_table_free(&table);
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

/* Walks over the names between commas; on the way it remembers the one that is most similar. */
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

int opc_rundir_table_find(const struct opc_rundir_table *table, const char *name, int *column,
                          struct opc_err *err)
{
    char meant[OPC_RUNDIR_NAME];
    const int found = opc_rundir_head_find(table->head, name, meant);
    if (found < 0 && *meant)
        return opc_fail(err, OPC_EUSER, "%s has no column '%s'; did you mean '%s'?", table->path,
                        name, meant);
    if (found < 0)
        return opc_fail(err, OPC_EUSER, "%s has no column '%s'; its first line names them",
                        table->path, name);
    *column = found;
    return OPC_OK;
}

double opc_rundir_table_number(const struct opc_rundir_table *table, int row, int column)
{
    double v;
    const char *cell = table->cell[(size_t)row * (size_t)table->columns + (size_t)column];
    return opc_parse_real(cell, &v) && isfinite(v) ? v : (double)NAN;
}

/* ---- timing.csv ------------------------------------------------------------------------------ */

/* The sum of a column's numbers, and how many they are; nothing if there is no such column. */
static double sum_column(const struct opc_rundir_table *table, const char *name, int *count)
{
    /* Empty and damaged cells do not count. */
    double sum = 0;
    const int column = opc_rundir_head_find(table->head, name, NULL);
    *count = 0;
    for (int row = 0; column >= 0 && row < table->rows; row++) {
        const double v = opc_rundir_table_number(table, row, column);
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
    /* The sum of epoch_s, not total_s, which starts from 0 with each process. */
    out->total = sum_column(&timing, "epoch_s", &out->epochs);
    opc_rundir_table_free(&timing);
}
