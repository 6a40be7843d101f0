/* SPDX-License-Identifier: MIT */
/* Random search with successive halving (study/search.h). cli/cmd_search.c runs the sweeps that
 * this makes; sweep/schedule.c raises the epochs of runs that are promoted, and they go on.
 *
 * Invariant: nothing is remembered but the run directories. A decision about rung r reads only rows
 * up to its epoch, so it is the same whether a trial has stopped there or trained on. */
#include "study/search.h"

#include "base/file.h"
#include "opc/mem.h"
#include "run/files/rundir.h"
#include "study/curves/curves.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM = 200, MAX_KEYS = 64 }; /* of random numbers; settings of a search */

#define SELF struct opc_search_options
const struct opc_section opc_search_section =
    OPC_SECTION("search", "a search over settings", OPC_SEARCH_FIELDS);
#undef SELF

static int search_no_memory(struct opc_err *err)
{
    return opc_fail(err, OPC_ENOMEM, "not enough memory for the search");
}

/* ---- the file -------------------------------------------------------------------------------- */

/* The text of a word or of a list of words. */
static int node_text(const struct opc_yaml *node, struct opc_text *text, struct opc_err *err)
{
    opc_text_clear(text);
    if (node->kind == OPC_YAML_WORD)
        opc_text_add(text, node->text);
    else if (node->kind == OPC_YAML_LIST) {
        opc_text_add(text, "[");
        for (const struct opc_yaml *e = node->first; e; e = e->next)
            opc_text_addf(text, "%s%s", e == node->first ? "" : ", ", e->text ? e->text : "?");
        opc_text_add(text, "]");
    } else
        return opc_fail(err, OPC_EUSER, "line %d: a value or a list of values is wanted",
                        node->line);
    return opc_text_check(text, err);
}

/* trials, rungs and their like; settings is read by read_keys. */
static int read_options(struct opc_search *search, const struct opc_yaml *map, struct opc_err *err)
{
    struct opc_text text = {0};
    int code = opc_section_defaults(&opc_search_section, &search->set, err);
    for (const struct opc_yaml *e = map->first; e && !code; e = e->next) {
        if (strcmp(e->key, "settings") == 0)
            continue;
        /* The field table knows the names, the ranges and what was probably meant. */
        code = node_text(e, &text, err);
        if (!code &&
            opc_section_set(&opc_search_section, &search->set, e->key, opc_text_get(&text), err))
            code = opc_within(err, "line %d: search", e->line);
    }
    opc_text_free(&text);
    return code;
}

/* A number in low or high of a range. */
static int bound_of(const struct opc_yaml *range, const char *key, double *out, struct opc_err *err)
{
    const struct opc_yaml *node = opc_yaml_find(range, key);
    if (node && node->text && opc_parse_real(node->text, out) && isfinite(*out))
        return OPC_OK;
    return opc_fail(err, OPC_EUSER, "line %d: %s: '%s' is missing, or is not a number", range->line,
                    range->key, key);
}

