/* SPDX-License-Identifier: MIT */
/* study/exhibit/table.h - named columns of numbers and words, written as CSV next to a figure. */
#ifndef OPC_STUDY_TABLE_H
#define OPC_STUDY_TABLE_H

#include "base/text.h"

struct opc_table; /* filled row by row, every row from the first column to the last */

/* columns: "theta,delta_b,signed distance"; names contain no comma. */
int opc_table_create(const char *columns, struct opc_table **out, struct opc_err *err);
void opc_table_free(struct opc_table *); /* NULL is fine */

/* Appends the next cell of the current row; the row ends with its last column. As with struct
 * opc_text, lack of memory is remembered and reported by opc_table_write. */
void opc_table_real(struct opc_table *, double);              /* as opc_print_real; NaN: empty */
void opc_table_fixed(struct opc_table *, double, int digits); /* digits after the point */
void opc_table_int(struct opc_table *, long long);
void opc_table_word(struct opc_table *, const char *); /* quoted where CSV needs it */

int opc_table_rows(const struct opc_table *);
int opc_table_columns(const struct opc_table *);
const char *opc_table_name(const struct opc_table *, int column);
/* The text of a cell, without quotes it may have in the file; lives until the next cell is
 * added. */
const char *opc_table_cell(const struct opc_table *, int row, int column);
int opc_table_find(const struct opc_table *, const char *column); /* -1: not found */

/* For a terminal: columns as wide as their widest cell, numbers to the right. */
void opc_table_print(const struct opc_table *, struct opc_text *out);

/* Writes the whole file by rename; a half-filled row is a bug of ours (OPC_EBUG). */
int opc_table_write(const struct opc_table *, const char *path, struct opc_err *err);
/* Reads any CSV file of ours; a row with another number of cells is an error that names the
 * line. */
int opc_table_read(const char *path, struct opc_table **out, struct opc_err *err);

#endif
