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
#include "run/json.h"

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
    bool undrawn; /* this build cannot draw, and a note already says so */
};

static int out_of_memory(struct opc_err *err)
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
    struct opc_exhibit *x = opc_alloc(1, sizeof *x);
    if (!x)
        return out_of_memory(err);
    /* The head is written at once: the plan's texts need not outlive this call. */
    x->dir = opc_strdup(plan->dir);
    x->name = opc_strdup(plan->name);
    x->caption = opc_strdup(plan->caption ? plan->caption : "");
    add_text(&x->head, "name", plan->name);
    add_text(&x->head, "title", plan->title);
    add_text(&x->head, "tier", plan->tier);
    add_text(&x->head, "caption", plan->caption);
    add_text(&x->head, "version", OPC_VERSION);
    add_text(&x->head, "command", plan->command);
    add_text(&x->head, "config", plan->config);
    opc_text_addf(&x->head, "  \"missing\": %d,\n", plan->missing);
    code = x->dir && x->name && x->caption ? opc_text_check(&x->head, err) : out_of_memory(err);
    if (!code)
        code = opc_table_create("claim,measured,verdict", &x->claims, err);
    if (code)
        opc_exhibit_drop(x);
    else
        *out = x;
    return code;
}

void opc_exhibit_drop(struct opc_exhibit *x)
{
    if (!x)
        return;
    opc_text_free(&x->head);
    opc_text_free(&x->picture);
    opc_text_free(&x->table);
    opc_text_free(&x->claim);
    opc_text_free(&x->note);
    opc_table_free(x->claims);
    opc_free(x->dir);
    opc_free(x->name);
    opc_free(x->caption);
    opc_free(x);
}

/* ---- its parts ------------------------------------------------------------------------------- */

/* Makes the name NAME[-part]END in `file`, and the same with the directory in `path`. */
static int name_part(const struct opc_exhibit *x, const char *part, const char *end,
                     char file[OPC_PATH], char path[OPC_PATH], struct opc_err *err)
{
    const int n =
        snprintf(file, OPC_PATH, "%s%s%s%s", x->name, part ? "-" : "", part ? part : "", end);
    if (n >= OPC_PATH)
        return opc_fail(err, OPC_EUSER, "the name of the exhibit is too long");
    return opc_path_join(path, x->dir, file, err);
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
static int draw_all(const struct opc_exhibit *x, const char *part, const struct opc_figure *figure,
                    struct opc_err *err)
{
    static const char *const END[] = {".svg", ".pdf", ".png"};
    char file[OPC_PATH], path[OPC_PATH];
    int code = OPC_OK;
    for (int i = 0; i < 3 && !code; i++) {
        code = name_part(x, part, END[i], file, path, err);
        if (!code)
            code = opc_figure_draw(figure, path, err);
    }
    return code;
}

int opc_exhibit_figure(struct opc_exhibit *x, const char *part, const char *title,
                       const struct opc_figure *figure, struct opc_err *err)
{
    /* The caption is printed below the figure's own note. */
    struct opc_text note = {0};
    struct opc_figure with = *figure;
    if (figure->note && *figure->note)
        opc_text_addf(&note, "%s\n", figure->note);
    opc_text_add(&note, x->caption);
    with.note = opc_text_get(&note);
    int code = opc_text_check(&note, err);
    if (!code)
        code = draw_all(x, part, &with, err);
    opc_text_free(&note);
    /* Without cairo everything but the pictures is made; one note says so. */
    if (code == OPC_EABSENT) {
        if (!x->undrawn)
            opc_exhibit_note(x, "Nothing was drawn: this build of opc lacks cairo.");
        x->undrawn = true;
        return OPC_OK;
    }
    char file[OPC_PATH], path[OPC_PATH];
    if (!code)
        code = name_part(x, part, "", file, path, err);
    if (!code)
        add_file(&x->picture, file, title);
    return code;
}

int opc_exhibit_table(struct opc_exhibit *x, const char *part, const char *title,
                      const struct opc_table *table, struct opc_err *err)
{
    char file[OPC_PATH], path[OPC_PATH];
    int code = name_part(x, part, ".csv", file, path, err);
    if (!code)
        code = opc_table_write(table, path, err);
    if (!code)
        add_file(&x->table, file, title);
    return code;
}

/* The formatted text, to be freed with opc_free; NULL if memory ran out. */
static char *print(const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    char *text = n < 0 ? NULL : opc_alloc((size_t)n + 1, 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, fmt, args);
    return text;
}

void opc_exhibit_claim(struct opc_exhibit *x, enum opc_verdict verdict, const char *claim,
                       const char *measured_fmt, ...)
{
    va_list args;
    va_start(args, measured_fmt);
    char *measured = print(measured_fmt, args);
    va_end(args);
    if (!measured) {
        x->claim.failed = true;
        return;
    }
    /* Once as JSON, once as a row of the table. */
    add_item(&x->claim);
    opc_text_add(&x->claim, "{\"claim\": ");
    opc_json_add_quoted(&x->claim, claim);
    opc_text_add(&x->claim, ", \"measured\": ");
    opc_json_add_quoted(&x->claim, measured);
    opc_text_addf(&x->claim, ", \"verdict\": \"%s\"}", VERDICT[verdict]);
    opc_table_word(x->claims, claim);
    opc_table_word(x->claims, measured);
    opc_table_word(x->claims, VERDICT[verdict]);
    opc_free(measured);
}

void opc_exhibit_note(struct opc_exhibit *x, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *note = print(fmt, args);
    va_end(args);
    if (note) {
        add_item(&x->note);
        opc_json_add_quoted(&x->note, note);
    } else
        x->note.failed = true;
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
static int write_json(const struct opc_exhibit *x, struct opc_err *err)
{
    char file[OPC_PATH], path[OPC_PATH];
    struct opc_text all = {0};
    opc_text_addf(&all, "{\n%s", opc_text_get(&x->head));
    add_list(&all, "pictures", &x->picture, false);
    add_list(&all, "tables", &x->table, false);
    add_list(&all, "claims", &x->claim, false);
    add_list(&all, "notes", &x->note, true);
    opc_text_add(&all, "}\n");
    int code = opc_text_check(&all, err);
    if (!code)
        code = name_part(x, NULL, ".json", file, path, err);
    if (!code)
        code = opc_file_write(path, opc_text_get(&all), all.used, err);
    opc_text_free(&all);
    return code;
}

int opc_exhibit_end(struct opc_exhibit *x, struct opc_err *err)
{
    char file[OPC_PATH], path[OPC_PATH];
    int code = name_part(x, "claims", ".csv", file, path, err);
    if (!code)
        code = opc_table_write(x->claims, path, err);
    if (!code)
        code = write_json(x, err);
    opc_exhibit_drop(x);
    return code;
}
