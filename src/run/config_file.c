/* SPDX-License-Identifier: MIT */
/* Where settings come from: a list of assignments in the order in which a later one wins. Those of
 * a `when` cell are in the list like the others and count only if the cell applies.
 *
 * Whether a cell applies is decided by the values without any cell, and a setting that some cell
 * looks at cannot be set by one. So there is nothing to iterate, and no order to think about. */
#include "base/file.h"
#include "opc/mem.h"
#include "run/config.h"

#include <ctype.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { MAX = 4096, DEEPEST_INCLUDE = 8, TREES = 64 };

struct assignment {
    char *key, *text;
    char *where; /* "file:line"; NULL: opc_config_set */
    int cell;    /* 0: always; else the number of the cell it is in */
};

struct condition { /* of a cell: the value of `key` matches one of the patterns */
    int cell;
    char *key;
    const struct opc_yaml *patterns; /* in one of the trees */
    char *where;
};

struct opc_sources {
    struct assignment *assignments; /* [MAX] */
    struct condition *conditions;   /* [MAX] */
    int n, n_conditions, cells;
    struct opc_yaml *tree[TREES]; /* of every file that was read; the last is the one asked for */
    char *tree_path[TREES];
    int trees;
    struct opc_values scratch; /* to try a setting on */
};

static const char *const EXTRA[] = {"vary", "skip", "runs", "title", "figure", "probe", "tiers"};
enum { EXTRAS = sizeof EXTRA / sizeof *EXTRA };

/* ---- life ------------------------------------------------------------------------------------ */

int opc_sources_create(struct opc_sources **out, struct opc_err *err)
{
    struct opc_sources *s = opc_alloc(1, sizeof *s);
    if (s) {
        s->assignments = opc_alloc(MAX, sizeof *s->assignments);
        s->conditions = opc_alloc(MAX, sizeof *s->conditions);
    }
    if (!s || !s->assignments || !s->conditions) {
        opc_sources_destroy(s);
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the settings");
    }
    const int code = opc_sources_resolve(s, &s->scratch, err);
    if (code) {
        opc_sources_destroy(s);
        return code;
    }
    *out = s;
    return OPC_OK;
}

static void free_assignment(struct assignment *a)
{
    opc_free(a->key);
    opc_free(a->text);
    opc_free(a->where);
    *a = (struct assignment){0};
}

void opc_sources_destroy(struct opc_sources *s)
{
    if (!s)
        return;
    for (int i = 0; s->assignments && i < s->n; i++)
        free_assignment(&s->assignments[i]);
    for (int i = 0; s->conditions && i < s->n_conditions; i++) {
        opc_free(s->conditions[i].key);
        opc_free(s->conditions[i].where);
    }
    for (int i = 0; i < s->trees; i++) {
        opc_yaml_free(s->tree[i]);
        opc_free(s->tree_path[i]);
    }
    opc_free(s->assignments);
    opc_free(s->conditions);
    opc_free(s);
}

/* ---- assignments ----------------------------------------------------------------------------- */

static int try_setting(struct opc_sources *s, const char *key, const char *text,
                       struct opc_err *err)
{
    struct opc_part part[OPC_PARTS_MAX];
    const int parts = opc_config_parts(&s->scratch, part);
    if (!opc_yaml_is_clean(text))
        return opc_fail(err, OPC_EUSER, "%s: its value has control characters or is not UTF-8",
                        key);
    return opc_parts_set(part, parts, key, text, err);
}

/* A value that cannot be is refused now, whether or not its cell will ever apply. */
static int add(struct opc_sources *s, const char *key, const char *text, const char *where,
               int cell, struct opc_err *err)
{
    char name[OPC_KEY];
    int code = try_setting(s, key, text, err);
    if (code)
        return where ? opc_within(err, "%s", where) : code;
    if (opc_config_key(key, name)) /* it may be an older name */
        key = name;
    if (s->n == MAX)
        return opc_fail(err, OPC_EUSER, "more than %d settings", MAX);
    struct assignment *a = &s->assignments[s->n++];
    *a = (struct assignment){.key = opc_strdup(key), .text = opc_strdup(text), .cell = cell};
    if (where)
        a->where = opc_strdup(where);
    if (!a->key || !a->text || (where && !a->where)) {
        opc_sources_drop_last(s);
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the setting %s", key);
    }
    return OPC_OK;
}

int opc_sources_add(struct opc_sources *s, const char *key, const char *text, struct opc_err *err)
{
    return add(s, key, text, NULL, 0, err);
}