/* Draws a value: one of a list, or a number of a range, evenly or on a logarithmic scale. */
static int draw_value(const struct opc_yaml *from, const struct opc_field *field,
                      struct opc_rng *rng, struct opc_text *text, struct opc_err *err)
{
    /* One number for each setting, whatever it is: another kind of range changes no other value. */
    const double u = opc_rng_unit_double(rng);
    if (from->kind == OPC_YAML_LIST) {
        int n = 0;
        for (const struct opc_yaml *e = from->first; e; e = e->next)
            n++;
        const struct opc_yaml *e = from->first;
        if (!e)
            return opc_fail(err, OPC_EUSER, "line %d: %s has no values", from->line, from->key);
        for (int k = (int)(u * n); k > 0 && e->next; k--)
            e = e->next;
        return node_text(e, text, err);
    }
    static const char SHAPE[] = "a list of values, or {low: 1e-5, high: 1e-2, scale: log}";
    const bool whole = field->kind == OPC_FIELD_INT;
    double low = 0, high = 0;
    if (from->kind != OPC_YAML_MAP || (!whole && field->kind != OPC_FIELD_REAL))
        return opc_fail(err, OPC_EUSER, "line %d: %s: write %s; only numbers have a range",
                        from->line, from->key, SHAPE);
    /* A range: its ends, its scale, and whether they go together. */
    OPC_TRY(bound_of(from, "low", &low, err));
    OPC_TRY(bound_of(from, "high", &high, err));
    const struct opc_yaml *scale = opc_yaml_find(from, "scale");
    const bool logarithmic = scale && scale->text && strcmp(scale->text, "log") == 0;
    if (scale && !logarithmic && !(scale->text && strcmp(scale->text, "linear") == 0))
        return opc_fail(err, OPC_EUSER, "line %d: %s: scale is log or linear", from->line,
                        from->key);
    if (!(low < high) || (logarithmic && !(low > 0)))
        return opc_fail(err, OPC_EUSER, "line %d: %s: low must be below high%s", from->line,
                        from->key, logarithmic ? ", and above 0 on a logarithmic scale" : "");
    /* A whole number is the floor of a range that is one longer, so that both ends are as likely.
     */
    const double top = whole && !logarithmic ? high + 1 : high;
    double v = logarithmic ? low * pow(high / low, u) : low + (top - low) * u;
    if (whole)
        v = fmin(high, logarithmic ? round(v) : floor(v));
    opc_text_clear(text);
    opc_text_addf(text, "%.6g", v);
    return opc_text_check(text, err);
}

/* ---- trials ---------------------------------------------------------------------------------- */

/* The value of a setting as it is printed. */
static int keep_value(struct opc_values *values, const char *key, char **out, struct opc_err *err)
{
    struct opc_text text = {0};
    void *section;
    const struct opc_field *field = opc_config_field(values, key, &section, err);
    if (!field)
        return OPC_EUSER;
    opc_field_print(field, section, &text);
    const int code = opc_text_check(&text, err);
    *out = code ? NULL : opc_strdup(opc_text_get(&text));
    opc_text_free(&text);
    return code ? code : *out ? OPC_OK : search_no_memory(err);
}

/* With several rungs a trial goes on from one to the next. */
static int check_rungs(const struct opc_search *search, const struct opc_values *values,
                       struct opc_err *err)
{
    if (search->rungs < 2 || opc_config_may_go_on(values))
        return OPC_OK;
    return opc_fail(err, OPC_EUSER,
                    "search.rungs: this agent's learning rate falls towards its last epoch, so a "
                    "trial cannot go on; use one rung");
}

/* Draws the values of trial i, and resolves its settings with the cells that then apply. */
static int draw_trial(struct opc_search *search, int i, const struct opc_yaml *settings,
                      struct opc_sources *from, struct opc_err *err)
{
    struct opc_trial *trial = &search->trial[i];
    struct opc_rng rng =
        opc_rng_stream((uint64_t)search->set.seed, OPC_USE_STUDY, STREAM, (uint32_t)i);
    struct opc_text text = {0};
    char name[32];
    int added = 0, code = OPC_OK;
    snprintf(name, sizeof name, "t%04d", i);
    trial->run.name = opc_strdup(name);
    trial->value = opc_alloc((size_t)search->keys, sizeof *trial->value);
    if (!trial->run.name || !trial->value)
        return search_no_memory(err);
    /* Values are added like those of the command line, so they win over the file and its cells. */
    for (const struct opc_yaml *e = settings->first; e && !code; e = e->next) {
        const struct opc_field *field = opc_config_field(&trial->run.set, e->key, NULL, err);
        code = field ? draw_value(e, field, &rng, &text, err) : OPC_EUSER;
        if (!code && !(code = opc_sources_add(from, e->key, opc_text_get(&text), err)))
            added++;
    }
    if (!code)
        code = opc_sources_resolve(from, &trial->run.set, err);
    trial->run.set.train.epochs =
        search->rungs ? search->epochs[search->rungs - 1] : trial->run.set.train.epochs;
    /* A trial that could not train is refused before any has started. */
    if (!code)
        code = opc_values_check(&trial->run.set, err);
    if (!code)
        code = check_rungs(search, &trial->run.set, err);
    for (int k = 0; k < search->keys && !code; k++)
        code = keep_value(&trial->run.set, search->key[k], &trial->value[k], err);
    /* The sources are as before for the next trial. */
    for (; added > 0; added--)
        opc_sources_drop_last(from);
    opc_text_free(&text);
    return code ? opc_within(err, "trial %s", name) : OPC_OK;
}

