/* SPDX-License-Identifier: MIT */
/* Plays recorded actions and writes what the environment answers: `opc env trace`. env_render.c
 * reads its files by the same functions.
 *
 * Invariant: numbers are written with 17 digits, so that a trace determines every bit; golden files
 * of the tests are such traces. */
#include "cli/env/env_trace.h"

#include "base/file.h"
#include "base/text.h"
#include "cli/console/display.h"
#include "opc/env.h"
#include "opc/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LARGEST_FILE = 1 << 30 };

/* ---- CSV in ---------------------------------------------------------------------------------- */

/* Number of lines; cuts off empty ones at the end. */
static int count_lines(char *text)
{
    int lines = 0;
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r\n", text[n - 1]))
        n--;
    text[n] = '\0';
    for (; *text; text += strcspn(text, "\n"), text += *text != '\0')
        lines++;
    return lines;
}

/* Narrows [from, to) to what is between the spaces around it. */
static void trim(const char **from, const char **to)
{
    while (*from < *to && strchr(" \t\r", **from))
        ++*from;
    while (*from < *to && strchr(" \t\r", (*to)[-1]))
        --*to;
}

/* One number between commas. */
static int read_cell(const char *from, const char *to, double *out, struct opc_err *err)
{
    char cell[512];
    trim(&from, &to);
    /* A cell that does not fit is refused rather than cut: it would be another number. */
    const int n = snprintf(cell, sizeof cell, "%.*s", (int)(to - from), from);
    if (n < 0 || (size_t)n >= sizeof cell || !opc_parse_real(cell, out))
        return opc_fail(
            err, OPC_EUSER,
            "'%.60s' is not a number; write numbers, separated by commas, without a header "
            "line",
            cell);
    if (!isfinite(*out))
        return opc_fail(err, OPC_EUSER, "%s will not do; every number must be finite", cell);
    return OPC_OK;
}

/* Reads `columns` numbers from the line that ends at `end`. All cells are counted, so that the
 * message has the number that is there. */
static int read_line(const char *line, const char *end, int columns, const char *what, double *out,
                     struct opc_err *err)
{
    int n = 0;
    for (const char *from = line; from <= end; n++) {
        /* A cell ends at a comma or at the end of the line. */
        const char *to = memchr(from, ',', (size_t)(end - from));
        to = to ? to : end;
        if (n < columns) {
            const int code = read_cell(from, to, &out[n], err);
            if (code)
                return code;
        }
        from = to + 1;
    }
    if (n != columns)
        return opc_fail(err, OPC_EUSER, "%d numbers, but %s has %d", n, what, columns);
    return OPC_OK;
}

int opc_read_numbers(const char *path, int columns, const char *what, double **out, int *rows,
                     struct opc_err *err)
{
    char *text;
    size_t size;
    if (!opc_file_exists(path)) /* its name is what is wrong, as in run/config/yaml.c */
        return opc_fail(err, OPC_EUSER, "cannot read %s: there is no such file", path);
    int code = opc_file_read(path, LARGEST_FILE, &text, &size, err);
    if (code)
        return code;
    /* A zero byte inside: reading on would silently cut the file there. */
    if (strlen(text) != size)
        code = opc_fail(err, OPC_EUSER, "%s is not a text file", path);
    /* Sized by the number of lines; each of them must have all columns. */
    const int lines = count_lines(text);
    double *numbers = opc_alloc((size_t)lines * (size_t)columns, sizeof *numbers);
    if (!code && !numbers)
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for the %d lines of %s", lines, path);
    const char *line = text;
    for (int i = 0; !code && i < lines; i++) {
        const char *end = line + strcspn(line, "\n");
        code = read_line(line, end, columns, what, numbers + (size_t)i * (size_t)columns, err);
        if (code)
            opc_within(err, "%s:%d", path, i + 1);
        line = end + 1;
    }
    opc_free(text);
    if (code) {
        opc_free(numbers);
        return code;
    }
    *out = numbers;
    *rows = lines;
    return OPC_OK;
}

/* The noise-free start is NULL, as opc_env_start wants it. */
int opc_read_state(const char *path, int columns, double **out, struct opc_err *err)
{
    int rows;
    *out = NULL;
    if (!*path)
        return OPC_OK;
    double *state;
    const int code = opc_read_numbers(path, columns, "the full state", &state, &rows, err);
    if (code)
        return code;
    if (rows == 1) {
        *out = state;
        return OPC_OK;
    }
    opc_free(state);
    return opc_fail(err, OPC_EUSER, "%s has %d lines; a state is one line", path, rows);
}

