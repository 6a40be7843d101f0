/* SPDX-License-Identifier: MIT */
/* Logs from hostile hands, as .csv and as .npz: each is refused in words, or becomes whole episodes
 * of finite numbers with actions in [-1, 1]. */
#include "opc/mem.h"
#include "study/dataset/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void look_at(const struct opc_episodes *past)
{
    for (int b = 0; b < opc_episodes_count(past); b++)
        for (int t = 0; t < opc_episodes_length(past, b); t++) {
            const struct opc_step step = opc_episodes_at(past, b, t);
            for (int k = 0; k < opc_episodes_obs(past); k++)
                if (!isfinite(step.state[k]) || !isfinite(step.next[k]))
                    abort();
            for (int k = 0; k < opc_episodes_act(past); k++)
                if (!(fabsf(step.action[k]) <= 1))
                    abort();
            if (step.terminal && t + 1 < opc_episodes_length(past, b))
                abort();
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const double LOW[1] = {-2}, HIGH[1] = {2};
    static char name[] = "log", spec[] = "task";
    static const char *const file[1] = {name};
    struct opc_env env = {.obs = 2, .act = 1, .low = LOW, .high = HIGH, .spec = spec, .dt = 0.5};
    char *text = malloc(size ? size : 1); /* its own block, for the sanitizer */
    if (!text)
        return 0;
    memcpy(text, data, size);
    for (int npz = 0; npz < 2; npz++) {
        struct opc_log_table log = {.env = &env, .obs = 2, .act = 1, .file = file};
        struct opc_episodes *past = NULL;
        struct opc_err err = {0};
        log.columns = OPC_LOG_STATE + 3 + OPC_LOG_LAST;
        int code = (npz ? opc_log_read_npz : opc_log_read_csv)(&log, 0, text, size, &err);
        if (!code)
            code = opc_log_episodes(&log, &past, &err);
        if (code && !*err.text)
            abort();
        if (!code)
            look_at(past);
        opc_episodes_destroy(past);
        opc_free(log.cell);
    }
    free(text);
    return 0;
}
