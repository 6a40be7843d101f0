/* SPDX-License-Identifier: MIT */
/* The writer of a run directory: config.yaml, metrics.csv with its copies, timing.csv, status.json,
 * log.txt and the lock that keeps a second process out. session.c opens and closes it, train.c
 * writes a row per epoch, save.c asks how long the tables are, restore.c truncates them to that
 * length.
 *
 * Invariant: tables grow by whole lines, each appended by one call of write, and a checkpoint that
 * names their lengths is written only after they are on disk. So a reader never takes half a row
 * for a row, and a resumed run finds every row its checkpoint counts on. */
#include "run/files/runlog.h"

#include "base/host.h"
#include "opc/mem.h"
#include "run/config/config.h"
#include "run/files/copies.h"
#include "run/files/json.h"
#include "run/files/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

const int OPC_ERROR_STEPS[OPC_ERRORS] = {1, 5, 10};

struct opc_runlog {
    char dir[OPC_PATH];
    int lock_fd, metrics_fd, timing_fd, log_fd; /* -1: not open */
    int members;                                /* of the ensemble: one holdout column each */
    const struct opc_agent_column *agent_columns;
    /* First lines of the tables of a resumed run, whose columns it keeps. NULL: the tables are new
     * and have all columns of this program. */
    char *columns, *timing_columns;
    struct opc_copies copies;  /* of metrics.csv */
    char owner[OPC_HOST + 64]; /* what we wrote to .lock: no other process writes the same */
};

static void append_log(void *ctx, enum opc_level level, const char *line);

/* ---- the directory --------------------------------------------------------------------------- */

int opc_runlog_path(const struct opc_runlog *log, const char *name, char out[OPC_PATH],
                    struct opc_err *err)
{
    return opc_path_join(out, log->dir, name, err);
}

const char *opc_runlog_dir(const struct opc_runlog *log)
{
    return log->dir;
}

static int open_file(const struct opc_runlog *log, const char *name, int flags, int *out,
                     struct opc_err *err)
{
    char path[OPC_PATH];
    const int code = opc_runlog_path(log, name, path, err);
    if (code)
        return code;
    *out = open(path, flags | O_CLOEXEC, 0666);
    return *out < 0 ? opc_fail_errno(err, errno, "cannot open %s", path) : OPC_OK;
}

/* Takes the lock; otherwise returns why not, an errno. Whoever looks whether a run is going on
 * holds it for an instant (rundir.c), so it is tried for a tenth of a second. */
static int take_lock(int fd)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    for (int tries = 20; flock(fd, LOCK_EX | LOCK_NB); tries--) {
        if (errno != EWOULDBLOCK || tries == 0)
            return errno;
        nanosleep(&pause, NULL);
    }
    return 0;
}

/* The lock is flock's, so the kernel releases it with the process, however that ends. The file
 * holds process id and host, for the message of whoever is refused, perhaps on another machine. */
static int lock_directory(struct opc_runlog *log, struct opc_err *err)
{
    char who[32 + OPC_HOST] = "", host[OPC_HOST];
    const int code = open_file(log, ".lock", O_RDWR | O_CREAT, &log->lock_fd, err);
    if (code)
        return code;
    const int why = take_lock(log->lock_fd);
    /* Another process has it: report which one. */
    if (why == EWOULDBLOCK) {
        long pid = 0;
        *host = '\0';
        /* An older version wrote the number alone. */
        if (read(log->lock_fd, who, sizeof who - 1) > 0)
            (void)sscanf(who, "%ld %64s", &pid, host);
        return opc_fail(err, OPC_EUSER,
                        "%s is in use by another process (%ld%s%s); wait for its end or choose "
                        "another directory",
                        log->dir, pid, *host ? " on " : "", host);
    }
    /* Sweeps that share a directory do not need locks; a person who starts single runs is warned.
     */
    if (opc_has_no_locks(why))
        opc_log(
            OPC_LEVEL_WARN,
            "the file system of %s has no locks: nothing but 'opc sweep --shared' keeps a second "
            "process out of it",
            log->dir);
    else if (why)
        return opc_fail_errno(err, why, "cannot lock %s", log->dir);
    /* It is ours: leave our process id, where that is, and when: numbers of processes repeat. */
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    opc_host_name(host);
    snprintf(log->owner, sizeof log->owner, "%ld %s %lld.%09ld", (long)getpid(), host,
             (long long)now.tv_sec, now.tv_nsec);
    if (ftruncate(log->lock_fd, 0) || !opc_write_all(log->lock_fd, log->owner, strlen(log->owner)))
        return opc_fail_errno(err, errno, "cannot write %s/.lock", log->dir);
    return OPC_OK;
}

