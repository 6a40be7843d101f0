/* SPDX-License-Identifier: MIT */
/* Where settings come from: files, what they include, and the command line. All of them become one
 * list of assignments, in which a later one wins. Those of a `when` cell are in the list like the
 * others and count only if the cell applies. Called by config.c and by sweep/sweep.c.
 *
 * Invariant: whether a cell applies is decided by the values without any cell, and a setting that
 * some cell looks at cannot be set by one. So there is nothing to iterate, and the order of cells
 * matters only where two of them set the same setting. */
#include "base/file.h"
#include "opc/mem.h"
#include "run/config/config.h"

#include <ctype.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { MAX_SETTINGS = 4096, DEEPEST_INCLUDE = 8, TREES = 64 };

struct assignment {
    char *key, *text;
    char *where; /* "file:line"; NULL: opc_sources_add, which the command line uses */
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
    /* Every file that was read, with its path. A file comes after those it includes, so the last is
     * the one that was asked for. */
    struct opc_yaml *tree[TREES];
    char *tree_path[TREES];
    int trees;
    struct opc_values scratch; /* assignments are tried on it */
};

/* Top-level keys that belong to sweeps and studies (opc_sources_extra); training ignores them. */
static const char *const EXTRA[] = {"vary",   "skip",  "runs",  "title",
                                    "figure", "probe", "tiers", "search"};
enum { EXTRAS = sizeof EXTRA / sizeof *EXTRA };

/* ---- life ------------------------------------------------------------------------------------ */

int opc_sources_create(struct opc_sources **out, struct opc_err *err)
{
    struct opc_sources *sources = opc_alloc(1, sizeof *sources);
    if (sources) {
        sources->assignments = opc_alloc(MAX_SETTINGS, sizeof *sources->assignments);
        sources->conditions = opc_alloc(MAX_SETTINGS, sizeof *sources->conditions);
    }
    if (!sources || !sources->assignments || !sources->conditions) {
        opc_sources_destroy(sources);
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the settings");
    }
    const int code = opc_sources_resolve(sources, &sources->scratch, err);
    if (code) {
        opc_sources_destroy(sources);
        return code;
    }
    *out = sources;
    return OPC_OK;
}

static void free_assignment(struct assignment *assignment)
{
    opc_free(assignment->key);
    opc_free(assignment->text);
    opc_free(assignment->where);
    *assignment = (struct assignment){0};
}

void opc_sources_destroy(struct opc_sources *sources)
{
    if (!sources)
        return;
    for (int i = 0; sources->assignments && i < sources->n; i++)
        free_assignment(&sources->assignments[i]);
    for (int i = 0; sources->conditions && i < sources->n_conditions; i++) {
        opc_free(sources->conditions[i].key);
        opc_free(sources->conditions[i].where);
    }
    for (int i = 0; i < sources->trees; i++) {
        opc_yaml_free(sources->tree[i]);
        opc_free(sources->tree_path[i]);
    }
    opc_free(sources->assignments);
    opc_free(sources->conditions);
    opc_free(sources);
}

/* ---- assignments ----------------------------------------------------------------------------- */

/* Sets it on the scratch values: the row of the table knows whether that is possible. */
static int try_setting(struct opc_sources *sources, const char *key, const char *text,
                       struct opc_err *err)
{
    struct opc_part part[OPC_PARTS_MAX];
    const int parts = opc_config_parts(&sources->scratch, part);
    if (!opc_yaml_is_clean(text))
        return opc_fail(err, OPC_EUSER, "%s: its value has control characters or is not UTF-8",
                        key);
    return opc_parts_set(part, parts, key, text, err);
}

/* Appends an assignment. An impossible value is refused now, whether or not its cell will ever
 * apply. */
