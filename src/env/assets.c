/* SPDX-License-Identifier: MIT */
#include "env/assets.h"

#include "base/file.h"
#include "opc/mem.h"

#include <stdlib.h>
#include <string.h>

enum { LARGEST_FILE = 1 << 24 };

const struct opc_asset *opc_asset_find(const char *name)
{
    for (const struct opc_asset *a = opc_assets; a->name; a++)
        if (strcmp(a->name, name) == 0)
            return a;
    return NULL;
}

static int read_file(const char *name, struct opc_model_text *m, struct opc_err *err)
{
    char path[OPC_PATH];
    int code = opc_path_join(path, m->folder, name, err);
    if (!code)
        code = opc_file_read(path, LARGEST_FILE, &m->own, &m->size, err);
    m->text = m->own;
    return code;
}

int opc_model_open(const char *name, struct opc_model_text *out, struct opc_err *err)
{
    const char *folder = getenv("OPC_MODELS");
    const bool ours = !folder || !*folder || strcmp(name, OPC_STAGE) == 0;
    *out = (struct opc_model_text){.folder = ours ? NULL : folder};
    if (out->folder)
        return read_file(name, out, err);
    const struct opc_asset *asset = opc_asset_find(name);
    if (!asset)
        return opc_fail(err, OPC_EBUG, "no model %s was compiled in", name);
    out->text = (const char *)asset->data;
    out->size = asset->size;
    return OPC_OK;
}

void opc_model_close(struct opc_model_text *m, int code, struct opc_err *err)
{
    if (code && m->folder)
        opc_within(err, "OPC_MODELS=%s (unset it to use the models compiled in)", m->folder);
    opc_free(m->own);
    *m = (struct opc_model_text){0};
}
