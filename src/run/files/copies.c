/* SPDX-License-Identifier: MIT */
/* metrics.csv as JSON lines and as a TensorBoard event file; see copies.h.
 *
 * A line of metrics.jsonl is an object with every column; an empty cell is null.
 *
 * An event file is a sequence of records:
 *
 *     length of the message, 8 bytes | its check, 4 bytes | message | its check, 4 bytes
 *
 * with little-endian numbers and masked CRC-32C. The message is an Event in the wire format of
 * Protocol Buffers. The first one names the version of the format; each further one is a row of
 * metrics.csv, with a scalar for each cell that is not empty.
 *
 * Invariant: after opc_copies_begin a copy has the rows of metrics.csv and no others, however the
 * process before this one ended. For that the copy is computed from metrics.csv as a whole, and the
 * file is cut where it begins to differ. A row always has the same number of bytes, so a row that
 * is computed again comes to lie where it was, and TensorBoard, which remembers how far it has
 * read, goes on there. */
#include "run/files/copies.h"

#include "base/file.h"
#include "base/format/crc.h"
#include "base/format/proto.h"
#include "opc/mem.h"
#include "run/files/json.h"
#include "run/files/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_COPY_BYTES = 1 << 30 };

/* Numbers of fields in TensorBoard's messages: Event, Summary and Summary.Value. */
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2 };
/* Bytes of a record before its message, and of the time: key and value, first in the message. */
enum { RECORD_HEAD = 12, TIME_KEY = EVENT_WALL_TIME << 3 | 1, TIME_BYTES = 9 };

/* ---- JSON lines ------------------------------------------------------------------------------ */

static void add_json_row(struct opc_text *out, const struct opc_rundir_table *table, int row)
{
    opc_text_add(out, "{");
    for (int c = 0; c < table->columns; c++) {
        const double v = opc_rundir_table_number(table, row, c);
        opc_text_add(out, c ? ", " : "");
        opc_json_add_quoted(out, table->name[c]);
        opc_text_add(out, ": ");
        if (isnan(v))
            opc_text_add(out, "null");
        else
            opc_text_add_real(out, v);
    }
    opc_text_add(out, "}\n");
}

/* ---- TensorBoard ----------------------------------------------------------------------------- */

/* n bytes, the lowest first */
static void add_little_endian(struct opc_text *out, uint64_t value, int n)
{
    char bytes[8];
    for (int i = 0; i < n; i++)
        bytes[i] = (char)(value >> 8 * i & 255);
    opc_text_add_bytes(out, bytes, (size_t)n);
}

/* The mask keeps the check of data that itself holds checks from being a trivial one. */
static void add_check(struct opc_text *out, const void *data, size_t n)
{
    const uint32_t crc = opc_crc32c(0, data, n);
    add_little_endian(out, (uint32_t)((crc >> 15 | crc << 17) + 0xa282ead8u), 4);
}

/* Appends a message as a record, and frees it. */
static void add_record(struct opc_text *out, struct opc_text *event)
{
    struct opc_text length = {0};
    add_little_endian(&length, event->used, 8);
    opc_text_add_bytes(out, opc_text_get(&length), length.used);
    add_check(out, opc_text_get(&length), length.used);
    opc_text_add_bytes(out, opc_text_get(event), event->used);
    add_check(out, opc_text_get(event), event->used);
    out->failed |= event->failed || length.failed;
    opc_text_free(&length);
    opc_text_free(event);
}

static void add_version(struct opc_text *out, double time)
{
    struct opc_text event = {0};
    opc_proto_double(&event, EVENT_WALL_TIME, time);
    opc_proto_text(&event, EVENT_FILE_VERSION, "brain.Event:2");
    add_record(out, &event);
}

/* TensorBoard's scalars are floats; what is too large for one is infinite. */
static float to_float(double v)
{
    return fabs(v) <= (double)FLT_MAX ? (float)v : copysignf(INFINITY, v < 0 ? -1.0f : 1.0f);
}

static void add_event_row(struct opc_text *out, const struct opc_rundir_table *table, int row,
                          double time)
{
    struct opc_text event = {0}, summary = {0};
    const int column = opc_rundir_head_find(table->head, "env_steps", NULL);
    const double steps = column < 0 ? 0 : opc_rundir_table_number(table, row, column);
    opc_proto_double(&event, EVENT_WALL_TIME, time);
    opc_proto_whole(&event, EVENT_STEP, steps >= 0 && steps < 1e18 ? (uint64_t)steps : 0);
    /* A scalar for each cell; its tag is the name of the column. */
    for (int c = 0; c < table->columns; c++) {
        const double v = opc_rundir_table_number(table, row, c);
        struct opc_text value = {0};
        if (isnan(v))
            continue;
        opc_proto_text(&value, VALUE_TAG, table->name[c]);
        opc_proto_float(&value, VALUE_SIMPLE, to_float(v));
        opc_proto_message(&summary, SUMMARY_VALUE, &value);
    }
    opc_proto_message(&event, EVENT_SUMMARY, &summary);
    add_record(out, &event);
}

