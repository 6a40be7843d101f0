/* SPDX-License-Identifier: MIT */
/* Text and SVG pictures as parts of an HTML page, for the other files of this folder. The SVG
 * reader accepts only what a figure consists of.
 *
 * Invariant: nothing that is appended can run a script or load something from outside the page,
 * whatever a file in a results directory contains. */
#include "study/report/html.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- text ------------------------------------------------------------------------------------ */

/* Length in bytes of the UTF-8 character at s; 0 if it is not one. */
static int utf8_length(const unsigned char *s)
{
    /* By the first byte; then overlong forms, surrogates and numbers above U+10FFFF are
     * excluded. */
    const int n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) /* also true at the end of the string */
            return 0;
    const bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    const bool surrogate = s[0] == 0xed && s[1] > 0x9f;
    const bool beyond = s[0] > 0xf4 || (s[0] == 0xf4 && s[1] > 0x8f);
    return overlong || surrogate || beyond ? 0 : n;
}

void opc_html_text(struct opc_text *out, const char *text)
{
    /* Copy plain characters up to one that needs escaping. */
    while (*text) {
        const size_t plain = strcspn(text, "<>&\"'\x7f\x01\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\r"
                                           "\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a"
                                           "\x1b\x1c\x1d\x1e\x1f");
        /* Among those, replace what is not UTF-8. */
        for (size_t i = 0; i < plain;) {
            const int n = utf8_length((const unsigned char *)text + i);
            if (n)
                opc_text_add_bytes(out, text + i, (size_t)n);
            else
                opc_text_add(out, "\xef\xbf\xbd");
            i += n ? (size_t)n : 1;
        }
        text += plain;
        switch (*text) {
        case '\0': return;
        case '<': opc_text_add(out, "&lt;"); break;
        case '>': opc_text_add(out, "&gt;"); break;
        case '&': opc_text_add(out, "&amp;"); break;
        case '"': opc_text_add(out, "&quot;"); break;
        case '\'': opc_text_add(out, "&#39;"); break;
        default: opc_text_add(out, "\xef\xbf\xbd");
        }
        text++;
    }
}

/* ---- pictures -------------------------------------------------------------------------------- */

enum { DEEPEST = 64 }; /* elements within each other; cairo needs about five */

struct span { /* a piece of the file */
    const char *at;
    size_t n;
};

/* Copies an SVG element by element. */
struct reader {
    const char *from, *at;
    const char *prefix, *label;
    struct opc_text out;
    struct span open[DEEPEST]; /* elements that are not closed yet, outermost first */
    int depth;
    bool done; /* the outermost element is closed */
};

/* An error at a place in the file, with its line. */
static int refuse_svg(const struct reader *reader, const char *at, struct opc_err *err,
                      const char *what, struct span name)
{
    int line = 1;
    for (const char *c = reader->from; c < at; c++)
        line += *c == '\n';
    return opc_fail(err, OPC_EDAMAGED, "line %d: %s%.*s", line, what,
                    (int)(name.n < 60 ? name.n : 60), name.at);
}

/* An error at the current position. */
static int refuse_here(const struct reader *reader, struct opc_err *err, const char *what)
{
    return refuse_svg(reader, reader->at, err, what, (struct span){"", 0});
}

/* Case is ignored: within a page, unlike in a file of its own, browsers do not distinguish it in
 * SVG. */
static bool span_is(struct span s, const char *word)
{
    return s.n == strlen(word) && strncasecmp(s.at, word, s.n) == 0;
}

static bool span_starts(struct span s, const char *word)
{
    return s.n >= strlen(word) && strncasecmp(s.at, word, strlen(word)) == 0;
}

static void skip_space(struct reader *reader)
{
    reader->at += strspn(reader->at, " \t\r\n");
}