static int add_assignment(struct opc_sources *sources, const char *key, const char *text,
                          const char *where, int cell, struct opc_err *err)
{
    char name[OPC_KEY];
    const char *moved = opc_config_moved(key, NULL);
    int code = try_setting(sources, moved ? moved : key, text, err);
    if (code)
        return where ? opc_within(err, "%s", where) : code;
    /* It may be an older name. A setting that has moved keeps its own: whether it counts depends on
     * the agent, which may be set later. */
    if (!moved && opc_config_key(key, name))
        key = name;
    if (sources->n == MAX_SETTINGS)
        return opc_fail(err, OPC_EUSER, "more than %d settings", MAX_SETTINGS);
    struct assignment *assignment = &sources->assignments[sources->n++];
    *assignment =
        (struct assignment){.key = opc_strdup(key), .text = opc_strdup(text), .cell = cell};
    if (where)
        assignment->where = opc_strdup(where);
    if (!assignment->key || !assignment->text || (where && !assignment->where)) {
        opc_sources_drop_last(sources);
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the setting %s", key);
    }
    return OPC_OK;
}

int opc_sources_add(struct opc_sources *sources, const char *key, const char *text,
                    struct opc_err *err)
{
    return add_assignment(sources, key, text, NULL, 0, err);
}

void opc_sources_drop_last(struct opc_sources *sources)
{
    free_assignment(&sources->assignments[--sources->n]);
}

/* ---- files ----------------------------------------------------------------------------------- */

struct file { /* that is being read */
    const char *path;
    const struct file *from; /* the one that includes it; NULL: none */
    int depth;
    int first; /* number of its first assignment: it may set nothing twice from there on */
};

enum { WHERE = OPC_PATH + 16 };
static char *where_is(const struct file *file, const struct opc_yaml *node, char out[WHERE])
{
    snprintf(out, WHERE, "%s:%d", file->path, node->line);
    return out;
}

/* The text of a word, or of a list of words: "[64, 64]". */
static int value_text(const struct opc_yaml *node, struct opc_text *text, struct opc_err *err)
{
    opc_text_clear(text);
    if (node->kind == OPC_YAML_WORD)
        opc_text_add(text, node->text);
    else if (node->kind == OPC_YAML_LIST) {
        opc_text_add(text, "[");
        for (const struct opc_yaml *e = node->first; e; e = e->next) {
            if (e->kind != OPC_YAML_WORD)
                return opc_fail(err, OPC_EUSER, "%s: lists of lists mean nothing here", node->key);
            opc_text_addf(text, "%s%s", e == node->first ? "" : ", ", e->text);
        }
        opc_text_add(text, "]");
    } else
        return opc_fail(err, OPC_EUSER, "%s: a value or a list of values is wanted", node->key);
    return opc_text_check(text, err);
}

/* The assignment of one key of a file, in a cell or outside (0). */
static int add_node(struct opc_sources *sources, const struct file *file, const char *key,
                    const struct opc_yaml *node, int cell, struct opc_err *err)
{
    char where[WHERE], name[OPC_KEY];
    struct opc_text text = {0};
    where_is(file, node, where);
    int code = value_text(node, &text, err);
    if (code)
        opc_within(err, "%s", where);
    /* train.epochs and train: {epochs: } are the same key twice, and so is an older name, but not
     * one that has moved: files of older runs have both. */
    const char *known = !opc_config_moved(key, NULL) && opc_config_key(key, name) ? name : key;
    for (int i = file->first; !code && i < sources->n; i++)
        if (sources->assignments[i].cell == cell && strcmp(sources->assignments[i].key, known) == 0)
            code = opc_fail(err, OPC_EUSER, "%s: %s is set a second time; %s has it", where, key,
                            sources->assignments[i].where);
    if (!code)
        code = add_assignment(sources, key, opc_text_get(&text), where, cell, err);
    opc_text_free(&text);
    return code;
}

/* Adds a map of settings, written as section: {name: value} or as section.name: value. `skip` says
 * which keys are not settings. */
static int add_map(struct opc_sources *sources, const struct file *file, const struct opc_yaml *map,
                   bool (*skip)(const char *key), int cell, struct opc_err *err)
{
    int code = OPC_OK;
    for (const struct opc_yaml *e = map->first; e && !code; e = e->next) {
        char key[256];
        if (skip && skip(e->key))
            continue;
        if (e->kind != OPC_YAML_MAP) {
            code = add_node(sources, file, e->key, e, cell, err);
            continue;
        }
        for (const struct opc_yaml *inner = e->first; inner && !code; inner = inner->next) {
            snprintf(key, sizeof key, "%s.%s", e->key, inner->key);
            code = add_node(sources, file, key, inner, cell, err);
        }
    }
    return code;
}

