/* SPDX-License-Identifier: MIT */
/* Settings that follow from a file which other settings name: the checksum of train.prefill.
 * session.c and the sweep call it before anything looks at the identity of the settings
 * (config_hash.c).
 *
 * Invariant: settings that were settled once do not change when they are settled again, whatever
 * has become of the file; run/prefill.c then finds that it is another one. */
#include "run/config/config.h"

#include "base/file.h"
#include "base/format/crc.h"
#include "opc/mem.h"

#include <stdio.h>
#include <string.h>

int opc_values_settle(struct opc_values *v, struct opc_err *err)
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
