/* SPDX-License-Identifier: MIT */
/* The table of scores of learning curves on the page of a report: a heading for each panel, and an
 * interval in one cell with its middle, so that a line of it fits on a phone. report_exhibit.c
 * calls it.
 *
 * Invariant: only a table with exactly the columns of NAME-scores.csv (study/curves) is shown so,
 * and in the order of its rows. */
#include "study/report/html.h"
#include "study/report/report_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The columns, and what intervals are rounded to. */
enum { PANEL, LINE, SEEDS, IQM, P = 6, COLUMNS = 9, IQM_DIGITS = 4, P_DIGITS = 2 };

bool opc_report_is_scores(const struct opc_exhibit_item *item, const struct opc_table *table)
{
    static const char *const NAME[COLUMNS] = {"panel",    "line", "seeds", "iqm",   "iqm_low",
                                              "iqm_high", "p",    "p_low", "p_high"};
    static const char ENDING[] = "-scores.csv";
    const size_t length = strlen(item->file), n = strlen(ENDING);
    bool is = length > n && strcmp(item->file + length - n, ENDING) == 0 &&
              opc_table_columns(table) == COLUMNS;
    for (int k = 0; k < COLUMNS && is; k++)
        is = strcmp(opc_table_name(table, k), NAME[k]) == 0;
    return is;
}

/* A number with so many significant digits; what is none stays as it is. */
static void add_rounded(struct opc_text *html, const char *cell, int digits)
{
    char rounded[OPC_PRINTED];
    double v;
    if (!opc_parse_real(cell, &v)) {
        opc_html_text(html, cell);
        return;
    }
    snprintf(rounded, sizeof rounded, "%.*e", digits - 1, v);
    opc_text_add_real(html, strtod(rounded, NULL)); /* printed and read with the same point */
}

/* "1515 [1160, 1779]" of three columns; empty where there is no number. */
static void add_interval(struct opc_text *html, const struct opc_table *table, int row, int column,
                         int digits)
{
    opc_text_add(html, "<td class=\"n\">");
    if (*opc_table_cell(table, row, column)) {
        add_rounded(html, opc_table_cell(table, row, column), digits);
        opc_text_add(html, " <span class=\"interval\">[");
        add_rounded(html, opc_table_cell(table, row, column + 1), digits);
        opc_text_add(html, ", ");
        add_rounded(html, opc_table_cell(table, row, column + 2), digits);
        opc_text_add(html, "]</span>");
    }
    opc_text_add(html, "</td>");
}

void opc_report_scores(struct opc_text *html, const struct opc_table *table, int rows)
{
    const char *panel = NULL;
    opc_text_add(html, "<table class=\"data scores\">\n<thead><tr><th scope=\"col\">line</th>"
                       "<th scope=\"col\" class=\"n\">seeds</th>"
                       "<th scope=\"col\" class=\"n\">IQM</th>"
                       "<th scope=\"col\" class=\"n\">P</th></tr></thead>\n");
    for (int row = 0; row < rows; row++) {
        const char *here = opc_table_cell(table, row, PANEL);
        /* A heading and a body for each panel. */
        if (!panel || strcmp(panel, here) != 0) {
            opc_text_add(html, panel ? "</tbody>\n<tbody>\n" : "<tbody>\n");
            opc_text_add(html, "<tr class=\"panel\"><th scope=\"rowgroup\" colspan=\"4\">");
            opc_html_text(html, here);
            opc_text_add(html, "</th></tr>\n");
            panel = here;
        }
        opc_text_add(html, "<tr><td>");
        opc_html_text(html, opc_table_cell(table, row, LINE));
        opc_text_add(html, "</td><td class=\"n\">");
        opc_html_text(html, opc_table_cell(table, row, SEEDS));
        opc_text_add(html, "</td>");
        add_interval(html, table, row, IQM, IQM_DIGITS);
        add_interval(html, table, row, P, P_DIGITS);
        opc_text_add(html, "</tr>\n");
    }
    opc_text_add(html, panel ? "</tbody>\n</table>" : "</table>");
}
