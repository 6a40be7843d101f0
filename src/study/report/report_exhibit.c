/* SPDX-License-Identifier: MIT */
/* One exhibit of a report as HTML: heading, pictures, claims, notes, tables, origin. report.c
 * calls it.
 *
 * Invariant: a file that is missing or damaged is marked on the page and never ends the report;
 * only lack of memory does. */
#include "study/report/report_private.h"

#include "base/file.h"
#include "base/log.h"
#include "opc/mem.h"
#include "study/report/html.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limits: bytes of an SVG file, rows shown of a table, characters of a number shown in full. */
enum { LARGEST_PICTURE = 1 << 26, MAX_ROWS = 200, LONG_NUMBER = 10 };

void opc_report_verdict(struct opc_text *html, enum opc_verdict verdict, int n)
{
    /* CSS class, sign and word of each verdict; the sign is hidden from screen readers. */
    static const char *const SHOWN_AS[][3] = {
        [OPC_VERDICT_SUPPORTED] = {"yes", "&#10003;", "supported"},
        [OPC_VERDICT_NOT_SUPPORTED] = {"no", "&#10007;", "not supported"},
        [OPC_VERDICT_UNDECIDED] = {"open", "?", "undecided"}};
    opc_text_addf(html, "<span class=\"verdict %s\"><span aria-hidden=\"true\">%s</span> ",
                  SHOWN_AS[verdict][0], SHOWN_AS[verdict][1]);
    if (n >= 0)
        opc_text_addf(html, "%d ", n);
    opc_text_addf(html, "%s</span>", SHOWN_AS[verdict][2]);
}

void opc_report_incomplete(struct opc_text *html, const struct opc_exhibit_read *exhibit)
{
    if (exhibit->missing)
        opc_text_addf(html,
                      "<span class=\"verdict incomplete\" title=\"%d run%s missing\">"
                      "incomplete</span> ",
                      exhibit->missing, exhibit->missing == 1 ? " is" : "s are");
}

