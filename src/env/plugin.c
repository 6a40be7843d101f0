/* SPDX-License-Identifier: MIT */
/* Environments from shared libraries: loads FILE.so and checks what it exports. Called by env.c for
 * names that end in .so.
 *
 * Invariant: nothing in a plugin is called or read before its version and the sizes of our structs
 * have been compared with ours; a plugin built with other headers would otherwise crash us. */
#include "base/file.h"
#include "base/format/crc.h"
#include "env/types.h"
#include "opc/mem.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { LARGEST_FILE = 1 << 30 };

bool opc_env_is_plugin(const char *name)
{
    const size_t n = strlen(name);
    return n > 3 && strcmp(name + n - 3, ".so") == 0 && !opc_env_is_process(name);
}

int opc_env_check_plugin(const struct opc_env_plugin *plugin, struct opc_err *err)
{
    const struct opc_env_plugin ours = OPC_ENV_PLUGIN_OF(NULL);
    if (plugin->abi != ours.abi || memcmp(plugin->bytes, ours.bytes, sizeof ours.bytes) != 0)
        return opc_fail(err, OPC_EUSER,
                        "it was built with the headers of another version of opc; compile it again "
                        "with these");
    /* Functions and texts that have no default. */
    const struct opc_env_type *type = plugin->type;
    const struct {
        const char *what;
        bool there;
    } needed[] = {{"name", type && type->name}, {"page", type && type->page},
                  {"open", type && type->open}, {"reset", type && type->reset},
                  {"step", type && type->step}, {"close", type && type->close}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!needed[i].there)
            return opc_fail(err, OPC_EUSER, "its struct opc_env_type has no %s", needed[i].what);
    const struct opc_env_page *page = type->page;
    if (!page->summary || !page->observation || !page->action || !page->reward ||
        !page->termination || !page->reset)
        return opc_fail(err, OPC_EUSER, "its struct opc_env_page is not filled in");
    /* The list must end within OPC_ENV_ARGS entries: we read it up to its end. */
    int args = 0;
    while (type->args && args <= OPC_ENV_ARGS && type->args[args].name)
        args++;
    if (args > OPC_ENV_ARGS)
        return opc_fail(err, OPC_EUSER, "it has more than %d arguments, or no {0} after the last",
                        OPC_ENV_ARGS);
    if (type->machine && !type->rest)
        return opc_fail(err, OPC_EUSER, "it is a machine and has no rest, which stops its motors");
    return OPC_OK;
}

/* The library is never unloaded, because environments point into it; dlopen returns the same handle
 * when it is opened again. */
static int load_library(const char *path, const struct opc_env_type **out, struct opc_err *err)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return opc_fail(err, OPC_EUSER, "%s", dlerror());
    const struct opc_env_plugin *plugin = dlsym(library, "opc_env_plugin");
    if (!plugin)
        return opc_fail(err, OPC_EUSER,
                        "it names no task; add OPC_ENV_PLUGIN(my_type) of opc/env.h to its source");
    const int code = opc_env_check_plugin(plugin, err);
    *out = plugin->type;
    return code;
}

int opc_env_load_plugin(const char *name, const struct opc_env_type **out, uint32_t *hash,
                        struct opc_err *err)
{
    char path[OPC_PATH], *bytes;
    size_t n;
    /* dlopen would search a name without a slash in the system's libraries. */
    snprintf(path, sizeof path, "%s%s", strchr(name, '/') ? "" : "./", name);
    if (!opc_file_exists(path))
        return opc_fail(err, OPC_EUSER, "there is no %s; %s", path,
                        *path == '/'
                            ? "if the plugin of a run was moved, set env.directory in the run's "
                              "config.yaml to where it is"
                            : "the path of a plugin counts from where opc is started");
    int code = opc_file_read(path, LARGEST_FILE, &bytes, &n, err);
    if (code)
        return code;
    /* A run records the hash, so that it is not resumed with another build of the task. */
    *hash = opc_crc32c(0, bytes, n);
    opc_free(bytes);
    code = load_library(path, out, err);
    return code ? opc_within(err, "cannot use %s", path) : OPC_OK;
}
