/* SPDX-License-Identifier: MIT */
/* The YAML of settings and experiment files as a tree, read by libyaml, which no other file
 * includes. Called by config_file.c; the tree is kept there, because conditions point into it.
 *
 * Invariant: everything is refused that could be read in two ways (anchors, tags, keys that occur
 * twice, more than one document), with file and line. A word stays text here, whatever it looks
 * like. */
#include "run/config/yaml.h"

#include "base/file.h"
#include "opc/mem.h"

#include <string.h>
#include <yaml.h>

/* DEEPEST bounds the nesting, MAX_ENTRIES the comparison of every key with those before it. */
enum { MAX_BYTES = 1000000, DEEPEST = 8, MAX_ENTRIES = 1000 };

/* The tree is built from libyaml's events with a stack of the lists and maps that are open. */
struct open { /* a list or map that is being read */
    struct opc_yaml *node;
    struct opc_yaml **end; /* where its next entry goes */
    int entries;
    char *key; /* read, its value not yet; NULL otherwise */
    int key_line;
};

struct reader {
    const char *name;
    struct opc_yaml *root;
    struct open open[DEEPEST];
    int depth;
};

static int line_of(yaml_mark_t mark)
{
    return (int)mark.line + 1;
}

/* What is open; NULL at the top of the file. */
static struct open *innermost(struct reader *reader)
{
    struct open *parent = reader->depth > 0 ? &reader->open[reader->depth - 1] : NULL;
    return parent && parent->node && parent->end ? parent : NULL;
}

static int out_of_memory(const struct reader *reader, struct opc_err *err)
{
    return opc_fail(err, OPC_ENOMEM, "not enough memory to read %s", reader->name);
}

/* ---- building the tree ----------------------------------------------------------------------- */

/* A scalar where a map wants a key. It must not have the key already. */
static int take_key(const struct reader *reader, struct open *map, const yaml_event_t *event,
                    struct opc_err *err)
{
    const char *text = (const char *)event->data.scalar.value;
    const int line = line_of(event->start_mark);
    for (const struct opc_yaml *other = map->node->first; other; other = other->next)
        if (strcmp(other->key, text) == 0)
            return opc_fail(err, OPC_EUSER, "%s:%d: '%s' is here a second time; line %d has it",
                            reader->name, line, text, other->line);
    if (map->entries == MAX_ENTRIES)
        return opc_fail(err, OPC_EUSER, "%s:%d: more than %d entries", reader->name, line,
                        MAX_ENTRIES);
    map->key = opc_strdup(text);
    map->key_line = line;
    return map->key ? OPC_OK : out_of_memory(reader, err);
}

/* Appends a new node to the innermost open list or map, under the key that was read before it; the
 * first node of a file is the root. A node's line is that of its key. */
static int add_node(struct reader *reader, enum opc_yaml_kind kind, int line, struct opc_yaml **out,
                    struct opc_err *err)
{
    struct opc_yaml *node = opc_alloc(1, sizeof *node);
    if (!node)
        return out_of_memory(reader, err);
    *node = (struct opc_yaml){.kind = kind, .line = line};
    struct open *parent = innermost(reader);
    if (!parent)
        reader->root = node;
    else {
        if (parent->key) {
            node->key = parent->key;
            node->line = parent->key_line;
            parent->key = NULL;
        }
        *parent->end = node;
        parent->end = &node->next;
        parent->entries++;
    }
    *out = node;
    return OPC_OK;
}

/* A scalar: the next key of an open map, or a value. */
static int take_word(struct reader *reader, const yaml_event_t *event, struct opc_err *err)
{
    const char *text = (const char *)event->data.scalar.value;
    const int line = line_of(event->start_mark);
    struct open *parent = innermost(reader);
    if (strlen(text) != event->data.scalar.length || !opc_yaml_is_clean(text))
        return opc_fail(err, OPC_EUSER, "%s:%d: control characters and line breaks are not allowed",
                        reader->name, line);
    if (parent && parent->node->kind == OPC_YAML_MAP && !parent->key)
        return take_key(reader, parent, event, err);
    struct opc_yaml *node;
    const int code = add_node(reader, OPC_YAML_WORD, line, &node, err);
    if (code)
        return code;
    node->text = opc_strdup(text);
    return node->text ? OPC_OK : out_of_memory(reader, err);
}

