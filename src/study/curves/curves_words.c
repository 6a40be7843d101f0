/* SPDX-License-Identifier: MIT */
/* Settings in words: as a person reads them in titles and labels, "Hopper (MuJoCo), horizon 20", or
 * as they are written, joined to a name. curves_run.c and curves_groups.c call it.
 *
 * Invariant: nothing made for people is parsed or compared; names and `rest` have values as they
 * are written. */
#include "base/text.h"
#include "opc/mem.h"
#include "run/config/config.h"
#include "study/curves/curves_private.h"

#include <ctype.h>
#include <string.h>

/* Writes a task for people: "HalfCheetah (MuJoCo)", "InvertedPendulum (RoboSchool), angle raw".
 * Environments of other engines keep their name. */
static void add_task(struct opc_text *text, const char *name)
{
    static const char *const ENGINE[][2] = {{"mujoco:", "MuJoCo"}, {"bullet:", "PyBullet"}};
    const char *engine = NULL;
    /* The engine is the prefix, except for RoboSchool's tasks, which are Bullet's with suffix
     * _rs. */
    for (int i = 0; i < 2 && !engine; i++)
        if (strncmp(name, ENGINE[i][0], strlen(ENGINE[i][0])) == 0) {
            engine = ENGINE[i][1];
            name += strlen(ENGINE[i][0]);
        }
    int n = (int)strcspn(name, "?");
    const char *options = name + n;
    if (engine && n > 3 && strncmp(options - 3, "_rs", 3) == 0) {
        engine = "RoboSchool";
        n -= 3;
    }
    /* half_cheetah becomes HalfCheetah. */
    for (int i = 0; i < n; i++) {
        const bool first = i == 0 || name[i - 1] == '_';
        if (!engine || name[i] != '_')
            opc_text_addf(text, "%c", engine && first ? toupper((unsigned char)name[i]) : name[i]);
    }
    if (engine)
        opc_text_addf(text, " (%s)", engine);
    /* "?angle=raw&x=1" becomes ", angle raw, x 1". */
    for (; *options; options++)
        if (strchr("?&", *options))
            opc_text_add(text, ", ");
        else
            opc_text_addf(text, "%c", *options == '=' ? ' ' : *options);
}

void opc_curves_add_setting(struct opc_text *text, const struct opc_curve_run *run, const char *key,
                            const char *value)
{
    const char *dot = strchr(key, '.');
    const bool no = strcmp(value, "false") == 0, yes = strcmp(value, "true") == 0;
    /* Method and task have names of their own. */
    if (strcmp(key, "opc.transition") == 0) {
        opc_text_add(text, run->method_name);
        return;
    }
    if (strcmp(key, "env.name") == 0) {
        add_task(text, value);
        return;
    }
    /* The name without its section, with blanks instead of underscores. */
    opc_text_add(text, no ? "no " : "");
    for (const char *c = dot ? dot + 1 : key; *c; c++)
        opc_text_addf(text, "%c", *c == '_' ? ' ' : *c);
    const size_t n = strlen(value);
    if (*value == '[' && !strchr(value, ',')) /* a list of one */
        opc_text_addf(text, " %.*s", (int)n - 2, value + 1);
    else if (!yes && !no)
        opc_text_addf(text, " %s", value);
}

int opc_curves_keep_text(struct opc_text *text, char **out, struct opc_err *err)
{
    int code = opc_text_check(text, err);
    if (!code && !(*out = opc_strdup(opc_text_get(text))))
        code = opc_curves_no_memory(err);
    opc_text_free(text);
    return code;
}

int opc_curves_print_values(const struct opc_config *config, int n, const char *const *key,
                            const char *between, const struct opc_curve_run *reader, char **out,
                            struct opc_err *err)
{
    struct opc_text text = {0};
    for (int i = 0; i < n; i++) {
        char *value;
        const int code = opc_config_get(config, key[i], &value, err);
        if (code) {
            opc_text_free(&text);
            return code;
        }
        opc_text_add(&text, i == 0 ? "" : between);
        if (reader)
            opc_curves_add_setting(&text, reader, key[i], value);
        else
            opc_text_add(&text, value);
        opc_free(value);
    }
    return opc_curves_keep_text(&text, out, err);
}