/* ---- CSV out --------------------------------------------------------------------------------- */

/* Where rows go. */
struct sheet {
    struct opc_save *file; /* NULL: standard output */
    struct opc_text row;
};

/* Writes the row that was put together and starts the next. */
static int end_row(struct sheet *s, struct opc_err *err)
{
    opc_text_add(&s->row, "\n");
    const int code = opc_text_check(&s->row, err);
    if (code)
        return code;
    /* A file fails at its end (opc_save_end), standard output in main. */
    if (s->file)
        opc_save_bytes(s->file, s->row.at, s->row.used);
    else
        fwrite(s->row.at, 1, s->row.used, stdout);
    s->row.used = 0;
    return OPC_OK;
}

/* t, reward, terminated, then o0, o1, ... */
static int write_header(struct sheet *s, int obs, struct opc_err *err)
{
    opc_text_add(&s->row, "t,reward,terminated");
    for (int i = 0; i < obs; i++)
        opc_text_addf(&s->row, ",o%d", i);
    return end_row(s, err);
}

/* Row t: the outcome of step t; row 0 is the start. */
static int write_row(struct sheet *s, int obs, int t, const struct opc_outcome *out,
                     struct opc_err *err)
{
    opc_text_addf(&s->row, "%d,%.17g,%d", t, out->reward, out->terminated);
    for (int i = 0; i < obs; i++)
        opc_text_addf(&s->row, ",%.17g", out->obs[i]);
    return end_row(s, err);
}

/* ---- trace ----------------------------------------------------------------------------------- */

/* Goes on past the end of the task: the caller wants an answer to every action. */
static int play_actions(struct opc_env *env, const double *state, int steps, const double *action,
                        struct sheet *sheet, struct opc_err *err)
{
    struct opc_outcome out = {.obs = opc_alloc((size_t)env->obs, sizeof *out.obs)};
    if (!out.obs)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for an observation");
    int code = opc_env_start(env, state, out.obs, err);
    if (!code)
        code = write_header(sheet, env->obs, err);
    if (!code)
        code = write_row(sheet, env->obs, 0, &out, err);
    struct opc_pace pace = {0};
    opc_stop_catch(
        NULL); /* only now: while files are read, which may be a terminal, Ctrl-C ends us */
    for (int t = 1; !code && t <= steps; t++, action += env->act) {
        code = opc_env_step(env, action, &out, err);
        if (!code)
            code = write_row(sheet, env->obs, t, &out, err);
        /* A bar would mix with rows on standard output. */
        if (sheet->file)
            opc_pace_show(&pace, (double)t / steps, "playing");
    }
    opc_bar_wipe();
    opc_free(out.obs);
    return code;
}

/* The file appears only if all steps went well. */
static int trace_to_file(struct opc_env *env, const double *state, int steps, const double *action,
                         const char *path, struct opc_err *err)
{
    struct sheet sheet = {0};
    int code = *path ? opc_save_begin(path, &sheet.file, err) : OPC_OK;
    if (code)
        return code;
    code = play_actions(env, state, steps, action, &sheet, err);
    opc_text_free(&sheet.row);
    if (code)
        opc_save_drop(sheet.file);
    else if (sheet.file)
        code = opc_save_end(sheet.file, err);
    return code;
}

int opc_env_trace(const char *spec, const char *state_path, const char *actions_path,
                  const char *out, struct opc_err *err)
{
    struct opc_env *env;
    double *state = NULL, *actions = NULL;
    int steps = 0;
    if (!*actions_path)
        return opc_fail(err, OPC_EUSER, "name the file of actions to play: --actions FILE");
    int code = opc_env_open(spec, &env, err);
    if (code)
        return code;
    /* Files are read before anything is played or written. */
    code = opc_read_state(state_path, env->state, &state, err);
    if (!code)
        code = opc_read_numbers(actions_path, env->act, "an action", &actions, &steps, err);
    if (!code)
        code = trace_to_file(env, state, steps, actions, out, err);
    opc_free(state);
    opc_free(actions);
    opc_env_close(env);
    return code;
}
