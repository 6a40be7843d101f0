/* SPDX-License-Identifier: MIT */
/* Settings made from one table (base/field.h): text to value, value to text, and the page of help.
 * Used by the configuration (run/config/config.c), by the options of every subcommand
 * (cli/console/options.c) and by the arguments of environments (env/env.c).
 *
 * Invariants: a value is written only when the whole text is good, and bytes that a value does not
 * use are zero, because runs compare settings bytewise (opc_field_equals). The one printed form of
 * a value must parse to the same bytes. */
#include "base/field.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Word i of a CHOICE's "one|two|three", or name i of a NAME; returns false after the last. */
static bool word_at(const struct opc_field *f, int i, char word[OPC_TEXT_SIZE])
{
    const char *at = f->names ? f->names(i) : f->words;
    for (; at && !f->names && i > 0; i--) {
        at = strchr(at, '|');
        at = at ? at + 1 : NULL;
    }
    if (at)
        snprintf(word, OPC_TEXT_SIZE, "%.*s", (int)strcspn(at, f->names ? "" : "|"), at);
    return at != NULL;
}

static bool is_text(const struct opc_field *f)
{
    return f->kind == OPC_FIELD_TEXT || f->kind == OPC_FIELD_TEXTS || f->kind == OPC_FIELD_PATH;
}

/* The bounds that hold: those of the table, but no wider than the type. Tables write 1e9 or
 * HUGE_VAL where they mean no bound. */
static double min_of(const struct opc_field *f)
{
    const bool whole = f->kind == OPC_FIELD_INT || f->kind == OPC_FIELD_INTS;
    return whole && f->min < INT_MIN ? INT_MIN : f->min;
}

static double max_of(const struct opc_field *f)
{
    const bool whole = f->kind == OPC_FIELD_INT || f->kind == OPC_FIELD_INTS;
    if (is_text(f))
        return fmin(f->max, (f->kind == OPC_FIELD_TEXT ? OPC_TEXT_SIZE : OPC_LONG_TEXT_SIZE) - 1);
    return whole && f->max > INT_MAX ? INT_MAX : f->max;
}

/* ---- from text to value: each returns true or says why not ---------------- */

/* A reason continues the sentence "NAME = TEXT ...": "is outside [0, 1]". */
enum { WHY = 256 };

static bool refuse(char why[WHY], const char *fmt, ...) OPC_PRINTF(2, 3);
static bool refuse(char why[WHY], const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, WHY, fmt, args);
    va_end(args);
    return false;
}

static bool parse_number(const struct opc_field *f, const char *text, double *out, char why[WHY])
{
    const bool whole = f->kind == OPC_FIELD_INT || f->kind == OPC_FIELD_INTS;
    char min[OPC_PRINTED], max[OPC_PRINTED];
    double v;
    /* Whole numbers are read as reals, so that 1e6 is one; a double holds every int exactly. */
    if (!opc_parse_real(text, &v) || (whole && v != floor(v)))
        return refuse(why, whole ? "is not a whole number" : "is not a number");
    if (!(v >= min_of(f) && v <= max_of(f)))
        return refuse(why, "is outside [%s, %s]", opc_print_real(min_of(f), min),
                      opc_print_real(max_of(f), max));
    *out = v;
    return true;
}

/* "[1, 2, 3]" or "1,2,3"; "[]" and "" are the empty list. */
static bool parse_list(const struct opc_field *f, const char *text, struct opc_reals *out,
                       char why[WHY])
{
    /* Either both brackets are there or neither is. */
    const size_t length = strlen(text);
    const bool open = text[0] == '[', closed = length > 1 && text[length - 1] == ']';
    if (open != closed)
        return refuse(why, "lacks a bracket; write [1, 2, 3]");
    const char *c = text + open, *end = text + length - closed;
    out->n = 0;
    c += strspn(c, " ");
    while (c < end) {
        /* One element up to a comma, a blank or the bracket; `fault` is what a cut element is
         * refused with. */
        char one[48], fault[WHY] = "is too long";
        const size_t n = strcspn(c, ", ]");
        if (out->n == OPC_LIST_MAX)
            return refuse(why, "has more than %d elements", OPC_LIST_MAX);
        snprintf(one, sizeof one, "%.*s", (int)n, c);
        if (n >= sizeof one || !parse_number(f, one, &out->at[out->n], fault))
            return refuse(why, "will not do: element %d, '%s', %.150s", out->n + 1, one, fault);
        out->n++;
        c += n + strspn(c + n, " ");
        /* Elements are separated by a comma; one after the last is tolerated. */
        if (c < end && *c++ != ',')
            return refuse(why, "lacks a comma; write [1, 2, 3]");
        c += strspn(c, " ");
    }
    return true;
}

