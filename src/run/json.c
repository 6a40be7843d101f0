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
        return opc_fail(err, OPC_ENOMEM, "no room to write %s", path);
    struct opc_text all = {0};
    opc_text_addf(&all, "%s\n", text);
    free(text);
    int code = opc_text_check(&all, err);
    if (!code)
        code = opc_file_write(path, opc_text_get(&all), all.used, err);
    opc_text_free(&all);
    return code;
}

const char *opc_json_version(void)
{
    return jansson_version_str();
}
