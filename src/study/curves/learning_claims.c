/* SPDX-License-Identifier: MIT */
/* Claims about the scores of runs, read from the experiment's file and given to what judges their
 * kind (learning_duel.c, learning_contrast.c). learning_curves.c calls it.
 *
 * Invariant: a claim is undecided while runs that it is about are missing or too few. A verdict
 * must never depend on which of them happen to be finished. An undecided claim names the number of
 * seeds that would decide it. */
#include "study/curves/learning_claims.h"
#include "study/curves/curves_draw.h"

#include <fnmatch.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Keys of each kind, in the order of enum opc_claim_kind, and the judge. `names`: how many words
 * the first key has; 1 is a word, 2 a list, 4 a list of two lists. */
static const struct kind {
    const char *first, *second, *glob; /* second NULL: none; glob: "panel" or "line" */
    int names;
    int (*judge)(const struct opc_learning *, const struct opc_claim *, struct opc_exhibit *,
                 struct opc_err *);
} KINDS[OPC_CLAIM_KINDS] = {
    {"better", "worse", "panel", 1, opc_claim_lines},
    {"above", "below", "line", 1, opc_claim_panels},
    {"solves", "level", "panel", 1, opc_claim_solves},
    {"alike", "margin", "panel", 2, opc_claim_alike},
    {"gain", NULL, "line", 4, opc_claim_gain},
    {"best", NULL, "panel", 2, opc_claim_best},
    {"spread", NULL, "panel", 2, opc_claim_spread},
};

/* ---- reading --------------------------------------------------------------------------------- */

int opc_learning_keys(const struct opc_yaml *map, const char *what, const char *const *names,
                      struct opc_err *err)
{
    if (map->kind != OPC_YAML_MAP)
        return opc_fail(err, OPC_EUSER, "line %d: %s is a map like {%s: ...}", map->line, what,
                        names[0]);
    /* The first unknown key is an error, with the nearest known one as a suggestion. */
    for (const struct opc_yaml *node = map->first; node; node = node->next) {
        const char *meant = NULL;
        int nearest = INT_MAX, i = 0;
        for (; names[i] && strcmp(names[i], node->key) != 0; i++)
            if (opc_nearer(node->key, names[i], &nearest))
                meant = names[i];
        if (!names[i])
            return opc_fail(err, OPC_EUSER, "line %d: there is no '%s' in %s%s%s%s", node->line,
                            node->key, what, meant ? "; did you mean '" : "", meant ? meant : "",
                            meant ? "'?" : "");
    }
    return OPC_OK;
}

/* An optional word; NULL if the key is missing. */
static int read_word(const struct opc_yaml *map, const char *key, const char **out,
                     struct opc_err *err)
{
    const struct opc_yaml *node = opc_yaml_find(map, key);
    *out = node && node->kind == OPC_YAML_WORD ? node->text : NULL;
    if (node && !*out)
        return opc_fail(err, OPC_EUSER, "line %d: %s of a claim is a word", node->line, key);
    return OPC_OK;
}

/* An optional glob or list of globs. */
static int read_globs(const struct opc_yaml *map, const char *key, struct opc_globs *out,
                      struct opc_err *err)
{
    const struct opc_yaml *node = opc_yaml_find(map, key);
    *out = (struct opc_globs){0};
    if (!node)
        return OPC_OK;
    if (node->kind == OPC_YAML_WORD) {
        out->at[out->n++] = node->text;
        return OPC_OK;
    }
    /* An empty list would mean all, which nobody writes so. */
    bool good = node->kind == OPC_YAML_LIST && node->first;
    for (const struct opc_yaml *item = good ? node->first : NULL; item && good; item = item->next) {
        good = item->kind == OPC_YAML_WORD && out->n < OPC_GLOBS;
        if (good)
            out->at[out->n++] = item->text;
    }
    return good ? OPC_OK
                : opc_fail(err, OPC_EUSER,
                           "line %d: %s of a claim is a pattern like \"bullet:*\", or a list of up "
                           "to %d of them",
                           node->line, key, OPC_GLOBS);
}

