/* SPDX-License-Identifier: MIT */
/* Reads NAME.json back: opc report makes its page of it, and repro.c decides whether an exhibit
 * is up to date.
 *
 * Invariant: a struct that opc_exhibit_load returns has no NULL text, and its file names do not
 * leave the exhibit's directory. */
#include "base/file.h"
#include "opc/mem.h"
#include "run/files/json.h"
#include "study/exhibit/exhibit.h"

#include <string.h>

/* Errors are kept in the reader, so that the reading functions can be called in a row. */
struct reader {
    const char *path;
    struct opc_err *err;
    int code; /* of the first failure; nothing more is read after it */
};

/* Notes the first fault; list NULL: a member of the outermost object. */
static void note_fault(struct reader *reader, const char *list, int i, const char *key,
                       const char *what)
{
    if (reader->code)
        return;
    if (list)
        reader->code = opc_fail(reader->err, OPC_EDAMAGED, "%s is no exhibit: %s[%d].%s is %s",
                                reader->path, list, i, key, what);
    else
        reader->code = opc_fail(reader->err, OPC_EDAMAGED, "%s is no exhibit: its \"%s\" is %s",
                                reader->path, key, what);
}

/* A copy of a text that must be there; NULL after a failure. */
static char *copy_text(struct reader *reader, const struct opc_json_value *value, const char *list,
                       int i, const char *key)
{
    const char *text = opc_json_string(value);
    if (!text)
        note_fault(reader, list, i, key, value ? "no text" : "missing");
    if (reader->code)
        return NULL;
    char *mine = opc_strdup(text);
    if (!mine)
        reader->code = opc_fail(reader->err, OPC_ENOMEM, "not enough memory for %s", reader->path);
    return mine;
}

/* A copy of a member of an object. */
static char *copy_key(struct reader *reader, const struct opc_json_value *object, const char *list,
                      int i, const char *key)
{
    return copy_text(reader, opc_json_find(object, key), list, i, key);
}

/* Allocates an array for the elements of a list; *n is their number. */
static void *take_list(struct reader *reader, const struct opc_json_value *root, const char *key,
                       size_t each, int *n)
{
    const int length = opc_json_length(opc_json_find(root, key));
    if (length < 0)
        note_fault(reader, NULL, 0, key, opc_json_find(root, key) ? "no list" : "missing");
    if (reader->code)
        return NULL;
    void *list = opc_alloc((size_t)length, each);
    if (!list)
        reader->code = opc_fail(reader->err, OPC_ENOMEM, "not enough memory for %s", reader->path);
    else
        *n = length;
    return list;
}

/* The pictures or tables of an exhibit. */
static struct opc_exhibit_item *read_items(struct reader *reader, const struct opc_json_value *root,
                                           const char *key, int *n)
{
    struct opc_exhibit_item *item = take_list(reader, root, key, sizeof *item, n);
    for (int i = 0; item && i < *n && !reader->code; i++) {
        const struct opc_json_value *at = opc_json_at(opc_json_find(root, key), i);
        item[i].file = copy_key(reader, at, key, i, "file");
        item[i].title = copy_key(reader, at, key, i, "title");
        /* Reports link to the file, so the name must not lead out of the exhibit's directory. */
        if (item[i].file && (strchr(item[i].file, '/') || *item[i].file == '.'))
            note_fault(reader, key, i, "file", "no plain file name");
    }
    return item;
}

/* Reads one of the three words that exhibit.c writes. */
static enum opc_verdict read_verdict(struct reader *reader, const struct opc_json_value *claim,
                                     int i)
{
    const char *word = opc_json_string(opc_json_find(claim, "verdict"));
    if (word && strcmp(word, "supported") == 0)
        return OPC_VERDICT_SUPPORTED;
    if (word && strcmp(word, "not supported") == 0)
        return OPC_VERDICT_NOT_SUPPORTED;
    if (!word || strcmp(word, "undecided") != 0)
        note_fault(reader, "claims", i, "verdict",
                   "neither supported, not supported nor undecided");
    return OPC_VERDICT_UNDECIDED;
}