/* Epochs of the rungs, which ascend; without rungs all trials train to the end. */
static int read_rungs(struct opc_search *search, const struct opc_values *values,
                      struct opc_err *err)
{
    const struct opc_ints *rungs = &search->set.rungs;
    search->rungs = rungs->n ? rungs->n : 1;
    search->epochs[0] = values->train.epochs;
    for (int r = 0; r < rungs->n; r++) {
        search->epochs[r] = rungs->at[r];
        if (r > 0 && rungs->at[r] <= rungs->at[r - 1])
            return opc_fail(err, OPC_EUSER, "search.rungs: %d does not come after %d", rungs->at[r],
                            rungs->at[r - 1]);
    }
    return check_rungs(search, values, err);
}

/* The settings that are searched, under their present names. */
static int read_keys(struct opc_search *search, const struct opc_yaml *settings,
                     struct opc_values *values, struct opc_err *err)
{
    if (!settings || settings->kind != OPC_YAML_MAP || !settings->first)
        return opc_fail(err, OPC_EUSER, "search.settings is missing; write {section.name: values}");
    search->key = opc_alloc(MAX_KEYS, sizeof *search->key);
    if (!search->key)
        return search_no_memory(err);
    for (const struct opc_yaml *e = settings->first; e; e = e->next) {
        char name[OPC_KEY];
        if (!opc_config_field(values, e->key, NULL, err))
            return opc_within(err, "line %d", e->line);
        if (opc_config_key(e->key, name) && strcmp(name, "train.epochs") == 0)
            return opc_fail(err, OPC_EUSER, "line %d: train.epochs is what rungs are for", e->line);
        if (search->keys == MAX_KEYS)
            return opc_fail(err, OPC_EUSER, "search.settings has more than %d entries", MAX_KEYS);
        search->key[search->keys] = opc_strdup(opc_config_key(e->key, name) ? name : e->key);
        if (!search->key[search->keys++])
            return search_no_memory(err);
    }
    return OPC_OK;
}

/* All that follows from the sources. */
static int fill_search(struct opc_search *search, struct opc_sources *from, struct opc_err *err)
{
    const struct opc_yaml *map = opc_sources_extra(from, "search");
    struct opc_values *values = opc_alloc(1, sizeof *values);
    int code = values ? OPC_OK : search_no_memory(err);
    if (!code && (!map || map->kind != OPC_YAML_MAP))
        code = opc_fail(err, OPC_EUSER, "it has no search: {settings: {section.name: values}}");
    /* Both would say what the runs are. */
    if (!code && opc_sources_extra(from, "vary"))
        code = opc_fail(err, OPC_EUSER, "it has vary and search; 'opc sweep' is for vary");
    if (!code)
        code = opc_sources_resolve(from, values, err);
    if (!code)
        code = read_options(search, map, err);
    if (!code)
        code = read_rungs(search, values, err);
    if (!code)
        code = read_keys(search, opc_yaml_find(map, "settings"), values, err);
    if (!code && !(search->trial = opc_alloc((size_t)search->set.trials, sizeof *search->trial)))
        code = search_no_memory(err);
    for (int i = 0; !code && i < search->set.trials; i++) {
        search->trial[i].run.set = *values;
        code = draw_trial(search, i, opc_yaml_find(map, "settings"), from, err);
    }
    opc_free(values);
    return code;
}