/* The words of a list, which has exactly n of them, or n / 2 lists of two for gain. */
static int read_names(const struct opc_yaml *node, int n, const char **out, struct opc_err *err)
{
    static const char *const LIKE[] = {[2] = "[a, b]", [4] = "[[from, to], [from, to]]"};
    int found = 0;
    bool good = node->kind == OPC_YAML_LIST;
    for (const struct opc_yaml *item = good ? node->first : NULL; item && good; item = item->next) {
        /* A list of lists is read one level further down. */
        const struct opc_yaml *word = n == 4 && item->kind == OPC_YAML_LIST ? item->first : NULL;
        int words = 0;
        if (n == 2 && found < n && item->kind == OPC_YAML_WORD)
            out[found++] = item->text;
        else
            good = word != NULL;
        for (; word && good; word = word->next, words++) {
            good = word->kind == OPC_YAML_WORD && words < 2 && found < n;
            if (good)
                out[found++] = word->text;
        }
        good = good && (n == 2 || words == 2);
    }
    return good && found == n ? OPC_OK
                              : opc_fail(err, OPC_EUSER, "line %d: %s of a claim is a list like %s",
                                         node->line, node->key, LIKE[n]);
}

/* A number within limits. */
static int read_number(const struct opc_yaml *map, const char *key, double low, double high,
                       double *out, struct opc_err *err)
{
    const char *text = NULL;
    OPC_TRY(read_word(map, key, &text, err));
    if (!text || !opc_parse_real(text, out) || !isfinite(*out))
        return opc_fail(err, OPC_EUSER, "line %d: %s = %s is no number", map->line, key,
                        text ? text : "");
    if (!(*out > low && *out < high))
        return opc_fail(err, OPC_EUSER, "line %d: %s = %s is not between %g and %g", map->line, key,
                        text, low, high);
    return OPC_OK;
}

/* Which kind the keys say; refuses none, several, and half of one. */
static int find_kind(const struct opc_yaml *map, enum opc_claim_kind *out, struct opc_err *err)
{
    int found = 0;
    for (int k = 0; k < OPC_CLAIM_KINDS; k++) {
        const struct kind *kind = &KINDS[k];
        const bool first = opc_yaml_find(map, kind->first) != NULL;
        const bool second = kind->second && opc_yaml_find(map, kind->second);
        if (!first && !second)
            continue;
        *out = (enum opc_claim_kind)k;
        found++;
        if (kind->second && first != second)
            return opc_fail(err, OPC_EUSER, "line %d: a claim with '%s' has '%s' as well",
                            map->line, first ? kind->first : kind->second,
                            first ? kind->second : kind->first);
    }
    if (found != 1 || !opc_yaml_find(map, "text"))
        return opc_fail(err, OPC_EUSER,
                        "line %d: a claim has text and one of: better, worse; above, below; "
                        "solves, level; alike, margin; gain; best; spread",
                        map->line);
    /* The other glob would be ignored without a word. */
    const char *wrong = strcmp(KINDS[*out].glob, "panel") == 0 ? "line" : "panel";
    if (opc_yaml_find(map, wrong))
        return opc_fail(err, OPC_EUSER, "line %d: a claim with '%s' has no '%s'; '%s' limits it",
                        map->line, KINDS[*out].first, wrong, KINDS[*out].glob);
    return OPC_OK;
}

/* Reads a claim and checks that it is exactly one of the kinds. */
static int read_claim(const struct opc_yaml *map, struct opc_claim *claim, struct opc_err *err)
{
    static const char *const KEYS[] = {"text",  "better", "worse",  "above", "below", "solves",
                                       "level", "alike",  "margin", "gain",  "best",  "spread",
                                       "panel", "line",   "at",     NULL};
    *claim = (struct opc_claim){.at = HUGE_VAL};
    OPC_TRY(opc_learning_keys(map, "a claim", KEYS, err));
    OPC_TRY(find_kind(map, &claim->kind, err));
    OPC_TRY(read_word(map, "text", &claim->text, err));
    OPC_TRY(read_globs(map, "panel", &claim->panel, err));
    OPC_TRY(read_globs(map, "line", &claim->line, err));
    if (opc_yaml_find(map, "at"))
        OPC_TRY(read_number(map, "at", 0, HUGE_VAL, &claim->at, err));
    /* The names of what is compared. */
    const struct kind *kind = &KINDS[claim->kind];
    if (kind->names > 1)
        OPC_TRY(read_names(opc_yaml_find(map, kind->first), kind->names, claim->name, err));
    else
        OPC_TRY(read_word(map, kind->first, &claim->name[0], err));
    if (claim->kind == OPC_CLAIM_LINES || claim->kind == OPC_CLAIM_PANELS)
        return read_word(map, kind->second, &claim->name[1], err);
    if (claim->kind == OPC_CLAIM_SOLVES)
        return read_number(map, "level", -HUGE_VAL, HUGE_VAL, &claim->level, err);
    if (claim->kind == OPC_CLAIM_ALIKE)
        return read_number(map, "margin", 0, 1, &claim->margin, err);
    return OPC_OK;
}