void opc_sources_drop_last(struct opc_sources *s)
{
    free_assignment(&s->assignments[--s->n]);
}

/* ---- files ----------------------------------------------------------------------------------- */

struct file {
    const char *path;
    const struct file *from; /* the one that includes it; NULL: none */
    int depth;
    int first; /* its first assignment */
};

enum { WHERE = OPC_PATH + 16 };
static char *where_is(const struct file *f, const struct opc_yaml *node, char out[WHERE])
{
    snprintf(out, WHERE, "%s:%d", f->path, node->line);
    return out;
}

/* The text of a word, or of a list of words: "[64, 64]". */
static int value_text(const struct opc_yaml *node, struct opc_text *t, struct opc_err *err)
{
    opc_text_clear(t);
    if (node->kind == OPC_YAML_WORD)
        opc_text_add(t, node->text);
    else if (node->kind == OPC_YAML_LIST) {
        opc_text_add(t, "[");
        for (const struct opc_yaml *e = node->first; e; e = e->next) {
            if (e->kind != OPC_YAML_WORD)
                return opc_fail(err, OPC_EUSER, "%s: lists of lists mean nothing here", node->key);
            opc_text_addf(t, "%s%s", e == node->first ? "" : ", ", e->text);
        }
        opc_text_add(t, "]");
    } else
        return opc_fail(err, OPC_EUSER, "%s: a value or a list of values is wanted", node->key);
    return opc_text_check(t, err);
}

static int add_node(struct opc_sources *s, const struct file *f, const char *key,
                    const struct opc_yaml *node, int cell, struct opc_err *err)
{
    char where[WHERE], name[OPC_KEY];
    struct opc_text text = {0};
    where_is(f, node, where);
    int code = value_text(node, &text, err);
    if (code)
        opc_within(err, "%s", where);
    /* train.epochs and train: {epochs: } are the same key twice, and so is an older name. */
    const char *known = opc_config_key(key, name) ? name : key;
    for (int i = f->first; !code && i < s->n; i++)
        if (s->assignments[i].cell == cell && strcmp(s->assignments[i].key, known) == 0)
            code = opc_fail(err, OPC_EUSER, "%s: %s is set a second time; %s has it", where, key,
                            s->assignments[i].where);
    if (!code)
        code = add(s, key, opc_text_get(&text), where, cell, err);
    opc_text_free(&text);
    return code;
}

/* A map of settings: section: {name: value} or section.name: value. `skip` decides which keys are
 * none. */
static int add_map(struct opc_sources *s, const struct file *f, const struct opc_yaml *map,
                   bool (*skip)(const char *key), int cell, struct opc_err *err)
{
    int code = OPC_OK;
    for (const struct opc_yaml *e = map->first; e && !code; e = e->next) {
        char key[256];
        if (skip && skip(e->key))
            continue;
        if (e->kind != OPC_YAML_MAP) {
            code = add_node(s, f, e->key, e, cell, err);
            continue;
        }
        for (const struct opc_yaml *inner = e->first; inner && !code; inner = inner->next) {
            snprintf(key, sizeof key, "%s.%s", e->key, inner->key);
            code = add_node(s, f, key, inner, cell, err);
        }
    }
    return code;
}

int opc_sources_check_pattern(struct opc_sources *s, const char *path, const struct opc_yaml *e,
                              struct opc_err *err)
{
    char where[WHERE];
    where_is(&(struct file){.path = path}, e, where);
    if (e->kind == OPC_YAML_MAP)
        return opc_fail(err, OPC_EUSER, "%s: write section.name: pattern", where);
    if (!opc_config_field(&s->scratch, e->key, NULL, err))
        return opc_within(err, "%s", where);
    const struct opc_yaml *one = e->kind == OPC_YAML_LIST ? e->first : e;
    for (; one; one = e->kind == OPC_YAML_LIST ? one->next : NULL) {
        if (one->kind != OPC_YAML_WORD)
            return opc_fail(err, OPC_EUSER, "%s: a pattern is a word", where);
        /* Without a wildcard it must be a value the setting can have. */
        if (!strpbrk(one->text, "*?[") && try_setting(s, e->key, one->text, err))
            return opc_within(err, "%s", where);
    }
    return OPC_OK;
}