/* Seconds since 1970. */
static double time_of_day(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The time of the record that begins at `at` in the n bytes of an older file; `now` if there is
 * none. What is not a time does no harm: the record then differs and is replaced. */
static double time_of_record(const char *old, size_t n, size_t at, double now)
{
    uint64_t bits = 0;
    double time;
    if (!old || n < at + RECORD_HEAD + TIME_BYTES || old[at + RECORD_HEAD] != TIME_KEY)
        return now;
    for (int i = 0; i < 8; i++)
        bits |= (uint64_t)(unsigned char)old[at + RECORD_HEAD + 1 + (size_t)i] << 8 * i;
    memcpy(&time, &bits, sizeof time);
    return time > 0 && time <= now ? time : now;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The whole file as it shall be; rows that are in the old one keep their times. */
static void add_all_json(struct opc_text *out, const struct opc_rundir_table *table,
                         const char *old, size_t n)
{
    (void)old, (void)n;
    for (int row = 0; row < table->rows; row++)
        add_json_row(out, table, row);
}

static void add_all_events(struct opc_text *out, const struct opc_rundir_table *table,
                           const char *old, size_t n)
{
    const double now = time_of_day();
    add_version(out, time_of_record(old, n, 0, now));
    for (int row = 0; row < table->rows; row++)
        add_event_row(out, table, row, time_of_record(old, n, out->used, now));
}

typedef void add_all_fn(struct opc_text *, const struct opc_rundir_table *, const char *, size_t);

/* Cuts the file after the first `same` bytes of `want` and appends the others. */
static int replace_end(const char *path, const struct opc_text *want, size_t same, int *file,
                       struct opc_err *err)
{
    *file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (*file < 0)
        return opc_fail_errno(err, errno, "cannot open %s", path);
    if (ftruncate(*file, (off_t)same))
        return opc_fail_errno(err, errno, "cannot cut %s", path);
    if (!opc_write_all(*file, opc_text_get(want) + same, want->used - same))
        return opc_fail_errno(err, errno, "cannot write %s", path);
    return OPC_OK;
}

/* Makes a copy what it shall be and opens it; see the invariant above. */
static int begin_copy(const char *dir, const char *name, const struct opc_rundir_table *table,
                      add_all_fn *add_all, int *file, struct opc_err *err)
{
    char path[OPC_PATH], *old = NULL;
    size_t n = 0, same = 0;
    struct opc_text want = {0};
    OPC_TRY(opc_path_join(path, dir, name, err));
    if (opc_file_exists(path))
        OPC_TRY(opc_file_read(path, MAX_COPY_BYTES, &old, &n, err));
    add_all(&want, table, old, n);
    int code = opc_text_check(&want, err);
    while (!code && same < n && same < want.used && old[same] == want.at[same])
        same++;
    if (!code)
        code = replace_end(path, &want, same, file, err);
    opc_text_free(&want);
    opc_free(old);
    return code;
}

int opc_copies_begin(struct opc_copies *copies, const char *dir, bool json_lines, bool tensorboard,
                     struct opc_err *err)
{
    struct opc_rundir_table table = {0};
    opc_copies_close(copies); /* of a first attempt, with the newer checkpoint */
    if (!json_lines && !tensorboard)
        return OPC_OK;
    OPC_TRY(opc_rundir_table_read(dir, "metrics.csv", &table, err));
    int code = OPC_OK;
    if (json_lines)
        code = begin_copy(dir, OPC_COPIES_JSON, &table, add_all_json, &copies->json_fd, err);
    if (!code && tensorboard)
        code = begin_copy(dir, OPC_COPIES_EVENTS, &table, add_all_events, &copies->events_fd, err);
    /* further rows have the same columns */
    copies->head = table.head;
    table.head = NULL;
    opc_rundir_table_free(&table);
    return code;
}

/* One write, so that a program that reads along sees whole rows. Frees the text. */
static int append(int file, const char *dir, const char *name, struct opc_text *text,
                  struct opc_err *err)
{
    int code = opc_text_check(text, err);
    if (!code && !opc_write_all(file, opc_text_get(text), text->used))
        code = opc_fail_errno(err, errno, "cannot write %s/%s", dir, name);
    opc_text_free(text);
    return code;
}

int opc_copies_add(const struct opc_copies *copies, const char *dir, const char *line,
                   struct opc_err *err)
{
    struct opc_rundir_table table;
    struct opc_text csv = {0}, out = {0};
    if (copies->json_fd < 0 && copies->events_fd < 0)
        return OPC_OK;
    /* a table of this one row; the copies hold what a reader of metrics.csv reads */
    opc_text_addf(&csv, "%s\n%s", copies->head, line);
    int code = opc_text_check(&csv, err);
    if (code) {
        opc_text_free(&csv);
        return code;
    }
    OPC_TRY(opc_rundir_table_parse("metrics.csv", csv.at, &table, err));
    if (copies->json_fd >= 0) {
        add_json_row(&out, &table, 0);
        code = append(copies->json_fd, dir, OPC_COPIES_JSON, &out, err);
    }
    if (!code && copies->events_fd >= 0) {
        add_event_row(&out, &table, 0, time_of_day());
        code = append(copies->events_fd, dir, OPC_COPIES_EVENTS, &out, err);
    }
    opc_rundir_table_free(&table);
    return code;
}

void opc_copies_close(struct opc_copies *copies)
{
    if (copies->json_fd >= 0)
        close(copies->json_fd);
    if (copies->events_fd >= 0)
        close(copies->events_fd);
    copies->json_fd = copies->events_fd = -1;
    opc_free(copies->head);
    copies->head = NULL;
}