int opc_search_open(const char *path, int sets, char *const *set, struct opc_search **out,
                    struct opc_err *err)
{
    struct opc_sources *from = NULL;
    struct opc_search *search = opc_alloc(1, sizeof *search);
    int code = search && (search->path = opc_strdup(path)) ? OPC_OK : search_no_memory(err);
    if (!code)
        code = opc_sources_create(&from, err);
    if (!code)
        code = opc_sources_read(from, path, err);
    /* KEY=VALUE of the command line come last and win. */
    for (int i = 0; i < sets && !code; i++) {
        char key[OPC_KEY];
        const char *is = strchr(set[i], '=');
        snprintf(key, sizeof key, "%.*s", is ? (int)(is - set[i]) : 0, set[i]);
        code = is ? opc_sources_add(from, key, is + 1, err)
                  : opc_fail(err, OPC_EUSER, "'%s' is not a setting; write section.name=value",
                             set[i]);
    }
    if (!code && (code = fill_search(search, from, err)))
        opc_within(err, "%s", path);
    opc_sources_destroy(from);
    if (code)
        opc_search_close(search);
    else
        *out = search;
    return code;
}

/* Accepts a search of which only a part could be read. */
void opc_search_close(struct opc_search *search)
{
    if (!search)
        return;
    for (int i = 0; search->trial && i < search->set.trials; i++) {
        for (int k = 0; search->trial[i].value && k < search->keys; k++)
            opc_free(search->trial[i].value[k]);
        opc_free(search->trial[i].value);
        opc_free(search->trial[i].run.name);
    }
    for (int k = 0; k < search->keys; k++)
        opc_free(search->key[k]);
    opc_free(search->key);
    opc_free(search->trial);
    opc_free(search->path);
    opc_free(search);
}

/* ---- scores and promotions ------------------------------------------------------------------- */

/* The scores of one trial: at each rung the mean of the last five values up to its epoch. */
static int judge_trial(const struct opc_search *search, struct opc_trial *trial, const char *dir,
                       struct opc_err *err)
{
    struct opc_rundir_table t;
    int epoch, value, code = OPC_OK;
    trial->rung = 0;
    for (int r = 0; r < search->rungs; r++)
        trial->score[r] = (double)NAN;
    /* A trial that has not begun has no table, and one that begins may have no first line yet. */
    if (opc_rundir_table_read(dir, "metrics.csv", &t, NULL))
        return OPC_OK;
    double *v = opc_alloc((size_t)t.rows + 1, sizeof *v);
    if (!v)
        code = search_no_memory(err);
    else if (t.columns > 0 && !(code = opc_rundir_table_find(&t, "epoch", &epoch, err)) &&
             !(code = opc_rundir_table_find(&t, search->set.objective, &value, err)))
        for (int r = 0; r < search->rungs; r++) {
            int n = 0, last = 0;
            for (int row = 0; row < t.rows; row++) {
                const double e = opc_rundir_table_number(&t, row, epoch);
                const double y = opc_rundir_table_number(&t, row, value);
                /* Later rows belong to later rungs. */
                if (!(e <= search->epochs[r]))
                    break;
                last = (int)e;
                if (!isnan(y))
                    v[n++] = y;
            }
            /* It has not got to this rung, so not to the next ones either. */
            if (last < search->epochs[r])
                break;
            trial->score[r] = opc_curve_end(n, v);
            trial->rung = r + 1;
        }
    opc_free(v);
    opc_rundir_table_free(&t);
    return code;
}

int opc_search_judge(struct opc_search *search, const char *out, struct opc_err *err)
{
    for (int i = 0; i < search->set.trials; i++) {
        char dir[OPC_PATH];
        OPC_TRY(opc_path_join(dir, out, search->trial[i].run.name, err));
        OPC_TRY(judge_trial(search, &search->trial[i], dir, err));
    }
    return OPC_OK;
}

