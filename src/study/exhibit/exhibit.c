/* SPDX-License-Identifier: MIT */
/* Writes exhibits: figures, tables and claims as files, and NAME.json that lists them. Analyses
 * call it through study/repro.c, opc probe and opc ilc.
 *
 * Invariant: NAME.json is removed first and written last, so that a .json file always describes
 * files that are there and belong together. */
#include "study/exhibit/exhibit.h"

#include "base/file.h"
#include "opc/mem.h"
#include "opc/version.h"
#include "run/files/json.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const VERDICT[] = {"supported", "not supported", "undecided"};

/* Lists are collected as JSON text; claims also as a table, which is written next to it. */
struct opc_exhibit {
    char *dir, *name, *caption;
    struct opc_text head; /* texts of the plan, a line each */
    /* Items of the lists, without the brackets. */
    struct opc_text picture, table, claim, note;
    struct opc_table *claims;
    bool undrawn;           /* this build cannot draw, and a note already says so */
    char claims_begin[120]; /* words before what was measured */
};

/* One message for all parts of an exhibit. */
static int exhibit_no_memory(struct opc_err *err)
{
    return opc_fail(err, OPC_ENOMEM, "not enough memory for the exhibit");
}

/* One "key": "value" line. */
static void add_text(struct opc_text *out, const char *key, const char *value)
{
    opc_text_addf(out, "  \"%s\": ", key);
    opc_json_add_quoted(out, value ? value : "");
    opc_text_add(out, ",\n");
}

/* Starts the next item of a list. */
static void add_item(struct opc_text *list)
{
    opc_text_add(list, list->used ? ",\n    " : "\n    ");
}

int opc_exhibit_begin(const struct opc_exhibit_plan *plan, struct opc_exhibit **out,
                      struct opc_err *err)
{
    char file[OPC_PATH], path[OPC_PATH];
    int code = opc_make_directories(plan->dir, err);
    if (!code && snprintf(file, sizeof file, "%s.json", plan->name) >= (int)sizeof file)
        code = opc_fail(err, OPC_EUSER, "the name of the exhibit is too long");
    if (!code)
        code = opc_path_join(path, plan->dir, file, err);
    if (code)
        return code;
    /* An older .json of this name would declare the new files complete. */
    if (unlink(path) && errno != ENOENT)
        return opc_fail_errno(err, errno, "cannot remove %s", path);
    struct opc_exhibit *exhibit = opc_alloc(1, sizeof *exhibit);
    if (!exhibit)
        return exhibit_no_memory(err);
    /* The head is written at once: the plan's texts need not outlive this call. */
    exhibit->dir = opc_strdup(plan->dir);
    exhibit->name = opc_strdup(plan->name);
    exhibit->caption = opc_strdup(plan->caption ? plan->caption : "");
    add_text(&exhibit->head, "name", plan->name);
    add_text(&exhibit->head, "title", plan->title);
    add_text(&exhibit->head, "tier", plan->tier);
    add_text(&exhibit->head, "caption", plan->caption);
    add_text(&exhibit->head, "version", OPC_VERSION);
    add_text(&exhibit->head, "command", plan->command);
    add_text(&exhibit->head, "config", plan->config);
    opc_text_addf(&exhibit->head, "  \"missing\": %d,\n", plan->missing);
    code = exhibit->dir && exhibit->name && exhibit->caption ? opc_text_check(&exhibit->head, err)
                                                             : exhibit_no_memory(err);
    if (!code)
        code = opc_table_create("claim,measured,verdict", &exhibit->claims, err);
    if (code)
        opc_exhibit_drop(exhibit);
    else
        *out = exhibit;
    return code;
}

/* Also accepts an exhibit of which only a part was allocated. */
void opc_exhibit_drop(struct opc_exhibit *exhibit)
{
    if (!exhibit)
        return;
    opc_text_free(&exhibit->head);
    opc_text_free(&exhibit->picture);
    opc_text_free(&exhibit->table);
    opc_text_free(&exhibit->claim);
    opc_text_free(&exhibit->note);
    opc_table_free(exhibit->claims);
    opc_free(exhibit->dir);
    opc_free(exhibit->name);
    opc_free(exhibit->caption);
    opc_free(exhibit);
}

/* ---- its parts ------------------------------------------------------------------------------- */

/* Makes the name NAME[-part]END in `file`, and the same with the directory in `path`. */
static int name_part(const struct opc_exhibit *exhibit, const char *part, const char *end,
                     char file[OPC_PATH], char path[OPC_PATH], struct opc_err *err)
{
    const int n =
        snprintf(file, OPC_PATH, "%s%s%s%s", exhibit->name, part ? "-" : "", part ? part : "", end);
    if (n >= OPC_PATH)
        return opc_fail(err, OPC_EUSER, "the name of the exhibit is too long");
    return opc_path_join(path, exhibit->dir, file, err);
}

/* Adds {"file": ..., "title": ...} to a list. */
static void add_file(struct opc_text *list, const char *file, const char *title)
{
    add_item(list);
    opc_text_add(list, "{\"file\": ");
    opc_json_add_quoted(list, file);
    opc_text_add(list, ", \"title\": ");
    opc_json_add_quoted(list, title ? title : "");
    opc_text_add(list, "}");
}

/* One figure in all three formats. */
static int draw_all(const struct opc_exhibit *exhibit, const char *part,
                    const struct opc_figure *figure, struct opc_err *err)
{
    static const char *const END[] = {".svg", ".pdf", ".png"};
    char file[OPC_PATH], path[OPC_PATH];
    int code = OPC_OK;
    /* A figure that fails in one format fails as a whole. */
    for (int i = 0; i < 3 && !code; i++) {
        code = name_part(exhibit, part, END[i], file, path, err);
        if (!code)
            code = opc_figure_draw(figure, path, err);
    }
    return code;
}

