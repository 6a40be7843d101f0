/* SPDX-License-Identifier: MIT */
/* Chooses the format of a data set, and holds the table into which the readers put what they read
 * before check.c looks at it. Called by `opc data`.
 *
 * Invariant: files are read one after the other into one table, and nothing is written unless all
 * of them are sound. */
#include "study/dataset/dataset.h"

#include "base/file.h"
#include "opc/mem.h"
#include "run/files/episodes_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The ending of a name, with something in front of it. */
static bool ends_with(const char *path, const char *ending)
{
    const size_t n = strlen(path), m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}

/* ---- out ------------------------------------------------------------------------------------- */

double opc_dataset_action(const struct opc_env *env, const float *action, int k)
{
    const double low = env->low[k], high = env->high[k];
    /* from the centre, so that small actions of symmetric ranges keep their digits */
    const double x = (low + high) / 2 + (double)action[k] * ((high - low) / 2);
    return fmin(fmax(x, low), high);
}

double opc_dataset_time(const struct opc_env *env, int t)
{
    return t * (env->dt > 0 ? env->dt : 1);
}

/* Writes the text as a whole file, and frees it. */
static int write_text(const char *path, struct opc_text *text, struct opc_err *err)
{
    int code = opc_text_check(text, err);
    if (!code)
        code = opc_file_write(path, opc_text_get(text), text->used, err);
    opc_text_free(text);
    return code;
}

/* DIR/episode-000001.csv, ... */
static int write_folder(const struct opc_episodes *past, int first, const struct opc_env *env,
                        const char *dir, struct opc_err *err)
{
    /* Files of the same names are replaced; others in the directory stay. */
    OPC_TRY(opc_make_directories(dir, err));
    for (int b = first; b < opc_episodes_count(past); b++) {
        char name[48], path[OPC_PATH];
        struct opc_text text = {0};
        snprintf(name, sizeof name, "episode-%06d.csv", b + 1);
        OPC_TRY(opc_path_join(path, dir, name, err));
        opc_dataset_csv(past, b, b + 1, env, &text);
        OPC_TRY(write_text(path, &text, err));
    }
    return OPC_OK;
}

int opc_dataset_write(const struct opc_episodes *past, int first, const struct opc_env *env,
                      const char *path, struct opc_err *err)
{
    const int end = opc_episodes_count(past);
    struct opc_text text = {0};
    if (first >= end)
        return opc_fail(err, OPC_EUSER, "there is no episode to write");
    /* what train.prefill reads, ... */
    if (ends_with(path, ".opc"))
        return opc_episodes_file_save(path, past, first, env, err);
    /* ... what a spreadsheet reads, ... */
    if (ends_with(path, ".csv")) {
        opc_dataset_csv(past, first, end, env, &text);
        return write_text(path, &text, err);
    }
    /* ... what numpy reads */
    if (ends_with(path, ".npz")) {
        const int code = opc_dataset_npz(past, first, end, env, &text, err);
        if (!code)
            return write_text(path, &text, err);
        opc_text_free(&text);
        return code;
    }
    /* An ending that we do not know is more likely a mistake than the name of a directory. */
    if (strchr(opc_path_name(path), '.') && !opc_is_directory(path))
        return opc_fail(err, OPC_EUSER,
                        "%s: the ending of a file's name says its format: .csv, .npz (numpy) or "
                        ".opc (train.prefill); a name without a point is a directory of .csv files",
                        path);
    return write_folder(past, first, env, path, err);
}

/* ---- the table of what is read --------------------------------------------------------------- */

double *opc_log_add(struct opc_log_table *log, int file, size_t row)
{
    const size_t columns = (size_t)log->columns;
    /* Doubling keeps the cost of many rows linear. */
    if (log->rows == log->capacity) {
        const size_t capacity = log->capacity ? 2 * log->capacity : 1024;
        double *cell = opc_alloc(capacity, columns * sizeof *cell);
        if (!cell)
            return NULL;
        if (log->rows)
            memcpy(cell, log->cell, log->rows * columns * sizeof *cell);
        opc_free(log->cell);
        log->cell = cell;
        log->capacity = capacity;
    }
    /* A number that a reader does not set stays empty; without a column for it, all rows are of
     * episode 0. */
    double *added = log->cell + log->rows++ * columns;
    for (size_t k = 0; k < columns; k++)
        added[k] = (double)NAN;
    added[OPC_LOG_FILE] = file;
    added[OPC_LOG_ROW] = (double)row;
    added[OPC_LOG_EPISODE] = 0;
    return added;
}

/* The order of the columns in the table, backwards. */
char *opc_log_name(const struct opc_log_table *log, int column, char out[OPC_LOG_NAME])
{
    static const char *const OUTCOME[] = {[OPC_LOG_REWARD] = "reward",
                                          [OPC_LOG_TERMINATED] = "terminated",
                                          [OPC_LOG_TRUNCATED] = "truncated"};
    const int action = opc_log_action(log), outcome = opc_log_outcome(log, 0);
    if (column >= outcome)
        snprintf(out, OPC_LOG_NAME, "%s", OUTCOME[column - outcome]);
    else if (column >= action)
        snprintf(out, OPC_LOG_NAME, "action_%d", column - action);
    else if (column >= OPC_LOG_STATE)
        snprintf(out, OPC_LOG_NAME, "observation_%d", column - OPC_LOG_STATE);
    else
        snprintf(out, OPC_LOG_NAME, "%s", column == OPC_LOG_TIME ? "time" : "episode");
    return out;
}

/* ---- in -------------------------------------------------------------------------------------- */

/* Appends the rows of file i to the table. */
static int read_file(struct opc_log_table *log, int i, struct opc_err *err)
{
    const char *path = log->file[i];
    const bool csv = ends_with(path, ".csv");
    char *bytes;
    size_t n;
    if (!csv && !ends_with(path, ".npz"))
        return opc_fail(err, OPC_EUSER,
                        "%s: the ending of a file's name says its format: .csv or .npz (numpy)",
                        path);
    if (!opc_file_exists(path))
        return opc_fail(err, OPC_EUSER, "there is no file %s", path);
    /* As large as the other files that we read at once. */
    OPC_TRY(opc_file_read(path, (size_t)1 << 36, &bytes, &n, err));
    const int code =
        csv ? opc_log_read_csv(log, i, bytes, n, err) : opc_log_read_npz(log, i, bytes, n, err);
    opc_free(bytes);
    return code;
}

int opc_dataset_read(int files, char *const *file, const struct opc_env *env,
                     struct opc_episodes **out, struct opc_err *err)
{
    struct opc_log_table log = {
        .env = env, .obs = env->obs, .act = env->act, .file = (const char *const *)file};
    int code = OPC_OK;
    log.columns = OPC_LOG_STATE + env->obs + env->act + OPC_LOG_LAST;
    /* All files first, then the checks: messages name the file by its number in the rows. */
    for (int i = 0; i < files && !code; i++)
        code = read_file(&log, i, err);
    if (!code)
        code = opc_log_episodes(&log, out, err);
    opc_free(log.cell);
    return code;
}
