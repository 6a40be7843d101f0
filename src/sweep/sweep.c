/* SPDX-License-Identifier: MIT */
/* Opens an experiment file: reads vary, skip, tiers and the rest, and makes the list of its runs.
 * Called by `opc sweep` and `opc repro`; nothing is started here.
 *
 * Invariant: a task's settings are what its file, tier, command line and choice of values resolve
 * to, in this order, and opc_config_check has passed for every task before any is started. */
#include "sweep/sweep.h"

#include "base/file.h"
#include "opc/mem.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Names are directories below OUT, and get endings like .log: well below the 255 bytes of a file
 * name. */
enum { MAX_TASKS = 5000 };

/* A map or list with the file it is in, for messages. */
struct part {
    const struct opc_yaml *node; /* NULL: there is none */
    const char *path;
};

struct opening { /* needed only while a sweep is being opened */
    struct opc_sweep *sweep;
    struct part tier, vary, tier_vary; /* the chosen tier; vary of the file, and of the tier */
    struct part skip[2];               /* of the file, and of the tier; both count */
    struct opc_values scratch;         /* values are tried on it, to print them all alike */
    bool no_runs;                      /* as asked */
};

static int out_of_memory(struct opc_err *err)
{
    return opc_fail(err, OPC_ENOMEM, "not enough memory for the runs of the experiment");
}

/* A part of the file, or of the last file it includes that has it. */
static struct part find_part(const struct opc_sweep *sweep, const char *key)
{
    struct part p = {0};
    p.node = opc_sources_extra_in(sweep->from, key, &p.path);
    return p;
}

/* shape: what should be written there. A missing part is fine. */
static int expect_kind(struct part p, enum opc_yaml_kind kind, const char *shape,
                       struct opc_err *err)
{
    if (!p.node || p.node->kind == kind)
        return OPC_OK;
    return opc_fail(err, OPC_EUSER, "%s:%d: write %s", p.path, p.node->line, shape);
}

/* ---- tiers ----------------------------------------------------------------------------------- */

/* Keys of a tier that are not settings. */
static bool is_special(const char *key)
{
    return strcmp(key, "vary") == 0 || strcmp(key, "skip") == 0 || strcmp(key, "probe") == 0 ||
           strcmp(key, "figure") == 0 || strcmp(key, "when") == 0;
}

/* Names the tier that was probably meant, or all there are. */
static int fail_no_tier(struct part tiers, const char *name, struct opc_err *err)
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

static struct part part_inside(struct part map, const char *key)
{
    struct part p = {map.node ? opc_yaml_find(map.node, key) : NULL, map.path};
    return p;
}