static int add_conditions(struct opc_sources *s, const struct file *f, const struct opc_yaml *match,
                          int cell, struct opc_err *err)
{
    char where[WHERE];
    for (const struct opc_yaml *e = match->first; e; e = e->next) {
        where_is(f, e, where);
        const int code = opc_sources_check_pattern(s, f->path, e, err);
        if (code)
            return code;
        if (s->n_conditions == MAX)
            return opc_fail(err, OPC_EUSER, "%s: more than %d conditions", where, MAX);
        struct condition *c = &s->conditions[s->n_conditions++];
        char name[OPC_KEY];
        const char *known = opc_config_key(e->key, name) ? name : e->key;
        *c = (struct condition){cell, opc_strdup(known), e, opc_strdup(where)};
        if (!c->key || !c->where)
            return opc_fail(err, OPC_ENOMEM, "not enough memory for the condition %s", e->key);
    }
    return OPC_OK;
}

static int add_cells(struct opc_sources *s, const struct file *f, const struct opc_yaml *when,
                     struct opc_err *err)
{
    static const char SHAPE[] = "a cell is {match: {section.name: pattern}, set: {section.name: "
                                "value}}";
    char where[WHERE];
    if (when->kind != OPC_YAML_LIST)
        return opc_fail(err, OPC_EUSER, "%s: 'when' is a list of cells; %s",
                        where_is(f, when, where), SHAPE);
    for (const struct opc_yaml *cell = when->first; cell; cell = cell->next) {
        const struct opc_yaml *match = NULL, *set = NULL;
        int others = 0;
        if (cell->kind == OPC_YAML_MAP) {
            match = opc_yaml_find(cell, "match");
            set = opc_yaml_find(cell, "set");
            for (const struct opc_yaml *e = cell->first; e; e = e->next)
                others += e != match && e != set;
        }
        if (!match || !set || match->kind != OPC_YAML_MAP || set->kind != OPC_YAML_MAP || others)
            return opc_fail(err, OPC_EUSER, "%s: %s", where_is(f, cell, where), SHAPE);
        s->cells++;
        int code = add_conditions(s, f, match, s->cells, err);
        if (!code)
            code = add_map(s, f, set, NULL, s->cells, err);
        if (code)
            return code;
    }
    return OPC_OK;
}

/* Top-level keys that are not settings. */
static bool is_extra(const char *key)
{
    for (int i = 0; i < EXTRAS; i++)
        if (strcmp(key, EXTRA[i]) == 0)
            return true;
    return strcmp(key, "include") == 0 || strcmp(key, "when") == 0;
}

static int read_file(struct opc_sources *s, const char *path, const struct file *from,
                     struct opc_err *err);

static int include(struct opc_sources *s, const struct file *f, const struct opc_yaml *node,
                   struct opc_err *err)
{
    char folder[OPC_PATH], path[OPC_PATH], where[WHERE];
    where_is(f, node, where);
    const struct opc_yaml *one = node->kind == OPC_YAML_LIST ? node->first : node;
    for (; one; one = node->kind == OPC_YAML_LIST ? one->next : NULL) {
        if (one->kind != OPC_YAML_WORD || !*one->text)
            return opc_fail(err, OPC_EUSER, "%s: include: a file, or a list of files", where);
        int code = opc_path_parent(folder, f->path, err);
        if (!code)
            code = opc_path_join(path, strcmp(folder, ".") == 0 ? "" : folder, one->text, err);
        if (!code && f->depth == DEEPEST_INCLUDE)
            code =
                opc_fail(err, OPC_EUSER,
                         "included %d deep; does a file include itself, through others?", f->depth);
        if (!code)
            code = read_file(s, path, f, err);
        if (code)
            return opc_within(err, "%s", where);
    }
    return OPC_OK;
}

static int check_vary(struct opc_sources *s, const struct file *f, const struct opc_yaml *vary,
                      struct opc_err *err)
{
    char where[WHERE];
    if (vary->kind != OPC_YAML_MAP)
        return opc_fail(err, OPC_EUSER, "%s: vary: {section.name: [values]}",
                        where_is(f, vary, where));
    for (const struct opc_yaml *e = vary->first; e; e = e->next)
        if (!opc_config_field(&s->scratch, e->key, NULL, err))
            return opc_within(err, "%s", where_is(f, e, where));
    return OPC_OK;
}