int opc_exhibit_figure(struct opc_exhibit *exhibit, const char *part, const char *title,
                       const struct opc_figure *figure, struct opc_err *err)
{
    /* The caption is printed below the figure's own note. */
    struct opc_text note = {0};
    struct opc_figure with = *figure;
    if (figure->note && *figure->note)
        opc_text_addf(&note, "%s\n", figure->note);
    opc_text_add(&note, exhibit->caption);
    with.note = opc_text_get(&note);
    int code = opc_text_check(&note, err);
    if (!code)
        code = draw_all(exhibit, part, &with, err);
    opc_text_free(&note);
    /* Without cairo everything but the pictures is made; one note says so. */
    if (code == OPC_EABSENT) {
        if (!exhibit->undrawn)
            opc_exhibit_note(exhibit, "Nothing was drawn: this build of opc lacks cairo.");
        exhibit->undrawn = true;
        return OPC_OK;
    }
    /* The list has the name without its ending, because there are three files. */
    char file[OPC_PATH], path[OPC_PATH];
    if (!code)
        code = name_part(exhibit, part, "", file, path, err);
    if (!code)
        add_file(&exhibit->picture, file, title);
    return code;
}

int opc_exhibit_table(struct opc_exhibit *exhibit, const char *part, const char *title,
                      const struct opc_table *table, struct opc_err *err)
{
    /* The table is written now; NAME.json lists it at the end. */
    char file[OPC_PATH], path[OPC_PATH];
    int code = name_part(exhibit, part, ".csv", file, path, err);
    if (!code)
        code = opc_table_write(table, path, err);
    if (!code)
        add_file(&exhibit->table, file, title);
    return code;
}

/* The formatted text, to be freed with opc_free; NULL if memory ran out. */
static char *print_text(const char *fmt, va_list args)
{
    /* The length is computed first, from a copy of the arguments. */
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    char *text = n < 0 ? NULL : opc_alloc((size_t)n + 1, 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, fmt, args);
    return text;
}

void opc_exhibit_claim(struct opc_exhibit *exhibit, enum opc_verdict verdict, const char *claim,
                       const char *measured_fmt, ...)
{
    va_list args;
    va_start(args, measured_fmt);
    char *sentence = print_text(measured_fmt, args);
    va_end(args);
    struct opc_text measured = {0};
    opc_text_add(&measured, exhibit->claims_begin);
    opc_text_add(&measured, sentence ? sentence : "");
    exhibit->claim.failed = exhibit->claim.failed || !sentence || measured.failed;
    opc_free(sentence);
    if (exhibit->claim.failed) {
        opc_text_free(&measured);
        return;
    }
    /* Once as JSON, once as a row of the table. */
    add_item(&exhibit->claim);
    opc_text_add(&exhibit->claim, "{\"claim\": ");
    opc_json_add_quoted(&exhibit->claim, claim);
    opc_text_add(&exhibit->claim, ", \"measured\": ");
    opc_json_add_quoted(&exhibit->claim, opc_text_get(&measured));
    opc_text_addf(&exhibit->claim, ", \"verdict\": \"%s\"}", VERDICT[verdict]);
    opc_table_word(exhibit->claims, claim);
    opc_table_word(exhibit->claims, opc_text_get(&measured));
    opc_table_word(exhibit->claims, VERDICT[verdict]);
    opc_text_free(&measured);
}

void opc_exhibit_claims_begin(struct opc_exhibit *exhibit, const char *words)
{
    snprintf(exhibit->claims_begin, sizeof exhibit->claims_begin, "%s", words);
}

void opc_exhibit_note(struct opc_exhibit *exhibit, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *note = print_text(fmt, args);
    va_end(args);
    /* A failure is reported by opc_exhibit_end, which checks the text. */
    if (note) {
        add_item(&exhibit->note);
        opc_json_add_quoted(&exhibit->note, note);
    } else
        exhibit->note.failed = true;
    opc_free(note);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Adds a whole list, brackets and all, to the JSON text. */
static void add_list(struct opc_text *out, const char *key, const struct opc_text *list, bool last)
{
    opc_text_addf(out, "  \"%s\": [%s%s]%s\n", key, opc_text_get(list), list->used ? "\n  " : "",
                  last ? "" : ",");
    out->failed |= list->failed;
}

/* Assembles and writes NAME.json. */
static int write_json(const struct opc_exhibit *exhibit, struct opc_err *err)
{
    char file[OPC_PATH], path[OPC_PATH];
    struct opc_text all = {0};
    opc_text_addf(&all, "{\n%s", opc_text_get(&exhibit->head));
    add_list(&all, "pictures", &exhibit->picture, false);
    add_list(&all, "tables", &exhibit->table, false);
    add_list(&all, "claims", &exhibit->claim, false);
    add_list(&all, "notes", &exhibit->note, true);
    opc_text_add(&all, "}\n");
    int code = opc_text_check(&all, err);
    if (!code)
        code = name_part(exhibit, NULL, ".json", file, path, err);
    if (!code)
        code = opc_file_write(path, opc_text_get(&all), all.used, err);
    opc_text_free(&all);
    return code;
}

int opc_exhibit_end(struct opc_exhibit *exhibit, struct opc_err *err)
{
    /* Claims as a table, then the .json file, which declares everything complete. */
    char file[OPC_PATH], path[OPC_PATH];
    int code = name_part(exhibit, "claims", ".csv", file, path, err);
    if (!code)
        code = opc_table_write(exhibit->claims, path, err);
    if (!code)
        code = write_json(exhibit, err);
    opc_exhibit_drop(exhibit);
    return code;
}