/* The start of a list or map, which is a value like a word. */
static int open_node(struct reader *reader, enum opc_yaml_kind kind, const yaml_event_t *event,
                     struct opc_err *err)
{
    const int line = line_of(event->start_mark);
    const struct open *parent = innermost(reader);
    if (parent && parent->node->kind == OPC_YAML_MAP && !parent->key)
        return opc_fail(err, OPC_EUSER, "%s:%d: a key must be a word", reader->name, line);
    if (reader->depth == DEEPEST)
        return opc_fail(err, OPC_EUSER, "%s:%d: nested more than %d deep", reader->name, line,
                        DEEPEST);
    struct opc_yaml *node;
    const int code = add_node(reader, kind, line, &node, err);
    if (code)
        return code;
    reader->open[reader->depth++] = (struct open){.node = node, .end = &node->first};
    return OPC_OK;
}

/* What YAML has and these files do not: anchors, aliases and tags. */
static int refuse_extras(const struct reader *reader, const yaml_event_t *event,
                         struct opc_err *err)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
        break;
    case YAML_ALIAS_EVENT: anchor = event->data.alias.anchor; break;
    default: break;
    }
    if (anchor)
        return opc_fail(err, OPC_EUSER,
                        "%s:%d: anchors (&%s) and aliases (*%s) are not allowed; write the value "
                        "out, or use 'include'",
                        reader->name, line_of(event->start_mark), anchor, anchor);
    if (tag)
        return opc_fail(err, OPC_EUSER, "%s:%d: the tag %s is not allowed; leave it out",
                        reader->name, line_of(event->start_mark), tag);
    return OPC_OK;
}

/* Events of libyaml, one by one; start and end of stream and document build nothing. */
static int take_event(struct reader *reader, const yaml_event_t *event, struct opc_err *err)
{
    const int code = refuse_extras(reader, event, err);
    if (code)
        return code;
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (reader->root)
            return opc_fail(err, OPC_EUSER, "%s:%d: a second document; one file is one document",
                            reader->name, line_of(event->start_mark));
        return OPC_OK;
    case YAML_SCALAR_EVENT: return take_word(reader, event, err);
    case YAML_SEQUENCE_START_EVENT: return open_node(reader, OPC_YAML_LIST, event, err);
    case YAML_MAPPING_START_EVENT: return open_node(reader, OPC_YAML_MAP, event, err);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: reader->depth--; return OPC_OK;
    default: return OPC_OK;
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

static int syntax_error(const struct reader *reader, const yaml_parser_t *p, struct opc_err *err)
{
    /* libyaml's own words, with file and line before them. */
    const char *problem = p->problem ? p->problem : "not YAML";
    if (p->error == YAML_MEMORY_ERROR)
        return out_of_memory(reader, err);
    if (p->error == YAML_READER_ERROR) /* has no mark, but an offset */
        return opc_fail(err, OPC_EUSER, "%s: byte %zu: %s; the file must be UTF-8 text",
                        reader->name, p->problem_offset, problem);
    /* libyaml says "found character that cannot start any token" of a tab. */
    if (p->error == YAML_SCANNER_ERROR && p->unread > 0 && p->buffer.pointer[0] == '\t')
        return opc_fail(err, OPC_EUSER,
                        "%s:%d: a tab in column %d; YAML indents with blanks, two for each level",
                        reader->name, line_of(p->problem_mark), (int)p->problem_mark.column + 1);
    return opc_fail(err, OPC_EUSER, "%s:%d: %s%s%s (column %d)", reader->name,
                    line_of(p->problem_mark), p->context ? p->context : "", p->context ? ": " : "",
                    problem, (int)p->problem_mark.column + 1);
}

static int read_events(struct reader *reader, yaml_parser_t *parser, struct opc_err *err)
{
    for (;;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event))
            return syntax_error(reader, parser, err);
        const bool last = event.type == YAML_STREAM_END_EVENT;
        const int code = take_event(reader, &event, err);
        yaml_event_delete(&event);
        if (code || last)
            return code;
    }
}

int opc_yaml_parse(const char *name, const char *text, size_t n, struct opc_yaml **out,
                   struct opc_err *err)
{
    struct reader reader = {.name = name};
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return out_of_memory(&reader, err);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
    int code = read_events(&reader, &parser, err);
    yaml_parser_delete(&parser);

