/* SPDX-License-Identifier: MIT */
#include "run/json.h"

#include "base/file.h"
#include "opc/mem.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

struct opc_json {
    json_t *object;
    bool failed;
};

struct opc_json *opc_json_begin(void)
{
    struct opc_json *j = opc_alloc(1, sizeof *j);
    if (j) {
        j->object = json_object();
        j->failed = !j->object;
    }
    return j;
}

static void release(struct opc_json *j)
{
    if (!j)
        return;
    json_decref(j->object);
    opc_free(j);
}

/* Takes `value`, which is NULL when there was no memory for it. */
static void put(struct opc_json *j, const char *key, json_t *value)
{
    if (!j)
        json_decref(value);
    else if (json_object_set_new(j->object, key, value))
        j->failed = true;
}

void opc_json_text(struct opc_json *j, const char *key, const char *value)
{
    json_t *text = value ? json_string(value) : NULL;
    put(j, key, text ? text : json_null()); /* what is not UTF-8 cannot be said in JSON */
}

void opc_json_whole(struct opc_json *j, const char *key, int64_t value)
{
    put(j, key, json_integer(value));
}

void opc_json_real(struct opc_json *j, const char *key, double value)
{
    put(j, key, isfinite(value) ? json_real(value) : json_null());
}

void opc_json_bool(struct opc_json *j, const char *key, bool value)
{
    put(j, key, json_boolean(value));
}

int opc_json_write(struct opc_json *j, const char *path, struct opc_err *err)
{
    char *text =
        j && !j->failed ? json_dumps(j->object, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : NULL;
    release(j);
    if (!text)
        return opc_fail(err, OPC_ENOMEM, "not enough memory to write %s", path);
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