/* Starts from all trials and cuts them down, rung by rung. */
int opc_search_promoted(const struct opc_search *search, int r, int *chosen)
{
    int n = search->set.trials;
    for (int i = 0; i < n; i++)
        chosen[i] = i;
    for (int k = 0; k < r; k++) {
        /* The best first; of equal ones the one with the lower number. Without a score it is out.
         */
        int left = 0;
        for (int i = 0; i < n; i++) {
            const int c = chosen[i];
            const double score = search->trial[c].score[k];
            int at = left;
            if (isnan(score))
                continue;
            for (; at > 0 &&
                   (score > search->trial[chosen[at - 1]].score[k] ||
                    (score == search->trial[chosen[at - 1]].score[k] && c < chosen[at - 1]));
                 at--)
                chosen[at] = chosen[at - 1];
            chosen[at] = c;
            left++;
        }
        /* The share is of those that were to reach the rung, not of those that did. */
        const int most = (int)floor(n * search->set.keep + 1e-9);
        n = most < left ? (most > 0 ? most : left > 0) : left;
    }
    return n;
}

int opc_search_sweep(const struct opc_search *search, int r, struct opc_sweep *out,
                     struct opc_err *err)
{
    int *chosen = opc_alloc((size_t)search->set.trials, sizeof *chosen);
    *out = (struct opc_sweep){.path = search->path, .tier = "", .title = "", .runs = ""};
    out->task = opc_alloc((size_t)search->set.trials, sizeof *out->task);
    if (!chosen || !out->task) {
        opc_free(chosen);
        opc_search_free_sweep(out);
        return search_no_memory(err);
    }
    const int n = opc_search_promoted(search, r, chosen);
    for (int i = 0; i < n; i++) {
        const struct opc_trial *trial = &search->trial[chosen[i]];
        /* It has been there already, perhaps before the search was interrupted. */
        if (trial->rung > r)
            continue;
        out->task[out->tasks] = trial->run;
        out->task[out->tasks].group = chosen[i];
        out->task[out->tasks++].set.train.epochs = search->epochs[r];
    }
    opc_free(chosen);
    return OPC_OK;
}

void opc_search_free_sweep(struct opc_sweep *sweep)
{
    opc_free(sweep->task);
    *sweep = (struct opc_sweep){0};
}

/* A trial of a later rung is better than any of an earlier one: it has won against them. */
int opc_search_best(const struct opc_search *search)
{
    int best = -1;
    for (int r = search->rungs - 1; r >= 0 && best < 0; r--)
        for (int i = 0; i < search->set.trials; i++)
            if (!isnan(search->trial[i].score[r]) &&
                (best < 0 || search->trial[i].score[r] > search->trial[best].score[r]))
                best = i;
    return best;
}

int opc_search_table(const struct opc_search *search, struct opc_table **out, struct opc_err *err)
{
    struct opc_text head = {0};
    struct opc_table *t = NULL;
    /* One column for each setting and each rung. */
    opc_text_add(&head, "trial");
    for (int k = 0; k < search->keys; k++)
        opc_text_addf(&head, ",%s", search->key[k]);
    for (int r = 0; r < search->rungs; r++)
        opc_text_addf(&head, ",score after %d", search->epochs[r]);
    int code = opc_text_check(&head, err);
    if (!code)
        code = opc_table_create(opc_text_get(&head), &t, err);
    for (int i = 0; i < search->set.trials && !code; i++) {
        opc_table_word(t, search->trial[i].run.name);
        for (int k = 0; k < search->keys; k++)
            opc_table_word(t, search->trial[i].value[k]);
        for (int r = 0; r < search->rungs; r++)
            opc_table_real(t, search->trial[i].score[r]);
    }
    opc_text_free(&head);
    if (!code)
        *out = t;
    return code;
}