    /* A file of comments is an empty map. */
    if (!code && reader.root && reader.root->kind == OPC_YAML_WORD && !*reader.root->text) {
        opc_yaml_free(reader.root);
        reader.root = NULL;
    }
    if (!code && !reader.root) {
        struct opc_yaml *empty;
        code = add_node(&reader, OPC_YAML_MAP, 1, &empty, err);
    }
    if (code) {
        /* Keys whose values were not reached hang on the stack only. */
        while (reader.depth > 0)
            opc_free(reader.open[--reader.depth].key);
        opc_yaml_free(reader.root);
        return code;
    }
    *out = reader.root;
    return OPC_OK;
}

int opc_yaml_read(const char *path, struct opc_yaml **out, struct opc_err *err)
{
    char *text;
    size_t n;
    if (!opc_file_exists(path)) /* its name is what is wrong */
        return opc_fail(err, OPC_EUSER, "cannot read %s: there is no such file", path);
    int code = opc_file_read(path, MAX_BYTES, &text, &n, err);
    if (code)
        return code;
    code = opc_yaml_parse(path, text, n, out, err);
    opc_free(text);
    return code;
}

/* Recursion is bounded by DEEPEST. */
void opc_yaml_free(struct opc_yaml *node)
{
    while (node) {
        struct opc_yaml *next = node->next;
        opc_yaml_free(node->first);
        opc_free(node->key);
        opc_free(node->text);
        opc_free(node);
        node = next;
    }
}

const struct opc_yaml *opc_yaml_find(const struct opc_yaml *map, const char *key)
{
    for (const struct opc_yaml *e = map->first; e; e = e->next)
        if (strcmp(e->key, key) == 0)
            return e;
    return NULL;
}

/* ---- words ----------------------------------------------------------------------------------- */

/* Takes one character off UTF-8 text; -1: the text is not UTF-8. */
static long next_character(const unsigned char **text)
{
    const unsigned char *c = *text;
    if (*c < 0x80) {
        (*text)++;
        return *c;
    }
    /* Bytes that follow the first one; MIN refuses encodings that are longer than need be. */
    const int more = *c >= 0xf0 ? 3 : *c >= 0xe0 ? 2 : 1;
    static const long MIN[] = {0, 0x80, 0x800, 0x10000};
    if (*c < 0xc2 || *c > 0xf4)
        return -1;
    long v = *c & (0x3f >> more);
    for (int i = 1; i <= more; i++) {
        if ((c[i] & 0xc0) != 0x80)
            return -1;
        v = v << 6 | (c[i] & 0x3f);
    }
    if (v < MIN[more] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
        return -1;
    *text += more + 1;
    return v;
}

bool opc_yaml_is_clean(const char *word)
{
    for (const unsigned char *c = (const unsigned char *)word; *c;) {
        const long v = next_character(&c);
        if (v < 0x20 || (v >= 0x7f && v < 0xa0))
            return false;
    }
    return true;
}

/* Can the word be written without quotes wherever a word may stand, also in [a, b]? */
static bool is_plain(const char *word)
{
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    static const char INSIDE[] = "_./:?&=+-*";
    if (!*word || (!strchr(LETTERS, *word) && !strchr("./_-+", *word)))
        return false;
    if (strchr("-+.", *word) && (!word[1] || !strchr("0123456789./", word[1])))
        return false; /* a list's dash, the end of a document */
    const size_t n = strlen(word);
    for (size_t i = 1; i < n; i++)
        if (!strchr(LETTERS, word[i]) && !strchr(INSIDE, word[i]))
            return false;
    return word[n - 1] != ':' && strcmp(word, "...") != 0;
}

void opc_yaml_add_word(struct opc_text *t, const char *word)
{
    if (is_plain(word)) {
        opc_text_add(t, word);
        return;
    }
    opc_text_add(t, "\"");
    for (const unsigned char *c = (const unsigned char *)word; *c;) {
        const long v = next_character(&c);
        if (v < 0)
            break; /* cannot be: words are checked when they are read (opc_yaml_is_clean) */
        if (v == '"' || v == '\\')
            opc_text_addf(t, "\\%c", (char)v);
        else if (v >= 0x20 && v < 0x7f)
            opc_text_addf(t, "%c", (char)v);
        else
            opc_text_addf(t, "\\U%08lx", (unsigned long)v);
    }
    opc_text_add(t, "\"");
}

const char *opc_yaml_version(void)
{
    return yaml_get_version_string();
}
