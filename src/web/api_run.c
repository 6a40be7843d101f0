/* SPDX-License-Identifier: MIT */
/* What the page shows of one run: its metrics, settings, differences to another run, and the end of
 * its log. Called by web/api.c.
 *
 * Invariant: everything is read from the run's directory at the time of the request, and what
 * cannot be read is an answer with a sentence, not an end of the server. */
#include "base/file.h"
#include "opc/mem.h"
#include "run/files/json.h"
#include "run/files/rundir.h"
#include "study/curves/compare.h"
#include "web/api.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_POINTS = 2000, LOG_BYTES = 1 << 16 };

/* ---- metrics --------------------------------------------------------------------------------- */

/* Every `each`-th row from the last one backwards, so that the newest is always there. */
static void add_column(struct opc_text *text, const struct opc_rundir_table *t, int column,
                       int each)
{
    const int first = (t->rows - 1) % each;
    opc_text_add(text, "[");
    for (int row = first; row < t->rows; row += each) {
        opc_text_add(text, row > first ? "," : "");
        opc_web_number(text, opc_rundir_table_number(t, row, column));
    }
    opc_text_add(text, "]");
}

void opc_web_metrics(const struct opc_watch_run *run, struct opc_web_answer *out)
{
    struct opc_rundir_table t;
    struct opc_err err = {0};
    struct opc_text *text = &out->own;
    if (opc_rundir_table_read(run->dir, "metrics.csv", &t, &err)) {
        opc_text_add(text, "{\"columns\": {}}"); /* the run has not got that far */
        return;
    }
    const int each = t.rows > MAX_POINTS ? (t.rows + MAX_POINTS - 1) / MAX_POINTS : 1;
    opc_text_add(text, "{\"columns\": {");
    for (int c = 0; c < t.columns; c++) {
        opc_text_add(text, c ? ",\n" : "");
        opc_json_add_quoted(text, t.name[c]);
        opc_text_add(text, ": ");
        add_column(text, &t, c, each);
    }
    opc_text_add(text, "}}");
    opc_rundir_table_free(&t);
}

/* ---- settings -------------------------------------------------------------------------------- */

void opc_web_settings(const struct opc_watch_run *run, const struct opc_values *defaults,
                      struct opc_web_answer *out)
{
    struct opc_config *config;
    struct opc_err err = {0};
    struct opc_part part[OPC_PARTS_MAX], usual[OPC_PARTS_MAX];
    struct opc_text value = {0}, other = {0};
    if (opc_config_of_run(run->dir, &config, &err)) {
        opc_web_fail(out, 404, "%s", err.text);
        return;
    }
    struct opc_values copy = *defaults; /* parts are not const */
    const int parts = opc_config_parts(&config->set, part);
    opc_config_parts(&copy, usual);
    bool first = true;
    opc_text_add(&out->own, "[");
    for (int i = 0; i < parts; i++)
        for (int k = 0; k < part[i].section->n; k++) {
            const struct opc_field *f = &part[i].section->fields[k];
            opc_text_clear(&value);
            opc_text_clear(&other);
            opc_field_print(f, part[i].values, &value);
            opc_field_print(f, usual[i].values, &other);
            const bool same = strcmp(opc_text_get(&value), opc_text_get(&other)) == 0;
            opc_text_addf(&out->own, "%s{\"key\": \"%s.%s\", \"default\": %s, \"value\": ",
                          first ? "\n" : ",\n", part[i].section->name, f->name,
                          same ? "true" : "false");
            opc_json_add_quoted(&out->own, opc_text_get(&value));
            opc_text_add(&out->own, ", \"help\": ");
            opc_json_add_quoted(&out->own, f->help);
            opc_text_add(&out->own, "}");
            first = false;
        }
    opc_text_add(&out->own, "]");
    opc_text_free(&value);
    opc_text_free(&other);
    opc_config_destroy(config);
}

void opc_web_differences(const struct opc_watch_run *a, const struct opc_watch_run *b,
                         struct opc_web_answer *out)
{
    const struct opc_compare_runs side[2] = {{"a", 1, &a->dir}, {"b", 1, &b->dir}};
    struct opc_table *table;
    struct opc_err err = {0};
    if (opc_compare_settings(side, &table, &err)) {
        opc_web_fail(out, 404, "%s", err.text);
        return;
    }
    static const char *const KEY[] = {"{\"key\": ", ", \"a\": ", ", \"b\": "};
    opc_text_add(&out->own, "[");
    for (int r = 0; r < opc_table_rows(table); r++) {
        opc_text_add(&out->own, r ? ",\n" : "");
        for (int c = 0; c < 3; c++) {
            opc_text_add(&out->own, KEY[c]);
            opc_json_add_quoted(&out->own, opc_table_cell(table, r, c));
        }
        opc_text_add(&out->own, "}");
    }
    opc_text_add(&out->own, "]");
    opc_table_free(table);
}

/* ---- the log --------------------------------------------------------------------------------- */

/* The last whole lines of log.txt. */
void opc_web_log(const struct opc_watch_run *run, struct opc_web_answer *out)
{
    char path[OPC_PATH], *text = opc_alloc(1, LOG_BYTES + 1);
    struct stat st;
    out->type = "text/plain; charset=utf-8";
    const int fd = opc_path_join(path, run->dir, "log.txt", NULL)
                       ? -1
                       : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && text && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        const off_t from = st.st_size > LOG_BYTES ? st.st_size - LOG_BYTES : 0;
        const ssize_t n = pread(fd, text, LOG_BYTES, from);
        text[n > 0 ? n : 0] = '\0';
        /* Unless it is the whole file, it begins within a line. */
        const char *start = from > 0 ? strchr(text, '\n') : NULL;
        opc_text_add(&out->own, start ? start + 1 : text);
    }
    opc_text_add(&out->own, ""); /* an empty log is an empty answer */
    if (fd >= 0)
        close(fd);
    opc_free(text);
}
