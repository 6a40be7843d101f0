/* SPDX-License-Identifier: MIT */
/* Exhibits under results/ name settings as the program does today. One that has an old name was
 * made by an older program, and whoever looks the setting up does not find it. That their files can
 * be used as a whole is checked by tests/program/results.sh. */
#include "base/file.h"
#include "opc/mem.h"
#include "run/config/config.h"
#include "run/config/yaml.h"
#include "study/exhibit/analysis.h"
#include "test.h"

#include <dirent.h>

#define RESULTS OPC_TEST_DIR "/../results"

/* Made before some settings had their present names, of runs that were not kept: 80 of them. */
static const char KNOWN[] = "paper-small/fig4.json";

/* What has been looked at. */
struct seen {
    const char *exhibit;
    bool known; /* that it has old names */
    int old;    /* of those, how many */
    struct opc_values values;
    const struct opc_section *probe; /* settings of its analysis; NULL: none */
    int exhibits, settings;
};

static void check_field(struct seen *seen, const struct opc_field *field, const char *name)
{
    if (!field) {
        fail_msg("%s: there is no setting %s", seen->exhibit, name);
        return;
    }
    const bool old = strcmp(field->name, name) != 0;
    if (old && !seen->known)
        fail_msg("%s: the setting %s is called %s now", seen->exhibit, name, field->name);
    seen->old += old;
    seen->settings++;
}

static void check_setting(struct seen *seen, const char *key)
{
    struct opc_err err = {0};
    const struct opc_field *field = opc_config_field(&seen->values, key, NULL, &err);
    const char *dot = strchr(key, '.');
    check_field(seen, field, dot ? dot + 1 : key);
}

static void check_probe(struct seen *seen, const struct opc_yaml *probe)
{
    struct opc_err err = {0};
    const struct opc_yaml *analysis = opc_yaml_find(probe, "analysis");
    /* A tier has only what it changes. */
    if (analysis) {
        const struct opc_analysis *found = opc_analysis_find(analysis->text, &err);
        assert_non_null(found);
        seen->probe = found->settings;
    }
    for (const struct opc_yaml *e = probe->first; e; e = e->next)
        if (strcmp(e->key, "analysis") != 0) {
            assert_non_null(seen->probe);
            check_field(seen, opc_section_find(seen->probe, e->key), e->key);
        }
}

static bool is(const struct opc_yaml *node, const char *key)
{
    return node->key && strcmp(node->key, key) == 0;
}

/* A map of settings: of the file, of a tier, of what varies, of a condition. */
static void check_map(struct seen *seen, const struct opc_yaml *map)
{
    static const char *const TEXTS[] = {"title", "include", "runs", "figure"};
    char key[200];
    for (const struct opc_yaml *e = map->first; e; e = e->next) {
        bool other = false;
        for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++)
            other = other || is(e, TEXTS[i]);
        if (other)
            continue;
        if (is(e, "probe"))
            check_probe(seen, e);
        else if (is(e, "tiers") || is(e, "when") || is(e, "skip"))
            for (const struct opc_yaml *one = e->first; one; one = one->next)
                check_map(seen, one);
        else if (is(e, "vary") || is(e, "match") || is(e, "set"))
            check_map(seen, e);
        else if (e->kind != OPC_YAML_MAP || strchr(e->key, '.'))
            check_setting(seen, e->key);
        else
            for (const struct opc_yaml *one = e->first; one; one = one->next) {
                snprintf(key, sizeof key, "%s.%s", e->key, one->key);
                check_setting(seen, key);
            }
    }
}

static void check_exhibit(struct seen *seen, const char *path)
{
    struct opc_exhibit_read *exhibit;
    struct opc_yaml *file;
    struct opc_err err;
    assert_ok(opc_exhibit_load(path, &exhibit, &err), &err);
    seen->exhibit = path + strlen(RESULTS) + 1;
    seen->probe = NULL;
    seen->known = strcmp(seen->exhibit, KNOWN) == 0;
    seen->old = 0;
    if (*exhibit->config) {
        assert_ok(opc_yaml_parse(path, exhibit->config, strlen(exhibit->config), &file, &err),
                  &err);
        check_map(seen, file);
        opc_yaml_free(file);
    }
    if (seen->known && !seen->old)
        fail_msg("%s has the names of today: take it out of KNOWN", seen->exhibit);
    seen->exhibits++;
    seen->exhibit = NULL;
    opc_exhibit_unload(exhibit);
}

/* All NAME.json in a directory and those within it. */
static void check_all(struct seen *seen, const char *dir)
{
    char path[OPC_PATH];
    struct opc_err err;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        const size_t n = strlen(e->d_name);
        if (*e->d_name == '.')
            continue;
        assert_ok(opc_path_join(path, dir, e->d_name, &err), &err);
        if (opc_is_directory(path))
            check_all(seen, path);
        else if (n > 5 && strcmp(e->d_name + n - 5, ".json") == 0)
            check_exhibit(seen, path);
    }
    closedir(d);
}

static void exhibits_name_settings_of_today(void **state)
{
    (void)state;
    struct opc_config *config;
    struct opc_err err;
    struct seen seen = {0};
    assert_ok(opc_config_create(&config, &err), &err);
    seen.values = config->set;
    opc_config_destroy(config);
    check_all(&seen, RESULTS);
    assert_true(seen.exhibits > 20);
    assert_true(seen.settings > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(exhibits_name_settings_of_today)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