/* Where there are no locks, a process that stood still for long may find that another one was taken
 * for its successor (sweep/claim.h). It must not write then: .lock, read anew, says whose the run
 * is. */
static int check_owner(const struct opc_runlog *log, struct opc_err *err)
{
    char path[OPC_PATH], who[sizeof log->owner] = "";
    OPC_TRY(opc_runlog_path(log, ".lock", path, err));
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return OPC_OK; /* nobody else was here */
    const bool other = read(fd, who, sizeof who - 1) > 0 && strcmp(who, log->owner) != 0;
    close(fd);
    return other
               ? opc_fail(err, OPC_EIO, "%s was taken over by another process (%s)", log->dir, who)
               : OPC_OK;
}

/* Refuses a directory that holds a run, or files that an interrupted start does not leave. */
static int check_directory_is_new(const struct opc_runlog *log, struct opc_err *err)
{
    char path[OPC_PATH], foreign[OPC_RUNDIR_FILE], word[OPC_PATH];
    int code = opc_runlog_path(log, "config.yaml", path, err);
    if (code)
        return code;
    if (opc_file_exists(path))
        return opc_fail(err, OPC_EUSER,
                        "%s holds a run already; 'opc resume %s' goes on with it, or choose "
                        "another directory",
                        log->dir, opc_shell_word(log->dir, word, sizeof word));
    code = opc_rundir_foreign_file(log->dir, foreign, err);
    if (!code && *foreign)
        code = opc_fail(err, OPC_EUSER,
                        "%s is not empty (it has %s) and holds no run; choose another directory",
                        log->dir, foreign);
    return code;
}

/* The settings as they are in the end: defaults, includes and cells are resolved, so that the file
 * stands alone. */
static int write_config(const struct opc_runlog *log, const struct opc_values *set,
                        struct opc_err *err)
{
    char path[OPC_PATH];
    struct opc_text text = {0};
    opc_values_print(set, &text);
    int code = opc_text_check(&text, err);
    if (!code)
        code = opc_runlog_path(log, "config.yaml", path, err);
    if (!code)
        code = opc_file_write(path, opc_text_get(&text), text.used, err);
    opc_text_free(&text);
    return code;
}

/* set = NULL: the directory of an earlier run. */
static int open_directory(struct opc_runlog *log, const char *dir, const struct opc_values *set,
                          struct opc_err *err)
{
    OPC_TRY(opc_path_join(log->dir, "", dir, err));
    if (set)
        OPC_TRY(opc_make_directories(dir, err));
    OPC_TRY(lock_directory(log, err));
    /* config.yaml comes first of all files, because it makes the directory a run that can be
     * resumed. */
    if (set) {
        OPC_TRY(check_directory_is_new(log, err));
        OPC_TRY(write_config(log, set, err));
    }
    OPC_TRY(open_file(log, "log.txt", O_WRONLY | O_CREAT | O_APPEND, &log->log_fd, err));
    /* From here on it also gets what others log: the standard error of a task's program, say. */
    opc_log_also_to(append_log, log, NULL);
    return OPC_OK;
}

int opc_runlog_open(const char *dir, const struct opc_values *set, struct opc_runlog **out,
                    struct opc_err *err)
{
    struct opc_runlog *log = opc_alloc(1, sizeof *log);
    if (!log)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to record the run");
    log->lock_fd = log->metrics_fd = log->timing_fd = log->log_fd = -1;
    log->copies.json_fd = log->copies.events_fd = -1;
    const int code = open_directory(log, dir, set, err);
    if (code) {
        opc_runlog_close(log);
        return code;
    }
    *out = log;
    return OPC_OK;
}