static bool parse_bool(const char *text, bool *out, char why[WHY])
{
    /* Odd places are true. */
    static const char *const WORD[] = {"false", "true", "no", "yes", "off", "on"};
    for (int i = 0; i < 6; i++)
        if (!strcmp(text, WORD[i])) {
            *out = i % 2;
            return true;
        }
    return refuse(why, "is neither true nor false");
}

static bool parse_choice(const struct opc_field *f, const char *text, int *out, char why[WHY])
{
    char word[OPC_TEXT_SIZE] = "", meant[OPC_TEXT_SIZE] = "";
    int nearest = INT_MAX, used = snprintf(why, WHY, "is not one of");
    for (int i = 0; word_at(f, i, word); i++) {
        /* The whole list of words goes into `why`, in case none matches. */
        if (!strcmp(text, word)) {
            *out = i;
            return true;
        }
        if (opc_nearer(text, word, &nearest))
            memcpy(meant, word, sizeof meant);
        if (used < WHY)
            used += snprintf(why + used, (size_t)(WHY - used), "%s %s", i ? "," : "", word);
    }
    if (*meant && used < WHY)
        snprintf(why + used, (size_t)(WHY - used), "; did you mean '%s'?", meant);
    return false;
}

static bool parse_text(const struct opc_field *f, const char *text, char why[WHY])
{
    const double n = (double)strlen(text);
    if (n >= min_of(f) && n <= max_of(f))
        return true;
    if (n == 0)
        return refuse(why, "is empty");
    return refuse(why, "has %.0f characters, not %.0f to %.0f", n, min_of(f), max_of(f));
}

/* Appends the text: an option that may be repeated has one call for each time it is given. The
 * struct is copied out and back because `at` is a plain byte pointer. */
static bool parse_texts(const struct opc_field *f, const char *text, unsigned char *at,
                        char why[WHY])
{
    struct opc_texts texts;
    memcpy(&texts, at, sizeof texts);
    if (!parse_text(f, text, why))
        return false;
    if (texts.n == OPC_LIST_MAX)
        return refuse(why, "is one too many: it may be given %d times", OPC_LIST_MAX);
    snprintf(texts.at[texts.n++], OPC_LONG_TEXT_SIZE, "%s", text);
    memcpy(at, &texts, sizeof texts);
    return true;
}

/* The value goes to values + f->offset by memcpy, because the kind of a member is known only here;
 * it is written only when it is good. */
