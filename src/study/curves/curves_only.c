/* SPDX-License-Identifier: MIT */
/* Which runs are drawn: those whose settings meet all patterns of the plan. opc plot reads the
 * patterns, and curves_run.c asks here for each run before it reads its curve.
 *
 * Invariant: a setting that tables do not tell meets no pattern, not even '*': its default is not
 * taken for the run's. */
#include "base/log.h"
#include "run/config/config.h"
#include "study/curves/curves_private.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

int opc_curves_only_read(const struct opc_texts *words, struct opc_curves_only *out,
                         struct opc_err *err)
{
    struct opc_config *config;
    OPC_TRY(opc_config_create(&config, err));
    int code = OPC_OK;
    for (out->n = 0; !code && out->n < words->n; out->n++) {
        const char *word = words->at[out->n], *equals = strchr(word, '=');
        char key[OPC_KEY];
        if (!equals) {
            code = opc_fail(err, OPC_EUSER, "'%.200s' is not KEY=PATTERN, as in env.name='*hopper'",
                            word);
            break;
        }
        snprintf(key, sizeof key, "%.*s", (int)(equals - word), word);
        out->at[out->n].pattern = equals + 1;
        if (!opc_config_key(key, out->at[out->n].key)) {
            (void)opc_config_field(&config->set, key, NULL, err); /* with names that are similar */
            code = OPC_EUSER;
        }
    }
    opc_config_destroy(config);
    return code;
}

/* Whether a setting has the value that the pattern stands for, or one that it matches: [10] is a
 * list, and as a glob one of two digits. */
static int meets_one(const struct opc_values *set, const struct opc_curves_pattern *pattern,
                     struct opc_text *value, bool *meets, struct opc_err *err)
{
    struct opc_values copy = *set; /* sections are not const */
    void *section;
    const struct opc_field *field = opc_config_field(&copy, pattern->key, &section, err);
    if (!field)
        return OPC_EUSER;
    opc_field_print(field, section, value);
    OPC_TRY(opc_text_check(value, err));
    *meets = opc_field_equals(field, section, pattern->pattern) ||
             fnmatch(pattern->pattern, opc_text_get(value), 0) == 0;
    return OPC_OK;
}

int opc_curves_only_meets(struct opc_curves_reading *reading, const struct opc_values *set,
                          const struct opc_curves_origin *from, const char *dir, bool *meets,
                          struct opc_err *err)
{
    const struct opc_curves_only *only = reading->plan->only;
    *meets = true;
    for (int i = 0; only && i < only->n && *meets; i++) {
        const char *key = only->at[i].key;
        const bool told = !from || opc_sweep_tables_know(from->tables, from->i, key);
        struct opc_text value = {0};
        const int code = meets_one(set, &only->at[i], &value, meets, err);
        *meets = *meets && told;
        /* The run that comes nearest says most about a pattern that nothing meets. */
        if (!code && !*meets && (!*reading->nearest || i > reading->met)) {
            reading->met = i;
            if (told)
                snprintf(reading->nearest, sizeof reading->nearest, "%s is '%s' in %s", key,
                         opc_text_get(&value), dir);
            else
                snprintf(reading->nearest, sizeof reading->nearest, "%s does not tell %s",
                         from->tables->path, key);
        }
        opc_text_free(&value);
        if (code)
            return code;
    }
    return OPC_OK;
}

int opc_curves_only_none(const struct opc_curves_reading *reading, struct opc_err *err)
{
    const struct opc_curves_only *only = reading->plan->only;
    struct opc_text patterns = {0};
    for (int i = 0; i < only->n; i++)
        opc_text_addf(&patterns, "%s%s=%s", i ? " and " : "", only->at[i].key, only->at[i].pattern);
    int code = opc_text_check(&patterns, err);
    if (!code)
        code = opc_fail(err, OPC_EUSER, "no run has %s; %s", opc_text_get(&patterns),
                        reading->nearest);
    opc_text_free(&patterns);
    return code;
}

void opc_curves_only_warn(const struct opc_curves_reading *reading,
                          const struct opc_sweep_tables *tables)
{
    const struct opc_curves_only *only = reading->plan->only;
    for (int i = 0; only && i < only->n; i++) {
        bool told = false;
        for (int k = 0; k < tables->sweep->tasks && !told; k++)
            told = opc_sweep_tables_know(tables, k, only->at[i].key);
        if (!told)
            opc_log(OPC_LEVEL_WARN, "%s does not tell %s; its runs are left out", tables->path,
                    only->at[i].key);
    }
}
