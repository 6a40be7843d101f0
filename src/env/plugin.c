/* SPDX-License-Identifier: MIT */
#include "base/crc.h"
#include "base/file.h"
#include "env/types.h"
#include "opc/mem.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { LARGEST_FILE = 1 << 30 };

bool opc_env_is_plugin(const char *name)
{
    const size_t n = strlen(name);
    return n > 3 && strcmp(name + n - 3, ".so") == 0;
}

int opc_env_check_plugin(const struct opc_env_plugin *p, struct opc_err *err)
{
    const struct opc_env_plugin ours = OPC_ENV_PLUGIN_OF(NULL);
    if (p->abi != ours.abi || memcmp(p->bytes, ours.bytes, sizeof ours.bytes) != 0)
        return opc_fail(err, OPC_EUSER,
                        "it was built with the headers of another version of opc; compile it again "
                        "with these");
    const struct opc_env_type *t = p->type;
    const struct {
        const char *what;
        bool there;
    } needed[] = {{"name", t && t->name},   {"page", t && t->page}, {"open", t && t->open},
                  {"reset", t && t->reset}, {"step", t && t->step}, {"close", t && t->close}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!needed[i].there)
            return opc_fail(err, OPC_EUSER, "its struct opc_env_type has no %s", needed[i].what);
    const struct opc_env_page *g = t->page;
    if (!g->summary || !g->observation || !g->action || !g->reward || !g->termination || !g->reset)
        return opc_fail(err, OPC_EUSER, "its struct opc_env_page is not filled in");
    int args = 0;
    while (t->args && args <= OPC_ENV_ARGS && t->args[args].name)
        args++;
    if (args > OPC_ENV_ARGS)
        return opc_fail(err, OPC_EUSER, "it has more than %d arguments, or no {0} behind the last",
                        OPC_ENV_ARGS);
    if (t->machine && !t->rest)
        return opc_fail(err, OPC_EUSER, "it is a machine and has no rest, which stops its motors");
    return OPC_OK;
}

/* Never unloaded: environments point into it, and loading it again costs nothing. */
static int load(const char *path, const struct opc_env_type **out, struct opc_err *err)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return opc_fail(err, OPC_EUSER, "%s", dlerror());
    const struct opc_env_plugin *p = dlsym(library, "opc_env_plugin");
    if (!p)
        return opc_fail(err, OPC_EUSER,
                        "it names no task; add OPC_ENV_PLUGIN(my_type) of opc/env.h to its source");
    const int code = opc_env_check_plugin(p, err);
    *out = p->type;
    return code;
}

int opc_env_load_plugin(const char *name, const struct opc_env_type **out, uint32_t *hash,
                        struct opc_err *err)
{
    char path[OPC_PATH], *bytes;
    size_t n;
    /* Without a slash it would be looked for among the system's libraries. */
    snprintf(path, sizeof path, "%s%s", strchr(name, '/') ? "" : "./", name);
    if (!opc_file_exists(path))
        return opc_fail(err, OPC_EUSER,
                        "there is no %s; the path of a plugin counts from where opc is started",
                        path);
    int code = opc_file_read(path, LARGEST_FILE, &bytes, &n, err);
    if (code)
        return code;
    *hash = opc_crc32c(0, bytes, n);
    opc_free(bytes);
    code = load(path, out, err);
    return code ? opc_within(err, "cannot use %s", path) : OPC_OK;
}
