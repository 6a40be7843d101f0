/* SPDX-License-Identifier: MIT */
#include "sweep/sweep.h"

#include "base/file.h"
#include "opc/mem.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { MAX_TASKS = 5000, LONGEST_NAME = 180 };

/* A map or list with the file it is in, for messages. */
struct part {
    const struct opc_yaml *node; /* NULL: there is none */
    const char *path;
};

struct open { /* what is needed only while a sweep is being opened */
    struct opc_sweep *sweep;
    struct part tier, vary, tier_vary;
    struct part skip[2];
    struct opc_values scratch;
};

static int out_of_memory(struct opc_err *err)
{
    return opc_fail(err, OPC_ENOMEM, "not enough memory for the runs of the experiment");
}

static struct part find(const struct opc_sweep *s, const char *key)
{
    struct part p = {0};
    p.node = opc_sources_extra_in(s->from, key, &p.path);
    return p;
}

static int expect_kind(struct part p, enum opc_yaml_kind kind, const char *shape,
                       struct opc_err *err)
{
    if (!p.node || p.node->kind == kind)
        return OPC_OK;
    return opc_fail(err, OPC_EUSER, "%s:%d: write %s", p.path, p.node->line, shape);
}

/* ---- tiers ----------------------------------------------------------------------------------- */

static bool is_special(const char *key)
{
    return strcmp(key, "vary") == 0 || strcmp(key, "skip") == 0 || strcmp(key, "probe") == 0 ||
           strcmp(key, "figure") == 0;
}

static int no_tier(struct part tiers, const char *name, struct opc_err *err)
{
    struct opc_text known = {0};
    const char *meant = NULL;
    int nearest = INT_MAX;
    for (const struct opc_yaml *e = tiers.node->first; e; e = e->next) {
        if (opc_nearer(name, e->key, &nearest))
            meant = e->key;
        opc_text_addf(&known, "%s%s", e == tiers.node->first ? "" : ", ", e->key);
    }
    if (meant)
        opc_fail(err, OPC_EUSER, "%s:%d: there is no tier '%s'; did you mean '%s'?", tiers.path,
                 tiers.node->line, name, meant);
    else
        opc_fail(err, OPC_EUSER, "%s:%d: there is no tier '%s'; it has %s", tiers.path,
                 tiers.node->line, name, opc_text_get(&known));
    opc_text_free(&known);
    return OPC_EUSER;
}

static struct part inside(struct part map, const char *key)
{
    struct part p = {map.node ? opc_yaml_find(map.node, key) : NULL, map.path};
    return p;
}

static int find_tier(struct open *o, const struct opc_sweep_ask *ask, struct opc_err *err)
{
    if (!ask->tier || !*ask->tier)
        return OPC_OK;
    const struct part tiers = find(o->sweep, "tiers");
    if (!tiers.node && ask->any_tier) {
        *o->sweep->tier = '\0';
        return OPC_OK;
    }
    if (!tiers.node)
        return opc_fail(err, OPC_EUSER, "%s has no tiers, so there is no '%s'", ask->path,
                        ask->tier);
    int code = expect_kind(tiers, OPC_YAML_MAP, "tiers: {small: {section.name: value}}", err);
    if (code)
        return code;
    o->tier = inside(tiers, ask->tier);
    if (!o->tier.node)
        return no_tier(tiers, ask->tier, err);
    code = expect_kind(o->tier, OPC_YAML_MAP, "a tier as a map of settings", err);
    o->tier_vary = inside(o->tier, "vary");
    o->skip[1] = inside(o->tier, "skip");
    if (!code)
        code = expect_kind(o->tier_vary, OPC_YAML_MAP, "vary: {section.name: [values]}", err);
    return code;
}

/* ---- values ---------------------------------------------------------------------------------- */

