/* SPDX-License-Identifier: MIT */
/* Tables of run directories from hostile hands: reading never goes astray, every cell is there, and
 * a whole line put together again is the line that was read. */
#include "run/files/rundir.h"

#include "opc/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz_rundir: %s\n", what);
    abort();
}

/* line: without its newline */
static void compare_line(const char *const *cell, int n, const char *line, size_t length)
{
    const char *at = line;
    for (int i = 0; i < n; i++) {
        const size_t width = strlen(cell[i]);
        must(i == 0 || *at++ == ',', "there is no comma between two cells");
        must(width <= (size_t)(line + length - at) && !memcmp(at, cell[i], width),
             "a cell is not what was read");
        at += width;
    }
    must(at == line + length, "the cells are not the whole line");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct opc_rundir_table t;
    struct opc_err err = {0};
    char *text = opc_alloc(size + 1, 1), *copy = opc_alloc(size + 1, 1);
    must(text && copy, "out of memory");
    memcpy(text, data, size);
    memcpy(copy, data, size);
    must(!opc_rundir_table_parse("fuzz", text, &t, &err), "a text is refused");
    const char *line = copy;
    for (int row = -1; row < t.rows && t.columns > 0; row++) {
        const char *const *cell = row < 0 ? t.name : t.cell + (size_t)row * (size_t)t.columns;
        const size_t length = strcspn(line, "\n");
        if (row < 0 || t.cells[row] == t.columns)
            compare_line(cell, t.columns, line, length);
        for (int k = 0; k < t.columns && row >= 0; k++)
            (void)opc_rundir_table_number(&t, row, k);
        line += length + 1;
    }
    must(!strchr(line, '\n'), "a whole line is left out");
    opc_rundir_table_free(&t);
    opc_free(copy);
    return 0;
}