/* Takes the tree of one file, also when it fails. */
static int take_tree(struct opc_sources *s, struct opc_yaml *tree, const char *path,
                     const struct file *from, struct opc_err *err)
{
    struct file f = {path, from, from ? from->depth + 1 : 0, 0};
    const struct opc_yaml *node =
        tree->kind == OPC_YAML_MAP ? opc_yaml_find(tree, "include") : NULL;
    int code = OPC_OK;
    if (tree->kind != OPC_YAML_MAP)
        code = opc_fail(err, OPC_EUSER, "%s: no settings here; write section: {name: value}", path);
    if (node)
        code = include(s, &f, node, err);
    /* The tree of the file itself comes behind those it includes. */
    if (!code && s->trees == TREES)
        code = opc_fail(err, OPC_EUSER, "more than %d files are included", TREES);
    if (!code && !(s->tree_path[s->trees] = opc_strdup(path)))
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for the settings of %s", path);
    if (code) {
        opc_yaml_free(tree);
        return code;
    }
    s->tree[s->trees++] = tree;
    f.first = s->n;
    code = add_map(s, &f, tree, is_extra, 0, err);
    if (!code && (node = opc_yaml_find(tree, "when")))
        code = add_cells(s, &f, node, err);
    if (!code && (node = opc_yaml_find(tree, "vary")))
        code = check_vary(s, &f, node, err);
    return code;
}

static int read_file(struct opc_sources *s, const char *path, const struct file *from,
                     struct opc_err *err)
{
    for (const struct file *f = from; f; f = f->from)
        if (strcmp(f->path, path) == 0)
            return opc_fail(err, OPC_EUSER, "%s includes itself", path);
    struct opc_yaml *tree;
    const int code = opc_yaml_read(path, &tree, err);
    return code ? code : take_tree(s, tree, path, from, err);
}

int opc_sources_read(struct opc_sources *s, const char *path, struct opc_err *err)
{
    return read_file(s, path, NULL, err);
}

int opc_sources_add_map(struct opc_sources *s, const char *path, const struct opc_yaml *map,
                        bool (*skip)(const char *key), struct opc_err *err)
{
    const struct file f = {.path = path, .first = s->n};
    return add_map(s, &f, map, skip, 0, err);
}

int opc_sources_count(const struct opc_sources *s)
{
    return s->n;
}

const char *opc_sources_sets(const struct opc_sources *s, int from, const char *key)
{
    char name[OPC_KEY];
    const char *where = NULL;
    if (opc_config_key(key, name))
        key = name;
    for (int i = from; i < s->n; i++)
        if (!s->assignments[i].cell && strcmp(s->assignments[i].key, key) == 0)
            where = s->assignments[i].where ? s->assignments[i].where : "";
    return where;
}

int opc_sources_parse(struct opc_sources *s, const char *name, const char *text, size_t n,
                      struct opc_err *err)
{
    struct opc_yaml *tree;
    const int code = opc_yaml_parse(name, text, n, &tree, err);
    return code ? code : take_tree(s, tree, name, NULL, err);
}

const struct opc_yaml *opc_sources_extra_in(const struct opc_sources *s, const char *key,
                                            const char **path)
{
    for (int i = s->trees; i-- > 0;) {
        const struct opc_yaml *node = opc_yaml_find(s->tree[i], key);
        if (node) {
            *path = s->tree_path[i];
            return node;
        }
    }
    return NULL;
}

const struct opc_yaml *opc_sources_extra(const struct opc_sources *s, const char *key)
{
    const char *path;
    return opc_sources_extra_in(s, key, &path);
}

int opc_sources_settled(const struct opc_sources *s, struct opc_err *err)
{
    const struct opc_yaml *vary = opc_sources_extra(s, "vary");
    for (const struct opc_yaml *e = vary ? vary->first : NULL; e; e = e->next) {
        char name[OPC_KEY];
        const char *key = opc_config_key(e->key, name) ? name : e->key;
        bool settled = false;
        for (int i = 0; i < s->n; i++)
            settled = settled || (!s->assignments[i].where && !strcmp(s->assignments[i].key, key));
        if (!settled)
            return opc_fail(err, OPC_EUSER,
                            "the file describes several runs: line %d varies %s; add %s=VALUE to "
                            "choose one",
                            e->line, e->key, e->key);
    }
    return OPC_OK;
}

/* ---- the values in the end ------------------------------------------------------------------- */

/* Is the pattern a value, and this one? However it is written: 3e-4 is 0.0003. */
static int is_value(const struct opc_values *values, const char *key, const char *pattern,
                    const char *printed, bool *out, struct opc_err *err)
{
    struct opc_values other = *values;
    struct opc_part part[OPC_PARTS_MAX];
    struct opc_text text = {0};
    void *section;
    *out = false;
    const int parts = opc_config_parts(&other, part);
    if (opc_parts_set(part, parts, key, pattern, NULL))
        return OPC_OK;
    const struct opc_field *f = opc_config_field(&other, key, &section, err);
    opc_field_print(f, section, &text);
    *out = strcmp(opc_text_get(&text), printed) == 0;
    const int code = opc_text_check(&text, err);
    opc_text_free(&text);
    return code;
}