/* Longest name at the current position; empty if there is none. */
static struct span read_name(struct reader *reader)
{
    const struct span name = {reader->at,
                              strspn(reader->at, "abcdefghijklmnopqrstuvwxyz"
                                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:.-")};
    reader->at += name.n;
    return name;
}

/* The elements a figure consists of, written by cairo or by hand. */
static bool is_drawing(struct span name)
{
    static const char *const KNOWN[] = {
        "svg",   "g",        "defs",           "symbol",         "use",      "path",
        "rect",  "circle",   "ellipse",        "line",           "polyline", "polygon",
        "image", "clipPath", "mask",           "pattern",        "filter",   "feColorMatrix",
        "stop",  "feImage",  "linearGradient", "radialGradient", "title",    "desc",
        "text",  "tspan",    "feFlood",        "feComposite",    "feBlend",  "feOffset"};
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (span_is(name, KNOWN[i]))
            return true;
    return false;
}

/* Copies a value and inserts the prefix after every "url(#"; any other url( leads out of the
 * file. */
static int copy_value(struct reader *reader, struct span value, struct opc_err *err)
{
    for (size_t i = 0; i < value.n; i++) {
        const struct span rest = {value.at + i, value.n - i};
        if (span_starts(rest, "url(#")) {
            opc_text_addf(&reader->out, "url(#%s", reader->prefix);
            i += 4;
        } else if (span_starts(rest, "url(")) {
            return refuse_svg(reader, value.at, err, "a reference out of the file: ", value);
        } else {
            opc_text_add_bytes(&reader->out, value.at + i, 1);
        }
    }
    return OPC_OK;
}

/* A number with unit pt or px. */
static bool is_length(struct span s)
{
    const size_t digits = strspn(s.at, "0123456789.");
    return digits > 0 && s.n == digits + 2 &&
           (strncmp(s.at + digits, "pt", 2) == 0 || strncmp(s.at + digits, "px", 2) == 0);
}

/* Copies one attribute: namespaces are dropped, event handlers refused, ids and references
 * prefixed. */
static int copy_attribute(struct reader *reader, struct span name, struct span value, char quote,
                          struct opc_err *err)
{
    if (span_starts(name, "xmlns"))
        return OPC_OK;
    if (span_starts(name, "on"))
        return refuse_svg(reader, name.at, err, "no figure has the attribute ", name);
    /* Links may point into the file or be embedded images. */
    const bool link = span_is(name, "href") || span_is(name, "xlink:href");
    const bool within = link && span_starts(value, "#");
    if (link && !within && !span_starts(value, "data:image/"))
        return refuse_svg(reader, name.at, err, "a reference out of the file: ", value);
    if (link)
        name = (struct span){"href", 4};
    /* The style sheet limits the picture to its natural width. */
    if (reader->depth == 0 && span_is(name, "width") && is_length(value))
        opc_text_addf(&reader->out, " style=\"--wide:%.*s\"", (int)value.n, value.at);
    opc_text_addf(&reader->out, " %.*s=%c", (int)name.n, name.at, quote);
    /* The prefix makes ids and references to them unique in the page. */
    if (span_is(name, "id"))
        opc_text_add(&reader->out, reader->prefix);
    if (within) {
        opc_text_addf(&reader->out, "#%s", reader->prefix);
        value = (struct span){value.at + 1, value.n - 1};
    }
    const int code = copy_value(reader, value, err);
    /* The caller's quote, so that the value needs no escaping. */
    opc_text_addf(&reader->out, "%c", quote);
    return code;
}

/* Copies the attributes between the name of an element and the end of its tag. */
static int copy_attributes(struct reader *reader, struct opc_err *err)
{
    for (skip_space(reader); *reader->at != '>' && *reader->at != '/'; skip_space(reader)) {
        const struct span name = read_name(reader);
        skip_space(reader);
        /* NAME = "VALUE", with optional spaces. */
        if (!name.n || *reader->at != '=')
            return refuse_here(reader, err, "the tag does not end");
        reader->at++;
        skip_space(reader);
        const char quote = *reader->at;
        if (quote != '"' && quote != '\'')
            return refuse_svg(reader, name.at, err, "no quotes around the value of ", name);
        const char *end = strchr(++reader->at, quote);
        if (!end)
            return refuse_svg(reader, name.at, err, "no end to the value of ", name);
        const struct span value = {reader->at, (size_t)(end - reader->at)};
        /* A < would let a browser see another element here. */
        if (memchr(value.at, '<', value.n))
            return refuse_svg(reader, name.at, err, "a < in the value of ", name);
        const int code = copy_attribute(reader, name, value, quote, err);
        if (code)
            return code;
        reader->at = end + 1;
    }
    return OPC_OK;
}

/* Copies a start tag and remembers the element until its end tag. */
static int copy_element(struct reader *reader, struct opc_err *err)
{
    const struct span name = read_name(reader);
    if (!is_drawing(name))
        return refuse_svg(reader, name.at, err, "no figure has an element ", name);
    if (reader->done || (reader->depth == 0 && !span_is(name, "svg")))
        return refuse_svg(reader, name.at, err, "outside the picture: ", name);
    opc_text_addf(&reader->out, "<%.*s", (int)name.n, name.at);
    /* The outermost element gets a label for screen readers. */
    if (reader->depth == 0) {
        opc_text_add(&reader->out, " role=\"img\" aria-label=\"");
        opc_html_text(&reader->out, reader->label);
        opc_text_add(&reader->out, "\"");
    }
    const int code = copy_attributes(reader, err);
    if (code)
        return code;
    /* An element without content closes itself. */
    if (*reader->at == '/') {
        if (reader->at[1] != '>')
            return refuse_here(reader, err, "the tag does not end");
        opc_text_add(&reader->out, "/>");
        reader->at += 2;
        reader->done = reader->depth == 0;
        return OPC_OK;
    }
    if (reader->depth == DEEPEST)
        return refuse_here(reader, err, "too many elements in each other");
    reader->open[reader->depth++] = name;
    opc_text_add(&reader->out, ">");
    reader->at++;
    return OPC_OK;
}

/* Copies an end tag, which must be that of the innermost open element. */
static int copy_end(struct reader *reader, struct opc_err *err)
{
    const struct span name = read_name(reader);
    skip_space(reader);
    if (*reader->at != '>' || reader->depth == 0 || name.n != reader->open[reader->depth - 1].n ||
        strncmp(name.at, reader->open[reader->depth - 1].at, name.n) != 0)
        return refuse_svg(reader, name.at, err, "the wrong end tag: ", name);
    reader->at++;
    reader->done = --reader->depth == 0;
    opc_text_addf(&reader->out, "</%.*s>", (int)name.n, name.at);
    return OPC_OK;
}

/* Skips a comment or something in front of the picture. */
static int skip_to(struct reader *reader, const char *end, struct opc_err *err)
{
    const char *found = strstr(reader->at, end);
    if (!found)
        return refuse_here(reader, err, "no end to what starts here");
    reader->at = found + strlen(end);
    return OPC_OK;
}

/* Text and tags in turn; outside of the picture there may be only white space. */
static int copy_all(struct reader *reader, struct opc_err *err)
{
    int code = OPC_OK;
    while (*reader->at && !code) {
        const size_t plain = strcspn(reader->at, "<");
        if (reader->depth > 0)
            opc_text_add_bytes(&reader->out, reader->at, plain);
        else if (strspn(reader->at, " \t\r\n") < plain)
            return refuse_here(reader, err, "this is no SVG file");
        reader->at += plain;
        if (!*reader->at)
            break;
        /* Comments, declarations and the document type are dropped. */
        if (strncmp(reader->at, "<!--", 4) == 0) {
            code = skip_to(reader, "-->", err);
        } else if (reader->at[1] == '?') {
            code = skip_to(reader, "?>", err);
        } else if (reader->depth == 0 && strncmp(reader->at, "<!DOCTYPE", 9) == 0) {
            code = skip_to(reader, ">", err);
        } else if (reader->at[1] == '/') {
            reader->at += 2;
            code = copy_end(reader, err);
        } else {
            reader->at++;
            code = copy_element(reader, err);
        }
    }
    if (!code && !reader->done)
        return refuse_here(reader, err, "the file ends before the picture does");
    return code;
}

int opc_html_svg(struct opc_text *out, const char *svg, const char *prefix, const char *label,
                 struct opc_err *err)
{
    struct reader reader = {.from = svg, .at = svg, .prefix = prefix, .label = label};
    /* Copy into a text of its own: after an error nothing must be appended. */
    int code = copy_all(&reader, err);
    if (!code)
        code = opc_text_check(&reader.out, err);
    if (!code) {
        opc_text_add_bytes(out, reader.out.at, reader.out.used);
        code = opc_text_check(out, err);
    }
    opc_text_free(&reader.out);
    return code;
}