/* Reads everything; after a failure the rest stays NULL or 0. */
static void read_all(struct reader *reader, const struct opc_json_value *root,
                     struct opc_exhibit_read *exhibit)
{
    exhibit->name = copy_key(reader, root, NULL, 0, "name");
    exhibit->title = copy_key(reader, root, NULL, 0, "title");
    exhibit->tier = copy_key(reader, root, NULL, 0, "tier");
    exhibit->caption = copy_key(reader, root, NULL, 0, "caption");
    exhibit->version = copy_key(reader, root, NULL, 0, "version");
    exhibit->command = copy_key(reader, root, NULL, 0, "command");
    exhibit->config = copy_key(reader, root, NULL, 0, "config");
    /* Older programs did not write "missing": 0 then. */
    double missing = 0;
    if (opc_json_number(opc_json_find(root, "missing"), &missing) && missing > 0)
        exhibit->missing = (int)missing;
    /* Lists: pictures, tables, claims, notes. */
    exhibit->picture = read_items(reader, root, "pictures", &exhibit->pictures);
    exhibit->table = read_items(reader, root, "tables", &exhibit->tables);
    exhibit->claim = take_list(reader, root, "claims", sizeof *exhibit->claim, &exhibit->claims);
    for (int i = 0; i < exhibit->claims && !reader->code; i++) {
        const struct opc_json_value *at = opc_json_at(opc_json_find(root, "claims"), i);
        exhibit->claim[i].claim = copy_key(reader, at, "claims", i, "claim");
        exhibit->claim[i].measured = copy_key(reader, at, "claims", i, "measured");
        exhibit->claim[i].verdict = read_verdict(reader, at, i);
    }
    exhibit->note = take_list(reader, root, "notes", sizeof *exhibit->note, &exhibit->notes);
    for (int i = 0; i < exhibit->notes && !reader->code; i++)
        exhibit->note[i] =
            copy_text(reader, opc_json_at(opc_json_find(root, "notes"), i), "notes", i, "text");
}

int opc_exhibit_load(const char *path, struct opc_exhibit_read **out, struct opc_err *err)
{
    char dir[OPC_PATH];
    /* dir is where the file is, not what it says. */
    struct opc_json_value *root;
    int code = opc_path_parent(dir, path, err);
    if (!code)
        code = opc_json_read(path, &root, err);
    if (code)
        return code;
    struct reader reader = {.path = path, .err = err};
    struct opc_exhibit_read *exhibit = opc_alloc(1, sizeof *exhibit);
    if (exhibit)
        exhibit->dir = opc_strdup(dir);
    if (!exhibit || !exhibit->dir)
        reader.code = opc_fail(err, OPC_ENOMEM, "not enough memory for %s", path);
    else
        read_all(&reader, root, exhibit);
    opc_json_free(root);
    if (reader.code)
        opc_exhibit_unload(exhibit);
    else
        *out = exhibit;
    return reader.code;
}

/* Accepts items of which only some were read. */
static void free_items(struct opc_exhibit_item *item, int n)
{
    for (int i = 0; i < n; i++) {
        opc_free(item[i].file);
        opc_free(item[i].title);
    }
    opc_free(item);
}

/* Accepts an exhibit that was read only in part. */
void opc_exhibit_unload(struct opc_exhibit_read *exhibit)
{
    if (!exhibit)
        return;
    free_items(exhibit->picture, exhibit->pictures);
    free_items(exhibit->table, exhibit->tables);
    for (int i = 0; i < exhibit->claims; i++) {
        opc_free(exhibit->claim[i].claim);
        opc_free(exhibit->claim[i].measured);
    }
    opc_free(exhibit->claim);
    for (int i = 0; i < exhibit->notes; i++)
        opc_free(exhibit->note[i]);
    opc_free(exhibit->note);
    opc_free(exhibit->dir);
    opc_free(exhibit->name);
    opc_free(exhibit->title);
    opc_free(exhibit->tier);
    opc_free(exhibit->caption);
    opc_free(exhibit->version);
    opc_free(exhibit->command);
    opc_free(exhibit->config);
    opc_free(exhibit);
}
