/* SPDX-License-Identifier: MIT */
#include "run/record.h"

#include "opc/mem.h"
#include "run/config.h"
#include "run/json.h"
#include "run/rundir.h"

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

struct opc_record {
    char dir[OPC_PATH];
    int lock, metrics, timing, log; /* file descriptors; -1: not open */
    int members;
    const struct opc_agent_column *agent_columns;
    /* The first lines of tables that are gone on with; NULL: they have all of ours. */
    char *columns, *timing_columns;
};

/* ---- the directory --------------------------------------------------------------------------- */

int opc_record_path(const struct opc_record *r, const char *name, char out[OPC_PATH],
                    struct opc_err *err)
{
    return opc_path_join(out, r->dir, name, err);
}

const char *opc_record_dir(const struct opc_record *r)
{
    return r->dir;
}

static int open_file(const struct opc_record *r, const char *name, int flags, int *out,
                     struct opc_err *err)
{
    char path[OPC_PATH];
    const int code = opc_record_path(r, name, path, err);
    if (code)
        return code;
    *out = open(path, flags | O_CLOEXEC, 0666);
    return *out < 0 ? opc_fail_errno(err, errno, "cannot open %s", path) : OPC_OK;
}

/* A lock of the operating system: it goes with the process, however that ends. */
static int lock(struct opc_record *r, struct opc_err *err)
{
    char who[32] = "";
    const int code = open_file(r, ".lock", O_RDWR | O_CREAT, &r->lock, err);
    if (code)
        return code;
    if (flock(r->lock, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK)
            return opc_fail_errno(err, errno, "cannot lock %s", r->dir);
        if (read(r->lock, who, sizeof who - 1) <= 0)
            strcpy(who, "?");
        return opc_fail(err, OPC_EUSER,
                        "%s is in use by another process (%s); wait for its end or choose another "
                        "directory",
                        r->dir, who);
    }
    const int n = snprintf(who, sizeof who, "%ld", (long)getpid());
    if (ftruncate(r->lock, 0) || !opc_write_all(r->lock, who, (size_t)n))
        return opc_fail_errno(err, errno, "cannot write %s/.lock", r->dir);
    return OPC_OK;
}

static int check_fresh(const struct opc_record *r, struct opc_err *err)
{
    char path[OPC_PATH], foreign[OPC_RUNDIR_FILE];
    int code = opc_record_path(r, "config.yaml", path, err);
    if (code)
        return code;
    if (opc_file_exists(path))
        return opc_fail(err, OPC_EUSER,
                        "%s holds a run already; 'opc resume %s' goes on with it, or choose "
                        "another directory",
                        r->dir, r->dir);
    code = opc_rundir_foreign_file(r->dir, foreign, err);
    if (!code && *foreign)
        code = opc_fail(err, OPC_EUSER,
                        "%s is not empty (it has %s) and holds no run; choose another directory",
                        r->dir, foreign);
    return code;
}

static int write_config(const struct opc_record *r, const struct opc_values *set,
                        struct opc_err *err)
{
    char path[OPC_PATH];
    struct opc_text text = {0};
    opc_values_print(set, &text);
    int code = opc_text_check(&text, err);
    if (!code)
        code = opc_record_path(r, "config.yaml", path, err);
    if (!code)
        code = opc_file_write(path, opc_text_get(&text), text.used, err);
    opc_text_free(&text);
    return code;
}

int opc_record_open(const char *dir, const struct opc_values *set, struct opc_record **out,
                    struct opc_err *err)
{
    struct opc_record *r = opc_alloc(1, sizeof *r);
    if (!r)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to record the run");
    r->lock = r->metrics = r->timing = r->log = -1;
    int code = opc_path_join(r->dir, "", dir, err);
    if (!code && set)
        code = opc_make_directories(dir, err);
    if (!code)
        code = lock(r, err);
    if (!code && set)
        code = check_fresh(r, err);
    /* First of all, because it is what makes the directory a run that can be resumed. */
    if (!code && set)
        code = write_config(r, set, err);
    if (!code)
        code = open_file(r, "log.txt", O_WRONLY | O_CREAT | O_APPEND, &r->log, err);
    if (code) {
        opc_record_close(r);
        return code;
    }
    *out = r;
    return OPC_OK;
}

