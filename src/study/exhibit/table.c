/* SPDX-License-Identifier: MIT */
/* Tables of named columns: filled cell by cell, written as CSV, read back, printed for a
 * terminal. Analyses, `opc sweep merge` and opc report use them.
 *
 * Invariant: a cell keeps the exact text it was given or read with, so that writing a table that
 * was read gives the same values. */
#include "study/exhibit/table.h"

#include "base/file.h"
#include "opc/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_BYTES = 200000000 }; /* of a file that is read */

/* All cells are stored one after the other in one text, each with its terminating NUL; the first
 * `columns` cells are the names. */
struct opc_table {
    struct opc_text text;
    size_t *start; /* [cells] offset of each cell in the text */
    size_t cells, capacity;
    int columns;
    bool failed; /* memory ran out; opc_table_write reports it */
};

/* One message for everything about a table. */
static int table_no_memory(struct opc_err *err)
{
    return opc_fail(err, OPC_ENOMEM, "not enough memory for the table");
}

/* Appends a cell; the array of offsets doubles when it is full. */
static void add_cell(struct opc_table *table, const char *bytes, size_t n)
{
    if (table->cells == table->capacity) {
        const size_t capacity = table->capacity ? 2 * table->capacity : 64;
        size_t *start = opc_alloc(capacity, sizeof *start);
        if (!start) {
            table->failed = true;
            return;
        }
        if (table->cells)
            memcpy(start, table->start, table->cells * sizeof *start);
        opc_free(table->start);
        table->start = start;
        table->capacity = capacity;
    }
    table->start[table->cells++] = table->text.used;
    opc_text_add_bytes(&table->text, bytes, n);
    opc_text_add_bytes(&table->text, "", 1);
}

/* Whether memory has run out at any time. */
static bool is_out_of_memory(const struct opc_table *table)
{
    return table->failed || table->text.failed;
}

int opc_table_create(const char *columns, struct opc_table **out, struct opc_err *err)
{
    struct opc_table *table = opc_alloc(1, sizeof *table);
    if (!table)
        return table_no_memory(err);
    /* The names become the first cells. */
    for (const char *at = columns;; at++) {
        const size_t n = strcspn(at, ",");
        add_cell(table, at, n);
        table->columns++;
        at += n;
        if (!*at)
            break;
    }
    if (is_out_of_memory(table)) {
        opc_table_free(table);
        return table_no_memory(err);
    }
    *out = table;
    return OPC_OK;
}

void opc_table_free(struct opc_table *table)
{
    if (!table)
        return;
    opc_text_free(&table->text);
    opc_free(table->start);
    opc_free(table);
}

void opc_table_word(struct opc_table *table, const char *word)
{
    if (!is_out_of_memory(table))
        add_cell(table, word, strlen(word));
}

/* Shortest text that reads back as the same number. */
void opc_table_real(struct opc_table *table, double v)
{
    char printed[OPC_PRINTED];
    opc_table_word(table, isnan(v) ? "" : opc_print_real(v, printed));
}

void opc_table_fixed(struct opc_table *table, double v, int digits)
{
    char printed[OPC_PRINTED];
    opc_table_word(table, isnan(v) ? "" : opc_print_fixed(v, digits, printed));
}

void opc_table_int(struct opc_table *table, long long v)
{
    char printed[OPC_PRINTED];
    snprintf(printed, sizeof printed, "%lld", v);
    opc_table_word(table, printed);
}

/* ---- contents -------------------------------------------------------------------------------- */

int opc_table_rows(const struct opc_table *table)
{
    /* The names are row -1. */
    return (int)(table->cells / (size_t)table->columns) - 1;
}

int opc_table_columns(const struct opc_table *table)
{
    return table->columns;
}

const char *opc_table_cell(const struct opc_table *table, int row, int column)
{
    return table->text.at +
           table->start[(size_t)(row + 1) * (size_t)table->columns + (size_t)column];
}

const char *opc_table_name(const struct opc_table *table, int column)
{
    return opc_table_cell(table, -1, column);
}

int opc_table_find(const struct opc_table *table, const char *column)
{
    for (int i = 0; i < table->columns; i++)
        if (strcmp(opc_table_name(table, i), column) == 0)
            return i;
    return -1;
}

/* ---- for a terminal -------------------------------------------------------------------------- */

/* Width of a column and its alignment: to the right if every cell is a number or empty. */
struct alignment {
    size_t width;
    bool right;
};

/* Numbers are recognised by opc_parse_real, as the reader of our files does. */
static struct alignment measure_column(const struct opc_table *table, int column)
{
    struct alignment a = {.width = strlen(opc_table_name(table, column)), .right = true};
    for (int row = 0; row < opc_table_rows(table); row++) {
        const char *cell = opc_table_cell(table, row, column);
        const size_t n = strlen(cell);
        double v;
        a.width = n > a.width ? n : a.width;
        a.right = a.right && (n == 0 || opc_parse_real(cell, &v));
    }
    return a;
}