static int add_value(struct open *o, struct opc_vary *v, const char *text, const char *path,
                     int line, struct opc_err *err)
{
    struct opc_part part[OPC_PARTS_MAX];
    struct opc_text printed = {0};
    void *section;
    const int parts = opc_config_parts(&o->scratch, part);
    if (v->n == MAX_TASKS)
        return opc_fail(err, OPC_EUSER, "%s:%d: %s has more than %d values", path, line, v->key,
                        MAX_TASKS);
    if (opc_parts_set(part, parts, v->key, text, err))
        return opc_within(err, "%s:%d", path, line);
    const struct opc_field *f = opc_config_field(&o->scratch, v->key, &section, err);
    opc_field_print(f, section, &printed);
    int code = opc_text_check(&printed, err);
    for (int i = 0; i < v->n && !code; i++)
        if (strcmp(v->value[i], opc_text_get(&printed)) == 0)
            code = opc_fail(err, OPC_EUSER, "%s:%d: %s has the value %s twice", path, line, v->key,
                            v->value[i]);
    if (!code && !(v->value[v->n] = opc_strdup(opc_text_get(&printed))))
        code = out_of_memory(err);
    if (!code)
        v->n++;
    opc_text_free(&printed);
    return code;
}

/* A word, for a whole number also first..last. */
static int add_word(struct open *o, struct opc_vary *v, const struct opc_yaml *word,
                    const char *path, struct opc_err *err)
{
    const struct opc_field *f = opc_config_field(&o->scratch, v->key, NULL, err);
    const char *dots = strstr(word->text, "..");
    if (f->kind != OPC_INT || !dots)
        return add_value(o, v, word->text, path, word->line, err);
    char number[OPC_PRINTED];
    int first, last;
    snprintf(number, sizeof number, "%.*s", (int)(dots - word->text), word->text);
    if (!opc_parse_int(number, &first) || !opc_parse_int(dots + 2, &last) || first > last)
        return opc_fail(err, OPC_EUSER, "%s:%d: %s: %s is no range; write first..last, as 1..10",
                        path, word->line, v->key, word->text);
    int code = OPC_OK;
    for (int i = first; !code; i++) {
        snprintf(number, sizeof number, "%d", i);
        code = add_value(o, v, number, path, word->line, err);
        if (i == last)
            break;
    }
    return code;
}

/* A value that is itself a list: "[64, 64]". */
static int add_list(struct open *o, struct opc_vary *v, const struct opc_yaml *list,
                    const char *path, struct opc_err *err)
{
    struct opc_text text = {0};
    int code = OPC_OK;
    opc_text_add(&text, "[");
    for (const struct opc_yaml *e = list->first; e && !code; e = e->next) {
        if (e->kind != OPC_YAML_WORD)
            code = opc_fail(err, OPC_EUSER, "%s:%d: %s: lists are nested too deep", path, e->line,
                            v->key);
        else
            opc_text_addf(&text, "%s%s", e == list->first ? "" : ", ", e->text);
    }
    opc_text_add(&text, "]");
    if (!code)
        code = opc_text_check(&text, err);
    if (!code)
        code = add_value(o, v, opc_text_get(&text), path, list->line, err);
    opc_text_free(&text);
    return code;
}

static int add_vary(struct open *o, struct part from, struct opc_err *err)
{
    struct opc_vary *v = &o->sweep->vary[o->sweep->keys++];
    const struct opc_yaml *node = from.node;
    char name[OPC_KEY]; /* as it is printed, whatever name the file has for it */
    v->key = opc_strdup(opc_config_key(node->key, name) ? name : node->key);
    v->value = opc_alloc(MAX_TASKS, sizeof *v->value);
    if (!v->key || !v->value)
        return out_of_memory(err);
    if (node->kind == OPC_YAML_MAP)
        return opc_fail(err, OPC_EUSER, "%s:%d: %s: write a list of values", from.path, node->line,
                        node->key);
    int code = OPC_OK;
    const bool list = node->kind == OPC_YAML_LIST;
    for (const struct opc_yaml *e = list ? node->first : node; e && !code;
         e = list ? e->next : NULL)
        if (e->kind == OPC_YAML_LIST)
            code = add_list(o, v, e, from.path, err);
        else if (e->kind == OPC_YAML_WORD)
            code = add_word(o, v, e, from.path, err);
        else
            code = opc_fail(err, OPC_EUSER, "%s:%d: %s: a value is a word or a list", from.path,
                            e->line, v->key);
    if (!code && v->n == 0)
        code = opc_fail(err, OPC_EUSER, "%s:%d: %s has no values, so there is no run at all",
                        from.path, node->line, v->key);
    return code;
}