void opc_record_close(struct opc_record *r)
{
    if (!r)
        return;
    const int files[] = {r->metrics, r->timing, r->log, r->lock};
    for (int i = 0; i < 4; i++)
        if (files[i] >= 0)
            close(files[i]);
    opc_free(r->columns);
    opc_free(r->timing_columns);
    opc_free(r);
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Head and rows are written by the same calls, so they cannot differ. A run that an older program
 * began keeps the columns of its head: then a row is collected first, because columns may have come
 * or gone since. */
struct line {
    struct opc_text text;
    bool head;
    const char *columns; /* of the older head, commas between; NULL: as they come */
    double *value;       /* [columns] */
};

static int count_columns(const char *head)
{
    int n = 1;
    for (; *head; head++)
        n += *head == ',';
    return n;
}

static void put_value(struct line *l, double value)
{
    if (isfinite(value))
        opc_text_add_real(&l->text, value);
}

static void cell(struct line *l, const char *name, double value)
{
    if (l->columns) {
        const int i = opc_rundir_head_find(l->columns, name, NULL);
        if (i >= 0)
            l->value[i] = value;
        return;
    }
    opc_text_add(&l->text, l->text.used ? "," : "");
    if (l->head)
        opc_text_add(&l->text, name);
    else
        put_value(l, value);
}

static void numbered(struct line *l, const char *name, int k, double value)
{
    char full[64];
    snprintf(full, sizeof full, "%s_%d", name, k);
    cell(l, full, value);
}

static void metrics_line(struct line *l, const struct opc_epoch_row *r, int members,
                         const struct opc_agent_column *columns)
{
    const double none = (double)NAN;
    cell(l, "epoch", r->epoch);
    cell(l, "env_steps", (double)r->env_steps);
    cell(l, "total_steps", (double)r->total_steps);
    cell(l, "eval_return", r->evaluated ? r->eval.mean : none);
    cell(l, "eval_min", r->evaluated ? r->eval.min : none);
    cell(l, "eval_max", r->evaluated ? r->eval.max : none);
    cell(l, "eval_length", r->evaluated ? r->eval.length : none);
    cell(l, "episodes", r->episodes);
    cell(l, "train_return", r->episodes ? r->train_return : none);
    cell(l, "train_length", r->episodes ? r->train_length : none);
    cell(l, "recorded", (double)r->recorded_kept);
    cell(l, "imagined", (double)r->imagined_kept);
    cell(l, "fits", r->fits);
    cell(l, "fit_passes", r->fits ? r->fit.passes : none);
    cell(l, "fit_loss", r->fits ? r->fit.train_loss : none);
    cell(l, "log_std_min", r->fits ? r->fit.log_std_min : none);
    cell(l, "log_std_max", r->fits ? r->fit.log_std_max : none);
    for (int m = 0; m < members; m++)
        numbered(l, "holdout", m, r->fits ? r->fit.holdout[m] : none);
    for (int k = 0; k < OPC_ERRORS; k++)
        numbered(l, "learned", OPC_ERROR_STEPS[k], r->learned[k]);
    for (int k = 0; k < OPC_ERRORS; k++)
        numbered(l, "corrected", OPC_ERROR_STEPS[k], r->corrected[k]);
    cell(l, "horizon", r->rollouts ? r->horizon : none);
    cell(l, "rollouts", (double)r->rollouts);
    cell(l, "rollout_length", r->rollouts ? (double)r->imagined / (double)r->rollouts : none);
    const double rollouts = r->rollouts ? (double)r->rollouts : none;
    cell(l, "end_horizon", (double)r->end[OPC_END_HORIZON] / rollouts);
    cell(l, "end_terminal", (double)r->end[OPC_END_TERMINAL] / rollouts);
    cell(l, "end_reference", (double)r->end[OPC_END_REFERENCE] / rollouts);
    cell(l, "state_max_std", r->rollouts ? r->state_max_std : none);
    cell(l, "reward_min", r->rollouts ? r->reward_min : none);
    cell(l, "reward_max", r->rollouts ? r->reward_max : none);
    cell(l, "updates", (double)r->agent.updates);
    for (int k = 0; columns && columns[k].name; k++)
        cell(l, columns[k].name, r->agent.updates ? r->agent.value[k] : none);
}

bool opc_record_is_column(const char *name, int members, char nearest[64])
{
    const struct opc_epoch_row row = {0};
    struct line l = {.head = true};
    metrics_line(&l, &row, members, NULL);
    for (int i = 0; opc_agent_type(i); i++)
        for (const struct opc_agent_column *c = opc_agent_type(i)->columns; c->name; c++)
            cell(&l, c->name, 0);
    const bool found = opc_rundir_head_find(opc_text_get(&l.text), name, nearest) >= 0;
    opc_text_free(&l.text);
    return found;
}

static void timing_line(struct line *l, int epoch, const double seconds[OPC_PHASES], double total)
{
    double sum = 0;
    cell(l, "epoch", epoch);
    for (int p = 0; p < OPC_PHASES; p++) {
        char name[32];
        snprintf(name, sizeof name, "%s_s", opc_phase_name((enum opc_phase)p));
        cell(l, name, round(seconds[p] * 1e6) / 1e6);
        sum += seconds[p];
    }
    cell(l, "epoch_s", round(sum * 1e6) / 1e6);
    cell(l, "total_s", round(total * 1e6) / 1e6);
}

/* A line is one write: who reads along sees whole lines only. Frees it. */
static int put(const struct opc_record *r, int file, const char *name, struct line *l,
               struct opc_err *err)
{
    opc_text_add(&l->text, "\n");
    int code = opc_text_check(&l->text, err);
    if (!code && !opc_write_all(file, opc_text_get(&l->text), l->text.used))
        code = opc_fail_errno(err, errno, "cannot write %s/%s", r->dir, name);
    opc_text_free(&l->text);
    return code;
}

/* A row is begun, its cells follow, and it is put. */
static int begin_row(struct line *l, const char *columns, struct opc_err *err)
{
    *l = (struct line){.columns = columns};
    const int n = columns ? count_columns(columns) : 0;
    if (n > 0 && !(l->value = opc_alloc((size_t)n, sizeof *l->value)))
        return opc_fail(err, OPC_ENOMEM, "not enough memory for a row of a table");
    for (int i = 0; i < n; i++)
        l->value[i] = (double)NAN;
    return OPC_OK;
}

static int put_row(const struct opc_record *r, int file, const char *name, struct line *l,
                   struct opc_err *err)
{
    const int n = l->columns ? count_columns(l->columns) : 0;
    for (int i = 0; i < n; i++) {
        opc_text_add(&l->text, i ? "," : "");
        put_value(l, l->value[i]);
    }
    opc_free(l->value);
    return put(r, file, name, l, err);
}

int opc_record_epoch(struct opc_record *r, const struct opc_epoch_row *row, struct opc_err *err)
{
    struct line l;
    if (!r)
        return OPC_OK;
    const int code = begin_row(&l, r->columns, err);
    if (code)
        return code;
    metrics_line(&l, row, r->members, r->agent_columns);
    return put_row(r, r->metrics, "metrics.csv", &l, err);
}

int opc_record_timing(struct opc_record *r, int epoch, const double seconds[OPC_PHASES],
                      double total, struct opc_err *err)
{
    struct line l;
    if (!r)
        return OPC_OK;
    const int code = begin_row(&l, r->timing_columns, err);
    if (code)
        return code;
    timing_line(&l, epoch, seconds, total);
    return put_row(r, r->timing, "timing.csv", &l, err);
}

/* Opens a table that has to reach to where it ended. */
static int open_table(struct opc_record *r, const char *name, uint64_t end, int *file,
                      struct opc_err *err)
{
    struct stat st;
    if (*file >= 0)
        close(*file); /* a second try, with an older checkpoint */
    int code = open_file(r, name, O_WRONLY | O_CREAT | O_APPEND, file, err);
    if (code)
        return code;
    if (fstat(*file, &st) == 0 && (uint64_t)st.st_size < end)
        return opc_fail(err, OPC_EDAMAGED,
                        "%s/%s has %lld bytes, the checkpoint was taken when it had %llu", r->dir,
                        name, (long long)st.st_size, (unsigned long long)end);
    return OPC_OK;
}

static int cut_table(const struct opc_record *r, const char *name, uint64_t end, int file,
                     struct opc_err *err)
{
    return ftruncate(file, (off_t)end)
               ? opc_fail_errno(err, errno, "cannot cut %s/%s", r->dir, name)
               : OPC_OK;
}

/* A run that an older program began keeps its columns. */
static int keep_columns(struct opc_record *r, const char *name, char **columns, struct opc_err *err)
{
    struct opc_rundir_table table;
    opc_free(*columns); /* a second try */
    *columns = NULL;
    const int code = opc_rundir_table_read(r->dir, name, &table, err);
    if (code)
        return code;
    *columns = table.head; /* taken from the table, the rest of which is not needed */
    table.head = NULL;
    opc_rundir_table_free(&table);
    return OPC_OK;
}

int opc_record_begin(struct opc_record *r, struct opc_record_ends ends, int members,
                     const struct opc_agent_column *columns, struct opc_err *err)
{
    if (!r)
        return OPC_OK;
    r->members = members;
    r->agent_columns = columns;
    int code = open_table(r, "metrics.csv", ends.metrics, &r->metrics, err);
    if (!code)
        code = open_table(r, "timing.csv", ends.timing, &r->timing, err);
    if (!code) /* both or none */
        code = cut_table(r, "metrics.csv", ends.metrics, r->metrics, err);
    if (!code)
        code = cut_table(r, "timing.csv", ends.timing, r->timing, err);
    if (!code && ends.metrics > 0)
        code = keep_columns(r, "metrics.csv", &r->columns, err);
    if (!code && ends.timing > 0)
        code = keep_columns(r, "timing.csv", &r->timing_columns, err);
    if (!code && ends.metrics == 0) {
        const struct opc_epoch_row row = {0};
        struct line l = {.head = true};
        metrics_line(&l, &row, members, columns);
        code = put(r, r->metrics, "metrics.csv", &l, err);
    }
    if (!code && ends.timing == 0) {
        const double seconds[OPC_PHASES] = {0};
        struct line l = {.head = true};
        timing_line(&l, 0, seconds, 0);
        code = put(r, r->timing, "timing.csv", &l, err);
    }
    return code;
}

static int sync_table(const struct opc_record *r, int file, const char *name, uint64_t *end,
                      struct opc_err *err)
{
    struct stat st;
    if (fsync(file) || fstat(file, &st))
        return opc_fail_errno(err, errno, "cannot write %s/%s", r->dir, name);
    *end = (uint64_t)st.st_size;
    return OPC_OK;
}

int opc_record_sync(struct opc_record *r, struct opc_record_ends *out, struct opc_err *err)
{
    const int code = sync_table(r, r->metrics, "metrics.csv", &out->metrics, err);
    return code ? code : sync_table(r, r->timing, "timing.csv", &out->timing, err);
}

/* ---- status and log -------------------------------------------------------------------------- */

static void print_time(char out[32])
{
    const time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

int opc_record_status(struct opc_record *r, const char *state, const char *why,
                      const struct opc_progress *p, struct opc_err *err)
{
    char path[OPC_PATH], now[32];
    if (!r)
        return OPC_OK;
    const int code = opc_record_path(r, "status.json", path, err);
    if (code)
        return code;
    print_time(now);
    struct opc_json *j = opc_json_begin();
    opc_json_text(j, "state", state);
    opc_json_text(j, "why", why);
    opc_json_text(j, "updated", now);
    opc_json_whole(j, "pid", (int64_t)getpid());
    opc_json_whole(j, "epoch", p->epoch);
    opc_json_whole(j, "epochs", p->epochs);
    opc_json_whole(j, "env_steps", p->env_steps);
    opc_json_whole(j, "total_steps", p->total_steps);
    opc_json_real(j, "eval_return", p->eval_return);
    opc_json_real(j, "model_error", p->model_error);
    const int done = p->epoch - p->first_epoch + 1;
    opc_json_real(j, "remaining_s",
                  done > 0 && p->first_epoch > 0 ? p->elapsed / done * (p->epochs - p->epoch)
                                                 : (double)NAN);
    return opc_json_write(j, path, err);
}

void opc_record_log(struct opc_record *r, enum opc_level level, const char *fmt, ...)
{
    char line[1000], now[32], stamped[1100];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (level >= OPC_INFO)
        opc_log(level, "%s", line);
    if (!r || r->log < 0)
        return;
    print_time(now);
    const int n = snprintf(stamped, sizeof stamped, "%s %s%s\n", now,
                           level == OPC_WARN ? "warning: " : "", line);
    (void)opc_write_all(r->log, stamped, (size_t)n);
}