void opc_table_print(const struct opc_table *table, struct opc_text *out)
{
    struct alignment *align = opc_alloc((size_t)table->columns, sizeof *align);
    if (!align || is_out_of_memory(table)) {
        out->failed = true;
        opc_free(align);
        return;
    }
    for (int column = 0; column < table->columns; column++)
        align[column] = measure_column(table, column);
    for (int row = -1; row < opc_table_rows(table); row++) {
        size_t blank = 0; /* spaces owed to the next cell, so that no line ends with spaces */
        for (int column = 0; column < table->columns; column++) {
            const char *cell = opc_table_cell(table, row, column);
            const size_t n = strlen(cell), pad = align[column].width - n;
            /* Two spaces between columns; padding before numbers and after words. */
            blank += (column ? 2 : 0) + (align[column].right ? pad : 0);
            if (n) {
                opc_text_pad(out, blank);
                opc_text_add(out, cell);
                blank = 0;
            }
            blank += align[column].right ? 0 : pad;
        }
        opc_text_add(out, "\n");
    }
    opc_free(align);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Quotes a cell if CSV needs it; quotes inside are doubled. */
static void print_cell(struct opc_text *out, const char *cell)
{
    if (!cell[strcspn(cell, ",\"\r\n")]) {
        opc_text_add(out, cell);
        return;
    }
    opc_text_add(out, "\"");
    for (; *cell; cell++) {
        if (*cell == '"')
            opc_text_add(out, "\"");
        opc_text_add_bytes(out, cell, 1);
    }
    opc_text_add(out, "\"");
}

int opc_table_write(const struct opc_table *table, const char *path, struct opc_err *err)
{
    if (is_out_of_memory(table))
        return table_no_memory(err);
    /* A row that is not complete is a mistake in the program, not in the data. */
    if (table->cells % (size_t)table->columns)
        return opc_fail(err, OPC_EBUG, "the last row of %s has %d of %d cells", path,
                        (int)(table->cells % (size_t)table->columns), table->columns);
    struct opc_text out = {0};
    /* Row -1 are the names. */
    for (int row = -1; row < opc_table_rows(table); row++)
        for (int column = 0; column < table->columns; column++) {
            print_cell(&out, opc_table_cell(table, row, column));
            opc_text_add(&out, column + 1 < table->columns ? "," : "\n");
        }
    int code = opc_text_check(&out, err);
    if (!code)
        code = opc_file_write(path, opc_text_get(&out), out.used, err);
    opc_text_free(&out);
    return code;
}

/* Reads one cell at *at, which is left at whatever ended it: a comma, a line end or the end of
 * the text. *line counts line ends inside quotes. False if a quote is not closed. */
static bool read_cell(struct opc_table *table, struct opc_text *cell, const char **at, int *line)
{
    opc_text_clear(cell);
    if (**at != '"') {
        const size_t n = strcspn(*at, ",\r\n");
        opc_text_add_bytes(cell, *at, n);
        *at += n;
    } else {
        /* Inside quotes a doubled quote stands for one. */
        for ((*at)++; **at != '"' || (*at)[1] == '"'; (*at)++) {
            if (!**at)
                return false;
            *line += **at == '\n';
            *at += **at == '"';
            opc_text_add_bytes(cell, *at, 1);
        }
        (*at)++;
    }
    table->failed |= cell->failed;
    add_cell(table, opc_text_get(cell), cell->used);
    return true;
}

/* Reads all rows. The first one sets the number of columns. */
static int read_rows(struct opc_table *table, const char *path, const char *at, struct opc_err *err)
{
    /* `line` counts lines of the file, of which a quoted cell may span several. */
    struct opc_text cell = {0};
    int code = OPC_OK;
    for (int line = 1; *at && !code && !is_out_of_memory(table); line++) {
        /* One pass per row: cells until something other than a comma follows. */
        const int first = line;
        int cells = 0;
        for (bool more = true; more && !code; cells++) {
            if (!read_cell(table, &cell, &at, &line))
                code = opc_fail(err, OPC_EDAMAGED, "%s:%d: a quote is not closed", path, first);
            more = *at == ',';
            at += more;
        }
        if (!code && *at && *at != '\r' && *at != '\n')
            code = opc_fail(err, OPC_EDAMAGED, "%s:%d: there is text after a closing quote", path,
                            line);
        at += *at == '\r';
        at += *at == '\n';
        if (table->columns == 0)
            table->columns = cells;
        if (!code && cells != table->columns)
            code = opc_fail(err, OPC_EDAMAGED, "%s:%d: %d cell%s, but the first line names %d",
                            path, first, cells, cells == 1 ? "" : "s", table->columns);
    }
    opc_text_free(&cell);
    return code || !is_out_of_memory(table) ? code : table_no_memory(err);
}

int opc_table_read(const char *path, struct opc_table **out, struct opc_err *err)
{
    char *text;
    size_t n;
    int code = opc_file_read(path, MAX_BYTES, &text, &n, err);
    if (code)
        return code;
    struct opc_table *table = opc_alloc(1, sizeof *table);
    if (!table)
        code = table_no_memory(err);
    /* A NUL inside would cut the text off. */
    else if (n == 0 || strlen(text) != n)
        code = opc_fail(err, OPC_EDAMAGED, "%s is no table: it is empty or not text", path);
    else
        code = read_rows(table, path, text, err);
    opc_free(text);
    if (code)
        opc_table_free(table);
    else
        *out = table;
    return code;
}