/* An element whose content is escaped; `open` and `close` are HTML. */
static void add_element(struct opc_text *html, const char *open, const char *text,
                        const char *close)
{
    opc_text_add(html, open);
    opc_html_text(html, text);
    opc_text_add(html, close);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Path of a file of the exhibit. */
static int exhibit_file_path(const struct opc_exhibit_read *exhibit, const char *file,
                             const char *ending, char out[OPC_PATH], struct opc_err *err)
{
    char name[OPC_PATH];
    if (snprintf(name, sizeof name, "%s%s", file, ending) >= (int)sizeof name)
        return opc_fail(err, OPC_EDAMAGED, "the name of a file in %s is too long", exhibit->dir);
    return opc_path_join(out, exhibit->dir, name, err);
}

/* Marks a file that cannot be shown, on the page and in the log. Only lack of memory is passed
 * on. */
static int cannot_show(struct opc_text *html, struct opc_report_card *card, const char *file,
                       const char *ending, int code, const struct opc_err *why)
{
    if (code == OPC_ENOMEM)
        return code;
    opc_log(OPC_LEVEL_WARN, "%s: %s", card->exhibit->name, why->text);
    opc_text_add(html, "<p class=\"missing\"><strong>Missing:</strong> <code>");
    opc_html_text(html, file);
    opc_text_addf(html,
                  "%s</code> was not there, or damaged, when this page was made. Make the "
                  "exhibit again, then the page.</p>\n",
                  ending);
    card->missing++;
    return OPC_OK;
}

/* Adds a picture as inline SVG, below its title. */
static int add_picture(struct opc_text *html, struct opc_report_card *card,
                       const struct opc_exhibit_item *item, int number, struct opc_err *err)
{
    const struct opc_exhibit_read *exhibit = card->exhibit;
    char path[OPC_PATH], prefix[32], *svg = NULL;
    struct opc_text label = {0}, drawn = {0};
    /* Errors are collected in `why`: most of them only mark the picture as missing. */
    struct opc_err why = {0};
    snprintf(prefix, sizeof prefix, "p%d.", number);
    opc_text_addf(&label, "%s: %s", card->label, *item->title ? item->title : exhibit->title);
    int code = opc_text_check(&label, &why);
    if (!code)
        code = exhibit_file_path(exhibit, item->file, ".svg", path, &why);
    if (!code)
        code = opc_file_read(path, LARGEST_PICTURE, &svg, NULL, &why);
    /* Ids of this picture get a prefix of their own. */
    if (!code && (code = opc_html_svg(&drawn, svg, prefix, opc_text_get(&label), &why)))
        opc_within(&why, "%s", path);
    opc_text_add(html, "<figure>\n");
    if (*item->title && strcmp(item->title, exhibit->title) != 0)
        add_element(html, "<figcaption>", item->title, "</figcaption>\n");
    if (code) {
        code = cannot_show(html, card, item->file, ".svg", code, &why);
    } else {
        /* It can be scrolled, so it must be reachable by keyboard. */
        opc_text_add(html, "<div class=\"picture\" tabindex=\"0\" role=\"group\" aria-label=\"");
        opc_html_text(html, opc_text_get(&label));
        opc_text_add(html, "\">");
        opc_text_add_bytes(html, drawn.at, drawn.used);
        opc_text_add(html, "</div>\n");
    }
    opc_text_add(html, "</figure>\n");
    opc_free(svg);
    opc_text_free(&label);
    opc_text_free(&drawn);
    if (code && err)
        *err = why;
    return code;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Whether a cell is a number as our programs write them. */
static bool is_number(const char *cell)
{
    double v;
    return opc_parse_real(cell, &v);
}

/* Whether all cells of a column that are not empty are numbers, and there is at least one. */
static bool is_numeric(const struct opc_table *table, int column)
{
    bool any = false;
    for (int row = 0; row < opc_table_rows(table); row++) {
        const char *cell = opc_table_cell(table, row, column);
        if (*cell && !is_number(cell))
            return false;
        any = any || *cell;
    }
    return any;
}

/* Adds a cell; long numbers are shortened to six digits, because the file has the rest. Returns
 * whether this one was. */
static bool add_cell(struct opc_text *html, const char *cell, bool numeric)
{
    double v;
    const bool shorten =
        numeric && strlen(cell) > LONG_NUMBER && strpbrk(cell, ".e") && opc_parse_real(cell, &v);
    opc_text_add(html, numeric ? "<td class=\"n\">" : "<td>");
    if (shorten) {
        char rounded[OPC_PRINTED];
        snprintf(rounded, sizeof rounded, "%.5e", v);
        opc_text_add_real(html, strtod(rounded, NULL)); /* printed and read with the same point */
    } else {
        opc_html_text(html, cell);
    }
    opc_text_add(html, "</td>");
    return shorten;
}

/* Adds the first `shown` rows as a table. Returns whether any number was shortened. */
static bool add_rows(struct opc_text *html, const struct opc_table *table, int shown,
                     const bool *numeric)
{
    const int columns = opc_table_columns(table);
    /* Column names, right-aligned over numbers. */
    bool shortened = false;
    opc_text_add(html, "<table class=\"data\">\n<thead><tr>");
    for (int c = 0; c < columns; c++)
        add_element(html, numeric[c] ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">",
                    opc_table_name(table, c), "</th>");
    opc_text_add(html, "</tr></thead>\n<tbody>\n");
    /* Rows up to the limit. */
    for (int r = 0; r < shown; r++) {
        opc_text_add(html, "<tr>");
        for (int c = 0; c < columns; c++)
            shortened |= add_cell(html, opc_table_cell(table, r, c), numeric[c]);
        opc_text_add(html, "</tr>\n");
    }
    opc_text_add(html, "</tbody>\n</table>");
    return shortened;
}

/* A table that opens on a click, with a note if it does not show everything. */
static void show_table(struct opc_text *html, const struct opc_exhibit_item *item,
                       const struct opc_table *table, const bool *numeric)
{
    const char *title = *item->title ? item->title : item->file;
    const int rows = opc_table_rows(table), shown = rows < MAX_ROWS ? rows : MAX_ROWS;
    /* Scores are what most readers want; the others open on a click. */
    const bool scores = opc_report_is_scores(item, table);
    add_element(html, scores ? "<details open>\n<summary>" : "<details>\n<summary>", title,
                " <span class=\"aside\">");
    add_element(html, "<code>", item->file, "</code>, ");
    opc_text_addf(html, "%d row%s</span></summary>\n", rows, rows == 1 ? "" : "s");
    add_element(html, "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"", title,
                "\">");
    bool shortened = false;
    if (scores)
        opc_report_scores(html, table, shown);
    else
        shortened = add_rows(html, table, shown, numeric);
    opc_text_add(html, "</div>\n");
    /* Say what is not shown; the CSV file has everything. */
    if (shown < rows || shortened || scores) {
        opc_text_add(html, "<p class=\"aside\">");
        if (shown < rows)
            opc_text_addf(html, "The first %d of %d rows. ", shown, rows);
        opc_text_addf(html, "%sThe file has all.</p>\n",
                      scores      ? "Numbers are rounded. "
                      : shortened ? "Long numbers are shown with six digits. "
                                  : "");
    }
    opc_text_add(html, "</details>\n");
}

/* Reads a table and shows it. */
static int add_table(struct opc_text *html, struct opc_report_card *card,
                     const struct opc_exhibit_item *item, struct opc_err *err)
{
    char path[OPC_PATH];
    struct opc_table *table = NULL;
    struct opc_err why = {0};
    int code = exhibit_file_path(card->exhibit, item->file, "", path, &why);
    if (!code)
        code = opc_table_read(path, &table, &why);
    /* A table that cannot be read is marked, and the page goes on. */
    if (code) {
        code = cannot_show(html, card, item->file, "", code, &why);
        if (code && err)
            *err = why;
        return code;
    }
    const int columns = opc_table_columns(table);
    bool *numeric = opc_alloc((size_t)columns, sizeof *numeric);
    for (int c = 0; c < columns && numeric; c++)
        numeric[c] = is_numeric(table, c);
    if (numeric)
        show_table(html, item, table, numeric);
    else
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for %d columns", columns);
    opc_free(numeric);
    opc_table_free(table);
    return code;
}

/* ---- the exhibit ----------------------------------------------------------------------------- */

/* Heading with label, title, tier, whether runs are missing, and verdicts. */
static void add_heading(struct opc_text *html, const struct opc_report_card *card)
{
    const struct opc_exhibit_read *exhibit = card->exhibit;
    opc_text_addf(html, "<article id=\"%s\" aria-labelledby=\"%s.title\">\n", card->anchor,
                  card->anchor);
    opc_text_addf(html, "<h2 id=\"%s.title\"><span class=\"label\">", card->anchor);
    add_element(html, "", card->label, "</span> ");
    add_element(html, "<span class=\"title\">", exhibit->title,
                "</span></h2>\n<p class=\"badges\">");
    if (*exhibit->tier)
        add_element(html, "<span class=\"tier\">tier ", exhibit->tier, "</span> ");
    opc_report_incomplete(html, exhibit);
    for (int v = OPC_VERDICT_SUPPORTED; v <= OPC_VERDICT_UNDECIDED; v++)
        if (card->claims[v]) {
            opc_report_verdict(html, (enum opc_verdict)v, card->claims[v]);
            opc_text_add(html, " ");
        }
    /* Two exhibits of the same name are distinguished by their directory. */
    if (card->ambiguous)
        add_element(html, "<span class=\"aside\">in <code>", opc_path_name(exhibit->dir),
                    "</code></span>");
    opc_text_add(html, "</p>\n");
}

/* The paper's claims, each with its verdict and our measurement. */
static void add_claims(struct opc_text *html, const struct opc_exhibit_read *exhibit)
{
    if (!exhibit->claims)
        return;
    opc_text_add(html, "<h3>Claims, and what was measured</h3>\n"
                       "<ul class=\"claims\">\n");
    for (int i = 0; i < exhibit->claims; i++) {
        opc_text_add(html, "<li>");
        opc_report_verdict(html, exhibit->claim[i].verdict, -1);
        add_element(html, "<div><p class=\"claim\">", exhibit->claim[i].claim, "</p>");
        if (*exhibit->claim[i].measured)
            add_element(html, "<p class=\"measured\"><span class=\"aside\">Measured:</span> ",
                        exhibit->claim[i].measured, "</p>");
        opc_text_add(html, "</div></li>\n");
    }
    opc_text_add(html, "</ul>\n");
}

/* What differs from the paper. */
static void add_notes(struct opc_text *html, const struct opc_exhibit_read *exhibit)
{
    if (!exhibit->notes)
        return;
    opc_text_add(html, "<h3>What differs from the paper</h3>\n<ul class=\"notes\">\n");
    for (int i = 0; i < exhibit->notes; i++)
        add_element(html, "<li>", exhibit->note[i], "</li>\n");
    opc_text_add(html, "</ul>\n");
}

/* The command line and the settings, so that the exhibit can be made again. */
static void add_origin(struct opc_text *html, const struct opc_exhibit_read *exhibit)
{
    if (!*exhibit->command && !*exhibit->config)
        return;
    opc_text_add(html, "<h3>How it is made</h3>\n");
    if (*exhibit->command)
        add_element(html, "<pre class=\"command\" tabindex=\"0\"><code>", exhibit->command,
                    "</code></pre>\n");
    if (*exhibit->config)
        add_element(html, "<details>\n<summary>Settings</summary>\n<pre tabindex=\"0\"><code>",
                    exhibit->config, "</code></pre>\n</details>\n");
}

int opc_report_exhibit(struct opc_text *html, struct opc_report_card *card, int *pictures,
                       struct opc_err *err)
{
    const struct opc_exhibit_read *exhibit = card->exhibit;
    int code = OPC_OK;
    /* Pictures and caption, claims, notes, numbers, origin. */
    add_heading(html, card);
    for (int i = 0; i < exhibit->pictures && !code; i++)
        code = add_picture(html, card, &exhibit->picture[i], ++*pictures, err);
    if (*exhibit->caption)
        add_element(html, "<p class=\"caption\">", exhibit->caption, "</p>\n");
    add_claims(html, exhibit);
    add_notes(html, exhibit);
    if (exhibit->tables)
        opc_text_add(html, "<h3>Numbers</h3>\n");
    for (int i = 0; i < exhibit->tables && !code; i++)
        code = add_table(html, card, &exhibit->table[i], err);
    add_origin(html, exhibit);
    opc_text_add(html, "</article>\n");
    return code ? code : opc_text_check(html, err);
}