int opc_config_matches(struct opc_values *values, const char *key, const struct opc_yaml *patterns,
                       bool *out, struct opc_err *err)
{
    struct opc_text text = {0};
    void *section;
    const struct opc_field *f = opc_config_field(values, key, &section, err);
    if (!f)
        return OPC_EUSER;
    opc_field_print(f, section, &text);
    /* An environment's arguments need not be matched: *:hopper is also mujoco:hopper?angle=raw. */
    char bare[OPC_TEXT_SIZE];
    const char *whole = opc_text_get(&text);
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(whole, "?"), whole);
    const bool list = patterns->kind == OPC_YAML_LIST;
    const struct opc_yaml *one = list ? patterns->first : patterns;
    int code = opc_text_check(&text, err);
    for (*out = false; one && !*out && !code; one = list ? one->next : NULL) {
        *out = fnmatch(one->text, whole, 0) == 0 || fnmatch(one->text, bare, 0) == 0;
        if (!*out)
            code = is_value(values, key, one->text, whole, out, err);
    }
    opc_text_free(&text);
    return code;
}

/* Do all conditions of the cell hold? */
static int applies(const struct opc_sources *s, int cell, struct opc_values *plain, bool *out,
                   struct opc_err *err)
{
    int code = OPC_OK;
    *out = true;
    for (int i = 0; i < s->n_conditions && *out && !code; i++)
        if (s->conditions[i].cell == cell)
            code = opc_config_matches(plain, s->conditions[i].key, s->conditions[i].patterns, out,
                                      err);
    return code;
}

static int defaults(struct opc_values *values, struct opc_err *err)
{
    struct opc_part part[OPC_PARTS_MAX];
    const int parts = opc_config_parts(values, part);
    int code = OPC_OK;
    for (int i = 0; i < parts && !code; i++)
        code = opc_section_defaults(part[i].section, part[i].values, err);
    return code;
}

/* Defaults and every setting that is in no cell. */
static int without_cells(const struct opc_sources *s, struct opc_values *out, struct opc_err *err)
{
    struct opc_part part[OPC_PARTS_MAX];
    int code = defaults(out, err);
    const int parts = opc_config_parts(out, part);
    for (int i = 0; i < s->n && !code; i++)
        if (s->assignments[i].cell == 0)
            code = opc_parts_set(part, parts, s->assignments[i].key, s->assignments[i].text, err);
    return code;
}

int opc_sources_resolve(const struct opc_sources *s, struct opc_values *out, struct opc_err *err)
{
    struct opc_part part[OPC_PARTS_MAX];
    struct opc_values plain = {0};
    memset(out, 0, sizeof *out); /* also what lies between the sections */
    int code = without_cells(s, &plain, err);
    if (!code)
        code = defaults(out, err);

    const int parts = opc_config_parts(out, part);
    for (int i = 0; i < s->n && !code; i++) {
        const struct assignment *a = &s->assignments[i];
        for (int k = 0; a->cell && k < s->n_conditions && !code; k++)
            if (strcmp(s->conditions[k].key, a->key) == 0)
                code = opc_fail(err, OPC_EUSER,
                                "%s: a cell cannot set %s, because %s decides by it which cells "
                                "apply",
                                a->where, a->key, s->conditions[k].where);
        bool counts = true;
        if (!code && a->cell)
            code = applies(s, a->cell, &plain, &counts, err);
        if (!code && counts)
            code = opc_parts_set(part, parts, a->key, a->text, err);
    }
    return code;
}

/* ---- where the settings at fault come from ----------------------------------------------------
 */

/* Is the key one of the names, which have a space between them? */
static bool is_among(const char *names, const char *key)
{
    const size_t n = strlen(key);
    for (const char *at = names; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == n && strncmp(at, key, n) == 0)
            return true;
    return false;
}

int opc_sources_locate(const struct opc_sources *s, struct opc_err *err)
{
    struct opc_values plain = {0};
    const struct assignment *last = NULL;
    bool counts = true;
    if (!err || without_cells(s, &plain, NULL))
        return OPC_EUSER;
    for (int i = s->n; i-- > 0 && !last;) {
        const struct assignment *a = &s->assignments[i];
        if (is_among(err->settings, a->key) &&
            (!a->cell || (!applies(s, a->cell, &plain, &counts, NULL) && counts)))
            last = a;
    }
    return last && last->where ? opc_within(err, "%s", last->where) : OPC_EUSER;
}