static int read_vary(struct open *o, struct opc_err *err)
{
    const struct opc_yaml *node = o->vary.node;
    int n = 0, code = OPC_OK;
    for (const struct opc_yaml *e = node ? node->first : NULL; e; e = e->next)
        n++;
    for (const struct opc_yaml *e = o->tier_vary.node ? o->tier_vary.node->first : NULL; e;
         e = e->next) {
        const char *meant = NULL;
        int nearest = INT_MAX;
        if (node && opc_yaml_find(node, e->key))
            continue;
        for (const struct opc_yaml *k = node ? node->first : NULL; k; k = k->next)
            if (opc_nearer(e->key, k->key, &nearest))
                meant = k->key;
        return opc_fail(err, OPC_EUSER,
                        "%s:%d: a tier can change what is varied, but the file does "
                        "not vary %s%s%s%s",
                        o->tier_vary.path, e->line, e->key, meant ? "; did you mean " : "",
                        meant ? meant : "", meant ? "?" : "");
    }
    o->sweep->vary = opc_alloc((size_t)n + 1, sizeof *o->sweep->vary);
    if (!o->sweep->vary)
        return out_of_memory(err);
    for (const struct opc_yaml *e = node ? node->first : NULL; e && !code; e = e->next) {
        struct part from = inside(o->tier_vary, e->key);
        if (!from.node)
            from = (struct part){e, o->vary.path};
        code = add_vary(o, from, err);
    }
    return code;
}

/* ---- settings of the tier and of the command line -------------------------------------------- */

static int check_contradiction(const struct open *o, int from, const char *what,
                               struct opc_err *err)
{
    for (const struct opc_yaml *e = o->vary.node ? o->vary.node->first : NULL; e; e = e->next) {
        const char *where = opc_sources_sets(o->sweep->from, from, e->key);
        if (where)
            return opc_fail(err, OPC_EUSER, "%s%s%s sets %s, which %s:%d varies; %s", where,
                            *where ? ": " : "", what, e->key, o->vary.path, e->line,
                            *where ? "give the tier a 'vary' entry for it"
                                   : "change the list there, or run one with 'opc train'");
    }
    return OPC_OK;
}

static int apply_settings(struct open *o, const struct opc_sweep_ask *ask, struct opc_err *err)
{
    struct opc_sources *from = o->sweep->from;
    int mark = opc_sources_count(from), code = OPC_OK;
    char key[128];
    if (o->tier.node)
        code = opc_sources_add_map(from, o->tier.path, o->tier.node, is_special, err);
    if (!code)
        code = check_contradiction(o, mark, "the tier", err);
    mark = opc_sources_count(from);
    for (int i = 0; i < ask->sets && !code; i++) {
        const char *is = strchr(ask->set[i], '=');
        if (!is || is == ask->set[i])
            return opc_fail(err, OPC_EUSER, "'%s' is no setting; write section.name=value",
                            ask->set[i]);
        snprintf(key, sizeof key, "%.*s", (int)(is - ask->set[i]), ask->set[i]);
        code = opc_sources_add(from, key, is + 1, err);
    }
    return code ? code : check_contradiction(o, mark, "the command line", err);
}

/* ---- what is left out ------------------------------------------------------------------------ */