static bool parse_field(const struct opc_field *f, void *values, const char *text, char why[WHY])
{
    unsigned char *at = (unsigned char *)values + f->offset;
    double real = 0;
    int whole = 0;
    bool yes = false;
    struct opc_reals reals = {0};
    struct opc_ints ints = {0};
    switch (f->kind) {
    case OPC_FIELD_INT:
        if (!parse_number(f, text, &real, why))
            return false;
        whole = (int)real;
        memcpy(at, &whole, sizeof whole);
        return true;
    case OPC_FIELD_REAL:
        if (!parse_number(f, text, &real, why))
            return false;
        memcpy(at, &real, sizeof real);
        return true;
    case OPC_FIELD_BOOL:
        if (!parse_bool(text, &yes, why))
            return false;
        memcpy(at, &yes, sizeof yes);
        return true;
    case OPC_FIELD_TEXT:
    case OPC_FIELD_PATH:
        if (!parse_text(f, text, why))
            return false;
        /* The bytes after the NUL are part of the value when runs are compared. */
        memset(at, 0, opc_field_size(f));
        snprintf((char *)at, opc_field_size(f), "%s", text);
        return true;
    case OPC_FIELD_CHOICE:
    case OPC_FIELD_NAME:
        if (!parse_choice(f, text, &whole, why))
            return false;
        memcpy(at, &whole, sizeof whole);
        return true;
    case OPC_FIELD_INTS:
        if (!parse_list(f, text, &reals, why))
            return false;
        ints.n = reals.n;
        for (int i = 0; i < reals.n; i++)
            ints.at[i] = (int)reals.at[i];
        memcpy(at, &ints, sizeof ints);
        return true;
    case OPC_FIELD_REALS:
        if (!parse_list(f, text, &reals, why))
            return false;
        memcpy(at, &reals, sizeof reals);
        return true;
    case OPC_FIELD_TEXTS: return parse_texts(f, text, at, why);
    }
    return false;
}

/* ---- setting --------------------------------------------------------------------------------- */

/* Sets one field or fails with a message that also says default and meaning. prefix is "" or
 * "section." */
static int set_field(const struct opc_field *f, void *values, const char *prefix, const char *text,
                     struct opc_err *err)
{
    char why[WHY];
    if (parse_field(f, values, text, why))
        return OPC_OK;
    return opc_fail(err, OPC_EUSER, "%s%s = %.80s %s (default %s: %s)", prefix, f->name,
                    *text ? text : "''", why, *f->fallback ? f->fallback : "''", f->help);
}

/* Is `name` one of the words of "rate|lr"? */
static bool is_among(const char *words, const char *name)
{
    const size_t n = strlen(name);
    while (words && n > 0) {
        if (strncmp(words, name, n) == 0 && (words[n] == '|' || words[n] == '\0'))
            return true;
        words = strchr(words, '|');
        words = words ? words + 1 : NULL;
    }
    return false;
}

const struct opc_field *opc_section_find(const struct opc_section *s, const char *name)
{
    /* All names are tried before any alias: a name wins over another field's alias. */
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->fields[i].name, name))
            return &s->fields[i];
    for (int i = 0; i < s->n; i++)
        if (is_among(s->fields[i].also, name))
            return &s->fields[i];
    return NULL;
}

static int unknown_field(const struct opc_section *s, const char *name, struct opc_err *err)
{
    if (s->n == 0)
        return opc_fail(err, OPC_EUSER, "there are no settings here, and no '%s'", name);
    const char *best = opc_nearest(name, &s->fields->name, (size_t)s->n, sizeof *s->fields);
    if (best)
        return opc_fail(err, OPC_EUSER, "%s has no setting '%s'; did you mean '%s'?", s->name, name,
                        best);
    return opc_fail(err, OPC_EUSER, "%s has no setting '%s'; 'opc config %s' lists them", s->name,
                    name, s->name);
}

int opc_section_set(const struct opc_section *s, void *values, const char *name, const char *text,
                    struct opc_err *err)
{
    const struct opc_field *f = opc_section_find(s, name);
    return f ? set_field(f, values, "", text, err) : unknown_field(s, name, err);
}

int opc_section_defaults(const struct opc_section *s, void *values, struct opc_err *err)
{
    memset(values, 0, s->size);
    for (int i = 0; i < s->n; i++) {
        const struct opc_field *f = &s->fields[i];
        char why[WHY];
        if (f->kind == OPC_FIELD_TEXTS && !*f->fallback)
            continue; /* no text at all, which the cleared struct says already */
        if (!parse_field(f, values, f->fallback, why))
            return opc_fail(err, OPC_EBUG, "the default of %s.%s, %s, %s", s->name, f->name,
                            f->fallback, why);
    }
    return OPC_OK;
}

/* A key whose section does not exist: suggests the section that has such a field, or the section
 * whose name is nearest. */