/* The tier that was asked for, with its own vary and skip. */
static int find_tier(struct opening *opening, const struct opc_sweep_ask *ask, struct opc_err *err)
{
    if (!ask->tier || !*ask->tier)
        return OPC_OK;
    const struct part tiers = find_part(opening->sweep, "tiers");
    /* a file without tiers, in a command that has a tier for all its experiments */
    if (!tiers.node && ask->any_tier) {
        *opening->sweep->tier = '\0';
        return OPC_OK;
    }
    if (!tiers.node)
        return opc_fail(err, OPC_EUSER, "%s has no tiers, so there is no '%s'", ask->path,
                        ask->tier);
    OPC_TRY(expect_kind(tiers, OPC_YAML_MAP, "tiers: {small: {section.name: value}}", err));
    opening->tier = part_inside(tiers, ask->tier);
    if (!opening->tier.node)
        return fail_no_tier(tiers, ask->tier, err);
    OPC_TRY(expect_kind(opening->tier, OPC_YAML_MAP, "a tier as a map of settings", err));
    opening->tier_vary = part_inside(opening->tier, "vary");
    opening->skip[1] = part_inside(opening->tier, "skip");
    return expect_kind(opening->tier_vary, OPC_YAML_MAP, "vary: {section.name: [values]}", err);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Appends a value of a varied setting, as the setting prints it: 3e-4 and 0.0003 are the same. */
static int add_value(struct opening *opening, struct opc_vary *vary, const char *text,
                     const char *path, int line, struct opc_err *err)
{
    struct opc_part part[OPC_PARTS_MAX];
    struct opc_text printed = {0};
    void *section;
    const int parts = opc_config_parts(&opening->scratch, part);
    if (vary->n == MAX_TASKS)
        return opc_fail(err, OPC_EUSER, "%s:%d: %s has more than %d values", path, line, vary->key,
                        MAX_TASKS);
    /* the setting itself knows whether it can have the value */
    if (opc_parts_set(part, parts, vary->key, text, err))
        return opc_within(err, "%s:%d", path, line);
    /* as it is printed, a value can be compared with the others */
    const struct opc_field *f = opc_config_field(&opening->scratch, vary->key, &section, err);
    opc_field_print(f, section, &printed);
    int code = opc_text_check(&printed, err);
    for (int i = 0; i < vary->n && !code; i++)
        if (strcmp(vary->value[i], opc_text_get(&printed)) == 0)
            code = opc_fail(err, OPC_EUSER, "%s:%d: %s has the value %s twice", path, line,
                            vary->key, vary->value[i]);
    if (!code && !(vary->value[vary->n] = opc_strdup(opc_text_get(&printed))))
        code = out_of_memory(err);
    if (!code)
        vary->n++;
    opc_text_free(&printed);
    return code;
}

/* Appends a word, or for an integer setting the range first..last. */
static int add_word(struct opening *opening, struct opc_vary *vary, const struct opc_yaml *word,
                    const char *path, struct opc_err *err)
{
    const struct opc_field *f = opc_config_field(&opening->scratch, vary->key, NULL, err);
    const char *dots = strstr(word->text, "..");
    if (f->kind != OPC_FIELD_INT || !dots)
        return add_value(opening, vary, word->text, path, word->line, err);
    char number[OPC_PRINTED];
    int first, last;
    snprintf(number, sizeof number, "%.*s", (int)(dots - word->text), word->text);
    if (!opc_parse_int(number, &first) || !opc_parse_int(dots + 2, &last) || first > last)
        return opc_fail(err, OPC_EUSER, "%s:%d: %s: %s is not a range; write first..last, as 1..10",
                        path, word->line, vary->key, word->text);
    int code = OPC_OK;
    for (int i = first; !code; i++) {
        snprintf(number, sizeof number, "%d", i);
        code = add_value(opening, vary, number, path, word->line, err);
        /* here and not in the head: i must not pass INT_MAX */
        if (i == last)
            break;
    }
    return code;
}

/* Appends a value that is itself a list: "[64, 64]". */
static int add_list(struct opening *opening, struct opc_vary *vary, const struct opc_yaml *list,
                    const char *path, struct opc_err *err)
{
    struct opc_text text = {0};
    int code = OPC_OK;
    opc_text_add(&text, "[");
    for (const struct opc_yaml *e = list->first; e && !code; e = e->next) {
        if (e->kind != OPC_YAML_WORD)
            code = opc_fail(err, OPC_EUSER, "%s:%d: %s: lists are nested too deep", path, e->line,
                            vary->key);
        else
            opc_text_addf(&text, "%s%s", e == list->first ? "" : ", ", e->text);
    }
    opc_text_add(&text, "]");
    if (!code)
        code = opc_text_check(&text, err);
    if (!code)
        code = add_value(opening, vary, opc_text_get(&text), path, list->line, err);
    opc_text_free(&text);
    return code;
}

/* One varied setting with all its values. A single word is a list of one. */
static int add_vary(struct opening *opening, struct part from, struct opc_err *err)
{
    /* Counted at once, so that opc_sweep_close frees it also when a value is refused. */
    struct opc_vary *vary = &opening->sweep->vary[opening->sweep->keys++];
    const struct opc_yaml *node = from.node;
    char name[OPC_KEY]; /* as it is printed, whatever name the file has for it */
    vary->key = opc_strdup(opc_config_key(node->key, name) ? name : node->key);
    vary->value = opc_alloc(MAX_TASKS, sizeof *vary->value);
    if (!vary->key || !vary->value)
        return out_of_memory(err);
    if (node->kind == OPC_YAML_MAP)
        return opc_fail(err, OPC_EUSER, "%s:%d: %s: write a list of values", from.path, node->line,
                        node->key);
    int code = OPC_OK;
    const bool list = node->kind == OPC_YAML_LIST;
    for (const struct opc_yaml *e = list ? node->first : node; e && !code;
         e = list ? e->next : NULL)
        if (e->kind == OPC_YAML_LIST)
            code = add_list(opening, vary, e, from.path, err);
        else if (e->kind == OPC_YAML_WORD)
            code = add_word(opening, vary, e, from.path, err);
        else
            code = opc_fail(err, OPC_EUSER, "%s:%d: %s: a value is a word or a list", from.path,
                            e->line, vary->key);
    if (!code && vary->n == 0)
        code = opc_fail(err, OPC_EUSER, "%s:%d: %s has no values, so there is no run at all",
                        from.path, node->line, vary->key);
    return code;
}

/* The entry for the same setting, whatever name it has there; NULL: there is none. */
static const struct opc_yaml *find_varied(const struct opc_yaml *map, const char *key)
{
    char name[OPC_KEY], other[OPC_KEY];
    const bool known = opc_config_key(key, name);
    for (const struct opc_yaml *e = map ? map->first : NULL; e; e = e->next)
        if (strcmp(e->key, key) == 0 ||
            (known && opc_config_key(e->key, other) && strcmp(other, name) == 0))
            return e;
    return NULL;
}

/* The varied settings of the file, in its order; a tier may replace the values of some of them. */
static int read_vary(struct opening *opening, struct opc_err *err)
{
    const struct opc_yaml *node = opening->vary.node;
    int n = 0, code = OPC_OK;
    for (const struct opc_yaml *e = node ? node->first : NULL; e; e = e->next)
        n++;
    for (const struct opc_yaml *e = opening->tier_vary.node ? opening->tier_vary.node->first : NULL;
         e; e = e->next) {
        const char *meant = NULL;
        int nearest = INT_MAX;
        /* a key of the tier that the file does not vary is a mistake, probably of spelling */
        if (find_varied(node, e->key))
            continue;
        for (const struct opc_yaml *k = node ? node->first : NULL; k; k = k->next)
            if (opc_nearer(e->key, k->key, &nearest))
                meant = k->key;
        return opc_fail(err, OPC_EUSER,
                        "%s:%d: a tier can change what is varied, but the file does "
                        "not vary %s%s%s%s",
                        opening->tier_vary.path, e->line, e->key, meant ? "; did you mean " : "",
                        meant ? meant : "", meant ? "?" : "");
    }
    /* the tier's values where it has some, the file's otherwise */
    opening->sweep->vary = opc_alloc((size_t)n + 1, sizeof *opening->sweep->vary);
    if (!opening->sweep->vary)
        return out_of_memory(err);
    for (const struct opc_yaml *e = node ? node->first : NULL; e && !code; e = e->next) {
        if (find_varied(node, e->key) != e)
            return opc_fail(err, OPC_EUSER, "%s:%d: %s varies what %s varies already",
                            opening->vary.path, e->line, e->key, find_varied(node, e->key)->key);
        struct part from = {find_varied(opening->tier_vary.node, e->key), opening->tier_vary.path};
        if (!from.node)
            from = (struct part){e, opening->vary.path};
        code = add_vary(opening, from, err);
    }
    return code;
}

/* ---- settings of the tier and of the command line -------------------------------------------- */

/* A setting cannot be varied and set: `from` is the number of the first assignment to look at. */
static int check_contradiction(const struct opening *opening, int from, const char *what,
                               struct opc_err *err)
{
    for (const struct opc_yaml *e = opening->vary.node ? opening->vary.node->first : NULL; e;
         e = e->next) {
        const char *where = opc_sources_sets(opening->sweep->from, from, e->key);
        if (where)
            return opc_fail(err, OPC_EUSER, "%s%s%s sets %s, which %s:%d varies; %s", where,
                            *where ? ": " : "", what, e->key, opening->vary.path, e->line,
                            *where ? "give the tier a 'vary' entry for it"
                                   : "change the list there, or run one with 'opc train'");
    }
    return OPC_OK;
}

/* First the tier's settings, then the command line's. Neither may set what is varied. */
static int apply_settings(struct opening *opening, const struct opc_sweep_ask *ask,
                          struct opc_err *err)
{
    struct opc_sources *from = opening->sweep->from;
    int mark = opc_sources_count(from);
    char key[128];
    if (opening->tier.node)
        OPC_TRY(opc_sources_add_map(from, opening->tier.path, opening->tier.node, is_special, err));
    OPC_TRY(check_contradiction(opening, mark, "the tier", err));
    mark = opc_sources_count(from);
    for (int i = 0; i < ask->sets; i++) {
        const char *is = strchr(ask->set[i], '=');
        if (!is || is == ask->set[i])
            return opc_fail(err, OPC_EUSER, "'%s' is not a setting; write section.name=value",
                            ask->set[i]);
        snprintf(key, sizeof key, "%.*s", (int)(is - ask->set[i]), ask->set[i]);
        OPC_TRY(opc_sources_add(from, key, is + 1, err));
    }
    return check_contradiction(opening, mark, "the command line", err);
}

/* ---- what is left out ------------------------------------------------------------------------ */

/* skip: a list of maps of patterns; a run is left out if all patterns of one map match. */
static int check_skip(struct opening *opening, struct part skip, struct opc_err *err)
{
    static const char SHAPE[] = "skip: [{section.name: pattern}]";
    int code = expect_kind(skip, OPC_YAML_LIST, SHAPE, err);
    for (const struct opc_yaml *e = skip.node ? skip.node->first : NULL; e && !code; e = e->next) {
        /* an entry without conditions would match every run */
        code = expect_kind((struct part){e, skip.path}, OPC_YAML_MAP, SHAPE, err);
        if (!code && !e->first)
            code = opc_fail(err, OPC_EUSER, "%s:%d: an empty entry would leave out everything",
                            skip.path, e->line);
        for (const struct opc_yaml *condition = code ? NULL : e->first; condition && !code;
             condition = condition->next)
            code = opc_sources_check_pattern(opening->sweep->from, skip.path, condition, err);
    }
    return code;
}

/* Does an entry of either list match? Its conditions are those of `when` cells. */
static int is_skipped(const struct opening *opening, struct opc_values *values, bool *out,
                      struct opc_err *err)
{
    int code = OPC_OK;
    *out = false;
    for (int i = 0; i < 2; i++)
        for (const struct opc_yaml *e = opening->skip[i].node ? opening->skip[i].node->first : NULL;
             e && !*out && !code; e = e->next) {
            /* all conditions of the entry must hold */
            *out = true;
            for (const struct opc_yaml *condition = e->first; condition && *out && !code;
                 condition = condition->next)
                code = opc_config_matches(values, condition->key, condition, out, err);
        }
    return code;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

/* The number of the combination of values other than the seed: runs of a group are averaged. */
static int group_of(const struct opc_sweep *sweep, const int *choice)
{
    int group = 0;
    for (int k = 0; k < sweep->keys; k++)
        if (strcmp(sweep->vary[k].key, "train.seed") != 0)
            group = group * sweep->vary[k].n + choice[k];
    return group;
}

/* Adds the run with these choices, unless it is skipped. */
static int add_task(struct opening *opening, const int *choice, struct opc_err *err)
{
    struct opc_sweep *sweep = opening->sweep;
    struct opc_task *task = &sweep->task[sweep->tasks];
    int code = OPC_OK, added = 0;
    bool skipped = false;
    /* The choices are assignments like those of the command line, taken back at the end. */
    for (; added < sweep->keys && !code; added += !code)
        code = opc_sources_add(sweep->from, sweep->vary[added].key,
                               sweep->vary[added].value[choice[added]], err);
    if (!code)
        code = opc_sources_resolve(sweep->from, &task->set, err);
    const bool lacks =
        opening->no_runs && *task->set.train.prefill && !opc_file_exists(task->set.train.prefill);
    if (!code && lacks)
        (void)opc_values_settle(&task->set, NULL); /* all but the checksum of that file */
    else if (!code)
        code = opc_values_settle(&task->set, err);
    if (!code)
        code = is_skipped(opening, &task->set, &skipped, err);
    if (!code && !skipped) {
        task->choice = opc_alloc((size_t)sweep->keys + 1, sizeof *task->choice);
        if (task->choice) {
            memcpy(task->choice, choice, (size_t)sweep->keys * sizeof *choice);
            code = opc_sweep_name(sweep, task, err);
        } else
            code = out_of_memory(err);
        if (!code && opc_config_check(&(struct opc_config){task->set, sweep->from}, err))
            code = opc_within(err, "%s: %s", sweep->path, task->name);
        task->group = group_of(sweep, choice);
        task->index = ++sweep->tasks;
    }
    for (; added > 0; added--)
        opc_sources_drop_last(sweep->from);
    return code;
}

static int make_tasks(struct opening *opening, struct opc_err *err)
{
    struct opc_sweep *sweep = opening->sweep;
    /* A double, because the product may be too large for an int. */
    double all = 1;
    for (int k = 0; k < sweep->keys; k++)
        all *= sweep->vary[k].n;
    if (all > MAX_TASKS)
        return opc_fail(err, OPC_EUSER, "%s:%d: these are %.0f runs, more than %d",
                        opening->vary.path, opening->vary.node->line, all, MAX_TASKS);
    int *choice = opc_alloc((size_t)sweep->keys + 1, sizeof *choice);
    sweep->task = opc_alloc((size_t)all, sizeof *sweep->task);
    if (!choice || !sweep->task) {
        opc_free(choice);
        return out_of_memory(err);
    }
    int code = OPC_OK;
    for (bool more = true; more && !code;) {
        code = add_task(opening, choice, err);
        /* Next combination, like an odometer: the last key changes fastest. */
        int k = sweep->keys;
        while (k > 0 && ++choice[k - 1] == sweep->vary[k - 1].n)
            choice[--k] = 0;
        more = k > 0;
    }
    opc_free(choice);
    if (!code && sweep->tasks == 0)
        code = opc_fail(err, OPC_EUSER, "%s: 'skip' leaves out every run", sweep->path);
    return code;
}

/* ---- the rest of the file -------------------------------------------------------------------- */

/* Merges a map of the file with that of the tier: the file's entries, replaced by the tier's where
 * they have the same name, then the tier's other entries. Nodes are copied, their texts and
 * children are not, so the result is freed by free_entries. */
static int merge_maps(struct part file, struct part tier, struct opc_yaml **out,
                      struct opc_err *err)
{
    OPC_TRY(expect_kind(file, OPC_YAML_MAP, "a map", err));
    OPC_TRY(expect_kind(tier, OPC_YAML_MAP, "a map", err));
    if (!file.node && !tier.node)
        return OPC_OK;
    /* line and key of the file's map, for messages */
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
            /* the tier's entry has taken the place of the file's already */
            if (m == 1 && file.node && opc_yaml_find(file.node, e->key))
                continue;
            const struct opc_yaml *other = m == 0 ? part_inside(tier, e->key).node : NULL;
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

/* A text of the file; "" if it has none. */
static int read_word(const struct opc_sweep *sweep, const char *key, char **out,
                     struct opc_err *err)
{
    const struct part p = find_part(sweep, key);
    int code = OPC_OK;
    if (p.node && p.node->kind != OPC_YAML_WORD)
        code = opc_fail(err, OPC_EUSER, "%s:%d: %s is a text", p.path, p.node->line, key);
    if (!code && !(*out = opc_strdup(p.node ? p.node->text : "")))
        code = out_of_memory(err);
    return code;
}

/* runs: names another experiment, whose runs this one uses; then it cannot vary anything itself. */
static int check_runs(const struct opening *opening, struct opc_err *err)
{
    const struct part runs = find_part(opening->sweep, "runs");
    if (!runs.node)
        return OPC_OK;
    if (!*runs.node->text || strchr(runs.node->text, '/'))
        return opc_fail(err, OPC_EUSER,
                        "%s:%d: runs: the name of an experiment in the same directory, as fig13",
                        runs.path, runs.node->line);
    if (opening->vary.node)
        return opc_fail(err, OPC_EUSER,
                        "%s:%d: the runs are those of %s, so there is nothing to vary (%s:%d)",
                        runs.path, runs.node->line, runs.node->text, opening->vary.path,
                        opening->vary.node->line);
    return OPC_OK;
}

/* Reads the file and makes the tasks; opc_sweep_open frees everything when this fails. */
/* OPC_EUSER: the file is empty. It would be a sweep of one long run with all defaults. */
static int check_content(const struct opc_sweep *sweep, struct opc_err *err)
{
    static const char *const PARTS[] = {"vary",  "runs",  "title", "figure",
                                        "probe", "tiers", "skip"};
    bool any = opc_sources_count(sweep->from) > 0;
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++)
        any = any || opc_sources_extra(sweep->from, PARTS[i]);
    return any ? OPC_OK
               : opc_fail(err, OPC_EUSER,
                          "%s sets nothing; experiments/ has files to start from, "
                          "docs/experiments.md explains them",
                          sweep->path);
}

static int read_sweep(struct opening *opening, const struct opc_sweep_ask *ask, struct opc_err *err)
{
    struct opc_sweep *sweep = opening->sweep;
    OPC_TRY(opc_sources_create(&sweep->from, err));
    OPC_TRY(opc_sources_read(sweep->from, ask->path, err));
    sweep->path = opc_strdup(ask->path);
    sweep->tier = opc_strdup(ask->tier ? ask->tier : "");
    if (!sweep->path || !sweep->tier)
        return out_of_memory(err);
    OPC_TRY(check_content(sweep, err));
    /* the parts of the file that are not settings */
    opening->vary = find_part(sweep, "vary");
    opening->skip[0] = find_part(sweep, "skip");
    OPC_TRY(read_word(sweep, "title", &sweep->title, err));
    OPC_TRY(read_word(sweep, "runs", &sweep->runs, err));
    OPC_TRY(check_runs(opening, err));
    /* the tier, and after it the command line, which wins */
    OPC_TRY(find_tier(opening, ask, err));
    OPC_TRY(apply_settings(opening, ask, err));
    OPC_TRY(merge_maps(find_part(sweep, "probe"), part_inside(opening->tier, "probe"),
                       &sweep->probe, err));
    OPC_TRY(merge_maps(find_part(sweep, "figure"), part_inside(opening->tier, "figure"),
                       &sweep->figure, err));
    /* one task for each combination of the varied values that is not skipped */
    OPC_TRY(opc_sources_resolve(sweep->from, &opening->scratch, err));
    sweep->seed = opening->scratch.train.seed;
    OPC_TRY(read_vary(opening, err));
    for (int i = 0; i < 2; i++)
        OPC_TRY(check_skip(opening, opening->skip[i], err));
    return make_tasks(opening, err);
}

int opc_sweep_open(const struct opc_sweep_ask *ask, struct opc_sweep **out, struct opc_err *err)
{
    struct opening *opening = opc_alloc(1, sizeof *opening);
    struct opc_sweep *sweep = opc_alloc(1, sizeof *sweep);
    int code = OPC_OK;
    if (opening && sweep) {
        opening->sweep = sweep;
        opening->no_runs = ask->no_runs;
        code = read_sweep(opening, ask, err);
    } else
        code = out_of_memory(err);
    opc_free(opening);
    if (code)
        opc_sweep_close(sweep);
    else
        *out = sweep;
    return code;
}

static void free_task(struct opc_task *task)
{
    opc_free(task->name);
    opc_free(task->old_name);
    opc_free(task->choice);
}

void opc_sweep_keep(struct opc_sweep *sweep, const bool *keep)
{
    int kept = 0;
    for (int i = 0; i < sweep->tasks; i++)
        if (keep[i])
            sweep->task[kept++] = sweep->task[i];
        else
            free_task(&sweep->task[i]);
    sweep->tasks = kept;
}

int opc_sweep_narrow(struct opc_sweep *sweep, const char *pattern, struct opc_err *err)
{
    bool *keep = opc_alloc((size_t)sweep->tasks + 1, sizeof *keep);
    int kept = 0;
    if (!keep)
        return opc_fail(err, OPC_ENOMEM, "out of memory for the runs of %s", sweep->path);
    /* The names are counted first: a pattern that matches nothing must leave the sweep as it is. */
    for (int i = 0; i < sweep->tasks; i++) {
        keep[i] = fnmatch(pattern, sweep->task[i].name, 0) == 0;
        kept += keep[i];
    }
    if (kept)
        opc_sweep_keep(sweep, keep);
    opc_free(keep);
    char file[OPC_PATH];
    return kept ? OPC_OK
                : opc_fail(err, OPC_EUSER,
                           "no run of %s is called like '%s'; 'opc sweep %s status' names them",
                           sweep->path, pattern, opc_shell_word(sweep->path, file, sizeof file));
}

int opc_sweep_pick(struct opc_sweep *sweep, int index, struct opc_err *err)
{
    const int runs = sweep->tasks > 0 ? sweep->task[sweep->tasks - 1].index : 0;
    bool *keep = opc_alloc((size_t)sweep->tasks + 1, sizeof *keep), found = false;
    if (!keep)
        return opc_fail(err, OPC_ENOMEM, "out of memory for the runs of %s", sweep->path);
    for (int i = 0; i < sweep->tasks; i++)
        found |= keep[i] = sweep->task[i].index == index;
    if (found)
        opc_sweep_keep(sweep, keep);
    opc_free(keep);
    return found ? OPC_OK
                 : opc_fail(err, OPC_EUSER,
                            "--index = %d: the runs of %s have the numbers 1 to %d; 'opc sweep %s "
                            "status --json' has them all",
                            index, sweep->path, runs, sweep->path);
}

void opc_sweep_close(struct opc_sweep *sweep)
{
    if (!sweep)
        return;
    for (int k = 0; k < sweep->keys; k++) {
        for (int i = 0; i < sweep->vary[k].n; i++)
            opc_free(sweep->vary[k].value[i]);
        opc_free(sweep->vary[k].value);
        opc_free(sweep->vary[k].key);
    }
    for (int i = 0; i < sweep->tasks; i++)
        free_task(&sweep->task[i]);
    opc_free(sweep->vary);
    opc_free(sweep->task);
    free_entries(sweep->probe);
    free_entries(sweep->figure);
    opc_sources_destroy(sweep->from);
    opc_free(sweep->path);
    opc_free(sweep->title);
    opc_free(sweep->tier);
    opc_free(sweep->runs);
    opc_free(sweep);
}