void opc_runlog_close(struct opc_runlog *log)
{
    if (!log)
        return;
    opc_log_also_to(NULL, NULL, log);
    const int files[] = {log->metrics_fd, log->timing_fd, log->log_fd, log->lock_fd};
    for (int i = 0; i < 4; i++)
        if (files[i] >= 0)
            close(files[i]);
    opc_copies_close(&log->copies);
    opc_free(log->columns);
    opc_free(log->timing_columns);
    opc_free(log);
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* A line of a table. Head and rows are written by the same calls of add_cell, so they cannot
 * differ.
 *
 * A run that an older program began keeps the columns of its head. Columns may have come or gone
 * since, so the values of a row are first collected by name, in `value`, and printed in the order
 * of the head afterwards; values without a column are dropped, columns without a value empty. */
struct line {
    struct opc_text text;
    bool head;           /* add_cell writes names, not values */
    const char *columns; /* the older head, separated by commas; NULL: cells are written as added */
    double *value;       /* [columns] NaN: empty */
};

static int count_columns(const char *head)
{
    int n = 1;
    for (; *head; head++)
        n += *head == ',';
    return n;
}

/* NaN and infinity become an empty cell, which every reader of CSV takes for a missing number. */
static void add_value(struct line *line, double value)
{
    if (isfinite(value))
        opc_text_add_real(&line->text, value);
}

static void add_cell(struct line *line, const char *name, double value)
{
    if (line->columns) {
        const int i = opc_rundir_head_find(line->columns, name, NULL);
        if (i >= 0)
            line->value[i] = value;
        return;
    }
    opc_text_add(&line->text, line->text.used ? "," : "");
    if (line->head)
        opc_text_add(&line->text, name);
    else
        add_value(line, value);
}

/* "name_k" */
static void add_numbered(struct line *line, const char *name, int k, double value)
{
    char full[64];
    snprintf(full, sizeof full, "%s_%d", name, k);
    add_cell(line, full, value);
}

/* One row of metrics.csv. The order of these calls is the order of columns in new runs; it may
 * change, because readers find columns by name. Nothing here may depend on the clock or on
 * threads. */
static void add_metrics(struct line *line, const struct opc_epoch_row *row, int members,
                        const struct opc_agent_column *columns)
{
    const double none = (double)NAN;
    add_cell(line, "epoch", row->epoch);
    add_cell(line, "env_steps", (double)row->env_steps);
    add_cell(line, "total_steps", (double)row->total_steps);
    /* evaluation, and the episodes that the policy in training played */
    add_cell(line, "eval_return", row->evaluated ? row->eval.mean : none);
    add_cell(line, "eval_min", row->evaluated ? row->eval.min : none);
    add_cell(line, "eval_max", row->evaluated ? row->eval.max : none);
    add_cell(line, "eval_length", row->evaluated ? row->eval.length : none);
    add_cell(line, "episodes", row->episodes);
    add_cell(line, "train_return", row->episodes ? row->train_return : none);
    add_cell(line, "train_length", row->episodes ? row->train_length : none);
    /* data there is to learn from */
    add_cell(line, "recorded", (double)row->recorded_kept);
    add_cell(line, "imagined", (double)row->imagined_kept);
    /* the last fit of the model, and its errors on the newest episodes by eq. 2 and by eq. 5 */
    add_cell(line, "fits", row->fits);
    add_cell(line, "fit_passes", row->fits ? row->fit.passes : none);
    add_cell(line, "fit_loss", row->fits ? row->fit.train_loss : none);
    add_cell(line, "log_std_min", row->fits ? row->fit.log_std_min : none);
    add_cell(line, "log_std_max", row->fits ? row->fit.log_std_max : none);
    for (int m = 0; m < members; m++)
        add_numbered(line, "holdout", m, row->fits ? row->fit.holdout[m] : none);
    for (int k = 0; k < OPC_ERRORS; k++)
        add_numbered(line, "learned", OPC_ERROR_STEPS[k], row->learned[k]);
    for (int k = 0; k < OPC_ERRORS; k++)
        add_numbered(line, "corrected", OPC_ERROR_STEPS[k], row->corrected[k]);
    /* imagined rollouts: how many, how long, why they ended, and their extremes */
    add_cell(line, "horizon", row->rollouts ? row->horizon : none);
    add_cell(line, "rollouts", (double)row->rollouts);
    add_cell(line, "rollout_length",
             row->rollouts ? (double)row->imagined / (double)row->rollouts : none);
    const double rollouts = row->rollouts ? (double)row->rollouts : none;
    add_cell(line, "end_horizon", (double)row->end[OPC_END_HORIZON] / rollouts);
    add_cell(line, "end_terminal", (double)row->end[OPC_END_TERMINAL] / rollouts);
    add_cell(line, "end_reference",
             (double)(row->end[OPC_END_REFERENCE] + row->end[OPC_END_DROPPED]) / rollouts);
    add_cell(line, "end_bound", (double)row->end[OPC_END_BOUND] / rollouts);
    add_cell(line, "end_drift", (double)row->end[OPC_END_DRIFT] / rollouts);
    add_cell(line, "end_disagreement", (double)row->end[OPC_END_DISAGREEMENT] / rollouts);
    add_cell(line, "state_max_std", row->imagined ? row->state_max_std : none);
    add_cell(line, "reward_min", row->imagined ? row->reward_min : none);
    add_cell(line, "reward_max", row->imagined ? row->reward_max : none);
    /* the agent's own columns, over all gradient steps of the epoch */
    add_cell(line, "updates", (double)row->agent.updates);
    for (int k = 0; columns && columns[k].name; k++)
        add_cell(line, columns[k].name, row->agent.updates ? row->agent.value[k] : none);
}

/* The columns of all agents count, whichever of them the run has. */
int opc_runlog_find_column(const char *name, int members, bool *found, char nearest[64],
                           struct opc_err *err)
{
    const struct opc_epoch_row row = {0};
    struct line line = {.head = true};
    add_metrics(&line, &row, members, NULL);
    for (int i = 0; opc_agent_type(i); i++)
        for (const struct opc_agent_column *c = opc_agent_type(i)->columns; c->name; c++)
            add_cell(&line, c->name, 0);
    const int code = opc_text_check(&line.text, err);
    *found = !code && opc_rundir_head_find(opc_text_get(&line.text), name, nearest) >= 0;
    opc_text_free(&line.text);
    return code;
}

/* Seconds are rounded to microseconds: more digits would be noise. */
static void add_timing(struct line *line, int epoch, const double seconds[OPC_PHASES], double total)
{
    double sum = 0;
    add_cell(line, "epoch", epoch);
    for (int p = 0; p < OPC_PHASES; p++) {
        char name[32];
        snprintf(name, sizeof name, "%s_s", opc_phase_name((enum opc_phase)p));
        add_cell(line, name, round(seconds[p] * 1e6) / 1e6);
        sum += seconds[p];
    }
    add_cell(line, "epoch_s", round(sum * 1e6) / 1e6);
    add_cell(line, "total_s", round(total * 1e6) / 1e6);
}

/* A line is one write, so that a process that reads along sees whole lines only. */
static int append_line(const struct opc_runlog *log, int file, const char *name, struct line *line,
                       struct opc_err *err)
{
    opc_text_add(&line->text, "\n");
    int code = opc_text_check(&line->text, err);
    if (!code && !opc_write_all(file, opc_text_get(&line->text), line->text.used))
        code = opc_fail_errno(err, errno, "cannot write %s/%s", log->dir, name);
    return code;
}

/* Frees the text. */
static int write_line(const struct opc_runlog *log, int file, const char *name, struct line *line,
                      struct opc_err *err)
{
    const int code = append_line(log, file, name, line, err);
    opc_text_free(&line->text);
    return code;
}

/* begin_row, then the cells, end_row, and then write_line, which frees the rest. */
static int begin_row(struct line *line, const char *columns, struct opc_err *err)
{
    *line = (struct line){.columns = columns};
    const int n = columns ? count_columns(columns) : 0;
    if (n > 0 && !(line->value = opc_alloc((size_t)n, sizeof *line->value)))
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a row of a table");
    for (int i = 0; i < n; i++)
        line->value[i] = (double)NAN;
    return OPC_OK;
}

static void end_row(struct line *line)
{
    /* the values that were collected for an older head, in its order */
    const int n = line->columns ? count_columns(line->columns) : 0;
    for (int i = 0; i < n; i++) {
        opc_text_add(&line->text, i ? "," : "");
        add_value(line, line->value[i]);
    }
    opc_free(line->value);
}

int opc_runlog_metrics(struct opc_runlog *log, const struct opc_epoch_row *row, struct opc_err *err)
{
    struct line line;
    if (!log)
        return OPC_OK;
    OPC_TRY(check_owner(log, err));
    int code = begin_row(&line, log->columns, err);
    if (code)
        return code;
    add_metrics(&line, row, log->members, log->agent_columns);
    end_row(&line);
    /* Killed between the two, the copies get the row when the run is resumed. */
    code = append_line(log, log->metrics_fd, "metrics.csv", &line, err);
    if (!code)
        code = opc_copies_add(&log->copies, log->dir, opc_text_get(&line.text), err);
    opc_text_free(&line.text);
    return code;
}

int opc_runlog_timing(struct opc_runlog *log, int epoch, const double seconds[OPC_PHASES],
                      double total, struct opc_err *err)
{
    struct line line;
    if (!log)
        return OPC_OK;
    const int code = begin_row(&line, log->timing_columns, err);
    if (code)
        return code;
    add_timing(&line, epoch, seconds, total);
    end_row(&line);
    return write_line(log, log->timing_fd, "timing.csv", &line, err);
}

/* Opens a table for appending. It must have at least the `end` bytes it had at the checkpoint; a
 * shorter one is damaged. */
static int open_table(struct opc_runlog *log, const char *name, uint64_t end, int *file,
                      struct opc_err *err)
{
    struct stat st;
    if (*file >= 0)
        close(*file); /* the second attempt, with the older checkpoint */
    *file = -1;
    /* One that is missing is not made anew: it would be empty where rows were. */
    if (end > 0 && !opc_rundir_has(log->dir, name))
        return opc_fail(err, OPC_EDAMAGED,
                        "%s/%s is missing, the checkpoint was taken when it had %llu bytes",
                        log->dir, name, (unsigned long long)end);
    OPC_TRY(open_file(log, name, O_WRONLY | O_CREAT | O_APPEND, file, err));
    if (fstat(*file, &st) == 0 && (uint64_t)st.st_size < end)
        return opc_fail(err, OPC_EDAMAGED,
                        "%s/%s has %lld bytes, the checkpoint was taken when it had %llu", log->dir,
                        name, (long long)st.st_size, (unsigned long long)end);
    return OPC_OK;
}

/* Drops the rows after the checkpoint: the resumed run writes them again. */
static int truncate_table(const struct opc_runlog *log, const char *name, uint64_t end, int file,
                          struct opc_err *err)
{
    return ftruncate(file, (off_t)end)
               ? opc_fail_errno(err, errno, "cannot cut %s/%s", log->dir, name)
               : OPC_OK;
}

/* A run that an older program began keeps its columns; see struct line. */
static int read_old_columns(struct opc_runlog *log, const char *name, char **columns,
                            struct opc_err *err)
{
    struct opc_rundir_table table;
    opc_free(*columns); /* of a first attempt, with the newer checkpoint */
    *columns = NULL;
    const int code = opc_rundir_table_read(log->dir, name, &table, err);
    if (code)
        return code;
    *columns = table.head; /* taken from the table, the rest of which is not needed */
    table.head = NULL;
    opc_rundir_table_free(&table);
    return OPC_OK;
}

int opc_runlog_begin_tables(struct opc_runlog *log, struct opc_runlog_ends ends,
                            const struct opc_runlog_tables *tables, struct opc_err *err)
{
    if (!log)
        return OPC_OK;
    log->members = tables->members;
    log->agent_columns = tables->columns;
    /* Both tables are checked before either is truncated: a checkpoint that does not fit them must
     * leave them as they are. */
    OPC_TRY(open_table(log, "metrics.csv", ends.metrics, &log->metrics_fd, err));
    OPC_TRY(open_table(log, "timing.csv", ends.timing, &log->timing_fd, err));
    OPC_TRY(truncate_table(log, "metrics.csv", ends.metrics, log->metrics_fd, err));
    OPC_TRY(truncate_table(log, "timing.csv", ends.timing, log->timing_fd, err));
    /* A table with rows keeps its head, an empty one gets ours. */
    if (ends.metrics > 0)
        OPC_TRY(read_old_columns(log, "metrics.csv", &log->columns, err));
    if (ends.timing > 0)
        OPC_TRY(read_old_columns(log, "timing.csv", &log->timing_columns, err));
    if (ends.metrics == 0) {
        const struct opc_epoch_row row = {0};
        struct line line = {.head = true};
        add_metrics(&line, &row, tables->members, tables->columns);
        OPC_TRY(write_line(log, log->metrics_fd, "metrics.csv", &line, err));
    }
    if (ends.timing == 0) {
        const double seconds[OPC_PHASES] = {0};
        struct line line = {.head = true};
        add_timing(&line, 0, seconds, 0);
        OPC_TRY(write_line(log, log->timing_fd, "timing.csv", &line, err));
    }
    return opc_copies_begin(&log->copies, log->dir, tables->json_lines, tables->tensorboard, err);
}

/* Forces a table to disk and measures it, for the checkpoint that is written next. */
static int sync_table(const struct opc_runlog *log, int file, const char *name, uint64_t *end,
                      struct opc_err *err)
{
    struct stat st;
    if (fsync(file) || fstat(file, &st))
        return opc_fail_errno(err, errno, "cannot write %s/%s", log->dir, name);
    *end = (uint64_t)st.st_size;
    return OPC_OK;
}

int opc_runlog_sync(struct opc_runlog *log, struct opc_runlog_ends *out, struct opc_err *err)
{
    OPC_TRY(check_owner(log, err)); /* a checkpoint follows */
    const int code = sync_table(log, log->metrics_fd, "metrics.csv", &out->metrics, err);
    return code ? code : sync_table(log, log->timing_fd, "timing.csv", &out->timing, err);
}

/* ---- status and log -------------------------------------------------------------------------- */

/* The time of day in UTC, as ISO 8601 writes it. */
static void print_time(char out[32])
{
    const time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

int opc_runlog_status(struct opc_runlog *log, const char *state, const char *why,
                      const struct opc_progress *progress, struct opc_err *err)
{
    char path[OPC_PATH], now[32], host[OPC_HOST];
    if (!log)
        return OPC_OK;
    OPC_TRY(opc_runlog_path(log, "status.json", path, err));
    OPC_TRY(check_owner(log, err));
    print_time(now);
    struct opc_json *json = opc_json_begin();
    opc_json_text(json, "state", state);
    opc_json_text(json, "why", why);
    opc_json_text(json, "updated", now);
    opc_json_whole(json, "pid", (int64_t)getpid());
    opc_host_name(host);
    opc_json_text(json, "host", host);
    opc_json_whole(json, "epoch", progress->epoch);
    opc_json_whole(json, "epochs", progress->epochs);
    opc_json_whole(json, "env_steps", progress->env_steps);
    opc_json_whole(json, "total_steps", progress->total_steps);
    opc_json_real(json, "eval_return", progress->eval_return);
    opc_json_real(json, "model_error", progress->model_error);
    /* an estimate from the epochs of this process; unknown before the first of them */
    const int done = progress->epoch - progress->first_epoch + 1;
    opc_json_real(json, "remaining_s",
                  done > 0 && progress->first_epoch > 0
                      ? progress->elapsed / done * (progress->epochs - progress->epoch)
                      : (double)NAN);
    return opc_json_write(json, path, err);
}

/* A line of log.txt, with the time in front. */
static void append_log(void *ctx, enum opc_level level, const char *line)
{
    const struct opc_runlog *log = ctx;
    char now[32], stamped[1100];
    if (log->log_fd < 0)
        return;
    print_time(now);
    const int n = snprintf(stamped, sizeof stamped, "%s %s%s\n", now,
                           level == OPC_LEVEL_WARN ? "warning: " : "", line);
    (void)opc_write_all(log->log_fd, stamped, (size_t)n);
}

void opc_runlog_message(struct opc_runlog *log, enum opc_level level, const char *fmt, ...)
{
    char line[1000];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    /* what a person should see, and then everything, with the time */
    if (level >= OPC_LEVEL_INFO)
        opc_log_shown(level, "%s", line);
    if (log)
        append_log(log, level, line);
}