static int unknown_section(const struct opc_part *part, int parts, const char *key,
                           struct opc_err *err)
{
    char name[64];
    const char *dot = strchr(key, '.'), *best = NULL;
    int nearest = INT_MAX;
    if (!dot) {
        /* "epochs" alone: the section was left out. */
        for (int i = 0; i < parts; i++) {
            const struct opc_field *f = opc_section_find(part[i].section, key);
            if (f)
                return opc_fail(err, OPC_EUSER, "there is no setting '%s'; did you mean '%s.%s'?",
                                key, part[i].section->name, f->name);
        }
        dot = key + strlen(key);
    }
    /* "trian.epochs": keep the field and correct the section. */
    snprintf(name, sizeof name, "%.*s", (int)(dot - key), key);
    for (int i = 0; i < parts; i++)
        if (opc_nearer(name, part[i].section->name, &nearest))
            best = part[i].section->name;
    if (best)
        return opc_fail(err, OPC_EUSER, "there is no setting '%s'; did you mean '%s%s'?", key, best,
                        *dot ? dot : ".*");
    return opc_fail(err, OPC_EUSER,
                    "there is no setting '%s'; 'opc config --list' lists the sections", key);
}

int opc_parts_set(const struct opc_part *part, int parts, const char *key, const char *text,
                  struct opc_err *err)
{
    for (int i = 0; i < parts; i++) {
        const struct opc_section *s = part[i].section;
        const size_t n = strlen(s->name);
        if (strncmp(key, s->name, n) || key[n] != '.')
            continue;
        char prefix[64];
        snprintf(prefix, sizeof prefix, "%s.", s->name);
        const struct opc_field *f = opc_section_find(s, key + n + 1);
        return f ? set_field(f, part[i].values, prefix, text, err)
                 : unknown_field(s, key + n + 1, err);
    }
    return unknown_section(part, parts, key, err);
}

/* ---- from value to text ---------------------------------------------------------------------- */

/* Mirrors parse_field: what is printed here must parse to the same bytes. */
void opc_field_print(const struct opc_field *f, const void *values, struct opc_text *t)
{
    const unsigned char *at = (const unsigned char *)values + f->offset;
    double real;
    int whole;
    bool yes;
    struct opc_reals reals;
    struct opc_ints ints;
    struct opc_texts texts;
    char word[OPC_TEXT_SIZE];
    switch (f->kind) {
    case OPC_FIELD_INT:
        memcpy(&whole, at, sizeof whole);
        opc_text_addf(t, "%d", whole);
        break;
    case OPC_FIELD_REAL:
        memcpy(&real, at, sizeof real);
        opc_text_add_real(t, real);
        break;
    case OPC_FIELD_BOOL:
        memcpy(&yes, at, sizeof yes);
        opc_text_add(t, yes ? "true" : "false");
        break;
    case OPC_FIELD_TEXT:
    case OPC_FIELD_PATH: opc_text_add(t, (const char *)at); break;
    case OPC_FIELD_CHOICE:
    case OPC_FIELD_NAME:
        memcpy(&whole, at, sizeof whole);
        if (word_at(f, whole, word))
            opc_text_add(t, word);
        break;
    case OPC_FIELD_INTS:
        memcpy(&ints, at, sizeof ints);
        opc_text_add(t, "[");
        for (int i = 0; i < ints.n; i++)
            opc_text_addf(t, "%s%d", i ? ", " : "", ints.at[i]);
        opc_text_add(t, "]");
        break;
    case OPC_FIELD_REALS:
        memcpy(&reals, at, sizeof reals);
        opc_text_add(t, "[");
        for (int i = 0; i < reals.n; i++) {
            opc_text_add(t, i ? ", " : "");
            opc_text_add_real(t, reals.at[i]);
        }
        opc_text_add(t, "]");
        break;
    case OPC_FIELD_TEXTS:
        memcpy(&texts, at, sizeof texts);
        for (int i = 0; i < texts.n; i++)
            opc_text_addf(t, "%s%s", i ? ", " : "", texts.at[i]);
        break;
    }
}

