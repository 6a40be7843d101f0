/* SPDX-License-Identifier: MIT */
/* study/report/html.h - text and pictures as parts of an HTML page. */
#ifndef OPC_STUDY_HTML_H
#define OPC_STUDY_HTML_H

#include "base/text.h"

/* Appends text with everything escaped that HTML would interpret, as content or between double
 * quotes. Bytes that are not UTF-8, and control characters other than newline and tab, become
 * U+FFFD. */
void opc_html_text(struct opc_text *, const char *);

/* Appends an SVG file as an element of the page: without XML declaration and namespaces, with
 * `label` for readers who cannot see it, with its width as --wide for the style sheet, and with
 * `prefix` before every id and every reference to one, because ids are shared by the whole page
 * and cairo starts at glyph0-0 in each file.
 *
 * Elements that no figure has (scripts, styles, foreign content), references out of the file
 * and unbalanced tags are OPC_EDAMAGED with their line; then nothing is appended. */
int opc_html_svg(struct opc_text *, const char *svg, const char *prefix, const char *label,
                 struct opc_err *err);

#endif