static int check_skip(struct open *o, struct part skip, struct opc_err *err)
{
    static const char SHAPE[] = "skip: [{section.name: pattern}]";
    int code = expect_kind(skip, OPC_YAML_LIST, SHAPE, err);
    for (const struct opc_yaml *e = skip.node ? skip.node->first : NULL; e && !code; e = e->next) {
        code = expect_kind((struct part){e, skip.path}, OPC_YAML_MAP, SHAPE, err);
        if (!code && !e->first)
            code = opc_fail(err, OPC_EUSER, "%s:%d: an empty entry would leave out everything",
                            skip.path, e->line);
        for (const struct opc_yaml *c = code ? NULL : e->first; c && !code; c = c->next)
            code = opc_sources_check_pattern(o->sweep->from, skip.path, c, err);
    }
    return code;
}

static int is_skipped(const struct open *o, struct opc_values *v, bool *out, struct opc_err *err)
{
    int code = OPC_OK;
    *out = false;
    for (int i = 0; i < 2; i++)
        for (const struct opc_yaml *e = o->skip[i].node ? o->skip[i].node->first : NULL;
             e && !*out && !code; e = e->next) {
            *out = true;
            for (const struct opc_yaml *c = e->first; c && *out && !code; c = c->next)
                code = opc_config_matches(v, c->key, c, out, err);
        }
    return code;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

/* Values in the order of `vary`, joined by '_': mujoco-hopper_corrected_s1. */
static int name_task(struct opc_sweep *s, struct opc_task *t, struct opc_err *err)
{
    static const char PLAIN[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-";
    char name[LONGEST_NAME + 1] = "", full[LONGEST_NAME + 16];
    size_t n = 0;
    for (int k = 0; k < s->keys; k++) {
        if (k > 0 && n < LONGEST_NAME)
            name[n++] = '_';
        if (strcmp(s->vary[k].key, "train.seed") == 0 && n < LONGEST_NAME)
            name[n++] = 's';
        const char *value = opc_task_value(s, t, k);
        if (strchr(value, '/'))
            value += strspn(value, "./"); /* ./arm.so */
        for (const char *c = value; *c && n < LONGEST_NAME; c++)
            if (!strchr("[]", *c) && !(*c == ' ' && c > value && c[-1] == ',')) /* lists: 64-64 */
                name[n++] = strchr(PLAIN, *c) ? *c : '-';
    }
    name[n] = '\0';
    if (n == 0)
        strcpy(name, "run");
    if (name[0] == '.')
        name[0] = '-'; /* it would be hidden */
    snprintf(full, sizeof full, "%s", name);
    for (int again = 2, i = 0; i < s->tasks; i++)
        if (strcmp(s->task[i].name, full) == 0) {
            snprintf(full, sizeof full, "%s-%d", name, again++);
            i = -1;
        }
    t->name = opc_strdup(full);
    return t->name ? OPC_OK : out_of_memory(err);
}

static int group_of(const struct opc_sweep *s, const int *choice)
{
    int group = 0;
    for (int k = 0; k < s->keys; k++)
        if (strcmp(s->vary[k].key, "train.seed") != 0)
            group = group * s->vary[k].n + choice[k];
    return group;
}

/* The run with these choices, unless it is left out. */
static int add_task(struct open *o, const int *choice, struct opc_err *err)
{
    struct opc_sweep *s = o->sweep;
    struct opc_task *t = &s->task[s->tasks];
    int code = OPC_OK, added = 0;
    bool skipped = false;
    for (; added < s->keys && !code; added += !code)
        code =
            opc_sources_add(s->from, s->vary[added].key, s->vary[added].value[choice[added]], err);
    if (!code)
        code = opc_sources_resolve(s->from, &t->set, err);
    if (!code)
        code = is_skipped(o, &t->set, &skipped, err);
    if (!code && !skipped) {
        t->choice = opc_alloc((size_t)s->keys + 1, sizeof *t->choice);
        if (t->choice) {
            memcpy(t->choice, choice, (size_t)s->keys * sizeof *choice);
            code = name_task(s, t, err);
        } else
            code = out_of_memory(err);
        if (!code && opc_config_check(&(struct opc_config){t->set, s->from}, err))
            code = opc_within(err, "%s: %s", s->path, t->name);
        t->group = group_of(s, choice);
        s->tasks++;
    }
    for (; added > 0; added--)
        opc_sources_drop_last(s->from);
    return code;
}

static int make_tasks(struct open *o, struct opc_err *err)
{
    struct opc_sweep *s = o->sweep;
    double all = 1;
    for (int k = 0; k < s->keys; k++)
        all *= s->vary[k].n;
    if (all > MAX_TASKS)
        return opc_fail(err, OPC_EUSER, "%s:%d: these are %.0f runs, more than %d", o->vary.path,
                        o->vary.node->line, all, MAX_TASKS);
    int *choice = opc_alloc((size_t)s->keys + 1, sizeof *choice);
    s->task = opc_alloc((size_t)all, sizeof *s->task);
    if (!choice || !s->task) {
        opc_free(choice);
        return out_of_memory(err);
    }
    int code = OPC_OK;
    for (bool more = true; more && !code;) {
        code = add_task(o, choice, err);
        int k = s->keys;
        while (k > 0 && ++choice[k - 1] == s->vary[k - 1].n)
            choice[--k] = 0;
        more = k > 0;
    }
    opc_free(choice);
    if (!code && s->tasks == 0)
        code = opc_fail(err, OPC_EUSER, "%s: 'skip' leaves out every run", s->path);
    return code;
}

/* ---- the rest of the file -------------------------------------------------------------------- */

/* The entries of the file's map, those of the tier's instead where they have the same name, and its
 * others behind. Nodes are copied, what hangs on them is not: free_entries. */
static int merge_maps(struct part file, struct part tier, struct opc_yaml **out,
                      struct opc_err *err)
{
    int code = expect_kind(file, OPC_YAML_MAP, "a map", err);
    if (!code)
        code = expect_kind(tier, OPC_YAML_MAP, "a map", err);
    if (code || (!file.node && !tier.node))
        return code;
    struct opc_yaml *map = opc_alloc(1, sizeof *map);
    if (!map)
        return out_of_memory(err);
    *map = file.node ? *file.node : *tier.node;
    map->first = map->next = NULL;
    *out = map;
    struct opc_yaml **end = &map->first;
    const struct opc_yaml *maps[2] = {file.node, tier.node};
    for (int m = 0; m < 2; m++)
        for (const struct opc_yaml *e = maps[m] ? maps[m]->first : NULL; e; e = e->next) {
            if (m == 1 && file.node && opc_yaml_find(file.node, e->key))
                continue;
            const struct opc_yaml *other = m == 0 ? inside(tier, e->key).node : NULL;
            if (!(*end = opc_alloc(1, sizeof **end)))
                return out_of_memory(err);
            **end = other ? *other : *e;
            (*end)->next = NULL;
            end = &(*end)->next;
        }
    return OPC_OK;
}

static void free_entries(struct opc_yaml *map)
{
    for (struct opc_yaml *e = map ? map->first : NULL, *next; e; e = next) {
        next = e->next;
        opc_free(e);
    }
    opc_free(map);
}

static int read_word(const struct opc_sweep *s, const char *key, char **out, struct opc_err *err)
{
    const struct part p = find(s, key);
    int code = OPC_OK;
    if (p.node && p.node->kind != OPC_YAML_WORD)
        code = opc_fail(err, OPC_EUSER, "%s:%d: %s is a text", p.path, p.node->line, key);
    if (!code && !(*out = opc_strdup(p.node ? p.node->text : "")))
        code = out_of_memory(err);
    return code;
}

static int check_runs(const struct open *o, struct opc_err *err)
{
    const struct part runs = find(o->sweep, "runs");
    if (!runs.node)
        return OPC_OK;
    if (!*runs.node->text || strchr(runs.node->text, '/'))
        return opc_fail(err, OPC_EUSER,
                        "%s:%d: runs: the name of an experiment in the same directory, as fig13",
                        runs.path, runs.node->line);
    if (o->vary.node)
        return opc_fail(
            err, OPC_EUSER, "%s:%d: the runs are those of %s, so there is nothing to vary (%s:%d)",
            runs.path, runs.node->line, runs.node->text, o->vary.path, o->vary.node->line);
    return OPC_OK;
}

int opc_sweep_open(const struct opc_sweep_ask *ask, struct opc_sweep **out, struct opc_err *err)
{
    struct open *o = opc_alloc(1, sizeof *o);
    struct opc_sweep *s = opc_alloc(1, sizeof *s);
    int code = o && s ? opc_sources_create(&s->from, err) : out_of_memory(err);
    if (!code)
        code = opc_sources_read(s->from, ask->path, err);
    if (code)
        goto end;
    o->sweep = s;
    s->path = opc_strdup(ask->path);
    s->tier = opc_strdup(ask->tier ? ask->tier : "");
    if (!s->path || !s->tier)
        code = out_of_memory(err);
    o->vary = find(s, "vary");
    o->skip[0] = find(s, "skip");
    if (!code)
        code = read_word(s, "title", &s->title, err);
    if (!code)
        code = read_word(s, "runs", &s->runs, err);
    if (!code)
        code = check_runs(o, err);
    if (!code)
        code = find_tier(o, ask, err);
    if (!code)
        code = apply_settings(o, ask, err);
    if (!code)
        code = merge_maps(find(s, "probe"), inside(o->tier, "probe"), &s->probe, err);
    if (!code)
        code = merge_maps(find(s, "figure"), inside(o->tier, "figure"), &s->figure, err);
    if (!code)
        code = opc_sources_resolve(s->from, &o->scratch, err);
    if (code)
        goto end;
    s->seed = o->scratch.train.seed;
    code = read_vary(o, err);
    for (int i = 0; i < 2 && !code; i++)
        code = check_skip(o, o->skip[i], err);
    if (!code)
        code = make_tasks(o, err);
end:
    opc_free(o);
    if (code)
        opc_sweep_close(s);
    else
        *out = s;
    return code;
}

static void free_task(struct opc_task *t)
{
    opc_free(t->name);
    opc_free(t->choice);
}

int opc_sweep_narrow(struct opc_sweep *s, const char *pattern, struct opc_err *err)
{
    int kept = 0;
    for (int i = 0; i < s->tasks; i++)
        kept += fnmatch(pattern, s->task[i].name, 0) == 0;
    if (kept == 0)
        return opc_fail(err, OPC_EUSER,
                        "no run of %s is called like '%s'; 'opc sweep %s status' names them",
                        s->path, pattern, s->path);
    kept = 0;
    for (int i = 0; i < s->tasks; i++)
        if (fnmatch(pattern, s->task[i].name, 0) == 0)
            s->task[kept++] = s->task[i];
        else
            free_task(&s->task[i]);
    s->tasks = kept;
    return OPC_OK;
}

void opc_sweep_close(struct opc_sweep *s)
{
    if (!s)
        return;
    for (int k = 0; k < s->keys; k++) {
        for (int i = 0; i < s->vary[k].n; i++)
            opc_free(s->vary[k].value[i]);
        opc_free(s->vary[k].value);
        opc_free(s->vary[k].key);
    }
    for (int i = 0; i < s->tasks; i++)
        free_task(&s->task[i]);
    opc_free(s->vary);
    opc_free(s->task);
    free_entries(s->probe);
    free_entries(s->figure);
    opc_sources_destroy(s->from);
    opc_free(s->path);
    opc_free(s->title);
    opc_free(s->tier);
    opc_free(s->runs);
    opc_free(s);
}
