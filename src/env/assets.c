/* SPDX-License-Identifier: MIT */
/* Model files, compiled in or from $OPC_MODELS. Called by the engines when an environment is
 * opened.
 *
 * Invariant: whatever goes wrong with a model from $OPC_MODELS, the message names that variable; a
 * user who has forgotten that it is set would otherwise look at the wrong file. */
#include "env/assets.h"

#include "base/file.h"
#include "opc/mem.h"

#include <stdlib.h>
#include <string.h>

enum { LARGEST_FILE = 1 << 24 };

/* The table is short and models are opened rarely: a linear search will do. */
const struct opc_asset *opc_asset_find(const char *name)
{
    for (const struct opc_asset *a = opc_assets; a->name; a++)
        if (strcmp(a->name, name) == 0)
            return a;
    return NULL;
}

static int read_model_file(const char *name, struct opc_model_text *m, struct opc_err *err)
{
    char path[OPC_PATH];
    int code = opc_path_join(path, m->folder, name, err);
    if (!code)
        code = opc_file_read(path, LARGEST_FILE, &m->own, &m->size, err);
    m->text = m->own;
    return code;
}

/* The folder $OPC_MODELS if the model is read from there, or NULL if it is compiled in. */
static const char *folder_of(const char *name)
{
    const char *folder = getenv("OPC_MODELS");
    return folder && *folder && strcmp(name, OPC_STAGE) != 0 ? folder : NULL;
}

int opc_model_open(const char *name, struct opc_model_text *out, struct opc_err *err)
{
    *out = (struct opc_model_text){.folder = folder_of(name)};
    /* The folder is asked first and alone: a file missing there is an error, not a reason to look
     * here. */
    if (out->folder)
        return read_model_file(name, out, err);
    const struct opc_asset *asset = opc_asset_find(name);
    if (!asset)
        return opc_fail(err, OPC_EBUG, "no model %s was compiled in", name);
    out->text = (const char *)asset->data;
    out->size = asset->size;
    return OPC_OK;
}

static int name_folder(const char *folder, struct opc_err *err)
{
    return opc_within(err, "OPC_MODELS=%s (unset it to use the models compiled in)", folder);
}

void opc_model_misfit(const char *name, struct opc_err *err)
{
    if (folder_of(name))
        name_folder(folder_of(name), err);
}

/* Frees what open has read; m may be one whose opening failed. */
void opc_model_close(struct opc_model_text *m, int code, struct opc_err *err)
{
    if (code && m->folder)
        name_folder(m->folder, err);
    opc_free(m->own);
    *m = (struct opc_model_text){0};
}
