/* SPDX-License-Identifier: MIT */
/* JSON by jansson, which no other file includes: runlog.c, meta.c and session.c write objects,
 * rundir.c and exhibits read them.
 *
 * Invariant: the add functions never fail. Lack of memory is remembered in the object and reported
 * by opc_json_write, so that a writer is a list of lines without checks. */
#include "run/files/json.h"

#include "base/file.h"
#include "opc/mem.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

struct opc_json {
    json_t *members;
    bool failed; /* memory ran out somewhere */
};

struct opc_json *opc_json_begin(void)
{
    struct opc_json *object = opc_alloc(1, sizeof *object);
    if (object) {
        object->members = json_object();
        object->failed = !object->members;
    }
    return object;
}

static void free_object(struct opc_json *object)
{
    if (!object)
        return;
    json_decref(object->members);
    opc_free(object);
}

/* Takes `value`, which is NULL when there was no memory for it. */
/* A NULL object is what lack of memory leaves; the value is freed in any case. */
static void add_member(struct opc_json *object, const char *key, json_t *value)
{
    if (!object)
        json_decref(value);
    else if (json_object_set_new(object->members, key, value))
        object->failed = true;
}

void opc_json_text(struct opc_json *object, const char *key, const char *value)
{
    json_t *text = value ? json_string(value) : NULL;
    /* Text that is not UTF-8 cannot be written in JSON, and becomes null. */
    add_member(object, key, text ? text : json_null());
}

void opc_json_whole(struct opc_json *object, const char *key, int64_t value)
{
    add_member(object, key, json_integer(value));
}

void opc_json_real(struct opc_json *object, const char *key, double value)
{
    add_member(object, key, isfinite(value) ? json_real(value) : json_null());
}

void opc_json_bool(struct opc_json *object, const char *key, bool value)
{
    add_member(object, key, json_boolean(value));
}

int opc_json_write(struct opc_json *object, const char *path, struct opc_err *err)
{
    /* 15 significant digits: 0.1 stays 0.1; with 17 it would be 0.10000000000000001. */
    char *text = object && !object->failed
                     ? json_dumps(object->members, JSON_INDENT(2) | JSON_REAL_PRECISION(15))
                     : NULL;
    free_object(object);
    if (!text)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to write %s", path);
    /* jansson's text is from malloc and ends without a newline. */
    struct opc_text all = {0};
    opc_text_addf(&all, "%s\n", text);
    free(text);
    int code = opc_text_check(&all, err);
    if (!code)
        code = opc_file_write(path, opc_text_get(&all), all.used, err);
    opc_text_free(&all);
    return code;
}

void opc_json_add_quoted(struct opc_text *out, const char *text)
{
    json_t *value = json_string(text);
    /* Not UTF-8: keep the ASCII of it. */
    if (!value) {
        char *plain = opc_strdup(text);
        for (char *at = plain; at && *at; at++)
            if ((unsigned char)*at >= 0x80)
                *at = '?';
        value = plain ? json_string(plain) : NULL;
        opc_free(plain);
    }
    char *quoted = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    if (quoted)
        opc_text_add(out, quoted);
    else
        out->failed = true;
    free(quoted);
    json_decref(value);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Far above any file of ours; a damaged or foreign file must not fill the memory. */
enum { MAX_BYTES = 64000000 };

/* A value is jansson's own under a name of ours. */
static const json_t *theirs(const struct opc_json_value *value)
{
    return (const json_t *)(const void *)value;
}

static struct opc_json_value *ours(json_t *value)
{
    return (struct opc_json_value *)(void *)value;
}

int opc_json_read(const char *path, struct opc_json_value **out, struct opc_err *err)
{
    char *text;
    size_t n;
    json_error_t why;
    int code = opc_file_read(path, MAX_BYTES, &text, &n, err);
    if (code)
        return code;
    /* A key that is there twice is damage: which of the two would count? */
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
    opc_free(text);
    if (!root)
        return opc_fail(err, OPC_EDAMAGED, "%s:%d:%d: %s", path, why.line, why.column, why.text);
    *out = ours(root);
    return OPC_OK;
}

void opc_json_free(struct opc_json_value *value)
{
    json_decref((json_t *)(void *)value);
}

const struct opc_json_value *opc_json_find(const struct opc_json_value *object, const char *key)
{
    return ours(json_object_get(theirs(object), key));
}

const struct opc_json_value *opc_json_at(const struct opc_json_value *list, int i)
{
    return i < 0 ? NULL : ours(json_array_get(theirs(list), (size_t)i));
}

int opc_json_length(const struct opc_json_value *list)
{
    return json_is_array(theirs(list)) ? (int)json_array_size(theirs(list)) : -1;
}

const char *opc_json_string(const struct opc_json_value *value)
{
    return json_string_value(theirs(value));
}

bool opc_json_number(const struct opc_json_value *value, double *out)
{
    if (!json_is_number(theirs(value)))
        return false;
    *out = json_number_value(theirs(value));
    return true;
}

const char *opc_json_version(void)
{
    return jansson_version_str();
}