int opc_sources_check_pattern(struct opc_sources *sources, const char *path,
                              const struct opc_yaml *e, struct opc_err *err)
{
    char where[WHERE];
    where_is(&(struct file){.path = path}, e, where);
    if (e->kind == OPC_YAML_MAP)
        return opc_fail(err, OPC_EUSER, "%s: write section.name: pattern", where);
    if (!opc_config_field(&sources->scratch, e->key, NULL, err))
        return opc_within(err, "%s", where);
    const struct opc_yaml *one = e->kind == OPC_YAML_LIST ? e->first : e;
    for (; one; one = e->kind == OPC_YAML_LIST ? one->next : NULL) {
        if (one->kind != OPC_YAML_WORD)
            return opc_fail(err, OPC_EUSER, "%s: a pattern is a word", where);
        /* Without a wildcard it must be a value the setting can have. */
        if (!strpbrk(one->text, "*?[") && try_setting(sources, e->key, one->text, err))
            return opc_within(err, "%s", where);
    }
    return OPC_OK;
}

/* match: of a cell. All of its conditions must hold. */
static int add_conditions(struct opc_sources *sources, const struct file *file,
                          const struct opc_yaml *match, int cell, struct opc_err *err)
{
    char where[WHERE];
    for (const struct opc_yaml *e = match->first; e; e = e->next) {
        where_is(file, e, where);
        const int code = opc_sources_check_pattern(sources, file->path, e, err);
        if (code)
            return code;
        if (sources->n_conditions == MAX_SETTINGS)
            return opc_fail(err, OPC_EUSER, "%s: more than %d conditions", where, MAX_SETTINGS);
        struct condition *c = &sources->conditions[sources->n_conditions++];
        char name[OPC_KEY];
        const char *known = opc_config_key(e->key, name) ? name : e->key;
        *c = (struct condition){cell, opc_strdup(known), e, opc_strdup(where)};
        if (!c->key || !c->where)
            return opc_fail(err, OPC_ENOMEM, "not enough memory for the condition %s", e->key);
    }
    return OPC_OK;
}