int opc_learning_claims_check(const struct opc_yaml *list, struct opc_err *err)
{
    struct opc_claim claim;
    int code = OPC_OK;
    if (list && list->kind != OPC_YAML_LIST)
        return opc_fail(err, OPC_EUSER, "line %d: claims is a list of maps", list->line);
    for (const struct opc_yaml *map = list ? list->first : NULL; map && !code; map = map->next)
        code = read_claim(map, &claim, err);
    return code;
}

/* "At 20000 environment steps: ", the middle of which is what the x-axis counts. */
static void say_where(double at, const char *over, struct opc_exhibit *exhibit)
{
    char words[120];
    snprintf(words, sizeof words, "At %.10g %s: ", at, opc_column_label(over));
    opc_exhibit_claims_begin(exhibit, words);
}

/* Judges a claim by the scores that it is about. */
static int judge(const struct opc_learning *learning, const struct opc_claim *claim,
                 const char *over, struct opc_exhibit *exhibit, struct opc_err *err)
{
    const struct kind *kind = &KINDS[claim->kind];
    const bool elsewhere = claim->at < HUGE_VAL;
    struct opc_learning seen = *learning;
    if (elsewhere) {
        OPC_TRY(opc_learning_at(learning, claim->at, &seen, err));
        say_where(claim->at, over, exhibit);
    }
    /* Only the missing runs that matter here. */
    seen.missing = opc_claim_mark_missing(learning, claim, strcmp(kind->glob, "panel") == 0);
    const int code = kind->judge(&seen, claim, exhibit, err);
    if (elsewhere) {
        opc_exhibit_claims_begin(exhibit, "");
        opc_learning_free_scores(&seen);
    }
    return code;
}

int opc_learning_claims(const struct opc_learning *learning, const struct opc_yaml *list,
                        const char *over, struct opc_exhibit *exhibit, struct opc_err *err)
{
    int number = 0, code = OPC_OK;
    for (const struct opc_yaml *map = list ? list->first : NULL; map && !code; map = map->next) {
        struct opc_claim claim;
        code = read_claim(map, &claim, err);
        claim.number = number++;
        if (!code)
            code = judge(learning, &claim, over, exhibit, err);
    }
    return code;
}

/* ---- what judges share ----------------------------------------------------------------------- */

bool opc_claim_like(const char *glob, const char *name)
{
    return fnmatch(glob, name, 0) == 0;
}

bool opc_claim_means(const struct opc_globs *globs, const char *name)
{
    bool means = !globs || globs->n == 0;
    for (int i = 0; !means && i < globs->n; i++)
        means = opc_claim_like(globs->at[i], name);
    return means;
}

int opc_claim_panel(const struct opc_learning *learning, const char *name)
{
    int panel = 0;
    while (panel < learning->panels && strcmp(name, learning->curves->panel[panel]) != 0)
        panel++;
    return panel;
}

/* Stream 3: 1, 2, 4 and those from 100 on are of the tables (learning_tables.c). */
struct opc_rng opc_claim_stream(const struct opc_learning *learning, const struct opc_claim *claim)
{
    return opc_rng_stream(learning->seed, OPC_USE_STUDY, 3, (uint32_t)claim->number);
}

bool opc_claim_has(const struct opc_learning *learning, const struct opc_claim *claim,
                   const char *line, struct opc_exhibit *exhibit)
{
    char missing[OPC_CLAIM_TEXT];
    if (opc_learning_find(learning, line) >= 0)
        return true;
    opc_claim_say_missing(learning, missing);
    opc_exhibit_claim(exhibit, OPC_VERDICT_UNDECIDED, claim->text,
                      "There is no complete run of %s%s.", opc_claim_label(learning, line),
                      missing);
    return false;
}

bool opc_claim_has_like(const struct opc_learning *learning, const struct opc_claim *claim,
                        const char *glob, struct opc_exhibit *exhibit)
{
    char words[OPC_CLAIM_TEXT], missing[OPC_CLAIM_TEXT];
    for (int i = 0; i < learning->lines; i++)
        if (opc_claim_like(glob, learning->line[i]))
            return true;
    opc_claim_say_lines(learning, glob, words);
    opc_claim_say_missing(learning, missing);
    opc_exhibit_claim(exhibit, OPC_VERDICT_UNDECIDED, claim->text,
                      "There is no complete run of %s%s.", words, missing);
    return false;
}
