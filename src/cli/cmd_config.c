/* SPDX-License-Identifier: MIT */
/* opc config - explains the settings, or prints what a file sets them to.
 *
 * The pages come from the tables of the modules (base/field.h), so they cannot be out of date. A
 * file is resolved by the same functions as in `opc train`, so what is printed is what a run would
 * save. */
#include "base/file.h"
#include "cli/console/command.h"
#include "cli/console/display.h"
#include "opc/mem.h"
#include "run/config/config.h"
#include "study/ilc/ilc_run.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
#define OPTIONS(X)                                                                                 \
    X(BOOL, list,     "false", 0, 1, "name the sections, one line each")                           \
    X(BOOL, markdown, "false", 0, 1, "print the page, or all of them, as Markdown")
/* clang-format on */
struct given {
    OPTIONS(OPC_MEMBER)
};
#define SELF struct given
static const struct opc_section options = OPC_SECTION("", "", OPTIONS);
#undef SELF

/* Prints and frees it. */
static int print_text(struct opc_text *text, struct opc_err *err)
{
    const int code = opc_text_check(text, err);
    if (!code)
        fputs(opc_text_get(text), stdout);
    opc_text_free(text);
    return code;
}

/* Prints the page of one section, or of all of them when name is NULL. */
static int explain_sections(const char *name, const struct given *given, struct opc_err *err)
{
    struct opc_values none;
    struct opc_part part[OPC_PARTS_MAX];
    struct opc_text text = {0};
    const char *meant = NULL;
    /* ilc is not part of a run: it is shown by name and in the list only. */
    const int by_name = name || given->list ? 1 : 0;
    char section[64] = "";
    const char *dot = name ? strchr(name, '.') : NULL;
    if (dot && dot - name < (int)sizeof section) {
        snprintf(section, sizeof section, "%.*s", (int)(dot - name), name);
        name = section;
    }
    int nearest = INT_MAX, shown = 0;
    const int parts = opc_config_parts(&none, part);
    for (int i = 0; i < parts + by_name; i++) {
        const struct opc_section *s = i < parts ? part[i].section : &opc_ilc_section;
        /* Sections that were not asked for may still be what was meant. */
        if (name && strcmp(name, s->name) != 0) {
            if (opc_nearer(name, s->name, &nearest))
                meant = s->name;
            continue;
        }
        /* A line, a Markdown table or a page, as the options say. */
        if (given->list)
            opc_text_addf(&text, "%-8s %s\n", s->name, s->help);
        else if (given->markdown) {
            opc_text_addf(&text, "%s## %s\n\n%s.\n\n", shown ? "\n" : "", s->name, s->help);
            opc_section_markdown(s, &text);
        } else {
            /* section.name: that setting alone. */
            const struct opc_field *only = dot ? opc_section_find(s, dot + 1) : NULL;
            if (dot && !only)
                return opc_fail(err, OPC_EUSER,
                                "%s has no setting '%s'; 'opc config %s' shows them", s->name,
                                dot + 1, s->name);
            opc_text_add(&text, shown ? "\n" : "");
            opc_section_describe(s, only, opc_terminal_width(), &text);
        }
        shown++;
    }
    if (shown)
        return print_text(&text, err);
    /* Nothing was shown: the name is wrong. */
    if (meant)
        return opc_fail(err, OPC_EUSER, "there is no section '%s'; did you mean '%s'?", name,
                        meant);
    return opc_fail(err, OPC_EUSER, "there is no section '%s'; 'opc config --list' shows them",
                    name);
}

/* Prints a file with what it includes and the assignments after it, as the run would save it. */
static int print_resolved(int n, char **word, struct opc_err *err)
{
    struct opc_config *config;
    char path[OPC_PATH], *text;
    int code = opc_path_shipped(path, word[0], err);
    if (!code)
        code = opc_config_load(path, &config, err);
    if (code)
        return code;
    /* The words after the file, in their order; then the checks that need all settings. */
    for (int i = 1; i < n && !code; i++)
        code = opc_config_set(config, word[i], err);
    if (!code)
        code = opc_config_check(config, err);
    if (!code)
        code = opc_config_print(config, &text, err);
    if (!code) {
        fputs(text, stdout);
        opc_free(text);
    }
    opc_config_destroy(config);
    return code;
}

static int config_run(int argc, char **argv, struct opc_err *err)
{
    struct given given;
    int first;
    const int code = opc_options_read(&options, argc, argv, &given, &first, err);
    if (code)
        return code;
    /* A slash or .yaml makes it a file; anything else is the name of a section. */
    const char *word = first < argc ? argv[first] : NULL;
    const bool file = word && (strchr(word, '/') || strstr(word, ".yaml") || strstr(word, ".yml"));
    /* Combinations of options that would be ignored are refused instead. */
    if (given.list && (word || given.markdown))
        return opc_fail(err, OPC_EUSER, "--list names all sections, as they are");
    if (given.markdown && file)
        return opc_fail(err, OPC_EUSER, "--markdown is for sections; a file is printed as YAML");
    if (file)
        return print_resolved(argc - first, argv + first, err);
    if (argc - first > 1)
        return opc_fail(err, OPC_EUSER, "name one section, or one FILE.yaml; not '%s' as well",
                        argv[first + 1]);
    return explain_sections(word, &given, err);
}

/* The sections, for shell completion. */
static const char *section_name(int i)
{
    struct opc_values none; /* only its sections are looked at */
    struct opc_part part[OPC_PARTS_MAX];
    const int parts = opc_config_parts(&none, part);
    return i < parts ? part[i].section->name : i == parts ? opc_ilc_section.name : NULL;
}

const struct opc_command opc_cmd_config = {
    .name = "config",
    .usage = "[SECTION | FILE.yaml [KEY=VALUE...]] [OPTION...]",
    .summary = "explain the settings, or show what a file sets them to",
    .detail = "Without arguments: every setting with its type, default, range and meaning.\n"
              "With a file: all settings as a run with that file would have them, which is the "
              "config.yaml it would save.\n"
              "'opc config ilc' explains the settings of 'opc ilc', which are not part of a run.",
    .word_at = section_name,
    .takes = OPC_TAKES_SETTINGS,
    .options = &options,
    .run = config_run,
};
