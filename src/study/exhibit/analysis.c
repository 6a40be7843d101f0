/* SPDX-License-Identifier: MIT */
/* The list of analyses, and how settings under `probe:` reach one of them. study/repro.c and opc
 * probe call it.
 *
 * Invariant: every analysis is found by name in opc_analyses and nowhere else; a new one is one
 * line here and one in analysis.h. */
#include "study/exhibit/analysis.h"

#include "opc/mem.h"

#include <limits.h>
#include <string.h>

/* clang-format off */
const struct opc_analysis *const opc_analyses[] = {
    &opc_correction_sketch,
    &opc_state_distribution,
    &opc_gradient_field,
    &opc_return_curves,
    &opc_reference_field,
    &opc_gradient_angle,
    &opc_theory,
    &opc_probe_states,
    &opc_probe_trajectories,
    &opc_probe_bound,
    &opc_probe_offpolicy,
    &opc_probe_uncertainty,
    &opc_probe_limitation,
    &opc_probe_fit,
    &opc_learning_curves,
    &opc_learning_control,
    &opc_settings_table,
    NULL,
};
/* clang-format on */

const struct opc_analysis *opc_analysis_find(const char *name, struct opc_err *err)
{
    /* An unknown name is answered with the nearest known one. */
    const char *meant = NULL;
    int nearest = INT_MAX;
    for (int i = 0; opc_analyses[i]; i++) {
        if (strcmp(opc_analyses[i]->name, name) == 0)
            return opc_analyses[i];
        if (opc_nearer(name, opc_analyses[i]->name, &nearest))
            meant = opc_analyses[i]->name;
    }
    opc_fail(err, OPC_EUSER, "there is no analysis '%s'%s%s%s", name,
             meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
    return NULL;
}

/* Writes a word as it is and a list as [a, b], which is what opc_section_set reads. */
static int flatten_node(const struct opc_yaml *node, struct opc_text *out, struct opc_err *err)
{
    if (node->kind == OPC_YAML_MAP)
        return opc_fail(err, OPC_EUSER, "line %d: %s is a map, where a value is expected",
                        node->line, node->key ? node->key : "this");
    if (node->kind == OPC_YAML_WORD) {
        opc_text_add(out, node->text);
        return OPC_OK;
    }
    opc_text_add(out, "[");
    for (const struct opc_yaml *item = node->first; item; item = item->next) {
        if (item != node->first)
            opc_text_add(out, ", ");
        int code = flatten_node(item, out, err);
        if (code)
            return code;
    }
    opc_text_add(out, "]");
    return OPC_OK;
}

int opc_analysis_fill(const struct opc_section *section, const struct opc_yaml *map, void *settings,
                      struct opc_err *err)
{
    /* Defaults first, then every key of the map except `analysis` itself. */
    struct opc_text text = {0};
    int code = opc_section_defaults(section, settings, err);
    for (const struct opc_yaml *node = map ? map->first : NULL; node && !code; node = node->next) {
        if (strcmp(node->key, "analysis") == 0)
            continue;
        /* Of several texts each is set by itself; any other list is one value. */
        const struct opc_field *field = opc_section_find(section, node->key);
        const bool each = field && field->kind == OPC_FIELD_TEXTS && node->kind == OPC_YAML_LIST;
        for (const struct opc_yaml *item = each ? node->first : node; item && !code;
             item = each ? item->next : NULL) {
            opc_text_clear(&text);
            code = flatten_node(item, &text, err);
            if (!code)
                code = opc_text_check(&text, err);
            if (!code && opc_section_set(section, settings, node->key, opc_text_get(&text), err))
                code = opc_within(err, "line %d", node->line);
        }
    }
    opc_text_free(&text);
    return code;
}

/* Fills the settings of an analysis and makes it; with request NULL it only checks the settings. */
static int analysis_fill_and_make(const struct opc_analysis *analysis, const struct opc_yaml *ask,
                                  const struct opc_request *request, struct opc_exhibit *exhibit,
                                  struct opc_err *err)
{
    /* An analysis without settings still refuses unknown keys, by an empty section. */
    static const struct opc_section none = {.name = "", .size = 1};
    const struct opc_section *section = analysis->settings ? analysis->settings : &none;
    void *settings = opc_alloc(1, section->size);
    if (!settings)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the settings of %s",
                        analysis->name);
    int code = opc_analysis_fill(section, ask, settings, err);
    if (!code && request)
        code = analysis->make(request, settings, exhibit, err);
    opc_free(settings);
    return code ? opc_within(err, "%s", analysis->name) : OPC_OK;
}

int opc_analysis_check(const struct opc_analysis *analysis, const struct opc_yaml *ask,
                       const struct opc_yaml *figure, struct opc_err *err)
{
    const int code = analysis_fill_and_make(analysis, ask, NULL, NULL, err);
    return code || !analysis->check ? code : analysis->check(figure, err);
}

int opc_analysis_run(const struct opc_analysis *analysis, const struct opc_request *request,
                     struct opc_exhibit *exhibit, struct opc_err *err)
{
    return analysis_fill_and_make(analysis, request->ask, request, exhibit, err);
}

int opc_analysis_path(const char *folder, const char *of, char path[OPC_PATH], struct opc_err *err)
{
    char at[OPC_PATH], above[OPC_PATH];
    if (!folder || *of == '/' || opc_path_absolute(at, folder, NULL))
        return opc_path_shipped(path, of, err);
    for (;;) {
        OPC_TRY(opc_path_join(path, at, of, err));
        if (opc_file_exists(path))
            return OPC_OK;
        OPC_TRY(opc_path_parent(above, at, err));
        if (strcmp(above, at) == 0) /* the root */
            return opc_path_shipped(path, of, err);
        memcpy(at, above, sizeof at);
    }
}