size_t opc_field_size(const struct opc_field *f)
{
    switch (f->kind) {
    case OPC_FIELD_INT:
    case OPC_FIELD_NAME:
    case OPC_FIELD_CHOICE: return sizeof(int);
    case OPC_FIELD_REAL: return sizeof(double);
    case OPC_FIELD_BOOL: return sizeof(bool);
    case OPC_FIELD_TEXT: return OPC_TEXT_SIZE;
    case OPC_FIELD_PATH: return OPC_LONG_TEXT_SIZE;
    case OPC_FIELD_INTS: return sizeof(struct opc_ints);
    case OPC_FIELD_REALS: return sizeof(struct opc_reals);
    case OPC_FIELD_TEXTS: return sizeof(struct opc_texts);
    }
    return 0;
}

bool opc_field_equals(const struct opc_field *f, const void *values, const char *text)
{
    union {
        struct opc_reals reals;
        struct opc_ints ints;
        struct opc_texts texts;
        char text[OPC_LONG_TEXT_SIZE];
    } other;
    memset(&other, 0, sizeof other);
    if (f->kind == OPC_FIELD_TEXTS && !*text) /* as opc_section_defaults has it: none */
        return memcmp(&other.texts, (const char *)values + f->offset, sizeof other.texts) == 0;
    /* Parse the text into a zeroed value of its own and compare bytes; offset 0 puts it at the
     * start. */
    struct opc_field alone = *f;
    char why[WHY];
    alone.offset = 0;
    return parse_field(&alone, &other, text, why) &&
           memcmp(&other, (const char *)values + f->offset, opc_field_size(f)) == 0;
}

/* ---- the page a user reads ------------------------------------------------------------------- */

enum { SETTING, TYPE, DEFAULT, ALLOWED, MEANING, COLUMNS };

/* ">= 0", "0 .. 1", "<= 5", or nothing without bounds. */
static void add_range(const struct opc_field *f, struct opc_text *t)
{
    const double min = min_of(f), max = max_of(f);
    if (isinf(min) && isinf(max))
        return;
    if (!isinf(min)) {
        opc_text_add(t, isinf(max) ? ">= " : "");
        opc_text_add_real(t, min);
    }
    opc_text_add(t, isinf(min) ? "<= " : isinf(max) ? "" : " .. ");
    if (!isinf(max))
        opc_text_add_real(t, max);
    opc_text_add(t, f->kind == OPC_FIELD_INTS || f->kind == OPC_FIELD_REALS ? " each" : "");
}

/* The help, the words to choose from, and the other names. */
static void add_meaning(const struct opc_field *f, struct opc_text *t)
{
    char word[OPC_TEXT_SIZE];
    opc_text_add(t, f->help);
    for (int i = 0; word_at(f, i, word); i++)
        opc_text_addf(t, "%s%s", i ? ", " : ": ", word);
    if (!f->also)
        return;
    opc_text_add(t, " (also read as ");
    for (const char *c = f->also; *c; c++)
        opc_text_addf(t, *c == '|' ? ", " : "%c", *c);
    opc_text_add(t, ")");
}

/* One cell of the page; the row of a NULL field is the head. */
static void add_cell(const struct opc_field *f, int column, struct opc_text *t)
{
    static const char *const HEAD[] = {"setting", "type", "default", "allowed", "meaning"};
    /* In the order of enum opc_kind; to a user a NAME is a choice, too. */
    static const char *const NAME[] = {"int",  "real",  "bool",   "text",  "choice",
                                       "ints", "reals", "choice", "texts", "path"};
    if (!f) {
        opc_text_add(t, HEAD[column]);
        return;
    }
    switch (column) {
    case SETTING: opc_text_add(t, f->name); break;
    case TYPE: opc_text_add(t, NAME[f->kind]); break;
    case DEFAULT: opc_text_add(t, f->fallback); break;
    case ALLOWED:
        if (is_text(f))
            opc_text_add(t, f->min >= 1 ? "not empty" : "");
        else if (f->kind != OPC_FIELD_BOOL && f->kind != OPC_FIELD_CHOICE &&
                 f->kind != OPC_FIELD_NAME)
            add_range(f, t);
        break;
    case MEANING: add_meaning(f, t); break;
    }
}