/* when: a list of cells, each with what it matches and what it sets. */
static int add_cells(struct opc_sources *sources, const struct file *file,
                     const struct opc_yaml *when, struct opc_err *err)
{
    static const char SHAPE[] = "a cell is {match: {section.name: pattern}, set: {section.name: "
                                "value}}";
    char where[WHERE];
    if (when->kind != OPC_YAML_LIST)
        return opc_fail(err, OPC_EUSER, "%s: 'when' is a list of cells; %s",
                        where_is(file, when, where), SHAPE);
    for (const struct opc_yaml *cell = when->first; cell; cell = cell->next) {
        /* exactly the two keys, both of them maps */
        const struct opc_yaml *match = NULL, *set = NULL;
        int others = 0;
        if (cell->kind == OPC_YAML_MAP) {
            match = opc_yaml_find(cell, "match");
            set = opc_yaml_find(cell, "set");
            for (const struct opc_yaml *e = cell->first; e; e = e->next)
                others += e != match && e != set;
        }
        if (!match || !set || match->kind != OPC_YAML_MAP || set->kind != OPC_YAML_MAP || others)
            return opc_fail(err, OPC_EUSER, "%s: %s", where_is(file, cell, where), SHAPE);
        sources->cells++;
        int code = add_conditions(sources, file, match, sources->cells, err);
        if (!code)
            code = add_map(sources, file, set, NULL, sources->cells, err);
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

static int read_file(struct opc_sources *sources, const char *path, const struct file *from,
                     struct opc_err *err);

/* Included files come first, so that the file itself wins over them. Paths are relative to the file
 * that includes. */
static int include_files(struct opc_sources *sources, const struct file *file,
                         const struct opc_yaml *node, struct opc_err *err)
{
    char folder[OPC_PATH], path[OPC_PATH], where[WHERE];
    where_is(file, node, where);
    const struct opc_yaml *one = node->kind == OPC_YAML_LIST ? node->first : node;
    for (; one; one = node->kind == OPC_YAML_LIST ? one->next : NULL) {
        if (one->kind != OPC_YAML_WORD || !*one->text)
            return opc_fail(err, OPC_EUSER, "%s: include: a file, or a list of files", where);
        int code = opc_path_parent(folder, file->path, err);
        if (!code)
            code = opc_path_join(path, strcmp(folder, ".") == 0 ? "" : folder, one->text, err);
        if (!code && file->depth == DEEPEST_INCLUDE)
            code = opc_fail(err, OPC_EUSER,
                            "included %d deep; does a file include itself, through others?",
                            file->depth);
        if (!code)
            code = read_file(sources, path, file, err);
        if (code)
            return opc_within(err, "%s", where);
    }
    return OPC_OK;
}

/* Keys of vary must be settings; their values are checked by the sweep. */
static int check_vary(struct opc_sources *sources, const struct file *file,
                      const struct opc_yaml *vary, struct opc_err *err)
{
    char where[WHERE];
    if (vary->kind != OPC_YAML_MAP)
        return opc_fail(err, OPC_EUSER, "%s: vary: {section.name: [values]}",
                        where_is(file, vary, where));
    for (const struct opc_yaml *e = vary->first; e; e = e->next)
        if (!opc_config_field(&sources->scratch, e->key, NULL, err))
            return opc_within(err, "%s", where_is(file, e, where));
    return OPC_OK;
}

/* A run writes every setting there is to its config.yaml, from train.seed to record.snapshots, and
 * meta.json beside it. What such a file does not state is younger than the run. */
static bool is_of_run(const struct opc_sources *sources, const struct file *file)
{
    char folder[OPC_PATH], meta[OPC_PATH];
    return strcmp(opc_path_name(file->path), "config.yaml") == 0 &&
           opc_sources_sets(sources, file->first, "train.seed") &&
           opc_sources_sets(sources, file->first, "record.snapshots") &&
           !opc_path_parent(folder, file->path, NULL) &&
           !opc_path_join(meta, folder, "meta.json", NULL) && opc_file_exists(meta);
}

/* Settings whose default has changed mean in a run's own file what they meant to the run. Until
 * there was a window, all of the past served as references. */
static int add_older_defaults(struct opc_sources *sources, const struct file *file,
                              struct opc_err *err)
{
    if (opc_sources_sets(sources, file->first, "opc.reference_epochs") || !is_of_run(sources, file))
        return OPC_OK;
    return add_assignment(sources, "opc.reference_epochs", "0", file->path, 0, err);
}

/* Adds what the tree of one file says. Owns the tree from here on, also when it fails. */
static int take_tree(struct opc_sources *sources, struct opc_yaml *tree, const char *path,
                     const struct file *from, struct opc_err *err)
{
    struct file file = {path, from, from ? from->depth + 1 : 0, 0};
    const struct opc_yaml *node =
        tree->kind == OPC_YAML_MAP ? opc_yaml_find(tree, "include") : NULL;
    int code = OPC_OK;
    if (tree->kind != OPC_YAML_MAP)
        code = opc_fail(err, OPC_EUSER, "%s: no settings here; write section: {name: value}", path);
    if (node)
        code = include_files(sources, &file, node, err);
    /* The tree of the file itself comes after those it includes. */
    if (!code && sources->trees == TREES)
        code = opc_fail(err, OPC_EUSER, "more than %d files are included", TREES);
    if (!code && !(sources->tree_path[sources->trees] = opc_strdup(path)))
        code = opc_fail(err, OPC_ENOMEM, "not enough memory for the settings of %s", path);
    if (code) {
        opc_yaml_free(tree);
        return code;
    }
    sources->tree[sources->trees++] = tree;
    file.first = sources->n;
    code = add_map(sources, &file, tree, is_extra, 0, err);
    if (!code)
        code = add_older_defaults(sources, &file, err);
    if (!code && (node = opc_yaml_find(tree, "when")))
        code = add_cells(sources, &file, node, err);
    if (!code && (node = opc_yaml_find(tree, "vary")))
        code = check_vary(sources, &file, node, err);
    return code;
}

/* from: the file that includes it; a file among those that lead to it includes itself. */
static int read_file(struct opc_sources *sources, const char *path, const struct file *from,
                     struct opc_err *err)
{
    for (const struct file *file = from; file; file = file->from)
        if (strcmp(file->path, path) == 0)
            return opc_fail(err, OPC_EUSER, "%s includes itself", path);
    struct opc_yaml *tree;
    const int code = opc_yaml_read(path, &tree, err);
    return code ? code : take_tree(sources, tree, path, from, err);
}

int opc_sources_read(struct opc_sources *sources, const char *path, struct opc_err *err)
{
    return read_file(sources, path, NULL, err);
}

int opc_sources_add_map(struct opc_sources *sources, const char *path, const struct opc_yaml *map,
                        bool (*skip)(const char *key), struct opc_err *err)
{
    const struct file file = {.path = path, .first = sources->n};
    const struct opc_yaml *when = opc_yaml_find(map, "when");
    OPC_TRY(add_map(sources, &file, map, skip, 0, err));
    return when ? add_cells(sources, &file, when, err) : OPC_OK;
}

int opc_sources_count(const struct opc_sources *sources)
{
    return sources->n;
}

/* The last one wins, so it is the one that is returned. */
const char *opc_sources_sets(const struct opc_sources *sources, int from, const char *key)
{
    char name[OPC_KEY];
    const char *where = NULL;
    if (opc_config_key(key, name))
        key = name;
    for (int i = from; i < sources->n; i++)
        if (!sources->assignments[i].cell && strcmp(sources->assignments[i].key, key) == 0)
            where = sources->assignments[i].where ? sources->assignments[i].where : "";
    return where;
}

int opc_sources_parse(struct opc_sources *sources, const char *name, const char *text, size_t n,
                      struct opc_err *err)
{
    struct opc_yaml *tree;
    const int code = opc_yaml_parse(name, text, n, &tree, err);
    return code ? code : take_tree(sources, tree, name, NULL, err);
}

const struct opc_yaml *opc_sources_extra_in(const struct opc_sources *sources, const char *key,
                                            const char **path)
{
    /* from the file that was asked for to those it includes */
    for (int i = sources->trees; i-- > 0;) {
        const struct opc_yaml *node = opc_yaml_find(sources->tree[i], key);
        if (node) {
            *path = sources->tree_path[i];
            return node;
        }
    }
    return NULL;
}

const struct opc_yaml *opc_sources_extra(const struct opc_sources *sources, const char *key)
{
    const char *path;
    return opc_sources_extra_in(sources, key, &path);
}

int opc_sources_settled(const struct opc_sources *sources, struct opc_err *err)
{
    /* A varied setting is settled if the command line sets it, whatever the value. */
    const struct opc_yaml *vary = opc_sources_extra(sources, "vary");
    for (const struct opc_yaml *e = vary ? vary->first : NULL; e; e = e->next) {
        char name[OPC_KEY];
        const char *key = opc_config_key(e->key, name) ? name : e->key;
        bool settled = false;
        for (int i = 0; i < sources->n; i++)
            settled = settled ||
                      (!sources->assignments[i].where && !strcmp(sources->assignments[i].key, key));
        if (!settled)
            return opc_fail(err, OPC_EUSER,
                            "the file describes several runs: line %d varies %s; add %s=VALUE to "
                            "choose one",
                            e->line, e->key, e->key);
    }
    return OPC_OK;
}

/* ---- the values in the end ------------------------------------------------------------------- */

/* Is the pattern a value, and equal to the printed one, however it is written? 3e-4 is 0.0003. */
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
    const struct opc_field *field = opc_config_field(&other, key, &section, err);
    opc_field_print(field, section, &text);
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
    const struct opc_field *field = opc_config_field(values, key, &section, err);
    if (!field)
        return OPC_EUSER;
    opc_field_print(field, section, &text);
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

/* Do all conditions of the cell hold for the values without cells? */
static int cell_applies(const struct opc_sources *sources, int cell, struct opc_values *plain,
                        bool *out, struct opc_err *err)
{
    int code = OPC_OK;
    *out = true;
    for (int i = 0; i < sources->n_conditions && *out && !code; i++)
        if (sources->conditions[i].cell == cell)
            code = opc_config_matches(plain, sources->conditions[i].key,
                                      sources->conditions[i].patterns, out, err);
    return code;
}

static int set_defaults(struct opc_values *values, struct opc_err *err)
{
    struct opc_part part[OPC_PARTS_MAX];
    const int parts = opc_config_parts(values, part);
    int code = OPC_OK;
    for (int i = 0; i < parts && !code; i++)
        code = opc_section_defaults(part[i].section, part[i].values, err);
    return code;
}

/* Sets one of the list. A setting that has moved is set in the second pass, after all others, and
 * only in a run of its agent. */
static int set_in_pass(const struct assignment *assignment, int pass, struct opc_values *out,
                       struct opc_err *err)
{
    struct opc_part part[OPC_PARTS_MAX];
    const char *agent, *to = opc_config_moved(assignment->key, &agent);
    if (pass != (to != NULL) || (to && strcmp(opc_agent_of(out)->name, agent) != 0))
        return OPC_OK;
    const int parts = opc_config_parts(out, part);
    return opc_parts_set(part, parts, to ? to : assignment->key, assignment->text, err);
}

/* Defaults, and every setting outside of cells. */
static int without_cells(const struct opc_sources *sources, struct opc_values *out,
                         struct opc_err *err)
{
    int code = set_defaults(out, err);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < sources->n && !code; i++)
            if (sources->assignments[i].cell == 0)
                code = set_in_pass(&sources->assignments[i], pass, out, err);
    return code;
}

int opc_sources_resolve(const struct opc_sources *sources, struct opc_values *out,
                        struct opc_err *err)
{
    struct opc_values plain = {0};
    memset(out, 0, sizeof *out); /* what is between the sections, too */
    int code = without_cells(sources, &plain, err);
    if (!code)
        code = set_defaults(out, err);

    for (int k = 0; k < 2 * sources->n && !code; k++) {
        const int pass = k / sources->n, i = k % sources->n;
        /* A cell that set what decides about cells would need an order of evaluation. */
        const struct assignment *assignment = &sources->assignments[i];
        for (int c = 0; assignment->cell && c < sources->n_conditions && !code; c++)
            if (strcmp(sources->conditions[c].key, assignment->key) == 0)
                code = opc_fail(err, OPC_EUSER,
                                "%s: a cell cannot set %s, because %s decides by it which cells "
                                "apply",
                                assignment->where, assignment->key, sources->conditions[c].where);
        bool counts = true;
        if (!code && assignment->cell)
            code = cell_applies(sources, assignment->cell, &plain, &counts, err);
        if (!code && counts)
            code = set_in_pass(assignment, pass, out, err);
    }
    return code;
}

/* ---- where the settings at fault come from --------------------------------------------------- */

/* Is the key one of the names, which have a space between them? */
static bool is_among(const char *names, const char *key)
{
    const size_t n = strlen(key);
    for (const char *at = names; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == n && strncmp(at, key, n) == 0)
            return true;
    return false;
}

int opc_sources_locate(const struct opc_sources *sources, struct opc_err *err)
{
    struct opc_values plain = {0};
    const struct assignment *last = NULL;
    bool counts = true;
    if (!err || without_cells(sources, &plain, NULL))
        return OPC_EUSER;
    for (int i = sources->n; i-- > 0 && !last;) {
        /* from the last to the first: the assignment that won */
        const struct assignment *assignment = &sources->assignments[i];
        if (is_among(err->settings, assignment->key) &&
            (!assignment->cell ||
             (!cell_applies(sources, assignment->cell, &plain, &counts, NULL) && counts)))
            last = assignment;
    }
    return last && last->where ? opc_within(err, "%s", last->where) : OPC_EUSER;
}
