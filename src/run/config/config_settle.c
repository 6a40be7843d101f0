/* SPDX-License-Identifier: MIT */
/* Settings that follow from files which other settings name: the checksum of train.prefill, and the
 * directory that a plugin's relative path counts from. session.c and the sweep call it before
 * anything looks at the identity of the settings (config_hash.c).
 *
 * Invariant: settings that were settled once do not change when they are settled again, whatever
 * has become of the file; run/prefill.c then finds that it is another one. */
#include "run/config/config.h"

#include "base/file.h"
#include "base/format/crc.h"
#include "env/types.h"
#include "opc/mem.h"

#include <stdio.h>
#include <string.h>

/* Is the task a plugin, or a program, whose name counts from the working directory? */
static bool counts_from_here(const struct opc_values *v)
{
    char name[OPC_TEXT_SIZE];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(v->env.name, "?"), v->env.name);
    return *name != '/' && (opc_env_is_plugin(name) || opc_env_is_process(name));
}

const char *opc_values_task(const struct opc_values *v, char out[OPC_TASK_NAME])
{
    char here[OPC_PATH];
    const char *from = v->env.directory, *name = v->env.name;
    snprintf(out, OPC_TASK_NAME, "%s", name);
    /* A name as it was typed reads better, and a program keeps it: its words are not paths. */
    if (!*from || !counts_from_here(v) || opc_env_is_process(name) ||
        (!opc_path_absolute(here, ".", NULL) && strcmp(here, from) == 0))
        return out;
    const char *file = strncmp(name, "./", 2) ? name : name + 2;
    const int n = (int)strcspn(file, "?");
    snprintf(out, OPC_TASK_NAME, "%s/%.*s", from, n, file);
    const bool is_there = opc_file_exists(out);
    snprintf(here, sizeof here, "%.*s", n, file);
    /* Where runs and plugin were moved together, it is found from the working directory. */
    if (!is_there && opc_file_exists(here))
        snprintf(out, OPC_TASK_NAME, "%s", name);
    else
        snprintf(out, OPC_TASK_NAME, "%s/%s", from, file);
    return out;
}

static int settle_prefill(struct opc_values *v, struct opc_err *err)
{
    struct opc_train_config *t = &v->train;
    const size_t max = (size_t)1 << 36; /* as checkpoints */
    char path[OPC_PATH], *bytes;
    struct opc_err why = {0};
    size_t n;
    if (!*t->prefill || *t->prefill_checksum)
        return OPC_OK;
    /* From the root, so that the run can be resumed from any directory. */
    if (opc_path_absolute(path, t->prefill, &why) || opc_file_read(path, max, &bytes, &n, &why))
        return opc_fail_settings(err, "train.prefill", "train.prefill: %s", why.text);
    if (strlen(path) >= sizeof t->prefill) {
        opc_free(bytes);
        return opc_fail_settings(err, "train.prefill",
                                 "train.prefill = %s: its path from the root has %zu characters; "
                                 "at most %zu will do",
                                 t->prefill, strlen(path), sizeof t->prefill - 1);
    }
    memset(t->prefill, 0, sizeof t->prefill); /* the identity is of all its bytes */
    snprintf(t->prefill, sizeof t->prefill, "%.*s", (int)sizeof t->prefill - 1, path);
    snprintf(t->prefill_checksum, sizeof t->prefill_checksum, "%08x",
             (unsigned)opc_crc32c(0, bytes, n));
    opc_free(bytes);
    return OPC_OK;
}

int opc_values_settle(struct opc_values *v, struct opc_err *err)
{
    char here[OPC_PATH];
    /* A directory whose name is unknown or too long stays empty: the path counts from where opc is
     * started, then. */
    if (!*v->env.directory && counts_from_here(v) && !opc_path_absolute(here, ".", NULL) &&
        strlen(here) < sizeof v->env.directory)
        memcpy(v->env.directory, here, strlen(here) + 1);
    return settle_prefill(v, err);
}