/* Breaks `text` into lines of at most `width` bytes; all but the first are indented. */
static void add_wrapped(struct opc_text *t, const char *text, size_t indent, size_t width)
{
    for (size_t used = 0; *text;) {
        const size_t n = strcspn(text, " ");
        if (used > 0 && used + 1 + n > width) {
            opc_text_add(t, "\n");
            opc_text_pad(t, indent);
            used = 0;
        }
        opc_text_add(t, used > 0 ? " " : "");
        opc_text_add_bytes(t, text, n);
        used += n + (used > 0);
        text += n + strspn(text + n, " ");
    }
}

enum { GAP = 2, BELOW = 6, NARROWEST = 30 }; /* of the page, in columns */

/* Prints one row; only the meaning is wrapped. */
static void add_row(const struct opc_field *f, const size_t width[COLUMNS], size_t indent,
                    size_t page, struct opc_text *t)
{
    struct opc_text cell = {0};
    const bool below = indent + NARROWEST > page;
    opc_text_pad(t, GAP);
    for (int column = 0; column < MEANING; column++) {
        const size_t before = t->used;
        add_cell(f, column, t);
        if (!t->failed && !(below && column == ALLOWED))
            opc_text_pad(t, width[column] + GAP - (t->used - before));
    }
    add_cell(f, MEANING, &cell);
    if (below) {
        opc_text_add(t, "\n");
        opc_text_pad(t, BELOW);
        indent = BELOW;
    }
    add_wrapped(t, opc_text_get(&cell), indent,
                indent + NARROWEST < page ? page - indent : NARROWEST);
    opc_text_add(t, "\n");
    t->failed |= cell.failed;
    opc_text_free(&cell);
}

void opc_section_describe(const struct opc_section *s, const struct opc_field *only, int page,
                          struct opc_text *t)
{
    struct opc_text cell = {0};
    size_t width[COLUMNS] = {0}, indent = GAP;
    /* First pass: every column but the last is as wide as its widest cell. Row -1 is the head. */
    for (int column = 0; column < MEANING; column++) {
        for (int i = -1; i < s->n; i++) {
            if (i >= 0 && only && only != &s->fields[i])
                continue;
            opc_text_clear(&cell);
            add_cell(i < 0 ? NULL : &s->fields[i], column, &cell);
            if (cell.used > width[column])
                width[column] = cell.used;
        }
        indent += width[column] + GAP;
    }
    /* Second pass: print. */
    opc_text_addf(t, "%s - %s\n\n", s->name, s->help);
    for (int i = -1; i < s->n; i++)
        if (i < 0 || !only || only == &s->fields[i])
            add_row(i < 0 ? NULL : &s->fields[i], width, indent, (size_t)page, t);
    t->failed |= cell.failed;
    opc_text_free(&cell);
}

void opc_section_markdown(const struct opc_section *s, struct opc_text *t)
{
    struct opc_text cell = {0};
    for (int i = -1; i < s->n; i++) {
        for (int column = 0; column < COLUMNS; column++) {
            /* Names and defaults are set as code; a bar inside a cell would end it and is escaped.
             */
            const bool code = i >= 0 && (column == SETTING || column == DEFAULT);
            opc_text_clear(&cell);
            add_cell(i < 0 ? NULL : &s->fields[i], column, &cell);
            opc_text_add(t, "| ");
            opc_text_add(t, code && cell.used ? "`" : "");
            if (i >= 0 && column == SETTING)
                opc_text_addf(t, "%s.", s->name);
            for (size_t k = 0; k < cell.used; k++)
                opc_text_addf(t, cell.at[k] == '|' ? "\\%c" : "%c", cell.at[k]);
            opc_text_add(t, code && cell.used ? "` " : " ");
        }
        opc_text_add(t, i < 0 ? "|\n|---|---|---|---|---|\n" : "|\n");
    }
    t->failed |= cell.failed;
    opc_text_free(&cell);
}
