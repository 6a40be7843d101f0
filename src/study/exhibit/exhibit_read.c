/* SPDX-License-Identifier: MIT */
/* Reads NAME.json back: opc report makes its page of it, and repro.c decides whether an exhibit
 * is up to date.
 *
 * Invariant: a struct that opc_exhibit_load returns has no NULL text, and its file names do not
 * leave the exhibit's directory. */
#include "base/file.h"
#include "opc/mem.h"
#include "run/json.h"
#include "study/exhibit/exhibit.h"

#include <string.h>

/* Errors are kept in the reader, so that the reading functions can be called in a row. */
struct reader {
    const char *path;
    struct opc_err *err;
    int code; /* of the first failure; nothing more is read after it */
};

/* Notes the first fault; list NULL: a member of the outermost object. */
static void fault(struct reader *r, const char *list, int i, const char *key, const char *what)
{
    if (r->code)
        return;
    if (list)
        r->code = opc_fail(r->err, OPC_EDAMAGED, "%s is no exhibit: %s[%d].%s is %s", r->path, list,
                           i, key, what);
    else
        r->code = opc_fail(r->err, OPC_EDAMAGED, "%s is no exhibit: its \"%s\" is %s", r->path, key,
                           what);
}

/* A copy of a text that must be there; NULL after a failure. */
static char *copy(struct reader *r, const struct opc_json_value *value, const char *list, int i,
                  const char *key)
{
    const char *text = opc_json_string(value);
    if (!text)
        fault(r, list, i, key, value ? "no text" : "missing");
    if (r->code)
        return NULL;
    char *mine = opc_strdup(text);
    if (!mine)
        r->code = opc_fail(r->err, OPC_ENOMEM, "not enough memory for %s", r->path);
    return mine;
}

static char *copy_key(struct reader *r, const struct opc_json_value *object, const char *list,
                      int i, const char *key)
{
    return copy(r, opc_json_find(object, key), list, i, key);
}

/* Allocates an array for the elements of a list; *n is their number. */
static void *take_list(struct reader *r, const struct opc_json_value *root, const char *key,
                       size_t each, int *n)
{
    const int length = opc_json_length(opc_json_find(root, key));
    if (length < 0)
        fault(r, NULL, 0, key, opc_json_find(root, key) ? "no list" : "missing");
    if (r->code)
        return NULL;
    void *list = opc_alloc((size_t)length, each);
    if (!list)
        r->code = opc_fail(r->err, OPC_ENOMEM, "not enough memory for %s", r->path);
    else
        *n = length;
    return list;
}

static struct opc_exhibit_item *read_items(struct reader *r, const struct opc_json_value *root,
                                           const char *key, int *n)
{
    struct opc_exhibit_item *item = take_list(r, root, key, sizeof *item, n);
    for (int i = 0; item && i < *n && !r->code; i++) {
        const struct opc_json_value *at = opc_json_at(opc_json_find(root, key), i);
        item[i].file = copy_key(r, at, key, i, "file");
        item[i].title = copy_key(r, at, key, i, "title");
        /* Reports link to the file, so the name must not lead out of the exhibit's directory. */
        if (item[i].file && (strchr(item[i].file, '/') || *item[i].file == '.'))
            fault(r, key, i, "file", "no plain file name");
    }
    return item;
}

static enum opc_verdict read_verdict(struct reader *r, const struct opc_json_value *claim, int i)
{
    const char *word = opc_json_string(opc_json_find(claim, "verdict"));
    if (word && strcmp(word, "supported") == 0)
        return OPC_SUPPORTED;
    if (word && strcmp(word, "not supported") == 0)
        return OPC_NOT_SUPPORTED;
    if (!word || strcmp(word, "undecided") != 0)
        fault(r, "claims", i, "verdict", "neither supported, not supported nor undecided");
    return OPC_UNDECIDED;
}

static void read_all(struct reader *r, const struct opc_json_value *root,
                     struct opc_exhibit_read *x)
{
    x->name = copy_key(r, root, NULL, 0, "name");
    x->title = copy_key(r, root, NULL, 0, "title");
    x->tier = copy_key(r, root, NULL, 0, "tier");
    x->caption = copy_key(r, root, NULL, 0, "caption");
    x->version = copy_key(r, root, NULL, 0, "version");
    x->command = copy_key(r, root, NULL, 0, "command");
    x->config = copy_key(r, root, NULL, 0, "config");
    /* Older programs did not write "missing": 0 then. */
    double missing = 0;
    if (opc_json_number(opc_json_find(root, "missing"), &missing) && missing > 0)
        x->missing = (int)missing;
    x->picture = read_items(r, root, "pictures", &x->pictures);
    x->table = read_items(r, root, "tables", &x->tables);
    x->claim = take_list(r, root, "claims", sizeof *x->claim, &x->claims);
    for (int i = 0; i < x->claims && !r->code; i++) {
        const struct opc_json_value *at = opc_json_at(opc_json_find(root, "claims"), i);
        x->claim[i].claim = copy_key(r, at, "claims", i, "claim");
        x->claim[i].measured = copy_key(r, at, "claims", i, "measured");
        x->claim[i].verdict = read_verdict(r, at, i);
    }
    x->note = take_list(r, root, "notes", sizeof *x->note, &x->notes);
    for (int i = 0; i < x->notes && !r->code; i++)
        x->note[i] = copy(r, opc_json_at(opc_json_find(root, "notes"), i), "notes", i, "text");
}

int opc_exhibit_load(const char *path, struct opc_exhibit_read **out, struct opc_err *err)
{
    char dir[OPC_PATH];
    struct opc_json_value *root;
    int code = opc_path_parent(dir, path, err);
    if (!code)
        code = opc_json_read(path, &root, err);
    if (code)
        return code;
    struct reader r = {.path = path, .err = err};
    struct opc_exhibit_read *x = opc_alloc(1, sizeof *x);
    if (x)
        x->dir = opc_strdup(dir);
    if (!x || !x->dir)
        r.code = opc_fail(err, OPC_ENOMEM, "not enough memory for %s", path);
    else
        read_all(&r, root, x);
    opc_json_free(root);
    if (r.code)
        opc_exhibit_unload(x);
    else
        *out = x;
    return r.code;
}

static void free_items(struct opc_exhibit_item *item, int n)
{
    for (int i = 0; i < n; i++) {
        opc_free(item[i].file);
        opc_free(item[i].title);
    }
    opc_free(item);
}

void opc_exhibit_unload(struct opc_exhibit_read *x)
{
    if (!x)
        return;
    free_items(x->picture, x->pictures);
    free_items(x->table, x->tables);
    for (int i = 0; i < x->claims; i++) {
        opc_free(x->claim[i].claim);
        opc_free(x->claim[i].measured);
    }
    opc_free(x->claim);
    for (int i = 0; i < x->notes; i++)
        opc_free(x->note[i]);
    opc_free(x->note);
    opc_free(x->dir);
    opc_free(x->name);
    opc_free(x->title);
    opc_free(x->tier);
    opc_free(x->caption);
    opc_free(x->version);
    opc_free(x->command);
    opc_free(x->config);
    opc_free(x);
}
